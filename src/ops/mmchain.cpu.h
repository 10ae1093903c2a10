/* CPU body of the passes over X: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * Each thread owns consecutive rows of about equal work and its own copy of w; a row (a few rows, if dense)
 * is used for its dot product and, while it is still in the cache, scattered into w. The copies are added up
 * in a fixed order at the end, so the result depends on the number of threads but not on their timing. */

/* Where a pass keeps things: copies of w, one per thread, and y laid out for the row kernels. */
struct FN(pass) {
    const struct ki_chain *chain;
    int threads, sum_parts, levels;
    int64_t n, k, padded; /* columns, columns of y, n rounded up to whole vectors */
    int64_t copy;         /* elements in one thread's copy of w, of which it has `levels` */
    int64_t fold;         /* rows after which the second level is folded into the first */
    real *y, *copies, *tail;
};

#define VALUES(A) ((real *)ki_host(&(A)->values))

ALWAYS_INLINE real FN(weight)(const struct ki_chain *chain, int64_t row, int c) {
    if (!chain->v) return 1;
    return VALUES(chain->v)[chain->v->cols == 1 ? row : row * chain->k + c];
}

/* ---- dense ---- */

enum { FN(BATCH) = 4 }; /* rows taken together: w is loaded and stored once for all of them */

/* p[r] = x_r . y for R rows, R being BATCH or 1 and a constant wherever this is inlined. */
ALWAYS_INLINE void FN(dots)(int R, real *p, const real *x, int64_t stride, const real *y, int64_t vectors,
                            FN(vmask) mask) {
    FN(vreal) sum[FN(BATCH)] = {{0}};
    for (int64_t j = 0; j < vectors - 1; j++) {
        FN(vreal) yj = FN(load)(y + j * LANES);
        for (int r = 0; r < R; r++) sum[r] += FN(load)(x + r * stride + j * LANES) * yj;
    }
    FN(vreal) yj = FN(load)(y + (vectors - 1) * LANES);
    for (int r = 0; r < R; r++)
        sum[r] += FN(masked)(FN(load)(x + r * stride + (vectors - 1) * LANES), mask) * yj;
    if (R == FN(BATCH))
        FN(four_lane_sums)(p, sum);
    else
        p[0] = FN(lane_sum)(sum[0]);
}

/* w += sum_r p[r] * x_r, or x_r squared. */
ALWAYS_INLINE void FN(scatters)(int R, bool square, real *w, const real *p, const real *x, int64_t stride,
                                int64_t vectors, FN(vmask) mask) {
    for (int64_t j = 0; j < vectors; j++) {
        FN(vreal) wj = FN(load)(w + j * LANES);
        for (int r = 0; r < R; r++) {
            FN(vreal) xj = FN(load)(x + r * stride + j * LANES);
            if (j == vectors - 1) xj = FN(masked)(xj, mask);
            wj += p[r] * (square ? xj * xj : xj);
        }
        FN(store)(w + j * LANES, wj);
    }
}

/* R consecutive rows from `row`, lying at x. */
ALWAYS_INLINE void FN(dense_rows)(int R, const struct FN(pass) * pass, real *w, int64_t row, const real *x,
                                  FN(vmask) mask) {
    const struct ki_chain *chain = pass->chain;
    int64_t stride = pass->n, vectors = pass->padded / LANES;
    real p[FN(BATCH)];
    for (int c = 0; c < chain->k; c++) {
        switch (chain->kind) {
        case KI_CHAIN_FUSED:
            FN(dots)(R, p, x, stride, pass->y + c * pass->padded, vectors, mask);
            for (int r = 0; r < R; r++) p[r] *= FN(weight)(chain, row + r, c);
            FN(scatters)(R, false, w + c * pass->padded, p, x, stride, vectors, mask);
            break;
        case KI_CHAIN_PLAIN:
            FN(dots)(R, p, x, stride, pass->y + c * pass->padded, vectors, mask);
            for (int r = 0; r < R; r++) {
                int64_t at = (row + r) * chain->k + c;
                real z = chain->z ? (real)chain->beta * VALUES(chain->z)[at] : 0;
                VALUES(chain->out)[at] = (real)chain->alpha * p[r] + z;
            }
            break;
        case KI_CHAIN_TRANSPOSED:
            for (int r = 0; r < R; r++) p[r] = VALUES(chain->y)[(row + r) * chain->k + c];
            FN(scatters)(R, false, w + c * pass->padded, p, x, stride, vectors, mask);
            break;
        case KI_CHAIN_SQUARES:
            for (int r = 0; r < R; r++) p[r] = chain->y ? VALUES(chain->y)[row + r] : 1;
            FN(scatters)(R, true, w, p, x, stride, vectors, mask);
            break;
        }
    }
}

