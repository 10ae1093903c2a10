/* K-Means with bounds takes the steps of K-Means without: the same labels, centres and inertia but for
 * roundings of double, on data that make bounds fail: far from the origin, equal rows and centres, huge
 * numbers, weights, clusters that lose all rows, and noise, where bounds save too little and are tried again
 * later. */
#include <stdio.h>

#include "algorithms/on_cpu.h"

enum { M = 1500, N = 40, K = 37 };

enum kind { BLOBS, FAR, FURTHER, EQUAL, HUGE_ROWS, TINY, NOISE, KINDS };

static void make(double *x, enum kind kind) {
    uint64_t seed = 7 + kind;
    double centre[12 * N];
    for (int e = 0; e < 12 * N; e++) centre[e] = 3 * uniform(&seed);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double value = centre[i % 12 * N + j] + uniform(&seed);
            if (kind == FAR) value = 1e2 + 1e-2 * value;
            if (kind == EQUAL) value = (double)((i % 12 + j) % 5);
            if (kind == HUGE_ROWS && i % 100 == 0) value *= 1e12;
            if (kind == TINY) value *= 1e-18;
            if (kind == NOISE) value = uniform(&seed);
            if (kind == FURTHER) value = 1e8 + value; /* f32 has the same number for all */
            x[i * N + j] = kind == FAR || kind == FURTHER ? value : (float)value;
        }
}

struct result {
    double labels[M], centres[K * N], skipped;
    kiln_report report;
};

static void run(struct result *to, kiln_device *on, kiln_type type, const double *x,
                kiln_kmeans_options options, int64_t k) {
    static double s[M];
    for (int i = 0; i < M; i++) s[i] = i % 9 ? 1 + i % 3 : 0;
    kiln_matrix *X = dense_on(on, type, M, N, x), *C = dense_on(on, type, k, N, NULL), *wide = NULL,
                *S = options.weights ? dense_on(on, type, M, 1, s) : NULL;
    options.size = sizeof options;
    options.weights = S;
    options.labels = dense_on(on, type, M, 1, NULL);
    memset(to, 0, sizeof *to);
    assert_int_equal(kiln_kmeans(C, X, &options, &to->report), KILN_OK);
    to->skipped = kiln_report_figure(&to->report, "skipped");
    assert_int_equal(kiln_matrix_copy(&wide, on, KILN_F64, C), KILN_OK);
    assert_int_equal(kiln_matrix_get(to->centres, wide), KILN_OK);
    kiln_matrix_free(wide);
    assert_int_equal(kiln_matrix_copy(&wide, on, KILN_F64, options.labels), KILN_OK);
    assert_int_equal(kiln_matrix_get(to->labels, wide), KILN_OK);
    kiln_matrix *const all[] = {wide, X, C, S, options.labels};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

static void check_alike(const struct result *a, const struct result *b) {
    assert_int_equal(a->report.iterations, b->report.iterations);
    assert_int_equal(a->report.stopped_by, b->report.stopped_by);
    assert_true(kiln_report_figure(&a->report, "relocated") == kiln_report_figure(&b->report, "relocated"));
    for (int i = 0; i < M; i++) assert_true(a->labels[i] == b->labels[i]);
    assert_true(fabs(a->report.objective - b->report.objective) <= 1e-6 * fabs(b->report.objective));
    const int64_t last = a->report.trace_count - 1;
    assert_true(a->report.trace[last].objective == a->report.objective);
    assert_true(a->report.trace[last].residual == a->report.residual);
}

static struct result plain, bounded, again;

static void takes_the_same_steps(void **state) {
    static double x[M * N];
    static const int64_t some[] = {2, 16, K};
    (void)state;
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
            for (int i = 0; i < 3; i++) {
                kiln_kmeans_options options = {.seed = 5, .algorithm = KILN_KMEANS_LLOYD, .tolerance = 1e-9};
                options.init = i == 1 ? KILN_INIT_RANDOM : KILN_INIT_PLUS;
                options.weights = i == 2 ? (const kiln_matrix *)x : NULL; /* wanted: run() makes them */
                options.max_iterations = kind == BLOBS && i == 0 ? 3 : 40;
                make(x, kind);
                run(&plain, device, type, x, options, some[i]);
                options.algorithm = KILN_KMEANS_BOUNDS;
                run(&bounded, device, type, x, options, some[i]);
                check_alike(&bounded, &plain);
                assert_true(isnan(plain.skipped) && bounded.skipped >= 0 && bounded.skipped < 1);
                if (kind == BLOBS && i == 2) assert_true(bounded.skipped > 0.3);
                kiln_report_free(&plain.report);
                kiln_report_free(&bounded.report);
            }
}

/* There rows that change their centre are taken from sums and added to others. */
static void on_opencl(void **state) {
    static double x[M * N];
    kiln_device *gpu = NULL;
    (void)state;
    if (kiln_device_open(&gpu, "opencl", NULL) != KILN_OK) {
        printf("skip opencl: %s\n", kiln_last_error()->message);
        return;
    }
    make(x, BLOBS);
    kiln_kmeans_options options = {.seed = 5, .algorithm = KILN_KMEANS_LLOYD, .tolerance = 1e-9};
    run(&plain, gpu, KILN_F32, x, options, K);
    options.algorithm = KILN_KMEANS_BOUNDS;
    run(&bounded, gpu, KILN_F32, x, options, K);
    run(&again, gpu, KILN_F32, x, options, K);
    check_alike(&bounded, &plain);
    assert_true(plain.report.iterations > 3 && isnan(bounded.skipped));
    assert_memory_equal(bounded.centres, again.centres, sizeof bounded.centres);
    kiln_report_free(&plain.report);
    kiln_report_free(&bounded.report);
    kiln_report_free(&again.report);
    kiln_device_close(gpu);
}

static void threads_change_nothing(void **state) {
    static double x[M * N];
    kiln_device *many = NULL;
    (void)state;
    make(x, BLOBS);
    const kiln_device_options three = {.size = sizeof three, .threads = 3};
    assert_int_equal(kiln_device_open(&many, "cpu", &three), KILN_OK);
    const kiln_kmeans_options options = {.tolerance = 1e-12, .restarts = 2, .algorithm = KILN_KMEANS_BOUNDS};
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        run(&bounded, device, type, x, options, K);
        run(&again, many, type, x, options, K);
        assert_memory_equal(bounded.centres, again.centres, sizeof bounded.centres);
        assert_true(bounded.report.objective == again.report.objective);
        kiln_report_free(&bounded.report);
        kiln_report_free(&again.report);
    }
    kiln_device_close(many);
}

