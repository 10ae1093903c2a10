/* Singular triples of matrices whose spectra are known, as X = P diag(s) Q^T with reflections P and Q:
 * values, residuals and orthogonality by plain loops in long double. Principal components of columns far from
 * zero. What is refused, what a model is used for, and that verification sees what is wrong. */
#include <float.h>
#include <stdio.h>

#include "algorithms/on_cpu.h"

enum { MOST = 130, VALUES = 130 * 130 };

struct found {
    double U[VALUES], s[MOST], V[VALUES], mean[MOST], deviation[MOST], variance[MOST];
    kiln_report report;
    int64_t m, n, k;
};

static double epsilon_of(kiln_type type) {
    return type == KILN_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* Sums of up to MOST products of rounded numbers may be off by this, in parts of the largest value. */
static double rounding_of(kiln_type type) {
    return 4 * MOST * epsilon_of(type);
}

static void values_of(double *values, kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
    kiln_matrix_free(A);
}

static kiln_matrix *room(kiln_type type, int64_t rows, int64_t cols) {
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, type, rows, cols, NULL), KILN_OK);
    return A;
}

/* All entries that are not 0 of a dense x. */
static kiln_matrix *sparse_of(kiln_type type, int64_t m, int64_t n, const double *x) {
    static int64_t start[MOST + 1];
    static int32_t col[VALUES];
    static double values[VALUES];
    kiln_matrix *wide = NULL, *A = NULL;
    int64_t nnz = 0;
    for (int64_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++)
            if (x[i * n + j] != 0) col[nnz] = j, values[nnz++] = x[i * n + j];
        start[i + 1] = nnz;
    }
    assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, m, n, start, col, values), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    return A;
}

static void solve(struct found *f, kiln_matrix *X, int64_t k, kiln_svd_options options) {
    const kiln_type type = kiln_matrix_type(X);
    f->m = kiln_matrix_rows(X), f->n = kiln_matrix_cols(X), f->k = k;
    kiln_matrix *U = room(type, f->m, k), *s = room(type, k, 1), *V = room(type, f->n, k);
    options.size = sizeof options;
    options.mean = room(type, f->n, 1);
    options.deviation = room(type, f->n, 1);
    options.variance = room(type, k, 1);
    f->report = (kiln_report){.size = sizeof f->report};
    if ((options.graph ? kiln_spectral : kiln_svd)(U, s, V, X, &options, &f->report) != KILN_OK)
        fail_msg("%s", kiln_last_error()->message);
    values_of(f->U, U), values_of(f->s, s), values_of(f->V, V);
    values_of(f->mean, options.mean), values_of(f->deviation, options.deviation);
    values_of(f->variance, options.variance);
}

/* The largest |Y^T Y - 1|. */
static double skewness(const double *Y, int64_t rows, int64_t k) {
    long double worst = 0;
    for (int64_t a = 0; a < k; a++)
        for (int64_t b = a; b < k; b++) {
            long double sum = a == b ? -1 : 0;
            for (int64_t i = 0; i < rows; i++) sum += (long double)Y[i * k + a] * Y[i * k + b];
            worst = fmaxl(worst, fabsl(sum));
        }
    return (double)worst;
}

/* The largest of || A v - s u || and || A^T u - s v ||, over s_1; A m x n. */
static double residual_of(const struct found *f, const long double *A) {
    long double worst = 0;
    for (int64_t c = 0; c < f->k; c++) {
        long double forth = 0, back = 0;
        const long double s = f->s[c], first = f->s[0];
        for (int64_t i = 0; i < f->m; i++) {
            long double sum = -s / first * f->U[i * f->k + c];
            for (int64_t j = 0; j < f->n; j++) sum += A[i * f->n + j] / first * f->V[j * f->k + c];
            forth += sum * sum;
        }
        for (int64_t j = 0; j < f->n; j++) {
            long double sum = -s / first * f->V[j * f->k + c];
            for (int64_t i = 0; i < f->m; i++) sum += A[i * f->n + j] / first * f->U[i * f->k + c];
            back += sum * sum;
        }
        worst = fmaxl(worst, sqrtl(fmaxl(forth, back)));
    }
    return (double)worst;
}

static void check_signs(const struct found *f) {
    for (int64_t c = 0; c < f->k; c++) {
        double most = 0, value = 0;
        for (int64_t j = 0; j < f->n; j++)
            if (fabs(f->V[j * f->k + c]) > most) value = f->V[j * f->k + c], most = fabs(value);
        assert_true(value > 0);
    }
}

