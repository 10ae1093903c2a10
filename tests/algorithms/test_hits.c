/* Hubs and authorities against a naive power iteration; what the options do; what is refused. */
#include "algorithms/on_cpu.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 400 };

/* A random graph as a dense table, weights rounded to f32. */
struct graph {
    int rows, cols;
    double *a;
};

static struct graph graph_new(int rows, int cols, double density, uint64_t seed) {
    struct graph graph = {rows, cols, calloc((size_t)rows * (size_t)cols, sizeof(double))};
    assert_non_null(graph.a);
    for (int e = 0; e < rows * cols; e++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double u = (double)(seed >> 11) / 9007199254740992.0;
        if (u < density) graph.a[e] = (float)(1 + 100 * u);
    }
    graph.a[0] = 1; /* never without a link */
    return graph;
}

static kiln_matrix *matrix_of(const struct graph *graph, kiln_type type, kiln_format format) {
    const int64_t count = (int64_t)graph->rows * graph->cols;
    kiln_matrix *wide = NULL, *A = NULL;
    int64_t *row_start = calloc((size_t)graph->rows + 1, sizeof *row_start), nnz = 0;
    int32_t *col = malloc((size_t)count * sizeof *col);
    double *values = malloc((size_t)count * sizeof *values);
    for (int i = 0; i < graph->rows; i++) {
        for (int j = 0; j < graph->cols; j++) {
            if (graph->a[i * graph->cols + j] == 0) continue;
            col[nnz] = j;
            values[nnz++] = graph->a[i * graph->cols + j];
        }
        row_start[i + 1] = nnz;
    }
    if (format == KILN_CSR)
        assert_int_equal(
            kiln_matrix_csr(&wide, device, KILN_F64, graph->rows, graph->cols, row_start, col, values),
            KILN_OK);
    else
        assert_int_equal(kiln_matrix_dense(&wide, device, KILN_F64, graph->rows, graph->cols, graph->a),
                         KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    free(row_start);
    free(col);
    free(values);
    return A;
}

static void scale(double *v, int count, int norm) {
    double size = 0;
    for (int i = 0; i < count; i++) size += norm == 2 ? v[i] * v[i] : v[i];
    if (norm == 2) size = sqrt(size);
    for (int i = 0; i < count; i++) v[i] /= size;
}

/* Both vectors by plain loops, until nothing moves any more; returns the eigenvalue, ||A^T A a||. */
static double reference(double *hubs, double *authorities, const struct graph *graph, int norm,
                        int unweighted) {
    double value = 0, before[MOST], moved = 1;
    for (int j = 0; j < graph->cols; j++) authorities[j] = 1.0 / graph->cols;
    scale(authorities, graph->cols, norm);
    for (int iteration = 0; iteration < 3000 && moved > 1e-15; iteration++) {
        memcpy(before, authorities, (size_t)graph->cols * sizeof *before);
        for (int i = 0; i < graph->rows; i++) {
            hubs[i] = 0;
            for (int j = 0; j < graph->cols; j++) {
                const double a = graph->a[i * graph->cols + j];
                hubs[i] += (unweighted ? a != 0 : a) * authorities[j];
            }
        }
        for (int j = 0; j < graph->cols; j++) authorities[j] = 0;
        for (int i = 0; i < graph->rows; i++)
            for (int j = 0; j < graph->cols; j++) {
                const double a = graph->a[i * graph->cols + j];
                authorities[j] += (unweighted ? a != 0 : a) * hubs[i];
            }
        value = 0;
        for (int j = 0; j < graph->cols; j++)
            value += norm == 2 ? authorities[j] * authorities[j] : authorities[j];
        if (norm == 2) value = sqrt(value);
        scale(authorities, graph->cols, norm);
        moved = 0;
        for (int j = 0; j < graph->cols; j++) moved = fmax(moved, fabs(authorities[j] - before[j]));
    }
    scale(hubs, graph->rows, norm);
    return value;
}

static void get(double *values, const kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
}

static void vectors_new(kiln_matrix **hubs, kiln_matrix **authorities, const kiln_matrix *A) {
    const kiln_type type = kiln_matrix_type(A);
    assert_int_equal(kiln_matrix_dense(hubs, device, type, kiln_matrix_rows(A), 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(authorities, device, type, kiln_matrix_cols(A), 1, NULL), KILN_OK);
}

static void check_against_reference(const struct graph *graph, kiln_type type, kiln_format format,
                                    const kiln_hits_options *options) {
    double hub[MOST], authority[MOST], want_hub[MOST], want_authority[MOST];
    const int norm = options->norm ? options->norm : 1;
    const double value = reference(want_hub, want_authority, graph, norm, options->unweighted);
    const double allowed = type == KILN_F32 ? 1e-4 : 1e-9;
    kiln_matrix *A = matrix_of(graph, type, format), *hubs, *authorities;
    kiln_report report = {0};
    vectors_new(&hubs, &authorities, A);
    assert_int_equal(kiln_hits(hubs, authorities, A, options, &report), KILN_OK);
    assert_true(report.converged && report.stopped_by == KILN_STOP_TOLERANCE);
    assert_true(report.residual <= report.tolerance && report.trace_count == report.iterations);
    assert_true(fabs(report.objective - value) <= allowed * value);
    get(hub, hubs);
    get(authority, authorities);
    for (int i = 0; i < graph->rows; i++) assert_true(fabs(hub[i] - want_hub[i]) <= allowed);
    for (int j = 0; j < graph->cols; j++) assert_true(fabs(authority[j] - want_authority[j]) <= allowed);
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_matrix_free(hubs);
    kiln_matrix_free(authorities);
}

static void agrees_with_plain_loops(void **state) {
    (void)state;
    static const struct {
        int rows, cols;
        double density;
    } shapes[] = {{1, 1, 1}, {40, 40, 0.2}, {300, 90, 0.05}, {7, 300, 0.5}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct graph graph = graph_new(shapes[s].rows, shapes[s].cols, shapes[s].density, s + 1);
        for (int norm = 0; norm <= 2; norm++) {
            check_against_reference(&graph, KILN_F64, KILN_CSR, &(kiln_hits_options){.norm = norm});
            check_against_reference(&graph, KILN_F64, KILN_DENSE, &(kiln_hits_options){.norm = norm});
            check_against_reference(&graph, KILN_F32, KILN_CSR, &(kiln_hits_options){.norm = norm});
            check_against_reference(&graph, KILN_F64, KILN_CSR,
                                    &(kiln_hits_options){.norm = norm, .unweighted = 1});
        }
        free(graph.a);
    }
}

/* Stopped and taken up again, the iterates are the same ones. */
static void a_warm_start_goes_on(void **state) {
    (void)state;
    struct graph graph = graph_new(60, 60, 0.1, 11);
    kiln_matrix *A = matrix_of(&graph, KILN_F64, KILN_CSR), *hubs, *authorities;
    double straight[60], resumed[60];
    kiln_report report = {0};
    vectors_new(&hubs, &authorities, A);
    assert_int_equal(kiln_hits(hubs, authorities, A, &(kiln_hits_options){.max_iterations = 9}, &report),
                     KILN_OK);
    assert_true(!report.converged && report.stopped_by == KILN_STOP_ITERATIONS && report.iterations == 9);
    kiln_report_free(&report);
    get(straight, authorities);
    assert_int_equal(kiln_hits(hubs, authorities, A, &(kiln_hits_options){.max_iterations = 4}, NULL),
                     KILN_OK);
    assert_int_equal(
        kiln_hits(hubs, authorities, A, &(kiln_hits_options){.max_iterations = 5, .warm_start = 1}, NULL),
        KILN_OK);
    get(resumed, authorities);
    for (int j = 0; j < 60; j++) assert_true(fabs(straight[j] - resumed[j]) <= 1e-15);
    kiln_matrix_free(A);
    kiln_matrix_free(hubs);
    kiln_matrix_free(authorities);
    free(graph.a);
}

static int stop_at_third(void *user, const kiln_progress *now) {
    (void)user;
    assert_string_equal(now->phase, "solve");
    return now->done >= 3;
}

static void stops_when_asked(void **state) {
    (void)state;
    struct graph graph = graph_new(60, 60, 0.1, 12);
    kiln_matrix *A = matrix_of(&graph, KILN_F64, KILN_CSR), *hubs, *authorities;
    double sum[1];
    kiln_report report = {0};
    vectors_new(&hubs, &authorities, A);
    const kiln_hits_options options = {.control = {stop_at_third, NULL}};
    assert_int_equal(kiln_hits(hubs, authorities, A, &options, &report), KILN_OK);
    assert_true(report.stopped_by == KILN_STOP_CANCELLED && report.iterations == 3 && !report.converged);
    assert_int_equal(kiln_norm(sum, authorities, KILN_NORM_1), KILN_OK);
    assert_true(fabs(sum[0] - 1) < 1e-12); /* the result so far */
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_matrix_free(hubs);
    kiln_matrix_free(authorities);
    free(graph.a);
}

/* A GPU's iterations are queued ahead: the same numbers, and not many more of them. */
static void queues_ahead(void **state) {
    (void)state;
    kiln_device *cpu = device, *gpu;
    struct graph graph = graph_new(60, 60, 0.1, 12);
    double values[2][60], residual[2][400];
    kiln_report report[2] = {{0}, {0}};
    if (kiln_device_open(&gpu, "opencl", NULL) != KILN_OK) {
        printf("skip opencl: %s\n", kiln_last_error()->message);
        free(graph.a);
        return;
    }
    for (int d = 0; d < 2; d++) {
        device = d ? gpu : cpu;
        kiln_matrix *A = matrix_of(&graph, KILN_F64, KILN_CSR), *hubs, *authorities;
        vectors_new(&hubs, &authorities, A);
        assert_int_equal(kiln_hits(hubs, authorities, A, &(kiln_hits_options){.norm = 2}, &report[d]),
                         KILN_OK);
        assert_true(report[d].converged && report[d].trace_count == report[d].iterations);
        for (int64_t i = 0; i < report[d].trace_count && i < 400; i++)
            residual[d][i] = report[d].trace[i].residual;
        get(values[d], authorities);
        kiln_matrix_free(A);
        kiln_matrix_free(hubs);
        kiln_matrix_free(authorities);
    }
    device = cpu;
    kiln_device_close(gpu);
    assert_true(report[1].iterations >= report[0].iterations &&
                report[1].iterations <= report[0].iterations + 8);
    for (int64_t i = 0; i < report[0].iterations && i < 400; i++)
        assert_true(fabs(residual[0][i] - residual[1][i]) <= 1e-9 * residual[0][i] + 1e-14);
    for (int j = 0; j < 60; j++) assert_true(fabs(values[0][j] - values[1][j]) <= 1e-9);
    for (int d = 0; d < 2; d++) kiln_report_free(&report[d]);
    free(graph.a);
}

/* Two stars that are not connected: equal ones share, of unequal ones the larger takes all. */
static void unconnected_parts(void **state) {
    (void)state;
    struct graph graph = {6, 6, calloc(36, sizeof(double))};
    double authority[6];
    graph.a[0 * 6 + 1] = graph.a[0 * 6 + 2] = graph.a[3 * 6 + 4] = graph.a[3 * 6 + 5] = 1;
    kiln_matrix *A = matrix_of(&graph, KILN_F64, KILN_CSR), *hubs, *authorities;
    vectors_new(&hubs, &authorities, A);
    assert_int_equal(kiln_hits(hubs, authorities, A, NULL, NULL), KILN_OK);
    get(authority, authorities);
    assert_true(fabs(authority[1] - 0.25) < 1e-12 && fabs(authority[4] - 0.25) < 1e-12);
    kiln_matrix_free(A);
    graph.a[0 * 6 + 3] = 1;
    A = matrix_of(&graph, KILN_F64, KILN_CSR);
    assert_int_equal(kiln_hits(hubs, authorities, A, NULL, NULL), KILN_OK);
    get(authority, authorities);
    assert_true(fabs(authority[1] - 1.0 / 3) < 1e-9 && authority[4] < 1e-9);
    kiln_matrix_free(A);
    kiln_matrix_free(hubs);
    kiln_matrix_free(authorities);
    free(graph.a);
}

/* 99,999 vertices with a link to themselves, which the start has right, and one whose link's square is 1.21:
 * its share grows from 1e-5 by a fifth in each iteration, and is all of the authorities at the end. */
static void a_slow_start_ends_no_run(void **state) {
    enum { VERTICES = 100000 };
    int64_t *const start = malloc((VERTICES + 1) * sizeof *start);
    int32_t *const col = malloc(VERTICES * sizeof *col);
    double *const value = malloc(VERTICES * sizeof *value);
    (void)state;
    for (int i = 0; i <= VERTICES; i++) start[i] = i;
    for (int i = 0; i < VERTICES; i++) col[i] = i, value[i] = i == VERTICES - 1 ? 1.1 : 1;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        const kiln_hits_options options = {.tolerance = 1e-5};
        kiln_matrix *wide = NULL, *A = NULL, *hubs, *authorities;
        kiln_report report = {0};
        assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, VERTICES, VERTICES, start, col, value),
                         KILN_OK);
        assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
        vectors_new(&hubs, &authorities, A);
        assert_int_equal(kiln_hits(hubs, authorities, A, &options, &report), KILN_OK);
        assert_true(report.converged);
        get(value, authorities);
        if (!(value[VERTICES - 1] > 0.999)) fail_msg("%g of the authorities", value[VERTICES - 1]);
        for (int i = 0; i < VERTICES; i++) value[i] = i == VERTICES - 1 ? 1.1 : 1;
        kiln_report_free(&report);
        kiln_matrix_free(wide);
        kiln_matrix_free(A);
        kiln_matrix_free(hubs);
        kiln_matrix_free(authorities);
    }
    free(start);
    free(col);
    free(value);
}

