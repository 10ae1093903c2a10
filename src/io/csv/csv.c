/* CSV: read blocks of whole records, cut each into parts for the threads, append what they made, number the
 * features last.
 *
 * The first line names the columns, unless all its fields are numbers. The first rows decide which columns
 * are text; those become one column a level, and X is then sparse. Rules, limits and the schema:
 * docs/formats.md. */
#include "io/csv/csv.h"

#include <string.h>

#include "core/threads.h"
#include "io/csv/csv_parse.h"

enum {
    SMALLEST_PART = 32 << 10, /* bytes worth a thread */
    PARTS_PER_THREAD = 4,     /* evens out threads that are held up */
    PARTS_MOST = 512
};

struct reader {
    struct ki_input *input;
    const kiln_read_options *options;
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
    return ki_csv_schema_match(&r->schema, r->names, r->layout.fields, options, &place);
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

static kiln_status add_level(struct reader *r, const struct ki_block *text, const struct ki_csv_miss *miss,
                             struct ki_bytes *plain, int32_t *number) {
    struct ki_csv_column *column = (miss->target ? r->schema.targets : r->schema.columns) + miss->column;
    struct ki_csv_levels *levels = miss->target ? &r->classes : &r->levels;
    plain->size = 0;
    if (!ki_csv_unquote(plain, &miss->field) || !ki_bytes_room(plain, 1))
        return ki_fail_nomem((size_t)miss->field.size, "a level");
    *number = ki_csv_levels_find(levels, miss->column, plain->data, plain->size);
    if (*number >= 0) return KILN_OK;
    struct ki_place place = ki_csv_place(ki_input_name(r->input), text, miss->field.text);
    if (!ki_csv_utf8(plain->data, plain->size)) {
        ki_fail_at(KILN_ERR_PARSE, &place, "a value in column '%s' is not UTF-8 text", column->name);
        return ki_hint("convert the file, for instance with iconv -f latin1 -t utf-8");
    }
    if ((miss->target ? levels->count : column->levels) == KI_CSV_LEVEL_LIMIT) {
        ki_fail_at(KILN_ERR_LIMIT, &place, "text column '%s' has more than %d levels", column->name,
                   KI_CSV_LEVEL_LIMIT);
        return ki_hint("is it an identifier? remove the column");
    }
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
            ((int32_t *)(void *)chunk->ids.data)[misses[i].entry] = (int32_t)r->schema.count + number;
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

static kiln_status parse_text(struct reader *r, const struct ki_block *text, const char *begin) {
    int parts = cut(r, begin, text->text + text->size);
    ki_parallel(r->options->threads, parts, parse_part, r);
    for (int i = 0; i < parts; i++) {
        struct ki_csv_chunk *chunk = &r->chunks[i];
        kiln_status status = resolve_misses(r, text, chunk);
        if (status == KILN_OK && chunk->error.fault)
            status = ki_csv_fail(&chunk->error, &r->layout, ki_input_name(r->input), text);
        if (status != KILN_OK) return status;
    }
    return parts > 0 ? append(r, parts) : KILN_OK;
}

/* ------------------------------------------------------------------------------------------- whole */

static kiln_status begin(struct reader *r, struct ki_block *text, const char **rest) {
    kiln_status status = KILN_OK;
    TRY(next_text(r, text));
    TRY(ki_csv_read_header(&r->names, &r->layout, ki_input_name(r->input), text, rest));
    TRY(make_schema(r));
    *rest = ki_csv_skip_blank(*rest, text->text + text->size);
    while (*rest == text->text + text->size && text->size > 0) {
        TRY(next_text(r, text));
        *rest = ki_csv_skip_blank(text->text, text->text + text->size);
    }
    if (!r->schema.frozen)
        TRY(ki_csv_decide_kinds(&r->schema, &r->layout, ki_input_name(r->input), text, *rest));
    for (int64_t i = 0; i < r->schema.count; i++) r->layout.sparse |= r->schema.columns[i].text;
    int64_t zero = 0;
    if (r->layout.sparse && !ki_bytes_append(&r->row_start, &zero, sizeof zero))
        TRY(ki_fail_nomem(sizeof zero, "the matrix"));
done:
    return status;
}

struct numbering {
    int32_t *ids;
    const int32_t *feature;
};

static void number_range(void *of, int64_t begin, int64_t end) {
    const struct numbering *n = of;
    for (int64_t i = begin; i < end; i++) n->ids[i] = n->feature[n->ids[i]];
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

static kiln_status finish(struct reader *r, struct ki_table *table) {
    int32_t *feature = NULL;
    kiln_status status = number_classes(r, table);
    if (status != KILN_OK) return status;
    status = ki_csv_schema_finish(&feature, table, &r->schema, &r->levels);
    if (status != KILN_OK) return status;
    struct numbering numbering = {(void *)r->ids.data, feature};
    int64_t entries = r->ids.size / (int64_t)sizeof(int32_t);
    ki_parallel_ranges(r->options->threads, entries, SMALLEST_PART, number_range, &numbering);
    ki_free(feature);
    table->format = r->layout.sparse ? KILN_CSR : KILN_DENSE;
    table->rows = r->rows;
    table->nnz = r->layout.sparse ? entries : r->rows * table->cols;
    table->values = ki_bytes_take(&r->values);
    if (r->layout.sparse) table->row_start = ki_bytes_take(&r->row_start);
    if (r->layout.sparse) table->col = ki_bytes_take(&r->ids);
    if (table->targets > 0) table->y = ki_bytes_take(&r->y);
    bool taken = table->values && (!r->layout.sparse || (table->row_start && table->col));
    taken = taken && (table->targets == 0 || table->y);
    void **roles[KI_CSV_ROLES] = {&table->weights, &table->offset};
    for (int i = 0; i < KI_CSV_ROLES; i++)
        taken = taken && (!r->schema.roles[i].name || (*roles[i] = ki_bytes_take(&r->roles[i])));
    return taken ? KILN_OK : ki_fail_nomem(1, "the matrix");
}

static void clear(struct reader *r) {
    for (int64_t i = 0; r->names && i < r->layout.fields; i++) ki_free(r->names[i]);
    ki_free(r->names);
    for (int i = 0; r->chunks && i < r->parts; i++) ki_csv_chunk_free(&r->chunks[i]);
    ki_free(r->chunks);
    ki_csv_schema_free(&r->schema);
    ki_csv_levels_free(&r->levels);
    ki_csv_levels_free(&r->classes);
    ki_bytes_free(&r->pending);
    ki_bytes_free(&r->values);
    ki_bytes_free(&r->ids);
    ki_bytes_free(&r->row_start);
    ki_bytes_free(&r->y);
    for (int i = 0; i < KI_CSV_ROLES; i++) ki_bytes_free(&r->roles[i]);
}

kiln_status ki_read_csv(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct reader r = {.input = input, .options = options};
    struct ki_block text;
    const char *rest = NULL;
    ki_csv_levels_init(&r.levels);
    ki_csv_levels_init(&r.classes);
    r.layout.schema = &r.schema;
    r.layout.levels = &r.levels;
    r.layout.classes = &r.classes;
    r.layout.text_targets = options->text_targets;
    r.layout.type = options->type;
    r.layout.allow_nonfinite = options->allow_nonfinite;
    r.layout.target_range = options->target_range;
    r.parts =
        options->threads == 1 ? 1 : (int)ki_min((int64_t)options->threads * PARTS_PER_THREAD, PARTS_MOST);
    r.chunks = ki_calloc((size_t)r.parts * sizeof *r.chunks);
    if (!r.chunks) TRY(ki_fail_nomem((size_t)r.parts * sizeof *r.chunks, "the threads' parts"));
    TRY(begin(&r, &text, &rest));
    while (text.size > 0) {
        TRY(parse_text(&r, &text, rest));
        TRY(next_text(&r, &text));
        rest = text.text;
    }
    TRY(finish(&r, table));
done:
    clear(&r);
    return status;
}
