/* The losses of kiln.h from their definitions, naively: mu from the link, the log-likelihood and the variance
 * from mu.
 *
 * How far a device may be off follows from where its errors come from. A row's predictor eta is a sum, off by
 * at most delta = gate(terms) * u * (the sum of magnitudes); what that does to f(eta) is found by evaluating
 * f at eta - delta and eta + delta. To it comes the rounding of the formula itself, FORMULA units of the
 * magnitudes it adds up: the accuracy that OpenCL 1.2 asks of the functions in it (up to 16 ulp). */
#include "reference.h"

#include <math.h>
#include <stdlib.h>

enum { FORMULA = 16, FORMULA_GLM = 96 };

/* f at a point, and the sum of the magnitudes that its formula adds up. */
struct terms {
    long double f, size;
};
struct row_loss {
    struct terms value, g, h;
};

static struct terms terms(long double f, long double size) {
    return (struct terms){f, fabsl(size)};
}

/* ------------------------------------------------------------------------- generalised linear models */

/* mu, its distance from 1 (exact also where mu is nearly 1), d mu / d eta, and the second derivative over
 * the first. */
struct mean {
    long double mu, rest, slope, bend;
};

static struct mean mean_at(int link, long double power, long double eta) {
    const long double pi = 3.141592653589793238462643383279502884L, r = sqrtl(0.5L);
    switch ((kiln_link)link) {
    case KILN_LINK_LOG: return (struct mean){expl(eta), -expm1l(eta), expl(eta), 1};
    case KILN_LINK_INVERSE: return (struct mean){1 / eta, 1 - 1 / eta, -1 / (eta * eta), -2 / eta};
    case KILN_LINK_INVERSE_SQUARED:
        return (struct mean){1 / sqrtl(eta), 1 - 1 / sqrtl(eta), -0.5L / (eta * sqrtl(eta)), -1.5L / eta};
    case KILN_LINK_SQRT: return (struct mean){eta * eta, 1 - eta * eta, 2 * eta, 1 / eta};
    case KILN_LINK_LOGIT: {
        const long double mu = 1 / (1 + expl(-eta)), rest = 1 / (1 + expl(eta));
        return (struct mean){mu, rest, mu * rest, rest - mu};
    }
    case KILN_LINK_PROBIT:
        return (struct mean){erfcl(-eta * r) / 2, erfcl(eta * r) / 2, expl(-eta * eta / 2) / sqrtl(2 * pi),
                             -eta};
    case KILN_LINK_CLOGLOG:
        return (struct mean){-expm1l(-expl(eta)), expl(-expl(eta)), expl(eta - expl(eta)), 1 - expl(eta)};
    case KILN_LINK_CAUCHIT:
        return (struct mean){atan2l(1, -eta) / pi, atan2l(1, eta) / pi, 1 / (pi * (1 + eta * eta)),
                             -2 * eta / (1 + eta * eta)};
    case KILN_LINK_POWER: {
        const long double mu = powl(eta, 1 / power);
        return (struct mean){mu, 1 - mu, mu / (power * eta), (1 / power - 1) / eta};
    }
    default: return (struct mean){eta, 1 - eta, 1, 0};
    }
}

/* x log z, 0 where x is: the limit that a likelihood wants. */
static long double x_log(long double x, long double z) {
    return x == 0 ? 0 : x * logl(z);
}

/* The derivatives of lgammal, by their recurrences and series. */
static long double digammal(long double x) {
    long double sum = 0;
    for (; x < 40; x++) sum -= 1 / x;
    const long double z = 1 / (x * x);
    return sum + logl(x) - 1 / (2 * x) - z / 12 + z * z / 120 - z * z * z / 252 + z * z * z * z / 240 -
           z * z * z * z * z / 132;
}

static long double trigammal(long double x) {
    long double sum = 0;
    for (; x < 40; x++) sum += 1 / (x * x);
    const long double z = 1 / (x * x);
    return sum + 1 / x + z / 2 + z / x / 6 - z * z / x / 30 + z * z * z / x / 42 - z * z * z * z / x / 30 +
           z * z * z * z * z / x * 5 / 66;
}

