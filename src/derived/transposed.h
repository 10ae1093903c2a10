/* A sparse matrix transposed, a matrix of its own, made where the entries lie (derived/columns.c). */
#ifndef KI_TRANSPOSED_H
#define KI_TRANSPOSED_H

#include <stdbool.h>

#include "kiln/matrix.h"

/* Returns whether X's device has its entries, or room for them and for sorting them: not where they lie in
 * processes, in a file or in parts, or are too many. X is sparse. */
bool ki_transposed_fits(const kiln_matrix *X);
/* *T: X transposed, a new matrix beside it, in whose rows the entries keep the order of X's rows. X fits.
 * Cost: a sort by column on a GPU, two walks by all threads on the CPU. ERR_LIMIT: 2^31 rows or more. */
kiln_status ki_transposed_new(kiln_matrix **T, const kiln_matrix *X);

#endif
