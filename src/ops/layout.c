/* Making a layout, piece by piece on the device, and undoing it. */
#include "ops/layout.h"

#include "core/kernels.h"
#include "core/seams.h"
#include "core/size.h"

/* A build with a low limit for 32-bit offsets is one for tests: everything happens at small sizes there, and at once. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { POPULAR_ENTRIES = 64, ROWS_ENTRIES = 16, CODED = 48, SEGMENTED = 40, DUE = 1 };
#else
enum {
    POPULAR_ENTRIES = 1 << 20,  /* fewer are multiplied in less time than is saved */
    ROWS_ENTRIES = 1 << 16,     /* fewer are not looked at */
    CODED = 1 << 21,            /* columns whose y and w stay in the second cache level */
    SEGMENTED = KI_SEGMENT / 2, /* entries that one warp would walk through for long */
    DUE = 2                     /* the pass that makes it */
};
#endif
enum { KEY_BITS = 18, KEY_MOST = (1 << KEY_BITS) - 1, GROUP = 256, TURNS = 8 };

/* Parts of X's entries that the columns on chip must hold to be worth it, and of X's memory that the transpose may take. */
static const double CHIP_SHARE = 0.1, RARE_MEMORY = 0.19;

int ki_layout_vector(const kiln_device *device, int64_t nnz, int64_t rows) {
    const double mean = (double)nnz / (double)ki_max(rows, 1);
    int VS = 1;
    while (VS * (mean > 32 ? 6 : 4) < mean && VS < (device->properties.is_gpu ? 32 : 4)) VS *= 2;
    return VS;
}

/* Launches one of layout.cl's kernels: n elements, a thread each up to a grid that strides. */
static kiln_status for_all(kiln_device *device, const char *function, const char *defines, kiln_type type,
                           int64_t n, const struct ki_arg *args, int count) {
    struct ki_kernel *kernel;
    kiln_status status = ki_kernel_get(&kernel, device, "layout", function, type, defines);
    if (status != KILN_OK) return status;
    return ki_kernel_launch(device, kernel, ki_min(ki_ceil_div(n, GROUP), 1 << 15), GROUP, args, count);
}

static kiln_status in_ranges(kiln_device *device, const char *function, const char *defines, kiln_type type,
                             int64_t n, const struct ki_arg *args, int count) {
    struct ki_kernel *kernel;
    int64_t chunk;
    kiln_status status = ki_kernel_get(&kernel, device, "layout", function, type, defines);
    if (status != KILN_OK) return status;
    return ki_kernel_launch(device, kernel, ki_ranges(&chunk, n) / KI_RANGE_GROUP, KI_RANGE_GROUP, args,
                            count);
}

static kiln_status fill(kiln_device *device, const struct ki_buffer *values, int64_t n, int value) {
    const struct ki_arg args[] = {ki_arg_buffer(values), ki_arg_i64(n), ki_arg_i32(value)};
    return for_all(device, "popular_fill", "-DPOPULAR", KILN_F32, n, args, 3);
}

static kiln_status number_at(int32_t *value, kiln_device *device, const struct ki_buffer *from, int64_t i) {
    return ki_device_download(device, value, from, i * 4, 4);
}

/* ---- rows ---- */

static void drop_rows(kiln_device *device, struct ki_rows *rows) {
    ki_device_release(device, &rows->list);
    ki_device_release(device, &rows->segment_row);
    ki_device_release(device, &rows->segment_number);
    *rows = (struct ki_rows){.longest = INT32_MAX};
}

