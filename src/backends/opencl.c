/* OpenCL 1.2 through the ICD loader: GPUs of any maker, and processors (PoCL), which test the GPU kernels in
 * CI. */
#include <stdio.h>
#include <string.h>

#include "backends/device_list.h"
#include "backends/opencl_library.h"
#include "backends/pocl.h"
#include "core/seams.h"
#include "core/size.h"

struct opencl {
    cl_object device, context, queue, uploads;
    bool pocl;
    char options[64]; /* what every build begins with */
};

enum { ARGUMENTS_MAX = 64 };

/* Numbers of parameters in cl.h. */
enum {
    DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    DEVICE_LOCAL_MEM_SIZE = 0x1023,
    DEVICE_AVAILABLE = 0x1027,
    DEVICE_COMPILER_AVAILABLE = 0x1028,
    DEVICE_NAME = 0x102B,
    DRIVER_VERSION = 0x102D,
    DEVICE_VERSION = 0x102F,
    DEVICE_EXTENSIONS = 0x1030,
    DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
    DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    DEVICE_OPENCL_C_VERSION = 0x103D,
    DEVICE_COMPUTE_CAPABILITY_MAJOR = 0x4000, /* of cl_nv_device_attribute_query, and the next */
    DEVICE_COMPUTE_CAPABILITY_MINOR = 0x4001,
    PROGRAM_BINARY_SIZES = 0x1165,
    PROGRAM_BINARIES = 0x1166,
    PROGRAM_BUILD_LOG = 0x1183,
    CONTEXT_PLATFORM = 0x1084,
    PLATFORM_NAME = 0x0902,
    MEM_READ_WRITE = 1,
    BUFFER_CREATE_TYPE_REGION = 0x1220
};

#define DEVICE_INFO(device, what, value)                                                                     \
    KI_OPENCL(NULL, device_info, device, what, sizeof *(value), value, NULL)

static kiln_status text_info(char *text, size_t room, cl_object device, unsigned what) {
    size_t bytes = 0;
    kiln_status status;
    char *whole = NULL;
    TRY(KI_OPENCL(NULL, device_info, device, what, 0, NULL, &bytes));
    if (!(whole = ki_calloc(bytes + 1))) TRY(ki_fail_nomem(bytes + 1, "a device's description"));
    TRY(KI_OPENCL(NULL, device_info, device, what, bytes, whole, NULL));
    snprintf(text, room, "%s", whole);
done:
    ki_free(whole);
    return status;
}

/* Compute capability times ten of an NVIDIA device (the dialect then uses its atomics), else 0. */
static int nvidia_architecture(cl_object device, const char *extensions) {
    unsigned major = 0, minor = 0;
    if (!strstr(extensions, "cl_nv_device_attribute_query")) return 0;
    if (ki_opencl.device_info(device, DEVICE_COMPUTE_CAPABILITY_MAJOR, sizeof major, &major, NULL)) return 0;
    if (ki_opencl.device_info(device, DEVICE_COMPUTE_CAPABILITY_MINOR, sizeof minor, &minor, NULL)) return 0;
    return (int)(10 * major + minor);
}

/* A name that does not fit is none that is asked for. */
static bool platform_is(const struct ki_opencl_device *device, const char *name) {
    char platform[64] = "";
    return !ki_opencl.platform_info(device->platform, PLATFORM_NAME, sizeof platform - 1, platform, NULL) &&
           strcmp(platform, name) == 0;
}

/* No query of OpenCL tells what a compute unit runs at once: it follows from the compute capability, as
 * NVIDIA's programming guide has it. */
static void describe_unit(struct ki_properties *properties, int architecture) {
    static const struct {
        int from; /* the least compute capability, times ten */
        int threads, groups;
    } rows[] = {{110, 1536, 24}, {90, 2048, 32}, {89, 1536, 24}, {86, 1536, 16},
                {80, 2048, 32},  {75, 1024, 16}, {0, 2048, 32}};
    int row = 0;
    while (architecture < rows[row].from) row++;
    properties->unit_threads = rows[row].threads;
    properties->unit_groups = rows[row].groups;
}

