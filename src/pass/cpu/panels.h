/* CPU body of the passes over a sparse X by panels of columns (derived/panels_cpu.h): products block of rows
 * by block, then sums panel by panel. Both walk over the parts of blocks in panels, whose entries lie row by
 * row: y and w are in any order but in the cache, and products are in order. */
#include "derived/panels_cpu.h"

enum { FN(PANEL_AHEAD) = 128 /* entries that are asked for early */, FN(SEVERAL) = 4 /* entries of a row */ };

struct FN(panelled) {
    const struct ki_chain *chain;
    const struct ki_cpu_panels *panels;
    int64_t width, levels;      /* columns of a panel; copies of its w in a piece */
    real *q, *sums;             /* a product a row; of each piece */
    struct FN(tally) * tallies; /* one per block */
};

/* The first entry of a block's part in a panel; its last one is before what `end` says. */
static int64_t FN(part_begin)(const struct FN(panelled) * pass, int64_t block, int64_t panel) {
    const struct ki_cpu_panels *panels = pass->panels;
    const int64_t *start = ki_host(&pass->chain->X->row_start);
    return panel ? panels->end[block * panels->count + panel - 1] : start[panels->row[block]];
}

/* A part: to += x from, or to += x^T from where it is transposed. Entries of one row would wait for each
 * other's sum: where rows have several in a part, four are added up first. The flags are constants wherever
 * this is inlined; same: all entries are X->same. */
ALWAYS_INLINE void FN(part_in)(bool transposed, bool several, bool same, const struct FN(panelled) * pass,
                               real *to, int64_t e, int64_t end, const real *from) {
    const struct ki_cpu_panels *panels = pass->panels;
    const uint32_t *word = ki_host(&panels->word), mask = ((uint32_t)1 << panels->bits) - 1;
    const real *value = ki_host(&panels->value), number = (real)pass->chain->X->same;
    const int bits = panels->bits;
#define VALUE(e) (same ? number : value[e])
#define COMES(e) (transposed ? word[e] >> bits : word[e] & mask)
#define GOES(e) (transposed ? word[e] & mask : word[e] >> bits)
    for (; e + 4 <= end; e += 4) {
        real p[4];
        if (!same) __builtin_prefetch(value + e + FN(PANEL_AHEAD));
        __builtin_prefetch(word + e + FN(PANEL_AHEAD));
        for (int i = 0; i < 4; i++) p[i] = VALUE(e + i) * from[COMES(e + i)];
        if (several && GOES(e) == GOES(e + 3))
            to[GOES(e)] += (p[0] + p[1]) + (p[2] + p[3]);
        else
            for (int i = 0; i < 4; i++) to[GOES(e + i)] += p[i];
    }
    for (; e < end; e++) to[GOES(e)] += VALUE(e) * from[COMES(e)];
#undef VALUE
#undef COMES
#undef GOES
}

/* q += x y for a part of `rows` rows. */
static void FN(part_products)(const struct FN(panelled) * pass, int64_t rows, real *q, int64_t e, int64_t end,
                              const real *y) {
    const bool several = end - e > FN(SEVERAL) * rows, same = pass->chain->X->element;
    if (several && same)
        FN(part_in)(false, true, true, pass, q, e, end, y);
    else if (several)
        FN(part_in)(false, true, false, pass, q, e, end, y);
    else if (same)
        FN(part_in)(false, false, true, pass, q, e, end, y);
    else
        FN(part_in)(false, false, false, pass, q, e, end, y);
}

/* w += x^T q for a part. */
static void FN(part_sums)(const struct FN(panelled) * pass, real *w, int64_t e, int64_t end, const real *q) {
    if (pass->chain->X->element)
        FN(part_in)(true, false, true, pass, w, e, end, q);
    else
        FN(part_in)(true, false, false, pass, w, e, end, q);
}

/* A block's products, mapped. */
static void FN(panels_block)(void *arg, int block) {
    const struct FN(panelled) *pass = arg;
    const struct ki_cpu_panels *panels = pass->panels;
    const int64_t first = panels->row[block], count = panels->row[block + 1] - first;
    const real *y = VALUES(pass->chain->y);
    real *q = pass->q + first;
    struct FN(tally) *tally = &pass->tallies[block];
    memset(q, 0, (size_t)count * sizeof(real));
    for (int64_t panel = 0; panel < panels->count; panel++) {
        const int64_t begin = FN(part_begin)(pass, block, panel);
        const int64_t end = panels->end[block * panels->count + panel];
        FN(part_products)(pass, count, q, begin, end, y + panel * pass->width);
    }
    tally->value = 0;
    tally->coded = NULL;
    tally->sums[0] = tally->sums[1] = 0;
    for (int64_t row = 0; row < count; row += FN(BLOCK_ROWS))
        FN(turn_block)(pass->chain, tally, q + row, first + row, ki_min(count - row, FN(BLOCK_ROWS)));
}