/* A result is what it claims to be, on A. */
static void check(const char *name, struct found *f, const long double *A, kiln_type type) {
    const double rounding = rounding_of(type), tolerance = type == KILN_F32 ? 1e-5 : 1e-8;
    if (!f->report.converged)
        fail_msg("%s: %s, residual %g", name, kiln_stop_name(f->report.stopped_by), f->report.residual);
    if (!(skewness(f->U, f->m, f->k) <= rounding) || !(skewness(f->V, f->n, f->k) <= rounding))
        fail_msg("%s: U and V are off by %g and %g", name, skewness(f->U, f->m, f->k),
                 skewness(f->V, f->n, f->k));
    for (int64_t c = 1; c < f->k; c++) assert_true(f->s[c] <= f->s[c - 1] && f->s[c] >= 0);
    check_signs(f);
    if (f->s[0] > 0 && !(residual_of(f, A) <= tolerance + rounding))
        fail_msg("%s: residual %g, said %g", name, residual_of(f, A), f->report.residual);
    assert_true(f->report.residual <= tolerance);
    assert_true(kiln_report_figure(&f->report, "orthogonality") <= rounding);
}

/* P = 1 - 2 u u^T with u from a seed: entry i, c. */
static void reflection(double *u, int64_t size, uint64_t seed) {
    double square = 0;
    for (int64_t i = 0; i < size; i++) u[i] = uniform(&seed) - 0.3, square += u[i] * u[i];
    for (int64_t i = 0; i < size; i++) u[i] /= sqrt(square);
}

/* x = unit P diag(s) Q^T, with `rank` values. */
static void make(double *x, int64_t m, int64_t n, const double *s, int64_t rank, double unit) {
    double p[MOST], q[MOST];
    reflection(p, m, 3);
    reflection(q, n, 8);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0;
            for (int64_t c = 0; c < rank; c++)
                sum += ((i == c) - 2 * (long double)p[i] * p[c]) * s[c] *
                       ((j == c) - 2 * (long double)q[j] * q[c]);
            x[i * n + j] = (double)(sum * unit);
        }
}

static const struct spectrum {
    const char *name;
    int64_t rank, k;
    double first, factor,
        step; /* s_c = first factor^c - step c, but for the first `equal`, which are alike */
    int64_t equal;
} spectra[] = {{"slow", 40, 7, 1, 1, 0.01, 0},
               {"all of them", 40, 40, 1, 1, 0.02, 0},
               {"graded", 40, 12, 1, 0.1, 0, 0},
               {"beyond the root of epsilon", 40, 14, 1, 0.25, 0, 0},
               {"rank 3", 3, 10, 5, 0.5, 0, 0},
               {"rank 1", 1, 2, 5, 1, 0, 0},
               {"rank 0", 0, 2, 5, 1, 0, 0},
               {"five alike", 40, 8, 2, 0.9, 0, 5},
               {"twenty alike", 40, 25, 2, 0.9, 0, 20},
               {"all alike", 40, 11, 2, 1, 0, 40},
               {"close", 40, 5, 1, 0.999999, 0, 0},
               {"one", 40, 1, 1, 0.7, 0, 0}};

static void spectrum_is_found(const struct spectrum *of, int64_t m, int64_t n, kiln_type type, double unit,
                              bool sparse) {
    static struct found f;
    static double x[VALUES];
    static long double A[VALUES];
    double s[MOST];
    char name[160];
    snprintf(name, sizeof name, "%s, %d x %d, %s%s, times %g", of->name, (int)m, (int)n,
             type == KILN_F32 ? "f32" : "f64", sparse ? ", sparse" : "", unit);
    for (int64_t c = 0; c < of->rank; c++)
        s[c] = c < of->equal ? of->first
                             : of->first * pow(of->factor, (double)(c - of->equal)) - of->step * (double)c;
    make(x, m, n, s, of->rank, unit);
    kiln_matrix *X = sparse ? sparse_of(type, m, n, x) : dense_matrix(type, m, n, x);
    solve(&f, X, of->k, (kiln_svd_options){.seed = 5});
    for (int64_t e = 0; e < m * n; e++) A[e] = type == KILN_F32 ? (double)(float)x[e] : x[e];
    check(name, &f, A, type);
    for (int64_t c = 0; c < of->k; c++) {
        const double wanted = c < of->rank ? s[c] * unit : 0, most = of->rank ? s[0] * unit : 0;
        const double bound = (rounding_of(type) + f.report.residual) * most;
        if (!(fabs(f.s[c] - wanted) <= bound))
            fail_msg("%s: value %d is %g, not %g", name, (int)c, f.s[c], wanted);
    }
    kiln_report_free(&f.report);
    kiln_matrix_free(X);
}

static void spectra_are_found(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{120, 40}, {40, 120}, {41, 40}};
    for (size_t i = 0; i < sizeof spectra / sizeof *spectra; i++)
        for (int shape = 0; shape < 3; shape++)
            for (int type = KILN_F32; type <= KILN_F64; type++)
                for (int sparse = 0; sparse < 2; sparse++)
                    spectrum_is_found(&spectra[i], shapes[shape][0], shapes[shape][1], (kiln_type)type, 1,
                                      sparse);
}

