/* kiln explain batch and kiln tune batch. */
#ifndef CLI_BATCH_PLANS_H
#define CLI_BATCH_PLANS_H

#include "common.h"

/* Each returns the exit code. */
int explain_batch(struct run *run);
int tune_batch(struct run *run);

#endif