/* NVIDIA's own compiler has options of its own, and takes kernels that declare as much local memory as a
 * group may have on the device, whatever DEVICE_LOCAL_MEM_SIZE says (which is what a launch may ask for). No
 * query tells how much that is; this is what compute capability 9.0 has, less the few bytes that the compiler
 * adds. */
static void describe_nvidia(struct ki_properties *properties, const struct ki_opencl_device *device,
                            int architecture) {
    enum {
        DRIVERS_LOCAL = 1024
    }; /* of a group's memory, which the driver may want beside what a launch
                                    * asks for */
    if (!platform_is(device, "NVIDIA CUDA")) return;
    properties->registers_option = "-cl-nv-maxrregcount=";
    properties->local_max -= DRIVERS_LOCAL;
    describe_unit(properties, architecture);
    if (architecture == 90) properties->local_hoped = 226 * 1024;
}

static kiln_status able(cl_object device, const char *name) {
    unsigned available = 0, compiler = 0;
    int major = 0, minor = 0;
    char language[64] = "";
    kiln_status status;
    TRY(DEVICE_INFO(device, DEVICE_AVAILABLE, &available));
    TRY(DEVICE_INFO(device, DEVICE_COMPILER_AVAILABLE, &compiler));
    TRY(text_info(language, sizeof language, device, DEVICE_OPENCL_C_VERSION));
    if (!available || !compiler)
        TRY(ki_fail(KILN_ERR_DEVICE, "opencl: %s %s", name,
                    available ? "has no kernel compiler" : "is not available"));
    if (sscanf(language, "OpenCL C %d.%d", &major, &minor) != 2 || 10 * major + minor < 12) {
        ki_fail(KILN_ERR_DEVICE, "opencl: %s speaks '%s', but OpenCL C 1.2 is needed", name, language);
        TRY(ki_hint("--device cpu, or a newer driver"));
    }
done:
    return status;
}

/* Everything that can be told of a device without opening it. */
static kiln_status describe(kiln_device_info *info, struct ki_properties *properties, int *architecture,
                            const struct ki_opencl_device *device) {
    kiln_status status;
    unsigned units = 0, align_bits = 0;
    size_t group_max = 0;
    uint64_t memory = 0, alloc_max = 0, local = 0, fp64 = 0;
    char name[80] = "", driver[64] = "", version[160] = "", extensions[8192] = "";
    snprintf(info->name, sizeof info->name, "opencl:%d.%d", device->platform_number, device->number);
    info->is_gpu = device->is_gpu;
    TRY(text_info(name, sizeof name, device->id, DEVICE_NAME));
    TRY(text_info(driver, sizeof driver, device->id, DRIVER_VERSION));
    TRY(text_info(version, sizeof version, device->id, DEVICE_VERSION));
    TRY(text_info(extensions, sizeof extensions, device->id, DEVICE_EXTENSIONS));
    snprintf(info->description, sizeof info->description, "%s, %s, driver %s", name, version, driver);
    TRY(DEVICE_INFO(device->id, DEVICE_MAX_COMPUTE_UNITS, &units));
    TRY(DEVICE_INFO(device->id, DEVICE_MAX_WORK_GROUP_SIZE, &group_max));
    TRY(DEVICE_INFO(device->id, DEVICE_GLOBAL_MEM_SIZE, &memory));
    TRY(DEVICE_INFO(device->id, DEVICE_MAX_MEM_ALLOC_SIZE, &alloc_max));
    TRY(DEVICE_INFO(device->id, DEVICE_LOCAL_MEM_SIZE, &local));
    TRY(DEVICE_INFO(device->id, DEVICE_MEM_BASE_ADDR_ALIGN, &align_bits));
    info->memory = (int64_t)memory;
    info->threads = (int)units;
    *architecture = nvidia_architecture(device->id, extensions);
    if (ki_opencl.device_info(device->id, DEVICE_DOUBLE_FP_CONFIG, sizeof fp64, &fp64, NULL)) fp64 = 0;
    *properties = (struct ki_properties){
        .is_gpu = device->is_gpu,
        .compute_units = (int)units,
        .warp = 1,
        .shuffles = *architecture >= 70,
        .group_max = (int64_t)group_max,
        .local_bytes = (int64_t)local,
        .local_max =
            (int64_t)local, /* kernels that ask for some at launch leave room for what they declare */
        .memory = (int64_t)memory,
        .alloc_max = (int64_t)alloc_max,
        .align = ki_max(align_bits / 8, 8),
        /* Atomic sums of f64 go through 64-bit integers. */
        .has_f64 = fp64 != 0 && strstr(extensions, "cl_khr_int64_base_atomics"),
    };
    snprintf(properties->cache_key, sizeof properties->cache_key, "opencl %s / %s / %s / %d", name, version,
             driver, *architecture);
    if (*architecture) describe_nvidia(properties, device, *architecture);
    TRY(able(device->id, name));
done:
    return status;
}

