/* This header says what a descent of dual.h in one column, without an intercept and with one penalty l2 for
 * all columns, is begun with and judged by: a walk over X before the first sweep and one behind the last. The
 * criterion is the Newton engine's (algorithms/newton/newton.h),
 *
 *   || D^-1 g || beside the same at w = 0,   D_j^2 = c sum_i s_i x_ij^2 + l2,   g = l2 w + X^T dloss
 *
 * with c the loss's curvature at w = 0. The engine would ask for some thirty vectors of X's width and four
 * walks. What it has to say an error or a doubt about, such as a column that overflows, is left to it. */
#ifndef KI_OPS_DUAL_JUDGE_H
#define KI_OPS_DUAL_JUDGE_H

#include "ops/linear/dual.h"

/* A thread's rows. */
struct ki_dual_walk {
    const struct ki_dual *dual;
    int64_t begin, end;
    double *square; /* out of the first walk: the rows' x . x / l2 */
    double *sum;    /* n x 2, of the columns sum_i s_i x_ij^2 and sum_i s_i y_i x_ij; of the last walk n: X^T
              * dloss */
    bool odd;       /* out of the first walk: an entry's square leaves the range of X's type */
    double loss;    /* out of the last walk */
};

struct ki_dual_judge {
    double l2;
    double weight;    /* sum of s */
    double *scale;    /* n: D^2 */
    double reference; /* || D^-1 g || at w = 0, and where the descent ended */
    double norm;
    double largest;         /* of D^2 */
    double objective, size; /* where the descent ended; size: g . g */
};

/* Before the first sweep, with w and what lies behind it still 0: square of all rows, scale, largest and
 * reference. False: the engine has to judge. Uses 2 n numbers of w and what lies behind it for each of the
 * dual's threads, and leaves 0 there. */
bool ki_dual_judge_begin(struct ki_dual_judge *judge, const struct ki_dual *dual, double *square);
/* Behind the last sweep: rounds w to X's type, and judges it. Uses `own` or former_w. */
void ki_dual_judge_end(struct ki_dual_judge *judge, const struct ki_dual *dual);

#endif
