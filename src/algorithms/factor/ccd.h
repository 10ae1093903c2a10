/* A sweep of CCD++ for kiln_als. */
#ifndef KI_CCD_H
#define KI_CCD_H

#include "algorithms/run/arena.h"

/* One column of A and of B at a time, given the residuals of all others (Algorithm 2 of Nisa et al., HiPC
 * 2018). */
struct ki_ccd {
    kiln_matrix *E, *T; /* the residuals R - mean - A B^T at R's entries, by rows and by columns */
    kiln_matrix *u, *v; /* the column of A and of B at hand */
    kiln_matrix *row_ones, *column_ones; /* what a bias is multiplied by */
    double *unit, *others;               /* coefficients that pick a column, and all others */
    double l2;
    int counted, biases;
};
/* mean was taken off R, whose transposed copy is given; A and B as they stand. */
kiln_status ki_ccd_begin(struct ki_ccd *ccd, struct ki_arena *arena, const kiln_matrix *R,
                         const kiln_matrix *transposed, double mean, const kiln_matrix *A,
                         const kiln_matrix *B);
kiln_status ki_ccd_sweep(struct ki_ccd *ccd, int64_t steps, kiln_matrix *A, kiln_matrix *B);
/* The residuals + sign A B^T, biases among them. */
kiln_status ki_ccd_update(struct ki_ccd *ccd, double sign, const kiln_matrix *A, const kiln_matrix *B);

#endif
