/* Losses of linear models and the middle steps that they put between X y and X^T: formulas over `real`,
 * shared by CPU bodies and GPU kernels like real_math.h.
 *
 * A loss is a function of a row's linear predictor eta = x.w + b + offset and of its target y. Each formula
 * is written so that no eta overflows it where the loss itself does not, and so that tails keep their
 * relative accuracy: logarithms of probabilities are formed from the small one, never from 1 minus something
 * near 1. kind, family and link are constants of a GPU kernel, where all but one way through the switches
 * below folds away. What no case names is NaN: families and links are those of ops/linear/families.c. */
#include "dialect/scalar_math.h"
#ifndef LOSS_NUMBERS
#define LOSS_NUMBERS /* as in kiln.h */
enum { LOSS_LOGISTIC = 2, LOSS_SOFTMAX = 3, LOSS_SQUARED_HINGE = 4, LOSS_SQUARED_EPSILON = 5, LOSS_GLM = 6 };
enum {
    FAMILY_GAUSSIAN = 1,
    FAMILY_POISSON = 2,
    FAMILY_GAMMA = 3,
    FAMILY_INVERSE_GAUSSIAN = 4,
    FAMILY_BINOMIAL = 5,
    FAMILY_TWEEDIE = 6,
    FAMILY_NEGATIVE_BINOMIAL = 7,
    FAMILY_BETA = 8
};
enum {
    LINK_IDENTITY = 1,
    LINK_LOG = 2,
    LINK_INVERSE = 3,
    LINK_INVERSE_SQUARED = 4,
    LINK_SQRT = 5,
    LINK_LOGIT = 6,
    LINK_PROBIT = 7,
    LINK_CLOGLOG = 8,
    LINK_CAUCHIT = 9,
    LINK_POWER = 10
};
#endif

/* log(1 + e^x) */
SCALAR_FN real FN(softplus)(real x) {
    return (x > 0 ? x : (real)0) + (real)log1p(exp(x > 0 ? -x : x));
}

/* 1 / (1 + e^-x) */
SCALAR_FN real FN(sigmoid)(real x) {
    const real e = (real)exp(x > 0 ? -x : x);
    return (x > 0 ? (real)1 : e) / ((real)1 + e);
}

/* The mean that a link makes of eta. a = mu' / mu, the derivative of log mu, is what gradients are made of.
 * rest = 1 - mu and b = mu' / rest are the same for the other outcome of a trial; links that are not made for
 * trials give them on demand. bend = mu'' / mu'. */
struct FN(response) {
    real mu, log_mu, a, rest, log_rest, b, bend;
};

/* Mills' ratio of the normal distribution, (1 - Phi(x)) / phi(x) for x >= 0: from erfc, or, where its
 * quotient with phi would lose digits, Laplace's continued fraction, which 32 steps carry to 1e-19 there. */
SCALAR_FN real FN(mills)(real x) {
    if (x < (real)5)
        return (real)(erfc(x * (real)0.70710678118654752) * exp((real)0.5 * x * x)) *
               (real)1.2533141373155003;
    real t = x;
    for (int i = 32; i > 0; i--) t = x + (real)i / t;
    return (real)1 / t;
}

/* Links onto (0, 1) that are symmetric about eta = 0: the smaller probability and its logarithm, then its
 * complement. */
