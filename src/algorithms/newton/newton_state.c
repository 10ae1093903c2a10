/* The Newton engine between two steps, for checkpoints: the point, what the criterion and the preconditioner
 * are made of, and what decides about the next step. What is known about the point is found again in one
 * pass. */
#include "algorithms/newton/newton_dual.h"
#include "algorithms/newton/newton_work.h"

enum {
    OWN = 27,
    FACTOR = 11,
    SECANT = 4,
    DESCENT = 5,
    STATE = OWN + FACTOR + SECANT + DESCENT + KI_NEWTON_OUTER
};

static int state_of(struct ki_state state[STATE], struct ki_newton_work *work,
                    struct ki_newton_model *model) {
    struct ki_newton *newton = work->newton;
    const struct ki_state own[OWN] = {
        {"newton.worst stop", .integers = &work->worst, .least = 0, .most = KILN_STOP_ROUNDING},
        {"newton.steps", .integers = &work->iterations, .least = 0, .most = KI_STATE_MOST},
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
    memcpy(state, own, sizeof own);
    int count = OWN;
    count += ki_newton_factor_state(state + count, work);
    count += ki_newton_secant_state(state + count, work);
    count += ki_newton_descent_state(state + count, work);
    for (int i = 0; i < newton->outer_count; i++) state[count++] = newton->outer[i];
    return count;
}

static kiln_status open_columns(kiln_matrix **A, const struct ki_newton *newton) {
    kiln_matrix_free(*A);
    *A = NULL;
    return kiln_matrix_dense(A, kiln_matrix_device(newton->X), kiln_matrix_type(newton->X),
                             kiln_matrix_cols(newton->X), 1, NULL);
}

kiln_status ki_newton_resume(bool *resumed, struct ki_newton_work *work, struct ki_newton_model *model) {
    kiln_status status;
    struct ki_newton *newton = work->newton;
    struct ki_state state[STATE];
    *resumed = ki_checkpoint_waits(&newton->control);
    if (!*resumed) return KILN_OK;
    if (ki_dual_waits(&newton->control)) {
        ki_fail(KILN_ERR_MODEL, "%s: the checkpoint is of a descent in the dual, and this run has none",
                newton->call);
        return ki_hint("go on with the CPU");
    }
    TRY(open_columns(&work->spread, newton));
    TRY(open_columns(&work->floor, newton));
    TRY(ki_newton_factor_look(work));
    TRY(ki_newton_secant_look(work));
    const int count = state_of(state, work, model);
    TRY(ki_checkpoint_resume(resumed, &newton->control, state, count));
    newton->report.stopped_by = (kiln_stop)work->worst;
    const int64_t passes = newton->report.passes;
    TRY(ki_newton_evaluate(work, &work->here));
    TRY(ki_newton_measure(work, &work->norm, &work->here));
    newton->report.passes = passes;
done:
    return status;
}

kiln_status ki_newton_keep(struct ki_newton_work *work, struct ki_newton_model *model, kiln_stop stop) {
    struct ki_state state[STATE];
    work->worst = work->newton->report.stopped_by;
    const int count = state_of(state, work, model);
    return ki_checkpoint_step(&work->newton->control, state, count, stop);
}
