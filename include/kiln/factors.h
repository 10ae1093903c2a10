/* Kiln: factor models of sparse data. A row of X (a user, a document) is about its row of A times B^T, the
 * columns' factors.
 *
 * Training fills A and B; what follows works on a model, whatever the algorithm: factors of new rows, the
 * best columns of a row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_FACTORS_H
#define KILN_FACTORS_H

#include "kiln/metrics.h"
#include "kiln/models.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------- all factor models */

/* The factors of new rows under a trained model (fold-in): a new matrix, a row for each row of X, on X's
 * device and of its type. X is CSR with the columns of the training data. The columns' factors stay as they
 * are; a row is what training would make of it.
 * Errors: ERR_ARGUMENT, ERR_MODEL (no factor model, or of other columns), ERR_DATA (NaN, infinity, of gap and
 * lda a negative entry), memory and device errors. Cost: als: one solve of each row. */
KILN_API kiln_status kiln_transform(kiln_matrix **A, const kiln_model *model, const kiln_matrix *X);

/* For each row of A (m x r, from kiln_transform or the model's own tensor of rows) the `top` columns of the
 * highest scores, best first, ties by number: columns[i * top + j], scores[i * top + j]; columns are -1 and
 * scores NaN where there are fewer. seen: m x n CSR, whose stored entries are left out; NULL = none. A score
 * is the prediction (als: a rating, or the implicit model's preference). A score that is NaN counts for
 * nothing.
 * Errors: ERR_ARGUMENT, ERR_MODEL, memory and device errors. Cost: 2 m n r flops on A's device, and there no
 * memory for scores on a CPU; a GPU brings scores home, where the host chooses. */
KILN_API kiln_status kiln_recommend(int64_t *columns, double *scores, int64_t top, const kiln_model *model,
                                    const kiln_matrix *A, const kiln_matrix *seen);
/* The same among some columns: allowed[j] is 0 where column j is left out of all rows, n of them; NULL = none
 * is. */
KILN_API kiln_status kiln_recommend_among(int64_t *columns, double *scores, int64_t top,
                                          const kiln_model *model, const kiln_matrix *A,
                                          const kiln_matrix *seen, const unsigned char *allowed);
/* The same without a model: the score of row j of B (n x r, dense, of A's type and device) for row i of A is
 * a_i . b_j. For rows of length 1 the scores are cosines. */
KILN_API kiln_status kiln_top_products(int64_t *columns, double *scores, int64_t top, const kiln_matrix *A,
                                       const kiln_matrix *B, const kiln_matrix *seen,
                                       const unsigned char *allowed);

/* Takes entries away for a test: each stored entry of X goes to *test with probability `fraction`, else to
 * *train, both of X's shape, type and device. The same seed makes the same choice on every device; an entry's
 * fate depends on its place in X alone. Errors: ERR_ARGUMENT (X dense, a fraction outside (0, 1)), memory and
 * device errors. */
KILN_API kiln_status kiln_split_entries(kiln_matrix **train, kiln_matrix **test, const kiln_matrix *X,
                                        double fraction, uint64_t seed);

/* The `top` columns whose factors point most nearly the way of those of `column`, best first, ties by number;
 * the score is their cosine, without biases, and 0 where one of the two has no factors but 0. columns are -1
 * and scores NaN where there are fewer.
 * Errors: ERR_ARGUMENT, ERR_MODEL (no factor model), ERR_NOMEM. Cost: 2 n r flops on the host. */
KILN_API kiln_status kiln_similar(int64_t *columns, double *scores, int64_t top, const kiln_model *model,
                                  int64_t column);

/* predictions[p] = the model's for its own row rows[p] and column columns[p]: a rating, or the implicit
 * model's preference; of sfa and als with biases mean + both biases + the product of the factors.
 * Errors: ERR_ARGUMENT (a row or a column that is not there), ERR_MODEL (no factor model), ERR_NOMEM. Cost: 2
 * r flops a pair on the host, and a copy of both factors in double. */
KILN_API kiln_status kiln_predict_pairs(double *predictions, const kiln_model *model, int64_t count,
                                        const int64_t *rows, const int64_t *columns);

/* Keeps in the model, whose rows and columns are R's, where R has entries, so that kiln_recommend can leave
 * them out when the data are not at hand: 4 bytes an entry. Errors: ERR_ARGUMENT, ERR_NOMEM, device
 * errors. */
