/* This file says what the Newton engine sets up: its vectors, and the scales that the criterion and the
 * preconditioner are made of. */
#include "algorithms/newton/newton_work.h"

void ki_newton_pair(struct ki_pair *pair, struct ki_newton *newton) {
    pair->w = ki_run_model(&newton->run, kiln_matrix_cols(newton->X), newton->k);
    if (!newton->no_intercept) pair->b = ki_run_model(&newton->run, 1, newton->k);
}

static void newton_point_new(struct ki_newton_point *point, struct ki_newton *newton) {
    ki_newton_pair(&point->at, newton);
    ki_newton_pair(&point->gradient, newton);
    point->C = ki_run_rows(&newton->run, newton->X, newton->k);
}

/* The vectors that depend on the columns alone. A column whose diagonal is nothing (constant under an
 * intercept or beside another such column, or all zero) is left out: its coefficient is 0. */
static kiln_status column_vectors(struct ki_newton *newton) {
    kiln_status status;
    struct ki_newton_work *work = newton->work;
    struct ki_arena own = {0}, *arena = &newton->run.arena;
    const kiln_matrix *X = newton->X;
    const int64_t cols = kiln_matrix_cols(X);
    const double most = kiln_matrix_type(X) == KILN_F32 ? (double)FLT_MAX : DBL_MAX;
    double *values = ki_arena_doubles(&own, cols);
    TRY(own.status);
    if (!newton->no_intercept) work->mean = ki_arena_vector(arena, X, cols, newton->columns.mean);
    for (int64_t j = 0; j < cols; j++) values[j] = ki_newton_spread(newton, j) > 0 ? 1 : 0;
    work->kept = ki_arena_vector(arena, X, cols, values);
    for (int64_t j = 0; j < cols && newton->standardize; j++) {
        values[j] = newton->l2 * newton->columns.variance[j];
        if (!(values[j] <= most)) TRY(ki_fail_column(X, j, KI_PENALTY_OUT_OF_RANGE));
    }
    work->penalty = newton->standardize ? ki_arena_vector(arena, X, cols, values)
                                        : ki_arena_fill(arena, ki_arena_model(arena, X, cols, 1), newton->l2);
    for (int64_t j = 0; j < cols; j++)
        values[j] = newton->l1 * (newton->standardize ? sqrt(newton->columns.variance[j]) : 1);
    if (newton->l1 > 0) work->l1 = ki_arena_vector(arena, X, cols, values);
    TRY(arena->status);
done:
    return ki_arena_free(&own, status);
}

static kiln_status newton_measure_columns(struct ki_newton *newton) {
    kiln_status status;
    struct ki_arena own = {0};
    const kiln_matrix *weights = newton->weights;
    double total = (double)kiln_matrix_rows(newton->X);
    if (!weights) weights = ki_arena_fill(&own, ki_arena_rows(&own, newton->X, 1), 1);
    TRY(own.status);
    if (newton->weights) TRY(kiln_norm(&total, weights, KILN_NORM_1));
    if (!(total > 0)) TRY(ki_fail(KILN_ERR_DATA, "%s: the weights are all zero", newton->call));
    struct ki_moments moments = {
        .rough = newton->no_intercept && !newton->standardize, .y = newton->outcomes, .d = newton->mean};
    TRY(ki_columns_measure(&newton->columns, &moments, &newton->run.arena, newton->X, weights, total));
    if (newton->no_intercept && newton->standardize)
        ki_columns_one_constant(&newton->columns, kiln_matrix_cols(newton->X));
    newton->work->right = moments.right;
    newton->run.report.passes += moments.passes;
    if (!newton->no_intercept || newton->standardize)
        ki_report_flats(&newton->run.report, &newton->columns.flats, kiln_matrix_type(newton->X));
done:
    return ki_arena_free(&own, status);
}

kiln_status ki_newton_open(struct ki_newton *newton) {
    kiln_status status;
    struct ki_run *run = &newton->run;
    const int64_t cols = kiln_matrix_cols(newton->X);
    struct ki_newton_work *work = newton->work = ki_arena_zeros(&run->arena, 1, sizeof *work);
    TRY(run->arena.status);
    work->newton = newton;
    work->diagonal = ki_run_reals(run, cols + 1);
    TRY(newton_measure_columns(newton));
    TRY(column_vectors(newton));
    newton->W = ki_run_model(run, cols, newton->k);
    newton->b = ki_run_model(run, 1, newton->k);
    work->shift = ki_run_model(run, 1, newton->k);
    work->spread = ki_run_model(run, cols, 1);
    work->floor = ki_run_model(run, cols, 1);
    newton_point_new(&work->here, newton);
    newton_point_new(&work->there, newton);
    ki_newton_pair(&work->criterion, newton);
    ki_newton_pair(&work->P, newton);
    TRY(ki_newton_factor_open(work));
    TRY(ki_newton_secant_open(work));
    if (!work->secant || ki_checkpoint_kept(run->control)) TRY(ki_newton_furnish(work));
    TRY(ki_newton_descent_open(work));
    TRY(run->arena.status);
done:
    return status;
}

