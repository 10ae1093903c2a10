/* CPU body of the sampled products. Parts of about as many entries and rows each, cut by the shape alone;
 * four entries at a time, whose lanes are added up together; what dot products become is worked out for a
 * block of them, whatever their rows. The rows of B that come next are asked for early: they lie here and
 * there, and the hardware does not see them coming. Nor does it see, among them, that rows of A follow each
 * other. */
#include "core/limits.h"

#ifndef SAMPLE_AHEAD
#define SAMPLE_AHEAD 16        /* entries */
#define SAMPLE_ROWS_AHEAD 2    /* rows of A */
#define SAMPLE_AHEAD_MOST 1024 /* bytes of a row; the hardware asks for the rest */
#define SAMPLE_BLOCK 256       /* entries */
#endif

#if real_bytes == 4
/* Numbers of half precision as floats. The exponent of IEEE 754's moves to where f32 has it and is 112 too
 * small, which a product mends, also where it is 0; infinities keep the largest one. */
#ifdef __F16C__
ALWAYS_INLINE void FN(eight_of_half)(float *to, const uint16_t *from) {
    __m256 eight = _mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
    memcpy(to, &eight, sizeof eight);
}
#endif

ALWAYS_INLINE float FN(of_half)(uint32_t half, bool brain) {
    const uint32_t sign = (half & 0x8000) << 16;
    uint32_t bits = brain ? half << 16 : (half & 0x7fff) << 13;
    float x;
    memcpy(&x, &bits, sizeof x);
    if (brain) return x;
    x *= 0x1p112f;
    memcpy(&bits, &x, sizeof x);
    bits |= sign | ((half & 0x7c00) == 0x7c00 ? 0x7f800000 : 0);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void FN(widen)(float *to, const uint16_t *from, int64_t count, bool brain) {
    int64_t c = 0;
#ifdef __F16C__
    for (; !brain && c + 8 <= count; c += 8) FN(eight_of_half)(to + c, from + c);
#endif
    for (; brain && c < count; c++) to[c] = FN(of_half)(from[c], true);
    for (; c < count; c++) to[c] = FN(of_half)(from[c], false);
}
#endif

struct FN(sampled_rows) {
    const struct ki_sampled *s;
    int parts;
};

/* The dot products of a with `count` rows of B, 1 to 4. */
ALWAYS_INLINE void FN(sampled_dots)(real d[4], int count, const real *a, const real *const b[4], int64_t k) {
    FN(vreal) sum[4] = {{0}, {0}, {0}, {0}};
    int64_t c = 0;
    for (; c + LANES <= k; c += LANES)
        for (int r = 0; r < count; r++) sum[r] += FN(load)(a + c) * FN(load)(b[r] + c);
    if (c < k) {
        const FN(vreal) rest = FN(load_first)(a + c, k - c);
        for (int r = 0; r < count; r++) sum[r] += rest * FN(load_first)(b[r] + c, k - c);
    }
    FN(four_lane_sums)(d, sum);
}

/* y, the row in whole vectors, += f's products with the rows of B. With a number of vectors that the compiler
 * knows, y stays in registers. */
ALWAYS_INLINE void FN(sampled_add)(FN(vreal) * y, int count, const real f[4], const real *const b[4],
                                   int64_t k) {
    int64_t c = 0;
#pragma GCC unroll 8
    for (; c + LANES <= k; c += LANES)
        for (int r = 0; r < count; r++) y[c / LANES] += f[r] * FN(load)(b[r] + c);
    if (c < k)
        for (int r = 0; r < count; r++) y[c / LANES] += f[r] * FN(load_first)(b[r] + c, k - c);
}

/* Asks for row number `row` of a factor. */
ALWAYS_INLINE void FN(sampled_ask)(const struct ki_sampled *s, const kiln_matrix *factor, int64_t row,
                                   int64_t k) {
    const int64_t all = k * (s->halves ? 2 : real_bytes), bytes = ki_min(all, SAMPLE_AHEAD_MOST);
    const char *from = (const char *)ki_host(&factor->values) + row * all;
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at);
}

/* Row number `row` of a factor: where it lies, or, of half precision, in `widened`, which is NULL
 * otherwise. */
ALWAYS_INLINE const real *FN(factor_row)(const struct ki_sampled *s, const kiln_matrix *factor, int64_t row,
                                         real *widened, int64_t k) {
#if real_bytes == 4
    if (widened) {
        FN(widen)
        (widened, (const uint16_t *)ki_host(&factor->values) + row * k, k, s->halves == KILN_BF16);
        return widened;
    }
#endif
    (void)s;
    (void)widened;
    return VALUES(factor) + row * k;
}

