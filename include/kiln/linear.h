/* Kiln: linear models: least squares, logistic regression, generalised linear models, support vector
 * machines.
 *
 * One objective for all: sum_i s_i * loss_i + (l2/2) * ||w||^2, intercept not penalised. The rules of
 * kiln/models.h on tolerances and warm starts hold. docs/solvers.md describes the solvers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_LINEAR_H
#define KILN_LINEAR_H

#include "kiln/models.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_linreg_solver {
    KILN_LINREG_CG = 1,      /* conjugate gradient on the normal equations */
    KILN_LINREG_CHOLESKY = 2 /* their factor in f64, of n x n or of m x m, with corrections */
} kiln_linreg_solver;

typedef struct kiln_linreg_options {
    size_t size;
    double l2;             /* default none */
    int no_intercept;      /* default: fit an unpenalised intercept */
    int standardize;       /* penalise coefficients of columns scaled to unit variance; X is not copied */
    int no_preconditioner; /* default: Jacobi */
    int warm_start;   /* start from the given W, unless its objective is above that of zero; default: zero */
    double tolerance; /* on the relative residual of the normal equations; default 1e-12 f64, 1e-5 f32 */
    int64_t max_iterations;     /* default 10 n, but at least 1000 and at most 10000 */
    const kiln_matrix *weights; /* m x 1 sample weights >= 0, or NULL for ones */
    kiln_control control;
    kiln_linreg_solver solver; /* default: the cheaper one for X's shape */
    uint64_t given;            /* options that are meant though they are 0: kiln_option_give */
} kiln_linreg_options;

/* Least squares with L2, by preconditioned conjugate gradient on the normal equations or by their Cholesky
 * factor:
 *   minimise  1/2 sum_i s_i (x_i.w + b - y_i)^2 + (l2/2) ||w||^2     for each of the k columns of y.
 *   W n x k; b 1 x k (NULL only with no_intercept; then a given b is set to 0); X m x n dense or CSR; y m x
 *   k.
 * The intercept and standardisation work through the columns' means and scales, X stays as it is.
 * standardize makes the penalty (l2/2) sum_j sigma_j^2 w_j^2, sigma_j the weighted standard deviation; W
 * always belongs to X as given. A column constant to 16 units of rounding, under an intercept, or of zeros
 * gets coefficient 0. With l2 = 0, W has the least norm of all solutions; figure "rank", NaN where it was
 * not decided: docs/solvers.md. Stops when || D^-1 g || <= tolerance * || D^-1 g0 || for every target, g the
 * gradient recomputed from the true residual, g0 the gradient at w = 0, D the preconditioner's square root;
 * a g0 of nothing but rounding counts as 0, and w = 0 as the solution. Where rounding ends the run above a
 * tolerance of at least the default, it has still converged if the result meets the tolerance for data that
 * are rounded a little otherwise (KILN_STOP_ROUNDING). Not converging is not an error: report->converged =
 * 0. Cost: five passes to set up and check, two with Cholesky, and conjugate gradient one an iteration, more
 * where rounding keeps the check from holding. Cholesky takes kiln_gram and n^3/6 multiplications once for
 * all targets, and two passes a correction, of which each counts as an iteration; conjugate gradient without
 * a penalty, f64 and up to 4096 columns, as many passes again to tell the rank; by rows, where these are
 * few and every column is penalised, 2 passes over X for each 64 rows and m^3/6. A factor that does not do
 * (columns that depend on each other but for rounding) gives way to conjugate gradient, which report->solver
 * then says. Determinism: as mmchain. Errors: ERR_ARGUMENT; ERR_DATA (X without rows or columns; NaN,
 * infinity or overflow in X, y, weights or a warm start; weights negative or all zero); memory and device
 * errors. On failure W, b and the report are untouched. Source: Ashari et al., PPoPP 2015, listing 1, with
 * preconditioner, centring and restarts added. A GPU queues up to eight iterations of less than 50 ms in
 * all: a stop asked for by the control takes effect after them. More than 64 targets are solved in blocks of
 * 64, one after the other in the trace, each with max_iterations of its own. A warm start takes W; the best
 * b for it is computed. docs/solvers.md says how it is done. */
