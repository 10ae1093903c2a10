/* Windows of rows by length, and equal shares, on a GPU: see links.cl. */
#include "derived/links.h"

#include "core/arguments.h"
#include "core/size.h"
#include "derived/links.cl"
#include "derived/parts.h"

KI_ARGUMENTS(links_mark);
KI_ARGUMENTS(links_order);
KI_ARGUMENTS(links_short);
KI_ARGUMENTS(links_list);
KI_ARGUMENTS(links_long);
KI_ARGUMENTS(links_blocks);
KI_ARGUMENTS(links_items);

enum { GROUP = 256, GROUPS_MOST = 1 << 15, LANES = 32 };

#define LAYOUT KI_DEFINES("-DLAYOUT -DBS=%d -DWINDOW=%d", GROUP, KI_WINDOW)

static kiln_status launch(kiln_device *device, const char *function, const char *defines, kiln_type type,
                          int64_t groups, const struct ki_arg *args, int count) {
    return ki_kernel_run(device, "links", function, type, defines, ki_min(groups, GROUPS_MOST), GROUP, args,
                         count);
}

/* Rows and links by blocks in shares; the shares' start is filled. */
static kiln_status fill_items(struct ki_link_shares *shares, const kiln_matrix *A, int64_t rows,
                              int64_t links, const struct ki_columns *in) {
    kiln_device *device = A->device;
    shares->lanes = device->properties.shuffles ? LANES : (int)ki_min(64, device->properties.group_max);
    const int64_t of_share = (int64_t)shares->lanes * KI_SHARE_A_THREAD;
    shares->count = ki_ceil_div(rows * shares->blocks + links, of_share);
    const int64_t items = shares->count * of_share;
    kiln_status status;
    TRY(ki_device_alloc(device, &shares->item, items * 4));
    if (in->value) TRY(ki_device_alloc(device, &shares->weight, items * ki_type_bytes(A->type)));
    TRY(launch(device, "links_items", "-DBLOCKS -DBS=256", A->type, ki_ceil_div(rows * LANES, GROUP),
               KI_PACK(links_items, A, .to = &shares->item, .weight_to = in->value ? &shares->weight : NULL,
                       .block_start = &shares->start, .start = in->start, .source = in->row,
                       .weight = in->value, .rows = rows, .blocks = (int32_t)shares->blocks, .items = items,
                       .lanes = shares->lanes, .each = KI_SHARE_A_THREAD)));
done:
    return status;
}

kiln_status ki_link_shares_fill(struct ki_link_shares *shares, const kiln_matrix *A,
                                const struct ki_columns *in) {
    const int64_t n = A->cols, rows = n * shares->blocks;
    kiln_status status;
    TRY(ki_device_alloc(A->device, &shares->start, (rows + 1) * 4));
    TRY(launch(A->device, "links_blocks", "-DBLOCKS -DBS=256", A->type, ki_ceil_div(n, GROUP),
               KI_PACK(links_blocks, A, .block_start = &shares->start, .start = in->start, .source = in->row,
                       .n = n, .height = ki_ceil_div(A->rows, shares->blocks),
                       .blocks = (int32_t)shares->blocks)));
    TRY(ki_scan(A->device, A->type, &shares->start, rows));
    TRY(fill_items(shares, A, n, A->nnz, in));
done:
    return status;
}

/* Finds which rows are long, and how many links of long rows come before each row. */
static kiln_status mark(struct ki_windows *windows, struct ki_buffer *is_long, struct ki_buffer *links,
                        const kiln_matrix *A, const struct ki_buffer *start) {
    kiln_device *device = A->device;
    const int64_t n = A->cols;
    int32_t rows = 0, of_long = 0;
    kiln_status status;
    TRY(ki_device_alloc(device, is_long, (n + 1) * 4));
    TRY(ki_device_alloc(device, links, (n + 1) * 4));
    TRY(launch(device, "links_mark", LAYOUT, A->type, ki_ceil_div(n, GROUP),
               KI_PACK(links_mark, A, .is_long = is_long, .long_links = links, .start = start, .n = n,
                       .most = KI_LONG)));
    TRY(ki_scan(device, A->type, is_long, n));
    TRY(ki_scan(device, A->type, links, n));
    TRY(ki_number_at(&rows, device, is_long, n));
    TRY(ki_number_at(&of_long, device, links, n));
    windows->long_rows = rows;
    windows->long_links = of_long;
done:
    return status;
}

