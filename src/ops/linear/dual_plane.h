/* This header says what follows a sweep of dual.h of one column: a move to about the best point of the plane
 * through its end, along what it changed and along the last move. Conjugate gradient does the same with
 * products alone; here sweeps take the place of its preconditioner, and where the penalty is weak half as
 * many do. The dual is quadratic but for the rows' conjugates, which count as parabolas at the sweep's end;
 * slopes and curvatures are sums over rows and columns, no pass.
 *
 * A hinge's variable stays at 0 where it is, and where it would fall below: what w then has too much is taken
 * off by the row. Where that happens the move has left the plane and may make things worse, so only a share
 * of it is kept: to the least point of the dual, which is a parabola on that way, so that a move never raises
 * it.
 * Of the logistic loss no variable comes nearer to an end than by nine tenths of the way. There a move may
 * make things worse: after a sweep whose slopes are far above the least ones so far there is none, so that
 * sweeps alone, which converge, go on. Nor is there one, as it would gain little, where slopes fall fast. */
#ifndef KI_OPS_DUAL_PLANE_H
#define KI_OPS_DUAL_PLANE_H

#include "ops/linear/dual.h"

enum { KI_DUAL_PLANE = 6 };

/* A thread's columns and rows. */
struct ki_dual_plane {
    struct ki_dual *dual;
    int64_t first, end, first_row, end_row;
    double sum[KI_DUAL_PLANE]; /* slope along change and last move; curvature along change, across, along last
                          * move; w's penalty, twice */
    double more, again;        /* a move: times the change, beyond it; times the last move */
    int64_t stopped;           /* of all rows: hinges that the move would have taken below 0 */
    double share;              /* of the move, what the dual wants */
};

/* After each sweep, of `dual` with former_w and the others; `before_b`: its b before the sweep. */
void ki_dual_move(struct ki_dual *dual, double before_b);

#endif
