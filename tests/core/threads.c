/* ki_parallel and ki_parallel_ranges: every part once, from any number of threads at a time, again and again,
 * and after a fork. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/threads.h"

enum { PARTS = 1000 };

struct work {
    atomic_int count[PARTS];
};

static void count_part(void *arg, int part) {
    struct work *work = arg;
    atomic_fetch_add(&work->count[part], 1);
}

/* Returns how many parts of a loop did not run exactly once. */
static int wrong_parts(int threads, int parts) {
    static _Thread_local struct work work;
    int wrong = 0;
    for (int i = 0; i < PARTS; i++) atomic_store(&work.count[i], 0);
    ki_parallel(threads, parts, count_part, &work);
    for (int i = 0; i < PARTS; i++) wrong += atomic_load(&work.count[i]) != (i < parts);
    return wrong;
}

static void every_part_once(void **state) {
    (void)state;
    static const int counts[] = {0, 1, 2, 3, 7, 64, PARTS};
    for (int threads = 1; threads <= 9; threads++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            assert_int_equal(wrong_parts(threads, counts[i]), 0);
    assert_int_equal(wrong_parts(4096, PARTS), 0);
}

/* Loops of changing length follow each other at once: a thread that wakes late meets another loop than it was
 * woken for. */
static void *many_loops(void *arg) {
    int *wrong = arg;
    for (int round = 0; round < 3000; round++) *wrong += wrong_parts(2 + round % 3, 1 + round % 5);
    return NULL;
}

static void loops_in_a_row(void **state) {
    (void)state;
    int wrong = 0;
    many_loops(&wrong);
    assert_int_equal(wrong, 0);
}

/* More callers than teams: those without one work alone. */
static void callers_at_a_time(void **state) {
    (void)state;
    enum { CALLERS = 20 };
    pthread_t caller[CALLERS];
    int wrong[CALLERS] = {0};
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&caller[i], NULL, many_loops, &wrong[i]), 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(caller[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

struct seen {
    pthread_mutex_t mutex;
    pthread_t thread[PARTS];
    int count;
};

static void note_thread(void *arg, int part) {
    struct seen *seen = arg;
    bool known = false;
    (void)part;
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    pthread_mutex_lock(&seen->mutex);
    for (int i = 0; i < seen->count; i++) known = known || pthread_equal(seen->thread[i], pthread_self());
    if (!known) seen->thread[seen->count++] = pthread_self();
    pthread_mutex_unlock(&seen->mutex);
}

/* Threads that an earlier loop asked for take no part in one that asks for fewer. */
static void no_more_threads(void **state) {
    (void)state;
    struct seen seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(wrong_parts(8, PARTS), 0);
    ki_parallel(2, 40, note_thread, &seen);
    assert_in_range(seen.count, 1, 2);
}

static void after_fork(void **state) {
    (void)state;
    assert_int_equal(wrong_parts(3, PARTS), 0);
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(wrong_parts(3, PARTS) ? 1 : 0);
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
    }
    assert_int_equal(wrong_parts(3, PARTS), 0);
}

struct home {
    atomic_bool stop;
    atomic_int process, astray; /* parts of the parent's loops that ran elsewhere */
};

static void stay_home(void *of, int part) {
    struct home *home = of;
    (void)part;
    if (getpid() != atomic_load(&home->process)) atomic_fetch_add(&home->astray, 1);
}

static void *loop_on(void *of) {
    struct home *home = of;
    while (!atomic_load(&home->stop)) ki_parallel(3, 64, stay_home, home);
    return NULL;
}

/* A fork may come while other threads are in the middle of loops: the child has none of them, and its own
 * loops are whole. */
static void fork_within_loops(void **state) {
    (void)state;
    enum { CALLERS = 3, FORKS = 150 };
    static struct home home;
    pthread_t caller[CALLERS];
    atomic_store(&home.process, getpid());
    for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&caller[i], NULL, loop_on, &home), 0);
    for (int round = 0; round < FORKS; round++) {
        nanosleep(&(struct timespec){.tv_nsec = round * 7919 % 100000}, NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(60);
            int wrong = 0;
            for (int i = 0; i < 5; i++) wrong += wrong_parts(3, 40);
            _exit(wrong ? 1 : atomic_load(&home.astray) ? 2 : 0);
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
    }
    atomic_store(&home.stop, true);
    for (int i = 0; i < CALLERS; i++) pthread_join(caller[i], NULL);
}

static void parts_cover(void **state) {
    (void)state;
    for (int64_t count = 0; count < 50; count++)
        for (int parts = 1; parts < 20; parts++) {
            assert_int_equal(ki_part_begin(count, 0, parts), 0);
            assert_int_equal(ki_part_begin(count, parts, parts), count);
            for (int part = 0; part < parts; part++) {
                int64_t length = ki_part_begin(count, part + 1, parts) - ki_part_begin(count, part, parts);
                assert_true(length == count / parts || length == count / parts + 1);
            }
        }
}

struct items {
    atomic_int count[PARTS];
    atomic_int ranges;
    _Atomic int64_t shortest, least;
};

static void count_items(void *arg, int64_t begin, int64_t end) {
    struct items *items = arg;
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&items->count[i], 1);
    atomic_fetch_add(&items->ranges, 1);
    ki_lower(&items->shortest, end - begin);
    ki_lower(&items->least, PARTS - end);
}

static void ranges_cover(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 9, 10, 19, 20, 100, 999, PARTS}, grains[] = {1, 10, 64, 5000};
    for (int threads = 1; threads <= 9; threads += 2)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
                struct items items = {.shortest = PARTS, .least = PARTS};
                ki_parallel_ranges(threads, counts[c], grains[g], count_items, &items);
                for (int i = 0; i < PARTS; i++) assert_int_equal(atomic_load(&items.count[i]), i < counts[c]);
                assert_true(items.ranges == 1 || items.shortest >= grains[g]);
                assert_true(items.ranges > 1 || threads == 1 || counts[c] < 2 * grains[g]);
                assert_int_equal(items.least, PARTS - counts[c]);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_once),   cmocka_unit_test(loops_in_a_row),
        cmocka_unit_test(callers_at_a_time), cmocka_unit_test(after_fork),
        cmocka_unit_test(parts_cover),       cmocka_unit_test(ranges_cover),
        cmocka_unit_test(no_more_threads),   cmocka_unit_test(fork_within_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
