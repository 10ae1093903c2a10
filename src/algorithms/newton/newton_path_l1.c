/* Steps of a path's lanes with l1: about the least point of
 *
 *   g . d + 1/2 d . (H + L) d + sum_j l1_j |w_j + d_j|
 *
 * by coordinate descent, whose gradient is kept up to date with H (Friedman, Hastie and Tibshirani, J. Stat.
 * Softw. 33, 2010). An H that was formed elsewhere is corrected by each step's change of the gradient (BFGS)
 * in its own place: it is a matrix here anyway, so nothing is gained by keeping pairs. It has no part of the
 * penalties, which makes it good for the next. */
#include "algorithms/newton/newton_path.h"

enum { SWEEPS = 400 };
static const double LEFT = 1e-3; /* of the criterion's norm: what the model's least subgradient may keep */

double ki_lane_least(double g, double w, double l1) {
    if (w != 0) return g + copysign(l1, w);
    return copysign(fmax(fabs(g) - l1, 0), g);
}

/* One sweep; `full`: also over elements that are 0. slope: the model's gradient without the l1 term. Returns
 * what the least subgradient counted for. */
static double sweep(const struct ki_lanes *t, struct ki_lane *lane, double *slope, bool full) {
    const int64_t size = t->size;
    double violations = 0;
    for (int64_t j = 0; j < size; j++) {
        const double *row = lane->H + j * size;
        const double z = lane->point[j] + lane->direction[j], curve = row[j] + lane->penalty[j],
                     l1 = lane->l1[j];
        if (lane->criterion[j] == 0 || !(curve > 0) || (z == 0 && l1 > 0 && !full)) continue;
        const double least = ki_lane_least(slope[j], z, l1), to = z - slope[j] / curve;
        const double moved = copysign(fmax(fabs(to) - l1 / curve, 0), to), step = moved - z;
        violations += lane->criterion[j] * least * least;
        if (step == 0) continue;
        lane->direction[j] = moved - lane->point[j];
        for (int64_t i = 0; i < size; i++) slope[i] += step * row[i];
        slope[j] += step * lane->penalty[j];
    }
    return violations;
}

void ki_lane_descend(const struct ki_lanes *t, struct ki_lane *lane) {
    const double least = 0.1 * (lane->doubted ? lane->norm : t->tolerance * lane->reference),
                 left = fmax(LEFT * lane->norm, least), goal = left * left;
    double *slope = lane->kept;
    bool full = true;
    for (int64_t j = 0; j < t->size; j++) {
        lane->direction[j] = 0;
        slope[j] = lane->data[j] + lane->penalty[j] * lane->point[j];
    }
    for (int i = 0; i < SWEEPS; i++) {
        const bool small = sweep(t, lane, slope, full) <= goal;
        if (small && full) break;
        full = small;
    }
    lane->first = 0;
    for (int64_t j = 0; j < t->size; j++) {
        const double w = lane->point[j], d = lane->direction[j];
        lane->first -= (lane->data[j] + lane->penalty[j] * w) * d + lane->l1[j] * (fabs(w + d) - fabs(w));
    }
    lane->t = 1;
}

void ki_lane_learn(const struct ki_lanes *t, struct ki_lane *lane, const double *step, const double *change) {
    const int64_t size = t->size;
    double *product = lane->kept, along = 0, curve = 0;
    for (int64_t i = 0; i < size; i++) {
        product[i] = 0;
        for (int64_t j = 0; j < size; j++) product[i] += lane->H[i * size + j] * step[j];
        curve += step[i] * product[i];
        along += step[i] * change[i];
    }
    if (!(along > 1e-8 * curve) || !(curve > 0)) return;
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++)
            lane->H[i * size + j] += change[i] * change[j] / along - product[i] * product[j] / curve;
}
