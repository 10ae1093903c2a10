/* CPU body of the passes over X: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * The rows are cut into parts of about equal work, each with a copy of w of its own; a block of rows is used
 * for its products with y and, while it is still in the cache, scattered into w. The copies are added up in
 * order at the end. How many parts there are depends on the shape alone, and so the result does not depend on
 * the number of threads, wherever copies for sixteen threads are small beside X; where they are not, there is
 * one part a thread, unless the device was opened as deterministic. A sparse X of very many columns is taken
 * in panels (pass/cpu/panels.h). */

#include "dialect/sparse_row.h"
#include "derived/panels_cpu.h"
#include "pass/cpu/row_map.h"

/* Returns where a pass keeps things: copies of w, one per part, and y laid out for the row kernels. */
struct FN(pass) {
    const struct ki_chain *chain;
    int threads, parts, sum_parts, levels;
    int64_t n, k, padded; /* columns, columns of y, n rounded up to whole vectors */
    int64_t batch, block; /* dense rows taken together, and in a block */
    bool narrow;          /* dense rows within a vector: cpu/narrow.h */
    bool several;         /* columns of y, of a dense X: cpu/several.h */
    bool tiled;           /* of these, whole vectors: cpu/tiles.h */
    int64_t products;     /* room for those of a block, with a vector behind it; a thread has two */
    int64_t copy;         /* elements in one part's copy of w */
    int64_t
        room; /* elements that a part adds up in: `levels` copies, the last with y among it where the two are
                             interleaved */
    int64_t fold;        /* rows after which the second level is folded into the first */
    bool interleaved;    /* y and w, column by column */
    int64_t tails;       /* padded rows at `tail`: one, or where several parts may need one, one per part */
    int64_t window;      /* rows of a window (cpu/window.h), one per thread; 0: X is read where it lies */
    int64_t window_size; /* elements */
    real *y, *copies, *tail, *windows, *rooms; /* rooms: for products */
    atomic_bool *taken;                        /* of the threads' windows and rooms */
    struct FN(tally) * tallies;                /* one per part */
    const struct FN(coded) * coded;            /* X has categories; NULL: none */
    double *coded_copies;                      /* of w of their levels, one per part */
};

#include "pass/cpu/several.h"
#include "pass/cpu/dense.h"
#include "pass/cpu/narrow.h"
#include "pass/cpu/csr.h"
#include "pass/cpu/panels.h"

/* Returns whether a pass goes through tiles. */
static bool FN(is_tiled)(const struct ki_chain *chain) {
    return chain->X->format == KILN_DENSE && !FN(is_narrow)(chain) && FN(tiled_chunks)(chain->k) >= 2;
}

/* Rows in a block: whole batches. Small blocks keep memory and arithmetic busy side by side; maps with
 * exponentials want enough rows to fill their vectors, and categories enough for a loop each. */
static int64_t FN(dense_block_rows)(const struct ki_chain *chain, bool coded, int64_t batch) {
    const int64_t little = chain->map == KI_ROW_SCALE && !coded ? FN(BLOCK_BYTES) : 4 * FN(BLOCK_BYTES);
    const int64_t bytes = chain->k > 1 && !FN(is_narrow)(chain) ? FN(several_bytes)(chain) : little;
    const int64_t of_a_row = ki_max(chain->X->cols * (int64_t)sizeof(real), 1);
    const int64_t some = ki_min(ki_min(bytes / of_a_row, FN(BLOCK_ROWS)), FN(BLOCK_PRODUCTS) / chain->k);
    const int64_t rows = FN(is_tiled)(chain) ? FN(tiled_rows)(chain) : some;
    return ki_max(rows / batch, 1) * batch;
}

/* The first row of a part, cut so that rows + entries are about equal in each. */
static int64_t FN(first_row)(const struct FN(pass) * pass, int part) {
    const kiln_matrix *X = pass->chain->X;
    if (X->format == KILN_DENSE) /* whole batches */
        return ki_min(X->rows,
                      pass->batch * ki_part_begin(ki_ceil_div(X->rows, pass->batch), part, pass->parts));
    return ki_row_at(ki_host(&X->row_start), X->rows, ki_part_begin(X->nnz + X->rows, part, pass->parts), 1);
}

