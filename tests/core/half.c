/* Numbers of 16 bits: each is found again, and between two of them the nearest is taken. */
#include <float.h>
#include <math.h>

#include "backends/check.h"
#include "ops/sampled/half.h"

/* Returns what 16 bits mean, by their parts. */
static double value_of(int half, int digits, int bias) {
    const int most = 2 * bias + 1, exponent = half >> digits & most, units = half & ((1 << digits) - 1);
    if (exponent == most) return units ? (double)NAN : (double)INFINITY;
    return exponent == 0 ? ldexp(units, 1 - bias - digits)
                         : ldexp(units + (1 << digits), exponent - bias - digits);
}

/* Both ways to round, from a float. */
static void check_rounds(float x, kiln_half_type type) {
    assert_int_equal(ki_half_of_float(x, type), ki_half_of_double(x, type));
    assert_int_equal(ki_half_of_float(-x, type), ki_half_of_double(-x, type));
}

static void check_type(kiln_half_type type, int digits, int bias) {
    const int infinity = (2 * bias + 1) << digits;
    for (int half = 0; half < infinity; half++) {
        const double low = value_of(half, digits, bias), high = value_of(half + 1, digits, bias),
                     middle = low +
                              (half + 1 < infinity ? high - low : low - value_of(half - 1, digits, bias)) / 2;
        assert_int_equal(ki_half_of_double(low, type), half);
        assert_int_equal(ki_half_of_double(-low, type), 0x8000 | half);
        assert_int_equal(ki_half_of_double(middle, type), half + (half & 1));
        assert_int_equal(ki_half_of_double(nextafter(middle, low), type), half);
        assert_int_equal(ki_half_of_double(nextafter(middle, (double)INFINITY), type), half + 1);
        assert_int_equal(ki_half_of_double(-middle, type), 0x8000 | (half + (half & 1)));
        const float whole = (float)low, between = (float)middle;
        check_rounds(whole, type);
        check_rounds(between, type);
        check_rounds(nextafterf(between, 0), type);
        check_rounds(nextafterf(between, INFINITY), type);
    }
    check_rounds(FLT_MAX, type);
    check_rounds(FLT_TRUE_MIN, type);
    check_rounds(INFINITY, type);
    assert_true(isnan(value_of(ki_half_of_float(NAN, type) & 0x7fff, digits, bias)));
    assert_int_equal(ki_half_of_double((double)INFINITY, type), infinity);
    assert_int_equal(ki_half_of_double(1e300, type), infinity);
    assert_true(isnan(value_of(ki_half_of_double((double)NAN, type) & 0x7fff, digits, bias)));
}

static void f16(void **state) {
    (void)state;
    check_type(KILN_F16, 10, 15);
}

static void bf16(void **state) {
    (void)state;
    check_type(KILN_BF16, 7, 127);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(f16), cmocka_unit_test(bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
