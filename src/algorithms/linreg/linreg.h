/* The centred, weighted, penalised normal equations that linreg.c sets up and linreg_solve.c solves:
 *
 *   H w = g0,   H = (X - 1 mu^T)^T S (X - 1 mu^T) + L,   S = diag(s),   L = l2, or l2 * variance_j where
 * standardised.
 *
 * Standardising is a penalty and nothing else: the coefficient of column j scaled to unit variance is sigma_j
 * w_j, so penalising that is penalising w_j by l2 sigma_j^2, and with a Jacobi preconditioner CG does not see
 * scales. */
#ifndef KI_LINREG_H
#define KI_LINREG_H

#include "algorithms/certificate/certificate.h"
#include "algorithms/run/run.h"
#include "algorithms/cholesky.h"

/* A factor of the normal equations, see linreg_direct.c; its memory is an arena's. */
struct ki_direct {
    bool wanted, by_rows;
    double price;  /* predicted, in passes over X; INFINITY: it cannot be had */
    bool usable;   /* once there is U */
    int64_t size;  /* columns of X, or rows */
    double *U;     /* size x size; NULL: not formed yet */
    double *scale; /* what U's rows and columns were divided by; of rows the roots of their weights; 0 for
                * those that depend on others, in U unit rows and columns */
    kiln_matrix *reciprocal; /* n x 1, by_rows: L^-1, 0 for columns left out */
    int64_t taken, left;     /* rows of U with a part in the correction; those that may depend on others */
    double
        *null; /* by columns, left x n: 1 for such a column, less what the others make of it, each times its
               * scale */
};

/* Holds what least squares without a penalty know of X's rank, and make of it: see linreg_rank.c. */
struct ki_rank {
    bool known;     /* all has been looked at, */
    int64_t rank;   /* of the centred, weighted X; -1: it was not determined */
    int64_t count;  /* vectors that X makes nothing of, */
    double *null;   /* count x n, orthonormal in the metric */
    double *metric; /* n: what squares of coefficients count for in the norm */
    double least; /* curvature, over the columns', of what only nearly is nothing; INFINITY: there is none */
    struct ki_direct rows; /* of an X with fewer rows than columns: a factor of X metric^-1 X^T instead */
};

/* One walk over X for all that a factor needs, see linreg_walk.c. */
struct ki_walk {
    int64_t n, size; /* columns of X; with those of y and one more */
    double *A;       /* size x size; NULL: there was none */
    double *origin;  /* size: what the columns are about */
};

/* Holds what all blocks of targets share. */
struct ki_system {
    struct ki_run run; /* its problems are blocks of targets, KI_BLOCK in each */
    const kiln_matrix *X;
    kiln_linreg_options options; /* defaults filled in */
    const kiln_matrix *s;        /* m x 1: the weights, or ones */
    double weight;               /* sum of s */
    double magnification; /* sum_j inverse_j * sum_i s_i x_ij^2: what D^-1 X^T S makes of rounding, squared */
    kiln_matrix *square, *centred; /* n x 1: sums of squares of X's columns about zero, and about the mean */
    kiln_matrix *ones;             /* m x 1 */
    kiln_matrix *mean;             /* n x 1: mu; zeros without an intercept */
    kiln_matrix *penalty;          /* n x 1: the diagonal of L; NULL where that is l2 throughout */
    kiln_matrix
        *inverse; /* n x 1: the preconditioner D^-2, 0 for columns left out (constant or all zero); NULL:
                  * ones */
    struct ki_flats flats;
    kiln_matrix *kept; /* n x 1, for a warm start: 1 for columns that take part, 0 for those left out */
    kiln_matrix
        *right; /* n x 1: X^T S (y - right_about) of the only target, from the walk over the columns; NULL:
                * not known */
    double right_about, right_sum; /* the sum of S (y - right_about) */
    struct ki_direct direct;
    struct ki_walk walk;
    struct ki_rank rank;
    double rss, tss; /* of the targets solved so far, */
    double gap;      /* and how far they are above the optimum at most; INFINITY: no bound */
};

/* Solves for up to KI_BLOCK targets, y m x k: a problem of the run. *W, n x k, holds the start
 * (zeros without warm_start) and is replaced by the result, the arena's, too; b receives the k intercepts. */
