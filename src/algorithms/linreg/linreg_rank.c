/* The solution of least norm, where X's columns (centred, under an intercept) depend on each other: of all w
 * with the least sum of squares the one with the least sum of squared coefficients, each in the user's unit
 * or, standardised, times its column's spread (its root mean square where it has no spread).
 *
 * By columns: those that the factor (linreg_direct.c) leaves out may depend on the others, as linreg_null.c
 * judges. One that does not is independent, and the whole then has full rank but for those that do depend,
 * though conjugate gradient and not the factor must solve it. The solution loses its part along the vectors
 * that X makes nothing of.
 *
 * By rows, where these are far fewer: w = M^-1 X^T K^-1 X w, K = X M^-1 X^T, M the norm's metric. K is of
 * products with X, from which means are taken afterwards: a row counts as dependent where what is left of it
 * may be the rounding of that. Where neither factor is cheap beside conjugate gradient the rank is not
 * determined; from zero, that ends at the least norm of coefficients times their columns' spreads. */
#include "algorithms/linreg/linreg_block.h"

enum {
    ROUNDS = 2,           /* of projections */
    COLUMN_WORK = 1 << 26 /* multiplications of Gram and Schmidt, where rows are fewer */
};

void ki_rank_undecided(struct ki_rank *rank) {
    *rank = (struct ki_rank){.known = true, .rank = -1, .least = rank->least};
}

/* 1, or of standardised columns the variance; 0 for those that are left out. A column without a spread, which
 * has a coefficient where there is no intercept, goes by its mean square: else the norm of two such columns
 * would be 0 whatever their coefficients are. */
static kiln_status set_metric(struct ki_system *system) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t n = kiln_matrix_cols(system->X);
    double *diagonal = ki_arena_doubles(&arena, n), *metric = ki_run_reals(&system->run, n);
    TRY(arena.status);
    TRY(system->run.arena.status);
    system->rank.metric = metric;
    TRY(ki_vector_get(diagonal, system->options.no_intercept ? system->square : system->centred));
    if (system->options.standardize) TRY(ki_vector_get(metric, system->centred));
    for (int64_t j = 0; j < n; j++) {
        const double square = system->options.standardize && !(metric[j] > 0) ? diagonal[j] : metric[j];
        metric[j] = !(diagonal[j] > 0) ? 0 : !system->options.standardize ? 1 : square / system->weight;
    }
done:
    return ki_arena_free(&arena, status);
}

/* ---- by columns ---- */

static double rank_product(const double *a, const double *b, const double *metric, int64_t n) {
    double sum[4] = {0}; /* each addition would wait for the one before */
    int64_t j = 0;
    for (; j + 4 <= n; j += 4)
        for (int s = 0; s < 4; s++) sum[s] += metric[j + s] * a[j + s] * b[j + s];
    for (; j < n; j++) sum[0] += metric[j] * a[j] * b[j];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void rank_add(double *a, double factor, const double *b, int64_t n) {
    for (int64_t j = 0; j < n; j++) a[j] += factor * b[j];
}

/* Gram and Schmidt, twice, of vectors that are scaled to length 1 first. */
static void rank_orthonormalise(struct ki_rank *rank, int64_t n) {
    for (int64_t c = 0; c < rank->count; c++) {
        double *own = rank->null + c * n;
        for (int again = 0; again < 2; again++) {
            const double length = sqrt(rank_product(own, own, rank->metric, n));
            for (int64_t j = 0; j < n; j++) own[j] /= length;
            for (int64_t i = 0; i < c; i++) {
                const double *other = rank->null + i * n;
                rank_add(own, -rank_product(own, other, rank->metric, n), other, n);
            }
        }
        const double length = sqrt(rank_product(own, own, rank->metric, n));
        for (int64_t j = 0; j < n; j++) own[j] /= length;
    }
}

/* A vector v at random tells, where a factor is not cheap, whether X makes nothing of some vectors:
 * conjugate gradient from H v comes back to v but for its part along these, which next to never is as
 * small as 1e-6 of what is to be expected (Kuczynski and Wozniakowski, SIAM J. Matrix Anal. Appl. 13,
 * 1992, bound what a random start can miss). f32 has not the digits. */
static const double MISSED = 1e-6;

/* E gets v, by the columns' scales, in its first column, and G what H makes of it. */
static kiln_status begin_probe(struct ki_block *t, double *v, const double *inverse) {
    kiln_status status;
    struct ki_system *system = t->system;
    const int64_t n = kiln_matrix_cols(system->X), k = t->k;
    struct ki_draws draws = {.stream = KI_STREAM_RANK};
    struct ki_arena arena = {0};
    double *values = ki_arena_reals(&arena, n * k);
    TRY(arena.status);
    for (int64_t j = 0; j < n; j++) values[j * k] = v[j] = sqrt(inverse[j]) * (2 * ki_draw(&draws) - 1);
    TRY(ki_vector_set(t->E, values));
    TRY(ki_system_multiply(t->R, system, t->E));
    TRY(kiln_times(t->SR, t->R, system->s));
    TRY(ki_system_scatter(t->G, system, t->SR));
    system->run.report.passes += 2;
    TRY(ki_block_norm(t, t->norm));
done:
    return ki_arena_free(&arena, status);
}

/* *part = what the cycle did not bring back of v, in the scaled length. */
static kiln_status end_probe(double *part, const struct ki_block *t, const double *v, const double *inverse) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(t->system->X), k = t->k;
    struct ki_arena arena = {0};
    double *values = ki_arena_doubles(&arena, n * k), missing = 0, all = 0;
    TRY(arena.status);
    TRY(ki_vector_get(values, t->E));
    for (int64_t j = 0; j < n; j++) {
        if (!(inverse[j] > 0)) continue;
        missing += pow(v[j] - values[j * k], 2) / inverse[j];
        all += v[j] * v[j] / inverse[j];
    }
    *part = sqrt(missing / all);
done:
    return ki_arena_free(&arena, status);
}

