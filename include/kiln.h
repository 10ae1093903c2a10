/* Kiln: machine learning on large sparse and dense data, limited by memory bandwidth and nothing else.
 *
 * This is the only public header. Reading order: status, device, matrix, operations, data and models,
 * algorithms. Each operation's comment gives its formula, shapes, errors, cost, determinism and source.
 *
 * Conventions
 *   - The destination comes first, then the operands in formula order. Matrices are upper case.
 *   - Dense matrices are row-major; sparse matrices are CSR. A vector is a matrix with one column.
 *   - A zeroed options struct means the defaults; NULL stands for a zeroed one.
 *   - Every call returns a kiln_status; on failure the out-parameters are untouched, and
 *     kiln_last_error() tells the calling thread what went wrong and where.
 *   - A question about NULL (the rows of no matrix, the text of no model) is answered with 0, NULL or "".
 *   - One thread at a time uses a device and its matrices; different devices are independent.
 *   - The library never prints, exits, aborts, or installs signal handlers. Of the environment it reads
 *     KILN_ISA (scalar, avx2 or avx512: the device "cpu" uses no better instructions), KILN_NUM_THREADS,
 *     KILN_CACHE_DIR, KILN_KERNEL_DIR, KILN_BLAS, KILN_NVRTC_PATH, and the standard OMP_NUM_THREADS,
 *     XDG_CACHE_HOME, HOME, CUDA_HOME, CUDA_PATH, CONDA_PREFIX, VIRTUAL_ENV.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

/* The version of the library that is running, e.g. "0.1.0". */
KILN_API const char *kiln_version(void);

/* ---------------------------------------------------------------------------------------- status */

/* One list of codes, names and texts. The numbers are stable. */
#define KILN_STATUS_LIST(X)                                                                                  \
    X(OK, 0, "success")                                                                                      \
    X(ERR_INTERNAL, 1, "internal error")                                                                     \
    X(ERR_ARGUMENT, 2, "invalid argument")                                                                   \
    X(ERR_PARSE, 3, "malformed input")                                                                       \
    X(ERR_DATA, 4, "unusable data")                                                                          \
    X(ERR_NOMEM, 5, "out of host memory")                                                                    \
    X(ERR_DEVICE_NOMEM, 6, "out of device memory")                                                           \
    X(ERR_DEVICE, 7, "device not available")                                                                 \
    X(ERR_DEVICE_LOST, 8, "device lost")                                                                     \
    X(ERR_BUILD, 9, "kernel build failed")                                                                   \
    X(ERR_IO, 10, "input or output failed")                                                                  \
    X(ERR_LIMIT, 11, "limit exceeded")                                                                       \
    X(ERR_UNSUPPORTED, 12, "not supported")                                                                  \
    X(ERR_CANCELLED, 13, "cancelled")                                                                        \
    X(ERR_MODEL, 14, "unusable model")

typedef enum kiln_status {
#define KILN_STATUS_ENUM(name, code, text) KILN_##name = code,
    KILN_STATUS_LIST(KILN_STATUS_ENUM)
#undef KILN_STATUS_ENUM
} kiln_status;

/* "KILN_ERR_PARSE" and "malformed input"; for an unknown code "KILN_ERR_UNKNOWN" and "unknown status". */
KILN_API const char *kiln_status_name(kiln_status status);
KILN_API const char *kiln_status_text(kiln_status status);

/* What went wrong last on this thread. Valid until the next failing call on the thread. Where the message names the call,
 * it begins with it ("kiln_glm: ..."); message and hint write an option as its field (kiln_glm_options.l2). */
typedef struct kiln_error {
    kiln_status status;
    const char *message;   /* one sentence: what, the value, why; never NULL */
    const char *hint;      /* what to do about it; "" if nothing is known */
    const char *file;      /* input file; "" if the error has no place */
    int64_t line, column;  /* counted from 1; 0 = unknown */
    int64_t offset;        /* bytes from the start of the (decompressed) input; -1 = unknown */
    const char *subsystem; /* "" or who reported a native code: "cuda", "nvrtc", "opencl", "errno" */
    int native_code;       /* that subsystem's own number, 0 if none */
} kiln_error;
KILN_API const kiln_error *kiln_last_error(void);

/* ---------------------------------------------------------------------- progress and cancellation */

typedef struct kiln_progress {
    const char *phase;   /* "read", "solve", "write" */
    int64_t done, total; /* bytes for "read" and "write", iterations for "solve"; total 0 = unknown */
    double objective;    /* "solve": current objective; NaN if not known */
    double residual;     /* "solve": relative residual, the quantity the tolerance is compared with */
    double seconds;      /* since the phase began */
    int64_t bytes;       /* bytes of X read so far in this phase, for a rate */
} kiln_progress;

/* Called now and then from the calling thread (at most every few milliseconds of work and at least once an
 * iteration). Return nonzero to stop: algorithms then keep their result and report KILN_STOP_CANCELLED,
 * readers and writers return KILN_ERR_CANCELLED and leave nothing behind. */