KILN_API kiln_status kiln_model_keep_seen(kiln_model *model, const kiln_matrix *R);
/* *R = rows first .. first + rows - 1 of what was kept, all values 1, on like's device and of its type.
 * Errors: ERR_ARGUMENT, ERR_MODEL (nothing was kept, or it is damaged), ERR_NOMEM, device errors. */
KILN_API kiln_status kiln_model_seen(kiln_matrix **R, const kiln_model *model, const kiln_matrix *like,
                                     int64_t first, int64_t rows);

/* The ranking of what a model has not seen: kiln_ranking_of (kiln/metrics.h) of the `top` best columns of
 * each row of `test` that has entries, without what train (NULL = nothing) has. Row i of A belongs to row i
 * of both.
 * Errors: those of kiln_recommend and kiln_ranking_of. */
KILN_API kiln_status kiln_rank(kiln_ranking *ranking, int64_t top, const kiln_model *model,
                               const kiln_matrix *A, const kiln_matrix *train, const kiln_matrix *test);

/* ---------------------------------------------------------------------------------- least squares */

typedef enum kiln_factor_solver {
    KILN_FACTOR_CG = 1, /* conjugate gradient from the rows as they are, `steps` of them */
    KILN_FACTOR_CHOLESKY =
        2,              /* exact but for rounding: a step of Newton's method from the rows as they are, which
                               * does not go up where rounding hides the penalty either,
                               * and which the next call refines; with l2 = 0 an unknown whose pivot vanishes
                               * stays */
    KILN_FACTOR_CCD = 3 /* kiln_als only: one factor of all rows and columns after the other, see there */
} kiln_factor_solver;

/* A least-squares problem for each row of a sparse R, given the other side's factors:
 *   explicit, gram NULL: f_u(a) = 1/2 sum_i (r_ui - mean - a.b_i)^2 + (l2_u/2) ||a||^2, i over u's entries
 *   implicit:            f_u(a) = 1/2 sum_i c_ui (p_ui - a.b_i)^2 + (l2_u/2) ||a||^2, i over all columns,
 *                          p = 1 where r > 0, else 0, c = 1 + alpha |r|, or with `proportional` alpha |r|,
 *                          and 1 where nothing is stored
 * With biases the last column of A and B holds them: a.b_i is then the product of the others plus both
 * biases. l2_u = l2, or with `counted` l2 times the row's number of entries. */
typedef struct kiln_factor_rows {
    size_t size;
    const kiln_matrix *R;    /* m x n, CSR; stored zeros are entries */
    const kiln_matrix *B;    /* n x r, dense, 1 <= r <= 1024, 1025 with biases */
    const kiln_matrix *gram; /* r x r, B^T B; NULL = explicit */
    double mean;
    double l2; /* >= 0 */
    double alpha;
    int biases, counted;
    kiln_factor_solver solver; /* default CG */
    int64_t steps;             /* of CG; default 3 */
    int proportional;          /* implicit: c = alpha |r| where an entry is stored */
} kiln_factor_rows;

/* Every row of A (m x r) becomes the minimiser of its f_u, or nearer to it. A row without entries becomes 0.
 * Cost: CG 4 nnz r flops a step (implicit: and 2 m r^2), Cholesky nnz r^2 + m r^3 / 3. Memory: on a GPU CG
 * takes three matrices of A's shape meanwhile, and with a mean or biases a copy of R's values and of B.
 * Determinism: run to run, for any number of threads. Errors: ERR_ARGUMENT (biases with a gram, r, types,
 * shapes, devices), memory and device errors.
 * Source: Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008;
 * Takacs, Pilaszy and Tikk, "Applications of the conjugate gradient method for implicit feedback
 * collaborative filtering", RecSys 2011. */
KILN_API kiln_status kiln_factor_solve(kiln_matrix *A, const kiln_factor_rows *rows);

enum { KILN_FACTOR_FIT = 1, KILN_FACTOR_PENALTY = 2 };
/* *loss = sum_u of the parts of f_u(a_u) that are named: KILN_FACTOR_FIT | KILN_FACTOR_PENALTY. Errors as
 * kiln_factor_solve. */
KILN_API kiln_status kiln_factor_loss(double *loss, const kiln_factor_rows *rows, const kiln_matrix *A,
                                      int parts);

