/* CPU bodies of sparse columns (sparse_columns.h), of doubles whatever X's type.
 *
 * Columns are short and come in any order, which the hardware's prefetching copes with; asking for lines
 * ahead, as sparse_row.h does for rows, would bring in what lies behind a column for nothing. Gathers take
 * 0.6 times as long as single loads; scatters take longer than single stores. */
#if real_bytes == 8

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* sum of value .* r[row] */
ALWAYS_INLINE double column_sum(const double *value, const int32_t *row, int64_t count, const double *r) {
    int64_t e = 0;
    double rest = 0;
#if defined(__AVX512F__)
    __m512d sum = {0};
    for (; e < count; e += 8) {
        const __mmask8 mask = count - e >= 8 ? 0xff : (__mmask8)((1u << (count - e)) - 1);
        const __m256i at = _mm256_maskz_loadu_epi32(mask, row + e);
        sum += _mm512_maskz_loadu_pd(mask, value + e) *
               _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, at, r, 8);
    }
    const __m256d half = _mm512_castpd512_pd256(sum) + _mm512_extractf64x4_pd(sum, 1);
    const __m128d quarter = _mm256_castpd256_pd128(half) + _mm256_extractf128_pd(half, 1);
    rest = quarter[0] + quarter[1];
#else
    double s[4] = {0}; /* each addition would wait for the one before */
#if defined(__AVX2__)
    __m256d sum = {0}, other = {0};
    for (; e + 8 <= count; e += 8) {
        sum += _mm256_loadu_pd(value + e) *
               _mm256_i32gather_pd(r, _mm_loadu_si128((const __m128i *)(row + e)), 8);
        other += _mm256_loadu_pd(value + e + 4) *
                 _mm256_i32gather_pd(r, _mm_loadu_si128((const __m128i *)(row + e + 4)), 8);
    }
    _mm256_storeu_pd(s, sum + other);
#endif
    for (; e + 4 <= count; e += 4)
        for (int i = 0; i < 4; i++) s[i] += value[e + i] * r[row[e + i]];
    for (; e < count; e++) s[0] += value[e] * r[row[e]];
    rest = (s[0] + s[1]) + (s[2] + s[3]);
#endif
    return rest;
}

double FN(column_dot)(const struct ki_sparse_column *column, const double *r) {
    return column_sum(column->scaled, column->row, column->count, r);
}

/* Rows are distinct within a column: loads before stores. */
void FN(column_add)(double *r, const struct ki_sparse_column *column, double step) {
    const double *u = column->scaled;
    const int32_t *row = column->row;
    int64_t e = 0;
    for (; e + 4 <= column->count; e += 4) {
        double sum[4];
        for (int i = 0; i < 4; i++) sum[i] = r[row[e + i]] + step * u[e + i];
        for (int i = 0; i < 4; i++) r[row[e + i]] = sum[i];
    }
    for (; e < column->count; e++) r[row[e]] += step * u[e];
}

void FN(column_scale)(double *square, double *product, const struct ki_sparse_column *column,
                      const double *restrict value, const double *q) {
    double *restrict scaled = column->scaled;
    const int32_t *restrict row = column->row;
    FN(vreal) sum = {0};
    double rest = 0;
    int64_t e = 0;
    for (int64_t i = 0; i < column->count; i++) scaled[i] = value[i] * q[row[i]];
    for (; e + LANES <= column->count; e += LANES) {
        const FN(vreal) u = FN(load)(scaled + e);
        sum += u * u;
    }
    for (; e < column->count; e++) rest += scaled[e] * scaled[e];
    *square = FN(lane_sum)(sum) + rest;
    *product = FN(column_dot)(column, q);
}

#endif
