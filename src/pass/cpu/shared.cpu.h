/* CPU body of the fused pass over a dense X of rows so wide that a thread's second-level cache does not hold a few of them
 * beside y and w: the threads share each row.
 *
 * A thread owns a range of columns, with its part of y and w, for all rows. It takes the products of its part of a block of
 * rows with y, tells the others, and scatters its part of an earlier block into its part of w meanwhile. Threads together have
 * the caches of all of them for one block, can so take more rows together, and read and write y and w less often; and there is
 * one w to add to and not one a thread.
 *
 * Where the cache holds three blocks, a thread that has the products of one goes on to the next before it adds up
 * everybody's, in the order of the columns: nobody waits unless another is a whole block behind. Else it waits at once, with two
 * blocks under way.
 *
 * Products are kept slice by slice, the slices being cut by the shape alone, and w is added to row after row: the same bits
 * for any number of threads and of rows in a block. Every thread maps a block's products for itself; what the map leaves
 * behind is the first one's. */

enum {
    FN(SHARED_ROW) = 180 << 10, /* bytes of the longest rows that are not shared */
    FN(SLICES) = 64,
    FN(SHARED_ROWS) = 16, /* of a block */
    FN(SHARED_SETS) = 4,  /* of products: the slowest thread may still read those of three blocks before */
    FN(SET_PRODUCTS) = FN(SLICES) * FN(SHARED_ROWS)
};

struct FN(shared) {
    const struct FN(pass) * pass;
    real *products;             /* [set][slice][row] */
    struct ki_meeting *meeting; /* two, for every other block */
};

/* What a thread has of it. */
struct FN(share) {
    const struct FN(shared) * shared;
    struct ki_chain chain;
    struct FN(tally) * tally;
    int64_t first, end;    /* slices */
    int64_t block, behind; /* rows of a block; blocks that come between a block's products and its scatter */
    real *w, *sum;         /* where w is folded into; where it is not, w */
};

static bool FN(is_shared)(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    return X->format == KILN_DENSE && chain->k == 1 && chain->kind == KI_CHAIN_FUSED &&
           X->cols * (int64_t)sizeof(real) > FN(SHARED_ROW);
}

/* The first column of a slice. */
static int64_t FN(slice_begin)(const struct FN(pass) * pass, int64_t slice) {
    return LANES * ki_part_begin(pass->padded / LANES, (int)slice, FN(SLICES));
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
                                   const real *now, const real *next, int64_t ask, const real *y, int64_t n,
                                   int64_t j, int64_t rest, FN(vreal) sum[FN(BATCH)]) {
    if (multiplies) {
        const FN(vreal) yj = FN(load)(y + j);
        for (int r = 0; r < R; r++) {
            FN(ask)(next + r * n + j, ask);
            sum[r] += FN(shared_vector)(next + r * n, j, last, rest) * yj;
        }
    }
    if (scatters) {
        FN(vreal) wj = FN(load)(w + j);
        for (int r = 0; r < R; r++) wj += p[r] * FN(shared_vector)(now + r * n, j, last, rest);
        FN(store)(w + j, wj);
    }
}

/* Columns [from, to) of R rows; the rows' products with y go to ahead. What lies `ask` bytes behind is asked for. */
ALWAYS_INLINE void FN(shared_walk)(int R, bool scatters, bool multiplies, const struct FN(pass) * pass,
                                   real *w, const real *p, real *ahead, const real *now, const real *next,
                                   int64_t ask, int64_t from, int64_t to) {
    const int64_t n = pass->n, whole = ki_min(to, pass->padded - LANES), rest = n - whole;
    FN(vreal) sum[FN(BATCH)] = {{0}};
    for (int64_t j = from; j < whole; j += LANES)
        FN(shared_step)(R, scatters, multiplies, false, w, p, now, next, ask, pass->y, n, j, rest, sum);
    if (whole < to)
        FN(shared_step)(R, scatters, multiplies, true, w, p, now, next, ask, pass->y, n, whole, rest, sum);
    for (int r = 0; multiplies && r < R; r++) ahead[r] = FN(lane_sum)(sum[r]);
}

/* The same for `count` rows of a block: the walks go down the rows, and then to the columns `after` numbers behind. */
ALWAYS_INLINE void FN(shared_rows)(bool scatters, bool multiplies, const struct FN(pass) * pass, real *w,
                                   const real *p, real *ahead, const real *now, const real *next,
                                   int64_t after, int64_t from, int64_t to, int64_t count) {
    const int64_t n = pass->n, size = sizeof(real);
    int64_t r = 0;
#define ROWS(R)                                                                                              \
    for (; r + R <= count; r += R) FN(shared_walk)                                                           \
    (R, scatters, multiplies, pass, w, p + r, ahead + r, now + r * n, next + r * n,                          \
     size * (r + R < count ? R * n : after - r * n), from, to);
    ROWS(4)
    ROWS(2)
    ROWS(1)
#undef ROWS
}

/* The thread's part of a step: scatters the `count` rows at now by p, and takes the products of the `coming` rows at next. */
NEVER_INLINE void FN(shared_block)(const struct FN(share) * share, const real *p, const real *now,
                                   int64_t count, real *products, const real *next, int64_t coming) {
    const struct FN(pass) *pass = share->shared->pass;
    const int64_t begin = FN(slice_begin)(pass, share->first);
    for (int64_t slice = share->first; slice < share->end; slice++) {
        const int64_t from = FN(slice_begin)(pass, slice), to = FN(slice_begin)(pass, slice + 1);
        const int64_t after = slice + 1 < share->end ? to - from : coming * pass->n + begin - from;
        real *ahead = products + slice * FN(SHARED_ROWS);
        if (count == coming) {
            FN(shared_rows)(true, true, pass, share->w, p, ahead, now, next, after, from, to, count);
        } else {
            FN(shared_rows)(true, false, pass, share->w, p, ahead, now, next, after, from, to, count);
            FN(shared_rows)(false, true, pass, share->w, p, ahead, now, next, after, from, to, coming);
        }
    }
}

