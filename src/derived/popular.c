/* Popular columns: which they are, their numbers in X, and their y and w, which lie together. */
#include "core/seams.h"
#include "core/size.h"
#include "derived/layout_parts.h"

#if KILN_INDEX32_LIMIT < 1 << 20
enum { CODED = 48 };
#else
enum { CODED = 1 << 21 }; /* columns whose y and w stay in the second cache level */
#endif
enum { KEY_BITS = 18, KEY_MOST = (1 << KEY_BITS) - 1 };

static kiln_status fill(kiln_device *device, const struct ki_buffer *values, int64_t n, int value) {
    const struct ki_arg args[] = {ki_arg_buffer(values), ki_arg_i64(n), ki_arg_i32(value)};
    return ki_layout_for_all(device, "popular_fill", "-DPOPULAR", KILN_F32, n, args, 3);
}

kiln_status ki_layout_count(const struct ki_buffer *count, const kiln_matrix *X) {
    const struct ki_arg args[] = {ki_arg_buffer(count), ki_arg_buffer(&X->col), ki_arg_i64(X->nnz)};
    kiln_status status = fill(X->device, count, X->cols, 0);
    if (status != KILN_OK) return status;
    return ki_layout_for_all(X->device, "popular_count", "-DPOPULAR", KILN_F32, X->nnz, args, 3);
}

/* The columns in descending order of their frequency, which is `count`. A frequency beyond KEY_MOST counts as that many. */
static kiln_status rank_columns(struct ki_sort *sorted, struct ki_sort *other, struct ki_buffer *count,
                                const kiln_matrix *X) {
    kiln_device *device = X->device;
    const int64_t n = X->cols;
    struct ki_buffer *const parts[] = {&sorted->key, &sorted->payload, &other->key, &other->payload};
    kiln_status status;
    TRY(ki_device_alloc(device, count, n * 4));
    TRY(ki_layout_count(count, X));
    for (int i = 0; i < 4; i++) TRY(ki_device_alloc(device, parts[i], n * 4));
    const struct ki_arg keys[] = {ki_arg_buffer(&sorted->key), ki_arg_buffer(&sorted->payload),
                                  ki_arg_buffer(count), ki_arg_i64(n), ki_arg_i32(KEY_MOST)};
    TRY(ki_layout_for_all(device, "popular_keys", "-DPOPULAR", KILN_F32, n, keys, 5));
    TRY(ki_sort(device, KILN_F32, sorted, other, n, KEY_BITS));
done:
    return status;
}

/* Entries in the first `chip` columns. */
static kiln_status count_on_chip(double *entries, const struct ki_sort *sorted, const struct ki_buffer *count,
                                 const kiln_matrix *X, int64_t chip) {
    struct ki_buffer first = {0};
    int32_t *counts = ki_alloc((size_t)chip * 4 + 1);
    double sum = 0;
    kiln_status status;
    if (!counts) return ki_fail_nomem((size_t)chip * 4, "the counts of columns");
    TRY(ki_device_alloc(X->device, &first, chip * 4));
    const struct ki_arg args[] = {ki_arg_buffer(&first), ki_arg_buffer(count),
                                  ki_arg_buffer(&sorted->payload), ki_arg_i64(chip)};
    TRY(ki_layout_for_all(X->device, "popular_counts", "-DPOPULAR", KILN_F32, chip, args, 4));
    TRY(ki_device_download(X->device, counts, &first, 0, chip * 4));
    for (int64_t s = 0; s < chip; s++) sum += counts[s];
    *entries = sum;
done:
    ki_device_release(X->device, &first);
    ki_free(counts);
    return status;
}

/* Columns that others share, or have lent, are left alone: X gets a copy to code. */
static kiln_status own_columns(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_status status;
    TRY(ki_device_alloc(X->device, &layout->col, X->nnz * 4));
    const struct ki_arg args[] = {ki_arg_buffer(&layout->col), ki_arg_buffer(&X->col), ki_arg_i64(X->nnz)};
    TRY(ki_layout_for_all(X->device, "popular_copy", "-DPOPULAR", KILN_F32, X->nnz, args, 3));
    layout->plain = X->col;
    ((kiln_matrix *)(uintptr_t)X)->col = layout->col;
done:
    return status;
}

