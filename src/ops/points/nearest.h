/* The innermost loops of kiln_assign's CPU body (assign.cpu.h): a tile of rows against a panel of centres, and how far rounding
 * may be off. */

enum {
    FN(ASSIGN_ACROSS) = 2,                        /* vectors of rows */
    FN(ASSIGN_TILE) = FN(ASSIGN_ACROSS) * LANES,  /* rows */
    FN(ASSIGN_PANEL) = SIMD_BYTES == 64 ? 12 : 6, /* centres: their sums with a tile fill the registers */
    FN(ASSIGN_DEEP) = 128                         /* columns: their sums are added to the sums so far */
};

/* What is known of a row: lane by lane, and then in all. */
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
    if (real_bytes == 4) {
        to->second = FN(least)(to->second, FN(largest)(to->best, score));
    }
    to->best = FN(least)(to->best, score);
    to->index = (less & index) | (~less & to->index);
}

static struct FN(nearest) FN(nearest_of_lanes)(const struct FN(nearest_lanes) * lanes) {
    real best[LANES], second[LANES];
    real_bits index[LANES];
    memcpy(best, &lanes->best, sizeof best);
    memcpy(second, &lanes->second, sizeof second);
    memcpy(index, &lanes->index, sizeof index);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) {
            const real a = best[i], b = best[i + half];
            const bool other = b < a || (b == a && index[i + half] < index[i]);
            const real larger = other ? a : b;
            const real least = second[i + half] < second[i] ? second[i + half] : second[i];
            second[i] = larger < least ? larger : least;
            best[i] = other ? b : a;
            index[i] = other ? index[i + half] : index[i];
        }
    return (struct FN(nearest)){(double)best[0], (double)second[0], index[0]};
}

ALWAYS_INLINE struct FN(nearest_lanes) FN(nearest_none)(void) {
    return (struct FN(nearest_lanes)){FN(all)((real)INFINITY), FN(all)((real)INFINITY), {0}};
}

/* ------------------------------------------------------------------------------------------ scores */

/* first, first + 1, ... */
ALWAYS_INLINE FN(vmask) FN(assign_numbers)(int64_t first) {
    real_bits number[LANES];
    FN(vmask) all;
    for (int i = 0; i < LANES; i++) number[i] = (real_bits)(first + i);
    memcpy(&all, number, sizeof all);
    return all;
}

/* sums = a tile of rows, column by column, times a panel of centres, over n columns; or added to them. */
ALWAYS_INLINE void FN(assign_products)(FN(vreal) (*sums)[FN(ASSIGN_ACROSS)], const real *rows,
                                       const real *panel, int64_t n, const bool add) {
    enum { V = FN(ASSIGN_ACROSS), P = FN(ASSIGN_PANEL) };
    FN(vreal) sum[P][V];
#pragma GCC unroll 12
    for (int c = 0; c < P; c++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) sum[c][v] = (FN(vreal)){0};
    for (int64_t j = 0; j < n; j++, rows += FN(ASSIGN_TILE), panel += P) {
        FN(vreal) x[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) x[v] = FN(load)(rows + v * LANES);
#pragma GCC unroll 12
        for (int c = 0; c < P; c++)
#pragma GCC unroll 4
            for (int v = 0; v < V; v++) sum[c][v] += panel[c] * x[v];
    }
#pragma GCC unroll 12
    for (int c = 0; c < P; c++)
#pragma GCC unroll 4
        for (int v = 0; v < V; v++) sums[c][v] = add ? sums[c][v] + sum[c][v] : sum[c][v];
}

/* What a tile of rows has for nearest, when the panel of centres from number `first` on has been seen, too. */
NEVER_INLINE void FN(assign_tile)(struct FN(nearest_lanes) * lanes, const real *rows, const real *panel,
                                  const real *half, int64_t n, int64_t first) {
    enum { DEEP = FN(ASSIGN_DEEP) };
    FN(vreal) sums[FN(ASSIGN_PANEL)][FN(ASSIGN_ACROSS)];
    FN(assign_products)(sums, rows, panel, ki_min(n, DEEP), false);
    for (int64_t j = DEEP; j < n; j += DEEP) FN(assign_products)
    (sums, rows + j * FN(ASSIGN_TILE), panel + j * FN(ASSIGN_PANEL), ki_min(n - j, DEEP), true);
#pragma GCC unroll 4
    for (int v = 0; v < FN(ASSIGN_ACROSS); v++) {
        struct FN(nearest_lanes) so_far = lanes[v];
#pragma GCC unroll 12
        for (int c = 0; c < FN(ASSIGN_PANEL); c++)
            FN(nearest_step)(&so_far, half[c] - sums[c][v], (real_bits)(first + c) - (FN(vmask)){0});
        lanes[v] = so_far;
    }
}

/* The additions that a term of a product of n columns goes through. */
static int64_t FN(assign_terms)(int64_t n) {
    return n <= FN(ASSIGN_DEEP) ? n : FN(ASSIGN_DEEP) + n / FN(ASSIGN_DEEP) + 1;
}

/* ||x - y||^2. */
static real FN(assign_distance)(const real *x, const real *y, int64_t n) {
    FN(vreal) sum[4] = {{0}};
    real few = 0;
    int64_t j = 0;
    for (; n < LANES && j < n; j++) few += (x[j] - y[j]) * (x[j] - y[j]);
    if (n < LANES) return few;
    for (; n - j >= 4 * LANES; j += 4 * LANES)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const FN(vreal) apart = FN(load)(x + j + i * LANES) - FN(load)(y + j + i * LANES);
            sum[i] += apart * apart;
        }
    for (; j < n; j += LANES) {
        const FN(vreal) apart = FN(load_some)(x + j, n - j) - FN(load_some)(y + j, n - j);
        sum[0] += apart * apart;
    }
    return FN(lane_sum)((sum[0] + sum[1]) + (sum[2] + sum[3]));
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

/* What tells apart scores that are rounded, from the row's squared norm and the entries that a score adds up. */
static double FN(assign_margin)(double square, double best, double entries) {
    const double unit = 0x1p-24, norm = sqrt(square), reach = norm + sqrt(fmax(square + 2 * best, 0));
    return 3 * unit * ((entries + 3) * norm * reach + reach * reach);
}