/* Alternating least squares: minimises over A (m x r), B (n x r)
 *   explicit:  1/2 sum_ui (r_ui - mean - a_u.b_i)^2 + 1/2 sum_u l2_u ||a_u||^2 + 1/2 sum_i l2_i ||b_i||^2,
 *              ui over R's entries
 *   implicit:  the same with weights c_ui over all u and i, see kiln_factor_rows
 * by solving for all of A, then for all of B, again and again; or with KILN_FACTOR_CCD (explicit only) for
 * one column of A and of B after the other, `steps` times each, given the residuals of all others (CCD++).
 * With biases the last of the r columns holds them, and the mean is that of R's entries; without it is 0.
 * After both the two columns of each factor are made equally long (weighed as their penalties are), which
 * leaves the products. The objective never rises but for rounding, with any solver. An iteration of CG or
 * CCD++ that gains no more than the tolerance takes an exact sweep (Cholesky), too, as few steps gain little
 * of a badly scaled problem, however much there is to gain; where it gains more, the run goes on with twice
 * the steps, and exactly where these would be as many as the columns of A. report->residual is the
 * decrease in the last iteration relative to the objective. Figures: "mean"; "setbacks", iterations in which
 * the objective rose by more than rounding; "l2", the penalty that held; "zero_factors", 1 where the penalty
 * has left nothing of the factors (sum_k |a_k| |b_k| below a hundredth of sqrt(sum_ui (r_ui - mean)^2)),
 * else 0; with a test "test_rmse" (explicit). On failure A, B and the report are untouched. Errors:
 * ERR_ARGUMENT; ERR_DATA (no entries, NaN, infinity; entries whose largest is beyond 1e18 or below 1e-18 in
 * f32, 1e140 and 1e-140 in f64, CG's limits at `solver`; implicit alpha |r| beyond 1e8 in f32, 1e16 in f64,
 * in the mean); memory and device errors.
 * Determinism: run to run. Memory: a transposed copy of R (of an R in a file a temporary file, in TMPDIR,
 * else in /var/tmp, for which R is read several times), a copy of A and B, and what kiln_factor_solve takes.
 * Source: Zhou et al., "Large-scale parallel collaborative filtering for the Netflix prize", AAIM
 * 2008 (counted); Hu, Koren and Volinsky, ICDM 2008 (implicit). */
typedef enum kiln_confidence {
    KILN_CONFIDENCE_LINEAR = 1,       /* c = 1 + alpha |r| */
    KILN_CONFIDENCE_PROPORTIONAL = 2, /* c = alpha |r|, as in implicit; a cell without an entry has 1 */
    KILN_CONFIDENCE_LOG = 3           /* c = 1 + alpha log(1 + |r| / epsilon) */
} kiln_confidence;
typedef struct kiln_als_options {
    size_t size;
    /* default: 0.8 d (sqrt(entries a row) + sqrt(entries a column)), rows and columns without entries not
     * counted, d the standard deviation of R's entries, at least a thousandth of their mean, or implicit
     * 1; it is near the largest singular value of noise of that size. With `counted` 0.1 d */
    double l2;
    int counted;            /* a row's penalty is l2 times the number of its entries */
    int biases;             /* explicit only */
    int implicit;           /* entries are how often something was seen, not what was thought of it */
    double alpha;           /* implicit: of the confidence, see below; default 1 */
    int solver;             /* enum kiln_factor_solver; default CG, but CHOLESKY where the largest entry or
                       * confidence is such that CG's products leave the type (f32: beyond 1e8 or, explicit,
                       * below 1e-8; f64: 1e50, 1e-50) */
    int64_t steps;          /* of CG for each row, of CCD++ for each factor; default 3 */
    double tolerance;       /* on the relative decrease of the objective, twice if sudden; default 1e-4 */
    int64_t max_iterations; /* default 100 */
    int warm_start;         /* go on from A and B; default: B random and positive, A 0 */
    int64_t seed;           /* of the random start */
    const kiln_matrix
        *test; /* m x n CSR: entries that R does not have, whose error is told each iteration; or NULL */
    kiln_control control;
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
    int confidence; /* implicit: enum kiln_confidence; default LINEAR */
    double epsilon; /* of LOG, > 0; default 1 */
} kiln_als_options;
KILN_API kiln_status kiln_als(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *R,
                              const kiln_als_options *options, kiln_report *report);