typedef struct kiln_control {
    int (*progress)(void *user, const kiln_progress *now);
    void *user;
} kiln_control;

/* ---------------------------------------------------------------------------------------- device */

typedef struct kiln_device kiln_device;

typedef struct kiln_device_options {
    /* 0 = KILN_NUM_THREADS, which has to be in [1, 4096], else OMP_NUM_THREADS, else min(affinity, cgroup quota) */
    int threads;
    int64_t memory; /* byte budget of the device; 0 = what the device has */
    /* Every operation gives the same bits from run to run, and on the CPU with any number of threads. Default: where an
     * operation's comment says so. */
    int deterministic;
    /* Told about choices a user would wonder at: which device "auto" took and why, "building kernel ...". */
    void (*message)(void *user, const char *text);
    void *message_user; /* of both functions */
    /* Seconds that a process takes to end after it has used the device of that name, from when it begins to close it;
     * negative: cannot be told. kiln_device_choose asks once for each GPU and driver, while it holds none: no process can time
     * its own end, so that another one must be run for it. NULL: a process's end is not counted. */
    double (*process_end)(void *user, const char *device);
} kiln_device_options;

/* Opens a device. name: "auto" takes the best that works (CUDA GPU, OpenCL GPU, CPU) and says which through
 * options->message; "cpu"; "cuda" or "cuda:1"; "opencl" or "opencl:P.D" (platform P, device D).
 * An explicit name never falls back: KILN_ERR_DEVICE says what is missing and how to get it. */
KILN_API kiln_status kiln_device_open(kiln_device **device, const char *name,
                                      const kiln_device_options *options);
/* Frees the device; every matrix on it must have been freed before. NULL is allowed. */
KILN_API void kiln_device_close(kiln_device *device);

typedef struct kiln_device_info {
    char name[32];         /* "cpu", "cuda:0", "opencl:0.0" */
    char description[160]; /* e.g. "NVIDIA H200, driver 580.159, NVRTC 13.0" */
    int usable;            /* 1 if kiln_device_open would succeed as far as can be told without opening */
    char reason[256];      /* why not, if not usable */
    char hint[256];        /* how to mend that */
    int64_t memory;        /* bytes of the device's memory */
    int threads;           /* cpu: threads in use; GPU: compute units */
    int is_gpu;            /* 1 for a GPU, 0 for a processor (PoCL's device is one) */
    int has_f64;           /* 1 if its kernels can compute in f64 */
} kiln_device_info;
KILN_API kiln_status kiln_device_get_info(const kiln_device *device, kiln_device_info *info);
/* All devices this machine offers, usable or not, best first. Free with kiln_free. */
KILN_API kiln_status kiln_device_list(kiln_device_info **infos, int64_t *count);

/* What the device has done since it was opened. */
typedef struct kiln_device_statistics {
    int64_t bytes_up, bytes_down; /* host to device and back; 0 on the CPU, where nothing moves */
    double transfer_seconds;      /* spent in those copies */
    double build_seconds;         /* spent building kernels or loading them from the cache */
    int64_t kernels_built, kernels_cached;
    int64_t memory_used, memory_peak; /* bytes of matrices and work space */
    int64_t evictions;                /* matrices that made room for others */
    /* Passes over matrices too large for the device: panels of rows moved while the one before was computed with, their
     * bytes (contained in bytes_up), the passes' time, and as much of it as was spent waiting for panels to arrive */
    int64_t panels, panel_bytes;
    double panel_seconds, panel_wait_seconds;
    /* Spent deriving from sparse matrices what makes passes over them fast, and the part of memory_used that it takes, work
     * space not counted. */
    double layout_seconds;
    int64_t layout_bytes;
} kiln_device_statistics;
KILN_API void kiln_device_get_statistics(const kiln_device *device, kiln_device_statistics *statistics);

/* Waits for all work on the device; reports errors of work queued earlier. */
KILN_API kiln_status kiln_device_sync(kiln_device *device);

/* What was looked for on this machine: one row each for driver, NVRTC, OpenCL, BLAS, MPI, NCCL, caches. */
typedef struct kiln_probe {
    char what[48]; /* "CUDA driver" */
    int found;
    char detail[256]; /* version and path, or why not */
    char hint[256];   /* the command that would mend it; "" if none */
} kiln_probe;
KILN_API kiln_status kiln_probe_machine(kiln_probe **probes, int64_t *count); /* free with kiln_free */

/* Read bandwidth of the device in bytes per second, measured over a buffer far larger than its caches
 * (some tenths of a second; one or two where a processor's caches are of hundreds of MB). Kept in the machine's profile in
 * the cache folder; remeasure = 1 ignores a kept figure. */
KILN_API kiln_status kiln_device_bandwidth(double *bytes_per_second, kiln_device *device, int remeasure);

/* Frees what a call documented as "free with kiln_free" handed out. NULL is allowed. */
KILN_API void kiln_free(void *memory);

