/* This header says what an implicit model makes of its entries. */
#ifndef KI_CONFIDENCE_H
#define KI_CONFIDENCE_H

#include "algorithms/algorithm.h"

/* The operations take entries s for a confidence of 1 + alpha |s|. *entries = R, or *own, a copy of R with
 * the s whose confidence that is: s = sign(r) log(1 + |r| / epsilon), or sign(r) (|r| - 1 / alpha). ERR_DATA
 * where the latter's sign would change. The options are filled in; the caller frees *own. */
kiln_status ki_confidence(const kiln_matrix **entries, kiln_matrix **own, const char *call,
                          const kiln_matrix *R, const kiln_als_options *options);

#endif
