/* The families of generalised linear models by the textbook: the loss as a function of the mean, the
 * variance, the slope and the curvatures, and the deviance, with its digits where y is near the mean. */
#define _GNU_SOURCE
#include <float.h>

#include "algorithms/verify/verify.h"

#include "ops/linear/families.h"

/* Two terms whose sum is the loss. */
static struct ki_verify_value sum_of(long double a, long double b) {
    return (struct ki_verify_value){a + b, fabsl(a) + fabsl(b)};
}

/* c (a + b), which c a and c b that are both infinite would have no value for. */
static struct ki_verify_value product_of(long double c, long double a, long double b) {
    return (struct ki_verify_value){c * (a + b), fabsl(c) * (fabsl(a) + fabsl(b))};
}

/* psi(x) and psi'(x): the recurrences up to 24, and there the series. */
static long double digamma_of(long double x) {
    long double sum = 0;
    while (x < 24) {
        sum -= 1 / x;
        x++;
    }
    const long double z = 1 / (x * x);
    return sum + logl(x) - 1 / (2 * x) -
           z * (1 / 12.0L -
                z * (1 / 120.0L - z * (1 / 252.0L - z * (1 / 240.0L - z * (1 / 132.0L - z * 691 / 32760)))));
}

static long double trigamma_of(long double x) {
    long double sum = 0;
    while (x < 24) {
        sum += 1 / (x * x);
        x++;
    }
    const long double z = 1 / (x * x);
    return sum + 1 / x + z / 2 +
           z / x *
               (1 / 6.0L -
                z * (1 / 30.0L - z * (1 / 42.0L - z * (1 / 30.0L - z * (5 / 66.0L - z * 691 / 2730)))));
}

static struct ki_verify_value beta_loss(long double p, double y, long double mu, long double nu) {
    int sign;
    const long double all[] = {lgammal_r(p * mu, &sign), lgammal_r(p * nu, &sign), -lgammal_r(p, &sign),
                               -p * mu * logl(y), -p * nu * log1pl(-(long double)y)};
    struct ki_verify_value sum = {0};
    for (int e = 0; e < 5; e++) {
        sum.value += all[e];
        sum.size += fabsl(all[e]);
    }
    return sum;
}

/* d loss / d mu over P. */
static long double beta_slope(long double p, double y, long double mu, long double nu) {
    return digamma_of(p * mu) - digamma_of(p * nu) - logl(y) + log1pl(-(long double)y);
}

/* By Newton's method for the logit of the best mean of y, kept between the ends that are known to enclose it.
 * Near 0, where psi(P mu) is about -1 / (P mu), P mu is 1 / -log y, and not P y: from there each step gains
 * but a power of e. */
struct ki_verify_value ki_verify_best(const kiln_loss *loss, double y) {
    const long double p = loss->parameter;
    if (loss->family != KILN_BETA) return (struct ki_verify_value){0};
    const long double won = logl(y), lost = log1pl(-(long double)y);
    long double low = -11000, high = 11000,
                t = logl(p * y + 1 / (1 - won)) - logl(p * (1 - (long double)y) + 1 / (1 - lost));
    for (int i = 0; i < 100; i++) {
        const long double mu = 1 / (1 + expl(-t)), nu = 1 / (1 + expl(t)), slope = beta_slope(p, y, mu, nu);
        const long double step = slope / (p * mu * nu * (trigamma_of(p * mu) + trigamma_of(p * nu)));
        if (fabsl(step) < 1e-18L * (1 + fabsl(t))) break;
        *(slope > 0 ? &high : &low) = t;
        t = t - step > low && t - step < high ? t - step : (low + high) / 2;
    }
    return beta_loss(p, y, 1 / (1 + expl(-t)), 1 / (1 + expl(t)));
}

/* Returns how many units of itself 1 - mu loses where it is made of a mean near 1, as by links that are
 * powers. */
static long double rest_blur(const kiln_loss *loss, const struct ki_response *at) {
    const kiln_link link = ki_link_of(loss);
    const bool own = link == KILN_LINK_LOG || (link >= KILN_LINK_LOGIT && link <= KILN_LINK_CAUCHIT);
    return own ? 0 : at->mu / at->nu;
}