/* out = alpha * (sum of the panel's pieces) + beta z. */
static void FN(panels_finish)(const struct FN(panelled) * pass, int64_t piece) {
    const struct ki_chain *chain = pass->chain;
    const struct ki_cpu_piece *pieces = pass->panels->piece;
    const real alpha = (real)chain->alpha, beta = (real)chain->beta;
    const int64_t first = pieces[piece].panel * pass->width, room = pass->levels * pass->width;
    const int64_t count = ki_min(chain->X->cols - first, pass->width);
    real *sum = pass->sums + piece * room, *out = VALUES(chain->out) + first;
    const real *z = chain->z ? VALUES(chain->z) + first : NULL;
    for (int64_t other = piece + 1;
         other < pass->panels->pieces && pieces[other].panel == pieces[piece].panel; other++)
        for (int64_t j = 0; j < count; j++) sum[j] += pass->sums[other * room + j];
    for (int64_t j = 0; j < count; j++) out[j] = alpha * sum[j] + (z ? beta * z[j] : 0);
}

/* A piece's sums. In f32 a long running sum loses the small addends (of ones it stops at 2^24), so that it is
 * folded into a second one every now and then. */
static void FN(panels_piece)(void *arg, int i) {
    enum { FOLD = 16 /* entries for each element folded */ };
    const struct FN(panelled) *pass = arg;
    const struct ki_cpu_panels *panels = pass->panels;
    const struct ki_cpu_piece *piece = &panels->piece[i];
    const int64_t width = pass->width;
    const real *q = pass->chain->kind == KI_CHAIN_FUSED ? pass->q : VALUES(pass->chain->y);
    real *sum = pass->sums + i * pass->levels * width, *w = sum + (pass->levels - 1) * width;
    int64_t added = 0;
    memset(sum, 0, (size_t)(pass->levels * width) * sizeof(real));
    for (int64_t block = piece->first; block < piece->end; block++) {
        const int64_t begin = FN(part_begin)(pass, block, piece->panel);
        const int64_t end = panels->end[block * panels->count + piece->panel];
        FN(part_sums)(pass, w, begin, end, q + panels->row[block]);
        added += end - begin;
        if (sum == w || (added < FOLD * width && block < piece->end - 1)) continue;
        for (int64_t j = 0; j < width; j++) sum[j] += w[j];
        memset(w, 0, (size_t)width * sizeof(real));
        added = 0;
    }
    if (piece->whole) FN(panels_finish)(pass, i);
}

static void FN(panels_join)(void *arg, int i) {
    const struct FN(panelled) *pass = arg;
    const struct ki_cpu_piece *piece = &pass->panels->piece[i];
    if (!piece->whole && (i == 0 || piece[-1].panel != piece->panel)) FN(panels_finish)(pass, i);
}

/* The blocks' sums and values, in order. */
static void FN(panels_tallies)(const struct FN(panelled) * pass) {
    const struct ki_chain *chain = pass->chain;
    double sum = 0, product = 0, value = 0;
    for (int64_t block = 0; block < pass->panels->blocks; block++) {
        sum += pass->tallies[block].sums[0];
        product += pass->tallies[block].sums[1];
        value += pass->tallies[block].value;
    }
    if (chain->sums) VALUES(chain->sums)[0] = (real)sum;
    if (chain->products) *(double *)ki_host(&chain->products->values) = product;
    if (chain->value) *chain->value = value;
}

static kiln_status FN(panels_scratch)(struct FN(panelled) * pass) {
    enum { LINE = 64 };
    const struct ki_cpu_panels *panels = pass->panels;
    const int64_t tally_bytes = panels->blocks * (int64_t)(sizeof(struct FN(tally)) + LINE);
    const int64_t rows = ki_ceil_div(pass->chain->X->rows, LINE) * LINE;
    int64_t elements, bytes;
    struct ki_buffer scratch;
    if (!ki_mul3(panels->pieces, pass->levels, pass->width, &elements) ||
        !ki_add(elements, rows, &elements) || !ki_mul(elements, sizeof(real), &bytes) ||
        !ki_add(bytes, tally_bytes + LINE, &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the work space overflows: %lld rows", (long long)rows);
    const kiln_status status = ki_device_scratch(pass->chain->X->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    char *base = ki_host(&scratch);
    base += -(uintptr_t)base % LINE;
    pass->tallies = (struct FN(tally) *)(void *)base;
    base += panels->blocks * (int64_t)sizeof(struct FN(tally));
    for (int64_t block = 0; block < panels->blocks; block++, base += LINE)
        pass->tallies[block].sums = (double *)(void *)base;
    pass->q = (real *)(void *)base;
    pass->sums = pass->q + rows;
    return KILN_OK;
}

static kiln_status FN(panels_chain)(const struct ki_chain *chain, const struct ki_cpu_panels *panels) {
    const int threads = chain->X->device->threads;
    struct FN(panelled) pass = {.chain = chain, .panels = panels, .width = (int64_t)1 << panels->bits};
    pass.levels = sizeof(real) == 4 ? 2 : 1;
    const kiln_status status = FN(panels_scratch)(&pass);
    if (status != KILN_OK) return status;
    if (FN(multiplies)(chain)) {
        ki_parallel(threads, (int)panels->blocks, FN(panels_block), &pass);
        FN(panels_tallies)(&pass);
    }
    if (chain->kind == KI_CHAIN_PLAIN) return KILN_OK;
    ki_parallel(threads, (int)panels->pieces, FN(panels_piece), &pass);
    if (panels->pieces > panels->count) ki_parallel(threads, (int)panels->pieces, FN(panels_join), &pass);
    return KILN_OK;
}
