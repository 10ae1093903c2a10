/* Products of small matrices of halves on tensor cores, for kernels that look for the few candidates that are
 * worth exact arithmetic (PTX ISA, "mma" m16n8k16, "ldmatrix"). Of a tile in on-chip memory a lane names a
 * row of 8 halves. */
#ifndef HALVES_H
#define HALVES_H
#include "dialect/bulk.h"
#if defined(BULK) && defined(SCREEN)

/* Two numbers rounded to halves, the first one below. */
DEVICE_FN uint halves_of(float first, float second) {
    uint both = 0;
    PTX_PURE("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

DEVICE_FN float low_half(uint both) {
    float x = 0;
    PTX_PURE("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tcvt.f32.f16 %0, low;\n\t}"
             : "=f"(x)
             : "r"(both));
    return x;
}

DEVICE_FN float high_half(uint both) {
    return low_half(both >> 16);
}

/* Four matrices of 8 x 8 halves, the rows of each named by eight lanes. */
DEVICE_FN void load_matrices(uint *to, uint row) {
    PTX("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(row)
        : "memory");
}

/* Four words of on-chip memory at a multiple of 16 bytes. */
DEVICE_FN void load_words(uint *to, uint from) {
    PTX("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(from)
        : "memory");
}

/* sum += a b^T, 16 x 16 times 8 x 16. */
DEVICE_FN void multiply_halves(float *sum, const uint *a, uint b0, uint b1) {
    PTX_PURE(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* A thread's own copy of 16 bytes; those of all but the last `pending` commits have come when it has
 * waited. */
DEVICE_FN void copy_16(uint to, __global const void *from) {
    PTX("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
}

DEVICE_FN float of_lane_xor(float x, int mask) {
    float other = x;
    PTX("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(other) : "f"(x), "r"(mask));
    return other;
}

DEVICE_FN int of_lane_xor_int(int x, int mask) {
    int other = x;
    PTX("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(other) : "r"(x), "r"(mask));
    return other;
}

DEVICE_FN double of_lane_xor_wide(double x, int mask) {
    double other = x;
    PTX("{\n\t.reg .b32 low, high;\n\tmov.b64 {low, high}, %1;\n\t"
        "shfl.sync.bfly.b32 low, low, %2, 31, 0xffffffff;\n\tshfl.sync.bfly.b32 high, high, %2, 31, "
        "0xffffffff;\n\t"
        "mov.b64 %0, {low, high};\n\t}"
        : "=d"(other)
        : "d"(x), "r"(mask));
    return other;
}

#endif
#endif
