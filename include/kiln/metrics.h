/* Kiln: how good predictions are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_METRICS_H
#define KILN_METRICS_H

#include "kiln/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All metrics of a set of predictions, which kiln_metrics_of makes. */
typedef struct kiln_metrics kiln_metrics;

typedef struct kiln_metrics_options {
    size_t size;
    /* A classifier's K classes, as the values of y that stand for them, ascending; NULL: 0, 1, ..., K - 1. A
     * row with any other y, NaN too, is of an unknown class. */
    const double *classes;
    int64_t class_count;      /* K; 0 where classes is NULL */
    const kiln_matrix *means; /* m x k, what numbers are compared with; NULL: kiln_loss_mean of Eta */
    int explained;            /* of a GLM also "null_deviance" and "d2" */
    int unranked;             /* without "auc", which costs more than all others together */
    int curves; /* kiln_metrics_roc and kiln_metrics_calibration have something; "auc" of several classes */
    double least_probability; /* a smaller one counts as this in "log_loss"; 0: none does */
    /* An Eta may have the predictors of several models side by side: k columns from `first` on are measured,
     * as if there were no others. 0 columns: all from 0 on. */
    int64_t first, columns;
} kiln_metrics_options;

/* Measures predictions Eta = X W + 1 b + offset (m x k) against the loss's y, m x k of numbers, m x 1 of
 * classes and of a GLM. Each row counts as often as the loss's weights say (m x 1, >= 0; NULL: 1), s below;
 * rows of weight 0 count for nothing. The matrices may lie on different devices and be of different types.
 * The loss's offset is read for "d2" alone. With W = sum_i s_i there are, in this order:
 *
 *   GLM     "deviance"       sum s d(y, mu), d as in kiln_loss_deviance; NaN where a target or a mean is none
 *                            that the family has
 *           "mean_deviance"  deviance / W
 *           if it is binomial and each y is 0 or 1, also
 *           "log_loss"       deviance / (2 W)
 *           "brier"          sum s (mu - y)^2 / W
 *           "accuracy"       the share of W where mu > 1/2 is y = 1
 *           "auc"            as below, rows ranked by eta, by -eta where the mean falls with it
 *   GLM, SQUARED, SQUARED_EPSILON: of e = y - mean, over all k targets
 *           "r2"             1 - rss / tss, tss = sum s (y - the target's mean)^2; NaN if tss = 0
 *           "rss"            sum s e^2
 *           "mse", "rmse"    rss / (k W), and its root
 *           "mae"            sum s |e| / (k W)
 *           "mean_error"     - sum s e / (k W)
 *   GLM     "null_deviance", "d2"  if `explained`: the deviance of the best intercept alone, with the loss's
 *                            offset; 1 - deviance / null_deviance, NaN if the null_deviance is not positive
 *   LOGISTIC, SQUARED_HINGE (m x 1: two classes, the second where eta > 0), SOFTMAX, SQUARED_HINGE (m x K:
 *   the class with the largest eta, the first of them)
 *           "accuracy"       the share of W where the class is right; an unknown one never is
 *           "log_loss"       sum s (-log p) / W, p the probability of the row's class, 0 of an unknown one
 *           "brier"          sum s sum_c (p_c - [c is the row's class])^2 / W, of two classes half of it;
 *                            an unknown class is one more, of p 0 (these two of LOGISTIC and SOFTMAX alone)
 *           "unknown"        the weight of the rows of unknown classes, if there are any
 *           "auc"            two classes: the share of the pairs of a row of the second class and another
 *                            row, by the product of their weights, in which the first has the larger eta; a
 *                            tie counts half; rows whose eta is NaN are left out; NaN without a pair
 *           "balanced_accuracy", "macro_f1"  means over the classes that y has, unknown ones counting as one
 *                            that is never found
 *           "auc"            K > 2, if `curves`: the mean over the classes that y has of each one's against
 *                            all others, ranked by probability (SOFTMAX) or eta
 *
 * Cost: one pass over Eta, y and weights, on all threads; with "auc" three more and 4 bytes a row of memory
 * (8 of f64), with weights or curves 16 (without curves, where few scores are equal, 256 MB or 3.2 bytes a
 * row at most, by eight); K > 2 with curves K times that. A GPU that knows doubles and has all matrices
 * measures where they lie: some kilobytes come home, and "auc" takes 32 bytes a row of its memory. With
 * curves, without that room, and where matrices lie on several devices or with other processes, they are
 * fetched.
 * Determinism: the same bits for any number of threads, and from run to run of a GPU. Sums are in double and
 * compensated, whatever the type; the ranks are exact. Errors: ERR_ARGUMENT (shapes, kinds, families, classes
 * that do not ascend), ERR_DATA (a weight is negative or NaN), ERR_NOMEM, device errors; with an offset those
 * of kiln_glm.
 * *metrics is to be freed by kiln_metrics_free; on failure it is untouched. */
KILN_API kiln_status kiln_metrics_of(kiln_metrics **metrics, const kiln_loss *loss, const kiln_matrix *Eta,
                                     const kiln_metrics_options *options);
KILN_API void kiln_metrics_free(kiln_metrics *metrics); /* NULL is allowed */

/* The metric of that name, NaN if there is none; the name of the i-th, NULL past the last. */
KILN_API double kiln_metrics_value(const kiln_metrics *metrics, const char *name);
KILN_API const char *kiln_metrics_name(const kiln_metrics *metrics, int64_t i);
/* The same of target j alone: "r2", "rss", "tss", "mse", "mae", "mean_error"; or of class j: "weight" of its
 * rows, "precision", "recall", "f1", "auc" (NaN where nothing is divided by nothing, or it was not
 * measured). */
