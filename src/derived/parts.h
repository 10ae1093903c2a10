/* The things derived from a sparse matrix, each made on the device by the file of its name, and what they
 * have in common. */
#ifndef KI_DERIVED_PARTS_H
#define KI_DERIVED_PARTS_H

#include "core/kernels/kernels.h"
#include "derived/derived.h"

/* Launches one of derived.cl's kernels: n elements, a thread each up to a grid that strides, or in ranges of
 * their own. */
kiln_status ki_derive_for_all(kiln_device *device, const char *function, const char *defines, kiln_type type,
                              int64_t n, const struct ki_arg *args, int count);
kiln_status ki_derive_in_ranges(kiln_device *device, const char *function, const char *defines,
                                kiln_type type, int64_t n, const struct ki_arg *args, int count);
kiln_status ki_number_at(int32_t *value, kiln_device *device, const struct ki_buffer *from, int64_t i);

/* Lists rows by classes of length, which begin above `least` entries and double. vector: threads that suit
 * the mean, at most what unlisted rows get. Rows of more than `segmented` entries are cut into segments of
 * `segment`; `compact` starts are of 32 bits. */
struct ki_lengths {
    int vector, least, segmented, segment;
};
kiln_status ki_rows_list(struct ki_rows *rows, kiln_device *device, const struct ki_buffer *start,
                         int64_t count, struct ki_lengths lengths, bool compact);
/* The lengths for rows of nnz entries. */
struct ki_lengths ki_rows_lengths(const kiln_device *device, int64_t nnz, int64_t rows);
/* Their buffers in a slot's record that has them as `field` (KI_SLOT). */
#define KI_ROWS_BUFFERS(type, field)                                                                         \
    offsetof(type, field.list), offsetof(type, field.segment_row), offsetof(type, field.segment_number)

/* Each makes what X does not have yet and puts it in its slot. values: X's values are not all the same. */
extern const struct ki_slot_kind ki_slot_rows, ki_slot_popular, ki_slot_panels, ki_slot_transpose;
kiln_status ki_rows_make(const kiln_matrix *X);
/* Lists the kernels that count columns. */
void ki_popular_programs(struct ki_programs *programs, const kiln_device *device);
/* Popular columns, if the `chip` most frequent ones hold so many entries that they are worth it. */
kiln_status ki_popular_make(const kiln_matrix *X, int64_t chip);
/* Panels are of the columns that are not popular, on a device that has room for them on chip. */
bool ki_panels_fit(const kiln_device *device);
kiln_status ki_panels_make(const kiln_matrix *X, const struct ki_popular *popular, bool values);
kiln_status ki_transpose_make(const kiln_matrix *X, bool values);

/* Sorting and summing (derived/sort.c). */
struct ki_sort {
    struct ki_buffer key, payload, value; /* value: empty if there is none */
};
void ki_sort_drop(kiln_device *device, struct ki_sort *sort);
/* Sorts n elements by the lowest `bits` bits of their keys, stable; `other` is space of the same size, and
 * the two change places as needed: the result is in `data`. */
kiln_status ki_sort(kiln_device *device, kiln_type type, struct ki_sort *data, struct ki_sort *other,
                    int64_t n, int bits);
/* values[i] becomes the sum of those before it, for i in [0, n]; n > 0. */
kiln_status ki_scan(kiln_device *device, kiln_type type, const struct ki_buffer *values, int64_t n);
/* Cuts n elements into ranges: returns threads, in groups of KI_RANGE_GROUP, and each one's elements. */
enum { KI_RANGE_GROUP = 128 };
int64_t ki_ranges(int64_t *chunk, int64_t n);

#endif
