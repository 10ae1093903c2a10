/* Alternating least squares: the objective against plain loops, that it never rises, the fixed point, new
 * rows, recommendations, what is refused. */
#include <float.h>
#include <stdio.h>

#include "algorithms/algorithm.h"
#include "algorithms/on_cpu.h"

enum { M = 60, N = 45, K = 4 };

/* Ratings about 1 to 5 with a structure of rank 2; some stored ones are 0. The last row and the last
 * column are empty. */
struct ratings {
    double value[M][N];
    bool there[M][N];
};

static void fill(struct ratings *ratings, uint64_t seed) {
    memset(ratings, 0, sizeof *ratings);
    for (int u = 0; u < M - 1; u++)
        for (int i = 0; i < N - 1; i++) {
            const double noise = uniform(&seed);
            if (uniform(&seed) > 0.3) continue;
            ratings->there[u][i] = true;
            ratings->value[u][i] = (float)(3 + cos(u * 0.7) * sin(i * 1.3) + 0.02 * u - 0.03 * i + noise);
            if (noise < 0.05) ratings->value[u][i] = 0;
        }
}

static kiln_matrix *matrix_of(const struct ratings *ratings, kiln_type type) {
    int64_t start[M + 1] = {0}, nnz = 0;
    int32_t *col = malloc(M * N * sizeof *col);
    double *value = malloc(M * N * sizeof *value);
    kiln_matrix *wide = NULL, *R = NULL;
    for (int u = 0; u < M; u++) {
        for (int i = 0; i < N; i++) {
            if (!ratings->there[u][i]) continue;
            col[nnz] = i;
            value[nnz++] = ratings->value[u][i];
        }
        start[u + 1] = nnz;
    }
    assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, M, N, start, col, value), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&R, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    free(col);
    free(value);
    return R;
}

struct fit {
    kiln_matrix *R, *A, *B;
    double a[M * (K + 1)], b[N * (K + 1)];
    int width;
    kiln_report report;
};

static void get(double *values, const kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
}

static void fit_run(struct fit *fit, const struct ratings *ratings, kiln_type type,
                    const kiln_als_options *options) {
    memset(fit, 0, sizeof *fit);
    fit->width = K + (options->biases != 0);
    fit->R = matrix_of(ratings, type);
    assert_int_equal(kiln_matrix_dense(&fit->A, device, type, M, fit->width, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&fit->B, device, type, N, fit->width, NULL), KILN_OK);
    assert_int_equal(kiln_als(fit->A, fit->B, fit->R, options, &fit->report), KILN_OK);
    get(fit->a, fit->A);
    get(fit->b, fit->B);
}

static void fit_free(struct fit *fit) {
    kiln_matrix_free(fit->R);
    kiln_matrix_free(fit->A);
    kiln_matrix_free(fit->B);
    kiln_report_free(&fit->report);
}

static double predict(const struct fit *fit, const double *a, int i, int biases, double mean) {
    const double *b = fit->b + i * fit->width;
    double sum = biases ? mean + a[K] + b[K] : 0;
    for (int k = 0; k < K; k++) sum += a[k] * b[k];
    return sum;
}

/* The objective by its definition, all cells one by one. */
static double objective_of(const struct fit *fit, const struct ratings *ratings, const kiln_als_options *o) {
    const double mean = kiln_report_figure(&fit->report, "mean");
    double sum = 0;
    int rows[M] = {0}, columns[N] = {0};
    for (int u = 0; u < M; u++)
        for (int i = 0; i < N; i++) {
            const double r = ratings->value[u][i];
            const double d = predict(fit, fit->a + u * fit->width, i, o->biases, mean);
            const double c = o->implicit ? 1 + o->alpha * fabs(r) : 1, p = o->implicit ? r > 0 : r;
            rows[u] += ratings->there[u][i];
            columns[i] += ratings->there[u][i];
            if (o->implicit || ratings->there[u][i]) sum += c * (p - d) * (p - d) / 2;
        }
    for (int u = 0; u < M; u++)
        for (int k = 0; k < fit->width; k++)
            sum += o->l2 * (o->counted ? rows[u] : 1) * pow(fit->a[u * fit->width + k], 2) / 2;
    for (int i = 0; i < N; i++)
        for (int k = 0; k < fit->width; k++)
            sum += o->l2 * (o->counted ? columns[i] : 1) * pow(fit->b[i * fit->width + k], 2) / 2;
    return sum;
}

static const kiln_als_options cases[] = {
    {.l2 = 2, .tolerance = 1e-6, .max_iterations = 2000},
    {.l2 = 0.2, .counted = 1, .tolerance = 1e-6, .max_iterations = 2000},
    {.l2 = 2, .biases = 1, .tolerance = 1e-6, .max_iterations = 2000},
    {.l2 = 0.2,
     .biases = 1,
     .counted = 1,
     .solver = KILN_FACTOR_CHOLESKY,
     .tolerance = 1e-6,
     .max_iterations = 2000},
    {.l2 = 1, .solver = KILN_FACTOR_CHOLESKY, .tolerance = 1e-6, .max_iterations = 2000},
    {.l2 = 0.5, .implicit = 1, .alpha = 3, .tolerance = 1e-6, .max_iterations = 2000},
    {.l2 = 0.5,
     .implicit = 1,
     .alpha = 3,
     .solver = KILN_FACTOR_CHOLESKY,
     .tolerance = 1e-6,
     .max_iterations = 2000},
    {.l2 = 2, .solver = KILN_FACTOR_CCD, .tolerance = 1e-6, .max_iterations = 2000},
    {.l2 = 0.2,
     .counted = 1,
     .biases = 1,
     .solver = KILN_FACTOR_CCD,
     .tolerance = 1e-6,
     .max_iterations = 2000},
};
enum { CASES = sizeof cases / sizeof *cases };

