/* CPU body of the passes over a CSR X: a row, or a block of rows whose entries fit into the first-level
 * cache, is multiplied by y, mapped, and scattered into w. */

enum {
    FN(BLOCK_ENTRIES) = 1024,
    FN(COLUMNS) =
        8, /* of y, that one loop over a row's entries serves; the last one those that are left of twice as
            * many */
    FN(WIDE_BYTES) =
        131072, /* of w: beyond, y and w are interleaved and asked for ahead (dialect/sparse_row.h) */
    FN(INTERLEAVED_MOST) = 1 << 30, /* columns whose doubles 32 bits still hold */
    FN(INTERLEAVED_K) = 64          /* columns of y: beyond, y and w are long pieces of memory each */
};

/* The ways through a pass, constants wherever they are inlined. Column j's k elements of y and of w begin at
 * j * stride. */
struct FN(way) {
    enum ki_chain_kind kind;
    int64_t k, stride;
    bool ahead, same; /* same: all entries are one number, in place of which values would lie */
};

/* X's values, or the number, which has a place here. */
ALWAYS_INLINE const real *FN(entries)(bool same, const kiln_matrix *X, real *number) {
    *number = (real)X->same;
    return same ? number : VALUES(X);
}

/* A row's, which begin at an entry. */
ALWAYS_INLINE const real *FN(of_row)(bool same, const real *value, int64_t at) {
    return same ? value : value + at;
}

/* C neighbouring columns of y, C < 16: as many vectors of PIECE as C has, then one for what is left of each
 * of 4, 2 and 1. No piece is longer than the processor's vectors: the compilers take longer ones through
 * memory. */
#undef PIECE
#if LANES < 8
#define PIECE LANES
#else
#define PIECE 8
#endif
typedef real FN(two) __attribute__((vector_size(2 * real_bytes)));
typedef real FN(four) __attribute__((vector_size(4 * real_bytes)));
typedef real FN(piece) __attribute__((vector_size(PIECE * real_bytes)));
struct FN(columns) {
    FN(piece) piece[16 / PIECE];
    FN(four) four;
    FN(two) two;
    real one;
};
#define EACH_PIECE(DO)                                                                                       \
    _Pragma("GCC unroll 8") for (int i = 0; i < C / PIECE; i++) {                                            \
        DO(piece[i], i *PIECE)                                                                               \
    }                                                                                                        \
    if (PIECE > 4 && C & 4) {                                                                                \
        DO(four, C & 8)                                                                                      \
    }                                                                                                        \
    if (PIECE > 2 && C & 2) {                                                                                \
        DO(two, C & 12)                                                                                      \
    }                                                                                                        \
    if (C & 1) {                                                                                             \
        DO(one, C & 14)                                                                                      \
    }

/* sum += value times C neighbouring elements of y. */
ALWAYS_INLINE void FN(add_entry)(int C, struct FN(columns) * sum, real value, const real *y) {
    struct FN(columns) at;
#define ADD(name, from)                                                                                      \
    memcpy(&at.name, y + (from), sizeof at.name);                                                            \
    sum->name += value * at.name;
    EACH_PIECE(ADD)
#undef ADD
}

/* q = x_row y and w += q^T x_row for C columns, a constant wherever this is inlined. Entries take turns with
 * two sums, as each addition would wait for the one before. */
ALWAYS_INLINE void FN(products_of)(int C, struct FN(way) way, real *q, const real *value, const int32_t *col,
                                   int64_t count, const real *y) {
    struct FN(columns) sum = {0}, other = {0};
    int64_t e = 0;
    for (; e + 2 <= count; e += 2) {
        if (way.ahead) {
            __builtin_prefetch(y + col[e + SPARSE_AHEAD / 4] * way.stride, 1);
            __builtin_prefetch(y + col[e + 1 + SPARSE_AHEAD / 4] * way.stride, 1);
        }
        FN(add_entry)(C, &sum, *FN(of_row)(way.same, value, e), y + col[e] * way.stride);
        FN(add_entry)(C, &other, *FN(of_row)(way.same, value, e + 1), y + col[e + 1] * way.stride);
    }
    if (e < count) FN(add_entry)(C, &sum, *FN(of_row)(way.same, value, e), y + col[e] * way.stride);
#define JOIN(name, from) sum.name += other.name;
    EACH_PIECE(JOIN)
#undef JOIN
#define STORE(name, from) memcpy(q + (from), &sum.name, sizeof sum.name);
    EACH_PIECE(STORE)
#undef STORE
}

