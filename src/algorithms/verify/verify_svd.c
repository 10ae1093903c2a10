/* Singular values and vectors once more, by plain loops with sums in long double: the columns' means and
 * deviations, A v and A^T A v for each v, and whether the power iteration finds anything larger beside V. */
#include "algorithms/certificate/certificate.h"
#include "algorithms/verify/verify.h"

enum { STEPS = 10 };

struct claimed {
    struct ki_copy X;
    int64_t k;
    double *V, *s;
    long double *mean, *deviation, *largest; /* of each column */
    long double *w, *z, *y;                  /* m, n and n */
    int64_t *leader;                         /* of a graph's vertex: another of its component */
    bool graph;
    kiln_type type;
};

static kiln_status load(struct claimed *c, const kiln_matrix *V, const kiln_matrix *s, const kiln_matrix *X) {
    kiln_status status;
    TRY(ki_copy_take(&c->X, X, false));
    TRY(ki_copy_vector(&c->V, V));
    TRY(ki_copy_vector(&c->s, s));
    const int64_t m = c->X.rows, n = c->X.cols;
    long double **const of_columns[] = {&c->mean, &c->deviation, &c->largest, &c->z, &c->y};
    for (int i = 0; i < 5; i++) *of_columns[i] = ki_calloc((size_t)n * sizeof **of_columns[i]);
    c->w = ki_calloc((size_t)m * sizeof *c->w);
    if (!c->mean || !c->deviation || !c->largest || !c->z || !c->y || !c->w)
        TRY(ki_fail_nomem((size_t)(m + 5 * n) * sizeof *c->w, "singular vectors to verify"));
done:
    return status;
}

static void release(struct claimed *c) {
    ki_copy_free(&c->X);
    ki_free(c->V);
    ki_free(c->s);
    ki_free(c->leader);
    long double *const all[] = {c->mean, c->deviation, c->largest, c->w, c->z, c->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ki_free(all[i]);
}

/* Means about zero, and once more about these, so that nothing is left of what cancels; then the deviations.
 * Entries that a sparse X does not store are zeros: they are counted by what is stored. z and y are room. */
static void measure(struct claimed *c, bool center, bool scale, double *total) {
    const int64_t m = c->X.rows, n = c->X.cols;
    long double *const sum = c->z, *const stored = c->y, *const square = c->deviation;
    for (int look = 0; look < 3; look++) { /* the third one adds up the squares about the mean */
        for (int64_t j = 0; j < n; j++) sum[j] = stored[j] = square[j] = 0;
        for (int64_t i = 0; i < m; i++)
            for (int64_t e = 0; e < ki_row_size(&c->X, i); e++) {
                const int64_t j = ki_row_column(&c->X, i, e);
                const long double x = (long double)ki_row_values(&c->X, i)[e], off = x - c->mean[j];
                sum[j] += off;
                square[j] += off * off;
                stored[j]++;
                c->largest[j] = fmaxl(c->largest[j], fabsl(x));
            }
        for (int64_t j = 0; j < n; j++) {
            const long double zeros = (long double)m - stored[j], mean = c->mean[j];
            square[j] += zeros * mean * mean;
            if (look < 2) c->mean[j] += (sum[j] - zeros * mean) / (long double)m;
        }
    }
    *total = 0;
    for (int64_t j = 0; j < n; j++) {
        const long double variance = square[j] / (long double)m, deviation = sqrtl(variance);
        c->deviation[j] =
            scale && deviation > (long double)ki_flat(c->type) * fabsl(c->mean[j]) && deviation > 0
                ? deviation
                : 1;
        *total += (double)(variance / (c->deviation[j] * c->deviation[j]));
        if (!center) c->mean[j] = 0;
    }
    *total *= (double)m / (double)(m > 1 ? m - 1 : 1);
}

/* deviation = sqrt(D), 1 where D is 0: half of each weight is its row's, half its column's. */
static void measure_graph(struct claimed *c) {
    const int64_t n = c->X.cols;
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = 0; e < ki_row_size(&c->X, i); e++) {
            const long double half = (long double)ki_row_values(&c->X, i)[e] / 2;
            c->deviation[i] += half;
            c->deviation[ki_row_column(&c->X, i, e)] += half;
        }
    for (int64_t j = 0; j < n; j++) c->deviation[j] = c->deviation[j] > 0 ? sqrtl(c->deviation[j]) : 1;
}

static int64_t leader_of(const struct claimed *c, int64_t i) {
    while (c->leader[i] != i) i = c->leader[i] = c->leader[c->leader[i]];
    return i;
}

