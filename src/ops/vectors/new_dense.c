/* A new dense matrix: core's memory, and zeros by the operation that fills a matrix where it lies. */
#include "kiln/ops.h"
#include "core/matrix.h"
#include "core/status.h"

kiln_status kiln_matrix_dense(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                              int64_t cols, const void *values) {
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "kiln_matrix_dense: A is NULL");
    kiln_matrix *made = NULL;
    bool unset = false;
    kiln_status status;
    TRY(ki_matrix_dense(&made, &unset, device, type, rows, cols, values));
    if (unset) TRY(kiln_fill(made, 0));
    *A = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}
