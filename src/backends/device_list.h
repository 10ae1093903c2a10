/* Rows of the device list, for the GPU backends. */
#ifndef KI_DEVICE_LIST_H
#define KI_DEVICE_LIST_H

#include "core/device.h"

/* Appends a row to the list that a backend's list function was given. */
kiln_status ki_list_append(kiln_device_info **infos, int64_t *count, const kiln_device_info *info);
/* Marks the row as not usable, for the reason of the error just recorded. */
void ki_list_explain(kiln_device_info *info);

#endif
