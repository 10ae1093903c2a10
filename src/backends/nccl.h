/* NCCL, NVIDIA's collectives between GPUs: what several have is added up on the first, what the first has goes to all. */
#ifndef KI_NCCL_H
#define KI_NCCL_H

#include "backends/cuda_types.h"
#include "core/device.h"

struct ki_nccl;

/* Connects different GPUs of this process, by their numbers; what is asked of them later is queued on their streams. NULL where
 * there is no NCCL, or none that works, which `teller` tells its user. */
struct ki_nccl *ki_nccl_unite(const kiln_device *teller, const int *gpus, const cuda_stream *streams,
                              int count);
void ki_nccl_part(struct ki_nccl *united, bool alive);
/* part[0] += part[1] + ..., or part[1] = part[2] = ... = part[0]. ERR_DEVICE_LOST: NCCL failed, and part[0] is undefined. */
kiln_status ki_nccl_sum(struct ki_nccl *united, const uint64_t *part, int64_t count, kiln_type type);
kiln_status ki_nccl_spread(struct ki_nccl *united, const uint64_t *part, int64_t count, kiln_type type);

#endif
