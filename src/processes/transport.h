/* This header says what the plug-in for MPI (plugins/mpi) does for the library: bytes and sums between the
 * processes of a communicator. This header is all that both know of each other, so that a plug-in is built
 * against an MPI without the library, and the library without an MPI.
 *
 * Every int is 0, or a code that `text` explains. One thread at a time calls. A call that waits for other
 * processes does not wait for ever: each process tells the next one every second that it is there, and one
 * that has been silent for `limit` seconds, because it was killed, was stopped or lost its machine, ends all
 * of them (`end`). */
#ifndef KI_TRANSPORT_H
#define KI_TRANSPORT_H

#include <stdint.h>

enum { KI_TRANSPORT_VERSION = 2, KI_TRANSPORT_MOST = 1 << 22 /* bytes of one call at most */ };

/* Holds what goes to a process and comes from it at the same time. */
struct ki_exchange {
    const void *out;
    void *in;
    int64_t out_bytes, in_bytes;
};

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
    /* With every other process at once, count of them; what stands for this one is not looked at. */
    int (*exchange)(void *of, const struct ki_exchange *with);
    /* Process 0's numbers += those of all others, float or double, whose own are of no use afterwards;
     * ordered: by a tree that is the same for as many processes, for the same bits. */
    int (*sum)(void *of, void *numbers, int64_t count, int real_bytes, int ordered);
    void (*text)(int code, char *text, int64_t bytes);
    /* Ends all processes at once, this one too, with an exit code. */
    void (*end)(void *of, int code);
    /* The end for all, once each process calls it; MPI too, if `join` began it. */
    void (*leave)(void *of);
};

/* The plug-in's one symbol. communicator: as Fortran knows it (MPI_Comm_c2f), or -1 for all processes, whose
 * MPI begins here if it has not. The caller sets `limit` and `version`; of another version the plug-in tells
 * its own, and does no more. */
typedef int ki_transport_join(struct ki_transport *transport, int communicator);
#define KI_TRANSPORT_SYMBOL "kiln_transport_join"

#endif
