/* Gamma-Poisson factors and KL-NMF: each step against plain loops, the objective by its definition over all
 * cells, that it never rises, new documents, perplexity, what is refused. */
#include "topic_data.h"

#include <float.h>

struct fit {
    kiln_matrix *X, *A, *B;
    double a[M * K], b[N * K];
    kiln_report report;
};

static void fit_run(struct fit *fit, const struct counts *counts, kiln_type type,
                    const kiln_gap_options *options, const double *a, const double *b) {
    memset(fit, 0, sizeof *fit);
    fit->X = matrix_of(counts, type);
    fit->A = dense_of(type, M, K, a);
    fit->B = dense_of(type, N, K, b);
    assert_int_equal(kiln_gap(fit->A, fit->B, fit->X, options, &fit->report), KILN_OK);
    get(fit->a, fit->A);
    get(fit->b, fit->B);
}

static void fit_free(struct fit *fit) {
    kiln_matrix_free(fit->X);
    kiln_matrix_free(fit->A);
    kiln_matrix_free(fit->B);
    kiln_report_free(&fit->report);
}

static double mean_of(const double *a, const double *b, int d, int i) {
    double sum = 0;
    for (int c = 0; c < K; c++) sum += a[d * K + c] * b[i * K + c];
    return sum;
}

static double objective_of(const struct counts *counts, const double *a, const double *b, double shape,
                           double rate) {
    double sum = 0;
    for (int d = 0; d < M; d++)
        for (int i = 0; i < N; i++) {
            const double x = counts->x[d][i], l = mean_of(a, b, d, i);
            sum += l + (x > 0 ? x * log(x / fmax(l, 1e-290)) - x : 0);
        }
    for (int e = 0; e < M * K; e++) sum += rate * a[e] - (shape > 1 ? (shape - 1) * log(a[e]) : 0);
    return sum;
}

/* One iteration as the papers have it; unit: topics sum to 1. */
static void iterate(double *a, double *b, const struct counts *counts, double shape, double rate, bool unit) {
    double next[M * K], sums[K] = {0}, totals[K] = {0};
    for (int i = 0; i < N; i++)
        for (int c = 0; c < K; c++) sums[c] += b[i * K + c];
    for (int d = 0; d < M; d++)
        for (int c = 0; c < K; c++) {
            double y = 0;
            for (int i = 0; i < N; i++)
                if (counts->x[d][i] > 0) y += counts->x[d][i] / mean_of(a, b, d, i) * b[i * K + c];
            next[d * K + c] = (a[d * K + c] * y + shape - 1) / (sums[c] + rate);
        }
    memcpy(a, next, sizeof next);
    memset(sums, 0, sizeof sums);
    for (int d = 0; d < M; d++)
        for (int c = 0; c < K; c++) sums[c] += a[d * K + c];
    for (int i = 0; i < N; i++)
        for (int c = 0; c < K; c++) {
            double z = 0;
            for (int d = 0; d < M; d++)
                if (counts->x[d][i] > 0) z += counts->x[d][i] / mean_of(a, b, d, i) * a[d * K + c];
            next[i * K + c] = b[i * K + c] * z;
            totals[c] += next[i * K + c];
        }
    for (int e = 0; e < N * K; e++) b[e] = next[e] / (unit ? totals[e % K] : sums[e % K]);
}

static void start(double *a, double *b, uint64_t seed, bool unit) {
    double sums[K] = {0};
    for (int e = 0; e < M * K; e++) a[e] = (float)(0.1 + uniform(&seed));
    for (int e = 0; e < N * K; e++) sums[e % K] += b[e] = (float)(0.1 + uniform(&seed));
    for (int e = 0; unit && e < N * K; e++) b[e] /= sums[e % K];
}

static const struct {
    int prior;
    double shape, rate;
} priors[] = {{KILN_GAP_NO_PRIOR, 1, 0}, {KILN_GAP_GAMMA, 1.1, 1}, {KILN_GAP_GAMMA, 3, 0.5}};
enum { PRIORS = sizeof priors / sizeof *priors };

