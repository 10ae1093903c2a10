/* CUDA: the driver API for memory and launching, NVRTC for building.
 *
 * One primary context (shared with whatever else uses CUDA in this process), one stream a device for
 * computing and one for uploads beside it. The context is made current at each entry: the caller may use
 * other devices or libraries in between, and the call costs little. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda_device.h"
#include "backends/cuda_driver.h"
#include "backends/device_list.h"
#include "backends/nvrtc.h"
#include "core/kernels/pack.h"
#include "core/seams.h"
#include "core/size.h"

enum { ARGUMENTS_MAX = 64 };

/* Numbers in cuda.h, most of them of attributes. */
enum {
    MAX_THREADS_PER_BLOCK = 1,
    MAX_SHARED_MEMORY_PER_BLOCK = 8,
    WARP_SIZE = 10,
    MULTIPROCESSOR_COUNT = 16,
    MAX_THREADS_PER_MULTIPROCESSOR = 39,
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    MEMORY_CLOCK_RATE = 36,
    GLOBAL_MEMORY_BUS_WIDTH = 37,
    COMPUTE_CAPABILITY_MAJOR = 75,
    COMPUTE_CAPABILITY_MINOR = 76,
    STREAM_NON_BLOCKING = 1,
    EVENT_DISABLE_TIMING = 2,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720 /* an error */
};

/* Native atomics on f64 are what the kernels count on. */
enum { ARCHITECTURE_MIN = 60 };

static kiln_status attribute(int64_t *value, int number, int ordinal) {
    int found = 0;
    kiln_status status = KI_CUDA(NULL, device_attribute, &found, number, ordinal);
    if (status == KILN_OK) *value = found;
    return status;
}

/* Finds whether there is something to get kernels from; what it is goes into the description. */
static kiln_status find_kernels(kiln_device_info *info, int architecture) {
    const size_t used = strlen(info->description), room = sizeof info->description - used;
    if (ki_pack_serves(architecture)) {
        snprintf(info->description + used, room, ", a pack of kernels");
        return KILN_OK;
    }
    char why[480];
    const kiln_status status = ki_nvrtc_load(architecture);
    if (status == KILN_OK) snprintf(info->description + used, room, ", NVRTC %s", ki_nvrtc_version());
    if (status == KILN_ERR_DEVICE && ki_pack_trouble(why, sizeof why))
        ki_hint("pip install nvidia-cuda-nvrtc; %s", why);
    return status;
}

