/* The types of Arrow's columns, by the first letters of their formats. */
#include <string.h>

#include "io/arrow/arrow.h"

static enum ki_arrow_kind kind_of(const char *format) {
    static const struct {
        const char *format;
        enum ki_arrow_kind kind;
    } kinds[] = {
        {"n", KI_ARROW_NULL},   {"b", KI_ARROW_BOOL},   {"c", KI_ARROW_INT8},      {"C", KI_ARROW_UINT8},
        {"s", KI_ARROW_INT16},  {"S", KI_ARROW_UINT16}, {"i", KI_ARROW_INT32},     {"I", KI_ARROW_UINT32},
        {"l", KI_ARROW_INT64},  {"L", KI_ARROW_UINT64}, {"e", KI_ARROW_HALF},      {"f", KI_ARROW_FLOAT},
        {"g", KI_ARROW_DOUBLE}, {"u", KI_ARROW_TEXT},   {"U", KI_ARROW_LONG_TEXT}, {"vu", KI_ARROW_VIEWS}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(format, kinds[i].format) == 0) return kinds[i].kind;
    return KI_ARROW_REFUSED;
}

struct ki_arrow_type ki_arrow_type_of(const struct ArrowSchema *schema) {
    const enum ki_arrow_kind own = kind_of(schema->format);
    if (!schema->dictionary) return (struct ki_arrow_type){.kind = own};
    struct ki_arrow_type type = {kind_of(schema->dictionary->format), own, true};
    const bool indices = own >= KI_ARROW_INT8 && own <= KI_ARROW_UINT64;
    if (!indices || schema->dictionary->dictionary) type.kind = KI_ARROW_REFUSED;
    return type;
}

const char *ki_arrow_advice(const struct ArrowSchema *schema) {
    const char *format = schema->dictionary ? schema->dictionary->format : schema->format;
    if (format[0] == 't')
        return "it is a date, a time or a duration: make numbers of it, such as days since a date, or "
               "leave it out (kiln_read_options.ignore)";
    if (format[0] == 'd')
        return "it is a decimal: cast it to float64, or leave it out (kiln_read_options.ignore)";
    if (format[0] == '+')
        return "it is nested, or run-end encoded: make a plain column of it, or leave it out "
               "(kiln_read_options.ignore)";
    return "numbers, texts and dictionaries of these are read; leave it out (kiln_read_options.ignore)";
}
