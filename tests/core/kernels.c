/* Kernels: built once, found again in the device and on disk, keyed by all that they depend on. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fake.h"
#include "core/kernels/kernel_source.h"
#include "core/seams.h"

static void built_once_then_cached(void **state) {
    (void)state;
    kiln_device_statistics statistics = {0};
    fake_run(&statistics, "f", "-DVS=16");
    assert_true(statistics.kernels_built == 1 && statistics.kernels_cached == 0);
    assert_true(statistics.build_seconds > 0);
    assert_int_equal(fake.messages, 1);
    assert_string_equal(fake.last_message, "building kernel f for fake:0 (first use; cached afterwards)");
    fake_run(&statistics, "f", "-DVS=16");
    assert_true(statistics.kernels_built == 0 && statistics.kernels_cached == 1);
    assert_int_equal(fake.messages, 1); /* nothing to tell about a kernel that was there */
    assert_int_equal(fake.builds, 1);
    assert_int_equal(fake.loads, fake.unloads);
}

static void the_device_keeps_it(void **state) {
    (void)state;
    kiln_device device;
    struct ki_kernel *a, *b, *other;
    fake_open(&device);
    assert_int_equal(ki_kernel_get(&a, &device, "k", "f", KILN_F64, "-DVS=16"), KILN_OK);
    assert_int_equal(ki_kernel_get(&b, &device, "k", "f", KILN_F64, "-DVS=16"), KILN_OK);
    assert_ptr_equal(a, b);
    assert_int_equal(fake.loads, 1);
    /* The same file and options in another function: another kernel, but no second build. */
    assert_int_equal(ki_kernel_get(&other, &device, "k", "g", KILN_F64, "-DVS=16"), KILN_OK);
    assert_ptr_not_equal(a, other);
    assert_int_equal(fake.builds, 1);
    assert_int_equal(ki_kernel_get(&other, &device, "k", "f", KILN_F32, "-DVS=16"), KILN_OK);
    assert_ptr_not_equal(a, other);
    assert_int_equal(ki_kernel_get(&other, &device, "k", "f", KILN_F64, "-DVS=32"), KILN_OK);
    assert_ptr_not_equal(a, other);
    assert_int_equal(fake.builds, 3);
    fake_close(&device);
}

static void list_kernels(struct ki_programs *programs, int count) {
    *programs = (struct ki_programs){0};
    for (int i = 0; i < count; i++) {
        char defines[16];
        snprintf(defines, sizeof defines, "-DA=%d", i);
        ki_programs_add(programs, "k", "f", KILN_F64, defines);
        ki_programs_add(programs, "k", "g", KILN_F64, defines); /* lies in the same program */
    }
}

static void several_are_built_side_by_side(void **state) {
    (void)state;
    enum { COUNT = 9 };
    kiln_device device;
    struct ki_kernel *kernel;
    struct ki_programs programs;
    list_kernels(&programs, COUNT);
    assert_int_equal(programs.count, COUNT);
    for (int run = 0; run < 2; run++) { /* the second finds all of them on disk */
        fake_open(&device);
        device.threads = 4;
        assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, "-DA=3"), KILN_OK);
        assert_int_equal(ki_programs_build(&device, &programs), KILN_OK);
        assert_int_equal(ki_programs_build(&device, &programs), KILN_OK); /* nothing is left to do */
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, programs.rows[i].defines),
                             KILN_OK);
        assert_int_equal(fake.builds, COUNT);
        assert_int_equal(fake.messages, COUNT);
        assert_int_equal(device.statistics.kernels_built, run == 0 ? COUNT : 0);
        assert_int_equal(device.statistics.kernels_cached, run == 0 ? 0 : COUNT);
        fake_close(&device);
        assert_int_equal(fake.loads, (run + 1) * COUNT);
        assert_int_equal(fake.loads, fake.unloads);
    }
    list_kernels(&programs, KI_PROGRAMS_MOST + 1);
    assert_int_equal(programs.count, KI_PROGRAMS_MOST);
}

