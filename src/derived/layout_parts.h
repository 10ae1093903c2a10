/* The parts of a sparse matrix's layout, each made on the device by the file of its name, and what they have in common. */
#ifndef KI_LAYOUT_PARTS_H
#define KI_LAYOUT_PARTS_H

#include "core/kernels.h"
#include "derived/layout.h"

/* Launches one of layout.cl's kernels: n elements, a thread each up to a grid that strides, or in ranges of their own. */
kiln_status ki_layout_for_all(kiln_device *device, const char *function, const char *defines, kiln_type type,
                              int64_t n, const struct ki_arg *args, int count);
kiln_status ki_layout_in_ranges(kiln_device *device, const char *function, const char *defines,
                                kiln_type type, int64_t n, const struct ki_arg *args, int count);
kiln_status ki_layout_number_at(int32_t *value, kiln_device *device, const struct ki_buffer *from, int64_t i);

/* Lists rows by classes of length, which begin above `least` entries and double. vector: threads that suit the mean, at most
 * what unlisted rows get. Rows of more than `segmented` entries are cut into segments of `segment`; `compact` starts are of 32
 * bits. */
struct ki_lengths {
    int vector, least, segmented, segment;
};
kiln_status ki_layout_rows(struct ki_rows *rows, kiln_device *device, const struct ki_buffer *start,
                           int64_t count, struct ki_lengths lengths, bool compact);
/* The lengths for rows of nnz entries. */
struct ki_lengths ki_layout_lengths(const kiln_device *device, int64_t nnz, int64_t rows);
void ki_layout_drop_rows(kiln_device *device, struct ki_rows *rows);

/* The entries of each column, in `count`, which has room for X->cols words. */
kiln_status ki_layout_count(const struct ki_buffer *count, const kiln_matrix *X);
/* Popular columns, if those that fit on chip hold at least this share of the entries. */
kiln_status ki_layout_popular(struct ki_layout *layout, const kiln_matrix *X, int64_t chip, double share);
/* Columns get their numbers back. */
kiln_status ki_layout_decode(const struct ki_layout *layout, const kiln_matrix *X);
kiln_status ki_layout_transpose(struct ki_layout *layout, const kiln_matrix *X);
void ki_layout_drop_transpose(kiln_device *device, struct ki_transpose *T);
/* Tiles of the columns that are not popular. */
kiln_status ki_layout_tiles(struct ki_layout *layout, const kiln_matrix *X);
void ki_layout_drop_tiles(kiln_device *device, struct ki_tiles *tiles);
/* Strips of all entries. */
kiln_status ki_layout_strips(struct ki_layout *layout, const kiln_matrix *X);
void ki_layout_drop_strips(kiln_device *device, struct ki_strips *strips);

/* Sorting and summing (derived/sort.c). */
struct ki_sort {
    struct ki_buffer key, payload, value; /* value: empty if there is none */
};
void ki_sort_drop(kiln_device *device, struct ki_sort *sort);
/* Sorts n elements by the lowest `bits` bits of their keys, stable; `other` is space of the same size, and the two change
 * places as needed: the result is in `data`. */
kiln_status ki_sort(kiln_device *device, kiln_type type, struct ki_sort *data, struct ki_sort *other,
                    int64_t n, int bits);
/* values[i] becomes the sum of those before it, for i in [0, n]; n > 0. */
kiln_status ki_scan(kiln_device *device, kiln_type type, const struct ki_buffer *values, int64_t n);
/* How n elements are cut into ranges: threads, and elements of each. Groups of KI_RANGE_GROUP threads. */
enum { KI_RANGE_GROUP = 128 };
int64_t ki_ranges(int64_t *chunk, int64_t n);

#endif
