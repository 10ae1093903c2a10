/* kiln_glm: every family with every link that suits it against the definitions in long double, on the CPU and
 * on OpenCL, and what happens where no optimum exists. */
#include "algorithms/glm_models.h"

static kiln_device *devices[2];
static int device_count;

enum { M = 120, N = 3, P = N + 1 };

/* Holds what the definitions say at a fit. */
struct figures {
    long double gradient; /* the largest entry, relative to the sum of its terms' magnitudes */
    long double deviance, pearson, log_likelihood, errors[P];
};

/* The diagonal of A^-1, A p x p in place, by Gauss and Jordan. */
static void invert(long double *A, int p, long double *diagonal) {
    long double inverse[P * P] = {0};
    for (int i = 0; i < p; i++) inverse[i * p + i] = 1;
    for (int i = 0; i < p; i++) {
        const long double pivot = A[i * p + i];
        for (int j = 0; j < p; j++) A[i * p + j] /= pivot, inverse[i * p + j] /= pivot;
        for (int r = 0; r < p; r++) {
            const long double factor = A[r * p + i];
            for (int j = 0; r != i && j < p; j++) {
                A[r * p + j] -= factor * A[i * p + j];
                inverse[r * p + j] -= factor * inverse[i * p + j];
            }
        }
    }
    for (int i = 0; i < p; i++) diagonal[i] = inverse[i * p + i];
}

static struct figures examine(const struct model *model, const struct glm_data *d, const struct glm_fit *fit,
                              bool weighted, bool intercept, long double spread) {
    struct figures f = {0};
    const int p = d->n + intercept;
    long double sum[P] = {0}, size[P] = {0}, information[P * P] = {0};
    for (int i = 0; i < d->m; i++) {
        const long double s = weighted ? d->weights[i] : 1, y = d->y[i];
        long double row[P], mu, slope, eta = fit->b + (weighted ? d->offset[i] : 0);
        for (int j = 0; j < d->n; j++) eta += (row[j] = d->X[i * d->n + j]) * (long double)fit->w[j];
        if (intercept) row[d->n] = 1;
        mean_of(model, eta, &mu, &slope);
        const long double variance = variance_of(model, mu), g = s * score_of(model, y, mu) * slope;
        for (int j = 0; j < p; j++) {
            sum[j] += g * row[j];
            size[j] += fabsl(g * row[j]);
            for (int k = 0; k < p; k++)
                information[j * p + k] += s * slope * slope * information_of(model, mu) * row[j] * row[k];
        }
        f.deviance += s * deviance_of(model, y, mu);
        f.pearson += s * (y - mu) * (y - mu) / variance;
        f.log_likelihood += density_of(model, y, s, mu, spread);
    }
    for (int j = 0; j < p; j++) f.gradient = fmaxl(f.gradient, fabsl(sum[j]) / size[j]);
    invert(information, p, f.errors);
    return f;
}

static bool near(double got, long double want, double tolerance) {
    return fabsl(got - want) <= tolerance * fabsl(want);
}

static bool fixed(kiln_family family) {
    return kiln_family_describe(family)->fixed_dispersion;
}

