/* from to [weight], separated by blanks or tabs; lines that begin with # or % are comments.
 *
 * Vertices are numbered as they come, whatever they are called. Threads split lines into words and parse
 * weights; the names are then looked up in the file's order, so that numbers do not depend on the threads.
 * Names live in the table that also keeps the levels of CSV columns; in front of it stands an array that maps
 * a name which is a small number straight to its vertex. That array is never longer than the input in bytes,
 * so an identifier like 2000000000 in a short file costs nothing. */
#include <string.h>

#include "core/threads.h"
#include "io/coordinate/coordinate.h"
#include "io/csv/csv.h"
#include "io/number.h"
#include "io/text.h"

enum { PARTS_PER_THREAD = 4, DIGITS_MOST = 9 };

struct edge {
    const char *name[2];
    int32_t size[2], number[2]; /* number: what the name says in plain decimal, or -1 */
    double weight;
};

struct part {
    const char *end;
    struct ki_bytes edges;
    const char *first; /* the first edge's line */
    int words;         /* on each line: 2 or 3; 0 = no line yet */
    struct ki_fault fault;
};

struct reader {
    const kiln_read_options *options;
    struct part *parts;
    const char **cuts;
    int part_count, words;
    struct ki_csv_levels names;
    struct ki_bytes direct; /* int32_t: 1 + vertex of the name "i", 0 = look in `names` */
    struct ki_entries entries;
};

/* ------------------------------------------------------------------------------------------- lines */

