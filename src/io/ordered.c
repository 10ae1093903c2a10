#include "io/ordered.h"

#include <string.h>

#include "core/threads.h"

/* The row that an entry belongs to: the last that begins at it or before. */
static int64_t row_of(const struct ki_ordered *c, int64_t entry) {
    int64_t low = 0, high = c->rows - 1;
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (c->row_start[middle] <= entry)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

struct ki_ordered ki_ordered_begin(const int64_t *row_start, int64_t rows, int64_t cols) {
    return (struct ki_ordered){.row_start = row_start,
                               .rows = rows,
                               .nnz = row_start[rows],
                               .cols = (int32_t)cols,
                               .outside = INT64_MAX,
                               .unordered = INT64_MAX};
}

void ki_ordered_use(void *of, const unsigned char *raw, int64_t first, int64_t count) {
    struct ki_ordered *c = of;
    int64_t row = row_of(c, first), next = c->row_start[row + 1];
    int32_t previous = -1;
    for (int64_t i = 0; i < count; i++) {
        int32_t col;
        memcpy(&col, raw + 4 * i, sizeof col);
        while (first + i >= next) {
            next = c->row_start[++row + 1];
            previous = -1;
        }
        if (col < 0 || col >= c->cols) ki_lower(&c->outside, first + i);
        if (col <= previous) ki_lower(&c->unordered, first + i);
        previous = col;
    }
    if (first == 0) c->chunk = count;
}

kiln_status ki_ordered_seams(struct ki_ordered *c, const struct ki_file *file) {
    for (int64_t e = c->chunk; e < c->nnz; e += c->chunk) {
        int32_t pair[2];
        if (c->row_start[row_of(c, e)] == e) continue;
        kiln_status status = ki_file_read(file, pair, file->at[KI_COL] + 4 * (e - 1), sizeof pair);
        if (status != KILN_OK) return status;
        if (pair[0] >= pair[1]) ki_lower(&c->unordered, e);
    }
    return KILN_OK;
}
