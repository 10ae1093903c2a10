/* CPU body of ki_column_sums (ops/linear/scales.h): for each column the sums of v (x - c)^2, v (x - c) and v
 * (y - d) x.
 *
 * Rows come in batches, so that a vector of sums is loaded once for several of them. KI_COLUMN_SUMS_CHAIN
 * rows are added in `real`, their sums in double, part by part and in order: the result depends on the shape,
 * and not on the number of threads. */
#include "ops/linear/scales.h"
#include "pass/cpu/rows.h"
#include "pass/cpu/window.h"

enum {
    FN(SUMS_KINDS) = 3,
    FN(SUMS_BATCH) = 4,   /* rows taken together */
    FN(SUMS_PARTS) = 64,  /* at most, */
    FN(SUMS_ROWS) = 64,   /* and of so many rows at least, beside which a part's own sums are few */
    FN(SUMS_AHEAD) = 8192 /* bytes that memory is asked for early */
};

struct FN(column_walk) {
    const struct ki_column_sums *sums;
    int parts;
    int64_t padded; /* columns, in whole vectors */
    double *totals; /* parts x kinds x padded */
    real *chains;   /* the same of rows that have not gone there yet */
    const real *c;  /* padded: c, or zeros */
    real *windows;  /* of parts (pass/cpu/window.h); NULL: X is read where it lies */
    int64_t window; /* rows of one */
};

/* A vector of columns of R rows, a constant wherever this is inlined; `left` columns of it are X's. y: less
 * d, times v. */
ALWAYS_INLINE void FN(sum_vector)(int R, const struct FN(column_walk) * walk, real *chain, const real *x,
                                  const real *c, int64_t left, const real *v, const real *y) {
    const int64_t n = walk->sums->X->cols, padded = walk->padded;
    const FN(vreal) centre = FN(load)(c);
    FN(vreal) square = FN(load)(chain), sum = FN(load)(chain + padded), right = FN(load)(chain + 2 * padded);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++, x += n) {
        __builtin_prefetch((const char *)x + FN(SUMS_AHEAD), 0, 2);
        const FN(vreal) xr = left < LANES ? FN(load_first)(x, left) : FN(load)(x), off = xr - centre,
                        weighted = v[r] * off;
        square += weighted * off;
        sum += weighted;
        right += y[r] * xr;
    }
    FN(store)(chain, square);
    FN(store)(chain + padded, sum);
    FN(store)(chain + 2 * padded, right);
}

ALWAYS_INLINE void FN(sum_rows)(int R, const struct FN(column_walk) * walk, struct FN(window) * window,
                                real *chain, int64_t row) {
    const struct ki_column_sums *sums = walk->sums;
    const int64_t n = sums->X->cols;
    const real *x = FN(rows_at)(window, row, R);
    real v[FN(SUMS_BATCH)], y[FN(SUMS_BATCH)];
    for (int r = 0; r < R; r++) {
        v[r] = sums->v ? VALUES(sums->v)[row + r] : 1;
        y[r] = sums->y ? v[r] * (VALUES(sums->y)[row + r] - (real)sums->d) : 0;
    }
    for (int64_t j = 0; j < n; j += LANES)
        FN(sum_vector)(R, walk, chain + j, x + j, walk->c + j, n - j, v, y);
}

static void FN(column_part)(void *arg, int part) {
    const struct FN(column_walk) *walk = arg;
    const int64_t rows = walk->sums->X->rows, size = FN(SUMS_KINDS) * walk->padded;
    const int64_t end = ki_part_begin(rows, part + 1, walk->parts);
    double *total = walk->totals + part * size;
    real *chain = walk->chains + part * size;
    struct FN(window) window = {.X = walk->sums->X, .capacity = walk->window, .limit = end};
    if (walk->windows) window.room = walk->windows + part * walk->window * walk->sums->X->cols;
    memset(total, 0, (size_t)size * sizeof *total);
    for (int64_t row = ki_part_begin(rows, part, walk->parts); row < end;) {
        const int64_t until = ki_min(end, row + KI_COLUMN_SUMS_CHAIN);
        memset(chain, 0, (size_t)size * sizeof *chain);
        for (; FN(side_by_side)(walk->sums->X->cols) && row + FN(SUMS_BATCH) <= until; row += FN(SUMS_BATCH))
            FN(sum_rows)(FN(SUMS_BATCH), walk, &window, chain, row);
        for (; row < until; row++) FN(sum_rows)(1, walk, &window, chain, row);
        for (int64_t i = 0; i < size; i++) total[i] += (double)chain[i];
    }
}

kiln_status FN(column_sums)(const struct ki_column_sums *sums) {
    const kiln_matrix *X = sums->X;
    kiln_matrix *const out[FN(SUMS_KINDS)] = {sums->square, sums->sum, sums->right};
    struct FN(column_walk) walk = {.sums = sums, .padded = ki_ceil_div(X->cols, LANES) * LANES};
    struct ki_buffer scratch;
    int64_t doubles, reals;
    walk.parts = (int)ki_max(ki_min(X->rows / FN(SUMS_ROWS), FN(SUMS_PARTS)), 1);
    if (!ki_mul3(walk.parts * FN(SUMS_KINDS), walk.padded, 8, &doubles))
        return ki_fail_nomem(SIZE_MAX, "the columns' sums");
    if (X->element)
        walk.window = ki_max(FN(WINDOW_BYTES) / (X->cols * (int64_t)sizeof(real)),
                             FN(side_by_side)(X->cols) ? FN(SUMS_BATCH) : 1);
    reals = (doubles / 8 + walk.padded + walk.parts * walk.window * X->cols) * (int64_t)sizeof(real);
    const kiln_status status = ki_device_scratch(X->device, &scratch, doubles + reals);
    if (status != KILN_OK) return status;
    walk.totals = ki_host(&scratch);
    walk.chains = (real *)(walk.totals + doubles / 8);
    real *centre = walk.chains + doubles / 8;
    memset(centre, 0, (size_t)walk.padded * sizeof *centre);
    if (sums->c) memcpy(centre, VALUES(sums->c), (size_t)X->cols * sizeof *centre);
    walk.c = centre;
    if (X->element) walk.windows = centre + walk.padded;
    ki_parallel(X->device->threads, walk.parts, FN(column_part), &walk);
    for (int kind = 0; kind < FN(SUMS_KINDS); kind++)
        for (int64_t j = 0; out[kind] && j < X->cols; j++) {
            double total = 0;
            for (int part = 0; part < walk.parts; part++)
                total += walk.totals[(part * FN(SUMS_KINDS) + kind) * walk.padded + j];
            VALUES(out[kind])[j] = (real)total;
        }
    return KILN_OK;
}
