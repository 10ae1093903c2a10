/* Points and steps of a path's lanes: B = H + L, corrected by the pairs of steps and changes of the losses'
 * gradient (L-BFGS), to which each penalty adds its own part, so that pairs outlast it. With l1 the step is
 * newton_path_l1.c's. */
#include "algorithms/newton/newton_path.h"

#include "ops/linear/fold_losses.h"

enum { SHORTENINGS = 12, SHORTENINGS_NEAR = 1 }; /* where the criterion has been met already */

/* ---- points ---- */

static double norm_of(const struct ki_lanes *t, const struct ki_lane *lane, const double *point,
                      const double *data) {
    double sum = 0;
    for (int64_t j = 0; j < t->size; j++) {
        const double g = ki_lane_least(data[j] + lane->penalty[j] * point[j], point[j], lane->l1[j]);
        sum += lane->criterion[j] * g * g;
    }
    return sqrt(sum);
}

/* The penalties' part of the objective. */
static double charge(const struct ki_lanes *t, const struct ki_lane *lane, const double *point) {
    double sum = 0;
    for (int64_t j = 0; j < t->n; j++)
        sum += 0.5 * lane->penalty[j] * point[j] * point[j] + lane->l1[j] * fabs(point[j]);
    return sum;
}

double ki_lane_sum(const double *x, const double *y, const double *z, int64_t size) {
    double sum[4] = {0};
    int64_t j = 0;
    for (; j + 4 <= size; j += 4)
        for (int l = 0; l < 4; l++) sum[l] += x[j + l] * y[j + l] * (z ? z[j + l] : 1);
    for (; j < size; j++) sum[0] += x[j] * y[j] * (z ? z[j] : 1);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double ki_lane_pack(const struct ki_lanes *t, int64_t f, const double *point) {
    const struct ki_lane *lane = &t->lane[f];
    for (int64_t j = 0; j < t->n; j++) t->host[j * t->folds + f] = point[j];
    return t->intercept ? point[t->n] - ki_lane_sum(lane->mean, point, NULL, t->n) : 0;
}

void ki_lane_unpack(const struct ki_lanes *t, int64_t f, double sum) {
    const struct ki_lane *lane = &t->lane[f];
    for (int64_t j = 0; j < t->n; j++) lane->slope[j] = t->host[j * t->folds + f] - lane->mean[j] * sum;
    if (t->intercept) lane->slope[t->n] = sum;
}

kiln_status ki_lanes_evaluate(struct ki_lanes *t) {
    kiln_status status;
    double b[KI_LANES_MOST], sums[KI_LANES_MOST] = {0}, values[2 * KI_LANES_MOST];
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        for (int64_t j = 0; t->narrow && j < t->n; j++) lane->next[j] = (float)lane->next[j];
        const double asked = ki_lane_pack(t, f, lane->next);
        b[f] = t->narrow ? (float)asked : asked;
        if (t->intercept) lane->next[t->n] += b[f] - asked;
    }
    TRY(ki_vector_set(t->W, t->host));
    TRY(ki_vector_set(t->b, b));
    TRY(ki_fold_losses(&(struct ki_fold_losses){.values = t->values,
                                                .G = t->G,
                                                .gb = t->gb,
                                                .C = t->wide ? t->C : NULL,
                                                .loss = &t->loss,
                                                .X = t->X,
                                                .W = t->W,
                                                .b = t->b,
                                                .fold = t->fold,
                                                .folds = t->columns}));
    TRY(ki_vector_get(t->host, t->G));
    TRY(ki_vector_get(sums, t->gb));
    TRY(ki_vector_get(values, t->values));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        ki_lane_unpack(t, f, sums[f]);
        lane->next_loss = values[f];
        lane->next_total = values[t->folds + f];
        lane->next_objective = values[f] + charge(t, lane, lane->next);
        lane->next_norm = norm_of(t, lane, lane->next, lane->slope);
    }
done:
    return status;
}

