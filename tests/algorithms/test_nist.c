/* NIST's Statistical Reference Datasets for linear regression (StRD, in the public domain): how many digits
 * of the certified coefficients and standard errors kiln_linreg and kiln_glm (Gaussian) find in f64. The data
 * test arithmetic: columns whose means dwarf their spreads, polynomials of degree 5 on 0..20 and of degree
 * 10, residuals far larger or smaller than the fit.
 *
 * Least squares by conjugate gradient stops at a tolerance on the gradient, and what that leaves of the
 * coefficients grows with the condition of the normal equations: the polynomials want a tolerance of 1e-16
 * (linreg) or 1e-13 (glm). Digits are -log10 of the largest relative error, the floors lie below what every
 * instruction set's order of summation gives. */
#include "algorithms/least_squares.h"

enum { POINTS = 82, TERMS = 10 };

struct set {
    const char *name;
    int m, n; /* terms, not counting the intercept */
    bool intercept;
    double X[POINTS * TERMS], y[POINTS];
    const double *beta, *errors; /* the intercept last; errors NULL: all 0 */
    double residual;             /* certified sum of squares */
    /* digits wanted: linreg at its default and at 1e-16, glm at its default and at 1e-13, standard errors */
    double linreg, linreg_tight, glm, glm_tight, standard;
};

static const double norris_x[] = {0.2,   337.4, 118.2, 884.6, 10.1,  226.5, 666.3, 996.3, 448.6,
                                  777,   558.2, 0.4,   0.6,   775.5, 666.9, 338,   447.5, 11.6,
                                  556,   228.1, 995.8, 887.6, 120.2, 0.3,   0.3,   556.8, 339.1,
                                  887.2, 999,   779,   11.1,  118.3, 229.2, 669.1, 448.9, 0.5};
static const double norris_y[] = {0.1,   338.8, 118.1, 888,   9.2,   228.1, 668.5, 998.5, 449.1,
                                  778.9, 559.2, 0.3,   0.1,   778.1, 668.8, 339.3, 448.9, 10.8,
                                  557.7, 228.3, 998,   888.8, 119.6, 0.3,   0.6,   557.6, 339.3,
                                  888,   998.5, 778.9, 10.2,  117.6, 228.9, 668.4, 449.2, 0.2};
static const double pontius_y[] = {0.11019, 0.21956, 0.32949, 0.43899, 0.54803, 0.65694, 0.76562, 0.87487,
                                   0.98292, 1.09146, 1.20001, 1.30822, 1.41599, 1.52399, 1.63194, 1.73947,
                                   1.84646, 1.95392, 2.06128, 2.16844, 0.11052, 0.22018, 0.32939, 0.43886,
                                   0.54798, 0.65739, 0.76596, 0.87474, 0.983,   1.0915,  1.20004, 1.30818,
                                   1.41613, 1.52408, 1.63159, 1.73965, 1.84696, 1.95445, 2.06177, 2.16829};
static const double longley_x[] = {
    83,    234289, 2356, 1590,  107608, 1947, 88.5,  259426, 2325, 1456,  108632, 1948, 88.2,  258054, 3682,
    1616,  109773, 1949, 89.5,  284599, 3351, 1650,  110929, 1950, 96.2,  328975, 2099, 3099,  112075, 1951,
    98.1,  346999, 1932, 3594,  113270, 1952, 99,    365385, 1870, 3547,  115094, 1953, 100,   363112, 3578,
    3350,  116219, 1954, 101.2, 397469, 2904, 3048,  117388, 1955, 104.6, 419180, 2822, 2857,  118734, 1956,
    108.4, 442769, 2936, 2798,  120445, 1957, 110.8, 444546, 4681, 2637,  121950, 1958, 112.6, 482704, 3813,
    2552,  123366, 1959, 114.2, 502601, 3931, 2514,  125368, 1960, 115.7, 518173, 4806, 2572,  127852, 1961,
    116.9, 554894, 4007, 2827,  130081, 1962};
