/* Printed numbers read back to the same bits and have no digit too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/seams.h"
#include "io/decimal.h"

static const char *text_of(double value, kiln_type type) {
    static char text[KI_DECIMAL_BYTES + 1];
    memset(text, 'x', sizeof text);
    char *end = ki_print_real(text, value, type);
    assert_true(end - text <= KI_DECIMAL_BYTES);
    *end = '\0';
    return text;
}

static int significant(const char *text) {
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (count == 0 && *text == '0')) continue;
        count++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return count - zeros;
}

static void check_f64(double value) {
    const char *text = text_of(value, KILN_F64);
    double back = strtod(text, NULL);
    if (memcmp(&back, &value, sizeof value) != 0) fail_msg("%.17g printed as %s", value, text);
    int digits = significant(text);
    char shorter[64];
    snprintf(shorter, sizeof shorter, "%.*e", digits > 1 ? digits - 2 : 0, value);
    if (digits > 1 && strtod(shorter, NULL) == value) fail_msg("%s is longer than %s", text, shorter);
}

static void check_f32(float value) {
    const char *text = text_of(value, KILN_F32);
    float back = strtof(text, NULL);
    if (memcmp(&back, &value, sizeof value) != 0) fail_msg("%.9g printed as %s", (double)value, text);
    int digits = significant(text);
    char shorter[64];
    snprintf(shorter, sizeof shorter, "%.*e", digits > 1 ? digits - 2 : 0, (double)value);
    if (digits > 1 && strtof(shorter, NULL) == value) fail_msg("%s is longer than %s", text, shorter);
}

static void layout_is_as_written_here(void **state) {
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1, "-1"},
        {0.1, "0.1"},
        {0.5, "0.5"},
        {123.25, "123.25"},
        {100, "100"},
        {1e15, "1000000000000000"},
        {1e16, "1e16"},
        {1.5e16, "1.5e16"},
        {1e-4, "0.0001"},
        {1e-5, "1e-5"},
        {-1.25e-5, "-1.25e-5"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {5e-324, "5e-324"},
        {1e23, "1e23"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {9007199254740993.0, "9007199254740992"},
        {0.1 + 0.2, "0.30000000000000004"},
        {(double)INFINITY, "inf"},
        {-(double)INFINITY, "-inf"},
        {(double)NAN, "nan"},
        {-(double)NAN, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(text_of(cases[i].value, KILN_F64), cases[i].text);
    assert_string_equal(text_of((double)0.1F, KILN_F32), "0.1");
    assert_string_equal(text_of((double)1e-45F, KILN_F32), "1e-45");
    char text[32];
    *ki_print_int64(text, INT64_MIN) = '\0';
    assert_string_equal(text, "-9223372036854775808");
}

static void powers_of_two_and_their_neighbours(void **state) {
    (void)state;
    for (int e = -1074; e <= 1023; e++) {
        double value = ldexp(1, e);
        check_f64(value);
        check_f64(nextafter(value, INFINITY));
        check_f64(-nextafter(value, 0));
    }
    for (int e = -149; e <= 127; e++) {
        float value = ldexpf(1, e);
        check_f32(value);
        check_f32(nextafterf(value, INFINITY));
        check_f32(-nextafterf(value, 0));
    }
}

static void any_bits(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 300000; i++) {
        uint32_t random[4];
        double wide;
        float narrow;
        kiln_random(random, 1, 0, i);
        memcpy(&wide, random, sizeof wide);
        memcpy(&narrow, random + 2, sizeof narrow);
        if (isfinite(wide)) check_f64(wide);
        if (isfinite(narrow)) check_f32(narrow);
        check_f64((double)(random[3] % 100000) / 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_as_written_here),
        cmocka_unit_test(powers_of_two_and_their_neighbours),
        cmocka_unit_test(any_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
