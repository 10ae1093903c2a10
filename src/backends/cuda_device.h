/* Between the files of the CUDA backend: its devices (cuda.c), and their collectives (cuda_united.c). */
#ifndef KI_CUDA_DEVICE_H
#define KI_CUDA_DEVICE_H

#include "backends/cuda_types.h"
#include "core/device.h"

struct cuda {
    int device, architecture;
    cuda_context context;
    cuda_stream stream, uploads;
    cuda_event event; /* the kernels so far, for uploads to wait for */
};

/* Makes the device's context current. */
kiln_status ki_cuda_enter(kiln_device *device);

/* struct ki_backend tells what these do. */
void *ki_cuda_unite(kiln_device *const *members, int count);
void ki_cuda_part(void *united, bool alive);
kiln_status ki_cuda_sum(kiln_device *const *members, void *united, const struct ki_buffer *const *buffers,
                        int64_t count, kiln_type type);
kiln_status ki_cuda_spread(kiln_device *const *members, void *united, const struct ki_buffer *const *buffers,
                           int64_t count, kiln_type type);
int64_t ki_cuda_identity(kiln_device *device);
bool ki_cuda_invite(kiln_device *device, struct ki_invitation *invitation);
void *ki_cuda_accept(kiln_device *device, const struct ki_invitation *invitation, int rank, int count);

#endif
