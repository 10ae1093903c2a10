/* Further files, read behind the first one as if they were its end. Their columns must be the same. */
#include <string.h>

#include "io/csv/csv.h"
#include "io/detect.h"

/* The first file's names by column: the schema has taken most of them over. */
static const char **names_by_column(const struct ki_table_builder *b) {
    const struct ki_table_schema *schema = &b->schema;
    const char **names = ki_calloc((size_t)b->layout.fields * sizeof *names);
    if (!names) return NULL;
    for (int64_t i = 0; i < b->layout.fields; i++) names[i] = b->names[i];
    for (int64_t i = 0; i < schema->count; i++)
        if (!schema->columns[i].pair) names[schema->columns[i].field] = schema->columns[i].name;
    for (int64_t i = 0; i < schema->ignored_count; i++)
        if (schema->ignored[i].field >= 0) names[schema->ignored[i].field] = schema->ignored[i].name;
    return names;
}

/* The columns of a further file are those of the first, in their order. */
static kiln_status check_header(const struct ki_table_builder *b, const struct ki_csv_header *header) {
    const struct ki_place place = {b->name, 1, 1, 0};
    char theirs[64], ours[64];
    if (header->fields != b->layout.fields) {
        ki_fail_at(KILN_ERR_DATA, &place, "%lld columns, the first file has %lld", (long long)header->fields,
                   (long long)b->layout.fields);
        return ki_hint("files that are read as one have the same columns");
    }
    kiln_status status = KILN_OK;
    const char **own = names_by_column(b);
    if (!own) return ki_fail_nomem((size_t)header->fields * sizeof *own, "the columns' names");
    for (int64_t i = 0; status == KILN_OK && i < header->fields; i++) {
        if (strcmp(header->names[i], own[i]) == 0) continue;
        ki_fail_at(KILN_ERR_DATA, &place, "column %lld is '%s', in the first file '%s'", (long long)i + 1,
                   ki_table_excerpt(theirs, header->names[i], (int64_t)strlen(header->names[i])),
                   ki_table_excerpt(ours, own[i], (int64_t)strlen(own[i])));
        status = ki_hint("files that are read as one have the same columns in the same order");
    }
    ki_free(own);
    return status;
}

kiln_status ki_csv_open_next(struct ki_csv_reader *r, struct ki_block *text, const char **rest) {
    const kiln_read_options *options = r->table.options;
    const char *path = options->more[r->more_open];
    struct ki_csv_header header = {.names = NULL};
    kiln_status status = KILN_OK;
    TRY(ki_input_open(&r->more[r->more_open], path, options->limit, &options->control));
    r->input = r->more[r->more_open++];
    ki_input_use_threads(r->input, options->threads);
    r->table.name = ki_input_name(r->input);
    TRY(ki_detect_foreign(r->input));
    r->quoted = false;
    TRY(ki_csv_next_text(r, text));
    TRY(ki_csv_read_header(&header, &r->table.layout.numbers, options, r->table.name, text));
    TRY(check_header(&r->table, &header));
    r->delimiter = header.delimiter;
    *rest = header.rest;
done:
    ki_csv_header_free(&header);
    return status;
}
