/* One character of UTF-8. */
#ifndef KI_UTF8_H
#define KI_UTF8_H

#include <stdint.h>

/* The bytes of the well-formed UTF-8 character at text, 0 if there is none; *code is the character. Reads
 * no further than a byte that does not belong to it. */
static inline int ki_utf8_length(const unsigned char *text, uint32_t *code) {
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    int length = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 : *text >> 3 == 30 ? 4 : 0;
    if (length == 0) return 0;
    *code = length == 1 ? *text : *text & (0x7fU >> length);
    for (int i = 1; i < length; i++) {
        if (text[i] >> 6 != 2) return 0;
        *code = *code << 6 | (text[i] & 0x3f);
    }
    if (*code < smallest[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000)) return 0;
    return length;
}

#endif
