/* What rounding does to PageRank's steps. */
#ifndef KI_RANKS_ERROR_H
#define KI_RANKS_ERROR_H

#include "kiln/ops.h"

/* A step that is rounded differs from the exact one by at most this, in the 1-norm of a column of ranks that add up to 1; `mass` is the
 * part of them that dangles. *measured: the relative error of the change that a step reports. */
double ki_ranks_error(double *measured, const kiln_ranks *ranks, double mass);

#endif
