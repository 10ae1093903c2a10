/* Rows of X by number, as a dense matrix. */
#include <string.h>

#include "bodies/bodies.h"
#include "core/narrow/narrow.h"
#include "core/arguments.h"
#include "core/file.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "ops/vectors/rows.cl"
#include "pass/group.h"
#include "pass/roles.h"
#include "core/home.h"

KI_ARGUMENTS(copy_rows);

static kiln_status copy_gpu(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows) {
    enum { GROUP = 64 };
    kiln_device *device = X->device;
    const bool sparse = X->format == KILN_CSR;
    struct ki_buffer list = {0};
    kiln_status status;
    const char *defines = KI_DEFINES("-DGROUP=%d", GROUP);
    TRY(ki_device_alloc(device, &list, R->rows * 8));
    TRY(ki_device_upload(device, &list, 0, rows, R->rows * 8));
    TRY(ki_kernel_run(device, "rows", "copy_rows", X->type, defines,
                      ki_min(R->rows, (int64_t)device->properties.compute_units * 32), GROUP,
                      KI_PACK(copy_rows, X, .R = R, .X = X, .row_start = sparse ? &X->row_start : NULL,
                              .col = sparse ? &X->col : NULL, .rows = &list, .count = R->rows,
                              .n = (int32_t)X->cols)));
done:
    ki_device_release(device, &list);
    return status;
}

/* Row `number` of X's copy in host memory, or of its file: `to`, dense. `values` and `col` have room for the
 * longest. */
static kiln_status take_row(char *to, const kiln_matrix *X, int64_t number, char *values, int32_t *col) {
    const int64_t element = ki_type_bytes(X->type), *start = ki_matrix_host(X, KI_ROW_START);
    const bool dense = X->format == KILN_DENSE;
    const int64_t begin = dense ? number * X->cols : start[number],
                  count = dense ? X->cols : start[number + 1] - begin;
    if (dense && X->element) return ki_narrow_get(to, X, begin, count);
    const char *from = X->element ? NULL : ki_matrix_host(X, KI_VALUES);
    const int32_t *at = ki_matrix_host(X, KI_COL);
    kiln_status status = KILN_OK;
    if (X->element)
        TRY(ki_narrow_get(values, X, begin, count));
    else if (!from)
        TRY(ki_matrix_read(dense ? to : values, X, KI_VALUES, begin, count));
    if (!at && !dense) TRY(ki_matrix_read(col, X, KI_COL, begin, count));
    if (dense && from) memcpy(to, from + begin * element, (size_t)(count * element));
    if (dense) goto done;
    memset(to, 0, (size_t)(X->cols * element));
    for (int64_t e = 0; e < count; e++)
        memcpy(to + (at ? at[begin + e] : col[e]) * element,
               from ? from + (begin + e) * element : values + e * element, (size_t)element);
done:
    return status;
}

static kiln_status take(char *to, const kiln_matrix *X, const int64_t *rows, int64_t count) {
    const int64_t element = ki_type_bytes(X->type), *start = ki_matrix_host(X, KI_ROW_START);
    int64_t most = 0;
    kiln_status status = KILN_OK;
    for (int64_t i = 0; start && i < count; i++) most = ki_max(most, start[rows[i] + 1] - start[rows[i]]);
    char *values = ki_alloc((size_t)(most * (element + 4) + 1));
    if (!values) return ki_fail_nomem((size_t)(most * (element + 4)), "a row of a matrix");
    int32_t *col = (int32_t *)(void *)(values + most * element);
    for (int64_t i = 0; i < count; i++) TRY(take_row(to + i * X->cols * element, X, rows[i], values, col));
    if (X->file) TRY(ki_file_check(X->file));
done:
    ki_free(values);
    return status;
}

/* From host memory, where a group of GPUs has the whole of X and what is too large for a GPU lies, or from
 * X's file. R stays in host memory, too, if it has no place on the device. */
static kiln_status copy_from_outside(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows) {
    const int64_t bytes = R->nnz * ki_type_bytes(R->type);
    const struct ki_operand written = {R, true};
    char *to = NULL;
    kiln_status status;
    if (!ki_matrix_resident(R) && R->host[KI_VALUES]) {
        ki_slots_drop(R);
        return take(R->host[KI_VALUES], X, rows, R->rows);
    }
    to = ki_alloc((size_t)bytes);
    if (!to) return ki_fail_nomem((size_t)bytes, "rows of a matrix");
    TRY(take(to, X, rows, R->rows));
    TRY(ki_operands_hold(R->device, &written, 1));
    status = ki_device_upload(R->device, &R->values, 0, to, bytes);
    ki_operands_release(R->device, &written, 1);
done:
    ki_free(to);
    return status;
}

kiln_status kiln_rows(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows) {
    static const char call[] = "kiln_rows";
    kiln_status status;
    if (!R || !X || !rows) return ki_fail(KILN_ERR_ARGUMENT, "%s: R, X or rows is NULL", call);
    TRY(ki_check_passed(call, "X", X, R));
    TRY(ki_check_dense(call, "R", R, X, R->rows, X->cols));
    if (R == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: R must not be X", call);
    for (int64_t i = 0; i < R->rows; i++)
        if (rows[i] < 0 || rows[i] >= X->rows)
            return ki_fail(KILN_ERR_ARGUMENT, "%s: X has %lld rows, and none of number %lld", call,
                           (long long)X->rows, (long long)rows[i]);
    if (R->nnz == 0) return KILN_OK;
    if (X->here) return X->device->processes->rows(R, X, rows);
    TRY(ki_matrix_home(X));
    const bool away = ki_is_split(X) || ki_streams(X);
    if (away && !ki_matrix_resident(X) && (ki_matrix_host(X, KI_VALUES) || X->file))
        return copy_from_outside(R, X, rows);
    const struct ki_operand operands[] = {{R, true}, {X, false}};
    TRY(ki_operands_hold(X->device, operands, 2));
    if (ki_on_cpu(X->device))
        ki_bodies(X)->copy_rows(R, X, rows);
    else
        status = copy_gpu(R, X, rows);
    ki_operands_release(X->device, operands, 2);
done:
    return status;
}