/* The device that the selector names: "P.D", or "" for the first GPU, or the first device if there is no GPU.
 */
static kiln_status choose(struct ki_opencl_device *chosen, const char *selector) {
    struct ki_opencl_device *devices = NULL;
    int count = 0, platform = 0, number = 0, end = 0, found = -1;
    if (*selector && (sscanf(selector, "%4d.%4d%n", &platform, &number, &end) != 2 || selector[end] ||
                      platform < 0 || number < 0)) {
        ki_fail(KILN_ERR_ARGUMENT, "device 'opencl:%s': '%s' is not PLATFORM.DEVICE", selector, selector);
        return ki_hint("opencl or opencl:0.0; 'kiln devices' lists what there is");
    }
    kiln_status status = ki_opencl_find(&devices, &count);
    if (status != KILN_OK) return status;
    for (int i = count - 1; i >= 0; i--) {
        bool named = devices[i].platform_number == platform && devices[i].number == number;
        if (*selector ? named : devices[i].is_gpu) found = i;
    }
    if (found < 0 && !*selector) found = 0;
    if (found < 0) {
        ki_fail(KILN_ERR_DEVICE, "opencl:%s: no such device; there %s %d, from opencl:%d.%d on", selector,
                count == 1 ? "is" : "are", count, devices[0].platform_number, devices[0].number);
        status = ki_hint("opencl:%d.%d; 'kiln devices' lists what there is", devices[0].platform_number,
                         devices[0].number);
    } else {
        *chosen = devices[found];
    }
    ki_free(devices);
    return status;
}

static void opencl_close(kiln_device *device) {
    struct opencl *opencl = device->impl;
    if (opencl->pocl && opencl->queue && !device->forked) ki_pocl_leave_turn(opencl->queue);
    if (!device->lost) {
        if (opencl->uploads) ki_opencl.release_queue(opencl->uploads);
        if (opencl->queue) ki_opencl.release_queue(opencl->queue);
        if (opencl->context) ki_opencl.release_context(opencl->context);
    }
    ki_free(opencl);
    device->impl = NULL;
}

/* Writes what the dialect must know of the device. */
static void set_options(struct opencl *opencl, int nvidia, bool has_f64) {
    char maker[32] = "";
    if (nvidia) snprintf(maker, sizeof maker, " -DKILN_NVIDIA=%d", nvidia);
    snprintf(opencl->options, sizeof opencl->options, "-cl-std=CL1.2%s%s", maker, has_f64 ? "" : " -DNO_F64");
}

