/* Columns whose numbers f32 cannot tell apart: 20260101 to 20260104 are one number there, as a whole number
 * above 2^24 is rounded to an even one, 1 + 1e-9 is 1, and of the seconds of half an hour f32 has 14. A fit
 * takes such a column for a constant, or for steps, and none would say a word of it.
 *
 * Columns whose numbers are next to one another in f32, some 16 of its units apart at most, are found by a
 * look that ends with the first row that lies farther off. What the file has for them follows from reading it
 * again as f64, if that takes no time; else the warning says what may be. */
#include "io/collapsed.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/seams.h"
#include "core/size.h"

static const int64_t AGAIN = 64 << 20; /* bytes of a file that is read again */
static const double EXACT = 1 << 24;   /* whole numbers up to there are f32's own */

enum { APART = 16, NUMBERS = 2 * APART + 1 }; /* units about the first row's number */

struct one {               /* a column in which all rows have next to one number, the first row's */
    int64_t column, count; /* how many f32 has for those of the file, once that is known */
    double value, least, most;
};

struct ones {
    struct one *columns;
    int64_t count;
};

/* Entry of column j in row i, from e on, which moves behind it; NaN: there is none. */
static double entry_of(const struct ki_table *table, kiln_type type, int64_t i, int64_t j, int64_t *e) {
    if (table->format == KILN_DENSE) return ki_element(table->values, type, i * table->cols + j);
    while (*e < table->row_start[i + 1] && table->col[*e] < j) ++*e;
    return *e < table->row_start[i + 1] && table->col[*e] == j ? ki_element(table->values, type, *e)
                                                               : (double)NAN;
}

/* Leaves those of the columns that stay next to their number. */
static void keep_near(struct ones *ones, const struct ki_table *table) {
    for (int64_t i = 0; i < table->rows && ones->count > 0; i++) {
        int64_t kept = 0, e = table->row_start ? table->row_start[i] : 0;
        for (int64_t c = 0; c < ones->count; c++) {
            struct one one = ones->columns[c];
            const double value = entry_of(table, KILN_F32, i, one.column, &e);
            if (!(fabs(value - one.value) <= APART * (double)FLT_EPSILON * fabs(one.value))) continue;
            one.least = fmin(one.least, value);
            one.most = fmax(one.most, value);
            ones->columns[kept++] = one;
        }
        ones->count = kept;
    }
}

/* The columns of next to one number other than 0. */
static kiln_status find_ones(struct ones *ones, const struct ki_table *table) {
    const int64_t first = table->format == KILN_CSR ? table->row_start[1] : table->cols;
    int64_t bytes;
    *ones = (struct ones){NULL, 0};
    if (!ki_mul(ki_max(first, 1), sizeof *ones->columns, &bytes)) return ki_fail_nomem(SIZE_MAX, "columns");
    ones->columns = ki_alloc((size_t)bytes);
    if (!ones->columns) return ki_fail_nomem((size_t)bytes, "columns");
    for (int64_t e = 0; e < first; e++) {
        const double value = ki_element(table->values, KILN_F32, e);
        const int64_t j = table->format == KILN_CSR ? table->col[e] : e;
        if (value != 0 && isfinite(value))
            ones->columns[ones->count++] = (struct one){j, 0, value, value, value};
    }
    keep_near(ones, table);
    return KILN_OK;
}

