/* A libcuda.so.1 without a GPU: host memory behind the calls, and each can be made to fail. Its functions
 * have the shapes that the backend believes in, from the same list. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda_types.h"
#include "stub.h"

#define FUNCTION(member, symbol, parameters) int symbol parameters;
#include "backends/cuda.fn.h"
#undef FUNCTION

#define STUB stub_cuda
extern struct stub stub_cuda;
struct stub stub_cuda;

static char stream, event, function;
enum { DEVICES = 2, UNITS = 4, LOCAL_MAX = 232448 };
static const size_t memory = (size_t)1 << 30;
static char contexts[DEVICES];
static _Thread_local const char *now; /* the current one */

static bool is_context(const char *context) {
    return context == &contexts[0] || context == &contexts[1];
}

/* Never given back; a test sets stub_cuda.used to zero. */
static void *take(size_t bytes) {
    static _Alignas(16) char arena[1 << 23];
    const int64_t room = ((int64_t)bytes + 15) / 16 * 16, from = (STUB.used += room) - room;
    if (from + room <= (int64_t)sizeof arena) return arena + from;
    STUB.used -= room;
    return NULL;
}

int cuInit(unsigned flags) {
    CALL("cuInit");
    return flags ? 1 : 0;
}

int cuDriverGetVersion(int *version) {
    CALL("cuDriverGetVersion");
    *version = 13000;
    return 0;
}

/* The two that tell about errors are not counted: they are called on every failure. */
int cuGetErrorName(int code, const char **text) {
    *text = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 999 ? "CUDA_ERROR_UNKNOWN" : NULL;
    return *text ? 0 : 1;
}

int cuGetErrorString(int code, const char **text) {
    *text = code == 700 ? "an illegal memory access was encountered" : NULL;
    return *text ? 0 : 1;
}

int cuDeviceGetCount(int *count) {
    CALL("cuDeviceGetCount");
    *count = DEVICES;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    CALL("cuDeviceGet");
    if (ordinal < 0 || ordinal >= DEVICES) return 101;
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int bytes, int device) {
    CALL("cuDeviceGetName");
    snprintf(name, (size_t)bytes, "Stub %d", device);
    return 0;
}

int cuDeviceGetUuid_v2(char *uuid, int device) {
    CALL("cuDeviceGetUuid_v2");
    memset(uuid, 0, 16);
    uuid[0] = (char)(1 + device);
    uuid[1] = (char)STUB.machine;
    return device < DEVICES ? 0 : 101;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    CALL("cuDeviceTotalMem_v2");
    *bytes = memory;
    return device < DEVICES ? 0 : 101;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    CALL("cuDeviceGetAttribute");
    static const struct {
        int attribute, value;
    } attributes[] = {{1, 1024},
                      {8, 49152},
                      {10, 32},
                      {16, UNITS},
                      {75, 9},
                      {76, 0},
                      {82, 65536},
                      {97, LOCAL_MAX},
                      {36, 3201000},
                      {37, 6144},
                      {39, STUB_UNIT_THREADS},
                      {106, STUB_UNIT_GROUPS}};
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
            return device < DEVICES ? 0 : 101;
        }
    return 1;
}

int cuDevicePrimaryCtxRetain(cuda_context *retained, int device) {
    CALL("cuDevicePrimaryCtxRetain");
    if (device < 0 || device >= DEVICES) return 101;
    *retained = (cuda_context)(void *)&contexts[device];
    STUB.live++;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    CALL("cuDevicePrimaryCtxRelease_v2");
    STUB.live--;
    return device < DEVICES ? 0 : 101;
}

int cuCtxSetCurrent(cuda_context current) {
    CALL("cuCtxSetCurrent");
    now = (const char *)(const void *)current;
    return is_context(now) ? 0 : 201;
}

int cuDeviceCanAccessPeer(int *possible, int device, int peer) {
    CALL("cuDeviceCanAccessPeer");
    *possible = device != peer;
    return device < DEVICES && peer < DEVICES ? 0 : 101;
}

/* As often as one likes, and already done, as it may be where another library shares the context. */
int cuCtxEnablePeerAccess(cuda_context peer, unsigned flags) {
    CALL("cuCtxEnablePeerAccess");
    if (!is_context((const char *)(const void *)peer) || (const char *)(const void *)peer == now || flags)
        return 1;
    return 704;
}

int cuStreamCreate(cuda_stream *made, unsigned flags) {
    CALL("cuStreamCreate");
    *made = (cuda_stream)(void *)&stream;
    STUB.live++;
    return flags > 1;
}

int cuStreamDestroy_v2(cuda_stream destroyed) {
    CALL("cuStreamDestroy_v2");
    STUB.live--;
    return (void *)destroyed == &stream ? 0 : 400;
}