static void objective_as_defined_and_never_rising(void **state) {
    (void)state;
    struct ratings ratings;
    struct fit fit;
    fill(&ratings, 1);
    for (int c = 0; c < CASES; c++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            const double digits = type == KILN_F32 ? 1e-5 : 1e-12;
            fit_run(&fit, &ratings, type, &cases[c]);
            const double objective = objective_of(&fit, &ratings, &cases[c]);
            assert_true(fabs(fit.report.objective - objective) <= digits * objective);
            kiln_als_verification found = {0};
            assert_int_equal(kiln_verify_als(&found, fit.R, fit.A, fit.B,
                                             kiln_report_figure(&fit.report, "mean"), &cases[c]),
                             KILN_OK);
            assert_true(fabs(found.objective - objective) <= 1e-12 * objective);
            assert_true(cases[c].implicit ? isnan(found.rmse) : found.rmse > 0 && found.rmse < 2);
            for (int64_t t = 1; t < fit.report.trace_count; t++)
                assert_true(fit.report.trace[t].objective <=
                            fit.report.trace[t - 1].objective * (1 + digits));
            assert_true(fit.report.trace_count == fit.report.iterations && fit.report.iterations > 2);
            assert_true(fit.report.converged);
            fit_free(&fit);
        }
}

/* At the end neither half can be bettered: both solvers meet there, and a warm start stays. */
static void fixed_point_and_warm_start(void **state) {
    (void)state;
    struct ratings ratings;
    struct fit fit;
    fill(&ratings, 2);
    kiln_als_options options = {.l2 = 3, .biases = 1, .tolerance = 1e-13, .max_iterations = 2000};
    fit_run(&fit, &ratings, KILN_F64, &options);
    assert_true(fit.report.converged);
    const double objective = fit.report.objective;
    kiln_report report = {0};
    options.warm_start = 1;
    options.max_iterations = 1;
    options.solver = KILN_FACTOR_CHOLESKY;
    assert_int_equal(kiln_als(fit.A, fit.B, fit.R, &options, &report), KILN_OK);
    assert_true(fabs(report.objective - objective) <= 1e-9 * objective);
    kiln_report_free(&report);
    fit_free(&fit);
}

/* One side's part of Algorithm 2: x_u = sum_i e_ui y_i / (l2 + sum_i y_i^2); by_columns: the same with u
 * and i exchanged. */
static void ccd_side(double *x, const double *y, double e[M][N], const struct ratings *ratings, double l2,
                     bool by_columns) {
    for (int p = 0; p < (by_columns ? N : M); p++) {
        double above = 0, below = 0;
        for (int q = 0; q < (by_columns ? M : N); q++) {
            const int u = by_columns ? q : p, i = by_columns ? p : q;
            if (!ratings->there[u][i]) continue;
            above += e[u][i] * y[q];
            below += y[q] * y[q];
        }
        x[p] = below > 0 ? above / (l2 + below) : 0;
    }
}

/* Both columns of each factor are made equally long. */
static void balance(double a[M * K], double b[N * K]) {
    for (int k = 0; k < K; k++) {
        double of_a = 0, of_b = 0;
        for (int u = 0; u < M; u++) of_a += a[u * K + k] * a[u * K + k];
        for (int i = 0; i < N; i++) of_b += b[i * K + k] * b[i * K + k];
        const double scale = pow(of_b / of_a, 0.25);
        for (int u = 0; u < M; u++) a[u * K + k] *= scale;
        for (int i = 0; i < N; i++) b[i * K + k] /= scale;
    }
}

/* Two sweeps of CCD++ are those of the paper's Algorithm 2, in loops over all cells, each followed by a
 * balance. */
static void ccd_is_algorithm_2(void **state) {
    (void)state;
    enum { T = 2, SWEEPS = 2 };
    const kiln_als_options options = {.l2 = 0.7,
                                      .solver = KILN_FACTOR_CCD,
                                      .steps = T,
                                      .tolerance = 1e-300,
                                      .max_iterations = SWEEPS,
                                      .warm_start = 1};
    struct ratings ratings;
    static double a[M * K], b[N * K], e[M][N];
    double got_a[M * K], got_b[N * K], x[M], y[N];
    uint64_t seed = 8;
    fill(&ratings, 7);
    for (int i = 0; i < M * K; i++) a[i] = uniform(&seed) - 0.4;
    for (int i = 0; i < N * K; i++) b[i] = uniform(&seed) - 0.4;
    kiln_matrix *R = matrix_of(&ratings, KILN_F64), *A = NULL, *B = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, M, K, a), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, N, K, b), KILN_OK);
    assert_int_equal(kiln_als(A, B, R, &options, NULL), KILN_OK);
    for (int u = 0; u < M; u++)
        for (int i = 0; i < N; i++) {
            e[u][i] = ratings.value[u][i];
            for (int k = 0; k < K; k++) e[u][i] -= a[u * K + k] * b[i * K + k];
        }
    for (int step = 0; step < SWEEPS * K; step++) {
        const int k = step % K;
        for (int u = 0; u < M; u++) x[u] = a[u * K + k];
        for (int i = 0; i < N; i++) y[i] = b[i * K + k];
        for (int u = 0; u < M; u++)
            for (int i = 0; i < N; i++) e[u][i] += x[u] * y[i];
        for (int t = 0; t < T; t++) {
            ccd_side(x, y, e, &ratings, options.l2, false);
            ccd_side(y, x, e, &ratings, options.l2, true);
        }
        for (int u = 0; u < M; u++)
            for (int i = 0; i < N; i++) e[u][i] -= x[u] * y[i];
        for (int u = 0; u < M; u++) a[u * K + k] = x[u];
        for (int i = 0; i < N; i++) b[i * K + k] = y[i];
        if (k == K - 1) balance(a, b);
    }
    get(got_a, A);
    get(got_b, B);
    for (int i = 0; i < M * K; i++) assert_true(fabs(got_a[i] - a[i]) <= 1e-11);
    for (int i = 0; i < N * K; i++) assert_true(fabs(got_b[i] - b[i]) <= 1e-11);
    kiln_matrix_free(R);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
}

