/* Sparse factor analysis: means and objective by their definitions, that it never rises, the gradient at
 * the end, new rows, what is refused; all against plain loops over cells. */
#include "algorithms/on_cpu.h"

enum { M = 50, N = 40, K = 3, R = K + 1 };

struct ratings {
    double value[M][N];
    bool there[M][N];
    int64_t start[M + 1];
    int32_t col[M * N];
    double entries[M * N];
};

/* The last row and the last column are empty. */
static void fill(struct ratings *r, uint64_t seed) {
    memset(r, 0, sizeof *r);
    for (int u = 0; u < M; u++) {
        int64_t at = r->start[u];
        for (int i = 0; i < N; i++) {
            const double noise = uniform(&seed);
            if (uniform(&seed) > 0.4 || u == M - 1 || i == N - 1) continue;
            r->there[u][i] = true;
            r->value[u][i] = (float)(3 + cos(u * 0.7) * sin(i * 1.3) + 0.02 * u - 0.03 * i + noise);
            r->col[at] = i;
            r->entries[at++] = r->value[u][i];
        }
        r->start[u + 1] = at;
    }
}

struct fit {
    kiln_matrix *R, *A, *B;
    double a[M * R], b[N * R];
    kiln_report report;
};

static void get(double *values, const kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
}

static void fit_run(struct fit *fit, const struct ratings *r, kiln_type type,
                    const kiln_sfa_options *options) {
    kiln_matrix *wide = NULL;
    memset(fit, 0, sizeof *fit);
    assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, M, N, r->start, r->col, r->entries), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&fit->R, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    assert_int_equal(kiln_matrix_dense(&fit->A, device, type, M, R, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&fit->B, device, type, N, R, NULL), KILN_OK);
    assert_int_equal(kiln_sfa(fit->A, fit->B, fit->R, options, &fit->report), KILN_OK);
    get(fit->a, fit->A);
    get(fit->b, fit->B);
}

static void fit_free(struct fit *fit) {
    kiln_matrix_free(fit->R);
    kiln_matrix_free(fit->A);
    kiln_matrix_free(fit->B);
    kiln_report_free(&fit->report);
}

static double residual(const struct fit *fit, const struct ratings *r, int u, int i) {
    double d =
        r->value[u][i] - kiln_report_figure(&fit->report, "mean") - fit->a[u * R + K] - fit->b[i * R + K];
    for (int k = 0; k < K; k++) d -= fit->a[u * R + k] * fit->b[i * R + k];
    return d;
}

static double objective_of(const struct fit *fit, const struct ratings *r, double l2) {
    double sum = 0;
    for (int u = 0; u < M; u++)
        for (int i = 0; i < N; i++)
            if (r->there[u][i]) sum += pow(residual(fit, r, u, i), 2) / 2;
    for (int k = 0; k < K; k++) {
        for (int u = 0; u < M; u++) sum += l2 / 2 * pow(fit->a[u * R + k], 2);
        for (int i = 0; i < N; i++) sum += l2 / 2 * pow(fit->b[i * R + k], 2);
    }
    return sum;
}

/* The means by their definition, from all cells. */
static void assert_means(const struct fit *fit, const struct ratings *r, double damping, double digits) {
    double mean = 0, row[M] = {0};
    int64_t count = 0;
    for (int u = 0; u < M; u++)
        for (int i = 0; i < N; i++)
            if (r->there[u][i]) mean += r->value[u][i], count++;
    mean /= (double)count;
    assert_true(fabs(mean - kiln_report_figure(&fit->report, "mean")) <= digits);
    for (int u = 0; u < M; u++) {
        double sum = 0, entries = 0;
        for (int i = 0; i < N; i++)
            if (r->there[u][i]) sum += r->value[u][i] - mean, entries++;
        row[u] = entries > 0 ? sum / (entries + damping) : 0;
        assert_true(fabs(row[u] - fit->a[u * R + K]) <= digits);
    }
    for (int i = 0; i < N; i++) {
        double sum = 0, entries = 0;
        for (int u = 0; u < M; u++)
            if (r->there[u][i]) sum += r->value[u][i] - mean - row[u], entries++;
        assert_true(fabs((entries > 0 ? sum / (entries + damping) : 0) - fit->b[i * R + K]) <= digits);
    }
}

static void objective_as_defined_and_never_rising(void **state) {
    (void)state;
    static const kiln_sfa_options cases[] = {
        {.l2 = 2, .tolerance = 1e-7, .max_iterations = 1000},
        {.l2 = 0.3, .damping = 20, .tolerance = 1e-7, .max_iterations = 1000},
        {.l2 = 0.05, .tolerance = 1e-7, .max_iterations = 1000, .seed = 3}};
    struct ratings r;
    struct fit fit;
    fill(&r, 1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            const double digits = type == KILN_F32 ? 1e-5 : 1e-12;
            fit_run(&fit, &r, type, &cases[c]);
            assert_true(fit.report.converged && fit.report.iterations > 5);
            assert_means(&fit, &r, cases[c].damping > 0 ? cases[c].damping : 5,
                         type == KILN_F32 ? 1e-5 : 1e-12);
            const double objective = objective_of(&fit, &r, cases[c].l2);
            assert_true(fabs(fit.report.objective - objective) <= digits * objective);
            kiln_als_verification found = {0};
            assert_int_equal(kiln_verify_sfa(&found, fit.R, fit.A, fit.B,
                                             kiln_report_figure(&fit.report, "mean"), &cases[c]),
                             KILN_OK);
            assert_true(fabs(found.objective - objective) <= 1e-12 * objective);
            for (int64_t t = 1; t < fit.report.trace_count; t++)
                assert_true(fit.report.trace[t].objective <= fit.report.trace[t - 1].objective);
            fit_free(&fit);
        }
}

