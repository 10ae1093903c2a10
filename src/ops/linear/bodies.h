/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_LINEAR_BODIES_H
#define KI_LINEAR_BODIES_H

#include "ops/linear/cg.h"
#include "ops/linear/dual_judge.h"
#include "ops/linear/dual_plane.h"
#include "ops/linear/families.h"
#include "ops/linear/gram.h"
#include "ops/linear/newton.h"
#include "ops/linear/scales.h"

/* clang-format off */
#define KI_BODIES_linear(BODY)                                                                               \
    BODY(void, cg_step, (const struct ki_cg *step))                                                          \
    BODY(kiln_status, column_sums, (const struct ki_column_sums *sums))                                      \
    BODY(void, dual_first, (struct ki_dual_walk *walk))                                                      \
    BODY(void, dual_join, (struct ki_dual_join *join))                                                       \
    BODY(void, dual_last, (struct ki_dual_walk *walk))                                                       \
    BODY(void, dual_measure, (double *square, const kiln_matrix *X, const double *reciprocal,                \
                              int64_t begin, int64_t end))                                                   \
    BODY(void, dual_move, (struct ki_dual_plane *plane))                                                     \
    BODY(void, dual_move_rows, (struct ki_dual_plane *plane))                                                \
    BODY(void, dual_plane, (struct ki_dual_plane *plane))                                                    \
    BODY(void, dual_moved, (struct ki_dual_plane *plane))                                                   \
    BODY(void, dual_sweep, (struct ki_dual *dual, int64_t until))                                            \
    BODY(void, dual_way, (struct ki_dual_plane *plane))                                                      \
    BODY(kiln_status, gram, (const struct ki_gram *gram))                                                    \
    BODY(void, loss_rows, (struct ki_loss_rows *rows))                                                       \
    BODY(void, pairs_run, (double *sums, const struct ki_pairs *pairs))                                      \
    BODY(void, scales_run, (double *sums, const struct ki_scales *scales))
/* clang-format on */

#endif