/* ---------------------------------------------------------------------------------------- matrix */

typedef struct kiln_matrix kiln_matrix;

typedef enum kiln_type { KILN_TYPE_DEFAULT = 0, KILN_F32 = 1, KILN_F64 = 2 } kiln_type;
typedef enum kiln_format { KILN_DENSE = 1, KILN_CSR = 2 } kiln_format;

/* A dense rows x cols matrix, row-major, copied from values; zeros if values is NULL.
 * cols < 2^31. Errors: ERR_ARGUMENT (negative or overflowing size), ERR_NOMEM, ERR_DEVICE_NOMEM. */
KILN_API kiln_status kiln_matrix_dense(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                       int64_t cols, const void *values);
/* A sparse matrix in compressed sparse rows, copied. row_start has rows+1 entries, begins with 0 and does not
 * decrease; col holds column numbers in [0, cols), in any order, at most once in a row (else ERR_DATA).
 * values may be NULL: then every stored entry is 1. Empty rows and nnz = 0 are fine. */
KILN_API kiln_status kiln_matrix_csr(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                                     int64_t cols, const int64_t *row_start, const int32_t *col,
                                     const void *values);
/* B = A on another device and/or of another type. type KILN_TYPE_DEFAULT keeps A's. */
KILN_API kiln_status kiln_matrix_copy(kiln_matrix **B, kiln_device *device, kiln_type type,
                                      const kiln_matrix *A);
KILN_API void kiln_matrix_free(kiln_matrix *A); /* NULL is allowed */

KILN_API int64_t kiln_matrix_rows(const kiln_matrix *A);
KILN_API int64_t kiln_matrix_cols(const kiln_matrix *A);
KILN_API int64_t kiln_matrix_nnz(const kiln_matrix *A); /* stored entries; rows*cols if dense */
KILN_API kiln_type kiln_matrix_type(const kiln_matrix *A);
KILN_API kiln_format kiln_matrix_format(const kiln_matrix *A);
KILN_API kiln_device *kiln_matrix_device(const kiln_matrix *A);

/* Copies the values of a dense matrix out (get) or in (set), rows*cols elements of its type. */
KILN_API kiln_status kiln_matrix_get(void *values, const kiln_matrix *A);
KILN_API kiln_status kiln_matrix_set(kiln_matrix *A, const void *values);
/* Copies the three arrays of a CSR matrix out; any of them may be NULL. */
KILN_API kiln_status kiln_matrix_get_csr(int64_t *row_start, int32_t *col, void *values,
                                         const kiln_matrix *A);

/* ------------------------------------------------------------------------------------ operations
 * All operands live on one device and have one type. Sums run in the matrix's type unless said otherwise.
 * Determinism: on one machine, device and thread count every operation returns the same bits from run to
 * run, except where a comment says "atomics".  */

/* w = alpha * X^T (v .* (X y)) + beta * z, with X read once.
 *   X m x n, dense or CSR; y n x k; w n x k, 1 <= k <= 65536; v m x 1 (applied to each column), m x k, or NULL
 *   (ones); z n x k or NULL (then beta is ignored). beta = 0: z is not read, NaN in it does not matter.
 *   w may be z; w must not be y. m = 0 or nnz = 0 gives w = beta*z. Rows with v_i = 0 may be left out: NaN and infinity in
 *   them need not show.
 * Cost: 4*nnz*k flops; one pass over X. CPU: work space of up to 128 copies of w (one a thread where these are more than
 * 1 GB). The second pass of one column over a sparse X with more than 262,144 columns and 2^20 entries copies X into tiles,
 * which are kept with it, unless a few columns hold most entries; a deterministic device does so where y takes more than
 * 1 MB, also where a few columns do, and in the first pass. A GPU's second pass over a sparse X of 2^20 entries or more whose w
 * does not fit on chip copies it, too: into tiles where the cache does not hold y and w either, or, for one column of y, into
 * strips where it does and no columns are popular (kiln_device_statistics.layout_bytes; at most 1.2 times X). GPUs: one pass
 * per 4 to 8 columns of y, as the launch model chooses; over a dense X of more than some 20,000 columns one per 1 or 2, but with
 * CUDA from compute capability 9.0 on.
 * Dense rows too wide for a group's registers are shared by clusters of groups (CUDA from compute capability 9.0 on: to some
 * 200,000 f64 or 400,000 f32 columns) or by teams of groups that exchange their sums through the second cache level (there for
 * several columns of y; and on NVIDIA's GPUs through OpenCL, to some 114,000 f64 or 229,000 f32 columns); beyond,
 * and elsewhere beyond some 8,192, they are read a second time, from the cache as far as they fit there. A team's groups
 * wait for each other: through OpenCL, which cannot start them together, two devices opened on one GPU and used at the same time
 * can hold each other up for ever. With CUDA they take turns.
 * Determinism: GPU CSR uses atomics. Dense, and the CPU, run to run; tiles add up in another order than rows.
 * Errors: ERR_ARGUMENT (shapes, types, devices, aliasing), ERR_NOMEM, ERR_DEVICE_NOMEM, device errors.
 * Source: Ashari et al., PPoPP 2015, equation 1 and algorithms 1-3. */
