/* The schema of a CSV file: which columns are features, of which kind, with which levels, and which are
 * targets.
 *
 * A new file's schema grows from its header and first rows. A model's schema is JSON text in the model file,
 *   {"format":"csv","target":["arr_delay"],"columns":[{"name":"dep_delay","kind":"number"},
 *    {"name":"carrier","kind":"text","levels":["AA","UA"]}]}
 * and is as little trusted as any input: every key, type, name and order is checked before use. */
#include "io/csv/csv.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

void ki_csv_schema_free(struct ki_csv_schema *schema) {
    for (int64_t i = 0; schema->columns && i < schema->count; i++) ki_free(schema->columns[i].name);
    for (int64_t i = 0; schema->targets && i < schema->target_count; i++) ki_free(schema->targets[i].name);
    for (int64_t i = 0; schema->columns && i < schema->count; i++)
        ki_free(schema->columns[i].reference_level);
    for (int64_t i = 0; schema->ignored && i < schema->ignored_count; i++) ki_free(schema->ignored[i].name);
    for (int i = 0; i < KI_CSV_ROLES; i++) ki_free(schema->roles[i].name);
    ki_bytes_free(&schema->missing_words);
    ki_free(schema->columns);
    ki_free(schema->targets);
    ki_free(schema->ignored);
    *schema = (struct ki_csv_schema){0};
}

/* Room for count columns more than there are; the array's memory is zeroed. */
static kiln_status new_columns(struct ki_csv_column **columns, int64_t count) {
    int64_t bytes;
    if (!ki_mul(count, sizeof **columns, &bytes)) return ki_fail(KILN_ERR_LIMIT, "too many columns");
    *columns = ki_calloc((size_t)bytes);
    for (int64_t i = 0; *columns && i < count; i++) (*columns)[i].reference = -1;
    return *columns ? KILN_OK : ki_fail_nomem((size_t)bytes, "the columns' table");
}

static kiln_status set_name(struct ki_csv_column *column, const char *name) {
    column->name = ki_strdup(name);
    return column->name ? KILN_OK : ki_fail_nomem(strlen(name) + 1, "a column's name");
}

/* ------------------------------------------------------------------------------ names and near misses */

enum { NAME_COMPARED = 48, NAMES_COMPARED = 4096 };

static char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Number of letters to insert, delete or change (Wagner and Fischer, 1974), over the first letters of both;
 * capital letters are no change. */
static int distance(const char *a, const char *b) {
    int row[NAME_COMPARED + 1], columns = (int)ki_min((int64_t)strlen(b), NAME_COMPARED);
    for (int j = 0; j <= columns; j++) row[j] = j;
    for (int i = 1; i <= NAME_COMPARED && a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int change = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            diagonal = row[j];
            int shift = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            row[j] = change < shift ? change : shift;
        }
    }
    return row[columns];
}

kiln_status ki_csv_unknown_column(const char *what, const char *target, char *const *names, int64_t count,
                                  const struct ki_place *place) {
    char shown[64], near[64];
    int64_t best = -1;
    const int length = (int)ki_min((int64_t)strlen(target), NAME_COMPARED);
    int best_distance = length <= 1 ? 1 : 2 + length / 4; /* of one letter no other is like it */
    for (int64_t i = 0; i < ki_min(count, NAMES_COMPARED); i++) {
        int d = distance(target, names[i]);
        if (d >= best_distance) continue;
        best = i;
        best_distance = d;
    }
    ki_csv_excerpt(shown, target, (int64_t)strlen(target));
    kiln_status status =
        ki_fail_at(KILN_ERR_ARGUMENT, place, "%s '%s' is not a column of the file", what, shown);
    const char *last = names[count - 1];
    if (best >= 0)
        return ki_hint("did you mean '%s'?", ki_csv_excerpt(near, names[best], (int64_t)strlen(names[best])));
    ki_hint("the header has %lld columns, from '%s' to '%s'", (long long)count,
            ki_csv_excerpt(near, names[0], (int64_t)strlen(names[0])),
            ki_csv_excerpt(shown, last, (int64_t)strlen(last)));
    return status;
}

