/* Normal equations of a few hundred or thousand columns on the host: M = U^T U, and solutions by U. */
#ifndef KI_CHOLESKY_H
#define KI_CHOLESKY_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln.h"

/* A factorisation under way: U, size x size by rows from the diagonal on, to the factor of U^T U. */
struct ki_factorisation {
    double *U;
    int64_t size;
    const double *scale; /* what is left of a diagonal element below `part` of its scale becomes the scale, */
    double part;
    /* With room for size doubles the same happens to what rounding of M's elements, so large a part of
     * their rows' and columns' scales, may leave: that grows with the square of the coefficients that make
     * the column of others. */
    double rounding, *room;
    const double
        *blurred;   /* NULL, or by how much more element (i, j) is off: by the larger of rows i and j's */
    int64_t next;   /* the first row that is not done yet; size: the end */
    bool replaced;  /* which this says, */
    bool *left_out; /* and, unless NULL, of which rows: they are 0 beside the diagonal; */
    bool failed;    /* that it is not positive even so: the end, too */
};
/* Goes on, from `next`, to the end or until ki_clock() says so; true at the end. */
bool ki_factorise(struct ki_factorisation *of, double until);
/* Seconds between two looks at the user's say. */
#define KI_FACTOR_ROUND 0.1
/* r = U^-1 U^-T r; the square of U^-T r's length. The same by a U that ki_narrow has been at, which halves
 * what is read. */
double ki_substitute(const double *U, double *r, int64_t size);
double ki_substitute_narrow(const float *U, double *r, int64_t size);
/* The same of k columns, r of size x k: U, which no cache holds, is read once for all of them. */
void ki_substitute_columns(const double *U, double *r, int64_t size, int64_t k);
void ki_narrow(double *U, int64_t count); /* to floats, where they are */
/* Returns what kiln_gram of X, in memory, takes on its device, in passes over X; and what a factorisation of
 * `size` on the host holds a GPU up for, with the matrix's way there and a step's way back. */
double ki_gram_price(const kiln_matrix *X);
double ki_gpu_factor_price(const kiln_matrix *X, double size);

#endif
