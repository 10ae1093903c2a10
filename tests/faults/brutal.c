#define _GNU_SOURCE
#include "faults/brutal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct ki_seams real;

/* Once: after a failed check the seams are still those of a fault. */
static void save_seams(void) {
    if (!real.alloc) real = ki_seams;
    ki_seams = real;
}

/* ------------------------------------------------------------------------------------------ memory */

static struct {
    atomic_long calls, alive;
    long fail_at;
    bool persistent;
    atomic_bool armed, spared, fired, reported;
} memory;

static bool fails(void) {
    if (memory.spared) return false;
    long call = atomic_fetch_add(&memory.calls, 1);
    if (!memory.armed || (memory.persistent ? call < memory.fail_at : call != memory.fail_at)) return false;
    memory.fired = true;
    return true;
}

static void *brutal_alloc(size_t bytes, size_t align) {
    void *block = fails() ? NULL : real.alloc(bytes, align);
    if (block) memory.alive++;
    return block;
}

static void *brutal_resize(void *block, size_t bytes) {
    void *resized = fails() ? NULL : real.resize(block, bytes);
    if (resized && !block) memory.alive++;
    return resized;
}

static void brutal_release(void *block) {
    if (block) memory.alive--;
    real.release(block);
}

void brutal_start(long n, bool persistent) {
    save_seams();
    memory.calls = memory.alive = 0;
    memory.fail_at = n;
    memory.persistent = persistent;
    memory.fired = memory.reported = memory.spared = false;
    memory.armed = true;
    ki_seams.alloc = brutal_alloc;
    ki_seams.resize = brutal_resize;
    ki_seams.release = brutal_release;
}

bool brutal_stop(void) {
    ki_seams = real;
    if (memory.alive != 0)
        fail_msg("%ld blocks leaked after allocation %ld failed", (long)memory.alive, memory.fail_at);
    if (memory.fired && !memory.reported)
        fail_msg("the failure of allocation %ld was swallowed", memory.fail_at);
    return memory.fired;
}

long brutal_calls(void) {
    return memory.calls;
}

bool brutal_fired(void) {
    return memory.fired;
}

void brutal_relent(void) {
    memory.armed = false;
    memory.reported = true;
}

void brutal_spare(bool spared) {
    memory.spared = spared;
}

/* A race shows beside any of them: ThreadSanitizer, under which all would take minutes, has one in seven. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
enum { FAULTS_APART = __has_feature(thread_sanitizer) ? 7 : 1 };

void brutal_memory(const char *what, int modes, void (*body)(void *context), void *context) {
    for (int mode = 0; mode < modes; mode++) {
        long n = 0;
        bool fired;
        do {
            brutal_start(n, mode == 1);
            n += FAULTS_APART;
            body(context);
            fired = brutal_stop();
        } while (fired);
        print_message("    %s: %ld allocations failed %s\n", what, n / FAULTS_APART - 1,
                      mode ? "with all after them" : "once");
        assert_true(n > 1);
    }
}

/* ------------------------------------------------------------------------------------------- files */

const struct brutal_file_fault brutal_file_faults[] = {{"ENOSPC", ENOSPC, false}, {"EIO", EIO, false},
                                                       {"EACCES", EACCES, false}, {"EINTR", EINTR, true},
                                                       {"short", 0, true},        {NULL, 0, false}};

enum { FILES = 1024 };

static struct {
    struct brutal_file_fault fault;
    atomic_long calls; /* files are read by several threads */
    long fail_at;
    bool persistent;
    atomic_bool fired, mattered;
    bool unsynced, torn_by_power; /* written since the last fsync; renamed so */
    char spared_prefix[512];
    bool spared[FILES], writable[FILES];
} files;

static bool spared(int fd) {
    return fd >= 0 && fd < FILES && files.spared[fd];
}

enum kind { TRANSFER, WAITING, NAMES, LOSSLESS };

/* Only reads and writes can be short; only calls that may wait are interrupted, and changes of names are none
 * (POSIX). */
static bool file_fails(enum kind kind) {
    if (files.fault.code == 0 && kind != TRANSFER) return false;
    if (files.fault.code == EINTR && kind == NAMES) return false;
    long call = files.calls++;
    if (files.persistent ? call < files.fail_at : call != files.fail_at) return false;
    files.fired = true;
    if (kind != LOSSLESS) files.mattered = true;
    errno = files.fault.code;
    return true;
}

