/* New points in a layout that stays as it is: each one goes where its distances to the layout's points come
 * nearest its dissimilarities to them.
 *
 *   z <- 1/n sum_j ( y_j + delta_j (z - y_j) / || z - y_j || ),
 *
 * the same majorisation for one point alone, from the place of the point that is least dissimilar and from
 * the mean of the nearest few; the better of both counts. The layout is small beside the data, and points
 * are independent: this runs on the host. */
#include "algorithms/mds/mds.h"

enum { NEAREST = 8, TURNS = 300 };

struct placing {
    int64_t n, p;
    const double *Y, *delta; /* n x p; to the n points */
};

static double stress_at(const struct placing *of, const double *z) {
    double sum = 0;
    for (int64_t j = 0; j < of->n; j++) {
        double square = 0;
        for (int64_t c = 0; c < of->p; c++)
            square += (z[c] - of->Y[j * of->p + c]) * (z[c] - of->Y[j * of->p + c]);
        const double rest = of->delta[j] - sqrt(square);
        sum += rest * rest;
    }
    return sum;
}

/* One turn; returns how far z has moved, squared. */
static double move(const struct placing *of, double *z) {
    double next[64] = {0}, moved = 0;
    for (int64_t j = 0; j < of->n; j++) {
        const double *y = of->Y + j * of->p;
        double square = 0;
        for (int64_t c = 0; c < of->p; c++) square += (z[c] - y[c]) * (z[c] - y[c]);
        const double pull = square > 0 ? of->delta[j] / sqrt(square) : 0;
        if (!(square > 0))
            next[0] += of->delta[j]; /* any unit vector majorises there, as in kiln_guttman_step */
        for (int64_t c = 0; c < of->p; c++) next[c] += y[c] + pull * (z[c] - y[c]);
    }
    for (int64_t c = 0; c < of->p; c++) {
        next[c] /= (double)of->n;
        moved += (next[c] - z[c]) * (next[c] - z[c]);
        z[c] = next[c];
    }
    return moved;
}

/* The mean place of the `count` points that are least dissimilar, weighted by nearness. */
static void start_near(const struct placing *of, double *z, int64_t count) {
    int64_t chosen[NEAREST];
    double total = 0;
    for (int64_t c = 0; c < of->p; c++) z[c] = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t least = -1;
        for (int64_t j = 0; j < of->n; j++) {
            bool taken = false;
            for (int64_t b = 0; b < k; b++) taken = taken || chosen[b] == j;
            if (!taken && (least < 0 || of->delta[j] < of->delta[least])) least = j;
        }
        chosen[k] = least;
        const double weight = 1 / (of->delta[least] + 1e-300);
        if (!(weight < 1e290)) { /* one of the layout's points itself */
            for (int64_t c = 0; c < of->p; c++) z[c] = of->Y[least * of->p + c];
            return;
        }
        total += weight;
        for (int64_t c = 0; c < of->p; c++) z[c] += weight * of->Y[least * of->p + c];
    }
    for (int64_t c = 0; c < of->p; c++) z[c] /= total;
}

static void place(const struct placing *of, double *best) {
    double least = INFINITY, z[64];
    for (int64_t count = 1; count <= NEAREST; count += NEAREST - 1) {
        if (count > of->n) break;
        start_near(of, z, count);
        for (int turn = 0; turn < TURNS; turn++) {
            double size = 0;
            const double moved = move(of, z);
            for (int64_t c = 0; c < of->p; c++) size += z[c] * z[c];
            if (moved <= 1e-14 * size) break;
        }
        const double stress = stress_at(of, z);
        if (stress < least) {
            least = stress;
            memcpy(best, z, (size_t)of->p * sizeof *z);
        }
    }
}

/* Distances of new points x (m x q) to points z (n x q), where squares may leave the range of doubles. */
static void distances_of(double *delta, const double *x, int64_t m, const double *z, int64_t n, int64_t q) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) delta[i * n + j] = (double)ki_mds_distance(x + i * q, z + j * q, q);
}

/* delta (m x n) of X's rows to the points that were laid out: by the device, or, where these are so far from
 * or so near to each other that squares lose digits in the type, here. */
