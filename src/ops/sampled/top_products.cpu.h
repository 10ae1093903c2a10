/* CPU body of ki_top_products. B's rows lie side by side in panels of two vectors, [panel][k][column], so
 * that a tile of TILE rows of A and one panel is a product in registers: for each k the panel's two vectors,
 * and TILE numbers of A. Its scores are compared with each row's worst so far, which few beat, and stored
 * nowhere else. A part is KI_TOP_ROWS rows: a panel stays in the first cache while all of its tiles go by. */
#undef TILE
#define TILE (SIMD_BYTES == 64 ? 8 : 4) /* as many as there are registers for */
#undef PANEL
#define PANEL (2 * LANES)

/* Panel `part` of B. */
static void FN(top_pack)(void *arg, int part) {
    const struct ki_top_work *work = arg;
    const real *b = work->b;
    real *to = (real *)work->panels + (int64_t)part * PANEL * work->r;
    for (int64_t c = 0; c < PANEL; c++) {
        const int64_t column = (int64_t)part * PANEL + c;
        for (int64_t k = 0; k < work->r; k++)
            to[k * PANEL + c] = column < work->n ? b[column * work->r + k] : 0;
    }
}

/* scores[i][c] = a_i . b_c for the rows a[i] and the panel's columns. */
static void FN(top_tile)(real scores[TILE][PANEL], const real *const a[TILE], const real *panel, int64_t r,
                         bool ones) {
    FN(vreal) low[TILE], high[TILE];
    const int64_t own = r - ones;
    for (int i = 0; i < TILE; i++) low[i] = high[i] = (FN(vreal)){0};
    for (int64_t k = 0; k < own; k++) {
        const FN(vreal) x = FN(load)(panel + k * PANEL), y = FN(load)(panel + k * PANEL + LANES);
        for (int i = 0; i < TILE; i++) {
            low[i] += a[i][k] * x;
            high[i] += a[i][k] * y;
        }
    }
    for (int i = 0; i < TILE; i++) {
        if (ones) {
            low[i] += FN(load)(panel + own * PANEL);
            high[i] += FN(load)(panel + own * PANEL + LANES);
        }
        FN(store)(scores[i], low[i]);
        FN(store)(scores[i] + LANES, high[i]);
    }
}

/* Takes those of a row's scores of a panel that beat its worst so far. Most panels have none, which one
 * comparison of all says. */
ALWAYS_INLINE void FN(top_take)(struct ki_best *best, const struct ki_top_work *work, const real *scores,
                                int64_t first) {
    const int64_t count = work->n - first < PANEL ? work->n - first : PANEL;
    if (best->kept == best->top) {
        const real worst = (real)best->scores[0];
        const FN(vmask) any = (FN(load)(scores) > worst) | (FN(load)(scores + LANES) > worst);
        real_bits found = 0;
        for (int l = 0; l < LANES; l++) found |= any[l];
        if (!found) return;
    }
    for (int64_t c = 0; c < count; c++)
        if (scores[c] == scores[c]) ki_best_consider(best, work->of->allowed, first + c, (double)scores[c]);
}

/* Rows KI_TOP_ROWS * part and those behind it. */
static void FN(top_rows)(void *arg, int part) {
    const struct ki_top_work *work = arg;
    const int64_t r = work->r, first = (int64_t)part * KI_TOP_ROWS;
    const int64_t rows = work->m - first < KI_TOP_ROWS ? work->m - first : KI_TOP_ROWS;
    struct ki_best best[KI_TOP_ROWS];
    for (int64_t i = 0; i < rows; i++) best[i] = ki_best_begin(work->of, first + i);
    for (int64_t column = 0; column < work->n; column += PANEL) {
        const real *panel = (const real *)work->panels + column * r;
        for (int64_t tile = 0; tile < rows; tile += TILE) {
            const int64_t count = rows - tile < TILE ? rows - tile : TILE;
            real scores[TILE][PANEL];
            const real *a[TILE];
            for (int64_t i = 0; i < TILE; i++)
                a[i] = (const real *)work->a + (first + tile + (i < count ? i : 0)) * r;
            FN(top_tile)(scores, a, panel, r, work->of->ones);
            for (int64_t i = 0; i < count; i++) FN(top_take)(&best[tile + i], work, scores[i], column);
        }
    }
    for (int64_t i = 0; i < rows; i++) ki_best_end(&best[i]);
}

