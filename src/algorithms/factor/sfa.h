/* This header has what sfa's training and its models share: the means, and factors with and without the
 * column that holds them. */
#ifndef KI_SFA_H
#define KI_SFA_H

#include "algorithms/factor/als.h"
#include "algorithms/run/arena.h"

struct ki_sfa_means {
    double mean, *row, *column;
};
/* mean: of R's entries; row[u] = sum_i (r_ui - mean) / (count + damping); column[i] = sum_u (r_ui - mean -
 * row[u]) / (...). ERR_DATA where an entry is not finite. */
kiln_status ki_sfa_means_measure(struct ki_sfa_means *means, struct ki_arena *arena, const kiln_matrix *R,
                                 double damping);
/* *S = R less the means, at R's entries, in the arena. */
kiln_status ki_sfa_centred(kiln_matrix **S, struct ki_arena *arena, const kiln_matrix *R,
                           const struct ki_sfa_means *means);
/* F = A without its last column; A = F and behind it `last`. */
kiln_status ki_sfa_factors(kiln_matrix *F, const kiln_matrix *A);
kiln_status ki_sfa_join(kiln_matrix *A, const kiln_matrix *F, const double *last);

#endif
