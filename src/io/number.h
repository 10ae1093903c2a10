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
/* All of a text of up to 16 digits, perhaps with a '-' before and a point among them, as ki_parse_real;
 * false: it is something else. KI_SHORT_REAL_READS bytes must be readable. */
enum { KI_SHORT_REAL_READS = 32 };
bool ki_parse_short_real(const char *text, int64_t size, bool single, double *value);
/* Decimal digits with optional '-' (or '+'); false if there are none or the value does not fit. */
bool ki_parse_int64(const char **text, const char *end, int64_t *value);

#endif
