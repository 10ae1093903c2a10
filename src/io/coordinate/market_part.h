/* A part of a Matrix Market file, for processes that read it together: its entries, of any rows, and the rows
 * that are made of what all have found. */
#ifndef KI_MARKET_PART_H
#define KI_MARKET_PART_H

#include "io/coordinate/matrix_market.h"
#include "io/part.h"

struct ki_market_part {
    struct ki_market header;
    struct ki_entries entries; /* of an array the values alone, until ki_market_place */
    int64_t bytes;             /* of the part */
};
void ki_market_part_free(struct ki_market_part *part);

/* The entries on the lines that begin in the part's share of the bytes behind the head, into a zeroed struct.
 * Of symmetric matrices those of the file. ERR_UNSUPPORTED: the file is not cut; errors of the data name
 * places that count from the share's beginning. */
kiln_status ki_market_part_read(struct ki_market_part *of, const char *path, const kiln_read_options *options,
                                struct ki_part part);
/* Rows and columns of an array's values, of which `first` come before these in the file; none of other
 * files. */
kiln_status ki_market_place(struct ki_market_part *part, int64_t first);
/* Finds whether entry e stands for its mirror image, too, with which sign. */
static inline int ki_market_mirrors(const struct ki_market_part *part, int64_t row, int64_t col) {
    return row != col ? (int)part->header.symmetry : 0;
}
/* Rows [first, first + rows) of entries that all lie there, in the order of the file, mirrored ones too, into
 * a zeroed table. */
kiln_status ki_market_table(struct ki_table *table, struct ki_entries *entries,
                            const struct ki_market *header, int64_t first, int64_t rows,
                            const kiln_read_options *options);

#endif
