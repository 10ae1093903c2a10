/* A sparse row's dot product with y and its scatter into w, for CPU bodies. Included once per element type, after simd.h.
 *
 * Columns are distinct within a row, so that several updates of w may be under way at once: loads before stores. AVX-512 has
 * gathers and scatters; their masks also spare the branches on a row's last entries, which short rows of varying
 * length would mispredict. */
#if defined(__AVX512F__)
#include <immintrin.h>

/* Eight entries at a time in either type: sixteen floats would leave most lanes of short rows empty, and a gather's cost
 * goes by its lanes. */
#if real_bytes == 8
#define EIGHT __m512d
#define GATHER(mask, base, col) _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, col, base, 8)
#define SCATTER(base, mask, col, v) _mm512_mask_i32scatter_pd(base, mask, col, v, 8)
#define ENTRIES(mask, value) _mm512_maskz_loadu_pd(mask, value)
#else
#define EIGHT __m256
#define GATHER(mask, base, col) _mm256_mmask_i32gather_ps(_mm256_setzero_ps(), mask, col, base, 4)
#define SCATTER(base, mask, col, v) _mm256_mask_i32scatter_ps(base, mask, col, v, 4)
#define ENTRIES(mask, value) _mm256_maskz_loadu_ps(mask, value)
#endif
#define COLUMNS(mask, col) _mm256_maskz_loadu_epi32(mask, col)

/* The lanes of entries [e, count). */
#define ENTRY_MASK(e, count) ((__mmask8)((count) - (e) >= 8 ? 0xff : (1u << ((count) - (e))) - 1))

/* Below this a plain loop is cheaper. */
#define WORTH_LANES 4

ALWAYS_INLINE real FN(sparse_dot)(const real *value, const int32_t *col, int64_t count, const real *y) {
    if (count < WORTH_LANES) {
        real dot = 0;
        for (int64_t e = 0; e < count; e++) dot += value[e] * y[col[e]];
        return dot;
    }
    EIGHT sum = {0};
    for (int64_t e = 0; e < count; e += 8) {
        const __mmask8 mask = ENTRY_MASK(e, count);
        sum += ENTRIES(mask, value + e) * GATHER(mask, y, COLUMNS(mask, col + e));
    }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

ALWAYS_INLINE void FN(sparse_scatter)(real *w, real p, const real *value, const int32_t *col, int64_t count) {
    if (count < WORTH_LANES) {
        for (int64_t e = 0; e < count; e++) w[col[e]] += p * value[e];
        return;
    }
    for (int64_t e = 0; e < count; e += 8) {
        const __mmask8 mask = ENTRY_MASK(e, count);
        const __m256i columns = COLUMNS(mask, col + e);
        const EIGHT sum = GATHER(mask, w, columns) + p * ENTRIES(mask, value + e);
        SCATTER(w, mask, columns, sum);
    }
}

#undef EIGHT
#undef GATHER
#undef SCATTER
#undef ENTRIES
#undef COLUMNS
#undef ENTRY_MASK
#undef WORTH_LANES

#else

/* Four sums hide the latency of the additions. */
ALWAYS_INLINE real FN(sparse_dot)(const real *value, const int32_t *col, int64_t count, const real *y) {
    real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t e = 0;
    for (; e + 4 <= count; e += 4) {
        s0 += value[e] * y[col[e]];
        s1 += value[e + 1] * y[col[e + 1]];
        s2 += value[e + 2] * y[col[e + 2]];
        s3 += value[e + 3] * y[col[e + 3]];
    }
    for (; e < count; e++) s0 += value[e] * y[col[e]];
    return (s0 + s1) + (s2 + s3);
}

ALWAYS_INLINE void FN(sparse_scatter)(real *w, real p, const real *value, const int32_t *col, int64_t count) {
    int64_t e = 0;
    for (; e + 4 <= count; e += 4) {
        real w0 = w[col[e]] + p * value[e], w1 = w[col[e + 1]] + p * value[e + 1];
        real w2 = w[col[e + 2]] + p * value[e + 2], w3 = w[col[e + 3]] + p * value[e + 3];
        w[col[e]] = w0;
        w[col[e + 1]] = w1;
        w[col[e + 2]] = w2;
        w[col[e + 3]] = w3;
    }
    for (; e < count; e++) w[col[e]] += p * value[e];
}

#endif
