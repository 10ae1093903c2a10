/* Reads a model file whole: the checks come after, so memory grows with what was read, never with what a
 * header says.
 *
 * Mixing up MODEL and DATA on the command line is the commonest mistake here; the first bytes tell it. */
#define _POSIX_C_SOURCE 200809L
#include "io/model/model_bytes.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "io/formats.h"
#include "io/model/safetensors.h"

enum { FIRST_BYTES = 1 << 16 };

static kiln_status fail_errno(const char *what, const char *path, int code) {
    char reason[128];
    if (strerror_r(code, reason, sizeof reason) != 0) snprintf(reason, sizeof reason, "error %d", code);
    ki_fail_errno(KILN_ERR_IO, code, "cannot %s %s: %s", what, path, reason);
    return code == ENOENT ? ki_hint("check the spelling; relative paths start at the current folder")
                          : KILN_ERR_IO;
}

/* Does the text have "12:3.5" (LIBSVM) or a separator (CSV) in it? NULL if it is no text. */
static const char *guess_text(const unsigned char *text, int64_t size) {
    const char *kind = "text";
    for (int64_t i = 0; i < size; i++) {
        if (text[i] < ' ' && !isspace(text[i])) return NULL;
        if (text[i] == ',' || text[i] == '\t') kind = "CSV data";
        if (text[i] == ':' && i > 0 && isdigit(text[i - 1]) && strcmp(kind, "text") == 0)
            kind = "LIBSVM data";
    }
    return size > 0 ? kind : NULL;
}

static kiln_status fail_not_model(const char *path, const unsigned char *bytes, int64_t size) {
    static const struct {
        const char *magic, *kind;
    } binaries[] = {{"%%MatrixMarket", "Matrix Market data"},
                    {"\x93NUMPY", "npy data"},
                    {"PK\x03\x04", "npz data"},
                    {"\x1f\x8b", "gzip data"},
                    {"\x28\xb5\x2f\xfd", "zstd data"}};
    const char *kind = NULL;
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++) {
        int64_t length = (int64_t)strlen(binaries[i].magic);
        if (size >= length && memcmp(bytes, binaries[i].magic, (size_t)length) == 0) kind = binaries[i].kind;
    }
    if (ki_format_by_mark((const char *)bytes, (size_t)size) == KILN_FILE_PACKED) kind = "packed data";
    if (!kind) kind = guess_text(bytes, ki_min(size, 4096));
    if (!kind) {
        ki_fail(KILN_ERR_MODEL, size ? "%s is not a model" : "%s is empty, not a model", path);
        return ki_hint("a model is what training wrote; it is never compressed");
    }
    ki_fail(KILN_ERR_MODEL, "%s is %s, not a model (did you swap the arguments?)", path, kind);
    return ki_hint("a model is what training wrote; it is never compressed");
}

/* Fills the buffer up to `wanted` bytes; *size < wanted only at the end of the file. */
static kiln_status read_to(unsigned char *buffer, int64_t *size, int64_t wanted, int fd, const char *path) {
    while (*size < wanted) {
        ssize_t got = ki_seams.read(fd, buffer + *size, (size_t)(wanted - *size));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("read", path, errno);
        if (got == 0) break;
        *size += got;
    }
    return KILN_OK;
}

static kiln_status read_all(unsigned char **buffer, int64_t *size, int fd, const char *path) {
    int64_t capacity = FIRST_BYTES;
    for (;;) {
        unsigned char *grown = ki_resize(*buffer, (size_t)capacity);
        if (!grown) return ki_fail_nomem((size_t)capacity, "a model file");
        *buffer = grown;
        kiln_status status = read_to(*buffer, size, capacity, fd, path);
        if (status != KILN_OK) return status;
        if (!ki_safetensors_begins(*buffer, *size) ||
            ki_format_by_mark((const char *)*buffer, (size_t)*size) == KILN_FILE_PACKED)
            return fail_not_model(path, *buffer, *size);
        if (*size < capacity) return KILN_OK;
        if (!ki_mul(capacity, 2, &capacity)) return ki_fail(KILN_ERR_LIMIT, "%s is too large", path);
    }
}

kiln_status ki_model_bytes(unsigned char **bytes, int64_t *size, const char *path) {
    unsigned char *buffer = NULL;
    int64_t got = 0;
    int fd;
    do fd = ki_seams.open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC, 0);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return fail_errno("open", path, errno);
    kiln_status status = read_all(&buffer, &got, fd, path);
    ki_seams.close(fd); /* opened for reading: nothing can be lost */
    if (status != KILN_OK) {
        ki_free(buffer);
        return status;
    }
    *bytes = buffer;
    *size = got;
    return KILN_OK;
}
