/* Sums and copies of a group's members by NCCL, on stubs of it and of CUDA: what they leave, when they are
 * taken, and each call failing. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "backends/check.h"
#include "backends/stub.h"
#include "core/group/group.h"
#include "core/limits.h"

static struct stub *driver, *nccl;

static struct stub *stub_of(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOW);
    assert_non_null(handle);
    struct stub *stub = dlsym(handle, name);
    assert_non_null(stub);
    return stub;
}

static void reset(void) {
    *driver = *nccl = (struct stub){0};
    ki_limits.collective_bytes = 1;
}

enum { COUNT = 3 };

/* sum: (1, 2, 3) + (10, 20, 30); then that goes to the other member. */
static kiln_status collect(kiln_device *first) {
    const double one[COUNT] = {1, 2, 3}, ten[COUNT] = {10, 20, 30};
    double back[COUNT];
    kiln_device *second = first->group->member[1];
    struct ki_buffer a = {0}, b = {0};
    const struct ki_buffer *const both[] = {&a, &b, NULL};
    kiln_status status;
    TRY(ki_device_alloc(first, &a, sizeof one));
    TRY(ki_device_alloc(second, &b, sizeof ten));
    TRY(ki_device_upload(first, &a, 0, one, sizeof one));
    TRY(ki_device_upload(second, &b, 0, ten, sizeof ten));
    TRY(ki_group_sum(first, both, COUNT, KILN_F64));
    TRY(ki_group_spread(first, both, COUNT, KILN_F64));
    TRY(ki_device_download(second, back, &b, 0, sizeof back));
    assert_true(back[0] == 11 && back[1] == 22 && back[2] == 33);
done:
    ki_device_release(first, &a);
    ki_device_release(second, &b);
    return status;
}

static void test_collectives(void **state) {
    (void)state;
    reset();
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cuda:0,1", NULL), KILN_OK);
    assert_int_equal(nccl->calls, 0); /* not before it is wanted */
    assert_true(ki_group_collects(device, 24));
    assert_int_equal(collect(device), KILN_OK);
    kiln_device_close(device);
    assert_int_equal(nccl->live, 0);
    assert_int_equal(driver->live, 0);
}

/* Two members on one GPU, a processor, and what copies do sooner. */
static void test_not_taken(void **state) {
    (void)state;
    reset();
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cuda:1*2", NULL), KILN_OK);
    assert_false(ki_group_collects(device, 1 << 30));
    kiln_device_close(device);
    assert_int_equal(kiln_device_open(&device, "cpu*2", NULL), KILN_OK);
    assert_false(ki_group_collects(device, 1 << 30));
    kiln_device_close(device);
    ki_limits.collective_bytes = INT64_MAX;
    assert_int_equal(kiln_device_open(&device, "cuda:0,1", NULL), KILN_OK);
    assert_false(ki_group_collects(device, 1 << 20));
    assert_int_equal(nccl->calls, 0);
    assert_true(ki_group_collects(device, 1 << 30));
    kiln_device_close(device);
}

/* One that does not connect leaves copies; one that fails later has lost the group. */
static void test_faults(void **state) {
    (void)state;
    reset();
    kiln_device *device = NULL;
    assert_int_equal(kiln_device_open(&device, "cuda:0,1", NULL), KILN_OK);
    assert_true(ki_group_collects(device, 24));
    assert_int_equal(collect(device), KILN_OK);
    kiln_device_close(device);
    const int calls =
        nccl->calls - 2; /* without the two that disconnect, whose failure has nobody to be told */
    for (int at = 1; at <= calls; at++) {
        reset();
        nccl->fail_at = at;
        nccl->code = 3;
        assert_int_equal(kiln_device_open(&device, "cuda:0,1", NULL), KILN_OK);
        const bool connected = ki_group_collects(device, 24);
        assert_int_equal(connected, at > 1);
        if (connected) {
            assert_fails(KILN_ERR_DEVICE_LOST, collect(device));
            assert_int_equal(kiln_last_error()->native_code, 3);
            assert_string_equal(kiln_last_error()->subsystem, "nccl");
            assert_fails(KILN_ERR_DEVICE_LOST, ki_group_alive(device));
        }
        kiln_device_close(device);
        if (!connected) assert_int_equal(nccl->live, 0);
    }
}

int main(void) {
    driver = stub_of("libcuda.so.1", "stub_cuda");
    nccl = stub_of("libnccl.so.2", "stub_nccl");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_not_taken),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
