/* A sparse row's dot product with y and its scatter into w, for CPU bodies. Included once per element type,
 * after simd.h.
 *
 * Columns are distinct within a row, so that several updates of w may be under way at once. AVX-512 has
 * gathers and scatters, loads before stores, and masks: a row is whole vectors and a last one of one to eight
 * entries, the same for both loops, so that of a short row of any length only the number of its vectors can
 * be mispredicted.
 *
 * Element j of y and w lies at stride * j, stride being 1, or 2 where the two are interleaved: of a wide
 * matrix almost every entry misses the caches once, and then finds its y and its w in one line. `ahead` asks
 * for that line early; the row must then have SPARSE_AHEAD entries of the matrix behind it. Where all entries
 * are the same number, `value` is that one number (`same`). All three are constants wherever this is
 * inlined. */

/* Entries whose values and columns are asked for, and entries whose y is, before they are used: measured, the
 * hardware prefetches neither as early as dot and scatter in turns want them. y and w are asked into the
 * second-level cache only: the first level can wait for fewer lines at a time, and these were its limit. */
#ifndef SPARSE_AHEAD
#define SPARSE_AHEAD 128
#endif
#define STREAM_AHEAD (2048 / real_bytes)

/* Beforehand for the `count` entries at value and col. */
ALWAYS_INLINE void FN(fetch_entries)(const real *value, const int32_t *col, int64_t count, const real *base,
                                     int stride, bool ahead, bool same) {
    if (!same) __builtin_prefetch(value + STREAM_AHEAD);
    __builtin_prefetch(col + STREAM_AHEAD);
    for (int64_t e = SPARSE_AHEAD; ahead && e < SPARSE_AHEAD + count; e++)
        __builtin_prefetch(base + stride * (int64_t)col[e], 0, 2);
}

#if defined(__AVX512F__)
/* Eight entries at a time in either type: sixteen floats would leave most lanes of short rows empty, and a
 * gather's cost goes by its lanes. */
#if real_bytes == 8
#define EIGHT __m512d
#define GATHER(mask, base, at) _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, at, base, 8)
#define SCATTER(base, mask, at, v) _mm512_mask_i32scatter_pd(base, mask, at, v, 8)
#define ENTRIES(mask, value) _mm512_maskz_loadu_pd(mask, value)
#define NUMBERS(mask, value) _mm512_maskz_mov_pd(mask, _mm512_set1_pd(*(value)))
#define ADD_PRODUCT(sum, a, b) _mm512_fmadd_pd(a, b, sum)
#define EACH(number) _mm512_set1_pd(number)
#else
#define EIGHT __m256
#define GATHER(mask, base, at) _mm256_mmask_i32gather_ps(_mm256_setzero_ps(), mask, at, base, 4)
#define SCATTER(base, mask, at, v) _mm256_mask_i32scatter_ps(base, mask, at, v, 4)
#define ENTRIES(mask, value) _mm256_maskz_loadu_ps(mask, value)
#define NUMBERS(mask, value) _mm256_maskz_mov_ps(mask, _mm256_set1_ps(*(value)))
#define ADD_PRODUCT(sum, a, b) _mm256_fmadd_ps(a, b, sum)
#define EACH(number) _mm256_set1_ps(number)
#endif
/* Says where the elements of y and w lie: 32 bits hold stride times a column (pass/cpu/csr.h sees to it). */
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

/* The sum, with the products of a vector's entries. Products are added in one rounding by name: of a product
 * with one number a compiler would else make a constant, and the same entries would get other bits. */
ALWAYS_INLINE EIGHT FN(eight_products)(EIGHT sum, __mmask8 mask, const real *value, const int32_t *col,
                                       const real *y, int stride, bool ahead, bool same) {
    FN(fetch_entries)(value, col, 8, y, stride, ahead, same);
    return ADD_PRODUCT(sum, same ? NUMBERS(mask, value) : ENTRIES(mask, value),
                       GATHER(mask, y, PLACES(mask, col)));
}

