/* kiln_linreg on problems that are known to be hard: certified NIST data, columns of wildly different scale,
 * means that dwarf their spread, constant and empty columns, collinear columns, constant targets; and what it
 * says when it cannot go on. */
#include "algorithms/least_squares.h"

static kiln_device *cpu;

static struct run on_cpu(kiln_type type, kiln_format format) {
    return (struct run){cpu, type, format, NULL};
}

/* ---- NIST Statistical Reference Datasets, linear regression (public domain); values certified to 15 digits
 * ---- */

static const double longley[16][7] =
    {/* y, then six regressors */
     {60323, 83.0, 234289, 2356, 1590, 107608, 1947},  {61122, 88.5, 259426, 2325, 1456, 108632, 1948},
     {60171, 88.2, 258054, 3682, 1616, 109773, 1949},  {61187, 89.5, 284599, 3351, 1650, 110929, 1950},
     {63221, 96.2, 328975, 2099, 3099, 112075, 1951},  {63639, 98.1, 346999, 1932, 3594, 113270, 1952},
     {64989, 99.0, 365385, 1870, 3547, 115094, 1953},  {63761, 100.0, 363112, 3578, 3350, 116219, 1954},
     {66019, 101.2, 397469, 2904, 3048, 117388, 1955}, {67857, 104.6, 419180, 2822, 2857, 118734, 1956},
     {68169, 108.4, 442769, 2936, 2798, 120445, 1957}, {66513, 110.8, 444546, 4681, 2637, 121950, 1958},
     {68655, 112.6, 482704, 3813, 2552, 123366, 1959}, {69564, 114.2, 502601, 3931, 2514, 125368, 1960},
     {69331, 115.7, 518173, 4806, 2572, 127852, 1961}, {70551, 116.9, 554894, 4007, 2827, 130081, 1962}};

static const double norris[36][2] = {
    {0.1, 0.2},     {338.8, 337.4}, {118.1, 118.2}, {888.0, 884.6}, {9.2, 10.1},    {228.1, 226.5},
    {668.5, 666.3}, {998.5, 996.3}, {449.1, 448.6}, {778.9, 777.0}, {559.2, 558.2}, {0.3, 0.4},
    {0.1, 0.6},     {778.1, 775.5}, {668.8, 666.9}, {339.3, 338.0}, {448.9, 447.5}, {10.8, 11.6},
    {557.7, 556.0}, {228.3, 228.1}, {998.0, 995.8}, {888.8, 887.6}, {119.6, 120.2}, {0.3, 0.3},
    {0.6, 0.3},     {557.6, 556.8}, {339.3, 339.1}, {888.0, 887.2}, {998.5, 999.0}, {778.9, 779.0},
    {10.2, 11.1},   {117.6, 118.3}, {228.9, 229.2}, {668.4, 669.1}, {449.2, 448.9}, {0.2, 0.5}};

/* Rows of y and X apart. */
static struct problem split(const double *table, int m, int n) {
    struct problem p = {.m = m, .n = n, .k = 1, .X = new_doubles((int64_t)m * n), .y = new_doubles(m)};
    for (int i = 0; i < m; i++) {
        p.y[i] = table[i * (n + 1)];
        memcpy(p.X + i * n, table + i * (n + 1) + 1, (size_t)n * sizeof *p.X);
    }
    return p;
}

/* At least `digits` significant digits in every coefficient, the intercept (certified[n], where fitted) and
 * rss. */
