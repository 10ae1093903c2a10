/* Targets that are text: classes, numbered 0, 1, ... in the order of their bytes.
 *
 * While the file is read a class has the number of its arrival, as the levels of features have; at the end
 * every y_i is replaced by its rank. */
#include <stdlib.h>

#include "io/table/table.h"
#include "io/labels.h"
#include "io/number.h"

struct entry {
    int32_t target, number;
    const char *text;
};

static int compare_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    return strcmp(x->text, y->text);
}

static bool all_plain(const struct ki_table_levels *classes, int32_t target, kiln_type type) {
    for (int64_t i = 0; i < classes->count; i++) {
        const struct ki_table_level *level = ki_table_level(classes, i);
        if (level->column == target &&
            !ki_label_is_plain(classes->text.data + level->text, level->size, type))
            return false;
    }
    return true;
}

/* y of a target: the class that came as the i-th becomes the number that it says. Its text is followed by a
 * NUL. */
static void number_target(void *y, kiln_type type, int64_t rows, const struct ki_table_schema *schema,
                          int64_t t, const struct ki_table_levels *classes) {
    for (int64_t i = t; i < rows * schema->target_count; i += schema->target_count) {
        const double number = type == KILN_F32 ? (double)((float *)y)[i] : ((double *)y)[i];
        if (!(number >= 0)) continue;
        const struct ki_table_level *level = ki_table_level(classes, (int64_t)number);
        const char *text = classes->text.data + level->text;
        double value;
        ki_parse_real(&text, text + level->size, type == KILN_F32, &value);
        if (type == KILN_F32)
            ((float *)y)[i] = (float)value;
        else
            ((double *)y)[i] = value;
    }
}

void ki_table_classes_settle(void *y, kiln_type type, int64_t rows, struct ki_table_schema *schema,
                             const struct ki_table_levels *classes) {
    for (int64_t t = 0; t < schema->target_count; t++) {
        struct ki_table_column *target = &schema->targets[t];
        if (!target->label || !all_plain(classes, (int32_t)t, type)) continue;
        target->text = false;
        number_target(y, type, rows, schema, t, classes);
    }
}

static kiln_status name_classes(struct ki_table *table, int32_t *rank, const struct entry *entries,
                                int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const int32_t target = entries[i].target;
        if (!table->class_names[target]) continue; /* its labels have become numbers */
        int64_t *named = &table->class_count[target];
        char *name = ki_strdup(entries[i].text);
        if (!name) return ki_fail_nomem(strlen(entries[i].text), "the classes' names");
        table->class_names[target][*named] = name;
        rank[entries[i].number] = (int32_t)(*named)++;
    }
    return KILN_OK;
}

static kiln_status make_room(struct ki_table *table, const struct ki_table_schema *schema) {
    size_t bytes = (size_t)schema->target_count * sizeof *table->class_names;
    table->class_names = ki_calloc(bytes);
    table->class_count = ki_calloc((size_t)schema->target_count * sizeof *table->class_count);
    if (!table->class_names || !table->class_count) return ki_fail_nomem(bytes, "the classes");
    table->targets = schema->target_count;
    for (int64_t t = 0; t < schema->target_count; t++) {
        if (!schema->targets[t].text) continue;
        bytes = (size_t)ki_max(schema->targets[t].levels, 1) * sizeof **table->class_names;
        table->class_names[t] = ki_calloc(bytes);
        if (!table->class_names[t]) return ki_fail_nomem(bytes, "the classes");
    }
    return KILN_OK;
}

kiln_status ki_table_classes_finish(int32_t **rank, struct ki_table *table,
                                    const struct ki_table_schema *schema,
                                    const struct ki_table_levels *classes) {
    kiln_status status = KILN_OK;
    struct entry *entries = ki_alloc((size_t)classes->count * sizeof *entries);
    int32_t *ranks = ki_alloc((size_t)classes->count * sizeof *ranks);
    if (!entries || !ranks)
        TRY(ki_fail_nomem((size_t)classes->count * sizeof *entries, "the order of the classes"));
    TRY(make_room(table, schema));
    for (int64_t i = 0; i < classes->count; i++) {
        const struct ki_table_level *level = ki_table_level(classes, i);
        entries[i] = (struct entry){level->column, (int32_t)i, classes->text.data + level->text};
    }
    qsort(entries, (size_t)classes->count, sizeof *entries, compare_entries);
    TRY(name_classes(table, ranks, entries, classes->count));
    *rank = ranks;
    ranks = NULL;
done:
    ki_free(entries);
    ki_free(ranks);
    return status;
}

void ki_table_classes_number(void *y, kiln_type type, int64_t rows, const struct ki_table_schema *schema,
                             const int32_t *rank) {
    for (int64_t t = 0; t < schema->target_count; t++) {
        if (!schema->targets[t].text) continue;
        for (int64_t i = t; i < rows * schema->target_count; i += schema->target_count) {
            if (type == KILN_F32) {
                float *value = (float *)y + i;
                if (*value >= 0) *value = (float)rank[(int32_t)*value];
            } else {
                double *value = (double *)y + i;
                if (*value >= 0) *value = rank[(int32_t)*value];
            }
        }
    }
}
