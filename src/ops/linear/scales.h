/* Means, variances and scales of X's columns from sums over them, in one walk over the vectors: what
 * algorithms set up with. There may be as many columns as entries in a pass, so that this is the device's
 * work and not the host's.
 *
 * The formulas are column_*'s in dialect/real_math.h. All operands are n x 1 and on one device. */
#ifndef KI_OPS_SCALES_H
#define KI_OPS_SCALES_H

#include <stdbool.h>

#include "kiln/ops.h"

/* Says what an operation reads and writes; the sums that it leaves, three at most, follow the semicolon.
 * Numbers as in ops/linear/scales.cl. */
enum ki_scales_op {
    /* square = sum_i s_i (x_ij - c_j)^2 and mean = sum_i s_i (x_ij - c_j) on entry. square becomes that about
     * zero, mean the mean, centred = sum_i s_i (x_ij - mean_j)^2, with a minus sign where that is at most
     * `flat` of weight mean_j^2, and 0 where it may be rounding, too; columns that are not finite or lost to
     * underflow, columns whose centred is at most `doubted` of what square was: it may be rounding; columns
     * with a minus sign */
    KI_SCALES_MEASURE = 0,
    /* inverse = what the preconditioner divides by, 0 where the diagonal of H is: diagonal + penalty, or
     * (plain) the square of the scale of standardised columns; penalty = l2, times the variance if
     * `standardize`; kept = 1 or
     * 0. Both may be NULL */
    KI_SCALES_WEIGH = 1,
    /* inverse = 1 / inverse, and 0 where that is 0; inverse . square, columns with entries that are left out,
     * columns whose diagonal, penalty or inverse leaves the range of the type */
    KI_SCALES_INVERT = 2
};

enum { KI_SCALES_SUMS = 3 };

struct ki_scales {
    enum ki_scales_op op;
    kiln_matrix *square, *mean, *centred, *inverse, *penalty, *kept;
    const kiln_matrix *c; /* NULL: zeros */
    double weight, doubted, flat, l2;
    bool intercept, standardize, plain;
};

/* Holds what the columns' scales begin with, of a dense X, in one walk:
 *
 *   square_j = sum_i v_i (x_ij - c_j)^2,   sum_j = sum_i v_i (x_ij - c_j),
 *   right_j = sum_i v_i (y_i - d) x_ij */
struct ki_column_sums {
    kiln_matrix *square, *sum, *right; /* n x 1; right NULL where it is not wanted */
    const kiln_matrix *X, *v, *y,
        *c; /* v m x 1 or NULL (ones); y m x 1, with right; c n x 1 or NULL (zeros) */
    double d;
};
enum { KI_COLUMN_SUMS_CHAIN = 32 }; /* numbers that are added in X's type at most, before f64 takes over */

/* Returns whether X is one that ki_column_sums takes. */
bool ki_column_sums_apply(const kiln_matrix *X);
kiln_status ki_column_sums(const struct ki_column_sums *sums);

struct ki_programs;
/* Lists the kernels of ki_column_sums, and that of ki_scales_run for n columns. */
void ki_column_sums_programs(struct ki_programs *programs, const kiln_matrix *X);
void ki_scales_program(struct ki_programs *programs, kiln_type type, int64_t n);

/* Operands must be what the operation names. sums, KI_SCALES_SUMS of them, in double and in a fixed order;
 * NULL where none is wanted. */
kiln_status ki_scales_run(double *sums, const struct ki_scales *scales);

#endif