KILN_API kiln_status kiln_mmchain(kiln_matrix *w, double alpha, const kiln_matrix *X, const kiln_matrix *v,
                                  const kiln_matrix *y, double beta, const kiln_matrix *z);

typedef enum kiln_transpose { KILN_PLAIN = 0, KILN_TRANSPOSED = 1 } kiln_transpose;

/* Y = alpha * op(A) B + beta * Z, op(A) = A or A^T.
 *   A m x n, dense or CSR; B n x k (m x k transposed); Y, Z m x k (n x k transposed); 1 <= k <= 65536;
 *   Z NULL or beta = 0: not read. Y may be Z; Y must not be B.
 * Determinism: CSR on GPUs uses atomics: transposed, and plain where passes over A have made a copy in strips or tiles.
 * Source: as mmchain. */
KILN_API kiln_status kiln_multiply(kiln_matrix *Y, double alpha, kiln_transpose op, const kiln_matrix *A,
                                   const kiln_matrix *B, double beta, const kiln_matrix *Z);

/* ---- losses of linear models: the pattern with a map of its own in the middle ---- */

/* What a row with target y adds to the objective, as a function of its linear predictor eta = x.w + b + offset. */
typedef enum kiln_loss_kind {
    KILN_LOSS_SQUARED = 1,         /* (eta - y)^2 / 2 */
    KILN_LOSS_LOGISTIC = 2,        /* log(1 + e^eta) - y eta; y in [0, 1] */
    KILN_LOSS_SOFTMAX = 3,         /* log(sum_c e^eta_c) - eta_y; y the number of the class, 0 to k-1 */
    KILN_LOSS_SQUARED_HINGE = 4,   /* max(0, 1 - sign * eta)^2 / 2; sign is 1 where y > 0, else -1 */
    KILN_LOSS_SQUARED_EPSILON = 5, /* max(0, |eta - y| - parameter)^2 / 2 */
    /* Minus the log-likelihood of family and link, up to terms without eta: (mu - y)^2 / 2; mu - y log mu (Poisson);
     * y/mu + log mu (gamma); y/(2 mu^2) - 1/mu (inverse Gaussian); -y log mu - (1-y) log(1-mu) (binomial);
     * mu^(2-p)/(2-p) - y mu^(1-p)/(1-p) (Tweedie); (y + 1/a) log(1 + a mu) - y log mu (negative binomial) */
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
        7 /* variance mu + alpha mu^2, alpha > 0 = the loss's parameter, given, not estimated */
} kiln_family;

/* Where a number must lie: least <= x <= most, but least < x if `open`. */
typedef struct kiln_range {
    double least, most;
    int open;
    const char *hint; /* what to do about a number outside; NULL = no advice */
} kiln_range;
/* The y that a family has a place for; parameter: Tweedie's variance power. */
KILN_API kiln_range kiln_family_range(kiln_family family, double parameter);

