/* Eigenvectors of the small symmetric matrices that subspace iterations leave behind. */
#ifndef KI_EIGEN_H
#define KI_EIGEN_H

#include <stdint.h>

/* Of the symmetric k x k matrix A: eigenvalues on its diagonal, in no order, eigenvectors the columns of Q.
 * The rest of A is overwritten. Cost: some 12 k^3 flops. */
void ki_eigen(double *A, double *Q, int64_t k);

#endif
