/* Numbers that are missing, once all rows are there: x_ij = mean of the column's numbers, and where it is
 * wanted one feature more says that it was missing. The mean is the schema's when a model has set it, else
 * that of this file.
 *
 * In a sparse X the zeros that are not stored count as numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/matrix.h"
#include "core/threads.h"
#include "io/table/table.h"

static double value_at(const struct ki_table_entries *entries, int64_t e) {
    return entries->type == KILN_F32 ? ((const float *)entries->values)[e]
                                     : ((const double *)entries->values)[e];
}

static void set_value(const struct ki_table_entries *entries, int64_t e, double value) {
    if (entries->type == KILN_F32)
        ((float *)entries->values)[e] = (float)value;
    else
        ((double *)entries->values)[e] = value;
}

/* The column of a numeric entry; -1: of a level or an indicator. */
static int64_t column_of(const struct ki_table_schema *schema, const struct ki_table_entries *entries,
                         int64_t e) {
    if (!entries->sparse) return e % schema->count;
    return entries->ids[e] < schema->count ? entries->ids[e] : -1;
}

struct sums {
    int64_t stored, missing;
    double sum, least, most;
};

static const struct sums no_sums = {.least = INFINITY, .most = -INFINITY};

static void add(struct sums *s, double value) {
    s->stored++;
    if (isnan(value)) {
        s->missing++;
        return;
    }
    s->sum += value;
    if (value < s->least) s->least = value;
    if (value > s->most) s->most = value;
}

/* Fields of text columns that are empty. */
static void count_empty(struct ki_table_schema *schema, const struct ki_table_entries *entries,
                        const struct ki_table_levels *levels) {
    for (int64_t e = 0; entries->sparse && e < entries->count; e++) {
        const int64_t number = entries->ids[e] - 2 * schema->count;
        if (number < 0) continue;
        const struct ki_table_level *level = ki_table_level(levels, number);
        if (level->size == 0) schema->columns[level->column].missing++;
    }
}

static void merge(struct sums *to, const struct sums *from) {
    to->stored += from->stored;
    to->missing += from->missing;
    to->sum += from->sum;
    to->least = fmin(to->least, from->least);
    to->most = fmax(to->most, from->most);
}

/* Finds what all who read parts have found: each tells its sums, and how many of each text column's fields
 * are empty. */
static kiln_status add_up_all(struct sums *sums, struct ki_table_schema *schema,
                              const struct ki_together *together) {
    const int64_t count = schema->count;
    struct ki_bytes all = {NULL, 0, 0};
    bool room = ki_bytes_append(&all, sums, count * (int64_t)sizeof *sums);
    kiln_status status;
    for (int64_t i = 0; i < count; i++)
        room = room && ki_bytes_append(&all, &schema->columns[i].missing, sizeof(int64_t));
    if (!room) TRY(ki_fail_nomem((size_t)count * sizeof *sums, "the columns' means"));
    const int64_t own = all.size;
    TRY(together->meet(together->of, &all));
    for (int64_t i = 0; i < count; i++) {
        sums[i] = no_sums;
        schema->columns[i].missing = 0;
    }
    for (const char *at = all.data; at + own <= all.data + all.size; at += own)
        for (int64_t i = 0; i < count; i++) {
            struct sums theirs;
            int64_t empty;
            memcpy(&theirs, at + i * (int64_t)sizeof theirs, sizeof theirs);
            memcpy(&empty, at + count * (int64_t)sizeof theirs + i * (int64_t)sizeof empty, sizeof empty);
            merge(&sums[i], &theirs);
            schema->columns[i].missing += empty;
        }
done:
    ki_bytes_free(&all);
    return status;
}

/* Finds what a numeric column is like, of so many rows. */
static kiln_status settle(struct ki_table_column *column, const struct sums *s, int64_t rows, bool frozen,
                          const struct ki_place *place) {
    const int64_t numbers = rows - s->missing;
    const bool zeros = s->stored < rows;
    column->missing = s->missing;
    column->least = !numbers ? NAN : zeros ? fmin(s->least, 0) : s->least;
    column->most = !numbers ? NAN : zeros ? fmax(s->most, 0) : s->most;
    if (frozen) return KILN_OK;
    column->mean = numbers ? s->sum / (double)numbers : 0;
    column->indicator &= s->missing > 0;
    if (!column->imputed || numbers > 0 || rows == 0) return KILN_OK;
    ki_fail_at(KILN_ERR_DATA, place, "column '%s' has no numbers, and so no mean for those that are missing",
               column->name);
    return ki_hint("leave it out: kiln_read_options.ignore '%s'", column->name);
}

/* The entries in blocks, as many for any number of threads: the same bits. */
enum { BLOCKS_MOST = 64, ROWS_OF_A_BLOCK = 64 };
struct describing {
    const struct ki_table_schema *schema;
    const struct ki_table_entries *entries;
    struct sums *sums; /* blocks x columns */
    int blocks;
};

