/* The probe: complete rows, a hint for whatever is missing, and a named library that is not there is said to
 * be missing. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "kiln.h"

static const kiln_probe *row_of(const kiln_probe *rows, int64_t count, const char *what) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(rows[i].what, what) == 0) return &rows[i];
    fail_msg("no row '%s'", what);
    return NULL;
}

static void every_row_is_complete(void **state) {
    (void)state;
    static const char *const expected[] = {
        "CPU",  "threads", "BLAS", "CUDA driver",      "NVRTC",       "cuBLAS", "cuSPARSE", "OpenCL loader",
        "NCCL", "MPI",     "zstd", "OpenCL platforms", "kernel cache"};
    kiln_probe *rows = NULL;
    int64_t count = 0;
    assert_int_equal(kiln_probe_machine(&rows, &count, sizeof *rows), KILN_OK);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) row_of(rows, count, expected[i]);
    for (int64_t i = 0; i < count; i++) {
        assert_true(strlen(rows[i].detail) > 0);
        if (!rows[i].found) assert_true(strlen(rows[i].hint) > 0);
        assert_true(strlen(rows[i].detail) < sizeof rows[i].detail - 1);
        assert_true(strlen(rows[i].hint) < sizeof rows[i].hint - 1);
    }
    kiln_free(rows);
}

static void a_named_library_is_not_replaced(void **state) {
    (void)state;
    static const char *const paths[] = {"/no/such/libblas.so", "libopenblas.so.0"};
    for (int i = 0; i < 2; i++) {
        kiln_probe *rows = NULL;
        int64_t count = 0;
        setenv("KILN_BLAS", paths[i], 1);
        assert_int_equal(kiln_probe_machine(&rows, &count, sizeof *rows), KILN_OK);
        unsetenv("KILN_BLAS");
        const kiln_probe *blas = row_of(rows, count, "BLAS");
        assert_false(blas->found);
        assert_non_null(strstr(blas->detail, paths[i]));
        kiln_free(rows);
    }
}

static void arguments(void **state) {
    (void)state;
    kiln_probe *rows = NULL;
    int64_t count = 0;
    assert_int_equal(kiln_probe_machine(NULL, &count, sizeof *rows), KILN_ERR_ARGUMENT);
    assert_int_equal(kiln_probe_machine(&rows, NULL, sizeof *rows), KILN_ERR_ARGUMENT);
    assert_null(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_is_complete),
                                       cmocka_unit_test(a_named_library_is_not_replaced),
                                       cmocka_unit_test(arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
