/* The gap of Fenchel and Young: any t with sum_i t_i = 0 (under an intercept) bounds the optimum from below,
 * and the one that the point itself suggests, t_i = -s_i loss_i'(eta_i), is so near to the best that losses
 * drop out of the difference:
 *
 *   f(W, b) - optimum <= sum_jc d_j(W_jc, (X^T t)_jc),   d_j(w, z) = pen_j(w) + pen_j*(z) - z w,
 *   with L_j > 0:  pen_j*(z) = max(|z| - l1_j, 0)^2 / (2 L_j), and without an l1 term d_j = g_j^2 / (2 L_j),
 *   g the gradient.
 *
 * It needs what a fit has at its end and no pass over X: X^T t = L W - g. Three things are in the way:
 *
 *   sum_i t_i is 0 but for the tolerance. The caller moves t (newton_gap.c) and says what that costs:
 *   `settled` and `drift`.
 *   With l2 = 0, |X^T t|_j <= l1_j has to hold: theta t with theta <= 1 does that,
 *   and costs by convexity at most a = 1 - theta times the
 *   excess. That is much, as it is of first order, and what it costs is of second order. A row's part is,
 *   with t_i = -s_i v and h(z) the
 *   loss's curvature where its derivative is z,
 *
 *     E = int_theta^1 (u - theta) v^2 / h(u v) du <= a^2 / (2 theta) v^2 / h(v)   where h(u v) >= u h(v).
 *
 *   Least squares have h = 1 and E = a^2 v^2 / 2. In mu_u, whose derivative is u v,
 *   h is concave and h(u v) >= u h(v) + (1 - u) h(0) for
 *   binomial, Poisson, gamma and negative binomial models; Tweedie's dh/dz lies between -(p - 1) and 2 - p,
 *   and v between -h / (p - 1) and
 *   h / (2 - p), which is enough. Softmax's E is the distance of Kullback and Leibler of two probabilities,
 *   of the label and of all others, and so that of two classes. With an intercept t has moved by d before:
 *   theta (t + d) lies halfway between t - 2 a t and t + 2 theta d, so that a^2 / (1 - 2 a) sum s v^2 / h is
 *   enough, and `settled` is half of what twice the move costs. The rows' v^2 / h
 *   may come from another computed eta, by which E changes by a |v| at most for each unit.
 *   Rounding. That of eta enters by its square alone: t at a computed eta' is as good a point as that at eta,
 *   and the losses' part of the gap is curvature / 2 sum_i s_i (eta - eta')_i^2 at most. X^T t is off by e_j
 *   = c_m u (sum s loss'^2 sum s x_j^2)^(1/2). The computed
 *   objective is off by about slope * || eta - eta' ||, which is the largest of the three.
 *
 * Sums of n terms are counted as off by c_n = min(n, 8 sqrt(n)) + 8 units of their type: no more than n in
 * any case, and within 8 sqrt(n) but once in 1e13 where roundings are independent (Higham and Mary, SIAM J.
 * Sci. Comput. 41, 2019). Source: Boyd and Vandenberghe, Convex Optimization, 2004, 5.8 and 9.3; Ndiaye,
 * Fercoq, Gramfort and Salmon, JMLR 18 (2017), for theta. */
#include "algorithms/certificate/certificate.h"

#include "ops/linear/newton.h"

enum { PARTS = 64 };

typedef double column_term(const struct ki_certificate *at, int64_t j);

struct column_sum {
    const struct ki_certificate *at;
    column_term *term;
    double sums[PARTS];
};

static void sum_part(void *arg, int part) {
    struct column_sum *s = arg;
    const int64_t n = kiln_matrix_cols(s->at->X), each = ki_ceil_div(n, PARTS);
    double sum = 0;
    for (int64_t j = part * each; j < ki_min((part + 1) * each, n); j++) sum += s->term(s->at, j);
    s->sums[part] = sum;
}

/* The sum of a term over the columns. A million of them take the host as long as some passes take a GPU: all
 * threads add up, part by part, so that their number does not matter. */
