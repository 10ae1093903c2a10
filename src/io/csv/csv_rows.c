/* Rows: a text is cut into parts for the threads, and what they made of them is put together in order.
 * Levels that were not known are numbered in between, one part after the other, so that the numbers do not
 * depend on the threads. */
#include <string.h>

#include "core/threads.h"
#include "io/csv/csv_reader.h"
#include "io/text.h"

enum { SMALLEST_PART = 32 << 10 }; /* bytes worth a thread */

static void count_quotes(void *reader, int part) {
    struct ki_csv_chunk *chunk = &((struct ki_csv_reader *)reader)->chunks[part];
    chunk->odd = ki_count_byte(chunk->begin, (size_t)(chunk->end - chunk->begin), '"', 1) & 1;
}

/* Cuts the text into parts of whole records; returns how many. First into equal parts, whose quotes say
 * whether one is open where the next begins; then each cut moves on to the end of its record. */
static int cut(struct ki_csv_reader *r, const char *begin, const char *end) {
    const int parts = (int)ki_min(r->parts, 1 + (end - begin) / SMALLEST_PART);
    struct ki_csv_chunk *chunks = r->chunks;
    int used = 0;
    bool open = false;
    for (int i = 0; i < parts; i++) {
        chunks[i].begin = begin + ki_part_begin(end - begin, i, parts);
        chunks[i].end = begin + ki_part_begin(end - begin, i + 1, parts);
    }
    ki_parallel(r->options->threads, parts, count_quotes, r);
    for (int i = 0; i < parts && begin < end; i++) {
        const char *p = chunks[i].end;
        open ^= chunks[i].odd;
        if (p <= begin) continue; /* within a record that has been cut off */
        bool within = open;
        while (p < end && (within || p[-1] != '\n')) within ^= *p++ == '"';
        chunks[used].begin = begin;
        chunks[used++].end = begin = p;
    }
    return used;
}

static int64_t most_levels(const struct ki_csv_reader *r) {
    return ki_min(r->options->max_levels ? r->options->max_levels : KI_CSV_LEVEL_LIMIT, INT32_MAX - 1);
}

bool ki_csv_level_room(const struct ki_csv_reader *r, const struct ki_csv_column *column) {
    return column->levels < most_levels(r) && 2 * r->schema.count + r->levels.count < INT32_MAX - 1;
}

/* Its place is looked for only where it is told: counting lines for each level is quadratic. */
static kiln_status check_level(struct ki_csv_reader *r, const struct ki_block *text,
                               const struct ki_csv_miss *miss, const struct ki_bytes *plain) {
    const struct ki_csv_column *column =
        (miss->target ? r->schema.targets : r->schema.columns) + miss->column;
    const int64_t longest = r->options->max_name ? r->options->max_name : KI_CSV_NAME_LIMIT;
    const bool utf8 = ki_csv_utf8(plain->data, plain->size);
    if (utf8 && plain->size <= longest && ki_csv_level_room(r, column)) return KILN_OK;
    struct ki_place place = ki_csv_record_place(r->name, text, miss->field.text, miss->row);
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
                   (long long)most_levels(r));
        return ki_hint("these look like quantities, not like class labels: is it a regression?");
    }
    ki_fail_at(KILN_ERR_LIMIT, &place, "text column '%s' has more than %lld levels", column->name,
               (long long)most_levels(r));
    return ki_hint("is it an identifier? leave it out (kiln_read_options.ignore), or raise "
                   "kiln_read_options.max_levels");
}

static kiln_status add_level(struct ki_csv_reader *r, const struct ki_block *text,
                             const struct ki_csv_miss *miss, struct ki_bytes *plain, int32_t *number) {
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
    if (!miss->target && column->word_line == 0 && !ki_csv_is_number(plain->data, plain->size))
        column->word_line = ki_csv_record_place(r->name, text, miss->field.text, miss->row).line;
    return KILN_OK;
}

/* Numbers up to KI_CSV_LEVEL_LIMIT are whole in f32 too. */
static void put_class(struct ki_bytes *y, kiln_type type, int64_t entry, int32_t number) {
    if (type == KILN_F32)
        ((float *)(void *)y->data)[entry] = (float)number;
    else
        ((double *)(void *)y->data)[entry] = number;
}