ALWAYS_INLINE void FN(scatter_of)(int C, struct FN(way) way, real *w, const real *q, const real *value,
                                  const int32_t *col, int64_t count) {
    struct FN(columns) p = {0}, at;
#define LOAD(name, from) memcpy(&p.name, q + (from), sizeof p.name);
    EACH_PIECE(LOAD)
#undef LOAD
    for (int64_t e = 0; e < count; e++) {
        real *we = w + col[e] * way.stride;
        const real x = *FN(of_row)(way.same, value, e);
#define UPDATE(name, from)                                                                                   \
    memcpy(&at.name, we + (from), sizeof at.name);                                                           \
    at.name += x * p.name;                                                                                   \
    memcpy(we + (from), &at.name, sizeof at.name);
        EACH_PIECE(UPDATE)
#undef UPDATE
    }
}
#undef EACH_PIECE

#define EACH_FEW(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)
#define EACH_MANY(CASE) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
#define EACH_COLUMNS(CASE) EACH_FEW(CASE) EACH_MANY(CASE)

/* The columns that the next loop serves where `rest` are left. */
ALWAYS_INLINE int FN(next_columns)(int64_t rest) {
    return rest < 2 * FN(COLUMNS) ? (int)rest : FN(COLUMNS);
}

/* The same for all k columns of y. */
NEVER_INLINE void FN(products_of_all)(struct FN(way) way, real *q, const real *value, const int32_t *col,
                                      int64_t count, const real *y) {
#define PRODUCTS(C)                                                                                          \
    case C: FN(products_of)(C, way, q + c, value, col, count, y + c); break;
    for (int64_t c = 0, served; c < way.k; c += served) {
        switch (served = FN(next_columns)(way.k - c)) { EACH_COLUMNS(PRODUCTS) }
        way.ahead = false;
    }
#undef PRODUCTS
}

NEVER_INLINE void FN(scatter_of_all)(struct FN(way) way, real *w, const real *q, const real *value,
                                     const int32_t *col, int64_t count) {
#define SCATTER(C)                                                                                           \
    case C: FN(scatter_of)(C, way, w + c, q + c, value, col, count); break;
    for (int64_t c = 0, served; c < way.k; c += served) {
        switch (served = FN(next_columns)(way.k - c)) { EACH_COLUMNS(SCATTER) }
    }
#undef SCATTER
}
#undef EACH_COLUMNS
#undef EACH_MANY
#undef EACH_FEW

ALWAYS_INLINE void FN(sparse_products)(struct FN(way) way, real *q, const real *value, const int32_t *col,
                                       int64_t count, const real *y) {
    if (way.k == 1)
        *q = FN(sparse_dot)(value, col, count, y, (int)way.stride, way.ahead, way.same);
    else
        FN(products_of_all)(way, q, value, col, count, y);
}

ALWAYS_INLINE void FN(sparse_scatters)(struct FN(way) way, real *w, const real *q, const real *value,
                                       const int32_t *col, int64_t count) {
    if (way.kind == KI_CHAIN_SQUARES)
        for (int64_t e = 0; e < count; e++) {
            const real x = *FN(of_row)(way.same, value, e);
            w[col[e]] += *q * x * x;
        }
    else if (way.k == 1)
        FN(sparse_scatter)(w, *q, value, col, count, (int)way.stride, way.same);
    else
        FN(scatter_of_all)(way, w, q, value, col, count);
}

/* Rows [first, end) of a fused pass whose map is cheap and k > 1: row by row, since the loops over a row's
 * entries then have the same length one after the other, and only the first one's end is mispredicted. */
