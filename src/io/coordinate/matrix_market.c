/* After the header, whichever parser reads that: entries "row col [value]" in any order, or all values
 * column by column; of a symmetric matrix one triangle, as entries either (the standard's is the lower one).
 *
 * Nothing is allocated for what the size line says: entries take room as they come, and must then be as many
 * as it said. Only the row offsets have the size of a number in the header; there a rule ties it to the
 * bytes read. */
#include "core/threads.h"
#include "io/coordinate/matrix_market.h"
#include "io/quick.h"

enum { PARTS_PER_THREAD = 4, ROWS_FREE = 1 << 20, ROWS_PER_BYTE = 8 };

enum { BELOW, ABOVE, TRIANGLES };

struct part {
    const char *text, *end;
    struct ki_entries entries;
    const char *first
        [TRIANGLES]; /* where each triangle's first entry stands, NULL if there is none; symmetric files */
    int64_t before;  /* entries of the file before it */
    struct ki_bytes starts; /* const char *: where each entry stands, with --strict */
    struct ki_fault fault;
};

struct reader {
    const kiln_read_options *options;
    ki_head_parser *parse;
    struct ki_market header;
    struct part *parts;
    const char **cuts;
    int part_count;
    int triangle; /* of a symmetric file, by the first entry off the diagonal; TRIANGLES: none yet */
    struct ki_entries entries; /* of an array only the values */
};

static const char nonfinite_hint[] = "repair the value; --allow-nonfinite accepts it";

/* Up to 2^64 - 1, rounded to a double. */
static bool parse_unsigned(const char **text, const char *end, double *value) {
    const char *p = *text;
    uint64_t whole = 0;
    for (; p < end && ki_is_digit(*p); p++) {
        const unsigned digit = (unsigned)(*p - '0');
        if (whole > (UINT64_MAX - digit) / 10) return false;
        whole = 10 * whole + digit;
    }
    if (p == *text) return false;
    *text = p;
    *value = (double)whole;
    return true;
}

static bool parse_value(struct part *part, const struct reader *reader, const char **text, double *value) {
    const char *at = *text;
    int64_t whole;
    if (reader->header.integer) {
        if (reader->header.unsigned_integer && parse_unsigned(text, part->end, value)) return true;
        if (!ki_parse_int64(text, part->end, &whole))
            return ki_is_digit(at[*at == '-'])
                       ? ki_fault(&part->fault, KILN_ERR_PARSE, at,
                                  "unsigned-integer in the first line goes to 2^64 - 1, real further",
                                  "value '%s' is beyond 64 bits", ki_word(at, part->end).text)
                       : ki_expected(&part->fault, at, part->end, "an integer");
        *value = (double)whole;
        return whole >= 0 || !reader->header.counts ||
               ki_fault(&part->fault, KILN_ERR_PARSE, at, NULL,
                        "a word cannot stand %lld times in a document", (long long)whole);
    }
    if (!ki_parse_real(text, part->end, reader->options->type == KILN_F32, value))
        return ki_expected(&part->fault, at, part->end, "a number");
    if (reader->options->allow_nonfinite || ki_is_finite(*value, reader->options->type)) return true;
    return ki_fault(&part->fault, KILN_ERR_PARSE, at, nonfinite_hint, "value '%s'%s",
                    ki_word(at, part->end).text, __builtin_isfinite(*value) ? " is too large for f32" : "");
}

static bool parse_index(struct part *part, const struct ki_market *header, const char **text, int64_t size,
                        const char *what, int64_t *index) {
    const char *at = *text, *p = at;
    if (!ki_parse_int64(&p, part->end, index)) {
        if (!ki_is_digit(*p) && !(*p == '-' && ki_is_digit(p[1])))
            return ki_expected(&part->fault, at, part->end, what);
        *index = 0;
    }
    if (*index < 1 || *index > size)
        return ki_fault(&part->fault, KILN_ERR_PARSE, at, NULL, "%s %s, the %s allows 1 to %lld", what,
                        ki_word(at, part->end).text, ki_market_head(header), (long long)size);
    const char *next = ki_skip_blanks(p, part->end);
    if (next == p && !ki_at_line_end(p, part->end)) return ki_expected(&part->fault, at, part->end, what);
    *text = next;
    --*index;
    return true;
}

