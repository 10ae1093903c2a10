/* This file says whether the other processes are there. They stand in a ring: each sends the next one a beat
 * a second, and looks for those of the one before. A process that was killed or stopped sends none, whatever
 * it was doing, and a long computation does not keep this thread from sending: so silence for `limit` seconds
 * ends all processes, with one message, from the one process that has noticed. */
#include "transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TAG_BEAT = 2, EXIT_LOST = 5, GRACE = 3 /* seconds */, NAP_NANOSECONDS = 200000000 };

struct watch {
    pthread_t thread;
    MPI_Comm beats;
    double limit;
    int next, before;
    pthread_mutex_t lock; /* of stop */
    pthread_cond_t stops;
    int stop;
    long long sent, received; /* read by others only when the thread has ended */
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A beat fits into what MPI sends at once, so that nobody waits for it. */
static void send_beat(struct watch *watch) {
    MPI_Request request;
    const char beat = 0;
    MPI_Isend(&beat, 0, MPI_BYTE, watch->next, TAG_BEAT, watch->beats, &request);
    MPI_Request_free(&request);
    watch->sent++;
}

static int take_beats(struct watch *watch) {
    int taken = 0;
    for (int there = 1; there; taken += there) {
        if (MPI_Iprobe(watch->before, TAG_BEAT, watch->beats, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            there = 0;
        if (there) MPI_Recv(NULL, 0, MPI_BYTE, watch->before, TAG_BEAT, watch->beats, MPI_STATUS_IGNORE);
    }
    watch->received += taken;
    return taken;
}

static void *end_anyway(void *of) {
    nanosleep(&(struct timespec){.tv_sec = GRACE}, NULL);
    _exit(*(int *)of);
}

void abort_all(const struct link *link, int code) {
    static int exit_code;
    pthread_t thread;
    exit_code = code;
    pthread_create(&thread, NULL, end_anyway, &exit_code);
    MPI_Abort(link->work, code);
}

static void end_all(const struct link *link) {
    const struct watch *watch = link->watch;
    fprintf(
        stderr,
        "kiln: process %d of %d has not been heard of for %.0f s: it was killed or stopped, or its machine "
        "is gone. All end.\n",
        watch->before + 1, link->count, watch->limit);
    abort_all(link, EXIT_LOST);
}

/* Until the next look, or the end: a run does not wait for the nap of its watch. */
static int nap(struct watch *watch) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += NAP_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stop && !pthread_cond_timedwait(&watch->stops, &watch->lock, &until)) continue;
    const int stop = watch->stop;
    pthread_mutex_unlock(&watch->lock);
    return stop;
}

static void *run(void *of) {
    struct link *link = of;
    struct watch *watch = link->watch;
    double silent = 0, sent = 0, before = now();
    do {
        const double time = now(), most = watch->limit / 4;
        /* The time that this process itself stood still counts little. */
        silent += time - before < most ? time - before : most;
        before = time;
        pthread_mutex_lock(&link->lock);
        if (time - sent >= 1) {
            send_beat(watch);
            sent = time;
        }
        if (take_beats(watch)) silent = 0;
        pthread_mutex_unlock(&link->lock);
        if (silent > watch->limit) end_all(link);
    } while (!nap(watch));
    return NULL;
}

int watch_begin(struct link *link, double limit) {
    struct watch *watch = calloc(1, sizeof *watch);
    pthread_condattr_t monotonic;
    if (!watch) return MPI_ERR_NO_MEM;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->stops, &monotonic);
    pthread_condattr_destroy(&monotonic);
    watch->limit = limit;
    watch->next = (link->rank + 1) % link->count;
    watch->before = (link->rank + link->count - 1) % link->count;
    const int code = MPI_Comm_dup(link->work, &watch->beats);
    if (code != MPI_SUCCESS) {
        free(watch);
        return code;
    }
    MPI_Comm_set_errhandler(watch->beats, MPI_ERRORS_RETURN);
    link->watch = watch;
    return pthread_create(&watch->thread, NULL, run, link) ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* No beat stays under way: each process learns how many were sent to it, and takes them all. */
void watch_end(struct link *link) {
    struct watch *watch = link->watch;
    long long expected = 0;
    if (!watch) return;
    pthread_mutex_lock(&watch->lock);
    watch->stop = 1;
    pthread_cond_signal(&watch->stops);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    MPI_Sendrecv(&watch->sent, 1, MPI_LONG_LONG, watch->next, TAG_BEAT + 1, &expected, 1, MPI_LONG_LONG,
                 watch->before, TAG_BEAT + 1, watch->beats, MPI_STATUS_IGNORE);
    for (; watch->received < expected; watch->received++)
        MPI_Recv(NULL, 0, MPI_BYTE, watch->before, TAG_BEAT, watch->beats, MPI_STATUS_IGNORE);
    MPI_Comm_free(&watch->beats);
    free(watch);
    link->watch = NULL;
}