/* The block is done, and is left as it was; this uses its work space. */
static kiln_status rank_probe(bool *full, struct ki_block *t) {
    enum { MORE = 16 };
    kiln_status status = KILN_OK;
    struct ki_system *system = t->system;
    struct ki_run *run = &system->run;
    kiln_report *report = &run->report;
    const struct ki_block kept = *t;
    const double tolerance = system->options.tolerance;
    const int64_t n = kiln_matrix_cols(system->X), rows = report->trace_count,
                  iterations = report->iterations, begun = run->begun;
    struct ki_arena arena = {0};
    double *v = ki_arena_doubles(&arena, n), *inverse = ki_arena_doubles(&arena, n), part = 1;
    *full = false;
    TRY(arena.status);
    for (int64_t j = 0; j < n; j++) inverse[j] = 1;
    if (system->inverse) TRY(ki_vector_get(inverse, system->inverse));
    TRY(begin_probe(t, v, inverse));
    for (int j = 0; j < t->k; j++) t->active[j] = j == 0;
    t->reference[0] = t->norm[0];
    t->judging = true;
    t->longest = 2 * ki_run_iterations(run) + MORE;
    run->begun = iterations;
    system->options.tolerance = fmin(tolerance, 1e-12);
    TRY(ki_block_cycle(t, false));
    TRY(end_probe(&part, t, v, inverse));
    *full = !run->cancelled && part <= MISSED / sqrt((double)n);
done:
    *t = kept;
    system->options.tolerance = tolerance;
    report->trace_count = rows;
    report->iterations = iterations;
    run->begun = begun;
    if (status == KILN_OK) status = ki_block_check(t, false);
    return ki_arena_free(&arena, status);
}

static int64_t kept_columns(const struct ki_rank *rank, int64_t n) {
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) count += rank->metric[j] > 0;
    return count;
}

static kiln_status look_at_columns(struct ki_block *t) {
    kiln_status status = KILN_OK;
    struct ki_system *system = t->system;
    struct ki_run *run = &system->run;
    struct ki_rank *rank = &system->rank;
    struct ki_arena arena = {0};
    const bool cheap = ki_direct_cheap(system, false), possible = cheap || ki_direct_possible(system);
    bool full = false;
    struct ki_direct own = {0}, *direct = &system->direct;
    if (!direct->U || direct->by_rows) direct = &own;
    if (!direct->U && !cheap && possible) TRY(rank_probe(&full, t));
    if (full) rank->rank = kept_columns(rank, kiln_matrix_cols(system->X));
    if (!direct->U && !full && !run->cancelled && possible) TRY(ki_direct_form(system, direct, &arena));
    if (!direct->U || !direct->usable) goto done;
    rank->rank = direct->taken;
    if (direct->left == 0) goto done;
    TRY(ki_rank_judge(system, direct, &arena));
    rank_orthonormalise(rank, direct->size);
done:
    return ki_arena_free(&arena, status);
}

