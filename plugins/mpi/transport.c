/* Kiln's plug-in for MPI: bytes and sums between processes (src/processes/transport.h), for Open MPI or
 * MPICH.
 *
 * Every MPI call is one that does not wait, and is made under a lock; who waits, tests and sleeps in turn. So
 * an MPI that serves one thread at a time is enough for two: the program's, and the one that watches
 * (watch.c). */
#define _GNU_SOURCE
#include "transport.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG_BYTES = 1, IDLE_YIELDS = 200, BUSY_YIELDS = 20000, NAP_NANOSECONDS = 50000 };

/* Yields for a while, then naps: on processors that have more to do than this. */
static int finish(struct link *link, MPI_Request *requests, int count, int yields) {
    for (int tried = 0;; tried++) {
        int done = 0;
        pthread_mutex_lock(&link->lock);
        const int code = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        pthread_mutex_unlock(&link->lock);
        if (code != MPI_SUCCESS || done) return code;
        if (tried < yields)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NANOSECONDS}, NULL);
    }
}

/* `begin` is the MPI call that starts it. */
#define RUN(link, yields, begin)                                                                             \
    MPI_Request request = MPI_REQUEST_NULL;                                                                  \
    pthread_mutex_lock(&(link)->lock);                                                                       \
    const int code = (begin);                                                                                \
    pthread_mutex_unlock(&(link)->lock);                                                                     \
    return code == MPI_SUCCESS ? finish((link), &request, 1, (yields)) : code

static int broadcast(void *of, void *bytes, int64_t count, int idle) {
    struct link *link = of;
    RUN(link, idle ? IDLE_YIELDS : BUSY_YIELDS,
        MPI_Ibcast(bytes, (int)count, MPI_BYTE, 0, link->work, &request));
}

static int send_bytes(void *of, int to, const void *bytes, int64_t count) {
    struct link *link = of;
    RUN(link, BUSY_YIELDS, MPI_Isend(bytes, (int)count, MPI_BYTE, to, TAG_BYTES, link->work, &request));
}

static int receive_bytes(void *of, int from, void *bytes, int64_t count) {
    struct link *link = of;
    RUN(link, BUSY_YIELDS, MPI_Irecv(bytes, (int)count, MPI_BYTE, from, TAG_BYTES, link->work, &request));
}

/* Receives stand before what they wait for is sent, so that large messages go straight to their places. */
static int exchange(void *of, const struct ki_exchange *with) {
    struct link *link = of;
    int count = 0, code = MPI_SUCCESS;
    pthread_mutex_lock(&link->lock);
    for (int i = 0; i < link->count && code == MPI_SUCCESS; i++)
        if (with[i].in_bytes)
            code = MPI_Irecv(with[i].in, (int)with[i].in_bytes, MPI_BYTE, i, TAG_BYTES, link->work,
                             &link->requests[count++]);
    for (int i = 0; i < link->count && code == MPI_SUCCESS; i++)
        if (with[i].out_bytes)
            code = MPI_Isend(with[i].out, (int)with[i].out_bytes, MPI_BYTE, i, TAG_BYTES, link->work,
                             &link->requests[count++]);
    pthread_mutex_unlock(&link->lock);
    return code == MPI_SUCCESS ? finish(link, link->requests, count, BUSY_YIELDS) : code;
}

/* MPI leaves the order of a reduction's terms to the implementation. */
static int sum_any_order(struct link *link, void *numbers, int64_t count, MPI_Datatype type) {
    RUN(link, BUSY_YIELDS,
        MPI_Ireduce(link->rank ? numbers : MPI_IN_PLACE, link->rank ? NULL : numbers, (int)count, type,
                    MPI_SUM, 0, link->work, &request));
}

static int sum(void *of, void *numbers, int64_t count, int real_bytes, int ordered) {
    const struct link *link = of;
    const struct ki_tree tree = {link->rank, link->count, of, link->part, send_bytes, receive_bytes};
    if (ordered) return ki_tree_sum(&tree, numbers, count, real_bytes);
    return sum_any_order(of, numbers, count, real_bytes == 4 ? MPI_FLOAT : MPI_DOUBLE);
}

static void text(int code, char *to, int64_t bytes) {
    char message[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, message, &length) != MPI_SUCCESS) snprintf(message, sizeof message, "?");
    snprintf(to, (size_t)bytes, "%s", message);
}

static void end(void *of, int code) {
    abort_all(of, code);
}

static int barrier(struct link *link) {
    RUN(link, BUSY_YIELDS, MPI_Ibarrier(link->work, &request));
}

