/* The losses of a block of rows on the CPU. The common ones, whose exponentials would cost more than a
 * narrow row's products, in vectors of rows; all others row by row through dialect/losses.h. */

/* A block: eta comes in and the derivatives go out in `eta`, which like the others has room for whole
 * vectors. */
struct FN(losses) {
    real *eta, *value, *curve;
    const real *y; /* of the block's first row */
    int64_t count;
    int expected; /* the curvature */
};

/* log(1 + e^eta) - y eta, from e = e^-|eta|: log(1 + e) + |eta| (1 - y), or y in its place where eta < 0. */
static void FN(logistic_losses)(const struct FN(losses) * rows) {
    for (int64_t i = 0; i < rows->count; i += LANES) {
        const FN(vreal) eta = FN(load)(rows->eta + i), y = FN(load_some)(rows->y + i, rows->count - i);
        const FN(vmask) negative = eta < (real)0;
        const FN(vreal) size = FN(select)(negative, -eta, eta), e = FN(vexp)(-size);
        const FN(vreal) near = (real)1 / ((real)1 + e), tail = e * near;
        const FN(vreal) up =
            (real)1 - y; /* mu - y = up mu - y (1 - mu), where next to 1 no term hides another */
        FN(store)(rows->value + i, FN(vlog1p)(e) + size * FN(select)(negative, y, up));
        FN(store)(rows->eta + i, FN(select)(negative, up * tail - y * near, up * near - y * tail));
        FN(store)(rows->curve + i, tail * near);
    }
}

/* mu - y eta, mu = e^eta. */
static void FN(poisson_losses)(const struct FN(losses) * rows) {
    for (int64_t i = 0; i < rows->count; i += LANES) {
        const FN(vreal) eta = FN(load)(rows->eta + i), y = FN(load_some)(rows->y + i, rows->count - i);
        const FN(vreal) mu = FN(vexp)(eta);
        FN(store)(rows->value + i, mu - y * eta);
        FN(store)(rows->eta + i, mu - y);
        FN(store)(rows->curve + i, mu);
    }
}

/* y mu^q, mu = e^eta, and 0 where y is, though mu be 0 in the type. */
ALWAYS_INLINE FN(vreal) FN(times_power)(FN(vreal) y, real q, FN(vreal) eta) {
    return FN(masked)(y * FN(vexp)(q * eta), (FN(vmask))(y != (real)0));
}

/* y / mu + eta */
static void FN(gamma_losses)(const struct FN(losses) * rows) {
    for (int64_t i = 0; i < rows->count; i += LANES) {
        const FN(vreal) eta = FN(load)(rows->eta + i);
        const FN(vreal) part = FN(times_power)(FN(load_some)(rows->y + i, rows->count - i), (real)-1, eta);
        FN(store)(rows->value + i, part + eta);
        FN(store)(rows->eta + i, (real)1 - part);
        FN(store)(rows->curve + i, part);
    }
}

/* mu^(2-p) / (2-p) + y mu^(1-p) / (p-1): of powers of eta each, as y / mu may overflow where neither term
 * does. */
static void FN(tweedie_losses)(const struct FN(losses) * rows, real p) {
    const real under = (real)2 - p, over = p - (real)1;
    for (int64_t i = 0; i < rows->count; i += LANES) {
        const FN(vreal) eta = FN(load)(rows->eta + i), share = FN(vexp)(under * eta);
        const FN(vreal) part = FN(times_power)(FN(load_some)(rows->y + i, rows->count - i), -over, eta);
        FN(store)(rows->value + i, share * ((real)1 / under) + part * ((real)1 / over));
        FN(store)(rows->eta + i, share - part);
        FN(store)(rows->curve + i, under * share + over * part);
    }
}

/* log(1 + e^x) / alpha + y log(1 + e^-x), x = eta + log alpha, from e = e^-|x|; alpha mu / (1 + alpha mu) =
 * e^x / (1 + e^x). */
static void FN(negative_binomial_losses)(const struct FN(losses) * rows, real alpha) {
    const real moved = (real)log(alpha);
    for (int64_t i = 0; i < rows->count; i += LANES) {
        const FN(vreal) eta = FN(load)(rows->eta + i), y = FN(load_some)(rows->y + i, rows->count - i);
        const FN(vreal) x = eta + moved;
        const FN(vmask) negative = x < (real)0;
        const FN(vreal) size = FN(select)(negative, -x, x), e = FN(vexp)(-size);
        const FN(vreal) near = (real)1 / ((real)1 + e), tail = e * near;
        const FN(vreal) share = FN(select)(negative, tail, near) / alpha,
                        rest = FN(select)(negative, near, tail);
        const FN(vreal) log1p = FN(vlog1p)(e), up = log1p + FN(masked)(x, ~negative),
                        down = log1p - FN(masked)(x, negative);
        FN(store)(rows->value + i, up / alpha + y * down);
        FN(store)(rows->eta + i, share - y * rest);
        FN(store)(rows->curve + i, share * rest * ((real)1 + alpha * y));
    }
}

ALWAYS_INLINE void FN(each_loss)(int kind, const kiln_loss *loss, const struct FN(losses) * rows) {
    for (int64_t i = 0; i < rows->count; i++)
        rows->value[i] = FN(loss_row)(kind, (int)loss->family, (int)loss->link, (real)loss->parameter,
                                      (real)loss->link_power, rows->expected, rows->y[i], rows->eta[i],
                                      &rows->eta[i], &rows->curve[i]);
}

static void FN(block_losses)(const kiln_loss *loss, const struct FN(losses) * rows) {
    switch (loss->kind) { /* a constant in each loop, so that the compiler can make vectors of it */
    case KILN_LOSS_SQUARED: FN(each_loss)(KILN_LOSS_SQUARED, loss, rows); return;
    case KILN_LOSS_LOGISTIC: FN(logistic_losses)(rows); return;
    case KILN_LOSS_SQUARED_HINGE: FN(each_loss)(KILN_LOSS_SQUARED_HINGE, loss, rows); return;
    case KILN_LOSS_SQUARED_EPSILON: FN(each_loss)(KILN_LOSS_SQUARED_EPSILON, loss, rows); return;
    default: {
        const bool log_link = loss->link == KILN_LINK_LOG, own = log_link && !rows->expected;
        if (loss->family == KILN_BINOMIAL && loss->link == KILN_LINK_LOGIT)
            FN(logistic_losses)(rows);
        else if (loss->family == KILN_POISSON && log_link)
            FN(poisson_losses)(rows);
        else if (loss->family == KILN_GAMMA && own)
            FN(gamma_losses)(rows);
        else if (loss->family == KILN_TWEEDIE && own)
            FN(tweedie_losses)(rows, (real)loss->parameter);
        else if (loss->family == KILN_NEGATIVE_BINOMIAL && own)
            FN(negative_binomial_losses)(rows, (real)loss->parameter);
        else
            FN(each_loss)(KILN_LOSS_GLM, loss, rows);
    }
    }
}
