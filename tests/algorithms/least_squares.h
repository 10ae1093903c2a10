/* This header has what the tests of linear regression share: random problems, a dense reference in long
 * double, and runs of kiln_linreg on host arrays. The reference minimises the same objective by Householder
 * QR of the stacked system
 *
 *   [ sqrt(s) (X 1) ]     [ sqrt(s) y ]
 *   [ sqrt(l2) D  0 ] w = [     0     ]      D = diag(sigma_j) if standardised, else 1
 *
 * so it neither forms normal equations nor centres. */
#ifndef LEAST_SQUARES_H
#define LEAST_SQUARES_H

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

struct problem {
    int m, n, k;
    double *X, *y, *weights; /* row-major; weights may be NULL */
};

struct solution {
    int n, k;
    double *W, *b; /* b NULL without an intercept */
};

static inline double random_uniform(uint64_t *state) { /* xorshift64* */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 2685821657736338717u) >> 11) / 9007199254740992.0;
}

static inline double random_normal(uint64_t *state) {
    return sqrt(-2 * log(1 - random_uniform(state))) * cos(6.283185307179586 * random_uniform(state));
}

static inline double *new_doubles(int64_t count) {
    double *values = calloc((size_t)(count > 0 ? count : 1), sizeof *values);
    assert_non_null(values);
    return values;
}

/* X normal with the given share of nonzeros, y = X W + 3 + noise; all rounded to f32 so that both types see
 * the same. */
static inline struct problem problem_new(int m, int n, int k, double density, bool weighted, uint64_t seed) {
    struct problem p = {
        .m = m, .n = n, .k = k, .X = new_doubles((int64_t)m * n), .y = new_doubles((int64_t)m * k)};
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    double *W = new_doubles((int64_t)n * k);
    for (int i = 0; i < n * k; i++) W[i] = random_normal(&state);
    for (int i = 0; i < m * n; i++)
        if (density >= 1 || random_uniform(&state) < density) p.X[i] = (float)(random_normal(&state) + 0.5);
    if (weighted) p.weights = new_doubles(m);
    for (int i = 0; weighted && i < m; i++)
        p.weights[i] = (float)(i % 7 == 0 ? 0 : 2 * random_uniform(&state));
    for (int i = 0; i < m; i++)
        for (int c = 0; c < k; c++) {
            double sum = 3 + random_normal(&state);
            for (int j = 0; j < n; j++) sum += p.X[i * n + j] * W[j * k + c];
            p.y[i * k + c] = (float)sum;
        }
    free(W);
    return p;
}

static inline void problem_free(struct problem *p) {
    free(p->X);
    free(p->y);
    free(p->weights);
}

static inline void solution_free(struct solution *s) {
    free(s->W);
    free(s->b);
}

/* Solves min ||A x - B|| in place: A rows x cols, B rows x k, rows >= cols, full rank; x into the top of B.
 */
static inline void householder(long double *A, long double *B, int rows, int cols, int k) {
    for (int j = 0; j < cols; j++) {
        long double norm = 0;
        for (int i = j; i < rows; i++) norm += A[i * cols + j] * A[i * cols + j];
        norm = sqrtl(norm);
        if (A[j * cols + j] > 0) norm = -norm;
        const long double pivot = A[j * cols + j] - norm, scale = 1 / (norm * pivot);
        for (int c = j + 1; c < cols + k; c++) {
            long double *column = c < cols ? A + c : B + c - cols, sum;
            const int stride = c < cols ? cols : k;
            sum = pivot * column[j * stride];
            for (int i = j + 1; i < rows; i++) sum += A[i * cols + j] * column[i * stride];
            sum *= scale;
            column[j * stride] += sum * pivot;
            for (int i = j + 1; i < rows; i++) column[i * stride] += sum * A[i * cols + j];
        }
        A[j * cols + j] = norm;
    }
    for (int c = 0; c < k; c++)
        for (int j = cols; j-- > 0;) {
            for (int l = j + 1; l < cols; l++) B[j * k + c] -= A[j * cols + l] * B[l * k + c];
            B[j * k + c] /= A[j * cols + j];
        }
}

/* The weighted variance of column j about its mean. */
static inline long double column_variance(const struct problem *p, int j) {
    long double total = 0, mean = 0, variance = 0;
    for (int i = 0; i < p->m; i++) {
        const double s = p->weights ? p->weights[i] : 1;
        total += s;
        mean += s * p->X[i * p->n + j];
    }
    mean /= total;
    for (int i = 0; i < p->m; i++) {
        const long double d = p->X[i * p->n + j] - mean;
        variance += (p->weights ? p->weights[i] : 1) * d * d;
    }
    return variance / total;
}

static inline struct solution reference(const struct problem *p, const kiln_linreg_options *options) {
    const int n = p->n, k = p->k, cols = n + !options->no_intercept;
    const int rows = p->m + (options->l2 > 0 ? n : 0);
    long double *A = calloc((size_t)rows * (size_t)cols, sizeof *A),
                *B = calloc((size_t)rows * (size_t)k, sizeof *B);
    assert_true(A && B && rows >= cols);
    for (int i = 0; i < p->m; i++) {
        const long double root = p->weights ? sqrtl(p->weights[i]) : 1;
        for (int j = 0; j < n; j++) A[i * cols + j] = root * p->X[i * n + j];
        if (cols > n) A[i * cols + n] = root;
        for (int c = 0; c < k; c++) B[i * k + c] = root * p->y[i * k + c];
    }
    for (int j = 0; options->l2 > 0 && j < n; j++)
        A[(p->m + j) * cols + j] = sqrtl(options->l2 * (options->standardize ? column_variance(p, j) : 1));
    householder(A, B, rows, cols, k);
    struct solution s = {
        .n = n, .k = k, .W = new_doubles((int64_t)n * k), .b = cols > n ? new_doubles(k) : NULL};
    for (int e = 0; e < n * k; e++) s.W[e] = (double)B[e];
    for (int c = 0; s.b && c < k; c++) s.b[c] = (double)B[n * k + c];
    free(A);
    free(B);
    return s;
}

