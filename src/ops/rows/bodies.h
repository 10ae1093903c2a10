/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_ROWS_BODIES_H
#define KI_ROWS_BODIES_H

#include "ops/rows/few_rows.h"

/* clang-format off */
#define KI_BODIES_rows(BODY)                                                                                 \
    BODY(void, few_rows, (struct ki_few_rows *few))
/* clang-format on */

#endif
