/* This header says what a row adds to the metrics of predictions: formulas over `real`, which is double
 * wherever they are used, for sums of many rows show what a row's float has lost. Include it after
 * losses.h. */

/* Twice what the row's log-likelihood lacks to its best, for weight 1: from eta, as a mean has lost the
 * digits of what it lacks to 1. NaN where the family has no such target or mean: targets lie in [least,
 * most], without what `open` says (KILN_OPEN_LEAST, KILN_OPEN_MOST). */
SCALAR_FN real FN(unit_deviance)(int family, int link, real parameter, real power, real least, real most,
                                 int open, real y, real eta, real mean) {
    const struct FN(response) at = FN(response_at)(link, power, eta, family == FAMILY_BINOMIAL);
    const int finite = mean - mean == 0, overflown = mean == mean && eta - eta == 0 && eta != 0;
    const int has = (open & 1 ? y > least : y >= least) && (open & 2 ? y < most : y <= most);
    const int possible = has && mean >= least && mean <= most && (finite || overflown);
    return possible ? (real)2 * FN(half_deviance)(family, parameter, y, at) : (real)NAN;
}

/* -log of the probability 1 / (1 + e^-margin), without overflow and without loss of digits, and the square of
 * what that lacks of 1. */
SCALAR_FN real FN(logistic_loss)(real margin, real *brier) {
    const real e = (real)exp(-fabs(margin)), missed = (margin > 0 ? e : (real)1) / ((real)1 + e);
    *brier = missed * missed;
    return (real)log1p(e) + (margin > 0 ? (real)0 : -margin);
}

/* -log p of the class, 0 or 1, and sum_c (p_c - [c is the class])^2 / 2. Class -1 has the probability 0. */
SCALAR_FN real FN(lost_of_two)(real eta, int class_, real *brier) {
    real other;
    if (class_ >= 0) return FN(logistic_loss)(class_ == 1 ? eta : -eta, brier);
    FN(logistic_loss)(eta, brier);
    FN(logistic_loss)(-eta, &other);
    *brier = (*brier + other + (real)1) / (real)2;
    return (real)INFINITY;
}

/* Several classes lose log(sum_c e^eta_c) - eta_class. With e_c = e^(eta_c - the largest) and E their sum,
 * p_c = e_c / E, and sum_c (p_c - [c])^2 = all other p_c^2 and the square of the sum of all other p_c.
 */
struct FN(many) {
    real own, others, squares; /* e_class, and sums of the other e_c and their squares */
};

/* e: e_c */
SCALAR_FN void FN(many_add)(struct FN(many) * to, real e, int own) {
    to->own = own ? e : to->own;
    to->others += own ? (real)0 : e;
    to->squares += own ? (real)0 : e * e;
}

/* own_above: of the class; known: there is one. */
SCALAR_FN real FN(lost_of_many)(const struct FN(many) * of, real own_above, int known, real *brier) {
    const real all = of->own + of->others;
    *brier =
        known ? (of->squares / all + of->others / all * of->others) / all : of->squares / all / all + (real)1;
    const real more = of->own == (real)1 ? (real)log1p(of->others) : (real)log(all);
    return known ? more - own_above : (real)INFINITY;
}
