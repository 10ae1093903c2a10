/* Losses by the textbook: the mean mu(eta), its slope, the family's variance, the loss as a function of
 * mu. */
#include "algorithms/verify/verify.h"

static const long double pi = 3.14159265358979323846264338327950288L;

double ki_verify_link(const kiln_loss *loss, double mu) {
    switch (ki_link_of(loss)) {
    case KILN_LINK_LOG: return log(mu);
    case KILN_LINK_INVERSE: return 1 / mu;
    case KILN_LINK_INVERSE_SQUARED: return 1 / (mu * mu);
    case KILN_LINK_SQRT: return sqrt(mu);
    case KILN_LINK_LOGIT: return log(mu / (1 - mu));
    case KILN_LINK_CLOGLOG: return log(-log1p(-mu));
    case KILN_LINK_CAUCHIT: return tan((double)pi * (mu - 0.5));
    case KILN_LINK_POWER: return pow(mu, loss->link_power);
    case KILN_LINK_PROBIT: return 0;
    default: return mu;
    }
}

/* log(1 + e^x). */
static long double softplus(long double x) {
    return fmaxl(x, 0) + log1pl(expl(-fabsl(x)));
}

/* The mean, 1 - the mean, and the mean's slope. */
struct response {
    long double mu, nu, slope;
};

static struct response respond(const kiln_loss *loss, long double eta) {
    const long double p = loss->link_power, root = sqrtl(2);
    switch (ki_link_of(loss)) {
    case KILN_LINK_LOG: return (struct response){expl(eta), -expm1l(eta), expl(eta)};
    case KILN_LINK_INVERSE: return (struct response){1 / eta, 1 - 1 / eta, -1 / (eta * eta)};
    case KILN_LINK_INVERSE_SQUARED:
        return (struct response){1 / sqrtl(eta), 1 - 1 / sqrtl(eta), -0.5L / (eta * sqrtl(eta))};
    case KILN_LINK_SQRT: return (struct response){eta * eta, 1 - eta * eta, 2 * eta};
    case KILN_LINK_LOGIT: {
        const long double mu = 1 / (1 + expl(-eta)), nu = 1 / (1 + expl(eta));
        return (struct response){mu, nu, mu * nu};
    }
    case KILN_LINK_PROBIT:
        return (struct response){erfcl(-eta / root) / 2, erfcl(eta / root) / 2,
                                 expl(-eta * eta / 2) / sqrtl(2 * pi)};
    case KILN_LINK_CLOGLOG:
        return (struct response){-expm1l(-expl(eta)), expl(-expl(eta)), expl(eta - expl(eta))};
    case KILN_LINK_CAUCHIT: {
        const long double mu = atan2l(1, -eta) / pi, nu = atan2l(1, eta) / pi;
        return (struct response){mu, nu, 1 / (pi * (1 + eta * eta))};
    }
    case KILN_LINK_POWER:
        return (struct response){powl(eta, 1 / p), 1 - powl(eta, 1 / p), powl(eta, 1 / p - 1) / p};
    default: return (struct response){eta, 1 - eta, 1};
    }
}

static bool is_logistic(const kiln_loss *loss) {
    return loss->family == KILN_BINOMIAL && ki_link_of(loss) == KILN_LINK_LOGIT;
}

static bool in_range(const kiln_loss *loss, long double eta, const struct response *at) {
    const kiln_link link = ki_link_of(loss);
    const bool gaussian = loss->family == KILN_GAUSSIAN;
    if (is_logistic(loss)) return true; /* whose logarithms come from eta */
    if (loss->family == KILN_BINOMIAL && (at->nu <= 0 || at->mu <= 0)) return false;
    if (link == KILN_LINK_IDENTITY) return gaussian || eta > 0;
    if (link == KILN_LINK_INVERSE) return gaussian ? eta != 0 : eta > 0;
    if (link == KILN_LINK_INVERSE_SQUARED || link == KILN_LINK_SQRT || link == KILN_LINK_POWER)
        return eta > 0;
    return true;
}

/* log mu, which near 1 is in the digits of nu = 1 - mu. */
static long double log_of(long double mu, long double nu) {
    return fabsl(nu) < 0.5L ? log1pl(-nu) : logl(mu);
}