ALWAYS_INLINE void FN(eight_updates)(__mmask8 mask, real *w, real p, const real *value, const int32_t *col,
                                     int stride, bool same) {
    const __m256i at = PLACES(mask, col);
    const EIGHT sum =
        ADD_PRODUCT(GATHER(mask, w, at), EACH(p), same ? NUMBERS(mask, value) : ENTRIES(mask, value));
    SCATTER(w, mask, at, sum);
}

ALWAYS_INLINE real FN(sparse_dot)(const real *value, const int32_t *col, int64_t count, const real *y,
                                  int stride, bool ahead, bool same) {
    if (count == 0) return 0;
    const int64_t last = LAST_VECTOR(count);
    EIGHT sum = {0};
    for (int64_t e = 0; e < last; e += 8)
        sum = FN(eight_products)(sum, 0xff, value + (same ? 0 : e), col + e, y, stride, ahead, same);
    value += same ? 0 : last;
    sum = FN(eight_products)(sum, LAST_LANES(count), value, col + last, y, stride, ahead, same);
    return FN(eight_sum)(sum);
}

ALWAYS_INLINE void FN(sparse_scatter)(real *w, real p, const real *value, const int32_t *col, int64_t count,
                                      int stride, bool same) {
    if (count == 0) return;
    const int64_t last = LAST_VECTOR(count);
    for (int64_t e = 0; e < last; e += 8)
        FN(eight_updates)(0xff, w, p, value + (same ? 0 : e), col + e, stride, same);
    FN(eight_updates)(LAST_LANES(count), w, p, value + (same ? 0 : last), col + last, stride, same);
}

#undef EIGHT
#undef GATHER
#undef SCATTER
#undef ENTRIES
#undef NUMBERS
#undef ADD_PRODUCT
#undef EACH
#undef PLACES
#undef LAST_LANES
#undef LAST_VECTOR

#else

/* Four entries at a time. A row is whole groups and a last one of one to four entries, whose lanes behind the
 * row repeat an entry and add nothing: rows of different lengths then take no branch but that of their number
 * of groups, and a branch mispredicted costs as much as six entries. Values come as vectors, since loads of
 * single floating-point numbers, of which y and w need one each, are what a core can begin fewest of. */
#if LANES < 4
#define PART 2
#define PARTS(of)                                                                                            \
    {                                                                                                        \
        {of(0), of(1)}, {                                                                                    \
            of(2), of(3)                                                                                     \
        }                                                                                                    \
    }
#else
#define PART 4
#define PARTS(of)                                                                                            \
    {                                                                                                        \
        { of(0), of(1), of(2), of(3) }                                                                       \
    }
#endif
typedef real FN(group_part) __attribute__((vector_size(PART * real_bytes)));
typedef real_bits FN(group_mask) __attribute__((vector_size(PART * real_bytes)));

struct FN(group) {
    FN(group_part) value[4 / PART];
    int64_t place[4]; /* of y and of w */
};

#define SAME(i) *value
ALWAYS_INLINE struct FN(group) FN(group_at)(const real *value, const int32_t *col, int stride, bool same) {
    struct FN(group) group = {PARTS(SAME), {0}};
    if (!same) memcpy(group.value, value, sizeof group.value);
    for (int i = 0; i < 4; i++) group.place[i] = stride * (int64_t)col[i];
    return group;
}

/* The first `count` entries of four, and the first one again for those that are not there. By a table: of
 * conditions compilers make branches. The addresses are hidden from them, since they would keep more of those
 * than there are registers. */