SCALAR_FN struct FN(response) FN(symmetric_response)(int link, real eta) {
    const real x = eta < 0 ? -eta : eta;
    real tail, log_tail, log_head, slope, tail_rate, bend; /* tail_rate = slope / tail */
    if (link == LINK_LOGIT) {
        const real e = (real)exp(-x), l = (real)log1p(e);
        tail = e / ((real)1 + e);
        log_tail = -x - l;
        log_head = -l;
        tail_rate = (real)1 / ((real)1 + e);
        slope = tail * tail_rate;
        bend = eta < 0 ? tail_rate - tail : tail - tail_rate;
    } else if (link == LINK_PROBIT) {
        const real ratio = FN(mills)(x);
        slope = (real)exp((real)-0.5 * x * x) * (real)0.39894228040143268;
        tail = slope * ratio;
        log_tail = (real)log(ratio) - (real)0.5 * x * x - (real)0.91893853320467274;
        log_head = (real)log1p(-tail);
        tail_rate = (real)1 / ratio;
        bend = -eta;
    } else { /* cauchit */
        const real over = (real)1 / x, pi = (real)3.14159265358979324;
        tail = x > 1 ? (real)atan(over) / pi : (real)0.5 - (real)atan(x) / pi;
        slope = x > 1 ? over / (pi * (x + over)) : (real)1 / (pi * ((real)1 + x * x));
        log_tail = (real)log(tail);
        log_head = (real)log1p(-tail);
        tail_rate = slope / tail;
        bend = (real)-2 / (eta + (real)1 / eta);
    }
    const real head = (real)1 - tail, head_rate = slope / head;
    struct FN(response) r;
    r.mu = eta < 0 ? tail : head;
    r.log_mu = eta < 0 ? log_tail : log_head;
    r.a = eta < 0 ? tail_rate : head_rate;
    r.rest = eta < 0 ? head : tail;
    r.log_rest = eta < 0 ? log_head : log_tail;
    r.b = eta < 0 ? head_rate : tail_rate;
    r.bend = bend;
    return r;
}

/* log(1 - e^-t), t > 0 */
SCALAR_FN real FN(log_complement)(real t) {
    return t < (real)0.7 ? (real)log(-expm1(-t)) : (real)log1p(-exp(-t));
}

/* Complementary log-log: 1 - mu = e^-t, t = e^eta. Below the numbers that e^eta can be, log mu is eta
 * itself. */
SCALAR_FN struct FN(response) FN(cloglog_response)(real eta) {
    const real t = (real)exp(eta);
    struct FN(response) r;
    r.mu = -(real)expm1(-t);
    r.rest = (real)exp(-t);
    r.log_rest = -t;
    r.b = t;
    r.bend = (real)1 - t;
    r.log_mu = t < (real)1e-30 ? eta : FN(log_complement)(t);
    r.a = t < (real)1e-30 ? (real)1 : r.rest > 0 ? t * r.rest / r.mu : (real)0;
    return r;
}

/* Links that are powers of mu, or its logarithm: mu = eta^e, a = e / eta, bend = (e - 1) / eta. */
SCALAR_FN struct FN(response) FN(power_response)(int link, real power, real eta, int trial) {
    struct FN(response) r;
    real e;
    r.rest = r.log_rest = r.b = (real)0;
    switch (link) {
    case LINK_LOG:
        r.mu = (real)exp(eta);
        r.log_mu = eta;
        r.a = r.bend = (real)1;
        if (!trial) return r;
        r.rest = -(real)expm1(eta);
        r.log_rest = FN(log_complement)(-eta);
        r.b = r.mu / r.rest;
        return r;
    case LINK_IDENTITY: r.mu = eta, e = (real)1; break;
    case LINK_INVERSE: r.mu = (real)1 / eta, e = (real)-1; break;
    case LINK_INVERSE_SQUARED: r.mu = (real)1 / (real)sqrt(eta), e = (real)-0.5; break;
    case LINK_SQRT: r.mu = eta * eta, e = (real)2; break;
    case LINK_POWER: r.mu = (real)pow(eta, (real)1 / power), e = (real)1 / power; break;
    default: r.mu = e = (real)NAN; break;
    }
    r.log_mu = e * (real)log(eta);
    r.a = e / eta;
    r.bend = ((real)1 - (real)1 / e) * r.a; /* as FN(spread_rate) has it, so that canonical links cancel */
    if (!trial) return r;
    r.rest = (real)1 - r.mu;
    r.log_rest = (real)log1p(-r.mu);
    r.b = r.mu * r.a / r.rest;
    return r;
}

SCALAR_FN struct FN(response) FN(response_at)(int link, real power, real eta, int trial) {
    if (link == LINK_CLOGLOG) return FN(cloglog_response)(eta);
    if (link == LINK_LOGIT || link == LINK_PROBIT || link == LINK_CAUCHIT)
        return FN(symmetric_response)(link, eta);
    return FN(power_response)(link, power, eta, trial);
}