int64_t ki_csv_find_name(char *const *names, int64_t count, const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* Fills schema->targets with the columns that `target` names: the whole text if that is a column, else its
 * parts. */
static kiln_status find_targets(struct ki_csv_schema *schema, char *const *names, int64_t count,
                                const char *target, const struct ki_place *place) {
    kiln_status status = KILN_OK;
    bool whole = ki_csv_find_name(names, count, target) >= 0;
    int64_t parts = 1;
    for (const char *p = target; !whole && (p = strchr(p, ',')); p++) parts++;
    char *copy = ki_strdup(target);
    if (!copy) return ki_fail_nomem(strlen(target) + 1, "the target's name");
    TRY(new_columns(&schema->targets, parts));
    for (char *name = copy, *next; name; name = next) {
        next = whole ? NULL : strchr(name, ',');
        if (next) *next++ = '\0';
        int64_t field = ki_csv_find_name(names, count, name);
        if (field < 0) TRY(ki_csv_unknown_column("target", name, names, count, place));
        for (int64_t i = 0; i < schema->target_count; i++)
            if (schema->targets[i].field == field)
                TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "target '%s' is named twice", name));
        struct ki_csv_column *column = &schema->targets[schema->target_count++];
        TRY(set_name(column, name));
        column->field = field;
        column->target = true;
    }
done:
    ki_free(copy);
    return status;
}

/* Fills schema->roles. A target that were a weight too would be used twice. */
static kiln_status find_roles(struct ki_csv_schema *schema, char *const *names, int64_t count,
                              const kiln_read_options *options, const struct ki_place *place) {
    static const char *const titles[KI_CSV_ROLES] = {"weights", "offset"};
    const char *wanted[KI_CSV_ROLES] = {options->weights, options->offset};
    kiln_status status = KILN_OK;
    for (int i = 0; i < KI_CSV_ROLES; i++) {
        if (!wanted[i]) continue;
        const int64_t field = ki_csv_find_name(names, count, wanted[i]);
        if (field < 0) TRY(ki_csv_unknown_column(titles[i], wanted[i], names, count, place));
        for (int64_t t = 0; t < schema->target_count; t++)
            if (schema->targets[t].field == field)
                TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "column '%s' cannot be both target and %s",
                               wanted[i], titles[i]));
        schema->roles[i].field = field;
        TRY(set_name(&schema->roles[i], wanted[i]));
    }
done:
    return status;
}

/* Whether the column is neither target nor anything else. */
static bool is_free(const struct ki_csv_schema *schema, int64_t field) {
    for (int64_t i = 0; i < schema->target_count; i++)
        if (schema->targets[i].field == field) return false;
    for (int i = 0; i < KI_CSV_ROLES; i++)
        if (schema->roles[i].name && schema->roles[i].field == field) return false;
    return true;
}

/* A column takes its name over. */
static struct ki_csv_column *take_column(struct ki_csv_column *columns, int64_t *count, char **name,
                                         int64_t field) {
    struct ki_csv_column *column = &columns[(*count)++];
    column->name = *name;
    column->field = field;
    *name = NULL;
    return column;
}

static kiln_status fail_no_features(const kiln_read_options *options, const struct ki_place *place) {
    ki_fail_at(KILN_ERR_DATA, place,
               options->features || options->ignore ? "no column is left to be a feature"
                                                    : "there is no column besides the target");
    return ki_hint("is the delimiter a comma, a semicolon or a tab?");
}

static kiln_status choose_columns(struct ki_csv_schema *schema, char **names, int64_t count,
                                  const kiln_read_options *options, const unsigned char *bits,
                                  const struct ki_place *place) {
    kiln_status status = KILN_OK;
    TRY(new_columns(&schema->columns, count));
    TRY(new_columns(&schema->ignored, count));
    for (int64_t field = 0; field < count; field++) {
        if (!is_free(schema, field)) {
            if (bits[field] & KI_CSV_FEATURE)
                TRY(ki_fail_at(KILN_ERR_ARGUMENT, place,
                               "column '%s' cannot be both a feature and target, weights or offset",
                               names[field]));
            continue;
        }
        const bool wanted = options->features ? bits[field] & KI_CSV_FEATURE : !(bits[field] & KI_CSV_IGNORE);
        if (!wanted) {
            take_column(schema->ignored, &schema->ignored_count, &names[field], field);
            continue;
        }
        struct ki_csv_column *column = take_column(schema->columns, &schema->count, &names[field], field);
        column->forced = bits[field] & (KI_CSV_CATEGORICAL | KI_CSV_NUMERIC);
        column->text = bits[field] & KI_CSV_CATEGORICAL;
    }
    if (schema->count == 0) TRY(fail_no_features(options, place));
done:
    return status;
}