static void free_link(struct link *link) {
    free(link->requests);
    free(link->part);
    free(link);
}

#ifdef OPEN_MPI
static void end_mpi(double limit) {
    (void)limit;
    MPI_Finalize();
}
#else
static void *finalize(void *nothing) {
    MPI_Finalize();
    return nothing;
}

/* MPICH 4.0 over UCX's TCP may stay in MPI_Finalize for ever, without Kiln, too: who has disconnected waits
 * for the end of all, and serves nobody who is still disconnecting from it. All has been sent and taken by
 * then, so after `limit` seconds the process goes on without. */
static void end_mpi(double limit) {
    pthread_t thread;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)limit;
    if (pthread_create(&thread, NULL, finalize, NULL))
        finalize(NULL);
    else if (pthread_timedjoin_np(thread, NULL, &until))
        pthread_detach(thread);
}
#endif

static void leave(void *of) {
    struct link *link = of;
    const int ends = link->began;
    const double limit = link->limit;
    barrier(link);
    watch_end(link);
    MPI_Comm_free(&link->work);
    pthread_mutex_destroy(&link->lock);
    free_link(link);
    if (ends) end_mpi(limit);
}

static void name_it(char *name, size_t bytes) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    for (char *c = version; *c; c++)
        if (*c == '\t') *c = ' ';
    snprintf(name, bytes, "%s", version);
}

/* The processes of this machine. */
static int count_local(struct ki_transport *transport, MPI_Comm all) {
    MPI_Comm here;
    int code = MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    if (code != MPI_SUCCESS) return code;
    MPI_Comm_rank(here, &transport->local);
    MPI_Comm_size(here, &transport->local_count);
    return MPI_Comm_free(&here);
}

/* MPI begun, if it has not been; *threads: how many at a time it serves. */
static int begin(struct link *link, int *threads) {
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun) return MPI_Query_thread(threads);
    link->began = 1;
    return MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, threads);
}

static int connect_all(struct ki_transport *transport, struct link *link, int communicator, int threads) {
    const MPI_Comm all = communicator == -1 ? MPI_COMM_WORLD : MPI_Comm_f2c(communicator);
    int code = MPI_Comm_dup(all, &link->work);
    if (code != MPI_SUCCESS) return code;
    MPI_Comm_set_errhandler(link->work, MPI_ERRORS_RETURN);
    MPI_Comm_rank(link->work, &link->rank);
    MPI_Comm_size(link->work, &link->count);
    /* If the program began MPI for one thread at a time, its own calls would meet those of the watching
     * thread. */
    transport->watched =
        link->count > 1 && threads >= (link->began ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE);
    code = count_local(transport, link->work);
    if (code == MPI_SUCCESS && !(link->requests = malloc(2 * (size_t)link->count * sizeof(MPI_Request))))
        code = MPI_ERR_NO_MEM;
    if (code == MPI_SUCCESS && transport->watched) code = watch_begin(link, transport->limit);
    return code;
}

__attribute__((visibility("default"))) int kiln_transport_join(struct ki_transport *transport,
                                                               int communicator) {
    if (transport->version != KI_TRANSPORT_VERSION) { /* whose struct is another one */
        transport->version = KI_TRANSPORT_VERSION;
        return MPI_SUCCESS;
    }
    struct link *link = calloc(1, sizeof *link);
    int threads = MPI_THREAD_SINGLE;
    if (!link || !(link->part = malloc(KI_TRANSPORT_MOST))) {
        free(link);
        return MPI_ERR_NO_MEM;
    }
    link->limit = transport->limit;
    pthread_mutex_init(&link->lock, NULL);
    int code = begin(link, &threads);
    if (code == MPI_SUCCESS) code = connect_all(transport, link, communicator, threads);
    if (code != MPI_SUCCESS) {
        free_link(link);
        return code;
    }
    *transport = (struct ki_transport){.version = KI_TRANSPORT_VERSION,
                                       .rank = link->rank,
                                       .count = link->count,
                                       .local = transport->local,
                                       .local_count = transport->local_count,
                                       .watched = transport->watched,
                                       .limit = transport->limit,
                                       .of = link,
                                       .broadcast = broadcast,
                                       .send = send_bytes,
                                       .receive = receive_bytes,
                                       .exchange = exchange,
                                       .sum = sum,
                                       .text = text,
                                       .end = end,
                                       .leave = leave};
    name_it(transport->name, sizeof transport->name);
    return MPI_SUCCESS;
}
