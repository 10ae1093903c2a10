/* digamma, trigamma and log gamma of dialect/scalar_math.h, and the vector digamma and logarithm of
 * simd_math.h, against a table that mpmath has made with 40 digits. Built for the instruction set that every
 * processor has. */
#include <math.h>

#include "core/check.h"

#include "dialect/scalar_math.h"

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

static const struct {
    double x;
    long double digamma, log_gamma, trigamma;
} table[] = {
    {1e-10, -10000000000.57721530042L, 23.02585092988273523727L, 99999999999999992715.21L},
    {0.001, -1000.575571931810279655L, 6.907178885383853661684L, 1000001.642533195827345L},
    {0.02, -50.54478931045617874726L, 3.900804516098375951064L, 2501.598118191867962527L},
    {0.1, -10.4237549404110762321L, 2.252712651734205902006L, 101.4332991507927477047L},
    {0.5, -1.963510026021423479441L, 0.5723649429247000870717L, 4.934802200544679309417L},
    {1, -0.5772156649015328606065L, 0.0L, 1.644934066848226436472L},
    {1.5, 0.03648997397857652055902L, -0.1207822376352452223455L, 0.9348022005446793094172L},
    {2, 0.4227843350984671393935L, 0.0L, 0.6449340668482264364724L},
    {3.7, 1.167153539361511440948L, 1.4280723266653881292L, 0.3100378576700383021582L},
    {7.999, 2.015508332090348038252L, 8.523145786158915488112L, 0.1331547166131586038869L},
    {8, 2.015641477955609996536L, 8.525161361065414300166L, 0.1331370146940314251345L},
    {10, 2.251752589066721107647L, 12.80182748008146961121L, 0.1051663356816857461222L},
    {31.25, 3.425934051582954197507L, 75.51370092648485029289L, 0.03251746021566918558319L},
    {100, 4.600161852738087400199L, 359.134205369575398776L, 0.01005016666333357139525L},
    {12345.5, 9.421006402052684951323L, 103958.2429651232291316L, 0.00008100445520074441910034L},
    {1e9, 20.72326583644641115608L, 19723265827.50371677098L, 1.000000000500000000167e-9L},
};
enum { ROWS = sizeof table / sizeof *table };

/* In units of the larger of 1 and the result. */
static double units(double got, long double want, double epsilon) {
    return (double)(fabsl(got - want) / fmaxl(1, fabsl(want)) / epsilon);
}

static void scalars(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const double worst = fmax(units(digamma(table[i].x), table[i].digamma, 0x1p-52),
                                  units(log_gamma_positive(table[i].x), table[i].log_gamma, 0x1p-52));
        if (!(worst <= 16)) fail_msg("%g: off by %.2f units", table[i].x, worst);
        const long double off = trigamma(table[i].x) / table[i].trigamma - 1;
        if (!(fabsl(off) <= 16 * 0x1p-52L)) fail_msg("trigamma(%g) is off by %Lg", table[i].x, off);
    }
}

/* f32: of the x that is rounded, whose digamma differs by (1 + 1/x) times as much. */
static void vectors(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const double x = table[i].x, x32 = (double)(float)x;
        const long double want32 = table[i].digamma + (x32 - x) * (1 / x + 1 / (x * x));
        const double of_f64 = units((double)vdigamma_f64(all_f64(x))[1], table[i].digamma, 0x1p-52);
        const double of_f32 = units((double)vdigamma_f32(all_f32((float)x))[3], want32, 0x1p-23);
        if (!(of_f64 <= 16)) fail_msg("digamma(%g) is off by %.2f units", x, of_f64);
        if (!(of_f32 <= 16)) fail_msg("digamma(%g) of f32 is off by %.2f units", x, of_f32);
    }
}

static void logarithms(void **state) {
    (void)state;
    for (int i = 1; i <= 40000; i++) {
        const double x = exp(-40 + i / 500.0);
        assert_true(units((double)vlog_f64(all_f64(x))[0], logl(x), 0x1p-52) <= 2);
        const float x32 = (float)x;
        assert_true(units((double)vlog_f32(all_f32(x32))[2], logl(x32), 0x1p-23) <= 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(scalars), cmocka_unit_test(vectors),
                                       cmocka_unit_test(logarithms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
