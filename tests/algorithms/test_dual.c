/* Descent in the dual against the referee, and against Newton's method alone: hinge, logistic loss and
 * softmax, intercept, weights, classes, scaled penalties, empty rows and columns; what it refuses, and what
 * stopping it leaves. */
#include "algorithms/classifiers.h"
#include "ops/linear/dual.h"

#define DUAL .solver = KILN_CLASSIFIER_DUAL
static const struct example examples[] = {
    {"hinge", false, 80, 300, 0.1, false, {SVM, .classes = 2, .l2 = 0.5, DUAL}},
    {"hinge, no intercept",
     false,
     80,
     300,
     0.1,
     false,
     {SVM, .classes = 2, .l2 = 0.5, .no_intercept = true, DUAL}},
    {"hinge, weights, standardized",
     false,
     120,
     200,
     0.1,
     true,
     {SVM, .classes = 2, .l2 = 3, .standardize = true, DUAL}},
    {"hinge, weak penalty", false, 60, 300, 0.1, false, {SVM, .classes = 2, .l2 = 0.01, DUAL}},
    {"hinge, fewer columns than rows", false, 300, 20, 0.3, true, {SVM, .classes = 2, .l2 = 5, DUAL}},
    {"hinge, dense rows", false, 40, 60, 1, false, {SVM, .classes = 2, .l2 = 1, DUAL}},
    {"hinge, three classes", false, 150, 200, 0.1, true, {SVM, .classes = 3, .l2 = 1, DUAL}},
    {"hinge, eleven classes together",
     false,
     200,
     400,
     0.1,
     false,
     {SVM, .classes = 11, .l2 = 0.5, .no_intercept = true, DUAL}},
    {"hinge, three classes together, weights, standardized",
     false,
     150,
     200,
     0.1,
     true,
     {SVM, .classes = 3, .l2 = 2, .no_intercept = true, .standardize = true, DUAL}},
    {"logistic", false, 80, 300, 0.1, false, {LOGREG, .classes = 2, .l2 = 0.5, DUAL}},
    {"logistic, no intercept",
     false,
     80,
     300,
     0.1,
     false,
     {LOGREG, .classes = 2, .l2 = 0.5, .no_intercept = true, DUAL}},
    {"hinge, weights, no intercept",
     false,
     120,
     200,
     0.1,
     true,
     {SVM, .classes = 2, .l2 = 3, .no_intercept = true, DUAL}},
    {"logistic, weights, no intercept, weak penalty",
     false,
     120,
     200,
     0.1,
     true,
     {LOGREG, .classes = 2, .l2 = 1e-3, .no_intercept = true, DUAL}},
    {"logistic, weights, standardized",
     false,
     120,
     200,
     0.1,
     true,
     {LOGREG, .classes = 2, .l2 = 3, .standardize = true, DUAL}},
    {"logistic, balanced",
     false,
     120,
     200,
     0.1,
     false,
     {LOGREG, .classes = 2, .l2 = 0.1, .balanced = true, DUAL}},
    {"softmax", false, 150, 400, 0.1, false, {LOGREG, .classes = 3, .l2 = 0.5, DUAL}},
    {"softmax, weak penalty, no intercept",
     false,
     200,
     400,
     0.1,
     false,
     {LOGREG, .classes = 11, .l2 = 0.02, .no_intercept = true, DUAL}},
    {"softmax, weights, standardized",
     false,
     300,
     200,
     0.1,
     true,
     {LOGREG, .classes = 18, .l2 = 3, .standardize = true, DUAL}},
    {"far more columns than entries", false, 30, 2000, 0.005, true, {LOGREG, .classes = 2, .l2 = 0.1}},
    {"the same, of three classes", false, 30, 2000, 0.005, false, {SVM, .classes = 3, .l2 = 0.1}},
    {"two rows", false, 2, 3, 1, false, {SVM, .classes = 2, .l2 = 1, DUAL}},
};

static void meets_the_criterion(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            const struct example *e = &examples[i];
            struct problem p = labelled(e->m, e->n, e->question.classes, e->density, e->weighted, 7);
            for (int j = 0; j < p.n && p.m > 10; j++) p.X[5 * p.n + j] = 0;
            for (int r = 0; r < p.m; r++) p.X[r * p.n + 1] = 0;
            check_answer(e->what, &(struct run){devices[0], type, KILN_CSR, NULL}, &p, &e->question);
            problem_free(&p);
        }
}

