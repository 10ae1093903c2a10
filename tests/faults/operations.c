/* Every host allocation of every operation fails once: KILN_ERR_NOMEM, nothing lost, and the same call on the
 * same device and matrices then gives the result of an undisturbed run. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fake.h"
#include "faults/brutal.h"

enum { ROWS = 37, COLS = 6, K = 2, NNZ = ROWS * 2 };

/* The operands of one run, and where its result is left. */
struct operands {
    kiln_device *device;
    kiln_matrix *X, *rows_k, *cols_k, *v, *w, *q,
        *b; /* m x n; m x k; n x k; m x 1; results n x k, m x k, 1 x k */
    double result[ROWS * K];
};

struct operation {
    const char *name;
    void (*run)(struct operands *o);
    const char *only; /* format that it is for: "dense", "csr"; NULL: both */
};

static void get(double *values, const kiln_matrix *A) {
    STEP(kiln_matrix_get(values, A));
}

static void run_mmchain(struct operands *o) {
    STEP(kiln_mmchain(o->w, 1.5, o->X, o->v, o->cols_k, 0.5, o->cols_k));
    get(o->result, o->w);
}

static void run_multiply(struct operands *o) {
    STEP(kiln_multiply(o->q, 2, KILN_PLAIN, o->X, o->cols_k, 1, o->rows_k));
    get(o->result, o->q);
}

static void run_transposed(struct operands *o) {
    STEP(kiln_multiply(o->w, 2, KILN_TRANSPOSED, o->X, o->rows_k, 1, o->cols_k));
    get(o->result, o->w);
}

static void run_gram_diagonal(struct operands *o) {
    kiln_matrix *d = NULL;
    STEP(kiln_matrix_dense(&d, o->device, KILN_F64, COLS, 1, NULL));
    STEP(kiln_gram_diagonal(d, o->X, o->v));
    get(o->result, d);
    kiln_matrix_free(d);
}

static void run_gram(struct operands *o) {
    kiln_matrix *G = NULL;
    STEP(kiln_matrix_dense(&G, o->device, KILN_F64, COLS, COLS, NULL));
    STEP(kiln_gram(G, NULL, o->X, o->v, NULL));
    get(o->result, G);
    kiln_matrix_free(G);
}

static void run_elementwise(struct operands *o) {
    const double a[K] = {2, 3}, c[K] = {-1, 0.5};
    STEP(kiln_fill(o->q, 0.25));
    STEP(kiln_combine(o->q, a, o->rows_k, c, o->q));
    STEP(kiln_times(o->q, o->q, o->rows_k));
    STEP(kiln_map(o->q, KILN_MAP_ABS, o->q));
    get(o->result, o->q);
}

static void run_random(struct operands *o) {
    STEP(kiln_fill_random(o->q, KILN_NORMAL, 7, 1));
    get(o->result, o->q);
}

static void run_reductions(struct operands *o) {
    STEP(kiln_dot(o->result, o->rows_k, o->rows_k));
    STEP(kiln_norm(o->result + K, o->rows_k, KILN_NORM_2));
    STEP(kiln_norm(o->result + 2 * K, o->rows_k, KILN_NORM_1));
    STEP(kiln_norm(o->result + 3 * K, o->rows_k, KILN_NORM_MAX));
}

static void run_copy(struct operands *o) {
    kiln_matrix *copy = NULL, *narrow = NULL;
    STEP(kiln_matrix_copy(&narrow, o->device, KILN_F32, o->rows_k));
    STEP(kiln_matrix_copy(&copy, o->device, KILN_F64, narrow));
    STEP(kiln_matrix_set(o->q, o->result));
    get(o->result, copy);
    kiln_matrix_free(copy);
    kiln_matrix_free(narrow);
}

static void run_copy_csr(struct operands *o) {
    kiln_matrix *copy = NULL;
    int64_t row_start[ROWS + 1];
    int32_t col[NNZ];
    STEP(kiln_matrix_copy(&copy, o->device, KILN_TYPE_DEFAULT, o->X));
    STEP(kiln_matrix_get_csr(row_start, col, o->result, copy));
    assert_true(row_start[ROWS] == NNZ && col[1] == 1);
    kiln_matrix_free(copy);
}

static void run_linreg(struct operands *o) {
    kiln_linreg_options options = {.l2 = 0.1, .weights = o->v, .standardize = 1};
    kiln_report report = {0};
    STEP(kiln_linreg(o->w, o->b, o->X, o->rows_k, &options, &report));
    assert_true(report.converged && report.trace_count > 0);
    kiln_report_free(&report);
    get(o->result, o->w);
    get(o->result + COLS * K, o->b);
}

static void run_nothing(struct operands *o) {
    STEP(kiln_device_sync(o->device));
}

static const struct operation operations[] = {{"opening and creating", run_nothing, NULL},
                                              {"mmchain", run_mmchain, NULL},
                                              {"multiply", run_multiply, NULL},
                                              {"multiply, transposed", run_transposed, NULL},
                                              {"gram_diagonal", run_gram_diagonal, NULL},
                                              {"gram", run_gram, NULL},
                                              {"linreg", run_linreg, NULL},
                                              {"fill, combine, times, map", run_elementwise, "dense"},
                                              {"fill_random", run_random, "dense"},
                                              {"dot, norms", run_reductions, "dense"},
                                              {"copy, set", run_copy, "dense"},
                                              {"copy of CSR", run_copy_csr, "csr"}};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* -------------------------------------------------------------------------------------- one run */

struct run {
    const struct operation *operation;
    const char *device;
    bool csr, expects;
    double expected[ROWS * K];
};