/* A row of the training data, folded in, gets the factors that it has at the fixed point; recommendations
 * are the best that plain loops find. */
static void models_fold_in_and_recommend(void **state) {
    (void)state;
    enum { TOP = 7 };
    struct ratings ratings;
    struct fit fit;
    fill(&ratings, 3);
    const kiln_als_options options = {.l2 = 2, .biases = 1, .tolerance = 1e-13, .max_iterations = 2000};
    fit_run(&fit, &ratings, KILN_F64, &options);
    const double mean = kiln_report_figure(&fit.report, "mean");
    kiln_model *model = NULL;
    kiln_matrix *A = NULL;
    double a[M * (K + 1)], scores[M * TOP];
    int64_t columns[M * TOP];
    assert_int_equal(kiln_als_model(&model, fit.A, fit.B, mean, &options), KILN_OK);
    assert_int_equal(kiln_transform(&A, model, fit.R), KILN_OK);
    get(a, A);
    for (int e = 0; e < M * fit.width; e++) assert_true(fabs(a[e] - fit.a[e]) <= 1e-4);
    assert_int_equal(kiln_recommend(columns, scores, TOP, model, fit.A, fit.R), KILN_OK);
    for (int u = 0; u < M; u++)
        for (int t = 0; t < TOP; t++) {
            const int best = (int)columns[u * TOP + t];
            const double score = predict(&fit, fit.a + u * fit.width, best, 1, mean);
            int better = 0;
            assert_true(!ratings.there[u][best] && fabs(score - scores[u * TOP + t]) <= 1e-9);
            for (int i = 0; i < N; i++)
                better +=
                    !ratings.there[u][i] && predict(&fit, fit.a + u * fit.width, i, 1, mean) > score + 1e-12;
            assert_int_equal(better, t);
        }
    assert_int_equal(kiln_recommend(columns, scores, 1, model, fit.A, NULL), KILN_OK);
    kiln_matrix_free(A);
    ratings.value[1][1] = NAN;
    ratings.there[1][1] = true;
    kiln_matrix *const bad = matrix_of(&ratings, KILN_F64);
    assert_int_equal(kiln_transform(&A, model, bad), KILN_ERR_DATA);
    kiln_matrix_free(bad);
    kiln_model_free(model);
    fit_free(&fit);
}

static void held_out_entries(void **state) {
    (void)state;
    struct ratings ratings;
    kiln_matrix *train = NULL, *test = NULL;
    fill(&ratings, 4);
    kiln_matrix *R = matrix_of(&ratings, KILN_F64);
    assert_int_equal(kiln_split_entries(&train, &test, R, 0.2, 5), KILN_OK);
    assert_true(kiln_matrix_nnz(train) + kiln_matrix_nnz(test) == kiln_matrix_nnz(R));
    const double share = (double)kiln_matrix_nnz(test) / (double)kiln_matrix_nnz(R);
    assert_true(share > 0.12 && share < 0.28);
    kiln_matrix *A = NULL, *B = NULL;
    kiln_report report = {0};
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, M, K + 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, N, K + 1, NULL), KILN_OK);
    const kiln_als_options options = {.l2 = 2, .biases = 1, .test = test};
    assert_int_equal(kiln_als(A, B, train, &options, &report), KILN_OK);
    double a[M * (K + 1)], b[N * (K + 1)], sum = 0;
    int64_t start[M + 1];
    int32_t col[M * N];
    double value[M * N];
    get(a, A);
    get(b, B);
    assert_int_equal(kiln_matrix_get_csr(start, col, value, test), KILN_OK);
    for (int u = 0; u < M; u++)
        for (int64_t e = start[u]; e < start[u + 1]; e++) {
            const double *au = a + u * (K + 1), *bi = b + col[e] * (K + 1);
            double d = value[e] - kiln_report_figure(&report, "mean") - au[K] - bi[K];
            for (int k = 0; k < K; k++) d -= au[k] * bi[k];
            sum += d * d;
        }
    const double rmse = sqrt(sum / (double)kiln_matrix_nnz(test));
    assert_true(fabs(rmse - kiln_report_figure(&report, "test_rmse")) <= 1e-9);
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
    kiln_matrix_free(R);
    kiln_matrix_free(train);
    kiln_matrix_free(test);
}

/* Factors put three columns in a known order: 0, 1, 2 for the first row, 2, 1, 0 for the second. */
static void rankings_by_hand(void **state) {
    (void)state;
    const double a[] = {1, -1}, b[] = {3, 2, 1};
    const int64_t start[] = {0, 1, 2};
    const int32_t col[] = {1, 2};
    kiln_matrix *A = NULL, *B = NULL, *test = NULL;
    kiln_model *model = NULL;
    kiln_ranking ranking = {.size = sizeof ranking};
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 2, 1, a), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, 3, 1, b), KILN_OK);
    assert_int_equal(kiln_matrix_csr(&test, device, KILN_F64, 2, 3, start, col, NULL), KILN_OK);
    assert_int_equal(kiln_als_model(&model, A, B, 0, &(kiln_als_options){.l2 = 1}), KILN_OK);
    assert_int_equal(kiln_rank(&ranking, 2, model, A, NULL, test), KILN_OK);
    assert_true(ranking.rows == 2 && ranking.recall == 1 && ranking.precision == 1);
    assert_true(ranking.map == 0.75 && ranking.auc == 0.75 && ranking.coverage == 1);
    assert_true(fabs(ranking.ndcg - (1 / log2(3) + 1) / 2) < 1e-12);
    /* Lists that run dry: both rows have two columns to miss, whatever the number of empty places. Nothing is
     * found for the first; the second has its column before one miss, so all columns are behind. */
    static const int64_t dry[] = {0, -1, -1, -1, -1, 2, 1, -1, -1, -1};
    assert_int_equal(kiln_ranking_of(&ranking, 5, dry, test), KILN_OK);
    assert_true(ranking.auc == 0.5 && ranking.recall == 0.5 && ranking.map == 0.5);
    kiln_model_free(model);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
    kiln_matrix_free(test);
}

