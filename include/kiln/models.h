/* Kiln: models and the algorithms that make them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_MODELS_H
#define KILN_MODELS_H

#include "kiln/data.h"
#include "kiln/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------- models
 * A model file is a safetensors file: tensors (weights "W" n x k, "b" 1 x k) and string metadata
 * ("algorithm", "kiln_version", "schema", options, metrics). Loading checks all of it before use. */

KILN_API kiln_status kiln_model_create(kiln_model **model, const char *algorithm);
KILN_API void kiln_model_free(kiln_model *model);
KILN_API kiln_status kiln_model_set_text(kiln_model *model, const char *key, const char *value);
KILN_API const char *kiln_model_text(const kiln_model *model, const char *key); /* NULL if absent */
KILN_API const char *kiln_model_key(const kiln_model *model, int64_t i); /* i-th key in order, or NULL */
KILN_API kiln_status kiln_model_set_tensor(kiln_model *model, const char *name, const kiln_matrix *A);
/* A new matrix on the device; type KILN_TYPE_DEFAULT keeps the stored one. ERR_MODEL if there is no such
 * tensor. */
KILN_API kiln_status kiln_model_tensor(kiln_matrix **A, kiln_device *device, kiln_type type,
                                       const kiln_model *model, const char *name);
/* Shape and type of the i-th tensor, in order of name; returns its name, or NULL past the last. */
KILN_API const char *kiln_model_tensor_info(const kiln_model *model, int64_t i, kiln_type *type,
                                            int64_t *rows, int64_t *cols);
KILN_API kiln_status kiln_model_save(const kiln_model *model, const char *path);
KILN_API kiln_status kiln_model_load(kiln_model **model, const char *path);
/* "gaussian", "inverse-gaussian", ...; "default", "logit", "inverse-squared", ...; NULL for an unknown number. */
KILN_API const char *kiln_family_name(kiln_family family);
KILN_API const char *kiln_link_name(kiln_link link);
/* The loss that a model was trained with, without targets, weights and offset: by its algorithm, for glm by its texts
 * "family" and "link" and its tensor "parameters" (1 x 2: kiln_loss.parameter and link_power; svm: epsilon, 0).
 * ERR_MODEL: it has none, or they are unknown. */
KILN_API kiln_status kiln_model_loss(kiln_loss *loss, const kiln_model *model);
/* Whether the model's coefficients are a start for training with this loss, of which only kind, family, link and parameters
 * count: X W + b must mean the same in both, which is the target itself (linreg, svm for regression, glm at the identity link), the
 * mean at one and the same link (glm), or what one kind of classifier makes of it (logreg, svm). ERR_MODEL says what the two
 * are; the model is untouched. Shapes and classes are for the caller to compare. */
KILN_API kiln_status kiln_model_check_start(const kiln_model *model, const kiln_loss *loss);
/* The model's prediction for each row of X: a new matrix on X's device.
 *   linreg  X W + b, m x k                 glm  the mean, m x 1, at offset 0
 *   logreg  probabilities, m x K, in the order of the classes (both for two)
 *   svm     decision values X W + b, m x 1 or m x K; regression: the values
 *   hits    ERR_MODEL: it ranks the vertices of one graph
 * One pass over X. ERR_MODEL if the model's columns and X's differ. */
KILN_API kiln_status kiln_predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X);

/* ------------------------------------------------------------------------------------ algorithms
 * One objective for every linear model: sum_i s_i * loss_i + (l2/2) * ||w||^2, intercept not penalised;
 * squared loss is (1/2)(x_i.w + b - y_i)^2. So l2 is scikit-learn Ridge's alpha and 1/C of LIBLINEAR.
 * A tolerance of 0 is the default, as 0 is everywhere. One that cannot be reached, such as 1e-300, goes on until rounding
 * (KILN_STOP_STALLED) or max_iterations ends it.
 * A warm start gives the solver its starting point and nothing else: conjugate directions, trust region and preconditioner
 * are made anew. kiln_model_check_start says of which models it may be taken. A result that has converged comes back with the
 * same bits (linear models). A run that was broken off and goes on meets the same criterion, at another of the points that meet
 * it: objective and predictions agree to the tolerance, coefficients as far as the problem determines them. In hits the start is
 * all of the state: but for the rounding of scaling it to its norm again it goes on as it would have. */

