/* source = #define REAL_F64, types.h, the dialect, arguments.h, the kernel file; each with what it includes
 * before it goes on.
 *
 * Compilers for GPUs have no include path, so a line #include "dialect/part.h" is replaced here by the part,
 * the first time that it is met, whatever #if it stands in. #line names our files and lines in the
 * compiler's messages. */
#define _GNU_SOURCE
#include "core/kernels/kernel_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/kernels.h"
#include "core/seams.h"

enum { FILE_MAX = 1 << 20, PATH = 4096, FIRST_ROOM = 1 << 14, PARTS_MAX = 32, NAME = 64 };

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

static kiln_status load_part(struct text *text, const char *name) {
    const char *folder = secure_getenv("KILN_KERNEL_DIR");
    if (!folder || !*folder) return append_embedded(text, name);
    if (*folder == '/') return append_development(text, folder, name);
    ki_fail(KILN_ERR_ARGUMENT, "KILN_KERNEL_DIR is '%.200s', but must be an absolute path", folder);
    return ki_hint("unset KILN_KERNEL_DIR to use the kernels in the library");
}

/* A kernel's source on its way, and the names of its parts. */
struct source {
    struct text text;
    char parts[PARTS_MAX][NAME];
    int count;
};

static kiln_status append_line_number(struct text *text, int line, const char *name) {
    char directive[NAME + 32];
    int length = snprintf(directive, sizeof directive, "\n#line %d \"%s\"\n", line, name);
    return append(text, directive, (size_t)length);
}

/* The name of the part that a line includes; false for any other line. */
static bool included(char name[NAME], const char *line) {
    static const char start[] = "#include \"dialect/";
    if (strncmp(line, start, sizeof start - 1) != 0) return false;
    line += sizeof start - 1;
    const size_t length = strcspn(line, "\"\n");
    if (length >= NAME || line[length] != '"') return false;
    memcpy(name, line, length);
    name[length] = '\0';
    return true;
}

static kiln_status append_part(struct source *source, const char *name);

static kiln_status append_lines(struct source *source, const char *name, const char *lines) {
    char part[NAME];
    kiln_status status = append_line_number(&source->text, 1, name);
    for (int number = 1; *lines && status == KILN_OK; number++) {
        const char *end = lines + strcspn(lines, "\n"), *next = *end ? end + 1 : end;
        if (included(part, lines)) {
            status = append_part(source, part);
            if (status == KILN_OK) status = append_line_number(&source->text, number + 1, name);
        } else
            status = append(&source->text, lines, (size_t)(next - lines));
        lines = next;
    }
    return status;
}

static kiln_status append_part(struct source *source, const char *name) {
    struct text text = {0};
    for (int i = 0; i < source->count; i++)
        if (!strcmp(source->parts[i], name)) return KILN_OK;
    if (source->count == PARTS_MAX)
        return ki_fail(KILN_ERR_INTERNAL, "a kernel has more than %d parts", PARTS_MAX);
    snprintf(source->parts[source->count++], NAME, "%s", name);
    kiln_status status = append(&text, "", 0); /* a file may be empty */
    if (status == KILN_OK) status = load_part(&text, name);
    if (status == KILN_OK) status = append_lines(source, name, text.start);
    ki_free(text.start);
    return status;
}

kiln_status ki_kernel_source(char **source, const char *dialect, const char *file, kiln_type type) {
    char header[NAME], body[NAME];
    snprintf(header, sizeof header, "%s.h", dialect);
    snprintf(body, sizeof body, "%s.cl", file);
    const char *const parts[] = {"types.h", header, "arguments.h", body};
    const char *define = type == KILN_F32 ? "#define REAL_F32 1\n" : "#define REAL_F64 1\n";
    struct source made = {.count = 0};
    kiln_status status = append(&made.text, define, strlen(define));
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == KILN_OK; i++)
        status = append_part(&made, parts[i]);
    if (status != KILN_OK) {
        ki_free(made.text.start);
        return status;
    }
    *source = made.text.start;
    return KILN_OK;
}
