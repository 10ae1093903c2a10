/* Between newton.c (the outer iteration) and newton_step.c (points, and the step by conjugate gradient). */
#ifndef KI_NEWTON_WORK_H
#define KI_NEWTON_WORK_H

#include "algorithms/cholesky.h"
#include "algorithms/newton/newton.h"
#include "ops/linear/newton.h"

/* A point with all that is known about it. b is the intercept of the centred columns, b' = b + mu W. */
struct ki_newton_point {
    struct ki_pair at, gradient; /* gradient with the L2 penalty */
    kiln_matrix *C;
    double loss, norm1, objective; /* norm1: the l1 term */
};

enum { KI_NEWTON_STATE = 50 };

struct ki_newton_work {
    struct ki_newton *newton;
    kiln_loss problem;
    kiln_matrix *mean, *penalty,
        *l1;            /* n x 1: mu; L; the l1_j. mean NULL without an intercept, l1 where there is none */
    kiln_matrix *kept;  /* n x 1: 0 for a column that is left out (constant, or all zero), else 1 */
    kiln_matrix *shift; /* 1 x k: b' - mu W, the intercept for X as it is */
    kiln_matrix *spread, *floor, *square; /* n x 1, for the preconditioner: see ki_newton_precondition */
    kiln_matrix *v, *classes;             /* m x 1, k x 1 ones: likewise, for softmax */
    kiln_matrix *common;                  /* n x 1, for ki_newton_center */
    double level; /* the curvature of every row at `here`, beside the row's weight; 0: it differs, or may */
    kiln_matrix *right; /* n x 1: X^T s (outcomes - mean), which tells the first gradient; NULL: not known */
    struct ki_newton_point here, there;
    struct ki_pair criterion, inverse; /* D^-2 of the criterion; of the present point */
    struct ki_pair S, R, P, Q;         /* step, residual -g - H s, direction, H p */
    struct ki_pair Z;           /* with l1: the point where the model is looked at; with a factor, M^-1 R */
    struct ki_factor *factor;   /* see newton_factor.c; NULL where it cannot pay */
    struct ki_secant *secant;   /* see newton_secant.c; NULL where it cannot pay */
    struct ki_descent *descent; /* see newton_descent.c; NULL where l1 steps are newton_l1.c's */
    bool worn;                  /* the preconditioner, or there is none yet */
    bool even;        /* it is ki_newton_evens_out's, until a step by it was of no use in this solve */
    bool furnished;   /* with the vectors of steps by products */
    bool apart;       /* columns whose scales are too far apart for the criterion to prove anything */
    double *diagonal; /* n + 1: D^2 of the criterion, 0 for columns left out, and the intercept's */
    double scale;     /* D^-2 carries this factor, which makes its smallest entry 1 */
    double total;     /* the curvature's sum at the origin */
    double radius;    /* of the trust region, in the norm || D s || */
    double reference; /* the criterion at the origin; 0 = a gradient of nothing but rounding */
    double norm;      /* the criterion at `here`: || D^-1 g || */
    double first;     /* the objective at the origin */
    double goal; /* the tolerance that steps are made for: the run's, or less where it proved too little */
    bool proved; /* `here` has converged */
    bool fallen; /* a column has lost most of the curvature that it had at the origin */
    bool uneven; /* at the last look a column had next to none of the curvature that the rows have in all */
    bool led;    /* a step that every column could take part in has led here */
    bool ahead;  /* S is the next step from here */
    bool looked,
        regular; /* whether the step that led here left the rows\' curvatures as they were, if that has
                  * been looked at */
    struct ki_state state[KI_NEWTON_STATE]; /* of a checkpoint */
};

/* L_j */
static inline double ki_newton_penalty_of(const struct ki_newton *newton, int64_t j) {
    return newton->l2 * (newton->standardize ? newton->columns.variance[j] : 1);
}

/* sum_i s_i x_ij^2 of the columns as the model has them: about their means under an intercept. */
static inline double ki_newton_spread(const struct ki_newton *newton, int64_t j) {
    return newton->no_intercept ? newton->columns.square[j]
                                : newton->columns.weight * newton->columns.variance[j];
}

/* Returns whether the losses are support vector machines', which have a kink and a least value. */
static inline bool ki_newton_hinged(const struct ki_newton_work *work) {
    return work->problem.kind == KILN_LOSS_SQUARED_HINGE || work->problem.kind == KILN_LOSS_SQUARED_EPSILON;
}

/* D^-2 at most, in the type's range. */
static inline double ki_newton_most(const struct ki_newton *newton) {
    return kiln_matrix_type(newton->X) == KILN_F32 ? 1e30 : 1e200;
}

