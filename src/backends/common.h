/* What the GPU backends share: rows of the device list, and the answer to calls on a lost device. */
#ifndef KI_BACKENDS_COMMON_H
#define KI_BACKENDS_COMMON_H

#include "core/device.h"

/* ERR_DEVICE_LOST if it is lost: nothing of the vendor's may be called then. */
kiln_status ki_backend_alive(const kiln_device *device);
/* Appends a row to the list that a backend's list function was given. */
kiln_status ki_backend_append(kiln_device_info **infos, int64_t *count, const kiln_device_info *info);
/* Marks the row as not usable, for the reason of the error just recorded. */
void ki_backend_explain(kiln_device_info *info);

#endif
