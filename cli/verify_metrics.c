/* Finds again what a linear model's file says of its fit: metrics from linear predictors that
 * slow code makes, figures of a generalised linear model and its standard errors from the information matrix.
 *
 * Training rounds predictors, and so has others within bounds that the slow code tells, and means that are
 * as far off as their own formula makes them. Every metric of rows gets better with each row that moves
 * towards its target: what training may have found is between the metrics of the best and of the worst
 * predictors within the bounds. A row towards its target: of two classes the score of one up, of the other
 * down; of several its own up, the others down; of numbers the mean that is nearest. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "verify_linear.h"

enum { FORMULA = 16 }; /* units that a short formula may lose */

/* Predictors and their means, rows x columns, and what they are worth. */
struct predicted {
    double *scores, *means;
    struct metrics metrics;
};

struct judged {
    struct verifying *v;
    const struct claimed_linear *l;
    json_t *metrics; /* what the file says */
    struct predicted found, best, worst;
    double *rounding, *truth, *weights; /* rounding: of scores */
    kiln_device *host;                  /* a device "cpu", and targets and weights on it */
    kiln_matrix *y, *sample;
    int64_t rows, columns;
    double weight, undecided; /* of all rows; of those that may change sides */
    double unit;              /* rounding of the model's type */
    bool single;
};

static double weight_of(const struct judged *j, int64_t i) {
    return j->weights ? j->weights[i] : 1;
}

/* ------------------------------------------------------------------------------------------- rows */

/* The means of predictors. */
static double *means_of(const struct judged *j, const double *scores, int *code) {
    kiln_matrix *Eta = NULL;
    double *means = NULL;
    if (kiln_matrix_dense(&Eta, kiln_matrix_device(j->l->W), KILN_F64, j->rows, j->columns, scores) !=
            KILN_OK ||
        kiln_loss_mean(Eta, j->l->loss, Eta) != KILN_OK)
        *code = fail_library(WORKING);
    if (!*code) means = values_of(Eta, code);
    kiln_matrix_free(Eta);
    return means;
}

static int take_rows(struct judged *j) {
    const struct claimed_linear *l = j->l;
    kiln_matrix *Eta = NULL, *rounding = NULL;
    const kiln_matrix *X = kiln_data_X(j->v->data);
    kiln_device *device = kiln_matrix_device(X);
    int code = 0;
    j->rows = kiln_matrix_rows(X);
    j->columns = kiln_matrix_cols(l->W);
    if (kiln_matrix_dense(&Eta, device, KILN_F64, j->rows, j->columns, NULL) != KILN_OK ||
        kiln_matrix_dense(&rounding, device, KILN_F64, j->rows, j->columns, NULL) != KILN_OK ||
        kiln_verify_predictors(Eta, rounding, X, l->W, l->b, l->loss->offset) != KILN_OK)
        code = fail_library(WORKING);
    if (!code) j->found.scores = values_of(Eta, &code);
    if (!code) j->rounding = values_of(rounding, &code);
    if (!code) j->found.means = means_of(j, j->found.scores, &code);
    if (!code) j->truth = values_of(kiln_data_y(j->v->data), &code);
    if (!code && l->classes->count) code = classes_translate(j->truth, j->rows, l->classes, j->v->data);
    if (!code && l->sample) j->weights = values_of(l->sample, &code);
    if (!code && kiln_device_open(&j->host, "cpu", NULL) != KILN_OK) code = fail_library(WORKING);
    if (!code) code = host_matrix(&j->y, j->host, j->rows, l->classes->count ? 1 : j->columns, j->truth);
    if (!code && l->sample) code = host_matrix(&j->sample, j->host, j->rows, 1, j->weights);
    for (int64_t i = 0; !code && i < j->rows; i++) j->weight += weight_of(j, i);
    kiln_matrix_free(Eta);
    kiln_matrix_free(rounding);
    return code;
}

/* The furthest that a row's scores may be off. */
static double off_by(const struct judged *j, int64_t i) {
    double most = 0;
    for (int64_t c = 0; c < j->columns; c++) most = fmax(most, j->rounding[i * j->columns + c]);
    return most;
}

