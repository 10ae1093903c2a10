/* Seams: everything that can fail or vary outside our control goes through these tables, so that a test can
 * make the k-th allocation or write fail, stop the clock, or count what is still alive. */
#ifndef KI_SEAMS_H
#define KI_SEAMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ki_seams {
    /* Memory. `align` bytes aligned (a power of two); resize keeps the first bytes, 16-byte aligned. */
    void *(*alloc)(size_t bytes, size_t align);
    void *(*resize)(void *memory, size_t bytes);
    void (*release)(void *memory);
    /* Files: the POSIX calls; all return -1 and set errno on failure. */
    int (*open)(const char *path, int flags, unsigned mode);
    ssize_t (*read)(int fd, void *buffer, size_t bytes);
    ssize_t (*pread)(int fd, void *buffer, size_t bytes, off_t offset);
    ssize_t (*write)(int fd, const void *buffer, size_t bytes);
    int (*fsync)(int fd);
    int (*close)(int fd);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    /* The same within an open folder. */
    int (*openat)(int folder, const char *name, int flags, unsigned mode);
    int (*renameat)(int from_folder, const char *from, int to_folder, const char *to);
    int (*unlinkat)(int folder, const char *name, int flags);
    /* Monotonic seconds. */
    double (*clock)(void);
};

/* The functions in force. Tests replace entries before they use the library and restore them after. */
extern struct ki_seams ki_seams;

/* Through the seam; zero bytes give a valid pointer, NULL only means failure. Aligned to 64 bytes. */
void *ki_alloc(size_t bytes);
void *ki_calloc(size_t bytes);
void *ki_resize(void *memory, size_t bytes); /* only for memory from ki_resize(NULL, ...) */
void ki_free(void *memory);
char *ki_strdup(const char *text);
double ki_clock(void);

#endif
