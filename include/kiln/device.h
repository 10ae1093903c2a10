/* Kiln: devices. The CPU or a GPU, opened by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_DEVICE_H
#define KILN_DEVICE_H

#include "kiln/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_device kiln_device;

typedef struct kiln_device_options {
    size_t size;
    /* 0 = KILN_NUM_THREADS, which has to be in [1, 4096], else OMP_NUM_THREADS, else min(affinity, cgroup
     * quota) */
    int threads;
    int64_t memory; /* byte budget of the device; 0 = what the device has */
    /* Every operation gives the same bits from run to run, and on the CPU with any number of threads.
     * Default: where an operation's comment says so. */
    int deterministic;
    /* Told about choices a user would wonder at: which device "auto" took and why, "building kernel ...". */
    void (*message)(void *user, const char *text);
    void *message_user;
} kiln_device_options;

/* Opens a device. name: "auto" takes the best that works (CUDA GPU, OpenCL GPU, CPU) and says which through
 * options->message; "cpu"; "cuda" or "cuda:1"; "opencl" or "opencl:P.D" (platform P, device D).
 * A group of devices: "cuda:all", "cuda:0,1", "cpu,cuda:0", for tests "cpu*3"; "cpu@1,cuda:0@9" gives shares.
 * Matrices lie on its first member that is no CPU, if there is one; rows of a vector stay on who wrote them
 * until the whole is wanted. An X whose values come from outside is split by rows, with as many entries each,
 * or by shares, which unlike members have by their speeds in a pass, measured once, and their budgets, by the
 * first of mmchain, multiply, gram, gram_diagonal, losses, cg_pass, assign, sddmm, sddmm_multiply,
 * factor_solve, batch_reduce and batch_scale of its rows; a graph by columns by ranks_step, dissimilarities
 * by pairs by guttman_step. All members run these, the first runs all else, tuning refuses a group. But on
 * CPUs alone X stays in host memory, too, a graph's slices twice. A budget is each member's, threads are
 * shared, info's memory and threads and the statistics are sums, but for times, which pass side by side: the
 * longest. Deterministic: for the same members and shares.
 * An explicit name never falls back: KILN_ERR_DEVICE says what is missing and how to get it.
 * After a fork the child may open the CPU, and use CPU devices on which no call was under way. GPU devices of
 * its parent are KILN_ERR_DEVICE_LOST to it, and a driver that the parent has asked for anything is
 * KILN_ERR_DEVICE. */
KILN_API kiln_status kiln_device_open(kiln_device **device, const char *name,
                                      const kiln_device_options *options);
/* Frees the device; every matrix on it must have been freed before. NULL is allowed. */
KILN_API void kiln_device_close(kiln_device *device);

typedef struct kiln_device_info {
    size_t size;
    char name[32];         /* "cpu", "cuda:0", "opencl:0.0", of a group as it was opened */
    char description[160]; /* e.g. "NVIDIA H200, driver 580.159, NVRTC 13.0" */
    int usable;            /* 1 if kiln_device_open would succeed as far as can be told without opening */
    char reason[256];      /* why not, if not usable */
    char hint[256];        /* how to mend that */
    int64_t memory;        /* bytes of the device's memory, of an open device of its budget */
    int threads;           /* cpu: threads in use; GPU: compute units */
    int is_gpu;            /* 1 for a GPU, 0 for a processor (PoCL's device is one) */
    int has_f64;           /* 1 if its kernels can compute in f64 */
} kiln_device_info;
KILN_API kiln_status kiln_device_get_info(const kiln_device *device, kiln_device_info *info);
/* All devices this machine offers, usable or not, best first. size: sizeof(kiln_device_info), how far
 * apart the rows lie. Free with kiln_free. */
KILN_API kiln_status kiln_device_list(kiln_device_info **infos, int64_t *count, size_t size);

