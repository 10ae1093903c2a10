/* Moves between sweeps: see dual_plane.h. */
#include "ops/linear/dual_plane.h"

#include <float.h>
#include <math.h>

#include "bodies/bodies.h"
#include "core/size.h"
#include "core/threads.h"

/* QUICK and SETBACK: no move is made where the slopes' squares are at most QUICK times the least so far, as
 * sweeps alone are fast enough then, or more than SETBACK times it, as the last move made things worse.
 * LEAST: the share of a sweep's change that a move must keep.
 * NEAR: the logistic loss's variables go at most that share of the way to an end. DEPENDENT: one of two
 * directions must keep that share of its square across the other. */
static const double QUICK = 0.1, SETBACK = 16, LEAST = 0.1, NEAR = 0.9, DEPENDENT = 1e-10;

typedef void plane_body(struct ki_dual_plane *plane);

struct parts {
    struct ki_dual_plane *planes;
    plane_body *body;
};

static void run_part(void *arg, int p) {
    const struct parts *parts = arg;
    struct ki_dual_plane plane = parts->planes[p]; /* not in a line of memory that another thread writes */
    parts->body(&plane);
    parts->planes[p] = plane;
}

static void run(const struct ki_dual *dual, plane_body *body, struct ki_dual_plane *planes) {
    struct parts parts = {planes, body};
    if (dual->own)
        ki_parallel(dual->X->device->threads, KI_DUAL_PARTS, run_part, &parts);
    else
        run_part(&parts, 0);
}

/* The intercept is one more column. */
static void add_intercept(double *sum, const struct ki_dual *dual, double before_b) {
    if (!(dual->bias_step > 0)) return;
    const double weight = 1 / dual->bias_step, change = *dual->b - before_b, last = dual->last_b;
    sum[0] += weight * *dual->b * change;
    sum[1] += weight * *dual->b * last;
    sum[2] += weight * change * change;
    sum[3] += weight * change * last;
    sum[4] += weight * last * last;
}

/* Nothing where rounding is as large as what a move would gain. */
static void solve(double *more, double *again, const double *sum) {
    const double across = sum[2] * sum[4] - sum[3] * sum[3];
    *more = *again = 0;
    if (!(sum[2] > DBL_EPSILON * sum[5])) return;
    if (across > DEPENDENT * sum[2] * sum[4]) {
        *more = (sum[3] * sum[1] - sum[4] * sum[0]) / across;
        *again = (sum[3] * sum[0] - sum[2] * sum[1]) / across;
    } else if (sum[2] > 0) {
        *more = -sum[0] / sum[2];
    }
    if (!isfinite(*more) || !isfinite(*again) || *more < LEAST - 1) *more = *again = 0;
}

/* Returns how much of a move the variables of the logistic loss have room for, 1 at most. */
static double room(const struct ki_dual *dual, double more, double again) {
    double most = 1;
    for (int64_t i = 0; i < dual->X->rows; i++) {
        const double former = dual->former_a[i];
        const double step = more * (dual->a[i] - former) + again * (former - dual->before_a[i]);
        if (-step * most > NEAR * dual->a[i]) most = NEAR * dual->a[i] / -step;
        if (step * most > NEAR * dual->rest[i]) most = NEAR * dual->rest[i] / step;
    }
    return most;
}

/* Returns how much of the way to where the rows have led the move is gone: to the dual's least point on it.
 * Where no hinge was stopped at 0 that is its end, the plane's least point. b before the move: `at`. */
static double share_of(const struct ki_dual *dual, struct ki_dual_plane *plane, int parts, double at) {
    const double way = *dual->b - at, weight = dual->bias_step > 0 ? 1 / dual->bias_step : 0;
    double slope = weight * at * way, curve = weight * way * way;
    if (dual->logistic || plane->stopped == 0) return 1;
    run(dual, ki_bodies(dual->X)->dual_way, plane);
    for (int p = 0; p < parts; p++) slope += plane[p].sum[0], curve += plane[p].sum[1];
    return slope < 0 ? fmin(-slope / curve, 1) : 0;
}

void ki_dual_move(struct ki_dual *dual, double before_b) {
    struct ki_dual_plane plane[KI_DUAL_PARTS];
    const struct ki_bodies *bodies = ki_bodies(dual->X);
    const int parts = dual->own ? KI_DUAL_PARTS : 1;
    double sum[KI_DUAL_PLANE] = {0}, more = 0, again = 0;
    for (int p = 0; p < parts; p++)
        plane[p] = (struct ki_dual_plane){.dual = dual,
                                          .first = ki_part_begin(dual->X->cols, p, parts),
                                          .end = ki_part_begin(dual->X->cols, p + 1, parts),
                                          .first_row = ki_part_begin(dual->X->rows, p, parts),
                                          .end_row = ki_part_begin(dual->X->rows, p + 1, parts)};
    if (dual->violation > QUICK * dual->least && dual->violation <= SETBACK * dual->least) {
        run(dual, bodies->dual_plane, plane);
        for (int p = 0; p < parts; p++)
            for (int n = 0; n < KI_DUAL_PLANE; n++) sum[n] += plane[p].sum[n];
        add_intercept(sum, dual, before_b);
        solve(&more, &again, sum);
    }
    dual->least = fmin(dual->least, dual->violation);
    const double most = dual->logistic ? room(dual, more, again) : 1, at = *dual->b;
    for (int p = 0; p < parts; p++) plane[p].more = most * more, plane[p].again = most * again;
    run(dual, bodies->dual_move, plane);
    *dual->b += plane[0].more * (at - before_b) + plane[0].again * dual->last_b;
    bodies->dual_move_rows(&plane[0]);
    const double share = share_of(dual, plane, parts, at);
    *dual->b = at + share * (*dual->b - at);
    dual->last_b = *dual->b - before_b;
    for (int p = 0; p < parts; p++) plane[p].share = share;
    run(dual, bodies->dual_moved, plane);
}
