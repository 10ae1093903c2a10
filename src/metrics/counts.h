/* Rows that count once, each with a score's key and whether it is of the class. */
#ifndef KI_COUNTS_H
#define KI_COUNTS_H

#include "core/matrix.h"

enum { KI_LABELLED = 256 };

struct ki_labelled {
    int64_t count;
    uint64_t key[KI_LABELLED], own[KI_LABELLED]; /* own: 1 or 0 */
};

/* Says `count` rows from `first` on, at most KI_LABELLED, but those that have no score. */
struct ki_labelled_rows {
    void (*make)(const void *user, int64_t first, int64_t count, struct ki_labelled *to);
    const void *user;
};

/* The share of the pairs of a row of the class and another one in which the former has the larger key, ties
 * counting half; NaN without a pair. make() is called three times for each row. */
kiln_status ki_count_area(double *area, const struct ki_labelled_rows *from, int64_t rows, int threads);

#endif
