/* This header says whether a number lies in a kiln_range, and the range in words. */
#ifndef KI_RANGE_H
#define KI_RANGE_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "kiln.h"

static inline bool ki_range_holds(const kiln_range *range, double value) {
    return (range->open & KILN_OPEN_LEAST ? value > range->least : value >= range->least) &&
           (range->open & KILN_OPEN_MOST ? value < range->most : value <= range->most);
}

enum { KI_RANGE_WORDS = 80 };

/* "a number >= 0", "a number > 0 and <= 1"; returns words. */
static inline const char *ki_range_words(char words[KI_RANGE_WORDS], const kiln_range *range) {
    const int length = snprintf(words, KI_RANGE_WORDS, "a number %s %g",
                                range->open & KILN_OPEN_LEAST ? ">" : ">=", range->least);
    if (isfinite(range->most))
        snprintf(words + length, (size_t)(KI_RANGE_WORDS - length), " and %s %g",
                 range->open & KILN_OPEN_MOST ? "<" : "<=", range->most);
    return words;
}

#endif