static bool parse_entry(struct part *part, const struct reader *reader, const char *p, const char **text) {
    const struct ki_market *header = &reader->header;
    const char *start = p;
    int64_t i, j;
    double value = 1;
    if (!parse_index(part, header, &p, header->rows, header->counts ? "document" : "row", &i) ||
        !parse_index(part, header, &p, header->cols, header->counts ? "word" : "column", &j))
        return false;
    if (!header->pattern && !parse_value(part, reader, &p, &value)) return false;
    p = ki_skip_blanks(p, part->end);
    if (!ki_at_line_end(p, part->end))
        return ki_expected(&part->fault, p, part->end,
                           header->pattern ? "the end of the line, as a pattern has no values"
                                           : "the end of the line");
    if (header->symmetry == KI_SKEW && i == j)
        return ki_fault(&part->fault, KILN_ERR_PARSE, start, "the diagonal of a skew-symmetric matrix is 0",
                        "entry (%lld, %lld) is on the diagonal", (long long)i + 1, (long long)j + 1);
    const bool mirrored = header->symmetry != KI_GENERAL && i < j;
    if (header->symmetry != KI_GENERAL && i != j && !part->first[mirrored ? ABOVE : BELOW])
        part->first[mirrored ? ABOVE : BELOW] = start;
    if (mirrored && header->symmetry == KI_SKEW) value = -value;
    uint32_t row = (uint32_t)(mirrored ? j : i);
    int32_t col = (int32_t)(mirrored ? i : j);
    part->entries.count++;
    *text = p;
    if (reader->options->strict && !ki_bytes_append(&part->starts, &start, sizeof start))
        return ki_fault_nomem(&part->fault);
    ki_bytes_append(&part->entries.row, &row, sizeof row); /* there is room: entry_room */
    ki_bytes_append(&part->entries.col, &col, sizeof col);
    ki_bytes_append(&part->entries.value, &value, sizeof value);
    return true;
}

/* An index of one to seven digits, and a blank behind it unless it is the last of its line. */
static inline bool quick_index(const char **text, int64_t size, bool last, int64_t *index) {
    const uint64_t word = ki_text_word(*text);
    const int count = ki_quick_count(word);
    *index = (int64_t)ki_quick_value(word, count) - 1;
    if (count == 8 || *index < 0 || *index >= size) return false;
    *text += count;
    if (last) return true;
    const bool blank = **text == ' ' || **text == '\t';
    *text += blank;
    return blank;
}

static inline bool quick_value(const struct reader *reader, const char **text, double *value) {
    if (!reader->header.integer) return ki_quick_real(text, reader->options->type == KILN_F32, value);
    const uint64_t word = ki_text_word(*text);
    const int count = ki_quick_count(word);
    *value = (double)ki_quick_value(word, count);
    *text += count;
    return count > 0 && count < 8;
}

/* Takes the lines at *text that are as most, and moves it to the first other one. There is room for them. */
static void quick_entries(struct part *part, const struct reader *reader, const char **text) {
    enum { READS = 2 * 16 + KI_QUICK_READS + 2 }; /* of a line, without asking where the text ends */
    const struct ki_market *header = &reader->header;
    struct ki_entries *entries = &part->entries;
    if (header->symmetry != KI_GENERAL || reader->options->strict || part->end - *text < READS) return;
    uint32_t *row = (uint32_t *)(void *)(entries->row.data + entries->row.size);
    int32_t *col = (int32_t *)(void *)(entries->col.data + entries->col.size);
    double *values = (double *)(void *)(entries->value.data + entries->value.size);
    int64_t count = 0;
    for (const char *p = *text, *stop = part->end - READS; p < stop; *text = p, count++) {
        int64_t i, j;
        double value = 1;
        if (!quick_index(&p, header->rows, false, &i) || !quick_index(&p, header->cols, header->pattern, &j))
            break;
        if (!header->pattern && !quick_value(reader, &p, &value)) break;
        p += *p == '\r';
        if (*p++ != '\n') break;
        row[count] = (uint32_t)i;
        col[count] = (int32_t)j;
        values[count] = value;
    }
    entries->count += count;
    entries->row.size += count * (int64_t)sizeof *row;
    entries->col.size += count * (int64_t)sizeof *col;
    entries->value.size += count * (int64_t)sizeof *values;
}

/* Room for the entries of a text of so many bytes, each at least three and a line end. */
static bool entry_room(struct ki_entries *entries, int64_t bytes) {
    const int64_t most = bytes / 4 + 1;
    return ki_bytes_room(&entries->row, most * (int64_t)sizeof(uint32_t)) &&
           ki_bytes_room(&entries->col, most * (int64_t)sizeof(int32_t)) &&
           ki_bytes_room(&entries->value, most * (int64_t)sizeof(double));
}