/* Finds whether eta gives a mean that the family may have. */
SCALAR_FN int FN(in_range)(int family, int link, real eta, real mu) {
    if (family == FAMILY_BINOMIAL && !(mu < 1) && (link < LINK_LOGIT || link > LINK_CAUCHIT)) return 0;
    if (family == FAMILY_GAUSSIAN && (link == LINK_IDENTITY || link == LINK_INVERSE))
        return link == LINK_IDENTITY || eta != 0;
    return eta > 0 || link == LINK_LOG || (link >= LINK_LOGIT && link <= LINK_CAUCHIT);
}

/* x z, and 0 where x is, though z be infinite. */
SCALAR_FN real FN(product)(real x, real z) {
    return x == 0 ? (real)0 : x * z;
}

/* Minus the log-likelihood of the families whose mean is positive. log_own: *h is to be the loss's own
 * curvature, under a log link; else it is the expected one. */
SCALAR_FN real FN(positive_row)(int family, int log_own, real parameter, real y, struct FN(response) r,
                                real *g, real *h) {
    const real part = y == 0 ? (real)0 : y / r.mu;
    real share, over, x;
    switch (family) {
    case FAMILY_POISSON:
        *g = (r.mu - y) * r.a;
        *h = r.mu * r.a * r.a;
        return r.mu - FN(product)(y, r.log_mu);
    case FAMILY_GAMMA:
        *g = ((real)1 - part) * r.a;
        *h = log_own ? part : r.a * r.a;
        return part + r.log_mu;
    case FAMILY_INVERSE_GAUSSIAN:
        *g = ((real)1 - part) * r.a / r.mu;
        *h = r.a * r.a / r.mu;
        return ((real)0.5 * part - (real)1) / r.mu;
    case FAMILY_TWEEDIE:
        share = (real)exp(((real)2 - parameter) * r.log_mu); /* mu^(2-p) */
        over = FN(product)(y, (real)exp(((real)1 - parameter) * r.log_mu));
        *g = (share - over) * r.a;
        *h = share * r.a * r.a;
        if (log_own) *h = ((real)2 - parameter) * share + (parameter - (real)1) * over;
        return share / ((real)2 - parameter) + over / (parameter - (real)1);
    case FAMILY_NEGATIVE_BINOMIAL: /* alpha mu / (1 + alpha mu) = sigmoid(log(alpha mu)) */
        x = r.log_mu + (real)log(parameter);
        share = FN(sigmoid)(x) / parameter;
        *g = (share - y * FN(sigmoid)(-x)) * r.a;
        *h = share * r.a * r.a;
        if (log_own) *h = share * (FN(sigmoid)(-x) + parameter * FN(sigmoid)(-x) * y);
        return FN(softplus)(x) / parameter + FN(product)(y, FN(softplus)(-x));
    default: *g = *h = (real)NAN; return (real)NAN;
    }
}

/* log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), x > 0, log_x its logarithm: what Stirling's formula
 * leaves out. */
SCALAR_FN wide FN(stirling_rest)(wide x, wide log_x) {
    const wide half_log_2pi = (wide)9189385332046727 / (wide)10000000000000000, z = 1 / (x * x);
    if (x < 16) return log_gamma_positive(x + 1) - (x + (wide)0.5) * log_x + x - half_log_2pi;
    wide sum = (wide)1 / 1188;
    sum = (wide)1 / 1680 - sum * z;
    sum = (wide)1 / 1260 - sum * z;
    sum = (wide)1 / 360 - sum * z;
    return ((wide)1 / 12 - sum * z) / x;
}

/* mu (r - 1 - log r) of r = y / mu, d = y - mu: the linear part d of such a sum over both outcomes is 0. */
SCALAR_FN wide FN(share_excess)(wide d, wide mu, wide log_y, wide log_mu) {
    const wide t = d / mu;
    return t > (wide)-0.5 && t < (wide)0.5 ? mu * (t - (wide)log1p(t)) : d - mu * (log_y - log_mu);
}

/* The beta family's loss, log B(P mu, P nu) - P mu log y - P nu log(1 - y) with nu = 1 - mu, as
 *
 *   P (mu log(mu / y) + nu log(nu / (1 - y))) - log(P mu nu / (2 pi)) / 2 + what Stirling's formula leaves
 *   out,
 *
 * no term of which is of P's size where mu is near y. `wide`, as mu's logarithm may be large. */
