/* Steps of a path's lanes where columns are too many for a Hessian: those of all folds together, by conjugate
 * gradient on
 *
 *   (X^T C_f X + L) d_f = -g_f,   C_f the curvature of fold f's losses,
 *
 * of which an iteration takes one pass over X for all folds: what takes the time of a sparse row is to fetch
 * its entries and what belongs to them, which lies side by side. The folds' Hessians are nearly the same, so
 * that they share a preconditioner, and their iterations end at about the same time. A step is as near to
 * Newton's as newton_step.c asks for. */
#include "algorithms/newton/newton_path.h"

#include "ops/linear/fold_losses.h"
#include "ops/linear/newton.h"

enum { WORN = 4, MOST = 1000 }; /* iterations after which the preconditioner is worth a pass; of a step */
/* A column whose rows have no curvature just now keeps this part of the criterion's diagonal. */
static const double FLOOR = 0.01;

/* ---- the preconditioner ---- */

/* t->square = the columns' squares by the folds' mean curvature; returns the sum of that. */
static kiln_status measure_squares(struct ki_lanes *t, double *total) {
    kiln_status status;
    const double share = 1 / (double)t->folds;
    TRY(kiln_multiply(t->mean_C, share, KILN_PLAIN, t->C, t->ones, 0, NULL));
    TRY(kiln_gram_diagonal(t->g, t->X, t->mean_C));
    TRY(ki_vector_get(t->square, t->g));
    TRY(kiln_norm(total, t->mean_C, KILN_NORM_1));
    t->products++;
done:
    return status;
}

/* t->inverse: of D^2_j = floor_j + spread_j (X .* X)^T C / (X .* X)^T s, as in newton_step.c, of all folds on
 * average. */
static kiln_status precondition(struct ki_lanes *t) {
    kiln_status status;
    double total, largest = 0, weight = 0, curvature = 0;
    TRY(measure_squares(t, &total));
    for (int64_t f = 0; f < t->folds; f++) {
        weight += t->lane[f].weight / (double)t->folds;
        curvature += t->lane[f].origin.curvature / (double)t->folds;
    }
    for (int64_t j = 0; j < t->n; j++) {
        double spread = 0, square = 0, floor = 0;
        for (int64_t f = 0; f < t->folds; f++) {
            const struct ki_lane *lane = &t->lane[f];
            spread += lane->spread[j];
            square += lane->spread[j] + lane->weight * lane->mean[j] * lane->mean[j];
            floor += lane->penalty[j] + FLOOR * (lane->origin.curvature * lane->spread[j] + lane->penalty[j]);
        }
        t->inverse[j] = spread > 0 ? floor / (double)t->folds + spread / square * t->square[j] : 0;
        largest = fmax(largest, t->inverse[j]);
    }
    const bool even = ki_newton_evens_out(t->X, t->l1, t->standardize);
    for (int64_t j = 0; j < t->n; j++) {
        const double diagonal = t->inverse[j];
        if (diagonal > 0) t->inverse[j] = 1 / (even ? sqrt(diagonal * largest) : diagonal);
    }
    if (t->intercept) t->inverse[t->n] = 1 / (total + FLOOR * curvature * weight);
    t->worn = false;
done:
    return status;
}

/* ---- the start ---- */

/* The weights of the last `known` solutions, the latest first, in the polynomial through them by the
 * logarithms of their penalties, at the one at hand. */
static void weigh_former(double *weight, const struct ki_lanes *t, int64_t known) {
    double at[KI_FORMER] = {0};
    for (int64_t i = 0; i < known; i++) at[i] = log(ki_path_l2(t->path, t->value - 1 - i));
    for (int64_t i = 0; i < known; i++) {
        weight[i] = 1;
        for (int64_t j = 0; j < known; j++)
            if (j != i) weight[i] *= (log(t->penalty) - at[j]) / (at[i] - at[j]);
    }
}

void ki_lanes_foresee(struct ki_lanes *t) {
    const int64_t known = ki_min(t->value, KI_FORMER), latest = t->value + KI_FORMER - 1;
    double weight[KI_FORMER] = {0};
    weigh_former(weight, t, known);
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        double *former = lane->search.former;
        memcpy(former + latest % KI_FORMER * t->size, lane->point, (size_t)t->size * sizeof *former);
        lane->first = 0;
        for (int64_t j = 0; j < t->size; j++) {
            double step = known > 0 ? -lane->point[j] : 0;
            for (int64_t i = 0; i < known; i++)
                step += weight[i] * former[(latest - i) % KI_FORMER * t->size + j];
            lane->direction[j] = step;
            lane->first -= step * (lane->data[j] + lane->penalty[j] * lane->point[j]);
        }
        if (lane->first > 0 && isfinite(lane->first)) lane->t = 1;
    }
}

