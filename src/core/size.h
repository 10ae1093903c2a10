/* Checked size arithmetic: every size that reaches an allocation goes through here. */
#ifndef KI_SIZE_H
#define KI_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* result = a*b (or a*b*c, a+b) as bytes or elements; false if that overflows or an operand is negative. */
static inline bool ki_mul(int64_t a, int64_t b, int64_t *result) {
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, result);
}

static inline bool ki_mul3(int64_t a, int64_t b, int64_t c, int64_t *result) {
    return ki_mul(a, b, result) && ki_mul(*result, c, result);
}

static inline bool ki_add(int64_t a, int64_t b, int64_t *result) {
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, result);
}

static inline int64_t ki_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t ki_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The largest power of two that is at most x, for x >= 1. */
static inline int64_t ki_power_below(int64_t x) {
    int64_t power = 1;
    while (2 * power <= x) power *= 2;
    return power;
}

/* ceil(a / b) for a >= 0, b > 0. */
static inline int64_t ki_ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

#endif
