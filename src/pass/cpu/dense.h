/* CPU body of the passes over a dense X: blocks of rows that fit into the first-level cache, or a few long
 * ones, are multiplied by y, mapped, and scattered into w.
 *
 * Memory is to be busy all the time and not only while products are formed. So a block is scattered in one
 * walk with the products of the next one, and the reading of X does not pause. The hardware's own prefetching
 * begins anew at each row and each page: asking ahead for what the walk comes to reads faster than a plain
 * loop over X does. */

#include "pass/cpu/rows.h"
#include "pass/cpu/window.h"

enum {
    FN(BATCH) = 4,         /* rows taken together: y and w are loaded once for them */
    FN(PAIR) = 2,          /* sums of a walk */
    FN(SHORT) = 4,         /* vectors in rows that have kernels of their own */
    FN(BLOCK_BYTES) = 2048 /* of X in a block, if that is a batch or more */
};

/* Asks the second-level cache for what lies so many bytes after x. Short rows are one stream, asked for 8 KB
 * ahead: on a server whose memory is busy a line takes twice as long to come as on an idle one, and the
 * hardware's own prefetching, which stops at each page, is begun on the pages after it. Of longer rows a walk
 * asks for those of the next walk, of very long ones for what comes next in the same rows, as there are pages
 * enough to read from. Rows in a window (window.h), which asks for what comes next itself, are there. */
enum { FN(STREAM) = 8192, FN(LONG_ROW) = 16384, FN(NEAR) = 2048 };
ALWAYS_INLINE void FN(ask)(const real *x, int64_t bytes) {
    __builtin_prefetch((const char *)x + bytes, 0, 2);
}

/* Vector j of a row; the last one is masked. */
ALWAYS_INLINE FN(vreal) FN(row_vector)(const real *x, int64_t j, int64_t vectors, FN(vmask) mask) {
    const FN(vreal) v = FN(load)(x + j * LANES);
    return j == vectors - 1 ? FN(masked)(v, mask) : v;
}

/* p[r] = x_r . y for R rows, R being BATCH or 1 and a constant wherever this is inlined; BATCH sums in
 * all. */
ALWAYS_INLINE void FN(dots)(int R, real *p, const real *x, int64_t stride, const real *y, int64_t vectors,
                            FN(vmask) mask) {
    const int U = FN(BATCH) / R;
    FN(vreal) sum[FN(BATCH)] = {{0}};
    int64_t j = 0;
    for (; j + U < vectors; j += U)
        for (int r = 0; r < R; r++)
#pragma GCC unroll 4
            for (int u = 0; u < U; u++)
                sum[r * U + u] += FN(load)(x + r * stride + (j + u) * LANES) * FN(load)(y + (j + u) * LANES);
    for (; j < vectors; j++)
        for (int r = 0; r < R; r++)
            sum[r * U] += FN(row_vector)(x + r * stride, j, vectors, mask) * FN(load)(y + j * LANES);
    if (R == FN(BATCH))
        FN(four_lane_sums)(p, sum);
    else
        p[0] = FN(lane_sum)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* w += sum_r p[r] * x_r, or x_r squared. */
ALWAYS_INLINE void FN(scatters)(int R, bool square, real *w, const real *p, const real *x, int64_t stride,
                                int64_t vectors, FN(vmask) mask) {
    for (int64_t j = 0; j < vectors; j++) {
        FN(vreal) wj = FN(load)(w + j * LANES);
        for (int r = 0; r < R; r++) {
            const FN(vreal) xj = FN(row_vector)(x + r * stride, j, vectors, mask);
            wj += p[r] * (square ? xj * xj : xj);
        }
        FN(store)(w + j * LANES, wj);
    }
}

/* One vector of each row of a walk: w += sum_r p[r] * x_r, and sum += the products of the rows `next` numbers
 * behind x. */
ALWAYS_INLINE void FN(step)(int R, bool last, const struct FN(pass) * pass, FN(vreal) sum[FN(PAIR)], real *w,
                            const real *p, const real *x, const real *y, int64_t asked, FN(vmask) mask) {
    const int64_t n = pass->n, next = pass->block * n;
    const FN(vreal) yj = FN(load)(y);
    FN(vreal) wj = FN(load)(w);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        FN(ask)(x + r * n + next, asked);
        FN(vreal) now = FN(load)(x + r * n), coming = FN(load)(x + r * n + next);
        if (last) now = FN(masked)(now, mask), coming = FN(masked)(coming, mask);
        sum[r] += coming * yj;
        wj += p[r] * now;
    }
    FN(store)(w, wj);
}

