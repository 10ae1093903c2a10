/* The first step where rows are many: the solution of the same problem on a sample of them.
 *
 * A sample of r rows for each coefficient has its solution where the whole has an objective of about 1 /
 * (2 r) a row above its least, and a Hessian that is the whole's but for a share of about 2 / sqrt(r). So
 * steps by the sample's Hessian (newton_secant.c), corrected by what the gradients differ by, take a digit
 * off the gradient for the one pass that evaluates the new point, and the whole's Gram matrix, which takes
 * as long as many passes, is not formed.
 *
 * The sample is an eighth of the rows at most. Of a column that is the same in all but a few of its rows
 * it tells next to nothing, and Newton's steps need long to come back from where it puts that coefficient.
 * So there is no such step then, nor where few rows, of the sample or of all, have most of the weight, nor
 * where y differs in fewer rows than there are coefficients. If its solution does not help, only that time
 * is lost: everything goes on from the origin. */
#include "algorithms/newton/newton_work.h"

#include "derived/select.h"
#include "ops/linear/families.h"

/* ROWS_EACH: of the sample, for each coefficient. ENTRIES: with fewer a pass takes no longer than what
 * surrounds it. */
enum { ROWS_EACH = 250, SHARE = 8, STEPS = 20, ENTRIES = 1 << 19 };
/* FEW: pairs of rows that differ in a column. Rows of which few have the weight count for WEIGHED of their
 * number at least. VECTORS: y, the weights, the offset, ones and curvatures. */
enum { FEW = 32, COPIES = 3, VECTORS = 8 };
static const double WEIGHED = 0.25, CONSTANT = 1e-9;
static const double ENOUGH = 0.01; /* of the gradient: no more digits than the sample knows */

static int64_t pilot_rows_of(const struct ki_newton *newton) {
    return ROWS_EACH * (kiln_matrix_cols(newton->X) + 1);
}

/* Whether a budget of the device leaves room for the sample, and as much again for what is done with it. */
static bool pilot_has_room(const struct ki_newton *newton) {
    kiln_device_info info = {0};
    kiln_device_statistics used = {0};
    const kiln_device *device = kiln_matrix_device(newton->X);
    const int64_t width = COPIES * kiln_matrix_cols(newton->X) + VECTORS;
    const double sample = (double)pilot_rows_of(newton) * (double)width * sizeof(double);
    return kiln_device_get_info(device, &info) == KILN_OK &&
           kiln_device_get_statistics(device, &used) == KILN_OK &&
           sample <= (double)(info.memory - used.memory_used);
}

static bool pilot_pays(const struct ki_newton_work *work, const struct ki_newton_start *start) {
    const struct ki_newton *newton = work->newton;
    const kiln_loss *loss = &work->problem;
    const bool quadratic = loss->family == KILN_GAUSSIAN && ki_link_of(loss) == KILN_LINK_IDENTITY;
    const bool smooth = loss->kind == KILN_LOSS_LOGISTIC || (loss->kind == KILN_LOSS_GLM && !quadratic);
    return work->factor && work->secant && smooth && !start->warm && ki_newton_stop(work) == KILN_STOP_NONE &&
           kiln_matrix_format(newton->X) == KILN_DENSE && kiln_matrix_nnz(newton->X) >= ENTRIES &&
           ki_selectable(newton->X) && kiln_matrix_rows(newton->X) / SHARE >= pilot_rows_of(newton) &&
           pilot_has_room(newton);
}

static const kiln_matrix *pilot_take(struct ki_newton *pilot, const kiln_matrix *all, int64_t count) {
    kiln_matrix *few = all ? ki_run_model(&pilot->run, count, kiln_matrix_cols(all)) : NULL;
    if (few) ki_sample_rows(few, all);
    return few;
}

/* Finds whether the weights of so many rows, NULL for ones, are spread over enough of them. */
static kiln_status pilot_weigh(bool *spread, const kiln_matrix *weights) {
    kiln_status status = KILN_OK;
    double sum, norm;
    *spread = true;
    if (!weights) return KILN_OK;
    TRY(kiln_norm(&sum, weights, KILN_NORM_1));
    TRY(kiln_norm(&norm, weights, KILN_NORM_2));
    *spread = sum > 0 && sum * sum >= WEIGHED * (double)kiln_matrix_rows(weights) * norm * norm;
done:
    return status;
}

