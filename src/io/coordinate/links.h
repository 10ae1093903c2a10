/* Pairs of names with a value, as edge lists and ratings hold them: parsed by several threads, numbered in
 * the file's order. */
#ifndef KI_LINKS_H
#define KI_LINKS_H

#include "io/coordinate/coordinate.h"
#include "io/coordinate/names.h"

/* Holds what one thread found in its part of a block. While it is parsed an end is the number that it is
 * written as, or -1 - i: the name texts[i]; from ki_links_find on it is the name's own number. */
struct ki_links {
    struct ki_bytes ends;   /* int32_t, two a link */
    struct ki_bytes values; /* double, one a link; nothing if all are 1 */
    struct ki_bytes at;     /* const char *: where the second name stands, one a link, if that may be told */
    struct ki_bytes texts;  /* struct ki_name */
    struct ki_bytes missed; /* struct ki_missed: names that were not known before the block */
    int64_t first;          /* where the first link stands among all entries */
    bool places;            /* `at` is kept */
};
void ki_links_free(struct ki_links *links);
/* Forgets the links of a part, and makes room for those that a text of so many bytes may hold, each at least
 * three bytes and a line end; false if there is no memory. */
bool ki_links_begin(struct ki_links *links, int64_t bytes, bool places);

static inline int64_t ki_links_count(const struct ki_links *links) {
    return links->ends.size / (2 * (int64_t)sizeof(int32_t));
}
/* Adds a pair, of which there is room for one. at: of its second name. */
static inline void ki_links_add(struct ki_links *links, const int32_t ends[2], const double *value,
                                const char *at) {
    memcpy(links->ends.data + links->ends.size, ends, 2 * sizeof *ends);
    links->ends.size += 2 * (int64_t)sizeof *ends;
    if (value) memcpy(links->values.data + links->values.size, value, sizeof *value);
    links->values.size += value ? (int64_t)sizeof *value : 0;
    if (links->places) memcpy(links->at.data + links->at.size, &at, sizeof at);
    links->at.size += links->places ? (int64_t)sizeof at : 0;
}
/* The end that stands for a name, which may be any text; false if there is no memory. */
bool ki_links_end(int32_t *end, struct ki_links *links, const char *text, int64_t size, bool doubled);

enum { KI_LINKS_QUICK_NAME = 31 }; /* bytes of the longest name in a line that is read quickly */
/* Says how most lines look: two such names without blanks or quotes, perhaps a number without an exponent,
 * perhaps further whole numbers, with one separator between two. */
struct ki_links_form {
    char separator; /* ' ': a blank or a tab; 0: lines look otherwise */
    int fields;     /* 2 or more */
    bool valued;    /* the third is the value */
    bool single;    /* as ki_parse_real */
};
/* Adds the lines at *text that look so, and moves *text to the beginning of the first other one, which may
 * be fine all the same. Lines near the end of the text are left. */
void ki_links_quick(struct ki_links *links, const char **text, const char *end,
                    const struct ki_links_form *form);

/* Looks the names of a part up in their tables, which no thread may change meanwhile; false if there is no
 * memory. */
bool ki_links_find(struct ki_links *links, const struct ki_names *const names[2]);
/* Numbers the names that are new, part by part in the order of the block. */
kiln_status ki_links_number(struct ki_links *links, int parts, struct ki_names *const names[2],
                            const struct ki_input *input, const struct ki_block *block);
/* Appends the numbered pairs of all parts. */
kiln_status ki_links_store(struct ki_entries *entries, struct ki_links *links, int parts,
                           const kiln_read_options *options, const struct ki_block *block);

#endif