/* Two groups of vertices that are all but equal, and hardly linked: singular values 0.9994 of each other,
 * where the power iteration gives up. */
static void near_eigenvalues_take_few_passes(void **state) {
    (void)state;
    enum { HALF = 60, N = 2 * HALF };
    struct graph graph = graph_new(N, N, 0, 1);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            graph.a[i * N + j] = (i < HALF) != (j < HALF)   ? (i + j == N - 1 ? 0.01 : 0)
                                 : (i * 7 + j * 3) % 11 < 4 ? (i < HALF ? 1.0006 : 1)
                                                            : 0;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        kiln_matrix *A = matrix_of(&graph, type, KILN_CSR), *hubs, *authorities;
        double fast[N], slow[N];
        vectors_new(&hubs, &authorities, A);
        kiln_report chosen = {0}, power = {0};
        kiln_hits_options options = {.size = sizeof options, .max_iterations = 100000};
        assert_int_equal(kiln_hits(hubs, authorities, A, &options, &chosen), KILN_OK);
        get(fast, authorities);
        options.solver = KILN_HITS_POWER;
        assert_int_equal(kiln_hits(hubs, authorities, A, &options, &power), KILN_OK);
        get(slow, authorities);
        assert_true(chosen.converged && power.converged);
        assert_string_equal(power.solver, "power");
        if (type == KILN_F64) {
            assert_string_equal(chosen.solver, "lobpcg");
            assert_true(10 * chosen.passes < power.passes);
            for (int j = 0; j < N; j++) assert_true(fabs(fast[j] - slow[j]) <= 1e-6);
        }
        kiln_report_free(&chosen);
        kiln_report_free(&power);
        kiln_matrix_free(A);
        kiln_matrix_free(hubs);
        kiln_matrix_free(authorities);
    }
    free(graph.a);
}

