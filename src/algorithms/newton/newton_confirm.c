/* Whether the criterion of a support vector machine still holds where it is met. It goes by the curvature at
 * the origin; a row that has most of that, as one of huge entries, may lie where its loss is flat at the
 * end. (Losses that are curved everywhere are not asked: where their optimum is at infinity no curvature is
 * left, and the criterion is what ends them.) Its columns' gradients then count for next to nothing, however
 * far the objective can still fall.
 *
 * By the present curvature || D^-1 g ||^2 / 2 is about what a step still lowers the objective by. The
 * penalty alone makes it the more, and so does the origin's curvature times the least share that any row has
 * kept of it: neither takes a pass, and as a rule one of them proves enough. Else a pass finds the Hessian's
 * diagonal. Where that leaves too much beside what has been gained, the criterion goes by the smaller of
 * both curvatures from then on. */
#include "algorithms/newton/newton_work.h"

/* The tolerance is what may be left to gain, of what has been gained so far; by a diagonal, which is not all
 * of the Hessian, this share of it. */
static const double SHARE = 0.1;

/* A diagonal that may take the criterion's place. */
struct least {
    double *diagonal, *inverse; /* n; D^-2, with the common scale */
    double total, enough;       /* the intercept's; the norm that proves enough */
};

/* norm = || D^-1 g || by `inverse`, where the columns that are left out have 0. */
static kiln_status proves(bool *proved, struct ki_newton_work *work, const struct least *least) {
    kiln_status status;
    double norm;
    for (int64_t j = 0; j < kiln_matrix_cols(work->newton->X); j++)
        least->inverse[j] =
            work->diagonal[j] > 0 ? fmin(work->scale / least->diagonal[j], ki_newton_most(work->newton)) : 0;
    TRY(ki_newton_set_criterion(work, least->inverse, least->total));
    TRY(ki_newton_measure(work, &norm, &work->here));
    *proved = norm <= least->enough;
done:
    return status;
}

/* The least share of the origin's mean curvature that a row has; 0 where that is not looked for. */
static kiln_status kept_share(struct ki_newton_work *work, double *share) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = work->newton;
    const int64_t m = kiln_matrix_rows(newton->X);
    const double mean = work->total / newton->columns.weight;
    double *C = NULL, *s = NULL;
    *share = newton->k == 1 ? 1 : 0;
    if (newton->k > 1) return KILN_OK;
    C = ki_alloc((size_t)m * 2 * sizeof *C);
    if (!C) return ki_fail_nomem((size_t)m * 2 * sizeof *C, "the rows' curvature");
    s = C + m;
    TRY(ki_vector_get(C, work->here.C));
    if (newton->weights) TRY(ki_vector_get(s, newton->weights));
    for (int64_t i = 0; i < m; i++) {
        const double weight = newton->weights ? s[i] : 1;
        if (weight > 0) *share = fmin(*share, C[i] / (weight * mean));
    }
done:
    ki_free(C);
    return status;
}

/* The penalty, and `share` of the criterion's curvature. */
static void set_share(struct least *least, const struct ki_newton_work *work, double share) {
    const int64_t n = kiln_matrix_cols(work->newton->X);
    for (int64_t j = 0; j < n; j++) {
        const double penalty = work->diagonal[j] > 0 ? ki_newton_penalty_of(work->newton, j) : 0;
        least->diagonal[j] = penalty + share * fmax(work->diagonal[j] - penalty, 0);
    }
    least->total = share > 0 ? share * work->diagonal[n] : work->diagonal[n];
}

/* The smaller of the criterion's diagonal and the Hessian's. One pass. */
static kiln_status set_present(struct least *least, struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_newton *newton = work->newton;
    const struct ki_columns *columns = &newton->columns;
    const int64_t n = kiln_matrix_cols(newton->X);
    double total;
    TRY(ki_newton_furnish(work));
    TRY(ki_newton_squares(work, &total));
    TRY(ki_vector_get(least->diagonal, work->square));
    for (int64_t j = 0; j < n; j++) {
        const double spread =
            newton->no_intercept ? 1 : columns->weight * columns->variance[j] / columns->square[j];
        least->diagonal[j] =
            work->diagonal[j] > 0
                ? fmin(work->diagonal[j], spread * least->diagonal[j] + ki_newton_penalty_of(newton, j))
                : 0;
    }
    least->total = total > 0 ? fmin(total, work->diagonal[n]) : work->diagonal[n];
done:
    return status;
}

/* The criterion, which is set already, and the steps by this diagonal from here on. */
static kiln_status sharpen(struct ki_newton_work *work, struct least *least) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(work->newton->X);
    const double most = ki_newton_most(work->newton);
    double *floor = least->inverse;
    for (int64_t j = 0; j < n; j++) {
        const bool kept = work->diagonal[j] > 0;
        const double penalty = ki_newton_penalty_of(work->newton, j), part = 0.01 * least->diagonal[j];
        work->apart = work->apart || (kept && !(work->scale / least->diagonal[j] <= most));
        floor[j] = kept ? fmax((penalty + part) / work->scale, 1 / most) : 0;
        work->diagonal[j] = kept ? fmax(least->diagonal[j], work->scale / most) : 0;
    }
    work->diagonal[n] = least->total;
    TRY(ki_vector_set(work->floor, floor));
    TRY(ki_newton_measure(work, &work->norm, &work->here));
    work->worn = true;
    work->radius = fmax(work->radius, 10 * work->norm / fmin(work->scale, 1));
    ki_newton_factor_forget(work);
done:
    return status;
}

kiln_status ki_newton_confirm(struct ki_newton_work *work) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = work->newton;
    const int64_t n = kiln_matrix_cols(newton->X);
    const double left = newton->tolerance * fmax(work->first - work->here.objective, 0);
    const int kind = work->problem.kind;
    double share = 0;
    bool proved = false;
    struct least least = {.enough = sqrt(2 * work->scale * (SHARE * left + ki_newton_noise(work)))};
    if (kind != KILN_LOSS_SQUARED_HINGE && kind != KILN_LOSS_SQUARED_EPSILON) return KILN_OK;
    if (work->level > 0 || !(work->reference > 0)) return KILN_OK;
    if (!(work->norm <= newton->tolerance * work->reference)) return KILN_OK;
    if (work->here.objective <= left) return KILN_OK; /* it is never below 0 */
    least.diagonal = ki_alloc((size_t)n * 2 * sizeof *least.diagonal);
    if (!least.diagonal) return ki_fail_nomem((size_t)n * 2 * sizeof *least.diagonal, "the criterion");
    least.inverse = least.diagonal + n;
    if (newton->l2 > 0) {
        set_share(&least, work, 0);
        TRY(proves(&proved, work, &least));
    }
    if (!proved) TRY(kept_share(work, &share));
    if (!proved && share > 0) {
        set_share(&least, work, share);
        TRY(proves(&proved, work, &least));
    }
    if (!proved) {
        TRY(set_present(&least, work));
        TRY(proves(&proved, work, &least));
        if (!proved) TRY(sharpen(work, &least));
    }
    if (proved) {
        memcpy(least.diagonal, work->diagonal, (size_t)n * sizeof *least.diagonal);
        least.total = work->diagonal[n];
        TRY(proves(&proved, work, &least));
    }
done:
    ki_free(least.diagonal);
    return status;
}
