/* Plans of team.cl forced on whatever OpenCL there is (PoCL in CI, which the model never gives them): a group
 * with several vectors, and a row that two groups share, through the words by which they wait for each
 * other. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/check.h"
#include "pass/dense/variants.h"

static kiln_device *device;

static int open_device(void **state) {
    (void)state;
    const kiln_status status = kiln_device_open(&device, "opencl", NULL);
    if (status != KILN_OK) print_error("%s\n%s\n", kiln_last_error()->message, kiln_last_error()->hint);
    return status != KILN_OK;
}

static int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

enum { ROWS = 203, COLS_MAX = 128, K_MAX = 2 };

static double x_at(int i, int j) {
    return (i * 31 + j * 17) % 23 - 11;
}

static double y_at(int j, int c) {
    return (j * 13 + c * 5) % 7 - 3;
}

static double v_at(int i) {
    return i % 5 - 1;
}

/* Numbers so small that any order of the sums is exact. */
static void fill_expected(double *expected, int cols, int k) {
    for (int e = 0; e < cols * k; e++) expected[e] = 0;
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < k; c++) {
            double dot = 0;
            for (int j = 0; j < cols; j++) dot += x_at(i, j) * y_at(j, c);
            for (int j = 0; j < cols; j++) expected[j * k + c] += x_at(i, j) * v_at(i) * dot;
        }
}

static kiln_matrix *upload(kiln_type type, int rows, int cols, const double *from) {
    kiln_matrix *made = NULL;
    float *narrow = malloc((size_t)rows * (size_t)cols * sizeof *narrow);
    assert_non_null(narrow);
    for (int e = 0; e < rows * cols; e++) narrow[e] = (float)from[e];
    assert_int_equal(kiln_matrix_dense(&made, device, type, rows, cols,
                                       type == KILN_F64 ? (const void *)from : (const void *)narrow),
                     KILN_OK);
    free(narrow);
    return made;
}

static void check_plan(struct ki_plan plan, kiln_type type, int cols, int k) {
    static double x[ROWS * COLS_MAX], y[COLS_MAX * K_MAX], v[ROWS], expected[COLS_MAX * K_MAX],
        found[COLS_MAX * K_MAX];
    for (int i = 0; i < ROWS; i++) {
        v[i] = v_at(i);
        for (int j = 0; j < cols; j++) x[i * cols + j] = x_at(i, j);
    }
    for (int e = 0; e < cols * k; e++) {
        y[e] = y_at(e / k, e % k);
        found[e] = 0;
    }
    fill_expected(expected, cols, k);
    plan.variant = &ki_dense_team;
    plan.steps = 1; /* one team has all tiles */
    plan.groups = plan.C;
    struct ki_chain chain = {.kind = KI_CHAIN_FUSED, .alpha = 1, .k = k};
    kiln_matrix *X = upload(type, ROWS, cols, x), *Y = upload(type, cols, k, y),
                *V = upload(type, ROWS, 1, v);
    chain.X = X;
    chain.y = Y;
    chain.v = V;
    chain.out = upload(type, cols, k, found);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(ki_chain_run_plan(&chain, &plan), KILN_OK);
        if (type == KILN_F64)
            assert_int_equal(kiln_matrix_get(found, chain.out), KILN_OK);
        else {
            float narrow[COLS_MAX * K_MAX];
            assert_int_equal(kiln_matrix_get(narrow, chain.out), KILN_OK);
            for (int e = 0; e < cols * k; e++) found[e] = narrow[e];
        }
        for (int e = 0; e < cols * k; e++)
            if (found[e] != expected[e]) fail_msg("element %d: %g, not %g", e, found[e], expected[e]);
    }
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
    kiln_matrix_free(V);
    kiln_matrix_free(chain.out);
}

static void test_one_group(void **state) {
    (void)state;
    check_plan(
        (struct ki_plan){.VS = 8, .BS = 16, .Q = 1, .W = 4, .R = 2, .K = 1, .C = 1, .stages = 3, .lag = 1},
        KILN_F32, 28, 1);
}

static void test_two_groups(void **state) {
    (void)state;
    if (device->properties.compute_units < 2) {
        print_message("the device has one compute unit: two groups that wait for each other were not run\n");
        skip();
    }
    check_plan(
        (struct ki_plan){.VS = 8, .BS = 8, .Q = 2, .W = 2, .R = 2, .K = 2, .C = 2, .stages = 5, .lag = 2},
        KILN_F64, 60, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_group),
        cmocka_unit_test(test_two_groups),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