/* A name as a number if it is written as numbers are: no sign, no leading zero, at most nine digits. */
static int32_t plain_number(const char *text, int64_t size) {
    int32_t number = 0;
    if (size > DIGITS_MOST || (size > 1 && *text == '0')) return -1;
    for (int64_t i = 0; i < size; i++) {
        if (!ki_is_digit(text[i])) return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

static bool take_name(struct part *part, struct edge *edge, int which, const char **text) {
    const char *p = *text, *end = part->end;
    while (p < end && *p != ' ' && *p != '\t' && *p != '\n' && !ki_at_line_end(p, end)) p++;
    if (p == *text) return ki_expected(&part->fault, p, end, which ? "a second vertex" : "a vertex");
    if (p - *text > INT32_MAX)
        return ki_fault(&part->fault, KILN_ERR_LIMIT, *text, NULL, "a vertex name of 2 GiB or more");
    edge->name[which] = *text;
    edge->size[which] = (int32_t)(p - *text);
    edge->number[which] = plain_number(*text, p - *text);
    *text = p;
    return true;
}

static bool take_weight(struct part *part, const kiln_read_options *options, struct edge *edge,
                        const char **text) {
    const char *p = *text, *end = part->end;
    if (!ki_parse_real(&p, end, options->type == KILN_F32, &edge->weight) ||
        !(ki_at_line_end(p, end) || *p == ' ' || *p == '\t'))
        return ki_expected(&part->fault, *text, end, "a weight");
    if (!options->allow_nonfinite && !ki_is_finite(edge->weight, options->type))
        return ki_fault(&part->fault, KILN_ERR_PARSE, *text,
                        "repair or remove the line; --allow-nonfinite accepts such values", "weight '%s'%s",
                        ki_word(*text, end).text,
                        __builtin_isfinite(edge->weight) ? " is too large for f32" : "");
    *text = p;
    return true;
}

static bool check_words(struct part *part, int words, const char *line) {
    if (part->words == 0) {
        part->words = words;
        part->first = line;
    }
    if (part->words == words) return true;
    return ki_fault(&part->fault, KILN_ERR_PARSE, line, "write a weight on every line or on none",
                    "%d words, the lines before have %d", words, part->words);
}

static bool parse_edge(struct part *part, const kiln_read_options *options, const char **text) {
    struct edge edge = {.weight = 1};
    const char *line = *text, *p = line, *end = part->end;
    int words = 2;
    if (!take_name(part, &edge, 0, &p)) return false;
    p = ki_skip_blanks(p, end);
    if (!take_name(part, &edge, 1, &p)) return false;
    p = ki_skip_blanks(p, end);
    if (!ki_at_line_end(p, end)) {
        if (!take_weight(part, options, &edge, &p)) return false;
        p = ki_skip_blanks(p, end);
        words = 3;
    }
    if (!ki_at_line_end(p, end))
        return ki_fault(&part->fault, KILN_ERR_PARSE, p, "a line is: from to, or: from to weight",
                        "more than three words: '%s'", ki_word(p, end).text);
    if (!check_words(part, words, line)) return false;
    if (!ki_bytes_append(&part->edges, &edge, sizeof edge)) return ki_fault_nomem(&part->fault);
    *text = p;
    return true;
}

static void parse_part(void *user, int i) {
    const struct reader *reader = user;
    struct part *part = &reader->parts[i];
    const char *p = reader->cuts[i];
    part->end = reader->cuts[i + 1];
    part->edges.size = 0;
    part->words = 0;
    part->fault.status = KILN_OK;
    while (p < part->end) {
        p = ki_skip_blanks(p, part->end);
        if (!ki_at_line_end(p, part->end) && *p != '#' && *p != '%' && !parse_edge(part, reader->options, &p))
            return;
        const char *newline = memchr(p, '\n', (size_t)(part->end - p));
        p = newline ? newline + 1 : part->end;
    }
}

/* ---------------------------------------------------------------------------------------- vertices */

/* Makes the array of numbers reach `number` if it may be as long as that; `allowed` bytes of input were read. */
static bool reach(struct reader *reader, int64_t number, int64_t allowed) {
    const int64_t item = sizeof(int32_t), length = reader->direct.size / item;
    if (number < length) return true;
    int64_t wanted = ki_max(number + 1, 2 * length);
    wanted = ki_min(ki_max(wanted, 1024), ki_max(allowed / item, 1024));
    if (number >= wanted || !ki_bytes_room(&reader->direct, (wanted - length) * item)) return false;
    memset(reader->direct.data + reader->direct.size, 0, (size_t)((wanted - length) * item));
    reader->direct.size = wanted * item;
    return true;
}

static kiln_status add_vertex(struct reader *reader, const struct ki_input *input,
                              const struct ki_block *block, const char *name, int32_t size, int32_t *vertex) {
    struct ki_fault fault = {.status = KILN_OK};
    if (!ki_csv_utf8(name, size)) {
        ki_fault(&fault, KILN_ERR_PARSE, name, "convert the file, for instance with iconv -f latin1 -t utf-8",
                 "a vertex name is not UTF-8 text");
        return ki_report_fault(input, block, &fault);
    }
    *vertex = ki_csv_levels_add(&reader->names, 0, name, size);
    return *vertex >= 0 ? KILN_OK
                        : ki_fail_nomem((size_t)size, "the vertices' names, or there are 2^31 of them");
}

static kiln_status find_vertex(struct reader *reader, const struct ki_input *input,
                               const struct ki_block *block, const struct edge *edge, int which,
                               int32_t *vertex) {
    const int32_t number = edge->number[which];
    int32_t *direct = NULL;
    if (number >= 0 && reach(reader, number, block->offset + (int64_t)block->size))
        direct = (int32_t *)(void *)reader->direct.data + number;
    *vertex = direct ? *direct - 1 : -1;
    if (*vertex >= 0) return KILN_OK;
    *vertex = ki_csv_levels_find(&reader->names, 0, edge->name[which], edge->size[which]);
    kiln_status status = KILN_OK;
    if (*vertex < 0) status = add_vertex(reader, input, block, edge->name[which], edge->size[which], vertex);
    if (direct) *direct = *vertex + 1;
    return status;
}

static kiln_status append_part(struct reader *reader, const struct ki_input *input,
                               const struct ki_block *block, const struct part *part) {
    const struct edge *edges = (const void *)part->edges.data;
    const int64_t count = part->edges.size / (int64_t)sizeof *edges;
    struct ki_entries *entries = &reader->entries;
    if (!ki_bytes_room(&entries->row, count * 4) || !ki_bytes_room(&entries->col, count * 4) ||
        !ki_bytes_room(&entries->value, count * 8))
        return ki_fail_nomem((size_t)count * 16, "the edges of the file");
    for (int64_t i = 0; i < count; i++) {
        int32_t from, to;
        kiln_status status = find_vertex(reader, input, block, &edges[i], 0, &from);
        if (status == KILN_OK) status = find_vertex(reader, input, block, &edges[i], 1, &to);
        if (status != KILN_OK) return status;
        const uint32_t row = (uint32_t)from;
        ki_bytes_append(&entries->row, &row, sizeof row); /* room has been made */
        ki_bytes_append(&entries->col, &to, sizeof to);
        ki_bytes_append(&entries->value, &edges[i].weight, sizeof edges[i].weight);
    }
    entries->count += count;
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------------- whole */

static kiln_status parse_block(struct reader *reader, const struct ki_input *input,
                               const struct ki_block *block) {
    int count = ki_cut_block(reader->cuts, block, reader->part_count);
    ki_parallel(reader->options->threads, count, parse_part, reader);
    for (int i = 0; i < count; i++) {
        struct part *part = &reader->parts[i];
        if (part->fault.status != KILN_OK) return ki_report_fault(input, block, &part->fault);
        if (part->words == 0) continue;
        if (reader->words == 0) reader->words = part->words;
        if (part->words != reader->words) {
            ki_fault(&part->fault, KILN_ERR_PARSE, part->first, "write a weight on every line or on none",
                     "%d words, the lines before have %d", part->words, reader->words);
            return ki_report_fault(input, block, &part->fault);
        }
        kiln_status status = append_part(reader, input, block, part);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

/* The names become pointers into the text that the table of names has collected. */
static kiln_status name_vertices(struct ki_table *table, struct reader *reader) {
    size_t bytes = (size_t)table->cols * sizeof *table->feature_names;
    table->feature_names = ki_alloc(bytes);
    if (!table->feature_names) return ki_fail_nomem(bytes, "the vertices' names");
    table->name_text = ki_bytes_take(&reader->names.text);
    for (int64_t i = 0; i < table->cols; i++)
        table->feature_names[i] = table->name_text + ki_csv_level(&reader->names, i)->text;
    return KILN_OK;
}

/* A file of a few edges may not ask for many rows, so no further check of sizes is needed: each vertex was a
 * word of the file. */
static kiln_status finish(struct ki_table *table, struct reader *reader, const struct ki_input *input) {
    if (reader->entries.count == 0) {
        const struct ki_place place = {.file = ki_input_name(input), .offset = -1};
        return ki_fail_at(KILN_ERR_DATA, &place, "no edges: the file is empty or holds only comments");
    }
    table->rows = table->cols = reader->names.count;
    reader->entries.file = ki_input_name(input);
    reader->entries.names = &reader->names;
    kiln_status status = ki_entries_to_csr(table, &reader->entries, KI_GENERAL, reader->options);
    return status == KILN_OK ? name_vertices(table, reader) : status;
}

static void free_reader(struct reader *reader) {
    for (int i = 0; reader->parts && i < reader->part_count; i++) ki_bytes_free(&reader->parts[i].edges);
    ki_free(reader->parts);
    ki_free(reader->cuts);
    ki_csv_levels_free(&reader->names);
    ki_bytes_free(&reader->direct);
    ki_entries_free(&reader->entries);
}

kiln_status ki_read_edges(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct reader reader = {.options = options, .part_count = options->threads * PARTS_PER_THREAD};
    struct ki_block block;
    ki_csv_levels_init(&reader.names);
    reader.parts = ki_calloc((size_t)reader.part_count * sizeof *reader.parts);
    reader.cuts = ki_calloc((size_t)(reader.part_count + 1) * sizeof *reader.cuts);
    if (!reader.parts || !reader.cuts)
        TRY(ki_fail_nomem((size_t)reader.part_count * sizeof *reader.parts, "the parts of a block"));
    for (;;) {
        TRY(ki_input_block(input, &block));
        if (block.size == 0) break;
        TRY(parse_block(&reader, input, &block));
    }
    TRY(finish(table, &reader, input));
done:
    free_reader(&reader);
    return status;
}
