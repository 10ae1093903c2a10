/* The memory of a device: a budget, freed blocks kept for reuse, and matrices that come and go.
 *
 * A matrix has its arrays on the device, in host memory, or both (core/matrix.h). What does not fit drives
 * out what no operation holds. First goes what was derived from the matrices used least recently: the device
 * makes it again from what it has, which takes a few passes over X, while a matrix would have to come back
 * over a bus that is ten to a hundred times slower than the device's memory. Then go matrices, the least
 * recently used first: those whose host copy is valid are merely dropped, and only where that is not enough
 * are others written back. They return when an operation needs them. */
#ifndef KI_MEMORY_H
#define KI_MEMORY_H

#include <stdbool.h>

#include "core/backend.h"

enum { KI_IDLE_BLOCKS = 64, KI_SPACES = 8 };

/* Host memory on its way to a device: panels, uploads that may be under way beside them, copies from another
 * device. */
enum ki_staging_use { KI_STAGING_PANELS, KI_STAGING_UPLOAD, KI_STAGING_COPY, KI_STAGING_USES };

struct ki_staging {
    void *memory; /* grown on demand */
    int64_t bytes;
    bool pinned;
};

struct ki_memory {
    kiln_matrix *newest, *oldest; /* the device's matrices by last use */
    struct ki_buffer
        idle[KI_IDLE_BLOCKS]; /* freed blocks, oldest first: the driver's alloc and free wait and are slow */
    int idle_count;
    int64_t idle_bytes;
    int held; /* operations under way; work space is theirs while there is one */
    struct ki_staging staging[KI_STAGING_USES];
};

/* An operand of an operation. */
struct ki_operand {
    const kiln_matrix *matrix; /* NULL counts as none */
    bool written;              /* makes its host copy stale */
};

/* Allocation within the budget, counted; makes room where there is none. release accepts an empty buffer. */
kiln_status ki_device_alloc(kiln_device *device, struct ki_buffer *buffer, int64_t bytes);
void ki_device_release(kiln_device *device, struct ki_buffer *buffer);
/* Work space of at least `bytes`, contents undefined, valid until the next call on the device. */
kiln_status ki_device_scratch(kiln_device *device, struct ki_buffer *buffer, int64_t bytes);
/* The same beside it, for operations that need several: space `number` of KI_SPACES is valid until it is
 * asked for again. release gives all of them back. */
kiln_status ki_device_space(kiln_device *device, int number, struct ki_buffer *buffer, int64_t bytes);
void ki_device_spaces_release(kiln_device *device);
/* Host memory of at least `bytes` for uploads, contents undefined, valid until the next call for the same
 * use. */
kiln_status ki_device_staging(kiln_device *device, enum ki_staging_use use, void **memory, int64_t bytes);
/* Bytes that could be had if all went that is not in use. */
int64_t ki_memory_room(const kiln_device *device);
/* Gives everything back that no matrix owns; at close. */
void ki_memory_clear(kiln_device *device);

/* Brings operands to the device and keeps them there until they are let go; calls nest. ki_kernel_launch
 * holds its arguments, so that only an operation whose operands must all be there before it begins calls this
 * itself. On failure nothing is held. */
kiln_status ki_operands_hold(kiln_device *device, const struct ki_operand *operands, int count);
/* The same, but that narrow values stay as they are kept (core/narrow/narrow.h). */
kiln_status ki_operands_hold_kept(kiln_device *device, const struct ki_operand *operands, int count);
void ki_operands_release(kiln_device *device, const struct ki_operand *operands, int count);
/* The same for what is about to be launched, whose work space is in use. */
kiln_status ki_operands_hold_launch(kiln_device *device, const struct ki_operand *operands, int count);

/* A new matrix joins its device's list, a freed one leaves it. */
void ki_memory_join(kiln_matrix *A);
void ki_memory_leave(kiln_matrix *A);
/* A's arrays to host memory and its blocks back to the device, or from host memory to the device; all or
 * none. */
kiln_status ki_matrix_to_host(kiln_matrix *A);
kiln_status ki_matrix_bring(kiln_matrix *A);
/* A to host memory, and a copy of the structure that it shares, which may stay on the device for others. */
kiln_status ki_matrix_to_stream(kiln_matrix *A);
void ki_matrix_drop_host(kiln_matrix *A); /* its host copy */
/* Lets the device read A's host copy at full speed; where that cannot be, the user is told. */
void ki_matrix_pin(kiln_matrix *A);
void ki_matrix_unpin(kiln_matrix *A);
void ki_memory_count(kiln_device *device, int64_t bytes); /* taken, or with a minus given back */
/* Matrices that stand in the way of so many bytes go; ERR_DEVICE_NOMEM (CPU: ERR_NOMEM) if the bytes are more
 * than the room that leaves. */
kiln_status ki_memory_make_room(kiln_device *device, int64_t bytes);

#endif
