/* Opening devices by name, and every byte that lives on or moves to or from one. */
#define _GNU_SOURCE
#include "core/device.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/group/group.h"
#include "core/kernels/kernels.h"
#include "core/os/os.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "core/upload.h"

/* Best first: the order in which "auto" tries and kiln_device_list reports. */
static const struct ki_backend *const backends[] = {&ki_backend_cuda, &ki_backend_opencl, &ki_backend_cpu};
enum { BACKENDS = sizeof backends / sizeof *backends, MOST_THREADS = 4096 };

static const char own_variable[] = "KILN_NUM_THREADS";

/* CPUs that the cgroup's quota leaves us, or a large number where there is none (cgroup v2, then v1). */
static int quota_threads(void) {
    long long quota = -1, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file) {
        if (fscanf(file, "%lld %lld", &quota, &period) != 2) quota = -1;
        fclose(file);
    } else if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r"))) {
        if (fscanf(file, "%lld", &quota) != 1) quota = -1;
        fclose(file);
        file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
        if (file) {
            if (fscanf(file, "%lld", &period) != 1) period = 0;
            fclose(file);
        }
    }
    if (quota <= 0 || period <= 0) return 1 << 20;
    return (int)ki_min(ki_max((quota + period - 1) / period, 1), 1 << 20);
}

/* Finds what a variable says, 0 where it says nothing that we could use. */
static int environment_threads(const char *name) {
    const char *text = secure_getenv(name);
    if (!text) return 0;
    char *end;
    long threads = strtol(text, &end, 10);
    return end != text && threads > 0 && threads <= MOST_THREADS ? (int)threads : 0;
}

/* The processors that the launcher may run on, which is not bound as the processes are that it starts, and
 * sees the container's alone. If a script stands between them they are the process's own. */
static int launcher_threads(void) {
    const int all = (int)ki_max(sysconf(_SC_NPROCESSORS_ONLN), 1), bound = ki_os_processors_of(getppid());
    return bound ? (int)ki_min(bound, all) : all;
}

/* mpirun binds each of two processes to a processor unless it is told otherwise, and so does Slurm: what is a
 * process's own already is not shared out again. A cgroup's quota is of all. */
int ki_threads_among(bool *bound, int processes) {
    const int all = processes > 1 ? launcher_threads() : (int)ki_max(sysconf(_SC_NPROCESSORS_ONLN), 1);
    int threads = environment_threads(own_variable);
    *bound = false;
    if (!threads) threads = environment_threads("OMP_NUM_THREADS");
    if (threads) return (int)ki_max(threads / processes, 1);
    if (!(threads = ki_os_processors_of(0))) threads = all;
    *bound = threads < all / processes;
    if ((int64_t)threads * processes > all) threads /= processes;
    return (int)ki_max(1, ki_min(threads, quota_threads() / processes));
}

int ki_default_threads(void) {
    bool bound;
    return ki_threads_among(&bound, 1);
}

const char *const ki_isa_names[KI_ISA_COUNT] = {"baseline", "AVX2", "AVX-512"};

/* Case and hyphens aside: avx512 is AVX-512. */
static bool is_isa(const char *name, const char *typed) {
    for (;; name++, typed++) {
        while (*name == '-') name++;
        while (*typed == '-') typed++;
        if (tolower((unsigned char)*name) != tolower((unsigned char)*typed)) return false;
        if (!*name) return true;
    }
}

enum ki_isa ki_isa_cap(void) {
    const char *cap = secure_getenv("KILN_ISA");
    int isa = 0;
    if (!cap || !*cap) return KI_ISA_AVX512;
    if (strcmp(cap, "scalar") == 0) return KI_ISA_BASE; /* its earlier name */
    while (isa < KI_ISA_COUNT && !is_isa(ki_isa_names[isa], cap)) isa++;
    return (enum ki_isa)isa;
}

/* Ours has to make sense; OMP_NUM_THREADS may hold a list for nested loops, which is not for us. */
static kiln_status check_threads(const kiln_device_options *options) {
    if (options->threads < 0 || options->threads > MOST_THREADS)
        return ki_fail(KILN_ERR_ARGUMENT, "threads is %d, but must lie in [0, %d]", options->threads,
                       MOST_THREADS);
    const char *text = secure_getenv(own_variable);
    if (options->threads > 0 || !text || !*text) return KILN_OK;
    if (environment_threads(own_variable) && !text[strspn(text, "0123456789")]) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "%s is '%s', which is no number of threads", own_variable, text);
    return ki_hint("1 to %d, or leave it unset", MOST_THREADS);
}

