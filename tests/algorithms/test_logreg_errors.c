/* This file says what kiln_logreg and kiln_svm refuse, that a refused or failed call leaves W, b and the
 * report as they were, and that they survive every failing allocation. */
#include "algorithms/classifiers.h"
#include "algorithms/refusals.h"
#include "faults/brutal.h"

enum { M = 6, N = 2 };

static kiln_device *cpu;

/* The operands of a call, all good until a case spoils one. */
struct call {
    kiln_matrix *W, *b, *X, *y, *weights;
    kiln_logreg_options options;
    double epsilon;
    int regression;
};

static const double X_values[M * N] = {1, 2, 3, 1, 0, 4, 2, 2, 5, 1, 3, 7}, y_values[M] = {1, 0, 1, 0, 0, 1};
static const double three[] = {1, 1, 1}, negative[] = {1, -1}, infinite[] = {INFINITY, 1}, fine[] = {1, 2};

static void call_new(struct call *c) {
    const double ones[M] = {1, 1, 1, 1, 1, 1}, W[N] = {5, 6}, b[1] = {7};
    *c = (struct call){.W = dense(cpu, KILN_F64, N, 1, W),
                       .b = dense(cpu, KILN_F64, 1, 1, b),
                       .X = dense(cpu, KILN_F64, M, N, X_values),
                       .y = dense(cpu, KILN_F64, M, 1, y_values),
                       .weights = dense(cpu, KILN_F64, M, 1, ones)};
}

static void call_free(struct call *c) {
    kiln_matrix *const all[] = {c->W, c->b, c->X, c->y, c->weights};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
}

static const struct refusal refusals[] = {
    {KILN_ERR_ARGUMENT, "X is NULL", {IS_NULL(X)}},
    {KILN_ERR_ARGUMENT, "y is NULL", {IS_NULL(y)}},
    {KILN_ERR_ARGUMENT, "W is NULL", {IS_NULL(W)}},
    {KILN_ERR_ARGUMENT, "b is NULL", {IS_NULL(b)}},
    {KILN_ERR_ARGUMENT, "W is 2 x 2, but must be 2 x 1", {IS(W, N, 2)}},
    {KILN_ERR_ARGUMENT, "y is 6 x 2, but must be 6 x 1", {IS(y, M, 2)}},
    {KILN_ERR_ARGUMENT, "weights is 5 x 1, but must be 6 x 1", {IS(weights, M - 1, 1)}},
    {KILN_ERR_DATA, "every row has the label 4", {ALL(y, 4)}},
    {KILN_ERR_ARGUMENT, "l2 is nan", {REAL_FIELD(options.l2, NAN)}},
    {KILN_ERR_ARGUMENT, "tolerance is -1", {REAL_FIELD(options.tolerance, -1)}},
    {KILN_ERR_ARGUMENT, "max_iterations is -1", {FIELD(options.max_iterations, -1)}},
    {KILN_ERR_ARGUMENT, "class weight 1 is -1", {POINTER_FIELD(options.class_weights, negative)}},
    {KILN_ERR_ARGUMENT, "class weight 0 is inf", {POINTER_FIELD(options.class_weights, infinite)}},
    {KILN_ERR_ARGUMENT,
     "`balanced` asks for others",
     {POINTER_FIELD(options.class_weights, fine), FIELD(options.balanced, 1)}},
    {KILN_ERR_DATA, "X has no rows", {IS(X, 0, N), IS(y, 0, 1), IS(weights, 0, 1)}},
    {KILN_ERR_DATA, "X has no columns", {IS(X, M, 0)}},
    {KILN_ERR_DATA, "row 4, column 0 of y is nan", {AT(y, 4, NAN)}},
    {KILN_ERR_DATA, "row 3, column 0 of weights is -1e-17", {AT(weights, 3, -1e-17)}},
    {KILN_ERR_DATA, "weights are all zero", {ALL(weights, 0)}},
    {KILN_ERR_DATA, "column 1 of X", {AT(X, 2 * N + 1, NAN)}},
    {KILN_ERR_DATA, "column 0 of X", {AT(X, 0, 1e200)}},
    {KILN_ERR_DATA, "row 1, column 0 of W is nan", {AT(W, 1, NAN), FIELD(options.warm_start, 1)}},
    {KILN_ERR_DATA, "row 0, column 0 of b is inf", {AT(b, 0, INFINITY), FIELD(options.warm_start, 1)}},
};
static const struct refusal of_logreg[] = {{KILN_ERR_ARGUMENT, "l1 is -2", {REAL_FIELD(options.l1, -2)}}};
static const struct refusal of_svm[] = {
    {KILN_ERR_ARGUMENT, "epsilon is -2", {REAL_FIELD(epsilon, -2)}},
    {KILN_ERR_ARGUMENT, "no classes to weigh", {FIELD(regression, 1), FIELD(options.balanced, 1)}},
};

