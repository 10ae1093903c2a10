/* The bound of certificate.h at the engine's result, for which the intercepts' gradient has to vanish. It is
 * the sum over the rows of
 * -t_i, of which each row gives away what it has most of, its own curvature h_i:  t_i' = t_i - theta h_i,
 * theta = sum t / sum h.
 * That stays in the losses' range, and what it costs them is of second order:
 *
 *   one column   sum_i s_i (...) <= -log(1 - |theta|) |sum t|   for losses with |loss'''| <= loss'',
 *                |theta| < 1 (Bach, Electron. J. Stat. 4, 2010);  (sum t)^2 / (2 sum s) for least squares
 *   softmax      theta^T M theta, M = sum_i s_i (diag(p_i) - p_i p_i^T), M theta = sum t,
 *                where theta's entries are within 1: the chi squared distance of p_i' from p_i,
 *                which is above that of Kullback and Leibler
 *
 * X^T t' is another one, too: about the columns' means an entry moves by |theta sum_i h_i (x_ij - mean_j)|
 * at most, for which Cauchy and Schwarz need no pass over X: |sum t| sigma_j (sum s max(h/s) / sum h -
 * 1)^(1/2). */
#include "algorithms/cholesky.h"
#include "algorithms/newton/newton.h"

enum { CLASSES = 512 }; /* of softmax at most, as M^-1 takes their cube */

/* Returns how many times the move the cost is asked for: see `settled`. */
static double stretch_of(const struct ki_certificate *at) {
    return at->l2 > 0 || at->quadratic ? 1 : 2;
}

static void settle_column(struct ki_certificate *at, double total, double slope) {
    const double theta = slope == 0 ? 0 : stretch_of(at) * fabs(slope) / total;
    at->settled = theta < 1 ? -log1p(-theta) * fabs(slope) : (double)INFINITY;
    at->drift = theta < 1 ? fabs(slope) * sqrt(fmax(at->weight * at->curvature / total - 1, 0)) : 0;
}

/* `stretch` theta^T M theta from M, which theta = 1 makes nothing of; `values` k x k for M, then k for sum
 * t. */
static double settle_classes(double *values, int64_t k, double stretch) {
    double *U = values, *theta = values + k * k, trace = 0, least = INFINITY, most = -INFINITY, sum = 0;
    double *slopes = theta + k, *scale = slopes + k;
    for (int64_t c = 0; c < k; c++) trace += U[c * k + c];
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i; j < k; j++) U[i * k + j] += trace / (double)(k * k);
    for (int64_t c = 0; c < k; c++) scale[c] = U[c * k + c], slopes[c] = theta[c];
    struct ki_factorisation factor = {.U = U, .size = k, .scale = scale, .part = 1e-13};
    ki_factorise(&factor, INFINITY);
    if (factor.failed || factor.replaced) return INFINITY;
    ki_substitute(U, theta, k);
    for (int64_t c = 0; c < k; c++) {
        sum += theta[c] * slopes[c];
        least = fmin(least, theta[c]);
        most = fmax(most, theta[c]);
    }
    return stretch * (most - least) < 1 ? stretch * fmax(sum, 0) : INFINITY;
}

static kiln_status settle_softmax(struct ki_certificate *at, const struct ki_newton *newton) {
    kiln_status status = KILN_OK;
    const int64_t k = newton->k;
    struct ki_arena arena = {0};
    at->settled = INFINITY;
    if (k > CLASSES) return KILN_OK;
    double *const values = ki_arena_doubles(&arena, k * (k + 3));
    kiln_matrix *const G = ki_arena_model(&arena, newton->X, k, k),
                       *const sums = ki_arena_model(&arena, newton->X, k, 1),
                       *const ones = ki_arena_fill(&arena, ki_arena_rows(&arena, newton->X, 1), 1);
    TRY(arena.status);
    TRY(kiln_gram(G, NULL, newton->C, newton->weights, NULL));
    TRY(kiln_multiply(sums, 1, KILN_TRANSPOSED, newton->C, newton->weights ? newton->weights : ones, 0,
                      NULL));
    TRY(ki_vector_get(values, G));
    TRY(ki_vector_get(values + k * k, sums));
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++)
            values[i * k + j] = (i == j ? values[k * k + i] : 0) - values[i * k + j];
    TRY(ki_vector_get(values + k * k, newton->slopes));
    at->settled = settle_classes(values, k, stretch_of(at));
    at->drift = isfinite(at->settled) ? sqrt(at->weight * at->settled) : 0;
done:
    return ki_arena_free(&arena, status);
}

static kiln_status settle(struct ki_certificate *at, const struct ki_newton *newton) {
    kiln_status status = KILN_OK;
    double total;
    if (newton->no_intercept) return KILN_OK;
    if (newton->k > 1) return settle_softmax(at, newton);
    if (at->quadratic) {
        at->settled = at->slopes[0] * at->slopes[0] / (2 * at->weight);
        return KILN_OK;
    }
    TRY(kiln_norm(&total, newton->C, KILN_NORM_1));
    settle_column(at, total, at->slopes[0]);
done:
    return status;
}

kiln_status ki_newton_describe(struct ki_arena *arena, struct ki_certificate *at,
                               const struct ki_newton *newton) {
    kiln_status status;
    const int64_t k = newton->k, count = kiln_matrix_cols(newton->X) * k;
    double *const w = ki_arena_reals(arena, count), *const g = ki_arena_reals(arena, count),
                  *const b = ki_arena_reals(arena, k), *const slopes = ki_arena_reals(arena, k);
    TRY(arena->status);
    TRY(ki_vector_get(w, newton->W));
    TRY(ki_vector_get(g, newton->gradient));
    TRY(ki_vector_get(b, newton->b));
    if (!newton->no_intercept) TRY(ki_vector_get(slopes, newton->slopes));
    at->X = newton->X;
    at->k = k;
    at->l2 = newton->l2;
    at->l1 = newton->l1;
    at->intercept = !newton->no_intercept;
    at->standardize = newton->standardize;
    at->weight = newton->columns.weight;
    at->square = newton->columns.square;
    at->mean = newton->columns.mean;
    at->variance = newton->columns.variance;
    at->flats = newton->columns.flats;
    at->w = w;
    at->g = g;
    at->b = b;
    at->slopes = slopes;
done:
    return status;
}

kiln_status ki_newton_certify(struct ki_newton *newton, struct ki_certificate *at) {
    kiln_status status;
    struct ki_arena arena = {0};
    if (!(newton->l2 > 0 || newton->l1 > 0) || !isfinite(newton->run.report.objective)) return KILN_OK;
    TRY(ki_newton_describe(&arena, at, newton));
    TRY(settle(at, newton));
    ki_report_certify(&newton->run.report, ki_certificate_gap(at), "duality gap");
done:
    return ki_arena_free(&arena, status);
}
