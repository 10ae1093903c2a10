/* Between the plug-in's two files. */
#ifndef MPI_TRANSPORT_H
#define MPI_TRANSPORT_H

#include <mpi.h>
#include <pthread.h>

#include "../../src/processes/transport.h"
#include "../../src/processes/tree.h"

struct watch;

struct link {
    MPI_Comm work;
    pthread_mutex_t lock; /* of all MPI calls but the last */
    int rank, count;
    int began;             /* MPI, so that it is to be ended */
    double limit;          /* seconds of silence */
    void *part;            /* KI_TRANSPORT_MOST bytes: what another process sends to be added */
    MPI_Request *requests; /* two for each process: of an exchange */
    struct watch *watch;
};

/* MPI_Abort, and the end of this process some seconds later where MPI waits for a machine that is gone.
 * Without the lock, whose holder may be the reason. */
void abort_all(const struct link *link, int code);

/* The thread that tells the next process that this one is there, and ends all if the one before is silent for
 * `limit` seconds. */
int watch_begin(struct link *link, double limit);
/* Its end, in all processes at once. */
void watch_end(struct link *link);

#endif
