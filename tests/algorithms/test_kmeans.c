/* K-Means against plain loops: labels, means and inertia agree with the centres returned; what is refused;
 * starts. */
#include <float.h>
#include <stdio.h>

#include "algorithms/on_cpu.h"

enum { M = 900, N = 3, K = 5 };

/* K blobs of equal size, `apart` from each other; the row's blob is its number modulo K. */
static void make_blobs_of(double *x, double apart) {
    uint64_t seed = 12345;
    for (int i = 0; i < M * N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)((double)(seed >> 11) / 9007199254740992.0 + apart * ((i / N % K >> i % N) & 1));
    }
}

static void make_blobs(double *x) {
    make_blobs_of(x, 10);
}

static void values_of(double *values, const kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
}

/* Labels are the nearest centres, clusters and objective what follows from them, by plain loops. */
static void check_result(const double *x, const double *s, const double *centres, const double *labels,
                         const double *clusters, const kiln_report *report) {
    double inertia = 0, weight[K] = {0}, part[K] = {0}, radius[K] = {0};
    for (int i = 0; i < M; i++) {
        double least = INFINITY;
        int nearest = 0;
        for (int c = 0; c < K; c++) {
            double distance = 0;
            for (int j = 0; j < N; j++)
                distance += (x[i * N + j] - centres[c * N + j]) * (x[i * N + j] - centres[c * N + j]);
            if (distance < least) least = distance, nearest = c;
        }
        assert_int_equal((int)labels[i], nearest);
        weight[nearest] += s ? s[i] : 1;
        part[nearest] += (s ? s[i] : 1) * least;
        radius[nearest] = fmax(radius[nearest], sqrt(least));
        inertia += (s ? s[i] : 1) * least;
    }
    assert_true(fabs(report->objective - inertia) <= 1e-5 * inertia);
    for (int c = 0; c < K; c++) {
        assert_true(fabs(clusters[3 * c] - weight[c]) <= 1e-5 * weight[c]);
        assert_true(fabs(clusters[3 * c + 1] - part[c]) <= 1e-5 * inertia);
        assert_true(fabs(clusters[3 * c + 2] - radius[c]) <= 1e-5 * radius[c]);
    }
}

/* x, of the type's numbers. */
static void finds_in(const double *x, kiln_type type, kiln_kmeans_options options, bool weighted) {
    static double s[M], centres[K * N], labels[M], clusters[3 * K];
    kiln_report report = {0};
    for (int i = 0; i < M; i++) s[i] = 1 + i % 3;
    kiln_matrix *X = dense_matrix(type, M, N, x), *C = dense_matrix(type, K, N, NULL),
                *S = dense_matrix(type, M, 1, s);
    options.labels = dense_matrix(type, M, 1, NULL);
    options.clusters = dense_matrix(type, K, 3, NULL);
    options.weights = weighted ? S : NULL;
    assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
    values_of(centres, C);
    values_of(labels, options.labels);
    values_of(clusters, options.clusters);
    check_result(x, weighted ? s : NULL, centres, labels, clusters, &report);
    assert_int_equal(kiln_report_figure(&report, "clusters"), K);
    if (!options.batch) assert_true(report.converged && report.residual <= report.tolerance);
    kiln_kmeans_verification found = {0};
    assert_int_equal(kiln_verify_kmeans(&found, C, X, &options), KILN_OK);
    assert_true(fabs(found.inertia - report.objective) <= 1e-5 * found.inertia);
    assert_true(found.labels == 0 && found.weights <= 1e-6);
    if (!options.batch)
        assert_true(fabs(found.residual - report.residual) <=
                    1e-3 * report.tolerance + found.residual_rounding);
    for (int64_t t = 1; !options.batch && options.restarts < 2 && t < report.trace_count; t++)
        assert_true(report.trace[t].objective <= report.trace[t - 1].objective * (1 + 1e-6));
    kiln_report_free(&report);
    kiln_matrix_free(options.labels);
    kiln_matrix_free(options.clusters);
    kiln_matrix_free(X);
    kiln_matrix_free(C);
    kiln_matrix_free(S);
}