static kiln_status opencl_open(kiln_device *device, const char *selector) {
    kiln_status status;
    int architecture = 0, code = 0;
    struct ki_opencl_device chosen = {0};
    kiln_device_info info = {.usable = 1};
    struct ki_properties properties = {0};
    TRY(choose(&chosen, selector));
    TRY(describe(&info, &properties, &architecture, &chosen));
    device->info = info;
    device->properties = properties;
    struct opencl *opencl = ki_calloc(sizeof *opencl);
    if (!opencl) return ki_fail_nomem(sizeof *opencl, "a device");
    device->impl = opencl;
    opencl->device = chosen.id;
    set_options(opencl, architecture, properties.has_f64);
    opencl->pocl = platform_is(&chosen, "Portable Computing Language");
    const intptr_t about[] = {CONTEXT_PLATFORM, (intptr_t)chosen.platform, 0};
    opencl->context = ki_opencl.create_context(about, 1, &chosen.id, NULL, NULL, &code);
    if (!opencl->context) TRY(ki_opencl_fail(NULL, code, "create_context"));
    opencl->queue = ki_opencl.create_queue(opencl->context, chosen.id, 0, &code);
    if (!opencl->queue) TRY(ki_opencl_fail(NULL, code, "create_queue"));
    opencl->uploads = ki_opencl.create_queue(opencl->context, chosen.id, 0, &code);
    if (!opencl->uploads) TRY(ki_opencl_fail(NULL, code, "create_queue"));
done:
    if (status != KILN_OK && device->impl) opencl_close(device);
    return status;
}

static kiln_status opencl_list(kiln_device_info **infos, int64_t *count) {
    kiln_device_info none = {.name = "opencl"};
    struct ki_opencl_device *devices = NULL;
    int found = 0;
    kiln_status status = ki_opencl_find(&devices, &found);
    if (status == KILN_ERR_NOMEM) return status;
    if (status != KILN_OK) {
        ki_list_explain(&none);
        return ki_list_append(infos, count, &none);
    }
    for (int i = 0; i < found; i++) {
        kiln_device_info info = {.usable = 1};
        struct ki_properties properties;
        int architecture;
        status = describe(&info, &properties, &architecture, &devices[i]);
        if (status == KILN_ERR_NOMEM) break;
        if (status != KILN_OK) ki_list_explain(&info);
        if ((status = ki_list_append(infos, count, &info)) != KILN_OK) break;
    }
    ki_free(devices);
    return status;
}

static kiln_status opencl_alloc(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    struct opencl *opencl = device->impl;
    int code = 0;
    cl_object memory = ki_opencl.create_buffer(opencl->context, MEM_READ_WRITE, (size_t)bytes, NULL, &code);
    if (!memory) return ki_opencl_fail(device, code, "create_buffer");
    *buffer = (struct ki_buffer){(uintptr_t)memory, bytes, 0};
    return KILN_OK;
}

static cl_object memory_of(const struct ki_buffer *buffer) {
    return (cl_object)(uintptr_t)buffer->handle;
}

static void opencl_release(kiln_device *device, struct ki_buffer *buffer) {
    KI_OPENCL(device, release_buffer, memory_of(buffer));
}

static kiln_status opencl_upload(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                                 int64_t bytes) {
    struct opencl *opencl = device->impl;
    return KI_OPENCL(device, write, opencl->queue, memory_of(to), 1, (size_t)offset, (size_t)bytes, from, 0,
                     NULL, NULL);
}

static kiln_status opencl_download(kiln_device *device, void *to, const struct ki_buffer *from,
                                   int64_t offset, int64_t bytes) {
    struct opencl *opencl = device->impl;
    return KI_OPENCL(device, read, opencl->queue, memory_of(from), 1, (size_t)offset, (size_t)bytes, to, 0,
                     NULL, NULL);
}

static kiln_status opencl_sync(kiln_device *device) {
    return KI_OPENCL(device, finish, ((struct opencl *)device->impl)->queue);
}

static kiln_status opencl_upload_wait(kiln_device *device) {
    struct opencl *opencl = device->impl;
    kiln_status status;
    TRY(KI_OPENCL(device, flush, opencl->queue)); /* so that kernels run meanwhile */
    TRY(KI_OPENCL(device, finish, opencl->uploads));
done:
    return status;
}