/* d loss / d mu over the precision, with the magnitudes of its terms. */
static struct terms beta_slope(const struct host_loss *l, long double y, struct mean m) {
    const long double up = digammal(l->parameter * m.mu), down = digammal(l->parameter * m.rest),
                      won = logl(y), lost = log1pl(-y);
    return terms(up - down - won + lost, fabsl(up) + fabsl(down) + fabsl(won) + fabsl(lost));
}

static struct terms beta_loss(const struct host_loss *l, long double y, struct mean m) {
    const long double p = l->parameter, up = lgammal(p * m.mu), down = lgammal(p * m.rest), all = lgammal(p),
                      won = p * m.mu * logl(y), lost = p * m.rest * log1pl(-y);
    return terms(up + down - all - won - lost,
                 fabsl(up) + fabsl(down) + fabsl(all) + fabsl(won) + fabsl(lost));
}

/* The best mean of y, by bisection of its logit. */
static struct mean beta_best(const struct host_loss *l, long double y) {
    long double low = -200, high = 200;
    for (int i = 0; i < 100; i++) {
        const long double at = (low + high) / 2;
        const struct mean m = {.mu = 1 / (1 + expl(-at)), .rest = 1 / (1 + expl(at))};
        *(beta_slope(l, y, m).f > 0 ? &high : &low) = at;
    }
    return (struct mean){.mu = 1 / (1 + expl(-low)), .rest = 1 / (1 + expl(low))};
}

static struct terms minus_log_likelihood(const struct host_loss *l, long double y, struct mean m) {
    const long double mu = m.mu, a = l->parameter;
    long double one, two;
    switch ((kiln_family)l->family) {
    case KILN_GAUSSIAN:
        return terms((mu - y) * (mu - y) / 2, (fabsl(mu) + fabsl(y)) * (fabsl(mu) + fabsl(y)));
    case KILN_POISSON: one = mu, two = -x_log(y, mu); break;
    case KILN_GAMMA: one = y / mu, two = logl(mu); break;
    case KILN_INVERSE_GAUSSIAN: one = y / (2 * mu * mu), two = -1 / mu; break;
    case KILN_BINOMIAL: one = -x_log(y, mu), two = -x_log(1 - y, m.rest); break;
    case KILN_BETA: return beta_loss(l, y, m);
    case KILN_TWEEDIE: one = powl(mu, 2 - a) / (2 - a), two = -y * powl(mu, 1 - a) / (1 - a); break;
    default: one = (y + 1 / a) * log1pl(a * mu), two = -x_log(y, a * mu); break;
    }
    return terms(one + two, fabsl(one) + fabsl(two));
}

static long double variance(const struct host_loss *l, struct mean m) {
    switch ((kiln_family)l->family) {
    case KILN_POISSON: return m.mu;
    case KILN_GAMMA: return m.mu * m.mu;
    case KILN_INVERSE_GAUSSIAN: return m.mu * m.mu * m.mu;
    case KILN_BINOMIAL: return m.mu * m.rest;
    case KILN_TWEEDIE: return powl(m.mu, l->parameter);
    case KILN_BETA: return m.mu * m.rest / (1 + l->parameter);
    case KILN_NEGATIVE_BINOMIAL: return m.mu + l->parameter * m.mu * m.mu;
    default: return 1;
    }
}

/* V'(mu) / V(mu). */
static long double spread_rate(const struct host_loss *l, struct mean m) {
    switch ((kiln_family)l->family) {
    case KILN_POISSON: return 1 / m.mu;
    case KILN_GAMMA: return 2 / m.mu;
    case KILN_INVERSE_GAUSSIAN: return 3 / m.mu;
    case KILN_BINOMIAL: return 1 / m.mu - 1 / m.rest;
    case KILN_TWEEDIE: return l->parameter / m.mu;
    case KILN_NEGATIVE_BINOMIAL: return (1 + 2 * l->parameter * m.mu) / variance(l, m);
    default: return 0;
    }
}

/* The second derivative, expected + g (mu'' / mu' - V' mu' / V) but where the mean's slope has the score of
 * beta, or a 4096th of the expected one; size: of the terms that a formula may add up. */
static struct terms curvature(const struct host_loss *l, struct mean m, struct terms g,
                              long double expected) {
    const long double rate = l->family == KILN_BETA ? 0 : spread_rate(l, m) * m.slope,
                      own = expected + g.f * (m.bend - rate);
    return terms(fmaxl(own, expected / 4096), expected + g.size * (fabsl(m.bend) + fabsl(rate)));
}

