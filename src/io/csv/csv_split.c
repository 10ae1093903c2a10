/* RFC 4180, byte by byte: FIELD {delimiter FIELD} line-end; FIELD = "anything with "" for a quote" or plain
 * text. Where blanks separate, any number of blanks and tabs is one delimiter, and those around a record are
 * none.
 *
 * Quotes stand only around whole fields: a quote inside a plain field is a fault. So whether a place lies
 * within quotes is the parity of the quotes before it, and a block of text can be cut at record ends without
 * parsing it. */
#include "io/csv/csv.h"

#include <string.h>

#include "io/text.h"

/* Length of the line end at p: 1 for LF or a CR that ends the text, 2 for CR LF, 0 for anything else. */
static int line_end(const char *p, const char *end) {
    if (*p == '\n') return 1;
    if (*p != '\r') return 0;
    if (p + 1 == end) return 1;
    return p[1] == '\n' ? 2 : 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

bool ki_csv_by_blanks(char delimiter) {
    return delimiter == KI_CSV_BLANKS || delimiter == KI_CSV_NAMED_ROWS;
}

const char *ki_csv_skip_blank(const char *text, const char *end) {
    int length;
    while (text < end && (length = line_end(text, end)) > 0) text += length;
    return text;
}

/* *text points behind the opening quote; it is moved behind the closing one. */
static enum ki_csv_fault quoted_field(const char **text, const char *end, struct ki_table_field *field) {
    const char *begin = *text, *p = begin;
    for (;;) {
        p = memchr(p, '"', (size_t)(end - p));
        if (!p) {
            *text = begin - 1;
            return KI_CSV_OPEN_QUOTE;
        }
        if (p + 1 == end || p[1] != '"') break;
        p += 2;
    }
    *field = (struct ki_table_field){begin, p - begin, true};
    *text = p + 1;
    return KI_CSV_FINE;
}

/* Skips ordinary bytes, eight at a time, since a branch on each would be mispredicted once a field. */
static const char *skip_ordinary(const char *p, const char *end, char delimiter) {
    for (; end - p >= 8; p += 8) {
        const int ordinary = ki_csv_ordinary(ki_text_word(p), delimiter);
        if (ordinary < 8) return p + ordinary;
    }
    while (p < end && *p != delimiter && (unsigned char)*p >= '#') p++;
    return p;
}

/* Moves *text to the delimiter or line end behind the field. */
static enum ki_csv_fault plain_field(const char **text, const char *end, char delimiter,
                                     struct ki_table_field *field) {
    const char *p = skip_ordinary(*text, end, delimiter);
    for (; p < end; p = skip_ordinary(p + 1, end, delimiter)) {
        if (*p == delimiter || line_end(p, end) > 0 || (ki_csv_by_blanks(delimiter) && is_blank(*p))) break;
        if (*p != '\r' && *p != '"') continue;
        *text = p;
        return *p == '"' ? KI_CSV_BARE_QUOTE : KI_CSV_LONE_CR;
    }
    *field = (struct ki_table_field){*text, p - *text, false};
    *text = p;
    return KI_CSV_FINE;
}

/* Moves *text over blanks; whether there were any, or nothing follows in the record. */
static bool skip_blanks(const char **text, const char *end) {
    const char *begin = *text;
    while (*text < end && is_blank(**text)) ++*text;
    return *text > begin || *text == end || line_end(*text, end) > 0;
}

/* The same where blanks separate. */
static enum ki_csv_fault split_by_blanks(const char **text, const char *end, bool named,
                                         struct ki_table_field *fields, int64_t limit, int64_t *count) {
    struct ki_table_field surplus;
    int64_t found = named ? -1 : 0;
    skip_blanks(text, end);
    while (*text < end && line_end(*text, end) == 0) {
        struct ki_table_field *field = found >= 0 && found < limit ? &fields[found] : &surplus;
        const enum ki_csv_fault fault = ki_csv_field(text, end, KI_CSV_BLANKS, field);
        if (fault) return fault;
        if (!skip_blanks(text, end)) return KI_CSV_AFTER_QUOTE;
        found++;
    }
    if (*text < end) *text += line_end(*text, end);
    *count = ki_max(found, 0);
    return KI_CSV_FINE;
}

enum ki_csv_fault ki_csv_field(const char **text, const char *end, char delimiter,
                               struct ki_table_field *field) {
    if (*text == end || **text != '"') return plain_field(text, end, delimiter, field);
    ++*text;
    return quoted_field(text, end, field);
}

enum ki_csv_fault ki_csv_split(const char **text, const char *end, char delimiter,
                               struct ki_table_field *fields, int64_t limit, int64_t *count) {
    struct ki_table_field surplus;
    *count = 0;
    if (ki_csv_by_blanks(delimiter))
        return split_by_blanks(text, end, delimiter == KI_CSV_NAMED_ROWS, fields, limit, count);
    for (;; ++*text) {
        struct ki_table_field *field = *count < limit ? &fields[*count] : &surplus;
        const enum ki_csv_fault fault = ki_csv_field(text, end, delimiter, field);
        if (fault) return fault;
        ++*count;
        if (*text == end) return KI_CSV_FINE;
        int length = line_end(*text, end);
        *text += length;
        if (length > 0) return KI_CSV_FINE;
        if (**text != delimiter) return KI_CSV_AFTER_QUOTE;
    }
}

size_t ki_csv_whole_records(const char *text, size_t size, bool *quoted, int threads) {
    const bool odd = ki_count_byte(text, size, '"', threads) & 1;
    size_t whole = 0;
    bool open = *quoted;
    *quoted ^= odd;
    if (!*quoted) return size;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"') open = !open;
        if (text[i] == '\n' && !open) whole = i + 1;
    }
    return whole;
}

