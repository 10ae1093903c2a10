/* CPU body of the fused pass over a dense X of rows so wide that a thread's second-level cache does not hold a few of them
 * beside y and w: the threads share each row.
 *
 * A thread owns a range of columns, with its part of y and w, for all rows. It takes the products of its part of a block of
 * rows with y, meets the others, adds up everybody's products in the order of the columns, and scatters its part of the rows
 * into its part of w while it takes the products of the next block. Two threads have twice the cache for one block, can so take
 * more rows together, and read and write y and w less often; and there is one w to add to and not one a thread.
 *
 * Products are kept slice by slice, the slices being cut by the shape alone, and w is added to row after row: the same bits
 * for any number of threads and of rows in a block. Every thread maps a block's products for itself; what the map leaves
 * behind is the first one's. A thread that has met the others may write the products that they are done with, so that two sets
 * suffice for one meeting a block. */

enum {
    FN(SHARED_ROW) = 240 << 10,    /* bytes of the longest rows that are not shared */
    FN(SHARED_CACHE) = 1664 << 10, /* of the second-level cache for a part of two blocks, y and w */
    FN(SHARED_SLICE) = 8192,       /* bytes, about, but no more than 64 slices */
    FN(SLICES_MOST) = 64,
    FN(SHARED_ROWS) = 16, /* of a block */
    FN(SHARED_PRODUCTS) = 2 * FN(SLICES_MOST) * FN(SHARED_ROWS)
};

struct FN(shared) {
    const struct FN(pass) * pass;
    int64_t slices;
    real *products; /* [set][slice][row] */
    struct ki_meeting *meeting;
};

/* What a thread has of it. */
struct FN(share) {
    const struct FN(shared) * shared;
    struct ki_chain chain;
    struct FN(tally) * tally;
    int64_t first, end, block; /* slices; rows of a block */
    int set;                   /* of the products that come next */
    real *w, *sum;             /* where w is folded into; where it is not, w */
};

static bool FN(is_shared)(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    return X->format == KILN_DENSE && chain->k == 1 && chain->kind == KI_CHAIN_FUSED &&
           X->cols * (int64_t)sizeof(real) > FN(SHARED_ROW);
}

/* The first column of a slice. */
static int64_t FN(slice_begin)(const struct FN(shared) * shared, int64_t slice) {
    return LANES * ki_part_begin(shared->pass->padded / LANES, (int)slice, (int)shared->slices);
}

/* Vector j of a row, whose last one has nothing behind it that may be read. */
ALWAYS_INLINE FN(vreal) FN(shared_vector)(const real *x, int64_t j, bool last, int64_t rest) {
    real few[LANES] = {0};
    if (!last) return FN(load)(x + j);
    memcpy(few, x + j, (size_t)rest * sizeof(real));
    return FN(load)(few);
}

/* A vector of R rows: w += sum_r p[r] * now_r and sum_r += next_r . y. All but pointers, n, j and rest are constants wherever
 * this is inlined. */
ALWAYS_INLINE void FN(shared_step)(int R, bool scatters, bool multiplies, bool last, real *w, const real *p,
                                   const real *now, const real *next, const real *y, int64_t n, int64_t j,
                                   int64_t rest, FN(vreal) sum[FN(BATCH)]) {
    if (multiplies) {
        const FN(vreal) yj = FN(load)(y + j);
        for (int r = 0; r < R; r++) {
            __builtin_prefetch((const char *)(next + r * n + j) + 4096, 0, 2);
            sum[r] += FN(shared_vector)(next + r * n, j, last, rest) * yj;
        }
    }
    if (scatters) {
        FN(vreal) wj = FN(load)(w + j);
        for (int r = 0; r < R; r++) wj += p[r] * FN(shared_vector)(now + r * n, j, last, rest);
        FN(store)(w + j, wj);
    }
}

/* Columns [from, to) of R rows; the rows' products with y go to ahead. */
ALWAYS_INLINE void FN(shared_walk)(int R, bool scatters, bool multiplies, const struct FN(pass) * pass,
                                   real *w, const real *p, real *ahead, const real *now, const real *next,
                                   int64_t from, int64_t to) {
    const int64_t n = pass->n, whole = ki_min(to, pass->padded - LANES), rest = n - whole;
    FN(vreal) sum[FN(BATCH)] = {{0}};
    for (int64_t j = from; j < whole; j += LANES)
        FN(shared_step)(R, scatters, multiplies, false, w, p, now, next, pass->y, n, j, rest, sum);
    if (whole < to)
        FN(shared_step)(R, scatters, multiplies, true, w, p, now, next, pass->y, n, whole, rest, sum);
    for (int r = 0; multiplies && r < R; r++) ahead[r] = FN(lane_sum)(sum[r]);
}

/* The same for `count` rows of a block. */
ALWAYS_INLINE void FN(shared_rows)(bool scatters, bool multiplies, const struct FN(pass) * pass, real *w,
                                   const real *p, real *ahead, const real *now, const real *next,
                                   int64_t from, int64_t to, int64_t count) {
    const int64_t n = pass->n;
    int64_t r = 0;
#define ROWS(R)                                                                                              \
    for (; r + R <= count; r += R) FN(shared_walk)                                                           \
    (R, scatters, multiplies, pass, w, p + r, ahead + r, now + r * n, next + r * n, from, to);
    ROWS(4)
    ROWS(2)
    ROWS(1)
#undef ROWS
}

/* The thread's part of a block: scatters the `count` rows at now by p, and takes the products of the `coming` rows behind
 * them. */
