/* This file says which bytes are on a device: allocation within its budget, blocks kept for reuse, eviction
 * and return of matrices. */
#include "core/memory.h"

#include <string.h>

#include "core/file.h"
#include "core/home.h"
#include "core/matrix.h"
#include "core/narrow/narrow.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/threads.h"
#include "core/upload.h"

/* A kept block serves what is up to an eighth smaller; all of them take an eighth of the budget at most. */
enum { SLACK = 8, IDLE_SHARE = 8 };

/* ------------------------------------------------------------------------------------------ blocks */

void ki_memory_count(kiln_device *device, int64_t bytes) {
    kiln_device_statistics *s = &device->statistics;
    s->memory_used += bytes;
    s->memory_peak = ki_max(s->memory_peak, s->memory_used);
}

/* A lost GPU takes nothing back; the memory of a CPU whose processes are lost is this process's own. */
static void give_back(kiln_device *device, struct ki_buffer *buffer) {
    if (!device->lost || ki_on_cpu(device)) device->backend->release(device, buffer);
    *buffer = (struct ki_buffer){0, 0, 0};
}

/* Takes block i out of the list. */
static struct ki_buffer take_idle(struct ki_memory *memory, int i) {
    struct ki_buffer block = memory->idle[i];
    memory->idle_bytes -= block.bytes;
    memory->idle_count--;
    memmove(memory->idle + i, memory->idle + i + 1, (size_t)(memory->idle_count - i) * sizeof *memory->idle);
    return block;
}

static void drop_idle(kiln_device *device) {
    struct ki_buffer block = take_idle(&device->memory, 0);
    give_back(device, &block);
}

/* The smallest block that is large enough, but not by much. */
static bool reuse(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    struct ki_memory *memory = &device->memory;
    int best = -1;
    for (int i = 0; i < memory->idle_count; i++) {
        const int64_t size = memory->idle[i].bytes;
        if (size >= bytes && size - bytes <= bytes / SLACK && (best < 0 || size < memory->idle[best].bytes))
            best = i;
    }
    if (best >= 0) *buffer = take_idle(memory, best);
    return best >= 0;
}

static void keep(kiln_device *device, struct ki_buffer *buffer) {
    struct ki_memory *memory = &device->memory;
    const int64_t most = device->budget / IDLE_SHARE;
    if (ki_on_cpu(device) || device->lost || buffer->bytes > most) {
        give_back(device, buffer);
        return;
    }
    while (memory->idle_count == KI_IDLE_BLOCKS || memory->idle_bytes + buffer->bytes > most)
        drop_idle(device);
    memory->idle[memory->idle_count++] = *buffer;
    memory->idle_bytes += buffer->bytes;
}

void ki_device_release(kiln_device *device, struct ki_buffer *buffer) {
    if (!buffer->handle) return;
    ki_memory_count(device, -buffer->bytes);
    keep(device, buffer);
    *buffer = (struct ki_buffer){0, 0, 0};
}

/* -------------------------------------------------------------------------------------- allocation */

static int64_t resident_bytes(const kiln_matrix *A) {
    int64_t bytes = 0;
    for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++)
        bytes += ki_matrix_part((kiln_matrix *)(uintptr_t)A, part)->bytes;
    return bytes;
}

/* A matrix in the caller's device memory would leave no room behind, and one whose address others have
 * stays. */
static bool evictable(const kiln_matrix *A) {
    return ki_matrix_resident(A) && A->held == 0 && !A->lent_buffers && !A->lent_out;
}

static int64_t work_bytes(const kiln_device *device) {
    int64_t bytes = device->scratch.bytes;
    for (int i = 0; i < KI_SPACES; i++) bytes += device->spaces[i].bytes;
    return bytes;
}

