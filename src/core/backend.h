/* A backend knows memory and launching and no mathematics. This struct is all that core knows of one. */
#ifndef KI_BACKEND_H
#define KI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

#include "kiln/matrix.h"

/* Device memory. `handle` is a host pointer (cpu), a CUdeviceptr (cuda) or a cl_mem (opencl); 0 = empty.
 * OpenCL has no pointers into the middle of a buffer, hence the offset, a multiple of properties.align; 0 but
 * in views. */
struct ki_buffer {
    uint64_t handle;
    int64_t bytes;  /* of all that the handle stands for: a view of its end has the same */
    int64_t offset; /* where this view begins */
};

static inline void *ki_host(const struct ki_buffer *buffer) { /* where handles are addresses */
    return (void *)(uintptr_t)(buffer->handle + (uint64_t)buffer->offset);
}

struct ki_properties {
    bool is_gpu;
    int compute_units;   /* multiprocessors, OpenCL compute units, CPU threads */
    int warp;            /* threads that run in step: 32 on CUDA, 1 where nothing is promised */
    bool shuffles;       /* 32 threads in step exchange registers (dialect/group_sum.h) */
    bool together;       /* groups of a launch may wait for each other: launch's `together` holds */
    int64_t group_max;   /* threads in a work-group at most */
    int64_t local_bytes; /* on-chip memory of a work-group */
    int64_t local_max;   /* ... where it asks for it at launch; 0 where it cannot */
    int64_t
        local_declared;  /* ... where its kernel declares it, if that may be more than local_bytes, else 0 */
    int64_t local_hoped; /* what local_declared may prove to be (pass/dense/local_declared.h); 0 = settled */
    const char
        *registers_option; /* a build's: before the most registers of a thread; NULL if there is none */
    int64_t cache;         /* bytes of the last cache level; 0 = not told */
    double bandwidth;      /* bytes a second that the memory is built for; 0 = not told */
    int64_t registers;     /* of 32 bits in a compute unit; 0 = not told, as in the next two */
    int64_t unit_threads;  /* that a compute unit runs at once */
    int64_t unit_groups;   /* ... and work-groups */
    int architecture;      /* compute capability times ten on CUDA, else 0 */
    int64_t memory;        /* bytes in all */
    int64_t alloc_max;     /* bytes in one allocation at most */
    int64_t align;         /* of offsets into a buffer, in bytes */
    bool has_f64;
    bool addresses; /* handles are addresses, which a caller may have of memory that is its own */
    bool
        gathers; /* a CPU with AVX-512 that gathers and scatters faster than it loads and stores one by one */
    char cache_key[192]; /* what built kernels depend on: API, compiler, driver and architecture versions */
};

/* One kernel argument: every kind fits in eight bytes. Size 0 is no argument: i64 bytes of on-chip memory for
 * each group. */
struct ki_arg {
    size_t size;
    union {
        uint64_t handle;
        int64_t i64;
        int32_t i32;
        double f64;
        float f32;
    } as;
    int64_t offset, buffer_bytes; /* of a buffer */
    const kiln_matrix
        *matrix; /* whose values the argument is, brought to the device by the launch; or NULL */
    bool written;
    bool kept; /* as the matrix keeps them, which is there and held */
};

/* Holds what processes need to connect their devices: NCCL's unique identifier. */
struct ki_invitation {
    char bytes[128];
};