KILN_API kiln_status kiln_linreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                                 const kiln_linreg_options *options, kiln_report *report);

/* The distinct values of y (m x 1) in ascending order: the classes, *count of them. Free with kiln_free. At
 * most `limit` (0 = 65536, and 64 where not all of them are whole numbers): more is ERR_DATA, as y is then no
 * label. Row i belongs to the class whose value y_i is. */
KILN_API kiln_status kiln_classes(double **values, int64_t *count, const kiln_matrix *y, int64_t limit);

/* Logistic regression, binomial or multinomial (softmax):
 *   minimise  sum_i s_i loss(y_i, x_i.W + b) + l1 sum|W| + (l2/2) ||W||^2
 * The classes are kiln_classes(y). Two classes: W n x 1, b 1 x 1, eta for the second of them. 3 <= K <=
 * 65536 classes: W n x K, b 1 x K, true softmax, all K columns penalised alike; what the classes may have in
 * common is 0: the intercepts' sum at the columns' means and, without l1, each row's sum of W. Intercept and
 * standardisation as in kiln_linreg: X stays as it is, W belongs to X as given, and a constant column under
 * an intercept gets coefficient 0. standardize makes the penalties l1 sigma_j |w_j| and (l2/2) sigma_j^2
 * w_j^2. Stops when || D^-1 g || <= tolerance * || D^-1 g0 ||: g the gradient (with l1 the least
 * subgradient) with respect to W and the intercept of centred columns, g0 that at zero, D_j^2 = c sum_i s_i
 * (x_ij - mean_j)^2 + l2_j, c the loss's mean curvature at zero. (LIBLINEAR compares gradients in the same
 * way, but without D and scaled by the rarer class's share.) Where the D_j are more than 1e100 (f32: 1e15)
 * apart nothing is proved, and the result counts as stalled. With a penalty, and for support vector
 * machines, a result has converged only if the objective can fall by no more than half of the tolerance
 * times what was gained over the best constant, but for rounding, by the penalty or by Newton's model at the
 * result; else steps go on, and rounding that ends them leaves the run stalled. Not converging is not an
 * error: report->stopped_by says what happened; the objective never rises but for rounding, and all numbers
 * stay finite. Classes that a plane separates have no optimum without a penalty: W grows until the tolerance
 * is met. A warm start takes W and b. On failure
 * W, b and the report are untouched. Cost: two passes over X to set up; then a Newton step takes one for
 * value, gradient and curvature, one more where it had to be shortened, one or more for the preconditioner
 * unless it is kept, and one for each inner iteration (the trace's `inner`). With l1 on the CPU `inner` may
 * count sweeps over the columns that are not 0; work space is then up to 24 bytes for each entry of a sparse
 * X. docs/solvers.md says how steps are found. Softmax over K classes takes m x K of memory twice and n x K
 * a dozen times, and K times the arithmetic. With the dual sweeps of coordinate descent, each of which
 * counts as a pass, come first, from zero even with a warm start, and Newton's method begins at what they
 * found, unless that proves itself. Work space: of two classes 6 doubles a row and 4 to 6 a column, of
 * softmax K + 2 a row and K + 1 a column. Determinism: as kiln_loss_gradient. Errors: ERR_ARGUMENT;
 * ERR_UNSUPPORTED (the dual is asked for); ERR_DATA (one class or too many, see kiln_classes; X without rows
 * or columns; NaN or infinity in X, y, weights or a warm start, squares of X that overflow; weights negative
 * or all zero); memory and device errors. Source: trust-region Newton with preconditioned conjugate
 * gradient, Lin, Weng and Keerthi, JMLR 9 (2008), and Hsia, Chiang and Lin, ACML 2018; steps shortened as in
 * Nocedal and Yuan, 1998. With l1 proximal Newton, Lee, Sun and Saunders, SIAM J. Optim. 24 (2014), its
 * model by conjugate gradient on faces, Solntsev, Nocedal and Byrd, Optim. Methods Softw. 30 (2015), or by
 * coordinate descent, Yuan, Ho and Lin, JMLR 13 (2012), Friedman, Hastie and Tibshirani, J. Stat. Softw. 33
 * (2010). The dual: Yu, Huang and Lin, Machine Learning 85 (2011). */