/* A CSR matrix with the columns i and i+1 (mod n) in row i; the dense one has no zeros. */
static void create_X(struct operands *o, bool csr) {
    double values[ROWS * COLS];
    int64_t row_start[ROWS + 1];
    int32_t col[NNZ];
    for (int i = 0; i < ROWS * COLS; i++) values[i] = 1 + i % 7 - 0.25 * (i % 11);
    for (int i = 0; i <= ROWS; i++) row_start[i] = 2 * i;
    for (int i = 0; i < NNZ; i++) col[i] = (i / 2 + i % 2) % COLS;
    if (csr)
        STEP(kiln_matrix_csr(&o->X, o->device, KILN_F64, ROWS, COLS, row_start, col, values));
    else
        STEP(kiln_matrix_dense(&o->X, o->device, KILN_F64, ROWS, COLS, values));
}

static void create(struct operands *o, const struct run *run) {
    double values[ROWS * K], ones[ROWS];
    for (int i = 0; i < ROWS * K; i++) values[i] = sin(i);
    for (int i = 0; i < ROWS; i++) ones[i] = 1 + i % 3;
    STEP(kiln_device_open(&o->device, run->device, NULL));
    create_X(o, run->csr);
    STEP(kiln_matrix_dense(&o->rows_k, o->device, KILN_F64, ROWS, K, values));
    STEP(kiln_matrix_dense(&o->cols_k, o->device, KILN_F64, COLS, K, values));
    STEP(kiln_matrix_dense(&o->v, o->device, KILN_F64, ROWS, 1, ones));
    STEP(kiln_matrix_dense(&o->w, o->device, KILN_F64, COLS, K, NULL));
    STEP(kiln_matrix_dense(&o->q, o->device, KILN_F64, ROWS, K, NULL));
    STEP(kiln_matrix_dense(&o->b, o->device, KILN_F64, 1, K, NULL));
}

/* The CPU gives the same bits; sums by atomics on other devices may differ in the last ones. */
static void compare(struct run *run, const double *result) {
    if (!run->expects) memcpy(run->expected, result, sizeof run->expected);
    run->expects = true;
    for (int i = 0; i < ROWS * K; i++) {
        double tolerance = strcmp(run->device, "cpu") ? 1e-9 * (1 + fabs(run->expected[i])) : 0;
        if (!(fabs(result[i] - run->expected[i]) <= tolerance))
            fail_msg("%s: entry %d is %.17g, not %.17g", run->operation->name, i, result[i],
                     run->expected[i]);
    }
}

static void body(void *context) {
    struct run *run = context;
    struct operands o = {0};
    create(&o, run);
    run->operation->run(&o);
    compare(run, o.result);
    kiln_matrix *const all[] = {o.X, o.rows_k, o.cols_k, o.v, o.w, o.q, o.b};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_device_close(o.device);
}

/* Elsewhere than on the CPU each run opens the driver and loads kernels: once each must do there, and without
 * linreg, whose hundreds of allocations are those of the operations that it calls. */
static void on_device(const char *device) {
    bool on_cpu = !strcmp(device, "cpu");
    for (int i = 0; i < OPERATIONS; i++)
        for (int csr = 0; csr < 2; csr++) {
            const char *format = csr ? "csr" : "dense";
            if (operations[i].run == run_linreg && !on_cpu) continue;
            if (operations[i].only && strcmp(operations[i].only, format)) continue;
            struct run run = {.operation = &operations[i], .device = device, .csr = csr};
            char what[96];
            snprintf(what, sizeof what, "%s: %s, %s", device, operations[i].name, format);
            body(&run); /* undisturbed: the result to get again, and the kernels into the cache */
            brutal_memory(what, on_cpu ? 2 : 1, body, &run);
        }
}

static void on_the_cpu(void **state) {
    (void)state;
    on_device("cpu");
}

static void on_opencl(void **state) {
    (void)state;
    kiln_device *device = NULL;
    if (kiln_device_open(&device, "opencl", NULL) != KILN_OK) {
        print_message("    skip opencl: %s\n", kiln_last_error()->message);
        skip();
    }
    kiln_device_close(device);
    on_device("opencl");
}

/* ------------------------------------------------------------------------- calls without a device */

static void list_body(void *context) {
    (void)context;
    kiln_device_info *infos = NULL;
    int64_t count = 0;
    STEP(kiln_device_list(&infos, &count));
    assert_true(count > 0);
    kiln_free(infos);
}

static void probe_body(void *context) {
    (void)context;
    kiln_probe *rows = NULL;
    int64_t count = 0;
    STEP(kiln_probe_machine(&rows, &count));
    assert_true(count > 0);
    kiln_free(rows);
}

static void bandwidth_body(void *context) {
    (void)context;
    kiln_device *device = NULL;
    double figure = 0;
    STEP(kiln_device_open(&device, "cpu", NULL));
    STEP(kiln_device_bandwidth(&figure, device, 0));
    assert_true(figure > 0);
    kiln_device_close(device);
}

static void without_a_device(void **state) {
    (void)state;
    brutal_memory("device_list", 2, list_body, NULL);
    brutal_memory("probe_machine", 2, probe_body, NULL);
    bandwidth_body(NULL); /* measures, and keeps the figure in the profile */
    brutal_memory("bandwidth, kept", 2, bandwidth_body, NULL);
}

static int setup(void **state) {
    int result = world_make(state);
    unsetenv("KILN_KERNEL_DIR");
    return result;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, world_clear)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(on_the_cpu), TEST(without_a_device), TEST(on_opencl)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
