/* Which columns are text: decided by the first rows, once, so that the answer does not hang on what a million
 * rows may hold. */
#include "io/csv/csv_parse.h"

enum { SAMPLE_ROWS = 1000 };

/* What the first rows hold in one column. */
struct sample {
    int64_t numbers, words, with_comma;
    struct ki_csv_field word; /* the first */
};

/* Digits and signs with a comma: 1,5 or 12,000. */
static bool is_comma_number(const struct ki_csv_field *field) {
    bool digit = false, comma = false;
    for (int64_t i = 0; i < field->size; i++) {
        char c = field->text[i];
        if (!strchr("0123456789+-., ", c) || c == '\0') return false;
        digit |= c >= '0' && c <= '9';
        comma |= c == ',';
    }
    return digit && comma;
}

static void look_at(struct sample *samples, const struct ki_csv_field *fields, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double value;
        enum ki_csv_kind kind = ki_csv_number(&fields[i], &value);
        samples[i].numbers += kind == KI_CSV_NUMBER;
        if (kind != KI_CSV_TEXT) continue;
        if (samples[i].words++ == 0) samples[i].word = fields[i];
        samples[i].with_comma += is_comma_number(&fields[i]);
    }
}

/* A column is text if at least a tenth of its sampled values are not numbers: one stray word in a numeric
 * column is an error later on, not a million levels. */
static kiln_status decide(struct ki_csv_column *columns, int64_t count, const char *name,
                          const struct ki_block *text, const struct sample *samples) {
    for (int64_t i = 0; i < count; i++) {
        struct ki_csv_column *column = &columns[i];
        const struct sample *s = &samples[column->field];
        column->text = s->words > 0 && s->words >= (s->words + s->numbers + 9) / 10;
        if (!column->text || s->words != s->with_comma) continue;
        char shown[64];
        struct ki_place place = ki_csv_place(name, text, s->word.text);
        ki_fail_at(KILN_ERR_PARSE, &place, "value '%s' in column '%s': a number with a comma",
                   ki_csv_excerpt(shown, s->word.text, s->word.size), column->name);
        return ki_hint("write numbers with a decimal point and without thousands separators");
    }
    return KILN_OK;
}

kiln_status ki_csv_decide_kinds(struct ki_csv_schema *schema, const struct ki_csv_layout *layout,
                                const char *name, const struct ki_block *text, const char *rest) {
    const char *end = text->text + text->size;
    int64_t count = layout->fields;
    struct ki_csv_field *fields = ki_alloc((size_t)count * sizeof *fields);
    struct sample *samples = ki_calloc((size_t)count * sizeof *samples);
    kiln_status status = KILN_OK;
    if (!fields || !samples) TRY(ki_fail_nomem((size_t)count * sizeof *samples, "the first rows"));
    for (int row = 0; row < SAMPLE_ROWS && (rest = ki_csv_skip_blank(rest, end)) < end; row++) {
        int64_t found;
        if (ki_csv_split(&rest, end, layout->delimiter, fields, count, &found) || found != count) break;
        look_at(samples, fields, count);
    }
    TRY(decide(schema->columns, schema->count, name, text, samples));
    if (layout->text_targets) TRY(decide(schema->targets, schema->target_count, name, text, samples));
done:
    ki_free(fields);
    ki_free(samples);
    return status;
}
