/* A table that comes as a stream of record batches: the second feeder of io/table.
 *
 * Types decide what CSV's reader decides by the first rows: a column of texts, or a dictionary, is text,
 * any other column numbers. Then each row of a batch becomes a record whose fields are texts where they
 * lie, or numbers, and goes the way of a CSV's records: schema, levels, classes, missing values and errors
 * are the same, but that texts such as NA are texts, as there are nulls. Threads take parts of a batch's
 * rows; a slice of the batch is in work at a time, so that what they make stays small. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/threads.h"
#include "io/arrow/arrow.h"
#include "io/decimal.h"
#include "io/labels.h"

enum {
    ROWS_OF_A_PART = 4096, /* of one thread at a time */
    SAMPLE_ROWS = 1000     /* that say whether a target's numbers are codes, as in a CSV file */
};

struct feed {
    struct ki_table_builder table;
    struct ArrowArrayStream *stream;
    struct ArrowSchema schema;
    struct ArrowArray batch; /* released if its release is NULL */
    struct ki_arrow_type *types;
    struct ki_arrow_column_view *views;
    unsigned char *use;      /* of each column: what fields need it for */
    int64_t columns, before; /* rows of former batches */
    int64_t slice;           /* the batch's row at which the slice in work begins */
    int64_t slice_rows;
    int parts;
    struct ki_bytes *printed; /* for each part: where numbers stand as texts until their levels are known */
    int64_t prints;           /* columns that are printed */
};
enum { UNUSED = 0, READ = 1, PRINTED = 2 };
enum { ARRAY_BROKEN = KI_TABLE_FAULTS }; /* offsets or indices lead out of an array */

/* The stream says what went wrong, or the system does. */
static kiln_status fail_stream(struct feed *f, int code) {
    const char *said = f->stream->get_last_error ? f->stream->get_last_error(f->stream) : NULL;
    return ki_fail(code == ENOMEM ? KILN_ERR_NOMEM : KILN_ERR_IO, "the table's stream failed: %s",
                   said ? said : strerror(code));
}

static kiln_status read_names(struct feed *f) {
    const struct ki_place place = {f->table.name, 0, 0, -1};
    const kiln_read_options *options = f->table.options;
    const int64_t most = options->max_columns ? options->max_columns : KI_TABLE_COLUMN_LIMIT;
    const int64_t longest = options->max_name ? options->max_name : KI_TABLE_NAME_LIMIT;
    if (!f->schema.format || strcmp(f->schema.format, "+s") != 0) {
        ki_fail(KILN_ERR_ARGUMENT, "a table is a struct of columns, this is an array of type '%s'",
                f->schema.format ? f->schema.format : "");
        return ki_hint("make a table of one column of it");
    }
    f->columns = f->schema.n_children;
    if (f->columns < 1 || f->columns > ki_min(most, INT32_MAX / 4))
        return ki_fail(KILN_ERR_LIMIT, "the table has %lld columns: 1 to %lld are possible",
                       (long long)f->columns, (long long)most);
    f->table.layout.fields = f->columns;
    f->table.names = ki_calloc((size_t)f->columns * sizeof *f->table.names);
    if (!f->table.names)
        return ki_fail_nomem((size_t)f->columns * sizeof *f->table.names, "the columns' names");
    for (int64_t i = 0; i < f->columns; i++) {
        const char *name = f->schema.children[i]->name;
        char numbered[32];
        snprintf(numbered, sizeof numbered, "column%lld", (long long)i + 1);
        if (!name || !*name) name = numbered;
        const int64_t size = (int64_t)strlen(name);
        if (size > longest || !ki_table_utf8(name, size))
            return ki_fail(KILN_ERR_DATA, "the name of column %lld has more than %lld bytes, or is not UTF-8",
                           (long long)i + 1, (long long)longest);
        if (!(f->table.names[i] = ki_strdup(name))) return ki_fail_nomem((size_t)size, "a column's name");
    }
    return ki_table_check_names(f->table.names, f->columns, &place);
}

