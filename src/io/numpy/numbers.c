/* Elements of an array in a file become values of a type, and are looked at. */
#include <string.h>

#include "core/matrix.h"
#include "core/size.h"
#include "core/threads.h"
#include "io/numpy/npy.h"

enum { BLOCK = 512 };

static uint64_t load(const unsigned char *from, int64_t size, bool swapped) {
    uint64_t bits = 0;
    unsigned char turned[8];
    for (int64_t i = 0; swapped && i < size; i++) turned[i] = from[size - 1 - i];
    memcpy(&bits, swapped ? turned : from, (size_t)size);
    return bits;
}

/* The number that 16 bits are in IEEE 754's half precision: sign, 5 bits of exponent, 10 of the fraction. */
static inline double half_number(uint64_t bits) {
    const uint64_t exponent = bits >> 10 & 31, fraction = bits & 1023, sign = bits >> 15;
    const uint64_t wide = sign << 63 | (exponent == 31 ? 2047 : exponent + 1008) << 52 | fraction << 42;
    double value;
    if (exponent == 0) return (sign ? -0x1p-24 : 0x1p-24) * (double)fraction;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* One element as a double. Sizes are told apart outside the loops over elements. */
static inline double element(const unsigned char *from, char kind, int64_t size, bool swapped) {
    uint64_t bits = load(from, size, swapped);
    if (kind == 'f' && size == 8) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (kind == 'f' && size == 2) return half_number(bits);
    if (kind == 'B') bits <<= 16;
    if (kind == 'f' || kind == 'B') {
        float value;
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    }
    if (kind == 'b') return bits != 0;
    if (kind == 'u') return (double)bits;
    int unused = (int)(64 - 8 * size);
    return (double)((int64_t)(bits << unused) >> unused);
}

/* One loop for each kind and size, so that the compiler sees both as constants. */
#define LOOP(kind_, size_)                                                                                   \
    if (npy->kind == (kind_) && npy->itemsize == (size_)) {                                                  \
        for (int64_t i = 0; i < count; i++) {                                                                \
            double value = element(from + i * (size_), kind_, size_, npy->swapped);                          \
            if (type == KILN_F64)                                                                            \
                ((double *)values)[i] = value;                                                               \
            else                                                                                             \
                ((float *)values)[i] = (float)value;                                                         \
        }                                                                                                    \
        return;                                                                                              \
    }

static void convert(void *values, kiln_type type, const struct ki_npy *npy, const unsigned char *from,
                    int64_t count) {
    LOOP('f', 2);
    LOOP('f', 4);
    LOOP('f', 8);
    LOOP('B', 2);
    LOOP('b', 1);
    LOOP('i', 1);
    LOOP('i', 2);
    LOOP('i', 4);
    LOOP('i', 8);
    LOOP('u', 1);
    LOOP('u', 2);
    LOOP('u', 4);
    LOOP('u', 8);
}

bool ki_npy_native(const struct ki_npy *npy, kiln_type type) {
    return npy->kind == 'f' && npy->itemsize == (type == KILN_F32 ? 4 : 8) && !npy->swapped;
}

kiln_element ki_npy_element(const struct ki_npy *npy, kiln_type type) {
    static const struct {
        char kind;
        int bytes;
        kiln_element element;
    } elements[] = {{'u', 1, KILN_ELEMENT_U8},  {'i', 1, KILN_ELEMENT_I8},  {'u', 2, KILN_ELEMENT_U16},
                    {'i', 2, KILN_ELEMENT_I16}, {'f', 2, KILN_ELEMENT_F16}, {'f', 4, KILN_ELEMENT_F32}};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (elements[i].kind == npy->kind && elements[i].bytes == npy->itemsize && !npy->swapped &&
            npy->itemsize < ki_type_bytes(type))
            return elements[i].element;
    return KILN_ELEMENT_TYPE;
}

const char *ki_npy_remedy(const struct ki_npy *npy, kiln_type type) {
    return ki_npy_native(npy, type == KILN_F32 ? KILN_F64 : KILN_F32)
               ? "the other --type, or leave --map out"
               : "convert it with NumPy's astype, or leave --map out";
}

double ki_npy_number(const struct ki_npy *npy, const void *from) {
    double value;
    convert(&value, KILN_F64, npy, from, 1);
    return value;
}

#define INTEGERS(size_)                                                                                      \
    if (npy->itemsize == (size_)) {                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                                \
            const uint64_t bits = load(from + i * (size_), size_, npy->swapped);                             \
            const int unused = 64 - 8 * (size_);                                                             \
            values[i] = is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;                     \
            too_large |= !is_signed & (bits > INT64_MAX);                                                    \
        }                                                                                                    \
    }

bool ki_npy_integers(int64_t *values, const struct ki_npy *npy, const void *bytes, int64_t count) {
    const unsigned char *from = bytes;
    const bool is_signed = npy->kind != 'u';
    bool too_large = false;
    INTEGERS(1);
    INTEGERS(2);
    INTEGERS(4);
    INTEGERS(8);
    return !too_large;
}

