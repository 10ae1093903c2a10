/* Teams of sleeping threads that wake for a loop.
 *
 * OpenMP's runtimes wait by spinning: beside one busy neighbour on a shared machine, loops of a tenth of a
 * millisecond then take tens of milliseconds, because the thread waited for has lost its core to one that
 * spins. Here a thread spins for some microseconds and sleeps, and a part that no other thread has begun is
 * taken by the caller itself.
 *
 * A team serves one loop at a time. `ticket` holds the loop's number and the next part in one word, so that a
 * thread that wakes late, when its loop is over and another begun, cannot take a part of a loop it has not
 * looked at: its compare-and-swap fails. Teams are static and never freed; the threads end with the process
 * or the library. */
#define _POSIX_C_SOURCE 200809L
#include "core/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    TEAMS = 16,
    MEMBERS = 255,
    SPINS = 5000,         /* of 10 to 50 ns: what an algorithm does between two loops is rarely longer */
    RANGES_PER_THREAD = 4 /* evens out threads held up */
};
#define CLOSED UINT32_MAX

typedef void loop_body(void *arg, int part);

struct team;

/* Holds what a thread has to know of itself. */
struct member {
    struct team *team;
    int number;
};

struct team {
    atomic_bool busy;
    int members;       /* threads beside the caller */
    atomic_int wanted; /* the first so many of them run a loop: an earlier one may have asked for more */
    pthread_t thread[MEMBERS];
    struct member member[MEMBERS];
    _Atomic uint64_t ticket; /* loop number << 32 | next part */
    _Atomic(loop_body *) body;
    _Atomic(void *) arg;
    _Atomic uint32_t parts, finished;
    atomic_int sleepers, caller_sleeps;
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t begun, done;
};

static struct team teams[TEAMS];

