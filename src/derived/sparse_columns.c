/* Columns that stay. X lies by rows, so that a column costs a pass over all of it: what was copied once is
 * kept, and a step that wants no new columns reads nothing but those it wants. */
#include "derived/sparse_columns.h"

#include <string.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/status.h"
#include "core/threads.h"
#include "bodies/bodies.h"

enum {
    LINE = 64,  /* bytes of a cache line */
    ASKED = 64, /* entries of a column; the hardware asks for the rest */
    PART_COLUMNS = 32,
    PART_ROWS = 1 << 13,
    SUM_PARTS = 8,
    SUM_ENTRIES = 4 /* of a part for each row that its sum is added to the others' */
};

/* Room for all columns: memory is taken only where it is written to. */
kiln_status ki_sparse_columns_open(struct ki_sparse_columns *columns, const struct ki_selector *selector) {
    const int64_t n = selector->X->cols, nnz = selector->X->nnz;
    const size_t room = (size_t)(nnz + ki_selection_spare(selector));
    struct ki_sparse_columns made = {.selector = selector, .bodies = ki_bodies(selector->X)};
    made.begin = ki_alloc((size_t)n * sizeof *made.begin);
    made.row = ki_alloc(room * sizeof *made.row);
    made.value = ki_alloc(room * sizeof *made.value);
    made.near_row = ki_alloc((size_t)nnz * sizeof *made.near_row);
    made.scaled = ki_alloc((size_t)nnz * sizeof *made.scaled);
    if (!made.begin || !made.row || !made.value || !made.near_row || !made.scaled) {
        ki_sparse_columns_close(&made);
        return ki_fail_nomem(room * 24, "columns");
    }
    for (int64_t j = 0; j < n; j++) made.begin[j] = -1;
    *columns = made;
    return KILN_OK;
}

void ki_sparse_columns_close(struct ki_sparse_columns *columns) {
    ki_free(columns->begin);
    ki_free(columns->row);
    ki_free(columns->value);
    ki_free(columns->near_row);
    ki_free(columns->scaled);
    *columns = (struct ki_sparse_columns){0};
}

/* Copies `count` columns that are not there yet. */
static kiln_status add(struct ki_sparse_columns *columns, const int32_t *missing, int64_t count) {
    kiln_status status;
    struct ki_selection selection = {0};
    const int64_t used = columns->used;
    TRY(ki_selection_open(&selection, columns->selector, missing, count));
    ki_selection_columns(columns->row + used, columns->value + used, &selection);
    for (int64_t i = 0; i < count; i++) columns->begin[missing[i]] = used + selection.start[i];
    columns->used += selection.start[count];
done:
    ki_selection_close(&selection);
    return status;
}

/* Those of the chosen columns that are not there yet; where these hold most of X, all that are not there, as
 * some more would be wanted soon. */
static int64_t find_missing(int32_t *missing, const struct ki_sparse_columns *columns, const int32_t *chosen,
                            int64_t count) {
    const struct ki_selector *selector = columns->selector;
    int64_t absent = 0, entries = 0;
    for (int64_t a = 0; a < count; a++) {
        if (columns->begin[chosen[a]] >= 0) continue;
        missing[absent++] = chosen[a];
        entries += ki_selector_entries(selector, chosen[a]);
    }
    if (entries < selector->X->nnz / 2) return absent;
    absent = 0;
    for (int64_t j = 0; j < selector->columns; j++)
        if (columns->begin[j] < 0) missing[absent++] = (int32_t)j;
    return absent;
}

kiln_status ki_sparse_columns_take(struct ki_sparse_column *taken, struct ki_sparse_columns *columns,
                                   const int32_t *chosen, int64_t count) {
    kiln_status status = KILN_OK;
    const size_t bytes = (size_t)columns->selector->columns * sizeof(int32_t);
    int64_t entries = 0;
    int32_t *missing = ki_alloc(bytes);
    if (!missing) return ki_fail_nomem(bytes, "columns");
    const int64_t absent = find_missing(missing, columns, chosen, count);
    if (absent > 0) TRY(add(columns, missing, absent));
    for (int64_t a = 0; a < count; entries += taken[a++].count)
        taken[a] = (struct ki_sparse_column){columns->begin[chosen[a]],
                                             ki_selector_entries(columns->selector, chosen[a]),
                                             columns->near_row + entries, columns->scaled + entries};
    /* If they are most of the entries, they are side by side as it is. */
    for (int64_t a = 0; a < count && entries > columns->used / 4 * 3; a++)
        taken[a].row = columns->row + taken[a].from;
done:
    ki_free(missing);
    return status;
}

