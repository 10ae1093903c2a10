/* Kiln: operations.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include "kiln/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------------------------------- operations */

/* All operands live on one device and have one type. Sums run in the matrix's type unless said otherwise.
 * Determinism: on one machine, device and thread count every operation returns the same bits from run to
 * run, except where a comment says "atomics".  */

/* w = alpha * X^T (v .* (X y)) + beta * z, with X read once.
 *   X m x n, dense or CSR; y n x k; w n x k, 1 <= k <= 65536; v m x 1 (applied to each column), m x k, or
 *   NULL (ones); z n x k or NULL (then beta is ignored). beta = 0: z is not read, NaN in it does not matter.
 *   w may be z; w must not be y. m = 0 or nnz = 0 gives w = beta*z. Rows with v_i = 0 may be left out: NaN
 *   and infinity in them need not show.
 * Cost: 4*nnz*k flops; one pass over X, on GPUs one for every 4 to 8 columns of y. Dense rows that neither
 * registers nor a team of groups hold are read twice, the second time from the cache where they fit. The
 * first two passes over a sparse X may build what later ones use, at most 1.6 times X and 4 bytes a column
 * (kiln_device_statistics.layout_bytes), which goes when memory is short. CPU: work space of up to 128 copies
 * of w, one a thread where these are more than 1 GB. docs/passes.md says which shapes take which way.
 * Determinism: GPU CSR uses atomics. Dense, and the CPU, run to run; panels add up in another order than
 * rows.
 * Errors: ERR_ARGUMENT (shapes, types, devices, aliasing), ERR_NOMEM, ERR_DEVICE_NOMEM, device errors.
 * Source: Ashari et al., PPoPP 2015, equation 1 and algorithms 1-3.
 * Through OpenCL two devices opened on one GPU and used at the same time can wait for each other for ever on
 * wide dense rows; with CUDA they take turns. */
KILN_API kiln_status kiln_mmchain(kiln_matrix *w, double alpha, const kiln_matrix *X, const kiln_matrix *v,
                                  const kiln_matrix *y, double beta, const kiln_matrix *z);

typedef enum kiln_transpose { KILN_PLAIN = 0, KILN_TRANSPOSED = 1 } kiln_transpose;

/* Y = alpha * op(A) B + beta * Z, op(A) = A or A^T.
 *   A m x n, dense or CSR; B n x k (m x k transposed); Y, Z m x k (n x k transposed); 1 <= k <= 65536;
 *   Z NULL or beta = 0: not read. Y may be Z; Y must not be B.
 * A sparse A and 17 <= k <= 4096, on the CPU 64 <= k (128 transposed): one pass over A, whatever k;
 * transposed it makes a copy of A by columns the first time, which is kept with A
 * (kiln_device_statistics.layout_bytes: as large as A), if there is memory for it.
 * Determinism: then run to run. For other k, CSR on GPUs uses atomics: transposed, and plain where passes
 * over A have made a copy in panels.
 * Source: as mmchain. */
KILN_API kiln_status kiln_multiply(kiln_matrix *Y, double alpha, kiln_transpose op, const kiln_matrix *A,
                                   const kiln_matrix *B, double beta, const kiln_matrix *Z);

/* ---- dense products sampled at a sparse matrix ---- */

/* Says what becomes of an entry s of S and the dot product d = a_i . b_j at its place: f(s, d); and what
 * kiln_sddmm's sum adds up. */
typedef enum kiln_sample_kind {
    KILN_SAMPLE_PRODUCT = 1, /* d; sum of d^2 */
    KILN_SAMPLE_TIMES = 2,   /* s d; sum of s d^2 */
    /* s / max(d, floor), 0 where s is 0; sum of s log max(d, floor): the Poisson log-likelihood's part */
    KILN_SAMPLE_QUOTIENT = 3,
    KILN_SAMPLE_RESIDUAL = 4 /* s - d; sum of (s - d)^2: the squared error */
} kiln_sample_kind;

/* The operands that the sampled products have in common. */
typedef struct kiln_sample {
    size_t size;
    kiln_sample_kind kind;
    double floor;         /* QUOTIENT; 0 = 1e-30 in f32, 1e-290 in f64 */
    const kiln_matrix *S; /* m x n, CSR */
    const kiln_matrix *A; /* m x k, dense, 1 <= k <= 4096 */
    const kiln_matrix *B; /* n x k, dense */
} kiln_sample;

/* P_ij = alpha * f(s_ij, a_i . b_j) + beta * P_ij at the entries of S, and *sum as the kind says.
 *   P shares S's structure (kiln_matrix_like) or is S; NULL: only the sum is wanted. sum NULL: it is not.
 *   beta = 0: P is not read.
 * The product S -> A B^T without any m x n matrix: what factor models, topic models and graph attention are
 * made of.
 * Cost: 2 nnz k flops; A once, a row of B for each entry, from the caches as far as they hold B.
 * On a GPU the first product of S makes a table of how its work is shared, which is kept with S
 * (kiln_device_statistics.layout_bytes): half a byte an entry and two bytes a row.
 * Determinism: run to run, on every device and for any number of threads. The sum is in double (on devices
 * that have it).
 * Errors: ERR_ARGUMENT (shapes, types, devices, a P of another structure), ERR_NOMEM, ERR_DEVICE_NOMEM,
 * device errors.
 * Source: Nisa et al., "Sampled dense matrix multiplication for high-performance machine learning", HiPC
 * 2018. */
