/* Multi-dimensional scaling: layouts that are known, stress that never rises, what is missing, weighted,
 * tied, at one place, and what cannot be laid out. The reference is kiln_verify_mds's long double, and
 * points whose distances are the dissimilarities. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/check.h"
#include "kiln.h"
#include "npy_file.h"

enum { N = 40, P = 2 };

static kiln_device *device;

static int setup(void **state) {
    (void)state;
    return kiln_device_open(&device, "cpu", NULL) != KILN_OK;
}

static int teardown(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

static kiln_matrix *matrix(kiln_type type, int64_t rows, int64_t cols, const void *values) {
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, type, rows, cols, values), KILN_OK);
    return A;
}

static double random_at(uint64_t i) {
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i ^= i >> 31;
    return (double)((i * 0xbf58476d1ce4e5b9u) >> 11) * 0x1p-53;
}

/* Distances of n random points in q dimensions, `noise` times themselves added or taken. */
static void distances(double *D, int64_t n, int64_t q, double noise, uint64_t seed) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double square = 0;
            for (int64_t c = 0; c < q; c++) {
                const double apart =
                    random_at(seed + (uint64_t)(i * q + c)) - random_at(seed + (uint64_t)(j * q + c));
                square += apart * apart;
            }
            D[i * n + j] = D[j * n + i] =
                sqrt(square) * (1 + noise * (random_at(seed + 7919 * (uint64_t)(i * n + j)) - 0.5));
        }
}

static void recovers_points(void **state) {
    (void)state;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        kiln_matrix *X = matrix(type, N, P, NULL), *Y = matrix(type, N, P, NULL);
        assert_int_equal(kiln_fill_random(X, KILN_NORMAL, 3, 0), KILN_OK);
        kiln_report report = {0};
        assert_int_equal(kiln_mds(Y, X, NULL, &report), KILN_OK);
        assert_int_equal(report.converged, 1);
        const double stress_1 = kiln_report_figure(&report, "stress_1");
        if (!(stress_1 < (type == KILN_F32 ? 1e-5 : 1e-12))) fail_msg("stress-1 is %g", stress_1);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

/* A thousand runs from random starts, all kinds in turn: stress never rises, and is that of the layout
 * returned. */
static void never_rises(void **state) {
    (void)state;
    double *D = malloc(30 * 30 * sizeof *D);
    for (int run = 0; run < 1000; run++) {
        const int64_t n = 3 + run % 27, p = 1 + run % 3;
        distances(D, n, 4, 0.8, (uint64_t)run * 1000003);
        kiln_matrix *X = matrix(KILN_F64, n, n, D), *Y = matrix(KILN_F64, n, p, NULL), *w = NULL;
        if (run % 5 == 0) {
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j <= i; j++)
                    D[i * n + j] = D[j * n + i] = 1 + 4 * random_at((uint64_t)(run + i * j));
            w = matrix(KILN_F64, n, n, D);
        }
        const kiln_mds_options options = {.metric = (kiln_mds_metric)(1 + run / 7 % 3),
                                          .ties = (kiln_mds_ties)(1 + run % 2),
                                          .init = KILN_MDS_RANDOM,
                                          .dissimilarities = 1,
                                          .seed = (uint64_t)run,
                                          .max_iterations = 40,
                                          .weights = w};
        kiln_report report = {0};
        if (kiln_mds(Y, X, &options, &report) != KILN_OK)
            fail_msg("run %d: %s", run, kiln_last_error()->message);
        for (int64_t t = 1; t < report.trace_count; t++)
            if (!(report.trace[t].objective <= report.trace[t - 1].objective * (1 + 1e-12)))
                fail_msg("run %d: stress rises from %.17g to %.17g", run, report.trace[t - 1].objective,
                         report.trace[t].objective);
        assert_true(kiln_report_figure(&report, "setbacks") == 0);
        kiln_mds_verification found = {0};
        assert_int_equal(kiln_verify_mds(&found, Y, X, &options), KILN_OK);
        if (!(fabs(found.stress - report.objective) <= 1e-9 * (report.objective + 1)))
            fail_msg("run %d: the stress is %.17g, not %.17g", run, found.stress, report.objective);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
        kiln_matrix_free(w);
    }
    free(D);
}

