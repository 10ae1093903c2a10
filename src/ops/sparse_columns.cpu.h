/* CPU bodies of sparse columns (sparse_columns.h), of doubles whatever X's type.
 *
 * Columns are short and come in any order, which the hardware's prefetching copes with; asking for lines ahead, as sparse_row.h
 * does for rows, would bring in what lies behind a column for nothing. Gathers take 0.6 times as long as single loads;
 * scatters take longer than single stores. */
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

static double column_dot(const struct ki_sparse_column *column, const double *r) {
    return column_sum(column->scaled, column->row, column->count, r);
}

/* Rows are distinct within a column: loads before stores. */
static void column_add(double *r, const struct ki_sparse_column *column, double step) {
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

/* An entry that is left out is overwritten by the next: which ones cannot be foreseen, so that there are no branches. */
static void column_scale(struct ki_sparse_column *column, const int32_t *restrict row,
                         const double *restrict value, const double *q, double least) {
    double *restrict scaled = column->scaled;
    int32_t *restrict kept = column->row;
    int64_t e = 0, to = 0;
    double sum[4] = {0}; /* squares and products, then those of the rows left out */
#if defined(__AVX512F__)
    __m512d squares[2] = {{0}}, products[2] = {{0}};
    for (; e + 8 <= column->count; e += 8) {
        const __m256i at = _mm256_loadu_si256((const __m256i *)(row + e));
        const __m512d factor = _mm512_i32gather_pd(at, q, 8), u = _mm512_loadu_pd(value + e) * factor;
        const __mmask8 in = _mm512_cmp_pd_mask(factor, _mm512_set1_pd(least), _CMP_GE_OQ);
        _mm512_storeu_pd(scaled + to, _mm512_maskz_compress_pd(in, u));
        _mm256_storeu_si256((__m256i *)(kept + to), _mm256_maskz_compress_epi32(in, at));
        to += __builtin_popcount(in);
        squares[0] = _mm512_mask3_fmadd_pd(u, u, squares[0], in);
        products[0] = _mm512_mask3_fmadd_pd(u, factor, products[0], in);
        squares[1] = _mm512_mask3_fmadd_pd(u, u, squares[1], (__mmask8)~in);
        products[1] = _mm512_mask3_fmadd_pd(u, factor, products[1], (__mmask8)~in);
    }
    for (int i = 0; i < 2; i++) {
        sum[2 * i] = _mm512_reduce_add_pd(squares[i]);
        sum[2 * i + 1] = _mm512_reduce_add_pd(products[i]);
    }
#endif
    for (; e < column->count; e++) {
        const double factor = q[row[e]], u = value[e] * factor;
        const bool in = factor >= least;
        scaled[to] = u;
        kept[to] = row[e];
        to += in;
        sum[0] += in ? u * u : 0;
        sum[1] += in ? u * factor : 0;
        sum[2] += in ? 0 : u * u;
        sum[3] += in ? 0 : u * factor;
    }
    column->count = to;
    column->square = sum[0];
    column->product = sum[1];
    column->rest_square = sum[2];
    column->rest_product = sum[3];
}

#endif
