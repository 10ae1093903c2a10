/* The Newton engine: how often it reads X, what it reports, where it stops, and data that no method likes. */
#include <float.h>

#include "algorithms/classifiers.h"
#include "algorithms/newton/newton_work.h"

static struct run on(int device, kiln_type type) {
    return (struct run){devices[device], type, KILN_DENSE, NULL};
}

/* X is read twice for the columns' means and spreads, once for value, gradient and curvature of each point,
 * once for each Hessian product, once for the preconditioner (but for its diagonal at the origin), whose
 * price for so few columns is less than one product: but for softmax it gives each step by itself; kiln_svm
 * reads it twice more for the gap. These problems need no shortened step, which would be one more point. */
static void passes_are_counted(void **state) {
    (void)state;
    const struct question questions[] = {
        {.classes = 2, .l2 = 1},          {.classes = 3, .l2 = 1},
        {.kind = SVR, .l2 = 1},           {.classes = 2, .l1 = 5},
        {.classes = 3, .l1 = 2, .l2 = 1}, {.classes = 2, .l2 = 1, .no_intercept = true, .standardize = true}};
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const struct question *q = &questions[i];
        const struct run run = on(0, KILN_F64);
        struct problem p =
            q->kind == SVR ? problem_new(150, 8, 1, 1, false, 2) : labelled(150, 8, q->classes, 1, false, 2);
        kiln_report report = {0};
        struct solution s = answer(&report, &run, &p, q);
        const bool told =
            q->kind == LOGREG && q->classes == 2; /* the first gradient, by the walk over the columns */
        int64_t passes = 1 + (told ? 0 : 1) + (q->kind == LOGREG ? 0 : 2);
        assert_int_equal(report.trace_count, report.iterations + 1);
        assert_true(report.iterations > 0 && report.trace[0].inner == 0 && report.trace[0].residual == 1);
        for (int64_t t = 1; t < report.trace_count; t++) {
            const kiln_trace_row *row = &report.trace[t];
            const bool exact = q->l1 == 0 && q->classes <= 2;
            assert_true(row->iteration == t && (row->inner == 0) == exact &&
                        (row->radius > 0) == (q->l1 == 0));
            assert_true(row->objective <= row[-1].objective && row->seconds >= row[-1].seconds);
            const bool known = t == 1 && q->l1 > 0; /* at the origin, where rows have one curvature */
            const bool preconditioned = exact || (t == 1 && !known) || row[-1].inner >= (q->l1 > 0 ? 4 : 2);
            const bool descent = q->l1 > 0 && q->classes == 2; /* a Gram matrix and a point a step */
            const int factors = q->classes > 2 && q->l1 == 0 ? q->classes : 1; /* one for each class */
            passes += descent ? 2 : (preconditioned ? factors : 0) + row->inner + 1;
        }
        if (q->classes == 2 && q->l1 > 0) passes++; /* of l1 alone the bound takes the predictors */
        assert_int_equal(report.passes, passes);
        assert_true(report.trace[report.iterations].objective == report.objective);
        assert_true(report.trace[report.iterations].residual == report.residual);
        assert_true(report.residual <= report.tolerance && report.tolerance == 1e-8);
        assert_true(isnan(kiln_report_figure(&report, "rss")) && isnan(kiln_report_figure(&report, "r2")) &&
                    isnan(kiln_report_figure(&report, "deviance")) &&
                    isnan(kiln_report_figure(&report, "aic")));
        kiln_report_free(&report);
        solution_free(&s);
        problem_free(&p);
    }
}

/* Softmax over two classes has the binomial model's probabilities: with half the penalty there, its columns
 * are -w/2 and
 * w/2, as ||w/2||^2 + ||w/2||^2 = ||w||^2 / 2. */