/* ----------------------------------------------------------------------------------------------- kiln */

#define assert_ok(call)                                                                                      \
    do {                                                                                                     \
        kiln_status status_ = (call);                                                                        \
        if (status_ != KILN_OK) fail_msg("%s: %s", kiln_status_name(status_), kiln_last_error()->message);   \
    } while (0)

static inline void *to_type(const double *values, int64_t count, kiln_type type) {
    void *made = malloc((size_t)(count ? count : 1) * sizeof(double));
    assert_non_null(made);
    for (int64_t i = 0; i < count; i++) {
        if (type == KILN_F32)
            ((float *)made)[i] = (float)values[i];
        else
            ((double *)made)[i] = values[i];
    }
    return made;
}

static inline kiln_matrix *dense(kiln_device *device, kiln_type type, int64_t rows, int64_t cols,
                                 const double *values) {
    kiln_matrix *A = NULL;
    void *made = to_type(values, rows * cols, type);
    assert_ok(kiln_matrix_dense(&A, device, type, rows, cols, made));
    free(made);
    return A;
}

static inline kiln_matrix *csr(kiln_device *device, kiln_type type, int64_t rows, int64_t cols,
                               const double *values) {
    int64_t *start = calloc((size_t)rows + 1, sizeof *start), nnz = 0;
    int32_t *col = calloc((size_t)(rows * cols) + 1, sizeof *col);
    double *stored = new_doubles(rows * cols);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++)
            if (values[i * cols + j] != 0) {
                col[nnz] = (int32_t)j;
                stored[nnz++] = values[i * cols + j];
            }
        start[i + 1] = nnz;
    }
    kiln_matrix *A = NULL;
    void *made = to_type(stored, nnz, type);
    assert_ok(kiln_matrix_csr(&A, device, type, rows, cols, start, col, made));
    free(made);
    free(stored);
    free(start);
    free(col);
    return A;
}

static inline double *values_of(const kiln_matrix *A) {
    const int64_t count = kiln_matrix_rows(A) * kiln_matrix_cols(A);
    double *values = new_doubles(count);
    float *narrow = malloc((size_t)(count + 1) * sizeof *narrow);
    assert_non_null(narrow);
    if (kiln_matrix_type(A) == KILN_F64) {
        assert_ok(kiln_matrix_get(values, A));
    } else {
        assert_ok(kiln_matrix_get(narrow, A));
        for (int64_t i = 0; i < count; i++) values[i] = narrow[i];
    }
    free(narrow);
    return values;
}

/* Tests of refusals do this to one operand of a call that would succeed. */
static inline void replace(kiln_matrix **A, kiln_matrix *with) {
    kiln_matrix_free(*A);
    *A = with;
}

static inline void spoil(kiln_matrix *A, int at, double value) { /* of f64 */
    double *values = values_of(A);
    values[at] = value;
    assert_ok(kiln_matrix_set(A, values));
    free(values);
}

struct run {
    kiln_device *device;
    kiln_type type;
    kiln_format format;
    const struct solution *start; /* warm start, or NULL */
};

/* Status of kiln_linreg on the problem; on success the solution and the report. */
static inline kiln_status try_solve(struct solution *s, kiln_report *report, const struct run *run,
                                    const struct problem *p, const kiln_linreg_options *options) {
    kiln_linreg_options o = *options;
    double *none = new_doubles((int64_t)p->n * p->k + p->k);
    kiln_matrix *X = (run->format == KILN_CSR ? csr : dense)(run->device, run->type, p->m, p->n, p->X);
    kiln_matrix *y = dense(run->device, run->type, p->m, p->k, p->y);
    kiln_matrix *W = dense(run->device, run->type, p->n, p->k, run->start ? run->start->W : none);
    kiln_matrix *b = o.no_intercept ? NULL : dense(run->device, run->type, 1, p->k, none);
    kiln_matrix *weights = p->weights ? dense(run->device, run->type, p->m, 1, p->weights) : NULL;
    o.weights = weights;
    o.warm_start = run->start != NULL;
    kiln_status status = kiln_linreg(W, b, X, y, &o, report);
    if (status == KILN_OK) *s = (struct solution){p->n, p->k, values_of(W), b ? values_of(b) : NULL};
    kiln_matrix *const all[] = {X, y, W, b, weights};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    free(none);
    return status;
}

static inline struct solution solve(kiln_report *report, const struct run *run, const struct problem *p,
                                    const kiln_linreg_options *options) {
    struct solution s = {0};
    *report = (kiln_report){0};
    assert_ok(try_solve(&s, report, run, p, options));
    return s;
}

/* The largest difference of coefficients and intercepts, relative to the largest of want. */
static inline double difference(const struct solution *got, const struct solution *want) {
    double largest = 0, worst = 0;
    for (int e = 0; e < want->n * want->k + (want->b ? want->k : 0); e++) {
        const bool in_b = e >= want->n * want->k;
        const double g = in_b ? got->b[e - want->n * want->k] : got->W[e];
        const double w = in_b ? want->b[e - want->n * want->k] : want->W[e];
        largest = fmax(largest, fabs(w));
        if (!(fabs(g - w) <= worst)) worst = fabs(g - w);
    }
    return worst / largest;
}

#endif