static double sum_columns(const struct ki_certificate *at, column_term *term) {
    enum { MANY = 16384 };
    struct column_sum s = {.at = at, .term = term};
    double sum = 0;
    const bool many = kiln_matrix_cols(at->X) * at->k > MANY;
    if (many) ki_newton_parallel(kiln_matrix_device(at->X), PARTS, sum_part, &s);
    for (int part = 0; part < PARTS && !many; part++) sum_part(&s, part);
    for (int part = 0; part < PARTS; part++) sum += s.sums[part];
    return sum;
}

double ki_units(int64_t terms, kiln_type type) {
    const double n = (double)terms;
    return (fmin(n, 8 * sqrt(n)) + 8) * ki_epsilon(type) / 2;
}

static double penalty_of(const struct ki_certificate *at, int64_t j) {
    return at->l2 * (at->standardize ? at->variance[j] : 1);
}

static double l1_of(const struct ki_certificate *at, int64_t j) {
    return at->l1 * (at->standardize ? sqrt(at->variance[j]) : 1);
}

/* sqrt(sum_i s_i e_i^2) at most, e_i the sum of the sizes of what eta_i is made of: columns know their
 * norms. */
static double size_at(const struct ki_certificate *at, int64_t j) {
    const double shift = at->intercept ? fabs(at->mean[j]) * sqrt(at->weight) : 0;
    double sum = 0;
    for (int64_t c = 0; c < at->k; c++) sum += fabs(at->w[j * at->k + c]);
    return sum * (sqrt(at->square[j]) + shift);
}

static double size_of(const struct ki_certificate *at) {
    double level = 1;
    for (int64_t c = 0; c < at->k && at->b; c++) level += fabs(at->b[c]);
    return at->target + level * sqrt(at->weight) + sum_columns(at, size_at);
}

static double penalty_at(const struct ki_certificate *at, int64_t j) {
    double sum = 0;
    for (int64_t c = 0; c < at->k; c++) {
        const double w = at->w[j * at->k + c];
        sum += penalty_of(at, j) * w * w / 2 + l1_of(at, j) * fabs(w);
    }
    return sum;
}

static double penalties(const struct ki_certificate *at) {
    return sum_columns(at, penalty_at);
}

double ki_certificate_rounding(const struct ki_certificate *at) {
    enum { EACH = 32 }; /* units of a loss or a penalty, whose formulas are short */
    const kiln_type type = kiln_matrix_type(at->X);
    const double size = size_of(at), off = ki_units(kiln_matrix_cols(at->X), type) * size,
                 terms = at->terms + at->lean * size;
    return (at->slope + at->curvature * off) * off + ki_units(EACH, type) * (terms + penalties(at)) +
           ki_units(kiln_matrix_rows(at->X), KILN_F64) * terms;
}

double ki_certificate_blur(const struct ki_certificate *at, int64_t j) {
    const kiln_type type = kiln_matrix_type(at->X);
    double size = 0;
    for (int64_t c = 0; c < at->k; c++) size = fmax(size, fabs(at->w[j * at->k + c]));
    return 2 * ki_units(kiln_matrix_rows(at->X), type) * at->slope * sqrt(at->square[j]) +
           8 * ki_epsilon(type) * penalty_of(at, j) * size;
}

/* pen(w) + pen*(z) - z w with L > 0. Next to w != 0, where |z| >= l1, differences would cancel: there it is
 * a square. */
static double distance(double w, double z, double l2, double l1) {
    const double beyond = fmax(fabs(z) - l1, 0), away = w < 0 ? -z : z;
    if (w == 0) return beyond * beyond / (2 * l2);
    if (away >= l1) return (away - l1 - l2 * fabs(w)) * (away - l1 - l2 * fabs(w)) / (2 * l2);
    return (l1 - away) * fabs(w) + l2 * w * w / 2 + beyond * beyond / (2 * l2);
}

/* A column whose coefficient is 0 whatever the rest: it has no entries, or is constant under an intercept
 * and has no penalty. */
static bool left_out(const struct ki_certificate *at, int64_t j) {
    return !(at->square[j] > 0) || (at->intercept && at->standardize && !(at->variance[j] > 0));
}

/* g_jc and what it may be off by. */
static double entry(const struct ki_certificate *at, int64_t j, int64_t c, double *off) {
    *off = ki_certificate_blur(at, j) + (at->drift > 0 ? at->drift * sqrt(at->variance[j]) : 0);
    return at->g[j * at->k + c];
}

