/* The transpose of X, in compressed columns: its entries are sorted by column, and keep the order of their rows.
 *
 * A column gathers the rows' factors, and that costs more than all that is streamed where they come from memory or from the
 * second cache level. So columns are cut into bands of rows, each transposed for itself, and the bands' sums are added
 * afterwards, in order. Where columns are so few that each has entries in every part of the rows, the first cache level holds
 * a band's factors. Else the second does, and columns that have too little in a band stay whole. */
#include "core/size.h"
#include "derived/layout_parts.h"

/* Bytes of a band's factors, and a column's entries in a band that are worth a sum of their own. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { NEAR_BYTES = 128, NEAR_ENTRIES = 2, CACHED_BYTES = 1024, CACHED_ENTRIES = 2 };
#else
enum { NEAR_BYTES = 1 << 16, NEAR_ENTRIES = 16, CACHED_BYTES = 24 << 20, CACHED_ENTRIES = 1 };
#endif

/* How columns are cut: into `bands` of `height` rows, all of them or, if `mixed`, those of `least` entries or more; `columns`
 * are. */
struct cut {
    bool near, mixed;
    int64_t height, bands, least, columns;
};

static struct cut choose(const kiln_matrix *X) {
    const int64_t element = ki_type_bytes(X->type), near = ki_ceil_div(X->rows, NEAR_BYTES / element);
    struct cut cut = {.near = near > 1 && X->cols <= X->nnz / near / NEAR_ENTRIES, .columns = X->cols};
    cut.height = (cut.near ? NEAR_BYTES : CACHED_BYTES) / element;
    cut.bands = ki_ceil_div(X->rows, cut.height);
    cut.least = cut.bands * CACHED_ENTRIES;
    /* Bands have numbers of 32 bits, one for each column at least and for each entry at most. */
    cut.mixed = !cut.near && cut.bands > 1 && X->cols <= INT32_MAX - X->nnz;
    if (cut.near || cut.mixed) return cut;
    cut.height = X->rows;
    cut.bands = 1;
    return cut;
}

static kiln_status alloc_entries(struct ki_sort *sort, kiln_device *device, int64_t n, int64_t value_bytes) {
    kiln_status status;
    TRY(ki_device_alloc(device, &sort->key, n * 4));
    TRY(ki_device_alloc(device, &sort->payload, n * 4));
    if (value_bytes) TRY(ki_device_alloc(device, &sort->value, n * value_bytes));
done:
    return status;
}

static kiln_status find_starts(kiln_device *device, kiln_type type, const struct ki_buffer *start,
                               const struct ki_buffer *key, int64_t entries, int64_t rows, int64_t base) {
    const struct ki_arg args[] = {ki_arg_buffer(start), ki_arg_buffer(key), ki_arg_i64(entries),
                                  ki_arg_i64(rows), ki_arg_i32((int32_t)base)};
    return ki_layout_for_all(device, "transpose_starts", "-DTRANSPOSE", type, rows + 1, args, 5);
}

/* In `list` the columns that are cut, then the others; in `number` that of each one's first band. */
static kiln_status list_columns(struct ki_buffer *list, struct ki_buffer *number, struct cut *cut,
                                const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_sort columns = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
    struct ki_buffer start = {0};
    int32_t cut_columns;
    kiln_status status;
    TRY(alloc_entries(&columns, device, X->cols, 0));
    TRY(alloc_entries(&other, device, X->cols, 0));
    TRY(ki_layout_count(&other.key, X));
    const struct ki_arg args[] = {ki_arg_buffer(&columns.key), ki_arg_buffer(&columns.payload),
                                  ki_arg_buffer(&other.key), ki_arg_i64(X->cols), ki_arg_i64(cut->least)};
    TRY(ki_layout_for_all(device, "transpose_columns", "-DTRANSPOSE", X->type, X->cols, args, 5));
    TRY(ki_sort(device, X->type, &columns, &other, X->cols, 1));
    TRY(ki_device_alloc(device, &start, 2 * 4));
    TRY(find_starts(device, X->type, &start, &columns.key, X->cols, 1, 1));
    TRY(ki_layout_number_at(&cut_columns, device, &start, 0));
    cut->columns = cut_columns;
    const struct ki_arg numbers[] = {ki_arg_buffer(&other.key), ki_arg_buffer(&columns.payload),
                                     ki_arg_i64(X->cols), ki_arg_i64(cut->columns), ki_arg_i64(cut->bands)};
    TRY(ki_layout_for_all(device, "transpose_numbers", "-DTRANSPOSE", X->type, X->cols, numbers, 5));
    *list = columns.payload;
    *number = other.key;
    columns.payload = other.key = (struct ki_buffer){0};
done:
    ki_device_release(device, &start);
    ki_sort_drop(device, &columns);
    ki_sort_drop(device, &other);
    return status;
}

