/* The registry as a tool reads it: every algorithm, every option, and that the defaults it tells are those
 * that hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"
#include "algorithms/registry.h"

enum { ROWS = 40, COLS = 3 };

static kiln_device *device;

static int open_device(void **state) {
    (void)state;
    return kiln_device_open(&device, "cpu", &(kiln_device_options){.threads = 1});
}

static int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

static void every_algorithm_is_listed_once(void **state) {
    (void)state;
    const kiln_algorithm *algorithm;
    int64_t count = 0;
    for (; (algorithm = kiln_algorithm_at(count)); count++) {
        kiln_model *model = NULL;
        assert_ptr_equal(kiln_algorithm_named(algorithm->name), algorithm);
        assert_int_equal(kiln_model_create(&model, algorithm->name), KILN_OK);
        assert_string_equal(kiln_model_text(model, "algorithm"), algorithm->name);
        kiln_model_free(model);
        assert_true(strlen(algorithm->summary) > 10);
        assert_true(kiln_algorithm_passes(algorithm->name, 1000, 0) > 1);
        assert_true(kiln_algorithm_passes(algorithm->name, 1000, 1) <
                    kiln_algorithm_passes(algorithm->name, 1000, 0));
    }
    assert_true(count >= 5);
    assert_null(kiln_algorithm_at(-1));
    assert_null(kiln_algorithm_named("alchemy"));
    assert_null(kiln_algorithm_named(NULL));
    assert_int_equal(kiln_algorithm_passes("alchemy", 5, 0), 1);
    assert_true(kiln_algorithm_passes("linreg", 3, 0) < kiln_algorithm_passes("linreg", 1000, 0));
}

static size_t bytes_of(kiln_option_kind kind) {
    switch (kind) {
    case KILN_OPTION_FLAG:
    case KILN_OPTION_INT: return sizeof(int);
    case KILN_OPTION_CHOICE: return sizeof(kiln_family);
    case KILN_OPTION_INTEGER: return sizeof(int64_t);
    case KILN_OPTION_REAL:
    case KILN_OPTION_POSITIVE: return sizeof(double);
    }
    return 0;
}

static int choices(const char *text) {
    int count = 1;
    for (; *text; text++) count += *text == '|';
    return count;
}

static void options_lie_within_their_struct(void **state) {
    (void)state;
    const kiln_algorithm *algorithm;
    for (int64_t a = 0; (algorithm = kiln_algorithm_at(a)); a++) {
        char *used = calloc(algorithm->options_bytes, 1);
        for (int64_t i = 0; i < algorithm->option_count; i++) {
            const kiln_option *option = &algorithm->options[i];
            const size_t bytes = bytes_of(option->kind);
            assert_true(bytes > 0 && option->offset % bytes == 0);
            assert_true(option->offset + bytes <= algorithm->options_bytes);
            for (size_t b = 0; b < bytes; b++) assert_int_equal(used[option->offset + b]++, 0);
            assert_true(option->least <= option->most);
            assert_true(option->standard == 0 ||
                        (option->standard >= option->least && option->standard <= option->most));
            assert_int_equal(option->kind == KILN_OPTION_CHOICE, option->choices != NULL);
            if (option->choices) assert_int_equal(choices(option->choices), (int)option->most);
            assert_true(strlen(option->help) > 10 && option->help[strlen(option->help) - 1] == '.');
        }
        free(used);
    }
}

static const kiln_option *option_of(const char *algorithm, const char *name) {
    const kiln_algorithm *found = kiln_algorithm_named(algorithm);
    for (int64_t i = 0; i < found->option_count; i++)
        if (strcmp(found->options[i].name, name) == 0) return &found->options[i];
    fail_msg("%s has no option %s", algorithm, name);
    return NULL;
}

/* The numbers of a choice are those of the enum: names come in its order. */
static void choices_are_numbered_as_the_enums(void **state) {
    (void)state;
    char families[200] = "", links[200] = "";
    for (int i = 1; kiln_family_name((kiln_family)i); i++)
        sprintf(families + strlen(families), "%s%s", i > 1 ? "|" : "", kiln_family_name((kiln_family)i));
    for (int i = 1; kiln_link_name((kiln_link)i); i++)
        sprintf(links + strlen(links), "%s%s", i > 1 ? "|" : "", kiln_link_name((kiln_link)i));
    assert_string_equal(option_of("glm", "family")->choices, families);
    assert_string_equal(option_of("glm", "link")->choices, links);
}

