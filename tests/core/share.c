/* Matrices that share a structure: what they hold, that the structure takes memory once, moves once, and goes
 * with the last. */
#include <string.h>

#include "backends/check.h"
#include "core/fake.h"
#include "core/matrix.h"
#include "faults/brutal.h"

enum { ROWS = 60, COLS = 7, NNZ = 2 * ROWS, STRUCTURE = (ROWS + 1) * 8 + NNZ * 4, VALUES = NNZ * 8 };

static int64_t row_start[ROWS + 1];
static int32_t col[NNZ];
static double values[NNZ];
static kiln_device device;

static void fill(void) {
    for (int i = 0; i <= ROWS; i++) row_start[i] = 2 * i;
    for (int e = 0; e < NNZ; e++) col[e] = (e / 2 + 3 * (e % 2)) % COLS, values[e] = 1 + e % 11;
}

static int open_device(void **state) {
    (void)state;
    fake = (struct fake){0};
    fake_open(&device);
    fill();
    return 0;
}

static int close_device(void **state) {
    (void)state;
    ki_memory_clear(&device);
    assert_int_equal(device.statistics.memory_used, 0);
    assert_null(device.memory.newest);
    assert_null(device.memory.oldest);
    assert_int_equal(fake.allocs, fake.releases);
    return 0;
}

static kiln_matrix *make(kiln_device *on) {
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_csr(&A, on, KILN_F64, ROWS, COLS, row_start, col, values), KILN_OK);
    return A;
}

static kiln_matrix *like(const kiln_matrix *pattern, double factor) {
    double scaled[NNZ];
    kiln_matrix *A = NULL;
    for (int e = 0; e < NNZ; e++) scaled[e] = factor * values[e];
    assert_int_equal(kiln_matrix_like(&A, pattern, KILN_TYPE_DEFAULT, scaled), KILN_OK);
    return A;
}

static void assert_holds(const kiln_matrix *A, double factor) {
    int64_t got_start[ROWS + 1];
    int32_t got_col[NNZ];
    double got[NNZ];
    assert_int_equal(kiln_matrix_get_csr(got_start, got_col, got, A), KILN_OK);
    assert_memory_equal(got_start, row_start, sizeof row_start);
    assert_memory_equal(got_col, col, sizeof col);
    for (int e = 0; e < NNZ; e++) assert_true(got[e] == factor * values[e]);
}

static void use(kiln_matrix *A, bool written) {
    const struct ki_operand operand = {A, written};
    assert_int_equal(ki_operands_hold(&device, &operand, 1), KILN_OK);
    assert_true(ki_matrix_resident(A) && A->row_start.handle && A->col.handle);
    ki_operands_release(&device, &operand, 1);
}

static void structure_counts_once(void **state) {
    (void)state;
    kiln_matrix *A = make(&device), *B, *C;
    const int64_t alone = device.statistics.memory_used;
    B = like(A, 2);
    C = like(B, 3);
    assert_int_equal(device.statistics.memory_used, alone + 2 * VALUES);
    assert_true(A->col.handle == C->col.handle);
    assert_holds(B, 2);
    kiln_matrix_free(A); /* the first owner */
    assert_int_equal(device.statistics.memory_used, alone + VALUES);
    assert_holds(B, 2);
    kiln_matrix_free(C);
    assert_holds(B, 2);
    kiln_matrix_free(B);
}

/* The structure leaves after the last that shares it, comes with the first, and counts as room. */
static void structure_comes_and_goes(void **state) {
    (void)state;
    kiln_matrix *A = make(&device), *B = like(A, 2), *large = NULL;
    kiln_matrix *S = A->structure;
    enum { LARGE = (2 * VALUES + STRUCTURE) / 8 };
    double zeros[LARGE] = {0};
    device.budget = LARGE * 8;
    assert_int_equal(ki_memory_room(&device), LARGE * 8);
    assert_int_equal(kiln_matrix_dense(&large, &device, KILN_F64, LARGE - VALUES / 8, 1, zeros), KILN_OK);
    assert_true(ki_matrix_resident(large) && !ki_matrix_resident(S));
    assert_holds(A, 1);
    assert_holds(B, 2);
    kiln_matrix_free(large);
    use(B, true);
    assert_true(ki_matrix_resident(S) && S->held == 1 && !ki_matrix_resident(A));
    assert_int_equal(device.statistics.memory_used, VALUES + STRUCTURE);
    use(A, false);
    assert_int_equal(S->held, 2);
    assert_int_equal(kiln_matrix_dense(&large, &device, KILN_F64, VALUES / 8 + 1, 1, zeros), KILN_OK);
    assert_holds(A, 1);
    kiln_matrix_free(A);
    use(B, false);
    assert_holds(B, 2);
    kiln_matrix_free(B);
    kiln_matrix_free(large);
}

