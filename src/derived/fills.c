/* Numbers that are missing, in folds: x_ij = mean of column j over the rows that train, for those that the
 * fold holds out, too.
 *
 * The reader has filled them with means of all rows, and X knows which entries these are
 * (kiln_matrix.filled). A fold gets a copy of X in which they are filled anew, one fold at a time. In a
 * sparse X the zeros that are not stored count as numbers, as the reader has it. A column without any number
 * in the rows that train is filled with 0: its coefficient is 0 then, as if it were left out. */
#include "derived/fills.h"

#include "core/matrix.h"
#include "core/seams.h"

bool ki_is_filled(const kiln_matrix *X) {
    return X->filled_count > 0;
}

/* X on the host, its filled entries as they come. */
struct fills {
    const kiln_matrix *X;
    void *values;
    int64_t *row_start; /* NULL: dense */
    int32_t *col;
    double *sum;     /* of each column: over the rows that train, without what is filled; then the mean */
    int64_t *filled; /* how many entries of theirs are */
    int64_t next;    /* of X->filled */
};

static double value_at(const struct fills *f, int64_t e) {
    return f->X->type == KILN_F32 ? ((const float *)f->values)[e] : ((const double *)f->values)[e];
}

static void set_value(const struct fills *f, int64_t e, double value) {
    if (f->X->type == KILN_F32)
        ((float *)f->values)[e] = (float)value;
    else
        ((double *)f->values)[e] = value;
}

static int64_t column_of(const struct fills *f, int64_t e) {
    return f->row_start ? f->col[e] : e % f->X->cols;
}

static int64_t row_begin(const struct fills *f, int64_t row) {
    return f->row_start ? f->row_start[row] : row * f->X->cols;
}

static kiln_status open_fills(struct fills *f, const kiln_matrix *X) {
    kiln_status status;
    const size_t bytes = (size_t)(X->nnz * ki_type_bytes(X->type));
    *f = (struct fills){.X = X, .values = ki_alloc(bytes)};
    f->sum = ki_calloc((size_t)X->cols * sizeof *f->sum);
    f->filled = ki_calloc((size_t)X->cols * sizeof *f->filled);
    if (!f->values || !f->sum || !f->filled) return ki_fail_nomem(bytes, "what a fold trains on");
    if (X->format == KILN_DENSE) return kiln_matrix_get(f->values, X);
    f->row_start = ki_alloc((size_t)(X->rows + 1) * sizeof *f->row_start);
    f->col = ki_alloc((size_t)X->nnz * sizeof *f->col);
    if (!f->row_start || !f->col) TRY(ki_fail_nomem(bytes, "what a fold trains on"));
    TRY(kiln_matrix_get_csr(f->row_start, f->col, f->values, X));
done:
    return status;
}

static void close_fills(struct fills *f) {
    ki_free(f->values);
    ki_free(f->row_start);
    ki_free(f->col);
    ki_free(f->sum);
    ki_free(f->filled);
}

static void add_row(struct fills *f, int64_t row, bool trains) {
    const kiln_matrix *X = f->X;
    const int64_t begin = row_begin(f, row), end = row_begin(f, row + 1);
    int64_t e = begin;
    while (e < end) {
        const bool missing = f->next < X->filled_count && X->filled[f->next] < end;
        const int64_t stop = missing ? X->filled[f->next] : end;
        for (; trains && e < stop; e++) f->sum[column_of(f, e)] += value_at(f, e);
        if (missing) f->filled[column_of(f, stop)] += trains;
        f->next += missing;
        e = stop + missing;
    }
}

kiln_status ki_refill(kiln_matrix **refilled, const kiln_matrix *X, const int32_t *fold, int64_t held) {
    kiln_status status;
    struct fills f;
    int64_t rows = 0;
    TRY(open_fills(&f, X));
    for (int64_t i = 0; i < X->rows; i++) {
        const bool trains = fold[i] != held;
        rows += trains;
        add_row(&f, i, trains);
    }
    for (int64_t j = 0; j < X->cols; j++) {
        const int64_t numbers = rows - f.filled[j];
        f.sum[j] = numbers > 0 ? f.sum[j] / (double)numbers : 0;
    }
    for (int64_t i = 0; i < X->filled_count; i++)
        set_value(&f, X->filled[i], f.sum[column_of(&f, X->filled[i])]);
    if (f.row_start)
        TRY(kiln_matrix_like(refilled, X, X->type, f.values));
    else
        TRY(ki_matrix_adopt_dense(refilled, X->device, X->type, X->rows, X->cols, f.values));
    if (!f.row_start) f.values = NULL;
done:
    close_fills(&f);
    return status;
}