static const double longley_y[] = {60323, 61122, 60171, 61187, 63221, 63639, 64989, 63761,
                                   66019, 67857, 68169, 66513, 68655, 69564, 69331, 70551};
static const double wampler2_y[] = {1,        1.11111,  1.24992,  1.42753,  1.65984,  1.96875,  2.38336,
                                    2.94117,  3.68928,  4.68559,  6,        7.71561,  9.92992,  12.75603,
                                    16.32384, 20.78125, 26.29536, 33.05367, 41.26528, 51.16209, 63};
/* Says what Wampler3, 4 and 5 add to Wampler1, 1, 100 and 10000 times: orthogonal to all polynomials of
 * degree 5. */
static const double wampler_noise[] = {759,   -2048, 2048,  -2048, 2523,  -2048, 2048,
                                       -2048, 1838,  -2048, 2048,  -2048, 1838,  -2048,
                                       2048,  -2048, 2523,  -2048, 2048,  -2048, 759};
static const double filip_x[] = {
    -6.860120914, -4.324130045, -4.358625055, -4.358426747, -6.955852379, -6.661145254, -6.355462942,
    -6.118102026, -7.115148017, -6.815308569, -6.519993057, -6.204119983, -5.853871964, -6.109523091,
    -5.79832982,  -5.482672118, -5.171791386, -4.851705903, -4.517126416, -4.143573228, -3.709075441,
    -3.499489089, -6.300769497, -5.953504836, -5.642065153, -5.031376979, -4.680685696, -4.329846955,
    -3.928486195, -8.56735134,  -8.363211311, -8.107682739, -7.823908741, -7.522878745, -7.218819279,
    -6.920818754, -6.628932138, -6.323946875, -5.991399828, -8.781464495, -8.663140179, -8.473531488,
    -8.247337057, -7.971428747, -7.676129393, -7.352812702, -7.072065318, -6.774174009, -6.478861916,
    -6.159517513, -6.835647144, -6.53165267,  -6.224098421, -5.910094889, -5.598599459, -5.290645224,
    -4.974284616, -4.64454848,  -4.290560426, -3.885055584, -3.408378962, -3.13200249,  -8.726767166,
    -8.66695597,  -8.511026475, -8.165388579, -7.886056648, -7.588043762, -7.283412422, -6.995678626,
    -6.691862621, -6.392544977, -6.067374056, -6.684029655, -6.378719832, -6.065855188, -5.752272167,
    -5.132414673, -4.811352704, -4.098269308, -3.66174277,  -3.2644011};
static const double filip_y[] = {
    0.8116, 0.9072, 0.9052, 0.9039, 0.8053, 0.8377, 0.8667, 0.8809, 0.7975, 0.8162, 0.8515, 0.8766,
    0.8885, 0.8859, 0.8959, 0.8913, 0.8959, 0.8971, 0.9021, 0.909,  0.9139, 0.9199, 0.8692, 0.8872,
    0.89,   0.891,  0.8977, 0.9035, 0.9078, 0.7675, 0.7705, 0.7713, 0.7736, 0.7775, 0.7841, 0.7971,
    0.8329, 0.8641, 0.8804, 0.7668, 0.7633, 0.7678, 0.7697, 0.77,   0.7749, 0.7796, 0.7897, 0.8131,
    0.8498, 0.8741, 0.8061, 0.846,  0.8751, 0.8856, 0.8919, 0.8934, 0.894,  0.8957, 0.9047, 0.9129,
    0.9209, 0.9219, 0.7739, 0.7681, 0.7665, 0.7703, 0.7702, 0.7761, 0.7809, 0.7961, 0.8253, 0.8602,
    0.8809, 0.8301, 0.8664, 0.8834, 0.8898, 0.8964, 0.8963, 0.9074, 0.9119, 0.9228};