NEVER_INLINE void FN(shared_block)(const struct FN(share) * share, const real *p, const real *now,
                                   int64_t count, int64_t coming) {
    const struct FN(shared) *shared = share->shared;
    const struct FN(pass) *pass = shared->pass;
    const real *next = now + count * pass->n;
    for (int64_t slice = share->first; slice < share->end; slice++) {
        const int64_t from = FN(slice_begin)(shared, slice), to = FN(slice_begin)(shared, slice + 1);
        real *ahead = shared->products + (share->set * FN(SLICES_MOST) + slice) * FN(SHARED_ROWS);
        if (count == coming) {
            FN(shared_rows)(true, true, pass, share->w, p, ahead, now, next, from, to, count);
        } else {
            FN(shared_rows)(true, false, pass, share->w, p, ahead, now, next, from, to, count);
            FN(shared_rows)(false, true, pass, share->w, p, ahead, now, next, from, to, coming);
        }
    }
}

/* q of `count` rows from the products of all slices, in their order. */
static void FN(shared_sum)(const struct FN(share) * share, real *q, int64_t count) {
    const real *products = share->shared->products + share->set * FN(SLICES_MOST) * FN(SHARED_ROWS);
    for (int64_t r = 0; r < count; r++) q[r] = 0;
    for (int64_t slice = 0; slice < share->shared->slices; slice++)
        for (int64_t r = 0; r < count; r++) q[r] += products[slice * FN(SHARED_ROWS) + r];
}

/* Row by row, since what a map adds up goes by its blocks, and those here by the number of threads. */
static void FN(shared_map)(const struct FN(share) * share, real *q, int64_t row, int64_t count) {
    real one[LANES];
    for (int64_t r = 0; r < count; r++) {
        one[0] = q[r];
        FN(map_block)(&share->chain, share->tally, one, row + r, 1);
        q[r] = one[0];
    }
}

static void FN(shared_fold)(const struct FN(share) * share, int64_t from, int64_t to) {
    if (share->sum == share->w) return;
    for (int64_t j = from; j < to; j++) share->sum[j] += share->w[j];
    memset(share->w + from, 0, (size_t)(to - from) * sizeof(real));
}

/* Rows of a block, of which two, y and w are to stay in the cache; many, where not even one row would. A power of two, so that
 * every block ends where w is folded. */
static int64_t FN(shared_block_rows)(const struct FN(pass) * pass, int parts) {
    const int64_t of_a_row = pass->padded * (int64_t)sizeof(real) / parts;
    const int64_t rows = (FN(SHARED_CACHE) / of_a_row - 2) / 2;
    return rows < 1 ? FN(SHARED_ROWS) : FN(power_below)(ki_min(rows, FN(SHARED_ROWS)));
}

static void FN(shared_part)(void *arg, int part, int parts) {
    const struct FN(shared) *shared = arg;
    const struct FN(pass) *pass = shared->pass;
    const real *x = VALUES(pass->chain->X);
    const int64_t rows = pass->chain->X->rows, n = pass->n;
    struct FN(share) share = {.shared = shared, .chain = *pass->chain, .tally = &pass->tallies[part]};
    if (part > 0) share.chain.curvature = share.chain.sums = share.chain.products = NULL;
    share.first = ki_part_begin(shared->slices, part, parts);
    share.end = ki_part_begin(shared->slices, part + 1, parts);
    share.block = FN(shared_block_rows)(pass, parts);
    share.sum = pass->copies;
    share.w = share.sum + (pass->levels - 1) * pass->copy;
    const int64_t from = FN(slice_begin)(shared, share.first), to = FN(slice_begin)(shared, share.end);
    memset(share.sum + from, 0, (size_t)(to - from) * sizeof(real));
    memset(share.w + from, 0, (size_t)(to - from) * sizeof(real));
    share.tally->value = share.tally->sums[0] = share.tally->sums[1] = 0;
    real *q = share.tally->products;
    for (int64_t row = 0, count = 0, coming;; row += count) {
        coming = ki_min(share.block, rows - row);
        FN(shared_block)(&share, q, x + (row - count) * n, count, coming);
        if (coming == 0 || row % pass->fold == 0) FN(shared_fold)(&share, from, to);
        if (coming == 0) break;
        ki_meet(shared->meeting, parts);
        FN(shared_sum)(&share, q, coming);
        FN(shared_map)(&share, q, row, coming);
        share.set = !share.set;
        count = coming;
    }
    FN(add_column)(pass, 0, 1, from, ki_min(to, n));
}

static kiln_status FN(shared_chain)(struct FN(pass) * pass) {
    const kiln_matrix *X = pass->chain->X;
    struct ki_meeting meeting;
    struct FN(shared) shared = {.pass = pass, .meeting = &meeting};
    const int64_t bytes = pass->padded * (int64_t)sizeof(real);
    shared.slices = ki_min(bytes / FN(SHARED_SLICE), FN(SLICES_MOST));
    const int64_t most = ki_max(ki_min(X->nnz / FN(WORTH_A_THREAD), shared.slices), 1);
    pass->parts = 1;
    FN(plan_folds)(pass);
    pass->room = pass->levels * pass->copy;
    pass->threads = (int)ki_min(X->device->threads, most);
    const kiln_status status = FN(take_scratch)(pass, pass->threads, pass->padded + FN(SHARED_PRODUCTS));
    if (status != KILN_OK) return status;
    shared.products = pass->y + pass->padded;
    FN(lay_out_y)(pass);
    ki_meeting_open(&meeting);
    ki_together(pass->threads, FN(shared_part), &shared);
    ki_meeting_close(&meeting);
    FN(add_tallies)(pass);
    return KILN_OK;
}