static void certify(struct problem p, const double *certified, double rss, double digits,
                    const kiln_linreg_options *options) {
    kiln_report report = {0};
    const struct run run = on_cpu(KILN_F64, KILN_DENSE);
    struct solution s = solve(&report, &run, &p, options);
    for (int j = 0; j < p.n + !options->no_intercept; j++) {
        const double got = j < p.n ? s.W[j] : s.b[0];
        if (!(fabs(got - certified[j]) <= pow(10, -digits) * fabs(certified[j])))
            fail_msg("coefficient %d is %.15g, certified %.15g (%s, residual %g)", j, got, certified[j],
                     kiln_stop_name(report.stopped_by), report.residual);
    }
    assert_true(fabs(kiln_report_figure(&report, "rss") - rss) <= 1e-9 * rss);
    assert_int_equal(report.converged, 1);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

static void nist_longley(void **state) {
    (void)state;
    static const double certified[] = {15.0618722713733,  -0.358191792925910e-01, -2.02022980381683,
                                       -1.03322686717359, -0.511041056535807e-01, 1829.15146461355,
                                       -3482258.63459582};
    certify(split(longley[0], 16, 6), certified, 836424.055505915, 7, &(kiln_linreg_options){.l2 = 0});
    certify(split(longley[0], 16, 6), certified, 836424.055505915, 10,
            &(kiln_linreg_options){.tolerance = 1e-12});
}

static void nist_norris(void **state) {
    (void)state;
    static const double certified[] = {1.00211681802045, -0.262323073774029};
    certify(split(norris[0], 36, 1), certified, 26.6173985294224, 11, &(kiln_linreg_options){.l2 = 0});
}

static void nist_noint1(void **state) {
    (void)state;
    static const double certified[] = {2.07438016528926};
    double table[11][2];
    for (int i = 0; i < 11; i++) table[i][0] = 130 + i, table[i][1] = 60 + i;
    certify(split(table[0], 11, 1), certified, 127.272727272727, 12,
            &(kiln_linreg_options){.no_intercept = 1});
}

/* ---- scales and means
 * -------------------------------------------------------------------------------------- */

/* Multiplying a column by a power of two divides its coefficient by it, and does not cost an iteration, up
 * to where the squares of X leave the range of the type. */
static void scales_do_not_matter(void **state) {
    (void)state;
    struct problem p = problem_new(150, 6, 1, 1, false, 21);
    kiln_report report = {0};
    for (int c = 0; c < 6; c++) {
        const kiln_type type = c < 3 ? KILN_F32 : KILN_F64;
        const int shift = (c % 3 - 1) * (type == KILN_F32 ? 42 : 490);
        const struct run run = on_cpu(type, KILN_DENSE);
        struct solution plain = solve(&report, &run, &p, &(kiln_linreg_options){.l2 = 0});
        const int64_t iterations = report.iterations;
        kiln_report_free(&report);
        struct problem q = problem_new(150, 6, 1, 1, false, 21);
        for (int i = 0; i < q.m; i++)
            for (int j = 0; j < q.n; j++)
                q.X[i * q.n + j] = ldexp(q.X[i * q.n + j], shift + 5 * j - 12); /* 2^25 apart */
        struct solution scaled = solve(&report, &run, &q, &(kiln_linreg_options){.l2 = 0});
        assert_true(report.converged && report.iterations == iterations);
        for (int j = 0; j < q.n; j++) scaled.W[j] = ldexp(scaled.W[j], shift + 5 * j - 12);
        assert_true(difference(&scaled, &plain) <= (type == KILN_F32 ? 1e-5 : 1e-12));
        kiln_report_free(&report);
        problem_free(&q);
        solution_free(&plain);
        solution_free(&scaled);
    }
    problem_free(&p);
}

/* A column like a time stamp. The centred one, made from it, has the coefficient that it must have; what
 * rounding of X itself leaves of that is the bound. */
static void means_may_dwarf_spreads(void **state) {
    (void)state;
    static const struct {
        kiln_type type;
        double mean, spread, bound;
    } columns[] = {
        {KILN_F64, 1e4, 1, 1e-8},   {KILN_F64, 1e6, 1, 1e-8},   {KILN_F64, 1.7e9, 100, 1e-7},
        {KILN_F64, 1.7e9, 1, 1e-6}, {KILN_F64, 1e12, 10, 1e-4}, {KILN_F32, 100, 1, 1e-3},
        {KILN_F32, 2000, 4, 1e-3},  {KILN_F32, 1e4, 4, 1e-3},   {KILN_F32, 1e5, 16, 1e-2},
    };
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        for (int options = 0; options < 4; options++) {
            struct problem p = problem_new(600, 2, 1, 1, options == 3, 31),
                           centred = problem_new(600, 2, 1, 1, options == 3, 31);
            for (int i = 0; i < p.m; i++) {
                double x = columns[c].mean + columns[c].spread * p.X[i * 2];
                if (columns[c].type == KILN_F32) x = (float)x;
                p.X[i * 2] = x;
                centred.X[i * 2] = (x - columns[c].mean) / columns[c].spread;
            }
            kiln_report report = {0};
            const struct run run = on_cpu(columns[c].type, KILN_DENSE);
            const kiln_linreg_options o = {.standardize = options == 1, .no_preconditioner = options == 2};
            struct solution got = solve(&report, &run, &p, &o), want = reference(&centred, &o);
            const double slope = got.W[0] * columns[c].spread;
            if (!(fabs(slope - want.W[0]) <= columns[c].bound &&
                  fabs(got.W[1] - want.W[1]) <= columns[c].bound))
                fail_msg(
                    "mean %g, spread %g, options %d: slopes %.10g %.10g, but %.10g %.10g expected (%s, %g)",
                    columns[c].mean, columns[c].spread, options, slope, got.W[1], want.W[0], want.W[1],
                    kiln_stop_name(report.stopped_by), report.residual);
            kiln_report_free(&report);
            solution_free(&got);
            solution_free(&want);
            problem_free(&p);
            problem_free(&centred);
        }
}

/* If rank-one centring has no correct digit, rows are centred from the start: a first cycle of nonsense
 * would use up all iterations. */
static void hopeless_means_are_centred_at_once(void **state) {
    (void)state;
    enum { N_COLUMNS = 40 };
    struct problem p = problem_new(3000, N_COLUMNS, 1, 1, false, 3);
    for (int i = 0; i < p.m; i++) {
        double *x = p.X + i * N_COLUMNS, sum = 0;
        for (int j = 1; j < N_COLUMNS; j++) sum += x[j];
        p.y[i] = 3 * x[0] + 2 * x[1] + sin(i);
        x[0] = 1e14 + 10 * x[0];
        for (int j = 1; j < N_COLUMNS; j++)
            x[j] += 0.3 * sum; /* correlated: CG needs more than a few steps */
    }
    kiln_report report = {0};
    const struct run run = on_cpu(KILN_F64, KILN_DENSE);
    struct solution s = solve(&report, &run, &p, &(kiln_linreg_options){.l2 = 0});
    if (!(fabs(10 * s.W[0] - 3) <= 0.05 && report.iterations < 200))
        fail_msg("slope %g instead of 0.3 after %d iterations", s.W[0], (int)report.iterations);
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

/* Constant columns under an intercept and columns of zeros get coefficient 0, also from a warm start, and
 * change nothing else. */
static void idle_columns_get_zero(void **state) {
    (void)state;
    struct problem p = problem_new(100, 7, 1, 1, true, 41), q = problem_new(100, 3, 1, 1, true, 41);
    for (int i = 0; i < p.m; i++) {
        p.X[i * 7 + 3] = 0;
        p.X[i * 7 + 4] = 0.1;
        p.X[i * 7 + 5] = -1e7;
        p.X[i * 7 + 6] = p.weights[i] == 0 ? 5 : 2; /* constant where it counts */
        memcpy(q.X + i * 3, p.X + i * 7, 3 * sizeof *q.X);
        q.y[i] = p.y[i];
        q.weights[i] = p.weights[i];
    }
    double start[7] = {1, 1, 1, 1, 1, 1, 1}, b = 0;
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (kiln_format format = KILN_DENSE; format <= KILN_CSR; format++)
            for (int options = 0; options < 4; options++) {
                const kiln_linreg_options o = {.l2 = options & 1 ? 0.5 : 0,
                                               .standardize = (options & 2) != 0};
                struct solution warm = {7, 1, start, &b}, want = reference(&q, &o);
                struct run run = on_cpu(type, format);
                if (options == 3) run.start = &warm;
                kiln_report report = {0};
                struct solution got = solve(&report, &run, &p, &o);
                assert_true(report.converged);
                for (int j = 3; j < 7; j++) assert_true(got.W[j] == 0);
                got.n = 3;
                assert_true(difference(&got, &want) <= (type == KILN_F32 ? 1e-4 : 1e-9));
                kiln_report_free(&report);
                solution_free(&got);
                solution_free(&want);
            }
    problem_free(&p);
    problem_free(&q);
}

/* However many rows, sums over a constant column round, and must not make it look as if it varied:
 * dividing by such a spread was the end of all digits. */
static void constant_columns_of_many_rows_get_zero(void **state) {
    (void)state;
    static const double constants[] = {1, 0.1, -1e9 / 3, 123456.7};
    enum { N = 6 };
    for (int m = 100; m <= 100000; m *= 10)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            struct problem p = problem_new(m, N, 1, 1, m == 1000, 61);
            for (int i = 0; i < m; i++)
                for (int j = 0; j < 4; j++)
                    p.X[i * N + j] = type == KILN_F32 ? (float)constants[j] : constants[j];
            kiln_report report = {0};
            const struct run run = on_cpu(type, m == 10000 ? KILN_CSR : KILN_DENSE);
            struct solution got = solve(&report, &run, &p, &(kiln_linreg_options){.l2 = 0});
            for (int j = 0; j < 4; j++)
                if (got.W[j] != 0)
                    fail_msg("%d rows of %g: coefficient %g, %s", m, constants[j], got.W[j],
                             kiln_stop_name(report.stopped_by));
            assert_true(report.converged && kiln_report_figure(&report, "r2") > 0 &&
                        kiln_report_figure(&report, "r2") <= 1);
            kiln_report_free(&report);
            solution_free(&got);
            problem_free(&p);
        }
}

/* Targets whose spread is 1e-11 of their mean: what is reported is the coefficients' own, wherever a run
 * stops. */
static void spreads_of_the_target_may_be_tiny(void **state) {
    (void)state;
    enum { M = 55, N = 3 };
    for (int most = 1; most < 16; most++)
        for (int weighted = 0; weighted < 2; weighted++) {
            struct problem p = problem_new(M, N, 1, 1, weighted, 83);
            for (int i = 0; i < M; i++) {
                p.y[i] = 1e5 + 1e-6 * p.y[i];
                p.X[i * N + 1] = i % 7 ? 0.1 : 0.1 + 1e-17; /* constant */
                p.X[i * N + 2] = i % 4;
            }
            kiln_report report = {0};
            const struct run run = on_cpu(KILN_F64, most % 3 ? KILN_DENSE : KILN_CSR);
            struct solution got = solve(&report, &run, &p, &(kiln_linreg_options){.max_iterations = most});
            long double own = 0;
            for (int i = 0; i < M; i++) {
                long double r = (long double)p.y[i] - got.b[0];
                for (int j = 0; j < N; j++) r -= (long double)got.W[j] * p.X[i * N + j];
                own += (p.weights ? p.weights[i] : 1) * r * r;
            }
            const double told = kiln_report_figure(&report, "rss");
            if (!(fabs(told - (double)own) <= 1e-3 * (double)own))
                fail_msg("%d iterations: a residual sum of %g, of %g", most, told, (double)own);
            kiln_report_free(&report);
            solution_free(&got);
            problem_free(&p);
        }
}

/* Two factors, one-hot with all their levels: coefficients are not unique, predictions are. */
static void collinear_columns_predict_as_well(void **state) {
    (void)state;
    enum { M = 300, A = 6, B = 4 };
    struct problem all = problem_new(M, A + B, 1, 1, false, 51),
                   some = problem_new(M, A + B - 2, 1, 1, false, 51);
    for (int i = 0; i < M; i++) {
        const int a = i % A, b = (i / A + i / 17) % B;
        memset(all.X + i * (A + B), 0, (A + B) * sizeof *all.X);
        memset(some.X + i * (A + B - 2), 0, (A + B - 2) * sizeof *some.X);
        all.X[i * (A + B) + a] = all.X[i * (A + B) + A + b] = 1;
        if (a > 0) some.X[i * (A + B - 2) + a - 1] = 1; /* the first levels dropped */
        if (b > 0) some.X[i * (A + B - 2) + A + b - 2] = 1;
        all.y[i] = some.y[i] = a * a - b + sin(i);
    }
    static const double tolerances[] = {0, 1e-13, 1e-18}; /* the last cannot be met and must do no harm */
    for (int t = 0; t < 3; t++) {
        const kiln_linreg_options options = {.tolerance = tolerances[t]};
        kiln_report report = {0};
        const struct run run = on_cpu(KILN_F64, KILN_CSR);
        struct solution got = solve(&report, &run, &all, &options), want = reference(&some, &options);
        for (int i = 0; i < M; i++) {
            double p = got.b[0], q = want.b[0];
            for (int j = 0; j < A + B; j++) p += all.X[i * (A + B) + j] * got.W[j];
            for (int j = 0; j < A + B - 2; j++) q += some.X[i * (A + B - 2) + j] * want.W[j];
            if (!(fabs(p - q) <= 1e-8))
                fail_msg("tolerance %g: row %d is %.12g, but must be %.12g; %s, %g, %d iterations",
                         options.tolerance, i, p, q, kiln_stop_name(report.stopped_by), report.residual,
                         (int)report.iterations);
        }
        assert_int_equal(report.converged, t < 2);
        /* A cycle goes on fitting noise for as long as luck has it. */
        if (t == 2)
            assert_true(report.stopped_by == KILN_STOP_STALLED || report.stopped_by == KILN_STOP_ITERATIONS);
        kiln_report_free(&report);
        solution_free(&got);
        solution_free(&want);
    }
    problem_free(&all);
    problem_free(&some);
}

/* Nothing to explain: coefficients 0, converged, r2 not a number. 0.1 is not a sum of powers of two. */
static void constant_targets(void **state) {
    (void)state;
    static const double values[] = {0, 0.1, -1e9 / 3};
    for (int v = 0; v < 3; v++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            struct problem p = problem_new(77, 3, 1, 1, true, 61);
            for (int i = 0; i < p.m; i++) p.y[i] = type == KILN_F32 ? (float)values[v] : values[v];
            kiln_report report = {0};
            const struct run run = on_cpu(type, KILN_DENSE);
            struct solution s = solve(&report, &run, &p, &(kiln_linreg_options){.l2 = 0});
            assert_true(report.converged && report.iterations == 0 && report.residual == 0 &&
                        isnan(kiln_report_figure(&report, "r2")));
            assert_true(s.W[0] == 0 && s.W[1] == 0 && s.W[2] == 0 &&
                        fabs(s.b[0] - p.y[0]) <= 1e-15 * fabs(p.y[0]));
            kiln_report_free(&report);
            solution_free(&s);
            problem_free(&p);
        }
}

/* A tolerance below what rounding allows is not met, not claimed to be met, and does not spoil the result. */
static void stalls_are_told(void **state) {
    (void)state;
    struct problem p = problem_new(200, 10, 1, 1, false, 71);
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        const kiln_linreg_options options = {.tolerance = type == KILN_F32 ? 1e-12 : 1e-20};
        kiln_report report = {0};
        const struct run run = on_cpu(type, KILN_DENSE);
        struct solution s = solve(&report, &run, &p, &options), want = reference(&p, &options);
        assert_int_equal(report.stopped_by, KILN_STOP_STALLED);
        assert_int_equal(report.converged, 0);
        assert_true(report.residual > options.tolerance && report.iterations < 200);
        assert_true(difference(&s, &want) <= (type == KILN_F32 ? 1e-5 : 1e-13));
        kiln_report_free(&report);
        solution_free(&s);
        solution_free(&want);
    }
    problem_free(&p);
}

