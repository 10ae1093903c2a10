/* Vectors as long as X's rows stay where the rows lie: what members of a group write to rows is used there by
 * what follows, and comes to the first member only when somebody asks for it. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/check.h"
#include "core/each.h"
#include "core/home.h"
#include "kiln/tune.h"

enum { ROWS = 103, COLUMNS = 5, GROUPS = 3 };
static const char *const groups[GROUPS] = {"opencl*2", "opencl*7", "cpu@1,opencl:0.0@2"};

/* A vector or matrix of doubles on a device of either type. */
static kiln_matrix *make(kiln_device *device, kiln_type type, int64_t rows, int64_t cols,
                         const double *values) {
    kiln_matrix *A = NULL;
    float *narrow = malloc((size_t)(rows * cols) * sizeof *narrow);
    assert_non_null(narrow);
    for (int64_t i = 0; values && i < rows * cols; i++) narrow[i] = (float)values[i];
    const void *given = !values ? NULL : type == KILN_F32 ? (const void *)narrow : values;
    assert_int_equal(kiln_matrix_dense(&A, device, type, rows, cols, given), KILN_OK);
    free(narrow);
    return A;
}

static void get(double *to, const kiln_matrix *A) {
    float narrow[ROWS * COLUMNS];
    assert_int_equal(kiln_matrix_get(A->type == KILN_F32 ? (void *)narrow : to, A), KILN_OK);
    for (int64_t i = 0; A->type == KILN_F32 && i < A->nnz; i++) to[i] = (double)narrow[i];
}

static int64_t came_home(const kiln_device *device) {
    kiln_sharing sharing;
    assert_int_equal(kiln_device_sharing(&sharing, device), KILN_OK);
    return sharing.rows_home_bytes;
}

/* Small whole numbers: every sum below is exact in both types. */
static double entry(int i, int j) {
    return (i * 7 + j * 5) % 9 - 4;
}

struct problem {
    kiln_device *device;
    kiln_type type;
    double X[ROWS * COLUMNS], v[ROWS], b[COLUMNS], product[ROWS]; /* product = X b */
    kiln_matrix *A, *V, *B, *y, *w, *g;
};

static void begin(struct problem *p, const char *name, kiln_type type) {
    p->type = type;
    for (int i = 0; i < ROWS; i++) {
        p->product[i] = 0;
        p->v[i] = i % 5 - 2;
        for (int j = 0; j < COLUMNS; j++) {
            p->X[i * COLUMNS + j] = entry(i, j);
            p->b[j] = j - 1;
            p->product[i] += entry(i, j) * (j - 1);
        }
    }
    assert_int_equal(kiln_device_open(&p->device, name, NULL), KILN_OK);
    p->A = make(p->device, type, ROWS, COLUMNS, p->X);
    p->V = make(p->device, type, ROWS, 1, p->v);
    p->B = make(p->device, type, COLUMNS, 1, p->b);
    p->y = make(p->device, type, ROWS, 1, NULL);
    p->w = make(p->device, type, ROWS, 1, NULL);
    p->g = make(p->device, type, COLUMNS, 1, NULL);
    assert_int_equal(kiln_multiply(p->y, 1, KILN_PLAIN, p->A, p->B, 0, NULL), KILN_OK);
    assert_true(ki_is_away(p->y));
}

static void end(struct problem *p) {
    kiln_matrix_free(p->A);
    kiln_matrix_free(p->V);
    kiln_matrix_free(p->B);
    kiln_matrix_free(p->y);
    kiln_matrix_free(p->w);
    kiln_matrix_free(p->g);
    kiln_device_close(p->device);
}