/* q of `count` rows from the products of all slices, in their order. */
static void FN(shared_sum)(const real *products, real *q, int64_t count) {
    for (int64_t r = 0; r < count; r++) q[r] = 0;
    for (int64_t slice = 0; slice < FN(SLICES); slice++)
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

/* Three blocks in 5/16 of the cache, if those have two rows or more; else two that leave 3/16 of it beside y and w. Where these
 * would not have two rows either, blocks come from the next cache level: four rows read y and w seldom enough. Powers of two, so
 * that every block ends where w is folded. */
static void FN(plan_blocks)(struct FN(share) * share, int parts) {
    const struct FN(pass) *pass = share->shared->pass;
    const int64_t cache = pass->chain->X->device->properties.core_cache;
    const int64_t of_a_row = pass->padded * (int64_t)sizeof(real) / parts;
    const int64_t three = cache * 5 / 16 / (3 * of_a_row), two = (cache * 13 / 16 / of_a_row - 2) / 2;
    const int64_t rows = three > 1 ? three : two > 1 ? two : FN(BATCH);
    share->behind = three > 1;
    share->block = FN(power_below)(ki_min(rows, FN(SHARED_ROWS)));
}

/* The thread's columns [from, to) of all rows: [0, done) are scattered, [done, ready) have their products summed and mapped in
 * q, [ready, taken) are those whose products the others may still be taking. */
static void FN(shared_steps)(const struct FN(share) * share, int parts, int64_t from, int64_t to) {
    const struct FN(shared) *shared = share->shared;
    const struct FN(pass) *pass = shared->pass;
    const real *x = VALUES(pass->chain->X);
    const int64_t rows = pass->chain->X->rows, n = pass->n;
    real *q = share->tally->products;
    uint32_t round[2] = {0};
    for (int64_t step = 0, done = 0, ready = 0, taken = 0; done < rows; step++) {
        real *products = shared->products + step % FN(SHARED_SETS) * FN(SET_PRODUCTS);
        const int64_t coming = ki_min(share->block, rows - taken),
                      next = share->behind ? taken : taken + coming;
        FN(shared_block)(share, q, x + done * n, ready - done, products, x + taken * n, coming);
        if (ready > done && (ready == rows || ready % pass->fold == 0)) FN(shared_fold)(share, from, to);
        if (coming > 0) round[step % 2] = ki_arrive(&shared->meeting[step % 2], parts);
        done = ready;
        taken += coming;
        if (next == ready) continue;
        const int64_t awaited = step - share->behind;
        ki_await(&shared->meeting[awaited % 2], round[awaited % 2]);
        FN(shared_sum)(shared->products + awaited % FN(SHARED_SETS) * FN(SET_PRODUCTS), q, next - ready);
        FN(shared_map)(share, q, ready, next - ready);
        ready = next;
    }
}

static void FN(shared_part)(void *arg, int part, int parts) {
    const struct FN(shared) *shared = arg;
    const struct FN(pass) *pass = shared->pass;
    struct FN(share) share = {.shared = shared, .chain = *pass->chain, .tally = &pass->tallies[part]};
    if (part > 0) share.chain.curvature = share.chain.sums = share.chain.products = NULL;
    share.first = ki_part_begin(FN(SLICES), part, parts);
    share.end = ki_part_begin(FN(SLICES), part + 1, parts);
    FN(plan_blocks)(&share, parts);
    share.sum = pass->copies;
    share.w = share.sum + (pass->levels - 1) * pass->copy;
    const int64_t from = FN(slice_begin)(pass, share.first), to = FN(slice_begin)(pass, share.end);
    memset(share.sum + from, 0, (size_t)(to - from) * sizeof(real));
    memset(share.w + from, 0, (size_t)(to - from) * sizeof(real));
    share.tally->value = share.tally->sums[0] = share.tally->sums[1] = 0;
    FN(shared_steps)(&share, parts, from, to);
    FN(add_column)(pass, 0, 1, from, ki_min(to, pass->n));
}

static kiln_status FN(shared_chain)(struct FN(pass) * pass) {
    const kiln_matrix *X = pass->chain->X;
    struct ki_meeting meeting[2];
    struct FN(shared) shared = {.pass = pass, .meeting = meeting};
    const int64_t most = ki_max(ki_min(X->nnz / FN(WORTH_A_THREAD), FN(SLICES)), 1);
    pass->parts = 1;
    FN(plan_folds)(pass);
    pass->room = pass->levels * pass->copy;
    pass->threads = (int)ki_min(X->device->threads, most);
    const kiln_status status =
        FN(take_scratch)(pass, pass->threads, pass->padded + FN(SHARED_SETS) * FN(SET_PRODUCTS));
    if (status != KILN_OK) return status;
    shared.products = pass->y + pass->padded;
    FN(lay_out_y)(pass);
    for (int i = 0; i < 2; i++) ki_meeting_open(&meeting[i]);
    ki_together(pass->threads, FN(shared_part), &shared);
    for (int i = 0; i < 2; i++) ki_meeting_close(&meeting[i]);
    FN(add_tallies)(pass);
    return KILN_OK;
}
