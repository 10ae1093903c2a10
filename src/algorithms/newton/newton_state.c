/* The Newton engine between two steps, for checkpoints: the point, what the criterion and the preconditioner
 * are made of, and what decides about the next step. What is known about the point is found again in one
 * pass. */
#include "algorithms/newton/newton_dual.h"
#include "algorithms/newton/newton_work.h"

/* Which parts there are may change from step to step. */
static void newton_tabulate(struct ki_newton_work *work, struct ki_newton_model *model) {
    struct ki_newton *newton = work->newton;
    const struct ki_state own[] = {
        {"newton.inner", .integers = &model->inner},
        {"newton.exact", .flag = &model->exact},
        {"newton.w", .matrix = &work->here.at.w},
        {"newton.b", .matrix = &work->here.at.b},
        {"newton.criterion w", .matrix = &work->criterion.w},
        {"newton.criterion b", .matrix = &work->criterion.b},
        {"newton.inverse w", .matrix = &work->inverse.w},
        {"newton.inverse b", .matrix = &work->inverse.b},
        {"newton.spread", .matrix = &work->spread},
        {"newton.floor", .matrix = &work->floor},
        {"newton.diagonal", .reals = work->diagonal, .count = kiln_matrix_cols(newton->X) + 1},
        {"newton.scale", .reals = &work->scale},
        {"newton.total", .reals = &work->total},
        {"newton.radius", .reals = &work->radius},
        {"newton.reference", .reals = &work->reference},
        {"newton.first", .reals = &work->first},
        {"newton.goal", .reals = &work->goal},
        {"newton.proved", .flag = &work->proved},
        {"newton.fallen", .flag = &work->fallen},
        {"newton.led", .flag = &work->led},
        {"newton.looked", .flag = &work->looked},
        {"newton.regular", .flag = &work->regular},
        {"newton.worn", .flag = &work->worn},
        {"newton.even", .flag = &work->even},
        {"newton.apart", .flag = &work->apart}};
    struct ki_state *state = work->state;
    int count = (int)(sizeof own / sizeof *own);
    memcpy(state, own, sizeof own);
    count += ki_newton_factor_state(state + count, work);
    count += ki_newton_secant_state(state + count, work);
    count += ki_newton_descent_state(state + count, work);
    newton->run.state = state;
    newton->run.parts = count;
}

kiln_status ki_newton_resume(struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    struct ki_run *run = &work->newton->run;
    run->resumed = false;
    if (!ki_checkpoint_waits(run->control)) return KILN_OK;
    if (ki_dual_waits(run->control)) {
        ki_fail(KILN_ERR_MODEL, "%s: the checkpoint is of a descent in the dual, and this run has none",
                work->newton->call);
        return ki_hint("go on with the CPU");
    }
    TRY(ki_newton_factor_look(work));
    TRY(ki_newton_secant_look(work));
    newton_tabulate(work, model);
    TRY(ki_run_resume(run));
    const int64_t passes = run->report.passes;
    TRY(ki_newton_evaluate(work, &work->here));
    TRY(ki_newton_measure(work, &work->norm, &work->here));
    run->report.passes = passes;
done:
    return status;
}

kiln_status ki_newton_keep(struct ki_newton_work *work, struct ki_newton_model *model) {
    struct ki_run *run = &work->newton->run;
    newton_tabulate(work, model);
    run->report.stopped_by = ki_newton_stop(work);
    return ki_run_keep(run);
}
