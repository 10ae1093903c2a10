/* Vectors of `real` for CPU bodies, in the compilers' own vector extension: one source for every instruction
 * set, its width fixed by the flags that the body is built with. Included once per element type (see
 * bodies/each_real.h). */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef SIMD_BYTES
#if defined(__AVX512F__)
#define SIMD_BYTES 64
#elif defined(__AVX2__)
#define SIMD_BYTES 32
#else
#define SIMD_BYTES 16
#endif
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define NEVER_INLINE static __attribute__((noinline)) /* large, called from many places, once a block */
#endif

#undef LANES
#define LANES (SIMD_BYTES / real_bytes)

typedef real FN(vreal) __attribute__((vector_size(SIMD_BYTES)));
typedef real_bits FN(vmask) __attribute__((vector_size(SIMD_BYTES)));
typedef int64_t FN(vlong) __attribute__((vector_size(SIMD_BYTES)));

ALWAYS_INLINE FN(vreal) FN(load)(const real *from) {
    FN(vreal) v;
    memcpy(&v, from, sizeof v);
    return v;
}

ALWAYS_INLINE void FN(store)(real *to, FN(vreal) v) {
    memcpy(to, &v, sizeof v);
}

/* The first `count` numbers from there, zeros in the other lanes; nothing behind them is read or written. */
ALWAYS_INLINE FN(vreal) FN(load_first)(const real *from, int64_t count) {
#if defined(__AVX512F__)
    const unsigned lanes = (1u << count) - 1;
    return real_bytes == 4 ? (FN(vreal))_mm512_maskz_loadu_ps((__mmask16)lanes, from)
                           : (FN(vreal))_mm512_maskz_loadu_pd((__mmask8)lanes, from);
#else
    real lanes[LANES] = {0};
    for (int64_t i = 0; i < count; i++) lanes[i] = from[i];
    return FN(load)(lanes);
#endif
}

ALWAYS_INLINE void FN(store_first)(real *to, FN(vreal) v, int64_t count) {
#if defined(__AVX512F__)
    const unsigned lanes = (1u << count) - 1;
    if (real_bytes == 4)
        _mm512_mask_storeu_ps(to, (__mmask16)lanes, (__m512)v);
    else
        _mm512_mask_storeu_pd(to, (__mmask8)lanes, (__m512d)v);
#else
    for (int64_t i = 0; i < count; i++) to[i] = v[i];
#endif
}

/* Doubles, whatever `real` is: as many numbers as fill a vector of them. Of f32 by name, as gcc 12 converts
 * in halves. */
typedef double FN(vdouble) __attribute__((vector_size(SIMD_BYTES)));
typedef int64_t FN(vdouble_mask) __attribute__((vector_size(SIMD_BYTES)));
#undef DOUBLE_LANES
#define DOUBLE_LANES (SIMD_BYTES / 8)

ALWAYS_INLINE FN(vdouble) FN(load_doubles)(const real *from) {
#if defined(__AVX512F__)
    if (real_bytes == 4) return (FN(vdouble))_mm512_cvtps_pd(_mm256_loadu_ps((const void *)from));
#elif defined(__AVX2__)
    if (real_bytes == 4) return (FN(vdouble))_mm256_cvtps_pd(_mm_loadu_ps((const void *)from));
#endif
    FN(vdouble) v = {0};
    for (int l = 0; l < DOUBLE_LANES; l++) v[l] = (double)from[l];
    return v;
}

ALWAYS_INLINE void FN(store_doubles)(real *to, FN(vdouble) v) {
#if defined(__AVX512F__)
    if (real_bytes == 4) {
        _mm256_storeu_ps((void *)to, _mm512_cvtpd_ps((__m512d)v));
        return;
    }
#elif defined(__AVX2__)
    if (real_bytes == 4) {
        _mm_storeu_ps((void *)to, _mm256_cvtpd_ps((__m256d)v));
        return;
    }
#endif
    for (int l = 0; l < DOUBLE_LANES; l++) to[l] = (real)v[l];
}

/* The same past the caches (store_past), where `to` begins as many numbers. */
ALWAYS_INLINE void FN(store_doubles_past)(real *to, FN(vdouble) v) {
#if defined(__AVX512F__)
    if (real_bytes == 4)
        _mm256_stream_ps((void *)to, _mm512_cvtpd_ps((__m512d)v));
    else
        _mm512_stream_pd((void *)to, (__m512d)v);
#elif defined(__AVX2__)
    if (real_bytes == 4)
        _mm_stream_ps((void *)to, _mm256_cvtpd_ps((__m256d)v));
    else
        _mm256_stream_pd((void *)to, (__m256d)v);
#else
    FN(store_doubles)(to, v);
#endif
}

