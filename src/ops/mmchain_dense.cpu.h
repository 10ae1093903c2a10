/* CPU body of the passes over a dense X: blocks of rows that fit into the first-level cache are multiplied by y, mapped,
 * and scattered into w. */

enum {
    FN(BATCH) = 4,         /* rows taken together: y and w are loaded once for them */
    FN(NARROW) = 4,        /* vectors in rows that have kernels of their own */
    FN(BLOCK_BYTES) = 2048 /* of X in a block, if that is a batch or more */
};

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
            FN(vreal) xj = FN(load)(x + r * stride + j * LANES);
            if (j == vectors - 1) xj = FN(masked)(xj, mask);
            wj += p[r] * (square ? xj * xj : xj);
        }
        FN(store)(w + j * LANES, wj);
    }
}

/* The same for a block of rows of V vectors, a constant wherever this is inlined: y and w stay in registers. */
ALWAYS_INLINE void FN(narrow_products)(int V, real *q, const real *x, int64_t n, int64_t count, const real *y,
                                       FN(vmask) mask) {
    int64_t r = 0;
    for (; r + FN(BATCH) <= count; r += FN(BATCH)) FN(dots)(FN(BATCH), q + r, x + r * n, n, y, V, mask);
    for (; r < count; r++) FN(dots)(1, q + r, x + r * n, n, y, V, mask);
}

ALWAYS_INLINE void FN(narrow_scatter)(int V, real *w, const real *q, const real *x, int64_t n, int64_t count,
                                      FN(vmask) mask) {
    FN(vreal) sum[FN(NARROW)];
    for (int j = 0; j < V; j++) sum[j] = FN(load)(w + j * LANES);
    for (int64_t r = 0; r < count; r++) {
        for (int j = 0; j < V - 1; j++) sum[j] += q[r] * FN(load)(x + r * n + j * LANES);
        sum[V - 1] += q[r] * FN(masked)(FN(load)(x + r * n + (V - 1) * LANES), mask);
    }
    for (int j = 0; j < V; j++) FN(store)(w + j * LANES, sum[j]);
}

/* q = x y for `count` rows, k numbers a row. */
NEVER_INLINE void FN(dense_products)(const struct FN(pass) * pass, real *q, const real *x, int64_t count,
                                     FN(vmask) mask) {
    const int64_t k = pass->k, n = pass->n, vectors = pass->padded / LANES;
    switch (k == 1 ? vectors : 0) {
    case 1: FN(narrow_products)(1, q, x, n, count, pass->y, mask); return;
    case 2: FN(narrow_products)(2, q, x, n, count, pass->y, mask); return;
    case 3: FN(narrow_products)(3, q, x, n, count, pass->y, mask); return;
    case 4: FN(narrow_products)(4, q, x, n, count, pass->y, mask); return;
    }
    real p[FN(BATCH)];
    int64_t r = 0;
    for (; r + FN(BATCH) <= count; r += FN(BATCH))
        for (int64_t c = 0; c < k; c++) {
            FN(dots)(FN(BATCH), p, x + r * n, n, pass->y + c * pass->padded, vectors, mask);
            for (int i = 0; i < FN(BATCH); i++) q[(r + i) * k + c] = p[i];
        }
    for (; r < count; r++)
        for (int64_t c = 0; c < k; c++)
            FN(dots)(1, q + r * k + c, x + r * n, n, pass->y + c * pass->padded, vectors, mask);
}

/* w += q^T x for `count` rows. */
NEVER_INLINE void FN(dense_scatter)(const struct FN(pass) * pass, real *w, const real *q, const real *x,
                                    int64_t count, FN(vmask) mask) {
    const int64_t k = pass->k, n = pass->n, vectors = pass->padded / LANES;
    const bool square = pass->chain->kind == KI_CHAIN_SQUARES;
    switch (k == 1 && !square ? vectors : 0) {
    case 1: FN(narrow_scatter)(1, w, q, x, n, count, mask); return;
    case 2: FN(narrow_scatter)(2, w, q, x, n, count, mask); return;
    case 3: FN(narrow_scatter)(3, w, q, x, n, count, mask); return;
    case 4: FN(narrow_scatter)(4, w, q, x, n, count, mask); return;
    }
    real p[FN(BATCH)];
    int64_t r = 0;
    for (; r + FN(BATCH) <= count; r += FN(BATCH))
        for (int64_t c = 0; c < k; c++) {
            for (int i = 0; i < FN(BATCH); i++) p[i] = q[(r + i) * k + c];
            if (square)
                FN(scatters)(FN(BATCH), true, w + c * pass->padded, p, x + r * n, n, vectors, mask);
            else
                FN(scatters)(FN(BATCH), false, w + c * pass->padded, p, x + r * n, n, vectors, mask);
        }
    for (; r < count; r++)
        for (int64_t c = 0; c < k; c++)
            FN(scatters)(1, square, w + c * pass->padded, q + r * k + c, x + r * n, n, vectors, mask);
}

/* Asks for the `count` numbers at x, the next block, so that memory works on it while this one is scattered. Of long rows
 * that would be more than a core can have under way; there the hardware's own prefetching is enough. */
static void FN(fetch)(const real *x, int64_t count) {
    enum { LINE = 64 / sizeof(real), MOST = 8192 / sizeof(real) };
    if (count > MOST) return;
    for (int64_t i = 0; i < count; i += LINE) __builtin_prefetch(x + i);
}

/* `count` rows from `row`, lying at x. */
static void FN(dense_block)(const struct FN(pass) * pass, struct FN(tally) * tally, real *w, int64_t row,
                            int64_t count, const real *x, FN(vmask) mask) {
    const struct ki_chain *chain = pass->chain;
    real *q = tally->products;
    if (chain->kind == KI_CHAIN_FUSED || chain->kind == KI_CHAIN_PLAIN)
        FN(dense_products)(pass, q, x, count, mask);
    else
        FN(read_block)(chain, q, row, count);
    if (chain->kind == KI_CHAIN_PLAIN) {
        FN(write_block)(chain, q, row, count);
        return;
    }
    if (chain->kind == KI_CHAIN_FUSED) FN(map_block)(chain, tally, q, row, count);
    FN(fetch)(x + pass->block * pass->n, count * pass->n);
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
static int64_t FN(dense_block_rows)(const struct ki_chain *chain) {
    const int64_t bytes = chain->map == KI_ROW_SCALE ? FN(BLOCK_BYTES) : 4 * FN(BLOCK_BYTES);
    const int64_t of_a_row = ki_max(chain->X->cols * (int64_t)sizeof(real), 1);
    const int64_t rows = ki_min(ki_min(bytes / of_a_row, FN(BLOCK_ROWS)), FN(BLOCK_PRODUCTS) / chain->k);
    return ki_max(rows / FN(BATCH), 1) * FN(BATCH);
}
