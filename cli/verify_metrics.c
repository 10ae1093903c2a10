/* What a linear model's file says of its fit, found again: metrics from linear predictors that slow code
 * makes, figures of a generalised linear model and its standard errors from the information matrix. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "verify_linear.h"

/* NEAR: scores that near to each other, beside the largest, may change their order in training. */
static const double NEAR = 1e-6, NEAR_SINGLE = 1e-3;

struct judged {
    struct verifying *v;
    const struct claimed_linear *l;
    json_t *metrics; /* what the file says */
    double *scores, *means, *truth, *weights;
    struct metrics found;
    int64_t rows;
    double weight, undecided; /* of all rows; of those that may change sides */
    bool single;
};

static int take_rows(struct judged *j) {
    const struct claimed_linear *l = j->l;
    kiln_matrix *Eta = NULL;
    const kiln_matrix *X = kiln_data_X(j->v->data);
    int code = 0;
    j->rows = kiln_matrix_rows(X);
    if (kiln_matrix_dense(&Eta, kiln_matrix_device(X), KILN_F64, j->rows, kiln_matrix_cols(l->W), NULL) !=
            KILN_OK ||
        kiln_verify_predictors(Eta, X, l->W, l->b, l->loss->offset) != KILN_OK)
        code = fail_library(WORKING);
    if (!code) j->scores = values_of(Eta, &code);
    if (!code && kiln_loss_mean(Eta, l->loss, Eta) != KILN_OK) code = fail_library(WORKING);
    if (!code) j->means = values_of(Eta, &code);
    if (!code) j->truth = values_of(kiln_data_y(j->v->data), &code);
    if (!code && l->classes->count) code = classes_translate(j->truth, j->rows, l->classes, j->v->data);
    if (!code && l->sample) j->weights = values_of(l->sample, &code);
    kiln_matrix_free(Eta);
    return code;
}

/* The weight of rows whose class is a matter of rounding: two scores, or a score and 0, are as good as
 * equal. */
static void count_undecided(struct judged *j) {
    const int64_t k = kiln_matrix_cols(j->l->W);
    double largest = 0;
    for (int64_t i = 0; i < j->rows * k; i++) largest = fmax(largest, fabs(j->scores[i]));
    const double near = (j->single ? NEAR_SINGLE : NEAR) * largest;
    for (int64_t i = 0; i < j->rows; i++) {
        const double w = j->weights ? j->weights[i] : 1, *score = j->scores + i * k;
        double first = -INFINITY, second = k == 1 ? 0 : -INFINITY;
        for (int64_t c = 0; c < k; c++) {
            if (score[c] > first)
                second = k == 1 ? second : first, first = score[c];
            else
                second = fmax(second, score[c]);
        }
        j->weight += w;
        if (fabs(first - second) <= near) j->undecided += w;
    }
}

/* What rounding of the data's type may have made of a metric. */
static double slack_of(const struct judged *j, const char *key) {
    const double sum = 2 * j->l->found->objective_rounding, rss = metrics_get(&j->found, "rss");
    const double r2 = metrics_get(&j->found, "r2");
    if (strcmp(key, "accuracy") == 0) return j->undecided / j->weight;
    if (strcmp(key, "auc") == 0) return (j->single ? NEAR_SINGLE : NEAR) + j->undecided / j->weight;
    if (strcmp(key, "r2") == 0) return (j->single ? 1e-5 : 1e-10) + sum * (r2 < 1 ? (1 - r2) / rss : 0);
    if (strcmp(key, "rmse") == 0) return sqrt(sum / j->weight);
    if (strcmp(key, "mae") == 0) return sqrt(sum / j->weight);
    if (strcmp(key, "rss") == 0 || strcmp(key, "deviance") == 0) return sum;
    return sum / j->weight;
}

static void claim(struct judged *j, const char *key, const char *title, double found, double slack) {
    const double claimed = verify_number(j->metrics, key);
    if (!json_object_get(j->metrics, key) || j->v->count == CLAIMS_MOST) return;
    claim_equal(j->v, key, title, claimed, found, j->single ? 1e-3 : 1e-7, slack);
    if (isnan(found)) j->v->claims[j->v->count - 1].known = false;
}

