/* A layout's stress again, and that of the layout after one more iteration, in plain loops in long double over all pairs. */
#include "algorithms/verify/verify.h"

struct layout {
    struct ki_copy X;
    int64_t n, p;
    double *Y, *weights; /* weights NULL: ones */
    long double *next;
    const kiln_mds_options *options;
    bool partial;     /* some pairs do not count, or not alike: the next layout takes a system of equations */
    long double a, b; /* disparities a + b delta */
};

/* Weight and dissimilarity of a pair; weight 0 where it is missing. */
static long double pair_of(long double *delta, const struct layout *l, int64_t i, int64_t j) {
    const int64_t q = l->X.cols;
    const long double w = l->weights ? l->weights[i * l->n + j] : 1;
    long double square = 0;
    if (l->options->dissimilarities) {
        *delta = l->X.x[i * q + j];
        return isnan(l->X.x[i * q + j]) ? 0 : w;
    }
    for (int64_t c = 0; c < q; c++) {
        const long double apart = (long double)l->X.x[i * q + c] - (long double)l->X.x[j * q + c];
        square += apart * apart;
    }
    *delta = sqrtl(square);
    return w;
}

static long double distance(const struct layout *l, const long double *next, int64_t i, int64_t j) {
    long double square = 0;
    for (int64_t c = 0; c < l->p; c++) {
        const int64_t at = i * l->p + c, other = j * l->p + c;
        const long double apart =
            next ? next[at] - next[other] : (long double)l->Y[at] - (long double)l->Y[other];
        square += apart * apart;
    }
    return sqrtl(square);
}

/* The line through (delta, d) with a + b least >= 0 and b >= 0, scaled so that sum w (a + b delta)^2 = sum w. */
static void fit_line(struct layout *l, const long double *next) {
    long double least = INFINITY, w_sum = 0, x = 0, xx = 0, d_sum = 0, xd = 0, delta, alpha, beta;
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = i + 1; j < l->n; j++)
            if (pair_of(&delta, l, i, j) > 0) least = fminl(least, delta);
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = i + 1; j < l->n; j++) {
            const long double w = pair_of(&delta, l, i, j), d = distance(l, next, i, j),
                              above = delta - least;
            if (!(w > 0)) continue;
            w_sum += w, x += w * above, xx += w * above * above, d_sum += w * d, xd += w * above * d;
        }
    const long double determinant = w_sum * xx - x * x;
    alpha = determinant > 0 ? (xx * d_sum - x * xd) / determinant : d_sum / w_sum;
    beta = determinant > 0 ? (w_sum * xd - x * d_sum) / determinant : 0;
    if (alpha < 0) alpha = 0, beta = xd / xx;
    if (beta < 0) beta = 0, alpha = d_sum / w_sum;
    const long double squares = alpha * alpha * w_sum + 2 * alpha * beta * x + beta * beta * xx;
    const long double scale = squares > 0 ? sqrtl(w_sum / squares) : 1;
    l->b = scale * beta;
    l->a = scale * alpha - l->b * least;
}

/* Of Y, or of `next`; made: where the next layout is added up, or NULL. */
static long double stress_of(struct layout *l, const long double *next, long double *made) {
    long double stress = 0, delta;
    if (l->options->metric == KILN_MDS_INTERVAL) fit_line(l, next);
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = i + 1; j < l->n; j++) {
            const long double w = pair_of(&delta, l, i, j), d = distance(l, next, i, j),
                              wanted = l->a + l->b * delta;
            if (w != 1) l->partial = true;
            if (!(w > 0)) continue;
            stress += w * (wanted - d) * (wanted - d);
            for (int64_t c = 0; c < l->p && made && d > 0; c++) {
                const long double apart = (long double)l->Y[i * l->p + c] - (long double)l->Y[j * l->p + c];
                made[i * l->p + c] += wanted / d * apart / (long double)l->n;
                made[j * l->p + c] -= wanted / d * apart / (long double)l->n;
            }
        }
    return stress;
}

kiln_status kiln_verify_mds(kiln_mds_verification *result, const kiln_matrix *Y, const kiln_matrix *X,
                            const kiln_mds_options *options) {
    static const char call[] = "kiln_verify_mds";
    kiln_status status;
    kiln_mds_options own;
    struct layout l = {.options = &own, .b = 1};
    kiln_mds_verification made = {.stress = NAN, .fall = NAN};
    if (!result || !Y || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_mds_options, &own, options));
    TRY(KI_CHECK_RESULT(kiln_mds_verification, result));
    l.n = kiln_matrix_rows(Y), l.p = kiln_matrix_cols(Y);
    TRY(ki_check_matrix(call, "Y", Y, X, kiln_matrix_rows(X), l.p));
    if (kiln_matrix_format(X) != KILN_DENSE || (own.dissimilarities && kiln_matrix_cols(X) != l.n))
        TRY(ki_fail(KILN_ERR_ARGUMENT, "%s: X must be dense, and square where it holds dissimilarities",
                    call));
    TRY(ki_copy_take(&l.X, X));
    TRY(ki_copy_vector(&l.Y, Y));
    if (own.weights) {
        TRY(ki_check_matrix(call, "weights", own.weights, X, l.n, l.n));
        TRY(ki_copy_vector(&l.weights, own.weights));
    }
    if (!(l.next = ki_calloc((size_t)(l.n * l.p) * sizeof *l.next)))
        TRY(ki_fail_nomem((size_t)(l.n * l.p) * sizeof *l.next, "a layout to verify"));
    if (own.metric != KILN_MDS_ORDINAL) {
        const long double stress = stress_of(&l, NULL, l.next);
        made.stress = (double)stress;
        if (!l.partial)
            made.fall = stress > 0 ? (double)((stress - stress_of(&l, l.next, NULL)) / stress) : 0;
    }
    KI_GIVE(kiln_mds_verification, result, &made);
done:
    ki_copy_free(&l.X);
    ki_free(l.Y);
    ki_free(l.weights);
    ki_free(l.next);
    return status;
}