/* Lists beside a sort in plain loops: rows around those of tiles, columns around those of panels. What is
 * seen stands in any order, and few rows go another way than many. */
static void lists_of_any_size(void **state) {
    (void)state;
    enum { ROWS = 67, COLUMNS = 131, WIDTH = 5, TOP = 6 };
    static double a[ROWS * WIDTH], b[COLUMNS * WIDTH], scores[ROWS * TOP];
    static int64_t columns[ROWS * TOP], start[ROWS + 1];
    static int32_t seen_columns[ROWS * 2];
    static unsigned char allowed[COLUMNS];
    for (int i = 0; i < ROWS * WIDTH; i++) a[i] = (i * 7 + 3) % 5 - 2;
    for (int i = 0; i < COLUMNS * WIDTH; i++) b[i] = (i * 11 + i / 7) % 5 - 2;
    for (int j = 0; j < COLUMNS; j++) allowed[j] = j % 10 != 3;
    for (int u = 0; u < ROWS; u++) {
        start[u + 1] = 2 * (u + 1);
        seen_columns[2 * u] = (u * 13 + 70) % COLUMNS;
        seen_columns[2 * u + 1] = (u * 13) % COLUMNS;
    }
    const int64_t sizes[] = {ROWS, 8, 7, 1, 0};
    for (int size = 0; size < 5; size++) {
        const int64_t rows = sizes[size];
        kiln_matrix *A = NULL, *B = NULL, *seen = NULL;
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, rows, WIDTH, a), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, COLUMNS, WIDTH, b), KILN_OK);
        assert_int_equal(kiln_matrix_csr(&seen, device, KILN_F64, rows, COLUMNS, start, seen_columns, NULL),
                         KILN_OK);
        assert_int_equal(kiln_top_products(columns, scores, TOP, A, B, seen, allowed), KILN_OK);
        for (int64_t u = 0; u < rows; u++) {
            bool taken[COLUMNS];
            for (int j = 0; j < COLUMNS; j++)
                taken[j] = !allowed[j] || j == seen_columns[2 * u] || j == seen_columns[2 * u + 1];
            for (int t = 0; t < TOP; t++) {
                double best = -INFINITY;
                int wanted = -1;
                for (int j = 0; j < COLUMNS; j++) {
                    double score = 0;
                    for (int k = 0; k < WIDTH; k++) score += a[u * WIDTH + k] * b[j * WIDTH + k];
                    if (taken[j] || !(score > best)) continue;
                    best = score;
                    wanted = j;
                }
                taken[wanted] = true;
                assert_true(columns[u * TOP + t] == wanted && scores[u * TOP + t] == best);
            }
        }
        kiln_matrix_free(A);
        kiln_matrix_free(B);
        kiln_matrix_free(seen);
    }
}

/* Words 0 and 1 share two of four documents, 0 and 2 none, 3 is in no document. */
static void coherence_by_hand(void **state) {
    (void)state;
    const int64_t start[] = {0, 2, 4, 5, 6}, words[] = {0, 1, -1, 0, 2, -1, 0, 3, -1, 2, -1, -1};
    const int32_t col[] = {0, 1, 1, 0, 0, 2};
    double found[4];
    kiln_matrix *X = NULL;
    assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, 4, 4, start, col, NULL), KILN_OK);
    assert_int_equal(kiln_coherence(found, KILN_COHERENCE_UMASS, 4, 3, words, X), KILN_OK);
    assert_true(fabs(found[0] - log(0.5 / 0.75)) < 1e-11 && fabs(found[1] - log(1e-12 / 0.75)) < 1e-9);
    assert_true(found[2] == 0 && isnan(found[3]));
    assert_int_equal(kiln_coherence(found, KILN_COHERENCE_NPMI, 1, 3, words, X), KILN_OK);
    assert_true(fabs(found[0] - log(0.5 / (0.75 * 0.5)) / -log(0.5)) < 1e-11);
    assert_int_equal(kiln_coherence(found, KILN_COHERENCE_NPMI, 1, 1, (int64_t[]){4}, X), KILN_ERR_ARGUMENT);
    static const int64_t behind[][3] = {{-1, 3, -1}, {0, -1, 1}, {-1, -1, 2}, {0, 1, -2}};
    for (int i = 0; i < 4; i++)
        assert_int_equal(kiln_coherence(found, KILN_COHERENCE_NPMI, 1, 3, behind[i], X), KILN_ERR_ARGUMENT);
    kiln_matrix_free(X);
}

/* Columns 0 and 2 point the same way, 1 across, 3 the other way, 4 nowhere; what was seen comes back, and
 * damage is told. */