/* The logarithms of the mean and of 1 - the mean. */
struct logs {
    long double mu, nu;
};

static struct logs logs_of(const kiln_loss *loss, long double eta, const struct response *at) {
    if (is_logistic(loss)) return (struct logs){-softplus(-eta), -softplus(eta)};
    return (struct logs){log_of(at->mu, at->nu), log_of(at->nu, at->mu)};
}

/* Two terms whose sum is the loss. */
static struct ki_verify_value sum_of(long double a, long double b) {
    return (struct ki_verify_value){a + b, fabsl(a) + fabsl(b)};
}

/* c (a + b), which c a and c b that are both infinite would have no value for. */
static struct ki_verify_value product_of(long double c, long double a, long double b) {
    return (struct ki_verify_value){c * (a + b), fabsl(c) * (fabsl(a) + fabsl(b))};
}

static struct ki_verify_value value_at(const kiln_loss *loss, double y, long double eta,
                                       const struct response *at) {
    const struct logs logs = logs_of(loss, eta, at);
    const long double mu = at->mu, p = loss->parameter, won = y == 0 ? 0 : y * logs.mu;
    switch (loss->family) {
    case KILN_POISSON: return sum_of(mu, -won);
    case KILN_GAMMA: return sum_of(y / mu, logl(mu));
    case KILN_INVERSE_GAUSSIAN: return product_of(1 / mu, y / (2 * mu), -1);
    case KILN_BINOMIAL: return sum_of(-won, y == 1 ? 0 : (y - 1) * logs.nu);
    case KILN_TWEEDIE:
        /* an infinite power of a mean near 0 counts for nothing where y is 0 */
        return sum_of(powl(mu, 2 - p) / (2 - p), y == 0 ? 0 : y * powl(mu, 1 - p) / (p - 1));
    case KILN_NEGATIVE_BINOMIAL: return sum_of((y + 1 / p) * log1pl(p * mu), -won);
    default: return sum_of((mu - y) * (mu - y) / 2, 0);
    }
}

static long double variance_at(const kiln_loss *loss, const struct response *at) {
    const long double mu = at->mu, p = loss->parameter;
    switch (loss->family) {
    case KILN_POISSON: return mu;
    case KILN_GAMMA: return mu * mu;
    case KILN_INVERSE_GAUSSIAN: return mu * mu * mu;
    case KILN_BINOMIAL: return mu * at->nu;
    case KILN_TWEEDIE: return powl(mu, p);
    case KILN_NEGATIVE_BINOMIAL: return mu + p * mu * mu;
    default: return 1;
    }
}

struct ki_response ki_verify_response(const kiln_loss *loss, long double eta) {
    const struct response at = respond(loss, eta);
    const struct logs logs = logs_of(loss, eta, &at);
    return (struct ki_response){at.mu, at.nu, at.slope, variance_at(loss, &at), logs.mu, logs.nu};
}

/* The loss's second derivative where Newton's method goes by that: under a log link, of families for which
 * it is positive. */
static long double own_curvature(const kiln_loss *loss, double y, long double mu, long double expected) {
    const long double p = loss->parameter;
    if (ki_link_of(loss) != KILN_LINK_LOG) return expected;
    switch (loss->family) {
    case KILN_GAMMA: return y / mu;
    case KILN_TWEEDIE: return (2 - p) * powl(mu, 2 - p) + (y == 0 ? 0 : (p - 1) * y * powl(mu, 1 - p));
    case KILN_NEGATIVE_BINOMIAL: return mu * (1 + p * y) / ((1 + p * mu) * (1 + p * mu));
    default: return expected;
    }
}

/* The terms of training's slope under a logit, mu - y: next to 1 these lose each other's digits, and mu -
 * 0 none. */
static long double logit_size(double y, long double mu) {
    return y == 0 ? mu : mu + y;
}

