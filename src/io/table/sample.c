/* This file says what the first rows hold in one column of text, and whether that is probably not meant: text
 * in a column of numbers, dates as levels. */
#include <stdio.h>
#include <string.h>

#include "io/labels.h"
#include "io/number.h"
#include "io/table/table.h"
#include "io/text.h"

bool ki_table_has_comma(const struct ki_table_field *field) {
    bool digit = false, comma = false;
    for (int64_t i = 0; i < field->size; i++) {
        char c = field->text[i];
        if (!strchr("0123456789+-., ", c) || c == '\0') return false;
        digit |= c >= '0' && c <= '9';
        comma |= c == ',';
    }
    return digit && comma;
}

/* 2024-12-31, 31.12.2024, 12/31/2024, perhaps with a time behind. */
static bool is_date(const struct ki_table_field *field) {
    int digits[3] = {0}, part = 0;
    char separator = '\0';
    for (int64_t i = 0; i < field->size; i++) {
        const char c = field->text[i];
        if (c >= '0' && c <= '9') {
            digits[part]++;
            continue;
        }
        if (part == 2)
            return digits[2] > 0 && (c == ' ' || c == 'T') && digits[0] + digits[1] + digits[2] <= 8;
        if (!strchr("-/.", c) || (separator && c != separator) || digits[part] == 0) return false;
        separator = c;
        part++;
    }
    const bool year = digits[0] == 4 || digits[2] == 4;
    return part == 2 && year && digits[1] <= 2 && digits[1] > 0 && digits[0] + digits[2] <= 6 &&
           digits[2] > 0;
}

/* 9:05, 23:59:59 */
static bool is_time(const struct ki_table_field *field) {
    int digits[3] = {0}, part = 0;
    for (int64_t i = 0; i < field->size; i++) {
        const char c = field->text[i];
        if (c == ':' && part < 2 && digits[part] > 0)
            part++;
        else if (c >= '0' && c <= '9')
            digits[part]++;
        else
            return false;
    }
    return part > 0 && digits[0] <= 2 && digits[1] == 2 && (part == 1 || digits[2] == 2);
}

/* Returns what stands before a number but letters: a currency, a sign, <, (. */
static const char *skip_marks(const char *at, const char *end) {
    while (at < end && ((unsigned char)*at >= 0x80 || strchr(" $-+(<>=~#", *at))) at++;
    return at;
}

/* Returns what stands behind the number that a word begins with, perhaps behind marks: % of 45%, the same for
 * all words of a column of per cents. Size -1: it begins with none. 0x1f and 1_000 are numbers of
 * programs. */
static struct ki_table_field behind_number(const struct ki_table_field *field) {
    const char *end = field->text + field->size, *at = skip_marks(field->text, end), *begin = at;
    double value;
    const bool program =
        end - at > 1 && ki_is_digit(at[0]) && (at[1] == 'x' || memchr(at, '_', (size_t)(end - at)));
    for (; program && at < end; at++)
        if (!strchr("0123456789abcdefABCDEFx_", *at)) return (struct ki_table_field){.size = -1};
    if (!program && (at == end || *at == '+' || !ki_parse_double(&at, end, &value) || at == begin))
        return (struct ki_table_field){.size = -1};
    return (struct ki_table_field){.text = at, .size = end - at};
}

static bool is_dressed(const struct ki_table_field *field, const struct ki_table_field *first) {
    const struct ki_table_field own = behind_number(field), other = behind_number(first);
    return own.size >= 0 && own.size == other.size && memcmp(own.text, other.text, (size_t)own.size) == 0;
}

void ki_table_sample_look(struct ki_table_sample *sample, const struct ki_table_field *field,
                          const struct ki_table_numbers *numbers, kiln_type type) {
    double value;
    const enum ki_table_kind kind = ki_table_number(field, numbers, &value);
    sample->numbers += kind == KI_TABLE_NUMBER;
    sample->codes += kind == KI_TABLE_NUMBER && ki_label_is_code(field->text, field->size, type);
    if (kind != KI_TABLE_TEXT) return;
    if (sample->words++ == 0) sample->word = *field;
    sample->with_comma += ki_table_has_comma(field);
    sample->dressed += is_dressed(field, &sample->word);
    sample->dates += is_date(field) || is_time(field);
}

bool ki_table_sample_is_odd(const struct ki_table_sample *s) {
    const bool dressed = s->dressed == s->words && s->words > 1;
    return s->words > 0 && (s->dates == s->words || s->numbers >= s->words || dressed);
}

kiln_status ki_table_sample_warn(struct ki_warnings *warnings, const struct ki_table_column *column,
                                 const struct ki_table_sample *s, const struct ki_place *place) {
    char shown[64], called[64], hint[400];
    ki_table_excerpt(shown, s->word.text, s->word.size);
    ki_table_excerpt(called, column->name, (int64_t)strlen(column->name));
    if (s->dates == s->words) {
        snprintf(hint, sizeof hint,
                 "split it into numbers, such as year, month and hour, or leave it out: "
                 "kiln_read_options.ignore '%s'",
                 called);
        return ki_warn(warnings, place, hint,
                       "column '%s' holds dates or times, such as '%s', each of which is taken as a level",
                       called, shown);
    }
    if (s->numbers == 0) {
        snprintf(hint, sizeof hint,
                 "write plain numbers, or kiln_read_options.categorical '%s' says that text is meant",
                 called);
        return ki_warn(warnings, place, hint,
                       "column '%s' holds numbers with something beside them, such as '%s', each of which is "
                       "taken as a level",
                       called, shown);
    }
    snprintf(hint, sizeof hint,
             "kiln_read_options.missing_words '%s' takes such words for missing values; "
             "kiln_read_options.categorical '%s' says that text is meant",
             shown, called);
    return ki_warn(warnings, place, hint,
                   "column '%s' is taken as text: %lld of its first %lld values are no numbers, "
                   "the first '%s'",
                   called, (long long)s->words, (long long)s->words + (long long)s->numbers, shown);
}