typedef enum kiln_stop {
    KILN_STOP_NONE = 0,
    KILN_STOP_TOLERANCE = 1,  /* the criterion was met: converged */
    KILN_STOP_ITERATIONS = 2, /* max_iterations reached */
    KILN_STOP_STALLED = 3,    /* rounding prevents further progress above the tolerance */
    KILN_STOP_CANCELLED = 4,  /* the progress callback asked to stop */
    KILN_STOP_DIVERGED = 5    /* a number became NaN or infinite */
} kiln_stop;
KILN_API const char *kiln_stop_name(kiln_stop stop); /* "tolerance", "max_iterations", ... */

typedef struct kiln_trace_row {
    int64_t iteration;
    double residual, objective, seconds;
    int64_t inner; /* Newton methods: conjugate gradient iterations in this step; else 0 */
    double radius; /* Newton methods: the trust region's, after this step; else 0 */
} kiln_trace_row;

/* What a run did. Zero it before the call (kiln_report report = {0}), free what it
 * holds with kiln_report_free. */
typedef struct kiln_report {
    size_t size;
    int converged; /* 1 only if the criterion was checked on the returned result and held */
    kiln_stop stopped_by;
    int64_t iterations;    /* of the main loop */
    double residual;       /* the criterion's value at the returned result */
    double tolerance;      /* what it was compared with */
    double objective;      /* at the returned result */
    int64_t passes;        /* over X, all told */
    double seconds;        /* in the solver */
    kiln_trace_row *trace; /* row 0 is the start */
    int64_t trace_count;
    struct kiln_figures *figures; /* kiln_report_figure reads them */
} kiln_report;
/* Frees the trace and the figures. NULL is allowed. */
KILN_API void kiln_report_free(kiln_report *report);

/* What else the algorithm has to say of its result, by name; NaN if it does not say that.
 *   linreg  "rss", "tss"     weighted sums of squares over all targets: residual; about the means of y, with and without
 *                            intercept
 *           "r2"             1 - rss/tss; NaN if tss = 0
 *   glm     "deviance"       sum_i s_i d(y_i, mu_i), d as in kiln_loss_deviance
 *           "null_deviance"  that of the best intercept alone, with offset and link as given
 *           "dispersion"     Pearson's statistic / (rows of weight > 0 - parameters), NaN where that divisor is not positive; 1
 *                            for Poisson, binomial and negative binomial
 *           "aic"            Akaike's criterion, as kiln_glm's comment has it
 *   svm     "gap"            the relative duality gap, an upper bound of the objective's relative error */
KILN_API double kiln_report_figure(const kiln_report *report, const char *name);
/* The name of the i-th figure in the report, in the order above; NULL past the last. */
KILN_API const char *kiln_report_figure_name(const kiln_report *report, int64_t i);

typedef struct kiln_linreg_options {
    size_t size;
    double l2;             /* default none */
    int no_intercept;      /* default: fit an unpenalised intercept */
    int standardize;       /* penalise coefficients of columns scaled to unit variance; X is not copied */
    int no_preconditioner; /* default: Jacobi */
    int warm_start;   /* start from the given W, unless its objective is above that of zero; default: zero */
    double tolerance; /* on the relative residual of the normal equations; default 1e-12 f64, 1e-5 f32 */
    int64_t max_iterations;     /* default 1000 */
    const kiln_matrix *weights; /* m x 1 sample weights >= 0, or NULL for ones */
    kiln_control control;
} kiln_linreg_options;