kiln_status ki_csv_schema_from_header(struct ki_csv_schema *schema, char **names, int64_t count,
                                      const kiln_read_options *options, const struct ki_place *place) {
    kiln_status status = KILN_OK;
    unsigned char *bits = NULL;
    schema->missing = options->missing ? options->missing : KILN_MISSING_ERROR;
    TRY(ki_csv_add_words(&schema->missing_words, options->missing_words));
    if (options->target) TRY(find_targets(schema, names, count, options->target, place));
    TRY(find_roles(schema, names, count, options, place));
    TRY(ki_csv_choices(&bits, names, count, options, place));
    TRY(choose_columns(schema, names, count, options, bits, place));
    TRY(ki_csv_choose_references(schema, options->reference, place));
done:
    ki_free(bits);
    return status;
}

/* ------------------------------------------------------------------------------------ a model's schema */

kiln_status ki_csv_bad_schema(const char *reason) {
    ki_fail(KILN_ERR_MODEL, "the model's schema is damaged: %s", reason);
    return ki_hint("save the model again, or use the one it was copied from");
}

static bool has_only(json_t *object, const char *const *keys) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const char *const *known = keys;
        while (*known && strcmp(*known, key) != 0) known++;
        if (!*known) return false;
    }
    return true;
}

static kiln_status model_levels(struct ki_csv_levels *levels, struct ki_csv_column *column, int32_t number,
                                json_t *texts) {
    if (!json_is_array(texts)) return ki_csv_bad_schema("a text column without \"levels\"");
    if (json_array_size(texts) > KI_CSV_MODEL_LIMIT) return ki_csv_bad_schema("a column has too many levels");
    const char *before = NULL;
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const char *level = json_string_value(json_array_get(texts, i));
        if (!level) return ki_csv_bad_schema("a level is not a string");
        if (before && strcmp(before, level) >= 0) return ki_csv_bad_schema("levels are not in order");
        if (ki_csv_levels_add(levels, number, level, (int64_t)strlen(level)) < 0)
            return ki_fail_nomem(strlen(level), "the model's levels");
        before = level;
    }
    column->text = true;
    column->levels = (int32_t)json_array_size(texts);
    column->first = (int32_t)(levels->count - column->levels);
    return KILN_OK;
}

/* {"name":...,"kind":"text","levels":[...],"reference":"..."} */
static kiln_status model_text_column(struct ki_csv_levels *levels, struct ki_csv_column *column,
                                     int32_t number, json_t *object) {
    static const char *const keys[] = {"name", "kind", "levels", "reference", NULL};
    json_t *reference = json_object_get(object, "reference");
    if (!has_only(object, keys))
        return ki_csv_bad_schema("a text column is not {name, kind, levels, reference}");
    kiln_status status = model_levels(levels, column, number, json_object_get(object, "levels"));
    if (status != KILN_OK) return status;
    if (!reference) return KILN_OK;
    const char *level = json_string_value(reference);
    if (!level) return ki_csv_bad_schema("a reference level is not a string");
    column->reference = ki_csv_levels_find(levels, number, level, (int64_t)strlen(level));
    if (column->reference < 0) return ki_csv_bad_schema("a reference level is not among the levels");
    column->reference_level = ki_strdup(level);
    return column->reference_level ? KILN_OK : ki_fail_nomem(strlen(level), "a reference level");
}

/* {"name":...,"kind":"number","mean":...,"indicator":true} */
static kiln_status model_number_column(struct ki_csv_column *column, json_t *object) {
    static const char *const keys[] = {"name", "kind", "mean", "indicator", NULL};
    json_t *mean = json_object_get(object, "mean"), *indicator = json_object_get(object, "indicator");
    if (!has_only(object, keys))
        return ki_csv_bad_schema("a numeric column is not {name, kind, mean, indicator}");
    if ((mean && !json_is_number(mean)) || (indicator && (!json_is_true(indicator) || !mean)))
        return ki_csv_bad_schema("a mean is no number, or an indicator is not true or has no mean");
    column->imputed = mean != NULL;
    column->mean = mean ? json_number_value(mean) : 0;
    column->indicator = indicator != NULL;
    return KILN_OK;
}

static kiln_status model_column(struct ki_csv_schema *schema, struct ki_csv_levels *levels, json_t *object) {
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (!name || !kind) return ki_csv_bad_schema("a column has no name or no kind");
    struct ki_csv_column *column = &schema->columns[schema->count];
    kiln_status status = set_name(column, name);
    if (status != KILN_OK) return status;
    int32_t number = (int32_t)schema->count++;
    if (strcmp(kind, "text") == 0) return model_text_column(levels, column, number, object);
    if (strcmp(kind, "number") != 0) return ki_csv_bad_schema("a column is neither \"number\" nor \"text\"");
    return model_number_column(column, object);
}

