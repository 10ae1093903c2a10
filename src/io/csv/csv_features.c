/* From columns and levels to features: which number each one has, what it is called, and the schema as JSON
 * text.
 *
 * A numeric column is one feature, a text column one for each level, "carrier=AA". Levels stand in the order
 * of their bytes, so the numbering depends neither on the order of rows nor on the number of threads. */
#include "io/csv/csv.h"

#include <jansson.h>
#include <stdlib.h>

struct entry {
    int32_t column, number; /* the level's number in order of arrival */
    const char *text;
};

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->column != y->column) return x->column < y->column ? -1 : 1;
    return strcmp(x->text, y->text);
}

static kiln_status sort_levels(struct entry **entries, const struct ki_csv_levels *levels) {
    size_t bytes = (size_t)levels->count * sizeof **entries;
    *entries = ki_alloc(bytes);
    if (!*entries) return ki_fail_nomem(bytes, "the levels' order");
    for (int64_t i = 0; i < levels->count; i++) {
        const struct ki_csv_level *level = ki_csv_level(levels, i);
        (*entries)[i] = (struct entry){level->column, (int32_t)i, levels->text.data + level->text};
    }
    qsort(*entries, (size_t)levels->count, sizeof **entries, compare_entries);
    return KILN_OK;
}

static kiln_status number_features(int32_t *feature, int64_t *cols, const struct ki_csv_schema *schema,
                                   const struct entry *entries) {
    int64_t next = 0, entry = 0;
    for (int64_t i = 0; i < schema->count; i++) {
        const struct ki_csv_column *column = &schema->columns[i];
        int64_t width = column->text ? column->levels : 1;
        if (next + width > INT32_MAX)
            return ki_fail(KILN_ERR_LIMIT, "the columns and their levels are 2^31 or more");
        feature[i] = (int32_t)next;
        for (int64_t k = 0; column->text && k < width; k++, entry++)
            feature[schema->count + entries[entry].number] = (int32_t)(next + k);
        next += width;
    }
    *cols = next;
    return KILN_OK;
}

static char *join(const char *name, const char *level) {
    size_t name_size = strlen(name), level_size = strlen(level);
    char *joined = ki_alloc(name_size + level_size + 2);
    if (!joined) return NULL;
    memcpy(joined, name, name_size);
    joined[name_size] = '=';
    memcpy(joined + name_size + 1, level, level_size + 1);
    return joined;
}

static kiln_status name_features(struct ki_table *table, const struct ki_csv_schema *schema,
                                 const struct entry *entries) {
    int64_t entry = 0, j = 0;
    table->feature_names = ki_calloc((size_t)table->cols * sizeof *table->feature_names);
    if (!table->feature_names) return ki_fail_nomem((size_t)table->cols * 8, "the features' names");
    for (int64_t i = 0; i < schema->count; i++) {
        const struct ki_csv_column *column = &schema->columns[i];
        int64_t width = column->text ? column->levels : 1;
        for (int64_t k = 0; k < width; k++, j++) {
            char *name = column->text ? join(column->name, entries[entry++].text) : ki_strdup(column->name);
            if (!name) return ki_fail_nomem(strlen(column->name), "the features' names");
            table->feature_names[j] = name;
        }
    }
    return KILN_OK;
}

/* A numeric target is its name, a text target {"name":...,"levels":[...]}. */
static json_t *target_json(const struct ki_table *table, const struct ki_csv_schema *schema, int64_t t) {
    if (!schema->targets[t].text) return json_string(schema->targets[t].name);
    json_t *object = json_object(), *levels = json_array();
    int failed = json_object_set_new(object, "name", json_string(schema->targets[t].name));
    for (int64_t k = 0; k < table->class_count[t]; k++)
        failed |= json_array_append_new(levels, json_string(table->class_names[t][k]));
    failed |= json_object_set_new(object, "levels", levels);
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

static kiln_status name_targets(struct ki_table *table, const struct ki_csv_schema *schema) {
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

/* NULL if memory is short, like every function of Jansson used here; a NULL value makes the next call fail
 * too. */
static json_t *column_json(const struct ki_csv_column *column, const struct entry *entries) {
    json_t *object = json_object();
    int failed = json_object_set_new(object, "name", json_string(column->name));
    failed |= json_object_set_new(object, "kind", json_string(column->text ? "text" : "number"));
    json_t *levels = column->text ? json_array() : NULL;
    for (int32_t k = 0; column->text && k < column->levels; k++)
        failed |= json_array_append_new(levels, json_string(entries[k].text));
    if (column->text) failed |= json_object_set_new(object, "levels", levels);
    if (!failed) return object;
    json_decref(object);
    return NULL;
}

static json_t *schema_json(const struct ki_table *table, const struct ki_csv_schema *schema,
                           const struct entry *entries) {
    json_t *root = json_object(), *targets = json_array(), *columns = json_array();
    int failed = 0;
    for (int64_t i = 0; i < schema->target_count; i++)
        failed |= json_array_append_new(targets, target_json(table, schema, i));
    for (int64_t i = 0; i < schema->count; i++) {
        failed |= json_array_append_new(columns, column_json(&schema->columns[i], entries));
        if (schema->columns[i].text) entries += schema->columns[i].levels;
    }
    failed |= json_object_set_new(root, "format", json_string("csv"));
    failed |= json_object_set_new(root, "target", targets);
    failed |= json_object_set_new(root, "columns", columns);
    if (!failed) return root;
    json_decref(root);
    return NULL;
}

static kiln_status write_schema(struct ki_table *table, const struct ki_csv_schema *schema,
                                const struct entry *entries) {
    json_t *root = schema_json(table, schema, entries);
    size_t size = root ? json_dumpb(root, NULL, 0, JSON_COMPACT) : 0;
    if (size > 0) table->schema = ki_alloc(size + 1);
    if (table->schema) {
        json_dumpb(root, table->schema, size, JSON_COMPACT);
        table->schema[size] = '\0';
    }
    json_decref(root);
    return table->schema ? KILN_OK : ki_fail_nomem(size, "the schema's text");
}

kiln_status ki_csv_schema_finish(int32_t **feature, struct ki_table *table,
                                 const struct ki_csv_schema *schema, const struct ki_csv_levels *levels) {
    kiln_status status = KILN_OK;
    struct entry *entries = NULL;
    int32_t *numbers = NULL;
    size_t bytes = (size_t)(schema->count + levels->count) * sizeof *numbers;
    TRY(sort_levels(&entries, levels));
    numbers = ki_alloc(bytes);
    if (!numbers) TRY(ki_fail_nomem(bytes, "the features' numbers"));
    TRY(number_features(numbers, &table->cols, schema, entries));
    TRY(name_features(table, schema, entries));
    TRY(name_targets(table, schema));
    TRY(write_schema(table, schema, entries));
    *feature = numbers;
    numbers = NULL;
done:
    ki_free(entries);
    ki_free(numbers);
    return status;
}
