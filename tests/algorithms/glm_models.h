/* This header has what the tests of generalised linear models share: the models from their definitions in
 * long double, data that suit them, and runs of kiln_glm on host arrays. */
#ifndef GLM_MODELS_H
#define GLM_MODELS_H

#include "algorithms/least_squares.h"

struct model {
    kiln_family family;
    kiln_link link; /* not the default */
    double parameter, power;
};

/* mu and d mu / d eta. */
static inline void mean_of(const struct model *model, long double eta, long double *mu, long double *slope) {
    const long double pi = 3.141592653589793238462643383279502884L;
    switch (model->link) {
    case KILN_LINK_LOG: *mu = *slope = expl(eta); break;
    case KILN_LINK_INVERSE: *mu = 1 / eta, *slope = -1 / (eta * eta); break;
    case KILN_LINK_INVERSE_SQUARED: *mu = powl(eta, -0.5L), *slope = -0.5L * powl(eta, -1.5L); break;
    case KILN_LINK_SQRT: *mu = eta * eta, *slope = 2 * eta; break;
    case KILN_LINK_LOGIT: *mu = 1 / (1 + expl(-eta)), *slope = *mu / (1 + expl(eta)); break;
    case KILN_LINK_PROBIT:
        *mu = erfcl(-eta / sqrtl(2)) / 2, *slope = expl(-eta * eta / 2) / sqrtl(2 * pi);
        break;
    case KILN_LINK_CLOGLOG: *mu = -expm1l(-expl(eta)), *slope = expl(eta - expl(eta)); break;
    case KILN_LINK_CAUCHIT: *mu = 0.5L + atanl(eta) / pi, *slope = 1 / (pi * (1 + eta * eta)); break;
    case KILN_LINK_POWER:
        *mu = powl(eta, 1 / (long double)model->power), *slope = *mu / ((long double)model->power * eta);
        break;
    default: *mu = eta, *slope = 1; break;
    }
}

/* psi(x) and psi'(x) as differences of lgammal would lose digits: by their recurrences and series. */
static inline long double digamma_of(long double x) {
    long double sum = 0;
    for (; x < 40; x++) sum -= 1 / x;
    const long double z = 1 / (x * x);
    return sum + logl(x) - 1 / (2 * x) - z / 12 + z * z / 120 - z * z * z / 252 + z * z * z * z / 240;
}

static inline long double trigamma_of(long double x) {
    long double sum = 0;
    for (; x < 40; x++) sum += 1 / (x * x);
    const long double z = 1 / (x * x);
    return sum + 1 / x + z / 2 + z / x / 6 - z * z / x / 30 + z * z * z / x / 42 - z * z * z * z / x / 30;
}

static inline long double beta_slope(long double p, long double y, long double mu) {
    return p * (digamma_of(p * mu) - digamma_of(p - p * mu) - logl(y) + log1pl(-y));
}

static inline long double beta_loss(long double p, long double y, long double mu) {
    return lgammal(p * mu) + lgammal(p - p * mu) - lgammal(p) - p * mu * logl(y) - (p - p * mu) * log1pl(-y);
}

static inline long double beta_best(long double p, long double y) {
    long double low = 0, high = 1;
    for (int i = 0; i < 70; i++) {
        const long double at = (low + high) / 2;
        *(beta_slope(p, y, at) > 0 ? &high : &low) = at;
    }
    return beta_loss(p, y, (low + high) / 2);
}

static inline long double variance_of(const struct model *model, long double mu) {
    switch (model->family) {
    case KILN_POISSON: return mu;
    case KILN_GAMMA: return mu * mu;
    case KILN_INVERSE_GAUSSIAN: return mu * mu * mu;
    case KILN_BINOMIAL: return mu * (1 - mu);
    case KILN_TWEEDIE: return powl(mu, model->parameter);
    case KILN_NEGATIVE_BINOMIAL: return mu + model->parameter * mu * mu;
    case KILN_BETA: return mu * (1 - mu) / (1 + model->parameter);
    default: return 1;
    }
}