typedef enum kiln_classifier_solver {
    KILN_CLASSIFIER_NEWTON = 1,
    /* coordinate descent in the dual first: for a sparse X in the CPU's memory, l2 > 0 and l1 = 0, else
     * ERR_UNSUPPORTED */
    KILN_CLASSIFIER_DUAL = 2
} kiln_classifier_solver;

typedef struct kiln_logreg_options {
    size_t size;
    double l2; /* default 1, which is C = 1 of LIBLINEAR and scikit-learn; none where l1 > 0 */
    double l1; /* default none */
    int no_intercept, standardize, warm_start; /* as kiln_linreg's */
    double tolerance;                          /* default 1e-8 f64, 1e-4 f32 */
    int64_t max_iterations;                    /* Newton steps; default 100 */
    const kiln_matrix *weights;                /* m x 1 sample weights >= 0, or NULL for ones */
    const double *class_weights;               /* one for each class, multiplied into the weights; or NULL */
    /* class weights m / (K * m_c), m the sum of the weights, m_c that of class c's; not with class_weights */
    int balanced;
    kiln_control control;
    /* default: the one that is expected to be faster for X's shape and the penalty; Newton's with a warm
     * start */
    kiln_classifier_solver solver;
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
} kiln_logreg_options;
KILN_API kiln_status kiln_logreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                                 const kiln_logreg_options *options, kiln_report *report);

/* Generalised linear model: E[y] = mu, link(mu) = eta = x.w + b + offset, y from the family with variance
 * dispersion * V(mu) / s:
 *   minimise  sum_i s_i * (minus log-likelihood of y_i at dispersion 1, as KILN_LOSS_GLM has it)
 *             + l1 sum|w| + (l2/2) ||w||^2
 *   w n x 1; b 1 x 1 (NULL only with no_intercept; then a given b is set to 0); X m x n dense or CSR; y m x
 *   1.
 * Standard errors are the square roots of the diagonal of dispersion * (X^T diag(h) X)^-1, h the expected
 * curvature at the result. A column that depends on those before it has the coefficient 0 and the error NaN;
 * the others' errors are those of the model without it. The figure "aic" is as R's glm counts it: -2
 * log-likelihood + 2 parameters. Gaussian, gamma and inverse Gaussian put the dispersion at deviance /
 * weights and count it as a parameter, which statsmodels does not. Tweedie has NaN, because its density has
 * no closed form. Parameters, also for the dispersion, are the intercept and the columns that do not depend
 * on those before them; with l2 they are all columns, and with l1 those whose coefficients are not 0 (Zou,
 * Hastie and Tibshirani, Ann. Stat. 35, 2007). Without either, up to 512 columns they are counted as for
 * standard errors; beyond, by the dimensions of X's null space, which solutions of X w = X z for random z
 * show. Where these are not clear (as many columns as rows, more than 31 dependent columns, or some close to
 * it), standard errors' way has the last word up to 4096 columns, if the device has room for n^2 numbers.
 * Else the figure "parameters_at_most" takes the place of "parameters": the columns that are not constant,
 * but no more than rows; "aic" is then an upper bound, too. A run that was stopped has neither, and "aic" is
 * NaN. Stops as kiln_logreg does, relative to the gradient of the model without columns. Not converging is
 * not an error. Where the optimum is at infinity (all counts 0, classes that can be separated) coefficients
 * stay finite, and the report says what ended the run. On failure w, b, standard_errors and the report are
 * untouched. Errors: ERR_ARGUMENT; ERR_LIMIT (standard errors of more than 16384 columns); ERR_DATA (X
 * without rows or columns; NaN or infinity in an operand; weights negative or all zero; a y that the family
 * has no place for, named with its row; no point found where every mean is in range); memory and device
 * errors. Cost: kiln_logreg's, and two passes for the figures. Without a penalty the parameters take
 * kiln_gram up to 512 columns; beyond, about as many passes as the fit took, but 200 where these are fewer,
 * of 8 columns of y and perhaps again of 32. Standard errors: kiln_gram, 3 n^2 doubles and n^3/3
 * multiplications on the host. Determinism: as mmchain. Source: McCullagh and Nelder, Generalized Linear
 * Models, 2nd ed. 1989; the solver as kiln_logreg's. docs/solvers.md says how it is solved, and from
 * where. */