/* The larger, or the NaN. */
ALWAYS_INLINE FN(vdouble) FN(larger_doubles)(FN(vdouble) a, FN(vdouble) b) {
#if defined(__AVX512F__)
    const __m512d larger = _mm512_max_pd((__m512d)b, (__m512d)a); /* a where one is NaN */
    return (FN(vdouble))_mm512_mask_mov_pd(larger, _mm512_cmp_pd_mask((__m512d)b, (__m512d)b, _CMP_UNORD_Q),
                                           (__m512d)b);
#elif defined(__AVX2__)
    const __m256d larger = _mm256_max_pd((__m256d)b, (__m256d)a);
    return (FN(vdouble))_mm256_blendv_pd(larger, (__m256d)b,
                                         _mm256_cmp_pd((__m256d)b, (__m256d)b, _CMP_UNORD_Q));
#else
    const FN(vdouble_mask) take = (b > a) | (b != b);
    return (FN(vdouble))(((FN(vdouble_mask))b & take) | ((FN(vdouble_mask))a & ~take));
#endif
}

/* Past the caches, where `to` begins a vector: what is larger than they are need not be read to be written.
 * Behind the last of a thread's such stores comes end_of_stores_past. */
ALWAYS_INLINE void FN(store_past)(real *to, FN(vreal) v) {
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)to, (__m512i)v);
#elif defined(__AVX2__)
    _mm256_stream_si256((void *)to, (__m256i)v);
#else
    FN(store)(to, v);
#endif
}

ALWAYS_INLINE void FN(end_of_stores_past)(void) {
#if defined(__AVX2__)
    _mm_sfence();
#endif
}

/* Lane which[l] of v in lane l. */
ALWAYS_INLINE FN(vreal) FN(permuted)(FN(vreal) v, FN(vmask) which) {
#if defined(__AVX512F__)
    return real_bytes == 4 ? (FN(vreal))_mm512_permutexvar_ps((__m512i)which, (__m512)v)
                           : (FN(vreal))_mm512_permutexvar_pd((__m512i)which, (__m512d)v);
#else
#if defined(__AVX2__)
    if (real_bytes == 4) return (FN(vreal))_mm256_permutevar8x32_ps((__m256)v, (__m256i)which);
#endif
    FN(vreal) moved = {0};
    for (int l = 0; l < LANES; l++) moved[l] = v[which[l]];
    return moved;
#endif
}

/* The smaller and the larger of two, lane by lane; b where one of them is NaN. By name, as compilers make a
 * comparison and two selections of it. */
