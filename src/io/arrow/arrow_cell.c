/* One cell of an Arrow array: a text where it lies, or a number. An array says how long it is, and nothing
 * says how large its buffers are, so that only offsets, indices and views can be checked, against each
 * other. */
#include <math.h>
#include <string.h>

#include "io/arrow/arrow.h"
#include "io/decimal.h"

/* Buffers need not be aligned. */
#define ELEMENT(name, type)                                                                                  \
    static type name(const struct ki_arrow_view *view, int64_t at) {                                         \
        type value;                                                                                          \
        memcpy(&value, (const char *)view->values + at * (int64_t)sizeof value, sizeof value);               \
        return value;                                                                                        \
    }
ELEMENT(int8_at, int8_t)
ELEMENT(uint8_at, uint8_t)
ELEMENT(int16_at, int16_t)
ELEMENT(uint16_at, uint16_t)
ELEMENT(int32_at, int32_t)
ELEMENT(uint32_at, uint32_t)
ELEMENT(int64_at, int64_t)
ELEMENT(uint64_at, uint64_t)
ELEMENT(float_at, float)
ELEMENT(double_at, double)

/* Returns how many buffers an array of the kind has at least. */
static int64_t buffers_of(enum ki_arrow_kind kind) {
    if (kind == KI_ARROW_NULL) return 0;
    return kind == KI_ARROW_TEXT || kind == KI_ARROW_LONG_TEXT || kind == KI_ARROW_VIEWS ? 3 : 2;
}

static kiln_status fail_array(const char *name, const char *what) {
    ki_fail(KILN_ERR_DATA, "column '%s' of the table: its array %s", name, what);
    return ki_hint("the library that made the array has broken it");
}

static kiln_status view_array(struct ki_arrow_view *view, enum ki_arrow_kind kind,
                              const struct ArrowArray *array, int64_t offset, int64_t rows,
                              const char *name) {
    int64_t first, end;
    if (!array || !array->release) return fail_array(name, "is missing");
    if (array->offset < 0 || array->length < 0 || !ki_add(array->offset, offset, &first) ||
        !ki_add(offset, rows, &end) || end > array->length)
        return fail_array(name, "is shorter than the table");
    *view = (struct ki_arrow_view){.kind = kind, .offset = first, .length = rows};
    if (kind == KI_ARROW_NULL) return KILN_OK;
    if (array->n_buffers < buffers_of(kind) || !array->buffers) return fail_array(name, "lacks a buffer");
    view->valid = array->buffers[0];
    view->values = array->buffers[1];
    if (rows > 0 && !view->values) return fail_array(name, "lacks its values");
    if (kind == KI_ARROW_VIEWS) {
        view->buffers = (const void *const *)array->buffers + 2;
        view->buffer_count = array->n_buffers - 3;
        view->buffer_sizes = array->buffers[array->n_buffers - 1];
        if (view->buffer_count > 0 && !view->buffer_sizes)
            return fail_array(name, "lacks its buffers' sizes");
    } else if (ki_arrow_is_text(kind)) {
        view->bytes = array->buffers[2];
        const int64_t last = array->offset + array->length;
        if (rows > 0) view->byte_count = kind == KI_ARROW_TEXT ? int32_at(view, last) : int64_at(view, last);
    }
    return KILN_OK;
}

kiln_status ki_arrow_view_column(struct ki_arrow_column_view *view, const struct ki_arrow_type *type,
                                 const struct ArrowArray *array, int64_t offset, int64_t rows,
                                 const char *name) {
    *view = (struct ki_arrow_column_view){.has_dictionary = type->dictionary};
    kiln_status status;
    TRY(view_array(&view->cells, type->dictionary ? type->index : type->kind, array, offset, rows, name));
    if (!type->dictionary) return KILN_OK;
    const struct ArrowArray *values = array->dictionary;
    TRY(view_array(&view->dictionary, type->kind, values, 0, values ? values->length : 0, name));
done:
    return status;
}

static bool is_set(const unsigned char *bits, int64_t i) {
    return bits[i / 8] >> (i % 8) & 1;
}

static bool is_missing(const struct ki_arrow_view *view, int64_t i) {
    return view->kind == KI_ARROW_NULL || (view->valid && !is_set(view->valid, view->offset + i));
}

/* IEEE's half precision: the sign, 5 bits of exponent, 10 of fraction. */
static double half_number(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size;
    if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        size = ldexp(fraction, -24);
    else
        size = ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 ? -size : size;
}

