/* Between newton.c (the outer iteration) and newton_step.c (points, and the step by conjugate gradient). */
#ifndef KI_NEWTON_WORK_H
#define KI_NEWTON_WORK_H

#include "algorithms/newton.h"

/* A point with all that is known about it. b is the intercept of the centred columns, b' = b + mu W. */
struct ki_newton_point {
    struct ki_pair at, gradient; /* gradient with the L2 penalty */
    kiln_matrix *C;
    double loss, objective;
};

struct ki_newton_work {
    struct ki_newton *newton;
    kiln_loss problem;
    kiln_matrix *mean, *penalty,
        *l1;            /* n x 1: mu; L; the l1_j. mean NULL without an intercept, l1 where there is none */
    kiln_matrix *kept;  /* n x 1: 0 for a column that is left out (constant, or all zero), else 1 */
    kiln_matrix *shift; /* 1 x k: b' - mu W, the intercept for X as it is */
    kiln_matrix *spread, *floor, *square; /* n x 1, for the preconditioner: see ki_newton_precondition */
    kiln_matrix *v, *classes;             /* m x 1, k x 1 ones: likewise, for softmax */
    double total;                         /* the curvature's sum at the origin */
    struct ki_newton_point here, there;
    struct ki_pair criterion, inverse; /* D^-2 of the criterion; of the present point */
    struct ki_pair S, R, P, Q;         /* step, residual -g - H s, direction, H p */
    struct ki_pair subgradient;        /* with l1: the least one at the point measured last */
    struct ki_memory *memory;          /* with l1: see newton_l1.c */
    double gamma;                      /* with l1: the step is -gamma S */
    double scale;                      /* D^-2 carries this factor, which makes its smallest entry 1 */
    double radius;                     /* of the trust region, in the norm || D s || */
    double reference; /* the criterion at the origin; 0 = a gradient of nothing but rounding */
    double norm;      /* the criterion at `here`: || D^-1 g || */
    double first;     /* the objective at the origin */
    double best;      /* the least norm so far */
    bool resolved;    /* the last step was judged by the objective, which rounding could not */
    int idle;
    int64_t iterations, bytes;
};

/* What conjugate gradient says about the step S. */
struct ki_newton_model {
    double slope;    /* -g . s > 0 */
    double decrease; /* of the quadratic model */
    double length;   /* || D s || */
    bool boundary;   /* ended on the region's boundary */
    int64_t inner;
};

/* The criterion's scale and the preconditioner's parts, from the curvature at `here`. *noise: what a gradient of nothing but
 * rounding may have for a norm, for losses of about 1. */
kiln_status ki_newton_scale(struct ki_newton_work *work, double *noise);
/* Value (but for the l1 term), gradient and curvature at the point whose `at` is set. One pass. */
kiln_status ki_newton_evaluate(struct ki_newton_work *work, struct ki_newton_point *point);
/* *norm = the criterion at an evaluated point; with l1, leaves its least subgradient. */
kiln_status ki_newton_measure(struct ki_newton_work *work, double *norm, const struct ki_newton_point *point);
/* The preconditioner for the curvature at `here`. One pass. */
kiln_status ki_newton_precondition(struct ki_newton_work *work);
/* S = a step from `here` that about minimises the quadratic model within the radius. One pass for each inner iteration. */
kiln_status ki_newton_direction(struct ki_newton_work *work, struct ki_newton_model *model);
/* there.at = here.at + t S, projected onto the orthant with l1, and evaluated, l1 included. *slope = -(sub)gradient . (the move). */
kiln_status ki_newton_try(struct ki_newton_work *work, double t, double *slope);
kiln_status ki_newton_pair(struct ki_pair *pair, const struct ki_newton *newton); /* zeros */
void ki_newton_pair_free(struct ki_pair *pair);
/* With l1: S, of which -gamma times is the step to try; after the step, what it taught. */
kiln_status ki_newton_l1_open(struct ki_newton_work *work);
void ki_newton_l1_close(struct ki_newton_work *work);
void ki_newton_l1_begin(struct ki_newton_work *work);
kiln_status ki_newton_l1_direction(struct ki_newton_work *work);
kiln_status ki_newton_l1_learn(struct ki_newton_work *work);
/* A call of the progress callback; sets newton->cancelled. */
void ki_newton_progress(struct ki_newton_work *work);

#endif