typedef enum kiln_link {
    KILN_LINK_DEFAULT =
        0, /* the family's canonical link; log for gamma's, Tweedie's and the negative binomial's */
    /* These and POWER want eta > 0, except under the Gaussian family: IDENTITY any, INVERSE any but 0. LOG takes any eta;
     * the binomial family also wants mu < 1. */
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

typedef struct kiln_loss {
    kiln_loss_kind kind;
    kiln_family family; /* KILN_LOSS_GLM, as link */
    kiln_link link;
    double parameter;     /* the epsilon of SQUARED_EPSILON; Tweedie's p; the negative binomial's alpha */
    double link_power;    /* KILN_LINK_POWER */
    const kiln_matrix *y; /* m x 1 */
    const kiln_matrix *weights; /* m x 1, the s_i; NULL = ones */
    const kiln_matrix *offset;  /* m x 1, known part of eta; NULL = zeros. Not with SOFTMAX */
} kiln_loss;

/* Value and gradient of F(W, b) = sum_i s_i loss(y_i, eta_i), eta = X W + 1 b + offset, in one pass over X:
 *   *value = F;  G = X^T g (n x k);  gb = 1^T g (1 x k);  g = s .* d loss / d eta;
 *   C, what kiln_loss_hessian needs of this point: m x 1, s .* the curvature (for a GLM the expected one, but that of the
 *   loss for gamma, Tweedie and negative binomial under a log link, where it is positive); for SOFTMAX m x k, the
 *   probabilities.
 * W n x k, k = 1 but for SOFTMAX (2 <= k <= 65536); b 1 x k or NULL (zeros); gb and C may be NULL. A point out of the
 * loss's range gives *value = infinity, and G, gb and C are of no use.
 * Cost: 4*nnz*k flops, one pass over X (GPUs: for k > 8 two products per 8 columns, and m x k of work space). Sums of
 * *value in double.
 * Determinism: as mmchain. Errors: as mmchain; ERR_ARGUMENT for a family or link out of range. */
KILN_API kiln_status kiln_loss_gradient(double *value, kiln_matrix *G, kiln_matrix *gb, kiln_matrix *C,
                                        const kiln_loss *loss, const kiln_matrix *X, const kiln_matrix *W,
                                        const kiln_matrix *b);

/* The Hessian of F at the point where C was computed, times (P, pb), in one pass over X:
 *   Q = X^T T + beta Z,  qb = 1^T T,  T = C .* (X P + 1 pb); for SOFTMAX, row by row,
 *   t = s (c .* (q - sum_j c_j q_j)), q = x P + pb.
 * P, Q, Z n x k; pb, qb 1 x k; pb NULL counts as zeros, qb NULL is not computed, Z as in mmchain.
 * SOFTMAX reads the loss's kind and weights. Of any other loss only the kind is read, C is m x 1 or NULL (ones), and the k
 * columns of P, 1 <= k <= 65536, are k products with one Hessian: least squares with several targets, for instance.
 * Cost, determinism, errors: as kiln_loss_gradient. */
KILN_API kiln_status kiln_loss_hessian(kiln_matrix *Q, kiln_matrix *qb, const kiln_loss *loss,
                                       const kiln_matrix *C, const kiln_matrix *X, const kiln_matrix *P,
                                       const kiln_matrix *pb, double beta, const kiln_matrix *Z);

/* The mean response at Eta = X W + 1 b + offset (m x k), element by element, row by row for SOFTMAX: eta itself
 * (SQUARED, SQUARED_HINGE, SQUARED_EPSILON), the probability of class 1 (LOGISTIC) or of each class (SOFTMAX), the
 * inverse link (GLM; NaN or infinite where eta is out of the link's range). Only kind, family, link and their parameters
 * are read. M may be Eta. */
KILN_API kiln_status kiln_loss_mean(kiln_matrix *M, const kiln_loss *loss, const kiln_matrix *Eta);

/* What a generalised linear model is judged by, row by row at Eta = X w + 1 b + offset (m x 1). D m x 3, with s the weight:
 *   s d(y, mu), the deviance's part: twice what the row's log-likelihood lacks to its largest value, that at mu = y;
 *   s (y - mu)^2 / V(mu), Pearson's;
 *   what minus the row's log-likelihood has beyond its loss: terms in y and s alone, for dispersion 1. Gaussian
 *   -log(s)/2, Poisson s log y!, gamma s log y, inverse Gaussian 3/2 s log y, binomial minus the log of s over s y,
 *   negative binomial -s log(Gamma(y + 1/alpha) alpha^y / (y! Gamma(1/alpha))), Tweedie NaN (no closed form).
 * Rows of weight 0 give zeros. The loss's offset is not read. Errors: as mmchain; ERR_ARGUMENT for other losses. */
KILN_API kiln_status kiln_loss_deviance(kiln_matrix *D, const kiln_loss *loss, const kiln_matrix *Eta);

/* d = diag(X^T diag(v) X), that is d_j = sum_i v_i * x_ij^2.   d n x 1; v m x 1 or NULL (ones).
 * The Jacobi preconditioner of mmchain and, with column means, the column variances.
 * Determinism: as multiply. */
KILN_API kiln_status kiln_gram_diagonal(kiln_matrix *d, const kiln_matrix *X, const kiln_matrix *v);

/* The whole matrix, for an X of few columns:  G = (X - 1 c^T)^T diag(v) (X - 1 c^T),  g = (X - 1 c^T)^T v.
 *   G n x n, dense, symmetric to the bit; g n x 1 or NULL; v m x 1 or NULL (ones); c n x 1 or NULL (zeros): columns about
 *   their means without a centred X. Entries must be finite, or G is of no use. Results must not be operands.
 * Cost: on the CPU m n^2 flops dense, nnz^2 / m sparse, one pass over X, work space of up to 64 n^2 doubles, but 128 MB
 * unless one n^2 is more. On GPUs, and where X streams, a pass over X for every 64 columns.
 * Sums in double on the CPU, where c is taken off after them if X is sparse: a column whose mean is 1e4 times its spread
 * then loses 8 of 16 digits. Determinism: on the CPU for any number of threads; on GPUs as mmchain.
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
    KILN_MAP_EXP = 5         /* e^x */
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

/* result[j] = sum_i X_ij * Y_ij for each of the k columns; accumulated in double. X r x k; Y r x k or r x 1
 * (used for each column). */
KILN_API kiln_status kiln_dot(double *result, const kiln_matrix *X, const kiln_matrix *Y);

typedef enum kiln_norm_kind { KILN_NORM_1 = 1, KILN_NORM_2 = 2, KILN_NORM_MAX = 3 } kiln_norm_kind;
/* result[j] = the norm of column j: sum |x|, sqrt(sum x^2), max |x|. Scaled, so that 1e200 in f64 does not
 * overflow; NaN anywhere in a column makes its norm NaN. */
KILN_API kiln_status kiln_norm(double *result, const kiln_matrix *X, kiln_norm_kind kind);

/* ---- conjugate gradient ---- */

/* What k independent, preconditioned conjugate gradient recurrences for H E = G work on: H = A + L, L a diagonal, and
 * A = (X - 1 mean^T)^T diag(weights) (X - 1 mean^T). Q holds L P when a pass over X adds A P to it. What rounding leaves of the
 * sums of centred rows is not to be magnified by the means: the pass returns these sums, and mean sums is taken off Q. */
typedef struct kiln_cg {
    /* (5 + 2 h) x k, h >= 1, of type f64 (f32 on a device without f64: kiln_device_info.has_f64): the scalars,
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

/* Before the first pass: E = 0, rho = G . (inverse .* G), P = inverse .* G, or 0 for columns that are not active; Q = L P. The
 * caller has filled G and rows 1 to 3 of S. Cost, determinism and errors as kiln_cg_step's. */
KILN_API kiln_status kiln_cg_begin(const kiln_cg *cg);

/* Q += A P; sums and curvature on the way, in one pass over X. weights m x 1 or NULL (ones).
 * Cost, determinism, errors: as mmchain. */
KILN_API kiln_status kiln_cg_pass(const kiln_cg *cg, const kiln_matrix *X, const kiln_matrix *weights);

/* The vector work of a step, column by column, after a pass:
 *   alpha = rho / (curvature + P . L P);  E += alpha P;  G -= alpha (Q - mean sums);  rho = G . (inverse .* G);
 *   P = inverse .* G + beta P, beta the ratio of the new rho to the old;  Q = L P, for the next pass to add to.
 * The scalars stay on the device, so that whole iterations can be queued without waiting. A column that is not active keeps
 * E and G and gets P = 0; a curvature that is not positive, or a number that is not finite, ends a column before the
 * step. Cost: reads and writes 9 n k elements. Determinism: run to run.
 * Errors: ERR_ARGUMENT (shapes, types, aliasing), device errors. */
KILN_API kiln_status kiln_cg_step(const kiln_cg *cg, int64_t slot);

/* ------------------------------------------------------------------------------------------ choosing
 * Where work should run, and why. */

/* Passes over a matrix X with a little work on vectors between them, as iterative algorithms do. */
typedef struct kiln_work {
    kiln_format format;      /* of X; 0 = dense */
    kiln_type type;          /* 0 = f64 */
    int64_t rows, cols, nnz; /* nnz: a sparse X's */
    int64_t k;               /* columns of y in a pass; 0 = 1 */
    int64_t passes;          /* expected; 0 = 1 */
} kiln_work;

/* What the work is expected to take on a device: seconds = start + move + passes * (pass + overhead). */
typedef struct kiln_estimate {
    char device[32], description[160];
    int chosen;
    int considered; /* 0: the rest is zero, and `why` says why the device was left out */
    int measured; /* 0: from pessimistic figures that any such device reaches; 1: from this machine's profile */
    int streamed;          /* X is larger than the device's memory: every pass moves it again */
    double bytes;          /* of X */
    double read, up, down; /* bytes a second of the device's memory, to it and from it (0: nothing moves) */
    /* opening the device and loading its kernels, if it is not open yet, and the end of the process that used it */
    double start_seconds;
    double move_seconds;                   /* X to the device */
    double pass_seconds, overhead_seconds; /* in each pass: memory; launches, waiting and vectors */
    double seconds;                        /* all told */
    char why[160];
} kiln_estimate;

/* The device on which the work is expected to end first: `host`, an open "cpu" device where the data lie, or the best
 * GPU, which is opened with host's options. *estimates has a row for each device that came into question (free with
 * kiln_free). The figures are measured once and kept in the machine's profile in the cache folder. Work so small that
 * merely starting a GPU would take longer goes to the host without looking for one, unless `thorough`, which measures
 * what there is. No GPU is no error. */
KILN_API kiln_status kiln_device_choose(kiln_device **device, kiln_estimate **estimates, int64_t *count,
                                        kiln_device *host, const kiln_work *work, int thorough);

/* One way for a device to go about mmchain: the launch parameters of the fused-kernels paper, its section 3.3. */
typedef struct kiln_plan {
    int64_t number;     /* in the list that it came in */
    int chosen;         /* kiln_mmchain takes this one */
    char variant[32];   /* of the kernel; on the CPU "cpu" and the instruction set */
    int vector, group;  /* VS, BS: threads that share a row; threads in a work-group, on the CPU in all */
    int load, rows;     /* TL: elements of a row that a thread holds; rows a step; 0 on the CPU */
    int columns;        /* of y, taken in one pass */
    int cluster;        /* work-groups that share a row; 0 where rows do not go to groups */
    int stages;         /* tiles of X, or pieces of tiles, on their way; 0 = loads go straight to registers */
    int shared;         /* elements of w in local memory; 0 = none */
    int64_t coarsening; /* C: rows that a vector goes through */
    int64_t groups;     /* work-groups launched */
    double occupancy;   /* threads that a compute unit holds at once, of those that it can */
    double bytes;       /* to and from memory */
    double atomics;     /* on memory */
    double seconds;     /* predicted */
    char limit[48];     /* what bounds it, in words */
} kiln_plan;

/* The plans that the device has for work->k columns of y (v of one column) and an X of this shape, of which no more is
 * needed. Free with kiln_free. ERR_ARGUMENT where X has no entries. */
KILN_API kiln_status kiln_mmchain_plans(kiln_plan **plans, int64_t *count, kiln_device *device,
                                        const kiln_work *work);
/* w = X^T (v .* (X y)) with a plan from the list for X's shape; v may be NULL. For measuring plans against each other. Where X has
 * been copied into strips (limit: "sums of strips"), there is one way only, and all plans take the same time. */
KILN_API kiln_status kiln_mmchain_with(const kiln_plan *plan, kiln_matrix *w, const kiln_matrix *X,
                                       const kiln_matrix *v, const kiln_matrix *y);

/* ------------------------------------------------------------------------------- data on files */

typedef enum kiln_file_format {
    /* by content and name: .svm .libsvm .mtx .csv .tsv .npy .npz .edges .txt, each also with .gz or .zst */
    KILN_FILE_AUTO = 0,
    KILN_FILE_LIBSVM = 1,
    KILN_FILE_MATRIX_MARKET = 2,
    KILN_FILE_CSV = 3,
    KILN_FILE_NPY = 4,
    KILN_FILE_NPZ = 5, /* a CSR matrix as scipy.sparse.save_npz writes it */
    KILN_FILE_EDGES =
        6 /* a graph: "from to" or "from to weight" a line, any names; X is square, X_ij the link i to j */
} kiln_file_format;

typedef struct kiln_data kiln_data;   /* a matrix X, targets y where the file has them, and names */
typedef struct kiln_model kiln_model; /* named tensors and text, one file */

typedef struct kiln_read_options {
    kiln_file_format format;
    kiln_type type;     /* element type of X and y; default f64 */
    int zero_based;     /* LIBSVM: indices count from 0; default from 1, and an index 0 is an error */
    const char *target; /* CSV: name of the target column, several separated by commas; NULL = none */
    /* CSV: columns that are no features but the rows' weights (none negative) and offset (kiln_data_weights, _offset) */
    const char *weights, *offset;
    const kiln_range
        *target_range; /* targets in text must be numbers in it, else ERR_DATA with the place; NULL = any */
    int text_targets;  /* CSV: a target may be text; y then holds class numbers (kiln_data_class_name) */
    const char *target_file; /* Matrix Market, npy, npz: a file with the targets, one row a row of X */
    int64_t cols;            /* force at least this many columns (LIBSVM files do not say); 0 = as found */
    int allow_nonfinite;     /* accept NaN and infinity; default: an error that names the place */
    int strict;              /* duplicates that a format's rule would merge are errors */
    /* X stays in its file, which must not change meanwhile, and each pass over X reads it from there: X need not fit into
     * memory (its row starts must, if sparse). For an uncompressed .npy of the wanted type by rows, and an .npz with a CSR
     * matrix that was stored, not deflated, columns of 32 bits ascending in each row. A device with room enough for X takes
     * it in. On the CPU only mmchain, multiply, the losses, gram and gram_diagonal take such an X, else ERR_UNSUPPORTED. */
    int map;
    const kiln_model *model; /* encode columns as this model's training data were (CSV categories, columns) */
    int64_t limit; /* bytes after decompression; 0 = no limit but the ratio guard against gz bombs */
    int threads;   /* parsing threads; 0 = the device's */
    kiln_control control;
} kiln_read_options;

/* Reads X (and y) onto the device. path "-" is standard input, read once.
 * One contract for all formats: memory stays proportional to the bytes read, never to a number in a header;
 * malformed input is ERR_PARSE with file, line, column, offset and reason; nothing is left allocated.
 * Rules per format: docs/formats.md. */
KILN_API kiln_status kiln_data_read(kiln_data **data, kiln_device *device, const char *path,
                                    const kiln_read_options *options);
/* Takes over X and y (y may be NULL), which must not be freed by the caller after success. */
KILN_API kiln_status kiln_data_create(kiln_data **data, kiln_matrix *X, kiln_matrix *y);
KILN_API void kiln_data_free(kiln_data *data);
/* Moves all matrices to another device; from the CPU without a second copy in host memory. On failure the data stay where
 * they were. */
KILN_API kiln_status kiln_data_move(kiln_data *data, kiln_device *device);

KILN_API const kiln_matrix *kiln_data_X(const kiln_data *data);
KILN_API const kiln_matrix *kiln_data_y(const kiln_data *data); /* NULL if the file has no targets */
/* The columns that kiln_read_options.weights and .offset named, m x 1; NULL if they named none. */
KILN_API const kiln_matrix *kiln_data_weights(const kiln_data *data);
KILN_API const kiln_matrix *kiln_data_offset(const kiln_data *data);
KILN_API const char *kiln_data_feature_name(const kiln_data *data, int64_t j); /* NULL if unnamed */
KILN_API const char *kiln_data_target_name(const kiln_data *data, int64_t j);  /* NULL if unnamed */
/* The class that target j calls `number`: 0, 1, ... in the order of the names; -1, a class that the model of the reading
 * does not know, has none. NULL if the target is numeric. */
KILN_API const char *kiln_data_class_name(const kiln_data *data, int64_t j, int64_t number);
KILN_API kiln_file_format kiln_data_format(const kiln_data *data);
KILN_API int64_t kiln_data_bytes(const kiln_data *data); /* bytes after decompression */
/* How the columns were encoded, as JSON text (docs/formats.md, "Schema"); "" if there is nothing to say. */
KILN_API const char *kiln_data_schema(const kiln_data *data);

/* Writes atomically (temporary file, fsync, rename, fsync of the folder); format AUTO goes by the name. A
 * name ending in .gz compresses. CSV and LIBSVM print the shortest decimals that read back to the same
 * bits. */
KILN_API kiln_status kiln_data_write(const kiln_data *data, const char *path, kiln_file_format format,
                                     const kiln_control *control);

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

/* What a run did. Zero it before the call (kiln_report report = {0}), free its trace with
 * kiln_report_free. */
typedef struct kiln_report {
    int converged; /* 1 only if the criterion was checked on the returned result and held */
    kiln_stop stopped_by;
    int64_t iterations; /* of the main loop */
    double residual;    /* the criterion's value at the returned result */
    double tolerance;   /* what it was compared with */
    double objective;   /* at the returned result */
    /* weighted sums of squares over all targets: residual; about the means of y, with and without intercept;
     * 1 - rss/tss (NaN if tss = 0) */
    double rss, tss, r2;
    /* kiln_glm: sum_i s_i d(y_i, mu_i), at the result and for the best constant mu (with offset and link as given); the
     * dispersion's estimate, Pearson chi^2 / (m - parameters), 1 where the family fixes it; Akaike's criterion */
    double deviance, null_deviance, dispersion, aic;
    double gap; /* kiln_svm: the relative duality gap, an upper bound of the objective's error; else NaN */
    int64_t passes;        /* over X, all told */
    double seconds;        /* in the solver */
    kiln_trace_row *trace; /* row 0 is the start */
    int64_t trace_count;
} kiln_report;
KILN_API void kiln_report_free(kiln_report *report);

typedef struct kiln_linreg_options {
    double l2;             /* default 0 */
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
    /* 0 = 1, which is C = 1 of LIBLINEAR and scikit-learn, but none where l1 > 0; negative = no such penalty */
    double l2;
    double l1;                                 /* default 0 */
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
    kiln_family family; /* default Gaussian */
    kiln_link link;     /* default the family's */
    double
        parameter; /* Tweedie's variance power; the negative binomial's alpha (not estimated); as in kiln_loss */
    double link_power;                         /* KILN_LINK_POWER */
    double l2;                                 /* default 0 */
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
 * What the report says of the fit: deviance sum_i s_i d(y_i, mu_i) (d as in kiln_loss_deviance); null_deviance, that of the
 * best intercept alone, with the offset; dispersion, 1 for Poisson, binomial and negative binomial, else Pearson's statistic
 * / (rows of weight > 0 - parameters), NaN where that divisor is not positive; aic as R's glm counts it: -2 log-likelihood +
 * 2 parameters, and for Gaussian, gamma and inverse Gaussian the dispersion put at deviance / weights and counted as a
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
 * report->gap = (objective - D) / objective, D the dual's objective at t_i = -s_i d loss / d eta_i, of which either the
 * positive or the negative ones are scaled so that sum t = 0 where there is an intercept: an upper bound of the objective's
 * relative error, at two more passes a problem. NaN where a column is not penalised.
 * Source: as kiln_logreg's; the dual, Chang, Hsieh and Lin, JMLR 9 (2008). */
typedef struct kiln_svm_options {
    int regression;
    double epsilon; /* regression; default 0 */
    double l2;      /* 0 = 0.5, which is C = 1 of LIBLINEAR; negative = none */
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
    double l2, l1;
    int standardize;
} kiln_verify_options;
typedef struct kiln_verification {
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
 * Not converging is not an error. On failure hubs, authorities and the report are untouched.
 * Errors: ERR_ARGUMENT; ERR_DATA (no link with a weight other than 0, a warm start from which no link leads on, negative
 * weights as far as hubs or authorities become negative, NaN or overflow); memory and device errors.
 * Determinism: as mmchain. Source: Kleinberg, Authoritative sources in a hyperlinked environment, JACM 1999; Ashari et
 * al., PPoPP 2015, table 1. */
typedef struct kiln_hits_options {
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