/* The evaluated point becomes the lane's; the step is remembered in a place that no pair in use has. */
static void accept(const struct ki_lanes *t, struct ki_lane *lane) {
    lane->right = ki_lane_contracts(t, lane);
    double *step = lane->step + lane->pairs % KI_LANE_PAIRS * t->size,
           *change = lane->change + lane->pairs % KI_LANE_PAIRS * t->size;
    double product = 0;
    for (int64_t j = 0; j < t->size; j++) {
        step[j] = lane->next[j] - lane->point[j];
        change[j] = lane->slope[j] - lane->data[j];
        product += step[j] * change[j];
        lane->point[j] = lane->next[j];
        lane->data[j] = lane->slope[j];
    }
    if (t->l1 > 0)
        ki_lane_learn(t, lane, step, change);
    else if (product > 0 && !t->wide)
        lane->pairs++;
    lane->loss = lane->next_loss;
    lane->total = lane->next_total;
    lane->objective = lane->next_objective;
    lane->norm = lane->next_norm;
    lane->t = 0;
    lane->shortened = 0;
}

/* ---- steps ---- */

/* U of H + L; false: it is not positive. */
static bool factorise(const struct ki_lanes *t, struct ki_lane *lane) {
    const int64_t size = t->size;
    memcpy(lane->U, lane->H, (size_t)(size * size) * sizeof *lane->U);
    for (int64_t i = 0; i < size; i++) {
        lane->U[i * size + i] += lane->penalty[i];
        lane->kept[i] = lane->criterion[i] > 0 ? 1 / lane->criterion[i] : 1;
        for (int64_t j = i; j < size; j++)
            if (lane->criterion[i] == 0 || lane->criterion[j] == 0) lane->U[i * size + j] = i == j;
    }
    struct ki_factorisation factor = {
        .U = lane->U, .size = size, .scale = lane->kept, .part = t->narrow ? 1e-5 : 1e-10};
    ki_factorise(&factor, INFINITY);
    return !factor.failed && !factor.replaced;
}

/* The criterion's norm at the origin, which counts as 0 where it is nothing but rounding. */
static double measure_origin(const struct ki_lanes *t, const struct ki_lane *lane) {
    const double part = 16 * ki_epsilon(kiln_matrix_type(t->X)) * sqrt(fabs(lane->zero_loss));
    double sum = 0;
    bool more = false;
    for (int64_t j = 0; j < t->size; j++) {
        const double g = ki_lane_least(lane->zero[j], 0, lane->l1[j]);
        const double square =
            j < t->n ? lane->spread[j] + lane->weight * lane->mean[j] * lane->mean[j] : lane->weight;
        sum += lane->criterion[j] * g * g;
        more = more || (lane->criterion[j] > 0 && fabs(g) > part * sqrt(square)); /* than that column's own */
    }
    return more ? sqrt(sum) : 0;
}

/* The model is the origin. */
static void stay(const struct ki_lanes *t, struct ki_lane *lane) {
    memset(lane->point, 0, (size_t)t->n * sizeof *lane->point);
    if (t->intercept) lane->point[t->n] = lane->origin.b;
    memcpy(lane->data, lane->zero, (size_t)t->size * sizeof *lane->data);
    lane->loss = lane->zero_loss;
    lane->total = lane->zero_total;
}

bool ki_lane_penalise(const struct ki_lanes *t, struct ki_lane *lane) {
    const int64_t n = t->n;
    const double curvature = lane->origin.curvature;
    for (int64_t j = 0; j < n; j++) {
        const double variance = t->standardize ? lane->spread[j] / lane->weight : 1;
        lane->penalty[j] = t->penalty * variance;
        lane->l1[j] = t->l1 * sqrt(variance);
        lane->criterion[j] = lane->spread[j] > 0 ? 1 / (curvature * lane->spread[j] + lane->penalty[j]) : 0;
    }
    if (t->intercept) lane->criterion[n] = 1 / (curvature * lane->weight);
    lane->reference = measure_origin(t, lane);
    if (lane->reference == 0) stay(t, lane);
    lane->norm = norm_of(t, lane, lane->point, lane->data);
    lane->objective = lane->loss + charge(t, lane, lane->point);
    return t->l1 > 0 || t->wide || factorise(t, lane);
}

