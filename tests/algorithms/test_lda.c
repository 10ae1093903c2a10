/* Latent Dirichlet allocation: each round and its bound against plain loops with lgamma and a digamma of
 * their own, that the bound never falls, alpha, batches, new documents, perplexity, what is refused. */
#include "topic_data.h"

static double psi(double x) {
    double sum = 0;
    for (; x < 30; x++) sum -= 1 / x;
    const double z = 1 / (x * x);
    return sum + log(x) - 1 / (2 * x) - z * (1 / 12.0 - z * (1 / 120.0 - z * (1 / 252.0 - z / 240.0)));
}

/* E log theta, M x K, and E log phi, N x K. */
static void expect(double *theta, double *phi, const double *gamma, const double *lambda) {
    double sums[K] = {0};
    for (int d = 0; d < M; d++) {
        double total = 0;
        for (int c = 0; c < K; c++) total += gamma[d * K + c];
        for (int c = 0; c < K; c++) theta[d * K + c] = psi(gamma[d * K + c]) - psi(total);
    }
    for (int e = 0; e < N * K; e++) sums[e % K] += lambda[e];
    for (int e = 0; e < N * K; e++) phi[e] = psi(lambda[e]) - psi(sums[e % K]);
}

static double mean_of(const double *theta, const double *phi, int d, int i) {
    double sum = 0;
    for (int c = 0; c < K; c++) sum += exp(theta[d * K + c] + phi[i * K + c]);
    return sum;
}

/* E log p(x, theta, phi) - E log q, as Blei, Ng and Jordan have it, with the best phi-variational parameters
 * put in. */
static double bound_of(const struct counts *counts, const double *gamma, const double *lambda,
                       const double *alpha, double eta) {
    static double theta[M * K], phi[N * K];
    double bound = 0, all = 0, sums[K] = {0};
    expect(theta, phi, gamma, lambda);
    for (int d = 0; d < M; d++)
        for (int i = 0; i < N; i++)
            if (counts->x[d][i] > 0) bound += counts->x[d][i] * log(mean_of(theta, phi, d, i));
    for (int c = 0; c < K; c++) all += alpha[c];
    for (int d = 0; d < M; d++) {
        double total = 0;
        for (int c = 0; c < K; c++) {
            const double g = gamma[d * K + c];
            total += g;
            bound += (alpha[c] - g) * theta[d * K + c] + lgamma(g) - lgamma(alpha[c]);
        }
        bound += lgamma(all) - lgamma(total);
    }
    for (int e = 0; e < N * K; e++) {
        sums[e % K] += lambda[e];
        bound += (eta - lambda[e]) * phi[e] + lgamma(lambda[e]) - lgamma(eta);
    }
    for (int c = 0; c < K; c++) bound += lgamma(N * eta) - lgamma(sums[c]);
    return bound;
}

static void step_documents(double *gamma, const double *lambda, const struct counts *counts,
                           const double *alpha) {
    static double theta[M * K], phi[N * K];
    expect(theta, phi, gamma, lambda);
    for (int d = 0; d < M; d++)
        for (int c = 0; c < K; c++) {
            double y = 0;
            for (int i = 0; i < N; i++)
                if (counts->x[d][i] > 0)
                    y += counts->x[d][i] / mean_of(theta, phi, d, i) * exp(theta[d * K + c] + phi[i * K + c]);
            gamma[d * K + c] = alpha[c] + y;
        }
}

static void step_topics(double *lambda, const double *gamma, const struct counts *counts, double eta) {
    static double theta[M * K], phi[N * K];
    expect(theta, phi, gamma, lambda);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < K; c++) {
            double z = 0;
            for (int d = 0; d < M; d++)
                if (counts->x[d][i] > 0)
                    z += counts->x[d][i] / mean_of(theta, phi, d, i) * exp(theta[d * K + c] + phi[i * K + c]);
            lambda[i * K + c] = eta + z;
        }
}

struct fit {
    kiln_matrix *X, *A, *B, *alphas;
    double gamma[M * K], lambda[N * K], alpha[K];
    kiln_report report;
};

static void fit_run(struct fit *fit, const struct counts *counts, kiln_type type, kiln_lda_options options,
                    const double *gamma, const double *lambda) {
    double alpha[K];
    memset(fit, 0, sizeof *fit);
    for (int c = 0; c < K; c++) alpha[c] = options.alpha;
    fit->X = matrix_of(counts, type);
    fit->A = dense_of(type, M, K, gamma);
    fit->B = dense_of(type, N, K, lambda);
    fit->alphas = dense_of(type, 1, K, alpha);
    options.alphas = fit->alphas;
    assert_int_equal(kiln_lda(fit->A, fit->B, fit->X, &options, &fit->report), KILN_OK);
    get(fit->gamma, fit->A);
    get(fit->lambda, fit->B);
    get(fit->alpha, fit->alphas);
}