static kiln_status model_ignored(struct ki_csv_schema *schema, json_t *names) {
    kiln_status status = KILN_OK;
    if (!names) return KILN_OK;
    if (!json_is_array(names)) return ki_csv_bad_schema("\"ignored\" is no list");
    TRY(new_columns(&schema->ignored, (int64_t)json_array_size(names)));
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (!name) TRY(ki_csv_bad_schema("the name of an ignored column is not a string"));
        TRY(set_name(&schema->ignored[schema->ignored_count++], name));
    }
done:
    return status;
}

static kiln_status model_missing(struct ki_csv_schema *schema, json_t *way, json_t *words) {
    const char *name = json_string_value(way);
    schema->missing = KILN_MISSING_ERROR;
    if (way && (!name || (strcmp(name, "mean") != 0 && strcmp(name, "indicator") != 0)))
        return ki_csv_bad_schema("\"missing\" is neither \"mean\" nor \"indicator\"");
    if (way) schema->missing = strcmp(name, "mean") == 0 ? KILN_MISSING_MEAN : KILN_MISSING_INDICATOR;
    if (words && !json_is_array(words)) return ki_csv_bad_schema("\"missing_words\" is no list");
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (!word) return ki_csv_bad_schema("a word for missing values is not a string");
        if (!ki_bytes_append(&schema->missing_words, word, (int64_t)strlen(word) + 1))
            return ki_fail_nomem(strlen(word), "the words for missing values");
    }
    return KILN_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* No name may stand for two columns. */
static kiln_status check_unique(const struct ki_csv_schema *schema) {
    int64_t count = schema->count + schema->target_count;
    const char **names = ki_alloc((size_t)count * sizeof *names);
    if (!names) return ki_fail_nomem((size_t)count * sizeof *names, "the columns' names");
    for (int64_t i = 0; i < schema->count; i++) names[i] = schema->columns[i].name;
    for (int64_t i = 0; i < schema->target_count; i++) names[schema->count + i] = schema->targets[i].name;
    qsort(names, (size_t)count, sizeof *names, compare_names);
    bool twice = false;
    for (int64_t i = 1; i < count; i++) twice |= strcmp(names[i - 1], names[i]) == 0;
    ki_free(names);
    return twice ? ki_csv_bad_schema("a column's name stands twice") : KILN_OK;
}

/* A target's name, or {name, levels} where it is text. */
static kiln_status model_target(struct ki_csv_schema *schema, struct ki_csv_levels *classes, json_t *value) {
    static const char *const keys[] = {"name", "levels", NULL};
    const bool text = json_is_object(value);
    const char *name = json_string_value(text ? json_object_get(value, "name") : value);
    if (!name || (text && !has_only(value, keys)))
        return ki_csv_bad_schema("a target is not a string or {name, levels}");
    struct ki_csv_column *target = &schema->targets[schema->target_count];
    kiln_status status = set_name(target, name);
    if (status != KILN_OK) return status;
    target->target = true;
    const int32_t number = (int32_t)schema->target_count++;
    return text ? model_levels(classes, target, number, json_object_get(value, "levels")) : KILN_OK;
}

static kiln_status model_root(struct ki_csv_schema *schema, struct ki_csv_levels *levels,
                              struct ki_csv_levels *classes, json_t *root) {
    static const char *const keys[] = {"format",  "target",        "columns", "ignored",
                                       "missing", "missing_words", NULL};
    kiln_status status = KILN_OK;
    const char *format = json_string_value(json_object_get(root, "format"));
    json_t *targets = json_object_get(root, "target"), *columns = json_object_get(root, "columns");
    if (!format || !json_is_array(targets) || !json_is_array(columns) || !has_only(root, keys))
        return ki_csv_bad_schema("it is not {format, target, columns}");
    if (strcmp(format, "csv") != 0) return ki_csv_bad_schema("its format is not \"csv\"");
    if (json_array_size(columns) == 0) return ki_csv_bad_schema("it has no columns");
    if (json_array_size(columns) > INT32_MAX) return ki_csv_bad_schema("it has too many columns");
    TRY(new_columns(&schema->targets, (int64_t)json_array_size(targets)));
    for (size_t i = 0; i < json_array_size(targets); i++)
        TRY(model_target(schema, classes, json_array_get(targets, i)));
    TRY(new_columns(&schema->columns, (int64_t)json_array_size(columns)));
    for (size_t i = 0; i < json_array_size(columns); i++)
        TRY(model_column(schema, levels, json_array_get(columns, i)));
    TRY(model_ignored(schema, json_object_get(root, "ignored")));
    TRY(model_missing(schema, json_object_get(root, "missing"), json_object_get(root, "missing_words")));
    TRY(check_unique(schema));
    schema->frozen = true;
done:
    return status;
}

