#define _GNU_SOURCE
/* Tails of Student's t, F and chi square, by the incomplete beta and gamma functions' continued fractions
 * (Lentz's method; Press et al., Numerical Recipes, 6.2 and 6.4; of beta its even part, Didonato and Morris,
 * ACM TOMS 18, 1992), each taken on the side of the mean where it converges fast. Where arguments are large,
 * terms that would cancel are taken together by Stirling's series. */
#include <stdbool.h>

#include "algorithms/algorithm.h"

static const double tiny = 1e-300, enough = 1e-15, HALF_LOG_2_PI = 0.918938533204672741780;
enum { STEPS = 200000, LARGE = 32 };
static const double INFINITE = 1e30; /* degrees that no double tells from infinite ones */

static double log_gamma(double x) {
    int sign; /* plain lgamma writes it to a global variable */
    return lgamma_r(x, &sign);
}

/* log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, x >= LARGE. */
static double stirling_rest(double x) {
    const double r = 1 / (x * x);
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r / 1188)))) / x;
}

/* log of Gamma(a) Gamma(b) / Gamma(a + b). */
static double log_beta(double a, double b) {
    const double most = fmax(a, b), least = fmin(a, b), sum = a + b;
    if (most < LARGE) return log_gamma(a) + log_gamma(b) - log_gamma(sum);
    const double rest = stirling_rest(most) - stirling_rest(sum) - (most - 0.5) * log1p(least / most);
    if (least < LARGE) return log_gamma(least) + rest - least * log(sum) + least;
    return HALF_LOG_2_PI - log(least) / 2 + rest + stirling_rest(least) - least * log1p(most / least);
}

/* ---- the incomplete beta function ---- */

static double not_zero(double x) {
    return fabs(x) < tiny ? tiny : x;
}

/* 1 - (a + m) (a + b + m) x / ((a + 2 m) (a + 2 m + 1)): near x = 1, where that cancels, by y = 1 - x. */
static double beta_pivot(double a, double b, double x, double y, double m) {
    const double whole = (a + 2 * m) * (a + 2 * m + 1), part = (a + m) * (a + b + m);
    if (x < y) return 1 - part * x / whole;
    return (a * (2 * m + 1 - b) + m * (3 * m + 2 - b) + part * y) / whole;
}

/* 1 / (1 + d_1 / (1 + d_2 / ...)), two terms at a time: d_2m = m (b - m) x / ((a + 2 m - 1) (a + 2 m)) and
 * 1 + d_2m+1 = beta_pivot. */
static double beta_fraction(double a, double b, double x, double y) {
    double pivot = beta_pivot(a, b, x, y, 0), whole = not_zero(pivot), c = whole, d = 0;
    for (int i = 1; i < STEPS; i++) {
        const double m = i, even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double above = (1 - pivot) * even;
        pivot = beta_pivot(a, b, x, y, m);
        d = 1 / not_zero(pivot + even + above * d);
        c = not_zero(pivot + even + above / c);
        whole *= c * d;
        if (fabs(c * d - 1) < enough) break;
    }
    return 1 / whole;
}

/* log(1 + u) - u. */
static double log_rest(double u) {
    double sum = 0, power = -u;
    if (fabs(u) > 0.1) return log1p(u) - u;
    for (int k = 2; k < STEPS && fabs(power) > enough * fabs(sum); k++) sum -= (power *= -u) / k;
    return sum;
}

/* x^a y^b / B(a, b): of large a and b by how far x is from the mean a / (a + b). */
static double beta_front(double a, double b, double x, double y) {
    const double log_x = x < y ? log(x) : log1p(-y), log_y = x < y ? log1p(-x) : log(y);
    if (fmin(a, b) < LARGE) return exp(a * log_x + b * log_y - log_beta(a, b));
    const double off = x * b - y * a, rest = stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b);
    return exp(a * log_rest(off / a) + b * log_rest(-off / b) + rest - HALF_LOG_2_PI) * sqrt(a / (a + b) * b);
}

/* I_x(a, b); y = 1 - x, which keeps its digits apart. */
static double incomplete_beta(double a, double b, double x, double y) {
    if (x <= 0 || y <= 0) return x > 0;
    const double front = beta_front(a, b, x, y);
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x, y) / a;
    return 1 - front * beta_fraction(b, a, y, x) / b;
}

double kiln_student_tails(double t, double degrees) {
    if (isnan(t) || !(degrees > 0)) return (double)NAN;
    if (degrees > INFINITE) return erfc(fabs(t) / sqrt(2));
    if (isinf(t)) return 0;
    const double scale = degrees + t * t;
    return incomplete_beta(degrees / 2, 0.5, degrees / scale, t * t / scale);
}

double kiln_student_quantile(double level, double degrees) {
    double low = 0, high = 1;
    if (!(degrees > 0) || !(level > 0 && level < 1)) return (double)NAN;
    const double beyond = 1 - level;
    while (kiln_student_tails(high, degrees) > beyond && high < 1e300) high *= 2;
    for (int i = 0; i < 200; i++) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        if (kiln_student_tails(middle, degrees) > beyond)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double kiln_f_tail(double x, double over, double under) {
    if (isnan(x) || !(over > 0) || isinf(over) || !(under > 0)) return (double)NAN;
    if (x <= 0) return 1;
    if (isinf(x)) return 0;
    if (under > INFINITE) return kiln_chi_square_tail(x * over, over);
    const double scale = under + over * x;
    return incomplete_beta(under / 2, over / 2, under / scale, over * x / scale);
}

/* ---- the incomplete gamma function ---- */

/* x^a e^-x / Gamma(a). */
static double gamma_front(double a, double x) {
    if (a < LARGE) return exp(a * log(x) - x - log_gamma(a));
    const double part = (x - a) / a;
    const double power = fabs(part) < 0.5 ? a * log_rest(part) : a * log(x / a) - (x - a);
    return exp(power + log(a) / 2 - HALF_LOG_2_PI - stirling_rest(a));
}

double kiln_chi_square_tail(double x, double degrees) {
    if (isnan(x) || !(degrees > 0) || isinf(degrees)) return (double)NAN;
    const double a = degrees / 2, at = x / 2;
    if (x <= 0) return 1;
    if (isinf(x)) return 0;
    if (at < a + 1) {
        double sum = 1 / a, term = sum;
        for (double n = a + 1; term > sum * enough; n++) sum += term *= at / n;
        return 1 - gamma_front(a, at) * sum;
    }
    double b = at + 1 - a, c = 1 / tiny, d = 1 / b, product = d;
    for (int i = 1; i < STEPS; i++) {
        const double n = -i * (i - a);
        b += 2;
        d = 1 / not_zero(n * d + b);
        c = not_zero(b + n / c);
        product *= c * d;
        if (fabs(c * d - 1) < enough) break;
    }
    return gamma_front(a, at) * product;
}
