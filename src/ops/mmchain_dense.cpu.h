/* CPU body of the passes over a dense X: blocks of rows that fit into the first-level cache, or a few long ones, are
 * multiplied by y, mapped, and scattered into w.
 *
 * Memory is to be busy all the time and not only while products are formed. So a block is scattered in one walk with the
 * products of the next one, and the reading of X does not pause. The hardware's own prefetching begins anew at each row and
 * each page: asking ahead for what the walk comes to, two rows at a time, reads faster than a plain loop over X does. Rows so
 * long that four of them, y and w leave no room in the second-level cache are walked over one at a time. */

enum {
    FN(BATCH) = 4,             /* rows taken together: y and w are loaded once for them */
    FN(PAIR) = 2,              /* rows of a walk */
    FN(SHORT) = 4,             /* vectors in rows that have kernels of their own */
    FN(TOGETHER) = 4,          /* columns of y in a walk */
    FN(BLOCK_BYTES) = 2048,    /* of X in a block, if that is a batch or more */
    FN(PAIR_BYTES) = 240 << 10 /* of the longest rows of which two are walked over */
};

/* Asks the second-level cache for what a walk comes to after x: where rows are long, for the same rows, as there are pages
 * enough to read from. */
ALWAYS_INLINE void FN(ask)(const real *x, int64_t n) {
    __builtin_prefetch((const char *)x + (n * (int64_t)sizeof(real) < 8192 ? 8192 : 2048), 0, 2);
}

/* Asks the first-level cache for what comes soon after x, where rows are so short that they are read as one stream. */
ALWAYS_INLINE void FN(ask_near)(const real *x) {
    __builtin_prefetch((const char *)x + 1024);
}

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

/* One vector of each row of a walk: w += sum_r p[r] * x_r, and sum += the products of the rows `next` numbers behind x. */
ALWAYS_INLINE void FN(step)(int R, int C, bool last, const struct FN(pass) * pass,
                            FN(vreal) sum[FN(BATCH)][FN(TOGETHER)], real *w, const real *p, const real *x,
                            const real *y, FN(vmask) mask) {
    const int64_t padded = pass->padded, n = pass->n, k = pass->k, next = pass->block * n;
    FN(vreal) now[FN(BATCH)], coming[FN(BATCH)];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        FN(ask)(x + r * n + next, n);
        now[r] = FN(load)(x + r * n);
        coming[r] = FN(load)(x + r * n + next);
        if (last) now[r] = FN(masked)(now[r], mask);
        if (last) coming[r] = FN(masked)(coming[r], mask);
    }
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) {
        const FN(vreal) yj = FN(load)(y + c * padded);
        FN(vreal) wj = FN(load)(w + c * padded);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            sum[r][c] += coming[r] * yj;
            wj += p[r * k + c] * now[r];
        }
        FN(store)(w + c * padded, wj);
    }
}

/* A walk for R rows and C columns of y, constants wherever this is inlined: scatters them, and puts the products of the rows
 * a block behind them into ahead. p and ahead lie row by row. */
ALWAYS_INLINE void FN(walk)(int R, int C, const struct FN(pass) * pass, real *w, const real *p, real *ahead,
                            const real *x, const real *y, FN(vmask) mask) {
    const int64_t k = pass->k, whole = pass->padded - LANES;
    FN(vreal) sum[FN(BATCH)][FN(TOGETHER)] = {{{0}}};
    for (int64_t j = 0; j < whole; j += LANES) FN(step)(R, C, false, pass, sum, w + j, p, x + j, y + j, mask);
    FN(step)(R, C, true, pass, sum, w + whole, p, x + whole, y + whole, mask);
    for (int r = 0; C == FN(TOGETHER) && r < R; r++) FN(four_lane_sums)(ahead + r * k, sum[r]);
    for (int c = 0; C < FN(TOGETHER) && c < C; c++) {
        real few[FN(BATCH)];
        const FN(vreal) of_rows[] = {sum[0][c], sum[1][c], sum[2][c], sum[3][c]};
        if (R == FN(BATCH)) FN(four_lane_sums)(few, of_rows);
        for (int r = 0; r < R; r++) ahead[r * k + c] = R == FN(BATCH) ? few[r] : FN(lane_sum)(sum[r][c]);
    }
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

/* Both for a block: w += q^T x, and the products of the next block into ahead. */
ALWAYS_INLINE void FN(short_walk)(int V, const struct FN(pass) * pass, real *w, const real *q, real *ahead,
                                  const real *x, FN(vmask) mask) {
    const int64_t n = pass->n, next = pass->block * n;
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
                FN(ask_near)(from + next);
                FN(vreal) now = FN(load)(from), coming = FN(load)(from + next);
                if (j == V - 1) now = FN(masked)(now, mask), coming = FN(masked)(coming, mask);
                wj[j] += q[r + i] * now;
                sum[i] += coming * yj[j];
            }
        FN(four_lane_sums)(ahead + r, sum);
    }
    for (int j = 0; j < V; j++) FN(store)(w + j * LANES, wj[j]);
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

