/* This file says what a linear model claims: its objective, gradient and duality gap on the data that it was
 * trained with. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "verify_linear.h"

struct linear {
    struct verifying *v;
    struct classes classes;
    kiln_loss loss;
    kiln_range range; /* of a glm's targets */
    kiln_verify_options penalty;
    kiln_matrix *W, *b, *y, *weights, *sample,
        *offset; /* y in the loss's numbers; sample: without classes' weights */
    kiln_verification found;
};

/* A file that training used must be given again; columns of the data are found by the names that the model
 * keeps. */
static int check_column(const struct linear *l, const char *what, const char *column, const char *file) {
    char key[24];
    snprintf(key, sizeof key, "%s_file", what);
    const char *used = json_string_value(json_object_get(l->v->options, key));
    const char *used_column = json_string_value(json_object_get(l->v->options, what));
    if (used && !file)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "give the file that training used",
                         "the model was trained with --%s-file %s", what, used);
    if ((file && !used) || (column && !used_column))
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "leave it out", "the model was trained without --%s%s",
                         what, file ? "-file" : "");
    return 0;
}

static int read_claims(const struct run *run, struct linear *l) {
    l->penalty.l2 = verify_number(l->v->options, "l2");
    if (isnan(l->penalty.l2) || isnan(verify_number(l->v->report, "objective"))) return verify_no_claims();
    if (json_object_get(l->v->options, "l1")) l->penalty.l1 = verify_number(l->v->options, "l1");
    l->penalty.positive = json_is_true(json_object_get(l->v->options, "positive"));
    l->penalty.standardize = json_is_true(json_object_get(l->v->options, "standardize"));
    const struct settings *settings = run->settings;
    int code = check_column(l, "weights", settings->weights, settings->weights_file);
    return code ? code : check_column(l, "offset", settings->offset, settings->offset_file);
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
static int number_labels(struct linear *l, double *y, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t class = classes_find(&l->classes, y[i]);
        if (class < 0)
            return fail_with(KILN_ERR_DATA, READING, "verify needs the data that the model was trained on",
                             "row %lld has a label that the model does not know", (long long)i + 1);
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
static int weigh(struct linear *l, const double *y) {
    const char *text = json_string_value(json_object_get(l->v->options, "class_weight"));
    const kiln_matrix *like = kiln_data_y(l->v->data);
    const int64_t rows = kiln_matrix_rows(like);
    double *each = NULL, *weights = NULL;
    bool balanced = false;
    int code = 0;
    if (!text) return 0;
    code = classes_weights(&each, &balanced, &l->classes, text);
    if (!code && l->weights)
        weights = values_of(l->weights, &code);
    else if (!code && (weights = malloc((size_t)rows * sizeof *weights)))
        for (int64_t i = 0; i < rows; i++) weights[i] = 1;
    if (!code && balanced) each = malloc((size_t)l->classes.count * sizeof *each);
    if (!code && (!weights || !each))
        code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the weights");
    if (!code && balanced) balance(each, y, weights, rows, l->classes.count);
    for (int64_t i = 0; !code && i < rows; i++) weights[i] *= each[(int64_t)y[i]];
    if (!code) {
        l->sample = l->weights;
        l->weights = NULL;
        code = column_of(&l->weights, weights, like);
    }
    free(each);
    free(weights);
    return code;
}

static int take_labels(struct linear *l) {
    const kiln_matrix *targets = kiln_data_y(l->v->data);
    int code = 0;
    double *y = values_of(targets, &code);
    if (!code) code = classes_translate(y, kiln_matrix_rows(targets), &l->classes, l->v->data);
    if (!code) code = number_labels(l, y, kiln_matrix_rows(targets));
    if (!code) code = weigh(l, y);
    if (!code) code = column_of(&l->y, y, targets);
    free(y);
    return code;
}

static int read_data(struct run *run, struct linear *l) {
    kiln_type type = KILN_F64;
    int64_t rows, cols;
    int code = run_open_device(run, "cpu");
    model_tensor_shape(l->v->model, "W", &type, &rows, &cols);
    l->range = kiln_family_range(l->loss.family, l->loss.parameter);
    if (l->loss.kind == KILN_LOSS_GLM) run->target_range = &l->range;
    if (!code) code = run_read(run, &l->v->data, run->arguments[1], type, l->v->model);
    if (code) return code;
    const kiln_matrix *y = kiln_data_y(l->v->data);
    if (!y)
        return fail_with(KILN_ERR_DATA, READING, "", "%s has no targets to verify with", run->arguments[1]);
    code = run_read_columns(run, l->v->data, l->v->model, &l->weights, &l->offset);
    if (!code) code = classes_of_model(run, &l->classes, l->v->model);
    if (!code && l->classes.count && kiln_matrix_cols(y) == 1) return take_labels(l);
    if (!code && kiln_matrix_copy(&l->y, run->device, KILN_TYPE_DEFAULT, y) != KILN_OK)
        return fail_library(WORKING);
    return code;
}

static int recompute(struct run *run, struct linear *l) {
    kiln_type type;
    int64_t rows, cols;
    const kiln_matrix *X = kiln_data_X(l->v->data);
    const bool intercept = model_tensor_shape(l->v->model, "b", &type, &rows, &cols);
    if (kiln_model_tensor(&l->W, run->device, kiln_matrix_type(X), l->v->model, "W") != KILN_OK ||
        (intercept &&
         kiln_model_tensor(&l->b, run->device, kiln_matrix_type(X), l->v->model, "b") != KILN_OK))
        return fail_library(USING_MODEL);
    l->loss.y = l->y;
    l->loss.weights = l->weights;
    l->loss.offset = l->offset;
    double start = clock_seconds();
    if (kiln_verify(&l->found, &l->loss, X, l->W, l->b, &l->penalty) != KILN_OK) return fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    return 0;
}

/* Training rounds in the type of the data, so its own figures are good to a factor, not to a digit; the
 * objective is a sum and good to many. */
static void judge(struct linear *l) {
    struct verifying *v = l->v;
    const bool single = kiln_matrix_type(l->W) == KILN_F32;
    const double residual = verify_number(v->report, "residual"), gap = verify_number(v->report, "gap");
    const double tolerance = verify_number(v->options, "tolerance");
    const double digits = single ? 1e-4 : 1e-9, factor = single ? 10 : 2;
    const kiln_verification *found = &l->found;
    claim_equal(v, "objective", "objective", verify_number(v->report, "objective"), found->objective, 0,
                found->objective_rounding);
    claim_equal(v, "residual", "residual", residual, found->gradient, 0.1,
                residual > found->gradient ? found->gradient_most - found->gradient
                                           : found->gradient_rounding);
    v->claims[v->count - 1].known &= !isnan(found->gradient);
    /* A support vector machine that did not converge may have its criterion by the curvature of some point
     * on the way. */
    const bool hinge = l->loss.kind == KILN_LOSS_SQUARED_HINGE || l->loss.kind == KILN_LOSS_SQUARED_EPSILON;
    if (hinge && residual > found->gradient && !json_is_true(json_object_get(v->report, "converged")))
        v->claims[v->count - 1].known = false;
    claim_bound(v, "gradient", "gradient", fmax(residual, tolerance), found->gradient, factor,
                found->gradient_rounding);
    if (!isnan(found->gap))
        claim_bound(v, "gap", "duality gap", gap, found->gap, factor, fmax(digits, found->gap_rounding));
    /* The Gram matrix may bound the gap of positive coefficients better than the dual does. */
    const char *certificate = json_string_value(json_object_get(v->report, "certificate"));
    const bool curved = l->penalty.positive && certificate && strcmp(certificate, "normal equations") == 0;
    if (isfinite(found->optimality_gap) && !curved)
        claim_bound(v, "optimality_gap", "optimality gap", verify_number(v->report, "optimality_gap"),
                    found->optimality_gap, 1, 0);
}

int verify_linear(struct run *run, struct verifying *v) {
    struct linear l = {.v = v, .penalty.size = sizeof l.penalty, .found.size = sizeof l.found};
    int code = kiln_model_loss(&l.loss, v->model) == KILN_OK ? 0 : fail_library(USING_MODEL);
    if (!code) code = read_claims(run, &l);
    if (!code) code = read_data(run, &l);
    if (!code) code = recompute(run, &l);
    if (!code) judge(&l);
    if (!code)
        code = verify_metrics(
            run, v,
            &(struct claimed_linear){
                .classes = &l.classes,
                .loss = &l.loss,
                .penalty = &l.penalty,
                .W = l.W,
                .b = l.b,
                .sample = json_is_string(json_object_get(v->options, "class_weight")) ? l.sample : l.weights,
                .found = &l.found});
    classes_free(&l.classes);
    kiln_matrix_free(l.W);
    kiln_matrix_free(l.b);
    kiln_matrix_free(l.y);
    kiln_matrix_free(l.weights);
    kiln_matrix_free(l.sample);
    kiln_matrix_free(l.offset);
    return code;
}
