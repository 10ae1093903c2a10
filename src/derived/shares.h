/* A sparse matrix cut into shares of about equal work, wherever rows begin and end: so many entries, of which
 * a row counts for KI_SHARE_ROW, for whoever finishes one row and begins another waits. Kernels whose threads
 * take as many shares each then neither look for their first row nor wait for those who have many short ones.
 * Made when it is first asked for, and kept in a slot: 16 bytes for KI_SHARE_ENTRIES entries. */
#ifndef KI_SHARES_H
#define KI_SHARES_H

#include "core/matrix.h"

enum { KI_SHARE_ENTRIES = 32, KI_SHARE_ROW = 4, KI_SHARE_ALIGNED = 8 };

struct ki_shares {
    int64_t count;
    struct ki_buffer
        begin; /* count + 1 of int64_t: its first entry, a multiple of KI_SHARE_ALIGNED; the last one is
                * nnz */
    struct ki_buffer row; /* count + 1 of int64_t: the row of that entry */
};

/* The shares are of S by rows, or of its columns, which begin at `start`; short_starts: of 32 bits. S is
 * held, lies on a GPU and has entries. */
kiln_status ki_shares_get(const struct ki_shares **shares, const kiln_matrix *S, bool by_columns,
                          const struct ki_buffer *start, bool short_starts, int64_t rows);

#endif
