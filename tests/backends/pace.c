/* This file says how dense passes go on a GPU beside an H200 (choose/pace.h): what was measured is found
 * again, by the fit and in the profile, and the model's times follow it. The GPUs are not here: an H200 and
 * an H100 as CUDA describes them, and a small one that is made up. What runs, runs through PoCL. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/check.h"
#include "h200.h"
#include "choose/figures.h"
#include "choose/pace.h"

enum { H200, H100, SMALL, GPUS };
static const struct ki_properties gpus[GPUS] = {
    {H200_BY_CUDA, .bandwidth = 4.814e12, .alloc_max = INT64_C(1) << 36},
    {H200_BY_CUDA, .bandwidth = 3.352e12, .alloc_max = INT64_C(1) << 36},
    {SMALL_BY_CUDA, .compute_units = 20, .bandwidth = 2.56e11, .alloc_max = INT64_C(1) << 32}};

static kiln_device *device;
static struct ki_properties own;
static char folder[] = "/tmp/kiln-pace-XXXXXX";

static int begin(void **state) {
    (void)state;
    if (!mkdtemp(folder) || setenv("KILN_CACHE_DIR", folder, 1) != 0) return -1;
    if (kiln_device_open(&device, "cpu", NULL) != KILN_OK) return -1;
    device->budget = INT64_C(1) << 36;
    own = device->properties;
    struct ki_cache *cache;
    return ki_cache_of(&cache, device) == KILN_OK ? 0 : -1;
}

static int finish(void **state) {
    (void)state;
    char command[300];
    device->properties = own;
    kiln_device_close(device);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

static void be(int gpu, kiln_type type, struct ki_pace pace) {
    device->properties = gpus[gpu];
    device->cache->recalled.known = true; /* as it is set here */
    device->cache->recalled.read = 0;
    device->cache->recalled.pace[type == KILN_F64] = pace;
}

static void assert_near(double value, double expected, double share) {
    if (!(fabs(value - expected) <= share * expected)) fail_msg("%g, not %g", value, expected);
}

/* The passes of a GPU take what the model says at a pace: the fit finds a pace with the same times, and that
 * pace itself where both of its numbers show: where instructions take 40 times as long, next to nothing of
 * the other probe's time is its latency. */
static void the_fit_finds_the_pace(void **state) {
    (void)state;
    static const struct ki_pace paces[] = {{1, 1}, {1.7, 0.6}, {0.7, 3}, {2, 40}, {30, 1}};
    for (int gpu = 0; gpu < GPUS; gpu++)
        for (int type = KILN_F32; type <= KILN_F64; type++)
            for (size_t i = 0; i < sizeof paces / sizeof *paces; i++) {
                struct ki_pace_probe probes[KI_PACE_NUMBERS];
                be(gpu, (kiln_type)type, paces[i]);
                for (int n = 0; n < KI_PACE_NUMBERS; n++) {
                    ki_pace_probe(&probes[n], device, (kiln_type)type, (enum ki_pace_number)n);
                    if (n == KI_PACE_ISSUE) probes[n].groups = 5;
                    probes[n].seconds = ki_pace_candidate(&probes[n]).seconds;
                }
                const struct ki_pace found = ki_pace_fit(probes);
                for (int n = 0; n < KI_PACE_NUMBERS; n++)
                    assert_near(ki_pace_candidate(&probes[n]).seconds, probes[n].seconds, 0.01);
                if (fmax(paces[i].latency, paces[i].issue) > 4) continue;
                assert_near(found.latency, paces[i].latency, 0.05);
                assert_near(found.issue, paces[i].issue, 0.05);
            }
}

/* If memory bounds a probe, a time that is shorter than any number allows says nothing. */
static void what_does_not_show_is_an_h200s(void **state) {
    (void)state;
    struct ki_pace_probe probes[KI_PACE_NUMBERS];
    be(SMALL, KILN_F32, (struct ki_pace){1, 1});
    for (int n = 0; n < KI_PACE_NUMBERS; n++) {
        ki_pace_probe(&probes[n], device, KILN_F32, (enum ki_pace_number)n);
        probes[n].seconds = 1e-9;
    }
    const struct ki_pace found = ki_pace_fit(probes);
    assert_true(found.latency == 1 && found.issue == 1);
}

static struct ki_candidate chosen_for(kiln_type type, int64_t rows, int64_t cols, int k) {
    kiln_matrix X = {
        .device = device, .type = type, .format = KILN_DENSE, .rows = rows, .cols = cols, .nnz = rows * cols};
    const struct ki_chain chain = {.kind = KI_CHAIN_FUSED, .map = KI_ROW_SCALE, .alpha = 1, .k = k, .X = &X};
    struct ki_candidate *list = NULL;
    int count = 0, chosen = -1;
    assert_int_equal(ki_chain_candidates(&list, &count, &chosen, &chain), KILN_OK);
    assert_true(chosen >= 0);
    const struct ki_candidate found = list[chosen];
    kiln_free(list);
    return found;
}

