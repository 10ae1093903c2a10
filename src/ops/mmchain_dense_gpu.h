/* Dense passes on a GPU: the choice of a layout (mmchain_dense_model.c) and its run (mmchain_dense_gpu.c). */
#ifndef KI_MMCHAIN_DENSE_GPU_H
#define KI_MMCHAIN_DENSE_GPU_H

#include "ops/mmchain_gpu.h"

/* The layout that the model predicts to be the fastest. */
void ki_dense_choose(struct ki_plan *plan, const struct ki_chain *chain);
/* The layout that reads X twice, and runs everywhere. */
void ki_dense_wide(struct ki_plan *plan, const struct ki_chain *chain);

#endif