static kiln_gap_options options_of(int prior, int64_t iterations) {
    return (kiln_gap_options){.prior = priors[prior].prior,
                              .shape = priors[prior].shape,
                              .rate = priors[prior].rate,
                              .max_iterations = iterations,
                              .tolerance = 1e-12,
                              .warm_start = 1};
}

static void steps_are_those_of_the_papers(void **state) {
    (void)state;
    struct counts counts;
    double a[M * K], b[N * K];
    fill(&counts, 5);
    for (int type = KILN_F32; type <= KILN_F64; type++)
        for (int p = 0; p < PRIORS; p++) {
            const bool unit = priors[p].prior == KILN_GAP_GAMMA;
            const double slack = type == KILN_F32 ? 1e-3 : 1e-11;
            const kiln_gap_options options = options_of(p, 7);
            struct fit fit;
            start(a, b, 9, unit);
            fit_run(&fit, &counts, (kiln_type)type, &options, a, b);
            assert_int_equal(fit.report.iterations, 7);
            assert_near(fit.report.trace[0].objective,
                        objective_of(&counts, a, b, priors[p].shape, priors[p].rate), slack);
            for (int step = 0; step < 7; step++)
                iterate(a, b, &counts, priors[p].shape, priors[p].rate, unit);
            for (int e = 0; e < M * K; e++) assert_true(fabs(fit.a[e] - a[e]) <= slack * (a[e] + 0.01));
            for (int e = 0; e < N * K; e++) assert_true(fabs(fit.b[e] - b[e]) <= slack * (b[e] + 0.01));
            assert_near(fit.report.objective,
                        objective_of(&counts, fit.a, fit.b, priors[p].shape, priors[p].rate), slack);
            kiln_topics_verification found = {0};
            assert_int_equal(kiln_verify_gap(&found, fit.X, fit.A, fit.B, &options), KILN_OK);
            assert_near(found.objective, objective_of(&counts, fit.a, fit.b, priors[p].shape, priors[p].rate),
                        1e-13);
            fit_free(&fit);
        }
}

static void objective_never_rises(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        for (int p = 0; p < PRIORS; p++)
            for (int type = KILN_F32; type <= KILN_F64; type++) {
                struct counts counts;
                struct fit fit;
                const double zeros[M * K] = {0};
                kiln_gap_options options = options_of(p, 40);
                options.warm_start = 0;
                options.seed = (int64_t)seed;
                fill(&counts, seed);
                fit_run(&fit, &counts, (kiln_type)type, &options, zeros, zeros);
                for (int64_t i = 1; i < fit.report.trace_count; i++) {
                    const double before = fit.report.trace[i - 1].objective;
                    assert_true(fit.report.trace[i].objective <=
                                before + fabs(before) * (type == KILN_F32 ? 1e-5 : 1e-12));
                }
                fit_free(&fit);
            }
}

/* A factor that starts at 0 stays there, a topic without words dies, and nothing becomes NaN. */
static void zeros_stay(void **state) {
    (void)state;
    struct counts counts;
    double a[M * K], b[N * K];
    fill(&counts, 2);
    start(a, b, 3, false);
    a[0] = 0;
    for (int i = 0; i < N; i++) b[i * K + 2] = 0;
    const kiln_gap_options options = options_of(0, 20);
    struct fit fit;
    fit_run(&fit, &counts, KILN_F64, &options, a, b);
    assert_true(fit.a[0] == 0);
    for (int e = 0; e < M * K; e++) assert_true(isfinite(fit.a[e]) && fit.a[e] >= 0);
    for (int i = 0; i < N; i++) assert_true(fit.b[i * K + 2] == 0);
    for (int c = 0; c < K; c++) assert_true(fit.a[(M - 1) * K + c] == 0 && fit.b[(N - 1) * K + c] == 0);
    fit_free(&fit);
}

