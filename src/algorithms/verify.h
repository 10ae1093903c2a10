/* Between verify.c (the sums) and verify_loss.c (a row's loss): slow reference code that shares nothing with the operations
 * it judges. */
#ifndef KI_VERIFY_H
#define KI_VERIFY_H

#include "algorithms/algorithm.h"

/* The loss of a row at eta (k of them for SOFTMAX) with target y, its derivative and its (expected) curvature, k of each.
 * INFINITY where eta is out of range. HINGE: y is 1 or -1. */
long double ki_verify_loss(long double *slope, long double *curvature, const kiln_loss *loss, double y,
                           const long double *eta, int64_t k);
/* eta at the mean mu, for a loss of kind GLM. */
double ki_verify_link(const kiln_loss *loss, double mu);

#endif
