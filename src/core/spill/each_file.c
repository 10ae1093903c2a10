/* Rows that lie in a file: `each` sees them in slices, which read from the file what is asked of them, and
 * what is made of the slices goes on to temporary files. So memory holds a slice, whatever X's size. */
#include <string.h>

#include "core/each.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/spill/spill.h"

enum {
    SLICE_SHARE = 64,
    SLICE_LEAST = 1 << 12,
    SLICE_MOST = 1 << 21
}; /* entries of a slice, and of the room */

struct slices {
    const kiln_matrix *X;
    struct ki_file file; /* X's, whose arrays begin at the slice's entries */
    int64_t *start;
    kiln_matrix view;
};

static const int64_t *starts_of(const kiln_matrix *X) {
    return ki_matrix_host(X, KI_ROW_START);
}

static int64_t start_of(const kiln_matrix *X, int64_t row) {
    return X->format == KILN_DENSE ? row * X->cols : starts_of(X)[row];
}

/* Rows from `first` on, at most `entries` of them and with as many entries, but one at least. */
static int64_t rows_of(const kiln_matrix *X, int64_t first, int64_t entries) {
    const int64_t *start = starts_of(X);
    int64_t end = first + 1;
    if (X->format == KILN_DENSE) return ki_min(ki_max(entries / ki_max(X->cols, 1), 1), X->rows - first);
    while (end < ki_min(X->rows, first + entries) && start[end + 1] - start[first] <= entries) end++;
    return end - first;
}

static int64_t entries_of_slice(const kiln_matrix *X) {
    const int64_t share = ki_memory_room(X->device) / SLICE_SHARE / ki_type_bytes(X->type);
    return ki_min(ki_max(share, SLICE_LEAST), SLICE_MOST);
}

static void cut(struct slices *s, int64_t first, int64_t rows) {
    const kiln_matrix *X = s->X;
    const bool dense = X->format == KILN_DENSE;
    const int64_t begin = start_of(X, first);
    s->file = *X->file;
    s->file.at[KI_VALUES] += begin * ki_file_value_bytes(X->file, X->type);
    s->file.at[KI_COL] += begin * (int64_t)sizeof(int32_t);
    for (int64_t i = 0; !dense && i <= rows; i++) s->start[i] = start_of(X, first + i) - begin;
    s->view = (kiln_matrix){.device = X->device,
                            .type = X->type,
                            .format = X->format,
                            .rows = rows,
                            .cols = X->cols,
                            .nnz = start_of(X, first + rows) - begin,
                            .host = {NULL, dense ? NULL : s->start, NULL},
                            .file = &s->file,
                            .streams = X->streams,
                            .view = true};
}

/* The matrix made of a slice goes to the file of all, and is freed. */
static kiln_status keep(struct ki_spill *spill, kiln_matrix *made) {
    const bool sparse = made->format == KILN_CSR;
    const int64_t element = ki_type_bytes(made->type);
    int64_t *start = sparse ? ki_alloc((size_t)(made->rows + 1) * sizeof *start) : NULL;
    int32_t *col = sparse ? ki_alloc((size_t)made->nnz * sizeof *col) : NULL;
    void *values = ki_alloc((size_t)(made->nnz * element));
    kiln_status status;
    if (!values || (sparse && (!start || !col)))
        TRY(ki_fail_nomem((size_t)(made->nnz * (element + 4)), "rows on their way to a file"));
    TRY(sparse ? kiln_matrix_get_csr(start, col, values, made) : kiln_matrix_get(values, made));
    TRY(ki_spill_rows(spill, made->rows, start, col, values));
done:
    ki_free(start);
    ki_free(col);
    ki_free(values);
    return status;
}

static kiln_status run_slice(struct slices *s, struct ki_spill *spills, const struct ki_each *each,
                             int64_t first, double *sums) {
    kiln_matrix *made[KI_EACH_MADE] = {NULL};
    kiln_status status = each->run(each, &s->view, first, start_of(s->X, first), made, sums);
    for (int i = 0; i < each->made; i++) {
        if (status == KILN_OK) status = keep(&spills[i], made[i]);
        kiln_matrix_free(made[i]);
    }
    return status;
}

