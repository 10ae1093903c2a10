/* user SEPARATOR item [SEPARATOR rating [SEPARATOR whatever]], the separator :: or a tab, comma, semicolon,
 * bar or blanks.
 *
 * The first line says how the others are split, and whether it is a header. Users and items are numbered as
 * they come, whatever they are called (links.c). */
#include <string.h>

#include "core/threads.h"
#include "io/coordinate/coordinate.h"
#include "io/coordinate/links.h"
#include "io/coordinate/ratings.h"
#include "io/json.h"
#include "io/number.h"

enum { PARTS_PER_THREAD = 4, USER = KI_RATING_USER, ITEM = KI_RATING_ITEM, RATING = KI_RATING_VALUE };

static const struct ki_ratings_words words = {{{"user", "customer", "uid"},
                                               {"item", "movie", "product", "book", "artist", "track", "iid"},
                                               {"rating", "score", "stars", "value", "count", "plays"}},
                                              "a line is: user, item and perhaps a rating"};

struct part {
    const char *end;
    struct ki_links *links;
    struct ki_fault fault;
};

/* A rating of the line at hand. */
struct rating {
    int32_t ends[2];
    const char *at; /* its item */
    double value;
};

struct reader {
    const kiln_read_options *options;
    struct ki_ratings_layout layout;
    int64_t longest; /* bytes of a name */
    struct part *parts;
    struct ki_links *links; /* of each part */
    const char **cuts;
    int part_count;
    struct ki_names names[2];
    int64_t known; /* items of the model, 0 without: others are left out */
    int64_t left_out;
    int rated; /* 1: the first file has a column of ratings, -1: it has none */
    struct ki_entries entries;
    struct ki_warnings *warnings;
};

/* ------------------------------------------------------------------------------------------- lines */

static bool take_name(struct part *part, const struct reader *reader, int which,
                      const struct ki_ratings_field *field, struct rating *rating) {
    static const char *const what[] = {"a user", "an item"};
    if (field->size == 0) return ki_expected(&part->fault, field->text, part->end, what[which]);
    if (field->size > reader->longest)
        return ki_fault(&part->fault, KILN_ERR_LIMIT, field->text, "is the file what it should be?",
                        "the name of %s has more than %lld bytes", what[which], (long long)reader->longest);
    rating->at = field->text;
    return ki_links_end(&rating->ends[which], part->links, field->text, field->size, field->doubled) ||
           ki_fault_nomem(&part->fault);
}

static bool take_value(struct part *part, const kiln_read_options *options,
                       const struct ki_ratings_field *field, struct rating *rating) {
    const char *p = field->text, *end = p + field->size;
    if (!ki_parse_real(&p, end, options->type == KILN_F32, &rating->value) || p != end)
        return ki_expected(&part->fault, field->text, part->end, "a rating");
    if (options->allow_nonfinite || ki_is_finite(rating->value, options->type)) return true;
    return ki_fault(&part->fault, KILN_ERR_PARSE, field->text,
                    "repair or remove the line; --allow-nonfinite accepts such values", "rating '%s'%s",
                    ki_word(field->text, end).text,
                    __builtin_isfinite(rating->value) ? " is too large for f32" : "");
}

static bool parse_rating(struct part *part, const struct reader *reader, const char **text) {
    struct ki_ratings_field fields[KI_RATING_FIELDS];
    const struct ki_ratings_layout *layout = &reader->layout;
    struct rating rating;
    const char *line = *text;
    const int count = ki_ratings_split(&part->fault, fields, text, part->end, layout->separator);
    if (count < 0) return false;
    if (count != layout->count)
        return ki_fault(&part->fault, KILN_ERR_PARSE, line, "a line is: user, item and perhaps a rating",
                        "%d fields, the first line has %d", count, layout->count);
    if (!take_name(part, reader, 0, &fields[layout->role[USER]], &rating) ||
        !take_name(part, reader, 1, &fields[layout->role[ITEM]], &rating))
        return false;
    const bool rated = layout->role[RATING] >= 0;
    if (rated && !take_value(part, reader->options, &fields[layout->role[RATING]], &rating)) return false;
    ki_links_add(part->links, rating.ends, rated ? &rating.value : NULL, rating.at);
    return true;
}

static void parse_lines(struct part *part, const struct reader *reader, const char *p) {
    struct ki_links_form form = {.separator = '\0'};
    if (reader->layout.count > 0 && reader->longest >= KI_LINKS_QUICK_NAME)
        form = ki_ratings_form(&reader->layout, reader->options);
    while (p < part->end) {
        ki_links_quick(part->links, &p, part->end, &form);
        const char *word = ki_skip_blanks(p, part->end);
        if (!ki_at_line_end(word, part->end)) {
            if (!parse_rating(part, reader, &p)) return;
            word = p;
        }
        const char *newline = memchr(word, '\n', (size_t)(part->end - word));
        p = newline ? newline + 1 : part->end;
    }
}

