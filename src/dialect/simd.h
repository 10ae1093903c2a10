/* Vectors of `real` for CPU bodies, in the compilers' own vector extension: one source for every instruction set, its width
 * fixed by the flags that the body is built with. Included once per element type (see ops/each_real.h). */
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
#endif

#define LANES ((int)(SIMD_BYTES / sizeof(real)))

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
    real part[SIMD_BYTES / sizeof(real)];
    memcpy(part, &v, sizeof v);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) part[i] += part[i + half];
    return part[0];
}