KILN_API kiln_status kiln_sddmm(kiln_matrix *P, double *sum, double alpha, const kiln_sample *sample,
                                double beta);

/* The sampled matrix Q, q_ij = f(s_ij, a_i . b_j), times one of its factors, without Q:
 *   PLAIN       Y = alpha * Q B + beta * Z      Y, Z m x k
 *   TRANSPOSED  Y = alpha * Q^T A + beta * Z    Y, Z n x k
 * and *sum as in kiln_sddmm (NULL: not wanted). Z NULL or beta = 0: not read. Y may be Z; Y must not be A or
 * B. Each row of B (TRANSPOSED: of A) is read once for both products, and Q is not stored.
 * TRANSPOSED makes a copy of S by columns, in its first pass, which is kept with S until its values are
 * written (kiln_device_statistics.layout_bytes: as large as S).
 * Cost: 4 nnz k flops. Determinism: as kiln_sddmm. Errors: as kiln_sddmm; ERR_LIMIT (TRANSPOSED, of 2^31 rows
 * or more).
 * Source: Rahman et al., "FusedMM: a unified SDDMM-SpMM kernel for graph embedding and graph neural
 * networks", IPDPS 2021. */
KILN_API kiln_status kiln_sddmm_multiply(kiln_matrix *Y, double *sum, double alpha, kiln_transpose op,
                                         const kiln_sample *sample, double beta, const kiln_matrix *Z);

/* ---- losses of linear models: the pattern with a map of its own in the middle ---- */

/* Says what a row with target y adds to the objective, as a function of its linear predictor eta = x.w + b +
 * offset. */
typedef enum kiln_loss_kind {
    KILN_LOSS_SQUARED = 1,         /* (eta - y)^2 / 2 */
    KILN_LOSS_LOGISTIC = 2,        /* log(1 + e^eta) - y eta; y in [0, 1] */
    KILN_LOSS_SOFTMAX = 3,         /* log(sum_c e^eta_c) - eta_y; y the number of the class, 0 to k-1 */
    KILN_LOSS_SQUARED_HINGE = 4,   /* max(0, 1 - sign * eta)^2 / 2; sign is 1 where y > 0, else -1 */
    KILN_LOSS_SQUARED_EPSILON = 5, /* max(0, |eta - y| - parameter)^2 / 2 */
    /* Minus the log-likelihood of family and link, up to terms without eta: (mu - y)^2 / 2; mu - y log mu
     * (Poisson); y/mu + log mu (gamma); y/(2 mu^2) - 1/mu (inverse Gaussian); -y log mu - (1-y) log(1-mu)
     * (binomial); mu^(2-p)/(2-p) - y mu^(1-p)/(1-p) (Tweedie); (y + 1/a) log(1 + a mu) - y log(a mu)
     * (negative binomial); log Gamma(P mu) + log Gamma(P (1-mu)) - log Gamma(P) - P mu log y - P (1-mu)
     * log(1-y) (beta) */
    KILN_LOSS_GLM = 6
} kiln_loss_kind;

typedef enum kiln_family {
    KILN_GAUSSIAN = 1,
    KILN_POISSON = 2,
    KILN_GAMMA = 3,
    KILN_INVERSE_GAUSSIAN = 4,
    KILN_BINOMIAL = 5, /* y a proportion in [0, 1], the weight its number of trials */
    KILN_TWEEDIE = 6,  /* variance mu^p, p = the loss's parameter, in (1, 2) or above 2 */
    KILN_NEGATIVE_BINOMIAL =
        7, /* variance mu + alpha mu^2, alpha > 0 = the loss's parameter, given, not estimated */
    /* y in (0, 1), open; variance mu (1 - mu) / (1 + P), the precision P > 0 = the loss's parameter, given,
     * not estimated (Ferrari and Cribari-Neto, J. Appl. Stat. 31, 2004). Links onto (0, 1) alone. A y is not
     * its own best mean, but for 1/2, and the loss is not convex. */
    KILN_BETA = 8
} kiln_family;

/* The y that a family has a place for; parameter: the loss's. */
KILN_API kiln_range kiln_family_range(kiln_family family, double parameter);

typedef enum kiln_link {
    KILN_LINK_DEFAULT =
        0, /* identity for the Gaussian family, logit for the binomial and the beta, log for all others,
            * which stay in range */
    /* These and POWER need eta > 0, except under the Gaussian family: IDENTITY any, INVERSE any but 0. LOG
     * takes any eta; the binomial family also needs mu < 1. */
    KILN_LINK_IDENTITY = 1,
    KILN_LINK_LOG = 2,
    KILN_LINK_INVERSE = 3,
    KILN_LINK_INVERSE_SQUARED = 4,
    KILN_LINK_SQRT = 5,
    KILN_LINK_LOGIT = 6,
    KILN_LINK_PROBIT = 7,
    KILN_LINK_CLOGLOG = 8,
    KILN_LINK_CAUCHIT = 9,
    KILN_LINK_POWER = 10 /* mu^link_power */
} kiln_link;

/* A family restricts its kiln_loss.parameter: it is finite, above a number, and not equal to another one. */
typedef struct kiln_family_parameter {
    const char *option;           /* as the tool calls it: "variance-power"; NULL: the family has none */
    const char *letter, *meaning; /* "P", "the variance is mu^P" */
    const char *wanted;           /* "between 1 and 2 or above 2" */
    double above, other_than;
} kiln_family_parameter;

