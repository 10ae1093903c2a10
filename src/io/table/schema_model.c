/* A model's schema and a file. The schema is JSON text in the model file,
 *   {"format":"csv","target":["arr_delay"],"columns":[{"name":"dep_delay","kind":"number"},
 *    {"name":"carrier","kind":"text","levels":["AA","UA"]}]}
 * and is as little trusted as any input: every key, type, name and order is checked before use. The file's
 * columns are then found by name. */
#include <stdio.h>
#include <stdlib.h>

#include "io/table/schema.h"
#include "io/json.h"

/* ------------------------------------------------------------------------------------ a model's schema */

/* A schema that the model's text should not have. */
static kiln_status bad_schema(const char *reason) {
    ki_fail(KILN_ERR_MODEL, "the model's schema is damaged: %s", reason);
    return ki_hint("save the model again, or use the one it was copied from");
}

static bool has_only(const struct ki_json *object, const char *const *keys) {
    for (const struct ki_json *member = object->first; member; member = member->next) {
        const char *const *known = keys;
        while (*known && strcmp(*known, member->key) != 0) known++;
        if (!*known) return false;
    }
    return true;
}

static kiln_status model_levels(struct ki_table_levels *levels, struct ki_table_column *column,
                                int32_t number, const struct ki_json *texts) {
    if (!ki_json_is(texts, KI_JSON_LIST)) return bad_schema("a text column without \"levels\"");
    if (texts->count > KI_TABLE_MODEL_LIMIT) return bad_schema("a column has too many levels");
    const char *before = NULL;
    for (const struct ki_json *value = texts->first; value; value = value->next) {
        const char *level = ki_json_text(value);
        if (!level) return bad_schema("a level is not a string");
        if (before && strcmp(before, level) >= 0) return bad_schema("levels are not in order");
        if (ki_table_levels_add(levels, number, level, (int64_t)strlen(level)) < 0)
            return ki_fail_nomem(strlen(level), "the model's levels");
        before = level;
    }
    column->text = true;
    column->levels = (int32_t)texts->count;
    column->first = (int32_t)(levels->count - column->levels);
    return KILN_OK;
}

/* {"name":...,"kind":"text","levels":[...],"reference":"..."} */
static kiln_status model_text_column(struct ki_table_levels *levels, struct ki_table_column *column,
                                     int32_t number, const struct ki_json *object) {
    static const char *const keys[] = {"name", "kind", "of", "levels", "reference", NULL};
    const struct ki_json *reference = ki_json_member(object, "reference");
    if (!has_only(object, keys))
        return bad_schema("a text column is not {name, kind, of, levels, reference}");
    kiln_status status = model_levels(levels, column, number, ki_json_member(object, "levels"));
    if (status != KILN_OK) return status;
    if (!reference) return KILN_OK;
    const char *level = ki_json_text(reference);
    if (!level) return bad_schema("a reference level is not a string");
    column->reference = ki_table_levels_find(levels, number, level, (int64_t)strlen(level));
    if (column->reference < 0) return bad_schema("a reference level is not among the levels");
    column->reference_level = ki_strdup(level);
    return column->reference_level ? KILN_OK : ki_fail_nomem(strlen(level), "a reference level");
}

/* {"name":...,"kind":"number","mean":...,"indicator":true} */
static kiln_status model_number_column(struct ki_table_column *column, const struct ki_json *object) {
    static const char *const keys[] = {"name", "kind", "mean", "indicator", NULL};
    const struct ki_json *mean = ki_json_member(object, "mean"),
                         *indicator = ki_json_member(object, "indicator");
    if (!has_only(object, keys)) return bad_schema("a numeric column is not {name, kind, mean, indicator}");
    if ((mean && mean->kind != KI_JSON_INTEGER && mean->kind != KI_JSON_REAL) ||
        (indicator && (!ki_json_is(indicator, KI_JSON_TRUE) || !mean)))
        return bad_schema("a mean is no number, or an indicator is not true or has no mean");
    column->imputed = mean != NULL;
    column->mean = mean ? mean->real : 0;
    column->indicator = indicator != NULL;
    return KILN_OK;
}

/* "of":["a","b"], which are text columns before it. */
static kiln_status model_pair(const struct ki_table_schema *schema, struct ki_table_column *column,
                              const struct ki_json *of) {
    const struct ki_json *name = ki_json_is(of, KI_JSON_LIST) && of->count == 2 ? of->first : NULL;
    if (!name) return bad_schema("a pair is not of two columns");
    for (int k = 0; k < 2; k++, name = name->next) {
        const char *wanted = ki_json_text(name);
        column->of[k] = -1;
        for (int32_t i = 0; wanted && &schema->columns[i] < column; i++)
            if (schema->columns[i].text && !schema->columns[i].pair &&
                strcmp(schema->columns[i].name, wanted) == 0)
                column->of[k] = i;
        if (column->of[k] < 0) return bad_schema("a pair is of a column that is no text column before it");
    }
    column->pair = true;
    return KILN_OK;
}