/* Two sets of indicators under an intercept, each of which adds up to ones: a correction that follows the
 * rounding in the gradient finds no end along what they have in common. */
static void stalls_among_dependent_columns_end_soon(void **state) {
    (void)state;
    enum { ROWS = 3000, SETS = 40 };
    struct problem p = problem_new(ROWS, 2 * SETS, 1, 0, false, 72);
    uint64_t random = 5;
    for (int i = 0; i < ROWS; i++) {
        p.X[i * p.n + (int)(SETS * random_uniform(&random))] = 1;
        p.X[i * p.n + SETS + (int)(SETS * pow(random_uniform(&random), 2))] = 1;
        p.y[i] = (float)(i % 7 + 100 * random_normal(&random));
    }
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
        const struct run run = on_cpu(type, KILN_CSR);
        kiln_report report = {0}, far = {0};
        struct solution s = solve(&report, &run, &p, &(kiln_linreg_options){.max_iterations = 5000});
        struct solution t =
            solve(&far, &run, &p, &(kiln_linreg_options){.tolerance = 1e-300, .max_iterations = 5000});
        assert_int_equal(report.stopped_by, KILN_STOP_TOLERANCE);
        assert_int_equal(far.stopped_by, KILN_STOP_STALLED);
        assert_true(far.iterations < 20 * report.iterations + 200);
        assert_true(far.objective <= report.objective * (1 + (type == KILN_F32 ? 1e-5 : 1e-12)));
        kiln_report_free(&report);
        kiln_report_free(&far);
        solution_free(&s);
        solution_free(&t);
    }
    problem_free(&p);
}

