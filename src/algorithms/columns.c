/* Column means and spreads without touching X:
 *
 *   mean_j = (X^T s)_j / S,   variance_j = (X .* X)^T s)_j / S - mean_j^2,   S = sum of the weights s.
 *
 * The difference says nothing about a column whose spread is small beside its mean (time stamps, years): it
 * is rounding. Such columns are probed: for random z of mean 0 and variance 1, made orthogonal to s, E[(X^T
 * z)_j^2] is the weighted sum of squares about the mean, and the mean itself cancels row by row. A few probes
 * tell a constant column from one that merely looks it, and give the spread well enough for a preconditioner.
 */
#include "algorithms/algorithm.h"

enum { PROBES = 8, PROBE_SEED = 20150207 };

void ki_columns_free(struct ki_columns *columns) {
    ki_free(columns->square);
    ki_free(columns->mean);
    ki_free(columns->variance);
    *columns = (struct ki_columns){0};
}

kiln_status ki_vector_get(double *values, const kiln_matrix *A) {
    const int64_t count = kiln_matrix_nnz(A);
    kiln_status status = kiln_matrix_get(values, A);
    if (status != KILN_OK || kiln_matrix_type(A) == KILN_F64) return status;
    const float *narrow = (const float *)values; /* widened in place, from the end */
    for (int64_t i = count; i-- > 0;) {
        float value;
        memcpy(&value, narrow + i, sizeof value);
        values[i] = value;
    }
    return KILN_OK;
}

kiln_status ki_vector_new(kiln_matrix **A, kiln_device *device, kiln_type type, int64_t count,
                          const double *values) {
    if (type == KILN_F64) return kiln_matrix_dense(A, device, type, count, 1, values);
    int64_t bytes;
    float *narrow = ki_mul(count, sizeof *narrow, &bytes) ? ki_alloc((size_t)bytes) : NULL;
    if (!narrow) return ki_fail_nomem((size_t)count * sizeof *narrow, "a vector");
    for (int64_t i = 0; i < count; i++) narrow[i] = (float)values[i];
    kiln_status status = kiln_matrix_dense(A, device, type, count, 1, narrow);
    ki_free(narrow);
    return status;
}

/* The relative error of a sum of m terms added one after the other: random, it is about a fifth of this. */
static double rounding(const kiln_matrix *X) {
    return ki_epsilon(kiln_matrix_type(X)) * sqrt((double)ki_max(kiln_matrix_rows(X), 1));
}

/* Z, m x PROBES: uniform numbers of variance 1/12 times sqrt(s), made orthogonal to s. Uniform, as these have
 * random low bits: with numbers of few bits all rows of a constant column round the same way, and it looks
 * like one that varies. sum_c: what rounding left of 1^T z_c. */
static kiln_status draw(kiln_matrix *Z, double *sum, const kiln_matrix *weights, double weight) {
    kiln_status status;
    kiln_matrix *vector = NULL;
    double shift[PROBES], one[PROBES], minus_half[PROBES];
    TRY(kiln_matrix_dense(&vector, kiln_matrix_device(Z), kiln_matrix_type(Z), kiln_matrix_rows(Z), 1, NULL));
    TRY(kiln_fill_random(Z, KILN_UNIFORM, PROBE_SEED, 0));
    for (int c = 0; c < PROBES; c++) one[c] = 1, minus_half[c] = -0.5;
    TRY(kiln_fill(vector, 1));
    TRY(kiln_combine(Z, one, Z, minus_half, vector));
    TRY(kiln_map(vector, KILN_MAP_SQRT, weights));
    TRY(kiln_times(Z, Z, vector));
    TRY(kiln_fill(vector, 1));
    TRY(kiln_dot(sum, Z, vector));
    for (int c = 0; c < PROBES; c++) shift[c] = -sum[c] / weight;
    TRY(kiln_combine(Z, one, Z, shift, weights));
    TRY(kiln_dot(sum, Z, vector));
done:
    kiln_matrix_free(vector);
    return status;
}

