/* --checkpoint, --checkpoint-every and --resume: the checkpoint of a verb's run. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "common.h"

/* Before the data are read. 0 or an exit code. */
int checkpoint_open(struct run *run);
/* Returns what the run's control is to be: with the checkpoint, if there is one. */
kiln_control checkpoint_control(const struct run *run, kiln_control control);
/* The section "checkpoint", null without one. */
void checkpoint_put(struct result *result, const struct run *run);
/* A warning where the checkpoint could not be written. */
void checkpoint_warn(const struct run *run);
/* Tells how an interrupted run, or one that came to its limit, goes on; nothing without a checkpoint. */
void checkpoint_tell(const struct run *run);

#endif
