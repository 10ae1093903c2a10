/* Values of a dense X as it keeps them (core/narrow/narrow.h), and what numbers they are. Where they are
 * narrow the build says ELEMENT, a kiln_element: 1 u8, 2 i8, 3 u16, 4 i16, 5 f16, 6 bf16, 7 f32, 8 one `real`
 * for all. Else they are `real`. */
#ifndef STORED_H
#define STORED_H
#include "dialect/wide_loads.h"

#ifndef ELEMENT
typedef real stored;
#define NUMBER_OF(x) (x)
#define load_stored(to, from) load_wide(to, from)
#else

/* PART: number i of a word's, as the bits that NUMBER_OF takes. */
#if ELEMENT == 1
typedef unsigned char stored;
#define STORED_BYTES 1
#define PART(word, i) ((word) >> 8 * (i)&0xffu)
#elif ELEMENT == 2
typedef signed char stored;
#define STORED_BYTES 1
#define PART(word, i) ((int)((word) << (24 - 8 * (i))) >> 24)
#elif ELEMENT == 4
typedef short stored;
#define STORED_BYTES 2
#define PART(word, i) ((int)((word) << (16 - 16 * (i))) >> 16)
#elif ELEMENT == 7
typedef float stored;
#define STORED_BYTES 4
#define PART(word, i) FLOAT_OF(word)
#elif ELEMENT == 8
typedef real stored;
#define STORED_BYTES 0
#else
typedef unsigned short stored;
#define STORED_BYTES 2
#define PART(word, i) ((word) >> 16 * (i)&0xffffu)
#endif

#if ELEMENT == 5
#define NUMBER_OF(x) ((real)float_of_f16(x))
#elif ELEMENT == 6
#define NUMBER_OF(x) ((real)FLOAT_OF((uint)(x) << 16))
#else
#define NUMBER_OF(x) ((real)(x))
#endif

/* W adjacent numbers in one load, where the address is a multiple of what it loads. */
#ifdef W
DEVICE_FN void load_stored(real *to, __global const stored *from) {
#if STORED_BYTES == 0
#pragma unroll
    for (int w = 0; w < W; w++) to[w] = *from;
#elif W * STORED_BYTES < 4
#pragma unroll
    for (int w = 0; w < W; w++) to[w] = NUMBER_OF(from[w]);
#else
#if W * STORED_BYTES == 16
    const uint4 all = *(__global const uint4 *)from;
    const uint word[4] = {all.x, all.y, all.z, all.w};
#elif W * STORED_BYTES == 8
    const uint2 all = *(__global const uint2 *)from;
    const uint word[2] = {all.x, all.y};
#else
    const uint word[1] = {*(__global const uint *)from};
#endif
#pragma unroll
    for (int w = 0; w < W; w++) to[w] = NUMBER_OF(PART(word[w * STORED_BYTES / 4], w % (4 / STORED_BYTES)));
#endif
}
#endif
#endif
#endif