/* Dissimilarities that are cubes of distances: ordinal scaling finds the points' layout, ratio does not. */
static void ordinal_finds_order(void **state) {
    (void)state;
    double D[N * N];
    distances(D, N, P, 0, 17);
    for (int e = 0; e < N * N; e++) D[e] = D[e] * D[e] * D[e];
    kiln_matrix *X = matrix(KILN_F64, N, N, D), *Y = matrix(KILN_F64, N, P, NULL);
    kiln_report ratio = {0}, ordinal = {0};
    const kiln_mds_options plain = {.dissimilarities = 1}, ranks = {.dissimilarities = 1,
                                                                    .metric = KILN_MDS_ORDINAL,
                                                                    .tolerance = 1e-9,
                                                                    .max_iterations = 5000};
    assert_int_equal(kiln_mds(Y, X, &plain, &ratio), KILN_OK);
    assert_int_equal(kiln_mds(Y, X, &ranks, &ordinal), KILN_OK);
    const double theirs = kiln_report_figure(&ratio, "stress_1"),
                 ours = kiln_report_figure(&ordinal, "stress_1");
    if (!(ours < 0.02 && theirs > 0.1)) fail_msg("ordinal %g, ratio %g", ours, theirs);
    kiln_report_free(&ratio);
    kiln_report_free(&ordinal);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
}

/* Three of ten pairs are missing, and the points are found all the same; each point's stress adds up to
 * twice the stress. */
static void missing_pairs(void **state) {
    (void)state;
    double D[N * N], points[N], sum = 0;
    distances(D, N, P, 0, 29);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            if ((i * 7 + j) % 10 < 3) D[i * N + j] = D[j * N + i] = (double)NAN;
    kiln_matrix *X = matrix(KILN_F64, N, N, D), *Y = matrix(KILN_F64, N, P, NULL),
                *each = matrix(KILN_F64, N, 1, NULL);
    kiln_report report = {0};
    const kiln_mds_options options = {.dissimilarities = 1, .restarts = 20, .point_stress = each};
    assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
    const double stress_1 = kiln_report_figure(&report, "stress_1");
    if (!(stress_1 < 0.01)) fail_msg("stress-1 is %g", stress_1);
    assert_int_equal(kiln_matrix_get(points, each), KILN_OK);
    for (int i = 0; i < N; i++) sum += points[i];
    assert_true(fabs(sum / 2 - report.objective) <= 1e-9 * (report.objective + 1));
    kiln_report_free(&report);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
    kiln_matrix_free(each);
}

/* All points at one place, and a given start with all points at one place: nothing is divided by 0. */
static void one_place(void **state) {
    (void)state;
    kiln_matrix *X = matrix(KILN_F64, 5, 3, NULL), *Y = matrix(KILN_F64, 5, P, NULL);
    double at[5 * P];
    kiln_report report = {0};
    assert_int_equal(kiln_mds(Y, X, NULL, &report), KILN_OK);
    assert_int_equal(kiln_matrix_get(at, Y), KILN_OK);
    for (int e = 0; e < 5 * P; e++) assert_true(isfinite(at[e]));
    assert_true(report.objective == 0 || report.objective < 1e-20);
    kiln_report_free(&report);
    report = (kiln_report){0};
    const kiln_mds_options given = {.init = KILN_MDS_GIVEN};
    assert_int_equal(kiln_fill_random(X, KILN_UNIFORM, 1, 1), KILN_OK);
    assert_int_equal(kiln_fill(Y, 0), KILN_OK);
    assert_int_equal(kiln_mds(Y, X, &given, &report), KILN_OK);
    assert_true(isfinite(report.objective));
    kiln_report_free(&report);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
}

/* Pairs of points that a start has at the same place, though they are not: forces agree on them, and no
 * layout that keeps them together has the least stress. */