/* Targets whose sums of squares overflow: no result can be judged. */
static void overflow_is_told(void **state) {
    (void)state;
    struct problem p = problem_new(50, 3, 1, 1, false, 81);
    for (int i = 0; i < p.m; i++) p.y[i] *= 1e200;
    kiln_report report = {0};
    const struct run run = on_cpu(KILN_F64, KILN_DENSE);
    struct solution s = solve(&report, &run, &p, &(kiln_linreg_options){.l2 = 0});
    assert_int_equal(report.stopped_by, KILN_STOP_DIVERGED);
    assert_int_equal(report.converged, 0);
    for (int j = 0; j < 3; j++) assert_true(isfinite(s.W[j]));
    kiln_report_free(&report);
    solution_free(&s);
    problem_free(&p);
}

/* A start whose residual overflows is refused; one merely far off is left behind, though what is out of
 * all proportion costs digits. */
static void wild_starts(void **state) {
    (void)state;
    static const double starts[] = {1e307, -1e200, 1e60, 1e9};
    for (int i = 0; i < 4; i++)
        for (int no_intercept = 0; no_intercept < 2; no_intercept++) {
            struct problem p = problem_new(50, 3, 1, 1, false, 91);
            double values[3] = {starts[i], -starts[i], starts[i]}, b = 7;
            const struct solution start = {3, 1, values, &b};
            struct run run = on_cpu(KILN_F64, KILN_DENSE);
            kiln_linreg_options options = {.no_intercept = no_intercept};
            kiln_report report = {0};
            struct solution s = {0}, want = reference(&p, &options);
            run.start = &start;
            const kiln_status status = try_solve(&s, &report, &run, &p, &options);
            assert_int_equal(status, i < 2 ? KILN_ERR_DATA : KILN_OK);
            if (i < 2) assert_non_null(strstr(kiln_last_error()->message, "overflows"));
            if (i >= 2) assert_true(difference(&s, &want) <= 1e-9);
            if (i >= 2) assert_int_equal(report.converged, 1);
            kiln_report_free(&report);
            solution_free(&s);
            solution_free(&want);
            problem_free(&p);
        }
}

