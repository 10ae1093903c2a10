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

struct ki_arrow_refusal ki_arrow_refusal(const struct ArrowSchema *schema) {
    switch ((schema->dictionary ? schema->dictionary->format : schema->format)[0]) {
    case 't':
        return (struct ki_arrow_refusal){"dates, times or durations",
                                         "make numbers of it, such as days since a date"};
    case 'd': return (struct ki_arrow_refusal){"decimals", "cast it to float64"};
    case '+':
        return (struct ki_arrow_refusal){"lists, structs or run-end encoded values",
                                         "make a plain column of it"};
    default:
        return (struct ki_arrow_refusal){"neither numbers nor text nor dictionaries of these",
                                         "make numbers or text of it"};
    }
}
