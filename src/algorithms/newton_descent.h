/* Between newton_descent.c (the l1 step by coordinate descent), newton_quadratic.c (its model) and newton_extrapolate.c. */
#ifndef KI_NEWTON_DESCENT_H
#define KI_NEWTON_DESCENT_H

#include "algorithms/newton_work.h"

enum { KI_QUADRATIC_POINTS = 5 }; /* sweeps from one extrapolation to the next */

struct ki_descent {
    int64_t n;
    double *w, *g, *l1, *penalty, *least; /* n; least: what H_jj has at least, 0 = the column is left out */
    int32_t *place, *chosen;              /* n: see struct ki_selection; the chosen columns */
    struct ki_selector selector;          /* a sparse X's */
    int64_t room; /* entries that u and row have room for: they stay from step to step */
    double *q, *u;
    int32_t *row;
    double looseness; /* what the model's violation may have left, without a Gram matrix */
};

/* The model on the chosen columns. */
struct ki_quadratic {
    int64_t count;
    double *memory;
    double *w, *z, *g; /* g: the model's gradient, at z with a Gram matrix, else at w */
    double *l1, *own, *diagonal, *mean, *zeros; /* zeros: count + 1 */
    double *product;                            /* X^T C, with a Gram matrix (X - 1 mu)^T C */
    int32_t *order;
    bool intercept;
    double b, gb, total;  /* the intercept's move, its gradient as g, the sum of C */
    double *G;            /* count x count, or NULL */
    double *U, *solution; /* with it, for its part on a face */
    int32_t *face;
    int64_t rows;
    double *points;    /* KI_QUADRATIC_POINTS + 2, without a Gram matrix; count + 1 of each */
    double *q, *r, *u; /* m: sqrt(C), sum of u_j d_j; the columns */
    int32_t *row;
    struct ki_selection selection;
    double qr, sigma;
};

/* Everything but the curvature, for `count` columns. Free it, whether this succeeds or not. */
kiln_status ki_quadratic_new(struct ki_quadratic *of, const struct ki_newton_work *work);
/* The curvature, in the cheaper of the two ways. */
kiln_status ki_quadratic_form(struct ki_quadratic *of, struct ki_newton_work *work);
void ki_quadratic_free(struct ki_quadratic *of);
/* The model's gradient at z without the l1 term, and with respect to the intercept. */
double ki_quadratic_slope(const struct ki_quadratic *of, int64_t a);
double ki_quadratic_intercept_slope(const struct ki_quadratic *of);
/* What follows from z_a += step, which is the caller's, and the intercept's move. */
void ki_quadratic_move(struct ki_quadratic *of, int64_t a, double step);
void ki_quadratic_move_intercept(struct ki_quadratic *of, double step);
/* z as the k-th point, 0 to KI_QUADRATIC_POINTS, from all of which the other goes on. Only without a Gram matrix. */
void ki_quadratic_keep(struct ki_quadratic *of, int64_t k);
void ki_quadratic_extrapolate(struct ki_quadratic *of);

#endif
