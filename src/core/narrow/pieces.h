/* Numbers of f64 become narrow ones (core/narrow/narrow.h): the reverse of widen.h, for narrow.c alone. */
#include <stdint.h>
#include <string.h>

#include "kiln/codes.h"

/* The half that is nearest to a number; whether it is the number, who asks finds by widening it. */
static uint16_t half_of(double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    float scaled;
    bits &= 0x7fffffffu;
    memcpy(&scaled, &bits, sizeof scaled);
    if (!(scaled < 65536.0f)) return sign | 0x7c00u;
    scaled *= 0x1p-112f;
    memcpy(&bits, &scaled, sizeof bits);
    return (uint16_t)(sign | bits >> 13);
}

static uint16_t brain_of(double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* `count` numbers to the element, of which those that are none of its numbers become any. */
#define WHOLE(type_, least, most)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                                      \
        ((type_ *)to)[i] = value[i] >= (least) && value[i] <= (most) ? (type_)value[i] : 0;                  \
    break
static void narrow_piece(void *to, kiln_element element, const double *value, int64_t count) {
    switch (element) {
    case KILN_ELEMENT_U8: WHOLE(uint8_t, 0, UINT8_MAX);
    case KILN_ELEMENT_I8: WHOLE(int8_t, INT8_MIN, INT8_MAX);
    case KILN_ELEMENT_U16: WHOLE(uint16_t, 0, UINT16_MAX);
    case KILN_ELEMENT_I16: WHOLE(int16_t, INT16_MIN, INT16_MAX);
    case KILN_ELEMENT_F16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)to)[i] = half_of(value[i]);
        break;
    case KILN_ELEMENT_BF16:
        for (int64_t i = 0; i < count; i++) ((uint16_t *)to)[i] = brain_of(value[i]);
        break;
    case KILN_ELEMENT_F32:
        for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)value[i];
        break;
    case KILN_ELEMENT_SAME:
    case KILN_ELEMENT_TYPE: break;
    }
}
#undef WHOLE
