/* Reading a matrix's arrays from where they lie in a file. */
#define _GNU_SOURCE
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/narrow/values.h"
#include "core/seams.h"
#include "core/size.h"

enum { READ_BYTES = 1 << 30 }; /* in one call, which takes no more than 2 GiB */

static kiln_status fail_file(const struct ki_file *file, int code, const char *what) {
    return ki_fail_errno(KILN_ERR_IO, code, "cannot %s %s: %s", what, file->name, strerror(code));
}

static struct ki_file_state state_of(const struct stat *info) {
    return (struct ki_file_state){.bytes = info->st_size,
                                  .device = (int64_t)info->st_dev,
                                  .number = (int64_t)info->st_ino,
                                  .modified = {info->st_mtim.tv_sec, info->st_mtim.tv_nsec},
                                  .changed = {info->st_ctim.tv_sec, info->st_ctim.tv_nsec}};
}

kiln_status ki_file_note(struct ki_file *file) {
    struct stat info;
    if (fstat(file->fd, &info) != 0) return fail_file(file, errno, "look at");
    file->state = state_of(&info);
    return KILN_OK;
}

kiln_status ki_file_check(const struct ki_file *file) {
    static const struct ki_file_state none;
    const struct ki_place place = {file->name, 0, 0, -1};
    struct stat info;
    if (memcmp(&file->state, &none, sizeof none) == 0) return KILN_OK;
    if (fstat(file->fd, &info) != 0) return fail_file(file, errno, "look at");
    const struct ki_file_state now = state_of(&info);
    if (memcmp(&file->state, &now, sizeof now) == 0) return KILN_OK;
    ki_fail_at(KILN_ERR_IO, &place, "the file has changed while it was in use");
    return ki_hint("leave the file alone until the run has ended, or work on a copy of it");
}

static kiln_status open_regular(struct ki_file *file, int64_t *bytes) {
    struct stat info;
    while ((file->fd = ki_seams.open(file->name, O_RDONLY | O_CLOEXEC, 0)) < 0)
        if (errno != EINTR) return fail_file(file, errno, "open");
    if (fstat(file->fd, &info) != 0) return fail_file(file, errno, "look at");
    if (!S_ISREG(info.st_mode)) {
        ki_fail(KILN_ERR_UNSUPPORTED, "%s is no regular file, so its rows cannot be read when needed",
                file->name);
        return ki_hint("copy it into a file, or leave --map out");
    }
    file->state = state_of(&info);
    *bytes = info.st_size;
    return KILN_OK;
}

kiln_status ki_file_open(struct ki_file **file, int64_t *bytes, const char *path) {
    kiln_status status;
    struct ki_file *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "an open file");
    made->fd = -1;
    made->name = ki_strdup(path);
    if (!made->name) TRY(ki_fail_nomem(strlen(path) + 1, "the name of a file"));
    TRY(open_regular(made, bytes));
    *file = made;
    made = NULL;
done:
    ki_file_close(made);
    return status;
}

kiln_status ki_file_again(struct ki_file **again, const struct ki_file *file) {
    kiln_status status = KILN_OK;
    struct ki_file *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "an open file");
    memcpy(made->at, file->at, sizeof made->at);
    made->element = file->element;
    made->ones = file->ones;
    made->state = file->state;
    made->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0); /* the file that is open, whatever its name means now */
    if (made->fd < 0) TRY(fail_file(file, errno, "open once more"));
    made->name = ki_strdup(file->name);
    if (!made->name) TRY(ki_fail_nomem(strlen(file->name) + 1, "the name of a file"));
    *again = made;
    made = NULL;
done:
    ki_file_close(made);
    return status;
}

void ki_file_close(struct ki_file *file) {
    if (!file) return;
    if (file->fd >= 0) ki_seams.close(file->fd); /* nothing was written, so nothing can be lost */
    ki_free(file->name);
    ki_free(file);
}