static void opened(int fd, int flags, bool spare) {
    if (fd < 0 || fd >= FILES) return;
    files.spared[fd] = spare;
    files.writable[fd] = (flags & O_ACCMODE) != O_RDONLY;
}

static int brutal_open(const char *path, int flags, unsigned mode) {
    bool spare = *files.spared_prefix && !strncmp(path, files.spared_prefix, strlen(files.spared_prefix));
    bool unreadable = (flags & O_DIRECTORY) && files.fault.code == EACCES;
    if (!spare && file_fails(unreadable ? LOSSLESS : WAITING)) return -1;
    int fd = real.open(path, flags, mode);
    opened(fd, flags, spare);
    return fd;
}

static int brutal_openat(int folder, const char *name, int flags, unsigned mode) {
    if (file_fails(WAITING)) return -1;
    int fd = real.openat(folder, name, flags, mode);
    opened(fd, flags, false);
    return fd;
}

static size_t half(size_t bytes) {
    return bytes > 1 ? bytes / 2 : bytes;
}

static ssize_t brutal_read(int fd, void *buffer, size_t bytes) {
    if (spared(fd) || !file_fails(TRANSFER)) return real.read(fd, buffer, bytes);
    return files.fault.code ? -1 : real.read(fd, buffer, half(bytes));
}

static ssize_t brutal_pread(int fd, void *buffer, size_t bytes, off_t offset) {
    if (spared(fd) || !file_fails(TRANSFER)) return real.pread(fd, buffer, bytes, offset);
    return files.fault.code ? -1 : real.pread(fd, buffer, half(bytes), offset);
}

static ssize_t brutal_write(int fd, const void *buffer, size_t bytes) {
    files.unsynced = true;
    if (spared(fd) || !file_fails(TRANSFER)) return real.write(fd, buffer, bytes);
    return files.fault.code ? -1 : real.write(fd, buffer, half(bytes));
}

static int brutal_fsync(int fd) {
    int result = file_fails(WAITING) ? -1 : real.fsync(fd);
    if (result == 0) files.unsynced = false;
    return result;
}

/* A close that fails has closed all the same, as on Linux. */
static int brutal_close(int fd) {
    bool wrote = fd >= 0 && fd < FILES && files.writable[fd];
    bool fail = !spared(fd) && file_fails(wrote ? WAITING : LOSSLESS);
    int result = real.close(fd);
    if (fail) errno = files.fault.code;
    return fail ? -1 : result;
}

static int brutal_rename(const char *from, const char *to) {
    files.torn_by_power |= files.unsynced;
    return file_fails(NAMES) ? -1 : real.rename(from, to);
}

static int brutal_renameat(int a, const char *from, int b, const char *to) {
    return file_fails(NAMES) ? -1 : real.renameat(a, from, b, to);
}

static int brutal_unlink(const char *path) {
    return file_fails(NAMES) ? -1 : real.unlink(path);
}

static int brutal_unlinkat(int folder, const char *name, int flags) {
    return file_fails(NAMES) ? -1 : real.unlinkat(folder, name, flags);
}

void brutal_files_spare(const char *prefix) {
    snprintf(files.spared_prefix, sizeof files.spared_prefix, "%s", prefix ? prefix : "");
}

void brutal_files_start(const struct brutal_file_fault *fault, long n, bool persistent) {
    save_seams();
    files.fault = *fault;
    files.calls = 0;
    files.fail_at = n;
    files.persistent = persistent;
    files.fired = files.mattered = files.unsynced = files.torn_by_power = false;
    memset(files.spared, 0, sizeof files.spared);
    ki_seams.open = brutal_open;
    ki_seams.openat = brutal_openat;
    ki_seams.read = brutal_read;
    ki_seams.pread = brutal_pread;
    ki_seams.write = brutal_write;
    ki_seams.fsync = brutal_fsync;
    ki_seams.close = brutal_close;
    ki_seams.rename = brutal_rename;
    ki_seams.renameat = brutal_renameat;
    ki_seams.unlink = brutal_unlink;
    ki_seams.unlinkat = brutal_unlinkat;
}

bool brutal_files_stop(void) {
    ki_seams = real;
    return files.fired;
}

bool brutal_files_torn_by_power(void) {
    return files.torn_by_power;
}

bool brutal_files_mattered(void) {
    return files.mattered;
}