static void finds(kiln_type type, kiln_kmeans_options options, bool weighted) {
    static double x[M * N];
    make_blobs(x);
    finds_in(x, type, options, weighted);
}

/* Blobs that touch, as far from zero as years are in f32, and time stamps in f64: products have no digit of
 * the distances left. */
static void finds_far(kiln_type type, kiln_kmeans_options options, bool weighted) {
    static double x[M * N];
    make_blobs_of(x, 0.7);
    for (int i = 0; i < M * N; i++) x[i] = type == KILN_F32 ? (float)(2000 + 10 * x[i]) : 1e8 + x[i];
    finds_in(x, type, options, weighted);
}

static void finds_far_from_zero(void **state) {
    (void)state;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        finds_far(type, (kiln_kmeans_options){.seed = 5}, false);
        finds_far(type, (kiln_kmeans_options){.restarts = 2}, true);
        finds_far(type, (kiln_kmeans_options){.batch = 200, .max_iterations = 40}, false);
    }
}

/* Twenty blobs, far apart: a start that draws one row each time misses some, and inertia is then several
 * times that of the blobs. */
static void starts_in_every_cluster(void **state) {
    enum { BLOBS = 20, ROWS = 2000, COLUMNS = 10 };
    static double x[ROWS * COLUMNS], middle[BLOBS * COLUMNS];
    uint64_t seed = 77;
    (void)state;
    for (int e = 0; e < BLOBS * COLUMNS; e++) middle[e] = 20 * uniform(&seed);
    for (int e = 0; e < ROWS * COLUMNS; e++)
        x[e] = middle[e / COLUMNS % BLOBS * COLUMNS + e % COLUMNS] + uniform(&seed);
    const double of_blobs = ROWS * COLUMNS / 12.0; /* the variance of numbers between 0 and 1 */
    kiln_matrix *X = dense_matrix(KILN_F64, ROWS, COLUMNS, x),
                *C = dense_matrix(KILN_F64, BLOBS, COLUMNS, NULL);
    for (kiln_init init = KILN_INIT_PLUS; init <= KILN_INIT_PARALLEL; init++) {
        double inertia = 0;
        for (int64_t s = 0; s < 10; s++) {
            kiln_report report = {0};
            assert_int_equal(kiln_kmeans(C, X, &(kiln_kmeans_options){.init = init, .seed = s}, &report),
                             KILN_OK);
            inertia += report.objective / 10;
            kiln_report_free(&report);
        }
        printf("init %d: %g of the blobs' own\n", (int)init, inertia / of_blobs);
        assert_true(inertia < 2.5 * of_blobs);
    }
    kiln_matrix_free(X);
    kiln_matrix_free(C);
}

static void finds_clusters(void **state) {
    (void)state;
    for (kiln_init init = KILN_INIT_PLUS; init <= KILN_INIT_RANDOM; init++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            finds(type, (kiln_kmeans_options){.init = init, .seed = 3}, init == KILN_INIT_PARALLEL);
            finds(type, (kiln_kmeans_options){.init = init, .restarts = 4}, true);
        }
    finds(KILN_F32, (kiln_kmeans_options){.batch = 200, .max_iterations = 40}, false);
    finds(KILN_F64, (kiln_kmeans_options){.batch = 200, .max_iterations = 40}, true);
}

/* All centres begin in one place: all but one are empty, and find rows. */
static void fills_empty_clusters(void **state) {
    static double x[M * N], same[K * N];
    kiln_report report = {0};
    (void)state;
    make_blobs(x);
    const kiln_kmeans_options options = {.init = KILN_INIT_GIVEN};
    kiln_matrix *X = dense_matrix(KILN_F64, M, N, x), *C = dense_matrix(KILN_F64, K, N, same);
    assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
    assert_int_equal(kiln_report_figure(&report, "clusters"), K);
    assert_true(kiln_report_figure(&report, "relocated") >= K - 1);
    kiln_report_free(&report);
    kiln_matrix_free(X);
    kiln_matrix_free(C);
}

/* More rows than come to the host at once, where a cluster has none: the furthest come last. One becomes its
 * centre, one tells a radius. */