/* The default tolerance is what a report says that the residual was compared with. */
static void told_tolerances_hold(void **state) {
    (void)state;
    for (int single = 0; single <= 1; single++) {
        const kiln_type type = single ? KILN_F32 : KILN_F64;
        double x[ROWS * COLS], targets[ROWS];
        kiln_matrix *wide = NULL, *X = NULL, *y = NULL, *W = NULL, *b = NULL, *hubs = NULL, *ranks = NULL;
        for (int i = 0; i < ROWS * COLS; i++) x[i] = 1 + (i * 37 % 101) / 101.0;
        for (int i = 0; i < ROWS; i++) targets[i] = i * 7 % 3 == 0;
        assert_int_equal(kiln_matrix_dense(&wide, device, KILN_F64, ROWS, COLS, x), KILN_OK);
        assert_int_equal(kiln_matrix_copy(&X, device, type, wide), KILN_OK);
        kiln_matrix_free(wide);
        assert_int_equal(kiln_matrix_dense(&wide, device, KILN_F64, ROWS, 1, targets), KILN_OK);
        assert_int_equal(kiln_matrix_copy(&y, device, type, wide), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&W, device, type, COLS, 1, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&b, device, type, 1, 1, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&hubs, device, type, ROWS, 1, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&ranks, device, type, COLS, 1, NULL), KILN_OK);
        static const char *const names[] = {"linreg", "logreg", "glm", "svm", "hits", "pagerank"};
        kiln_matrix *graph = NULL;
        const int64_t row_start[ROWS + 1] = {0};
        assert_int_equal(kiln_matrix_csr(&graph, device, type, ROWS, ROWS, row_start, NULL, NULL), KILN_OK);
        for (int a = 0; a < 6; a++) {
            kiln_report report = {0};
            const kiln_option *tolerance = option_of(names[a], "tolerance");
            const kiln_status status = a == 0   ? kiln_linreg(W, b, X, y, NULL, &report)
                                       : a == 1 ? kiln_logreg(W, b, X, y, NULL, &report)
                                       : a == 2 ? kiln_glm(W, b, X, y, NULL, &report)
                                       : a == 3 ? kiln_svm(W, b, X, y, NULL, &report)
                                       : a == 4 ? kiln_hits(hubs, ranks, X, NULL, &report)
                                                : kiln_pagerank(hubs, graph, NULL, &report);
            assert_int_equal(status, KILN_OK);
            assert_true(report.tolerance == (single ? tolerance->standard_f32 : tolerance->standard));
            kiln_report_free(&report);
        }
        kiln_matrix *const all[] = {wide, X, y, W, b, hubs, ranks, graph};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    }
}

