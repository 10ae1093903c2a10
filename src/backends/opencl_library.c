/* Loading the OpenCL ICD loader, listing what it offers, and sorting its error codes. */
#include "backends/opencl_library.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/library.h"
#include "core/seams.h"

struct ki_opencl_library ki_opencl;

static const struct ki_symbol symbols[] = {
#define FUNCTION(result, member, symbol, parameters) {#symbol, &ki_opencl.member},
#include "backends/opencl.fn.h"
#undef FUNCTION
};

static const char *const members[] = {
#define FUNCTION(result, member, symbol, parameters) #member,
#include "backends/opencl.fn.h"
#undef FUNCTION
};

static struct ki_library library;
static const char *missing; /* a function that this loader lacks */

static void load(void) {
    if (!ki_library_name(&library, "libOpenCL.so.1") && !ki_library_name(&library, "libOpenCL.so")) return;
    missing = ki_library_resolve(&library, symbols, sizeof symbols / sizeof *symbols);
}

/* pocl-opencl-icd brings a device but no loader, so that both are named. */
#define INSTALL "apt install pocl-opencl-icd ocl-icd-libopencl1"

/* Loads the ICD loader, once in a process; ERR_DEVICE with a hint if there is none. */
static kiln_status load_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static struct ki_fork_owner owner;
    const kiln_status own = ki_fork_own(&owner, "opencl: the driver");
    if (own != KILN_OK) return own;
    pthread_once(&once, load);
    if (!library.handle) {
        if (library.broken[0])
            ki_fail(KILN_ERR_DEVICE, "opencl: the loader does not load: %s", library.broken);
        else
            ki_fail(KILN_ERR_DEVICE, "opencl: libOpenCL.so.1 not found: no OpenCL loader here");
        return ki_hint(INSTALL ", or --device auto");
    }
    if (missing) {
        ki_fail(KILN_ERR_DEVICE, "opencl: %s has no %s: it is older than OpenCL 1.2", library.path, missing);
        return ki_hint("apt install ocl-icd-libopencl1");
    }
    return KILN_OK;
}

/* NVIDIA's driver is in this container, but the file that makes the loader see it was not passed in. */
static bool nvidia_icd_missing(void) {
    struct ki_library nvidia = {0};
    return access("/etc/OpenCL/vendors/nvidia.icd", F_OK) != 0 &&
           ki_library_name(&nvidia, "libnvidia-opencl.so.1");
}

static kiln_status nothing_found(void) {
    ki_fail(KILN_ERR_DEVICE, "opencl: %s is there, but no driver in /etc/OpenCL/vendors offers a device",
            library.path);
    if (nvidia_icd_missing())
        return ki_hint(
            "mkdir -p /etc/OpenCL/vendors && echo libnvidia-opencl.so.1 > /etc/OpenCL/vendors/nvidia.icd");
    return ki_hint(INSTALL);
}

enum { PLATFORMS_MAX = 32, DEVICES_MAX = 64 };
enum { TYPE_CPU = 1 << 1, TYPE_GPU = 1 << 2, DEVICE_TYPE = 0x1000 };
enum { PLATFORM_NOT_FOUND = -1001 };

/* Appends the devices of one platform. A platform without devices, or broken, is passed over: others may
 * work. */
static kiln_status find_on(struct ki_opencl_device **devices, int *count, cl_object platform,
                           int platform_number) {
    cl_object ids[DEVICES_MAX];
    unsigned found = 0;
    const uint64_t every_type = 0xFFFFFFFF;
    if (ki_opencl.devices(platform, every_type, DEVICES_MAX, ids, &found)) return KILN_OK;
    for (unsigned i = 0; i < found && i < DEVICES_MAX; i++) {
        struct ki_opencl_device *grown = ki_resize(*devices, (size_t)(*count + 1) * sizeof *grown);
        if (!grown) return ki_fail_nomem((size_t)(*count + 1) * sizeof *grown, "the device list");
        *devices = grown;
        uint64_t type = 0;
        if (ki_opencl.device_info(ids[i], DEVICE_TYPE, sizeof type, &type, NULL)) type = 0;
        grown[(*count)++] = (struct ki_opencl_device){
            platform, ids[i], platform_number, (int)i, (type & TYPE_GPU) != 0, (type & TYPE_CPU) != 0};
    }
    return KILN_OK;
}