/* Norms, products and maps of rows, and passes over X with them. */
static void operate(struct problem *p) {
    const double two = 2, three = 3, one = 1, minus = -1;
    double norm1 = 0, square = 0, largest = 0, dot = 0, w[ROWS], g[COLUMNS] = {0}, got[ROWS];
    for (int i = 0; i < ROWS; i++) {
        norm1 += fabs(p->product[i]);
        square += p->product[i] * p->product[i];
        largest = fmax(largest, fabs(p->product[i]));
        dot += p->product[i] * p->v[i];
        w[i] = (2 * p->product[i] + 3 * p->v[i]) * p->v[i] - fabs(p->product[i]);
        for (int j = 0; j < COLUMNS; j++) g[j] += entry(i, j) * w[i];
    }
    assert_int_equal(kiln_norm(got, p->y, KILN_NORM_1), KILN_OK);
    assert_true(*got == norm1);
    assert_int_equal(kiln_norm(got, p->y, KILN_NORM_2), KILN_OK);
    assert_true(fabs(*got - sqrt(square)) <= 4 * FLT_EPSILON * sqrt(square));
    assert_int_equal(kiln_norm(got, p->y, KILN_NORM_MAX), KILN_OK);
    assert_true(*got == largest);
    assert_int_equal(kiln_dot(got, p->y, p->V), KILN_OK);
    assert_true(*got == dot);
    assert_int_equal(kiln_dot(got, p->V, p->y), KILN_OK);
    assert_true(*got == dot);
    assert_int_equal(kiln_combine(p->w, &two, p->y, &three, p->V), KILN_OK);
    assert_int_equal(kiln_times(p->w, p->w, p->V), KILN_OK);
    assert_int_equal(kiln_map(p->y, KILN_MAP_ABS, p->y), KILN_OK);
    assert_int_equal(kiln_combine(p->w, &one, p->w, &minus, p->y), KILN_OK);
    assert_int_equal(kiln_multiply(p->g, 1, KILN_TRANSPOSED, p->A, p->w, 0, NULL), KILN_OK);
    get(got, p->g);
    for (int j = 0; j < COLUMNS; j++) assert_true(got[j] == g[j]);
    assert_int_equal(kiln_fill(p->y, 3), KILN_OK);
    assert_int_equal(kiln_norm(got, p->y, KILN_NORM_1), KILN_OK);
    assert_true(*got == 3 * ROWS);
    assert_int_equal(came_home(p->device), 0);
    get(got, p->w);
    for (int i = 0; i < ROWS; i++) assert_true(got[i] == w[i]);
    const int64_t home = came_home(p->device), element = p->type == KILN_F32 ? 4 : 8;
    assert_true(home > 0 && home < ROWS * element && home % element == 0);
    assert_false(ki_is_away(p->w));
    get(got, p->w);
    assert_true(came_home(p->device) == home);
}

static void each_group(void (*test)(struct problem *)) {
    static const kiln_type types[] = {KILN_F32, KILN_F64};
    kiln_device *device = NULL;
    if (kiln_device_open(&device, "opencl", NULL) != KILN_OK) skip();
    kiln_device_close(device);
    for (int n = 0; n < GROUPS; n++)
        for (int t = 0; t < 2; t++) {
            struct problem p;
            begin(&p, groups[n], types[t]);
            test(&p);
            end(&p);
        }
}

static void test_operations(void **state) {
    (void)state;
    each_group(operate);
}

/* Calls that have not learnt that rows lie elsewhere find them at home: a few elements, rows by number, all
 * of them beside another X, an X that is cut elsewhere, what is written anew as a whole. */
static void ask(struct problem *p) {
    enum { WIDE = 2, FIRST = 17, COUNT = 60 };
    double got[ROWS], wide[WIDE * ROWS], few[WIDE], expected[WIDE] = {0};
    float narrow[COUNT];
    const int64_t numbers[WIDE] = {ROWS - 1, 40};
    for (int i = 0; i < WIDE * ROWS; i++) wide[i] = i % 3;
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < WIDE; c++) expected[c] += p->product[i] * wide[c * ROWS + i];
    assert_int_equal(ki_elements_get(p->type == KILN_F32 ? (void *)narrow : got, p->y, FIRST, COUNT),
                     KILN_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true((p->type == KILN_F32 ? (double)narrow[i] : got[i]) == p->product[FIRST + i]);
    assert_true(ki_is_away(p->y));
    kiln_matrix *W = make(p->device, p->type, WIDE, ROWS, wide), *r = make(p->device, p->type, WIDE, 1, NULL);
    assert_int_equal(kiln_multiply(r, 1, KILN_PLAIN, W, p->y, 0, NULL), KILN_OK);
    assert_false(ki_is_away(p->y));
    get(few, r);
    assert_true(few[0] == expected[0] && few[1] == expected[1]);
    assert_int_equal(kiln_multiply(p->y, 1, KILN_PLAIN, p->A, p->B, 0, NULL), KILN_OK);
    assert_int_equal(kiln_rows(r, p->y, numbers), KILN_OK);
    get(few, r);
    assert_true(few[0] == p->product[ROWS - 1] && few[1] == p->product[40]);
    assert_int_equal(kiln_multiply(p->y, 1, KILN_PLAIN, p->A, p->B, 0, NULL), KILN_OK);
    assert_int_equal(kiln_fill_random(p->y, KILN_UNIFORM, 1, 2), KILN_OK);
    assert_false(ki_is_away(p->y));
    assert_int_equal(kiln_fill_random(p->w, KILN_UNIFORM, 1, 2), KILN_OK);
    double other[ROWS];
    get(got, p->y);
    get(other, p->w);
    assert_memory_equal(got, other, sizeof got);
    kiln_matrix_free(W);
    kiln_matrix_free(r);
}

static void test_asked_for(void **state) {
    (void)state;
    each_group(ask);
}

