/* value = w * 10^q, correctly rounded without big numbers for all but a few inputs in a billion.
 *
 * Up to 19 significant digits fit into the 64-bit integer w.
 *   - w < 2^53 and |q| <= 22: w and 10^|q| are doubles, so one multiplication or division rounds once
 * (Clinger, PLDI 1990).
 *   - |q| <= 54: w * 5^q from a 128-bit value T of 5^q, cut off, not rounded. The product is known to one
 * unit of its 128 upper bits, which settles the 53 bits wanted unless all bits behind them are ones (after
 * Lemire, SPE 2021).
 *   - else strtod on a copy "DIGITSeEXPONENT": without a decimal point the text means the same in every
 * locale. 768 digits and a mark for what follows decide every rounding, so the copy is bounded. */
#include "io/quick.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum { POWER_MAX = 54, DIGITS_MAX = 800 };

/* 5^q = bits * 2^exponent with the top bit of bits set; for q < 0 bits is cut off and so a little too small.
 */
struct power {
    wide bits;
    int exponent;
};

static struct power powers[2 * POWER_MAX + 1];
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;

/* The quotient 2^n / divisor (divisor < 2^127) by long division, one bit a step, until 128 bits are there. */
static struct power reciprocal(wide divisor) {
    struct power result = {0, 0};
    wide rest = 1;
    while (!(result.bits >> 127)) {
        rest <<= 1;
        result.bits <<= 1;
        result.exponent--;
        if (rest >= divisor) {
            rest -= divisor;
            result.bits |= 1;
        }
    }
    return result;
}

static void fill_powers(void) {
    wide power = 1;
    for (int q = 0; q <= POWER_MAX; q++, power *= 5) {
        struct power up = {power, 0};
        while (!(up.bits >> 127)) {
            up.bits <<= 1;
            up.exponent--;
        }
        powers[POWER_MAX + q] = up;
        if (q > 0) powers[POWER_MAX - q] = reciprocal(power);
    }
}

/* w * 10^q for w > 0 and |q| <= POWER_MAX; false where the cut-off power leaves the rounding open. */
static bool round_decimal(uint64_t w, int q, double *value) {
    pthread_once(&powers_once, fill_powers);
    struct power power = powers[POWER_MAX + q];
    int lead = __builtin_clzll(w);
    w <<= lead;
    wide low = (wide)w * (uint64_t)power.bits;
    wide high =
        (wide)w * (uint64_t)(power.bits >> 64) + (low >> 64); /* product = high * 2^64 + (uint64_t)low */
    int exponent = power.exponent + q - lead + 64;

    int drop = (high >> 127) ? 75 : 74; /* bits behind the 53 */
    wide rest = high & (((wide)1 << drop) - 1), half = (wide)1 << (drop - 1);
    bool exact = q >= 0;
    /* The true product is less than one unit of `high` above it. */
    if (!exact && (rest & (half - 1)) == half - 1) return false;
    uint64_t mantissa = (uint64_t)(high >> drop);
    bool above = rest > half || (rest == half && (!exact || (uint64_t)low != 0));
    if (above || (rest == half && (mantissa & 1))) mantissa++;

    exponent +=
        drop; /* value = mantissa * 2^exponent, 2^52 <= mantissa <= 2^53, far from both ends of the range */
    uint64_t bits = ((uint64_t)(exponent + 1075) << 52) + (mantissa - ((uint64_t)1 << 52));
    memcpy(value, &bits, sizeof bits);
    return true;
}

/* The digits of a number where they stand in the text. */
struct decimal {
    uint64_t w;                /* the digits as an integer, if there are not too many */
    int64_t significant;       /* 0 for a zero; at most 19 if w is valid */
    int64_t q;                 /* power of ten behind the last digit */
    const char *digits, *last; /* from the first digit up to behind the last; a '.' may stand between */
};

static double convert_slowly(const struct decimal *number, bool single) {
    char copy[DIGITS_MAX + 32];
    size_t n = 0;
    int64_t q = number->q;
    bool more = false;
    for (const char *p = number->digits; p < number->last; p++) {
        if (*p == '.' || (n == 0 && *p == '0')) continue;
        if (n < DIGITS_MAX) {
            copy[n++] = *p;
        } else {
            more |= *p != '0';
            q++;
        }
    }
    if (more) { /* lies strictly between two copies of DIGITS_MAX digits */
        copy[n++] = '1';
        q--;
    }
    if (q > 100000) q = 100000;
    if (q < -100000) q = -100000;
    snprintf(copy + n, sizeof copy - n, "e%d", (int)q);
    return single ? (double)strtof(copy, NULL) : strtod(copy, NULL);
}

const double ki_tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
const uint64_t ki_whole_tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

static double convert(const struct decimal *number) {
    double value;
    if (number->significant == 0) return 0;
    if (number->significant <= 19) {
        int64_t q = number->q;
        if (number->w <= (uint64_t)1 << 53 && q >= -22 && q <= 22)
            return q < 0 ? (double)number->w / ki_tens[-q] : (double)number->w * ki_tens[q];
        if (q >= -POWER_MAX && q <= POWER_MAX && round_decimal(number->w, (int)q, &value)) return value;
    }
    return convert_slowly(number, false);
}