/* Gradient, deviance, dispersion, AIC and standard errors of a fit. */
static void check_fit(const struct model *model, const struct glm_data *d, const struct run *run,
                      bool weighted, bool intercept) {
    struct glm_fit fit;
    const bool single = run->type == KILN_F32;
    const kiln_glm_options options = {.no_intercept = !intercept};
    if (glm_run(&fit, run, d, model, options, weighted, true) != KILN_OK)
        fail_msg("family %d, link %d: %s", (int)model->family, (int)model->link, kiln_last_error()->message);
    const kiln_report *r = &fit.report;
    long double total = 0;
    for (int i = 0; i < d->m; i++) total += weighted ? d->weights[i] : 1;
    const bool gaussian = model->family == KILN_GAUSSIAN;
    const long double spread = kiln_report_figure(r, "deviance") / (gaussian ? d->m : total);
    const struct figures f = examine(model, d, &fit, weighted, intercept, spread);
    const int p = d->n + intercept;
    const double close = single ? 2e-3 : 1e-8;
    const long double dispersion = fixed(model->family) ? 1 : f.pearson / (d->m - p);
    const long double aic = 2 * (p + !fixed(model->family)) - 2 * f.log_likelihood;
    bool good = r->converged && f.gradient <= (single ? 1e-3 : 1e-8) &&
                near(kiln_report_figure(r, "deviance"), f.deviance, close) &&
                near(kiln_report_figure(r, "dispersion"), dispersion, close) &&
                kiln_report_figure(r, "deviance") <= kiln_report_figure(r, "null_deviance") * (1 + close);
    good = good && (model->family == KILN_TWEEDIE ? isnan(kiln_report_figure(r, "aic"))
                                                  : near(kiln_report_figure(r, "aic"), aic, close));
    for (int j = 0; j < p; j++) good = good && near(fit.errors[j], sqrtl(f.errors[j] * dispersion), close);
    if (!good)
        fail_msg("family %d, link %d, %s %s: %s after %lld steps, gradient %Lg, deviance %.15g (%.15Lg, null "
                 "%.15g), "
                 "dispersion %.15g (%.15Lg), AIC %.15g (%.15Lg), standard error %.15g (%.15Lg)",
                 (int)model->family, (int)model->link, single ? "f32" : "f64",
                 run->format == KILN_CSR ? "CSR" : "dense", kiln_stop_name(r->stopped_by),
                 (long long)r->iterations, f.gradient, kiln_report_figure(r, "deviance"), f.deviance,
                 kiln_report_figure(r, "null_deviance"), kiln_report_figure(r, "dispersion"), dispersion,
                 kiln_report_figure(r, "aic"), aic, fit.errors[0], sqrtl(f.errors[0] * dispersion));
    glm_fit_free(&fit);
}

static struct model model_of(kiln_family family, kiln_link link) {
    return (struct model){family, link, family == KILN_TWEEDIE ? 1.5 : family == KILN_BETA ? 6 : 0.5, 1.5};
}

/* A link onto (0, 1) makes little sense for means that go beyond: there is no optimum. */
static bool suits(kiln_family family, kiln_link link) {
    if (!(kiln_family_describe(family)->links >> link & 1)) return false;
    return family == KILN_BINOMIAL || family == KILN_GAUSSIAN || family == KILN_BETA ||
           link < KILN_LINK_LOGIT || link > KILN_LINK_CAUCHIT;
}

static void families_times_links(void **state) {
    (void)state;
    for (kiln_family family = KILN_GAUSSIAN; kiln_family_describe(family); family++)
        for (kiln_link link = KILN_LINK_IDENTITY; link <= KILN_LINK_POWER; link++) {
            if (!suits(family, link)) continue;
            const struct model model = model_of(family, link);
            struct glm_data d = glm_data_new(&model, M, N, 100 * family + link);
            for (int weighted = 0; weighted < 2; weighted++)
                check_fit(&model, &d,
                          &(struct run){devices[0], KILN_F64, weighted ? KILN_CSR : KILN_DENSE, NULL},
                          weighted, true);
            if (link == KILN_LINK_IDENTITY || link == KILN_LINK_LOG || link == KILN_LINK_LOGIT)
                check_fit(&model, &d, &(struct run){devices[0], KILN_F32, KILN_DENSE, NULL}, true, true);
            glm_data_free(&d);
        }
}

/* If the mean's range is not the link's, a fit without an intercept needs a start of its own. */
static void without_an_intercept(void **state) {
    (void)state;
    static const kiln_link links[] = {KILN_LINK_IDENTITY, KILN_LINK_LOG, KILN_LINK_INVERSE, KILN_LINK_SQRT,
                                      KILN_LINK_INVERSE_SQUARED};
    for (kiln_family family = KILN_GAUSSIAN; kiln_family_describe(family); family++)
        for (size_t l = 0; l < sizeof links / sizeof *links; l++) {
            if (!(kiln_family_describe(family)->links >> links[l] & 1)) continue;
            const struct model model = model_of(family, links[l]);
            struct glm_data d = glm_data_new(&model, M, N, 7000 + 10 * family + links[l]);
            for (int i = 0; i < d.m; i++) d.X[i * d.n] = 1; /* the caller's own constant */
            check_fit(&model, &d, &(struct run){devices[0], KILN_F64, KILN_DENSE, NULL}, true, false);
            glm_data_free(&d);
        }
}

static void on_every_device(void **state) {
    (void)state;
    static const struct model models[] = {{KILN_POISSON, KILN_LINK_LOG, 0, 0},
                                          {KILN_BINOMIAL, KILN_LINK_PROBIT, 0, 0}};
    for (int device = 1; device < device_count; device++)
        for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
            struct glm_data d = glm_data_new(&models[i], M, N, 42 + i);
            check_fit(&models[i], &d, &(struct run){devices[device], KILN_F64, KILN_DENSE, NULL}, true, true);
            glm_data_free(&d);
        }
}

