/* The means and deviances of a block of rows, for CPU bodies: the formulas of dialect/losses.h in vectors of
 * rows. A row whose numbers are out of the ordinary, so that a quotient of them is no normal number, is not
 * `usual`, and the formula of a single row takes it. */
#include "dialect/losses.h"
#include "dialect/simd_math.h"

enum { FN(JUDGED_ROWS) = 256 }; /* in a block, at most; a whole number of vectors */

struct FN(judged) {
    int64_t count;
    real eta[FN(JUDGED_ROWS)], y[FN(JUDGED_ROWS)]; /* zeros behind `count`, to the end of a vector */
    real mu[FN(JUDGED_ROWS)];
    real log_mu[FN(JUDGED_ROWS)], rest[FN(JUDGED_ROWS)], log_rest[FN(JUDGED_ROWS)]; /* binomial; 1 - mu */
    real half[FN(JUDGED_ROWS)], pearson[FN(JUDGED_ROWS)]; /* d(y, mu) / 2, (y - mu)^2 / V(mu) */
    real_bits usual[FN(JUDGED_ROWS)];                     /* -1 or 0 */
};

/* ---------------------------------------------------------------------------------------------- means */

static inline bool FN(is_binomial)(const kiln_loss *loss) {
    return loss->kind == KILN_LOSS_GLM && loss->family == KILN_BINOMIAL;
}

/* From e = e^-|eta|. */
static inline void FN(logit_means)(struct FN(judged) * b, bool logs) {
    for (int64_t i = 0; i < b->count; i += LANES) {
        const FN(vreal) eta = FN(load)(b->eta + i);
        const FN(vmask) negative = eta < (real)0;
        const FN(vreal) size = FN(select)(negative, -eta, eta), e = FN(vexp)(-size);
        const FN(vreal) head = (real)1 / ((real)1 + e), tail = e * head;
        FN(store)(b->mu + i, FN(select)(negative, tail, head));
        if (!logs) continue;
        const FN(vreal) near = -FN(vlog1p)(e), far = near - size;
        FN(store)(b->rest + i, FN(select)(negative, head, tail));
        FN(store)(b->log_mu + i, FN(select)(negative, far, near));
        FN(store)(b->log_rest + i, FN(select)(negative, near, far));
    }
}

static inline void FN(trial_means)(const kiln_loss *loss, struct FN(judged) * b) {
    for (int64_t i = 0; i < b->count; i++) {
        const struct FN(response) r = FN(response_at)((int)loss->link, (real)loss->link_power, b->eta[i], 1);
        b->mu[i] = r.mu;
        b->log_mu[i] = r.log_mu;
        b->rest[i] = r.rest;
        b->log_rest[i] = r.log_rest;
    }
}

ALWAYS_INLINE void FN(each_mean)(int kind, int link, const kiln_loss *loss, struct FN(judged) * b) {
    for (int64_t i = 0; i < b->count; i++)
        b->mu[i] = FN(mean_row)(kind, link, (real)loss->link_power, b->eta[i]);
}

/* mu from eta, and of a binomial model its logarithms. */
static inline void FN(block_means)(const kiln_loss *loss, struct FN(judged) * b) {
    const bool glm = loss->kind == KILN_LOSS_GLM, trial = FN(is_binomial)(loss);
    if (loss->kind == KILN_LOSS_LOGISTIC || (glm && loss->link == KILN_LINK_LOGIT))
        FN(logit_means)(b, trial);
    else if (trial)
        FN(trial_means)(loss, b);
    else if (!glm)
        memcpy(b->mu, b->eta, sizeof b->mu);
    else
        switch (loss->link) { /* a constant in each loop, so that the compiler can make vectors of it */
        case KILN_LINK_LOG:
            for (int64_t i = 0; i < b->count; i += LANES)
                FN(store)(b->mu + i, FN(vexp)(FN(load)(b->eta + i)));
            break;
        case KILN_LINK_IDENTITY: memcpy(b->mu, b->eta, sizeof b->mu); break;
        case KILN_LINK_INVERSE: FN(each_mean)(LOSS_GLM, LINK_INVERSE, loss, b); break;
        case KILN_LINK_INVERSE_SQUARED: FN(each_mean)(LOSS_GLM, LINK_INVERSE_SQUARED, loss, b); break;
        case KILN_LINK_SQRT: FN(each_mean)(LOSS_GLM, LINK_SQRT, loss, b); break;
        default: FN(each_mean)(LOSS_GLM, (int)loss->link, loss, b);
        }
}

