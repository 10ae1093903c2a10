/* Iterative refinement of the centred normal equations' solution, k targets in lock step.
 *
 * The trick is to centre inside the pass: X^T S (X p - 1 (mu^T p)) - mu * (column sum of S (...)) is (X -
 * 1 mu^T)^T S (X - 1 mu^T) p, and as each row is centred before it is scattered, nothing cancels where a
 * mean dwarfs its spread. The recurrences of conjugate gradient (linreg_cg.c) still drift, so they are
 * trusted for a cycle only: then residual and gradient are computed afresh from y - X w - b, and if they
 * miss the tolerance another cycle corrects w. */
#include "algorithms/linreg/linreg_block.h"

enum { STALLS = 2 }; /* cycles without a factor of 2 that make a target give up */
enum { SHORTEST = 16 };

/* A correction promises as many digits as the first cycle, and so takes about as many iterations. One that
 * takes far more may be chasing rounding in the gradient, which columns that depend on each other cannot
 * represent: then CG walks along them for ever, and only a look at the truth can tell. Where that says
 * that a cycle cut short has helped, the next one may take longer. */
static void block_limit_cycle(struct ki_block *t, int64_t taken, bool cut, bool helped) {
    if (t->longest == KI_ENDLESS)
        t->longest = 2 * taken + SHORTEST;
    else if (cut && helped)
        t->longest *= 2;
}

static kiln_status block_begin(struct ki_block *t, struct ki_arena *arena) {
    kiln_status status;
    kiln_device_info info = {0};
    const kiln_matrix *X = t->system->X;
    const int64_t cols = kiln_matrix_cols(X);
    kiln_matrix **const small[5] = {&t->E, &t->G, &t->P, &t->Q, &t->Z};
    for (int i = 0; i < 5; i++) *small[i] = ki_arena_model(arena, X, cols, t->k);
    t->R = ki_arena_rows(arena, X, t->k);
    t->SR = t->system->options.weights ? ki_arena_rows(arena, X, t->k) : t->R;
    t->S = ki_arena_sums(arena, X, KI_STATE, t->k);
    t->curvature = ki_arena_sums(arena, X, 1, t->k);
    t->shift = ki_arena_model(arena, X, 1, t->k);
    t->sums = ki_arena_model(arena, X, 1, t->k);
    TRY(arena->status);
    TRY(kiln_device_get_info(kiln_matrix_device(X), &info));
    t->gpu = strcmp(info.name, "cpu") != 0;
    for (int j = 0; j < t->k; j++) t->one[j] = 1;
done:
    return status;
}

/* Judges the corrected solution of the targets that took part; false for one that must go back to what it
 * was. A cycle cut short has not come to its norm yet: the objective, which falls at every step, tells
 * whether it was on its way. */
static bool block_improved(struct ki_block *t, int j, bool cut, double norm_before, double objective_before) {
    if (!isfinite(t->norm[j]) || !isfinite(t->objective[j])) {
        t->diverged = true;
        return false;
    }
    const double noise = 1000 * ki_epsilon(kiln_matrix_type(t->system->X));
    const bool lower = t->objective[j] < objective_before * (1 - noise);
    if (t->norm[j] <= 0.5 * t->best[j] || (cut && lower))
        t->stalls[j] = 0;
    else
        t->stalls[j]++;
    if (t->norm[j] < t->best[j]) t->best[j] = t->norm[j];
    if (t->objective[j] > objective_before + noise * t->zero[j]) return false;
    return t->norm[j] < norm_before || lower;
}

static void block_swap(struct ki_block *t) {
    kiln_matrix *former = t->W;
    t->W = t->E;
    t->E = former;
}

static bool block_met(const struct ki_block *t, int j) {
    return t->reference[j] == 0 ||
           (isfinite(t->reference[j]) && t->norm[j] <= t->system->options.tolerance * t->reference[j]);
}

/* A factor that does not halve the gradient is not H's, or only rounding is left: conjugate gradient
 * tells, in short cycles where it may be chasing that, else from 0, as what the factor left behind lies in
 * the directions that take longest. */
static kiln_status block_leave_direct(struct ki_block *t) {
    kiln_status status;
    double keep[KI_BLOCK], left[KI_BLOCK], blur[KI_BLOCK];
    bool near = true;
    t->system->direct.wanted = false;
    t->diverged = false;
    TRY(ki_block_beyond_rounding(t, left));
    TRY(ki_block_blur(t, blur));
    for (int j = 0; j < t->k; j++) {
        const double nothing = 64 * ki_epsilon(kiln_matrix_type(t->system->X)) * t->reference[j];
        const bool rounding = t->norm[j] < nothing || t->rss[j] <= blur[j] ||
                              left[j] <= t->system->options.tolerance * t->reference[j];
        const bool again = !block_met(t, j) && !rounding;
        near = near && !again;
        keep[j] = again ? 0 : 1;
        t->stalls[j] = 0;
        if (again) t->b[j] = 0;
    }
    if (near) {
        t->longest = SHORTEST;
        return KILN_OK;
    }
    TRY(kiln_combine(t->W, keep, t->W, NULL, NULL));
    TRY(ki_block_check(t, false));
    for (int j = 0; j < t->k; j++) t->best[j] = t->norm[j];
done:
    return status;
}

