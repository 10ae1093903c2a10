/* kiln_svm with every option against the referee, dense and CSR, f32 and f64, on the CPU and on OpenCL, and
 * its duality gap. */
#include "algorithms/classifiers.h"

static const double class_weights[] = {0.5, 2, 1};

static const struct example examples[] = {
    {"two classes", false, 80, 6, 1, false, {SVM, .classes = 2, .l2 = 0.5}},
    {"two classes, no intercept",
     false,
     80,
     6,
     1,
     false,
     {SVM, .classes = 2, .l2 = 0.5, .no_intercept = true}},
    {"two classes, no penalty", false, 300, 4, 1, false, {SVM, .classes = 2}},
    {"two classes, weights, standardized",
     true,
     120,
     6,
     1,
     true,
     {SVM, .classes = 2, .l2 = 3, .standardize = true}},
    {"two classes, class weights",
     false,
     90,
     5,
     1,
     true,
     {SVM, .classes = 2, .l2 = 1, .class_weights = class_weights}},
    {"two classes, balanced", false, 90, 5, 1, true, {SVM, .classes = 2, .l2 = 1, .balanced = true}},
    {"sparse", false, 300, 40, 0.2, false, {SVM, .classes = 2, .l2 = 0.5}},
    {"more columns than rows", false, 20, 60, 1, false, {SVM, .classes = 2, .l2 = 0.5}},
    {"one column", false, 60, 1, 1, false, {SVM, .classes = 2, .l2 = 1}},
    {"two rows", false, 2, 3, 1, false, {SVM, .classes = 2, .l2 = 1}},
    {"three classes", false, 150, 7, 1, true, {SVM, .classes = 3, .l2 = 1}},
    {"three classes, class weights, standardized",
     false,
     90,
     5,
     0.5,
     false,
     {SVM, .classes = 3, .l2 = 1, .class_weights = class_weights, .standardize = true}},
    {"regression", true, 80, 6, 1, false, {SVR, .l2 = 0.5}},
    {"regression, epsilon", false, 80, 6, 1, false, {SVR, .l2 = 0.5, .epsilon = 0.7}},
    {"regression, epsilon, weights, standardized",
     false,
     120,
     6,
     1,
     true,
     {SVR, .l2 = 2, .epsilon = 0.3, .standardize = true}},
    {"regression, epsilon, no intercept",
     false,
     80,
     6,
     0.5,
     false,
     {SVR, .l2 = 1, .epsilon = 0.5, .no_intercept = true}},
};

static void agrees_with_the_referee(void **state) {
    (void)state;
    check_examples(examples, sizeof examples / sizeof *examples);
}

/* The gap bounds how far the objective lies above the optimum's, at any point: stopped early, too. */
static void gap_bounds_the_error(void **state) {
    (void)state;
    const struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    for (int kind = SVM; kind <= SVR; kind++)
        for (int intercept = 0; intercept < 2; intercept++) {
            struct problem p =
                kind == SVM ? labelled(150, 8, 2, 1, true, 6) : problem_new(150, 8, 1, 1, true, 6);
            struct question q = {.kind = (enum kind)kind,
                                 .classes = kind == SVM ? 2 : 0,
                                 .l2 = 1,
                                 .epsilon = 0.2,
                                 .no_intercept = !intercept,
                                 .tolerance = 1e-10};
            kiln_report report = {0};
            struct solution s = answer(&report, &run, &p, &q);
            const double least = report.objective;
            assert_true(kiln_report_figure(&report, "gap") >= 0 && kiln_report_figure(&report, "gap") < 1e-8);
            kiln_report_free(&report);
            solution_free(&s);
            for (q.max_iterations = 1; q.max_iterations <= 3; q.max_iterations++) {
                s = answer(&report, &run, &p, &q);
                assert_true(report.objective - least <=
                            (kiln_report_figure(&report, "gap") + 1e-12) * report.objective);
                assert_true(q.max_iterations > 1 || kiln_report_figure(&report, "gap") > 1e-6);
                kiln_report_free(&report);
                solution_free(&s);
            }
            problem_free(&p);
        }
}