/* The words of a record, and how many of them are numbers; 0 if it has a delimiter of another kind, or none
 * follows. */
static int64_t words_of(const char **text, const char *end, int64_t *numbers) {
    static const struct ki_table_numbers plain = {NULL, false, false};
    struct ki_table_field field = {0};
    int64_t words = 0;
    *numbers = 0;
    *text = ki_csv_skip_blank(*text, end);
    skip_blanks(text, end);
    while (*text < end && line_end(*text, end) == 0) {
        double value;
        const bool quoted = **text == '"';
        if (ki_csv_field(text, end, KI_CSV_BLANKS, &field)) return 0;
        for (const char *p = field.text; !quoted && p < field.text + field.size; p++)
            if (*p == ',' || *p == ';') return 0;
        if (!skip_blanks(text, end)) return 0;
        *numbers += !quoted && ki_table_number(&field, &plain, &value) != KI_TABLE_TEXT;
        words++;
    }
    return words;
}

bool ki_csv_is_by_blanks(const char *text, const char *end) {
    const bool quoted = *text == '"';
    const char *next = text;
    int64_t first_numbers, numbers;
    const int64_t first = words_of(&next, end, &first_numbers);
    if (first == 0 || ki_csv_delimiter(text, end) == '\t') return false;
    if (first_numbers == first) return first > 1;
    if (ki_csv_skip_blank(next, end) == end) return first > 1; /* of a part that has no rows, too */
    const int64_t second = words_of(&next, end, &numbers);
    return numbers > 0 && second > 1 &&
           (second == first || (second == first + 1 && (quoted || first > 1)) ||
            (second == first - 1 && *text == '#'));
}

char ki_csv_delimiter(const char *text, const char *end) {
    static const char candidates[] = {'\t', ';', ','};
    int64_t counts[3] = {0};
    bool open = false;
    for (; text < end && (open || *text != '\n'); text++) {
        if (*text == '"') open = !open;
        for (int i = 0; i < 3; i++) counts[i] += !open && *text == candidates[i];
    }
    int best = 2;
    for (int i = 1; i >= 0; i--)
        if (counts[i] > 0 && counts[i] >= counts[best]) best = i;
    return candidates[best];
}
