/* Entries (row, column, value) in any order become sorted rows. */
#ifndef KI_COORDINATE_H
#define KI_COORDINATE_H

#include "io/table/table.h"

/* Says whether an entry off the diagonal stands for its mirror image too, and with which sign. */
enum ki_symmetry { KI_GENERAL = 0, KI_SYMMETRIC = 1, KI_SKEW = -1 };

struct ki_entry_place {
    const char *file;
    int64_t line;
};

struct ki_entries {
    struct ki_bytes row, col, value; /* uint32_t, int32_t, double; of value nothing: all are 1 */
    int64_t count;
    bool last_counts;           /* of entries at the same place; else they are added up */
    int64_t replaced;           /* how many then did not count */
    struct ki_bytes places;     /* with options->strict struct ki_entry_place, of each entry; else nothing */
    struct ki_entry_place last; /* the latest, */
    const char *counted;        /* and how far in its block lines have been counted */
    /* For messages: the file; where rows and columns have names, these, and words to go before each of the
     * two. */
    const char *file, *words[2];
    const struct ki_table_levels *names[2];
};
void ki_entries_free(struct ki_entries *entries);

/* Tells where the next entry stands, `at` in the block: for duplicates that are errors. */
kiln_status ki_entries_note(struct ki_entries *entries, const struct ki_block *block, const char *at);
/* Entries from now on stand in this file, whose name lives as long as they do. */
static inline void ki_entries_file(struct ki_entries *entries, const char *file) {
    entries->last = (struct ki_entry_place){file, 0};
}

/* Finds what a reader makes of a block; the first of a file begins at line 1. */
typedef kiln_status ki_take_block(void *reader, const struct ki_input *input, const struct ki_block *block);
/* Hands over all blocks of `input` and then of options->more, which are of the same format; counts the bytes
 * of these. */
kiln_status ki_entries_read(struct ki_entries *entries, struct ki_table *table, struct ki_input *input,
                            kiln_file_format format, const kiln_read_options *options, ki_take_block *take,
                            void *reader);

/* Fills a table, whose rows and cols are set, with CSR arrays. Entries at the same place are added up in
 * their order, or the last one counts, or with options->strict are an error. The number of threads does not
 * show. */
kiln_status ki_entries_to_csr(struct ki_table *table, struct ki_entries *entries, enum ki_symmetry symmetry,
                              const kiln_read_options *options);

/* Returns whether a table's header names links and nothing else: source, target and perhaps weight. */
bool ki_links_named(const char *text, const char *end);

#endif
