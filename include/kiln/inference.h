/* Kiln: statistics of linear models: standard errors, tests, intervals, likelihoods, residuals.
 *
 * Statements on coefficients hold at an optimum without a penalty, of least squares, logistic regression of
 * two classes and generalised linear models. docs/statistics.md has every formula.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_INFERENCE_H
#define KILN_INFERENCE_H

#include "kiln/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_inference kiln_inference;

/* The ways to estimate the covariance of the coefficients. X~ = (X, 1) has the intercept's column, h_i is the
 * expected curvature of row i, H = X~^T diag(h) X~, u_i = s_i (y_i - mu_i) mu'_i / V(mu_i) the derivative of
 * its log-likelihood, l_i = h_i x~_i^T H^-1 x~_i its leverage, n the number of rows of weight above 0, p of
 * the parameters. */
typedef enum kiln_errors {
    KILN_ERRORS_MODEL = 0, /* dispersion H^-1 */
    /* H^-1 (X~^T diag(v) X~) H^-1 (White, Econometrica 48, 1980; MacKinnon and White, J. Econometrics 29,
     * 1985), v_i = u_i^2, */
    KILN_ERRORS_HC0 = 1,
    KILN_ERRORS_HC1 = 2, /* times n / (n - p); */
    KILN_ERRORS_HC2 = 3, /* u_i^2 / (1 - l_i), */
    KILN_ERRORS_HC3 = 4, /* u_i^2 / (1 - l_i)^2; a row of leverage 1, but for rounding, has v_i = 0 */
    /* H^-1 (sum_g S_g S_g^T) H^-1 G / (G - 1) (n - 1) / (n - p), S_g the sum of u_i x~_i over the rows of
     * group g, G the number of groups (Liang and Zeger, Biometrika 73, 1986) */
    KILN_ERRORS_CLUSTER = 5
} kiln_errors;
/* "model", "hc0", ..., "cluster"; NULL: no kind has that number. */
KILN_API const char *kiln_errors_name(kiln_errors errors);

typedef struct kiln_inference_options {
    size_t size;
    kiln_errors errors;
    /* KILN_ERRORS_CLUSTER: the group of each of X's rows, 0 ... group_count - 1, on the host */
    const int64_t *groups;
    int64_t group_count;
} kiln_inference_options;