/* Least squares with L2 by preconditioned conjugate gradient on the normal equations:
 *   minimise  1/2 sum_i s_i (x_i.w + b - y_i)^2 + (l2/2) ||w||^2     for each of the k columns of y.
 *   W n x k; b 1 x k (NULL only with no_intercept; then a given b is set to 0); X m x n dense or CSR; y m x
 *   k.
 * The intercept and standardisation work through the columns' means and scales, X stays as it is. standardize
 * makes the penalty (l2/2) sum_j sigma_j^2 w_j^2, sigma_j the weighted standard deviation; W always belongs
 * to X as given. A constant column under an intercept, and a column of zeros, get coefficient 0. Collinear
 * columns give one of the solutions.
 * Stops when || D^-1 g || <= tolerance * || D^-1 g0 || for every target, g the gradient recomputed from the
 * true residual, g0 the gradient at w = 0, D the preconditioner's square root; a g0 of nothing but rounding
 * counts as 0, and w = 0 as the solution. Not converging is not an error: report->converged = 0.
 * Cost: one pass over X an iteration, five passes to set up and check. Where rounding keeps the check from holding, further
 * iterations correct the result until it holds or nothing is gained. On a GPU up to eight iterations of less than 50 ms in
 * all are queued at once: a stop asked for by the control takes effect after them. More than 64 targets are solved in
 * blocks of 64, each with max_iterations of its own, one after the other in the trace.
 * A warm start takes W; the best b for it is computed. On failure W, b and the report are untouched.
 * Determinism: as mmchain. Errors: ERR_ARGUMENT; ERR_DATA (X without rows or columns; NaN, infinity or overflow in X, y,
 * weights or a warm start; weights negative or all zero); memory and device errors.
 * Source: Ashari et al., PPoPP 2015, listing 1, with preconditioner, centring and restarts added. */
KILN_API kiln_status kiln_linreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                                 const kiln_linreg_options *options, kiln_report *report);

/* The distinct values of y (m x 1) in ascending order: the classes, *count of them. Free with kiln_free. At most
 * `limit` (0 = 65536, and 64 where not all of them are whole numbers): more is ERR_DATA, as y is then no label. Row i
 * belongs to the class whose value y_i is. */
KILN_API kiln_status kiln_classes(double **values, int64_t *count, const kiln_matrix *y, int64_t limit);

/* Logistic regression, binomial or multinomial (softmax):
 *   minimise  sum_i s_i loss(y_i, x_i.W + b) + l1 sum|W| + (l2/2) ||W||^2
 * The classes are kiln_classes(y). Two classes: W n x 1, b 1 x 1, eta for the second of them. 3 <= K <= 65536 classes:
 * W n x K, b 1 x K, true softmax, all K columns penalised alike.
 * Intercept and standardisation as in kiln_linreg: X stays as it is, W belongs to X as given, and a constant column under
 * an intercept gets coefficient 0. standardize makes the penalties l1 sigma_j |w_j| and (l2/2) sigma_j^2 w_j^2.
 * Stops when || D^-1 g || <= tolerance * || D^-1 g0 ||: g the gradient (with l1 the least subgradient) with respect to W and
 * the intercept of centred columns, g0 that at zero, D_j^2 = c sum_i s_i (x_ij - mean_j)^2 + l2_j, c the loss's mean
 * curvature at zero. (LIBLINEAR compares gradients in the same way, but without D and scaled by the rarer class's share.)
 * Where the D_j are more than 1e100 (f32: 1e15) apart nothing is proved, and the result counts as stalled. Not converging is
 * not an error: report->stopped_by says what happened; the objective never rises but for rounding, and all numbers stay
 * finite. Classes that a plane separates have no optimum without a penalty: W grows until the tolerance is met.
 * A warm start takes W and b. On failure W, b and the report are untouched.
 * Cost: two passes over X to set up; then a Newton step takes
 *   - one for value, gradient and curvature, one more where it had to be shortened;
 *   - one for the preconditioner, the Hessian's diagonal. For an X of few columns it is the Hessian's Cholesky factor (for
 *     softmax one for each class), from kiln_gram (counted as a pass for every 64 columns), formed again once the products it
 *     would have saved cost as much; but for softmax a step right after takes no inner iteration;
 *   - one for each of its conjugate gradient iterations (the trace's `inner`).
 * With l1 the inner iterations solve a model that keeps the l1 term; one that ends at a zero of coefficients takes two
 * passes, each counted in `inner`, and the trace's radius is 0. On the CPU, for two classes and an X in memory that is
 * sparse, or dense with up to 512 columns and as many rows, coordinate descent solves that model on the columns that are not
 * 0 or should not be: `inner` counts sweeps over these, and a step takes one pass, one for every 64 columns where their Gram
 * matrix is formed. Where it is not, `inner` also counts conjugate gradient's iterations on a face, and work space is up to 24
 * bytes for each entry of a sparse X.
 * Softmax over K classes takes m x K of memory twice and n x K a dozen times, and K times the arithmetic.
 * Determinism: as kiln_loss_gradient. Errors: ERR_ARGUMENT; ERR_DATA (one class or too many, see kiln_classes; X without rows
 * or columns; NaN or infinity in X, y, weights or a warm start, squares of X that overflow; weights negative or all zero);
 * memory and device errors.
 * Source: trust-region Newton with preconditioned conjugate gradient, Lin, Weng and Keerthi, JMLR 9 (2008), and Hsia, Chiang
 * and Lin, ACML 2018; steps shortened as in Nocedal and Yuan, 1998. With l1 proximal Newton, Lee, Sun and Saunders, SIAM J.
 * Optim. 24 (2014), its model by conjugate gradient on faces, Solntsev, Nocedal and Byrd, Optim. Methods Softw. 30 (2015), or
 * by coordinate descent, Yuan, Ho and Lin, JMLR 13 (2012), Friedman, Hastie and Tibshirani, J. Stat. Softw. 33 (2010). */
