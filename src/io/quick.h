/* Numbers as most files write them, without a call: eight bytes at a time, and no branch on how many digits
 * there are, which would be mispredicted. */
#ifndef KI_QUICK_H
#define KI_QUICK_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "io/number.h"
#include "io/text.h"

#define KI_QUICK_ONES UINT64_C(0x0101010101010101)

/* Says how many bytes of a number's text, from its first on, must be readable, whatever it looks like. */
enum { KI_QUICK_READS = 72 };

/* Finds how many digits a word begins with. Each byte's top bit is set where there is none. */
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

/* A bit for each of 16 bytes, the first one lowest: whether it is no digit. Without an instruction for it a
 * product moves the top bits of a word's bytes together, no two to one place. */
static inline unsigned ki_quick_others(const char *text) {
#ifdef __SSE2__
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    const __m128i digits = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(digits, _mm_set1_epi8(10)), digits));
#else
    unsigned mask = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t digits = ki_text_word(text + 8 * i) ^ KI_QUICK_ONES * '0';
        const uint64_t others =
            (((digits & KI_QUICK_ONES * 0x7F) + KI_QUICK_ONES * 0x76) | digits) >> 7 & KI_QUICK_ONES;
        mask |= (unsigned)(others * UINT64_C(0x0102040810204080) >> 56) << 8 * i;
    }
    return mask;
#endif
}

/* [-]DIGITS[.DIGITS] of up to 19 digits at *text, which moves behind it; the value is that of ki_parse_real.
 * The caller looks at what follows: a further digit or an exponent belongs to the number, which then is
 * another one.
 *
 * The next number begins where this one ends, so the way there is kept short: one look at 16 bytes finds the
 * point and the end. Numbers that have more are for ki_long_real. */
static inline bool ki_quick_real(const char **text, bool single, double *value) {
    const char *p = *text;
    const bool minus = *p == '-';
    const unsigned others = ki_quick_others(p) & ~(unsigned)minus, behind = others & (others - 1);
    if (behind == 0) return ki_long_real(text, single, value);
    const int first = __builtin_ctz(others), whole = first - minus;
    const bool point = p[first] == '.';
    const int end = point ? __builtin_ctz(behind) : first, fraction = point ? end - first - 1 : 0;
    if (whole > 8 || fraction > 8) return ki_long_real(text, single, value);
    if (whole + fraction == 0) return false;
    const uint64_t w = ki_quick_value(ki_text_word(p + minus), whole) * ki_whole_tens[fraction] +
                       ki_quick_value(ki_text_word(p + first + 1), fraction);
    const double magnitude = (double)(int64_t)w / ki_tens[fraction];
    if (w > (uint64_t)1 << 53 || (single && ki_between_floats(magnitude)))
        return ki_long_real(text, single, value);
    *value = minus ? -magnitude : magnitude;
    *text = p + end;
    return true;
}

#endif
