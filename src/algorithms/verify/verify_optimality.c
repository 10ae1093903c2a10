/* The part of a linear model's optimality gap that its gradient makes, sum_jc d(W_jc, z_jc) as
 * docs/results.md has it. What settles the intercepts and what rounding may do come on top in a report,
 * and a gradient is known but for `blur` in each entry: with the entries that make least of it, no true
 * report is below this. */
#include "algorithms/verify/verify.h"

/* l1 |w| + l2 w^2 / 2 + (|z| - l1)_+^2 / (2 l2) - z w with z = l2 w - g; of positive coefficients z for
 * |z|. */
static long double distance(const struct ki_verify_entry *e) {
    const long double w = e->w, g = e->g, l2 = e->l2, l1 = e->l1;
    const long double z = l2 * w - g, beyond = fmaxl((e->positive ? z : fabsl(z)) - l1, 0);
    const long double slope = g + (w < 0 ? -l1 : l1);
    if (l1 == 0 && !e->positive) return g * g / (2 * l2);
    if (w != 0 && (w < 0 ? -z : z) >= l1) return slope * slope / (2 * l2); /* the same, and nothing cancels */
    return l1 * fabsl(w) + l2 * w * w / 2 + beyond * beyond / (2 * l2) - z * w;
}

/* The gradient, within its rounding, that is next to one of the penalty's own: -l1 sign(w), or [-l1, l1]
 * for w = 0, which has no upper end of positive coefficients. */
static long double least_of(const struct ki_verify_entry *e) {
    const long double low = e->w < 0 ? e->l1 : -e->l1;
    const long double high = e->w > 0 ? -e->l1 : e->positive ? INFINITY : e->l1;
    const long double nearest = fminl(fmaxl(e->g, low), high);
    return isnan(e->g + e->blur) ? NAN : fminl(fmaxl(nearest, e->g - e->blur), e->g + e->blur);
}

long double ki_verify_optimality(struct ki_verify_entry *entries, int64_t count) {
    long double theta = 1, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        struct ki_verify_entry *e = &entries[i];
        e->g = least_of(e);
        if ((!(e->l2 > 0) && !(e->l1 > 0)) || isnan(e->g)) return NAN;
        if (!(e->l2 > 0) && (e->positive ? e->g < 0 : fabsl(e->g) > 0))
            theta = fminl(theta, e->l1 / fabsl(e->g));
    }
    for (int64_t i = 0; i < count; i++) {
        const struct ki_verify_entry *e = &entries[i];
        sum += e->l2 > 0 ? distance(e) : fabsl(e->w) * fmaxl(e->l1 + theta * (e->w < 0 ? -e->g : e->g), 0);
    }
    return fmaxl(sum, 0);
}
