/* GPU kernels: found by name, specialised by -D when built, kept for the device's life and on disk. */
#ifndef KI_KERNELS_H
#define KI_KERNELS_H

#include "core/matrix.h"

/* A kernel file, embedded at build by cmake/embed.cmake; the list ends with a NULL name. */
struct ki_source {
    const char *name; /* "csr.cl" or "opencl.h" */
    const char *path; /* in the source tree: "src/pass/csr/csr.cl" */
    const char *text;
};
extern const struct ki_source ki_sources[];
/* A hash of the library's code that builds kernels: a cached kernel serves only the code that built it. */
extern const char ki_build_id[];

/* Keys of the cache begin so, with KILN_VERSION, ki_build_id and the backend's name. They end with a line
 * "program FILE TYPE DEFINES". */
#define KI_KEY_START "kiln %s\nbuild %s\nbackend %s\n"
static inline const char *ki_program_type(kiln_type type) {
    return type == KILN_F32 ? "f32" : "f64";
}

/* Says what a kernel is built with, as printf writes it, for as long as the block around lives. */
enum { KI_DEFINES_MOST = 384 };
#define KI_DEFINES(...) ki_defines((char[KI_DEFINES_MOST]){0}, __VA_ARGS__)
const char *ki_defines(char text[KI_DEFINES_MOST], const char *format, ...) KI_PRINTF(2, 3);

/* The kernel `function` of <file>.cl, built with `defines` ("-DVS=16 -DTL=2", integers and names from
 * fixed templates only, never user text) and the defines for the element type: REAL_F32 or REAL_F64.
 * Looked up in the device, then in the disk cache, else built, which is announced through the device's
 * message callback. Owned by the device. */
kiln_status ki_kernel_get(struct ki_kernel **kernel, kiln_device *device, const char *file,
                          const char *function, kiln_type type, const char *defines);
/* Returns whether a pack has a kernel of this device's kind, and this program, so that nothing is compiled.
 * What the device or the cache have built does not count: a plan, and with it the order of sums, must not
 * depend on what ran before. */
bool ki_kernels_packed(const kiln_device *device);
bool ki_kernel_packed(const kiln_device *device, const char *file, kiln_type type, const char *defines);
/* A kernel as ki_kernel_get is asked for it. */
struct ki_program {
    const char *file, *function;
    kiln_type type;
    char defines[KI_DEFINES_MOST];
};
/* Kernels that a call will ask for, so that those not built yet are compiled side by side and not one
 * after the other. A program that several kernels lie in is listed once. Those that the compiler takes
 * longest for are listed first: NVRTC reads one program at a time, 20 ms each, and optimises any number of
 * them, so that a long one that is read last would be waited for. Room for more than any call asks for:
 * what is beyond it is built when it is needed. */
enum { KI_PROGRAMS_MOST = 32 };
struct ki_programs {
    int count;
    struct ki_program rows[KI_PROGRAMS_MOST];
};
void ki_programs_add(struct ki_programs *programs, const char *file, const char *function, kiln_type type,
                     const char *defines);
/* Gets what neither the device nor the disk cache has, each on a thread of its own. What the compiler
 * refuses is left to ki_kernel_get, which then tells why. */
kiln_status ki_programs_build(kiln_device *device, const struct ki_programs *programs);
/* Groups of that size that the whole device runs at once: a grid of this size has no second, emptier wave.
 * Estimated as 1024 threads a compute unit where the API does not tell. */
kiln_status ki_kernel_resident(kiln_device *device, int64_t *groups, struct ki_kernel *kernel,
                               int64_t group_size);
/* The same for groups each with `local_bytes` of on-chip memory, which the launch must be given, where the
 * API counts it. A launch may be given no more. */
kiln_status ki_kernel_resident_with(kiln_device *device, int64_t *groups, struct ki_kernel *kernel,
                                    int64_t group_size, int64_t local_bytes);
/* Queues groups x group_size threads with `count` arguments. groups = 0 does nothing. */
kiln_status ki_kernel_launch(kiln_device *device, struct ki_kernel *kernel, int64_t groups,
                             int64_t group_size, const struct ki_arg *args, int count);
/* The same for groups that wait for each other: none begins before there is room for all, where the API
 * can say so (CUDA). ERR_DEVICE if there never is, for ki_kernel_resident* has said how many there may be. */
kiln_status ki_kernel_launch_together(kiln_device *device, struct ki_kernel *kernel, int64_t groups,
                                      int64_t group_size, const struct ki_arg *args, int count);
/* Finds a kernel and queues it, where the launch does not depend on what is found: the arguments are those
 * of both. */
kiln_status ki_kernel_run(kiln_device *device, const char *file, const char *function, kiln_type type,
                          const char *defines, int64_t groups, int64_t group_size, const struct ki_arg *args,
                          int count);
void ki_kernels_free(kiln_device *device); /* at close; the disk cache with them */

static inline struct ki_arg ki_arg_buffer(const struct ki_buffer *buffer) { /* NULL gives a null pointer */
    if (!buffer) return (struct ki_arg){.size = 8};
    return (struct ki_arg){
        .size = 8, .as.handle = buffer->handle, .offset = buffer->offset, .buffer_bytes = buffer->bytes};
}

static inline struct ki_arg ki_arg_read(const kiln_matrix *A) {
    return (struct ki_arg){.size = 8, .matrix = A};
}

/* The values as the matrix keeps them, narrow or wide. */
static inline struct ki_arg ki_arg_kept(const kiln_matrix *A) {
    return (struct ki_arg){.size = 8, .matrix = A, .kept = true};
}

static inline struct ki_arg ki_arg_written(kiln_matrix *A) {
    return (struct ki_arg){.size = 8, .matrix = A, .written = true};
}

/* A matrix's values, wherever it lies: the launch brings it to the device. What is not const counts as
 * written. NULL gives a null pointer. */
#define ki_arg_values(A) _Generic((A), kiln_matrix * : ki_arg_written, const kiln_matrix * : ki_arg_read)(A)

static inline struct ki_arg ki_arg_i64(int64_t value) {
    return (struct ki_arg){.size = 8, .as.i64 = value};
}

static inline struct ki_arg ki_arg_i32(int32_t value) {
    return (struct ki_arg){.size = 4, .as.i32 = value};
}

/* The last argument asks for so much local memory: LOCAL_PARAMETER in the dialects. */
static inline struct ki_arg ki_arg_local(int64_t bytes) {
    return (struct ki_arg){.size = 0, .as.i64 = bytes};
}

static inline struct ki_arg ki_arg_real(kiln_type type, double value) {
    if (type == KILN_F32) return (struct ki_arg){.size = 4, .as.f32 = (float)value};
    return (struct ki_arg){.size = 8, .as.f64 = value};
}

#endif