/* More equal values than a block has vectors, before others that are wanted, too. */
static void no_equal_value_is_missed(void **state) {
    (void)state;
    const struct spectrum of[] = {{"thirty alike", 100, 36, 2, 0.9, 0, 30},
                                  {"thirty-three alike", 100, 40, 3, 0.7, 0, 33},
                                  {"all but two alike", 100, 100, 2, 0.9, 0, 98}};
    for (int i = 0; i < 3; i++)
        for (int type = KILN_F32; type <= KILN_F64; type++)
            for (int sparse = 0; sparse < 2; sparse++)
                spectrum_is_found(&of[i], 120, 100, (kiln_type)type, 1, sparse);
}

static void any_scale_will_do(void **state) {
    (void)state;
    static const double units[] = {1e20, 1e-155, 1e200, 1e-30};
    for (int i = 0; i < 4; i++)
        for (int sparse = 0; sparse < 2; sparse++) {
            spectrum_is_found(&spectra[0], 120, 40, KILN_F64, units[i], sparse);
            if (i == 0 || i == 3) spectrum_is_found(&spectra[0], 120, 40, KILN_F32, units[i], sparse);
        }
}

/* Variances scale with the square of X's unit, and where this leaves the range they are not known: 0 or
 * infinity would be wrong. The rank has no unit. */
static void variances_have_a_range(void **state) {
    (void)state;
    enum { M = 30, N = 4, K = 2 };
    static const double units[] = {1, 1e150, 1e-140, 1e160, 1e-160, 1e200, 1e-200};
    double x[M * N], variance[K], first[K];
    for (int i = 0; i < 7; i++) {
        uint64_t seed = 5;
        kiln_matrix *made[4] = {NULL};
        static const int64_t shapes[4][2] = {{K, 1}, {N, K}, {K, 1}, {M, N}}; /* s, V, variance, X */
        kiln_report report = {0};
        for (int e = 0; e < M * N; e++) x[e] = units[i] * (uniform(&seed) + 0.5);
        for (int c = 0; c < 4; c++)
            assert_int_equal(
                kiln_matrix_dense(&made[c], device, KILN_F64, shapes[c][0], shapes[c][1], c == 3 ? x : NULL),
                KILN_OK);
        const kiln_svd_options options = {.variance = made[2]};
        assert_int_equal(kiln_svd(NULL, made[0], made[1], made[3], &options, &report), KILN_OK);
        assert_int_equal(kiln_matrix_get(variance, made[2]), KILN_OK);
        if (i == 0) memcpy(first, variance, sizeof first);
        for (int c = 0; c < K; c++)
            if (i < 3)
                assert_true(fabs(variance[c] / units[i] / units[i] - first[c]) <= 1e-7 * first[c]);
            else
                assert_true(isnan(variance[c]));
        assert_int_equal(kiln_report_warning(&report, 0, NULL, NULL) != NULL, i >= 3);
        assert_true(kiln_report_figure(&report, "rank") == K);
        for (int c = 0; c < 4; c++) kiln_matrix_free(made[c]);
        kiln_report_free(&report);
    }
}

/* A size of 8 columns and blocks of 8 or 16 that do not divide what there is. */
static void small_ones_are_whole(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 7, 1},   {7, 1, 1},  {2, 2, 2},
                                        {17, 17, 17}, {9, 130, 9}, {130, 9, 8}};
    static struct found f;
    static double x[VALUES];
    static long double A[VALUES];
    uint64_t seed = 4;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t m = shapes[i][0], n = shapes[i][1];
        for (int64_t e = 0; e < m * n; e++) A[e] = x[e] = uniform(&seed) - 0.5;
        kiln_matrix *X = dense_matrix(KILN_F64, m, n, x);
        solve(&f, X, shapes[i][2], (kiln_svd_options){0});
        check("a small one", &f, A, KILN_F64);
        kiln_report_free(&f.report);
        kiln_matrix_free(X);
    }
}

/* A second value whose square no number holds: vectors of it are of length 1 all the same. */
static void values_may_be_150_orders_apart(void **state) {
    (void)state;
    enum { M = 3, N = 4 };
    static const double x[M * N] = {0, 0, -1, 8.35e-156, 0, 0, -1, -6.63e-156, 0, 0, -1, -2.13e-156};
    static struct found f;
    long double A[M * N];
    for (int e = 0; e < M * N; e++) A[e] = x[e];
    for (uint64_t seed = 0; seed < 6; seed++) {
        kiln_matrix *X = sparse_of(KILN_F64, M, N, x);
        solve(&f, X, 2, (kiln_svd_options){.seed = seed});
        check("150 orders", &f, A, KILN_F64);
        kiln_report_free(&f.report);
        kiln_matrix_free(X);
    }
}