/* A vector has its turn with a row of up to TURNS entries a thread; `compact` starts are of 32 bits. */
static kiln_status find_rows(struct ki_rows *rows, kiln_device *device, const struct ki_buffer *start,
                             int64_t count, int VS, bool compact) {
    const char *defines = compact ? "-DROWS -DSTART32" : "-DROWS";
    struct ki_buffer counter = {0};
    int32_t longer, both;
    int64_t chunk;
    const int64_t threads = ki_ranges(&chunk, count);
    const int longest = (int)ki_min(TURNS * VS, SEGMENTED);
    kiln_status status;
    TRY(ki_device_alloc(device, &counter, (2 * threads + 1) * 4));
    const struct ki_arg counts[] = {ki_arg_buffer(&counter), ki_arg_buffer(start),  ki_arg_i64(count),
                                    ki_arg_i32(longest),     ki_arg_i32(SEGMENTED), ki_arg_i32(KI_SEGMENT),
                                    ki_arg_i64(chunk)};
    TRY(in_ranges(device, "rows_count", defines, KILN_F32, count, counts, 7));
    TRY(ki_scan(device, KILN_F32, &counter, 2 * threads));
    TRY(number_at(&longer, device, &counter, threads));
    TRY(number_at(&both, device, &counter, 2 * threads));
    if (both > 0) {
        TRY(ki_device_alloc(device, &rows->list, (int64_t)longer * 4));
        TRY(ki_device_alloc(device, &rows->segment_row, (int64_t)(both - longer) * 4));
        TRY(ki_device_alloc(device, &rows->segment_number, (int64_t)(both - longer) * 4));
        const struct ki_arg lists[] = {ki_arg_buffer(&rows->list),
                                       ki_arg_buffer(&rows->segment_row),
                                       ki_arg_buffer(&rows->segment_number),
                                       ki_arg_buffer(&counter),
                                       ki_arg_buffer(start),
                                       ki_arg_i64(count),
                                       ki_arg_i32(longest),
                                       ki_arg_i32(SEGMENTED),
                                       ki_arg_i32(KI_SEGMENT),
                                       ki_arg_i32(longer),
                                       ki_arg_i64(chunk)};
        TRY(in_ranges(device, "rows_list", defines, KILN_F32, count, lists, 11));
        rows->longest = longest;
        rows->longer = longer;
        rows->segments = both - longer;
    }
done:
    ki_device_release(device, &counter);
    if (status != KILN_OK) drop_rows(device, rows);
    return status;
}

/* ---- popular columns ---- */

/* The columns in descending order of their frequency. */
static kiln_status rank_columns(struct ki_sort *sorted, struct ki_sort *other, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer count = {0};
    const int64_t n = X->cols;
    struct ki_buffer *const parts[] = {&sorted->key, &sorted->payload, &other->key, &other->payload};
    kiln_status status;
    TRY(ki_device_alloc(device, &count, n * 4));
    TRY(fill(device, &count, n, 0));
    const struct ki_arg counts[] = {ki_arg_buffer(&count), ki_arg_buffer(&X->col), ki_arg_i64(X->nnz)};
    TRY(for_all(device, "popular_count", "-DPOPULAR", KILN_F32, X->nnz, counts, 3));
    for (int i = 0; i < 4; i++) TRY(ki_device_alloc(device, parts[i], n * 4));
    const struct ki_arg keys[] = {ki_arg_buffer(&sorted->key), ki_arg_buffer(&sorted->payload),
                                  ki_arg_buffer(&count), ki_arg_i64(n), ki_arg_i32(KEY_MOST)};
    TRY(for_all(device, "popular_keys", "-DPOPULAR", KILN_F32, n, keys, 5));
    TRY(ki_sort(device, KILN_F32, sorted, other, n, KEY_BITS));
done:
    ki_device_release(device, &count);
    return status;
}

/* Entries outside the first `chip` columns, and outside those that may be coded. A frequency beyond KEY_MOST counts as that
 * many, but such columns are among the first. */
struct shares {
    double off_chip, rare[4];
};

static kiln_status find_shares(struct shares *shares, const struct ki_sort *sorted, const kiln_matrix *X,
                               int64_t chip) {
    int32_t *key = ki_alloc((size_t)X->cols * 4);
    kiln_status status;
    if (!key) return ki_fail_nomem((size_t)X->cols * 4, "the counts of columns");
    TRY(ki_device_download(X->device, key, &sorted->key, 0, X->cols * 4));
    *shares = (struct shares){0};
    for (int64_t s = 0; s < X->cols; s++) {
        if (s >= chip) shares->off_chip += KEY_MOST - key[s];
        for (int i = 0; i < 4; i++)
            if (s >= (int64_t)CODED + CODED / 2 * i) shares->rare[i] += KEY_MOST - key[s];
    }
done:
    ki_free(key);
    return status;
}

