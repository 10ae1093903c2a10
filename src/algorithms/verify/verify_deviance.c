/* The deviance of a row of a generalised linear model by the textbook, with its digits where y is near the
 * mean. */
#include "algorithms/verify/verify.h"

/* y log(y / mu), 0 where y is. */
static long double ratio_log(double y, long double mu, long double log_mu) {
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

long double ki_verify_deviance(const kiln_loss *loss, double y, const struct ki_response *at) {
    const long double mu = at->mu, p = loss->parameter;
    switch (loss->family) {
    case KILN_POISSON: return 2 * (ratio_log(y, mu, at->log_mu) - (y - mu));
    case KILN_GAMMA: return 2 * ((y - mu) / mu - ratio_log(y, mu, at->log_mu) / y);
    case KILN_INVERSE_GAUSSIAN: return (y - mu) * (y - mu) / (y * mu * mu);
    case KILN_BINOMIAL:
        if (y == 0 || y == 1) return -2 * (y == 0 ? at->log_nu : at->log_mu); /* y - mu would cancel */
        return 2 * (ratio_log(y, mu, at->log_mu) + ratio_log(1 - y, at->nu, at->log_nu));
    case KILN_TWEEDIE: return tweedie_deviance(y, mu, p);
    case KILN_NEGATIVE_BINOMIAL:
        return 2 * (ratio_log(y, mu, at->log_mu) - (y + 1 / p) * log1pl(p * (y - mu) / (1 + p * mu)));
    default: return (y - mu) * (y - mu);
    }
}

long double ki_verify_deviance_size(const kiln_loss *loss, double y, const struct ki_response *at) {
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
        if (near)
            return 2 * (y * fabsl(log1pl((mu - y) / y)) +
                        (y + 1 / p) * fabsl(log1pl(p * (y - mu) / (1 + p * mu))));
        return 2 * (y * (2 + logs + 2 * fabsl(logl(p))) + (log1pl(p * mu) + log1pl(p * y)) / p);
    default: return ki_verify_deviance(loss, y, at);
    }
}
