/* GPU body of a Newton step's vector work (ops/linear/newton.h): OP's formula for each element, coefficients
 * first, then intercepts; each group leaves its three sums. */

#define ARGUMENTS_pairs(FIRST, NEXT)                                                                         \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(OUT, real, out)                                                                                     \
    NEXT(OUT, real, out_b)                                                                                   \
    NEXT(OUT, real, second)                                                                                  \
    NEXT(OUT, real, second_b)                                                                                \
    NEXT(IN, real, x)                                                                                        \
    NEXT(IN, real, x_b)                                                                                      \
    NEXT(IN, real, y)                                                                                        \
    NEXT(IN, real, y_b)                                                                                      \
    NEXT(IN, real, inverse)                                                                                  \
    NEXT(IN, real, inverse_b)                                                                                \
    NEXT(IN, real, mean)                                                                                     \
    NEXT(IN, real, column)                                                                                   \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, real, scalar)

#ifndef KI_HOST
#include "dialect/real_math.h"

__kernel void pairs(PARAMETERS(pairs)) {
    LOCAL wide shared[GROUP];
    const int lane = (int)get_local_id(0);
    wide sums[3] = {0, 0, 0};
    for (index_t i = (index_t)get_global_id(0); i < (index_t)(out_b ? count + k : count);
         i += (index_t)get_global_size(0)) {
        real unused = 0;
        if (i < (index_t)count) {
            const index_t row = i / k;
            real o = out[i], s = second ? second[i] : unused;
            pair_element(OP, &o, &s, x ? x[i] : REAL(0.0), y ? y[i] : REAL(0.0),
                         inverse ? inverse[i] : REAL(0.0), mean ? mean[row] * out_b[i - row * k] : REAL(0.0),
                         column ? column[row] : REAL(0.0), scalar, sums);
            out[i] = o;
#if OP == 1 || OP == 5 /* others only read it */
            second[i] = s;
#endif
        } else {
            const index_t c = i - (index_t)count;
            real o = out_b[c], s = second_b ? second_b[c] : unused;
            pair_element(OP, &o, &s, x_b ? x_b[c] : REAL(0.0), y_b ? y_b[c] : REAL(0.0),
                         inverse_b ? inverse_b[c] : REAL(0.0), REAL(0.0), REAL(0.0), scalar, sums);
#if OP != 0 /* COMPLETE leaves it as it is, and other groups read it */
            out_b[c] = o;
#endif
#if OP == 1 || OP == 5
            second_b[c] = s;
#endif
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
// build OP=0 GROUP=128
// build OP=1 GROUP=128
// build OP=2 GROUP=128
// build OP=3 GROUP=128 INDEX64
// build OP=4 GROUP=128
// build OP=5 GROUP=128
// build OP=6 GROUP=128
// build OP=7 GROUP=128
// build OP=8 GROUP=128
// pack {f32|f64} OP={0|1|2|3|4|5|6|7|8} GROUP=128
#endif