/* This is a family's row of the library's table. */
typedef struct kiln_family_info {
    const char *name;     /* "gaussian" */
    kiln_link link;       /* what KILN_LINK_DEFAULT stands for */
    uint32_t links;       /* those that it has: the bit 1 << link of each */
    int fixed_dispersion; /* 1: it is 1; 0: it is estimated */
    int linear_score;     /* 1: the score is a multiple of y - mu, and the best constant mean is that of y */
    int outcomes;         /* 1: y may be 0 and 1 as two outcomes, a weight is a number of trials */
    kiln_family_parameter parameter;
} kiln_family_info;
/* NULL: no family has that number. Valid for as long as the library is loaded. */
KILN_API const kiln_family_info *kiln_family_describe(kiln_family family);

typedef struct kiln_loss {
    size_t size;
    kiln_loss_kind kind;
    kiln_family family; /* KILN_LOSS_GLM, as link */
    kiln_link link;
    double parameter;     /* the epsilon of SQUARED_EPSILON; Tweedie's p; the negative binomial's alpha; the
                    * beta's P */
    double link_power;    /* KILN_LINK_POWER */
    const kiln_matrix *y; /* m x 1 */
    const kiln_matrix *weights; /* m x 1, the s_i; NULL = ones */
    const kiln_matrix *offset;  /* m x 1, known part of eta; NULL = zeros. Not with SOFTMAX */
} kiln_loss;

/* Value and gradient of F(W, b) = sum_i s_i loss(y_i, eta_i), eta = X W + 1 b + offset, in one pass over X:
 *   *value = F;  G = X^T g (n x k);  gb = 1^T g (1 x k);  g = s .* d loss / d eta;
 *   C, what kiln_loss_hessian needs of this point: m x 1, s .* d^2 loss / d eta^2; for SOFTMAX m x k, the
 *   probabilities. A GLM's loss need not be convex: of a row that bends down C has a 4096th of the expected
 *   curvature, s mu'^2 / V(mu).
 * W n x k, k = 1 but for SOFTMAX (2 <= k <= 65536); b 1 x k or NULL (zeros); gb and C may be NULL. A point
 * out of the loss's range gives *value = infinity, and G, gb and C are of no use.
 * Cost: 4*nnz*k flops, one pass over X (GPUs: for k > 8 two products per 8 columns, and m x k of work space).
 * Sums of *value in double.
 * Determinism: as mmchain. Errors: as mmchain; ERR_ARGUMENT for a family or link out of range. */
KILN_API kiln_status kiln_loss_gradient(double *value, kiln_matrix *G, kiln_matrix *gb, kiln_matrix *C,
                                        const kiln_loss *loss, const kiln_matrix *X, const kiln_matrix *W,
                                        const kiln_matrix *b);

/* The Hessian of F at the point where C was computed, times (P, pb), in one pass over X:
 *   Q = X^T T + beta Z,  qb = 1^T T,  T = C .* (X P + 1 pb); for SOFTMAX, row by row,
 *   t = s (c .* (q - sum_j c_j q_j)), q = x P + pb.
 * P, Q, Z n x k; pb, qb 1 x k; pb NULL counts as zeros, qb NULL is not computed, Z as in mmchain.
 * SOFTMAX reads the loss's kind and weights. Any other loss gives its kind alone: C is m x 1 or NULL (ones),
 * and the k columns of P, 1 <= k <= 65536, are k products with one Hessian, as for least squares with several
 * targets. Cost, determinism, errors: as kiln_loss_gradient. */
KILN_API kiln_status kiln_loss_hessian(kiln_matrix *Q, kiln_matrix *qb, const kiln_loss *loss,
                                       const kiln_matrix *C, const kiln_matrix *X, const kiln_matrix *P,
                                       const kiln_matrix *pb, double beta, const kiln_matrix *Z);

/* The mean response at Eta = X W + 1 b + offset (m x k), element by element, row by row for SOFTMAX: eta
 * itself (SQUARED, SQUARED_HINGE, SQUARED_EPSILON), the probability of class 1 (LOGISTIC) or of each class
 * (SOFTMAX), the inverse link (GLM; NaN or infinite where eta is out of the link's range). Only kind, family,
 * link and their parameters are read. M may be Eta. */
KILN_API kiln_status kiln_loss_mean(kiln_matrix *M, const kiln_loss *loss, const kiln_matrix *Eta);

/* Finds what a generalised linear model is judged by, row by row at Eta = X w + 1 b + offset (m x 1). D m x
 * 3, with s the weight:
 *   s d(y, mu), the deviance's part: twice what the row's log-likelihood lacks to its largest value, that at
 *   mu = y (beta: at the mu with psi(P mu) - psi(P (1 - mu)) = logit y); s (y - mu)^2 / V(mu), Pearson's;
 *   minus that largest log-likelihood, which is of y and s alone, for dispersion 1: minus the row's
 *   log-likelihood is half its deviance and this. Of Poisson, binomial, negative binomial and beta rows; for
 *   those with a dispersion without constants, Gaussian -log(s)/2, gamma s log y, inverse Gaussian
 *   3/2 s log y; Tweedie NaN (no closed form).
 * Rows of weight 0 give zeros. The loss's offset is not read. Errors: as mmchain; ERR_ARGUMENT for other
 * losses. */
KILN_API kiln_status kiln_loss_deviance(kiln_matrix *D, const kiln_loss *loss, const kiln_matrix *Eta);

