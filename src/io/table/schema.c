/* The schema of a table: which columns are features, of which kind, with which levels, and which are
 * targets. That of a new file grows from its header, here, and its first rows; that of a model is in
 * schema_model.c. */
#include "io/table/schema.h"

#include <stdio.h>
#include <stdlib.h>

#include "io/number.h"

void ki_table_schema_free(struct ki_table_schema *schema) {
    for (int64_t i = 0; schema->columns && i < schema->count; i++) ki_free(schema->columns[i].name);
    for (int64_t i = 0; schema->targets && i < schema->target_count; i++) ki_free(schema->targets[i].name);
    for (int64_t i = 0; schema->columns && i < schema->count; i++)
        ki_free(schema->columns[i].reference_level);
    for (int64_t i = 0; schema->ignored && i < schema->ignored_count; i++) ki_free(schema->ignored[i].name);
    for (int i = 0; i < KI_TABLE_ROLES; i++) ki_free(schema->roles[i].name);
    ki_bytes_free(&schema->missing_words);
    ki_free(schema->columns);
    ki_free(schema->targets);
    ki_free(schema->ignored);
    *schema = (struct ki_table_schema){0};
}

kiln_status ki_table_new_columns(struct ki_table_column **columns, int64_t count) {
    int64_t bytes;
    if (!ki_mul(count, sizeof **columns, &bytes)) return ki_fail(KILN_ERR_LIMIT, "too many columns");
    *columns = ki_calloc((size_t)bytes);
    for (int64_t i = 0; *columns && i < count; i++) (*columns)[i].reference = -1;
    return *columns ? KILN_OK : ki_fail_nomem((size_t)bytes, "the columns' table");
}

kiln_status ki_table_set_name(struct ki_table_column *column, const char *name) {
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

kiln_status ki_table_unknown_column(const char *what, const char *target, char *const *names, int64_t count,
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
    ki_table_excerpt(shown, target, (int64_t)strlen(target));
    kiln_status status =
        ki_fail_at(KILN_ERR_ARGUMENT, place, "%s '%s' is not a column of the file", what, shown);
    const char *last = names[count - 1];
    if (best >= 0)
        return ki_hint("did you mean '%s'?",
                       ki_table_excerpt(near, names[best], (int64_t)strlen(names[best])));
    ki_hint("the header has %lld columns, from '%s' to '%s'", (long long)count,
            ki_table_excerpt(near, names[0], (int64_t)strlen(names[0])),
            ki_table_excerpt(shown, last, (int64_t)strlen(last)));
    return status;
}

/* Returns where a column without a name stands that is called by its number alone, 3 for column3, -1 for the
 * last; or -1. */
static int64_t find_number(char *const *names, int64_t count, const char *text) {
    const char *at = text;
    char own[32];
    int64_t number;
    if (!ki_parse_int64(&at, text + strlen(text), &number) || *at) return -1;
    const int64_t i = number < 0 ? count + number : number - 1;
    snprintf(own, sizeof own, "column%lld", (long long)i + 1);
    return i >= 0 && i < count && strcmp(names[i], own) == 0 ? i : -1;
}

/* The place of a name among count names, or -1. */
static int64_t find_name(char *const *names, int64_t count, const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return find_number(names, count, name);
}

/* Fills schema->targets with the columns that `target` names: the whole text if that is a column, else its
 * parts. */
kiln_status ki_table_find_targets(struct ki_table_schema *schema, char *const *names, int64_t count,
                                  const char *target, const struct ki_place *place) {
    kiln_status status = KILN_OK;
    bool whole = find_name(names, count, target) >= 0;
    int64_t parts = 1;
    for (const char *p = target; !whole && (p = strchr(p, ',')); p++) parts++;
    char *copy = ki_strdup(target);
    if (!copy) return ki_fail_nomem(strlen(target) + 1, "the target's name");
    TRY(ki_table_new_columns(&schema->targets, parts));
    for (char *name = copy, *next; name; name = next) {
        next = whole ? NULL : strchr(name, ',');
        if (next) *next++ = '\0';
        int64_t field = find_name(names, count, name);
        if (field < 0) TRY(ki_table_unknown_column("target", name, names, count, place));
        for (int64_t i = 0; i < schema->target_count; i++)
            if (schema->targets[i].field == field)
                TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "target '%s' is named twice", name));
        struct ki_table_column *column = &schema->targets[schema->target_count++];
        TRY(ki_table_set_name(column, names[field]));
        column->field = field;
        column->target = true;
    }
