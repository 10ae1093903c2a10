/* The machine's profile: figures come back exactly, damage is an empty profile. */
#define _GNU_SOURCE
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/check.h"
#include "core/fake.h"

static void put(const char *name, double value) {
    kiln_device device;
    fake_open(&device);
    assert_int_equal(ki_cache_profile_put(&device, name, value), KILN_OK);
    fake_close(&device);
}

static bool get(const char *name, double *value) {
    kiln_device device;
    bool found = true;
    fake_open(&device);
    assert_int_equal(ki_cache_profile_get(&found, value, &device, name), KILN_OK);
    fake_close(&device);
    return found;
}

static void figures_come_back_exactly(void **state) {
    (void)state;
    static const double values[] = {21.3e9, 1.0 / 3, 0, -0.1, DBL_MAX, DBL_MIN, 4e12};
    double value;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* if it is there, the decimal point is a comma */
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        put("bandwidth fake:0", values[i]);
        put("another", 1);
        assert_true(get("bandwidth fake:0", &value));
        assert_true(value == values[i]);
    }
    setlocale(LC_ALL, "C");
    assert_false(get("bandwidth", &value)); /* a beginning is not the name */
    assert_false(get("fake:0", &value));
    assert_int_equal(fake.warnings, 0);
}

static void one_line_a_name(void **state) {
    (void)state;
    struct stat info;
    for (int i = 0; i < 50; i++) put("a", 1 + i), put("b", 2);
    assert_int_equal(stat(world_path("cache/profile"), &info), 0);
    assert_in_range(info.st_size, 1, 100);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void write_profile(const char *bytes, size_t size) {
    FILE *file = fopen(world_path("cache/profile"), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(world_path("cache/profile"), 0600), 0);
}

static void damage_is_no_figure(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } damaged[] = {{"", 0},
                   {"a", 1},
                   {"a\t", 2},
                   {"a\t\n", 3},
                   {"a\tx\n", 4},
                   {"a\t1\n", 4},
                   {"a\t1*2^\n", 7},
                   {"a\t1*2^1x\n", 9},
                   {"a\t*2^1\n", 7},
                   {"a\t1*2^0", 7},
                   {"\0a\t1*2^0\n", 9},
                   {"a\t1*2^9999\n", 11},
                   {"a\t9*2^1999\n", 11},
                   {"\n\n\n", 3},
                   {"a\t\n5*2^3\n", 9},
                   {"a\t1*2^\n4\n", 9}};
    double value = 7;
    put("a", 1);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        write_profile(damaged[i].bytes, damaged[i].size);
        assert_false(get("a", &value));
        assert_true(value == 7);
        put("a", 3);
        assert_true(get("a", &value));
        assert_true(value == 3);
        value = 7;
    }
}

/* Two writers at once cannot leave such a file, others can. */
static void the_newest_of_several_lines(void **state) {
    (void)state;
    static const char twice[] = "a\t1*2^0\nb\t1*2^0\na\t1*2^1\n";
    double value = 7;
    put("a", 1);
    write_profile(twice, sizeof twice - 1);
    assert_true(get("a", &value) && value == 2);
    put("a", 3);
    assert_true(get("a", &value) && value == 3);
}

static void a_full_profile_starts_anew(void **state) {
    (void)state;
    char name[40];
    double value;
    kiln_device device;
    fake_open(&device);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "a figure with a long name %d", i);
        assert_int_equal(ki_cache_profile_put(&device, name, i), KILN_OK);
    }
    fake_close(&device);
    assert_true(get(name, &value));
    assert_int_equal(fake.warnings, 0);
}

static void only_finite_figures(void **state) {
    (void)state;
    kiln_device device;
    fake_open(&device);
    assert_int_equal(ki_cache_profile_put(&device, "a", (double)NAN), KILN_ERR_ARGUMENT);
    assert_int_equal(ki_cache_profile_put(&device, "a", (double)INFINITY), KILN_ERR_ARGUMENT);
    fake_close(&device);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_make, world_clear)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(figures_come_back_exactly),  TEST(one_line_a_name),
                                       TEST(damage_is_no_figure),        TEST(the_newest_of_several_lines),
                                       TEST(a_full_profile_starts_anew), TEST(only_finite_figures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
