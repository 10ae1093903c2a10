/* Entries that were tampered with or damaged: each is a miss, the kernel is built anew and right, the user is
 * told at most once, and the next run finds a sound entry again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fake.h"
#include "core/seams.h"

enum { HEADER = 56 };

static off_t size_of(const char *path) {
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_size;
}

static void flip(const char *path, off_t at, int with) {
    unsigned char byte;
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= (unsigned char)with;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    assert_int_equal(close(file), 0);
}

static void next_run_builds(const char *what) {
    kiln_device_statistics statistics = {0};
    fake.warnings = 0;
    fake_run(&statistics, "f", "");
    if (statistics.kernels_built != 1 || statistics.kernels_cached != 0 || fake.warnings > 1)
        fail_msg("%s: %d built, %d from the cache, %d warnings", what, (int)statistics.kernels_built,
                 (int)statistics.kernels_cached, fake.warnings);
}

static void next_run_finds_it(const char *what) {
    kiln_device_statistics statistics = {0};
    fake.warnings = 0;
    fake_run(&statistics, "f", "");
    if (statistics.kernels_cached != 1 || fake.warnings) fail_msg("%s: not mended", what);
}

static const char *sound_entry(void) {
    kiln_device_statistics statistics = {0};
    fake_run(&statistics, "f", "");
    return only_entry();
}

/* ------------------------------------------------------------------------ what the entry is made */

static void make_link_to_passwd(const char *path) {
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
}

static void make_link_to_a_sound_copy(const char *path) {
    assert_int_equal(rename(path, world_path("copy")), 0);
    assert_int_equal(symlink(world_path("copy"), path), 0);
}

static void make_link_to_fifo(const char *path) {
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(world_path("fifo"), 0600), 0);
    assert_int_equal(symlink(world_path("fifo"), path), 0);
}

static void make_link_to_itself(const char *path) {
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(path, path), 0);
}

static void make_fifo(const char *path) {
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void make_hard_link(const char *path) {
    assert_int_equal(link(path, world_path("second name")), 0);
}

static void make_group_writable(const char *path) {
    assert_int_equal(chmod(path, 0620), 0);
}

static void make_world_writable(const char *path) {
    assert_int_equal(chmod(path, 0666), 0);
}

static void make_empty(const char *path) {
    assert_int_equal(truncate(path, 0), 0);
}

static void make_longer(const char *path) {
    assert_int_equal(truncate(path, size_of(path) + 1), 0);
}

static void make_huge(const char *path) {
    assert_int_equal(truncate(path, (off_t)2 << 30), 0);
}

static void make_64_mib_of_zeros(const char *path) {
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, (off_t)64 << 20), 0);
}

static void make_another_format(const char *path) {
    flip(path, 8, 3);
}

static void make_another_users(const char *path) {
    if (geteuid() == 0)
        assert_int_equal(chown(path, 65534, 65534), 0);
    else
        make_empty(path); /* only root can give files away */
}

/* A sound entry, hash and all, of another driver's kernel under this one's name. */
static void make_another_drivers(const char *path) {
    kiln_device device;
    struct ki_kernel *kernel;
    char mine[512];
    snprintf(mine, sizeof mine, "%s", path);
    assert_int_equal(rename(mine, world_path("away")), 0);
    fake_open(&device);
    strcpy(device.properties.cache_key, "fake compiler 1, driver 2");
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, ""), KILN_OK);
    fake_close(&device);
    assert_int_equal(rename(only_entry(), mine), 0);
}

static void attacks(void **state) {
    (void)state;
    static const struct {
        const char *what;
        void (*make)(const char *path);
    } table[] = {{"symbolic link to /etc/passwd", make_link_to_passwd},
                 {"symbolic link to a sound entry", make_link_to_a_sound_copy},
                 {"symbolic link to a FIFO", make_link_to_fifo},
                 {"symbolic link to itself", make_link_to_itself},
                 {"FIFO", make_fifo},
                 {"hard link", make_hard_link},
                 {"group may write", make_group_writable},
                 {"world may write", make_world_writable},
                 {"another user's", make_another_users},
                 {"empty", make_empty},
                 {"a byte longer", make_longer},
                 {"2 GiB, sparse", make_huge},
                 {"64 MiB of zeros", make_64_mib_of_zeros},
                 {"another format", make_another_format},
                 {"another driver's", make_another_drivers}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        table[i].make(sound_entry());
        next_run_builds(table[i].what);
        next_run_finds_it(table[i].what);
        world_clear(NULL);
        world_make(NULL);
    }
}

