/* value = c * 2^q. All decimals between value's neighbours, halfway, read back as value: take the one with
 * the fewest digits, and of these the closest.
 *
 * With k = floor(log10(2^q)) the interval, scaled by 10^-k, is between 1 and 10 long, so its shortest decimal
 * has the unit 10^k or 10^(k+1): two candidates of each are looked at. The scaled ends and middle need not be
 * exact; 64 bits and a sticky last bit give the same comparisons, when 10^-k is known to 128 bits, rounded up
 * (Giulietti, "The Schubfach way to render doubles", 2020). The table of powers is computed at first use, in
 * about two milliseconds. */
#include "io/decimal.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum { POWER_LEAST = -292, POWER_MOST = 324, WORDS = 24 }; /* 5^324 has 753 bits */

static wide powers[POWER_MOST - POWER_LEAST + 1];
static pthread_once_t powers_once = PTHREAD_ONCE_INIT;

/* 32-bit words, lowest first. */
struct big {
    uint32_t word[WORDS];
};

static bool bit_of(const struct big *a, int bit) {
    return a->word[bit / 32] >> bit % 32 & 1;
}

static int bits_of(const struct big *a) {
    int bits = 32 * WORDS;
    while (bits > 0 && !bit_of(a, bits - 1)) bits--;
    return bits;
}

