/* CPU body of the passes over a dense X with more columns of y than fill a vector: register tiles.
 *
 * With many columns a pass is two matrix products, and loads bound what several.h does: each entry of X is
 * loaded again for each vector of columns. Here two vectors share it: a tile of GROUP rows and two vectors of
 * Q, or of GROUP columns of X and two vectors of W, is added up in registers, for which it loads GROUP
 * entries and two vectors. A block of rows stays in the second-level cache from its products to its scatter,
 * so that X comes from memory once, and W is loaded and stored once a block. y lies in the chunks of
 * several.h; what is left of y besides whole vectors goes through its bodies. */

enum {
    FN(TILE_SLICE) = 128, /* columns of X whose two vectors of y stay in the first-level cache */
    FN(TILE_ROWS) = 64,   /* rows of a block, at most */
    FN(TILE_FEW) = 32,    /* of those that lie in as many pages or more, whose addresses are to be kept */
    FN(TILE_LITTLE) = 128 << 10, /* bytes of X in a block of more rows, at most */
    FN(TILE_MUCH) = 1 << 20,    /* bytes of X in a block, at most, unless that is less than a group of rows */
    FN(TILE_PRODUCTS) = 1 << 17 /* bytes of products in a block, at most, likewise */
};

/* Chunks of y that fill a vector, or need one for themselves: the first ones. */
static int64_t FN(tiled_chunks)(int64_t k) {
    const struct FN(chunk) last = FN(chunk_of)(1, k, (k - 1) / LANES * LANES);
    return last.first / LANES + (last.pieces == 1);
}

/* Rows in a block. */
static int64_t FN(tiled_rows)(const struct ki_chain *chain) {
    const int64_t size = sizeof(real), row = ki_max(chain->X->cols * size, 1);
    const int64_t few = ki_min(FN(TILE_FEW), FN(TILE_MUCH) / row);
    const int64_t rows = ki_min(ki_max(FN(TILE_LITTLE) / row, few), FN(TILE_ROWS));
    return ki_min(rows, FN(TILE_PRODUCTS) / (chain->k * size));
}

/* V chunks from the first of two, where the last vector holds `lanes` columns. */
struct FN(tile) {
    const struct FN(pass) * pass;
    int64_t first, lanes, at[2];
};

/* R rows of Q, in V vectors: their products with the columns [begin, end) of X; what they are so far is added
 * to unless these are the first. R and V are constants wherever this is inlined. */
ALWAYS_INLINE void FN(tile_products)(int R, int V, const struct FN(tile) * tile, real *q, const real *x,
                                     int64_t begin, int64_t end) {
    const int64_t n = tile->pass->n, k = tile->pass->k;
    const real *y0 = tile->pass->y + tile->at[0], *y1 = tile->pass->y + tile->at[V - 1];
    FN(vreal) sum[FN(GROUP)][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) sum[r][v] = begin > 0 ? FN(load)(q + r * k + v * LANES) : (FN(vreal)){0};
    x += begin;
    for (int64_t j = begin; j < end; j++, x++) {
        const FN(vreal) a = FN(load)(y0 + j * LANES), b = V > 1 ? FN(load)(y1 + j * LANES) : a;
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const FN(vreal) entry = FN(spread)(1, x + r * n);
            sum[r][0] += entry * a;
            if (V > 1) sum[r][1] += entry * b;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        if (V > 1) FN(store)(q + r * k, sum[r][0]);
        if (tile->lanes == LANES)
            FN(store)(q + r * k + (V - 1) * LANES, sum[r][V - 1]);
        else
            FN(store_first)(q + r * k + (V - 1) * LANES, sum[r][V - 1], tile->lanes);
    }
}

