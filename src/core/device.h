/* A device: a backend's connection, its memory budget, its built kernels and its figures. */
#ifndef KI_DEVICE_H
#define KI_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/backend.h"
#include "core/memory.h"
#include "core/status.h"

/* Instruction sets that CPU bodies are built for, ascending; as devices and plans print them, and as KILN_ISA
 * takes them. */
enum ki_isa { KI_ISA_BASE, KI_ISA_AVX2, KI_ISA_AVX512, KI_ISA_COUNT };
extern const char *const ki_isa_names[KI_ISA_COUNT];
/* The best that the environment's KILN_ISA allows; KI_ISA_COUNT: its value is none of the names. */
enum ki_isa ki_isa_cap(void);

struct kiln_device {
    const struct ki_backend *backend;
    void *impl; /* the backend's own connection */
    struct ki_properties properties;
    kiln_device_info info;
    int threads;     /* CPU bodies and parsers use this many */
    enum ki_isa isa; /* CPU bodies in use */
    bool lost;       /* a sticky error happened: every later call fails at once, frees are no-ops */
    bool forked;     /* what made it lost: it is the parent's (core/fork.c) */
    struct kiln_device *next_open; /* in core/fork.c's list of GPUs */
    int64_t budget;                /* bytes; what does not fit drives out what was used least recently */
    kiln_device_statistics statistics;
    struct ki_buffer scratch, spaces[KI_SPACES]; /* grown on demand, reused by every operation */
    struct ki_memory memory;
    struct ki_kernel *kernels; /* list of what was built or loaded */
    struct ki_cache *cache;    /* disk cache of built kernels; NULL until first use */
    kiln_device_options options;
    struct ki_group *group; /* of which this is the first member (core/group/); NULL = a device by itself */
    struct ki_processes *processes; /* that share operations with this one (core/processes.h); NULL = none */
};

static inline bool ki_on_cpu(const kiln_device *device) {
    return device->backend == &ki_backend_cpu;
}

/* ERR_DEVICE_LOST once a sticky error has happened. */
kiln_status ki_device_alive(const kiln_device *device);
/* Waits for all work of this process on the device, that of other libraries, too. */
kiln_status ki_device_settle(kiln_device *device);
kiln_status ki_device_upload(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                             int64_t bytes);
kiln_status ki_device_download(kiln_device *device, void *to, const struct ki_buffer *from, int64_t offset,
                               int64_t bytes);
/* Tells the user through options.message. */
void ki_device_message(const kiln_device *device, const char *format, ...) KI_PRINTF(2, 3);
/* Threads to use by default: KILN_NUM_THREADS, else OMP_NUM_THREADS, else min(affinity, cgroup quota). */
int ki_default_threads(void);

/* A forked child (core/fork.c). enter, leave: of a GPU's device, so that a child finds it lost. */
void ki_fork_enter(kiln_device *device);
void ki_fork_leave(kiln_device *device);
kiln_status ki_fork_fail(const kiln_device *device); /* ERR_DEVICE_LOST for one that was left behind */
/* Remembers which process of a line of forks has begun to start a driver; zeroed at first. */
struct ki_fork_owner {
    atomic_int generation; /* 1 + the number of forks before it; 0: none has */
};
/* Called before a driver is started, and before each use of it: ERR_DEVICE with a hint in a child of the
 * process that has. */
kiln_status ki_fork_own(struct ki_fork_owner *owner, const char *driver);

#endif