static const double norris_beta[] = {1.00211681802045, -0.262323073774029};
static const double norris_errors[] = {0.429796848199937E-03, 0.232818234301152};
static const double pontius_beta[] = {0.732059160401003E-06, -0.316081871345029E-14, 0.673565789473684E-03};
static const double pontius_errors[] = {0.157817399981659E-09, 0.486652849992036E-16, 0.107938612033077E-03};
static const double noint1_beta[] = {2.07438016528926};
static const double noint1_errors[] = {0.165289256198347E-01};
static const double noint2_beta[] = {0.727272727272727};
static const double noint2_errors[] = {0.420827318078432E-01};
static const double longley_beta[] = {15.0618722713733,  -0.358191792925910E-01, -2.02022980381683,
                                      -1.03322686717359, -0.511041056535807E-01, 1829.15146461355,
                                      -3482258.63459582};
static const double longley_errors[] = {84.9149257747669,  0.334910077722432E-01, 0.488399681651699,
                                        0.214274163161675, 0.226073200069370,     455.478499142212,
                                        890420.383607373};
static const double ones_beta[] = {1, 1, 1, 1, 1, 1};
static const double wampler2_beta[] = {0.1, 0.01, 0.001, 0.0001, 0.00001, 1};
static const double wampler3_errors[] = {2363.55173469681, 779.343524331583,  101.47550755035,
                                         5.64566512170752, 0.112324854679312, 2152.3262467817};
static const double wampler4_errors[] = {236355.173469681, 77934.3524331583, 10147.550755035,
                                         564.566512170752, 11.2324854679312, 215232.62467817};
static const double wampler5_errors[] = {23635517.3469681, 7793435.24331583, 1014755.0755035,
                                         56456.6512170752, 1123.24854679312, 21523262.467817};

/* Columns x, x^2, ... of `terms` powers. */
static void powers(struct set *set, int terms, const double *x) {
    set->n = terms;
    for (int i = 0; i < set->m; i++) {
        set->X[i * terms] = x[i];
        for (int j = 1; j < terms; j++) set->X[i * terms + j] = set->X[i * terms + j - 1] * x[i];
    }
}

static void rows(struct set *set, int m, const double *y) {
    set->m = m;
    memcpy(set->y, y, (size_t)m * sizeof *y);
}

static void norris(struct set *set) {
    rows(set, 36, norris_y);
    powers(set, 1, norris_x);
}

static void pontius(struct set *set) {
    double x[40];
    for (int i = 0; i < 40; i++) x[i] = 150000 * (i % 20 + 1);
    rows(set, 40, pontius_y);
    powers(set, 2, x);
}

static void no_intercept_1(struct set *set) {
    double x[11], y[11];
    for (int i = 0; i < 11; i++) x[i] = 60 + i, y[i] = 130 + i;
    rows(set, 11, y);
    powers(set, 1, x);
}

static void no_intercept_2(struct set *set) {
    static const double x[] = {4, 5, 6}, y[] = {3, 4, 4};
    rows(set, 3, y);
    powers(set, 1, x);
}

static void longley(struct set *set) {
    rows(set, 16, longley_y);
    set->n = 6;
    memcpy(set->X, longley_x, sizeof longley_x);
}

static void filip(struct set *set) {
    rows(set, POINTS, filip_y);
    powers(set, TERMS, filip_x);
}

/* y = 1 + x + ... + x^5 + noise */
static void wampler(struct set *set, double noise) {
    double x[21], y[21];
    for (int i = 0; i < 21; i++) {
        x[i] = i;
        y[i] = 1 + noise * wampler_noise[i];
        for (int j = 1; j <= 5; j++) y[i] += pow(i, j);
    }
    rows(set, 21, y);
    powers(set, 5, x);
}

