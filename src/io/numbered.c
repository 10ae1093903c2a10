/* A dense table in memory: columns named by number are copied out, then each row closes up over them, from
 * the first on. */
#include "io/data.h"

#include <string.h>

#include "core/matrix.h"
#include "core/seams.h"
#include "core/size.h"
#include "io/formats.h"
#include "io/number.h"

struct taking {
    struct ki_table *table;
    const char *name;
    bool *gone;    /* cols of them */
    int64_t *list; /* the columns that one option names; room for cols */
    int64_t bytes; /* of a number */
};

static kiln_status fail_number(const struct taking *t, const char *what, const char *text) {
    ki_fail(KILN_ERR_ARGUMENT, "%s has no column names, so that no %s can be '%s'", t->name, what, text);
    return ki_hint("give its number, from 1 to %lld, or -1 for the last; or --%s-file FILE",
                   (long long)t->table->cols, what);
}

/* "3,-1": into the list. */
static kiln_status find(const struct taking *t, int64_t *count, const char *what, const char *text) {
    const char *at = text, *end = text + strlen(text);
    for (*count = 0; at <= end; at++) {
        int64_t number;
        if (!ki_parse_int64(&at, end, &number) || (at < end && *at != ',')) return fail_number(t, what, text);
        const int64_t j = number < 0 ? t->table->cols + number : number - 1;
        if (j < 0 || j >= t->table->cols)
            return ki_fail(KILN_ERR_ARGUMENT, "%s has %lld columns, so that no %s can be %lld", t->name,
                           (long long)t->table->cols, what, (long long)number);
        if (t->gone[j])
            return ki_fail(KILN_ERR_ARGUMENT, "column %lld of %s is asked for twice", (long long)j + 1,
                           t->name);
        t->gone[j] = true;
        t->list[(*count)++] = j;
    }
    return KILN_OK;
}

/* *values = the columns of the list, row by row. */
static kiln_status copy(void **values, const struct taking *t, int64_t count) {
    const struct ki_table *table = t->table;
    const int64_t bytes = t->bytes, cols = table->cols;
    int64_t size;
    char *made = ki_mul3(table->rows, count, bytes, &size) ? ki_alloc((size_t)size) : NULL;
    if (!made) return ki_fail_nomem((size_t)(table->rows * count * bytes), "the columns taken from the data");
    for (int64_t i = 0; i < table->rows; i++)
        for (int64_t c = 0; c < count; c++)
            memcpy(made + (i * count + c) * bytes, (char *)table->values + (i * cols + t->list[c]) * bytes,
                   (size_t)bytes);
    *values = made;
    return KILN_OK;
}

static kiln_status take(const struct taking *t, void **values, int64_t *count, const char *what,
                        const char *text) {
    kiln_status status = KILN_OK;
    if (!text) return KILN_OK;
    TRY(find(t, count, what, text));
    TRY(copy(values, t, *count));
done:
    return status;
}

/* One column, *values, which is called as the text says. */
static kiln_status take_one(const struct taking *t, void **values, enum ki_table_role role, const char *what,
                            const char *text) {
    int64_t count = 1;
    const kiln_status status = take(t, values, &count, what, text);
    if (status != KILN_OK || !text) return status;
    if (count != 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: one column can be the %s, but '%s' names %lld", t->name, what,
                       text, (long long)count);
    t->table->role_names[role] = ki_strdup(text);
    return t->table->role_names[role] ? KILN_OK : ki_fail_nomem(strlen(text), "a column's name");
}

static kiln_status check_weights(const struct taking *t) {
    const void *values = t->table->weights;
    for (int64_t i = 0; values && i < t->table->rows; i++) {
        const double weight =
            t->bytes == 4 ? (double)((const float *)values)[i] : ((const double *)values)[i];
        if (weight < 0)
            return ki_fail(KILN_ERR_DATA, "%s: row %lld has the weight %g; weights are not negative", t->name,
                           (long long)i + 1, weight);
    }
    return KILN_OK;
}

