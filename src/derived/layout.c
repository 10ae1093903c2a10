/* What is derived from a sparse matrix: when which part is due, and undoing it. */
#include "core/seams.h"
#include "core/size.h"
#include "derived/layout_parts.h"

/* A build with a low limit for 32-bit offsets is one for tests: everything happens at small sizes there, and at once. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { POPULAR_ENTRIES = 64, ROWS_ENTRIES = 16, CACHED = 1 << 10, DUE = 1 };
#else
enum {
    POPULAR_ENTRIES = 1 << 20, /* fewer are multiplied in less time than is saved */
    ROWS_ENTRIES = 1 << 16,    /* fewer are not looked at */
    CACHED = 20 << 20, /* bytes of y that, with as many of w, stay in the second cache level without panels */
    DUE = 2            /* the pass that makes it */
};
#endif
enum { GROUP = 256 };

/* Parts of X's entries that the columns on chip must hold for these to be worth it, and where strips are there instead. */
static const double CHIP_SHARE = 0.1, CHIP_SHARE_STRIPS = 0.4;

int ki_layout_vector(const kiln_device *device, int64_t nnz, int64_t rows) {
    const double mean = (double)nnz / (double)ki_max(rows, 1);
    int VS = 1;
    while (VS * (mean > 32 ? 6 : VS > 1 ? 5.5 : 5) < mean && VS < (device->properties.is_gpu ? 32 : 4))
        VS *= 2;
    return VS;
}

/* ---- launches ---- */

kiln_status ki_layout_for_all(kiln_device *device, const char *function, const char *defines, kiln_type type,
                              int64_t n, const struct ki_arg *args, int count) {
    struct ki_kernel *kernel;
    kiln_status status = ki_kernel_get(&kernel, device, "layout", function, type, defines);
    if (status != KILN_OK) return status;
    return ki_kernel_launch(device, kernel, ki_min(ki_ceil_div(n, GROUP), 1 << 15), GROUP, args, count);
}

kiln_status ki_layout_in_ranges(kiln_device *device, const char *function, const char *defines,
                                kiln_type type, int64_t n, const struct ki_arg *args, int count) {
    struct ki_kernel *kernel;
    int64_t chunk;
    kiln_status status = ki_kernel_get(&kernel, device, "layout", function, type, defines);
    if (status != KILN_OK) return status;
    return ki_kernel_launch(device, kernel, ki_ranges(&chunk, n) / KI_RANGE_GROUP, KI_RANGE_GROUP, args,
                            count);
}

kiln_status ki_layout_number_at(int32_t *value, kiln_device *device, const struct ki_buffer *from,
                                int64_t i) {
    return ki_device_download(device, value, from, i * 4, 4);
}

kiln_status ki_layout_zero(const kiln_matrix *X, const struct ki_buffer *values, int64_t n) {
    const struct ki_arg args[] = {ki_arg_buffer(values), ki_arg_i64(n)};
    return ki_layout_for_all(X->device, "zero", "-DPACK", X->type, n, args, 2);
}

kiln_status ki_layout_work(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    if (buffer->bytes >= bytes) return KILN_OK;
    ki_device_release(device, buffer);
    return ki_device_alloc(device, buffer, bytes);
}

/* ---- making and undoing it ---- */

static int64_t bytes_of_rows(const struct ki_rows *rows) {
    return rows->list.bytes + rows->segment_row.bytes + rows->segment_number.bytes;
}

static int64_t bytes_of(const struct ki_layout *layout) {
    const struct ki_transpose *T = &layout->transpose;
    const struct ki_tiles *tiles = &layout->tiles;
    int64_t bytes = bytes_of_rows(&layout->rows) + layout->slots.bytes + layout->col.bytes + T->row.bytes +
                    T->value.bytes + T->columns.bytes + tiles->start.bytes + tiles->entry.bytes +
                    tiles->value.bytes + bytes_of_rows(&tiles->pieces) + layout->strips.start.bytes +
                    layout->strips.entry.bytes + layout->strips.value.bytes;
    const struct ki_bands *const parts[] = {&T->cut, &T->whole};
    for (int i = 0; i < 2; i++) bytes += parts[i]->start.bytes + bytes_of_rows(&parts[i]->rows);
    return bytes;
}

