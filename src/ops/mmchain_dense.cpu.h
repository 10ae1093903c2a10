/* CPU body of the passes over a dense X: blocks of rows that fit into the first-level cache, or batches of long ones, are
 * multiplied by y, mapped, and scattered into w.
 *
 * Memory is to be busy all the time and not only while products are formed. Rows of a few vectors ask for the next block
 * before the scatter. Longer ones are scattered in one walk with the products of the next block, so that the reading of X
 * does not pause and the hardware's own prefetching, which is faster than what instructions can ask for, goes on. Of rows so
 * long that a batch leaves no room for the next in the first-level cache, walking over both at once was slower. */

enum {
    FN(BATCH) = 4,          /* rows taken together: y and w are loaded once for them */
    FN(SHORT) = 4,          /* vectors in rows that have kernels of their own */
    FN(BLOCK_BYTES) = 2048, /* of X in a block, if that is a batch or more */
    FN(WALK_BYTES) = 6144   /* of the longest rows that are walked over together with the next ones */
};

/* Vector j of a row; the last one is masked. */
ALWAYS_INLINE FN(vreal) FN(row_vector)(const real *x, int64_t j, int64_t vectors, FN(vmask) mask) {
    const FN(vreal) v = FN(load)(x + j * LANES);
    return j == vectors - 1 ? FN(masked)(v, mask) : v;
}

