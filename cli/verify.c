/* kiln verify: what a model file claims about its training, against what slow reference code finds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "progress.h"
#include "verbs.h"

struct verifying {
    kiln_model *model;
    kiln_data *data;
    json_t *options, *report; /* what the model file says */
    struct classes classes;
    kiln_loss loss;
    kiln_verify_options penalty;
    kiln_matrix *W, *b, *y, *weights, *offset; /* y in the loss's numbers */
    kiln_verification found;
};

struct claim {
    const char *key, *title;
    double claimed, found;
    bool holds, known; /* known: it can be judged */
};

/* ---------------------------------------------------------------------------------------- the model */

static double number_in(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int no_claims(void) {
    return fail_with(KILN_ERR_MODEL, USING_MODEL, "models that kiln has trained do",
                     "the model does not say how it was trained");
}

/* A file that training used must be given again; columns of the data are found by the names that the model keeps. */
static int check_column(const struct verifying *v, const char *what, const char *column, const char *file) {
    char key[24];
    snprintf(key, sizeof key, "%s_file", what);
    const char *used = json_string_value(json_object_get(v->options, key));
    const char *used_column = json_string_value(json_object_get(v->options, what));
    if (used && !file)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give the file that training used",
                         "the model was trained with --%s-file %s", what, used);
    if ((file && !used) || (column && !used_column))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave it out", "the model was trained without --%s%s",
                         what, file ? "-file" : "");
    return 0;
}

static int read_claims(const struct run *run, struct verifying *v) {
    const char *report = kiln_model_text(v->model, "report");
    v->options = model_options(v->model);
    v->report = report ? json_loads(report, 0, NULL) : NULL;
    v->penalty.l2 = number_in(v->options, "l2");
    if (isnan(v->penalty.l2) || isnan(number_in(v->report, "objective"))) return no_claims();
    if (json_object_get(v->options, "l1")) v->penalty.l1 = number_in(v->options, "l1");
    v->penalty.standardize = json_is_true(json_object_get(v->options, "standardize"));
    const struct settings *settings = run->settings;
    int code = check_column(v, "weights", settings->weights, settings->weights_file);
    return code ? code : check_column(v, "offset", settings->offset, settings->offset_file);
}

/* ----------------------------------------------------------------------------------------- the data */

/* A new matrix of one column from doubles, of the type of `like`. */
static int column_of(kiln_matrix **column, const double *values, const kiln_matrix *like) {
    kiln_matrix *wide = NULL;
    kiln_status status =
        kiln_matrix_dense(&wide, kiln_matrix_device(like), KILN_F64, kiln_matrix_rows(like), 1, values);
    if (status == KILN_OK)
        status = kiln_matrix_copy(column, kiln_matrix_device(like), kiln_matrix_type(like), wide);
    kiln_matrix_free(wide);
    return status == KILN_OK ? 0 : fail_library(WORKING);
}

/* Values become numbers of classes. */
static int number_labels(struct verifying *v, double *y, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t class = classes_find(&v->classes, y[i]);
        if (class < 0)
            return fail_with(KILN_ERR_DATA, READING, "verify needs the data that the model was trained on",
                             "row %lld has the label %g, which the model does not know", (long long)i + 1,
                             y[i]);
        y[i] = (double)class;
    }
    return 0;
}

/* Each class's weight: given, or m / (K m_c), m_c the weight of its rows. */
static void balance(double *class_weights, const double *y, const double *weights, int64_t rows,
                    int64_t count) {
    double total = 0;
    for (int64_t c = 0; c < count; c++) class_weights[c] = 0;
    for (int64_t i = 0; i < rows; i++) {
        class_weights[(int64_t)y[i]] += weights[i];
        total += weights[i];
    }
    for (int64_t c = 0; c < count; c++)
        class_weights[c] = class_weights[c] > 0 ? total / ((double)count * class_weights[c]) : 0;
}