/* Rows are fewer than columns: means that dwarf the spreads leave digits for the rank, in f32, too. */
static void few_rows_know_their_rank(void **state) {
    (void)state;
    enum { M = 5, N = 6 };
    static const double years[M] = {1971, 1969, 1950, 1943, 1949}, others[M] = {1917, 1920, 2010, 1958, 1993};
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (int options = 0; options < 8; options++) {
            struct problem p = problem_new(M, N, 2, 1, options & 1, 71);
            for (int i = 0; i < M; i++) {
                const double row[N] = {0, years[i], years[i], 0, others[i], i > 0};
                memcpy(p.X + i * N, row, sizeof row);
                if (p.weights) p.weights[i] = 0.25 * (i + 1);
            }
            kiln_report report = {0};
            const struct run run = on_cpu(type, options & 2 ? KILN_CSR : KILN_DENSE);
            struct solution got =
                solve(&report, &run, &p, &(kiln_linreg_options){.standardize = options >= 4});
            assert_true(report.converged);
            assert_true(kiln_report_figure(&report, "rank") == 3);
            for (int c = 0; c < 2;
                 c++) /* the column that is twice there has the same coefficient in both places */
                assert_true(fabs(got.W[2 + c] - got.W[4 + c]) <=
                            (type == KILN_F32 ? 1e-2 : 1e-9) * fabs(got.W[2 + c]));
            kiln_report_free(&report);
            solution_free(&got);
            problem_free(&p);
        }
}

