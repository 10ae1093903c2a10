/* How good predictions are. */
#include "metrics.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "curves.h"

/* ------------------------------------------------------------------------------------------- list */

void metrics_free(struct metrics *metrics) {
    free(metrics->confusion);
    *metrics = (struct metrics){0};
}

void metrics_add(struct metrics *metrics, const char *key, const char *title, double value) {
    if (metrics->count < METRICS_MOST) metrics->list[metrics->count++] = (struct metric){key, title, value};
}

double metrics_get(const struct metrics *metrics, const char *key) {
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->list[i].key, key) == 0) return metrics->list[i].value;
    return NAN;
}

double metrics_unknown(const struct metrics *metrics) {
    double weight = 0;
    for (int64_t j = 0; j < metrics->classes; j++)
        weight += metrics->confusion[metrics->classes * metrics->classes + j];
    return weight;
}

static json_t *confusion_row(const struct metrics *metrics, int64_t i) {
    json_t *row = json_array();
    for (int64_t j = 0; j < metrics->classes; j++)
        json_add(row, json_number_or_null(metrics->confusion[i * metrics->classes + j]));
    return row;
}

json_t *metrics_json(const struct metrics *metrics, const struct classes *classes) {
    json_t *object = json_object();
    for (int i = 0; i < metrics->count; i++)
        json_put_number(object, metrics->list[i].key, metrics->list[i].value);
    if (!metrics->classes) return object;
    json_t *table = json_object(), *names = json_array(), *rows = json_array();
    char buffer[SHORTEST_ROOM];
    for (int64_t i = 0; i < metrics->classes; i++) {
        json_add(rows, confusion_row(metrics, i));
        json_add(names, json_text(classes_name(classes, i, buffer)));
    }
    if (metrics_unknown(metrics) > 0) json_put(table, "unknown", confusion_row(metrics, metrics->classes));
    json_put(table, "classes", names);
    json_put(table, "rows", rows);
    json_put(object, "confusion", table);
    return object;
}

void metrics_print(FILE *file, const struct metrics *metrics, int indent) {
    for (int i = 0; i < metrics->count; i++)
        fprintf(file, "%*s%-11s %s\n", indent, "", metrics->list[i].title,
                isnan(metrics->list[i].value) ? "not known" : text_number(metrics->list[i].value));
}

/* A row for each true class, and one for those that the model does not know; a column for each predicted
 * one. */
void metrics_print_confusion(FILE *file, const struct metrics *metrics, const struct classes *classes) {
    char buffer[SHORTEST_ROOM];
    const int64_t count = metrics->classes;
    if (count == 0) return;
    if (count > CONFUSION_MOST) {
        fprintf(file, "confusion table of %s classes: --json has it\n", text_count(count));
        return;
    }
    fprintf(file, "true \\ predicted");
    for (int64_t j = 0; j < count; j++) fprintf(file, " %s", text_cell(classes_name(classes, j, buffer), 10));
    fputc('\n', file);
    for (int64_t i = 0; i < count + (metrics_unknown(metrics) > 0); i++) {
        fputs(text_cell(i < count ? classes_name(classes, i, buffer) : "(unknown)", 16), file);
        for (int64_t j = 0; j < count; j++)
            fprintf(file, " %10s", text_number(metrics->confusion[i * count + j]));
        fputc('\n', file);
    }
}

/* --------------------------------------------------------------------------------------- measures */

static double weight_of(const double *weights, int64_t i) {
    return weights ? weights[i] : 1;
}

double metrics_first(const double *truth, const double *weights, int64_t rows, int64_t targets) {
    int64_t i = 0;
    while (i < rows - 1 && weight_of(weights, i) == 0) i++;
    return rows > 0 ? truth[i * targets] : 0;
}

