/* Losses by the textbook: the mean mu(eta) and its slope; what follows from them for a family is in
 * verify_family.c. */
#include "algorithms/verify/verify.h"

#include "ops/linear/families.h"

static const long double pi = 3.14159265358979323846264338327950288L;

double ki_verify_link(const kiln_loss *loss, double mu) {
    switch (ki_link_of(loss)) {
    case KILN_LINK_LOG: return log(mu);
    case KILN_LINK_INVERSE: return 1 / mu;
    case KILN_LINK_INVERSE_SQUARED: return 1 / (mu * mu);
    case KILN_LINK_SQRT: return sqrt(mu);
    case KILN_LINK_LOGIT: return log(mu / (1 - mu));
    case KILN_LINK_CLOGLOG: return log(-log1p(-mu));
    case KILN_LINK_CAUCHIT:
        return mu < 0.5 ? (double)(-1 / tanl(pi * mu)) : (double)(1 / tanl(pi * (1 - (long double)mu)));
    case KILN_LINK_POWER: return pow(mu, loss->link_power);
    case KILN_LINK_PROBIT: return 0;
    default: return mu;
    }
}

/* log(1 + e^x). */
static long double softplus(long double x) {
    return fmaxl(x, 0) + log1pl(expl(-fabsl(x)));
}

/* With the logarithms of the mean and of 1 - the mean: near 1 they are in the digits of the other one. */
static struct ki_response response(long double mu, long double nu, long double slope, long double bend) {
    return (struct ki_response){
        mu,  nu, slope, fabsl(nu) < 0.5L ? log1pl(-nu) : logl(mu), fabsl(mu) < 0.5L ? log1pl(-mu) : logl(nu),
        bend};
}

struct ki_response ki_verify_response(const kiln_loss *loss, long double eta) {
    const long double p = loss->link_power, root = sqrtl(2);
    switch (ki_link_of(loss)) {
    case KILN_LINK_LOG: return response(expl(eta), -expm1l(eta), expl(eta), 1);
    case KILN_LINK_INVERSE: return response(1 / eta, 1 - 1 / eta, -1 / (eta * eta), -2 / eta);
    case KILN_LINK_INVERSE_SQUARED:
        return response(1 / sqrtl(eta), 1 - 1 / sqrtl(eta), -0.5L / (eta * sqrtl(eta)), -1.5L / eta);
    case KILN_LINK_SQRT: return response(eta * eta, 1 - eta * eta, 2 * eta, 1 / eta);
    case KILN_LINK_LOGIT: {
        const long double mu = 1 / (1 + expl(-eta)), nu = 1 / (1 + expl(eta));
        return (struct ki_response){mu, nu, mu * nu, -softplus(-eta), -softplus(eta), nu - mu};
    }
    case KILN_LINK_PROBIT:
        return response(erfcl(-eta / root) / 2, erfcl(eta / root) / 2, expl(-eta * eta / 2) / sqrtl(2 * pi),
                        -eta);
    case KILN_LINK_CLOGLOG:
        return response(-expm1l(-expl(eta)), expl(-expl(eta)), expl(eta - expl(eta)), 1 - expl(eta));
    case KILN_LINK_CAUCHIT: {
        const long double mu = atan2l(1, -eta) / pi, nu = atan2l(1, eta) / pi;
        return response(mu, nu, 1 / (pi * (1 + eta * eta)), -2 * eta / (1 + eta * eta));
    }
    case KILN_LINK_POWER:
        return response(powl(eta, 1 / p), 1 - powl(eta, 1 / p), powl(eta, 1 / p - 1) / p, (1 / p - 1) / eta);
    default: return response(eta, 1 - eta, 1, 0);
    }
}

static bool in_range(const kiln_loss *loss, long double eta, const struct ki_response *at) {
    const kiln_link link = ki_link_of(loss);
    const kiln_range range = ki_family_find(loss->family)->range;
    const bool any = isinf(range.least);
    if (link == KILN_LINK_LOGIT) return true; /* whose logarithms come from eta */
    if (range.most == 1 && (at->nu <= 0 || at->mu <= 0)) return false;
    if (link == KILN_LINK_IDENTITY) return any || eta > 0;
    if (link == KILN_LINK_INVERSE) return any ? eta != 0 : eta > 0;
    if (link == KILN_LINK_INVERSE_SQUARED || link == KILN_LINK_SQRT || link == KILN_LINK_POWER)
        return eta > 0;
    return true;
}

static struct ki_verify_value glm_loss(struct ki_verify_slope *slope, const kiln_loss *loss, double y,
                                       long double eta) {
    const struct ki_response at = ki_verify_response(loss, eta);
    *slope = (struct ki_verify_slope){0};
    if (!in_range(loss, eta, &at)) return (struct ki_verify_value){INFINITY, INFINITY};
    /* A mean beyond the range of numbers: a loss that has a limit there is level, as the inverse
     * Gaussian's up there and those of counts of 0 down here. */
    if (!isinf(at.mu) && !(at.mu == 0 && y == 0 && ki_link_of(loss) == KILN_LINK_LOG))
        ki_verify_score(slope, loss, y, &at);
    return ki_verify_likelihood(loss, y, &at);
}

/* log(1 + sum of e^(eta_c - eta_y) over the other classes), from the largest of these differences. */
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
    slope[own].size = -slope[own].value;
    const long double value = k > 1 ? softplus(nearest - eta[own] + logl(others)) : 0;
    return (struct ki_verify_value){value, value};
}

struct ki_verify_value ki_verify_loss(struct ki_verify_slope *slope, const kiln_loss *loss, double y,
                                      const long double *eta, int64_t k) {
    long double off = 0;
    switch (loss->kind) {
    case KILN_LOSS_GLM: return glm_loss(slope, loss, y, eta[0]);
    case KILN_LOSS_SOFTMAX: return softmax_loss(slope, y, eta, k);
    case KILN_LOSS_LOGISTIC: {
        const long double p = 1 / (1 + expl(-eta[0])), q = 1 / (1 + expl(eta[0]));
        *slope = (struct ki_verify_slope){(1 - y) * p - y * q, p * q, (1 - y) * p + y * q, p * q};
        const long double lost = (1 - y) * softplus(eta[0]), won = y * softplus(-eta[0]);
        return (struct ki_verify_value){lost + won, lost + won};
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
    return (struct ki_verify_value){off * off / 2, off * off / 2};
}
