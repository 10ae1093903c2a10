/* Kiln: plans and figures, for those who want to see how a choice is made, or to make it. Documented, but not
 * stable: it may change with any version, and kiln.h does not include it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KILN_TUNE_H
#define KILN_TUNE_H

#include "kiln/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------------------------------------- sharing */

/* Counts what the members of a group, or several processes, have done together since their device was
 * opened. */
typedef struct kiln_sharing {
    int64_t operations; /* that all took part in */
    /* Bytes of vectors as long as X's rows that another member or process had, and that came to the first one
     * as something there wanted the whole of them. 0 on the CPU of one process, whose members share the
     * memory. */
    int64_t rows_home_bytes;
} kiln_sharing;
/* All zeros for a device by itself. ERR_ARGUMENT: one of them is NULL. */
KILN_API kiln_status kiln_device_sharing(kiln_sharing *sharing, const kiln_device *device);

/* ------------------------------------------------------------------------------------------- choosing */

/* These say where work should run, and why. */

/* Passes over a matrix X with a little work on vectors between them, as iterative algorithms do. */
typedef struct kiln_work {
    size_t size;
    kiln_format format;      /* of X; 0 = dense */
    kiln_type type;          /* 0 = f64 */
    int64_t rows, cols, nnz; /* nnz: a sparse X's */
    int64_t k;               /* columns of y in a pass; 0 = 1 */
    int64_t passes;          /* expected; 0 = 1 */
    /* kiln_algorithm.trial: passes are this algorithm's iterations, whose time is found by running it on
     * made data, with k rankings, clusters, factors, topics or dimensions. NULL: they are kiln_mmchain's and
     * a little work on vectors. */
    const struct kiln_trial *trial;
    int64_t steps; /* kiln_lda's, in an iteration; 0 = its default */
} kiln_work;

/* Holds what the work is expected to take on a device: seconds = start + move + prepare + passes * (pass +
 * overhead). */
typedef struct kiln_estimate {
    char device[32], description[160];
    int chosen;
    int considered; /* 0: the rest is zero, and `why` says why the device was left out */
    /* 0: from pessimistic figures that any such device reaches; 1: from this machine's profile */
    int measured;
    int streamed;          /* X is larger than the device's memory: every pass moves it again */
    double bytes;          /* of X */
    double read, up, down; /* bytes a second of the device's memory, to it and from it (0: nothing moves) */
    /* opening the device and loading its kernels, if it is not open yet; at least what a process takes
     * that does nothing else, if that was told (kiln_choose_options.process) */
    double start_seconds;
    double move_seconds;                   /* X to the device */
    double pass_seconds, overhead_seconds; /* in each pass: memory; launches, waiting and vectors */
    double seconds;                        /* all told */
    char why[160];
    double prepare_seconds; /* once, before the passes, of work with a trial: a layout, a start */
} kiln_estimate;

typedef struct kiln_choose_options {
    size_t size;
    int thorough; /* measure what there is; default: as little as decides */
    /* Seconds that a process takes, from before it begins until it is gone, that opens the device of that
     * name and does nothing else; KILN_NONE: cannot be told. It is asked once for the processor and for
     * each GPU that a choice has seen before, while this one has opened none: no process sees the whole of
     * its own start and end, and a driver that another one uses starts and ends sooner. Leave it out in a
     * process that has had a GPU open: its driver stays in use until it ends. Default: what was told
     * before; else opening, as this process sees it, is all that counts. */
    double (*process)(void *user, const char *device);
    void *user;
} kiln_choose_options;

/* The device on which the work is expected to end first: `host`, an open "cpu" device where the data lie, or
 * the best GPU, which is opened with host's options. *estimates has a row for each device that came into
 * question (free with kiln_free). The figures are measured once a month, or an hour later where the
 * machine was busy with other things, and kept in its profile in the cache folder. Work so small that merely
 * starting a GPU would take longer goes to the host without looking for one, unless `thorough`, which
 * measures what there is. No GPU is no error. */
KILN_API kiln_status kiln_device_choose(kiln_device **device, kiln_estimate **estimates, int64_t *count,
                                        kiln_device *host, const kiln_work *work,
                                        const kiln_choose_options *options);

/* One way for a device to go about mmchain: the launch parameters of the fused-kernels paper, its section
 * 3.3. */
