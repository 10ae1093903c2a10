/* This folder's CPU bodies, a row each (bodies/bodies.h). */
#ifndef KI_SAMPLED_BODIES_H
#define KI_SAMPLED_BODIES_H

#include "ops/sampled/dirichlet.h"
#include "ops/sampled/factor_rows.h"
#include "ops/sampled/sddmm.h"
#include "ops/sampled/top_products.h"

/* clang-format off */
#define KI_BODIES_sampled(BODY)                                                                              \
    BODY(void, dirichlet, (const struct ki_dirichlet *dirichlet))                                            \
    BODY(void, factor_rows, (const struct ki_factor_rows *rows))                                             \
    BODY(void, sampled, (const struct ki_sampled *sampled))                                                 \
    BODY(void, top_few, (const struct ki_top_work *work))                                                    \
    BODY(void, top_products, (const struct ki_top_work *work))
/* clang-format on */

#endif