static void sum_block(void *of, int block) {
    const struct describing *d = of;
    const struct ki_table_entries *entries = d->entries;
    const int64_t columns = d->schema->count;
    struct sums *sums = d->sums + block * columns;
    int64_t e = ki_part_begin(entries->count, block, d->blocks), column = e % columns;
    const int64_t end = ki_part_begin(entries->count, block + 1, d->blocks);
    for (int64_t i = 0; i < columns; i++) sums[i] = no_sums;
    for (; e < end; e++) {
        if (entries->sparse) {
            const int64_t i = column_of(d->schema, entries, e);
            if (i >= 0) add(&sums[i], value_at(entries, e));
            continue;
        }
        add(&sums[column], value_at(entries, e));
        if (++column == columns) column = 0;
    }
}

kiln_status ki_table_describe(struct ki_table_schema *schema, const struct ki_table_entries *entries,
                              const struct ki_table_levels *levels, const struct ki_place *place,
                              int64_t all_rows, int threads, const struct ki_together *together) {
    kiln_status status = KILN_OK;
    const int64_t columns = schema->count;
    const int blocks = (int)ki_min(1 + entries->count / (ROWS_OF_A_BLOCK * columns), BLOCKS_MOST);
    struct sums *sums = ki_alloc((size_t)(blocks * columns) * sizeof *sums);
    if (!sums) return ki_fail_nomem((size_t)(blocks * columns) * sizeof *sums, "the columns' means");
    struct describing d = {schema, entries, sums, blocks};
    ki_parallel(threads, blocks, sum_block, &d);
    for (int block = 1; block < blocks; block++)
        for (int64_t i = 0; i < columns; i++) merge(&sums[i], &sums[block * columns + i]);
    count_empty(schema, entries, levels);
    if (together) TRY(add_up_all(sums, schema, together));
    for (int64_t i = 0; i < schema->count; i++)
        if (!schema->columns[i].text)
            TRY(settle(&schema->columns[i], &sums[i], all_rows, schema->frozen, place));
done:
    ki_free(sums);
    return status;
}

/* The mean of each feature that has missing numbers, else NaN. */
static bool list_means(double *mean, int64_t cols, const struct ki_table_schema *schema,
                       const int32_t *feature) {
    bool any = false;
    for (int64_t j = 0; j < cols; j++) mean[j] = NAN;
    for (int64_t i = 0; i < schema->count; i++) {
        const struct ki_table_column *column = &schema->columns[i];
        if (!column->imputed || column->missing == 0) continue;
        mean[feature[i]] = column->mean;
        any = true;
    }
    return any;
}

kiln_status ki_table_impute(struct ki_table *table, const struct ki_table_schema *schema,
                            const struct ki_table_entries *entries, const int32_t *feature) {
    const int64_t cols = table->cols;
    kiln_status status = KILN_OK;
    struct ki_bytes filled = {NULL, 0, 0};
    double *mean = ki_alloc((size_t)cols * sizeof *mean);
    if (!mean) return ki_fail_nomem((size_t)cols * sizeof *mean, "the columns' means");
    if (!list_means(mean, cols, schema, feature)) goto done;
    for (int64_t e = 0; e < entries->count; e++) {
        if (!isnan(value_at(entries, e))) continue;
        const double value = mean[entries->sparse ? entries->ids[e] : e % cols];
        if (isnan(value)) continue;
        set_value(entries, e, value);
        if (!schema->frozen && !ki_bytes_append(&filled, &e, sizeof e))
            TRY(ki_fail_nomem((size_t)filled.size, "which entries were missing"));
    }
    table->filled_count = filled.size / (int64_t)sizeof *table->filled;
    if (table->filled_count > 0) table->filled = ki_bytes_take(&filled);
    if (table->filled_count > 0 && !table->filled) TRY(ki_fail_nomem(1, "which entries were missing"));
done:
    ki_bytes_free(&filled);
    ki_free(mean);
    return status;
}

