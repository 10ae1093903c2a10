/* Eigenvectors of the small symmetric matrices that subspace iterations leave behind. */
#ifndef KI_EIGEN_H
#define KI_EIGEN_H

#include <stdint.h>

/* A symmetric, k x k, gets its eigenvalues on the diagonal, in no order; Q's columns are the eigenvectors.
 * Of A the upper triangle is read; the rest is overwritten. Cost: some 12 k^3 flops. */
void ki_eigen(double *A, double *Q, int64_t k);

/* Finds the last `count` numbers of each eigenvector alone, 1 <= count <= k: row i of R, k x count, belongs
 * to the i-th number on the diagonal. Cost: some 4/3 k^3 + 10 k^2 count flops. */
void ki_eigen_ends(double *A, double *R, int64_t k, int64_t count);

#endif
