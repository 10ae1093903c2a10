/* This file says what rows are judged by: scores, leverages, residuals, and the errors of predictions.
 *
 * |x~^T R|^2, R by blocks of columns: Z = X R + 1 r^T, r the intercept's row, is squared where it is and its
 * columns are added up, so that no more than a block of Z is ever there. */
#include "algorithms/inference/inference.h"

#include "ops/linear/families.h"
#include "ops/sampled/gamma.h"

/* Columns of a block: their Z takes 128 MB at most. */
static int64_t block_of(const kiln_matrix *X, int64_t count) {
    const double bytes = 1 << 27, row = sizeof(double);
    const double most = bytes / (row * fmax(1, (double)kiln_matrix_rows(X)));
    return (int64_t)fmax(1, fmin(fmin(most, KI_BLOCK), (double)count));
}

/* q += the squares of columns [first, first + k) of X~ R. */
static kiln_status add_squares(kiln_matrix *q, const kiln_matrix *X, const kiln_matrix *ones, const double *R,
                               int64_t count, int64_t first, int64_t k) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(X);
    struct ki_arena arena = {0};
    double *part = ki_arena_doubles(&arena, n * k), constant[KI_BLOCK] = {0};
    kiln_matrix *P = ki_arena_model(&arena, X, n, k), *Z = ki_arena_rows(&arena, X, k),
                *sum = ki_arena_fill(&arena, ki_arena_model(&arena, X, k, 1), 1);
    TRY(arena.status);
    for (int64_t j = 0; j < n; j++) memcpy(part + j * k, R + j * count + first, (size_t)k * sizeof(double));
    for (int64_t c = 0; c < k && count > n; c++) constant[c] = R[n * count + first + c];
    TRY(ki_vector_set(P, part));
    TRY(kiln_combine(Z, constant, ones, NULL, NULL));
    TRY(kiln_multiply(Z, 1, KILN_PLAIN, X, P, 1, Z));
    TRY(kiln_times(Z, Z, Z));
    TRY(kiln_multiply(q, 1, KILN_PLAIN, Z, sum, 1, q));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_inference_squares(double *q, const kiln_matrix *X, const double *R, int64_t count) {
    kiln_status status;
    const int64_t block = block_of(X, count);
    struct ki_arena arena = {0};
    const kiln_matrix *ones = ki_arena_fill(&arena, ki_arena_rows(&arena, X, 1), 1);
    kiln_matrix *made = ki_arena_fill(&arena, ki_arena_rows(&arena, X, 1), 0);
    TRY(arena.status);
    for (int64_t first = 0; first < count; first += block)
        TRY(add_squares(made, X, ones, R, count, first, ki_min(block, count - first)));
    TRY(ki_vector_get(q, made));
done:
    return ki_arena_free(&arena, status);
}

/* 1 where means grow with eta, -1 where they fall. */
static double direction(const kiln_loss *loss) {
    const kiln_link link = ki_link_of(loss);
    const bool falls = link == KILN_LINK_INVERSE || link == KILN_LINK_INVERSE_SQUARED ||
                       (link == KILN_LINK_POWER && loss->link_power < 0);
    return falls ? -1 : 1;
}

/* A row's score, the derivative of its log-likelihood, is of most families u = s (y - mu) mu' / V: the root
 * of Pearson's part s (y - mu)^2 / V times the curvature h = s mu'^2 / V. That of beta, P its precision and
 * nu = 1 - mu, is s P mu' e with
 *   e = log(y / (1 - y)) - psi(P mu) + psi(P nu), of variance v = psi'(P mu) + psi'(P nu),
 * and h = s P^2 mu'^2 v: the root of s e^2 / v times h (Ferrari and Cribari-Neto, J. Appl. Stat. 31,
 * 2004). */
double ki_inference_score(const struct ki_inference_rows *rows, const kiln_loss *loss, int64_t i) {
    const double y = rows->y[i], mean = rows->mean[i], h = rows->curvature[i];
    double error = y - mean, part = rows->D[3 * i + 1];
    if (loss->family == KILN_BETA) {
        const double a = loss->parameter * mean, b = loss->parameter * (1 - mean);
        error = log(y) - log1p(-y) - ki_digamma(a) + ki_digamma(b);
        part = rows->weights[i] * error * error / (ki_trigamma(a) + ki_trigamma(b));
    }
    return (error < 0 ? -direction(loss) : direction(loss)) * sqrt(part * h);
}

