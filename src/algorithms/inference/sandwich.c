/* Robust covariances H^-1 M H^-1, about the columns' means c weighted with the curvature, as H^-1 = K K^T is.
 *
 * M = X~^T diag(v) X~ comes of kiln_gram, of clusters from products of X^T with a column of scores for each
 * group. Its factor M = U^T U, rows of nothing but rounding left out, makes the covariance's root
 * K K^T U^T, in M's place. Beside K and M there is of n x n what kiln_gram makes, and before M; of m x m
 * there is nothing. */
#include "algorithms/cholesky.h"
#include "algorithms/inference/inference.h"

struct meat {
    const kiln_matrix *X;
    int64_t n, count;
    double *M;     /* count x count, the intercept last: made->root */
    double *mean;  /* what is taken off the columns, n; zeros without an intercept */
    double weight; /* of the curvatures, all of them */
};

/* ---- M of rows that stand alone ---- */

/* v: u^2, or over (1 - l)^power. */
static kiln_status weigh_rows(double *v, const kiln_inference *made, const struct meat *meat,
                              const struct ki_inference_rows *rows, const kiln_loss *loss,
                              kiln_errors errors) {
    kiln_status status;
    const double certain = 1e-10;
    memset(v, 0, (size_t)rows->m * sizeof *v);
    if (errors >= KILN_ERRORS_HC2) TRY(ki_inference_squares(v, meat->X, made->hat, made->count));
    for (int64_t i = 0; i < rows->m; i++) {
        const double one_left = 1 - rows->curvature[i] * v[i], u = ki_inference_score(rows, loss, i);
        v[i] = u * u;
        if (errors < KILN_ERRORS_HC2) continue;
        v[i] = one_left > certain ? v[i] / (errors == KILN_ERRORS_HC3 ? one_left * one_left : one_left) : 0;
    }
    status = KILN_OK;
done:
    return status;
}

static kiln_status meat_new(struct meat *meat, kiln_inference *made) {
    const size_t square = (size_t)made->count * (size_t)made->count * sizeof(double);
    meat->M = made->root = ki_calloc(square);
    return meat->M ? KILN_OK : ki_fail_nomem(square, "the covariance of the coefficients");
}

/* M with rows and columns about the mean, of G and g about c, which a device has rounded: x - mean = (x - c)
 * - shift. */
static kiln_status meat_put(struct meat *meat, const kiln_matrix *G, const double *g, const double *c,
                            double sum) {
    kiln_status status = KILN_OK;
    const int64_t n = meat->n, count = meat->count;
    for (int64_t i = 0; i < n; i++) {
        const double shift = c ? meat->mean[i] - c[i] : 0;
        double *row = meat->M + i * count;
        TRY(ki_vector_part(row, G, i * n, n));
        for (int64_t j = 0; c && j < n; j++) {
            const double other = meat->mean[j] - c[j];
            row[j] += shift * other * sum - shift * g[j] - g[i] * other;
        }
        if (count > n) row[n] = meat->M[n * count + i] = g[i] - shift * sum;
    }
    if (count > n) meat->M[n * count + n] = sum;
done:
    return status;
}

static kiln_status meat_of_rows(struct meat *meat, kiln_inference *made, const struct ki_inference_rows *rows,
                                const kiln_loss *loss, kiln_errors errors) {
    kiln_status status;
    const int64_t n = meat->n;
    const bool intercept = meat->count > n;
    double sum = 0;
    struct ki_arena arena = {0};
    double *v = ki_arena_doubles(&arena, rows->m), *g = ki_arena_doubles(&arena, n),
           *taken = ki_arena_doubles(&arena, n);
    kiln_matrix *V = ki_arena_rows(&arena, meat->X, 1), *GG = ki_arena_model(&arena, meat->X, n, n),
                *gg = ki_arena_model(&arena, meat->X, n, 1),
                *c = intercept ? ki_arena_vector(&arena, meat->X, n, meat->mean) : NULL;
    TRY(arena.status);
    TRY(weigh_rows(v, made, meat, rows, loss, errors));
    for (int64_t i = 0; i < rows->m; i++) sum += v[i];
    TRY(ki_vector_set(V, v));
    TRY(kiln_gram(GG, gg, meat->X, V, c));
    TRY(meat_new(meat, made));
    TRY(ki_vector_get(g, gg));
    if (c) TRY(ki_vector_get(taken, c));
    TRY(meat_put(meat, GG, g, c ? taken : NULL, sum));
done:
    return ki_arena_free(&arena, status);
}

/* ---- M of groups ---- */

/* M += S S^T, S the sum of u x~ over a group: of column c of T = X^T U, and of the scores alone. */
static void add_group(struct meat *meat, double *S, const double *T, int64_t k, int64_t c, double sum) {
    const int64_t n = meat->n, count = meat->count;
    for (int64_t j = 0; j < n; j++) S[j] = T[j * k + c] - meat->mean[j] * sum;
    if (count > n) S[n] = sum;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; S[i] != 0 && j < count; j++) meat->M[i * count + j] += S[i] * S[j];
}