static kiln_status fill_short(struct ki_windows *windows, const kiln_matrix *A, const struct ki_columns *in,
                              const struct ki_buffer *links) {
    kiln_device *device = A->device;
    const int64_t n = A->cols, count = A->nnz - windows->long_links;
    kiln_status status;
    windows->height = KI_WINDOW;
    TRY(ki_device_alloc(device, &windows->place, n * 4));
    TRY(ki_device_alloc(device, &windows->start, (n + 1) * 4));
    TRY(ki_device_alloc(device, &windows->source, count * 4));
    if (in->value) TRY(ki_device_alloc(device, &windows->weight, count * ki_type_bytes(A->type)));
    TRY(launch(device, "links_order", LAYOUT, A->type, ki_ceil_div(n, KI_WINDOW),
               KI_PACK(links_order, A, .place = &windows->place, .short_start = &windows->start,
                       .start = in->start, .long_links = links, .n = n, .most = KI_LONG)));
    TRY(launch(device, "links_short", LAYOUT, A->type, ki_ceil_div(n, GROUP),
               KI_PACK(links_short, A, .to = &windows->source,
                       .weight_to = in->value ? &windows->weight : NULL, .place = &windows->place,
                       .short_start = &windows->start, .start = in->start, .source = in->row,
                       .weight = in->value, .n = n)));
done:
    return status;
}

static kiln_status fill_long(struct ki_windows *windows, const kiln_matrix *A, const struct ki_columns *in,
                             const struct ki_buffer *is_long, const struct ki_buffer *links) {
    kiln_device *device = A->device;
    const int64_t rows = windows->long_rows, count = windows->long_links;
    struct ki_buffer source = {0}, weight = {0};
    struct ki_columns of_long = {
        .start = &windows->shares.start, .row = &source, .value = in->value ? &weight : NULL};
    kiln_status status;
    windows->shares.blocks = 1;
    TRY(ki_device_alloc(device, &windows->long_row, rows * 4));
    TRY(ki_device_alloc(device, &windows->shares.start, (rows + 1) * 4));
    TRY(ki_device_alloc(device, &source, count * 4));
    if (in->value) TRY(ki_device_alloc(device, &weight, count * ki_type_bytes(A->type)));
    TRY(launch(device, "links_list", LAYOUT, A->type, ki_ceil_div(A->cols, GROUP),
               KI_PACK(links_list, A, .row = &windows->long_row, .row_start = &windows->shares.start,
                       .is_long = is_long, .long_links = links, .n = A->cols)));
    TRY(launch(device, "links_long", LAYOUT, A->type, rows,
               KI_PACK(links_long, A, .to = &source, .weight_to = of_long.value, .row = &windows->long_row,
                       .row_start = &windows->shares.start, .start = in->start, .source = in->row,
                       .weight = in->value, .rows = rows)));
    TRY(fill_items(&windows->shares, A, rows, count, &of_long));
done:
    ki_device_release(device, &source);
    ki_device_release(device, &weight);
    return status;
}

kiln_status ki_windows_fill_gpu(struct ki_windows *windows, const kiln_matrix *A,
                                const struct ki_columns *in) {
    struct ki_buffer is_long = {0}, links = {0};
    kiln_status status;
    TRY(mark(windows, &is_long, &links, A, in->start));
    TRY(fill_short(windows, A, in, &links));
    if (windows->long_rows) TRY(fill_long(windows, A, in, &is_long, &links));
done:
    ki_device_release(A->device, &is_long);
    ki_device_release(A->device, &links);
    return status;
}
