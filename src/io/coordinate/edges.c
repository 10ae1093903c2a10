/* from to [weight], separated by blanks or tabs; lines that begin with # or % are comments. Or a table
 * with a separator, perhaps quotes and perhaps a header, which is split as ratings are (ratings_line.c).
 *
 * Vertices are numbered as they come, whatever they are called (links.c). */
#include <string.h>

#include "core/threads.h"
#include "io/coordinate/coordinate.h"
#include "io/coordinate/links.h"
#include "io/coordinate/ratings.h"
#include "io/number.h"
#include "io/text.h"

/* A link of the line at hand. */
struct link {
    int32_t ends[2];
    const char *at; /* its second vertex */
    double weight;
};

enum { PARTS_PER_THREAD = 4, FROM = KI_RATING_USER, TO = KI_RATING_ITEM, WEIGHT = KI_RATING_VALUE };

static const struct ki_ratings_words words_of_links = {
    {{"source", "src", "from", "citing", "tail$"},
     {"target", "dst", "dest", "to$", "to_", "tonode", "cited", "head$"},
     {"weight", "value", "count"}},
    "a line is: from, to and perhaps a weight"};

struct part {
    const char *end;
    struct ki_links *links;
    const char *first; /* the first edge's line */
    int words;         /* on each line: 2 or 3; 0 = no line yet */
    struct ki_fault fault;
};

struct reader {
    const kiln_read_options *options;
    struct part *parts;
    struct ki_links *links; /* of each part */
    const char **cuts;
    int part_count, words;
    bool table; /* the file is one, of this layout */
    struct ki_ratings_layout layout;
    bool unnamed_weight;  /* a header names the ends of a link, but no weight */
    bool weight_by_place; /* a header names neither */
    struct ki_names names;
    struct ki_entries entries;
};

/* ------------------------------------------------------------------------------------------- lines */

static bool take_name(struct part *part, struct link *link, int which, const char **text) {
    const char *p = *text, *end = part->end;
    while (p < end && *p != ' ' && *p != '\t' && *p != '\n' && !ki_at_line_end(p, end)) p++;
    if (p == *text) return ki_expected(&part->fault, p, end, which ? "a second vertex" : "a vertex");
    if (p - *text > INT32_MAX)
        return ki_fault(&part->fault, KILN_ERR_LIMIT, *text, NULL, "a vertex name of 2 GiB or more");
    link->at = *text;
    *text = p;
    return ki_links_end(&link->ends[which], part->links, link->at, p - link->at, false) ||
           ki_fault_nomem(&part->fault);
}

static bool check_weight(struct part *part, const kiln_read_options *options, const struct link *link,
                         const char *text) {
    return options->allow_nonfinite || ki_is_finite(link->weight, options->type) ||
           ki_fault(&part->fault, KILN_ERR_PARSE, text,
                    "repair or remove the line; --allow-nonfinite accepts such values", "weight '%s'%s",
                    ki_word(text, part->end).text,
                    __builtin_isfinite(link->weight) ? " is too large for f32" : "");
}

