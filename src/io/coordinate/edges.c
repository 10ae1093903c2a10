/* from to [weight], separated by blanks or tabs; lines that begin with # or % are comments.
 *
 * Vertices are numbered as they come, whatever they are called. Threads split lines into words and parse
 * weights; the names are then looked up in the file's order, so that numbers do not depend on the threads. */
#include <string.h>

#include "core/threads.h"
#include "io/coordinate/coordinate.h"
#include "io/coordinate/names.h"
#include "io/number.h"
#include "io/text.h"

enum { PARTS_PER_THREAD = 4 };

struct edge {
    struct ki_name name[2];
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
    struct ki_names names;
    struct ki_entries entries;
};

/* ------------------------------------------------------------------------------------------- lines */

static bool take_name(struct part *part, struct edge *edge, int which, const char **text) {
    const char *p = *text, *end = part->end;
    while (p < end && *p != ' ' && *p != '\t' && *p != '\n' && !ki_at_line_end(p, end)) p++;
    if (p == *text) return ki_expected(&part->fault, p, end, which ? "a second vertex" : "a vertex");
    if (p - *text > INT32_MAX)
        return ki_fault(&part->fault, KILN_ERR_LIMIT, *text, NULL, "a vertex name of 2 GiB or more");
    edge->name[which] = ki_name_of(*text, p - *text);
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
        kiln_status status = ki_names_number(&from, &reader->names, &edges[i].name[0], input, block);
        if (status == KILN_OK) status = ki_names_number(&to, &reader->names, &edges[i].name[1], input, block);
        if (status == KILN_OK && reader->options->strict)
            status = ki_entries_note(entries, block, edges[i].name[0].text);
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

static kiln_status parse_block(void *of, const struct ki_input *input, const struct ki_block *block) {
    struct reader *reader = of;
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

/* A file of a few edges may not ask for many rows, so no further check of sizes is needed: each vertex was a
 * word of the file. */
static kiln_status finish(struct ki_table *table, struct reader *reader, const struct ki_input *input) {
    if (reader->entries.count == 0) {
        const struct ki_place place = {.file = ki_input_name(input), .offset = -1};
        return ki_fail_at(KILN_ERR_DATA, &place, "no edges: the file is empty or holds only comments");
    }
    table->rows = table->cols = reader->names.levels.count;
    reader->entries.file = ki_input_name(input);
    reader->entries.names[0] = reader->entries.names[1] = &reader->names.levels;
    reader->entries.words[0] = "the link from";
    reader->entries.words[1] = "to";
    kiln_status status = ki_entries_to_csr(table, &reader->entries, KI_GENERAL, reader->options);
    return status == KILN_OK ? ki_names_take(&table->feature_names, &table->name_text, &reader->names)
                             : status;
}

static void free_reader(struct reader *reader) {
    for (int i = 0; reader->parts && i < reader->part_count; i++) ki_bytes_free(&reader->parts[i].edges);
    ki_free(reader->parts);
    ki_free(reader->cuts);
    ki_names_free(&reader->names);
    ki_entries_free(&reader->entries);
}

kiln_status ki_read_edges(struct ki_table *table, struct ki_input *input, const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct reader reader = {.options = options, .part_count = options->threads * PARTS_PER_THREAD};
    ki_names_init(&reader.names, "a vertex");
    reader.parts = ki_calloc((size_t)reader.part_count * sizeof *reader.parts);
    reader.cuts = ki_calloc((size_t)(reader.part_count + 1) * sizeof *reader.cuts);
    if (!reader.parts || !reader.cuts)
        TRY(ki_fail_nomem((size_t)reader.part_count * sizeof *reader.parts, "the parts of a block"));
    TRY(ki_entries_read(&reader.entries, table, input, KILN_FILE_EDGES, options, parse_block, &reader));
    TRY(finish(table, &reader, input));
done:
    free_reader(&reader);
    return status;
}