/* In the last row of the trace, which a cycle wrote by its recurrences. */
static void block_tell_truth(const struct ki_block *t) {
    const struct ki_run *run = &t->system->run;
    kiln_trace_row *last = &run->report.trace[run->report.trace_count - 1];
    last->residual = ki_block_relative(t, t->norm);
    last->objective = run->objective + ki_block_objective(t);
}

/* One cycle and its check. CG lowers the objective at every step but not the norm, so either is an
 * improvement, but never a higher objective; a target without one gets its former coefficients back and
 * gives up. */
static kiln_status block_refine(struct ki_block *t, bool resumed) {
    kiln_status status;
    double norm[KI_BLOCK], objective[KI_BLOCK], b[KI_BLOCK], keep[KI_BLOCK], revert[KI_BLOCK];
    bool reverted = false, helped = false, slow = false;
    const int64_t iterations = resumed ? t->begun : ki_run_iterations(&t->system->run);
    for (int j = 0; j < t->k; j++) {
        norm[j] = t->norm[j];
        objective[j] = resumed ? t->began[j] : t->objective[j];
        b[j] = t->b[j];
        if (!resumed) t->took_part[j] = t->active[j];
    }
    ki_direct_reconsider(t->system);
    const bool direct = t->system->direct.wanted;
    TRY(direct ? ki_block_correct(t) : ki_block_cycle(t, resumed));
    TRY(ki_block_follow(t));
    TRY(kiln_combine(t->E, t->one, t->W, t->one, t->E));
    block_swap(t);
    TRY(ki_block_check(t, false));
    const int64_t taken = ki_run_iterations(&t->system->run) - iterations;
    const bool cut = taken >= t->longest;
    for (int j = 0; j < t->k; j++) {
        const bool good = !t->took_part[j] || block_improved(t, j, cut, norm[j], objective[j]);
        keep[j] = good ? 1 : 0;
        revert[j] = good ? 0 : 1;
        if (!good && !direct) t->stalls[j] = STALLS;
        slow = slow || (t->took_part[j] && !block_met(t, j) && (!good || t->stalls[j] > 0));
        if (!good) t->b[j] = b[j]; /* check begins with it, and one far off would cost digits */
        reverted = reverted || !good;
        helped = helped || (t->took_part[j] && t->stalls[j] == 0);
    }
    if (!direct) block_limit_cycle(t, taken, cut, helped);
    if (reverted) {
        TRY(kiln_combine(t->W, keep, t->W, revert, t->E));
        TRY(ki_block_check(t, false));
    }
    if (direct && slow && !ki_run_limit(&t->system->run)) TRY(block_leave_direct(t));
    block_tell_truth(t);
done:
    return status;
}

/* The total sum of squares, and with it the objective and the reference gradient at w = 0. A y that is
 * constant, or a gradient that is zero, but for rounding, is taken for what it is: then w = 0 is the
 * solution, and t->reference is 0. */
static kiln_status block_measure_zero(struct ki_block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    const double epsilon = ki_epsilon(kiln_matrix_type(system->X));
    double mean[KI_BLOCK] = {0}, tss[KI_BLOCK], left[KI_BLOCK] = {0};
    bool doubt = false;
    if (system->walk.A)
        TRY(ki_block_check_zero(t, tss));
    else
        TRY(ki_block_check(t, true));
    for (int j = 0; j < t->k && system->walk.A && system->options.no_intercept; j++)
        mean[j] = ki_walk_mean(system, system->walk.n + j);
    if (!system->walk.A && system->options.no_intercept) {
        TRY(ki_block_centre_rows(t, t->R, mean));
        if (t->SR != t->R) TRY(kiln_times(t->SR, t->R, system->s));
    }
    if (!system->walk.A && system->options.no_intercept) TRY(kiln_dot(tss, t->SR, t->R));
    for (int j = 0; j < t->k && !system->walk.A && !system->options.no_intercept; j++) tss[j] = t->rss[j];
    for (int j = 0; j < t->k; j++)
        doubt = doubt || t->norm[j] <= 16 * epsilon * sqrt(system->magnification * t->rss[j]);
    if (doubt) TRY(ki_block_beyond_rounding(t, left));
    for (int j = 0; j < t->k; j++) {
        const double level = t->b[j] + mean[j]; /* one of them is the mean of y, the other 0 */
        const bool constant = tss[j] <= 64 * epsilon * epsilon * (tss[j] + system->weight * level * level);
        if (!constant) system->tss += tss[j];
        const bool none = (constant && !system->options.no_intercept) || (doubt && left[j] == 0);
        t->reference[j] = none && isfinite(t->rss[j]) ? 0 : t->norm[j];
        t->zero[j] = t->objective[j];
    }
done:
    return status;
}