/* Adding one to an exponent of all ones carries into the sign, which sums of bits show for a whole block: no
 * branch for each element, so that vectors do the work. */
#define BLOCK_HAS_NONFINITE(bits_t, exponent, one)                                                           \
    bits_t carried = 0, bits;                                                                                \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        memcpy(&bits, values + i * (int64_t)sizeof bits, sizeof bits);                                       \
        carried |= (bits & (exponent)) + (one);                                                              \
    }                                                                                                        \
    return carried >> (8 * sizeof bits - 1)

static bool wide_has_nonfinite(const unsigned char *values, int64_t count) {
    BLOCK_HAS_NONFINITE(uint64_t, 0x7ffull << 52, 1ull << 52);
}

static bool narrow_has_nonfinite(const unsigned char *values, int64_t count) {
    BLOCK_HAS_NONFINITE(uint32_t, 0xffu << 23, 1u << 23);
}

int64_t ki_first_nonfinite(const void *values, kiln_type type, int64_t count) {
    const int64_t size = type == KILN_F32 ? 4 : 8;
    bool (*const has_nonfinite)(const unsigned char *, int64_t) =
        type == KILN_F32 ? narrow_has_nonfinite : wide_has_nonfinite;
    int64_t i = 0;
    while (i < count && !has_nonfinite((const unsigned char *)values + i * size, ki_min(BLOCK, count - i)))
        i += BLOCK;
    while (i < count && !has_nonfinite((const unsigned char *)values + i * size, 1)) i++;
    return ki_min(i, count);
}

bool ki_npy_by_columns(const struct ki_npy *npy) {
    return npy->fortran && npy->dimensions == 2 && npy->shape[0] > 1 && npy->shape[1] > 1;
}

int64_t ki_npy_value_at(const struct ki_npy *npy, int64_t i) {
    return ki_npy_by_columns(npy) ? i % npy->shape[0] * npy->shape[1] + i / npy->shape[0] : i;
}

/* One loop for each size, as in convert. */
#define PUT(real, size)                                                                                      \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        memcpy((real *)n->values + row * cols + col, (const char *)from + i * (size), size);                 \
        if (++row == rows) row = 0, col++;                                                                   \
    }

/* Values of the type that are elements `at`, at + 1, ... of an array that lies by columns. */
static void put_by_rows(const struct ki_numbers *n, const void *from, int64_t at, int64_t count) {
    const int64_t rows = n->npy->shape[0], cols = n->npy->shape[1];
    int64_t row = at % rows, col = at / rows;
    if (n->type == KILN_F64) {
        PUT(double, 8)
    } else {
        PUT(float, 4)
    }
}

static void use_turned(struct ki_numbers *n, const unsigned char *raw, int64_t at, int64_t count) {
    double room[BLOCK];
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        const int64_t some = ki_min(BLOCK, count - begin);
        const void *found = raw + begin * n->npy->itemsize;
        if (!ki_npy_native(n->npy, n->type)) {
            convert(room, n->type, n->npy, found, some);
            found = room;
        }
        put_by_rows(n, found, at + begin, some);
        if (n->any) continue;
        const int64_t bad = ki_first_nonfinite(found, n->type, some);
        if (bad < some) ki_lower(&n->bad, at + begin + bad);
    }
}

/* Elements that are converted to be looked at. */
static void look(struct ki_numbers *n, const unsigned char *raw, int64_t at, int64_t count) {
    double room[BLOCK];
    for (int64_t begin = 0; begin < count; begin += BLOCK) {
        const int64_t some = ki_min(BLOCK, count - begin);
        convert(room, n->type, n->npy, raw + begin * n->npy->itemsize, some);
        const int64_t bad = ki_first_nonfinite(room, n->type, some);
        if (bad < some) ki_lower(&n->bad, at + begin + bad);
    }
}

void ki_numbers_use(void *of, const unsigned char *raw, int64_t first, int64_t count) {
    struct ki_numbers *n = of;
    const int64_t at = n->before + first;
    const void *found = raw;
    count = ki_min(count, n->wanted - at);
    if (count <= 0) return;
    if (n->turned) {
        use_turned(n, raw, at, count);
        return;
    }
    if (!ki_npy_native(n->npy, n->type) && !n->values) {
        if (!n->any) look(n, raw, at, count);
        return;
    }
    if (!ki_npy_native(n->npy, n->type)) {
        char *to = (char *)n->values + at * (n->type == KILN_F32 ? 4 : 8);
        convert(to, n->type, n->npy, raw, count);
        found = to;
    }
    if (n->any) return;
    const int64_t bad = ki_first_nonfinite(found, n->type, count);
    if (bad < count) ki_lower(&n->bad, at + bad);
}