kiln_status ki_table_widen(struct ki_bytes *values, struct ki_table_entries *entries,
                           const struct ki_table_schema *schema, const int32_t *feature, int64_t cols) {
    const int64_t size = ki_type_bytes(entries->type), count = schema->count;
    int64_t bytes;
    if (!ki_mul3(entries->rows, cols, size, &bytes))
        return ki_fail(KILN_ERR_LIMIT, "the matrix is too large");
    struct ki_table_entries made = *entries;
    made.count = entries->rows * cols;
    made.values = ki_calloc((size_t)bytes);
    if (!made.values) return ki_fail_nomem((size_t)bytes, "the matrix");
    for (int64_t row = 0; row < entries->rows; row++)
        for (int64_t i = 0; i < count; i++) {
            const double value = value_at(entries, row * count + i);
            set_value(&made, row * cols + feature[i], value);
            if (feature[count + i] >= 0 && schema->columns[i].imputed && isnan(value))
                set_value(&made, row * cols + feature[count + i], 1);
        }
    ki_bytes_free(values);
    *values = (struct ki_bytes){made.values, bytes, bytes};
    *entries = made;
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------------ numbering */

struct numbering {
    int32_t *ids;
    const int32_t *feature;
};

static void number_range(void *of, int64_t begin, int64_t end) {
    const struct numbering *n = of;
    for (int64_t i = begin; i < end; i++) n->ids[i] = n->feature[n->ids[i]];
}

static void leave_out(struct ki_table_entries *entries) {
    const int64_t bytes = ki_type_bytes(entries->type);
    char *values = entries->values;
    int64_t kept = 0, e = 0;
    for (int64_t row = 0; row < entries->rows; row++) {
        for (; e < entries->row_start[row + 1]; e++) {
            if (entries->ids[e] < 0) continue;
            entries->ids[kept] = entries->ids[e];
            memmove(values + kept * bytes, values + e * bytes, (size_t)bytes);
            kept++;
        }
        entries->row_start[row + 1] = kept;
    }
    entries->count = kept;
}

void ki_table_number_entries(struct ki_table_entries *entries, const int32_t *feature, int threads) {
    enum { SMALLEST_PART = 32 << 10 };
    struct numbering numbering = {entries->ids, feature};
    bool out = false;
    ki_parallel_ranges(threads, entries->count, SMALLEST_PART, number_range, &numbering);
    for (int64_t e = 0; !out && e < entries->count; e++) out = entries->ids[e] < 0;
    if (out) leave_out(entries);
}

/* ---------------------------------------------------------------------------------- what info shows */

static int by_field(const void *a, const void *b) {
    const int64_t left = (*(const struct ki_table_column *const *)a)->field,
                  right = (*(const struct ki_table_column *const *)b)->field;
    return (left > right) - (left < right);
}

static kiln_column describe(const struct ki_table_column *column, char *name) {
    const bool known = !column->text && column->imputed;
    return (kiln_column){.name = name,
                         .text = column->text,
                         .levels = column->text ? column->levels - (column->missing > 0) : 0,
                         .missing = column->missing,
                         .least = known ? column->least : NAN,
                         .most = known ? column->most : NAN,
                         .mean = known ? column->mean : NAN};
}

static kiln_column_role role_of(const struct ki_table_schema *schema, const struct ki_table_column *column) {
    if (column->target) return KILN_COLUMN_TARGET;
    if (column == &schema->roles[KI_TABLE_WEIGHTS]) return KILN_COLUMN_WEIGHTS;
    if (column == &schema->roles[KI_TABLE_OFFSET]) return KILN_COLUMN_OFFSET;
    if (column == &schema->roles[KI_TABLE_GROUPS]) return KILN_COLUMN_GROUPS;
    const bool ignored =
        schema->ignored && column >= schema->ignored && column < schema->ignored + schema->ignored_count;
    return ignored ? KILN_COLUMN_IGNORED : KILN_COLUMN_FEATURE;
}

static int64_t gather(const struct ki_table_column **all, const struct ki_table_schema *schema) {
    int64_t n = 0;
    for (int64_t i = 0; i < schema->count; i++) all[n++] = &schema->columns[i];
    for (int64_t i = 0; i < schema->target_count; i++) all[n++] = &schema->targets[i];
    for (int i = 0; i < KI_TABLE_ROLES; i++)
        if (schema->roles[i].name) all[n++] = &schema->roles[i];
    for (int64_t i = 0; i < schema->ignored_count; i++)
        if (schema->ignored[i].field >= 0) all[n++] = &schema->ignored[i];
    return n;
}

kiln_status ki_table_list_columns(struct ki_table *table, const struct ki_table_schema *schema) {
    kiln_status status = KILN_OK;
    const int64_t most = schema->count + schema->target_count + KI_TABLE_ROLES + schema->ignored_count;
    const struct ki_table_column **all = ki_alloc((size_t)most * sizeof *all);
    if (!all) return ki_fail_nomem((size_t)most * sizeof *all, "the list of columns");
    const int64_t count = gather(all, schema);
    qsort(all, (size_t)count, sizeof *all, by_field);
    size_t bytes = 1;
    for (int64_t i = 0; i < count; i++) bytes += strlen(all[i]->name) + 1;
    table->columns = ki_alloc((size_t)count * sizeof *table->columns);
    table->column_names = ki_alloc(bytes);
    if (!table->columns || !table->column_names) TRY(ki_fail_nomem(bytes, "the list of columns"));
    char *name = table->column_names;
    for (int64_t i = 0; i < count; i++) {
        const size_t size = strlen(all[i]->name) + 1;
        memcpy(name, all[i]->name, size);
        table->columns[i] = describe(all[i], name);
        table->columns[i].role = role_of(schema, all[i]);
        name += size;
    }
    table->column_count = count;
done:
    ki_free(all);
    return status;
}
