#define _GNU_SOURCE
/* p = I_x(v/2, 1/2) at x = v / (v + t^2), the regularised incomplete beta function by its continued fraction
 * (Lentz's method; Press et al., Numerical Recipes, 6.4), which converges fast on the side of the mean where
 * it is taken. */
#include "student.h"

#include <math.h>

static double fraction(double a, double b, double x) {
    enum { STEPS = 10000 };
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), sum;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    sum = d;
    for (int m = 1; m < STEPS; m++) {
        for (int odd = 0; odd < 2; odd++) {
            const double n = m, at = odd ? -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1))
                                         : n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n));
            d = 1 + at * d;
            c = 1 + at / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            sum *= c * d;
        }
        if (fabs(c * d - 1) < 1e-15) break;
    }
    return sum;
}

/* I_x(a, b); y = 1 - x, which keeps its digits apart. */
static double incomplete_beta(double a, double b, double x, double y) {
    int sign; /* plain lgamma writes it to a global variable */
    if (x <= 0 || y <= 0) return x > 0;
    const double front =
        exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2)) return front * fraction(a, b, x) / a;
    return 1 - front * fraction(b, a, y) / b;
}

double student_p(double t, double degrees) {
    if (isnan(t) || !(degrees > 0)) return NAN;
    if (degrees > 1e10) return erfc(fabs(t) / sqrt(2));
    if (isinf(t)) return 0;
    const double scale = degrees + t * t;
    return incomplete_beta(degrees / 2, 0.5, degrees / scale, t * t / scale);
}

double student_95(double degrees) {
    double low = 0, high = 1;
    if (!(degrees > 0)) return NAN;
    while (student_p(high, degrees) > 0.05 && high < 1e300) high *= 2;
    for (int i = 0; i < 200 && low < high; i++) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        if (student_p(middle, degrees) > 0.05)
            low = middle;
        else
            high = middle;
    }
    return high;
}
