/* The first step where rows are many: the solution of the same problem on a sample of them.
 *
 * A sample of r rows for each coefficient has its solution where the whole has an objective of about 1 / (2 r) a row above its least, and
 * a Hessian that is the whole's but for a share of about 2 / sqrt(r). So steps by the sample's Hessian (newton_secant.c), corrected by what the
 * gradients differ by, take a digit off the gradient for the one pass that evaluates the new point, and the whole's Gram matrix, which
 * takes as long as many passes, is not formed.
 *
 * The sample is an eighth of the rows at most. Where its solution is of no use, such as that of columns with entries in rows that it
 * lacks, that is what is lost: everything goes on from the origin. */
#include "algorithms/newton/newton_work.h"

/* ROWS_EACH: of the sample, for each coefficient. ENTRIES: with fewer a pass takes no longer than what surrounds it. */
enum { ROWS_EACH = 250, SHARE = 8, STEPS = 20, ENTRIES = 1 << 19 };
static const double ENOUGH = 0.01; /* of the gradient: what the sample tells is not known better */

static int64_t rows_of(const struct ki_newton *newton) {
    return ROWS_EACH * (kiln_matrix_cols(newton->X) + 1);
}

static bool pays(const struct ki_newton_work *work, const struct ki_newton_start *start) {
    const struct ki_newton *newton = work->newton;
    const kiln_loss *loss = &work->problem;
    const bool quadratic = loss->family == KILN_GAUSSIAN && ki_link_of(loss) == KILN_LINK_IDENTITY;
    const bool smooth = loss->kind == KILN_LOSS_LOGISTIC || (loss->kind == KILN_LOSS_GLM && !quadratic);
    return work->factor && work->secant && smooth && !start->warm && ki_newton_stop(work) == KILN_STOP_NONE &&
           kiln_matrix_format(newton->X) == KILN_DENSE && kiln_matrix_nnz(newton->X) >= ENTRIES &&
           ki_selectable(newton->X) && kiln_matrix_rows(newton->X) / SHARE >= rows_of(newton);
}

static kiln_status take(const kiln_matrix **operand, kiln_matrix **few, int64_t count) {
    const kiln_matrix *all = *operand;
    if (!all) return KILN_OK;
    const kiln_status status = kiln_matrix_dense(few, kiln_matrix_device(all), kiln_matrix_type(all), count,
                                                 kiln_matrix_cols(all), NULL);
    if (status == KILN_OK) ki_sample_rows(*few, all);
    *operand = *few;
    return status;
}

/* `there` = the pilot's solution, and `here` if it is better. */
static kiln_status follow(struct ki_newton_work *work, const struct ki_newton *pilot) {
    kiln_status status;
    struct ki_newton_point *there = &work->there;
    double norm;
    TRY(kiln_times(there->at.w, pilot->W, work->kept));
    if (work->mean) TRY(kiln_multiply(there->at.b, 1, KILN_TRANSPOSED, work->mean, there->at.w, 1, pilot->b));
    TRY(ki_newton_evaluate(work, there));
    if (!(there->objective < work->here.objective)) goto done;
    TRY(ki_newton_measure(work, &norm, there));
    if (!isfinite(norm)) goto done;
    const struct ki_newton_point former = work->here;
    work->here = *there;
    work->there = former;
    work->norm = norm;
    work->level = 0;
    work->iterations++;
    work->newton->report.iterations++;
    TRY(ki_newton_factor_sample(work, pilot->X, pilot->C,
                                work->newton->columns.weight / pilot->columns.weight));
done:
    return status;
}

kiln_status ki_newton_pilot(struct ki_newton_work *work, const struct ki_newton_start *start) {
    kiln_status status = KILN_OK;
    const struct ki_newton *newton = work->newton;
    kiln_matrix *few[4] = {0};
    if (!pays(work, start)) return KILN_OK;
    const int64_t count = rows_of(newton);
    const double share = (double)count / (double)kiln_matrix_rows(newton->X);
    kiln_loss loss = work->problem;
    struct ki_newton pilot = {.call = newton->call,
                              .X = newton->X,
                              .k = 1,
                              .l2 = share * newton->l2,
                              .no_intercept = newton->no_intercept,
                              .standardize = newton->standardize,
                              .tolerance = fmax(ENOUGH, newton->tolerance),
                              .max_iterations = STEPS,
                              .start = newton->start};
    TRY(take(&pilot.X, &few[0], count));
    TRY(take(&loss.y, &few[1], count));
    TRY(take(&loss.weights, &few[2], count));
    TRY(take(&loss.offset, &few[3], count));
    pilot.weights = loss.weights;
    TRY(ki_newton_open(&pilot));
    TRY(ki_newton_solve(&pilot, &loss, &(struct ki_newton_start){.origin = start->origin}));
    work->newton->report.passes += (int64_t)ceil(share * (double)pilot.report.passes);
    if (pilot.report.converged) TRY(follow(work, &pilot));
done:
    if (status == KILN_ERR_DATA) status = KILN_OK;
    ki_newton_close(&pilot);
    for (int i = 0; i < 4; i++) kiln_matrix_free(few[i]);
    return status;
}