/* The rows' weights with those of their classes. */
static int weigh(struct verifying *v, const double *y) {
    const char *text = json_string_value(json_object_get(v->options, "class_weight"));
    const kiln_matrix *like = kiln_data_y(v->data);
    const int64_t rows = kiln_matrix_rows(like);
    double *each = NULL, *weights = NULL;
    bool balanced = false;
    int code = 0;
    if (!text) return 0;
    code = classes_weights(&each, &balanced, &v->classes, text);
    if (!code && v->weights)
        weights = values_of(v->weights, &code);
    else if (!code && (weights = malloc((size_t)rows * sizeof *weights)))
        for (int64_t i = 0; i < rows; i++) weights[i] = 1;
    if (!code && balanced) each = malloc((size_t)v->classes.count * sizeof *each);
    if (!code && (!weights || !each))
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the weights");
    if (!code && balanced) balance(each, y, weights, rows, v->classes.count);
    for (int64_t i = 0; !code && i < rows; i++) weights[i] *= each[(int64_t)y[i]];
    if (!code) {
        kiln_matrix_free(v->weights);
        v->weights = NULL;
        code = column_of(&v->weights, weights, like);
    }
    free(each);
    free(weights);
    return code;
}

static int take_labels(struct verifying *v) {
    const kiln_matrix *targets = kiln_data_y(v->data);
    int code = 0;
    double *y = values_of(targets, &code);
    if (!code) code = number_labels(v, y, kiln_matrix_rows(targets));
    if (!code) code = weigh(v, y);
    if (!code) code = column_of(&v->y, y, targets);
    free(y);
    return code;
}

static int read_data(struct run *run, struct verifying *v) {
    kiln_type type = KILN_F64;
    int64_t rows, cols;
    int code = run_open_device(run, "cpu");
    model_tensor_shape(v->model, "W", &type, &rows, &cols);
    if (!code) code = run_read(run, &v->data, run->arguments[1], type, v->model);
    if (code) return code;
    const kiln_matrix *y = kiln_data_y(v->data);
    if (!y)
        return fail_with(KILN_ERR_DATA, READING, "", "%s has no targets to verify with", run->arguments[1]);
    code = run_read_columns(run, v->data, &v->weights, &v->offset);
    if (!code) code = classes_of_model(run, &v->classes, v->model);
    if (!code && v->classes.count && kiln_matrix_cols(y) == 1) return take_labels(v);
    if (!code && kiln_matrix_copy(&v->y, run->device, KILN_TYPE_DEFAULT, y) != KILN_OK)
        return fail_library(WORKING);
    return code;
}

static int recompute(struct run *run, struct verifying *v) {
    kiln_type type;
    int64_t rows, cols;
    const kiln_matrix *X = kiln_data_X(v->data);
    const bool intercept = model_tensor_shape(v->model, "b", &type, &rows, &cols);
    if (kiln_model_tensor(&v->W, run->device, kiln_matrix_type(X), v->model, "W") != KILN_OK ||
        (intercept && kiln_model_tensor(&v->b, run->device, kiln_matrix_type(X), v->model, "b") != KILN_OK))
        return fail_library(USING_MODEL);
    v->loss.y = v->y;
    v->loss.weights = v->weights;
    v->loss.offset = v->offset;
    double start = clock_seconds();
    if (kiln_verify(&v->found, &v->loss, X, v->W, v->b, &v->penalty) != KILN_OK) return fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    return 0;
}

/* ------------------------------------------------------------------------------------------ judging */

enum { CLAIMS = 3 };

/* Training rounds in the type of the data, so its own figures are good to a factor, not to a digit; the objective is a
 * sum and good to many. */
