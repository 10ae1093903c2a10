/* Pairs of names with a value, as edge lists and ratings hold them: parsed by several threads, numbered in
 * the file's order. */
#ifndef KI_LINKS_H
#define KI_LINKS_H

#include "io/coordinate/coordinate.h"
#include "io/coordinate/names.h"

struct ki_link {
    struct ki_name name[2];
    double value;
};

/* What one thread found in its part of a block. */
struct ki_links {
    struct ki_bytes links; /* struct ki_link */
    int64_t unknown;       /* names among them that were not known before the block */
    int64_t at;            /* where the first stands among all entries */
};
void ki_links_free(struct ki_links *links);
/* Adds a pair and looks its names up in their tables, which no thread may change meanwhile; false if there
 * is no memory. */
bool ki_links_add(struct ki_links *links, const struct ki_names *const names[2], struct ki_link *link);
/* Numbers the names that are new, part by part in the order of the block: name[k].found of each pair. */
kiln_status ki_links_number(struct ki_links *links, int parts, struct ki_names *const names[2],
                            const struct ki_input *input, const struct ki_block *block);
/* Appends the numbered pairs of all parts. */
kiln_status ki_links_store(struct ki_entries *entries, struct ki_links *links, int parts,
                           const kiln_read_options *options, const struct ki_block *block);

#endif