/* Holds what conjugate gradient says about the step S. */
struct ki_newton_model {
    double slope;    /* -g . s > 0, with l1 less what the l1 term grows by */
    double decrease; /* of the quadratic model */
    double length;   /* || D s || */
    double rest;     /* what the model can still fall by beyond `decrease`: 0 by an exact factor, else by the
               * residual and the least curvature that was met with */
    bool boundary;   /* ended on the region's boundary */
    bool exact;      /* by ki_newton_exact, without a product */
    bool stiff;      /* most of some column's curvature is none of the data's or the penalties' */
    bool loose;      /* what conjugate gradient has left out may matter: see ki_newton_doubtful */
    int64_t inner;
};

/* The criterion's scale and the preconditioner's parts, from the curvature at `here`. *noise: what a
 * gradient of nothing but rounding may have for a norm, for losses of about 1. */
kiln_status ki_newton_scale(struct ki_newton_work *work, double *noise);
/* Returns whether the criterion at `here`, W = 0 and intercepts b, may be nothing but rounding, by sums that
 * are known already. noise: ki_newton_scale's. */
bool ki_newton_may_be_rounding(const struct ki_newton_work *work, double noise, double b);
/* *norm = the criterion at `here`, of what is left of the gradient when each column's own rounding is taken
 * off: see newton_rounding.c. */
kiln_status ki_newton_beyond_rounding(const struct ki_newton_work *work, double *norm);
/* eta, size: m zeros each, which become the predictors at `here` and the sum of the sizes that each comes
 * from. A pass, unless all coefficients are 0. */
kiln_status ki_newton_predictors(double *eta, double *size, const struct ki_newton_work *work);
/* Returns what the objective may fall by at a point that has converged. */
double ki_newton_enough(const struct ki_newton_work *work);
/* Without a penalty, at a point that has met the criterion: whether columns that look as if they depended on
 * others do, and where they do not, further steps. *stop becomes what ends them. See
 * certificate/newton_again.c. */
kiln_status ki_newton_look_again(struct ki_newton_work *work, struct ki_newton_model *model, kiln_stop *stop);
/* Returns whether the criterion is met at `here`. */
bool ki_newton_meets(const struct ki_newton_work *work);
/* work->proved = it is, and the objective can fall by so little that `here` has converged: by `left`, if a
 * model that may be believed says so. See newton_confirm.c. */
kiln_status ki_newton_prove(struct ki_newton_work *work, double left);
/* The same, and by the penalty if `left` proves nothing. Where that does not either, steps become more
 * exact; one pass. */
kiln_status ki_newton_confirm(struct ki_newton_work *work, double left);
/* Returns whether the least curvature that conjugate gradient has met with is no bound of what it has left
 * out: where columns have lost theirs, or M has none for some that depend on others. */
bool ki_newton_doubtful(const struct ki_newton_work *work);
/* Finds whether the residual R = -g - H S may be worth more than what may be left, by the penalty and the
 * intercepts' curvature: R^T H^-1 R <= || L^-1/2 R ||^2. Uses there.C of several classes, P and Q. */
kiln_status ki_newton_loose(bool *loose, struct ki_newton_work *work);
/* there.C = p - p^2 of several classes. */
kiln_status ki_newton_classes(struct ki_newton_work *work);
/* Value, gradient (without the l1 term's) and curvature at the point whose `at` is set. One pass. */
kiln_status ki_newton_evaluate(struct ki_newton_work *work, struct ki_newton_point *point);
/* *norm = the criterion at an evaluated point. Uses P. */
kiln_status ki_newton_measure(struct ki_newton_work *work, double *norm, const struct ki_newton_point *point);
/* square = the Hessian's diagonal at `here` for columns as they are, without the penalty; *total = the
 * intercept's. One pass. Uses there.C of several classes. */
kiln_status ki_newton_squares(struct ki_newton_work *work, double *total);
/* The preconditioner for the curvature at `here`. One pass. */
kiln_status ki_newton_precondition(struct ki_newton_work *work);
/* The price of a Gram matrix of all rows; *host: of its curvature and its factor. In passes. */
double ki_newton_factor_price(const struct ki_newton *newton, double size, double *host);
/* Rows that M is formed from: a sample of several classes' where a Gram matrix is dear. */
int64_t ki_newton_sample_rows(const struct ki_newton *newton, double gram_price, int64_t size);
/* The whole Hessian as the preconditioner instead: where it can pay, formed anew for `here` if the products
 * of the step before, and of those before that, say so. Then directions go by it while ki_newton_factored. */
kiln_status ki_newton_factor_open(struct ki_newton_work *work);
void ki_newton_factor_furnish(struct ki_newton_work *work);      /* its matrices on the device */
kiln_status ki_newton_factor_begin(struct ki_newton_work *work); /* before a solve's first step */
kiln_status ki_newton_factor(struct ki_newton_work *work, const struct ki_newton_model *former);
bool ki_newton_factored(const struct ki_newton_work *work);
/* Returns whether it has the pivots that it should have. */
bool ki_newton_firm(const struct ki_newton_work *work);
/* Returns whether M is the Hessian at `here` itself; no more for the rest of the solve once a step by it was
 * of no use. */