/* Rows and columns that depend on others, of which rounding leaves any power of it. */
static void zeros_and_ones(void **state) {
    (void)state;
    static struct found f;
    static double x[VALUES];
    static long double A[VALUES];
    uint64_t seed = 9;
    for (int draw = 0; draw < 600; draw++) {
        const int64_t m = 1 + (int64_t)(12 * uniform(&seed)), n = 1 + (int64_t)(8 * uniform(&seed));
        for (int64_t e = 0; e < m * n; e++) A[e] = x[e] = uniform(&seed) < 0.3;
        kiln_matrix *X = draw % 2 ? sparse_of(KILN_F64, m, n, x) : dense_matrix(KILN_F64, m, n, x);
        solve(&f, X, m < n ? m : n, (kiln_svd_options){.seed = (uint64_t)draw});
        check("zeros and ones", &f, A, KILN_F64);
        kiln_report_free(&f.report);
        kiln_matrix_free(X);
    }
}

enum { ROWS = 100, COLS = 12 };

/* Columns about `at` with spreads from 1 on; column 3 is constant. */
static void make_columns(double *x, double at) {
    uint64_t seed = 77;
    for (int i = 0; i < ROWS; i++) {
        const double common = uniform(&seed);
        for (int j = 0; j < COLS; j++)
            x[i * COLS + j] =
                at + (j == 3 ? 0 : (double)(float)((1 + j) * (uniform(&seed) + (j % 3 ? common : 0))));
    }
}

/* A = (x - 1 mean^T) D^-1 in long double; *total: the sum of its columns' variances. */
static void prepare(long double *A, const double *x, bool center, bool scale, double *total) {
    long double all = 0;
    for (int j = 0; j < COLS; j++) {
        long double mean = 0, square = 0;
        for (int i = 0; i < ROWS; i++) mean += (long double)x[i * COLS + j] / ROWS;
        for (int i = 0; i < ROWS; i++) square += (x[i * COLS + j] - mean) * (x[i * COLS + j] - mean);
        const long double deviation = scale && square > 1e-20L * mean * mean ? sqrtl(square / ROWS) : 1;
        for (int i = 0; i < ROWS; i++) A[i * COLS + j] = (x[i * COLS + j] - (center ? mean : 0)) / deviation;
        all += square / (deviation * deviation) / (ROWS - 1);
    }
    *total = (double)all;
}

static void columns_are_prepared(const double *x, bool center, bool scale, bool sparse) {
    static struct found f;
    static long double A[ROWS * COLS];
    double total, explained = 0;
    prepare(A, x, center, scale, &total);
    kiln_matrix *X = sparse ? sparse_of(KILN_F64, ROWS, COLS, x) : dense_matrix(KILN_F64, ROWS, COLS, x);
    solve(&f, X, COLS, (kiln_svd_options){.center = center, .scale = scale});
    check("prepared columns", &f, A, KILN_F64);
    for (int c = 0; c < COLS; c++) {
        explained += f.variance[c];
        if (center) assert_true(fabs(f.variance[c] - f.s[c] * f.s[c] / (ROWS - 1)) <= 1e-12 * total);
    }
    assert_true(fabs(kiln_report_figure(&f.report, "variance") - total) <= 1e-10 * total);
    assert_true(fabs(explained - total) <= 1e-8 * total);
    kiln_report_free(&f.report);
    kiln_matrix_free(X);
}

static void components_of_columns_far_away(void **state) {
    (void)state;
    static const double places[] = {0, 3, 1e6, 1e9};
    double x[ROWS * COLS];
    for (int i = 0; i < 4; i++)
        for (int scale = 0; scale < 2; scale++) {
            make_columns(x, places[i]);
            columns_are_prepared(x, true, scale, false);
            if (i < 2) columns_are_prepared(x, true, scale, true);
            if (i < 2) columns_are_prepared(x, false, scale, false);
        }
}

static void equal_columns_vanish(void **state) {
    (void)state;
    static struct found f;
    double x[ROWS * COLS];
    for (int e = 0; e < ROWS * COLS; e++) x[e] = 3.3;
    kiln_matrix *X = dense_matrix(KILN_F64, ROWS, COLS, x);
    solve(&f, X, 2, (kiln_svd_options){.center = 1, .scale = 1});
    assert_true(f.report.converged && f.s[0] <= 1e-12 && f.deviation[0] == 1);
    assert_true(skewness(f.V, COLS, 2) <= 1e-13 && skewness(f.U, ROWS, 2) <= 1e-13);
    kiln_report_free(&f.report);
    kiln_matrix_free(X);
}