/* Statistics of the model w (n x 1), b (1 x 1; NULL: no intercept) of a loss at its optimum on X (m x n) and
 * the loss's y, weights and offset. Kinds: SQUARED (Gaussian, identity), LOGISTIC (y 0 or 1: binomial, logit)
 * and GLM. A weight divides the variance of its row; rows of weight 0 count for nothing. Columns that depend
 * on those before them, but for rounding, are no parameters: their coefficient counts as 0, the others' are
 * those of the model without them, and predictions are the same. By name there are
 *   "rows"                n;  "parameters" p;  "model_degrees" p, but for the intercept;
 *   "residual_degrees"    n - p
 *   "deviance", "null_deviance", "pearson"   sums of kiln_loss_deviance's columns; null: of the best
 *                         intercept alone, with the offset
 *   "dispersion"          1 for Poisson, binomial, negative binomial and beta; else pearson / (n - p), NaN if
 *                         n = p
 *   "r2", "r2_adjusted"   1 - deviance / null_deviance, 1 - dispersion (n - 1) / null_deviance: of least
 *                         squares (Gaussian, identity) with an intercept alone, as
 *   "f", "f_p"            the F test of all slopes, whatever the errors: (null_deviance - deviance) /
 *                         model_degrees / dispersion
 *   "log_likelihood"      with all constants, at that dispersion; of the Gaussian with the identity link at
 *                         deviance / n, which makes it largest; NaN of Tweedie's p > 2. statsmodels' llf.
 *   "aic", "bic"          as R counts: -2 log-likelihood + (2 or log n) (parameters, with the dispersion
 *                         where it is estimated), which is put at deviance / weights for gamma and inverse
 *                         Gaussian and Tweedie
 *   "aic_of_means", "bic_of_means"   -2 log_likelihood + (2 or log n) p: statsmodels' aic and bic_llf
 *   "bic_of_deviance"     deviance - (n - p) log n: statsmodels' bic_deviance
 *   "groups"              G; of KILN_ERRORS_CLUSTER alone
 *   "distance"            sqrt(g^T H^-1 g / dispersion), g the gradient at w and b: no coefficient, and no
 *                         combination of some, is more standard errors away from where one step of Newton's
 *                         has it. The part that rounding of w and X can cause is taken off. At an optimum it
 *                         is next to 0; above 0.1 the model is that of other data, weights or offsets, or has
 *                         not converged, and the other figures are not those of an estimate
 *   "test_degrees"        those of Student's t that tests go by: n - p where the dispersion is estimated,
 *                         G - 1 of clusters then, infinite (the normal distribution) where it is known
 * Data in f32 are taken as they are, and computed with in f64: a copy of X in f64, where the device has it.
 * Cost: that; kiln_gram twice (HC, CLUSTER) or once, three passes, and kiln_linreg once where columns seem to
 * depend on others; for HC2 and HC3 and residuals m p^2 multiplications in passes of up to 64 columns; for
 * CLUSTER passes of min(64, 2^24 / m) groups each: 64 up to 262,144 rows, one beyond 8.4 million; on the host
 * p^3 and 3 p^2 doubles, 4 with robust errors. Determinism: as mmchain. Errors: ERR_ARGUMENT;
 * ERR_UNSUPPORTED (other losses); ERR_DATA (fewer than two groups; columns that only seem to depend on
 * others, as a row of 1e10 beside others of 1 makes them do); ERR_LIMIT (more than 16384 columns); those of
 * kiln_glm. *made is to be freed by kiln_inference_free; on failure it is untouched.
 * Source: McCullagh and Nelder, Generalized Linear Models, 2nd ed. 1989; Zeileis, J. Stat. Softw. 16 (2006)
 * for robust errors of generalised linear models. */
KILN_API kiln_status kiln_inference_of(kiln_inference **made, const kiln_matrix *w, const kiln_matrix *b,
                                       const kiln_matrix *X, const kiln_loss *loss,
                                       const kiln_inference_options *options);
KILN_API void kiln_inference_free(kiln_inference *inference); /* NULL is allowed */

/* The figure of that name, NaN if there is none; the name of the i-th, NULL past the last. */
KILN_API double kiln_inference_value(const kiln_inference *inference, const char *name);
KILN_API const char *kiln_inference_name(const kiln_inference *inference, int64_t i);

typedef struct kiln_coefficient {
    size_t size;
    double value, error;
    double statistic; /* value / error: t or z */
    double p;         /* the probability of both tails beyond it */
    double low, high; /* value -+ error times the quantile of (1 + level) / 2 */
    int dependent;    /* 1: the column depends on those before it; error and what follows from it are NaN */
} kiln_coefficient;
/* The coefficients, and the intercept last where there is one. level: in (0, 1), 0.95 for instance. */
KILN_API int64_t kiln_inference_count(const kiln_inference *inference);
KILN_API kiln_status kiln_inference_coefficient(kiln_coefficient *coefficient,
                                                const kiln_inference *inference, int64_t i, double level);
/* count x count by rows: the covariance of the estimates, the intercept last; NaN of dependent columns. */
KILN_API kiln_status kiln_inference_covariance(double *covariance, const kiln_inference *inference);