static kiln_status measure(double *delta, const kiln_matrix *X, const kiln_matrix *points) {
    kiln_status status;
    const int64_t m = kiln_matrix_rows(X), n = kiln_matrix_rows(points), q = kiln_matrix_cols(X);
    struct ki_arena arena = {0};
    double extent;
    TRY(ki_mds_extent(&extent, points));
    if (ki_mds_fits(extent, kiln_matrix_type(X))) {
        kiln_matrix *const D = ki_arena_rows(&arena, X, n);
        TRY(arena.status);
        TRY(kiln_distances(D, X, points));
        TRY(ki_vector_get(delta, D));
    } else {
        double *const x = ki_arena_room(&arena, ki_max(m * q, 1), sizeof *x), *const z = ki_arena_room(
                                                                                  &arena, ki_max(n * q, 1),
                                                                                  sizeof *z);
        TRY(arena.status);
        TRY(ki_vector_get(x, X));
        TRY(ki_vector_get(z, points));
        distances_of(delta, x, m, z, n, q);
    }
done:
    return ki_arena_free(&arena, status);
}

/* Dissimilarities of X's rows to the layout's points: X itself, or distances to the points that were laid
 * out. */
static kiln_status dissimilarities(double *delta, const kiln_model *model, const kiln_matrix *X, int64_t n) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *points = NULL;
    const struct ki_tensor *kept = ki_model_tensor(model, "points");
    const int64_t wanted = kept ? kept->cols : n;
    if (kiln_matrix_cols(X) != wanted) {
        ki_fail(KILN_ERR_MODEL, "the model was made from %s, but the data have %lld columns",
                kept ? "points of other dimensions" : "dissimilarities", (long long)kiln_matrix_cols(X));
        return ki_hint("%s: %lld columns",
                       kept ? "give points as those of the training"
                            : "give each new point's dissimilarities to the layout's points",
                       (long long)wanted);
    }
    TRY(ki_check_finite("kiln_predict", "X", X, !kept));
    if (!kept) return ki_vector_get(delta, X);
    TRY(ki_arena_take(
        &arena, &points,
        kiln_model_tensor(&points, kiln_matrix_device(X), kiln_matrix_type(X), model, "points")));
    TRY(measure(delta, X, points));
done:
    return ki_arena_free(&arena, status);
}

/* Divides the layout and the dissimilarities by a power of two, so that their squares are numbers; returns
 * its exponent. */
static int shrink(double *y, double *delta, int64_t n, int64_t p, int64_t m) {
    double largest = 0;
    int exponent = 0;
    for (int64_t e = 0; e < n * p; e++) largest = fmax(largest, fabs(y[e]));
    if (largest > 0 && !ki_mds_fits(largest, KILN_F64)) frexp(largest, &exponent);
    for (int64_t e = 0; e < n * p && exponent; e++) y[e] = ldexp(y[e], -exponent);
    for (int64_t e = 0; e < m * n && exponent; e++) delta[e] = ldexp(delta[e], -exponent);
    return exponent;
}

kiln_status ki_mds_predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *Y = NULL, *placed, *own_X = NULL;
    const struct ki_tensor *layout = ki_model_tensor(model, "layout");
    const int64_t n = layout->rows, p = layout->cols, m = kiln_matrix_rows(X);
    const char *metric = kiln_model_text(model, "metric");
    if (kiln_matrix_format(X) != KILN_DENSE)
        return ki_fail(KILN_ERR_UNSUPPORTED, "kiln_predict: X must be dense for an mds model");
    if (kiln_model_text(model, "points"))
        return (ki_fail(KILN_ERR_UNSUPPORTED, "kiln_predict: the model was written without its points"),
                ki_hint("train with the points in memory: without --map"));
    if (metric && strcmp(metric, "ratio") != 0)
        return (
            ki_fail(
                KILN_ERR_UNSUPPORTED,
                "kiln_predict: the distances of this layout are near fitted values (metric %s), which new "
                "dissimilarities have none of",
                metric),
            ki_hint("lay all points out together, or by metric ratio"));
    double *const y = ki_arena_room(&arena, n * p, sizeof *y),
                  *const delta = ki_arena_room(&arena, ki_max(m * n, 1), sizeof *delta),
                  *const z = ki_arena_room(&arena, ki_max(m * p, 1), sizeof *z);
    TRY(arena.status);
    TRY(ki_arena_take(&arena, &own_X, ki_whole_of(&X, &own_X, X)));
    TRY(ki_arena_take(&arena, &Y, kiln_model_tensor(&Y, kiln_matrix_device(X), KILN_F64, model, "layout")));
    TRY(dissimilarities(delta, model, X, n));
    TRY(ki_vector_get(y, Y));
    const int exponent = shrink(y, delta, n, p, m);
    for (int64_t i = 0; i < m; i++) place(&(struct placing){n, p, y, delta + i * n}, z + i * p);
    for (int64_t e = 0; e < m * p; e++) z[e] = ldexp(z[e], exponent);
    placed = ki_arena_rows(&arena, X, p);
    TRY(arena.status);
    TRY(ki_vector_set(placed, z));
    *P = ki_arena_give(&arena, placed);
done:
    return ki_arena_free(&arena, status);
}