/* For every option of every algorithm 0 is its default until it was given, and then it is 0. */
static void zeros_that_are_given_stand(void **state) {
    (void)state;
    const kiln_algorithm *algorithm;
    for (int64_t a = 0; (algorithm = kiln_algorithm_at(a)); a++)
        for (int64_t i = 0; i < algorithm->option_count; i++) {
            const kiln_option *option = &algorithm->options[i];
            size_t options[64] = {algorithm->options_bytes};
            assert_true(algorithm->options_bytes <= sizeof options);
            const bool flag = option->kind == KILN_OPTION_FLAG;
            assert_true(kiln_option_value(algorithm->name, options, option->name, KILN_F64) ==
                        (flag ? 0 : option->standard));
            assert_true(kiln_option_value(algorithm->name, options, option->name, KILN_F32) ==
                        (flag ? 0 : option->standard_f32));
            assert_int_equal(kiln_option_give(algorithm->name, options, option->name), KILN_OK);
            assert_true(kiln_option_value(algorithm->name, options, option->name, KILN_F64) == 0);
        }
    size_t options[64] = {sizeof options};
    assert_int_equal(kiln_option_give("als", options, "luck"), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_option_give("alchemy", options, "l2"), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_option_give("als", NULL, "l2"), KILN_ERR_ARGUMENT);
    assert_true(isnan(kiln_option_value("als", options, "luck", KILN_F64)));
}

/* Ranks that never follow a link are the teleport vector; nothing begins anew where damping is not given. */
static void no_damping(void **state) {
    (void)state;
    enum { N = 3 };
    const int64_t row_start[] = {0, 1, 2, 2};
    const int32_t columns[] = {1, 2};
    const double ones[] = {1, 1};
    kiln_matrix *A = NULL, *ranks = NULL;
    double got[N];
    assert_int_equal(kiln_matrix_csr(&A, device, KILN_F64, N, N, row_start, columns, ones), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&ranks, device, KILN_F64, N, 1, NULL), KILN_OK);
    for (int given = 0; given < 2; given++) {
        kiln_pagerank_options options = {.size = sizeof options};
        kiln_report report = {0};
        if (given) assert_int_equal(kiln_option_give("pagerank", &options, "damping"), KILN_OK);
        assert_int_equal(kiln_pagerank(ranks, A, &options, &report), KILN_OK);
        assert_int_equal(kiln_matrix_get(got, ranks), KILN_OK);
        assert_true((fabs(got[0] - got[2]) < 1e-15) == given && report.converged);
        kiln_report_free(&report);
    }
    kiln_matrix_free(A);
    kiln_matrix_free(ranks);
}

/* The choice of kiln_solver_choose is what a run reports, for each way that there is. */
static void told_solvers_are_taken(void **state) {
    (void)state;
    double x[ROWS * COLS], targets[ROWS];
    kiln_matrix *X = NULL, *y = NULL, *W = NULL, *b = NULL;
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (i * 37 % 101) / 101.0;
    for (int i = 0; i < ROWS; i++) targets[i] = i * 7 % 3 == 0;
    assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, ROWS, COLS, x), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&y, device, KILN_F64, ROWS, 1, targets), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&W, device, KILN_F64, COLS, 1, NULL), KILN_OK);
    assert_int_equal(kiln_matrix_dense(&b, device, KILN_F64, 1, 1, NULL), KILN_OK);
    for (int solver = 0; solver <= 2; solver++)
        for (int plain = 0; plain <= (solver < 2); plain++) {
            const kiln_linreg_options options = {.solver = (kiln_linreg_solver)solver,
                                                 .no_preconditioner = plain,
                                                 .max_iterations = solver ? 7 : 0};
            kiln_solver choice = {0};
            kiln_report report = {0};
            assert_int_equal(kiln_solver_choose(&choice, "linreg", &options, X, 1), KILN_OK);
            assert_int_equal(kiln_linreg(W, b, X, y, &options, &report), KILN_OK);
            assert_string_equal(choice.solver, report.solver);
            assert_int_equal(choice.max_iterations, solver ? 7 : 1000);
            assert_true(strlen(choice.why) > 10);
            kiln_report_free(&report);
        }
    static const char *const names[] = {"logreg", "svm"};
    for (int a = 0; a < 2; a++) {
        kiln_solver choice = {0};
        kiln_report report = {0};
        assert_int_equal(kiln_solver_choose(&choice, names[a], NULL, X, 2), KILN_OK);
        const kiln_status status =
            a ? kiln_svm(W, b, X, y, NULL, &report) : kiln_logreg(W, b, X, y, NULL, &report);
        assert_int_equal(status, KILN_OK);
        assert_string_equal(choice.solver, report.solver);
        assert_true(choice.max_iterations == 100 && *choice.why);
        kiln_report_free(&report);
    }
    kiln_solver choice = {0};
    assert_int_equal(kiln_solver_choose(&choice, "kmeans", NULL, X, 1), KILN_OK);
    assert_true(!choice.solver && choice.max_iterations == 300 && !*choice.why);
    assert_int_equal(
        kiln_solver_choose(&choice, "logreg", &(kiln_logreg_options){.solver = KILN_CLASSIFIER_DUAL}, X, 2),
        KILN_ERR_UNSUPPORTED);
    assert_int_equal(
        kiln_solver_choose(&choice, "linreg", &(kiln_linreg_options){.solver = (kiln_linreg_solver)9}, X, 1),
        KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_solver_choose(&choice, "alchemy", NULL, X, 1), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_solver_choose(&choice, "linreg", NULL, X, 0), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_solver_choose(&choice, "linreg", NULL, NULL, 1), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_solver_choose(NULL, "linreg", NULL, X, 1), KILN_ERR_ARGUMENT);
    kiln_matrix *const all[] = {X, y, W, b};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
}

