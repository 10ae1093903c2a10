/* This file says where a matrix's arrays go: from a reader to a device, and from there to another. No second
 * copy in host memory on the way, which data that nearly fill it have no room for. */
#include <string.h>

#include "core/codes/codes.h"
#include "core/home.h"
#include "core/matrix.h"
#include "core/narrow/narrow.h"
#include "core/processes.h"
#include "core/seams.h"

static kiln_status place_on_cpu(kiln_matrix *A, void *const memory[KI_PARTS]) {
    const int64_t bytes = ki_matrix_own_bytes(A);
    kiln_status status = ki_memory_make_room(A->device, bytes);
    if (status == KILN_OK) status = ki_structure_hold(A);
    if (status != KILN_OK) return status;
    for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++)
        *ki_matrix_part(A, part) =
            (struct ki_buffer){(uintptr_t)memory[part], ki_matrix_part_bytes(A, part), 0};
    ki_memory_count(A->device, bytes);
    return KILN_OK;
}

/* On a group of GPUs it waits in host memory: a pass over it takes each member's rows from there, and any
 * other operation brings it to the first. */
kiln_status ki_matrix_place(kiln_matrix *A, void *const memory[KI_PARTS]) {
    A->given = true;
    if (ki_on_cpu(A->device)) return place_on_cpu(A, memory);
    memcpy(A->host, memory, sizeof A->host);
    if (ki_device_shares(A->device)) return KILN_OK;
    kiln_status status = ki_matrix_bring(A);
    if (status == KILN_OK) {
        ki_matrix_drop_host(A); /* data that nearly fill host memory leave it no room for two copies */
    } else if (status == KILN_ERR_DEVICE_NOMEM) {
        status = KILN_OK;
    } else {
        memset(A->host, 0, sizeof A->host);
    }
    return status;
}

/* A file can be read from everywhere. */
static void move_file(kiln_matrix *A, kiln_device *device) {
    ki_memory_leave(A);
    A->device = device;
    A->streams = ki_on_cpu(device);
    ki_memory_join(A);
}

/* Shared or lent memory stays where it is: A becomes a copy. */
static kiln_status move_copy(kiln_matrix *A, kiln_device *device) {
    kiln_matrix *copy = NULL;
    kiln_status status = kiln_matrix_copy(&copy, device, KILN_TYPE_DEFAULT, A);
    if (status != KILN_OK) return status;
    ki_matrix_clear(A);
    ki_memory_leave(copy);
    *A = *copy;
    ki_memory_join(A);
    ki_free(copy);
    return KILN_OK;
}

kiln_status ki_matrix_move(kiln_matrix *A, kiln_device *device) {
    if (A->device == device) return KILN_OK;
    if (A->structure || A->lender) return move_copy(A, device);
    const bool from_cpu = ki_on_cpu(A->device);
    void *memory[KI_PARTS];
    kiln_status status;
    TRY(ki_matrix_home(A));
    if (A->codes && ki_codes_fit(device)) return ki_codes_move(A, device);
    if (A->codes || !ki_keeps_narrow(device)) TRY(ki_matrix_expand(A));
    ki_slots_drop(A);
    if (!from_cpu) {
        TRY(ki_matrix_to_host(A));
        ki_matrix_unpin(A);
    }
    if (A->file) {
        move_file(A, device);
        return KILN_OK;
    }
    for (int part = 0; part < KI_PARTS; part++)
        memory[part] = from_cpu ? ki_host(ki_matrix_part(A, part)) : A->host[part];
    kiln_matrix moved = {.device = device,
                         .type = A->type,
                         .format = A->format,
                         .element = A->element,
                         .same = A->same,
                         .rows = A->rows,
                         .cols = A->cols,
                         .nnz = A->nnz,
                         .filled = A->filled,
                         .filled_count = A->filled_count};
    TRY(ki_matrix_place(&moved, memory));
    ki_memory_leave(A);
    for (int part = 0; part < KI_PARTS; part++) ki_memory_count(A->device, -ki_matrix_part(A, part)->bytes);
    *A = moved;
    ki_memory_join(A);
done:
    return status;
}
