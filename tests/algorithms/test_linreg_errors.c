/* kiln_linreg refuses these, and a refused or failed call leaves W, b and the report as they were. */
#include "algorithms/refusals.h"
#include "faults/brutal.h"

enum { M = 6, N = 2, K = 2 };

static kiln_device *cpu, *other;

/* The operands of a call, all good until a case spoils one. */
struct call {
    kiln_matrix *W, *b, *X, *y, *weights;
    kiln_linreg_options options;
};

static kiln_matrix *filled(kiln_device *device, kiln_type type, int64_t rows, int64_t cols, double first) {
    double values[64];
    for (int64_t i = 0; i < rows * cols; i++) values[i] = first + (double)(i * i % 11);
    return dense(device, type, rows, cols, values);
}

static void call_new(struct call *call) {
    *call = (struct call){.W = filled(cpu, KILN_F64, N, K, 100),
                          .b = filled(cpu, KILN_F64, 1, K, 200),
                          .X = filled(cpu, KILN_F64, M, N, 0),
                          .y = filled(cpu, KILN_F64, M, K, 3),
                          .weights = filled(cpu, KILN_F64, M, 1, 1)};
}

static void call_free(struct call *call) {
    kiln_matrix *const all[] = {call->W, call->b, call->X, call->y, call->weights};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
}

static kiln_status ask(const void *context, kiln_report *report) {
    const struct call *c = context;
    kiln_linreg_options options = c->options;
    options.weights = c->weights;
    return kiln_linreg(c->W, c->b, c->X, c->y, &options, report);
}

static const struct refusal refusals[] = {
    {KILN_ERR_ARGUMENT, "X is NULL", {IS_NULL(X)}},
    {KILN_ERR_ARGUMENT, "y is NULL", {IS_NULL(y)}},
    {KILN_ERR_ARGUMENT, "W is NULL", {IS_NULL(W)}},
    {KILN_ERR_ARGUMENT, "b is NULL", {IS_NULL(b)}},
    {KILN_ERR_ARGUMENT, "W is 3 x 2, but must be 2 x 2", {IS(W, N + 1, K)}},
    {KILN_ERR_ARGUMENT, "b is 2 x 1, but must be 1 x 2", {IS(b, K, 1)}},
    {KILN_ERR_ARGUMENT, "y is 5 x 2, but must be 6 x 2", {IS(y, M - 1, K)}},
    {KILN_ERR_ARGUMENT, "y has no columns", {IS(y, M, 0)}},
    {KILN_ERR_ARGUMENT, "y and X differ in type", {IS_F32(y, M, K)}},
    {KILN_ERR_ARGUMENT, "weights is 6 x 2, but must be 6 x 1", {IS(weights, M, K)}},
    {KILN_ERR_ARGUMENT, "y is sparse", {IS_SPARSE(y, M, K)}},
    {KILN_ERR_ARGUMENT, "l2 is -1e-300", {REAL_FIELD(options.l2, -1e-300)}},
    {KILN_ERR_ARGUMENT, "l2 is nan", {REAL_FIELD(options.l2, NAN)}},
    {KILN_ERR_ARGUMENT, "l2 is inf", {REAL_FIELD(options.l2, INFINITY)}},
    {KILN_ERR_ARGUMENT, "tolerance is -1", {REAL_FIELD(options.tolerance, -1)}},
    {KILN_ERR_ARGUMENT, "tolerance is nan", {REAL_FIELD(options.tolerance, NAN)}},
    {KILN_ERR_ARGUMENT, "max_iterations is -1", {FIELD(options.max_iterations, -1)}},
    {KILN_ERR_DATA, "X has no rows", {IS(X, 0, N), IS(y, 0, K), IS(weights, 0, 1)}},
    {KILN_ERR_DATA, "X has no columns", {IS(X, M, 0), IS(W, 0, K)}},
    {KILN_ERR_DATA, "row 4, column 1 of y is nan", {AT(y, 4 * K + 1, NAN)}},
    {KILN_ERR_DATA, "row 5, column 1 of y is -inf", {AT(y, M *K - 1, -INFINITY)}},
    {KILN_ERR_DATA, "row 3, column 0 of weights is -1e-17", {AT(weights, 3, -1e-17)}},
    {KILN_ERR_DATA, "row 0, column 0 of weights is nan", {AT(weights, 0, NAN)}},
    {KILN_ERR_DATA, "row 5, column 0 of weights is inf", {AT(weights, 5, INFINITY)}},
    {KILN_ERR_DATA, "weights are all zero", {ALL(weights, 0)}},
    {KILN_ERR_DATA, "column 1 of X", {AT(X, 2 * N + 1, NAN)}},
    {KILN_ERR_DATA, "column 0 of X", {AT(X, 0, 1e200)}},
    {KILN_ERR_DATA, "row 0, column 1 of W is nan", {AT(W, 1, NAN), FIELD(options.warm_start, 1)}},
};

