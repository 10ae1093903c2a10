/* The OpenCL backend on whatever OpenCL there is (PoCL in CI): memory, building, launching and its errors. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/check.h"
#include "core/kernels/kernels.h"
#include "pass/dense/local_declared.h"

static kiln_device *device;

static int open_device(void **state) {
    (void)state;
    kiln_status status = kiln_device_open(&device, "opencl", NULL);
    if (status != KILN_OK) print_error("%s\n%s\n", kiln_last_error()->message, kiln_last_error()->hint);
    return status != KILN_OK;
}

static int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

static void test_properties(void **state) {
    (void)state;
    const struct ki_properties *p = &device->properties;
    assert_int_equal(strncmp(device->info.name, "opencl:", 7), 0);
    assert_true(device->info.description[0] && device->info.usable);
    assert_true(p->compute_units > 0 && p->group_max >= 64 && p->local_bytes >= 16384);
    assert_true(p->memory > 0 && p->alloc_max > 0 && p->alloc_max <= p->memory);
    assert_true(p->has_f64);
    assert_contains(p->cache_key, "opencl ");
}

static void test_round_trip(void **state) {
    (void)state;
    enum { COUNT = 100003 };
    struct ki_buffer buffer = {0};
    int32_t *from = malloc(COUNT * sizeof *from), *to = calloc(COUNT, sizeof *to);
    for (int i = 0; i < COUNT; i++) from[i] = i * 7919;
    assert_int_equal(ki_device_alloc(device, &buffer, COUNT * (int64_t)sizeof *from), KILN_OK);
    assert_int_equal(ki_device_upload(device, &buffer, 0, from, COUNT * (int64_t)sizeof *from), KILN_OK);
    assert_int_equal(ki_device_upload(device, &buffer, 8, from, 4), KILN_OK); /* element 2 = element 0 */
    from[2] = from[0];
    assert_int_equal(ki_device_download(device, to, &buffer, 0, COUNT * (int64_t)sizeof *from), KILN_OK);
    assert_memory_equal(to, from, COUNT * sizeof *from);
    assert_int_equal(ki_device_download(device, to, &buffer, 4 * (COUNT - 1), 4), KILN_OK);
    assert_int_equal(to[0], from[COUNT - 1]);
    ki_device_release(device, &buffer);
    assert_int_equal(device->statistics.memory_used, 0);
    free(from);
    free(to);
}

static const char kernel_source[] =
    "__kernel void scale(__global int *x, __global const int *bias, long count, int factor) {\n"
    "    long i = (long)get_global_id(0);\n"
    "    if (i < count) x[i] = x[i] * factor + (bias ? bias[i] : SHIFT);\n"
    "}\n";

static void test_kernel(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    const struct ki_backend *backend = device->backend;
    int32_t values[COUNT];
    void *binary = NULL, *module = NULL, *function = NULL;
    size_t bytes = 0;
    struct ki_buffer buffer = {0};
    for (int i = 0; i < COUNT; i++) values[i] = i;
    assert_int_equal(backend->build(device, &binary, &bytes, kernel_source, "-DSHIFT=5"), KILN_OK);
    assert_true(bytes > 0);
    assert_int_equal(backend->load(device, &module, &function, binary, bytes, "scale", "-DSHIFT=5"), KILN_OK);
    ki_free(binary);
    assert_int_equal(ki_device_alloc(device, &buffer, sizeof values), KILN_OK);
    assert_int_equal(ki_device_upload(device, &buffer, 0, values, sizeof values), KILN_OK);
    const struct ki_arg args[] = {ki_arg_buffer(&buffer), ki_arg_buffer(NULL), ki_arg_i64(COUNT - 1),
                                  ki_arg_i32(3)};
    assert_int_equal(backend->launch(device, function, 16, 64, false, args, 4), KILN_OK);
    assert_int_equal(kiln_device_sync(device), KILN_OK);
    assert_int_equal(ki_device_download(device, values, &buffer, 0, sizeof values), KILN_OK);
    for (int i = 0; i < COUNT; i++) assert_int_equal(values[i], i < COUNT - 1 ? 3 * i + 5 : i);
    /* A work-group larger than any device takes. */
    assert_fails(KILN_ERR_DEVICE, backend->launch(device, function, 1, (int64_t)1 << 40, false, args, 4));
    assert_fails(KILN_ERR_LIMIT, backend->launch(device, function, INT64_MAX, 64, false, args, 4));
    assert_false(device->lost);
    ki_device_release(device, &buffer);
    backend->unload(device, module, function);
}