bool ki_between_floats(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (fabs(value) >= 0x1p-126) return (bits & 0x1FFFFFFF) == 0x10000000;
    const double steps = fabs(value) * 0x1p149; /* of the smallest float */
    return steps - floor(steps) == 0.5;
}

static inline bool is_digit(char c) {
    return (unsigned char)(c - '0') < 10;
}

static bool match_word(const char **text, const char *end, const char *word) {
    const char *p = *text;
    for (; *word; word++, p++)
        if (p == end || (*p | 0x20) != *word) return false;
    *text = p;
    return true;
}

static bool parse_word(const char **text, const char *end, double *value) {
    if (match_word(text, end, "nan")) {
        *value = NAN;
        return true;
    }
    if (!match_word(text, end, "inf")) return false;
    match_word(text, end, "inity");
    *value = INFINITY;
    return true;
}

/* The exponent at *text, if there is a whole one. Beyond 2^40 its size no longer matters. */
static int64_t parse_exponent(const char **text, const char *end) {
    const char *p = *text;
    if (p == end || (*p | 0x20) != 'e') return 0;
    p++;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end || !is_digit(*p)) return 0;
    int64_t exponent = 0;
    for (; p < end && is_digit(*p); p++)
        if (exponent < (int64_t)1 << 40) exponent = exponent * 10 + (*p - '0');
    *text = p;
    return negative ? -exponent : exponent;
}

/* Counts and collects the digits; false if there are none. */
static bool parse_digits(const char **text, const char *end, struct decimal *number) {
    const char *p = *text;
    uint64_t w = 0;
    number->digits = p;
    while (p < end && is_digit(*p)) w = w * 10 + (uint64_t)(*p++ - '0');
    int64_t count = p - number->digits, fraction = 0;
    if (p < end && *p == '.') {
        const char *point = p++;
        while (p < end && is_digit(*p)) w = w * 10 + (uint64_t)(*p++ - '0');
        fraction = p - point - 1;
    }
    count += fraction;
    if (count == 0) return false;
    if (count > 19) /* w may have overflowed; leading zeros do not count */
        for (const char *z = number->digits; z < p && (*z == '0' || *z == '.'); z++) count -= *z == '0';
    else if (w == 0)
        count = 0;
    number->w = w;
    number->significant = count;
    number->last = p;
    number->q = parse_exponent(&p, end) - fraction;
    *text = p;
    return true;
}

bool ki_parse_real(const char **text, const char *end, bool single, double *value) {
    const char *p = *text;
    double magnitude;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    struct decimal number;
    if (parse_digits(&p, end, &number)) {
        magnitude = convert(&number);
        if (single && ki_between_floats(magnitude)) magnitude = convert_slowly(&number, true);
    } else if (!parse_word(&p, end, &magnitude)) {
        return false;
    }
    *value = negative ? -magnitude : magnitude;
    *text = p;
    return true;
}

/* Moves *text behind the digits there, up to 24, and appends them to *w, which wraps around beyond 19; their
 * count. */
static int append_digits(const char **text, uint64_t *w) {
    int all = 0, count;
    do {
        const uint64_t word = ki_text_word(*text);
        count = ki_quick_count(word);
        *w = *w * ki_whole_tens[count] + ki_quick_value(word, count);
        *text += count;
        all += count;
    } while (count == 8 && all < 24);
    return all;
}

bool ki_long_real(const char **text, bool single, double *value) {
    const char *p = *text;
    const bool minus = *p == '-';
    uint64_t w = 0;
    double magnitude;
    p += minus;
    const int whole = append_digits(&p, &w), point = *p == '.';
    p += point;
    const int fraction = point ? append_digits(&p, &w) : 0;
    if (whole + fraction == 0 || whole + fraction > 19) return false;
    if (w <= (uint64_t)1 << 53)
        magnitude = (double)w / ki_tens[fraction];
    else if (!round_decimal(w, -fraction, &magnitude))
        return false;
    if (single && ki_between_floats(magnitude)) return false;
    *value = minus ? -magnitude : magnitude;
    *text = p;
    return true;
}

bool ki_parse_double(const char **text, const char *end, double *value) {
    return ki_parse_real(text, end, false, value);
}

bool ki_parse_int64(const char **text, const char *end, int64_t *value) {
    const char *p = *text;
    int64_t result = 0;
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end || !is_digit(*p)) return false;
    for (; p < end && is_digit(*p); p++) { /* counted downwards: INT64_MIN has no positive twin */
        if (__builtin_mul_overflow(result, 10, &result)) return false;
        if (__builtin_sub_overflow(result, *p - '0', &result)) return false;
    }
    if (!negative && result == INT64_MIN) return false;
    *value = negative ? result : -result;
    *text = p;
    return true;
}
