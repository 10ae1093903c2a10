/* The information matrix of a linear model's coefficients, its factor and its inverse: what standard errors,
 * leverages and the number of parameters come from. */
#ifndef KI_INFORMATION_H
#define KI_INFORMATION_H

#include "algorithms/run/run.h"

/* The most columns whose matrix, n^2 numbers three to four times, is made. */
enum { KI_INFORMATION_COLUMNS = 16384 };

struct ki_information {
    const kiln_matrix *X, *C; /* C m x 1: the rows' curvatures */
    bool no_intercept;
    kiln_type data;     /* X is a copy of one of this type; 0: it is not */
    struct ki_run *run; /* counts the passes, and asks whether to stop; NULL: nobody does */
    bool wanted;        /* the user has asked for it, and waits */

    /* an arena's, from here on */
    int64_t n;
    double *A;      /* n x n; then U, above and on the diagonal; then D^-1 U^-1, D the scales */
    double *mean;   /* of the columns, weighted with C; zeros without an intercept */
    double *scale;  /* square roots of A's diagonal; 0 for a column that is left out */
    double *width;  /* what the scale was before a column was found to depend on others */
    double *panel;  /* several rows of A, of no meaning between calls */
    double *column; /* n, of no meaning between calls */
    double *far;    /* squares of columns over those about the means */
    bool *left_out; /* columns whose pivot is nothing but rounding */
    double weight;  /* the sum of C */
    bool cancelled; /* he does not want to wait for their number alone */
};

/* *wide: an arena's copy of A in f64, as what comes of few digits still needs many; A itself where that has
 * them, the device computes in f32 alone, or its memory has no place for both. beside: what became of X,
 * whose type A gets; NULL of X itself. A NULL passes. */
kiln_status ki_information_widen(const kiln_matrix **wide, struct ki_arena *arena, const kiln_matrix *A,
                                 const kiln_matrix *beside);
/* The matrix, and U. */
kiln_status ki_information_measure(struct ki_information *of, struct ki_arena *arena);
int64_t ki_information_count(const struct ki_information *of); /* parameters, with the intercept */
/* W n x 1 and b 1 x 1 (NULL without an intercept): columns that depend on others get coefficient 0, their
 * part in the predictions goes to those. *refused: predictions would change, and W and b stay as they are. */
kiln_status ki_information_drop(const struct ki_information *of, kiln_matrix *W, kiln_matrix *b,
                                bool *refused);
/* x = U^-T x, where x is 0 before `first`: the square of its length. */
double ki_information_substitute(const struct ki_information *of, double *x, int64_t first);
/* A becomes V = D^-1 U^-1: the inverse of the columns' part is V V^T. */
void ki_information_invert(struct ki_information *of);
/* After it: square roots of the diagonal of H^-1, of columns and intercept; NaN for one that is left out. */
void ki_information_errors(double *errors, const struct ki_information *of);

#endif
