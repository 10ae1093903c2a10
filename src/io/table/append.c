/* This file says what may be done to a table before it becomes matrices: rows of another file appended,
 * columns that a model does not know left out, warnings noted. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/matrix.h"
#include "io/data.h"
#include "io/table/append.h"

kiln_status ki_warn(struct ki_warnings *warnings, const struct ki_place *place, const char *hint,
                    const char *format, ...) {
    char text[2048];
    int used = 0;
    va_list args;
    if (place && place->file) used = snprintf(text, sizeof text, "%.1000s:", place->file);
    if (used && place->line > 0)
        used += snprintf(text + used, sizeof text - (size_t)used, "%" PRId64 ":", place->line);
    if (used && place->line > 0 && place->column > 0)
        used += snprintf(text + used, sizeof text - (size_t)used, "%" PRId64 ":", place->column);
    if (used) used += snprintf(text + used, sizeof text - (size_t)used, " ");
    va_start(args, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    const int64_t size = (int64_t)strlen(text) + 1, hint_size = (int64_t)strlen(hint) + 1;
    if (!ki_bytes_room(&warnings->text, size + hint_size)) return ki_fail_nomem((size_t)size, "a warning");
    ki_bytes_append(&warnings->text, text, size);
    ki_bytes_append(&warnings->text, hint, hint_size);
    warnings->count++;
    return KILN_OK;
}

/* -------------------------------------------------------------------------------------- several files */

/* Both arrays in one. */
static kiln_status join(void **array, int64_t bytes, const void *more, int64_t more_bytes) {
    char *joined = ki_alloc((size_t)(bytes + more_bytes));
    if (!joined) return ki_fail_nomem((size_t)(bytes + more_bytes), "the rows of several files");
    if (bytes) memcpy(joined, *array, (size_t)bytes);
    if (more_bytes) memcpy(joined + bytes, more, (size_t)more_bytes);
    ki_free(*array);
    *array = joined;
    return KILN_OK;
}

static kiln_status differ(const char *name, const char *what, int64_t theirs, int64_t ours) {
    const struct ki_place place = {.file = name, .offset = -1};
    ki_fail_at(KILN_ERR_DATA, &place, "%lld %s, the first file has %lld", (long long)theirs, what,
               (long long)ours);
    return ki_hint("files that are read as one have the same columns");
}

kiln_status ki_table_check_alike(const struct ki_table *table, const struct ki_table *more,
                                 const char *name) {
    int64_t all;
    if (table->format != more->format) {
        const struct ki_place place = {.file = name, .offset = -1};
        return ki_fail_at(KILN_ERR_DATA, &place, "a %s matrix, that of the first file is %s",
                          more->format == KILN_CSR ? "sparse" : "dense",
                          table->format == KILN_CSR ? "sparse" : "dense");
    }
    if (table->format == KILN_DENSE && table->cols != more->cols)
        return differ(name, "columns", more->cols, table->cols);
    if (table->targets != more->targets) return differ(name, "targets", more->targets, table->targets);
    if (!ki_add(table->rows, more->rows, &all) || !ki_add(table->nnz, more->nnz, &all))
        return ki_fail(KILN_ERR_LIMIT, "the files have 2^63 rows or more");
    return KILN_OK;
}

static bool same_names(char *const *a, char *const *b, int64_t count) {
    bool same = !a == !b;
    for (int64_t j = 0; a && same && j < count; j++)
        same = !a[j] == !b[j] && (!a[j] || strcmp(a[j], b[j]) == 0);
    return same;
}

static bool same_classes(const struct ki_table *a, const struct ki_table *b) {
    bool same = true;
    for (int64_t j = 0; same && j < a->targets; j++) {
        char **one = a->class_names ? a->class_names[j] : NULL,
             **other = b->class_names ? b->class_names[j] : NULL;
        same =
            !one == !other &&
            (!one || (a->class_count[j] == b->class_count[j] && same_names(one, other, a->class_count[j])));
    }
    return same;
}

static bool same_columns(const struct ki_table *a, const struct ki_table *b) {
    return same_names(a->feature_names, b->feature_names, ki_min(a->cols, b->cols)) &&
           (!a->target_names || same_names(a->target_names, b->target_names, a->targets));
}

bool ki_table_agrees(const struct ki_table *said, const struct ki_table *table) {
    const int64_t targets = table->target_names ? table->targets : 0; /* from a file of their own: unnamed */
    return said->cols == table->cols && said->targets == targets && same_columns(said, table) &&
           (targets == 0 || same_classes(said, table));
}

kiln_status ki_table_same_names(const struct ki_table *table, const struct ki_table *more, const char *name) {
    const struct ki_place place = {.file = name, .offset = -1};
    const bool names =
        same_columns(table, more) && same_names(table->role_names, more->role_names, KI_TABLE_ROLES);
    if (names && same_classes(table, more)) return KILN_OK;
    ki_fail_at(KILN_ERR_DATA, &place, "its %s have other names than those of the first file",
               names ? "classes" : "columns");
    return ki_hint("files that are read as one have the same columns in the same order");
}

kiln_status ki_table_refuse_groups(const char *name) {
    const struct ki_place place = {.file = name, .offset = -1};
    ki_fail_at(KILN_ERR_UNSUPPORTED, &place,
               "groups of several packed files have no names to be told apart by");
    return ki_hint("--groups-file names the groups of all rows, or convert the tables into one file");
}