struct ki_verify_value ki_verify_likelihood(const kiln_loss *loss, double y, const struct ki_response *at) {
    const long double mu = at->mu, p = loss->parameter, won = y == 0 ? 0 : y * at->log_mu;
    switch (loss->family) {
    case KILN_POISSON: return sum_of(mu, -won);
    case KILN_GAMMA: return sum_of(y / mu, logl(mu));
    case KILN_INVERSE_GAUSSIAN: return product_of(1 / mu, y / (2 * mu), -1);
    case KILN_BINOMIAL: {
        struct ki_verify_value sum = sum_of(-won, y == 1 ? 0 : (y - 1) * at->log_nu);
        sum.size += (1 - y) * rest_blur(loss, at);
        return sum;
    }
    case KILN_TWEEDIE:
        /* an infinite power of a mean near 0 counts for nothing where y is 0 */
        return sum_of(powl(mu, 2 - p) / (2 - p), y == 0 ? 0 : y * powl(mu, 1 - p) / (p - 1));
    case KILN_NEGATIVE_BINOMIAL: return sum_of(log1pl(p * mu) / p, y == 0 ? 0 : y * log1pl(1 / (p * mu)));
    case KILN_BETA: return beta_loss(p, y, mu, at->nu);
    case KILN_GAUSSIAN: {
        struct ki_verify_value sum = sum_of((mu - y) * (mu - y) / 2, 0);
        if (ki_link_of(loss) != KILN_LINK_IDENTITY) sum.size += fabsl(mu - y) * (fabsl(mu) + fabs(y));
        return sum;
    }
    default: return sum_of(NAN, NAN);
    }
}

long double ki_verify_variance(const kiln_loss *loss, const struct ki_response *at) {
    const long double mu = at->mu, p = loss->parameter;
    switch (loss->family) {
    case KILN_POISSON: return mu;
    case KILN_GAMMA: return mu * mu;
    case KILN_INVERSE_GAUSSIAN: return mu * mu * mu;
    case KILN_BINOMIAL: return mu * at->nu;
    case KILN_TWEEDIE: return powl(mu, p);
    case KILN_NEGATIVE_BINOMIAL: return mu + p * mu * mu;
    case KILN_BETA: return mu * at->nu / (1 + p);
    case KILN_GAUSSIAN: return 1;
    default: return NAN;
    }
}

/* V' mu' / V. */
static long double spread_rate(const kiln_loss *loss, const struct ki_response *at) {
    const long double rate = at->slope / at->mu, p = loss->parameter;
    switch (loss->family) {
    case KILN_POISSON: return rate;
    case KILN_GAMMA: return 2 * rate;
    case KILN_INVERSE_GAUSSIAN: return 3 * rate;
    case KILN_BINOMIAL: return rate - at->slope / at->nu;
    case KILN_TWEEDIE: return p * rate;
    case KILN_NEGATIVE_BINOMIAL: return rate * (1 + 2 * p * at->mu) / (1 + p * at->mu);
    default: return 0; /* beta's score is no multiple of mu - y */
    }
}

/* The loss's second derivative, but a 4096th of the expected one at least: where the loss bends down Newton's
 * method goes by that. Of gamma, Tweedie and negative binomial losses under a log link no digits are lost. */
static long double own_curvature(const kiln_loss *loss, double y, const struct ki_response *at,
                                 const struct ki_verify_slope *slope) {
    const long double p = loss->parameter, mu = at->mu;
    const kiln_link link = ki_link_of(loss);
    if (link == ki_family_find(loss->family)->canonical) return slope->expected;
    if (link == KILN_LINK_LOG) switch (loss->family) {
        case KILN_GAMMA: return y / mu;
        case KILN_TWEEDIE: return (2 - p) * powl(mu, 2 - p) + (y == 0 ? 0 : (p - 1) * y * powl(mu, 1 - p));
        case KILN_NEGATIVE_BINOMIAL: return mu * (1 + p * y) / ((1 + p * mu) * (1 + p * mu));
        default: break;
        }
    return fmaxl(slope->expected + slope->value * (at->bend - spread_rate(loss, at)), slope->expected / 4096);
}

