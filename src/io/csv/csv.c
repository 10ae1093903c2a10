/* CSV: read blocks of whole records, cut each into parts for the threads, append what they made, number the
 * features last.
 *
 * The first line names the columns, unless all its fields are numbers. The first rows decide which columns
 * are text; those become one column a level, and X is then sparse. Rules, limits and the schema:
 * docs/formats.md. */
#include "io/csv/csv.h"

#include <stdio.h>
#include <string.h>

#include "core/threads.h"
#include "io/csv/csv_parse.h"
#include "io/detect.h"

enum {
    SMALLEST_PART = 32 << 10, /* bytes worth a thread */
    PARTS_PER_THREAD = 4,     /* evens out threads that are held up */
    PARTS_MOST = 512
};

struct reader {
    struct ki_input *input; /* the one that is being read */
    struct ki_input **more; /* of further files, as far as they are open: places name them until the end */
    int64_t more_open;
    const kiln_read_options *options;
    struct ki_warnings *warnings;
    /* Text that ended within quotes waits for its rest; the first `handed` bytes have been parsed. */
    struct ki_bytes pending;
    size_t handed;
    struct ki_block place; /* of pending: line and offset */
    bool quoted;

    char **names; /* of the file's columns */
    struct ki_csv_schema schema;
    struct ki_csv_levels levels, classes;
    struct ki_csv_layout layout;
    struct ki_csv_chunk *chunks;
    int parts; /* of them */

    struct ki_csv_report report;
    struct noticed {
        int64_t count;
        struct ki_place first;
        char value[64], column[64];
    } unseen[2], dropped; /* levels of features, classes; rows */

    int64_t rows;
    struct ki_bytes values, ids, row_start, y, roles[KI_CSV_ROLES];
};

/* -------------------------------------------------------------------------------------------- text */

/* Forgets the part of the pending text that has been parsed. */
static void drop_handed(struct reader *r) {
    if (r->handed == 0) return;
    char *data = r->pending.data;
    r->place.text = data;
    struct ki_place next = ki_csv_place(NULL, &r->place, data + r->handed);
    r->place.line = next.line;
    r->place.offset = next.offset;
    r->pending.size -= (int64_t)r->handed;
    memmove(data, data + r->handed, (size_t)r->pending.size);
    r->handed = 0;
}

static void hand_out(struct reader *r, struct ki_block *text, size_t size) {
    *text = (struct ki_block){r->pending.data ? r->pending.data : "", size, r->place.line, r->place.offset};
    r->handed = size;
}

/* The next whole records; size 0 at the end. A text that ends within quotes is handed out too, when it is the
 * last or too long, for the parser to say where the quote was opened. */
static kiln_status next_text(struct reader *r, struct ki_block *text) {
    drop_handed(r);
    for (;;) {
        struct ki_block block;
        kiln_status status = ki_input_block(r->input, &block);
        if (status != KILN_OK) return status;
        if (block.size == 0) {
            hand_out(r, text, (size_t)r->pending.size);
            return KILN_OK;
        }
        size_t whole = ki_csv_whole_records(block.text, block.size, &r->quoted);
        if (r->pending.size == 0) r->place = block;
        if (r->pending.size == 0 && whole == block.size) {
            *text = block;
            return KILN_OK;
        }
        size_t before = (size_t)r->pending.size;
        if (!ki_bytes_append(&r->pending, block.text, (int64_t)block.size))
            return ki_fail_nomem(block.size, "a quoted field");
        if (whole == 0 && r->pending.size < KI_CSV_LARGEST_RECORD) continue;
        hand_out(r, text, whole > 0 ? before + whole : (size_t)r->pending.size);
        return KILN_OK;
    }
}

/* ------------------------------------------------------------------------------------------- rows */

