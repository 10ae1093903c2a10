/* OpenCL's first calls in a process, from several threads at once: drivers begin their work with them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/check.h"

enum { THREADS = 4, PROCESSES = 10 };

static pthread_barrier_t barrier;

static bool on_threads(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    bool good = pthread_barrier_init(&barrier, NULL, THREADS) == 0;
    int started = 0;
    while (good && started < THREADS && pthread_create(&threads[started], NULL, work, NULL) == 0) started++;
    good = started == THREADS;
    for (int i = 0; i < started; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        good = good && result;
    }
    pthread_barrier_destroy(&barrier);
    return good;
}

/* NULL where something failed. */
static void *open_first(void *unused) {
    (void)unused;
    kiln_device *device = NULL;
    pthread_barrier_wait(&barrier);
    const bool good = kiln_device_open(&device, "opencl", NULL) == KILN_OK;
    if (!good) print_error("%s\n%s\n", kiln_last_error()->message, kiln_last_error()->hint);
    kiln_device_close(device);
    return good ? &barrier : NULL;
}

static void first_calls(void **state) {
    (void)state;
    for (int i = 0; i < PROCESSES; i++) {
        int ended = 0;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(!on_threads(open_first));
        assert_true(waitpid(child, &ended, 0) == child);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