static void wampler1(struct set *set) {
    wampler(set, 0);
}
static void wampler2(struct set *set) {
    wampler(set, 0);
    rows(set, 21, wampler2_y);
}
static void wampler3(struct set *set) {
    wampler(set, 1);
}
static void wampler4(struct set *set) {
    wampler(set, 100);
}
static void wampler5(struct set *set) {
    wampler(set, 10000);
}

static const struct {
    void (*fill)(struct set *set);
    struct set set;
} sets[] = {
    /* lower difficulty */
    {norris,
     {"Norris", .intercept = true, .beta = norris_beta, .errors = norris_errors, .residual = 26.6173985294224,
      .linreg = 11.5, .linreg_tight = 11.5, .glm = 11, .glm_tight = 11, .standard = 12}},
    {pontius,
     {"Pontius", .intercept = true, .beta = pontius_beta, .errors = pontius_errors,
      .residual = 0.155761768796992e-05, .linreg = 10, .linreg_tight = 11, .glm = 10, .glm_tight = 10,
      .standard = 12}},
    /* average difficulty */
    {no_intercept_1,
     {"NoInt1", .beta = noint1_beta, .errors = noint1_errors, .residual = 127.272727272727, .linreg = 13,
      .linreg_tight = 13, .glm = 13, .glm_tight = 13, .standard = 13}},
    {no_intercept_2,
     {"NoInt2", .beta = noint2_beta, .errors = noint2_errors, .residual = 0.272727272727273, .linreg = 13,
      .linreg_tight = 13, .glm = 13, .glm_tight = 13, .standard = 13}},
    /* higher difficulty */
    {longley,
     {"Longley", .intercept = true, .beta = longley_beta, .errors = longley_errors,
      .residual = 836424.055505915, .linreg = 9, .linreg_tight = 9, .glm = 8, .glm_tight = 9,
      .standard = 10}},
    {wampler1,
     {"Wampler1", .intercept = true, .beta = ones_beta, .residual = 0, .linreg = 4.5, .linreg_tight = 6.5,
      .glm = 4, .glm_tight = 5.5, .standard = 6}},
    {wampler2,
     {"Wampler2", .intercept = true, .beta = wampler2_beta, .residual = 0, .linreg = 8.5, .linreg_tight = 9,
      .glm = 7.5, .glm_tight = 9, .standard = 11}},
    {wampler3,
     {"Wampler3", .intercept = true, .beta = ones_beta, .errors = wampler3_errors, .residual = 83554268,
      .linreg = 4.5, .linreg_tight = 6.5, .glm = 3, .glm_tight = 5.5, .standard = 9}},
    {wampler4,
     {"Wampler4", .intercept = true, .beta = ones_beta, .errors = wampler4_errors, .residual = 835542680000,
      .linreg = 4.5, .linreg_tight = 6.5, .glm = 4, .glm_tight = 5.5, .standard = 9}},
    {wampler5,
     {"Wampler5", .intercept = true, .beta = ones_beta, .errors = wampler5_errors,
      .residual = 8355426800000000, .linreg = 4.5, .linreg_tight = 5.5, .glm = 4, .glm_tight = 5.5,
      .standard = 9}},
};
enum { SETS = sizeof sets / sizeof *sets };

static kiln_device *device;

static double digits_of(double got, double certified) {
    const double error = fabs(got - certified) / (certified != 0 ? fabs(certified) : 1);
    return error > 0 ? fmin(-log10(error), 15) : 15;
}

/* The operands of a fit, and what it found: coefficients, the intercept last. */
struct fit {
    kiln_matrix *X, *y, *w, *b, *errors;
    kiln_report report;
    double beta[TERMS + 1], standard[TERMS + 1];
};

static void fit_new(struct fit *fit, const struct set *set) {
    *fit = (struct fit){.X = dense(device, KILN_F64, set->m, set->n, set->X),
                        .y = dense(device, KILN_F64, set->m, 1, set->y)};
    assert_ok(kiln_matrix_dense(&fit->w, device, KILN_F64, set->n, 1, NULL));
    assert_ok(kiln_matrix_dense(&fit->b, device, KILN_F64, 1, 1, NULL));
    assert_ok(kiln_matrix_dense(&fit->errors, device, KILN_F64, set->n + set->intercept, 1, NULL));
}