static void refused(void **state) {
    (void)state;
    kiln_matrix *A = make(&device), *dense = NULL, *got = NULL;
    assert_int_equal(kiln_matrix_dense(&dense, &device, KILN_F64, 2, 2, values), KILN_OK);
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_like(&got, dense, KILN_TYPE_DEFAULT, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_like(&got, NULL, KILN_TYPE_DEFAULT, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_like(NULL, A, KILN_TYPE_DEFAULT, NULL));
    assert_fails(KILN_ERR_ARGUMENT, kiln_matrix_like(&got, A, (kiln_type)7, NULL));
    assert_null(got);
    kiln_matrix_free(dense);
    kiln_matrix_free(A);
}

/* ------------------------------------------------------------------------ with passes over both */

/* w = A^T (A y) of a matrix, several times, as passes derive what they keep from the second on. */
static void passes(double w[COLS], const kiln_matrix *A) {
    double ones[COLS];
    kiln_matrix *y = NULL, *out = NULL;
    for (int i = 0; i < COLS; i++) ones[i] = 1;
    assert_int_equal(kiln_matrix_dense(&y, kiln_matrix_device(A), KILN_F64, COLS, 1, ones), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&out, kiln_matrix_device(A), KILN_F64, COLS, 1, NULL), KILN_OK);
    for (int pass = 0; pass < 3; pass++) assert_int_equal(kiln_mmchain(out, 1, A, NULL, y, 0, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_get(w, out), KILN_OK);
    kiln_matrix_free(y);
    kiln_matrix_free(out);
}

static void assert_passes(const kiln_matrix *A, double factor) {
    double got[COLS], want[COLS] = {0};
    passes(got, A);
    for (int i = 0; i < ROWS; i++) {
        const double sum = values[2 * i] + values[2 * i + 1];
        for (int e = 2 * i; e < 2 * i + 2; e++) want[col[e]] += factor * factor * values[e] * sum;
    }
    for (int j = 0; j < COLS; j++)
        assert_true(got[j] > want[j] * (1 - 1e-12) && got[j] < want[j] * (1 + 1e-12));
}

static void on_device(const char *name) {
    kiln_device *real = NULL;
    double tripled[NNZ];
    kiln_matrix *ones = NULL;
    fill();
    assert_int_equal(kiln_device_open(&real, name, NULL), KILN_OK);
    kiln_matrix *A = make(real);
    assert_passes(A, 1);
    kiln_matrix *B = like(A, 2);
    assert_passes(B, 2);
    assert_passes(A, 1);
    assert_holds(B, 2);
    for (int e = 0; e < NNZ; e++) tripled[e] = 3 * values[e];
    assert_int_equal(kiln_matrix_set(A, tripled), KILN_OK);
    assert_passes(A, 3);
    assert_passes(B, 2);
    kiln_matrix_free(A);
    assert_passes(B, 2);
    assert_int_equal(kiln_matrix_like(&ones, B, KILN_F32, NULL), KILN_OK);
    kiln_matrix_free(B);
    float got[NNZ];
    assert_int_equal(kiln_matrix_get(got, ones), KILN_OK);
    for (int e = 0; e < NNZ; e++) assert_true(got[e] == 1);
    kiln_matrix_free(ones);
    kiln_device_statistics statistics = {0};
    kiln_device_get_statistics(real, &statistics);
    assert_int_equal(statistics.layout_bytes, 0);
    kiln_device_close(real);
}

static void on_the_cpu(void **state) {
    (void)state;
    on_device("cpu");
}

static void on_opencl(void **state) {
    (void)state;
    on_device("opencl");
}

/* One of two that share moves; the other stays. */
static void moving_leaves_the_others(void **state) {
    (void)state;
    kiln_device *cpu = NULL;
    assert_int_equal(kiln_device_open(&cpu, "cpu", NULL), KILN_OK);
    kiln_matrix *A = make(&device), *B = like(A, 2);
    assert_int_equal(ki_matrix_move(A, cpu), KILN_OK);
    assert_ptr_equal(kiln_matrix_device(A), cpu);
    assert_holds(A, 1);
    assert_holds(B, 2);
    kiln_matrix_free(B);
    assert_holds(A, 1);
    assert_int_equal(ki_matrix_move(A, &device), KILN_OK);
    assert_holds(A, 1);
    kiln_matrix_free(A);
    kiln_device_close(cpu);
}

/* Every host allocation fails once. */
static void body(void *context) {
    (void)context;
    kiln_matrix *A = NULL, *B = NULL;
    fake_open(&device);
    device.budget = STRUCTURE + VALUES + 64;
    STEP(kiln_matrix_csr(&A, &device, KILN_F64, ROWS, COLS, row_start, col, values));
    STEP(kiln_matrix_like(&B, A, KILN_TYPE_DEFAULT, values));
    for (int round = 0; round < 2; round++) {
        const struct ki_operand a = {A, false}, b = {B, true};
        STEP(ki_operands_hold(&device, &a, 1));
        ki_operands_release(&device, &a, 1);
        STEP(ki_operands_hold(&device, &b, 1));
        ki_operands_release(&device, &b, 1);
    }
    kiln_matrix_free(A);
    STEP(kiln_matrix_set(B, values));
    assert_holds(B, 1);
    kiln_matrix_free(B);
    ki_memory_clear(&device);
}

static void faults_lose_nothing(void **state) {
    (void)state;
    brutal_memory("sharing", 2, body, NULL);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_device, close_device)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(structure_counts_once),    TEST(structure_comes_and_goes), TEST(refused),
        TEST(moving_leaves_the_others), TEST(faults_lose_nothing),      cmocka_unit_test(on_the_cpu),
        cmocka_unit_test(on_opencl)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