/* A tolerance that f32 cannot reach: hundreds of steps within rounding leave authorities that are nearly as
 * right as f32 has them. */
static void rounding_does_no_harm(void **state) {
    (void)state;
    const kiln_hits_options options = {
        .size = sizeof options, .max_iterations = 1000, .tolerance = 1e-14, .solver = KILN_HITS_LOBPCG};
    for (int seed = 1; seed <= 8; seed++) {
        const int n = 500 + 100 * seed;
        struct graph graph = graph_new(n, n, 0.005, (uint64_t)seed);
        kiln_matrix *A = matrix_of(&graph, KILN_F32, KILN_CSR), *hubs, *authorities;
        kiln_report report = {0};
        vectors_new(&hubs, &authorities, A);
        assert_int_equal(kiln_hits(hubs, authorities, A, &options, &report), KILN_OK);
        assert_true(report.residual <= 1e-5);
        kiln_report_free(&report);
        kiln_matrix_free(A);
        kiln_matrix_free(hubs);
        kiln_matrix_free(authorities);
        free(graph.a);
    }
}

/* Nothing is written on failure. */
/* A hub of 40,000 links: f32's sums of them are 1e-4 off, so that what it says of the change is f64's. */
static void long_sums_are_right(void **state) {
    (void)state;
    enum { SPOKES = 40000, LINKS = 3 * SPOKES };
    int64_t *start = calloc(SPOKES + 2, sizeof *start), nnz = 0;
    int32_t *col = malloc(LINKS * sizeof *col);
    float *values = malloc(LINKS * sizeof *values);
    for (int32_t i = 0; i <= SPOKES; i++) {
        for (int32_t j = 0; j < 3; j++) { /* to the hub, and to two others */
            if (i == 0) continue;
            const int64_t half = SPOKES / 2, place = (int64_t)i * (j == 1 ? 7919 : 104729) % half;
            col[nnz] = j == 0 ? 0 : (int32_t)(1 + (j - 1) * half + place);
            values[nnz++] = (float)(1 + (i + j) % 3 / 10.0);
        }
        start[i + 1] = nnz;
    }
    kiln_matrix *A = NULL, *hubs, *authorities;
    for (int solver = 0; solver <= KILN_HITS_LOBPCG; solver++)
        for (int ones = 0; ones < 2; ones++) {
            const kiln_hits_options options = {.solver = (kiln_hits_solver)solver, .unweighted = ones};
            kiln_report report = {0};
            kiln_hits_verification found = {0};
            assert_int_equal(
                kiln_matrix_csr(&A, device, KILN_F32, SPOKES + 1, SPOKES + 1, start, col, values), KILN_OK);
            vectors_new(&hubs, &authorities, A);
            assert_int_equal(kiln_hits(hubs, authorities, A, &options, &report), KILN_OK);
            assert_int_equal(report.converged, 1);
            assert_int_equal(kiln_verify_hits(&found, A, hubs, authorities, &options), KILN_OK);
            if (!(found.authorities <= 1e-5 && found.hubs <= 1e-6))
                fail_msg("the authorities change by %g, the hubs by %g", found.authorities, found.hubs);
            if (!(fabs(found.eigenvalue - report.objective) <= 1e-5 * found.eigenvalue))
                fail_msg("the eigenvalue is %.9g, not %.9g", found.eigenvalue, report.objective);
            kiln_report_free(&report);
            kiln_matrix_free(hubs);
            kiln_matrix_free(authorities);
            kiln_matrix_free(A);
        }
    free(start);
    free(col);
    free(values);
}

