/* w = alpha X^T (v .* (X y)) + beta z and the columns' dot products X^T v on a device, against the same sums in double.
 *
 * Each element of w is a sum over rows of products with a sum over columns: m + n roundings at most follow
 * one another, so |got - want| <= (m + n + 8) eps sum |terms|. A wrong kernel misses that by many orders of
 * magnitude. The dot products have fewer roundings. */
#include "selftest.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    ROWS = 301,
    COLS = 67,
    PICKED = 3
}; /* every third element of X is not zero; 301 and 67 are odd sizes */

static const double alpha = 1.25, beta = -0.5;

struct problem {
    double X[ROWS][COLS], v[ROWS], y[COLS], z[COLS], want[COLS], terms[COLS];
};

struct operands {
    kiln_matrix *X, *v, *y, *z, *w;
};

/* Multiples of 1/256 in [-1, 1): exact in f32 too. */
static double next_value(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 23) / 256 - 1;
}

static void fill(struct problem *p) {
    uint32_t state = 20151;
    for (int i = 0; i < ROWS; i++) {
        p->v[i] = next_value(&state);
        for (int j = 0; j < COLS; j++) p->X[i][j] = (i + j) % PICKED == 0 ? next_value(&state) : 0;
    }
    for (int j = 0; j < COLS; j++) {
        p->y[j] = next_value(&state);
        p->z[j] = next_value(&state);
    }
}

static void expect_product(struct problem *p) {
    for (int j = 0; j < COLS; j++) {
        p->want[j] = beta * p->z[j];
        p->terms[j] = fabs(p->want[j]);
    }
    for (int i = 0; i < ROWS; i++) {
        double product = 0, size = 0;
        for (int j = 0; j < COLS; j++) {
            product += p->X[i][j] * p->y[j];
            size += fabs(p->X[i][j] * p->y[j]);
        }
        for (int j = 0; j < COLS; j++) {
            p->want[j] += alpha * p->X[i][j] * p->v[i] * product;
            p->terms[j] += alpha * fabs(p->X[i][j] * p->v[i]) * size;
        }
    }
}

static void expect_sums(struct problem *p) {
    for (int j = 0; j < COLS; j++) {
        p->want[j] = p->terms[j] = 0;
        for (int i = 0; i < ROWS; i++) {
            p->want[j] += p->X[i][j] * p->v[i];
            p->terms[j] += fabs(p->X[i][j] * p->v[i]);
        }
    }
}

/* Values as the device's type, in a buffer that is large enough for either. */
static const void *as_type(void *buffer, const double *values, int64_t count, kiln_type type) {
    if (type == KILN_F64) return values;
    for (int64_t i = 0; i < count; i++) ((float *)buffer)[i] = (float)values[i];
    return buffer;
}

static kiln_status make_sparse(kiln_matrix **X, kiln_device *device, kiln_type type,
                               const struct problem *p) {
    static double values[ROWS * COLS];
    static float singles[ROWS * COLS];
    static int32_t col[ROWS * COLS];
    int64_t row_start[ROWS + 1] = {0}, nnz = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++) {
            if (p->X[i][j] == 0) continue;
            values[nnz] = p->X[i][j];
            col[nnz++] = j;
        }
        row_start[i + 1] = nnz;
    }
    return kiln_matrix_csr(X, device, type, ROWS, COLS, row_start, col, as_type(singles, values, nnz, type));
}

static kiln_status make_dense(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t rows,
                              int64_t cols, const double *values) {
    static float singles[ROWS * COLS];
    return kiln_matrix_dense(A, device, type, rows, cols, as_type(singles, values, rows * cols, type));
}

static void compare(struct selftest *test, const struct problem *p, const double *got) {
    test->error = 0;
    for (int j = 0; j < COLS; j++) {
        double error = fabs(got[j] - p->want[j]) / p->terms[j];
        if (!(error <= test->error)) test->error = error; /* NaN counts as an error */
    }
}

static kiln_status product(double *got, const struct operands *o, kiln_type type) {
    float singles[COLS];
    kiln_status status = kiln_mmchain(o->w, alpha, o->X, o->v, o->y, beta, o->z);
    if (status == KILN_OK) status = kiln_matrix_get(type == KILN_F64 ? (void *)got : (void *)singles, o->w);
    for (int j = 0; status == KILN_OK && type == KILN_F32 && j < COLS; j++) got[j] = singles[j];
    return status;
}

static kiln_status make(struct operands *o, kiln_device *device, const struct selftest *test,
                        const struct problem *p) {
    kiln_status status = test->format == KILN_CSR
                             ? make_sparse(&o->X, device, test->type, p)
                             : make_dense(&o->X, device, test->type, ROWS, COLS, p->X[0]);
    if (status == KILN_OK) status = make_dense(&o->v, device, test->type, ROWS, 1, p->v);
    if (status == KILN_OK) status = make_dense(&o->y, device, test->type, COLS, 1, p->y);
    if (status == KILN_OK) status = make_dense(&o->z, device, test->type, COLS, 1, p->z);
    if (status == KILN_OK) status = kiln_matrix_dense(&o->w, device, test->type, COLS, 1, NULL);
    return status;
}

struct selftest selftest_run(kiln_device *device, int number) {
    static const struct selftest tests[SELFTESTS] = {
        {.operation = "mmchain", .type = KILN_F32, .format = KILN_CSR},
        {.operation = "mmchain", .type = KILN_F32, .format = KILN_DENSE},
        {.operation = "mmchain", .type = KILN_F64, .format = KILN_CSR},
        {.operation = "mmchain", .type = KILN_F64, .format = KILN_DENSE},
        {.operation = "dot", .type = KILN_F32, .format = KILN_DENSE},
        {.operation = "dot", .type = KILN_F64, .format = KILN_DENSE}};
    static struct problem p;
    struct selftest test = tests[number];
    const bool sums = strcmp(test.operation, "dot") == 0;
    struct operands o = {0};
    double got[COLS];
    test.allowed = (ROWS + COLS + 8) * (test.type == KILN_F32 ? (double)FLT_EPSILON : DBL_EPSILON);
    fill(&p);
    if (sums)
        expect_sums(&p);
    else
        expect_product(&p);
    test.status = make(&o, device, &test, &p);
    if (test.status == KILN_OK) test.status = sums ? kiln_dot(got, o.X, o.v) : product(got, &o, test.type);
    if (test.status == KILN_OK) compare(&test, &p, got);
    kiln_matrix_free(o.w);
    kiln_matrix_free(o.z);
    kiln_matrix_free(o.y);
    kiln_matrix_free(o.v);
    kiln_matrix_free(o.X);
    return test;
}

bool selftest_passed(const struct selftest *test) {
    return test->status == KILN_OK && test->error <= test->allowed;
}