/* Rows that were written by way of one X, beside a sparse X of as many rows that is cut elsewhere. */
static void cross(struct problem *p) {
    int64_t start[ROWS + 1];
    int32_t col[ROWS * COLUMNS];
    double values[ROWS * COLUMNS], g[COLUMNS] = {0}, got[COLUMNS];
    float narrow[ROWS * COLUMNS];
    kiln_matrix *S = NULL;
    start[0] = 0;
    for (int i = 0; i < ROWS; i++) { /* the first rows are full, the others nearly empty */
        start[i + 1] = start[i];
        for (int j = 0; j < (i < 20 ? COLUMNS : 1); j++) {
            col[start[i + 1]] = j;
            values[start[i + 1]++] = entry(i, j);
            g[j] += entry(i, j) * p->product[i];
        }
    }
    for (int e = 0; e < start[ROWS]; e++) narrow[e] = (float)values[e];
    assert_int_equal(kiln_matrix_csr(&S, p->device, p->type, ROWS, COLUMNS, start, col,
                                     p->type == KILN_F32 ? (const void *)narrow : values),
                     KILN_OK);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(kiln_multiply(p->g, 1, KILN_TRANSPOSED, S, p->y, 0, NULL), KILN_OK);
        get(got, p->g);
        for (int j = 0; j < COLUMNS; j++) assert_true(got[j] == g[j]);
        assert_int_equal(kiln_multiply(p->y, 1, KILN_PLAIN, p->A, p->B, 0, NULL), KILN_OK);
    }
    kiln_matrix_free(S);
}

static void test_other_cut(void **state) {
    (void)state;
    each_group(cross);
}

/* ------------------------------------------------------------------------------------- whole methods */

static double fit_logreg(kiln_device *device, kiln_matrix *A, const double *labels) {
    kiln_matrix *y = make(device, A->type, ROWS, 1, labels), *W = make(device, A->type, COLUMNS, 1, NULL),
                *b = make(device, A->type, 1, 1, NULL);
    kiln_report report = {.size = sizeof report};
    assert_int_equal(kiln_logreg(W, b, A, y,
                                 &(kiln_logreg_options){.size = sizeof(kiln_logreg_options), .l2 = 1},
                                 &report),
                     KILN_OK);
    const double objective = report.objective;
    kiln_report_free(&report);
    kiln_matrix_free(y);
    kiln_matrix_free(W);
    kiln_matrix_free(b);
    return objective;
}

/* The inertia, and the clusters' radii added up. */
static void fit_kmeans(double found[2], kiln_device *device, kiln_matrix *A, const double *start) {
    enum { K = 4, WEIGHT_INERTIA_RADIUS = 3 };
    kiln_matrix *C = make(device, A->type, K, COLUMNS, start),
                *clusters = make(device, A->type, K, WEIGHT_INERTIA_RADIUS, NULL);
    kiln_report report = {.size = sizeof report};
    double told[K * WEIGHT_INERTIA_RADIUS];
    assert_int_equal(kiln_kmeans(C, A,
                                 &(kiln_kmeans_options){.size = sizeof(kiln_kmeans_options),
                                                        .init = KILN_INIT_GIVEN,
                                                        .clusters = clusters},
                                 &report),
                     KILN_OK);
    found[0] = report.objective;
    found[1] = 0;
    get(told, clusters);
    for (int c = 0; c < K; c++) found[1] += told[WEIGHT_INERTIA_RADIUS * c + 2];
    kiln_report_free(&report);
    kiln_matrix_free(C);
    kiln_matrix_free(clusters);
}

enum { FOUND = 3 };

static void fit(double found[FOUND], const char *name, kiln_type type) {
    double X[ROWS * COLUMNS], labels[ROWS];
    kiln_device *device = NULL;
    for (int i = 0; i < ROWS; i++) {
        labels[i] = (entry(i, 0) + entry(i, 1) + (i % 7 - 3)) > 0;
        for (int j = 0; j < COLUMNS; j++) X[i * COLUMNS + j] = entry(i, j) / 4 + (i * i % 11) / 16.0;
    }
    assert_int_equal(kiln_device_open(&device, name, NULL), KILN_OK);
    kiln_matrix *A = make(device, type, ROWS, COLUMNS, X);
    found[0] = fit_logreg(device, A, labels);
    fit_kmeans(found + 1, device, A, X);
    assert_int_equal(came_home(device), 0);
    kiln_matrix_free(A);
    kiln_device_close(device);
}

/* No row vector crosses in a logistic regression, nor in Lloyd's iterations and what is said of clusters. */
static void test_fits(void **state) {
    static const kiln_type types[] = {KILN_F32, KILN_F64};
    double one[FOUND], several[FOUND];
    kiln_device *device = NULL;
    (void)state;
    if (kiln_device_open(&device, "opencl", NULL) != KILN_OK) skip();
    kiln_device_close(device);
    for (int t = 0; t < 2; t++) {
        const double tolerance = types[t] == KILN_F32 ? 1e-4 : 1e-9;
        fit(one, "cpu", types[t]);
        for (int n = 0; n < GROUPS; n++) {
            fit(several, groups[n], types[t]);
            for (int i = 0; i < FOUND; i++) assert_true(fabs(several[i] - one[i]) <= tolerance * one[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_other_cut),
        cmocka_unit_test(test_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
