/* The dialect's own words, on every GPU API that opens here: sums over groups of threads for each vector
 * size, atomics, indices, constants. Whole numbers, so that every order of adding up gives the same bits. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/check.h"
#include "core/kernels/kernels.h"

static const char body[] = "__kernel GROUP_OF(BS) void sums(__global real *y, __global real *total, __global "
                           "const real *x, long n) {\n"
                           "    LOCAL real scratch[R * BS];\n"
                           "    LOCAL real group_total[1];\n"
                           "    const index_t i = (index_t)get_global_id(0);\n"
                           "    real v[R];\n"
                           "    for (int r = 0; r < R; r++) v[r] = i < n ? x[i] * (r + 1) : REAL(0.0);\n"
                           "    const real one = group_sum(v[0], scratch);\n"
                           "    group_sum_n(v, scratch);\n"
                           "    if (get_local_id(0) == 0) group_total[0] = REAL(0.0);\n"
                           "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                           "    atomic_add_local(group_total, i < n ? x[i] : REAL(0.0));\n"
                           "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                           "    if (get_local_id(0) == 0) atomic_add_global(total, group_total[0]);\n"
                           "    for (int r = 0; r < R; r++) y[i * (R + 1) + r] = v[r];\n"
                           "    y[i * (R + 1) + R] = fmax(one, -REAL_INFINITY);\n"
                           "}\n";

enum { R = 3, GROUPS = 301 /* on every thread that a CPU behind OpenCL has */ };

static const char *text_of(const char *name) {
    for (const struct ki_source *source = ki_sources; source->name; source++)
        if (strcmp(source->name, name) == 0) return source->text;
    fail_msg("no %s in the library", name);
    return "";
}

static void *build(void **module, kiln_device *device, kiln_type type, int vs, int bs, bool wide_index) {
    static char source[1 << 17];
    char header[32], options[128];
    void *binary = NULL, *function = NULL;
    size_t bytes = 0;
    snprintf(header, sizeof header, "%s.h", device->backend->name);
    snprintf(source, sizeof source, "#define REAL_%s\n%s\n%s\n%s\n%s\n%s", type == KILN_F32 ? "F32" : "F64",
             text_of("types.h"), text_of(header), text_of("scalar_math.h"), text_of("group_sum.h"), body);
    snprintf(options, sizeof options, "-DVS=%d -DBS=%d -DR=%d%s", vs, bs, R, wide_index ? " -DINDEX64" : "");
    if (device->backend->build(device, &binary, &bytes, source, options) != KILN_OK ||
        device->backend->load(device, module, &function, binary, bytes, "sums", options) != KILN_OK)
        fail_msg("%s", kiln_last_error()->message);
    ki_free(binary);
    return function;
}

static double get(const void *values, kiln_type type, int64_t i) {
    return type == KILN_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void put(void *values, kiln_type type, int64_t i, double value) {
    if (type == KILN_F32)
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

static void check_sums(const void *y, const void *x, kiln_type type, int vs, int64_t n, int64_t threads) {
    for (int64_t first = 0; first < threads; first += vs) {
        double sum = 0;
        for (int64_t i = first; i < first + vs && i < n; i++) sum += get(x, type, i);
        for (int64_t i = first; i < first + vs; i++) {
            for (int r = 0; r < R; r++) assert_true(get(y, type, i * (R + 1) + r) == sum * (r + 1));
            assert_true(get(y, type, i * (R + 1) + R) == sum);
        }
    }
}

static void try_size(kiln_device *device, kiln_type type, int vs, int bs) {
    const int64_t threads = (int64_t)GROUPS * bs, n = threads - 3, size = type == KILN_F32 ? 4 : 8;
    struct ki_buffer X = {0}, Y = {0}, total = {0};
    void *x = calloc((size_t)threads, (size_t)size), *y = calloc((size_t)threads * (R + 1), (size_t)size);
    double sum = 0, zero = 0, got;
    for (int64_t i = 0; i < threads; i++) put(x, type, i, (double)(i * 37 % 101 - 50));
    for (int64_t i = 0; i < n; i++) sum += get(x, type, i);
    void *module, *function = build(&module, device, type, vs, bs, vs % 3 == 1);
    assert_int_equal(ki_device_alloc(device, &X, threads * size), KILN_OK);
    assert_int_equal(ki_device_alloc(device, &Y, threads * (R + 1) * size), KILN_OK);
    assert_int_equal(ki_device_alloc(device, &total, 8), KILN_OK);
    assert_int_equal(ki_device_upload(device, &X, 0, x, threads * size), KILN_OK);
    assert_int_equal(ki_device_upload(device, &total, 0, &zero, 8), KILN_OK);
    const struct ki_arg args[] = {ki_arg_buffer(&Y), ki_arg_buffer(&total), ki_arg_buffer(&X), ki_arg_i64(n)};
    assert_int_equal(device->backend->launch(device, function, GROUPS, bs, false, args, 4), KILN_OK);
    assert_int_equal(ki_device_download(device, y, &Y, 0, threads * (R + 1) * size), KILN_OK);
    assert_int_equal(ki_device_download(device, &got, &total, 0, 8), KILN_OK);
    check_sums(y, x, type, vs, n, threads);
    assert_true(get(&got, type, 0) == sum);
    device->backend->unload(device, module, function);
    ki_device_release(device, &X);
    ki_device_release(device, &Y);
    ki_device_release(device, &total);
    free(x);
    free(y);
}

static void try_device(const char *name) {
    kiln_device *device = NULL;
    if (kiln_device_open(&device, name, NULL) != KILN_OK) {
        if (strcmp(name, "opencl") == 0) fail_msg("%s", kiln_last_error()->message);
        print_message("skip %s: %s\n", name, kiln_last_error()->message);
        return;
    }
    print_message("%s: %s\n", device->info.name, device->info.description);
    static const int sizes[][2] = {{1, 64}, {4, 4}, {8, 16}, {16, 64}, {32, 256}, {64, 64}, {256, 256}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        try_size(device, KILN_F32, sizes[i][0], sizes[i][1]);
        if (device->properties.has_f64) try_size(device, KILN_F64, sizes[i][0], sizes[i][1]);
    }
    kiln_device_close(device);
}

static void test_opencl(void **state) {
    (void)state;
    try_device("opencl");
}

static void test_cuda(void **state) {
    (void)state;
    try_device("cuda");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_opencl), cmocka_unit_test(test_cuda)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