/* Gives what a row is judged by, at the result. R m x 7, on X's device, X and the loss those of the training:
 *   0 the mean mu;  1 y - mu;  2 Pearson's residual sqrt(s / V(mu)) (y - mu);  3 the deviance's, the root of
 *   its part with the sign of y - mu;  4 the leverage l;  5 Pearson's, standardised: over
 *   sqrt(dispersion (1 - l)), NaN where l = 1;  6 Cook's distance: the square of that times l / (1 - l) / p
 * Cost: m p^2 multiplications in passes of up to 64 columns, of X in f32 a copy in f64. Errors:
 * ERR_ARGUMENT, those of the operations. */
KILN_API kiln_status kiln_inference_residuals(kiln_matrix *R, const kiln_inference *inference,
                                              const kiln_matrix *X, const kiln_loss *loss);
/* Predictions of any rows X of as many columns, with offset (m x 1 or NULL). P m x 6, on X's device:
 *   0 eta = x~^T w + offset;  1 its standard error sqrt(x~^T Cov x~);  2 the mean mu;  3 its standard error
 *   |mu'(eta)| times that (the delta method);  4, 5 the interval of the mean at this level, which is that of
 *   eta through the link
 * Cost, errors: as kiln_inference_residuals. */
KILN_API kiln_status kiln_inference_predict(kiln_matrix *P, const kiln_inference *inference,
                                            const kiln_matrix *X, const kiln_matrix *offset, double level);

/* The parameter with which kiln_glm, with these options, reaches the largest likelihood: the negative
 * binomial's alpha, beta's precision, or Tweedie's power p between 1.01 and 1.99 with its best dispersion
 * (Dunn and Smyth, Stat. Comput. 15, 2005). options->parameter: a start, 0: none. Fits take 100 steps, or
 * options->max_iterations where that is more. The derivative at
 * the means is 0 there, found between two signs of that by the Illinois method, each fit beginning where the
 * last one ended (Venables and Ripley's glm.nb, 2002, alternates instead). It has 9 digits in f64, where the
 * means have them, about 6 in f32. Cost: 8 to 15 fits, of Tweedie some 10 us a row beside each. Errors: those
 * of kiln_glm; ERR_UNSUPPORTED (another family); ERR_DATA (none there, or between 1e-7 and 1e7, is
 * best: targets that vary no more than Poisson's, for instance; a fit without convergence; 100 fits). */
KILN_API kiln_status kiln_glm_estimate(double *parameter, const kiln_matrix *X, const kiln_matrix *y,
                                       const kiln_glm_options *options);

/* Two models of one family, link, parameter of these and data, the columns' space of `small` within that of
 * `large`. */
typedef struct kiln_comparison {
    size_t size;
    double degrees, under; /* parameters that `large` has more; under: n - p of `large`, infinite where the
                            * dispersion is known */
    double deviance;       /* by how much that of `large` is less */
    /* Dispersion known: that, which is chi square with `degrees`; else deviance / degrees / the dispersion of
     * `large`, which is F with `degrees` and `under`. p: the tail beyond it. */
    double statistic, p;
    double ratio, ratio_p; /* 2 (log-likelihood of large - of small), and its chi square tail */
} kiln_comparison;
/* Tests whether `small` will do. ERR_ARGUMENT: another family, link, power of the link or parameter of the
 * family (one estimated for each model is another one), not as many rows, other targets or weights in any
 * order (as f32 has them), or `large` has no more parameters. */
KILN_API kiln_status kiln_inference_compare(kiln_comparison *comparison, const kiln_inference *small,
                                            const kiln_inference *large);

/* Distributions, to 12 digits for degrees up to 1e9. Tails are probabilities of a value above x; of Student's
 * t of both tails beyond |t|. Infinite degrees (under) are the normal distribution, and chi square over
 * `over`. NaN where arguments make no sense. */
KILN_API double kiln_student_tails(double t, double degrees);
KILN_API double kiln_student_quantile(double level, double degrees); /* |t| below it has that probability */
KILN_API double kiln_chi_square_tail(double x, double degrees);
KILN_API double kiln_f_tail(double x, double over, double under);

#ifdef __cplusplus
}
#endif

#endif
