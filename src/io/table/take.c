/* Rows: what the threads made of their chunks is put together in order. Levels that were not known are
 * numbered in between, one part after the other, so that the numbers do not depend on the threads. */
#include <string.h>

#include "core/threads.h"
#include "io/table/builder.h"

static int64_t most_levels(const struct ki_table_builder *b) {
    return ki_min(b->options->max_levels ? b->options->max_levels : KI_TABLE_LEVEL_LIMIT, INT32_MAX - 1);
}

bool ki_table_level_room(const struct ki_table_builder *b, const struct ki_table_column *column) {
    return column->levels < most_levels(b) && 2 * b->schema.count + b->levels.count < INT32_MAX - 1;
}

/* Its place is looked for only where it is told: counting lines for each level is quadratic. */
static kiln_status check_level(struct ki_table_builder *b, const struct ki_block *text,
                               const struct ki_table_miss *miss, const struct ki_bytes *plain) {
    const struct ki_table_column *column =
        (miss->target ? b->schema.targets : b->schema.columns) + miss->column;
    const int64_t longest = b->options->max_name ? b->options->max_name : KI_TABLE_NAME_LIMIT;
    const bool utf8 = ki_table_utf8(plain->data, plain->size);
    if (utf8 && plain->size <= longest && ki_table_level_room(b, column)) return KILN_OK;
    struct ki_place place = ki_table_record_place(b->name, text, miss->field.text, miss->row);
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
    if (column->label) {
        ki_fail_at(KILN_ERR_LIMIT, &place, "target '%s' has more than %lld different labels", column->name,
                   (long long)most_levels(b));
        return ki_hint("these look like quantities, not like class labels: is it a regression?");
    }
    ki_fail_at(KILN_ERR_LIMIT, &place, "text column '%s' has more than %lld levels", column->name,
               (long long)most_levels(b));
    return ki_hint("is it an identifier? leave it out (kiln_read_options.ignore), or raise "
                   "kiln_read_options.max_levels");
}

static kiln_status add_level(struct ki_table_builder *b, const struct ki_block *text,
                             const struct ki_table_miss *miss, const struct ki_bytes *pairs,
                             struct ki_bytes *plain, int32_t *number) {
    struct ki_table_column *column = (miss->target ? b->schema.targets : b->schema.columns) + miss->column;
    struct ki_table_levels *levels = miss->target ? &b->classes : &b->levels;
    plain->size = 0;
    const bool room = miss->pair >= 0 ? ki_bytes_append(plain, pairs->data + miss->pair, miss->pair_size)
                                      : ki_table_unquote(plain, &miss->field);
    if (!room || !ki_bytes_room(plain, 1)) return ki_fail_nomem((size_t)miss->field.size, "a level");
    *number = ki_table_levels_find(levels, miss->column, plain->data, plain->size);
    if (*number >= 0) return KILN_OK;
    const kiln_status status = check_level(b, text, miss, plain);
    if (status != KILN_OK) return status;
    *number = ki_table_levels_add(levels, miss->column, plain->data, plain->size);
    if (*number < 0) return ki_fail_nomem((size_t)plain->size, "the levels");
    column->levels++;
    if (!miss->target && column->word_line == 0 && !ki_table_is_number(plain->data, plain->size))
        column->word_line = text->text ? ki_table_line_move(&b->line, miss->field.text) : miss->row;
    return KILN_OK;
}

/* Numbers up to KI_TABLE_LEVEL_LIMIT are whole in f32 too. */
static void put_class(struct ki_bytes *y, kiln_type type, int64_t entry, int32_t number) {
    if (type == KILN_F32)
        ((float *)(void *)y->data)[entry] = (float)number;
    else
        ((double *)(void *)y->data)[entry] = number;
}

