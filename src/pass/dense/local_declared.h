/* On-chip memory that a kernel may declare beyond what its device names. */
#ifndef KI_LOCAL_DECLARED_H
#define KI_LOCAL_DECLARED_H

#include "core/device.h"

/* Settles properties.local_declared: where the backend hopes for more than the device names, a kernel that
 * declares so much is built (once; then it comes from the cache of kernels) and run. A compiler that refuses
 * it, or a driver the launch, is no error. Asked before the plans of a dense pass are made, so that only what
 * needs to know waits for the build. */
kiln_status ki_find_local_declared(kiln_device *device);

#endif
