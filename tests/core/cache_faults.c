/* Every file call of the cache fails once, and for ever: kernels come out right all the same, with at most
 * one message. Interrupted and short calls leave no trace at all. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/check.h"
#include "core/fake.h"
#include "faults/brutal.h"

static void two_kernels_and_a_figure(kiln_device_statistics *statistics, double *figure) {
    kiln_device device;
    struct ki_kernel *kernel;
    bool found;
    fake_open(&device);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, i ? "-DA=1" : ""), KILN_OK);
        if (i) assert_non_null(strstr(fake.loaded, "with -DA=1"));
    }
    assert_int_equal(ki_cache_profile_put(&device, "a figure", 5), KILN_OK);
    assert_int_equal(ki_cache_profile_get(&found, figure, &device, "a figure"), KILN_OK);
    if (!found) *figure = 0;
    *statistics = device.statistics;
    fake_close(&device);
}

static int temporaries(void) {
    int count = 0;
    DIR *folder = opendir(world_path("cache"));
    for (struct dirent *file; folder && (file = readdir(folder));)
        count += !strncmp(file->d_name, ".new-", 5);
    if (folder) closedir(folder);
    return count;
}

/* The folder of the kernels themselves is spared. */
static int every_call(const struct brutal_file_fault *fault, bool persistent, bool warm) {
    kiln_device_statistics statistics = {0};
    double figure;
    for (int n = 0;; n++) {
        world_clear(NULL);
        world_make(NULL);
        if (warm) two_kernels_and_a_figure(&statistics, &figure);
        fake.warnings = 0;
        brutal_files_spare(world_path("kernels"));
        brutal_files_start(fault, n, persistent);
        two_kernels_and_a_figure(&statistics, &figure);
        bool fired = brutal_files_stop();
        assert_int_equal(statistics.kernels_built + statistics.kernels_cached, 2);
        if (!fired || fault->harmless) {
            assert_int_equal(fake.warnings, 0);
            assert_int_equal(statistics.kernels_cached, warm ? 2 : 0);
            assert_true(figure == 5);
        }
        if (fake.warnings > 1)
            fail_msg("%s of call %d%s: %d warnings", fault->name, n, persistent ? " on" : "", fake.warnings);
        /* A temporary file stays only where removing it fails, too. */
        if (!persistent) assert_int_equal(temporaries(), 0);
        two_kernels_and_a_figure(&statistics, &figure); /* the next run is a plain one */
        assert_int_equal(statistics.kernels_built + statistics.kernels_cached, 2);
        assert_true(figure == 5);
        if (!fired) return n;
    }
}

static void every_call_fails(void **state) {
    (void)state;
    for (const struct brutal_file_fault *fault = brutal_file_faults; fault->name; fault++)
        for (int mode = 0; mode < 4; mode++) {
            bool persistent = mode & 1, warm = mode & 2;
            if (persistent && fault->code == EINTR) continue; /* interrupted for ever is waiting for ever */
            int n = every_call(fault, persistent, warm);
            assert_true(n >= 6);
            print_message("    %-10s %-4s %s cache: %d calls\n", fault->name, persistent ? "on" : "once",
                          warm ? "warm" : "cold", n);
        }
}

/* The same with memory: the n-th allocation fails, the call says so, leaves nothing, and works when called
 * again. */
static void every_allocation_fails(void **state) {
    (void)state;
    for (int mode = 0; mode < 4; mode++)
        for (int n = 0;; n++) {
            kiln_device device;
            struct ki_kernel *kernel = NULL;
            kiln_device_statistics statistics = {0};
            double figure;
            bool found = false;
            world_clear(NULL);
            world_make(NULL);
            if (mode & 2) two_kernels_and_a_figure(&statistics, &figure);
            brutal_start(n, mode & 1);
            fake_open(&device);
            STEP(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, ""));
            assert_non_null(kernel);
            STEP(ki_cache_profile_put(&device, "a figure", 6));
            STEP(ki_cache_profile_get(&found, &figure, &device, "a figure"));
            assert_true(found && figure == 6);
            fake_close(&device);
            assert_int_equal(fake.loads, fake.unloads);
            if (!brutal_stop()) {
                assert_true(n > 4);
                print_message("    %s, %s cache: %d allocations\n", mode & 1 ? "on" : "once",
                              mode & 2 ? "warm" : "cold", n);
                break;
            }
        }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_make, world_clear)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(every_call_fails), TEST(every_allocation_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