static void similar_and_seen(void **state) {
    (void)state;
    const double a[] = {1, 0, 0, 1}, b[] = {2, 0, 0, 3, 5, 1, -1, 0, 0, 0};
    const int64_t start[] = {0, 2, 3};
    const int32_t col[] = {1, 4, 0};
    kiln_matrix *A = NULL, *B = NULL, *R = NULL, *seen = NULL, *counts = NULL;
    kiln_model *model = NULL;
    int64_t columns[5], got_start[3];
    int32_t got_col[3];
    double scores[5], ones[3];
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 2, 2, a), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, 5, 2, b), KILN_OK);
    assert_int_equal(kiln_matrix_csr(&R, device, KILN_F64, 2, 5, start, col, (double[]){7, 8, 9}), KILN_OK);
    assert_int_equal(kiln_als_model(&model, A, B, 0, &(kiln_als_options){.l2 = 1}), KILN_OK);
    assert_int_equal(kiln_similar(columns, scores, 5, model, 0), KILN_OK);
    assert_memory_equal(columns, ((int64_t[]){2, 1, 4, 3, -1}), sizeof columns);
    assert_true(fabs(scores[0] - 5 / sqrt(26)) < 1e-15 && scores[1] == 0 && scores[3] == -1 &&
                isnan(scores[4]));
    assert_int_equal(kiln_similar(columns, scores, 1, model, 5), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_model_seen(&seen, model, R, 0, 2), KILN_ERR_MODEL);
    assert_int_equal(kiln_model_keep_seen(model, A), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_model_keep_seen(model, R), KILN_OK);
    assert_int_equal(kiln_model_seen(&seen, model, R, 0, 2), KILN_OK);
    assert_int_equal(kiln_matrix_get_csr(got_start, got_col, ones, seen), KILN_OK);
    assert_memory_equal(got_start, start, sizeof start);
    assert_memory_equal(got_col, col, sizeof col);
    assert_true(ones[0] == 1 && ones[2] == 1);
    kiln_matrix_free(seen);
    assert_int_equal(kiln_model_seen(&seen, model, R, 1, 1), KILN_OK);
    assert_int_equal(kiln_matrix_nnz(seen), 1);
    assert_int_equal(kiln_model_seen(&seen, model, R, 1, 2), KILN_ERR_ARGUMENT);
    static const float wrong[][2] = {{2, 2}, {1, 1}, {3, 0}, {-1, 4}, {2.5f, 0.5f}, {6, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(kiln_matrix_dense(&counts, device, KILN_F32, 2, 1, wrong[i]), KILN_OK);
        assert_int_equal(kiln_model_set_tensor(model, "seen_counts", counts), KILN_OK);
        assert_int_equal(kiln_similar(columns, scores, 1, model, 0), KILN_ERR_MODEL);
        kiln_matrix_free(counts);
    }
    kiln_model_free(model);
    kiln_matrix *const all[] = {A, B, R, seen};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
}

static int stop_at_second(void *user, const kiln_progress *now) {
    (void)user;
    return now->done >= 2;
}