SCALAR_FN wide FN(beta_loss)(wide p, wide y, wide mu, wide nu, wide log_mu, wide log_nu) {
    const wide half_log_2pi = (wide)9189385332046727 / (wide)10000000000000000, log_p = log(p);
    if (log_mu + log_nu == -INFINITY) return INFINITY;
    const wide d = y * nu - (1 - y) * mu;
    const wide apart = FN(share_excess)(d, mu, log(y), log_mu) + FN(share_excess)(-d, nu, log1p(-y), log_nu);
    return p * apart - (log_p + log_mu + log_nu) / 2 + half_log_2pi +
           FN(stirling_rest)(p * mu, log_p + log_mu) + FN(stirling_rest)(p * nu, log_p + log_nu) -
           FN(stirling_rest)(p, log_p);
}

/* Its slope and expected curvature: P mu' = a r.a = b r.b, and a psi(a) = a psi(a + 1) - 1, a^2 psi'(a) = a^2
 * psi'(a + 1) + 1. */
SCALAR_FN real FN(beta_row)(real precision, real y, struct FN(response) r, real *g, real *h) {
    const wide p = precision, a = p * r.mu, b = p * r.rest, ra = r.a, rb = r.b, won = log((wide)y),
               lost = log1p(-(wide)y);
    *g = (real)(ra * (a * (digamma(a + 1) - won) - 1) - rb * (b * (digamma(b + 1) - lost) - 1));
    *h = (real)(ra * ra * (a * a * trigamma(a + 1) + 1) + rb * rb * (b * b * trigamma(b + 1) + 1));
    return (real)FN(beta_loss)(p, y, r.mu, r.rest, r.log_mu, r.log_rest);
}

/* The loss at the best mean of y, by Newton's method for its logit t: psi(a) - psi(b) = logit y rises with t
 * by at least 1, and near t by no more than a step for each power of e that the start is off. */
SCALAR_FN wide FN(beta_least)(real precision, real y) {
    const wide p = precision, won = log((wide)y), lost = log1p(-(wide)y);
    wide t = log(p * y + 1 / (1 - won)) - log(p * (1 - (wide)y) + 1 / (1 - lost)), e, l, a, b, step = 1;
    for (int i = 0; i < 100 && (step > (wide)1e-9 || step < (wide)-1e-9); i++) {
        e = exp(t > 0 ? -t : t);
        a = p * (t > 0 ? 1 : e) / (1 + e);
        b = p * (t > 0 ? e : 1) / (1 + e);
        step = ((digamma(a + 1) - 1 / a) - (digamma(b + 1) - 1 / b) - won + lost) /
               (a * b / p * (trigamma(a + 1) + 1 / (a * a) + trigamma(b + 1) + 1 / (b * b)));
        t -= step;
    }
    e = exp(t > 0 ? -t : t);
    l = log1p(e);
    return FN(beta_loss)(p, y, (t > 0 ? 1 : e) / (1 + e), (t > 0 ? e : 1) / (1 + e), t > 0 ? -l : t - l,
                         t > 0 ? -t - l : -l);
}

/* V' mu' / V, the derivative of log V in eta; of beta's score, which is no multiple of mu - y, 0. */
SCALAR_FN real FN(spread_rate)(int family, real parameter, struct FN(response) r) {
    switch (family) {
    case FAMILY_POISSON: return r.a;
    case FAMILY_GAMMA: return (real)2 * r.a;
    case FAMILY_INVERSE_GAUSSIAN: return (real)3 * r.a;
    case FAMILY_BINOMIAL: return r.a - r.b;
    case FAMILY_TWEEDIE: return parameter * r.a;
    case FAMILY_NEGATIVE_BINOMIAL: return r.a * ((real)1 + FN(sigmoid)(r.log_mu + (real)log(parameter)));
    default: return (real)0;
    }
}

/* Finds whether the expected curvature is the loss's own whatever y, as under a canonical link. */
SCALAR_FN int FN(is_canonical)(int family, int link) {
    return family == FAMILY_GAUSSIAN           ? link == LINK_IDENTITY
           : family == FAMILY_POISSON          ? link == LINK_LOG
           : family == FAMILY_GAMMA            ? link == LINK_INVERSE
           : family == FAMILY_INVERSE_GAUSSIAN ? link == LINK_INVERSE_SQUARED
                                               : family == FAMILY_BINOMIAL && link == LINK_LOGIT;
}