static void parse_part(void *user, int i) {
    const struct reader *reader = user;
    const struct ki_names *const names[] = {&reader->names[USER], &reader->names[ITEM]};
    struct part *part = &reader->parts[i];
    part->end = reader->cuts[i + 1];
    part->links = &reader->links[i];
    part->fault.status = KILN_OK;
    if (!ki_links_begin(part->links, part->end - reader->cuts[i],
                        reader->options->strict || reader->known > 0)) {
        ki_fault_nomem(&part->fault);
        return;
    }
    parse_lines(part, reader, reader->cuts[i]);
    if (part->fault.status == KILN_OK && !ki_links_find(part->links, names)) ki_fault_nomem(&part->fault);
}

/* ------------------------------------------------------------------------------------------- entries */

/* The items of the model that the ratings are for, as its first. */
static kiln_status take_items(struct reader *reader) {
    const char *text = kiln_model_text(reader->options->model, "columns");
    struct ki_json *names = NULL;
    struct ki_json_fault fault;
    kiln_status status = KILN_OK;
    if (text) status = ki_json_parse(&names, &fault, text, (int64_t)strlen(text));
    if (status == KILN_ERR_PARSE || (names && names->kind != KI_JSON_LIST))
        TRY(ki_fail(KILN_ERR_MODEL, "the model's 'columns' are no names"));
    TRY(status);
    for (const struct ki_json *name = names ? names->first : NULL; name; name = name->next) {
        if (!ki_json_text(name)) TRY(ki_fail(KILN_ERR_MODEL, "the model's 'columns' are no names"));
        if (ki_table_levels_add(&reader->names[1].levels, 0, name->text, (int64_t)strlen(name->text)) < 0)
            TRY(ki_fail_nomem(strlen(text), "the model's items"));
    }
    reader->known = reader->names[1].levels.count;
done:
    ki_free(names);
    return status;
}

static kiln_status fail_unseen(const struct reader *reader, const struct ki_input *input,
                               const struct ki_block *block, int32_t item, const char *at) {
    const struct ki_table_level *level = ki_table_level(&reader->names[ITEM].levels, item);
    struct ki_fault fault = {.status = KILN_OK};
    char text[64];
    ki_fault(&fault, KILN_ERR_DATA, at, "--extra-columns ignore leaves such ratings out",
             "the model does not know the item '%s'",
             ki_table_excerpt(text, reader->names[ITEM].levels.text.data + level->text, level->size));
    return ki_report_fault(input, block, &fault);
}

/* Leaves out the ratings of items that the model does not know. */
static kiln_status leave_out(struct reader *reader, const struct ki_input *input,
                             const struct ki_block *block, struct ki_links *links) {
    int32_t *ends = (int32_t *)(void *)links->ends.data;
    double *values = (double *)(void *)links->values.data;
    const char **at = (const char **)(void *)links->at.data;
    const int64_t count = ki_links_count(links);
    const bool rated = links->values.size > 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (ends[2 * i + ITEM] < reader->known) {
            memcpy(&ends[2 * kept], &ends[2 * i], 2 * sizeof *ends);
            if (rated) values[kept] = values[i];
            at[kept++] = at[i];
        } else if (reader->options->extra_columns == KILN_EXTRA_ERROR) {
            return fail_unseen(reader, input, block, ends[2 * i + ITEM], at[i]);
        }
    }
    reader->left_out += count - kept;
    links->ends.size = kept * 2 * (int64_t)sizeof *ends;
    links->values.size = rated ? kept * (int64_t)sizeof *values : 0;
    links->at.size = kept * (int64_t)sizeof *at;
    return KILN_OK;
}

/* ------------------------------------------------------------------------------------------- whole */

/* All files have ratings, or none. */
static bool check_rated(struct reader *reader, struct ki_fault *fault, const char *at) {
    const int rated = reader->layout.role[RATING] >= 0 ? 1 : -1;
    if (reader->rated == 0) reader->rated = rated;
    return reader->rated == rated ||
           ki_fault(fault, KILN_ERR_PARSE, at, "files that are read as one have the same columns",
                    rated > 0 ? "a column of ratings, the first file has none"
                              : "no column of ratings, the first file has one");
}

