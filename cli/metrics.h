/* How good predictions are: from values on the host, weighted where there are weights. */
#ifndef CLI_METRICS_H
#define CLI_METRICS_H

#include <stdio.h>

#include "classes.h"
#include "common.h"

enum { METRICS_MOST = 20, CONFUSION_MOST = 20 };
struct metrics {
    struct metric {
        const char *key, *title;
        double value;
    } list[METRICS_MOST];
    int count;
    int64_t classes; /* side of the confusion table; 0 = none */
    double *
        confusion; /* weight of rows of class i that were taken for class j, at i * classes + j; the last row,
                        * i = classes, is of classes that the model does not know */
};
void metrics_free(struct metrics *metrics);
void metrics_add(struct metrics *metrics, const char *key, const char *title, double value);
double metrics_get(const struct metrics *metrics, const char *key); /* NaN if there is none */
double
metrics_unknown(const struct metrics *metrics); /* weight of rows of a class that the model does not know */
json_t *metrics_json(const struct metrics *metrics, const struct classes *classes);
void metrics_print(FILE *file, const struct metrics *metrics, int indent); /* a line each */
void metrics_print_confusion(FILE *file, const struct metrics *metrics, const struct classes *classes);

/* The first value of a column of truth whose row has weight: a mean is taken about it, so that that of equal
 * values is that value and what they leave is 0, not rounding. */
double metrics_first(const double *truth, const double *weights, int64_t rows, int64_t targets);
/* Rows with values against rows with truth, both rows x targets. r2, rss, rmse, mae. */
void measure_numbers(struct metrics *metrics, const double *values, const double *truth,
                     const double *weights, int64_t rows, int64_t targets);
/* Scores (linear predictors) and their means, rows x columns: one column, positive for the second class, or
 * one for each. accuracy, auc (two classes), confusion; log_loss and brier where the loss has probabilities.
 * A row of a class that the model does not know is wrong, of the probability 0, and of no class: `unknown`
 * is the weight of such rows, where there are any. 0, or an exit code: no memory. means: read of softmax
 * alone. */
int measure_classes(struct metrics *metrics, const struct classes *classes, const double *scores,
                    const kiln_loss *loss, const double *means, const double *truth, const double *weights,
                    int64_t rows);
/* Takes a glm's linear predictors with their offset, and their means, and adds deviance, sum_i s_i d(y_i,
 * mu_i), and mean_deviance, divided by the sum of the s_i. Of a binomial one whose targets are all 0 or 1
 * also log_loss, brier, accuracy (of a mean above 1/2) and auc; means NULL: not these, and eta is the mean.
 * NaN where a target or a mean is none that the family has. 0, or an exit code. */
int measure_glm(struct metrics *metrics, const kiln_loss *loss, const double *eta, const double *means,
                const double *truth, const double *weights, int64_t rows);
/* Rows are ranked by eta, or by -eta where the mean falls with it. */
void glm_scores(double *scores, const kiln_loss *loss, const double *eta, int64_t rows);

/* The values of a dense matrix as doubles, to free; NULL with the exit code in *code. */
double *values_of(const kiln_matrix *A, int *code);
/* Eta = X W + 1 b + offset on X's device; b and offset may be NULL. */
int linear_predictor(kiln_matrix **Eta, const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b,
                     const kiln_matrix *offset);

#endif
