/* Groups of devices: their names, where matrices lie, what passes leave, and who is told of an error. */
#include <math.h>

#include "backends/check.h"
#include "core/group/group.h"
#include "core/matrix.h"
#include "pass/group.h"

enum { ROWS = 1000, COLUMNS = 7 };

static void refuse(const char *name, kiln_status status, const char *message) {
    kiln_device *device = NULL;
    assert_fails(status, kiln_device_open(&device, name, NULL));
    assert_null(device);
    assert_contains(kiln_last_error()->message, message);
    assert_true(kiln_last_error()->hint[0] != '\0');
}

static void test_names(void **state) {
    static const char *const lists[] = {"cpu*", "cpu*0", "cpu*-1", "cpu*2x", "cpu*65", "*2", "cpu*2,3",
                                        "cuda:,1", "cuda:0,", ",", ":all*2*3",
                                        "cpu:a,cpu:b,cpu:c,cpu:d,cpu:e,cpu:f,cpu:g",
                                        /* groups in groups, and one device twice */
                                        "cpu,cpu", "cpu,cpu:0", "cpu*2*2", "cpu:all*2", "cuda:all*2",
                                        "cpu*2,cpu:0", "cpu,cpu:all", "cpu*2:all", "auto,cpu", "cpu,auto",
                                        /* shares */
                                        "cpu@", "cpu@0", "cpu@-1", "cpu@1.5", "cpu@1@2", "cpu@2*2", "@3",
                                        "cpu@1000001", "cpu@1,opencl:0.0", "cpu,opencl:0.0@1"};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        kiln_device *device = NULL;
        assert_fails(KILN_ERR_ARGUMENT, kiln_device_open(&device, lists[i], NULL));
        assert_true(kiln_last_error()->hint[0] != '\0');
    }
    refuse("cpu,cpu", KILN_ERR_ARGUMENT, "has cpu twice");
    refuse("cpu:0,1", KILN_ERR_ARGUMENT, "the CPU is one device");
    refuse("nothing:all", KILN_ERR_DEVICE, "there is none");
    refuse("nothing*2", KILN_ERR_ARGUMENT, "unknown device 'nothing'");
}

static void test_open(void **state) {
    (void)state;
    kiln_device *device = NULL;
    kiln_device_info info = {.size = sizeof info};
    assert_int_equal(kiln_device_open(&device, "cpu*3", &(kiln_device_options){.threads = 7}), KILN_OK);
    assert_int_equal(kiln_device_get_info(device, &info), KILN_OK);
    assert_string_equal(info.name, "cpu*3");
    assert_int_equal(info.threads, 6); /* two each */
    assert_int_equal(device->group->count, 3);
    assert_int_equal(kiln_device_sync(device), KILN_OK);
    kiln_device_close(device);
    assert_int_equal(kiln_device_open(&device, "cpu*1", NULL), KILN_OK); /* is the device itself */
    assert_null(device->group);
    assert_string_equal(device->info.name, "cpu");
    kiln_device_close(device);
    assert_int_equal(kiln_device_open(&device, "cpu:all", NULL), KILN_OK);
    assert_null(device->group);
    kiln_device_close(device);
}

/* Whatever stands first, matrices lie on the device that is no CPU, and the name stays as it was given. */
static void test_unlike(void **state) {
    static const char *const names[] = {"cpu,opencl:0.0", "opencl:0.0,cpu", "cpu*2,opencl:0.0"};
    (void)state;
    for (int n = 0; n < 3; n++) {
        kiln_device *device = NULL;
        kiln_device_info info = {.size = sizeof info};
        if (kiln_device_open(&device, names[n], &(kiln_device_options){.threads = 4}) != KILN_OK) skip();
        const struct ki_group *group = device->group;
        assert_int_equal(group->count, n == 2 ? 3 : 2);
        assert_false(ki_on_cpu(device));
        assert_true(ki_on_cpu(group->member[1]) && ki_on_cpu(group->member[group->count - 1]));
        assert_int_equal(group->member[1]->threads, n == 2 ? 2 : 4);
        assert_true(group->unlike);
        assert_int_equal(kiln_device_get_info(device, &info), KILN_OK);
        assert_string_equal(info.name, names[n]);
        assert_contains(info.description, group->own.description);
        assert_contains(info.description, n == 2 ? "; 2 x " : "; ");
        kiln_device_close(device);
    }
}

/* Rows go by the shares that the name gives, whether devices are alike or not. */
static void test_shares(void **state) {
    static const char *const names[] = {"cpu*2@7", "cpu@3,opencl:0.0@1"};
    double values[ROWS * COLUMNS] = {0};
    (void)state;
    for (int n = 0; n < 2; n++) {
        kiln_device *device = NULL;
        kiln_matrix *X = NULL;
        const struct ki_split *split;
        if (kiln_device_open(&device, names[n], NULL) != KILN_OK) skip();
        assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLUMNS, values), KILN_OK);
        assert_int_equal(ki_split_of(&split, X, KI_BY_ROWS), KILN_OK);
        assert_int_equal(split->first[1], n == 0 ? ROWS / 2 : ROWS / 4); /* OpenCL's come first */
        kiln_matrix_free(X);
        kiln_device_close(device);
    }
}