/* Two rows, which a column of 1 but for 1e-7 tells apart as well as two ordinary ones: the fit is exact.
 * What says so is computed from the coefficients that are handed over, whatever the way to them. */
static void what_is_reported_is_of_the_result(void **state) {
    (void)state;
    enum { M = 2, N = 6 };
    static const double X[M][N] = {{0.9999998772828251, 0, 0, 0, 1, 0}, {0.9999999862417728, 2, 1, 0, 1, 0}},
                        y[M] = {0.7599452158889305, 0.7587323280336326};
    for (int options = 0; options < 8; options++) {
        struct problem p = problem_new(M, N, 1, 1, false, 72);
        for (int i = 0; i < M; i++) {
            memcpy(p.X + i * N, X[i], sizeof X[i]);
            p.y[i] = y[i];
        }
        kiln_report report = {0};
        const struct run run = on_cpu(KILN_F64, options & 1 ? KILN_CSR : KILN_DENSE);
        struct solution got = solve(&report, &run, &p,
                                    &(kiln_linreg_options){.standardize = options & 2 ? 1 : 0,
                                                           .solver = options & 4 ? KILN_LINREG_CG : 0});
        long double rss = 0;
        for (int i = 0; i < M; i++) {
            long double r = (long double)got.b[0] - p.y[i];
            for (int j = 0; j < N; j++) r += (long double)p.X[i * N + j] * got.W[j];
            rss += r * r;
        }
        const double unit = 8 * 2.3e-16 * (fabs(got.W[0]) + fabs(got.b[0]) + 1); /* of fitted values */
        assert_true(fabs(kiln_report_figure(&report, "rss") - (double)rss) <=
                    1e-6 * (double)rss + M * unit * unit);
        if (options < 4 || report.converged) /* conjugate gradient by itself may end elsewhere, and says so */
            assert_true(report.converged && (double)rss <= M * unit * unit &&
                        kiln_report_figure(&report, "rank") == 1);
        kiln_report_free(&report);
        solution_free(&got);
        problem_free(&p);
    }
}

