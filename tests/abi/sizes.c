/* Structs of other sizes than this release's: those of a program that was built with the first release's
 * header, or with a newer one. Canaries stand behind the short ones.
 *
 * As long as no field has been appended, the library that is told of an older layout is ki_take and ki_give
 * with one made up. */
#include <math.h>
#include <string.h>

#include "core/check.h"
#include "core/sized.h"
#include "kiln.h"
#include "kiln/tune.h"

static const double x[] = {1, 2, 3, 4, 5}, y[] = {2.1, 3.9, 6.2, 7.8, 10.1};
static kiln_device *cpu;
static kiln_matrix *X, *Y, *W, *b;

static int open_all(void **state) {
    (void)state;
    const double zero = 0;
    return kiln_device_open(&cpu, "cpu",
                            &(kiln_device_options){.size = sizeof(kiln_device_options), .threads = 1}) ||
           kiln_matrix_dense(&X, cpu, KILN_F64, 5, 1, x) || kiln_matrix_dense(&Y, cpu, KILN_F64, 5, 1, y) ||
           kiln_matrix_dense(&W, cpu, KILN_F64, 1, 1, &zero) ||
           kiln_matrix_dense(&b, cpu, KILN_F64, 1, 1, &zero);
}

static int close_all(void **state) {
    (void)state;
    kiln_matrix *const all[] = {X, Y, W, b};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
    kiln_device_close(cpu);
    return 0;
}

/* A struct of a later release: fields behind those of today's. */
struct newer_options {
    kiln_linreg_options today;
    double added[2];
};
struct newer_report {
    kiln_report today;
    double added[2];
    double canary;
};

static double coefficient(const kiln_linreg_options *options) {
    double w;
    assert_int_equal(kiln_linreg(W, b, X, Y, options, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_get(&w, W), KILN_OK);
    return w;
}

/* Size 0, today's size and a larger one with zeros mean the same. */
static void options_of_any_release(void **state) {
    (void)state;
    struct newer_options options = {.today = {.l2 = 3}};
    const double plain = coefficient(NULL), penalised = coefficient(&options.today);
    assert_true(plain > penalised && penalised > 1);
    options.today.size = sizeof options.today;
    assert_true(coefficient(&options.today) == penalised);
    options.today.size = sizeof options;
    assert_true(coefficient(&options.today) == penalised);
    options.added[1] = 1;
    assert_int_equal(kiln_linreg(W, b, X, Y, &options.today, NULL), KILN_ERR_UNSUPPORTED);
    assert_non_null(strstr(kiln_last_error()->message, "kiln_linreg_options"));
    assert_non_null(strstr(kiln_last_error()->hint, "newer version"));
}

static void impossible_sizes(void **state) {
    (void)state;
    const size_t sizes[] = {1, sizeof(size_t), offsetof(kiln_linreg_options, solver), 1 << 20, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const kiln_linreg_options options = {.size = sizes[i]};
        kiln_report report = {.size = sizes[i], .iterations = -7};
        kiln_device_info info = {.size = sizes[i], .threads = -7};
        kiln_device_info *infos = NULL;
        int64_t count = -7;
        assert_int_equal(kiln_linreg(W, b, X, Y, &options, NULL), KILN_ERR_ARGUMENT);
        assert_int_equal(kiln_linreg(W, b, X, Y, NULL, &report), KILN_ERR_ARGUMENT);
        assert_non_null(strstr(kiln_last_error()->hint, "sizeof(kiln_report)"));
        assert_int_equal(kiln_device_get_info(cpu, &info), KILN_ERR_ARGUMENT);
        assert_int_equal(kiln_device_list(&infos, &count, sizes[i]), KILN_ERR_ARGUMENT);
        assert_true(report.iterations == -7 && info.threads == -7 && !infos && count == -7);
    }
}

/* A result that has not converged is an error to those who ask. */
static void strict_programs(void **state) {
    (void)state;
    const kiln_report limited = {.stopped_by = KILN_STOP_ITERATIONS, .iterations = 100, .residual = 0.5},
                      cancelled = {.stopped_by = KILN_STOP_CANCELLED};
    assert_int_equal(kiln_report_check(NULL), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_report_check(&cancelled), KILN_ERR_CANCELLED);
    assert_int_equal(kiln_report_check(&limited), KILN_ERR_LIMIT);
    assert_non_null(strstr(kiln_last_error()->message, "max_iterations after 100 iterations, residual 0.5"));
}

/* Fields that are new in a larger result are 0; memory behind it is untouched. */
static void newer_results(void **state) {
    (void)state;
    struct newer_report report = {
        .today = {.size = sizeof report - sizeof report.canary}, .added = {5, 5}, .canary = 5};
    assert_int_equal(kiln_linreg(W, b, X, Y, NULL, &report.today), KILN_OK);
    assert_int_equal(report.today.size, sizeof report - sizeof report.canary);
    assert_true(report.today.converged && report.added[0] == 0 && report.added[1] == 0 && report.canary == 5);
    assert_true(kiln_report_figure(&report.today, "r2") > 0.99);
    assert_true(isnan(kiln_report_figure(&report.today, "gap")) && isnan(kiln_report_figure(NULL, "r2")));
    assert_string_equal(kiln_report_figure_name(&report.today, 0), "rss");
    assert_string_equal(kiln_report_figure_name(&report.today, 3), "rank");
    assert_null(kiln_report_figure_name(&report.today, 4));
    assert_null(kiln_report_figure_name(&report.today, -1));
    assert_int_equal(kiln_report_check(&report.today), KILN_OK);
    kiln_report_free(&report.today);
    assert_true(isnan(kiln_report_figure(&report.today, "r2")) && !kiln_report_figure_name(&report.today, 0));
}

/* Rows lie as far apart as the caller's structs, and each has its size. */
static void newer_lists(void **state) {
    (void)state;
    struct newer_info {
        kiln_device_info today;
        double added;
    } * rows;
    kiln_device_info *infos;
    int64_t count, same;
    assert_int_equal(kiln_device_list((kiln_device_info **)(void *)&rows, &count, sizeof *rows), KILN_OK);
    assert_int_equal(kiln_device_list(&infos, &same, sizeof *infos), KILN_OK);
    assert_true(count == same && count >= 1);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].today.size, sizeof *rows);
        assert_string_equal(rows[i].today.name, infos[i].name);
        assert_true(rows[i].added == 0);
    }
    assert_int_equal(kiln_device_list(&infos, &same, 0), KILN_ERR_ARGUMENT);
    kiln_free(rows);
    kiln_free(infos);
}

