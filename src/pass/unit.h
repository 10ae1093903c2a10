/* This header says what a GPU's compute unit has room for, which bounds how much of a launch runs at once.
 *
 * CUDA tells it, and for NVIDIA's OpenCL it follows from the compute capability (backends/opencl.c). Other
 * GPUs are taken to have as much as most of NVIDIA's. */
#ifndef KI_UNIT_H
#define KI_UNIT_H

#include "core/device.h"

struct ki_unit {
    int64_t registers, threads, groups; /* registers of 32 bits */
};

static inline struct ki_unit ki_unit_of(const kiln_device *device) {
    const struct ki_properties *told = &device->properties;
    return (struct ki_unit){told->registers ? told->registers : 65536,
                            told->unit_threads ? told->unit_threads : 2048,
                            told->unit_groups ? told->unit_groups : 32};
}

#endif
