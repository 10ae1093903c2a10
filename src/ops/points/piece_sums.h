/* Sums of pieces of a vector: what K-Means draws rows by. */
#ifndef KI_PIECE_SUMS_H
#define KI_PIECE_SUMS_H

#include "kiln/ops.h"

/* sums[b] = the sum of P's numbers [b * piece, (b + 1) * piece), of all of which `pieces` is the batch. sums,
 * a number a piece, lies here; P (m x 1) stays where its rows are. Errors: those of memory and of the
 * device. */
kiln_status ki_piece_sums(kiln_matrix *sums, const kiln_matrix *P, int64_t piece, const kiln_batch *pieces);

#endif
