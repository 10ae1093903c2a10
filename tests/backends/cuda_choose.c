/* Choosing a device on a machine with a CUDA GPU: what a process takes that only uses it is asked once for
 * each GPU that was seen before, while none is held, is its start, and is asked for again where a profile
 * does not know it. The driver is a stub that computes nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/check.h"
#include "backends/stub.h"
#include "core/kernels/cache.h"
#include "choose/figures.h"
#include "pass/unit.h"

enum { MEMORY = 1 << 20 }; /* of both devices: what the stub has given out does not come back to it */

static struct stub *driver;
static struct {
    double answer;
    int asked;
    int64_t held; /* of the driver's objects, when asked */
    char device[32];
} process;
static char folder[] = "/tmp/kiln-choose-XXXXXX";
static const kiln_work work = {.rows = 4000000, .cols = 100, .passes = 50};

static double answer(void *user, const char *device) {
    assert_ptr_equal(user, &process);
    if (strcmp(device, "cpu") == 0) return 0.001;
    process.asked++;
    process.held = driver->live;
    snprintf(process.device, sizeof process.device, "%s", device);
    return process.answer;
}

/* The GPU's row. The choice itself means nothing on a stub. */
static kiln_estimate choose(bool asks, int thorough) {
    const kiln_device_options options = {.memory = MEMORY};
    const kiln_choose_options choosing = {
        .thorough = thorough, .process = asks ? answer : NULL, .user = &process};
    kiln_device *host = NULL, *device = NULL;
    kiln_estimate *rows = NULL;
    int64_t count;
    driver->used = 0;
    assert_int_equal(kiln_device_open(&host, "cpu", &options), KILN_OK);
    assert_int_equal(kiln_device_choose(&device, &rows, &count, host, &work, &choosing), KILN_OK);
    const kiln_estimate gpu = rows[1];
    kiln_free(rows);
    if (device != host) kiln_device_close(device);
    kiln_device_close(host);
    assert_int_equal(driver->live, 0);
    return gpu;
}

/* A profile with the bandwidths, which more memory than there is would be needed to measure. */
static int begin(void **state) {
    (void)state;
    static const char *const names[] = {"cpu", "cuda"};
    char name[KI_FIGURE_OWNER + 60], owner[KI_FIGURE_OWNER];
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder) || setenv("KILN_CACHE_DIR", folder, 1) != 0) return -1;
    *driver = (struct stub){0};
    memset(&process, 0, sizeof process);
    for (int i = 0; i < 2; i++) {
        kiln_device *device = NULL;
        if (kiln_device_open(&device, names[i], NULL) != KILN_OK) return -1;
        ki_figures_owner(owner, &device->info);
        snprintf(name, sizeof name, "bandwidth %s", owner);
        if (ki_cache_profile_put(device, name, 1e10) != KILN_OK) return -1;
        kiln_device_close(device);
    }
    return 0;
}

static int finish(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

static void asked_once_while_no_gpu_is_held(void **state) {
    (void)state;
    process.answer = 1000;
    kiln_estimate gpu = choose(true, 1); /* opens the GPU to see that it is there */
    if (!gpu.considered) fail_msg("%s", gpu.why);
    assert_int_equal(process.asked, 0);
    gpu = choose(true, 1);
    assert_int_equal(process.asked, 1);
    assert_int_equal(process.held, 0);
    assert_string_equal(process.device, "cuda:0");
    assert_true(gpu.start_seconds >= 1000 && gpu.start_seconds < 1010);
    assert_true(fabs(gpu.seconds - gpu.start_seconds - gpu.move_seconds -
                     50 * (gpu.pass_seconds + gpu.overhead_seconds)) < 1e-9 * gpu.seconds);
    process.answer = 5;
    assert_true(choose(true, 1).start_seconds >= 1000);
    assert_int_equal(process.asked, 1);
    /* Whoever does not ask is told what is known; work that ends before the GPU's process would stays
     * where it is. */
    gpu = choose(false, 1);
    assert_true(gpu.start_seconds >= 1000);
    assert_non_null(strstr(choose(true, 0).why, "not looked at"));
}

/* As one from before processes were counted. */
static void a_profile_without_a_process_is_completed(void **state) {
    (void)state;
    process.answer = 1000;
    const double start = choose(false, 1).start_seconds;
    assert_true(start < 10);
    assert_int_equal(process.asked, 0);
    assert_true(choose(false, 1).start_seconds < 10);
    assert_true(choose(true, 1).start_seconds >= 1000);
    assert_int_equal(process.asked, 1);
}

static void a_process_that_cannot_be_told_is_asked_for_again(void **state) {
    (void)state;
    static const double answers[] = {-1, NAN, INFINITY};
    assert_true(choose(true, 1).considered);
    for (int i = 0; i < 3; i++) {
        process.answer = answers[i];
        const kiln_estimate gpu = choose(true, 1);
        assert_true(gpu.considered && gpu.start_seconds < 10);
        assert_int_equal(process.asked, i + 1);
    }
}

static void a_unit_has_room_for_what_the_driver_says(void **state) {
    (void)state;
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cuda", &(kiln_device_options){.memory = MEMORY}), KILN_OK);
    const struct ki_unit unit = ki_unit_of(device);
    assert_int_equal(unit.threads, STUB_UNIT_THREADS);
    assert_int_equal(unit.groups, STUB_UNIT_GROUPS);
    kiln_device_close(device);
}

/* Small least squares on a GPU go by a factor, which knows the rank, though conjugate gradient would be
 * done sooner; with a penalty there is no rank to be known. */
static void small_least_squares_know_their_rank(void **state) {
    (void)state;
    const kiln_device_options options = {.memory = MEMORY};
    kiln_device *device = NULL;
    kiln_matrix *X = NULL;
    assert_int_equal(kiln_device_open(&device, "cuda", &options), KILN_OK);
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        assert_int_equal(kiln_matrix_dense(&X, device, type, 40, 3, NULL), KILN_OK);
        for (int l2 = 0; l2 < 2; l2++) {
            const kiln_linreg_options given = {.l2 = l2};
            kiln_solver choice = {0};
            assert_int_equal(kiln_solver_choose(&choice, "linreg", &given, X, 1), KILN_OK);
            assert_string_equal(choice.solver, l2 ? "cg" : "cholesky");
        }
        kiln_matrix_free(X);
    }
    kiln_device_close(device);
}

int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    driver = library ? dlsym(library, "stub_cuda") : NULL;
    if (!driver) {
        printf("the stub of libcuda.so.1 is not on the library path\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(asked_once_while_no_gpu_is_held, begin, finish),
        cmocka_unit_test_setup_teardown(a_profile_without_a_process_is_completed, begin, finish),
        cmocka_unit_test_setup_teardown(a_process_that_cannot_be_told_is_asked_for_again, begin, finish),
        cmocka_unit_test_setup_teardown(a_unit_has_room_for_what_the_driver_says, begin, finish),
        cmocka_unit_test_setup_teardown(small_least_squares_know_their_rank, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