/* One entry of 1e12 among others of about 1: the second value is 1e-12 of the first, and within the
 * tolerance. */
static void one_huge_entry(void **state) {
    (void)state;
    static struct found f;
    static long double A[ROWS * COLS];
    double x[ROWS * COLS], total;
    make_columns(x, 0);
    x[5 * COLS + 4] = 1e12;
    prepare(A, x, false, false, &total);
    kiln_matrix *X = dense_matrix(KILN_F64, ROWS, COLS, x);
    solve(&f, X, 4, (kiln_svd_options){0});
    check("a huge entry", &f, A, KILN_F64);
    kiln_report_free(&f.report);
    kiln_matrix_free(X);
}

/* A cycle, whose links lead both ways or one way, has the eigenvalues (1 + cos(2 pi j / n)) / 2, each but the
 * first and the last twice; the degrees are 2 in the one case and 1 in the other, with weights of 3 three
 * times that. */
static void a_cycle_is_laid_out(kiln_type type, bool both, bool sparse) {
    enum { N = 60, K = 6 };
    static struct found f;
    static double x[N * N];
    static long double A[N * N];
    const double rounding = rounding_of(type), turn = 2 * acos(-1.0) / N;
    memset(x, 0, sizeof x);
    memset(A, 0, sizeof A);
    for (int i = 0; i < N; i++) {
        const int next = (i + 1) % N;
        x[i * N + next] = 3;
        if (both) x[next * N + i] = 3;
        A[i * N + next] = A[next * N + i] = 0.25L;
        A[i * N + i] = 0.5L;
    }
    kiln_matrix *X = sparse ? sparse_of(type, N, N, x) : dense_matrix(type, N, N, x);
    solve(&f, X, K, (kiln_svd_options){.graph = 1});
    check("a cycle", &f, A, type);
    for (int c = 0; c < K; c++)
        assert_true(fabs(f.s[c] - (1 + cos(turn * ((c + 1) / 2))) / 2) <= 2 * rounding);
    for (int i = 0; i < N; i++) assert_true(fabs(f.deviation[i] - sqrt(both ? 6 : 3)) <= rounding);
    assert_true(kiln_report_figure(&f.report, "connected_components") == 1);
    assert_true(kiln_report_figure(&f.report, "isolated") == 0);
    kiln_report_free(&f.report);
    kiln_matrix_free(X);
}

static void cycles_are_laid_out(void **state) {
    (void)state;
    for (int type = KILN_F32; type <= KILN_F64; type++)
        for (int both = 0; both < 2; both++)
            for (int sparse = 0; sparse < 2; sparse++) a_cycle_is_laid_out((kiln_type)type, both, sparse);
}

/* Chains of 1, 2, ... vertices, whose links lead one way and stand in any order, and a stored weight of 0
 * between two of them, which is no link: however few eigenvalues are wanted, all parts are counted. */
static void parts_are_counted_exactly(void **state) {
    (void)state;
    enum { CHAINS = 9, N = CHAINS * (CHAINS + 1) / 2 };
    static struct found f;
    static double x[N * N];
    int64_t start[N + 1] = {0};
    int32_t col[N];
    double weight[N];
    int64_t links = 0;
    for (int chain = 1, first = 0; chain <= CHAINS; first += chain++)
        for (int i = 0; i < chain; i++) { /* vertex 7 v mod N is the v-th one */
            const int next = 7 * (first + (i + 1) % chain) % N;
            if (i + 1 < chain) x[7 * (first + i) % N * N + next] = 1 + i;
        }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            if (x[i * N + j] > 0) col[links] = j, weight[links++] = x[i * N + j];
        if (i == 0) col[links] = 7, weight[links++] = 0; /* the chain of 1 and the one of 2 */
        start[i + 1] = links;
    }
    kiln_matrix *X = NULL;
    assert_int_equal(kiln_matrix_csr(&X, device, KILN_F64, N, N, start, col, weight), KILN_OK);
    kiln_matrix *const forms[] = {X, dense_matrix(KILN_F64, N, N, x)};
    for (int form = 0; form < 2; form++) {
        solve(&f, forms[form], 1, (kiln_svd_options){.graph = 1});
        assert_true(kiln_report_figure(&f.report, "connected_components") == CHAINS);
        assert_true(kiln_report_figure(&f.report, "isolated") == 1);
        assert_non_null(strstr(kiln_report_warning(&f.report, 0, NULL, NULL), "into 8 parts"));
        kiln_report_free(&f.report);
        kiln_matrix_free(forms[form]);
    }
}

