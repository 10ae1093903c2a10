/* CPU body of the passes over a dense X whose rows are no longer than a vector.
 *
 * A row takes `slot` lanes, the power of two from its length on, so that LANES rows, a group, take `slot` vectors. The lanes
 * of their products with y are added up by a tree of neighbouring pairs, which ends in one vector with the group's q in
 * order; the same tree upwards spreads q over the rows' lanes again for the scatter. One row after the other would leave
 * most lanes empty, and each would wait for the sum of the one before: w is added up in several sums, lane by lane, which
 * are folded into w when the rows are through. */

enum { FN(NARROW_SUMS) = 4 };

/* What all rows of a range share. */
struct FN(narrow) {
    const struct FN(pass) * pass;
    FN(vmask) mask; /* of the lanes that hold numbers of a row */
    real sums[FN(NARROW_COLUMNS)][FN(NARROW_SUMS) * LANES];
};

/* Lanes that a row takes. */
static int FN(narrow_slot)(int64_t n) {
    int slot = 1;
    while (slot < n) slot *= 2;
    return slot;
}

/* The rows of a vector. Where rows fill their slots they lie without gaps. */
ALWAYS_INLINE FN(vreal) FN(narrow_load)(int slot, bool full, const real *x, int64_t n, FN(vmask) mask) {
    return full ? FN(load)(x) : FN(masked)(FN(load_pieces)(LANES / slot, x, n), mask);
}

/* q = x y for a group; slot and full are constants wherever this is inlined. */
ALWAYS_INLINE void FN(narrow_dots)(int slot, bool full, real *q, const real *x, int64_t n, const real *y,
                                   FN(vmask) mask) {
    const FN(vreal) all_y = FN(load)(y);
    FN(vreal) sum[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < slot; i++)
        sum[i] = FN(narrow_load)(slot, full, x + i * (LANES / slot) * n, n, mask) * all_y;
#pragma GCC unroll 4
    for (int half = slot / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < half; i++) sum[i] = FN(pair_sums)(sum[2 * i], sum[2 * i + 1]);
    FN(store)(q, sum[0]);
}

/* sums += q^T x, or x squared, for a group. */
ALWAYS_INLINE void FN(narrow_adds)(int slot, bool full, bool square, FN(vreal) sums[FN(NARROW_SUMS)],
                                   const real *q, const real *x, int64_t n, FN(vmask) mask) {
    FN(vreal) spread[LANES];
    spread[0] = FN(load)(q);
#pragma GCC unroll 4
    for (int count = 1; count < slot; count *= 2)
#pragma GCC unroll 8
        for (int i = count - 1; i >= 0; i--) {
            const FN(vreal) both = spread[i];
            spread[2 * i + 1] = FN(twins)(both, true);
            spread[2 * i] = FN(twins)(both, false);
        }
#pragma GCC unroll 16
    for (int i = 0; i < slot; i++) {
        const FN(vreal) xi = FN(narrow_load)(slot, full, x + i * (LANES / slot) * n, n, mask);
        sums[i % FN(NARROW_SUMS)] += spread[i] * (square ? xi * xi : xi);
    }
}

/* The same for `count` rows, whole groups. q lies row by row, k numbers each. */
ALWAYS_INLINE void FN(narrow_products_of)(int slot, bool full, const struct FN(narrow) * narrow, real *q,
                                          const real *x, int64_t count) {
    const int64_t n = narrow->pass->n, k = narrow->pass->k;
    const real *y = narrow->pass->y;
    real group[LANES];
    if (k == 1)
        for (int64_t r = 0; r < count; r += LANES)
            FN(narrow_dots)(slot, full, q + r, x + r * n, n, y, narrow->mask);
    else
        for (int64_t r = 0; r < count; r += LANES)
            for (int64_t c = 0; c < k; c++) {
                FN(narrow_dots)(slot, full, group, x + r * n, n, y + c * LANES, narrow->mask);
                for (int i = 0; i < LANES; i++) q[(r + i) * k + c] = group[i];
            }
}

ALWAYS_INLINE void FN(narrow_scatter_of)(int slot, bool full, bool square, struct FN(narrow) * narrow,
                                         const real *q, const real *x, int64_t count) {
    const int64_t n = narrow->pass->n, k = narrow->pass->k;
    for (int64_t c = 0; c < k; c++) {
        FN(vreal) sums[FN(NARROW_SUMS)];
        real group[LANES];
        for (int i = 0; i < FN(NARROW_SUMS); i++) sums[i] = FN(load)(narrow->sums[c] + i * LANES);
        for (int64_t r = 0; r < count; r += LANES) {
            for (int i = 0; k > 1 && i < LANES; i++) group[i] = q[(r + i) * k + c];
            FN(narrow_adds)(slot, full, square, sums, k > 1 ? group : q + r, x + r * n, n, narrow->mask);
        }
        for (int i = 0; i < FN(NARROW_SUMS); i++) FN(store)(narrow->sums[c] + i * LANES, sums[i]);
    }
}