/* The largest difference of a cell, which rows that are undecided may make. */
static void claim_confusion(struct judged *j) {
    const json_t *table = json_object_get(json_object_get(j->metrics, "confusion"), "rows"), *row, *cell;
    size_t i, c;
    double worst = 0;
    const int64_t k = j->found.classes;
    if (!json_is_array(table)) return;
    if ((int64_t)json_array_size(table) < k) worst = INFINITY;
    json_array_foreach(table, i, row) {
        json_array_foreach(row, c, cell) {
            const bool there = (int64_t)i <= k && (int64_t)c < k;
            worst = fmax(
                worst, there ? fabs(json_number_value(cell) - j->found.confusion[(int64_t)i * k + (int64_t)c])
                             : INFINITY);
        }
    }
    claim_bound(j->v, "confusion", "confusion", j->undecided, worst, 1, 1e-6 * j->weight);
}

static int measure(struct judged *j) {
    const struct claimed_linear *l = j->l;
    const int64_t columns = kiln_matrix_cols(l->W);
    int code = 0;
    if (l->classes->count)
        return measure_classes(&j->found, l->classes, j->scores, l->loss, j->means, j->truth, j->weights,
                               j->rows);
    if (l->loss->kind == KILN_LOSS_GLM)
        code = measure_glm(&j->found, l->loss, j->scores, j->means, j->truth, j->weights, j->rows);
    measure_numbers(&j->found, j->means, j->truth, j->weights, j->rows, columns);
    return code;
}

/* Figures that follow from the information matrix. */
static int claim_figures(struct run *run, struct judged *j) {
    const struct claimed_linear *l = j->l;
    kiln_glm_verification found = {.size = sizeof found};
    kiln_matrix *errors = NULL;
    kiln_type type;
    int64_t rows, cols;
    int code = 0;
    const bool glm = l->loss->kind == KILN_LOSS_GLM;
    if (!glm && !json_object_get(j->metrics, "rank")) return 0;
    if (model_tensor_shape(j->v->model, "standard_errors", &type, &rows, &cols) &&
        kiln_model_tensor(&errors, run->device, kiln_matrix_type(l->W), j->v->model, "standard_errors") !=
            KILN_OK)
        code = fail_library(USING_MODEL);
    if (!code &&
        kiln_verify_glm(&found, l->loss, kiln_data_X(j->v->data), l->W, l->b, errors, l->penalty) != KILN_OK)
        code = fail_library(READING);
    if (!code) {
        const double sum = 2 * l->found->objective_rounding;
        claim(j, "rank", "rank", found.parameters - (l->b != NULL), 0.5);
        claim(j, "null_deviance", "null dev.", found.null_deviance, sum);
        claim(j, "dispersion", "dispersion", found.dispersion, sum / j->weight);
        claim(j, "aic", "AIC", found.aic, 10 * sum);
        claim(j, "parameters", "parameters", found.parameters, 0.5);
        double counted = 0;
        for (int64_t i = 0; i < j->rows; i++) counted += !j->weights || j->weights[i] > 0;
        claim(j, "residual_degrees", "degrees", counted - found.parameters, 0.5);
    }
    if (!code && errors)
        claim_bound(j->v, "standard_errors", "std errors", j->single ? 1e-3 : 1e-6, found.errors, 1,
                    found.errors_rounding);
    kiln_matrix_free(errors);
    return code;
}

int verify_metrics(struct run *run, struct verifying *v, const struct claimed_linear *l) {
    const char *text = kiln_model_text(v->model, "metrics");
    struct judged j = {.v = v, .l = l, .metrics = text ? json_loads(text, 0, NULL) : NULL};
    j.single = kiln_matrix_type(l->W) == KILN_F32;
    int code = j.metrics ? take_rows(&j) : 0;
    if (j.metrics && !code) code = measure(&j);
    if (j.metrics && !code) {
        count_undecided(&j);
        for (int i = 0; i < j.found.count; i++) {
            const struct metric *metric = &j.found.list[i];
            claim(&j, metric->key, metric->title, metric->value, slack_of(&j, metric->key));
        }
        claim_confusion(&j);
        code = claim_figures(run, &j);
    }
    json_decref(j.metrics);
    metrics_free(&j.found);
    free(j.scores);
    free(j.means);
    free(j.truth);
    free(j.weights);
    return code;
}
