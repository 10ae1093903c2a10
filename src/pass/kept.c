/* This file computes how much of a streamed X stays.
 *
 * The first pass over X moves all of it and shows how much of the budget passes take for themselves: vectors,
 * panels on their way, work space. What is left then takes the first panels, and the next pass leaves them
 * there. They are a slot of X (core/slots.h): whatever else needs their place gets it, and passes after that
 * leave more room. Not on the CPU, whose system caches files anyway. */
#include "pass/kept.h"

#include "core/memory.h"
#include "core/seams.h"
#include "core/size.h"

/* 1/SPARE of the budget stays free, for small things and the rounding of blocks; where others took the place
 * of kept panels, 1/TAKEN more. */
enum { SPARE = 64, TAKEN = 8 };

/* The history of the passes so far takes nothing of the device's memory, and so is not dropped. */
struct history {
    int64_t passes;
    int64_t needed, own;   /* the most that was in use beside kept panels, and of it what a pass took */
    bool made;             /* panels were kept, and not dropped by passes themselves */
    int64_t before, begun; /* the device's peak before the pass that runs, and what was in use */
};

static const struct ki_slot_kind history_kind = {.name = "passes over a matrix",
                                                 .size = sizeof(struct history)};

static void release(kiln_device *device, struct ki_kept *kept) {
    for (int64_t i = 0; kept->part && i < kept->most * KI_PARTS; i++)
        ki_device_release(device, &kept->part[i]);
    ki_free(kept->part);
    ki_free(kept);
}

/* Panels are X itself, which the device's statistics of layouts do not count. */
static void drop(kiln_device *device, void *data) {
    struct ki_kept *kept = data;
    device->statistics.layout_bytes += kept->bytes;
    release(device, kept);
}

static const struct ki_slot_kind kept_kind = {
    .name = "panels that stay", .size = sizeof(struct ki_kept), .drop = drop};

struct ki_kept *ki_kept_get(const kiln_matrix *X) {
    return ki_slot_get(X, &kept_kind);
}

void ki_kept_drop(const kiln_matrix *X) {
    kiln_device_statistics *statistics = &X->device->statistics;
    struct history *history = ki_slot_get(X, &history_kind);
    ki_slot_drop(X, &kept_kind);
    if (!history) return;
    history->made = false;
    history->before = ki_max(history->before, statistics->memory_peak);
    statistics->memory_peak = history->begun = statistics->memory_used;
}

static int64_t part_bytes(const kiln_matrix *X, const struct ki_panel *panel, int part) {
    return part == KI_ROW_START ? (panel->rows + 1) * 8
                                : panel->entries * (part == KI_COL ? 4 : ki_value_bytes(X));
}

static int64_t bytes_of(const kiln_matrix *X, const struct ki_panel *panel) {
    int64_t bytes = 0;
    for (int part = 0; part < ki_matrix_parts(X); part++) bytes += ki_max(part_bytes(X, panel, part), 8);
    return bytes;
}

static kiln_status allocate(struct ki_kept *kept, const kiln_matrix *X, const struct ki_panel *panels) {
    kiln_status status = KILN_OK;
    kept->part = ki_calloc((size_t)(kept->most * KI_PARTS) * sizeof *kept->part);
    if (!kept->part) TRY(ki_fail_nomem((size_t)(kept->most * KI_PARTS) * sizeof *kept->part, kept_kind.name));
    for (int64_t i = 0; i < kept->most; i++)
        for (int part = 0; part < ki_matrix_parts(X); part++) {
            struct ki_buffer *to = &kept->part[i * KI_PARTS + part];
            TRY(ki_device_alloc(X->device, to, part_bytes(X, &panels[i], part)));
            kept->bytes += to->bytes;
        }
done:
    return status;
}

static kiln_status make(struct ki_kept **made, const kiln_matrix *X, const struct ki_panel *panels,
                        int64_t count, int64_t target, int64_t room) {
    struct ki_kept *kept;
    kiln_status status = KILN_OK;
    int64_t most = 0, bytes = 0;
    while (most < count && bytes + bytes_of(X, &panels[most]) <= room) bytes += bytes_of(X, &panels[most++]);
    if (most == 0) return KILN_OK;
    kept = ki_slot_new(&kept_kind);
    if (!kept) return KILN_ERR_NOMEM;
    *kept = (struct ki_kept){.target = target, .most = most};
    TRY(allocate(kept, X, panels));
    TRY(ki_slot_put(X, &kept_kind, kept, kept->bytes));
    X->device->statistics.layout_bytes -= kept->bytes;
    *made = kept;
    kept = NULL;
done:
    if (kept) release(X->device, kept);
    return status;
}

kiln_status ki_kept_begin(struct ki_kept **kept, const kiln_matrix *X, const struct ki_panel *panels,
                          int64_t count, int64_t target) {
    kiln_device *device = X->device;
    struct history *history = ki_slot_record(X, &history_kind);
    kiln_status status = KILN_OK;
    if (!history) return KILN_ERR_NOMEM;
    *kept = ki_kept_get(X);
    if (history->made && !*kept) history->needed += device->budget / TAKEN;
    const int64_t needed = ki_max(history->needed, device->statistics.memory_used + history->own),
                  room = device->budget - device->budget / SPARE - needed;
    if (!*kept && history->passes > 0 && !ki_on_cpu(device))
        status = make(kept, X, panels, count, target, room);
    if (status == KILN_ERR_DEVICE_NOMEM) status = KILN_OK; /* the driver has less than the budget says */
    history->made = *kept != NULL;
    history->before = device->statistics.memory_peak;
    device->statistics.memory_peak = history->begun = device->statistics.memory_used;
    return status;
}

void ki_kept_end(const kiln_matrix *X, bool whole) {
    kiln_device_statistics *statistics = &X->device->statistics;
    const struct ki_kept *kept = ki_kept_get(X);
    struct history *history = ki_slot_get(X, &history_kind);
    if (!history) return;
    history->needed = ki_max(history->needed, statistics->memory_peak - (kept ? kept->bytes : 0));
    history->own = ki_max(history->own, statistics->memory_peak - history->begun);
    history->passes += whole;
    statistics->memory_peak = ki_max(statistics->memory_peak, history->before);
}
