/* This header says what a GPU's compute unit has room for, which bounds how much of a launch runs at once.
 *
 * CUDA tells the registers; threads and work-groups follow from the compute capability, as NVIDIA's
 * programming guide has them. Of other GPUs nothing is told: they are taken to have as much as most of
 * those. */
#ifndef KI_UNIT_H
#define KI_UNIT_H

#include "core/device.h"

struct ki_unit {
    int64_t registers, threads, groups; /* registers of 32 bits */
};

static inline struct ki_unit ki_unit_of(const kiln_device *device) {
    static const struct {
        int from; /* the least compute capability, times ten */
        int threads, groups;
    } rows[] = {{110, 1536, 24}, {90, 2048, 32}, {89, 1536, 24}, {86, 1536, 16},
                {80, 2048, 32},  {75, 1024, 16}, {0, 2048, 32}};
    const struct ki_properties *properties = &device->properties;
    int row = 0;
    while (properties->architecture < rows[row].from) row++;
    return (struct ki_unit){properties->registers ? properties->registers : 65536, rows[row].threads,
                            rows[row].groups};
}

#endif