#if defined(__AVX512F__)
#define EITHER(which, a, b)                                                                                  \
    (real_bytes == 4 ? (FN(vreal))_mm512_##which##_ps((__m512)(a), (__m512)(b))                              \
                     : (FN(vreal))_mm512_##which##_pd((__m512d)(a), (__m512d)(b)))
#elif defined(__AVX2__)
#define EITHER(which, a, b)                                                                                  \
    (real_bytes == 4 ? (FN(vreal))_mm256_##which##_ps((__m256)(a), (__m256)(b))                              \
                     : (FN(vreal))_mm256_##which##_pd((__m256d)(a), (__m256d)(b)))
#else
#define EITHER(which, a, b) FN(which##_of)((a), (b))
ALWAYS_INLINE FN(vreal) FN(min_of)(FN(vreal) a, FN(vreal) b) {
    const FN(vmask) less = a < b;
    return (FN(vreal))((less & (FN(vmask))a) | (~less & (FN(vmask))b));
}

ALWAYS_INLINE FN(vreal) FN(max_of)(FN(vreal) a, FN(vreal) b) {
    const FN(vmask) more = a > b;
    return (FN(vreal))((more & (FN(vmask))a) | (~more & (FN(vmask))b));
}
#endif
ALWAYS_INLINE FN(vreal) FN(least)(FN(vreal) a, FN(vreal) b) {
    return EITHER(min, a, b);
}

ALWAYS_INLINE FN(vreal) FN(largest)(FN(vreal) a, FN(vreal) b) {
    return EITHER(max, a, b);
}
#undef EITHER

/* Lanes beyond the mask become +0, whatever they held (NaN too). */
ALWAYS_INLINE FN(vreal) FN(masked)(FN(vreal) v, FN(vmask) mask) {
    return (FN(vreal))((FN(vmask))v & mask);
}

ALWAYS_INLINE FN(vmask) FN(first_lanes)(int64_t count) {
    FN(vmask) mask;
    for (int i = 0; i < LANES; i++) mask[i] = i < count ? (real_bits)-1 : 0;
    return mask;
}

ALWAYS_INLINE real FN(lane_sum)(FN(vreal) v) {
    real part[LANES];
    memcpy(part, &v, sizeof v);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) part[i] += part[i + half];
    return part[0];
}

/* The lanes of two vectors, taken as one sequence, in a new order. */
#undef SHUFFLE
#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (FN(vmask)){__VA_ARGS__})
#endif
#undef EVEN
#undef ODD
#undef TWINS_LOW
#undef TWINS_HIGH
#undef LOW_HALVES
#if LANES == 2
#define EVEN 0, 2
#define ODD 1, 3
#define TWINS_LOW 0, 0
#define TWINS_HIGH 1, 1
#define LOW_HALVES 0, 2
#elif LANES == 4
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define TWINS_LOW 0, 0, 1, 1
#define TWINS_HIGH 2, 2, 3, 3
#define LOW_HALVES 0, 1, 4, 5
#elif LANES == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define TWINS_LOW 0, 0, 1, 1, 2, 2, 3, 3
#define TWINS_HIGH 4, 4, 5, 5, 6, 6, 7, 7
#define LOW_HALVES 0, 1, 2, 3, 8, 9, 10, 11
#else
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define TWINS_LOW 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7
#define TWINS_HIGH 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15
#define LOW_HALVES 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#endif
/* Sums of neighbouring pairs of (a, b) taken as one sequence: the lower half from a, the upper from b. */
ALWAYS_INLINE FN(vreal) FN(pair_sums)(FN(vreal) a, FN(vreal) b) {
    return SHUFFLE(a, b, EVEN) + SHUFFLE(a, b, ODD);
}

/* Each lane of v's lower or upper half twice. */
ALWAYS_INLINE FN(vreal) FN(twins)(FN(vreal) v, bool upper) {
    return upper ? SHUFFLE(v, v, TWINS_HIGH) : SHUFFLE(v, v, TWINS_LOW);
}

/* `count` numbers again and again; a constant power of two, and in a vector twice or more. What is longer
 * than a number that the compiler can repeat by itself asks for an instruction by name, which loads and
 * repeats at once: a load and a shuffle would take the port that half of all multiplications go through. */
ALWAYS_INLINE FN(vreal) FN(spread)(int count, const real *from) {
    if (count == 1) return *from - (FN(vreal)){0};
#if defined(__AVX512F__)
    if (count * real_bytes == 32)
        return (FN(vreal))_mm512_broadcast_f64x4(_mm256_loadu_pd((const void *)from));
    if (count * real_bytes == 16) return (FN(vreal))_mm512_broadcast_f32x4(_mm_loadu_ps((const void *)from));
#elif defined(__AVX2__)
    if (count * real_bytes == 16) return (FN(vreal))_mm256_broadcast_ps((const void *)from);
#endif
    int64_t both;
    memcpy(&both, from, sizeof both);
    return (FN(vreal))(both - (FN(vlong)){0});
}

/* `rows` pieces of LANES / rows numbers, a stride apart; LANES numbers are read of each. `rows` is 1, 2 or,
 * of the longest vectors, 4. */
ALWAYS_INLINE FN(vreal) FN(load_pieces)(int rows, const real *from, int64_t stride) {
    const FN(vreal) first = FN(load)(from);
    if (rows == 1) return first;
    const FN(vreal) second = FN(load)(from + stride);
#if LANES == 16
#define LOW_QUARTERS 0, 1, 2, 3, 16, 17, 18, 19, 0, 1, 2, 3, 16, 17, 18, 19
    if (rows == 4) {
        const FN(vreal) third = FN(load)(from + 2 * stride), fourth = FN(load)(from + 3 * stride);
        return SHUFFLE(SHUFFLE(first, second, LOW_QUARTERS), SHUFFLE(third, fourth, LOW_QUARTERS),
                       LOW_HALVES);
    }
#undef LOW_QUARTERS
#endif
    return SHUFFLE(first, second, LOW_HALVES);
}

/* The lane sums of four vectors at once: a tree that halves them together instead of one by one. */
ALWAYS_INLINE void FN(four_lane_sums)(real sums[4], const FN(vreal) v[4]) {
    FN(vreal) low = FN(pair_sums)(v[0], v[1]), high = FN(pair_sums)(v[2], v[3]);
#if LANES == 2
    FN(store)(sums, low);
    FN(store)(sums + 2, high);
#else
    low = FN(pair_sums)(low, high);
    for (int left = LANES / 4; left > 1; left /= 2) low = FN(pair_sums)(low, low);
    memcpy(sums, &low, 4 * sizeof(real));
#endif
}