/* A structure leaves once all have left that share it. */
int64_t ki_memory_room(const kiln_device *device) {
    int64_t bytes = device->budget - device->statistics.memory_used;
    if (device->memory.held == 0) bytes += work_bytes(device);
    for (kiln_matrix *A = device->memory.oldest; A; A = A->newer) {
        A->leaving = 0;
        if (A->held == 0) bytes += ki_slots_bytes(A);
    }
    for (const kiln_matrix *A = device->memory.oldest; A && !ki_on_cpu(device); A = A->newer) {
        if (!evictable(A)) continue;
        bytes += resident_bytes(A);
        kiln_matrix *S = A->structure;
        if (S && ++S->leaving == S->held && !S->lent_buffers) bytes += resident_bytes(S);
    }
    return bytes;
}

static kiln_status check_room(const kiln_device *device, int64_t bytes) {
    const int64_t most = ki_memory_room(device);
    if (bytes <= most) return KILN_OK;
    ki_fail(ki_on_cpu(device) ? KILN_ERR_NOMEM : KILN_ERR_DEVICE_NOMEM,
            "device %s: %lld bytes needed, %lld of %lld left", device->info.name, (long long)bytes,
            (long long)ki_max(most, 0), (long long)device->budget);
    return ki_hint(ki_on_cpu(device)
                       ? "a larger memory budget (--memory), or --type f32"
                       : "a larger memory budget (--memory), --type f32, or a device with more memory");
}

static kiln_status check_piece(const kiln_device *device, int64_t bytes) {
    if (bytes <= device->properties.alloc_max) return KILN_OK;
    ki_fail(KILN_ERR_DEVICE_NOMEM, "device %s: %lld bytes needed in one piece, it allows %lld",
            device->info.name, (long long)bytes, (long long)device->properties.alloc_max);
    return ki_hint("--device cpu, or --type f32");
}

/* The least recently used matrix of those with a valid host copy, which cost nothing, or else of all. */
static kiln_matrix *victim(const kiln_device *device) {
    kiln_matrix *dirty = NULL;
    for (kiln_matrix *A = device->memory.oldest; A; A = A->newer) {
        if (!evictable(A)) continue;
        if (ki_matrix_clean(A)) return A;
        if (!dirty) dirty = A;
    }
    return dirty;
}

static kiln_status evict(kiln_matrix *A);

static void drop_space(kiln_device *device, struct ki_buffer *space) {
    ki_memory_count(device, -space->bytes);
    if (space->handle) give_back(device, space);
}

static void drop_work_space(kiln_device *device) {
    drop_space(device, &device->scratch);
    for (int i = 0; i < KI_SPACES; i++) drop_space(device, &device->spaces[i]);
}

/* The newest slot of the least recently used matrix that has any. */
static bool drop_slot(const kiln_device *device) {
    for (const kiln_matrix *A = device->memory.oldest; A; A = A->newer)
        if (A->held == 0 && ki_slots_drop_one(A)) return true;
    return false;
}

/* Gives one thing up: kept blocks, then work space that nobody uses, then what was derived from a matrix,
 * then a matrix. *made = false: there was none. */
static kiln_status make_room(kiln_device *device, bool *made) {
    kiln_matrix *A;
    *made = true;
    if (device->memory.idle_count > 0) {
        drop_idle(device);
    } else if (device->memory.held == 0 && work_bytes(device) > 0) {
        drop_work_space(device);
    } else if (drop_slot(device)) {
        return KILN_OK;
    } else if (!ki_on_cpu(device) && (A = victim(device))) {
        return evict(A);
    } else {
        *made = false;
    }
    return KILN_OK;
}

static kiln_status make_room_for(kiln_device *device, int64_t bytes, bool *made) {
    kiln_status status = KILN_OK;
    while (*made && bytes > device->budget - device->statistics.memory_used - device->memory.idle_bytes)
        TRY(make_room(device, made));
done:
    return status;
}

kiln_status ki_memory_make_room(kiln_device *device, int64_t bytes) {
    bool made = true;
    const kiln_status status = check_room(device, bytes);
    return status == KILN_OK ? make_room_for(device, bytes, &made) : status;
}

