/* The vector exponential and logarithm of dialect/simd_math.h against long double: at most 2 units in the
 * last place over their whole range, and what they make of the ends of it. Built for the instruction set that
 * every processor has. */
#include <math.h>

#include "core/check.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define SIMD_BYTES 16

#define real float
#define real_bits int32_t
#define real_bytes 4
#define FN(name) name##_f32
#include "dialect/simd.h"
#include "dialect/simd_math.h"
#undef real
#undef real_bits
#undef real_bytes
#undef FN
#define real double
#define real_bits int64_t
#define real_bytes 8
#define FN(name) name##_f64
#include "dialect/simd.h"
#include "dialect/simd_math.h"

static double exp_f64(double x) {
    return vexp_f64(all_f64(x))[1];
}
static double exp_f32(double x) {
    return vexp_f32(all_f32((float)x))[3];
}
static double log1p_f64(double x) {
    return vlog1p_f64(all_f64(x))[0];
}
static double log1p_f32(double x) {
    return vlog1p_f32(all_f32((float)x))[2];
}
static double log_f64(double x) {
    return vlog_f64(all_f64(x))[1];
}
static double log_f32(double x) {
    return vlog_f32(all_f32((float)x))[0];
}

static double expm1_f64(double x) {
    return vexpm1_f64(all_f64(x))[0];
}
static double expm1_f32(double x) {
    return vexpm1_f32(all_f32((float)x))[1];
}
/* log(1 + t), and t - log(1 + t). */
static double log_of_f64(double t) {
    return vlogs_f64(all_f64(t), all_f64(1 + t)).log[1];
}
static double log_of_f32(double t) {
    return vlogs_f32(all_f32((float)t), all_f32(1 + (float)t)).log[2];
}
static double excess_f64(double t) {
    return vlogs_f64(all_f64(t), all_f64(1 + t)).excess[0];
}
static double excess_f32(double t) {
    return vlogs_f32(all_f32((float)t), all_f32(1 + (float)t)).excess[3];
}

/* |got - want| in units of the last place of want; below the normal numbers that unit stays the same. */
static double units(double got, long double want, int digits, int least) {
    int exponent = 0;
    frexpl(want, &exponent);
    if (exponent < least) exponent = least;
    return (double)fabsl((got - want) / ldexpl(1, exponent - digits));
}

/* t - log(1 + t), by its series where the two would cancel. */
static long double excess(long double t) {
    long double sum = 0;
    if (fabsl(t) > 0.125L) return t - log1pl(t);
    for (int k = 24; k >= 2; k--) sum = 1.0L / k - sum * t;
    return sum * t * t;
}

static void accurate(void **state) {
    (void)state;
    double worst[14] = {0};
    for (int i = 0; i <= 400000; i++) {
        const double at = i / 400000.0;
        const double x = -745 + 1454.7 * at, small = -103 + 191 * at;
        const float x32 = (float)small, e32 = (float)(at * at);
        worst[0] = fmax(worst[0], units(exp_f64(x), expl(x), 53, -1021));
        worst[1] = fmax(worst[1], units(exp_f32(x32), expl(x32), 24, -125));
        worst[2] = fmax(worst[2], units(log1p_f64(at * at), log1pl(at * at), 53, -1021));
        worst[3] = fmax(worst[3], units(log1p_f32(e32), log1pl(e32), 24, -125));
        /* over all normal numbers, and about 1, where the logarithm has no size */
        const double wide = ldexp(1 + at, (int)(2044 * at) - 1022), about = 1 + (at - 0.5) * at * at;
        const float wide32 = ldexpf((float)(1 + at), (int)(252 * at) - 126), about32 = (float)about;
        worst[4] = fmax(worst[4], units(log_f64(wide), logl(wide), 53, -1021));
        worst[5] = fmax(worst[5], units(log_f32(wide32), logl(wide32), 24, -125));
        worst[6] = fmax(worst[6], units(log_f64(about), logl(about), 53, -1021));
        worst[7] = fmax(worst[7], units(log_f32(about32), logl(about32), 24, -125));
        /* about 0, from numbers whose 1 + t is exact in either type, which have 20 digits */
        const double near = (i - 200000) * 0x1p-19, below = (i - 200000) * 0x1p-13;
        worst[8] = fmax(worst[8], units(expm1_f64(below), expm1l(below), 53, -1021));
        worst[9] = fmax(worst[9], units(expm1_f32(below), expm1l(below), 24, -125));
        worst[10] = fmax(worst[10], units(log_of_f64(near), log1pl(near), 53, -1021));
        worst[11] = fmax(worst[11], units(log_of_f32(near), log1pl(near), 24, -125));
        worst[12] = fmax(worst[12], units(excess_f64(near), excess(near), 53, -1021));
        worst[13] = fmax(worst[13], units(excess_f32(near), excess(near), 24, -125));
    }
    /* What is left of t and its logarithm, which are up to 6.5 times as large, has up to as many units. */
    for (int i = 0; i < 14; i++)
        if (!(worst[i] <= (i < 12 ? 2 : 2 * 6.5)))
            fail_msg("function %d is off by %.3f units in the last place", i, worst[i]);
}

static void ends(void **state) {
    (void)state;
    const double nan = (double)NAN, infinite = (double)INFINITY;
    assert_true(exp_f64(0) == 1 && exp_f32(0) == 1 && log1p_f64(0) == 0 && log1p_f32(0) == 0);
    assert_true(log_f64(1) == 0 && log_f32(1) == 0);
    assert_true(exp_f64(-infinite) == 0 && exp_f32(-infinite) == 0 && exp_f64(-1e300) == 0);
    assert_true(exp_f64(infinite) == infinite && exp_f32(infinite) == infinite &&
                exp_f64(709.79) == infinite);
    assert_true(exp_f64(-745) > 0 && exp_f32(-103) > 0);
    assert_true(isnan(exp_f64(nan)) && isnan(exp_f32(nan)) && isnan(log1p_f64(nan)) && isnan(log1p_f32(nan)));
    assert_true(log1p_f64(1e-300) == 1e-300 && log1p_f32(1e-30) == (float)1e-30);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(accurate), cmocka_unit_test(ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
