/* Columns of a CSR matrix on file are checked chunk by chunk: they ascend in each row, and lie within the
 * matrix. */
#ifndef KI_ORDERED_H
#define KI_ORDERED_H

#include <stdatomic.h>

#include "core/file.h"

/* A chunk sees the pairs of neighbours within it; those that two chunks share are left to the end. */
struct ki_ordered {
    const int64_t *row_start;
    int64_t rows, nnz;
    int32_t cols;
    _Atomic int64_t outside, unordered; /* the first entry that is so, INT64_MAX: none yet */
    _Atomic int64_t chunk;              /* entries of a whole one */
};

struct ki_ordered ki_ordered_begin(const int64_t *row_start, int64_t rows, int64_t cols);
/* For struct ki_chunks (io/chunks.h), of int32 elements. */
void ki_ordered_use(void *ordered, const unsigned char *raw, int64_t first, int64_t count);
/* Pairs that two chunks share, in a file whose columns begin at KI_COL. */
kiln_status ki_ordered_seams(struct ki_ordered *ordered, const struct ki_file *file);

#endif
