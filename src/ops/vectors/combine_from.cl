/* GPU body of kiln_combine_from (ops/vectors/combine_from.c): the coefficients are computed where they are
 * used, which costs a thread less than a launch of their own would cost them all. */

#define ARGUMENTS_combine_from(FIRST, NEXT)                                                                  \
    FIRST(OUT, real, W)                                                                                      \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(IN, wide, a_over)                                                                                   \
    NEXT(IN, wide, a_under)                                                                                  \
    NEXT(IN, wide, b_over)                                                                                   \
    NEXT(IN, wide, b_under)                                                                                  \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, long, a_over_at)                                                                             \
    NEXT(VALUE, long, a_under_at)                                                                            \
    NEXT(VALUE, long, b_over_at)                                                                             \
    NEXT(VALUE, long, b_under_at)                                                                            \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, x_share)                                                                                \
    NEXT(VALUE, int, y_share)                                                                                \
    NEXT(VALUE, wide, a)                                                                                     \
    NEXT(VALUE, wide, b)

#ifndef KI_HOST
#include "dialect/scalar_math.h"

DEVICE_FN real coefficient(wide factor, __global const wide *over, __global const wide *under, int c) {
    return (real)ratio_value(factor, over ? over[c] : (wide)1, under ? under[c] : (wide)1);
}

/* The places are those of the rows' first elements. x_share, y_share: how many neighbouring elements of W one
 * element of the operand serves. */
__kernel void combine_from(PARAMETERS(combine_from)) {
    if (a_over) a_over += a_over_at;
    if (a_under) a_under += a_under_at;
    if (b_over) b_over += b_over_at;
    if (b_under) b_under += b_under_at;
    FOR_EACH(i, count) {
        const int c = (int)(i % k);
        const real s = coefficient(a, a_over, a_under, c);
        real sum = s != REAL(0.0) ? s * X[i / x_share] : REAL(0.0);
        if (Y) {
            const real t = coefficient(b, b_over, b_under, c);
            if (t != REAL(0.0)) sum += t * Y[i / y_share];
        }
        W[i] = sum;
    }
}

// build
// build INDEX64
// pack {f32|f64}
#endif