kiln_status ki_each_in_file(kiln_matrix **made, double *sums, const struct ki_each *each,
                            const kiln_matrix *X) {
    const int64_t entries = entries_of_slice(X);
    struct slices s = {.X = X};
    struct ki_spill spills[KI_EACH_MADE] = {{0}};
    kiln_matrix *all[KI_EACH_MADE] = {NULL};
    double added[KI_EACH_SUMS] = {0};
    kiln_status status = KILN_OK;
    if (!(s.start = ki_alloc((size_t)(entries + 1) * sizeof *s.start)))
        TRY(ki_fail_nomem((size_t)(entries + 1) * sizeof *s.start, "slices of a matrix"));
    const kiln_type type = each->type == KILN_TYPE_DEFAULT ? X->type : each->type;
    for (int i = 0; i < each->made; i++)
        TRY(ki_spill_begin(&spills[i], type, X->rows, X->cols, X->nnz, X->format));
    for (int64_t first = 0; first < X->rows; first += s.view.rows) {
        cut(&s, first, rows_of(X, first, entries));
        TRY(run_slice(&s, spills, each, first, added));
    }
    TRY(ki_file_check(X->file));
    for (int i = 0; i < each->made; i++) TRY(ki_spill_end(&all[i], &spills[i], X->device));
    if (each->made) memcpy(made, all, (size_t)each->made * sizeof *made);
    if (each->sums) memcpy(sums, added, (size_t)each->sums * sizeof *sums);
done:
    for (int i = 0; i < each->made; i++) {
        ki_spill_free(&spills[i]);
        if (status != KILN_OK) kiln_matrix_free(all[i]);
    }
    ki_free(s.start);
    return status;
}

/* ----------------------------------------------------------------------------------------- transposed */

/* Columns of X are sorted band by band, each of which reads all of X. On the CPU the budget is the whole
 * process's, so that a band takes a quarter of what matrices leave. */
enum { BAND_SHARE = 4, READ_ENTRIES = 1 << 18 };
#define BAND_MOST ((int64_t)4 << 30) /* of host memory beside another device, which its budget is not about */

struct band {
    const kiln_matrix *X;
    int64_t first, end; /* columns */
    int64_t *next;      /* where a column's next entry goes, X->cols of them */
    int64_t room;       /* entries that the band has room for */
    int32_t *row, *col; /* the band's; a piece of X's */
    void *values, *piece;
};

/* The file may be written meanwhile. */
static kiln_status changed(const kiln_matrix *X) {
    const kiln_status status = ki_file_check(X->file);
    return status == KILN_OK ? ki_fail(KILN_ERR_DATA, "a file's entries changed while they were read")
                             : status;
}

static kiln_status read_piece(const struct band *b, int64_t begin, int64_t count, bool values) {
    kiln_status status;
    TRY(ki_matrix_read(b->col, b->X, KI_COL, begin, count));
    for (int64_t e = 0; e < count; e++)
        if (b->col[e] < 0 || b->col[e] >= b->X->cols) TRY(changed(b->X));
    if (values) TRY(ki_matrix_read(b->piece, b->X, KI_VALUES, begin, count));
done:
    return status;
}

/* start[j + 1]: entries of column j, and then where column j ends. */
static kiln_status count_columns(int64_t *start, const struct band *b) {
    const kiln_matrix *X = b->X;
    kiln_status status = KILN_OK;
    for (int64_t begin = 0; begin < X->nnz; begin += READ_ENTRIES) {
        const int64_t count = ki_min(X->nnz - begin, READ_ENTRIES);
        TRY(read_piece(b, begin, count, false));
        for (int64_t e = 0; e < count; e++) start[b->col[e] + 1]++;
    }
    for (int64_t j = 0; j < X->cols; j++) start[j + 1] += start[j];
done:
    return status;
}

