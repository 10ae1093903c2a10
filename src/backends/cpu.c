/* The CPU as a device: memory is host memory, nothing moves, and operations call their CPU bodies themselves,
 * so that build and launch do not exist here. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu_isa.h"
#include "core/device.h"
#include "backends/cpu_memory.h"
#include "core/os/os.h"
#include "core/seams.h"
#include "core/size.h"

/* The best instruction set that this processor and KILN_ISA both allow. */
static enum ki_isa choose_isa(void) {
    return (enum ki_isa)ki_min(ki_isa_of(ki_cpuid_read()), ki_isa_cap());
}

static void describe(kiln_device_info *info, int threads) {
    char processor[100] = "CPU";
    ki_os_processor_name(processor, sizeof processor);
    *info = (kiln_device_info){.name = "cpu", .usable = 1, .threads = threads, .is_gpu = 0};
    snprintf(info->description, sizeof info->description, "%s, %d thread%s, %s", processor, threads,
             threads == 1 ? "" : "s", ki_isa_names[choose_isa()]);
    info->memory = ki_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
}

/* The size is that of the level that all cores share, where the C library tells. */
static int64_t last_cache(void) {
#ifdef _SC_LEVEL3_CACHE_SIZE
    return ki_max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
#else
    return 0;
#endif
}

/* AMD's take as long as the single loads and stores, and longer. */
static bool gathers(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return !__builtin_cpu_is("amd");
#else
    return true;
#endif
}

static kiln_status cpu_open(kiln_device *device, const char *selector) {
    if (*selector) {
        ki_fail(KILN_ERR_ARGUMENT, "device 'cpu:%s': the CPU is one device", selector);
        return ki_hint("--device cpu");
    }
    if (ki_isa_cap() == KI_ISA_COUNT) {
        ki_fail(KILN_ERR_ARGUMENT, "KILN_ISA is '%s', which is no instruction set",
                secure_getenv("KILN_ISA"));
        return ki_hint("baseline, avx2 or avx512, or leave it unset");
    }
    device->isa = choose_isa();
    describe(&device->info, device->threads);
    device->properties = (struct ki_properties){.compute_units = device->threads,
                                                .warp = 1,
                                                .cache = last_cache(),
                                                .gathers = gathers(),
                                                .memory = device->info.memory,
                                                .alloc_max = device->info.memory,
                                                .has_f64 = true};
    return KILN_OK;
}

static void cpu_close(kiln_device *device) {
    (void)device;
}

static kiln_status cpu_list(kiln_device_info **infos, int64_t *count) {
    kiln_device_info *grown = ki_resize(*infos, (size_t)(*count + 1) * sizeof **infos);
    if (!grown) return ki_fail_nomem(sizeof **infos, "the device list");
    *infos = grown;
    describe(&grown[(*count)++], ki_default_threads());
    return KILN_OK;
}

static kiln_status cpu_alloc(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    (void)device;
    void *memory = ki_alloc((size_t)bytes);
    if (!memory) return ki_fail_nomem((size_t)bytes, "a matrix");
    *buffer = (struct ki_buffer){(uintptr_t)memory, bytes, 0};
    return KILN_OK;
}

static void cpu_release(kiln_device *device, struct ki_buffer *buffer) {
    (void)device;
    ki_free(ki_host(buffer));
}

static kiln_status cpu_upload(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                              int64_t bytes) {
    (void)device;
    memcpy((char *)ki_host(to) + offset, from, (size_t)bytes);
    return KILN_OK;
}

static kiln_status cpu_download(kiln_device *device, void *to, const struct ki_buffer *from, int64_t offset,
                                int64_t bytes) {
    (void)device;
    memcpy(to, (const char *)ki_host(from) + offset, (size_t)bytes);
    return KILN_OK;
}

static kiln_status cpu_sync(kiln_device *device) {
    (void)device;
    return KILN_OK;
}

const struct ki_backend ki_backend_cpu = {.name = "cpu",
                                          .open = cpu_open,
                                          .close = cpu_close,
                                          .list = cpu_list,
                                          .alloc = cpu_alloc,
                                          .release = cpu_release,
                                          .upload = cpu_upload,
                                          .download = cpu_download,
                                          .sync = cpu_sync};