static struct row_loss glm_at(const struct host_loss *l, long double y, long double eta) {
    const struct mean m = mean_at(l->link, l->power, eta);
    if (l->family == KILN_BETA) {
        const long double p = l->parameter, steep = p * m.slope,
                          h = steep * steep * (trigammal(p * m.mu) + trigammal(p * m.rest));
        const struct terms slope = beta_slope(l, y, m), g = terms(steep * slope.f, steep * slope.size);
        return (struct row_loss){beta_loss(l, y, m), g, curvature(l, m, g, h)};
    }
    const long double slope = m.slope / variance(l, m);
    const struct terms g = terms((m.mu - y) * slope, (fabsl(m.mu) + fabsl(y)) * slope);
    return (struct row_loss){minus_log_likelihood(l, y, m), g, curvature(l, m, g, m.slope * slope)};
}

/* ------------------------------------------------------------------------------------ other losses */

static struct row_loss loss_at(const struct host_loss *l, long double y, long double eta) {
    const long double size = 1 + fabsl(eta) + fabsl(y) + fabsl((long double)l->parameter);
    long double slack, sign = eta < y ? -1 : 1;
    switch ((kiln_loss_kind)l->kind) {
    case KILN_LOSS_LOGISTIC: {
        const long double mu = 1 / (1 + expl(-eta)), rest = 1 / (1 + expl(eta));
        const long double value = (1 - y) * log1pl(expl(eta)) + y * log1pl(expl(-eta));
        return (struct row_loss){terms(value, value), terms((1 - y) * mu - y * rest, (1 - y) * mu + y * rest),
                                 terms(mu * rest, mu * rest)};
    }
    case KILN_LOSS_SQUARED_HINGE:
        sign = y > 0 ? -1 : 1;
        slack = 1 + sign * eta;
        break;
    case KILN_LOSS_SQUARED_EPSILON: slack = fabsl(eta - y) - l->parameter; break;
    case KILN_LOSS_GLM: return glm_at(l, y, eta);
    default:
        return (struct row_loss){terms((eta - y) * (eta - y) / 2, size * size), terms(eta - y, size), {1, 0}};
    }
    if (slack <= 0) slack = 0;
    return (struct row_loss){terms(slack * slack / 2, slack * size),
                             terms(sign * slack, slack > 0 ? size : 0), terms(slack > 0, 0)};
}

/* Returns what delta does to f, and rounding on top: the largest error of a correct row. */
static long double error_of(struct terms at, struct terms below, struct terms above, double rounding) {
    return fmaxl(fabsl(below.f - at.f), fabsl(above.f - at.f)) + rounding * at.size;
}

/* Adds a term to element e of a sum that may be off by its gate: the gauge takes in the term's own error. */
static void add(struct expected *out, int64_t e, long double term, long double error) {
    out->value[e] += term;
    out->gauge[e] += fabsl(term) + error / (out->gate * out->unit);
}

/* One row of the results that kiln_loss_gradient sums up; t, the rows' factors of X^T, has G's gate. */
struct gradient {
    struct expected *value, *t, *gb, *C;
};

static void one_column_row(struct gradient *to, const struct host_loss *l, int64_t i, long double s,
                           long double eta, long double delta) {
    const long double y = host_get(l->y, i);
    const double rounding = (l->kind == KILN_LOSS_GLM ? FORMULA_GLM : FORMULA) * to->t->unit;
    const struct row_loss at = loss_at(l, y, eta), low = loss_at(l, y, eta - delta),
                          high = loss_at(l, y, eta + delta);
    const long double error = s * error_of(at.g, low.g, high.g, rounding);
    add(to->value, 0, s * at.value.f, s * error_of(at.value, low.value, high.value, rounding));
    add(to->t, i, s * at.g.f, error);
    add(to->gb, 0, s * at.g.f, error);
    add(to->C, i, s * at.h.f, s * error_of(at.h, low.h, high.h, rounding));
}

