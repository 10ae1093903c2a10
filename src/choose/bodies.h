/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_CHOOSE_BODIES_H
#define KI_CHOOSE_BODIES_H

#include "kiln/matrix.h"

/* clang-format off */
#define KI_BODIES_choose(BODY)                                                                               \
    BODY(void, read, (const kiln_matrix *A, const kiln_matrix *sums))
/* clang-format on */

#endif