/* The values on one line of an array. */
static bool parse_values(struct part *part, const struct reader *reader, const char *p, const char **text) {
    while (!ki_at_line_end(p, part->end)) {
        const char *at = p;
        double value;
        if (!parse_value(part, reader, &p, &value)) return false;
        if (!ki_at_line_end(p, part->end) && *p != ' ' && *p != '\t')
            return ki_expected(&part->fault, at, part->end, "a number");
        if (!ki_bytes_append(&part->entries.value, &value, sizeof value)) return ki_fault_nomem(&part->fault);
        part->entries.count++;
        p = ki_skip_blanks(p, part->end);
    }
    *text = p;
    return true;
}

static void parse_part(void *user, int i) {
    const struct reader *reader = user;
    struct part *part = &reader->parts[i];
    part->text = reader->cuts[i];
    part->end = reader->cuts[i + 1];
    part->entries.row.size = part->entries.col.size = part->entries.value.size = part->entries.count = 0;
    part->starts.size = 0;
    part->first[BELOW] = part->first[ABOVE] = NULL;
    part->fault.status = KILN_OK;
    const bool array = reader->header.array;
    if (!array && !entry_room(&part->entries, part->end - part->text)) {
        ki_fault_nomem(&part->fault);
        return;
    }
    for (const char *p = part->text; p < part->end;) {
        if (!array) quick_entries(part, reader, &p);
        const char *word = ki_skip_blanks(p, part->end);
        if (!ki_at_line_end(word, part->end) && *word != '%' &&
            !(array ? parse_values : parse_entry)(part, reader, word, &word))
            return;
        const char *newline = memchr(word, '\n', (size_t)(part->end - word));
        p = newline ? newline + 1 : part->end;
    }
}

/* Returns where the part's first entry beyond the `fitting` ones begins: entries are counted as they were
 * parsed. */
static const char *find_surplus(const struct part *part, int64_t fitting, bool array) {
    const char *p = part->text, *end = part->end;
    for (;; p++) {
        p = ki_skip_blanks(p, end);
        if (!ki_at_line_end(p, end) && *p != '%') {
            if (fitting-- == 0) return p;
            while (!ki_at_line_end(p, end) && (!array || (*p != ' ' && *p != '\t'))) p++;
        } else if (!ki_at_line_end(p, end)) {
            while (!ki_at_line_end(p, end)) p++;
        }
        if (p < end && *p == '\r') p++;
    }
}

static void store_part(void *user, int i) {
    struct reader *reader = user;
    struct ki_entries *all = &reader->entries;
    const struct part *part = &reader->parts[i];
    const struct ki_entries *entries = &part->entries;
    if (entries->row.size > 0) {
        memcpy(all->row.data + part->before * (int64_t)sizeof(uint32_t), entries->row.data,
               (size_t)entries->row.size);
        memcpy(all->col.data + part->before * (int64_t)sizeof(int32_t), entries->col.data,
               (size_t)entries->col.size);
    }
    if (entries->value.size > 0)
        memcpy(all->value.data + part->before * (int64_t)sizeof(double), entries->value.data,
               (size_t)entries->value.size);
}

/* Makes room for `count` more items of `item` bytes, and counts them as there. */
static bool extend(struct ki_bytes *bytes, int64_t count, int64_t item) {
    int64_t more;
    if (!ki_mul(count, item, &more) || !ki_bytes_room(bytes, more)) return false;
    bytes->size += more;
    return true;
}

/* With --strict, the lines of the first `count` parts' entries. */
static kiln_status note_places(struct reader *reader, const struct ki_block *block, int count) {
    kiln_status status = KILN_OK;
    for (int i = 0; i < count; i++) {
        const char *const *starts = (const void *)reader->parts[i].starts.data;
        const int64_t entries = reader->parts[i].starts.size / (int64_t)sizeof *starts;
        for (int64_t e = 0; e < entries && status == KILN_OK; e++)
            status = ki_entries_note(&reader->entries, block, starts[e]);
    }
    return status;
}