/* p[r] = x_r . y for R rows, R being BATCH or 1 and a constant wherever this is inlined. */
ALWAYS_INLINE void FN(dots)(int R, real *p, const real *x, int64_t stride, const real *y, int64_t vectors,
                            FN(vmask) mask) {
    FN(vreal) sum[FN(BATCH)] = {{0}};
    for (int64_t j = 0; j < vectors - 1; j++) {
        FN(vreal) yj = FN(load)(y + j * LANES);
        for (int r = 0; r < R; r++) sum[r] += FN(load)(x + r * stride + j * LANES) * yj;
    }
    FN(vreal) yj = FN(load)(y + (vectors - 1) * LANES);
    for (int r = 0; r < R; r++)
        sum[r] += FN(masked)(FN(load)(x + r * stride + (vectors - 1) * LANES), mask) * yj;
    if (R == FN(BATCH))
        FN(four_lane_sums)(p, sum);
    else
        p[0] = FN(lane_sum)(sum[0]);
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

/* Both in one walk for a batch: w += sum_r p[r] * x_r, and the products of the batch `next` numbers behind x into ahead. */
ALWAYS_INLINE void FN(walk)(const struct FN(pass) * pass, real *w, const real *p, real *ahead, const real *x,
                            const real *y, FN(vmask) mask) {
    const int64_t vectors = pass->padded / LANES, n = pass->n, next = pass->block * n;
    FN(vreal) sum[FN(BATCH)] = {{0}};
    for (int64_t j = 0; j < vectors - 1; j++) {
        const FN(vreal) yj = FN(load)(y + j * LANES);
        FN(vreal) wj = FN(load)(w + j * LANES);
        for (int r = 0; r < FN(BATCH); r++) {
            sum[r] += FN(load)(x + next + r * n + j * LANES) * yj;
            wj += p[r] * FN(load)(x + r * n + j * LANES);
        }
        FN(store)(w + j * LANES, wj);
    }
    const int64_t j = vectors - 1;
    FN(vreal) wj = FN(load)(w + j * LANES);
    for (int r = 0; r < FN(BATCH); r++) {
        sum[r] += FN(row_vector)(x + next + r * n, j, vectors, mask) * FN(load)(y + j * LANES);
        wj += p[r] * FN(row_vector)(x + r * n, j, vectors, mask);
    }
    FN(store)(w + j * LANES, wj);
    FN(four_lane_sums)(ahead, sum);
}

/* The same for a block of rows of V vectors, a constant wherever this is inlined: y and w stay in registers. */
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

/* The same for R longer rows and k columns of y; q lies row by row. */
ALWAYS_INLINE void FN(long_products)(int R, const struct FN(pass) * pass, real *q, const real *x,
                                     FN(vmask) mask) {
    const int64_t k = pass->k;
    real p[FN(BATCH)];
    for (int64_t c = 0; c < k; c++) {
        FN(dots)(R, p, x, pass->n, pass->y + c * pass->padded, pass->padded / LANES, mask);
        for (int i = 0; i < R; i++) q[i * k + c] = p[i];
    }
}

ALWAYS_INLINE void FN(long_scatter)(int R, bool square, const struct FN(pass) * pass, real *w, const real *q,
                                    const real *x, FN(vmask) mask) {
    const int64_t k = pass->k;
    real p[FN(BATCH)];
    for (int64_t c = 0; c < k; c++) {
        for (int i = 0; i < R; i++) p[i] = q[i * k + c];
        FN(scatters)(R, square, w + c * pass->padded, p, x, pass->n, pass->padded / LANES, mask);
    }
}

/* q = x y for `count` rows. */
NEVER_INLINE void FN(dense_products)(const struct FN(pass) * pass, real *q, const real *x, int64_t count,
                                     FN(vmask) mask) {
    const int64_t k = pass->k, n = pass->n;
    switch (k == 1 ? pass->padded / LANES : 0) {
    case 1: FN(short_products)(1, q, x, n, count, pass->y, mask); return;
    case 2: FN(short_products)(2, q, x, n, count, pass->y, mask); return;
    case 3: FN(short_products)(3, q, x, n, count, pass->y, mask); return;
    case 4: FN(short_products)(4, q, x, n, count, pass->y, mask); return;
    }
    int64_t r = 0;
    for (; r + FN(BATCH) <= count; r += FN(BATCH))
        FN(long_products)(FN(BATCH), pass, q + r * k, x + r * n, mask);
    for (; r < count; r++) FN(long_products)(1, pass, q + r * k, x + r * n, mask);
}

/* w += q^T x for `count` rows. */
NEVER_INLINE void FN(dense_scatter)(const struct FN(pass) * pass, real *w, const real *q, const real *x,
                                    int64_t count, FN(vmask) mask) {
    const int64_t k = pass->k, n = pass->n;
    if (pass->chain->kind == KI_CHAIN_SQUARES) {
        for (int64_t r = 0; r < count; r++) FN(long_scatter)(1, true, pass, w, q + r * k, x + r * n, mask);
        return;
    }
    switch (k == 1 ? pass->padded / LANES : 0) {
    case 1: FN(short_scatter)(1, w, q, x, n, count, mask); return;
    case 2: FN(short_scatter)(2, w, q, x, n, count, mask); return;
    case 3: FN(short_scatter)(3, w, q, x, n, count, mask); return;
    case 4: FN(short_scatter)(4, w, q, x, n, count, mask); return;
    }
    int64_t r = 0;
    for (; r + FN(BATCH) <= count; r += FN(BATCH))
        FN(long_scatter)(FN(BATCH), false, pass, w, q + r * k, x + r * n, mask);
    for (; r < count; r++) FN(long_scatter)(1, false, pass, w, q + r * k, x + r * n, mask);
}

/* w += q^T x for a block, and the next block's products. */
NEVER_INLINE void FN(dense_walk)(const struct FN(pass) * pass, real *w, const real *q, real *ahead,
                                 const real *x, FN(vmask) mask) {
    const int64_t k = pass->k;
    real p[FN(BATCH)], next[FN(BATCH)];
    for (int64_t r = 0; r < pass->block; r += FN(BATCH))
        for (int64_t c = 0; c < k; c++) {
            for (int i = 0; i < FN(BATCH); i++) p[i] = q[(r + i) * k + c];
            FN(walk)(pass, w + c * pass->padded, p, next, x + r * pass->n, pass->y + c * pass->padded, mask);
            for (int i = 0; i < FN(BATCH); i++) ahead[(r + i) * k + c] = next[i];
        }
}

/* As many whole blocks from `first` on as there are before `end`, each with the products of the next. Returns the first row
 * that is left. */
static int64_t FN(walk_range)(const struct FN(pass) * pass, struct FN(tally) * tally, real *w, int64_t first,
                              int64_t end, FN(vmask) mask) {
    const struct ki_chain *chain = pass->chain;
    const int64_t n = pass->n, block = pass->block;
    const real *x = VALUES(chain->X);
    real *q = tally->products, *ahead = q + block * pass->k;
    if (first + block > end) return first;
    FN(dense_products)(pass, q, x + first * n, block, mask);
    FN(map_block)(chain, tally, q, first, block);
    int64_t row = first;
    for (; row + 2 * block <= end; row += block) {
        FN(dense_walk)(pass, w, q, ahead, x + row * n, mask);
        FN(map_block)(chain, tally, ahead, row + block, block);
        real *done = q;
        q = ahead;
        ahead = done;
    }
    FN(dense_scatter)(pass, w, q, x + row * n, block, mask);
    return row + block;
}

/* Asks for the `count` numbers at x, the next block of short rows, so that memory works on it while this one is scattered. */
static void FN(fetch)(const real *x, int64_t count) {
    enum { LINE = 64 / sizeof(real) };
    for (int64_t i = 0; i < count; i += LINE) __builtin_prefetch(x + i);
}

/* `count` rows from `row`, lying at x. */
static void FN(dense_block)(const struct FN(pass) * pass, struct FN(tally) * tally, real *w, int64_t row,
                            int64_t count, const real *x, FN(vmask) mask) {
    const struct ki_chain *chain = pass->chain;
    real *q = tally->products;
    if (FN(multiplies)(chain)) FN(dense_products)(pass, q, x, count, mask);
    if (!FN(turn_block)(chain, tally, q, row, count)) return;
    if (pass->padded <= FN(SHORT) * LANES) FN(fetch)(x + pass->block * pass->n, count * pass->n);
    FN(dense_scatter)(pass, w, q, x, count, mask);
}

/* Rows [first, end). A row's last vector reaches into the rows behind it and is masked; the matrix's last
 * rows, which have nothing behind them to read, go through a padded copy. */
static void FN(dense_range)(const struct FN(pass) * pass, struct FN(tally) * tally, real *tail, real *w,
                            int64_t first, int64_t end) {
    const real *x = VALUES(pass->chain->X);
    const int64_t n = pass->n, rows = pass->chain->X->rows;
    FN(vmask) mask = FN(first_lanes)(n - (pass->padded - LANES));
    const int64_t direct = n > 0 ? ki_min(end, rows - ki_ceil_div(pass->padded, n) + 1) : 0;
    int64_t row = first;
    if (pass->chain->kind == KI_CHAIN_FUSED && pass->padded > FN(SHORT) * LANES &&
        n * (int64_t)sizeof(real) <= FN(WALK_BYTES))
        row = FN(walk_range)(pass, tally, w, first, direct, mask);
    for (int64_t count; row < direct; row += count) {
        count = ki_min(pass->block, direct - row);
        FN(dense_block)(pass, tally, w, row, count, x + row * n, mask);
    }
    if (row < end) memset(tail, 0, (size_t)pass->padded * sizeof(real));
    for (; row < end; row++) {
        memcpy(tail, x + row * n, (size_t)n * sizeof(real));
        FN(dense_block)(pass, tally, w, row, 1, tail, mask);
    }
}

/* Rows in a block: whole batches. Small blocks keep memory and arithmetic busy side by side; maps with exponentials want
 * enough rows to fill their vectors. */
static int64_t FN(dense_block_rows)(const struct ki_chain *chain, int64_t batch) {
    const int64_t bytes = chain->map == KI_ROW_SCALE ? FN(BLOCK_BYTES) : 4 * FN(BLOCK_BYTES);
    const int64_t of_a_row = ki_max(chain->X->cols * (int64_t)sizeof(real), 1);
    const int64_t rows = ki_min(ki_min(bytes / of_a_row, FN(BLOCK_ROWS)), FN(BLOCK_PRODUCTS) / chain->k);
    return ki_max(rows / batch, 1) * batch;
}