static kiln_status resolve_misses(struct ki_table_builder *b, const struct ki_block *text,
                                  struct ki_table_chunk *chunk) {
    const struct ki_table_miss *misses = (const void *)chunk->misses.data;
    int64_t count = chunk->misses.size / (int64_t)sizeof *misses;
    kiln_status status = KILN_OK;
    struct ki_bytes plain = {0};
    for (int64_t i = 0; i < count; i++) {
        int32_t number = -1;
        TRY(add_level(b, text, &misses[i], &chunk->pairs, &plain, &number));
        if (misses[i].target)
            put_class(&chunk->y, b->layout.type, misses[i].entry, number);
        else
            ((int32_t *)(void *)chunk->ids.data)[misses[i].entry] = (int32_t)(2 * b->schema.count) + number;
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

static void copy_part(void *builder, int part) {
    struct ki_table_builder *b = builder;
    const struct ki_table_chunk *chunk = &b->chunks[part];
    int64_t before = chunk->ids_at / (int64_t)sizeof(int32_t), *row_ends = (void *)chunk->row_ends.data;
    for (int64_t row = 0; b->layout.sparse && row < chunk->rows; row++) row_ends[row] += before;
    copy(&b->values, chunk->values_at, &chunk->values);
    copy(&b->ids, chunk->ids_at, &chunk->ids);
    copy(&b->y, chunk->y_at, &chunk->y);
    for (int i = 0; i < KI_TABLE_ROLES; i++) copy(&b->roles[i], chunk->role_at[i], &chunk->roles[i]);
    copy(&b->row_start, chunk->row_ends_at, &chunk->row_ends);
}

static bool note_left_out(struct ki_table_builder *b, const struct ki_table_chunk *chunk) {
    const int64_t before = b->rows + b->left_out.size / (int64_t)sizeof before;
    const int64_t *rows = (const void *)chunk->left_out.data;
    bool room = ki_bytes_room(&b->left_out, chunk->left_out.size);
    for (int64_t i = 0; room && i < chunk->dropped; i++) {
        const int64_t row = before + rows[i];
        room = ki_bytes_append(&b->left_out, &row, sizeof row);
    }
    return room;
}

/* Puts the parts behind what there is. Fresh pages are touched first by the copy, so that is done by all
 * threads. */
static kiln_status append(struct ki_table_builder *b, int parts) {
    for (int i = 0; i < parts; i++) {
        struct ki_table_chunk *chunk = &b->chunks[i];
        bool room = reserve(&b->values, chunk->values.size, &chunk->values_at) &&
                    reserve(&b->ids, chunk->ids.size, &chunk->ids_at) &&
                    reserve(&b->y, chunk->y.size, &chunk->y_at) &&
                    reserve(&b->row_start, chunk->row_ends.size, &chunk->row_ends_at);
        for (int k = 0; k < KI_TABLE_ROLES; k++)
            room = room && reserve(&b->roles[k], chunk->roles[k].size, &chunk->role_at[k]);
        if (!room || !note_left_out(b, chunk)) return ki_fail_nomem((size_t)b->values.size, "the matrix");
        b->rows += chunk->rows;
    }
    ki_parallel(b->options->threads, parts, copy_part, b);
    return KILN_OK;
}

static void notice(struct ki_table_builder *b, struct ki_table_noticed *noticed, int64_t count,
                   const struct ki_table_error *first, const struct ki_block *text) {
    if (count > 0 && noticed->count == 0) {
        noticed->first = ki_table_record_place(b->name, text, first->at, first->row);
        ki_table_error_excerpt(noticed->value, first);
        ki_table_excerpt(noticed->column, first->column->name, (int64_t)strlen(first->column->name));
    }
    noticed->count += count;
}

static void take_notes(struct ki_table_builder *b, const struct ki_block *text,
                       const struct ki_table_chunk *chunk) {
    ki_table_report_add(&b->report, &chunk->problems, b->name, text);
    for (int i = 0; i < 2; i++) notice(b, &b->unseen[i], chunk->unseen[i], &chunk->first_unseen[i], text);
    notice(b, &b->dropped, chunk->dropped, &chunk->first_dropped, text);
}

/* Finds what is wrong with the values before that comes first in the file. */
static kiln_status fail_structure(struct ki_table_builder *b, const struct ki_block *text,
                                  const struct ki_table_chunk *chunk) {
    const kiln_status status = ki_table_report_fail(&b->report, &b->layout);
    if (status != KILN_OK) return status;
    if (chunk->error.fault != KI_TABLE_NOMEM) return b->fail(b, &chunk->error, text);
    return ki_fail(KILN_ERR_NOMEM, "out of memory: the parsed part of the file");
}

kiln_status ki_table_take_parts(struct ki_table_builder *b, const struct ki_block *text, int parts) {
    b->line = (struct ki_table_line){text->text, text->line};
    for (int i = 0; i < parts; i++) {
        struct ki_table_chunk *chunk = &b->chunks[i];
        take_notes(b, text, chunk);
        kiln_status status = resolve_misses(b, text, chunk);
        if (status == KILN_OK && chunk->error.fault) status = fail_structure(b, text, chunk);
        if (status != KILN_OK) return status;
    }
    return parts > 0 ? append(b, parts) : KILN_OK;
}