/* A walk for R rows, 1 or PAIR, a constant wherever this is inlined: scatters them, and puts the products of
 * the rows a block behind them into ahead. */
ALWAYS_INLINE void FN(walk)(int R, const struct FN(pass) * pass, real *w, const real *p, real *ahead,
                            const real *x, FN(vmask) mask) {
    const int64_t whole = pass->padded - LANES, row = pass->n * (int64_t)sizeof(real);
    const int64_t asked = pass->window         ? 0
                          : row < FN(STREAM)   ? FN(STREAM)
                          : row < FN(LONG_ROW) ? R * row
                                               : FN(NEAR);
    const real *y = pass->y;
    FN(vreal) sum[FN(PAIR)] = {{0}};
    int64_t j = 0;
    for (; R == 1 && j + LANES < whole; j += 2 * LANES)
#pragma GCC unroll 2
        for (int u = 0; u < FN(PAIR); u++) FN(step)
    (1, false, pass, sum + u, w + j + u * LANES, p, x + j + u * LANES, y + j + u * LANES, asked, mask);
    for (; j < whole; j += LANES) FN(step)(R, false, pass, sum, w + j, p, x + j, y + j, asked, mask);
    FN(step)(R, true, pass, sum, w + whole, p, x + whole, y + whole, asked, mask);
    if (R == 1) sum[0] += sum[1];
    for (int r = 0; r < R; r++) ahead[r] = FN(lane_sum)(sum[r]);
}

/* The same for a block of rows of V vectors, a constant wherever this is inlined: y and w stay in
 * registers. */
ALWAYS_INLINE void FN(short_products)(int V, real *q, const real *x, int64_t n, int64_t count, const real *y,
                                      FN(vmask) mask) {
    int64_t r = 0;
    for (; r + FN(BATCH) <= count; r += FN(BATCH)) FN(dots)(FN(BATCH), q + r, x + r * n, n, y, V, mask);
    for (; r < count; r++) FN(dots)(1, q + r, x + r * n, n, y, V, mask);
}

ALWAYS_INLINE void FN(short_scatter)(int V, real *w, const real *q, const real *x, int64_t n, int64_t count,
                                     FN(vmask) mask) {
    FN(vreal) sum[FN(SHORT)];
    for (int j = 0; j < V; j++) sum[j] = FN(load)(w + j * LANES);
    for (int64_t r = 0; r < count; r++) {
        for (int j = 0; j < V - 1; j++) sum[j] += q[r] * FN(load)(x + r * n + j * LANES);
        sum[V - 1] += q[r] * FN(masked)(FN(load)(x + r * n + (V - 1) * LANES), mask);
    }
    for (int j = 0; j < V; j++) FN(store)(w + j * LANES, sum[j]);
}

