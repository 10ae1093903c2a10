/* Eigenvectors of the small symmetric matrices that subspace iterations leave behind. */
#ifndef KI_EIGEN_H
#define KI_EIGEN_H

#include <stdbool.h>
#include <stdint.h>

struct ki_run;

/* Both return false where the run's caller asks to stop, who is heard where k is large: then A and Q are
 * nothing. run NULL: nobody asks.
 *
 * A symmetric, k x k, gets its eigenvalues on the diagonal, in no order; Q's columns are the eigenvectors.
 * Of A the upper triangle is read; the rest is overwritten. Cost: some 12 k^3 flops. */
bool ki_eigen(double *A, double *Q, int64_t k, struct ki_run *run);

/* Finds the last `count` numbers of each eigenvector alone, 1 <= count <= k: row i of R, k x count, belongs
 * to the i-th number on the diagonal. Cost: some 4/3 k^3 + 10 k^2 count flops. */
bool ki_eigen_ends(double *A, double *R, int64_t k, int64_t count, struct ki_run *run);

#endif
