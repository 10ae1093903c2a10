/* A caller and the library both know a struct's shorter part: the smaller of the two sizes. */
#include "core/sized.h"

#include <string.h>

#include "core/seams.h"

enum {
    SIZE_MOST = 4096
}; /* bytes; no struct will grow so large, and a size that is garbage mostly is larger */

static size_t size_of(const void *given, const struct ki_layout *layout) {
    size_t size;
    memcpy(&size, given, sizeof size);
    return size ? size : layout->first;
}

kiln_status ki_check_size(const void *given, const struct ki_layout *layout) {
    if (!given) return KILN_OK;
    const size_t size = size_of(given, layout);
    if (size >= layout->first && size <= SIZE_MOST) return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "%s.size is %zu, but the struct has at least %zu bytes", layout->name, size,
            layout->first);
    return ki_hint("set it to sizeof(%s), or begin with a zeroed struct", layout->name);
}

kiln_status ki_take(void *own, const void *given, const struct ki_layout *layout) {
    memset(own, 0, layout->now);
    kiln_status status = ki_check_size(given, layout);
    if (status == KILN_OK && given) {
        const size_t size = size_of(given, layout);
        for (size_t at = layout->now; at < size; at++)
            if (((const unsigned char *)given)[at]) {
                ki_fail(KILN_ERR_UNSUPPORTED, "byte %zu of a %s is set, but this library knows only %zu", at,
                        layout->name, layout->now);
                return ki_hint("the program was built for a newer version of Kiln than %s", kiln_version());
            }
        memcpy(own, given, size < layout->now ? size : layout->now);
    }
    memcpy(own, &layout->now, sizeof layout->now);
    return status;
}

void ki_give(void *given, const void *own, const struct ki_layout *layout) {
    if (!given) return;
    const size_t size = size_of(given, layout), shared = size < layout->now ? size : layout->now;
    memcpy((char *)given + sizeof size, (const char *)own + sizeof size, shared - sizeof size);
    memset((char *)given + shared, 0, size - shared);
}

kiln_status ki_give_rows(void **given, int64_t *count, size_t size, void *rows, int64_t listed,
                         const struct ki_layout *layout) {
    kiln_status status = ki_check_size(&size, layout);
    char *made = NULL;
    if (size == 0) status = ki_fail(KILN_ERR_ARGUMENT, "the size of a %s is 0", layout->name);
    if (status == KILN_OK && !(made = ki_calloc((size_t)listed * size + 1)))
        status = ki_fail_nomem((size_t)listed * size, "a list");
    for (int64_t i = 0; i < listed && status == KILN_OK; i++) {
        memcpy(made + (size_t)i * size, &size, sizeof size);
        ki_give(made + (size_t)i * size, (char *)rows + (size_t)i * layout->now, layout);
    }
    ki_free(rows);
    if (status != KILN_OK) return status;
    *given = made;
    *count = listed;
    return KILN_OK;
}

const char *kiln_version(void) {
    return KILN_VERSION; /* as the build has it */
}