/* ---- conjugate gradient ---- */

static void begin_lane(void *arg, int f) {
    struct ki_lanes *t = arg;
    struct ki_lane *lane = &t->lane[f];
    struct ki_search *search = &lane->search;
    search->on = !lane->met && lane->t == 0;
    memset(search->toward, 0, (size_t)t->size * sizeof *search->toward);
    if (!search->on) return;
    lane->first = 0;
    for (int64_t j = 0; j < t->size; j++) {
        lane->direction[j] = 0;
        search->rest[j] = -lane->data[j] - lane->penalty[j] * lane->point[j];
        search->inverse[j] =
            lane->criterion[j] > 0 ? t->inverse[j] : 0; /* else the fold leaves the column out */
        search->toward[j] = search->inverse[j] * search->rest[j];
    }
    search->rho = ki_lane_sum(search->rest, search->rest, search->inverse, t->size);
    const double relative = lane->norm / lane->reference;
    search->goal = ki_newton_forcing(relative, lane->doubted ? 0.1 * relative : t->tolerance, search->rho);
    lane->t = 1;
}

/* One iteration of a lane. Its column of t->host is X^T C (X toward + b), as X's columns are. */
static void advance_lane(void *arg, int f) {
    struct ki_lanes *t = arg;
    struct ki_lane *lane = &t->lane[f];
    struct ki_search *search = &lane->search;
    double *p = search->toward, *r = search->rest, *q = lane->slope;
    if (!search->on) return;
    ki_lane_unpack(t, f, search->sum);
    for (int64_t j = 0; j < t->size; j++) q[j] += lane->penalty[j] * p[j];
    const double curvature = ki_lane_sum(p, q, NULL, t->size), alpha = search->rho / curvature;
    search->on = curvature > 0 && isfinite(alpha);
    for (int64_t j = 0; search->on && j < t->size; j++) {
        lane->direction[j] += alpha * p[j];
        r[j] -= alpha * q[j];
    }
    const double next = ki_lane_sum(r, r, search->inverse, t->size), beta = next / search->rho;
    if (search->on) lane->first += alpha * search->rho;
    search->on = search->on && sqrt(next) > search->goal;
    for (int64_t j = 0; j < t->size; j++) p[j] = search->on ? search->inverse[j] * r[j] + beta * p[j] : 0;
    search->rho = next;
}

/* t->host = what advance_lane takes, of all lanes. */
static kiln_status multiply(struct ki_lanes *t) {
    kiln_status status;
    double b[KI_LANES_MOST], sums[KI_LANES_MOST] = {0};
    for (int64_t f = 0; f < t->folds; f++) b[f] = ki_lane_pack(t, f, t->lane[f].search.toward);
    TRY(ki_vector_set(t->W, t->host));
    TRY(ki_vector_set(t->b, b));
    TRY(ki_fold_products(
        &(struct ki_fold_products){.G = t->G, .gb = t->gb, .X = t->X, .P = t->W, .b = t->b, .C = t->C}));
    TRY(ki_vector_get(t->host, t->G));
    TRY(ki_vector_get(sums, t->gb));
    for (int64_t f = 0; f < t->folds; f++) t->lane[f].search.sum = sums[f];
    t->products++;
done:
    return status;
}

kiln_status ki_lanes_search(struct ki_lanes *t) {
    kiln_status status = KILN_OK;
    kiln_device *device = kiln_matrix_device(t->X);
    int64_t rounds = 0;
    bool on = false;
    for (int64_t f = 0; f < t->folds; f++) on = on || (!t->lane[f].met && t->lane[f].t == 0);
    if (!on) return KILN_OK;
    if (t->worn) TRY(precondition(t));
    ki_newton_parallel(device, (int)t->folds, begin_lane, t);
    for (; on && rounds < MOST; rounds++) {
        TRY(multiply(t));
        ki_newton_parallel(device, (int)t->folds, advance_lane, t);
        on = false;
        for (int64_t f = 0; f < t->folds; f++) on = on || t->lane[f].search.on;
        TRY(ki_lanes_told(t));
    }
    t->worn = rounds >= WORN;
done:
    return status;
}
