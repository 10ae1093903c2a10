/* A matrix copied to the host and widened to doubles, for code that judges results by plain loops. Those go
 * through the rows in order, so that a window of them is enough of a matrix in a file. */
#include "algorithms/verify/verify.h"

kiln_status ki_copy_vector(double **values, const kiln_matrix *A) {
    int64_t bytes;
    *values = ki_mul(kiln_matrix_nnz(A), sizeof **values, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    return *values ? ki_vector_get(*values, A)
                   : ki_fail_nomem((size_t)kiln_matrix_nnz(A) * 8, "a copy to verify");
}

enum { WINDOW_ENTRIES = 1 << 16 };

static int64_t start_of(const struct ki_copy *copy, int64_t row) {
    return copy->row_start ? copy->row_start[row] : row * copy->cols;
}

/* Numbers of the matrix's type, widened in place, from the end. */
static void widen(double *x, kiln_type type, int64_t count) {
    for (int64_t e = type == KILN_F32 ? count : 0; e-- > 0;) {
        float value;
        memcpy(&value, (const float *)(const void *)x + e, sizeof value);
        x[e] = value;
    }
}

static kiln_status read_window(const struct ki_copy *copy, int64_t entries) {
    struct ki_copy_window *w = copy->window;
    kiln_status status = copy->row_start ? ki_file_entries_get(w->col, w->x, copy->A, w->begin, entries)
                                         : ki_elements_get(w->x, copy->A, w->begin, entries);
    if (status == KILN_OK) widen(w->x, kiln_matrix_type(copy->A), entries);
    return status;
}

void ki_copy_move(const struct ki_copy *copy, int64_t row) {
    struct ki_copy_window *w = copy->window;
    w->first = row;
    w->begin = start_of(copy, row);
    for (w->end = row + 1; w->end < copy->rows && start_of(copy, w->end + 1) - w->begin <= w->room;) w->end++;
    const int64_t entries = start_of(copy, w->end) - w->begin;
    if (w->status == KILN_OK) {
        w->status = read_window(copy, entries);
        if (w->status == KILN_OK) return;
        ki_error_keep(&w->error);
    }
    memset(w->x, 0, (size_t)entries * sizeof *w->x);
    if (w->col) memset(w->col, 0, (size_t)entries * sizeof *w->col);
}

static kiln_status take_all(const struct ki_copy *copy, const kiln_matrix *A) {
    struct ki_copy_window *w = copy->window;
    const int64_t nnz = kiln_matrix_nnz(A);
    w->end = copy->rows;
    const kiln_status status =
        copy->row_start ? kiln_matrix_get_csr(NULL, w->col, w->x, A) : kiln_matrix_get(w->x, A);
    if (status == KILN_OK) widen(w->x, kiln_matrix_type(A), nnz);
    return status;
}

/* Entries that a window has room for: those of the longest row at least. */
static int64_t room_of(const struct ki_copy *copy) {
    int64_t most = copy->row_start ? WINDOW_ENTRIES : ki_max(WINDOW_ENTRIES, copy->cols);
    for (int64_t i = 0; copy->row_start && i < copy->rows; i++)
        most = ki_max(most, copy->row_start[i + 1] - copy->row_start[i]);
    return most;
}

kiln_status ki_copy_take(struct ki_copy *copy, const kiln_matrix *A, bool whole) {
    const bool sparse = kiln_matrix_format(A) == KILN_CSR;
    kiln_status status = KILN_OK;
    copy->rows = kiln_matrix_rows(A);
    copy->cols = kiln_matrix_cols(A);
    struct ki_copy_window *w = copy->window = ki_calloc(sizeof *w);
    if (!w) return ki_fail_nomem(sizeof *w, "a copy of the matrix to verify");
    if (sparse && !(copy->row_start = ki_alloc((size_t)(copy->rows + 1) * sizeof *copy->row_start)))
        return ki_fail_nomem((size_t)(copy->rows + 1) * 8, "a copy of the matrix to verify");
    if (sparse) TRY(kiln_matrix_get_csr(copy->row_start, NULL, NULL, A));
    if (ki_lies_in_file(A) && !whole) copy->A = A;
    w->room = copy->A ? room_of(copy) : kiln_matrix_nnz(A);
    int64_t bytes;
    w->x = ki_mul(w->room, sizeof *w->x, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    w->col = sparse ? ki_alloc((size_t)w->room * sizeof *w->col) : NULL;
    if (!w->x || (sparse && !w->col))
        TRY(ki_fail_nomem((size_t)w->room * 8, "a copy of the matrix to verify"));
    if (!copy->A) TRY(take_all(copy, A));
done:
    return status;
}

kiln_status ki_copy_check(const struct ki_copy *copy) {
    if (!copy->A) return KILN_OK;
    return copy->window->status == KILN_OK ? ki_rows_unchanged(copy->A)
                                           : ki_error_renew(&copy->window->error);
}

void ki_copy_free(struct ki_copy *copy) {
    ki_free(copy->row_start);
    if (copy->window) ki_free(copy->window->col);
    if (copy->window) ki_free(copy->window->x);
    ki_free(copy->window);
    *copy = (struct ki_copy){0};
}