static kiln_status ask_logreg(const void *context, kiln_report *report) {
    const struct call *c = context;
    kiln_logreg_options options = c->options;
    options.weights = c->weights;
    return kiln_logreg(c->W, c->b, c->X, c->y, &options, report);
}

static kiln_status ask_svm(const void *context, kiln_report *report) {
    const struct call *c = context;
    const kiln_logreg_options *o = &c->options;
    const kiln_svm_options options = {.l2 = o->l2,
                                      .epsilon = c->epsilon,
                                      .regression = c->regression,
                                      .warm_start = o->warm_start,
                                      .tolerance = o->tolerance,
                                      .max_iterations = o->max_iterations,
                                      .weights = c->weights,
                                      .class_weights = o->class_weights,
                                      .balanced = o->balanced};
    return kiln_svm(c->W, c->b, c->X, c->y, &options, report);
}

static void refuse(const struct refusal *refusals_of, size_t count,
                   kiln_status (*ask)(const void *call, kiln_report *report)) {
    for (size_t i = 0; i < count; i++) {
        struct call c;
        call_new(&c);
        spoil_call(&c, &refusals_of[i], cpu);
        assert_refused(&refusals_of[i], ask, &c, (kiln_matrix *[]){c.W, c.b}, 2);
        call_free(&c);
    }
}

static void refuses(void **state) {
    (void)state;
    refuse(refusals, sizeof refusals / sizeof *refusals, ask_logreg);
    refuse(refusals, sizeof refusals / sizeof *refusals, ask_svm);
    refuse(of_logreg, sizeof of_logreg / sizeof *of_logreg, ask_logreg);
    refuse(of_svm, sizeof of_svm / sizeof *of_svm, ask_svm);
}

/* 1,001 whole numbers are labels, as many fractions are quantities, and 65,537 whole numbers are too. */
static void too_many_classes(void **state) {
    (void)state;
    enum { MANY = 65537, FEW = 1001 };
    double *y = malloc(MANY * sizeof *y), *values;
    int64_t count;
    assert_non_null(y);
    for (int i = 0; i < MANY; i++) y[i] = i;
    kiln_matrix *A = dense(cpu, KILN_F64, FEW, 1, y), *W = dense(cpu, KILN_F64, 1, FEW, y);
    kiln_matrix *b = dense(cpu, KILN_F64, 1, FEW, y), *many = dense(cpu, KILN_F64, MANY, 1, y);
    const kiln_logreg_options one_step = {.max_iterations = 1};
    assert_ok(kiln_logreg(W, b, A, A, &one_step, NULL));
    assert_int_equal(kiln_classes(&values, &count, many, 0), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "more than 65536 different values"));
    y[1] = 0.5;
    kiln_matrix *fractions = dense(cpu, KILN_F64, FEW, 1, y);
    assert_int_equal(kiln_logreg(W, b, A, fractions, NULL, NULL), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "more than 64 different values"));
    assert_int_equal(kiln_svm(W, b, A, fractions, NULL, NULL), KILN_ERR_DATA);
    assert_ok(kiln_classes(&values, &count, fractions, FEW));
    assert_int_equal(count, FEW);
    kiln_free(values);
    kiln_matrix *const all[] = {A, W, b, many, fractions};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    free(y);
}

/* b may be missing without an intercept, options and report always; a b that is given becomes zero. */
static void optional_operands(void **state) {
    (void)state;
    for (int svm = 0; svm < 2; svm++) {
        struct call c;
        call_new(&c);
        assert_ok(svm ? kiln_svm(c.W, c.b, c.X, c.y, NULL, NULL)
                      : kiln_logreg(c.W, c.b, c.X, c.y, NULL, NULL));
        const kiln_logreg_options logreg = {.no_intercept = 1};
        const kiln_svm_options machine = {.no_intercept = 1};
        assert_ok(svm ? kiln_svm(c.W, NULL, c.X, c.y, &machine, NULL)
                      : kiln_logreg(c.W, NULL, c.X, c.y, &logreg, NULL));
        assert_ok(svm ? kiln_svm(c.W, c.b, c.X, c.y, &machine, NULL)
                      : kiln_logreg(c.W, c.b, c.X, c.y, &logreg, NULL));
        double *b = values_of(c.b);
        assert_true(b[0] == 0);
        free(b);
        call_free(&c);
    }
}