/* Two triangles, and two vertices without links, the first and the last: two eigenvalues of 1. */
static void parts_are_counted(void **state) {
    (void)state;
    enum { N = 8, K = 8 };
    static struct found f;
    static const double wanted[K] = {1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25};
    double x[N * N] = {0};
    const char *name = NULL;
    for (int a = 1; a < 7; a++)
        for (int b = 1; b < 7; b++) x[a * N + b] = a != b && (a < 4) == (b < 4);
    kiln_matrix *X = sparse_of(KILN_F64, N, N, x);
    solve(&f, X, K, (kiln_svd_options){.graph = 1});
    for (int c = 0; c < K; c++) assert_true(fabs(f.s[c] - wanted[c]) <= 1e-14);
    assert_true(kiln_report_figure(&f.report, "connected_components") == 4);
    assert_true(kiln_report_figure(&f.report, "isolated") == 2);
    assert_true(f.deviation[0] == 1 && f.deviation[7] == 1);
    assert_non_null(kiln_report_warning(&f.report, 0, &name, NULL));
    assert_string_equal(name, "connected_components");
    assert_non_null(kiln_report_warning(&f.report, 1, &name, NULL));
    assert_string_equal(name, "isolated");
    kiln_report_free(&f.report);
    kiln_matrix_free(X);
}

/* ---- models ---- */

struct made {
    kiln_matrix *X, *U, *s, *V, *mean, *deviation;
    kiln_svd_options options;
    kiln_report report;
};

static void make_model(struct made *made, kiln_model **model) {
    double x[ROWS * COLS];
    make_columns(x, 3);
    *made = (struct made){.X = dense_matrix(KILN_F64, ROWS, COLS, x),
                          .U = room(KILN_F64, ROWS, 3),
                          .s = room(KILN_F64, 3, 1),
                          .V = room(KILN_F64, COLS, 3),
                          .mean = room(KILN_F64, COLS, 1),
                          .deviation = room(KILN_F64, COLS, 1),
                          .report = {.size = sizeof made->report}};
    made->options = (kiln_svd_options){.size = sizeof made->options,
                                       .center = 1,
                                       .scale = 1,
                                       .mean = made->mean,
                                       .deviation = made->deviation};
    assert_int_equal(kiln_pca(made->U, made->s, made->V, made->X, &made->options, &made->report), KILN_OK);
    assert_int_equal(kiln_svd_model(model, made->V, made->s, &made->options, &made->report), KILN_OK);
}

static void free_made(struct made *made) {
    kiln_matrix *const all[] = {made->X, made->U, made->s, made->V, made->mean, made->deviation};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_report_free(&made->report);
}

static void a_model_gives_coordinates(void **state) {
    (void)state;
    struct made made;
    kiln_model *model = NULL;
    kiln_matrix *P = NULL;
    double u[ROWS * 3], s[3], p[ROWS * 3];
    make_model(&made, &model);
    assert_string_equal(kiln_model_text(model, "algorithm"), "pca");
    assert_int_equal(kiln_predict(&P, model, made.X), KILN_OK);
    assert_int_equal(kiln_matrix_get(u, made.U), KILN_OK);
    assert_int_equal(kiln_matrix_get(s, made.s), KILN_OK);
    values_of(p, P);
    for (int e = 0; e < ROWS * 3; e++) assert_true(fabs(p[e] - u[e] * s[e % 3]) <= 1e-12 * s[0]);
    kiln_model_free(model);
    free_made(&made);
}

static void verification_sees_what_is_wrong(void **state) {
    (void)state;
    struct made made;
    kiln_model *model = NULL;
    kiln_svd_verification found = {.size = sizeof found};
    double s[3], v[COLS * 3];
    make_model(&made, &model);
    assert_int_equal(kiln_verify_svd(&found, made.V, made.s, made.X, &made.options), KILN_OK);
    assert_true(found.values <= 1e-8 + found.values_rounding);
    assert_true(found.residual <= 2e-8 + found.residual_rounding);
    assert_true(found.orthogonality <= found.orthogonality_rounding);
    assert_true(found.means <= 1e-14 && found.deviations <= 1e-12);
    assert_int_equal(kiln_matrix_get(s, made.s), KILN_OK);
    assert_true(found.beyond <= s[2] / s[0] * (1 + 1e-6));
    assert_true(fabs(found.variance - kiln_report_figure(&made.report, "variance")) <= 1e-10);
    /* a value that is off, vectors that are not orthogonal, and a triple that was passed over */
    const double kept = s[2];
    s[2] *= 1 + 1e-4;
    assert_int_equal(kiln_matrix_set(made.s, s), KILN_OK);
    assert_int_equal(kiln_verify_svd(&found, made.V, made.s, made.X, &made.options), KILN_OK);
    assert_true(found.values > 1e-6);
    s[2] = kept;
    assert_int_equal(kiln_matrix_set(made.s, s), KILN_OK);
    assert_int_equal(kiln_matrix_get(v, made.V), KILN_OK);
    for (int j = 0; j < COLS; j++) v[3 * j + 1] += 1e-3 * v[3 * j];
    assert_int_equal(kiln_matrix_set(made.V, v), KILN_OK);
    assert_int_equal(kiln_verify_svd(&found, made.V, made.s, made.X, &made.options), KILN_OK);
    assert_true(found.orthogonality > 1e-4 && found.residual > 1e-5);
    kiln_matrix *V = room(KILN_F64, COLS, 1), *one = room(KILN_F64, 1, 1);
    double w[COLS];
    for (int j = 0; j < COLS; j++) w[j] = v[3 * j + 2];
    assert_int_equal(kiln_matrix_set(V, w), KILN_OK);
    assert_int_equal(kiln_matrix_set(one, &s[2]), KILN_OK);
    assert_int_equal(kiln_verify_svd(&found, V, one, made.X, &made.options), KILN_OK);
    assert_true(found.beyond > 1.01);
    kiln_matrix_free(V);
    kiln_matrix_free(one);
    kiln_model_free(model);
    free_made(&made);
}

