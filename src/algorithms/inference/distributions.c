#define _GNU_SOURCE
/* Tails of Student's t, F and chi square, by the incomplete beta and gamma functions' continued fractions
 * (Lentz's method; Press et al., Numerical Recipes, 6.2 and 6.4), each taken on the side of the mean where
 * it converges fast. Where arguments are large, terms that would cancel are taken together by Stirling's
 * series. */
#include <stdbool.h>

#include "algorithms/algorithm.h"

static const double tiny = 1e-300, enough = 1e-15, HALF_LOG_2_PI = 0.918938533204672741780;
enum { STEPS = 10000, LARGE = 32 };

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

static double beta_fraction(double a, double b, double x) {
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), product = d;
    for (int m = 1; m < STEPS; m++) {
        for (int odd = 0; odd < 2; odd++) {
            const double n = m, at = odd ? -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
                                         : n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n));
            d = 1 / not_zero(1 + at * d);
            c = not_zero(1 + at / c);
            product *= c * d;
        }
        if (fabs(c * d - 1) < enough) break;
    }
    return product;
}

/* I_x(a, b); y = 1 - x, which keeps its digits apart. */
static double incomplete_beta(double a, double b, double x, double y) {
    if (x <= 0 || y <= 0) return x > 0;
    const double log_x = x < y ? log(x) : log1p(-y), log_y = x < y ? log1p(-x) : log(y);
    const double front = exp(a * log_x + b * log_y - log_beta(a, b));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, y) / b;
}

double kiln_student_tails(double t, double degrees) {
    if (isnan(t) || !(degrees > 0)) return (double)NAN;
    if (degrees > 1e10) return erfc(fabs(t) / sqrt(2));
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
    if (under > 1e10) return kiln_chi_square_tail(x * over, over);
    const double scale = under + over * x;
    return incomplete_beta(under / 2, over / 2, under / scale, over * x / scale);
}

/* ---- the incomplete gamma function ---- */

/* x^a e^-x / Gamma(a). */
static double gamma_front(double a, double x) {
    if (a < LARGE) return exp(a * log(x) - x - log_gamma(a));
    const double part = (x - a) / a; /* a (log(x / a) - part): what log1p loses is small beside a part^2 */
    const double power = fabs(part) < 0.5 ? a * (log1p(part) - part) : a * log(x / a) - (x - a);
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