done:
    ki_free(copy);
    return status;
}

/* Fills schema->roles. A target that were a weight too would be used twice. */
kiln_status ki_table_find_roles(struct ki_table_schema *schema, char *const *names, int64_t count,
                                const kiln_read_options *options, const struct ki_place *place) {
    static const char *const titles[KI_TABLE_ROLES] = {"weights", "offset", "groups"};
    const char *wanted[KI_TABLE_ROLES] = {options->weights, options->offset, options->groups};
    kiln_status status = KILN_OK;
    for (int i = 0; i < KI_TABLE_ROLES; i++) {
        if (!wanted[i]) continue;
        const int64_t field = find_name(names, count, wanted[i]);
        if (field < 0) TRY(ki_table_unknown_column(titles[i], wanted[i], names, count, place));
        for (int64_t t = 0; t < schema->target_count; t++)
            if (schema->targets[t].field == field)
                TRY(ki_fail_at(KILN_ERR_ARGUMENT, place, "column '%s' cannot be both target and %s",
                               wanted[i], titles[i]));
        schema->roles[i].field = field;
        TRY(ki_table_set_name(&schema->roles[i], names[field]));
    }
done:
    return status;
}

/* Returns whether the column is neither target nor anything else. */
bool ki_table_is_free(const struct ki_table_schema *schema, int64_t field) {
    for (int64_t i = 0; i < schema->target_count; i++)
        if (schema->targets[i].field == field) return false;
    for (int i = 0; i < KI_TABLE_ROLES; i++)
        if (schema->roles[i].name && schema->roles[i].field == field) return false;
    return true;
}

/* A column takes its name over. */
static struct ki_table_column *take_column(struct ki_table_column *columns, int64_t *count, char **name,
                                           int64_t field) {
    struct ki_table_column *column = &columns[(*count)++];
    column->name = *name;
    column->field = field;
    *name = NULL;
    return column;
}

static kiln_status fail_no_features(const kiln_read_options *options, const struct ki_place *place) {
    ki_fail_at(KILN_ERR_DATA, place,
               options->features || options->ignore ? "no column is left to be a feature"
                                                    : "there is no column besides the target");
    return ki_hint("is the delimiter a comma, a semicolon, a tab or blanks?");
}

/* Returns whether it is a feature; else it is ignored, if it is free. */
static bool is_wanted(const kiln_read_options *options, unsigned char bits) {
    return options->features ? bits & KI_TABLE_FEATURE : !(bits & KI_TABLE_IGNORE);
}

static kiln_status choose_columns(struct ki_table_schema *schema, char **names, int64_t count,
                                  const kiln_read_options *options, const unsigned char *bits,
                                  const struct ki_place *place) {
    kiln_status status = KILN_OK;
    int64_t wanted = 0, pairs = options->interact != NULL;
    for (const char *p = options->interact; p && (p = strchr(p, ',')); p++) pairs++;
    for (int64_t field = 0; field < count; field++) wanted += is_wanted(options, bits[field]);
    TRY(ki_table_new_columns(&schema->columns, wanted + pairs));
    TRY(ki_table_new_columns(&schema->ignored, count - wanted));
    for (int64_t field = 0; field < count; field++) {
        if (!ki_table_is_free(schema, field)) {
            if (bits[field] & KI_TABLE_FEATURE)
                TRY(ki_fail_at(KILN_ERR_ARGUMENT, place,
                               "column '%s' cannot be both a feature and target, weights, offset or groups",
                               names[field]));
            continue;
        }
        if (!is_wanted(options, bits[field])) {
            take_column(schema->ignored, &schema->ignored_count, &names[field], field);
            continue;
        }
        struct ki_table_column *column = take_column(schema->columns, &schema->count, &names[field], field);
        column->forced = bits[field] & (KI_TABLE_CATEGORICAL | KI_TABLE_NUMERIC);
        column->text = bits[field] & KI_TABLE_CATEGORICAL;
    }
    if (schema->count == 0) TRY(fail_no_features(options, place));
done:
    return status;
}

