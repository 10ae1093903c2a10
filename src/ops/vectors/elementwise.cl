/* GPU body of the element-wise operations. Each thread walks over elements a grid apart. */

#define ARGUMENTS_times(FIRST, NEXT)                                                                         \
    FIRST(OUT, real, W)                                                                                      \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, int, x_share)                                                                                \
    NEXT(VALUE, int, y_share)

#define ARGUMENTS_map(FIRST, NEXT)                                                                           \
    FIRST(OUT, real, W)                                                                                      \
    NEXT(IN, real, X)                                                                                        \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, int, kind)

#define ARGUMENTS_fill_random(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, W)                                                                                      \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, long, seed)                                                                                  \
    NEXT(VALUE, long, stream)

#ifndef KI_HOST
#include "dialect/real_math.h"

/* x_share, y_share: how many neighbouring elements of W one element of the operand serves. */
__kernel void times(PARAMETERS(times)) {
    /* A division takes longer than all else. */
    FOR_EACH(i, count) W[i] = X[x_share == 1 ? i : i / x_share] * Y[y_share == 1 ? i : i / y_share];
}

__kernel void map(PARAMETERS(map)) {
    FOR_EACH(i, count) W[i] = map_value(X[i], kind);
}

__kernel void fill_random(PARAMETERS(fill_random)) {
    FOR_EACH(i, count) {
#ifdef NORMAL
        W[i] = random_normal((uint64)seed, (uint64)stream, (uint64)i);
#else
        W[i] = random_uniform((uint64)seed, (uint64)stream, (uint64)i);
#endif
    }
}

/* The variants that differ in text, as the tests build them. */
// build
// build INDEX64
// pack {f32|f64} {|NORMAL}
#endif