/* Returns whether what has been read is there once more, and soon read. */
static bool can_be_read(const char *path, int64_t bytes, const kiln_read_options *options) {
    struct stat info;
    if (!path || bytes > AGAIN || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    for (int64_t i = 0; i < options->more_count; i++)
        if (stat(options->more[i], &info) != 0 || !S_ISREG(info.st_mode)) return false;
    return true;
}

/* Whether two numbers of the column are one in f32; one->count: what is left of all of them, no more than the
 * units between its ends, some of which may be half as large. */
static bool loses_some(struct one *one, const struct ki_table *again) {
    double kept[2 * NUMBERS];
    bool lost = false;
    one->count = 0;
    for (int64_t i = 0; i < again->rows; i++) {
        int64_t e = again->row_start ? again->row_start[i] : 0, c = 0;
        const double value = entry_of(again, KILN_F64, i, one->column, &e);
        while (c < one->count && (float)kept[c] != (float)value) c++;
        if (c == 2 * NUMBERS) return false; /* another file by now */
        if (c == one->count) kept[one->count++] = value;
        lost = lost || kept[c] != value;
    }
    return lost;
}

/* Leaves the columns that are more numbers in the file. */
static kiln_status read_again(struct ones *ones, const struct ki_table *table, kiln_file_format format,
                              const char *path, const kiln_read_options *options) {
    kiln_status status;
    kiln_read_options full = *options;
    struct ki_table again = {.rows = 0};
    int64_t bytes = 0, kept = 0;
    full.type = KILN_F64;
    TRY(ki_table_read(&again, &format, &bytes, path, &full));
    TRY(ki_take_named(&again, format, path, &full));
    if (again.rows != table->rows || again.cols != table->cols || again.format != table->format) {
        ones->count = 0; /* another file by now */
        goto done;
    }
    for (int64_t c = 0; c < ones->count; c++)
        if (loses_some(&ones->columns[c], &again)) ones->columns[kept++] = ones->columns[c];
    ones->count = kept;
done:
    ki_table_clear(&again);
    return status;
}

/* Leaves the columns whose numbers are not what f32 has for their neighbours, too. */
static void keep_inexact(struct ones *ones) {
    int64_t kept = 0;
    for (int64_t c = 0; c < ones->count; c++) {
        const double value = ones->columns[c].value;
        if (fabs(value) > EXACT || value != floor(value)) ones->columns[kept++] = ones->columns[c];
    }
    ones->count = kept;
}

/* "is 5 in every row as f32 has it, which cannot ...", "keeps 2 different numbers, from 5 to 6, as ...". */
static void describe(char *text, size_t size, const struct one *one, bool known) {
    char what[160];
    if (one->least == one->most)
        snprintf(what, sizeof what, "is %.10g in every row", one->value);
    else if (known)
        snprintf(what, sizeof what, "keeps %lld different numbers, from %.10g to %.10g,",
                 (long long)one->count, one->least, one->most);
    else
        snprintf(what, sizeof what, "lies between %.10g and %.10g", one->least, one->most);
    snprintf(text, size, "%s as f32 has it%s", what,
             !known                    ? ": numbers that differ by less than its digits show would look alike"
             : one->least == one->most ? ", which cannot tell its numbers apart"
                                       : ", which cannot tell the others apart");
}

static kiln_status warn(struct ki_table *table, const struct ones *ones, const char *path, bool known) {
    char name[128], more[64] = "", text[320];
    const int64_t j = ones->columns[0].column;
    const struct ki_place place = {.file = strcmp(path, "-") == 0 ? "standard input" : path, .offset = -1};
    if (table->feature_names)
        snprintf(name, sizeof name, "column '%.100s'", table->feature_names[j]);
    else
        snprintf(name, sizeof name, "column %lld", (long long)j + 1);
    if (ones->count > 1) snprintf(more, sizeof more, " (and %lld more columns)", (long long)ones->count - 1);
    describe(text, sizeof text, &ones->columns[0], known);
    return ki_warn(&table->warnings, &place, "--type f64 keeps them apart", "%s%s %s", name, more, text);
}

kiln_status ki_collapsed_tell(struct ki_table *table, kiln_file_format format, int64_t bytes,
                              const char *path, const kiln_read_options *options) {
    kiln_status status;
    struct ones ones = {NULL, 0};
    const bool known = can_be_read(path, bytes, options);
    if (options->type != KILN_F32 || !table->values || table->rows < 2) return KILN_OK;
    TRY(find_ones(&ones, table));
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