#if LANES >= 16
#define SLOT_16(CASE) CASE(16)
#else
#define SLOT_16(CASE)
#endif
#if LANES >= 8
#define SLOT_8(CASE) CASE(8)
#else
#define SLOT_8(CASE)
#endif
#if LANES >= 4
#define SLOT_4(CASE) CASE(4)
#else
#define SLOT_4(CASE)
#endif
#define EACH_SLOT(CASE) CASE(1) CASE(2) SLOT_4(CASE) SLOT_8(CASE) SLOT_16(CASE)

/* Rows of one and two numbers always fill their slots, and what fills whole vectors needs no other way in. */
#define FULL(SLOT) (SLOT <= 2 || (SLOT < LANES && narrow->pass->n == SLOT))

NEVER_INLINE void FN(narrow_products)(const struct FN(narrow) * narrow, real *q, const real *x,
                                      int64_t count) {
#define PRODUCTS(SLOT)                                                                                       \
    case SLOT:                                                                                               \
        if (FULL(SLOT))                                                                                      \
            FN(narrow_products_of)(SLOT, true, narrow, q, x, count);                                         \
        else                                                                                                 \
            FN(narrow_products_of)(SLOT, false, narrow, q, x, count);                                        \
        return;
    switch (FN(narrow_slot)(narrow->pass->n)) { EACH_SLOT(PRODUCTS) }
#undef PRODUCTS
}

NEVER_INLINE void FN(narrow_scatter)(struct FN(narrow) * narrow, const real *q, const real *x,
                                     int64_t count) {
#define SCATTER(SLOT)                                                                                        \
    case SLOT:                                                                                               \
        if (narrow->pass->chain->kind == KI_CHAIN_SQUARES)                                                   \
            FN(narrow_scatter_of)(SLOT, SLOT <= 2, true, narrow, q, x, count);                               \
        else if (FULL(SLOT))                                                                                 \
            FN(narrow_scatter_of)(SLOT, true, false, narrow, q, x, count);                                   \
        else                                                                                                 \
            FN(narrow_scatter_of)(SLOT, false, false, narrow, q, x, count);                                  \
        return;
    switch (FN(narrow_slot)(narrow->pass->n)) { EACH_SLOT(SCATTER) }
#undef SCATTER
}
#undef FULL
#undef EACH_SLOT
#undef SLOT_16
#undef SLOT_8
#undef SLOT_4

/* `count` rows from `row`, lying at x with what is missing to whole groups behind them. */
static void FN(narrow_block)(struct FN(narrow) * narrow, struct FN(tally) * tally, int64_t row, int64_t count,
                             const real *x) {
    const struct FN(pass) *pass = narrow->pass;
    const struct ki_chain *chain = pass->chain;
    const int64_t rows = ki_ceil_div(count, LANES) * LANES;
    real *q = tally->products;
    if (FN(multiplies)(chain)) FN(narrow_products)(narrow, q, x, rows);
    if (!FN(turn_block)(chain, tally, q, row, count)) return;
    for (int64_t i = count * pass->k; i < rows * pass->k; i++) q[i] = 0;
    FN(fetch)(x + pass->block * pass->n, rows * pass->n);
    FN(narrow_scatter)(narrow, q, x, rows);
}

/* w += the sums. */
static void FN(narrow_fold)(const struct FN(narrow) * narrow, int64_t slot, real *w) {
    const struct FN(pass) *pass = narrow->pass;
    for (int64_t c = 0; c < pass->k; c++) {
        real all[LANES] = {0};
        for (int64_t i = 0; i < FN(NARROW_SUMS) * LANES; i++) all[i & (LANES - 1)] += narrow->sums[c][i];
        for (int64_t i = 0; i < LANES; i++)
            if ((i & (slot - 1)) < pass->n) w[c * pass->padded + (i & (slot - 1))] += all[i];
    }
}

/* Rows [first, end). Rows short of a group, or so near the end of X that vectors would reach beyond it, go through a copy
 * with zeros behind them. */
static void FN(narrow_range)(const struct FN(pass) * pass, struct FN(tally) * tally, real *w, int64_t first,
                             int64_t end) {
    const real *x = VALUES(pass->chain->X);
    const int64_t n = pass->n, k = pass->k, slot = FN(narrow_slot)(n);
    const int64_t safe = ki_min(end, (pass->chain->X->rows * n - LANES) / n);
    struct FN(narrow) narrow;
    narrow.pass = pass;
    for (int i = 0; i < LANES; i++) narrow.mask[i] = (i & (slot - 1)) < n ? (real_bits)-1 : 0;
    memset(narrow.sums, 0, (size_t)k * sizeof narrow.sums[0]);
    int64_t row = first;
    for (int64_t count; row + LANES <= safe; row += count) {
        count = ki_min(pass->block, (safe - row) / LANES * LANES);
        FN(narrow_block)(&narrow, tally, row, count, x + row * n);
    }
    for (int64_t count; row < end; row += count) {
        real room[(LANES + 1) * LANES] = {0};
        count = ki_min(LANES, end - row);
        memcpy(room, x + row * n, (size_t)(count * n) * sizeof(real));
        FN(narrow_block)(&narrow, tally, row, count, room);
    }
    if (pass->chain->kind != KI_CHAIN_PLAIN) FN(narrow_fold)(&narrow, slot, w);
}
