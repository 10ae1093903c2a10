/* Columns whose numbers f32 cannot tell apart: 20260101 to 20260104 are one number there, as a whole number
 * above 2^24 is rounded to an even one, and 1 + 1e-9 is 1. No fit can tell such a column from a constant, and
 * none would say a word of it.
 *
 * A column of one number is found by a look that ends with the first row that differs. What the file has for
 * it follows from reading it again as f64, if that takes no time; else the warning says what may be. */
#include "io/collapsed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/seams.h"
#include "core/size.h"

static const int64_t AGAIN = 64 << 20; /* bytes of a file that is read again */
static const double EXACT = 1 << 24;   /* whole numbers up to there are f32's own */

struct one { /* a column in which all rows have one number */
    int64_t column;
    double value;
};

struct ones {
    struct one *columns;
    int64_t count;
};

static double value_at(const struct ki_table *table, kiln_type type, int64_t e) {
    return type == KILN_F32 ? ((const float *)table->values)[e] : ((const double *)table->values)[e];
}

/* Entry of column j in row i, from e on, which moves behind it; NaN: there is none. */
static double entry_of(const struct ki_table *table, kiln_type type, int64_t i, int64_t j, int64_t *e) {
    if (table->format == KILN_DENSE) return value_at(table, type, i * table->cols + j);
    while (*e < table->row_start[i + 1] && table->col[*e] < j) ++*e;
    return *e < table->row_start[i + 1] && table->col[*e] == j ? value_at(table, type, *e) : (double)NAN;
}

/* Leaves those of the columns that have their number in every row. */
static void keep_same(struct ones *ones, const struct ki_table *table, kiln_type type) {
    for (int64_t i = 0; i < table->rows && ones->count > 0; i++) {
        int64_t kept = 0, e = table->row_start ? table->row_start[i] : 0;
        for (int64_t c = 0; c < ones->count; c++) {
            const struct one one = ones->columns[c];
            if (entry_of(table, type, i, one.column, &e) == one.value) ones->columns[kept++] = one;
        }
        ones->count = kept;
    }
}

/* The columns of one number other than 0. */
static kiln_status find_ones(struct ones *ones, const struct ki_table *table, kiln_type type) {
    const int64_t first = table->format == KILN_CSR ? table->row_start[1] : table->cols;
    int64_t bytes;
    *ones = (struct ones){NULL, 0};
    if (!ki_mul(ki_max(first, 1), sizeof *ones->columns, &bytes)) return ki_fail_nomem(SIZE_MAX, "columns");
    ones->columns = ki_alloc((size_t)bytes);
    if (!ones->columns) return ki_fail_nomem((size_t)bytes, "columns");
    for (int64_t e = 0; e < first; e++) {
        const double value = value_at(table, type, e);
        const int64_t j = table->format == KILN_CSR ? table->col[e] : e;
        if (value != 0 && isfinite(value)) ones->columns[ones->count++] = (struct one){j, value};
    }
    keep_same(ones, table, type);
    return KILN_OK;
}

/* Whether what has been read is there once more, and soon read. */
static bool can_be_read(const char *path, int64_t bytes, const kiln_read_options *options) {
    struct stat info;
    if (!path || bytes > AGAIN || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    for (int64_t i = 0; i < options->more_count; i++)
        if (stat(options->more[i], &info) != 0 || !S_ISREG(info.st_mode)) return false;
    return true;
}

/* Leaves the columns that are more than one number in the file. */
static kiln_status read_again(struct ones *ones, const struct ki_table *table, kiln_file_format format,
                              const char *path, const kiln_read_options *options) {
    kiln_status status;
    kiln_read_options full = *options;
    struct ki_table again = {.rows = 0};
    struct ones same = {NULL, 0};
    int64_t bytes = 0, kept = 0;
    full.type = KILN_F64;
    TRY(ki_table_read(&again, &format, &bytes, path, &full));
    TRY(ki_take_named(&again, format, path, &full));
    if (again.rows != table->rows || again.cols != table->cols || again.format != table->format) {
        ones->count = 0; /* another file by now */
        goto done;
    }
    TRY(find_ones(&same, &again, KILN_F64));
    for (int64_t c = 0, s = 0; c < ones->count; c++) {
        while (s < same.count && same.columns[s].column < ones->columns[c].column) s++;
        const bool constant = s < same.count && same.columns[s].column == ones->columns[c].column;
        if (!constant) ones->columns[kept++] = ones->columns[c];
    }
    ones->count = kept;
done:
    ki_free(same.columns);
    ki_table_clear(&again);
    return status;
}

/* Leaves the columns whose number is not what f32 has for its neighbours, too. */
static void keep_inexact(struct ones *ones) {
    int64_t kept = 0;
    for (int64_t c = 0; c < ones->count; c++) {
        const double value = ones->columns[c].value;
        if (fabs(value) > EXACT || value != floor(value)) ones->columns[kept++] = ones->columns[c];
    }
    ones->count = kept;
}

static kiln_status warn(struct ki_table *table, const struct ones *ones, const char *path, bool known) {
    char name[128], more[64] = "";
    const int64_t j = ones->columns[0].column;
    const struct ki_place place = {.file = strcmp(path, "-") == 0 ? "standard input" : path, .offset = -1};
    if (table->feature_names)
        snprintf(name, sizeof name, "column '%.100s'", table->feature_names[j]);
    else
        snprintf(name, sizeof name, "column %lld", (long long)j + 1);
    if (ones->count > 1) snprintf(more, sizeof more, " (and %lld more columns)", (long long)ones->count - 1);
    return ki_warn(&table->warnings, &place, "--type f64 keeps them apart",
                   known ? "%s%s is %.10g in every row as f32 has it, which cannot tell its numbers apart"
                         : "%s%s is %.10g in every row as f32 has it: numbers that differ by less than its "
                           "digits show would look alike",
                   name, more, ones->columns[0].value);
}

kiln_status ki_collapsed_tell(struct ki_table *table, kiln_file_format format, int64_t bytes,
                              const char *path, const kiln_read_options *options) {
    kiln_status status;
    struct ones ones = {NULL, 0};
    const bool known = can_be_read(path, bytes, options);
    if (options->type != KILN_F32 || !table->values || table->rows < 2) return KILN_OK;
    TRY(find_ones(&ones, table, KILN_F32));
    if (ones.count == 0) goto done;
    if (known)
        TRY(read_again(&ones, table, format, path, options));
    else
        keep_inexact(&ones);
    if (ones.count > 0) TRY(warn(table, &ones, path ? path : "(table)", known));
done:
    ki_free(ones.columns);
    return status;
}