typedef struct kiln_logreg_options {
    size_t size;
    double l2; /* default 1, which is C = 1 of LIBLINEAR and scikit-learn; none where l1 > 0 */
    double l1; /* default none */
    int no_intercept, standardize, warm_start; /* as kiln_linreg's */
    double tolerance;                          /* default 1e-8 f64, 1e-4 f32 */
    int64_t max_iterations;                    /* Newton steps; default 100 */
    const kiln_matrix *weights;                /* m x 1 sample weights >= 0, or NULL for ones */
    const double *class_weights;               /* one for each class, multiplied into the weights; or NULL */
    int balanced; /* class weights m / (K * m_c), m the sum of the weights, m_c that of class c's; not with class_weights */
    kiln_control control;
} kiln_logreg_options;
KILN_API kiln_status kiln_logreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                                 const kiln_logreg_options *options, kiln_report *report);

/* Generalised linear model: E[y] = mu, link(mu) = eta = x.w + b + offset, y from the family with variance
 * dispersion * V(mu) / s:
 *   minimise  sum_i s_i * (minus log-likelihood of y_i at dispersion 1, as KILN_LOSS_GLM has it) + (l2/2) ||w||^2
 *   w n x 1; b 1 x 1 (NULL only with no_intercept; then a given b is set to 0); X m x n dense or CSR; y m x 1. */
typedef struct kiln_glm_options {
    size_t size;
    kiln_family family; /* default Gaussian */
    kiln_link link;     /* default the family's */
    double
        parameter; /* Tweedie's variance power; the negative binomial's alpha (not estimated); as in kiln_loss */
    double link_power;                         /* KILN_LINK_POWER */
    double l2;                                 /* default none */
    int no_intercept, standardize, warm_start; /* as kiln_linreg's; a warm start takes w and b */
    /* as kiln_logreg's, relative to the gradient of the model without columns; default 1e-9 f64, 1e-4 f32 */
    double tolerance;
    int64_t max_iterations;     /* Newton steps; default 100 */
    const kiln_matrix *weights; /* m x 1, or NULL for ones; binomial: the numbers of trials */
    const kiln_matrix *offset;  /* m x 1, or NULL */
    /* Standard errors wanted: (n + 1) x 1 (n x 1 without an intercept), coefficients first, then the intercept; or NULL.
     * Square roots of the diagonal of dispersion * (X^T diag(h) X)^-1, h the expected curvature at the result; NaN for a
     * column that depends on those before it, whose coefficient is then 0: the errors of the others are those of such
     * coefficients. n at most 4096 (n^2 doubles on the host, n^3/3 multiplications there, and a pass over X for 64 columns), and
     * l2 = 0. */
    kiln_matrix *standard_errors;
    kiln_control control;
} kiln_glm_options;

