/* Strips: the entries of so many rows as have their sums in a group's local memory, in the order of their columns. Sorted by
 * counting, in two steps, whose counters are in local memory, too. */
#include <stdio.h>

#include "core/size.h"
#include "derived/layout_parts.h"

/* Columns of a bucket, which is sorted in one go, and buckets of a strip; bytes of local memory that are left for a group's tree of
 * sums; and columns of a strip for each entry: where they are more, what adjacent threads read lies too far apart
 * (bench/results/h200-strips.json). */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { BUCKET_BITS = 3, BUCKETS_MAX = 64, COLUMN_BITS_MAX = 5 };
#else
enum { BUCKET_BITS = 10, BUCKETS_MAX = 6144, COLUMN_BITS_MAX = 30 };
#endif
enum { CUT_GROUP = 1024, SORT_GROUP = 256, GROUP_CPU = 64, KEPT = 12 << 10, SPARSEST = 8 };

int ki_strips_group(const kiln_device *device) {
    return device->properties.is_gpu ? (int)ki_min(CUT_GROUP, device->properties.group_max) : GROUP_CPU;
}

/* Strips of equal height, as many as keep all compute units busy to the end. */
static void shape(struct ki_strips *strips, const kiln_matrix *X) {
    const struct ki_properties *device = &X->device->properties;
    const int64_t bytes =
        ki_min(device->is_gpu ? KI_CHIP_BYTES : KI_CHIP_BYTES_CPU, device->local_max - KEPT);
    const int64_t most = ki_max(bytes / ki_type_bytes(X->type), 1);
    const int64_t units = ki_max(device->compute_units, 1),
                  turns = ki_max(ki_ceil_div(X->rows, units * most), 1);
    strips->height = (int)ki_max(ki_ceil_div(X->rows, units * turns), 1);
    strips->count = ki_ceil_div(X->rows, strips->height);
    strips->bits = 32;
    while ((int64_t)1 << (32 - strips->bits) < strips->height) strips->bits--;
    strips->bits = (int)ki_min(strips->bits, COLUMN_BITS_MAX);
    strips->buckets = (int)ki_min(ki_ceil_div(X->cols, 1 << BUCKET_BITS), BUCKETS_MAX + 1);
    strips->panels = (int)ki_ceil_div(X->cols, (int64_t)1 << strips->bits);
}

bool ki_strips_suit(const kiln_matrix *X) {
    struct ki_strips strips;
    shape(&strips, X);
    return !X->device->options.deterministic && X->device->properties.local_max > 2 * KEPT &&
           X->device->properties.local_max >= 4 * (BUCKETS_MAX + ki_strips_group(X->device)) &&
           X->nnz <= INT32_MAX - (1 << 14) && strips.bits >= BUCKET_BITS && strips.buckets <= BUCKETS_MAX &&
           strips.count * X->cols / SPARSEST <= X->nnz;
}

void ki_layout_drop_strips(kiln_device *device, struct ki_strips *strips) {
    ki_device_release(device, &strips->start);
    ki_device_release(device, &strips->entry);
    ki_device_release(device, &strips->value);
}

static kiln_status kernel_of(struct ki_kernel **kernel, const kiln_matrix *X, const char *function,
                             int group) {
    char defines[80];
    snprintf(defines, sizeof defines, "-DSTRIPS -DGROUP=%d -DBUCKET_BITS=%d -DBUCKETS_MAX=%d", group,
             BUCKET_BITS, BUCKETS_MAX);
    return ki_kernel_get(kernel, X->device, "layout", function, X->type, defines);
}

static kiln_status cut(const struct ki_strips *strips, const struct ki_buffer *entry,
                       const struct ki_buffer *value, const kiln_matrix *X, bool alike) {
    const int group = ki_strips_group(X->device);
    struct ki_kernel *kernel;
    const kiln_status status = kernel_of(&kernel, X, "strip_cut", group);
    if (status != KILN_OK) return status;
    const struct ki_arg args[] = {ki_arg_buffer(&strips->start), ki_arg_buffer(&X->row_start),
                                  ki_arg_buffer(&X->col),        ki_arg_buffer(alike ? NULL : &X->values),
                                  ki_arg_i64(X->rows),           ki_arg_i32(strips->height),
                                  ki_arg_i32(strips->buckets),   ki_arg_i32(strips->bits),
                                  ki_arg_buffer(entry),          ki_arg_buffer(value)};
    return ki_kernel_launch(X->device, kernel, strips->count, group, args, 10);
}

static kiln_status sort(const struct ki_strips *strips, const struct ki_buffer *entry,
                        const struct ki_buffer *value, const kiln_matrix *X, bool alike) {
    const int group = X->device->properties.is_gpu ? SORT_GROUP : GROUP_CPU;
    struct ki_kernel *kernel;
    const kiln_status status = kernel_of(&kernel, X, "strip_sort", group);
    if (status != KILN_OK) return status;
    const struct ki_arg args[] = {ki_arg_buffer(&strips->start), ki_arg_buffer(entry),
                                  ki_arg_buffer(alike ? NULL : value), ki_arg_buffer(&strips->entry),
                                  ki_arg_buffer(&strips->value)};
    return ki_kernel_launch(X->device, kernel, strips->count * strips->buckets, group, args, 5);
}

kiln_status ki_layout_strips(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_strips *strips = &layout->strips;
    const int64_t value_bytes = layout->alike ? 0 : X->nnz * ki_type_bytes(X->type);
    struct ki_buffer entry = {0}, value = {0};
    kiln_status status;
    shape(strips, X);
    strips->bucket_bits = BUCKET_BITS;
    TRY(ki_device_alloc(device, &strips->start, (strips->count * strips->buckets + 1) * 4));
    TRY(ki_device_alloc(device, &strips->entry, X->nnz * 4));
    TRY(ki_device_alloc(device, &strips->value, value_bytes));
    TRY(ki_device_alloc(device, &entry, X->nnz * 4));
    TRY(ki_device_alloc(device, &value, value_bytes));
    TRY(cut(strips, &entry, &value, X, layout->alike));
    TRY(sort(strips, &entry, &value, X, layout->alike));
    layout->stripped = true;
done:
    ki_device_release(device, &entry);
    ki_device_release(device, &value);
    if (status != KILN_OK) ki_layout_drop_strips(device, strips);
    return status;
}
