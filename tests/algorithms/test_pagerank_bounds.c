/* The bound that PageRank reports holds, and its default tolerance is met, on graphs with hubs, whose
 * ranks are known in closed form. */
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

static kiln_device *cpu, *group, *gpu; /* gpu: NULL where there is none */

static int open_devices(void **state) {
    (void)state;
    if (kiln_device_open(&gpu, "opencl", NULL) != KILN_OK) puts("no OpenCL device: the CPU alone is tested");
    if (kiln_device_open(&group, "cpu*2", NULL) != KILN_OK) return 1;
    return kiln_device_open(&cpu, "cpu", NULL);
}

static int close_devices(void **state) {
    (void)state;
    kiln_device_close(gpu);
    kiln_device_close(group);
    kiln_device_close(cpu);
    return 0;
}

/* STAR: vertex 0 links to all others and they to it. SINK: they link to it, and it dangles. CHAIN: each
 * links to the next. */
enum shape { STAR, SINK, CHAIN };

static kiln_matrix *graph(kiln_device *device, kiln_type type, enum shape shape, int n) {
    kiln_matrix *A = NULL, *wide = NULL;
    int64_t *start = calloc((size_t)n + 1, sizeof *start), nnz = 0;
    int32_t *col = malloc(2 * (size_t)n * sizeof *col);
    double *values = malloc(2 * (size_t)n * sizeof *values);
    assert_true(start && col && values);
    for (int i = 0; i < n; start[++i] = nnz) {
        if (shape == STAR && i == 0)
            for (int j = 1; j < n; j++) col[nnz++] = j;
        else if (shape == CHAIN && i + 1 < n)
            col[nnz++] = i + 1;
        else if (shape != CHAIN && i > 0)
            col[nnz++] = 0;
    }
    for (int64_t e = 0; e < nnz; e++) values[e] = 0.75;
    assert_int_equal(kiln_matrix_csr(&wide, cpu, KILN_F64, n, n, start, col, values), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    free(start);
    free(col);
    free(values);
    return A;
}

/* The graphs have n vertices and teleport uniformly. star: hub = b + d leaves l, l = b + d hub / leaves with
 * b = (1 - d) / n; sink and chain: the mass that dangles makes b unknown, and that all ranks add up to 1
 * tells it. */
static void exact(long double *p, enum shape shape, int n, long double d) {
    long double sum = 0;
    const long double leaves = n - 1, b = (1 - d) / n;
    for (int i = 0; i < n; i++) p[i] = 1;
    if (shape == STAR) {
        p[0] = b * (1 + d * leaves) / (1 - d * d);
        for (int i = 1; i < n; i++) p[i] = b + d * p[0] / leaves;
    } else if (shape == SINK) {
        p[0] = 1 + d * leaves;
    } else {
        for (int i = 1; i < n; i++) p[i] = 1 + d * p[i - 1];
    }
    for (int i = 0; i < n; i++) sum += p[i];
    for (int i = 0; i < n; i++) p[i] /= sum;
}

static long double distance_of(const kiln_matrix *ranks, int column, const long double *p) {
    const int64_t n = kiln_matrix_rows(ranks), k = kiln_matrix_cols(ranks);
    kiln_matrix *wide = NULL;
    double *values = malloc((size_t)(n * k) * sizeof *values);
    long double distance = 0;
    assert_int_equal(kiln_matrix_copy(&wide, cpu, KILN_F64, ranks), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    for (int64_t i = 0; i < n; i++) distance += fabsl(values[i * k + column] - p[i]);
    kiln_matrix_free(wide);
    free(values);
    return distance;
}

static void check(kiln_device *device, kiln_type type, enum shape shape, int n, int k,
                  kiln_pagerank_options options) {
    kiln_matrix *A = graph(device, type, shape, n), *ranks = NULL, *t = NULL;
    kiln_report report = {0};
    long double *p = malloc((size_t)n * sizeof *p);
    assert_int_equal(kiln_matrix_dense(&ranks, device, type, n, k, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&t, device, type, n, k, NULL), KILN_OK);
    assert_int_equal(kiln_fill(t, 1), KILN_OK);
    if (k > 1) options.personalize = t;
    options.max_iterations = 5000;
    if (kiln_pagerank(ranks, A, &options, &report) != KILN_OK) fail_msg("%s", kiln_last_error()->message);
    exact(p, shape, n, (long double)options.damping);
    if (report.stopped_by == KILN_STOP_STALLED)
        assert_true(type == KILN_F32 && options.damping > 0.9 && report.iterations < 5000);
    else if (!report.converged)
        fail_msg("n %d, damping %g: change %g", n, options.damping, report.residual);
    for (int c = 0; c < k; c++) {
        const long double distance = distance_of(ranks, c, p);
        if (!(distance <= report.objective))
            fail_msg("n %d, damping %g: %Lg of %g", n, options.damping, distance, report.objective);
    }
    assert_true(options.damping > 0.9 || report.objective <= (type == KILN_F32 ? 2e-5 : 1e-9));
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_matrix_free(ranks);
    kiln_matrix_free(t);
    free(p);
}

static void bounds_hold(void **state) {
    (void)state;
    static const int sizes[] = {301, 1301};
    kiln_device *const devices[] = {cpu, group, gpu};
    for (int d = 0; d < 3 && devices[d]; d++)
        for (int i = 0; i < 2 * 2 * 3 * 4; i++) {
            const kiln_type type = i % 2 ? KILN_F32 : KILN_F64;
            const kiln_layout layout = (kiln_layout)(i / 12);
            const kiln_pagerank_options options = {
                .damping = 0.85, .layout = layout, .unweighted = i / 2 % 2};
            if (devices[d] == gpu && (layout == 0 || i / 4 % 3 == CHAIN))
                continue; /* kernels are slow there */
            check(devices[d], type, (enum shape)(i / 4 % 3), sizes[i / 2 % 2], 1 + 2 * (i % 3 == 0), options);
        }
}

/* Slow ones: the nearer the damping is to 1 the more iterations and the more rounding. */
static void bounds_hold_near_one(void **state) {
    (void)state;
    for (int type = KILN_F32; type <= KILN_F64; type++)
        for (int shape = STAR; shape <= CHAIN; shape++)
            for (int layout = 1; layout <= KILN_LAYOUT_BALANCED; layout++)
                check(cpu, (kiln_type)type, (enum shape)shape, 301, 1,
                      (kiln_pagerank_options){.damping = 0.99, .layout = (kiln_layout)layout});
}

/* A cycle with a short cut: 2/5, 1/5, 2/5. The change is what was asked for, and no bound follows from it. */
static void without_teleport_there_is_no_bound(void **state) {
    (void)state;
    static const int64_t start[] = {0, 2, 3, 4};
    static const int32_t col[] = {1, 2, 2, 0};
    static const long double p[] = {0.4L, 0.2L, 0.4L};
    kiln_matrix *A = NULL, *ranks = NULL;
    kiln_report report = {0};
    assert_int_equal(kiln_matrix_csr(&A, cpu, KILN_F64, 3, 3, start, col, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&ranks, cpu, KILN_F64, 3, 1, NULL), KILN_OK);
    assert_int_equal(kiln_pagerank(ranks, A, &(kiln_pagerank_options){.damping = 1}, &report), KILN_OK);
    assert_true(report.converged && report.stopped_by == KILN_STOP_TOLERANCE && report.residual <= 1e-10);
    assert_true(isinf(report.objective) && isinf(kiln_report_figure(&report, "error_bound")));
    assert_true(distance_of(ranks, 0, p) < 1e-9L);
    kiln_report_free(&report);
    kiln_matrix_free(A);
    kiln_matrix_free(ranks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(bounds_hold_near_one),
        cmocka_unit_test(without_teleport_there_is_no_bound),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