/* Numbers of 64 bits without a sign keep their bits. */
static int64_t integer_at(const struct ki_arrow_view *view, int64_t i) {
    const int64_t at = view->offset + i;
    switch (view->kind) {
    case KI_ARROW_BOOL: return is_set(view->values, at);
    case KI_ARROW_INT8: return int8_at(view, at);
    case KI_ARROW_UINT8: return uint8_at(view, at);
    case KI_ARROW_INT16: return int16_at(view, at);
    case KI_ARROW_UINT16: return uint16_at(view, at);
    case KI_ARROW_INT32: return int32_at(view, at);
    case KI_ARROW_UINT32: return uint32_at(view, at);
    default: return int64_at(view, at);
    }
}

static double number_at(const struct ki_arrow_view *view, int64_t i) {
    const int64_t at = view->offset + i;
    switch (view->kind) {
    case KI_ARROW_HALF: return half_number(uint16_at(view, at));
    case KI_ARROW_FLOAT: return float_at(view, at);
    case KI_ARROW_DOUBLE: return double_at(view, at);
    case KI_ARROW_UINT64: return (double)uint64_at(view, at);
    default: return (double)integer_at(view, i);
    }
}

static int64_t print_number(char *to, const struct ki_arrow_view *view, int64_t i) {
    const double number = number_at(view, i);
    if (isnan(number)) return 0;
    switch (view->kind) {
    case KI_ARROW_HALF:
    case KI_ARROW_FLOAT: return ki_print_real(to, number, KILN_F32) - to;
    case KI_ARROW_DOUBLE: return ki_print_real(to, number, KILN_F64) - to;
    case KI_ARROW_UINT64: return ki_print_uint64(to, uint64_at(view, view->offset + i)) - to;
    default: return ki_print_int64(to, integer_at(view, i)) - to;
    }
}

/* Texts of up to 12 bytes stand in the view itself; of longer ones the buffer's number and the place in
 * it. */
static bool view_text(const struct ki_arrow_view *view, int64_t i, struct ki_table_field *field) {
    enum { WITHIN = 12 };
    const char *at = (const char *)view->values + 16 * (view->offset + i);
    int32_t size, place[2];
    memcpy(&size, at, sizeof size);
    field->text = at + 4;
    field->size = size;
    if (size < 0) return false;
    if (size <= WITHIN) return true;
    memcpy(place, at + 8, sizeof place);
    if (place[0] < 0 || place[0] >= view->buffer_count || place[1] < 0) return false;
    const char *bytes = view->buffers[place[0]];
    field->text = bytes + place[1];
    return bytes && (int64_t)place[1] + size <= view->buffer_sizes[place[0]];
}

static bool text_at(const struct ki_arrow_view *view, int64_t i, struct ki_table_field *field) {
    const int64_t at = view->offset + i;
    int64_t begin, end;
    if (view->kind == KI_ARROW_VIEWS) return view_text(view, i, field);
    if (view->kind == KI_ARROW_TEXT) {
        begin = int32_at(view, at);
        end = int32_at(view, at + 1);
    } else {
        begin = int64_at(view, at);
        end = int64_at(view, at + 1);
    }
    if (begin < 0 || end < begin || end > view->byte_count || (!view->bytes && end > begin)) return false;
    *field = (struct ki_table_field){view->bytes ? view->bytes + begin : "", end - begin, false};
    return true;
}

bool ki_arrow_cell(const struct ki_arrow_column_view *view, int64_t i, struct ki_table_field *field,
                   double *number, char *printed) {
    const struct ki_arrow_view *cells = &view->cells;
    const bool text = ki_arrow_is_text(view->has_dictionary ? view->dictionary.kind : cells->kind);
    bool missing = is_missing(cells, i);
    if (view->has_dictionary && !missing) {
        const int64_t index = integer_at(cells, i);
        cells = &view->dictionary;
        if (index < 0 || index >= cells->length) return false;
        i = index;
        missing = is_missing(cells, i);
    }
    *field = (struct ki_table_field){.text = ""};
    if (missing) {
        *number = NAN;
        if (!printed && !text) field->text = NULL;
        return true;
    }
    if (text) return text_at(cells, i, field);
    if (printed)
        *field = (struct ki_table_field){printed, print_number(printed, cells, i), false};
    else
        field->text = NULL;
    if (!printed) *number = number_at(cells, i);
    return true;
}
