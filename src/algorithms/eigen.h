/* Eigenvectors of the small symmetric matrices that subspace iterations leave behind. */
#ifndef KI_EIGEN_H
#define KI_EIGEN_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln.h"

struct ki_run;

/* values: the eigenvalues of a symmetric A, k x k, descending. Q, count x k with 0 <= count <= k: row c is
 * the eigenvector of values[c], of length 1. Of A the upper triangle is read; all of it is overwritten. From
 * some thousand rows on the run's caller is heard, unless run is NULL: with run->cancelled results are
 * nothing.
 * Eigenvalues are off by some k epsilon of the largest, vectors orthogonal to as much, however close values
 * are. Cost: 4/3 k^3 flops, less than 4/3 k^3 for the vectors of a tridiagonal matrix, and 3 k^2 count.
 * Errors: ERR_NOMEM. */
kiln_status ki_eigen(double *values, double *Q, int64_t count, double *A, int64_t k, struct ki_run *run);

/* The same of a tridiagonal matrix, `diagonal`, which is overwritten, and the k - 1 numbers `beside` it; but
 * values ascend, and so do the eigenvectors of the last `count`. */
kiln_status ki_eigen_divide(double *diagonal, double *Q, int64_t count, const double *beside, int64_t k,
                            struct ki_run *run);

/* to += by^T B: the sum of B's rows, `stride` apart, each times a number. */
void ki_add_rows(double *restrict to, const double *by, int64_t rows, const double *restrict B,
                 int64_t stride, int64_t count);
/* Returns the product of two vectors; four sums go side by side. */
double ki_dot(const double *a, const double *b, int64_t count);
/* Returns whether the caller of a run, which may be NULL, asks to stop what has k rows. */
bool ki_eigen_is_stopped(struct ki_run *run, int64_t k);

#endif
