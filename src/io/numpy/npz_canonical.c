/* The one form of a sparse matrix: columns ascend in each row, and entries of one place are summed, as SciPy
 * does. */
#include "core/threads.h"
#include "io/bytes.h"
#include "io/numpy/npz.h"
#include "io/text.h"

enum { WORTH_A_PART = 1 << 14 };

static void set_value(struct ki_table *table, kiln_type type, int64_t i, double value) {
    if (type == KILN_F32)
        ((float *)table->values)[i] = (float)value;
    else
        ((double *)table->values)[i] = value;
}

/* Sorts a row whose columns do not ascend; false if there is no memory. */
static bool sort_row(struct ki_table *table, kiln_type type, int64_t row, struct ki_bytes *wide,
                     struct ki_bytes *scratch) {
    int64_t begin = table->row_start[row], count = table->row_start[row + 1] - begin, i = 1;
    while (i < count && table->col[begin + i - 1] <= table->col[begin + i]) i++;
    if (i >= count) return true;
    if (!ki_bytes_room(wide, count * (int64_t)sizeof(double))) return false;
    double *values = (double *)(void *)wide->data;
    for (i = 0; i < count; i++) values[i] = ki_element(table->values, type, begin + i);
    if (!ki_sort_row(table->col + begin, values, count, scratch)) return false;
    for (i = 0; i < count; i++) set_value(table, type, begin + i, values[i]);
    return true;
}

struct sorting {
    struct ki_table *table;
    kiln_type type;
    atomic_bool failed;
    _Atomic int64_t twice; /* the first row with two entries in one column */
};

static void sort_range(void *of, int64_t begin, int64_t end) {
    struct sorting *s = of;
    const int64_t *row_start = s->table->row_start;
    const int32_t *col = s->table->col;
    struct ki_bytes wide = {0}, scratch = {0};
    for (int64_t row = begin; row < end; row++) {
        if (!sort_row(s->table, s->type, row, &wide, &scratch)) s->failed = true;
        for (int64_t i = row_start[row] + 1; i < row_start[row + 1]; i++)
            if (col[i - 1] == col[i]) ki_lower(&s->twice, row);
    }
    ki_bytes_free(&wide);
    ki_bytes_free(&scratch);
}

/* Sorts all rows; *twice is the first row with two entries in one column, or rows. */
static kiln_status sort_rows(struct ki_table *table, const kiln_read_options *options, int64_t *twice) {
    struct sorting s = {.table = table, .type = options->type, .twice = table->rows};
    int64_t row_length = 1 + table->nnz / ki_max(table->rows, 1);
    ki_parallel_ranges(options->threads, table->rows, 1 + WORTH_A_PART / row_length, sort_range, &s);
    *twice = s.twice;
    return s.failed ? ki_fail_nomem((size_t)table->nnz, "sorting a row") : KILN_OK;
}

/* Adds up entries of one place, from row `row` on; the arrays close up. */
static void merge(struct ki_table *table, kiln_type type, int64_t row) {
    int64_t to = table->row_start[row], from = to;
    for (; row < table->rows; row++) {
        int64_t begin = to;
        for (; from < table->row_start[row + 1]; from++) {
            double value = ki_element(table->values, type, from);
            if (to > begin && table->col[to - 1] == table->col[from]) {
                set_value(table, type, to - 1, ki_element(table->values, type, to - 1) + value);
                continue;
            }
            table->col[to] = table->col[from];
            set_value(table, type, to++, value);
        }
        table->row_start[row + 1] = to;
    }
    table->nnz = to;
}

static int64_t row_of(const struct ki_table *table, int64_t entry) {
    return ki_row_at(table->row_start + 1, table->rows - 1, entry + 1, 0);
}

kiln_status ki_npz_canonical(struct ki_table *table, bool finite, const struct ki_npz *s) {
    const kiln_read_options *options = s->options;
    struct ki_place place = {s->file, 0, 0, -1};
    int64_t twice;
    kiln_status status = sort_rows(table, options, &twice);
    if (status != KILN_OK) return status;
    if (twice < table->rows && options->strict) {
        ki_fail_at(KILN_ERR_PARSE, &place, "row %lld (counted from 1) has two entries in one column",
                   (long long)twice + 1);
        return ki_hint("without --strict they are summed; in SciPy: A.sum_duplicates()");
    }
    if (twice < table->rows) merge(table, options->type, twice);
    if (options->allow_nonfinite || (finite && twice == table->rows)) return KILN_OK;
    int64_t bad = ki_first_nonfinite(table->values, options->type, table->nnz);
    if (bad == table->nnz) return KILN_OK;
    ki_fail_at(KILN_ERR_PARSE, &place,
               "value %g at row %lld, column %lld (counted from 1) is not a finite %s",
               ki_element(table->values, options->type, bad), (long long)row_of(table, bad) + 1,
               (long long)table->col[bad] + 1, options->type == KILN_F32 ? "f32" : "f64");
    return ki_hint("repair or remove the row; --allow-nonfinite accepts such values");
}
