/* One table of CPU bodies. Built once per instruction set, with KI_BODIES naming the table. */
#include "bodies/bodies.h"

#include "bodies/names.h"

KI_BODY_LIST(KI_BODY_PROTOTYPES)
KI_DOUBLE_BODY_LIST(KI_BODY_PROTOTYPES)

#define ROW_F32(result, name, parameters) .name = KI_BODY_NAME(name, f32),
#define ROW_F64(result, name, parameters) .name = KI_BODY_NAME(name, f64),

const struct ki_bodies KI_BODIES[2] = {{KI_BODY_LIST(ROW_F32) KI_DOUBLE_BODY_LIST(ROW_F64)},
                                       {KI_BODY_LIST(ROW_F64) KI_DOUBLE_BODY_LIST(ROW_F64)}};
