/* Eigenvectors of the small symmetric matrices that subspace iterations leave behind. */
#ifndef KI_EIGEN_H
#define KI_EIGEN_H

#include <stdint.h>

/* A symmetric, k x k, gets its eigenvalues on the diagonal, in no order; Q's columns are the eigenvectors.
 * The rest of A is overwritten. Cost: some 12 k^3 flops. */
void ki_eigen(double *A, double *Q, int64_t k);

#endif
