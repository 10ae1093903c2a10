/* This file says what of the first gradient is more than rounding, column by column: where nothing is, the
 * origin is the solution. With u the rounding unit, entry j is off by
 *
 *   c u slope (sum_i s_i x_ij^2)^(1/2) + u each (sum_i s_i (x_ij - mean_j)^2)^(1/2),
 *   slope^2 = sum_i s_i loss_i'^2,   each^2 = sum_i s_i (8 size_i + 2 curvature_i (|b| + |offset_i|))^2,
 *
 * by Cauchy and Schwarz. The first part is what adding up loses: c is what a sum of so many terms does
 * (ki_units), but 32 at most, as sums are made in parts. The second part is what a row's derivative is off
 * by, whose formula loses some units of its terms, and its predictor of its own. That goes into the sum and
 * into the mean's share of it alike, so that the distance from the mean counts.
 *
 * A generalised linear model's rows are looked at one by one: a loss is known but for a constant, which for a
 * Tweedie power near 2 is ten times what the derivative comes from, and for counts of e makes losses 0. All
 * other losses are 0 at their least, and a row's derivative is about the root of its loss and curvature. */
#include "algorithms/newton/newton_work.h"
#include "algorithms/verify/verify.h"

struct rounding {
    double slope, each; /* in the gradient's unit, u and c in them */
};

kiln_status ki_newton_predictors(double *eta, double *size, const struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const int64_t rows = kiln_matrix_rows(newton->X);
    struct ki_arena arena = {0};
    double largest, b = 0, shift = 0;
    TRY(kiln_norm(&largest, work->here.at.w, KILN_NORM_MAX));
    if (largest > 0) {
        kiln_matrix *Eta = ki_arena_rows(&arena, newton->X, 1);
        TRY(arena.status);
        TRY(kiln_multiply(Eta, 1, KILN_PLAIN, newton->X, work->here.at.w, 0, NULL));
        TRY(ki_vector_get(eta, Eta));
        work->newton->run.report.passes++;
    }
    if (work->mean) TRY(ki_vector_get(&b, work->here.at.b));
    if (work->mean) TRY(kiln_dot(&shift, work->mean, work->here.at.w));
    if (work->problem.offset) TRY(ki_vector_get(size, work->problem.offset));
    for (int64_t i = 0; i < rows; i++) {
        const double offset = size[i];
        size[i] = fabs(eta[i]) + fabs(b - shift) + fabs(offset);
        eta[i] += b - shift + offset;
    }
done:
    return ki_arena_free(&arena, status);
}

static kiln_status rounding_measure_rows(struct rounding *rounding, const struct ki_newton_work *work,
                                         double unit, double sums) {
    enum { FORMULA = 8 }; /* units of a derivative's terms */
    kiln_status status;
    const int64_t rows = kiln_matrix_rows(work->newton->X);
    double slopes = 0, parts = 0;
    struct ki_arena arena = {0};
    double *eta = ki_arena_reals(&arena, 4 * rows);
    TRY(arena.status);
    double *size = eta + rows, *y = size + rows, *s = y + rows;
    TRY(ki_newton_predictors(eta, size, work));
    TRY(ki_vector_get(y, work->problem.y));
    for (int64_t i = 0; i < rows; i++) s[i] = 1;
    if (work->problem.weights) TRY(ki_vector_get(s, work->problem.weights));
    for (int64_t i = 0; i < rows; i++) {
        struct ki_verify_slope at;
        const long double predictor = eta[i];
        if (s[i] == 0) continue;
        ki_verify_loss(&at, &work->problem, y[i], &predictor, 1);
        const double part = (double)(FORMULA * at.size + 2 * at.curvature * size[i]);
        slopes += s[i] * (double)(at.value * at.value);
        parts += s[i] * part * part;
    }
    rounding->slope = sums * sqrt(slopes);
    rounding->each = unit * sqrt(parts);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status rounding_measure(struct rounding *rounding, const struct ki_newton_work *work) {
    const struct ki_newton *newton = work->newton;
    const kiln_type type = kiln_matrix_type(newton->X);
    const double unit = ki_epsilon(type) / 2,
                 sums = fmin(32 * unit, ki_units(kiln_matrix_rows(newton->X), type));
    if (work->problem.kind == KILN_LOSS_GLM) return rounding_measure_rows(rounding, work, unit, sums);
    const double curvature = work->total / newton->columns.weight;
    *rounding = (struct rounding){32 * unit * sqrt(fmin(curvature, 1) * fabs(work->here.loss)), 0};
    return KILN_OK;
}

/* Returns what is left of a gradient's entry, with l1 of the least subgradient's. */
static double rounding_left_of(double g, double w, double l1, double rounding) {
    const double least = w == 0 ? fmax(fabs(g) - l1, 0) : fabs(g + copysign(l1, w));
    return fmax(least - rounding, 0);
}

/* Class c alone is looked at: values are the gradient, the point and D^-2, n x k each, and the l1 term's,
 * n. */
static double rounding_beyond(const struct ki_newton *newton, const struct rounding *rounding,
                              const double *values, int64_t c) {
    const int64_t n = kiln_matrix_cols(newton->X), k = newton->k;
    const double *g = values, *w = g + n * k, *inverse = w + n * k, *l1 = inverse + n * k;
    double sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double off = rounding->slope * sqrt(newton->columns.square[j]) +
                           rounding->each * sqrt(ki_newton_spread(newton, j)),
                     left = rounding_left_of(g[j * k + c], w[j * k + c], l1[j], off);
        sum += left * left * inverse[j * k + c];
    }
    return sum;
}