/* Columns that are constant say together what an intercept says, and, standardised without one, share it by
 * their mean squares: each gets as much of it as the others. So say rows that are fewer than columns, too,
 * whose fit is exact. */
static void constants_share_what_they_say(void **state) {
    (void)state;
    enum { M = 30, N = 5, WIDE = 600 };
    for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
        for (int options = 0; options < 8; options++) {
            struct problem p = problem_new(options & 4 ? 8 : M, options & 4 ? WIDE : N, 1, 1, false, 73);
            for (int i = 0; i < p.m; i++)
                for (int c = 0; c < 3; c++) p.X[i * p.n + 2 * c] = c < 2 ? 3 : -6;
            kiln_report report = {0};
            const struct run run = on_cpu(type, options & 1 ? KILN_CSR : KILN_DENSE);
            struct solution want = solve(&report, &run, &p, &(kiln_linreg_options){.l2 = 0});
            kiln_report_free(&report);
            const kiln_linreg_options apart = {
                .no_intercept = true, .standardize = true, .solver = options & 2 ? KILN_LINREG_CG : 0};
            struct solution got = solve(&report, &run, &p, &apart);
            const double near = type == KILN_F32 ? 1e-4 : 1e-9;
            assert_true(report.converged);
            assert_true(kiln_report_figure(&report, "rank") == (options & 4 ? 8 : 3));
            assert_true(fabs(3 * got.W[0] + 6 * got.W[4]) <= near * fabs(3 * got.W[0]) && got.W[0] != 0);
            assert_true(fabs(got.W[0] - got.W[2]) <= near * fabs(got.W[0]));
            if (options & 4)
                assert_true(kiln_report_figure(&report, "rss") <= near * near * p.m);
            else
                assert_true(fabs(9 * got.W[0] - want.b[0]) <= near && fabs(got.W[1] - want.W[1]) <= near);
            kiln_report_free(&report);
            solution_free(&want);
            solution_free(&got);
            problem_free(&p);
        }
}