/* The columns that stay lie in runs between those that are gone. */
static void close_up(const struct taking *t) {
    struct ki_table *table = t->table;
    const int64_t cols = table->cols, bytes = t->bytes;
    char *to = table->values;
    int64_t kept = 0;
    for (int64_t j = 0; j < cols; j++) kept += !t->gone[j];
    for (int64_t i = 0; i < table->rows; i++)
        for (int64_t j = 0, end; j < cols; j = end + 1) {
            for (end = j; end < cols && !t->gone[end];) end++;
            memmove(to, (char *)table->values + (i * cols + j) * bytes, (size_t)((end - j) * bytes));
            to += (end - j) * bytes;
        }
    table->cols = kept;
    table->nnz = table->rows * kept;
}

static kiln_status take_numbered(struct ki_table *table, const char *name, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct taking t = {table, name, NULL, NULL, ki_type_bytes(options->type)};
    t.gone = ki_calloc((size_t)(table->cols + 1) * sizeof *t.gone);
    t.list = ki_alloc((size_t)(table->cols + 1) * sizeof *t.list);
    if (!t.gone || !t.list) TRY(ki_fail_nomem((size_t)table->cols * 9, "the columns' numbers"));
    if (options->target && table->y)
        TRY(ki_fail(KILN_ERR_ARGUMENT,
                    "%s has targets of its own, which kiln_read_options.target would replace", name));
    TRY(take(&t, &table->y, &table->targets, "target", options->target));
    TRY(take_one(&t, &table->weights, KI_TABLE_WEIGHTS, "weights", options->weights));
    TRY(check_weights(&t));
    TRY(take_one(&t, &table->offset, KI_TABLE_OFFSET, "offset", options->offset));
    close_up(&t);
    if (table->cols == 0 && table->rows > 0)
        TRY(ki_fail(KILN_ERR_DATA, "%s has no column left that is a feature", name));
done:
    ki_free(t.gone);
    ki_free(t.list);
    return status;
}

/* Only of a dense matrix in memory can a column become something else. */
static kiln_status fail_names(const struct ki_table *table, kiln_file_format format, const char *path,
                              const kiln_read_options *options) {
    const bool elsewhere = table->format == KILN_DENSE && !table->values;
    if (options->target) {
        ki_fail(KILN_ERR_ARGUMENT, "%s has no column names, so that no target can be '%s'", path,
                options->target);
        return ki_hint(format == KILN_FILE_LIBSVM ? "the target is the first number of each line of LIBSVM"
                       : elsewhere ? "a column's number is taken without --map only; --target-file "
                                     "FILE reads the targets from a file of their own"
                                   : "--target-file FILE reads the targets from a file of their own");
    }
    ki_fail(KILN_ERR_ARGUMENT, "%s has no column names, so that none can be '%s'", path,
            options->weights  ? options->weights
            : options->offset ? options->offset
                              : options->groups);
    return ki_hint(elsewhere && !options->groups
                       ? "a column's number is taken without --map only; --weights-file and "
                         "--offset-file read them from files of their own"
                       : "--weights-file, --offset-file and --groups-file read them from files of their own");
}

kiln_status ki_take_named(struct ki_table *table, kiln_file_format format, const char *path,
                          const kiln_read_options *options) {
    if (ki_format(format)->names_columns) return KILN_OK;
    if (options->target && ki_format(format)->names_vertices) {
        kiln_read_options rest = *options;
        rest.target = NULL; /* a column of the list */
        return ki_take_named(table, format, path, &rest);
    }
    if (!options->target && !options->weights && !options->offset && !options->groups) return KILN_OK;
    if (table->format != KILN_DENSE || !table->values) return fail_names(table, format, path, options);
    return options->groups ? fail_names(table, format, path, &(kiln_read_options){.groups = options->groups})
                           : take_numbered(table, path, options);
}
