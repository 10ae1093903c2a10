/* kiln_assign with bounds on GPUs. All distances are measured, but rows that keep their centre stay in the
 * sums of the pass before: those that changed it are listed, leave one cluster and come to another
 * (assign_moved.cl). */
#include "core/arguments.h"
#include "core/group/group.h"
#include "ops/points/assign_gpu.h"
#include "ops/points/assign_moved.cl"
#include "ops/points/bounds.h"

/* Rows of a group at a time; of how many rows one may have changed, so that a list of them is worth it. */
enum { AT_ONCE = 4096, FEWEST = 4 };

KI_ARGUMENTS(moved_rows);
KI_ARGUMENTS(moved_centres);

static bool few(const kiln_bounds *b) {
    return b->known && b->changed <= b->m / FEWEST;
}

bool ki_assign_corrects(const struct ki_assign *of) {
    const kiln_bounds *b = of->bounds;
    return b && !b->fresh && !of->weights && few(b);
}

/* counts = changed rows of each tile; or, with a list, the list of them, from the counts of the tiles
 * before. */
static kiln_status changed_rows(const struct ki_assign_space *s, const struct ki_buffer *counts,
                                const struct ki_sort *list) {
    const char *defines = KI_DEFINES("-DROWS -DGROUP=%d -DAT_ONCE=%d", KI_ASSIGN_GROUP, AT_ONCE);
    return ki_assign_launch(s, "assign_moved", "moved_rows", defines,
                            ki_ceil_div(s->rows, AT_ONCE) * KI_ASSIGN_GROUP, KI_ASSIGN_GROUP,
                            KI_PACK(moved_rows, s->of->X, .counts = counts, .key = list ? &list->key : NULL,
                                    .entry = list ? &list->payload : NULL, .before = &s->of->bounds->kept,
                                    .now = &s->data.key, .rows = (int32_t)s->rows));
}

/* The list becomes what is sorted and added up, and the labels are kept. */
static kiln_status list_them(struct ki_assign_space *s, const struct ki_buffer *counts) {
    kiln_bounds *b = s->of->bounds;
    struct ki_sort list = {0};
    kiln_status status;
    s->entries = 2 * b->changed;
    /* As long as it may be, so that the next pass finds the blocks of this one again. Sums of all rows take
     * as much. */
    const int64_t most = 2 * (b->m / FEWEST) + 1;
    TRY(ki_device_alloc(s->device, &list.key, most * 4));
    TRY(ki_device_alloc(s->device, &list.payload, most * 4));
    TRY(changed_rows(s, counts, &list));
    ki_device_release(s->device, &b->kept);
    b->kept = s->data.key;
    s->data = list;
    list = (struct ki_sort){0};
    s->corrects = true;
done:
    ki_sort_drop(s->device, &list);
    return status;
}

kiln_status ki_assign_look(struct ki_assign_space *s) {
    const struct ki_assign *of = s->of;
    kiln_bounds *b = of->bounds;
    const int64_t tiles = ki_ceil_div(s->rows, AT_ONCE);
    struct ki_buffer counts = {0};
    int32_t changed;
    kiln_status status = KILN_OK;
    if (!b->known) {
        b->changed = b->m;
        return KILN_OK;
    }
    TRY(ki_device_alloc(s->device, &counts, (tiles + 1) * 4));
    TRY(changed_rows(s, &counts, NULL));
    TRY(ki_scan(s->device, of->X->type, &counts, tiles));
    TRY(ki_number_at(&changed, s->device, &counts, tiles));
    b->changed = changed;
    if (ki_assign_corrects(of)) TRY(list_them(s, &counts));
done:
    ki_device_release(s->device, &counts);
    return status;
}

kiln_status ki_assign_follow(const struct ki_assign_space *s) {
    const kiln_matrix *C = s->of->C;
    kiln_bounds *b = s->of->bounds;
    if (!s->corrects)
        return ki_device_copy(s->device, s->device, &b->last, 0, s->device, &C->values, 0,
                              ki_matrix_bytes(C));
    const char *defines = KI_DEFINES("-DCENTRES -DGROUP=%d", KI_ASSIGN_GROUP);
    return ki_assign_launch(s, "assign_moved", "moved_centres", defines, s->k * KI_ASSIGN_GROUP,
                            KI_ASSIGN_GROUP,
                            KI_PACK(moved_centres, C, .running = &b->running->values, .last = &b->last,
                                    .C = C, .k = (int32_t)s->k, .n = (int32_t)s->n));
}