/* The least number of popular columns that leaves few enough entries for their transpose to be made; with none, `rare` is
 * -1 and the caches decide. */
static int64_t choose_coded(double *rare, const struct shares *shares, const kiln_matrix *X) {
    const int64_t element = X->values.handle ? ki_type_bytes(X->type) : 0;
    const double memory = RARE_MEMORY * (double)(X->nnz * (4 + element) + 8 * X->rows);
    for (int i = 0; i < 4; i++) {
        const double entries = shares->rare[i];
        if (entries * (double)(4 + element) + 4.0 * (double)X->cols > memory) continue;
        *rare = entries;
        return ki_min(X->cols, (int64_t)CODED + CODED / 2 * i);
    }
    *rare = -1;
    return ki_min(X->cols, CODED);
}

/* Entries of popular columns get their slot in place of the column. */
static kiln_status encode(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_buffer rank = {0};
    kiln_status status;
    TRY(ki_device_alloc(device, &rank, X->cols * 4));
    TRY(fill(device, &rank, X->cols, -1));
    const struct ki_arg ranks[] = {ki_arg_buffer(&rank), ki_arg_buffer(&layout->slots),
                                   ki_arg_i64(layout->coded)};
    TRY(for_all(device, "popular_rank", "-DPOPULAR", KILN_F32, layout->coded, ranks, 3));
    const struct ki_arg codes[] = {ki_arg_buffer(&X->col), ki_arg_buffer(&rank), ki_arg_i64(X->nnz)};
    TRY(for_all(device, "popular_encode", "-DPOPULAR", KILN_F32, X->nnz, codes, 3));
done:
    ki_device_release(device, &rank);
    return status;
}

static kiln_status copy_slots(struct ki_layout *layout, kiln_device *device, const struct ki_sort *sorted) {
    /* Only the head of the order is kept. */
    int32_t *slots = ki_alloc((size_t)layout->coded * 4);
    kiln_status status;
    if (!slots) return ki_fail_nomem((size_t)layout->coded * 4, "the popular columns");
    TRY(ki_device_download(device, slots, &sorted->payload, 0, layout->coded * 4));
    TRY(ki_device_alloc(device, &layout->slots, layout->coded * 4));
    TRY(ki_device_upload(device, &layout->slots, 0, slots, layout->coded * 4));
done:
    ki_free(slots);
    return status;
}

static void drop_sort(kiln_device *device, struct ki_sort *sort) {
    ki_device_release(device, &sort->key);
    ki_device_release(device, &sort->payload);
    ki_device_release(device, &sort->value);
}

static kiln_status make_popular(struct ki_layout *layout, double *rare, const kiln_matrix *X, int64_t chip) {
    struct ki_sort sorted = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
    struct shares shares = {0};
    kiln_status status;
    TRY(rank_columns(&sorted, &other, X));
    TRY(find_shares(&shares, &sorted, X, chip));
    if (shares.off_chip > (1 - CHIP_SHARE) * (double)X->nnz) goto done;
    layout->coded = choose_coded(rare, &shares, X);
    TRY(copy_slots(layout, X->device, &sorted));
    drop_sort(X->device, &other);
    TRY(encode(layout, X));
done:
    drop_sort(X->device, &sorted);
    drop_sort(X->device, &other);
    return status;
}

/* ---- the transpose of what is not coded ---- */

static kiln_status alloc_entries(kiln_device *device, struct ki_sort *sort, int64_t n, int64_t element) {
    kiln_status status;
    TRY(ki_device_alloc(device, &sort->key, n * 4));
    TRY(ki_device_alloc(device, &sort->payload, n * 4));
    if (element) TRY(ki_device_alloc(device, &sort->value, n * element));
done:
    return status;
}

