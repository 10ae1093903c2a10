/* This file says whether a lane of a path that meets the criterion has converged, which is asked as
 * newton_confirm.c does: whether its objective can fall by no more than half of the tolerance's share of what
 * the model has gained, and rounding. What a lane knows of its Hessian is another point's, so that bounds
 * alone are asked. With l2 > 0 that is
 *
 *   (sqrt(sum_j g_j^2 / (2 L_j)) + sqrt(drift))^2 + b^2 / (2 sum_i s_i h_i),
 *
 * g the least subgradient, b the intercept's, by the present curvatures; drift: what the intercept's step
 * moves g by. With l1 alone it is the duality gap of certificate.c, of first order. Where bounds do not tell,
 * the model of the next step does, if the last one has shown that H is right: if it left of each entry of the
 * gradient a quarter at most, and not of their norm, in which columns that have lost their curvature hardly
 * count. A lane that meets the criterion goes on until it is told. Where steps are of no use before that,
 * rounding hides what they leave: then H is formed anew at the mean of the folds' models, and right where the
 * rows' and the columns' curvature is what the lane's is in all. Else the fold is trained alone. */
#include "algorithms/newton/newton_path.h"

/* SHARE: of the tolerance, FAR: of the curvature, as in newton_confirm.c. CHANGED: curvature that is about
 * the same. */
static const double SHARE = 0.5, FAR = 0.1, CHANGED = 0.2;

static bool is_glm(const struct ki_lanes *t) {
    return t->loss.kind == KILN_LOSS_GLM;
}

static bool is_hinged(const struct ki_lanes *t) {
    return t->loss.kind == KILN_LOSS_SQUARED_HINGE || t->loss.kind == KILN_LOSS_SQUARED_EPSILON;
}

/* The objective of the best intercept alone, at least, from the weight of the rows, and the mean and variance
 * of their targets: of two classes exactly; of a regression as svm.c has it. */
static double constant_of(const struct ki_lanes *t, double weight, double mean, double variance) {
    const double epsilon = t->loss.kind == KILN_LOSS_SQUARED_EPSILON ? t->loss.parameter : 0,
                 beyond = fmax(sqrt(fmax(variance, 0)) - epsilon, 0);
    if (t->loss.kind != KILN_LOSS_LOGISTIC) return weight / 2 * beyond * beyond;
    const double other = 1 - mean;
    return mean > 0 && other > 0 ? -weight * (mean * log(mean) + other * log(other)) : 0;
}

static void add_row(double *sums, double s, double y) {
    sums[0] += s;
    sums[1] += s * y;
    sums[2] += s * y * y;
}

kiln_status ki_lanes_tell_constants(struct ki_lanes *t) {
    kiln_status status = KILN_OK;
    struct ki_arena arena = {0};
    const int32_t *fold = t->path->asked.fold;
    double held[KI_LANES_MOST][3] = {{0}}, all[3] = {0};
    for (int64_t f = 0; f < t->folds; f++) t->lane[f].constant = t->lane[f].zero_loss;
    if (is_glm(t) || !t->intercept) return KILN_OK;
    double *y = ki_arena_reals(&arena, t->m), *s = ki_arena_reals(&arena, t->m);
    TRY(arena.status);
    for (int64_t i = 0; i < t->m; i++) s[i] = 1;
    TRY(ki_vector_get(y, t->loss.y));
    if (t->loss.weights) TRY(ki_vector_get(s, t->loss.weights));
    for (int64_t i = 0; i < t->m; i++) {
        add_row(all, s[i], y[i]);
        if (fold) add_row(held[fold[i]], s[i], y[i]);
    }
    for (int64_t f = 0; f < t->folds; f++) {
        const double weight = all[0] - held[f][0], mean = (all[1] - held[f][1]) / weight;
        t->lane[f].constant = constant_of(t, weight, mean, (all[2] - held[f][2]) / weight - mean * mean);
    }
done:
    return ki_arena_free(&arena, status);
}

static double enough_of(const struct ki_lanes *t, const struct ki_lane *lane) {
    const double epsilon = ki_epsilon(kiln_matrix_type(t->X)), first = fabs(lane->zero_loss);
    double ridge = 0;
    for (int64_t j = 0; j < t->n; j++) ridge += lane->penalty[j] * lane->point[j] * lane->point[j] / 2;
    const double gain = fmax(fmax(lane->constant - lane->objective, ridge), 0);
    return SHARE * t->tolerance * gain + 32 * epsilon * fmax(fabs(lane->objective), is_glm(t) ? first : 0) +
           (is_hinged(t) ? 8 * epsilon : 1) * epsilon * first;
}

