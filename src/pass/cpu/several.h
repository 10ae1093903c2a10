/* CPU body of the passes over a dense X with several columns of y: Q = X Y and W += X^T Q for rows in the
 * cache.
 *
 * A lane belongs to a column of Y, not to one of X: an entry of X is repeated over a vector, times a row of Y
 * gives a part of its row of Q, and times its row of Q a part of a row of W. So there is one instruction for
 * LANES products, no lane is summed up at a row's end, and X may have any number of columns. A group of rows
 * has its sums and its rows of Q in registers while a row of Y and one of W come past once for all of them.
 * Where a row of Y does not fill a vector, it holds `pieces` rows of them, lane c * pieces + p being column c
 * of row p, and that many entries of X are repeated; their sums are added up at the end.
 *
 * X with more columns than that Y and W stay in the first-level cache is taken in slices of columns, each for
 * many rows that wait in the second-level cache, with what they have added up so far beside them. */

enum {
    FN(GROUP) = SIMD_BYTES == 64 ? 8 : 4, /* rows whose sums and products fit into the registers */
    FN(GROUPS) = 4,                       /* for which a slice stays */
    FN(SLICE) = 128,                      /* vectors of y in a slice, and as many of w */
    FN(SHORT_ROW) = 8192                  /* bytes of rows that are asked for as one stream */
};

/* LANES columns of y, or the last ones: as many vectors from `at` on in y and w. */
struct FN(chunk) {
    int64_t first, count, vectors, at;
    int pieces;
};

/* The groups of a block do this; now or next is NULL where there is nothing to scatter or to multiply. */
struct FN(several) {
    const struct FN(pass) * pass;
    struct FN(chunk) chunk;
    int64_t begin, end; /* the slice's vectors */
    FN(vmask) mask;     /* of the last vector's entries */
    const real *now, *next, *q;
    real *w, *ahead;
    real sums[FN(GROUPS) * FN(GROUP) * LANES]; /* of the slices before, row by row */
};

static struct FN(chunk) FN(chunk_of)(int64_t n, int64_t k, int64_t first) {
    struct FN(chunk) chunk = {.first = first, .count = ki_min(k - first, LANES), .at = first * n};
    int64_t slot = 2;
    while (slot < chunk.count) slot *= 2;
    chunk.pieces = (int)(LANES / slot);
    chunk.vectors = ki_max(ki_ceil_div(n, chunk.pieces), 1);
    return chunk;
}

/* Elements of all chunks of y. */
static int64_t FN(several_size)(int64_t n, int64_t k) {
    const struct FN(chunk) last = FN(chunk_of)(n, k, (k - 1) / LANES * LANES);
    return last.at + last.vectors * LANES;
}

/* y's element of row j and column c lies at y[several_place]. */
static int64_t FN(several_place)(const struct FN(chunk) * chunk, int64_t j, int64_t c) {
    const int64_t pieces = chunk->pieces;
    return chunk->at + j / pieces * LANES + (c - chunk->first) * pieces + j % pieces;
}

/* y in chunks, with zeros where it has no columns. */
static void FN(several_lay_out)(real *to, const real *y, int64_t n, int64_t k) {
    memset(to, 0, (size_t)FN(several_size)(n, k) * sizeof(real));
    for (int64_t first = 0; first < k; first += LANES) {
        const struct FN(chunk) chunk = FN(chunk_of)(n, k, first);
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = first; c < first + chunk.count; c++)
                to[FN(several_place)(&chunk, j, c)] = y[j * k + c];
    }
}

/* Bytes of X in a block: what stays in the first-level cache beside y and w, or of wider rows what a slice is
 * worth, as far as two blocks stay in the second-level cache. */
static int64_t FN(several_bytes)(const struct ki_chain *chain) {
    enum { LITTLE = 8192, MUCH = 512 << 10 };
    const int64_t cols = chain->X->cols, row = cols * (int64_t)sizeof(real);
    if (cols * ki_min(chain->k, LANES) <= FN(SLICE) * LANES) return LITTLE;
    return ki_min(FN(GROUPS) * FN(GROUP) * row, MUCH);
}

