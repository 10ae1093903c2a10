/* A pass of K-Means again, in plain loops in long double: the nearest centre of each row by its distance
 * itself, the means of the rows, and how far the centres are from them. */
#include "algorithms/verify/verify.h"

struct clustering {
    struct ki_copy X;
    int64_t k, n;
    double *centres, *weights, *labels, *clusters; /* but for centres NULL where they are not given */
    long double *row, *sums, *sizes;               /* n; k x n; k x n: sums of absolute values */
    long double *apart, *totals, *ties; /* k: of a row; weight; of the rows that may be another's as well */
    long double *squares, *tied;        /* k: weighted squared distances; of those rows, too */
    long double *least,
        *most;           /* k: the furthest of its own rows, and of those that may be its own, squared */
    long double largest; /* row's length, squared */
    long double *mean, *square; /* of X's columns, which centre 0 is subtracted from: they do not cancel */
    long double norms;          /* of the rows, squared */
    bool spherical;
    double unit, rounding; /* of X's type; of a distance, relative */
};

static kiln_status load(struct clustering *c, const kiln_matrix *centres, const kiln_matrix *X,
                        const kiln_kmeans_options *options) {
    static const char call[] = "kiln_verify_kmeans";
    kiln_status status;
    c->k = kiln_matrix_rows(centres), c->n = kiln_matrix_cols(X);
    c->spherical = options->spherical != 0;
    c->unit = ki_epsilon(kiln_matrix_type(X));
    c->rounding = 8 * (double)(c->n + 3) * (c->spherical ? c->unit : DBL_EPSILON);
    TRY(ki_check_matrix(call, "centres", centres, X, c->k, c->n));
    if (options->weights) TRY(ki_check_matrix(call, "weights", options->weights, X, kiln_matrix_rows(X), 1));
    if (options->labels) TRY(ki_check_matrix(call, "labels", options->labels, X, kiln_matrix_rows(X), 1));
    if (options->clusters) TRY(ki_check_matrix(call, "clusters", options->clusters, X, c->k, 3));
    TRY(ki_copy_take(&c->X, X, false));
    TRY(ki_copy_vector(&c->centres, centres));
    if (options->weights) TRY(ki_copy_vector(&c->weights, options->weights));
    if (options->labels) TRY(ki_copy_vector(&c->labels, options->labels));
    if (options->clusters) TRY(ki_copy_vector(&c->clusters, options->clusters));
    const size_t count = (size_t)((2 * c->k + 3) * c->n + 7 * c->k);
    if (!(c->row = ki_calloc(count * sizeof *c->row)))
        TRY(ki_fail_nomem(count * sizeof *c->row, "a clustering to verify"));
    c->mean = c->row + c->n, c->square = c->mean + c->n, c->sums = c->square + c->n;
    c->sizes = c->sums + c->k * c->n, c->apart = c->sizes + c->k * c->n, c->totals = c->apart + c->k,
    c->ties = c->totals + c->k;
    c->squares = c->ties + c->k, c->tied = c->squares + c->k, c->least = c->tied + c->k,
    c->most = c->least + c->k;
done:
    return status;
}

/* The row i with all its zeros, of length 1 where the clustering is spherical. */
static void take_row(struct clustering *c, int64_t i) {
    const double *x = ki_row_values(&c->X, i);
    long double square = 0;
    for (int64_t j = 0; j < c->n; j++) c->row[j] = 0;
    for (int64_t e = 0; e < ki_row_size(&c->X, i); e++) {
        c->row[ki_row_column(&c->X, i, e)] += x[e];
        square += (long double)x[e] * x[e];
    }
    for (int64_t j = 0; j < c->n && c->spherical && square > 0; j++) c->row[j] /= sqrtl(square);
}

static long double distance(const struct clustering *c, int64_t centre) {
    long double sum = 0;
    for (int64_t j = 0; j < c->n; j++) {
        const long double apart = c->row[j] - c->centres[centre * c->n + j];
        sum += apart * apart;
    }
    return sum;
}

/* Distances that rounding may take for the least one are no larger: labels come from squared differences,
 * which are added up in double; rows that are scaled to length 1 are rounded themselves. */
