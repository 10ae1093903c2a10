/* What the plug-in for MPI (plugins/mpi) does for the library: bytes and sums between the processes of a communicator. This header is
 * all that both know of each other, so that a plug-in is built against an MPI without the library, and the library without an MPI.
 *
 * Every int is 0, or a code that `text` explains. One thread at a time calls. A call that waits for other processes does not wait for
 * ever: each process tells the next one every second that it is there, and one that has been silent for `limit` seconds, because it was
 * killed, was stopped or lost its machine, ends all of them (`end`). */
#ifndef KI_TRANSPORT_H
#define KI_TRANSPORT_H

#include <stdint.h>

enum { KI_TRANSPORT_VERSION = 1, KI_TRANSPORT_MOST = 1 << 22 /* bytes of one call at most */ };

struct ki_transport {
    int version;
    int rank, count;        /* this process among all */
    int local, local_count; /* and among those of its machine */
    int watched;            /* 0: silence is not noticed, as the program has begun MPI without threads */
    char name[128];         /* "Open MPI 4.1.4" */
    void *of;               /* the plug-in's own */
    double limit;           /* seconds of silence */
    /* From process 0 to all others; idle: it may be long until there is something, sleep meanwhile. */
    int (*broadcast)(void *of, void *bytes, int64_t count, int idle);
    int (*send)(void *of, int to, const void *bytes, int64_t count);
    int (*receive)(void *of, int from, void *bytes, int64_t count);
    /* Process 0's numbers += those of all others, float or double; ordered: in the order of the processes, for the same bits. */
    int (*sum)(void *of, void *numbers, int64_t count, int real_bytes, int ordered);
    void (*text)(int code, char *text, int64_t bytes);
    /* Ends all processes at once, this one too, with an exit code. */
    void (*end)(void *of, int code);
    /* The end for all, once each process calls it; MPI too, if `join` began it. */
    void (*leave)(void *of);
};

/* The plug-in's one symbol. communicator: as Fortran knows it (MPI_Comm_c2f), or -1 for all processes, whose MPI begins here if it has
 * not. `limit` is set by the caller. */
typedef int ki_transport_join(struct ki_transport *transport, int communicator);
#define KI_TRANSPORT_SYMBOL "kiln_transport_join"

#endif
