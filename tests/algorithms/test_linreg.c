/* kiln_linreg with every option against the dense reference, dense and CSR, f32 and f64, on the CPU and on
 * OpenCL. */
#include <float.h>

#include "algorithms/least_squares.h"
#include "core/limits.h"

static kiln_device *devices[2];
static int device_count;

static const struct shape {
    const char *what;
    bool everywhere; /* not only on the CPU: building kernels takes its time */
    int m, n, k;
    double density;
    bool weighted;
    kiln_linreg_options options;
} shapes[] = {
    {"plain", false, 60, 7, 1, 1, false, {.l2 = 0}},
    {"no intercept", false, 60, 7, 1, 1, false, {.no_intercept = 1}},
    {"l2", true, 60, 7, 1, 1, false, {.l2 = 3}},
    {"l2, no intercept", false, 60, 7, 1, 1, false, {.l2 = 3, .no_intercept = 1}},
    {"l2, standardized", false, 60, 7, 2, 1, false, {.l2 = 3, .standardize = 1}},
    {"l2, standardized, weights", true, 90, 7, 2, 1, true, {.l2 = 3, .standardize = 1}},
    {"standardized, no intercept", false, 60, 7, 1, 1, false, {.l2 = 3, .standardize = 1, .no_intercept = 1}},
    {"no preconditioner", false, 60, 7, 1, 1, false, {.l2 = 3, .standardize = 1, .no_preconditioner = 1}},
    {"weights", false, 90, 7, 1, 1, true, {.l2 = 0}},
    {"weights, no intercept", false, 90, 7, 3, 1, true, {.no_intercept = 1}},
    {"weights, l2, no preconditioner", false, 90, 7, 3, 1, true, {.l2 = 1, .no_preconditioner = 1}},
    {"sparse", false, 400, 30, 1, 0.2, false, {.l2 = 0}},
    {"sparse, 5 targets", true, 400, 30, 5, 0.2, false, {.l2 = 0}},
    {"sparse, weights, l2", false, 400, 30, 2, 0.2, true, {.l2 = 0.5}},
    {"more columns than rows", false, 12, 20, 2, 1, false, {.l2 = 2}},
    {"one column", false, 40, 1, 1, 1, false, {.l2 = 0}},
    {"one row", false, 1, 3, 1, 1, false, {.l2 = 1}},
    {"one row, one column", false, 1, 1, 1, 1, false, {.no_intercept = 1}},
    {"64 targets", false, 50, 4, 64, 1, false, {.l2 = 0}},
    {"65 targets", false, 50, 4, 65, 1, true, {.l2 = 0.1}},
};

/* The relative residual of the normal equations bounds the error of the coefficients up to their condition,
 * below 100 for all of these. */
static void check_shape(const struct shape *shape, const struct run *run, kiln_linreg_solver solver) {
    struct problem p = problem_new(shape->m, shape->n, shape->k, shape->density, shape->weighted, 7);
    kiln_linreg_options options = shape->options;
    options.solver = solver;
    options.tolerance = run->type == KILN_F32 ? 1e-5 : 1e-12;
    kiln_report report = {0};
    struct solution want = reference(&p, &options), got = solve(&report, run, &p, &options);
    kiln_device_info info = {0};
    assert_ok(kiln_device_get_info(run->device, &info));
    const double off = difference(&got, &want);
    if (!report.converged || report.stopped_by != KILN_STOP_TOLERANCE || !(off <= 100 * options.tolerance))
        fail_msg("%s, %s, %s, %s, %s: %s after %lld iterations, residual %g, coefficients off by %g",
                 shape->what, info.name, report.solver, run->type == KILN_F32 ? "f32" : "f64",
                 run->format == KILN_CSR ? "CSR" : "dense", kiln_stop_name(report.stopped_by),
                 (long long)report.iterations, report.residual, off);
    assert_true(report.residual <= report.tolerance && report.tolerance == options.tolerance);
    if (solver == KILN_LINREG_CG)
        assert_string_equal(report.solver, "cg");
    else
        assert_true(report.iterations == 0 || strncmp(report.solver, "cholesky", 8) == 0);
    kiln_report_free(&report);
    solution_free(&got);
    solution_free(&want);
    problem_free(&p);
}