/* Both for a block: w += q^T x, and the products of the next block into ahead. */
ALWAYS_INLINE void FN(short_walk)(int V, const struct FN(pass) * pass, real *w, const real *q, real *ahead,
                                  const real *x, FN(vmask) mask) {
    const int64_t n = pass->n, next = pass->block * n, asked = pass->window ? 0 : FN(STREAM);
    FN(vreal) wj[FN(SHORT)], yj[FN(SHORT)];
    for (int j = 0; j < V; j++) wj[j] = FN(load)(w + j * LANES);
    for (int j = 0; j < V; j++) yj[j] = FN(load)(pass->y + j * LANES);
    for (int64_t r = 0; r < pass->block; r += FN(BATCH), x += FN(BATCH) * n) {
        FN(vreal) sum[FN(BATCH)] = {{0}};
#pragma GCC unroll 4
        for (int i = 0; i < FN(BATCH); i++)
#pragma GCC unroll 4
            for (int j = 0; j < V; j++) {
                const real *from = x + i * n + j * LANES;
                FN(ask)(from + next, asked);
                FN(vreal) now = FN(load)(from), coming = FN(load)(from + next);
                if (j == V - 1) now = FN(masked)(now, mask), coming = FN(masked)(coming, mask);
                wj[j] += q[r + i] * now;
                sum[i] += coming * yj[j];
            }
        FN(four_lane_sums)(ahead + r, sum);
    }
    for (int j = 0; j < V; j++) FN(store)(w + j * LANES, wj[j]);
}

/* q = x y for `count` rows. */
NEVER_INLINE void FN(dense_products)(const struct FN(pass) * pass, real *q, const real *x, int64_t count,
                                     FN(vmask) mask) {
    const int64_t n = pass->n, vectors = pass->padded / LANES;
    if (pass->several) {
        FN(several_rows)(pass, NULL, NULL, NULL, q, x, count);
        return;
    }
    switch (vectors) {
    case 1: FN(short_products)(1, q, x, n, count, pass->y, mask); return;
    case 2: FN(short_products)(2, q, x, n, count, pass->y, mask); return;
    case 3: FN(short_products)(3, q, x, n, count, pass->y, mask); return;
    case 4: FN(short_products)(4, q, x, n, count, pass->y, mask); return;
    }
    int64_t r = 0;
    for (; FN(side_by_side)(n) && r + FN(BATCH) <= count; r += FN(BATCH))
        FN(dots)(FN(BATCH), q + r, x + r * n, n, pass->y, vectors, mask);
    for (; r < count; r++) FN(dots)(1, q + r, x + r * n, n, pass->y, vectors, mask);
}

/* w += q^T x for `count` rows. */
NEVER_INLINE void FN(dense_scatter)(const struct FN(pass) * pass, real *w, const real *q, const real *x,
                                    int64_t count, FN(vmask) mask) {
    const int64_t n = pass->n, vectors = pass->padded / LANES;
    if (pass->several) {
        FN(several_rows)(pass, w, q, x, NULL, NULL, count);
        return;
    }
    if (pass->chain->kind == KI_CHAIN_SQUARES) {
        for (int64_t r = 0; r < count; r++) FN(scatters)(1, true, w, q + r, x + r * n, n, vectors, mask);
        return;
    }
    switch (vectors) {
    case 1: FN(short_scatter)(1, w, q, x, n, count, mask); return;
    case 2: FN(short_scatter)(2, w, q, x, n, count, mask); return;
    case 3: FN(short_scatter)(3, w, q, x, n, count, mask); return;
    case 4: FN(short_scatter)(4, w, q, x, n, count, mask); return;
    }
    int64_t r = 0;
    for (; FN(side_by_side)(n) && r + FN(BATCH) <= count; r += FN(BATCH))
        FN(scatters)(FN(BATCH), false, w, q + r, x + r * n, n, vectors, mask);
    for (; r < count; r++) FN(scatters)(1, false, w, q + r, x + r * n, n, vectors, mask);
}

/* w += q^T x for a block, and the products of the next one into ahead. */
NEVER_INLINE void FN(dense_walk)(const struct FN(pass) * pass, real *w, const real *q, real *ahead,
                                 const real *x, FN(vmask) mask) {
    const int64_t n = pass->n;
    if (pass->several) {
        FN(several_rows)(pass, w, q, x, ahead, x + pass->block * n, pass->block);
        return;
    }
    switch (pass->padded / LANES) {
    case 1: FN(short_walk)(1, pass, w, q, ahead, x, mask); return;
    case 2: FN(short_walk)(2, pass, w, q, ahead, x, mask); return;
    case 3: FN(short_walk)(3, pass, w, q, ahead, x, mask); return;
    case 4: FN(short_walk)(4, pass, w, q, ahead, x, mask); return;
    }
    if (FN(side_by_side)(n))
        for (int64_t r = 0; r < pass->block; r += FN(PAIR))
            FN(walk)(FN(PAIR), pass, w, q + r, ahead + r, x + r * n, mask);
    else
        for (int64_t r = 0; r < pass->block; r++) FN(walk)(1, pass, w, q + r, ahead + r, x + r * n, mask);
}