/* A row of Q in the lanes of its columns; what is behind it falls into lanes of no column, or into none. */
ALWAYS_INLINE FN(vreal) FN(several_q)(int pieces, const real *q) {
    FN(vreal) v = FN(load)(q);
    for (int left = pieces; left > 1; left /= 2) v = FN(twins)(v, false);
    return v;
}

/* R rows of Q out of their sums, with lanes of no column: the next row takes their place. */
ALWAYS_INLINE void FN(several_store)(int pieces, int R, real *q, FN(vreal) sum[FN(GROUP)], int64_t k) {
    real rows[FN(GROUP) * LANES];
    const int slot = LANES / pieces;
    for (int left = pieces, count = FN(GROUP) / 2; left > 1; left /= 2, count /= 2)
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) sum[i] = FN(pair_sums)(sum[2 * i], sum[2 * i + 1]);
    const bool dense = k == slot && R == FN(GROUP);
    for (int i = 0; i * pieces < R; i++) FN(store)((dense ? q : rows) + i * LANES, sum[i]);
    for (int r = 0; !dense && r < R; r++) memcpy(q + r * k, rows + r * slot, (size_t)slot * sizeof(real));
}

/* Vector j of the slice for R rows, of which now and next are the entries that belong to it. All but
 * pointers, n and mask are constants wherever this is inlined. */
ALWAYS_INLINE void FN(several_step)(int pieces, int R, bool scatters, bool multiplies, bool last, int64_t n,
                                    FN(vmask) mask, const real *now, const real *next, real *w, const real *y,
                                    const FN(vreal) q[FN(GROUP)], FN(vreal) sum[FN(GROUP)]) {
    if (multiplies) {
        const FN(vreal) yj = FN(load)(y);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            FN(vreal) x = FN(spread)(pieces, next + r * n);
            if (last) x = FN(masked)(x, mask);
            sum[r] += x * yj;
        }
    }
    if (scatters) {
        FN(vreal) even = FN(load)(w), odd = {0};
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            FN(vreal) x = FN(spread)(pieces, now + r * n);
            if (last) x = FN(masked)(x, mask);
            if (r % 2)
                odd += x * q[r];
            else
                even += x * q[r];
        }
        FN(store)(w, even + odd);
    }
}

/* The compiler is to reach all rows of a group from one pointer: a pointer for each, as it would have them,
 * is more than there are registers. */
#define ONE_POINTER(p) __asm__("" : "+r"(p))

/* The slice for R rows, of which the block has `row` before them. Lines of the groups behind are asked for
 * where rows are short, else lines further on in the same rows. */
ALWAYS_INLINE void FN(several_group)(int pieces, int R, bool scatters, bool multiplies,
                                     struct FN(several) * s, int64_t row) {
    enum { LINE = 64, AHEAD = 2048 };
    const struct FN(chunk) *chunk = &s->chunk;
    const int64_t n = s->pass->n, k = s->pass->k, offset = row * k + chunk->first;
    const int64_t start = row * n + s->begin * pieces, of_a_line = LINE / (pieces * (int64_t)sizeof(real));
    const bool first = s->begin == 0, last = s->end == chunk->vectors, tail = last && pieces > 1;
    const bool stream = n * (int64_t)sizeof(real) < FN(SHORT_ROW);
    const real *now = scatters ? s->now + start : NULL, *next = multiplies ? s->next + start : NULL;
    const real *y = s->pass->y + chunk->at + s->begin * LANES;
    const char *ask = (const char *)(stream ? next + (R - 1) * n : next) + (s->pass->window ? 0 : AHEAD);
    const int64_t ask_row = stream ? LINE : n * (int64_t)sizeof(real), ask_line = stream ? R * LINE : LINE;
    real *w = s->w + chunk->at + s->begin * LANES;
    FN(vreal) q[FN(GROUP)], sum[FN(GROUP)];
#pragma GCC unroll 8
    for (int r = 0; r < FN(GROUP); r++) {
        q[r] = scatters && r < R ? FN(several_q)(pieces, s->q + offset + r * k) : (FN(vreal)){0};
        sum[r] = (FN(vreal)){0};
    }
    for (int64_t left = s->end - s->begin - tail, count; left > 0; left -= count) {
        for (int r = 0; multiplies && R > 1 && r < R; r++) __builtin_prefetch(ask + r * ask_row, 0, 2);
        ask += ask_line;
        count = ki_min(left, of_a_line);
        for (int64_t j = 0; j < count; j++, w += LANES, y += LANES) {
            FN(several_step)(pieces, R, scatters, multiplies, false, n, s->mask, now, next, w, y, q, sum);
            if (scatters) now += pieces;
            if (multiplies) next += pieces;
            ONE_POINTER(now);
            ONE_POINTER(next);
        }
    }
    if (tail) FN(several_step)(pieces, R, scatters, multiplies, true, n, s->mask, now, next, w, y, q, sum);
    if (!multiplies) return;
    real *sums = s->sums + row * LANES;
    for (int r = 0; !first && r < R; r++) sum[r] += FN(load)(sums + r * LANES);
    for (int r = 0; !last && r < R; r++) FN(store)(sums + r * LANES, sum[r]);
    if (last) FN(several_store)(pieces, R, s->ahead + offset, sum, k);
}