/* Both columns, or neither table has it. */
static kiln_status join_column(void **column, int64_t bytes, const void *more, int64_t more_bytes,
                               const char *what, const char *name) {
    const struct ki_place place = {.file = name, .offset = -1};
    if (!*column != !more)
        return ki_fail_at(KILN_ERR_DATA, &place, "it has %s%s, unlike the first file", more ? "" : "no ",
                          what);
    return more ? join(column, bytes, more, more_bytes) : KILN_OK;
}

/* A list of places, those of the second counted on. */
static kiln_status join_list(int64_t **list, int64_t *count, int64_t *more, int64_t more_count,
                             int64_t before) {
    void *joined = *list;
    if (more_count == 0) return KILN_OK;
    for (int64_t i = 0; i < more_count; i++) more[i] += before;
    const kiln_status status = join(&joined, *count * 8, more, more_count * 8);
    *list = joined;
    if (status == KILN_OK) *count += more_count;
    return status;
}

kiln_status ki_table_append(struct ki_table *table, struct ki_table *more, kiln_type type, const char *name) {
    const int64_t bytes = ki_type_bytes(type), rows = table->rows, nnz = table->nnz;
    void *col = table->col, *row_start = table->row_start;
    kiln_status status;
    TRY(ki_table_check_alike(table, more, name));
    TRY(ki_table_same_names(table, more, name));
    if (table->groups || more->groups) TRY(ki_table_refuse_groups(name));
    TRY(join_column(&table->weights, rows * bytes, more->weights, more->rows * bytes, "weights", name));
    TRY(join_column(&table->offset, rows * bytes, more->offset, more->rows * bytes, "an offset", name));
    TRY(join_list(&table->filled, &table->filled_count, more->filled, more->filled_count, nnz));
    TRY(join_list(&table->left_out, &table->left_out_count, more->left_out, more->left_out_count,
                  rows + table->left_out_count));
    ki_free(table->row_names); /* which the further rows need not have */
    ki_free(table->row_name_text);
    table->row_names = NULL;
    table->row_name_text = NULL;
    TRY(join(&table->values, nnz * bytes, more->values, more->nnz * bytes));
    if (table->format == KILN_CSR) {
        for (int64_t i = 0; i <= more->rows; i++) more->row_start[i] += nnz;
        status = join(&col, nnz * 4, more->col, more->nnz * 4);
        table->col = col;
        TRY(status);
        status = join(&row_start, rows * 8, more->row_start, (more->rows + 1) * 8);
        table->row_start = row_start;
        TRY(status);
    }
    if (table->y)
        TRY(join(&table->y, rows * table->targets * bytes, more->y, more->rows * table->targets * bytes));
    if (more->label_text.size > 0 &&
        !ki_bytes_append(&table->label_text, more->label_text.data, more->label_text.size))
        TRY(ki_fail_nomem((size_t)more->label_text.size, "the labels"));
    table->odd_labels |= more->odd_labels;
    table->rows += more->rows;
    table->nnz += more->nnz;
    table->cols = ki_max(table->cols, more->cols);
done:
    return status;
}

/* ------------------------------------------------------------------------------- columns beyond a model's */

static kiln_status refuse_columns(const struct ki_table *table, int64_t cols, const char *name) {
    const struct ki_place place = {.file = name, .offset = -1};
    ki_fail_at(KILN_ERR_MODEL, &place, "%lld columns, the model was trained on %lld", (long long)table->cols,
               (long long)cols);
    return ki_hint("use the data's own model, or kiln_read_options.extra_columns ignore");
}

kiln_status ki_table_narrow(struct ki_narrowed *narrowed, struct ki_table *table, kiln_type type,
                            int64_t cols, kiln_extra extra, const char *name) {
    const int64_t bytes = ki_type_bytes(type);
    char *values = table->values;
    int64_t kept = 0;
    narrowed->rows += table->rows;
    if (table->format == KILN_DENSE || table->cols <= cols || table->file) return KILN_OK;
    if (extra == KILN_EXTRA_ERROR) return refuse_columns(table, cols, name);
    for (int64_t i = 0; i < table->rows; i++) {
        int64_t e = table->row_start[i];
        const int64_t end = table->row_start[i + 1];
        table->row_start[i] = kept;
        for (; e < end; e++) {
            if (table->col[e] >= cols) {
                if (narrowed->dropped++ == 0) narrowed->first = narrowed->rows - table->rows + i;
                continue;
            }
            table->col[kept] = table->col[e];
            memmove(values + kept * bytes, values + e * bytes, (size_t)bytes);
            kept++;
        }
    }
    table->row_start[table->rows] = kept;
    narrowed->cols = ki_max(narrowed->cols, table->cols);
    table->nnz = kept;
    table->cols = cols;
    return KILN_OK;
}

kiln_status ki_warn_narrowed(struct ki_warnings *warnings, const struct ki_narrowed *narrowed, int64_t cols,
                             kiln_extra extra, const char *name) {
    const struct ki_place place = {.file = name, .offset = -1};
    if (extra == KILN_EXTRA_IGNORE || narrowed->dropped == 0) return KILN_OK;
    return ki_warn(
        warnings, &place, "is it the model of these data?",
        "%lld columns, the model was trained on %lld: %lld entries beyond are ignored, the first in row %lld",
        (long long)narrowed->cols, (long long)cols, (long long)narrowed->dropped,
        (long long)narrowed->first + 1);
}
