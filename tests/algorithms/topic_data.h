/* Documents for tests of topic models: counts of words drawn from a few topics, as plain arrays. */
#ifndef TOPIC_DATA_H
#define TOPIC_DATA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"

enum { M = 50, N = 37, K = 4 };

static kiln_device *device;

static inline int open_device(void **state) {
    (void)state;
    return kiln_device_open(&device, "cpu", NULL);
}

static inline int close_device(void **state) {
    (void)state;
    kiln_device_close(device);
    return 0;
}

static inline double uniform(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

/* Word i belongs to topic i % 3, document d mostly to topic d % 3. The last document and the last word are
 * empty. */
struct counts {
    double x[M][N];
};

static inline void fill(struct counts *counts, uint64_t seed) {
    memset(counts, 0, sizeof *counts);
    for (int d = 0; d < M - 1; d++)
        for (int i = 0; i < N - 1; i++)
            if (uniform(&seed) < (i % 3 == d % 3 ? 0.7 : 0.1))
                counts->x[d][i] = floor(1 + 4 * uniform(&seed));
}

/* The matrix has the counts, and a few stored zeros. */
static inline kiln_matrix *matrix_of(const struct counts *counts, kiln_type type) {
    int64_t start[M + 1] = {0}, nnz = 0;
    int32_t *col = malloc(M * N * sizeof *col);
    double *value = malloc(M * N * sizeof *value);
    kiln_matrix *wide = NULL, *X = NULL;
    for (int d = 0; d < M; d++) {
        for (int i = 0; i < N; i++) {
            if (counts->x[d][i] == 0 && (d * N + i) % 97) continue;
            col[nnz] = i;
            value[nnz++] = counts->x[d][i];
        }
        start[d + 1] = nnz;
    }
    assert_int_equal(kiln_matrix_csr(&wide, device, KILN_F64, M, N, start, col, value), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&X, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    free(col);
    free(value);
    return X;
}

static inline kiln_matrix *dense_of(kiln_type type, int64_t rows, int64_t cols, const double *values) {
    kiln_matrix *wide = NULL, *A = NULL;
    assert_int_equal(kiln_matrix_dense(&wide, device, KILN_F64, rows, cols, values), KILN_OK);
    assert_int_equal(kiln_matrix_copy(&A, device, type, wide), KILN_OK);
    kiln_matrix_free(wide);
    return A;
}

static inline void get(double *values, const kiln_matrix *A) {
    kiln_matrix *wide = NULL;
    assert_int_equal(kiln_matrix_copy(&wide, device, KILN_F64, A), KILN_OK);
    assert_int_equal(kiln_matrix_get(values, wide), KILN_OK);
    kiln_matrix_free(wide);
}

/* By its definition. theta, phi: unnormalised mixtures M x K and words N x K. */
static inline double perplexity_of(const struct counts *test, const double *theta, const double *phi) {
    double sums[K] = {0}, sum = 0, words = 0;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < K; c++) sums[c] += phi[i * K + c];
    for (int d = 0; d < M; d++)
        for (int i = 0; i < N; i++) {
            double p = 0, total = 0;
            for (int c = 0; c < K; c++) {
                total += theta[d * K + c];
                p += theta[d * K + c] * phi[i * K + c] / sums[c];
            }
            if (test->x[d][i] > 0) sum += test->x[d][i] * log(fmax(total > 0 ? p / total : 0, 1e-12));
            words += test->x[d][i];
        }
    return exp(-sum / words);
}

static inline void assert_near(double got, double want, double relative) {
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("%.17g, but %.17g was expected (to %g)", got, want, relative);
}

#endif
