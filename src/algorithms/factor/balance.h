/* A factor's two columns, made equally long. */
#ifndef KI_FACTOR_BALANCE_H
#define KI_FACTOR_BALANCE_H

#include "algorithms/factor/penalty.h"

struct ki_balance {
    kiln_matrix *rows, *columns; /* weights of A's and B's rows; NULL: 1 each */
    kiln_matrix *squares;        /* r x 1 */
    double *a, *b;               /* of each column of A and B the sum of squares, with weights */
};
/* counts: the weights, or NULL. */
kiln_status ki_balance_begin(struct ki_balance *balance, struct ki_arena *arena,
                             const struct ki_counts *counts, const kiln_matrix *A, const kiln_matrix *B);
kiln_status ki_balance_measure(struct ki_balance *balance, const kiln_matrix *A, const kiln_matrix *B);
/* The first `factors` columns of A times s_k and of B times 1 / s_k, by which the sum of both penalties is
 * least, if any is more than a little off. */
kiln_status ki_balance_run(struct ki_balance *balance, kiln_matrix *A, kiln_matrix *B, int64_t factors);

#endif