static void refusals_and_stopping(void **state) {
    (void)state;
    struct ratings ratings;
    struct fit fit;
    fill(&ratings, 6);
    fit_run(&fit, &ratings, KILN_F64, &(kiln_als_options){.l2 = 2, .control = {stop_at_second, NULL}});
    assert_true(fit.report.stopped_by == KILN_STOP_CANCELLED && fit.report.iterations == 2);
    static const kiln_als_options wrong[] = {{.l2 = -2},
                                             {.alpha = -1},
                                             {.solver = 9},
                                             {.steps = -1},
                                             {.tolerance = -1},
                                             {.max_iterations = -1},
                                             {.l2 = INFINITY},
                                             {.biases = 1, .implicit = 1},
                                             {.solver = KILN_FACTOR_CCD, .implicit = 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(kiln_als(fit.A, fit.B, fit.R, &wrong[i], NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_als(fit.A, fit.A, fit.R, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_als(fit.A, fit.B, fit.A, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_als(fit.B, fit.A, fit.R, NULL, NULL), KILN_ERR_ARGUMENT);
    ratings.value[1][1] = NAN;
    ratings.there[1][1] = true;
    kiln_matrix *bad = matrix_of(&ratings, KILN_F64);
    assert_int_equal(kiln_als(fit.A, fit.B, bad, NULL, NULL), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "row 1, column 1"));
    kiln_matrix_free(bad);
    fit_free(&fit);
}

/* Ratings of thousands, hardly penalised: matrices whose smallest eigenvalue is below what f32 makes of
 * the largest. The objective never rises by more than f32 rounds it, explicit and implicit. */
static void badly_scaled(void **state) {
    enum { ROWS = 12, COLUMNS = 20, FACTORS = 4 };
    (void)state;
    for (int run = 0; run < 60; run++) {
        int64_t start[ROWS + 1] = {0}, nnz = 0;
        int32_t col[ROWS * COLUMNS];
        float value[ROWS * COLUMNS];
        uint64_t seed = (uint64_t)run + 1;
        const int rows = 3 + run % (ROWS - 2);
        for (int u = 0; u < rows; u++) {
            for (int i = 0; i < COLUMNS; i++) {
                const double r = uniform(&seed), there = uniform(&seed);
                if (there > 0.9) continue;
                col[nnz] = i;
                value[nnz++] = (float)(run % 2 ? 1e4 * (3 + r) : 1 + floor(5 * r));
            }
            start[u + 1] = nnz;
        }
        kiln_matrix *R = NULL, *A = NULL, *B = NULL;
        kiln_report report = {.size = sizeof report};
        const kiln_als_options options = {
            .l2 = 0.01, .solver = KILN_FACTOR_CHOLESKY, .implicit = run % 4 == 0, .seed = run};
        assert_int_equal(kiln_matrix_csr(&R, device, KILN_F32, rows, COLUMNS, start, col, value), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F32, rows, FACTORS, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&B, device, KILN_F32, COLUMNS, FACTORS, NULL), KILN_OK);
        assert_int_equal(kiln_als(A, B, R, &options, &report), KILN_OK);
        for (int64_t i = 1; i < report.trace_count; i++) {
            const double before = report.trace[i - 1].objective, rise = report.trace[i].objective - before;
            if (rise > 1e-5 * before) fail_msg("run %d: from %.9g to %.9g", run, before, before + rise);
        }
        assert_true(kiln_report_figure(&report, "setbacks") == 0);
        kiln_report_free(&report);
        kiln_matrix_free(R);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
}

/* Hardly penalised, a step of CG and a round of CCD++ gain little each: a run that has converged ends with an
 * exact sweep. Its B has P^T A = l2 B, P the residuals, in an implicit model of all cells and times their
 * confidences. Columns made equally long after it keep P, and leave P^T a_k = l2 c b_k with some c > 0 for
 * each factor k. Cholesky's backward error is some K^2 eps of the sums of all magnitudes. There are more
 * factors than eight steps of CG would be exact for. */
enum { SHORT_M = 60, SHORT_N = 40, SHORT_K = 30 };

static void ended_with_an_exact_sweep(int run, kiln_type type, const kiln_als_options *o, double mean,
                                      const double *a, const double *b, double value[SHORT_M][SHORT_N]) {
    const int width = SHORT_K + o->biases;
    const double allowed = SHORT_K * SHORT_K * (type == KILN_F32 ? FLT_EPSILON : DBL_EPSILON);
    for (int k = 0; k < SHORT_K; k++) {
        double product[SHORT_N] = {0}, size[SHORT_N] = {0}, along = 0, squares = 0, length = 0;
        for (int u = 0; u < SHORT_M; u++)
            for (int i = 0; i < SHORT_N; i++) {
                const double *p = a + u * width, *q = b + i * width, r = value[u][i],
                             c = o->implicit ? 1 + o->alpha * r : r > 0, wanted = o->implicit ? r > 0 : r;
                double off = wanted - mean, all = wanted + mean;
                if (o->biases) off -= p[SHORT_K] + q[SHORT_K], all += fabs(p[SHORT_K]) + fabs(q[SHORT_K]);
                for (int j = 0; j < SHORT_K; j++) off -= p[j] * q[j], all += fabs(p[j] * q[j]);
                product[i] += c * off * p[k];
                size[i] += c * all * fabs(p[k]);
            }
        for (int u = 0; u < SHORT_M; u++) length += pow(a[u * width + k], 2);
        for (int i = 0; i < SHORT_N; i++) {
            along += product[i] * b[i * width + k];
            squares += pow(b[i * width + k], 2);
        }
        assert_true(fabs(length / squares - 1) < 0.005); /* scales within 1e-3 of 1 are left */
        for (int i = 0; i < SHORT_N; i++)
            if (!(fabs(product[i] - along / squares * b[i * width + k]) <= allowed * size[i]))
                fail_msg("run %d: factor %d of column %d is off by %g of %g", run, k, i,
                         fabs(product[i] - along / squares * b[i * width + k]) / size[i], allowed);
    }
}

static void few_steps_end_no_run(void **state) {
    enum { RUNS = 5 };
    (void)state;
    static const struct {
        kiln_type type;
        kiln_als_options options;
    } runs[RUNS] = {{KILN_F64, {.l2 = 1, .implicit = 1, .alpha = 1e4, .solver = KILN_FACTOR_CG}},
                    {KILN_F64, {.l2 = 0.01, .solver = KILN_FACTOR_CG}},
                    {KILN_F64, {.l2 = 0.01, .solver = KILN_FACTOR_CCD}},
                    {KILN_F64, {.l2 = 0.01, .solver = KILN_FACTOR_CG, .biases = 1}},
                    {KILN_F32, {.l2 = 0.01, .solver = KILN_FACTOR_CG}}};
    static double all[SHORT_M][SHORT_N], a[SHORT_M * (SHORT_K + 1)], b[SHORT_N * (SHORT_K + 1)];
    int64_t start[SHORT_M + 1] = {0}, nnz = 0;
    int32_t col[SHORT_M * SHORT_N];
    double value[SHORT_M * SHORT_N];
    uint64_t seed = 1;
    for (int u = 0; u < SHORT_M; u++) {
        for (int i = 0; i < SHORT_N; i++) {
            if (uniform(&seed) > 0.4) continue;
            col[nnz] = i;
            all[u][i] = value[nnz++] = 1 + floor(5 * uniform(&seed));
        }
        start[u + 1] = nnz;
    }
    for (int run = 0; run < RUNS; run++) {
        const kiln_type type = runs[run].type;
        kiln_matrix *wide = NULL, *R = NULL, *A = NULL, *B = NULL;
        kiln_report report = {.size = sizeof report};
        kiln_als_options options = runs[run].options;
        const int width = SHORT_K + options.biases;
        options.size = sizeof options;
        options.steps = 1;
        options.tolerance = 0.003;
        options.max_iterations = 20000;
        assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, SHORT_M, SHORT_N, start, col, value),
                         KILN_OK);
        assert_int_equal(kiln_matrix_copy(&R, device, type, wide), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&A, device, type, SHORT_M, width, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&B, device, type, SHORT_N, width, NULL), KILN_OK);
        assert_int_equal(kiln_als(A, B, R, &options, &report), KILN_OK);
        assert_true(report.converged);
        get(a, A);
        get(b, B);
        ended_with_an_exact_sweep(run, type, &options,
                                  options.biases ? kiln_report_figure(&report, "mean") : 0, a, b, all);
        kiln_report_free(&report);
        kiln_matrix_free(wide);
        kiln_matrix_free(R);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
}

/* R = diag(1.1, 1) in full, and one factor that begins next to the second singular vector, a saddle: the
 * share of the first one grows by 1.1^2 in a sweep, whether few steps or exact ones make it. The least
 * objective is 1 / 2 + l2 1.1 - l2^2 / 2, as of all factors of one sigma alone. */
static void a_saddle_ends_no_run(void **state) {
    static const int64_t start[] = {0, 2, 4};
    static const int32_t col[] = {0, 1, 0, 1};
    static const double value[] = {1.1, 0, 0, 1}, l2 = 0.01;
    (void)state;
    for (int run = 0; run < 90; run++) {
        const double b[] = {0.001 * pow(1.2, run / 3), 1};
        const kiln_als_options options = {.l2 = l2,
                                          .solver = KILN_FACTOR_CG + run % 3,
                                          .steps = 1,
                                          .warm_start = 1,
                                          .max_iterations = 2000};
        kiln_matrix *R = NULL, *A = NULL, *B = NULL;
        kiln_report report = {0};
        assert_int_equal(kiln_matrix_csr(&R, device, KILN_F64, 2, 2, start, col, value), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 2, 1, b), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, 2, 1, b), KILN_OK);
        assert_int_equal(kiln_als(A, B, R, &options, &report), KILN_OK);
        assert_true(report.converged);
        const double least = 0.5 + l2 * 1.1 - l2 * l2 / 2;
        if (!(report.objective <= least * (1 + 50 * report.tolerance)))
            fail_msg("solver %d from %g: %g after %lld sweeps, but %g is possible", options.solver, b[0],
                     report.objective, (long long)report.iterations, least);
        kiln_report_free(&report);
        kiln_matrix_free(R);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
}

/* One entry of 1e11 among thousands of 1..5, which hardly move the mean: CG's products would leave f32, so
 * that Cholesky takes its place and CG that was asked for is refused. The entry is fitted all the same: sigma
 * alone explains it, and with the penalty l2 the least objective is l2 sigma - l2^2 / 2, but for the others'
 * part, which is 1e-15 of that. */
static void one_large_entry(void **state) {
    enum { ROWS = 60, COLUMNS = 40, FACTORS = 4 };
    (void)state;
    int64_t start[ROWS + 1] = {0};
    int32_t col[ROWS * COLUMNS];
    float value[ROWS * COLUMNS];
    for (int e = 0; e < ROWS * COLUMNS; e++) {
        col[e] = e % COLUMNS;
        value[e] = e == 0 ? 1e11f : (float)(1 + e * 7 % 5);
    }
    for (int u = 0; u <= ROWS; u++) start[u] = (int64_t)u * COLUMNS;
    kiln_matrix *R = NULL, *A = NULL, *B = NULL;
    kiln_report report = {.size = sizeof report};
    kiln_als_options options = {.size = sizeof options, .l2 = 1e10};
    assert_int_equal(kiln_matrix_csr(&R, device, KILN_F32, ROWS, COLUMNS, start, col, value), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F32, ROWS, FACTORS, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, KILN_F32, COLUMNS, FACTORS, NULL), KILN_OK);
    assert_int_equal(kiln_als(A, B, R, &options, &report), KILN_OK);
    const double least = 1e10 * 1e11 - 0.5e20;
    assert_true(report.converged);
    if (!(fabs(report.objective - least) < 1e-3 * least)) fail_msg("%g, not %g", report.objective, least);
    kiln_report_free(&report);
    for (int implicit = 0; implicit < 2; implicit++) {
        options.implicit = implicit;
        options.solver = KILN_FACTOR_CG;
        assert_int_equal(kiln_als(A, B, R, &options, NULL), KILN_ERR_DATA);
        assert_non_null(strstr(kiln_last_error()->message, "conjugate gradients leave f32"));
        options.solver = 0;
        assert_int_equal(kiln_als(A, B, R, &options, NULL), KILN_OK);
    }
    kiln_matrix_free(R);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
}