/* R2 = 1 - RSS / TSS over all targets, each about its own mean. */
void measure_numbers(struct metrics *metrics, const double *values, const double *truth,
                     const double *weights, int64_t rows, int64_t targets) {
    double rss = 0, tss = 0, total = 0, absolute = 0;
    for (int64_t i = 0; i < rows; i++) total += weight_of(weights, i);
    for (int64_t j = 0; j < targets; j++) {
        const double level = metrics_first(truth + j, weights, rows, targets);
        double mean = level; /* of a constant that constant, so that TSS is 0 and not rounding */
        for (int64_t i = 0; i < rows; i++)
            mean += weight_of(weights, i) * (truth[i * targets + j] - level) / total;
        for (int64_t i = 0; i < rows; i++) {
            const double y = truth[i * targets + j], error = y - values[i * targets + j];
            rss += weight_of(weights, i) * error * error;
            absolute += weight_of(weights, i) * fabs(error);
            tss += weight_of(weights, i) * (y - mean) * (y - mean);
        }
    }
    metrics_add(metrics, "r2", "R2", tss > 0 ? 1 - rss / tss : NAN);
    metrics_add(metrics, "rss", "RSS", rss);
    metrics_add(metrics, "rmse", "RMSE", sqrt(rss / (total * (double)targets)));
    metrics_add(metrics, "mae", "MAE", absolute / (total * (double)targets));
}

static int measure_auc(struct metrics *metrics, const struct classes *classes, const double *scores,
                       const double *truth, const double *weights, int64_t rows) {
    struct scored *scored = malloc((size_t)rows * sizeof *scored + 1);
    int64_t count = 0;
    if (!scored)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld scores", (long long)rows);
    for (int64_t i = 0; i < rows; i++) {
        const double weight = weight_of(weights, i);
        if (isnan(scores[i])) continue;
        scored[count++] = (struct scored){scores[i], classes_find(classes, truth[i]) == 1 ? weight : -weight};
    }
    metrics_add(metrics, "auc", "AUC", roc_area(scored, count));
    free(scored);
    return 0;
}

/* -log of the probability 1 / (1 + e^-margin), without overflow and without loss of digits, and Brier's score of it: the square
 * of what that lacks of 1. */
static double logistic_loss(double margin, double *brier) {
    const double e = exp(-fabs(margin)), missed = (margin > 0 ? e : 1) / (1 + e);
    *brier = missed * missed;
    return log1p(e) + (margin > 0 ? 0 : -margin);
}

/* The squared distance of the probabilities from those of a row that is certainly of `class`. */
static double brier_loss(const double *means, int64_t class, int64_t columns) {
    double sum = 0;
    for (int64_t c = 0; c < columns; c++) sum += (means[c] - (c == class)) * (means[c] - (c == class));
    return sum;
}

/* log(sum_c e^scores_c) - scores_class: minus the logarithm of the class's probability, of which none is too
 * small. */
static double softmax_loss(const double *scores, int64_t class, int64_t columns) {
    double largest = scores[0], sum = 0;
    for (int64_t c = 1; c < columns; c++) largest = fmax(largest, scores[c]);
    for (int64_t c = 0; c < columns; c++) sum += exp(scores[c] - largest);
    return log(sum) - (scores[class] - largest);
}

/* Gives what a row loses, and its part of Brier's score: of two classes half the sum, as it is usually
 * given. A class that the model does not know (-1) has the probability 0. */
static double lost_by(double *brier, const kiln_loss *loss, const double *scores, const double *means,
                      int64_t class, int64_t columns) {
    if (loss->kind == KILN_LOSS_LOGISTIC && class >= 0)
        return logistic_loss(class == 1 ? scores[0] : -scores[0], brier);
    if (loss->kind == KILN_LOSS_LOGISTIC) {
        double both[2];
        logistic_loss(scores[0], &both[0]);
        logistic_loss(-scores[0], &both[1]);
        *brier = (both[0] + both[1] + 1) / 2;
        return INFINITY;
    }
    *brier = brier_loss(means, class, columns) + (class < 0);
    return class < 0 ? INFINITY : softmax_loss(scores, class, columns);
}

