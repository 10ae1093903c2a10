/* ki_parse_double against strtod in the C locale: the same bits, the same end, for a million random texts. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/seams.h"
#include "io/quick.h"

enum { TEXTS = 1000000, LONGEST = 1200 };

static uint64_t draws;

static uint64_t draw(void) {
    uint32_t words[4];
    kiln_random(words, 7, 0, draws++);
    return (uint64_t)words[1] << 32 | words[0];
}

static int below(int limit) {
    return (int)(draw() % (uint64_t)limit);
}

static double any_double(void) {
    uint64_t bits = draw();
    double value;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) ? value : 1;
}

/* Digits with a point somewhere and perhaps an exponent. */
static void write_digits(char *text, int digits) {
    char *p = text;
    int point = below(digits + 1);
    if (below(2)) *p++ = below(2) ? '-' : '+';
    for (int i = 0; i < digits; i++) {
        if (i == point) *p++ = '.';
        *p++ = (char)('0' + (below(4) ? below(10) : 0));
    }
    *p = '\0';
    if (below(2)) snprintf(p, 16, "%c%d", below(2) ? 'e' : 'E', below(700) - 350);
}

/* Exactly between two neighbouring doubles, or a last digit beside that. */
static void write_midpoint(char *text) {
    const int scale = below(60);
    uint64_t odd = ((uint64_t)1 << 53 | draw() >> 11) * 2 + 1; /* 54 bits and a half */
    snprintf(text, LONGEST, "%.*Lf", scale, ldexpl((long double)odd, -scale));
    char *last = text + strlen(text) - 1;
    if (below(2) && *last >= '1' && *last <= '8') *last = (char)(*last + below(3) - 1);
}

static void write_text(char *text) {
    switch (below(6)) {
    case 0: snprintf(text, LONGEST, "%.*g", 1 + below(20), any_double()); break;
    case 1: snprintf(text, LONGEST, "%.*f", below(20), ldexp((double)(int64_t)draw(), -below(80))); break;
    case 2: write_digits(text, 1 + below(22)); break;
    case 3: write_digits(text, below(10) ? 1 + below(40) : 1 + below(900)); break;
    case 4: write_midpoint(text); break;
    default: snprintf(text, LONGEST, "%llue%d", (unsigned long long)(draw() >> below(63)), below(140) - 70);
    }
}

/* Returns how many differ in bits or in their end. */
static int differ(const char *text) {
    char *want_end;
    const char *end = text;
    double got = -7, want = strtod(text, &want_end);
    if (!ki_parse_double(&end, text + strlen(text), &got)) return want_end != text;
    if (end == want_end && memcmp(&got, &want, sizeof got) == 0) return 0;
    print_error("'%s': %a, should be %a\n", text, got, want);
    return 1;
}

static void as_strtod(void **state) {
    (void)state;
    char text[LONGEST];
    int wrong = 0;
    for (int i = 0; i < TEXTS; i++) {
        write_text(text);
        wrong += differ(text);
    }
    assert_int_equal(wrong, 0);
}

/* Beside the middle of two neighbouring floats, denormal ones too, where rounding twice goes wrong. */
static void write_float_midpoint(char *text) {
    const uint32_t bits = (uint32_t)draw() & 0x7F7FFFFF;
    float low;
    memcpy(&low, &bits, sizeof low);
    const long double middle = ((long double)low + nextafterf(low, INFINITY)) / 2;
    snprintf(text, LONGEST, "%.*Le", 20 + below(120), isfinite(middle) ? middle : 1);
    char *last = strchr(text, 'e') - 1;
    if (below(2) && *last >= '1' && *last <= '8') *last = (char)(*last + below(3) - 1);
}

