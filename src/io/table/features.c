/* From columns and levels to features: which number each one has, and what it is called.
 *
 * A numeric column is one feature, a text column one for each level, "carrier=AA". Levels stand in the order
 * of their bytes, so the numbering depends neither on the order of rows nor on the number of threads. */
#include "io/table/table.h"

#include <stdlib.h>

static int compare_entries(const void *a, const void *b) {
    const struct ki_table_entry *x = a, *y = b;
    if (x->column != y->column) return x->column < y->column ? -1 : 1;
    return strcmp(x->text, y->text);
}

static kiln_status sort_levels(struct ki_table_entry **entries, const struct ki_table_levels *levels) {
    size_t bytes = (size_t)levels->count * sizeof **entries;
    *entries = ki_alloc(bytes);
    if (!*entries) return ki_fail_nomem(bytes, "the levels' order");
    for (int64_t i = 0; i < levels->count; i++) {
        const struct ki_table_level *level = ki_table_level(levels, i);
        (*entries)[i] = (struct ki_table_entry){level->column, (int32_t)i, levels->text.data + level->text};
    }
    qsort(*entries, (size_t)levels->count, sizeof **entries, compare_entries);
    return KILN_OK;
}

/* Returns how many features a column has. */
static int64_t width_of(const struct ki_table_column *column) {
    if (column->text) return column->levels - (column->reference >= 0);
    return 1 + column->indicator;
}

static kiln_status number_features(int32_t *feature, int64_t *cols, const struct ki_table_schema *schema,
                                   const struct ki_table_entry *entries) {
    int32_t *indicator = feature + schema->count, *level = feature + 2 * schema->count;
    int64_t next = 0, entry = 0;
    for (int64_t i = 0; i < schema->count; i++) {
        const struct ki_table_column *column = &schema->columns[i];
        if (next + width_of(column) > INT32_MAX)
            return ki_fail(KILN_ERR_LIMIT, "the columns and their levels are 2^31 or more");
        feature[i] = column->text ? -1 : (int32_t)next++;
        indicator[i] = column->indicator ? (int32_t)next++ : -1;
        for (int32_t k = 0; column->text && k < column->levels; k++, entry++)
            level[entries[entry].number] = entries[entry].number == column->reference ? -1 : (int32_t)next++;
    }
    *cols = next;
    return KILN_OK;
}

/* Text columns that are features. */
static kiln_status list_categories(struct ki_table *table, const struct ki_table_schema *schema) {
    int64_t next = 0;
    const size_t bytes = (size_t)schema->count * sizeof *table->categories;
    table->categories = ki_alloc(bytes);
    if (!table->categories) return ki_fail_nomem(bytes, "the categories");
    for (int64_t i = 0; i < schema->count; i++) {
        const int64_t width = width_of(&schema->columns[i]);
        if (schema->columns[i].text && width > 0)
            table->categories[table->category_count++] = (struct ki_category){next, width};
        next += width;
    }
    return KILN_OK;
}

/* Visits the features in order: a name in two parts, "carrier" and "=AA". */
typedef bool visit(void *to, const char *name, const char *joint, const char *rest);

static bool visit_features(const struct ki_table_schema *schema, const struct ki_table_entry *entries,
                           visit *use, void *to) {
    bool good = true;
    for (int64_t i = 0; good && i < schema->count; i++) {
        const struct ki_table_column *column = &schema->columns[i];
        const char *name = column->pair ? schema->columns[column->of[0]].name : column->name;
        if (!column->text) good = use(to, column->name, "", "");
        if (column->indicator) good = good && use(to, column->name, " missing", "");
        for (int32_t k = 0; good && column->text && k < column->levels; k++, entries++)
            if (entries->number != column->reference) good = use(to, name, "=", entries->text);
    }
    return good;
}

static bool add_name(void *to, const char *name, const char *joint, const char *rest) {
    struct ki_bytes *text = to;
    return ki_bytes_append(text, name, (int64_t)strlen(name)) &&
           ki_bytes_append(text, joint, (int64_t)strlen(joint)) &&
           ki_bytes_append(text, rest, (int64_t)strlen(rest) + 1);
}

/* All names lie in one piece of memory, as features may be many. */
static kiln_status name_features(struct ki_table *table, const struct ki_table_schema *schema,
                                 const struct ki_table_entry *entries) {
    struct ki_bytes text = {0};
    table->feature_names = ki_calloc((size_t)table->cols * sizeof *table->feature_names);
    if (!table->feature_names || !visit_features(schema, entries, add_name, &text)) {
        ki_bytes_free(&text);
        return ki_fail_nomem((size_t)table->cols * 8, "the features' names");
    }
    table->name_text = ki_bytes_take(&text);
    if (!table->name_text) return ki_fail_nomem(1, "the features' names");
    char *name = table->name_text;
    for (int64_t j = 0; j < table->cols; j++, name += strlen(name) + 1) table->feature_names[j] = name;
    return KILN_OK;
}

static kiln_status name_targets(struct ki_table *table, const struct ki_table_schema *schema) {
    if (schema->target_count == 0) return KILN_OK;
    size_t bytes = (size_t)schema->target_count * sizeof *table->target_names;
    table->target_names = ki_calloc(bytes);
    if (!table->target_names) return ki_fail_nomem(bytes, "the targets' names");
    table->targets = schema->target_count;
    for (int64_t i = 0; i < schema->target_count; i++) {
        table->target_names[i] = ki_strdup(schema->targets[i].name);
        if (!table->target_names[i]) return ki_fail_nomem(strlen(schema->targets[i].name), "a target's name");
    }
    return KILN_OK;
}

kiln_status ki_table_schema_finish(int32_t **feature, struct ki_table *table,
                                   const struct ki_table_schema *schema,
                                   const struct ki_table_levels *levels) {
    kiln_status status = KILN_OK;
    struct ki_table_entry *entries = NULL;
    int32_t *numbers = NULL;
    size_t bytes = (size_t)(2 * schema->count + levels->count) * sizeof *numbers;
    TRY(sort_levels(&entries, levels));
    numbers = ki_alloc(bytes);
    if (!numbers) TRY(ki_fail_nomem(bytes, "the features' numbers"));
    TRY(number_features(numbers, &table->cols, schema, entries));
    TRY(list_categories(table, schema));
    TRY(name_features(table, schema, entries));
    TRY(name_targets(table, schema));
    TRY(ki_table_write_schema(table, schema, entries));
    *feature = numbers;
    numbers = NULL;
done:
    ki_free(entries);
    ki_free(numbers);
    return status;
}
