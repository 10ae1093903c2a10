/* This header says what the distances from the nearest centre would add up to with one centre more, for each
 * of several that might be it. */
#ifndef KI_POTENTIALS_H
#define KI_POTENTIALS_H

#include "kiln/ops.h"
#include "core/matrix.h"

struct ki_potentials {
    double *potential; /* k */
    const kiln_matrix *X, *C, *D, *weights;
};

/* potential_c = sum of s_i min(D_i, ||x_i - c||^2) over the rows of X, for each row c of C.
 *   X m x n, dense or CSR; C k x n, dense; D m x 1; weights (the s_i) m x 1 or NULL (ones);
 *   all of a type and on a device.
 * Distances of sparse rows come from products in double.
 * Cost: 2 nnz k flops, and one pass over X on a CPU; elsewhere a pass of kiln_assign for each c, and a copy
 * of D.
 * Determinism: run to run, and on the CPU for any number of threads. Errors: memory and device errors. */
kiln_status ki_potentials(const struct ki_potentials *of);

#endif
