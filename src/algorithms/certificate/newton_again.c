/* This file says whether a fit without a penalty has converged where columns seem to depend on each other.
 *
 * The criterion goes by the scales of the columns one by one, and the factor by a Gram matrix, which knows
 * half of the digits. A row of 1e12 makes all columns look like one to both, whatever the other rows say.
 * kiln_linreg knows by products with X how many columns depend on others. Where more only seem to, Newton's
 * step is found from X itself: with the curvatures h and the slopes t of the rows' losses it is
 *
 *   min_d  sum_i h_i (z_i - x_i . d)^2,   z_i = -t_i / h_i,
 *
 * by Householder's reflections in long double, the largest rows first and the column with the longest rest
 * next: rows that are 1e12 times others then keep all digits of both (Cox and Higham, Numerical Analysis
 * 1997, 1998). The model falls by half of what d takes off sum_i h_i z_i^2. Steps go on until that is next to
 * nothing. Where X is too large for this the criterion alone ends the run. */
#include <stdlib.h>

#include "algorithms/newton/newton_factor.h"
#include "algorithms/verify/verify.h"

/* Multiplications of a factorisation, and numbers of X. */
static const double MOST = 1 << 28, ROOM = 1 << 24;

kiln_status ki_find_rank(struct ki_found_rank *found, const kiln_matrix *X, const kiln_matrix *weights,
                         bool no_intercept, const kiln_control *control) {
    kiln_status status;
    const kiln_linreg_options options = {
        .no_intercept = no_intercept, .weights = weights, .control = ki_checkpoint_apart(control)};
    struct ki_arena arena = {0};
    kiln_report report = {.size = sizeof report};
    kiln_matrix *z = ki_arena_fill(&arena, ki_arena_rows(&arena, X, 1), 0),
                *W = ki_arena_model(&arena, X, kiln_matrix_cols(X), 1), *b = ki_arena_model(&arena, X, 1, 1);
    TRY(arena.status);
    TRY(kiln_linreg(W, b, X, z, &options, &report));
    const double rank = kiln_report_figure(&report, "rank");
    *found = (struct ki_found_rank){.rank = isfinite(rank) ? (int64_t)rank : -1,
                                    .passes = report.passes,
                                    .cancelled = report.stopped_by == KILN_STOP_CANCELLED};
done:
    kiln_report_free(&report);
    return ki_arena_free(&arena, status);
}

kiln_status ki_newton_find_rank(struct ki_newton *newton) {
    kiln_status status;
    struct ki_found_rank found;
    TRY(ki_find_rank(&found, newton->X, newton->weights, newton->no_intercept, newton->run.control));
    newton->ranked = true;
    newton->rank = found.rank;
    newton->run.report.passes += found.passes;
    newton->run.cancelled |= found.cancelled;
done:
    return status;
}

void ki_newton_tell_rank(struct ki_newton *newton) {
    kiln_report *report = &newton->run.report;
    if (!newton->ranked || newton->rank < 0) return;
    ki_report_figure(report, "rank", (double)newton->rank);
    ki_report_rank(report, newton->rank, kiln_matrix_cols(newton->X));
}

/* ---- least squares ---- */

/* A, m x n by columns, which `scale` has made 1 long, and the right side z. */
struct squares {
    int64_t m, n;
    long double *A, *z, *scale, *d;
    int64_t *order; /* of the columns: the first `kept` do not depend on others */
    int64_t kept;
    long double falls; /* half of what d takes off the square of z */
};

static long double rest_of(const struct squares *of, const long double *column, int64_t from) {
    long double sum = 0;
    for (int64_t i = from; i < of->m; i++) sum += column[i] * column[i];
    return sum;
}

/* c less 2 v (v . c) / v^2, from row k on. */
static void reflect(const struct squares *of, const long double *v, long double square, long double *c,
                    int64_t k) {
    long double sum = 0;
    for (int64_t i = k; i < of->m; i++) sum += v[i] * c[i];
    const long double factor = 2 * sum / square;
    for (int64_t i = k; i < of->m; i++) c[i] -= factor * v[i];
}

/* Column k of the order becomes the one with the longest rest, whose square this is. */
static long double squares_choose(struct squares *of, int64_t k) {
    int64_t best = k;
    long double longest = -1;
    for (int64_t j = k; j < of->n; j++) {
        const long double rest = rest_of(of, of->A + of->order[j] * of->m, k);
        if (rest > longest) longest = rest, best = j;
    }
    const int64_t taken = of->order[best];
    of->order[best] = of->order[k];
    of->order[k] = taken;
    return longest;
}

