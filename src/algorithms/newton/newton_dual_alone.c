/* A descent in the dual that proves its own result, and so takes neither the Newton engine's vectors nor its
 * walks over X: for small data these take as long as the sweeps. Whatever is out of the ordinary, from a
 * column that overflows to a criterion that is not met, is the engine's. */
#include "algorithms/newton/newton_dual_work.h"

static bool alone_possible(const struct ki_newton *newton, const struct ki_dual_task *task) {
    return newton->k == 1 && task->problems == 1 && newton->no_intercept && !newton->standardize &&
           !ki_checkpoint_kept(newton->run.control);
}

/* Finds what the engine would say of a start that it has nothing to add to. */
static kiln_status alone_report(struct ki_newton *newton, const struct ki_dual_judge *judge) {
    struct ki_run *run = &newton->run;
    const kiln_status status =
        ki_run_row(run, &(kiln_trace_row){.residual = judge->norm / judge->reference,
                                          .objective = judge->objective,
                                          .radius = 10 * judge->norm * sqrt(judge->largest)});
    run->report.solver = "dual";
    ki_run_judge(run);
    return status;
}

/* The bound of certificate.h, of which this has one penalty for all columns and the gradient's norm. */
static void alone_certify(struct ki_dual_alone *alone, struct ki_newton *newton,
                          const struct ki_dual_task *task, struct ki_dual_judge *judge) {
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
    if (task->logistic) ki_report_certify(&newton->run.report, gap, "duality gap");
}

/* Returns whether so little is left to gain beside what has been gained that the criterion, which goes by the
 * curvature at 0, tells the truth here, too: see newton_confirm.c. */
static bool confirmed(const struct ki_newton *newton, const struct ki_dual_judge *judge, bool logistic) {
    const double zero = judge->weight * (logistic ? log(2) : 0.5), gap = 0.5 * judge->size / newton->l2,
                 noise = 32 * ki_epsilon(kiln_matrix_type(newton->X)) * judge->objective,
                 enough = newton->run.tolerance * fmax(zero - judge->objective, 0) + noise;
    return fmin(gap, judge->objective) <= enough;
}

kiln_status ki_dual_alone(struct ki_dual_alone *alone, struct ki_newton *newton,
                          const struct ki_dual_task *task) {
    kiln_status status;
    struct ki_arena arena = {0};
    struct ki_dual_judge judge = {.l2 = newton->l2};
    *alone = (struct ki_dual_alone){0};
    if (!alone_possible(newton, task)) return KILN_OK;
    judge.scale = ki_arena_doubles(&arena, kiln_matrix_cols(newton->X));
    TRY(arena.status);
    TRY(ki_dual_solve_judged(newton, task, &judge));
    alone->descended = judge.reference > 0;
    alone->met = alone->descended && isfinite(judge.objective) && !newton->run.cancelled &&
                 judge.norm / judge.reference <= newton->run.tolerance &&
                 confirmed(newton, &judge, task->logistic);
    if (alone->met) TRY(alone_report(newton, &judge));
    if (alone->met) alone_certify(alone, newton, task, &judge);
done:
    return ki_arena_free(&arena, status);
}
