/* 32 processes and one cold cache, 200 times: all start at once, want the same kernels, and get the right
 * ones. In every other round one more process removes, cuts and scribbles over entries meanwhile. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fake.h"

enum { PROCESSES = 32, ROUNDS = 200, KERNELS = 3 };

static struct shared {
    pthread_barrier_t start, end;
    long built[PROCESSES], cached[PROCESSES], warnings[PROCESSES];
} * shared;

static void worker(int me) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&shared->start);
        for (int i = 0; i < KERNELS; i++) {
            kiln_device_statistics statistics = {0};
            char defines[16];
            snprintf(defines, sizeof defines, "-DK=%d", (i + me) % KERNELS);
            fake.warnings = 0;
            fake_run(&statistics, "f", defines); /* checks that it is the right one */
            shared->built[me] += statistics.kernels_built;
            shared->cached[me] += statistics.kernels_cached;
            shared->warnings[me] += fake.warnings;
        }
        pthread_barrier_wait(&shared->end);
    }
}

static void spoil(const char *path, unsigned how) {
    if (how % 3 == 0) unlink(path);
    if (how % 3 == 1 && truncate(path, how % 200) != 0) return;
    int file = how % 3 == 2 ? open(path, O_WRONLY | O_NOFOLLOW) : -1;
    if (file < 0) return;
    if (pwrite(file, "spoilt", 6, how % 150) != 6) unlink(path);
    close(file);
}

static void vandal(void) {
    unsigned random = 1;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&shared->start);
        for (int pass = 0; pass < 40 && round % 2; pass++) {
            DIR *folder = opendir(world_path("cache"));
            for (struct dirent *file; folder && (file = readdir(folder));)
                if (strstr(file->d_name, ".kernel") && (random = random * 1664525 + 1013904223) >> 30)
                    spoil(world_path("cache/%s", file->d_name), random >> 8);
            if (folder) closedir(folder);
        }
        pthread_barrier_wait(&shared->end);
    }
}

/* A failing check in a child ends it with a code of its own; an alarm ends those who then wait in vain. */
static pid_t start(int me) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child) return child;
    alarm(300);
    if (me < PROCESSES)
        worker(me);
    else
        vandal();
    _exit(0);
}

static void shared_barrier(pthread_barrier_t *barrier) {
    pthread_barrierattr_t shared_by_processes;
    assert_int_equal(pthread_barrierattr_init(&shared_by_processes), 0);
    assert_int_equal(pthread_barrierattr_setpshared(&shared_by_processes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_barrier_init(barrier, &shared_by_processes, PROCESSES + 2), 0);
}

static void cold_starts(void **state) {
    (void)state;
    pid_t children[PROCESSES + 1];
    long built = 0, cached = 0, warnings = 0;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    shared_barrier(&shared->start);
    shared_barrier(&shared->end);
    for (int i = 0; i <= PROCESSES; i++) children[i] = start(i);
    alarm(300);
    for (int round = 0; round < ROUNDS; round++) {
        remove_tree(world_path("cache"));
        pthread_barrier_wait(&shared->start);
        pthread_barrier_wait(&shared->end);
    }
    for (int i = 0; i <= PROCESSES; i++) {
        int result;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    }
    alarm(0);
    for (int i = 0; i < PROCESSES; i++)
        built += shared->built[i], cached += shared->cached[i], warnings += shared->warnings[i];
    print_message("    %d starts: %ld built, %ld from the cache, %ld warnings\n", PROCESSES * ROUNDS, built,
                  cached, warnings);
    assert_int_equal(built + cached, (long)PROCESSES * ROUNDS * KERNELS);
    assert_true(built >= (long)ROUNDS * KERNELS); /* each round began cold */
    assert_true(cached > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(cold_starts, world_make, world_clear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