/* eta and delta have k elements. With p the probabilities and q = 1 - p_label, which is the sum of the
 * others,
 *
 *   value = log(1 + sum of e^(eta_c - largest) over all others) + largest - eta_label,
 *   gradient p_c, of the label -q,
 *
 * of which every term is positive. What delta and an exponential's argument do to p_c is relative to it, and
 * to the value the sum of these over the other classes. First-order bounds are doubled to cover the rest. */
static void softmax_row(struct gradient *to, const struct host_loss *l, int64_t i, long double s, int64_t k,
                        const long double *eta, const long double *delta) {
    const int64_t label = (int64_t)host_get(l->y, i);
    const long double u = to->t->unit;
    int64_t at = 0;
    long double rest = 0, drift = 0, others = 0, off_others = 0, off_value = 0;
    for (int64_t c = 1; c < k; c++) at = eta[c] > eta[at] ? c : at;
    for (int64_t c = 0; c < k; c++) rest += c == at ? 0 : expl(eta[c] - eta[at]);
    for (int64_t c = 0; c < k; c++)
        drift += expl(eta[c] - eta[at]) / (1 + rest) *
                 (delta[c] + u * (fabsl(eta[c]) + fabsl(eta[at]) + FORMULA + (double)k));
    for (int64_t c = 0; c < k; c++) {
        const long double p = expl(eta[c] - eta[at]) / (1 + rest), size = fabsl(eta[c]) + fabsl(eta[at]);
        const long double error = 2 * p * (drift + delta[c] + u * (size + FORMULA));
        add(to->C, i * k + c, p, error);
        if (c == label) continue;
        others += p;
        off_others += error + 2 * u * p;
        off_value += p * (delta[c] + delta[label] + u * (size + fabsl(eta[label]) + FORMULA + (double)k));
        add(to->t, i * k + c, s * p, s * (error + 2 * u * p));
        add(to->gb, c, s * p, s * (error + 2 * u * p));
    }
    const long double value = log1pl(rest) + (eta[at] - eta[label]);
    off_others += (double)k * u * others;
    add(to->value, 0, s * value, 2 * s * off_value + s * FORMULA * u * value);
    add(to->t, i * k + label, -s * others, s * off_others);
    add(to->gb, label, -s * others, s * off_others);
}

static struct expected with_gate(kiln_type type, int64_t count, double terms_summed) {
    struct expected out = expected_new(type, count);
    out.gate = gate_for_terms(terms_summed + 2);
    return out;
}

/* X W + 1 b + offset with gauges. */
static struct expected predictors(const struct host_matrix *X, const struct host_matrix *W,
                                  const struct host_matrix *b, const struct host_matrix *offset) {
    struct expected eta = with_gate(X->type, X->rows * W->cols, (double)longest_row(X) + 2);
    reference_product(&eta, X, W);
    for (int64_t e = 0; e < eta.count; e++) {
        if (b) add(&eta, e, host_get(b, e % W->cols), 0);
        if (offset) add(&eta, e, host_get(offset, e), 0);
    }
    return eta;
}

static long double distance(const struct expected *of, int64_t e) {
    return of->gate * of->unit * of->gauge[e];
}

void reference_loss_gradient(struct expected *value, struct expected *G, struct expected *gb,
                             struct expected *C, const struct host_loss *loss, const struct host_matrix *X,
                             const struct host_matrix *W, const struct host_matrix *b) {
    const int64_t k = W->cols;
    struct expected eta = predictors(X, W, b, loss->offset);
    struct expected t = with_gate(X->type, X->rows * k, (double)longest_column(X));
    struct gradient to = {value, &t, gb, C};
    *G = with_gate(X->type, X->cols * k, (double)longest_column(X));
    *gb = with_gate(X->type, k, (double)X->rows);
    *C = with_gate(X->type, X->rows * (loss->kind == KILN_LOSS_SOFTMAX ? k : 1), 0);
    /* The sum of the losses is one of doubles: in f32 it loses nothing. */
    *value = with_gate(X->type, 1, X->type == KILN_F64 ? (double)X->rows : 0);
    long double *delta = malloc((size_t)k * sizeof *delta);
    if (!delta) abort();
    for (int64_t i = 0; i < X->rows; i++) {
        const long double s = loss->weights ? host_get(loss->weights, i) : 1;
        for (int64_t c = 0; c < k; c++) delta[c] = distance(&eta, i * k + c);
        if (loss->kind == KILN_LOSS_SOFTMAX)
            softmax_row(&to, loss, i, s, k, eta.value + i * k, delta);
        else
            one_column_row(&to, loss, i, s, eta.value[i], delta[0]);
    }
    free(delta);
    reference_transposed_product(G, X, &t, k);
    expected_free(&eta);
    expected_free(&t);
}

