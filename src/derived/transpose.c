/* The transpose of X, in compressed columns: its entries are sorted by column, and keep the order of their
 * rows.
 *
 * A column gathers the rows' factors, and that costs more than all that is streamed where they come from
 * memory or from the second cache level. So where columns are so few that each has entries in every part of
 * the rows, they are cut into bands of rows whose factors the first cache level holds. Each band is
 * transposed for itself, and the bands' sums are added afterwards, in order. */
#include "core/arguments.h"
#include "core/limits.h"
#include "derived/columns.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(transpose_list);
KI_ARGUMENTS(transpose_starts);

/* Rows of a band: all of them where bands are not worth it. */
static int64_t band_height(const kiln_matrix *X) {
    const int64_t height = ki_limits.band_bytes / ki_type_bytes(X->type),
                  bands = ki_ceil_div(X->rows, height);
    return bands > 1 && X->cols <= X->nnz / bands / ki_limits.band_entries ? height : X->rows;
}

static kiln_status alloc_entries(struct ki_sort *sort, kiln_device *device, int64_t n, int64_t value_bytes) {
    kiln_status status;
    TRY(ki_device_alloc(device, &sort->key, n * 4));
    TRY(ki_device_alloc(device, &sort->payload, n * 4));
    if (value_bytes) TRY(ki_device_alloc(device, &sort->value, n * value_bytes));
done:
    return status;
}

static kiln_status list_entries(struct ki_sort *entries, const kiln_matrix *X, int64_t height, bool values) {
    int64_t chunk;
    (void)ki_ranges(&chunk, X->nnz);
    return ki_derive_in_ranges(X->device, "transpose_list", "-DTRANSPOSE", X->type, X->nnz,
                               KI_PACK(transpose_list, X, .row_start = &X->row_start, .col = &X->col,
                                       .X = values ? &X->values : NULL, .rows = X->rows, .key = &entries->key,
                                       .row = &entries->payload, .value = values ? &entries->value : NULL,
                                       .nnz = X->nnz, .chunk = chunk, .cols = (int32_t)X->cols,
                                       .height = (int32_t)height));
}

static kiln_status find_starts(struct ki_transpose *T, const kiln_matrix *X, const struct ki_buffer *key,
                               int64_t rows, bool long_starts) {
    kiln_status status;
    TRY(ki_device_alloc(X->device, &T->start, (rows + 1) * (long_starts ? 8 : 4)));
    TRY(ki_derive_for_all(
        X->device, "transpose_starts", long_starts ? "-DTRANSPOSE -DINDEX64" : "-DTRANSPOSE", X->type,
        rows + 1,
        KI_PACK(transpose_starts, X, .start = &T->start, .key = key, .entries = X->nnz, .n = rows)));
done:
    return status;
}

#define AT(buffer) offsetof(struct ki_transpose, buffer)
const struct ki_slot_kind ki_slot_transpose = {
    .name = "the transpose of a matrix",
    KI_SLOT(struct ki_transpose, AT(start), AT(row), AT(value), KI_ROWS_BUFFERS(struct ki_transpose, rows))};
#undef AT

/* No entries: nothing to sort. */
static kiln_status fill_empty(struct ki_transpose *T, const kiln_matrix *X) {
    T->bands = 1;
    const kiln_status status = ki_device_alloc(X->device, &T->start, (X->cols + 1) * 4);
    return status == KILN_OK ? ki_derived_fill(X->device, &T->start, X->cols + 1, 0) : status;
}

/* All but the lists of its rows, which only passes need. */
static kiln_status fill(struct ki_transpose *T, const kiln_matrix *X, int64_t height, bool values,
                        bool long_starts) {
    kiln_device *device = X->device;
    struct ki_sort entries = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
    const int64_t value_bytes = values ? ki_type_bytes(X->type) : 0;
    const int64_t bands = ki_ceil_div(X->rows, height), rows = X->cols * bands;
    int bits = 0;
    kiln_status status;
    if ((X->nnz > INT32_MAX && !long_starts) || X->rows > INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT, "%s with %lld entries in %lld rows, but %d are the most",
                       ki_slot_transpose.name, (long long)X->nnz, (long long)X->rows, INT32_MAX);
    if (X->nnz == 0) return fill_empty(T, X);
    while ((rows - 1) >> bits) bits++;
    TRY(alloc_entries(&entries, device, X->nnz, value_bytes));
    TRY(alloc_entries(&other, device, X->nnz, value_bytes));
    TRY(list_entries(&entries, X, height, values));
    TRY(ki_sort(device, X->type, &entries, &other, X->nnz, bits));
    ki_sort_drop(device, &other);
    TRY(find_starts(T, X, &entries.key, rows, long_starts));
    T->bands = bands;
    T->row = entries.payload;
    T->value = entries.value;
    entries.payload = entries.value = (struct ki_buffer){0};
done:
    ki_sort_drop(device, &entries);
    ki_sort_drop(device, &other);
    return status;
}

kiln_status ki_transpose_make(const kiln_matrix *X, bool values) {
    struct ki_transpose *T = ki_slot_new(&ki_slot_transpose);
    if (!T) return KILN_ERR_NOMEM;
    kiln_status status = fill(T, X, band_height(X), values, false);
    const int64_t rows = X->cols * T->bands;
    T->rows.longest = INT32_MAX;
    if (status == KILN_OK && X->nnz > 0)
        status = ki_rows_list(&T->rows, X->device, &T->start, rows, ki_rows_lengths(X->device, X->nnz, rows),
                              true);
    return ki_slot_keep(X, &ki_slot_transpose, T, status);
}

kiln_status ki_columns_fill_gpu(struct ki_columns_copy *copy, const kiln_matrix *X, bool values,
                                bool long_starts) {
    struct ki_transpose T = {0};
    const kiln_status status = fill(&T, X, X->rows, values, long_starts);
    *copy = (struct ki_columns_copy){T.start, T.row, T.value};
    return status;
}
