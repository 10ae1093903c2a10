/* A line of ratings: which separator, which fields. Where it is a tab, comma, semicolon or bar, a field may
 * stand between quotes, "" for a quote, within its line. */
#include <string.h>

#include "io/coordinate/ratings.h"

static const char *const separators[] = {"::", "\t", ";", ",", "|"};

static const char *line_end_of(const char *p, const char *end) {
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    if (!newline) newline = end;
    return newline > p && newline[-1] == '\r' ? newline - 1 : newline;
}

/* The separator that begins at p, or NULL. */
static bool stands_at(const char *p, const char *end, const char *separator) {
    const size_t size = strlen(separator);
    if (*separator == ' ') return p < end && (*p == ' ' || *p == '\t');
    return (size_t)(end - p) >= size && memcmp(p, separator, size) == 0;
}

static const char *find(const char *p, const char *end, const char *separator) {
    if (*separator == ' ') {
        while (p < end && !stands_at(p, end, separator)) p++;
        return p;
    }
    for (; (p = memchr(p, *separator, (size_t)(end - p))); p++)
        if (stands_at(p, end, separator)) return p;
    return end;
}

/* The first of the list that stands in the line; blanks if none does. */
static const char *separator_of(const char *line, const char *end) {
    for (size_t i = 0; i < sizeof separators / sizeof *separators; i++)
        if (find(line, end, separators[i]) < end) return separators[i];
    return " ";
}

/* p stands behind the opening quote, and is moved behind the closing one. */
static bool quoted(struct ki_fault *fault, struct ki_ratings_field *field, const char **text,
                   const char *end) {
    const char *p = *text;
    *field = (struct ki_ratings_field){.text = p};
    for (;; p += 2) {
        p = memchr(p, '"', (size_t)(end - p));
        if (!p)
            return ki_fault(fault, KILN_ERR_PARSE, *text - 1, "a quoted field ends on its line",
                            "a quote that is not closed");
        if (p + 1 == end || p[1] != '"') break;
        field->doubled = true;
    }
    field->size = p - field->text;
    *text = p + 1;
    return true;
}

static void plain(struct ki_ratings_field *field, const char **text, const char *end, const char *separator) {
    const char *last = find(*text, end, separator);
    *field = (struct ki_ratings_field){.text = *text};
    *text = last;
    while (last > field->text && (last[-1] == ' ' || last[-1] == '\t')) last--;
    field->size = last - field->text;
}

int ki_ratings_split(struct ki_fault *fault, struct ki_ratings_field fields[KI_RATING_FIELDS],
                     const char **text, const char *end, const char *separator) {
    const char *last = line_end_of(*text, end), *p = *text;
    const bool blanks = *separator == ' ', quotes = strlen(separator) == 1 && !blanks;
    for (int count = 0;;) {
        struct ki_ratings_field *field = &fields[count];
        while (p < last && *p == ' ') p++; /* a tab may be the separator */
        if (quotes && p < last && *p == '"') {
            p++;
            if (!quoted(fault, field, &p, last)) return -1;
            while (p < last && *p == ' ') p++;
            if (p < last && !stands_at(p, last, separator)) {
                ki_expected(fault, p, end, "a separator behind the quote");
                return -1;
            }
        } else {
            plain(field, &p, last, separator);
        }
        count++;
        if (blanks) p = ki_skip_blanks(p, last);
        if (p == last) {
            *text = last;
            return count;
        }
        if (!blanks) p += strlen(separator);
        if (count == KI_RATING_FIELDS) {
            ki_fault(fault, KILN_ERR_LIMIT, p, NULL, "more than %d fields", KI_RATING_FIELDS);
            return -1;
        }
    }
}

/* ------------------------------------------------------------------------------------------ first line */

bool ki_ratings_layout(struct ki_ratings_layout *layout, struct ki_fault *fault, const char **text,
                       const char *end, const struct ki_ratings_words *words,
                       const kiln_read_options *options) {
    struct ki_ratings_field fields[KI_RATING_FIELDS];
    const char *p = *text;
    for (const char *word; p < end; p = line_end_of(p, end)) {
        while (p < end && (*p == '\n' || *p == '\r')) p++;
        word = ki_skip_blanks(p, end);
        if (!ki_at_line_end(word, end) && *word != '#' && *word != '%') break;
    }
    *text = p;
    if (p == end) return true;
    layout->separator = separator_of(p, line_end_of(p, end));
    layout->count = ki_ratings_split(fault, fields, &p, end, layout->separator);
    if (layout->count < 0) return false;
    if (layout->count < 2)
        return ki_fault(fault, KILN_ERR_PARSE, *text, words->line, "one field only: '%s'",
                        ki_word(*text, end).text);
    bool header = false;
    if (!ki_ratings_columns(layout, &header, fault, fields, words, options)) return false;
    const int value = layout->role[KI_RATING_VALUE];
    if (header || (value >= 0 && !ki_ratings_number(&fields[value]))) *text = p;
    return true;
}

struct ki_links_form ki_ratings_form(const struct ki_ratings_layout *layout,
                                     const kiln_read_options *options) {
    const int *role = layout->role, value = role[KI_RATING_VALUE];
    const bool in_order = role[KI_RATING_USER] == 0 && role[KI_RATING_ITEM] == 1 && (value == 2 || value < 0);
    const bool single = strlen(layout->separator) == 1;
    return (struct ki_links_form){in_order && single ? *layout->separator : '\0', layout->count, value == 2,
                                  options->type == KILN_F32};
}
