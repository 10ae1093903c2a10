/* CSV: read blocks of whole records, cut each into parts for the threads, append what they made, number the
 * features last.
 *
 * The first line names the columns, unless all its fields are numbers. The first rows decide which columns
 * are text; those become one column a level, and X is then sparse. Rules, limits and the schema:
 * docs/formats.md. */
#include <string.h>

#include "io/csv/csv_reader.h"

enum {
    PARTS_PER_THREAD = 4, /* evens out threads that are held up */
    PARTS_MOST = 512
};

kiln_status ki_csv_make_schema(struct ki_csv_reader *r, const struct ki_together *together) {
    const kiln_read_options *options = r->options;
    const char *text = options->model ? kiln_model_text(options->model, "schema")
                       : together     ? together->schema
                                      : NULL;
    struct ki_place place = {r->name, 1, 0, -1};
    if (!text || !*text)
        return ki_csv_schema_from_header(&r->schema, r->names, r->layout.fields, options, &place);
    kiln_status status = ki_csv_schema_from_model(&r->schema, &r->levels, &r->classes, text);
    if (status != KILN_OK) return status;
    return ki_csv_schema_match(&r->schema, r->warnings, r->names, r->layout.fields, options, &place);
}

static kiln_status begin(struct ki_csv_reader *r, struct ki_block *text, const char **rest,
                         const struct ki_together *together) {
    kiln_status status = KILN_OK;
    TRY(ki_csv_next_text(r, text));
    TRY(ki_csv_read_header(&r->names, &r->layout, r->options, r->name, text, rest));
    TRY(ki_csv_make_schema(r, together));
    TRY(ki_csv_first_row(r, text, rest));
    if (!r->schema.frozen && together)
        TRY(ki_csv_first_kinds(r, together->first));
    else if (!r->schema.frozen)
        TRY(ki_csv_decide_kinds(&r->schema, r->warnings, &r->layout, r->name, text, *rest));
    TRY(ki_csv_begin_rows(r));
done:
    return status;
}

kiln_status ki_csv_begin_rows(struct ki_csv_reader *r) {
    const int64_t zero = 0;
    r->layout.plain_numbers = !r->options->decimal_comma && r->schema.missing_words.size == 0;
    for (int64_t i = 0; i < r->schema.count; i++) r->layout.sparse |= r->schema.columns[i].text;
    if (r->layout.sparse && !ki_bytes_append(&r->row_start, &zero, sizeof zero))
        return ki_fail_nomem(sizeof zero, "the matrix");
    return KILN_OK;
}

void ki_csv_free_chunks(struct ki_csv_reader *r) {
    for (int i = 0; r->chunks && i < r->parts; i++) ki_csv_chunk_free(&r->chunks[i]);
    ki_free(r->chunks);
    r->chunks = NULL;
}

void ki_csv_reader_free(struct ki_csv_reader *r) {
    for (int64_t i = 0; r->names && i < r->layout.fields; i++) ki_free(r->names[i]);
    ki_free(r->names);
    ki_csv_free_chunks(r);
    ki_csv_schema_free(&r->schema);
    ki_csv_levels_free(&r->levels);
    ki_csv_levels_free(&r->classes);
    for (int64_t i = 0; i < r->more_open; i++) ki_input_close(r->more[i]);
    ki_free(r->more);
    ki_bytes_free(&r->pending);
    ki_bytes_free(&r->values);
    ki_bytes_free(&r->ids);
    ki_bytes_free(&r->row_start);
    ki_bytes_free(&r->y);
    ki_bytes_free(&r->left_out);
    for (int i = 0; i < KI_CSV_ROLES; i++) ki_bytes_free(&r->roles[i]);
}

kiln_status ki_csv_reader_init(struct ki_csv_reader *r, const char *name, const kiln_read_options *options,
                               struct ki_warnings *warnings) {
    *r = (struct ki_csv_reader){.name = name, .options = options, .warnings = warnings};
    ki_csv_levels_init(&r->levels);
    ki_csv_levels_init(&r->classes);
    r->layout = (struct ki_csv_layout){
        .schema = &r->schema,
        .levels = &r->levels,
        .classes = &r->classes,
        .text_targets = options->text_targets,
        .type = options->type,
        .allow_nonfinite = options->allow_nonfinite,
        .target_range = options->target_range,
        .unseen = options->unseen ? options->unseen : KILN_UNSEEN_ZERO,
        .numbers = {&r->schema.missing_words, options->decimal_comma, options->type == KILN_F32}};
    r->parts =
        options->threads == 1 ? 1 : (int)ki_min((int64_t)options->threads * PARTS_PER_THREAD, PARTS_MOST);
    r->chunks = ki_calloc((size_t)r->parts * sizeof *r->chunks);
    r->more = ki_calloc((size_t)options->more_count * sizeof *r->more);
    if (r->chunks && r->more) return KILN_OK;
    return ki_fail_nomem((size_t)r->parts * sizeof *r->chunks, "the threads' parts");
}

kiln_status ki_read_csv(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct ki_csv_reader r;
    struct ki_block text;
    const char *rest = NULL;
    TRY(ki_csv_reader_init(&r, ki_input_name(input), options, &table->warnings));
    r.input = input;
    if (table->together) memcpy(r.levels.key, table->together->key, sizeof r.levels.key);
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
    ki_csv_free_chunks(&r);
    TRY(ki_csv_finish(&r, table));
done:
    ki_csv_reader_free(&r);
    return status;
}
