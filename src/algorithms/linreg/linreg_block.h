/* A block of targets that linreg_solve.c refines and linreg_cg.c corrects, in lock step. */
#ifndef KI_LINREG_BLOCK_H
#define KI_LINREG_BLOCK_H

#include "algorithms/linreg/linreg.h"

/* Iterations queued at once at most, and rows of kiln_cg's state for as many. */
enum { KI_AHEAD = 8, KI_STATE = 5 + 2 * KI_AHEAD };

/* Arrays have an entry a target. The norm is || D^-1 g ||, the quantity the tolerance is about. */
struct ki_block {
    struct ki_system *system;
    int k;
    const kiln_matrix *y; /* m x k */
    kiln_matrix *R, *SR;  /* m x k: y - X W - b, also work space; s times that (R itself without weights) */
    kiln_matrix *W, *E;   /* n x k: the solution so far; the correction a cycle computes, then the former W */
    kiln_matrix *G;       /* n x k: minus the gradient, true after check, by recurrence within a cycle */
    kiln_matrix *P, *Q, *Z;    /* n x k: direction; H P; D^-2 G and work space */
    kiln_matrix *S;            /* KI_STATE x k: the recurrences' scalars */
    kiln_matrix *shift, *sums; /* 1 x k: what centres the rows of X P; their weighted sums */
    kiln_matrix *curvature;    /* 1 x k: P . A P */
    bool gpu;                  /* a device that works while the host goes on */
    double one[KI_BLOCK], b[KI_BLOCK];
    double reference[KI_BLOCK]; /* the norm at w = 0 */
    double norm[KI_BLOCK], rss[KI_BLOCK], objective[KI_BLOCK];
    double zero[KI_BLOCK]; /* the objective at w = 0 */
    double best[KI_BLOCK]; /* the smallest norm, for telling a stall */
    int64_t stalls[KI_BLOCK];
    bool active[KI_BLOCK], diverged;
    bool rounding[KI_BLOCK], judging; /* see linreg_rounding.c; a cycle for that is under way */
    int64_t longest;                  /* iterations of the next cycle at most */
    /* The cycle under way has the objectives where it began, and what they have come down by; who takes part;
     * which iteration of the problem began it. */
    double began[KI_BLOCK], decrease[KI_BLOCK];
    int64_t took_part[KI_BLOCK], begun;
};

#define KI_ENDLESS KI_STATE_MOST /* iterations of a cycle */

/* Conjugate gradient for the correction H E = G of the active targets, from E = 0, or, `resumed`, from where
 * it was; there are some. Ends after t->longest iterations, or max_iterations in all. */
kiln_status ki_block_cycle(struct ki_block *t, bool resumed);

/* The same by the system's factor, in one iteration. */
kiln_status ki_block_correct(struct ki_block *t);

/* The state of a block within a cycle, for checkpoints: between two cycles, and by a factor, it is soon
 * done. */
enum { KI_BLOCK_STATE = 25 };
void ki_block_state(struct ki_state state[KI_BLOCK_STATE], struct ki_block *t);

/* E = the way from W to the solution of least norm; false: that is W, or there is none to be told. Uses R, Z
 * and Q. */
kiln_status ki_block_least_norm(bool *moved, struct ki_block *t);

/* linreg_check.c. Residual, intercept, gradient, norm and objective of W; zero: W is 0, and b what is to be
 * taken off y. Uses R, SR, G and Z. */
kiln_status ki_block_check(struct ki_block *t, bool zero);
kiln_status ki_block_check_zero(struct ki_block *t,
                                double *tss);    /* of W = 0, from the walk over the columns */
kiln_status ki_block_follow(struct ki_block *t); /* the intercept's part of a step E from W on */
/* A -= (column means of A, weighted) on each row; adds them to b if given. */
kiln_status ki_block_centre_rows(const struct ki_block *t, kiln_matrix *A, double *b);

kiln_status ki_block_norm(const struct ki_block *t, double *norm); /* norm_j = || D^-1 G_j ||; may use Z */

/* Finds what rounding of the fitted values may make of each target's objective. */
kiln_status ki_block_blur(const struct ki_block *t, double *blur);

/* The same of what is left of G, the true gradient, when each column's own rounding is taken off. Uses Q and
 * Z. */
kiln_status ki_block_beyond_rounding(struct ki_block *t, double *norm);

/* rounding[j], of the active targets, which rounding has ended: whether w meets the tolerance for data that
 * are rounded a little otherwise, and the residual is at most the root of epsilon. Takes a cycle; uses up G
 * and E. */
kiln_status ki_block_judge_rounding(struct ki_block *t);

/* Adds how far the targets are above the optimum at most to the system's gap, after check, and leaves work
 * space behind: R and SR. */
kiln_status ki_block_certify(struct ki_block *t);

/* A trace row with the given norms, and the user's say. */
kiln_status ki_block_record(struct ki_block *t, const double *norm);
/* The criterion, relative to the gradient at w = 0; 0 where that is 0 and so w = 0 is the solution. */
double ki_block_relative(const struct ki_block *t, const double *norm);
double ki_block_objective(const struct ki_block *t); /* of all targets */
bool ki_block_active(const struct ki_block *t);      /* any of them */

#endif