struct ki_backend {
    const char *name; /* "cpu", "cuda", "opencl": the word before the colon in a device's name */
    /* Connects to the device that `selector` names ("" = the first, "1", "0.1"). Fills device->impl,
     * ->properties and ->info. */
    kiln_status (*open)(kiln_device *device, const char *selector);
    void (*close)(kiln_device *device);
    /* Appends every device there is, usable or not, to the array. (*infos grown by ki_resize.) */
    kiln_status (*list)(kiln_device_info **infos, int64_t *count);
    kiln_status (*alloc)(kiln_device *device, struct ki_buffer *buffer, int64_t bytes);
    void (*release)(kiln_device *device, struct ki_buffer *buffer);
    kiln_status (*upload)(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                          int64_t bytes);
    kiln_status (*download)(kiln_device *device, void *to, const struct ki_buffer *from, int64_t offset,
                            int64_t bytes);
    /* A second queue, for uploads while kernels run: an upload begins when the kernels launched before it are
     * through, and `from` must stay until upload_wait. NULL where nothing moves. */
    kiln_status (*upload_queue)(kiln_device *device, struct ki_buffer *to, int64_t offset, const void *from,
                                int64_t bytes);
    kiln_status (*upload_wait)(kiln_device *device);
    /* Host memory that the device then reads at full speed. NULL where there is no difference. */
    kiln_status (*pin)(kiln_device *device, void *memory, int64_t bytes);
    void (*unpin)(kiln_device *device, void *memory);
    /* Finds the compiler, and completes properties.cache_key: called before either is used. NULL where open
     * has done it. */
    kiln_status (*compiler)(kiln_device *device);
    /* Compiles source to a binary that load accepts; *binary comes from ki_resize and belongs to the
     * caller. */
    kiln_status (*build)(kiln_device *device, void **binary, size_t *bytes, const char *source,
                         const char *options);
    /* Makes a function of a binary callable. ERR_BUILD if the binary does not suit (a cache miss then). */
    kiln_status (*load)(kiln_device *device, void **module, void **function, const void *binary, size_t bytes,
                        const char *name, const char *options);
    void (*unload)(kiln_device *device, void *module, void *function);
    /* Finds how many groups of that size a compute unit runs at once, which registers and local memory
     * decide. NULL in the table where the API does not tell. */
    kiln_status (*resident)(kiln_device *device, int64_t *groups, void *function, int64_t group_size);
    /* The same for groups that get `local_bytes` each at launch (ki_arg_local). NULL where no launch gives
     * any. */
    kiln_status (*resident_with)(kiln_device *device, int64_t *groups, void *function, int64_t group_size,
                                 int64_t local_bytes);
    /* Queues groups x group_size threads. Work on one device runs in order. `together`: the groups wait for
     * each other, and begin when there is room for all; an API that cannot say so, as OpenCL, begins with
     * those that there is room for. */
    kiln_status (*launch)(kiln_device *device, void *function, int64_t groups, int64_t group_size,
                          bool together, const struct ki_arg *args, int count);
    kiln_status (*sync)(kiln_device *device);
    /* Waits for the work of everybody in this process. NULL where memory is not shared with others. */
    kiln_status (*settle)(kiln_device *device);
    /* Between two devices of the backend; all NULL where copies go through host memory. meet, once a pair and
     * direction: *direct tells whether `device` reads the memory of `other` without the host. after: what is
     * queued on `device` from now on begins after what has been queued on `other` so far. copy is queued on
     * `device`, one of the two. */
    kiln_status (*meet)(kiln_device *device, kiln_device *other, bool *direct);
    kiln_status (*after)(kiln_device *device, kiln_device *other);
    kiln_status (*copy)(kiln_device *device, struct ki_buffer *to, int64_t to_offset,
                        const struct ki_buffer *from, int64_t from_offset, int64_t bytes);
    /* Collectives of several devices, each queued on all of them; all NULL where there are none. unite: NULL
     * where they do not serve these devices. sum: the first's buffer += those of the others; spread: theirs =
     * the first's. part: the end; a lost device is not asked to disconnect, as it might wait for ever. */
    void *(*unite)(kiln_device *const *members, int count);
    void (*part)(void *united, bool alive);
    kiln_status (*sum)(kiln_device *const *members, void *united, const struct ki_buffer *const *buffers,
                       int64_t count, kiln_type type);
    kiln_status (*spread)(kiln_device *const *members, void *united, const struct ki_buffer *const *buffers,
                          int64_t count, kiln_type type);
    /* Collectives of devices of several processes, each of which has one; all NULL where there are none.
     * identity: the device's own number among those of all machines; 0: it has no collectives. The first
     * process invites, all accept at the same time, which waits for all of them; NULL: it has not worked.
     * Then sum and spread with that one member and buffer, and part, serve them, too. */
    int64_t (*identity)(kiln_device *device);
    bool (*invite)(kiln_device *device, struct ki_invitation *invitation);
    void *(*accept)(kiln_device *device, const struct ki_invitation *invitation, int rank, int count);
};

extern const struct ki_backend ki_backend_cpu, ki_backend_cuda, ki_backend_opencl;

#endif
