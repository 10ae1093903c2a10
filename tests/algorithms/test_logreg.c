/* kiln_logreg with every option against the referee, dense and CSR, f32 and f64, on the CPU and on OpenCL;
 * and what different ways of saying the same must agree on. */
#include "algorithms/classifiers.h"

static const double class_weights[] = {0.5, 2, 1};

static const struct example examples[] = {
    {"two classes", false, 80, 6, 1, false, {.classes = 2, .l2 = 1}},
    {"two classes, no intercept", false, 80, 6, 1, false, {.classes = 2, .l2 = 1, .no_intercept = true}},
    {"two classes, no penalty", false, 300, 4, 1, false, {.classes = 2}},
    {"two classes, weights, standardized",
     true,
     120,
     7,
     1,
     true,
     {.classes = 2, .l2 = 3, .standardize = true}},
    {"two classes, class weights",
     false,
     90,
     5,
     1,
     true,
     {.classes = 2, .l2 = 1, .class_weights = class_weights}},
    {"two classes, balanced", false, 90, 5, 1, true, {.classes = 2, .l2 = 1, .balanced = true}},
    {"sparse", false, 300, 40, 0.2, false, {.classes = 2, .l2 = 0.5}},
    {"more columns than rows", false, 20, 60, 1, false, {.classes = 2, .l2 = 0.5}},
    {"one column", false, 60, 1, 1, false, {.classes = 2, .l2 = 1}},
    {"two rows", false, 2, 3, 1, false, {.classes = 2, .l2 = 1}},
    {"three classes", true, 150, 7, 1, true, {.classes = 3, .l2 = 1}},
    {"three classes, class weights",
     false,
     90,
     5,
     0.5,
     false,
     {.classes = 3, .l2 = 1, .class_weights = class_weights}},
    {"three classes, standardized, no intercept",
     false,
     90,
     5,
     1,
     false,
     {.classes = 3, .l2 = 2, .standardize = true, .no_intercept = true}},
    {"ten classes, sparse", false, 300, 20, 0.3, false, {.classes = 10, .l2 = 0.3}},
    {"100 classes", true, 300, 7, 1, true, {.classes = 100, .l2 = 1}},
    {"l1", true, 200, 12, 1, false, {.classes = 2, .l1 = 6}},
    {"l1 of everything", false, 80, 6, 1, false, {.classes = 2, .l1 = 1e4}},
    {"elastic net, weights, standardized",
     false,
     200,
     12,
     1,
     true,
     {.classes = 2, .l1 = 4, .l2 = 2, .standardize = true}},
    {"l1, wide and sparse", false, 120, 900, 0.03, true, {.classes = 2, .l1 = 0.4}},
    {"elastic net, wide and sparse, standardized, no intercept",
     true,
     120,
     900,
     0.03,
     false,
     {.classes = 2, .l1 = 0.3, .l2 = 0.1, .standardize = true, .no_intercept = true}},
    {"l1, three classes", false, 200, 8, 0.5, false, {.classes = 3, .l1 = 3, .l2 = 1}},
};

static void agrees_with_the_referee(void **state) {
    (void)state;
    check_examples(examples, sizeof examples / sizeof *examples);
}

static struct run plain_run(void) {
    return (struct run){devices[0], KILN_F64, KILN_DENSE, NULL};
}

static void assert_same(struct solution *a, struct solution *b, double bound) {
    const double off = difference(a, b);
    if (!(off <= bound)) fail_msg("coefficients differ by %g", off);
    solution_free(b);
}

