/* The nearest centre of a row, as the CPU bodies with and without bounds find it (bounds.cpu.h,
 * assign.cpu.h): the least of scores so far, distances, and how far rounding may be off. */

#include "ops/points/distance.h"

enum {
    FN(ASSIGN_DEEP) = 128, /* columns: their sums are added to the sums so far */
    FN(FEW_COLUMNS) =
        8 /* at most: rows stay in registers, and products come off half a centre's squared norm */
};

/* Returns what is known of a row: lane by lane, and then in all. */
struct FN(nearest_lanes) {
    FN(vreal) best, second;
    FN(vmask) index;
};

struct FN(nearest) {
    double best, second;
    int64_t index;
};

ALWAYS_INLINE void FN(nearest_step)(struct FN(nearest_lanes) * to, FN(vreal) score, FN(vmask) index) {
    const FN(vmask) less = score < to->best;
    to->second = FN(least)(to->second, FN(largest)(to->best, score));
    to->best = FN(least)(to->best, score);
    to->index = (less & index) | (~less & to->index);
}

/* Halves of the lanes against each other, then quarters, ...; of scores that are equal the least number. */
ALWAYS_INLINE struct FN(nearest) FN(nearest_of_lanes)(const struct FN(nearest_lanes) * lanes) {
    struct FN(nearest_lanes) all = *lanes;
#pragma GCC unroll 4
    for (int half = LANES / 2; half > 0; half /= 2) {
        FN(vmask) partner = {0};
        for (int l = 0; l < LANES; l++) partner[l] = l ^ half;
        const FN(vreal) best = FN(permuted)(all.best, partner), second = FN(permuted)(all.second, partner);
        const FN(vmask) index = (FN(vmask))FN(permuted)((FN(vreal))all.index, partner);
        const FN(vmask) other = (best < all.best) | ((best == all.best) & (index < all.index));
        all.second = FN(least)(FN(least)(all.second, second), FN(largest)(all.best, best));
        all.best = FN(least)(all.best, best);
        all.index = (other & index) | (~other & all.index);
    }
    return (struct FN(nearest)){(double)all.best[0], (double)all.second[0], all.index[0]};
}

ALWAYS_INLINE struct FN(nearest_lanes) FN(nearest_none)(void) {
    return (struct FN(nearest_lanes)){FN(all)((real)INFINITY), FN(all)((real)INFINITY), {0}};
}

/* The additions that a term of a product of n columns goes through. */
static int64_t FN(assign_terms)(int64_t n) {
    return n <= FN(ASSIGN_DEEP) ? n : FN(ASSIGN_DEEP) + n / FN(ASSIGN_DEEP) + 1;
}

/* Returns how often ||c||^2 counts among a score's roundings: h is a sum in double, which f64 does not round
 * once but n times; of few columns it is rounded again with each product. */
static double FN(assign_halves)(int64_t n) {
    return (n <= FN(FEW_COLUMNS) ? (double)(n + 1) / 2 : 1) + (real_bytes == 8 ? (double)n : 0);
}

/* x.y, over no more additions than assign_tile takes. */
static real FN(assign_product)(const real *x, const real *y, int64_t n) {
    FN(vreal) all = {0};
    int64_t j = 0;
    while (n - j >= 4 * LANES) {
        const int64_t end = j + ki_min(n - j, 4 * FN(ASSIGN_DEEP)) / (4 * LANES) * (4 * LANES);
        FN(vreal) sum[4] = {{0}};
        for (; j < end; j += 4 * LANES)
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) sum[i] += FN(load)(x + j + i * LANES) * FN(load)(y + j + i * LANES);
        all += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    real few = 0;
    for (; n < LANES && j < n; j++) few += x[j] * y[j];
    if (n < LANES) return few;
    for (; j < n; j += LANES) all += FN(load_some)(x + j, n - j) * FN(load_some)(y + j, n - j);
    return FN(lane_sum)(all);
}

/* ||x - y||^2 in double, whatever the type. */
static double FN(assign_distance_wide)(const real *x, const real *y, int64_t n) {
    enum { W = 8 };
    double sum[W] = {0};
    int64_t j = 0;
    for (; n - j >= W; j += W)
        for (int i = 0; i < W; i++) {
            const double apart = (double)x[j + i] - (double)y[j + i];
            sum[i] += apart * apart;
        }
    for (int i = 0; j < n; i++, j++) {
        const double apart = (double)x[j] - (double)y[j];
        sum[i] += apart * apart;
    }
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* Half a unit in the last place of 1; squares from here on are too near the largest number. */
#undef UNIT
#undef HUGE_SQUARE
#define UNIT (real_bytes == 4 ? 0x1p-24 : 0x1p-53)
#define HUGE_SQUARE (real_bytes == 4 ? 0x1p125 : 0x1p1020)

/* Returns what tells apart scores that are rounded, from the row's squared norm and the entries that a score
 * adds up. */
static double FN(assign_margin)(double square, double best, double entries, double halves) {
    const double norm = sqrt(square), reach = norm + sqrt(fmax(square + 2 * best, 0));
    return 3 * UNIT * ((entries + 3) * norm * reach + halves * reach * reach);
}

/* The centres that rows are compared with. */
struct FN(nearest_centres) {
    const real *centres; /* k x n */
    int64_t k, n;
    real *half; /* half the squared norms, infinity behind the last */
    bool huge;  /* there are squares that the type hardly holds */
};

/* Returns whether rounding leaves in doubt which centre is nearest. */
static bool FN(assign_doubtful)(const struct FN(nearest_centres) * to, const struct FN(nearest) * found,
                                double square, double entries) {
    if (to->k == 1) return false;
    return !(found->second - found->best >
             FN(assign_margin)(square, found->best, entries, FN(assign_halves)(to->n))) ||
           !(square < HUGE_SQUARE) || to->huge;
}

/* No centre with a larger score is the nearest. */
static double FN(assign_limit)(const struct FN(nearest_centres) * to, double best, double square,
                               double entries) {
    const double margin = FN(assign_margin)(square, best, entries, FN(assign_halves)(to->n));
    return to->huge || !(square < HUGE_SQUARE) ? (double)INFINITY : best + margin;
}

/* The nearest centre of a dense row, by distances in double; of f32 those whose score is at most `limit`
 * do. */
static int64_t FN(assign_dense_again)(const struct FN(nearest_centres) * to, const real *x, double limit) {
    const int64_t n = to->n;
    const real *centre = to->centres;
    double least = INFINITY;
    int64_t found = 0;
    for (int64_t c = 0; c < to->k; c++, centre += n) {
        if (real_bytes == 4 && (double)(to->half[c] - FN(assign_product)(x, centre, n)) > limit) continue;
        const double distance = FN(assign_distance_wide)(x, centre, n);
        if (distance < least) least = distance, found = c;
    }
    return found;
}
