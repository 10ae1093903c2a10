/* Bits of CPUID and XCR0 by Intel's manual (volume 2A, CPUID; volume 1, 13.3), one for each option that
 * CMakeLists.txt compiles the bodies with, and for those that -mavx2 brings along. The compiler's own
 * __builtin_cpu_supports does not know all of them. */
#include "backends/cpu_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    SSE3 = 1 << 0,
    SSSE3 = 1 << 9,
    FMA = 1 << 12,
    SSE4_1 = 1 << 19,
    SSE4_2 = 1 << 20,
    POPCNT = 1 << 23,
    OSXSAVE = 1 << 27,
    AVX = 1 << 28,
    F16C = 1 << 29
};
enum {
    BMI1 = 1 << 3,
    AVX2 = 1 << 5,
    BMI2 = 1 << 8,
    AVX512F = 1 << 16,
    AVX512DQ = 1 << 17,
    AVX512BW = 1 << 30
};
static const uint32_t AVX512VL = UINT32_C(1) << 31;
enum { SAVES_YMM = 1 << 1 | 1 << 2, SAVES_ZMM = SAVES_YMM | 1 << 5 | 1 << 6 | 1 << 7 };

struct ki_cpuid ki_cpuid_read(void) {
    struct ki_cpuid read = {0};
#if defined(__x86_64__) && !defined(KI_BASE_ONLY)
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) read.leaf_1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) read.leaf_7 = b;
    if (read.leaf_1 & OSXSAVE) {
        __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
        read.xcr0 = a;
    }
#endif
    return read;
}

enum ki_isa ki_isa_of(struct ki_cpuid cpuid) {
    const uint32_t first = SSE3 | SSSE3 | FMA | SSE4_1 | SSE4_2 | POPCNT | OSXSAVE | AVX | F16C;
    const uint32_t avx2 = BMI1 | AVX2 | BMI2, avx512 = AVX512F | AVX512DQ | AVX512BW | AVX512VL;
    if ((cpuid.leaf_1 & first) != first || (cpuid.leaf_7 & avx2) != avx2) return KI_ISA_BASE;
    if ((cpuid.xcr0 & SAVES_YMM) != SAVES_YMM) return KI_ISA_BASE;
    const bool wide = (cpuid.leaf_7 & avx512) == avx512 && (cpuid.xcr0 & SAVES_ZMM) == SAVES_ZMM;
    return wide ? KI_ISA_AVX512 : KI_ISA_AVX2;
}