static size_t largest;

static void *resize_watched(void *memory, size_t bytes) {
    if (bytes > largest) largest = bytes;
    return realloc(memory, bytes);
}

/* No memory for what is too large to be an entry. */
static void size_is_checked_first(void **state) {
    (void)state;
    make_huge(sound_entry());
    largest = 0;
    ki_seams.resize = resize_watched;
    next_run_builds("2 GiB");
    assert_in_range(largest, 1, 1 << 20);
}

static int creations;

static int refuse_creation(int folder, const char *name, int flags, unsigned mode) {
    if (!(flags & O_CREAT)) return openat(folder, name, flags, mode);
    creations++;
    errno = ENOSPC;
    return -1;
}

/* A full disk is tried once, not once a kernel. */
static void one_failed_write_is_enough(void **state) {
    (void)state;
    kiln_device device;
    struct ki_kernel *kernel;
    creations = 0;
    ki_seams.openat = refuse_creation;
    fake_open(&device);
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, "-DA=1"), KILN_OK);
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, "-DA=2"), KILN_OK);
    fake_close(&device);
    assert_int_equal(creations, 1);
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(fake.last_message, "building kernel f for fake:0 (first use)");
}

static void a_folder_in_its_place(void **state) {
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s", sound_entry());
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    next_run_builds("folder");
    next_run_builds("folder, still there"); /* nobody but the user could have made it: it is left alone */
}

static void truncated_anywhere(void **state) {
    (void)state;
    off_t size = size_of(sound_entry());
    for (int i = 0; i < 64; i++) {
        off_t length = i < 32 ? i * 2 : size - 1 - (i - 32) * (size - 64) / 32;
        assert_int_equal(truncate(only_entry(), length), 0);
        next_run_builds("truncated");
        next_run_finds_it("truncated");
    }
}

static void any_byte_flipped(void **state) {
    (void)state;
    static const int with[] = {0x01, 0x80, 0xff};
    off_t size = size_of(sound_entry());
    assert_true(size > HEADER + 64);
    for (off_t at = 0; at < size; at++) {
        flip(only_entry(), at, with[at % 3]);
        next_run_builds("flipped");
    }
    next_run_finds_it("flipped");
}

/* Two sound entries that change names: the hashes are right, the keys are not. */
static void swapped(void **state) {
    (void)state;
    kiln_device_statistics statistics = {0};
    char first[512];
    snprintf(first, sizeof first, "%s", sound_entry());
    assert_int_equal(rename(first, world_path("first")), 0);
    fake_run(&statistics, "f", "-DOTHER=1");
    char second[512];
    snprintf(second, sizeof second, "%s", only_entry());
    assert_int_equal(rename(second, first), 0);
    assert_int_equal(rename(world_path("first"), second), 0);
    next_run_builds("swapped");
    fake_run(&statistics, "f", "-DOTHER=1");
    assert_int_equal(statistics.kernels_built, 1);
    next_run_finds_it("swapped");
}

/* A key is hashed into a name: nothing in it becomes a path. */
static void keys_are_no_paths(void **state) {
    (void)state;
    static const char *const defines[] = {"../../outside", "/etc/passwd", "-DA=..", "%s%n", ""};
    kiln_device_statistics statistics = {0};
    for (size_t i = 0; i < sizeof defines / sizeof *defines; i++) {
        fake_run(&statistics, "f", defines[i]);
        assert_int_equal(statistics.kernels_built, 1);
        fake_run(&statistics, "f", defines[i]);
        assert_int_equal(statistics.kernels_cached, 1);
    }
    assert_int_equal(entry_count(), 5);
    assert_int_not_equal(access(world_path("outside"), F_OK), 0);
    char *key = malloc(100001);
    assert_non_null(key);
    memset(key, 'k', 100000);
    key[100000] = '\0';
    fake_run(&statistics, "f", key); /* too long a key: not kept, and that is all */
    assert_int_equal(statistics.kernels_built, 1);
    assert_int_equal(entry_count(), 5);
    free(key);
}

static void entries_are_private(void **state) {
    (void)state;
    struct stat info;
    mode_t mask = umask(0);
    const char *path = sound_entry();
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
}

static double in_1970(void) {
    return 0;
}