kiln_status ki_linreg_block(struct ki_system *system, struct ki_arena *arena, kiln_matrix **W, double *b,
                            const kiln_matrix *y);

/* The solver for X, the options' own or, where they leave it open, the one that its shape makes the cheaper.
 * Of KILN_LINREG_CHOLESKY sets which of its two ways, and the price. */
kiln_linreg_solver ki_linreg_choose(struct ki_direct *direct, const kiln_matrix *X,
                                    const kiln_linreg_options *options);
kiln_status ki_linreg_check_solver(const kiln_linreg_options *options);
const char *ki_direct_name(const struct ki_direct *direct); /* as reports have it */
/* By default. */
static inline double ki_linreg_tolerance(const kiln_matrix *X) {
    return kiln_matrix_type(X) == KILN_F32 ? 1e-5 : 1e-12;
}
int64_t ki_linreg_iterations(const kiln_matrix *X); /* at most, by default */
kiln_status ki_linreg_explain(kiln_solver *choice, const void *options, const kiln_matrix *X,
                              int64_t k); /* a row's `choose` */
/* The walk and the moments from it; neither is there where it is not wanted or cannot be trusted. */
kiln_status ki_walk_measure(struct ki_moments *moments, struct ki_system *system, const kiln_matrix *y);
/* walk->A and, with an intercept, walk->origin (zeros before), which have room, for the rows weighted by v
 * (NULL: ones). */
kiln_status ki_walk_sums(const struct ki_walk *walk, const kiln_matrix *X, const kiln_matrix *y,
                         const kiln_matrix *v, bool intercept);
/* These give an element of the normal equations without the penalty, right-hand sides in columns n and on; a
 * target's sum of squares about the mean; the mean of a column. */
double ki_walk_element(const struct ki_system *system, int64_t i, int64_t j);
double ki_walk_spread(const struct ki_system *system, int64_t target);
double ki_walk_mean(const struct ki_system *system, int64_t j);
double ki_walk_square(const struct ki_system *system, int64_t j); /* a column's sum of squares about zero */
/* Returns whether all columns and targets can be told about their means, and there is weight. */
bool ki_walk_sound(const struct ki_system *system);
/* The factor by columns, or (by_rows) of S^(1/2) X diag(weights)^-1 X^T S^(1/2), weights n x 1, without a
 * penalty; rounding: of its elements beside their rows. What may depend on others is left out. */
kiln_status ki_direct_form(struct ki_system *system, struct ki_direct *direct, struct ki_arena *arena);
kiln_status ki_direct_form_rows(struct ki_system *system, struct ki_direct *direct, const double *weights,
                                double rounding);
/* A remainder of a column or row below that part of it, in its square, is taken for rounding. */
double ki_direct_part(const kiln_matrix *X);
/* Returns whether that is cheap beside conjugate gradient, by rows beside an answer that is not the one of
 * least norm. */
bool ki_direct_cheap(const struct ki_system *system, bool by_rows);
/* Returns whether the factor by columns can be had, whatever it costs, of f64, where least squares ask for it
 * when columns depend on each other. */
bool ki_direct_possible(const struct ki_system *system);
/* A factor that was chosen, and not asked for, is no longer wanted where others have taken the room that it
 * was chosen by. */
void ki_direct_reconsider(struct ki_system *system);
/* A = D (U^T U)^-1 D A for each column of A, D the scale. */
kiln_status ki_direct_solve(kiln_matrix *A, const struct ki_direct *direct);
/* A = (X - 1 mu^T) V, and A = (X - 1 mu^T)^T V, of up to 64 columns. */
kiln_status ki_system_multiply(kiln_matrix *A, const struct ki_system *system, const kiln_matrix *V);
kiln_status ki_system_scatter(kiln_matrix *A, const struct ki_system *system, const kiln_matrix *V);
void ki_rank_undecided(struct ki_rank *rank);
/* The system's rank, what X makes nothing of, and `least`, of the columns that the factor left out; there are
 * some. Uses up the factor's null vectors. See linreg_null.c. */
kiln_status ki_rank_judge(struct ki_system *system, struct ki_direct *direct, struct ki_arena *arena);

#endif