/* The loss's own curvature, which Newton's method converges with: h + g (bend - V' mu' / V), h the expected
 * one. Far from a row's best mean it may be negative: a 4096th of h is the least. */
SCALAR_FN real FN(own_curvature)(int family, real parameter, struct FN(response) r, real g, real h) {
    const real own = h + g * (r.bend - FN(spread_rate)(family, parameter, r)), least = h / (real)4096;
    return own > least ? own : least;
}

/* Minus the log-likelihood up to terms in y alone, and its derivative in eta, with V(mu) the variance
 * (mu - y) mu' / V. The curvature is the expected one, mu'^2 / V, or the loss's own; of gamma, Tweedie and
 * negative binomial losses under a log link that is positive for every y, and has a formula without a
 * difference. */
SCALAR_FN real FN(glm_row)(int family, int link, real parameter, real power, int expected, real y, real eta,
                           real *g, real *h) {
    if (family == FAMILY_GAUSSIAN && link == LINK_IDENTITY) {
        *g = eta - y;
        *h = (real)1;
        return (real)0.5 * (eta - y) * (eta - y);
    }
    const struct FN(response) r = FN(response_at)(link, power, eta, family == FAMILY_BINOMIAL);
    const int log_own =
        !expected && link == LINK_LOG &&
        (family == FAMILY_GAMMA || family == FAMILY_TWEEDIE || family == FAMILY_NEGATIVE_BINOMIAL);
    real loss;
    *g = *h = (real)0;
    if (!FN(in_range)(family, link, eta, r.mu)) return (real)INFINITY;
    if (family == FAMILY_GAUSSIAN) {
        const real slope = r.mu * r.a;
        *g = (r.mu - y) * slope;
        *h = slope * slope;
        loss = (real)0.5 * (r.mu - y) * (r.mu - y);
    } else if (family == FAMILY_BINOMIAL) {
        *g = FN(product)((real)1 - y, r.b) - FN(product)(y, r.a);
        *h = FN(product)(r.a, r.b);
        loss = -FN(product)(y, r.log_mu) - FN(product)((real)1 - y, r.log_rest);
    } else if (family == FAMILY_BETA) {
        loss = FN(beta_row)(parameter, y, r, g, h);
    } else {
        loss = FN(positive_row)(family, log_own, parameter, y, r, g, h);
    }
    if (!expected && !log_own && !FN(is_canonical)(family, link))
        *h = FN(own_curvature)(family, parameter, r, *g, *h);
    return loss;
}

/* The loss of one row, its derivative *g and its curvature *h >= 0 with respect to eta, of a GLM the expected
 * one if `expected`; infinite where eta is out of the model's range. */
SCALAR_FN real FN(loss_row)(int kind, int family, int link, real parameter, real power, int expected, real y,
                            real eta, real *g, real *h) {
    if (kind == LOSS_GLM) return FN(glm_row)(family, link, parameter, power, expected, y, eta, g, h);
    if (kind == LOSS_LOGISTIC) { /* y in [0, 1]; of a row that is as good as certain no term hides another */
        const real size = eta < 0 ? -eta : eta, e = (real)exp(-size);
        const real near = (real)1 / ((real)1 + e), tail = e * near, up = (real)1 - y;
        *g = eta < 0 ? up * tail - y * near : up * near - y * tail;
        *h = tail * near;
        return (real)log1p(e) + size * (eta < 0 ? y : up);
    }
    if (kind == LOSS_SQUARED_HINGE) { /* y > 0 or not */
        const real sign = y > 0 ? (real)1 : (real)-1, slack = (real)1 - sign * eta;
        *g = slack > 0 ? -sign * slack : (real)0;
        *h = slack > 0 ? (real)1 : (real)0;
        return slack > 0 ? (real)0.5 * slack * slack : (real)0;
    }
    if (kind == LOSS_SQUARED_EPSILON) {
        const real distance = eta - y, size = distance < 0 ? -distance : distance, slack = size - parameter;
        *g = slack > 0 ? (distance < 0 ? -slack : slack) : (real)0;
        *h = slack > 0 ? (real)1 : (real)0;
        return slack > 0 ? (real)0.5 * slack * slack : (real)0;
    }
    *g = eta - y; /* squared */
    *h = (real)1;
    return (real)0.5 * (eta - y) * (eta - y);
}

