/* FusedMM's kernels (Rahman, Sujon and Azad, IPDPS 2021; github.com/HipGraph/FusedMM) behind one C function,
 * so that sddmm.py times them on the same arrays: Z = P B with P = A B^T at the pattern, its function of the
 * product being the product itself. The generated sources, of 32 and 128 numbers, come from a clone;
 * bench/peers/fusedmm.sh makes them. */
#include <stdint.h>

static inline int SOP_UDEF_FUNC(float product, float *out) {
    *out = product;
    return 0;
}

#include "K32.c"
#include "K128.c"

int fusedmm(int32_t k, int32_t rows, int32_t cols, const float *value, const int32_t *col,
            const int32_t *start, const float *a, const float *b, float *z) {
    const int32_t nnz = start[rows];
    if (k == 32)
        sgfusedMM_K32_sigmoid_b0_csr('s', rows, cols, k, 1, nnz, rows, cols, value, col, start, start + 1, a,
                                     k, b, k, 0, z, k);
    else if (k == 128)
        sgfusedMM_K128_sigmoid_b0_csr('s', rows, cols, k, 1, nnz, rows, cols, value, col, start, start + 1, a,
                                      k, b, k, 0, z, k);
    else
        return -1;
    return 0;
}