/* A start so far out that its residual overflows leaves nothing to go on from. */
static kiln_status block_check_start(const struct ki_block *t) {
    for (int j = 0; j < t->k; j++) {
        if (isfinite(t->norm[j]) && isfinite(t->objective[j]) && isfinite(t->b[j])) continue;
        ki_fail(
            KILN_ERR_DATA,
            "kiln_linreg: the residual of the start, zeros or what was given, overflows (target %d of %d)",
            j + 1, t->k);
        return ki_hint("rescale y or X, or start from smaller coefficients");
    }
    return KILN_OK;
}

/* The given coefficients without those of columns that are left out. A start with a higher objective than
 * w = 0 gives way to that: from far off rounding would leave few digits of the way back. */
static kiln_status block_warm_start(struct ki_block *t) {
    kiln_status status;
    double keep[KI_BLOCK], b[KI_BLOCK];
    bool worse = false;
    for (int j = 0; j < t->k; j++) {
        keep[j] = t->reference[j] > 0 ? 1 : 0;
        b[j] = t->b[j];
    }
    TRY(kiln_times(t->W, t->W, t->system->kept));
    TRY(kiln_combine(t->W, keep, t->W, NULL, NULL));
    TRY(ki_block_check(t, false));
    TRY(block_check_start(t));
    for (int j = 0; j < t->k; j++) {
        keep[j] = t->objective[j] <= t->zero[j] ? 1 : 0;
        if (keep[j] > 0) continue;
        t->b[j] = b[j];
        worse = true;
    }
    if (!worse) goto done;
    TRY(kiln_combine(t->W, keep, t->W, NULL, NULL));
    TRY(ki_block_check(t, false));
done:
    return status;
}

/* Row 0 of the trace: w = 0, or the given coefficients. */
static kiln_status block_start(struct ki_block *t) {
    kiln_status status;
    block_swap(t); /* E is all zeros */
    TRY(block_measure_zero(t));
    if (t->system->options.warm_start) {
        block_swap(t);
        TRY(block_warm_start(t));
    }
    for (int j = 0; j < t->k; j++) {
        t->best[j] = t->norm[j];
        if (!isfinite(t->norm[j]) || !isfinite(t->objective[j])) t->diverged = true;
    }
    TRY(ki_block_record(t, t->norm));
done:
    return status;
}

/* Picks the targets that still gain from another cycle. */
static bool block_choose(struct ki_block *t) {
    for (int j = 0; j < t->k; j++)
        t->active[j] = !block_met(t, j) && t->stalls[j] < STALLS && isfinite(t->norm[j]);
    return ki_block_active(t);
}

/* Targets that rounding keeps from the tolerance have converged where what it leaves is the data's own,
 * see linreg_rounding.c. Not where a smaller tolerance than the default was asked for, nor where columns
 * may be so near to dependent that no digit is sure. */
static kiln_status block_forgive(struct ki_block *t) {
    kiln_status status = KILN_OK;
    const struct ki_system *system = t->system;
    if (system->options.tolerance < ki_linreg_tolerance(system->X)) return KILN_OK;
    if (!(system->options.l2 > 0) && system->rank.rank < 0) return KILN_OK;
    for (int j = 0; j < t->k; j++)
        t->active[j] = !block_met(t, j) && t->stalls[j] >= STALLS && isfinite(t->norm[j]);
    if (system->run.cancelled || !ki_block_active(t)) return KILN_OK;
    TRY(ki_block_judge_rounding(t));
    block_tell_truth(t);
done:
    return status;
}

/* This goes to the solution of least norm, from any of the same fit. One that fits worse shows that what was
 * taken for rounding was none: then the rank was not determined. */