static void looks_at_all_rows(void **state) {
    enum { ROWS = 150001 };
    static double x[ROWS], s[ROWS];
    double start[] = {0.5, 10.5, -1e6}, found[9];
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        x[i] = i % 4 / 2 * 10 + i % 2;
        s[i] = 1;
    }
    x[ROWS - 3] = 60;
    x[ROWS - 2] = 4000;
    x[ROWS - 1] = 9000;
    s[ROWS - 1] = 0; /* no row that a centre could take */
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        kiln_matrix *X = dense_matrix(type, ROWS, 1, x), *C = dense_matrix(type, 3, 1, start),
                    *T = dense_matrix(type, 3, 3, NULL), *W = dense_matrix(type, ROWS, 1, s);
        const kiln_kmeans_options options = {.init = KILN_INIT_GIVEN, .clusters = T, .weights = W};
        assert_int_equal(kiln_kmeans(C, X, &options, NULL), KILN_OK);
        values_of(start, C);
        values_of(found, T);
        assert_true(start[2] == 4000 && found[6] == 1 && found[8] == 5000);
        assert_true(fabs(start[1] - 10.5) < 0.01 && fabs(found[5] - (60 - start[1])) < 1e-4);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
        kiln_matrix_free(T);
        kiln_matrix_free(W);
        start[0] = 0.5;
        start[1] = 10.5;
        start[2] = -1e6;
    }
}

/* Two clusters are empty, and the furthest rows lie in one piece of those that come to the host; that of
 * another is less far. */
static void takes_the_furthest_rows(void **state) {
    enum { ROWS = 150001 };
    static double x[ROWS];
    kiln_report report = {0};
    (void)state;
    for (int i = 0; i < ROWS; i++) x[i] = i % 2;
    x[7] = 3000;
    x[9] = 4000;
    x[ROWS - 1] = 1000;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        double centres[] = {0.5, -1e6, -1e6};
        kiln_matrix *X = dense_matrix(type, ROWS, 1, x), *C = dense_matrix(type, 3, 1, centres);
        const kiln_kmeans_options options = {.init = KILN_INIT_GIVEN};
        assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
        values_of(centres, C);
        assert_true(centres[1] == 4000 && centres[2] == 3000);
        assert_int_equal(kiln_report_figure(&report, "relocated"), 2);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
    }
}

/* Two different rows, four centres. */
static void fewer_rows_than_centres(void **state) {
    static const double x[] = {1, 1, 1, 2, 2, 2};
    kiln_report report = {0};
    (void)state;
    kiln_matrix *X = dense_matrix(KILN_F32, 6, 1, x), *C = dense_matrix(KILN_F32, 4, 1, NULL),
                *more = dense_matrix(KILN_F32, 7, 1, NULL);
    assert_int_equal(kiln_kmeans(C, X, NULL, &report), KILN_OK);
    assert_int_equal(kiln_report_figure(&report, "clusters"), 2);
    assert_true(report.objective == 0);
    kiln_report_free(&report);
    assert_int_equal(kiln_kmeans(more, X, NULL, NULL), KILN_ERR_DATA);
    kiln_matrix_free(X);
    kiln_matrix_free(C);
    kiln_matrix_free(more);
}

/* Rows far from zero, whose means are rounded: as many clusters as there are different rows of weight above
 * 0, which converge; and as many centres as different rows get one each. */