/* A release later: `third` has been appended. The program still has the struct of two fields. */
struct first_release {
    size_t size;
    double first, second;
};
struct this_release {
    size_t size;
    double first, second, third;
};
static const struct ki_layout grown = {"grown", sizeof(struct first_release), sizeof(struct this_release)};

static void older_structs(void **state) {
    (void)state;
    for (int told = 0; told < 2; told++) { /* the size is 0, or given */
        struct {
            struct first_release given;
            double canary;
        } caller = {{told ? sizeof caller.given : 0, 1, 2}, NAN};
        struct this_release own = {.third = 7};
        assert_int_equal(ki_take(&own, &caller.given, &grown), KILN_OK);
        assert_true(own.first == 1 && own.second == 2 && own.third == 0 && own.size == sizeof own);
        own = (struct this_release){sizeof own, 3, 4, 5};
        ki_give(&caller.given, &own, &grown);
        assert_true(caller.given.first == 3 && caller.given.second == 4 && isnan(caller.canary));
        assert_int_equal(caller.given.size, told ? sizeof caller.given : 0);
    }
    struct this_release own = {.third = 7};
    assert_int_equal(ki_take(&own, NULL, &grown), KILN_OK);
    assert_true(own.size == sizeof own && own.first == 0 && own.third == 0);
}

/* A zero that was given is one; the bits lie beyond the first release's layout, and then a size must be
 * told. */
static void zero_can_be_given(void **state) {
    (void)state;
    kiln_linreg_options options = {.size = sizeof options};
    assert_int_equal(kiln_option_give("linreg", &options, "l2"), KILN_OK);
    assert_true(coefficient(&options) == coefficient(NULL));
    assert_int_equal(kiln_option_give("linreg", &options, "max_iterations"), KILN_OK);
    assert_int_equal(kiln_linreg(W, b, X, Y, &options, NULL), KILN_ERR_ARGUMENT);
    assert_non_null(strstr(kiln_last_error()->message, "max_iterations is 0"));
    options = (kiln_linreg_options){0};
    assert_int_equal(kiln_option_give("linreg", &options, "l2"), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_linreg(W, b, X, Y, &(kiln_linreg_options){.l2 = -1}, NULL), KILN_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_any_release),
        cmocka_unit_test(impossible_sizes),
        cmocka_unit_test(newer_results),
        cmocka_unit_test(strict_programs),
        cmocka_unit_test(newer_lists),
        cmocka_unit_test(older_structs),
        cmocka_unit_test(zero_can_be_given),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
