/* Kiln: truncated singular value decomposition and principal components.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_SVD_H
#define KILN_SVD_H

#include "kiln/models.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_svd_solver {
    KILN_SVD_KRYLOV = 1, /* a block Krylov method on passes over X */
    KILN_SVD_GRAM = 2    /* the same on the Gram matrix of X's columns, made in one pass or a few */
} kiln_svd_solver;

typedef struct kiln_svd_options {
    size_t size;            /* see kiln.h */
    int center;             /* of each column its mean is taken off: principal components */
    int scale;              /* each column is divided by its standard deviation; constant columns are not */
    kiln_svd_solver solver; /* 0: by the predicted cost */
    int64_t seed;           /* of the random vectors that the search begins with; default 0 */
    double tolerance;       /* default 1e-8 f64, 1e-5 f32 */
    int64_t max_iterations; /* default 1000 */
    /* Further results, of X's type; NULL: they are not wanted. */
    kiln_matrix *mean;      /* n x 1: with center, the columns' means; else 0 */
    kiln_matrix *deviation; /* n x 1: with scale, what columns are divided by; else 1 */
    /* k x 1: sum_i (t_i - mean(t))^2 / (m - 1) of the rows' coordinates t = A v_j: s_j^2 / (m - 1) with
     * center. Times (m - 1) / m it is what scikit-learn's TruncatedSVD calls explained_variance_. */
    kiln_matrix *variance;
    kiln_control control;
    uint64_t given; /* options that are meant though they are 0: kiln_option_give */
    int graph;      /* set by kiln_spectral; for kiln_svd_model and kiln_verify_svd of what it has found */
} kiln_svd_options;

/* The k largest singular triples of A = (X - 1 mean^T) D^-1:  A V = U S,  A^T U = V S,  with orthonormal
 * columns of U and V and s_1 >= ... >= s_k >= 0. mean = 0 without `center`, D = 1 without `scale`; a sparse X
 * is never made dense.
 *   X m x n, dense or CSR; V n x k, 1 <= k <= min(m, n); s k x 1; U m x k, or NULL: it is not wanted.
 * Principal components are this with `center`: V's columns the axes, U S the rows' coordinates, variance
 * what they explain. Deviations are those of populations, sqrt(sum_i (x_ij - mean_j)^2 / m), as
 * scikit-learn's StandardScaler has them. Signs: in each column of V the entry of the largest size, of equals
 * the first, is positive, which is scikit-learn's rule for both TruncatedSVD and PCA (svd_flip by V).
 * Converged means: for each of the k triples, on A itself and at the result,
 *   max(|| A v - s u ||, || A^T u - s v ||) <= tolerance * s_1.
 * report->residual is the largest of these over s_1, report->objective sum_j s_j^2. Figures: "orthogonality",
 * the largest |V^T V - 1| and |U^T U - 1|; "variance", the sum of the columns' variances,
 * sum_ij (a_ij - mean(a_j))^2 / (m - 1), of which the entries of `variance` are parts (NaN where no double
 * holds the squares); "rank", how many s_j are above max(m, n) epsilon s_1. Where k is beyond the rank, the
 * other s_j are rounding of s_1, and their vectors complete the others. Vectors of equal singular values are
 * any orthonormal basis of what these have. A dense X with columns far from zero (means beyond 100 times
 * their spread) is copied with the means taken off, so that nothing cancels, unless X goes by in panels.
 * Cost: each iteration multiplies 8 or 16 vectors by A^T A in one pass over X, on GPUs 32 in two, and where
 * eigenvalues are close up to 256 times that; the result is judged by two products of k vectors. Some
 * 2 k + 100 vectors of min(m, n) numbers are kept twice, and from the first judgement on three times k of
 * max(m, n). An X above the device's memory, or in a file (kiln_read_options.map), goes by in panels. Not
 * converging is not an error: report->stopped_by says what happened, and the residual holds for what is
 * returned. On failure all results are untouched.
 * Determinism: as kiln_mmchain; the same start for the same seed. Errors: ERR_ARGUMENT; ERR_DATA (X empty,
 * NaN or infinity, with center or scale squares that leave the type's range); memory and device errors.
 * Source: Golub and Underwood, The block Lanczos method, 1977; Wu and Simon, Thick-restart Lanczos, SIAM J.
 * Matrix Anal. Appl. 22 (2000); Zhou and Saad, A Chebyshev-Davidson algorithm, ibid. 29 (2007); orthonormal
 * blocks by Cholesky factors, twice: Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, Electron. Trans. Numer.
 * Anal. 44 (2015). */
