/* The beginning and the end of a table that is being built; in between a feeder brings rows (take.c). */
#include <string.h>

#include "io/table/builder.h"

enum {
    PARTS_PER_THREAD = 4, /* evens out threads that are held up */
    PARTS_MOST = 512
};

kiln_status ki_table_builder_init(struct ki_table_builder *b, const char *name,
                                  const kiln_read_options *options, struct ki_warnings *warnings) {
    *b = (struct ki_table_builder){.name = name, .options = options, .warnings = warnings};
    ki_table_levels_init(&b->levels);
    ki_table_levels_init(&b->classes);
    b->layout = (struct ki_table_layout){
        .schema = &b->schema,
        .levels = &b->levels,
        .classes = &b->classes,
        .text_targets = options->text_targets,
        .type = options->type,
        .allow_nonfinite = options->allow_nonfinite,
        .target_range = options->target_range,
        .unseen = options->unseen ? options->unseen : KILN_UNSEEN_ZERO,
        .numbers = {&b->schema.missing_words, options->decimal_comma, options->type == KILN_F32}};
    b->parts =
        options->threads == 1 ? 1 : (int)ki_min((int64_t)options->threads * PARTS_PER_THREAD, PARTS_MOST);
    b->chunks = ki_calloc((size_t)b->parts * sizeof *b->chunks);
    if (b->chunks) return KILN_OK;
    return ki_fail_nomem((size_t)b->parts * sizeof *b->chunks, "the threads' parts");
}

void ki_table_free_chunks(struct ki_table_builder *b) {
    for (int i = 0; b->chunks && i < b->parts; i++) ki_table_chunk_free(&b->chunks[i]);
    ki_free(b->chunks);
    b->chunks = NULL;
}

void ki_table_builder_free(struct ki_table_builder *b) {
    for (int64_t i = 0; b->names && i < b->layout.fields; i++) ki_free(b->names[i]);
    ki_free(b->names);
    ki_table_free_chunks(b);
    ki_table_schema_free(&b->schema);
    ki_table_levels_free(&b->levels);
    ki_table_levels_free(&b->classes);
    ki_bytes_free(&b->values);
    ki_bytes_free(&b->ids);
    ki_bytes_free(&b->row_start);
    ki_bytes_free(&b->y);
    ki_bytes_free(&b->left_out);
    for (int i = 0; i < KI_TABLE_ROLES; i++) ki_bytes_free(&b->roles[i]);
}

kiln_status ki_table_make_schema(struct ki_table_builder *b, const struct ki_together *together) {
    const kiln_read_options *options = b->options;
    const char *text = options->model ? kiln_model_text(options->model, "schema")
                       : together     ? together->schema
                                      : NULL;
    struct ki_place place = {b->name, 1, 0, -1};
    if (!text || !*text)
        return ki_table_schema_from_header(&b->schema, b->names, b->layout.fields, options, &place);
    kiln_status status = ki_table_schema_from_model(&b->schema, &b->levels, &b->classes, text);
    if (status != KILN_OK) return status;
    return ki_table_schema_match(&b->schema, b->warnings, b->names, b->layout.fields, options, &place);
}

kiln_status ki_table_begin_rows(struct ki_table_builder *b) {
    const int64_t zero = 0;
    const struct ki_place place = {b->name, 0, 0, -1};
    const kiln_status status = ki_table_check_pairs(&b->schema, &place);
    if (status != KILN_OK) return status;
    b->layout.plain_numbers = !b->options->decimal_comma && b->schema.missing_words.size == 0;
    for (int64_t i = 0; i < b->schema.count; i++) b->layout.sparse |= b->schema.columns[i].text;
    if (b->layout.sparse && !ki_bytes_append(&b->row_start, &zero, sizeof zero))
        return ki_fail_nomem(sizeof zero, "the matrix");
    return KILN_OK;
}