/* w += q^T x for R rows and all columns of y, and products of the next block. */
ALWAYS_INLINE void FN(long_walk)(int R, const struct FN(pass) * pass, real *w, const real *q, real *ahead,
                                 const real *x, FN(vmask) mask) {
    const int64_t k = pass->k, padded = pass->padded;
    const real *y = pass->y;
    int64_t c = 0;
    for (; c + FN(TOGETHER) <= k; c += FN(TOGETHER))
        FN(walk)(R, FN(TOGETHER), pass, w + c * padded, q + c, ahead + c, x, y + c * padded, mask);
    for (; c + 2 <= k; c += 2)
        FN(walk)(R, 2, pass, w + c * padded, q + c, ahead + c, x, y + c * padded, mask);
    if (c < k) FN(walk)(R, 1, pass, w + c * padded, q + c, ahead + c, x, y + c * padded, mask);
}

/* The same for a block. */
NEVER_INLINE void FN(dense_walk)(const struct FN(pass) * pass, real *w, const real *q, real *ahead,
                                 const real *x, FN(vmask) mask) {
    const int64_t k = pass->k, n = pass->n;
    switch (k == 1 ? pass->padded / LANES : 0) {
    case 1: FN(short_walk)(1, pass, w, q, ahead, x, mask); return;
    case 2: FN(short_walk)(2, pass, w, q, ahead, x, mask); return;
    case 3: FN(short_walk)(3, pass, w, q, ahead, x, mask); return;
    case 4: FN(short_walk)(4, pass, w, q, ahead, x, mask); return;
    }
    for (int64_t r = 0; r < pass->block; r += pass->batch, q += pass->batch * k, ahead += pass->batch * k)
        switch (pass->batch) {
        case 1: FN(long_walk)(1, pass, w, q, ahead, x + r * n, mask); break;
        case FN(PAIR): FN(long_walk)(FN(PAIR), pass, w, q, ahead, x + r * n, mask); break;
        case FN(BATCH): FN(long_walk)(FN(BATCH), pass, w, q, ahead, x + r * n, mask); break;
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
static void FN(dense_range)(const struct FN(pass) * pass, struct FN(tally) * tally, real *tail, real *w,
                            int64_t first, int64_t end) {
    const real *x = VALUES(pass->chain->X);
    const int64_t n = pass->n, rows = pass->chain->X->rows;
    FN(vmask) mask = FN(first_lanes)(n - (pass->padded - LANES));
    const int64_t direct = n > 0 ? ki_min(end, rows - ki_ceil_div(pass->padded, n) + 1) : 0;
    int64_t row = first;
    if (pass->chain->kind == KI_CHAIN_FUSED) row = FN(walk_range)(pass, tally, w, first, direct, mask);
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

/* Rows taken together: whole batches make up blocks, and blocks parts. With several columns of y it is not memory that a
 * walk waits for but y and w, which are then read once for more rows if there are registers for their sums. */
static int64_t FN(dense_batch)(const struct ki_chain *chain) {
    const int64_t n = chain->X->cols, bytes = n * (int64_t)sizeof(real);
    const bool alone = chain->kind != KI_CHAIN_FUSED, little = chain->k == 1 && n <= FN(SHORT) * LANES;
    if (alone || little || (chain->k > 1 && SIMD_BYTES == 64)) return FN(BATCH);
    return bytes > FN(PAIR_BYTES) && bytes <= 2 * FN(PAIR_BYTES) ? 1 : FN(PAIR);
}