int measure_classes(struct metrics *metrics, const struct classes *classes, const double *scores,
                    const kiln_loss *loss, const double *means, const double *truth, const double *weights,
                    int64_t rows) {
    const bool probable = loss->kind == KILN_LOSS_LOGISTIC || loss->kind == KILN_LOSS_SOFTMAX;
    const int64_t count = classes->count, columns = count == 2 ? 1 : count;
    double right = 0, total = 0, lost = 0, brier = 0;
    double *confusion = calloc((size_t)((count + 1) * count) + 1, sizeof *confusion);
    if (!confusion)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld classes", (long long)count);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t class = classes_find(classes, truth[i]);
        const int64_t taken = class_of_scores(scores + i * columns, columns);
        const double weight = weight_of(weights, i);
        double missed = 0;
        if (weight == 0) continue;
        total += weight;
        right += class == taken ? weight : 0;
        confusion[(class < 0 ? count : class) * count + taken] += weight;
        if (!probable) continue;
        lost += weight * lost_by(&missed, loss, scores + i * columns,
                                 columns > 1 ? means + i * columns : NULL, class, columns);
        brier += weight * missed;
    }
    metrics_add(metrics, "accuracy", "accuracy", right / total);
    if (probable) metrics_add(metrics, "log_loss", "log loss", lost / total);
    if (probable) metrics_add(metrics, "brier", "Brier", brier / total);
    metrics->classes = count;
    metrics->confusion = confusion;
    if (metrics_unknown(metrics) > 0) metrics_add(metrics, "unknown", "unknown", metrics_unknown(metrics));
    return count == 2 ? measure_auc(metrics, classes, scores, truth, weights, rows) : 0;
}

/* ------------------------------------------------------------------------------ generalised linear models */

/* Whether a larger linear predictor is a larger mean. */
static bool rises(const kiln_loss *loss) {
    const bool falls = loss->link == KILN_LINK_INVERSE || loss->link == KILN_LINK_INVERSE_SQUARED;
    return !falls && !(loss->link == KILN_LINK_POWER && loss->link_power < 0);
}

/* Twice what each row's log-likelihood lacks to its best, for weight 1: the library's, from eta, as a mean
 * has lost the digits of what it lacks to 1. */
static int unit_deviances(double *deviances, const kiln_loss *loss, const double *eta, const double *truth,
                          int64_t rows) {
    kiln_device *host = NULL;
    kiln_matrix *Eta = NULL, *y = NULL, *D = NULL;
    double *all = malloc((size_t)rows * 3 * sizeof *all + 1);
    kiln_status status = all ? kiln_device_open(&host, "cpu", NULL) : KILN_OK;
    if (!all) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the deviance");
    if (status == KILN_OK) status = kiln_matrix_dense(&Eta, host, KILN_F64, rows, 1, eta);
    if (status == KILN_OK) status = kiln_matrix_dense(&y, host, KILN_F64, rows, 1, truth);
    if (status == KILN_OK) status = kiln_matrix_dense(&D, host, KILN_F64, rows, 3, NULL);
    kiln_loss judged = *loss;
    judged.y = y;
    judged.weights = judged.offset = NULL;
    if (status == KILN_OK) status = kiln_loss_deviance(D, &judged, Eta);
    if (status == KILN_OK) status = kiln_matrix_get(all, D);
    for (int64_t i = 0; status == KILN_OK && i < rows; i++) deviances[i] = all[3 * i];
    const int code = status == KILN_OK ? 0 : fail_library(WORKING);
    kiln_matrix_free(Eta);
    kiln_matrix_free(y);
    kiln_matrix_free(D);
    kiln_device_close(host);
    free(all);
    return code;
}

/* Nothing where a target is neither 0 nor 1: what a row loses is half its deviance then. */
static int measure_outcomes(struct metrics *metrics, const kiln_loss *loss, const double *deviances,
                            const double *eta, const double *means, const double *truth,
                            const double *weights, int64_t rows) {
    static double outcomes[] = {0, 1};
    const struct classes classes = {outcomes, 2, NULL};
    double lost = 0, brier = 0, right = 0, total = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double weight = weight_of(weights, i), y = truth[i], p = means[i];
        if (classes_find(&classes, y) < 0) return 0;
        if (weight == 0) continue;
        lost += weight * deviances[i] / 2;
        brier += weight * (p - y) * (p - y);
        right += (p > 0.5) == (y > 0) ? weight : 0;
        total += weight;
    }
    metrics_add(metrics, "log_loss", "log loss", lost / total);
    metrics_add(metrics, "brier", "Brier", brier / total);
    metrics_add(metrics, "accuracy", "accuracy", right / total);
    double *scores = malloc((size_t)rows * sizeof *scores + 1);
    if (!scores) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the scores");
    glm_scores(scores, loss, eta, rows);
    const int code = measure_auc(metrics, &classes, scores, truth, weights, rows);
    free(scores);
    return code;
}