kiln_status ki_device_alloc(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    const int64_t needed =
        ki_max(bytes, 8); /* Zero-sized matrices are legal, zero-sized allocations are not. */
    struct ki_buffer block = {0, 0, 0};
    bool made = true;
    kiln_status status, room;
    TRY(ki_device_alive(device));
    if (reuse(device, &block, needed)) goto done;
    TRY(check_room(device, bytes));
    TRY(check_piece(device, bytes));
    do {
        TRY(make_room_for(device, bytes, &made));
        status = device->backend->alloc(device, &block, needed);
        if (status != KILN_ERR_DEVICE_NOMEM) break;
        /* The driver has less than the budget says. */
        if ((room = make_room(device, &made)) != KILN_OK) return room;
    } while (made);
done:
    if (status != KILN_OK) return status;
    ki_memory_count(device, block.bytes);
    *buffer = block;
    return KILN_OK;
}

static kiln_status grow(kiln_device *device, struct ki_buffer *space, struct ki_buffer *buffer,
                        int64_t bytes) {
    if (space->bytes < bytes) {
        ki_device_release(device, space);
        kiln_status status = ki_device_alloc(device, space, bytes);
        if (status != KILN_OK) return status;
    }
    *buffer = *space;
    return KILN_OK;
}

kiln_status ki_device_scratch(kiln_device *device, struct ki_buffer *buffer, int64_t bytes) {
    return grow(device, &device->scratch, buffer, bytes);
}

kiln_status ki_device_space(kiln_device *device, int number, struct ki_buffer *buffer, int64_t bytes) {
    return grow(device, &device->spaces[number], buffer, bytes);
}

void ki_device_spaces_release(kiln_device *device) {
    for (int i = 0; i < KI_SPACES; i++) ki_device_release(device, &device->spaces[i]);
}

static void drop_staging(kiln_device *device, struct ki_staging *staging) {
    if (staging->pinned && !device->lost) device->backend->unpin(device, staging->memory);
    ki_free(staging->memory);
    *staging = (struct ki_staging){0};
}

static void touch(void *of, int64_t begin, int64_t end) {
    memset((char *)of + begin, 0, (size_t)(end - begin));
}

kiln_status ki_device_staging(kiln_device *device, enum ki_staging_use use, void **memory, int64_t bytes) {
    enum { WORTH_A_THREAD = 2 << 20 };
    struct ki_staging *staging = &device->memory.staging[use];
    if (staging->bytes < bytes) {
        drop_staging(device, staging);
        staging->memory = ki_alloc((size_t)bytes);
        if (!staging->memory) return ki_fail_nomem((size_t)bytes, "what is on its way to a device");
        staging->bytes = bytes;
        if (device->backend->pin) {
            /* Pinning would touch the pages first, one by one. */
            ki_parallel_ranges(device->threads, bytes, WORTH_A_THREAD, touch, staging->memory);
            staging->pinned = device->backend->pin(device, staging->memory, bytes) == KILN_OK;
        }
        kiln_status status = ki_device_alive(device);
        if (status != KILN_OK) return status;
    }
    *memory = staging->memory;
    return KILN_OK;
}

void ki_memory_clear(kiln_device *device) {
    for (int use = 0; use < KI_STAGING_USES; use++) drop_staging(device, &device->memory.staging[use]);
    ki_device_release(device, &device->scratch);
    ki_device_spaces_release(device);
    while (device->memory.idle_count > 0) drop_idle(device);
}

/* ------------------------------------------------------------------------------------------ matrices */

/* Drivers pin no memory of no bytes, as which lie the values that a matrix keeps as one number. */
static bool is_empty(const kiln_matrix *A, int part) {
    return ki_matrix_part_bytes(A, part) == 0;
}

void ki_matrix_pin(kiln_matrix *A) {
    const struct ki_backend *backend = A->device->backend;
    const int first = ki_matrix_first(A);
    int part = first;
    if (A->structure) ki_matrix_pin(A->structure);
    if (A->pinned || A->file || !backend->pin) return;
    while (part < ki_matrix_end(A) &&
           (is_empty(A, part) ||
            backend->pin(A->device, A->host[part], ki_matrix_part_bytes(A, part)) == KILN_OK))
        part++;
    A->pinned = part == ki_matrix_end(A);
    if (A->pinned || A->device->lost) return;
    ki_device_message(A->device, "host memory cannot be pinned, which makes transfers slower: %s",
                      kiln_last_error()->message);
    while (part-- > first)
        if (!is_empty(A, part)) backend->unpin(A->device, A->host[part]);
}

