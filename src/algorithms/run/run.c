/* Every method that takes steps does this beside its mathematics. */
#include "algorithms/run/run.h"

#include <assert.h>

kiln_status ki_run_open(struct ki_run *run, const struct ki_algorithm *algorithm, void *own,
                        const void *given, const struct ki_layout *layout, const kiln_control *control,
                        kiln_report *to) {
    kiln_status status;
    run->algorithm = algorithm;
    run->control = control;
    run->to = to;
    run->start = ki_clock();
    TRY(ki_take(own, given, layout));
    TRY(ki_options_check(own, algorithm));
    TRY(KI_CHECK_RESULT(kiln_report, to));
    TRY(ki_report_begin(&run->report));
done:
    return status;
}

void ki_run_on(struct ki_run *run, const kiln_matrix *X, double tolerance, int64_t most) {
    run->X = X;
    run->pass_bytes = ki_bytes_of(X);
    run->tolerance = tolerance;
    run->most = most;
}

kiln_status ki_run_begin(struct ki_run *run, struct ki_described about) {
    about.control = run->control;
    about.algorithm = run->algorithm->shown.name;
    about.X = run->X;
    about.report = &run->report;
    about.start = &run->start;
    return ki_checkpoint_begin(&about);
}

kiln_status ki_run_within(struct ki_run *run, const struct ki_run *outer, const kiln_control *control) {
    run->algorithm = outer->algorithm;
    run->control = control;
    run->start = outer->start;
    return ki_report_begin(&run->report);
}

static void conclude(struct ki_run *run) {
    kiln_stop *stop = &run->report.stopped_by;
    if (run->cancelled && run->ended < run->problems) *stop = ki_stop_worse(*stop, KILN_STOP_CANCELLED);
    run->report.converged = *stop == KILN_STOP_TOLERANCE || *stop == KILN_STOP_ROUNDING ||
                            (run->tolerance < 0 && *stop == KILN_STOP_ITERATIONS);
}

kiln_status ki_run_close(struct ki_run *run, kiln_status status) {
    kiln_report *report = &run->report;
    if (status == KILN_OK) {
        report->tolerance = run->tolerance < 0 ? INFINITY : run->tolerance;
        report->seconds = ki_clock() - run->start;
        conclude(run);
        if (run->unbounded)
            ki_report_give(run->to, report);
        else
            ki_report_hand_over(run->to, report);
    }
    kiln_report_free(report);
    kiln_report_free(&run->best);
    return ki_arena_free(&run->arena, status);
}

kiln_matrix *ki_run_rows(struct ki_run *run, const kiln_matrix *X, int64_t cols) {
    return ki_arena_rows(&run->arena, X, cols);
}

kiln_matrix *ki_run_model(struct ki_run *run, int64_t rows, int64_t cols) {
    return ki_arena_model(&run->arena, run->X, rows, cols);
}

kiln_matrix *ki_run_sums(struct ki_run *run, int64_t rows, int64_t cols) {
    return ki_arena_sums(&run->arena, run->X, rows, cols);
}

double *ki_run_reals(struct ki_run *run, int64_t count) {
    return ki_arena_reals(&run->arena, count);
}

/* ---- steps ---- */

kiln_status ki_run_look(struct ki_run *run, int count) {
    return ki_checkpoint_look(run->control, run->state, count);
}

static bool at_limit(const struct ki_run *run) {
    return ki_run_iterations(run) >= run->most;
}

/* Parts of the state that there are. */
static int parts_of(const struct ki_run *run) {
    return run->turn > 0 ? run->parts : run->parts - run->former;
}

static struct ki_state ended_of(struct ki_run *run) {
    return (struct ki_state){"problem", .integers = &run->ended, .least = 0, .most = run->problems - 1};
}

/* The whole state: that of the problem at hand, of those before, and of what they are for. */
static int whole_state(struct ki_state whole[KI_RUN_PARTS], struct ki_run *run) {
    const struct ki_state problem[] = {
        ended_of(run),
        {"problem.began", .integers = &run->begun, .least = 0, .most = KI_STATE_MOST},
        {"problem.worst stop", .integers = &run->worst, .least = 0, .most = KILN_STOP_ROUNDING},
        {"problem.objective", .reals = &run->objective},
        {"problem.residual", .reals = &run->residual}};
    const int own = parts_of(run), problems = run->problems > 0 ? (int)(sizeof problem / sizeof *problem) : 0;
    assert(own + problems + run->outer_parts <= KI_RUN_PARTS);
    if (own > 0) memcpy(whole, run->state, (size_t)own * sizeof *whole);
    if (problems > 0) memcpy(whole + own, problem, sizeof problem);
    if (run->outer_parts > 0)
        memcpy(whole + own + problems, run->outer, (size_t)run->outer_parts * sizeof *whole);
    return own + problems + run->outer_parts;
}

/* The state's own range of one problem, both ends 0, would mean any. */
static kiln_status check_ended(const struct ki_run *run) {
    if (run->problems == 0 || (run->ended >= 0 && run->ended < run->problems)) return KILN_OK;
    return ki_fail(KILN_ERR_MODEL, "the checkpoint is damaged: it goes on with problem %lld of %lld",
                   (long long)run->ended, (long long)run->problems);
}

kiln_status ki_run_look_around(struct ki_run *run) {
    kiln_status status;
    const struct ki_state ended = ended_of(run);
    TRY(ki_checkpoint_look(run->control, &ended, 1));
    TRY(check_ended(run));
    TRY(ki_checkpoint_look(run->control, run->outer, run->outer_parts));
done:
    return status;
}

