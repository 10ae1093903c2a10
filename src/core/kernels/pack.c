/* Packs are read with pread, an entry at a time, and their indexes kept in memory: a file that is cut off is
 * then a miss. */
#define _GNU_SOURCE
#include "core/kernels/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/kernels/cache.h"
#include "core/kernels/kernels.h"
#include "core/os/os.h"
#include "core/seams.h"
#include "core/sha256.h"

enum {
    HEADER = 112,
    HASHED = 80,
    ROW = 88,
    FORMAT = 1,
    BUILD = 64,
    PACKS = 3,
    ROWS_MOST = 1 << 20,
    CODE_MOST = 64 << 20
};
/* Says where a row's fields lie. */
enum { ARCHITECTURE = 32, NAME_LENGTH = 36, OFFSET = 40, SIZE = 48, CONTENT = 56 };
static const char magic[] = "KILNPACK", usual_name[] = "kiln-kernels.pack";

static struct pack {
    char path[KI_CACHE_PATH];
    int file; /* -1: none that may be used */
    int64_t rows, bytes;
    uint8_t *index;
    char trouble[200]; /* why a pack that is there is not used, or is not to be used any more */
    atomic_bool told;
} packs[PACKS];

static uint64_t load(const uint8_t *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* All bytes, or a word on why not. */
static const char *read_at(int file, void *to, size_t bytes, int64_t offset) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got =
            ki_seams.pread(file, (char *)to + done, bytes - done, (off_t)offset + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return strerror(errno);
        if (got == 0) return "it is cut short";
        done += (size_t)got;
    }
    return NULL;
}

/* NULL, or why the open file may not be trusted. A package may be root's, and have several names. Whoever may
 * write to the library needs no pack beside it: `library`, "" or its path, may be as open as the pack. */
static const char *distrust(int64_t *bytes, int file, const char *library) {
    struct stat info, own = {0};
    if (fstat(file, &info) != 0) return strerror(errno);
    if (!S_ISREG(info.st_mode)) return "it is not a regular file";
    if (info.st_uid != geteuid() && info.st_uid != 0) return "it belongs to another user";
    const bool alike =
        *library && stat(library, &own) == 0 && own.st_uid == info.st_uid && own.st_gid == info.st_gid;
    if (info.st_mode & 022 & ~(alike ? own.st_mode : 0)) return "others may write to it";
    *bytes = (int64_t)info.st_size;
    return NULL;
}

static void digest(uint8_t hash[32], const void *first, size_t first_bytes, const void *second,
                   size_t second_bytes) {
    struct ki_sha256 state;
    ki_sha256_start(&state);
    ki_sha256_add(&state, first, first_bytes);
    ki_sha256_add(&state, second, second_bytes);
    ki_sha256_finish(&state, hash);
}

static int by_key(const uint8_t *a, const uint8_t *b) {
    const int order = memcmp(a, b, 32);
    const uint64_t x = load(a + ARCHITECTURE, 4), y = load(b + ARCHITECTURE, 4);
    return order ? order : (x > y) - (x < y);
}

/* Every row's content lies in the file, and each comes after the one before: what follows may trust the
 * index. */
static const char *check_rows(const struct pack *pack) {
    const uint64_t first = HEADER + ROW * (uint64_t)pack->rows, bytes = (uint64_t)pack->bytes;
    for (int64_t i = 0; i < pack->rows; i++) {
        const uint8_t *row = pack->index + ROW * i;
        const uint64_t offset = load(row + OFFSET, 8), size = load(row + SIZE, 8),
                       name = load(row + NAME_LENGTH, 4);
        if (size > CODE_MOST || name >= size || offset < first || offset > bytes || size > bytes - offset)
            return "it is damaged";
        if (i && by_key(row - ROW, row) >= 0) return "it is damaged";
    }
    return NULL;
}

/* NULL, or why the file is not used. */
static const char *read_index(struct pack *pack, int file, const char *library) {
    uint8_t header[HEADER], hash[32];
    const char *trouble = distrust(&pack->bytes, file, library);
    if (!trouble) trouble = read_at(file, header, sizeof header, 0);
    if (trouble) return trouble;
    if (memcmp(header, magic, 8) != 0 || load(header + 8, 4) != FORMAT) return "it is no pack of kernels";
    if (memcmp(header + 16, ki_build_id, BUILD) != 0) return "another version of Kiln made it";
    pack->rows = (int64_t)load(header + 12, 4);
    if (pack->rows > ROWS_MOST || pack->rows * ROW > pack->bytes - HEADER) return "it is damaged";
    pack->index = ki_resize(NULL, (size_t)pack->rows * ROW + 1);
    if (!pack->index) return "there is no memory for its index";
    trouble = read_at(file, pack->index, (size_t)pack->rows * ROW, HEADER);
    if (trouble) return trouble;
    digest(hash, header, HASHED, pack->index, (size_t)pack->rows * ROW);
    return memcmp(hash, header + HASHED, sizeof hash) == 0 ? check_rows(pack) : "it is damaged";
}