struct scaling {
    const struct ki_sparse_columns *columns;
    const struct ki_sparse_column *taken;
    const double *q;
    double *square, *product;
};

static void scale_range(void *arg, int64_t begin, int64_t end) {
    const struct scaling *s = arg;
    for (int64_t a = begin; a < end; a++) {
        const struct ki_sparse_column *column = &s->taken[a];
        const int32_t *row = s->columns->row + column->from;
        if (column->row != row) memcpy(column->row, row, (size_t)column->count * sizeof *row);
        s->columns->bodies->column_scale(s->square + a, s->product + a, column,
                                         s->columns->value + column->from, s->q);
    }
}

void ki_sparse_columns_scale(const struct ki_sparse_columns *columns, const struct ki_sparse_column *taken,
                             int64_t count, const double *q, double *square, double *product) {
    struct scaling scaling = {columns, taken, q, square, product};
    ki_parallel_ranges(columns->selector->X->device->threads, count, PART_COLUMNS, scale_range, &scaling);
}

double ki_sparse_column_dot(const struct ki_sparse_columns *columns, const struct ki_sparse_column *column,
                            const double *r) {
    return columns->bodies->column_dot(column, r);
}

void ki_sparse_column_add(double *r, const struct ki_sparse_columns *columns,
                          const struct ki_sparse_column *column, double step) {
    columns->bodies->column_add(r, column, step);
}

void ki_sparse_column_ask(const struct ki_sparse_column *column) {
    const int64_t entries = ki_min(column->count, ASKED);
    for (int64_t e = 0; e < entries; e += LINE / 4) __builtin_prefetch(column->row + e);
    for (int64_t e = 0; e < entries; e += LINE / 8) __builtin_prefetch(column->scaled + e);
}

/* ---- products with many of them ---- */

struct products {
    const struct ki_sparse_columns *columns;
    const struct ki_sparse_column *taken;
    const int32_t *at;
    int64_t count, rows;
    int parts;
    const double *in;
    double *out;
};

static void dot_range(void *arg, int64_t begin, int64_t end) {
    const struct products *p = arg;
    for (int64_t i = begin; i < end; i++)
        p->out[i] = p->columns->bodies->column_dot(&p->taken[p->at[i]], p->in);
}

void ki_sparse_columns_dot(double *dot, const struct ki_sparse_columns *columns,
                           const struct ki_sparse_column *taken, const int32_t *at, int64_t count,
                           const double *r) {
    struct products products = {
        .columns = columns, .taken = taken, .at = at, .count = count, .in = r, .out = dot};
    ki_parallel_ranges(columns->selector->X->device->threads, count, PART_COLUMNS, dot_range, &products);
}

int ki_sparse_columns_parts(const struct ki_sparse_columns *columns, int64_t entries) {
    const int64_t wanted = entries / SUM_ENTRIES / ki_max(columns->selector->X->rows, 1);
    int parts = 1;
    while (parts < SUM_PARTS && parts * 2 <= wanted) parts *= 2;
    return parts;
}

/* Every so manieth column, as neighbours may all be long. */
static void sum_part(void *arg, int part) {
    const struct products *p = arg;
    double *sum = p->out + part * p->rows;
    memset(sum, 0, (size_t)p->rows * sizeof *sum);
    for (int64_t i = part; i < p->count; i += p->parts)
        p->columns->bodies->column_add(sum, &p->taken[p->at[i]], p->in[i]);
}

static void join_range(void *arg, int64_t begin, int64_t end) {
    const struct products *p = arg;
    for (int part = 1; part < p->parts; part++) {
        const double *other = p->out + part * p->rows;
        for (int64_t i = begin; i < end; i++) p->out[i] += other[i];
    }
}

void ki_sparse_columns_sum(double *sum, int parts, const struct ki_sparse_columns *columns,
                           const struct ki_sparse_column *taken, const int32_t *at, int64_t count,
                           const double *x) {
    const int threads = columns->selector->X->device->threads;
    struct products products = {columns, taken, at, count, columns->selector->X->rows, parts, x, sum};
    ki_parallel(threads, parts, sum_part, &products);
    ki_parallel_ranges(threads, products.rows, PART_ROWS, join_range, &products);
}
