/* Kiln: version, status and errors, progress and cancellation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_BASE_H
#define KILN_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 2
#define KILN_VERSION_PATCH 0

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

/* The version of the library that is running, e.g. "0.2.0". */
KILN_API const char *kiln_version(void);

/* ---------------------------------------------------------------------------------------- status */

/* One list of codes, names and texts. The numbers are stable. */
#define KILN_STATUS_LIST(X)                                                                                  \
    X(OK, 0, "success")                                                                                      \
    X(ERR_INTERNAL, 1, "internal error")                                                                     \
    X(ERR_ARGUMENT, 2, "invalid argument")                                                                   \
    X(ERR_PARSE, 3, "malformed input")                                                                       \
    X(ERR_DATA, 4, "unusable data")                                                                          \
    X(ERR_NOMEM, 5, "out of host memory")                                                                    \
    X(ERR_DEVICE_NOMEM, 6, "out of device memory")                                                           \
    X(ERR_DEVICE, 7, "device not available")                                                                 \
    X(ERR_DEVICE_LOST, 8, "device lost")                                                                     \
    X(ERR_BUILD, 9, "kernel build failed")                                                                   \
    X(ERR_IO, 10, "input or output failed")                                                                  \
    X(ERR_LIMIT, 11, "limit exceeded")                                                                       \
    X(ERR_UNSUPPORTED, 12, "not supported")                                                                  \
    X(ERR_CANCELLED, 13, "cancelled")                                                                        \
    X(ERR_MODEL, 14, "unusable model")

typedef enum kiln_status {
#define KILN_STATUS_ENUM(name, code, text) KILN_##name = code,
    KILN_STATUS_LIST(KILN_STATUS_ENUM)
#undef KILN_STATUS_ENUM
} kiln_status;

/* "KILN_ERR_PARSE" and "malformed input"; for an unknown code "KILN_ERR_UNKNOWN" and "unknown status". */
KILN_API const char *kiln_status_name(kiln_status status);
KILN_API const char *kiln_status_text(kiln_status status);

/* The last error on this thread, valid until the next failing call on the thread. A message that names the
 * call begins with it ("kiln_glm: ..."); message and hint write an option as its field
 * (kiln_glm_options.l2). */
typedef struct kiln_error {
    kiln_status status;
    const char *message;   /* one sentence: what, the value, why; never NULL */
    const char *hint;      /* what to do about it; "" if nothing is known */
    const char *file;      /* input file; "" if the error has no place */
    int64_t line, column;  /* counted from 1; 0 = unknown */
    int64_t offset;        /* bytes from the start of the (decompressed) input; -1 = unknown */
    const char *subsystem; /* "" or who reported a native code: "cuda", "nvrtc", "opencl", "errno" */
    int native_code;       /* that subsystem's own number, 0 if none */
} kiln_error;
KILN_API const kiln_error *kiln_last_error(void);

/* A figure that cannot be told. */
#define KILN_NONE (-1)

/* A number must lie here: least <= x <= most, without the ends that are open. */
enum { KILN_OPEN_LEAST = 1, KILN_OPEN_MOST = 2 };
typedef struct kiln_range {
    double least, most;
    int open;         /* KILN_OPEN_LEAST: least < x; KILN_OPEN_MOST: x < most; their sum; 0: neither */
    const char *hint; /* what to do about a number outside; NULL = no advice */
} kiln_range;

/* ---------------------------------------------------------------------- progress and cancellation */

typedef struct kiln_progress {
    const char *phase;   /* "read", "solve", "write" */
    int64_t done, total; /* bytes for "read" and "write", iterations for "solve"; total 0 = unknown */
    double objective;    /* "solve": current objective; NaN if not known */
    double residual;     /* "solve": relative residual, the quantity the tolerance is compared with */
    double seconds;      /* since the phase began */
    int64_t bytes;       /* bytes of X read so far in this phase, for a rate */
    double test; /* "solve": the error on what is held out, where the algorithm is given a test; else 0 */
} kiln_progress;

/* Called now and then from the calling thread (at most every few milliseconds of work and at least once an
 * iteration). Return nonzero to stop: algorithms then keep their result and report KILN_STOP_CANCELLED,
 * readers and writers return KILN_ERR_CANCELLED and leave nothing behind. */
typedef struct kiln_control {
    int (*progress)(void *user, const kiln_progress *now);
    void *user;
} kiln_control;

#ifdef __cplusplus
}
#endif
#endif
