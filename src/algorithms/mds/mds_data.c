/* The data of multi-dimensional scaling: dissimilarities, checked and with what is missing taken out, or points whose distances they are. */
#include "algorithms/mds/mds.h"

/* Whether a matrix equals its transpose: both times a random vector, within rounding. */
static kiln_status check_symmetric(const char *name, const kiln_matrix *D, double *norm) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(D);
    kiln_matrix *v = NULL, *a = NULL, *b = NULL;
    kiln_matrix **const all[] = {&v, &a, &b};
    const int64_t n = kiln_matrix_rows(D);
    const double one = 1, minus_one = -1;
    double apart, size;
    for (int i = 0; i < 3; i++) TRY(kiln_matrix_dense(all[i], device, kiln_matrix_type(D), n, 1, NULL));
    TRY(kiln_fill_random(v, KILN_UNIFORM, 1, 0));
    TRY(kiln_multiply(a, 1, KILN_PLAIN, D, v, 0, NULL));
    TRY(kiln_multiply(b, 1, KILN_TRANSPOSED, D, v, 0, NULL));
    TRY(kiln_combine(b, &minus_one, b, &one, a));
    TRY(kiln_norm(&apart, b, KILN_NORM_MAX));
    TRY(kiln_norm(&size, a, KILN_NORM_MAX));
    *norm = size;
    if (apart > 64 * sqrt((double)n) * ki_epsilon(kiln_matrix_type(D)) * size)
        TRY((ki_fail(KILN_ERR_DATA, "kiln_mds: %s is not symmetric", name),
             ki_hint("average it with its transpose, or give points in place of dissimilarities")));
done:
    for (int i = 0; i < 3; i++) kiln_matrix_free(*all[i]);
    return status;
}

kiln_status ki_mds_check_entry(const char *call, const char *what, double value, int64_t e, int64_t n,
                               bool may_miss) {
    if ((value >= 0 && !isinf(value)) || (may_miss && isnan(value))) return KILN_OK;
    const int64_t row = e / n + 1, col = e % n + 1;
    return ki_fail(KILN_ERR_DATA, "%s: %s %lld, %lld is %g, but must be finite and not negative", call, what,
                   (long long)row, (long long)col, value);
}

/* Missing dissimilarities are NaN: they get weight 0. Returns whether there are any; negative ones are an error. */
static kiln_status drop_missing(double *delta, double *weights, int64_t n, bool *missing) {
    kiln_status status = KILN_OK;
    for (int64_t e = 0; e < n * n; e++) {
        const int64_t row = e / n + 1, col = e % n + 1;
        TRY(ki_mds_check_entry("kiln_mds", "dissimilarity", delta[e], e, n, true));
        if (row != col && isnan(delta[e])) {
            if (!isnan(delta[e % n * n + e / n]))
                TRY(ki_fail(KILN_ERR_DATA,
                            "kiln_mds: dissimilarity %lld, %lld is missing, but not %lld, %lld",
                            (long long)row, (long long)col, (long long)col, (long long)row));
            *missing = true;
            weights[e] = 0;
        }
        TRY(ki_mds_check_entry("kiln_mds", "weight", weights[e], e, n, false));
    }
    for (int64_t e = 0; e < n * n; e++)
        if (isnan(delta[e])) delta[e] = 0;
done:
    return status;
}

/* Sums over the pairs that count. */
static void measure(struct ki_mds *s, const double *delta, const double *weights) {
    const int64_t n = s->n;
    s->delta_least = INFINITY;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            const double w = weights[i * n + j], d = delta[i * n + j];
            s->pairs += w;
            s->delta_sum += w * d;
            s->delta_squares += w * d * d;
            if (w > 0 && d < s->delta_least) s->delta_least = d;
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            const double w = weights[i * n + j], above = delta[i * n + j] - s->delta_least;
            if (!(w > 0)) continue;
            s->above_sum += w * above;
            s->above_squares += w * above * above;
        }
}

/* Checks the dissimilarities on the host, and keeps a copy without what is missing. */
static kiln_status take_dissimilarities(struct ki_mds *s, const kiln_matrix *D) {
    kiln_status status;
    const int64_t n = s->n;
    bool missing = false;
    double norm, *delta = ki_alloc((size_t)(n * n) * sizeof *delta),
                 *weights = ki_alloc((size_t)(n * n) * sizeof *weights);
    if (!delta || !weights) TRY(ki_fail_nomem((size_t)(n * n) * 2 * sizeof *delta, "dissimilarities"));
    TRY(ki_vector_get(delta, D));
    if (s->options.weights)
        TRY(ki_vector_get(weights, s->options.weights));
    else
        for (int64_t e = 0; e < n * n; e++) weights[e] = 1;
    TRY(drop_missing(delta, weights, n, &missing));
    measure(s, delta, weights);
    if (s->pairs == 0)
        TRY(ki_fail(KILN_ERR_DATA, "kiln_mds: no pair of points has a dissimilarity and a weight"));
    s->D = D;
    s->weights = s->options.weights;
    if (missing) {
        TRY(kiln_matrix_dense(&s->own_D, s->device, s->type, n, n, NULL));
        TRY(ki_vector_set(s->own_D, delta));
        TRY(kiln_matrix_dense(&s->own_weights, s->device, s->type, n, n, NULL));
        TRY(ki_vector_set(s->own_weights, weights));
        s->D = s->own_D, s->weights = s->own_weights;
    }
    TRY(check_symmetric("the matrix of dissimilarities", s->D, &norm));
    if (s->weights) TRY(check_symmetric("the matrix of weights", s->weights, &norm));
done:
    ki_free(delta);
    ki_free(weights);
    return status;
}

/* Distances of points: as a matrix where a quarter of the device's memory holds it, or where it is needed as a whole; else they
 * are computed anew in each pass. */
static kiln_status take_points(struct ki_mds *s, const kiln_matrix *X) {
    kiln_status status;
    kiln_device_info info = {0};
    int64_t elements;
    TRY(ki_check_finite("kiln_mds", "X", X, false));
    TRY(kiln_device_get_info(s->device, &info));
    const bool whole = s->options.weights || s->options.metric != KILN_MDS_RATIO;
    if (!ki_mul(s->n, s->n, &elements) ||
        (!whole && elements > info.memory / 4 / (s->type == KILN_F32 ? 4 : 8))) {
        s->X = X;
        return KILN_OK;
    }
    TRY(kiln_matrix_dense(&s->own_D, s->device, s->type, s->n, s->n, NULL));
    TRY(kiln_distances(s->own_D, X, X));
    s->D = s->own_D;
    if (whole) {
        kiln_matrix *distances = s->own_D;
        s->own_D = NULL;
        status = take_dissimilarities(s, distances);
        if (s->own_D)
            kiln_matrix_free(distances);
        else
            s->own_D = distances;
    }
done:
    return status;
}

kiln_status ki_mds_take(struct ki_mds *s, const kiln_matrix *X) {
    return s->options.dissimilarities ? take_dissimilarities(s, X) : take_points(s, X);
}
