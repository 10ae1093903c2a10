/* New points in a layout that stays as it is: each one goes where its distances to the layout's points come nearest its
 * dissimilarities to them.
 *
 *   z <- 1/n sum_j ( y_j + delta_j (z - y_j) / || z - y_j || ),
 *
 * the same majorisation for one point alone, from the place of the point that is least dissimilar and from the mean of the nearest few; the
 * better of both counts. The layout is small beside the data, and points are independent: this runs on the host. */
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

/* Dissimilarities of X's rows to the layout's points: X itself, or distances to the points that were laid out. */
static kiln_status dissimilarities(kiln_matrix **D, const kiln_model *model, const kiln_matrix *X,
                                   int64_t n) {
    kiln_status status = KILN_OK;
    kiln_device *device = kiln_matrix_device(X);
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
    if (!kept) return kiln_matrix_copy(D, device, KILN_TYPE_DEFAULT, X);
    TRY(kiln_model_tensor(&points, device, kiln_matrix_type(X), model, "points"));
    TRY(kiln_matrix_dense(D, device, kiln_matrix_type(X), kiln_matrix_rows(X), n, NULL));
    TRY(kiln_distances(*D, X, points));
done:
    kiln_matrix_free(points);
    return status;
}

kiln_status ki_mds_predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    kiln_status status;
    kiln_matrix *D = NULL, *Y = NULL, *placed = NULL, *own_X = NULL;
    double *y = NULL, *delta = NULL, *z = NULL;
    const struct ki_tensor *layout = ki_model_tensor(model, "layout");
    const int64_t n = layout->rows, p = layout->cols, m = kiln_matrix_rows(X);
    if (kiln_matrix_format(X) != KILN_DENSE)
        return ki_fail(KILN_ERR_UNSUPPORTED, "kiln_predict: X must be dense for an mds model");
    TRY(ki_whole_of(&X, &own_X, X));
    TRY(dissimilarities(&D, model, X, n));
    TRY(ki_check_finite("kiln_predict", "X", D, true));
    TRY(kiln_model_tensor(&Y, kiln_matrix_device(X), KILN_F64, model, "layout"));
    y = ki_alloc((size_t)(n * p) * sizeof *y);
    delta = ki_alloc((size_t)ki_max(m * n, 1) * sizeof *delta);
    z = ki_alloc((size_t)ki_max(m * p, 1) * sizeof *z);
    if (!y || !delta || !z)
        TRY(ki_fail_nomem((size_t)(m * n) * sizeof *delta, "dissimilarities of new points"));
    TRY(ki_vector_get(y, Y));
    TRY(ki_vector_get(delta, D));
    for (int64_t i = 0; i < m; i++) place(&(struct placing){n, p, y, delta + i * n}, z + i * p);
    TRY(kiln_matrix_dense(&placed, kiln_matrix_device(X), kiln_matrix_type(X), m, p, NULL));
    TRY(ki_vector_set(placed, z));
    *P = placed;
    placed = NULL;
done:
    kiln_matrix_free(D);
    kiln_matrix_free(Y);
    kiln_matrix_free(placed);
    kiln_matrix_free(own_X);
    ki_free(y);
    ki_free(delta);
    ki_free(z);
    return status;
}