static void fit_free(struct fit *fit) {
    kiln_matrix_free(fit->X);
    kiln_matrix_free(fit->A);
    kiln_matrix_free(fit->B);
    kiln_matrix_free(fit->alphas);
    kiln_report_free(&fit->report);
}

static const double zeros[M * K];

static void start(double *gamma, double *lambda, uint64_t seed) {
    for (int e = 0; e < M * K; e++) gamma[e] = (float)(0.2 + 5 * uniform(&seed));
    for (int e = 0; e < N * K; e++) lambda[e] = (float)(0.05 + 3 * uniform(&seed));
}

static void rounds_are_those_of_the_papers(void **state) {
    (void)state;
    static const double priors[][2] = {{0.25, 0.25}, {0.02, 0.01}, {3, 0.7}};
    struct counts counts;
    double gamma[M * K], lambda[N * K], alpha[K];
    fill(&counts, 5);
    for (int type = KILN_F32; type <= KILN_F64; type++)
        for (int p = 0; p < 3; p++) {
            const double eta = priors[p][1], slack = type == KILN_F32 ? 2e-3 : 1e-10;
            struct fit fit;
            for (int c = 0; c < K; c++) alpha[c] = priors[p][0];
            start(gamma, lambda, 9);
            fit_run(&fit, &counts, (kiln_type)type,
                    (kiln_lda_options){.alpha = alpha[0],
                                       .eta = eta,
                                       .steps = 2,
                                       .max_iterations = 3,
                                       .tolerance = 1e-12,
                                       .warm_start = 1},
                    gamma, lambda);
            for (int round = 0; round <= 3; round++) {
                if (round > 0) step_topics(lambda, gamma, &counts, eta);
                step_documents(gamma, lambda, &counts, alpha);
                step_documents(gamma, lambda, &counts, alpha);
                assert_near(fit.report.trace[round].objective, bound_of(&counts, gamma, lambda, alpha, eta),
                            type == KILN_F32 ? 1e-5 : 1e-12);
            }
            for (int e = 0; e < M * K; e++)
                assert_true(fabs(fit.gamma[e] - gamma[e]) <= slack * (gamma[e] + 0.1));
            for (int e = 0; e < N * K; e++)
                assert_true(fabs(fit.lambda[e] - lambda[e]) <= slack * (lambda[e] + 0.1));
            const double bound = bound_of(&counts, fit.gamma, fit.lambda, alpha, eta);
            const kiln_lda_options priors_only = {.alpha = alpha[0], .eta = eta};
            kiln_topics_verification found = {0};
            assert_near(fit.report.objective, bound, type == KILN_F32 ? 1e-5 : 1e-12);
            for (int given = 0; given < 2; given++) {
                assert_int_equal(
                    kiln_verify_lda(&found, fit.X, fit.A, fit.B, given ? fit.alphas : NULL, &priors_only),
                    KILN_OK);
                assert_near(found.objective, bound, given && type == KILN_F32 ? 1e-6 : 1e-12);
            }
            assert_int_equal(kiln_verify_lda(&found, fit.X, fit.A, fit.B, fit.A, &priors_only),
                             KILN_ERR_ARGUMENT);
            fit_free(&fit);
        }
}

static void bound_never_falls(void **state) {
    (void)state;
    static const double priors[] = {0, 0.01, 2};
    for (uint64_t seed = 1; seed <= 8; seed++)
        for (int p = 0; p < 3; p++)
            for (int learn = 0; learn <= 1; learn++)
                for (int type = KILN_F32; type <= KILN_F64; type++) {
                    struct counts counts;
                    struct fit fit;
                    fill(&counts, seed);
                    fit_run(&fit, &counts, (kiln_type)type,
                            (kiln_lda_options){.alpha = priors[p],
                                               .eta = priors[(p + seed) % 3],
                                               .learn_alpha = learn,
                                               .steps = 1 + (int64_t)(seed % 4),
                                               .max_iterations = 25,
                                               .tolerance = 1e-12,
                                               .seed = (int64_t)seed},
                            zeros, zeros);
                    for (int64_t i = 5; i < fit.report.trace_count; i++) { /* before, documents begin anew */
                        const double before = fit.report.trace[i - 1].objective;
                        assert_true(fit.report.trace[i].objective >=
                                    before - fabs(before) * (type == KILN_F32 ? 1e-5 : 1e-12));
                    }
                    fit_free(&fit);
                }
}

