/* Narrow values (core/narrow/narrow.h) become numbers of the type `real`. Included once per element type.
 * Every narrow number is one of either type, but that f32 is none of a narrower one. */
#include "kiln/codes.h"

/* A number of half precision as bits: its exponent and mantissa, moved to where f32 has them, are the number
 * times 2^-112, subnormal ones too. Infinity and NaN, which have the greatest exponent, keep it. */
ALWAYS_INLINE float FN(of_half)(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = (uint32_t)(half & 0x7fffu) << 13;
    const uint32_t infinite = rest >= 0x7c00u << 13 ? 0x7f800000u : 0;
    uint32_t bits = rest;
    float number;
    memcpy(&number, &bits, sizeof number);
    number *= 0x1p112f;
    memcpy(&bits, &number, sizeof bits);
    bits |= sign | infinite;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* The first 16 bits of a number of f32. */
ALWAYS_INLINE float FN(of_brain)(uint16_t brain) {
    const uint32_t bits = (uint32_t)brain << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

#define EACH(type, of)                                                                                       \
    {                                                                                                        \
        const type *restrict narrow = (const type *)from + first;                                            \
        for (int64_t i = 0; i < count; i++) to[i] = (real)of(narrow[i]);                                     \
        break;                                                                                               \
    }
/* to = the numbers from[first ... first + count), or of KILN_ELEMENT_SAME the one that `from` points to.
 * element: none of the matrix's own type. */
static void FN(widen)(real *restrict to, kiln_element element, const void *from, int64_t first,
                      int64_t count) {
    switch (element) {
    case KILN_ELEMENT_U8: EACH(uint8_t, )
    case KILN_ELEMENT_I8: EACH(int8_t, )
    case KILN_ELEMENT_U16: EACH(uint16_t, )
    case KILN_ELEMENT_I16: EACH(int16_t, )
    case KILN_ELEMENT_F16: EACH(uint16_t, FN(of_half))
    case KILN_ELEMENT_BF16: EACH(uint16_t, FN(of_brain))
    case KILN_ELEMENT_F32: EACH(float, )
    case KILN_ELEMENT_SAME:
        for (int64_t i = 0; i < count; i++) to[i] = *(const real *)from;
        break;
    case KILN_ELEMENT_TYPE: break;
    }
}
#undef EACH
