/* Labels that numbers would rewrite are text: 007 is not 7, and 9007199254740993 no double.
 *
 * A table numbers its levels while it is read (table/classes.c). Other formats hold numbers, so that readers
 * keep the texts of labels beside y, a byte or two a row, and need them only where one is odd. */
#include "io/labels.h"

#include <stdlib.h>
#include <string.h>

#include "core/seams.h"
#include "io/number.h"
#include "io/text.h"

/* Integers below have no gaps. */
static double whole_below(kiln_type type) {
    return type == KILN_F32 ? 0x1p24 : 0x1p53;
}

static bool digits_only(const char *text, int64_t size) {
    for (int64_t i = 0; i < size; i++)
        if (!ki_is_digit(text[i])) return false;
    return size > 0;
}

/* 2.5: at most 15 digits, which a double keeps, none of them a zero that a number does without. */
static bool is_plain_fraction(const char *text, int64_t size, int64_t point) {
    const int64_t places = size - point - 1;
    return places > 0 && digits_only(text + point + 1, places) && text[size - 1] != '0' && size <= 16 &&
           (text[0] != '0' || places <= 4);
}

bool ki_label_is_plain(const char *text, int64_t size, kiln_type type) {
    const char *at = text;
    double value;
    if (!ki_parse_double(&at, text + size, &value) || at != text + size) return false;
    if (text[0] == '-' && value == 0) return false;
    if (text[0] == '-' || text[0] == '+') {
        text++;
        size--;
    }
    const char *dot = memchr(text, '.', (size_t)size);
    const int64_t whole = dot ? dot - text : size;
    if (!digits_only(text, whole) || (text[0] == '0' && whole > 1)) return false;
    if (dot && !is_plain_fraction(text, size, whole)) return false;
    if (value >= whole_below(type) || -value >= whole_below(type)) return false;
    return type == KILN_F64 || (double)(float)value == value;
}

bool ki_label_is_code(const char *text, int64_t size, kiln_type type) {
    if (size > 0 && text[0] == '-') {
        text++;
        size--;
    }
    if (!digits_only(text, size)) return false;
    return (text[0] == '0' && size > 1) || (size > 7 && !ki_label_is_plain(text, size, type));
}

bool ki_label_is_odd(const char *text, int64_t size, const kiln_read_options *options) {
    if (options->text_targets == KILN_TARGETS_LABELS) return !ki_label_is_plain(text, size, options->type);
    return options->text_targets && ki_label_is_code(text, size, options->type);
}

/* ------------------------------------------------------------------------------------------ classes */

static int compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int64_t rank_of(const char *text, const char **sorted, int64_t count) {
    const char **found = bsearch(&text, sorted, (size_t)count, sizeof *sorted, compare);
    return found - sorted;
}

static int64_t distinct(const char **sorted, int64_t count) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(sorted[kept - 1], sorted[i]) != 0) sorted[kept++] = sorted[i];
    return kept;
}

static kiln_status name(struct ki_table *table, const char **sorted, int64_t count) {
    table->class_names = ki_calloc(sizeof *table->class_names);
    table->class_count = ki_calloc(sizeof *table->class_count);
    if (!table->class_names || !table->class_count) return ki_fail_nomem(16, "the classes");
    char **names = table->class_names[0] = ki_calloc((size_t)count * sizeof *names);
    if (!names) return ki_fail_nomem((size_t)count * sizeof *names, "the classes");
    for (int64_t i = 0; i < count; i++) {
        if (!(names[i] = ki_strdup(sorted[i]))) return ki_fail_nomem(strlen(sorted[i]), "the classes' names");
        table->class_count[0] = i + 1;
    }
    return KILN_OK;
}

static kiln_status number(struct ki_table *table, kiln_type type, const char **sorted) {
    const char *at = table->label_text.data;
    kiln_status status = KILN_OK;
    for (int64_t i = 0; i < table->rows; i++, at += strlen(at) + 1) sorted[i] = at;
    qsort(sorted, (size_t)table->rows, sizeof *sorted, compare);
    const int64_t count = distinct(sorted, table->rows);
    TRY(name(table, sorted, count));
    at = table->label_text.data;
    for (int64_t i = 0; i < table->rows; i++, at += strlen(at) + 1) {
        const int64_t rank = rank_of(at, sorted, count);
        if (type == KILN_F32)
            ((float *)table->y)[i] = (float)rank;
        else
            ((double *)table->y)[i] = (double)rank;
    }
done:
    return status;
}

/* Numbers that may have been rounded on their way here. */
static kiln_status check_rounding(const struct ki_table *table, kiln_type type) {
    const double limit = whole_below(type);
    for (int64_t i = 0; i < table->rows; i++) {
        const double value = ki_element(table->y, type, i);
        if (!(value >= limit || value <= -limit)) continue;
        ki_fail(KILN_ERR_UNSUPPORTED,
                "row %lld has the label %.17g, which is beyond the whole numbers that %s tells apart",
                (long long)i + 1, value, type == KILN_F32 ? "f32" : "f64");
        return ki_hint("a column of CSV, or kiln_read_options.target_file with text or an uncompressed .npy "
                       "of whole numbers, keeps such labels exactly");
    }
    return KILN_OK;
}

kiln_status ki_labels_settle(struct ki_table *table, const kiln_read_options *options) {
    const kiln_type type = options->type;
    kiln_status status = KILN_OK;
    if (table->odd_labels && table->targets == 1 && table->rows > 0) {
        const char **sorted = ki_alloc((size_t)table->rows * sizeof *sorted);
        status = sorted ? number(table, type, sorted)
                        : ki_fail_nomem((size_t)table->rows * sizeof *sorted, "the labels");
        ki_free(sorted);
    }
    if (status == KILN_OK && options->text_targets == KILN_TARGETS_LABELS && table->y &&
        !table->class_names && table->targets == 1)
        status = check_rounding(table, type);
    ki_bytes_free(&table->label_text);
    table->odd_labels = false;
    return status;
}