/* A file's first block says what the lines look like: each file may have a header. */
static kiln_status parse_block(void *of, const struct ki_input *input, const struct ki_block *block) {
    struct reader *reader = of;
    struct ki_fault fault = {.status = KILN_OK};
    const char *begin = block->text;
    if (block->line == 1) reader->layout.count = 0;
    if (reader->layout.count == 0 && !ki_ratings_layout(&reader->layout, &fault, &begin,
                                                        block->text + block->size, &words, reader->options))
        return ki_report_fault(input, block, &fault);
    if (reader->layout.count > 0 && !check_rated(reader, &fault, begin))
        return ki_report_fault(input, block, &fault);
    struct ki_block rest = *block;
    rest.text = begin;
    rest.size -= (size_t)(begin - block->text);
    const int count = ki_cut_block(reader->cuts, &rest, reader->part_count);
    ki_parallel(reader->options->threads, count, parse_part, reader);
    for (int i = 0; i < count; i++) {
        if (reader->parts[i].fault.status != KILN_OK)
            return ki_report_fault(input, block, &reader->parts[i].fault);
    }
    struct ki_names *const names[] = {&reader->names[USER], &reader->names[ITEM]};
    kiln_status status = ki_links_number(reader->links, count, names, input, block);
    for (int i = 0; status == KILN_OK && reader->known > 0 && i < count; i++)
        status = leave_out(reader, input, block, &reader->links[i]);
    if (status != KILN_OK) return status;
    return ki_links_store(&reader->entries, reader->links, count, reader->options, block);
}

static kiln_status warn(const struct reader *reader, const struct ki_place *place) {
    kiln_status status = KILN_OK;
    if (reader->layout.unnamed_value)
        TRY(ki_warn(reader->warnings, place,
                    "call the column of ratings \"rating\" in the header, or name it with --weight",
                    "no column is called rating, score, stars, value or count, so that each line counts 1"));
    if (reader->entries.replaced > 0)
        TRY(ki_warn(reader->warnings, place, "--strict makes that an error",
                    "of ratings by one user of one item the last one counts; left out: %lld",
                    (long long)reader->entries.replaced));
    if (reader->left_out > 0)
        TRY(ki_warn(reader->warnings, place, "--extra-columns error makes that an error",
                    "ratings of items that the model does not know are left out: %lld",
                    (long long)reader->left_out));
done:
    return status;
}

static kiln_status finish(struct ki_table *table, struct reader *reader, const struct ki_input *input) {
    const struct ki_place place = {.file = ki_input_name(input), .offset = -1};
    struct ki_entries *entries = &reader->entries;
    kiln_status status = KILN_OK;
    if (entries->count == 0)
        TRY(ki_fail_at(KILN_ERR_DATA, &place, "no ratings%s",
                       reader->left_out ? " of items that the model knows" : ": the file is empty"));
    table->rows = reader->names[0].levels.count;
    table->cols = reader->known > 0 ? reader->known : reader->names[1].levels.count;
    entries->file = place.file;
    entries->last_counts = reader->layout.role[RATING] >= 0;
    for (int i = 0; i < 2; i++) entries->names[i] = &reader->names[i].levels;
    entries->words[0] = "the rating by";
    entries->words[1] = "of";
    TRY(ki_entries_to_csr(table, entries, KI_GENERAL, reader->options));
    reader->warnings = &table->warnings;
    TRY(warn(reader, &place));
    TRY(ki_names_take(&table->row_names, &table->row_name_text, &reader->names[0]));
    TRY(ki_names_take(&table->feature_names, &table->name_text, &reader->names[1]));
done:
    return status;
}

static void free_reader(struct reader *reader) {
    for (int i = 0; reader->links && i < reader->part_count; i++) ki_links_free(&reader->links[i]);
    ki_free(reader->links);
    ki_free(reader->parts);
    ki_free(reader->cuts);
    for (int i = 0; i < 2; i++) ki_names_free(&reader->names[i]);
    ki_entries_free(&reader->entries);
}

kiln_status ki_read_ratings(struct ki_table *table, struct ki_input *input,
                            const kiln_read_options *options) {
    kiln_status status = KILN_OK;
    struct reader reader = {.options = options,
                            .part_count = options->threads * PARTS_PER_THREAD,
                            .longest = options->max_name ? options->max_name : KI_TABLE_NAME_LIMIT};
    ki_names_init(&reader.names[0], "a user");
    ki_names_init(&reader.names[1], "an item");
    reader.parts = ki_calloc((size_t)reader.part_count * sizeof *reader.parts);
    reader.cuts = ki_calloc((size_t)(reader.part_count + 1) * sizeof *reader.cuts);
    reader.links = ki_calloc((size_t)reader.part_count * sizeof *reader.links);
    if (!reader.parts || !reader.cuts || !reader.links)
        TRY(ki_fail_nomem((size_t)reader.part_count * sizeof *reader.parts, "the parts of a block"));
    if (options->model) TRY(take_items(&reader));
    TRY(ki_entries_read(&reader.entries, table, input, KILN_FILE_RATINGS, options, parse_block, &reader));
    TRY(finish(table, &reader, input));
done:
    free_reader(&reader);
    return status;
}
