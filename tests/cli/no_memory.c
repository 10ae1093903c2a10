/* Preloaded: the allocation whose number NO_MEMORY_AT names gets nothing; the file NO_MEMORY_COUNT is told
 * how many there were. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#pragma GCC visibility push(default) /* hidden functions would replace nobody's */
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void *aligned_alloc(size_t alignment, size_t bytes);
int posix_memalign(void **memory, size_t alignment, size_t bytes);
#pragma GCC visibility pop

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t count, size_t bytes),
    *__libc_realloc(void *memory, size_t bytes), *__libc_memalign(size_t alignment, size_t bytes);

static atomic_long number, at = -1; /* before main begins nothing fails: libraries are being loaded */

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("NO_MEMORY_AT");
    atomic_store(&at, text ? atol(text) : 0);
}

static int fails(void) {
    if (atomic_load(&at) < 0 || atomic_fetch_add(&number, 1) + 1 != atomic_load(&at)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes) {
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
    return fails() ? NULL : __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    *memory = fails() ? NULL : __libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("NO_MEMORY_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld", atomic_load(&number));
    fclose(file);
}