static void fewer_rows_far_from_zero(void **state) {
    enum { ROWS = 97, DIFFERENT = 5, COLUMNS = 3, MOST = 8 };
    (void)state;
    for (int run = 0; run < 32; run++) {
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        const int weighted = run / 2 % 2, k = run / 4 % 2 ? MOST : DIFFERENT, spherical = run / 8 % 2;
        const double from = run / 16 ? 1e6 : 1.7e9;
        double x[ROWS * COLUMNS], s[ROWS];
        for (int i = 0; i < ROWS; i++) {
            const int one = i * i % 31 % (DIFFERENT + weighted); /* the last one has no weight */
            s[i] = one < DIFFERENT ? 0.3 + i % 4 : 0;
            for (int j = 0; j < COLUMNS; j++)
                x[i * COLUMNS + j] = from * (1 + (j + 2) * one / 64.0 * (j % 2 ? -1 : 1));
        }
        kiln_matrix *X = dense_matrix(type, ROWS, COLUMNS, x), *C = dense_matrix(type, k, COLUMNS, NULL),
                    *weights = weighted ? dense_matrix(type, ROWS, 1, s) : NULL;
        const kiln_kmeans_options options = {.weights = weights, .tolerance = 1e-12, .spherical = spherical};
        kiln_report report = {0};
        assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
        if (!report.converged || kiln_report_figure(&report, "clusters") != DIFFERENT)
            fail_msg("run %d: %s after %lld iterations with %g clusters", run,
                     kiln_stop_name(report.stopped_by), (long long)report.iterations,
                     kiln_report_figure(&report, "clusters"));
        const double different = kiln_report_figure(&report, "different");
        assert_true(k > DIFFERENT ? different == DIFFERENT : isnan(different));
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
        kiln_matrix_free(weights);
    }
}

/* Rows that are a rounding apart, whose weighted means are rounded away from them: centres that lie on
 * them stay, and the run ends. In f64 two values, in f32 as many as centres, with weights of 0. */
static void ends_at_rounding(void **state) {
    enum { ROWS = 73, LEAST = 2, MOST = 6 };
    (void)state;
    for (int run = 0; run < 400; run++) {
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        const double unit = type == KILN_F64 ? DBL_EPSILON : FLT_EPSILON;
        const int k = run / 2 % 2 ? MOST : LEAST, different = run / 4 % 2 ? k : k + 1;
        double x[ROWS], s[ROWS];
        uint64_t seed = (uint64_t)run + 1;
        for (int i = 0; i < ROWS; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            x[i] = 0.1 * (1 + unit * (double)(seed >> 33) * different / 2147483648.0);
            if (type == KILN_F32) x[i] = (float)x[i];
            s[i] = i % 7 ? (double)((float)(seed >> 40) / 16777216.0f) : 0;
        }
        kiln_matrix *X = dense_matrix(type, ROWS, 1, x), *C = dense_matrix(type, k, 1, NULL),
                    *weights = dense_matrix(type, ROWS, 1, s);
        const kiln_kmeans_options options = {
            .weights = weights, .tolerance = 1e-12, .seed = run, .algorithm = KILN_KMEANS_LLOYD};
        kiln_report report = {0};
        assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
        if (!report.converged) fail_msg("run %d: %d clusters, residual %g", run, k, report.residual);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
        kiln_matrix_free(weights);
    }
}

/* Two centres that a sparse row cannot be told from where ||c||^2 is 1e24: they differ by 2^-20 in a
 * column in which the row has no entry; whether its entries ascend or not. */
static void tells_sparse_rows_apart(void **state) {
    static const int64_t start[] = {0, 2, 4};
    static const int32_t col[] = {1, 2, 2, 1};
    static const double values[] = {1e12, 3, 3, 1e12};
    static const double c[] = {0x1p-20, 1e12, 3, 0, 1e12, 3};
    (void)state;
    for (int one = 0; one < 2; one++) {
        const kiln_type type = one ? KILN_F64 : KILN_F32;
        float narrow[4];
        double labels[2];
        for (int e = 0; e < 4; e++) narrow[e] = (float)values[e];
        kiln_matrix *X = NULL, *C = dense_matrix(type, 2, 3, c), *L = dense_matrix(type, 2, 1, NULL);
        assert_int_equal(
            kiln_matrix_csr(&X, device, type, 2, 3, start, col, one ? (const void *)values : narrow),
            KILN_OK);
        assert_int_equal(kiln_assign(&(kiln_assignment){.labels = L}, X, C, NULL), KILN_OK);
        values_of(labels, L);
        assert_int_equal((int)labels[0], 1);
        assert_int_equal((int)labels[1], 1);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
        kiln_matrix_free(L);
    }
}

static int stop_at_once(void *user, const kiln_progress *now) {
    (void)now;
    ++*(int *)user;
    return 1;
}