kiln_status ki_newton_furnish(struct ki_newton_work *work) {
    struct ki_newton *newton = work->newton;
    struct ki_run *run = &newton->run;
    struct ki_pair *const pairs[] = {&work->inverse, &work->S, &work->R, &work->Q, &work->Z};
    if (work->furnished) return KILN_OK;
    work->furnished = true;
    work->square = ki_run_model(run, kiln_matrix_cols(newton->X), 1);
    if (newton->k > 1) {
        work->v = ki_run_rows(run, newton->X, 1);
        work->classes = ki_arena_fill(&run->arena, ki_run_model(run, newton->k, 1), 1);
        work->common = ki_run_model(run, kiln_matrix_cols(newton->X), 1);
    }
    for (int i = 0; i < (newton->l1 > 0 ? 5 : 4); i++) ki_newton_pair(pairs[i], newton);
    ki_newton_factor_furnish(work);
    return run->arena.status;
}

/* ---- the criterion's scale ---- */

/* The mean curvature at `here`, the origin. */
static kiln_status newton_mean_curvature(const struct ki_newton_work *work, double *mean) {
    const struct ki_newton *newton = work->newton;
    *mean = work->level;
    if (work->level > 0) return KILN_OK;
    kiln_status status = kiln_norm(mean, work->here.C, KILN_NORM_1);
    *mean /= newton->columns.weight;
    if (!(*mean > 0) || !isfinite(*mean)) *mean = 1; /* no row is active: any scale will do */
    return status;
}

/* The intercept's D^-2 at most: no square of a column comes on top of it. */
static double intercept_most(const struct ki_newton *newton) {
    return 1e6 * ki_newton_most(newton);
}

/* The criterion's D^-2, with the common scale: n of them, and the intercept's D^2, without. */
static kiln_status set_criterion(struct ki_newton_work *work, const double *inverse, double total) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    struct ki_arena arena = {0};
    kiln_matrix *column = ki_arena_vector(&arena, newton->X, kiln_matrix_cols(newton->X), inverse);
    TRY(arena.status);
    TRY(ki_copy(work->criterion.w, column));
    if (work->criterion.b)
        TRY(kiln_fill(work->criterion.b, fmin(work->scale / total, intercept_most(newton))));
done:
    return ki_arena_free(&arena, status);
}

/* D^-2 of the criterion, spread and floor, on the host, n of each. Returns what D^-1 X^T makes of rounding,
 * but for epsilon. Columns so far apart that D^-2 does not fit into the type's range count for too little in
 * the criterion, which then proves nothing. */
static double newton_scale_columns(struct ki_newton_work *work, double mean, double *inverse, double *spread,
                                   double *floor) {
    const struct ki_newton *newton = work->newton;
    const struct ki_columns *columns = &newton->columns;
    const int64_t cols = kiln_matrix_cols(newton->X);
    const double most = ki_newton_most(newton);
    double largest = newton->no_intercept ? 0 : work->total, magnification = 0;
    for (int64_t j = 0; j < cols; j++) {
        const double penalty = ki_newton_penalty_of(newton, j);
        const bool kept = ki_newton_spread(newton, j) > 0;
        inverse[j] = work->diagonal[j] = kept ? mean * ki_newton_spread(newton, j) + penalty : 0;
        floor[j] = kept ? penalty + 0.01 * inverse[j] : 0;
        largest = fmax(largest, inverse[j]);
    }
    work->diagonal[cols] = work->total;
    work->scale = largest > 0 ? largest : 1;
    work->apart = !newton->no_intercept && work->scale / work->total > intercept_most(newton);
    for (int64_t j = 0; j < cols; j++) {
        spread[j] = inverse[j] > 0 ? ki_newton_spread(newton, j) / columns->square[j] / work->scale : 0;
        floor[j] = inverse[j] > 0 ? fmax(floor[j] / work->scale, 1 / most) : 0;
        work->apart = work->apart || (inverse[j] > 0 && work->scale / inverse[j] > most);
        inverse[j] = inverse[j] > 0 ? fmin(work->scale / inverse[j], most) : 0;
        magnification += inverse[j] * columns->square[j];
    }
    return sqrt(magnification + work->scale / mean);
}

/* The criterion's scale and the preconditioner's parts. The common factor, and the bounds, keep them away
 * from both ends of their type's range. */
kiln_status ki_newton_scale(struct ki_newton_work *work, double *noise) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const int64_t cols = kiln_matrix_cols(newton->X);
    struct ki_arena arena = {0};
    double mean = 1, *inverse = ki_arena_doubles(&arena, 3 * cols);
    TRY(arena.status);
    double *spread = inverse + cols, *floor = spread + cols;
    TRY(newton_mean_curvature(work, &mean));
    work->total = mean * newton->columns.weight;
    *noise = 16 * ki_epsilon(kiln_matrix_type(newton->X)) * sqrt(fmin(mean, 1)) *
             newton_scale_columns(work, mean, inverse, spread, floor);
    TRY(set_criterion(work, inverse, work->total));
    TRY(ki_vector_set(work->spread, spread));
    TRY(ki_vector_set(work->floor, floor));
done:
    return ki_arena_free(&arena, status);
}