/* y / mu - 1 = e^delta - 1, delta = log y - log mu: by the mean where that has the digits, else by its
 * logarithm, as the mean itself may overflow or underflow. */
SCALAR_FN real FN(beyond_mean)(real y, real delta, real mu) {
    const real t = (y - mu) / mu;
    return t > (real)-0.5 && t < (real)0.5 ? t : y == 0 ? (real)-1 : (real)expm1(delta);
}

/* r - 1 - log r >= 0 of r = e^x, t = r - 1: near 1 with a relative error of about epsilon / t. */
SCALAR_FN real FN(excess)(real t, real x) {
    return t > (real)-0.5 && t < (real)0.5 ? t - (real)log1p(t) : t - x;
}

/* d(y, mu) / 2, which rounding may bring below 0, as terms of it cancel near mu = y. With delta as above and
 * v = -delta
 *
 *   Poisson y delta + mu - y = y excess(mu / y), gamma excess(y / mu),
 *   inverse Gaussian (y / mu - 1)^2 / (2 y),
 *   Tweedie y^(2-p) (expm1((2-p) v) / (2-p) + expm1((1-p) v) / (p-1)), of y = 0 mu^(2-p) / (2-p),
 *   negative binomial y (s(-x) - s(-z)) + (s(x) - s(z)) / alpha, s the softplus, x = log(alpha mu),
 *   z = log(alpha y), for y near mu y log1p(a) + log1p(b) / alpha, a = (y - mu) / (mu (1 + alpha y)),
 *   b = alpha (mu - y) / (1 + alpha y), whose linear terms add up to (y - mu) a:
 *
 * all of log mu, so that they have the value of the real formula wherever the type has room for that. */
SCALAR_FN real FN(rounded_half_deviance)(int family, real parameter, real y, struct FN(response) r) {
    const real p = parameter, mu = r.mu, delta = y == 0 ? (real)0 : (real)log(y) - r.log_mu;
    real x, z, t;
    switch (family) {
    case FAMILY_GAUSSIAN: return (real)0.5 * (y - mu) * (y - mu);
    case FAMILY_POISSON:
        t = (mu - y) / y;
        return y > 0 && t > (real)-0.5 && t < (real)0.5 ? y * FN(excess)(t, t) : y * delta + (mu - y);
    case FAMILY_GAMMA: return FN(excess)(FN(beyond_mean)(y, delta, mu), delta);
    case FAMILY_INVERSE_GAUSSIAN: t = FN(beyond_mean)(y, delta, mu); return (real)0.5 * t / y * t;
    case FAMILY_BINOMIAL:
        return (y == 0 ? (real)0 : y * delta) +
               (y == 1 ? (real)0 : ((real)1 - y) * ((real)log1p(-y) - r.log_rest));
    case FAMILY_TWEEDIE:
        x = ((real)2 - p) * r.log_mu;
        if (y == 0) return (real)exp(x) / ((real)2 - p);
        z = (real)pow(y, (real)2 - p);
        if (delta > (real)-30 && delta < (real)30)
            return z * ((real)expm1((p - (real)2) * delta) / ((real)2 - p) +
                        (real)expm1((p - (real)1) * delta) / (p - (real)1));
        t = delta > 0 ? (real)exp(x + delta) * ((real)1 / (p - (real)1) + (real)exp(-delta) / ((real)2 - p))
                      : (real)exp(x) * ((real)1 / ((real)2 - p) + (real)exp(delta) / (p - (real)1));
        return t - z / ((p - (real)1) * ((real)2 - p));
    case FAMILY_NEGATIVE_BINOMIAL:
        if (y > 0 && (mu - y) / y > (real)-0.5 && (mu - y) / y < (real)0.5) {
            const real least = (real)1 / ((real)1 / y + p); /* y / (1 + alpha y), though alpha y overflows */
            t = (y - mu) / mu;
            x = t * (least / y);
            z = (mu - y) / y * (p * least);
            return t * ((y - mu) / y) * least - y * (x - (real)log1p(x)) - (z - (real)log1p(z)) / p;
        }
        x = r.log_mu + (real)log(p);
        if (y == 0) return FN(softplus)(x) / p;
        z = (real)log(y) + (real)log(p);
        return y * (FN(softplus)(-x) - FN(softplus)(-z)) + (FN(softplus)(x) - FN(softplus)(z)) / p;
    case FAMILY_BETA:
        return (real)(FN(beta_loss)(p, y, mu, r.rest, r.log_mu, r.log_rest) - FN(beta_least)(p, y));
    default: return (real)NAN;
    }
}

