/* CPU body of the passes over X: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * Each thread owns consecutive rows of about equal work and its own copy of w; a row (a few rows, if dense)
 * is used for its dot product and, while it is still in the cache, scattered into w. The copies are added up
 * in a fixed order at the end, so the result depends on the number of threads but not on their timing. */

#include "ops/row_map.cpu.h"

/* Where a pass keeps things: copies of w, one per thread, and y laid out for the row kernels. */
struct FN(pass) {
    const struct ki_chain *chain;
    int threads, sum_parts, levels;
    int64_t n, k, padded; /* columns, columns of y, n rounded up to whole vectors */
    int64_t block;        /* dense rows in a block */
    int64_t copy;         /* elements in one thread's copy of w, of which it has `levels` */
    int64_t fold;         /* rows after which the second level is folded into the first */
    real *y, *copies, *tail;
    struct FN(tally) * tallies; /* one per thread */
};

#include "ops/mmchain_dense.cpu.h"
#include "ops/mmchain_csr.cpu.h"

/* The first row of part t of `parts`, cut so that rows + entries are about equal in each. */
static int64_t FN(first_row)(const kiln_matrix *X, int t, int parts) {
    if (X->format == KILN_DENSE) return ki_part_begin(X->rows, t, parts);
    const int64_t *start = ki_host(&X->row_start);
    int64_t goal = ki_part_begin(X->nnz + X->rows, t, parts);
    int64_t low = 0, high = X->rows;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (start[middle] + middle < goal)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void FN(run_rows)(const struct FN(pass) * pass, int t, real *w, int64_t first, int64_t end) {
    if (pass->chain->X->format == KILN_DENSE)
        FN(dense_range)(pass, &pass->tallies[t], pass->tail + t * pass->padded, w, first, end);
    else
        FN(sparse_range)(pass, &pass->tallies[t], w, first, end);
}

/* One thread's rows. In f32 a long running sum loses the small addends (of ones it stops at 2^24), so w is
 * folded into a second copy every `fold` rows. */
static void FN(run_range)(void *arg, int t) {
    const struct FN(pass) *pass = arg;
    const kiln_matrix *X = pass->chain->X;
    const int64_t first = FN(first_row)(X, t, pass->threads), end = FN(first_row)(X, t + 1, pass->threads);
    real *sum = pass->copies + t * pass->levels * pass->copy, *w = sum + (pass->levels - 1) * pass->copy;
    memset(sum, 0, (size_t)(pass->levels * pass->copy) * sizeof(real));
    pass->tallies[t] = (struct FN(tally)){0};
    for (int64_t row = first; row < end; row += pass->fold) {
        FN(run_rows)(pass, t, w, row, ki_min(end, row + pass->fold));
        for (int64_t i = 0; pass->levels > 1 && i < pass->copy; i++) {
            sum[i] += w[i];
            w[i] = 0;
        }
    }
}

enum { FN(SUM_PARTS) = 64 };

/* out = alpha * (sum of the copies) + beta z. Dense copies lie column by column, sparse ones as out does. */
static void FN(add_copies)(void *arg, int part) {
    const struct FN(pass) *pass = arg;
    const struct ki_chain *chain = pass->chain;
    const bool dense = chain->X->format == KILN_DENSE;
    const int64_t k = pass->k, end = ki_part_begin(pass->n * k, part + 1, pass->sum_parts);
    const real alpha = (real)chain->alpha, beta = (real)chain->beta;
    for (int64_t i = ki_part_begin(pass->n * k, part, pass->sum_parts); i < end; i++) {
        const real *from = pass->copies + (dense ? i % k * pass->padded + i / k : i);
        real sum = from[0];
        for (int t = 1; t < pass->threads; t++) sum += from[t * pass->levels * pass->copy];
        VALUES(chain->out)[i] = alpha * sum + (chain->z ? beta * VALUES(chain->z)[i] : 0);
    }
}

/* The threads' column sums and values, in order. */
static void FN(add_tallies)(const struct FN(pass) * pass) {
    const struct ki_chain *chain = pass->chain;
    struct FN(tally) all = {0};
    for (int t = 0; t < pass->threads; t++) {
        all.value += pass->tallies[t].value;
        for (int64_t c = 0; c < pass->k; c++) all.sums[c] += pass->tallies[t].sums[c];
    }
    for (int64_t c = 0; chain->sums && c < pass->k; c++) VALUES(chain->sums)[c] = (real)all.sums[c];
    if (chain->value) *chain->value = all.value;
}

/* As many threads as the work is worth: below some ten thousand entries starting them costs more than they
 * save, and the copies of w must not cost more than the pass. */
static int FN(pass_threads)(const struct ki_chain *chain, bool needs_copies) {
    const int64_t of_a_row =
        chain->map == KI_ROW_SCALE ? 1 : 16; /* exponentials cost as much as some entries */
    int64_t work = (chain->X->nnz + of_a_row * chain->X->rows) * chain->k;
    int64_t threads = ki_min(chain->X->device->threads, work / 16384);
    if (needs_copies) threads = ki_min(threads, 2 * work / ki_max(chain->X->cols * chain->k, 1));
    return (int)ki_max(threads, 1);
}

/* Folding costs a walk over w: often enough for the sums' sake, seldom enough not to show beside the rows. */
static void FN(plan_folds)(struct FN(pass) * pass) {
    const kiln_matrix *X = pass->chain->X;
    const int64_t mean_row = ki_max(X->nnz / ki_max(X->rows, 1), 1) * pass->k;
    pass->fold = ki_max(4096, 16 * pass->copy / mean_row);
    pass->levels = sizeof(real) == 4 && pass->copy > 0 && X->rows / pass->threads > pass->fold ? 2 : 1;
    if (pass->levels == 1) pass->fold = ki_max(X->rows, 1);
}

/* y as the dense row kernels want it: column by column, padded with zeros to whole vectors. */
static void FN(lay_out_y)(struct FN(pass) * pass) {
    const real *y = VALUES(pass->chain->y);
    memset(pass->y, 0, (size_t)(pass->k * pass->padded) * sizeof(real));
    for (int64_t j = 0; j < pass->n; j++)
        for (int64_t c = 0; c < pass->k; c++) pass->y[c * pass->padded + j] = y[j * pass->k + c];
}

static kiln_status FN(chain)(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const bool dense = X->format == KILN_DENSE, copies = chain->kind != KI_CHAIN_PLAIN;
    const bool needs_y = chain->kind == KI_CHAIN_FUSED || chain->kind == KI_CHAIN_PLAIN;
    struct FN(pass) pass = {.chain = chain, .n = X->cols, .k = chain->k};
    pass.threads = FN(pass_threads)(chain, copies);
    pass.padded = ki_max((X->cols + LANES - 1) / LANES, 1) * LANES;
    pass.block = FN(dense_block_rows)(chain);
    /* Copies begin on cache lines of their own, or the threads would fight over the shared one. */
    if (copies) pass.copy = ki_ceil_div(pass.k * (dense ? pass.padded : pass.n), 64) * 64;
    FN(plan_folds)(&pass);
    int64_t y_size = dense && needs_y ? pass.k * pass.padded : 0, elements, bytes;
    const int64_t tally_bytes = pass.threads * (int64_t)sizeof(struct FN(tally));
    if (!ki_mul3(pass.threads, pass.levels, pass.copy, &elements) ||
        !ki_add(elements, y_size + pass.threads * pass.padded, &elements) ||
        !ki_mul(elements, sizeof(real), &bytes) || !ki_add(bytes, tally_bytes, &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the work space overflows: %lld columns", (long long)pass.n);
    struct ki_buffer scratch;
    kiln_status status = ki_device_scratch(X->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    pass.tallies = ki_host(&scratch);
    pass.copies = (real *)(pass.tallies + pass.threads);
    pass.y = pass.copies + pass.threads * pass.levels * pass.copy;
    pass.tail = pass.y + y_size;
    if (y_size) FN(lay_out_y)(&pass);
    ki_parallel(pass.threads, pass.threads, FN(run_range), &pass);
    if (copies) {
        pass.sum_parts = pass.n * pass.k * pass.threads > 65536 ? FN(SUM_PARTS) : 1;
        ki_parallel(pass.threads, pass.sum_parts, FN(add_copies), &pass);
    }
    FN(add_tallies)(&pass);
    return KILN_OK;
}
