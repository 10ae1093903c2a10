/* Narrow numbers that are no matrix's, as those in a file. */
#ifndef KI_NARROW_VALUES_H
#define KI_NARROW_VALUES_H

#include <stdbool.h>

#include "kiln/codes.h"

/* to = the numbers from[first ... first + count), of an element narrower than the type, in the type. */
void ki_widen_values(void *to, kiln_type type, kiln_element element, const void *from, int64_t first,
                     int64_t count);
/* Returns whether numbers of the type are all numbers of the element, bit by bit; to (NULL is allowed) =
 * these. */
bool ki_narrow_values(void *to, kiln_type type, kiln_element element, const void *from, int64_t count);

#endif
