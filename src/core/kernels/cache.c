/* The cache folder, opened once, and its files, each reached through that descriptor and checked before use.
 *
 * Paths are walked once: what is checked (fstat of the open descriptor) is what is used. Links are not
 * followed, so that nobody can point us elsewhere; a FIFO is opened without waiting, and refused. */
#define _GNU_SOURCE
#include "core/kernels/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/seams.h"

static const char *absolute_variable(const char *name) {
    const char *value = secure_getenv(name);
    return value && *value == '/' ? value : NULL;
}

/* KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln. Never a folder that others share. */
static bool locate(struct ki_cache *cache) {
    const char *own = secure_getenv("KILN_CACHE_DIR"), *base = NULL, *below = "";
    if (own && *own && *own != '/') {
        snprintf(cache->why, sizeof cache->why, "KILN_CACHE_DIR is '%.100s', which is not an absolute path",
                 own);
        return false;
    }
    if (own && *own)
        base = own;
    else if ((base = absolute_variable("XDG_CACHE_HOME")))
        below = "/kiln";
    else if ((base = absolute_variable("HOME")))
        below = "/.cache/kiln";
    if (!base) {
        snprintf(cache->why, sizeof cache->why, "none of KILN_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
        snprintf(cache->hint, sizeof cache->hint, "set KILN_CACHE_DIR to a folder of your own");
        return false;
    }
    int length = snprintf(cache->path, sizeof cache->path, "%s%s", base, below);
    if (length < (int)sizeof cache->path) return true;
    cache->path[0] = '\0';
    snprintf(cache->why, sizeof cache->why, "its path is longer than %d bytes", KI_CACHE_PATH - 1);
    return false;
}

/* mkdir -p -m 700; whether it worked shows when the folder is opened. */
static void make_folders(const char *path) {
    char part[KI_CACHE_PATH];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0700);
        *slash = '/';
    }
    mkdir(part, 0700);
}

static bool private_folder(struct ki_cache *cache) {
    struct stat info;
    if (fstat(cache->folder, &info) != 0) {
        snprintf(cache->why, sizeof cache->why, "%s", strerror(errno));
        return false;
    }
    if (info.st_uid != geteuid()) {
        snprintf(cache->why, sizeof cache->why, "it belongs to user %u, not to you (%u)",
                 (unsigned)info.st_uid, (unsigned)geteuid());
        snprintf(cache->hint, sizeof cache->hint, "set KILN_CACHE_DIR to a folder of your own");
        return false;
    }
    if (info.st_mode & 022) {
        snprintf(cache->why, sizeof cache->why, "others may write to it (mode %03o)",
                 (unsigned)info.st_mode & 0777);
        snprintf(cache->hint, sizeof cache->hint, "chmod 700 that folder");
        return false;
    }
    return true;
}

static int open_retrying(int folder, const char *name, int flags, unsigned mode) {
    int file;
    do file = ki_seams.openat(folder, name, flags, mode);
    while (file < 0 && errno == EINTR);
    return file;
}