static kiln_status resolve_misses(struct ki_csv_reader *r, const struct ki_block *text,
                                  struct ki_csv_chunk *chunk) {
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
    struct ki_csv_reader *r = reader;
    const struct ki_csv_chunk *chunk = &r->chunks[part];
    int64_t before = chunk->ids_at / (int64_t)sizeof(int32_t), *row_ends = (void *)chunk->row_ends.data;
    for (int64_t row = 0; r->layout.sparse && row < chunk->rows; row++) row_ends[row] += before;
    copy(&r->values, chunk->values_at, &chunk->values);
    copy(&r->ids, chunk->ids_at, &chunk->ids);
    copy(&r->y, chunk->y_at, &chunk->y);
    for (int i = 0; i < KI_CSV_ROLES; i++) copy(&r->roles[i], chunk->role_at[i], &chunk->roles[i]);
    copy(&r->row_start, chunk->row_ends_at, &chunk->row_ends);
}

static bool note_left_out(struct ki_csv_reader *r, const struct ki_csv_chunk *chunk) {
    const int64_t before = r->rows + r->left_out.size / (int64_t)sizeof before;
    const int64_t *rows = (const void *)chunk->left_out.data;
    bool room = ki_bytes_room(&r->left_out, chunk->left_out.size);
    for (int64_t i = 0; room && i < chunk->dropped; i++) {
        const int64_t row = before + rows[i];
        room = ki_bytes_append(&r->left_out, &row, sizeof row);
    }
    return room;
}

/* Puts the parts behind what there is. Fresh pages are touched first by the copy, so that is done by all
 * threads. */
static kiln_status append(struct ki_csv_reader *r, int parts) {
    for (int i = 0; i < parts; i++) {
        struct ki_csv_chunk *chunk = &r->chunks[i];
        bool room = reserve(&r->values, chunk->values.size, &chunk->values_at) &&
                    reserve(&r->ids, chunk->ids.size, &chunk->ids_at) &&
                    reserve(&r->y, chunk->y.size, &chunk->y_at) &&
                    reserve(&r->row_start, chunk->row_ends.size, &chunk->row_ends_at);
        for (int k = 0; k < KI_CSV_ROLES; k++)
            room = room && reserve(&r->roles[k], chunk->roles[k].size, &chunk->role_at[k]);
        if (!room || !note_left_out(r, chunk)) return ki_fail_nomem((size_t)r->values.size, "the matrix");
        r->rows += chunk->rows;
    }
    ki_parallel(r->options->threads, parts, copy_part, r);
    return KILN_OK;
}

static void parse_part(void *reader, int part) {
    struct ki_csv_reader *r = reader;
    ki_csv_parse(&r->chunks[part], &r->layout);
}

static void notice(struct ki_csv_reader *r, struct noticed *noticed, int64_t count,
                   const struct ki_csv_error *first, const struct ki_block *text) {
    if (count > 0 && noticed->count == 0) {
        noticed->first = ki_csv_record_place(r->name, text, first->at, first->row);
        ki_csv_error_excerpt(noticed->value, first);
        ki_csv_excerpt(noticed->column, first->column->name, (int64_t)strlen(first->column->name));
    }
    noticed->count += count;
}

static void take_notes(struct ki_csv_reader *r, const struct ki_block *text,
                       const struct ki_csv_chunk *chunk) {
    ki_csv_report_add(&r->report, &chunk->problems, r->name, text);
    for (int i = 0; i < 2; i++) notice(r, &r->unseen[i], chunk->unseen[i], &chunk->first_unseen[i], text);
    notice(r, &r->dropped, chunk->dropped, &chunk->first_dropped, text);
}

/* What is wrong with the values before that comes first in the file. */
static kiln_status fail_structure(struct ki_csv_reader *r, const struct ki_block *text,
                                  const struct ki_csv_chunk *chunk) {
    const kiln_status status = ki_csv_report_fail(&r->report, &r->layout);
    return status == KILN_OK ? ki_csv_fail(&chunk->error, &r->layout, r->name, text) : status;
}

kiln_status ki_csv_take_text(struct ki_csv_reader *r, const struct ki_block *text, const char *begin) {
    int parts = cut(r, begin, text->text + text->size);
    ki_parallel(r->options->threads, parts, parse_part, r);
    return ki_csv_take_parts(r, text, parts);
}

kiln_status ki_csv_take_parts(struct ki_csv_reader *r, const struct ki_block *text, int parts) {
    for (int i = 0; i < parts; i++) {
        struct ki_csv_chunk *chunk = &r->chunks[i];
        take_notes(r, text, chunk);
        kiln_status status = resolve_misses(r, text, chunk);
        if (status == KILN_OK && chunk->error.fault) status = fail_structure(r, text, chunk);
        if (status != KILN_OK) return status;
    }
    return parts > 0 ? append(r, parts) : KILN_OK;
}