/* Fits by Newton's method (gamma, Tweedie and negative binomial with a log link; canonical links) or Fisher scoring (the
 * others) in a trust region: a step that takes a mean out of the family's range, or does not lower the
 * objective, is shortened. Begins at the best constant mean; without an intercept at w = 0, or, where the link has no mean for
 * eta = 0, at a regression of the linked responses.
 * The figure "aic" is as R's glm counts it: -2 log-likelihood + 2 parameters, and for Gaussian, gamma and inverse Gaussian the dispersion put at deviance / weights and counted as a
 * parameter (statsmodels does not count it); NaN for Tweedie, whose density has no closed form. parameters = n and the
 * intercept; only with standard errors, which find them, columns that depend on others are not counted.
 * Where the optimum is at infinity (all counts 0, classes that can be separated) coefficients stay finite, and the report
 * says what ended the run. Not converging is not an error. On failure w, b, standard_errors and the report are untouched.
 * Cost: kiln_logreg's; two passes more for the figures.
 * Determinism: as mmchain. Errors: ERR_ARGUMENT; ERR_LIMIT (standard errors of more than 4096 columns); ERR_DATA (X without
 * rows or columns; NaN or infinity in an operand; weights negative or all zero; a y that the family has no place for, named
 * with its row; no point found where every mean is in range); memory and device errors.
 * Source: McCullagh and Nelder, Generalized Linear Models, 2nd ed. 1989; the solver as kiln_logreg's. */
KILN_API kiln_status kiln_glm(kiln_matrix *w, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                              const kiln_glm_options *options, kiln_report *report);

/* Linear support vector machine in the primal, with the squared hinge:
 *   minimise  sum_i s_i max(0, 1 - y_i eta_i)^2 / 2 + (l2/2) ||w||^2
 * or, for regression, max(0, |eta_i - y_i| - epsilon)^2 / 2. (The plain hinge has no gradient and is not offered.)
 * LIBLINEAR's -s 2 and -s 11 minimise 1/2 ||w||^2 + C sum max(...)^2: l2 = 1 / (2 C), objective times 2 C.
 * Two classes: W n x 1, positive for the second; 3 <= K <= 65536: W n x K, one against the rest, one problem after the
 * other in the report: iterations, passes and objectives are added, residual is the largest; regression: W n x 1.
 * Intercept, standardisation, weights, stopping rule, cost, determinism, errors: as kiln_logreg's.
 * The figure "gap" is (objective - D) / objective, D the dual's objective at t_i = -s_i d loss / d eta_i, of which either the
 * positive or the negative ones are scaled so that sum t = 0 where there is an intercept: an upper bound of the objective's
 * relative error, at two more passes a problem. NaN where a column is not penalised.
 * Source: as kiln_logreg's; the dual, Chang, Hsieh and Lin, JMLR 9 (2008). */
typedef struct kiln_svm_options {
    size_t size;
    int regression;
    double epsilon; /* regression; default none */
    double l2;      /* default 0.5, which is C = 1 of LIBLINEAR */
    int no_intercept, standardize, warm_start;
    double tolerance;       /* as kiln_logreg's; default 1e-8 f64, 1e-4 f32 */
    int64_t max_iterations; /* Newton steps for each class; default 100 */
    const kiln_matrix *weights;
    const double *class_weights;
    int balanced;
    kiln_control control;
} kiln_svm_options;
KILN_API kiln_status kiln_svm(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                              const kiln_svm_options *options, kiln_report *report);

/* What a model is worth, computed again by slow reference code: plain loops in at least f64, which share nothing with the
 * operations that trained it. */
