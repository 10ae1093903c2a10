/* Rows of the device list, for the GPU backends. */
#include "backends/device_list.h"

#include <stdio.h>

#include "core/seams.h"

kiln_status ki_list_append(kiln_device_info **infos, int64_t *count, const kiln_device_info *info) {
    const size_t bytes = (size_t)(*count + 1) * sizeof **infos;
    kiln_device_info *grown = ki_resize(*infos, bytes);
    if (!grown) return ki_fail_nomem(bytes, "the device list");
    grown[(*count)++] = *info;
    *infos = grown;
    return KILN_OK;
}

void ki_list_explain(kiln_device_info *info) {
    info->usable = 0;
    snprintf(info->reason, sizeof info->reason, "%.255s", kiln_last_error()->message);
    snprintf(info->hint, sizeof info->hint, "%.255s", kiln_last_error()->hint);
}
