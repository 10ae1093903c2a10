/* CPU body of the passes over a wide CSR X by tiles (derived/panels_cpu.h): products block of rows by block, then sums panel of columns
 * by panel. Both walk over tiles whose entries lie row by row: y and w are in any order but in the cache, and products are
 * in order. */
#include "derived/panels_cpu.h"

enum { FN(TILE_AHEAD) = 128 /* entries that are asked for early */, FN(SEVERAL) = 4 /* entries of a row */ };

struct FN(wide) {
    const struct ki_chain *chain;
    const struct ki_wide *tiles;
    int64_t width, levels;      /* columns of a panel; copies of its w in a piece */
    real *q, *sums;             /* a product a row; of each piece */
    struct FN(tally) * tallies; /* one per block */
};

/* The tile's first entry; its last one is before what tile_end says. */
static int64_t FN(tile_begin)(const struct FN(wide) * pass, int64_t block, int64_t panel) {
    const struct ki_wide *tiles = pass->tiles;
    const int64_t *start = ki_host(&pass->chain->X->row_start);
    return panel ? tiles->tile_end[block * tiles->panels + panel - 1] : start[tiles->row[block]];
}

/* A tile: to += x from, or to += x^T from where it is transposed. Entries of one row would wait for each other's sum: where
 * rows have several in a tile, four are added up first. Both flags are constants wherever this is inlined. */
ALWAYS_INLINE void FN(tile_in)(bool transposed, bool several, const struct ki_wide *tiles, real *to,
                               int64_t e, int64_t end, const real *from) {
    const uint32_t *word = ki_host(&tiles->word), mask = ((uint32_t)1 << tiles->bits) - 1;
    const real *value = ki_host(&tiles->value);
    const int bits = tiles->bits;
#define COMES(e) (transposed ? word[e] >> bits : word[e] & mask)
#define GOES(e) (transposed ? word[e] & mask : word[e] >> bits)
    for (; e + 4 <= end; e += 4) {
        real p[4];
        __builtin_prefetch(value + e + FN(TILE_AHEAD));
        __builtin_prefetch(word + e + FN(TILE_AHEAD));
        for (int i = 0; i < 4; i++) p[i] = value[e + i] * from[COMES(e + i)];
        if (several && GOES(e) == GOES(e + 3))
            to[GOES(e)] += (p[0] + p[1]) + (p[2] + p[3]);
        else
            for (int i = 0; i < 4; i++) to[GOES(e + i)] += p[i];
    }
    for (; e < end; e++) to[GOES(e)] += value[e] * from[COMES(e)];
#undef COMES
#undef GOES
}

/* q += x y for a tile of `rows` rows. */
static void FN(tile_products)(const struct ki_wide *tiles, int64_t rows, real *q, int64_t e, int64_t end,
                              const real *y) {
    if (end - e > FN(SEVERAL) * rows)
        FN(tile_in)(false, true, tiles, q, e, end, y);
    else
        FN(tile_in)(false, false, tiles, q, e, end, y);
}

/* w += x^T q for a tile. */
static void FN(tile_sums)(const struct ki_wide *tiles, real *w, int64_t e, int64_t end, const real *q) {
    FN(tile_in)(true, false, tiles, w, e, end, q);
}

/* A block's products, mapped. */
static void FN(wide_block)(void *arg, int block) {
    const struct FN(wide) *pass = arg;
    const struct ki_wide *tiles = pass->tiles;
    const int64_t first = tiles->row[block], count = tiles->row[block + 1] - first;
    const real *y = VALUES(pass->chain->y);
    real *q = pass->q + first;
    struct FN(tally) *tally = &pass->tallies[block];
    memset(q, 0, (size_t)count * sizeof(real));
    for (int64_t panel = 0; panel < tiles->panels; panel++) {
        const int64_t begin = FN(tile_begin)(pass, block, panel);
        const int64_t end = tiles->tile_end[block * tiles->panels + panel];
        FN(tile_products)(tiles, count, q, begin, end, y + panel * pass->width);
    }
    tally->value = 0;
    tally->sums[0] = tally->sums[1] = 0;
    for (int64_t row = 0; row < count; row += FN(BLOCK_ROWS))
        FN(turn_block)(pass->chain, tally, q + row, first + row, ki_min(count - row, FN(BLOCK_ROWS)));
}

/* out = alpha * (sum of the panel's pieces) + beta z. */
static void FN(wide_finish)(const struct FN(wide) * pass, int64_t piece) {
    const struct ki_chain *chain = pass->chain;
    const struct ki_wide_piece *pieces = pass->tiles->piece;
    const real alpha = (real)chain->alpha, beta = (real)chain->beta;
    const int64_t first = pieces[piece].panel * pass->width, room = pass->levels * pass->width;
    const int64_t count = ki_min(chain->X->cols - first, pass->width);
    real *sum = pass->sums + piece * room, *out = VALUES(chain->out) + first;
    const real *z = chain->z ? VALUES(chain->z) + first : NULL;
    for (int64_t other = piece + 1; other < pass->tiles->pieces && pieces[other].panel == pieces[piece].panel;
         other++)
        for (int64_t j = 0; j < count; j++) sum[j] += pass->sums[other * room + j];
    for (int64_t j = 0; j < count; j++) out[j] = alpha * sum[j] + (z ? beta * z[j] : 0);
}