/* d = diag(X^T diag(v) X), that is d_j = sum_i v_i * x_ij^2.   d n x 1; v m x 1 or NULL (ones).
 * The Jacobi preconditioner of mmchain and, with column means, the column variances.
 * Determinism: as multiply. */
KILN_API kiln_status kiln_gram_diagonal(kiln_matrix *d, const kiln_matrix *X, const kiln_matrix *v);

/* The whole matrix, for an X of few columns:  G = (X - 1 c^T)^T diag(v) (X - 1 c^T),  g = (X - 1 c^T)^T v.
 *   G n x n, dense, symmetric to the bit; g n x 1 or NULL; v m x 1 or NULL (ones); c n x 1 or NULL (zeros):
 *   columns about their means without a centred X. Entries must be finite, or G is of no use. Results must
 *   not be operands.
 * Cost: on the CPU m n^2 flops dense, nnz^2 / m sparse, one pass over X, work space of up to 64 n^2 doubles,
 * but 128 MB unless one n^2 is more. On GPUs a dense X comes once for every 32 to 96 columns, as a rule from
 * the second cache level, f32 by tensor cores where there are some (with all of f32's bits); work space of up
 * to 256 MB, but of n^2 numbers at least. A sparse X there, one that streams, and on the CPU its columns far
 * from 0 take a pass for every 64. Sums in double on the CPU. For a sparse X, c is taken off after the sums:
 * a mean of 1e4 times the spread costs G 4 of 16 digits. Determinism: on the CPU for any number of threads;
 * of a dense X on a GPU from run to run; else as mmchain.
 * Errors: as mmchain. Rows with v_i = 0 cost nothing on the CPU. */
KILN_API kiln_status kiln_gram(kiln_matrix *G, kiln_matrix *g, const kiln_matrix *X, const kiln_matrix *v,
                               const kiln_matrix *c);

/* W_ij = a_j * X_ij + b_j * Y_ij. W r x k; X and Y r x k or r x 1 (used for each column); a and b have k
 * entries.
 * Y NULL: W = a X, b is ignored. A zero coefficient means that its operand is not read. W may be X or Y. */
KILN_API kiln_status kiln_combine(kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,
                                  const kiln_matrix *Y);

/* W_ij = X_ij * Y_ij. X and Y r x k or r x 1 (used for each column). W may be X or Y. */
KILN_API kiln_status kiln_times(kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y);

/* Element maps W_ij = f(X_ij). W may be X. */
typedef enum kiln_map_kind {
    KILN_MAP_ABS = 1,        /* |x| */
    KILN_MAP_SQUARE = 2,     /* x^2 */
    KILN_MAP_SQRT = 3,       /* sqrt(x) */
    KILN_MAP_RECIPROCAL = 4, /* 1/x, and 0 where x = 0 (what scaling by a column's spread needs) */
    KILN_MAP_EXP = 5,        /* e^x */
    KILN_MAP_LOG = 6         /* log(x): minus infinity for 0, NaN below */
} kiln_map_kind;
KILN_API kiln_status kiln_map(kiln_matrix *W, kiln_map_kind kind, const kiln_matrix *X);

/* Every element = value. */
KILN_API kiln_status kiln_fill(kiln_matrix *W, double value);

typedef enum kiln_distribution { KILN_UNIFORM = 0, KILN_NORMAL = 1 } kiln_distribution;
/* Element e of W = the e-th number of stream `stream` of `seed`: uniform in [0,1) or (nearly) standard
 * normal, the sum of twelve 16-bit uniforms. Philox4x32-10 counters, so the same bits on every device and
 * thread count. */
KILN_API kiln_status kiln_fill_random(kiln_matrix *W, kiln_distribution distribution, uint64_t seed,
                                      uint64_t stream);
/* words = Philox4x32-10 of the counter (index, stream) under the key seed (Salmon, Moraes, Dror and Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011): what kiln_fill_random makes its numbers of, and
 * every draw of this library. The same words on every device and machine. */
KILN_API void kiln_random(uint32_t words[4], uint64_t seed, uint64_t stream, uint64_t index);

/* result[j] = sum_i X_ij * Y_ij for each of the k columns; accumulated in double, or in float on a device
 * without f64 (kiln_device_info.has_f64). X r x k; Y r x k or r x 1 (used for each column). */
KILN_API kiln_status kiln_dot(double *result, const kiln_matrix *X, const kiln_matrix *Y);

typedef enum kiln_norm_kind { KILN_NORM_1 = 1, KILN_NORM_2 = 2, KILN_NORM_MAX = 3 } kiln_norm_kind;
/* result[j] = the norm of column j: sum |x|, sqrt(sum x^2), max |x|. Scaled, so that 1e200 in f64 does not
 * overflow; NaN anywhere in a column makes its norm NaN. */
KILN_API kiln_status kiln_norm(double *result, const kiln_matrix *X, kiln_norm_kind kind);

/* ---- scalars that stay on the device, so that a loop need not wait for them ---- */

/* Row `row` of R receives what kiln_dot, kiln_norm and a sum of the columns of X give: R_row,j = sum_i X_ij
 * Y_ij, the norm of column j, sum_i X_ij.
 *   R h x k, dense, of the device's widest type: f64, or f32 where kiln_device_info.has_f64 is 0. Its other
 *   rows stay as they are, so that a loop can keep the scalars of many iterations and read them at once. R
 *   must not be X or Y. X and Y as for kiln_dot and kiln_norm.
 * Cost: one read of X and Y; KILN_NORM_2 of the widest type two, the first for the largest element, by which
 * the squares are scaled. On a GPU the call returns before the result is there. Determinism: run to run.
 * Errors: ERR_ARGUMENT (shapes, types, devices, aliasing, row), device errors. */
