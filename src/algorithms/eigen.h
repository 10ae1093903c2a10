/* Eigenvectors of the small symmetric matrices that subspace iterations leave behind. */
#ifndef KI_EIGEN_H
#define KI_EIGEN_H

#include <stdint.h>

/* Of the symmetric k x k matrix A, by Jacobi's rotations: eigenvalues on its diagonal, in no order,
 * eigenvectors the columns of Q.
 * Cost: about 8 k^3 flops a sweep, in up to 30 sweeps. */
void ki_eigen(double *A, double *Q, int64_t k);

#endif