static void FN(run_rows)(const struct FN(pass) * pass, int part, real *room, real *w, int64_t first,
                         int64_t end) {
    real *tail = pass->tail + part % pass->tails * pass->padded;
    struct FN(window) window = {.X = pass->chain->X, .room = room, .capacity = pass->window, .limit = end};
    if (pass->chain->X->format == KILN_CSR)
        FN(sparse_range)(pass->chain, &pass->tallies[part], w, first, end);
    else if (pass->narrow)
        FN(narrow_range)(pass, &pass->tallies[part], &window, w, first, end);
    else
        FN(dense_range)(pass, &pass->tallies[part], &window, tail, w, first, end);
}

/* A number of the windows and rooms that no other thread has. There is one for each thread. */
static int FN(take_number)(const struct FN(pass) * pass) {
    int number = 0;
    while (atomic_exchange(&pass->taken[number], true)) number = (number + 1) % pass->threads;
    return number;
}

/* w = 0, with y in its place where they are interleaved. */
static void FN(clear)(const struct FN(pass) * pass, real *w) {
    const int64_t k = pass->k;
    if (!pass->interleaved) {
        memset(w, 0, (size_t)pass->copy * sizeof(real));
        return;
    }
    const real *y = VALUES(pass->chain->y);
    for (int64_t j = 0; j < pass->n; j++)
        for (int64_t c = 0; c < k; c++) {
            w[2 * j * k + c] = y[j * k + c];
            w[(2 * j + 1) * k + c] = 0;
        }
}

/* sum += w; sum may be where w begins, and is then w without the y among it. */
static void FN(fold)(const struct FN(pass) * pass, real *sum, const real *w) {
    const int64_t k = pass->k;
    if (!pass->interleaved) {
        for (int64_t i = 0; sum != w && i < pass->copy; i++) sum[i] += w[i];
        return;
    }
    for (int64_t j = 0; j < pass->n; j++)
        for (int64_t c = 0; c < k; c++)
            sum[j * k + c] = (sum == w ? 0 : sum[j * k + c]) + w[(2 * j + 1) * k + c];
}

/* One part's rows. In f32 a long running sum loses the small addends (of ones it stops at 2^24), so w is
 * folded into a second copy every `fold` rows. */
static void FN(run_part)(void *arg, int part) {
    const struct FN(pass) *pass = arg;
    const int64_t first = FN(first_row)(pass, part), end = FN(first_row)(pass, part + 1);
    const int number = FN(take_number)(pass);
    real *window = pass->window ? pass->windows + number * pass->window_size : NULL;
    real *sum = pass->copies + part * pass->room, *w = sum + (pass->levels - 1) * pass->copy;
    if (sum != w) memset(sum, 0, (size_t)pass->copy * sizeof(real));
    pass->tallies[part].value = 0;
    pass->tallies[part].products = pass->rooms + number * 2 * pass->products;
    memset(pass->tallies[part].sums, 0, 3 * (size_t)pass->k * sizeof(double));
    if (pass->coded) memset(pass->tallies[part].levels, 0, (size_t)pass->coded->size * sizeof(double));
    FN(clear)(pass, w);
    for (int64_t row = first; row < end; row += pass->fold) {
        FN(run_rows)(pass, part, window, w, row, ki_min(end, row + pass->fold));
        if (sum == w) continue;
        FN(fold)(pass, sum, w);
        FN(clear)(pass, w);
    }
    if (sum == w) FN(fold)(pass, sum, w);
    atomic_store(&pass->taken[number], false);
}

enum { FN(SUM_PARTS) = 64, FN(SUM_CHUNK) = 256 };

