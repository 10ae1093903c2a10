/* kiln_kernels_list: the programs that the keys of the cache name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/cache.h"
#include "core/kernels/kernels.h"
#include "core/seams.h"

struct lines {
    char start[256]; /* of the keys that are meant */
    char **line;
    int64_t count, room;
};

static kiln_status take(void *context, const char *key) {
    static const char word[] = "\nprogram ";
    struct lines *lines = context;
    const char *line = strstr(key, word);
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    if (strncmp(key, lines->start, strlen(lines->start)) != 0 || !end || end[1]) return KILN_OK;
    if (lines->count == lines->room) {
        lines->room = lines->room ? 2 * lines->room : 64;
        char **grown = ki_resize(lines->line, (size_t)lines->room * sizeof *grown);
        if (!grown) return ki_fail_nomem((size_t)lines->room * sizeof *grown, "the list of kernels");
        lines->line = grown;
    }
    char *copy = ki_strdup(line + sizeof word - 1);
    if (!copy) return ki_fail_nomem(strlen(line), "the list of kernels");
    lines->line[lines->count++] = copy;
    return KILN_OK;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One architecture and another have programs of one name. */
static kiln_status join(char **text, const struct lines *lines) {
    size_t bytes = 1, at = 0;
    for (int64_t i = 0; i < lines->count; i++) bytes += strlen(lines->line[i]);
    char *made = ki_resize(NULL, bytes);
    if (!made) return ki_fail_nomem(bytes, "the list of kernels");
    for (int64_t i = 0; i < lines->count; i++) {
        if (i && !strcmp(lines->line[i], lines->line[i - 1])) continue;
        const size_t length = strlen(lines->line[i]);
        memcpy(made + at, lines->line[i], length);
        at += length;
    }
    made[at] = '\0';
    *text = made;
    return KILN_OK;
}

kiln_status kiln_kernels_list(char **programs, const char *backend) {
    struct ki_cache cache;
    struct lines lines = {.count = 0};
    kiln_status status;
    if (programs && backend && strcmp(backend, "cuda") != 0 && strcmp(backend, "opencl") != 0)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "kiln_kernels_list: kernels are built for cuda and opencl, not for '%.40s'", backend);
    if (!programs || !backend)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_kernels_list: %s is NULL", programs ? "backend" : "programs");
    snprintf(lines.start, sizeof lines.start, KI_KEY_START, KILN_VERSION, ki_build_id, backend);
    ki_cache_open(&cache);
    cache.warned = true; /* there is no device to tell it through */
    if (cache.folder < 0) {
        status = ki_fail(KILN_ERR_IO, "the kernel cache %.200s: %s", cache.path, cache.why);
        if (*cache.hint) ki_hint("%s", cache.hint);
        goto done;
    }
    TRY(ki_cache_each(&cache, NULL, take, &lines));
    if (lines.count) qsort(lines.line, (size_t)lines.count, sizeof *lines.line, by_text);
    TRY(join(programs, &lines));
done:
    for (int64_t i = 0; i < lines.count; i++) ki_free(lines.line[i]);
    ki_free(lines.line);
    ki_cache_close(&cache);
    return status;
}