bool ki_newton_exact(const struct ki_newton_work *work);
void ki_newton_doubt(struct ki_newton_work *work);
/* Forgets what is known of the Hessian, as the curvature has changed. */
void ki_newton_factor_forget(struct ki_newton_work *work);
/* Returns whether M is formed at once, before the first step. */
bool ki_newton_factor_cheap(const struct ki_newton_work *work);
/* Z = M^-1 R, with the common scale; *rho = R . Z. */
kiln_status ki_newton_solve_factor(struct ki_newton_work *work, double *rho);
/* M from a sample of the rows, X, with their curvature C, for those that are `ratio` times as much: of use
 * to the steps that newton_secant.c takes. turn: vector = M^-1 vector, w and then b. */
kiln_status ki_newton_factor_sample(struct ki_newton_work *work, const kiln_matrix *X, const kiln_matrix *C,
                                    double ratio);
void ki_newton_factor_turn(const struct ki_newton_work *work, double *vector);
/* `here` = the solution of the problem on a sample of the rows, if that pays and its objective is lower, and
 * M from there: a step, which ki_newton_secant records; see newton_pilot.c. */
kiln_status ki_newton_pilot(struct ki_newton_work *work, const struct ki_newton_start *start);
/* Leaves in v, the curvature of m rows, what a sample of about `wanted` rows has; false where no more have
 * any. */
bool ki_newton_sample(double *v, int64_t m, int64_t wanted);
/* S = a step from `here` that about minimises the quadratic model within the radius. One pass for each inner
 * iteration. */
kiln_status ki_newton_direction(struct ki_newton_work *work, struct ki_newton_model *model);
/* The first steps of an easy problem, or those behind ki_newton_pilot's, each recorded, a pass each; leaves
 * `here` and norm. resumed: the state of a checkpoint says whether there are more. */
kiln_status ki_newton_secant_open(struct ki_newton_work *work);
kiln_status ki_newton_secant(struct ki_newton_work *work, struct ki_newton_model *model, bool resumed);
/* The same as ki_newton_direction with l1, which belongs to the model; no radius. See newton_l1.c. */
kiln_status ki_newton_l1_direction(struct ki_newton_work *work, struct ki_newton_model *model);
/* The same where work->descent is there, which open decides; see newton_descent.c. `inner` counts sweeps. */
kiln_status ki_newton_descent_open(struct ki_newton_work *work);
kiln_status ki_newton_descend(struct ki_newton_work *work, struct ki_newton_model *model);
/* Q = H direction, *curvature = direction . Q. One pass. */
kiln_status ki_newton_apply(struct ki_newton_work *work, const struct ki_pair *direction, double *curvature);
/* `here` becomes what `there` was. */
void ki_newton_swap(struct ki_newton_work *work);
/* there.at = here.at + t S, evaluated. */
kiln_status ki_newton_try(struct ki_newton_work *work, double t);
void ki_newton_pair(struct ki_pair *pair, struct ki_newton *newton); /* the arena's */
/* The vectors that only steps by products want, once. */
kiln_status ki_newton_furnish(struct ki_newton_work *work);
/* Returns what ends the run at `here`; NONE: nothing does. */
kiln_stop ki_newton_stop(const struct ki_newton_work *work);
/* Returns what differences of the objective mean nothing below. */
double ki_newton_noise(const struct ki_newton_work *work);
/* Writes a row of the trace for `here`. */
kiln_status ki_newton_record(struct ki_newton_work *work, int64_t inner);

/* Takes off the pair, a start or a step, what all of several classes have in common. See newton_shift.c. */
kiln_status ki_newton_center(struct ki_newton_work *work, const struct ki_pair *pair);

/* separation/separation.c: tells the report where no finite coefficients are best. After W and b are set;
 * `there` is of no use then. */
kiln_status ki_newton_separation(struct ki_newton_work *work, struct ki_newton_model *model, kiln_stop stop);
/* S = the next step from `here`, by the factor or the preconditioner as they are due; model: what the last
 * step said, then this one. */
kiln_status ki_newton_direct(struct ki_newton_work *work, struct ki_newton_model *model);

/* newton_state.c. The state of a checkpoint, if one waits (run.resumed): `here` evaluated, its norm, and
 * what the last step said. */
kiln_status ki_newton_resume(struct ki_newton_work *work, struct ki_newton_model *model);
/* After a step. */
kiln_status ki_newton_keep(struct ki_newton_work *work, struct ki_newton_model *model);
/* The parts of that state that the factor, the secant steps and the descent have: entries of a table, their
 * number. _look: what decides which. */
int ki_newton_factor_state(struct ki_state *state, struct ki_newton_work *work);
kiln_status ki_newton_factor_look(struct ki_newton_work *work);
int ki_newton_secant_state(struct ki_state *state, struct ki_newton_work *work);
kiln_status ki_newton_secant_look(struct ki_newton_work *work);
int ki_newton_descent_state(struct ki_state *state, struct ki_newton_work *work);

#endif