/* A row of weight 3 counts as three rows. */
static void weights_repeat_rows(void **state) {
    (void)state;
    const struct model model = model_of(KILN_POISSON, KILN_LINK_LOG);
    const struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    struct glm_data d = glm_data_new(&model, 40, N, 11), many = glm_data_new(&model, 160, N, 11);
    many.m = 0;
    for (int i = 0; i < d.m; i++) {
        d.offset[i] = 0;
        for (int copy = 0; copy < d.weights[i]; copy++, many.m++) {
            memcpy(many.X + many.m * N, d.X + i * N, N * sizeof *d.X);
            many.y[many.m] = d.y[i];
        }
    }
    struct glm_fit one, other;
    assert_ok(glm_run(&one, &run, &d, &model, (kiln_glm_options){0}, true, true));
    assert_ok(glm_run(&other, &run, &many, &model, (kiln_glm_options){0}, false, true));
    for (int j = 0; j < N; j++) assert_true(near(one.w[j], other.w[j], 1e-7));
    for (int j = 0; j <= N; j++) assert_true(near(one.errors[j], other.errors[j], 1e-8));
    assert_true(near(kiln_report_figure(&one.report, "deviance"),
                     kiln_report_figure(&other.report, "deviance"), 1e-12));
    assert_true(near(kiln_report_figure(&one.report, "null_deviance"),
                     kiln_report_figure(&other.report, "null_deviance"), 1e-12));
    assert_true(
        near(kiln_report_figure(&one.report, "aic"), kiln_report_figure(&other.report, "aic"), 1e-12));
    glm_fit_free(&one);
    glm_fit_free(&other);
    glm_data_free(&d);
    glm_data_free(&many);
}

/* With a penalty X^T g + l2 sigma_j^2 w vanishes; started where it ended, a fit has nothing to do. */
static void penalty_and_warm_start(void **state) {
    (void)state;
    const struct model model = model_of(KILN_GAMMA, KILN_LINK_LOG);
    const struct run run = {devices[0], KILN_F64, KILN_CSR, NULL};
    struct glm_data d = glm_data_new(&model, M, N, 5);
    for (int standardize = 0; standardize < 2; standardize++) {
        kiln_glm_options options = {.l2 = 20, .standardize = standardize, .tolerance = 1e-11};
        struct glm_fit fit;
        assert_ok(glm_run(&fit, &run, &d, &model, options, true, false));
        assert_int_equal(fit.report.converged, 1);
        struct problem p = {.m = d.m, .n = d.n, .k = 1, .X = d.X, .y = d.y, .weights = d.weights};
        for (int j = 0; j < N; j++) {
            long double g = options.l2 * (standardize ? column_variance(&p, j) : 1) * fit.w[j],
                        size = fabsl(g);
            for (int i = 0; i < d.m; i++) {
                long double eta = fit.b + d.offset[i];
                for (int k = 0; k < N; k++) eta += d.X[i * N + k] * (long double)fit.w[k];
                const long double term = d.weights[i] * (1 - d.y[i] / expl(eta)) * d.X[i * N + j];
                g += term;
                size += fabsl(term);
            }
            assert_true(fabsl(g) <= 1e-9 * size);
        }
        options.warm_start = 1;
        options.tolerance = 1e-9;
        assert_ok(glm_run(&fit, &run, &d, &model, options, true, false));
        assert_true(fit.report.converged && fit.report.iterations == 0);
        glm_fit_free(&fit);
    }
    glm_data_free(&d);
}

/* With l1 the gradient g is -l1 sigma_j sign(w_j) - l2 sigma_j^2 w_j where w_j is not 0, and at most l1
 * sigma_j where it is. How many are. */