/* Each link leaves one leader less, unless both of its vertices have the same. */
static kiln_status count_components(int64_t *count, struct claimed *c) {
    const int64_t n = *count = c->X.cols;
    if (!(c->leader = ki_alloc((size_t)n * sizeof *c->leader)))
        return ki_fail_nomem((size_t)n * sizeof *c->leader, "a graph's components");
    for (int64_t i = 0; i < n; i++) c->leader[i] = i;
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = 0; e < ki_row_size(&c->X, i); e++) {
            const int64_t a = leader_of(c, i), b = leader_of(c, ki_row_column(&c->X, i, e));
            if (a == b || ki_row_values(&c->X, i)[e] == 0) continue;
            c->leader[a] = b;
            --*count;
        }
    return KILN_OK;
}

/* to = (1 + D^-1/2 S D^-1/2) v / 2 */
static void multiply_graph(struct claimed *c, long double *to, const long double *v) {
    const int64_t n = c->X.cols;
    for (int64_t i = 0; i < n; i++) to[i] = v[i] / 2;
    for (int64_t i = 0; i < n; i++)
        for (int64_t e = 0; e < ki_row_size(&c->X, i); e++) {
            const int64_t j = ki_row_column(&c->X, i, e);
            const long double part =
                (long double)ki_row_values(&c->X, i)[e] / c->deviation[i] / c->deviation[j] / 4;
            to[i] += part * v[j];
            to[j] += part * v[i];
        }
}

/* w = A v; z = A^T w. */
static void multiply(struct claimed *c, const long double *v) {
    const int64_t n = c->X.cols;
    if (c->graph) {
        multiply_graph(c, c->w, v);
        multiply_graph(c, c->z, c->w);
        return;
    }
    long double shift = 0, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        shift += c->mean[j] / c->deviation[j] * v[j];
        c->z[j] = 0;
    }
    for (int64_t i = 0; i < c->X.rows; i++) {
        const double *x = ki_row_values(&c->X, i);
        c->w[i] = -shift;
        for (int64_t e = 0; e < ki_row_size(&c->X, i); e++) {
            const int64_t j = ki_row_column(&c->X, i, e);
            c->w[i] += (long double)x[e] / c->deviation[j] * v[j];
        }
        sum += c->w[i];
        for (int64_t e = 0; e < ki_row_size(&c->X, i); e++)
            c->z[ki_row_column(&c->X, i, e)] += (long double)x[e] * c->w[i];
    }
    for (int64_t j = 0; j < n; j++) c->z[j] = (c->z[j] - c->mean[j] * sum) / c->deviation[j];
}

static long double length(const long double *v, int64_t count) {
    long double most = 0, sum = 0;
    for (int64_t i = 0; i < count; i++) most = fmaxl(most, fabsl(v[i]));
    for (int64_t i = 0; i < count && most > 0; i++) sum += v[i] / most * (v[i] / most);
    return most * sqrtl(sum);
}

static void judge(kiln_svd_verification *made, struct claimed *c) {
    const int64_t n = c->X.cols, k = c->k;
    const long double first = c->s[0], root = sqrtl((long double)ki_epsilon(c->type));
    for (int64_t a = 0; a < k; a++) {
        for (int64_t j = 0; j < n; j++) c->y[j] = c->V[j * k + a];
        multiply(c, c->y);
        const long double s = c->s[a], value = fabsl(length(c->w, c->X.rows) - s) / first;
        for (int64_t j = 0; j < n; j++) c->z[j] = c->z[j] / first - s / first * s * c->y[j];
        const long double rest = length(c->z, n) / fmaxl(s, root * first);
        made->values = fmax(made->values, (double)value);
        made->residual = fmax(made->residual, (double)rest);
    }
}

static void look_at(kiln_svd_verification *made, const struct claimed *c) {
    for (int64_t a = 0; a < c->k; a++)
        for (int64_t b = a; b < c->k; b++) {
            long double sum = a == b ? -1 : 0;
            for (int64_t j = 0; j < c->X.cols; j++)
                sum += (long double)c->V[j * c->k + a] * c->V[j * c->k + b];
            made->orthogonality = fmax(made->orthogonality, (double)fabsl(sum));
        }
}

/* y loses what lies in V, and gets length 1; false where nothing is left. V is orthonormal to its type's
 * digits alone: where little is left of y, so much of V in it would count, so it is taken off until nothing
 * changes any more. */
static bool take_off(struct claimed *c) {
    enum { TURNS = 8 };
    const int64_t n = c->X.cols, k = c->k;
    const long double before = length(c->y, n);
    long double left = before, former = 2 * before;
    for (int turn = 0; turn < TURNS && (turn < 2 || left < former / 2) && left > 1e-12L * before; turn++) {
        for (int64_t a = 0; a < k; a++) {
            long double along = 0;
            for (int64_t j = 0; j < n; j++) along += c->V[j * k + a] * c->y[j];
            for (int64_t j = 0; j < n; j++) c->y[j] -= along * c->V[j * k + a];
        }
        former = left;
        left = length(c->y, n);
    }
    for (int64_t j = 0; j < n && left > 0; j++) c->y[j] /= left;
    return left > 1e-12L * before;
}

