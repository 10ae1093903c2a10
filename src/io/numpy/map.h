/* Data that stay in their file (core/file.h): checked once as a reader would, then read when a pass needs
 * them. */
#ifndef KI_MAP_H
#define KI_MAP_H

#include "core/file.h"
#include "io/chunks.h"
#include "io/data.h"

/* Holds what the checks of a mapped file share. */
struct ki_mapping {
    struct ki_file *file;
    int64_t bytes; /* of the file */
    const kiln_read_options *options;
    struct ki_watch watch;
};

/* ERR_UNSUPPORTED: why these elements cannot stay where they are, and what to do. */
kiln_status ki_mapping_refuse(const struct ki_mapping *mapping, const char *why, const char *hint);

kiln_status ki_map_npz(struct ki_table *table, struct ki_mapping *mapping);
/* A packed file (io/panels), with all that belongs to the rows beside X. */
kiln_status ki_map_panels(struct ki_table *table, struct ki_mapping *mapping);

/* Part `number` of `count` of a CSR matrix, into memory; ERR_UNSUPPORTED: its members are compressed, or not
 * as they would lie there. */
kiln_status ki_npz_read_part(struct ki_table *table, struct ki_mapping *mapping, int number, int count);

/* take(of, rows): all of such a matrix, some rows at a time, which have at most `entries` entries if they are
 * several. Deflated members are inflated once. */
kiln_status ki_npz_each_rows(struct ki_mapping *mapping, int64_t entries,
                             kiln_status (*take)(void *of, struct ki_table *rows), void *of);

/* Fills a table whose values, and columns, stay in the file. */
kiln_status ki_map_table(struct ki_table *table, kiln_file_format *format, int64_t *bytes, const char *path,
                         const kiln_read_options *options);

#endif