/* spread_j = an estimate of column j's weighted variance from PROBES random directions. */
static kiln_status probe(double *spread, const kiln_matrix *X, const kiln_matrix *weights,
                         const struct ki_columns *columns) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t rows = kiln_matrix_rows(X), cols = kiln_matrix_cols(X);
    kiln_matrix *Z = NULL, *P = NULL;
    double *projections = NULL, sum[PROBES];
    TRY(kiln_matrix_dense(&Z, device, type, rows, PROBES, NULL));
    TRY(kiln_matrix_dense(&P, device, type, cols, PROBES, NULL));
    projections = ki_alloc((size_t)cols * PROBES * sizeof *projections);
    if (!projections) {
        status = ki_fail_nomem((size_t)cols * PROBES * sizeof *projections, "column probes");
        goto done;
    }
    TRY(draw(Z, sum, weights, columns->weight));
    TRY(kiln_multiply(P, 1, KILN_TRANSPOSED, X, Z, 0, NULL));
    TRY(ki_vector_get(projections, P));
    for (int64_t j = 0; j < cols; j++) {
        spread[j] = 0;
        for (int c = 0; c < PROBES; c++) {
            const double e = projections[j * PROBES + c] - columns->mean[j] * sum[c];
            spread[j] += 12 * e * e / (PROBES * columns->weight);
        }
    }
done:
    ki_free(projections);
    kiln_matrix_free(Z);
    kiln_matrix_free(P);
    return status;
}

/* Variances that are nothing but rounding become what the probes say. Sums of a constant may round the same
 * way each time, so that a constant column can look like one that varies up to the larger bound: below it the
 * probes say whether it is constant, but the variance stands if not. */
static kiln_status settle(struct ki_columns *columns, const kiln_matrix *X, const kiln_matrix *weights) {
    const int64_t cols = kiln_matrix_cols(X);
    const double noise = rounding(X), rounded = 16 * noise;
    const double doubted = rounded + ki_epsilon(kiln_matrix_type(X)) * (double)kiln_matrix_rows(X);
    bool doubtful = false;
    for (int64_t j = 0; j < cols; j++) {
        const double square = columns->square[j] / columns->weight;
        columns->variance[j] = fmax(square - columns->mean[j] * columns->mean[j], 0);
        doubtful = doubtful || (square > 0 && columns->variance[j] <= doubted * square);
    }
    if (!doubtful) return KILN_OK;
    kiln_status status = KILN_OK;
    double *spread = ki_alloc((size_t)cols * sizeof *spread);
    if (!spread) return ki_fail_nomem((size_t)cols * sizeof *spread, "column spreads");
    TRY(probe(spread, X, weights, columns));
    for (int64_t j = 0; j < cols; j++) {
        const double square = columns->square[j] / columns->weight;
        if (columns->variance[j] > doubted * square) continue;
        if (sqrt(spread[j]) <= noise * fabs(columns->mean[j]))
            columns->variance[j] = 0;
        else if (columns->variance[j] <= rounded * square)
            columns->variance[j] = spread[j];
    }
done:
    ki_free(spread);
    return status;
}

kiln_status ki_columns_measure(struct ki_columns *columns, const kiln_matrix *X, const kiln_matrix *weights,
                               double weight) {
    kiln_status status = KILN_OK;
    const int64_t cols = kiln_matrix_cols(X);
    const size_t bytes = (size_t)cols * sizeof(double);
    struct ki_columns measured = {.weight = weight};
    kiln_matrix *sum = NULL;
    measured.square = ki_alloc(bytes);
    measured.mean = ki_alloc(bytes);
    measured.variance = ki_alloc(bytes);
    if (!measured.square || !measured.mean || !measured.variance) {
        status = ki_fail_nomem(bytes, "column means");
        goto done;
    }
    TRY(kiln_matrix_dense(&sum, kiln_matrix_device(X), kiln_matrix_type(X), cols, 1, NULL));
    TRY(kiln_gram_diagonal(sum, X, weights));
    TRY(ki_vector_get(measured.square, sum));
    TRY(kiln_multiply(sum, 1, KILN_TRANSPOSED, X, weights, 0, NULL));
    TRY(ki_vector_get(measured.mean, sum));
    for (int64_t j = 0; j < cols; j++) {
        measured.mean[j] /= weight;
        if (isfinite(measured.square[j]) && isfinite(measured.mean[j])) continue;
        TRY((ki_fail(KILN_ERR_DATA, "column %lld of X has NaN or infinite values, or its squares overflow %s",
                     (long long)j, kiln_matrix_type(X) == KILN_F32 ? "f32" : "f64"),
             ki_hint("clean or rescale that column (columns count from 0)")));
    }
    TRY(settle(&measured, X, weights));
    *columns = measured;
    measured = (struct ki_columns){0};
done:
    ki_columns_free(&measured);
    kiln_matrix_free(sum);
    return status;
}
