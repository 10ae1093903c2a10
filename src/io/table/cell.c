/* One field: a number, nothing, or a text. */
#include "io/table/table.h"

#include <math.h>
#include <string.h>

#include "io/number.h"

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Nothing, and what R, pandas, SQL and spreadsheets write for it, in any case: NA, N/A, NaN, null, None,
 * ... */
static bool is_na(const char *p, int64_t size) {
    static const char *const words[] = {"na", "n/a", "nan", "-nan", "null", "none", "<na>", "#na", "#n/a"};
    if (size == 0) return true;
    if (size < 2 || size > 4 || !strchr("nN-<#", *p)) return false;
    char lower[5] = "";
    for (int64_t i = 0; i < size; i++) lower[i] = (char)(p[i] | 32); /* signs stay as they are */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], lower) == 0) return true;
    return false;
}

bool ki_table_missing(const struct ki_table_field *field, const struct ki_table_numbers *numbers, bool na) {
    const char *p = field->text, *end = p + field->size;
    while (p < end && is_blank(*p)) p++;
    while (end > p && is_blank(end[-1])) end--;
    if (na && is_na(p, end - p)) return true;
    const struct ki_bytes *words = numbers->missing;
    const char *word = words ? words->data : NULL, *last = word ? word + words->size : NULL;
    for (; word < last; word += strlen(word) + 1)
        if ((int64_t)strlen(word) == end - p && memcmp(word, p, (size_t)(end - p)) == 0) return true;
    return false;
}

kiln_status ki_table_add_words(struct ki_bytes *words, const char *list) {
    for (const char *at = list; at && *at;) {
        const size_t size = strcspn(at, ",");
        if (!ki_bytes_room(words, (int64_t)size + 1))
            return ki_fail_nomem(size, "the words for missing values");
        ki_bytes_append(words, at, (int64_t)size);
        ki_bytes_append(words, "", 1);
        at += size + (at[size] == ',');
    }
    return KILN_OK;
}

/* 1,5 with a point. A number that has one already has it for thousands, which is not taken. */
static bool with_point(char *copy, size_t room, const char **p, const char **end) {
    const size_t size = (size_t)(*end - *p);
    if (size >= room || memchr(*p, '.', size)) return false;
    memcpy(copy, *p, size);
    char *comma = memchr(copy, ',', size);
    if (comma) *comma = '.';
    *p = copy;
    *end = copy + size;
    return true;
}

enum ki_table_kind ki_table_number(const struct ki_table_field *field, const struct ki_table_numbers *numbers,
                                   double *value) {
    const char *p = field->text, *end = p + field->size;
    char copy[64];
    while (p < end && is_blank(*p)) p++;
    while (end > p && is_blank(end[-1])) end--;
    *value = NAN;
    if (is_na(p, end - p)) return KI_TABLE_NOTHING;
    if (numbers->missing && numbers->missing->size > 0 && ki_table_missing(field, numbers, false))
        return KI_TABLE_NOTHING;
    if (numbers->decimal_comma && !with_point(copy, sizeof copy, &p, &end)) return KI_TABLE_TEXT;
    if (!ki_parse_real(&p, end, numbers->single, value) || p != end) return KI_TABLE_TEXT;
    return isnan(*value) ? KI_TABLE_NOTHING : KI_TABLE_NUMBER;
}

bool ki_table_unquote(struct ki_bytes *out, const struct ki_table_field *field) {
    if (!ki_bytes_room(out, field->size)) return false;
    for (int64_t i = 0; i < field->size; i++) {
        out->data[out->size++] = field->text[i];
        if (field->quoted && field->text[i] == '"') i++;
    }
    return true;
}

/* Number of bytes of the character at p by its first byte; 0 if no character begins so. */
static int utf8_length(unsigned char first) {
    if (first < 0x80) return first != 0;
    if (first < 0xC2 || first > 0xF4) return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

bool ki_table_is_number(const char *text, int64_t size) {
    const char *at = text;
    double value;
    return ki_parse_double(&at, text + size, &value) && at == text + size;
}

bool ki_table_utf8(const char *text, int64_t size) {
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    while (p < end) {
        int length = utf8_length(*p);
        if (length == 0 || end - p < length) return false;
        for (int i = 1; i < length; i++)
            if ((p[i] & 0xC0) != 0x80) return false;
        bool overlong = (*p == 0xE0 && p[1] < 0xA0) || (*p == 0xF0 && p[1] < 0x90);
        bool surrogate = *p == 0xED && p[1] > 0x9F;
        bool beyond = *p == 0xF4 && p[1] > 0x8F;
        if (overlong || surrogate || beyond) return false;
        p += length;
    }
    return true;
}

const char *ki_table_excerpt(char out[64], const char *text, int64_t size) {
    enum { SHOWN = 40 };
    int64_t shown = ki_min(size, SHOWN);
    if (size > SHOWN) /* do not cut a character in two */
        while (shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80) shown--;
    bool utf8 = ki_table_utf8(text, shown);
    for (int64_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7F || (c >= 0x80 && !utf8) ? '?' : text[i];
    }
    memcpy(out + shown, size > shown ? "..." : "", size > shown ? 4 : 1);
    return out;
}