KILN_API kiln_status kiln_dot_into(kiln_matrix *R, int64_t row, const kiln_matrix *X, const kiln_matrix *Y);
KILN_API kiln_status kiln_norm_into(kiln_matrix *R, int64_t row, const kiln_matrix *X, kiln_norm_kind kind);
KILN_API kiln_status kiln_sum_into(kiln_matrix *R, int64_t row, const kiln_matrix *X);

/* k coefficients on the device: factor * over_row,j / under_row,j, column by column; 0 where what is under is
 * 0. */
typedef struct kiln_ratio {
    size_t size;
    double factor;                   /* 0 stands for 1 */
    const kiln_matrix *over, *under; /* h x k as R above; NULL = ones */
    int64_t over_row, under_row;
} kiln_ratio;

/* W_ij = a_j * X_ij + b_j * Y_ij, as kiln_combine, with coefficients that lie on the device.
 *   W, X and Y as in kiln_combine; Y NULL: b is ignored. a or b NULL = ones. A coefficient of 0 keeps what
 *   its operand holds, NaN too, out of W. The matrices whose numbers lie over and under must not be W.
 * Cost: one read of X and Y, one write of W; no wait. Determinism: the same bits always.
 * Errors: ERR_ARGUMENT (shapes, types, devices, aliasing, rows, a factor that is not finite), device
 * errors. */
KILN_API kiln_status kiln_combine_from(kiln_matrix *W, const kiln_ratio *a, const kiln_matrix *X,
                                       const kiln_ratio *b, const kiln_matrix *Y);

/* ---- many vectors at once ---- */

/* Says where the vectors of a batch lie among the values of a matrix, which are numbered row by row (a sparse
 * matrix's: its stored entries). A batch is made once and serves any number of calls and matrices. */
typedef struct kiln_batch kiln_batch;

/* Vectors of one length: element i of vector v is value first + v * stride + i * step. stride 0: length, one
 * vector after the other; step 0: 1. The columns of a dense m x n matrix are kiln_batch_equal(&batch, n, m,
 * 0, 1, n). Serves any device.
 * Errors: ERR_ARGUMENT (a negative number, or places beyond 2^63), ERR_NOMEM. */
KILN_API kiln_status kiln_batch_equal(kiln_batch **batch, int64_t count, int64_t length, int64_t first,
                                      int64_t stride, int64_t step);
/* Vectors of any lengths: vector v has the values from offsets[v] up to, not including, offsets[v + 1];
 * `offsets` has count + 1 numbers, which do not decrease, and is copied. Empty vectors are fine. For matrices
 * on that device.
 * Cost: a walk over the offsets; 8 bytes a vector in host memory and, on a GPU, on the device, there with
 * some 16 for each 16 KB of values. Errors: ERR_ARGUMENT, ERR_NOMEM, ERR_DEVICE_NOMEM. */
KILN_API kiln_status kiln_batch_ragged(kiln_batch **batch, kiln_device *device, int64_t count,
                                       const int64_t *offsets);
/* The rows of X: a dense matrix's are of one length; of a sparse one, their stored entries. X itself may
 * go. */
KILN_API kiln_status kiln_batch_rows(kiln_batch **batch, const kiln_matrix *X);
KILN_API void kiln_batch_free(kiln_batch *batch); /* NULL is allowed; before its device closes */

/* Says what becomes of a vector x of n elements. A NaN among them makes every number NaN, and is itself the
 * largest and the smallest that ARGMAX and ARGMIN find; of equals they find the first, counted from 0. */
typedef enum kiln_batch_kind {
    KILN_BATCH_SUM = 1,     /* sum x; n = 0: 0 */
    KILN_BATCH_SQUARES = 2, /* sum x^2; n = 0: 0 */
    KILN_BATCH_L1 = 3,      /* sum |x|; n = 0: 0 */
    KILN_BATCH_L2 = 4,      /* sqrt(sum x^2), without overflow or underflow on the way; n = 0: 0 */
    KILN_BATCH_MAX = 5,     /* n = 0: minus infinity */
    KILN_BATCH_MIN = 6,     /* n = 0: infinity */
    KILN_BATCH_ARGMAX = 7,  /* n = 0: -1 */
    KILN_BATCH_ARGMIN = 8,  /* n = 0: -1 */
    KILN_BATCH_MEAN = 9,    /* sum x / n; n = 0: NaN */
    KILN_BATCH_VARIANCE =
        10, /* sum (x - mean)^2 / n, about the mean itself, not by a difference of sums; n = 0: NaN */
} kiln_batch_kind;

/* result[v] = the reduction of vector v.
 * X dense or CSR; result dense, count x 1, of X's type, not X; batch NULL: the rows
 * of a dense X. In sparse rows only the stored entries count, not the zeros beside them.
 * Sums run in double, on devices that have none in float with compensation, and are then rounded to X's type.
 * Cost: one read of the vectors, whatever their lengths and places are, at about the speed of memory where a
 * vector's elements lie side by side (step 1), or vectors do (stride 1). Nothing waits: on a GPU the result
 * is there when the queue has come to it.
 * Determinism: on one device, the same bits from run to run; on the CPU for any number of threads.
 * Errors: ERR_ARGUMENT (shapes, types, devices, a batch that ends behind X; ARGMAX and ARGMIN of f32 with
 * vectors of more than 2^24 elements, whose places f32 does not hold), ERR_NOMEM, device errors.
 * Source: Polok and Smrz, "Fast linear algebra on GPU", HPCC 2012, algorithm 1, with vectors of different
 * lengths. */
