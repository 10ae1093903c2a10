#include "pass/dense/local_declared.h"

#include "core/arguments.h"
#include "pass/dense/local_declared.cl"

enum { GROUP = 64 };

KI_ARGUMENTS(local_declared);

static bool runs(kiln_device *device, struct ki_kernel *kernel, const struct ki_buffer *out) {
    int32_t found[GROUP];
    if (ki_kernel_launch(device, kernel, 1, GROUP, KI_PACK(local_declared, NULL, .out = out)) != KILN_OK ||
        ki_device_download(device, found, out, 0, sizeof found) != KILN_OK)
        return false;
    for (int i = 0; i < GROUP; i++)
        if (found[i] != GROUP - 1 - i) return false;
    return true;
}

kiln_status ki_find_local_declared(kiln_device *device) {
    struct ki_properties *properties = &device->properties;
    struct ki_kernel *kernel = NULL;
    struct ki_buffer out;
    kiln_status status = KILN_OK;
    if (!properties->local_hoped) return KILN_OK;
    const char *defines = KI_DEFINES("-DBYTES=%lld", (long long)properties->local_hoped);
    const kiln_status built =
        ki_kernel_get(&kernel, device, "local_declared", "local_declared", KILN_F32, defines);
    if (built != KILN_ERR_BUILD) { /* else the compiler refuses it */
        TRY(built);
        TRY(ki_device_scratch(device, &out, GROUP * sizeof(int32_t)));
        if (runs(device, kernel, &out)) properties->local_declared = properties->local_hoped;
        TRY(ki_device_alive(device));
    }
    properties->local_hoped = 0;
done:
    return status;
}