/* Without a penalty the dual has no finite objective to offer. */
static void no_gap_without_a_penalty(void **state) {
    (void)state;
    const struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    struct problem p = labelled(300, 4, 2, 1, false, 6);
    kiln_report report = {0};
    struct solution s = answer(&report, &run, &p, &(struct question){.kind = SVM, .classes = 2});
    assert_true(report.converged && isnan(kiln_report_figure(&report, "gap")));
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

/* One against the rest is each class by itself; a warm start takes each its own column. */
static void classes_are_problems(void **state) {
    (void)state;
    struct run run = {devices[0], KILN_F64, KILN_CSR, NULL};
    struct problem p = labelled(200, 6, 4, 0.5, true, 9);
    struct question q = {.kind = SVM, .classes = 4, .l2 = 1, .tolerance = 1e-10}, one = q;
    kiln_report report = {0}, part = {0};
    struct solution s = answer(&report, &run, &p, &q);
    double objective = 0, *labels = p.y;
    int64_t iterations = 0;
    one.classes = 2;
    p.y = new_doubles(p.m);
    for (int c = 0; c < 4; c++) {
        for (int i = 0; i < p.m; i++) p.y[i] = labels[i] == 3 * c - 5 ? -2 : -5;
        struct solution t = answer(&part, &run, &p, &one);
        for (int j = 0; j < p.n; j++) assert_true(fabs(s.W[j * 4 + c] - t.W[j]) <= 1e-9);
        assert_true(fabs(s.b[c] - t.b[0]) <= 1e-9);
        objective += part.objective;
        iterations += part.iterations;
        kiln_report_free(&part);
        solution_free(&t);
    }
    assert_true(fabs(objective - report.objective) <= 1e-12 * objective);
    assert_int_equal(iterations, report.iterations);
    kiln_report_free(&report);
    free(p.y);
    p.y = labels;
    run.start = &s;
    struct solution again = answer(&report, &run, &p, &q);
    assert_int_equal(report.iterations, 0);
    assert_true(difference(&again, &s) <= 1e-13);
    kiln_report_free(&report);
    solution_free(&again);
    solution_free(&s);
    problem_free(&p);
}

/* One row of 1e12 has all of the first point's curvature, and none of the optimum's: there the rows of 1
 * decide. The penalty is at least the objective's curvature, so that a gradient g proves its distance from
 * the optimum to be at most g^2 / (2 l2). */
static void outlier_leaves_the_loss(void **state) {
    (void)state;
    enum { ROWS = 41 };
    struct problem p = {.m = ROWS, .n = 1, .k = 1, .X = new_doubles(ROWS), .y = new_doubles(ROWS)};
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < 8; i++) {
            const struct question q = {.kind = SVM, .classes = i & 4 ? 3 : 2, .l2 = 1, .no_intercept = true};
            const struct run run = {devices[d], i & 1 ? KILN_F32 : KILN_F64, i & 2 ? KILN_CSR : KILN_DENSE,
                                    NULL};
            kiln_report report = {0};
            for (int r = 0; r < ROWS; r++) {
                p.X[r] = r == 0 ? 1e12 : 1;
                p.y[r] = r == 0 || r > 10 ? -2 : q.classes == 3 && r > 6 ? 1 : -5;
            }
            struct solution s = answer(&report, &run, &p, &q);
            const struct verdict verdict = examine(&p, &q, s.W, NULL);
            const double tolerance = run.type == KILN_F32 ? 1e-3 : 1e-7;
            kiln_device_info info = {0};
            kiln_device_get_info(run.device, &info);
            if (!report.converged ||
                q.classes * verdict.gradient * verdict.gradient / 2 > tolerance * verdict.objective)
                print_message("    %s, problem %d: converged %d, objective %.9g, gradient %.3g\n", info.name,
                              i, report.converged, report.objective, verdict.gradient);
            assert_true(report.converged);
            assert_true(q.classes * verdict.gradient * verdict.gradient / 2 <= tolerance * verdict.objective);
            if (q.classes == 2) { /* w^2 / 2 + 15 (1 - w)^2 + 5 (1 + w)^2 at w = 20 / 41 */
                assert_true(fabs(s.W[0] - 20.0 / 41) <= tolerance);
                assert_true(fabs(report.objective - (20 - 200.0 / 41)) <= 20 * tolerance);
            }
            kiln_report_free(&report);
            solution_free(&s);
        }
    problem_free(&p);
}

/* The same beginning where the row of 1e12 has a rounding error left to go to the kink: it has all curvature
 * still, by which next to nothing is left to gain, and none behind it. Steps by a GPU's sums end there. */
static void a_kink_within_rounding(void **state) {
    (void)state;
    enum { ROWS = 41 };
    struct problem p = {.m = ROWS, .n = 1, .k = 1, .X = new_doubles(ROWS), .y = new_doubles(ROWS)};
    const struct question q = {.kind = SVM, .classes = 2, .l2 = 1, .no_intercept = true};
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < 8; i++) {
            double before = 1e-12 * (1 - (i & 1 ? 0x1p-23 : 0x1p-52) * (i & 4 ? 1 : 2));
            const struct solution near = {.n = 1, .k = 1, .W = &before};
            const struct run run = {devices[d], i & 1 ? KILN_F32 : KILN_F64, i & 2 ? KILN_CSR : KILN_DENSE,
                                    &near};
            kiln_report report = {0};
            for (int r = 0; r < ROWS; r++) {
                p.X[r] = r == 0 ? 1e12 : 1;
                p.y[r] = r == 0 || r > 10 ? -2 : -5;
            }
            struct solution s = answer(&report, &run, &p, &q);
            if (report.converged && fabs(s.W[0] - 20.0 / 41) > 1e-3)
                fail_msg("device %d, problem %d: w = %.9g after %d steps", d, i, s.W[0],
                         (int)report.iterations);
            kiln_report_free(&report);
            solution_free(&s);
        }
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_referee),  cmocka_unit_test(gap_bounds_the_error),
        cmocka_unit_test(no_gap_without_a_penalty), cmocka_unit_test(classes_are_problems),
        cmocka_unit_test(outlier_leaves_the_loss),  cmocka_unit_test(a_kink_within_rounding),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
