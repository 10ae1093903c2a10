/* CSV: read blocks of whole records, cut each into parts for the threads, append what they made, number the
 * features last.
 *
 * The first line names the columns, unless all its fields are numbers. The first rows decide which columns
 * are text; those become one column a level, and X is then sparse. Rules, limits and the schema:
 * docs/formats.md. */
#include <string.h>

#include "io/csv/csv.h"

static kiln_status begin(struct ki_csv_reader *r, struct ki_block *text, const char **rest,
                         const struct ki_together *together) {
    struct ki_csv_header header = {.names = NULL};
    struct ki_table_builder *b = &r->table;
    kiln_status status = KILN_OK;
    TRY(ki_csv_next_text(r, text));
    TRY(ki_csv_read_header(&header, &b->layout.numbers, b->options, b->name, text));
    r->delimiter = header.delimiter;
    b->layout.fields = header.fields;
    b->names = header.names;
    *rest = header.rest;
    header = (struct ki_csv_header){.names = NULL};
    TRY(ki_table_make_schema(b, together));
    TRY(ki_csv_first_row(r, text, rest));
    if (!b->schema.frozen && together)
        TRY(ki_csv_first_kinds(b, together->first));
    else if (!b->schema.frozen)
        TRY(ki_csv_decide_kinds(b, r->delimiter, b->name, text, *rest));
    TRY(ki_table_begin_rows(b));
    TRY(ki_csv_make_plan(r));
done:
    ki_csv_header_free(&header);
    return status;
}

static kiln_status fail_record(const struct ki_table_builder *b, const struct ki_table_error *error,
                               const struct ki_block *text) {
    return ki_csv_fail(error, b->layout.fields, b->name, text);
}

static kiln_status reader_init(struct ki_csv_reader *r, struct ki_table *table, struct ki_input *input,
                               const kiln_read_options *options) {
    *r = (struct ki_csv_reader){.input = input};
    const kiln_status status =
        ki_table_builder_init(&r->table, ki_input_name(input), options, &table->warnings);
    if (status != KILN_OK) return status;
    r->table.fail = fail_record;
    if (table->together) memcpy(r->table.levels.key, table->together->key, sizeof r->table.levels.key);
    r->more = ki_calloc((size_t)options->more_count * sizeof *r->more);
    return r->more ? KILN_OK : ki_fail_nomem((size_t)options->more_count * sizeof *r->more, "the files");
}

static void reader_free(struct ki_csv_reader *r) {
    ki_table_builder_free(&r->table);
    for (int64_t i = 0; i < r->more_open; i++) ki_input_close(r->more[i]);
    ki_free(r->more);
    ki_bytes_free(&r->pending);
    ki_free(r->plan);
}

kiln_status ki_read_csv(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_csv_reader r;
    struct ki_block text;
    const char *rest = NULL;
    TRY(reader_init(&r, table, input, options));
    TRY(begin(&r, &text, &rest, table->together));
    for (;;) {
        while (text.size > 0) {
            TRY(ki_csv_take_text(&r, &text, rest));
            TRY(ki_csv_next_text(&r, &text));
            rest = text.text;
        }
        if (r.more_open == options->more_count) break;
        TRY(ki_csv_open_next(&r, &text, &rest));
    }
    for (int64_t i = 0; i < r.more_open; i++) table->more_bytes += ki_input_offset(r.more[i]);
    ki_table_free_chunks(&r.table);
    TRY(ki_table_finish(&r.table, table));
done:
    reader_free(&r);
    return status;
}
