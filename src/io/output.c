/* write -> fsync(file) -> close -> rename -> fsync(folder): at every instant PATH is the whole old file or
 * the whole new one.
 *
 * The order is the point. Without the first fsync a power cut after the rename may leave an empty PATH;
 * without the second one it may bring the old PATH back after success was reported. What cannot be renamed (a
 * pipe, a device) is written as it comes. */
#define _DEFAULT_SOURCE
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/file.h"
#include "core/seams.h"
#include "core/size.h"

enum { BUFFER_BYTES = 1 << 18, TEMPORARIES = 16 };

/* The temporary files that exist, for kiln_abandon_files: a handler of signals may read the table at any
 * instant. Where more outputs are open than it holds, the rest have no place in it. */
static _Atomic(const char *) temporaries[TEMPORARIES];

static void remember(const char *path) {
    const char *none = NULL;
    for (int i = 0; i < TEMPORARIES; i++, none = NULL)
        if (atomic_compare_exchange_strong(&temporaries[i], &none, path)) return;
}

static void forget(const char *path) {
    const char *own = path;
    for (int i = 0; i < TEMPORARIES; i++, own = path)
        if (atomic_compare_exchange_strong(&temporaries[i], &own, NULL)) return;
}

void kiln_abandon_files(void) {
    for (int i = 0; i < TEMPORARIES; i++) {
        const char *path = atomic_exchange(&temporaries[i], NULL);
        if (path) unlink(path);
    }
}

struct ki_output {
    int fd;
    bool atomic; /* written to `temporary`, renamed to `target` */
    bool gzip;
    char name[PATH_MAX];   /* as the caller gave it, for messages */
    char target[PATH_MAX]; /* behind symbolic links */
    char temporary[PATH_MAX];
    const kiln_control *control;
    double started;
    int64_t written; /* bytes handed in so far */
    size_t used;     /* of buffer */
    z_stream stream;
    unsigned char buffer[BUFFER_BYTES];
    unsigned char packed[BUFFER_BYTES];
};

static kiln_status fail_errno(const char *what, const char *path, int code) {
    char reason[128];
    if (strerror_r(code, reason, sizeof reason) != 0) snprintf(reason, sizeof reason, "error %d", code);
    ki_fail_errno(KILN_ERR_IO, code, "cannot %s %s: %s", what, path, reason);
    if (code == EFBIG) return ki_hint("the file size is limited: see ulimit -f");
    if (code == ENOSPC || code == EDQUOT) return ki_hint("free some space, or write to another disk");
    if (code == ENOENT) return ki_hint("create the folder first");
    if (code == EACCES || code == EROFS) return ki_hint("choose a folder that you may write to");
    return KILN_ERR_IO;
}

static kiln_status report(struct ki_output *output) {
    const kiln_control *control = output->control;
    if (!control || !control->progress) return KILN_OK;
    kiln_progress now = {.phase = "write", .done = output->written, .seconds = ki_clock() - output->started};
    if (!control->progress(control->user, &now)) return KILN_OK;
    return ki_fail(KILN_ERR_CANCELLED, "writing %s was cancelled", output->name);
}

/* The folder of path: "a/b" -> "a", "/b" -> "/", "b" -> ".". */
static void folder_of(char folder[PATH_MAX], const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, PATH_MAX, ".");
    else
        snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

/* "folder/.base.0123456789abcdef.tmp": hidden, in the same file system, and not to be guessed by others in a
 * shared folder. */