static void agrees_with_the_reference(void **state) {
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            if (d > 0 && !shapes[i].everywhere) continue;
            for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
                for (kiln_format format = KILN_DENSE; format <= KILN_CSR; format++) {
                    const struct run run = {devices[d], type, format, NULL};
                    check_shape(&shapes[i], &run, KILN_LINREG_CG);
                    if (shapes[i].options.no_preconditioner) continue;
                    check_shape(&shapes[i], &run, KILN_LINREG_CHOLESKY);
                }
        }
}

/* Objective, rss, tss and r2 as defined in kiln.h, from the returned coefficients. */
static void report_describes_the_result(void **state) {
    (void)state;
    for (int intercept = 0; intercept < 2; intercept++) {
        struct problem p = problem_new(80, 5, 2, 1, true, 3);
        const kiln_linreg_options options = {.l2 = 2, .no_intercept = !intercept, .tolerance = 1e-9};
        kiln_report report = {0};
        struct solution s =
            solve(&report, &(struct run){devices[0], KILN_F64, KILN_DENSE, NULL}, &p, &options);
        double rss = 0, tss = 0, penalty = 0, total = 0, mean[2] = {0};
        for (int i = 0; i < p.m; i++) {
            total += p.weights[i];
            for (int c = 0; c < 2; c++) mean[c] += p.weights[i] * p.y[i * 2 + c];
        }
        for (int i = 0; i < p.m; i++)
            for (int c = 0; c < 2; c++) {
                double r = p.y[i * 2 + c] - (s.b ? s.b[c] : 0), d = p.y[i * 2 + c] - mean[c] / total;
                for (int j = 0; j < p.n; j++) r -= p.X[i * p.n + j] * s.W[j * 2 + c];
                rss += p.weights[i] * r * r;
                tss += p.weights[i] * d * d;
            }
        for (int e = 0; e < p.n * 2; e++) penalty += s.W[e] * s.W[e];
        assert_true(fabs(kiln_report_figure(&report, "rss") - rss) <= 1e-12 * rss);
        assert_true(fabs(kiln_report_figure(&report, "tss") - tss) <= 1e-12 * tss);
        assert_true(fabs(kiln_report_figure(&report, "r2") - (1 - rss / tss)) <= 1e-12);
        assert_true(fabs(report.objective - (0.5 * rss + 0.5 * options.l2 * penalty)) <=
                    1e-12 * report.objective);
        /* The trace counts from the start, never gains on the objective, and ends with the report's figures.
         */
        assert_int_equal(report.trace_count, report.iterations + 1);
        for (int64_t i = 0; i < report.trace_count; i++) {
            assert_int_equal(report.trace[i].iteration, i);
            if (i == 0) continue;
            assert_true(report.trace[i].objective <= report.trace[i - 1].objective * (1 + 1e-12));
            assert_true(report.trace[i].seconds >= report.trace[i - 1].seconds);
        }
        assert_true(report.trace[report.trace_count - 1].objective == report.objective);
        assert_true(report.trace[report.trace_count - 1].residual == report.residual);
        assert_true(report.trace[0].residual == 1 &&
                    report.seconds >= report.trace[report.trace_count - 1].seconds);
        kiln_report_free(&report);
        assert_null(report.trace);
        solution_free(&s);
        problem_free(&p);
    }
}

