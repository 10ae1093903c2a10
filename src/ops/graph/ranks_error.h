/* This header says what rounding does to PageRank's steps, and whether links have weights. */
#ifndef KI_RANKS_ERROR_H
#define KI_RANKS_ERROR_H

#include <stdbool.h>

#include "kiln/ops.h"

/* A step that is rounded differs from the exact one by at most this, in the 1-norm of a column of ranks
 * that add up to 1; `mass` is the part of them that dangles. *measured: the relative error of the change
 * that a step reports. */
double ki_ranks_error(double *measured, const kiln_ranks *ranks, double mass);

/* *arrivals = how many links lead to each vertex, n x 1, where steps add them up as they come (A streams):
 * what rounding does is then more than ki_ranks_error by half an epsilon times the sum of these numbers, each
 * times the vertex's rank. Else NULL. One pass over A. */
kiln_status ki_ranks_arrivals(kiln_matrix **arrivals, const kiln_ranks *ranks);

/* Finds whether any of A's links has a weight other than 1. A dense A's have. Wherever A's rows lie. */
kiln_status ki_links_weighted(bool *weighted, const kiln_matrix *A);

#endif