static kiln_status list_entries(struct ki_sort *entries, const struct ki_buffer *number,
                                const struct cut *cut, const kiln_matrix *X, bool values) {
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
                                  ki_arg_buffer(cut->mixed ? number : NULL),
                                  ki_arg_i32((int32_t)cut->columns),
                                  ki_arg_i32((int32_t)cut->height)};
    return ki_layout_in_ranges(X->device, "transpose_list", "-DTRANSPOSE", X->type, X->nnz, args, 12);
}

/* `count` bands of so many columns, from `first` of the list on; `base` bands come before. */
static kiln_status make_bands(struct ki_bands *bands, const kiln_matrix *X, const struct ki_buffer *key,
                              int64_t base) {
    kiln_device *device = X->device;
    const int64_t rows = bands->columns * bands->count;
    int32_t begin, end;
    kiln_status status = KILN_OK;
    bands->rows.longest = INT32_MAX;
    if (rows == 0) goto done;
    TRY(ki_device_alloc(device, &bands->start, (rows + 1) * 4));
    TRY(find_starts(device, X->type, &bands->start, key, X->nnz, rows, base));
    TRY(ki_layout_number_at(&begin, device, &bands->start, 0));
    TRY(ki_layout_number_at(&end, device, &bands->start, rows));
    bands->entries = end - begin;
    TRY(ki_layout_rows(&bands->rows, device, &bands->start, rows,
                       ki_layout_lengths(device, bands->entries, rows), true));
done:
    return status;
}

void ki_layout_drop_transpose(kiln_device *device, struct ki_transpose *T) {
    struct ki_buffer *const parts[] = {&T->row, &T->value, &T->columns, &T->cut.start, &T->whole.start};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) ki_device_release(device, parts[i]);
    ki_layout_drop_rows(device, &T->cut.rows);
    ki_layout_drop_rows(device, &T->whole.rows);
}

kiln_status ki_layout_transpose(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_transpose *T = &layout->transpose;
    struct ki_sort entries = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
    struct ki_buffer number = {0};
    const int64_t value_bytes = layout->alike ? 0 : ki_type_bytes(X->type);
    int bits = 0;
    kiln_status status;
    if (X->nnz > INT32_MAX || X->rows > INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT,
                       "a deterministic pass over %lld entries in %lld rows, but %d are the most",
                       (long long)X->nnz, (long long)X->rows, INT32_MAX);
    struct cut cut = choose(X);
    if (cut.mixed) TRY(list_columns(&T->columns, &number, &cut, X));
    const int64_t in_bands = cut.columns * cut.bands, rows = in_bands + X->cols - cut.columns;
    while ((rows - 1) >> bits) bits++;
    TRY(alloc_entries(&entries, device, X->nnz, value_bytes));
    TRY(alloc_entries(&other, device, X->nnz, value_bytes));
    TRY(list_entries(&entries, &number, &cut, X, !layout->alike));
    TRY(ki_sort(device, X->type, &entries, &other, X->nnz, bits));
    ki_sort_drop(device, &other);
    T->near = cut.near;
    T->cut = (struct ki_bands){.columns = cut.columns, .count = cut.bands};
    T->whole = (struct ki_bands){.columns = X->cols - cut.columns, .count = 1, .first = (int32_t)cut.columns};
    TRY(make_bands(&T->cut, X, &entries.key, 0));
    TRY(make_bands(&T->whole, X, &entries.key, in_bands));
    T->row = entries.payload;
    T->value = entries.value;
    entries.payload = entries.value = (struct ki_buffer){0};
    layout->transposed = true;
done:
    ki_device_release(device, &number);
    ki_sort_drop(device, &entries);
    ki_sort_drop(device, &other);
    if (status != KILN_OK) ki_layout_drop_transpose(device, T);
    return status;
}
