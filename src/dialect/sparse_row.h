/* A sparse row's dot product with y and its scatter into w, for CPU bodies. Included once per element type, after simd.h.
 *
 * Columns are distinct within a row, so that several updates of w may be under way at once: loads before stores. AVX-512 has
 * gathers and scatters, and masks: a row is whole vectors and a last one of one to eight entries, the same for both loops, so
 * that of a short row of any length only the number of its vectors can be mispredicted.
 *
 * Element j of y and w lies at stride * j, stride being 1, or 2 where the two are interleaved: of a wide matrix almost every
 * entry misses the caches once, and then finds its y and its w in one line. `ahead` asks for that line early; the row must
 * then have SPARSE_AHEAD entries of the matrix behind it. Both are constants wherever this is inlined. */

/* Entries whose values and columns are asked for, and entries whose y is, before they are used: measured, the hardware
 * prefetches neither as early as dot and scatter in turns want them. y and w are asked into the second-level cache only: the
 * first level can wait for fewer lines at a time, and these were its limit. */
#ifndef SPARSE_AHEAD
#define SPARSE_AHEAD 128
#endif
#define STREAM_AHEAD (2048 / real_bytes)

/* Beforehand for the `count` entries at value and col. */
ALWAYS_INLINE void FN(fetch_entries)(const real *value, const int32_t *col, int64_t count, const real *base,
                                     int stride, bool ahead) {
    __builtin_prefetch(value + STREAM_AHEAD);
    __builtin_prefetch(col + STREAM_AHEAD);
    for (int64_t e = SPARSE_AHEAD; ahead && e < SPARSE_AHEAD + count; e++)
        __builtin_prefetch(base + stride * (int64_t)col[e], 0, 2);
}

#if defined(__AVX512F__)
/* Eight entries at a time in either type: sixteen floats would leave most lanes of short rows empty, and a gather's cost
 * goes by its lanes. */
#if real_bytes == 8
#define EIGHT __m512d
#define GATHER(mask, base, at) _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, at, base, 8)
#define SCATTER(base, mask, at, v) _mm512_mask_i32scatter_pd(base, mask, at, v, 8)
#define ENTRIES(mask, value) _mm512_maskz_loadu_pd(mask, value)
#else
#define EIGHT __m256
#define GATHER(mask, base, at) _mm256_mmask_i32gather_ps(_mm256_setzero_ps(), mask, at, base, 4)
#define SCATTER(base, mask, at, v) _mm256_mask_i32scatter_ps(base, mask, at, v, 4)
#define ENTRIES(mask, value) _mm256_maskz_loadu_ps(mask, value)
#endif
/* Where the elements of y and w lie: 32 bits hold stride times a column (ops/mmchain_csr.cpu.h sees to it). */
#define PLACES(mask, col) _mm256_slli_epi32(_mm256_maskz_loadu_epi32(mask, col), stride / 2)

/* The lanes of a row's last vector, which begins at LAST_VECTOR. */
#define LAST_LANES(count) ((__mmask8)(0xff >> (-(count)&7)))
#define LAST_VECTOR(count) (((count)-1) & ~(int64_t)7)

/* The sum of eight numbers by halves. */
ALWAYS_INLINE real FN(eight_sum)(EIGHT v) {
#if real_bytes == 8
    const __m256d four = _mm512_castpd512_pd256(v) + _mm512_extractf64x4_pd(v, 1);
    const __m128d two = _mm256_castpd256_pd128(four) + _mm256_extractf128_pd(four, 1);
#else
    const __m128 four = _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
    const __m128 two = four + _mm_movehl_ps(four, four);
#endif
    return two[0] + two[1];
}

/* Part of the sum for the entries of a vector. */
ALWAYS_INLINE EIGHT FN(eight_products)(__mmask8 mask, const real *value, const int32_t *col, const real *y,
                                       int stride, bool ahead) {
    FN(fetch_entries)(value, col, 8, y, stride, ahead);
    return ENTRIES(mask, value) * GATHER(mask, y, PLACES(mask, col));
}

ALWAYS_INLINE void FN(eight_updates)(__mmask8 mask, real *w, real p, const real *value, const int32_t *col,
                                     int stride) {
    const __m256i at = PLACES(mask, col);
    const EIGHT sum = GATHER(mask, w, at) + p * ENTRIES(mask, value);
    SCATTER(w, mask, at, sum);
}

ALWAYS_INLINE real FN(sparse_dot)(const real *value, const int32_t *col, int64_t count, const real *y,
                                  int stride, bool ahead) {
    if (count == 0) return 0;
    const int64_t last = LAST_VECTOR(count);
    EIGHT sum = {0};
    for (int64_t e = 0; e < last; e += 8)
        sum += FN(eight_products)(0xff, value + e, col + e, y, stride, ahead);
    sum += FN(eight_products)(LAST_LANES(count), value + last, col + last, y, stride, ahead);
    return FN(eight_sum)(sum);
}

ALWAYS_INLINE void FN(sparse_scatter)(real *w, real p, const real *value, const int32_t *col, int64_t count,
                                      int stride) {
    if (count == 0) return;
    const int64_t last = LAST_VECTOR(count);
    for (int64_t e = 0; e < last; e += 8) FN(eight_updates)(0xff, w, p, value + e, col + e, stride);
    FN(eight_updates)(LAST_LANES(count), w, p, value + last, col + last, stride);
}

#undef EIGHT
#undef GATHER
#undef SCATTER
#undef ENTRIES
#undef PLACES
#undef LAST_LANES
#undef LAST_VECTOR

#else

/* Four sums hide the latency of the additions. */
ALWAYS_INLINE real FN(sparse_dot)(const real *value, const int32_t *col, int64_t count, const real *y,
                                  int stride, bool ahead) {
    real s[4] = {0};
    int64_t e = 0;
    for (; e + 4 <= count; e += 4) {
        FN(fetch_entries)(value + e, col + e, 4, y, stride, ahead);
        for (int i = 0; i < 4; i++) s[i] += value[e + i] * y[stride * (int64_t)col[e + i]];
    }
    FN(fetch_entries)(value + e, col + e, count - e, y, stride, ahead);
    for (; e < count; e++) s[0] += value[e] * y[stride * (int64_t)col[e]];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

ALWAYS_INLINE void FN(sparse_scatter)(real *w, real p, const real *value, const int32_t *col, int64_t count,
                                      int stride) {
    int64_t e = 0;
    for (; e + 4 <= count; e += 4) {
        real sum[4];
        for (int i = 0; i < 4; i++) sum[i] = w[stride * (int64_t)col[e + i]] + p * value[e + i];
        for (int i = 0; i < 4; i++) w[stride * (int64_t)col[e + i]] = sum[i];
    }
    for (; e < count; e++) w[stride * (int64_t)col[e]] += p * value[e];
}

#endif
#undef STREAM_AHEAD