static void refuses_and_stops(void **state) {
    static double x[M * N];
    int calls = 0;
    kiln_report report = {0};
    (void)state;
    make_blobs(x);
    kiln_matrix *X = dense_matrix(KILN_F64, M, N, x), *C = dense_matrix(KILN_F64, K, N, NULL);
    kiln_kmeans_options options = {.control = {stop_at_once, &calls}};
    assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
    assert_int_equal(report.stopped_by, KILN_STOP_CANCELLED);
    assert_true(calls > 0 && isfinite(report.objective));
    kiln_report_free(&report);
    report = (kiln_report){0};
    kiln_kmeans_verification found = {
        0}; /* centres that the start has not come to have no rows and are filled */
    kiln_matrix *many = dense_matrix(KILN_F64, M / 3, N, NULL);
    assert_int_equal(kiln_kmeans(many, X, &options, &report), KILN_OK);
    assert_int_equal(kiln_verify_kmeans(&found, many, X, &options), KILN_OK);
    assert_true(fabs(found.residual - report.residual) <= 1e-9 * report.residual + found.residual_rounding);
    kiln_matrix_free(many);
    kiln_report_free(&report);
    assert_int_equal(kiln_kmeans(NULL, X, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_kmeans(C, NULL, NULL, NULL), KILN_ERR_ARGUMENT);
    options = (kiln_kmeans_options){.init = (kiln_init)7};
    assert_int_equal(kiln_kmeans(C, X, &options, NULL), KILN_ERR_ARGUMENT);
    options = (kiln_kmeans_options){.batch = -1};
    assert_int_equal(kiln_kmeans(C, X, &options, NULL), KILN_ERR_ARGUMENT);
    options = (kiln_kmeans_options){.weights = C};
    assert_int_equal(kiln_kmeans(C, X, &options, NULL), KILN_ERR_ARGUMENT);
    x[100] = (double)NAN;
    assert_int_equal(kiln_matrix_set(X, x), KILN_OK);
    assert_int_equal(kiln_kmeans(C, X, NULL, NULL), KILN_ERR_DATA);
    kiln_matrix_free(X);
    kiln_matrix_free(C);
}

/* Rows of two directions and any length: spherical K-Means finds the directions, dense and sparse alike, and
 * predicts by them. */
static void finds_directions(void **state) {
    enum { ROWS = 60 };
    static double x[ROWS * 3], centres[6], labels[ROWS], found[2 * ROWS];
    static int64_t start[ROWS + 1];
    static int32_t col[ROWS * 2];
    static double values[ROWS * 2];
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const double length = 1 + 50.0 * (i % 7), side = 0.05 * (i % 5);
        x[3 * i + i % 2] = length;
        x[3 * i + 2] = side * length;
        col[2 * i] = i % 2, col[2 * i + 1] = 2;
        values[2 * i] = length, values[2 * i + 1] = side * length;
        start[i + 1] = 2 * i + 2;
    }
    for (int sparse = 0; sparse < 2; sparse++) {
        kiln_matrix *X = NULL, *C = dense_matrix(KILN_F64, 2, 3, NULL),
                    *L = dense_matrix(KILN_F64, ROWS, 1, NULL), *T = dense_matrix(KILN_F64, 2, 3, NULL),
                    *P = NULL;
        kiln_report report = {0};
        kiln_kmeans_verification verified = {0};
        kiln_model *model = NULL;
        if (sparse)
            assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, ROWS, 3, start, col, values), KILN_OK);
        else
            X = dense_matrix(KILN_F64, ROWS, 3, x);
        const kiln_kmeans_options options = {.spherical = 1, .labels = L};
        assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
        values_of(centres, C);
        values_of(labels, L);
        for (int c = 0; c < 2; c++)
            assert_true(fabs(hypot(hypot(centres[3 * c], centres[3 * c + 1]), centres[3 * c + 2]) - 1) <
                        1e-12);
        for (int i = 2; i < ROWS; i++) assert_true((labels[i] == labels[0]) == (i % 2 == 0));
        assert_int_equal(kiln_verify_kmeans(&verified, C, X, &options), KILN_OK);
        assert_true(fabs(verified.inertia - report.objective) <= 1e-12 && verified.labels == 0);
        assert_int_equal(kiln_model_create(&model, "kmeans"), KILN_OK);
        assert_int_equal(kiln_model_set_tensor(model, "centres", C), KILN_OK);
        assert_int_equal(kiln_model_set_tensor(model, "clusters", T), KILN_OK);
        assert_int_equal(kiln_model_set_text(model, "geometry", "spherical"), KILN_OK);
        assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
        values_of(found, P);
        double inertia = 0;
        for (int i = 0; i < ROWS; i++) {
            assert_true(found[2 * i] == labels[i]);
            inertia += found[2 * i + 1] * found[2 * i + 1];
        }
        assert_true(fabs(inertia - report.objective) <= 1e-9);
        kiln_report_free(&report);
        kiln_model_free(model);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
        kiln_matrix_free(L);
        kiln_matrix_free(T);
        kiln_matrix_free(P);
    }
}