/* Holds what the device has done since it was opened. */
typedef struct kiln_device_statistics {
    size_t size;
    int64_t bytes_up, bytes_down; /* host to device and back; 0 on the CPU, where nothing moves */
    double transfer_seconds;      /* spent in those copies */
    double build_seconds;         /* spent building kernels or loading them from the cache */
    int64_t kernels_built, kernels_cached;
    int64_t memory_used, memory_peak; /* bytes of matrices and work space */
    int64_t evictions;                /* matrices that made room for others */
    /* Passes over matrices too large for the device: panels of rows moved while the one before was computed
     * with, their bytes (contained in bytes_up), the passes' time, and as much of it as was spent waiting for
     * panels to arrive */
    int64_t panels, panel_bytes;
    double panel_seconds, panel_wait_seconds;
    /* Spent deriving from sparse matrices what makes passes over them fast, and the part of memory_used that
     * it takes, work space not counted. */
    double layout_seconds;
    int64_t layout_bytes;
} kiln_device_statistics;
KILN_API kiln_status kiln_device_get_statistics(const kiln_device *device,
                                                kiln_device_statistics *statistics);

/* Waits for all work on the device; reports errors of work queued earlier. */
KILN_API kiln_status kiln_device_sync(kiln_device *device);

/* A row of what was looked for on this machine: driver, NVRTC, OpenCL, BLAS, MPI, NCCL, caches. */
typedef struct kiln_probe {
    size_t size;
    char what[48]; /* "CUDA driver" */
    int found;
    char detail[256]; /* version and path, or why not */
    char hint[256];   /* the command that would mend it; "" if none */
} kiln_probe;
/* size: sizeof(kiln_probe). Free with kiln_free. */
KILN_API kiln_status kiln_probe_machine(kiln_probe **probes, int64_t *count, size_t size);

/* Read bandwidth of the device in bytes per second, measured over a buffer far larger than its caches
 * (some tenths of a second; one or two where a processor's caches are of hundreds of MB). Kept in the
 * machine's profile in the cache folder; remeasure = 1 ignores a kept figure. */
KILN_API kiln_status kiln_device_bandwidth(double *bytes_per_second, kiln_device *device, int remeasure);

/* Kernels for NVIDIA's GPUs, built ahead of time: no GPU is needed, but NVRTC. A file that this writes, a
 * pack, is taken where it is named by KILN_KERNEL_PACK, or lies as kiln-kernels.pack beside the library or in
 * the cache folder; what it has is not built at first use, and may be taken in place of what suits the shape
 * better (docs/devices.md). It serves the library that made it, and GPUs of its architectures and later ones
 * with the same major number, its PTX all later ones. One that another user may have written is not used. */
typedef struct kiln_pack_options {
    size_t size;
    const char
        *architectures; /* "sm_80,compute_80", PTX; NULL = sm_75, 80, 86, 89, 90, 100, 120, compute_75 */
    const char
        *programs; /* lines of kiln_kernels_list, which may begin with their only architecture, blank ones, #
                   * comments, and "usual", as NULL does, for what serves most work on any shape */
    int threads;   /* 0 = as many as there are processors */
} kiln_pack_options;
/* Writes the pack; *built (NULL allowed) is the number of kernels in it, programs times architectures.
 * KILN_ERR_ARGUMENT names the line of a program that there is not, KILN_ERR_DEVICE says why NVRTC is missing,
 * KILN_ERR_BUILD what it says. The same bytes for the same NVRTC. */
KILN_API kiln_status kiln_kernels_build(const char *path, const kiln_pack_options *options, int64_t *built);
/* Lists what this version of the library has built for a backend ("cuda", "opencl") and keeps in the cache
 * folder: a line "FILE TYPE DEFINES" for each program, in order, each once; "" if there are none. Free with
 * kiln_free. */
KILN_API kiln_status kiln_kernels_list(char **programs, const char *backend);

/* Frees what a call documented as "free with kiln_free" handed out. NULL is allowed. */
KILN_API void kiln_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif
