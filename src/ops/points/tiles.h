/* The innermost loops of kiln_assign's CPU body (assign.cpu.h): a tile of rows against a panel of centres. */

#include "ops/points/nearest.h"

enum {
    FN(ASSIGN_ACROSS) = 2,                       /* vectors of rows */
    FN(ASSIGN_TILE) = FN(ASSIGN_ACROSS) * LANES, /* rows */
    FN(ASSIGN_PANEL) = SIMD_BYTES == 64 ? 12 : 6 /* centres: their sums with a tile fill the registers */
};

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
        for (int c = 0; c < FN(ASSIGN_PANEL); c++) FN(nearest_step)
        (&so_far, half[c] - sums[c][v], (real_bits)(first + c) - (FN(vmask)){0}, real_bytes == 4);
        lanes[v] = so_far;
    }
}
