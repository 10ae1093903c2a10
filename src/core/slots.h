/* This header says what is derived from a matrix once and kept with it: slots, found by their kind.
 *
 * The matrix itself stays as it is, so that `const` ones have slots, too. What lies in a slot is complete: it
 * is made first and put there then. It goes when the matrix leaves its device, is freed, or memory is short
 * (core/memory.h), one slot at a time; whoever asks for it makes it again. A kind is a constant of the file
 * that makes such things, so that a new one needs no change here. */
#ifndef KI_SLOTS_H
#define KI_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/matrix.h"

enum { KI_SLOT_BUFFERS = 9 };
struct ki_slot_kind {
    const char *name; /* in words */
    /* A record that ki_slot_new makes has its size here, and where its buffers of the device's memory stand
     * in it (KI_SLOT). */
    size_t size;
    int buffers;
    size_t buffer[KI_SLOT_BUFFERS];
    /* Frees data and all that it refers to; NULL: a record that refers to its buffers alone. */
    void (*drop)(kiln_device *device, void *data);
    bool compared; /* its owner compares A's values with what they were before he uses one */
};

/* The size and the buffers of a kind: KI_SLOT(struct ki_copy, offsetof(struct ki_copy, start),
 * offsetof(struct ki_copy, row)). */
#define KI_SLOT(type, ...)                                                                                   \
    .size = sizeof(type), .buffers = sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), .buffer = {__VA_ARGS__}

struct ki_slot;

/* Returns what A has of that kind, or NULL. Held matrices (core/memory.h) keep what was found. */
void *ki_slot_get(const kiln_matrix *A, const struct ki_slot_kind *kind);
/* Gives A something that it does not have yet, which takes `bytes` of the device's memory; on failure it
 * stays the caller's. Slots that take nothing are not dropped for want of memory. */
kiln_status ki_slot_put(const kiln_matrix *A, const struct ki_slot_kind *kind, void *data, int64_t bytes);
/* A record of kind->size zeros, to be filled and kept; NULL where memory is short, which is recorded as
 * ERR_NOMEM. */
void *ki_slot_new(const struct ki_slot_kind *kind);
/* Puts a record, with the bytes of its buffers, where it was `filled` with KILN_OK; frees it where it was
 * not, or cannot be put. Returns what failed, or KILN_OK. */
kiln_status ki_slot_keep(const kiln_matrix *A, const struct ki_slot_kind *kind, void *record,
                         kiln_status filled);
/* A's record of that kind, which is zeros when it is first asked for; NULL as above. */
void *ki_slot_record(const kiln_matrix *A, const struct ki_slot_kind *kind);
/* Drops a slot, if there is one; and all of them. */
void ki_slot_drop(const kiln_matrix *A, const struct ki_slot_kind *kind);
void ki_slots_drop(const kiln_matrix *A);
/* A's values are written. On a GPU ki_operands_hold drops all slots; on the CPU whoever writes without it
 * says so here, and slots whose owners compare stay. */
void ki_slots_written(const kiln_matrix *A);
/* Bytes in A's slots, and dropping the newest slot that has any; false if none has. */
int64_t ki_slots_bytes(const kiln_matrix *A);
bool ki_slots_drop_one(const kiln_matrix *A);

#endif