void reference_loss_hessian(struct expected *Q, struct expected *qb, const struct host_loss *loss,
                            const struct host_matrix *C, const struct host_matrix *X,
                            const struct host_matrix *P, const struct host_matrix *pb, double beta,
                            const struct host_matrix *Z) {
    const int64_t k = P->cols;
    const bool softmax = loss->kind == KILN_LOSS_SOFTMAX;
    struct expected q = predictors(X, P, pb, NULL);
    struct expected t = with_gate(X->type, X->rows * k, (double)longest_column(X));
    *Q = with_gate(X->type, X->cols * k, (double)longest_column(X) + 1);
    *qb = with_gate(X->type, k, (double)X->rows);
    for (int64_t i = 0; i < X->rows; i++) {
        const long double s = softmax && loss->weights ? host_get(loss->weights, i) : 1;
        /* what all q have in common counts for nothing: they are taken about that of the likeliest class */
        const long double *row = q.value + i * k;
        long double mean = 0, drift = 0, peak = 0, off_peak = 0;
        int64_t at = 0;
        for (int64_t c = 1; c < k; c++) at = host_get(C, i * k + c) > host_get(C, i * k + at) ? c : at;
        if (softmax) peak = row[at], off_peak = distance(&q, i * k + at);
        for (int64_t c = 0; softmax && c < k; c++) {
            const long double p = host_get(C, i * k + c);
            mean += p * (row[c] - peak);
            if (c != at)
                drift += p * (distance(&q, i * k + c) + off_peak + (double)k * q.unit * fabsl(row[c] - peak));
        }
        for (int64_t c = 0; c < k; c++) {
            const int64_t e = i * k + c;
            const bool own = softmax && c == at;
            const long double weight = s * host_get(C, e), term = weight * (row[c] - peak - mean);
            const long double off = own ? 0 : distance(&q, e) + off_peak;
            const long double size = fabsl(row[c] - peak) + fabsl(mean);
            const long double error = fabsl(weight) * (off + drift + 4 * q.unit * size);
            add(&t, e, term, error);
            add(qb, c, term, error);
        }
    }
    reference_transposed_product(Q, X, &t, k);
    reference_scale_and_add(Q, 1, beta, Z);
    expected_free(&q);
    expected_free(&t);
}

void reference_cg_pass(struct expected *Q, struct expected *sums, struct expected *curvature,
                       const struct host_matrix *X, const struct host_matrix *weights,
                       const struct host_matrix *P, const struct host_matrix *shift,
                       const struct host_matrix *Z) {
    const int64_t k = P->cols;
    struct expected q = predictors(X, P, shift, NULL);
    struct expected t = with_gate(X->type, X->rows * k, (double)longest_column(X));
    *Q = with_gate(X->type, X->cols * k, (double)longest_column(X) + 1);
    *sums = with_gate(X->type, k, (double)X->rows);
    *curvature = with_gate(X->type, k, (double)X->rows);
    for (int64_t e = 0; e < X->rows * k; e++) {
        const long double s = weights ? host_get(weights, e / k) : 1, near = fabsl(s) * distance(&q, e);
        add(&t, e, s * q.value[e], near);
        add(sums, e % k, s * q.value[e], near);
        add(curvature, e % k, s * q.value[e] * q.value[e], near * (2 * fabsl(q.value[e]) + distance(&q, e)));
    }
    reference_transposed_product(Q, X, &t, k);
    reference_scale_and_add(Q, 1, 1, Z);
    expected_free(&q);
    expected_free(&t);
}

static long double mean_response(const struct host_loss *l, long double eta) {
    if (l->kind == KILN_LOSS_LOGISTIC) return 1 / (1 + expl(-eta));
    return l->kind == KILN_LOSS_GLM ? mean_at(l->link, l->power, eta).mu : eta;
}

