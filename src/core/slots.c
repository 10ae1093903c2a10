/* A matrix's slots: a list, newest first, so that what was derived from another slot lies before it. */
#include "core/slots.h"

#include "core/matrix.h"
#include "core/seams.h"

struct ki_slot {
    const struct ki_slot_kind *kind;
    struct ki_slot *older;
    void *data;
    int64_t bytes;
};

/* Slots come and go while the matrix's value stays. */
static struct ki_slot **list_of(const kiln_matrix *A) {
    return &((kiln_matrix *)(uintptr_t)A)->slots;
}

static struct ki_slot **find(const kiln_matrix *A, const struct ki_slot_kind *kind) {
    struct ki_slot **at = list_of(A);
    while (*at && (*at)->kind != kind) at = &(*at)->older;
    return at;
}

void *ki_slot_get(const kiln_matrix *A, const struct ki_slot_kind *kind) {
    const struct ki_slot *slot = *find(A, kind);
    return slot ? slot->data : NULL;
}

kiln_status ki_slot_put(const kiln_matrix *A, const struct ki_slot_kind *kind, void *data, int64_t bytes) {
    struct ki_slot **list = list_of(A), *slot = ki_alloc(sizeof *slot);
    if (!slot) return ki_fail_nomem(sizeof *slot, kind->name);
    *slot = (struct ki_slot){.kind = kind, .older = *list, .data = data, .bytes = bytes};
    *list = slot;
    A->device->statistics.layout_bytes += bytes;
    return KILN_OK;
}

kiln_status ki_slot_record(void **record, const kiln_matrix *A, const struct ki_slot_kind *kind,
                           size_t bytes) {
    void *found = ki_slot_get(A, kind);
    kiln_status status = KILN_OK;
    if (!found) {
        found = ki_calloc(bytes);
        if (!found) return ki_fail_nomem(bytes, kind->name);
        status = ki_slot_put(A, kind, found, 0);
        if (status != KILN_OK) ki_free(found);
    }
    if (status == KILN_OK) *record = found;
    return status;
}

void ki_slot_free(kiln_device *device, void *data) {
    (void)device;
    ki_free(data);
}

static void unlink_and_free(const kiln_matrix *A, struct ki_slot **at) {
    struct ki_slot *slot = *at;
    *at = slot->older;
    A->device->statistics.layout_bytes -= slot->bytes;
    slot->kind->drop(A->device, slot->data);
    ki_free(slot);
}

void ki_slot_drop(const kiln_matrix *A, const struct ki_slot_kind *kind) {
    struct ki_slot **at = list_of(A);
    while (*at)
        if ((*at)->kind == kind)
            unlink_and_free(A, at);
        else
            at = &(*at)->older;
}

void ki_slots_drop(const kiln_matrix *A) {
    while (*list_of(A)) unlink_and_free(A, list_of(A));
}

void ki_slots_written(const kiln_matrix *A) {
    struct ki_slot **at = list_of(A);
    while (*at)
        if ((*at)->kind->compared)
            at = &(*at)->older;
        else
            unlink_and_free(A, at);
}

int64_t ki_slots_bytes(const kiln_matrix *A) {
    int64_t bytes = 0;
    for (const struct ki_slot *slot = A->slots; slot; slot = slot->older) bytes += slot->bytes;
    return bytes;
}

bool ki_slots_drop_one(const kiln_matrix *A) {
    struct ki_slot **at = list_of(A);
    while (*at && (*at)->bytes == 0) at = &(*at)->older;
    if (!*at) return false;
    unlink_and_free(A, at);
    return true;
}