static kiln_status make_schema(struct reader *r) {
    const kiln_read_options *options = r->options;
    const char *text = options->model ? kiln_model_text(options->model, "schema") : NULL;
    struct ki_place place = {ki_input_name(r->input), 1, 0, -1};
    if (!text || !*text)
        return ki_csv_schema_from_header(&r->schema, r->names, r->layout.fields, options, &place);
    kiln_status status = ki_csv_schema_from_model(&r->schema, &r->levels, &r->classes, text);
    if (status != KILN_OK) return status;
    return ki_csv_schema_match(&r->schema, r->warnings, r->names, r->layout.fields, options, &place);
}

/* Cuts the text into parts of whole records; returns how many. */
static int cut(struct reader *r, const char *begin, const char *end) {
    int parts = (int)ki_min(r->parts, 1 + (end - begin) / SMALLEST_PART), used = 0;
    int64_t step = (end - begin) / parts + 1;
    while (begin < end) {
        struct ki_csv_chunk *chunk = &r->chunks[used++];
        chunk->begin = begin;
        int64_t size = used == parts ? end - begin : ki_min(step, end - begin);
        bool open = false;
        ki_csv_whole_records(begin, (size_t)size, &open);
        const char *p = begin + size;
        while (p < end && (open || p[-1] != '\n')) open ^= *p++ == '"';
        chunk->end = begin = p;
    }
    return used;
}

/* Its place is looked for only where it is told: counting lines for each level is quadratic. */
static kiln_status check_level(struct reader *r, const struct ki_block *text, const struct ki_csv_miss *miss,
                               const struct ki_bytes *plain) {
    const struct ki_csv_column *column =
        (miss->target ? r->schema.targets : r->schema.columns) + miss->column;
    const int64_t most = r->options->max_levels ? r->options->max_levels : KI_CSV_LEVEL_LIMIT;
    const int64_t longest = r->options->max_name ? r->options->max_name : KI_CSV_NAME_LIMIT;
    const bool utf8 = ki_csv_utf8(plain->data, plain->size);
    const bool room = 2 * r->schema.count + r->levels.count < INT32_MAX - 1 && column->levels < INT32_MAX - 1;
    if (utf8 && column->levels < most && plain->size <= longest && room) return KILN_OK;
    struct ki_place place = ki_csv_place(ki_input_name(r->input), text, miss->field.text);
    if (!utf8) {
        ki_fail_at(KILN_ERR_PARSE, &place, "a value in column '%s' is not UTF-8 text", column->name);
        return ki_hint("convert the file, for instance with iconv -f latin1 -t utf-8");
    }
    if (plain->size > longest) {
        ki_fail_at(KILN_ERR_LIMIT, &place, "a value of text column '%s' has %lld bytes, more than %lld",
                   column->name, (long long)plain->size, (long long)longest);
        return ki_hint(
            "leave the column out (kiln_read_options.ignore), or raise kiln_read_options.max_name");
    }
    ki_fail_at(KILN_ERR_LIMIT, &place, "text column '%s' has more than %lld levels", column->name,
               (long long)ki_min(most, INT32_MAX - 1));
    return ki_hint("is it an identifier? leave it out (kiln_read_options.ignore), or raise "
                   "kiln_read_options.max_levels");
}

static kiln_status add_level(struct reader *r, const struct ki_block *text, const struct ki_csv_miss *miss,
                             struct ki_bytes *plain, int32_t *number) {
    struct ki_csv_column *column = (miss->target ? r->schema.targets : r->schema.columns) + miss->column;
    struct ki_csv_levels *levels = miss->target ? &r->classes : &r->levels;
    plain->size = 0;
    if (!ki_csv_unquote(plain, &miss->field) || !ki_bytes_room(plain, 1))
        return ki_fail_nomem((size_t)miss->field.size, "a level");
    *number = ki_csv_levels_find(levels, miss->column, plain->data, plain->size);
    if (*number >= 0) return KILN_OK;
    const kiln_status status = check_level(r, text, miss, plain);
    if (status != KILN_OK) return status;
    *number = ki_csv_levels_add(levels, miss->column, plain->data, plain->size);
    if (*number < 0) return ki_fail_nomem((size_t)plain->size, "the levels");
    column->levels++;
    return KILN_OK;
}