/* The intercepts' part: that of a column of ones. */
static kiln_status rounding_beyond_intercepts(const struct ki_newton_work *work,
                                              const struct rounding *rounding, double *sum) {
    kiln_status status;
    struct ki_arena arena = {0};
    const struct ki_newton *newton = work->newton;
    double *g = ki_arena_doubles(&arena, newton->k);
    TRY(arena.status);
    TRY(ki_vector_get(g, work->here.gradient.b));
    for (int64_t c = 0; c < newton->k; c++) {
        const double left =
            rounding_left_of(g[c], 0, 0, (rounding->slope + rounding->each) * sqrt(newton->columns.weight));
        *sum += left * left * work->scale / work->total;
    }
done:
    return ki_arena_free(&arena, status);
}

/* The square of a generalised linear model's mean at intercept b over its variance: targets that all are it
 * leave as much of a gradient in the units of their rounding, whatever is left of the loss. */
static double certainty_at(const kiln_loss *loss, double b) {
    const struct ki_response at = ki_verify_response(loss, b);
    const double mean = (double)at.mu, variance = (double)ki_verify_variance(loss, &at);
    return variance > 0 && isfinite(mean * mean / variance) ? mean * mean / variance : 0;
}

bool ki_newton_may_be_rounding(const struct ki_newton_work *work, double noise, double b) {
    const double weight = work->newton->columns.weight, curvature = work->total / weight,
                 loss = fabs(work->here.loss);
    if (work->problem.kind != KILN_LOSS_GLM) return work->norm <= noise * sqrt(loss);
    /* which has constants in the loss, where they may cancel */
    const double units = weight * certainty_at(&work->problem, b) / fmin(curvature, 1);
    return work->norm <= noise * sqrt((loss + work->total) * fmax(curvature, 1) + units);
}

kiln_status ki_newton_beyond_rounding(const struct ki_newton_work *work, double *norm) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const int64_t count = kiln_matrix_nnz(work->here.at.w);
    struct rounding rounding = {0, 0};
    struct ki_arena arena = {0};
    double sum = 0, *values = ki_arena_reals(&arena, 4 * count);
    TRY(arena.status);
    TRY(rounding_measure(&rounding, work));
    TRY(ki_vector_get(values, work->here.gradient.w));
    TRY(ki_vector_get(values + count, work->here.at.w));
    TRY(ki_vector_get(values + 2 * count, work->criterion.w));
    if (work->l1) TRY(ki_vector_get(values + 3 * count, work->l1));
    for (int64_t c = 0; c < newton->k; c++) sum += rounding_beyond(newton, &rounding, values, c);
    if (work->criterion.b) TRY(rounding_beyond_intercepts(work, &rounding, &sum));
    *norm = sqrt(sum);
done:
    return ki_arena_free(&arena, status);
}
