/* Most names of a block have been met before: the threads that parse it look them up, while the tables
 * rest. What is left are new names, which one thread numbers in the order of the file, so that numbers do
 * not depend on the threads.
 *
 * A part is parsed first and looked up then, in a loop of its own, so that the processor waits for many
 * places of the tables at once. */
#include "io/coordinate/links.h"

#include <string.h>

#include "core/threads.h"
#include "io/quick.h"

struct ki_missed {
    int64_t at; /* among the ends */
    int32_t end;
};

void ki_links_free(struct ki_links *links) {
    ki_bytes_free(&links->ends);
    ki_bytes_free(&links->values);
    ki_bytes_free(&links->at);
    ki_bytes_free(&links->texts);
    ki_bytes_free(&links->missed);
}

bool ki_links_begin(struct ki_links *links, int64_t bytes, bool places) {
    const int64_t most = bytes / 4 + 1, item = sizeof(double);
    links->ends.size = links->values.size = links->at.size = links->texts.size = links->missed.size = 0;
    links->places = places;
    return ki_bytes_room(&links->ends, most * item) && ki_bytes_room(&links->values, most * item) &&
           (!places || ki_bytes_room(&links->at, most * item));
}

bool ki_links_end(int32_t *end, struct ki_links *links, const char *text, int64_t size, bool doubled) {
    const struct ki_name name = {text, (int32_t)size, doubled};
    *end = doubled ? -1 : ki_plain_number(text, size);
    if (*end >= 0) return true;
    *end = -1 - (int32_t)(links->texts.size / (int64_t)sizeof name);
    return ki_bytes_append(&links->texts, &name, sizeof name);
}

/* ------------------------------------------------------------------------------------- quick lines */

/* The number of one to eight digits at p as names are written, and *p behind it; -1: there is none. */
static inline int32_t quick_number(const char **p) {
    const uint64_t word = ki_text_word(*p);
    const int size = ki_quick_count(word);
    if (size == 0 || (size > 1 && **p == '0')) return -1;
    *p += size;
    return (int32_t)ki_quick_value(word, size);
}

/* Finds how many bytes of a word come before the first that is the separator, a quote, a blank or below it;
 * 8: all. The lowest bit that is found is right, those above it may not be. */
static inline int quick_letters(uint64_t word, char separator) {
    const uint64_t apart = word ^ KI_QUICK_ONES * (unsigned char)separator,
                   quote = word ^ KI_QUICK_ONES * '"';
    const uint64_t less = (word - KI_QUICK_ONES * '!') & ~word, equal = (apart - KI_QUICK_ONES) & ~apart;
    const uint64_t quotes = (quote - KI_QUICK_ONES) & ~quote;
    const uint64_t found = (less | equal | quotes) & KI_QUICK_ONES << 7;
    return found ? __builtin_ctzll(found) / 8 : 8;
}

/* The name at *text, which is moved behind it; false: it is long, or no plain one. */
static inline bool quick_end(int32_t *end, struct ki_links *links, const char **text, char separator) {
    enum { WORDS = (KI_LINKS_QUICK_NAME + 1) / 8 };
    const char *p = *text, *at = p;
    if ((*end = quick_number(text)) >= 0 && (**text == separator || (unsigned char)**text <= ' '))
        return true;
    for (int i = 0, some = 8; i < WORDS && some == 8; i++)
        at += some = quick_letters(ki_text_word(at), separator);
    if (at == p || at == p + 8 * WORDS || !ki_links_end(end, links, p, at - p, false)) return false;
    *text = at;
    return true;
}

static inline bool quick_separator(const char **p, char separator) {
    const bool found = **p == separator || (separator == ' ' && **p == '\t');
    *p += found;
    return found;
}

/* The line at *text, which is moved behind it. */
static inline bool quick_line(struct ki_links *links, const char **text, const struct ki_links_form *form,
                              int most) {
    const char separator = form->separator, *p = *text, *at;
    int32_t ends[2];
    double value;
    if (*p == '#' || *p == '%' || !quick_end(&ends[0], links, &p, separator) ||
        !quick_separator(&p, separator))
        return false;
    at = p;
    if (!quick_end(&ends[1], links, &p, separator)) return false;
    if (form->valued && (!quick_separator(&p, separator) || !ki_quick_real(&p, form->single, &value)))
        return false;
    for (int i = 2 + form->valued; i < form->fields; i++) {
        if (!quick_separator(&p, separator) || p - *text > most) return false;
        while (ki_is_digit(*p)) p++;
    }
    p += *p == '\r';
    if (*p++ != '\n') return false;
    ki_links_add(links, ends, form->valued ? &value : NULL, at);
    *text = p;
    return true;
}

void ki_links_quick(struct ki_links *links, const char **text, const char *end,
                    const struct ki_links_form *form) {
    enum { READS = 256 }; /* more than a line that is taken may have, and a word behind it */
    if (!form->separator || end - *text < READS) return;
    for (const char *stop = end - READS; *text < stop;) {
        const int64_t texts = links->texts.size;
        if (quick_line(links, text, form, READS / 2)) continue;
        links->texts.size = texts;
        return;
    }
}

/* -------------------------------------------------------------------------------------- numbers */

