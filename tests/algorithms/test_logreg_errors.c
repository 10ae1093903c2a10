/* What kiln_logreg and kiln_svm refuse, that a refused or failed call leaves W, b and the report as they
 * were, and that they survive every failing allocation. */
#include "algorithms/classifiers.h"
#include "faults/brutal.h"

enum { M = 6, N = 2 };

static kiln_device *cpu;

/* The operands of a call, all good until a case spoils one. */
struct call {
    kiln_matrix *W, *b, *X, *y, *weights;
    kiln_logreg_options options;
    double epsilon;
    bool regression;
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

static void no_X(struct call *c) {
    replace(&c->X, NULL);
}
static void no_y(struct call *c) {
    replace(&c->y, NULL);
}
static void no_W(struct call *c) {
    replace(&c->W, NULL);
}
static void no_b(struct call *c) {
    replace(&c->b, NULL);
}
static void wide_W(struct call *c) {
    replace(&c->W, dense(cpu, KILN_F64, N, 2, X_values));
}
static void wide_y(struct call *c) {
    replace(&c->y, dense(cpu, KILN_F64, M, 2, X_values));
}
static void short_weights(struct call *c) {
    replace(&c->weights, dense(cpu, KILN_F64, M - 1, 1, X_values));
}
static void one_class(struct call *c) {
    const double same[M] = {4, 4, 4, 4, 4, 4};
    assert_ok(kiln_matrix_set(c->y, same));
}
static void nan_l2(struct call *c) {
    c->options.l2 = NAN;
}
static void negative_tolerance(struct call *c) {
    c->options.tolerance = -1;
}
static void negative_iterations(struct call *c) {
    c->options.max_iterations = -1;
}
static void negative_class_weight(struct call *c) {
    c->options.class_weights = negative;
}
static void infinite_class_weight(struct call *c) {
    c->options.class_weights = infinite;
}
static void two_class_weights(struct call *c) {
    c->options.class_weights = fine;
    c->options.balanced = 1;
}
static void no_rows(struct call *c) {
    replace(&c->X, dense(cpu, KILN_F64, 0, N, X_values));
    replace(&c->y, dense(cpu, KILN_F64, 0, 1, X_values));
    replace(&c->weights, dense(cpu, KILN_F64, 0, 1, X_values));
}
static void no_columns(struct call *c) {
    replace(&c->X, dense(cpu, KILN_F64, M, 0, X_values));
}
static void nan_y(struct call *c) {
    spoil(c->y, 4, NAN);
}
static void negative_weight(struct call *c) {
    spoil(c->weights, 3, -1e-17);
}
static void zero_weights(struct call *c) {
    for (int i = 0; i < M; i++) spoil(c->weights, i, 0);
}
static void nan_X(struct call *c) {
    spoil(c->X, 2 * N + 1, NAN);
}
static void huge_X(struct call *c) {
    spoil(c->X, 0, 1e200);
}
static void nan_start(struct call *c) {
    spoil(c->W, 1, NAN);
    c->options.warm_start = 1;
}
static void infinite_start(struct call *c) {
    spoil(c->b, 0, INFINITY);
    c->options.warm_start = 1;
}
static void negative_l1(struct call *c) {
    c->options.l1 = -2;
}
static void negative_epsilon(struct call *c) {
    c->epsilon = -2;
}
static void balanced_regression(struct call *c) {
    c->regression = true;
    c->options.balanced = 1;
}

enum { BOTH, LOGREG_ONLY, SVM_ONLY };

static const struct {
    int which;
    void (*spoil)(struct call *call);
    kiln_status status;
    const char *says;
} refusals[] = {
    {BOTH, no_X, KILN_ERR_ARGUMENT, "X is NULL"},
    {BOTH, no_y, KILN_ERR_ARGUMENT, "y is NULL"},
    {BOTH, no_W, KILN_ERR_ARGUMENT, "W is NULL"},
    {BOTH, no_b, KILN_ERR_ARGUMENT, "b is NULL"},
    {BOTH, wide_W, KILN_ERR_ARGUMENT, "W is 2 x 2, but must be 2 x 1"},
    {BOTH, wide_y, KILN_ERR_ARGUMENT, "y is 6 x 2, but must be 6 x 1"},
    {BOTH, short_weights, KILN_ERR_ARGUMENT, "weights is 5 x 1, but must be 6 x 1"},
    {BOTH, one_class, KILN_ERR_DATA, "every row has the label 4"},
    {BOTH, nan_l2, KILN_ERR_ARGUMENT, "l2 is nan"},
    {BOTH, negative_tolerance, KILN_ERR_ARGUMENT, "tolerance is -1"},
    {BOTH, negative_iterations, KILN_ERR_ARGUMENT, "max_iterations is -1"},
    {BOTH, negative_class_weight, KILN_ERR_ARGUMENT, "class weight 1 is -1"},
    {BOTH, infinite_class_weight, KILN_ERR_ARGUMENT, "class weight 0 is inf"},
    {BOTH, two_class_weights, KILN_ERR_ARGUMENT, "`balanced` asks for others"},
    {BOTH, no_rows, KILN_ERR_DATA, "X has no rows"},
    {BOTH, no_columns, KILN_ERR_DATA, "X has no columns"},
    {BOTH, nan_y, KILN_ERR_DATA, "row 4, column 0 of y is nan"},
    {BOTH, negative_weight, KILN_ERR_DATA, "row 3, column 0 of weights is -1e-17"},
    {BOTH, zero_weights, KILN_ERR_DATA, "weights are all zero"},
    {BOTH, nan_X, KILN_ERR_DATA, "column 1 of X"},
    {BOTH, huge_X, KILN_ERR_DATA, "column 0 of X"},
    {BOTH, nan_start, KILN_ERR_DATA, "row 1, column 0 of W is nan"},
    {BOTH, infinite_start, KILN_ERR_DATA, "row 0, column 0 of b is inf"},
    {LOGREG_ONLY, negative_l1, KILN_ERR_ARGUMENT, "l1 is -2"},
    {SVM_ONLY, negative_epsilon, KILN_ERR_ARGUMENT, "epsilon is -2"},
    {SVM_ONLY, balanced_regression, KILN_ERR_ARGUMENT, "no classes to weigh"},
};

static kiln_status ask(const struct call *c, bool svm, kiln_report *report) {
    const kiln_logreg_options *o = &c->options;
    const kiln_svm_options options = {.l2 = o->l2,
                                      .epsilon = c->epsilon,
                                      .regression = c->regression,
                                      .warm_start = o->warm_start,
                                      .tolerance = o->tolerance,
                                      .max_iterations = o->max_iterations,
                                      .weights = o->weights,
                                      .class_weights = o->class_weights,
                                      .balanced = o->balanced};
    return svm ? kiln_svm(c->W, c->b, c->X, c->y, &options, report)
               : kiln_logreg(c->W, c->b, c->X, c->y, o, report);
}

static void assert_unchanged(const kiln_matrix *A, const double *before) {
    double *after = A ? values_of(A) : NULL;
    if (A) assert_memory_equal(before, after, (size_t)kiln_matrix_nnz(A) * sizeof *after);
    free(after);
}

static void refuses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        for (int svm = 0; svm < 2; svm++) {
            if (refusals[i].which == (svm ? LOGREG_ONLY : SVM_ONLY)) continue;
            struct call c;
            call_new(&c);
            refusals[i].spoil(&c);
            c.options.weights = c.weights;
            kiln_report report, before;
            memset(&report, 0x5a, sizeof report);
            report.size = sizeof report;
            before = report;
            double *W = c.W ? values_of(c.W) : NULL, *b = c.b ? values_of(c.b) : NULL;
            const kiln_status status = ask(&c, svm, &report);
            if (status != refusals[i].status || !strstr(kiln_last_error()->message, refusals[i].says))
                fail_msg("%s expected: %s, but got %s: %s", kiln_status_name(refusals[i].status),
                         refusals[i].says, kiln_status_name(status), kiln_last_error()->message);
            assert_memory_equal(&report, &before, sizeof report);
            assert_unchanged(c.W, W);
            assert_unchanged(c.b, b);
            free(W);
            free(b);
            call_free(&c);
        }
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