/* out = alpha * (sum of the copies) + beta z, for elements j of column c, j in [first, end). Copies of narrow
 * rows lie column by column; sparse ones lie as out does, and are taken for one long column. */
static void FN(add_column)(const struct FN(pass) * pass, int64_t c, int64_t stride, int64_t first,
                           int64_t end) {
    const struct ki_chain *chain = pass->chain;
    const real alpha = (real)chain->alpha, beta = (real)chain->beta;
    real *out = VALUES(chain->out), sum[FN(SUM_CHUNK)];
    const real *z = chain->z ? VALUES(chain->z) : NULL;
    for (int64_t at = first, count; at < end; at += count) {
        const real *from = pass->copies + c * pass->padded + at;
        count = ki_min(end - at, FN(SUM_CHUNK));
        memcpy(sum, from, (size_t)count * sizeof(real));
        for (int part = 1; part < pass->parts; part++) {
            const real *other = from + part * pass->room;
            for (int64_t i = 0; i < count; i++) sum[i] += other[i];
        }
        for (int64_t i = 0, to = at * stride + c; i < count; i++, to += stride)
            out[to] = alpha * sum[i] + (z ? beta * z[to] : 0);
    }
}

/* The same for the vectors [first, end) of a chunk of several columns. */
static void FN(add_chunk)(const struct FN(pass) * pass, const struct FN(chunk) * chunk, int64_t first,
                          int64_t end) {
    const struct ki_chain *chain = pass->chain;
    const real alpha = (real)chain->alpha, beta = (real)chain->beta;
    real *out = VALUES(chain->out);
    const real *z = chain->z ? VALUES(chain->z) : NULL;
    for (int64_t at = first; at < end; at++) {
        const real *from = pass->copies + chunk->at + at * LANES;
        FN(vreal) sum = FN(load)(from);
        for (int part = 1; part < pass->parts; part++) sum += FN(load)(from + part * pass->room);
        for (int64_t j = at * chunk->pieces; j < ki_min((at + 1) * chunk->pieces, pass->n); j++)
            for (int64_t c = 0; c < chunk->count; c++) {
                const int64_t to = j * pass->k + chunk->first + c;
                out[to] = alpha * sum[c * chunk->pieces + j % chunk->pieces] + (z ? beta * z[to] : 0);
            }
    }
}

static void FN(add_copies)(void *arg, int part) {
    const struct FN(pass) *pass = arg;
    for (int64_t c = 0; pass->several && c < pass->k; c += LANES) {
        const struct FN(chunk) chunk = FN(chunk_of)(pass->n, pass->k, c);
        FN(add_chunk)
        (pass, &chunk, ki_part_begin(chunk.vectors, part, pass->sum_parts),
         ki_part_begin(chunk.vectors, part + 1, pass->sum_parts));
    }
    if (pass->several) return;
    const bool dense = pass->chain->X->format == KILN_DENSE;
    const int64_t columns = dense ? pass->k : 1, length = dense ? pass->n : pass->n * pass->k;
    const int64_t first = ki_part_begin(length, part, pass->sum_parts);
    const int64_t end = ki_part_begin(length, part + 1, pass->sum_parts);
    for (int64_t c = 0; c < columns; c++) FN(add_column)(pass, c, columns, first, end);
}

/* The parts' column sums and values, in order. */
static void FN(add_tallies)(const struct FN(pass) * pass) {
    const struct ki_chain *chain = pass->chain;
    struct FN(tally) *all = pass->tallies;
    for (int part = 1; part < pass->parts; part++) {
        all->value += pass->tallies[part].value;
        for (int64_t c = 0; c < 3 * pass->k; c++) all->sums[c] += pass->tallies[part].sums[c];
    }
    for (int64_t c = 0; chain->sums && c < pass->k; c++) VALUES(chain->sums)[c] = (real)all->sums[c];
    if (chain->products)
        memcpy(ki_host(&chain->products->values), all->sums + pass->k,
               (size_t)(chain->products->rows * pass->k) * sizeof(double));
    if (chain->value) *chain->value = all->value;
}