/* Rows [first, end). A row's last vector reaches into the rows behind it and is masked; the matrix's last
 * rows, which have nothing behind them to read, go through a padded copy. */
static void FN(dense_range)(const struct FN(pass) * pass, int t, real *w, int64_t first, int64_t end) {
    const real *x = VALUES(pass->chain->X);
    real *copy = pass->tail + t * pass->padded;
    int64_t n = pass->n, row = first;
    FN(vmask) mask = FN(first_lanes)(n - (pass->padded - LANES));
    int64_t direct = ki_min(end, pass->chain->X->rows - ki_ceil_div(pass->padded, n) + 1);
    for (; row + FN(BATCH) <= direct; row += FN(BATCH))
        FN(dense_rows)(FN(BATCH), pass, w, row, x + row * n, mask);
    for (; row < direct; row++) FN(dense_rows)(1, pass, w, row, x + row * n, mask);
    if (row < end) memset(copy, 0, (size_t)pass->padded * sizeof(real));
    for (; row < end; row++) {
        memcpy(copy, x + row * n, (size_t)n * sizeof(real));
        FN(dense_rows)(1, pass, w, row, copy, mask);
    }
}

/* ---- CSR ---- */

/* Rows [first, end) for one column of y; kind is a constant wherever this is inlined. */
ALWAYS_INLINE void FN(sparse_rows)(enum ki_chain_kind kind, const struct ki_chain *chain, real *w,
                                   int64_t first, int64_t end) {
    const int64_t *start = ki_host(&chain->X->row_start);
    const int32_t *cols = ki_host(&chain->X->col);
    const real *values = VALUES(chain->X), *y = chain->y ? VALUES(chain->y) : NULL;
    const real *v = chain->v ? VALUES(chain->v) : NULL, *z = chain->z ? VALUES(chain->z) : NULL;
    for (int64_t row = first; row < end; row++) {
        const real *value = values + start[row];
        const int32_t *col = cols + start[row];
        const int64_t count = start[row + 1] - start[row];
        if (kind == KI_CHAIN_FUSED) {
            const real dot = FN(sparse_dot)(value, col, count, y);
            FN(sparse_scatter)(w, v ? v[row] * dot : dot, value, col, count);
        } else if (kind == KI_CHAIN_PLAIN) {
            const real dot = (real)chain->alpha * FN(sparse_dot)(value, col, count, y);
            VALUES(chain->out)[row] = z ? dot + (real)chain->beta * z[row] : dot;
        } else if (kind == KI_CHAIN_TRANSPOSED) {
            FN(sparse_scatter)(w, y[row], value, col, count);
        } else {
            const real p = y ? y[row] : 1;
            for (int64_t e = 0; e < count; e++) w[col[e]] += p * value[e] * value[e];
        }
    }
}

static void FN(sparse_range)(const struct FN(pass) * pass, real *w, int64_t first, int64_t end) {
    const struct ki_chain *chain = pass->chain;
    switch (chain->kind) {
    case KI_CHAIN_FUSED: FN(sparse_rows)(KI_CHAIN_FUSED, chain, w, first, end); break;
    case KI_CHAIN_PLAIN: FN(sparse_rows)(KI_CHAIN_PLAIN, chain, w, first, end); break;
    case KI_CHAIN_TRANSPOSED: FN(sparse_rows)(KI_CHAIN_TRANSPOSED, chain, w, first, end); break;
    case KI_CHAIN_SQUARES: FN(sparse_rows)(KI_CHAIN_SQUARES, chain, w, first, end); break;
    }
}