/* Mini-batches go on counting: after a long run, the next one hardly moves its centres. */
static void goes_on(void **state) {
    static double x[M * N], before[K * N], after[K * N];
    double moved = 0;
    (void)state;
    make_blobs(x);
    kiln_matrix *X = dense_matrix(KILN_F64, M, N, x), *C = dense_matrix(KILN_F64, K, N, NULL),
                *T = dense_matrix(KILN_F64, K, 3, NULL);
    kiln_kmeans_options options = {.batch = 100, .max_iterations = 30, .clusters = T, .seed = 1};
    assert_int_equal(kiln_kmeans(C, X, &options, NULL), KILN_OK);
    values_of(before, C);
    options.init = KILN_INIT_GIVEN;
    options.max_iterations = 1;
    assert_int_equal(kiln_kmeans(C, X, &options, NULL), KILN_OK);
    values_of(after, C);
    for (int i = 0; i < K * N; i++) moved += (after[i] - before[i]) * (after[i] - before[i]);
    assert_true(moved > 0 && moved < 0.01);
    kiln_matrix_free(X);
    kiln_matrix_free(C);
    kiln_matrix_free(T);
}

/* A run of mini-batches says of its centres what all rows say, and it has converged only by that:
 * however little the batches move them. */
static void batches_end_truly(void **state) {
    static double x[M * N];
    int converged = 0, stalled = 0;
    (void)state;
    make_blobs(x);
    for (int run = 0; run < 24; run++) {
        kiln_matrix *X = dense_matrix(KILN_F64, M, N, x), *C = dense_matrix(KILN_F64, K, N, NULL);
        const kiln_kmeans_options options = {.size = sizeof options,
                                             .batch = 20 + 20 * run,
                                             .patience = run % 2 ? 1000000 : 0, /* which none awaits */
                                             .seed = run,
                                             .restarts = 1 + run % 2,
                                             .spherical = run % 3 == 2,
                                             .tolerance = run % 4 ? 1e-4 : 1};
        kiln_report report = {0};
        kiln_kmeans_verification found = {.size = sizeof found};
        assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
        assert_int_equal(
            kiln_verify_kmeans(&found, C, X, &(kiln_kmeans_options){.spherical = options.spherical}),
            KILN_OK);
        if (!(fabs(found.residual - report.residual) <= found.residual_rounding))
            fail_msg("run %d: the residual is %g, not %g", run, found.residual, report.residual);
        assert_true(report.converged == (report.residual <= options.tolerance));
        if (report.stopped_by == KILN_STOP_STALLED) {
            const char *name;
            assert_non_null(kiln_report_warning(&report, 0, &name, NULL));
            assert_string_equal(name, "batches");
        }
        converged += report.converged, stalled += report.stopped_by == KILN_STOP_STALLED;
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
    }
    assert_true(converged > 0 && stalled > 0);
}