/* The slice for `count` rows. */
ALWAYS_INLINE void FN(several_groups)(int pieces, bool scatters, bool multiplies, struct FN(several) * s,
                                      int64_t count) {
    int64_t row = 0;
    for (; row + FN(GROUP) <= count; row += FN(GROUP))
        FN(several_group)(pieces, FN(GROUP), scatters, multiplies, s, row);
    for (; row < count; row++) FN(several_group)(pieces, 1, scatters, multiplies, s, row);
}

NEVER_INLINE void FN(several_slice)(struct FN(several) * s, int64_t count) {
#define PIECES(N)                                                                                            \
    case N:                                                                                                  \
        if (s->now && s->next)                                                                               \
            FN(several_groups)(N, true, true, s, count);                                                     \
        else if (s->now)                                                                                     \
            FN(several_groups)(N, true, false, s, count);                                                    \
        else                                                                                                 \
            FN(several_groups)(N, false, true, s, count);                                                    \
        break;
    switch (s->chunk.pieces) {
        PIECES(1)
#if LANES >= 4
        PIECES(2)
#endif
#if LANES >= 8
        PIECES(4)
#endif
#if LANES >= 16
        PIECES(8)
#endif
    }
#undef PIECES
}

#include "pass/cpu/tiles.h"

/* `count` rows: w += q^T now, and ahead = next y. */
static void FN(several_rows)(const struct FN(pass) * pass, real *w, const real *q, const real *now,
                             real *ahead, const real *next, int64_t count) {
    const int64_t n = pass->n, k = pass->k, most = FN(GROUPS) * FN(GROUP);
    const int64_t tiled = pass->tiled ? FN(tiled_chunks)(k) * LANES : 0;
    struct FN(several) s;
    s.pass = pass;
    s.w = w;
    for (int64_t row = 0; row < count && tiled < k; row += most) {
        s.now = now ? now + row * n : NULL;
        s.next = next ? next + row * n : NULL;
        s.q = now ? q + row * k : NULL;
        s.ahead = next ? ahead + row * k : NULL;
        /* the last chunk's first, as it may reach into the next row's */
        for (int64_t first = (k - 1) / LANES * LANES; first >= tiled; first -= LANES) {
            s.chunk = FN(chunk_of)(n, k, first);
            const int64_t rest = n - (s.chunk.vectors - 1) * s.chunk.pieces;
            for (int i = 0; i < LANES; i++) s.mask[i] = i % s.chunk.pieces < rest ? (real_bits)-1 : 0;
            for (s.begin = 0; s.begin < s.chunk.vectors; s.begin = s.end) {
                s.end = ki_min(s.begin + FN(SLICE), s.chunk.vectors);
                FN(several_slice)(&s, ki_min(count - row, most));
            }
        }
    }
    if (tiled && next) FN(tiled_products)(pass, ahead, next, count);
    if (tiled && now) FN(tiled_scatter)(pass, w, q, now, count);
}
