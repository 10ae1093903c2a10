/* GPU body of the element-wise operations. Each thread walks over elements a grid apart. */

#define FOR_EACH(i, count)                                                                                   \
    for (index_t i = (index_t)get_global_id(0); i < (index_t)(count); i += (index_t)get_global_size(0))

/* W = a X + b Y for one column. A zero coefficient does not read its operand. */
__kernel void combine_one(__global real *W, __global const real *X, __global const real *Y, long rows, int k,
                          int first, int x_cols, int y_cols, real a, real b) {
    FOR_EACH(i, rows) {
        real sum = a != REAL(0.0) ? a * X[i] : REAL(0.0);
        if (b != REAL(0.0)) sum += b * Y[i];
        W[i] = sum;
    }
}

/* Sixteen columns from `first`; x_cols and y_cols are 1 where an operand's one column serves all. */
__kernel void combine_tile(__global real *W, __global const real *X, __global const real *Y, long rows, int k,
                           int first, int x_cols, int y_cols, real a0, real a1, real a2, real a3, real a4, real a5,
                           real a6, real a7, real a8, real a9, real a10, real a11, real a12, real a13, real a14,
                           real a15, real b0, real b1, real b2, real b3, real b4, real b5, real b6, real b7, real b8,
                           real b9, real b10, real b11, real b12, real b13, real b14, real b15) {
    const real a[16] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};
    const real b[16] = {b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15};
    const int width = k - first < 16 ? k - first : 16;
    FOR_EACH(row, rows) {
        for (int c = 0; c < width; c++) {
            const index_t column = first + c;
            real sum = REAL(0.0);
            if (a[c] != REAL(0.0)) sum = a[c] * X[x_cols == 1 ? row : row * x_cols + column];
            if (b[c] != REAL(0.0)) sum += b[c] * Y[y_cols == 1 ? row : row * y_cols + column];
            W[row * k + column] = sum;
        }
    }
}

/* x_share, y_share: how many neighbouring elements of W one element of the operand serves. */
__kernel void times(__global real *W, __global const real *X, __global const real *Y, long count, int x_share,
                    int y_share) {
    FOR_EACH(i, count) W[i] = X[i / x_share] * Y[i / y_share];
}

__kernel void map(__global real *W, __global const real *X, long count, int kind) {
    FOR_EACH(i, count) W[i] = map_value(X[i], kind);
}

__kernel void fill(__global real *W, long count, real value) {
    FOR_EACH(i, count) W[i] = value;
}

__kernel void fill_random(__global real *W, long count, long seed, long stream) {
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