void ki_verify_score(struct ki_verify_slope *slope, const kiln_loss *loss, double y,
                     const struct ki_response *at) {
    const bool binomial = loss->family == KILN_BINOMIAL;
    if (binomial && ki_link_of(loss) == KILN_LINK_LOGIT) { /* mu - y, without what cancels */
        const long double up = (1 - y) * at->mu, down = y * at->nu;
        *slope = (struct ki_verify_slope){up - down, at->slope, up + down, at->slope};
        return;
    }
    if (loss->family == KILN_BETA) {
        const long double p = loss->parameter, steep = p * at->slope, won = logl(y),
                          lost = log1pl(-(long double)y);
        const long double up = digamma_of(p * at->mu), down = digamma_of(p * at->nu);
        slope->value = steep * (up - down - won + lost);
        /* psi is off by units of 1 at least, and by what the mean's rounding makes of it */
        const long double of_mu = trigamma_of(p * at->mu), of_nu = trigamma_of(p * at->nu);
        slope->size = steep * (fmaxl(fabsl(up), 1) + fmaxl(fabsl(down), 1) + fabsl(won) + fabsl(lost) +
                               p * at->mu * of_mu + p * at->nu * of_nu);
        slope->expected = steep * steep * (of_mu + of_nu);
        slope->curvature = own_curvature(loss, y, at, slope);
        return;
    }
    const long double steep = at->slope / ki_verify_variance(loss, at);
    slope->value = (at->mu - y) * steep;
    slope->size = (fabsl(at->mu) + fabs(y)) * fabsl(steep);
    if (binomial) { /* mu - y = (1 - y) mu - y nu, without what cancels */
        slope->value = ((1 - y) / at->nu - y / at->mu) * at->slope;
        slope->size = ((1 - y) / at->nu * (1 + rest_blur(loss, at)) + y / at->mu) * fabsl(at->slope);
    }
    slope->expected = at->slope * steep;
    slope->curvature = own_curvature(loss, y, at, slope);
}

/* y log(y / mu), 0 where y is. */
static long double ratio_log(long double y, long double mu, long double log_mu) {
    if (y == 0) return 0;
    return fabsl(y / mu - 1) < 0.5L ? y * log1pl((y - mu) / mu) : y * (logl(y) - log_mu);
}

/* 2 mu^a ((1 + t)^a - 1 - a t) / (a (a - 1)) with a = 2 - p and t = (y - mu) / mu. For y near mu the
 * fraction is a series whose terms do not cancel: t^2 / 2 first, and each after it (a - k + 1) t / k times
 * the one before. */
static long double tweedie_deviance(double y, long double mu, long double p) {
    const long double a = 2 - p, t = (y - mu) / mu;
    long double term = t * t / 2, sum = term;
    if (y == 0) return 2 * powl(mu, a) / a;
    if (!(fabsl(t) < 0.5L))
        return 2 * (powl(y, a) / ((1 - p) * a) - y * powl(mu, 1 - p) / (1 - p) + powl(mu, a) / a);
    for (int k = 3; fabsl(term) > LDBL_EPSILON / 4 * sum; k++) {
        term *= (a - k + 1) / k * t;
        sum += term;
    }
    return 2 * powl(mu, a) * sum;
}

long double ki_verify_deviance(const kiln_loss *loss, double y, const struct ki_response *at,
                               struct ki_verify_value best) {
    const long double mu = at->mu, p = loss->parameter;
    switch (loss->family) {
    case KILN_POISSON: return 2 * (ratio_log(y, mu, at->log_mu) - (y - mu));
    case KILN_GAMMA: return 2 * ((y - mu) / mu - ratio_log(y, mu, at->log_mu) / y);
    case KILN_INVERSE_GAUSSIAN: return (y - mu) * (y - mu) / (y * mu * mu);
    case KILN_BINOMIAL:
        if (y == 0 || y == 1) return -2 * (y == 0 ? at->log_nu : at->log_mu); /* y - mu would cancel */
        return 2 * (ratio_log(y, mu, at->log_mu) + ratio_log(1 - (long double)y, at->nu, at->log_nu));
    case KILN_TWEEDIE: return tweedie_deviance(y, mu, p);
    case KILN_NEGATIVE_BINOMIAL:
        return 2 * (ratio_log(y, mu, at->log_mu) - (y + 1 / p) * log1pl(p * (y - mu) / (1 + p * mu)));
    case KILN_BETA: {
        const long double lacks = 2 * (beta_loss(p, y, mu, at->nu).value - best.value);
        return lacks < 0 ? 0 : lacks;
    }
    case KILN_GAUSSIAN: return (y - mu) * (y - mu);
    default: return NAN;
    }
}

