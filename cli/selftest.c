/* Small known answers from a device, one operation of each kind of kernel, against the same sums in double:
 *
 *   product   w = alpha X^T (v .* (X y)) + beta z       sums     X^T v, and the columns' norms
 *   multiply  X y                                        gram     X^T diag(v) X
 *   rows      a_i = sum_j x_ij y_j / (sum_j y_j^2 + 1) over X's entries, a least-squares problem for each row (Cholesky)
 *
 * Each element is a sum of products with sums in them: m + n roundings at most follow one another, and a few more, so that
 * |got - want| <= (m + n + 8) eps sum |terms|. A wrong kernel misses that by many orders of magnitude. */
#include "selftest.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

enum {
    ROWS = 301,
    COLS = 67,
    PICKED = 3
}; /* every third element of X is not zero; 301 and 67 are odd sizes */
enum { ANSWERS = COLS * COLS };

static const double alpha = 1.25, beta = -0.5;

struct problem {
    double X[ROWS][COLS], v[ROWS], y[COLS], z[COLS];
    double want[ANSWERS], terms[ANSWERS];
    int answers;
};

struct operands {
    kiln_matrix *X, *v, *y, *z, *w; /* w is the result's place, answers x 1 or for gram n x n */
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

static void begin_answers(struct problem *p, int answers) {
    p->answers = answers;
    for (int e = 0; e < answers; e++) p->want[e] = p->terms[e] = 0;
}

static void add_term(struct problem *p, int e, double term, double size) {
    p->want[e] += term;
    p->terms[e] += size;
}

static void expect_chain(struct problem *p) {
    begin_answers(p, COLS);
    for (int j = 0; j < COLS; j++) add_term(p, j, beta * p->z[j], fabs(beta * p->z[j]));
    for (int i = 0; i < ROWS; i++) {
        double product = 0, size = 0;
        for (int j = 0; j < COLS; j++) {
            product += p->X[i][j] * p->y[j];
            size += fabs(p->X[i][j] * p->y[j]);
        }
        for (int j = 0; j < COLS; j++) {
            const double factor = alpha * p->X[i][j] * p->v[i];
            add_term(p, j, factor * product, fabs(factor) * size);
        }
    }
}

static void expect_sums(struct problem *p) {
    begin_answers(p, COLS);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) add_term(p, j, p->X[i][j] * p->v[i], fabs(p->X[i][j] * p->v[i]));
}

static void expect_norms(struct problem *p) {
    begin_answers(p, COLS);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) add_term(p, j, p->X[i][j] * p->X[i][j], 0);
    for (int j = 0; j < COLS; j++) p->want[j] = p->terms[j] = sqrt(p->want[j]);
}

static void expect_multiply(struct problem *p) {
    begin_answers(p, ROWS);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) add_term(p, i, p->X[i][j] * p->y[j], fabs(p->X[i][j] * p->y[j]));
}

static void expect_gram(struct problem *p) {
    begin_answers(p, COLS * COLS);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            for (int c = 0; c < COLS && p->X[i][j] != 0; c++) {
                const double term = p->X[i][j] * p->v[i] * p->X[i][c];
                add_term(p, j * COLS + c, term, fabs(term));
            }
}

static void expect_rows(struct problem *p) {
    expect_multiply(p);
    for (int i = 0; i < ROWS; i++) {
        double curvature = 1;
        for (int j = 0; j < COLS; j++) curvature += p->X[i][j] != 0 ? p->y[j] * p->y[j] : 0;
        p->want[i] /= curvature;
        p->terms[i] /= curvature;
    }
}

static kiln_status run_chain(double *got, const struct operands *o) {
    (void)got;
    return kiln_mmchain(o->w, alpha, o->X, o->v, o->y, beta, o->z);
}

static kiln_status run_sums(double *got, const struct operands *o) {
    return kiln_dot(got, o->X, o->v);
}

static kiln_status run_norms(double *got, const struct operands *o) {
    return kiln_norm(got, o->X, KILN_NORM_2);
}

static kiln_status run_multiply(double *got, const struct operands *o) {
    (void)got;
    return kiln_multiply(o->w, 1, KILN_PLAIN, o->X, o->y, 0, NULL);
}