/* The model that kiln_transform, kiln_recommend and kiln_rank take: tensors A, B and settings (1 x 6, f64:
 * mean, l2, alpha, biases, counted, implicit), and unless it is LINEAR confidence (1 x 2, f64: which,
 * epsilon). options as in training, but for l2, which must be the report's
 * figure where it was left to its default (ERR_ARGUMENT where it is 0 and was not given); mean: the report's
 * figure. A text "rows" or "columns", a JSON array of strings, may name them. */
KILN_API kiln_status kiln_als_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B,
                                    double mean, const kiln_als_options *options);
/* Holds what a factor model claims, again in plain loops with sums in long double: the objective, and the
 * root mean squared error at R's entries (implicit: NaN). options as kiln_als_model takes them; mean: the
 * report's figure. Errors: ERR_ARGUMENT, ERR_NOMEM. Cost: nnz r, implicit also (m + n) r^2, on one
 * thread. */
typedef struct kiln_als_verification {
    size_t size;
    double objective, rmse;
    double objective_rounding; /* what rounding of the factors' type may have made of the objective in
                             * training */
} kiln_als_verification;
KILN_API kiln_status kiln_verify_als(kiln_als_verification *result, const kiln_matrix *R,
                                     const kiln_matrix *A, const kiln_matrix *B, double mean,
                                     const kiln_als_options *options);

/* ---------------------------------------------------------------------------- sparse factor analysis */

/* Sparse factor analysis: minimises over the first r - 1 columns of A (m x r) and B (n x r)
 *   1/2 sum_ui (r_ui - mean - mu_u - nu_i - a_u.b_i)^2 + l2/2 (||A||^2 + ||B||^2),    ui over R's entries,
 * about means that stay: mean is that of R's entries, mu_u the row's mean of r_ui - mean, and nu_i then the
 * column's mean of r_ui - mean - mu_u, each sum divided by its count plus `damping`. mu and nu become the
 * last columns of A and B, which the penalty leaves out. All of A and B change at once: conjugate gradient
 * (Polak and Ribiere), scaled by the diagonal of the Hessian's two blocks, and along each direction the
 * exact minimum, as the objective there is a polynomial of degree four. It never rises. An iteration that
 * gains no more than the tolerance takes up to eight along the scaled gradient, and then, of up to 1,024
 * factors, an exact sweep: a run has converged where that gains little, too. report->residual is the decrease
 * in the last iteration relative to the objective. Figures: "mean", "setbacks", "l2",
 * "zero_factors" as of kiln_als; with a test "test_rmse". On failure A, B and the report are untouched.
 * Errors: ERR_ARGUMENT; ERR_DATA (no entries, NaN, infinity; entries whose largest is beyond 1e15 or
 * below 1e-15 in f32, 1e140 and 1e-140 in f64); memory and device errors.
 * Determinism: run to run. Cost of an iteration: 20 nnz r flops, of an exact sweep 2 nnz r^2 + (m + n) r^3 /
 * 3. Memory: four copies of R, five of A and B.
 * Source: Canny, "Collaborative filtering with privacy via factor analysis", SIGIR 2002; Nisa et al., HiPC
 * 2018 (the products). */
typedef struct kiln_sfa_options {
    size_t size;
    double l2;               /* > 0; default: as of kiln_als */
    double damping;          /* of the means; default 5 */
    double tolerance;        /* on the relative decrease of the objective; default 1e-4 */
    int64_t max_iterations;  /* default 200 */
    int warm_start;          /* go on from A and B; default: both random */
    int64_t seed;            /* of the random start */
    const kiln_matrix *test; /* as in kiln_als_options */
    kiln_control control;
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
} kiln_sfa_options;
KILN_API kiln_status kiln_sfa(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *R,
                              const kiln_sfa_options *options, kiln_report *report);
/* The model that kiln_transform, kiln_recommend and kiln_rank take: tensors A, B and settings (1 x 3, f64:
 * mean, l2, damping). options as kiln_als_model takes them. */
KILN_API kiln_status kiln_sfa_model(kiln_model **model, const kiln_matrix *A, const kiln_matrix *B,
                                    double mean, const kiln_sfa_options *options);
/* As kiln_verify_als; the means in A and B are taken as they are. */
KILN_API kiln_status kiln_verify_sfa(kiln_als_verification *result, const kiln_matrix *R,
                                     const kiln_matrix *A, const kiln_matrix *B, double mean,
                                     const kiln_sfa_options *options);

#ifdef __cplusplus
}
#endif
#endif