/* Makes what `count` entries become, and, if it is wanted, their part of the sum: the kind is asked once. */
ALWAYS_INLINE void FN(sampled_values)(real *f, double *sum, const struct ki_sampled *s, int64_t count,
                                      const real *value, const real *d) {
    const real least = (real)s->floor;
#define CASE(K)                                                                                              \
    case K:                                                                                                  \
        for (int64_t r = 0; r < count; r++) f[r] = FN(sample_value)(K, value[r], d[r], least);               \
        for (int64_t r = 0; s->sum && r < count; r++) *sum += FN(sample_part)(K, value[r], d[r], least);     \
        break;
    switch (s->kind) {
        CASE(0)
        CASE(KILN_SAMPLE_PRODUCT)
        CASE(KILN_SAMPLE_TIMES)
        CASE(KILN_SAMPLE_QUOTIENT)
        CASE(KILN_SAMPLE_RESIDUAL)
        CASE(KI_SAMPLE_WANTED)
        CASE(KI_SAMPLE_SEEN)
        CASE(KI_SAMPLE_WANTED_PROPORTIONAL)
        CASE(KI_SAMPLE_SEEN_PROPORTIONAL)
    default: break;
    }
#undef CASE
}

/* Dot products that wait: of entries in a row from `first` on, whatever their rows. */
struct FN(sampled_block) {
    real d[SAMPLE_BLOCK + 4];
    int64_t first, count;
};

static void FN(sampled_finish)(struct FN(sampled_block) * block, const struct ki_sampled *s, double *sum) {
    const real alpha = (real)s->alpha, beta = (real)s->beta;
    real f[SAMPLE_BLOCK];
    FN(sampled_values)(f, sum, s, block->count, (const real *)ki_host(s->value) + block->first, block->d);
    real *p = s->P ? VALUES(s->P) + block->first : NULL;
    if (p && beta == 0)
        for (int64_t r = 0; r < block->count; r++) p[r] = alpha * f[r];
    else if (p)
        for (int64_t r = 0; r < block->count; r++) p[r] = alpha * f[r] + beta * p[r];
    block->first += block->count;
    block->count = 0;
}

/* `count` entries from e on, of a row whose A is a: to Y's row y, or, where that is NULL, to the block.
 * widened: for four rows of B of half precision. */
ALWAYS_INLINE void FN(sampled_entries)(const struct ki_sampled *s, int64_t e, int count, int64_t k,
                                       const real *a, real *widened, FN(vreal) * y,
                                       struct FN(sampled_block) * block, double *sum) {
    const int32_t *col = ki_host(s->col);
    const real *b[4];
    real d[4] = {0}, f[4] = {0};
    for (int r = 0; e + SAMPLE_AHEAD + count <= s->nnz && r < count; r++)
        FN(sampled_ask)(s, s->B, col[e + SAMPLE_AHEAD + r], k);
    for (int r = 0; r < count; r++)
        b[r] = FN(factor_row)(s, s->B, col[e + r], widened ? widened + r * k : NULL, k);
    if (s->kind) FN(sampled_dots)(y ? d : block->d + block->count, count, a, b, k);
    if (y) {
        FN(sampled_values)(f, sum, s, count, (const real *)ki_host(s->value) + e, d);
        FN(sampled_add)(y, count, f, b, k);
        return;
    }
    block->count += count;
    if (block->count > SAMPLE_BLOCK - 4) FN(sampled_finish)(block, s, sum);
}

ALWAYS_INLINE void FN(sampled_row)(const struct ki_sampled *s, int64_t row, int64_t k, const real *a,
                                   real *widened, FN(vreal) * y, struct FN(sampled_block) * block,
                                   double *sum) {
    const int64_t *start = ki_host(s->start);
    int64_t e = start[row];
    if (s->kind && row + SAMPLE_ROWS_AHEAD < s->rows) FN(sampled_ask)(s, s->A, row + SAMPLE_ROWS_AHEAD, k);
    for (; e + 4 <= start[row + 1]; e += 4) FN(sampled_entries)(s, e, 4, k, a, widened, y, block, sum);
    switch (start[row + 1] - e) {
    case 3: FN(sampled_entries)(s, e, 3, k, a, widened, y, block, sum); break;
    case 2: FN(sampled_entries)(s, e, 2, k, a, widened, y, block, sum); break;
    case 1: FN(sampled_entries)(s, e, 1, k, a, widened, y, block, sum); break;
    default: break;
    }
}

/* Rows [first, end) and their part of the sum: products alone, and products added to rows of Y; each once
 * more of factors of half precision, so that neither pays for the other, and for rows of few whole vectors:
 * with a number of them that the compiler knows, products of 32 numbers are twice as fast. */
ALWAYS_INLINE double FN(alone_of)(const struct ki_sampled *s, int64_t first, int64_t end, int64_t k,
                                  real *widened) {
    real *of_B = widened ? widened + k : NULL;
    struct FN(sampled_block) block;
    double sum = 0;
    block.first = ((const int64_t *)ki_host(s->start))[first];
    block.count = 0;
    for (int64_t row = first; row < end; row++)
        FN(sampled_row)(s, row, k, FN(factor_row)(s, s->A, row, widened, k), of_B, NULL, &block, &sum);
    FN(sampled_finish)(&block, s, &sum);
    return sum;
}

