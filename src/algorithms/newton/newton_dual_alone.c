/* A descent in the dual that proves its own result, and so takes neither the Newton engine's vectors nor its
 * walks over X: for small data these take as long as the sweeps. Whatever is out of the ordinary, from a
 * column that overflows to a criterion that is not met, is the engine's. */
#include "algorithms/newton/newton_dual_work.h"

static bool possible(const struct ki_newton *newton, const struct ki_dual_task *task) {
    return newton->k == 1 && task->problems == 1 && newton->no_intercept && !newton->standardize &&
           !ki_checkpoint_kept(&newton->control);
}

/* What the engine would say of a start that it has nothing to add to. */
static kiln_status report(struct ki_newton *newton, const struct ki_dual_judge *judge) {
    kiln_status status;
    const kiln_trace_row row = {.residual = judge->norm / judge->reference,
                                .objective = judge->objective,
                                .seconds = ki_clock() - newton->start,
                                .radius = 10 * judge->norm * sqrt(judge->largest)};
    TRY(ki_report_begin(&newton->report));
    TRY(ki_report_step(&newton->report, &row, newton->tolerance, newton->max_iterations, &newton->control,
                       newton->report.passes * ki_bytes_of(newton->X)));
    newton->report.solver = "dual";
    newton->report.converged = 1;
    newton->report.tolerance = newton->tolerance;
done:
    return status;
}

/* The bound of certificate.h, of which this has one penalty for all columns and the gradient's norm. */
static void certify(struct ki_dual_alone *alone, struct ki_newton *newton, const struct ki_dual_task *task,
                    struct ki_dual_judge *judge) {
    const double curvature = task->logistic ? 0.25 : 1, level = sqrt(judge->weight),
                 objective = judge->objective;
    for (int64_t j = 0; j < kiln_matrix_cols(newton->X); j++) /* the columns' squares, of which D^2 is made */
        judge->scale[j] = fmax(judge->scale[j] - newton->l2, 0) / curvature;
    const struct ki_certificate at = {.X = newton->X,
                                      .k = 1,
                                      .l2 = newton->l2,
                                      .weight = judge->weight,
                                      .square = judge->scale,
                                      .w = task->W,
                                      .norm = sqrt(judge->size),
                                      .slope = sqrt(2 * curvature * objective),
                                      .curvature = curvature,
                                      .excess = objective,
                                      .terms = objective,
                                      .lean = task->logistic ? level : 0,
                                      .target = level};
    const double gap = ki_certificate_gap(&at);
    alone->gap = 0.5 * judge->size / newton->l2;
    alone->rounding = fmax(gap - alone->gap, 0);
    if (task->logistic) ki_report_certify(&newton->report, gap, "duality gap");
}

/* Whether so little is left to gain beside what has been gained that the criterion, which goes by the
 * curvature at 0, tells the truth here, too: see newton_confirm.c. */
static bool confirmed(const struct ki_newton *newton, const struct ki_dual_judge *judge, bool logistic) {
    const double zero = judge->weight * (logistic ? log(2) : 0.5), gap = 0.5 * judge->size / newton->l2,
                 noise = 32 * ki_epsilon(kiln_matrix_type(newton->X)) * judge->objective,
                 enough = newton->tolerance * fmax(zero - judge->objective, 0) + noise;
    return fmin(gap, judge->objective) <= enough;
}

kiln_status ki_dual_alone(struct ki_dual_alone *alone, struct ki_newton *newton,
                          const struct ki_dual_task *task) {
    kiln_status status = KILN_OK;
    const size_t bytes = (size_t)kiln_matrix_cols(newton->X) * sizeof(double);
    struct ki_dual_judge judge = {.l2 = newton->l2};
    *alone = (struct ki_dual_alone){0};
    if (!possible(newton, task)) return KILN_OK;
    judge.scale = ki_alloc(bytes);
    if (!judge.scale) return ki_fail_nomem(bytes, "the columns' scales");
    TRY(ki_dual_solve_judged(newton, task, &judge));
    alone->descended = judge.reference > 0;
    alone->met = alone->descended && isfinite(judge.objective) && !newton->cancelled &&
                 judge.norm / judge.reference <= newton->tolerance &&
                 confirmed(newton, &judge, task->logistic);
    if (alone->met) TRY(report(newton, &judge));
    if (alone->met) certify(alone, newton, task, &judge);
done:
    ki_free(judge.scale);
    return status;
}