static void refuse(const double a[4], kiln_status status, const char *part,
                   const kiln_hits_options *options) {
    struct graph graph = {2, 2, (double *)(uintptr_t)a};
    kiln_matrix *A = matrix_of(&graph, KILN_F64, KILN_CSR), *hubs, *authorities;
    kiln_report report = {.iterations = -7};
    const double before[2] = {0.3, 0.7};
    double after[2];
    vectors_new(&hubs, &authorities, A);
    assert_int_equal(kiln_matrix_set(hubs, before), KILN_OK);
    if (!options || !options->warm_start) assert_int_equal(kiln_matrix_set(authorities, before), KILN_OK);
    assert_int_equal(kiln_hits(hubs, authorities, A, options, &report), status);
    if (!strstr(kiln_last_error()->message, part)) fail_msg("%s", kiln_last_error()->message);
    assert_int_equal(report.iterations, -7);
    get(after, hubs);
    assert_memory_equal(after, before, sizeof before);
    kiln_matrix_free(A);
    kiln_matrix_free(hubs);
    kiln_matrix_free(authorities);
}

static void refusals(void **state) {
    (void)state;
    const double fine[] = {1, 2, 3, 4};
    refuse((double[]){0, 0, 0, 0}, KILN_ERR_DATA, "no links", NULL);
    refuse((double[]){-1, 0, -2, -3}, KILN_ERR_DATA, "hubs are negative", NULL);
    refuse((double[]){1, -2, -3, 1}, KILN_ERR_DATA, "are negative", NULL);
    refuse((double[]){NAN, 1, 1, 1}, KILN_ERR_DATA, "not numbers", NULL);
    refuse((double[]){1e200, 1, 1, 1}, KILN_ERR_DATA, "overflow", NULL);
    refuse(fine, KILN_ERR_ARGUMENT, "norm is 3", &(kiln_hits_options){.norm = 3});
    refuse(fine, KILN_ERR_ARGUMENT, "tolerance is -1", &(kiln_hits_options){.tolerance = -1});
    refuse(fine, KILN_ERR_ARGUMENT, "max_iterations", &(kiln_hits_options){.max_iterations = -1});
    refuse(fine, KILN_ERR_DATA, "at the start are 0", &(kiln_hits_options){.warm_start = 1});
    kiln_matrix *A = NULL, *hubs, *authorities;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, 2, 2, fine), KILN_OK);
    vectors_new(&hubs, &authorities, A);
    assert_int_equal(kiln_hits(NULL, authorities, A, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_hits(hubs, hubs, A, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_hits(A, authorities, A, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_hits(hubs, authorities, A, &(kiln_hits_options){.unweighted = 1}, NULL),
                     KILN_ERR_UNSUPPORTED);
    kiln_matrix_free(A);
    kiln_matrix_free(hubs);
    kiln_matrix_free(authorities);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_plain_loops),
        cmocka_unit_test(a_warm_start_goes_on),
        cmocka_unit_test(stops_when_asked),
        cmocka_unit_test(queues_ahead),
        cmocka_unit_test(unconnected_parts),
        cmocka_unit_test(a_slow_start_ends_no_run),
        cmocka_unit_test(near_eigenvalues_take_few_passes),
        cmocka_unit_test(rounding_does_no_harm),
        cmocka_unit_test(long_sums_are_right),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