static void two_classes_of_softmax(void **state) {
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const struct run run = on(d, KILN_F64);
        struct problem p = labelled(100, 5, 2, 1, true, 12);
        kiln_report report = {0};
        struct solution s =
            answer(&report, &run, &p, &(struct question){.classes = 2, .l2 = 1, .tolerance = 1e-11});
        double labels[100];
        for (int i = 0; i < 100; i++) labels[i] = (p.y[i] + 5) / 3;
        kiln_matrix *X = dense(devices[d], KILN_F64, 100, 5, p.X),
                    *y = dense(devices[d], KILN_F64, 100, 1, labels);
        kiln_matrix *weights = dense(devices[d], KILN_F64, 100, 1, p.weights);
        struct ki_newton newton = {.call = "test", .X = X, .weights = weights, .k = 2, .l2 = 2};
        const kiln_control control = {NULL, NULL};
        const kiln_loss loss = {.kind = KILN_LOSS_SOFTMAX, .y = y, .weights = weights};
        assert_ok(ki_run_within(&newton.run, &(struct ki_run){.X = X}, &control));
        ki_run_on(&newton.run, X, 1e-11, 50);
        assert_ok(ki_newton_open(&newton));
        assert_ok(ki_newton_solve(&newton, &loss, &(struct ki_newton_start){.warm = false}));
        assert_true(newton.run.report.converged);
        assert_true(fabs(newton.run.report.objective - report.objective) <= 1e-12 * report.objective);
        double *W = values_of(newton.W), *b = values_of(newton.b);
        for (int j = 0; j < 5; j++) {
            assert_true(fabs(W[2 * j + 1] - s.W[j] / 2) <= 1e-9 && fabs(W[2 * j] + s.W[j] / 2) <= 1e-9);
        }
        assert_true(fabs(b[1] - b[0] - s.b[0]) <= 1e-9);
        assert_ok(ki_run_close(&newton.run, KILN_OK));
        kiln_matrix *const all[] = {X, y, weights};
        for (int i = 0; i < 3; i++) kiln_matrix_free(all[i]);
        free(W);
        free(b);
        kiln_report_free(&report);
        solution_free(&s);
        problem_free(&p);
    }
}

/* Rows of many classes have little curvature where the run begins, and the first step goes where they are
 * certain and have less. From there Newton's method takes 12 steps, from the point it is taken back to 8. */
