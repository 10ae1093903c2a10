/* CPU body of the passes over a dense X: blocks of rows that fit into the first-level cache are multiplied by y, mapped,
 * and scattered into w. */

enum {
    FN(BATCH) = 4,
    FN(BLOCK_BYTES) = 16384
}; /* rows taken together: w is loaded and stored once for them */

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

/* q = x y for R rows, k numbers a row. */
ALWAYS_INLINE void FN(dense_products)(int R, const struct FN(pass) * pass, real *q, const real *x,
                                      FN(vmask) mask) {
    real p[FN(BATCH)];
    for (int64_t c = 0; c < pass->k; c++) {
        FN(dots)(R, p, x, pass->n, pass->y + c * pass->padded, pass->padded / LANES, mask);
        for (int r = 0; r < R; r++) q[r * pass->k + c] = p[r];
    }
}

/* w += q^T x for R rows. */
ALWAYS_INLINE void FN(dense_scatter)(int R, const struct FN(pass) * pass, real *w, const real *q,
                                     const real *x, FN(vmask) mask) {
    const int64_t vectors = pass->padded / LANES;
    real p[FN(BATCH)];
    for (int64_t c = 0; c < pass->k; c++) {
        for (int r = 0; r < R; r++) p[r] = q[r * pass->k + c];
        if (pass->chain->kind == KI_CHAIN_SQUARES)
            FN(scatters)(R, true, w + c * pass->padded, p, x, pass->n, vectors, mask);
        else
            FN(scatters)(R, false, w + c * pass->padded, p, x, pass->n, vectors, mask);
    }
}

/* `count` rows from `row`, lying at x. */
static void FN(dense_block)(const struct FN(pass) * pass, struct FN(tally) * tally, real *w, int64_t row,
                            int64_t count, const real *x, FN(vmask) mask) {
    const struct ki_chain *chain = pass->chain;
    const int64_t k = pass->k, n = pass->n;
    real q[FN(BLOCK_PRODUCTS)];
    int64_t r = 0;
    if (chain->kind == KI_CHAIN_FUSED || chain->kind == KI_CHAIN_PLAIN) {
        for (; r + FN(BATCH) <= count; r += FN(BATCH))
            FN(dense_products)(FN(BATCH), pass, q + r * k, x + r * n, mask);
        for (; r < count; r++) FN(dense_products)(1, pass, q + r * k, x + r * n, mask);
        if (chain->kind == KI_CHAIN_PLAIN) {
            FN(write_block)(chain, q, row, count);
            return;
        }
        FN(map_block)(chain, tally, q, row, count);
    } else {
        FN(read_block)(chain, q, row, count);
    }
    for (r = 0; r + FN(BATCH) <= count; r += FN(BATCH))
        FN(dense_scatter)(FN(BATCH), pass, w, q + r * k, x + r * n, mask);
    for (; r < count; r++) FN(dense_scatter)(1, pass, w, q + r * k, x + r * n, mask);
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

/* Rows in a block: whole batches that the first-level cache holds, and whose products q holds. */
static int64_t FN(dense_block_rows)(int64_t n, int64_t k) {
    const int64_t held =
        ki_min(FN(BLOCK_BYTES) / (int64_t)sizeof(real) / ki_max(n, 1), FN(BLOCK_PRODUCTS) / k);
    return ki_max(ki_min(held, FN(BLOCK_ROWS)) / FN(BATCH), 1) * FN(BATCH);
}