/* Returns how many a letter of a tensor's rule stands for, when `empty` stands for none. */
static int64_t length_of(char letter, char empty) {
    return letter == empty ? 0 : letter >= '0' && letter <= '9' ? letter - '0' : 2;
}

static void put_tensor(kiln_model *model, const struct ki_tensor_rule *rule, char empty) {
    kiln_matrix *A = NULL;
    assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, length_of(rule->rows, empty),
                                       length_of(rule->cols, empty), NULL),
                     KILN_OK);
    assert_int_equal(kiln_model_set_tensor(model, rule->name, A), KILN_OK);
    kiln_matrix_free(A);
}

/* A model whose tensors agree on a dimension of 0 is none: neither written nor used. */
static void no_dimension_is_zero(void **state) {
    (void)state;
    const kiln_algorithm *listed;
    for (int64_t a = 0; (listed = kiln_algorithm_at(a)); a++)
        for (char empty = 'a'; empty <= 'z'; empty++) {
            const struct ki_algorithm *algorithm = ki_algorithm_named(listed->name);
            kiln_model *model = NULL;
            kiln_matrix *X = NULL, *P = NULL;
            bool has = false;
            assert_int_equal(kiln_model_create(&model, listed->name), KILN_OK);
            for (int r = 0; r < KI_RULES && algorithm->tensors[r].name; r++) {
                const struct ki_tensor_rule *rule = &algorithm->tensors[r];
                has = has || (!rule->may_be_empty && (rule->rows == empty || rule->cols == empty));
                put_tensor(model, rule, empty);
            }
            assert_int_equal(kiln_matrix_dense(&X, device, KILN_F64, 2, empty == 'n' ? 0 : 2, NULL), KILN_OK);
            if (has) {
                assert_int_equal(kiln_model_save(model, "/dev/null/none"), KILN_ERR_MODEL);
                assert_non_null(strstr(kiln_last_error()->message, "is empty"));
                assert_int_equal(kiln_predict(&P, model, X), KILN_ERR_MODEL);
                assert_non_null(strstr(kiln_last_error()->message, "is empty"));
            }
            kiln_matrix_free(X);
            kiln_model_free(model);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_listed_once),
        cmocka_unit_test(options_lie_within_their_struct),
        cmocka_unit_test(choices_are_numbered_as_the_enums),
        cmocka_unit_test(told_tolerances_hold),
        cmocka_unit_test(told_solvers_are_taken),
        cmocka_unit_test(no_dimension_is_zero),
        cmocka_unit_test(zeros_that_are_given_stand),
        cmocka_unit_test(no_damping),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
