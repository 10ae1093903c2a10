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

/* --------------------------------------------------------------------------------------------- models */

/* A model file is a safetensors file: tensors (weights "W" n x k, "b" 1 x k) and string metadata
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
/* The model's tensors as arrays for numpy.load, and those of its texts that are lists, such as the names of
 * rows and columns, as JSON in arrays of bytes; without what it keeps of its training data. Written as a
 * whole or not at all.
 * Errors: ERR_ARGUMENT, ERR_IO, ERR_NOMEM. */
KILN_API kiln_status kiln_model_write_npz(const kiln_model *model, const char *path);
KILN_API kiln_status kiln_model_load(kiln_model **model, const char *path);
/* "gaussian", "inverse-gaussian", ...; "default", "logit", "inverse-squared", ...; NULL for an unknown
 * number. */
KILN_API const char *kiln_family_name(kiln_family family);
KILN_API const char *kiln_link_name(kiln_link link);
/* The loss that a model was trained with, without targets, weights and offset: by its algorithm, for glm by
 * its texts "family" and "link" and its tensor "parameters" (1 x 2: kiln_loss.parameter and link_power; svm:
 * epsilon, 0).
 * ERR_MODEL: it has none, or they are unknown. */
KILN_API kiln_status kiln_model_loss(kiln_loss *loss, const kiln_model *model);
/* Finds whether the model's coefficients are a start for training with this loss, of which only kind, family,
 * link and parameters count: X W + b must mean the same in both, which is the target itself (linreg, svm for
 * regression, glm at the identity link), the mean at one and the same link (glm), or what one kind of
 * classifier makes of it (logreg, svm). ERR_MODEL says what the two are; the model is untouched. Shapes and
 * classes are for the caller to compare. */
KILN_API kiln_status kiln_model_check_start(const kiln_model *model, const kiln_loss *loss);
/* The model's prediction for each row of X: a new matrix on X's device.
 *   linreg  X W + b, m x k                 glm  the mean, m x 1, at offset 0
 *   logreg  probabilities, m x K, in the order of the classes (both for two)
 *   svm     decision values X W + b, m x 1 or m x K; regression: the values
 *   lda, gap  mixtures of topics, m x topics       mds  coordinates of new points, m x dimensions
 *   (a model of mds whose text "metric" is there and not "ratio" is refused: ERR_UNSUPPORTED)
 *   svd, pca  coordinates of rows, m x k
 *   als, sfa  ERR_MODEL: kiln_transform and kiln_recommend take them
 *   hits, pagerank  ERR_MODEL: they rank the vertices of one graph
 *   kmeans  m x 2: the number of the nearest centre, and the distance from it (rows scaled to length 1 where
 *           the model's text "geometry" is "spherical")
 * One pass over X. ERR_MODEL if the model's columns and X's differ. */
KILN_API kiln_status kiln_predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X);

/* ----------------------------------------------------------------------------------------- algorithms */

/* One objective for every linear model: sum_i s_i * loss_i + (l2/2) * ||w||^2, intercept not penalised;
 * squared loss is (1/2)(x_i.w + b - y_i)^2. Thus l2 is scikit-learn Ridge's alpha and LIBLINEAR's 1/C. A
 * tolerance of 0 that is given (kiln_option_give) goes on until rounding (KILN_STOP_STALLED) or
 * max_iterations ends it. A warm start gives the solver its starting point and nothing else: conjugate
 * directions, trust region and preconditioner are made anew. kiln_model_check_start says of which models it
 * may be taken. A result that has converged comes back with the same bits (linear models). A run that was
 * broken off and goes on meets the same criterion, at another of the points that meet it: objective and
 * predictions agree to the tolerance, coefficients as far as the problem determines them. In hits and
 * pagerank the start is all of the state: but for the rounding of scaling it to its norm again it goes on as
 * it would have. */

