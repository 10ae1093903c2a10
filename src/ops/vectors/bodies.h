/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_VECTORS_BODIES_H
#define KI_VECTORS_BODIES_H

#include <stdbool.h>

#include "kiln/ops.h"

/* clang-format off */
#define KI_BODIES_vectors(BODY)                                                                              \
    BODY(void, copy_rows, (kiln_matrix *R, const kiln_matrix *X, const int64_t *rows))                       \
    BODY(void, fill_random, (kiln_matrix *W, kiln_distribution distribution, uint64_t seed,                  \
                             uint64_t stream))                                                               \
    BODY(void, map, (kiln_matrix *W, kiln_map_kind kind, const kiln_matrix *X))                              \
    BODY(void, reduce, (double *result, const kiln_matrix *X, const kiln_matrix *Y, int kind, bool scaled))  \
    BODY(void, times, (kiln_matrix *W, const kiln_matrix *X, const kiln_matrix *Y))
/* clang-format on */

#endif