void glm_scores(double *scores, const kiln_loss *loss, const double *eta, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) scores[i] = rises(loss) ? eta[i] : -eta[i];
}

int measure_glm(struct metrics *metrics, const kiln_loss *loss, const double *eta, const double *means,
                const double *truth, const double *weights, int64_t rows) {
    const kiln_range range = kiln_family_range(loss->family, loss->parameter);
    double sum = 0, total = 0;
    double *deviances = malloc((size_t)rows * sizeof *deviances + 1);
    if (!deviances) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the deviance");
    int code = unit_deviances(deviances, loss, eta, truth, rows);
    for (int64_t i = 0; i < rows && !code; i++) {
        const double weight = weight_of(weights, i), y = truth[i];
        if (weight == 0) continue;
        double mean = means ? means[i] : eta[i]; /* without means eta is one */
        if (isinf(mean) && isfinite(eta[i]) && eta[i] != 0) mean = copysign(DBL_MAX, mean); /* overflow */
        const bool possible = (range.open ? y > range.least : y >= range.least) && y <= range.most &&
                              mean >= range.least && mean <= range.most && isfinite(mean);
        sum += possible ? weight * deviances[i] : NAN;
        total += weight;
    }
    if (!code) metrics_add(metrics, "deviance", "deviance", sum);
    if (!code) metrics_add(metrics, "mean_deviance", "mean dev.", sum / total);
    if (!code && loss->family == KILN_BINOMIAL && means)
        code = measure_outcomes(metrics, loss, deviances, eta, means, truth, weights, rows);
    free(deviances);
    return code;
}

/* ---------------------------------------------------------------------------------- device to host */

double *values_of(const kiln_matrix *A, int *code) {
    int64_t count = kiln_matrix_rows(A) * kiln_matrix_cols(A);
    double *values = malloc((size_t)count * sizeof *values + 1);
    if (!values) {
        *code = fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld values", (long long)count);
        return NULL;
    }
    if (kiln_matrix_get(values, A) != KILN_OK) {
        *code = fail_library(WORKING);
        free(values);
        return NULL;
    }
    /* From the end, each float widens into room whose floats have been read already. */
    if (kiln_matrix_type(A) == KILN_F32)
        for (int64_t i = count - 1; i >= 0; i--) {
            float single;
            memcpy(&single, (char *)values + (size_t)i * sizeof single, sizeof single);
            values[i] = single;
        }
    return values;
}

int linear_predictor(kiln_matrix **Eta, const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b,
                     const kiln_matrix *offset) {
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t rows = kiln_matrix_rows(X), columns = kiln_matrix_cols(W);
    kiln_matrix *made = NULL, *ones = NULL;
    kiln_status status = KILN_OK;
    double *one = malloc((size_t)columns * sizeof *one);
    if (!one)
        return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for %lld columns", (long long)columns);
    for (int64_t c = 0; c < columns; c++) one[c] = 1;
    status = kiln_matrix_dense(&made, device, type, rows, columns, NULL);
    if (status == KILN_OK && b) status = kiln_matrix_dense(&ones, device, type, rows, 1, NULL);
    if (status == KILN_OK && b) status = kiln_fill(ones, 1);
    if (status == KILN_OK && b) status = kiln_multiply(made, 1, KILN_PLAIN, ones, b, 0, NULL);
    if (status == KILN_OK) status = kiln_multiply(made, 1, KILN_PLAIN, X, W, b ? 1 : 0, b ? made : NULL);
    if (status == KILN_OK && offset) status = kiln_combine(made, one, made, one, offset);
    free(one);
    kiln_matrix_free(ones);
    if (status == KILN_OK) {
        *Eta = made;
        return 0;
    }
    kiln_matrix_free(made);
    return fail_library(WORKING);
}