static bool take_weight(struct part *part, const kiln_read_options *options, struct link *link,
                        const char **text) {
    const char *p = *text, *end = part->end;
    if (!ki_parse_real(&p, end, options->type == KILN_F32, &link->weight) ||
        !(ki_at_line_end(p, end) || *p == ' ' || *p == '\t'))
        return ki_expected(&part->fault, *text, end, "a weight");
    if (!check_weight(part, options, link, *text)) return false;
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

static bool parse_edge(struct part *part, const struct reader *reader, const char **text) {
    const kiln_read_options *options = reader->options;
    struct link link;
    const char *line = *text, *p = line, *end = part->end;
    int words = 2;
    if (!take_name(part, &link, 0, &p)) return false;
    p = ki_skip_blanks(p, end);
    if (!take_name(part, &link, 1, &p)) return false;
    p = ki_skip_blanks(p, end);
    if (!ki_at_line_end(p, end)) {
        if (!take_weight(part, options, &link, &p)) return false;
        p = ki_skip_blanks(p, end);
        words = 3;
    }
    if (!ki_at_line_end(p, end))
        return ki_fault(&part->fault, KILN_ERR_PARSE, p, "a line is: from to, or: from to weight",
                        "more than three words: '%s'", ki_word(p, end).text);
    if (!check_words(part, words, line)) return false;
    ki_links_add(part->links, link.ends, words == 3 ? &link.weight : NULL, link.at);
    *text = p;
    return true;
}

/* ------------------------------------------------------------------------------------------- tables */

static bool take_field(struct part *part, struct link *link, int which,
                       const struct ki_ratings_field *field) {
    if (field->size == 0)
        return ki_expected(&part->fault, field->text, part->end, which ? "a second vertex" : "a vertex");
    if (field->size > INT32_MAX)
        return ki_fault(&part->fault, KILN_ERR_LIMIT, field->text, NULL, "a vertex name of 2 GiB or more");
    link->at = field->text;
    return ki_links_end(&link->ends[which], part->links, field->text, field->size, field->doubled) ||
           ki_fault_nomem(&part->fault);
}

static bool parse_record(struct part *part, const struct reader *reader, const char **text) {
    struct ki_ratings_field fields[KI_RATING_FIELDS];
    const struct ki_ratings_layout *layout = &reader->layout;
    const int weight = layout->role[WEIGHT];
    struct link link;
    const char *line = *text;
    const int count = ki_ratings_split(&part->fault, fields, text, part->end, layout->separator);
    if (count < 0) return false;
    if (count != layout->count)
        return ki_fault(&part->fault, KILN_ERR_PARSE, line, words_of_links.line,
                        "%d fields, the first line has %d", count, layout->count);
    if (!take_field(part, &link, 0, &fields[layout->role[FROM]]) ||
        !take_field(part, &link, 1, &fields[layout->role[TO]]))
        return false;
    if (weight >= 0) {
        const char *p = fields[weight].text, *last = p + fields[weight].size;
        if (!ki_parse_real(&p, last, reader->options->type == KILN_F32, &link.weight) || p != last)
            return ki_expected(&part->fault, fields[weight].text, part->end, "a weight");
        if (!check_weight(part, reader->options, &link, fields[weight].text)) return false;
    }
    if (!check_words(part, weight >= 0 ? 3 : 2, line)) return false;
    ki_links_add(part->links, link.ends, weight >= 0 ? &link.weight : NULL, link.at);
    return true;
}

/* Both vertices of a line are numbers; -1: it is no such line. */
static int numbered(const struct ki_ratings_layout *layout, const char **text, const char *end) {
    struct ki_ratings_field fields[KI_RATING_FIELDS];
    struct ki_fault ignored = {.status = KILN_OK};
    while (*text < end && (**text == '\n' || **text == '\r')) ++*text;
    if (*text == end || ki_ratings_split(&ignored, fields, text, end, layout->separator) != layout->count)
        return -1;
    return ki_ratings_number(&fields[layout->role[FROM]]) && ki_ratings_number(&fields[layout->role[TO]]);
}

bool ki_links_named(const char *text, const char *end) {
    static const struct ki_ratings_words exactly = {
        {{"source$", "src$", "from$"}, {"target$", "dst$", "to$"}, {"weight$"}}, NULL};
    struct ki_ratings_layout layout = {.count = 0};
    struct ki_fault ignored = {.status = KILN_OK};
    return ki_ratings_layout(&layout, &ignored, &text, end, &exactly, NULL) && layout.count > 0 &&
           layout.named && layout.count == (layout.role[WEIGHT] >= 0 ? 3 : 2);
}

static bool ends_with(const char *name, const char *ending) {
    const size_t size = strlen(name), length = strlen(ending);
    return size >= length && strcmp(name + size - length, ending) == 0;
}

/* By the file's name, or by a first line with a quote, but in .edges a comma or semicolon, or tabs that
 * leave no from to [weight]. */
static bool looks_like_table(const char *name, const char *p, const char *end) {
    static const char *const endings[] = {".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst"};
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    int words = 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(name, endings[i])) return true;
    if (newline) end = newline;
    const size_t size = (size_t)(end - p);
    if (memchr(p, '"', size)) return true;
    if (!ends_with(name, ".edges") && !ends_with(name, ".edges.gz") && !ends_with(name, ".edges.zst") &&
        (memchr(p, ',', size) || memchr(p, ';', size)))
        return true;
    if (!memchr(p, '\t', size)) return false;
    for (p = ki_skip_blanks(p, end); !ki_at_line_end(p, end); p = ki_skip_blanks(p, end), words++) {
        const char *word = p;
        double weight;
        while (p < end && *p != ' ' && *p != '\t' && !ki_at_line_end(p, end)) p++;
        if (words == 2 && !(ki_parse_double(&word, p, &weight) && word == p)) return true;
    }
    return words != 2 && words != 3;
}

/* Returns what a file is, from its first block; *begin is moved behind a header. false: fault. */
static bool find_layout(struct reader *reader, struct ki_fault *fault, const char *name, const char **begin,
                        const char *end) {
    struct ki_ratings_layout *layout = &reader->layout;
    const char *first = *begin;
    layout->count = 0;
    const bool split = ki_ratings_layout(layout, fault, &first, end, &words_of_links, reader->options);
    const char *line = *begin;
    while (line < end && (*line == '#' || *line == '%' || *line == '\n' || *line == '\r')) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        line = newline ? newline + 1 : end;
    }
    reader->table = line < end && ((split && layout->named) || ki_ratings_told(reader->options) ||
                                   looks_like_table(name, line, end));
    if (!reader->table) {
        fault->status = KILN_OK;
        return true;
    }
    if (!split) return false;
    if (!layout->named && layout->count > 3)
        return ki_fault(fault, KILN_ERR_PARSE, line,
                        "--source and --target say it, or a header with these names; --format csv reads rows",
                        "which of the %d columns are the ends of a link?", layout->count);
    const char *next = line;
    if (first == line && numbered(layout, &next, end) == 0 && numbered(layout, &next, end) == 1)
        numbered(layout, &first, end); /* words above numbers are a header */
    reader->unnamed_weight = reader->unnamed_weight || layout->unnamed_value;
    reader->weight_by_place =
        reader->weight_by_place ||
        (!layout->named && first != line && layout->role[WEIGHT] >= 0 && !reader->options->weight);
    *begin = first;
    return true;
}