int64_t ki_file_try(const struct ki_file *file, void *to, int64_t offset, int64_t bytes) {
    int64_t done = 0;
    while (done < bytes) {
        const ssize_t got = ki_seams.pread(file->fd, (char *)to + done,
                                           (size_t)ki_min(bytes - done, READ_BYTES), (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += got;
    }
    return done;
}

kiln_status ki_file_fail(const struct ki_file *file, int64_t offset, int code) {
    if (code) return fail_file(file, code, "read");
    const struct ki_place place = {file->name, 0, 0, offset};
    ki_fail_at(KILN_ERR_IO, &place, "the file has become shorter while it was in use");
    return ki_hint("leave the file alone until the run has ended");
}

kiln_status ki_file_read(const struct ki_file *file, void *to, int64_t offset, int64_t bytes) {
    const int64_t got = ki_file_try(file, to, offset, bytes);
    return got == bytes ? KILN_OK : ki_file_fail(file, offset + got, got < 0 ? errno : 0);
}

int64_t ki_file_value_bytes(const struct ki_file *file, kiln_type type) {
    if (file->ones) return 0;
    return file->element ? ki_element_bytes(file->element) : ki_type_bytes(type);
}

static void fill_ones(void *to, kiln_type type, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (type == KILN_F32)
            ((float *)to)[i] = 1;
        else
            ((double *)to)[i] = 1;
}

/* Narrow values are read to the end of their room. Widened from the first on they never reach those that are
 * still to be widened, of which a few are taken out of the way first. */
static kiln_status read_narrow(void *to, const struct ki_file *file, kiln_type type, int64_t first,
                               int64_t count) {
    enum { PIECE = 512 };
    const int64_t wide = ki_type_bytes(type), narrow = ki_element_bytes(file->element);
    char *values = to, *from = values + count * (wide - narrow);
    double room[PIECE];
    const kiln_status status = ki_file_read(file, from, file->at[KI_VALUES] + first * narrow, count * narrow);
    for (int64_t i = 0; status == KILN_OK && i < count; i += PIECE) {
        const int64_t some = ki_min(PIECE, count - i);
        memcpy(room, from + i * narrow, (size_t)(some * narrow));
        ki_widen_values(values + i * wide, type, file->element, room, 0, some);
    }
    return status;
}

kiln_status ki_file_elements(void *to, const struct ki_file *file, int part, kiln_type type, int64_t first,
                             int64_t count) {
    const int64_t element = part == KI_COL ? 4 : ki_type_bytes(type);
    if (part == KI_COL || (!file->ones && !file->element))
        return ki_file_read(file, to, file->at[part] + first * element, count * element);
    if (!file->ones) return read_narrow(to, file, type, first, count);
    fill_ones(to, type, count);
    return KILN_OK;
}

kiln_status ki_file_each(const struct ki_file *file, int part, kiln_type type, int64_t count,
                         kiln_status (*take)(void *of, const void *piece, size_t size), void *of) {
    enum { PIECE = 1 << 15 };
    const int64_t element = part == KI_COL ? 4 : ki_type_bytes(type);
    unsigned char *room = ki_alloc((size_t)(PIECE * element));
    kiln_status status = KILN_OK;
    if (!room) return ki_fail_nomem((size_t)(PIECE * element), "a piece of a file");
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t some = ki_min(count - first, PIECE);
        TRY(ki_file_elements(room, file, part, type, first, some));
        TRY(take(of, room, (size_t)(some * element)));
    }
done:
    ki_free(room);
    return status;
}

static kiln_status check_columns(const kiln_matrix *A, const int32_t *col, int64_t first, int64_t count) {
    const uint32_t cols = (uint32_t)A->cols; /* a negative column is a large one */
    uint32_t outside = 0;
    for (int64_t i = 0; i < count; i++) outside |= (uint32_t)col[i] >= cols;
    if (!outside) return KILN_OK;
    const struct ki_place place = {A->file->name, 0, 0, A->file->at[KI_COL] + 4 * first};
    ki_fail_at(KILN_ERR_IO, &place,
               "a column lies outside [0, %lld): the file has changed while it was in use",
               (long long)A->cols);
    return ki_hint("leave the file alone until the run has ended");
}

kiln_status ki_matrix_read(void *to, const kiln_matrix *A, int part, int64_t first, int64_t count) {
    const kiln_status status = ki_file_elements(to, A->file, part, A->type, first, count);
    return status == KILN_OK && part == KI_COL ? check_columns(A, to, first, count) : status;
}
