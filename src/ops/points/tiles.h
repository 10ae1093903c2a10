/* The innermost loops of kiln_assign's CPU body (assign.cpu.h): rows are turned, and a tile of them meets a
 * panel of centres, or, where rows are short, all centres. */

#include "ops/points/nearest.h"

enum {
    FN(ASSIGN_ACROSS) = 2,                        /* vectors of rows */
    FN(ASSIGN_TILE) = FN(ASSIGN_ACROSS) * LANES,  /* rows */
    FN(ASSIGN_PANEL) = SIMD_BYTES == 64 ? 12 : 6, /* centres: their sums with a tile fill the registers */
    FN(FEW_PANEL) = 4                             /* the same of few columns */
};

/* Rows of `count` numbers, a power of two and no more than lanes, that fill `count` vectors, turned: in each
 * round vectors side by side part into their even and their odd lanes, which turns the digits of an element's
 * place by one. */
ALWAYS_INLINE void FN(assign_turn_square)(FN(vreal) * square, const int count) {
#pragma GCC unroll 4
    for (int round = 1; round < count; round *= 2) {
        FN(vreal) from[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < count; i++) from[i] = square[i];
#pragma GCC unroll 8
        for (int i = 0; i < count / 2; i++) {
            square[i] = SHUFFLE(from[2 * i], from[2 * i + 1], EVEN);
            square[i + count / 2] = SHUFFLE(from[2 * i], from[2 * i + 1], ODD);
        }
    }
}

/* The rows from `first` on, column by column, in squares; the last square of a row begins before the one
 * before it ends, and what a tile has more than there are rows repeats the last row. */
static void FN(assign_turn)(real *to, const real *x, int64_t first, int64_t count, int64_t n) {
    enum { T = FN(ASSIGN_TILE) };
    for (int64_t r = 0; n < LANES && r < T; r++)
        for (int64_t j = 0; j < n; j++) to[j * T + r] = x[(first + ki_min(r, count - 1)) * n + j];
    for (int64_t next = 0; n >= LANES && next < n; next += LANES) {
        const int64_t begin = ki_min(next, n - LANES);
        for (int64_t top = 0; top < T; top += LANES) {
            FN(vreal) square[LANES];
#pragma GCC unroll 16
            for (int r = 0; r < LANES; r++)
                square[r] = FN(load)(x + (first + ki_min(top + r, count - 1)) * n + begin);
            FN(assign_turn_square)(square, LANES);
#pragma GCC unroll 16
            for (int j = 0; j < LANES; j++) FN(store)(to + (begin + j) * T + top, square[j]);
        }
    }
}

/* The same of few columns, a constant: rows that are as long as a part of a vector lie in whole vectors. */
ALWAYS_INLINE void FN(assign_turn_few)(real *to, const real *x, int64_t first, int64_t count, const int n) {
    enum { T = FN(ASSIGN_TILE) };
    if (count < T || n > LANES || (n & (n - 1))) {
        FN(assign_turn)(to, x, first, count, n);
        return;
    }
    for (int64_t top = 0; top < T; top += LANES) {
        FN(vreal) square[LANES];
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) square[i] = FN(load)(x + (first + top) * n + i * LANES);
        FN(assign_turn_square)(square, n);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) FN(store)(to + j * T + top, square[j]);
    }
}

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

/* Finds what a tile of rows has for nearest, when the panel of centres from number `first` on has been seen,
 * too. */
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
        (&so_far, half[c] - sums[c][v], (real_bits)(first + c) - (FN(vmask)){0});
        lanes[v] = so_far;
    }
}

/* Finds what a tile of rows of n columns, a constant, has for nearest of all centres, which come in panels of
 * FEW_PANEL. Rows and what is known of them stay in registers, and products come off the scores at once;
 * those of a panel take turns, as each waits for the one before it. */
ALWAYS_INLINE void FN(few_tile)(struct FN(nearest_lanes) * lanes, const real *rows, const real *panels,
                                const real *half, int64_t padded, const int n) {
    enum { V = SIMD_BYTES == 64 ? FN(ASSIGN_ACROSS) : 1, P = FN(FEW_PANEL) };
    for (int from = 0; from < FN(ASSIGN_ACROSS); from += V) {
        FN(vreal) x[FN(FEW_COLUMNS)][V];
        struct FN(nearest_lanes) so_far[V];
        FN(vmask) number = {0};
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) {
            so_far[v] = FN(nearest_none)();
#pragma GCC unroll 8
            for (int j = 0; j < n; j++) x[j][v] = FN(load)(rows + j * FN(ASSIGN_TILE) + (from + v) * LANES);
        }
        const real *panel = panels;
        for (int64_t c = 0; c < padded; c += P, panel += P * n) {
            FN(vreal) score[P][V];
#pragma GCC unroll 8
            for (int j = 0; j < n; j++)
#pragma GCC unroll 4
                for (int i = 0; i < P; i++)
#pragma GCC unroll 2
                    for (int v = 0; v < V; v++)
                        score[i][v] =
                            (j ? score[i][v] : half[c + i] - (FN(vreal)){0}) - panel[j * P + i] * x[j][v];
#pragma GCC unroll 4
            for (int i = 0; i < P; i++, number += 1)
#pragma GCC unroll 2
                for (int v = 0; v < V; v++) FN(nearest_step)(&so_far[v], score[i][v], number);
        }
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) lanes[from + v] = so_far[v];
    }
}