static void refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct call c;
        call_new(&c);
        spoil_call(&c, &refusals[i], cpu);
        assert_refused(&refusals[i], ask, &c, (kiln_matrix *[]){c.W, c.b}, 2);
        call_free(&c);
    }
}

static void refuses_another_device(void **state) {
    (void)state;
    static const struct refusal refusal = {
        KILN_ERR_ARGUMENT, "y and X lie on different devices", {{.what = NOTHING}}};
    struct call c;
    call_new(&c);
    replace(&c.y, filled(other, KILN_F64, M, K, 0));
    assert_refused(&refusal, ask, &c, (kiln_matrix *[]){c.W, c.b}, 2);
    call_free(&c);
}

/* b may be missing without an intercept, options and report always; a b that is given becomes zeros. */
static void optional_operands(void **state) {
    (void)state;
    struct call c;
    call_new(&c);
    assert_ok(kiln_linreg(c.W, c.b, c.X, c.y, NULL, NULL));
    const kiln_linreg_options options = {.no_intercept = 1};
    assert_ok(kiln_linreg(c.W, NULL, c.X, c.y, &options, NULL));
    assert_ok(kiln_linreg(c.W, c.b, c.X, c.y, &options, NULL));
    double *b = values_of(c.b);
    assert_true(b[0] == 0 && b[1] == 0);
    free(b);
    call_free(&c);
}

/* With every allocation failing in turn: ERR_NOMEM, nothing leaked, and the call works when repeated. 65
 * targets and weights take every path. */
static void body(void) {
    static double X[12 * 2], y[12 * 65], weights[12];
    for (int i = 0; i < 24; i += 2) X[i] = i * i % 7;
    for (int i = 1; i < 24; i += 2) X[i] = 1e9; /* constant: probed */
    for (int i = 0; i < 12 * 65; i++) y[i] = i * 5 % 13;
    for (int i = 0; i < 12; i++) weights[i] = 1 + i % 3;
    kiln_device *device = NULL;
    kiln_matrix *A = NULL, *Y = NULL, *W = NULL, *b = NULL, *s = NULL;
    kiln_report report = {0};
    STEP(kiln_device_open(&device, "cpu", NULL));
    STEP(kiln_matrix_dense(&A, device, KILN_F64, 12, 2, X));
    STEP(kiln_matrix_dense(&Y, device, KILN_F64, 12, 65, y));
    STEP(kiln_matrix_dense(&W, device, KILN_F64, 2, 65, NULL));
    STEP(kiln_matrix_dense(&b, device, KILN_F64, 1, 65, NULL));
    STEP(kiln_matrix_dense(&s, device, KILN_F64, 12, 1, weights));
    const kiln_linreg_options options = {.weights = s, .l2 = 1, .standardize = 1};
    STEP(kiln_linreg(W, b, A, Y, &options, &report));
    assert_int_equal(report.converged, 1);
    kiln_report_free(&report);
    kiln_matrix *const all[] = {A, Y, W, b, s};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    kiln_device_close(device);
}

static void survives_without_memory(void **state) {
    (void)state;
    for (int persistent = 0; persistent < 2; persistent++)
        for (long n = 0, fired = 1; fired; n++) {
            brutal_start(n, persistent);
            body();
            fired = brutal_stop();
            assert_true(fired || n > 50);
        }
}

static void names_and_version(void **state) {
    (void)state;
    assert_string_equal(kiln_stop_name(KILN_STOP_NONE), "none");
    assert_string_equal(kiln_stop_name(KILN_STOP_TOLERANCE), "tolerance");
    assert_string_equal(kiln_stop_name(KILN_STOP_ITERATIONS), "max_iterations");
    assert_string_equal(kiln_stop_name(KILN_STOP_STALLED), "stalled");
    assert_string_equal(kiln_stop_name(KILN_STOP_CANCELLED), "cancelled");
    assert_string_equal(kiln_stop_name(KILN_STOP_DIVERGED), "diverged");
    assert_string_equal(kiln_stop_name((kiln_stop)99), "unknown");
    assert_string_equal(kiln_stop_name((kiln_stop)-1), "unknown");
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", KILN_VERSION_MAJOR, KILN_VERSION_MINOR,
             KILN_VERSION_PATCH);
    assert_string_equal(kiln_version(), expected);
    kiln_report_free(NULL);
}

static int open_cpus(void **state) {
    (void)state;
    return kiln_device_open(&cpu, "cpu", NULL) != KILN_OK || kiln_device_open(&other, "cpu", NULL) != KILN_OK;
}

static int close_cpus(void **state) {
    (void)state;
    kiln_device_close(cpu);
    kiln_device_close(other);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),           cmocka_unit_test(refuses_another_device),
        cmocka_unit_test(optional_operands), cmocka_unit_test(survives_without_memory),
        cmocka_unit_test(names_and_version),
    };
    return cmocka_run_group_tests(tests, open_cpus, close_cpus);
}