KILN_API kiln_status kiln_batch_reduce(kiln_matrix *result, kiln_batch_kind kind, const kiln_matrix *X,
                                       const kiln_batch *batch);

/* Y_e = scale_v X_e for each element e of each vector v; other values of Y stay as they are.
 * X dense or CSR; Y is X, or of its shape, type and, if sparse, number of entries (kiln_matrix_like); scale
 * dense, count x 1; batch NULL: the rows of a dense X. Vectors that share elements give those no defined
 * values. Cost: one read of X and one write of Y. Determinism, errors: as kiln_batch_reduce. Source: there,
 * algorithm 2. */
KILN_API kiln_status kiln_batch_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                                      const kiln_batch *batch);

/* ---- nearest centres ---- */

/* Holds what passes over one X leave behind for the next, so that it reads less of X: of each row its centre,
 * and on a CPU no less than the distance from it, and no more than the distances from the others. When a
 * centre has moved so far, these are off by so much, and only rows that they leave in doubt are measured.
 * Sums are those of the pass before, corrected for the rows that have changed their centre
 * (kiln_assignment). */
typedef struct kiln_bounds kiln_bounds;
/* *bounds for passes over X and k centres, or NULL where there are none: X that is not dense, or goes by in
 * panels, one centre, groups of devices; on a CPU rows of fewer than 16 columns or 100 bytes; on a GPU rows
 * of fewer than 16 bytes, and devices without f64. A GPU measures all distances all the same, and adds up all
 * rows that have weights. Memory, from the first pass on: on a CPU 16 bytes a row and 4 for each group of
 * centres, no more than a fifth of X in all, on a GPU 4 a row; and the centres and their sums in double.
 * Errors: ERR_ARGUMENT, ERR_NOMEM. Source: Hamerly, SDM 2010; Ding et al., ICML 2015 (Yinyang), with
 * groups of centres that are near each other. */
KILN_API kiln_status kiln_bounds_new(kiln_bounds **bounds, const kiln_matrix *X, int64_t k);
KILN_API void kiln_bounds_free(kiln_bounds *bounds); /* NULL is allowed */
/* *sums: k x n sums and then k x 2 totals, which the next pass goes on from: a dense matrix of f64 with
 * one column, on X's device; the bounds own it. A run that was interrupted makes a pass over the same
 * centres, and sets the sums of before in their place. Errors: ERR_ARGUMENT, also where no pass has been
 * made. */
KILN_API kiln_status kiln_bounds_sums(kiln_matrix **sums, kiln_bounds *bounds);
/* The next pass adds up all rows, as the first does. */
KILN_API void kiln_bounds_refresh(kiln_bounds *bounds);
/* The share of the distances between rows and centres that passes so far have not measured, 0 to 1. */
KILN_API double kiln_bounds_skipped(const kiln_bounds *bounds);

/* Holds what is wanted of the nearest centres; NULL: not that. */
typedef struct kiln_assignment {
    size_t size;
    kiln_matrix *
        labels; /* m x 1: first + the number of the nearest row of C, the least of several that are as near */
    kiln_matrix *distances; /* m x 1: ||x_i - c||^2 */
    kiln_matrix *sums;      /* k x n: sum of s_i x_i over the rows of each centre, rounded once */
    double *totals;         /* k x 2: sum of s_i, and of s_i ||x_i - c||^2 */
    /* > 0: labels and distances hold what has been found among other centres, and only rows change that have
     * a nearer one here. Goes with distances, and without sums and totals. */
    int64_t first;
    /* They belong to passes over the same X with the same weights and number of centres, or are NULL, and go
     * with sums and totals, and with no other result. The rows' centres are those of a pass without bounds.
     * After the first pass, and unless kiln_bounds_refresh was called, sums and totals are those of the pass
     * before, corrected for rows and centres that have moved: they differ by roundings of double, and the
     * same passes in the same order give the same bits. */
    kiln_bounds *bounds;
} kiln_assignment;

/* The nearest of k centres for each row of X, in one pass over X, and without m x k distances in memory.
 *   X m x n, dense or CSR; C k x n, dense, 1 <= k <= 2^24; weights (the s_i) m x 1 or NULL (ones).
 * Labels are exact, however far rows are from zero: where rounding leaves two centres in doubt, distances are
 * computed again as sums of squared differences in double (on a device without f64: as exactly as f32 can),
 * so that only centres whose squared distances are the same to n 2^-53 of them may change places.
 * Entries must be finite, and, of f64, their squares.
 * Cost: 2 nnz k flops, and 3 n k at most for a row in doubt; one pass over X, a second for sums and totals
 * where those are large beside X, and on GPUs. Work space: C again, the sums in double; on GPUs 16 bytes a
 * row. An X in a file, or too large for the device, goes by in panels of rows, whose sums add up in double.
 * Determinism: run to run, and on the CPU for any number of threads; of panels for the same memory.
 * Errors: ERR_ARGUMENT (shapes, types, devices, aliasing); ERR_LIMIT (2^31 rows of X or of a panel on a GPU);
 * ERR_IO (X's file); memory and device errors.
 * Source: Lloyd, IEEE Trans. Inf. Theory 28 (1982). */
KILN_API kiln_status kiln_assign(const kiln_assignment *result, const kiln_matrix *X, const kiln_matrix *C,
                                 const kiln_matrix *weights);