void reference_loss_mean(struct expected *M, const struct host_loss *loss, const struct host_matrix *Eta) {
    const int64_t k = Eta->cols;
    *M = with_gate(Eta->type, Eta->rows * k, FORMULA_GLM);
    long double largest = 0, sum = 0; /* of the row */
    for (int64_t e = 0; e < M->count; e++) {
        const long double eta = host_get(Eta, e);
        if (loss->kind != KILN_LOSS_SOFTMAX) {
            add(M, e, mean_response(loss, eta), 0);
            continue;
        }
        if (e % k == 0) {
            largest = -INFINITY;
            sum = 0;
            for (int64_t c = 0; c < k; c++) largest = fmaxl(largest, host_get(Eta, e + c));
            for (int64_t c = 0; c < k; c++) sum += expl(host_get(Eta, e + c) - largest);
        }
        const long double p = expl(eta - largest) / sum;
        add(M, e, p, p * 2 * M->unit * (fabsl(eta) + fabsl(largest) + FORMULA + (double)k));
    }
}

/* ------------------------------------------------------------------------------------- deviance */

/* The saturated log-likelihood is the one at mu = y. */
static struct terms least_loss(const struct host_loss *l, long double y) {
    if (l->family == KILN_TWEEDIE && y == 0) return terms(0, 0);
    const struct mean saturated =
        l->family == KILN_BETA ? beta_best(l, y) : (struct mean){.mu = y, .rest = 1 - y};
    return minus_log_likelihood(l, y, saturated);
}

/* Minus that log-likelihood: s * its loss, and the terms beyond it. The logarithm of Gamma is one of a number
 * of 8 or more, less that of a product: terms of 20 at most beside a result near 0, for up to three. */
static struct terms least(const struct host_loss *l, long double y, long double s) {
    const long double a = l->parameter;
    const struct terms best = least_loss(l, y);
    long double constant, size;
    switch ((kiln_family)l->family) {
    case KILN_GAUSSIAN: return terms(-logl(s) / 2, logl(s));
    case KILN_GAMMA: return terms(s * logl(y), s * logl(y));
    case KILN_INVERSE_GAUSSIAN: return terms(1.5L * s * logl(y), s * logl(y));
    case KILN_TWEEDIE: return terms(NAN, 0);
    case KILN_POISSON: constant = size = s * lgammal(y + 1); break;
    case KILN_BINOMIAL: {
        const long double all = lgammal(s + 1), part = lgammal(s * y + 1), rest = lgammal(s * (1 - y) + 1);
        constant = part + rest - all, size = fabsl(part) + fabsl(rest) + fabsl(all) + 4;
        break;
    }
    case KILN_BETA:
        constant = s * (logl(y) + log1pl(-y)), size = s * (fabsl(logl(y)) + fabsl(log1pl(-y)));
        break;
    default: {
        const long double t = lgammal(y + 1 / a), z = lgammal(1 / a), n = lgammal(y + 1);
        constant = -s * (t - z - n), size = s * (fabsl(t) + fabsl(z) + fabsl(n) + 1);
    }
    }
    return terms(s * best.f + constant, s * best.size + size);
}

static struct terms deviance(const struct host_loss *l, long double y, struct mean m) {
    const struct terms at = minus_log_likelihood(l, y, m), best = least_loss(l, y);
    return terms(2 * (at.f - best.f), 2 * (at.size + best.size));
}

void reference_loss_deviance(struct expected *D, const struct host_loss *loss,
                             const struct host_matrix *Eta) {
    *D = with_gate(Eta->type, 3 * Eta->rows, FORMULA_GLM);
    for (int64_t i = 0; i < Eta->rows; i++) {
        const long double y = host_get(loss->y, i), s = loss->weights ? host_get(loss->weights, i) : 1;
        const struct mean m = mean_at(loss->link, loss->power, host_get(Eta, i));
        const struct terms d = deviance(loss, y, m), c = least(loss, y, s);
        const long double apart = (fabsl(y) + fabsl(m.mu)) * (fabsl(y) + fabsl(m.mu)) / variance(loss, m);
        const struct terms column[] = {terms(s * d.f, s * d.size),
                                       terms(s * (y - m.mu) * (y - m.mu) / variance(loss, m), s * apart), c};
        for (int t = 0; t < 3 && s != 0; t++) {
            D->value[3 * i + t] = column[t].f;
            D->gauge[3 * i + t] = column[t].size;
        }
    }
}
