/* One table of CPU bodies. Built once per instruction set, with KI_BODIES naming the table. */
#include "bodies/bodies.h"

#include <math.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "dialect/scalar_math.h"

#include "bodies/each_real.h"

#define ROW_F32(result, name, parameters) .name = name##_f32,
#define ROW_F64(result, name, parameters) .name = name##_f64,
#define ROW_DOUBLE(result, name, parameters) .name = name,

const struct ki_bodies KI_BODIES[2] = {{KI_BODY_LIST(ROW_F32) KI_DOUBLE_BODY_LIST(ROW_DOUBLE)},
                                       {KI_BODY_LIST(ROW_F64) KI_DOUBLE_BODY_LIST(ROW_DOUBLE)}};