static kiln_status block_step_to_least_norm(bool *moved, struct ki_block *t) {
    kiln_status status;
    bool worse = false;
    double objective[KI_BLOCK], b[KI_BLOCK], minus[KI_BLOCK], blur[KI_BLOCK];
    const double noise = 1000 * ki_epsilon(kiln_matrix_type(t->system->X));
    TRY(ki_block_least_norm(moved, t));
    if (!*moved) return KILN_OK;
    TRY(ki_block_blur(t, blur));
    for (int j = 0; j < t->k; j++) objective[j] = t->objective[j], b[j] = t->b[j], minus[j] = -1;
    TRY(ki_block_follow(t));
    TRY(kiln_combine(t->W, t->one, t->W, t->one, t->E));
    TRY(ki_block_check(t, false));
    for (int j = 0; j < t->k; j++) {
        /* of Cauchy and Schwarz: what rounding of the fitted values makes of half the residual's square */
        const double rounding = sqrt(2 * fabs(objective[j]) * blur[j]) + blur[j];
        worse = worse || !(t->objective[j] <= objective[j] + noise * t->zero[j] + rounding);
    }
    if (!worse) return KILN_OK;
    memcpy(t->b, b, sizeof b);
    TRY(kiln_combine(t->W, t->one, t->W, minus, t->E));
    TRY(ki_block_check(t, false));
    ki_rank_undecided(&t->system->rank);
    *moved = false;
done:
    return status;
}

/* A long step costs digits of the fit: a cycle gives them back, and what that lacks of the least norm is
 * short. */
static kiln_status block_lessen(struct ki_block *t) {
    kiln_status status;
    bool moved;
    TRY(block_step_to_least_norm(&moved, t));
    if (!moved || ki_run_iterations(&t->system->run) >= t->system->run.most) return KILN_OK;
    for (int j = 0; j < t->k; j++) {
        t->stalls[j] = 0;
        t->best[j] = t->norm[j];
    }
    t->longest = ki_min(t->longest, SHORTEST);
    if (!block_choose(t)) return KILN_OK;
    TRY(block_refine(t, false));
    TRY(block_step_to_least_norm(&moved, t));
    for (int j = 0; j < t->k; j++) t->stalls[j] = STALLS;
done:
    return status;
}

/* Returns whether directions of next to no curvature may hide some of the target's objective from the
 * criterion, as beside a row of 1e7 in f32: with || D^-1 g || = a, and c the least curvature over D^2 that
 * was met with, a^2 / (2 c). What rounding makes of the residuals is in a. */
static bool block_hides(const struct ki_block *t, int j) {
    const struct ki_system *system = t->system;
    const kiln_type type = kiln_matrix_type(system->X);
    const double epsilon = ki_epsilon(type), tolerance = type == KILN_F32 ? 1e-4 : 1e-9;
    const double norm = t->norm[j] + 2 * epsilon * sqrt(2 * fabs(t->zero[j]));
    if (system->options.l2 > 0 || !system->rank.known || !isfinite(system->rank.least)) return false;
    const double gain = fmax(t->zero[j] - t->objective[j], 0);
    return norm * norm / (2 * system->rank.least) > tolerance * gain + 32 * epsilon * fabs(t->zero[j]);
}

static void block_conclude(const struct ki_block *t) {
    struct ki_run *run = &t->system->run;
    kiln_stop stop = KILN_STOP_TOLERANCE;
    bool converged = true;
    for (int j = 0; j < t->k; j++) {
        converged = converged && (block_met(t, j) || t->rounding[j]) && !block_hides(t, j);
        if (t->rounding[j]) stop = KILN_STOP_ROUNDING;
    }
    if (run->cancelled)
        stop = KILN_STOP_CANCELLED;
    else if (!converged)
        stop = t->diverged ? KILN_STOP_DIVERGED : ki_run_limit(run) ? ki_run_limit(run) : KILN_STOP_STALLED;
    ki_run_problem_ends(run, stop, ki_block_relative(t, t->norm), ki_block_objective(t));
    for (int j = 0; j < t->k; j++) t->system->rss += t->rss[j];
}

kiln_status ki_linreg_block(struct ki_system *system, struct ki_arena *arena, kiln_matrix **W, double *b,
                            const kiln_matrix *y) {
    kiln_status status;
    struct ki_run *run = &system->run;
    struct ki_block t = {
        .system = system, .k = (int)kiln_matrix_cols(y), .y = y, .W = *W, .longest = KI_ENDLESS};
    struct ki_state state[KI_BLOCK_STATE];
    TRY(block_begin(&t, arena));
    ki_block_state(state, &t);
    KI_RUN_STATE(run, state);
    TRY(ki_run_resume(run));
    if (run->resumed) {
        system->direct.wanted = false;
        TRY(block_refine(&t, true));
    } else {
        ki_run_problem(run);
        TRY(block_start(&t));
    }
    while (!ki_run_limit(run) && block_choose(&t)) TRY(block_refine(&t, false));
    TRY(block_lessen(&t));
    TRY(block_forgive(&t));
    block_conclude(&t);
    TRY(ki_block_certify(&t));
    for (int j = 0; j < t.k; j++) b[j] = t.b[j];
done:
    *W = t.W;
    return status;
}
