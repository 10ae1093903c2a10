/* This header says how good predictions are, as kiln/metrics.h measures it, and how that is told. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <stdio.h>

#include "classes.h"
#include "common.h"

enum { METRICS_MOST = 24, CONFUSION_MOST = 20 };
struct metrics {
    struct metric {
        const char *key, *title;
        double value;
        const char *unknown; /* said in place of NaN; NULL: "not known" */
    } list[METRICS_MOST];
    int count;
    kiln_metrics *made; /* what the library has measured, or NULL */
    const struct classes *labels;
    int64_t classes;         /* side of the confusion table; 0 = none */
    const double *confusion; /* kiln_metrics_confusion */
};
void metrics_free(struct metrics *metrics);
void metrics_add(struct metrics *metrics, const char *key, const char *title, double value);
double metrics_get(const struct metrics *metrics, const char *key); /* NaN if there is none */
bool metrics_rises(const char *key); /* whether a larger value of that metric is a better one */
/* The weight of rows of a class that the model does not know, 0 if there are none. */
double metrics_unknown(const struct metrics *metrics);
/* The section "metrics", a line each; the table of true and predicted classes is in it, but not shown. */
void metrics_put(struct result *result, const struct metrics *metrics);
void metrics_put_confusion(struct result *result, const struct metrics *metrics); /* for people */

/* Adds what kiln_metrics_of says of predictors Eta and the loss's targets, which of a classifier are values
 * of its classes; with options->explained also what `kiln evaluate` alone prints. 0 or an exit code. */
int metrics_measure(struct metrics *metrics, const kiln_loss *loss, const struct classes *classes,
                    const kiln_matrix *Eta, const kiln_metrics_options *options);

/* A dense f64 matrix of numbers on the host, on a device "cpu". 0 or an exit code. */
int host_matrix(kiln_matrix **A, kiln_device *host, int64_t rows, int64_t cols, const double *values);
/* The values of a dense matrix as doubles, to free; NULL with the exit code in *code. */
double *values_of(const kiln_matrix *A, int *code);
/* Eta = X W + 1 b + offset on X's device; b and offset may be NULL. */
int linear_predictor(kiln_matrix **Eta, const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b,
                     const kiln_matrix *offset);

#endif