/* At rest of the learning, no alpha of one topic is better. */
static void alpha_is_learned(void **state) {
    (void)state;
    struct counts counts;
    struct fit fit;
    fill(&counts, 3);
    fit_run(&fit, &counts, KILN_F64,
            (kiln_lda_options){.learn_alpha = 1, .tolerance = 1e-10, .max_iterations = 2000}, zeros, zeros);
    assert_true(fit.report.converged);
    for (int c = 0; c < K; c++)
        for (int up = 0; up <= 1; up++) {
            double alpha[K];
            memcpy(alpha, fit.alpha, sizeof alpha);
            alpha[c] *= up ? 1.02 : 0.98;
            assert_true(bound_of(&counts, fit.gamma, fit.lambda, alpha, 0.25) <
                        fit.report.objective + 1e-6 * fabs(fit.report.objective));
        }
    assert_near(fit.report.objective, bound_of(&counts, fit.gamma, fit.lambda, fit.alpha, 0.25), 1e-9);
    fit_free(&fit);
}

/* All documents in one batch that counts in full is the batch method; small batches come near to its
 * bound. */
static void batches(void **state) {
    (void)state;
    struct counts counts;
    struct fit all, online;
    fill(&counts, 7);
    fit_run(&all, &counts, KILN_F64, (kiln_lda_options){.max_iterations = 100, .seed = 1}, zeros, zeros);
    fit_run(&online, &counts, KILN_F64, (kiln_lda_options){.max_iterations = 60, .batch = 8, .seed = 1},
            zeros, zeros);
    assert_near(online.report.objective, bound_of(&counts, online.gamma, online.lambda, online.alpha, 0.25),
                1e-11);
    assert_true(online.report.objective > 1.03 * all.report.objective); /* both are negative */
    assert_true(online.report.trace[0].objective < 1.05 * online.report.objective);
    fit_free(&all);
    fit_free(&online);
}

/* Converged means the same online: one iteration more, of all documents, gains no more than the tolerance. */
static void batches_converge(void **state) {
    (void)state;
    struct counts counts;
    for (int run = 0; run < 12; run++) {
        const double tolerance = run % 2 ? 1e-4 : 1e-6;
        struct fit online, more;
        fill(&counts, (uint64_t)(20 + run));
        fit_run(
            &online, &counts, KILN_F64,
            (kiln_lda_options){.max_iterations = 2000, .batch = 3 + run, .seed = run, .tolerance = tolerance},
            zeros, zeros);
        assert_true(online.report.converged && online.report.residual <= tolerance);
        fit_run(
            &more, &counts, KILN_F64,
            (kiln_lda_options){.max_iterations = 1, .warm_start = 1, .alpha = 0.25, .tolerance = tolerance},
            online.gamma, online.lambda);
        if (!(more.report.residual <= tolerance))
            fail_msg("run %d: an iteration more gains %g", run, more.report.residual);
        fit_free(&online);
        fit_free(&more);
    }
}

static void new_documents(void **state) {
    (void)state;
    struct counts counts;
    struct fit fit;
    kiln_model *model = NULL;
    kiln_matrix *A = NULL, *P = NULL;
    double gamma[M * K], share[M * K];
    const kiln_lda_options options = {.tolerance = 1e-9, .max_iterations = 3000, .seed = 2};
    fill(&counts, 11);
    fit_run(&fit, &counts, KILN_F64, options, zeros, zeros);
    assert_int_equal(kiln_lda_model(&model, fit.A, fit.B, fit.alphas, &options), KILN_OK);
    assert_int_equal(kiln_transform(&A, model, fit.X), KILN_OK);
    get(gamma, A);
    assert_near(bound_of(&counts, gamma, fit.lambda, fit.alpha, 0.25), fit.report.objective, 1e-3);
    assert_int_equal(kiln_predict(&P, model, fit.X), KILN_OK);
    get(share, P);
    for (int d = 0; d < M; d++) {
        double all = 0;
        for (int c = 0; c < K; c++) all += gamma[d * K + c];
        for (int c = 0; c < K; c++) assert_true(fabs(share[d * K + c] - gamma[d * K + c] / all) < 1e-9);
    }
    for (int c = 0; c < K; c++)
        assert_true(share[(M - 1) * K + c] == share[(M - 1) * K]); /* no words: the prior */
    kiln_matrix_free(A);
    kiln_matrix_free(P);
    counts.x[3][4] = -2;
    kiln_matrix *const negative = matrix_of(&counts, KILN_F64);
    assert_int_equal(kiln_transform(&A, model, negative), KILN_ERR_DATA);
    assert_int_equal(kiln_predict(&P, model, negative), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "row 3, column 4 is -2"));
    kiln_matrix_free(negative);
    kiln_model_free(model);
    fit_free(&fit);
}