/* a *= factor */
static void big_multiply(struct big *a, uint32_t factor) {
    uint64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (uint64_t)a->word[i] * factor;
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* a -= b if a >= b */
static bool big_subtract(struct big *a, const struct big *b) {
    for (int i = WORDS; i-- > 0;) {
        if (a->word[i] > b->word[i]) break;
        if (a->word[i] < b->word[i]) return false;
    }
    int64_t carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (int64_t)a->word[i] - b->word[i];
        a->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return true;
}

/* The first 128 bits of a, rounded up. */
static wide top_of(const struct big *a) {
    int bits = bits_of(a);
    wide top = 0;
    bool rest = false;
    for (int i = 1; i <= 128; i++) top = top << 1 | (bits >= i && bit_of(a, bits - i));
    for (int i = bits - 129; i >= 0; i--) rest |= bit_of(a, i);
    return top + rest;
}

/* The first 128 bits of 1/a, rounded up; a is not a power of two. */
static wide top_of_reciprocal(const struct big *a) {
    struct big rest = {{0}};
    int bits = bits_of(a);
    wide top = 0;
    rest.word[bits / 32] = (uint32_t)1 << bits % 32;
    for (int i = 0; i < 128; i++) {
        top = top << 1 | big_subtract(&rest, a);
        big_multiply(&rest, 2);
    }
    return top + 1;
}

/* 10^p and 5^p have the same first bits. */
static void fill_powers(void) {
    struct big five = {{1}};
    for (int p = 0; p <= POWER_MOST; p++) {
        powers[p - POWER_LEAST] = top_of(&five);
        if (p > 0 && -p >= POWER_LEAST) powers[-p - POWER_LEAST] = top_of_reciprocal(&five);
        big_multiply(&five, 5);
    }
}

/* floor(log10(2^q)), floor(log10(3/4 * 2^q)) and floor(log2(10^p)), by logarithms with 41 and 38 bits behind
 * the point. */
static int log10_of_power2(int q) {
    return (int)((q * INT64_C(661971961083)) >> 41);
}

static int log10_of_power2_narrow(int q) {
    return (int)((q * INT64_C(661971961083) - INT64_C(274743187321)) >> 41);
}

static int log2_of_power10(int p) {
    return (int)((p * INT64_C(913124641741)) >> 38);
}

/* power * c / 2^128; its last bit also says whether anything was cut off. */
static uint64_t scale(wide power, uint64_t c) {
    wide low = (wide)(uint64_t)power * c;
    wide high = (wide)(uint64_t)(power >> 64) * c + (low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* value = digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* narrow: value is a power of two, and its lower neighbour is only half as far as the upper one. */
static struct decimal shortest(uint64_t c, int q, bool narrow) {
    int k = narrow ? log10_of_power2_narrow(q) : log10_of_power2(q);
    int shift = q + log2_of_power10(-k) + 1;
    wide power = powers[-k - POWER_LEAST];
    uint64_t odd = c & 1; /* then the halfway points read back as the neighbours */
    uint64_t lower = scale(power, (4 * c - (narrow ? 1 : 2)) << shift) + odd;
    uint64_t middle = scale(power, 4 * c << shift);
    uint64_t upper = scale(power, (4 * c + 2) << shift) - odd;

    uint64_t floor = middle / 4, tens = floor / 10;
    if (floor >= 10) {
        bool down = lower <= 40 * tens, up = 40 * tens + 40 <= upper;
        if (down != up) return (struct decimal){tens + up, k + 1};
    }
    bool down = lower <= 4 * floor, up = 4 * floor + 4 <= upper;
    if (down != up) return (struct decimal){floor + up, k};
    uint64_t half = 4 * floor + 2;
    bool closer_up = middle > half || (middle == half && (floor & 1));
    return (struct decimal){floor + closer_up, k};
}

static struct decimal shortest_f64(double value) {
    enum { FRACTION = 52 };
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & (((uint64_t)1 << FRACTION) - 1);
    int exponent = (int)(bits >> FRACTION & 0x7ff);
    if (exponent == 0) return shortest(fraction, -1074, false);
    return shortest(fraction | (uint64_t)1 << FRACTION, exponent - 1075, fraction == 0 && exponent > 1);
}

static struct decimal shortest_f32(float value) {
    enum { FRACTION = 23 };
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t fraction = bits & (((uint32_t)1 << FRACTION) - 1);
    int exponent = (int)(bits >> FRACTION & 0xff);
    if (exponent == 0) return shortest(fraction, -149, false);
    return shortest(fraction | (uint32_t)1 << FRACTION, exponent - 150, fraction == 0 && exponent > 1);
}

static char *print_text(char *at, const char *text, size_t length) {
    memcpy(at, text, length);
    return at + length;
}

static char *print_zeros(char *at, int count) {
    if (count > 0) memset(at, '0', (size_t)count);
    return at + (count > 0 ? count : 0);
}

char *ki_print_uint64(char *at, uint64_t value) {
    char digits[20];
    int n = 20;
    do digits[--n] = (char)('0' + value % 10);
    while (value /= 10);
    return print_text(at, digits + n, (size_t)(20 - n));
}

/* 123.45, 0.0001 and 1e+20 as %g would lay them out, with 16 digits before the exponent form. */
static char *print_decimal(char *at, struct decimal number) {
    while (number.digits % 10 == 0) {
        number.digits /= 10;
        number.exponent++;
    }
    char digits[20];
    int count = (int)(ki_print_uint64(digits, number.digits) - digits);
    int point = count + number.exponent; /* digits before the decimal point */
    if (point > 16 || point < -3) {
        *at++ = digits[0];
        if (count > 1) *at++ = '.';
        at = print_text(at, digits + 1, (size_t)(count - 1));
        *at++ = 'e';
        return ki_print_int64(at, point - 1);
    }
    if (point <= 0) {
        at = print_zeros(print_text(at, "0.", 2), -point);
        return print_text(at, digits, (size_t)count);
    }
    if (point >= count) return print_zeros(print_text(at, digits, (size_t)count), point - count);
    at = print_text(at, digits, (size_t)point);
    *at++ = '.';
    return print_text(at, digits + point, (size_t)(count - point));
}

char *ki_print_int64(char *at, int64_t value) {
    if (value < 0) *at++ = '-';
    return ki_print_uint64(at, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

char *ki_print_real(char *at, double value, kiln_type type) {
    if (isnan(value)) return print_text(at, "nan", 3);
    if (signbit(value)) *at++ = '-';
    if (isinf(value)) return print_text(at, "inf", 3);
    value = fabs(value);
    double exact = type == KILN_F32 ? 0x1p24 : 1e15; /* integers below have no shorter form */
    if (value < exact && value == (double)(int64_t)value) return ki_print_uint64(at, (uint64_t)value);
    pthread_once(&powers_once, fill_powers);
    return print_decimal(at, type == KILN_F32 ? shortest_f32((float)value) : shortest_f64(value));
}