static kiln_status put_piece(struct band *b, int64_t begin, int64_t count, int64_t *row) {
    const int64_t *start = starts_of(b->X);
    const bool narrow = b->X->type == KILN_F32;
    const uint32_t width = (uint32_t)(b->end - b->first);
    for (int64_t e = 0; e < count; e++) {
        while (start[*row + 1] <= begin + e) ++*row;
        if ((uint32_t)b->col[e] - (uint32_t)b->first >= width) continue;
        const int64_t at = b->next[b->col[e]]++;
        if (at >= b->room) return changed(b->X);
        b->row[at] = (int32_t)*row;
        if (narrow)
            ((float *)b->values)[at] = ((const float *)b->piece)[e];
        else
            ((double *)b->values)[at] = ((const double *)b->piece)[e];
    }
    return KILN_OK;
}

/* Columns [first, end) of X, which become rows of the file. */
static kiln_status sort_band(struct band *b, struct ki_spill *spill, const int64_t *start) {
    const kiln_matrix *X = b->X;
    int64_t row = 0;
    kiln_status status = KILN_OK;
    for (int64_t j = b->first; j < b->end; j++) b->next[j] = start[j] - start[b->first];
    for (int64_t begin = 0; begin < X->nnz; begin += READ_ENTRIES) {
        const int64_t count = ki_min(X->nnz - begin, READ_ENTRIES);
        TRY(read_piece(b, begin, count, true));
        TRY(put_piece(b, begin, count, &row));
    }
    TRY(ki_spill_rows(spill, b->end - b->first, start + b->first, b->row, b->values));
done:
    return status;
}

static int64_t band_entries(const kiln_matrix *X, const int64_t *start) {
    const int64_t each = ki_type_bytes(X->type) + (int64_t)sizeof(int32_t),
                  bytes = ki_on_cpu(X->device) ? ki_memory_room(X->device) / BAND_SHARE : BAND_MOST;
    int64_t most = ki_min(bytes / each, X->nnz);
    for (int64_t j = 0; j < X->cols; j++) most = ki_max(most, start[j + 1] - start[j]);
    return most;
}

static kiln_status sort_bands(struct band *b, struct ki_spill *spill, const int64_t *start) {
    const int64_t most = band_entries(b->X, start);
    kiln_status status = KILN_OK;
    b->room = most;
    b->row = ki_alloc((size_t)most * sizeof *b->row);
    b->values = ki_alloc((size_t)(most * ki_type_bytes(b->X->type)));
    if (!b->row || !b->values)
        TRY(ki_fail_nomem((size_t)(most * (4 + ki_type_bytes(b->X->type))), "columns of a matrix"));
    for (; b->first < b->X->cols; b->first = b->end) {
        b->end = b->first + 1;
        while (b->end < b->X->cols && start[b->end + 1] - start[b->first] <= most) b->end++;
        TRY(sort_band(b, spill, start));
    }
done:
    return status;
}

kiln_status ki_transposed_in_file(kiln_matrix **T, const kiln_matrix *X) {
    struct band b = {.X = X};
    struct ki_spill spill = {0};
    int64_t *start = ki_calloc((size_t)(X->cols + 1) * sizeof *start);
    kiln_status status = KILN_OK;
    b.next = ki_alloc((size_t)X->cols * sizeof *b.next);
    b.col = ki_alloc((size_t)READ_ENTRIES * sizeof *b.col);
    b.piece = ki_alloc((size_t)READ_ENTRIES * sizeof(double));
    if (!start || !b.next || !b.col || !b.piece)
        TRY(ki_fail_nomem((size_t)X->cols * 16 + READ_ENTRIES * 12, "columns of a matrix"));
    TRY(ki_spill_begin(&spill, X->type, X->cols, X->rows, X->nnz, KILN_CSR));
    TRY(count_columns(start, &b));
    TRY(sort_bands(&b, &spill, start));
    TRY(ki_file_check(X->file));
    TRY(ki_spill_end(T, &spill, X->device));
done:
    ki_spill_free(&spill);
    ki_free(start);
    ki_free(b.next);
    ki_free(b.col);
    ki_free(b.row);
    ki_free(b.piece);
    ki_free(b.values);
    return status;
}
