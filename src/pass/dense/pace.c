#include "pass/dense/pace.h"

#include <stdio.h>

static kiln_status recall(double *value, kiln_device *device, const char *figure, const char *type) {
    char owner[KI_FIGURE_OWNER], name[KI_FIGURE_OWNER + 60];
    bool found;
    ki_figures_owner(owner, &device->info);
    snprintf(name, sizeof name, "%s%s%s %s", figure, *type ? " " : "", type, owner);
    return ki_cache_profile_get(&found, value, device, name);
}

kiln_status ki_find_pace(kiln_device *device) {
    struct ki_cache *cache;
    kiln_status status = KILN_OK;
    if (!device->properties.is_gpu) return KILN_OK;
    TRY(ki_cache_of(&cache, device));
    if (cache->recalled.known) return KILN_OK;
    TRY(recall(&cache->recalled.read, device, "bandwidth", ""));
    for (int type = KILN_F32; type <= KILN_F64 && !ki_is_hopper(&device->properties); type++) {
        struct ki_pace *pace = &cache->recalled.pace[type == KILN_F64];
        TRY(recall(&pace->latency, device, "dense latency", ki_type_name((kiln_type)type)));
        TRY(recall(&pace->issue, device, "dense issue", ki_type_name((kiln_type)type)));
    }
    cache->recalled.known = true;
done:
    return status;
}

/* Times that an earlier process measured must not decide about the order of sums of a deterministic one. */
static const struct ki_cache *measured(const kiln_device *device) {
    return device->options.deterministic ? NULL : device->cache;
}

struct ki_pace ki_pace_of(const kiln_matrix *X) {
    const struct ki_cache *cache = measured(X->device);
    const struct ki_pace found = cache ? cache->recalled.pace[X->type == KILN_F64] : (struct ki_pace){0, 0};
    return (struct ki_pace){found.latency > 0 ? found.latency : 1, found.issue > 0 ? found.issue : 1};
}

double ki_read_of(const kiln_device *device) {
    const struct ki_cache *cache = measured(device);
    return cache ? cache->recalled.read : 0;
}