static long double limit_of(const struct clustering *c, long double least) {
    long double square = 0;
    for (int64_t j = 0; j < c->n; j++) square += c->row[j] * c->row[j];
    const long double reach = c->spherical ? sqrtl(square) + sqrtl(least) : sqrtl(least);
    return least + c->rounding * reach * reach;
}

/* Adds the row, of weight w, to its nearest centre, and to those that are as near. */
static int64_t settle(struct clustering *c, long double w, long double *least) {
    int64_t nearest = 0, near = 0;
    for (int64_t centre = 0; centre < c->k; centre++) {
        c->apart[centre] = distance(c, centre);
        if (c->apart[centre] < c->apart[nearest]) nearest = centre;
    }
    *least = c->apart[nearest];
    const long double limit = limit_of(c, *least);
    for (int64_t centre = 0; centre < c->k; centre++) near += c->apart[centre] <= limit;
    for (int64_t centre = 0; centre < c->k; centre++) {
        if (c->apart[centre] > limit) continue;
        c->most[centre] = fmaxl(c->most[centre], c->apart[centre]);
        if (near == 1) continue;
        c->ties[centre] += w;
        c->tied[centre] += w * c->apart[centre];
    }
    if (near == 1) c->least[nearest] = fmaxl(c->least[nearest], *least);
    c->squares[nearest] += w * *least;
    c->totals[nearest] += w;
    return nearest;
}

/* Returns whether its label takes the row to another centre than the nearest. */
static bool mislabelled(const struct clustering *c, int64_t i, long double least) {
    const double label = c->labels[i];
    if (!(label >= 0 && label < (double)c->k)) return true;
    return c->apart[(int64_t)label] > limit_of(c, least);
}

static void walk(struct clustering *c, kiln_kmeans_verification *made) {
    long double inertia = 0, least;
    int64_t wrong = 0;
    for (int64_t i = 0; i < c->X.rows; i++) {
        const long double w = c->weights ? c->weights[i] : 1;
        take_row(c, i);
        const int64_t nearest = settle(c, w, &least);
        long double *sum = c->sums + nearest * c->n, *size = c->sizes + nearest * c->n;
        inertia += w * least;
        long double length = 0;
        for (int64_t j = 0; j < c->n; j++) length += c->row[j] * c->row[j];
        c->largest = fmaxl(c->largest, length);
        for (int64_t j = 0; j < c->n; j++) {
            sum[j] += w * c->row[j];
            size[j] += w * fabsl(c->row[j]);
            const long double apart = c->row[j] - c->centres[j];
            c->mean[j] += w * apart;
            c->square[j] += w * apart * apart;
            c->norms += w * c->row[j] * c->row[j];
        }
        wrong += c->labels && mislabelled(c, i, least);
    }
    made->inertia = (double)inertia;
    made->labels = c->labels ? (double)wrong : (double)NAN;
}

/* Returns how far the centre is from the mean of its rows, squared. */
static long double move_of(const struct clustering *c, int64_t centre) {
    const long double *sum = c->sums + centre * c->n;
    long double length = c->totals[centre], square = 0, moved = 0;
    for (int64_t j = 0; j < c->n; j++) square += sum[j] * sum[j];
    if (c->spherical) length = sqrtl(square);
    for (int64_t j = 0; j < c->n && length > 0; j++) {
        const long double step = sum[j] / length - c->centres[centre * c->n + j];
        moved += step * step;
    }
    return moved;
}

/* Squares of what rounding makes of the means, added up. A mean of rows x is three roundings of the type
 * and, for each row, two of doubles off, of the mean of |x|, and a number of a centre stays where the mean
 * is twice as far (kmeans_means.c). */
static long double mean_rounding(const struct clustering *c) {
    const long double part = 16 * (long double)c->unit + 4 * (long double)(c->X.rows + 1) * DBL_EPSILON;
    long double squares = 0;
    for (int64_t centre = 0; centre < c->k; centre++) {
        const long double total = c->totals[centre];
        for (int64_t j = 0; j < c->n && total > 0; j++) {
            const long double size =
                c->spherical ? c->centres[centre * c->n + j] : c->sizes[centre * c->n + j] / total;
            squares += part * size * part * size;
        }
    }
    return squares;
}

/* Squares below that have lost digits. */
static double tiny_of(const struct clustering *c) {
    return c->unit > DBL_EPSILON ? FLT_MIN : DBL_MIN;
}