static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER; /* members of a group run side by side */

/* A forked child does not have the thread that may have held it. */
static void renew(void) {
    pthread_mutex_init(&telling, NULL);
}

__attribute__((constructor)) static void survive_forks(void) {
    pthread_atfork(NULL, NULL, renew);
}

void ki_device_message(const kiln_device *device, const char *format, ...) {
    if (!device->options.message) return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&telling);
    device->options.message(device->options.message_user, text);
    pthread_mutex_unlock(&telling);
}

/* KILN_WITHOUT=cuda,opencl names drivers that are never loaded. The CPU has none. */
static bool left_out(const struct ki_backend *backend) {
    const char *text = secure_getenv("KILN_WITHOUT");
    while (text && *text && backend != &ki_backend_cpu) {
        const size_t length = strcspn(text, ",");
        if (strlen(backend->name) == length && strncmp(text, backend->name, length) == 0) return true;
        text += length + (text[length] == ',');
    }
    return false;
}

static kiln_status open_on(kiln_device **device, const struct ki_backend *backend, const char *selector,
                           const kiln_device_options *options) {
    if (left_out(backend)) {
        ki_fail(KILN_ERR_DEVICE, "%s: KILN_WITHOUT leaves it out", backend->name);
        return ki_hint("unset KILN_WITHOUT, or --device cpu");
    }
    kiln_device *opened = ki_calloc(sizeof *opened);
    if (!opened) return ki_fail_nomem(sizeof *opened, "a device");
    opened->options = *options;
    opened->backend = backend;
    opened->threads = options->threads > 0 ? options->threads : ki_default_threads();
    kiln_status status = backend->open(opened, selector);
    if (status != KILN_OK) {
        ki_free(opened);
        return status;
    }
    opened->info.has_f64 = opened->properties.has_f64;
    opened->budget = opened->properties.memory;
    if (options->memory > 0) opened->info.memory = opened->budget = options->memory;
    if (!ki_on_cpu(opened)) ki_fork_enter(opened);
    *device = opened;
    return KILN_OK;
}

/* The best GPU that works, else the CPU; says which, and why no better one. */
static kiln_status open_auto(kiln_device **device, const kiln_device_options *options) {
    char why[300] = "";
    for (int i = 0; i < BACKENDS; i++) {
        kiln_status status = open_on(device, backends[i], "", options);
        if (status == KILN_OK && (*device)->backend != &ki_backend_cpu && !(*device)->properties.is_gpu) {
            /* A processor behind OpenCL: our own CPU bodies beat it. */
            kiln_device_close(*device);
            *device = NULL;
            continue;
        }
        if (status == KILN_OK) {
            ki_device_message(*device, "device %s: %s%s%s", (*device)->info.name, (*device)->info.description,
                              *why ? "; " : "", why);
            return KILN_OK;
        }
        if (status == KILN_ERR_NOMEM) return status;
        const char *name = backends[i]->name, *message = kiln_last_error()->message;
        size_t used = strlen(why), length = strlen(name);
        if (strncmp(message, name, length) == 0 && strncmp(message + length, ": ", 2) == 0)
            message += length + 2;
        snprintf(why + used, sizeof why - used, "%sno %s: %.100s", used ? "; " : "", name, message);
    }
    return ki_fail(KILN_ERR_DEVICE, "no device works: %s", why);
}

kiln_status kiln_device_open(kiln_device **device, const char *name, const kiln_device_options *options) {
    if (!device || !name) return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_open: device or name is NULL");
    kiln_device_options own;
    kiln_status status = KI_TAKE(kiln_device_options, &own, options);
    if (status == KILN_OK) status = check_threads(&own);
    if (status != KILN_OK) return status;
    if (own.memory < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "the memory budget is negative: %lld", (long long)own.memory);
    kiln_device *opened = NULL;
    if (strcmp(name, "auto") == 0) {
        status = open_auto(&opened, &own);
    } else if (ki_group_named(name)) {
        status = ki_group_open(&opened, name, &own);
    } else {
        size_t length = strcspn(name, ":");
        int i = 0;
        while (i < BACKENDS &&
               (strlen(backends[i]->name) != length || strncmp(name, backends[i]->name, length) != 0))
            i++;
        if (i == BACKENDS) {
            ki_fail(KILN_ERR_ARGUMENT, "unknown device '%s'", name);
            return ki_hint("auto, cpu, cuda, cuda:1, cuda:0,1, cuda:all, opencl, opencl:0.0 or "
                           "cpu,cuda:0; 'kiln devices' lists what there is");
        }
        status = open_on(&opened, backends[i], name[length] ? name + length + 1 : "", &own);
    }
    if (status == KILN_OK) *device = opened;
    return status;
}

