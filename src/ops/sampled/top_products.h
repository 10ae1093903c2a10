/* The largest products of each row of one matrix with the rows of another: what a factor model recommends,
 * and what is most like something. */
#ifndef KI_TOP_PRODUCTS_H
#define KI_TOP_PRODUCTS_H

#include <stdbool.h>

#include "kiln/factors.h"

/* Numbers of rows of A that a part of the CPU's work has, and that a GPU multiplies at once. */
enum { KI_TOP_ROWS = 64 };

/* columns[i * top + t], scores[i * top + t]: the t-th best row j of B for row i of A by a_i . b_j, equal ones
 * by number; what is left has columns of -1 and scores of NaN, and a product that is NaN counts for nothing.
 * A m x r, B n x r, dense, of a type and on a device. */
struct ki_top_products {
    const kiln_matrix *A, *B;
    bool ones;                    /* A's last column counts as 1 */
    const int64_t *start;         /* m + 1, with `seen`; NULL: nothing is left out by rows */
    const int32_t *seen;          /* columns of row i that are left out, ascending */
    const unsigned char *allowed; /* n: 0 where a column is left out of all rows; NULL: none is */
    int64_t top;
    int64_t *columns;
    double *scores;
};
kiln_status ki_top_products(const struct ki_top_products *of);

/* qsort's order of int32_t, ascending: that of `seen`. */
int ki_by_column(const void *a, const void *b);

/* ------------------------------------------------------------------------------ for the bodies alone */

/* A row's best so far: a heap, whose first is the worst. */
struct ki_best {
    int64_t *columns;
    double *scores;
    int64_t kept, top;
    const int32_t *seen;
    int64_t seen_count;
};

/* Holds what the CPU works on. */
struct ki_top_work {
    const struct ki_top_products *of;
    kiln_type type;
    bool ones;         /* as of->ones */
    const void *a, *b; /* A and B on the host */
    void *panels;      /* B, columns side by side in panels, or NULL: few rows need none */
    int64_t m, n, r;
    int threads;
    /* of few rows alone */
    const void *offsets;  /* n, which scores are the products and; NULL: nothing */
    bool cosines;         /* products over both lengths */
    int slices;           /* parts of B that a row's list is made of, each with a list of its own */
    struct ki_best *best; /* m * slices of them */
};

/* Few rows, without panels, of a device's bodies: in slices where there are more threads than rows. */
struct ki_bodies;
void ki_top_few(struct ki_top_work *work, const struct ki_bodies *bodies);

/* Row i's, empty. */
struct ki_best ki_best_begin(const struct ki_top_products *of, int64_t i);
/* Column j, whose number is larger than those before; the score must not be NaN. */
void ki_best_consider(struct ki_best *best, const unsigned char *allowed, int64_t j, double score);
/* Best first. */
void ki_best_end(struct ki_best *best);

#endif