static void breathe(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes and runs parts of the team's loop until none is left. */
static void run_parts(struct team *team) {
    for (;;) {
        uint64_t ticket = atomic_load(&team->ticket);
        uint32_t part = (uint32_t)ticket, parts = atomic_load(&team->parts);
        loop_body *body = atomic_load(&team->body);
        void *arg = atomic_load(&team->arg);
        if (part >= parts) return;
        /* Success proves that the loop is not over, so that what was read above belongs to it. */
        if (!atomic_compare_exchange_weak(&team->ticket, &ticket, ticket + 1)) continue;
        body(arg, (int)part);
        if (atomic_fetch_add(&team->finished, 1) + 1 == parts && atomic_load(&team->caller_sleeps)) {
            pthread_mutex_lock(&team->mutex);
            pthread_cond_signal(&team->done);
            pthread_mutex_unlock(&team->mutex);
        }
    }
}

static bool new_loop(struct team *team, uint32_t seen) {
    return (uint32_t)(atomic_load(&team->ticket) >> 32) != seen || atomic_load(&team->stop);
}

static void *serve(void *of) {
    const struct member *member = of;
    struct team *team = member->team;
    uint32_t seen = 0;
    for (;;) {
        for (int i = 0; i < SPINS && !new_loop(team, seen); i++) breathe();
        if (!new_loop(team, seen)) {
            pthread_mutex_lock(&team->mutex);
            atomic_fetch_add(&team->sleepers, 1);
            while (!new_loop(team, seen)) pthread_cond_wait(&team->begun, &team->mutex);
            atomic_fetch_sub(&team->sleepers, 1);
            pthread_mutex_unlock(&team->mutex);
        }
        if (atomic_load(&team->stop)) return NULL;
        seen = (uint32_t)(atomic_load(&team->ticket) >> 32);
        if (member->number < atomic_load(&team->wanted)) run_parts(team);
    }
}

/* A team without threads or a loop. A forked child has none of its parent's threads, and what it copied of
 * their loops, which may be open, is none of its own. */
static void renew(void) {
    for (struct team *team = teams; team < teams + TEAMS; team++) {
        atomic_store(&team->ticket, CLOSED);
        atomic_store(&team->sleepers, 0);
        atomic_store(&team->caller_sleeps, 0);
        atomic_store(&team->stop, false);
        team->members = 0;
        pthread_mutex_init(&team->mutex, NULL);
        pthread_cond_init(&team->begun, NULL);
        pthread_cond_init(&team->done, NULL);
        atomic_store(&team->busy, false);
    }
}

__attribute__((constructor)) static void begin(void) {
    renew();
    pthread_atfork(NULL, NULL, renew);
}

/* Makes the team have `members` threads, as far as the system grants them. Signals stay with the caller's
 * threads. */
static void recruit(struct team *team, int members) {
    if (team->members >= members) return;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = team->members; i < members; i++) {
        team->member[i] = (struct member){team, i};
        if (pthread_create(&team->thread[i], NULL, serve, &team->member[i]) != 0) break;
        team->members++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* An idle team, or NULL if sixteen loops run at this moment. */
static struct team *find_team(void) {
    for (int i = 0; i < TEAMS; i++) {
        bool idle = false;
        if (atomic_compare_exchange_strong(&teams[i].busy, &idle, true)) return &teams[i];
    }
    return NULL;
}

static void wait_for_parts(struct team *team, uint32_t parts) {
    for (int i = 0; i < SPINS && atomic_load(&team->finished) < parts; i++) breathe();
    if (atomic_load(&team->finished) >= parts) return;
    pthread_mutex_lock(&team->mutex);
    atomic_store(&team->caller_sleeps, 1);
    while (atomic_load(&team->finished) < parts) pthread_cond_wait(&team->done, &team->mutex);
    atomic_store(&team->caller_sleeps, 0);
    pthread_mutex_unlock(&team->mutex);
}

/* A team with threads - 1 threads beside the caller, or with fewer; NULL where the caller is alone. */
static struct team *gather(int threads) {
    if (threads > MEMBERS + 1) threads = MEMBERS + 1;
    struct team *team = threads > 1 ? find_team() : NULL;
    if (team) recruit(team, threads - 1);
    if (team) atomic_store(&team->wanted, threads - 1);
    return team;
}

static void run_loop(struct team *team, int parts, loop_body *body, void *arg) {
    /* Closed, under the old number, while the loop changes: no part of it is in range. */
    uint64_t number = atomic_load(&team->ticket) >> 32;
    atomic_store(&team->ticket, number << 32 | CLOSED);
    atomic_store(&team->body, body);
    atomic_store(&team->arg, arg);
    atomic_store(&team->finished, 0);
    atomic_store(&team->parts, (uint32_t)parts);
    atomic_store(&team->ticket, (number + 1) << 32);
    if (atomic_load(&team->sleepers) > 0) {
        pthread_mutex_lock(&team->mutex);
        pthread_cond_broadcast(&team->begun);
        pthread_mutex_unlock(&team->mutex);
    }
    run_parts(team);
    wait_for_parts(team, (uint32_t)parts);
    atomic_store(&team->busy, false);
}

void ki_parallel(int threads, int parts, loop_body *body, void *arg) {
    struct team *team = gather(threads < parts ? threads : parts);
    if (team)
        run_loop(team, parts, body, arg);
    else
        for (int part = 0; part < parts; part++) body(arg, part);
}

struct ranges {
    int64_t count;
    int parts;
    void (*body)(void *arg, int64_t begin, int64_t end);
    void *arg;
};

static void run_range(void *of, int part) {
    const struct ranges *r = of;
    r->body(r->arg, ki_part_begin(r->count, part, r->parts), ki_part_begin(r->count, part + 1, r->parts));
}

void ki_parallel_ranges(int threads, int64_t count, int64_t grain,
                        void (*body)(void *arg, int64_t begin, int64_t end), void *arg) {
    int64_t parts = count / grain, most = (int64_t)threads * RANGES_PER_THREAD;
    if (parts > most) parts = most;
    struct ranges ranges = {count, parts > 1 ? (int)parts : 1, body, arg};
    ki_parallel(threads, ranges.parts, run_range, &ranges);
}

/* Before the library's code goes away (exit, dlclose) its threads must. */
__attribute__((destructor)) static void dismiss(void) {
    for (int i = 0; i < TEAMS; i++) {
        struct team *team = &teams[i];
        if (atomic_load(&team->busy) || team->members == 0) continue;
        pthread_mutex_lock(&team->mutex);
        atomic_store(&team->stop, true);
        pthread_cond_broadcast(&team->begun);
        pthread_mutex_unlock(&team->mutex);
        for (int m = 0; m < team->members; m++) pthread_join(team->thread[m], NULL);
        team->members = 0;
    }
}
