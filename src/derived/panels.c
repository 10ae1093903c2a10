/* Panels: a stable distribution of the entries over panels of columns. A work-group counts and moves those of
 * one block of rows, in the order of the rows, so that the counters of all blocks, panel by panel, are at
 * once where each begins. */
#include "core/arguments.h"
#include "core/limits.h"
#include "derived/derived.cl"
#include "derived/parts.h"

KI_ARGUMENTS(panels_make);

_Static_assert(PANELS_SHARES == PANELS_GROUP / PANELS_MAX, "a share of a panel's counters for each thread");
_Static_assert(PANELS_LOCAL <= 8192, "OpenCL promises 32 KB of local memory");

bool ki_panels_fit(const kiln_device *device) {
    return device->properties.local_bytes >= PANELS_LOCAL * (int64_t)sizeof(int32_t);
}

static void shape(struct ki_panels *panels, const kiln_matrix *X) {
    panels->bits = ki_limits.panel_bits;
    while (ki_ceil_div(X->cols, (int64_t)1 << panels->bits) > PANELS_MAX) panels->bits++;
    panels->height =
        (int)ki_min(ki_min(ki_limits.panel_height, PANELS_HEIGHT), (int64_t)1 << (32 - panels->bits));
    panels->count = ki_ceil_div(X->cols, (int64_t)1 << panels->bits);
    panels->blocks = ki_ceil_div(X->rows, panels->height);
}

static kiln_status distribute(const struct ki_panels *panels, const kiln_matrix *X,
                              const struct ki_popular *popular, bool values, const char *function) {
    return ki_kernel_run(X->device, "derived", function, X->type, "-DPANELS", panels->blocks, PANELS_GROUP,
                         KI_PACK(panels_make, X, .start = &panels->start, .row_start = &X->row_start,
                                 .col = popular->count ? &popular->code : &X->col, .rows = X->rows,
                                 .panels = (int32_t)panels->count, .bits = panels->bits,
                                 .height = panels->height, .X = values ? &X->values : NULL,
                                 .entry = &panels->entry, .value = values ? &panels->value : NULL));
}

#define AT(buffer) offsetof(struct ki_panels, buffer)
const struct ki_slot_kind ki_slot_panels = {
    .name = "panels of columns",
    KI_SLOT(struct ki_panels, AT(start), AT(entry), AT(value), KI_ROWS_BUFFERS(struct ki_panels, pieces))};
#undef AT

static kiln_status fill(struct ki_panels *panels, const kiln_matrix *X, const struct ki_popular *popular,
                        bool values) {
    kiln_device *device = X->device;
    int32_t entries;
    kiln_status status;
    shape(panels, X);
    const int64_t count = panels->count * panels->blocks;
    TRY(ki_device_alloc(device, &panels->start, (count + 1) * 4));
    TRY(distribute(panels, X, popular, values, "panels_count"));
    TRY(ki_scan(device, X->type, &panels->start, count));
    TRY(ki_number_at(&entries, device, &panels->start, count));
    panels->entries = entries;
    if (entries == 0) goto done;
    TRY(ki_device_alloc(device, &panels->entry, panels->entries * 4));
    if (values) TRY(ki_device_alloc(device, &panels->value, panels->entries * ki_type_bytes(X->type)));
    TRY(distribute(panels, X, popular, values, "panels_move"));
    TRY(ki_rows_list(&panels->pieces, device, &panels->start, count,
                     (struct ki_lengths){.vector = 1, .least = INT32_MAX, .segment = ki_limits.piece}, true));
done:
    return status;
}

kiln_status ki_panels_make(const kiln_matrix *X, const struct ki_popular *popular, bool values) {
    struct ki_panels *panels = ki_slot_new(&ki_slot_panels);
    if (!panels) return KILN_ERR_NOMEM;
    return ki_slot_keep(X, &ki_slot_panels, panels, fill(panels, X, popular, values));
}