static kiln_status make_room(struct feed *f) {
    const size_t count = (size_t)f->columns, bytes = count * (sizeof *f->types + sizeof *f->views + 1);
    f->types = ki_calloc(count * sizeof *f->types);
    f->views = ki_calloc(count * sizeof *f->views);
    f->use = ki_calloc(count);
    f->printed = ki_calloc((size_t)f->table.parts * sizeof *f->printed);
    if (!f->types || !f->views || !f->use || !f->printed) return ki_fail_nomem(bytes, "the table's columns");
    for (int64_t i = 0; i < f->columns; i++) {
        if (!f->schema.children[i]->format) return ki_fail(KILN_ERR_DATA, "a column without a type");
        f->types[i] = ki_arrow_type_of(f->schema.children[i]);
    }
    return KILN_OK;
}

/* The next batch that has rows; *any is false behind the last. */
static kiln_status next_batch(struct feed *f, bool *any) {
    for (*any = false;;) {
        if (f->batch.release) f->batch.release(&f->batch);
        f->batch = (struct ArrowArray){.release = NULL};
        const int code = f->stream->get_next(f->stream, &f->batch);
        if (code) return fail_stream(f, code);
        if (!f->batch.release) return KILN_OK;
        if (f->batch.length != 0) break;
    }
    if (f->batch.length < 0 || f->batch.offset < 0 || f->batch.n_children != f->columns || !f->batch.children)
        return ki_fail(KILN_ERR_DATA, "a batch of the table has other columns than its schema");
    if (f->batch.null_count != 0 && f->batch.n_buffers > 0 && f->batch.buffers && f->batch.buffers[0]) {
        ki_fail(KILN_ERR_UNSUPPORTED, "a batch of the table has rows that are missing as a whole");
        return ki_hint("remove these rows");
    }
    for (int64_t i = 0; i < f->columns; i++) {
        if (!f->use[i]) continue;
        const kiln_status status =
            ki_arrow_view_column(&f->views[i], &f->types[i], f->batch.children[i], f->batch.offset,
                                 f->batch.length, f->schema.children[i]->name);
        if (status != KILN_OK) return status;
    }
    *any = true;
    return KILN_OK;
}

/* A cell of a column that is read; printed: room for a number, where it is to be a text. */
static bool read_cell(const struct feed *f, int64_t column, int64_t row, struct ki_table_field *field,
                      double *number, char *printed) {
    return ki_arrow_cell(&f->views[column], row, field, number, f->use[column] == PRINTED ? printed : NULL);
}

static void parse_part(void *feed, int part) {
    struct feed *f = feed;
    struct ki_table_chunk *chunk = &f->table.chunks[part];
    const int64_t begin = f->slice + ki_part_begin(f->slice_rows, part, f->parts);
    const int64_t end = f->slice + ki_part_begin(f->slice_rows, part + 1, f->parts);
    struct ki_bytes *printed = &f->printed[part];
    chunk->begin = chunk->end = NULL;
    chunk->first_row = f->before + begin;
    ki_table_chunk_begin(chunk, &f->table.layout);
    printed->size = 0;
    if (!ki_bytes_room(&chunk->numbers, f->columns * (int64_t)sizeof(double)) ||
        !ki_bytes_room(printed, 1 + f->prints * (end - begin) * KI_DECIMAL_BYTES))
        chunk->error.fault = KI_TABLE_NOMEM;
    struct ki_table_field *fields = (void *)chunk->fields.data;
    double *numbers = (void *)chunk->numbers.data;
    for (int64_t row = begin; !chunk->error.fault && row < end; row++) {
        for (int64_t i = 0; i < f->columns; i++) {
            if (!f->use[i]) continue;
            if (!read_cell(f, i, row, &fields[i], &numbers[i], printed->data + printed->size)) {
                chunk->error = (struct ki_table_error){.fault = ARRAY_BROKEN, .row = f->before + row + 1};
                chunk->error.count = i;
                return;
            }
            if (f->use[i] == PRINTED) printed->size += KI_DECIMAL_BYTES;
        }
        chunk->error.fault = ki_table_convert(chunk, &f->table.layout);
    }
}