/* Columns get their numbers back, unless X goes as well, and everything is freed. */
static kiln_status drop(kiln_matrix *X, bool restore) {
    struct ki_layout *layout = X->layout;
    kiln_device *device = X->device;
    kiln_status status = KILN_OK;
    if (layout->col.handle)
        X->col = layout->plain;
    else if (restore && layout->coded && !device->lost)
        status = ki_layout_decode(layout, X);
    struct ki_buffer *const parts[] = {&layout->col,      &layout->slots,    &layout->y_hot,
                                       &layout->w_hot,    &layout->dots,     &layout->factors,
                                       &layout->partials, &layout->band_sums};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) ki_device_release(device, parts[i]);
    ki_layout_drop_rows(device, &layout->rows);
    ki_layout_drop_transpose(device, &layout->transpose);
    ki_layout_drop_tiles(device, &layout->tiles);
    ki_layout_drop_strips(device, &layout->strips);
    device->statistics.layout_bytes -= layout->bytes;
    X->layout = NULL;
    ki_free(layout);
    return status;
}

static kiln_status start(const kiln_matrix *X) {
    struct ki_layout *layout = ki_calloc(sizeof *layout);
    if (!layout) return ki_fail_nomem(sizeof *layout, "a layout");
    layout->rows.longest = INT32_MAX;
    kiln_matrix *owner = (kiln_matrix *)(uintptr_t)X; /* its value stays as it is */
    owner->layout = layout;
    owner->layout_drop = drop;
    return KILN_OK;
}

static kiln_status find_alike(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer found = {0};
    int32_t differs = 0;
    float first32;
    kiln_status status;
    TRY(ki_device_alloc(device, &found, 4));
    TRY(ki_device_upload(device, &found, 0, &differs, 4));
    const struct ki_arg args[] = {ki_arg_buffer(&found), ki_arg_buffer(&X->values), ki_arg_i64(X->nnz)};
    TRY(ki_layout_for_all(device, "values_differ", "-DALIKE", X->type, X->nnz, args, 3));
    TRY(ki_layout_number_at(&differs, device, &found, 0));
    if (differs) goto done;
    if (X->type == KILN_F32) {
        TRY(ki_device_download(device, &first32, &X->values, 0, 4));
        layout->value = first32;
    } else {
        TRY(ki_device_download(device, &layout->value, &X->values, 0, 8));
    }
    layout->alike = true;
done:
    ki_device_release(device, &found);
    return status;
}

static bool is_cached(const kiln_matrix *X) {
    return X->cols * ki_type_bytes(X->type) <= CACHED;
}

bool ki_layout_strips_expected(const kiln_matrix *X) {
    return X->nnz >= POPULAR_ENTRIES && !X->view && is_cached(X) && ki_strips_suit(X);
}

/* several: columns of y, of which strips serve one. */
static kiln_status make_columns(struct ki_layout *layout, const kiln_matrix *X, bool several, int64_t chip) {
    const bool alike = layout->rows.ends[KI_ROW_LISTS - 1] == 0 && layout->rows.segments == 0;
    const bool strips = !several && alike && ki_layout_strips_expected(X);
    kiln_status status;
    layout->ranked = true;
    TRY(ki_layout_popular(layout, X, chip, strips ? CHIP_SHARE_STRIPS : CHIP_SHARE));
    if (X->device->options.deterministic) return KILN_OK;
    if (strips && !layout->coded) return ki_layout_strips(layout, X);
    const bool cached = layout->coded ? X->cols <= layout->coded : is_cached(X);
    /* Offsets into tiles are of 32 bits, and a group's last turn reaches beyond its piece. */
    if (!cached && X->nnz <= INT32_MAX - KI_PIECE && X->rows <= INT32_MAX) TRY(ki_layout_tiles(layout, X));
done:
    return status;
}

