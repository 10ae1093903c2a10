/* The transpose of X, in compressed columns: its entries are sorted by column, and keep the order of their rows.
 *
 * Where columns are so few that each has entries in every part of the rows, X is cut into bands of rows whose factors the first
 * cache level holds, and each band is transposed for itself: that a factor comes from the second level costs more than
 * all that is streamed. */
#include "core/size.h"
#include "ops/layout_parts.h"

/* Bytes of a band's factors, and a column's entries in a band that are worth a sum of their own. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { BAND_BYTES = 128, BAND_ENTRIES = 2 };
#else
enum { BAND_BYTES = 1 << 16, BAND_ENTRIES = 16 };
#endif

/* Rows of a band; all of them where bands are not worth it. */
static int64_t band_height(const kiln_matrix *X) {
    const int64_t height = BAND_BYTES / ki_type_bytes(X->type), bands = ki_ceil_div(X->rows, height);
    return X->cols <= X->nnz / bands / BAND_ENTRIES ? height : X->rows;
}

static kiln_status alloc_entries(struct ki_sort *sort, const kiln_matrix *X, bool values) {
    kiln_status status;
    TRY(ki_device_alloc(X->device, &sort->key, X->nnz * 4));
    TRY(ki_device_alloc(X->device, &sort->payload, X->nnz * 4));
    if (values) TRY(ki_device_alloc(X->device, &sort->value, X->nnz * ki_type_bytes(X->type)));
done:
    return status;
}

static kiln_status list_entries(struct ki_sort *entries, const kiln_matrix *X, bool values, int64_t height) {
    int64_t chunk;
    (void)ki_ranges(&chunk, X->nnz);
    const struct ki_arg args[] = {ki_arg_buffer(&X->row_start),
                                  ki_arg_buffer(&X->col),
                                  ki_arg_buffer(values ? &X->values : NULL),
                                  ki_arg_i64(X->rows),
                                  ki_arg_buffer(&entries->key),
                                  ki_arg_buffer(&entries->payload),
                                  ki_arg_buffer(values ? &entries->value : NULL),
                                  ki_arg_i64(X->nnz),
                                  ki_arg_i64(chunk),
                                  ki_arg_i32((int32_t)X->cols),
                                  ki_arg_i32((int32_t)height)};
    return ki_layout_in_ranges(X->device, "transpose_list", "-DTRANSPOSE", X->type, X->nnz, args, 11);
}

kiln_status ki_layout_transpose(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_transpose *T = &layout->transpose;
    struct ki_sort entries = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
    const bool values = !layout->alike;
    int bits = 0;
    kiln_status status;
    if (X->nnz > INT32_MAX || X->rows > INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT,
                       "a deterministic pass over %lld entries in %lld rows, but %d are the most",
                       (long long)X->nnz, (long long)X->rows, INT32_MAX);
    const int64_t height = band_height(X), rows = X->cols * ki_ceil_div(X->rows, height);
    while ((rows - 1) >> bits) bits++;
    TRY(alloc_entries(&entries, X, values));
    TRY(alloc_entries(&other, X, values));
    TRY(list_entries(&entries, X, values, height));
    TRY(ki_sort(device, X->type, &entries, &other, X->nnz, bits));
    ki_sort_drop(device, &other);
    TRY(ki_device_alloc(device, &T->start, (rows + 1) * 4));
    const struct ki_arg starts[] = {ki_arg_buffer(&T->start), ki_arg_buffer(&entries.key), ki_arg_i64(X->nnz),
                                    ki_arg_i64(rows)};
    TRY(ki_layout_for_all(device, "transpose_starts", "-DTRANSPOSE", X->type, rows + 1, starts, 4));
    TRY(ki_layout_rows(&T->rows, device, &T->start, rows, ki_layout_lengths(device, X->nnz, rows), true));
    T->bands = rows / X->cols;
    T->row = entries.payload;
    T->value = entries.value;
    entries.payload = entries.value = (struct ki_buffer){0};
    layout->transposed = true;
done:
    ki_sort_drop(device, &entries);
    ki_sort_drop(device, &other);
    return status;
}
