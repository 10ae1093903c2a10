/* The default seams: libc. */
#define _GNU_SOURCE
#include "core/seams.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/random.h"
#include "dialect/scalar_math.h"

/* Large arrays ask for huge pages: scattered access to a vector of millions otherwise spends its time on
 * address translation. */
static void *libc_alloc(size_t bytes, size_t align) {
    enum { HUGE_PAGE = 1 << 21 };
    const bool huge = bytes >= 2 * HUGE_PAGE;
    void *memory = NULL;
    if (posix_memalign(&memory, huge && align < HUGE_PAGE ? HUGE_PAGE : align, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (huge) madvise(memory, bytes, MADV_HUGEPAGE); /* advice: its failure changes nothing */
#endif
    return memory;
}

static int libc_open(const char *path, int flags, unsigned mode) {
    return open(path, flags, mode);
}

static int libc_openat(int folder, const char *name, int flags, unsigned mode) {
    return openat(folder, name, flags, mode);
}

static double libc_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct ki_seams ki_seams = {
    .alloc = libc_alloc,
    .resize = realloc,
    .release = free,
    .open = libc_open,
    .read = read,
    .pread = pread,
    .write = write,
    .fsync = fsync,
    .close = close,
    .rename = rename,
    .unlink = unlink,
    .openat = libc_openat,
    .renameat = renameat,
    .unlinkat = unlinkat,
    .clock = libc_clock,
};

void *ki_alloc(size_t bytes) {
    return ki_seams.alloc(bytes ? bytes : 1, 64);
}

void *ki_calloc(size_t bytes) {
    void *memory = ki_alloc(bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

void *ki_resize(void *memory, size_t bytes) {
    return ki_seams.resize(memory, bytes ? bytes : 1);
}

void ki_free(void *memory) {
    if (memory) ki_seams.release(memory);
}

char *ki_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = ki_resize(NULL, bytes); /* text needs no alignment, and names are many */
    return copy ? memcpy(copy, text, bytes) : NULL;
}

double ki_clock(void) {
    return ki_seams.clock();
}

void kiln_random(uint32_t words[4], uint64_t seed, uint64_t stream, uint64_t index) {
    philox(words, seed, stream, index);
}