static kiln_status gather_rare(struct ki_sort *entries, struct ki_sort *other, int64_t *rare,
                               const kiln_matrix *X) {
    kiln_device *device = X->device;
    const int64_t element = X->values.handle ? ki_type_bytes(X->type) : 0;
    struct ki_buffer counter = {0};
    int64_t chunk;
    const int64_t threads = ki_ranges(&chunk, X->nnz);
    int32_t found;
    kiln_status status;
    TRY(ki_device_alloc(device, &counter, (threads + 1) * 4));
    const struct ki_arg counts[] = {ki_arg_buffer(&counter), ki_arg_buffer(&X->col), ki_arg_i64(X->nnz),
                                    ki_arg_i64(chunk)};
    TRY(in_ranges(device, "rare_count", "-DRARE", X->type, X->nnz, counts, 4));
    TRY(ki_scan(device, X->type, &counter, threads));
    TRY(number_at(&found, device, &counter, threads));
    *rare = found;
    TRY(alloc_entries(device, entries, found, element));
    TRY(alloc_entries(device, other, found, element));
    const struct ki_arg moves[] = {ki_arg_buffer(&counter),
                                   ki_arg_buffer(&X->row_start),
                                   ki_arg_buffer(&X->col),
                                   ki_arg_buffer(element ? &X->values : NULL),
                                   ki_arg_i64(X->rows),
                                   ki_arg_buffer(&entries->key),
                                   ki_arg_buffer(&entries->payload),
                                   ki_arg_buffer(element ? &entries->value : NULL),
                                   ki_arg_i64(X->nnz),
                                   ki_arg_i64(chunk)};
    TRY(in_ranges(device, "rare_move", "-DRARE", X->type, X->nnz, moves, 10));
done:
    ki_device_release(device, &counter);
    return status;
}

static kiln_status make_rare(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_sort entries = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
    int bits = 0;
    kiln_status status;
    while ((X->cols - 1) >> bits) bits++;
    TRY(gather_rare(&entries, &other, &layout->rare, X));
    TRY(ki_sort(device, X->type, &entries, &other, layout->rare, bits));
    drop_sort(device, &other);
    TRY(ki_device_alloc(device, &layout->start, (X->cols + 1) * 4));
    const struct ki_arg starts[] = {ki_arg_buffer(&layout->start), ki_arg_buffer(&entries.key),
                                    ki_arg_i64(layout->rare), ki_arg_i64(X->cols)};
    TRY(for_all(device, "rare_starts", "-DRARE", X->type, X->cols + 1, starts, 4));
    TRY(find_rows(&layout->rare_rows, device, &layout->start, X->cols,
                  ki_layout_vector(device, layout->rare, X->cols), true));
    layout->row = entries.payload;
    layout->value = entries.value;
    entries.payload = entries.value = (struct ki_buffer){0};
    layout->transposed = true;
done:
    drop_sort(device, &entries);
    drop_sort(device, &other);
    return status;
}

/* ---- the whole ---- */

static int64_t bytes_of(const struct ki_layout *layout) {
    const struct ki_buffer *const parts[] = {&layout->slots,
                                             &layout->start,
                                             &layout->row,
                                             &layout->value,
                                             &layout->rows.list,
                                             &layout->rows.segment_row,
                                             &layout->rows.segment_number,
                                             &layout->rare_rows.list,
                                             &layout->rare_rows.segment_row,
                                             &layout->rare_rows.segment_number};
    int64_t bytes = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) bytes += parts[i]->bytes;
    return bytes;
}

/* Columns get their numbers back, and everything is freed. */
static kiln_status drop(kiln_matrix *X) {
    struct ki_layout *layout = X->layout;
    kiln_device *device = X->device;
    kiln_status status = KILN_OK;
    if (layout->coded && !device->lost) {
        const struct ki_arg args[] = {ki_arg_buffer(&X->col), ki_arg_buffer(&layout->slots),
                                      ki_arg_i64(X->nnz)};
        status = for_all(device, "popular_decode", "-DPOPULAR", KILN_F32, X->nnz, args, 3);
        if (status == KILN_OK) status = device->backend->sync(device);
    }
    struct ki_buffer *const parts[] = {&layout->slots, &layout->start, &layout->row,     &layout->value,
                                       &layout->y_hot, &layout->w_hot, &layout->factors, &layout->partials};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) ki_device_release(device, parts[i]);
    drop_rows(device, &layout->rows);
    drop_rows(device, &layout->rare_rows);
    device->statistics.layout_bytes -= layout->bytes;
    X->layout = NULL;
    ki_free(layout);
    return status;
}

