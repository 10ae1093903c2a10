/* Between checkpoint.c (when a state is written and read) and state.c (what it says). */
#ifndef KI_CHECKPOINT_PARTS_H
#define KI_CHECKPOINT_PARTS_H

#include "algorithms/run/checkpoint.h"
#include "algorithms/registry.h"

/* Names in the file. The rest are the algorithms' own. */
#define KI_CHECKPOINT_TEXT "checkpoint" /* the algorithm's name: no model has this text */

/* *container = what a run's checkpoint says of its algorithm, its options and its data. One pass over X. */
kiln_status ki_state_describe(struct ki_container *container, const struct ki_described *run);
/* ERR_MODEL, and what differs, unless `found`, of the file `path`, was written for the run that `now`
 * describes. */
kiln_status ki_state_compare(const struct ki_container *found, const struct ki_container *now,
                             const char *path);

kiln_status ki_state_copy(struct ki_container *to, const struct ki_container *from); /* adds */
kiln_status ki_state_put(struct ki_container *container, const struct ki_state *state, int count);
kiln_status ki_state_take(const struct ki_container *container, const struct ki_state *state, int count);
#endif