static double gradient_of(const struct ki_lane *lane, int64_t j) {
    return lane->data[j] + lane->penalty[j] * lane->point[j];
}

/* Returns what the intercept's step costs, and its square's share in how far it may move column j's
 * gradient. */
static double settle(const struct ki_lanes *t, const struct ki_lane *lane, double *drift) {
    const double most = is_hinged(t) ? 1 : 0.25, b = t->intercept ? lane->data[t->n] : 0,
                 half = b == 0 ? 0 : b * b / (2 * lane->total);
    *drift = is_glm(t) ? 0 : 2 * most * half; /* whose curvatures have no bound */
    return half;
}

static double by_penalty(const struct ki_lanes *t, const struct ki_lane *lane) {
    double sum = 0, moved = 0, drift;
    const double half = settle(t, lane, &drift);
    for (int64_t j = 0; j < t->n; j++) {
        if (lane->criterion[j] == 0) continue;
        const double g = ki_lane_least(gradient_of(lane, j), lane->point[j], lane->l1[j]);
        sum += g * g / (2 * lane->penalty[j]);
        moved += drift * lane->spread[j] / (2 * lane->penalty[j]);
    }
    return pow(sqrt(sum) + sqrt(moved), 2) + half;
}

/* The gap of certificate.c; the losses' least values are 0, and of a glm what its deviance says. */
static double by_scaling(const struct ki_lanes *t, const struct ki_lane *lane) {
    const double excess = is_glm(t) ? lane->origin.deviance / 2 + lane->loss - lane->zero_loss : lane->loss;
    double theta = 1, sum = 0, drift;
    const double half = settle(t, lane, &drift);
    for (int64_t j = 0; j < t->n; j++) {
        const double size = fabs(lane->data[j]) + sqrt(drift * lane->spread[j]);
        if (lane->criterion[j] > 0 && size > lane->l1[j]) theta = fmin(theta, lane->l1[j] / size);
    }
    for (int64_t j = 0; j < t->n; j++) {
        const double w = lane->point[j], z = w < 0 ? lane->data[j] : -lane->data[j];
        if (lane->criterion[j] > 0)
            sum += fabs(w) * fmax(lane->l1[j] - theta * (z - sqrt(drift * lane->spread[j])), 0);
    }
    return sum + (1 - theta) * excess + half;
}

bool ki_lane_has_converged(const struct ki_lanes *t, struct ki_lane *lane) {
    if (lane->bad || lane->reference == 0) return true;
    if (lane->norm > t->tolerance * lane->reference) return false;
    if (!(t->penalty > 0) && !(t->l1 > 0) && !is_hinged(t)) return true;
    const double enough = enough_of(t, lane);
    lane->doubted = true;
    if (!is_glm(t) && lane->objective <= enough) return true;
    return t->penalty > 0 ? by_penalty(t, lane) <= enough : t->l1 > 0 && by_scaling(t, lane) <= enough;
}

/* Whether the columns have the curvature that the rows have in all, or a tenth of it, by an H of about here:
 * no row that most of a column belongs to is leaving the loss, which would take its curvature along. */
static bool is_even(const struct ki_lanes *t, const struct ki_lane *lane) {
    bool even = t->wide || (t->fresh && fabs(lane->formed - lane->total) <= CHANGED * lane->total);
    for (int64_t j = 0; j < t->n && even; j++) {
        const double own = t->wide ? t->square[j] : lane->H[j * t->size + j];
        even = lane->criterion[j] == 0 || own >= FAR * lane->total / lane->weight * lane->spread[j];
    }
    return even;
}

bool ki_lane_is_told(const struct ki_lanes *t, const struct ki_lane *lane) {
    if (!lane->doubted || lane->norm > t->tolerance * lane->reference || is_hinged(t)) return false;
    return lane->first >= 0 && lane->first <= enough_of(t, lane) && (lane->right || is_even(t, lane));
}

bool ki_lane_contracts(const struct ki_lanes *t, const struct ki_lane *lane) {
    bool all = lane->t == 1;
    for (int64_t j = 0; j < t->size && all; j++) {
        if (lane->criterion[j] == 0) continue;
        const double before = ki_lane_least(gradient_of(lane, j), lane->point[j], lane->l1[j]),
                     now = ki_lane_least(lane->slope[j] + lane->penalty[j] * lane->next[j], lane->next[j],
                                         lane->l1[j]);
        all = fabs(now) <= 0.25 * fabs(before);
    }
    return all;
}
