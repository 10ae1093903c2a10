/* Further files, read behind the first one as if they were its end. Their columns must be the same. */
#include <string.h>

#include "io/csv/csv_reader.h"
#include "io/detect.h"

/* The first file's names by column: the schema has taken most of them over. */
static const char **names_by_column(const struct ki_csv_reader *r) {
    const struct ki_csv_schema *schema = &r->schema;
    const char **names = ki_calloc((size_t)r->layout.fields * sizeof *names);
    if (!names) return NULL;
    for (int64_t i = 0; i < r->layout.fields; i++) names[i] = r->names[i];
    for (int64_t i = 0; i < schema->count; i++) names[schema->columns[i].field] = schema->columns[i].name;
    for (int64_t i = 0; i < schema->ignored_count; i++)
        if (schema->ignored[i].field >= 0) names[schema->ignored[i].field] = schema->ignored[i].name;
    return names;
}

/* The columns of a further file are those of the first, in their order. */
static kiln_status check_header(struct ki_csv_reader *r, char *const *names,
                                const struct ki_csv_layout *layout) {
    const struct ki_place place = {r->name, 1, 1, 0};
    char theirs[64], ours[64];
    if (layout->fields != r->layout.fields) {
        ki_fail_at(KILN_ERR_DATA, &place, "%lld columns, the first file has %lld", (long long)layout->fields,
                   (long long)r->layout.fields);
        return ki_hint("files that are read as one have the same columns");
    }
    kiln_status status = KILN_OK;
    const char **own = names_by_column(r);
    if (!own) return ki_fail_nomem((size_t)layout->fields * sizeof *own, "the columns' names");
    for (int64_t i = 0; status == KILN_OK && i < layout->fields; i++) {
        if (strcmp(names[i], own[i]) == 0) continue;
        ki_fail_at(KILN_ERR_DATA, &place, "column %lld is '%s', in the first file '%s'", (long long)i + 1,
                   ki_csv_excerpt(theirs, names[i], (int64_t)strlen(names[i])),
                   ki_csv_excerpt(ours, own[i], (int64_t)strlen(own[i])));
        status = ki_hint("files that are read as one have the same columns in the same order");
    }
    ki_free(own);
    return status;
}

kiln_status ki_csv_open_next(struct ki_csv_reader *r, struct ki_block *text, const char **rest) {
    const kiln_read_options *options = r->options;
    struct ki_csv_layout layout = r->layout;
    char **names = NULL;
    kiln_status status = KILN_OK;
    const char *path = options->more[r->more_open];
    TRY(ki_input_open(&r->more[r->more_open], path, options->limit, &options->control));
    r->input = r->more[r->more_open++];
    ki_input_use_threads(r->input, options->threads);
    r->name = ki_input_name(r->input);
    TRY(ki_detect_foreign(r->input));
    r->quoted = false;
    TRY(ki_csv_next_text(r, text));
    layout.fields = 0;
    TRY(ki_csv_read_header(&names, &layout, options, r->name, text, rest));
    TRY(check_header(r, names, &layout));
    r->layout.delimiter = layout.delimiter;
done:
    for (int64_t i = 0; names && i < layout.fields; i++) ki_free(names[i]);
    ki_free(names);
    return status;
}