typedef enum kiln_stop {
    KILN_STOP_NONE = 0,
    KILN_STOP_TOLERANCE = 1,  /* the criterion was met: converged */
    KILN_STOP_ITERATIONS = 2, /* max_iterations reached */
    KILN_STOP_STALLED = 3,    /* rounding prevents further progress above the tolerance */
    KILN_STOP_CANCELLED = 4,  /* the progress callback asked to stop */
    KILN_STOP_DIVERGED = 5,   /* a number became NaN or infinite */
    /* kiln_linreg's: converged, though the residual is above the tolerance, as the data's own rounding
     * keeps it there: W and b meet the tolerance exactly for columns that differ from X's by 8 epsilon of
     * their lengths at most. The residual is at most the root of epsilon, and the tolerance at least the
     * default. */
    KILN_STOP_ROUNDING = 6
} kiln_stop;
KILN_API const char *kiln_stop_name(kiln_stop stop); /* "tolerance", "max_iterations", ... */

typedef struct kiln_trace_row {
    int64_t iteration;
    double residual, objective, seconds;
    int64_t inner; /* Newton methods: conjugate gradient iterations in this step; else 0 */
    double radius; /* Newton methods: the trust region's, after this step; else 0 */
    /* on what is held out: root mean squared error of factor models, perplexity of topics; else 0 */
    double test;
} kiln_trace_row;

/* Holds what a run did. Zero it before the call but for its size (kiln_report report = {.size = sizeof
 * report}; a size of 0 is without what stands behind `solver`), free what it holds with kiln_report_free. */
typedef struct kiln_report {
    size_t size;
    int converged; /* 1 only if the criterion was checked on the returned result and held, see
                    * KILN_STOP_ROUNDING */
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
    /* what found the result, of several ways that the algorithm has; a literal; NULL: it has one */
    const char *solver;
    /* Says how far the objective is above the optimum at most, whether or not the run has converged, with
     * what rounding may have made of the objective: docs/results.md has the formulas. INFINITY: there is no
     * bound. */
    double optimality_gap;
    const char *certificate; /* what that follows from: "duality gap", "normal equations"; a literal; NULL: no
                      * bound */
} kiln_report;
/* Frees the trace and the figures. NULL is allowed. */
KILN_API void kiln_report_free(kiln_report *report);
/* For programs that take no result for less than they asked for, as the tool's --strict: TRY(kiln_glm(...,
 * &report)), then this. ERR_LIMIT: the result has not converged, and the message says what ended the run.
 * ERR_CANCELLED: the caller did. Whether a budget was kept, kiln_device_statistics.memory_peak says. */
KILN_API kiln_status kiln_report_check(const kiln_report *report);

/* Returns what else the algorithm has to say of its result, by name; NaN if it does not say that.
 *   linreg  "rss", "tss"     weighted sums of squares over all targets: residual; about the means of y, with
 *                            and without intercept
 *           "r2"             1 - rss/tss; NaN if tss = 0
 *   glm     "deviance"       sum_i s_i d(y_i, mu_i), d as in kiln_loss_deviance
 *           "null_deviance"  that of the best intercept alone, with offset and link as given
 *           "dispersion"     Pearson's statistic / (rows of weight > 0 - parameters), NaN where that divisor
 *                            is not positive; 1 for Poisson, binomial and negative binomial
 *           "aic"            Akaike's criterion, as kiln_glm's comment has it
 *           "parameters", "parameters_at_most"  what it counts, one of them as kiln_glm's comment has it
 *   hits    "eigenvalue_error"  as kiln_hits' comment has it
 *           "weighted"       1: links have weights other than 1, and they count; else 0
 *   pagerank "error_bound", "dangling_mass"  as kiln_pagerank's comment has them; "weighted"  as of hits
 *   logreg, svm "rank"       without a penalty, where columns seemed to depend on each other: as of linreg
 *   svm     "gap"            the relative duality gap, an upper bound of the objective's relative error
 *   kmeans  "clusters"       centres that have rows: fewer than K where X has fewer different rows
 *           "different"      where centres have none: X's different rows of weight above 0, K at most
 *           "relocated"      times that a centre without rows was moved to a row far from its own
 *           "skipped"        with bounds: the share of the distances that the last start did not measure
 *   mds, svd, pca, als, sfa, lda, gap  as their comments have them (kiln/mds.h, kiln/svd.h, kiln/factors.h,
 *   kiln/topics.h) */
