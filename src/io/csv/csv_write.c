/* A header line, then the features and last the targets, classes by their names; sparse rows are written with
 * their zeros. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/seams.h"
#include "io/csv/csv.h"
#include "io/decimal.h"
#include "io/output.h"
#include "io/print.h"

enum { SPARSE_COLUMNS_MOST = 1 << 16 }; /* beyond, a sparse matrix as CSV is a mistake, not a wish */

/* RFC 4180: a text with a separator, quote or line break in it stands in quotes, its own quotes doubled. */
static char *print_text(char *at, const char *text) {
    const bool quoted = !*text || strpbrk(text, ",\"\r\n");
    if (quoted) *at++ = '"';
    for (; *text; text++) {
        if (*text == '"') *at++ = '"';
        *at++ = *text;
    }
    if (quoted) *at++ = '"';
    return at;
}

static int64_t text_bound(const char *text) {
    return 2 * (int64_t)strlen(text) + 2;
}

/* The name of the row's class, NULL: the target is a number. A class that a model does not know has none. */
static const char *class_of(const struct ki_printer *printer, int64_t i, int64_t j) {
    const struct ki_table *table = printer->table;
    if (!table->class_names || !table->class_names[j]) return NULL;
    const int64_t number = (int64_t)ki_element(table->y, printer->type, i * table->targets + j);
    return number < 0 ? "" : table->class_names[j][number];
}

static int64_t bound(const struct ki_printer *printer, int64_t i) {
    const struct ki_table *table = printer->table;
    int64_t targets = table->targets * (KI_DECIMAL_BYTES + 1);
    for (int64_t j = 0; j < table->targets; j++) {
        const char *class = class_of(printer, i, j);
        if (class) targets += text_bound(class);
    }
    if (table->format == KILN_DENSE) return table->cols * (KI_DECIMAL_BYTES + 1) + targets + 1;
    int64_t entries = table->row_start[i + 1] - table->row_start[i];
    return table->cols * 2 + entries * KI_DECIMAL_BYTES + targets + 1;
}

static char *print_fields(char *at, const void *values, int64_t first, int64_t count, kiln_type type) {
    for (int64_t j = 0; j < count; j++) {
        at = ki_print_real(at, ki_element(values, type, first + j), type);
        *at++ = ',';
    }
    return at;
}

static char *print_sparse(const struct ki_printer *printer, char *at, int64_t i) {
    const struct ki_table *table = printer->table;
    int64_t e = table->row_start[i], end = table->row_start[i + 1];
    for (int64_t j = 0; j < table->cols; j++) {
        if (e < end && table->col[e] == j)
            at = ki_print_real(at, ki_element(table->values, printer->type, e++), printer->type);
        else
            *at++ = '0';
        *at++ = ',';
    }
    return at;
}

static char *print_row(const struct ki_printer *printer, char *at, int64_t i) {
    const struct ki_table *table = printer->table;
    if (table->format == KILN_CSR)
        at = print_sparse(printer, at, i);
    else
        at = print_fields(at, table->values, i * table->cols, table->cols, printer->type);
    for (int64_t j = 0; j < table->targets; j++) {
        const char *class = class_of(printer, i, j);
        if (!class) {
            at = print_fields(at, table->y, i * table->targets + j, 1, printer->type);
            continue;
        }
        at = print_text(at, class);
        *at++ = ',';
    }
    at[-1] = '\n'; /* for the last comma */
    return at;
}

static kiln_status write_name(struct ki_output *output, const char *name) {
    char *text = ki_alloc((size_t)text_bound(name));
    if (!text) return ki_fail_nomem((size_t)text_bound(name), "a name to write");
    const kiln_status status = ki_output_write(output, text, (size_t)(print_text(text, name) - text));
    ki_free(text);
    return status;
}

/* Nameless columns are called x1, x2, ... and y1, y2, ... */
static kiln_status write_names(struct ki_output *output, char *const *names, int64_t count, char letter,
                               bool first) {
    kiln_status status = KILN_OK;
    for (int64_t j = 0; j < count; j++) {
        char made[24];
        snprintf(made, sizeof made, "%c%lld", letter, (long long)j + 1);
        if (j > 0 || !first) TRY(ki_output_write(output, ",", 1));
        TRY(write_name(output, names && names[j] ? names[j] : made));
    }
done:
    return status;
}

/* A first line of numbers alone is read as a row, not as names. */
static bool all_numbers(char *const *names, int64_t count) {
    const struct ki_table_numbers plain = {NULL, false, false};
    for (int64_t j = 0; j < count; j++) {
        double value;
        if (!names || !names[j]) return false;
        const struct ki_table_field field = {names[j], (int64_t)strlen(names[j]), false};
        if (ki_table_number(&field, &plain, &value) == KI_TABLE_TEXT) return false;
    }
    return true;
}

kiln_status ki_write_csv(struct ki_output *output, const struct ki_table *table, kiln_type type,
                         int threads) {
    kiln_status status;
    struct ki_printer rows = {table, type, threads, table->rows, bound, print_row, 0};
    if (table->format == KILN_CSR && table->cols > SPARSE_COLUMNS_MOST) {
        ki_fail(KILN_ERR_UNSUPPORTED,
                "a sparse matrix of %lld columns does not go into a CSV file, which has no gaps",
                (long long)table->cols);
        return ki_hint("write .npz, .mtx or .svm");
    }
    if (table->cols + table->targets == 0)
        return ki_fail(KILN_ERR_UNSUPPORTED, "a CSV file needs at least one column");
    if (all_numbers(table->feature_names, table->cols) && all_numbers(table->target_names, table->targets)) {
        ki_fail(KILN_ERR_UNSUPPORTED,
                "all columns have numbers for names, which a CSV file would give back as a row");
        return ki_hint("write .npz, .mtx or .svm");
    }
    TRY(write_names(output, table->feature_names, table->cols, 'x', true));
    TRY(write_names(output, table->target_names, table->targets, 'y', table->cols == 0));
    TRY(ki_output_write(output, "\n", 1));
    TRY(ki_print_items(output, &rows));
done:
    return status;
}
