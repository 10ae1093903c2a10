/* Which columns are text: decided by the first rows, once, so that the answer does not depend on what a
 * million rows may hold. */
#include <stdio.h>

#include "io/csv/csv.h"
#include "io/labels.h"
#include "io/number.h"
#include "io/text.h"

enum { SAMPLE_ROWS = 1000 };

/* What the first rows hold in one column. */
struct sample {
    int64_t numbers, codes, words, with_comma, dates; /* codes: numbers that are perhaps none */
    int64_t dressed;            /* words that are a number with something beside it, all the same */
    struct ki_table_field word; /* the first */
};

/* Digits and signs with a comma: 1,5 or 12,000. */
static bool is_comma_number(const struct ki_table_field *field) {
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

/* What stands before a number but letters: a currency, a sign, <, (. */
static const char *skip_marks(const char *at, const char *end) {
    while (at < end && ((unsigned char)*at >= 0x80 || strchr(" $-+(<>=~#", *at))) at++;
    return at;
}

/* What stands behind the number that a word begins with, perhaps behind marks: % of 45%, the same for all
 * words of a column of per cents. Size
 * -1: it begins with none. 0x1f and 1_000 are numbers of programs. */
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

static void look_at(struct sample *samples, const struct ki_table_field *fields, int64_t count,
                    const struct ki_table_numbers *numbers, kiln_type type) {
    for (int64_t i = 0; i < count; i++) {
        double value;
        enum ki_table_kind kind = ki_table_number(&fields[i], numbers, &value);
        samples[i].numbers += kind == KI_TABLE_NUMBER;
        samples[i].codes += kind == KI_TABLE_NUMBER && ki_label_is_code(fields[i].text, fields[i].size, type);
        if (kind != KI_TABLE_TEXT) continue;
        if (samples[i].words++ == 0) samples[i].word = fields[i];
        samples[i].with_comma += is_comma_number(&fields[i]);
        samples[i].dressed += is_dressed(&fields[i], &samples[i].word);
        samples[i].dates += is_date(&fields[i]) || is_time(&fields[i]);
    }
}

/* What is probably not meant: text in a column of numbers, dates as levels. */
static kiln_status warn_kind(struct ki_warnings *warnings, const struct ki_table_column *column,
                             const struct sample *s, const char *name, const struct ki_block *text) {
    char shown[64], called[64], hint[400];
    const bool dressed = s->dressed == s->words && s->words > 1;
    if (s->dates < s->words && s->numbers < s->words && !dressed) return KILN_OK;
    const struct ki_place place =
        ki_table_place(name, text, s->word.text); /* takes time: not for each column */
    ki_table_excerpt(shown, s->word.text, s->word.size);
    ki_table_excerpt(called, column->name, (int64_t)strlen(column->name));
    if (s->dates == s->words) {
        snprintf(hint, sizeof hint,
                 "split it into numbers, such as year, month and hour, or leave it out: "
                 "kiln_read_options.ignore '%s'",
                 called);
        return ki_warn(warnings, &place, hint,
                       "column '%s' holds dates or times, such as '%s', each of which is taken as a level",
                       called, shown);
    }
    if (dressed && s->numbers == 0) {
        snprintf(hint, sizeof hint,
                 "write plain numbers, or kiln_read_options.categorical '%s' says that text is meant",
                 called);
        return ki_warn(warnings, &place, hint,
                       "column '%s' holds numbers with something beside them, such as '%s', each of which is "
                       "taken as a level",
                       called, shown);
    }
    snprintf(hint, sizeof hint,
             "kiln_read_options.missing_words '%s' takes such words for missing values; "
             "kiln_read_options.categorical '%s' says that text is meant",
             shown, called);
    return ki_warn(warnings, &place, hint,
                   "column '%s' is taken as text: %lld of its first %lld values are no numbers, "
                   "the first '%s'",
                   called, (long long)s->words, (long long)s->words + (long long)s->numbers, shown);
}

/* A column is text if at least a tenth of its sampled values are not numbers: one stray word in a numeric
 * column is an error later on, not a million levels. */
static kiln_status decide(struct ki_table_column *columns, int64_t count, struct ki_warnings *warnings,
                          const char *name, const struct ki_block *text, const struct sample *samples) {
    for (int64_t i = 0; i < count; i++) {
        struct ki_table_column *column = &columns[i];
        const struct sample *s = &samples[column->field];
        column->numbers = s->words == 0;
        if (column->forced) continue;
        column->text = s->words > 0 && s->words >= (s->words + s->numbers + 9) / 10;
        if (column->target && s->codes > 0) {
            column->text = true;
            continue;
        }
        if (!column->text) continue;
        if (s->words == s->with_comma) {
            char shown[64];
            struct ki_place place = ki_table_place(name, text, s->word.text);
            ki_fail_at(KILN_ERR_PARSE, &place, "value '%s' in column '%s': a number with a comma",
                       ki_table_excerpt(shown, s->word.text, s->word.size), column->name);
            return ki_hint("kiln_read_options.decimal_comma reads 1,5 as one and a half; else write numbers "
                           "with a decimal "
                           "point and without thousands separators");
        }
        const kiln_status status = warn_kind(warnings, column, s, name, text);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

kiln_status ki_csv_decide_kinds(struct ki_table_builder *table, char delimiter, const char *name,
                                const struct ki_block *text, const char *rest) {
    const char *end = text->text + text->size;
    struct ki_table_schema *schema = &table->schema;
    const struct ki_table_layout *layout = &table->layout;
    int64_t count = layout->fields;
    struct ki_table_field *fields = ki_alloc((size_t)count * sizeof *fields);
    struct sample *samples = ki_calloc((size_t)count * sizeof *samples);
    kiln_status status = KILN_OK;
    if (!fields || !samples) TRY(ki_fail_nomem((size_t)count * sizeof *samples, "the first rows"));
    for (int row = 0; row < SAMPLE_ROWS && (rest = ki_csv_skip_blank(rest, end)) < end; row++) {
        int64_t found;
        if (ki_csv_split(&rest, end, delimiter, fields, count, &found) || found != count) break;
        look_at(samples, fields, count, &layout->numbers, layout->type);
    }
    TRY(decide(schema->columns, schema->count, table->warnings, name, text, samples));
    if (layout->text_targets)
        TRY(decide(schema->targets, schema->target_count, table->warnings, name, text, samples));
    ki_table_settle_missing(schema);
done:
    ki_free(fields);
    ki_free(samples);
    return status;
}

kiln_status ki_csv_first_kinds(struct ki_table_builder *table, const char *first) {
    const kiln_read_options *options = table->options;
    struct ki_csv_reader of = {.table = {.options = options}};
    struct ki_csv_header header = {.names = NULL};
    struct ki_block text;
    kiln_status status;
    TRY(ki_input_open(&of.input, first, options->limit, &options->control));
    TRY(ki_csv_next_text(&of, &text));
    TRY(ki_csv_read_header(&header, &table->layout.numbers, options, first, &text));
    if (header.fields != table->layout.fields)
        TRY(ki_fail(KILN_ERR_DATA, "%s has another number of columns", first));
    TRY(ki_csv_first_row(&of, &text, &header.rest));
    TRY(ki_csv_decide_kinds(table, header.delimiter, first, &text, header.rest));
done:
    ki_csv_header_free(&header);
    ki_bytes_free(&of.pending);
    ki_input_close(of.input);
    return status;
}