/* Row y of Y, finished; past: past the caches. */
ALWAYS_INLINE void FN(sampled_write)(const struct ki_sampled *s, int64_t row, const FN(vreal) * y, int64_t k,
                                     bool past) {
    const real alpha = (real)s->alpha, beta = (real)s->beta;
    const real *z = s->Z && s->beta != 0 ? VALUES(s->Z) + row * k : NULL;
    real *to = VALUES(s->Y) + row * k;
#pragma GCC unroll 8
    for (int64_t c = 0; c < k; c += LANES) {
        const int64_t lanes = ki_min(LANES, k - c);
        FN(vreal) sum = alpha * y[c / LANES];
        if (z) sum += beta * (lanes == LANES ? FN(load)(z + c) : FN(load_first)(z + c, lanes));
        if (past)
            FN(store_past)(to + c, sum);
        else if (lanes == LANES)
            FN(store)(to + c, sum);
        else
            FN(store_first)(to + c, sum, lanes);
    }
}

/* widened: for a row of A and four of B of half precision; otherwise NULL. */
ALWAYS_INLINE double FN(added_of)(const struct ki_sampled *s, int64_t first, int64_t end, int64_t k,
                                  real *widened) {
    real *of_B = widened ? widened + k : NULL;
    const bool past = s->rows * k * real_bytes >= ki_limits.cpu_past_bytes && k % LANES == 0 &&
                      (uintptr_t)VALUES(s->Y) % SIMD_BYTES == 0;
    FN(vreal) y[KI_SAMPLE_COLUMNS / LANES];
    double sum = 0;
    for (int64_t row = first; row < end; row++) {
#pragma GCC unroll 8
        for (int64_t c = 0; c < k; c += LANES) y[c / LANES] = (FN(vreal)){0};
        FN(sampled_row)
        (s, row, k, s->kind ? FN(factor_row)(s, s->A, row, widened, k) : NULL, of_B, y, NULL, &sum);
        FN(sampled_write)(s, row, y, k, past);
    }
    if (past) FN(end_of_stores_past)();
    return sum;
}

#define BY_WIDTH(of)                                                                                         \
    switch (s->k) {                                                                                          \
    case LANES: return of(s, first, end, LANES, NULL);                                                       \
    case 2 * LANES: return of(s, first, end, 2 * LANES, NULL);                                               \
    case 4 * LANES: return of(s, first, end, 4 * LANES, NULL);                                               \
    case 8 * LANES: return of(s, first, end, 8 * LANES, NULL);                                               \
    default: return of(s, first, end, s->k, NULL);                                                           \
    }

static double FN(sampled_alone)(const struct ki_sampled *s, int64_t first, int64_t end) {
    BY_WIDTH(FN(alone_of))
}

static double FN(sampled_added)(const struct ki_sampled *s, int64_t first, int64_t end) {
    BY_WIDTH(FN(added_of))
}
#undef BY_WIDTH

#if real_bytes == 4
static __attribute__((noinline)) double FN(alone_of_halves)(const struct ki_sampled *s, int64_t first,
                                                            int64_t end) {
    real widened[5 * KI_SAMPLE_COLUMNS];
    return FN(alone_of)(s, first, end, s->k, widened);
}

static __attribute__((noinline)) double FN(added_of_halves)(const struct ki_sampled *s, int64_t first,
                                                            int64_t end) {
    real widened[5 * KI_SAMPLE_COLUMNS];
    return FN(added_of)(s, first, end, s->k, widened);
}
#endif

static void FN(sampled_part)(void *of, int part) {
    const struct FN(sampled_rows) *rows = of;
    const struct ki_sampled *s = rows->s;
    const int64_t *start = ki_host(s->start);
    double (*rows_of)(const struct ki_sampled *, int64_t, int64_t) = FN(sampled_alone);
    int64_t bound[2];
    for (int i = 0; i < 2; i++)
        bound[i] = ki_row_at(start, s->rows, ki_part_begin(s->nnz + s->rows, part + i, rows->parts), 1);
    if (s->Y) rows_of = FN(sampled_added);
#if real_bytes == 4
    if (s->halves) rows_of = s->Y ? FN(added_of_halves) : FN(alone_of_halves);
#endif
    const double sum = rows_of(s, bound[0], bound[1]);
    if (s->sum) s->sum[part] = sum;
}

void FN(sampled)(const struct ki_sampled *s) {
    struct FN(sampled_rows) rows = {s, (int)ki_max(1, ki_min(KI_SAMPLE_PARTS, (s->nnz + s->rows) / 1024))};
    ki_parallel(s->B->device->threads, rows.parts, FN(sampled_part), &rows);
}