static void test_error_names_the_member(void **state) {
    (void)state;
    kiln_device *device = NULL;
    struct ki_error_copy error;
    assert_int_equal(kiln_device_open(&device, "cpu*3", NULL), KILN_OK);
    ki_fail(KILN_ERR_NOMEM, "no room");
    ki_hint("make some");
    ki_error_keep(&error);
    assert_fails(KILN_ERR_NOMEM, ki_group_fail(device, 1, &error));
    assert_string_equal(kiln_last_error()->message, "cpu*3, member 2 of 3 (cpu): no room");
    assert_string_equal(kiln_last_error()->hint, "make some");
    device->group->member[2]->lost = true;
    assert_fails(KILN_ERR_DEVICE_LOST, kiln_device_sync(device));
    device->group->member[2]->lost = false;
    kiln_device_close(device);
}

/* w = X^T X y by a group of each number of members, twice: the same bits, and the memory is given back. */
static void pass(double *w, const char *name, const double *values, const double *y) {
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *Y = NULL, *W = NULL;
    kiln_device_statistics statistics = {.size = sizeof statistics};
    double again[COLUMNS];
    const kiln_status opened = kiln_device_open(&device, name, &(kiln_device_options){.deterministic = 1});
    if (opened == KILN_ERR_DEVICE) skip(); /* there is no OpenCL */
    assert_int_equal(opened, KILN_OK);
    assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLUMNS, values), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&Y, device, KILN_F64, COLUMNS, 1, y), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&W, device, KILN_F64, COLUMNS, 1, NULL), KILN_OK);
    assert_int_equal(kiln_mmchain(W, 1, X, NULL, Y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_get(w, W), KILN_OK);
    assert_int_equal(kiln_mmchain(W, 1, X, NULL, Y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_get(again, W), KILN_OK);
    assert_memory_equal(w, again, sizeof again);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
    kiln_matrix_free(W);
    assert_int_equal(kiln_device_get_statistics(device, &statistics), KILN_OK);
    /* of unlike ones all but the CPU's rows, which lie in host memory as they are */
    assert_true(statistics.memory_peak >= ROWS * COLUMNS * 8 / (strchr(name, ',') ? 2 : 1));
    kiln_device_close(device);
}

static void test_pass(void **state) {
    static const char *const names[] = {"cpu*2", "cpu*3", "cpu*7", "cpu@1,opencl:0.0@2"};
    double values[ROWS * COLUMNS], y[COLUMNS], one[COLUMNS], w[COLUMNS];
    (void)state;
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = (double)(i * 37 % 101) / 101 - 0.5;
    for (int j = 0; j < COLUMNS; j++) y[j] = 1.0 / (1 + j);
    pass(one, "cpu", values, y);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        pass(w, names[n], values, y);
        for (int j = 0; j < COLUMNS; j++) assert_true(fabs(w[j] - one[j]) < 1e-12 * ROWS);
    }
}

/* The result of an operation is a vector to a group, and stays on its first member; new values from outside
 * make it an X. */
static void test_given(void **state) {
    (void)state;
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *y = NULL, *w = NULL;
    double values[6] = {1, 2, 3, 4, 5, 6};
    assert_int_equal(kiln_device_open(&device, "cpu*2", NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, 3, 2, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&y, device, KILN_F64, 2, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&w, device, KILN_F64, 3, 1, NULL), KILN_OK);
    assert_int_equal(kiln_fill(y, 1), KILN_OK);
    assert_int_equal(kiln_fill(X, 2), KILN_OK);
    assert_int_equal(kiln_multiply(w, 1, KILN_PLAIN, X, y, 0, NULL), KILN_OK);
    assert_null(X->slots);
    assert_int_equal(kiln_matrix_set(X, values), KILN_OK);
    assert_int_equal(kiln_multiply(w, 1, KILN_PLAIN, X, y, 0, NULL), KILN_OK);
    assert_non_null(X->slots);
    assert_int_equal(kiln_matrix_get(values, w), KILN_OK);
    assert_true(values[0] == 3 && values[1] == 7 && values[2] == 11);
    kiln_matrix_free(X);
    kiln_matrix_free(y);
    kiln_matrix_free(w);
    kiln_device_close(device);
}

/* w = X^T (v .* (X y)) for ones and then for twos: what members keep of v and y goes when these are written
 * anew. */
static void test_copies(void **state) {
    (void)state;
    enum { M = 12, N = 2 };
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *v = NULL, *y = NULL, *w = NULL;
    float ones[M * N], got[N];
    for (int i = 0; i < M * N; i++) ones[i] = 1;
    if (kiln_device_open(&device, "opencl*2", NULL) != KILN_OK) skip();
    assert_int_equal(kiln_matrix_dense(&X, device, KILN_F32, M, N, ones), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&v, device, KILN_F32, M, 1, ones), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&y, device, KILN_F32, N, 1, ones), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&w, device, KILN_F32, N, 1, NULL), KILN_OK);
    for (int turn = 0; turn < 4; turn++) {
        if (turn == 2) assert_int_equal(kiln_fill(y, 2), KILN_OK);
        if (turn == 3) assert_int_equal(kiln_fill(v, 2), KILN_OK);
        assert_int_equal(kiln_mmchain(w, 1, X, v, y, 0, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_get(got, w), KILN_OK);
        const float expected = (float)(M * N * (turn >= 2 ? 2 : 1) * (turn >= 3 ? 2 : 1));
        assert_true(got[0] == expected && got[1] == expected);
        assert_non_null(y->slots);
    }
    kiln_matrix_free(X);
    kiln_matrix_free(v);
    kiln_matrix_free(y);
    kiln_matrix_free(w);
    kiln_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_unlike),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_error_names_the_member),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
