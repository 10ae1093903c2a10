/* Models of one column of coefficients in all folds of a path at once, on the CPU. Between
 * newton_path_kinds.c (what each algorithm asks for), newton_path.c (the folds, their Hessians and the
 * values of a path), newton_path_step.c (points and steps), newton_path_l1.c (steps with l1) and
 * newton_path_wide.c (steps where X is sparse and of many columns), newton_path_confirm.c (when they end). */
#ifndef KI_NEWTON_PATH_H
#define KI_NEWTON_PATH_H

#include "algorithms/linreg/linreg.h"
#include "algorithms/newton/glm.h"
#include "algorithms/newton/labels.h"
#include "algorithms/newton/newton.h"
#include "algorithms/path.h"

/* Folds; steps that are remembered, and one; solutions by which the next is foreseen. */
enum { KI_LANES_MOST = 64, KI_LANE_PAIRS = 9, KI_FORMER = 3 };

/* Conjugate gradient for a lane's step. */
struct ki_search {
    double *rest, *toward; /* the residual; the direction, 0 unless `on` */
    double *inverse;       /* the preconditioner, 0 for columns that the fold leaves out */
    double sum;            /* of what multiplied X's rows in the last product */
    double *former;        /* KI_FORMER x size: the solutions of the values before */
    double rho, goal;      /* the residual's square; the norm that it is to come down to */
    bool on;
};

/* A fold's model, in the coordinates (w, b'), b' = b + mean w. Vectors have `size` elements. */
struct ki_lane {
    double weight; /* of the rows that it trains on */
    double *mean,
        *spread;  /* of the columns: their means, 0 without an intercept; sums of squares about them */
    double *zero; /* the losses' gradient at the origin, w = 0 and b' as there */
    double *point, *data, *next, *slope,
        *direction;                   /* `data`, `slope`: their gradients at `point` and `next` */
    double *criterion, *penalty, *l1; /* D^-2; L; the l1_j */
    double *kept;                     /* room for a step */
    double *H, *U, *step, *change;    /* size x size, H of both halves; KI_LANE_PAIRS x size */
    struct ki_search search;      /* of wide lanes, which have none of the line above but a pair for a step */
    struct ki_glm_origin origin;  /* where the criterion is relative to, and the mean curvature there */
    double zero_loss, zero_total; /* there */
    double constant;              /* the objective of the best intercept alone, at least */
    double loss, objective, norm, reference, t, first; /* t: of the step that is tried; first: its slope */
    double total, next_total;                          /* sum of the curvatures */
    double formed;                                     /* the same of H, where it was formed */
    double next_loss, next_objective, next_norm;
    int64_t pairs, iterations, shortened;
    struct ki_flats flats;
    bool met, bad; /* bad: to be trained alone */
    bool right;    /* the last step came of an H that was right about it */
    bool doubted;  /* the criterion has been met, and is not enough */
};

struct ki_lanes {
    /* what the algorithm says */
    struct ki_path *path;
    const char *solver; /* in reports; NULL: none is named */
    kiln_loss loss; /* any but softmax, without an offset; its weights are those of the rows, folds apart */
    bool intercept, standardize;
    double tolerance;
    bool deviances; /* reports have deviance and null_deviance, by the origins' */
    /* the loss points into these two */
    struct ki_labels labels;
    kiln_matrix *target; /* m x 1 */
    /* the rest */
    struct ki_arena arena;
    const kiln_matrix *X;
    bool fresh; /* H was formed at this value's points, as good as */
    bool wide;  /* no Hessians, no walks: newton_path_wide.c */
    struct ki_path_walks walks;
    kiln_matrix *fold, *C;                /* m x 1; of wide lanes C is m x folds, their curvature at `next` */
    kiln_matrix *W, *b, *G, *gb, *values; /* of all folds */
    kiln_matrix *w, *shift, *g, *gs;      /* of their mean */
    int64_t m, n, size, folds, count, rent;
    bool narrow;
    double start, penalty, l1; /* the strengths at hand */
    int64_t value, round;      /* the value at hand; its evaluations */
    double *host;              /* n x folds */
    /* of wide lanes */
    kiln_matrix *mean_C, *ones; /* m x 1; folds x 1 */
    double *square, *inverse;   /* size: of the columns; the preconditioner */
    int64_t products;           /* passes for the value at hand, but for evaluations */
    bool worn;                  /* the preconditioner, or there is none yet */
    struct ki_system system;    /* the sum of the walks that a fold trains on */
    struct ki_lane lane[KI_LANES_MOST];
    int columns[KI_LANES_MOST]; /* the fold of each column */
    double *made_W, *made_b;    /* folds x n x count; folds x count */
    kiln_report *reports;       /* folds x count */
};

