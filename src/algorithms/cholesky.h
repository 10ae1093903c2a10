/* Normal equations of a few hundred or thousand columns on the host: M = U^T U, and solutions by U. */
#ifndef KI_CHOLESKY_H
#define KI_CHOLESKY_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln.h"

/* U, size x size by rows from the diagonal on, to the factor of U^T U. What is left of a diagonal element below that part of
 * its scale becomes the scale, and *replaced true; false where it is not positive then. */
bool ki_factorise(double *U, int64_t size, const double *scale, double part, bool *replaced);
/* r = U^-1 U^-T r; the square of U^-T r's length. The same by a U that ki_narrow has been at, which halves what is read. */
double ki_substitute(const double *U, double *r, int64_t size);
double ki_substitute_narrow(const float *U, double *r, int64_t size);
void ki_narrow(double *U, int64_t count); /* to floats, where they are */
/* What kiln_gram of X, in memory, takes on the CPU, in passes over X. */
double ki_gram_price(const kiln_matrix *X);

#endif
