/* Entries in any order become rows. */
#ifndef KI_BINS_H
#define KI_BINS_H

#include <stdatomic.h>

#include "io/coordinate/coordinate.h"

struct ki_binning {
    const uint32_t *row;
    const int32_t *col;
    const double *value; /* NULL: all are 1 */
    int64_t count;
    int64_t placed; /* with those that the symmetry adds */
    enum ki_symmetry symmetry;
    int threads;
    int64_t rows;
    /* Says where they go: `rows` + 1 starts that are 0, and room for all that are placed. */
    int64_t *row_start;
    int32_t *to_col;
    double *to_value;
    atomic_bool repeats; /* some row has two of one column */
};

/* By rows, in a row by columns, those of one place in their order, an entry before its mirror image; false if
 * there is no memory. */
bool ki_bin_entries(struct ki_binning *b);

#endif