/* J rows of W, those of the columns of X from j on, in V vectors: what `count` rows of Q add to them. */
ALWAYS_INLINE void FN(tile_scatter)(int J, int V, const struct FN(tile) * tile, real *w, const real *q,
                                    const real *x, int64_t j, int64_t count) {
    const int64_t n = tile->pass->n, k = tile->pass->k;
    real *w0 = w + tile->at[0] + j * LANES, *w1 = w + tile->at[V - 1] + j * LANES;
    FN(vreal) sum[FN(GROUP)][2];
#pragma GCC unroll 8
    for (int i = 0; i < J; i++) {
        sum[i][0] = FN(load)(w0 + i * LANES);
        if (V > 1) sum[i][1] = FN(load)(w1 + i * LANES);
    }
    x += j;
    for (int64_t r = 0; r < count; r++, x += n, q += k) {
        const FN(vreal) a = FN(load)(q), b = V > 1 ? FN(load)(q + LANES) : a;
#pragma GCC unroll 8
        for (int i = 0; i < J; i++) {
            const FN(vreal) entry = FN(spread)(1, x + i);
            sum[i][0] += entry * a;
            if (V > 1) sum[i][1] += entry * b;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < J; i++) {
        FN(store)(w0 + i * LANES, sum[i][0]);
        if (V > 1) FN(store)(w1 + i * LANES, sum[i][1]);
    }
}

/* All rows of a block, and all columns of X. */
ALWAYS_INLINE void FN(tile_column_products)(int V, const struct FN(tile) * tile, real *q, const real *x,
                                            int64_t count, int64_t begin, int64_t end) {
    const int64_t n = tile->pass->n, k = tile->pass->k;
    int64_t row = 0;
    q += tile->first;
    for (; row + FN(GROUP) <= count; row += FN(GROUP))
        FN(tile_products)(FN(GROUP), V, tile, q + row * k, x + row * n, begin, end);
    for (; row < count; row++) FN(tile_products)(1, V, tile, q + row * k, x + row * n, begin, end);
}

ALWAYS_INLINE void FN(tile_column_scatter)(int V, const struct FN(tile) * tile, real *w, const real *q,
                                           const real *x, int64_t count) {
    const int64_t n = tile->pass->n;
    int64_t j = 0;
    q += tile->first;
    for (; j + FN(GROUP) <= n; j += FN(GROUP)) FN(tile_scatter)(FN(GROUP), V, tile, w, q, x, j, count);
    for (; j + 2 <= n; j += 2) FN(tile_scatter)(2, V, tile, w, q, x, j, count);
    if (j < n) FN(tile_scatter)(1, V, tile, w, q, x, j, count);
}

/* The tile of chunks `chunk` and, if there is one, `chunk` + 1. */
static struct FN(tile) FN(tile_of)(const struct FN(pass) * pass, int64_t chunk, bool two) {
    const int64_t first = chunk * LANES, last = first + (two ? LANES : 0);
    return (struct FN(tile)){.pass = pass,
                             .first = first,
                             .lanes = ki_min(pass->k - last, LANES),
                             .at = {first * pass->n, last * pass->n}};
}

/* ahead = next y for `count` rows, in the columns of whole vectors. A slice of X serves all of them while it
 * is in the cache. */
NEVER_INLINE void FN(tiled_products)(const struct FN(pass) * pass, real *ahead, const real *next,
                                     int64_t count) {
    const int64_t n = pass->n, chunks = FN(tiled_chunks)(pass->k);
    int64_t begin = 0;
    do {
        const int64_t end = ki_min(begin + FN(TILE_SLICE), n);
        for (int64_t chunk = 0; chunk < chunks; chunk += 2) {
            const bool two = chunk + 1 < chunks;
            const struct FN(tile) tile = FN(tile_of)(pass, chunk, two);
            if (two)
                FN(tile_column_products)(2, &tile, ahead, next, count, begin, end);
            else
                FN(tile_column_products)(1, &tile, ahead, next, count, begin, end);
        }
        begin = end;
    } while (begin < n);
}

/* w += q^T now for `count` rows, in the columns of whole vectors. */
NEVER_INLINE void FN(tiled_scatter)(const struct FN(pass) * pass, real *w, const real *q, const real *now,
                                    int64_t count) {
    const int64_t chunks = FN(tiled_chunks)(pass->k);
    for (int64_t chunk = 0; chunk < chunks; chunk += 2) {
        const bool two = chunk + 1 < chunks;
        const struct FN(tile) tile = FN(tile_of)(pass, chunk, two);
        if (two)
            FN(tile_column_scatter)(2, &tile, w, q, now, count);
        else
            FN(tile_column_scatter)(1, &tile, w, q, now, count);
    }
}