/* A model of a graph whose links lead one way. */
static void a_graph_is_verified(void **state) {
    (void)state;
    enum { N = 30, K = 3 };
    uint64_t seed = 6;
    double x[N * N], v[N * K];
    kiln_model *model = NULL;
    kiln_svd_verification found = {.size = sizeof found};
    for (int e = 0; e < N * N; e++) x[e] = uniform(&seed) < 0.2 ? uniform(&seed) : 0;
    kiln_matrix *X = sparse_of(KILN_F64, N, N, x), *V = room(KILN_F64, N, K), *s = room(KILN_F64, K, 1),
                *deviation = room(KILN_F64, N, 1), *P = NULL;
    const kiln_svd_options options = {.size = sizeof options, .graph = 1, .deviation = deviation};
    assert_int_equal(kiln_spectral(NULL, s, V, X, &options, NULL), KILN_OK);
    assert_int_equal(kiln_svd_model(&model, V, s, &options, NULL), KILN_OK);
    assert_string_equal(kiln_model_text(model, "algorithm"), "spectral");
    assert_int_equal(kiln_predict(&P, model, X), KILN_ERR_MODEL);
    assert_int_equal(kiln_verify_svd(&found, V, s, X, &options), KILN_OK);
    assert_true(found.values <= 1e-8 && found.residual <= 2e-8 && found.deviations <= 1e-14);
    assert_true(found.orthogonality <= found.orthogonality_rounding && isnan(found.variance));
    assert_int_equal(kiln_matrix_get(v, V), KILN_OK);
    for (int i = 0; i < N; i++) v[i * K] += 1e-3 * v[i * K + 1];
    assert_int_equal(kiln_matrix_set(V, v), KILN_OK);
    assert_int_equal(kiln_verify_svd(&found, V, s, X, &options), KILN_OK);
    assert_true(found.orthogonality > 1e-4 && found.residual > 1e-5);
    kiln_matrix *const all[] = {X, V, s, deviation};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    kiln_model_free(model);
}

/* ---- what is refused, and how runs end ---- */