/* - d log density / d mu, and the mean of its square. */
static inline long double score_of(const struct model *model, long double y, long double mu) {
    if (model->family == KILN_BETA) return beta_slope(model->parameter, y, mu);
    return (mu - y) / variance_of(model, mu);
}

static inline long double information_of(const struct model *model, long double mu) {
    const long double p = model->parameter;
    if (model->family == KILN_BETA) return p * p * (trigamma_of(p * mu) + trigamma_of(p - p * mu));
    return 1 / variance_of(model, mu);
}

static inline long double ylog(long double y, long double z) {
    return y == 0 ? 0 : y * logl(z);
}

/* The unit deviance: McCullagh and Nelder's table, Jorgensen for Tweedie. */
static inline long double deviance_of(const struct model *model, long double y, long double mu) {
    const long double a = model->parameter;
    switch (model->family) {
    case KILN_POISSON: return 2 * (ylog(y, y / mu) - y + mu);
    case KILN_GAMMA: return 2 * (-logl(y / mu) + (y - mu) / mu);
    case KILN_INVERSE_GAUSSIAN: return (y - mu) * (y - mu) / (mu * mu * y);
    case KILN_BINOMIAL: return 2 * (ylog(y, y / mu) + ylog(1 - y, (1 - y) / (1 - mu)));
    case KILN_TWEEDIE:
        return 2 * (powl(y, 2 - a) / ((1 - a) * (2 - a)) - y * powl(mu, 1 - a) / (1 - a) +
                    powl(mu, 2 - a) / (2 - a));
    case KILN_NEGATIVE_BINOMIAL:
        return 2 * (ylog(y, y / mu) - (y + 1 / a) * logl((1 + a * y) / (1 + a * mu)));
    case KILN_BETA: return 2 * (beta_loss(a, y, mu) - beta_best(a, y));
    default: return (y - mu) * (y - mu);
    }
}

/* The log of the density with weight s; `spread` is the dispersion where the family has one. */
static inline long double density_of(const struct model *model, long double y, long double s, long double mu,
                                     long double spread) {
    const long double pi = 3.141592653589793238462643383279502884L, k = 1 / spread,
                      a = 1 / (long double)model->parameter;
    switch (model->family) {
    case KILN_POISSON: return s * (ylog(y, mu) - mu - lgammal(y + 1));
    case KILN_GAMMA: return s * ((k - 1) * logl(y) - y * k / mu - k * logl(mu * spread) - lgammal(k));
    case KILN_INVERSE_GAUSSIAN:
        return s * -0.5L * (logl(2 * pi * spread * y * y * y) + (y - mu) * (y - mu) / (spread * mu * mu * y));
    case KILN_BINOMIAL:
        return lgammal(s + 1) - lgammal(s * y + 1) - lgammal(s - s * y + 1) +
               s * (ylog(y, mu) + ylog(1 - y, 1 - mu));
    case KILN_NEGATIVE_BINOMIAL:
        return s *
               (lgammal(y + a) - lgammal(a) - lgammal(y + 1) + ylog(y, mu / (mu + a)) - a * log1pl(mu / a));
    case KILN_BETA: return -s * (beta_loss(model->parameter, y, mu) + logl(y) + log1pl(-y));
    default: return -0.5L * (logl(2 * pi * spread / s) + s * (y - mu) * (y - mu) / spread);
    }
}

/* The middle of eta that suits the model: half a unit to either side is in its range, for the binomial a
 * quarter. */
static inline double middle_of(const struct model *model) {
    const bool share = model->family == KILN_BINOMIAL;
    switch (model->link) {
    case KILN_LINK_LOG: return share ? -1.5 : 0.5;
    case KILN_LINK_INVERSE: return 2.5;
    case KILN_LINK_INVERSE_SQUARED: return 2.5;
    case KILN_LINK_IDENTITY:
    case KILN_LINK_SQRT:
    case KILN_LINK_POWER: return share ? 0.5 : 2;
    default: return 0;
    }
}

struct glm_data {
    int m, n;
    double *X, *y, *weights, *offset;
};

/* Rows whose y scatters about the model's mean; weights whole numbers from 1 to 4, offsets small. Rounded to
 * f32. */
