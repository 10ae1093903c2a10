/* Column reductions behind dot and norm: result[c] = sum (or max) over rows r of f(X_rc, Y_rc), of squares
 * its root without the scale. They add up in double, or in float on a device without f64. */
#ifndef KI_REDUCE_H
#define KI_REDUCE_H

#include <stdbool.h>

#include "kiln/ops.h"

enum ki_reduce_kind {
    KI_REDUCE_DOT = 0,     /* x * y */
    KI_REDUCE_ABS = 1,     /* |x| */
    KI_REDUCE_SQUARES = 2, /* (x * scale)^2: the scale keeps extreme values from overflowing */
    KI_REDUCE_MAX = 3,     /* max |x|, NaN if there is one */
    KI_REDUCE_SUM = 4,     /* x */
    KI_REDUCE_ONES = 5,    /* x, NaN if there is one that is neither 0 nor 1 */
    KI_REDUCE_SIGNS = 6    /* 1 for 1, 0 for -1, NaN if there is one that is neither */
};

struct ki_programs;
/* Lists the kernel that reduces a matrix of so many entries. */
void ki_reduce_program(struct ki_programs *programs, kiln_type type, int64_t entries,
                       enum ki_reduce_kind kind);

/* *ones = how many entries of y (m x 1) are 1, if all are 0 or 1 or, *signs, all -1 or 1; else NaN. Exact,
 * but for rounding beyond 2^24 rows on a device without f64. */
kiln_status ki_reduce_outcomes(double *ones, bool *signs, const kiln_matrix *y);
/* The same reduction of all entries of a sparse X, which its device has room for: *result = sum (or max) of
 * f(X_e). */
kiln_status ki_reduce_entries(double *result, const kiln_matrix *X, enum ki_reduce_kind kind);

#endif