typedef struct kiln_verify_options {
    size_t size;
    double l2, l1; /* default none, whatever was trained */
    int standardize;
} kiln_verify_options;
typedef struct kiln_verification {
    size_t size;
    double objective; /* sum_i s_i loss_i and the penalties */
    double
        gradient; /* what kiln_report.residual claims, recomputed; NaN if the loss has no value at the origin or here */
    double gradient_norm; /* || D^-1 g ||, which that is a ratio of */
    double gap;           /* SQUARED_HINGE and SQUARED_EPSILON: the relative duality gap; else NaN */
} kiln_verification;
/* loss holds kind, parameters, targets, weights (times those of the classes) and offset; b NULL: no intercept. y is m x 1,
 * for SQUARED m x k; with SOFTMAX, and SQUARED_HINGE where W has several columns, the numbers of the classes, the latter one
 * against the rest. Everything is copied to the host: the cost is that of X there, and minutes where training takes
 * seconds. Errors: ERR_ARGUMENT, ERR_DATA, ERR_NOMEM. */
KILN_API kiln_status kiln_verify(kiln_verification *result, const kiln_loss *loss, const kiln_matrix *X,
                                 const kiln_matrix *W, const kiln_matrix *b,
                                 const kiln_verify_options *options);

/* Hubs and authorities of the directed graph with adjacency matrix A (m x n, dense or CSR; row i links to column j with
 * weight a_ij >= 0): the fixed point of  authorities = A^T hubs,  hubs = A authorities,  each normalised; hubs m x 1,
 * authorities n x 1. The authorities are the eigenvector of A^T A with the largest eigenvalue, found by power iteration,
 * a = A^T (A a) / norm: one mmchain an iteration, and one product more for the hubs.
 * report->residual is the change in the last iteration, report->objective that eigenvalue (||A^T (A a)||, a normalised).
 * Where components of the graph share the largest eigenvalue (links that are equally many and apart: a disconnected graph,
 * a star beside a like one) the fixed point is not unique, and the start decides which one is returned; from equal
 * entries it is the same one on every device. The nearer the second eigenvalue is, the more iterations are needed.
 * Not converging is not an error. On failure hubs, authorities and the report are untouched. On a GPU up to eight iterations of
 * less than 50 ms in all are queued at once: a stop takes effect after them, and the result is that of the last.
 * Errors: ERR_ARGUMENT; ERR_DATA (no link with a weight other than 0, a warm start from which no link leads on, negative
 * weights as far as hubs or authorities become negative, NaN or overflow); memory and device errors.
 * Determinism: as mmchain. Source: Kleinberg, Authoritative sources in a hyperlinked environment, JACM 1999; Ashari et
 * al., PPoPP 2015, table 1. */
typedef struct kiln_hits_options {
    size_t size;
    int norm;               /* 1 (default): entries sum to 1; 2: squares do */
    int unweighted;         /* take every stored entry for 1 */
    int warm_start;         /* start from the given authorities; default: all equal */
    double tolerance;       /* on the 1-norm of the change of the authorities; default 1e-10 f64, 1e-5 f32 */
    int64_t max_iterations; /* default 1000 */
    kiln_control control;
} kiln_hits_options;
KILN_API kiln_status kiln_hits(kiln_matrix *hubs, kiln_matrix *authorities, const kiln_matrix *A,
                               const kiln_hits_options *options, kiln_report *report);

/* One iteration again by slow reference code, in long double on the host. Of the options norm and unweighted count. */
typedef struct kiln_hits_verification {
    size_t size;
    double eigenvalue; /* ||A^T (A a)||, as kiln_report.objective claims */
    double authorities,
        hubs; /* 1-norm of the change that one more iteration would make; of hubs - A a / ||A a|| */
} kiln_hits_verification;
/* Shapes as kiln_hits. Errors: ERR_ARGUMENT, ERR_DATA (nothing leads anywhere), ERR_NOMEM. */
KILN_API kiln_status kiln_verify_hits(kiln_hits_verification *result, const kiln_matrix *A,
                                      const kiln_matrix *hubs, const kiln_matrix *authorities,
                                      const kiln_hits_options *options);

#ifdef __cplusplus
}
#endif
#endif
