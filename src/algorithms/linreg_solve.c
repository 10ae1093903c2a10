/* Conjugate gradient on the centred normal equations, k targets in lock step, inside iterative refinement.
 *
 * The trick is to centre without a second pass: (X - 1 mu^T)^T S (X - 1 mu^T) p = X^T S (X p) - weight * mu
 * (mu^T p), one mmchain and a rank-one term. That difference cancels where a mean dwarfs its spread, so CG's
 * recurrences are trusted for a cycle only: then residual and gradient are computed afresh from y - X w - b,
 * which does not cancel, and if they miss the tolerance another cycle corrects w. Cycles after the first
 * centre the rows of X p instead: a second pass, but no cancellation.
 *
 * k recurrences share each pass; a target that has converged, or broken down, takes steps of length 0. */
#include "algorithms/linreg.h"

enum { STALLS = 2 }; /* cycles without a factor of 2 that make a target give up */

/* Arrays have an entry a target. The norm is || D^-1 g ||, the quantity the tolerance is about. */
struct block {
    struct ki_system *system;
    int k;
    const kiln_matrix *y; /* m x k */
    kiln_matrix *R, *SR;  /* m x k: y - X W - b, also work space; s times that (R itself without weights) */
    kiln_matrix *W, *E;   /* n x k: the solution so far; the correction a cycle computes, then the former W */
    kiln_matrix *G;       /* n x k: minus the gradient, true after check, by recurrence within a cycle */
    kiln_matrix *P, *Q, *Z; /* n x k: direction; H P; D^-2 G and work space */
    double one[KI_BLOCK], b[KI_BLOCK];
    double reference[KI_BLOCK]; /* the norm at w = 0 */
    double norm[KI_BLOCK], rss[KI_BLOCK], objective[KI_BLOCK];
    double zero[KI_BLOCK]; /* the objective at w = 0 */
    double best[KI_BLOCK]; /* the smallest norm, for telling a stall */
    int stalls[KI_BLOCK];
    bool active[KI_BLOCK], diverged;
    bool rowwise; /* centre the rows of X p, at the price of a second pass */
    int64_t iterations;
};

static kiln_status block_new(struct block *t) {
    kiln_status status;
    const struct ki_system *system = t->system;
    kiln_device *device = kiln_matrix_device(system->X);
    const kiln_type type = kiln_matrix_type(system->X);
    const int64_t rows = kiln_matrix_rows(system->X), cols = kiln_matrix_cols(system->X);
    kiln_matrix **const small[5] = {&t->E, &t->G, &t->P, &t->Q, &t->Z};
    for (int i = 0; i < 5; i++) TRY(kiln_matrix_dense(small[i], device, type, cols, t->k, NULL));
    TRY(kiln_matrix_dense(&t->R, device, type, rows, t->k, NULL));
    if (system->options.weights)
        TRY(kiln_matrix_dense(&t->SR, device, type, rows, t->k, NULL));
    else
        t->SR = t->R;
    for (int j = 0; j < t->k; j++) t->one[j] = 1;
done:
    return status;
}

static void block_free(struct block *t) {
    if (t->SR != t->R) kiln_matrix_free(t->SR);
    kiln_matrix *const all[6] = {t->R, t->E, t->G, t->P, t->Q, t->Z};
    for (int i = 0; i < 6; i++) kiln_matrix_free(all[i]);
}

/* beta * (*z) = L A. Uses Z. */
static kiln_status penalise(const struct block *t, double *beta, const kiln_matrix **z,
                            const kiln_matrix *A) {
    *beta = t->system->options.l2;
    *z = A;
    if (!t->system->penalty) return KILN_OK;
    *beta = 1;
    *z = t->Z;
    return kiln_times(t->Z, A, t->system->penalty);
}

/* A -= (column means of A, weighted) on each row; adds them to b if given. */
static kiln_status centre_rows(const struct block *t, kiln_matrix *A, double *b) {
    kiln_status status;
    double shift[KI_BLOCK];
    TRY(kiln_dot(shift, A, t->system->s));
    for (int j = 0; j < t->k; j++) {
        shift[j] /= -t->system->weight;
        if (b) b[j] -= shift[j];
    }
    TRY(kiln_combine(A, t->one, A, shift, t->system->ones));
done:
    return status;
}

/* A = (X - 1 mu^T)^T C + beta z, for C whose columns sum to zero but for rounding: that little must not be
 * magnified by the means. */
static kiln_status scatter(const struct block *t, kiln_matrix *A, const kiln_matrix *C, double beta,
                           const kiln_matrix *z) {
    kiln_status status;
    const struct ki_system *system = t->system;
    double sum[KI_BLOCK];
    TRY(kiln_multiply(A, 1, KILN_TRANSPOSED, system->X, C, beta, z));
    if (system->options.no_intercept) return KILN_OK;
    TRY(kiln_dot(sum, C, system->ones));
    for (int j = 0; j < t->k; j++) sum[j] = -sum[j];
    TRY(kiln_combine(A, t->one, A, sum, system->mean));
done:
    return status;
}