static void fit_free(struct fit *fit) {
    kiln_matrix *const all[] = {fit->X, fit->y, fit->w, fit->b, fit->errors};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    kiln_report_free(&fit->report);
}

/* tolerance 0: the default. */
static void fit_run(struct fit *fit, const struct set *set, bool glm, double tolerance) {
    kiln_report_free(&fit->report);
    fit->report = (kiln_report){0};
    if (glm) {
        const kiln_glm_options options = {
            .no_intercept = !set->intercept, .tolerance = tolerance, .standard_errors = fit->errors};
        assert_ok(kiln_glm(fit->w, fit->b, fit->X, fit->y, &options, &fit->report));
        assert_ok(kiln_matrix_get(fit->standard, fit->errors));
    } else {
        const kiln_linreg_options options = {.no_intercept = !set->intercept, .tolerance = tolerance};
        assert_ok(kiln_linreg(fit->w, fit->b, fit->X, fit->y, &options, &fit->report));
    }
    assert_ok(kiln_matrix_get(fit->beta, fit->w));
    assert_ok(kiln_matrix_get(fit->beta + set->n, fit->b));
}

static void expect(const struct set *set, const char *what, const double *got, const double *certified,
                   double floor) {
    double digits = 15;
    for (int j = 0; j < set->n + set->intercept; j++)
        digits = fmin(digits, digits_of(got[j], certified ? certified[j] : 0));
    print_message("%-9s %-22s %4.1f digits\n", set->name, what, digits);
    if (!(digits >= floor)) fail_msg("%s, %s: %.1f digits, not %.1f", set->name, what, digits, floor);
}

static void certified_digits(void **state) {
    (void)state;
    for (int i = 0; i < SETS; i++) {
        struct set set = sets[i].set;
        struct fit fit;
        sets[i].fill(&set);
        fit_new(&fit, &set);
        fit_run(&fit, &set, false, 0);
        assert_int_equal(fit.report.converged, 1);
        expect(&set, "linreg", fit.beta, set.beta, set.linreg);
        assert_true(digits_of(kiln_report_figure(&fit.report, "rss"), set.residual) >= 8);
        fit_run(&fit, &set, false, 1e-16);
        expect(&set, "linreg, 1e-16", fit.beta, set.beta, set.linreg_tight);
        fit_run(&fit, &set, true, 0);
        assert_int_equal(fit.report.converged, 1);
        expect(&set, "glm", fit.beta, set.beta, set.glm);
        fit_run(&fit, &set, true, 1e-13);
        expect(&set, "glm, 1e-13", fit.beta, set.beta, set.glm_tight);
        expect(&set, "glm, standard errors", fit.standard, set.errors, set.standard);
        assert_true(digits_of(kiln_report_figure(&fit.report, "deviance"), set.residual) >= 8);
        fit_free(&fit);
    }
}

/* Filip: a polynomial of degree 10 whose normal equations have a condition beyond double precision. No
 * coefficient can be right, the fitted values still are, and the report does not call it converged. */
static void filip_fits(void **state) {
    (void)state;
    struct set set = {"Filip", .intercept = true};
    struct fit fit;
    filip(&set);
    fit_new(&fit, &set);
    fit_run(&fit, &set, false, 0);
    assert_int_equal(fit.report.converged, 0);
    assert_true(digits_of(kiln_report_figure(&fit.report, "rss"), 0.795851382172941e-03) >= 5);
    fit_free(&fit);
}

static int open_device(void **state) {
    (void)state;
    assert_ok(kiln_device_open(&device, "cpu", NULL));
    return 0;
}

static int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(certified_digits), cmocka_unit_test(filip_fits)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