static int judge(struct claim claims[CLAIMS], const struct verifying *v) {
    const bool single = kiln_matrix_type(v->W) == KILN_F32;
    const double objective = number_in(v->report, "objective"), residual = number_in(v->report, "residual");
    const double tolerance = number_in(v->options, "tolerance"), gap = number_in(v->report, "gap");
    const double digits = single ? 1e-4 : 1e-9, factor = single ? 10 : 2;
    const double allowed = factor * fmax(residual, tolerance);
    claims[0] = (struct claim){"objective", "objective", objective, v->found.objective, false, true};
    claims[0].holds = fabs(v->found.objective - objective) <= digits * fmax(fabs(objective), 1e-300);
    claims[1] = (struct claim){"gradient",        "gradient", fmax(residual, tolerance),
                               v->found.gradient, false,      !isnan(v->found.gradient) && isfinite(allowed)};
    claims[1].holds = v->found.gradient <= allowed;
    claims[2] =
        (struct claim){"gap", "duality gap", gap, v->found.gap, false, !isnan(v->found.gap) && !isnan(gap)};
    claims[2].holds = v->found.gap <= fmax(factor * gap, digits);
    bool all = true;
    for (int i = 0; i < CLAIMS; i++) all &= claims[i].holds || !claims[i].known;
    return all ? EXIT_DONE : EXIT_NOT_CONVERGED;
}

static int tell_json(struct run *run, const struct verifying *v, const struct claim claims[CLAIMS],
                     bool holds) {
    json_t *object = run_json(run, "kiln.verification/1"), *array = json_array();
    json_put_text(object, "algorithm", kiln_model_text(v->model, "algorithm"));
    run_json_shape(object, kiln_data_X(v->data));
    json_put_flag(object, "holds", holds);
    for (int i = 0; i < CLAIMS; i++) {
        json_t *claim = json_object();
        json_put_text(claim, "name", claims[i].key);
        json_put_number(claim, "claimed", claims[i].claimed);
        json_put_number(claim, "found", claims[i].found);
        json_put(claim, "holds", claims[i].known ? json_boolean(claims[i].holds) : json_null());
        json_add(array, claim);
    }
    json_put(object, "claims", array);
    run_json_seconds(run, object);
    return json_print(object);
}

static void tell_people(const struct run *run, const struct verifying *v, const struct claim claims[CLAIMS]) {
    printf("%s: a model of %s\n", run->arguments[0], kiln_model_text(v->model, "algorithm"));
    printf("  %-12s %22s %22s\n", "", "claimed", "found");
    for (int i = 0; i < CLAIMS; i++) {
        char claimed[32];
        if (!claims[i].known && isnan(claims[i].claimed)) continue;
        snprintf(claimed, sizeof claimed, i == 1 ? "at most %.3g" : "%.12g", claims[i].claimed);
        printf("  %-12s %22s %22.12g  %s\n", claims[i].title, claimed, claims[i].found,
               !claims[i].known  ? "cannot be judged"
               : claims[i].holds ? "holds"
                                 : "DOES NOT HOLD");
    }
}

int verb_verify(struct run *run) {
    struct verifying v = {0};
    struct claim claims[CLAIMS];
    int code = run_load_model(&v.model, run->arguments[0]);
    if (!code && kiln_model_loss(&v.loss, v.model) != KILN_OK) code = fail_library(USING_MODEL);
    if (!code) code = read_claims(run, &v);
    if (!code) code = read_data(run, &v);
    if (!code) code = recompute(run, &v);
    progress_clear();
    if (!code) {
        code = judge(claims, &v);
        const int told = talk_json() ? tell_json(run, &v, claims, code == EXIT_DONE) : 0;
        if (!talk_json()) tell_people(run, &v, claims);
        if (told) code = told;
    }
    json_decref(v.options);
    json_decref(v.report);
    classes_free(&v.classes);
    kiln_matrix_free(v.W);
    kiln_matrix_free(v.b);
    kiln_matrix_free(v.y);
    kiln_matrix_free(v.weights);
    kiln_matrix_free(v.offset);
    kiln_data_free(v.data);
    kiln_model_free(v.model);
    return code;
}
