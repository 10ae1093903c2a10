/* A GPU beside an H200, whose constants the model of dense passes has (hopper.h): how many times as long its
 * latencies and its instructions take. They are measured with the device's other figures (choose/pace.c) and
 * kept in the machine's profile. A Hopper GPU has 1 and 1, as has one that was not measured. */
#ifndef KI_PACE_H
#define KI_PACE_H

#include "core/device.h"
#include "core/kernels/cache.h"
#include "core/matrix.h"

/* Whether hopper.h was fitted to GPUs of its kind. */
static inline bool ki_is_hopper(const struct ki_properties *device) {
    return device->architecture == 90 || (device->architecture == 0 && device->local_declared > 0);
}

/* Looks once for what the profile has of a GPU: its paces, and the bytes a second at which it reads. */
kiln_status ki_find_pace(kiln_device *device);
/* For passes over X: 1 and 1 where nothing is known, or the device is deterministic. */
struct ki_pace ki_pace_of(const kiln_matrix *X);
/* Bytes a second; 0 where nothing is known, or the device is deterministic. */
double ki_read_of(const kiln_device *device);

#endif
