/* Every host allocation of every operation fails once: KILN_ERR_NOMEM, nothing lost, and the same call on the
 * same device and matrices then gives what the reference says, on the CPU with the bits of an undisturbed
 * run. The operations and their small problems are those of conformance/cases; what is no operation (copies,
 * a whole training) follows. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "core/fake.h"
#include "faults/brutal.h"
#include "kiln/half.h"

enum { ROWS = 37, COLS = 6, K = 2, NNZ = ROWS * 2 };

/* The operands of one run, and where its result is left. */
struct operands {
    kiln_device *device;
    kiln_matrix *X, *rows_k, *cols_k, *v, *w, *q,
        *b; /* m x n; m x k; n x k; m x 1; results n x k, m x k, 1 x k */
    double result[ROWS * K];
};

struct call {
    const char *name;
    void (*run)(struct operands *o);
    const char *only; /* format that it is for: "dense", "csr"; NULL: both */
};

static void get(double *values, const kiln_matrix *A) {
    STEP(kiln_matrix_get(values, A));
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

static void run_halves(struct operands *o) {
    kiln_matrix *S = NULL, *Y = NULL;
    kiln_half *A = NULL, *B = NULL;
    STEP(kiln_matrix_copy(&S, o->device, KILN_F32, o->X));
    STEP(kiln_half_copy(&A, KILN_F16, o->rows_k));
    STEP(kiln_half_copy(&B, KILN_F16, o->cols_k));
    const kiln_sample sample = {.size = sizeof sample, .kind = KILN_SAMPLE_TIMES, .S = S};
    STEP(kiln_sddmm_half(NULL, o->result, 1, &sample, A, B, 0));
    STEP(kiln_matrix_copy(&Y, o->device, KILN_F32, o->w));
    STEP(kiln_sddmm_multiply_half(Y, NULL, 1, KILN_TRANSPOSED, &sample, A, B, 0, NULL));
    kiln_matrix_free(Y);
    kiln_half_free(A);
    kiln_half_free(B);
    kiln_matrix_free(S);
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

static const struct call calls[] = {{"opening and creating", run_nothing, NULL},
                                    {"linreg", run_linreg, NULL},
                                    {"factors of half precision", run_halves, "csr"},
                                    {"copy, set", run_copy, "dense"},
                                    {"copy of CSR", run_copy_csr, "csr"}};
enum { CALLS = sizeof calls / sizeof *calls };

/* -------------------------------------------------------------------------------------- one run */

struct run {
    const struct call *call;
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
            fail_msg("%s: entry %d is %.17g, not %.17g", run->call->name, i, result[i], run->expected[i]);
    }
}

static void body(void *context) {
    struct run *run = context;
    struct operands o = {0};
    create(&o, run);
    run->call->run(&o);
    compare(run, o.result);
    kiln_matrix *const all[] = {o.X, o.rows_k, o.cols_k, o.v, o.w, o.q, o.b};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_device_close(o.device);
}

/* Elsewhere than on the CPU each run opens the driver and loads kernels: once each must do there, and without
 * linreg, whose hundreds of allocations are those of the operations that it calls. */
static void calls_on(const char *device) {
    bool on_cpu = !strcmp(device, "cpu");
    for (int i = 0; i < CALLS; i++)
        for (int csr = 0; csr < 2; csr++) {
            const char *format = csr ? "csr" : "dense";
            if (calls[i].run == run_linreg && !on_cpu) continue;
            if (calls[i].run == run_halves && strchr(device, '*')) continue; /* groups refuse it */
            if (calls[i].only && strcmp(calls[i].only, format)) continue;
            struct run run = {.call = &calls[i], .device = device, .csr = csr};
            char what[96];
            snprintf(what, sizeof what, "%s: %s, %s", device, calls[i].name, format);
            body(&run); /* undisturbed: the result to get again, and the kernels into the cache */
            brutal_memory(what, on_cpu ? 2 : 1, body, &run);
        }
}

/* ----------------------------------------------------------------------------------- the operations */

struct case_run {
    const struct operation *operation;
    const struct problem *problem;
    const char *device;
    double *first[RESULTS]; /* of the undisturbed run */
};

static bool prepared(struct work *work, const struct case_run *run) {
    kiln_status status = run->operation->prepare(work);
    if (status == KILN_OK) status = work_fetch(work);
    if (status == KILN_OK) return true;
    if (!brutal_fired() || status != KILN_ERR_NOMEM) fail_msg("prepare: %s", kiln_last_error()->message);
    work_free(work);
    brutal_relent();
    return false;
}

/* A sum that is added to starts from the same values again. */
static kiln_status reset_and_run(const struct operation *operation, struct work *work) {
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        if (A && A->matrix) CHECK_OK(kiln_matrix_set(A->matrix, A->host.values));
    }
    CHECK_OK(operation->run(work));
    return kiln_device_sync(work->device);
}

