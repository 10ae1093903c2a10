/* GPU body of pass/combine.h. Each thread walks over elements a grid apart. */

#define ARGUMENTS_combine_one(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, W)                                                                                      \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, real, a)                                                                                     \
    NEXT(VALUE, real, b)

#define ARGUMENTS_combine_tile(FIRST, NEXT)                                                                  \
    FIRST(OUT, real, W)                                                                                      \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, x_cols)                                                                                 \
    NEXT(VALUE, int, y_cols)                                                                                 \
    NEXT(SIXTEEN, real, a)                                                                                   \
    NEXT(SIXTEEN, real, b)

#define ARGUMENTS_fill(FIRST, NEXT)                                                                          \
    FIRST(OUT, real, W)                                                                                      \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, real, value)

#ifndef KI_HOST
#include "dialect/scalar_math.h"

#ifdef BY_COLUMNS /* its divisions take the compiler longer than both the others */
/* Sixteen columns from `first`; x_cols and y_cols are 1 where an operand's one column serves all.
 * Neighbouring threads have neighbouring elements of a row, whose coefficients they find on chip. */
__kernel void combine_tile(PARAMETERS(combine_tile)) {
    const real all_a[16] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};
    const real all_b[16] = {b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15};
    LOCAL real a[16], b[16];
    const index_t width = k - first < 16 ? k - first : 16;
    for (int c = (int)get_local_id(0); c < 16; c += (int)get_local_size(0)) {
        a[c] = all_a[c];
        b[c] = all_b[c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FOR_EACH(e, (index_t)rows * width) {
        const index_t row = e / width, c = e - row * width, column = first + c;
        real sum = REAL(0.0);
        if (a[c] != REAL(0.0)) sum = a[c] * X[x_cols == 1 ? row : row * x_cols + column];
        if (b[c] != REAL(0.0)) sum += b[c] * Y[y_cols == 1 ? row : row * y_cols + column];
        W[row * k + column] = sum;
    }
}
#else
/* W = a X + b Y for one column, or for all elements alike. A zero coefficient does not read its operand. */
__kernel void combine_one(PARAMETERS(combine_one)) {
    FOR_EACH(i, rows) {
        real sum = a != REAL(0.0) ? a * X[i] : REAL(0.0);
        if (b != REAL(0.0)) sum += b * Y[i];
        W[i] = sum;
    }
}

__kernel void fill(PARAMETERS(fill)) {
    FOR_EACH(i, count) W[i] = value;
}
#endif

// build
// build INDEX64
// build BY_COLUMNS
// build BY_COLUMNS INDEX64
// pack {f32|f64} {|BY_COLUMNS}
#endif