/* d(y, mu) / 2 >= 0: what the log-likelihood at mu lacks to that at mu = y. NaN stays NaN. */
SCALAR_FN real FN(half_deviance)(int family, real parameter, real y, struct FN(response) r) {
    const real lacks = FN(rounded_half_deviance)(family, parameter, y, r);
    return lacks < 0 ? (real)0 : lacks;
}

/* (y - mu)^2 / V(mu), V = mu^k, and of negative binomials mu (1 + alpha mu): t^2 mu^2 / V with t = y / mu -
 * 1, and where t is large (1 - mu / y)^2 exp(2 delta + (2 - k) log mu), as t may overflow and mu underflow
 * where this does not. */
SCALAR_FN real FN(pearson)(int family, real parameter, real y, struct FN(response) r) {
    const int share = family == FAMILY_BINOMIAL || family == FAMILY_BETA;
    const real d = share ? y * r.rest - ((real)1 - y) * r.mu : y - r.mu;
    if (family == FAMILY_GAUSSIAN) return d * d;
    if (share)
        return d == 0 ? (real)0
                      : d / r.mu * (d / r.rest) * (family == FAMILY_BETA ? (real)1 + parameter : (real)1);
    real k = 1, alpha = 0;
    switch (family) {
    case FAMILY_POISSON: break;
    case FAMILY_GAMMA: k = 2; break;
    case FAMILY_INVERSE_GAUSSIAN: k = 3; break;
    case FAMILY_TWEEDIE: k = parameter; break;
    case FAMILY_NEGATIVE_BINOMIAL: alpha = parameter; break;
    default: return (real)NAN;
    }
    const real delta = y == 0 ? (real)0 : (real)log(y) - r.log_mu, t = FN(beyond_mean)(y, delta, r.mu);
    if (t > 1) {
        const real part = (real)expm1(-delta);
        const real beyond = alpha > 0 ? FN(softplus)(r.log_mu + (real)log(alpha)) : (real)0;
        return part * part * (real)exp((real)2 * delta + ((real)2 - k) * r.log_mu - beyond);
    }
    return alpha > 0 ? t * t / ((real)1 / r.mu + alpha) : t * t * (real)exp(((real)2 - k) * r.log_mu);
}

/* Minus a row's largest log-likelihood, at dispersion 1 and but for constants: kiln_loss_deviance's third
 * column. With log Gamma(x) = (x - 1/2) log x - x + log(2 pi) / 2 + rest(x) nothing of the size of y is left:
 *
 *   Poisson s peak(y), peak(x) = log(2 pi x) / 2 + rest(x),
 *   binomial peak(s y) + peak(s - s y) - peak(s), 0 at the ends of y,
 *   negative binomial s (peak(y) + rest(1/alpha) - rest(y + 1/alpha) + log(1 + alpha y) / 2). */
SCALAR_FN wide FN(peak)(wide x) {
    const wide half_log_2pi = (wide)9189385332046727 / (wide)10000000000000000, log_x = log(x);
    if (x < 16) return log_gamma_positive(x + 1) - x * log_x + x; /* the same, without what cancels near 0 */
    return half_log_2pi + log_x / 2 + FN(stirling_rest)(x, log_x);
}