static void parse_lines(struct part *part, const struct reader *reader, const char *p) {
    struct ki_links_form form = {.separator = '\0'};
    if (reader->table) form = ki_ratings_form(&reader->layout, reader->options);
    while (p < part->end) {
        if (part->words > 0 && !reader->table)
            form =
                (struct ki_links_form){' ', part->words, part->words == 3, reader->options->type == KILN_F32};
        if (part->words > 0) ki_links_quick(part->links, &p, part->end, &form);
        const char *word = ki_skip_blanks(p, part->end);
        if (!ki_at_line_end(word, part->end) && *word != '#' && *word != '%') {
            if (!reader->table) p = word;
            if (!(reader->table ? parse_record(part, reader, &p) : parse_edge(part, reader, &p))) return;
        }
        const char *newline = memchr(p, '\n', (size_t)(part->end - p));
        p = newline ? newline + 1 : part->end;
    }
}

static void parse_part(void *user, int i) {
    const struct reader *reader = user;
    const struct ki_names *const names[] = {&reader->names, &reader->names};
    struct part *part = &reader->parts[i];
    part->end = reader->cuts[i + 1];
    part->links = &reader->links[i];
    part->words = 0;
    part->fault.status = KILN_OK;
    if (!ki_links_begin(part->links, part->end - reader->cuts[i], reader->options->strict)) {
        ki_fault_nomem(&part->fault);
        return;
    }
    parse_lines(part, reader, reader->cuts[i]);
    if (part->fault.status == KILN_OK && !ki_links_find(part->links, names)) ki_fault_nomem(&part->fault);
}

/* ------------------------------------------------------------------------------------------- whole */

static kiln_status parse_block(void *of, const struct ki_input *input, const struct ki_block *block) {
    struct reader *reader = of;
    struct ki_fault fault = {.status = KILN_OK};
    const char *begin = block->text;
    if (block->line == 1 &&
        !find_layout(reader, &fault, ki_input_name(input), &begin, block->text + block->size))
        return ki_report_fault(input, block, &fault);
    struct ki_block rest = *block;
    rest.text = begin;
    rest.size -= (size_t)(begin - block->text);
    int count = ki_cut_block(reader->cuts, &rest, reader->part_count);
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
    }
    struct ki_names *const names[] = {&reader->names, &reader->names};
    const kiln_status status = ki_links_number(reader->links, count, names, input, block);
    if (status != KILN_OK) return status;
    return ki_links_store(&reader->entries, reader->links, count, reader->options, block);
}

/* Returns how many lines repeat a link: of links that lead both ways two entries are one. */
static int64_t count_merged(const struct ki_table *table, const struct reader *reader) {
    int64_t distinct = table->row_start[table->rows];
    if (!reader->options->undirected) return reader->entries.count - distinct;
    for (int64_t i = 0; i < table->rows; i++)
        for (int64_t e = table->row_start[i]; e < table->row_start[i + 1]; e++)
            distinct += table->col[e] == i;
    return reader->entries.count - distinct / 2;
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
    kiln_status status = ki_entries_to_csr(
        table, &reader->entries, reader->options->undirected ? KI_SYMMETRIC : KI_GENERAL, reader->options);
    const struct ki_place place = {.file = ki_input_name(input), .offset = -1};
    const int64_t merged = status == KILN_OK ? count_merged(table, reader) : 0;
    if (merged > 0)
        status = ki_warn(&table->warnings, &place, "--strict makes that an error",
                         "lines that repeat a link: %lld; it stands once, with the sum of its weights",
                         (long long)merged);
    if (status == KILN_OK && reader->unnamed_weight)
        status = ki_warn(&table->warnings, &place,
                         "call the column of weights \"weight\" in the header, or name it with --weight",
                         "no column is called weight, value or count, so that each line counts 1");
    if (status == KILN_OK && reader->weight_by_place)
        status = ki_warn(
            &table->warnings, &place,
            "call the columns source, target and weight in the header, or remove the third",
            "the header names no source and target: columns 1 and 2 are taken as these, 3 as the weight");
    return status == KILN_OK ? ki_names_take(&table->feature_names, &table->name_text, &reader->names)
                             : status;
}

static void free_reader(struct reader *reader) {
    for (int i = 0; reader->links && i < reader->part_count; i++) ki_links_free(&reader->links[i]);
    ki_free(reader->links);
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
    reader.links = ki_calloc((size_t)reader.part_count * sizeof *reader.links);
    if (!reader.parts || !reader.cuts || !reader.links)
        TRY(ki_fail_nomem((size_t)reader.part_count * sizeof *reader.parts, "the parts of a block"));
    TRY(ki_entries_read(&reader.entries, table, input, KILN_FILE_EDGES, options, parse_block, &reader));
    TRY(finish(table, &reader, input));
done:
    free_reader(&reader);
    return status;
}