typedef struct kiln_glm_options {
    size_t size;
    kiln_family family; /* default Gaussian */
    kiln_link link;     /* default the family's */
    /* the family's, as in kiln_loss, given, not estimated: Tweedie's variance power, ... */
    double parameter;
    double link_power;                         /* KILN_LINK_POWER */
    double l2;                                 /* default none */
    int no_intercept, standardize, warm_start; /* as kiln_linreg's; a warm start takes w and b */
    /* as kiln_logreg's, relative to the gradient of the model without columns; default 1e-9 f64, 1e-4 f32 */
    double tolerance;
    int64_t max_iterations;     /* Newton steps; default 100 */
    const kiln_matrix *weights; /* m x 1, or NULL for ones; binomial: the numbers of trials */
    const kiln_matrix *offset;  /* m x 1, or NULL */
    /* (n + 1) x 1, or n x 1 without an intercept: coefficients first, then the intercept; NULL = not wanted.
     * n at most 16384, and no penalty. All NaN where columns only seem to depend on others in the matrix that
     * errors come from, as rows of 1e10 beside others of 1 make them do. Columns that depend on those before
     * them have coefficient 0 and the error NaN; w has not the least norm then. */
    kiln_matrix *standard_errors;
    kiln_control control;
    double l1;      /* default none */
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
} kiln_glm_options;

KILN_API kiln_status kiln_glm(kiln_matrix *w, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                              const kiln_glm_options *options, kiln_report *report);

/* Linear support vector machine in the primal, with the squared hinge:
 *   minimise  sum_i s_i max(0, 1 - y_i eta_i)^2 / 2 + (l2/2) ||w||^2         classes
 *             sum_i s_i max(0, |eta_i - y_i| - epsilon)^2 / 2 + (l2/2) ||w||^2   regression
 *   X m x n dense or CSR; y m x 1. Two classes (kiln_classes): W n x 1, b 1 x 1, eta > 0 for the second. 3 <=
 *   K <= 65536 classes: W n x K, b 1 x K, each class against the rest. Regression: W n x 1, b 1 x 1. b is
 *   NULL only with no_intercept.
 * LIBLINEAR's -s 2 and -s 11 minimise 1/2 ||w||^2 + C sum max(...)^2: l2 = 1 / (2 C), objective times 2 C.
 * The plain hinge has no gradient and is not offered.
 * The report adds up the classes' iterations, passes and objectives; its residual is the largest of theirs.
 * The figure "gap" is (objective - D) / objective as computed, D the dual's objective at t_i = -s_i d loss /
 * d eta_i, of which either the positive or the negative ones are scaled so that sum t = 0 under an intercept;
 * optimality_gap has what rounding may have made of it, too. NaN where a column is not penalised.
 * Intercept, standardisation, weights, stopping rule, warm start, determinism and errors are kiln_logreg's.
 * Cost: kiln_logreg's for each class, and with an intercept two passes for the gap.
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
    kiln_classifier_solver solver; /* as kiln_logreg's; a regression has no dual */
    uint64_t given;                /* options that are meant though they are 0: kiln_option_give */
} kiln_svm_options;
KILN_API kiln_status kiln_svm(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                              const kiln_svm_options *options, kiln_report *report);

/* Models handed over by kiln_path: of the values first, ..., first + count - 1 of one fold. Value first + i
 * has the columns i * k, ..., i * k + k - 1 of W and b, and reports[i]. All of it lasts until the callback
 * returns. */
typedef struct kiln_path_models {
    int64_t fold, first, count;
    const kiln_matrix *W, *b; /* n x (k count); 1 x (k count), NULL without an intercept */
    const kiln_report *const *reports;
    const kiln_matrix
        *X; /* what the models were trained on, with all rows: the caller's, or the fold's copy of it */
} kiln_path_models;