static inline struct glm_data glm_data_new(const struct model *model, int m, int n, uint64_t seed) {
    struct glm_data d = {m, n, new_doubles((int64_t)m * n), new_doubles(m), new_doubles(m), new_doubles(m)};
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < m; i++) {
        long double mu, slope, eta = middle_of(model);
        for (int j = 0; j < n; j++) {
            d.X[i * n + j] = (float)(2 * random_uniform(&state) - 1);
            eta += d.X[i * n + j] * (j % 2 ? -0.1L : 0.12L);
        }
        d.offset[i] = (float)(0.1 * random_uniform(&state) - 0.05);
        d.weights[i] = 1 + floor(4 * random_uniform(&state));
        mean_of(model, eta + d.offset[i], &mu, &slope);
        const double u = random_uniform(&state), y = (double)mu * (0.4 + 1.2 * u);
        switch (model->family) {
        case KILN_POISSON:
        case KILN_NEGATIVE_BINOMIAL: d.y[i] = floor(y + 0.7); break;
        case KILN_BINOMIAL: d.y[i] = floor(d.weights[i] * fmin(y, 1) + 0.5) / d.weights[i]; break;
        case KILN_TWEEDIE: d.y[i] = u < 0.3 && model->parameter < 2 ? 0 : (float)y; break;
        case KILN_BETA: d.y[i] = (float)fmax(fmin(y, 0.99), 0.01); break;
        case KILN_GAUSSIAN: d.y[i] = (float)((double)mu + 0.2 * (u - 0.5)); break;
        default: d.y[i] = (float)y; break;
        }
    }
    return d;
}

static inline void glm_data_free(struct glm_data *d) {
    free(d->X);
    free(d->y);
    free(d->weights);
    free(d->offset);
}

struct glm_fit {
    int n;
    double *w, b, *errors; /* n; n + 1 */
    kiln_report report;
};

/* options' weights and offset are those of the data if `weighted`, and the standard errors the fit's own if
 * `errors`. */
static inline kiln_status glm_run(struct glm_fit *fit, const struct run *run, const struct glm_data *d,
                                  const struct model *model, kiln_glm_options options, bool weighted,
                                  bool errors) {
    kiln_matrix *X = (run->format == KILN_CSR ? csr : dense)(run->device, run->type, d->m, d->n, d->X);
    kiln_matrix *y = dense(run->device, run->type, d->m, 1, d->y);
    kiln_matrix *s = dense(run->device, run->type, d->m, 1, d->weights);
    kiln_matrix *offset = dense(run->device, run->type, d->m, 1, d->offset);
    double *start = new_doubles(d->n + 1), *zeros = new_doubles(d->n + 1);
    if (options.warm_start) memcpy(start, fit->w, (size_t)d->n * sizeof *start);
    kiln_matrix *w = dense(run->device, run->type, d->n, 1, start);
    kiln_matrix *b = dense(run->device, run->type, 1, 1, options.warm_start ? &fit->b : zeros);
    const int count = d->n + !options.no_intercept;
    kiln_matrix *E = dense(run->device, run->type, count, 1, zeros);
    options.family = model->family;
    options.link = model->link;
    options.parameter = model->parameter;
    options.link_power = model->power;
    if (weighted) options.weights = s, options.offset = offset;
    if (errors) options.standard_errors = E;
    const kiln_report none = {0};
    if (!options.warm_start) *fit = (struct glm_fit){0};
    kiln_report_free(&fit->report);
    fit->report = none;
    const kiln_status status = kiln_glm(w, b, X, y, &options, &fit->report);
    if (status == KILN_OK) {
        free(fit->w);
        free(fit->errors);
        fit->n = d->n;
        fit->w = values_of(w);
        double *intercept = values_of(b);
        fit->b = *intercept;
        free(intercept);
        fit->errors = values_of(E);
    }
    kiln_matrix *const all[] = {X, y, s, offset, w, b, E};
    for (int i = 0; i < 7; i++) kiln_matrix_free(all[i]);
    free(start);
    free(zeros);
    return status;
}

static inline void glm_fit_free(struct glm_fit *fit) {
    free(fit->w);
    free(fit->errors);
    kiln_report_free(&fit->report);
}

#endif