/* norm_j = || D^-1 G_j ||, leaving D^-2 G in Z. */
static kiln_status precondition(const struct block *t, double *norm) {
    kiln_status status;
    TRY(kiln_times(t->Z, t->G, t->system->inverse));
    TRY(kiln_dot(norm, t->G, t->Z));
    for (int j = 0; j < t->k; j++) norm[j] = sqrt(norm[j]);
done:
    return status;
}

/* Residual, intercept, gradient, norm and objective of W, all from y - X W - b. The former b is subtracted
 * before X W is, as far fewer digits cancel than after; the means of what remains then correct it. */
static kiln_status check(struct block *t, bool zero) {
    kiln_status status;
    struct ki_system *system = t->system;
    const bool intercept = !system->options.no_intercept;
    const kiln_matrix *z;
    double minus_b[KI_BLOCK], square[KI_BLOCK], beta;
    for (int j = 0; j < t->k; j++) {
        if (kiln_matrix_type(system->X) == KILN_F32) t->b[j] = (float)t->b[j];
        minus_b[j] = -t->b[j];
    }
    TRY(kiln_combine(t->R, minus_b, system->ones, t->one, t->y));
    if (!zero) TRY(kiln_multiply(t->R, -1, KILN_PLAIN, system->X, t->W, 1, t->R));
    if (intercept) TRY(centre_rows(t, t->R, t->b));
    if (t->SR != t->R) TRY(kiln_times(t->SR, t->R, system->s));
    TRY(kiln_dot(t->rss, t->SR, t->R));
    TRY(penalise(t, &beta, &z, t->W));
    TRY(kiln_dot(square, t->W, z));
    TRY(scatter(t, t->G, t->SR, -beta, z));
    system->passes += zero ? 1 : 2;
    TRY(precondition(t, t->norm));
    for (int j = 0; j < t->k; j++) t->objective[j] = 0.5 * (t->rss[j] + beta * square[j]);
done:
    return status;
}

/* Q = H P. */
static kiln_status apply(struct block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    const kiln_matrix *z;
    double beta, product[KI_BLOCK];
    TRY(penalise(t, &beta, &z, t->P));
    if (t->rowwise) {
        TRY(kiln_multiply(t->R, 1, KILN_PLAIN, system->X, t->P, 0, NULL));
        TRY(centre_rows(t, t->R, NULL));
        if (system->options.weights) TRY(kiln_times(t->R, t->R, system->s));
        TRY(scatter(t, t->Q, t->R, beta, z));
        system->passes += 2;
        return KILN_OK;
    }
    TRY(kiln_mmchain(t->Q, 1, system->X, system->options.weights, t->P, beta, z));
    system->passes++;
    if (system->options.no_intercept) return KILN_OK;
    TRY(kiln_dot(product, t->P, system->mean));
    for (int j = 0; j < t->k; j++) product[j] *= -system->weight;
    TRY(kiln_combine(t->Q, t->one, t->Q, product, system->mean));
done:
    return status;
}

/* The criterion, relative to the gradient at w = 0; 0 where that is 0 and so w = 0 is the solution. */
static double relative(const struct block *t, const double *norm) {
    double largest = 0;
    for (int j = 0; j < t->k; j++) {
        const double ratio = t->reference[j] == 0 ? 0 : norm[j] / t->reference[j];
        if (isnan(ratio) || ratio > largest) largest = ratio;
    }
    return largest;
}

static double total(const double *values, int count) {
    double all = 0;
    for (int j = 0; j < count; j++) all += values[j];
    return all;
}

/* A trace row for the iteration, and the user's say. */
static kiln_status record(struct block *t, const double *norm) {
    struct ki_system *system = t->system;
    const kiln_trace_row row = {.iteration = system->report.iterations,
                                .residual = relative(t, norm),
                                .objective = total(t->objective, t->k),
                                .seconds = ki_clock() - system->start};
    kiln_status status = ki_report_row(&system->report, &row);
    const kiln_control *control = &system->options.control;
    if (status != KILN_OK || !control->progress) return status;
    const kiln_progress now = {.phase = "solve",
                               .done = row.iteration,
                               .total = system->options.max_iterations * system->blocks,
                               .objective = row.objective,
                               .residual = row.residual,
                               .seconds = row.seconds,
                               .bytes = system->passes * system->bytes};
    if (control->progress(control->user, &now)) system->cancelled = true;
    return KILN_OK;
}

static bool any_active(const struct block *t) {
    for (int j = 0; j < t->k; j++)
        if (t->active[j]) return true;
    return false;
}

