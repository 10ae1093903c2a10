/* Numbers as most files write them, without a call: eight bytes at a time, and no branch on how many digits
 * there are, which would be mispredicted. What is not taken here is for io/number.h to say. */
#ifndef KI_QUICK_H
#define KI_QUICK_H

#include "io/number.h"
#include "io/text.h"

#define KI_QUICK_ONES UINT64_C(0x0101010101010101)

/* How many bytes of a number's text, from its first on, must be readable, whatever it looks like. */
enum { KI_QUICK_READS = 72 };

/* How many digits a word begins with. Each byte's top bit is set where there is none. */
static inline int ki_quick_count(uint64_t word) {
    const uint64_t digits = word ^ KI_QUICK_ONES * '0';
    const uint64_t others =
        (((digits & KI_QUICK_ONES * 0x7F) + KI_QUICK_ONES * 0x76) | digits) & KI_QUICK_ONES << 7;
    return others ? __builtin_ctzll(others) / 8 : 8;
}

/* The number that a word's first `count` bytes are, which are digits: they are moved to its end and added up
 * in pairs, pairs of pairs, and so on. Two shifts, as one by all 64 bits has no meaning. */
static inline uint64_t ki_quick_value(uint64_t word, int count) {
    const int half = 4 * (8 - count);
    word = (word ^ KI_QUICK_ONES * '0') << half << half;
    word = word * 10 + (word >> 8);
    return (((word & UINT64_C(0x000000FF000000FF)) * (100 + (UINT64_C(1000000) << 32)) +
             (word >> 16 & UINT64_C(0x000000FF000000FF)) * (1 + (UINT64_C(10000) << 32))) >>
            32) &
           UINT32_MAX;
}

/* Moves *text behind the digits there, up to 24, and appends them to *w, which wraps around beyond 19; their
 * count. */
static inline int ki_quick_digits(const char **text, uint64_t *w) {
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

/* [-]DIGITS[.DIGITS] of up to 19 digits at *text, which moves behind it; the value is that of ki_parse_real.
 * The caller looks at what follows: a further digit or an exponent belongs to the number, which then is
 * another one. */
static inline bool ki_quick_real(const char **text, bool single, double *value) {
    const char *p = *text;
    const bool minus = *p == '-';
    uint64_t w = 0;
    double magnitude;
    p += minus;
    const int whole = ki_quick_digits(&p, &w), point = *p == '.';
    p += point;
    const int fraction = point ? ki_quick_digits(&p, &w) : 0;
    if (whole + fraction == 0 || whole + fraction > 19) return false;
    if (w <= (uint64_t)1 << 53)
        magnitude = (double)w / ki_tens[fraction];
    else if (!ki_round_decimal(w, -fraction, &magnitude))
        return false;
    if (single && ki_between_floats(magnitude)) return false;
    *value = minus ? -magnitude : magnitude;
    *text = p;
    return true;
}

#endif
