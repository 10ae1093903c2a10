/* Tiles: a stable distribution of the entries over panels of columns. A work-group counts and moves those of one block of
 * rows, in the order of the rows, so that the counters of all blocks, panel by panel, are at once where each tile begins. */
#include "core/size.h"
#include "derived/layout_parts.h"

/* A panel of y and one of w, of 16 MB each in f64, leave the second cache level (50 MB) room for what streams through. */
#if KILN_INDEX32_LIMIT < 1 << 20
enum { PANEL_BITS = 6, HEIGHT = 16 };
#else
enum { PANEL_BITS = 21, HEIGHT = 2048 };
#endif
enum { PANELS_MAX = 32, GROUP = 128 }; /* counters in local memory: as in layout.cl */

static void shape(struct ki_tiles *tiles, const kiln_matrix *X) {
    tiles->bits = PANEL_BITS;
    while (ki_ceil_div(X->cols, (int64_t)1 << tiles->bits) > PANELS_MAX) tiles->bits++;
    tiles->height = (int)ki_min(HEIGHT, (int64_t)1 << (32 - tiles->bits));
    tiles->panels = ki_ceil_div(X->cols, (int64_t)1 << tiles->bits);
    tiles->blocks = ki_ceil_div(X->rows, tiles->height);
}

static kiln_status distribute(struct ki_layout *layout, const kiln_matrix *X, const char *function) {
    struct ki_tiles *tiles = &layout->tiles;
    struct ki_kernel *kernel;
    kiln_status status;
    TRY(ki_kernel_get(&kernel, X->device, "layout", function, X->type, "-DTILES"));
    const struct ki_arg args[] = {ki_arg_buffer(&tiles->start),
                                  ki_arg_buffer(&X->row_start),
                                  ki_arg_buffer(&X->col),
                                  ki_arg_i64(X->rows),
                                  ki_arg_i32((int32_t)tiles->panels),
                                  ki_arg_i32(tiles->bits),
                                  ki_arg_i32(tiles->height),
                                  ki_arg_buffer(layout->alike ? NULL : &X->values),
                                  ki_arg_buffer(&tiles->entry),
                                  ki_arg_buffer(layout->alike ? NULL : &tiles->value)};
    TRY(ki_kernel_launch(X->device, kernel, tiles->blocks, GROUP, args, 10));
done:
    return status;
}

void ki_layout_drop_tiles(kiln_device *device, struct ki_tiles *tiles) {
    ki_device_release(device, &tiles->start);
    ki_device_release(device, &tiles->entry);
    ki_device_release(device, &tiles->value);
    ki_layout_drop_rows(device, &tiles->pieces);
}

kiln_status ki_layout_tiles(struct ki_layout *layout, const kiln_matrix *X) {
    kiln_device *device = X->device;
    struct ki_tiles *tiles = &layout->tiles;
    int32_t entries;
    kiln_status status;
    shape(tiles, X);
    const int64_t count = tiles->panels * tiles->blocks;
    TRY(ki_device_alloc(device, &tiles->start, (count + 1) * 4));
    TRY(distribute(layout, X, "tile_count"));
    TRY(ki_scan(device, X->type, &tiles->start, count));
    TRY(ki_layout_number_at(&entries, device, &tiles->start, count));
    tiles->entries = entries;
    if (entries > 0) {
        TRY(ki_device_alloc(device, &tiles->entry, tiles->entries * 4));
        if (!layout->alike)
            TRY(ki_device_alloc(device, &tiles->value, tiles->entries * ki_type_bytes(X->type)));
        TRY(distribute(layout, X, "tile_move"));
        TRY(ki_layout_rows(&tiles->pieces, device, &tiles->start, count,
                           (struct ki_lengths){.vector = 1, .least = INT32_MAX, .segment = KI_PIECE}, true));
    }
    layout->tiled = true;
done:
    if (status != KILN_OK) ki_layout_drop_tiles(device, tiles);
    return status;
}
