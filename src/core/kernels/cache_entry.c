/* Built kernels on disk: entry = header, key, binary; its name is the SHA-256 of the key.
 *
 *   header = magic[8] format[4] key length[4] binary length[8] SHA-256(the 24 bytes before, key, binary)[32]
 * (little-endian)
 *
 * The key is kept in full and compared in full, so that neither two entries swapped nor a hash found by
 * chance can hand out the wrong kernel. The hash tells accidents; against the same user nothing in the same
 * file could. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/kernels/cache.h"
#include "core/seams.h"
#include "core/sha256.h"

enum { HEADER = 56, HASHED = 24, FORMAT = 1, NAME = 80, KEY_MAX = 1 << 16 };
/* A fuzzer never guesses a hash; its build lets all of them pass, so that it gets past this point. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { COMPARED = HASHED };
#else
enum { COMPARED = HEADER };
#endif
#define ENTRY_MAX ((size_t)64 << 20)
#define FOLDER_MAX ((int64_t)512 << 20)

static void entry_name(char name[NAME], const char *key) {
    ki_sha256_hex(name, key, strlen(key));
    snprintf(name + 64, NAME - 64, ".kernel");
}

static void make_header(uint8_t header[HEADER], const char *key, const void *binary, size_t bytes) {
    struct ki_sha256 hash;
    memcpy(header, "KILNKERN", 8);
    ki_store(header + 8, FORMAT, 4);
    ki_store(header + 12, strlen(key), 4);
    ki_store(header + 16, bytes, 8);
    ki_sha256_start(&hash);
    ki_sha256_add(&hash, header, HASHED);
    ki_sha256_add(&hash, key, strlen(key));
    ki_sha256_add(&hash, binary, bytes);
    ki_sha256_finish(&hash, header + HASHED);
}

/* NULL, or what is wrong. Builds the header that this key and this many bytes must have: equal or worthless.
 */
static const char *check_entry(const char *entry, size_t size, const char *key) {
    size_t key_length = strlen(key);
    uint8_t header[HEADER];
    if (size < HEADER + key_length) return "cut short";
    if (memcmp(entry + HEADER, key, key_length) != 0) return "another kernel's";
    const char *binary = entry + HEADER + key_length;
    make_header(header, key, binary, size - HEADER - key_length);
    return memcmp(entry, header, COMPARED) == 0 ? NULL : "damaged";
}

kiln_status ki_cache_get(void **binary, size_t *bytes, kiln_device *device, const char *key) {
    struct ki_cache *cache;
    char name[NAME], *entry = NULL;
    size_t size = 0;
    kiln_status status = ki_cache_of(&cache, device);
    if (status != KILN_OK) return status;
    entry_name(name, key);
    status = ki_cache_read_file(&entry, &size, cache, device, name, ENTRY_MAX);
    if (status != KILN_OK || !entry) return status;
    const char *trouble = check_entry(entry, size, key);
    if (trouble) {
        ki_free(entry);
        ki_cache_drop_file(cache, device, name, trouble);
        return KILN_OK;
    }
    *bytes = size - HEADER - strlen(key);
    memmove(entry, entry + HEADER + strlen(key), *bytes);
    *binary = entry;
    return KILN_OK;
}

kiln_status ki_cache_drop(kiln_device *device, const char *key, const char *why) {
    struct ki_cache *cache;
    char name[NAME];
    kiln_status status = ki_cache_of(&cache, device);
    if (status != KILN_OK) return status;
    entry_name(name, key);
    if (cache->folder >= 0) ki_cache_drop_file(cache, device, name, why);
    return KILN_OK;
}

struct aged {
    struct timespec used;
    int64_t bytes;
    char name[NAME];
};

