/* A sparse row's dot product with y and its scatter into w, for CPU bodies. Included once per element type, after simd.h.
 *
 * Columns are distinct within a row, so that several updates of w may be under way at once: loads before stores. AVX-512 has
 * gathers and scatters; their masks also spare the branches on a row's last entries, which short rows of varying
 * length would mispredict.
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

/* The lanes of entries [e, count). */
#define ENTRY_MASK(e, count) ((__mmask8)((count) - (e) >= 8 ? 0xff : (1u << ((count) - (e))) - 1))

/* Below this a plain loop is cheaper. */
#define WORTH_LANES 4

ALWAYS_INLINE real FN(sparse_dot)(const real *value, const int32_t *col, int64_t count, const real *y,
                                  int stride, bool ahead) {
    if (count < WORTH_LANES) {
        real dot = 0;
        FN(fetch_entries)(value, col, count, y, stride, ahead);
        for (int64_t e = 0; e < count; e++) dot += value[e] * y[stride * (int64_t)col[e]];
        return dot;
    }
    EIGHT sum = {0};
    for (int64_t e = 0; e < count; e += 8) {
        const __mmask8 mask = ENTRY_MASK(e, count);
        FN(fetch_entries)(value + e, col + e, 8, y, stride, ahead);
        sum += ENTRIES(mask, value + e) * GATHER(mask, y, PLACES(mask, col + e));
    }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

ALWAYS_INLINE void FN(sparse_scatter)(real *w, real p, const real *value, const int32_t *col, int64_t count,
                                      int stride) {
    if (count < WORTH_LANES) {
        for (int64_t e = 0; e < count; e++) w[stride * (int64_t)col[e]] += p * value[e];
        return;
    }
    for (int64_t e = 0; e < count; e += 8) {
        const __mmask8 mask = ENTRY_MASK(e, count);
        const __m256i at = PLACES(mask, col + e);
        const EIGHT sum = GATHER(mask, w, at) + p * ENTRIES(mask, value + e);
        SCATTER(w, mask, at, sum);
    }
}

#undef EIGHT
#undef GATHER
#undef SCATTER
#undef ENTRIES
#undef PLACES
#undef ENTRY_MASK
#undef WORTH_LANES

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
