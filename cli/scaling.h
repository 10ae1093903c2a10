/* explain ... --gpus N --nodes M: what a pass and a run are expected to take on groups of GPUs. */
#ifndef CLI_SCALING_H
#define CLI_SCALING_H

#include <kiln/tune.h>

#include "common.h"

enum { TIMES_MOST = 32 }; /* powers of 2 up to 4096 GPUs and 65536 nodes */
struct scaling {
    struct scaled_time {
        int64_t gpus, nodes; /* in all */
        double pass, beside, sums, alone, seconds;
    } times[TIMES_MOST];
    int64_t count, passes;
    double one; /* seconds of a pass on one GPU */
};
/* The table "scaling": what one to `gpus` GPUs of a machine and then up to `nodes` such machines are
 * expected to take. */
void scaling_put(struct result *result, struct scaling *scaling, const struct verb *verb,
                 const kiln_work *work, int64_t gpus, int64_t nodes);

#endif