static bool name_temporary(struct ki_output *output) {
    unsigned char random[8];
    if (getentropy(random, sizeof random) != 0) return false;
    uint64_t word;
    memcpy(&word, random, sizeof word);
    const char *slash = strrchr(output->target, '/');
    int folder = slash ? (int)(slash - output->target + 1) : 0;
    int length = snprintf(output->temporary, PATH_MAX, "%.*s.%.200s.%016llx.tmp", folder, output->target,
                          output->target + folder, (unsigned long long)word);
    if (length < PATH_MAX) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* A new file gets what the umask leaves of 0666; a replacement is closed to others until it gets the old
 * permissions. */
static kiln_status open_temporary(struct ki_output *output, const struct stat *old) {
    for (int attempt = 0; attempt < 16; attempt++) {
        if (!name_temporary(output)) return fail_errno("create", output->name, errno);
        remember(output->temporary);
        output->fd = ki_seams.open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                   old ? 0600 : 0666);
        if (output->fd >= 0) break;
        forget(output->temporary);
        if (errno != EEXIST && errno != EINTR) return fail_errno("create", output->name, errno);
    }
    if (output->fd < 0) return fail_errno("create", output->name, EEXIST);
    output->atomic = true;
    if (old && fchmod(output->fd, old->st_mode & 0777) != 0)
        return fail_errno("set the permissions of", output->name, errno);
    return KILN_OK;
}

