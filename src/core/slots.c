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

static struct ki_buffer *buffer_of(const struct ki_slot_kind *kind, void *record, int i) {
    return (void *)((char *)record + kind->buffer[i]);
}

static void drop(kiln_device *device, const struct ki_slot_kind *kind, void *data) {
    if (kind->drop) {
        kind->drop(device, data);
        return;
    }
    for (int i = 0; i < kind->buffers; i++) ki_device_release(device, buffer_of(kind, data, i));
    ki_free(data);
}

void *ki_slot_new(const struct ki_slot_kind *kind) {
    void *record = ki_calloc(kind->size);
    if (!record) ki_fail_nomem(kind->size, kind->name);
    return record;
}

kiln_status ki_slot_keep(const kiln_matrix *A, const struct ki_slot_kind *kind, void *record,
                         kiln_status filled) {
    kiln_status status = filled;
    int64_t bytes = 0;
    for (int i = 0; i < kind->buffers; i++) bytes += buffer_of(kind, record, i)->bytes;
    if (status == KILN_OK) status = ki_slot_put(A, kind, record, bytes);
    if (status != KILN_OK) drop(A->device, kind, record);
    return status;
}

void *ki_slot_record(const kiln_matrix *A, const struct ki_slot_kind *kind) {
    void *record = ki_slot_get(A, kind);
    if (record || !(record = ki_slot_new(kind))) return record;
    return ki_slot_keep(A, kind, record, KILN_OK) == KILN_OK ? record : NULL;
}

static void unlink_and_free(const kiln_matrix *A, struct ki_slot **at) {
    struct ki_slot *slot = *at;
    *at = slot->older;
    A->device->statistics.layout_bytes -= slot->bytes;
    drop(A->device, slot->kind, slot->data);
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
