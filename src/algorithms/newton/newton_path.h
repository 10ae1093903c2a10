/* Between newton_path.c (the folds, their Hessians and the values of a path) and newton_path_step.c (points and steps). */
#ifndef KI_NEWTON_PATH_H
#define KI_NEWTON_PATH_H

#include "algorithms/linreg/linreg.h"
#include "algorithms/newton/labels.h"
#include "algorithms/newton/newton_dual.h"
#include "algorithms/path.h"

enum { KI_LANES_MOST = 64, KI_LANE_PAIRS = 8 }; /* folds; steps that are remembered */

/* A fold's model, in the coordinates (w, b'), b' = b + mean w. Vectors have `size` elements. */
struct ki_lane {
    double weight; /* of the rows that it trains on */
    double *mean,
        *spread;  /* of the columns: their means, 0 without an intercept; sums of squares about them */
    double *zero; /* the losses' gradient at w = 0 */
    double *point, *data, *next, *slope,
        *direction;                /* `data`, `slope`: their gradients at `point` and `next` */
    double *criterion, *penalty;   /* D^-2; L */
    double *kept;                  /* L-BFGS's room */
    double *H, *U, *step, *change; /* size x size; KI_LANE_PAIRS x size */
    double loss, objective, norm, reference, t, first; /* t: of the step that is tried; first: its slope */
    double next_loss, next_objective, next_norm;
    int64_t pairs, iterations, shortened;
    bool met, bad;
};

struct ki_lanes {
    struct ki_path *path;
    kiln_logreg_options options;
    const kiln_matrix *X;
    struct ki_labels labels;
    kiln_matrix *target, *fold, *v, *C;   /* m x 1 */
    kiln_matrix *W, *b, *G, *gb, *values; /* of all folds */
    kiln_matrix *w, *shift, *g, *gs;      /* of their mean */
    int64_t m, n, size, folds, count, rent;
    bool narrow, intercept;
    double start, tolerance, penalty; /* the strength at hand */
    double *room, *base, *host;       /* m; m: weights of the rows; n x folds */
    struct ki_system system;          /* the sum of the walks that a fold trains on */
    double *parts, *memory;
    struct ki_lane lane[KI_LANES_MOST];
    int columns[KI_LANES_MOST]; /* the fold of each column */
    double *made_W, *made_b;    /* folds x n x count; folds x count */
    kiln_report *reports;       /* folds x count */
};

/* What hangs on the penalty t->penalty: L, the criterion and U. False: H + L is not positive, or there is nothing to go by. */
bool ki_lane_penalise(const struct ki_lanes *t, struct ki_lane *lane);
/* Value, gradient and norm of all lanes at `next`, which becomes what X's type has of it. One pass. */
kiln_status ki_lanes_evaluate(struct ki_lanes *t);
/* One step of all lanes, by one evaluation; *over: all have met the criterion, or given up. */
kiln_status ki_lanes_advance(struct ki_lanes *t, bool *over);

#endif