/* Where a cycle ends: at half the tolerance, so that recurrence and truth may differ a little, but not below
 * the rounding in the gradient it began with. Fitting that noise, CG would fill the directions that collinear
 * columns leave free. */
static double goal(const struct block *t, int j) {
    const double noise = 64 * ki_epsilon(kiln_matrix_type(t->system->X));
    return fmax(0.5 * t->system->options.tolerance * t->reference[j], noise * t->norm[j]);
}

/* One step of the active targets: E += alpha P, G -= alpha Q. A direction in which H is not positive, or a
 * number that is not finite, ends the target's part in the cycle: what it has so far stands, and the check
 * that follows judges it. */
static kiln_status step(struct block *t, double *norm) {
    kiln_status status;
    double curvature[KI_BLOCK], alpha[KI_BLOCK], minus_alpha[KI_BLOCK], next[KI_BLOCK], beta[KI_BLOCK],
        keep[KI_BLOCK];
    TRY(apply(t));
    TRY(kiln_dot(curvature, t->P, t->Q));
    for (int j = 0; j < t->k; j++) {
        const double rho = norm[j] * norm[j];
        t->active[j] = t->active[j] && curvature[j] > 0 && isfinite(rho / curvature[j]);
        alpha[j] = t->active[j] ? rho / curvature[j] : 0;
        minus_alpha[j] = -alpha[j];
        t->objective[j] -= 0.5 * alpha[j] * rho;
    }
    TRY(kiln_combine(t->E, t->one, t->E, alpha, t->P));
    TRY(kiln_combine(t->G, t->one, t->G, minus_alpha, t->Q));
    TRY(precondition(t, next));
    for (int j = 0; j < t->k; j++) {
        beta[j] = t->active[j] ? next[j] / norm[j] * (next[j] / norm[j]) : 0;
        if (t->active[j]) norm[j] = next[j];
        t->active[j] = t->active[j] && isfinite(beta[j]) && norm[j] > goal(t, j);
        keep[j] = t->active[j] ? 1 : 0;
        if (!t->active[j]) beta[j] = 0;
    }
    TRY(kiln_combine(t->P, keep, t->Z, beta, t->P));
done:
    return status;
}

/* CG for the correction H E = G of the active targets, from E = 0. */
static kiln_status cycle(struct block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    double norm[KI_BLOCK], keep[KI_BLOCK];
    for (int j = 0; j < t->k; j++) {
        norm[j] = t->norm[j];
        keep[j] = t->active[j] ? 1 : 0;
    }
    TRY(kiln_fill(t->E, 0));
    TRY(kiln_times(t->Z, t->G, system->inverse));
    TRY(kiln_combine(t->P, keep, t->Z, NULL, NULL));
    while (any_active(t) && !system->cancelled && t->iterations < system->options.max_iterations) {
        TRY(step(t, norm));
        t->iterations++;
        system->report.iterations++;
        TRY(record(t, norm));
    }
done:
    return status;
}

/* Judges the corrected solution of the targets that took part; false for one that must go back to what it
 * was. */
static bool improved(struct block *t, int j, double norm_before, double objective_before) {
    if (!isfinite(t->norm[j]) || !isfinite(t->objective[j])) {
        t->diverged = true;
        return false;
    }
    if (t->norm[j] <= 0.5 * t->best[j])
        t->stalls[j] = 0;
    else
        t->stalls[j]++;
    if (t->norm[j] < t->best[j]) t->best[j] = t->norm[j];
    const double noise = 1000 * ki_epsilon(kiln_matrix_type(t->system->X));
    if (t->objective[j] > objective_before + noise * t->zero[j]) return false;
    return t->norm[j] < norm_before || t->objective[j] < objective_before * (1 - noise);
}

static void swap(struct block *t) {
    kiln_matrix *former = t->W;
    t->W = t->E;
    t->E = former;
}

/* One cycle and its check. CG lowers the objective at every step but not the norm, so either is an
 * improvement, but never a higher objective; a target without one gets its former coefficients back, and gives up unless a row-wise cycle
 * has yet to be tried. */
static kiln_status refine(struct block *t) {
    kiln_status status;
    double norm[KI_BLOCK], objective[KI_BLOCK], keep[KI_BLOCK], revert[KI_BLOCK];
    bool took_part[KI_BLOCK] = {false}, reverted = false;
    const bool last_resort = t->rowwise || t->system->options.no_intercept;
    for (int j = 0; j < t->k; j++) {
        norm[j] = t->norm[j];
        objective[j] = t->objective[j];
        took_part[j] = t->active[j];
    }
    TRY(cycle(t));
    TRY(kiln_combine(t->E, t->one, t->W, t->one, t->E));
    swap(t);
    TRY(check(t, false));
    for (int j = 0; j < t->k; j++) {
        const bool good = !took_part[j] || improved(t, j, norm[j], objective[j]);
        keep[j] = good ? 1 : 0;
        revert[j] = good ? 0 : 1;
        if (!good && last_resort) t->stalls[j] = STALLS;
        reverted = reverted || !good;
    }
    if (reverted) {
        TRY(kiln_combine(t->W, keep, t->W, revert, t->E));
        TRY(check(t, false));
    }
    kiln_trace_row *last = &t->system->report.trace[t->system->report.trace_count - 1];
    last->residual = relative(t, t->norm);
    last->objective = total(t->objective, t->k);
    t->rowwise = !t->system->options.no_intercept;
done:
    return status;
}