kiln_status ki_inference_measure_rows(struct ki_inference_rows *rows, struct ki_arena *arena,
                                      const kiln_matrix *X, const kiln_loss *loss, const kiln_matrix *W,
                                      const kiln_matrix *b) {
    kiln_status status;
    const int64_t m = rows->m = kiln_matrix_rows(X);
    const double one = 1;
    double constant = 0, value;
    struct ki_arena own = {0};
    kiln_loss of_eta = *loss;
    kiln_matrix *Eta = ki_arena_rows(&own, X, 1), *M = ki_arena_rows(&own, X, 1),
                *D = ki_arena_rows(&own, X, 3), *unit = ki_arena_fill(&own, ki_arena_model(&own, X, 1, 1), 1),
                *g = ki_arena_model(&own, X, 1, 1);
    rows->C = ki_arena_rows(arena, X, 1);
    double **const all[] = {&rows->y, &rows->mean, &rows->weights, &rows->curvature};
    for (int i = 0; i < 4; i++) *all[i] = ki_arena_doubles(arena, m);
    rows->D = ki_arena_doubles(arena, 3 * m);
    TRY(own.status);
    TRY(arena->status);
    if (b) TRY(ki_vector_get(&constant, b));
    TRY(kiln_fill(Eta, constant));
    if (loss->offset) TRY(kiln_combine(Eta, &one, Eta, &one, loss->offset));
    TRY(kiln_multiply(Eta, 1, KILN_PLAIN, X, W, 1, Eta));
    TRY(kiln_loss_deviance(D, loss, Eta));
    TRY(kiln_loss_mean(M, loss, Eta));
    of_eta.offset = NULL; /* eta itself is the only column here, of coefficient 1 */
    TRY(ki_loss_expected(&value, g, rows->C, &of_eta, Eta, unit, NULL));
    TRY(ki_vector_get(rows->y, loss->y));
    TRY(ki_vector_get(rows->mean, M));
    TRY(ki_vector_get(rows->curvature, rows->C));
    TRY(ki_vector_get(rows->D, D));
    if (loss->weights) TRY(ki_vector_get(rows->weights, loss->weights));
    for (int64_t i = 0; i < m && !loss->weights; i++) rows->weights[i] = 1;
done:
    return ki_arena_free(&own, status);
}

/* ---- residuals ---- */

/* The seven of a row. */
static void judge_row(double *r, const kiln_inference *inference, const struct ki_inference_rows *rows,
                      int64_t i, double square) {
    const double response = rows->y[i] - rows->mean[i], sign = response < 0 ? -1 : 1;
    const double leverage = rows->curvature[i] * square, left = 1 - leverage;
    r[0] = rows->mean[i];
    r[1] = response;
    r[2] = sign * sqrt(rows->D[3 * i + 1]);
    r[3] = sign * sqrt(rows->D[3 * i]);
    r[4] = leverage;
    r[5] = left > 1e-10 ? r[2] / sqrt(inference->dispersion * left) : (double)NAN;
    r[6] = r[5] * r[5] * leverage / left / inference->parameters;
}

kiln_status kiln_inference_residuals(kiln_matrix *R, const kiln_inference *inference, const kiln_matrix *X,
                                     const kiln_loss *loss) {
    static const char call[] = "kiln_inference_residuals";
    enum { COLUMNS = 7 };
    kiln_status status;
    struct ki_arena arena = {0};
    struct ki_inference_rows rows;
    struct ki_inference_wide wide;
    kiln_loss glm;
    if (!R || !inference || !X || !loss)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: R, inference, X or loss is NULL", call);
    const int64_t m = kiln_matrix_rows(X), n = inference->n, count = inference->count;
    const bool intercept = count > n;
    if (kiln_matrix_cols(X) != n)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: X has %lld columns, the model %lld", call,
                       (long long)kiln_matrix_cols(X), (long long)n);
    TRY(ki_check_matrix(call, "R", R, X, m, COLUMNS));
    TRY(ki_inference_loss(&glm, call, loss));
    TRY(ki_check_matrix(call, "y", glm.y, X, m, 1));
    TRY(ki_inference_widen(&wide, &arena, X, &glm, NULL, NULL));
    kiln_matrix *W = ki_arena_vector(&arena, wide.X, n, inference->values),
                *b = intercept ? ki_arena_vector(&arena, wide.X, 1, inference->values + n) : NULL;
    double *square = ki_arena_doubles(&arena, m), *values = ki_arena_doubles(&arena, COLUMNS * m);
    TRY(arena.status);
    TRY(ki_inference_measure_rows(&rows, &arena, wide.X, &wide.loss, W, b));
    TRY(ki_inference_squares(square, wide.X, inference->hat, count));
    for (int64_t i = 0; i < m; i++) judge_row(values + COLUMNS * i, inference, &rows, i, square[i]);
    TRY(ki_vector_set(R, values));
done:
    return ki_arena_free(&arena, status);
}

/* ---- predictions ---- */