/* The part of W along the vectors that X makes nothing of, minus sign, in values, n x k. */
static void rank_take_off(const struct ki_rank *rank, double *values, double *own, int64_t n, int64_t k) {
    for (int64_t c = 0; c < k; c++) {
        for (int64_t j = 0; j < n; j++) own[j] = values[j * k + c], values[j * k + c] = 0;
        for (int again = 0; again < 2; again++)
            for (int64_t i = 0; i < rank->count; i++) {
                const double *other = rank->null + i * n, along = rank_product(own, other, rank->metric, n);
                rank_add(own, -along, other, n);
                for (int64_t j = 0; j < n; j++) values[j * k + c] -= along * other[j];
            }
    }
}

static kiln_status move_by_columns(struct ki_block *t) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(t->system->X);
    struct ki_arena arena = {0};
    double *values = ki_arena_doubles(&arena, n * t->k), *own = ki_arena_doubles(&arena, n);
    TRY(arena.status);
    TRY(ki_vector_get(values, t->W));
    rank_take_off(&t->system->rank, values, own, n, t->k);
    TRY(ki_vector_set(t->E, values));
done:
    return ki_arena_free(&arena, status);
}

/* ---- by rows ---- */

/* N is looked at where it is little work, even though rows are fewer, as it is checked. */
static bool rank_by_rows(const kiln_matrix *X) {
    const double n = (double)kiln_matrix_cols(X), null = n - (double)kiln_matrix_rows(X);
    return null > 0 && n * null * null > COLUMN_WORK;
}

/* Finds how much longer the metric makes the rows of X than those of X less its means. */
static kiln_status magnification(double *ratio, const struct ki_system *system) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(system->X);
    double whole = 0, part = 0;
    struct ki_arena arena = {0};
    *ratio = 1;
    if (system->options.no_intercept) return KILN_OK;
    double *square = ki_arena_doubles(&arena, n), *centred = ki_arena_doubles(&arena, n);
    TRY(arena.status);
    TRY(ki_vector_get(square, system->square));
    TRY(ki_vector_get(centred, system->centred));
    for (int64_t j = 0; j < n; j++) {
        if (!(system->rank.metric[j] > 0)) continue;
        whole += square[j] / system->rank.metric[j];
        part += centred[j] / system->rank.metric[j];
    }
    if (part > 0) *ratio = sqrt(whole / part);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status look_at_rows(struct ki_block *t) {
    kiln_status status = KILN_OK;
    struct ki_system *system = t->system;
    struct ki_rank *rank = &system->rank;
    const kiln_type type = kiln_matrix_type(system->X);
    double ratio;
    if (!ki_direct_cheap(system, true)) return KILN_OK;
    TRY(magnification(&ratio, system));
    TRY(ki_direct_form_rows(system, &rank->rows, rank->metric, 16 * ki_epsilon(type) * ratio));
    if (rank->rows.usable) rank->rank = rank->rows.taken;
done:
    return status;
}

/* E = P W - W, P W that of W which X^T makes of rows; what P leaves out by rounding is given to it again.
 * Uses R, Z and Q. */
static kiln_status move_by_rows(struct ki_block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    double minus[KI_BLOCK];
    for (int j = 0; j < t->k; j++) minus[j] = -1;
    TRY(kiln_combine(t->E, minus, t->W, NULL, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        TRY(kiln_combine(t->Q, minus, t->E, NULL, NULL));
        TRY(ki_system_multiply(t->R, system, t->Q));
        TRY(ki_direct_solve(t->R, &system->rank.rows));
        TRY(ki_system_scatter(t->Z, system, t->R));
        TRY(kiln_times(t->Z, t->Z, system->rank.rows.reciprocal));
        TRY(kiln_combine(t->E, t->one, t->E, t->one, t->Z));
        system->run.report.passes += 2;
    }
done:
    return status;
}

/* ---- whole ---- */

kiln_status ki_block_least_norm(bool *moved, struct ki_block *t) {
    kiln_status status = KILN_OK;
    struct ki_system *system = t->system;
    struct ki_rank *rank = &system->rank;
    *moved = false;
    if (system->options.l2 > 0 || system->run.cancelled) return KILN_OK;
    if (!rank->known) {
        rank->least = INFINITY;
        ki_rank_undecided(rank);
        TRY(set_metric(system));
        TRY((rank_by_rows(system->X) ? look_at_rows : look_at_columns)(t));
    }
    *moved = rank->count > 0 || rank->rows.usable;
    if (*moved) TRY(rank->rows.usable ? move_by_rows(t) : move_by_columns(t));
done:
    return status;
}