/* Each of: softmax with class weights, l1, one against the rest from a warm start. */
static void body(int which) {
    const double y[M] = {0, 1, 2, 0, 1, 2}, weights[M] = {1, 2, 1, 1, 3, 1};
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *labels = NULL, *W = NULL, *b = NULL, *s = NULL;
    kiln_report report = {0};
    STEP(kiln_device_open(&device, "cpu", NULL));
    STEP(kiln_matrix_dense(&X, device, KILN_F64, M, N, X_values));
    STEP(kiln_matrix_dense(&labels, device, KILN_F64, M, 1, y));
    STEP(kiln_matrix_dense(&W, device, KILN_F64, N, 3, NULL));
    STEP(kiln_matrix_dense(&b, device, KILN_F64, 1, 3, NULL));
    STEP(kiln_matrix_dense(&s, device, KILN_F64, M, 1, weights));
    const kiln_logreg_options logreg = {
        .weights = s, .class_weights = three, .l1 = which == 1 ? 0.1 : 0, .l2 = 1};
    const kiln_svm_options svm = {.weights = s, .warm_start = 1, .standardize = 1};
    if (which < 2)
        STEP(kiln_logreg(W, b, X, labels, &logreg, &report));
    else
        STEP(kiln_svm(W, b, X, labels, &svm, &report));
    assert_int_equal(report.converged, 1);
    kiln_report_free(&report);
    kiln_matrix *const all[] = {X, labels, W, b, s};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    kiln_device_close(device);
}

/* Two classes by the dual, which judges itself, or, standardized, leaves that to the engine. */
static void dual_body(int which) {
    const int64_t start[] = {0, 2, 3, 4};
    const int32_t col[] = {0, 3, 1, 3};
    const double value[] = {1, 2, -1, 0.5}, y[] = {0, 1, 0};
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *labels = NULL, *W = NULL;
    kiln_report report = {0};
    STEP(kiln_device_open(&device, "cpu", &(kiln_device_options){.threads = 2}));
    STEP(kiln_matrix_csr(&X, device, KILN_F64, 3, 4, start, col, value));
    STEP(kiln_matrix_dense(&labels, device, KILN_F64, 3, 1, y));
    STEP(kiln_matrix_dense(&W, device, KILN_F64, 4, 1, NULL));
    const kiln_logreg_options logreg = {
        .l2 = 1, .no_intercept = 1, .standardize = which / 2, .solver = KILN_CLASSIFIER_DUAL};
    const kiln_svm_options svm = {
        .l2 = 1, .no_intercept = 1, .standardize = which / 2, .solver = KILN_CLASSIFIER_DUAL};
    if (which % 2 == 0)
        STEP(kiln_logreg(W, NULL, X, labels, &logreg, &report));
    else
        STEP(kiln_svm(W, NULL, X, labels, &svm, &report));
    assert_int_equal(report.converged, 1);
    kiln_report_free(&report);
    kiln_matrix *const all[] = {X, labels, W};
    for (int i = 0; i < 3; i++) kiln_matrix_free(all[i]);
    kiln_device_close(device);
}

static void dual_survives_without_memory(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++)
        for (int persistent = 0; persistent < 2; persistent++)
            for (long n = 0, fired = 1; fired; n++) {
                brutal_start(n, persistent);
                dual_body(which);
                fired = brutal_stop();
                assert_true(fired || n > 15);
            }
}

static void survives_without_memory(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++)
        for (int persistent = 0; persistent < 2; persistent++)
            for (long n = 0, fired = 1; fired; n++) {
                brutal_start(n, persistent);
                body(which);
                fired = brutal_stop();
                assert_true(fired || n > 50);
            }
}

static int open_cpu(void **state) {
    (void)state;
    return kiln_device_open(&cpu, "cpu", NULL) != KILN_OK;
}

static int close_cpu(void **state) {
    (void)state;
    kiln_device_close(cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(too_many_classes),
        cmocka_unit_test(optional_operands),
        cmocka_unit_test(survives_without_memory),
        cmocka_unit_test(dual_survives_without_memory),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
