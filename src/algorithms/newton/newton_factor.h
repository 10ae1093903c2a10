/* The Newton engine's strong preconditioner, for newton_factor.c, which makes it, and newton_factor_solve.c,
 * which takes it. */
#ifndef KI_NEWTON_FACTOR_H
#define KI_NEWTON_FACTOR_H

#include "algorithms/newton/newton_work.h"

/* Holds what a class's factorisation and its solution leave behind. */
struct ki_factor_class {
    struct ki_factorisation factorisation;
    double product;
};

struct ki_factor {
    int64_t n, size;               /* columns; with the intercept */
    double *U;                     /* for each class size x size: M, then U, by rows from the diagonal on; of
                                      several classes U narrowed */
    double *r;                     /* size x k, right sides and solutions */
    double *column;                /* size x k, class by class */
    double *weights;               /* m: a class's curvature, where M is of a sample of the rows; else NULL */
    int64_t sample;                /* how many rows that has; or m */
    double *scale;                 /* size x k, class by class: what pivots are judged by */
    kiln_matrix *G, *g, *unit;     /* unit: k x 1 */
    double gram_price, host_price; /* of the Gram matrix of all rows, and of all else, in passes */
    double rent;                   /* products that a new one would have saved since the last time */
    double forecast;               /* what it will save now: as the last step that took any */
    bool summed;                   /* in a checkpoint: `sum` holds something */
    struct ki_factor_class *classes; /* k */
    bool ready, replaced;            /* U is there; some pivots of it are not M's own: */
    bool *left_out;                  /* size, of one class: these; `left` of them are columns' */
    int64_t left;
    bool weak; /* of one class: some of M's own are so small that rounding of M shows */
    bool sound,
        exact; /* whether M alone can give a step, and so far always could; and is the present point's */
    /* of losses whose curvature changes in few rows from step to step, else NULL */
    double *sum;             /* G and g, added up */
    double *formed, *lacked; /* m: the curvature that `sum` belongs to; what it lacks of the present one */
    kiln_matrix *lack;       /* m x 1 */
    double largest;          /* the largest total of such a curvature; 0: there is none */
};

#endif
