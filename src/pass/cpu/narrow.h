/* CPU body of the passes over a dense X whose rows fill no more than half a vector.
 *
 * A row on its own would leave most lanes empty, and each would wait for the sum of the one before. So a
 * block of rows is turned, LANES rows at a time, into a tile in the first-level cache that holds its columns:
 * in a vector of a column each lane belongs to a row of its own, and products with y as well as sums into w
 * need no shuffles.
 *
 * Turning: a row takes `slot` lanes, the power of two from its length on, so that LANES rows, a group, take
 * `slot` vectors. Taken as one sequence of numbers, their even ones are the even columns and their odd ones
 * the odd columns, each half again a sequence of that kind: after log2(slot) such steps each vector is a
 * column, in the order of the reversed bits. */

enum {
    FN(NARROW_MOST) = LANES / 2, /* columns of X */
    FN(NARROW_Y) = 8             /* columns of y */
};

/* Returns what all rows of a range share. */
struct FN(narrow) {
    const struct FN(pass) * pass;
    int slot;
    FN(vmask) mask;                                /* of the lanes that hold numbers of a row */
    FN(vreal) sums[FN(NARROW_Y)][FN(NARROW_MOST)]; /* w, lane by lane */
    real tile[FN(BLOCK_ROWS) * FN(NARROW_MOST)];
};

static bool FN(is_narrow)(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    return X->format == KILN_DENSE && X->cols > 0 && X->cols <= FN(NARROW_MOST) && chain->k <= FN(NARROW_Y);
}

/* Lanes that a row takes. */
static int FN(narrow_slot)(int64_t n) {
    int slot = 1;
    while (slot < n) slot *= 2;
    return slot;
}

/* The columns of a group, zeros in those that fill a slot up. slot and full, whether rows fill their slots
 * and so lie without gaps, are constants wherever this is inlined. */
ALWAYS_INLINE void FN(turn)(int slot, bool full, FN(vreal) column[LANES], const real *x, int64_t n,
                            FN(vmask) mask) {
    FN(vreal) now[LANES], next[LANES];
#pragma GCC unroll 8
    for (int i = 0; i < slot; i++) {
        const real *from = x + i * (LANES / slot) * n;
        FN(ask)(from, FN(STREAM));
        now[i] = full ? FN(load)(from) : FN(masked)(FN(load_pieces)(LANES / slot, from, n), mask);
    }
#pragma GCC unroll 4
    for (int count = slot; count > 1; count /= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < slot / 2; i++) {
            const int of = 2 * i / count * count, at = i % (count / 2);
            next[of + at] = SHUFFLE(now[2 * i], now[2 * i + 1], EVEN);
            next[of + count / 2 + at] = SHUFFLE(now[2 * i], now[2 * i + 1], ODD);
        }
#pragma GCC unroll 8
        for (int i = 0; i < slot; i++) now[i] = next[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < slot; i++) {
        int reversed = 0;
        for (int bit = 1, other = slot / 2; bit < slot; bit *= 2, other /= 2)
            if (i & bit) reversed |= other;
        column[reversed] = now[i];
    }
}

/* The tile of `groups` groups of rows at x and, if y is to be multiplied, q = x y; q lies row by row, k
 * numbers each. */
ALWAYS_INLINE void FN(narrow_products_of)(int slot, bool full, struct FN(narrow) * narrow, real *q,
                                          const real *x, int64_t groups) {
    const struct FN(pass) *pass = narrow->pass;
    const int64_t n = pass->n, k = pass->k, columns = FN(multiplies)(pass->chain) ? k : 0;
    real *tile = narrow->tile;
    for (int64_t g = 0; g < groups; g++, x += LANES * n, tile += slot * LANES, q += LANES * k) {
        FN(vreal) column[LANES];
        FN(turn)(slot, full, column, x, n, narrow->mask);
        for (int j = 0; j < slot; j++) FN(store)(tile + j * LANES, column[j]);
        for (int64_t c = 0; c < columns; c++) {
            const real *y = pass->y + c * pass->padded;
            FN(vreal) sum = column[0] * y[0];
            for (int j = 1; j < slot; j++) sum += column[j] * y[j];
            if (k == 1)
                FN(store)(q, sum);
            else
                for (int i = 0; i < LANES; i++) q[i * k + c] = sum[i];
        }
    }
}

