/* The criterion of linear models again: gradients divided by D, and what rounding may have made of them.
 * verify.c says how. */
#include "algorithms/verify/verify_point.h"

long double ki_verify_penalty(const struct ki_verify_facts *f, int64_t j) {
    return f->options.l2 * (f->options.standardize ? f->variance[j] : 1);
}

long double ki_verify_l1(const struct ki_verify_facts *f, int64_t j) {
    return f->options.l1 * (f->options.standardize ? sqrtl(f->variance[j]) : 1);
}

/* The gradient's entry, or with l1 the least subgradient's; of positive coefficients what leads to others. */
static long double least(long double gradient, double w, long double l1, bool positive) {
    if (positive && w < 0) return INFINITY;
    if (positive && w == 0) return fminl(gradient + l1, 0);
    if (w != 0) return gradient + (w > 0 ? l1 : -l1);
    return fmaxl(fabsl(gradient) - l1, 0);
}

/* D_j^2, 0 of a column that is constant or empty, whose coefficient is 0; j = cols: the intercept's.
 * present: no more than by the curvature at this point. */
static long double diagonal_of(const struct ki_verify_point *point, const struct ki_verify_facts *f,
                               int64_t j, long double mean_curvature, bool present) {
    if (j == f->cols)
        return present && point->curvature > 0 ? fminl(point->curvature, mean_curvature * f->weight)
                                               : mean_curvature * f->weight;
    const long double square = f->b ? f->weight * f->variance[j] : f->square[j];
    if (square == 0) return 0;
    long double diagonal = mean_curvature * square;
    if (present) diagonal = fminl(diagonal, square / f->square[j] * point->curved[j]);
    return diagonal + ki_verify_penalty(f, j);
}

long double ki_verify_norm(const struct ki_verify_point *point, const struct ki_verify_problem *p,
                           const double *W, long double mean_curvature, bool present) {
    const struct ki_verify_facts *f = p->facts;
    long double sum = 0;
    for (int64_t j = 0; j < f->cols; j++) {
        const long double diagonal = diagonal_of(point, f, j, mean_curvature, present);
        for (int64_t c = 0; c < p->k && diagonal > 0; c++) {
            const double w = W ? W[j * f->k + p->first + c] : 0;
            long double g = point->gradient[j * p->k + c] + ki_verify_penalty(f, j) * (long double)w;
            if (f->b) g -= f->mean[j] * point->intercept[c];
            g = least(g, w, ki_verify_l1(f, j), f->options.positive);
            sum += g * g / diagonal;
        }
    }
    for (int64_t c = 0; c < p->k && f->b; c++)
        sum += point->intercept[c] * point->intercept[c] /
               diagonal_of(point, f, f->cols, mean_curvature, present);
    return sqrtl(sum);
}

long double ki_verify_entry_blur(const struct ki_verify_point *point, const struct ki_verify_problem *p,
                                 int64_t j, const double *W) {
    const struct ki_verify_facts *f = p->facts;
    long double size = 0;
    for (int64_t c = 0; W && c < p->k; c++) size += fabs(W[j * f->k + p->first + c]);
    return point->blur[j] + (f->b ? fabsl(f->mean[j]) * point->intercept_blur : 0) +
           f->formula * ki_verify_penalty(f, j) * size;
}

long double ki_verify_blur(const struct ki_verify_point *point, const struct ki_verify_problem *p,
                           const double *W, long double mean_curvature, bool present) {
    const struct ki_verify_facts *f = p->facts;
    long double sum = 0;
    for (int64_t j = 0; j < f->cols; j++) {
        const long double diagonal = diagonal_of(point, f, j, mean_curvature, present);
        const long double off = ki_verify_entry_blur(point, p, j, W);
        if (diagonal > 0) sum += off * off / diagonal;
    }
    if (f->b)
        sum += point->intercept_blur * point->intercept_blur /
               diagonal_of(point, f, f->cols, mean_curvature, present);
    return sqrtl(sum);
}