kiln_status ki_run_resume(struct ki_run *run) {
    kiln_status status;
    struct ki_state whole[KI_RUN_PARTS];
    TRY(ki_checkpoint_resume(&run->resumed, run->control, whole, whole_state(whole, run)));
    TRY(check_ended(run));
    if (run->resumed && at_limit(run)) run->report.stopped_by = KILN_STOP_ITERATIONS;
done:
    return status;
}

void ki_run_problem(struct ki_run *run) {
    run->report.stopped_by = KILN_STOP_NONE;
    run->begun = run->report.iterations;
}

void ki_run_problem_ends(struct ki_run *run, kiln_stop stop, double residual, double objective) {
    kiln_report *report = &run->report;
    run->ended++;
    run->limited |= stop == KILN_STOP_ITERATIONS;
    run->objective += objective;
    if (isnan(residual) || residual > run->residual) run->residual = residual;
    run->worst = report->stopped_by = ki_stop_worse((kiln_stop)run->worst, stop);
    report->objective = run->objective;
    report->residual = run->residual;
    conclude(run);
}

kiln_status ki_run_row(struct ki_run *run, const kiln_trace_row *row) {
    kiln_report *report = &run->report;
    kiln_trace_row whole = *row;
    whole.iteration = report->iterations;
    whole.objective += run->objective;
    whole.seconds = ki_clock() - run->start;
    report->residual = row->residual;
    report->objective = whole.objective;
    return ki_report_row(report, &whole);
}

void ki_run_start(struct ki_run *run) {
    run->limited |= run->report.stopped_by == KILN_STOP_ITERATIONS;
    run->report.stopped_by = KILN_STOP_NONE;
    run->begun = run->report.iterations;
}

static bool asks_to_stop(const struct ki_run *run, kiln_progress now) {
    now.seconds = ki_clock() - run->start;
    now.bytes = run->pass_bytes * run->report.passes;
    return run->control->progress && run->control->progress(run->control->user, &now) != 0;
}

static bool asks_at_iteration(const struct ki_run *run) {
    const kiln_report *report = &run->report;
    return asks_to_stop(
        run,
        (kiln_progress){.phase = "solve",
                        .done = report->iterations,
                        .total = run->most * ki_max(run->problems, 1),
                        .objective = report->objective,
                        .residual = report->residual,
                        .test = report->trace_count > 0 ? report->trace[report->trace_count - 1].test : 0});
}

void ki_run_tell(struct ki_run *run) {
    if (asks_at_iteration(run)) run->cancelled = true;
}

void ki_run_ask(struct ki_run *run) {
    if (asks_at_iteration(run) && !ki_checkpoint_kept(run->control)) run->cancelled = true;
}

bool ki_run_stage(const struct ki_run *run, const char *phase, int64_t done, int64_t total, double residual) {
    return asks_to_stop(
        run,
        (kiln_progress){
            .phase = phase, .done = done, .total = total, .objective = (double)NAN, .residual = residual});
}

kiln_stop ki_run_limit(const struct ki_run *run) {
    return run->cancelled ? KILN_STOP_CANCELLED : at_limit(run) ? KILN_STOP_ITERATIONS : KILN_STOP_NONE;
}

/* Returns whether gains of which the last is within the tolerance have come to their end. Those that fall by
 * the factor q leave g q / (1 - q), which may be LEFT tolerances. Next to a saddle they fall at once, as what
 * leads there dies out, and rise again, as what leads away grows: where one of the last two has come down to
 * less than a quarter, three in a row have to be small, and what they tend to by Aitken's extrapolation,
 * g - fall^2 / (former - fall), may be half of the last one. One that has grown counts only where it is
 * rounding. */
static bool settled(const struct ki_run *run) {
    enum { LEFT = 50, DIGITS = 1000 };
    const kiln_report *report = &run->report;
    if (run->unsettled) return false;
    if (!run->gains) return true;
    const kiln_trace_row *last = report->trace + report->trace_count - 1;
    const double gain = last->residual, goal = run->tolerance;
    if (report->iterations < 2) return gain == 0;
    const double before = last[-1].residual, fall = before - gain;
    if (gain <= fmin(goal / 100, DIGITS * ki_epsilon(kiln_matrix_type(run->X)))) return before <= goal;
    if (report->iterations < 3) return false;
    const double third = last[-2].residual, former = third - before;
    if ((gain < before / 4 || before < third / 4) && fmax(before, third) > goal) return false;
    if (gain <= goal / 100) return fall >= 0;
    return fall > 0 && gain * gain <= LEFT * goal * fall && 2 * fall * fall >= gain * (former - fall);
}

void ki_run_judge(struct ki_run *run) {
    kiln_report *report = &run->report;
    if (report->stopped_by != KILN_STOP_NONE) return;
    if (report->residual <= run->tolerance && settled(run))
        report->stopped_by = KILN_STOP_TOLERANCE;
    else
        report->stopped_by = ki_run_limit(run);
}

kiln_status ki_run_keep(struct ki_run *run) {
    kiln_stop stop = run->report.stopped_by;
    struct ki_state whole[KI_RUN_PARTS];
    if (run->limited) return KILN_OK;
    const bool last = run->turn + 1 >= run->restarts && run->ended + 1 >= run->problems;
    if (stop != KILN_STOP_ITERATIONS && !last) stop = run->cancelled ? KILN_STOP_CANCELLED : KILN_STOP_NONE;
    return ki_checkpoint_step(run->control, whole, whole_state(whole, run), stop);
}

kiln_status ki_run_step(struct ki_run *run, const kiln_trace_row *row) {
    kiln_status status;
    run->report.iterations++;
    TRY(ki_run_row(run, row));
    ki_run_tell(run);
    ki_run_judge(run);
    TRY(ki_run_keep(run));
done:
    return status;
}