/* sums += q^T x, or x squared, for the rows in the tile. */
ALWAYS_INLINE void FN(narrow_scatter_of)(int slot, bool square, struct FN(narrow) * narrow, const real *q,
                                         int64_t groups) {
    const int64_t k = narrow->pass->k;
    for (int64_t c = 0; c < k; c++) {
        FN(vreal) sum[FN(NARROW_MOST)];
        real few[LANES];
        const real *tile = narrow->tile;
        for (int j = 0; j < slot; j++) sum[j] = narrow->sums[c][j];
        for (int64_t g = 0; g < groups; g++, tile += slot * LANES) {
            for (int i = 0; k > 1 && i < LANES; i++) few[i] = q[(g * LANES + i) * k + c];
            const FN(vreal) p = FN(load)(k > 1 ? few : q + g * LANES);
            for (int j = 0; j < slot; j++) {
                const FN(vreal) column = FN(load)(tile + j * LANES);
                sum[j] += p * (square ? column * column : column);
            }
        }
        for (int j = 0; j < slot; j++) narrow->sums[c][j] = sum[j];
    }
}

/* Both in one loop, so that the reading of X does not pause: sums += q^T x for the rows in the tile, whose
 * place those at x take, and their products with one column of y in place of q. */
ALWAYS_INLINE void FN(narrow_walk_of)(int slot, bool full, struct FN(narrow) * narrow, real *q, const real *x,
                                      int64_t groups) {
    const int64_t n = narrow->pass->n;
    const real *y = narrow->pass->y;
    real *tile = narrow->tile;
    FN(vreal) sum[FN(NARROW_MOST)];
    for (int j = 0; j < slot; j++) sum[j] = narrow->sums[0][j];
    for (int64_t g = 0; g < groups; g++, x += LANES * n, tile += slot * LANES, q += LANES) {
        FN(vreal) column[LANES], dot = {0};
        const FN(vreal) p = FN(load)(q);
        FN(turn)(slot, full, column, x, n, narrow->mask);
        for (int j = 0; j < slot; j++) {
            sum[j] += p * FN(load)(tile + j * LANES);
            dot += column[j] * y[j];
            FN(store)(tile + j * LANES, column[j]);
        }
        FN(store)(q, dot);
    }
    for (int j = 0; j < slot; j++) narrow->sums[0][j] = sum[j];
}

#if LANES >= 16
#define SLOT_8(CASE) CASE(8)
#else
#define SLOT_8(CASE)
#endif
#if LANES >= 8
#define SLOT_4(CASE) CASE(4)
#else
#define SLOT_4(CASE)
#endif
#if LANES >= 4
#define SLOT_2(CASE) CASE(2)
#else
#define SLOT_2(CASE)
#endif
#define EACH_SLOT(CASE) CASE(1) SLOT_2(CASE) SLOT_4(CASE) SLOT_8(CASE)

NEVER_INLINE void FN(narrow_products)(struct FN(narrow) * narrow, real *q, const real *x, int64_t groups) {
#define PRODUCTS(SLOT)                                                                                       \
    case SLOT:                                                                                               \
        if (SLOT <= 2 || narrow->pass->n == SLOT) /* one and two numbers always fill their slots */          \
            FN(narrow_products_of)(SLOT, true, narrow, q, x, groups);                                        \
        else                                                                                                 \
            FN(narrow_products_of)(SLOT, false, narrow, q, x, groups);                                       \
        return;
    switch (narrow->slot) { EACH_SLOT(PRODUCTS) }
#undef PRODUCTS
}

NEVER_INLINE void FN(narrow_scatter)(struct FN(narrow) * narrow, const real *q, int64_t groups) {
#define SCATTER(SLOT)                                                                                        \
    case SLOT:                                                                                               \
        if (narrow->pass->chain->kind == KI_CHAIN_SQUARES)                                                   \
            FN(narrow_scatter_of)(SLOT, true, narrow, q, groups);                                            \
        else                                                                                                 \
            FN(narrow_scatter_of)(SLOT, false, narrow, q, groups);                                           \
        return;
    switch (narrow->slot) { EACH_SLOT(SCATTER) }
#undef SCATTER
}