/* R_ij = x_rows[i],j.   R as many rows as wanted x n, dense; X m x n, dense or CSR; rows in any order, and as
 * often as wanted.
 * Cost: the rows; of an X that lies in a file one read for each. Determinism: every bit.
 * Errors: ERR_ARGUMENT (shapes, types, devices, a row that X has not), ERR_IO (X's file), memory and device
 * errors. */
KILN_API kiln_status kiln_rows(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows);

/* ---- conjugate gradient ---- */

/* Holds what k independent, preconditioned conjugate gradient recurrences for H E = G work on: H = A + L, L a
 * diagonal, and A = (X - 1 mean^T)^T diag(weights) (X - 1 mean^T). Q holds L P when a pass over X adds A P to
 * it. The sums of centred rows would be 0 but for rounding, which the means must not magnify: the pass
 * returns these sums, and mean sums is taken off Q. */
typedef struct kiln_cg {
    size_t size;
    /* (5 + 2 h) x k, h >= 1, of type f64 (f32 on a device without f64: kiln_device_info.has_f64): the
     * scalars,
     *   row 0 rho   row 1 whether the column is active (1 or 0)   row 2 the goal: finished once rho <= goal
     *   row 3 the sum of alpha * rho / 2 so far, by which E^T H E / 2 - G^T E has come down
     *   row 4 P . L P
     *   rows 5 + 2 slot and 6 + 2 slot: rho and row 3 after a step, for 0 <= slot < h */
    kiln_matrix *S;
    kiln_matrix *E, *G, *P, *Q; /* n x k, 1 <= k <= 64: solution, residual, direction, H P */
    const kiln_matrix *inverse; /* n x 1: the preconditioner's diagonal; NULL = ones */
    const kiln_matrix *penalty; /* n x 1: L's diagonal; NULL = l2 throughout */
    double l2;
    const kiln_matrix *mean; /* n x 1; NULL = zeros: then shift and sums are not used */
    kiln_matrix *sums;       /* 1 x k: receives the column sums of weights .* (X - 1 mean^T) P */
    kiln_matrix *shift;      /* 1 x k: receives -mean^T P, what centres the rows of X P */
    kiln_matrix *curvature;  /* 1 x k, of S's type: receives P . A P */
} kiln_cg;

/* Before the first pass: E = 0, rho = G . (inverse .* G), P = inverse .* G, or 0 for columns that are not
 * active; Q = L P. The caller has filled G and rows 1 to 3 of S. Cost, determinism and errors as
 * kiln_cg_step's. */
KILN_API kiln_status kiln_cg_begin(const kiln_cg *cg);

/* Q += A P; sums and curvature on the way, in one pass over X. weights m x 1 or NULL (ones).
 * Cost, determinism, errors: as mmchain. */
KILN_API kiln_status kiln_cg_pass(const kiln_cg *cg, const kiln_matrix *X, const kiln_matrix *weights);

/* The vector work of a step, column by column, after a pass:
 *   alpha = rho / (curvature + P . L P);  E += alpha P;  G -= alpha (Q - mean sums);
 *   rho = G . (inverse .* G);
 *   P = inverse .* G + beta P, beta the ratio of the new rho to the old;
 *   Q = L P, for the next pass to add to.
 * The scalars stay on the device, so that whole iterations can be queued without waiting. A column that is
 * not active keeps E and G and gets P = 0; a curvature that is not positive, or a number that is not finite,
 * ends a column before the step. Cost: reads and writes 9 n k elements. Determinism: run to run.
 * Errors: ERR_ARGUMENT (shapes, types, aliasing), device errors. */
KILN_API kiln_status kiln_cg_step(const kiln_cg *cg, int64_t slot);

/* ---- layouts of points: multi-dimensional scaling ---- */

/* D_ij = || x_i - z_j ||, X m x q, Z k x q, D m x k; all dense. Differences are squared one by one, so that
 * points near each other keep their distance's digits. Cost: 3 m k q flops. Errors: as kiln_combine. D must
 * not be X or Z. */
KILN_API kiln_status kiln_distances(kiln_matrix *D, const kiln_matrix *X, const kiln_matrix *Z);

/* Measures a layout of n points in p dimensions, and makes SMACOF's next one from it by majorisation:
 *   d_ij = || y_i - y_j ||,  delta_ij = D_ij, or || x_i - x_j || where X is given in place of D,
 *   w_ij = weights_ij or 1
 *   R_i = sum_j w_ij delta_ij / d_ij (y_i - y_j)           U_i = sum_j w_ij / d_ij (y_i - y_j)
 *   sums = (sum w (delta - d)^2,  sum w d^2,  sum w d,  sum w delta d)  over the pairs i < j
 *   points_i = sum_j w_ij (delta_ij - d_ij)^2
 * A pair i < j with d_ij = 0 adds w_ij delta_ij and w_ij to i in the first dimension, and takes it from j:
 * any unit vector majorises there, and points that belong apart part. Distances below 2^-63 (f64: 2^-511)
 * count so in part, and w_ij delta_ij above 2^64 (f64: 2^512) overflow there. Only entries right of the
 * diagonal of D and weights are read.
 * Without weights the next layout is R / n, and its stress is no larger than that of Y. */
