/* kiln verify: what a model file claims about its training, against what slow reference code finds. */
#include "verify.h"

#include <math.h>
#include <string.h>

#include "commands.h"
#include "help.h"
#include "progress.h"
#include "verbs.h"

double verify_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

int64_t verify_choice(const json_t *options, const char *algorithm, const char *name) {
    const json_t *said = json_object_get(options, name);
    const kiln_option *option = algorithm_option(algorithm, name);
    char choice[STANDARD_ROOM];
    if (json_is_integer(said)) return json_integer_value(said);
    for (int64_t n = 1; option && json_is_string(said) && n <= (int64_t)option->most; n++) {
        option_choice(choice, option->choices, n);
        if (strcmp(choice, json_string_value(said)) == 0) return n;
    }
    return json_is_null(said) ? 0 : -1;
}

int verify_no_claims(void) {
    return fail_with(KILN_ERR_MODEL, USING_MODEL,
                     "models that kiln linreg, kiln logreg, ... or a Python estimator's fit() and save() "
                     "have made do, but "
                     "for those that docs/python.md names",
                     "the model does not say how it was trained");
}

int verify_read(struct run *run, struct verifying *v, const char *tensor, const char *claim) {
    kiln_type type = KILN_F64;
    int64_t rows, cols;
    if (!model_tensor_shape(v->model, tensor, &type, &rows, &cols) || isnan(verify_number(v->report, claim)))
        return verify_no_claims();
    int code = run_open_device(run, "cpu");
    if (!code) code = run_read(run, &v->data, run->arguments[1], type, v->model);
    return code ? code : run_read_columns(run, v->data, v->model, NULL, NULL);
}

int verify_other_data(const struct run *run, const char *what) {
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "the data that it was made from are needed",
                     "%s is no %s of %s", run->arguments[0], what, run->arguments[1]);
}

int verify_tensor(kiln_matrix **A, struct run *run, const struct verifying *v, const char *name, int64_t rows,
                  const char *what) {
    const kiln_type type = kiln_matrix_type(kiln_data_X(v->data));
    if (kiln_model_tensor(A, run->device, type, v->model, name) != KILN_OK) return fail_library(USING_MODEL);
    return kiln_matrix_rows(*A) == rows ? 0 : verify_other_data(run, what);
}

void claim_equal(struct verifying *v, const char *key, const char *title, double claimed, double found,
                 double digits, double slack) {
    struct claim claim = {key, title, claimed, found, false, false, !isnan(claimed)};
    claim.holds = fabs(found - claimed) <= fmax(digits * fabs(claimed), slack);
    v->claims[v->count++] = claim;
}

void claim_bound(struct verifying *v, const char *key, const char *title, double claimed, double found,
                 double factor, double least) {
    struct claim claim = {key, title, claimed, found, true, false, isfinite(claimed) && !isnan(found)};
    claim.holds = found <= fmax(factor * claimed, least);
    v->claims[v->count++] = claim;
}

static bool all_hold(const struct verifying *v) {
    bool all = true;
    for (int i = 0; i < v->count; i++) all &= v->claims[i].holds || !v->claims[i].known;
    return all;
}

/* A claim that the model does not make is not shown, nor that an entry of it is right. */
static void put_claim(struct result *row, const void *of, int64_t i) {
    const struct claim *claim = &((const struct verifying *)of)->claims[i];
    const bool entry = isnan(claim->claimed) && isnan(claim->found);
    const char *label = claim->known || !isnan(claim->claimed) ? "" : NULL;
    PUT(row, "name", TEXT(claim->key));
    PUT(row, NULL, TEXT(claim->title), .label = label, .before = "  ", .width = entry ? -58 : -12);
    PUT(row, "claimed", NUMBER(claim->claimed), .label = entry ? NULL : label, .width = 22,
        .format = claim->bound ? "at most %.3g" : "%.12g");
    PUT(row, "found", NUMBER(claim->found), .label = entry ? NULL : label, .width = 22, .format = "%.12g");
    PUT(row, "holds", .kind = claim->known ? ROW_FLAG : ROW_NONE, .count = claim->holds, .label = label,
        .before = "  ",
        .shown = !claim->known  ? "cannot be judged"
                 : claim->holds ? "holds"
                                : "DOES NOT HOLD");
}

static int tell(struct run *run, const struct verifying *v) {
    struct result result;
    const char *algorithm = kiln_model_text(v->model, "algorithm");
    result_begin(&result);
    run_put(&result, run, "kiln.verification/1");
    PUT(&result, NULL, TEXT(run->arguments[0]), .head = "");
    PUT(&result, "algorithm", TEXT(algorithm), .before = ": a model of ");
    run_put_shape(&result, kiln_data_X(v->data));
    PUT(&result, "holds", FLAG(all_hold(v)));
    PUT(&result, "claims", TABLE(v->count, put_claim, v),
        .head = result_words(&result, "  %-12s %22s %22s", "", "claimed", "found"));
    run_put_seconds(&result, run, false);
    const int code = run_tell(run, &result);
    result_free(&result);
    return code;
}

static int verify(struct run *run, struct verifying *v) {
    const char *report = kiln_model_text(v->model, "report");
    v->options = model_options(v->model);
    v->report = report ? json_loads(report, 0, NULL) : NULL;
    const char *algorithm = kiln_model_text(v->model, "algorithm");
    const struct verb *verb = verb_named(algorithm);
    run->data_of = verb;
    if (verb && verb->verify) {
        const int code = verb->verify(run, v);
        return code ? code : verify_record(run, v);
    }
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "", "nothing is known to verify in a model of %s",
                     algorithm);
}

int verb_verify(struct run *run) {
    struct verifying v = {0};
    int code = run_load_model(&v.model, run->arguments[0]);
    if (!code) code = verify(run, &v);
    progress_end();
    if (!code) {
        const int told = tell(run, &v);
        code = told ? told : all_hold(&v) ? EXIT_DONE : EXIT_NOT_CONVERGED;
    }
    json_decref(v.options);
    json_decref(v.report);
    kiln_data_free(v.data);
    kiln_model_free(v.model);
    return code;
}
