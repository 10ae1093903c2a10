/* Metrics of predictions: what is asked for, and what comes of the sums and ranks. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/seams.h"
#include "core/status.h"
#include "kiln/linear.h"
#include "metrics/explained.h"
#include "metrics/metrics.h"

enum { METRICS_MOST = 20, PART_METRICS = 6 };

static const char *const number_names[PART_METRICS] = {"r2", "rss", "tss", "mse", "mae", "mean_error"};
enum { PART_WEIGHT, PART_PRECISION, PART_RECALL, PART_F1, PART_AUC };
static const char *const class_names[PART_METRICS] = {"weight", "precision", "recall", "f1", "auc"};

struct kiln_metrics {
    struct {
        const char *name;
        double value;
    } list[METRICS_MOST];
    int count;
    int64_t classes, parts;          /* 0: numbers; classes or targets */
    double (*of_part)[PART_METRICS]; /* of each of them */
    double *confusion;               /* (classes + 1) x classes */
    int64_t curves;                  /* classes or targets that have some; of two classes one */
    kiln_roc *rocs;                  /* NULL: none are */
    kiln_bin (*bins)[KILN_BINS];     /* NULL: none are */
    int64_t *bin_counts;
};

static void add(kiln_metrics *metrics, const char *name, double value) {
    assert(metrics->count < METRICS_MOST);
    metrics->list[metrics->count].name = name;
    metrics->list[metrics->count++].value = value;
}

void kiln_metrics_free(kiln_metrics *metrics) {
    if (!metrics) return;
    ki_free(metrics->of_part);
    ki_free(metrics->confusion);
    ki_free(metrics->rocs);
    ki_free(metrics->bins);
    ki_free(metrics->bin_counts);
    ki_free(metrics);
}

double kiln_metrics_value(const kiln_metrics *metrics, const char *name) {
    for (int i = 0; metrics && name && i < metrics->count; i++)
        if (strcmp(metrics->list[i].name, name) == 0) return metrics->list[i].value;
    return NAN;
}

const char *kiln_metrics_name(const kiln_metrics *metrics, int64_t i) {
    return metrics && i >= 0 && i < metrics->count ? metrics->list[i].name : NULL;
}

double kiln_metrics_part(const kiln_metrics *metrics, int64_t j, const char *name) {
    if (!metrics || !name || j < 0 || j >= metrics->parts) return NAN;
    const char *const *names = metrics->classes ? class_names : number_names;
    for (int i = 0; i < PART_METRICS && names[i]; i++)
        if (strcmp(names[i], name) == 0) return metrics->of_part[j][i];
    return NAN;
}

const double *kiln_metrics_confusion(const kiln_metrics *metrics, int64_t *classes) {
    if (classes) *classes = metrics ? metrics->classes : 0;
    return metrics && metrics->classes ? metrics->confusion : NULL;
}

/* Returns where the curves of class or target j are; -1: nowhere. */
static int64_t curve_of(const kiln_metrics *metrics, int64_t j) {
    if (!metrics || j < 0 || j >= metrics->parts) return -1;
    if (metrics->classes == 2) return j == 1 ? 0 : -1;
    return j < metrics->curves ? j : -1;
}

const kiln_roc *kiln_metrics_roc(const kiln_metrics *metrics, int64_t j) {
    const int64_t at = curve_of(metrics, j);
    return at < 0 || !metrics->rocs ? NULL : &metrics->rocs[at];
}

const kiln_bin *kiln_metrics_calibration(const kiln_metrics *metrics, int64_t j, int64_t *count) {
    const int64_t at = curve_of(metrics, j);
    const bool there = at >= 0 && metrics->bins;
    if (count) *count = there ? metrics->bin_counts[at] : 0;
    return there ? metrics->bins[at] : NULL;
}

static const char call[] = "kiln_metrics_of";

/* --------------------------------------------------------------------------------------------- numbers */