KILN_API double kiln_report_figure(const kiln_report *report, const char *name);
/* The name of the i-th figure in the report, in the order above; NULL past the last. */
KILN_API const char *kiln_report_figure_name(const kiln_report *report, int64_t i);
/* Returns the text of warning i = 0, 1, ..., NULL past the last: what users should know of the result before
 * they trust it. *name (may be NULL) is a word that stays the same from
 * release to release; *hint (may be NULL) says what to do, or is "". Both write options
 * as errors do (kiln_error). A run that has not converged gives no warning: `converged` says so.
 *   separated         logreg, glm (binomial), without a penalty: a plane separates the classes,
 *                     coefficients have no optimum
 *   quasi-separated   the same of some rows, while others lie on that plane
 *   zeros             glm (Poisson, negative binomial, Tweedie; log link), without a penalty:
 *                     some rows whose y is 0 go to a mean of 0, which no coefficients give
 *   undecided         logreg, glm, without a penalty, of more than 512 coefficients,
 *                     or where memory is short or rounding decides: which of these holds, if any
 *   one-sided         glm: all y are at one end of what means can be, and the intercept has no optimum
 *   out-of-reach      glm: the link's means do not come near y
 *   counts            glm (Poisson, negative binomial) in f32: rounding makes 1 % of a count's deviance, or
 *                     more, as it does of counts from 1e9 or so on
 *   saturated         logreg, glm (binomial), with a penalty: every row is certain of its class to 1e-6
 *   margins           svm, l2 = 0: every margin is kept, and many coefficients do that
 *   constant          linear models with an intercept, or standardised:
 *                     a column's spread is within 16 units of what its type resolves at its mean. It counts
 *                     as constant: its coefficient is 0 under an
 *                     intercept
 *   rank              linreg, logreg, svm, glm without a penalty: columns depend on each other
 *   clusters          kmeans: fewer different rows than clusters
 *   zero-factors      als, sfa: the penalty leaves nothing of the factors
 *   range             svd: squares of the singular values leave the type's range
 *   connected_components   spectral: the graph has several, or nearly
 *   isolated          spectral: vertices have no links */
KILN_API const char *kiln_report_warning(const kiln_report *report, int64_t i, const char **name,
                                         const char **hint);

/* Hubs and authorities of the directed graph with adjacency matrix A (m x n, dense or CSR; row i links to
 * column j with weight a_ij >= 0): the fixed point of  authorities = A^T hubs,  hubs = A authorities,  each
 * normalised; hubs m x 1, authorities n x 1. The authorities are the eigenvector of A^T A with the largest
 * eigenvalue, found by power iteration, a = A^T (A a) / norm: one mmchain an iteration, and one product more
 * for the hubs. If that is slow because the second eigenvalue is near, LOBPCG goes on, also with one pass an
 * iteration, and the power iteration checks its result. report->residual is the change in the last iteration,
 * which is no end while it still grows, as from a start that hardly has the fixed point in it;
 * report->objective that eigenvalue (||A^T (A a)||, a normalised). In f32, sums over the links of a vertex
 * may lose more than the tolerance: where there are enough vertices for that, the last iterations, mostly one
 * to three, are computed in f64 on a copy of A, 8 bytes a link more and its structure; without room for it,
 * or without f64, KILN_STOP_STALLED. Where components of the graph share the largest eigenvalue (links that
 * are equally many and apart: a disconnected graph, a star beside a like one) the fixed point is not unique,
 * and the start decides which one is returned; from equal entries it is the same one on every device. The
 * nearer the second eigenvalue is, the more iterations are needed. Not converging is not an error. On failure
 * hubs, authorities and the report are untouched. On a GPU up to eight iterations of less than 50 ms in all
 * are queued at once: a stop takes effect after them, and the result is that of the last.
 * Errors: ERR_ARGUMENT; ERR_DATA (no link with a weight other than 0, a warm start from which no link leads
 * on, negative weights as far as hubs or authorities become negative, NaN or overflow); memory and device
 * errors. Determinism: as mmchain. Source: Kleinberg, Authoritative sources in a hyperlinked environment,
 * JACM 1999; Ashari et al., PPoPP 2015, table 1; Knyazev, SIAM J. Sci. Comput. 23, 2001. */