static void perplexity_by_its_definition(void **state) {
    (void)state;
    struct counts counts, test;
    struct fit fit;
    fill(&counts, 21);
    fill(&test, 22);
    for (int d = 0; d < M; d++)
        for (int i = 0; i < N; i++) {
            if ((d + i) % 3) test.x[d][i] = 0;
            if (test.x[d][i] > 0) counts.x[d][i] = 0;
        }
    kiln_matrix *held = matrix_of(&test, KILN_F64);
    fit_run(&fit, &counts, KILN_F64, (kiln_lda_options){.max_iterations = 30, .test = held}, zeros, zeros);
    const double want = perplexity_of(&test, fit.gamma, fit.lambda);
    assert_true(want > 1);
    assert_near(kiln_report_figure(&fit.report, "test_perplexity"), want, 1e-9);
    fit_free(&fit);
    kiln_matrix_free(held);
}

static void refused(const kiln_matrix *X, const kiln_lda_options *options, kiln_status status,
                    const char *words) {
    kiln_matrix *A = dense_of(KILN_F64, M, K, zeros), *B = dense_of(KILN_F64, N, K, zeros);
    double gamma[M * K];
    assert_int_equal(kiln_lda(A, B, X, options, NULL), status);
    if (!strstr(kiln_last_error()->message, words)) fail_msg("'%s'", kiln_last_error()->message);
    get(gamma, A);
    assert_memory_equal(gamma, zeros, sizeof gamma);
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
    refused(NULL, NULL, KILN_ERR_ARGUMENT, "must not be NULL");
    refused(negative, NULL, KILN_ERR_DATA, "row 3, column 4 is -2");
    refused(X, &(kiln_lda_options){.alpha = -1}, KILN_ERR_ARGUMENT, "alpha is -1");
    refused(X, &(kiln_lda_options){.eta = INFINITY}, KILN_ERR_ARGUMENT, "eta is inf");
    refused(X, &(kiln_lda_options){.steps = -1}, KILN_ERR_ARGUMENT, "steps is -1");
    refused(X, &(kiln_lda_options){.batch = -1}, KILN_ERR_ARGUMENT, "batch is -1");
    refused(X, &(kiln_lda_options){.decay = 0.4}, KILN_ERR_ARGUMENT, "decay is 0.4");
    refused(X, &(kiln_lda_options){.batch = 5, .learn_alpha = 1}, KILN_ERR_ARGUMENT, "exclude each other");
    refused(X, &(kiln_lda_options){.warm_start = 1}, KILN_ERR_DATA, "A is not above 0");
    kiln_matrix_free(X);
    kiln_matrix_free(negative);
}

static int stop_at_three(void *user, const kiln_progress *progress) {
    (void)user;
    return progress->done >= 3;
}

static void a_stop_keeps_the_result(void **state) {
    (void)state;
    struct counts counts;
    struct fit fit;
    fill(&counts, 4);
    fit_run(&fit, &counts, KILN_F64,
            (kiln_lda_options){.control = {.progress = stop_at_three}, .tolerance = 1e-12}, zeros, zeros);
    assert_int_equal(fit.report.stopped_by, KILN_STOP_CANCELLED);
    assert_near(fit.report.objective, bound_of(&counts, fit.gamma, fit.lambda, fit.alpha, 0.25), 1e-11);
    fit_free(&fit);
}

/* One topic of one word: the bound is 0 but for rounding, which is what the verification allows, and no
 * more. */
static void one_topic_of_one_word(void **state) {
    (void)state;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (int seed = 0; seed < 20; seed++) {
            const int64_t start[] = {0, 1, 2, 2, 3};
            const int32_t col[] = {0, 0, 0};
            const double wide[] = {2 + seed, 5, 1};
            const float narrow[] = {(float)(2 + seed), 5, 1};
            kiln_matrix *X = NULL, *A = NULL, *B = NULL;
            kiln_report report = {0};
            kiln_topics_verification found = {.size = sizeof found};
            const kiln_lda_options options = {.seed = seed};
            assert_int_equal(kiln_matrix_csr(&X, device, type, 4, 1, start, col,
                                             type == KILN_F32 ? (const void *)narrow : wide),
                             KILN_OK);
            assert_int_equal(kiln_matrix_dense(&A, device, type, 4, 1, NULL), KILN_OK);
            assert_int_equal(kiln_matrix_dense(&B, device, type, 1, 1, NULL), KILN_OK);
            assert_int_equal(kiln_lda(A, B, X, &options, &report), KILN_OK);
            assert_int_equal(kiln_verify_lda(&found, X, A, B, NULL, &options), KILN_OK);
            if (!(fabs(found.objective - report.objective) <= found.rounding &&
                  found.rounding < (type == KILN_F32 ? 1e-3 : 1e-11)))
                fail_msg("the bound is %g, not %g; rounding %g", found.objective, report.objective,
                         found.rounding);
            kiln_report_free(&report);
            kiln_matrix_free(X);
            kiln_matrix_free(A);
            kiln_matrix_free(B);
        }
}