static kiln_status model_column(struct ki_table_schema *schema, struct ki_table_levels *levels,
                                const struct ki_json *object) {
    const char *name = ki_json_text(ki_json_member(object, "name"));
    const char *kind = ki_json_text(ki_json_member(object, "kind"));
    if (!name || !kind) return bad_schema("a column has no name or no kind");
    struct ki_table_column *column = &schema->columns[schema->count];
    kiln_status status = ki_table_set_name(column, name);
    if (status != KILN_OK) return status;
    int32_t number = (int32_t)schema->count++;
    const struct ki_json *of = ki_json_member(object, "of");
    if (of && (status = model_pair(schema, column, of)) != KILN_OK) return status;
    if (number > 0 && column[-1].pair && !of) return bad_schema("a column stands behind a pair");
    if (strcmp(kind, "text") == 0) return model_text_column(levels, column, number, object);
    if (strcmp(kind, "number") != 0) return bad_schema("a column is neither \"number\" nor \"text\"");
    return model_number_column(column, object);
}

static kiln_status model_ignored(struct ki_table_schema *schema, const struct ki_json *names) {
    kiln_status status = KILN_OK;
    if (!names) return KILN_OK;
    if (!ki_json_is(names, KI_JSON_LIST)) return bad_schema("\"ignored\" is no list");
    TRY(ki_table_new_columns(&schema->ignored, names->count));
    for (const struct ki_json *value = names->first; value; value = value->next) {
        const char *name = ki_json_text(value);
        if (!name) TRY(bad_schema("the name of an ignored column is not a string"));
        TRY(ki_table_set_name(&schema->ignored[schema->ignored_count++], name));
    }
done:
    return status;
}

