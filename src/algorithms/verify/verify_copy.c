/* A matrix copied to the host and widened to doubles, for code that judges results by plain loops. */
#include "algorithms/verify/verify.h"

kiln_status ki_copy_vector(double **values, const kiln_matrix *A) {
    int64_t bytes;
    *values = ki_mul(kiln_matrix_nnz(A), sizeof **values, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    return *values ? ki_vector_get(*values, A)
                   : ki_fail_nomem((size_t)kiln_matrix_nnz(A) * 8, "a copy to verify");
}

static kiln_status take_csr(struct ki_copy *copy, const kiln_matrix *A) {
    const int64_t nnz = kiln_matrix_nnz(A);
    copy->row_start = ki_alloc((size_t)(copy->rows + 1) * sizeof *copy->row_start);
    copy->col = ki_alloc((size_t)nnz * sizeof *copy->col);
    copy->x = ki_alloc((size_t)nnz * sizeof *copy->x);
    if (!copy->row_start || !copy->col || !copy->x)
        return ki_fail_nomem((size_t)nnz * 12, "a copy of the matrix to verify");
    kiln_status status = kiln_matrix_get_csr(copy->row_start, copy->col, copy->x, A);
    if (status != KILN_OK || kiln_matrix_type(A) == KILN_F64) return status;
    for (int64_t e = nnz; e-- > 0;) { /* widened in place, from the end */
        float value;
        memcpy(&value, (const float *)(const void *)copy->x + e, sizeof value);
        copy->x[e] = value;
    }
    return KILN_OK;
}

kiln_status ki_copy_take(struct ki_copy *copy, const kiln_matrix *A) {
    copy->rows = kiln_matrix_rows(A);
    copy->cols = kiln_matrix_cols(A);
    return kiln_matrix_format(A) == KILN_CSR ? take_csr(copy, A) : ki_copy_vector(&copy->x, A);
}

void ki_copy_free(struct ki_copy *copy) {
    ki_free(copy->row_start);
    ki_free(copy->col);
    ki_free(copy->x);
    *copy = (struct ki_copy){0};
}
