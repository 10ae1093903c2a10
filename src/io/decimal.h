/* Numbers as text: the shortest decimal that reads back to the same bits, in any locale. */
#ifndef KI_DECIMAL_H
#define KI_DECIMAL_H

#include "kiln.h"

enum { KI_DECIMAL_BYTES = 26 }; /* "-1.2345678901234567e-308" and room */

/* Writes the number at `at`, without a '\0', and returns the place behind it. type KILN_F32: value is a
 * float, and the text reads back to it when rounded to a float. Not a number is "nan", infinity "inf". */
char *ki_print_real(char *at, double value, kiln_type type);
char *ki_print_int64(char *at, int64_t value);
char *ki_print_uint64(char *at, uint64_t value);

#endif
