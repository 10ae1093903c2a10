/* A packed file has its targets, weights and levels already: options may only name what it has, and a model
 * has to have been trained on such columns. */
#include "core/seams.h"
#include "io/json.h"
#include "io/panels/panels.h"

static kiln_status refuse_role(const struct ki_panels_reader *r, const char *what, const char *asked,
                               const char *has) {
    const struct ki_place place = {r->name, 0, 0, -1};
    if (has)
        ki_fail_at(KILN_ERR_ARGUMENT, &place, "the file has '%.200s' as its %s, not '%.200s'", has, what,
                   asked);
    else
        ki_fail_at(KILN_ERR_ARGUMENT, &place, "the file has no %s, so that it cannot be '%.200s'", what,
                   asked);
    return ki_hint("kiln convert --%s says which column it is, and keeps it beside X", what);
}

/* Names of targets as an option lists them. */
static kiln_status list_targets(struct ki_bytes *list, const struct ki_table *table) {
    for (int64_t j = 0; table->target_names && j < table->targets; j++)
        if ((j > 0 && !ki_bytes_append(list, ",", 1)) ||
            !ki_bytes_append(list, table->target_names[j], (int64_t)strlen(table->target_names[j])))
            return ki_fail_nomem((size_t)list->size, "the targets' names");
    return ki_bytes_append(list, "", 1) ? KILN_OK : ki_fail_nomem(1, "the targets' names");
}

static kiln_status check_targets(const struct ki_table *table, const struct ki_panels_reader *r) {
    const char *asked = r->options->target;
    struct ki_bytes list = {NULL, 0, 0};
    kiln_status status;
    if (!asked) return KILN_OK;
    TRY(list_targets(&list, table));
    if (strcmp(list.data, asked) != 0) TRY(refuse_role(r, "target", asked, table->y ? list.data : NULL));
done:
    ki_bytes_free(&list);
    return status;
}

static kiln_status check_roles(const struct ki_table *table, const struct ki_panels_reader *r) {
    const kiln_read_options *options = r->options;
    const char *const asked[KI_TABLE_ROLES] = {options->weights, options->offset, options->groups};
    static const char *const words[KI_TABLE_ROLES] = {"weights", "offset", "groups"};
    kiln_status status = KILN_OK;
    for (int i = 0; i < KI_TABLE_ROLES; i++) {
        const char *has = table->role_names[i];
        if (asked[i] && (!has || strcmp(asked[i], has) != 0)) TRY(refuse_role(r, words[i], asked[i], has));
    }
done:
    return status;
}

/* Columns were chosen and encoded where the file was made. Nothing is missing there, so that what becomes of
 * missing values may be said in vain. */
static kiln_status check_columns(const struct ki_panels_reader *r) {
    const kiln_read_options *options = r->options;
    const char *const asked[] = {options->features, options->ignore,    options->categorical,
                                 options->numeric,  options->reference, options->interact};
    static const char *const words[] = {"features", "ignore",    "categorical",
                                        "numeric",  "reference", "interact"};
    const struct ki_place place = {r->name, 0, 0, -1};
    for (size_t i = 0; !options->model && i < sizeof asked / sizeof *asked; i++)
        if (asked[i]) {
            ki_fail_at(KILN_ERR_ARGUMENT, &place,
                       "the columns of a packed file are settled: --%s comes too late", words[i]);
            return ki_hint("kiln convert --%s makes a packed file of the table as it is to be", words[i]);
        }
    return KILN_OK;
}

/* ---------------------------------------------------------------------------------------------- a model */

/* Means, which may be those of other rows, tell no columns apart, unless missing values have them. */
static const struct ki_json *past_mean(const struct ki_json *value, bool means) {
    return value && !means && value->key && strcmp(value->key, "mean") == 0 ? value->next : value;
}

static bool equal(const struct ki_json *a, const struct ki_json *b, bool means) {
    if (a->kind != b->kind || (a->text && strcmp(a->text, b->text) != 0)) return false;
    if ((a->kind == KI_JSON_INTEGER || a->kind == KI_JSON_REAL) && a->real != b->real) return false;
    const struct ki_json *x = past_mean(a->first, means), *y = past_mean(b->first, means);
    for (; x && y; x = past_mean(x->next, means), y = past_mean(y->next, means))
        if ((x->key && strcmp(x->key, y->key) != 0) || !equal(x, y, means)) return false;
    return !x && !y;
}

/* Targets of the file have to be the model's, in the same order, if both have some. */
static kiln_status check_model_targets(const struct ki_table *table, const struct ki_place *place,
                                       const struct ki_json *target) {
    if (!target) return KILN_OK;
    for (int64_t j = 0; table->target_names && j < table->targets;
         j++, target = target ? target->next : NULL) {
        const struct ki_json *named = target && !target->text ? ki_json_member(target, "name") : target;
        if (named && named->text && strcmp(named->text, table->target_names[j]) == 0) continue;
        ki_fail_at(KILN_ERR_MODEL, place, "the file's target is '%.200s', the model's '%.200s'",
                   table->target_names[j], named && named->text ? named->text : "");
        return ki_hint("give it the CSV file, or a packed file with the model's targets, in their order");
    }
    return KILN_OK;
}

