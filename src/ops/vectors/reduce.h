/* Column reductions behind dot and norm: result[c] = sum (or max) over rows r of f(X_rc, Y_rc), of squares
 * its root without the scale. They add up in double, or in float on a device without f64. */
#ifndef KI_REDUCE_H
#define KI_REDUCE_H

#include <stdbool.h>

#include "kiln/ops.h"

enum ki_reduce_kind {
    KI_REDUCE_DOT = 0,       /* x * y */
    KI_REDUCE_ABS = 1,       /* |x| */
    KI_REDUCE_SQUARES = 2,   /* (x * scale)^2: the scale keeps extreme values from overflowing */
    KI_REDUCE_MAX = 3,       /* max |x|, NaN if there is one */
    KI_REDUCE_SUM = 4,       /* x */
    KI_REDUCE_ONES = 5,      /* x, NaN if there is one that is neither 0 nor 1 */
    KI_REDUCE_SIGNS = 6,     /* 1 for 1, 0 for -1, NaN if there is one that is neither */
    KI_REDUCE_COUNTS = 7,    /* x, NaN if there is one that is negative */
    KI_REDUCE_ENTROPY = 8,   /* x log x - x, which is 0 for x = 0 */
    KI_REDUCE_FACTORIALS = 9 /* log(x!), for x >= 0 */
};

struct ki_programs;
/* Lists the kernel that reduces a matrix of so many entries. */
void ki_reduce_program(struct ki_programs *programs, kiln_type type, int64_t entries,
                       enum ki_reduce_kind kind);

/* *ones = how many entries of y (m x 1) are 1, if all are 0 or 1 or, *signs, all -1 or 1; else NaN. Exact,
 * but for rounding beyond 2^24 rows on a device without f64. */
kiln_status ki_reduce_outcomes(double *ones, bool *signs, const kiln_matrix *y);
/* *sum = that of f(X_e) over the entries of X, where they lie: on a device, by panels, on a group's members,
 * in processes. Not for KI_REDUCE_DOT and KI_REDUCE_MAX. Cost: one walk over the values. */
kiln_status ki_reduce_entries(double *sum, const kiln_matrix *X, enum ki_reduce_kind kind);
enum { KI_REDUCE_LIMITS = 3 };
/* beyond[i] = whether the largest |X_e| is beyond limits[i], of KI_REDUCE_LIMITS at most, in one walk. */
kiln_status ki_reduce_beyond(bool *beyond, const kiln_matrix *X, const double *limits, int count);

#endif
