/* The same program in every process, whatever has started it: each has rows of its own, and calls what
 * follows when all others do. Process 0 leads: it has the device, and works on the rows of all, while the
 * others serve it (kiln/processes.h). All call kiln_processes_leave in the end. Apart from kiln.h. */
#ifndef KILN_MEET_H
#define KILN_MEET_H

#include "kiln/matrix.h"
#include "kiln/processes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes between processes, for a launcher that is not MPI: what a program has for that already. Functions
 * return 0, or a code that ends up in the error's message. One thread at a time calls them, and each call has
 * its partner in the other process at the same time, in the same order. A call is of 4 MiB at most. */
typedef struct kiln_transport {
    size_t size;
    int rank, count;        /* this process, from 0, among all */
    int local, local_count; /* and among those of its machine; 0 = all run on this machine */
    const char *name;       /* for messages; NULL = "the transport" */
    void *user;             /* for the functions */
    /* Waits until the other has the bytes, or until they are on their way. */
    int (*send)(void *user, int to, const void *bytes, int64_t count);
    int (*receive)(void *user, int from, void *bytes, int64_t count);
    /* From process 0 to all; NULL = a tree of the two. */
    int (*broadcast)(void *user, void *bytes, int64_t count);
    /* Process 0's numbers, float or double by their bytes, += those of all others; NULL = a tree, which a
     * deterministic device always takes. */
    int (*sum)(void *user, void *numbers, int64_t count, int real_bytes);
} kiln_transport;

/* Joins as kiln_processes_join, but every process returns at once, and gets *processes. transport: the bytes
 * go by it, and communicator is not looked at; NULL = MPI. A transport's functions are to fail when the other
 * process is gone: its silence is noticed by MPI's plug-in alone.
 * Errors: those of kiln_processes_join; ERR_ARGUMENT (the transport lacks send or receive, or its numbers do
 * not fit); ERR_DEVICE_LOST (it failed). */
KILN_API kiln_status kiln_processes_meet(kiln_processes **processes, int communicator,
                                         const kiln_transport *transport);

/* Finds this process among all, from 0; 0 for NULL. */
KILN_API int kiln_processes_rank(const kiln_processes *processes);

/* All but process 0 serve until that one rests: kiln_processes_open and all operations on united rows are
 * process 0's calls, between two such meetings. ERR_DEVICE_LOST: the transport failed, or process 0 left. */
KILN_API kiln_status kiln_processes_serve(kiln_processes *processes);
KILN_API kiln_status kiln_processes_rest(kiln_processes *processes);

/* Makes one matrix of the rows that each process has in memory of its own, in the order of the processes,
 * without a copy: mine as for kiln_matrix_wrap, on the device that process 0 has opened. Process 0 gets *X,
 * the others NULL; then these serve, whatever the call returned, until process 0 rests. The rows must
 * stay until mine.release is told, once: after X is freed, or when the call has failed.
 * Errors, in all processes at once: those of kiln_matrix_wrap in any of them, whose error process 0 has;
 * ERR_ARGUMENT (columns, type or format differ). Cost: some messages; no row crosses. */
KILN_API kiln_status kiln_processes_unite(kiln_matrix **X, kiln_processes *processes,
                                          const kiln_memory *mine);

/* Brings each process's bytes to process 0: *all is there what they gave, in their order, for kiln_free, and
 * NULL elsewhere; ends[i], everywhere, is where process i's end. ERR_NOMEM, in all processes at once. */
KILN_API kiln_status kiln_processes_collect(void **all, int64_t *ends, kiln_processes *processes,
                                            const void *mine, int64_t count);
/* Takes process 0's bytes to all others, where *bytes is a copy for kiln_free. ERR_NOMEM, in all at once. */
KILN_API kiln_status kiln_processes_spread(void **bytes, int64_t *count, kiln_processes *processes);

#ifdef __cplusplus
}
#endif
#endif