/* |mu'| at Eta: the root of a Gaussian's expected curvature under this link. */
static kiln_status measure_slopes(double *slope, kiln_loss link, const kiln_matrix *Eta) {
    kiln_status status;
    const int64_t m = kiln_matrix_rows(Eta);
    double value;
    struct ki_arena arena = {0};
    kiln_matrix *M = ki_arena_rows(&arena, Eta, 1), *C = ki_arena_rows(&arena, Eta, 1),
                *unit = ki_arena_fill(&arena, ki_arena_model(&arena, Eta, 1, 1), 1),
                *g = ki_arena_model(&arena, Eta, 1, 1);
    TRY(arena.status);
    TRY(kiln_loss_mean(M, &link, Eta));
    link.family = KILN_GAUSSIAN;
    link.y = M;
    TRY(ki_loss_expected(&value, g, C, &link, Eta, unit, NULL));
    TRY(ki_vector_get(slope, C));
    for (int64_t i = 0; i < m; i++) slope[i] = sqrt(slope[i]);
done:
    return ki_arena_free(&arena, status);
}

/* The means at eta + part error, m of them. */
static kiln_status means_at(double *means, const kiln_loss *link, const kiln_matrix *X, const double *eta,
                            double part, const double *error) {
    kiln_status status;
    const int64_t m = kiln_matrix_rows(X);
    struct ki_arena arena = {0};
    kiln_matrix *M = ki_arena_rows(&arena, X, 1);
    TRY(arena.status);
    for (int64_t i = 0; i < m; i++) means[i] = part == 0 ? eta[i] : eta[i] + part * error[i];
    TRY(ki_vector_set(M, means));
    TRY(kiln_loss_mean(M, link, M));
    TRY(ki_vector_get(means, M));
done:
    return ki_arena_free(&arena, status);
}

static kiln_status predict(kiln_matrix *P, const kiln_inference *inference, const kiln_matrix *X,
                           const kiln_matrix *offset, double most) {
    enum { ETA, ERROR, MEAN, SLOPE, LOW, HIGH, COLUMNS };
    kiln_status status;
    const int64_t m = kiln_matrix_rows(X), n = inference->n;
    const kiln_loss link = {.kind = KILN_LOSS_GLM,
                            .family = inference->family,
                            .link = inference->link,
                            .parameter = inference->parameter,
                            .link_power = inference->link_power};
    const double one = 1;
    struct ki_arena arena = {0};
    double *column[COLUMNS], *all = ki_arena_doubles(&arena, COLUMNS * m);
    for (int c = 0; c < COLUMNS; c++) column[c] = ki_arena_doubles(&arena, m);
    kiln_matrix *Eta = ki_arena_rows(&arena, X, 1), *W = ki_arena_vector(&arena, X, n, inference->values);
    TRY(arena.status);
    TRY(kiln_fill(Eta, inference->count > n ? inference->values[n] : 0));
    if (offset) TRY(kiln_combine(Eta, &one, Eta, &one, offset));
    TRY(kiln_multiply(Eta, 1, KILN_PLAIN, X, W, 1, Eta));
    TRY(ki_vector_get(column[ETA], Eta));
    TRY(measure_slopes(column[SLOPE], link, Eta));
    TRY(ki_inference_squares(column[ERROR], X, inference->root, inference->count));
    for (int64_t i = 0; i < m; i++) column[ERROR][i] = sqrt(inference->scale * column[ERROR][i]);
    TRY(means_at(column[MEAN], &link, X, column[ETA], 0, column[ERROR]));
    TRY(means_at(column[LOW], &link, X, column[ETA], -most, column[ERROR]));
    TRY(means_at(column[HIGH], &link, X, column[ETA], most, column[ERROR]));
    for (int64_t i = 0; i < m; i++) {
        const double low = column[LOW][i], high = column[HIGH][i];
        column[SLOPE][i] *= column[ERROR][i];
        column[LOW][i] = low < high ? low : high; /* a falling link */
        column[HIGH][i] = low < high ? high : low;
        for (int c = 0; c < COLUMNS; c++) all[COLUMNS * i + c] = column[c][i];
    }
    TRY(ki_vector_set(P, all));
done:
    return ki_arena_free(&arena, status);
}

kiln_status kiln_inference_predict(kiln_matrix *P, const kiln_inference *inference, const kiln_matrix *X,
                                   const kiln_matrix *offset, double level) {
    static const char call[] = "kiln_inference_predict";
    enum { COLUMNS = 6 };
    kiln_status status;
    const kiln_matrix *wide, *added;
    struct ki_arena arena = {0};
    if (!P || !inference || !X || !(level > 0 && level < 1))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: P, inference or X is NULL, or %g is no level between 0 and 1",
                       call, level);
    if (kiln_matrix_cols(X) != inference->n)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: X has %lld columns, the model %lld", call,
                       (long long)kiln_matrix_cols(X), (long long)inference->n);
    TRY(ki_check_matrix(call, "P", P, X, kiln_matrix_rows(X), COLUMNS));
    if (offset) TRY(ki_check_matrix(call, "offset", offset, X, kiln_matrix_rows(X), 1));
    TRY(ki_information_widen(&wide, &arena, X, NULL));
    TRY(ki_information_widen(&added, &arena, offset, wide));
    TRY(predict(P, inference, wide, added, kiln_student_quantile(level, inference->degrees)));
done:
    return ki_arena_free(&arena, status);
}