typedef enum kiln_hits_solver {
    KILN_HITS_POWER = 1,
    KILN_HITS_LOBPCG = 2 /* the best vector of each iteration's span; seven vectors of work space */
} kiln_hits_solver;
typedef struct kiln_hits_options {
    size_t size;
    int norm;               /* 1 (default): entries sum to 1; 2: squares do */
    int unweighted;         /* take every stored entry for 1 */
    int warm_start;         /* start from the given authorities; default: all equal */
    double tolerance;       /* on the 1-norm of the change of the authorities; default 1e-10 f64, 1e-5 f32 */
    int64_t max_iterations; /* default 1000 */
    kiln_control control;
    kiln_hits_solver solver; /* default: the power iteration, and LOBPCG from where that is slow */
    uint64_t given;          /* options that are meant though they are 0: kiln_option_give */
} kiln_hits_options;
KILN_API kiln_status kiln_hits(kiln_matrix *hubs, kiln_matrix *authorities, const kiln_matrix *A,
                               const kiln_hits_options *options, kiln_report *report);

/* One iteration again by slow reference code, in long double on the host. Only the options norm and
 * unweighted count. */
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

/* PageRank of the directed graph with adjacency matrix A (n x n, CSR; row i links to column j): for each of
 * the k columns of ranks (n x k, 1 <= k <= 64) the p that adds up to 1 with
 *   p = (1 - damping) t + damping (A^T D^-1 p + m g),
 * t the teleport vector, D the weights of what links from a vertex, m the sum of p over the vertices without
 * links (dangling ones), g where these lead. By power iteration; the k columns share each walk over the
 * links. A link stands once in A: a file's duplicates are one link, whose weights add up. A link of a vertex
 * to itself is a link like any other. A link of weight 0 is none, but unweighted one like the others; a
 * vertex of nothing but such links dangles then. report->residual is the largest 1-norm of a column's change
 * in the last iteration, of ranks that add up to 1: it is not multiplied by n. report->objective, and the
 * figure "error_bound", bound the 1-norm of a column's distance from the fixed point, whether or not the run
 * has converged: (damping * residual + r) / (1 - damping), where r bounds what rounding does to an
 * iteration: some 14 units of the type, 8e-7 in f32. There is no bound, infinity, for a damping of 1. The
 * figure "dangling_mass" is the largest of the columns' m. ranks are scaled at the end, so that each column
 * adds up to 1 but for rounding. Not converging is not an error; KILN_STOP_STALLED: rounding keeps the change
 * above the tolerance, as 1e-6 is too small for f32 and a damping near 1. On failure ranks and the report
 * are untouched. Cost: kiln_ranks_step's for each iteration; on a GPU up to 16 iterations are queued at once
 * while they take less than 0.2 s in all: a stop takes effect after them. A warm start takes ranks, scaled
 * to add up to 1. Determinism: kiln_ranks_step's. Errors: ERR_ARGUMENT; ERR_UNSUPPORTED (A is dense);
 * ERR_DATA (no vertices; weights that are negative, not finite or do not add up; personalize, dangling or a
 * warm start with numbers that are negative or not finite, or a column without a number above 0); ERR_LIMIT
 * (2^31 links or more on a GPU); memory and device errors. Source: Page, Brin, Motwani and Winograd, 1998. */
typedef enum kiln_dangling { KILN_DANGLING_PERSONALIZED = 1, KILN_DANGLING_UNIFORM = 2 } kiln_dangling;
typedef struct kiln_pagerank_options {
    size_t size;
    double damping; /* in (0, 1]; default 0.85; 1: no teleport, and ranks need not be unique */
    int unweighted; /* take every stored entry for 1 */
    const kiln_matrix *personalize; /* t: n x 1 or n x k, scaled to add up to 1; NULL = 1/n throughout */
    kiln_dangling dangling;         /* g: t (default), or 1/n throughout */
    const kiln_matrix
        *dangling_to;       /* g itself, n x 1 or n x k, scaled to add up to 1; NULL = as dangling says */
    int warm_start;         /* start from the given ranks; default: from t */
    double tolerance;       /* on the residual; default 1e-10 f64, 1e-6 f32 */
    int64_t max_iterations; /* default 1000 */
    /* The run takes so many iterations, neither more nor fewer, whatever the change; 0 = until the tolerance
     * is met. They are the criterion then: converged = 1, stopped_by = KILN_STOP_ITERATIONS and tolerance =
     * INFINITY. */
    int64_t iterations;
    kiln_control control;
    kiln_layout layout; /* of the links (kiln_ranks); 0 = the one that is predicted to be the fastest */
    uint64_t given;     /* options that are meant though they are 0: kiln_option_give */
} kiln_pagerank_options;
KILN_API kiln_status kiln_pagerank(kiln_matrix *ranks, const kiln_matrix *A,
                                   const kiln_pagerank_options *options, kiln_report *report);

