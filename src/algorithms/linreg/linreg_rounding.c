/* When rounding ends a run above the tolerance, and whether what it leaves is no more than the data's own
 * rounding.
 *
 * With r = y - X w - b, g = X^T S r - L w (columns centred), and all lengths weighted by S, let g = g1 + g2
 * with
 *
 *   |g1_j| <= eta ||x_j|| ||r||   and   sqrt(g2^T H^-1 g2) <= eta (|b| ||1|| + sum_j |w_j| ||x_j||).
 *
 * Then, but for terms of eta^2, w and b are the exact solution for data whose every column, that of ones and
 * those of L^(1/2) below X included, is another by a relative eta at most. Multiples of r on the columns
 * take g1 away (Stewart, Research, development and LINPACK, 1977). Shares of d = X H^-1 g2, by which the
 * fitted values are off, take g2 away, as d is orthogonal to what is left of r. Where g2 meets the
 * tolerance, w does for such data. So w is as good as data known to eta allow. The large coefficient of a
 * column that is all but constant could excuse any error of the others by eta alone: the residual itself may
 * be the root of epsilon at most. */
#include "algorithms/linreg/linreg_block.h"

static const double ETA = 8; /* in epsilons */

/* g_j without what rounding explains, here |g1_j|. */
static double beyond(const struct ki_block *t, const double *g, const double *square, int64_t j, int c) {
    const double part = ETA * ki_epsilon(kiln_matrix_type(t->system->X));
    return copysign(fmax(fabs(g[j * t->k + c]) - part * sqrt(square[j]) * sqrt(t->rss[c]), 0),
                    g[j * t->k + c]);
}

/* The columns' lengths, squared, and what the coefficients make of the columns. */
static kiln_status rounding_measure(const struct ki_block *t, double *square, double *w, double *size) {
    kiln_status status;
    const struct ki_system *system = t->system;
    const int64_t n = kiln_matrix_cols(system->X);
    TRY(ki_vector_get(square, system->square));
    TRY(ki_vector_get(w, t->W));
    for (int c = 0; c < t->k; c++) {
        size[c] = sqrt(system->weight) * fabs(t->b[c]);
        for (int64_t j = 0; j < n; j++) size[c] += fabs(w[j * t->k + c]) * sqrt(square[j]);
    }
done:
    return status;
}

kiln_status ki_block_blur(const struct ki_block *t, double *blur) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(t->system->X);
    struct ki_arena arena = {0};
    double size[KI_BLOCK], *square = ki_arena_doubles(&arena, n * (1 + t->k));
    TRY(arena.status);
    TRY(rounding_measure(t, square, square + n, size));
    for (int c = 0; c < t->k; c++)
        blur[c] = pow(ETA * ki_epsilon(kiln_matrix_type(t->system->X)) * size[c], 2);
done:
    return ki_arena_free(&arena, status);
}

/* G, less g1, and what the coefficients make of the columns. */
static kiln_status rounding_take_off(struct ki_block *t, double *size) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(t->system->X), k = t->k;
    struct ki_arena arena = {0};
    double *square = ki_arena_doubles(&arena, n * (1 + 2 * k));
    TRY(arena.status);
    double *g = square + n, *w = g + n * k;
    TRY(rounding_measure(t, square, w, size));
    TRY(ki_vector_get(g, t->G));
    for (int c = 0; c < k; c++)
        for (int64_t j = 0; j < n; j++) g[j * k + c] = beyond(t, g, square, j, c);
    TRY(ki_vector_set(t->G, g));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_block_beyond_rounding(struct ki_block *t, double *norm) {
    kiln_status status;
    double size[KI_BLOCK];
    TRY(ki_copy(t->Q, t->G));
    TRY(rounding_take_off(t, size));
    TRY(ki_block_norm(t, norm));
    TRY(ki_copy(t->G, t->Q));
done:
    return status;
}

/* Takes those active targets whose g2 meets the tolerance; false: that is all of them. */
static bool rounding_meet(struct ki_block *t, const double *left) {
    for (int j = 0; j < t->k; j++) {
        t->rounding[j] = t->active[j] && left[j] <= t->system->options.tolerance * t->reference[j];
        t->active[j] = t->active[j] && !t->rounding[j];
    }
    return ki_block_active(t);
}

kiln_status ki_block_judge_rounding(struct ki_block *t) {
    kiln_status status;
    const double epsilon = ki_epsilon(kiln_matrix_type(t->system->X));
    double size[KI_BLOCK], left[KI_BLOCK], objective[KI_BLOCK], state[KI_STATE * KI_BLOCK];
    bool judged[KI_BLOCK];
    for (int j = 0; j < t->k; j++)
        t->active[j] = t->active[j] && t->norm[j] <= sqrt(epsilon) * t->reference[j];
    TRY(rounding_take_off(t, size));
    TRY(ki_block_norm(t, left));
    if (!rounding_meet(t, left)) goto done;
    memcpy(judged, t->active, sizeof judged);
    memcpy(objective, t->objective, sizeof objective);
    t->judging = true;
    TRY(ki_block_cycle(t, false));
    t->judging = false;
    memcpy(t->objective, objective, sizeof objective);
    TRY(ki_vector_get(state, t->S));
    for (int j = 0; j < t->k; j++) {
        const bool solved = state[j] <= state[2 * t->k + j]; /* rows 0 and 2: the cycle came to its goal */
        if (judged[j] && solved) t->rounding[j] = sqrt(2 * t->decrease[j]) <= ETA * epsilon * size[j];
    }
done:
    return status;
}
