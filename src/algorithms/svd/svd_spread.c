/* A polynomial of C stands in C's place where the eigenvalues that are wanted lie so close to others that
 * the search would take long: Chebyshev's, of the degree d,
 *
 *   P = T_d(2 C / beta - 1),   |T_d| <= 1 on C's eigenvalues in [0, beta],   T_d(cosh x) = cosh(d x) above,
 *
 * with beta below what is wanted. P has C's eigenvectors, and above beta their order, but its values stand
 * d^2 times as far apart; a step costs d products, and orthogonal blocks and restarts are d times rarer.
 *
 * Source: Zhou and Saad, A Chebyshev-Davidson algorithm for large symmetric eigenproblems, SIAM J. Matrix
 * Anal. Appl. 29 (2007). */
#include "algorithms/svd/svd.h"

/* Steps beyond which the search counts as slow, and those that it should take. */
enum { SLOW = 25, WANTED = 12 };

/* W = P Y; W is one of the search's three blocks of room, whichever is free at the end. A caller that asks to
 * stop is heard between products: then W is nothing. */
kiln_status ki_svd_apply(struct ki_svd *s, const kiln_matrix *Y) {
    kiln_status status;
    const double a = 2 / s->beta;
    double *const scale = s->block.scale, *const root = s->block.root;
    const kiln_matrix *before = NULL, *now = Y;
    if (s->degree > 1 && !s->third) s->third = ki_run_model(&s->run, s->near, s->b);
    TRY(s->run.arena.status);
    for (int64_t j = 0; j < s->degree; j++) {
        if (s->degree > 1 && s->known > 0) ki_run_tell(&s->run);
        if (s->run.cancelled) return KILN_OK;
        kiln_matrix *const next = s->W;
        TRY(ki_svd_square(s, next, now));
        if (s->degree == 1) return KILN_OK;
        if (s->locked > 0) TRY(ki_svd_take_off(next, s->L, s->products));
        const double factor = before ? 2 : 1; /* T_1 = x, T_j+1 = 2 x T_j - T_j-1 */
        for (int64_t c = 0; c < s->b; c++) scale[c] = factor * a, root[c] = -factor;
        TRY(kiln_combine(next, scale, next, root, now));
        for (int64_t c = 0; c < s->b; c++) scale[c] = 1, root[c] = -1;
        if (before) TRY(kiln_combine(next, scale, next, root, before));
        before = now, now = next;
        s->W = s->spare, s->spare = s->third, s->third = next;
    }
    kiln_matrix *const free = s->W;
    s->W = s->third, s->third = free;
done:
    return status;
}

double ki_svd_value(const struct ki_svd *s, double p) {
    if (s->degree == 1) return p;
    return s->beta / 2 * (1 + cosh(acosh(fmax(p, 1)) / (double)s->degree));
}

/* By which power of e a step makes what lies at or below `low` smaller beside what lies at `value`, of an
 * operator whose least eigenvalue is `least`. */
static double gain_of(double value, double low, double least) {
    return acosh(1 + 2 * fmax(value - low, 0) / (low - least));
}

/* The greatest degree up to `degree` that rounding allows: what P's largest value, at `first`, leaves of it
 * at `value`, as an error of C, is to be below `most`. */
static int64_t bounded(int64_t degree, double beta, double first, double value, double rounding,
                       double most) {
    const double x = acosh(2 * first / beta - 1), y = acosh(2 * value / beta - 1);
    for (; degree > 1; degree--) {
        const double d = (double)degree, above = cosh(d * y) - 1;
        if (rounding * cosh(d * x) * value <= most * above) break;
    }
    return degree;
}

/* Vectors with eigenvalues that differ by less than the tolerance need not be told apart. */
bool ki_svd_spread(struct ki_svd *s, int64_t kept) {
    const int64_t wanted = ki_min(s->k, s->near) - s->locked;
    const double value = ki_svd_value(s, s->theta[wanted - 1]), first = ki_svd_value(s, s->theta[0]);
    const double own = sqrt(value) * (s->locked > 0 ? s->s[0] : sqrt(first)), tolerance = s->run.tolerance;
    const double beta = fmin(ki_svd_value(s, s->theta[kept - 1]), value - tolerance / 2 * own);
    const double goal = log(s->seen / (tolerance / 2)), least = s->degree > 1 ? -1 : 0;
    if (!(beta > 0 && goal > 0)) return false;
    const double low =
        s->degree == 1 ? beta : cosh((double)s->degree * acosh(fmax(2 * beta / s->beta - 1, 1)));
    const double steps = goal / gain_of(s->theta[wanted - 1], low, least);
    if (steps <= SLOW) return false;
    const double enough = ceil(fmax(goal / WANTED, 1) / gain_of(value, beta, 0));
    const int64_t degree = bounded((int64_t)fmin(enough, KI_SVD_DEGREE_MOST), beta, first, value,
                                   2 * ki_epsilon(kiln_matrix_type(s->X)), tolerance / 2 * own);
    if (degree <= s->degree) return false;
    s->degree = degree;
    s->beta = beta;
    return true;
}