enum {
    FN(WORTH_A_THREAD) = 16384, /* entries: below, waking a thread costs more than it saves */
    FN(PARTS_MOST) = 128, /* even for many threads, of which one whose core is shared takes twice as long */
    FN(PARTS_MANY) = 32,  /* where that many copies, or their products, would show */
    FN(PARTS_K) = 64,     /* columns of y from which on products would */
    FN(PARTS_PLENTY) = 16,
    FN(COPIES_BYTES) = 1 << 30, /* where copies take more there is one part a thread */
    FN(COPY_SHARE) = 64,  /* entries for each element of a copy: then the copies cost some 3 % of a pass */
    FN(SMALL_SHARE) = 256 /* the same, for less than 1 % */
};

/* Powers of two, so that the usual numbers of threads divide them. */
static void FN(plan_parts)(struct FN(pass) * pass) {
    const struct ki_chain *chain = pass->chain;
    const kiln_device *device = chain->X->device;
    const int64_t of_a_row =
        chain->map == KI_ROW_SCALE ? 1 : 16; /* exponentials cost as much as some entries */
    const struct FN(coded) *coded = pass->coded;
    const int64_t entries = chain->X->nnz + (coded ? coded->codes->count * chain->X->rows : 0);
    const int64_t work = (entries + of_a_row * chain->X->rows) * chain->k;
    const int64_t of_levels = coded ? coded->size * (8 / (int64_t)sizeof(real)) : 0;
    const int64_t most = ki_max(work / FN(WORTH_A_THREAD), 1), copy = ki_max(pass->copy + of_levels, 1);
    const int64_t bearable = ki_max(2 * work / copy, 1); /* copies that cost no more than the pass */
    const int64_t plenty = ki_power_below(ki_min(FN(PARTS_PLENTY), most));
    const int64_t small =
        chain->k > FN(PARTS_K) ? 0 : ki_min(FN(PARTS_MOST), work / (FN(SMALL_SHARE) * copy));
    const int64_t many = ki_min(FN(PARTS_MANY), work / (FN(COPY_SHARE) * copy));
    int64_t parts = ki_power_below(ki_min(ki_max(small, many), most));
    if (device->options.deterministic)
        parts = ki_max(parts, ki_min(plenty, ki_power_below(bearable)));
    else if (parts < plenty || parts * copy > FN(COPIES_BYTES) / (int64_t)sizeof(real))
        parts = ki_min(ki_min(device->threads, bearable), most);
    pass->parts = (int)parts;
    pass->threads = (int)ki_min(device->threads, ki_min(parts, most));
}

/* Folding costs a walk over w: often enough for the sums' sake, seldom enough not to show beside the rows. */
static void FN(plan_folds)(struct FN(pass) * pass) {
    const kiln_matrix *X = pass->chain->X;
    const int64_t mean_row = ki_max(X->nnz / ki_max(X->rows, 1), 1) * pass->k;
    pass->fold = ki_max(pass->narrow ? 4096 * LANES : 4096, 16 * pass->copy / mean_row);
    pass->levels = sizeof(real) == 4 && pass->copy > 0 && X->rows / pass->parts > pass->fold ? 2 : 1;
    if (pass->levels == 1) pass->fold = ki_max(X->rows, 1);
}

/* Whole blocks, two of them at least, as a walk reads two at a time; vectors of the last row, or group of
 * rows, reach beyond it. */
static void FN(plan_window)(struct FN(pass) * pass) {
    const int64_t of_a_block = ki_max(pass->block * pass->n * (int64_t)sizeof(real), 1);
    pass->window = ki_max(FN(WINDOW_BYTES) / of_a_block, 2) * pass->block;
    pass->window_size = ki_ceil_div(pass->window * pass->n + 2 * LANES, 64) * 64;
}

