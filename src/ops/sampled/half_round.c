/* A half has a sign, an exponent and the digits behind the point of a number in [1, 2). Exponent 0 is that of 1 with no 1 before the point;
 * its largest value is infinity, or with digits no number. */
#include "ops/sampled/half.h"

#include <math.h>

struct format {
    int digits, bias;
};

static struct format format_of(kiln_half_type type) {
    return type == KILN_F16 ? (struct format){10, 15} : (struct format){7, 127};
}

/* The 1 before the point adds one to the exponent, and so does rounding up to the next power of two: the sum carries both. */
uint16_t ki_half_of_double(double x, kiln_half_type type) {
    const struct format f = format_of(type);
    const int32_t sign = signbit(x) ? 0x8000 : 0, infinity = (2 * f.bias + 1) << f.digits;
    int exponent;
    if (isnan(x)) return (uint16_t)(sign | infinity | 1 << (f.digits - 1));
    if (isinf(x)) return (uint16_t)(sign | infinity);
    if (x == 0) return (uint16_t)sign;
    frexp(x, &exponent);
    exponent = exponent - 1 < 1 - f.bias ? 1 - f.bias : exponent - 1;
    if (exponent > f.bias) return (uint16_t)(sign | infinity);
    const int32_t units = (int32_t)nearbyint(ldexp(fabs(x), f.digits - exponent));
    return (uint16_t)(sign | (((exponent + f.bias - 1) << f.digits) + units));
}