NEVER_INLINE void FN(sparse_scaled_rows)(struct FN(way) way, const struct ki_chain *chain,
                                         struct FN(tally) * tally, const real *y, real *w, int64_t first,
                                         int64_t end) {
    const int64_t *start = ki_host(&chain->X->row_start);
    const int32_t *col = ki_host(&chain->X->col);
    real number;
    const real *value = FN(entries)(way.same, chain->X, &number);
    const real *v = chain->v ? VALUES(chain->v) : NULL, *shift = chain->shift ? VALUES(chain->shift) : NULL;
    const int64_t k = way.k, v_cols = chain->v ? chain->v->cols : 0;
    real *q = tally->products;
    for (int64_t row = first; row < end; row++) {
        const int64_t at = start[row], count = start[row + 1] - at;
        if (v_cols == 1 && v[row] == 0) continue;
        FN(sparse_products)(way, q, FN(of_row)(way.same, value, at), col + at, count, y);
        for (int64_t c = 0; shift && c < k; c++) q[c] += shift[c];
        if (chain->products) FN(add_products)(chain, tally, q, row, 1);
        for (int64_t c = 0; v && c < k; c++) q[c] *= v_cols == 1 ? v[row] : v[row * k + c];
        for (int64_t c = 0; chain->sums && c < k; c++) tally->sums[c] += q[c];
        FN(sparse_scatters)(way, w, q, FN(of_row)(way.same, value, at), col + at, count);
    }
}

/* The same for one column of y, whose products and sums stay in registers. */
ALWAYS_INLINE void FN(sparse_scaled_singles)(int stride, bool ahead, bool same, const struct ki_chain *chain,
                                             struct FN(tally) * tally, const real *y, real *w, int64_t first,
                                             int64_t end) {
    const int64_t *start = ki_host(&chain->X->row_start);
    const int32_t *col = ki_host(&chain->X->col);
    real number;
    const real *value = FN(entries)(same, chain->X, &number), *v = chain->v ? VALUES(chain->v) : NULL;
    const real shift = chain->shift ? *VALUES(chain->shift) : 0;
    const bool products = chain->products;
    double sum = 0, product = 0;
    for (int64_t row = first, at = start[first], next; row < end; row++, at = next) {
        const real scale = v ? v[row] : 1;
        next = start[row + 1];
        if (scale == 0) continue; /* most rows of a support vector machine */
        const real *x = FN(of_row)(same, value, at);
        const real q = FN(sparse_dot)(x, col + at, next - at, y, stride, ahead, same) + shift;
        const real p = scale * q;
        if (products) product += (double)q * q * scale;
        sum += p;
        FN(sparse_scatter)(w, p, x, col + at, next - at, stride, same);
    }
    tally->sums[0] += sum;
    tally->sums[1] += product;
}

/* Functions of their own, so that each has the registers to itself. */
#define SINGLES(name, stride, ahead, same)                                                                   \
    NEVER_INLINE void FN(name)(const struct ki_chain *chain, struct FN(tally) * tally, const real *y,        \
                               real *w, int64_t first, int64_t end) {                                        \
        FN(sparse_scaled_singles)(stride, ahead, same, chain, tally, y, w, first, end);                      \
    }
SINGLES(sparse_scaled_apart, 1, false, false)
SINGLES(sparse_scaled_ahead, 2, true, false)
SINGLES(sparse_scaled_last, 2, false, false)
SINGLES(sparse_same_apart, 1, false, true)
SINGLES(sparse_same_ahead, 2, true, true)
SINGLES(sparse_same_last, 2, false, true)
#undef SINGLES

ALWAYS_INLINE void FN(sparse_scaled)(struct FN(way) way, const struct ki_chain *chain,
                                     struct FN(tally) * tally, const real *y, real *w, int64_t first,
                                     int64_t end) {
    if (way.k > 1)
        FN(sparse_scaled_rows)(way, chain, tally, y, w, first, end);
    else if (way.stride == 1)
        (way.same ? FN(sparse_same_apart) : FN(sparse_scaled_apart))(chain, tally, y, w, first, end);
    else if (way.ahead)
        (way.same ? FN(sparse_same_ahead) : FN(sparse_scaled_ahead))(chain, tally, y, w, first, end);
    else
        (way.same ? FN(sparse_same_last) : FN(sparse_scaled_last))(chain, tally, y, w, first, end);
}

