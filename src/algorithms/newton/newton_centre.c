/* Anderson's acceleration (J. ACM 12, 1965; Walker and Ni, SIAM J. Numer. Anal. 49, 2011) of c <- b(c). With
 * f = b(c) - c, and what the last moves changed c and f by,
 *
 *   c += f - sum_j g_j (dc_j + df_j),   g the least squares of f - sum_j g_j df_j
 *
 * which for one number is the secant's step. The df_j are made orthogonal, the newest first, and one that
 * depends on newer ones counts no more. */
#include "algorithms/newton/newton_centre.h"

enum { DEPTH = 8 };
/* FARTHEST: a move, in times of f. DEPENDENT: of a df_j, what must be left of it. */
static const double FARTHEST = 50, DEPENDENT = 1e-3;

static double centre_product(const double *a, const double *b, int64_t k) {
    double sum = 0;
    for (int64_t c = 0; c < k; c++) sum += a[c] * b[c];
    return sum;
}

/* a += factor * b */
static void centre_add(double *a, double factor, const double *b, int64_t k) {
    for (int64_t c = 0; c < k; c++) a[c] += factor * b[c];
}

int64_t ki_centre_size(int64_t k) {
    return (5 + 4 * DEPTH) * k;
}

void ki_centre_open(struct ki_centre *centre, struct ki_arena *arena, int64_t k) {
    *centre = (struct ki_centre){.k = k, .now = ki_arena_reals(arena, ki_centre_size(k))};
    if (!centre->now) return;
    centre->former = centre->now + k;
    centre->left = centre->former + k;
    centre->step = centre->left + k;
    centre->change = centre->step + DEPTH * k;
    centre->across = centre->change + DEPTH * k;
    centre->along = centre->across + DEPTH * k;
    centre->move = centre->along + DEPTH * k;
    centre->lag = centre->move + k;
}

void ki_centre_begin(struct ki_centre *centre) {
    memset(centre->now, 0, (size_t)centre->k * sizeof *centre->now);
    centre->moves = 0;
}

/* The last move's dc and df, f the present one. */
static void centre_remember(struct ki_centre *centre, const double *f) {
    const int64_t k = centre->k, slot = (centre->moves - 1) % DEPTH;
    for (int64_t c = 0; c < k; c++) {
        centre->step[slot * k + c] = centre->now[c] - centre->former[c];
        centre->change[slot * k + c] = f[c] - centre->left[c];
    }
}

/* move = f - sum_j g_j (dc_j + df_j). */
static void centre_mix(struct ki_centre *centre, double *move, const double *f) {
    const int64_t k = centre->k, count = ki_min(ki_min(centre->moves, DEPTH), k);
    int64_t kept = 0;
    memcpy(move, f, (size_t)k * sizeof *move);
    for (int64_t j = 0; j < count; j++) {
        const int64_t slot = (centre->moves - 1 - j) % DEPTH;
        double *across = centre->across + kept * k, *along = centre->along + kept * k;
        memcpy(across, centre->change + slot * k, (size_t)k * sizeof *across);
        memcpy(along, centre->step + slot * k, (size_t)k * sizeof *along);
        const double whole = sqrt(centre_product(across, across, k));
        for (int64_t i = 0; i < kept; i++) {
            const double part = centre_product(across, centre->across + i * k, k);
            centre_add(across, -part, centre->across + i * k, k);
            centre_add(along, -part, centre->along + i * k, k);
        }
        const double left = sqrt(centre_product(across, across, k));
        if (!(left > DEPENDENT * whole)) continue;
        for (int64_t c = 0; c < k; c++) across[c] /= left, along[c] /= left;
        const double g = centre_product(f, across, k); /* the directions are orthogonal */
        centre_add(move, -g, across, k);
        centre_add(move, -g, along, k);
        kept++;
    }
}

void ki_centre_move(struct ki_centre *centre, double *b) {
    const int64_t k = centre->k;
    double *f = centre->lag, *move = centre->move;
    for (int64_t c = 0; c < k; c++) f[c] = b[c] - centre->now[c];
    if (centre->moves > 0) centre_remember(centre, f);
    memcpy(centre->left, f, (size_t)k * sizeof *f);
    memcpy(centre->former, centre->now, (size_t)k * sizeof *f);
    centre_mix(centre, move, f);
    const double size = sqrt(centre_product(f, f, k)), length = sqrt(centre_product(move, move, k));
    const bool onward = centre_product(move, f, k) > 0;
    const double factor = onward ? fmin(1, FARTHEST * size / length) : 1;
    for (int64_t c = 0; c < k; c++) {
        const double step = onward ? factor * move[c] : f[c];
        centre->now[c] += step;
        b[c] += step;
    }
    centre->moves = onward ? centre->moves + 1 : 1;
}