/* The bound may turn as documents begin anew, and hardly change there: that ends no run. One that says
 * converged gains as little where it goes on. */
static void converged_runs_gain_no_more(void **state) {
    enum { ROWS = 4, COLUMNS = 8, TOPICS = 4, ANEW = 5 };
    static const int64_t start[] = {0, 2, 6, 11, 14};
    static const int32_t col[] = {0, 6, 0, 1, 2, 7, 0, 2, 4, 5, 6, 0, 6, 7};
    static const double value[] = {4, 1, 3, 5, 2, 4, 5, 1, 3, 4, 1, 1, 4, 1};
    (void)state;
    for (int seed = 0; seed < 200; seed++) {
        kiln_matrix *X = NULL, *A = NULL, *B = NULL;
        kiln_report first = {.size = sizeof first}, again = {.size = sizeof again};
        kiln_lda_options options = {.seed = seed};
        assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, ROWS, COLUMNS, start, col, value), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, ROWS, TOPICS, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, COLUMNS, TOPICS, NULL), KILN_OK);
        assert_int_equal(kiln_lda(A, B, X, &options, &first), KILN_OK);
        options.warm_start = 1;
        options.max_iterations = 1;
        assert_int_equal(kiln_lda(A, B, X, &options, &again), KILN_OK);
        if (first.converged && (first.iterations < ANEW || again.residual > 3 * first.tolerance))
            fail_msg("seed %d: %g after %lld, and then %g", seed, first.residual, (long long)first.iterations,
                     again.residual);
        kiln_report_free(&first);
        kiln_report_free(&again);
        kiln_matrix_free(X);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
}

/* Topics that are alike but for 1e-4: the bound hardly rises until they part, by 10 % or more, which
 * ends no run. Plain loops go on where the run has ended, for ten times as many rounds. */
static void topics_alike_end_no_run(void **state) {
    static double gamma[M * K], lambda[N * K];
    (void)state;
    for (int run = 0; run < 10; run++) {
        struct counts counts;
        struct fit fit;
        uint64_t seed = (uint64_t)run;
        const kiln_lda_options options = {
            .alpha = 0.5, .eta = 0.5, .steps = 2, .warm_start = 1, .max_iterations = 2000};
        fill(&counts, 3 + (uint64_t)run);
        for (int e = 0; e < M * K; e++) gamma[e] = 5;
        for (int e = 0; e < N * K; e++) lambda[e] = 1 + 1e-4 * uniform(&seed);
        fit_run(&fit, &counts, KILN_F64, options, gamma, lambda);
        assert_true(fit.report.converged);
        for (int64_t round = 0; round < 10 * fit.report.iterations; round++) {
            step_topics(fit.lambda, fit.gamma, &counts, options.eta);
            for (int step = 0; step < 2; step++) step_documents(fit.gamma, fit.lambda, &counts, fit.alpha);
        }
        const double bound = bound_of(&counts, fit.gamma, fit.lambda, fit.alpha, options.eta),
                     left = (bound - fit.report.objective) / fabs(bound);
        if (!(left <= 0.01))
            fail_msg("run %d: %lld iterations leave %g", run, (long long)fit.report.iterations, left);
        fit_free(&fit);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converged_runs_gain_no_more),
        cmocka_unit_test(topics_alike_end_no_run),
        cmocka_unit_test(rounds_are_those_of_the_papers),
        cmocka_unit_test(bound_never_falls),
        cmocka_unit_test(alpha_is_learned),
        cmocka_unit_test(batches),
        cmocka_unit_test(batches_converge),
        cmocka_unit_test(new_documents),
        cmocka_unit_test(perplexity_by_its_definition),
        cmocka_unit_test(refusals),
        cmocka_unit_test(a_stop_keeps_the_result),
        cmocka_unit_test(one_topic_of_one_word),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