typedef struct kiln_plan {
    int64_t number;     /* in the list that it came in */
    int chosen;         /* kiln_mmchain takes this one */
    char variant[32];   /* of the kernel; on the CPU "cpu" and the instruction set */
    int vector, group;  /* VS, BS: threads that share a row; threads in a work-group, on the CPU in all */
    int load, rows;     /* TL: elements of a row that a thread holds; rows a step; 0 on the CPU */
    int columns;        /* of y, taken in one pass */
    int team;           /* work-groups that share a row; 0 where rows do not go to groups */
    int stages;         /* tiles of X, or pieces of tiles, on their way; 0 = loads go straight to registers */
    int shared;         /* elements of w in local memory; 0 = none */
    int64_t coarsening; /* C: rows that a vector goes through */
    int64_t groups;     /* work-groups launched */
    double occupancy;   /* threads that a compute unit holds at once, of those that it can */
    double bytes;       /* to and from memory */
    double atomics;     /* on memory */
    double seconds;     /* predicted */
    char limit[48];     /* what bounds it, in words */
} kiln_plan;

/* The plans that the device has for work->k columns of y (v of one column) and an X of this shape, of which
 * no more is needed. Free with kiln_free. ERR_ARGUMENT where X has no entries. */
KILN_API kiln_status kiln_mmchain_plans(kiln_plan **plans, int64_t *count, kiln_device *device,
                                        const kiln_work *work);
/* w = X^T (v .* (X y)) with a plan from the list for X's shape; v may be NULL. For measuring plans against
 * each other. */
KILN_API kiln_status kiln_mmchain_with(const kiln_plan *plan, kiln_matrix *w, const kiln_matrix *X,
                                       const kiln_matrix *v, const kiln_matrix *y);

/* The ways that the device has for kiln_batch_reduce over this batch, best predicted one first. In kiln_plan
 * `vector` counts the threads that share a vector, load the bytes of a load (0: one element), rows the
 * vectors that pass through on-chip memory together, team the pieces that each vector is cut into. Free with
 * kiln_free. ERR_ARGUMENT where there are no elements. */
KILN_API kiln_status kiln_batch_plans(kiln_plan **plans, int64_t *count, kiln_device *device,
                                      const kiln_batch *batch, kiln_type type);
/* kiln_batch_reduce by a plan from the list for this batch and X's type. */
KILN_API kiln_status kiln_batch_reduce_with(const kiln_plan *plan, kiln_matrix *result, kiln_batch_kind kind,
                                            const kiln_matrix *X, const kiln_batch *batch);

/* The ways that the device has for kiln_sddmm with an S of this shape (work: CSR) and factors of work->k
 * columns, best predicted one first. In kiln_plan `vector` counts the threads that share a row of a factor,
 * load the numbers of it that a thread has, rows the entries that are on their way together, columns the
 * numbers of each row that a pass over all entries takes, coarsening the entries that a vector goes through;
 * variant says whether rows of A are loaded ahead for each entry or kept as long as a row of S lasts. Free
 * with kiln_free. ERR_ARGUMENT where S has no entries or k is not in [1, 4096]. */
KILN_API kiln_status kiln_sddmm_plans(kiln_plan **plans, int64_t *count, kiln_device *device,
                                      const kiln_work *work);
/* kiln_sddmm(P, NULL, 1, sample, 0) by a plan from the list for S's shape and the factors' columns; P must
 * not be S. */
KILN_API kiln_status kiln_sddmm_with(const kiln_plan *plan, kiln_matrix *P, const kiln_sample *sample);

/* The layouts in which kiln_ranks_step can have the links of A for k rankings, the best predicted one
 * first. In kiln_plan `number` is the kiln_layout, `variant` its name, and `seconds` and `bytes` are those of
 * a step; weighted, of links of which none has a weight but 1, are those without. Makes A's copy by columns,
 * which is kept with A, to count how many links lead to each vertex. Free with kiln_free. ERR_ARGUMENT where
 * A is not square and sparse, or k is not in [1, 64]. */
KILN_API kiln_status kiln_ranks_plans(kiln_plan **plans, int64_t *count, const kiln_matrix *A, int64_t k,
                                      int weighted);

#ifdef __cplusplus
}
#endif
#endif
