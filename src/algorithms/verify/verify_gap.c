/* The part of a linear model's optimality gap that its gradient makes, sum_jc d(W_jc, z_jc) as
 * docs/results.md has it. What settles the intercepts and what rounding may do come on top in a report, so
 * that no true one is below this. */
#include "algorithms/verify/verify.h"

/* l1 |w| + l2 w^2 / 2 + (|z| - l1)_+^2 / (2 l2) - z w with z = l2 w - g. */
static long double distance(long double w, long double g, long double l2, long double l1) {
    const long double z = l2 * w - g, beyond = fmaxl(fabsl(z) - l1, 0);
    if (l1 == 0) return g * g / (2 * l2);
    return l1 * fabsl(w) + l2 * w * w / 2 + beyond * beyond / (2 * l2) - z * w;
}

long double ki_verify_gap(const struct ki_verify_entry *entries, int64_t count) {
    long double theta = 1, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct ki_verify_entry *e = &entries[i];
        if ((!(e->l2 > 0) && !(e->l1 > 0)) || isnan(e->g)) return NAN;
        if (!(e->l2 > 0) && fabsl(e->g) > 0) theta = fminl(theta, e->l1 / fabsl(e->g));
    }
    for (int64_t i = 0; i < count; i++) {
        const struct ki_verify_entry *e = &entries[i];
        sum += e->l2 > 0 ? distance(e->w, e->g, e->l2, e->l1)
                         : fabsl(e->w) * fmaxl(e->l1 + theta * (e->w < 0 ? -e->g : e->g), 0);
    }
    return fmaxl(sum, 0);
}
