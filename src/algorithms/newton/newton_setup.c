/* What the Newton engine sets up: its vectors, and the scales that the criterion and the preconditioner are
 * made of. */
#include "algorithms/newton/newton_work.h"

static kiln_status matrix_new(kiln_matrix **A, const struct ki_newton *newton, int64_t rows, int64_t cols) {
    return kiln_matrix_dense(A, kiln_matrix_device(newton->X), kiln_matrix_type(newton->X), rows, cols, NULL);
}

kiln_status ki_newton_pair(struct ki_pair *pair, const struct ki_newton *newton) {
    kiln_status status;
    TRY(matrix_new(&pair->w, newton, kiln_matrix_cols(newton->X), newton->k));
    if (!newton->no_intercept) TRY(matrix_new(&pair->b, newton, 1, newton->k));
done:
    return status;
}

static void free_pair(struct ki_pair *pair) {
    kiln_matrix_free(pair->w);
    kiln_matrix_free(pair->b);
}

static kiln_status point_new(struct ki_newton_point *point, const struct ki_newton *newton) {
    kiln_status status;
    TRY(ki_newton_pair(&point->at, newton));
    TRY(ki_newton_pair(&point->gradient, newton));
    TRY(matrix_new(&point->C, newton, kiln_matrix_rows(newton->X), newton->k));
done:
    return status;
}

static void point_free(struct ki_newton_point *point) {
    free_pair(&point->at);
    free_pair(&point->gradient);
    kiln_matrix_free(point->C);
}

static kiln_status set_columns(kiln_matrix **A, const struct ki_newton *newton, const double *values) {
    return ki_vector_new(A, kiln_matrix_device(newton->X), kiln_matrix_type(newton->X),
                         kiln_matrix_cols(newton->X), values);
}

/* The vectors that depend on the columns alone. A column whose diagonal is nothing (constant under an
 * intercept, or all zero) is left out: its coefficient is 0. */
static kiln_status column_vectors(struct ki_newton *newton) {
    kiln_status status;
    struct ki_newton_work *work = newton->work;
    const int64_t cols = kiln_matrix_cols(newton->X);
    const double most = kiln_matrix_type(newton->X) == KILN_F32 ? (double)FLT_MAX : DBL_MAX;
    double *values = ki_alloc((size_t)cols * sizeof *values);
    if (!values) return ki_fail_nomem((size_t)cols * sizeof *values, "the columns' scales");
    if (!newton->no_intercept) TRY(set_columns(&work->mean, newton, newton->columns.mean));
    for (int64_t j = 0; j < cols; j++) values[j] = ki_newton_spread(newton, j) > 0 ? 1 : 0;
    TRY(set_columns(&work->kept, newton, values));
    if (newton->standardize) {
        for (int64_t j = 0; j < cols; j++) {
            values[j] = newton->l2 * newton->columns.variance[j];
            if (!(values[j] <= most)) TRY(ki_fail_column(newton->X, j, KI_PENALTY_OUT_OF_RANGE));
        }
        TRY(set_columns(&work->penalty, newton, values));
    } else {
        TRY(matrix_new(&work->penalty, newton, cols, 1));
        TRY(kiln_fill(work->penalty, newton->l2));
    }
    if (newton->l1 > 0) {
        for (int64_t j = 0; j < cols; j++)
            values[j] = newton->l1 * (newton->standardize ? sqrt(newton->columns.variance[j]) : 1);
        TRY(set_columns(&work->l1, newton, values));
    }
done:
    ki_free(values);
    return status;
}

static kiln_status measure_columns(struct ki_newton *newton) {
    kiln_status status;
    kiln_matrix *ones = NULL;
    const kiln_matrix *weights = newton->weights;
    double total = (double)kiln_matrix_rows(newton->X);
    if (weights) {
        TRY(kiln_norm(&total, weights, KILN_NORM_1));
    } else {
        TRY(matrix_new(&ones, newton, kiln_matrix_rows(newton->X), 1));
        TRY(kiln_fill(ones, 1));
    }
    if (!(total > 0)) TRY(ki_fail(KILN_ERR_DATA, "%s: the weights are all zero", newton->call));
    struct ki_moments moments = {
        .rough = newton->no_intercept && !newton->standardize, .y = newton->outcomes, .d = newton->mean};
    TRY(ki_columns_measure(&newton->columns, &moments, &newton->arena, newton->X, weights ? weights : ones,
                           total));
    newton->work->right = moments.right;
    newton->report.passes += moments.passes;
    if (!newton->no_intercept || newton->standardize)
        ki_report_flats(&newton->report, &newton->columns.flats, kiln_matrix_type(newton->X));
done:
    kiln_matrix_free(ones);
    return status;
}