/* Reads what the options say of targets. */
static kiln_status choose_targets(struct ki_table_schema *schema, const kiln_read_options *options,
                                  const unsigned char *bits, const struct ki_place *place) {
    for (int64_t t = 0; t < schema->target_count; t++) {
        struct ki_table_column *target = &schema->targets[t];
        const unsigned char said = bits[target->field];
        if ((said & KI_TABLE_CATEGORICAL) && !options->text_targets) {
            ki_fail_at(KILN_ERR_ARGUMENT, place, "target '%s' is a number here, and cannot be categorical",
                       target->name);
            return ki_hint("kiln logreg and kiln svm take classes by name (kiln_read_options.text_targets)");
        }
        target->forced = said & (KI_TABLE_CATEGORICAL | KI_TABLE_NUMERIC);
        target->text = said & KI_TABLE_CATEGORICAL;
        if (target->forced || options->text_targets != KILN_TARGETS_LABELS) continue;
        target->text = target->label = target->forced = true;
    }
    return KILN_OK;
}

kiln_status ki_table_schema_from_header(struct ki_table_schema *schema, char **names, int64_t count,
                                        const kiln_read_options *options, const struct ki_place *place) {
    kiln_status status = KILN_OK;
    unsigned char *bits = NULL;
    schema->missing = options->missing ? options->missing : KILN_MISSING_ERROR;
    schema->text_missing_error = options->missing == KILN_MISSING_ERROR;
    TRY(ki_table_add_words(&schema->missing_words, options->missing_words));
    if (options->target) TRY(ki_table_find_targets(schema, names, count, options->target, place));
    TRY(ki_table_find_roles(schema, names, count, options, place));
    TRY(ki_table_choices(&bits, names, count, options, place));
    TRY(choose_targets(schema, options, bits, place));
    TRY(choose_columns(schema, names, count, options, bits, place));
    TRY(ki_table_choose_pairs(schema, options->interact, place));
    TRY(ki_table_choose_references(schema, options->reference, place));
done:
    ki_free(bits);
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(**(char *const *const *)a, **(char *const *const *)b);
}

kiln_status ki_table_check_names(char **names, int64_t count, const struct ki_place *place) {
    size_t bytes = (size_t)count * sizeof(char **);
    char ***sorted = ki_alloc(bytes), shown[64];
    if (!sorted) return ki_fail_nomem(bytes, "the columns' names");
    for (int64_t i = 0; i < count; i++) sorted[i] = &names[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_names);
    const char *twice = NULL;
    for (int64_t i = 1; i < count; i++)
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0) twice = *sorted[i];
    ki_free(sorted);
    if (!twice) return KILN_OK;
    ki_table_excerpt(shown, twice, (int64_t)strlen(twice));
    ki_fail_at(KILN_ERR_PARSE, place, "two columns are named '%s'", shown);
    return ki_hint("columns are told apart by name; rename one");
}

void ki_table_settle_missing(struct ki_table_schema *schema) {
    for (int64_t i = 0; i < schema->count; i++) {
        struct ki_table_column *column = &schema->columns[i];
        column->imputed = !column->text && schema->missing >= KILN_MISSING_MEAN;
        column->indicator = !column->text && schema->missing == KILN_MISSING_INDICATOR;
    }
}
