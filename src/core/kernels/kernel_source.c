/* source = #define REAL_F64, then for each part: #line 1 "part" and its text.
 *
 * The lines name our files in the compiler's messages. The parts are concatenated because compilers for GPUs
 * have no include path; what is common to all kernels is small enough to be put before each. */
#define _GNU_SOURCE
#include "core/kernels/kernel_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "core/seams.h"

/* No kernel's source is longer than FIRST_ROOM bytes today. */
enum { FILE_MAX = 1 << 20, PATH = 4096, FIRST_ROOM = 1 << 18 };

/* A string that grows. */
struct text {
    char *start;
    size_t size, room;
};

static kiln_status append(struct text *text, const char *piece, size_t bytes) {
    size_t room = text->room ? text->room : FIRST_ROOM;
    while (room <= text->size + bytes) room *= 2;
    if (room > text->room) {
        char *grown = ki_resize(text->start, room);
        if (!grown) return ki_fail_nomem(room, "a kernel's source");
        text->start = grown;
        text->room = room;
    }
    memcpy(text->start + text->size, piece, bytes);
    text->size += bytes;
    text->start[text->size] = '\0';
    return KILN_OK;
}

static kiln_status append_embedded(struct text *text, const char *name) {
    for (const struct ki_source *source = ki_sources; source->name; source++)
        if (strcmp(source->name, name) == 0) return append(text, source->text, strlen(source->text));
    return ki_fail(KILN_ERR_INTERNAL, "the kernel file '%s' is not part of this library", name);
}

/* The file's place in the source tree. */
static const char *path_of(const char *name) {
    for (const struct ki_source *source = ki_sources; source->name; source++)
        if (strcmp(source->name, name) == 0) return source->path;
    return name;
}

static int open_below(const char *folder, const char *below) {
    char path[PATH];
    int file = -1;
    if (snprintf(path, sizeof path, "%s/%s", folder, below) >= PATH) {
        errno = ENAMETOOLONG;
        return -1;
    }
    do file = ki_seams.open(path, O_RDONLY | O_CLOEXEC, 0);
    while (file < 0 && errno == EINTR);
    return file;
}

/* The kernel file in the folder that a developer named: there, or where the source tree keeps it. */
static int open_development(const char *folder, const char *name) {
    const int file = open_below(folder, name);
    return file < 0 && errno == ENOENT ? open_below(folder, path_of(name)) : file;
}

static kiln_status append_development(struct text *text, const char *folder, const char *name) {
    char chunk[4096];
    size_t total = 0;
    ssize_t got = 1;
    kiln_status status = KILN_OK;
    int file = open_development(folder, name);
    if (file < 0) {
        ki_fail_errno(KILN_ERR_IO, errno, "KILN_KERNEL_DIR=%s: %s: %s", folder, name, strerror(errno));
        return ki_hint("unset KILN_KERNEL_DIR to use the kernels in the library");
    }
    while (status == KILN_OK && got != 0 && total <= FILE_MAX) {
        got = ki_seams.read(file, chunk, sizeof chunk);
        if (got > 0)
            status = append(text, chunk, (size_t)got);
        else if (got < 0 && errno != EINTR)
            status = ki_fail_errno(KILN_ERR_IO, errno, "%s/%s: %s", folder, name, strerror(errno));
        if (got > 0) total += (size_t)got;
    }
    ki_seams.close(file);
    if (status == KILN_OK && total > FILE_MAX)
        status = ki_fail(KILN_ERR_LIMIT, "%s/%s is larger than %d bytes", folder, name, FILE_MAX);
    return status;
}

static kiln_status append_part(struct text *text, const char *name) {
    const char *folder = secure_getenv("KILN_KERNEL_DIR");
    char line[128];
    int length = snprintf(line, sizeof line, "\n#line 1 \"%s\"\n", name);
    kiln_status status = append(text, line, (size_t)length);
    if (status != KILN_OK) return status;
    if (!folder || !*folder) return append_embedded(text, name);
    if (*folder == '/') return append_development(text, folder, name);
    ki_fail(KILN_ERR_ARGUMENT, "KILN_KERNEL_DIR is '%.200s', but must be an absolute path", folder);
    return ki_hint("unset KILN_KERNEL_DIR to use the kernels in the library");
}

kiln_status ki_kernel_source(char **source, const char *dialect, const char *file, kiln_type type) {
    char header[64], body[64];
    snprintf(header, sizeof header, "%s.h", dialect);
    snprintf(body, sizeof body, "%s.cl", file);
    const char *const parts[] = {"types.h",      header,        "scalar_math.h", "real_math.h",
                                 "losses.h",     "group_sum.h", "arguments.h",   "chain_arguments.h",
                                 "wide_loads.h", "pass.h",      "bulk.h",        "tensor.h",
                                 "halves.h",     "screen.h",    "tile.h",        "exchange.h",
                                 "gathered.h",   body};
    const char *define = type == KILN_F32 ? "#define REAL_F32 1\n" : "#define REAL_F64 1\n";
    struct text text = {0};
    kiln_status status = append(&text, define, strlen(define));
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == KILN_OK; i++)
        status = append_part(&text, parts[i]);
    if (status != KILN_OK) {
        ki_free(text.start);
        return status;
    }
    *source = text.start;
    return KILN_OK;
}
