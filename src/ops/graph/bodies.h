/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_GRAPH_BODIES_H
#define KI_GRAPH_BODIES_H

#include "ops/graph/ranks.h"

/* clang-format off */
#define KI_BODIES_graph(BODY)                                                                                \
    BODY(void, ranks_begin, (const struct ki_ranks *ranks, double *sums))                                    \
    BODY(void, ranks_step, (const struct ki_ranks *ranks, int64_t step, double *sums))
/* clang-format on */

#endif