/* Numbers up to KI_CSV_LEVEL_LIMIT are whole in f32 too. */
static void put_class(struct ki_bytes *y, kiln_type type, int64_t entry, int32_t number) {
    if (type == KILN_F32)
        ((float *)(void *)y->data)[entry] = (float)number;
    else
        ((double *)(void *)y->data)[entry] = number;
}

static kiln_status resolve_misses(struct reader *r, const struct ki_block *text, struct ki_csv_chunk *chunk) {
    const struct ki_csv_miss *misses = (const void *)chunk->misses.data;
    int64_t count = chunk->misses.size / (int64_t)sizeof *misses;
    kiln_status status = KILN_OK;
    struct ki_bytes plain = {0};
    for (int64_t i = 0; i < count; i++) {
        int32_t number = -1;
        TRY(add_level(r, text, &misses[i], &plain, &number));
        if (misses[i].target)
            put_class(&chunk->y, r->layout.type, misses[i].entry, number);
        else
            ((int32_t *)(void *)chunk->ids.data)[misses[i].entry] = (int32_t)(2 * r->schema.count) + number;
    }
done:
    ki_bytes_free(&plain);
    return status;
}

/* Makes room for `more` bytes and counts them as there; *at is where they go. */
static bool reserve(struct ki_bytes *bytes, int64_t more, int64_t *at) {
    *at = bytes->size;
    bool room = ki_bytes_room(bytes, more);
    if (room) bytes->size += more;
    return room;
}

static void copy(struct ki_bytes *to, int64_t at, const struct ki_bytes *from) {
    if (from->size > 0) memcpy(to->data + at, from->data, (size_t)from->size);
}

static void copy_part(void *reader, int part) {
    struct reader *r = reader;
    const struct ki_csv_chunk *chunk = &r->chunks[part];
    int64_t before = chunk->ids_at / (int64_t)sizeof(int32_t), *row_ends = (void *)chunk->row_ends.data;
    for (int64_t row = 0; r->layout.sparse && row < chunk->rows; row++) row_ends[row] += before;
    copy(&r->values, chunk->values_at, &chunk->values);
    copy(&r->ids, chunk->ids_at, &chunk->ids);
    copy(&r->y, chunk->y_at, &chunk->y);
    for (int i = 0; i < KI_CSV_ROLES; i++) copy(&r->roles[i], chunk->role_at[i], &chunk->roles[i]);
    copy(&r->row_start, chunk->row_ends_at, &chunk->row_ends);
}

/* Puts the parts behind what there is. Fresh pages are touched first by the copy, so that is done by all
 * threads. */
static kiln_status append(struct reader *r, int parts) {
    for (int i = 0; i < parts; i++) {
        struct ki_csv_chunk *chunk = &r->chunks[i];
        bool room = reserve(&r->values, chunk->values.size, &chunk->values_at) &&
                    reserve(&r->ids, chunk->ids.size, &chunk->ids_at) &&
                    reserve(&r->y, chunk->y.size, &chunk->y_at) &&
                    reserve(&r->row_start, chunk->row_ends.size, &chunk->row_ends_at);
        for (int k = 0; k < KI_CSV_ROLES; k++)
            room = room && reserve(&r->roles[k], chunk->roles[k].size, &chunk->role_at[k]);
        if (!room) return ki_fail_nomem((size_t)r->values.size, "the matrix");
        r->rows += chunk->rows;
    }
    ki_parallel(r->options->threads, parts, copy_part, r);
    return KILN_OK;
}

static void parse_part(void *reader, int part) {
    struct reader *r = reader;
    ki_csv_parse(&r->chunks[part], &r->layout);
}

static void notice(struct reader *r, struct noticed *noticed, int64_t count, const struct ki_csv_error *first,
                   const struct ki_block *text) {
    if (count > 0 && noticed->count == 0) {
        noticed->first = ki_csv_place(ki_input_name(r->input), text, first->at);
        ki_csv_excerpt(noticed->value, first->field.text, first->field.size);
        ki_csv_excerpt(noticed->column, first->column->name, (int64_t)strlen(first->column->name));
    }
    noticed->count += count;
}