/* Uploads on their own queue while kernels run on the other, into a buffer of which a launch sees the rest
 * from an offset. */
static void test_two_queues(void **state) {
    (void)state;
    enum { COUNT = 4096, ROUNDS = 20 };
    const struct ki_backend *backend = device->backend;
    static int32_t values[ROUNDS][COUNT], back[COUNT];
    void *binary = NULL, *module = NULL, *function = NULL;
    size_t bytes = 0;
    struct ki_buffer buffer = {0};
    const int64_t first = device->properties.align / 4;
    assert_true(device->properties.align > 0 && first < COUNT);
    assert_int_equal(backend->build(device, &binary, &bytes, kernel_source, "-DSHIFT=5"), KILN_OK);
    assert_int_equal(backend->load(device, &module, &function, binary, bytes, "scale", "-DSHIFT=5"), KILN_OK);
    ki_free(binary);
    assert_int_equal(ki_device_alloc(device, &buffer, sizeof back), KILN_OK);
    struct ki_buffer rest = buffer;
    rest.offset = device->properties.align;
    const struct ki_arg args[] = {ki_arg_buffer(&rest), ki_arg_buffer(NULL), ki_arg_i64(COUNT - first),
                                  ki_arg_i32(3)};
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) values[round][i] = i + round;
        assert_int_equal(backend->upload_queue(device, &buffer, 0, values[round], sizeof back), KILN_OK);
        assert_int_equal(backend->upload_wait(device), KILN_OK);
        assert_int_equal(backend->launch(device, function, 64, 64, false, args, 4), KILN_OK);
    }
    assert_int_equal(ki_device_download(device, back, &buffer, 0, sizeof back), KILN_OK);
    for (int i = 0; i < COUNT; i++) {
        const int uploaded = i + ROUNDS - 1;
        assert_int_equal(back[i], i < first ? uploaded : 3 * uploaded + 5);
    }
    ki_device_release(device, &buffer);
    backend->unload(device, module, function);
}

static void test_build_errors(void **state) {
    (void)state;
    void *binary = NULL, *module = NULL, *function = NULL;
    size_t bytes = 0;
    const struct ki_backend *backend = device->backend;
    assert_fails(KILN_ERR_BUILD,
                 backend->build(device, &binary, &bytes, "__kernel void f(int x) { x = no_such_name; }", ""));
    assert_contains(kiln_last_error()->message, "no_such_name");
    assert_string_equal(kiln_last_error()->subsystem, "opencl");
    assert_null(binary);
    assert_fails(KILN_ERR_BUILD, backend->load(device, &module, &function, "not a program", 13, "f", ""));
    assert_int_equal(backend->build(device, &binary, &bytes, kernel_source, "-DSHIFT=0"), KILN_OK);
    assert_fails(KILN_ERR_BUILD,
                 backend->load(device, &module, &function, binary, bytes, "absent", "-DSHIFT=0"));
    assert_null(function);
    ki_free(binary);
    assert_false(device->lost);
}

static void test_too_much(void **state) {
    (void)state;
    struct ki_buffer buffer = {0};
    assert_fails(KILN_ERR_DEVICE_NOMEM, ki_device_alloc(device, &buffer, device->properties.alloc_max + 1));
    assert_true(kiln_last_error()->hint[0]);
    /* Past the core's check, the driver refuses too. */
    assert_fails(KILN_ERR_DEVICE_NOMEM, device->backend->alloc(device, &buffer, (int64_t)1 << 60));
    assert_int_equal(kiln_last_error()->native_code < 0, 1);
    assert_int_equal(buffer.handle, 0);
}

