/* The memory that a process may use: the least limit of its control groups and those above them, in either
 * version's files. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/check.h"
#include "backends/cpu_memory.h"

static char folder[] = "/tmp/kiln-test-XXXXXX", groups[64];

static void write_text(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int64_t limit(const char *text) {
    write_text("groups", text);
    return ki_memory_limit(groups, folder);
}

static void least_of_all_groups(void **state) {
    (void)state;
    const int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    assert_non_null(mkdtemp(folder));
    snprintf(groups, sizeof groups, "%s/groups", folder);
    assert_int_equal(ki_memory_limit(groups, folder), machine); /* no such files */
    assert_int_equal(limit("0::/\n"), machine);
    make("job");
    make("job/step");
    write_text("job/memory.max", "300000000\n");
    write_text("job/step/memory.max", "max\n");
    assert_int_equal(limit("0::/job/step\n"), 300000000);
    assert_int_equal(limit("0::/job\n"), 300000000);
    assert_int_equal(limit("0::/\n"), machine);
    assert_int_equal(limit("0::/elsewhere/job\n"), machine);
    write_text("job/step/memory.max", "200000000\n");
    assert_int_equal(limit("0::/job/step\n"), 200000000);
    write_text("job/step/memory.max", "nonsense\n");
    assert_int_equal(limit("0::/job/step\n"), 300000000);
    make("memory");
    write_text("memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(limit("5:cpu,cpuacct:/job\n4:memory:/\n"), machine);
    write_text("memory/memory.limit_in_bytes", "100000000\n"); /* as a container sees its own */
    assert_int_equal(limit("5:cpu,cpuacct:/job\n4:memory:/docker/0123\n0::/\n"), 100000000);
    assert_int_equal(limit("no colons\n:\n"), machine);
}

static int clean(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(least_of_all_groups, clean)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