/* Rows [first, end), block by block. */
ALWAYS_INLINE void FN(sparse_rows)(struct FN(way) way, const struct ki_chain *chain, struct FN(tally) * tally,
                                   const real *y, real *w, int64_t first, int64_t end) {
    const int64_t *start = ki_host(&chain->X->row_start);
    const int32_t *col = ki_host(&chain->X->col);
    real number;
    const real *value = FN(entries)(way.same, chain->X, &number);
    const bool multiplies = FN(multiplies)(chain);
    const int64_t k = way.k, most = ki_max(ki_min(FN(BLOCK_ROWS), FN(BLOCK_PRODUCTS) / k), 1);
    real *q = tally->products;
    if (way.kind == KI_CHAIN_FUSED && chain->map == KI_ROW_SCALE) {
        FN(sparse_scaled)(way, chain, tally, y, w, first, end);
        return;
    }
    for (int64_t row = first, next; row < end; row = next) {
        const int64_t last = ki_min(end, row + most), full = start[row] + FN(BLOCK_ENTRIES);
        for (next = row; next < last && (next == row || start[next + 1] <= full); next++)
            if (multiplies) FN(sparse_products)
        (way, q + (next - row) * k, FN(of_row)(way.same, value, start[next]), col + start[next],
         start[next + 1] - start[next], y);
        if (!FN(turn_block)(chain, tally, q, row, next - row)) continue;
        for (int64_t i = row; i < next; i++)
            if (way.kind != KI_CHAIN_FUSED || k > 1 || q[i - row] != 0) FN(sparse_scatters)
        (way, w, q + (i - row) * k, FN(of_row)(way.same, value, start[i]), col + start[i],
         start[i + 1] - start[i]);
    }
}

/* Returns whether a pass interleaves y and w. */
static bool FN(interleaves)(const struct ki_chain *chain) {
    const int64_t n = chain->X->cols;
    return chain->X->format == KILN_CSR && chain->kind == KI_CHAIN_FUSED && n < FN(INTERLEAVED_MOST) &&
           chain->k <= FN(INTERLEAVED_K) && n * chain->k * (int64_t)sizeof(real) > FN(WIDE_BYTES);
}

#define RUN(kind, k, stride, ahead, y, w, first, end)                                                        \
    (chain->X->element                                                                                       \
         ? FN(sparse_rows)((struct FN(way)){kind, k, stride, ahead, true}, chain, tally, y, w, first, end)   \
         : FN(sparse_rows)((struct FN(way)){kind, k, stride, ahead, false}, chain, tally, y, w, first, end))

/* A fused pass over a wide X: yw holds each column's y, then its w. Rows too near the end of X to ask ahead
 * come last. */
static void FN(interleaved_range)(const struct ki_chain *chain, struct FN(tally) * tally, real *yw,
                                  int64_t first, int64_t end) {
    const int64_t *start = ki_host(&chain->X->row_start), k = chain->k;
    int64_t middle = end;
    while (middle > first && start[middle] + SPARSE_AHEAD + 8 > chain->X->nnz) middle--;
    if (k == 1) {
        RUN(KI_CHAIN_FUSED, 1, 2, true, yw, yw + 1, first, middle);
        RUN(KI_CHAIN_FUSED, 1, 2, false, yw, yw + 1, middle, end);
    } else {
        RUN(KI_CHAIN_FUSED, k, 2 * k, true, yw, yw + k, first, middle);
        RUN(KI_CHAIN_FUSED, k, 2 * k, false, yw, yw + k, middle, end);
    }
}

/* Rows [first, end); w is where the part adds up, and holds y too where the pass interleaves them. */
static void FN(sparse_range)(const struct ki_chain *chain, struct FN(tally) * tally, real *w, int64_t first,
                             int64_t end) {
    const real *y = chain->y ? VALUES(chain->y) : NULL;
    const int64_t k = chain->k;
    if (FN(interleaves)(chain))
        FN(interleaved_range)(chain, tally, w, first, end);
    else if (chain->kind == KI_CHAIN_FUSED && k == 1)
        RUN(KI_CHAIN_FUSED, 1, 1, false, y, w, first, end);
    else if (chain->kind == KI_CHAIN_FUSED)
        RUN(KI_CHAIN_FUSED, k, k, false, y, w, first, end);
    else if (chain->kind == KI_CHAIN_PLAIN && k == 1)
        RUN(KI_CHAIN_PLAIN, 1, 1, false, y, w, first, end);
    else if (chain->kind == KI_CHAIN_PLAIN)
        RUN(KI_CHAIN_PLAIN, k, k, false, y, w, first, end);
    else if (chain->kind == KI_CHAIN_TRANSPOSED && k == 1)
        RUN(KI_CHAIN_TRANSPOSED, 1, 1, false, y, w, first, end);
    else if (chain->kind == KI_CHAIN_TRANSPOSED)
        RUN(KI_CHAIN_TRANSPOSED, k, k, false, y, w, first, end);
    else
        RUN(KI_CHAIN_SQUARES, 1, 1, false, y, w, first, end);
}

#undef RUN