/* It is told by the call that wants the kernel, and not by the one that looks ahead. */
static void what_is_refused_ahead_is_told_later(void **state) {
    (void)state;
    kiln_device device;
    struct ki_kernel *kernel = NULL;
    struct ki_programs programs;
    list_kernels(&programs, 3);
    fake_open(&device);
    device.threads = 4;
    fake.fail_builds = true;
    assert_int_equal(ki_programs_build(&device, &programs), KILN_OK);
    assert_null(device.kernels);
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, "-DA=1"), KILN_ERR_BUILD);
    assert_string_equal(kiln_last_error()->message, "device fake:0: no luck");
    fake.fail_builds = false;
    fake.refuse_loads_once = true; /* a binary that the driver refuses */
    assert_int_equal(ki_programs_build(&device, &programs), KILN_ERR_BUILD);
    assert_int_equal(ki_programs_build(&device, &programs), KILN_OK);
    device.lost = true;
    assert_int_equal(ki_programs_build(&device, &programs), KILN_ERR_DEVICE_LOST);
    device.lost = false;
    fake_close(&device);
    assert_int_equal(fake.loads, fake.unloads);
}

static void source_names_its_parts(void **state) {
    (void)state;
    char *source = NULL;
    assert_int_equal(ki_kernel_source(&source, "fake", "k", KILN_F32), KILN_OK);
    static const char expected[] = "#define REAL_F32 1\n"
                                   "\n#line 1 \"types.h\"\n/* nothing */\n"
                                   "\n#line 1 \"fake.h\"\n/* nothing */\n"
                                   "\n#line 1 \"arguments.h\"\n/* nothing */\n"
                                   "\n#line 1 \"k.cl\"\n"
                                   "\n#line 1 \"shared.h\"\n"
                                   "\n#line 1 \"deeper.h\"\n/* nothing */\n"
                                   "\n#line 2 \"shared.h\"\nshared\n"
                                   "\n#line 2 \"k.cl\"\nthe kernels\n"
                                   "\n#line 4 \"k.cl\"\nand more\n";
    assert_string_equal(source, expected);
    ki_free(source);
}

/* Returns what follows the last line that includes something. */
static const char *own_end(const char *text) {
    for (const char *next = text; (next = strstr(next, "#include \"dialect/")); next++)
        text = strchr(next, '\n') + 1;
    return text;
}

static void embedded_sources_are_complete(void **state) {
    (void)state;
    unsetenv("KILN_KERNEL_DIR");
    static const char *const dialects[] = {"opencl", "cuda"};
    for (const struct ki_source *file = ki_sources; file->name; file++) {
        const char *dot = strstr(file->name, ".cl");
        if (!dot) continue;
        for (int i = 0; i < 2; i++) {
            char stem[64], *source = NULL;
            snprintf(stem, sizeof stem, "%.*s", (int)(dot - file->name), file->name);
            assert_int_equal(ki_kernel_source(&source, dialects[i], stem, KILN_F64), KILN_OK);
            assert_non_null(strstr(source, own_end(file->text)));
            assert_null(strstr(source, "#include \"dialect/"));
            ki_free(source);
        }
    }
    char *source = NULL;
    assert_int_equal(ki_kernel_source(&source, "opencl", "nothing", KILN_F64), KILN_ERR_INTERNAL);
    assert_null(source);
}

/* KILN_KERNEL_DIR may be the source tree, wherever in it a kernel lies. */
static void the_source_tree_is_a_development_folder(void **state) {
    (void)state;
    for (const struct ki_source *file = ki_sources; file->name; file++) {
        char stem[64], *embedded = NULL, *source = NULL;
        const char *dot = strstr(file->name, ".cl");
        if (!dot) continue;
        snprintf(stem, sizeof stem, "%.*s", (int)(dot - file->name), file->name);
        unsetenv("KILN_KERNEL_DIR");
        assert_int_equal(ki_kernel_source(&embedded, "opencl", stem, KILN_F64), KILN_OK);
        setenv("KILN_KERNEL_DIR", KILN_TEST_DATA "/..", 1);
        assert_int_equal(ki_kernel_source(&source, "opencl", stem, KILN_F64), KILN_OK);
        assert_string_equal(source, embedded);
        ki_free(embedded);
        ki_free(source);
    }
}