static void take_notes(struct reader *r, const struct ki_block *text, const struct ki_csv_chunk *chunk) {
    ki_csv_report_add(&r->report, &chunk->problems, ki_input_name(r->input), text);
    for (int i = 0; i < 2; i++) notice(r, &r->unseen[i], chunk->unseen[i], &chunk->first_unseen[i], text);
    notice(r, &r->dropped, chunk->dropped, &chunk->first_dropped, text);
}

/* What is wrong with the values before that comes first in the file. */
static kiln_status fail_structure(struct reader *r, const struct ki_block *text,
                                  const struct ki_csv_chunk *chunk) {
    const kiln_status status = ki_csv_report_fail(&r->report, &r->layout);
    return status == KILN_OK ? ki_csv_fail(&chunk->error, &r->layout, ki_input_name(r->input), text) : status;
}

static kiln_status parse_text(struct reader *r, const struct ki_block *text, const char *begin) {
    int parts = cut(r, begin, text->text + text->size);
    ki_parallel(r->options->threads, parts, parse_part, r);
    for (int i = 0; i < parts; i++) {
        struct ki_csv_chunk *chunk = &r->chunks[i];
        take_notes(r, text, chunk);
        kiln_status status = resolve_misses(r, text, chunk);
        if (status == KILN_OK && chunk->error.fault) status = fail_structure(r, text, chunk);
        if (status != KILN_OK) return status;
    }
    return parts > 0 ? append(r, parts) : KILN_OK;
}

/* ------------------------------------------------------------------------------------------- whole */

static kiln_status begin(struct reader *r, struct ki_block *text, const char **rest) {
    kiln_status status = KILN_OK;
    TRY(next_text(r, text));
    TRY(ki_csv_read_header(&r->names, &r->layout, r->options, ki_input_name(r->input), text, rest));
    TRY(make_schema(r));
    *rest = ki_csv_skip_blank(*rest, text->text + text->size);
    while (*rest == text->text + text->size && text->size > 0) {
        TRY(next_text(r, text));
        *rest = ki_csv_skip_blank(text->text, text->text + text->size);
    }
    if (!r->schema.frozen)
        TRY(ki_csv_decide_kinds(&r->schema, r->warnings, &r->layout, ki_input_name(r->input), text, *rest));
    for (int64_t i = 0; i < r->schema.count; i++) r->layout.sparse |= r->schema.columns[i].text;
    int64_t zero = 0;
    if (r->layout.sparse && !ki_bytes_append(&r->row_start, &zero, sizeof zero))
        TRY(ki_fail_nomem(sizeof zero, "the matrix"));
done:
    return status;
}

static kiln_status number_classes(struct reader *r, struct ki_table *table) {
    int32_t *rank = NULL;
    bool any = false;
    for (int64_t t = 0; t < r->schema.target_count; t++) any |= r->schema.targets[t].text;
    kiln_status status = any ? ki_csv_classes_finish(&rank, table, &r->schema, &r->classes) : KILN_OK;
    if (rank) ki_csv_classes_number(r->y.data, r->layout.type, r->rows, &r->schema, rank);
    ki_free(rank);
    return status;
}