/* x . (change + L s) of pair p. */
static double product(const struct ki_lanes *t, const struct ki_lane *lane, int64_t p, const double *x) {
    const double *s = lane->step + p * t->size, *y = lane->change + p * t->size;
    double sum = 0;
    for (int64_t j = 0; j < t->size; j++) sum += x[j] * (y[j] + lane->penalty[j] * s[j]);
    return sum;
}

static double dot(const double *x, const double *y, int64_t size) {
    double sum = 0;
    for (int64_t j = 0; j < size; j++) sum += x[j] * y[j];
    return sum;
}

/* direction = -B^-1 g, B = H + L with the pairs; its slope in `first`. */
static void turn(const struct ki_lanes *t, struct ki_lane *lane) {
    const int64_t size = t->size, oldest = ki_max(lane->pairs - KI_LANE_PAIRS + 1, 0);
    double *q = lane->direction, share[KI_LANE_PAIRS], curve[KI_LANE_PAIRS];
    for (int64_t j = 0; j < size; j++)
        q[j] = lane->criterion[j] > 0 ? -lane->data[j] - lane->penalty[j] * lane->point[j] : 0;
    memcpy(lane->kept, q, (size_t)size * sizeof *q);
    for (int64_t p = lane->pairs; p-- > oldest;) {
        const int64_t at = p % KI_LANE_PAIRS;
        const double *s = lane->step + at * size, *y = lane->change + at * size;
        curve[at] = product(t, lane, at, s);
        share[at] = dot(s, q, size) / curve[at];
        for (int64_t j = 0; j < size; j++) q[j] -= share[at] * (y[j] + lane->penalty[j] * s[j]);
    }
    ki_substitute(lane->U, q, size);
    for (int64_t p = oldest; p < lane->pairs; p++) {
        const int64_t at = p % KI_LANE_PAIRS;
        const double *s = lane->step + at * size, rest = share[at] - product(t, lane, at, q) / curve[at];
        for (int64_t j = 0; j < size; j++) q[j] += rest * s[j];
    }
    lane->first = dot(q, lane->kept, size);
    lane->t = 1;
}

/* Whether the step was of use: the objective falls, or, where that drowns in rounding, the gradient. */
static bool is_better(const struct ki_lanes *t, const struct ki_lane *lane) {
    const double noise = 32 * ki_epsilon(kiln_matrix_type(t->X)) * fabs(lane->objective),
                 predicted = lane->t * (1 - 0.5 * lane->t) * lane->first,
                 actual = lane->objective - lane->next_objective;
    if (!isfinite(lane->next_objective) || !isfinite(lane->next_norm)) return false;
    if (predicted > noise) return actual >= 1e-4 * lane->t * lane->first;
    return actual >= -noise && lane->next_norm < lane->norm;
}

kiln_status ki_lanes_advance(struct ki_lanes *t, bool *over) {
    kiln_status status = KILN_OK;
    *over = true;
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        lane->met = ki_lane_has_converged(t, lane);
        t->worn = t->worn || (lane->doubted && !lane->met); /* the columns' curvature is asked for */
    }
    if (t->wide) TRY(ki_lanes_search(t));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        const bool anew = !lane->met && lane->t == (t->wide ? 1 : 0);
        if (!lane->met && lane->t == 0) (t->l1 > 0 ? ki_lane_descend : turn)(t, lane);
        if (anew) lane->met = ki_lane_is_told(t, lane);
        if (!lane->met && !(lane->first > 0)) lane->bad = lane->met = true;
        for (int64_t j = 0; j < t->size; j++)
            lane->next[j] = lane->point[j] + (lane->met ? 0 : lane->t * lane->direction[j]);
        *over = *over && lane->met;
    }
    if (*over) return KILN_OK;
    TRY(ki_lanes_evaluate(t));
    for (int64_t f = 0; f < t->folds; f++) {
        struct ki_lane *lane = &t->lane[f];
        if (lane->met) continue;
        lane->iterations++;
        if (is_better(t, lane)) {
            accept(t, lane);
            continue;
        }
        lane->t *= 0.25;
        lane->bad = ++lane->shortened > (lane->doubted ? SHORTENINGS_NEAR : SHORTENINGS);
    }
done:
    return status;
}