static void test_names(void **state) {
    (void)state;
    static const char *const absent[] = {"opencl:77.0", "opencl:0.77"};
    static const char *const wrong[] = {"opencl:x",    "opencl:0",  "opencl:0.0x",
                                        "opencl:-1.0", "opencl:0.", "opencl:99999999999999999999.0"};
    kiln_device *other = NULL;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_fails(KILN_ERR_DEVICE, kiln_device_open(&other, absent[i], NULL));
        assert_contains(kiln_last_error()->hint, "kiln devices");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_fails(KILN_ERR_ARGUMENT, kiln_device_open(&other, wrong[i], NULL));
    assert_null(other);
    assert_int_equal(kiln_device_open(&other, device->info.name, NULL), KILN_OK);
    assert_string_equal(other->info.name, device->info.name);
    kiln_device_close(other);
}

static void test_list(void **state) {
    (void)state;
    kiln_device_info *infos = NULL;
    int64_t count = 0, found = 0;
    assert_int_equal(ki_backend_opencl.list(&infos, &count), KILN_OK);
    for (int64_t i = 0; i < count; i++) found += infos[i].usable && !strcmp(infos[i].name, device->info.name);
    assert_int_equal(found, 1);
    kiln_free(infos);
}

/* More local memory than the device names is used where a kernel with so much runs, and what no compiler
 * takes is no error. */
static void test_local_declared(void **state) {
    (void)state;
    struct ki_properties *p = &device->properties;
    assert_int_equal(p->local_hoped, 0); /* only NVIDIA's OpenCL gives cause to */
    assert_null(p->registers_option);
    p->local_hoped = 8192;
    assert_int_equal(ki_find_local_declared(device), KILN_OK);
    assert_int_equal(p->local_declared, 8192);
    const int64_t built = device->statistics.kernels_built + device->statistics.kernels_cached;
    assert_int_equal(ki_find_local_declared(device), KILN_OK); /* settled */
    assert_int_equal(device->statistics.kernels_built + device->statistics.kernels_cached, built);
    p->local_declared = 0;
    p->local_hoped = -4;
    assert_int_equal(ki_find_local_declared(device), KILN_OK);
    assert_int_equal(p->local_declared, 0);
    assert_int_equal(p->local_hoped, 0);
}

/* Returns what is wrong in a forked child, 0 if nothing: the parent's device and the driver are out of reach,
 * and the CPU works. */
static int wrong_in_child(kiln_matrix *A) {
    double values[4] = {0};
    kiln_device *other = NULL, *cpu = NULL;
    alarm(60);
    if (kiln_matrix_get(values, A) != KILN_ERR_DEVICE_LOST) return 1;
    if (!strstr(kiln_last_error()->message, "forked") || !kiln_last_error()->hint[0]) return 2;
    if (kiln_device_sync(device) != KILN_ERR_DEVICE_LOST) return 3;
    if (kiln_device_open(&other, "opencl", NULL) != KILN_ERR_DEVICE) return 4;
    if (!strstr(kiln_last_error()->message, "forked") || !kiln_last_error()->hint[0]) return 5;
    kiln_matrix_free(A); /* asks nothing of the driver */
    kiln_device_close(device);
    if (kiln_device_open(&cpu, "cpu", NULL) != KILN_OK) return 6;
    if (kiln_device_open(&other, "auto", NULL) != KILN_OK || strcmp(other->info.name, "cpu") != 0) return 7;
    if (kiln_matrix_dense(&A, cpu, KILN_F64, 2, 2, NULL) != KILN_OK || kiln_fill(A, 3) != KILN_OK) return 8;
    if (kiln_matrix_get(values, A) != KILN_OK || values[3] != 3) return 9;
    return 0;
}

static void test_fork(void **state) {
    (void)state;
    kiln_matrix *A = NULL;
    double values[4] = {0};
    int result;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 2, 2, NULL), KILN_OK);
    assert_int_equal(kiln_fill(A, 2), KILN_OK);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(wrong_in_child(A));
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(kiln_matrix_get(values, A), KILN_OK); /* the parent goes on */
    assert_true(values[3] == 2);
    kiln_matrix_free(A);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_kernel),         cmocka_unit_test(test_two_queues),
        cmocka_unit_test(test_build_errors),   cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_names),          cmocka_unit_test(test_list),
        cmocka_unit_test(test_local_declared), cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