static void what_is_refused_of_graphs(void **state) {
    (void)state;
    static const double weights[4][9] = {{0, 1, 0, 1, 0, -1, 0, 1, 0},
                                         {0, 1, 0, 1, 0, NAN, 0, 1, 0},
                                         {0, 1e308, 1e308, 1e308, 0, 1, 1e308, 1, 0},
                                         {0, 1, 0, 1, 0, 1, 0, 1, 0}};
    kiln_matrix *V = room(KILN_F64, 3, 1), *s = room(KILN_F64, 1, 1), *wide = room(KILN_F64, 2, 3);
    kiln_svd_options options = {.size = sizeof options};
    for (int i = 0; i < 4; i++)
        for (int sparse = 0; sparse < 2; sparse++) {
            kiln_matrix *X =
                sparse ? sparse_of(KILN_F64, 3, 3, weights[i]) : dense_matrix(KILN_F64, 3, 3, weights[i]);
            assert_int_equal(kiln_spectral(NULL, s, V, X, NULL, NULL), i < 3 ? KILN_ERR_DATA : KILN_OK);
            kiln_matrix_free(X);
        }
    assert_int_equal(kiln_spectral(NULL, s, V, wide, &options, NULL), KILN_ERR_DATA);
    kiln_matrix *X = dense_matrix(KILN_F64, 3, 3, weights[3]);
    static const kiln_svd_options not_of_graphs[] = {{.center = 1}, {.scale = 1}, {.solver = KILN_SVD_GRAM}};
    for (int i = 0; i < 3; i++) {
        options = not_of_graphs[i];
        options.size = sizeof options;
        assert_int_equal(kiln_spectral(NULL, s, V, X, &options, NULL), KILN_ERR_ARGUMENT);
    }
    options = (kiln_svd_options){.size = sizeof options, .graph = 1};
    assert_int_equal(kiln_svd(NULL, s, V, X, &options, NULL), KILN_ERR_ARGUMENT);
    kiln_matrix *const all[] = {V, s, wide, X};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

static void what_is_refused(void **state) {
    (void)state;
    double x[ROWS * COLS];
    make_columns(x, 3);
    kiln_matrix *X = dense_matrix(KILN_F64, ROWS, COLS, x), *empty = room(KILN_F64, 0, COLS);
    x[17] = NAN;
    kiln_matrix *bad = dense_matrix(KILN_F64, ROWS, COLS, x);
    kiln_matrix *V = room(KILN_F64, COLS, 2), *s = room(KILN_F64, 2, 1), *narrow = room(KILN_F32, 2, 1),
                *many = room(KILN_F64, COLS, COLS + 1);
    kiln_model *model = NULL;
    const struct {
        kiln_matrix *s, *V, *X;
        kiln_svd_options options;
        kiln_status status;
    } calls[] = {{s, NULL, X, {0}, KILN_ERR_ARGUMENT},      {NULL, V, X, {0}, KILN_ERR_ARGUMENT},
                 {s, V, NULL, {0}, KILN_ERR_ARGUMENT},      {narrow, V, X, {0}, KILN_ERR_ARGUMENT},
                 {s, many, X, {0}, KILN_ERR_ARGUMENT},      {s, s, X, {0}, KILN_ERR_ARGUMENT},
                 {s, V, empty, {0}, KILN_ERR_DATA},         {s, V, bad, {0}, KILN_ERR_DATA},
                 {s, V, bad, {.center = 1}, KILN_ERR_DATA}, {s, V, X, {.tolerance = -1}, KILN_ERR_ARGUMENT},
                 {s, V, X, {.mean = s}, KILN_ERR_ARGUMENT}, {s, V, X, {.solver = 3}, KILN_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        kiln_svd_options options = calls[i].options;
        options.size = sizeof options;
        if (kiln_svd(NULL, calls[i].s, calls[i].V, calls[i].X, &options, NULL) != calls[i].status)
            fail_msg("call %d", (int)i);
    }
    const kiln_svd_options centred = {.size = sizeof centred, .center = 1};
    assert_int_equal(kiln_svd_model(&model, V, s, &centred, NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_svd_model(&model, V, NULL, NULL, NULL), KILN_ERR_ARGUMENT);
    assert_null(model);
    kiln_matrix *const all[] = {X, empty, bad, V, s, narrow, many};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

static void a_limit_leaves_a_result(void **state) {
    (void)state;
    static struct found f;
    static double x[VALUES];
    static long double A[VALUES];
    double s[MOST];
    for (int c = 0; c < 100; c++) s[c] = 1 - 0.005 * c;
    make(x, 120, 100, s, 100, 1);
    for (int e = 0; e < 120 * 100; e++) A[e] = x[e];
    kiln_matrix *X = dense_matrix(KILN_F64, 120, 100, x);
    solve(&f, X, 20, (kiln_svd_options){.max_iterations = 1});
    assert_true(!f.report.converged && f.report.stopped_by == KILN_STOP_ITERATIONS &&
                f.report.iterations == 1);
    assert_true(skewness(f.U, f.m, f.k) <= 1e-12 && skewness(f.V, f.n, f.k) <= 1e-12);
    assert_true(fabs(residual_of(&f, A) - f.report.residual) <= 1e-10);
    kiln_report_free(&f.report);
    kiln_matrix_free(X);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(spectra_are_found),
                                       cmocka_unit_test(no_equal_value_is_missed),
                                       cmocka_unit_test(any_scale_will_do),
                                       cmocka_unit_test(variances_have_a_range),
                                       cmocka_unit_test(small_ones_are_whole),
                                       cmocka_unit_test(values_may_be_150_orders_apart),
                                       cmocka_unit_test(zeros_and_ones),
                                       cmocka_unit_test(components_of_columns_far_away),
                                       cmocka_unit_test(equal_columns_vanish),
                                       cmocka_unit_test(one_huge_entry),
                                       cmocka_unit_test(cycles_are_laid_out),
                                       cmocka_unit_test(parts_are_counted),
                                       cmocka_unit_test(parts_are_counted_exactly),
                                       cmocka_unit_test(a_graph_is_verified),
                                       cmocka_unit_test(what_is_refused_of_graphs),
                                       cmocka_unit_test(a_model_gives_coordinates),
                                       cmocka_unit_test(verification_sees_what_is_wrong),
                                       cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(a_limit_leaves_a_result)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
