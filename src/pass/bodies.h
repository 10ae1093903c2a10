/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_PASS_BODIES_H
#define KI_PASS_BODIES_H

#include "pass/chain.h"

/* clang-format off */
#define KI_BODIES_pass(BODY)                                                                                 \
    BODY(kiln_status, chain, (const struct ki_chain *chain))                                                 \
    BODY(void, combine, (kiln_matrix *W, const double *a, const kiln_matrix *X, const double *b,             \
                         const kiln_matrix *Y))                                                              \
    BODY(void, fill, (kiln_matrix *W, double value))
/* clang-format on */

#endif