/* `asked`: the user named it, and learns also that it is not there. `library`: which it lies beside. */
static void open_pack(struct pack *pack, bool asked, const char *library) {
    pack->file = -1;
    if (!pack->path[0]) return;
    if (pack->path[0] != '/') {
        snprintf(pack->trouble, sizeof pack->trouble, "KILN_KERNEL_PACK must be an absolute path");
        return;
    }
    int file;
    do file = ki_seams.open(pack->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    while (file < 0 && errno == EINTR);
    if (file < 0 && errno == ENOENT && !asked) return;
    const char *trouble = file < 0 ? strerror(errno) : read_index(pack, file, library);
    if (!trouble) {
        pack->file = file;
        return;
    }
    snprintf(pack->trouble, sizeof pack->trouble, "%s", trouble);
    if (file >= 0) ki_seams.close(file);
    ki_free(pack->index);
    pack->index = NULL;
    pack->rows = 0;
}

static void find_packs(void) {
    const char *named = secure_getenv("KILN_KERNEL_PACK");
    struct ki_cache cache;
    if (named && *named && strlen(named) < sizeof packs[0].path) {
        snprintf(packs[0].path, sizeof packs[0].path, "%s", named);
        open_pack(&packs[0], true, "");
    } else {
        packs[0].file = -1;
        if (named && *named) snprintf(packs[0].trouble, sizeof packs[0].trouble, "its path is too long");
    }
    char library[KI_CACHE_PATH - sizeof usual_name];
    ki_os_own_file(library, sizeof library);
    const int folder = *library ? (int)(strrchr(library, '/') + 1 - library) : 0;
    if (folder) snprintf(packs[1].path, sizeof packs[1].path, "%.*s%s", folder, library, usual_name);
    open_pack(&packs[1], false, library);
    ki_cache_open(&cache);
    if (cache.folder >= 0 && strlen(cache.path) + sizeof usual_name < sizeof packs[2].path)
        strcat(strcat(strcpy(packs[2].path, cache.path), "/"), usual_name);
    ki_cache_close(&cache);
    open_pack(&packs[2], false, "");
}

static struct pack *all_packs(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_packs);
    return packs;
}

static bool serves(int made_for, int architecture) {
    if (made_for & KI_PACK_PTX) return made_for - KI_PACK_PTX <= architecture;
    return made_for / 10 == architecture / 10 && made_for <= architecture;
}

bool ki_pack_serves(int architecture) {
    const struct pack *pack = all_packs();
    for (int i = 0; i < PACKS; i++)
        for (int64_t row = 0; pack[i].file >= 0 && row < pack[i].rows; row++)
            if (serves((int)load(pack[i].index + ROW * row + ARCHITECTURE, 4), architecture)) return true;
    return false;
}

bool ki_pack_trouble(char *text, size_t room) {
    const struct pack *pack = all_packs();
    for (int i = 0; i < PACKS; i++)
        if (pack[i].trouble[0]) {
            snprintf(text, room, "the pack of kernels %.200s is not used: %s", pack[i].path, pack[i].trouble);
            return true;
        }
    return false;
}