KILN_API kiln_status kiln_svd(kiln_matrix *U, kiln_matrix *s, kiln_matrix *V, const kiln_matrix *X,
                              const kiln_svd_options *options, kiln_report *report);

typedef kiln_svd_options kiln_pca_options;
/* The same with `center`, whatever the options say: principal components. */
KILN_API kiln_status kiln_pca(kiln_matrix *U, kiln_matrix *s, kiln_matrix *V, const kiln_matrix *X,
                              const kiln_svd_options *options, kiln_report *report);

typedef kiln_svd_options kiln_spectral_options;
/* The same of a graph with the weights X, n x n, sparse or dense: spectral embedding. With the links both
 * ways, S = (X + X^T) / 2, and the degrees D = diag(S 1),
 *   A = (1 + D^-1/2 S D^-1/2) / 2
 * has the k largest eigenvalues s, in [0, 1], and the eigenvectors V = U; A is never written. Those of the
 * normalised Laplacian 1 - D^-1/2 S D^-1/2 are 2 - 2 s_j, ascending, with the same vectors. A connected graph
 * has one of 0, whose vector is D^1/2 1 over its length; coordinates of vertex i are v_ij / sqrt(D_i) of the
 * others, as in scikit-learn's spectral_embedding. options->deviation: sqrt(D_i); 1 of a vertex without
 * links, whose row of A is 1/2 on the diagonal. A link of a vertex with itself counts, as in networkx;
 * scikit-learn takes it off. Figures in place of "variance": "connected_components", whose number is
 * exact, links taken both ways; "isolated", how many of them are vertices without links. As many s_j are 1 as
 * there are others, and their vectors are any basis of what is constant on each. Warnings by the same names,
 * where there are several others, or nearly, and any isolated.
 * Converged, signs, determinism as kiln_svd. Cost: an iteration multiplies 8 or 16 vectors by X once, and by
 * X^T unless X is symmetric; up to 256 times that where eigenvalues are close. Errors besides: ERR_ARGUMENT
 * (center, scale or a Gram matrix); ERR_DATA (X is not square; a weight is negative, NaN or infinite; a
 * degree leaves the type's range).
 * Source: von Luxburg, A tutorial on spectral clustering, Statistics and Computing 17 (2007). */
KILN_API kiln_status kiln_spectral(kiln_matrix *U, kiln_matrix *s, kiln_matrix *V, const kiln_matrix *X,
                                   const kiln_svd_options *options, kiln_report *report);

/* A model of what was found, of the algorithm "spectral" with graph, "pca" with center, else "svd". Tensors:
 * "V", "s"; "mean" with center, "deviation" with scale or graph, which are needed; "variance" if it was had;
 * "total", 1 x 1, the report's figure "variance" where that is a number. kiln_predict gives the coordinates
 * of new rows, (X - 1 mean^T) D^-1 V. Errors: ERR_ARGUMENT, ERR_NOMEM, device errors. */
KILN_API kiln_status kiln_svd_model(kiln_model **model, const kiln_matrix *V, const kiln_matrix *s,
                                    const kiln_svd_options *options, const kiln_report *report);

/* A model's claims again by slow reference code, in long double on the host, of V, s and X alone: means
 * and deviations, too, which of the options `center` and `scale` ask for. */
typedef struct kiln_svd_verification {
    size_t size;
    double values;        /* the largest of | ||A v_j|| - s_j | / s_1 */
    double residual;      /* of || A^T A v_j - s_j^2 v_j || / (s_1 max(s_j, sqrt(epsilon) s_1)) */
    double orthogonality; /* of |V^T V - 1| */
    double variance;      /* the sum of the columns' variances, as the figure of kiln_svd */
    double beyond; /* a lower bound of the largest singular value that is not among them, over s_1: what ten
                    * steps of the power iteration find beside V */
    double means, deviations; /* the largest errors of options.mean and deviation, relative to a column's
                               * largest entry; 0 where they are NULL */
    /* bounds of what the rounding of X's type may have made of values, residual and orthogonality */
    double values_rounding, residual_rounding, orthogonality_rounding;
    int64_t components; /* of a graph: connected components, links taken both ways */
} kiln_svd_verification;
/* Shapes as kiln_svd. Cost: 4 k + 40 products with X, one after the other. Errors: ERR_ARGUMENT; ERR_DATA
 * (X empty, an s_1 of 0 for an X that is not 0, or the reverse); memory and device errors. */
KILN_API kiln_status kiln_verify_svd(kiln_svd_verification *result, const kiln_matrix *V,
                                     const kiln_matrix *s, const kiln_matrix *X,
                                     const kiln_svd_options *options);

#ifdef __cplusplus
}
#endif
#endif
