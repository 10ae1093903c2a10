/* Vectors of `real` for CPU bodies, in the compilers' own vector extension: one source for every instruction
 * set, its width fixed by the flags that the body is built with. Included once per element type (see
 * ops/each_real.h). */
#include <stdint.h>
#include <string.h>

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

ALWAYS_INLINE FN(vreal) FN(load)(const real *from) {
    FN(vreal) v;
    memcpy(&v, from, sizeof v);
    return v;
}

ALWAYS_INLINE void FN(store)(real *to, FN(vreal) v) {
    memcpy(to, &v, sizeof v);
}

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

/* Sums of neighbouring pairs of (a, b) taken as one sequence: the lower half from a, the upper from b. */
#undef EVEN
#undef ODD
#if LANES == 2
#define EVEN 0, 2
#define ODD 1, 3
#elif LANES == 4
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#elif LANES == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#endif
ALWAYS_INLINE FN(vreal) FN(pair_sums)(FN(vreal) a, FN(vreal) b) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, EVEN) + __builtin_shufflevector(a, b, ODD);
#else
    return __builtin_shuffle(a, b, (FN(vmask)){EVEN}) + __builtin_shuffle(a, b, (FN(vmask)){ODD});
#endif
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
