/* A growing run of bytes. Capacity doubles, so that memory stays within a factor of two of what was put in,
 * whatever a header may have promised. Room is asked for first; a reader's worker thread then has no error to
 * report but "no room". */
#ifndef KI_BYTES_H
#define KI_BYTES_H

#include <stdbool.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"

struct ki_bytes {
    char *data;
    int64_t size, capacity;
};

/* Makes room for `more` bytes behind the present ones; false if there is no memory. */
static inline bool ki_bytes_room(struct ki_bytes *bytes, int64_t more) {
    int64_t needed, doubled;
    if (!ki_add(bytes->size, more, &needed)) return false;
    if (needed <= bytes->capacity) return true;
    if (!ki_mul(bytes->capacity, 2, &doubled)) doubled = needed;
    int64_t capacity = ki_max(ki_max(needed, doubled), 256);
    char *data = ki_resize(bytes->data, (size_t)capacity);
    if (!data) return false;
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

static inline bool ki_bytes_append(struct ki_bytes *bytes, const void *data, int64_t size) {
    if (!ki_bytes_room(bytes, size)) return false;
    if (size > 0) memcpy(bytes->data + bytes->size, data, (size_t)size);
    bytes->size += size;
    return true;
}

static inline void ki_bytes_free(struct ki_bytes *bytes) {
    ki_free(bytes->data);
    *bytes = (struct ki_bytes){0};
}

/* Hands the memory to the caller, never NULL on success; the run is empty afterwards. */
static inline void *ki_bytes_take(struct ki_bytes *bytes) {
    void *data = bytes->data ? bytes->data : ki_resize(NULL, 1);
    *bytes = (struct ki_bytes){0};
    return data;
}

#endif
