/* Columns of a sparse matrix, copied part of the rows by part to where counts say. Which entries are wanted
 * cannot be foreseen by a processor, so that there are no branches: an entry that is not wanted goes where
 * the next one will overwrite it. */
#include "derived/select.h"

#include <string.h>

#include "core/codes/codes.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"

enum { PART_ENTRIES = 1 << 15, PARTS = 64, UNWANTED = 8 };
enum { SPARE = 16 }; /* entries between where unwanted ones go: lines of their own */

bool ki_selectable(const kiln_matrix *X) {
    return ki_on_cpu(X->device) && !ki_device_shares(X->device) && !X->streams && X->rows <= INT32_MAX;
}

/* ---- counts ---- */

static void count_part(void *arg, int part) {
    const struct ki_selector *selector = arg;
    const kiln_matrix *X = selector->X;
    const int64_t *row_start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    int32_t *entries = selector->entries + part * X->cols;
    const int64_t end = row_start[ki_part_begin(X->rows, part + 1, selector->parts)];
    memset(entries, 0, (size_t)X->cols * sizeof *entries);
    for (int64_t e = row_start[ki_part_begin(X->rows, part, selector->parts)]; e < end; e++)
        entries[col[e]]++;
}

kiln_status ki_selector_open(struct ki_selector *selector, const kiln_matrix *X) {
    int64_t bytes;
    const kiln_status expanded = ki_matrix_expand(X);
    if (expanded != KILN_OK) return expanded;
    const int64_t parts = ki_min(X->nnz / PART_ENTRIES, X->nnz / ki_max(X->cols, 1));
    struct ki_selector made = {.X = X, .columns = X->cols};
    made.parts = (int)ki_max(ki_min(ki_min(parts, X->device->threads), PARTS), 1);
    made.entries = ki_mul3(made.parts + 1, X->cols, 4, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    if (!made.entries) return ki_fail_nomem((size_t)X->cols * 4, "counts of entries");
    made.place = made.entries + made.parts * X->cols;
    ki_parallel(X->device->threads, made.parts, count_part, &made);
    *selector = made;
    return KILN_OK;
}

void ki_selector_close(struct ki_selector *selector) {
    ki_free(selector->entries);
    selector->entries = NULL;
}

/* Returns what a part has of `next`: so much that threads do not write to the same lines of memory. */
static int64_t width_of(int64_t count) {
    enum { LINE = 8 };
    return ((count + UNWANTED) / LINE + 2) * LINE;
}

int64_t ki_selection_spare(const struct ki_selector *selector) {
    return (selector->parts + 1) * UNWANTED * SPARE;
}

kiln_status ki_selection_open(struct ki_selection *selection, const struct ki_selector *selector,
                              const int32_t *chosen, int64_t count) {
    int64_t total = 0, bytes = 0;
    struct ki_selection made = {.of = selector, .count = count};
    const int64_t width = width_of(count);
    made.start = ki_alloc((size_t)(count + 1) * 8);
    made.next = ki_mul3(selector->parts, width, 8, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    if (!made.start || !made.next) {
        ki_selection_close(&made);
        return ki_fail_nomem((size_t)bytes, "a selection of columns");
    }
    for (int64_t j = 0; j < selector->columns; j++) selector->place[j] = (int32_t)(count + j % UNWANTED);
    for (int64_t j = 0; j < count; j++) {
        selector->place[chosen[j]] = (int32_t)j;
        made.start[j] = total;
        for (int part = 0; part < selector->parts; part++) {
            made.next[part * width + j] = total;
            total += selector->entries[part * selector->X->cols + chosen[j]];
        }
    }
    made.start[count] = total;
    for (int part = 0; part < selector->parts; part++)
        for (int slot = 0; slot < UNWANTED; slot++)
            made.next[part * width + count + slot] = total + ((part + 1) * UNWANTED + slot) * SPARE;
    *selection = made;
    return KILN_OK;
}

void ki_selection_close(struct ki_selection *selection) {
    ki_free(selection->start);
    ki_free(selection->next);
    *selection = (struct ki_selection){0};
}

/* ---- by columns ---- */

struct columns {
    struct ki_selection *from;
    int32_t *row;
    double *value;
};

static void columns_part(void *arg, int part) {
    const struct columns *columns = arg;
    const struct ki_selection *from = columns->from;
    const kiln_matrix *X = from->of->X;
    const int64_t *row_start = ki_host(&X->row_start), count = from->count;
    const int32_t *col = ki_host(&X->col), *place = from->of->place;
    const bool wide = X->type == KILN_F64;
    const double *values = wide ? ki_host(&X->values) : NULL;
    const float *narrow = wide ? NULL : ki_host(&X->values);
    int64_t *next = from->next + part * width_of(count);
    int32_t *row = columns->row;
    double *value = columns->value;
    const int64_t end = ki_part_begin(X->rows, part + 1, from->of->parts);
    for (int64_t i = ki_part_begin(X->rows, part, from->of->parts); i < end; i++) {
        for (int64_t e = row_start[i]; e < row_start[i + 1]; e++) {
            const int32_t at = place[col[e]];
            const int64_t to = next[at];
            next[at] = to + (at < count);
            row[to] = (int32_t)i;
            value[to] = wide ? values[e] : (double)narrow[e];
        }
    }
}

void ki_selection_columns(int32_t *row, double *value, struct ki_selection *selection) {
    struct columns columns = {selection, row, value};
    ki_parallel(selection->of->X->device->threads, selection->of->parts, columns_part, &columns);
}

/* ---- by rows ---- */

struct rows {
    const struct ki_selection *from;
    int64_t before[PARTS]; /* entries of the parts before */
    int64_t *row_start;
    int32_t *col;
    void *values;
};

static void rows_part(void *arg, int part) {
    const struct rows *rows = arg;
    const struct ki_selection *from = rows->from;
    const kiln_matrix *X = from->of->X;
    const int64_t *row_start = ki_host(&X->row_start), count = from->count;
    const int32_t *col = ki_host(&X->col), *place = from->of->place;
    const void *values = ki_host(&X->values);
    const int64_t end = ki_part_begin(X->rows, part + 1, from->of->parts);
    int64_t to = rows->before[part];
    for (int64_t i = ki_part_begin(X->rows, part, from->of->parts); i < end; i++) {
        rows->row_start[i] = to;
        for (int64_t e = row_start[i]; e < row_start[i + 1]; e++) {
            const int32_t at = place[col[e]];
            if (at >= count) continue;
            rows->col[to] = at;
            if (X->type == KILN_F64)
                ((double *)rows->values)[to] = ((const double *)values)[e];
            else
                ((float *)rows->values)[to] = ((const float *)values)[e];
            to++;
        }
    }
}

/* Finds how many entries the parts have before each: in a column, a part's end where the next one begins. */
static void sum_parts(int64_t *before, const struct ki_selection *selection) {
    int64_t total = 0;
    const int parts = selection->of->parts;
    for (int part = 0; part < parts; part++) {
        const int64_t width = width_of(selection->count), *first = selection->next + part * width;
        const int64_t *end = part + 1 < parts ? first + width : selection->start + 1;
        before[part] = total;
        for (int64_t j = 0; j < selection->count; j++) total += end[j] - first[j];
    }
}

kiln_status ki_selection_matrix(kiln_matrix **A, const struct ki_selection *selection) {
    kiln_status status;
    const kiln_matrix *X = selection->of->X;
    const int64_t nnz = selection->start[selection->count];
    struct rows rows = {.from = selection};
    rows.row_start = ki_alloc((size_t)(X->rows + 1) * 8);
    rows.col = ki_alloc((size_t)nnz * 4);
    rows.values = ki_alloc((size_t)(nnz * ki_type_bytes(X->type)));
    if (!rows.row_start || !rows.col || !rows.values)
        TRY(ki_fail_nomem((size_t)nnz * 12, "a selection of columns"));
    sum_parts(rows.before, selection);
    rows.row_start[X->rows] = nnz;
    ki_parallel(X->device->threads, selection->of->parts, rows_part, &rows);
    TRY(ki_matrix_adopt_csr(A, X->device, X->type, X->rows, selection->count, nnz, rows.row_start, rows.col,
                            rows.values));
    return KILN_OK;
done:
    ki_free(rows.row_start);
    ki_free(rows.col);
    ki_free(rows.values);
    return status;
}
