/* Plans of dense passes on GPUs that are not here, as CUDA and NVIDIA's OpenCL describe an H200, the former
 * also smaller GPUs with less on-chip memory, of 1536, 1024 and 768 threads a unit, and on one of which
 * nothing is known: for every shape, however odd, there is one, with a time, that such a device has room
 * for. */
#include <math.h>
#include <stdio.h>

#include "backends/check.h"
#include "h200.h"
#include "core/size.h"
#include "pass/launch.h"

static const struct {
    const char *name;
    struct ki_properties properties;
} gpus[] = {
    {"CUDA", {H200_BY_CUDA}},
    {"CUDA, small",
     {.is_gpu = true,
      .compute_units = 36,
      .warp = 32,
      .shuffles = true,
      .group_max = 1024,
      .local_bytes = 49152,
      .local_max = 101376,
      .registers = 65536,
      .unit_threads = 1536,
      .unit_groups = 24,
      .architecture = 120}},
    {"CUDA, smaller", {SMALL_BY_CUDA, .compute_units = 14}},
    {"CUDA, made up",
     {.is_gpu = true,
      .compute_units = 5,
      .warp = 32,
      .shuffles = true,
      .group_max = 512,
      .local_bytes = 24576,
      .local_max = 32768,
      .registers = 32768,
      .unit_threads = 768,
      .unit_groups = 8,
      .architecture = 75}},
    {"NVIDIA's OpenCL", {H200_BY_OPENCL}},
    {"another",
     {.is_gpu = true,
      .compute_units = 8,
      .warp = 1,
      .group_max = 256,
      .local_bytes = 32768,
      .local_max = 32768}},
};
enum { GPUS = sizeof gpus / sizeof *gpus };

static void check_plan(const struct ki_plan *plan, const struct ki_properties *gpu) {
    const int64_t room = ki_max(gpu->local_max, gpu->local_declared);
    assert_true(plan->C >= 1 && plan->K >= 1 && plan->R >= 1 && plan->VS >= 1);
    assert_true(plan->BS >= plan->VS && plan->BS <= gpu->group_max);
    assert_true(plan->local_bytes >= 0 && plan->local_bytes <= room);
    assert_true(plan->stages == 0 || plan->lag < plan->stages);
    assert_true(plan->groups >= 0);
    assert_true(!plan->variant->words || plan->variant->words(plan) >= 0);
}

/* Returns the seconds of the plan that is chosen. */
static double check_shape(kiln_device *device, kiln_type type, kiln_element element, int64_t rows,
                          int64_t cols, int k, int map) {
    kiln_matrix X = {.device = device,
                     .type = type,
                     .element = element,
                     .format = KILN_DENSE,
                     .rows = rows,
                     .cols = cols,
                     .nnz = rows * cols};
    kiln_matrix sums = {.device = device, .type = type, .format = KILN_DENSE, .rows = 1, .cols = k};
    const kiln_loss loss = {.kind = KILN_LOSS_GLM};
    const struct ki_chain chain = {.kind = KI_CHAIN_FUSED,
                                   .map = (enum ki_row_map)map,
                                   .alpha = 1,
                                   .k = k,
                                   .X = &X,
                                   .loss = loss,
                                   .sums = &sums};
    struct ki_candidate *list = NULL;
    int count = 0, chosen = -1;
    assert_int_equal(ki_chain_candidates(&list, &count, &chosen, &chain), KILN_OK);
    assert_true(count > 0 && chosen >= 0 && chosen < count);
    for (int i = 0; i < count; i++) {
        const double seconds = list[i].seconds;
        check_plan(&list[i].plan, &device->properties);
        if (cols > 0 && !(list[i].occupancy > 0 && list[i].occupancy <= 1))
            fail_msg("%s, %lld x %lld: occupancy %g", list[i].plan.variant->name, (long long)rows,
                     (long long)cols, list[i].occupancy);
        if (cols > 0 && !(isfinite(seconds) && seconds > 0)) /* nobody asks how long nothing takes */
            fail_msg("%lld x %lld, plan %d: %g s", (long long)rows, (long long)cols, i, seconds);
    }
    const double best = list[chosen].seconds;
    kiln_free(list);
    return best;
}

static void every_shape_has_a_plan(void **state) {
    (void)state;
    static const int64_t rows[] = {0, 1, 3, 401, 1000000},
                         cols[] = {0,    1,    2,    3,     7,     8,     28,    33,    100,    129,   1000,
                                   1024, 4096, 8191, 12000, 12001, 17003, 20000, 50000, 100000, 200001};
    static const int columns_of_y[] = {1, 2, 3, 8, 9};
    for (int g = 0; g < GPUS; g++) {
        kiln_device *device = NULL;
        assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
        const struct ki_properties own = device->properties;
        device->properties = gpus[g].properties;
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (size_t c = 0; c < sizeof cols / sizeof *cols; c++)
                for (size_t k = 0; k < sizeof columns_of_y / sizeof *columns_of_y; k++)
                    for (int map = KI_ROW_SCALE; map <= KI_ROW_SOFTMAX_LOSS; map++)
                        for (int type = KILN_F32; type <= KILN_F64; type++)
                            for (int narrow = 0; narrow < 2; narrow++)
                                check_shape(device, (kiln_type)type,
                                            narrow ? KILN_ELEMENT_U8 : KILN_ELEMENT_TYPE, rows[r], cols[c],
                                            columns_of_y[k], map);
        device->properties = own;
        kiln_device_close(device);
    }
}

/* Passes over bytes are predicted to be faster than those over f32. Those of several columns of y, which go
 * by tensor cores, are not, and have X widened. */
static void narrow_values_are_faster(void **state) {
    (void)state;
    static const struct {
        int64_t rows, cols;
        int k, map;
        bool gains;
    } cases[] = {{60000, 784, 1, KI_ROW_SCALE, true},
                 {60000, 784, 1, KI_ROW_LOSS, true},
                 {10000000, 28, 1, KI_ROW_LOSS, true},
                 {60000, 784, 8, KI_ROW_SOFTMAX_LOSS, false}};
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cpu", NULL), KILN_OK);
    const struct ki_properties own = device->properties;
    device->properties = gpus[0].properties;
    device->properties.bandwidth = 4.8e12; /* whatever was measured on this machine */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds[2];
        for (int narrow = 0; narrow < 2; narrow++)
            seconds[narrow] = check_shape(device, KILN_F32, narrow ? KILN_ELEMENT_U8 : KILN_ELEMENT_TYPE,
                                          cases[i].rows, cases[i].cols, cases[i].k, cases[i].map);
        print_message("%lld x %lld, %d columns: %.3g ms of bytes, %.3g of f32\n", (long long)cases[i].rows,
                      (long long)cases[i].cols, cases[i].k, 1e3 * seconds[1], 1e3 * seconds[0]);
        assert_int_equal(seconds[1] < seconds[0], cases[i].gains);
    }
    device->properties = own;
    kiln_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_shape_has_a_plan),
                                       cmocka_unit_test(narrow_values_are_faster)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