/* Under the fixed B of training the factors of the training documents come out again. */
static void new_documents(void **state) {
    (void)state;
    struct counts counts;
    fill(&counts, 11);
    for (int p = 0; p < PRIORS; p++) {
        const double zeros[M * K] = {0};
        kiln_gap_options options = options_of(p, 3000);
        struct fit fit;
        kiln_model *model = NULL;
        kiln_matrix *A = NULL, *P = NULL;
        double a[M * K], share[M * K], sums[K] = {0};
        options.warm_start = 0;
        fit_run(&fit, &counts, KILN_F64, &options, zeros, zeros);
        assert_int_equal(kiln_gap_model(&model, fit.A, fit.B, &options), KILN_OK);
        assert_int_equal(kiln_transform(&A, model, fit.X), KILN_OK);
        get(a, A);
        const double want = objective_of(&counts, fit.a, fit.b, priors[p].shape, priors[p].rate);
        assert_near(objective_of(&counts, a, fit.b, priors[p].shape, priors[p].rate), want, 1e-4);
        for (int e = 0; e < N * K; e++) sums[e % K] += fit.b[e];
        assert_int_equal(kiln_predict(&P, model, fit.X), KILN_OK);
        get(share, P);
        for (int d = 0; d < M - 1; d++) {
            double all = 0;
            for (int c = 0; c < K; c++) all += a[d * K + c] * sums[c];
            for (int c = 0; c < K; c++)
                assert_true(fabs(share[d * K + c] - a[d * K + c] * sums[c] / all) < 1e-9);
        }
        kiln_matrix_free(A);
        kiln_matrix_free(P);
        struct counts odd = counts;
        odd.x[3][4] = -2;
        kiln_matrix *const negative = matrix_of(&odd, KILN_F64);
        assert_int_equal(kiln_transform(&A, model, negative), KILN_ERR_DATA);
        assert_int_equal(kiln_predict(&P, model, negative), KILN_ERR_DATA);
        assert_non_null(strstr(kiln_last_error()->message, "row 3, column 4 is -2"));
        kiln_matrix_free(negative);
        kiln_model_free(model);
        fit_free(&fit);
    }
}

static void perplexity_by_its_definition(void **state) {
    (void)state;
    struct counts counts, test;
    fill(&counts, 21);
    fill(&test, 22);
    for (int d = 0; d < M; d++)
        for (int i = 0; i < N; i++) {
            if ((d + i) % 3) test.x[d][i] = 0;
            if (test.x[d][i] > 0) counts.x[d][i] = 0;
        }
    kiln_matrix *held = matrix_of(&test, KILN_F64);
    for (int p = 0; p < PRIORS; p++) {
        const double zeros[M * K] = {0};
        kiln_gap_options options = options_of(p, 30);
        struct fit fit;
        kiln_model *model = NULL;
        double theta[M * K], sums[K] = {0}, told = 0;
        options.warm_start = 0;
        options.test = held;
        fit_run(&fit, &counts, KILN_F64, &options, zeros, zeros);
        for (int e = 0; e < N * K; e++) sums[e % K] += fit.b[e];
        for (int e = 0; e < M * K; e++) theta[e] = fit.a[e] * sums[e % K];
        const double want = perplexity_of(&test, theta, fit.b);
        assert_true(want > 1);
        assert_near(kiln_report_figure(&fit.report, "test_perplexity"), want, 1e-9);
        assert_int_equal(kiln_gap_model(&model, fit.A, fit.B, &options), KILN_OK);
        assert_int_equal(kiln_perplexity(&told, model, fit.A, held), KILN_OK);
        assert_near(told, want, 1e-9);
        kiln_model_free(model);
        fit_free(&fit);
    }
    kiln_matrix_free(held);
}