/* Patience ends a run at the batch at which scikit-learn's rule, by the inertias of the trace, does. */
static void patience_ends(void **state) {
    enum { BATCH = 40, PATIENCE = 6, MOST = 2000 };
    static double x[M * N];
    const double share = 2.0 * BATCH / (M + 1);
    (void)state;
    make_blobs(x);
    for (int run = 0; run < 4; run++) {
        kiln_matrix *X = dense_matrix(KILN_F64, M, N, x), *C = dense_matrix(KILN_F64, K, N, NULL);
        kiln_kmeans_options options = {.size = sizeof options,
                                       .batch = BATCH,
                                       .seed = run,
                                       .patience = PATIENCE,
                                       .max_iterations = MOST};
        kiln_report report = {0};
        double smooth = 0, least = INFINITY;
        int64_t idle = 0, end = 0;
        const char *name;
        kiln_option_give("kmeans", &options, "tolerance");
        assert_int_equal(kiln_kmeans(C, X, &options, &report), KILN_OK);
        for (int64_t t = 1; t < report.trace_count && end == 0; t++) {
            assert_int_equal(report.trace[t].iteration, t + 1);
            const double inertia = report.trace[t].objective / BATCH;
            smooth = t == 1 ? inertia : smooth + share * (inertia - smooth);
            idle = smooth < least ? 0 : idle + 1;
            least = fmin(least, smooth);
            if (idle == PATIENCE) end = t + 1;
        }
        assert_true(end > 0 && end < MOST && report.iterations == end);
        assert_int_equal(report.stopped_by, KILN_STOP_STALLED);
        assert_non_null(kiln_report_warning(&report, 0, &name, NULL));
        assert_string_equal(name, "patience");
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(C);
    }
}

/* A model's label and distance for new rows. */
static void predicts(void **state) {
    static const double centres[] = {0, 0, 10, 0}, clusters[] = {1, 0, 0, 1, 0, 0}, x[] = {1, 0, 10, 3, 4, 0};
    double found[6];
    kiln_model *model = NULL;
    kiln_matrix *P = NULL;
    (void)state;
    kiln_matrix *C = dense_matrix(KILN_F64, 2, 2, centres), *T = dense_matrix(KILN_F64, 2, 3, clusters),
                *X = dense_matrix(KILN_F64, 3, 2, x);
    assert_int_equal(kiln_model_create(&model, "kmeans"), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "centres", C), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "clusters", T), KILN_OK);
    assert_int_equal(kiln_predict(&P, model, X), KILN_OK);
    values_of(found, P);
    const double expected[] = {0, 1, 1, 3, 0, 4};
    for (int e = 0; e < 6; e++) assert_true(found[e] == expected[e]);
    kiln_model_free(model);
    kiln_matrix_free(P);
    kiln_matrix_free(C);
    kiln_matrix_free(T);
    kiln_matrix_free(X);
}

/* Radii are found where the rows are, and so are means; what empty clusters take comes to the host. */
static void on_opencl(void **state) {
    kiln_device *const cpu = device, *gpu = NULL;
    if (kiln_device_open(&gpu, "opencl", NULL) != KILN_OK) {
        printf("skip opencl: %s\n", kiln_last_error()->message);
        return;
    }
    device = gpu;
    finds_far(KILN_F64, (kiln_kmeans_options){.seed = 5}, false);
    looks_at_all_rows(state);
    takes_the_furthest_rows(state);
    tells_sparse_rows_apart(state);
    ends_at_rounding(state);
    device = cpu;
    kiln_device_close(gpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_clusters),
        cmocka_unit_test(fills_empty_clusters),
        cmocka_unit_test(looks_at_all_rows),
        cmocka_unit_test(fewer_rows_than_centres),
        cmocka_unit_test(fewer_rows_far_from_zero),
        cmocka_unit_test(ends_at_rounding),
        cmocka_unit_test(tells_sparse_rows_apart),
        cmocka_unit_test(refuses_and_stops),
        cmocka_unit_test(finds_directions),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(batches_end_truly),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(predicts),
        cmocka_unit_test(on_opencl),
        cmocka_unit_test(takes_the_furthest_rows),
        cmocka_unit_test(finds_far_from_zero),
        cmocka_unit_test(starts_in_every_cluster),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