void ki_matrix_unpin(kiln_matrix *A) {
    for (int part = ki_matrix_first(A); A->pinned && part < ki_matrix_end(A); part++)
        if (!A->device->lost && !is_empty(A, part)) A->device->backend->unpin(A->device, A->host[part]);
    A->pinned = false;
}

void ki_matrix_drop_host(kiln_matrix *A) {
    ki_matrix_unpin(A);
    for (int part = 0; part < KI_PARTS; part++) {
        if (!(A->lent_host & 1u << part)) ki_free(A->host[part]);
        A->host[part] = NULL;
    }
    A->lent_host = 0;
    ki_file_close(A->file);
    A->file = NULL;
}

static void drop_resident(kiln_matrix *A) {
    for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++) {
        struct ki_buffer *buffer = ki_matrix_part(A, part);
        if (!(A->lent_buffers & 1u << part)) {
            ki_memory_count(A->device, -buffer->bytes);
            if (buffer->handle) give_back(A->device, buffer);
        }
        *buffer = (struct ki_buffer){0, 0, 0};
    }
    A->lent_buffers = 0;
    ki_structure_release(A);
}

/* Parts are written back all or none. */
static kiln_status write_back(kiln_matrix *A) {
    kiln_status status = KILN_OK;
    for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++) {
        const int64_t bytes = ki_matrix_part_bytes(A, part);
        A->host[part] = ki_alloc((size_t)bytes);
        if (!A->host[part]) TRY(ki_fail_nomem((size_t)bytes, "a matrix that the device has no room for"));
        TRY(ki_device_download(A->device, A->host[part], ki_matrix_part(A, part), 0, bytes));
    }
done:
    if (status != KILN_OK) ki_matrix_drop_host(A);
    return status;
}

kiln_status ki_matrix_to_host(kiln_matrix *A) {
    if (!ki_matrix_resident(A)) return KILN_OK;
    ki_is_away(A) ? ki_slots_written(A) : ki_slots_drop(A);
    if (!ki_matrix_clean(A)) {
        kiln_status status = write_back(A);
        if (status != KILN_OK) return status;
    }
    drop_resident(A);
    return KILN_OK;
}

kiln_status ki_matrix_to_stream(kiln_matrix *A) {
    kiln_matrix *S = A->structure;
    if (A->lent_out)
        return ki_fail(KILN_ERR_DEVICE_NOMEM,
                       "device %s: too little memory is left beside a matrix that has been lent",
                       A->device->info.name);
    kiln_status status = ki_matrix_to_host(A);
    if (status != KILN_OK || !S || ki_on_cpu(A->device)) return status;
    if (S->held == 0) return ki_matrix_to_host(S);
    return ki_matrix_clean(S) ? KILN_OK : write_back(S);
}

static kiln_status evict(kiln_matrix *A) {
    kiln_status status = ki_matrix_to_host(A);
    if (status != KILN_OK) return status;
    if (A->driven_out < INT32_MAX) A->driven_out++;
    A->device->statistics.evictions++;
    return status;
}

struct file_array {
    const kiln_matrix *matrix;
    int part;
};

static kiln_status fill_from_file(void *of, void *to, int64_t offset, int64_t bytes) {
    const struct file_array *array = of;
    const int64_t element = array->part == KI_COL ? 4 : ki_type_bytes(array->matrix->type);
    return ki_matrix_read(to, array->matrix, array->part, offset / element, bytes / element);
}