/* A row of weight 2 is two rows, a class weight is the weight of its rows, and a row of weight 0 is none. */
static void weights_are_repetitions(void **state) {
    (void)state;
    const struct run run = plain_run();
    struct problem p = labelled(60, 4, 3, 1, false, 3), twice = labelled(60, 4, 3, 1, false, 3);
    struct question q = {.classes = 3, .l2 = 1, .tolerance = 1e-11};
    kiln_report report = {0};
    p.weights = new_doubles(60);
    free(twice.X);
    free(twice.y);
    twice.X = new_doubles(180 * 4);
    twice.y = new_doubles(180);
    twice.m = 0;
    for (int i = 0; i < 60; i++) {
        p.weights[i] = i % 3;
        for (int copy = 0; copy < i % 3; copy++) {
            memcpy(twice.X + 4 * twice.m, p.X + 4 * i, 4 * sizeof *p.X);
            twice.y[twice.m++] = p.y[i];
        }
    }
    struct solution s = answer(&report, &run, &p, &q);
    kiln_report_free(&report);
    struct solution t = answer(&report, &run, &twice, &q);
    kiln_report_free(&report);
    assert_same(&s, &t, 1e-9);
    const double per_class[] = {1, 2, 3};
    for (int i = 0; i < 60; i++) p.weights[i] = per_class[(int)(p.y[i] + 5) / 3];
    t = answer(&report, &run, &p, &q);
    kiln_report_free(&report);
    solution_free(&s);
    free(p.weights);
    p.weights = NULL;
    q.class_weights = per_class;
    s = answer(&report, &run, &p, &q);
    kiln_report_free(&report);
    assert_same(&s, &t, 1e-9);
    solution_free(&s);
    problem_free(&p);
    problem_free(&twice);
}

/* Scaling columns by hand is what standardize does without touching X: the coefficients of columns scaled to
 * unit variance are sigma_j times those of X, for l1 as for l2. */
static void standardizing_is_scaling(void **state) {
    (void)state;
    const struct run run = plain_run();
    for (int l1 = 0; l1 < 2; l1++) {
        struct problem p = labelled(90, 4, 2, 1, false, 8);
        struct question q = {.classes = 2, .l2 = 2, .l1 = l1 * 3, .standardize = true, .tolerance = 1e-11};
        double sigma[4];
        kiln_report report = {0};
        for (int i = 0; i < 90; i++) p.X[i * 4 + 1] *= 1000;
        struct solution s = answer(&report, &run, &p, &q);
        kiln_report_free(&report);
        for (int j = 0; j < 4; j++) sigma[j] = (double)sqrtl(column_variance(&p, j));
        for (int e = 0; e < 360; e++) p.X[e] /= sigma[e % 4];
        for (int j = 0; j < 4; j++) s.W[j] *= sigma[j];
        q.standardize = false;
        struct solution t = answer(&report, &run, &p, &q);
        kiln_report_free(&report);
        assert_same(&s, &t, 1e-8);
        solution_free(&s);
        problem_free(&p);
    }
}

static void warm_start_goes_on(void **state) {
    (void)state;
    struct run run = plain_run();
    struct problem p = labelled(200, 10, 4, 1, true, 4);
    struct question q = {.classes = 4, .l2 = 1};
    kiln_report report = {0};
    struct solution first = answer(&report, &run, &p, &q);
    assert_true(report.iterations > 2);
    const double objective = report.objective;
    kiln_report_free(&report);
    run.start = &first;
    struct solution again = answer(&report, &run, &p, &q);
    assert_true(report.converged && report.iterations == 0);
    assert_true(fabs(report.objective - objective) <= 1e-13 * objective);
    kiln_report_free(&report);
    assert_same(&first, &again, 1e-13);
    q.l2 = 1.01; /* a problem nearby starts near its solution */
    again = answer(&report, &run, &p, &q);
    assert_true(report.converged && report.trace[0].residual < 1e-2);
    kiln_report_free(&report);
    solution_free(&again);
    q.l1 = 2;
    again = answer(&report, &run, &p, &q);
    const double direct = report.objective;
    assert_true(report.converged);
    assert_true(fabs(report.trace[0].objective - examine(&p, &q, first.W, first.b).objective) <=
                1e-10 * direct);
    kiln_report_free(&report);
    solution_free(&again);
    solution_free(&first);
    problem_free(&p);
}

/* Columns that are nearly the same, and a weak penalty: what first-order methods take thousands of steps
 * for. */
static void weak_l1_of_like_columns(void **state) {
    (void)state;
    const struct run run = plain_run();
    struct problem p = labelled(300, 30, 2, 1, false, 21);
    for (int e = 0; e < 300 * 30; e++)
        if (e % 30 > 0) p.X[e] = p.X[e - e % 30] + 0.02 * p.X[e];
    for (int i = 0; i < 3; i++) {
        const struct question q = {
            .classes = 2, .l1 = (const double[]){0.01, 0.1, 1}[i], .l2 = 1e-4 * i, .tolerance = 1e-9};
        kiln_report report = {0};
        struct solution s = answer(&report, &run, &p, &q);
        if (report.iterations > 40)
            fail_msg("%lld steps, %lld passes", (long long)report.iterations, (long long)report.passes);
        kiln_report_free(&report);
        solution_free(&s);
        check_answer("like columns", &run, &p, &q);
    }
    problem_free(&p);
}