/* Scores of classes, moved by their rounding: direction 1 towards the row's class, -1 away. */
static void move_classes(double *scores, const struct judged *j, double direction) {
    for (int64_t i = 0; i < j->rows; i++) {
        const int64_t class = classes_find(j->l->classes, j->truth[i]);
        const double off = direction * off_by(j, i);
        for (int64_t c = 0; c < j->columns; c++) {
            const bool own = j->columns == 1 ? class == 1 : class == c;
            scores[i * j->columns + c] = j->found.scores[i * j->columns + c] + (own ? off : -off);
        }
    }
}

/* Finds how far off a mean may be: as far as the predictors at both ends make it, and by some units of its
 * own. A mean that is a power comes as an exponential, which loses as many units as its exponent is long.
 * Least squares may subtract some constant from y and from the mean first. Below the type's range a mean has
 * no digits. */
static void bounds_of_mean(double *low, double *high, const struct judged *j, double y, double mean,
                           double one, double other) {
    const double logs = mean > 0 ? fabs(log(mean)) : 0;
    const bool same = j->l->loss->kind != KILN_LOSS_GLM || j->l->loss->link == KILN_LINK_IDENTITY;
    double off = same ? 0 : j->unit * (FORMULA + logs) * fabs(mean);
    if (j->l->loss->kind == KILN_LOSS_SQUARED) off = j->unit * (fabs(y) + fabs(mean));
    off += j->single ? FLT_MIN : DBL_MIN;
    *low = isnan(one) || isnan(other) ? -INFINITY : fmin(mean, fmin(one, other)) - off;
    *high = isnan(one) || isnan(other) ? INFINITY : fmax(mean, fmax(one, other)) + off;
}

/* Means within their bounds that are nearest to the targets, and furthest; with them predictors of a glm,
 * whose mean rises or falls with them. */
static int move_numbers(struct judged *j) {
    const int64_t count = j->rows * j->columns;
    double *const less = j->best.scores, *const more = j->worst.scores;
    int code = 0;
    for (int64_t e = 0; e < count; e++) {
        less[e] = j->found.scores[e] - j->rounding[e];
        more[e] = j->found.scores[e] + j->rounding[e];
    }
    double *low = means_of(j, less, &code), *high = code ? NULL : means_of(j, more, &code);
    for (int64_t e = 0; !code && e < count; e++) {
        double least, most;
        const double y = j->truth[e], one = less[e], other = more[e];
        const bool swap =
            (y > j->found.means[e]) == (high[e] > low[e]); /* the target is at the end of `more` */
        bounds_of_mean(&least, &most, j, y, j->found.means[e], low[e], high[e]);
        low[e] = fmin(fmax(y, least), most);
        high[e] = y - least > most - y ? least : most;
        less[e] = swap ? other : one;
        more[e] = swap ? one : other;
    }
    j->best.means = low;
    j->worst.means = high;
    return code;
}

static int measure(const struct judged *j, struct predicted *p) {
    const struct claimed_linear *l = j->l;
    kiln_loss loss = *l->loss;
    kiln_matrix *Eta = NULL, *means = NULL;
    loss.y = j->y;
    loss.weights = j->sample;
    loss.offset = NULL;
    int code = host_matrix(&Eta, j->host, j->rows, j->columns, p->scores);
    if (!code && !l->classes->count) code = host_matrix(&means, j->host, j->rows, j->columns, p->means);
    if (!code)
        code = metrics_measure(&p->metrics, &loss, l->classes, Eta,
                               &(kiln_metrics_options){.size = sizeof(kiln_metrics_options), .means = means});
    kiln_matrix_free(Eta);
    kiln_matrix_free(means);
    return code;
}

/* The best and the worst that training may have found. */
static int measure_around(struct judged *j) {
    const size_t bytes = (size_t)(j->rows * j->columns) * sizeof(double) + 1;
    int code = 0;
    j->best.scores = malloc(bytes);
    j->worst.scores = malloc(bytes);
    if (!j->best.scores || !j->worst.scores)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for predictors");
    if (j->l->classes->count) {
        move_classes(j->best.scores, j, 1);
        move_classes(j->worst.scores, j, -1);
        j->best.means = means_of(j, j->best.scores, &code);
        if (!code) j->worst.means = means_of(j, j->worst.scores, &code);
    } else {
        code = move_numbers(j);
    }
    if (!code) code = measure(j, &j->best);
    return code ? code : measure(j, &j->worst);
}