/* One iteration again by slow reference code, in long double on the host. The options tolerance,
 * max_iterations, iterations and warm_start do not count. */
typedef struct kiln_pagerank_verification {
    size_t size;
    double residual; /* the largest 1-norm of the change that one more iteration would make in a column */
    double sum;      /* of the ranks of the column that is farthest from adding up to 1 */
    double dangling; /* as the figure "dangling_mass" */
} kiln_pagerank_verification;
/* Shapes as kiln_pagerank. Errors: ERR_ARGUMENT, ERR_DATA, ERR_NOMEM. */
KILN_API kiln_status kiln_verify_pagerank(kiln_pagerank_verification *result, const kiln_matrix *A,
                                          const kiln_matrix *ranks, const kiln_pagerank_options *options);
/* K-Means: centres c_1 ... c_K that make  inertia = sum_i s_i min_k ||x_i - c_k||^2  small, by Lloyd's
 * iteration: each centre goes to the weighted mean of the rows nearest to it (kiln_assign). The inertia
 * never rises but for rounding, and ends at one of many local minima, which the start decides: `restarts`
 * keeps the best of several.
 *   centres K x n: the result, and with KILN_INIT_GIVEN the start; X m x n dense or CSR; 1 <= K <= m.
 * A centre without rows takes the row that is furthest from its own centre, which is taken off the sums of
 * the cluster that it leaves. Where X has fewer than K different rows some centres stay without any, and the
 * figure "clusters" says how many have some. With `batch` an iteration takes so many rows, drawn with
 * replacement, and moves a centre by the batch's share in all the weight that it has seen. The trace's
 * residuals are then means over 16 batches of the squared moves; where such a mean is within the tolerance
 * the run ends, as stalled with a warning "batches" unless it has converged by the report's residual. With
 * `patience` it also ends, with a warning "patience" instead, after so many batches without a new least
 * smoothed inertia, S <- S + a (batch's inertia / its rows - S), a = min(1, 2 rows of a batch / (m + 1)), S
 * beginning with the second batch, which is scikit-learn's max_no_improvement. It goes on where it left off
 * from GIVEN centres and their `clusters`. With `spherical` rows are first scaled to
 * length 1 (rows of zeros stay), and so is each mean: inertia and
 * distances are those of the scaled rows, ||x - c||^2 = 2 (1 - cos(x, c)). A copy of X is made (of a sparse
 * X, of its values). report: residual is the sum of the squared distances of the centres from their rows'
 * means, over the mean variance of X's columns; objective the inertia. Both belong to the centres returned,
 * each row of the trace to the centres of that iteration (with batches: the batch's inertia before its
 * move). Not converging is not an error. On failure centres, labels, clusters and the report are untouched,
 * unless a device fails. On a CPU, where kiln_bounds_new has bounds for X, a pass measures only the
 * distances that the pass before leaves in doubt, and corrects its sums; one that says it has converged is
 * made again with fresh sums, and so is the last one of a run that ends before. Labels are those of all
 * distances. X on several devices, batches, GPUs and sparse rows go without. Cost: two passes to check X; 2
 * K, of 3 + ln K centres together, for k-means++, or six for k-means||; one an iteration and one more, and
 * one for labels and clusters. Memory: K x n elements three times, and three times in double on the host,
 * beside kiln_assign's; while starting one element a row (two with weights); where a cluster is empty and
 * for clusters two elements a row; in an iteration on the CPU none a row, or with bounds up to a fifth of X,
 * 16 bytes on GPUs. Determinism: as kiln_assign; the random numbers depend on the seed alone. Errors:
 * ERR_ARGUMENT; ERR_DATA (X without rows or columns, K > m; NaN, infinity or overflow in X, weights or given
 * centres; weights negative or all 0); those of kiln_assign. Source: Lloyd 1982; Arthur and Vassilvitskii,
 * SODA 2007 (k-means++); Bahmani et al., VLDB 2012 (k-means||); Sculley, WWW 2010; Dhillon and Modha,
 * Machine Learning 42 (2001) (spherical). */