typedef struct kiln_guttman {
    size_t size;                /* sizeof(kiln_guttman), or 0: the layout of the first release */
    kiln_matrix *R;             /* n x p */
    kiln_matrix *U;             /* n x p; NULL: not wanted, and the last two sums are 0 */
    kiln_matrix *sums;          /* 1 x 4, of type f64 (f32 on a device without f64) */
    kiln_matrix *points;        /* n x 1; NULL: not wanted */
    const kiln_matrix *Y;       /* n x p, 1 <= p <= 64 */
    const kiln_matrix *D, *X;   /* n x n; or n x q */
    const kiln_matrix *weights; /* n x n, or NULL */
} kiln_guttman;

/* Cost: D and weights above the diagonal are read once, 20 p flops a pair; with X 3 q flops a pair more.
 * `points` is a second pass on GPUs. Work space: up to n^2 / 8 elements. Sums over pairs in the elements'
 * type, their totals in double. Determinism: run to run; on the CPU for any number of threads. Errors:
 * ERR_ARGUMENT (shapes, types, aliasing), memory and device errors.
 * Source: de Leeuw, Applications of convex analysis to multidimensional scaling, 1977; Gunarathne,
 * Salpitikorala, Chauhan and Fox, Optimizing OpenCL kernels for iterative statistical applications on GPUs,
 * 2011 (two passes). */
KILN_API kiln_status kiln_guttman_step(const kiln_guttman *step);

/* ---- PageRank ---- */

/* Says how the links of a graph lie for sums over those that lead to a vertex, which are its row here. All of
 * them store 4 bytes a link, and values only where weights are asked for; they are made once, at the first
 * step, and kept with A.
 *   csr       row after row; a GPU's vector of threads takes a row, however long it is
 *   hybrid    windows of rows sorted by length, whose rows of equal length are done together (ELLPACK without
 *             padding, a bin for each length); on a GPU rows of more than 64 links are in balanced shares
 *   balanced  row after row, cut into shares of as many rows and links wherever rows begin and end; parts of
 *             rows are added in order
 * Which is the fastest depends on the rows' lengths: kiln_ranks_plans (kiln/tune.h) says what each is
 * predicted to take. Sums differ by rounding alone. */
typedef enum kiln_layout {
    KILN_LAYOUT_CSR = 1,
    KILN_LAYOUT_HYBRID = 2,
    KILN_LAYOUT_BALANCED = 3
} kiln_layout;

/* Holds what power iteration for PageRank works on: k rankings of one graph's n vertices at once, 1 <= k <=
 * 64, each a column of
 *   P = (1 - damping) teleport + damping (A^T D^-1 P + mass * dangling),
 * D the sums of A's rows, which are what links from a vertex weigh together, and mass the sum of P over the
 * vertices that have none. Row i of A links to column j with weight a_ij >= 0. The update gathers by columns
 * of A, so that the first step copies A's structure in one of the layouts above. */
typedef struct kiln_ranks {
    size_t size;
    const kiln_matrix *A; /* n x n, CSR */
    int weighted;   /* 0 = each stored entry is a link of weight 1, whatever its value, which is not read */
    double damping; /* in [0, 1] */
    kiln_matrix *P; /* n x k: the ranks */
    kiln_matrix *C, *next; /* n x k each: work space, D^-1 P of this step and of the next */
    /* n x 1: receives D^-1, 0 where no links are, NaN where weights are negative, or do not add up */
    kiln_matrix *factor;
    /* (4 + h) x k, h >= 1, of type f64 (f32 on a device without f64: kiln_device_info.has_f64):
     *   row 0 mass   row 1 the goal, which the caller sets   row 2 steps taken
     *   row 3 whether there are more to take (1 or 0)
     *   rows 4 + slot, 0 <= slot < h: the 1-norm of the change of P in a step */
    kiln_matrix *S;
    const kiln_matrix *teleport; /* n x 1 (for each column) or n x k; NULL = 1/n throughout */
    const kiln_matrix *dangling; /* where mass goes: the same */
    kiln_layout layout;          /* of the links, in steps; 0 = the one that is predicted to be the fastest */
} kiln_ranks;

/* Before the first step: factor, C = D^-1 P, and S but for the goals. Cost: one pass over A's row starts, and
 * values if weighted. Determinism, errors: as kiln_ranks_step's. */
KILN_API kiln_status kiln_ranks_begin(const kiln_ranks *ranks);

/* Steps number first, first + 1, ... (`count` of them, at most h; the first one after begin is 0): P becomes
 * the right-hand side above, the change in step i goes to slot i mod h. Once all k columns of a step have
 * changed by no more than their goals the rest is not done; a goal below 0 is never met. Everything stays on
 * the device, so that many steps are queued without waiting.
 * Cost: a step reads 4 bytes a link (8 or 12 weighted), gathers k elements for each, reads three and writes
 * two more a vertex and column; GPUs: so for every 8 columns, in balanced shares for each. An A in a file, or
 * too large beside the ranks, goes by as it is in panels of rows, with sums over links in the ranks' type.
 * Determinism: run to run, on the CPU for any number of threads. Mass and change add up in double.
 * Errors: ERR_ARGUMENT (shapes, types, devices, aliasing, layout), ERR_LIMIT (2^31 links or more on a GPU),
 * memory and device errors.
 * Source: Page, Brin, Motwani and Winograd, 1998; Gunarathne, Salpitikorala, Chauhan and Fox, 2011, whose
 * update is made where the links have been gathered, and whose balanced layout is derived anew
 * (docs/pagerank.md). */
KILN_API kiln_status kiln_ranks_step(const kiln_ranks *ranks, int64_t first, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
