/* kiln verify of factor and topic models: the entries held out once more, by what the model keeps of that,
 * and the objective of the rest as slow reference code finds it. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "progress.h"
#include "solve.h"
#include "verify.h"

kiln_status verify_keep_split(kiln_model *model, double fraction, int64_t seed) {
    json_t *object = json_object();
    json_put_number(object, "fraction", fraction);
    json_put_count(object, "seed", seed);
    return solve_set_json(model, "held_out", object);
}

/* The entries that the model was trained on. */
static int take_training(kiln_matrix **train, kiln_matrix **test, const struct verifying *v) {
    const char *text = kiln_model_text(v->model, "held_out");
    json_t *split = text ? json_loads(text, 0, NULL) : NULL;
    const double fraction = verify_number(split, "fraction");
    const uint64_t seed = (uint64_t)json_integer_value(json_object_get(split, "seed"));
    json_decref(split);
    if (!text) return 0;
    return kiln_split_entries(train, test, kiln_data_X(v->data), fraction, seed) == KILN_OK
               ? 0
               : fail_library(USING_MODEL);
}

static int check_shape(const struct run *run, const struct verifying *v, int64_t rows, int64_t cols) {
    const kiln_matrix *X = kiln_data_X(v->data);
    if (kiln_matrix_format(X) == KILN_CSR && kiln_matrix_rows(X) == rows && kiln_matrix_cols(X) == cols)
        return 0;
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "the data that it was trained on are needed",
                     "%s is a model of %s x %s, and %s is something else", run->arguments[0],
                     text_count(rows), text_count(cols), run->arguments[1]);
}

kiln_status claimed_settings(double *settings, const struct claimed_factors *claimed, const char *name) {
    kiln_matrix *values = NULL;
    kiln_status status =
        kiln_model_tensor(&values, kiln_matrix_device(claimed->X), KILN_F64, claimed->model, name);
    if (status == KILN_OK) status = kiln_matrix_get(settings, values);
    kiln_matrix_free(values);
    return status;
}

/* The sum of the squares of X's entries: an objective beside which it is all there is, is rounding. */
static int squares_of(double *sum, const kiln_matrix *X) {
    const int64_t count = kiln_matrix_nnz(X);
    const bool single = kiln_matrix_type(X) == KILN_F32;
    void *values = malloc((size_t)count * (single ? sizeof(float) : sizeof(double)) + 1);
    if (!values) return fail_with(KILN_ERR_NOMEM, USING_MODEL, "", "out of memory for the entries");
    const kiln_status status = kiln_matrix_get_csr(NULL, NULL, values, X);
    *sum = 0;
    for (int64_t e = 0; status == KILN_OK && e < count; e++) {
        const double value = single ? ((const float *)values)[e] : ((const double *)values)[e];
        *sum += value * value;
    }
    free(values);
    return status == KILN_OK ? 0 : fail_library(USING_MODEL);
}

/* A run has converged where an iteration gains at most the tolerance; the next one gains no more, but for
 * a factor, as gains shrink, if not at each of them: one of three times the tolerance was seen after one
 * below it. */
static int claim_converged(struct verifying *v, const struct recomputed *found,
                           const struct claimed_factors *claimed, const struct refactored *code) {
    enum { FACTOR = 10 };
    kiln_report report = {.size = sizeof report};
    const double most = fmax(verify_number(v->report, "residual"), verify_number(v->options, "tolerance"));
    double squares;
    if (!json_is_true(json_object_get(v->report, "converged")) || isnan(most)) return 0;
    const int failed = squares_of(&squares, claimed->X);
    if (failed) return failed;
    if (code->again(&report, claimed, v->options) != KILN_OK) return fail_library(USING_MODEL);
    const double unit = kiln_matrix_type(claimed->A) == KILN_F32 ? FLT_EPSILON : DBL_EPSILON;
    const double rounding = found->rounding + unit * (unit * squares + DBL_EPSILON * fabs(found->value));
    if (fabs(found->value) <= 4 * rounding) /* a perfect fit: all that is left to gain is rounding */
        goto done;
    claim_bound(v, "residual", "residual", most, report.residual, FACTOR, 4 * rounding / fabs(found->value));
done:
    kiln_report_free(&report);
    return 0;
}

int verify_factors(struct run *run, struct verifying *v, const char *claim,
                   const struct refactored *code_of) {
    struct claimed_factors claimed = {.model = v->model};
    kiln_matrix *train = NULL, *test = NULL;
    kiln_type type = KILN_F64;
    int64_t rows = 0, cols = 0, width;
    struct recomputed found = {.key = NULL};
    if (isnan(verify_number(v->report, claim))) return verify_no_claims();
    model_tensor_shape(v->model, "B", &type, &cols, &width);
    model_tensor_shape(v->model, "A", &type, &rows, &width);
    int code = run_open_device(run, "cpu");
    if (!code) code = run_read(run, &v->data, run->arguments[1], type, NULL);
    if (!code) code = run_read_columns(run, v->data, v->model, NULL, NULL);
    if (!code) code = check_shape(run, v, rows, cols);
    if (!code) code = take_training(&train, &test, v);
    const double start = clock_seconds();
    claimed.X = train ? train : v->data ? kiln_data_X(v->data) : NULL;
    if (!code && (kiln_model_tensor(&claimed.A, run->device, type, v->model, "A") != KILN_OK ||
                  kiln_model_tensor(&claimed.B, run->device, type, v->model, "B") != KILN_OK ||
                  code_of->recompute(&found, &claimed) != KILN_OK))
        code = fail_library(USING_MODEL);
    run->seconds.solve = clock_seconds() - start;
    /* Topics' rounding counts the terms alone; their sums lose some more. */
    const double digits = !found.key ? 0 : type == KILN_F32 ? 1e-5 : 1e-10;
    if (!code)
        claim_equal(v, claim, claim, verify_number(v->report, claim), found.value, digits, found.rounding);
    if (!code && found.key)
        claim_equal(v, found.key, found.key, verify_number(v->report, found.key), found.figure, digits,
                    found.figure_rounding);
    if (!code) code = claim_converged(v, &found, &claimed, code_of);
    kiln_matrix *const all[] = {train, test, claimed.A, claimed.B};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    return code;
}