/* The total sum of squares, and with it the objective and the reference gradient at w = 0. A y that is
 * constant, or a gradient that is zero, but for rounding, is taken for what it is: then w = 0 is the
 * solution, and t->reference is 0. */
static kiln_status measure_zero(struct block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    const double epsilon = ki_epsilon(kiln_matrix_type(system->X));
    double mean[KI_BLOCK] = {0}, tss[KI_BLOCK];
    TRY(check(t, true));
    if (system->options.no_intercept) {
        TRY(centre_rows(t, t->R, mean));
        if (t->SR != t->R) TRY(kiln_times(t->SR, t->R, system->s));
    }
    TRY(kiln_dot(tss, t->SR, t->R));
    for (int j = 0; j < t->k; j++) {
        const double level = t->b[j] + mean[j]; /* one of them is the mean of y, the other 0 */
        const bool constant = tss[j] <= 64 * epsilon * epsilon * (tss[j] + system->weight * level * level);
        if (!constant) system->report.tss += tss[j];
        const bool none = (constant && !system->options.no_intercept) ||
                          t->norm[j] <= 16 * epsilon * sqrt(system->magnification * t->rss[j]);
        t->reference[j] = none && isfinite(t->rss[j]) ? 0 : t->norm[j];
        t->zero[j] = t->objective[j];
    }
done:
    return status;
}

/* Row 0 of the trace: w = 0, or the given coefficients without those of columns that are left out. */
static kiln_status start(struct block *t) {
    kiln_status status;
    double keep[KI_BLOCK];
    swap(t); /* E is all zeros */
    TRY(measure_zero(t));
    if (t->system->options.warm_start) {
        swap(t);
        for (int j = 0; j < t->k; j++) keep[j] = t->reference[j] > 0 ? 1 : 0;
        TRY(kiln_times(t->W, t->W, t->system->kept));
        TRY(kiln_combine(t->W, keep, t->W, NULL, NULL));
        TRY(check(t, false));
    }
    for (int j = 0; j < t->k; j++) {
        t->best[j] = t->norm[j];
        if (!isfinite(t->norm[j]) || !isfinite(t->objective[j])) t->diverged = true;
    }
    TRY(record(t, t->norm));
done:
    return status;
}

static bool met(const struct block *t, int j) {
    return t->reference[j] == 0 ||
           (isfinite(t->reference[j]) && t->norm[j] <= t->system->options.tolerance * t->reference[j]);
}

/* Picks the targets that still gain from another cycle. */
static bool choose(struct block *t) {
    for (int j = 0; j < t->k; j++) t->active[j] = !met(t, j) && t->stalls[j] < STALLS && isfinite(t->norm[j]);
    return any_active(t);
}

static void conclude(const struct block *t) {
    kiln_report *report = &t->system->report;
    kiln_stop stop = KILN_STOP_TOLERANCE;
    bool converged = true;
    for (int j = 0; j < t->k; j++) converged = converged && met(t, j);
    if (t->system->cancelled)
        stop = KILN_STOP_CANCELLED;
    else if (t->diverged && !converged)
        stop = KILN_STOP_DIVERGED;
    else if (!converged)
        stop = t->iterations >= t->system->options.max_iterations ? KILN_STOP_ITERATIONS : KILN_STOP_STALLED;
    report->converged = report->converged && converged;
    if (stop > report->stopped_by) report->stopped_by = stop;
    const double residual = relative(t, t->norm);
    if (isnan(residual) || residual > report->residual) report->residual = residual;
    report->objective += total(t->objective, t->k);
    report->rss += total(t->rss, t->k);
}

kiln_status ki_linreg_block(struct ki_system *system, kiln_matrix **W, double *b, const kiln_matrix *y) {
    kiln_status status;
    struct block t = {
        .system = system, .k = (int)kiln_matrix_cols(y), .y = y, .W = *W, .rowwise = system->rowwise};
    TRY(block_new(&t));
    TRY(start(&t));
    while (!system->cancelled && t.iterations < system->options.max_iterations && choose(&t)) TRY(refine(&t));
    conclude(&t);
    for (int j = 0; j < t.k; j++) b[j] = t.b[j];
done:
    *W = t.W;
    block_free(&t);
    return status;
}