/* Whether a sample of so many rows says something of every column, by rows that count. few: its weights. */
static kiln_status pilot_look(bool *tells, const struct ki_newton_work *work, const kiln_matrix *few,
                              int64_t count) {
    kiln_status status;
    const kiln_matrix *X = work->newton->X;
    const struct ki_columns *columns = &work->newton->columns;
    const int64_t cols = kiln_matrix_cols(X);
    bool spread;
    TRY(pilot_weigh(tells, work->problem.weights));
    TRY(pilot_weigh(&spread, few));
    *tells = *tells && spread && ki_sample_differs(work->problem.y, count, 0, cols) == cols;
    for (int64_t j = 0; j < cols && *tells; j++)
        *tells = columns->variance[j] * columns->weight <= CONSTANT * columns->square[j] ||
                 ki_sample_differs(X, count, j, FEW) == FEW;
done:
    return status;
}

/* The user is asked between the sample's steps as between others. With a checkpoint the step on all rows
 * is ended first. */
static int pilot_ask(void *user, const kiln_progress *now) {
    struct ki_run *run = user;
    (void)now;
    ki_run_ask(run);
    return run->cancelled;
}

/* `there` = the pilot's solution, and `here` if it is better. */
static kiln_status pilot_follow(struct ki_newton_work *work, struct ki_newton *pilot) {
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
    work->newton->run.report.iterations++;
    TRY(ki_newton_factor_sample(work, pilot->X, pilot->C,
                                work->newton->columns.weight / pilot->columns.weight));
    pilot->run.report.passes += ki_gram_passes(kiln_matrix_cols(pilot->X));
done:
    return status;
}

/* The problem on the sample, unless that tells too little: then *opened stays false. */
static kiln_status pilot_open(bool *opened, struct ki_newton *pilot, kiln_loss *loss,
                              const struct ki_newton_work *work) {
    kiln_status status;
    const struct ki_arena *arena = &pilot->run.arena;
    const int64_t count = pilot_rows_of(work->newton);
    bool tells;
    loss->weights = pilot->weights = pilot_take(pilot, loss->weights, count);
    TRY(arena->status);
    TRY(pilot_look(&tells, work, pilot->weights, count));
    if (!tells) goto done;
    pilot->X = pilot_take(pilot, pilot->X, count);
    loss->y = pilot_take(pilot, loss->y, count);
    loss->offset = pilot_take(pilot, loss->offset, count);
    TRY(arena->status);
    status = ki_newton_open(pilot);
    *opened = status == KILN_OK;
    if (status == KILN_ERR_DATA) status = KILN_OK; /* squares that underflow, of the sample's rows alone */
done:
    return status;
}

kiln_status ki_newton_pilot(struct ki_newton_work *work, const struct ki_newton_start *start) {
    kiln_status status;
    struct ki_newton *newton = work->newton;
    bool opened = false;
    if (!pilot_pays(work, start)) return KILN_OK;
    const double share = (double)pilot_rows_of(newton) / (double)kiln_matrix_rows(newton->X);
    kiln_loss loss = work->problem;
    struct ki_newton pilot = {
        .call = newton->call,
        .X = newton->X,
        .k = 1,
        .l2 = share * newton->l2,
        .no_intercept = newton->no_intercept,
        .standardize = newton->standardize,
        .one_sided = true /* its warnings are nobody's */
    };
    const kiln_control control = {pilot_ask, &newton->run};
    TRY(ki_run_within(&pilot.run, &newton->run, &control));
    ki_run_on(&pilot.run, newton->X, fmax(ENOUGH, newton->run.tolerance), STEPS);
    TRY(pilot_open(&opened, &pilot, &loss, work));
    if (!opened) goto done;
    TRY(ki_newton_solve(&pilot, &loss, &(struct ki_newton_start){.origin = start->origin}));
    if (pilot.run.report.converged && !newton->run.cancelled) TRY(pilot_follow(work, &pilot));
    newton->run.report.passes += (int64_t)ceil(share * (double)pilot.run.report.passes);
done:
    return ki_run_close(&pilot.run, status);
}