/* The CPU gives the same bits again. */
static void compare_result(struct case_run *run, int result, const struct expected *expected,
                           const double *got) {
    int64_t worst;
    const double ratio = error_ratio(&worst, expected, KILN_F64, got);
    const size_t bytes = (size_t)expected->count * sizeof *got;
    if (!(ratio <= expected->gate))
        fail_msg("%s: element %lld of result %d is %.17g", run->operation->name, (long long)worst, result,
                 got[worst]);
    if (strcmp(run->device, "cpu")) return;
    if (!run->first[result]) {
        run->first[result] = malloc(bytes + 1);
        memcpy(run->first[result], got, bytes);
    }
    if (memcmp(run->first[result], got, bytes))
        fail_msg("%s: other bits than undisturbed", run->operation->name);
}

static void compare_case(struct case_run *run, struct work *work) {
    struct expected expected[RESULTS] = {{0}};
    run->operation->expect(expected, work);
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        double *got = A ? malloc((size_t)expected[r].count * sizeof *got + 1) : work->scalars;
        if (expected[r].count > 0) {
            if (A) STEP(kiln_matrix_get(got, A->matrix));
            compare_result(run, r, &expected[r], got);
        }
        if (A) free(got);
        expected_free(&expected[r]);
    }
}

static void case_body(void *context) {
    struct case_run *run = context;
    struct work work = {.problem = run->problem, .type = KILN_F64};
    brutal_spare(true); /* the calls above open devices with failures */
    STEP(kiln_device_open(&work.device, run->device, NULL));
    brutal_spare(false);
    kiln_device *const device = work.device;
    if (!prepared(&work, run)) {
        work = (struct work){.problem = run->problem, .type = KILN_F64, .device = device};
        assert_true(prepared(&work, run));
    }
    STEP(reset_and_run(run->operation, &work));
    compare_case(run, &work);
    work_free(&work);
    kiln_device_close(device);
}

/* The case's smallest problem of that format with something to do in more than one row. */
static const struct problem *small_problem(const struct problem_list *list, kiln_format format) {
    const struct problem *best = NULL;
    for (int64_t i = 0; i < list->count; i++) {
        const struct problem *p = &list->problems[i];
        if (p->format != format || p->pattern == PATTERN_NO_ENTRIES || p->rows < 2 || p->cols < 1) continue;
        if (!best || p->rows * p->cols * p->k < best->rows * best->cols * best->k) best = p;
    }
    return best;
}

static void operation_on(const struct operation *operation, const char *device) {
    struct problem_list list = {.entries_max = 20000};
    int tried = 0;
    operation->list(&list);
    for (int format = KILN_DENSE; format <= KILN_CSR; format++) {
        struct case_run run = {.operation = operation, .device = device};
        char what[96];
        run.problem = small_problem(&list, (kiln_format)format);
        if (!run.problem) continue;
        snprintf(what, sizeof what, "%s: %s, %s", device, operation->name,
                 format == KILN_CSR ? "csr" : "dense");
        case_body(&run); /* undisturbed */
        brutal_memory(what, strcmp(device, "cpu") ? 1 : 2, case_body, &run);
        for (int r = 0; r < RESULTS; r++) free(run.first[r]);
        tried++;
    }
    free(list.problems);
    if (!tried) fail_msg("%s has no small problem", operation->name);
}

static void on_device(const char *device) {
    calls_on(device);
    for (int i = 0; operations[i]; i++) operation_on(operations[i], device);
}

static void on_the_cpu(void **state) {
    (void)state;
    on_device("cpu");
}

/* The rule of the members' parts, and what every member of a pass allocates. */
static void on_a_group(void **state) {
    (void)state;
    calls_on("cpu*3");
    for (int i = 0; operations[i]; i++) operation_on(operations[i], "cpu*3");
}

/* With the kernels that other tests have built: the undisturbed run puts what is missing into their cache,
 * and the disturbed ones take it from there. */
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
    STEP(kiln_device_list(&infos, &count, sizeof *infos));
    assert_true(count > 0);
    kiln_free(infos);
}

static void probe_body(void *context) {
    (void)context;
    kiln_probe *rows = NULL;
    int64_t count = 0;
    STEP(kiln_probe_machine(&rows, &count, sizeof *rows));
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
    /* OpenCL first, before a world has set a cache of its own. */
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_opencl), TEST(on_the_cpu), TEST(on_a_group),
                                       TEST(without_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