static kiln_status opencl_upload_queue(kiln_device *device, struct ki_buffer *to, int64_t offset,
                                       const void *from, int64_t bytes) {
    struct opencl *opencl = device->impl;
    cl_object event = NULL;
    kiln_status status;
    TRY(KI_OPENCL(device, mark, opencl->queue, 0, NULL, &event));
    TRY(KI_OPENCL(device, flush, opencl->queue)); /* or the uploads would wait for what nobody begins */
    TRY(KI_OPENCL(device, write, opencl->uploads, memory_of(to), 0, (size_t)offset, (size_t)bytes, from, 1,
                  &event, NULL));
    TRY(KI_OPENCL(device, flush, opencl->uploads));
done:
    if (event && !device->lost) ki_opencl.release_event(event);
    return status;
}

/* Builds a program for the device, with our own options before the caller's. */
static kiln_status build_program(kiln_device *device, cl_object program, const char *options) {
    struct opencl *opencl = device->impl;
    size_t bytes = strlen(opencl->options) + strlen(options) + 2, log_bytes = 0;
    char *all = ki_alloc(bytes), *log = NULL;
    if (!all) return ki_fail_nomem(bytes, "compiler options");
    snprintf(all, bytes, "%s %s", opencl->options, options);
    int code = ki_opencl.build(program, 1, &opencl->device, all, NULL, NULL);
    ki_free(all);
    if (code == 0) return KILN_OK;
    kiln_status status = ki_opencl_fail(device, code, "build");
    if (status != KILN_ERR_DEVICE) return status;
    if (ki_opencl.build_info(program, opencl->device, PROGRAM_BUILD_LOG, 0, NULL, &log_bytes) == 0 &&
        (log = ki_calloc(log_bytes + 1)))
        if (ki_opencl.build_info(program, opencl->device, PROGRAM_BUILD_LOG, log_bytes, log, NULL))
            log[0] = '\0';
    ki_fail_native(KILN_ERR_BUILD, "opencl", code, "opencl: the kernel compiler of %.100s: error %d: %.600s",
                   device->info.description, code, log ? log : "");
    ki_free(log);
    return KILN_ERR_BUILD;
}