static void add_numbers(kiln_metrics *metrics, const struct ki_metric_sums *sums, int64_t targets) {
    struct ki_sum rss = {0, 0}, tss = {0, 0}, absolute = {0, 0}, error = {0, 0};
    const double weight = sums->numbers[0].y.weight, all = weight * (double)targets;
    for (int64_t j = 0; j < targets; j++) {
        const struct ki_number_sums *own = &sums->numbers[j];
        const double square = ki_sum_of(&own->square);
        const double values[PART_METRICS] = {ki_explained(square, own->y.spread),
                                             square,
                                             own->y.spread,
                                             square / weight,
                                             ki_sum_of(&own->absolute) / weight,
                                             ki_sum_of(&own->error) / weight};
        memcpy(metrics->of_part[j], values, sizeof values);
        ki_sum_add(&rss, square);
        ki_sum_add(&tss, own->y.spread);
        ki_sum_add(&absolute, ki_sum_of(&own->absolute));
        ki_sum_add(&error, ki_sum_of(&own->error));
    }
    add(metrics, "r2", ki_explained(ki_sum_of(&rss), ki_sum_of(&tss)));
    add(metrics, "rss", ki_sum_of(&rss));
    add(metrics, "mse", ki_sum_of(&rss) / all);
    add(metrics, "rmse", sqrt(ki_sum_of(&rss) / all));
    add(metrics, "mae", ki_sum_of(&absolute) / all);
    add(metrics, "mean_error", ki_sum_of(&error) / all);
}

/* --------------------------------------------------------------------------------------------- a GLM */

/* With an offset, or a score that is not linear, the best mean is not that of the targets: the intercept is
 * fitted, to a column that is 0. */
static kiln_status fit_null(double *deviance, const kiln_loss *loss) {
    kiln_status status = KILN_OK;
    kiln_matrix *X = NULL, *w = NULL, *b = NULL;
    kiln_device *device = loss->y->device;
    kiln_report report = {.size = sizeof report};
    const kiln_glm_options options = {.family = loss->family,
                                      .link = loss->link,
                                      .parameter = loss->parameter,
                                      .link_power = loss->link_power,
                                      .weights = loss->weights,
                                      .offset = loss->offset};
    TRY(kiln_matrix_dense(&X, device, loss->y->type, loss->y->rows, 1, NULL));
    TRY(kiln_matrix_dense(&w, device, loss->y->type, 1, 1, NULL));
    TRY(kiln_matrix_dense(&b, device, loss->y->type, 1, 1, NULL));
    TRY(kiln_glm(w, b, X, loss->y, &options, &report));
    *deviance = kiln_report_figure(&report, "null_deviance");
done:
    kiln_report_free(&report);
    kiln_matrix_free(X);
    kiln_matrix_free(w);
    kiln_matrix_free(b);
    return status;
}

static kiln_status add_explained(kiln_metrics *metrics, const struct ki_measured *of,
                                 const struct ki_metric_sums *sums) {
    const double deviance = ki_sum_of(&sums->rows.deviance);
    double null = NAN;
    kiln_status status = KILN_OK;
    if (!isnan(deviance) && (of->loss.offset || !kiln_family_describe(of->loss.family)->linear_score))
        status = fit_null(&null, &of->loss);
    else if (!isnan(deviance))
        status = ki_deviance_at(&null, of, ki_variation_mean(&sums->numbers[0].y));
    if (status != KILN_OK) return status;
    add(metrics, "null_deviance", null);
    add(metrics, "d2", ki_explained(deviance, null));
    return KILN_OK;
}

static void add_deviance(kiln_metrics *metrics, const struct ki_row_sums *sums, bool outcomes) {
    const double weight = ki_sum_of(&sums->weight), deviance = ki_sum_of(&sums->deviance);
    add(metrics, "deviance", deviance);
    add(metrics, "mean_deviance", deviance / weight);
    if (!outcomes) return;
    add(metrics, "log_loss", deviance / 2 / weight);
    add(metrics, "brier", ki_sum_of(&sums->brier) / weight);
    add(metrics, "accuracy", ki_sum_of(&sums->right) / weight);
}

/* --------------------------------------------------------------------------------------------- classes */