/* At the end the gradient has vanished, as far as f64 tells: the run went on until rounding stopped it. */
static void ends_at_a_stationary_point(void **state) {
    (void)state;
    const double l2 = 1;
    struct ratings r;
    struct fit fit;
    fill(&r, 2);
    fit_run(&fit, &r, KILN_F64, &(kiln_sfa_options){.l2 = l2, .tolerance = 1e-15, .max_iterations = 5000});
    double largest = 0;
    for (int k = 0; k < K; k++) {
        for (int u = 0; u < M; u++) {
            double g = l2 * fit.a[u * R + k];
            for (int i = 0; i < N; i++)
                if (r.there[u][i]) g -= residual(&fit, &r, u, i) * fit.b[i * R + k];
            largest = fmax(largest, fabs(g));
        }
        for (int i = 0; i < N; i++) {
            double g = l2 * fit.b[i * R + k];
            for (int u = 0; u < M; u++)
                if (r.there[u][i]) g -= residual(&fit, &r, u, i) * fit.a[u * R + k];
            largest = fmax(largest, fabs(g));
        }
    }
    assert_true(fit.report.converged);
    assert_true(largest <= 1e-4);
    fit_free(&fit);
}

/* At the end a row of the training data, folded in, gets the factors that it has, and its mean; a warm
 * start stays. */
static void models_and_warm_start(void **state) {
    (void)state;
    kiln_sfa_options options = {.l2 = 1, .tolerance = 1e-14, .max_iterations = 5000};
    struct ratings r;
    struct fit fit;
    kiln_model *model = NULL;
    kiln_matrix *A = NULL;
    kiln_report report = {0};
    double a[M * R], scores[M];
    int64_t columns[M];
    fill(&r, 3);
    fit_run(&fit, &r, KILN_F64, &options);
    const double mean = kiln_report_figure(&fit.report, "mean");
    assert_int_equal(kiln_sfa_model(&model, fit.A, fit.B, mean, &options), KILN_OK);
    assert_int_equal(kiln_transform(&A, model, fit.R), KILN_OK);
    get(a, A);
    for (int e = 0; e < M * R; e++) assert_true(fabs(a[e] - fit.a[e]) <= 1e-4);
    assert_int_equal(kiln_recommend(columns, scores, 1, model, A, fit.R), KILN_OK);
    for (int u = 0; u < M; u++) assert_true(columns[u] >= 0 && !r.there[u][columns[u]]);
    const double objective = fit.report.objective;
    options.warm_start = 1;
    options.max_iterations = 3;
    assert_int_equal(kiln_sfa(fit.A, fit.B, fit.R, &options, &report), KILN_OK);
    assert_true(fabs(report.objective - objective) <= 1e-10 * objective);
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_model_free(model);
    fit_free(&fit);
}

static int stop_at_second(void *user, const kiln_progress *now) {
    (void)user;
    return now->done >= 2;
}

