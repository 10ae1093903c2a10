/* Entries of a matrix where a number was missing, which a reader has filled with the mean of its column: the
 * matrix knows which these are (kiln_matrix.filled), for those who are to learn from some of the rows
 * alone. */
#ifndef KI_FILLS_H
#define KI_FILLS_H

#include <stdbool.h>

#include "kiln/matrix.h"

bool ki_is_filled(const kiln_matrix *X);
/* A copy of X in which these entries are filled anew, with the means over the rows that fold `held` does not
 * hold out: fold[i] != held. Errors: ERR_NOMEM, device errors. Cost: a pass over X on the host, its copy
 * there; a sparse X shares its structure. */
kiln_status ki_refill(kiln_matrix **refilled, const kiln_matrix *X, const int32_t *fold, int64_t held);

#endif
