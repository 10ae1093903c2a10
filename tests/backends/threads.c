/* Devices that several threads open at once, while nothing of the process has asked a driver before:
 * drivers begin their work with the first calls. CUDA is a stub, whose devices open and compute nothing;
 * ThreadSanitizer, which knows nothing of the threads of PoCL, sees no OpenCL. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/check.h"

enum { THREADS = 4, PROCESSES = 4, ROWS = 1000 };

static pthread_barrier_t barrier;

struct task {
    const char *name;
    bool good;
};

/* 1 + 1 + ... */
static bool computes(kiln_device *device) {
    kiln_matrix *x = NULL;
    double sum = 0;
    kiln_status status = kiln_matrix_dense(&x, device, KILN_F32, ROWS, 1, NULL);
    if (status == KILN_OK) status = kiln_fill(x, 1);
    if (status == KILN_OK) status = kiln_dot(&sum, x, x);
    kiln_matrix_free(x);
    return status == KILN_OK && sum == ROWS;
}

static bool opens(const char *name) {
    kiln_device *device = NULL;
    const kiln_status status = kiln_device_open(&device, name, NULL);
    if (strncmp(name, "opencl", 6) == 0 && status == KILN_ERR_DEVICE && getenv("OCL_ICD_VENDORS"))
        return true;
    const bool good = status == KILN_OK && (strncmp(name, "cuda", 4) == 0 || computes(device));
    if (!good) print_error("%s: %s\n%s\n", name, kiln_last_error()->message, kiln_last_error()->hint);
    kiln_device_close(device);
    return good;
}

static bool lists(void) {
    kiln_device_info *infos = NULL;
    int64_t count = 0;
    const bool good = kiln_device_list(&infos, &count, sizeof *infos) == KILN_OK && count > 0;
    kiln_free(infos);
    return good;
}

static void *work(void *of) {
    struct task *task = of;
    pthread_barrier_wait(&barrier);
    task->good = opens(task->name) && lists() && opens(task->name);
    return NULL;
}

static bool on_threads(const char *const names[THREADS]) {
    pthread_t threads[THREADS];
    struct task tasks[THREADS];
    bool good = pthread_barrier_init(&barrier, NULL, THREADS) == 0;
    int started = 0;
    while (good && started < THREADS) {
        tasks[started] = (struct task){names[started], false};
        if (pthread_create(&threads[started], NULL, work, &tasks[started]) != 0) break;
        started++;
    }
    if (started < THREADS) return false; /* the others wait at the barrier until the process ends */
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        good = good && tasks[i].good;
    }
    pthread_barrier_destroy(&barrier);
    return good;
}

static void first_calls(const char *const names[THREADS]) {
    for (int i = 0; i < PROCESSES; i++) {
        int ended = 0;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(!on_threads(names));
        assert_true(waitpid(child, &ended, 0) == child);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
}

static void one_backend(void **state) {
    (void)state;
    first_calls((const char *const[THREADS]){"opencl", "opencl", "opencl", "opencl"});
    first_calls((const char *const[THREADS]){"cuda", "cuda:0", "cuda:all", "cuda"});
    first_calls((const char *const[THREADS]){"cpu", "cpu*2", "cpu", "cpu*3"});
}

static void any_backends(void **state) {
    (void)state;
    first_calls((const char *const[THREADS]){"cpu", "cuda", "opencl", "cpu*3"});
    first_calls((const char *const[THREADS]){"opencl", "cpu*2", "cuda:all", "opencl"});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_backend), cmocka_unit_test(any_backends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