/* A to its factor R, z with it. A column whose rest is at most `part` of it depends on others. */
static void squares_factor(struct squares *of, long double part) {
    for (of->kept = 0; of->kept < of->n && of->kept < of->m; of->kept++) {
        const int64_t k = of->kept;
        const long double rest = squares_choose(of, k);
        long double *v = of->A + of->order[k] * of->m;
        if (!(rest > part * part)) break;
        const long double head = v[k] > 0 ? -sqrtl(rest) : sqrtl(rest);
        v[k] -= head;
        const long double square = -2 * head * v[k];
        for (int64_t j = k + 1; j < of->n; j++) reflect(of, v, square, of->A + of->order[j] * of->m, k);
        reflect(of, v, square, of->z, k);
        of->falls += of->z[k] * of->z[k] / 2;
        v[k] = head;
    }
}

static void squares_substitute(struct squares *of) {
    for (int64_t k = of->kept; k-- > 0;) {
        long double sum = of->z[k];
        for (int64_t l = k + 1; l < of->kept; l++)
            sum -= of->A[of->order[l] * of->m + k] * of->d[of->order[l]];
        of->d[of->order[k]] = sum / of->A[of->order[k] * of->m + k];
    }
    for (int64_t j = 0; j < of->n; j++) of->d[j] = of->scale[j] > 0 ? of->d[j] / of->scale[j] : 0;
}

/* ---- the step ---- */

/* h, the rows' curvatures, and slope, their slopes, weights in both. m zeros each. */
static kiln_status again_rows(double *h, double *slope, const struct ki_newton_work *work) {
    kiln_status status;
    const kiln_loss *loss = &work->problem;
    const int64_t rows = kiln_matrix_rows(work->newton->X);
    struct ki_arena arena = {0};
    double *size = ki_arena_reals(&arena, 3 * rows);
    TRY(arena.status);
    double *y = size + rows, *s = y + rows;
    TRY(ki_newton_predictors(slope, size, work));
    TRY(ki_vector_get(y, loss->y));
    TRY(ki_vector_get(h, work->here.C));
    for (int64_t i = 0; i < rows; i++) s[i] = 1;
    if (loss->weights) TRY(ki_vector_get(s, loss->weights));
    for (int64_t i = 0; i < rows; i++) {
        struct ki_verify_slope at;
        const long double eta = slope[i];
        ki_verify_loss(&at, loss, y[i], &eta, 1);
        slope[i] = s[i] * (double)at.value;
    }
done:
    return ki_arena_free(&arena, status);
}

struct again_row {
    double largest; /* number in it */
    int64_t row;
};