static void refused(const kiln_matrix *X, const kiln_gap_options *options, kiln_status status,
                    const char *words) {
    const double zeros[M * K] = {0};
    kiln_matrix *A = dense_of(KILN_F64, M, K, zeros), *B = dense_of(KILN_F64, N, K, zeros);
    double a[M * K];
    kiln_report report = {0};
    assert_int_equal(kiln_gap(A, B, X, options, &report), status);
    if (!strstr(kiln_last_error()->message, words)) fail_msg("'%s'", kiln_last_error()->message);
    get(a, A);
    assert_memory_equal(a, zeros, sizeof a);
    assert_int_equal(report.trace_count, 0);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
}

static void refusals(void **state) {
    (void)state;
    struct counts counts, odd;
    fill(&counts, 1);
    odd = counts;
    odd.x[3][4] = -2;
    kiln_matrix *X = matrix_of(&counts, KILN_F64), *negative = matrix_of(&odd, KILN_F64);
    memset(&odd, 0, sizeof odd);
    kiln_matrix *nothing = matrix_of(&odd, KILN_F64);
    const kiln_gap_options usual = {0};
    refused(NULL, &usual, KILN_ERR_ARGUMENT, "must not be NULL");
    refused(negative, &usual, KILN_ERR_DATA, "row 3, column 4 is -2");
    refused(nothing, &usual, KILN_ERR_DATA, "no words");
    refused(X, &(kiln_gap_options){.shape = 0.5}, KILN_ERR_ARGUMENT, "shape is 0.5");
    refused(X, &(kiln_gap_options){.rate = -3}, KILN_ERR_ARGUMENT, "rate is -3");
    refused(X, &(kiln_gap_options){.prior = 3}, KILN_ERR_ARGUMENT, "prior");
    refused(X, &(kiln_gap_options){.tolerance = -1}, KILN_ERR_ARGUMENT, "tolerance");
    refused(X, &(kiln_gap_options){.size = sizeof(kiln_gap_options), .init = 4}, KILN_ERR_ARGUMENT, "start");
    refused(X, &(kiln_gap_options){.size = sizeof(kiln_gap_options), .init = KILN_GAP_NNDSVD},
            KILN_ERR_ARGUMENT, "density");
    refused(X, &(kiln_gap_options){.test = nothing}, KILN_ERR_DATA, "no words");
    kiln_topics_verification found = {0};
    assert_int_equal(kiln_verify_gap(&found, X, X, X, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_verify_gap(&found, X, NULL, X, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_verify_gap(NULL, X, X, X, NULL), KILN_ERR_ARGUMENT);
    kiln_matrix_free(X);
    kiln_matrix_free(negative);
    kiln_matrix_free(nothing);
}

/* The k-th singular triple of X by power iteration on what the first k leave: left m, right n. */
static double triple(double *left, double *right, double x[M][N]) {
    double value = 0;
    for (int i = 0; i < N; i++) right[i] = 1 + 0.37 * i;
    for (int turn = 0; turn < 20000; turn++) {
        double size = 0;
        for (int d = 0; d < M; d++) {
            left[d] = 0;
            for (int i = 0; i < N; i++) left[d] += x[d][i] * right[i];
            size += left[d] * left[d];
        }
        for (int d = 0; d < M; d++) left[d] /= sqrt(size);
        value = 0;
        for (int i = 0; i < N; i++) {
            right[i] = 0;
            for (int d = 0; d < M; d++) right[i] += x[d][i] * left[d];
            value += right[i] * right[i];
        }
        value = sqrt(value);
        for (int i = 0; i < N; i++) right[i] /= value;
    }
    for (int d = 0; d < M; d++)
        for (int i = 0; i < N; i++) x[d][i] -= value * left[d] * right[i];
    return value;
}

/* scikit-learn's _initialize_nmf for one component. */
static void part_of(double *a, double *b, const double *u, const double *v, double value, bool first) {
    double lengths[4] = {0};
    for (int d = 0; d < M; d++) lengths[u[d] < 0] += u[d] * u[d];
    for (int i = 0; i < N; i++) lengths[2 + (v[i] < 0)] += v[i] * v[i];
    const bool negative = !(lengths[0] * lengths[2] > lengths[1] * lengths[3]);
    const double of_u = first ? 1 : sqrt(lengths[negative]), of_v = first ? 1 : sqrt(lengths[2 + negative]);
    const double size = sqrt(value * of_u * of_v), sign = negative ? -1 : 1;
    for (int d = 0; d < M; d++) a[d] = size * (first ? fabs(u[d]) : fmax(sign * u[d], 0)) / of_u;
    for (int i = 0; i < N; i++) b[i] = size * (first ? fabs(v[i]) : fmax(sign * v[i], 0)) / of_v;
}

/* The objective before the first iteration is that of the start. */
static void start_from_singular_vectors(void **state) {
    (void)state;
    struct counts counts;
    const double zeros[M * K] = {0};
    static double x[M][N], a[M * K], b[N * K];
    double u[M], v[N], one_a[M], one_b[N], total = 0;
    fill(&counts, 5);
    for (int d = 0; d < M; d++)
        for (int i = 0; i < N; i++) total += x[d][i] = counts.x[d][i];
    for (int c = 0; c < K; c++) {
        const double value = triple(u, v, x);
        part_of(one_a, one_b, u, v, value, c == 0);
        for (int d = 0; d < M; d++) a[d * K + c] = one_a[d] < 1e-6 ? 0 : one_a[d];
        for (int i = 0; i < N; i++) b[i * K + c] = one_b[i] < 1e-6 ? 0 : one_b[i];
    }
    for (int init = KILN_GAP_NNDSVD; init <= KILN_GAP_NNDSVDA; init++)
        for (int type = KILN_F32; type <= KILN_F64; type++) {
            const double fill_in = init == KILN_GAP_NNDSVDA ? total / (M * N) : 0;
            const kiln_gap_options options = {.size = sizeof options,
                                              .prior = KILN_GAP_NO_PRIOR,
                                              .init = init,
                                              .max_iterations = 20,
                                              .tolerance = 1e-9};
            struct fit fit;
            fit_run(&fit, &counts, (kiln_type)type, &options, zeros, zeros);
            for (int e = 0; e < M * K; e++) a[e] = a[e] < 1e-6 || a[e] == total / (M * N) ? fill_in : a[e];
            for (int e = 0; e < N * K; e++) b[e] = b[e] < 1e-6 || b[e] == total / (M * N) ? fill_in : b[e];
            if (init == KILN_GAP_NNDSVDA)
                assert_near(fit.report.trace[0].objective, objective_of(&counts, a, b, 1, 0), 2e-3);
            for (int e = 0; init == KILN_GAP_NNDSVD && e < M * K; e++) assert_true(fit.a[e] == 0 || a[e] > 0);
            assert_true(fit.report.objective < fit.report.trace[0].objective);
            fit_free(&fit);
        }
}

/* The best A given B, under the prior too, by so many steps for A alone; returns its objective. */
static double best_documents(const double *a, const double *b, const struct counts *counts, double shape,
                             double rate) {
    enum { STEPS = 3000 };
    double best[M * K], next[M * K], sums[K] = {0};
    for (int e = 0; e < M * K; e++) best[e] = fmax(a[e], 0.01);
    for (int e = 0; e < N * K; e++) sums[e % K] += b[e];
    for (int step = 0; step < STEPS; step++) {
        for (int d = 0; d < M; d++)
            for (int c = 0; c < K; c++) next[d * K + c] = shape - 1;
        for (int d = 0; d < M; d++)
            for (int i = 0; i < N; i++) {
                if (!(counts->x[d][i] > 0)) continue;
                const double q = counts->x[d][i] / mean_of(best, b, d, i);
                for (int c = 0; c < K; c++) next[d * K + c] += best[d * K + c] * q * b[i * K + c];
            }
        for (int e = 0; e < M * K; e++) best[e] = next[e] / (sums[e % K] + rate);
    }
    return objective_of(counts, best, b, shape, rate);
}

/* A run that has converged leaves little to either side, and what it says about that bounds what the best
 * documents take off the objective. It begins where a step cannot leave: zeros, and what is nearly 0. */
static void converged_is_where_zeros_need_not_grow(void **state) {
    (void)state;
    for (int p = 0; p < PRIORS; p++)
        for (int type = KILN_F32; type <= KILN_F64; type++) {
            struct counts counts;
            struct fit fit;
            double a[M * K], b[N * K];
            kiln_gap_options options = options_of(p, 20000);
            options.tolerance = 1e-5;
            fill(&counts, 8);
            start(a, b, 6, priors[p].prior == KILN_GAP_GAMMA);
            for (int i = 0; i < N; i++)
                for (int c = 0; c < K; c++)
                    if (i % K != c) b[i * K + c] = i % 2 ? 0 : 1e-30;
            for (int e = 0; e < M * K; e++)
                if (priors[p].shape == 1 && e % 3) a[e] = 0;
            fit_run(&fit, &counts, (kiln_type)type, &options, a, b);
            assert_int_equal(fit.report.stopped_by, KILN_STOP_TOLERANCE);
            assert_near(kiln_report_figure(&fit.report, "setbacks"), 0, 0);
            const double objective = objective_of(&counts, fit.a, fit.b, priors[p].shape, priors[p].rate);
            const double told = kiln_report_figure(&fit.report, "side_gain");
            const double rounding = (type == KILN_F32 ? 1000 * FLT_EPSILON : 1e-9) * objective;
            assert_true(told <= sqrt(options.tolerance) * objective + 10 * rounding);
            const double best = best_documents(fit.a, fit.b, &counts, priors[p].shape, priors[p].rate);
            assert_true(objective - best <= told + rounding);
            fit_free(&fit);
        }
}

/* Lifted steps never raise the objective either; and they have no unit: 1,024 times as many words from
 * factors 32 times as large take the same steps, as powers of two leave all digits. */
static void lifting_has_no_unit(void **state) {
    (void)state;
    for (int run = 0; run < 8 * PRIORS; run++) {
        const int p = run % PRIORS, units = priors[p].prior == KILN_GAP_NO_PRIOR ? 2 : 1;
        int64_t iterations[2] = {0};
        double last[2] = {0};
        for (int unit = 0; unit < units; unit++) {
            struct counts counts;
            struct fit fit;
            double a[M * K], b[N * K];
            kiln_gap_options options = options_of(p, 20000);
            options.tolerance = 1e-5;
            fill(&counts, 8 + (uint64_t)run);
            start(a, b, 6 + (uint64_t)run, priors[p].prior == KILN_GAP_GAMMA);
            for (int i = 0; i < N; i++)
                for (int c = 0; c < K; c++)
                    if (i % K != c) b[i * K + c] = i % 2 ? 0 : 1e-30;
            for (int e = 0; e < M * K; e++) a[e] *= unit ? 32 : 1;
            for (int e = 0; e < N * K; e++) b[e] *= unit ? 32 : 1;
            for (int e = 0; e < M * N; e++) counts.x[e / N][e % N] *= unit ? 1024 : 1;
            fit_run(&fit, &counts, KILN_F64, &options, a, b);
            assert_int_equal(fit.report.stopped_by, KILN_STOP_TOLERANCE);
            for (int64_t t = 1; t < fit.report.trace_count; t++)
                if (!(fit.report.trace[t].objective <= fit.report.trace[t - 1].objective * (1 + 1e-12)))
                    fail_msg("run %d: %.17g after %.17g", run, fit.report.trace[t].objective,
                             fit.report.trace[t - 1].objective);
            iterations[unit] = fit.report.iterations;
            last[unit] = fit.report.objective;
            fit_free(&fit);
        }
        if (units == 1) continue;
        assert_int_equal(iterations[1], iterations[0]);
        assert_near(last[1] / 1024, last[0], 1e-9);
    }
}

/* Many topics whose words have to grow at once are lifted too far: such a step is taken back, and none raises
 * the objective by more than rounding. */
static void lifted_too_far_is_taken_back(void **state) {
    enum { ROWS = 18, COLUMNS = 12, TOPICS = 16 };
    (void)state;
    for (int run = 0; run < 100; run++) {
        double a[ROWS * TOPICS], b[COLUMNS * TOPICS], value[ROWS * COLUMNS], words = 0;
        int64_t start[ROWS + 1] = {0}, nnz = 0;
        int32_t col[ROWS * COLUMNS];
        uint64_t seed = 1000 + (uint64_t)run;
        kiln_matrix *X = NULL;
        kiln_report report = {0};
        const kiln_gap_options options = {
            .prior = KILN_GAP_GAMMA, .max_iterations = 500, .tolerance = 1e-5, .warm_start = 1};
        for (int d = 0; d < ROWS; d++) {
            for (int i = 0; i < COLUMNS; i++) {
                if (d > 0 && uniform(&seed) < 0.4) continue;
                col[nnz] = i;
                words += value[nnz++] = floor(1 + (run % 2 ? 3 : 200) * uniform(&seed));
            }
            start[d + 1] = nnz;
        }
        for (int e = 0; e < ROWS * TOPICS; e++)
            a[e] = 1e-12 + 0.1 * (e % TOPICS == 0) + uniform(&seed) * (uniform(&seed) < 0.1);
        for (int e = 0; e < COLUMNS * TOPICS; e++)
            b[e] = 0.1 * (e % TOPICS == 0) + uniform(&seed) * (uniform(&seed) < 0.5);
        assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, ROWS, COLUMNS, start, col, value), KILN_OK);
        kiln_matrix *A = dense_of(KILN_F64, ROWS, TOPICS, a), *B = dense_of(KILN_F64, COLUMNS, TOPICS, b);
        assert_int_equal(kiln_gap(A, B, X, &options, &report), KILN_OK);
        for (int64_t t = 1; t < report.trace_count; t++)
            if (!(report.trace[t].objective - report.trace[t - 1].objective <=
                  1e-11 * (words + fabs(report.trace[t].objective))))
                fail_msg("run %d: %.17g after %.17g", run, report.trace[t].objective,
                         report.trace[t - 1].objective);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
}

static int stop_at_five(void *user, const kiln_progress *progress) {
    (void)user;
    return progress->done >= 5;
}

static void a_stop_keeps_the_result(void **state) {
    (void)state;
    struct counts counts;
    const double zeros[M * K] = {0};
    kiln_gap_options options = {.control = {.progress = stop_at_five}, .tolerance = 1e-12};
    struct fit fit;
    fill(&counts, 4);
    fit_run(&fit, &counts, KILN_F64, &options, zeros, zeros);
    assert_int_equal(fit.report.stopped_by, KILN_STOP_CANCELLED);
    assert_int_equal(fit.report.iterations, 5);
    assert_near(fit.report.objective, objective_of(&counts, fit.a, fit.b, 1.1, 1), 1e-11);
    fit_free(&fit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_the_papers),
        cmocka_unit_test(objective_never_rises),
        cmocka_unit_test(zeros_stay),
        cmocka_unit_test(start_from_singular_vectors),
        cmocka_unit_test(new_documents),
        cmocka_unit_test(perplexity_by_its_definition),
        cmocka_unit_test(refusals),
        cmocka_unit_test(converged_is_where_zeros_need_not_grow),
        cmocka_unit_test(lifting_has_no_unit),
        cmocka_unit_test(lifted_too_far_is_taken_back),
        cmocka_unit_test(a_stop_keeps_the_result),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