/* The criterion is a statement about the true gradient: compute that from the returned coefficients. */
static void criterion_holds_on_the_result(void **state) {
    (void)state;
    struct problem p = problem_new(200, 12, 1, 1, false, 5);
    const kiln_linreg_options options = {.no_intercept = 1, .tolerance = 1e-7, .solver = KILN_LINREG_CG};
    kiln_report report = {0};
    struct solution s = solve(&report, &(struct run){devices[0], KILN_F64, KILN_DENSE, NULL}, &p, &options);
    double norm = 0, norm_zero = 0;
    for (int j = 0; j < p.n; j++) {
        double g = 0, g_zero = 0, diagonal = 0;
        for (int i = 0; i < p.m; i++) {
            double r = p.y[i];
            for (int l = 0; l < p.n; l++) r -= p.X[i * p.n + l] * s.W[l];
            g += p.X[i * p.n + j] * r;
            g_zero += p.X[i * p.n + j] * p.y[i];
            diagonal += p.X[i * p.n + j] * p.X[i * p.n + j];
        }
        norm += g * g / diagonal;
        norm_zero += g_zero * g_zero / diagonal;
    }
    assert_true(report.converged && report.residual <= 1e-7);
    assert_true(fabs(sqrt(norm / norm_zero) - report.residual) <= 1e-3 * report.residual);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

static void warm_start_goes_on(void **state) {
    (void)state;
    struct problem p = problem_new(200, 25, 70, 1, false, 9);
    struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    kiln_report report = {0};
    kiln_linreg_options options = {.l2 = 1, .solver = KILN_LINREG_CG};
    struct solution first = solve(&report, &run, &p, &options);
    assert_true(report.iterations > 5);
    kiln_report_free(&report);
    run.start = &first;
    struct solution again = solve(&report, &run, &p, &options);
    assert_true(report.converged && report.iterations <= 2); /* one a block of targets at most */
    assert_true(difference(&again, &first) <= 1e-8);
    kiln_report_free(&report);
    options.l2 = 1.001; /* a problem nearby starts near its solution */
    struct solution nearby = solve(&report, &run, &p, &options), want = reference(&p, &options);
    assert_true(report.trace[0].residual < 1e-2 && difference(&nearby, &want) < 1e-8);
    kiln_report_free(&report);
    solution_free(&first);
    solution_free(&again);
    solution_free(&nearby);
    solution_free(&want);
    problem_free(&p);
}

static void iterations_are_capped(void **state) {
    (void)state;
    struct problem p = problem_new(200, 25, 1, 1, false, 11);
    struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    kiln_report report = {0};
    double before = INFINITY;
    kiln_report all = {0};
    struct solution converged = solve(&all, &run, &p, &(kiln_linreg_options){.solver = KILN_LINREG_CG});
    for (int64_t cap = 1; cap <= 4; cap++) {
        struct solution s =
            solve(&report, &run, &p, &(kiln_linreg_options){.max_iterations = cap, .solver = KILN_LINREG_CG});
        assert_int_equal(report.iterations, cap);
        assert_int_equal(report.stopped_by, KILN_STOP_ITERATIONS);
        assert_int_equal(report.converged, 0);
        assert_true(report.objective < before && report.residual > report.tolerance);
        /* The trace says by recurrence what stopping there gives. */
        assert_true(fabs(all.trace[cap].objective - report.objective) <= 1e-10 * report.objective);
        assert_true(fabs(all.trace[cap].residual - report.residual) <= 1e-8 * report.residual);
        before = report.objective;
        kiln_report_free(&report);
        solution_free(&s);
    }
    kiln_report_free(&all);
    solution_free(&converged);
    problem_free(&p);
}

struct watcher {
    int calls, stop_at;
    int64_t bytes;
};

static int watch(void *user, const kiln_progress *now) {
    struct watcher *watcher = user;
    assert_string_equal(now->phase, "solve");
    assert_int_equal(now->done, watcher->calls);
    assert_true(now->total >= now->done && now->bytes > watcher->bytes && isfinite(now->objective));
    watcher->bytes = now->bytes;
    return ++watcher->calls > watcher->stop_at;
}

static void cancelling_keeps_the_result(void **state) {
    (void)state;
    struct problem p = problem_new(200, 25, 1, 1, false, 11);
    struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    for (int stop_at = 0; stop_at <= 3; stop_at++) {
        struct watcher watcher = {.stop_at = stop_at};
        kiln_report report = {0}, capped = {0};
        struct solution s =
            solve(&report, &run, &p,
                  &(kiln_linreg_options){.control = {watch, &watcher}, .solver = KILN_LINREG_CG});
        assert_int_equal(report.stopped_by, KILN_STOP_CANCELLED);
        assert_int_equal(report.converged, 0);
        assert_int_equal(report.iterations, stop_at);
        if (stop_at > 0) { /* the same as if that many iterations had been asked for */
            struct solution t =
                solve(&capped, &run, &p,
                      &(kiln_linreg_options){.max_iterations = stop_at, .solver = KILN_LINREG_CG});
            assert_true(difference(&s, &t) == 0 && report.objective == capped.objective);
            kiln_report_free(&capped);
            solution_free(&t);
        }
        kiln_report_free(&report);
        solution_free(&s);
    }
    problem_free(&p);
}

static int stop_factor(void *user, const kiln_progress *now) {
    int64_t *done = user;
    if (strcmp(now->phase, "factor row") != 0) return 0;
    *done = now->done;
    assert_true(now->done > 0 && now->done < now->total);
    return 1;
}

/* A large factor is no reason to wait: the user is asked inside it, and the start is the result. */
static void a_factor_can_be_cancelled(void **state) {
    (void)state;
    enum { COLS = 3000 };
    const struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    struct problem p = problem_new(4, COLS, 1, 1, false, 31);
    int64_t done = 0;
    kiln_report report = {0};
    struct solution s = solve(
        &report, &run, &p,
        &(kiln_linreg_options){.l2 = 1, .control = {stop_factor, &done}, .solver = KILN_LINREG_CHOLESKY});
    solution_free(&s);
    kiln_report_free(&report);
    problem_free(&p);
    (void)done;
}

/* Holds what rounding alone may make of figures at a solution: m + n + 8 operations at most follow one
 * another in an element of each. Of the relative residual ||D^-1 g|| / ||D^-1 g_0||, D the centred
 * columns' norms and g_0 the gradient at W = 0, the gradient's elements sum_i x_ij r_i; and of the
 * objective r. r / 2 over all targets. With r_i = y_i - x_i. w - b come terms of size |y_i| + |x_i|. |w| +
 * |b|. */
struct rounding {
    double residual, objective;
};

static struct rounding rounding_at(const struct problem *p, const struct solution *s) {
    const double unit = (p->m + p->n + 8) * DBL_EPSILON;
    struct rounding most = {0, 0};
    for (int c = 0; c < p->k; c++) {
        double gradient = 0, first = 0, mean_y = 0;
        for (int i = 0; i < p->m; i++) mean_y += p->y[i * p->k + c] / p->m;
        for (int j = 0; j < p->n; j++) {
            double mean = 0, square = 0, g = 0, terms = 0;
            for (int i = 0; i < p->m; i++) mean += p->X[i * p->n + j] / p->m;
            for (int i = 0; i < p->m; i++) {
                const double *x = &p->X[i * p->n], y = p->y[i * p->k + c];
                double r = y - s->b[c], size = fabs(y) + fabs(s->b[c]);
                for (int l = 0; l < p->n; l++)
                    r -= x[l] * s->W[l * p->k + c], size += fabs(x[l] * s->W[l * p->k + c]);
                square += (x[j] - mean) * (x[j] - mean);
                g += (x[j] - mean) * (y - mean_y);
                terms += (fabs(x[j]) + fabs(mean)) * size;
                if (j == 0) most.objective += unit * (fabs(r) + unit * size) * size;
            }
            gradient += pow(unit * terms, 2) / square;
            first += g * g / square;
        }
        most.residual = fmax(most.residual, sqrt(gradient / first));
    }
    return most;
}

/* A factor that rounding has harmed is noticed: columns that are the same but for the last digits have none,
 * and the result is as good as that of conjugate gradient, but for rounding. By rows is for a penalty. */
static void a_factor_that_fails_gives_way(void **state) {
    (void)state;
    const struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    for (double apart = 0; apart<1e-3; apart = apart> 0 ? apart * 1e3 : 1e-12) {
        struct problem p = problem_new(300, 6, 2, 1, false, 21);
        for (int i = 0; i < p.m; i++) p.X[i * p.n + 5] = p.X[i * p.n] * (1 + apart * (i % 5));
        kiln_report report = {0}, cg = {0};
        struct solution s = solve(&report, &run, &p, &(kiln_linreg_options){.solver = KILN_LINREG_CHOLESKY});
        struct solution t = solve(&cg, &run, &p, &(kiln_linreg_options){.solver = KILN_LINREG_CG});
        const struct rounding of_s = rounding_at(&p, &s), of_t = rounding_at(&p, &t);
        assert_true(report.converged || report.residual <= of_s.residual);
        assert_true(report.objective <= cg.objective + of_s.objective + of_t.objective);
        kiln_report_free(&report);
        kiln_report_free(&cg);
        solution_free(&s);
        solution_free(&t);
        problem_free(&p);
    }
    kiln_report report = {0};
    struct solution s;
    struct problem wide = problem_new(20, 400, 2, 1, false, 22);
    for (int l2 = 0; l2 < 2; l2++) {
        s = solve(&report, &run, &wide, &(kiln_linreg_options){.l2 = l2, .solver = KILN_LINREG_CHOLESKY});
        assert_true(report.converged && (strcmp(report.solver, "cholesky-rows") == 0) == (l2 > 0));
        kiln_report_free(&report);
        solution_free(&s);
    }
    problem_free(&wide);
}

/* A factor of few rows is little work, and a weak penalty's iterations may be many. */
static void few_rows_take_a_factor(void **state) {
    (void)state;
    const struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    struct problem wide = problem_new(150, 900, 1, 1, false, 24);
    kiln_report report = {0};
    struct solution s = solve(&report, &run, &wide, &(kiln_linreg_options){.l2 = 1e-3});
    assert_true(report.converged && report.iterations <= 5);
    assert_string_equal(report.solver, "cholesky-rows");
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&wide);
}

