/* A sparse matrix transposed, a matrix of its own, made where the entries lie (derived/columns.c). */
#ifndef KI_TRANSPOSED_H
#define KI_TRANSPOSED_H

#include "kiln/matrix.h"

/* *T: X transposed, a new matrix beside it, in whose rows the entries keep the order of X's rows. X is sparse
 * and lies neither in processes nor in a file. Cost: a sort by column on a GPU; two walks by all threads on
 * the CPU, for a group of GPUs and where a GPU has no room to sort. ERR_LIMIT: 2^31 rows or more. */
kiln_status ki_transposed_new(kiln_matrix **T, const kiln_matrix *X);

#endif
