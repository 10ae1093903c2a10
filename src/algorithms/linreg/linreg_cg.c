/* A cycle of conjugate gradient: k recurrences share each pass over X; a target that has converged, or
 * broken down, stands still.
 *
 * An iteration is one pass and kiln_cg_step, which leaves behind what the next pass begins with: the
 * penalty's part of H P and what centres the rows. On a GPU the host does not wait for an iteration's
 * scalars before it queues the next ones. */
#include "algorithms/linreg/linreg_block.h"

/* Queued iterations may take no longer: the user wants to see progress and to stop. */
static const double ahead_seconds = 0.05;
enum { ACTIVE = 1, GOAL = 2, HISTORY = 5 }; /* rows of kiln_cg's state */

/* The criterion, relative to the gradient at w = 0; 0 where that is 0 and so w = 0 is the solution. */
double ki_block_relative(const struct ki_block *t, const double *norm) {
    double largest = 0;
    for (int j = 0; j < t->k; j++) {
        const double ratio = t->reference[j] == 0 ? 0 : norm[j] / t->reference[j];
        if (isnan(ratio) || ratio > largest) largest = ratio;
    }
    return largest;
}

double ki_block_objective(const struct ki_block *t) {
    double all = 0;
    for (int j = 0; j < t->k; j++) all += t->objective[j];
    return all;
}

/* A trace row for the iteration, and the user's say. */
kiln_status ki_block_record(struct ki_block *t, const double *norm) {
    struct ki_run *run = &t->system->run;
    const kiln_status status = ki_run_row(
        run, &(kiln_trace_row){.residual = ki_block_relative(t, norm), .objective = ki_block_objective(t)});
    if (status == KILN_OK) ki_run_tell(run);
    return status;
}

bool ki_block_active(const struct ki_block *t) {
    for (int j = 0; j < t->k; j++)
        if (t->active[j]) return true;
    return false;
}

/* Returns where a cycle ends: at half the tolerance, so that recurrence and truth may differ a little, but
 * not below the rounding in the gradient it began with. Fitting that noise, CG would fill the directions that
 * collinear columns leave free. */
static double cg_goal(const struct ki_block *t, int j) {
    const double noise = 64 * ki_epsilon(kiln_matrix_type(t->system->X));
    return fmax(0.5 * t->system->options.tolerance * t->reference[j], noise * t->norm[j]);
}

static kiln_status cg_begin_state(struct ki_block *t) {
    double state[KI_STATE * KI_BLOCK] = {0};
    float narrow[KI_STATE * KI_BLOCK];
    const int count = KI_STATE * t->k;
    for (int j = 0; j < t->k; j++) {
        state[ACTIVE * t->k + j] = t->active[j] ? 1 : 0;
        state[GOAL * t->k + j] = cg_goal(t, j) * cg_goal(t, j);
    }
    for (int i = 0; i < count; i++) narrow[i] = (float)state[i];
    return kiln_matrix_set(t->S, kiln_matrix_type(t->S) == KILN_F64 ? (const void *)state : narrow);
}

/* Finds what queued iterations have done, slot by slot, until the first in which no target moved. */
static kiln_status cg_account(struct ki_block *t, int queued) {
    kiln_status status;
    double state[KI_STATE * KI_BLOCK], norm[KI_BLOCK];
    const int k = t->k;
    TRY(ki_vector_get(state, t->S));
    for (int slot = 0; slot < queued; slot++) {
        bool moved = false;
        for (int j = 0; j < k; j++) {
            const double rho = state[(HISTORY + 2 * slot) * k + j];
            const double so_far = state[(HISTORY + 2 * slot + 1) * k + j];
            moved = moved || so_far != t->decrease[j];
            t->decrease[j] = so_far;
            norm[j] = sqrt(rho);
            t->objective[j] = t->began[j] - so_far;
        }
        if (!moved) break;
        t->system->run.report.iterations++;
        TRY(ki_block_record(t, norm));
    }
    for (int j = 0; j < k; j++) t->active[j] = state[ACTIVE * k + j] != 0;
done:
    return status;
}

/* Finds how many iterations to queue: as many as are half of those that the last ones let expect, so that few
 * are queued in vain; one on the CPU, which gains nothing by more. */
static int look_ahead(const struct ki_block *t, double norm_before, double norm_now, int queued,
                      double seconds) {
    const double rate = log(norm_before / norm_now) / queued; /* of the slowest target */
    double slowest = 0;
    if (!t->gpu) return 1;
    for (int j = 0; j < t->k; j++)
        if (t->active[j] && t->reference[j] > 0) slowest = fmax(slowest, cg_goal(t, j) / t->reference[j]);
    const double left = rate > 0 && slowest > 0 ? log(norm_now / slowest) / rate : KI_AHEAD;
    return (int)fmax(fmin(fmin(left / 2, KI_AHEAD), ahead_seconds * queued / fmax(seconds, 1e-9)), 1);
}

/* A cycle's first state, or, where it goes on, who is active in the one that there is. */
static kiln_status cg_begin(struct ki_block *t, const kiln_cg *cg, bool resumed) {
    kiln_status status;
    double state[KI_STATE * KI_BLOCK];
    if (resumed) {
        TRY(ki_vector_get(state, t->S));
        for (int j = 0; j < t->k; j++) t->active[j] = state[ACTIVE * t->k + j] != 0;
        return KILN_OK;
    }
    memcpy(t->began, t->objective, sizeof t->began);
    memset(t->decrease, 0, sizeof t->decrease);
    t->begun = ki_run_iterations(&t->system->run);
    TRY(cg_begin_state(t));
    TRY(kiln_cg_begin(cg));
done:
    return status;
}

kiln_status ki_block_cycle(struct ki_block *t, bool resumed) {
    kiln_status status;
    struct ki_system *system = t->system;
    struct ki_run *run = &system->run;
    const kiln_cg cg = {.S = t->S,
                        .E = t->E,
                        .G = t->G,
                        .P = t->P,
                        .Q = t->Q,
                        .inverse = system->inverse,
                        .penalty = system->penalty,
                        .l2 = system->options.l2,
                        .mean = system->options.no_intercept ? NULL : system->mean,
                        .sums = t->sums,
                        .shift = t->shift,
                        .curvature = t->curvature};
    int ahead = 1;
    TRY(cg_begin(t, &cg, resumed));
    double before = ki_block_relative(t, t->norm);
    const int64_t end = t->begun + ki_min(run->most - t->begun, t->longest);
    while (ki_block_active(t) && !run->cancelled && ki_run_iterations(run) < end) {
        const int queued = (int)ki_min(ahead, end - ki_run_iterations(run));
        const double began = ki_clock();
        for (int slot = 0; slot < queued; slot++) {
            TRY(kiln_cg_pass(&cg, system->X, system->options.weights));
            run->report.passes++;
            TRY(kiln_cg_step(&cg, slot));
        }
        TRY(cg_account(t, queued));
        run->report.stopped_by = ki_run_limit(run);
        if (!t->judging) TRY(ki_run_keep(run));
        const double now = run->report.residual;
        ahead = look_ahead(t, before, now, queued, ki_clock() - began);
        before = now;
    }
done:
    return status;
}