/* ------------------------------------------------------------------------------------------ deviances */

/* A vector of rows has these. */
struct FN(judgement) {
    FN(vreal) half, pearson;
    FN(vmask) usual;
};

/* -1 where x is a normal number above 0. */
ALWAYS_INLINE FN(vmask) FN(is_normal)(FN(vreal) x) {
    return (FN(vmask))(x >= (real)LEAST_NORMAL) & (FN(vmask))(x < (real)INFINITY);
}

ALWAYS_INLINE struct FN(judgement) FN(judge_gaussian)(FN(vreal) y, FN(vreal) mu) {
    const FN(vreal) d = y - mu;
    return (struct FN(judgement)){(real)0.5 * d * d, d * d,
                                  (FN(vmask))(d < (real)INFINITY) & (FN(vmask))(d > (real)-INFINITY)};
}

/* y excess(mu / y), and mu where y is 0. */
ALWAYS_INLINE struct FN(judgement) FN(judge_poisson)(FN(vreal) y, FN(vreal) mu) {
    const FN(vmask) none = (FN(vmask))(y == (real)0);
    const FN(vreal) d = y - mu, r = mu / y, half = y * FN(vlogs)(-d / y, r).excess;
    return (struct FN(judgement)){FN(select)(none, mu, half), d / mu * d,
                                  FN(is_normal)(mu) & (none | (FN(is_normal)(r) & FN(is_normal)(y)))};
}

/* excess(y / mu) */
ALWAYS_INLINE struct FN(judgement) FN(judge_gamma)(FN(vreal) y, FN(vreal) mu) {
    const FN(vreal) r = y / mu, t = (y - mu) / mu;
    return (struct FN(judgement)){FN(vlogs)(t, r).excess, t * t,
                                  FN(is_normal)(mu) & FN(is_normal)(r) & FN(is_normal)(y)};
}

ALWAYS_INLINE struct FN(judgement) FN(judge_inverse_gaussian)(FN(vreal) y, FN(vreal) mu) {
    const FN(vreal) t = (y - mu) / mu;
    return (struct FN(judgement)){(real)0.5 * t / y * t, t / mu * t,
                                  FN(is_normal)(mu) & FN(is_normal)(y / mu) & FN(is_normal)(y)};
}

/* z (expm1((p-2) delta) / (2-p) + expm1((p-1) delta) / (p-1)), z = y^(2-p) = e^((2-p) (log mu + delta)), and
 * mu^(2-p) / (2-p) where y is 0: of p above 2 no y is. */
ALWAYS_INLINE struct FN(judgement) FN(judge_tweedie)(real p, FN(vreal) y, FN(vreal) mu) {
    const real under = (real)2 - p, over = p - (real)1;
    const FN(vmask) none = (FN(vmask))(y == (real)0);
    const FN(vreal) r = y / mu, t = (y - mu) / mu, log_mu = FN(vlog)(mu);
    const FN(vreal) delta = FN(masked)(FN(vlogs)(t, r).log, ~none);
    const FN(vreal) z = FN(vexp)(under * (log_mu + delta)), share = FN(vexp)(under * log_mu);
    const FN(vreal) both = FN(vexpm1)(-under * delta) / under + FN(vexpm1)(over * delta) / over;
    const FN(vmask) near =
        (FN(vmask))(delta > (real)-30) & (FN(vmask))(delta < (real)30) & FN(is_normal)(r) & FN(is_normal)(y);
    return (struct FN(judgement)){FN(select)(none, share / under, z * both), t * share * t,
                                  FN(is_normal)(mu) & (p < (real)2 ? none | near : near)};
}

