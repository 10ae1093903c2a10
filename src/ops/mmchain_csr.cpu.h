/* CPU body of the passes over a CSR X: blocks of rows whose entries fit into the first-level cache are multiplied by y,
 * mapped, and scattered into w. */

enum { FN(BLOCK_ENTRIES) = 1024 };

/* q = x_row y, and w += q^T x_row. One column of y has kernels of its own; with more, the innermost loop runs over
 * them, contiguous in y and w. */
ALWAYS_INLINE void FN(sparse_products)(int64_t k, real *q, const real *value, const int32_t *col,
                                       int64_t count, const real *y) {
    if (k == 1) {
        *q = FN(sparse_dot)(value, col, count, y);
        return;
    }
    for (int64_t c = 0; c < k; c++) q[c] = 0;
    for (int64_t e = 0; e < count; e++) {
        const real *ye = y + col[e] * k;
        for (int64_t c = 0; c < k; c++) q[c] += value[e] * ye[c];
    }
}

ALWAYS_INLINE void FN(sparse_scatters)(int64_t k, bool square, real *w, const real *q, const real *value,
                                       const int32_t *col, int64_t count) {
    if (square) {
        for (int64_t e = 0; e < count; e++) w[col[e]] += *q * value[e] * value[e];
    } else if (k == 1) {
        FN(sparse_scatter)(w, *q, value, col, count);
    } else {
        for (int64_t e = 0; e < count; e++) {
            real *we = w + col[e] * k;
            for (int64_t c = 0; c < k; c++) we[c] += value[e] * q[c];
        }
    }
}

/* Rows [first, end) of a fused pass whose map is cheap: row by row, since the loops over a row's entries then have the
 * same length one after the other, and only the first one's end is mispredicted. */
ALWAYS_INLINE void FN(sparse_scaled_rows)(int64_t k, const struct ki_chain *chain, struct FN(tally) * tally,
                                          real *w, int64_t first, int64_t end) {
    const int64_t *start = ki_host(&chain->X->row_start);
    const int32_t *col = ki_host(&chain->X->col);
    const real *value = VALUES(chain->X), *y = VALUES(chain->y);
    const real *v = chain->v ? VALUES(chain->v) : NULL, *shift = chain->shift ? VALUES(chain->shift) : NULL;
    const int64_t v_cols = chain->v ? chain->v->cols : 0;
    real q[KI_COLUMNS_MAX];
    for (int64_t row = first; row < end; row++) {
        const int64_t at = start[row], count = start[row + 1] - at;
        FN(sparse_products)(k, q, value + at, col + at, count, y);
        for (int64_t c = 0; shift && c < k; c++) q[c] += shift[c];
        for (int64_t c = 0; v && c < k; c++) q[c] *= v_cols == 1 ? v[row] : v[row * k + c];
        for (int64_t c = 0; chain->sums && c < k; c++) tally->sums[c] += q[c];
        FN(sparse_scatters)(k, false, w, q, value + at, col + at, count);
    }
}

/* Rows [first, end); kind is a constant wherever this is inlined, and k where it is 1. */
ALWAYS_INLINE void FN(sparse_rows)(enum ki_chain_kind kind, int64_t k, const struct ki_chain *chain,
                                   struct FN(tally) * tally, real *w, int64_t first, int64_t end) {
    const int64_t *start = ki_host(&chain->X->row_start);
    const int32_t *col = ki_host(&chain->X->col);
    const real *value = VALUES(chain->X), *y = chain->y ? VALUES(chain->y) : NULL;
    const bool multiplies = kind == KI_CHAIN_FUSED || kind == KI_CHAIN_PLAIN;
    const int64_t most = ki_min(FN(BLOCK_ROWS), FN(BLOCK_PRODUCTS) / k);
    real q[FN(BLOCK_PRODUCTS)];
    if (kind == KI_CHAIN_FUSED && chain->map == KI_ROW_SCALE) {
        FN(sparse_scaled_rows)(k, chain, tally, w, first, end);
        return;
    }
    for (int64_t row = first, next; row < end; row = next) {
        const int64_t last = ki_min(end, row + most), full = start[row] + FN(BLOCK_ENTRIES);
        for (next = row; next < last && (next == row || start[next + 1] <= full); next++)
            if (multiplies) FN(sparse_products)
        (k, q + (next - row) * k, value + start[next], col + start[next], start[next + 1] - start[next], y);
        if (!multiplies) FN(read_block)(chain, q, row, next - row);
        if (kind == KI_CHAIN_PLAIN) {
            FN(write_block)(chain, q, row, next - row);
            continue;
        }
        if (kind == KI_CHAIN_FUSED) FN(map_block)(chain, tally, q, row, next - row);
        for (int64_t i = row; i < next; i++) FN(sparse_scatters)
        (k, kind == KI_CHAIN_SQUARES, w, q + (i - row) * k, value + start[i], col + start[i],
         start[i + 1] - start[i]);
    }
}

#define KIND_CASE(kind)                                                                                      \
    case kind:                                                                                               \
        if (pass->k == 1)                                                                                    \
            FN(sparse_rows)(kind, 1, pass->chain, tally, w, first, end);                                     \
        else                                                                                                 \
            FN(sparse_rows)(kind, pass->k, pass->chain, tally, w, first, end);                               \
        break

static void FN(sparse_range)(const struct FN(pass) * pass, struct FN(tally) * tally, real *w, int64_t first,
                             int64_t end) {
    switch (pass->chain->kind) {
        KIND_CASE(KI_CHAIN_FUSED);
        KIND_CASE(KI_CHAIN_PLAIN);
        KIND_CASE(KI_CHAIN_TRANSPOSED);
    case KI_CHAIN_SQUARES: FN(sparse_rows)(KI_CHAIN_SQUARES, 1, pass->chain, tally, w, first, end); break;
    }
}

#undef KIND_CASE