static int by_size(const void *one, const void *other) {
    const struct again_row *a = one, *b = other;
    if (a->largest != b->largest) return a->largest > b->largest ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Row i of X, of columns of length 1 about their means and, under an intercept, of ones, times the root of
 * its curvature; the largest number in it. */
static double again_row(long double *row, const struct squares *of, const struct ki_newton *newton,
                        const struct ki_copy *X, double h, int64_t i) {
    const bool about = !newton->no_intercept;
    double largest = 0;
    for (int64_t j = 0; j < of->n; j++) row[j] = j == X->cols ? 1 : about ? -newton->columns.mean[j] : 0;
    for (int64_t e = 0; e < ki_row_size(X, i); e++) row[ki_row_column(X, i, e)] += ki_row_values(X, i)[e];
    for (int64_t j = 0; j < of->n; j++) {
        row[j] *= of->scale[j] > 0 ? sqrtl((long double)h) / of->scale[j] : 0;
        largest = fmax(largest, (double)fabsl(row[j]));
    }
    return largest;
}

/* of->A, its columns' scales, and z, from the rows of X that have curvature. row: of->n numbers; order: as
 * many as X has rows. */
static void again_fill(struct squares *of, const struct ki_newton *newton, const struct ki_copy *X,
                       const double *h, const double *slope, long double *row, struct again_row *order) {
    of->m = 0;
    for (int64_t j = 0; j < of->n; j++)
        of->scale[j] = sqrtl(j == X->cols ? newton->columns.weight : ki_newton_spread(newton, j));
    for (int64_t i = 0; i < X->rows; i++)
        if (h[i] > 0) order[of->m++] = (struct again_row){again_row(row, of, newton, X, h[i], i), i};
    qsort(order, (size_t)of->m, sizeof *order, by_size);
    for (int64_t place = 0; place < of->m; place++) {
        const int64_t i = order[place].row;
        again_row(row, of, newton, X, h[i], i);
        for (int64_t j = 0; j < of->n; j++) of->A[j * of->m + place] = row[j];
        of->z[place] = -slope[i] / sqrtl((long double)h[i]);
    }
    for (int64_t j = 0; j < of->n; j++) {
        long double *column = of->A + j * of->m;
        const long double length = sqrtl(rest_of(of, column, 0));
        of->scale[j] = length > 0 ? of->scale[j] * length : 0;
        for (int64_t i = 0; i < of->m && length > 0; i++) column[i] /= length;
        of->order[j] = j;
    }
}

/* S, the step; *falls: by how much its model does. */
static kiln_status again_direct(double *falls, struct ki_newton_work *work, const struct ki_copy *X) {
    kiln_status status;
    struct ki_newton *newton = work->newton;
    const int64_t n = X->cols + !newton->no_intercept;
    const size_t wide = sizeof(long double);
    struct ki_arena arena = {0};
    double *h = ki_arena_reals(&arena, X->rows), *slope = ki_arena_reals(&arena, X->rows),
           *step = ki_arena_reals(&arena, n);
    long double *row = ki_arena_room(&arena, n, wide);
    struct again_row *order = ki_arena_room(&arena, X->rows, sizeof *order);
    struct squares of = {.n = n,
                         .A = ki_arena_room(&arena, X->rows, (size_t)n * wide),
                         .z = ki_arena_room(&arena, X->rows, wide),
                         .scale = ki_arena_zeros(&arena, n, wide),
                         .d = ki_arena_zeros(&arena, n, wide),
                         .order = ki_arena_zeros(&arena, n, sizeof *of.order)};
    TRY(arena.status);
    TRY(again_rows(h, slope, work));
    again_fill(&of, newton, X, h, slope, row, order);
    squares_factor(&of, 16 * (long double)ki_epsilon(kiln_matrix_type(newton->X)));
    squares_substitute(&of);
    for (int64_t j = 0; j < n; j++) step[j] = (double)of.d[j];
    const double intercept = newton->no_intercept ? 0 : step[X->cols];
    TRY(ki_vector_set(work->S.w, step));
    if (work->S.b) TRY(kiln_fill(work->S.b, intercept));
    *falls = (double)of.falls;
    if (newton->rank < 0 && of.m == X->rows) newton->rank = of.kept - !newton->no_intercept;
done:
    return ki_arena_free(&arena, status);
}

/* Takes S, or a part of it. *moved: whether the objective falls there. */
static kiln_status again_advance(bool *moved, struct ki_newton_work *work, double falls) {
    enum { HALVES = 30 };
    kiln_status status = KILN_OK;
    double t = 1;
    *moved = false;
    for (int i = 0; i < HALVES && !*moved; i++, t /= 2) {
        TRY(ki_newton_try(work, t));
        *moved = work->here.objective - work->there.objective >= 1e-4 * t * falls;
    }
    if (!*moved) return KILN_OK;
    ki_newton_swap(work);
    TRY(ki_newton_measure(work, &work->norm, &work->here));
    work->level = 0;
    work->newton->run.report.iterations++;
    TRY(ki_newton_record(work, 0));
done:
    return status;
}

static kiln_status again_go_on(struct ki_newton_work *work, struct ki_newton_model *model, kiln_stop *stop,
                               const struct ki_copy *X) {
    kiln_status status;
    struct ki_run *run = &work->newton->run;
    bool moved = false;
    double falls = 0;
    TRY(ki_newton_furnish(work));
    for (;;) {
        ki_run_ask(run);
        *stop = ki_run_limit(run);
        if (run->cancelled) return KILN_OK;
        TRY(again_direct(&falls, work, X));
        const bool least = falls <= ki_newton_enough(work);
        if (least) *stop = ki_newton_meets(work) ? KILN_STOP_TOLERANCE : KILN_STOP_STALLED;
        if (*stop != KILN_STOP_NONE) return KILN_OK;
        TRY(again_advance(&moved, work, falls));
        *stop = KILN_STOP_STALLED;
        if (!moved) return KILN_OK;
        TRY(ki_newton_keep(work, model));
    }
done:
    return status;
}

/* Whether all columns that the factor has left out depend on others, and it knows enough of the rest. */
static kiln_status again_explained(bool *explained, struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    struct ki_newton *newton = work->newton;
    const struct ki_factor *factor = work->factor;
    int64_t kept = 0;
    if (!newton->ranked) TRY(ki_newton_find_rank(newton));
    for (int64_t j = 0; j < factor->n; j++) kept += ki_newton_spread(newton, j) > 0;
    *explained = newton->k > 1 || (!factor->weak && newton->rank == kept - factor->left);
done:
    return status;
}

kiln_status ki_newton_look_again(struct ki_newton_work *work, struct ki_newton_model *model,
                                 kiln_stop *stop) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const struct ki_factor *factor = work->factor;
    const double columns = (double)kiln_matrix_cols(newton->X) + 1;
    struct ki_copy X = {0};
    bool explained = false;
    if ((*stop != KILN_STOP_TOLERANCE && *stop != KILN_STOP_STALLED) || newton->l2 > 0 || newton->l1 > 0 ||
        newton->one_sided || work->reference == 0 || !ki_newton_factored(work) ||
        !(factor->replaced || factor->weak))
        return KILN_OK;
    TRY(again_explained(&explained, work));
    const double numbers = columns * (double)kiln_matrix_rows(newton->X);
    if (explained || columns * numbers > MOST || numbers > ROOM) goto done;
    status = ki_copy_take(&X, newton->X, true);
    if (status == KILN_OK) status = again_go_on(work, model, stop, &X);
    if (status == KILN_ERR_UNSUPPORTED) status = KILN_OK; /* rows that lie in other processes */
done:
    ki_copy_free(&X);
    return status;
}
