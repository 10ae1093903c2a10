/* For tests that write files: a folder of their own, whole files in one call, and file calls that fail on
 * demand. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/seams.h"

static char scratch[256];

/* scratch/name; four results are valid at a time. */
static inline const char *in_scratch(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

/* Files in the folder, temporary ones included; removes them if asked. */
static inline int scratch_files(bool remove_them) {
    int count = 0;
    DIR *folder = opendir(scratch);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (remove_them) remove(in_scratch(entry->d_name));
    }
    closedir(folder);
    return count;
}

static inline int scratch_make(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/kiln-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_remove(void **state) {
    (void)state;
    scratch_files(true);
    return rmdir(scratch);
}

static inline int scratch_empty(void **state) {
    (void)state;
    scratch_files(true);
    return 0;
}

/* The file's bytes (free them), with a '\0' behind. */
static inline char *file_bytes(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    bytes[*size] = '\0';
    fclose(file);
    return bytes;
}

static inline void put_file(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The countdown-th file call fails with `code`. 0: none does. */
static struct {
    struct ki_seams real;
    int countdown, code;
    size_t most; /* bytes that one write takes; 0 = all */
} faults;

static inline bool fault(void) {
    if (faults.countdown == 0 || --faults.countdown > 0) return false;
    errno = faults.code;
    return true;
}

static inline int faulty_open(const char *path, int flags, unsigned mode) {
    return fault() ? -1 : faults.real.open(path, flags, mode);
}

static inline ssize_t faulty_write(int fd, const void *bytes, size_t size) {
    if (fault()) return -1;
    return faults.real.write(fd, bytes, faults.most && size > faults.most ? faults.most : size);
}

static inline int faulty_fsync(int fd) {
    return fault() ? -1 : faults.real.fsync(fd);
}

static inline int faulty_close(int fd) {
    bool fails = fault();
    int code = errno, result = faults.real.close(fd); /* a failed close has closed, too */
    errno = code;
    return fails ? -1 : result;
}

static inline int faulty_rename(const char *from, const char *to) {
    bool fails = faults.code != EINTR && fault(); /* POSIX knows no interrupted rename */
    return fails ? -1 : faults.real.rename(from, to);
}

static inline void faults_begin(int countdown, int code, size_t most) {
    faults.real = ki_seams;
    faults.countdown = countdown;
    faults.code = code;
    faults.most = most;
    ki_seams.open = faulty_open;
    ki_seams.write = faulty_write;
    ki_seams.fsync = faulty_fsync;
    ki_seams.close = faulty_close;
    ki_seams.rename = faulty_rename;
}

/* Did the chosen call happen? */
static inline bool faults_end(void) {
    ki_seams = faults.real;
    return faults.countdown == 0;
}

#endif