static void look_beyond(kiln_svd_verification *made, struct claimed *c) {
    struct ki_draws draws = {.stream = KI_STREAM_SVD};
    for (int64_t j = 0; j < c->X.cols; j++) c->y[j] = ki_draw(&draws) - 0.5;
    for (int step = 0; step < STEPS && take_off(c); step++) {
        multiply(c, c->y);
        made->beyond = (double)(length(c->w, c->X.rows) / c->s[0]);
        for (int64_t j = 0; j < c->X.cols; j++) c->y[j] = c->z[j];
    }
}

/* The largest | given - own | relative to a column's largest entry. */
static kiln_status compare(double *error, const kiln_matrix *given, const long double *own,
                           const struct claimed *c) {
    kiln_status status = KILN_OK;
    double *values = NULL;
    if (!given) return KILN_OK;
    TRY(ki_copy_vector(&values, given));
    for (int64_t j = 0; j < c->X.cols; j++) {
        const long double size = fmaxl(c->largest[j], fabsl(own[j]));
        if (size > 0) *error = fmax(*error, (double)(fabsl(values[j] - own[j]) / size));
    }
done:
    ki_free(values);
    return status;
}

/* Sums in the products of the run lose units of what is added up: rows of A, and where these are differences,
 * of X and of the means; V and s are rounded to the type. */
static void bound(kiln_svd_verification *made, const struct claimed *c) {
    const double units = ki_units(c->X.rows, c->type) + ki_units(c->X.cols, c->type) + ki_units(8, c->type);
    const double root = sqrt(ki_epsilon(c->type)), last = c->s[c->k - 1] / c->s[0];
    long double size = 0;
    for (int64_t j = 0; j < c->X.cols; j++) {
        const long double mean = c->mean[j] / c->deviation[j];
        size += mean * mean * (long double)c->X.rows;
    }
    for (int64_t j = 0; j < c->k; j++) size += (long double)c->s[j] * c->s[j];
    const double part = (double)(sqrtl(size) / c->s[0]);
    made->values_rounding = units * part;
    made->residual_rounding = units * part * (1 + 1 / fmax(last, root));
}

/* Returns whether A is 0, but for what the means' rounding leaves. */
static bool vanishes(const struct claimed *c) {
    for (int64_t i = 0; i < c->X.rows; i++)
        for (int64_t e = 0; e < ki_row_size(&c->X, i); e++) {
            const int64_t j = ki_row_column(&c->X, i, e);
            const long double x = (long double)ki_row_values(&c->X, i)[e];
            if (fabsl(x - c->mean[j]) > (long double)ki_flat(c->type) * fabsl(c->mean[j])) return false;
        }
    return true;
}

kiln_status kiln_verify_svd(kiln_svd_verification *result, const kiln_matrix *V, const kiln_matrix *s,
                            const kiln_matrix *X, const kiln_svd_options *options) {
    static const char call[] = "kiln_verify_svd";
    kiln_status status;
    kiln_svd_options o;
    struct claimed c = {.k = 0};
    kiln_svd_verification made = {0};
    if (!result || !V || !s || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_svd_options, &o, options));
    TRY(KI_CHECK_RESULT(kiln_svd_verification, result));
    if (kiln_matrix_rows(X) == 0 || kiln_matrix_cols(X) == 0)
        TRY(ki_fail(KILN_ERR_DATA, "%s: X is empty", call));
    c.k = kiln_matrix_cols(V);
    c.type = kiln_matrix_type(X);
    TRY(ki_check_matrix(call, "V", V, X, kiln_matrix_cols(X), c.k));
    TRY(ki_check_matrix(call, "s", s, X, c.k, 1));
    TRY(load(&c, V, s, X));
    c.graph = o.graph;
    if (o.graph && c.X.rows != c.X.cols) TRY(ki_fail(KILN_ERR_DATA, "%s: a graph's X must be square", call));
    made.variance = NAN;
    if (o.graph) {
        measure_graph(&c);
        TRY(count_components(&made.components, &c));
    } else
        measure(&c, o.center, o.scale, &made.variance);
    TRY(compare(&made.means, o.center ? o.mean : NULL, c.mean, &c));
    TRY(compare(&made.deviations, o.scale || o.graph ? o.deviation : NULL, c.deviation, &c));
    look_at(&made, &c);
    made.orthogonality_rounding =
        (double)c.k * (ki_units(c.X.rows, c.type) + ki_units(c.X.cols, c.type) + ki_units(8, c.type));
    if (c.s[0] > 0) {
        judge(&made, &c);
        look_beyond(&made, &c);
        bound(&made, &c);
    } else if (!vanishes(&c))
        TRY(ki_fail(KILN_ERR_DATA, "%s: s is 0, but X is not", call));
    TRY(ki_copy_check(&c.X));
    KI_GIVE(kiln_svd_verification, result, &made);
done:
    release(&c);
    return status;
}