/* Appends the entries of the first `count` parts. */
static kiln_status append_parts(struct reader *reader, const struct ki_input *input,
                                const struct ki_block *block, int count) {
    struct ki_entries *all = &reader->entries;
    const struct ki_market *header = &reader->header;
    int64_t before = all->count;
    for (int i = 0; i < count; i++) {
        struct part *part = &reader->parts[i];
        part->before = all->count;
        all->count += part->entries.count;
        if (all->count > header->count) {
            ki_fault(&part->fault, KILN_ERR_PARSE,
                     find_surplus(part, header->count - part->before, header->array), NULL,
                     "more than the %lld %s of the %s", (long long)header->count,
                     header->array ? "values" : "entries", ki_market_head(header));
            return ki_report_fault(input, block, &part->fault);
        }
    }
    const int64_t more = all->count - before, indices = header->array ? 0 : more;
    if (!extend(&all->row, indices, sizeof(uint32_t)) || !extend(&all->col, indices, sizeof(int32_t)) ||
        !extend(&all->value, more, sizeof(double)))
        return ki_fail_nomem((size_t)more * 16, "the entries of the file");
    ki_parallel(reader->options->threads, count, store_part, reader);
    return note_places(reader, block, count);
}

/* Returns whether all entries off the diagonal are in the triangle that the file began with: both would count
 * everything twice. */
static bool keep_triangle(struct reader *reader, struct part *part) {
    const char *const below = part->first[BELOW], *const above = part->first[ABOVE];
    if (reader->triangle == TRIANGLES && (below || above))
        reader->triangle = !above || (below && below < above) ? BELOW : ABOVE;
    const char *other = reader->triangle == BELOW ? above : below;
    return reader->triangle == TRIANGLES || !other ||
           ki_fault(&part->fault, KILN_ERR_PARSE, other,
                    "give one triangle; or say general in the first line, and give both",
                    "an entry %s the diagonal, but those before it are %s it",
                    reader->triangle == BELOW ? "above" : "below",
                    reader->triangle == BELOW ? "below" : "above");
}

static kiln_status parse_block(struct reader *reader, const struct ki_input *input,
                               const struct ki_block *block) {
    struct part *parts = reader->parts;
    struct ki_block body = *block;
    if (!reader->header.sized) {
        struct ki_fault fault = {.status = KILN_OK};
        if (!reader->parse(&reader->header, &fault, &body.text, block->text + block->size, block->line))
            return ki_report_fault(input, block, &fault);
        body.size -= (size_t)(body.text - block->text);
    }
    int count = ki_cut_block(reader->cuts, &body, reader->part_count);
    ki_parallel(reader->options->threads, count, parse_part, reader);
    for (int i = 0; i < count; i++)
        if (parts[i].fault.status != KILN_OK || !keep_triangle(reader, &parts[i]))
            return ki_report_fault(input, block, &parts[i].fault);
    return append_parts(reader, input, block, count);
}

static void put_real(void *values, int64_t at, double value, kiln_type type) {
    if (type == KILN_F32)
        ((float *)values)[at] = (float)value;
    else
        ((double *)values)[at] = value;
}

/* Returns what stands at (r, c) of an array of which the file gives all, or the lower triangle, column by
 * column. */
static double array_value(const struct ki_market *header, const double *value, int64_t r, int64_t c) {
    const int64_t rows = header->rows, i = ki_max(r, c), j = ki_min(r, c);
    if (header->symmetry == KI_GENERAL) return value[c * rows + r];
    if (header->symmetry == KI_SYMMETRIC) return value[i + j * rows - (j + 1) * j / 2];
    if (r == c) return 0;
    return (r > c ? 1 : -1) * value[i + j * rows - (j + 2) * (j + 1) / 2];
}

struct transpose {
    const struct reader *reader;
    void *values;
};

/* The share-th part of the rows, a band at a time, so that the lines written stay in the cache. */
static void transpose_share(void *user, int share) {
    const struct transpose *job = user;
    const struct ki_market *header = &job->reader->header;
    const double *value = (const double *)(const void *)job->reader->entries.value.data;
    const int64_t cols = header->cols, band = 64;
    const int64_t stop = ki_part_begin(header->rows, share + 1, job->reader->options->threads);
    for (int64_t from = ki_part_begin(header->rows, share, job->reader->options->threads); from < stop;
         from += band)
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = from; r < ki_min(from + band, stop); r++)
                put_real(job->values, r * cols + c, array_value(header, value, r, c),
                         job->reader->options->type);
}

static kiln_status finish_array(struct ki_table *table, const struct reader *reader) {
    int64_t bytes;
    table->format = KILN_DENSE;
    if (!ki_mul(table->rows, table->cols, &table->nnz) || !ki_mul(table->nnz, sizeof(double), &bytes))
        return ki_fail(KILN_ERR_LIMIT, "too many values");
    if (reader->options->type == KILN_F32) bytes /= 2;
    table->values = ki_alloc((size_t)bytes);
    if (!table->values) return ki_fail_nomem((size_t)bytes, "the values of the file");
    struct transpose job = {reader, table->values};
    ki_parallel(reader->options->threads, reader->options->threads, transpose_share, &job);
    return KILN_OK;
}

