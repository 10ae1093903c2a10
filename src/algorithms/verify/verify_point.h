/* This header has what verify.c (sums over rows) and verify_criterion.c (norms of gradients) share. */
#ifndef KI_VERIFY_POINT_H
#define KI_VERIFY_POINT_H

#include "algorithms/verify/verify.h"

/* Everything on the host. */
struct ki_verify_facts {
    struct ki_copy X;
    int64_t rows, cols, targets; /* of X and y */
    double *y, *s, *offset;      /* s, offset NULL: ones, zeros */
    double *W, *b;               /* b NULL: no intercept */
    int64_t k;                   /* columns of W */
    const kiln_loss *loss;
    kiln_verify_options options;
    double weight; /* sum of s */
    /* of the columns; square: sum_i s_i x_ij^2. A double has no room for the square of 1e-155 or 1e200. */
    long double *mean, *variance, *square;
    kiln_type type;      /* of X */
    long double formula; /* units that a short formula loses, times the unit */
    long double tiny;    /* below that numbers of the type lose digits, and devices may take them for 0 */
    long double flat;    /* ki_flat of it */
};

/* A problem: columns first to first + k of W, which one loss ties together. */
struct ki_verify_problem {
    const struct ki_verify_facts *facts;
    int64_t first, k;
};

/* At one point: value, gradient cols x k and k, and the sum of s times the curvature of the first column. */
struct ki_verify_point {
    long double value, curvature;
    long double *gradient, *intercept;
    long double *eta; /* of a row, k of each */
    struct ki_verify_slope *slope;
    /* bounds of what rounding may have made of value, gradient (of all k columns of W together) and
     * intercept */
    long double value_blur, *blur, intercept_blur;
    long double *curved; /* sum_i s_i curvature_i x_ij^2, of the first column of W */
};

static inline double ki_verify_weight(const struct ki_verify_facts *f, int64_t i) {
    return f->s ? f->s[i] : 1;
}

/* The target of row i as the loss wants it. */
static inline double ki_verify_target(const struct ki_verify_problem *p, int64_t i) {
    const struct ki_verify_facts *f = p->facts;
    const double y = f->y[i * f->targets + (f->targets > 1 ? p->first : 0)];
    if (f->loss->kind != KILN_LOSS_SQUARED_HINGE) return y;
    return (f->k > 1 ? y == (double)p->first : y > 0) ? 1 : -1;
}

/* L_j and l1_j. */
long double ki_verify_penalty(const struct ki_verify_facts *f, int64_t j);
long double ki_verify_l1(const struct ki_verify_facts *f, int64_t j);
/* || D^-1 g || at a point, W NULL for zeros; mean_curvature that of the origin. present:
 * D is no more than by the curvature at this point. */
long double ki_verify_norm(const struct ki_verify_point *point, const struct ki_verify_problem *p,
                           const double *W, long double mean_curvature, bool present);
/* Returns what rounding may have made of an entry of the gradient of column j, centred under an intercept,
 * and the norm of that. */
long double ki_verify_entry_blur(const struct ki_verify_point *point, const struct ki_verify_problem *p,
                                 int64_t j, const double *W);
long double ki_verify_blur(const struct ki_verify_point *point, const struct ki_verify_problem *p,
                           const double *W, long double mean_curvature, bool present);

/* ---- the best constant ---- */

/* Between which it lies: the loss falls at low and rises at high. closed: both are known. */
struct ki_verify_bracket {
    double low, high;
    long double moved; /* the last step's length */
    bool closed;
};

#define KI_VERIFY_OPEN ((struct ki_verify_bracket){-INFINITY, INFINITY, INFINITY, false})

/* Fisher's step from `at`, or, once the bracket is closed, the way to its middle where the step leads out or
 * is not half as long as the last one. An inverse Gaussian's curve is flat far out, where value, slope and
 * curvature vanish alike: a point without curvature is none to go on from. */
static inline long double ki_verify_step(struct ki_verify_bracket *of, double at, long double slope,
                                         long double curvature) {
    long double step = slope / curvature;
    *(slope < 0 ? &of->low : &of->high) = at;
    const double width = of->high - of->low;
    of->closed = isfinite(width);
    if (of->closed && !(at - step > of->low && at - step < of->high && fabsl(step) <= 0.5L * of->moved))
        step = at - (of->low + 0.5 * width);
    of->moved = fabsl(step);
    return step;
}

#endif