static kiln_status start(const kiln_matrix *X) {
    struct ki_layout *layout = ki_calloc(sizeof *layout);
    if (!layout) return ki_fail_nomem(sizeof *layout, "a layout");
    layout->rows.longest = layout->rare_rows.longest = INT32_MAX;
    kiln_matrix *owner = (kiln_matrix *)(uintptr_t)X; /* its value stays as it is */
    owner->layout = layout;
    owner->layout_drop = drop;
    return KILN_OK;
}

static kiln_status make_columns(struct ki_layout *layout, const kiln_matrix *X, int64_t chip) {
    const bool all = X->device->options.deterministic;
    double rare = all ? (double)X->nnz : -1;
    kiln_status status;
    if (all && X->nnz > INT32_MAX)
        return ki_fail(KILN_ERR_LIMIT, "a deterministic pass over %lld entries, but %d are the most",
                       (long long)X->nnz, INT32_MAX);
    if (!all) TRY(make_popular(layout, &rare, X, chip));
    if (rare >= 0 && X->nnz <= INT32_MAX && X->rows <= INT32_MAX) TRY(make_rare(layout, X));
done:
    return status;
}

static void tell(const struct ki_layout *layout, const kiln_matrix *X, double seconds) {
    const double memory = (double)(X->row_start.bytes + X->col.bytes + X->values.bytes);
    if (layout->bytes == 0) return;
    ki_device_message(
        X->device,
        "layout of a sparse matrix, %lld x %lld: %lld popular columns, %lld entries transposed, %lld long "
        "rows or pieces of them; %.3f s, %.3f of its memory",
        (long long)X->rows, (long long)X->cols, (long long)layout->coded, (long long)layout->rare,
        (long long)layout->rows.longer + (long long)layout->rows.segments, seconds,
        (double)layout->bytes / memory);
}

kiln_status ki_layout_get(struct ki_layout **found, const kiln_matrix *X, bool scatters, int64_t chip_columns,
                          int VS) {
    kiln_device *device = X->device;
    const double began = ki_clock();
    const bool deterministic = device->options.deterministic;
    kiln_status status = KILN_OK;
    if (!X->layout) TRY(start(X));
    struct ki_layout *layout = X->layout;
    const bool rows_due = layout->passes == 0 && X->nnz >= ROWS_ENTRIES && X->rows <= INT32_MAX && !X->view;
    const bool columns_due =
        scatters && !layout->transposed && !layout->coded && X->nnz > 0 &&
        (deterministic || (layout->passes + 1 == DUE && X->nnz >= POPULAR_ENTRIES && X->cols > chip_columns));
    layout->passes += scatters || layout->passes == 0;
    if (rows_due) TRY(find_rows(&layout->rows, device, &X->row_start, X->rows, VS, false));
    if (columns_due) status = make_columns(layout, X, chip_columns);
    if (status == KILN_ERR_DEVICE_NOMEM && !deterministic) {
        ki_device_message(device, "no memory left for the layout of a sparse matrix: %s",
                          kiln_last_error()->message);
        status = KILN_OK;
    }
    if (status != KILN_OK) goto done;
    if (rows_due || columns_due) {
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

kiln_status ki_layout_work(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    if (buffer->bytes >= bytes) return KILN_OK;
    ki_device_release(device, buffer);
    return ki_device_alloc(device, buffer, bytes);
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
    TRY(for_all(device, "pack_hot", "-DPACK", X->type, n, args, 8));
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
    return for_all(X->device, "unpack_hot", "-DPACK", X->type, layout->coded * columns, args, 7);
}