/* The weight of rows whose class is a matter of rounding: two scores, or a score and 0, are as good as
 * equal. */
static void count_undecided(struct judged *j) {
    const int64_t k = j->columns;
    for (int64_t i = 0; i < j->rows; i++) {
        const double *score = j->found.scores + i * k, off = off_by(j, i);
        double first = -INFINITY, second = k == 1 ? 0 : -INFINITY;
        for (int64_t c = 0; c < k; c++) {
            if (score[c] > first)
                second = k == 1 ? second : first, first = score[c];
            else
                second = fmax(second, score[c]);
        }
        if (off > 0 && fabs(first - second) <= (k == 1 ? off : 2 * off)) j->undecided += weight_of(j, i);
    }
}

/* ----------------------------------------------------------------------------------------- claims */

/* Returns what sums over all rows in double may lose, relative; those of least squares are of terms in the
 * model's type. */
static double sums_of(const struct judged *j) {
    return (double)j->rows * DBL_EPSILON +
           FORMULA * (j->l->loss->kind == KILN_LOSS_SQUARED ? j->unit : DBL_EPSILON);
}

/* Brier's score takes the probabilities of several classes as training's type has them, each within a
 * factor e^(+-2 off) and some units of its formula. */
static double brier_rounding(const struct judged *j) {
    double sum = 0;
    for (int64_t i = 0; i < j->rows && j->columns > 1; i++) {
        const int64_t class = classes_find(j->l->classes, j->truth[i]);
        const double factor = expm1(2 * off_by(j, i));
        for (int64_t c = 0; c < j->columns; c++) {
            const double p = j->found.means[i * j->columns + c], missed = fabs(p - (c == class));
            const double off = fmin(p * factor + (p > 0 ? p * j->unit * (FORMULA - log(p)) : 0), 1);
            sum += weight_of(j, i) * (2 * missed + off) * off;
        }
    }
    return sum / j->weight;
}

/* Returns how far R2 is off for what double makes of TSS: a mean that is off by e adds weight e^2, and each
 * row's distance from it is rounded. */
static double r2_rounding(const struct judged *j) {
    const double r2 = metrics_get(&j->found.metrics, "r2"), rss = metrics_get(&j->found.metrics, "rss");
    double square = 0;
    for (int64_t e = 0; e < j->rows * j->columns; e++)
        square += weight_of(j, e / j->columns) * j->truth[e] * j->truth[e];
    const double unit = j->l->loss->kind == KILN_LOSS_SQUARED ? j->unit : DBL_EPSILON;
    const double tss = rss / (1 - r2), off = (sqrt((double)j->rows) + 8) * unit * sqrt(square);
    if (!(r2 < 1)) return sums_of(j);
    return (1 - r2) * ((2 * sqrt(tss) + off) * off / fmax(tss - (2 * sqrt(tss) + off) * off, 0) + sums_of(j));
}

/* Claims a figure that may be from low to high. */
static void claim(struct judged *j, const char *key, const char *title, double found, double low,
                  double high) {
    const double claimed = verify_number(j->metrics, key);
    if (!json_object_get(j->metrics, key) || j->v->count == CLAIMS_MOST) return;
    claim_equal(j->v, key, title, claimed, found, 0, fmax(claimed < found ? found - low : high - found, 0));
    if (isnan(found) || isnan(low) || isnan(high)) j->v->claims[j->v->count - 1].known = false;
}

/* A metric of the rows: between what is best and what is worst. */
static void claim_metric(struct judged *j, const struct metric *metric) {
    const char *key = metric->key;
    const double found = metric->value, sums = sums_of(j) * fmax(fabs(found), strcmp(key, "log_loss") == 0);
    const double best = metrics_get(&j->best.metrics, key), worst = metrics_get(&j->worst.metrics, key);
    double low = fmin(found, fmin(best, worst)), high = fmax(found, fmax(best, worst)), off = sums;
    if (strcmp(key, "brier") == 0) off += brier_rounding(j);
    if (strcmp(key, "r2") == 0) off += r2_rounding(j);
    if (isnan(best) || isnan(worst)) off = INFINITY;
    claim(j, key, metric->title, found, low - off, high + off);
}