/* Entries of popular columns get their slot in place of the column. */
static kiln_status encode(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer rank = {0};
    kiln_status status;
    TRY(ki_device_alloc(device, &rank, X->cols * 4));
    TRY(fill(device, &rank, X->cols, -1));
    if (X->structure || X->lent_buffers) TRY(own_columns(layout, X));
    const struct ki_arg ranks[] = {ki_arg_buffer(&rank), ki_arg_buffer(&layout->slots),
                                   ki_arg_i64(layout->coded)};
    TRY(ki_layout_for_all(device, "popular_rank", "-DPOPULAR", KILN_F32, layout->coded, ranks, 3));
    const struct ki_arg codes[] = {ki_arg_buffer(&X->col), ki_arg_buffer(&rank), ki_arg_i64(X->nnz)};
    TRY(ki_layout_for_all(device, "popular_encode", "-DPOPULAR", KILN_F32, X->nnz, codes, 3));
done:
    ki_device_release(device, &rank);
    return status;
}

kiln_status ki_layout_popular(struct ki_layout *layout, const kiln_matrix *X, int64_t chip, double share) {
    kiln_device *device = X->device;
    struct ki_sort sorted = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
    struct ki_buffer count = {0};
    const int64_t coded = ki_min(X->cols, CODED);
    double on_chip = 0;
    kiln_status status;
    TRY(rank_columns(&sorted, &other, &count, X));
    TRY(count_on_chip(&on_chip, &sorted, &count, X, ki_min(chip, X->cols)));
    ki_device_release(device, &count);
    if (on_chip < share * (double)X->nnz) goto done;
    TRY(ki_device_alloc(device, &layout->slots, coded * 4));
    layout->coded = coded;
    const struct ki_arg copied[] = {ki_arg_buffer(&layout->slots), ki_arg_buffer(&sorted.payload),
                                    ki_arg_i64(coded)};
    TRY(ki_layout_for_all(device, "popular_copy", "-DPOPULAR", KILN_F32, coded, copied, 3));
    ki_sort_drop(device, &sorted);
    ki_sort_drop(device, &other);
    TRY(encode(layout, X));
done:
    ki_device_release(device, &count);
    ki_sort_drop(device, &sorted);
    ki_sort_drop(device, &other);
    return status;
}

kiln_status ki_layout_decode(const struct ki_layout *layout, const kiln_matrix *X) {
    const struct ki_arg args[] = {ki_arg_buffer(&X->col), ki_arg_buffer(&layout->slots), ki_arg_i64(X->nnz)};
    kiln_status status =
        ki_layout_for_all(X->device, "popular_decode", "-DPOPULAR", KILN_F32, X->nnz, args, 3);
    return status == KILN_OK ? X->device->backend->sync(X->device) : status;
}

kiln_status ki_layout_pack(struct ki_layout *layout, const kiln_matrix *X, const kiln_matrix *y, bool sums,
                           int k, int first, int columns) {
    kiln_device *device = X->device;
    const int64_t n = layout->coded * columns, bytes = n * ki_type_bytes(X->type);
    kiln_status status;
    if (y) TRY(ki_layout_work(device, &layout->y_hot, bytes));
    if (sums) TRY(ki_layout_work(device, &layout->w_hot, bytes));
    const struct ki_arg args[] = {ki_arg_buffer(y ? &layout->y_hot : NULL),
                                  ki_arg_buffer(sums ? &layout->w_hot : NULL),
                                  ki_arg_values(y),
                                  ki_arg_buffer(&layout->slots),
                                  ki_arg_i64(layout->coded),
                                  ki_arg_i32(k),
                                  ki_arg_i32(first),
                                  ki_arg_i32(columns)};
    TRY(ki_layout_for_all(device, "pack_hot", "-DPACK", X->type, n, args, 8));
done:
    return status;
}

kiln_status ki_layout_unpack(struct ki_layout *layout, const kiln_matrix *X, kiln_matrix *out, int k,
                             int first, int columns) {
    const struct ki_arg args[] = {ki_arg_values(out),
                                  ki_arg_buffer(&layout->w_hot),
                                  ki_arg_buffer(&layout->slots),
                                  ki_arg_i64(layout->coded),
                                  ki_arg_i32(k),
                                  ki_arg_i32(first),
                                  ki_arg_i32(columns)};
    return ki_layout_for_all(X->device, "unpack_hot", "-DPACK", X->type, layout->coded * columns, args, 7);
}