/* k > 1 columns: the innermost loop runs over them, contiguous in y and w. */
static void FN(sparse_block_range)(const struct FN(pass) * pass, real *w, int64_t first, int64_t end) {
    const struct ki_chain *chain = pass->chain;
    const int64_t *start = ki_host(&chain->X->row_start);
    const int32_t *col = ki_host(&chain->X->col);
    const real *value = VALUES(chain->X), *y = VALUES(chain->y);
    const int64_t k = chain->k;
    for (int64_t row = first; row < end; row++) {
        real p[KI_COLUMNS_MAX] = {0};
        if (chain->kind == KI_CHAIN_TRANSPOSED) {
            for (int64_t c = 0; c < k; c++) p[c] = y[row * k + c];
        } else {
            for (int64_t e = start[row]; e < start[row + 1]; e++) {
                const real *ye = y + col[e] * k;
                for (int64_t c = 0; c < k; c++) p[c] += value[e] * ye[c];
            }
        }
        if (chain->kind == KI_CHAIN_PLAIN) {
            for (int64_t c = 0; c < k; c++) {
                real z = chain->z ? (real)chain->beta * VALUES(chain->z)[row * k + c] : 0;
                VALUES(chain->out)[row * k + c] = (real)chain->alpha * p[c] + z;
            }
            continue;
        }
        if (chain->kind == KI_CHAIN_FUSED)
            for (int64_t c = 0; c < k; c++) p[c] *= FN(weight)(chain, row, (int)c);
        for (int64_t e = start[row]; e < start[row + 1]; e++) {
            real *we = w + col[e] * k;
            for (int64_t c = 0; c < k; c++) we[c] += value[e] * p[c];
        }
    }
}

/* ---- both ---- */

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
        FN(dense_range)(pass, t, w, first, end);
    else if (pass->k == 1)
        FN(sparse_range)(pass, w, first, end);
    else
        FN(sparse_block_range)(pass, w, first, end);
}

/* One thread's rows. In f32 a long running sum loses the small addends (of ones it stops at 2^24), so w is
 * folded into a second copy every `fold` rows. */
static void FN(run_range)(void *arg, int t) {
    const struct FN(pass) *pass = arg;
    const kiln_matrix *X = pass->chain->X;
    const int64_t first = FN(first_row)(X, t, pass->threads), end = FN(first_row)(X, t + 1, pass->threads);
    real *sum = pass->copies + t * pass->levels * pass->copy, *w = sum + (pass->levels - 1) * pass->copy;
    memset(sum, 0, (size_t)(pass->levels * pass->copy) * sizeof(real));
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

/* As many threads as the work is worth: below some ten thousand entries starting them costs more than they
 * save, and the copies of w must not cost more than the pass. */
static int FN(pass_threads)(const struct ki_chain *chain, bool needs_copies) {
    int64_t work = (chain->X->nnz + chain->X->rows) * chain->k;
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
    /* Copies begin on cache lines of their own, or the threads would fight over the shared one. */
    if (copies) pass.copy = ki_ceil_div(pass.k * (dense ? pass.padded : pass.n), 64) * 64;
    FN(plan_folds)(&pass);
    int64_t y_size = dense && needs_y ? pass.k * pass.padded : 0, elements, bytes;
    if (!ki_mul3(pass.threads, pass.levels, pass.copy, &elements) ||
        !ki_add(elements, y_size + pass.threads * pass.padded, &elements) ||
        !ki_mul(elements, sizeof(real), &bytes))
        return ki_fail(KILN_ERR_ARGUMENT, "the work space overflows: %lld columns", (long long)pass.n);
    struct ki_buffer scratch;
    kiln_status status = ki_device_scratch(X->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    pass.copies = ki_host(&scratch);
    pass.y = pass.copies + pass.threads * pass.levels * pass.copy;
    pass.tail = pass.y + y_size;
    if (y_size) FN(lay_out_y)(&pass);
    ki_parallel(pass.threads, pass.threads, FN(run_range), &pass);
    if (copies) {
        pass.sum_parts = pass.n * pass.k * pass.threads > 65536 ? FN(SUM_PARTS) : 1;
        ki_parallel(pass.threads, pass.sum_parts, FN(add_copies), &pass);
    }
    return KILN_OK;
}