static int check_l1(const struct model *model, const struct run *run, int standardize) {
    struct glm_data d = glm_data_new(model, M, N, 300 + model->family);
    kiln_glm_options options = {.l1 = 4, .l2 = 1, .standardize = standardize, .tolerance = 1e-10};
    struct glm_fit fit;
    assert_ok(glm_run(&fit, run, &d, model, options, true, false));
    const struct problem p = {.m = d.m, .n = d.n, .k = 1, .X = d.X, .y = d.y, .weights = d.weights};
    int zeros = 0;
    for (int j = 0; j < N; j++) {
        const long double spread = standardize ? column_variance(&p, j) : 1, l1 = options.l1 * sqrtl(spread);
        long double g = options.l2 * spread * fit.w[j], size = fabsl(g) + l1;
        for (int i = 0; i < d.m; i++) {
            long double mu, slope, eta = fit.b + d.offset[i];
            for (int k = 0; k < N; k++) eta += d.X[i * N + k] * (long double)fit.w[k];
            mean_of(model, eta, &mu, &slope);
            const long double term = d.weights[i] * score_of(model, d.y[i], mu) * slope * d.X[i * N + j];
            g += term;
            size += fabsl(term);
        }
        zeros += fit.w[j] == 0;
        if (fit.w[j] == 0 ? fabsl(g) > l1 : fabsl(g + copysignl(l1, fit.w[j])) > 1e-8 * size)
            fail_msg("family %d, column %d: w %g, gradient %Lg, l1 %Lg", (int)model->family, j, fit.w[j], g,
                     l1);
    }
    if (!fit.report.converged)
        fail_msg("family %d, standardize %d: %s, residual %g", (int)model->family, standardize,
                 kiln_stop_name(fit.report.stopped_by), fit.report.residual);
    assert_int_equal(kiln_report_figure(&fit.report, "parameters"), N - zeros + 1);
    glm_fit_free(&fit);
    glm_data_free(&d);
    return zeros;
}

static void l1_of_every_family(void **state) {
    (void)state;
    int zeros = 0, most = 0;
    for (kiln_family family = KILN_GAUSSIAN; kiln_family_describe(family); family++)
        for (int way = 0; way < 3; way++) {
            const struct model model = model_of(family, kiln_family_describe(family)->link);
            zeros +=
                check_l1(&model, &(struct run){devices[0], KILN_F64, way == 1 ? KILN_CSR : KILN_DENSE, NULL},
                         way == 2);
            most += N;
        }
    assert_in_range(zeros, 1, most - 1);
}

/* ---- hard cases ---- */

/* All counts 0, all trials lost, separable classes: the optimum is at infinity. Numbers stay finite, and the
 * deviance says how good the fit is. */
static void no_optimum(void **state) {
    (void)state;
    static const struct model models[] = {
        {KILN_POISSON, KILN_LINK_LOG, 0, 0},     {KILN_BINOMIAL, KILN_LINK_LOGIT, 0, 0},
        {KILN_BINOMIAL, KILN_LINK_PROBIT, 0, 0}, {KILN_BINOMIAL, KILN_LINK_CLOGLOG, 0, 0},
        {KILN_TWEEDIE, KILN_LINK_LOG, 1.5, 0},   {KILN_NEGATIVE_BINOMIAL, KILN_LINK_LOG, 1, 0}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int separable = 0; separable < 2; separable++) {
            if (separable && models[i].family != KILN_BINOMIAL) continue;
            struct glm_data d = glm_data_new(&models[i], M, N, 3 + i);
            for (int r = 0; r < d.m; r++) d.y[r] = separable && d.X[r * N] > 0;
            struct glm_fit fit;
            assert_ok(glm_run(&fit, &(struct run){devices[0], KILN_F64, KILN_DENSE, NULL}, &d, &models[i],
                              (kiln_glm_options){0}, true, false));
            for (int j = 0; j < N; j++) assert_true(isfinite(fit.w[j]));
            assert_true(isfinite(fit.b) && isfinite(fit.report.objective) &&
                        fit.report.stopped_by != KILN_STOP_NONE);
            assert_true(kiln_report_figure(&fit.report, "deviance") >= 0 &&
                        kiln_report_figure(&fit.report, "deviance") < 1e-3);
            glm_fit_free(&fit);
            glm_data_free(&d);
        }
}

static long double inverse_gaussian_at(const struct glm_data *d, long double w, double l2) {
    long double sum = l2 * w * w / 2;
    for (int i = 0; i < d->m; i++) {
        const long double inverse = expl(-w * d->X[i]);
        sum += d->y[i] * inverse * inverse / 2 - inverse;
    }
    return sum;
}

/* A column of years without an intercept: the first step leads to means of 1e9, where an inverse Gaussian's
 * loss is level under a log link, but far above its least value. Steps lead back; a run in f32 may not be
 * able to, and says so. */