/* Rows have fewer entries than factors and weights of 1e7: most pivots of their matrices are rounding, whose
 * columns must not grow from one to the next. */
static void sure_of_few(void **state) {
    enum { ROWS = 30, COLUMNS = 20, FACTORS = 32 };
    (void)state;
    int64_t start[ROWS + 1] = {0}, nnz = 0;
    int32_t col[ROWS * COLUMNS];
    float value[ROWS * COLUMNS];
    uint64_t seed = 1;
    for (int u = 0; u < ROWS; u++) {
        for (int i = 0; i < COLUMNS; i++) {
            if (uniform(&seed) > 0.3) continue;
            col[nnz] = i;
            value[nnz++] = (float)(1 + (u + i) % 5);
        }
        start[u + 1] = nnz;
    }
    kiln_matrix *R = NULL, *A = NULL, *B = NULL;
    assert_int_equal(kiln_matrix_csr(&R, device, KILN_F32, ROWS, COLUMNS, start, col, value), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F32, ROWS, FACTORS, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, KILN_F32, COLUMNS, FACTORS, NULL), KILN_OK);
    for (double alpha = 1e5; alpha < 3e7; alpha *= 10) {
        kiln_report report = {.size = sizeof report};
        const kiln_als_options options = {
            .l2 = 5, .solver = KILN_FACTOR_CHOLESKY, .implicit = 1, .alpha = alpha, .max_iterations = 20};
        assert_int_equal(kiln_als(A, B, R, &options, &report), KILN_OK);
        assert_true(isfinite(report.objective) && report.objective < report.trace[0].objective);
        kiln_report_free(&report);
    }
    kiln_matrix_free(R);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
}

/* The unit of the ratings changes the objective by its square, and nothing else. */
static void any_unit(void **state) {
    (void)state;
    static const float units[] = {1, 3e9f, 1e10f, 1e-10f, 1e-11f};
    static const int64_t start[] = {0, 3, 6, 8, 11};
    static const int32_t col[] = {0, 1, 3, 0, 2, 4, 1, 4, 0, 2, 3};
    double first = 0;
    for (int i = 0; i < 5; i++) {
        float value[11];
        for (int e = 0; e < 11; e++) value[e] = units[i] * (float)(1 + e * 7 % 5);
        kiln_matrix *R = NULL, *A = NULL, *B = NULL;
        kiln_report report = {.size = sizeof report};
        const kiln_als_options options = {.max_iterations = 200, .tolerance = 1e-6, .seed = 1};
        assert_int_equal(kiln_matrix_csr(&R, device, KILN_F32, 4, 5, start, col, value), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F32, 4, 2, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&B, device, KILN_F32, 5, 2, NULL), KILN_OK);
        assert_int_equal(kiln_als(A, B, R, &options, &report), KILN_OK);
        const double objective = report.objective / units[i] / units[i];
        if (i == 0) first = objective;
        if (!(fabs(objective - first) < 0.01 * first))
            fail_msg("unit %g: %g instead of %g", (double)units[i], objective, first);
        kiln_report_free(&report);
        kiln_matrix_free(R);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
}