NEVER_INLINE void FN(narrow_walk)(struct FN(narrow) * narrow, real *q, const real *x, int64_t groups) {
#define WALK(SLOT)                                                                                           \
    case SLOT:                                                                                               \
        if (SLOT <= 2 || narrow->pass->n == SLOT)                                                            \
            FN(narrow_walk_of)(SLOT, true, narrow, q, x, groups);                                            \
        else                                                                                                 \
            FN(narrow_walk_of)(SLOT, false, narrow, q, x, groups);                                           \
        return;
    switch (narrow->slot) { EACH_SLOT(WALK) }
#undef WALK
}
#undef EACH_SLOT
#undef SLOT_8
#undef SLOT_4
#undef SLOT_2

/* `count` rows from `row`, lying at x with what is missing to whole groups behind them. */
static void FN(narrow_block)(struct FN(narrow) * narrow, struct FN(tally) * tally, int64_t row, int64_t count,
                             const real *x) {
    const struct FN(pass) *pass = narrow->pass;
    const struct ki_chain *chain = pass->chain;
    const int64_t groups = ki_ceil_div(count, LANES);
    real *q = tally->products;
    FN(narrow_products)(narrow, q, x, groups);
    if (!FN(turn_block)(chain, tally, q, row, count)) return;
    for (int64_t i = count * pass->k; i < groups * LANES * pass->k; i++) q[i] = 0;
    FN(narrow_scatter)(narrow, q, groups);
}

/* As many whole blocks of [first, end) as there are, each but the first read while the one before is
 * scattered. Returns the first row that is left. */
static int64_t FN(narrow_blocks)(struct FN(narrow) * narrow, struct FN(tally) * tally,
                                 struct FN(window) * window, int64_t first, int64_t end) {
    const struct FN(pass) *pass = narrow->pass;
    const int64_t block = pass->block, groups = block / LANES;
    real *q = tally->products;
    if (first + block > end) return first;
    FN(narrow_products)(narrow, q, FN(rows_at)(window, first, block), groups);
    FN(map_block)(pass->chain, tally, q, first, block);
    int64_t row = first + block;
    for (; row + block <= end; row += block) {
        FN(narrow_walk)(narrow, q, FN(rows_at)(window, row, block), groups);
        FN(map_block)(pass->chain, tally, q, row, block);
    }
    FN(narrow_scatter)(narrow, q, groups);
    return row;
}

/* Rows [first, end). Rows short of a group, or so near the end of X that vectors would reach beyond it, go
 * through a copy with zeros behind them. */
static void FN(narrow_range)(const struct FN(pass) * pass, struct FN(tally) * tally,
                             struct FN(window) * window, real *w, int64_t first, int64_t end) {
    const int64_t n = pass->n, k = pass->k;
    const int64_t safe = ki_min(end, (pass->chain->X->rows * n - LANES) / n);
    struct FN(narrow) narrow;
    narrow.pass = pass;
    narrow.slot = FN(narrow_slot)(n);
    for (int i = 0; i < LANES; i++) narrow.mask[i] = (i & (narrow.slot - 1)) < n ? (real_bits)-1 : 0;
    memset(narrow.sums, 0, (size_t)k * sizeof narrow.sums[0]);
    int64_t row = first;
    if (pass->chain->kind == KI_CHAIN_FUSED && k == 1)
        row = FN(narrow_blocks)(&narrow, tally, window, first, safe);
    for (int64_t count; row + LANES <= safe; row += count) {
        count = ki_min(pass->block, (safe - row) / LANES * LANES);
        FN(narrow_block)(&narrow, tally, row, count, FN(rows_at)(window, row, count));
    }
    for (int64_t count; row < end; row += count) {
        real room[(LANES + 1) * LANES] = {0};
        count = ki_min(LANES, end - row);
        memcpy(room, FN(rows_at)(window, row, count), (size_t)(count * n) * sizeof(real));
        FN(narrow_block)(&narrow, tally, row, count, room);
    }
    if (pass->chain->kind == KI_CHAIN_PLAIN) return;
    for (int64_t c = 0; c < k; c++)
        for (int64_t j = 0; j < n; j++) w[c * pass->padded + j] += FN(lane_sum)(narrow.sums[c][j]);
}