kiln_status ki_matrix_bring(kiln_matrix *A) {
    kiln_status status;
    if (A->here) return ki_matrix_fail_away(A);
    if (A->codes && (status = ki_matrix_expand(A)) != KILN_OK) return status;
    if (ki_matrix_resident(A)) return KILN_OK;
    A->held++; /* its first arrays must not leave to make room for its last */
    TRY(check_room(A->device, ki_matrix_own_bytes(A)));
    for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++) {
        const int64_t bytes = ki_matrix_part_bytes(A, part);
        TRY(ki_device_alloc(A->device, ki_matrix_part(A, part), bytes));
        if (A->host[part])
            TRY(ki_device_upload(A->device, ki_matrix_part(A, part), 0, A->host[part], bytes));
        else
            TRY(ki_upload_filled(A->device, ki_matrix_part(A, part), bytes, fill_from_file,
                                 &(struct file_array){A, part}));
    }
    if (A->file) TRY(ki_file_check(A->file));
    TRY(ki_structure_hold(A));
done:
    A->held--;
    if (status != KILN_OK)
        for (int part = ki_matrix_first(A); part < ki_matrix_end(A); part++)
            ki_device_release(A->device, ki_matrix_part(A, part));
    return status;
}

/* The operand as the memory manager sees it: its place may change, its values do not. Views are held by their
 * owner. */
static kiln_matrix *owner_of(const struct ki_operand *operand) {
    const kiln_matrix *A = operand->matrix;
    return A && !A->view ? (kiln_matrix *)(uintptr_t)A : NULL;
}

static void let_go(const struct ki_operand *operands, int count) {
    kiln_matrix *A;
    for (int i = 0; i < count; i++)
        if ((A = owner_of(&operands[i]))) A->held--;
}

/* parts (NULL: none): what is used, and written, in parts where these lie. */
static kiln_status hold(const struct ki_operand *operands, const bool *parts, bool kept, int count) {
    kiln_matrix *A;
    kiln_status status = KILN_OK;
    int i = 0;
    for (int j = 0; j < count; j++)
        if ((A = owner_of(&operands[j]))) A->held++; /* all, before the first comes and drives out the last */
    for (; i < count; i++) {
        if (!(A = owner_of(&operands[i]))) continue;
        if (!kept) TRY(ki_matrix_widen(A));
        if (!ki_matrix_resident(A)) TRY(ki_matrix_bring(A));
        if (operands[i].written) { /* first: a group's slices of it are copied from its host copy */
            parts &&parts[i] ? ki_slots_written(A) : ki_slots_drop(A);
            ki_matrix_drop_host(A);
        }
        ki_memory_leave(A);
        ki_memory_join(A);
    }
done:
    if (status != KILN_OK) let_go(operands, count);
    return status;
}

static kiln_status bring_home(const struct ki_operand *operands, const bool *parts, int count) {
    const kiln_matrix *A;
    kiln_status status = KILN_OK;
    for (int i = 0; i < count; i++)
        if (!(parts && parts[i]) && (A = owner_of(&operands[i]))) TRY(ki_matrix_home(A));
done:
    return status;
}

kiln_status ki_operands_hold_parts(kiln_device *device, const struct ki_operand *operands, const bool *parts,
                                   int count) {
    kiln_status status = bring_home(operands, parts, count);
    if (status == KILN_OK) status = hold(operands, parts, false, count);
    if (status == KILN_OK) device->memory.held++;
    return status;
}

kiln_status ki_operands_hold_kept(kiln_device *device, const struct ki_operand *operands, int count) {
    kiln_status status = bring_home(operands, NULL, count);
    if (status == KILN_OK) status = hold(operands, NULL, true, count);
    if (status == KILN_OK) device->memory.held++;
    return status;
}

kiln_status ki_operands_hold(kiln_device *device, const struct ki_operand *operands, int count) {
    return ki_operands_hold_parts(device, operands, NULL, count);
}

kiln_status ki_operands_hold_launch(kiln_device *device, const struct ki_operand *operands, int count) {
    device->memory.held++;
    kiln_status status = bring_home(operands, NULL, count);
    if (status == KILN_OK) status = hold(operands, NULL, false, count);
    if (status != KILN_OK) device->memory.held--;
    return status;
}

void ki_operands_release(kiln_device *device, const struct ki_operand *operands, int count) {
    device->memory.held--;
    let_go(operands, count);
}