static int stop_soon(void *user, const kiln_progress *now) {
    (void)now;
    return ++*(int *)user > K + 4;
}

static void says_exactly_when_stopped(void **state) {
    static double x[M * N];
    int calls = 0;
    (void)state;
    make(x, BLOBS);
    run(&bounded, device, KILN_F32, x,
        (kiln_kmeans_options){
            .tolerance = 1e-300, .control = {stop_soon, &calls}, .algorithm = KILN_KMEANS_BOUNDS},
        K);
    calls = 0;
    run(&plain, device, KILN_F32, x,
        (kiln_kmeans_options){
            .tolerance = 1e-300, .control = {stop_soon, &calls}, .algorithm = KILN_KMEANS_LLOYD},
        K);
    assert_int_equal(bounded.report.stopped_by, KILN_STOP_CANCELLED);
    check_alike(&bounded, &plain);
    kiln_report_free(&bounded.report);
    kiln_report_free(&plain.report);
}

static void refuses(void **state) {
    static double x[M * N], totals[2 * K];
    (void)state;
    kiln_matrix *X = dense_matrix(KILN_F32, M, N, x), *few = dense_matrix(KILN_F32, M, 12, x),
                *C = dense_matrix(KILN_F32, K, N, x), *C12 = dense_matrix(KILN_F32, K, 12, x),
                *sum = dense_matrix(KILN_F32, K, N, NULL), *labels = dense_matrix(KILN_F32, M, 1, NULL);
    kiln_matrix *sums;
    kiln_bounds *bounds = NULL, *none = NULL;
    assert_int_equal(kiln_bounds_new(&none, few, K), KILN_OK);
    assert_null(none);
    assert_int_equal(kiln_bounds_new(&none, X, 1), KILN_OK);
    assert_null(none);
    assert_int_equal(kiln_bounds_new(&bounds, X, K), KILN_OK);
    assert_non_null(bounds);
    assert_int_equal(kiln_bounds_sums(&sums, bounds), KILN_ERR_ARGUMENT);
    assert_true(kiln_bounds_skipped(bounds) == 0 && kiln_bounds_skipped(NULL) == 0);
    kiln_assignment to = {.size = sizeof to, .sums = sum, .bounds = bounds};
    assert_int_equal(kiln_assign(&to, X, C, NULL), KILN_ERR_ARGUMENT);
    to.totals = totals;
    to.labels = labels;
    assert_int_equal(kiln_assign(&to, X, C, NULL), KILN_ERR_ARGUMENT);
    to.labels = NULL;
    assert_int_equal(kiln_assign(&to, few, C12, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_assign(&to, X, C, NULL), KILN_OK);
    assert_int_equal(kiln_bounds_sums(&sums, bounds), KILN_OK);
    const kiln_kmeans_options wanted = {.size = sizeof wanted, .algorithm = KILN_KMEANS_BOUNDS},
                              batches = {.size = sizeof batches, .algorithm = KILN_KMEANS_BOUNDS, .batch = 9},
                              neither = {.size = sizeof neither, .algorithm = (kiln_kmeans_algorithm)3};
    assert_int_equal(kiln_kmeans(C12, few, &wanted, NULL), KILN_ERR_UNSUPPORTED);
    assert_int_equal(kiln_kmeans(C, X, &batches, NULL), KILN_ERR_UNSUPPORTED);
    assert_int_equal(kiln_kmeans(C, X, &neither, NULL), KILN_ERR_ARGUMENT);
    kiln_bounds_free(bounds);
    kiln_bounds_free(NULL);
    kiln_matrix *const all[] = {X, few, C, C12, sum, labels};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_same_steps),
        cmocka_unit_test(on_opencl),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(says_exactly_when_stopped),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
