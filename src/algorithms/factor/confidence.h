/* This header says what an implicit model makes of its entries. */
#ifndef KI_CONFIDENCE_H
#define KI_CONFIDENCE_H

#include "algorithms/algorithm.h"

/* The operations take entries s for a confidence of 1 + alpha |s|, or alpha |s|. *entries = R, or of
 * logarithms *own, a copy of R with the s whose confidence theirs is: s = sign(r) log(1 + |r| / epsilon). The
 * options are filled in; the caller frees *own. */
kiln_status ki_confidence(const kiln_matrix **entries, kiln_matrix **own, const char *call,
                          const kiln_matrix *R, const kiln_als_options *options);

#endif