/* Columns whose spread is a millionth of their mean, and less: two that are one, one that is the sum of two,
 * or none, next to few columns or many that are nearly all zero. Their rank is known, of a sparse X as of a
 * dense one, and two columns that are one have one coefficient. */
static void far_columns_know_their_rank(void **state) {
    (void)state;
    enum { M = 80, NEAR = 30 };
    static const double centre[] = {1, 1.7e9, 1.7e12}, width[] = {1e-7, 3e3, 3e7};
    uint64_t seed = 79;
    for (int options = 0; options < 36; options++) {
        const int far = options % 3, kind = options / 3 % 3, near = options / 9 % 2 ? NEAR : 2;
        struct problem p = problem_new(M, near + 3, 1, 0.1, true, 74);
        for (int i = 0; i < M; i++) {
            double *x = p.X + i * p.n, *far_x = x + near;
            x[0] = random_normal(&seed);
            for (int c = 0; c < 2; c++) {
                const double value = width[far] * random_normal(&seed);
                far_x[c] = centre[far] + (far == 0 ? value : floor(value));
            }
            far_x[2] = kind == 0 ? 0 : kind == 1 ? far_x[0] : far_x[0] + far_x[1];
            p.weights[i] = 0.1 + random_uniform(&seed);
            p.y[i] = x[0] + random_normal(&seed);
        }
        kiln_report report = {0};
        const struct run run = on_cpu(KILN_F64, options & 1 ? KILN_CSR : KILN_DENSE);
        struct solution got =
            solve(&report, &run, &p, &(kiln_linreg_options){.solver = options >= 18 ? KILN_LINREG_CG : 0});
        /* what is left along a sum, rounded as the columns are, may keep a fit from its tolerance */
        assert_true(kind == 2 || report.converged);
        if (kiln_report_figure(&report, "rank") != near + 2)
            fail_msg("options %d: rank %g, not %d", options, kiln_report_figure(&report, "rank"), near + 2);
        if (kind == 1) assert_true(fabs(got.W[near] - got.W[near + 2]) <= 1e-3 * fabs(got.W[near]));
        kiln_report_free(&report);
        solution_free(&got);
        problem_free(&p);
    }
}

static int open_cpu(void **state) {
    (void)state;
    return kiln_device_open(&cpu, "cpu", NULL) != KILN_OK;
}

static int close_cpu(void **state) {
    (void)state;
    kiln_device_close(cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nist_longley),
        cmocka_unit_test(nist_norris),
        cmocka_unit_test(nist_noint1),
        cmocka_unit_test(scales_do_not_matter),
        cmocka_unit_test(means_may_dwarf_spreads),
        cmocka_unit_test(hopeless_means_are_centred_at_once),
        cmocka_unit_test(idle_columns_get_zero),
        cmocka_unit_test(collinear_columns_predict_as_well),
        cmocka_unit_test(constant_columns_of_many_rows_get_zero),
        cmocka_unit_test(constant_targets),
        cmocka_unit_test(spreads_of_the_target_may_be_tiny),
        cmocka_unit_test(stalls_are_told),
        cmocka_unit_test(stalls_among_dependent_columns_end_soon),
        cmocka_unit_test(overflow_is_told),
        cmocka_unit_test(wild_starts),
        cmocka_unit_test(few_rows_know_their_rank),
        cmocka_unit_test(what_is_reported_is_of_the_result),
        cmocka_unit_test(constants_share_what_they_say),
        cmocka_unit_test(far_columns_know_their_rank),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