static struct ki_verify_value glm_loss(struct ki_verify_slope *slope, const kiln_loss *loss, double y,
                                       long double eta) {
    const struct response at = respond(loss, eta);
    *slope = (struct ki_verify_slope){0};
    if (!in_range(loss, eta, &at)) return (struct ki_verify_value){INFINITY, INFINITY};
    /* A mean beyond the range of numbers: a loss that has a limit there is level, as the inverse
     * Gaussian's up there and those of counts of 0 down here. */
    if (isinf(at.mu) || (at.mu == 0 && y == 0 && ki_link_of(loss) == KILN_LINK_LOG))
        return value_at(loss, y, eta, &at);
    if (is_logistic(loss)) { /* mu - y, without what cancels */
        *slope =
            (struct ki_verify_slope){(1 - y) * at.mu - y * at.nu, at.slope, logit_size(y, at.mu), at.slope};
        return value_at(loss, y, eta, &at);
    }
    const long double variance = variance_at(loss, &at), steep = at.slope / variance;
    slope->value = (at.mu - y) * steep;
    slope->size = (fabsl(at.mu) + fabs(y)) * fabsl(steep);
    if (loss->family == KILN_BINOMIAL) { /* mu - y = (1 - y) mu - y nu, without what cancels */
        slope->value = ((1 - y) / at.nu - y / at.mu) * at.slope;
        slope->size = ((1 - y) / at.nu + y / at.mu) * at.slope;
    }
    slope->expected = at.slope * steep;
    slope->curvature = own_curvature(loss, y, at.mu, slope->expected);
    return value_at(loss, y, eta, &at);
}

/* log(1 + sum of e^(eta_c - eta_y) over the other classes), from the largest of these differences;
 * training takes the logarithm of a sum that is at least 1. */
static struct ki_verify_value softmax_loss(struct ki_verify_slope *slope, double y, const long double *eta,
                                           int64_t k) {
    const int64_t own = (int64_t)y;
    long double most = eta[0], sum = 0, others = 0, nearest = -INFINITY;
    for (int64_t c = 1; c < k; c++) most = fmaxl(most, eta[c]);
    for (int64_t c = 0; c < k; c++) {
        sum += expl(eta[c] - most);
        if (c != own) nearest = fmaxl(nearest, eta[c]);
    }
    for (int64_t c = 0; c < k; c++) {
        const long double p = expl(eta[c] - most) / sum;
        if (c != own) others += expl(eta[c] - nearest);
        slope[c] = (struct ki_verify_slope){p, p * (1 - p), p, p * (1 - p)};
    }
    slope[own].value = 0;
    for (int64_t c = 0; c < k; c++)
        if (c != own) slope[own].value -= slope[c].value;
    slope[own].size = 1;
    const long double value = k > 1 ? softplus(nearest - eta[own] + logl(others)) : 0;
    return (struct ki_verify_value){value, value + 1};
}

struct ki_verify_value ki_verify_loss(struct ki_verify_slope *slope, const kiln_loss *loss, double y,
                                      const long double *eta, int64_t k) {
    long double off = 0;
    switch (loss->kind) {
    case KILN_LOSS_GLM: return glm_loss(slope, loss, y, eta[0]);
    case KILN_LOSS_SOFTMAX: return softmax_loss(slope, y, eta, k);
    case KILN_LOSS_LOGISTIC: {
        const long double p = 1 / (1 + expl(-eta[0])), q = 1 / (1 + expl(eta[0]));
        *slope = (struct ki_verify_slope){(1 - y) * p - y * q, p * q, logit_size(y, p), p * q};
        return sum_of((1 - y) * softplus(eta[0]), y * softplus(-eta[0]));
    }
    case KILN_LOSS_SQUARED_HINGE:
        off = fmaxl(1 - y * eta[0], 0);
        *slope = (struct ki_verify_slope){-y * off, off > 0, off, off > 0};
        break;
    case KILN_LOSS_SQUARED_EPSILON:
        off = fmaxl(fabsl(eta[0] - y) - loss->parameter, 0);
        *slope = (struct ki_verify_slope){eta[0] > y ? off : -off, off > 0, off, off > 0};
        break;
    default: off = eta[0] - y; *slope = (struct ki_verify_slope){off, 1, fabsl(off), 1};
    }
    return sum_of(off * off / 2, 0);
}
