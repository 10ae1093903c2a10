/* kiln verify: what a model file claims about its training, against what slow reference code finds. */
#include "verify.h"

#include <math.h>
#include <string.h>

#include "help.h"
#include "progress.h"
#include "verbs.h"

double verify_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

int verify_no_claims(void) {
    return fail_with(
        KILN_ERR_MODEL, USING_MODEL,
        "models that kiln linreg, kiln logreg, ... or a Python estimator's fit() and save() have made do",
        "the model does not say how it was trained");
}

int verify_read(struct run *run, struct verifying *v, const char *tensor, const char *claim) {
    kiln_type type = KILN_F64;
    int64_t rows, cols;
    if (!model_tensor_shape(v->model, tensor, &type, &rows, &cols) || isnan(verify_number(v->report, claim)))
        return verify_no_claims();
    const int code = run_open_device(run, "cpu");
    return code ? code : run_read(run, &v->data, run->arguments[1], type, v->model);
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

static int tell_json(struct run *run, const struct verifying *v) {
    json_t *object = run_json(run, "kiln.verification/1"), *array = json_array();
    json_put_text(object, "algorithm", kiln_model_text(v->model, "algorithm"));
    run_json_shape(object, kiln_data_X(v->data));
    json_put_flag(object, "holds", all_hold(v));
    for (int i = 0; i < v->count; i++) {
        const struct claim *from = &v->claims[i];
        json_t *claim = json_object();
        json_put_text(claim, "name", from->key);
        json_put_number(claim, "claimed", from->claimed);
        json_put_number(claim, "found", from->found);
        json_put(claim, "holds", from->known ? json_boolean(from->holds) : json_null());
        json_add(array, claim);
    }
    json_put(object, "claims", array);
    run_json_seconds(run, object);
    return json_print(object);
}

static void tell_people(const struct run *run, const struct verifying *v) {
    text_put(stdout, run->arguments[0], 0);
    printf(": a model of %s\n", kiln_model_text(v->model, "algorithm"));
    printf("  %-12s %22s %22s\n", "", "claimed", "found");
    for (int i = 0; i < v->count; i++) {
        const struct claim *claim = &v->claims[i];
        char claimed[32];
        if (isnan(claim->claimed) && isnan(claim->found)) {
            if (claim->known) printf("  %-58s  DOES NOT HOLD\n", claim->title);
            continue;
        }
        if (!claim->known && isnan(claim->claimed)) continue;
        snprintf(claimed, sizeof claimed, claim->bound ? "at most %.3g" : "%.12g", claim->claimed);
        printf("  %-12s %22s %22.12g  %s\n", claim->title, claimed, claim->found,
               !claim->known  ? "cannot be judged"
               : claim->holds ? "holds"
                              : "DOES NOT HOLD");
    }
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
        return code ? code : verify_told(run, v);
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
        if (!talk_json()) tell_people(run, &v);
        const int told = talk_json() ? tell_json(run, &v) : 0;
        code = told ? told : all_hold(&v) ? EXIT_DONE : EXIT_NOT_CONVERGED;
    }
    json_decref(v.options);
    json_decref(v.report);
    kiln_data_free(v.data);
    kiln_model_free(v.model);
    return code;
}