/* The newest architecture that serves, PTX only where there is no machine code, or NULL. */
static const uint8_t *find(const struct pack *pack, const uint8_t key[32], int architecture) {
    int64_t low = 0, high = pack->rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (memcmp(pack->index + ROW * middle, key, 32) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const uint8_t *found = NULL;
    for (; low < pack->rows && !memcmp(pack->index + ROW * low, key, 32); low++) {
        const uint8_t *row = pack->index + ROW * low;
        const int made_for = (int)load(row + ARCHITECTURE, 4);
        const bool code_found = found && !(load(found + ARCHITECTURE, 4) & KI_PACK_PTX);
        if (serves(made_for, architecture) && !(made_for & KI_PACK_PTX && code_found)) found = row;
    }
    return found;
}

/* *trouble: NULL, or why the row's content is of no use. */
static kiln_status read_code(void **code, size_t *bytes, const char **trouble, const struct pack *pack,
                             const uint8_t *row) {
    const size_t size = (size_t)load(row + SIZE, 8), name = (size_t)load(row + NAME_LENGTH, 4);
    uint8_t hash[32];
    char *content = ki_resize(NULL, size);
    if (!content) return ki_fail_nomem(size, "a built kernel");
    *trouble = read_at(pack->file, content, size, (int64_t)load(row + OFFSET, 8));
    if (!*trouble) {
        digest(hash, content, size, "", 0);
        if (memcmp(hash, row + CONTENT, sizeof hash) != 0) *trouble = "it is damaged";
    }
    if (*trouble) {
        ki_free(content);
        return KILN_OK;
    }
    memmove(content, content + name, size - name);
    *code = content;
    *bytes = size - name;
    return KILN_OK;
}

static void tell(struct pack *pack, const kiln_device *device, const char *trouble) {
    if (device->options.message && !atomic_exchange(&pack->told, true))
        ki_device_message(device, "pack of kernels %.200s not used: %s", pack->path, trouble);
}

bool ki_pack_lists(const kiln_device *device, const char *source_hash, const char *options) {
    const struct pack *pack = all_packs();
    uint8_t key[32];
    ki_pack_key(key, source_hash, options);
    for (int i = 0; i < PACKS; i++)
        if (pack[i].file >= 0 && find(&pack[i], key, device->properties.architecture)) return true;
    return false;
}

kiln_status ki_pack_get(void **code, size_t *bytes, kiln_device *device, const char *source_hash,
                        const char *options) {
    struct pack *pack = all_packs();
    const int architecture = device->properties.architecture;
    uint8_t key[32] = {0};
    bool made = false;
    for (int i = 0; i < PACKS; i++) {
        const char *trouble = pack[i].trouble[0] ? pack[i].trouble : NULL;
        if (trouble) tell(&pack[i], device, trouble);
        if (pack[i].file < 0) continue;
        if (!made) ki_pack_key(key, source_hash, options);
        made = true;
        const uint8_t *row = find(&pack[i], key, architecture);
        if (!row) continue;
        const kiln_status status = read_code(code, bytes, &trouble, &pack[i], row);
        if (status != KILN_OK || *code) return status;
        tell(&pack[i], device, trouble);
    }
    return KILN_OK;
}

/* The two are hashed apart: no options can pass for the beginning of a source. */
void ki_pack_key(uint8_t key[32], const char *source_hash, const char *options) {
    digest(key, source_hash, 64, options, strlen(options));
}

static int by_program(const void *a, const void *b) {
    const struct ki_packed *x = a, *y = b;
    const int order = memcmp(x->key, y->key, 32);
    return order ? order : (x->architecture > y->architecture) - (x->architecture < y->architecture);
}

/* Programs that stand there twice go to the end; how many there are without them. */
static int64_t only_once(struct ki_packed *programs, int64_t count) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        if (kept && !by_program(&programs[kept - 1], &programs[i])) continue;
        const struct ki_packed program = programs[kept];
        programs[kept++] = programs[i];
        programs[i] = program;
    }
    return kept;
}

static void make_index(uint8_t *index, const struct ki_packed *programs, int64_t count) {
    uint64_t offset = HEADER + ROW * (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        uint8_t *row = index + ROW * i;
        const size_t name = strlen(programs[i].name), size = name + programs[i].bytes;
        memcpy(row, programs[i].key, 32);
        ki_store(row + ARCHITECTURE, (uint64_t)programs[i].architecture, 4);
        ki_store(row + NAME_LENGTH, name, 4);
        ki_store(row + OFFSET, offset, 8);
        ki_store(row + SIZE, size, 8);
        digest(row + CONTENT, programs[i].name, name, programs[i].code, programs[i].bytes);
        offset += size;
    }
}

static bool write_pack(int file, const uint8_t *index, const struct ki_packed *programs, int64_t count) {
    uint8_t header[HEADER];
    memcpy(header, magic, 8);
    ki_store(header + 8, FORMAT, 4);
    ki_store(header + 12, (uint64_t)count, 4);
    memcpy(header + 16, ki_build_id, BUILD);
    digest(header + HASHED, header, HASHED, index, (size_t)count * ROW);
    bool good = ki_write_all(file, header, sizeof header) && ki_write_all(file, index, (size_t)count * ROW);
    for (int64_t i = 0; i < count && good; i++)
        good = ki_write_all(file, programs[i].name, strlen(programs[i].name)) &&
               ki_write_all(file, programs[i].code, programs[i].bytes);
    return good && ki_seams.fsync(file) == 0;
}

kiln_status ki_pack_write(const char *path, struct ki_packed *programs, int64_t *written) {
    qsort(programs, (size_t)*written, sizeof *programs, by_program);
    const int64_t count = *written = only_once(programs, *written);
    char temporary[KI_CACHE_PATH];
    if (snprintf(temporary, sizeof temporary, "%s.%ld-%.0f.new", path, (long)getpid(), 1e9 * ki_clock()) >=
        (int)sizeof temporary)
        return ki_fail_errno(KILN_ERR_IO, ENAMETOOLONG, "%.200s: %s", path, strerror(ENAMETOOLONG));
    uint8_t *index = ki_calloc((size_t)count * ROW + 1);
    if (!index) return ki_fail_nomem((size_t)count * ROW + 1, "the index of a pack");
    make_index(index, programs, count);
    int file;
    do file = ki_seams.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    while (file < 0 && errno == EINTR);
    int trouble = file < 0 || !write_pack(file, index, programs, count) ? errno : 0;
    if (file >= 0 && ki_seams.close(file) != 0 && errno != EINTR && !trouble) trouble = errno;
    if (!trouble && ki_seams.rename(temporary, path) != 0) trouble = errno;
    if (trouble && file >= 0) ki_seams.unlink(temporary);
    ki_free(index);
    return trouble ? ki_fail_errno(KILN_ERR_IO, trouble, "%.200s: %s", path, strerror(trouble)) : KILN_OK;
}
