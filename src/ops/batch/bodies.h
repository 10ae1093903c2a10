/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_BATCH_BODIES_H
#define KI_BATCH_BODIES_H

#include "ops/batch/batch.h"

struct batch_part;

/* clang-format off */
#define KI_BODIES_batch(BODY)                                                                                \
    BODY(void, batch_reduce, (kiln_matrix *result, const kiln_matrix *X, const struct kiln_batch *batch,     \
                              int kind, struct batch_part *partial))                                         \
    BODY(void, batch_scale, (kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,                 \
                             const struct kiln_batch *batch))
/* clang-format on */

#endif