static void refusals_and_stopping(void **state) {
    (void)state;
    struct ratings r;
    struct fit fit;
    fill(&r, 6);
    fit_run(&fit, &r, KILN_F64, &(kiln_sfa_options){.control = {stop_at_second, NULL}});
    assert_true(fit.report.stopped_by == KILN_STOP_CANCELLED && fit.report.iterations == 2);
    static const kiln_sfa_options wrong[] = {
        {.l2 = -2}, {.l2 = INFINITY}, {.damping = -3}, {.tolerance = -1}, {.max_iterations = -1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(kiln_sfa(fit.A, fit.B, fit.R, &wrong[i], NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_sfa(fit.A, fit.A, fit.R, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_sfa(fit.A, fit.B, fit.A, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_sfa(fit.A, fit.B, fit.R, &(kiln_sfa_options){.test = fit.A}, NULL),
                     KILN_ERR_ARGUMENT);
    kiln_matrix *bad = NULL;
    r.entries[5] = NAN;
    assert_int_equal(kiln_matrix_csr(&bad, device, KILN_F64, M, N, r.start, r.col, r.entries), KILN_OK);
    assert_int_equal(kiln_sfa(fit.A, fit.B, bad, NULL, NULL), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "is nan"));
    kiln_matrix_free(bad);
    fit_free(&fit);
}

struct small {
    int64_t rows, columns, factors;
    double l2;
    const int64_t *start;
    const int32_t *col;
    kiln_type type;
};

/* A run that says converged gains as little where it goes on. */
static void check_gains_no_more(const struct small *of, const double *value, int run) {
    kiln_matrix *wide = NULL, *ratings = NULL, *A = NULL, *B = NULL;
    kiln_report first = {.size = sizeof first}, again = {.size = sizeof again};
    kiln_sfa_options options = {.l2 = of->l2};
    assert_int_equal(
        kiln_matrix_csr(&wide, device, KILN_F64, of->rows, of->columns, of->start, of->col, value), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&ratings, device, of->type, wide), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&A, device, of->type, of->rows, of->factors + 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, of->type, of->columns, of->factors + 1, NULL), KILN_OK);
    assert_int_equal(kiln_sfa(A, B, ratings, &options, &first), KILN_OK);
    options.warm_start = 1;
    options.max_iterations = 1;
    assert_int_equal(kiln_sfa(A, B, ratings, &options, &again), KILN_OK);
    if (first.converged && again.residual > 3 * first.tolerance)
        fail_msg("run %d: %g, and then %g", run, first.residual, again.residual);
    if (first.residual < 0 || again.residual < 0) /* a rise that is rounding is no gain */
        fail_msg("run %d: residuals %g and %g", run, first.residual, again.residual);
    kiln_report_free(&first);
    kiln_report_free(&again);
    kiln_matrix *const all[] = {wide, ratings, A, B};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

/* Few entries of ten thousands, hardly penalised, where long steps and short ones take turns. */
static void converged_runs_gain_no_more(void **state) {
    static const int64_t start[] = {0, 3, 3, 4};
    static const int32_t col[] = {1, 3, 4, 4};
    static const struct small of = {3, 6, 1, 0.1, start, col, KILN_F64};
    (void)state;
    for (int run = 0; run < 20; run++) {
        double value[] = {31650.193318469945, 19713.896371426225, 34850.197633597934, 40926.37463649351};
        uint64_t seed = (uint64_t)run;
        for (int e = 0; e < 4 && run > 0; e++) value[e] = 1e4 * (2 + 2 * uniform(&seed));
        check_gains_no_more(&of, value, run);
    }
}

/* In f32 a step that is many times the former one may be too long, as the polynomial is known about that
 * alone: a shorter one still gains. */
/* A run that has converged ends with an exact sweep, whose B has P^T A = l2 B, P the residuals. Columns made
 * equally long after it keep P, and leave P^T a_k = l2 c b_k with some c > 0 for each factor k. Where the
 * penalty is small a step of conjugate gradient gains little long before that. Cholesky's backward error is
 * some K^2 eps of the sums of |P||A| and more, of which 1e-9 is taken. */
static void converged_runs_end_with_an_exact_sweep(void **state) {
    (void)state;
    for (int run = 0; run < 4; run++) {
        struct ratings r;
        struct fit fit;
        const double l2 = run % 2 ? 0.1 : 0.001;
        const kiln_sfa_options options = {.l2 = l2, .seed = run, .max_iterations = 5000};
        fill(&r, 7 + (uint64_t)run);
        fit_run(&fit, &r, KILN_F64, &options);
        assert_true(fit.report.converged);
        for (int k = 0; k < K; k++) {
            double product[N] = {0}, size[N] = {0}, along = 0, squares = 0, length = 0;
            for (int u = 0; u < M; u++)
                for (int i = 0; i < N; i++) {
                    if (!r.there[u][i]) continue;
                    product[i] += residual(&fit, &r, u, i) * fit.a[u * R + k];
                    size[i] += fabs(r.value[u][i] * fit.a[u * R + k]);
                }
            for (int i = 0; i < N; i++) {
                along += product[i] * fit.b[i * R + k];
                squares += pow(fit.b[i * R + k], 2);
            }
            assert_true(along > 0);
            for (int i = 0; i < N; i++)
                assert_true(fabs(product[i] - along / squares * fit.b[i * R + k]) <= 1e-9 * size[i]);
            for (int u = 0; u < M; u++) length += pow(fit.a[u * R + k], 2);
            assert_true(fabs(length / squares - 1) < 0.005); /* scales within 1e-3 of 1 are left */
        }
        fit_free(&fit);
    }
}

static void steps_that_rise_are_shortened(void **state) {
    static const int64_t start[] = {0, 1, 2};
    static const int32_t col[] = {1, 1};
    static const struct small of = {2, 6, 3, 1, start, col, KILN_F32};
    (void)state;
    for (int run = 0; run < 200; run++) {
        double value[] = {6656.7587890625, 10107.83203125};
        uint64_t seed = (uint64_t)run;
        for (int e = 0; e < 2 && run > 0; e++) value[e] = 1e4 * (0.5 + uniform(&seed));
        check_gains_no_more(&of, value, run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objective_as_defined_and_never_rising),
        cmocka_unit_test(ends_at_a_stationary_point),
        cmocka_unit_test(converged_runs_gain_no_more),
        cmocka_unit_test(converged_runs_end_with_an_exact_sweep),
        cmocka_unit_test(steps_that_rise_are_shortened),
        cmocka_unit_test(models_and_warm_start),
        cmocka_unit_test(refusals_and_stopping),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
