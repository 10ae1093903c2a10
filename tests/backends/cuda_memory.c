/* Matrices that leave a CUDA device, return, and pass through it in panels while each call of the driver
 * fails in turn: the right status, nothing lost or held, and every matrix as it was. The driver is a stub
 * that computes nothing. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/check.h"
#include "backends/cuda_driver.h"
#include "backends/stub.h"
#include "core/matrix.h"

enum { ROWS = 600, COLS = 4, BUDGET = 12000 }; /* X takes 19200 bytes */

static struct stub *driver;
static double X_values[ROWS * COLS], long_values[ROWS], short_values[COLS];

struct run {
    kiln_status status;
    int calls;
    int64_t panels, evictions;
};

/* A matrix that nobody wrote to. */
static void assert_unchanged(const kiln_matrix *A, const double *values) {
    static double back[ROWS * COLS];
    if (!A || A->device->lost) return;
    assert_int_equal(kiln_matrix_get(back, A), KILN_OK);
    assert_memory_equal(back, values, (size_t)A->nnz * sizeof *back);
    assert_int_equal(A->held, 0);
}

static kiln_status work(kiln_matrix *all[6], kiln_device *device) {
    kiln_status status;
    TRY(kiln_matrix_dense(&all[0], device, KILN_F64, ROWS, COLS, X_values));
    TRY(kiln_matrix_dense(&all[1], device, KILN_F64, ROWS, 1, long_values));
    TRY(kiln_matrix_dense(&all[2], device, KILN_F64, COLS, 1, short_values));
    TRY(kiln_matrix_dense(&all[3], device, KILN_F64, COLS, 1, NULL));
    TRY(kiln_matrix_dense(&all[4], device, KILN_F64, ROWS, 1, long_values));
    TRY(kiln_matrix_dense(&all[5], device, KILN_F64, ROWS, 1, long_values)); /* the second leaves */
    TRY(kiln_times(all[5], all[4], all[4]));
    TRY(kiln_mmchain(all[3], 1, all[0], all[1], all[2], 0, NULL)); /* the second returns, X streams */
    TRY(kiln_matrix_set(all[2], short_values));
    TRY(kiln_device_sync(device));
done:
    return status;
}

/* One thing that could not be freed, because of the call that frees or the one before it; nothing else. */
static int may_stay(const char *call) {
    static const char *const calls[] = {"cuMemFree_v2", "cuMemHostUnregister", "cuModuleUnload",
                                        "cuCtxSetCurrent"};
    for (size_t i = 0; call && i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i], call) == 0) return 1;
    return 0;
}

static struct run run_once(int fail_at, int code, int sticky) {
    struct run run = {KILN_OK, 0, 0, 0};
    const kiln_device_options options = {.memory = BUDGET};
    kiln_device_statistics statistics = {0};
    kiln_device *device = NULL;
    kiln_matrix *all[6] = {NULL};
    *driver = (struct stub){0};
    assert_int_equal(kiln_device_open(&device, "cuda", &options), KILN_OK);
    const int before = driver->calls;
    driver->fail_at = fail_at ? before + fail_at : 0;
    driver->code = code;
    driver->sticky = sticky;
    run.status = work(all, device);
    run.calls = driver->calls - before;
    driver->fail_at = 0;
    assert_int_equal(device->memory.held, 0);
    assert_unchanged(all[0], X_values);
    assert_unchanged(all[1], long_values);
    if (run.status == KILN_OK) assert_unchanged(all[2], short_values);
    assert_unchanged(all[4], long_values);
    kiln_device_get_statistics(device, &statistics);
    run.panels = statistics.panels;
    run.evictions = statistics.evictions;
    for (int i = 0; i < 6; i++) kiln_matrix_free(all[i]);
    kiln_device_get_statistics(device, &statistics);
    assert_int_equal(statistics.memory_used, device->scratch.bytes);
    const bool lost = device->lost;
    kiln_device_close(device);
    if (!lost && !sticky && driver->live > may_stay(driver->last_failed))
        fail_msg("call %d (%s) with code %d left %d objects", fail_at, driver->last_failed, code,
                 (int)driver->live);
    return run;
}

static void test_undisturbed(void **state) {
    (void)state;
    struct run run = run_once(0, 0, 0);
    assert_int_equal(run.status, KILN_OK);
    assert_true(run.panels > 2);
    assert_true(run.evictions > 0);
    assert_true(run.calls > 100);
    assert_int_equal(driver->live, 0);
}

static void test_faults(void **state) {
    (void)state;
    static const int codes[] = {1, 2, 700};
    const int calls = run_once(0, 0, 0).calls;
    int told = 0;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (int sticky = 0; sticky < 2; sticky++)
            for (int at = 1; at <= calls; at++) {
                struct run run = run_once(at, codes[c], sticky);
                told += run.status != KILN_OK;
                /* Freeing has nobody to tell; memory that cannot be pinned is only slower; where the driver
                 * has no memory left, something else leaves, or X streams. */
                if (codes[c] == 700 && run.status != KILN_OK)
                    assert_int_equal(run.status, KILN_ERR_DEVICE_LOST);
                if (codes[c] == 2 && run.status != KILN_OK)
                    assert_int_equal(run.status, KILN_ERR_DEVICE_NOMEM);
                if (codes[c] == 1 && run.status != KILN_OK && run.status != KILN_ERR_BUILD)
                    assert_int_equal(run.status, KILN_ERR_DEVICE);
            }
    assert_true(told > calls);
    print_message("    %d calls of the driver, %d failures told\n", calls, told);
}

int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    driver = library ? dlsym(library, "stub_cuda") : NULL;
    if (!driver) {
        printf("the stub of libcuda.so.1 is not on the library path\n");
        return 1;
    }
    for (int i = 0; i < ROWS * COLS; i++) X_values[i] = i;
    for (int i = 0; i < ROWS; i++) long_values[i] = i % 7;
    for (int i = 0; i < COLS; i++) short_values[i] = 1 + i;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_undisturbed), cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