static kiln_status binary_of(void **binary, size_t *bytes, kiln_device *device, cl_object program) {
    size_t size = 0;
    kiln_status status;
    unsigned char *made = NULL;
    TRY(KI_OPENCL(device, program_info, program, PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    if (size == 0) TRY(ki_fail(KILN_ERR_BUILD, "opencl: the kernel compiler made no code"));
    if (!(made = ki_resize(NULL, size))) TRY(ki_fail_nomem(size, "a built kernel"));
    TRY(KI_OPENCL(device, program_info, program, PROGRAM_BINARIES, sizeof made, &made, NULL));
    *binary = made;
    *bytes = size;
    made = NULL;
done:
    ki_free(made);
    return status;
}

static kiln_status opencl_build(kiln_device *device, void **binary, size_t *bytes, const char *source,
                                const char *options) {
    struct opencl *opencl = device->impl;
    int code = 0;
    kiln_status status;
    cl_object program = ki_opencl.program_source(opencl->context, 1, &source, NULL, &code);
    if (!program) return ki_opencl_fail(device, code, "program_source");
    TRY(build_program(device, program, options));
    TRY(binary_of(binary, bytes, device, program));
done:
    if (!device->lost) ki_opencl.release_program(program);
    return status;
}

/* A binary that OpenCL refuses is as good as none; loss of the device and lack of memory are told as such. */
static kiln_status load_failed(kiln_device *device, int code, const char *call) {
    kiln_status status = ki_opencl_fail(device, code, call);
    if (status != KILN_ERR_DEVICE) return status;
    return ki_fail_native(KILN_ERR_BUILD, "opencl", code,
                          "opencl: %s does not accept a built kernel (error %d)", device->info.name, code);
}

static kiln_status opencl_load(kiln_device *device, void **module, void **function, const void *binary,
                               size_t bytes, const char *name, const char *options) {
    struct opencl *opencl = device->impl;
    const unsigned char *image = binary;
    int code = 0, binary_code = 0;
    kiln_status status;
    cl_object program =
        ki_opencl.program_binary(opencl->context, 1, &opencl->device, &bytes, &image, &binary_code, &code);
    if (!program) return load_failed(device, code, "program_binary");
    TRY(build_program(device, program, options));
    cl_object kernel = ki_opencl.create_kernel(program, name, &code);
    if (!kernel) TRY(load_failed(device, code, "create_kernel"));
    *module = program;
    *function = kernel;
    program = NULL;
done:
    if (program && !device->lost) ki_opencl.release_program(program);
    return status;
}

static void opencl_unload(kiln_device *device, void *module, void *function) {
    const struct opencl *opencl = device->impl;
    if (opencl->pocl && !device->forked) ki_pocl_leave_turn(opencl->queue);
    KI_OPENCL(device, release_kernel, function);
    KI_OPENCL(device, release_program, module);
}

/* A buffer's handle is its cl_mem, and a handle of 0 means a null pointer here too. What begins in the middle
 * of a buffer is a buffer of its own, *view, which OpenCL keeps until the launch is over. */
static kiln_status set_argument(kiln_device *device, void *function, unsigned i, const struct ki_arg *arg,
                                cl_object *view) {
    const struct {
        size_t origin, bytes;
    } region = {(size_t)arg->offset, (size_t)(arg->buffer_bytes - arg->offset)};
    int code = 0;
    if (arg->size == 0) return KI_OPENCL(device, argument, function, i, (size_t)arg->as.i64, NULL);
    if (arg->offset == 0) return KI_OPENCL(device, argument, function, i, arg->size, &arg->as);
    if (arg->offset >= arg->buffer_bytes)
        return ki_fail(KILN_ERR_INTERNAL, "device %s: argument %u begins at byte %lld of a buffer of %lld",
                       device->info.name, i, (long long)arg->offset, (long long)arg->buffer_bytes);
    *view = ki_opencl.create_view((cl_object)(uintptr_t)arg->as.handle, MEM_READ_WRITE,
                                  BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (!*view) return ki_opencl_fail(device, code, "create_view");
    return KI_OPENCL(device, argument, function, i, sizeof *view, view);
}

static kiln_status opencl_launch(kiln_device *device, void *function, int64_t groups, int64_t group_size,
                                 bool together, const struct ki_arg *args, int count) {
    (void)together; /* there is no word for it */
    struct opencl *opencl = device->impl;
    cl_object views[ARGUMENTS_MAX] = {NULL};
    int64_t threads = 0;
    kiln_status status;
    if (!ki_mul(groups, group_size, &threads))
        return ki_fail(KILN_ERR_LIMIT, "device %s: a launch of %lld work-groups", device->info.name,
                       (long long)groups);
    if (count > ARGUMENTS_MAX) return ki_fail(KILN_ERR_INTERNAL, "a kernel with %d arguments", count);
    for (int i = 0; i < count; i++) TRY(set_argument(device, function, (unsigned)i, &args[i], &views[i]));
    const size_t all = (size_t)threads, one = (size_t)group_size;
    if (opencl->pocl) ki_pocl_begin_turn(opencl->queue, function, threads);
    status = KI_OPENCL(device, launch, opencl->queue, function, 1, NULL, &all, &one, 0, NULL, NULL);
    if (opencl->pocl) ki_pocl_end_turn();
done:
    for (int i = 0; i < count; i++)
        if (views[i] && !device->lost) ki_opencl.release_buffer(views[i]);
    return status;
}

const struct ki_backend ki_backend_opencl = {.name = "opencl",
                                             .open = opencl_open,
                                             .close = opencl_close,
                                             .list = opencl_list,
                                             .alloc = opencl_alloc,
                                             .release = opencl_release,
                                             .upload = opencl_upload,
                                             .download = opencl_download,
                                             .upload_queue = opencl_upload_queue,
                                             .upload_wait = opencl_upload_wait,
                                             .build = opencl_build,
                                             .load = opencl_load,
                                             .unload = opencl_unload,
                                             .launch = opencl_launch,
                                             .sync = opencl_sync};