static void a_step_too_far(void **state) {
    enum { ROWS = 45 };
    (void)state;
    const struct model model = model_of(KILN_INVERSE_GAUSSIAN, KILN_LINK_LOG);
    struct glm_data d = glm_data_new(&model, ROWS, 1, 5);
    for (int i = 0; i < ROWS; i++) {
        d.X[i] = 1900 + i * 37 % 126;
        d.y[i] = i == 31 ? 728 : (float)exp(0.19 * (i * 17 % ROWS) - 5.2);
        d.offset[i] = 0;
    }
    for (int penalty = 0; penalty < 2; penalty++)
        for (kiln_type type = KILN_F32; type <= KILN_F64; type++) {
            struct glm_fit fit;
            long double least = INFINITY;
            for (int step = -20000; step <= 20000; step++)
                least = fminl(least, inverse_gaussian_at(&d, step * 1e-6L, penalty));
            assert_ok(glm_run(&fit, &(struct run){devices[0], type, KILN_DENSE, NULL}, &d, &model,
                              (kiln_glm_options){.l2 = penalty, .no_intercept = 1}, false, false));
            assert_true(fit.report.converged || type == KILN_F32);
            if (fit.report.converged)
                assert_true(inverse_gaussian_at(&d, fit.w[0], penalty) <= least + 1e-3L * fabsl(least));
            glm_fit_free(&fit);
        }
    glm_data_free(&d);
}

/* Counts of a million, columns of years and of millionths, a constant column and one that another one and the
 * intercept make: with standard errors its coefficient goes to these, also where the start had one. */
static void awkward_columns(void **state) {
    (void)state;
    const struct model model = model_of(KILN_POISSON, KILN_LINK_LOG);
    struct glm_data d = glm_data_new(&model, M, 5, 21);
    for (int i = 0; i < d.m; i++) {
        double *x = d.X + i * 5;
        const double u = x[0], v = x[1];
        x[0] = 2000 + floor(10 * u);
        x[1] = 1e-6 * v;
        x[2] = 7;
        x[3] = 3 - 2 * x[4];
        d.offset[i] = 0;
        d.y[i] = floor(exp(14 + 0.1 * floor(10 * u) + 0.5 * v + 0.2 * x[3]));
    }
    struct glm_fit fit;
    const struct run run = {devices[0], KILN_F64, KILN_DENSE, NULL};
    assert_ok(glm_run(&fit, &run, &d, &model, (kiln_glm_options){0}, true, true));
    assert_int_equal(fit.report.converged, 1);
    assert_true(near(fit.w[0], 0.1, 1e-5) && near(fit.w[1], 5e5, 1e-5) && fit.w[2] == 0);
    assert_true(near(fit.w[3], 0.2, 1e-5) && fit.w[4] == 0);
    assert_true(fit.errors[0] > 0 && fit.errors[1] > 0 && fit.errors[3] > 0);
    assert_true(isnan(fit.errors[2]) && isnan(fit.errors[4]));
    struct glm_fit plain; /* counts as many parameters: neither the constant column nor the dependent one */
    assert_ok(glm_run(&plain, &run, &d, &model, (kiln_glm_options){0}, true, false));
    assert_true(near(kiln_report_figure(&plain.report, "aic"), kiln_report_figure(&fit.report, "aic"), 1e-9));
    glm_fit_free(&plain);
    const double w = fit.w[3], b = fit.b, error = fit.errors[3];
    fit.w[4] = 0.5;
    fit.w[3] += 0.25;
    fit.b -= 0.75;
    assert_ok(glm_run(&fit, &run, &d, &model, (kiln_glm_options){.warm_start = 1}, true, true));
    assert_true(fit.report.converged && fit.report.iterations == 0);
    assert_true(near(fit.w[3], w, 1e-9) && fit.w[4] == 0 && near(fit.b, b, 1e-9));
    assert_true(near(fit.errors[3], error, 1e-6));
    glm_fit_free(&fit);
    glm_data_free(&d);
}

