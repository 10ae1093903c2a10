/* The cache's folder: whatever is wrong with it, kernels come out right and one message is all that it costs.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fake.h"

/* Two runs on a folder that must not be used: both build, each warns once, nothing is written. */
static void unusable(const char *reason) {
    kiln_device_statistics statistics = {0};
    for (int run = 0; run < 2; run++) {
        fake.messages = fake.warnings = 0;
        fake_run(&statistics, "f", "");
        assert_true(statistics.kernels_built == 1 && statistics.kernels_cached == 0);
        assert_int_equal(fake.warnings, 1);
        assert_int_equal(fake.messages, 2);
        assert_string_equal(fake.last_message, "building kernel f for fake:0 (first use)");
    }
    struct ki_cache *cache = malloc(sizeof *cache);
    assert_non_null(cache);
    ki_cache_open(cache);
    assert_int_equal(cache->folder, -1);
    if (!strstr(cache->why, reason)) fail_msg("'%s' does not say '%s'", cache->why, reason);
    free(cache);
}

static void usable(const char *path) {
    kiln_device_statistics statistics = {0};
    struct stat info;
    fake_run(&statistics, "f", "");
    fake_run(&statistics, "f", "");
    assert_int_equal(statistics.kernels_cached, 1);
    assert_int_equal(fake.warnings, 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
}

static void order_of_places(void **state) {
    (void)state;
    setenv("XDG_CACHE_HOME", world_path("xdg"), 1);
    setenv("HOME", world_path("home"), 1);
    usable(world_path("cache"));
    setenv("KILN_CACHE_DIR", "", 1);
    usable(world_path("xdg/kiln"));
    setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored, says the XDG specification */
    usable(world_path("home/.cache/kiln"));
    unsetenv("XDG_CACHE_HOME");
    usable(world_path("home/.cache/kiln"));
}

static void no_place_at_all(void **state) {
    (void)state;
    unsetenv("KILN_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    unusable("is set");
    setenv("HOME", "/proc/no/such", 1);
    unusable("No such file");
    setenv("KILN_CACHE_DIR", "relative/cache", 1);
    unusable("not an absolute path");
    char *path = malloc(6000);
    assert_non_null(path);
    memset(path, 'x', 5999);
    path[0] = '/';
    path[5999] = '\0';
    setenv("KILN_CACHE_DIR", path, 1);
    free(path);
    unusable("longer");
}

static void others_may_write(void **state) {
    (void)state;
    static const unsigned modes[] = {0777, 0770, 0720, 0702, 01777};
    assert_int_equal(mkdir(world_path("cache"), 0700), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(world_path("cache"), modes[i]), 0);
        unusable("others may write");
    }
    assert_int_equal(entry_count(), 0);
}

/* Another user's folder: as root it is made one by chown, else /usr is one. */
static void another_users(void **state) {
    (void)state;
    assert_int_equal(mkdir(world_path("cache"), 0700), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(world_path("cache"), 65534, 65534), 0);
    else
        setenv("KILN_CACHE_DIR", "/usr", 1);
    unusable("belongs to user");
    assert_int_equal(entry_count(), 0);
}

static void symbolic_link(void **state) {
    (void)state;
    assert_int_equal(mkdir(world_path("elsewhere"), 0700), 0);
    assert_int_equal(symlink(world_path("elsewhere"), world_path("cache")), 0);
    unusable("symbolic link");
    assert_int_equal(rmdir(world_path("elsewhere")), 0); /* still empty */
}

static void a_file_in_its_place(void **state) {
    (void)state;
    FILE *file = fopen(world_path("cache"), "w");
    assert_non_null(file);
    fclose(file);
    unusable("not a folder");
}

/* Deleted while in use: what follows is built and used, with one message. */
static void deleted_meanwhile(void **state) {
    (void)state;
    kiln_device device;
    struct ki_kernel *kernel;
    fake_open(&device);
    assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, "-DA=1"), KILN_OK);
    remove_tree(world_path("cache"));
    for (int i = 2; i < 6; i++) {
        char defines[16];
        snprintf(defines, sizeof defines, "-DA=%d", i);
        assert_int_equal(ki_kernel_get(&kernel, &device, "k", "f", KILN_F64, defines), KILN_OK);
        assert_string_equal(fake.loaded, fake.built);
    }
    assert_int_equal(fake.warnings, 1);
    assert_int_equal(device.statistics.kernels_built, 5);
    fake_close(&device);
}

/* A folder that may be read and not written (as root nothing is forbidden: then as another user, in a child's
 * place). */
static void read_only(void **state) {
    (void)state;
    kiln_device_statistics statistics = {0};
    if (geteuid() == 0) {
        assert_int_equal(chmod(world_path("%s", ""), 0755), 0);
        assert_int_equal(mkdir(world_path("cache"), 0500), 0);
        assert_int_equal(chown(world_path("cache"), 65534, 65534), 0);
        assert_int_equal(seteuid(65534), 0);
    } else {
        assert_int_equal(mkdir(world_path("cache"), 0500), 0);
    }
    fake_run(&statistics, "f", "");
    if (getuid() == 0) assert_int_equal(seteuid(0), 0);
    assert_int_equal(statistics.kernels_built, 1);
    assert_int_equal(fake.warnings, 1);
    assert_int_equal(entry_count(), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_make, world_clear)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(order_of_places), TEST(no_place_at_all),     TEST(others_may_write),  TEST(another_users),
        TEST(symbolic_link),   TEST(a_file_in_its_place), TEST(deleted_meanwhile), TEST(read_only)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