void kiln_device_close(kiln_device *device) {
    if (!device) return;
    if (device->processes) device->processes->close(device);
    ki_group_close(device);
    ki_kernels_free(device);
    ki_memory_clear(device);
    ki_fork_leave(device);
    device->backend->close(device);
    ki_free(device);
}

kiln_status kiln_device_list(kiln_device_info **infos, int64_t *count, size_t size) {
    if (!infos || !count) return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_list: an argument is NULL");
    kiln_device_info *list = NULL;
    int64_t listed = 0;
    for (int i = 0; i < BACKENDS; i++) {
        if (left_out(backends[i])) continue;
        kiln_status status = backends[i]->list(&list, &listed);
        if (status != KILN_OK) {
            ki_free(list);
            return status;
        }
    }
    return KI_GIVE_ROWS(kiln_device_info, infos, count, size, list, listed);
}

kiln_status kiln_device_get_info(const kiln_device *device, kiln_device_info *info) {
    if (!device || !info) return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_get_info: an argument is NULL");
    kiln_status status = KI_CHECK_RESULT(kiln_device_info, info);
    if (status == KILN_OK) KI_GIVE(kiln_device_info, info, &device->info);
    return status;
}

kiln_status kiln_device_get_statistics(const kiln_device *device, kiln_device_statistics *statistics) {
    if (!device || !statistics)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_get_statistics: an argument is NULL");
    kiln_status status = KI_CHECK_RESULT(kiln_device_statistics, statistics);
    if (status != KILN_OK) return status;
    kiln_device_statistics sum;
    ki_group_statistics(&sum, device);
    KI_GIVE(kiln_device_statistics, statistics, &sum);
    return KILN_OK;
}

void kiln_free(void *memory) {
    ki_free(memory);
}

kiln_status ki_device_alive(const kiln_device *device) {
    if (!device->lost) return KILN_OK;
    if (device->forked) return ki_fork_fail(device);
    ki_fail(KILN_ERR_DEVICE_LOST, "device %s was lost after an earlier error", device->info.name);
    return ki_hint("start the program again");
}

kiln_status kiln_device_sync(kiln_device *device) {
    if (!device) return ki_fail(KILN_ERR_ARGUMENT, "kiln_device_sync: device is NULL");
    kiln_status status = ki_device_alive(device);
    if (status == KILN_OK) status = device->backend->sync(device);
    return status == KILN_OK ? ki_group_sync(device) : status;
}

kiln_status ki_device_settle(kiln_device *device) {
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK) return status;
    return device->backend->settle ? device->backend->settle(device) : device->backend->sync(device);
}

static kiln_status fill_from_memory(void *of, void *to, int64_t offset, int64_t bytes) {
    memcpy(to, (const char *)of + offset, (size_t)bytes);
    return KILN_OK;
}

kiln_status ki_device_upload(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                             int64_t bytes) {
    enum { WORTH_STAGING = 32 << 20 }; /* several times what making the staging memory costs */
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK || bytes == 0) return status;
    if (bytes >= WORTH_STAGING && offset == 0 && device->backend->pin)
        return ki_upload_filled(device, to, bytes, fill_from_memory, (void *)(uintptr_t)from);
    double start = ki_clock();
    status = device->backend->upload(device, to, offset, from, bytes);
    if (status == KILN_OK && !ki_on_cpu(device)) {
        device->statistics.bytes_up += bytes;
        device->statistics.transfer_seconds += ki_clock() - start;
    }
    return status;
}

kiln_status ki_device_download(kiln_device *device, void *to, const struct ki_buffer *from, int64_t offset,
                               int64_t bytes) {
    kiln_status status = ki_device_alive(device);
    if (status != KILN_OK || bytes == 0) return status;
    /* Wait first: the time of work still queued is not transfer time. */
    if ((status = device->backend->sync(device)) != KILN_OK) return status;
    double start = ki_clock();
    status = device->backend->download(device, to, from, offset, bytes);
    if (status == KILN_OK && !ki_on_cpu(device)) {
        device->statistics.bytes_down += bytes;
        device->statistics.transfer_seconds += ki_clock() - start;
    }
    return status;
}