/* By Cauchy and Schwarz |z_j| is at most (slope + drift / sqrt(weight)) c_j^(1/2), c_j = sum_i s_i (x_ij -
 * mean_j)^2. So a coefficient that is 0 adds z_j^2 / (2 L_j) at most, and nothing where |z_j| <= l1_j. */
double ki_certificate_flats(const struct ki_certificate *at) {
    const double reach = at->slope + at->drift / sqrt(at->weight),
                 centred = at->standardize ? at->weight * (double)at->flats.count : at->flats.centred;
    if (at->flats.count == 0 || !at->intercept || reach * sqrt(centred) <= at->l1) return 0;
    return at->l2 > 0 ? reach * reach * centred / (2 * at->l2) : (double)INFINITY;
}

/* Columns with L_j > 0. d is convex in z, so that one end of what z may be has the largest. */
static double penalised(const struct ki_certificate *at, int64_t j) {
    const double l2 = penalty_of(at, j), l1 = l1_of(at, j);
    double sum = 0, off;
    if (left_out(at, j)) return 0;
    if (!(l2 > 0)) return INFINITY;
    for (int64_t c = 0; c < at->k; c++) {
        const double w = at->w[j * at->k + c], g = entry(at, j, c, &off);
        /* without l1 the gradient's own digits count, which L w - g would lose */
        sum += l1 > 0 ? fmax(distance(w, l2 * w - g - off, l2, l1), distance(w, l2 * w - g + off, l2, l1))
                      : (fabs(g) + off) * (fabs(g) + off) / (2 * l2);
    }
    return sum;
}

/* The same of a gradient of which the norm is known alone. */
static double square_blur(const struct ki_certificate *at, int64_t j) {
    return ki_certificate_blur(at, j) * ki_certificate_blur(at, j);
}

static double penalised_alike(const struct ki_certificate *at) {
    const double norm = at->norm + sqrt(sum_columns(at, square_blur));
    return norm * norm / (2 * at->l2);
}

/* Returns what the losses' part grows by where t is multiplied by theta. */
static double shrunk(const struct ki_certificate *at, double theta) {
    const double less = 1 - theta, first = less * at->excess;
    if (at->quadratic) return less * less * at->slope * at->slope / 2;
    if (!(at->bend > 0) || !(less < 0.5)) return first;
    const double off = 2 * ki_units(kiln_matrix_cols(at->X), kiln_matrix_type(at->X)) * size_of(at);
    const double moved = (at->slope + at->curvature * off) * off;
    return fmin(first, less * (less * at->bend / (1 - 2 * less) + moved));
}

/* With l2 = 0: t scaled so that no column has more than its l1_j. */
static double scaled(const struct ki_certificate *at) {
    const int64_t n = kiln_matrix_cols(at->X);
    double theta = 1, sum = 0, off;
    for (int64_t j = 0; j < n; j++) {
        if (left_out(at, j)) continue;
        if (!(l1_of(at, j) > 0)) return INFINITY;
        for (int64_t c = 0; c < at->k; c++) {
            const double z = fabs(entry(at, j, c, &off)) + off;
            theta = fmin(theta, l1_of(at, j) / z);
        }
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < at->k && !left_out(at, j); c++) {
            const double w = at->w[j * at->k + c], z = -entry(at, j, c, &off);
            sum += fabs(w) * fmax(l1_of(at, j) - theta * ((w < 0 ? -z : z) - off), 0);
        }
    return sum + shrunk(at, theta);
}

double ki_certificate_gap(const struct ki_certificate *at) {
    if (!(at->l2 > 0) && !(at->l1 > 0)) return INFINITY;
    const double rounding = ki_certificate_rounding(at);
    const double gap = (!(at->l2 > 0) ? scaled(at)
                        : at->g       ? sum_columns(at, penalised)
                                      : penalised_alike(at)) +
                       ki_certificate_flats(at);
    if (isnan(gap) || !isfinite(rounding)) return INFINITY;
    /* no loss is below its own least value, and no penalty below 0 */
    return fmin(at->settled + gap, at->excess + penalties(at)) + rounding;
}

void ki_report_certify(kiln_report *report, double gap, const char *by) {
    if (!isfinite(gap)) return;
    report->optimality_gap = gap;
    report->certificate = by;
}