/* Targets in another unit, which the log link's intercept and the canonical link's coefficients take up. */
static void units_of_targets(void **state) {
    (void)state;
    static const struct {
        kiln_family family;
        kiln_link link;
        double parameter, f64, f32; /* powers of 10, of either sign, that the type's range leaves room for */
    } all[] = {{KILN_GAUSSIAN, KILN_LINK_LOG, 0, 30, 15},
               {KILN_GAMMA, KILN_LINK_LOG, 0, 100, 30},
               {KILN_GAMMA, KILN_LINK_INVERSE, 0, 30, 15},
               {KILN_INVERSE_GAUSSIAN, KILN_LINK_LOG, 0, 30, 25},
               {KILN_INVERSE_GAUSSIAN, KILN_LINK_INVERSE_SQUARED, 0, 20, 6},
               {KILN_TWEEDIE, KILN_LINK_LOG, 1.5, 30, 20},
               {KILN_TWEEDIE, KILN_LINK_LOG, 2.5, 30, 10}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int way = 0; way < 4; way++) {
            const struct model model = {all[i].family, all[i].link, all[i].parameter, 0};
            const struct run run = {devices[0], way / 2 ? KILN_F32 : KILN_F64, KILN_DENSE, NULL};
            const double power = way / 2 ? all[i].f32 : all[i].f64, unit = pow(10, way % 2 ? power : -power);
            struct glm_data d = glm_data_new(&model, M, N, 70 + i);
            struct glm_fit fit, scaled;
            assert_ok(glm_run(&fit, &run, &d, &model, (kiln_glm_options){0}, false, false));
            for (int r = 0; r < d.m; r++) d.y[r] *= unit;
            assert_ok(glm_run(&scaled, &run, &d, &model, (kiln_glm_options){0}, false, false));
            const double factor = model.link == KILN_LINK_LOG       ? 1
                                  : model.link == KILN_LINK_INVERSE ? unit
                                                                    : unit * unit;
            assert_true(fit.report.converged && scaled.report.converged);
            assert_true(scaled.report.iterations <= fit.report.iterations + 2);
            for (int j = 0; j < N; j++)
                assert_true(near(fit.w[j], scaled.w[j] * factor, way / 2 ? 1e-4 : 1e-7));
            glm_fit_free(&fit);
            glm_fit_free(&scaled);
            glm_data_free(&d);
        }
}

static double parameters_of(const struct run *run, const struct glm_data *d) {
    const struct model model = model_of(KILN_GAUSSIAN, KILN_LINK_IDENTITY);
    struct glm_fit fit;
    assert_ok(glm_run(&fit, run, d, &model, (kiln_glm_options){0}, true, false));
    assert_int_equal(fit.report.converged, 1);
    const double found = kiln_report_figure(&fit.report, "parameters");
    assert_false(isnan(kiln_report_figure(&fit.report, "aic")));
    glm_fit_free(&fit);
    return found;
}

/* Features of all levels of three text columns: one of each depends on the intercept and the others. A level
 * whose rows weigh nothing is no parameter. */
static void parameters_of_many_columns(void **state) {
    enum { ROWS = 1300, A = 260, B = 257, C = 3, COLUMNS = A + B + C };
    (void)state;
    const struct model model = model_of(KILN_GAUSSIAN, KILN_LINK_IDENTITY);
    const struct run run = {devices[0], KILN_F64, KILN_CSR, NULL};
    struct glm_data d = glm_data_new(&model, ROWS, COLUMNS, 5);
    memset(d.X, 0, sizeof *d.X * ROWS * COLUMNS);
    for (int i = 0; i < ROWS; i++) {
        double *row = d.X + (size_t)i * COLUMNS;
        row[i % A] = row[A + i * 7 % B] = row[A + B + i * i % C] = 1;
        d.weights[i] = 1 + i % 2;
    }
    /* i^2 mod 3 is never 2: that column is empty */
    assert_true(parameters_of(&run, &d) == 1 + COLUMNS - 3 - 1);
    for (int i = 0; i < ROWS; i++)
        if (i % A < 3) d.weights[i] = 0;
    assert_true(parameters_of(&run, &d) == 1 + COLUMNS - 3 - 1 - 3);
    glm_data_free(&d);
}

static int open_devices(void **state) {
    (void)state;
    static const char *const names[] = {"cpu", "opencl"};
    for (int i = 0; i < 2; i++) {
        if (kiln_device_open(&devices[device_count], names[i], NULL) == KILN_OK)
            device_count++;
        else
            printf("skip %s: %s\n", names[i], kiln_last_error()->message);
    }
    return device_count == 0;
}

static int close_devices(void **state) {
    (void)state;
    while (device_count > 0) kiln_device_close(devices[--device_count]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_times_links),
        cmocka_unit_test(without_an_intercept),
        cmocka_unit_test(on_every_device),
        cmocka_unit_test(weights_repeat_rows),
        cmocka_unit_test(penalty_and_warm_start),
        cmocka_unit_test(l1_of_every_family),
        cmocka_unit_test(no_optimum),
        cmocka_unit_test(a_step_too_far),
        cmocka_unit_test(awkward_columns),
        cmocka_unit_test(units_of_targets),
        cmocka_unit_test(parameters_of_many_columns),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
