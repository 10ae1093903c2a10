/* This header has what gap's training and its models share. */
#ifndef KI_GAP_H
#define KI_GAP_H

#include "algorithms/topics/topics.h"

void ki_gap_fill(kiln_gap_options *options, kiln_type type); /* 0 becomes the default */

/* A and B from X's leading singular vectors (gap_start.c); what is below 1e-6 becomes `least`. */
kiln_status ki_gap_start(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, int64_t seed, double least);

/* A_ic becomes (A_ic Y_ic + shape - 1) / (sums_c + rate) with Y = Q B, the multiplicative update; Y is
 * overwritten. */
struct ki_gap_rows {
    double shape, rate;
    const double *sums; /* of B's columns, k */
    double *a, *b;      /* work space, k each */
    const kiln_matrix *ones;
};
kiln_status ki_gap_update(kiln_matrix *A, kiln_matrix *Y, const struct ki_gap_rows *rows);

#endif