/* Everything that can be told of a device without opening it. */
static kiln_status describe(kiln_device_info *info, struct ki_properties *properties, int *architecture,
                            int ordinal) {
    kiln_status status;
    int device, version = 0;
    char name[100] = "";
    size_t memory = 0;
    int64_t major, minor, units, warp;
    snprintf(info->name, sizeof info->name, "cuda:%d", ordinal);
    info->is_gpu = 1;
    TRY(KI_CUDA(NULL, driver_version, &version));
    TRY(KI_CUDA(NULL, device_get, &device, ordinal));
    TRY(KI_CUDA(NULL, device_name, name, sizeof name, device));
    TRY(KI_CUDA(NULL, device_memory, &memory, device));
    TRY(attribute(&major, COMPUTE_CAPABILITY_MAJOR, device));
    TRY(attribute(&minor, COMPUTE_CAPABILITY_MINOR, device));
    TRY(attribute(&units, MULTIPROCESSOR_COUNT, device));
    TRY(attribute(&warp, WARP_SIZE, device));
    TRY(attribute(&properties->group_max, MAX_THREADS_PER_BLOCK, device));
    TRY(attribute(&properties->local_bytes, MAX_SHARED_MEMORY_PER_BLOCK, device));
    TRY(attribute(&properties->local_max, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
    TRY(attribute(&properties->registers, MAX_REGISTERS_PER_MULTIPROCESSOR, device));
    TRY(attribute(&properties->unit_threads, MAX_THREADS_PER_MULTIPROCESSOR, device));
    TRY(attribute(&properties->unit_groups, MAX_BLOCKS_PER_MULTIPROCESSOR, device));
    int64_t clock, width; /* kHz, two transfers a cycle; bits */
    TRY(attribute(&clock, MEMORY_CLOCK_RATE, device));
    TRY(attribute(&width, GLOBAL_MEMORY_BUS_WIDTH, device));
    properties->bandwidth = 2e3 * (double)clock * (double)width / 8;
    properties->is_gpu = properties->has_f64 = properties->shuffles = properties->addresses =
        properties->together = true;
    properties->compute_units = info->threads = (int)units;
    properties->warp = (int)warp;
    properties->align = 256; /* what the allocator gives, and no access needs more */
    properties->memory = properties->alloc_max = info->memory = (int64_t)memory;
    *architecture = properties->architecture = (int)(10 * major + minor);
    properties->registers_option = "--maxrregcount=";
    snprintf(info->description, sizeof info->description, "%s, CUDA %d.%d driver", name, version / 1000,
             version % 1000 / 10);
    if (*architecture < ARCHITECTURE_MIN) {
        ki_fail(KILN_ERR_DEVICE, "cuda: %s has compute capability %d.%d, but 6.0 is needed", name, (int)major,
                (int)minor);
        return ki_hint("--device opencl or --device cpu");
    }
    TRY(find_kernels(info, *architecture));
done:
    return status;
}

/* "" is device 0; else a number. */
static kiln_status check_selector(const char *selector) {
    if (strspn(selector, "0123456789") == strlen(selector)) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "device 'cuda:%s': '%s' is not a number", selector, selector);
    return ki_hint("cuda or cuda:0");
}

static kiln_status choose(int *ordinal, const char *selector) {
    int count = 0;
    kiln_status status = KI_CUDA(NULL, device_count, &count);
    if (status != KILN_OK) return status;
    long number = strtol(selector, NULL, 10);
    if (count <= 0) {
        ki_fail(KILN_ERR_DEVICE, "cuda: the driver is there, but shows no device");
        return ki_hint("--device auto; 'nvidia-smi' and CUDA_VISIBLE_DEVICES tell what this process may see");
    }
    if (number >= count) {
        ki_fail(KILN_ERR_DEVICE, "cuda:%ld: there %s %d CUDA device%s, counted from 0", number,
                count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
        return ki_hint("cuda:0; 'kiln devices' lists what there is");
    }
    *ordinal = (int)number;
    return KILN_OK;
}

/* The core never calls a lost device, so that no check is needed here. */
kiln_status ki_cuda_enter(kiln_device *device) {
    return KI_CUDA(device, context_set, ((struct cuda *)device->impl)->context);
}

static void cuda_close(kiln_device *device) {
    struct cuda *cuda = device->impl;
    if (!device->lost && cuda->context) {
        if (ki_cuda.context_set(cuda->context) == 0) {
            if (cuda->event) ki_cuda.event_destroy(cuda->event);
            if (cuda->uploads) ki_cuda.stream_destroy(cuda->uploads);
            if (cuda->stream) ki_cuda.stream_destroy(cuda->stream);
        }
        ki_cuda.context_release(cuda->device);
    }
    ki_free(cuda);
    device->impl = NULL;
}

static kiln_status cuda_open(kiln_device *device, const char *selector) {
    kiln_status status;
    int ordinal = 0;
    kiln_device_info info = {.usable = 1};
    struct ki_properties properties = {0};
    TRY(check_selector(selector));
    TRY(ki_cuda_load());
    TRY(choose(&ordinal, selector));
    struct cuda *cuda = ki_calloc(sizeof *cuda);
    if (!cuda) return ki_fail_nomem(sizeof *cuda, "a device");
    device->impl = cuda;
    TRY(describe(&info, &properties, &cuda->architecture, ordinal));
    device->info = info;
    device->properties = properties;
    TRY(KI_CUDA(NULL, device_get, &cuda->device, ordinal));
    TRY(KI_CUDA(NULL, context_retain, &cuda->context, cuda->device));
    TRY(KI_CUDA(NULL, context_set, cuda->context));
    TRY(KI_CUDA(NULL, stream_create, &cuda->stream, STREAM_NON_BLOCKING));
    TRY(KI_CUDA(NULL, stream_create, &cuda->uploads, STREAM_NON_BLOCKING));
    TRY(KI_CUDA(NULL, event_create, &cuda->event, EVENT_DISABLE_TIMING));
done:
    if (status != KILN_OK && device->impl) cuda_close(device);
    return status;
}

static kiln_status cuda_list(kiln_device_info **infos, int64_t *count) {
    kiln_device_info none = {.name = "cuda", .is_gpu = 1};
    int devices = 0, first;
    kiln_status status = ki_cuda_load();
    if (status == KILN_OK) status = choose(&first, "");
    if (status == KILN_OK) status = KI_CUDA(NULL, device_count, &devices);
    if (status != KILN_OK) {
        ki_list_explain(&none);
        return ki_list_append(infos, count, &none);
    }
    for (int i = 0; i < devices; i++) {
        kiln_device_info info = {.usable = 1};
        struct ki_properties properties = {0};
        int architecture;
        status = describe(&info, &properties, &architecture, i);
        if (status == KILN_ERR_NOMEM) return status;
        if (status != KILN_OK) ki_list_explain(&info);
        if ((status = ki_list_append(infos, count, &info)) != KILN_OK) return status;
    }
    return KILN_OK;
}

static kiln_status cuda_alloc(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    uint64_t memory = 0;
    size_t left = 0, total = 0;
    kiln_status status = ki_cuda_enter(device);
    if (status != KILN_OK) return status;
    int code = ki_cuda.alloc(&memory, (size_t)bytes);
    if (code && ki_cuda_classify(code) == KI_CUDA_NO_MEMORY && ki_cuda.memory_info(&left, &total) == 0) {
        ki_fail_native(KILN_ERR_DEVICE_NOMEM, "cuda", code, "device %s: %lld bytes needed, %zu of %zu free",
                       device->info.name, (long long)bytes, left, total);
        return ki_hint("--type f32, less data, --device cpu, or end what else uses the GPU ('nvidia-smi')");
    }
    if (code) return ki_cuda_fail(device, code, "alloc");
    *buffer = (struct ki_buffer){memory, bytes, 0};
    return KILN_OK;
}

/* Nothing to report to: a fatal code marks the device lost, and the next call says so. */
static void cuda_release(kiln_device *device, struct ki_buffer *buffer) {
    if (ki_cuda_enter(device) == KILN_OK) KI_CUDA(device, release, buffer->handle);
}

static kiln_status cuda_upload_wait(kiln_device *device) {
    struct cuda *cuda = device->impl;
    kiln_status status = ki_cuda_enter(device);
    return status == KILN_OK ? KI_CUDA(device, stream_wait, cuda->uploads) : status;
}

static kiln_status cuda_sync(kiln_device *device) {
    struct cuda *cuda = device->impl;
    kiln_status status = ki_cuda_enter(device);
    return status == KILN_OK ? KI_CUDA(device, stream_wait, cuda->stream) : status;
}

/* Other users of the primary context have streams of their own. */
static kiln_status cuda_settle(kiln_device *device) {
    kiln_status status = ki_cuda_enter(device);
    return status == KILN_OK ? ki_cuda_check(device, ki_cuda.context_wait(), "context_wait") : status;
}

static kiln_status cuda_upload_queue(kiln_device *device, struct ki_buffer *to, int64_t offset,
                                     const void *from, int64_t bytes) {
    struct cuda *cuda = device->impl;
    kiln_status status;
    TRY(ki_cuda_enter(device));
    TRY(KI_CUDA(device, event_record, cuda->event, cuda->stream));
    TRY(KI_CUDA(device, stream_after, cuda->uploads, cuda->event, 0));
    TRY(KI_CUDA(device, upload, to->handle + (uint64_t)offset, from, (size_t)bytes, cuda->uploads));
done:
    return status;
}

static kiln_status cuda_pin(kiln_device *device, void *memory, int64_t bytes) {
    kiln_status status = ki_cuda_enter(device);
    return status == KILN_OK && bytes > 0 ? KI_CUDA(device, host_register, memory, (size_t)bytes, 0) : status;
}

static void cuda_unpin(kiln_device *device, void *memory) {
    if (ki_cuda_enter(device) == KILN_OK) KI_CUDA(device, host_unregister, memory);
}

static kiln_status cuda_upload(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                               int64_t bytes) {
    struct cuda *cuda = device->impl;
    kiln_status status;
    TRY(ki_cuda_enter(device));
    TRY(KI_CUDA(device, upload, to->handle + (uint64_t)offset, from, (size_t)bytes, cuda->stream));
    TRY(KI_CUDA(device, stream_wait, cuda->stream)); /* the caller may reuse its memory at once */
done:
    return status;
}

static kiln_status cuda_download(kiln_device *device, void *to, const struct ki_buffer *from, int64_t offset,
                                 int64_t bytes) {
    struct cuda *cuda = device->impl;
    kiln_status status;
    TRY(ki_cuda_enter(device));
    TRY(KI_CUDA(device, download, to, from->handle + (uint64_t)offset, (size_t)bytes, cuda->stream));
    TRY(KI_CUDA(device, stream_wait, cuda->stream));
done:
    return status;
}

/* NVRTC is loaded when a kernel is in no pack: it may be missing, and loading it takes time. */
static kiln_status cuda_compiler(kiln_device *device) {
    struct ki_properties *properties = &device->properties;
    int driver = 0;
    kiln_status status;
    if (properties->cache_key[0]) return KILN_OK;
    TRY(ki_nvrtc_load(properties->architecture));
    TRY(KI_CUDA(device, driver_version, &driver));
    snprintf(properties->cache_key, sizeof properties->cache_key, "cuda sm_%d nvrtc %s driver %d",
             properties->architecture, ki_nvrtc_version(), driver);
done:
    return status;
}

static kiln_status cuda_build(kiln_device *device, void **binary, size_t *bytes, const char *source,
                              const char *options) {
    return ki_nvrtc_compile(binary, bytes, source, options, ((struct cuda *)device->impl)->architecture);
}

/* A binary that the driver refuses is as good as none; loss of the device and lack of memory are told as
 * such. */
static kiln_status load_failed(kiln_device *device, int code, const char *call) {
    kiln_status status = ki_cuda_fail(device, code, call);
    if (status != KILN_ERR_DEVICE) return status;
    return ki_fail_native(KILN_ERR_BUILD, "cuda", code,
                          "cuda: the driver does not accept a built kernel (error %d)", code);
}

static kiln_status cuda_load(kiln_device *device, void **module, void **function, const void *binary,
                             size_t bytes, const char *name, const char *options) {
    (void)bytes; /* a cubin knows its own length; the cache has checked that it is whole */
    (void)options;
    cuda_module loaded = NULL;
    cuda_function found = NULL;
    kiln_status status = ki_cuda_enter(device);
    if (status != KILN_OK) return status;
    int code = ki_cuda.module_load(&loaded, binary);
    if (code) return load_failed(device, code, "module_load");
    if ((code = ki_cuda.module_function(&found, loaded, name))) {
        status = load_failed(device, code, "module_function");
        if (!device->lost) ki_cuda.module_unload(loaded);
        return status;
    }
    *module = loaded;
    *function = found;
    return KILN_OK;
}

static void cuda_unload(kiln_device *device, void *module, void *function) {
    (void)function; /* lives in its module */
    if (ki_cuda_enter(device) == KILN_OK) KI_CUDA(device, module_unload, module);
}

static kiln_status cuda_resident(kiln_device *device, int64_t *groups, void *function, int64_t group_size) {
    int blocks = 0;
    kiln_status status;
    TRY(ki_cuda_enter(device));
    TRY(KI_CUDA(device, resident, &blocks, function, (int)group_size, 0));
    *groups = blocks;
done:
    return status;
}

static kiln_status cuda_resident_with(kiln_device *device, int64_t *groups, void *function,
                                      int64_t group_size, int64_t local_bytes) {
    int found = 0;
    kiln_status status;
    TRY(ki_cuda_enter(device));
    TRY(KI_CUDA(device, function_set, function, FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)local_bytes));
    TRY(KI_CUDA(device, resident, &found, function, (int)group_size, (size_t)local_bytes));
    *groups = found;
done:
    return status;
}

static kiln_status launch_failed(kiln_device *device, int code, int64_t groups, int64_t group_size) {
    if (code != COOPERATIVE_LAUNCH_TOO_LARGE) return ki_cuda_fail(device, code, "launch");
    ki_fail_native(
        KILN_ERR_DEVICE, "cuda", code,
        "device %s: %lld work-groups of %lld threads wait for each other, but it has not room for all",
        device->info.name, (long long)groups, (long long)group_size);
    return ki_hint("fewer columns of y at a time; or let this process have the whole GPU "
                   "(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE)");
}

static kiln_status cuda_launch(kiln_device *device, void *function, int64_t groups, int64_t group_size,
                               bool together, const struct ki_arg *args, int count) {
    static const struct cuda_attribute cooperative = {LAUNCH_ATTRIBUTE_COOPERATIVE, {1}};
    struct cuda *cuda = device->impl;
    void *parameters[ARGUMENTS_MAX];
    uint64_t places[ARGUMENTS_MAX];
    kiln_status status;
    if (groups > INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT, "device %s: a launch of %lld work-groups, but CUDA allows 2147483647",
                       device->info.name, (long long)groups);
    if (count > ARGUMENTS_MAX) return ki_fail(KILN_ERR_INTERNAL, "a kernel with %d arguments", count);
    struct cuda_config launch = {.grid = {(unsigned)groups, 1, 1},
                                 .group = {(unsigned)group_size, 1, 1},
                                 .stream = cuda->stream,
                                 .attributes = &cooperative,
                                 .attribute_count = together};
    for (int i = 0; i < count; i++) {
        places[i] = args[i].as.handle + (uint64_t)args[i].offset;
        parameters[i] = args[i].offset ? (void *)&places[i] : (void *)&args[i].as;
        if (args[i].size == 0)
            launch.local_bytes = (unsigned)args[i].as.i64; /* the last: the kernel knows nothing of it */
    }
    TRY(ki_cuda_enter(device));
    const int code = ki_cuda.launch(&launch, function, parameters, NULL);
    if (code) return launch_failed(device, code, groups, group_size);
done:
    return status;
}

/* Peers read each other's memory over NVLink or the bus once it is enabled, which another library may have
 * done. Two handles of one GPU share a context. */
static kiln_status cuda_meet(kiln_device *device, kiln_device *other, bool *direct) {
    enum { PEER_ACCESS_ALREADY_ENABLED = 704 };
    const struct cuda *cuda = device->impl, *peer = other->impl;
    int possible = 0;
    kiln_status status = KILN_OK;
    *direct = cuda->context == peer->context;
    if (*direct) return KILN_OK;
    TRY(KI_CUDA(device, peer_possible, &possible, cuda->device, peer->device));
    if (!possible) return KILN_OK;
    TRY(ki_cuda_enter(device));
    const int code = ki_cuda.peer_enable(peer->context, 0);
    *direct = code == 0 || code == PEER_ACCESS_ALREADY_ENABLED;
    if (!*direct && ki_cuda_classify(code) == KI_CUDA_FATAL)
        status = ki_cuda_fail(device, code, "peer_enable");
done:
    return status;
}

static kiln_status cuda_after(kiln_device *device, kiln_device *other) {
    const struct cuda *cuda = device->impl, *before = other->impl;
    kiln_status status;
    TRY(ki_cuda_enter(other));
    TRY(KI_CUDA(other, event_record, before->event, before->stream));
    TRY(ki_cuda_enter(device));
    TRY(KI_CUDA(device, stream_after, cuda->stream, before->event, 0));
done:
    return status;
}

/* With unified addresses one call serves two devices as well as one; where peers do not reach each other the
 * driver goes through host memory. */
static kiln_status cuda_copy(kiln_device *device, struct ki_buffer *to, int64_t to_offset,
                             const struct ki_buffer *from, int64_t from_offset, int64_t bytes) {
    struct cuda *cuda = device->impl;
    kiln_status status = ki_cuda_enter(device);
    if (status != KILN_OK) return status;
    return KI_CUDA(device, copy, to->handle + (uint64_t)(to->offset + to_offset),
                   from->handle + (uint64_t)(from->offset + from_offset), (size_t)bytes, cuda->stream);
}

const struct ki_backend ki_backend_cuda = {.name = "cuda",
                                           .open = cuda_open,
                                           .close = cuda_close,
                                           .list = cuda_list,
                                           .alloc = cuda_alloc,
                                           .release = cuda_release,
                                           .upload = cuda_upload,
                                           .download = cuda_download,
                                           .upload_queue = cuda_upload_queue,
                                           .upload_wait = cuda_upload_wait,
                                           .pin = cuda_pin,
                                           .unpin = cuda_unpin,
                                           .compiler = cuda_compiler,
                                           .build = cuda_build,
                                           .load = cuda_load,
                                           .unload = cuda_unload,
                                           .resident = cuda_resident,
                                           .resident_with = cuda_resident_with,
                                           .launch = cuda_launch,
                                           .sync = cuda_sync,
                                           .settle = cuda_settle,
                                           .meet = cuda_meet,
                                           .after = cuda_after,
                                           .copy = cuda_copy,
                                           .unite = ki_cuda_unite,
                                           .part = ki_cuda_part,
                                           .sum = ki_cuda_sum,
                                           .spread = ki_cuda_spread,
                                           .identity = ki_cuda_identity,
                                           .invite = ki_cuda_invite,
                                           .accept = ki_cuda_accept};