/* Columns of names: as many levels as rows, or nearly. */
static kiln_status warn_identifiers(struct reader *r) {
    enum { ROWS_LEAST = 20 };
    const struct ki_place place = {ki_input_name(r->input), 0, 0, -1};
    for (int64_t i = 0; !r->schema.frozen && i < r->schema.count; i++) {
        const struct ki_csv_column *column = &r->schema.columns[i];
        char hint[200], name[64];
        if (!column->text || r->rows < ROWS_LEAST || column->levels <= r->rows / 2) continue;
        ki_csv_excerpt(name, column->name, (int64_t)strlen(column->name));
        snprintf(hint, sizeof hint,
                 "is it a name or a number of rows? kiln_read_options.ignore '%s' leaves it out", name);
        kiln_status status = ki_warn(r->warnings, &place, hint, "text column '%s' has %d levels in %lld rows",
                                     name, (int)column->levels, (long long)r->rows);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

static kiln_status warn_noticed(struct reader *r) {
    static const char *const hints[KILN_UNSEEN_REFERENCE + 1] = {
        [KILN_UNSEEN_ZERO] = "kiln_read_options.unseen error|reference takes them otherwise",
        [KILN_UNSEEN_REFERENCE] = "kiln_read_options.unseen error|zero takes them otherwise"};
    const struct noticed *level = &r->unseen[0], *class = &r->unseen[1], *row = &r->dropped;
    const kiln_unseen unseen = r->layout.unseen;
    kiln_status status = KILN_OK;
    if (level->count > 0)
        TRY(ki_warn(r->warnings, &level->first, hints[unseen],
                    "%lld values of text columns were not seen in training and count as %s; the first is "
                    "'%s' in column '%s'",
                    (long long)level->count, unseen == KILN_UNSEEN_ZERO ? "no level" : "the reference level",
                    level->value, level->column));
    if (class->count > 0)
        TRY(ki_warn(r->warnings, &class->first, "they count as wrong where predictions are judged",
                    "%lld rows have a class that training has not seen; the first is '%s' in column '%s'",
                    (long long)class->count, class->value, class->column));
    if (row->count > 0)
        TRY(ki_warn(r->warnings, &row->first, "kiln_read_options.missing mean|indicator keeps them",
                    "%lld of %lld rows are left out, as values are missing; the first is '%s' in column '%s'",
                    (long long)row->count, (long long)(row->count + r->rows), row->value, row->column));
done:
    return status;
}

/* What could be wrong, now that all rows are there. */
static kiln_status judge(struct reader *r) {
    const struct ki_place place = {ki_input_name(r->input), 0, 0, -1};
    kiln_status status;
    TRY(ki_csv_report_fail(&r->report, &r->layout));
    TRY(warn_noticed(r));
    TRY(warn_identifiers(r));
    if (!r->schema.frozen) TRY(ki_csv_find_references(&r->schema, &r->levels, &place));
    if (r->rows == 0 && r->dropped.count > 0) {
        ki_fail_at(KILN_ERR_DATA, &place, "all %lld rows have missing values", (long long)r->dropped.count);
        TRY(ki_hint("kiln_read_options.missing mean|indicator keeps them"));
    }
done:
    return status;
}

static struct ki_csv_entries entries_of(struct reader *r) {
    const int64_t size = r->layout.type == KILN_F32 ? 4 : 8;
    return (struct ki_csv_entries){r->layout.sparse,         r->layout.type, r->rows,
                                   r->values.size / size,    r->values.data, (void *)r->ids.data,
                                   (void *)r->row_start.data};
}

/* Values that are missing get their means; ids become features. */
static kiln_status complete(struct reader *r, struct ki_table *table) {
    const struct ki_place place = {ki_input_name(r->input), 0, 0, -1};
    struct ki_csv_entries entries = entries_of(r);
    int32_t *feature = NULL;
    kiln_status status = KILN_OK;
    const bool handles = r->schema.missing >= KILN_MISSING_MEAN;
    if (handles) TRY(ki_csv_describe(&r->schema, &entries, &r->levels, &place));
    TRY(ki_csv_schema_finish(&feature, table, &r->schema, &r->levels));
    TRY(ki_csv_list_columns(table, &r->schema));
    if (!entries.sparse && table->cols > r->schema.count) {
        TRY(ki_csv_with_indicators(&table->values, &r->schema, &entries, feature, table->cols));
    } else if (handles) {
        ki_csv_impute(&r->schema, &entries);
    }
    if (entries.sparse) ki_csv_number_entries(&entries, feature, r->options->threads);
    table->nnz = entries.sparse ? entries.count : r->rows * table->cols;
done:
    ki_free(feature);
    return status;
}

static kiln_status finish(struct reader *r, struct ki_table *table) {
    kiln_status status;
    TRY(judge(r));
    TRY(number_classes(r, table));
    TRY(complete(r, table));
    table->format = r->layout.sparse ? KILN_CSR : KILN_DENSE;
    table->rows = r->rows;
    if (!table->values) table->values = ki_bytes_take(&r->values);
    if (r->layout.sparse) table->row_start = ki_bytes_take(&r->row_start);
    if (r->layout.sparse) table->col = ki_bytes_take(&r->ids);
    if (table->targets > 0) table->y = ki_bytes_take(&r->y);
    bool taken = table->values && (!r->layout.sparse || (table->row_start && table->col));
    taken = taken && (table->targets == 0 || table->y);
    void **roles[KI_CSV_ROLES] = {&table->weights, &table->offset};
    for (int i = 0; i < KI_CSV_ROLES; i++)
        taken = taken && (!r->schema.roles[i].name || (*roles[i] = ki_bytes_take(&r->roles[i])));
    if (!taken) status = ki_fail_nomem(1, "the matrix");
done:
    return status;
}

/* ---------------------------------------------------------------------------------- several files */

/* The first file's names by column: the schema has taken most of them over. */
static const char **names_by_column(const struct reader *r) {
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
static kiln_status check_header(struct reader *r, char *const *names, const struct ki_csv_layout *layout) {
    const struct ki_place place = {ki_input_name(r->input), 1, 1, 0};
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

static kiln_status open_next(struct reader *r, struct ki_block *text, const char **rest) {
    const kiln_read_options *options = r->options;
    struct ki_csv_layout layout = r->layout;
    char **names = NULL;
    kiln_status status = KILN_OK;
    const char *path = options->more[r->more_open];
    TRY(ki_input_open(&r->more[r->more_open], path, options->limit, &options->control));
    r->input = r->more[r->more_open++];
    TRY(ki_detect_foreign(r->input));
    r->quoted = false;
    TRY(next_text(r, text));
    layout.fields = 0;
    TRY(ki_csv_read_header(&names, &layout, options, ki_input_name(r->input), text, rest));
    TRY(check_header(r, names, &layout));
    r->layout.delimiter = layout.delimiter;
done:
    for (int64_t i = 0; names && i < layout.fields; i++) ki_free(names[i]);
    ki_free(names);
    return status;
}

static void clear(struct reader *r) {
    for (int64_t i = 0; r->names && i < r->layout.fields; i++) ki_free(r->names[i]);
    ki_free(r->names);
    for (int i = 0; r->chunks && i < r->parts; i++) ki_csv_chunk_free(&r->chunks[i]);
    ki_free(r->chunks);
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
    for (int i = 0; i < KI_CSV_ROLES; i++) ki_bytes_free(&r->roles[i]);
}

static void begin_layout(struct reader *r) {
    const kiln_read_options *options = r->options;
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
}

static kiln_status make_room(struct reader *r) {
    const kiln_read_options *options = r->options;
    r->parts =
        options->threads == 1 ? 1 : (int)ki_min((int64_t)options->threads * PARTS_PER_THREAD, PARTS_MOST);
    r->chunks = ki_calloc((size_t)r->parts * sizeof *r->chunks);
    r->more = ki_calloc((size_t)options->more_count * sizeof *r->more);
    if (r->chunks && r->more) return KILN_OK;
    return ki_fail_nomem((size_t)r->parts * sizeof *r->chunks, "the threads' parts");
}

kiln_status ki_read_csv(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct reader r = {.input = input, .options = options, .warnings = &table->warnings};
    struct ki_block text;
    const char *rest = NULL;
    begin_layout(&r);
    TRY(make_room(&r));
    TRY(begin(&r, &text, &rest));
    for (;;) {
        while (text.size > 0) {
            TRY(parse_text(&r, &text, rest));
            TRY(next_text(&r, &text));
            rest = text.text;
        }
        if (r.more_open == options->more_count) break;
        TRY(open_next(&r, &text, &rest));
    }
    for (int64_t i = 0; i < r.more_open; i++) table->more_bytes += ki_input_offset(r.more[i]);
    TRY(finish(&r, table));
done:
    clear(&r);
    return status;
}
