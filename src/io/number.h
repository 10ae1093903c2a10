/* Numbers from text, independent of the locale, correctly rounded (the bits that strtod gives in the C
 * locale). */
#ifndef KI_NUMBER_H
#define KI_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses the longest number at text (up to end) and moves *text behind it; false and *text unchanged if there
 * is none.
 * Decimal with optional sign, fraction and exponent; "nan", "inf", "infinity" in any case. No hexadecimal, no
 * leading white space. Overflow gives infinity, underflow the nearest denormal or 0. */
bool ki_parse_double(const char **text, const char *end, double *value);
/* The same, but single: so that the float of *value is the number's, rounded once. */
bool ki_parse_real(const char **text, const char *end, bool single, double *value);
/* As ki_quick_real (io/quick.h), of more digits. */
bool ki_long_real(const char **text, bool single, double *value);
extern const double ki_tens[23];        /* 10^i */
extern const uint64_t ki_whole_tens[9]; /* 10^i */
/* Returns whether a double lies in the middle between two floats. Only there would rounding it again be
 * wrong, where the first rounding has moved the number into the middle. */
bool ki_between_floats(double value);
/* Decimal digits with optional '-' (or '+'); false if there are none or the value does not fit. */
bool ki_parse_int64(const char **text, const char *end, int64_t *value);

#endif