/* The products of a with four rows of B, and with squares their own squares. */
ALWAYS_INLINE void FN(top_four)(bool squares, real products[4], real own[4], const real *a,
                                const real *const b[4], int64_t r) {
    FN(vreal) sum[4] = {{0}}, square[4] = {{0}};
    int64_t k = 0;
    for (; k + LANES <= r; k += LANES) {
        const FN(vreal) x = FN(load)(a + k);
        for (int i = 0; i < 4; i++) {
            const FN(vreal) y = FN(load)(b[i] + k);
            sum[i] += x * y;
            if (squares) square[i] += y * y;
        }
    }
    FN(four_lane_sums)(products, sum);
    if (squares) FN(four_lane_sums)(own, square);
    for (; k < r; k++)
        for (int i = 0; i < 4; i++) {
            products[i] += a[k] * b[i][k];
            if (squares) own[i] += b[i][k] * b[i][k];
        }
}

/* Scores of `count` columns from `first` on, of a row whose length is `length`. */
ALWAYS_INLINE void FN(top_scores)(real scores[PANEL], const struct ki_top_work *work, const real *a,
                                  real length, int64_t first, int64_t count) {
    const int64_t r = work->r, own = r - work->ones;
    const real *B = (const real *)work->b + first * r, *offsets = work->offsets;
    for (int64_t c = 0; c < count; c += 4) {
        const real *b[4];
        real square[4];
        for (int64_t i = 0; i < 4; i++) b[i] = B + (c + i < count ? c + i : c) * r;
        if (!work->cosines) {
            FN(top_four)(false, scores + c, square, a, b, own);
            for (int64_t i = 0; i < 4 && work->ones; i++) scores[c + i] += b[i][own];
            for (int64_t i = 0; i < 4 && c + i < count && offsets; i++)
                scores[c + i] += offsets[first + c + i];
            continue;
        }
        FN(top_four)(true, scores + c, square, a, b, own);
        for (int i = 0; i < 4; i++) {
            const real both = length * (real)sqrt(square[i]);
            scores[c + i] = both > 0 ? scores[c + i] / both : 0;
        }
    }
}

/* A list of few rows: B is read where it lies. */
static void FN(top_list)(void *arg, int part) {
    const struct ki_top_work *work = arg;
    struct ki_best *best = &work->best[part];
    const real *a = (const real *)work->a + part / work->slices * work->r;
    const int64_t panels = (work->n + PANEL - 1) / PANEL;
    const int slice = part % work->slices;
    const int64_t end = ki_min(work->n, ki_part_begin(panels, slice + 1, work->slices) * PANEL);
    real length = 0;
    for (int64_t k = 0; k < work->r && work->cosines; k++) length += a[k] * a[k];
    length = (real)sqrt(length);
    for (int64_t j = ki_part_begin(panels, slice, work->slices) * PANEL; j < end; j += PANEL) {
        real scores[PANEL] = {0};
        FN(top_scores)(scores, work, a, length, j, ki_min(PANEL, end - j));
        FN(top_take)(best, work, scores, j);
    }
    ki_best_end(best);
}

void FN(top_few)(const struct ki_top_work *work) {
    ki_parallel(work->threads, (int)work->m * work->slices, FN(top_list), (void *)(uintptr_t)work);
}

void FN(top_products)(const struct ki_top_work *work) {
    void *arg = (void *)(uintptr_t)work;
    ki_parallel(work->threads, (int)((work->n + PANEL - 1) / PANEL), FN(top_pack), arg);
    ki_parallel(work->threads, (int)((work->m + KI_TOP_ROWS - 1) / KI_TOP_ROWS), FN(top_rows), arg);
}