static int by_age(const void *a, const void *b) {
    const struct aged *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

/* Files of an hour ago or more that a process killed in mid-write left behind. */
static bool stale(const char *name, const struct stat *info) {
    return strncmp(name, ".new-", 5) == 0 && time(NULL) - info->st_mtime > 3600;
}

static bool is_entry(const char *name) {
    size_t length = strlen(name);
    return length == 71 && strcmp(name + 64, ".kernel") == 0;
}

/* All entries, the list from ki_resize. Removes stale temporary files on the way. */
static kiln_status list_entries(struct aged **list, int64_t *count, int64_t *total,
                                const struct ki_cache *cache, DIR *folder) {
    struct aged *entries = NULL;
    int64_t room = 0;
    struct stat info;
    for (struct dirent *file; (file = readdir(folder));) {
        if (fstatat(cache->folder, file->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (stale(file->d_name, &info)) ki_seams.unlinkat(cache->folder, file->d_name, 0);
        if (!is_entry(file->d_name)) continue;
        if (*count == room) {
            room = room ? 2 * room : 256;
            struct aged *grown = ki_resize(entries, (size_t)room * sizeof *entries);
            if (!grown) {
                ki_free(entries);
                return ki_fail_nomem((size_t)room * sizeof *entries, "the list of cache entries");
            }
            entries = grown;
        }
        struct aged *entry = &entries[(*count)++];
        *entry = (struct aged){.used = info.st_mtim, .bytes = info.st_size};
        memcpy(entry->name, file->d_name, 72);
        *total += info.st_size;
    }
    *list = entries;
    return KILN_OK;
}

/* Keeps the folder under its cap: the entries longest unused go, down to three quarters of it, so that
 * tidying is rare. */
static kiln_status tidy(struct ki_cache *cache, size_t coming) {
    int64_t count = 0, total = (int64_t)coming;
    int copy = ki_seams.openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (copy < 0) return KILN_OK;
    DIR *folder = fdopendir(copy);
    if (!folder) {
        ki_seams.close(copy);
        return KILN_OK;
    }
    struct aged *entries = NULL;
    kiln_status status = list_entries(&entries, &count, &total, cache, folder);
    closedir(folder);
    if (status == KILN_OK && entries && total > FOLDER_MAX) {
        qsort(entries, (size_t)count, sizeof *entries, by_age);
        for (int64_t i = 0; i < count && total > FOLDER_MAX / 4 * 3; i++) {
            ki_seams.unlinkat(cache->folder, entries[i].name, 0);
            total -= entries[i].bytes;
        }
    }
    ki_free(entries);
    return status;
}

kiln_status ki_cache_put(kiln_device *device, const char *key, const void *binary, size_t bytes) {
    struct ki_cache *cache;
    char name[NAME];
    uint8_t header[HEADER];
    size_t length = strlen(key);
    kiln_status status = ki_cache_of(&cache, device);
    if (status != KILN_OK || cache->folder < 0 || cache->read_only) return status;
    if (length > KEY_MAX || bytes > ENTRY_MAX - HEADER - length) return KILN_OK;
    if (!cache->tidied && (status = tidy(cache, bytes)) != KILN_OK) return status;
    cache->tidied = true;
    make_header(header, key, binary, bytes);
    entry_name(name, key);
    ki_cache_write_file(cache, device, name,
                        (struct ki_piece[]){{header, HEADER}, {key, length}, {binary, bytes}}, 3);
    return KILN_OK;
}

/* The key that the entry holds, a string from ki_resize; NULL: it is damaged, or there is no memory for
 * it. */
static char *key_of(const char *entry, size_t size) {
    uint32_t length = 0;
    if (size < HEADER) return NULL;
    for (int i = 0; i < 4; i++) length |= (uint32_t)(uint8_t)entry[12 + i] << (8 * i);
    if (length > size - HEADER || length > KEY_MAX) return NULL;
    char *key = ki_resize(NULL, (size_t)length + 1);
    if (!key) return NULL;
    memcpy(key, entry + HEADER, length);
    key[length] = '\0';
    if (strlen(key) == length && !check_entry(entry, size, key)) return key;
    ki_free(key);
    return NULL;
}

kiln_status ki_cache_each(struct ki_cache *cache, const kiln_device *device,
                          kiln_status (*take)(void *context, const char *key), void *context) {
    int64_t count = 0, total = 0;
    struct aged *entries = NULL;
    const int copy =
        cache->folder < 0 ? -1 : ki_seams.openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);
    if (!folder) {
        const int trouble = errno;
        if (copy >= 0) ki_seams.close(copy);
        return ki_fail_errno(KILN_ERR_IO, trouble, "the kernel cache %.200s: %s", cache->path,
                             strerror(trouble));
    }
    kiln_status status = list_entries(&entries, &count, &total, cache, folder);
    closedir(folder);
    for (int64_t i = 0; status == KILN_OK && i < count; i++) {
        char *entry = NULL;
        size_t size = 0;
        status = ki_cache_read_file(&entry, &size, cache, device, entries[i].name, ENTRY_MAX);
        char *key = entry ? key_of(entry, size) : NULL;
        if (key) status = take(context, key);
        ki_free(key);
        ki_free(entry);
    }
    ki_free(entries);
    return status;
}
