/* A half has a sign, an exponent and the digits behind the point of a number in [1, 2). Exponent 0 is that of
 * 1 with no 1 before the point; its largest value is infinity, or with digits no number. */
#include "ops/sampled/half.h"

#include <math.h>
#include <string.h>

struct format {
    int digits, bias;
};

static struct format format_of(kiln_half_type type) {
    return type == KILN_F16 ? (struct format){10, 15} : (struct format){7, 127};
}

/* The 1 before the point adds one to the exponent, and so does rounding up to the next power of two: the sum
 * carries both. */
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

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Before the digits that go are cut off, one less than half of the last that stays is added, and one more if
 * that is odd. Below the smallest normal number of f16 the processor rounds, in the sum with a number whose
 * last digit is the last of f16's. */
uint16_t ki_half_of_float(float x, kiln_half_type type) {
    const uint32_t bits = bits_of(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    const uint32_t infinity = 255U << 23;
    if (type == KILN_BF16)
        return (uint16_t)(sign | (size > infinity ? 0x7fc0 : (size + 0x7fff + (size >> 16 & 1)) >> 16));
    if (size >= (127U + 16) << 23) return (uint16_t)(sign | (size > infinity ? 0x7e00 : 0x7c00));
    if (size < (127U - 14) << 23) return (uint16_t)(sign | (bits_of(fabsf(x) + 0.5F) - bits_of(0.5F)));
    return (uint16_t)(sign | ((size - ((127U - 15) << 23) + 0xfff + (size >> 13 & 1)) >> 13));
}