/* One column of y in f32 is read as fast as the memory is: an H100 takes longer than an H200 by what its
 * bandwidth is less, and the small one by that of all its memory. */
static void memory_is_each_gpus_own(void **state) {
    (void)state;
    const struct ki_pace as_h200 = {1, 1};
    be(H200, KILN_F32, as_h200);
    const double h200 = chosen_for(KILN_F32, 1000000, 1000, 1).seconds;
    be(H100, KILN_F32, as_h200);
    assert_near(chosen_for(KILN_F32, 1000000, 1000, 1).seconds, h200 * 4.814 / 3.352, 0.05);
    be(SMALL, KILN_F32, as_h200);
    assert_near(chosen_for(KILN_F32, 1000000, 1000, 1).seconds, h200 * 4.814 / 0.256, 0.05);
    device->properties.bandwidth = 0; /* as through OpenCL, where it is measured */
    device->cache->recalled.read = 0.945 * 2.56e11;
    assert_near(chosen_for(KILN_F32, 1000000, 1000, 1).seconds, h200 * 4.814 / 0.256, 0.05);
}

/* A small GPU with a thirty-second of an H200's f64: for eight columns of y instructions bound it, times
 * follow, and another plan is the best. */
static void plans_follow_the_pace(void **state) {
    (void)state;
    int others = 0;
    for (int64_t cols = 8; cols <= 4096; cols *= 2) {
        be(SMALL, KILN_F64, (struct ki_pace){1, 1});
        const struct ki_candidate before = chosen_for(KILN_F64, 200000, cols, 8);
        be(SMALL, KILN_F64, (struct ki_pace){1, 32});
        const struct ki_candidate after = chosen_for(KILN_F64, 200000, cols, 8);
        assert_true(after.seconds > 4 * before.seconds);
        assert_string_equal(after.limit, "instructions");
        others += memcmp(&before.plan, &after.plan, sizeof before.plan) != 0;
        device->options.deterministic = 1; /* whose sums must not depend on what was measured */
        const struct ki_candidate alike = chosen_for(KILN_F64, 200000, cols, 8);
        device->options.deterministic = 0;
        assert_memory_equal(&before.plan, &alike.plan, sizeof before.plan);
    }
    assert_true(others > 0);
}

/* Through PoCL, which is told that it is a GPU: two numbers come out, and whoever opens the device after that
 * finds them in the profile. A Hopper GPU has none. */
static void measured_and_kept(void **state) {
    (void)state;
    kiln_device *opencl = NULL;
    char owner[KI_FIGURE_OWNER], name[KI_FIGURE_OWNER + 60];
    struct ki_pace pace;
    if (kiln_device_open(&opencl, "opencl", NULL) != KILN_OK) {
        print_message("no OpenCL device\n");
        skip();
    }
    opencl->properties.is_gpu = true;
    assert_int_equal(ki_rates_pace(&pace, opencl, KILN_F32), KILN_OK);
    assert_true(pace.latency >= KI_PACE_LEAST && pace.latency <= KI_PACE_MOST);
    assert_true(pace.issue >= KI_PACE_LEAST && pace.issue <= KI_PACE_MOST);
    opencl->properties.architecture = 90;
    assert_int_equal(ki_rates_pace(&pace, opencl, KILN_F32), KILN_OK);
    assert_true(pace.latency == 1 && pace.issue == 1);
    const struct {
        const char *name;
        double value;
    } figures[] = {{"bandwidth", 1e11}, {"dense latency f32", 1.5}, {"dense issue f32", 2.5}};
    ki_figures_owner(owner, &opencl->info);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        snprintf(name, sizeof name, "%s %s", figures[i].name, owner);
        assert_int_equal(ki_cache_profile_put(opencl, name, figures[i].value), KILN_OK);
    }
    opencl->properties.architecture = 0;
    opencl->cache->recalled.known = false;
    opencl->cache->recalled.pace[0] = (struct ki_pace){0};
    assert_int_equal(ki_find_pace(opencl), KILN_OK);
    const kiln_matrix f32 = {.device = opencl, .type = KILN_F32}, f64 = {.device = opencl, .type = KILN_F64};
    assert_true(ki_pace_of(&f32).latency == 1.5 && ki_pace_of(&f32).issue == 2.5);
    assert_true(ki_pace_of(&f64).latency == 1 && ki_pace_of(&f64).issue == 1);
    assert_true(ki_read_of(opencl) == 1e11);
    kiln_device_close(opencl);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fit_finds_the_pace), cmocka_unit_test(what_does_not_show_is_an_h200s),
        cmocka_unit_test(memory_is_each_gpus_own), cmocka_unit_test(plans_follow_the_pace),
        cmocka_unit_test(measured_and_kept)};
    return cmocka_run_group_tests(tests, begin, finish);
}
