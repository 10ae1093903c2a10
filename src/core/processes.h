/* This header has what core, pass and io know of a device whose operations several processes share
 * (src/processes): the calls that they hand on. */
#ifndef KI_PROCESSES_H
#define KI_PROCESSES_H

#include "core/device.h"
#include "core/each.h"
#include "kiln/data.h"
#include "kiln/tune.h"

struct ki_shared;
struct ki_table;

struct ki_processes {
    int count;
    kiln_sharing sharing; /* what they have shared so far */
    /* An operation on an X that the processes share (pass/group.h). */
    kiln_status (*share)(const struct ki_shared *shared);
    /* Data of which each process reads a part: X's rows stay with them, all else comes into the table. *X is
     * left NULL where they cannot be read in parts, and nothing has been read then. */
    kiln_status (*read)(kiln_matrix **X, struct ki_table *table, kiln_file_format *format, int64_t *bytes,
                        kiln_device *device, const char *path, const kiln_read_options *options);
    /* These serve an X whose rows lie in the processes: kiln_rows, and kiln_norm with KILN_NORM_MAX. */
    kiln_status (*rows)(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows);
    kiln_status (*largest)(double *largest, const kiln_matrix *X);
    /* These serve the same X: ki_each_run, its transposed matrix in parts, one of its arrays (KI_VALUES, ...)
     * to host memory, and new values. */
    kiln_status (*each)(kiln_matrix **made, double *sums, const struct ki_each *each, const kiln_matrix *X);
    kiln_status (*transpose)(kiln_matrix **T, const kiln_matrix *X);
    kiln_status (*fetch)(void *to, const kiln_matrix *X, int part);
    kiln_status (*store)(kiln_matrix *X, const void *values);
    /* At the device's close. */
    void (*close)(kiln_device *device);
};

/* Threads of each of so many processes on this machine. *bound: it may run on less than its share of the
 * processors. */
int ki_threads_among(bool *bound, int processes);

/* Returns whether operations on an X are shared: by a group's devices or by processes. */
static inline bool ki_device_shares(const kiln_device *device) {
    return device->group || device->processes;
}

#endif
