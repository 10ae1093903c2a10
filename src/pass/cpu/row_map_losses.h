/* The losses of a block of rows on the CPU. The common ones, whose exponentials would cost more than a narrow row's products,
 * in vectors of rows; all others row by row through dialect/losses.h. */

/* A block: eta comes in and the derivatives go out in `eta`, which like the others has room for whole vectors. */
struct FN(losses) {
    real *eta, *value, *curve;
    const real *y; /* of the block's first row */
    int64_t count;
};

/* log(1 + e^eta) - y eta, from e = e^-|eta|: log(1 + e) + |eta| (1 - y), or y in its place where eta < 0. */
static void FN(logistic_losses)(const struct FN(losses) * rows) {
    for (int64_t i = 0; i < rows->count; i += LANES) {
        const FN(vreal) eta = FN(load)(rows->eta + i), y = FN(load_some)(rows->y + i, rows->count - i);
        const FN(vmask) negative = eta < (real)0;
        const FN(vreal) size = FN(select)(negative, -eta, eta), e = FN(vexp)(-size);
        const FN(vreal) near = (real)1 / ((real)1 + e), tail = e * near;
        FN(store)(rows->value + i, FN(vlog1p)(e) + size * FN(select)(negative, y, (real)1 - y));
        FN(store)(rows->eta + i, FN(select)(negative, tail, near) - y);
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

ALWAYS_INLINE void FN(each_loss)(int kind, const kiln_loss *loss, const struct FN(losses) * rows) {
    for (int64_t i = 0; i < rows->count; i++)
        rows->value[i] =
            FN(loss_row)(kind, (int)loss->family, (int)loss->link, (real)loss->parameter,
                         (real)loss->link_power, rows->y[i], rows->eta[i], &rows->eta[i], &rows->curve[i]);
}

static void FN(block_losses)(const kiln_loss *loss, const struct FN(losses) * rows) {
    switch (loss->kind) { /* a constant in each loop, so that the compiler can make vectors of it */
    case KILN_LOSS_SQUARED: FN(each_loss)(KILN_LOSS_SQUARED, loss, rows); return;
    case KILN_LOSS_LOGISTIC: FN(logistic_losses)(rows); return;
    case KILN_LOSS_SQUARED_HINGE: FN(each_loss)(KILN_LOSS_SQUARED_HINGE, loss, rows); return;
    case KILN_LOSS_SQUARED_EPSILON: FN(each_loss)(KILN_LOSS_SQUARED_EPSILON, loss, rows); return;
    default:
        if (loss->family == KILN_BINOMIAL && loss->link == KILN_LINK_LOGIT)
            FN(logistic_losses)(rows);
        else if (loss->family == KILN_POISSON && loss->link == KILN_LINK_LOG)
            FN(poisson_losses)(rows);
        else
            FN(each_loss)(KILN_LOSS_GLM, loss, rows);
    }
}