/* A table of text columns, each row 1 in a level of each of 14, the first levels popular. */
static struct problem levelled(int m) {
    enum { COLUMNS = 14, LEVELS = 9 };
    struct problem p = labelled(m, COLUMNS * LEVELS, 2, 0, false, 3);
    double effect[COLUMNS * LEVELS];
    uint64_t state = 11;
    for (int j = 0; j < p.n; j++) effect[j] = 0.5 * random_normal(&state);
    for (int i = 0; i < m; i++) {
        const double noise = random_uniform(&state);
        double eta = log(noise / (1 - noise)) - 2;
        for (int c = 0; c < COLUMNS; c++) {
            const double u = random_uniform(&state);
            const int level = (int)(u * u * u * LEVELS);
            p.X[i * p.n + c * LEVELS + level] = 1;
            eta += effect[c * LEVELS + level];
        }
        p.y[i] = eta > 0 ? -2 : -5;
    }
    return p;
}

/* If most hinges are at 0, a move that takes no heed of the dual undoes what sweeps have gained: this took
 * more than 4,000 sweeps of two threads, and takes 152. */
static void moves_never_set_back(void **state) {
    (void)state;
    struct problem p = levelled(16000);
    const struct question q = {.kind = SVM, .classes = 2, .l2 = 1, .no_intercept = true, DUAL};
    kiln_report report = {0};
    struct solution s = answer(&report, &(struct run){devices[0], KILN_F64, KILN_CSR, NULL}, &p, &q);
    assert_true(report.converged && report.iterations == 0 && report.passes <= 400);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

/* More rows than columns, an intercept and next to no penalty: sweeps gain less and less, and Newton's method
 * goes on from where they stop gaining. This took all 4,000 sweeps. */
static void slow_sweeps_give_way(void **state) {
    (void)state;
    struct problem p = levelled(2000);
    const struct question q = {.kind = SVM, .classes = 2, .l2 = 1e-4, DUAL};
    kiln_report report = {0};
    struct solution s = answer(&report, &(struct run){devices[0], KILN_F64, KILN_CSR, NULL}, &p, &q);
    assert_true(report.converged && report.passes <= 1500);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

/* The last row's weight is 0: sweeps and moves, also those along which hinges stop, are the same as without
 * it. Every such move was given up. One thread, so that the numbers are the same each time. */
static void a_row_without_weight_changes_no_move(void **state) {
    (void)state;
    kiln_device *one_thread = NULL;
    kiln_report report[2] = {0};
    struct solution s[2];
    assert_int_equal(kiln_device_open(&one_thread, "cpu", &(kiln_device_options){.threads = 1}), KILN_OK);
    struct problem p = levelled(4001);
    p.weights = new_doubles(p.m);
    for (int r = 0; r < p.m - 1; r++) p.weights[r] = 1;
    for (int without = 0; without < 2; without++, p.m--) {
        const struct question q = {.kind = SVM, .classes = 2, .l2 = 1, .no_intercept = true, DUAL};
        s[without] = answer(&report[without], &(struct run){one_thread, KILN_F64, KILN_CSR, NULL}, &p, &q);
        assert_true(report[without].converged);
    }
    assert_int_equal(report[0].passes, report[1].passes);
    assert_true(difference(&s[0], &s[1]) < 1e-9);
    for (int i = 0; i < 2; i++) {
        kiln_report_free(&report[i]);
        solution_free(&s[i]);
    }
    problem_free(&p);
    kiln_device_close(one_thread);
}

/* Nearly all the way: Newton's method, which judges the start, has next to nothing left to do. */
static void newton_has_little_left(void **state) {
    (void)state;
    struct problem p = labelled(150, 800, 2, 0.05, false, 9);
    for (int kind = LOGREG; kind <= SVM; kind++) {
        struct question q = {.kind = (enum kind)kind, .classes = 2, .l2 = 0.1, DUAL};
        kiln_report dual = {0}, newton = {0};
        const struct run run = {devices[0], KILN_F64, KILN_CSR, NULL};
        struct solution a = answer(&dual, &run, &p, &q);
        q.solver = KILN_CLASSIFIER_NEWTON;
        struct solution b = answer(&newton, &run, &p, &q);
        assert_string_equal(dual.solver, "dual");
        assert_string_equal(newton.solver, "newton");
        assert_true(dual.converged && newton.converged && dual.iterations <= 1);
        assert_true(difference(&a, &b) < 1e-5);
        assert_true(fabs(dual.objective - newton.objective) <= 1e-12 * newton.objective);
        kiln_report_free(&dual);
        kiln_report_free(&newton);
        solution_free(&a);
        solution_free(&b);
    }
    problem_free(&p);
}

/* A weak penalty: sweeps alone, without moves between them, take 36 passes (logistic) and 57. */
static void moves_save_sweeps(void **state) {
    (void)state;
    struct problem p = labelled(300, 900, 2, 0.05, false, 9);
    for (int kind = LOGREG; kind <= SVM; kind++) {
        const struct question q = {
            .kind = (enum kind)kind, .classes = 2, .l2 = 0.001, .no_intercept = true, DUAL};
        kiln_report report = {0};
        struct solution s = answer(&report, &(struct run){devices[0], KILN_F64, KILN_CSR, NULL}, &p, &q);
        assert_true(report.converged && report.passes <= (kind == LOGREG ? 30 : 46));
        kiln_report_free(&report);
        solution_free(&s);
    }
    problem_free(&p);
}

/* A descent that judges itself says what the engine would, which judges where a checkpoint is kept.
 * One thread: with more, two descents end at different points, whose residuals differ by more than
 * rounding. */
static void judges_as_the_engine(void **state) {
    (void)state;
    kiln_device *one_thread = NULL;
    assert_int_equal(kiln_device_open(&one_thread, "cpu", &(kiln_device_options){.threads = 1}), KILN_OK);
    struct problem p = labelled(150, 400, 2, 0.05, true, 9);
    for (int kind = LOGREG; kind <= SVM; kind++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            kiln_report alone = {0}, engine = {0};
            kiln_checkpoint *checkpoint = NULL;
            const double near = type == KILN_F32 ? 1e-3 : 1e-9;
            const struct run run = {one_thread, type, KILN_CSR, NULL};
            struct question q = {.kind = (enum kind)kind,
                                 .classes = 2,
                                 .l2 = 0.3,
                                 .no_intercept = true,
                                 .tolerance = 1e-2,
                                 DUAL};
            struct solution a = answer(&alone, &run, &p, &q);
            assert_int_equal(kiln_checkpoint_open(&checkpoint, NULL), KILN_OK);
            q.control = kiln_checkpoint_control(checkpoint, q.control);
            struct solution b = answer(&engine, &run, &p, &q);
            kiln_checkpoint_close(checkpoint);
            assert_true(alone.passes < engine.passes); /* each went its own way */
            assert_true(alone.converged && engine.converged && alone.stopped_by == engine.stopped_by);
            assert_true(alone.iterations == 0 && engine.iterations == 0);
            assert_true(alone.trace_count == 1 && engine.trace_count == 1);
            assert_string_equal(alone.solver, engine.solver);
            assert_true(fabs(alone.residual - engine.residual) <= near * engine.residual);
            assert_true(fabs(alone.trace[0].radius - engine.trace[0].radius) <=
                        near * engine.trace[0].radius);
            assert_true(fabs(alone.objective - engine.objective) <= near * engine.objective);
            if (kind == SVM)
                assert_true(fabs(kiln_report_figure(&alone, "gap") - kiln_report_figure(&engine, "gap")) <=
                            near * kiln_report_figure(&engine, "gap") + near * near);
            assert_true(difference(&a, &b) < near);
            kiln_report_free(&alone);
            kiln_report_free(&engine);
            solution_free(&a);
            solution_free(&b);
        }
    problem_free(&p);
    kiln_device_close(one_thread);
}

/* If sweeps end before the criterion is met, the engine goes on from there. */
static void the_engine_goes_on(void **state) {
    (void)state;
    struct problem p = labelled(300, 60, 2, 0.3, false, 9);
    const struct question q = {.kind = LOGREG, .classes = 2, .l2 = 1e-3, .no_intercept = true, DUAL};
    kiln_report report = {0};
    struct solution s = answer(&report, &(struct run){devices[0], KILN_F64, KILN_CSR, NULL}, &p, &q);
    assert_string_equal(report.solver, "dual");
    assert_true(report.converged && report.iterations > 0 && report.residual <= 1e-8);
    assert_true(report.passes < 400); /* the sweeps once */
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

/* Columns that the engine has an error about. Their sums of the labels' signs may be 0. */
static void refuses_columns_out_of_range(void **state) {
    (void)state;
    static const double bad[] = {1e-170, 1e170, INFINITY};
    for (int kind = LOGREG; kind <= SVM; kind++)
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            struct problem p = labelled(40, 60, 2, 0.2, false, 13);
            const struct question q = {
                .kind = (enum kind)kind, .classes = 2, .l2 = 1, .no_intercept = true, DUAL};
            struct solution s = {0};
            kiln_report report = {0};
            for (int r = 0; r < p.m; r++) p.X[r * p.n + 7] = r < 2 ? bad[i] : 0; /* one row of each class */
            assert_int_equal(
                try_answer(&s, &report, &(struct run){devices[0], KILN_F64, KILN_CSR, NULL}, &p, &q),
                KILN_ERR_DATA);
            assert_non_null(strstr(kiln_last_error()->message, "column 7"));
            problem_free(&p);
        }
}

/* Rows leave a sweep that two threads share, and come back: before each sweep every row stands in the order
 * once. */
static void no_row_is_lost(void **state) {
    (void)state;
    enum { ROWS = 400, COLS = 30, EACH = 6, SWEEPS = 12, AGAIN = 4 };
    int64_t start[ROWS + 1];
    int32_t col[ROWS * EACH], order[ROWS];
    double values[ROWS * EACH], y[ROWS], a[ROWS] = {0}, square[ROWS], w[COLS] = {0}, b = 0, ones[COLS],
                                         own[KI_DUAL_PARTS * (COLS + 1)] = {0};
    kiln_matrix *X = NULL;
    for (int r = 0; r < ROWS; r++) {
        start[r] = (int64_t)r * EACH;
        y[r] = r % 3 ? 1 : -1;
        order[r] = r;
        for (int e = 0; e < EACH; e++) {
            col[r * EACH + e] = r % (COLS / EACH) + e * (COLS / EACH);
            values[r * EACH + e] = sin(r * 7 + e) + (e == 0 ? 2 * y[r] : 0);
        }
    }
    start[ROWS] = ROWS * EACH;
    assert_int_equal(kiln_matrix_csr(&X, devices[0], KILN_F64, ROWS, COLS, start, col, values), KILN_OK);
    for (int j = 0; j < COLS; j++) ones[j] = 1;
    ki_dual_measure(square, X, ones);
    struct ki_dual dual = {.X = X, .y = y, .reciprocal = ones, .uniform = true, .k = 1, .stride = 1};
    dual.square = square;
    dual.a = a;
    dual.w = w;
    dual.b = &b;
    dual.own = own;
    dual.stretch = KI_DUAL_PARTS;
    dual.order = order;
    dual.draws.seed = 5;
    int64_t least = ROWS;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int seen[ROWS] = {0};
        if (sweep % AGAIN == 0) dual.active = ROWS;
        dual.bound = sweep % AGAIN == 0 ? INFINITY : 0.1;
        ki_dual_sweep(&dual);
        for (int r = 0; r < ROWS; r++) seen[order[r]]++;
        for (int r = 0; r < ROWS; r++) assert_int_equal(seen[r], 1);
        if (dual.active < least) least = dual.active;
    }
    assert_true(least > 0 && least < ROWS);
    kiln_matrix_free(X);
}

static int stop(void *user, const kiln_progress *now) {
    int *calls = user;
    assert_string_equal(now->phase, "solve");
    return ++*calls > 0;
}

static void stopping_keeps_the_result(void **state) {
    (void)state;
    struct problem p = labelled(100, 300, 3, 0.1, false, 11);
    int calls = 0;
    kiln_report report = {0};
    const struct question q = {.kind = SVM, .classes = 3, .l2 = 1, .control = {stop, &calls}, DUAL};
    struct solution s = answer(&report, &(struct run){devices[0], KILN_F64, KILN_CSR, NULL}, &p, &q);
    assert_true(report.stopped_by == KILN_STOP_CANCELLED && !report.converged && isfinite(report.objective));
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

static void refuses_what_it_cannot(void **state) {
    (void)state;
    struct problem p = labelled(40, 60, 3, 0.2, false, 13);
    const struct {
        kiln_format format;
        struct question question;
    } refused[] = {{KILN_DENSE, {SVM, .classes = 3, .l2 = 1, DUAL}},
                   {KILN_CSR, {SVM, .classes = 3, DUAL}},
                   {KILN_CSR, {SVR, .l2 = 1, DUAL}},
                   {KILN_CSR, {LOGREG, .classes = 3, .l2 = 1, .l1 = 1, DUAL}}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct solution s = {0};
        kiln_report report = {0};
        const struct run run = {devices[0], KILN_F64, refused[i].format, NULL};
        assert_int_equal(try_answer(&s, &report, &run, &p, &refused[i].question), KILN_ERR_UNSUPPORTED);
    }
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meets_the_criterion),    cmocka_unit_test(newton_has_little_left),
        cmocka_unit_test(moves_save_sweeps),      cmocka_unit_test(stopping_keeps_the_result),
        cmocka_unit_test(judges_as_the_engine),   cmocka_unit_test(the_engine_goes_on),
        cmocka_unit_test(refuses_what_it_cannot), cmocka_unit_test(refuses_columns_out_of_range),
        cmocka_unit_test(no_row_is_lost),         cmocka_unit_test(moves_never_set_back),
        cmocka_unit_test(slow_sweeps_give_way),   cmocka_unit_test(a_row_without_weight_changes_no_move),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