kiln_status ki_newton_open(struct ki_newton *newton) {
    kiln_status status;
    const int64_t cols = kiln_matrix_cols(newton->X);
    TRY(ki_report_begin(&newton->report));
    newton->report.converged = 1;
    newton->report.tolerance = newton->tolerance;
    struct ki_newton_work *work = newton->work = ki_calloc(sizeof *work);
    if (!work) return ki_fail_nomem(sizeof *work, "Newton's method");
    work->newton = newton;
    work->bytes = ki_bytes_of(newton->X);
    work->diagonal = ki_calloc((size_t)(cols + 1) * sizeof *work->diagonal);
    if (!work->diagonal)
        return ki_fail_nomem((size_t)(cols + 1) * sizeof *work->diagonal, "the columns' scales");
    TRY(measure_columns(newton));
    TRY(column_vectors(newton));
    TRY(matrix_new(&newton->W, newton, cols, newton->k));
    TRY(matrix_new(&newton->b, newton, 1, newton->k));
    TRY(matrix_new(&work->shift, newton, 1, newton->k));
    TRY(point_new(&work->here, newton));
    TRY(point_new(&work->there, newton));
    TRY(ki_newton_pair(&work->criterion, newton));
    TRY(ki_newton_pair(&work->P, newton));
    TRY(ki_newton_factor_open(work));
    TRY(ki_newton_secant_open(work));
    if (!work->secant || ki_checkpoint_kept(&newton->control)) TRY(ki_newton_furnish(work));
    TRY(ki_newton_descent_open(work));
done:
    return status;
}

kiln_status ki_newton_furnish(struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = work->newton;
    struct ki_pair *const pairs[] = {&work->inverse, &work->S, &work->R, &work->Q, &work->Z};
    if (work->furnished) return KILN_OK;
    work->furnished = true;
    TRY(matrix_new(&work->square, newton, kiln_matrix_cols(newton->X), 1));
    if (newton->k > 1) {
        TRY(matrix_new(&work->v, newton, kiln_matrix_rows(newton->X), 1));
        TRY(matrix_new(&work->classes, newton, newton->k, 1));
        TRY(matrix_new(&work->common, newton, kiln_matrix_cols(newton->X), 1));
        TRY(kiln_fill(work->classes, 1));
    }
    for (int i = 0; i < (newton->l1 > 0 ? 5 : 4); i++) TRY(ki_newton_pair(pairs[i], newton));
    TRY(ki_newton_factor_furnish(work));
done:
    return status;
}

void ki_newton_close(struct ki_newton *newton) {
    struct ki_newton_work *work = newton->work;
    kiln_matrix_free(newton->W);
    kiln_matrix_free(newton->b);
    kiln_report_free(&newton->report);
    ki_arena_free(&newton->arena, KILN_OK);
    if (!work) return;
    struct ki_pair *const pairs[] = {&work->criterion, &work->inverse, &work->S, &work->R,
                                     &work->P,         &work->Q,       &work->Z};
    for (int i = 0; i < 7; i++) free_pair(pairs[i]);
    kiln_matrix *const all[] = {work->mean,  work->penalty, work->l1,    work->kept,
                                work->shift, work->spread,  work->floor, work->square,
                                work->v,     work->classes, work->common};
    for (int i = 0; i < 11; i++) kiln_matrix_free(all[i]);
    ki_newton_factor_close(work);
    ki_newton_secant_close(work);
    ki_newton_descent_close(work);
    point_free(&work->here);
    point_free(&work->there);
    ki_free(work->diagonal);
    ki_free(work);
    newton->work = NULL;
}

/* ---- the criterion's scale ---- */

/* The mean curvature at `here`, the origin. */
static kiln_status mean_curvature(const struct ki_newton_work *work, double *mean) {
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
    kiln_matrix *column = NULL;
    TRY(set_columns(&column, work->newton, inverse));
    TRY(ki_copy(work->criterion.w, column));
    if (work->criterion.b)
        TRY(kiln_fill(work->criterion.b, fmin(work->scale / total, intercept_most(work->newton))));
done:
    kiln_matrix_free(column);
    return status;
}

/* D^-2 of the criterion, spread and floor, on the host, n of each. Returns what D^-1 X^T makes of rounding,
 * but for epsilon. Columns so far apart that D^-2 does not fit into the type's range count for too little in
 * the criterion, which then proves nothing. */
static double scale_columns(struct ki_newton_work *work, double mean, double *inverse, double *spread,
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
    double mean = 1;
    double *inverse = ki_alloc((size_t)cols * 3 * sizeof *inverse);
    if (!inverse) return ki_fail_nomem((size_t)cols * 3 * sizeof *inverse, "the preconditioner");
    double *spread = inverse + cols, *floor = spread + cols;
    TRY(mean_curvature(work, &mean));
    work->total = mean * newton->columns.weight;
    *noise = 16 * ki_epsilon(kiln_matrix_type(newton->X)) * sqrt(fmin(mean, 1)) *
             scale_columns(work, mean, inverse, spread, floor);
    TRY(set_criterion(work, inverse, work->total));
    kiln_matrix_free(work->spread);
    kiln_matrix_free(work->floor);
    work->spread = work->floor = NULL;
    TRY(set_columns(&work->spread, newton, spread));
    TRY(set_columns(&work->floor, newton, floor));
done:
    ki_free(inverse);
    return status;
}