static kiln_status fail_broken(const struct ki_table_builder *table, const struct ki_table_error *error,
                               const struct ki_block *text) {
    const struct feed *f = (const struct feed *)(const void *)table; /* whose first member it is */
    const struct ki_place place = {table->name, error->row, 0, -1};
    (void)text;
    ki_fail_at(KILN_ERR_DATA, &place, "column '%s': its array's offsets or indices lead out of it",
               f->schema.children[error->count]->name);
    return ki_hint("the library that made the array has broken it");
}

static kiln_status take_batch(struct feed *f) {
    const kiln_control *control = &f->table.options->control;
    const struct ki_watch watch = {f->table.name, *control, ki_clock(), 0};
    const struct ki_block no_text = {.text = NULL};
    kiln_status status = KILN_OK;
    for (f->slice = 0; f->slice < f->batch.length; f->slice += f->slice_rows) {
        f->slice_rows = ki_min(f->batch.length - f->slice, (int64_t)f->table.parts * ROWS_OF_A_PART);
        f->parts = (int)ki_min(f->table.parts, (f->slice_rows + ROWS_OF_A_PART - 1) / ROWS_OF_A_PART);
        ki_parallel(f->table.options->threads, f->parts, parse_part, f);
        TRY(ki_table_take_parts(&f->table, &no_text, f->parts));
        TRY(ki_watch_tell(&watch, f->before + f->slice, f->before + f->slice));
    }
    f->before += f->batch.length;
done:
    return status;
}

/* ------------------------------------------------------------------------------------- columns' kinds */

static kiln_status use_column(struct feed *f, const struct ki_table_column *column, bool printed) {
    if (!column->name || column->field < 0) return KILN_OK;
    const struct ki_arrow_type *type = &f->types[column->field];
    const struct ArrowSchema *schema = f->schema.children[column->field];
    if (type->kind == KI_ARROW_REFUSED) {
        const struct ki_arrow_refusal why = ki_arrow_refusal(schema);
        ki_fail(KILN_ERR_UNSUPPORTED, "column '%s' of the table holds %s, which are not read", column->name,
                why.kind);
        return ki_hint("%s, or leave it out: kiln_read_options.ignore '%s'", why.remedy, column->name);
    }
    f->use[column->field] = printed && !ki_arrow_is_text(type->kind) ? PRINTED : READ;
    f->prints += f->use[column->field] == PRINTED;
    return KILN_OK;
}

static kiln_status use_columns(struct feed *f) {
    struct ki_table_schema *schema = &f->table.schema;
    kiln_status status = KILN_OK;
    for (int64_t i = 0; i < schema->count; i++) {
        struct ki_table_column *column = &schema->columns[i];
        const struct ki_arrow_type *type = &f->types[column->field];
        if (!schema->frozen && !column->forced)
            column->text = ki_arrow_is_text(type->kind) || type->dictionary;
        TRY(use_column(f, column, column->text));
    }
    for (int64_t i = 0; i < schema->target_count; i++)
        TRY(use_column(f, &schema->targets[i], f->table.layout.text_targets));
    for (int i = 0; i < KI_TABLE_ROLES; i++) TRY(use_column(f, &schema->roles[i], i == KI_TABLE_GROUPS));
    if (!schema->frozen) ki_table_settle_missing(schema);
done:
    return status;
}