static void points_that_meet_part(void **state) {
    (void)state;
    for (int run = 0; run < 8; run++) {
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        const int p = run / 4 + 1;
        const kiln_mds_options options = {.init = KILN_MDS_GIVEN,
                                          .metric = run / 2 % 2 ? KILN_MDS_INTERVAL : KILN_MDS_RATIO};
        kiln_matrix *X = matrix(type, N, P, NULL), *Y = matrix(type, N, p, NULL);
        double at[N * P];
        float narrow[N * P];
        kiln_report report = {0};
        kiln_mds_verification found = {.size = sizeof found};
        assert_int_equal(kiln_fill_random(X, KILN_NORMAL, 7, 0), KILN_OK);
        for (int i = 0; i < N; i++)
            for (int c = 0; c < p; c++)
                narrow[i * p + c] = (float)(at[i * p + c] = (i / 2 * 37 + c * 11) % 53 / 32.0);
        assert_int_equal(kiln_matrix_set(Y, type == KILN_F64 ? (void *)at : narrow), KILN_OK);
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        assert_int_equal(kiln_matrix_get(type == KILN_F64 ? (void *)at : narrow, Y), KILN_OK);
        for (int i = 0; i < N - 1; i += 2) {
            double square = 0;
            for (int c = 0; c < p; c++) {
                const int e = i * p + c;
                const double apart = type == KILN_F64 ? at[e] - at[e + p] : narrow[e] - narrow[e + p];
                square += apart * apart;
            }
            if (!(square > 1e-6)) fail_msg("run %d: points %d and %d lie at the same place", run, i, i + 1);
        }
        assert_int_equal(kiln_verify_mds(&found, Y, X, &options), KILN_OK);
        if (!(found.fall <= 2 * report.tolerance + found.fall_rounding || found.stress_1 <= report.tolerance))
            fail_msg("run %d: falls by %g of %g, rounding %g", run, found.fall, found.stress,
                     found.fall_rounding);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

/* Data times a power of two, up to sizes whose squares the type does not hold, have the same layout times
 * it, bit for bit; of interval and ordinal scaling the same layout. Weights times a power of two change the
 * stress alone. */
static void any_size(void **state) {
    (void)state;
    enum { KINDS = 3, SIZES = 4, Q = 3 };
    static const int exponents[2][SIZES] = {{-90, -60, 40, 110}, {-900, -510, 400, 495}};
    double values[N * N], scaled[N * N], weights[N * N], y[N * P], z[N * P], points[N], other[N];
    for (int run = 0; run < 2 * KINDS * 2 * SIZES; run++) {
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        const int square = run / 2 % 2;
        const kiln_mds_metric metric = (kiln_mds_metric)(1 + run / 4 % KINDS);
        const int exponent = exponents[type == KILN_F64][run / 4 / KINDS];
        const int64_t cols = square ? N : Q;
        float narrow[N * N];
        distances(values, N, Q, 0.5, 3);
        kiln_matrix *X[2], *Y = matrix(type, N, P, NULL), *w[2] = {NULL, NULL},
                           *each = matrix(KILN_F64, N, 1, NULL);
        kiln_report reports[2] = {{0}, {0}};
        for (int turn = 0; turn < 2; turn++) {
            for (int e = 0; e < N * cols; e++) {
                scaled[e] = ldexp((float)(square ? values[e] : random_at((uint64_t)e)), turn ? exponent : 0);
                narrow[e] = (float)scaled[e];
            }
            X[turn] = matrix(type, N, cols, type == KILN_F32 ? (void *)narrow : scaled);
            for (int e = 0; e < N * N && square; e++) {
                weights[e] = ldexp(1 + (e % N + e / N) % 3, turn ? exponent / 50 : 0);
                narrow[e] = (float)weights[e];
            }
            if (square) w[turn] = matrix(type, N, N, type == KILN_F32 ? (void *)narrow : weights);
            const kiln_mds_options options = {.metric = metric,
                                              .dissimilarities = square,
                                              .restarts = 2,
                                              .weights = w[turn],
                                              .point_stress = each};
            if (kiln_mds(Y, X[turn], &options, &reports[turn]) != KILN_OK)
                fail_msg("run %d: %s", run, kiln_last_error()->message);
            assert_int_equal(kiln_matrix_get(turn ? other : points, each), KILN_OK);
            float of_Y[N * P];
            assert_int_equal(kiln_matrix_get(type == KILN_F32 ? (void *)of_Y : (turn ? z : y), Y), KILN_OK);
            for (int e = 0; e < N * P && type == KILN_F32; e++) (turn ? z : y)[e] = of_Y[e];
            kiln_mds_verification found = {.size = sizeof found};
            assert_int_equal(kiln_verify_mds(&found, Y, X[turn], &options), KILN_OK);
            const double stress_1 = kiln_report_figure(&reports[turn], "stress_1");
            if (!(fabs(found.stress - reports[turn].objective) <= found.stress_rounding))
                fail_msg("run %d: %g, not %g", run, found.stress, reports[turn].objective);
            if (!(fabs(found.stress_1 - stress_1) <= found.stress_1_rounding &&
                  found.stress_1_rounding < 1e-3 * stress_1))
                fail_msg("run %d: stress-1 is %g, not %g", run, found.stress_1, stress_1);
        }
        const int of_Y = metric == KILN_MDS_RATIO ? exponent : 0,
                  of_stress = 2 * of_Y + (square ? exponent / 50 : 0);
        for (int e = 0; e < N * P; e++)
            if (z[e] != ldexp(y[e], of_Y))
                fail_msg("run %d, %d: %g is not 2^%d %g", run, e, z[e], of_Y, y[e]);
        for (int i = 0; i < N; i++)
            if (other[i] != ldexp(points[i], of_stress)) fail_msg("run %d, point %d", run, i);
        assert_true(reports[1].objective == ldexp(reports[0].objective, of_stress));
        kiln_matrix *const all[] = {X[0], X[1], w[0], w[1], Y, each};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
        kiln_report_free(&reports[0]);
        kiln_report_free(&reports[1]);
    }
}

/* One point: nothing to lay out, no figure that is no number. */
static void one_point(void **state) {
    (void)state;
    for (int run = 0; run < 12; run++) {
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        const kiln_mds_options options = {.metric = (kiln_mds_metric)(1 + run / 4),
                                          .dissimilarities = run / 2 % 2};
        kiln_matrix *X = matrix(type, 1, options.dissimilarities ? 1 : 3, NULL),
                    *Y = matrix(type, 1, P, NULL);
        kiln_report report = {0};
        kiln_mds_verification found = {.size = sizeof found};
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        assert_int_equal(report.converged, 1);
        assert_true(report.objective == 0 && kiln_report_figure(&report, "stress_1") == 0);
        assert_int_equal(kiln_verify_mds(&found, Y, X, &options), KILN_OK);
        assert_true(found.stress == 0 && found.stress_1 == 0 && found.fall == 0);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

/* An order is one of all sizes: distances whose squares underflow are no ties beside those of 1. */
static void ordinal_sees_small_distances(void **state) {
    (void)state;
    enum { SMALL = 9 };
    double points[SMALL] = {0, 1e-156, 3e-156, 7e-156, 2e-155, 1, 2.5, 5, 11};
    float narrow[SMALL] = {0, 1e-30f, 3e-30f, 7e-30f, 2e-29f, 1, 2.5f, 5, 11};
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        kiln_matrix *X = matrix(type, SMALL, 1, type == KILN_F32 ? (void *)narrow : points),
                    *Y = matrix(type, SMALL, 1, NULL);
        const kiln_mds_options options = {.metric = KILN_MDS_ORDINAL, .ties = KILN_MDS_SECONDARY};
        kiln_report report = {0};
        kiln_mds_verification found = {.size = sizeof found};
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        assert_int_equal(kiln_verify_mds(&found, Y, X, &options), KILN_OK);
        if (!(fabs(found.stress - report.objective) <= found.stress_rounding))
            fail_msg("the stress is %g, not %g", found.stress, report.objective);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

/* Which dissimilarities are equal is settled by the data: points that are a grid but for differences about
 * the limit have the same ties in the last iteration as in the first, with weights and without. */
static void ordinal_ties_stay(void **state) {
    (void)state;
    for (int run = 0; run < 80; run++) {
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        const double limit = type == KILN_F64 ? 1e-12 : 1e-5;
        const int64_t n = 6 + run % 9;
        kiln_matrix *X = NULL, *Y = matrix(type, n, 2, NULL), *w = NULL;
        double points[16 * 2], weights[16 * 16];
        float narrow[16 * 2], narrow_weights[16 * 16];
        for (int64_t e = 0; e < 2 * n; e++) {
            points[e] =
                (double)(e % 2 ? e / 2 % 3 : e / 6) + 2 * limit * random_at((uint64_t)(1000 * run + e));
            narrow[e] = (float)points[e];
        }
        for (int64_t e = 0; e < n * n; e++)
            weights[e] = narrow_weights[e] =
                (float)(1 + random_at((uint64_t)(run + e % n * (e / n) + e % n + e / n)));
        X = matrix(type, n, 2, type == KILN_F64 ? (void *)points : narrow);
        if (run % 4 >= 2) w = matrix(type, n, n, type == KILN_F64 ? (void *)weights : narrow_weights);
        const kiln_mds_options options = {
            .metric = KILN_MDS_ORDINAL, .init = KILN_MDS_RANDOM, .seed = (uint64_t)run, .weights = w};
        kiln_report report = {0};
        kiln_mds_verification found = {.size = sizeof found};
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        assert_int_equal(kiln_verify_mds(&found, Y, X, &options), KILN_OK);
        if (!(fabs(found.stress - report.objective) <= found.stress_rounding))
            fail_msg("run %d: the stress is %g, not %g", run, found.stress, report.objective);
        kiln_report_free(&report);
        kiln_matrix_free(w);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

/* A perfect fit's stress is rounding, and so is its fall; a stress of another layout is not. */
static void verification_knows_rounding(void **state) {
    (void)state;
    for (int run = 0; run < 6; run++) {
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        const kiln_mds_options options = {.metric = (kiln_mds_metric)(1 + run / 2)};
        kiln_matrix *X = matrix(type, N, P, NULL), *Y = matrix(type, N, P, NULL);
        kiln_report report = {0};
        kiln_mds_verification found = {.size = sizeof found};
        assert_int_equal(kiln_fill_random(X, KILN_NORMAL, 7, 0), KILN_OK);
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        assert_int_equal(kiln_verify_mds(&found, Y, X, &options), KILN_OK);
        if (!(fabs(found.stress - report.objective) <= found.stress_rounding))
            fail_msg("run %d: %g, not %g +- %g", run, found.stress, report.objective, found.stress_rounding);
        if (!(found.fall <= 2 * report.tolerance + found.fall_rounding))
            fail_msg("run %d: falls by %g of %g, rounding %g", run, found.fall, found.stress,
                     found.fall_rounding);
        assert_int_equal(kiln_fill_random(Y, KILN_NORMAL, 8, 0), KILN_OK);
        assert_int_equal(kiln_verify_mds(&found, Y, X, &options), KILN_OK);
        assert_true(found.stress - report.objective > 1e3 * found.stress_rounding);
        assert_true(found.fall > 1e3 * (report.tolerance + found.fall_rounding));
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

/* New points, which are old ones, go where these lie. */
/* Interval scaling has its line begin at the least dissimilarity of a pair that counts: distances plus 5 are
 * laid out as they are, though pairs that are missing, or count for nothing, are less. */
static void lines_begin_at_pairs_that_count(void **state) {
    static double D[N * N], W[N * N];
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        distances(D, N, P, 0, 31);
        for (int e = 0; e < N * N; e++) D[e] += 5, W[e] = 1;
        D[1] = D[N] = turn ? 0.1 : (double)NAN;
        W[1] = W[N] = 0;
        kiln_matrix *X = matrix(KILN_F64, N, N, D), *Y = matrix(KILN_F64, N, P, NULL),
                    *w = turn ? matrix(KILN_F64, N, N, W) : NULL;
        const kiln_mds_options options = {
            .metric = KILN_MDS_INTERVAL, .dissimilarities = 1, .weights = w, .max_iterations = 5000};
        kiln_report report = {0};
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        const double stress_1 = kiln_report_figure(&report, "stress_1");
        if (!(stress_1 < 1e-4)) fail_msg("turn %d: stress-1 is %g", turn, stress_1);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
        kiln_matrix_free(w);
    }
}

/* A file with these numbers at `path`, a template of mkstemp, read where it lies. */
static kiln_data *filed(char *path, kiln_device *on, int rows, int cols, const double *values) {
    kiln_data *data = NULL;
    npy_file(path, rows, cols, values);
    assert_int_equal(kiln_data_read(&data, on, path, &(kiln_read_options){.map = 1, .allow_nonfinite = 1}),
                     KILN_OK);
    return data;
}

/* The stress and the layout of a file's run are those of memory's, to 1e-9 of the stress and 1e-6 units. */
static void assert_same_run(const kiln_report *mapped, const kiln_report *report, const double *in_file,
                            const double *in_memory, int count, double unit) {
    if (!(fabs(mapped->objective - report->objective) <= 1e-9 * report->objective))
        fail_msg("%.12g, not %.12g", mapped->objective, report->objective);
    for (int e = 0; e < count; e++) assert_true(fabs(in_file[e] - in_memory[e]) <= 1e-6 * unit);
}

/* Points that stay in their file, some panels of them, have the stress and the layout of those in memory. */
static void points_in_their_file(void **state) {
    enum { M = 300, Q = 12 };
    static double x[M * Q], in_memory[M * P], in_file[M * P];
    char path[] = "/tmp/kiln-mds-XXXXXX";
    const kiln_mds_options options = {.max_iterations = 10};
    kiln_device_statistics statistics = {0};
    kiln_report report = {0}, mapped = {0};
    kiln_device *small = NULL;
    (void)state;
    for (int e = 0; e < M * Q; e++) x[e] = random_at((uint64_t)e);
    assert_int_equal(kiln_device_open(&small, "cpu", &(kiln_device_options){.memory = 100000}), KILN_OK);
    kiln_data *data = filed(path, small, M, Q, x);
    kiln_matrix *X = matrix(KILN_F64, M, Q, x), *Y = matrix(KILN_F64, M, P, NULL), *Z = NULL;
    assert_int_equal(kiln_matrix_dense(&Z, small, KILN_F64, M, P, NULL), KILN_OK);
    assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
    if (kiln_mds(Z, kiln_data_X(data), &options, &mapped) != KILN_OK)
        fail_msg("%s", kiln_last_error()->message);
    kiln_device_get_statistics(small, &statistics);
    assert_true(statistics.panels > 20);
    assert_int_equal(kiln_matrix_get(in_memory, Y), KILN_OK);
    assert_int_equal(kiln_matrix_get(in_file, Z), KILN_OK);
    assert_same_run(&mapped, &report, in_file, in_memory, M * P, 1);
    kiln_report_free(&report);
    kiln_report_free(&mapped);
    kiln_data_free(data);
    unlink(path);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
    kiln_matrix_free(Z);
    kiln_device_close(small);
}

/* Dissimilarities that stay in their file have the layouts of those in memory, though some be missing, the
 * diagonal have numbers, and units be large. */
static void dissimilarities_in_their_file(void **state) {
    enum { PLAIN, DIAGONAL, MISSING, LARGE, KINDS };
    static double D[N * N], in_memory[N * P], in_file[N * P];
    (void)state;
    for (int metric = KILN_MDS_RATIO; metric <= KILN_MDS_ORDINAL; metric++)
        for (int kind = 0; kind < KINDS; kind++) {
            const kiln_mds_options options = {
                .metric = (kiln_mds_metric)metric, .dissimilarities = 1, .max_iterations = 10};
            distances(D, N, 3, 0.5, 37);
            for (int e = 0; e < N * N && kind == LARGE; e++) D[e] *= 1e100;
            for (int i = 0; i < N && kind == DIAGONAL; i++) D[i * (N + 1)] = 3;
            if (kind == MISSING) D[1] = D[N] = (double)NAN;
            char path[] = "/tmp/kiln-mds-XXXXXX";
            kiln_data *data = filed(path, device, N, N, D);
            kiln_matrix *X = matrix(KILN_F64, N, N, D), *Y = matrix(KILN_F64, N, P, NULL);
            kiln_report report = {0}, mapped = {0};
            assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
            assert_int_equal(kiln_matrix_get(in_memory, Y), KILN_OK);
            if (kiln_mds(Y, kiln_data_X(data), &options, &mapped) != KILN_OK)
                fail_msg("metric %d, kind %d: %s", metric, kind, kiln_last_error()->message);
            assert_int_equal(kiln_matrix_get(in_file, Y), KILN_OK);
            assert_same_run(&mapped, &report, in_file, in_memory, N * P, kind == LARGE ? 1e100 : 1);
            kiln_report_free(&report);
            kiln_report_free(&mapped);
            kiln_data_free(data);
            unlink(path);
            kiln_matrix_free(X);
            kiln_matrix_free(Y);
        }
}

/* The corners of a square on a line, but for 1e-6: what is left is a stress of 0, which the second dimension
 * reaches from next to nothing. */
static void a_line_ends_no_run(void **state) {
    static const double line[] = {-0.7, 1e-6, -0.2, -1e-6, 0.7, -1e-6, 0.2, 2e-6};
    (void)state;
    const double d = sqrt(2), D[] = {0, 1, d, 1, 1, 0, 1, d, d, 1, 0, 1, 1, d, 1, 0};
    for (int metric = KILN_MDS_RATIO; metric <= KILN_MDS_ORDINAL; metric++) {
        const kiln_mds_options options = {
            .metric = (kiln_mds_metric)metric, .init = KILN_MDS_GIVEN, .dissimilarities = 1};
        kiln_matrix *X = matrix(KILN_F64, 4, 4, D), *Y = matrix(KILN_F64, 4, 2, line);
        kiln_report report = {0};
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        assert_true(report.converged);
        if (!(kiln_report_figure(&report, "stress_1") < 1e-5))
            fail_msg("metric %d: stress-1 is %g after %lld iterations", metric,
                     kiln_report_figure(&report, "stress_1"), (long long)report.iterations);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

static void places_new_points(void **state) {
    (void)state;
    kiln_matrix *X = matrix(KILN_F64, N, P, NULL), *Y = matrix(KILN_F64, N, P, NULL), *placed = NULL;
    kiln_model *model = NULL;
    double y[N * P], z[N * P];
    assert_int_equal(kiln_fill_random(X, KILN_NORMAL, 3, 0), KILN_OK);
    assert_int_equal(kiln_mds(Y, X, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_model_create(&model, "mds"), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "layout", Y), KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, "points", X), KILN_OK);
    assert_int_equal(kiln_predict(&placed, model, X), KILN_OK);
    assert_int_equal(kiln_matrix_get(y, Y), KILN_OK);
    assert_int_equal(kiln_matrix_get(z, placed), KILN_OK);
    for (int e = 0; e < N * P; e++)
        if (!(fabs(y[e] - z[e]) < 1e-6)) fail_msg("%d: %g, but %g", e, z[e], y[e]);
    kiln_matrix_free(placed);
    assert_int_equal(kiln_model_set_text(model, "metric", "ordinal"), KILN_OK);
    assert_int_equal(kiln_predict(&placed, model, X), KILN_ERR_UNSUPPORTED);
    kiln_model_free(model);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
}

static int stop(void *user, const kiln_progress *now) {
    (void)now;
    return ++*(int *)user == 3;
}

static void cancels(void **state) {
    (void)state;
    int calls = 0;
    kiln_matrix *X = matrix(KILN_F64, N, 9, NULL), *Y = matrix(KILN_F64, N, P, NULL);
    kiln_report report = {0};
    const kiln_mds_options options = {.tolerance = 1e-300, .control = {stop, &calls}};
    assert_int_equal(kiln_fill_random(X, KILN_NORMAL, 3, 0), KILN_OK);
    assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
    assert_int_equal(report.stopped_by, KILN_STOP_CANCELLED);
    assert_int_equal(report.iterations, 3);
    kiln_report_free(&report);
    kiln_matrix_free(X);
    kiln_matrix_free(Y);
}

static void refuse(kiln_status wanted, const char *words, kiln_matrix *Y, const kiln_matrix *X,
                   kiln_mds_options options) {
    kiln_report report = {0};
    const kiln_status status = kiln_mds(Y, X, &options, &report);
    if (status != wanted || !strstr(kiln_last_error()->message, words))
        fail_msg("%s: %s, '%s'", words, kiln_status_name(status), kiln_last_error()->message);
}

/* Points that meet by panels, with a constant column far from zero and one of times: the layout of the same
 * points with columns near zero. */
static void far_columns(void **state) {
    (void)state;
    enum { M = 300, Q = 12, STEPS = 5 };
    static double far[M * Q], near[M * Q];
    static float narrow[M * Q];
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        const double level = type == KILN_F64 ? 1.7e12 : 1 << 23;
        double stress[2];
        for (int e = 0; e < M * Q; e++) {
            near[e] = e % Q == 0 ? 0 : floor(8 * random_at((uint64_t)e));
            far[e] = near[e] + (e % Q < 2 ? level : 0);
        }
        for (int turn = 0; turn < 2; turn++) {
            kiln_device *small, *const plenty = device;
            const double *values = turn ? far : near;
            for (int e = 0; e < M * Q; e++) narrow[e] = (float)values[e];
            assert_int_equal(
                kiln_device_open(&small, "cpu", &(kiln_device_options){.memory = turn ? 1 << 20 : 0}),
                KILN_OK);
            device = small;
            kiln_matrix *X = matrix(type, M, Q, type == KILN_F32 ? (const void *)narrow : values),
                        *Y = matrix(type, M, P, NULL);
            kiln_report report = {0};
            assert_int_equal(kiln_mds(Y, X, &(kiln_mds_options){.max_iterations = STEPS}, &report), KILN_OK);
            stress[turn] = report.objective;
            kiln_report_free(&report);
            kiln_matrix_free(X);
            kiln_matrix_free(Y);
            kiln_device_close(small);
            device = plenty;
        }
        if (!(fabs(stress[1] - stress[0]) <= (type == KILN_F64 ? 1e-6 : 1e-3) * stress[0]))
            fail_msg("%g, not %g", stress[1], stress[0]);
    }
}

/* The diagonal is not read: neither is a number there part of the start, nor does NaN hide what is not
 * symmetric. */
static void any_diagonal(void **state) {
    (void)state;
    double D[N * N], stress[3];
    const double diagonals[] = {0, 5, (double)NAN};
    kiln_matrix *Y = matrix(KILN_F64, N, P, NULL);
    const kiln_mds_options options = {.dissimilarities = 1, .max_iterations = 3};
    distances(D, N, 3, 0.5, 3);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < N; i++) D[i * (N + 1)] = diagonals[turn];
        kiln_matrix *X = matrix(KILN_F64, N, N, D);
        kiln_report report = {0};
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        stress[turn] = report.objective;
        kiln_report_free(&report);
        kiln_matrix_free(X);
        assert_true(stress[turn] == stress[0]);
    }
    D[7] *= 3;
    kiln_matrix *skew = matrix(KILN_F64, N, N, D);
    refuse(KILN_ERR_DATA, "not symmetric", Y, skew, options);
    kiln_matrix_free(skew);
    kiln_matrix_free(Y);
}

static void refuses(void **state) {
    (void)state;
    double D[9] = {0, 1, 2, 1, 0, 3, 2, 3, 0};
    kiln_matrix *Y = matrix(KILN_F64, 3, 2, NULL), *good = matrix(KILN_F64, 3, 3, D),
                *flat = matrix(KILN_F64, 3, 2, NULL);
    const int64_t start[4] = {0, 1, 1, 2};
    const int32_t col[2] = {0, 1};
    kiln_matrix *sparse = NULL;
    assert_int_equal(kiln_matrix_csr(&sparse, device, KILN_F64, 3, 3, start, col, NULL), KILN_OK);
    const kiln_mds_options square = {.dissimilarities = 1};
    refuse(KILN_ERR_ARGUMENT, "NULL", NULL, good, square);
    refuse(KILN_ERR_ARGUMENT, "NULL", Y, NULL, square);
    refuse(KILN_ERR_UNSUPPORTED, "dense", Y, sparse, square);
    refuse(KILN_ERR_DATA, "square", Y, flat, square);
    refuse(KILN_ERR_ARGUMENT, "must not be X", Y, Y, (kiln_mds_options){0});
    refuse(KILN_ERR_ARGUMENT, "point_stress", Y, good, (kiln_mds_options){.point_stress = Y});
    refuse(KILN_ERR_ARGUMENT, "tolerance", Y, good, (kiln_mds_options){.tolerance = -1});
    D[1] = -1, D[3] = -1;
    kiln_matrix *negative = matrix(KILN_F64, 3, 3, D);
    refuse(KILN_ERR_DATA, "1, 2 is -1", Y, negative, square);
    D[1] = 5, D[3] = 1;
    kiln_matrix *skew = matrix(KILN_F64, 3, 3, D);
    refuse(KILN_ERR_DATA, "not symmetric", Y, skew, square);
    D[1] = (double)NAN;
    kiln_matrix *half = matrix(KILN_F64, 3, 3, D);
    refuse(KILN_ERR_DATA, "is missing, but not", Y, half, square);
    kiln_matrix *const all[] = {Y, good, flat, sparse, negative, skew, half};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

/* Values that no order can be found of are an error, as kiln_mds's, and not a walk without an end. */
static void verification_refuses(void **state) {
    (void)state;
    enum { SECONDS = 20 };
    double D[9] = {0, -2, -1, -2, 0, 3, -1, 3, 0}, points[6] = {0, 1, (double)NAN, 2, 3, 4};
    kiln_matrix *Y = matrix(KILN_F64, 3, 2, NULL), *weights = matrix(KILN_F64, 3, 3, D),
                *negative = matrix(KILN_F64, 3, 3, D), *lost = matrix(KILN_F64, 3, 2, points);
    const struct {
        const kiln_matrix *X, *weights;
        const char *words;
    } cases[] = {{negative, NULL, "kiln_verify_mds: dissimilarity 1, 2 is -2"},
                 {lost, NULL, "kiln_verify_mds"},
                 {Y, weights, "kiln_verify_mds: weight 1, 2 is -2"}};
    alarm(SECONDS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kiln_mds_options options = {.metric = KILN_MDS_ORDINAL,
                                          .dissimilarities = cases[i].X == negative,
                                          .weights = cases[i].weights};
        kiln_mds_verification found = {0};
        const kiln_status status = kiln_verify_mds(&found, Y, cases[i].X, &options);
        if (status != KILN_ERR_DATA || !strstr(kiln_last_error()->message, cases[i].words))
            fail_msg("%s: %s, '%s'", cases[i].words, kiln_status_name(status), kiln_last_error()->message);
    }
    alarm(0);
    kiln_matrix *const all[] = {Y, weights, negative, lost};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

/* Points whose order a layout keeps entirely: the stress falls by the same share an iteration for ever,
 * and is none long before. */
static void perfect_layouts(void **state) {
    (void)state;
    for (int run = 0; run < 6; run++) {
        enum { POINTS = 10 };
        const kiln_type type = run % 2 ? KILN_F64 : KILN_F32;
        kiln_matrix *X = matrix(type, POINTS, P, NULL), *Y = matrix(type, POINTS, P, NULL);
        assert_int_equal(kiln_fill_random(X, KILN_NORMAL, 3 + (uint64_t)run, 0), KILN_OK);
        kiln_report report = {0};
        const kiln_mds_options options = {
            .metric = KILN_MDS_ORDINAL, .init = KILN_MDS_RANDOM, .restarts = 5, .seed = 1};
        assert_int_equal(kiln_mds(Y, X, &options, &report), KILN_OK);
        assert_true(report.converged);
        kiln_report_free(&report);
        kiln_matrix_free(X);
        kiln_matrix_free(Y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(recovers_points),
                                       cmocka_unit_test(never_rises),
                                       cmocka_unit_test(perfect_layouts),
                                       cmocka_unit_test(ordinal_finds_order),
                                       cmocka_unit_test(missing_pairs),
                                       cmocka_unit_test(one_place),
                                       cmocka_unit_test(points_that_meet_part),
                                       cmocka_unit_test(any_size),
                                       cmocka_unit_test(far_columns),
                                       cmocka_unit_test(any_diagonal),
                                       cmocka_unit_test(one_point),
                                       cmocka_unit_test(ordinal_sees_small_distances),
                                       cmocka_unit_test(ordinal_ties_stay),
                                       cmocka_unit_test(verification_knows_rounding),
                                       cmocka_unit_test(a_line_ends_no_run),
                                       cmocka_unit_test(lines_begin_at_pairs_that_count),
                                       cmocka_unit_test(dissimilarities_in_their_file),
                                       cmocka_unit_test(points_in_their_file),
                                       cmocka_unit_test(places_new_points),
                                       cmocka_unit_test(cancels),
                                       cmocka_unit_test(refuses),
                                       cmocka_unit_test(verification_refuses)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