/* As many whole blocks from `first` on as there are before `end`, each with the products of the next. Returns
 * the first row that is left. */
static int64_t FN(walk_range)(const struct FN(pass) * pass, struct FN(tally) * tally,
                              struct FN(window) * window, real *w, int64_t first, int64_t end,
                              FN(vmask) mask) {
    const struct ki_chain *chain = pass->chain;
    const int64_t block = pass->block;
    real *q = tally->products, *ahead = q + pass->products;
    if (first + block > end) return first;
    FN(dense_products)(pass, q, FN(rows_at)(window, first, block), block, mask);
    FN(map_block)(chain, tally, q, first, block);
    int64_t row = first;
    for (; row + 2 * block <= end; row += block) {
        FN(dense_walk)(pass, w, q, ahead, FN(rows_at)(window, row, 2 * block), mask);
        FN(map_block)(chain, tally, ahead, row + block, block);
        real *done = q;
        q = ahead;
        ahead = done;
    }
    FN(dense_scatter)(pass, w, q, FN(rows_at)(window, row, block), block, mask);
    return row + block;
}

/* `count` rows from `row`, lying at x. */
static void FN(dense_block)(const struct FN(pass) * pass, struct FN(tally) * tally, real *w, int64_t row,
                            int64_t count, const real *x, FN(vmask) mask) {
    const struct ki_chain *chain = pass->chain;
    real *q = tally->products;
    if (FN(multiplies)(chain)) FN(dense_products)(pass, q, x, count, mask);
    if (!FN(turn_block)(chain, tally, q, row, count)) return;
    FN(dense_scatter)(pass, w, q, x, count, mask);
}

/* Rows [first, end). A row's last vector reaches into the rows behind it and is masked; the matrix's last
 * rows, which have nothing behind them to read, go through a padded copy. */
static void FN(dense_range)(const struct FN(pass) * pass, struct FN(tally) * tally,
                            struct FN(window) * window, real *tail, real *w, int64_t first, int64_t end) {
    const int64_t n = pass->n, rows = pass->chain->X->rows;
    FN(vmask) mask = FN(first_lanes)(n - (pass->padded - LANES));
    const int64_t direct = n > 0 ? ki_min(end, rows - ki_ceil_div(pass->padded, n) + 1) : 0;
    int64_t row = first;
    if (pass->chain->kind == KI_CHAIN_FUSED && !pass->tiled)
        row = FN(walk_range)(pass, tally, window, w, first, direct, mask);
    for (int64_t count; row < direct; row += count) {
        count = ki_min(pass->block, direct - row);
        FN(dense_block)(pass, tally, w, row, count, FN(rows_at)(window, row, count), mask);
    }
    if (row < end) memset(tail, 0, (size_t)pass->padded * sizeof(real));
    for (int64_t count; row < end; row += count) {
        count = n == 0 ? ki_min(pass->block, end - row) : 1; /* rows without columns are all alike */
        if (n > 0) memcpy(tail, FN(rows_at)(window, row, 1), (size_t)n * sizeof(real));
        FN(dense_block)(pass, tally, w, row, count, tail, mask);
    }
}

/* Rows taken together: whole batches make up blocks, and blocks parts. */
static int64_t FN(dense_batch)(const struct ki_chain *chain) {
    if (chain->k > 1) return FN(GROUP);
    return chain->kind != KI_CHAIN_FUSED || chain->X->cols <= FN(SHORT) * LANES ? FN(BATCH) : FN(PAIR);
}