static void development_folder(void **state) {
    (void)state;
    char *source = NULL;
    setenv("KILN_KERNEL_DIR", "kernels", 1);
    assert_int_equal(ki_kernel_source(&source, "fake", "k", KILN_F64), KILN_ERR_ARGUMENT);
    setenv("KILN_KERNEL_DIR", "/no/such/folder", 1);
    assert_int_equal(ki_kernel_source(&source, "fake", "k", KILN_F64), KILN_ERR_IO);
    assert_non_null(strstr(kiln_last_error()->message, "types.h"));
    assert_null(source);
}

static void a_changed_source_is_another_kernel(void **state) {
    (void)state;
    kiln_device_statistics statistics = {0};
    fake_run(&statistics, "f", "");
    FILE *file = fopen(world_path("kernels/k.cl"), "w");
    assert_non_null(file);
    fputs("other kernels\n", file);
    assert_int_equal(fclose(file), 0);
    fake_run(&statistics, "f", "");
    assert_int_equal(statistics.kernels_built, 1);
}

static void other_driver_is_another_kernel(void **state) {
    (void)state;
    kiln_device_statistics statistics = {0};
    fake_run(&statistics, "f", "");
    kiln_device device;
    struct ki_kernel *kernel;
    fake_open(&device);
    strcpy(device.properties.cache_key, "fake compiler 1, driver 2");
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, ""), KILN_OK);
    assert_int_equal(device.statistics.kernels_built, 1);
    fake_close(&device);
    assert_int_equal(entry_count(), 2);
}

static void failed_builds_leave_nothing(void **state) {
    (void)state;
    kiln_device device;
    struct ki_kernel *kernel = NULL;
    fake_open(&device);
    fake.fail_builds = true;
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, ""), KILN_ERR_BUILD);
    assert_string_equal(kiln_last_error()->message, "device fake:0: no luck");
    assert_null(kernel);
    assert_null(device.kernels);
    assert_int_equal(entry_count(), 0);
    fake.fail_builds = false;
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, ""), KILN_OK);
    fake_close(&device);
}

static void refused_binaries_are_built_anew(void **state) {
    (void)state;
    kiln_device_statistics statistics = {0};
    fake_run(&statistics, "f", "");
    fake.refuse_loads_once = true;
    fake_run(&statistics, "f", "");
    assert_true(statistics.kernels_built == 1 && statistics.kernels_cached == 0);
    assert_int_equal(fake.warnings, 1);
    fake_run(&statistics, "f", "");
    assert_int_equal(statistics.kernels_cached, 1);
}

static void launching(void **state) {
    (void)state;
    kiln_device device;
    struct ki_kernel *kernel, *none = NULL;
    fake_open(&device);
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, ""), KILN_OK);
    assert_int_equal(ki_kernel_launch(&device, kernel, 0, 64, NULL, 0), KILN_OK);
    assert_int_equal(fake.launches, 0);
    assert_int_equal(ki_kernel_launch(&device, kernel, 1, 64, NULL, 0), KILN_OK);
    assert_int_equal(fake.launches, 1);
    assert_int_equal(fake.together, 0);
    assert_non_null(fake.launched);
    assert_int_equal(ki_kernel_launch_together(&device, kernel, 2, 64, NULL, 0), KILN_OK);
    assert_int_equal(fake.launches, 2);
    assert_int_equal(fake.together, 1);
    device.lost = true;
    assert_int_equal(ki_kernel_launch(&device, kernel, 1, 64, NULL, 0), KILN_ERR_DEVICE_LOST);
    assert_int_equal(ki_kernel_get(&none, &device, "k", "g", KILN_F64, ""), KILN_ERR_DEVICE_LOST);
    assert_null(none);
    assert_int_equal(fake.launches, 2);
    assert_int_equal(fake.unloads, 0);
    device.lost = false; /* so that the fake's module is freed */
    fake_close(&device);
    assert_int_equal(fake.unloads, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_make, world_clear)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(built_once_then_cached),
                                       TEST(the_device_keeps_it),
                                       TEST(several_are_built_side_by_side),
                                       TEST(what_is_refused_ahead_is_told_later),
                                       TEST(source_names_its_parts),
                                       TEST(embedded_sources_are_complete),
                                       TEST(the_source_tree_is_a_development_folder),
                                       TEST(development_folder),
                                       TEST(a_changed_source_is_another_kernel),
                                       TEST(other_driver_is_another_kernel),
                                       TEST(failed_builds_leave_nothing),
                                       TEST(refused_binaries_are_built_anew),
                                       TEST(launching)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
