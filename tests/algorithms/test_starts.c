/* Algorithms ask of entries before they start: sums, the transposed matrix, entries about means. All of it
 * against plain loops, on each kind of device, with the bytes counted that come to host memory: the entries
 * never do. */
#include <stdio.h>

#include "algorithms/factor/entries.h"
#include "algorithms/on_cpu.h"
#include "algorithms/topics/topics.h"
#include "ops/vectors/reduce.h"

enum { M = 150, N = 101, FACTORS = 4 };

static const char *const names[] = {"cpu", "cpu*2", "opencl", "opencl:0.0*2"};

/* Every other cell, by a pattern that leaves row 7 and column 9 empty. */
struct entries {
    int64_t start[M + 1], nnz;
    int32_t col[M * N];
    double value[M * N];
};

static void fill(struct entries *of) {
    uint64_t seed = 1;
    *of = (struct entries){.nnz = 0};
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            const double x = uniform(&seed);
            if (i == 7 || j == 9 || x < 0.5) continue;
            of->col[of->nnz] = j;
            of->value[of->nnz++] = x < 0.55 ? 0 : x < 0.6 ? 2.5 : floor(10 * x);
        }
        of->start[i + 1] = of->nnz;
    }
}

static kiln_matrix *matrix_of(const struct entries *of, kiln_type type) {
    kiln_matrix *X = NULL;
    float narrow[M * N];
    for (int64_t e = 0; e < of->nnz; e++) narrow[e] = (float)of->value[e];
    assert_int_equal(kiln_matrix_csr(&X, device, type, M, N, of->start, of->col,
                                     type == KILN_F32 ? (const void *)narrow : of->value),
                     KILN_OK);
    return X;
}

static void get(struct entries *to, const kiln_matrix *X) {
    struct ki_host_entries all = {0};
    assert_int_equal(ki_entries_get(&all, X), KILN_OK);
    to->nnz = all.nnz;
    memcpy(to->col, all.col, (size_t)all.nnz * sizeof *all.col);
    memcpy(to->value, all.value, (size_t)all.nnz * sizeof *all.value);
    ki_host_entries_free(&all);
}

static int64_t bytes_down(void) {
    kiln_device_statistics statistics = {.size = sizeof statistics};
    assert_int_equal(kiln_device_get_statistics(device, &statistics), KILN_OK);
    return statistics.bytes_down;
}

/* Sums of n numbers differ by less than n eps times the sum of what they add up. */
static void assert_sum(const char *name, const char *what, double sum, double expected, double size) {
    const double bound = (double)(M * N) * 2.3e-16 * size;
    if (!(fabs(sum - expected) <= bound))
        fail_msg("%s: %s is %.17g instead of %.17g", name, what, sum, expected);
}

static void sums_and_transposed(const char *name, kiln_type type) {
    static struct entries X, T;
    double sums[KI_TOPICS_SUMS], expected[KI_TOPICS_SUMS] = {0}, size[KI_TOPICS_SUMS] = {0}, sum, squares = 0;
    kiln_matrix *matrix, *transposed = NULL;
    fill(&X);
    matrix = matrix_of(&X, type);
    const int64_t before = bytes_down();
    assert_int_equal(ki_topics_counts("test", sums, KI_TOPICS_SUMS, matrix), KILN_OK);
    assert_int_equal(ki_entries_take(&transposed, &sum, "test", matrix), KILN_OK);
    for (int64_t e = 0; e < X.nnz; e++) {
        const double x = X.value[e], terms[] = {x, x > 0 ? x * log(x) - x : 0, lgamma(x + 1)};
        for (int i = 0; i < KI_TOPICS_SUMS; i++) {
            expected[i] += terms[i];
            size[i] += fabs(terms[i]) + x;
        }
        squares += (x - 4) * (x - 4);
    }
    for (int i = 0; i < KI_TOPICS_SUMS; i++)
        assert_sum(name, "a sum of counts", sums[i], expected[i], size[i]);
    assert_sum(name, "the sum", sum, expected[0], size[0]);
    assert_int_equal(ki_entries_squares(&sum, matrix, 4), KILN_OK);
    assert_sum(name, "the sum of squares", sum, squares, 8 * size[0] + 100 * (double)X.nnz);
    if (bytes_down() - before > (M + N) * 8)
        fail_msg("%s: %lld bytes came home", name, (long long)(bytes_down() - before));

    get(&T, transposed);
    int64_t at = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++)
            for (int64_t e = X.start[i]; e < X.start[i + 1]; e++)
                if (X.col[e] == j) {
                    assert_int_equal(T.col[at], i);
                    assert_true(T.value[at++] == X.value[e]);
                }
    assert_int_equal(at, T.nnz);
    kiln_matrix_free(matrix);
    kiln_matrix_free(transposed);
}