/* Near y (y - mu) a - y excess(1 + a) - excess(1 + b) / alpha, else y log(1 + a) + log(1 + b) / alpha. */
ALWAYS_INLINE struct FN(judgement) FN(judge_negative_binomial)(real alpha, FN(vreal) y, FN(vreal) mu) {
    const FN(vmask) none = (FN(vmask))(y == (real)0);
    const FN(vreal) d = y - mu, t = -d / y, all = (real)1 + alpha * y, a = d / mu / all,
                    b = -alpha * (d / all);
    const FN(vreal) rb = ((real)1 + alpha * mu) / all, ra = y / mu * rb;
    const struct FN(logs) of_a = FN(vlogs)(a, ra), of_b = FN(vlogs)(b, rb);
    const FN(vmask) near = (FN(vmask))(t > (real)-0.5) & (FN(vmask))(t < (real)0.5);
    const FN(vreal) far = FN(masked)(y * of_a.log, ~none) + of_b.log / alpha;
    const FN(vmask) usual =
        FN(is_normal)(mu) & FN(is_normal)(rb) & (none | (FN(is_normal)(ra) & FN(is_normal)(y)));
    return (struct FN(judgement)){FN(select)(near, d * a - y * of_a.excess - of_b.excess / alpha, far),
                                  d / mu / ((real)1 + alpha * mu) * d, usual};
}

/* y (log y - log mu) + (1 - y) (log(1 - y) - log(1 - mu)), and no product with 0; outcomes have no logarithm
 * of their own. */
ALWAYS_INLINE struct FN(judgement) FN(judge_binomial)(const struct FN(judged) * b, int64_t i) {
    const FN(vreal) y = FN(load)(b->y + i), mu = FN(load)(b->mu + i), rest = FN(load)(b->rest + i);
    const FN(vmask) lost = (FN(vmask))(y == (real)0), won = (FN(vmask))(y == (real)1);
    const FN(vreal) other = (real)1 - y, d = y * rest - other * mu;
    FN(vreal) log_y = {0}, log_other = {0};
    bool share = false;
    for (int l = 0; l < LANES; l++) share |= !(lost[l] | won[l]);
    if (share) {
        log_y = FN(masked)(FN(vlog)(y), ~(lost | won));
        log_other = FN(masked)(FN(vlogs)(-y, other).log, ~(lost | won));
    }
    const FN(vreal) half = FN(masked)(y * (log_y - FN(load)(b->log_mu + i)), ~lost) +
                           FN(masked)(other * (log_other - FN(load)(b->log_rest + i)), ~won);
    const FN(vmask) possible = (FN(vmask))(mu >= (real)0) & (FN(vmask))(mu <= (real)1);
    const FN(vmask) inside = FN(is_normal)(y) & (FN(vmask))(y <= (real)1);
    return (struct FN(judgement)){half, FN(masked)(d / mu * (d / rest), (FN(vmask))(d != (real)0)),
                                  possible & (lost | inside)};
}

/* The half deviances and Pearson's terms of rows whose means are there: of a beta family none is usual. */
static inline void FN(block_deviances)(const kiln_loss *loss, struct FN(judged) * b) {
    const real parameter = (real)loss->parameter;
    for (int64_t i = 0; i < b->count; i += LANES) {
        const FN(vreal) y = FN(load)(b->y + i), mu = FN(load)(b->mu + i);
        struct FN(judgement) of = {{0}, {0}, {0}};
        switch (loss->family) {
        case KILN_GAUSSIAN: of = FN(judge_gaussian)(y, mu); break;
        case KILN_POISSON: of = FN(judge_poisson)(y, mu); break;
        case KILN_GAMMA: of = FN(judge_gamma)(y, mu); break;
        case KILN_INVERSE_GAUSSIAN: of = FN(judge_inverse_gaussian)(y, mu); break;
        case KILN_BINOMIAL: of = FN(judge_binomial)(b, i); break;
        case KILN_TWEEDIE: of = FN(judge_tweedie)(parameter, y, mu); break;
        case KILN_NEGATIVE_BINOMIAL: of = FN(judge_negative_binomial)(parameter, y, mu); break;
        default: break;
        }
        const FN(vmask) below = (FN(vmask))(of.half < (real)0); /* rounded */
        FN(store)(b->half + i, FN(masked)(of.half, ~below));
        FN(store)(b->pearson + i, of.pearson);
        memcpy(b->usual + i, &of.usual, sizeof of.usual);
    }
}
