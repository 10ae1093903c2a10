/* Column means and spreads without touching X:
 *
 *   mean_j = (X^T s)_j / S,   centred_j = (X .* X)^T s)_j - S mean_j^2,   S = sum of the weights s.
 *
 * The difference says nothing about a column whose spread is small beside its mean (time stamps, years): it
 * is rounding. Such columns are probed: for random z of mean 0 and variance 1, made orthogonal to s, E[(X^T
 * z)_j^2] is the weighted sum of squares about the mean, and the mean itself cancels row by row. A few probes
 * tell a constant column from one that merely looks it, and give the spread well enough for a preconditioner.
 */
#include "algorithms/algorithm.h"

enum { PROBES = 8, PROBE_SEED = 20150207 };
/* Of a dense X with rows no wider than this a GPU's work-groups, so many at least, have sums of their own. */
enum { GPU_COLUMNS = 1024, GPU_SHARES = 64, GPU_GROUPS = 4096 };

void ki_moments_free(struct ki_moments *moments) {
    kiln_matrix_free(moments->square);
    kiln_matrix_free(moments->mean);
    kiln_matrix_free(moments->centred);
    kiln_matrix_free(moments->right);
    *moments = (struct ki_moments){0};
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

/* What the probes say of columns whose centred is nothing but rounding. Sums of a constant may round the same
 * way each time, so that a constant column can look like one that varies up to the larger bound, `doubted`, which grows with how
 * many numbers are added in a row: below it the probes say whether it is constant, but what was computed stands if not. */
static kiln_status settle(const struct ki_moments *moments, const kiln_matrix *X, const kiln_matrix *weights,
                          double doubted) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    kiln_matrix *Z = NULL, *P = NULL, *S = NULL;
    double sum[PROBES];
    TRY(kiln_matrix_dense(&Z, device, type, kiln_matrix_rows(X), PROBES, NULL));
    TRY(kiln_matrix_dense(&P, device, type, kiln_matrix_cols(X), PROBES, NULL));
    TRY(draw(Z, sum, weights, moments->weight));
    TRY(kiln_multiply(P, 1, KILN_TRANSPOSED, X, Z, 0, NULL));
    TRY(ki_vector_new(&S, device, type, PROBES, sum));
    TRY(ki_scales_run(NULL, &(struct ki_scales){.op = KI_SCALES_SETTLE,
                                                .square = moments->square,
                                                .mean = moments->mean,
                                                .centred = moments->centred,
                                                .probes = P,
                                                .probe_sums = S,
                                                .weight = moments->weight,
                                                .doubted = doubted,
                                                .rounded = 16 * rounding(X),
                                                .noise = rounding(X)}));
done:
    kiln_matrix_free(Z);
    kiln_matrix_free(P);
    kiln_matrix_free(S);
    return status;
}

/* A column whose squares leave the range of the type at either end. */
static bool bad_column(kiln_type type, double square, double mean) {
    const double least = type == KILN_F32 ? 1 / (double)FLT_MAX : 1 / DBL_MAX;
    return !isfinite(square) || !isfinite(mean) || (square > 0 ? square <= least : mean != 0);
}

/* The first column that is not finite, or lost to underflow; called only when there is one. */
static kiln_status name_bad_column(const struct ki_moments *moments, const kiln_matrix *X) {
    kiln_status status;
    const int64_t cols = kiln_matrix_cols(X);
    int64_t j = 0;
    double *values = ki_alloc((size_t)cols * 2 * sizeof *values);
    if (!values) return ki_fail_nomem((size_t)cols * 2 * sizeof *values, "column means");
    TRY(ki_vector_get(values, moments->square));
    TRY(ki_vector_get(values + cols, moments->mean));
    while (j < cols - 1 && !bad_column(kiln_matrix_type(X), values[j], values[cols + j])) j++;
    ki_fail(KILN_ERR_DATA,
            "column %lld of X has NaN or infinite values, or its squares overflow or underflow %s",
            (long long)j, kiln_matrix_type(X) == KILN_F32 ? "f32" : "f64");
    status = ki_hint("clean or rescale that column (columns count from 0)");
done:
    ki_free(values);
    return status;
}

/* The sums over the columns: in one walk, or a pass each for squares and for the numbers themselves. */
static kiln_status add_up(struct ki_moments *moments, const kiln_matrix *X, const kiln_matrix *weights) {
    kiln_status status;
    const bool walk = ki_column_sums_apply(X);
    moments->passes = walk ? 1 : 2;
    if (!walk) {
        TRY(kiln_gram_diagonal(moments->square, X, weights));
        return kiln_multiply(moments->mean, 1, KILN_TRANSPOSED, X, weights, 0, NULL);
    }
    if (moments->y)
        TRY(kiln_matrix_dense(&moments->right, kiln_matrix_device(X), kiln_matrix_type(X),
                              kiln_matrix_cols(X), 1, NULL));
    TRY(ki_column_sums(&(struct ki_column_sums){.square = moments->square,
                                                .sum = moments->mean,
                                                .right = moments->right,
                                                .X = X,
                                                .v = weights,
                                                .y = moments->y,
                                                .d = moments->d}));
done:
    return status;
}

/* How many numbers are added one after the other, at most. */
static kiln_status longest_chain(int64_t *chain, const kiln_matrix *X) {
    const int64_t rows = kiln_matrix_rows(X);
    kiln_device_info info = {0};
    const kiln_status status = kiln_device_get_info(kiln_matrix_device(X), &info);
    const bool shared =
        info.is_gpu && kiln_matrix_format(X) == KILN_DENSE && kiln_matrix_cols(X) <= GPU_COLUMNS;
    *chain = ki_min(rows, ki_column_sums_apply(X) ? KI_COLUMN_SUMS_CHAIN
                          : shared                ? rows / GPU_SHARES + GPU_GROUPS
                                                  : rows);
    return status;
}

kiln_status ki_moments_measure(struct ki_moments *moments, const kiln_matrix *X, const kiln_matrix *weights,
                               double weight) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t cols = kiln_matrix_cols(X);
    struct ki_moments made = {.weight = weight, .rough = moments->rough, .y = moments->y, .d = moments->d};
    int64_t chain;
    double found[2]; /* columns that are not finite; in doubt */
    TRY(longest_chain(&chain, X));
    const double doubted = 16 * rounding(X) + ki_epsilon(type) * (double)chain;
    TRY(kiln_matrix_dense(&made.square, device, type, cols, 1, NULL));
    TRY(kiln_matrix_dense(&made.mean, device, type, cols, 1, NULL));
    TRY(kiln_matrix_dense(&made.centred, device, type, cols, 1, NULL));
    TRY(add_up(&made, X, weights));
    TRY(ki_scales_run(found, &(struct ki_scales){.op = KI_SCALES_MEASURE,
                                                 .square = made.square,
                                                 .mean = made.mean,
                                                 .centred = made.centred,
                                                 .weight = weight,
                                                 .doubted = doubted}));
    if (found[0] > 0) TRY(name_bad_column(&made, X));
    if (found[1] > 0 && !made.rough) TRY(settle(&made, X, weights, doubted));
    *moments = made;
    made = (struct ki_moments){0};
done:
    ki_moments_free(&made);
    return status;
}