typedef struct kiln_path_options {
    size_t size;
    /* The penalties, `count` of each, best from the strongest to the weakest: a model is the start of the
     * next one. 0 is none; NULL: as the algorithm's options have it */
    const double *l2, *l1;
    int64_t count;
    const int32_t *fold;      /* m: the fold, 0 ... folds - 1, that holds a row out; NULL: all rows train */
    int64_t folds;            /* 0 without `fold` */
    const kiln_matrix *W, *b; /* the start of the first value of each fold, n x k and 1 x k; NULL: zeros */
    int (*take)(void *user, const kiln_path_models *models); /* anything but 0 ends the path */
    void *user;
} kiln_path_options;

/* Models along a path of penalties, for cross-validation in each of several folds: for each fold f, and in
 * it for each value v in order, what kiln_NAME finds with weight 0 for the rows of fold f and the penalties
 * of v, NAME one of linreg, logreg, glm, svm. `options` is its options struct, or NULL for its defaults; its
 * l2, l1 where the path gives them, weights and warm_start are those of each model, standard errors must not
 * be asked for. k: columns of y for linreg; of W for the others. Every model meets the algorithm's own
 * criterion, or its report says that it does not. The models share work where they can:
 *   linreg, where a Cholesky factor by columns is the solver and one walk over X gives the Gram matrix: one
 *   such walk for all folds, whose sums add up to those of the rows that train; a factor for each model; one
 *   pass for each fold, which checks all of its models at once: the true gradient of their sum with signs at
 *   random. A fold where that misses the tolerance is trained in the way of the others. (folds + 3) (n + k +
 *   1)^2 doubles.
 *   logreg and svm of two classes, svm's regression, and glm with an intercept, without an offset and with a
 *   link that takes any number, on one CPU, up to 1,023 columns and 64 folds, where one walk over X gives the
 *   Gram matrix, the dual is not taken, and neither `balanced` nor max_iterations is set: a pass evaluates
 *   the models of one penalty in all folds. Their reports have no figures but glm's deviance and
 *   null_deviance. A fold whose models do not all meet the criterion is trained in the way of the others. (3
 *   folds + 1) (n + 1)^2 doubles, n folds count more.
 *   The same in 2 to 64 folds of a sparse X of 1,024 columns or more, and of as many entries, without l1,
 *   with solver DUAL not asked for: each iteration of conjugate gradient is a pass for all folds, and the
 *   first step of a value goes to where the three values before let its model expect. 32 n folds doubles, m
 *   folds, n folds count more.
 *   others: one after the other, each started from the one before.
 * If a file was read with kiln_read_options.missing MEAN or INDICATOR, and X is that data's matrix, or a copy
 * or move of it, every fold has a copy of X in which missing numbers are filled with the means of the rows
 * that train (not weighted, and 0 where these have no number), so that the rows held out have no influence.
 * The rows held out are then judged by that copy, kiln_path_models.X. A fold's models are then trained as
 * without folds, with no shared work. This costs such a copy, X's values on the host, and a pass over them
 * each fold. Levels of text columns and indicators that only rows held out have are columns of zeros to those
 * that train, and get coefficient 0. `take` gets the models in order, several at once where they come
 * together and predictions for all rows are at most 2^24 numbers. A checkpoint in the control of `options`
 * (kiln/checkpoint.h) keeps which folds are done, up to the first of which a model ended at its limit,
 * between two of them, and where the path is cancelled: a path that goes on hands over the models of the
 * others alone, and one without folds all of them. Keeping the models' results is up to the caller
 * (kiln_checkpoint_along). One pass over X at first. Errors: ERR_ARGUMENT (no such algorithm; standard
 * errors; a fold or a penalty out of range; no take); ERR_CANCELLED (take or the control of `options` ended
 * the path); those of kiln_NAME. Models that were handed over before stand. Determinism: as kiln_NAME. Cost:
 * as above; m + n k doubles besides. Source: Freivalds, IFIP Congress 1977 (checks by random sums). */
KILN_API kiln_status kiln_path(const char *algorithm, const void *options, const kiln_matrix *X,
                               const kiln_matrix *y, int64_t k, const kiln_path_options *path);

/* A model's quality, computed again by slow reference code: plain loops in at least f64, which share nothing
 * with the operations that trained it. */