static kiln_status model_missing(struct ki_table_schema *schema, const struct ki_json *way,
                                 const struct ki_json *words) {
    const char *name = ki_json_text(way);
    schema->missing = KILN_MISSING_ERROR;
    if (way && (!name || (strcmp(name, "mean") != 0 && strcmp(name, "indicator") != 0)))
        return bad_schema("\"missing\" is neither \"mean\" nor \"indicator\"");
    if (way) schema->missing = strcmp(name, "mean") == 0 ? KILN_MISSING_MEAN : KILN_MISSING_INDICATOR;
    if (words && !ki_json_is(words, KI_JSON_LIST)) return bad_schema("\"missing_words\" is no list");
    for (const struct ki_json *value = words ? words->first : NULL; value; value = value->next) {
        const char *word = ki_json_text(value);
        if (!word) return bad_schema("a word for missing values is not a string");
        if (!ki_bytes_append(&schema->missing_words, word, (int64_t)strlen(word) + 1))
            return ki_fail_nomem(strlen(word), "the words for missing values");
    }
    return KILN_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* No name may stand for two columns. */
static kiln_status check_unique(const struct ki_table_schema *schema) {
    int64_t count = schema->count + schema->target_count;
    const char **names = ki_alloc((size_t)count * sizeof *names);
    if (!names) return ki_fail_nomem((size_t)count * sizeof *names, "the columns' names");
    for (int64_t i = 0; i < schema->count; i++) names[i] = schema->columns[i].name;
    for (int64_t i = 0; i < schema->target_count; i++) names[schema->count + i] = schema->targets[i].name;
    qsort(names, (size_t)count, sizeof *names, compare_names);
    bool twice = false;
    for (int64_t i = 1; i < count; i++) twice |= strcmp(names[i - 1], names[i]) == 0;
    ki_free(names);
    return twice ? bad_schema("a column's name stands twice") : KILN_OK;
}

/* A target's name, or {name, levels} where it is text. */
static kiln_status model_target(struct ki_table_schema *schema, struct ki_table_levels *classes,
                                const struct ki_json *value) {
    static const char *const keys[] = {"name", "levels", NULL};
    const bool text = ki_json_is(value, KI_JSON_OBJECT);
    const char *name = ki_json_text(text ? ki_json_member(value, "name") : value);
    if (!name || (text && !has_only(value, keys)))
        return bad_schema("a target is not a string or {name, levels}");
    struct ki_table_column *target = &schema->targets[schema->target_count];
    kiln_status status = ki_table_set_name(target, name);
    if (status != KILN_OK) return status;
    target->target = true;
    const int32_t number = (int32_t)schema->target_count++;
    return text ? model_levels(classes, target, number, ki_json_member(value, "levels")) : KILN_OK;
}

static kiln_status model_root(struct ki_table_schema *schema, struct ki_table_levels *levels,
                              struct ki_table_levels *classes, const struct ki_json *root) {
    static const char *const keys[] = {"format",  "target",        "columns", "ignored",
                                       "missing", "missing_words", NULL};
    kiln_status status = KILN_OK;
    const char *format = ki_json_text(ki_json_member(root, "format"));
    const struct ki_json *targets = ki_json_member(root, "target"),
                         *columns = ki_json_member(root, "columns");
    if (!format || !ki_json_is(targets, KI_JSON_LIST) || !ki_json_is(columns, KI_JSON_LIST) ||
        !has_only(root, keys))
        return bad_schema("it is not {format, target, columns}");
    if (strcmp(format, "csv") != 0) return bad_schema("its format is not \"csv\"");
    if (columns->count == 0) return bad_schema("it has no columns");
    if (columns->count > INT32_MAX) return bad_schema("it has too many columns");
    TRY(ki_table_new_columns(&schema->targets, targets->count));
    for (const struct ki_json *value = targets->first; value; value = value->next)
        TRY(model_target(schema, classes, value));
    TRY(ki_table_new_columns(&schema->columns, columns->count));
    for (const struct ki_json *value = columns->first; value; value = value->next)
        TRY(model_column(schema, levels, value));
    TRY(model_ignored(schema, ki_json_member(root, "ignored")));
    TRY(model_missing(schema, ki_json_member(root, "missing"), ki_json_member(root, "missing_words")));
    TRY(check_unique(schema));
    schema->frozen = true;
done:
    return status;
}

kiln_status ki_table_schema_from_model(struct ki_table_schema *schema, struct ki_table_levels *levels,
                                       struct ki_table_levels *classes, const char *text) {
    struct ki_json *root = NULL;
    struct ki_json_fault fault;
    kiln_status status = ki_json_parse(&root, &fault, text, (int64_t)strlen(text));
    if (status == KILN_ERR_PARSE) return bad_schema(fault.says);
    if (status == KILN_OK) status = model_root(schema, levels, classes, root);
    ki_free(root);
    return status;
}

/* ------------------------------------------------------------------------- a model's schema and a file */

static int compare_entries(const void *a, const void *b) {
    return compare_names(*(char *const *const *)a, *(char *const *const *)b);
}

/* The place of name among count names, found by way of `sorted`, pointers to them in order. */
static int64_t look_up(const char *name, char *const *names, char *const **sorted, int64_t count) {
    char *const *key = (char *const *)&name, *const * *found;
    found = bsearch(&key, sorted, (size_t)count, sizeof *sorted, compare_entries);
    return found ? *found - names : -1;
}

static kiln_status missing_column(const struct ki_table_column *column, int64_t others,
                                  const struct ki_place *place) {
    char shown[64];
    ki_table_excerpt(shown, column->name, (int64_t)strlen(column->name));
    if (others == 0)
        ki_fail_at(KILN_ERR_MODEL, place, "the model needs a column '%s', which the file lacks", shown);
    else
        ki_fail_at(KILN_ERR_MODEL, place,
                   "the model needs a column '%s' and %lld others, which the file lacks", shown,
                   (long long)others);
    return ki_hint("columns are matched by name; give the file the header that the training data had");
}

/* Finds how a model's missing numbers are taken where the options say otherwise. */
static kiln_status match_missing(struct ki_table_schema *schema, const kiln_read_options *options,
                                 const struct ki_place *place) {
    if (options->missing >= KILN_MISSING_MEAN && schema->missing < KILN_MISSING_MEAN) {
        ki_fail_at(KILN_ERR_MODEL, place, "the model keeps no means to put where numbers are missing");
        return ki_hint("train it with kiln_read_options.missing mean, or leave rows out here: drop");
    }
    if (options->missing == KILN_MISSING_ERROR || options->missing == KILN_MISSING_DROP) {
        schema->missing = options->missing;
        schema->text_missing_error = options->missing == KILN_MISSING_ERROR;
        for (int64_t i = 0; i < schema->count; i++) schema->columns[i].imputed = false;
    }
    return ki_table_add_words(&schema->missing_words, options->missing_words);
}

static kiln_status check_extra(struct ki_table_schema *schema, struct ki_warnings *warnings,
                               char *const *names, int64_t count, const struct ki_table_column *former,
                               int64_t former_count, kiln_extra extra, const struct ki_place *place) {
    char listed[300] = "", shown[64];
    size_t used = 0;
    int64_t further = 0;
    bool *known = ki_calloc((size_t)count * sizeof *known);
    if (!known) return ki_fail_nomem((size_t)count, "the columns");
    for (int64_t i = 0; i < schema->count; i++) known[schema->columns[i].field] = true;
    for (int64_t i = 0; i < schema->ignored_count; i++)
        if (schema->ignored[i].field >= 0) known[schema->ignored[i].field] = true;
    for (int64_t i = 0; i < former_count; i++) /* the model's targets, where the options name others */
        if (former[i].field >= 0) known[former[i].field] = true;
    for (int64_t field = 0; field < count; field++) {
        if (known[field] || !ki_table_is_free(schema, field)) continue;
        if (further++ >= 5 || used >= sizeof listed) continue;
        used += (size_t)snprintf(listed + used, sizeof listed - used, "%s'%s'", further > 1 ? ", " : "",
                                 ki_table_excerpt(shown, names[field], (int64_t)strlen(names[field])));
    }
    ki_free(known);
    if (further == 0 || extra == KILN_EXTRA_IGNORE) return KILN_OK;
    const char *more = further > 5 ? ", ..." : "", *plural = further == 1 ? "" : "s";
    if (extra == KILN_EXTRA_ERROR) {
        ki_fail_at(KILN_ERR_MODEL, place, "%lld column%s the model does not know: %s%s", (long long)further,
                   plural, listed, more);
        return ki_hint("use the data's own model, or kiln_read_options.extra_columns ignore");
    }
    return ki_warn(warnings, place, "kiln_read_options.extra_columns ignore says that this is meant",
                   "%lld column%s that the model does not know ignored: %s%s", (long long)further, plural,
                   listed, more);
}

kiln_status ki_table_schema_match(struct ki_table_schema *schema, struct ki_warnings *warnings,
                                  char *const *names, int64_t count, const kiln_read_options *options,
                                  const struct ki_place *place) {
    kiln_status status = KILN_OK;
    const char *target = options->target;
    char *const **sorted = ki_alloc((size_t)count * sizeof *sorted);
    struct ki_table_column *former = NULL; /* the schema's own targets, once others replace them */
    int64_t former_count = 0;
    if (!sorted) TRY(ki_fail_nomem((size_t)count * sizeof *sorted, "the columns' names"));
    for (int64_t i = 0; i < count; i++) sorted[i] = &names[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_entries);
    const struct ki_table_column *missing = NULL;
    int64_t missing_count = 0, present = 0;
    for (int64_t i = 0; i < schema->count; i++) {
        struct ki_table_column *column = &schema->columns[i];
        column->field =
            column->pair ? schema->columns[column->of[0]].field : look_up(column->name, names, sorted, count);
        if (column->pair) column->with = schema->columns[column->of[1]].field;
        if (column->field >= 0 || column->pair) continue;
        if (missing_count++ == 0) missing = &schema->columns[i];
    }
    if (missing) TRY(missing_column(missing, missing_count - 1, place));
    for (int64_t i = 0; i < schema->ignored_count; i++)
        schema->ignored[i].field = look_up(schema->ignored[i].name, names, sorted, count);
    TRY(match_missing(schema, options, place));
    for (int64_t i = 0; i < schema->target_count; i++) {
        schema->targets[i].field = look_up(schema->targets[i].name, names, sorted, count);
        present += schema->targets[i].field >= 0;
    }
    if (!target && present == schema->target_count) {
        TRY(ki_table_find_roles(schema, names, count, options, place));
        TRY(check_extra(schema, warnings, names, count, NULL, 0, options->extra_columns, place));
        goto done;
    }
    former = schema->targets;
    former_count = schema->target_count;
    schema->targets = NULL;
    schema->target_count = 0;
    if (target) TRY(ki_table_find_targets(schema, names, count, target, place));
    /* A target that is named again keeps its classes, which are known by its place. */
    for (int64_t i = 0; i < ki_min(schema->target_count, former_count); i++) {
        if (strcmp(schema->targets[i].name, former[i].name) != 0) continue;
        schema->targets[i].text = former[i].text;
        schema->targets[i].levels = former[i].levels;
    }
    TRY(ki_table_find_roles(schema, names, count, options, place));
    TRY(check_extra(schema, warnings, names, count, former, former_count, options->extra_columns, place));
done:
    for (int64_t i = 0; i < former_count; i++) ki_free(former[i].name);
    ki_free(former);
    ki_free(sorted);
    return status;
}