/* Rounding moves a row x by some u |x|: what that may change. Distances of sparse rows may
 * cancel to 1/64 in double. */
static void bound_rounding(const struct clustering *c, kiln_kmeans_verification *made, long double moved,
                           long double scale) {
    const long double centres = mean_rounding(c);
    long double rows = c->norms, weight = (long double)c->X.rows;
    for (int64_t centre = 0; centre < c->k; centre++) weight += c->totals[centre];
    const double differences = c->X.row_start ? 64 * (double)(c->n + 8) * DBL_EPSILON * made->inertia : 0;
    rows *= 64 * (long double)c->unit * c->unit;
    const double sums = (double)(c->n + 8) * c->unit * made->inertia;
    made->inertia_rounding =
        (double)(2 * sqrtl(rows * made->inertia) + rows + differences + weight * tiny_of(c)) + sums;
    made->residual_rounding = (double)((2 * sqrtl(centres * moved) + centres) / (scale > 0 ? scale : 1));
}

/* Returns what is wrong with a cluster's furthest row: a part of that, or of what rounding of the rows makes
 * of it where that is more. */
static long double radius_error(const struct clustering *c, int64_t centre) {
    const long double given = c->clusters[3 * centre + 2], blur = 16 * c->unit * sqrtl(c->largest);
    const long double short_of = sqrtl(fmaxl(c->least[centre] - tiny_of(c), 0)) - blur - given;
    const long double beyond = given - sqrtl(c->most[centre] + tiny_of(c)) - blur;
    return fmaxl(fmaxl(short_of, beyond), 0) / fmaxl(fabsl(given), blur > 0 ? blur : 1);
}

static void judge_clusters(const struct clustering *c, kiln_kmeans_verification *made) {
    long double squares = 0, radii = 0;
    for (int64_t centre = 0; centre < c->k && c->clusters; centre++) {
        const long double off = fabsl(c->squares[centre] - c->clusters[3 * centre + 1]) - c->tied[centre];
        squares = fmaxl(squares, off - made->inertia_rounding);
        radii = fmaxl(radii, radius_error(c, centre));
    }
    if (squares > 0) squares /= made->inertia;
    made->squares = c->clusters ? (double)squares : (double)NAN;
    made->clusters = 0;
    for (int64_t centre = 0; centre < c->k; centre++) made->clusters += c->totals[centre] > 0;
    made->radii = c->clusters ? (double)radii : (double)NAN;
}

static void judge(const struct clustering *c, kiln_kmeans_verification *made) {
    long double total = 0, scale = 0, moved = 0, worst = 0;
    for (int64_t centre = 0; centre < c->k; centre++) {
        total += c->totals[centre];
        moved += move_of(c, centre);
    }
    for (int64_t j = 0; j < c->n && total > 0; j++)
        scale += (c->square[j] - c->mean[j] * c->mean[j] / total) / total / (long double)c->n;
    for (int64_t centre = 0; centre < c->k && c->clusters; centre++)
        worst = fmaxl(worst, fabsl(c->totals[centre] - c->clusters[3 * centre]) - c->ties[centre]);
    made->residual = (double)(scale > 0 ? moved / scale : moved);
    made->weights = c->clusters ? (double)(worst / total) : (double)NAN;
    bound_rounding(c, made, moved, scale);
    judge_clusters(c, made);
}

kiln_status kiln_verify_kmeans(kiln_kmeans_verification *result, const kiln_matrix *centres,
                               const kiln_matrix *X, const kiln_kmeans_options *options) {
    static const char call[] = "kiln_verify_kmeans";
    kiln_kmeans_options own;
    kiln_kmeans_verification made = {0};
    struct clustering c = {0};
    kiln_status status;
    if (!result || !centres || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_kmeans_options, &own, options));
    TRY(KI_CHECK_RESULT(kiln_kmeans_verification, result));
    TRY(load(&c, centres, X, &own));
    walk(&c, &made);
    judge(&c, &made);
    TRY(ki_copy_check(&c.X));
    KI_GIVE(kiln_kmeans_verification, result, &made);
done:
    ki_copy_free(&c.X);
    ki_free(c.centres);
    ki_free(c.weights);
    ki_free(c.labels);
    ki_free(c.clusters);
    ki_free(c.row);
    return status;
}
