/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_POINTS_BODIES_H
#define KI_POINTS_BODIES_H

#include "ops/points/assign.h"
#include "ops/points/guttman.h"
#include "ops/points/potentials.h"

/* clang-format off */
#define KI_BODIES_points(BODY)                                                                               \
    BODY(kiln_status, assign, (const struct ki_assign *assign))                                              \
    BODY(void, bounds_centres, (const struct ki_assign *assign))                                             \
    BODY(kiln_status, bounds, (const struct ki_assign *assign))                                              \
    BODY(void, bounds_add, (const struct ki_assign *assign))                                                 \
    BODY(void, furthest, (kiln_matrix *R, const kiln_matrix *distances, const kiln_matrix *labels))          \
    BODY(kiln_status, potentials, (const struct ki_potentials *of))                                         \
    BODY(kiln_status, guttman, (const struct ki_guttman *pairs))                                             \
    BODY(kiln_status, distances, (const struct ki_distances *of))
/* clang-format on */

#endif