long double ki_verify_deviance_size(const kiln_loss *loss, double y, const struct ki_response *at,
                                    struct ki_verify_value best) {
    const long double mu = at->mu, p = loss->parameter,
                      logs = y == 0 ? 0 : fabsl(logl(y)) + fabsl(at->log_mu);
    const long double apart = fabsl(y - mu), t = apart / mu;
    const bool near = y > 0 && t < 0.5L;
    switch (loss->family) {
    case KILN_POISSON: return near ? 4 * apart : 2 * (y * logs + apart);
    case KILN_GAMMA: return near ? 4 * t : 2 * (t + logs);
    case KILN_BINOMIAL:
        return 2 *
               ((y == 0 ? 0 : y * logs) + (y == 1 ? 0 : (1 - y) * (fabsl(log1pl(-y)) + fabsl(at->log_nu))));
    case KILN_TWEEDIE:
        return 2 * ((near ? fabsl(powl(y, 2 - p) - powl(mu, 2 - p)) : powl(y, 2 - p) + powl(mu, 2 - p)) /
                        fabsl(2 - p) +
                    (y == 0 ? 0
                            : y * (near ? fabsl(powl(y, 1 - p) - powl(mu, 1 - p))
                                        : powl(y, 1 - p) + powl(mu, 1 - p))) /
                        fabsl(p - 1));
    case KILN_NEGATIVE_BINOMIAL:
        if (near) return 4 * apart * (1 + y / mu) / (1 + p * y);
        return 2 * (y * (2 + logs + 2 * fabsl(logl(p))) + (log1pl(p * mu) + log1pl(p * y)) / p);
    case KILN_BETA: return 2 * (beta_loss(p, y, mu, at->nu).size + best.size);
    default: return ki_verify_deviance(loss, y, at, best);
    }
}

struct ki_verify_value ki_verify_minus_twice(const kiln_loss *loss, double y, double weight,
                                             const struct ki_response *at) {
    const long double mu = at->mu, p = loss->parameter, s = weight;
    const long double lost = s * (1 - y), won = s * y, likely = y == 0 ? 0 : y * at->log_mu;
    const long double logs = y == 0 ? 0 : fabsl(logl(y));
    long double all[5] = {0}, size = 0;
    int sign;
    switch (loss->family) {
    case KILN_POISSON:
        all[0] = s * mu, all[1] = -s * likely, all[2] = s * lgammal_r(y + 1, &sign);
        size = s * (2 + logs);
        break;
    case KILN_BINOMIAL:
        all[0] = -s * likely, all[1] = lost == 0 ? 0 : -lost * at->log_nu, all[2] = -lgammal_r(s + 1, &sign);
        all[3] = lgammal_r(won + 1, &sign), all[4] = lgammal_r(lost + 1, &sign);
        size = won == 0 || lost == 0 ? 0 : 6 + fabsl(logl(s)) + fabsl(logl(won)) + fabsl(logl(lost));
        break;
    case KILN_NEGATIVE_BINOMIAL:
        all[0] = -s * lgammal_r(y + 1 / p, &sign), all[1] = s * lgammal_r(1 / p, &sign);
        all[2] = s * lgammal_r(y + 1, &sign), all[3] = y == 0 ? 0 : -s * (likely + y * logl(p));
        all[4] = s * (y + 1 / p) * log1pl(p * mu);
        size = y == 0 ? 0 : s * (6 + logs + 2 * fabsl(logl(p)) + fabsl(logl(y + 1 / p)));
        break;
    case KILN_BETA: {
        const struct ki_verify_value own = beta_loss(p, y, mu, at->nu);
        return (struct ki_verify_value){2 * s * (own.value + logl(y) + log1pl(-(long double)y)),
                                        2 * s * (own.size + fabsl(logl(y)) + fabsl(log1pl(-(long double)y)))};
    }
    default: all[0] = NAN;
    }
    /* The sum's own rounding, in long double: its terms are of the size of y, and of log(alpha) / alpha. */
    const long double terms = fabsl(all[0]) + fabsl(all[1]) + fabsl(all[2]) + fabsl(all[3]) + fabsl(all[4]);
    size += terms * (4 * LDBL_EPSILON / DBL_EPSILON);
    return (struct ki_verify_value){2 * (all[0] + all[1] + all[2] + all[3] + all[4]), 2 * size};
}