/* Precision, recall and F1 of a class, from the table. */
static void take_class(double of_part[PART_METRICS], const double *confusion, int64_t class, int64_t k) {
    double own = 0, taken = 0;
    const double right = confusion[class * k + class];
    for (int64_t c = 0; c < k; c++) own += confusion[class * k + c];
    for (int64_t c = 0; c <= k; c++) taken += confusion[c * k + class]; /* with those that are unknown */
    of_part[PART_WEIGHT] = own;
    of_part[PART_PRECISION] = taken > 0 ? right / taken : (double)NAN;
    of_part[PART_RECALL] = own > 0 ? right / own : (double)NAN;
    of_part[PART_F1] = own + taken > 0 ? 2 * right / (own + taken) : (double)NAN;
    of_part[PART_AUC] = NAN;
}

static double unknown_weight(const kiln_metrics *metrics) {
    double weight = 0;
    for (int64_t c = 0; c < metrics->classes; c++)
        weight += metrics->confusion[metrics->classes * metrics->classes + c];
    return weight;
}

static void add_rates(kiln_metrics *metrics, const struct ki_row_sums *sums, bool probable) {
    const double weight = ki_sum_of(&sums->weight);
    for (int64_t c = 0; c < metrics->classes; c++)
        take_class(metrics->of_part[c], metrics->confusion, c, metrics->classes);
    add(metrics, "accuracy", ki_sum_of(&sums->right) / weight);
    if (probable) add(metrics, "log_loss", ki_sum_of(&sums->lost) / weight);
    if (probable) add(metrics, "brier", ki_sum_of(&sums->brier) / weight);
    if (unknown_weight(metrics) > 0) add(metrics, "unknown", unknown_weight(metrics));
}

/* Means over the classes that the rows have; of those that are unknown, which count as one, nothing is
 * found. */
static void add_means_of_classes(kiln_metrics *metrics) {
    double recall = 0, f1 = 0, area = 0, present = 0;
    for (int64_t c = 0; c < metrics->classes; c++) {
        const double *own = metrics->of_part[c];
        if (!(own[PART_WEIGHT] > 0)) continue;
        recall += own[PART_RECALL];
        f1 += own[PART_F1];
        area += isnan(own[PART_AUC]) ? 0 : own[PART_AUC];
        present++;
    }
    const double all = present + (unknown_weight(metrics) > 0);
    add(metrics, "balanced_accuracy", recall / all);
    add(metrics, "macro_f1", f1 / all);
    if (metrics->classes > 2 && metrics->rocs) add(metrics, "auc", area / present);
}

/* --------------------------------------------------------------------------------------------- curves */

static kiln_status allocate_curves(kiln_metrics *metrics, bool ranked, bool calibrated) {
    const size_t count = (size_t)metrics->curves;
    if (ranked) metrics->rocs = ki_calloc(count * sizeof *metrics->rocs);
    if (calibrated) metrics->bins = ki_calloc(count * sizeof *metrics->bins);
    if (calibrated) metrics->bin_counts = ki_calloc(count * sizeof *metrics->bin_counts);
    if ((ranked && !metrics->rocs) || (calibrated && (!metrics->bins || !metrics->bin_counts)))
        return ki_fail_nomem(count * sizeof *metrics->rocs, "the curves");
    return KILN_OK;
}

/* The curves are those of each class against the rest, or of each target. probabilities: of several
 * classes. */
static kiln_status take_curves(kiln_metrics *metrics, const struct ki_measured *of, bool ranked,
                               const double *probabilities) {
    kiln_status status;
    const bool calibrated = !of->classes || ki_has_probabilities(of);
    TRY(allocate_curves(metrics, ranked, calibrated));
    for (int64_t j = 0; j < metrics->curves; j++) {
        const int64_t class = of->classes == 2 ? 1 : j;
        const struct ki_scores scores = {of, of->classes == 2 ? NULL : probabilities,
                                         of->classes ? class : 1};
        double area = NAN;
        if (ranked) TRY(ki_rank(&area, &metrics->rocs[j], &scores));
        if (ranked && of->classes) metrics->of_part[class][PART_AUC] = area;
        if (calibrated)
            TRY(ki_calibrate(metrics->bins[j], &metrics->bin_counts[j], of, class, probabilities));
    }
done:
    return status;
}

