/* Dense passes on a GPU: the layouts and the choice of one (dense_plans.c), the time that each takes
 * (dense_model.c) and its run (dense_run.c). */
#ifndef KI_MMCHAIN_DENSE_GPU_H
#define KI_MMCHAIN_DENSE_GPU_H

#include "pass/launch.h"

/* The layout that the model predicts to be the fastest. */
kiln_status ki_dense_choose(struct ki_plan *plan, const struct ki_chain *chain);
enum { KI_UNIT_THREADS = 2048 }; /* that a compute unit holds */

/* Fills in what a plan takes with `groups` on each compute unit: the pass, the last groups' idle time, the partial sums and
 * their end, for each K columns. */
void ki_dense_predict(struct ki_candidate *candidate, const struct ki_chain *chain, int64_t groups);
/* Groups that a compute unit holds, as far as registers and threads go. */
int64_t ki_dense_groups(const struct ki_plan *plan, const struct ki_chain *chain);
/* A compute unit's share of the memory's bandwidth, in bytes a nanosecond. */
double ki_dense_unit_memory(const kiln_device *device);

/* The layout that reads X twice, and runs everywhere. */
void ki_dense_wide(struct ki_plan *plan, const struct ki_chain *chain);

#endif