kiln_status ki_market_check_rows(const struct ki_market *header, int64_t bytes,
                                 const struct ki_place *place) {
    if (header->rows <= ROWS_FREE || (header->rows - ROWS_FREE) / ROWS_PER_BYTE <= bytes) return KILN_OK;
    ki_fail_at(KILN_ERR_LIMIT, place, "%lld rows in a file of %lld bytes", (long long)header->rows,
               (long long)bytes);
    return ki_hint("more than a million rows need a file of at least one byte for every %d", ROWS_PER_BYTE);
}

static kiln_status finish(struct ki_table *table, struct reader *reader, const struct ki_input *input,
                          const struct ki_block *last) {
    const struct ki_market *header = &reader->header;
    const struct ki_place place = {.file = ki_input_name(input), .line = last->line, .offset = last->offset};
    kiln_status status;
    if (!header->sized)
        return ki_fail_at(KILN_ERR_PARSE, &place, "the file ends before its %s",
                          header->counts ? "numbers of documents, words and entries" : "size line");
    if (reader->entries.count < header->count)
        return ki_fail_at(KILN_ERR_PARSE, &place, "the file ends after %lld %s, its %s says %lld",
                          (long long)reader->entries.count, header->array ? "values" : "entries",
                          ki_market_head(header), (long long)header->count);
    table->rows = header->rows;
    table->cols = header->cols;
    TRY(ki_market_check_rows(header, last->offset, &place));
    if (header->array) return finish_array(table, reader);
    reader->entries.file = ki_input_name(input);
    return ki_entries_to_csr(table, &reader->entries, header->symmetry, reader->options);
done:
    return status;
}

static void free_reader(struct reader *reader) {
    for (int i = 0; reader->parts && i < reader->part_count; i++) {
        ki_entries_free(&reader->parts[i].entries);
        ki_bytes_free(&reader->parts[i].starts);
    }
    ki_entries_free(&reader->entries);
    ki_free(reader->parts);
    ki_free(reader->cuts);
}

static kiln_status begin_reader(struct reader *reader, const kiln_read_options *options) {
    reader->options = options;
    reader->triangle = TRIANGLES;
    reader->part_count = options->threads * PARTS_PER_THREAD;
    reader->parts = ki_calloc((size_t)reader->part_count * sizeof *reader->parts);
    reader->cuts = ki_calloc((size_t)(reader->part_count + 1) * sizeof *reader->cuts);
    if (reader->parts && reader->cuts) return KILN_OK;
    return ki_fail_nomem((size_t)reader->part_count * sizeof *reader->parts, "the parts of a block");
}

/* *last: where the input ends. */
static kiln_status take_blocks(struct reader *reader, struct ki_input *input, struct ki_block *last) {
    kiln_status status;
    ki_entries_file(&reader->entries, ki_input_name(input));
    for (;;) {
        TRY(ki_input_block(input, last));
        if (last->size == 0) break;
        TRY(parse_block(reader, input, last));
    }
done:
    return status;
}

kiln_status ki_read_entries(struct ki_table *table, struct ki_input *input, ki_head_parser *parse,
                            bool counts, const kiln_read_options *options) {
    struct reader reader = {.parse = parse, .header = {.integer = counts, .counts = counts}};
    struct ki_block last;
    kiln_status status;
    TRY(begin_reader(&reader, options));
    TRY(take_blocks(&reader, input, &last));
    TRY(finish(table, &reader, input, &last));
done:
    free_reader(&reader);
    return status;
}

kiln_status ki_read_more_entries(struct ki_entries *entries, struct ki_input *input,
                                 const struct ki_market *header, const kiln_read_options *options) {
    struct reader reader = {.header = *header};
    struct ki_block last;
    kiln_status status;
    TRY(begin_reader(&reader, options));
    TRY(take_blocks(&reader, input, &last));
    *entries = reader.entries;
    reader.entries = (struct ki_entries){.count = 0};
done:
    free_reader(&reader);
    return status;
}

kiln_status ki_read_matrix_market(struct ki_table *table, struct ki_input *input,
                                  const kiln_read_options *options) {
    return ki_read_entries(table, input, ki_market_header, false, options);
}