/* "auc" of two classes or outcomes, and all curves that are asked for. */
static kiln_status add_ranks(kiln_metrics *metrics, const struct ki_measured *of, bool outcomes) {
    kiln_status status = KILN_OK;
    const bool two = of->classes == 2 || outcomes, many = of->classes > 2;
    double area = NAN, *probabilities = NULL;
    metrics->curves = of->classes == 2 ? 1 : metrics->parts;
    if (!of->options.curves) {
        if (two && !of->options.unranked) {
            TRY(ki_rank(&area, NULL, &(struct ki_scores){of, NULL, 1}));
            if (of->classes) metrics->of_part[1][PART_AUC] = area;
            add(metrics, "auc", area);
        }
        goto done;
    }
    if (of->loss.kind == KILN_LOSS_SOFTMAX && !(probabilities = ki_probabilities(of))) {
        status = ki_fail_nomem((size_t)(of->rows * of->columns) * sizeof(double), "probabilities");
        goto done;
    }
    TRY(take_curves(metrics, of, two || many, probabilities));
    if (two) add(metrics, "auc", metrics->rocs[0].area);
done:
    ki_free(probabilities);
    return status;
}

/* ----------------------------------------------------------------------------------------------- call */

static kiln_status measure(kiln_metrics *metrics, const struct ki_measured *of) {
    struct ki_metric_sums sums = {.confusion = NULL};
    kiln_status status;
    TRY(ki_sums_take(&sums, of));
    if (sums.rows.wrong) {
        status = ki_fail(KILN_ERR_DATA, "%s: a weight is negative or not a number", call);
        goto done;
    }
    const bool glm = of->loss.kind == KILN_LOSS_GLM;
    const bool outcomes = glm && kiln_family_describe(of->loss.family)->outcomes && sums.rows.outcomes;
    metrics->classes = of->classes;
    metrics->parts = of->classes ? of->classes : of->columns;
    metrics->confusion = sums.confusion;
    sums.confusion = NULL;
    metrics->of_part = ki_calloc((size_t)metrics->parts * sizeof *metrics->of_part);
    if (!metrics->of_part) {
        status = ki_fail_nomem((size_t)metrics->parts * sizeof *metrics->of_part, "metrics");
        goto done;
    }
    if (of->classes) add_rates(metrics, &sums.rows, ki_has_probabilities(of));
    if (glm) add_deviance(metrics, &sums.rows, outcomes);
    TRY(add_ranks(metrics, of, outcomes));
    if (of->classes) add_means_of_classes(metrics);
    if (!of->classes) add_numbers(metrics, &sums, of->columns);
    if (glm && of->options.explained) TRY(add_explained(metrics, of, &sums));
done:
    ki_free(sums.numbers);
    ki_free(sums.confusion);
    return status;
}

/* at_home: in host memory, wherever Eta lies. *on: whether it was measured on a GPU. */
static kiln_status measure_where(kiln_metrics **metrics, bool *on, bool at_home, const kiln_loss *loss,
                                 const kiln_matrix *Eta, const kiln_metrics_options *options) {
    struct ki_measured of = {.at_home = at_home};
    kiln_metrics *made = NULL;
    kiln_status status;
    TRY(ki_measured_take(&of, loss, Eta, options));
    made = ki_calloc(sizeof *made);
    if (!made) {
        status = ki_fail_nomem(sizeof *made, "metrics");
        goto done;
    }
    TRY(measure(made, &of));
    *metrics = made;
    made = NULL;
done:
    *on = of.on != NULL;
    ki_measured_free(&of);
    kiln_metrics_free(made);
    return status;
}

kiln_status kiln_metrics_of(kiln_metrics **metrics, const kiln_loss *loss, const kiln_matrix *Eta,
                            const kiln_metrics_options *options) {
    bool on = false;
    if (!metrics || !loss || !Eta)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: metrics, loss or Eta is NULL", call);
    const kiln_status status = measure_where(metrics, &on, false, loss, Eta, options);
    if (status != KILN_ERR_DEVICE_NOMEM || !on) return status;
    return measure_where(metrics, &on, true, loss, Eta, options); /* what it needs in passing found no room */
}