static void centred(const char *name, kiln_type type) {
    static struct entries X, E;
    double row[M], column[N];
    kiln_matrix *matrix;
    fill(&X);
    matrix = matrix_of(&X, type);
    for (int i = 0; i < M; i++) row[i] = i % 7 * 0.25;
    for (int j = 0; j < N; j++) column[j] = j % 5 * 0.5;
    for (int all = 0; all < 2; all++) {
        kiln_matrix *made = NULL;
        const int64_t before = bytes_down();
        assert_int_equal(ki_entries_centred(&made, matrix, 3.3, all ? row : NULL, all ? column : NULL),
                         KILN_OK);
        /* what a group's members write goes to the first, of OpenCL's through host memory */
        if (!strchr(name, '*') && bytes_down() - before > (M + N) * 8)
            fail_msg("%s: %lld bytes came home", name, (long long)(bytes_down() - before));
        get(&E, made);
        for (int i = 0; i < M; i++)
            for (int64_t e = X.start[i]; e < X.start[i + 1]; e++) {
                const double expected = X.value[e] - 3.3 - (all ? row[i] + column[E.col[e]] : 0);
                assert_int_equal(E.col[e], X.col[e]);
                if (!(fabs(E.value[e] - expected) <= 32 * ki_epsilon(type)))
                    fail_msg("%s: entry %lld is %g instead of %g", name, (long long)e, E.value[e], expected);
            }
        kiln_matrix_free(made);
    }
    kiln_matrix_free(matrix);
}

/* Errors name an entry wherever the entries lie; a sum that overflows is no error. */
static void named(const char *name, kiln_type type) {
    static struct entries X;
    static const double wrong[] = {-1, NAN, INFINITY};
    double sum;
    for (int i = 0; i < 3; i++) {
        fill(&X);
        const int64_t at = X.start[31] + 2;
        X.value[at] = wrong[i];
        kiln_matrix *matrix = matrix_of(&X, type);
        char place[64];
        snprintf(place, sizeof place, "test: the entry in row 31, column %d is", X.col[at]);
        assert_int_equal(ki_topics_counts("test", &sum, 1, matrix), KILN_ERR_DATA);
        if (!strstr(kiln_last_error()->message, place)) fail_msg("%s: %s", name, kiln_last_error()->message);
        assert_int_equal(ki_entries_sum(&sum, "test", matrix, false), i ? KILN_ERR_DATA : KILN_OK);
        kiln_matrix_free(matrix);
    }
    fill(&X);
    for (int64_t e = 0; e < X.nnz; e++) X.value[e] = 1e308;
    if (type == KILN_F32) return;
    kiln_matrix *matrix = matrix_of(&X, type);
    assert_int_equal(ki_entries_sum(&sum, "test", matrix, true), KILN_OK);
    assert_true(isinf(sum));
    kiln_matrix_free(matrix);
}

/* Less comes home of whole runs of an iteration than the entries' columns are. */
static void runs_leave_entries_where_they_lie(void **state) {
    static const char *const verbs[] = {"lda", "gap", "sfa"};
    static struct entries X;
    (void)state;
    if (kiln_device_open(&device, "opencl", NULL) != KILN_OK) skip();
    fill(&X);
    for (int verb = 0; verb < 3; verb++) {
        kiln_matrix *matrix = matrix_of(&X, KILN_F64), *A = NULL, *B = NULL;
        assert_int_equal(kiln_matrix_dense(&A, device, KILN_F64, M, FACTORS, NULL), KILN_OK);
        assert_int_equal(kiln_matrix_dense(&B, device, KILN_F64, N, FACTORS, NULL), KILN_OK);
        const int64_t before = bytes_down();
        const kiln_status status =
            verb == 0   ? kiln_lda(A, B, matrix, &(kiln_lda_options){.max_iterations = 1}, NULL)
            : verb == 1 ? kiln_gap(A, B, matrix, &(kiln_gap_options){.max_iterations = 1}, NULL)
                        : kiln_sfa(A, B, matrix, &(kiln_sfa_options){.max_iterations = 1}, NULL);
        if (status != KILN_OK) fail_msg("%s: %s", verbs[verb], kiln_last_error()->message);
        if (bytes_down() - before >= 4 * X.nnz)
            fail_msg("%s: %lld bytes came home", verbs[verb], (long long)(bytes_down() - before));
        kiln_matrix_free(matrix);
        kiln_matrix_free(A);
        kiln_matrix_free(B);
    }
    kiln_device_close(device);
}

static void on_each_device(void (*test)(const char *name, kiln_type type)) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (kiln_device_open(&device, names[i], NULL) != KILN_OK) {
            printf("skip %s: %s\n", names[i], kiln_last_error()->message);
            continue;
        }
        test(names[i], KILN_F32);
        test(names[i], KILN_F64);
        kiln_device_close(device);
    }
}

static void entries_are_looked_at_where_they_lie(void **state) {
    (void)state;
    on_each_device(sums_and_transposed);
}

static void entries_are_centred_where_they_lie(void **state) {
    (void)state;
    on_each_device(centred);
}

static void errors_name_an_entry(void **state) {
    (void)state;
    on_each_device(named);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_looked_at_where_they_lie),
        cmocka_unit_test(entries_are_centred_where_they_lie),
        cmocka_unit_test(errors_name_an_entry),
        cmocka_unit_test(runs_leave_entries_where_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
