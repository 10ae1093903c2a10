/* Products of small matrices on tensor cores, for Gram matrices and the sums of dialect/tile.h (PTX ISA,
 * "mma"). A word is 8 bytes of a row of X.
 *
 *   f64: m8n8k4, a word is one element
 *   f32: m16n8k8 in tf32, a word is two; x = high + low with 11 bits each,
 *        and the 16 rows of the left operand are the high and the low parts of 8:
 *        two products give all four terms, so that no bits of f32's 24 are lost
 *        but the last.
 *        Sums of more than a few products are f32 additions, since tensor cores round towards zero. */
#ifndef TENSOR_H
#define TENSOR_H
#include "dialect/bulk.h"

#if defined(BULK) && (defined(TILE) || defined(TENSOR)) && !defined(REAL_F64)
/* The 11 leading bits, rounded, and the rest. */
DEVICE_FN void split(uint *high, uint *low, real x) {
    *high = (BITS_OF(x) + 0x1000u) & 0xffffe000u;
    *low = BITS_OF(x - REAL_OF(*high));
}

/* sum of 16 x 8 += a b over 8: of each number the 11 leading bits. */
DEVICE_FN void multiply_tf32(real *sum, const uint *a, const uint *b) {
    PTX_PURE(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

#if defined(BULK) && defined(TILE)

#ifdef REAL_F64
typedef double word;

DEVICE_FN word no_word(void) {
    return 0.0;
}

#define PRODUCT 2 /* elements of a product's result that a lane has */
#define LEFTS 1   /* left operands for a block of 8 words */
struct left {
    real slot[2];
};

DEVICE_FN struct left left_of(real first, real second) {
    const struct left a = {{first, second}};
    return a;
}

/* sum += a x over 4 words. */
DEVICE_FN void multiply_add(real *sum, real a, word x) {
    PTX_PURE("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
             : "+d"(sum[0]), "+d"(sum[1])
             : "d"(a), "d"(x));
}

/* sum += y x^T for a block of 8 words. */
DEVICE_FN void dot_block(real *sum, const struct left *y, word x0, word x1) {
    multiply_add(sum, y->slot[0], x0);
    multiply_add(sum, y->slot[1], x1);
}

DEVICE_FN real product_element(const real *sum, int e) {
    return sum[e];
}

/* w += f x for a block of 8 words, over `units` times 8 rows; x[u] has those of the rows of f[u]. */
DEVICE_FN void scatter_block(real *w, const struct left *f, const word (*x)[2], const int units) {
#pragma unroll
    for (int u = 0; u < units; u++) {
        multiply_add(w, f[u].slot[0], x[u][0]);
        multiply_add(w, f[u].slot[1], x[u][1]);
    }
}
#else
typedef float2 word;

DEVICE_FN word no_word(void) {
    word zeros;
    zeros.x = zeros.y = 0.0f;
    return zeros;
}

#define PRODUCT 4
#define LEFTS 2
struct left {
    uint high[2], low[2];
};

DEVICE_FN struct left left_of(real first, real second) {
    struct left a;
    split(&a.high[0], &a.low[0], first);
    split(&a.high[1], &a.low[1], second);
    return a;
}

/* sum[0..1] += high(a) x, sum[2..3] += low(a) x. Of x and of what the 11 leading bits leave of it the tensor
 * core takes the 11 leading bits. */
DEVICE_FN void multiply_add(real *sum, const struct left *a, real first, real second) {
    const uint both[4] = {a->high[0], a->low[0], a->high[1], a->low[1]};
    const uint x[2] = {BITS_OF(first), BITS_OF(second)};
    const uint low[2] = {BITS_OF(first - REAL_OF(x[0] & 0xffffe000u)),
                         BITS_OF(second - REAL_OF(x[1] & 0xffffe000u))};
    multiply_tf32(sum, both, low);
    multiply_tf32(sum, both, x);
}

DEVICE_FN void dot_block(real *sum, const struct left *y, word x0, word x1) {
    multiply_add(sum, &y[0], x0.x, x0.y);
    multiply_add(sum, &y[1], x1.x, x1.y);
}

DEVICE_FN real product_element(const real *sum, int e) {
    return sum[e] + sum[e + 2];
}

/* Even columns, then odd ones. */
DEVICE_FN void scatter_block(real *w, const struct left *f, const word (*x)[2], const int units) {
    real even[PRODUCT] = {0}, odd[PRODUCT] = {0};
#pragma unroll
    for (int u = 0; u < units; u++) {
        multiply_add(even, &f[u], x[u][0].x, x[u][1].x);
        multiply_add(odd, &f[u], x[u][0].y, x[u][1].y);
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
        w[e] += product_element(even, e);
        w[2 + e] += product_element(odd, e);
    }
}
#endif

#endif
#endif