/* With so many columns the l1 model goes by columns and its faces by conjugate gradient, in one part and in
 * several: it has the optimum, and the same bits with any number of threads. */
static void l1_on_faces(void **state) {
    (void)state;
    struct problem p = labelled(200, 1000, 2, 0.3, false, 22);
    for (int i = 0; i < 4; i++) {
        const struct question q = {
            .classes = 2, .l1 = i < 2 ? 0.02 : 1, .no_intercept = i % 2 > 0, .tolerance = 1e-9};
        struct solution first = {0};
        for (int threads = 1; threads < 8; threads += 2) {
            const kiln_device_options options = {.threads = threads, .deterministic = 1};
            struct run run = {.type = KILN_F64, .format = KILN_CSR};
            kiln_report report = {0};
            assert_ok(kiln_device_open(&run.device, "cpu", &options));
            struct solution s = answer(&report, &run, &p, &q);
            if (threads == 1) check_answer("faces", &run, &p, &q);
            kiln_report_free(&report);
            kiln_device_close(run.device);
            if (threads == 1)
                first = s;
            else
                assert_same(&first, &s, 0);
        }
        solution_free(&first);
    }
    problem_free(&p);
}

/* Arbitrary labels, in ascending order; -0 is 0. */
static void classes_are_the_distinct_values(void **state) {
    (void)state;
    const double y[] = {7, -2.5, 7, 0, -0.0, 1e300, -2.5};
    double *values = NULL;
    int64_t count = 0;
    kiln_matrix *A = dense(devices[0], KILN_F64, 7, 1, y);
    assert_ok(kiln_classes(&values, &count, A, 0));
    assert_int_equal(count, 4);
    assert_true(values[0] == -2.5 && values[1] == 0 && !signbit(values[1]) && values[2] == 7 &&
                values[3] == 1e300);
    kiln_free(values);
    assert_ok(kiln_classes(&values, &count, A, 4));
    kiln_free(values);
    values = NULL;
    assert_int_equal(kiln_classes(&values, &count, A, 3), KILN_ERR_DATA);
    assert_true(values == NULL && strstr(kiln_last_error()->message, "more than 3 different values"));
    assert_int_equal(kiln_classes(NULL, &count, A, 0), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_classes(&values, &count, A, -1), KILN_ERR_ARGUMENT);
    kiln_matrix_free(A);
}

/* The pairs that are told without fetching them, and what only looks like one. */
static void classes_of_pairs(void **state) {
    (void)state;
    static const struct {
        double y[3];
        int64_t count;
        double classes[3];
    } cases[] = {{{0, 1, -0.0}, 2, {0, 1}},    {{1, -1, 1}, 2, {-1, 1}}, {{1, 1, 1}, 1, {1}},
                 {{0, 0, 0}, 1, {0}},          {{-1, -1, -1}, 1, {-1}},  {{-1, 0, 1}, 3, {-1, 0, 1}},
                 {{0, 1, 0.5}, 3, {0, 0.5, 1}}};
    for (int d = 0; d < device_count; d++) {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            double *values = NULL;
            int64_t count = 0;
            kiln_matrix *y = dense(devices[d], KILN_F64, 3, 1, cases[c].y);
            assert_ok(kiln_classes(&values, &count, y, 0));
            assert_int_equal(count, cases[c].count);
            for (int64_t k = 0; k < count; k++) assert_true(values[k] == cases[c].classes[k]);
            kiln_free(values);
            kiln_matrix_free(y);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_of_pairs),
        cmocka_unit_test(agrees_with_the_referee),
        cmocka_unit_test(weights_are_repetitions),
        cmocka_unit_test(standardizing_is_scaling),
        cmocka_unit_test(warm_start_goes_on),
        cmocka_unit_test(weak_l1_of_like_columns),
        cmocka_unit_test(l1_on_faces),
        cmocka_unit_test(classes_are_the_distinct_values),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