static void steps_too_far_are_taken_back(void **state) {
    (void)state;
    const struct run run = on(0, KILN_F64);
    struct problem p = labelled(256, 256, 32, 1, false, 7);
    kiln_report report = {0};
    struct solution s =
        answer(&report, &run, &p, &(struct question){.classes = 32, .l2 = 1, .tolerance = 1e-4});
    assert_true(report.converged && report.iterations <= 10);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

static void iterations_are_capped(void **state) {
    (void)state;
    const struct run run = on(0, KILN_F64);
    struct problem p = labelled(200, 12, 3, 1, false, 11);
    double before = INFINITY;
    for (int l1 = 0; l1 < 2; l1++, before = INFINITY)
        for (int64_t cap = 1; cap <= 3; cap++) {
            const struct question q = {.classes = 3, .l2 = 0.1, .l1 = l1, .max_iterations = cap};
            kiln_report report = {0};
            struct solution s = answer(&report, &run, &p, &q);
            assert_true(report.iterations == cap && !report.converged);
            assert_int_equal(report.stopped_by, KILN_STOP_ITERATIONS);
            assert_true(report.objective < before && report.residual > report.tolerance);
            assert_true(fabs(examine(&p, &q, s.W, s.b).objective - report.objective) <=
                        1e-12 * report.objective);
            before = report.objective;
            kiln_report_free(&report);
            solution_free(&s);
        }
    problem_free(&p);
}

struct watcher {
    int calls, stop_at;
    int64_t bytes;
    double least;
};

static int watch(void *user, const kiln_progress *now) {
    struct watcher *watcher = user;
    assert_string_equal(now->phase, "solve");
    assert_true(now->total >= now->done && now->bytes > watcher->bytes && isfinite(now->objective));
    watcher->bytes = now->bytes;
    watcher->least = now->objective;
    return ++watcher->calls > watcher->stop_at;
}

/* The callback is asked between Hessian products too, and what was reached before stands. */
static void cancelling_keeps_the_result(void **state) {
    (void)state;
    const struct run run = on(0, KILN_F64);
    struct problem p = labelled(200, 25, 3, 1, false, 11);
    for (int stop_at = 0; stop_at <= 12; stop_at += 3) {
        struct watcher watcher = {.stop_at = stop_at};
        const struct question q = {.classes = 3, .l2 = 0.1, .control = {watch, &watcher}};
        kiln_report report = {0};
        struct solution s = answer(&report, &run, &p, &q);
        assert_int_equal(report.stopped_by, KILN_STOP_CANCELLED);
        assert_true(!report.converged && watcher.calls == stop_at + 1);
        assert_true(report.objective == watcher.least);
        assert_true(fabs(examine(&p, &q, s.W, s.b).objective - report.objective) <= 1e-12 * report.objective);
        kiln_report_free(&report);
        solution_free(&s);
    }
    problem_free(&p);
}

/* A preconditioner takes a Gram matrix for each class, between which the callback is asked. */
static void many_classes_are_interrupted(void **state) {
    (void)state;
    enum { CLASSES = 12 };
    const struct run run = on(0, KILN_F64);
    struct problem p = labelled(300, 6, CLASSES, 1, false, 11);
    struct watcher watcher = {.stop_at = CLASSES};
    const struct question q = {.classes = CLASSES, .l2 = 1, .control = {watch, &watcher}};
    kiln_report report = {0};
    struct solution s = answer(&report, &run, &p, &q);
    assert_true(report.stopped_by == KILN_STOP_CANCELLED && report.iterations == 0);
    assert_int_equal(watcher.calls, 1 + CLASSES);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

static void assert_finite(const struct solution *s, const kiln_report *report) {
    for (int e = 0; e < s->n * s->k; e++) assert_true(isfinite(s->W[e]));
    for (int c = 0; s->b && c < s->k; c++) assert_true(isfinite(s->b[c]));
    assert_true(isfinite(report->objective) && isfinite(report->residual));
}

/* Classes that a plane separates have no optimum without a penalty: the coefficients grow until the gradient
 * is as small as the tolerance asks. */
static void separable_data_end(void **state) {
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
            for (int classes = 2; classes <= 3; classes++) {
                const struct run run = on(d, type);
                struct problem p = labelled(60, 3, classes, 1, false, 5);
                for (int i = 0; i < 60; i++) p.X[3 * i] = p.y[i];
                kiln_report report = {0};
                struct solution s = answer(&report, &run, &p, &(struct question){.classes = classes});
                assert_finite(&s, &report);
                assert_true(report.converged && report.iterations < 100);
                kiln_report_free(&report);
                solution_free(&s);
                problem_free(&p);
            }
}

/* A constant column does what the intercept does, and gets nothing; without an intercept it stands for
 * one. */
static void constant_columns(void **state) {
    (void)state;
    const struct run run = on(0, KILN_F64);
    struct problem p = labelled(100, 4, 2, 1, false, 5), without = labelled(100, 3, 2, 1, false, 5);
    for (int i = 0; i < 100; i++) {
        p.X[4 * i + 1] = 1e7;
        p.X[4 * i + 3] = 0;
        for (int j = 0; j < 3; j++) without.X[3 * i + j] = j == 1 ? 0.001 : p.X[4 * i + j];
    }
    for (int i = 0; i < 100; i++) without.y[i] = p.y[i];
    struct question q = {.classes = 2, .l2 = 1, .tolerance = 1e-10};
    kiln_report report = {0};
    struct solution s = answer(&report, &run, &p, &q), t;
    assert_true(report.converged && s.W[1] == 0 && s.W[3] == 0 && s.W[0] != 0);
    kiln_report_free(&report);
    t = answer(&report, &run, &without, &q);
    assert_true(report.converged && fabs(t.W[0] - s.W[0]) <= 1e-8 && fabs(t.W[2] - s.W[2]) <= 1e-8 &&
                t.W[1] == 0);
    kiln_report_free(&report);
    solution_free(&t);
    q.no_intercept = true;
    q.l2 = 0;
    t = answer(&report, &run, &without, &q);
    assert_true(report.converged && t.W[1] != 0);
    kiln_report_free(&report);
    solution_free(&t);
    solution_free(&s);
    problem_free(&p);
    problem_free(&without);
}

/* Columns as far from zero as time stamps, and from one another as 1e-6 from 1e6, cost no more than centred
 * ones. The variance, and with it the penalty, of a column so far away is known to some seven digits. */
static void shifts_and_scales_do_not_matter(void **state) {
    (void)state;
    const struct run run = on(0, KILN_F64);
    struct problem p = labelled(300, 4, 2, 1, false, 21);
    const struct question q = {.classes = 2, .l2 = 1, .standardize = true};
    kiln_report plain = {0}, moved = {0};
    struct solution s = answer(&plain, &run, &p, &q);
    for (int i = 0; i < 300; i++) {
        p.X[4 * i] += 1e5;
        p.X[4 * i + 1] *= 1e6;
        p.X[4 * i + 2] *= 1e-6;
        p.X[4 * i + 3] = 1e3 * p.X[4 * i + 3] - 1e6;
    }
    struct solution t = answer(&moved, &run, &p, &q);
    assert_true(plain.converged && moved.converged && moved.passes <= plain.passes + 5);
    assert_true(fabs(moved.objective - plain.objective) <= 1e-7 * plain.objective);
    assert_true(fabs(t.W[1] * 1e6 - s.W[1]) <= 1e-6 * fabs(s.W[1]));
    kiln_report_free(&plain);
    kiln_report_free(&moved);
    solution_free(&s);
    solution_free(&t);
    problem_free(&p);
}

/* Margins as large as the type holds, up to where the columns' squares overflow, which is said. */
static void huge_numbers_end(void **state) {
    (void)state;
    static const struct {
        kiln_type type;
        double size;
    } cases[] = {{KILN_F64, 1e100}, {KILN_F64, 1e150},  {KILN_F64, 1e154},
                 {KILN_F64, 1e308}, {KILN_F64, 1e-150}, {KILN_F32, 1e15},
                 {KILN_F32, 1e18},  {KILN_F32, 1e38},   {KILN_F32, 1e-15}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int kind = LOGREG; kind <= SVM; kind++)
            for (int classes = 2; classes <= 3; classes++)
                for (int l1 = 0; l1 < 2; l1++) {
                    const struct run run = on(0, cases[i].type);
                    struct problem p = labelled(40, 3, classes, 1, false, 5);
                    for (int e = 0; e < 120; e++) p.X[e] *= cases[i].size / 8;
                    kiln_report report = {0};
                    struct solution s = {0};
                    const struct question q = {
                        .kind = (enum kind)kind, .classes = classes, .l2 = 1, .l1 = kind == LOGREG ? l1 : 0};
                    const kiln_status status = try_answer(&s, &report, &run, &p, &q);
                    if (status == KILN_OK)
                        assert_finite(&s, &report);
                    else
                        assert_true(status == KILN_ERR_DATA &&
                                    strstr(kiln_last_error()->message, "overflow"));
                    kiln_report_free(&report);
                    solution_free(&s);
                    problem_free(&p);
                }
}

/* A start as far out as numbers go: finite margins are come back from, infinite ones are returned as
 * given. */
static void wild_starts_end(void **state) {
    (void)state;
    struct run run = on(0, KILN_F64);
    struct problem p = labelled(60, 3, 2, 1, false, 5);
    for (int wild = 0; wild < 2; wild++) {
        double W[3] = {1e3, 0, 0}, b[1] = {0};
        if (wild) W[0] = W[1] = 1e308, b[0] = -1e308;
        struct solution start = {3, 1, W, b};
        run.start = &start;
        kiln_report report = {0};
        struct solution s = answer(&report, &run, &p, &(struct question){.classes = 2, .l2 = 1});
        if (wild)
            assert_true(!report.converged && report.stopped_by == KILN_STOP_DIVERGED && s.W[0] == 1e308 &&
                        s.b[0] == -1e308);
        else
            assert_true(report.converged && report.trace[0].objective > report.objective);
        kiln_report_free(&report);
        solution_free(&s);
    }
    problem_free(&p);
}

/* Standardised, columns may have any scale: the coefficients are those of columns of one scale, as far as
 * numbers can tell, and beyond that nothing is called converged. */
static void scales_far_apart(void **state) {
    (void)state;
    static const struct {
        kiln_type type;
        double scale, close; /* of column 1; 0: too far */
    } cases[] = {{KILN_F64, 1e-30, 1e-6}, {KILN_F64, 1e30, 1e-6},  {KILN_F64, 1e-90, 1e-6},
                 {KILN_F64, 1e-130, 0},   {KILN_F32, 1e-12, 1e-2}, {KILN_F32, 1e12, 1e-2},
                 {KILN_F32, 1e-17, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct run run = on(0, cases[i].type);
        const struct question q = {.classes = 2, .l2 = 0.1, .standardize = true};
        struct problem p = labelled(200, 3, 2, 1, false, 5);
        kiln_report plain = {0}, report = {0};
        struct solution wanted = answer(&plain, &run, &p, &q);
        for (int row = 0; row < 200; row++) p.X[3 * row + 1] *= cases[i].scale;
        struct solution s = answer(&report, &run, &p, &q);
        assert_finite(&s, &report);
        assert_true(plain.converged && report.converged == (cases[i].close > 0));
        if (!report.converged) assert_int_equal(report.stopped_by, KILN_STOP_STALLED);
        s.W[1] *= cases[i].scale;
        for (int j = 0; j < 3 && report.converged; j++)
            assert_true(fabs(s.W[j] - wanted.W[j]) <= cases[i].close * (1 + fabs(wanted.W[j])));
        kiln_report_free(&plain);
        kiln_report_free(&report);
        solution_free(&wanted);
        solution_free(&s);
        problem_free(&p);
    }
}

/* Rows of weight 0 count for nothing, and a class of them is one that never occurs. */
static void a_class_without_weight(void **state) {
    (void)state;
    const struct run run = on(0, KILN_F64);
    for (int classes = 2; classes <= 3; classes++) {
        struct problem p = labelled(90, 4, classes, 1, true, 5);
        for (int i = 0; i < 90; i++) p.weights[i] = p.y[i] == -2 ? 0 : 1;
        kiln_report report = {0};
        struct solution s = answer(&report, &run, &p, &(struct question){.classes = classes, .l2 = 1});
        assert_finite(&s, &report);
        assert_true(report.converged && s.b[classes == 2 ? 0 : 1] < -5);
        kiln_report_free(&report);
        solution_free(&s);
        problem_free(&p);
    }
}

/* Every row and column empty: there is only the intercept. */
static void nothing_stored(void **state) {
    (void)state;
    for (int d = 0; d < device_count; d++) {
        struct run run = on(d, KILN_F64);
        run.format = KILN_CSR;
        struct problem p = labelled(30, 3, 2, 1, false, 5);
        memset(p.X, 0, 90 * sizeof *p.X);
        int positive = 0;
        for (int i = 0; i < 30; i++) positive += p.y[i] == -2;
        kiln_report report = {0};
        struct solution s = answer(&report, &run, &p, &(struct question){.classes = 2, .l2 = 1});
        assert_true(report.converged && s.W[0] == 0 && s.W[1] == 0 && s.W[2] == 0);
        assert_true(fabs(s.b[0] - log(positive / (30.0 - positive))) <= 1e-7);
        kiln_report_free(&report);
        solution_free(&s);
        problem_free(&p);
    }
}

/* A sample has about as many rows as are wanted and, on the whole, the curvature of all; rows of much
 * curvature stay. */
static void samples_have_the_curvature(void **state) {
    (void)state;
    enum { ROWS = 4000, WANTED = 500 };
    double v[ROWS], before = 0, after = 0;
    int64_t count = 0;
    for (int i = 0; i < ROWS; i++) {
        v[i] = i % 100 == 7 ? 50 : 1.0 / (1 + i % 13);
        before += v[i];
    }
    assert_true(ki_newton_sample(v, ROWS, WANTED));
    for (int i = 0; i < ROWS; i++) {
        after += v[i];
        count += v[i] > 0;
        assert_true(i % 100 != 7 || v[i] == 50);
    }
    assert_true(count > 0.9 * WANTED && count < 1.1 * WANTED);
    assert_true(fabs(after - before) <= 0.02 * before);
    assert_false(ki_newton_sample(v, ROWS, ROWS)); /* no more rows have any */
}

/* ---- a sample of many rows ---- */

enum {
    TALL = 35000,
    NARROW = 15,
    SAMPLED = 4
}; /* SAMPLED: calls before the first step that only a sample's steps make */

/* Calls before the first step is done. */
struct beginning {
    int calls, stop_at;
};

static int count_beginning(void *user, const kiln_progress *now) {
    struct beginning *beginning = user;
    beginning->calls += now->done == 0;
    return now->done == 0 && beginning->calls == beginning->stop_at;
}

static void rare_column(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->X[r * NARROW + 7] = r % 1000 == 3;
}

static void rare_from_the_first_row(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->X[r * NARROW + 7] = r % 1000 == 0;
}

static void last_rows_alone(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->X[r * NARROW + 7] = r > TALL - 6;
}

static void parted_classes(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->y[r] = p->X[r * NARROW] > 0 ? -2 : -5;
}

static void rare_class(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->y[r] = r % 3500 == 17 ? -2 : -5;
}

static void rare_class_first(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->y[r] = r < 10 ? -2 : -5;
}

static void few_weights(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->weights[r] = r % 20 == 0 ? p->weights[r] : 0;
}

static void heavy_rows(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->weights[r] = r % 3500 == 17 ? 1e4 : 1;
}

static void own_intercept(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->X[r * NARROW] = 1;
}

static void rows_in_order(struct problem *p) {
    for (int r = 0; r < TALL; r++) p->X[r * NARROW] = (double)r / TALL;
}

static const struct tall {
    const char *what;
    void (*change)(struct problem *p);
    bool sampled;
    struct question question;
} talls[] = {{"as it is", NULL, true, {.classes = 2, .l2 = 2, .standardize = true}},
             {"a column in order", rows_in_order, true, {.classes = 2, .l2 = 1}},
             {"the intercept a column", own_intercept, true, {.classes = 2, .l2 = 1, .no_intercept = true}},
             {"parted classes", parted_classes, true, {.classes = 2, .l2 = 1, .no_intercept = true}},
             {"a rare column", rare_column, false, {.classes = 2, .l2 = 1}},
             {"a rare column, from the first row", rare_from_the_first_row, false, {.classes = 2, .l2 = 1}},
             {"a column that is in no sample", last_rows_alone, false, {.classes = 2, .l2 = 1}},
             {"a rare class", rare_class, false, {.classes = 2, .l2 = 1}},
             {"a rare class, first", rare_class_first, false, {.classes = 2, .l2 = 1}},
             {"heavy rows outside the sample", heavy_rows, false, {.classes = 2, .l2 = 1}},
             {"few rows with a weight", few_weights, false, {.classes = 2, .l2 = 1}}};

/* If rows are many, the first step is a sample's solution, unless the sample tells too little of a column,
 * the classes or the weights. The optimum is the same. */
static void many_rows_begin_with_a_sample(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof talls / sizeof *talls; i++) {
        const struct tall *tall = &talls[i];
        const struct run run = on(0, KILN_F64);
        struct question q = tall->question;
        struct beginning beginning = {0};
        const bool weighted = tall->change == few_weights || tall->change == heavy_rows;
        struct problem p = labelled(TALL, NARROW, 2, 1, weighted, 4);
        if (tall->change) tall->change(&p);
        q.control = (kiln_control){count_beginning, &beginning};
        kiln_report report = {0};
        struct solution s = answer(&report, &run, &p, &q);
        const struct verdict found = examine(&p, &q, s.W, s.b);
        if ((beginning.calls > SAMPLED) != tall->sampled)
            fail_msg("%s: %d calls before the first step", tall->what, beginning.calls);
        assert_true(report.converged && fabs(found.objective - report.objective) <= 1e-9 * report.objective);
        assert_true(found.gradient <= 1e-5 * TALL);
        assert_true(report.trace[1].objective < report.trace[0].objective);
        if (i == 0) assert_string_equal(report.solver, "newton (L-BFGS steps)");
        kiln_report_free(&report);
        solution_free(&s);
        problem_free(&p);
    }
}

/* The user is asked between the steps on the sample, which leave nothing behind. */
static void a_sample_is_interrupted(void **state) {
    (void)state;
    const struct run run = on(0, KILN_F64);
    struct problem p = labelled(TALL, NARROW, 2, 1, false, 4);
    struct beginning beginning = {.stop_at = 3};
    const struct question q = {.classes = 2, .l2 = 1, .control = {count_beginning, &beginning}};
    kiln_report report = {0};
    struct solution s = answer(&report, &run, &p, &q);
    assert_int_equal(report.stopped_by, KILN_STOP_CANCELLED);
    assert_true(beginning.calls == 3 && report.iterations == 0 && report.trace_count == 1 &&
                !report.converged);
    assert_true(report.objective == report.trace[0].objective);
    for (int j = 0; j < NARROW; j++) assert_true(s.W[j] == 0);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

/* Bytes that a device of this budget has had in use at most; *sampled: whether there was a sample. */
static int64_t solve_within(bool *sampled, int64_t memory, const struct problem *p) {
    const kiln_device_options options = {.memory = memory};
    kiln_device_statistics used = {.size = sizeof used};
    struct beginning beginning = {0};
    const struct question q = {.classes = 2, .l2 = 1, .control = {count_beginning, &beginning}};
    kiln_report report = {0};
    kiln_device *device;
    assert_ok(kiln_device_open(&device, "cpu", &options));
    struct solution s = answer(&report, &(struct run){device, KILN_F64, KILN_DENSE, NULL}, p, &q);
    assert_true(report.converged);
    *sampled = beginning.calls > SAMPLED;
    assert_ok(kiln_device_get_statistics(device, &used));
    kiln_report_free(&report);
    solution_free(&s);
    kiln_device_close(device);
    return used.memory_peak;
}

/* A budget that has room for all but a sample is enough. */
static void a_budget_without_room_for_a_sample(void **state) {
    (void)state;
    struct problem plain = labelled(TALL, NARROW, 2, 1, false, 4),
                   rare = labelled(TALL, NARROW, 2, 1, false, 4);
    bool sampled;
    rare_column(&rare);
    const int64_t least = solve_within(&sampled, INT64_C(1) << 30, &rare) + (1 << 16);
    assert_false(sampled);
    solve_within(&sampled, least, &plain);
    assert_false(sampled);
    for (int64_t spare = 1 << 18; spare <= 1 << 22; spare += 1 << 18)
        solve_within(&sampled, least + spare, &plain);
    assert_true(sampled);
    problem_free(&plain);
    problem_free(&rare);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_counted),
        cmocka_unit_test(two_classes_of_softmax),
        cmocka_unit_test(steps_too_far_are_taken_back),
        cmocka_unit_test(iterations_are_capped),
        cmocka_unit_test(cancelling_keeps_the_result),
        cmocka_unit_test(many_classes_are_interrupted),
        cmocka_unit_test(separable_data_end),
        cmocka_unit_test(constant_columns),
        cmocka_unit_test(shifts_and_scales_do_not_matter),
        cmocka_unit_test(huge_numbers_end),
        cmocka_unit_test(wild_starts_end),
        cmocka_unit_test(scales_far_apart),
        cmocka_unit_test(a_class_without_weight),
        cmocka_unit_test(nothing_stored),
        cmocka_unit_test(samples_have_the_curvature),
        cmocka_unit_test(many_rows_begin_with_a_sample),
        cmocka_unit_test(a_sample_is_interrupted),
        cmocka_unit_test(a_budget_without_room_for_a_sample),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
