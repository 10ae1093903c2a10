/* One table of CPU bodies. Built once per instruction set, with KI_BODIES naming the table. */
#include "bodies/bodies.h"

#include <math.h>
#include <string.h>

#include "core/size.h"
#include "core/threads.h"
#include "dialect/scalar_math.h"
#include "ops/reduce.h"

#include "bodies/each_real.h"

#define TABLE(type)                                                                                          \
    {                                                                                                        \
        .chain = chain##type, .combine = combine##type, .times = times##type, .map = map##type,              \
        .fill = fill##type, .fill_random = fill_random##type, .read = read##type, .reduce = reduce##type,    \
        .cg_step = cg_step##type, .pairs_run = pairs_run##type, .scales_run = scales_run##type,              \
        .loss_rows = loss_rows##type, .gram = gram##type, .column_dot = column_dot,                          \
        .column_add = column_add, .column_scale = column_scale                                               \
    }

const struct ki_bodies KI_BODIES[2] = {TABLE(_f32), TABLE(_f64)};
