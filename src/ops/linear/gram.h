/* G = (X - 1 c)^T diag(v) (X - 1 c) and g = (X - 1 c)^T v. */
#ifndef KI_GRAM_H
#define KI_GRAM_H

#include "core/matrix.h"

struct ki_gram {
    kiln_matrix *G, *g;           /* n x n; n x 1 or NULL */
    const kiln_matrix *X, *v, *c; /* v m x 1 or NULL (ones), c n x 1 or NULL (zeros) */
};

#endif
