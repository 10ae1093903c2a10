/* NCCL, NVIDIA's collectives between GPUs: what several have is added up on the first, what the first has
 * goes to all. */
#ifndef KI_NCCL_H
#define KI_NCCL_H

#include "backends/cuda_types.h"
#include "core/backend.h"
#include "core/device.h"

struct ki_nccl;

/* Returns whether there is an NCCL that works. */
bool ki_nccl_there(void);
/* Connects different GPUs of this process, by their numbers; what is asked of them later is queued on their
 * streams. NULL where there is no NCCL, or none that works, which `teller` tells its user. */
struct ki_nccl *ki_nccl_unite(const kiln_device *teller, const int *gpus, const cuda_stream *streams,
                              int count);
/* The same between processes, of which each takes part with one GPU. The first makes an invitation, false
 * where it cannot, and all accept it at once: that waits for all of them, with the GPU's context current.
 * ki_nccl_sum and _spread then take one part, this process's own. */
bool ki_nccl_invite(struct ki_invitation *invitation);
struct ki_nccl *ki_nccl_accept(const kiln_device *teller, const struct ki_invitation *invitation,
                               cuda_stream stream, int rank, int count);
void ki_nccl_part(struct ki_nccl *united, bool alive);
/* The first's part += those of all others, or theirs = the first's. ERR_DEVICE_LOST: NCCL failed, and the
 * result is undefined. */
kiln_status ki_nccl_sum(struct ki_nccl *united, const uint64_t *part, int64_t count, kiln_type type);
kiln_status ki_nccl_spread(struct ki_nccl *united, const uint64_t *part, int64_t count, kiln_type type);

#endif