/* Fits ratings of this unit, in a table of two rows. */
static kiln_status fit_unit(kiln_type type, double unit, int solver) {
    const int64_t start[] = {0, 2, 4};
    const int32_t col[] = {0, 1, 0, 1};
    const double values[] = {unit, 2 * unit, 5 * unit, 3 * unit};
    float narrow[4];
    kiln_matrix *R = NULL, *A = NULL, *B = NULL;
    const kiln_als_options options = {.size = sizeof options, .solver = solver};
    for (int e = 0; e < 4; e++) narrow[e] = (float)values[e];
    assert_int_equal(kiln_matrix_csr(&R, device, type, 2, 2, start, col,
                                     type == KILN_F32 ? (const void *)narrow : (const void *)values),
                     KILN_OK);
    assert_int_equal(kiln_matrix_dense(&A, device, type, 2, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&B, device, type, 2, 1, NULL), KILN_OK);
    const kiln_status status = kiln_als(A, B, R, &options, NULL);
    kiln_matrix_free(R);
    kiln_matrix_free(A);
    kiln_matrix_free(B);
    return status;
}

/* A fit says that the type has no room for its products, and solves nothing. */
static void units_that_leave_the_type(void **state) {
    (void)state;
    assert_int_equal(fit_unit(KILN_F32, 1, KILN_FACTOR_CG), KILN_OK);
    assert_int_equal(fit_unit(KILN_F32, 3e9, KILN_FACTOR_CG), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "conjugate gradients leave f32"));
    assert_int_equal(fit_unit(KILN_F32, 1e-10, KILN_FACTOR_CG), KILN_ERR_DATA);
    assert_int_equal(fit_unit(KILN_F32, 3e9, KILN_FACTOR_CHOLESKY), KILN_OK);
    assert_int_equal(fit_unit(KILN_F64, 3e9, KILN_FACTOR_CG), KILN_OK);
    static const double far[] = {1e-200, 1e-170, 1e160, 1e200}, narrow[] = {1e-42, 1e-30, 1e-20, 1e20, 1e37};
    for (int i = 0; i < 4; i++) assert_int_equal(fit_unit(KILN_F64, far[i], 0), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "leave f64"));
    for (int i = 0; i < 5; i++) assert_int_equal(fit_unit(KILN_F32, narrow[i], 0), KILN_ERR_DATA);
    assert_non_null(strstr(kiln_last_error()->message, "leave f32"));
}

static void on_opencl(void **state) {
    kiln_device *const cpu = device, *gpu = NULL;
    if (kiln_device_open(&gpu, "opencl", NULL) != KILN_OK) {
        printf("skip opencl: %s\n", kiln_last_error()->message);
        return;
    }
    device = gpu;
    badly_scaled(state);
    sure_of_few(state);
    any_unit(state);
    device = cpu;
    kiln_device_close(gpu);
}

/* A rise is a setback where it is more than rounding: of a sum of squares f, units of sqrt(f squares), not of
 * what the start's objective was. */
static void setbacks_are_rises(void **state) {
    static const struct {
        double objectives[3], squares, terms;
        kiln_type type;
        int expected;
    } runs[] = {{{1e6, 1, 1.05}, 1e6, 0, KILN_F32, 0}, /* 1.2e-4 of sqrt(1e6) is 0.12 */
                {{1e6, 1, 10}, 1e6, 0, KILN_F32, 1},   /* 1.2e-4 of 1e6 is 119 */
                {{1e6, 1, 1 + 1e-6}, 1e6, 0, KILN_F64, 1},
                {{1e6, 1, 1 + 1e-11}, 1e6, 0, KILN_F64, 0},
                {{1e6, 1e5, 1e5 * (1 + 1e-3)}, 1e6, 0, KILN_F32, 1},
                {{1e6, 1, 10}, 0, 0, KILN_F32, 0},
                {{0, -2.3e-16, 0}, 0, 0, KILN_F64, 1}, /* of terms that take each other off: rounding */
                {{0, -2.3e-16, 0}, 0, 1, KILN_F64, 0},
                {{0, -1e-12, 0}, 0, 1, KILN_F64, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        kiln_trace_row rows[3] = {{0}};
        kiln_report report = {.trace = rows, .trace_count = 3};
        for (int row = 0; row < 3; row++) rows[row].objective = runs[i].objectives[row];
        assert_int_equal(ki_report_begin(&report), KILN_OK);
        ki_report_setbacks(&report, 1, 0, runs[i].type, runs[i].squares, runs[i].terms);
        if (kiln_report_figure(&report, "setbacks") != runs[i].expected) fail_msg("run %zu", i);
        report.trace = NULL;
        kiln_report_free(&report);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objective_as_defined_and_never_rising),
        cmocka_unit_test(badly_scaled),
        cmocka_unit_test(sure_of_few),
        cmocka_unit_test(few_steps_end_no_run),
        cmocka_unit_test(a_saddle_ends_no_run),
        cmocka_unit_test(one_large_entry),
        cmocka_unit_test(any_unit),
        cmocka_unit_test(units_that_leave_the_type),
        cmocka_unit_test(on_opencl),
        cmocka_unit_test(fixed_point_and_warm_start),
        cmocka_unit_test(ccd_is_algorithm_2),
        cmocka_unit_test(models_fold_in_and_recommend),
        cmocka_unit_test(held_out_entries),
        cmocka_unit_test(rankings_by_hand),
        cmocka_unit_test(lists_of_any_size),
        cmocka_unit_test(coherence_by_hand),
        cmocka_unit_test(similar_and_seen),
        cmocka_unit_test(refusals_and_stopping),
        cmocka_unit_test(setbacks_are_rises),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
