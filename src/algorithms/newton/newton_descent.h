/* Between newton_descent.c (the l1 step by coordinate descent), newton_quadratic.c (its model) and
 * newton_face.c. */
#ifndef KI_NEWTON_DESCENT_H
#define KI_NEWTON_DESCENT_H

#include "algorithms/newton/newton_work.h"
#include "derived/sparse_columns.h"

struct ki_descent {
    int64_t n;
    double *w, *g, *l1, *penalty, *least; /* n; least: what H_jj has at least, 0 = the column is left out */
    int32_t *chosen;                      /* n: the chosen columns */
    struct ki_selector selector;          /* a sparse X's */
    struct ki_sparse_columns columns;
    double *q;        /* 2 m */
    double looseness; /* what the model's violation may have left, without a Gram matrix */
    /* Says what the last model said of its step: -g . d, d . H d of the loss alone and of what `own` adds,
     * and the objective without l1 where it began. share: of H, what the next model takes; see
     * ki_newton_descend. */
    double slope, bend, own_bend, smooth, share;
    bool prepared; /* for this problem */
};

/* The model on the chosen columns. */
struct ki_quadratic {
    struct ki_arena *arena;
    int64_t count;
    double *w, *z, *g;           /* g: the model's gradient, at z with a Gram matrix, else at w */
    double *inverse, *threshold; /* 1 and l1 over the diagonal */
    double *l1, *own, *diagonal, *mean, *zeros; /* zeros: count + 1 */
    double *product;                            /* X^T C, with a Gram matrix (X - 1 mu)^T C */
    int32_t *order;
    bool intercept;
    double b, gb, total;  /* the intercept's move, its gradient as g, the sum of C */
    double *G;            /* count x count, or NULL */
    double *U, *solution; /* with it, for its part on a face */
    int32_t *face;
    int64_t rows;
    double *q, *r; /* m: sqrt(C), sum of u_j d_j */
    const struct ki_sparse_columns *columns;
    struct ki_sparse_column *u; /* q times the chosen columns */
    double qr, sigma;
};

/* Everything but the curvature, for `count` columns. */
kiln_status ki_quadratic_new(struct ki_quadratic *of, const struct ki_newton_work *work);
/* The curvature, in the cheaper of the two ways. */
kiln_status ki_quadratic_form(struct ki_quadratic *of, struct ki_newton_work *work);
/* The model's gradient at z without the l1 term, and with respect to the intercept. */
double ki_quadratic_slope(const struct ki_quadratic *of, int64_t a);
/* The same: dot = u_a . r. */
double ki_quadratic_slope_by(const struct ki_quadratic *of, int64_t a, double dot);
double ki_quadratic_intercept_slope(const struct ki_quadratic *of);
/* Does what follows from z_a += step, which is the caller's, and the intercept's move. */
void ki_quadratic_move(struct ki_quadratic *of, int64_t a, double step);
void ki_quadratic_move_intercept(struct ki_quadratic *of, double step);
/* (z - w) . H (z - w) but for what `own` adds, and the model's value at z less that at w. Only without a
 * Gram matrix. */
double ki_quadratic_bend(const struct ki_quadratic *of);
double ki_quadratic_value(const struct ki_quadratic *of);
/* Without a Gram matrix: z goes to the least point of its face, or of those that it comes to from there,
 * until what the least subgradient has on the face counts for `goal` or less; *reached: whether it does. */
kiln_status ki_quadratic_face(struct ki_quadratic *of, struct ki_newton_work *work,
                              struct ki_newton_model *model, double goal, bool *reached);

#endif