/* Drivers begin with the first question, and PoCL 3.1 and others crash where two threads ask it at once. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

static kiln_status find_all(struct ki_opencl_device **devices, int *count) {
    cl_object platforms[PLATFORMS_MAX];
    unsigned platform_count = 0;
    struct ki_opencl_device *found = NULL;
    int found_count = 0;
    kiln_status status;
    TRY(load_once());
    int code = ki_opencl.platforms(PLATFORMS_MAX, platforms, &platform_count);
    if (code && code != PLATFORM_NOT_FOUND) TRY(ki_opencl_fail(NULL, code, "platforms"));
    for (unsigned i = 0; !code && i < platform_count && i < PLATFORMS_MAX; i++)
        TRY(find_on(&found, &found_count, platforms[i], (int)i));
    if (found_count == 0) TRY(nothing_found());
    *devices = found;
    *count = found_count;
    found = NULL;
done:
    ki_free(found);
    return status;
}

kiln_status ki_opencl_find(struct ki_opencl_device **devices, int *count) {
    pthread_mutex_lock(&asking);
    const kiln_status status = find_all(devices, count);
    pthread_mutex_unlock(&asking);
    return status;
}

enum opencl_class { REFUSED, NO_MEMORY, FATAL };

static const struct {
    int code;
    enum opencl_class is;
    const char *name;
} codes[] = {
    {-2, FATAL, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, REFUSED, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, NO_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, NO_MEMORY, "CL_OUT_OF_RESOURCES"},
    {-6, NO_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {-11, REFUSED, "CL_BUILD_PROGRAM_FAILURE"},
    {-14, FATAL, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, REFUSED, "CL_INVALID_VALUE"},
    {-34, FATAL, "CL_INVALID_CONTEXT"},
    {-36, FATAL, "CL_INVALID_COMMAND_QUEUE"},
    {-38, REFUSED, "CL_INVALID_MEM_OBJECT"},
    {-42, REFUSED, "CL_INVALID_BINARY"},
    {-43, REFUSED, "CL_INVALID_BUILD_OPTIONS"},
    {-45, REFUSED, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, REFUSED, "CL_INVALID_KERNEL_NAME"},
    {-48, REFUSED, "CL_INVALID_KERNEL"},
    {-49, REFUSED, "CL_INVALID_ARG_INDEX"},
    {-50, REFUSED, "CL_INVALID_ARG_VALUE"},
    {-51, REFUSED, "CL_INVALID_ARG_SIZE"},
    {-52, REFUSED, "CL_INVALID_KERNEL_ARGS"},
    {-54, REFUSED, "CL_INVALID_WORK_GROUP_SIZE"},
    {-61, NO_MEMORY, "CL_INVALID_BUFFER_SIZE"},
    {-63, REFUSED, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-9999, FATAL, "a crashed kernel, in NVIDIA's OpenCL"},
};

/* Calls that wait for queued work. NVIDIA's OpenCL reports a kernel that crashed as "out of resources" there.
 */
static bool waits(const char *call) {
    return strcmp(call, "finish") == 0 || strcmp(call, "read") == 0 || strcmp(call, "write") == 0;
}

static const char *symbol_of(const char *member) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(members[i], member) == 0) return symbols[i].name;
    return member;
}

kiln_status ki_opencl_fail(kiln_device *device, int code, const char *call) {
    enum opencl_class is = REFUSED;
    const char *name = "an error without a name here";
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code) is = codes[i].is, name = codes[i].name;
    if (code == -5 && waits(call)) is = FATAL;
    call = symbol_of(call);
    if (is == NO_MEMORY) {
        ki_fail_native(KILN_ERR_DEVICE_NOMEM, "opencl", code, "opencl: %s: out of device memory (%s, %d)",
                       call, name, code);
        return ki_hint("--type f32, less data, or --device cpu");
    }
    if (is == FATAL && device) {
        device->lost = true;
        ki_fail_native(KILN_ERR_DEVICE_LOST, "opencl", code,
                       "device %s is lost: %s: %s (%d), caused by this call or by work queued before it",
                       device->info.name, call, name, code);
        return ki_hint("start the program again");
    }
    ki_fail_native(KILN_ERR_DEVICE, "opencl", code, "opencl: %s: %s (%d)", call, name, code);
    return ki_hint("--device cpu; 'kiln doctor' checks OpenCL");
}
