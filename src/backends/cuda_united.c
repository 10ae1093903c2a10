/* Collectives of CUDA devices, of one process or of several: who may take part, and their streams for NCCL
 * (nccl.c). */
#include "backends/cuda_device.h"
#include "backends/cuda_driver.h"
#include "backends/nccl.h"

enum { UNITED_MOST = 64 };

/* Two members on one GPU, as tests have them, are more than NCCL allows. */
void *ki_cuda_unite(kiln_device *const *members, int count) {
    int gpus[UNITED_MOST];
    cuda_stream streams[UNITED_MOST];
    for (int i = 0; i < count; i++) {
        const struct cuda *cuda = members[i]->impl;
        gpus[i] = cuda->device;
        streams[i] = cuda->stream;
        for (int j = 0; j < i; j++)
            if (gpus[j] == gpus[i]) return NULL;
    }
    return ki_nccl_unite(members[0], gpus, streams, count);
}

/* The identity is made of the GPU's UUID, which no other one has. */
int64_t ki_cuda_identity(kiln_device *device) {
    const struct cuda *cuda = device->impl;
    int64_t half[2] = {0, 0};
    if (!ki_nccl_there() || ki_cuda_enter(device) != KILN_OK ||
        KI_CUDA(device, device_uuid, (char *)half, cuda->device) != KILN_OK)
        return 0;
    const int64_t number = half[0] ^ half[1];
    return number ? number : 1;
}

bool ki_cuda_invite(kiln_device *device, struct ki_invitation *invitation) {
    return ki_cuda_enter(device) == KILN_OK && ki_nccl_invite(invitation);
}

void *ki_cuda_accept(kiln_device *device, const struct ki_invitation *invitation, int rank, int count) {
    const struct cuda *cuda = device->impl;
    if (ki_cuda_enter(device) != KILN_OK) return NULL;
    return ki_nccl_accept(device, invitation, cuda->stream, rank, count);
}

void ki_cuda_part(void *united, bool alive) {
    ki_nccl_part(united, alive);
}

static kiln_status
together(kiln_device *const *members, void *united, const struct ki_buffer *const *buffers, int64_t count,
         kiln_type type, kiln_status (*collective)(struct ki_nccl *, const uint64_t *, int64_t, kiln_type)) {
    uint64_t part[UNITED_MOST];
    for (int i = 0; buffers[i]; i++) part[i] = buffers[i]->handle + (uint64_t)buffers[i]->offset;
    const kiln_status status = collective(united, part, count, type);
    members[0]->lost = members[0]->lost || status == KILN_ERR_DEVICE_LOST;
    return status;
}

kiln_status ki_cuda_sum(kiln_device *const *members, void *united, const struct ki_buffer *const *buffers,
                        int64_t count, kiln_type type) {
    return together(members, united, buffers, count, type, ki_nccl_sum);
}

kiln_status ki_cuda_spread(kiln_device *const *members, void *united, const struct ki_buffer *const *buffers,
                           int64_t count, kiln_type type) {
    return together(members, united, buffers, count, type, ki_nccl_spread);
}