/* The largest difference of a cell, which rows that are undecided may make. */
static void claim_confusion(struct judged *j) {
    const json_t *table = json_object_get(json_object_get(j->metrics, "confusion"), "rows"), *row, *cell;
    const struct metrics *found = &j->found.metrics;
    size_t i, c;
    double worst = 0;
    const int64_t k = found->classes;
    if (!json_is_array(table)) return;
    if ((int64_t)json_array_size(table) < k) worst = INFINITY;
    json_array_foreach(table, i, row) {
        json_array_foreach(row, c, cell) {
            const bool there = (int64_t)i <= k && (int64_t)c < k;
            worst = fmax(worst,
                         there ? fabs(json_number_value(cell) - found->confusion[(int64_t)i * k + (int64_t)c])
                               : INFINITY);
        }
    }
    claim_bound(j->v, "confusion", "confusion", j->undecided, worst, 1,
                j->undecided + sums_of(j) * j->weight);
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
        const double rank = found.parameters - (l->b != NULL), mean = found.deviance / j->weight;
        double counted = 0;
        for (int64_t i = 0; i < j->rows; i++) counted += weight_of(j, i) > 0;
        const double degrees = counted - found.parameters;
        claim(j, "rank", "rank", rank, rank, rank);
        claim(j, "deviance", "deviance", found.deviance, found.deviance_low, found.deviance_high);
        claim(j, "mean_deviance", "mean dev.", mean, found.deviance_low / j->weight * (1 - sums_of(j)),
              found.deviance_high / j->weight * (1 + sums_of(j)));
        claim(j, "null_deviance", "null dev.", found.null_deviance, found.null_deviance_low,
              found.null_deviance_high);
        claim(j, "dispersion", "dispersion", found.dispersion, found.dispersion_low, found.dispersion_high);
        claim(j, "aic", "AIC", found.aic, found.aic_low, found.aic_high);
        claim(j, "parameters", "parameters", found.parameters, found.parameters, found.parameters);
        claim(j, "residual_degrees", "degrees", degrees, degrees, degrees);
    }
    if (!code && errors)
        claim_bound(j->v, "standard_errors", "std errors", j->single ? 1e-3 : 1e-6, found.errors, 1,
                    found.errors_rounding);
    kiln_matrix_free(errors);
    return code;
}

/* Deviances are the library's to judge, which knows where they are least. */
static bool of_rows(const char *key) {
    return strcmp(key, "deviance") != 0 && strcmp(key, "mean_deviance") != 0;
}

static void forget(struct predicted *p) {
    metrics_free(&p->metrics);
    free(p->scores);
    free(p->means);
}

int verify_metrics(struct run *run, struct verifying *v, const struct claimed_linear *l) {
    const char *text = kiln_model_text(v->model, "metrics");
    struct judged j = {.v = v, .l = l, .metrics = text ? json_loads(text, 0, NULL) : NULL};
    j.single = kiln_matrix_type(l->W) == KILN_F32;
    j.unit = j.single ? FLT_EPSILON : DBL_EPSILON;
    int code = j.metrics ? take_rows(&j) : 0;
    if (j.metrics && !code) code = measure(&j, &j.found);
    if (j.metrics && !code) code = measure_around(&j);
    if (j.metrics && !code) {
        count_undecided(&j);
        for (int i = 0; i < j.found.metrics.count; i++)
            if (of_rows(j.found.metrics.list[i].key)) claim_metric(&j, &j.found.metrics.list[i]);
        claim_confusion(&j);
        code = claim_figures(run, &j);
    }
    json_decref(j.metrics);
    forget(&j.found);
    forget(&j.best);
    forget(&j.worst);
    kiln_matrix_free(j.y);
    kiln_matrix_free(j.sample);
    kiln_device_close(j.host);
    free(j.rounding);
    free(j.truth);
    free(j.weights);
    return code;
}
