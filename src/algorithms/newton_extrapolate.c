/* Anderson extrapolation of coordinate descent: of the last points z_0 ... z_K, K sweeps in one order apart, the affine
 * combination
 *
 *   sum_k c_k z_k  with  || sum_k c_k D (z_k - z_k-1) ||  least,  sum c = 1,  D^2 the model's diagonal.
 *
 * Sweeps in one order are a linear iteration once signs are settled, so that the combination is what Krylov's method would make
 * of them: of ill-conditioned models it takes off a third to half of the sweeps. Elements that would change sign become 0, and
 * a point that does not lower the model is not gone to (Bertrand and Massias, AISTATS 2021). */
#include "algorithms/newton_descent.h"

enum { POINTS = KI_QUADRATIC_POINTS };

/* Of the k-th point; the intercept comes last. */
static double *point(const struct ki_quadratic *of, int64_t k) {
    return of->points + k * (of->count + 1);
}

void ki_quadratic_keep(struct ki_quadratic *of, int64_t k) {
    memcpy(point(of, k), of->z, (size_t)of->count * sizeof(double));
    point(of, k)[of->count] = of->b;
}

static void go_to(struct ki_quadratic *of, const double *to) {
    for (int64_t a = 0; a < of->count; a++) {
        const double step = to[a] - of->z[a];
        of->z[a] = to[a];
        if (step != 0) ki_quadratic_move(of, a, step);
    }
    if (of->intercept) ki_quadratic_move_intercept(of, to[of->count] - of->b);
}

static double value_of(const struct ki_quadratic *of) {
    double square = of->sigma * (2 * of->qr + of->sigma * of->total), sum = of->gb * of->b;
    for (int64_t i = 0; i < of->rows; i++) square += of->r[i] * of->r[i];
    for (int64_t a = 0; a < of->count; a++) {
        const double d = of->z[a] - of->w[a];
        sum += d * (of->g[a] + 0.5 * of->own[a] * d) + of->l1[a] * fabs(of->z[a]);
    }
    return sum + 0.5 * square;
}

/* The moves' products into M, symmetric, of which the upper half is filled. */
static void multiply_moves(const struct ki_quadratic *of, double *M) {
    for (int i = 0; i < POINTS; i++)
        for (int j = i; j < POINTS; j++) {
            const double *a = point(of, i), *b = point(of, i + 1), *c = point(of, j), *d = point(of, j + 1);
            double sum = of->intercept ? (b[of->count] - a[of->count]) * (d[of->count] - c[of->count]) : 0;
            sum *= of->total;
            for (int64_t e = 0; e < of->count; e++) sum += (b[e] - a[e]) * (d[e] - c[e]) * of->diagonal[e];
            M[i * POINTS + j] = sum;
        }
}

/* c = M^-1 1, but for its sum, which is returned; M a little larger than it is, as the moves may be nearly the same. */
static double weigh(const struct ki_quadratic *of, double *weight) {
    const double slight = 1e-10, none[POINTS] = {0};
    double M[POINTS * POINTS] = {0}, trace = 0, sum = 0;
    bool replaced;
    multiply_moves(of, M);
    for (int i = 0; i < POINTS; i++) trace += M[i * (POINTS + 1)];
    for (int i = 0; i < POINTS; i++) {
        M[i * (POINTS + 1)] += slight * trace;
        weight[i] = 1;
    }
    if (!ki_factorise(M, POINTS, none, 0, &replaced)) return 0;
    ki_substitute(M, weight, POINTS);
    for (int i = 0; i < POINTS; i++) sum += weight[i];
    return sum;
}

void ki_quadratic_extrapolate(struct ki_quadratic *of) {
    double *to = point(of, POINTS + 1), weight[POINTS];
    const double value = value_of(of), sum = weigh(of, weight);
    if (!(sum > 0)) return;
    for (int64_t a = 0; a <= of->count; a++) {
        to[a] = 0;
        for (int i = 0; i < POINTS; i++) to[a] += weight[i] / sum * point(of, i + 1)[a];
        if (a < of->count && !(to[a] * of->z[a] > 0)) to[a] = 0;
    }
    go_to(of, to);
    if (!(value_of(of) <= value)) go_to(of, point(of, POINTS));
}