static void tell(const struct ki_layout *layout, const kiln_matrix *X, double seconds) {
    const double memory = (double)(X->row_start.bytes + X->col.bytes + X->values.bytes);
    if (X->view || (layout->bytes == 0 && !layout->alike)) return; /* a panel's is made in every pass */
    ki_device_message(X->device,
                      "layout of a sparse matrix, %lld x %lld: %lld popular columns, %lld entries %s, %lld "
                      "long rows or pieces "
                      "of them%s; %.3f s, %.3f of its memory",
                      (long long)X->rows, (long long)X->cols, (long long)layout->coded,
                      (long long)(layout->transposed || layout->stripped ? X->nnz : layout->tiles.entries),
                      layout->transposed ? "transposed"
                      : layout->stripped ? "in strips"
                                         : "in tiles",
                      (long long)layout->rows.ends[KI_ROW_LISTS - 1] + (long long)layout->rows.segments,
                      layout->alike ? ", all values alike" : "", seconds, (double)layout->bytes / memory);
}

struct due {
    bool alike, transpose, columns, several;
};

static kiln_status make(struct ki_layout *layout, const kiln_matrix *X, struct due due, int64_t chip) {
    kiln_status status = KILN_OK;
    if (due.alike) TRY(find_alike(layout, X));
    if (due.transpose) TRY(ki_layout_transpose(layout, X));
    if (due.columns) TRY(make_columns(layout, X, due.several, chip));
done:
    /* What a deterministic pass needs is the transpose: the rest changes no order of sums. */
    if (status == KILN_ERR_DEVICE_NOMEM && (!X->device->options.deterministic || layout->transposed)) {
        ki_device_message(X->device, "no memory left for the layout of a sparse matrix: %s",
                          kiln_last_error()->message);
        return KILN_OK;
    }
    return status;
}

kiln_status ki_layout_get(struct ki_layout **found, const kiln_matrix *X, bool scatters, bool several,
                          int64_t chip_columns) {
    kiln_device *device = X->device;
    const double began = ki_clock();
    kiln_status status = KILN_OK;
    if (!X->layout) TRY(start(X));
    struct ki_layout *layout = X->layout;
    const bool first = layout->passes == 0, again = scatters && layout->passes + 1 >= DUE;
    const bool rows_due = first && X->nnz >= ROWS_ENTRIES && X->rows <= INT32_MAX && !X->view;
    const bool exact = device->options.deterministic && scatters && !layout->transposed && X->nnz > 0;
    const bool second = exact || (again && layout->passes + 1 == DUE);
    const struct due due = {.alike = second && X->nnz >= ROWS_ENTRIES && !X->view && !layout->alike,
                            .transpose = exact,
                            .columns = again && !layout->ranked && X->nnz >= POPULAR_ENTRIES &&
                                       X->cols > chip_columns,
                            .several = several};
    layout->passes += scatters || first;
    if (rows_due)
        TRY(ki_layout_rows(&layout->rows, device, &X->row_start, X->rows,
                           ki_layout_lengths(device, X->nnz, X->rows), false));
    TRY(make(layout, X, due, chip_columns));
    if (rows_due || due.alike || due.transpose || due.columns) {
        TRY(device->backend->sync(device));
        device->statistics.layout_bytes += bytes_of(layout) - layout->bytes;
        layout->bytes = bytes_of(layout);
        device->statistics.layout_seconds += ki_clock() - began;
        tell(layout, X, ki_clock() - began);
    }
    *found = layout;
    return KILN_OK;
done:
    if (X->layout) (void)ki_matrix_plain(X);
    return status;
}