/* Sets what depends on the path alone. */
void ki_lanes_take(struct ki_lanes *t, struct ki_path *path);
/* Returns whether X, y, the folds and penalties are such as the lanes are for; sets t->wide. */
bool ki_lanes_apply(struct ki_lanes *t);
/* Trains and hands over all models. The lanes' origins are set. */
kiln_status ki_lanes_open(struct ki_lanes *t); /* means, spreads and weights of the lanes */
kiln_status ki_lanes_train(struct ki_lanes *t);
kiln_status ki_lanes_close(struct ki_lanes *t, kiln_status status); /* returns `status` */

/* Returns what depends on the penalties t->penalty and t->l1: L, the l1_j, the criterion and U. False: H + L
 * is not positive, or there is nothing to go by. */
bool ki_lane_penalise(const struct ki_lanes *t, struct ki_lane *lane);
/* Value, gradient and norm of all lanes at `next`, which becomes what X's type has of it. One pass. */
kiln_status ki_lanes_evaluate(struct ki_lanes *t);
/* sum_j x_j y_j z_j, in four sums, as each addition would wait for the one before. z NULL: ones. */
double ki_lane_sum(const double *x, const double *y, const double *z, int64_t size);
/* Lane f's `point` becomes column f of t->host; returns the intercept of columns as they are. */
double ki_lane_pack(const struct ki_lanes *t, int64_t f, const double *point);
/* slope = column f of t->host, the products with X's columns as they are, about the lane's means; sum: of
 * what multiplied X's rows. */
void ki_lane_unpack(const struct ki_lanes *t, int64_t f, double sum);
/* Tells the lanes what their best intercepts alone have, after the first evaluation. */
kiln_status ki_lanes_tell_constants(struct ki_lanes *t);
/* Returns whether the lane has met the criterion, and is as near to the optimum as that promises. */
bool ki_lane_has_converged(const struct ki_lanes *t, struct ki_lane *lane);
/* The same by the model of the next step, whose direction has just been found. */
bool ki_lane_is_told(const struct ki_lanes *t, const struct ki_lane *lane);
/* Returns whether a whole step to `next`, before it is taken, leaves little of any entry of the gradient. */
bool ki_lane_contracts(const struct ki_lanes *t, const struct ki_lane *lane);
/* One step of all lanes, by one evaluation; *over: all have met the criterion, or given up. */
kiln_status ki_lanes_advance(struct ki_lanes *t, bool *over);
/* Progress, and the caller's say. */
kiln_status ki_lanes_told(const struct ki_lanes *t);
/* Before a value's first step a wide lane's direction is to what the solutions of the values before let
 * expect. */
void ki_lanes_foresee(struct ki_lanes *t);
/* Makes the directions of those wide lanes that want a new one. A pass an iteration, and one for the
 * preconditioner. */
kiln_status ki_lanes_search(struct ki_lanes *t);
/* The least subgradient's element, g the gradient without the l1 term. */
double ki_lane_least(double g, double w, double l1);
/* With l1: the step to about the least point of the model by H, and H itself corrected by what the
 * gradients changed by. */
void ki_lane_descend(const struct ki_lanes *t, struct ki_lane *lane);
void ki_lane_learn(const struct ki_lanes *t, struct ki_lane *lane, const double *step, const double *change);

#endif
