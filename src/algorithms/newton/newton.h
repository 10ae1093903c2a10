/* The trust-region Newton engine under logistic regression, generalised linear models and support vector
 * machines.
 *
 *   minimise  F(W, b) = sum_i s_i loss(y_i, eta_i) + 1/2 sum_jc L_j W_jc^2 + sum_jc l1_j |W_jc|,
 *   eta = X W + 1 b
 *
 * with L_j = l2, l1_j = l1, or, standardised, l2 sigma_j^2 and l1 sigma_j. It knows a loss by
 * kiln_loss_gradient (value, gradient and curvature in one pass over X), kiln_loss_hessian (one pass) and
 * kiln_gram_diagonal, and nothing else.
 *
 * Use: open the run, fill in the first group, ki_newton_open (two passes: the columns' means and spreads),
 * then ki_newton_solve for each problem with the same X and weights. The run's end frees it. */
#ifndef KI_NEWTON_H
#define KI_NEWTON_H

#include "algorithms/certificate/certificate.h"
#include "algorithms/run/run.h"

struct ki_newton {
    /* The caller's run, open and on X: its tolerance, `most` steps in one solve, and problems, if there are
     * several; its arena has all that the engine needs. */
    struct ki_run run;
    /* what is asked for */
    const char *call; /* "kiln_logreg": begins error messages */
    const kiln_matrix *X;
    const kiln_matrix *weights; /* m x 1, as the loss's; NULL = ones */
    /* If a run begins at W = 0 and every row's loss has the derivative steep (mean - y), y = outcomes,
     * m x 1, the walk over X's columns leaves the first gradient, which is a pass less. NULL: it is not
     * so, or not known. */
    const kiln_matrix *outcomes;
    double mean, steep;
    int k;         /* columns of W */
    double l2, l1; /* >= 0 */
    bool no_intercept, standardize;
    double constant; /* the objective of the best intercept alone, at least; 0 = not known. A glm's origin is
                   * that point. */
    bool one_sided;  /* the caller knows that the intercept has no optimum, or wants no warnings:
                    * ki_newton_separation is not asked */

    /* what open makes: W n x k, b 1 x k (zeros without an intercept), on X's device. solve reads a start
     * from them and leaves the result there, in the coordinates of X as given. */
    kiln_matrix *W, *b;
    struct ki_columns columns;

    /* Says what solve leaves beside the run's report: the sum of the losses alone, and the curvature, at the
     * result, as kiln_loss_gradient leaves them; and the objective's gradient with respect to W and the
     * intercepts of the centred columns, without the l1 term's. */
    double loss;
    kiln_matrix *C, *gradient, *slopes;
    /* The rank of X (under an intercept, of its columns about their means), where it was asked for: without a
     * penalty, as columns looked as if they depended on others. -1: it was not found out. */
    bool ranked;
    int64_t rank;

    struct ki_newton_work *work; /* the engine's own */
};

struct ki_newton_start {
    bool warm; /* begin with the engine's W and b; else with W = 0 and b = origin */
    /* The intercepts, all alike, of the point whose gradient the tolerance is relative to, at W = 0. Where
     * the loss has no value at that point, the start takes its place. */
    double origin;
    bool own_reference; /* of a warm start: the tolerance is relative to its gradient instead */
};

/* Measures X's columns and allocates. ERR_DATA: X, or the weights' sum, is of no use. */
kiln_status ki_newton_open(struct ki_newton *newton);
/* The first solve takes its state from a checkpoint that the run goes on from (ki_run_begin has been called),
 * and no start. Stops when || D^-1 g || <= tolerance * || D^-1 g0
 * ||: g the gradient (with l1 the least subgradient) with respect to W and the intercept of the centred
 * columns, g0 that at the origin, D^2 the diagonal of the Hessian of the origin's mean curvature; and
 * where the objective can fall by no more than newton_confirm.c allows. Not converging is not an error.
 * The objective never rises; numbers stay finite: where those of the start are not, it is returned as it
 * is, DIVERGED. */
kiln_status ki_newton_solve(struct ki_newton *newton, const kiln_loss *loss,
                            const struct ki_newton_start *start);
/* The engine's W and b = those given, for a warm start (b NULL: zeros); theirs = the engine's. */
kiln_status ki_newton_set_start(struct ki_newton *newton, const kiln_matrix *W, const kiln_matrix *b);
/* Says how many columns of X do not depend on others, by products with X: as kiln_linreg says it. */
struct ki_found_rank {
    int64_t rank; /* -1: it is not known */
    int64_t passes;
    bool cancelled;
};
/* weights: NULL for ones. */
kiln_status ki_find_rank(struct ki_found_rank *found, const kiln_matrix *X, const kiln_matrix *weights,
                         bool no_intercept, const kiln_control *control);
/* The rank is that of the engine's X and weights. */
kiln_status ki_newton_find_rank(struct ki_newton *newton);
void ki_newton_tell_rank(struct ki_newton *newton); /* the report's warning */
/* The engine's W and b become those of least norm that predict the same, where ranked says that columns
 * depend on others and nothing is penalised. */
kiln_status ki_newton_least_norm(struct ki_newton *newton);
kiln_status ki_newton_hand_over(const struct ki_newton *newton, kiln_matrix *W, kiln_matrix *b);
/* The report's optimality gap at the result, which has been solved for, of a loss whose rows at->slope,
 * curvature, excess, terms, lean, target and quadratic tell; the rest is found out here. Without a penalty
 * there is no bound. */
kiln_status ki_newton_certify(struct ki_newton *newton, struct ki_certificate *at);
/* The rest alone, but for settled and drift; *values owns the arrays. */
kiln_status ki_newton_describe(struct ki_arena *arena, struct ki_certificate *at,
                               const struct ki_newton *newton);

/* Returns whether conjugate gradient is preconditioned by D d, d the largest of D, in place of D^2. Where
 * columns outnumber rows, the Hessian is the penalty itself in all directions but as many as there are rows,
 * one eigenvalue, which D^2 would pull apart. D d keeps most of them together and still takes off half of
 * what scales of columns are apart. With a standardized penalty they lie together in D^2. */
bool ki_newton_evens_out(const kiln_matrix *X, double l1, bool standardize);
/* Returns whether the loss is one that is not convex in eta. */
bool ki_newton_bends_down(const kiln_loss *loss);
/* Returns what a step's residual must come down to, || D^-1 . ||, if it begins with sqrt(rho); relative: the
 * gradient to that of the reference. */
double ki_newton_forcing(double relative, double tolerance, double rho);

#endif