KILN_API double kiln_metrics_part(const kiln_metrics *metrics, int64_t j, const char *name);
/* The weight of the rows of class i that were taken for class j, at i * K + j, K + 1 rows: the last one is of
 * unknown classes. *classes (may be NULL) = K. NULL and 0: these are metrics of numbers. Owned by metrics. */
KILN_API const double *kiln_metrics_confusion(const kiln_metrics *metrics, int64_t *classes);

/* The receiver operating characteristic: of the rows whose score is above each threshold, the shares of all
 * others and of all rows of the class, from (0, 0) to (1, 1). A longer curve keeps about 200 points, evenly
 * along the curve; the area is that of all points. */
enum { KILN_ROC_MOST = 202 };
typedef struct kiln_roc {
    int64_t count; /* of points; 0: there are not both, rows of the class and others */
    double area;
    double false_share[KILN_ROC_MOST], true_share[KILN_ROC_MOST];
} kiln_roc;
/* Returns the curve of class j against all others; of two classes, and of a binomial GLM's outcomes (j = 0),
 * one class says it all. NULL: there is none. Owned by metrics. */
KILN_API const kiln_roc *kiln_metrics_roc(const kiln_metrics *metrics, int64_t j);

/* Rows in order of their predictions, in bins of about equal weight; equal predictions share a bin. */
enum { KILN_BINS = 10 };
typedef struct kiln_bin {
    double least, most, weight; /* of the predictions in it */
    double predicted, observed; /* means */
    double error;               /* the standard error of the mean observed; NaN of a single row */
    /* of observed - predicted: a tenth of the weight lies below the first, half below the second, nine
     * tenths below the third */
    double residuals[3];
} kiln_bin;
/* *count bins (at most KILN_BINS) of target j, or of the probability of class j; of two classes the second
 * has the only ones. Rows whose prediction is not finite are left out. NULL and 0: there are none. Owned by
 * metrics. */
KILN_API const kiln_bin *kiln_metrics_calibration(const kiln_metrics *metrics, int64_t j, int64_t *count);

/* ---------------------------------------------------------------------------------------- rankings */

/* Figures of the `top` best columns of rows, where `test` says which ones each row should have had. They are
 * of the rows that have entries in test, with h_t = 1 where the column at place t = 1 ... top is one of the
 * row's c entries, else 0, p = min(top, c) and N columns in all: */
typedef struct kiln_ranking {
    size_t size;
    double recall;    /* the rows' mean of: sum h / p */
    double precision; /* sum of all h / sum of all p: what was found of what `top` places have room for */
    double ndcg;      /* the rows' mean of: sum h_t / log2(t + 1), divided by the best such sum */
    int64_t rows;     /* that have entries */
    double map;       /* the rows' mean of: sum_t h_t (h_1 + ... + h_t) / t, divided by p */
    /* the rows' mean of the area under the curve of the places, all columns behind them taken to be in random
     * order: [sum_t m_t (h_1 + ... + h_t) + (sum h + c) / 2 (N - c - sum m)] / (c (N - c)), m_t = 1 - h_t for
     * the first N - c places with h_t = 0, 0 behind them; rows that have all columns are left out, NaN if all
     * do */
    double auc;
    double coverage; /* the share of the N columns that were recommended to one of these rows or more */
} kiln_ranking;
/* columns: top for each row of test, best first, -1 where there is none, which counts as a miss. precision,
 * map, ndcg and auc are those of implicit.evaluation.ranking_metrics_at_k, but that its auc has no bound on
 * misses, and may be below 0 where lists have fewer than `top` columns. Without a row that has entries all
 * are 0. Cost: a look at each place and entry, on all threads of the machine's; 4 bytes a column of memory.
 * Determinism: the same bits for any number of threads. Errors: ERR_ARGUMENT (test dense, a column that is
 * not there), ERR_NOMEM, device errors. */
KILN_API kiln_status kiln_ranking_of(kiln_ranking *ranking, int64_t top, const int64_t *columns,
                                     const kiln_matrix *test);

/* ---------------------------------------------------------------------------------------- coherence */

/* Over the rows of X (documents), d(w) of which have an entry above 0 in column w, d(v, w) in both, N in all,
 * e = 1e-12: of a topic's words w_1, w_2, ..., best first, the mean over pairs of
 *   UMASS  log((d(w_i, w_j) / N + e) / (d(w_j) / N)),  j < i
 *   NPMI   log((p + e) / (d(w_i) d(w_j) / N^2)) / -log(p + e),  p = d(w_i, w_j) / N,  i != j
 * where a pair with a word of no document counts as 0. These are gensim's "u_mass", and its "c_npmi" with a
 * window that is as long as the longest document. */
typedef enum kiln_coherence_kind { KILN_COHERENCE_UMASS = 1, KILN_COHERENCE_NPMI = 2 } kiln_coherence_kind;
/* coherences[t] = topic t's, whose words are the columns words[t * top] ... words[t * top + top - 1], -1
 * behind the last where there are fewer, and nowhere else; NaN with less than two words. X m x n CSR.
 * Cost: a look at each entry, m / 64 operations a pair of words; m / 8 bytes a word. Determinism: the same
 * bits.
 * Errors: ERR_ARGUMENT (X dense, a column that is not there, a word behind a -1), ERR_NOMEM, device errors.
 * Source: Mimno et al., "Optimizing semantic coherence in topic models", EMNLP 2011; Bouma, "Normalized
 * (pointwise) mutual information in collocation extraction", GSCL 2009; Roeder, Both and Hinneburg, WSDM
 * 2015. */
KILN_API kiln_status kiln_coherence(double *coherences, kiln_coherence_kind kind, int64_t topics, int64_t top,
                                    const int64_t *words, const kiln_matrix *X);

#ifdef __cplusplus
}
#endif

#endif
