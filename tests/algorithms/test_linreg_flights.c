/* kiln_linreg on the shipped flights, read and encoded as any user would: 65,470 rows, text columns one-hot
 * with all their levels. The reference solves the centred normal equations by Cholesky, all in long double.
 */
#include "algorithms/least_squares.h"

struct table {
    int64_t m, *start;
    int n;
    int32_t *col;
    double *value, *y, *weights;
};

static kiln_device *cpu;
static kiln_data *data;

static struct table fetch(bool weighted) {
    const kiln_matrix *X = kiln_data_X(data);
    struct table t = {.m = kiln_matrix_rows(X), .n = (int)kiln_matrix_cols(X)};
    assert_int_equal(kiln_matrix_format(X), KILN_CSR);
    t.start = calloc((size_t)t.m + 1, sizeof *t.start);
    t.col = calloc((size_t)kiln_matrix_nnz(X), sizeof *t.col);
    t.value = new_doubles(kiln_matrix_nnz(X));
    t.y = values_of(kiln_data_y(data));
    t.weights = new_doubles(t.m);
    assert_true(t.start && t.col);
    assert_ok(kiln_matrix_get_csr(t.start, t.col, t.value, X));
    for (int64_t i = 0; i < t.m; i++) t.weights[i] = weighted ? 0.5 + (double)(i * 37 % 101) / 50 : 1;
    return t;
}

static void table_free(struct table *t) {
    free(t->start);
    free(t->col);
    free(t->value);
    free(t->y);
    free(t->weights);
}

/* H = X^T S X - S mu mu^T + l2 D and g = X^T S y - S mu ybar; H's upper triangle only. */
static void normal_equations(long double *H, long double *g, long double *mean, long double *y_mean,
                             const struct table *t, const kiln_linreg_options *o) {
    const int n = t->n;
    long double total = 0;
    for (int64_t i = 0; i < t->m; i++) {
        const long double s = t->weights[i];
        total += s;
        *y_mean += s * t->y[i];
        for (int64_t e = t->start[i]; e < t->start[i + 1]; e++) {
            mean[t->col[e]] += s * t->value[e];
            g[t->col[e]] += s * t->value[e] * t->y[i];
            for (int64_t f = t->start[i]; f < t->start[i + 1]; f++)
                H[t->col[e] * n + t->col[f]] += s * t->value[e] * t->value[f];
        }
    }
    const long double centre = o->no_intercept ? 0 : 1;
    *y_mean /= total;
    for (int j = 0; j < n; j++) mean[j] /= total;
    for (int j = 0; j < n; j++) {
        const long double variance = H[j * n + j] / total - mean[j] * mean[j];
        g[j] -= centre * total * mean[j] * *y_mean;
        for (int l = 0; l < n; l++) H[j * n + l] -= centre * total * mean[j] * mean[l];
        H[j * n + j] += o->l2 * (o->standardize ? variance : 1);
    }
}

/* g := H^-1 g, H positive definite. */
static void cholesky(long double *H, long double *g, int n) {
    for (int j = 0; j < n; j++) {
        for (int l = 0; l < j; l++) {
            for (int i = j; i < n; i++) H[i * n + j] -= H[i * n + l] * H[j * n + l];
        }
        assert_true(H[j * n + j] > 0);
        const long double root = sqrtl(H[j * n + j]);
        for (int i = j; i < n; i++) H[i * n + j] /= root;
    }
    for (int j = 0; j < n; j++) {
        for (int l = 0; l < j; l++) g[j] -= H[j * n + l] * g[l];
        g[j] /= H[j * n + j];
    }
    for (int j = n; j-- > 0;) {
        for (int l = j + 1; l < n; l++) g[j] -= H[l * n + j] * g[l];
        g[j] /= H[j * n + j];
    }
}

static struct solution reference_flights(const struct table *t, const kiln_linreg_options *o) {
    const int n = t->n;
    long double *H = calloc((size_t)n * (size_t)n, sizeof *H), *g = calloc((size_t)n, sizeof *g), y_mean = 0;
    long double *mean = calloc((size_t)n, sizeof *mean);
    assert_true(H && g && mean);
    normal_equations(H, g, mean, &y_mean, t, o);
    cholesky(H, g, n);
    struct solution s = {n, 1, new_doubles(n), o->no_intercept ? NULL : new_doubles(1)};
    for (int j = 0; j < n; j++) {
        s.W[j] = (double)g[j];
        y_mean -= mean[j] * g[j];
    }
    if (s.b) s.b[0] = (double)y_mean;
    free(H);
    free(g);
    free(mean);
    return s;
}

/* With the default tolerance, as the tool would: within 1e-8. */
static void agrees_on_flights(void **state) {
    (void)state;
    static const struct {
        bool weighted;
        kiln_linreg_options options;
    } cases[] = {
        {false, {.l2 = 1}},
        {true, {.l2 = 1}},
        {false, {.l2 = 100, .no_intercept = 1}},
        {true, {.l2 = 10, .standardize = 1}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct table t = fetch(cases[c].weighted);
        kiln_linreg_options o = cases[c].options;
        const double none[1] = {0};
        double *zeros = new_doubles(t.n);
        kiln_matrix *W = dense(cpu, KILN_F64, t.n, 1, zeros), *b = dense(cpu, KILN_F64, 1, 1, none);
        kiln_matrix *weights = dense(cpu, KILN_F64, t.m, 1, t.weights);
        if (cases[c].weighted) o.weights = weights;
        kiln_report report = {0};
        assert_ok(kiln_linreg(W, b, kiln_data_X(data), kiln_data_y(data), &o, &report));
        struct solution got = {t.n, 1, values_of(W), values_of(b)}, want = reference_flights(&t, &o);
        const double off = difference(&got, &want);
        if (!report.converged || !(off <= 1e-8))
            fail_msg("case %zu: off by %g (%s, %lld iterations)", c, off, kiln_stop_name(report.stopped_by),
                     (long long)report.iterations);
        assert_true(kiln_report_figure(&report, "r2") > 0.83 && kiln_report_figure(&report, "r2") < 0.85);
        kiln_report_free(&report);
        solution_free(&got);
        solution_free(&want);
        kiln_matrix_free(W);
        kiln_matrix_free(b);
        kiln_matrix_free(weights);
        free(zeros);
        table_free(&t);
    }
}

static int read_flights(void **state) {
    (void)state;
    const kiln_read_options options = {.target = "arr_delay"};
    if (kiln_device_open(&cpu, "cpu", NULL) == KILN_OK &&
        kiln_data_read(&data, cpu, KILN_SHIPPED_DATA "/flights.csv.gz", &options) == KILN_OK)
        return 0;
    print_error("%s\n", kiln_last_error()->message);
    return 1;
}

static int close_flights(void **state) {
    (void)state;
    kiln_data_free(data);
    kiln_device_close(cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_on_flights)};
    return cmocka_run_group_tests(tests, read_flights, close_flights);
}
