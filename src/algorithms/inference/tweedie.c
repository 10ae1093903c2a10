/* Tweedie's density. For a variance power p in (1, 2) y is a sum of a Poisson number of gamma amounts, with
 * theta = mu^(1-p) / (1-p), kappa = mu^(2-p) / (2-p), a = (2-p) / (p-1), phi the dispersion,
 *   log f = (y theta - kappa) / phi + [y > 0] (log sum_j w_j - log y),
 *   log w_j = j log x - log j! - log Gamma(a j),  log x = a log(y / ((p-1) phi)) - log((2-p) phi), j >= 1
 * (Dunn and Smyth, Stat. Comput. 15, 2005). The terms are largest near j = y^(2-p) / ((2-p) phi), fall off
 * on both sides as a bell of width sigma = sqrt(j / (1 + a)), and are summed as far as they count. The sum of
 * a smooth bell is h times that of every h-th term, but for some exp(-2 pi^2 sigma^2 / h^2) of it: h is at
 * most sigma / 2, so that a row costs some 150 terms at most, whatever its y. Rounding leaves an error of
 * some 1e-16 j log j in log f, as the parts cancel. From j = 1e6 on that is more, in the derivatives, than
 * what the saddle point leaves out, some 1 / (12 j):
 *   log f = -1/2 log(2 pi phi y^p) - d / (2 phi),  d = 2 y^(2-p) g(log(y / mu)),
 *   g(r) = (e^((p-1) r) - 1) / (p-1) - (1 - e^((p-2) r)) / (2-p).
 *
 * For p > 2 y is a positive stable variable of index a = (p-2) / (p-1) whose density is tilted by e^(theta y
 * / phi). With that density as an integral of positive numbers (Kanter, Ann. Probab. 3, 1975), and
 * q = y^(2-p) / ((p-1) (p-2) phi),
 *   f = e^(-d / (2 phi)) (p-2) q / (pi y) I,  I = integral of B e^(-q (B - 1)) over u from 0 to pi,
 *   B(u) = (sin(a u) / (a u))^(p-2) sin((1-a) u) / ((1-a) u) (u / sin u)^(p-1),
 * in which nothing cancels. With u = 2 arctan e^v and v = log T + s - e^-s, T where q (B - 1) is some 1, the
 * integrand is smooth in s and falls off faster than any power of s on both sides: the sum of every h-th
 * value has I's digits once half of h changes none. */
#define _DEFAULT_SOURCE
#include "algorithms/inference/tweedie.h"

#include <float.h>
#include <math.h>

#include "ops/linear/newton.h"
#include "ops/sampled/gamma.h"

enum { PARTS = 64 };

struct series {
    double a, log_x;
    double top;                    /* the largest log w_j, about */
    double sum, first, with_gamma; /* of w_j, j w_j, j psi(a j) w_j, all over exp(top) */
};

static double log_term(const struct series *series, double j) {
    int sign; /* plain lgamma writes it to a global variable */
    return j * series->log_x - lgamma_r(j + 1, &sign) - lgamma_r(series->a * j, &sign);
}

/* Adds the terms from j on, in steps, until they no longer count. */
static void add_terms(struct series *series, double j, double step) {
    const double least = -40; /* of the logarithm, below the top */
    while (j >= 1) {
        const double log_w = log_term(series, j) - series->top;
        if (!(log_w >= least)) return;
        const double w = exp(log_w);
        series->sum += w;
        series->first += j * w;
        series->with_gamma += j * ki_digamma(series->a * j) * w;
        j += step;
    }
}

static const double MANY = 1e6;

static struct ki_tweedie row_near_saddle(double y, double mean, double phi, double power) {
    const double one = power - 1, two = 2 - power, r = log(y / fmax(mean, DBL_MIN)), log_y = log(y);
    const double up = expm1(one * r), down = expm1(-two * r);
    const double g = up / one + down / two;
    const double by_power = ((up + 1) * r - up / one) / one + ((down + 1) * r + down / two) / two;
    const double half = exp(two * log_y) / phi; /* d / (2 phi) over g */
    return (struct ki_tweedie){.value = -0.5 * (log(2 * acos(-1) * phi) + power * log_y) - half * g,
                               .by_dispersion = half * g - 0.5,
                               .by_power = -0.5 * log_y - half * (by_power - log_y * g)};
}

/* The logarithm of sin(x) / x, 0 < x < pi. */
static double log_sinc(double x) {
    const double z = x * x;
    return x < 0.1 ? -z * (1.0 / 6 + z * (1.0 / 180 + z * (1.0 / 2835 + z / 37800))) : log(sin(x) / x);
}