/* A factor that is asked for is that of the smaller matrix, and what the device has no memory for is an
 * error. */
static void a_factor_without_room(void **state) {
    (void)state;
    enum { ROWS = 4, COLS = 5000 };
    const kiln_device_options little = {.memory = 64 << 20};
    struct run run = {NULL, KILN_F64, KILN_CSR, NULL};
    struct problem p = problem_new(ROWS, COLS, 1, 1, false, 23);
    kiln_report report = {0};
    assert_ok(kiln_device_open(&run.device, "cpu", &little));
    struct solution s =
        solve(&report, &run, &p, &(kiln_linreg_options){.l2 = 1, .solver = KILN_LINREG_CHOLESKY});
    assert_string_equal(report.solver, "cholesky-rows");
    kiln_report_free(&report);
    solution_free(&s);
    const kiln_linreg_options columns = {.solver = KILN_LINREG_CHOLESKY};
    assert_int_equal(try_solve(&s, &report, &run, &p, &columns), KILN_ERR_NOMEM);
    kiln_device_close(run.device);
    problem_free(&p);
}

static int open_devices(void **state) {
    (void)state;
    static const char *const names[] = {"cpu", "opencl"};
    ki_limits.gram_columns = INT64_MAX; /* OpenCL walks here as a GPU does */
    for (int i = 0; i < 2; i++) {
        if (kiln_device_open(&devices[device_count], names[i], NULL) == KILN_OK)
            device_count++;
        else
            printf("skip %s: %s\n", names[i], kiln_last_error()->message);
    }
    return device_count == 0;
}

static int close_devices(void **state) {
    (void)state;
    while (device_count > 0) kiln_device_close(devices[--device_count]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_reference),     cmocka_unit_test(report_describes_the_result),
        cmocka_unit_test(criterion_holds_on_the_result), cmocka_unit_test(warm_start_goes_on),
        cmocka_unit_test(iterations_are_capped),         cmocka_unit_test(cancelling_keeps_the_result),
        cmocka_unit_test(a_factor_can_be_cancelled),     cmocka_unit_test(a_factor_that_fails_gives_way),
        cmocka_unit_test(few_rows_take_a_factor),        cmocka_unit_test(a_factor_without_room),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