void ki_cache_open(struct ki_cache *cache) {
    *cache = (struct ki_cache){.folder = -1};
    if (!locate(cache)) return;
    make_folders(cache->path);
    cache->folder = open_retrying(AT_FDCWD, cache->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (cache->folder < 0) {
        snprintf(cache->why, sizeof cache->why, "%s",
                 errno == ENOTDIR || errno == ELOOP ? "it is a file or a symbolic link, not a folder"
                                                    : strerror(errno));
        snprintf(cache->hint, sizeof cache->hint, "set KILN_CACHE_DIR to a folder of your own");
    } else if (!private_folder(cache)) {
        ki_cache_close(cache);
    }
}

void ki_cache_close(struct ki_cache *cache) {
    if (cache->folder >= 0) ki_seams.close(cache->folder);
    cache->folder = -1;
}

/* Tells the user through the device, the first time only. */
static KI_PRINTF(3, 4) void warn(struct ki_cache *cache, const kiln_device *device, const char *format, ...) {
    if (cache->warned) return;
    cache->warned = true;
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ki_device_message(device, "kernel cache %.80s%s%s: %s", cache->path, *cache->path ? " " : "",
                      cache->folder < 0 ? "not used" : "trouble", text);
}

kiln_status ki_cache_of(struct ki_cache **cache, kiln_device *device) {
    if (!device->cache) {
        device->cache = ki_alloc(sizeof *device->cache);
        if (!device->cache) return ki_fail_nomem(sizeof *device->cache, "the kernel cache");
        memset(&device->cache->recalled, 0, sizeof device->cache->recalled);
        ki_cache_open(device->cache);
        if (device->cache->folder < 0)
            warn(device->cache, device, "%s%s%s", device->cache->why, *device->cache->hint ? "; " : "",
                 device->cache->hint);
    }
    *cache = device->cache;
    return KILN_OK;
}

void ki_cache_drop_file(struct ki_cache *cache, const kiln_device *device, const char *name,
                        const char *why) {
    ki_seams.unlinkat(cache->folder, name, 0);
    warn(cache, device, "%.20s... is not usable (%s) and was dropped", name, why);
}

/* NULL, or why the open file may not be trusted. */
static const char *distrust(int file, size_t *size, size_t most) {
    struct stat info;
    if (fstat(file, &info) != 0) return strerror(errno);
    if (!S_ISREG(info.st_mode)) return "not a regular file";
    if (info.st_uid != geteuid()) return "belongs to another user";
    if (info.st_nlink != 1) return "has several names";
    if (info.st_mode & 022) return "others may write to it";
    if (info.st_size < 0 || (uint64_t)info.st_size > most) return "too large";
    *size = (size_t)info.st_size;
    return NULL;
}

static const char *read_all(int file, char *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = ki_seams.read(file, bytes + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return strerror(errno);
        if (got == 0) return "shorter than its size says";
        done += (size_t)got;
    }
    return NULL;
}

kiln_status ki_cache_read_file(char **bytes, size_t *size, struct ki_cache *cache, const kiln_device *device,
                               const char *name, size_t most) {
    if (cache->folder < 0) return KILN_OK;
    char *content = NULL;
    size_t length = 0;
    const char *trouble;
    int file =
        open_retrying(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    if (file < 0) {
        if (errno == ENOENT) return KILN_OK;
        trouble = errno == ELOOP ? "a symbolic link" : strerror(errno);
    } else {
        trouble = distrust(file, &length, most);
        if (!trouble && !(content = ki_resize(NULL, length))) {
            ki_seams.close(file);
            return ki_fail_nomem(length, "an entry of the kernel cache");
        }
        if (!trouble) trouble = read_all(file, content, length);
        if (!trouble)
            futimens(file, NULL); /* the modification time is that of the last use; tidying goes by it */
        ki_seams.close(file);
    }
    if (trouble) {
        ki_free(content);
        ki_cache_drop_file(cache, device, name, trouble);
        return KILN_OK;
    }
    *bytes = content;
    *size = length;
    return KILN_OK;
}

/* A new file of ours; its name is ".new-", process, count and clock, tried again should it exist. */
static int create_temporary(const struct ki_cache *cache, char *name, size_t bytes) {
    static atomic_uint count;
    int file = -1;
    for (int tries = 0; tries < 16 && file < 0; tries++) {
        snprintf(name, bytes, ".new-%ld-%u-%.0f", (long)getpid(), atomic_fetch_add(&count, 1),
                 1e9 * ki_clock());
        file = open_retrying(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST) break;
    }
    return file;
}

bool ki_write_all(int file, const void *bytes, size_t size) {
    for (const char *at = bytes; size > 0;) {
        const ssize_t written = ki_seams.write(file, at, size);
        if (written < 0 && errno == EINTR) continue;
        if (written == 0) errno = EIO;
        if (written <= 0) return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

/* No fsync: an entry torn by a power cut fails its hash and is built anew. */
void ki_cache_write_file(struct ki_cache *cache, const kiln_device *device, const char *name,
                         const struct ki_piece *pieces, int count) {
    if (cache->folder < 0 || cache->read_only) return;
    char temporary[64];
    int file = create_temporary(cache, temporary, sizeof temporary);
    bool good = file >= 0;
    for (int i = 0; i < count && good; i++) good = ki_write_all(file, pieces[i].bytes, pieces[i].size);
    int trouble = good ? 0 : errno;
    /* A close that a signal interrupts has closed all the same. */
    if (file >= 0 && ki_seams.close(file) != 0 && errno != EINTR && !trouble) trouble = errno;
    if (!trouble && ki_seams.renameat(cache->folder, temporary, cache->folder, name) != 0) trouble = errno;
    if (!trouble) return;
    if (file >= 0) ki_seams.unlinkat(cache->folder, temporary, 0);
    cache->read_only = true;
    warn(cache, device, "writing failed (%s); what is built now will be built again next time",
         strerror(trouble));
}

int64_t ki_cache_bytes(const struct ki_cache *cache) {
    int64_t total = 0;
    int copy =
        cache->folder < 0 ? -1 : open_retrying(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        if (copy >= 0) ki_seams.close(copy);
        return 0;
    }
    struct stat info;
    for (struct dirent *entry; (entry = readdir(list));)
        if (fstatat(cache->folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode))
            total += info.st_size;
    closedir(list);
    return total;
}