/* A piece's sums. In f32 a long running sum loses the small addends (of ones it stops at 2^24), so that it is folded into a
 * second one every now and then. */
static void FN(wide_piece)(void *arg, int i) {
    enum { FOLD = 16 /* entries for each element folded */ };
    const struct FN(wide) *pass = arg;
    const struct ki_wide *tiles = pass->tiles;
    const struct ki_wide_piece *piece = &tiles->piece[i];
    const int64_t width = pass->width;
    const real *q = pass->chain->kind == KI_CHAIN_FUSED ? pass->q : VALUES(pass->chain->y);
    real *sum = pass->sums + i * pass->levels * width, *w = sum + (pass->levels - 1) * width;
    int64_t added = 0;
    memset(sum, 0, (size_t)(pass->levels * width) * sizeof(real));
    for (int64_t block = piece->first; block < piece->end; block++) {
        const int64_t begin = FN(tile_begin)(pass, block, piece->panel);
        const int64_t end = tiles->tile_end[block * tiles->panels + piece->panel];
        FN(tile_sums)(tiles, w, begin, end, q + tiles->row[block]);
        added += end - begin;
        if (sum == w || (added < FOLD * width && block < piece->end - 1)) continue;
        for (int64_t j = 0; j < width; j++) sum[j] += w[j];
        memset(w, 0, (size_t)width * sizeof(real));
        added = 0;
    }
    if (piece->whole) FN(wide_finish)(pass, i);
}

static void FN(wide_join)(void *arg, int i) {
    const struct FN(wide) *pass = arg;
    const struct ki_wide_piece *piece = &pass->tiles->piece[i];
    if (!piece->whole && (i == 0 || piece[-1].panel != piece->panel)) FN(wide_finish)(pass, i);
}

/* The blocks' sums and values, in order. */
static void FN(wide_tallies)(const struct FN(wide) * pass) {
    const struct ki_chain *chain = pass->chain;
    double sum = 0, product = 0, value = 0;
    for (int64_t block = 0; block < pass->tiles->blocks; block++) {
        sum += pass->tallies[block].sums[0];
        product += pass->tallies[block].sums[1];
        value += pass->tallies[block].value;
    }
    if (chain->sums) VALUES(chain->sums)[0] = (real)sum;
    if (chain->products) *(double *)ki_host(&chain->products->values) = product;
    if (chain->value) *chain->value = value;
}

static kiln_status FN(wide_scratch)(struct FN(wide) * pass) {
    enum { LINE = 64 };
    const struct ki_wide *tiles = pass->tiles;
    const int64_t tally_bytes = tiles->blocks * (int64_t)(sizeof(struct FN(tally)) + LINE);
    const int64_t rows = ki_ceil_div(pass->chain->X->rows, LINE) * LINE;
    int64_t elements, bytes;
    struct ki_buffer scratch;
    if (!ki_mul3(tiles->pieces, pass->levels, pass->width, &elements) || !ki_add(elements, rows, &elements) ||
        !ki_mul(elements, sizeof(real), &bytes) || !ki_add(bytes, tally_bytes + LINE, &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the work space overflows: %lld rows", (long long)rows);
    const kiln_status status = ki_device_scratch(pass->chain->X->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    char *base = ki_host(&scratch);
    base += -(uintptr_t)base % LINE;
    pass->tallies = (struct FN(tally) *)(void *)base;
    base += tiles->blocks * (int64_t)sizeof(struct FN(tally));
    for (int64_t block = 0; block < tiles->blocks; block++, base += LINE)
        pass->tallies[block].sums = (double *)(void *)base;
    pass->q = (real *)(void *)base;
    pass->sums = pass->q + rows;
    return KILN_OK;
}

static kiln_status FN(wide_chain)(const struct ki_chain *chain, const struct ki_wide *tiles) {
    const int threads = chain->X->device->threads;
    struct FN(wide) pass = {.chain = chain, .tiles = tiles, .width = (int64_t)1 << tiles->bits};
    pass.levels = sizeof(real) == 4 ? 2 : 1;
    const kiln_status status = FN(wide_scratch)(&pass);
    if (status != KILN_OK) return status;
    if (FN(multiplies)(chain)) {
        ki_parallel(threads, (int)tiles->blocks, FN(wide_block), &pass);
        FN(wide_tallies)(&pass);
    }
    if (chain->kind == KI_CHAIN_PLAIN) return KILN_OK;
    ki_parallel(threads, (int)tiles->pieces, FN(wide_piece), &pass);
    if (tiles->pieces > tiles->panels) ki_parallel(threads, (int)tiles->pieces, FN(wide_join), &pass);
    return KILN_OK;
}