/* Classes of target j become the model's, whose names are `levels`; -1: the model does not know it, or the
 * file's model did not. Both are in the order of their bytes. */
static kiln_status number_anew(struct ki_table *table, kiln_type type, int64_t j,
                               const struct ki_json *levels) {
    const int64_t count = table->class_count[j];
    int64_t *number = ki_alloc((size_t)(count + 1) * sizeof *number), known = 0;
    char **names = ki_calloc((size_t)(levels->count + 1) * sizeof *names);
    kiln_status status = KILN_OK;
    if (!number || !names) TRY(ki_fail_nomem((size_t)count * 8, "the classes"));
    for (const struct ki_json *level = levels->first; level; level = level->next)
        if (!level->text || !(names[known++] = ki_strdup(level->text))) TRY(ki_fail_nomem(1, "the classes"));
    for (int64_t i = 0, at = 0; i < count; i++) {
        while (at < known && strcmp(names[at], table->class_names[j][i]) < 0) at++;
        number[i] = at < known && strcmp(names[at], table->class_names[j][i]) == 0 ? at : -1;
    }
    for (int64_t i = 0; i < table->rows; i++) {
        const int64_t at = i * table->targets + j, old = (int64_t)ki_element(table->y, type, at),
                      new = old < 0 ? -1 : number[old];
        if (type == KILN_F32)
            ((float *)table->y)[at] = (float)new;
        else
            ((double *)table->y)[at] = (double)new;
    }
    for (int64_t i = 0; i < count; i++) ki_free(table->class_names[j][i]);
    ki_free(table->class_names[j]);
    table->class_names[j] = names;
    table->class_count[j] = known;
    names = NULL;
done:
    for (int64_t i = 0; names && i < known; i++) ki_free(names[i]);
    ki_free(names);
    ki_free(number);
    return status;
}

static kiln_status take_model(struct ki_table *table, const struct ki_panels_reader *r,
                              const struct ki_json *model, const struct ki_json *own) {
    const struct ki_place place = {r->name, 0, 0, -1};
    const struct ki_json *columns = ki_json_member(model, "columns"), *have = ki_json_member(own, "columns"),
                         *target = ki_json_member(model, "target");
    kiln_status status = KILN_OK;
    if (!ki_json_is(columns, KI_JSON_LIST) || !ki_json_is(have, KI_JSON_LIST) ||
        !equal(columns, have, false)) {
        ki_fail_at(KILN_ERR_MODEL, &place,
                   "the columns or their levels are not those that the model was trained on");
        return ki_hint("give it the CSV file, whose levels are matched with the model's");
    }
    if (r->p.array[KI_PANELS_FILLED].type && !equal(columns, have, true)) {
        ki_fail_at(KILN_ERR_MODEL, &place,
                   "missing values have the means of the file's rows, not those of the model's training");
        return ki_hint("give it the CSV file, whose missing values get the model's means");
    }
    target = ki_json_is(target, KI_JSON_LIST) ? target->first : NULL;
    TRY(check_model_targets(table, &place, target));
    for (int64_t j = 0; table->class_names && target && j < table->targets; j++, target = target->next) {
        const struct ki_json *levels = ki_json_member(target, "levels");
        if (table->class_names[j] && ki_json_is(levels, KI_JSON_LIST))
            TRY(number_anew(table, r->options->type, j, levels));
    }
done:
    return status;
}

static kiln_status check_model(struct ki_table *table, const struct ki_panels_reader *r) {
    const struct ki_place place = {r->name, 0, 0, -1};
    const char *schema = r->options->model ? kiln_model_text(r->options->model, "schema") : NULL;
    struct ki_json *model = NULL, *own = NULL;
    struct ki_json_fault fault;
    kiln_status status = KILN_OK;
    if (!r->options->model) return KILN_OK;
    if (!schema || !*schema)
        return table->schema
                   ? ki_warn(&table->warnings, &place,
                             "see to it that the columns are those of training, in the same order",
                             "the model was trained on data without column names, so that columns are "
                             "taken by their place")
                   : KILN_OK;
    if (!table->schema) {
        ki_fail_at(KILN_ERR_MODEL, &place,
                   "the model was trained on columns with names, which the file lacks");
        return ki_hint("give it data with the columns that the training data had");
    }
    status = ki_json_parse(&model, &fault, schema, (int64_t)strlen(schema));
    if (status == KILN_OK)
        status = ki_json_parse(&own, &fault, table->schema, (int64_t)strlen(table->schema));
    if (status == KILN_ERR_PARSE)
        status = ki_fail_at(KILN_ERR_MODEL, &place, "the schema of the file or the model is damaged: %s",
                            fault.says);
    TRY(status);
    TRY(take_model(table, r, model, own));
done:
    ki_free(model);
    ki_free(own);
    return status;
}

kiln_status ki_panels_suit(struct ki_table *table, struct ki_panels_reader *r) {
    kiln_status status;
    TRY(check_columns(r));
    TRY(check_targets(table, r));
    TRY(check_roles(table, r));
    TRY(check_model(table, r));
done:
    return status;
}