/* B e^(-q (B - 1)) du / dv. */
static double stable_term(double v, double q, double power) {
    const double a = (power - 2) / (power - 1), u = 2 * atan(exp(v)), sine = 1 / cosh(v); /* of u */
    const double log_sine = u < 0.1 ? log_sinc(u) : log(sine / u);
    const double log_b = (power - 2) * log_sinc(a * u) + log_sinc((1 - a) * u) - (power - 1) * log_sine;
    return exp(log_b - q * expm1(log_b)) * sine;
}

/* h times the sum of the integrand at s = begin + k h, k = 0, 1, ... while terms count. */
static double stable_side(double begin, double h, double log_t, double q, double power) {
    double sum = 0;
    for (double s = begin;; s += h) {
        const double term = stable_term(log_t + s - exp(-s), q, power) * (1 + exp(-s));
        sum += term;
        if (!(term > 1e-17 * sum)) return fabs(h) * sum;
    }
}

/* I. */
static double stable_integral(double q, double power) {
    enum { HALVINGS = 12 };
    const double log_t = -log(q) / (q > 1 ? 2 : power - 1);
    double h = 0.25, sum = stable_side(0, h, log_t, q, power) + stable_side(-h, -h, log_t, q, power);
    for (int i = 0; i < HALVINGS; i++) {
        const double between =
            stable_side(h / 2, h, log_t, q, power) + stable_side(-h / 2, -h, log_t, q, power);
        const double apart = fabs(between - sum);
        sum = (sum + between) / 2;
        h /= 2;
        if (apart < 1e-7 * sum) return sum; /* the next halving has twice the digits */
    }
    return sum;
}

/* The value alone. */
static struct ki_tweedie row_above_two(double y, double mean, double phi, double power) {
    const double r = log(y / mean), log_y = log(y), half = exp((2 - power) * log_y) / phi;
    const double g = expm1((power - 1) * r) / (power - 1) - expm1((power - 2) * r) / (power - 2);
    const double q = half / ((power - 1) * (power - 2));
    return (struct ki_tweedie){.value = -half * g + log((power - 2) * q / acos(-1)) - log_y +
                                        log(stable_integral(q, power))};
}

static struct ki_tweedie row_at(double y, double mean, double dispersion, double power) {
    if (power > 2) return row_above_two(y, mean, dispersion, power);
    const double one = power - 1, two = 2 - power, phi = dispersion, log_mean = log(fmax(mean, DBL_MIN));
    const double theta = -exp(-one * log_mean) / one, kappa = exp(two * log_mean) / two;
    struct ki_tweedie at = {.value = (y * theta - kappa) / phi};
    at.by_dispersion = -at.value;
    at.by_power = (y * theta * (1 / -one - log_mean) - kappa * (1 / two - log_mean)) / phi;
    if (!(y > 0)) return at;
    const double a = two / one, log_y = log(y), log_rest = log_y - log(one * phi);
    struct series series = {.a = a, .log_x = a * log_rest - log(two * phi)};
    const double best = fmax(1, floor(exp(two * log_y) / (two * phi)));
    if (best > MANY) return row_near_saddle(y, mean, phi, power);
    const double sigma = sqrt(best / (1 + a)), step = sigma < 8 ? 1 : floor(sigma / 2);
    series.top = log_term(&series, best);
    add_terms(&series, best, step);
    add_terms(&series, best - step, -step);
    at.value += series.top + log(series.sum * step) - log_y;
    const double j = series.first / series.sum;
    at.by_dispersion -= j / one;
    at.by_power +=
        j * (1 / two - a / one - log_rest / (one * one)) + series.with_gamma / series.sum / (one * one);
    return at;
}

struct sums {
    const struct ki_tweedie_rows *rows;
    double dispersion, power;
    bool counted;
    struct ki_tweedie part[PARTS];
};

static void add_part(void *arg, int part) {
    struct sums *sums = arg;
    const struct ki_tweedie_rows *rows = sums->rows;
    struct ki_tweedie sum = {0};
    for (int64_t i = part; i < rows->m; i += PARTS) {
        const double s = rows->weights[i], times = sums->counted ? s : 1;
        if (!(s > 0)) continue;
        const struct ki_tweedie at = row_at(
            rows->y[i], rows->mean[i], sums->counted ? sums->dispersion : sums->dispersion / s, sums->power);
        sum.value += times * at.value;
        sum.by_power += times * at.by_power;
        sum.by_dispersion += times * at.by_dispersion;
    }
    sums->part[part] = sum;
}

struct ki_tweedie ki_tweedie_sum(const kiln_device *device, const struct ki_tweedie_rows *rows,
                                 double dispersion, double power, bool counted) {
    struct sums sums = {.rows = rows, .dispersion = dispersion, .power = power, .counted = counted};
    struct ki_tweedie sum = {0};
    ki_newton_parallel(device, PARTS, add_part, &sums);
    for (int i = 0; i < PARTS; i++) {
        sum.value += sums.part[i].value;
        sum.by_power += sums.part[i].by_power;
        sum.by_dispersion += sums.part[i].by_dispersion;
    }
    return sum;
}