int cuCtxSynchronize(void) {
    CALL("cuCtxSynchronize");
    return 0;
}

int cuStreamSynchronize(cuda_stream awaited) {
    CALL("cuStreamSynchronize");
    return (void *)awaited == &stream ? 0 : 400;
}

/* Everything happens at once here, so that fences have nothing to do. */
int cuStreamWaitEvent(cuda_stream waits, cuda_event for_event, unsigned flags) {
    CALL("cuStreamWaitEvent");
    return flags || (void *)waits != &stream || (void *)for_event != &event ? 400 : 0;
}

int cuEventCreate(cuda_event *made, unsigned flags) {
    CALL("cuEventCreate");
    *made = (cuda_event)(void *)&event;
    STUB.live++;
    return flags != 2;
}

int cuEventDestroy_v2(cuda_event destroyed) {
    CALL("cuEventDestroy_v2");
    STUB.live--;
    return (void *)destroyed == &event ? 0 : 400;
}

int cuEventRecord(cuda_event recorded, cuda_stream on) {
    CALL("cuEventRecord");
    return (void *)recorded == &event && (void *)on == &stream ? 0 : 400;
}

int cuMemHostRegister_v2(void *pinned, size_t bytes, unsigned flags) {
    CALL("cuMemHostRegister_v2");
    STUB.live++;
    return pinned && bytes && !flags ? 0 : 1;
}

int cuMemHostUnregister(void *pinned) {
    CALL("cuMemHostUnregister");
    STUB.live--;
    return pinned ? 0 : 1;
}

int cuMemGetInfo_v2(size_t *left, size_t *total) {
    CALL("cuMemGetInfo_v2");
    *left = 12345;
    *total = memory;
    return 0;
}

int cuMemAlloc_v2(uint64_t *made, size_t bytes) {
    CALL("cuMemAlloc_v2");
    void *host = take(bytes);
    if (!host) return 2;
    STUB.live++;
    *made = (uintptr_t)host;
    return 0;
}

int cuMemFree_v2(uint64_t freed) {
    CALL("cuMemFree_v2");
    STUB.live--;
    return freed ? 0 : 1;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, cuda_stream on) {
    CALL("cuMemcpyHtoDAsync_v2");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return (void *)on == &stream ? 0 : 400;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, cuda_stream on) {
    CALL("cuMemcpyDtoHAsync_v2");
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return (void *)on == &stream ? 0 : 400;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, cuda_stream on) {
    CALL("cuMemcpyAsync");
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return (void *)on == &stream ? 0 : 400;
}

/* The stub compiler's machine code begins with a word of its own. */
int cuModuleLoadData(cuda_module *module, const void *image) {
    CALL("cuModuleLoadData");
    if (strncmp(image, "CUBIN", 5) != 0 && strcmp(image, "PTX") != 0) return 200;
    *module = take(1);
    STUB.live++;
    return 0;
}

int cuModuleUnload(cuda_module module) {
    CALL("cuModuleUnload");
    STUB.live--;
    return module ? 0 : 400;
}

int cuModuleGetFunction(cuda_function *found, cuda_module module, const char *name) {
    CALL("cuModuleGetFunction");
    if (!module || strcmp(name, "absent") == 0) return 500;
    *found = (cuda_function)(void *)&function;
    return 0;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cuda_function of, int block_size,
                                                size_t local_bytes) {
    CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if ((void *)of != &function || block_size < 1 || block_size > 1024 || local_bytes > 232448) return 1;
    *blocks = 2048 / block_size;
    return 0;
}

int cuFuncSetAttribute(cuda_function of, int attribute, int value) {
    CALL("cuFuncSetAttribute");
    return (void *)of != &function || attribute != 8 || value < 0;
}

#ifndef STUB_INCOMPLETE
/* The one attribute that is known says that all groups run at once. */
int cuLaunchKernelEx(const struct cuda_config *launch, cuda_function launched, void **parameters,
                     void **extra) {
    CALL("cuLaunchKernelEx");
    if ((void *)launched != &function || (void *)launch->stream != &stream || launch->grid[1] != 1 ||
        launch->grid[2] != 1 || launch->group[1] != 1 || launch->group[2] != 1 ||
        launch->local_bytes > LOCAL_MAX || launch->attribute_count > 1 || extra)
        return 1;
    STUB.together = launch->attribute_count;
    if (STUB.together && (launch->attributes->number != 2 || launch->attributes->value.i32 != 1)) return 1;
    if (STUB.together && launch->grid[0] > UNITS * (2048 / launch->group[0])) return 720;
    STUB.groups = launch->grid[0];
    STUB.group_size = launch->group[0];
    memcpy(&STUB.first_argument, parameters[0], sizeof STUB.first_argument);
    return 0;
}
#endif
