/* D2: the share of the deviance from the best intercept alone that a generalised linear model explains. */
#include <math.h>
#include <stdlib.h>

#include "evaluate.h"

static double weight_of(const struct prediction *p, int64_t i) {
    return p->weight ? p->weight[i] : 1;
}

/* The deviance of the best intercept alone: without an offset its mean is that of the targets. */
static int null_deviance(double *deviance, const struct prediction *p) {
    struct metrics null = {.count = 0};
    kiln_loss loss = p->loss;
    double sum = 0, total = 0;
    double *means = malloc((size_t)p->rows * sizeof *means + 1);
    if (!means) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the deviance");
    const double level = metrics_first(p->labels, p->weight, p->rows, 1);
    for (int64_t i = 0; i < p->rows; i++) {
        sum += weight_of(p, i) * (p->labels[i] - level);
        total += weight_of(p, i);
    }
    for (int64_t i = 0; i < p->rows; i++) means[i] = level + sum / total;
    loss.link = KILN_LINK_IDENTITY;
    const int code = measure_glm(&null, &loss, means, NULL, p->labels, p->weight, p->rows);
    *deviance = metrics_get(&null, "deviance");
    metrics_free(&null);
    free(means);
    return code;
}

/* With an offset no mean is that of all rows: the intercept is fitted, to a column that is 0. */
static int null_deviance_with_offset(double *deviance, const struct run *run, const struct prediction *p) {
    const kiln_type type = kiln_matrix_type(kiln_data_X(p->data));
    kiln_matrix *X = NULL, *w = NULL, *b = NULL;
    kiln_report report = {.size = sizeof report};
    kiln_status status = kiln_matrix_dense(&X, run->device, type, p->rows, 1, NULL);
    if (status == KILN_OK) status = kiln_matrix_dense(&w, run->device, type, 1, 1, NULL);
    if (status == KILN_OK) status = kiln_matrix_dense(&b, run->device, type, 1, 1, NULL);
    if (status == KILN_OK)
        status = kiln_glm(w, b, X, kiln_data_y(p->data),
                          &(kiln_glm_options){.family = p->loss.family,
                                              .link = p->loss.link,
                                              .parameter = p->loss.parameter,
                                              .link_power = p->loss.link_power,
                                              .weights = p->weights,
                                              .offset = p->offset},
                          &report);
    *deviance = status == KILN_OK ? kiln_report_figure(&report, "null_deviance") : (double)NAN;
    const int code = status == KILN_OK ? 0 : fail_library(WORKING);
    kiln_report_free(&report);
    kiln_matrix_free(X);
    kiln_matrix_free(w);
    kiln_matrix_free(b);
    return code;
}

/* 1 - deviance / that of the best intercept alone, as R2 is for squares. */
int evaluate_explained_deviance(const struct run *run, struct prediction *p) {
    const double deviance = metrics_get(&p->metrics, "deviance");
    double null = NAN;
    int code = 0;
    if (!isnan(deviance))
        code = p->offset ? null_deviance_with_offset(&null, run, p) : null_deviance(&null, p);
    if (!code) metrics_add(&p->metrics, "d2", "D2", null > 0 ? 1 - deviance / null : NAN);
    return code;
}