static void time_does_not_matter(void **state) {
    (void)state;
    const struct timespec old[2] = {{1, 0}, {1, 0}}, late[2] = {{(time_t)1 << 33, 0}, {(time_t)1 << 33, 0}};
    assert_int_equal(utimensat(AT_FDCWD, sound_entry(), old, 0), 0);
    next_run_finds_it("of 1970");
    struct stat info;
    assert_int_equal(stat(only_entry(), &info), 0);
    assert_true(info.st_mtim.tv_sec > 1000000000); /* used just now: not the next to make room */
    assert_int_equal(utimensat(AT_FDCWD, only_entry(), late, 0), 0);
    next_run_finds_it("of the future");
    ki_seams.clock = in_1970;
    assert_int_equal(unlink(only_entry()), 0);
    next_run_builds("clock stands still");
    next_run_finds_it("clock stands still");
}

static struct ki_seams default_seams;

static int restore_seams(void **state) {
    ki_seams = default_seams;
    return world_clear(state);
}

/* Ten sparse entries of 60 MiB, each used a minute after the other: over the cap the oldest go, and only
 * they. */
static void the_oldest_make_room(void **state) {
    (void)state;
    char path[512];
    kiln_device_statistics statistics = {0};
    assert_int_equal(mkdir(world_path("cache"), 0700), 0);
    for (int i = 0; i < 10; i++) {
        const struct timespec used[2] = {{1000000 + 60 * i, 0}, {1000000 + 60 * i, 0}};
        snprintf(path, sizeof path, "%s", world_path("cache/%064d.kernel", i));
        int file = open(path, O_CREAT | O_WRONLY, 0600);
        assert_true(file >= 0);
        assert_int_equal(ftruncate(file, (off_t)60 << 20), 0);
        assert_int_equal(futimens(file, used), 0);
        close(file);
    }
    int note = open(world_path("cache/notes.txt"), O_CREAT | O_WRONLY, 0600); /* not ours: left alone */
    close(note);
    fake_run(&statistics, "f", "");
    assert_int_equal(statistics.kernels_built, 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(access(world_path("cache/%064d.kernel", i), F_OK) == 0, i >= 4);
    assert_int_equal(access(world_path("cache/notes.txt"), F_OK), 0);
    assert_int_equal(entry_count(), 7);
}

static void stale_temporaries_are_swept(void **state) {
    (void)state;
    const struct timespec old[2] = {{1000000, 0}, {1000000, 0}};
    assert_int_equal(mkdir(world_path("cache"), 0700), 0);
    int a = open(world_path("cache/.new-1-0-0"), O_CREAT | O_WRONLY, 0600);
    int b = open(world_path("cache/.new-2-0-0"), O_CREAT | O_WRONLY, 0600);
    assert_int_equal(futimens(a, old), 0);
    close(a);
    close(b);
    sound_entry();
    assert_int_not_equal(access(world_path("cache/.new-1-0-0"), F_OK), 0);
    assert_int_equal(access(world_path("cache/.new-2-0-0"), F_OK), 0); /* somebody may be writing it */
}

static void a_hundred_thousand_entries(void **state) {
    (void)state;
    kiln_device_statistics statistics = {0};
    assert_int_equal(mkdir(world_path("cache"), 0700), 0);
    int folder = open(world_path("cache"), O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 100000; i++) {
        char name[80];
        snprintf(name, sizeof name, "%064d.kernel", i);
        assert_int_equal(mknodat(folder, name, S_IFREG | 0600, 0), 0);
    }
    close(folder);
    double start = ki_clock();
    fake_run(&statistics, "f", "");
    fake_run(&statistics, "f", "");
    assert_int_equal(statistics.kernels_cached, 1);
    assert_int_equal(fake.warnings, 0);
    assert_true(ki_clock() - start < 20);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_make, restore_seams)

int main(void) {
    default_seams = ki_seams;
    const struct CMUnitTest tests[] = {TEST(attacks),
                                       TEST(size_is_checked_first),
                                       TEST(one_failed_write_is_enough),
                                       TEST(a_folder_in_its_place),
                                       TEST(truncated_anywhere),
                                       TEST(any_byte_flipped),
                                       TEST(swapped),
                                       TEST(keys_are_no_paths),
                                       TEST(entries_are_private),
                                       TEST(time_does_not_matter),
                                       TEST(the_oldest_make_room),
                                       TEST(stale_temporaries_are_swept),
                                       TEST(a_hundred_thousand_entries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
