/* This header has what gap's training and its models share. */
#ifndef KI_GAP_H
#define KI_GAP_H

#include "algorithms/topics/topics.h"

void ki_gap_fill(kiln_gap_options *options, kiln_type type); /* 0 becomes the default */

/* A and B from X's leading singular vectors (gap_start.c); what is below 1e-6 becomes `least`. */
kiln_status ki_gap_start(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, int64_t seed, double least);

/* One side of the problem, A given B, or B given A (gap_gain.c). */
struct ki_gap_side {
    kiln_matrix *F, *Y;      /* r x k: the factor; Q B or Q^T A, which updates overwrite */
    kiln_matrix *V, *before; /* r x k: work space, and F before a step that lifts */
    kiln_matrix *totals;     /* r x 1: what a row of the best F adds up to, times what it is divided by */
    const kiln_matrix *rows, *topics; /* ones, r x 1 and k x 1 */
    double *a, *b;                    /* work space, k each */
    double shape;
};
/* Y = F o Y, and with lift > 0 lift times weight_c (NULL: 1) times by how much an entry has to grow. */
kiln_status ki_gap_product(struct ki_gap_side *side, const double *under, double lift, const double *weight);
/* F_ic = (Y_ic + shape - 1) / under_c of that product: the multiplicative update. */
kiln_status ki_gap_divide(struct ki_gap_side *side, const double *under);
/* *gain = what the best F takes off the objective at most; Y as it was. */
kiln_status ki_gap_gain(double *gain, struct ki_gap_side *side, const double *under);

#endif
