/* GPU body of ops/linear/scales.h: OP's formula for each column; each group leaves its three sums. The
 * operation is an argument, as one built kernel then serves all, and all threads go the same way. */

#define ARGUMENTS_scales(FIRST, NEXT)                                                                        \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(VALUE, int, op)                                                                                     \
    NEXT(OUT, real, square)                                                                                  \
    NEXT(OUT, real, mean)                                                                                    \
    NEXT(OUT, real, centred)                                                                                 \
    NEXT(OUT, real, inverse)                                                                                 \
    NEXT(OUT, real, penalty)                                                                                 \
    NEXT(OUT, real, kept)                                                                                    \
    NEXT(IN, real, c)                                                                                        \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, wide, weight)                                                                                \
    NEXT(VALUE, wide, doubted)                                                                               \
    NEXT(VALUE, wide, flat)                                                                                  \
    NEXT(VALUE, wide, l2)                                                                                    \
    NEXT(VALUE, int, intercept)                                                                              \
    NEXT(VALUE, int, standardize)                                                                            \
    NEXT(VALUE, int, plain)

#ifndef KI_HOST
#include "dialect/real_math.h"

__kernel GROUP_OF(GROUP) void scales(PARAMETERS(scales)) {
    LOCAL wide shared[GROUP];
    const int lane = (int)get_local_id(0);
    wide sums[3] = {0, 0, 0};
    for (index_t j = (index_t)get_global_id(0); j < (index_t)n; j += (index_t)get_global_size(0)) {
        if (op == 0) {
            real q = square[j], m = mean[j], v;
            column_measure(&q, &m, &v, c ? c[j] : REAL(0.0), weight, doubted, flat, sums);
            square[j] = q;
            mean[j] = m;
            centred[j] = v;
        } else if (op == 1) {
            real p;
            inverse[j] = column_weigh(square[j], centred[j], &p, weight, l2, intercept, standardize, plain);
            if (penalty) penalty[j] = p;
            if (kept) kept[j] = inverse[j] > REAL(0.0) ? REAL(1.0) : REAL(0.0);
        } else {
            inverse[j] = column_invert(square[j], inverse[j], sums);
        }
    }
    for (int s = 0; s < 3; s++) {
        shared[lane] = sums[s];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = GROUP / 2; reach > 0; reach /= 2) {
            if (lane < reach) shared[lane] += shared[lane + reach];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) partial[3 * (long)get_group_id(0) + s] = shared[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The variants that differ in text, as the tests build them. */
// build GROUP=128
// pack {f32|f64} GROUP=128
#endif
