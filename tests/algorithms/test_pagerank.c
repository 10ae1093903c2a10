/* PageRank against a plain power iteration in long double, on every device that is there; what the options
 * do; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"
#include "pagerank_peers.h"

enum { N = 150, K_MOST = 3 };

static kiln_device *cpu, *gpu; /* gpu: NULL where there is none */

static int open_devices(void **state) {
    (void)state;
    if (kiln_device_open(&gpu, "opencl", NULL) != KILN_OK) puts("no OpenCL device: the CPU alone is tested");
    return kiln_device_open(&cpu, "cpu", NULL);
}

static int close_devices(void **state) {
    (void)state;
    kiln_device_close(gpu);
    kiln_device_close(cpu);
    return 0;
}

/* A random graph as a dense table: some vertices are popular, some link to themselves, every seventh
 * dangles. */
static double *graph_new(uint64_t seed) {
    double *a = calloc((size_t)N * N, sizeof *a);
    assert_non_null(a);
    for (int e = 0; e < N * N; e++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double u = (double)(seed >> 11) / 9007199254740992.0;
        if (e / N % 7 != 3 && u < (e % N < 5 ? 0.6 : 0.04)) a[e] = (float)(0.5 + 10 * u);
    }
    return a;
}

static kiln_matrix *matrix_of(kiln_device *device, kiln_type type, int n, const double *a) {
    kiln_matrix *wide = NULL, *A = NULL;
    int64_t *row_start = calloc((size_t)n + 1, sizeof *row_start), nnz = 0;
    int32_t *col = malloc((size_t)(n * n + 1) * sizeof *col);
    double *values = malloc((size_t)(n * n + 1) * sizeof *values);
    for (int i = 0; i < n; row_start[++i] = nnz)
        for (int j = 0; j < n; j++)
            if (a[i * n + j] != 0) {
                col[nnz] = j;
                values[nnz++] = a[i * n + j];
            }
    assert_int_equal(kiln_matrix_csr(&wide, cpu, KILN_F64, n, n, row_start, col, values), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    free(row_start);
    free(col);
    free(values);
    return A;
}

static kiln_matrix *dense_of(kiln_device *device, kiln_type type, int rows, int cols, const double *values) {
    kiln_matrix *wide = NULL, *A = NULL;
    assert_int_equal(kiln_matrix_dense(&wide, cpu, KILN_F64, rows, cols, values), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    return A;
}

static void get(double *values, const kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, cpu, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
}

/* t and g have `cols` columns, of which column c is meant, and need not add up to 1; NULL: uniform. */
struct teleports {
    const double *t, *g;
    int t_cols, g_cols;
};

static long double share(const double *v, int cols, int i, int c) {
    long double sum = 0;
    if (!v) return 1.0L / N;
    c = cols == 1 ? 0 : c;
    for (int j = 0; j < N; j++) sum += v[j * cols + c];
    return v[i * cols + c] / sum;
}

static void reference(long double *p, const double *a, double damping, int weighted,
                      const struct teleports *to, int c, int iterations) {
    long double next[N], weight[N] = {0};
    for (int e = 0; e < N * N; e++) weight[e / N] += weighted ? a[e] : a[e] != 0;
    for (int i = 0; i < N; i++) p[i] = share(to->t, to->t_cols, i, c);
    for (int step = 0; step < iterations; step++) {
        long double mass = 0;
        for (int i = 0; i < N; i++) mass += weight[i] == 0 ? p[i] : 0;
        for (int j = 0; j < N; j++)
            next[j] = (1 - (long double)damping) * share(to->t, to->t_cols, j, c) +
                      damping * mass * share(to->g, to->g_cols, j, c);
        for (int e = 0; e < N * N; e++)
            if (a[e] != 0) next[e % N] += damping * (weighted ? a[e] : 1) * p[e / N] / weight[e / N];
        memcpy(p, next, sizeof next);
    }
}

struct outcome {
    double ranks[N * K_MOST];
    kiln_report report;
};

static void run(struct outcome *outcome, kiln_device *device, kiln_type type, const double *a, int k,
                const struct teleports *to, kiln_pagerank_options options) {
    kiln_matrix *A = matrix_of(device, type, N, a), *ranks = NULL, *t = NULL, *g = NULL;
    if (to && to->t) options.personalize = t = dense_of(device, type, N, to->t_cols, to->t);
    if (to && to->g && to->g != to->t) options.dangling_to = g = dense_of(device, type, N, to->g_cols, to->g);
    assert_int_equal(kiln_matrix_dense(&ranks, device, type, N, k, NULL), KILN_OK);
    outcome->report = (kiln_report){0};
    if (kiln_pagerank(ranks, A, &options, &outcome->report) != KILN_OK)
        fail_msg("%s", kiln_last_error()->message);
    get(outcome->ranks, ranks);
    kiln_matrix_free(A);
    kiln_matrix_free(ranks);
    kiln_matrix_free(t);
    kiln_matrix_free(g);
}

static void check(kiln_device *device, kiln_type type, const double *a, int k, const struct teleports *to,
                  kiln_pagerank_options options) {
    const double allowed = type == KILN_F32 ? 2e-6 : 1e-13;
    struct outcome outcome;
    options.tolerance = type == KILN_F32 ? 1e-6 : 1e-15;
    run(&outcome, device, type, a, k, to, options);
    assert_true(outcome.report.converged && outcome.report.stopped_by == KILN_STOP_TOLERANCE);
    assert_true(outcome.report.trace_count == outcome.report.iterations);
    for (int c = 0; c < k; c++) {
        long double want[N], distance = 0, sum = 0;
        reference(want, a, options.damping != 0 ? options.damping : 0.85, !options.unweighted, to, c, 400);
        for (int i = 0; i < N; i++) {
            distance += fabsl(outcome.ranks[i * k + c] - want[i]);
            sum += outcome.ranks[i * k + c];
        }
        assert_true(distance <= outcome.report.objective + allowed);
        assert_true(fabsl(sum - 1) <= (type == KILN_F32 ? 1e-6 : 1e-14));
    }
    kiln_report_free(&outcome.report);
}

static void agrees_with_plain_loops(void **state) {
    (void)state;
    double *a = graph_new(1), seeds[N * K_MOST] = {0}, one[N], uniform[N];
    for (int i = 0; i < N; i++) uniform[i] = 1, one[i] = i % 10;
    for (int c = 0; c < K_MOST; c++) seeds[(10 * c + 3) * K_MOST + c] = 2, seeds[(c + 50) * K_MOST + c] = 1;
    const struct teleports none = {NULL, NULL, 0, 0}, sets = {seeds, seeds, K_MOST, K_MOST},
                           sink = {seeds, one, K_MOST, 1}, lone = {one, uniform, 1, 1};
    kiln_device *const devices[] = {cpu, gpu};
    for (int d = 0; d < 2; d++)
        for (int type = KILN_F32; devices[d] && type <= KILN_F64; type++) {
            check(devices[d], (kiln_type)type, a, 1, &none, (kiln_pagerank_options){.damping = 0});
            check(devices[d], (kiln_type)type, a, 1, &none,
                  (kiln_pagerank_options){.damping = 0.5, .unweighted = 1});
            check(devices[d], (kiln_type)type, a, K_MOST, &sets,
                  (kiln_pagerank_options){.layout = KILN_LAYOUT_CSR});
            check(devices[d], (kiln_type)type, a, K_MOST, &sink, (kiln_pagerank_options){.damping = 0.9});
            check(devices[d], (kiln_type)type, a, 1, &lone,
                  (kiln_pagerank_options){.dangling = KILN_DANGLING_UNIFORM});
        }
    free(a);
}

/* The graph of pagerank_peers.h. */
static double *peer_graph(void) {
    double *a = calloc((size_t)PEER_N * PEER_N, sizeof *a);
    assert_non_null(a);
    for (int i = 0; i < PEER_N; i++) {
        const int to[] = {0, (i * i + 1) % PEER_N, (3 * i + 2) % PEER_N};
        for (int j = 0; j < 3 && i % 7 != 3; j++) a[i * PEER_N + to[j]] = 1 + (i + to[j]) % 5;
    }
    return a;
}

/* Every layout of the links, on every device, to 1e-10 of what networkx and igraph find. */
static void agrees_with_peers(void **state) {
    (void)state;
    double *a = peer_graph(), seeds[PEER_N] = {0}, ranks[PEER_N];
    kiln_device *const devices[] = {cpu, gpu};
    seeds[3] = seeds[50] = 1, seeds[77] = 2;
    for (int d = 0; d < 2 && devices[d]; d++)
        for (int layout = 0; layout <= KILN_LAYOUT_BALANCED; layout++) {
            kiln_matrix *A = matrix_of(devices[d], KILN_F64, PEER_N, a), *found = NULL,
                        *t = dense_of(devices[d], KILN_F64, PEER_N, 1, seeds);
            assert_int_equal(kiln_matrix_dense(&found, devices[d], KILN_F64, PEER_N, 1, NULL), KILN_OK);
            for (size_t i = 0; i < sizeof peer_ranks / sizeof *peer_ranks; i++) {
                const struct peer_ranks *peer = &peer_ranks[i];
                const kiln_pagerank_options options = {.damping = peer->damping,
                                                       .unweighted = !peer->weighted,
                                                       .personalize = peer->seeded ? t : NULL,
                                                       .tolerance = 1e-14,
                                                       .layout = (kiln_layout)layout};
                assert_int_equal(kiln_pagerank(found, A, &options, NULL), KILN_OK);
                get(ranks, found);
                for (int v = 0; v < PEER_N; v++) assert_true(fabs(ranks[v] - peer->ranks[v]) <= 1e-10);
            }
            kiln_matrix *const all[] = {A, found, t};
            for (int i = 0; i < 3; i++) kiln_matrix_free(all[i]);
        }
    free(a);
}

static int stop_at_third(void *user, const kiln_progress *now) {
    (void)user;
    assert_string_equal(now->phase, "solve");
    return now->done >= 3;
}

/* However a run ends it returns ranks that add up to 1, within the bound of the fixed point. */
static void ends_as_asked(void **state) {
    (void)state;
    double *a = graph_new(2);
    long double fixed[N], fifth[N];
    const struct teleports none = {NULL, NULL, 0, 0};
    reference(fixed, a, 0.85, 1, &none, 0, 400);
    reference(fifth, a, 0.85, 1, &none, 0, 5);
    kiln_device *const devices[] = {cpu, gpu};
    for (int d = 0; d < 2 && devices[d]; d++) {
        static const kiln_pagerank_options ways[] = {
            {.iterations = 5}, {.max_iterations = 5}, {.control = {stop_at_third, NULL}}};
        static const kiln_stop stops[] = {KILN_STOP_ITERATIONS, KILN_STOP_ITERATIONS, KILN_STOP_CANCELLED};
        for (int way = 0; way < 3; way++) {
            struct outcome outcome;
            long double distance = 0, sum = 0, apart = 0;
            run(&outcome, devices[d], KILN_F64, a, 1, NULL, ways[way]);
            assert_true(outcome.report.stopped_by == stops[way] && outcome.report.converged == (way == 0));
            assert_true(way == 2 ? outcome.report.iterations >= 3 : outcome.report.iterations == 5);
            for (int i = 0; i < N; i++) {
                distance += fabsl(outcome.ranks[i] - fixed[i]);
                apart += fabsl(outcome.ranks[i] - fifth[i]);
                sum += outcome.ranks[i];
            }
            assert_true(fabsl(sum - 1) < 1e-14 && distance > 1e-12);
            assert_true(distance <= kiln_report_figure(&outcome.report, "error_bound"));
            assert_true(way == 2 || apart < 1e-14);
            kiln_report_free(&outcome.report);
        }
    }
    free(a);
}

/* Stopped and taken up again, the iterates are the same ones. */
static void a_warm_start_goes_on(void **state) {
    (void)state;
    double *a = graph_new(3), straight[N], resumed[N];
    kiln_matrix *A = matrix_of(cpu, KILN_F64, N, a), *ranks = NULL;
    assert_int_equal(kiln_matrix_dense(&ranks, cpu, KILN_F64, N, 1, NULL), KILN_OK);
    assert_int_equal(kiln_pagerank(ranks, A, &(kiln_pagerank_options){.iterations = 9}, NULL), KILN_OK);
    get(straight, ranks);
    assert_int_equal(kiln_pagerank(ranks, A, &(kiln_pagerank_options){.iterations = 4}, NULL), KILN_OK);
    assert_int_equal(
        kiln_pagerank(ranks, A, &(kiln_pagerank_options){.iterations = 5, .warm_start = 1}, NULL), KILN_OK);
    get(resumed, ranks);
    for (int i = 0; i < N; i++) assert_true(fabs(straight[i] - resumed[i]) <= 1e-16);
    kiln_matrix_free(A);
    kiln_matrix_free(ranks);
    free(a);
}

/* No links at all, one vertex, links to oneself: defined, and what one would work out by hand. */
static void small_graphs(void **state) {
    (void)state;
    kiln_device *const devices[] = {cpu, gpu};
    static const double none[9] = {0}, self[1] = {3}, chain[9] = {0, 1, 0, 0, 0, 1, 0, 0, 0};
    for (int d = 0; d < 2 && devices[d]; d++) {
        double p[3];
        kiln_matrix *three = NULL, *one = NULL;
        assert_int_equal(kiln_matrix_dense(&three, devices[d], KILN_F64, 3, 1, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&one, devices[d], KILN_F64, 1, 1, NULL), KILN_OK);
        kiln_matrix *empty = matrix_of(devices[d], KILN_F64, 3, none),
                    *loop = matrix_of(devices[d], KILN_F64, 1, self);
        kiln_matrix *path = matrix_of(devices[d], KILN_F64, 3, chain);
        assert_int_equal(kiln_pagerank(three, empty, NULL, NULL), KILN_OK);
        get(p, three);
        for (int i = 0; i < 3; i++) assert_true(fabs(p[i] - 1.0 / 3) < 1e-15);
        assert_int_equal(kiln_pagerank(one, loop, NULL, NULL), KILN_OK);
        get(p, one);
        assert_true(p[0] == 1);
        assert_int_equal(kiln_pagerank(three, path, &(kiln_pagerank_options){.tolerance = 1e-15}, NULL),
                         KILN_OK);
        get(p, three); /* x, x + d x, x + d x + d^2 x */
        assert_true(fabs(p[1] / p[0] - 1.85) < 1e-12 && fabs(p[2] / p[0] - 2.5725) < 1e-12);
        kiln_matrix *const all[] = {three, one, empty, loop, path};
        for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    }
}

static void verify_finds_the_residual(void **state) {
    (void)state;
    double *a = graph_new(4), seeds[N * 2] = {0};
    kiln_matrix *A = matrix_of(cpu, KILN_F64, N, a), *ranks = NULL;
    kiln_pagerank_verification found = {0};
    kiln_report report = {0};
    seeds[7 * 2] = seeds[9 * 2 + 1] = 1;
    kiln_matrix *t = dense_of(cpu, KILN_F64, N, 2, seeds);
    const kiln_pagerank_options options = {.personalize = t, .iterations = 12};
    assert_int_equal(kiln_matrix_dense(&ranks, cpu, KILN_F64, N, 2, NULL), KILN_OK);
    assert_int_equal(kiln_pagerank(ranks, A, &options, &report), KILN_OK);
    assert_int_equal(kiln_verify_pagerank(&found, A, ranks, &options), KILN_OK);
    assert_true(found.residual <= 0.85 * report.residual * (1 + 1e-9) &&
                found.residual > 0.01 * report.residual);
    assert_true(fabs(found.sum - 1) < 1e-14);
    assert_int_equal(kiln_verify_pagerank(&found, A, ranks, &(kiln_pagerank_options){.damping = 0.85}),
                     KILN_OK);
    assert_true(found.residual > 0.01); /* another teleport vector, another fixed point */
    assert_int_equal(kiln_verify_pagerank(&found, A, NULL, NULL), KILN_ERR_ARGUMENT);
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_matrix_free(ranks);
    kiln_matrix_free(t);
    free(a);
}

/* Nothing is written on failure. */
static void refuse(const double a[4], kiln_status status, const char *part, kiln_pagerank_options options) {
    kiln_matrix *A = matrix_of(cpu, KILN_F64, 2, a),
                *ranks = dense_of(cpu, KILN_F64, 2, 1, (double[]){0.25, -0.75});
    kiln_report report = {.iterations = -7};
    double after[2];
    assert_int_equal(kiln_pagerank(ranks, A, &options, &report), status);
    if (!strstr(kiln_last_error()->message, part)) fail_msg("%s", kiln_last_error()->message);
    assert_int_equal(report.iterations, -7);
    get(after, ranks);
    assert_true(after[0] == 0.25 && after[1] == -0.75);
    kiln_matrix_free(A);
    kiln_matrix_free(ranks);
}

static void refusals(void **state) {
    (void)state;
    const double fine[] = {1, 2, 3, 4};
    kiln_matrix *minus = dense_of(cpu, KILN_F64, 2, 1, (double[]){1, -1}),
                *zeros = dense_of(cpu, KILN_F64, 2, 1, (double[]){0, 0});
    kiln_matrix *nan = dense_of(cpu, KILN_F64, 2, 1, (double[]){1, NAN}),
                *long_one = dense_of(cpu, KILN_F64, 4, 1, fine);
    refuse((double[]){-1, 0, 2, 3}, KILN_ERR_DATA, "weights", (kiln_pagerank_options){.damping = 0.85});
    refuse((double[]){NAN, 1, 1, 1}, KILN_ERR_DATA, "weights", (kiln_pagerank_options){.damping = 0.85});
    refuse((double[]){1e308, 1e308, 1, 1}, KILN_ERR_DATA, "weights",
           (kiln_pagerank_options){.damping = 0.85});
    refuse(fine, KILN_ERR_DATA, "the start", (kiln_pagerank_options){.warm_start = 1});
    refuse(fine, KILN_ERR_DATA, "column 0 of personalize has negative",
           (kiln_pagerank_options){.personalize = minus});
    refuse(fine, KILN_ERR_DATA, "row 1, column 0 of personalize",
           (kiln_pagerank_options){.personalize = nan});
    refuse(fine, KILN_ERR_DATA, "0 throughout", (kiln_pagerank_options){.dangling_to = zeros});
    refuse(fine, KILN_ERR_ARGUMENT, "personalize is 4 x 1", (kiln_pagerank_options){.personalize = long_one});
    refuse(fine, KILN_ERR_ARGUMENT, "damping is 1.5", (kiln_pagerank_options){.damping = 1.5});
    refuse(fine, KILN_ERR_ARGUMENT, "damping is -1", (kiln_pagerank_options){.damping = -1});
    refuse(fine, KILN_ERR_ARGUMENT, "iterations is -1", (kiln_pagerank_options){.iterations = -1});
    refuse(fine, KILN_ERR_ARGUMENT, "max_iterations is -1", (kiln_pagerank_options){.max_iterations = -1});
    refuse(fine, KILN_ERR_ARGUMENT, "tolerance is -1", (kiln_pagerank_options){.tolerance = -1});
    refuse(fine, KILN_ERR_ARGUMENT, "layout is -1", (kiln_pagerank_options){.layout = (kiln_layout)-1});
    refuse(fine, KILN_ERR_ARGUMENT, "dangling is 3", (kiln_pagerank_options){.dangling = (kiln_dangling)3});
    assert_int_equal(kiln_pagerank(minus, long_one, NULL, NULL), KILN_ERR_UNSUPPORTED);
    assert_int_equal(kiln_pagerank(NULL, long_one, NULL, NULL), KILN_ERR_ARGUMENT);
    kiln_matrix *const all[] = {minus, zeros, nan, long_one};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_plain_loops),
        cmocka_unit_test(agrees_with_peers),
        cmocka_unit_test(ends_as_asked),
        cmocka_unit_test(a_warm_start_goes_on),
        cmocka_unit_test(small_graphs),
        cmocka_unit_test(verify_finds_the_residual),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