typedef struct kiln_verify_options {
    size_t size;
    double l2, l1; /* default none, whatever was trained */
    int standardize;
    /* Coefficients are from 0 on: at 0 a gradient above -l1 counts as none. (Of 8 bytes, where an int would
     * lie in what were no bytes of earlier programs.) */
    int64_t positive;
} kiln_verify_options;
typedef struct kiln_verification {
    size_t size;
    double objective; /* sum_i s_i loss_i and the penalties */
    /* what kiln_report.residual claims, recomputed; NaN if the loss has no value at the origin or here */
    double gradient;
    double gradient_norm; /* || D^-1 g ||, which that is a ratio of */
    double gap;           /* SQUARED_HINGE and SQUARED_EPSILON: the relative duality gap; else NaN */
    /* bounds of what the rounding of X's type may have made of objective, of gradient (as a ratio, too)
     * and of gap in any training */
    double objective_rounding, gradient_rounding, gap_rounding;
    /* what kiln_report.optimality_gap, following from the duality gap, must not be below; NaN for
     * KILN_LOSS_GLM and where a column has no penalty */
    double optimality_gap;
    /* gradient with all that rounding may have made of it, at most: for SQUARED_HINGE and SQUARED_EPSILON
     * by D of the smaller of the curvatures at the origin and here, which their criterion goes by where
     * rows end in the flat part of the loss */
    double gradient_most;
} kiln_verification;
/* loss holds kind, parameters, targets, weights (times those of the classes) and offset; b NULL: no
 * intercept. y is m x 1, for SQUARED m x k; with SOFTMAX, and SQUARED_HINGE where W has several columns, the
 * numbers of the classes, the latter one against the rest. Everything is copied to the host, X in a file by
 * windows of rows, read anew for each pass: minutes where training takes seconds. Errors: ERR_ARGUMENT,
 * ERR_DATA, ERR_NOMEM, ERR_IO. */
KILN_API kiln_status kiln_verify(kiln_verification *result, const kiln_loss *loss, const kiln_matrix *X,
                                 const kiln_matrix *W, const kiln_matrix *b,
                                 const kiln_verify_options *options);

/* Eta = X W + 1 b + offset by plain loops: dense, f64, X's rows x W's columns. rounding: of the same shape
 * and type, NULL or how far off each entry may be as X's type gives it, c u (|b| + |offset| + sum_j |x_ij
 * w_j|), c the terms of that sum and some. b, offset: NULL counts as zeros. Errors: ERR_ARGUMENT,
 * ERR_NOMEM. */
KILN_API kiln_status kiln_verify_predictors(kiln_matrix *Eta, kiln_matrix *rounding, const kiln_matrix *X,
                                            const kiln_matrix *W, const kiln_matrix *b,
                                            const kiln_matrix *offset);

/* Holds what kiln_glm's figures and standard errors claim, recomputed likewise. NaN: not known. */
typedef struct kiln_glm_verification {
    size_t size;
    double deviance, null_deviance, dispersion, aic;
    double parameters; /* NaN beyond 4096 columns, and where some column nearly depends on others */
    double errors; /* the largest relative difference of a given standard error, infinite where a dependent
                        * column has one, or another none: it is NaN or negative */
    double errors_rounding; /* what rounding in f64 may make of that */
    /* the least and the most that training in X's type may have found */
    double deviance_low, deviance_high, null_deviance_low, null_deviance_high, dispersion_low,
        dispersion_high, aic_low, aic_high;
} kiln_glm_verification;
/* loss, X, W, b as kiln_verify's, of kind GLM or, for `parameters` alone, SQUARED; standard_errors as
 * kiln_glm leaves them, or NULL. With a penalty in the options parameters are counted as kiln_glm does.
 * Cost: n^2 for each row and n^3 on the host. Errors: ERR_ARGUMENT, ERR_NOMEM. */
KILN_API kiln_status kiln_verify_glm(kiln_glm_verification *result, const kiln_loss *loss,
                                     const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b,
                                     const kiln_matrix *standard_errors, const kiln_verify_options *options);

#ifdef __cplusplus
}
#endif
#endif