/* y as the dense row kernels want it: column by column, padded with zeros to whole vectors. */
static void FN(lay_out_y)(struct FN(pass) * pass) {
    const real *y = VALUES(pass->chain->y);
    if (pass->several) {
        FN(several_lay_out)(pass->y, y, pass->n, pass->k);
        return;
    }
    memset(pass->y, 0, (size_t)(pass->k * pass->padded) * sizeof(real));
    for (int64_t j = 0; j < pass->n; j++)
        for (int64_t c = 0; c < pass->k; c++) pass->y[c * pass->padded + j] = y[j * pass->k + c];
}

/* Divides the device's work space among tallies with what they point to, copies, y and tails, each on cache
 * lines of its own. */
static kiln_status FN(take_scratch)(struct FN(pass) * pass, int tallies, int64_t y_size) {
    enum { LINE = 64 };
    const int64_t k = pass->k, rows = pass->chain->X->format == KILN_DENSE ? pass->block : 1;
    pass->products = ki_ceil_div(ki_max(FN(BLOCK_PRODUCTS), rows * k) + LANES, LINE) * LINE;
    const int64_t sums = ki_ceil_div(3 * k, LINE) * LINE, levels = pass->coded ? pass->coded->size : 0;
    const int64_t tally_bytes =
        tallies * ((int64_t)sizeof(struct FN(tally)) + sums * (int64_t)sizeof(double));
    int64_t elements, bytes, coded, windows;
    if (!ki_mul3(tallies, levels, 8, &coded) ||
        !ki_mul(pass->threads, pass->window_size + 2 * pass->products, &windows) ||
        !ki_mul(pass->parts, pass->room, &elements) ||
        !ki_add(elements, y_size + pass->tails * pass->padded, &elements) ||
        !ki_add(elements, windows, &elements) || !ki_mul(elements, sizeof(real), &bytes) ||
        !ki_add(bytes, coded, &bytes) ||
        !ki_add(bytes, tally_bytes + pass->threads * (int64_t)sizeof *pass->taken + LINE, &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the work space overflows: %lld columns", (long long)pass->n);
    struct ki_buffer scratch;
    kiln_status status = ki_device_scratch(pass->chain->X->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    char *base = ki_host(&scratch);
    base += -(uintptr_t)base % LINE;
    pass->tallies = (struct FN(tally) *)(void *)base;
    double *of_parts = (double *)(void *)(base + tallies * (int64_t)sizeof(struct FN(tally)));
    pass->coded_copies = (double *)(void *)(base + tally_bytes);
    for (int part = 0; part < tallies; part++) {
        struct FN(tally) *tally = &pass->tallies[part];
        tally->sums = of_parts + part * sums;
        tally->coded = pass->coded;
        tally->levels = pass->coded_copies + part * levels;
    }
    pass->copies = (real *)(void *)(base + tally_bytes + coded);
    pass->y = pass->copies + pass->parts * pass->room;
    pass->tail = pass->y + y_size;
    pass->windows = pass->tail + pass->tails * pass->padded;
    pass->rooms = pass->windows + pass->threads * pass->window_size;
    pass->taken = (atomic_bool *)(void *)(pass->windows + windows);
    for (int i = 0; i < pass->threads; i++) atomic_init(&pass->taken[i], false);
    return KILN_OK;
}

/* coded: the categories beside chain->X, or NULL. */
static kiln_status FN(walk_chain)(const struct ki_chain *chain, const struct FN(coded) * coded) {
    const kiln_matrix *X = chain->X;
    const bool dense = X->format == KILN_DENSE, copies = chain->kind != KI_CHAIN_PLAIN;
    const bool needs_y = chain->kind == KI_CHAIN_FUSED || chain->kind == KI_CHAIN_PLAIN;
    struct FN(pass) pass = {.chain = chain, .n = X->cols, .k = chain->k, .coded = coded};
    kiln_status status = KILN_OK;
    const struct ki_cpu_panels *panels = NULL;
    if (chain->k == 1 && chain->kind != KI_CHAIN_SQUARES) {
        status = ki_cpu_panels_get(&panels, X, copies, chain->kind == KI_CHAIN_FUSED);
        if (status != KILN_OK) return status;
    }
    if (panels) return FN(panels_chain)(chain, panels);
    pass.narrow = FN(is_narrow)(chain);
    pass.batch = pass.narrow ? LANES : FN(dense_batch)(chain);
    pass.block = FN(dense_block_rows)(chain, coded != NULL, pass.batch);
    pass.padded = ki_max((X->cols + LANES - 1) / LANES, 1) * LANES;
    pass.several = dense && pass.k > 1 && !pass.narrow;
    pass.tiled = FN(is_tiled)(chain);
    const int64_t of_y =
        pass.several ? FN(several_size)(pass.n, pass.k) : pass.k * (dense ? pass.padded : pass.n);
    if (copies) pass.copy = ki_ceil_div(of_y, 64) * 64;
    FN(plan_parts)(&pass);
    FN(plan_folds)(&pass);
    pass.interleaved = FN(interleaves)(chain);
    pass.room = (pass.levels + pass.interleaved) * pass.copy;
    pass.tails = pass.n < LANES ? pass.parts : 1; /* rows as long as a vector reach into the last part only */
    if (dense && X->element) FN(plan_window)(&pass);
    const int64_t y_size = dense && needs_y ? of_y : 0;
    status = FN(take_scratch)(&pass, pass.parts, y_size);
    if (status != KILN_OK) return status;
    if (y_size) FN(lay_out_y)(&pass);
    ki_parallel(pass.threads, pass.parts, FN(run_part), &pass);
    if (copies) {
        pass.sum_parts = pass.n * pass.k * pass.parts > 65536 ? FN(SUM_PARTS) : 1;
        ki_parallel(pass.threads, pass.sum_parts, FN(add_copies), &pass);
        if (coded) FN(finish_coded)(coded, VALUES(chain->out), pass.coded_copies, pass.parts);
    }
    FN(add_tallies)(&pass);
    return KILN_OK;
}

/* The pass over the numbers, with y and out of their own, which the categories join. */
static kiln_status FN(coded_chain)(const struct ki_chain *whole) {
    const struct ki_codes *codes = whole->X->codes;
    const bool multiplies = FN(multiplies)(whole), copies = whole->kind != KI_CHAIN_PLAIN;
    const int64_t k = whole->k, of_numbers = codes->numbers->cols * k, of_levels = codes->slots * k;
    struct FN(coded) coded = {.codes = codes, .whole = whole, .k = k};
    struct ki_chain chain = *whole;
    struct ki_buffer room = {0, 0, 0};
    kiln_matrix y, out;
    kiln_status status;
    int64_t bytes;
    coded.size = copies ? FN(coded_size)(codes, k) : 0;
    if (!ki_mul(2 * of_numbers + of_levels, sizeof(real), &bytes))
        return ki_fail_nomem(SIZE_MAX, "y of a matrix with categories");
    TRY(ki_device_alloc(whole->X->device, &room, bytes));
    real *at = ki_host(&room);
    chain.X = codes->numbers;
    if (multiplies) {
        FN(lay_out_levels)(at, at + of_numbers, codes, VALUES(whole->y), k);
        coded.y = at + of_numbers;
        y = *whole->y;
        y.rows = codes->numbers->cols;
        y.values.handle = (uintptr_t)at;
        chain.y = &y;
    }
    if (copies) {
        out = *whole->out;
        out.rows = codes->numbers->cols;
        out.values.handle = (uintptr_t)(at + of_numbers + of_levels);
        chain.out = &out;
        chain.alpha = 1;
        chain.beta = 0;
        chain.z = NULL;
    }
    status = FN(walk_chain)(&chain, &coded);
done:
    ki_device_release(whole->X->device, &room);
    return status;
}

kiln_status FN(chain)(const struct ki_chain *chain) {
    return chain->X->codes ? FN(coded_chain)(chain) : FN(walk_chain)(chain, NULL);
}