SCALAR_FN real FN(least_row)(int family, real parameter, real y, real s) {
    const wide shape = (wide)1 / parameter, all = (wide)y + shape, times = (wide)parameter * y;
    switch (family) {
    case FAMILY_GAUSSIAN: return (real)-0.5 * (real)log(s);
    case FAMILY_POISSON: return y == 0 ? (real)0 : s * (real)FN(peak)(y);
    case FAMILY_GAMMA: return s * (real)log(y);
    case FAMILY_INVERSE_GAUSSIAN: return (real)1.5 * s * (real)log(y);
    case FAMILY_BINOMIAL:
        if (y == 0 || y == 1) return (real)0;
        return (real)(FN(peak)((wide)s * y) + FN(peak)((wide)s * (1 - (wide)y)) - FN(peak)(s));
    case FAMILY_TWEEDIE: return (real)NAN; /* no closed form */
    case FAMILY_NEGATIVE_BINOMIAL:
        if (y == 0) return (real)0;
        return s *
               (real)(FN(peak)(y) + FN(stirling_rest)(shape, log(shape)) - FN(stirling_rest)(all, log(all)) +
                      (times > 1 ? log((wide)parameter) + log((wide)y) + log1p(shape / y) : log1p(times)) /
                          2);
    case FAMILY_BETA: return s * ((real)FN(beta_least)(parameter, y) + (real)log(y) + (real)log1p(-y));
    default: return (real)NAN;
    }
}

/* The three columns of kiln_loss_deviance. */
SCALAR_FN void FN(deviance_row)(int family, int link, real parameter, real power, real y, real s, real eta,
                                real *d) {
    d[0] = d[1] = d[2] = (real)0;
    if (s == 0) return;
    struct FN(response) r = FN(response_at)(link, power, eta, family == FAMILY_BINOMIAL);
    d[0] = (real)2 * s * FN(half_deviance)(family, parameter, y, r);
    d[1] = s * FN(pearson)(family, parameter, y, r);
    d[2] = FN(least_row)(family, parameter, y, s);
}

/* The mean response at eta, of all kinds but softmax; NaN where eta is out of the link's range. */
SCALAR_FN real FN(mean_row)(int kind, int link, real power, real eta) {
    if (kind == LOSS_LOGISTIC) return FN(sigmoid)(eta);
    return kind == LOSS_GLM ? FN(response_at)(link, power, eta, 0).mu : eta;
}

/* Softmax over a row's k predictors, in place: eta becomes the probabilities. Returns log(sum e^eta) -
 * eta[label], by what the sum has beside its largest term, so that a loss next to 0 keeps its digits. */
SCALAR_FN real FN(softmax_row)(real *eta, int k, int label) {
    real largest = eta[0], at_label = 0, rest = 0;
    int at = 0;
    for (int c = 1; c < k; c++) {
        at = eta[c] > largest ? c : at;
        largest = eta[c] > largest ? eta[c] : largest;
    }
    for (int c = 0; c < k; c++) {
        if (c == label) at_label = eta[c] - largest;
        eta[c] = (real)exp(eta[c] - largest);
        rest += c == at ? (real)0 : eta[c];
    }
    for (int c = 0; c < k; c++) eta[c] /= (real)1 + rest;
    return (real)log1p(rest) - at_label;
}

/* The softmax loss's gradient from the probabilities, in place: the label's is less 1, which is minus all
 * others. */
SCALAR_FN void FN(softmax_slope_row)(real *p, int k, int label) {
    real others = 0;
    for (int c = 0; c < k; c++) others += c == label ? (real)0 : p[c];
    for (int c = 0; c < k; c++) p[c] = c == label ? -others : p[c];
}

/* The curvature of the softmax loss times q, in place: q_c = p_c * (q_c - sum_j p_j q_j). What all q have in
 * common counts for nothing: that of the likeliest class is taken off first, as next to a probability of 1
 * its share would hide all others. */
SCALAR_FN void FN(softmax_curve_row)(real *q, int k, const real *p) {
    real most = p[0], peak = q[0], mean = 0;
    for (int c = 1; c < k; c++) {
        peak = p[c] > most ? q[c] : peak;
        most = p[c] > most ? p[c] : most;
    }
    for (int c = 0; c < k; c++) {
        q[c] -= peak;
        mean += p[c] * q[c];
    }
    for (int c = 0; c < k; c++) q[c] = p[c] * (q[c] - mean);
}