typedef enum kiln_init {
    KILN_INIT_PLUS = 1,     /* k-means++ */
    KILN_INIT_PARALLEL = 2, /* k-means|| */
    KILN_INIT_RANDOM = 3,   /* any K rows */
    KILN_INIT_GIVEN = 4     /* the centres as they come */
} kiln_init;

/* Says how the nearest centres are found; the centres that come out differ by roundings of double. 0: BOUNDS
 * where they are there and X has 256 columns or more, or columns times centres come to 65,536 or more; on
 * GPUs where X has 64 MB or more, and there are no weights; else LLOYD. */
typedef enum kiln_kmeans_algorithm {
    KILN_KMEANS_LLOYD = 1, /* all distances and all sums in every pass */
    /* Says what the pass before leaves in doubt (kiln_bounds); ERR_UNSUPPORTED where there are no bounds. */
    KILN_KMEANS_BOUNDS = 2
} kiln_kmeans_algorithm;

typedef struct kiln_kmeans_options {
    size_t size;
    kiln_init init;             /* default k-means++ */
    int64_t restarts;           /* default 1; GIVEN: always 1 */
    int64_t seed;               /* default 0 */
    int64_t batch;              /* rows of a mini-batch; default all */
    int spherical;              /* directions count, not lengths */
    double tolerance;           /* on the residual; default 1e-4 */
    int64_t max_iterations;     /* of each start; default 300 */
    const kiln_matrix *weights; /* m x 1 sample weights >= 0, or NULL for ones */
    kiln_matrix *labels;        /* wanted, m x 1: the number of each row's centre; or NULL */
    /* K x 3: weight, inertia and radius of each cluster, the distance of its furthest row; with mini-batches
     * and GIVEN the weights are also what is gone on from, else they are only a result; or NULL */
    kiln_matrix *clusters;
    kiln_control control;
    kiln_kmeans_algorithm algorithm; /* default: by the shape, as told above */
    uint64_t given;                  /* options that are meant though they are 0: kiln_option_give */
    /* With mini-batches: a start ends after so many in turn that have not lowered the smoothed inertia, see
     * above; 0: the centres' moves alone end it */
    int64_t patience;
} kiln_kmeans_options;
KILN_API kiln_status kiln_kmeans(kiln_matrix *centres, const kiln_matrix *X,
                                 const kiln_kmeans_options *options, kiln_report *report);

/* One pass again by slow reference code, in long double on the host. Only the options weights, spherical,
 * labels and clusters count; labels and clusters are read, not written: they are what is judged. */
typedef struct kiln_kmeans_verification {
    size_t size;
    double inertia, residual;                   /* as kiln_report.objective and residual claim them */
    double inertia_rounding, residual_rounding; /* differences that are no more than rounding */
    /* rows whose label's centre is further than the nearest one by more than rounding; NaN without labels */
    double labels;
    /* the largest difference of a cluster's weight, over the weight of all rows; NaN without clusters */
    double weights;
    /* the same of a cluster's squared distances, over the inertia, and of its radius, a part of that; less
     * than what rounding or rows as near to two centres may make is 0 */
    double squares, radii;
    double clusters; /* centres that are some row's nearest */
} kiln_kmeans_verification;
/* Shapes as kiln_kmeans. Errors: ERR_ARGUMENT, ERR_NOMEM. */
KILN_API kiln_status kiln_verify_kmeans(kiln_kmeans_verification *result, const kiln_matrix *centres,
                                        const kiln_matrix *X, const kiln_kmeans_options *options);

#ifdef __cplusplus
}
#endif
#endif