/* Finds whether a target is text: by its type, or as its first numbers are codes. */
static void decide_targets(struct feed *f) {
    for (int64_t t = 0; t < f->table.schema.target_count && f->table.layout.text_targets; t++) {
        struct ki_table_column *target = &f->table.schema.targets[t];
        const struct ki_arrow_type *type = &f->types[target->field];
        target->numbers = !ki_arrow_is_text(type->kind);
        if (target->forced) continue;
        target->text = ki_arrow_is_text(type->kind);
        for (int64_t row = 0; row < ki_min(f->batch.length, SAMPLE_ROWS); row++) {
            struct ki_table_field field;
            double number;
            char printed[KI_DECIMAL_BYTES];
            if (!read_cell(f, target->field, row, &field, &number, printed)) break; /* told when it is read */
            target->text |= ki_label_is_code(field.text, field.size, f->table.layout.type);
        }
    }
}

/* Columns of strings that are probably not meant as levels; categories are. */
static kiln_status warn_of_words(struct feed *f) {
    const struct ki_table_layout *layout = &f->table.layout;
    const struct ki_place place = {f->table.name, 0, 0, -1};
    for (int64_t i = 0; i < f->table.schema.count; i++) {
        const struct ki_table_column *column = &f->table.schema.columns[i];
        struct ki_table_sample sample = {.numbers = 0};
        if (column->forced || !column->text || f->types[column->field].dictionary) continue;
        for (int64_t row = 0; row < ki_min(f->batch.length, SAMPLE_ROWS); row++) {
            struct ki_table_field field;
            double number;
            char printed[KI_DECIMAL_BYTES];
            if (!read_cell(f, column->field, row, &field, &number, printed)) break; /* told when it is read */
            if (field.text) ki_table_sample_look(&sample, &field, &layout->numbers, layout->type);
        }
        if (!ki_table_sample_is_odd(&sample)) continue;
        const kiln_status status = ki_table_sample_warn(f->table.warnings, column, &sample, &place);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

static kiln_status check_stream(const struct ArrowArrayStream *stream) {
    if (stream->release && stream->get_schema && stream->get_next) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "the table's stream has been read before, or is no stream");
}

static kiln_status begin(struct feed *f, struct ki_table *table, bool *any) {
    kiln_status status;
    TRY(ki_table_builder_init(&f->table, "(table)", f->table.options, &table->warnings));
    f->table.fail = fail_broken;
    f->table.layout.nulls = true;
    TRY(check_stream(f->stream));
    const int code = f->stream->get_schema(f->stream, &f->schema);
    if (code) TRY(fail_stream(f, code));
    TRY(read_names(f));
    TRY(make_room(f));
    TRY(ki_check_model_format(KILN_FILE_CSV, f->table.name, f->table.options, &table->warnings));
    TRY(ki_table_make_schema(&f->table, NULL));
    TRY(use_columns(f));
    TRY(next_batch(f, any));
    if (!f->table.schema.frozen && *any) decide_targets(f);
    if (!f->table.schema.frozen && *any) TRY(warn_of_words(f));
    TRY(ki_table_begin_rows(&f->table));
done:
    return status;
}

static void clear(struct feed *f) {
    for (int i = 0; f->printed && i < f->table.parts; i++) ki_bytes_free(&f->printed[i]);
    ki_free(f->printed);
    ki_free(f->types);
    ki_free(f->views);
    ki_free(f->use);
    if (f->batch.release) f->batch.release(&f->batch);
    if (f->schema.release) f->schema.release(&f->schema);
    ki_table_builder_free(&f->table);
}

kiln_status ki_read_arrow(struct ki_table *table, struct ArrowArrayStream *stream,
                          const kiln_read_options *options) {
    struct feed f = {.stream = stream, .table = {.options = options}};
    kiln_status status = KILN_OK;
    bool any = false;
    TRY(begin(&f, table, &any));
    while (any) {
        TRY(take_batch(&f));
        TRY(next_batch(&f, &any));
    }
    ki_table_free_chunks(&f.table);
    TRY(ki_table_finish(&f.table, table));
done:
    clear(&f);
    return status;
}
