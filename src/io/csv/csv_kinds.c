/* This file says which columns are text: decided by the first rows, once, so that the answer does not depend
 * on what a million rows may hold. */

#include "io/csv/csv.h"
#include "io/text.h"

enum { SAMPLE_ROWS = 1000 };

/* A column is text if at least a tenth of its sampled values are not numbers: one stray word in a numeric
 * column is an error later on, not a million levels. */
static kiln_status decide(struct ki_table_column *columns, int64_t count, struct ki_warnings *warnings,
                          const char *name, const struct ki_block *text,
                          const struct ki_table_sample *samples) {
    for (int64_t i = 0; i < count; i++) {
        struct ki_table_column *column = &columns[i];
        if (column->pair) continue;
        const struct ki_table_sample *s = &samples[column->field];
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
            return ki_hint(KI_TABLE_COMMA_HINT);
        }
        if (!ki_table_sample_is_odd(s)) continue;
        const struct ki_place place =
            ki_table_place(name, text, s->word.text); /* takes time: not for each column */
        const kiln_status status = ki_table_sample_warn(warnings, column, s, &place);
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
    struct ki_table_sample *samples = ki_calloc((size_t)count * sizeof *samples);
    kiln_status status = KILN_OK;
    if (!fields || !samples) TRY(ki_fail_nomem((size_t)count * sizeof *samples, "the first rows"));
    for (int row = 0; row < SAMPLE_ROWS && (rest = ki_csv_skip_blank(rest, end)) < end; row++) {
        int64_t found;
        if (ki_csv_split(&rest, end, delimiter, fields, count, &found) || found != count) break;
        for (int64_t i = 0; i < count; i++)
            ki_table_sample_look(&samples[i], &fields[i], &layout->numbers, layout->type);
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
