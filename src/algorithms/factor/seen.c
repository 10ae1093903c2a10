/* The model keeps what the rows of the training data had entries for, so that nothing else is needed to
 * recommend what is new: tensors seen_counts, how many of each row, and seen_columns, their numbers one row
 * after the other. Both hold whole numbers, in f32 where all of these fit into its 24 bits. */
#include "algorithms/factor/seen.h"

#include "algorithms/factor/entries.h"

enum { WHOLE_F32 = 1 << 24 };

static kiln_status numbers_matrix(kiln_matrix **A, kiln_device *device, kiln_type type, const double *values,
                                  int64_t count) {
    float *narrow = NULL;
    kiln_status status = KILN_OK;
    if (type == KILN_F32) {
        if (!(narrow = ki_alloc((size_t)count * sizeof *narrow)))
            TRY(ki_fail_nomem((size_t)count * sizeof *narrow, "the entries that the model keeps"));
        for (int64_t i = 0; i < count; i++) narrow[i] = (float)values[i];
    }
    TRY(kiln_matrix_dense(A, device, type, count, 1, narrow ? (const void *)narrow : values));
done:
    ki_free(narrow);
    return status;
}

kiln_status kiln_model_keep_seen(kiln_model *model, const kiln_matrix *R) {
    struct ki_host_entries entries = {0};
    kiln_matrix *counts = NULL, *columns = NULL;
    double *count = NULL;
    kiln_status status;
    if (!model || !R || kiln_matrix_format(R) != KILN_CSR)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "kiln_model_keep_seen: model and R, a sparse matrix, must be given");
    TRY(ki_entries_get(&entries, R));
    if (!(count = ki_alloc((size_t)entries.rows * sizeof *count)))
        TRY(ki_fail_nomem((size_t)entries.rows * sizeof *count, "the entries that the model keeps"));
    for (int64_t i = 0; i < entries.rows; i++) count[i] = (double)(entries.start[i + 1] - entries.start[i]);
    for (int64_t e = 0; e < entries.nnz; e++) entries.value[e] = entries.col[e];
    const kiln_type type =
        entries.cols <= WHOLE_F32 ? KILN_F32 : KILN_F64; /* a row has at most cols entries */
    TRY(numbers_matrix(&counts, kiln_matrix_device(R), type, count, entries.rows));
    TRY(numbers_matrix(&columns, kiln_matrix_device(R), type, entries.value, entries.nnz));
    TRY(kiln_model_set_tensor(model, "seen_counts", counts));
    TRY(kiln_model_set_tensor(model, "seen_columns", columns));
done:
    ki_free(count);
    ki_host_entries_free(&entries);
    kiln_matrix_free(counts);
    kiln_matrix_free(columns);
    return status;
}

static bool whole(double value, double below) {
    return value >= 0 && value < below && value == floor(value);
}

kiln_status ki_check_seen(const kiln_model *model, int64_t cols) {
    const struct ki_tensor *counts = ki_model_tensor(model, "seen_counts"),
                           *columns = ki_model_tensor(model, "seen_columns");
    int64_t at = 0;
    if (!counts && !columns) return KILN_OK;
    if (!counts || !columns) return ki_fail(KILN_ERR_MODEL, "one of the tensors 'seen_...' is missing");
    for (int64_t i = 0; i < counts->rows; i++) {
        const double count = ki_tensor_value(counts, i);
        if (!whole(count, (double)cols + 1) || (int64_t)count > columns->rows - at)
            return ki_fail(KILN_ERR_MODEL, "tensor 'seen_counts' has the value %g", count);
        double last = -1;
        for (int64_t end = at + (int64_t)count; at < end; at++) {
            const double column = ki_tensor_value(columns, at);
            if (!whole(column, (double)cols) || !(column > last))
                return ki_fail(KILN_ERR_MODEL, "tensor 'seen_columns' has the value %g in row %lld", column,
                               (long long)i);
            last = column;
        }
    }
    if (at == columns->rows) return KILN_OK;
    return ki_fail(KILN_ERR_MODEL, "tensor 'seen_columns' has %lld rows, but 'seen_counts' adds up to %lld",
                   (long long)columns->rows, (long long)at);
}

static kiln_status take_seen(struct ki_host_entries *entries, const struct ki_tensor *counts,
                             const struct ki_tensor *columns, int64_t first, int64_t rows, int64_t cols) {
    int64_t from = 0, nnz = 0;
    for (int64_t i = 0; i < first; i++) from += (int64_t)ki_tensor_value(counts, i);
    for (int64_t i = first; i < first + rows; i++) nnz += (int64_t)ki_tensor_value(counts, i);
    kiln_status status = ki_entries_new(entries, rows, cols, nnz);
    if (status != KILN_OK) return status;
    for (int64_t i = 0; i < rows; i++)
        entries->start[i + 1] = entries->start[i] + (int64_t)ki_tensor_value(counts, first + i);
    for (int64_t e = 0; e < nnz; e++) {
        entries->col[e] = (int32_t)ki_tensor_value(columns, from + e);
        entries->value[e] = 1;
    }
    return KILN_OK;
}

kiln_status kiln_model_seen(kiln_matrix **R, const kiln_model *model, const kiln_matrix *like, int64_t first,
                            int64_t rows) {
    static const char call[] = "kiln_model_seen";
    struct ki_host_entries entries = {0};
    kiln_status status;
    if (!R || !model || !like) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_model_check(model));
    const struct ki_tensor *counts = ki_model_tensor(model, "seen_counts"),
                           *columns = ki_model_tensor(model, "seen_columns"),
                           *B = ki_model_tensor(model, "B");
    if (!counts || !B) {
        ki_fail(KILN_ERR_MODEL, "%s: the model does not keep what its rows have seen", call);
        return ki_hint("kiln_model_keep_seen puts it in");
    }
    if (first < 0 || rows < 0 || first > counts->rows - rows)
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: there are no rows %lld to %lld", call, (long long)first,
                    (long long)(first + rows - 1)));
    TRY(take_seen(&entries, counts, columns, first, rows, B->rows));
    TRY(ki_entries_matrix(R, &entries, like));
done:
    ki_host_entries_free(&entries);
    return status;
}