kiln_status ki_csv_schema_from_model(struct ki_csv_schema *schema, struct ki_csv_levels *levels,
                                     struct ki_csv_levels *classes, const char *text) {
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root) return ki_csv_bad_schema(error.text);
    kiln_status status = model_root(schema, levels, classes, root);
    json_decref(root);
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

static kiln_status missing_column(const struct ki_csv_column *column, int64_t others,
                                  const struct ki_place *place) {
    char shown[64];
    ki_csv_excerpt(shown, column->name, (int64_t)strlen(column->name));
    if (others == 0)
        ki_fail_at(KILN_ERR_MODEL, place, "the model needs a column '%s', which the file lacks", shown);
    else
        ki_fail_at(KILN_ERR_MODEL, place,
                   "the model needs a column '%s' and %lld others, which the file lacks", shown,
                   (long long)others);
    return ki_hint("columns are matched by name; give the file the header that the training data had");
}

/* How a model's missing numbers are taken where the options say otherwise. */
static kiln_status match_missing(struct ki_csv_schema *schema, const kiln_read_options *options,
                                 const struct ki_place *place) {
    if (options->missing >= KILN_MISSING_MEAN && schema->missing < KILN_MISSING_MEAN) {
        ki_fail_at(KILN_ERR_MODEL, place, "the model keeps no means to put where numbers are missing");
        return ki_hint("train it with kiln_read_options.missing mean, or leave rows out here: drop");
    }
    if (options->missing == KILN_MISSING_ERROR || options->missing == KILN_MISSING_DROP) {
        schema->missing = options->missing;
        for (int64_t i = 0; i < schema->count; i++) schema->columns[i].imputed = false;
    }
    return ki_csv_add_words(&schema->missing_words, options->missing_words);
}

static kiln_status check_extra(struct ki_csv_schema *schema, struct ki_warnings *warnings, char *const *names,
                               int64_t count, const struct ki_csv_column *former, int64_t former_count,
                               kiln_extra extra, const struct ki_place *place) {
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
        if (known[field] || !is_free(schema, field)) continue;
        if (further++ >= 5 || used >= sizeof listed) continue;
        used += (size_t)snprintf(listed + used, sizeof listed - used, "%s'%s'", further > 1 ? ", " : "",
                                 ki_csv_excerpt(shown, names[field], (int64_t)strlen(names[field])));
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

kiln_status ki_csv_schema_match(struct ki_csv_schema *schema, struct ki_warnings *warnings,
                                char *const *names, int64_t count, const kiln_read_options *options,
                                const struct ki_place *place) {
    kiln_status status = KILN_OK;
    const char *target = options->target;
    char *const **sorted = ki_alloc((size_t)count * sizeof *sorted);
    struct ki_csv_column *former = NULL; /* the schema's own targets, once others replace them */
    int64_t former_count = 0;
    if (!sorted) TRY(ki_fail_nomem((size_t)count * sizeof *sorted, "the columns' names"));
    for (int64_t i = 0; i < count; i++) sorted[i] = &names[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_entries);
    const struct ki_csv_column *missing = NULL;
    int64_t missing_count = 0, present = 0;
    for (int64_t i = 0; i < schema->count; i++) {
        schema->columns[i].field = look_up(schema->columns[i].name, names, sorted, count);
        if (schema->columns[i].field >= 0) continue;
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
        TRY(find_roles(schema, names, count, options, place));
        TRY(check_extra(schema, warnings, names, count, NULL, 0, options->extra_columns, place));
        goto done;
    }
    former = schema->targets;
    former_count = schema->target_count;
    schema->targets = NULL;
    schema->target_count = 0;
    if (target) TRY(find_targets(schema, names, count, target, place));
    /* A target that is named again keeps its classes, which are known by its place. */
    for (int64_t i = 0; i < ki_min(schema->target_count, former_count); i++) {
        if (strcmp(schema->targets[i].name, former[i].name) != 0) continue;
        schema->targets[i].text = former[i].text;
        schema->targets[i].levels = former[i].levels;
    }
    TRY(find_roles(schema, names, count, options, place));
    TRY(check_extra(schema, warnings, names, count, former, former_count, options->extra_columns, place));
done:
    for (int64_t i = 0; i < former_count; i++) ki_free(former[i].name);
    ki_free(former);
    ki_free(sorted);
    return status;
}