static kiln_status open_direct(struct ki_output *output) {
    /* A FIFO without a reader waits here: a signal is the caller's chance to stop. */
    while ((output->fd = ki_seams.open(output->name, O_WRONLY | O_NOCTTY | O_CLOEXEC, 0)) < 0) {
        if (errno != EINTR) return fail_errno("open", output->name, errno);
        kiln_status status = report(output);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

static kiln_status open_path(struct ki_output *output, const char *path) {
    if (strlen(path) >= PATH_MAX) return fail_errno("create", path, ENAMETOOLONG);
    if (!*path) return ki_fail(KILN_ERR_ARGUMENT, "the name of the output file is empty");
    memcpy(output->name, path, strlen(path) + 1);
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) {
        output->fd = STDOUT_FILENO;
        return KILN_OK;
    }
    struct stat old, link;
    if (stat(path, &old) != 0) {
        if (errno != ENOENT) return fail_errno("create", path, errno);
        if (lstat(path, &link) == 0) {
            ki_fail(KILN_ERR_IO, "cannot write %s: it is a symbolic link to a file that does not exist",
                    path);
            return ki_hint("remove the link, or name the file itself");
        }
        memcpy(output->target, path, strlen(path) + 1);
        return open_temporary(output, NULL);
    }
    if (S_ISDIR(old.st_mode)) return fail_errno("write", path, EISDIR);
    if (!S_ISREG(old.st_mode)) return open_direct(output);
    if (!realpath(path, output->target)) return fail_errno("create", path, errno);
    return open_temporary(output, &old);
}

static voidpf zlib_alloc(voidpf user, uInt items, uInt size) {
    (void)user;
    int64_t bytes;
    return ki_mul(items, size, &bytes) ? ki_alloc((size_t)bytes) : Z_NULL;
}

static void zlib_free(voidpf user, voidpf memory) {
    (void)user;
    ki_free(memory);
}

static kiln_status start_gzip(struct ki_output *output) {
    enum { WINDOW_AND_GZIP = 15 + 16, MEMORY_LEVEL = 8 };
    output->stream.zalloc = zlib_alloc;
    output->stream.zfree = zlib_free;
    if (deflateInit2(&output->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_AND_GZIP, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return ki_fail_nomem(1 << 18, "gzip compression");
    output->gzip = true;
    return KILN_OK;
}

kiln_status ki_output_open(struct ki_output **output, const char *path, bool gzip,
                           const kiln_control *control) {
    kiln_status status = KILN_OK;
    struct ki_output *made = ki_calloc(sizeof *made);
    if (!made) return ki_fail_nomem(sizeof *made, "output buffer");
    made->fd = -1;
    made->control = control;
    made->started = ki_clock();
    if (gzip) TRY(start_gzip(made));
    TRY(open_path(made, path));
    *output = made;
    made = NULL;
done:
    ki_output_abandon(made);
    return status;
}

static kiln_status write_all(struct ki_output *output, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        ssize_t wrote = ki_seams.write(output->fd, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return fail_errno("write", output->name, errno);
        if (wrote == 0) return fail_errno("write", output->name, EIO);
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return KILN_OK;
}

static kiln_status compress_all(struct ki_output *output, const unsigned char *bytes, size_t size, int mode) {
    z_stream *stream = &output->stream;
    stream->next_in = (unsigned char *)bytes; /* zlib does not write to it */
    stream->avail_in = (uInt)size;
    do {
        stream->next_out = output->packed;
        stream->avail_out = BUFFER_BYTES;
        if (deflate(stream, mode) == Z_STREAM_ERROR)
            return ki_fail(KILN_ERR_INTERNAL, "gzip stream is broken");
        kiln_status status = write_all(output, output->packed, BUFFER_BYTES - stream->avail_out);
        if (status != KILN_OK) return status;
    } while (stream->avail_out == 0);
    return KILN_OK;
}

static kiln_status flush(struct ki_output *output, bool last) {
    size_t size = output->used;
    output->used = 0;
    kiln_status status = output->gzip
                             ? compress_all(output, output->buffer, size, last ? Z_FINISH : Z_NO_FLUSH)
                             : write_all(output, output->buffer, size);
    return status == KILN_OK ? report(output) : status;
}

kiln_status ki_output_write(struct ki_output *output, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    output->written += (int64_t)size;
    while (size > 0) {
        size_t part = (size_t)ki_min((int64_t)size, (int64_t)(BUFFER_BYTES - output->used));
        memcpy(output->buffer + output->used, from, part);
        output->used += part;
        from += part;
        size -= part;
        if (output->used < BUFFER_BYTES) continue;
        kiln_status status = flush(output, false);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

static kiln_status write_piece(void *output, const void *piece, size_t size) {
    return ki_output_write(output, piece, size);
}

kiln_status ki_output_copy(struct ki_output *output, const struct ki_file *file, int part, kiln_type type,
                           int64_t count) {
    return ki_file_each(file, part, type, count, write_piece, output);
}

int64_t ki_output_bytes(const struct ki_output *output) {
    return output->written;
}

static kiln_status close_file(struct ki_output *output) {
    int fd = output->fd;
    output->fd =
        -1; /* POSIX leaves its state open after a failed close; trying again could close another's file */
    if (fd < 0 || fd == STDOUT_FILENO) return KILN_OK;
    return ki_seams.close(fd) != 0 && errno != EINTR ? fail_errno("close", output->name, errno) : KILN_OK;
}

static int sync_fd(int fd) {
    int result;
    do result = ki_seams.fsync(fd);
    while (result != 0 && errno == EINTR);
    return result;
}

/* Opened before the rename, so that only the very last fsync can fail once PATH is new. -1 without an error:
 * the folder may be written but not read, and so cannot be synchronised by us. */
static kiln_status open_folder(int *fd, const struct ki_output *output) {
    char folder[PATH_MAX];
    folder_of(folder, output->target);
    do *fd = ki_seams.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    while (*fd < 0 && errno == EINTR);
    return *fd < 0 && errno != EACCES ? fail_errno("open the folder of", output->name, errno) : KILN_OK;
}

static kiln_status replace_target(struct ki_output *output) {
    int folder = -1;
    kiln_status status = KILN_OK;
    if (sync_fd(output->fd) != 0) return fail_errno("flush", output->name, errno);
    TRY(close_file(output));
    TRY(open_folder(&folder, output));
    if (ki_seams.rename(output->temporary, output->target) != 0) {
        status = fail_errno("rename the temporary file to", output->name, errno);
        goto done;
    }
    forget(output->temporary);
    output->atomic = false; /* nothing is left to remove */
    /* EINVAL: this file system has no way to synchronise a folder. */
    if (folder >= 0 && sync_fd(folder) != 0 && errno != EINVAL)
        status = fail_errno("flush the folder of", output->name, errno);
done:
    if (folder >= 0) ki_seams.close(folder); /* opened for reading: nothing can be lost */
    return status;
}

kiln_status ki_output_commit(struct ki_output *output) {
    kiln_status status;
    TRY(flush(output, true));
    TRY(output->atomic ? replace_target(output) : close_file(output));
done:
    ki_output_abandon(output);
    return status;
}

void ki_output_abandon(struct ki_output *output) {
    if (!output) return;
    if (output->fd >= 0 && output->fd != STDOUT_FILENO) ki_seams.close(output->fd);
    if (output->atomic) ki_seams.unlink(output->temporary);
    forget(output->temporary);
    if (output->gzip) deflateEnd(&output->stream);
    ki_free(output);
}