static void floats_round_once(void **state) {
    (void)state;
    char text[LONGEST];
    int wrong = 0;
    for (int i = 0; i < TEXTS; i++) {
        char *want_end;
        const char *end = text;
        double got = -7;
        if (below(2))
            write_text(text);
        else
            write_float_midpoint(text);
        const float want = strtof(text, &want_end);
        if (!ki_parse_real(&end, text + strlen(text), true, &got)) {
            wrong += want_end != text;
            continue;
        }
        const float single = (float)got;
        if (end == want_end && memcmp(&single, &want, sizeof want) == 0) continue;
        print_error("'%s': %a, should be %a\n", text, (double)single, (double)want);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void hard_cases(void **state) {
    (void)state;
    static const char *const texts[] = {"0",
                                        "-0",
                                        "0.0e5",
                                        "00000000000000000000000000000000001",
                                        "1e400",
                                        "-1e400",
                                        "1e-400",
                                        "4.9e-324",
                                        "2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "2.2250738585072011e-308",
                                        "1.7976931348623157e308",
                                        "1.7976931348623159e308",
                                        "9007199254740993",
                                        "9007199254740992.5",
                                        "9007199254740993.0000000000000000001",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "1e23",
                                        "8.41e21",
                                        "9.5e-1",
                                        "123456789012345678e-54",
                                        "5e-55",
                                        "1e55",
                                        "1e54",
                                        "0.1",
                                        ".5",
                                        "5.",
                                        "5.e3",
                                        "1e",
                                        "1e+",
                                        "1e-x",
                                        "1.5.2",
                                        "+.e1",
                                        ".",
                                        "-",
                                        "",
                                        "e5",
                                        "--1",
                                        "1e99999999999999999999",
                                        "1e-99999999999999999999",
                                        "0e99999999999999999999",
                                        "x"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_int_equal(differ(texts[i]), 0);
    char zeros[3100] = "0.";
    memset(zeros + 2, '0', 3000);
    strcpy(zeros + 3002, "125e2990");
    assert_int_equal(differ(zeros), 0);
    char tie[1100] = "9007199254740993.";
    memset(tie + 17, '0', 1000);
    strcpy(tie + 1017, "1"); /* the thousandth digit breaks the tie */
    assert_int_equal(differ(tie), 0);
}

static void words(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int length;
    } cases[] = {{"nan", 3}, {"NaN(1)", 3}, {"-nan", 4},  {"inf", 3},  {"Infinity", 8}, {"-INFINITE", 4},
                 {"in", 0},  {"na", 0},     {"+inf1", 4}, {"0x10", 1}, {" 1", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text, *p = text;
        double value;
        assert_int_equal(ki_parse_double(&p, text + strlen(text), &value), cases[i].length > 0);
        assert_int_equal(p - text, cases[i].length);
    }
}

static void stops_at_the_end(void **state) {
    (void)state;
    const char *text = "12.5e3", *p;
    static const double want[] = {0, 1, 12, 12, 12.5, 12.5, 12500};
    for (int length = 1; length <= 6; length++) {
        double value = 0;
        p = text;
        assert_true(ki_parse_double(&p, text + length, &value));
        assert_true(value == want[length]);
    }
}

static void integers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool valid;
        int64_t value;
    } cases[] = {{"0", true, 0},
                 {"-0", true, 0},
                 {"+5", true, 5},
                 {"007", true, 7},
                 {"12x", true, 12},
                 {"9223372036854775807", true, INT64_MAX},
                 {"-9223372036854775808", true, INT64_MIN},
                 {"9223372036854775808", false, 0},
                 {"-9223372036854775809", false, 0},
                 {"99999999999999999999999", false, 0},
                 {"", false, 0},
                 {"-", false, 0},
                 {"x", false, 0},
                 {" 1", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *p = cases[i].text;
        int64_t value = 0;
        assert_int_equal(ki_parse_int64(&p, p + strlen(p), &value), cases[i].valid);
        assert_true(value == cases[i].value);
        if (!cases[i].valid) assert_ptr_equal(p, cases[i].text);
    }
}

/* With a decimal comma in force, text that needs the slow path still has a decimal point. */
static void other_locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_ALL, names[i]) != NULL;
    if (!found) print_message("skip: no locale with a decimal comma is installed\n");
    const char *text = "2.4703282292062328e-324", *p = text;
    double value = 0;
    assert_true(ki_parse_double(&p, text + strlen(text), &value));
    assert_true(value == 4.9406564584124654e-324 && *p == '\0');
    setlocale(LC_ALL, "C");
}

/* Texts are made of few kinds of bytes, whatever follows them: what is taken has the bits of ki_parse_real,
 * and plain numbers of up to 15 digits are taken. */
static void quick_reals(void **state) {
    (void)state;
    static const char bytes[] = "0123456789012345678901234567890123456789....--+eE ,_";
    for (int i = 0; i < TEXTS; i++) {
        char text[KI_QUICK_READS + 32];
        double got = 0, want = 0;
        const bool single = i & 1, plain = i % 4 < 2;
        for (size_t k = 0; k < sizeof text; k++) text[k] = bytes[below(sizeof bytes - 1)];
        int size = 0, digits = 0;
        if (plain) {
            const int whole = below(20), fraction = below(20 - whole);
            digits = whole + fraction;
            if (below(2)) text[size++] = '-';
            for (int k = 0; k < whole; k++) text[size++] = (char)('0' + below(10));
            if (whole == 0 || fraction > 0) text[size++] = '.';
            for (int k = 0; k < fraction + (whole == 0 && fraction == 0); k++)
                text[size++] = (char)('0' + below(10));
            text[size] = ',';
        }
        const char *p = text, *q = text;
        const bool taken = ki_quick_real(&p, single, &got);
        const bool parsed = ki_parse_real(&q, plain ? text + size : p, single, &want);
        if (taken && (!parsed || q != p || memcmp(&got, &want, sizeof got) != 0))
            fail_msg("'%.*s': %.17g, not %.17g", (int)(p - text), text, got, want);
        if (!taken && p != text) fail_msg("'%.*s' is not taken and left", size, text);
        if (plain && digits <= 15 && !single && !taken) fail_msg("'%.*s' is not taken", size, text);
    }
    static const struct {
        const char *text;
        int size; /* of what is taken; 0: nothing */
        double value;
    } known[] = {{"12345678.12345678", 17, 12345678.12345678},
                 {"12345678", 8, 12345678},
                 {"12345678.", 9, 12345678},
                 {".12345678", 9, .12345678},
                 {".", 0, 0},
                 {"", 0, 0},
                 {"-", 0, 0},
                 {"-0", 2, -0.0},
                 {"+1", 0, 0},
                 {"0.9007199254740993", 18, 0.9007199254740993},
                 {"9999999999999999999", 19, 9999999999999999999.0},
                 {"10000000000000000000", 0, 0},
                 {"1.5e3", 3, 1.5}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char room[KI_QUICK_READS + 32] = "";
        strcpy(room, known[i].text);
        const char *p = room;
        double value = 0;
        assert_true(ki_quick_real(&p, false, &value) == (known[i].size > 0));
        assert_int_equal(p - room, known[i].size);
        assert_true(memcmp(&value, &known[i].value, sizeof value) == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_strtod),         cmocka_unit_test(hard_cases),
                                       cmocka_unit_test(floats_round_once), cmocka_unit_test(words),
                                       cmocka_unit_test(stops_at_the_end),  cmocka_unit_test(integers),
                                       cmocka_unit_test(other_locale),      cmocka_unit_test(quick_reals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