static kiln_status run_gram(double *got, const struct operands *o) {
    (void)got;
    return kiln_gram(o->w, NULL, o->X, o->v, NULL);
}

static kiln_status run_rows(double *got, const struct operands *o) {
    (void)got;
    const kiln_factor_rows rows = {.R = o->X, .B = o->y, .l2 = 1, .solver = KILN_FACTOR_CHOLESKY};
    return kiln_factor_solve(o->w, &rows);
}

/* What is asked: the answers in double, and the call, which fills w, or where it has none, `got`. */
static const struct kind {
    const char *operation, *says;
    void (*expect)(struct problem *);
    kiln_status (*run)(double *got, const struct operands *);
    bool dense, sparse, into_w;
} kinds[] = {{"mmchain", "product", expect_chain, run_chain, true, true, true},
             {"multiply", "multiply", expect_multiply, run_multiply, true, true, true},
             {"dot", "sums", expect_sums, run_sums, true, false, false},
             {"norm", "norms", expect_norms, run_norms, true, false, false},
             {"gram", "gram", expect_gram, run_gram, true, false, true},
             {"factor_solve", "rows", expect_rows, run_rows, false, true, true}};
_Static_assert(SELFTESTS == 2 * (2 + 2 + 4), "each type: two kinds in both formats, and the other four");

/* The kind and the format that have this number, sparse first, types in turn. */
static const struct kind *find(struct selftest *test, int number) {
    const struct kind *kind = kinds;
    int behind = number / 2;
    for (; behind >= kind->dense + kind->sparse; kind++) behind -= kind->dense + kind->sparse;
    *test = (struct selftest){.operation = kind->operation,
                              .says = kind->says,
                              .type = number % 2 ? KILN_F64 : KILN_F32,
                              .format = kind->sparse && behind == 0 ? KILN_CSR : KILN_DENSE};
    return kind;
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
    for (int e = 0; e < p->answers; e++) {
        if (got[e] == p->want[e]) continue; /* also a sum without terms */
        const double error = fabs(got[e] - p->want[e]) / p->terms[e];
        if (!(error <= test->error)) test->error = error; /* NaN counts as an error */
    }
}

static kiln_status fetch(double *got, const struct problem *p, const struct operands *o, kiln_type type) {
    static float singles[ANSWERS];
    const kiln_status status = kiln_matrix_get(type == KILN_F64 ? (void *)got : (void *)singles, o->w);
    for (int e = 0; status == KILN_OK && type == KILN_F32 && e < p->answers; e++) got[e] = singles[e];
    return status;
}

static kiln_status make(struct operands *o, kiln_device *device, const struct selftest *test,
                        const struct problem *p) {
    kiln_status status = test->format == KILN_CSR
                             ? make_sparse(&o->X, device, test->type, p)
                             : make_dense(&o->X, device, test->type, ROWS, COLS, p->X[0]);
    const bool square = p->answers == COLS * COLS;
    if (status == KILN_OK) status = make_dense(&o->v, device, test->type, ROWS, 1, p->v);
    if (status == KILN_OK) status = make_dense(&o->y, device, test->type, COLS, 1, p->y);
    if (status == KILN_OK) status = make_dense(&o->z, device, test->type, COLS, 1, p->z);
    if (status == KILN_OK)
        status =
            kiln_matrix_dense(&o->w, device, test->type, square ? COLS : p->answers, square ? COLS : 1, NULL);
    return status;
}

struct selftest selftest_run(kiln_device *device, int number) {
    static struct problem p;
    static double got[ANSWERS];
    struct selftest test;
    struct operands o = {0};
    const struct kind *kind = find(&test, number);
    test.allowed = (ROWS + COLS + 8) * (test.type == KILN_F32 ? (double)FLT_EPSILON : DBL_EPSILON);
    fill(&p);
    kind->expect(&p);
    test.status = make(&o, device, &test, &p);
    if (test.status == KILN_OK) test.status = kind->run(got, &o);
    if (test.status == KILN_OK && kind->into_w) test.status = fetch(got, &p, &o, test.type);
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