enum { TOGETHER = 32 }; /* names that are looked up together */

/* ends[i] to ends[i + count - 1] by their numbers; found: these, -1 for a new name. */
static void find_some(int32_t found[TOGETHER], const struct ki_links *links, int64_t i, int count,
                      const struct ki_names *const names[2]) {
    const struct ki_name *texts = (const void *)links->texts.data;
    const int32_t *ends = (const int32_t *)(const void *)links->ends.data + i;
    struct ki_table_sought sought[TOGETHER];
    int which[TOGETHER], waiting = 0;
    for (int k = 0; k < count; k++) {
        const struct ki_names *of = names[(i + k) & 1];
        found[k] = ends[k] >= 0 ? ki_names_of_number(of, ends[k]) : -1;
        if (ends[k] >= 0 || texts[-1 - ends[k]].doubled) continue;
        const struct ki_name *name = &texts[-1 - ends[k]];
        sought[waiting] = (struct ki_table_sought){.in = &of->levels, .text = name->text, .size = name->size};
        which[waiting++] = k;
    }
    ki_table_levels_find_all(sought, waiting);
    for (int k = 0; k < waiting; k++) found[which[k]] = sought[k].number;
}

bool ki_links_find(struct ki_links *links, const struct ki_names *const names[2]) {
    int32_t *ends = (int32_t *)(void *)links->ends.data, found[TOGETHER];
    const int64_t count = 2 * ki_links_count(links);
    for (int64_t i = 0; i < count; i += TOGETHER) {
        const int some = (int)ki_min(count - i, TOGETHER);
        find_some(found, links, i, some, names);
        for (int k = 0; k < some; k++) {
            const struct ki_missed missed = {i + k, ends[i + k]};
            ends[i + k] = found[k];
            if (found[k] < 0 && !ki_bytes_append(&links->missed, &missed, sizeof missed)) return false;
        }
    }
    return true;
}

static kiln_status number_part(struct ki_links *links, struct ki_names *const names[2],
                               const struct ki_input *input, const struct ki_block *block) {
    const struct ki_name *texts = (const void *)links->texts.data;
    const struct ki_missed *missed = (const void *)links->missed.data;
    int32_t *ends = (int32_t *)(void *)links->ends.data;
    kiln_status status = KILN_OK;
    for (int64_t i = 0; i < links->missed.size / (int64_t)sizeof *missed; i++) {
        struct ki_names *of = names[missed[i].at & 1];
        int32_t *number = &ends[missed[i].at];
        const int32_t end = missed[i].end;
        if (end >= 0)
            TRY(ki_names_add_number(number, of, end, block->offset + (int64_t)block->size));
        else
            TRY(ki_names_add(number, of, &texts[-1 - end], input, block));
    }
done:
    return status;
}

kiln_status ki_links_number(struct ki_links *links, int parts, struct ki_names *const names[2],
                            const struct ki_input *input, const struct ki_block *block) {
    kiln_status status = KILN_OK;
    for (int part = 0; part < parts; part++) TRY(number_part(&links[part], names, input, block));
done:
    return status;
}

struct storing {
    struct ki_entries *entries;
    const struct ki_links *links;
};

static void store_part(void *of, int part) {
    const struct storing *s = of;
    const struct ki_links *links = &s->links[part];
    const int32_t *ends = (const void *)links->ends.data;
    const int64_t count = ki_links_count(links);
    uint32_t *row = (uint32_t *)(void *)s->entries->row.data + links->first;
    int32_t *col = (int32_t *)(void *)s->entries->col.data + links->first;
    for (int64_t i = 0; i < count; i++) {
        row[i] = (uint32_t)ends[2 * i];
        col[i] = ends[2 * i + 1];
    }
    if (links->values.size > 0)
        memcpy((double *)(void *)s->entries->value.data + links->first, links->values.data,
               (size_t)links->values.size);
}

/* Tells where each entry stands in its file, for an error about two of them. */
static kiln_status note_places(struct ki_entries *entries, const struct ki_links *links,
                               const struct ki_block *block) {
    const char *const *at = (const void *)links->at.data;
    for (int64_t i = 0; i < ki_links_count(links); i++) {
        const kiln_status status = ki_entries_note(entries, block, at[i]);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

kiln_status ki_links_store(struct ki_entries *entries, struct ki_links *links, int parts,
                           const kiln_read_options *options, const struct ki_block *block) {
    struct storing s = {entries, links};
    kiln_status status = KILN_OK;
    int64_t more = 0, values = 0;
    for (int part = 0; part < parts; part++) {
        links[part].first = entries->count + more;
        more += ki_links_count(&links[part]);
        values += links[part].values.size;
        if (options->strict) TRY(note_places(entries, &links[part], block));
    }
    if (!ki_bytes_room(&entries->row, more * 4) || !ki_bytes_room(&entries->col, more * 4) ||
        !ki_bytes_room(&entries->value, values))
        TRY(ki_fail_nomem((size_t)more * 16, "the entries of the file"));
    if (more > 0) ki_parallel(options->threads, parts, store_part, &s);
    entries->row.size += more * 4;
    entries->col.size += more * 4;
    entries->value.size += values;
    entries->count += more;
done:
    return status;
}