/* Groups [first, first + k). */
static kiln_status add_block(struct meat *meat, const struct ki_inference_rows *rows, const double *u,
                             const int64_t *groups, int64_t first, int64_t k) {
    kiln_status status;
    double sums[KI_BLOCK] = {0};
    struct ki_arena arena = {0};
    double *U = ki_arena_reals(&arena, rows->m * k), *T = ki_arena_doubles(&arena, meat->n * k),
           *S = ki_arena_doubles(&arena, meat->count);
    kiln_matrix *scores = ki_arena_rows(&arena, meat->X, k),
                *sum = ki_arena_model(&arena, meat->X, meat->n, k);
    TRY(arena.status);
    for (int64_t i = 0; i < rows->m; i++) {
        const int64_t c = groups[i] - first;
        if (c < 0 || c >= k) continue;
        U[i * k + c] = u[i];
        sums[c] += u[i];
    }
    TRY(ki_vector_set(scores, U));
    TRY(kiln_multiply(sum, 1, KILN_TRANSPOSED, meat->X, scores, 0, NULL));
    TRY(ki_vector_get(T, sum));
    for (int64_t c = 0; c < k; c++) add_group(meat, S, T, k, c, sums[c]);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status meat_of_groups(struct meat *meat, const struct ki_inference_rows *rows,
                                  const kiln_loss *loss, const kiln_inference_options *options,
                                  double *found) {
    kiln_status status;
    const double bytes = 1 << 27, most = bytes / (sizeof(double) * fmax(1, (double)rows->m));
    const int64_t block = (int64_t)fmax(1, fmin(most, KI_BLOCK));
    struct ki_arena arena = {0};
    double *u = ki_arena_doubles(&arena, rows->m);
    bool *there = ki_arena_zeros(&arena, options->group_count, sizeof *there);
    TRY(arena.status);
    for (int64_t i = 0; i < rows->m; i++) {
        u[i] = ki_inference_score(rows, loss, i);
        there[options->groups[i]] |= rows->weights[i] > 0;
    }
    *found = 0;
    for (int64_t g = 0; g < options->group_count; g++) *found += there[g];
    if (*found < 2) {
        status = ki_fail(KILN_ERR_DATA,
                         "kiln_inference_of: clustered errors of %.0f group, not of two or more", *found);
        goto done;
    }
    for (int64_t first = 0; first < options->group_count; first += block)
        TRY(add_block(meat, rows, u, options->groups, first, ki_min(block, options->group_count - first)));
done:
    return ki_arena_free(&arena, status);
}

/* ---- the root ---- */

/* M scaled to a unit diagonal becomes U, scaled back: M = U^T U, rows that are nothing but rounding 0. */
static kiln_status meat_factor(struct meat *meat) {
    kiln_status status;
    const int64_t count = meat->count;
    struct ki_arena arena = {0};
    double *scale = ki_arena_doubles(&arena, count), *ones = ki_arena_doubles(&arena, count), *M = meat->M;
    bool *left_out = ki_arena_zeros(&arena, count, sizeof *left_out);
    TRY(arena.status);
    for (int64_t i = 0; i < count; i++) {
        scale[i] = sqrt(fmax(M[i * count + i], 0));
        ones[i] = 1;
    }
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = i; j < count; j++)
            M[i * count + j] = scale[i] > 0 && scale[j] > 0 ? M[i * count + j] / scale[i] / scale[j] : 0;
    struct ki_factorisation factor = {
        .U = M, .size = count, .scale = ones, .part = (double)count * 16 * DBL_EPSILON, .left_out = left_out};
    ki_factorise(&factor, INFINITY);
    if (factor.failed) {
        status = ki_fail(KILN_ERR_DATA, "kiln_inference_of: the scores' squares are not finite");
        goto done;
    }
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < count; j++)
            M[i * count + j] = j < i || left_out[i] ? 0 : M[i * count + j] * scale[j];
done:
    return ki_arena_free(&arena, status);
}

/* M becomes the root K K^T U^T: with K's part of the columns V (n x n, above the diagonal, in hat), and of
 * the intercept 1 / sqrt(sum h). Row r of U makes column r, that of V (U V)^T, which takes its place until
 * all are there. */
static kiln_status meat_root(struct meat *meat, const double *hat) {
    kiln_status status;
    const int64_t n = meat->n, count = meat->count;
    struct ki_arena arena = {0};
    double *row = ki_arena_doubles(&arena, n);
    TRY(arena.status);
    for (int64_t r = 0; r < count; r++) {
        double *u = meat->M + r * count;
        memset(row, 0, (size_t)n * sizeof *row);
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = k; u[k] != 0 && j < n; j++) row[j] += u[k] * hat[k * count + j];
        for (int64_t i = 0; i < n; i++) {
            const double *v = hat + i * count;
            double sum = 0;
            for (int64_t j = i; j < n; j++) sum += v[j] * row[j];
            u[i] = sum;
        }
        if (count > n) u[n] /= meat->weight;
    }
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < i; j++) {
            const double other = meat->M[i * count + j];
            meat->M[i * count + j] = meat->M[j * count + i];
            meat->M[j * count + i] = other;
        }
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_inference_sandwich(kiln_inference *made, const struct ki_information *of,
                                  const struct ki_inference_rows *rows, const kiln_loss *loss,
                                  const kiln_inference_options *options, double counted, double *groups) {
    kiln_status status;
    const double left = counted - made->parameters;
    const bool corrected = options->errors == KILN_ERRORS_HC1 || options->errors == KILN_ERRORS_CLUSTER;
    struct meat meat = {
        .X = of->X, .n = made->n, .count = made->count, .mean = of->mean, .weight = of->weight};
    made->scale = 1;
    if (options->errors == KILN_ERRORS_CLUSTER) {
        TRY(meat_new(&meat, made));
        TRY(meat_of_groups(&meat, rows, loss, options, groups));
        made->scale = *groups / (*groups - 1) * (counted - 1) / left;
    } else {
        TRY(meat_of_rows(&meat, made, rows, loss, options->errors));
        if (options->errors == KILN_ERRORS_HC1) made->scale = counted / left;
    }
    if (corrected && !(left > 0)) made->scale = (double)NAN;
    TRY(meat_factor(&meat));
    TRY(meat_root(&meat, made->hat));
    ki_inference_uncentre(made->root, made->count, of);
done:
    return status;
}
