/* explain ... --gpus N --nodes M: what a pass and a run are expected to take on groups of GPUs. */
#ifndef CLI_SCALING_H
#define CLI_SCALING_H

#include <kiln/tune.h>

#include "common.h"

/* Prints, or puts into `object` under "scaling", what one to `gpus` GPUs of a machine and then up to `nodes` such machines are expected to
 * take. */
void scaling_tell(const struct verb *verb, const kiln_work *work, int64_t gpus, int64_t nodes,
                  json_t *object);

#endif