ALWAYS_INLINE struct FN(group)
    FN(group_of)(int64_t count, const real *value, const int32_t *col, int stride, bool same) {
    static const int64_t entries[4][3] = {{0, 0, 0}, {1, 0, 0}, {1, 2, 0}, {1, 2, 3}};
    const int64_t *entry = entries[count - 1];
    __asm__("" : "+r"(value), "+r"(col));
    const int64_t e0 = 0, e1 = entry[0], e2 = entry[1], e3 = entry[2];
#define VALUE(i) value[same ? 0 : e##i]
    struct FN(group) group = {PARTS(VALUE), {0}};
#undef VALUE
    group.place[0] = stride * (int64_t)col[0];
    group.place[1] = stride * (int64_t)col[e1];
    group.place[2] = stride * (int64_t)col[e2];
    group.place[3] = stride * (int64_t)col[e3];
    return group;
}

/* Zeros behind the first `count` of four numbers. */
ALWAYS_INLINE void FN(group_cut)(FN(group_part) four[4 / PART], int64_t count) {
#define LANE(i) (i)
    const FN(group_mask) lane[4 / PART] = PARTS(LANE);
#undef LANE
    for (int part = 0; part < 4 / PART; part++)
        four[part] = (FN(group_part))((FN(group_mask))four[part] & (lane[part] < (real_bits)count));
}

/* Times the elements of y. */
ALWAYS_INLINE void FN(group_products)(struct FN(group) * group, const real *y) {
#define OF_Y(i) y[group->place[i]]
    const FN(group_part) of_y[4 / PART] = PARTS(OF_Y);
#undef OF_Y
    for (int part = 0; part < 4 / PART; part++) group->value[part] *= of_y[part];
}

/* One after the other, as a last group repeats an entry. */
ALWAYS_INLINE void FN(group_add)(real *w, const int64_t place[4], const FN(group_part) sum[4 / PART]) {
    for (int i = 0; i < 4; i++) w[place[i]] += sum[i / PART][i % PART];
}

#define LAST_GROUP(count) (((count)-1) & ~(int64_t)3)

ALWAYS_INLINE real FN(sparse_dot)(const real *value, const int32_t *col, int64_t count, const real *y,
                                  int stride, bool ahead, bool same) {
    if (count == 0) return 0;
    const int64_t last = LAST_GROUP(count);
    FN(group_part) sum[4 / PART] = {{0}};
    struct FN(group) group;
    for (int64_t e = 0; e < last; e += 4) {
        FN(fetch_entries)(value + e, col + e, 4, y, stride, ahead, same);
        group = FN(group_at)(value + (same ? 0 : e), col + e, stride, same);
        FN(group_products)(&group, y);
        for (int part = 0; part < 4 / PART; part++) sum[part] += group.value[part];
    }
    FN(fetch_entries)(value + last, col + last, 4, y, stride, ahead, same);
    group = FN(group_of)(count - last, value + (same ? 0 : last), col + last, stride, same);
    FN(group_products)(&group, y);
    FN(group_cut)(group.value, count - last);
    for (int part = 0; part < 4 / PART; part++) sum[part] += group.value[part];
    return (sum[0][0] + sum[0][1]) + (sum[2 / PART][2 % PART] + sum[3 / PART][3 % PART]);
}

ALWAYS_INLINE void FN(sparse_scatter)(real *w, real p, const real *value, const int32_t *col, int64_t count,
                                      int stride, bool same) {
    if (count == 0) return;
    const int64_t last = LAST_GROUP(count);
    struct FN(group) group;
    for (int64_t e = 0; e < last; e += 4) {
        group = FN(group_at)(value + (same ? 0 : e), col + e, stride, same);
        for (int part = 0; part < 4 / PART; part++) group.value[part] *= p;
        FN(group_add)(w, group.place, group.value);
    }
    group = FN(group_of)(count - last, value + (same ? 0 : last), col + last, stride, same);
    for (int part = 0; part < 4 / PART; part++) group.value[part] *= p;
    FN(group_cut)(group.value, count - last);
    FN(group_add)(w, group.place, group.value);
}

#undef SAME
#undef LAST_GROUP
#undef PARTS
#undef PART

#endif
#undef STREAM_AHEAD
