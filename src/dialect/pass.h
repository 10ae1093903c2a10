/* What the kernels of the passes over X have in common (ops/mmchain_dense.cl, ops/mmchain_csr.cl). Built for a KIND and a
 * shape of work:
 *   KIND  FUSED, PLAIN, TRANSPOSED or SQUARES (ops/mmchain.h)
 *   VS BS threads in a vector and in a work-group         R   rows that a vector takes at a step (dense)
 *   Q  W  loads per thread and row, elements in a load    K   columns of y in this launch, from `first`
 * Rows beyond the last and columns beyond n or k count as zeros. v, z and (SQUARES) y are null where they are not given:
 * a test that goes the same way in every thread costs nothing, a variant of its own costs a build. */
#ifndef PASS_H
#define PASS_H
#if defined(KIND) && defined(BS) /* other kernels define neither or one of them */

#define FUSED (KIND == 0)
#define PLAIN (KIND == 1)
#define TRANSPOSED (KIND == 2)
#define SQUARES (KIND == 3)
#define NV (BS / VS)

/* What row contributes to column c's scatter: v_row * (x_row . y), or the given y_row. */
DEVICE_FN real row_factor(real dot, __global const real *v, __global const real *y, index_t row, int c, int k,
                          int v_cols) {
#if FUSED
    return v ? dot * v[v_cols == 1 ? row : row * k + c] : dot;
#else
    return y ? y[row * k + c] : REAL(1.0);
#endif
}

DEVICE_FN void write_plain(__global real *out, real dot, __global const real *z, real alpha, real beta, index_t at) {
    out[at] = z ? alpha * dot + beta * z[at] : alpha * dot;
}

#endif
#endif
