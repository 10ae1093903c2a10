/* A descent in the dual between two rounds, for checkpoints: of each problem under way the variables, what
 * they make of w, and the order and the random numbers that the next sweep goes on with. What follows from
 * the data is made anew. */
#include <limits.h>

#include "algorithms/newton/newton_dual_work.h"

enum { PLACE = 4, COUNTS = 6, SCALARS = 8, OWN = 6 };
static const char place_name[] = "dual.place";

/* The state of `count` problems one after the other. */
struct packed {
    int64_t place[PLACE]; /* the first problem, how many, whether two threads share each, and `sides` */
    int count;
    double *numbers;         /* of each size_of */
    int64_t *counts, *order; /* of each COUNTS, and a number a row */
};

static int64_t dual_size_of(const struct ki_dual_descent *all) {
    const int64_t k = all->k;
    return ki_dual_variables(all) + ki_dual_weights(all) + k + ki_centre_size(k) + SCALARS;
}

static kiln_status packed_new(struct packed *packed, struct ki_arena *arena,
                              const struct ki_dual_descent *all, int64_t first, int count) {
    const int64_t rows = kiln_matrix_rows(all->newton->X);
    *packed = (struct packed){.place = {first, count, all->shared, all->sides},
                              .count = count,
                              .numbers = ki_arena_doubles(arena, count * dual_size_of(all)),
                              .counts = ki_arena_integers(arena, count * (COUNTS + rows))};
    if (packed->counts) packed->order = packed->counts + (int64_t)count * COUNTS;
    return arena->status;
}

/* The run's state: `state`. */
static void dual_tabulate(struct ki_state state[OWN], const struct ki_dual_descent *all,
                          struct packed *packed) {
    struct ki_run *run = &all->newton->run;
    const int64_t rows = kiln_matrix_rows(all->newton->X), columns = all->task->problems * all->newton->k;
    const bool around = run->outer_parts > 0; /* which has the results */
    const struct ki_state own[OWN] = {
        {place_name, .integers = packed->place, .count = PLACE},
        {"dual.W", .reals = around ? NULL : all->task->W,
         .count = kiln_matrix_cols(all->newton->X) * columns},
        {"dual.b", .reals = around ? NULL : all->task->b, .count = columns},
        {"dual.numbers", .reals = packed->numbers, .count = packed->count * dual_size_of(all)},
        {"dual.counts", .integers = packed->counts, .count = packed->count * COUNTS},
        {"dual.order", .integers = packed->order, .count = packed->count * rows, .least = 0, .most = rows}};
    memcpy(state, own, sizeof own);
    run->state = state;
    run->parts = OWN;
}

/* One way or the other: a problem's numbers to or from `at`; returns what lies behind them. */
static double *dual_move(double *at, double *values, int64_t count, bool out) {
    memcpy(out ? at : values, out ? values : at, (size_t)count * sizeof *at);
    return at + count;
}

static void move_numbers(double *at, struct ki_dual_problem *problem, const struct ki_dual_descent *all,
                         bool out) {
    const int64_t k = all->k;
    at = dual_move(at, problem->a, ki_dual_variables(all), out);
    at = dual_move(at, problem->dual.w, ki_dual_weights(all), out);
    at = dual_move(at, problem->dual.b, k, out);
    at = dual_move(at, problem->centre.now, ki_centre_size(k), out);
    at = dual_move(at, &problem->dual.bound, 1, out);
    at = dual_move(at, &problem->dual.stretch, 1, out);
    at = dual_move(at, &problem->dual.last_b, 1, out);
    at = dual_move(at, &problem->dual.least, 1, out);
    at = dual_move(at, &problem->best, 1, out);
    at = dual_move(at, &problem->mark, 1, out);
    at = dual_move(at, &problem->work, 1, out);
    dual_move(at, &problem->residual, 1, out);
}

static void dual_pack(struct packed *packed, int p, struct ki_dual_descent *all) {
    struct ki_dual_problem *problem = &all->problems[p];
    const struct ki_dual *dual = &problem->dual;
    const int64_t counts[COUNTS] = {problem->sweeps, problem->total,        dual->active,
                                    problem->done,   problem->centre.moves, dual->draws.count};
    memcpy(packed->counts + (int64_t)p * COUNTS, counts, sizeof counts);
    move_numbers(packed->numbers + p * dual_size_of(all), problem, all, true);
    for (int64_t i = 0; i < problem->total; i++)
        packed->order[p * kiln_matrix_rows(dual->X) + i] = dual->order[i];
}

static kiln_status dual_unpack(struct packed *packed, int p, struct ki_dual_descent *all) {
    struct ki_dual_problem *problem = &all->problems[p];
    struct ki_dual *dual = &problem->dual;
    const int64_t *counts = packed->counts + (int64_t)p * COUNTS, rows = kiln_matrix_rows(dual->X);
    bool good = counts[1] == problem->total && counts[2] >= 0 && counts[2] <= counts[1];
    for (int i = 0; i < COUNTS; i++) good = good && counts[i] >= 0;
    for (int64_t i = 0; i < rows; i++) good = good && packed->order[p * rows + i] < rows;
    if (!good) return ki_fail(KILN_ERR_MODEL, "the checkpoint's counts of the dual are not possible");
    problem->sweeps = counts[0];
    dual->active = counts[2];
    problem->done = counts[3] != 0;
    problem->centre.moves = counts[4];
    dual->draws.count = counts[5];
    for (int64_t i = 0; i < problem->total; i++) dual->order[i] = (int32_t)packed->order[p * rows + i];
    move_numbers(packed->numbers + p * dual_size_of(all), problem, all, false);
    return KILN_OK;
}

bool ki_dual_waits(const kiln_control *control) {
    return ki_checkpoint_has(control, place_name);
}

kiln_status ki_dual_keep(struct ki_dual_descent *all, int64_t first, int count) {
    struct ki_run *run = &all->newton->run;
    struct ki_state state[OWN];
    struct ki_arena arena = {0};
    struct packed packed;
    kiln_status status;
    run->report.stopped_by = run->cancelled ? KILN_STOP_CANCELLED : KILN_STOP_NONE;
    if (!ki_checkpoint_due(run->control, run->report.stopped_by)) return KILN_OK;
    TRY(packed_new(&packed, &arena, all, first, count));
    for (int p = 0; p < count; p++) dual_pack(&packed, p, all);
    dual_tabulate(state, all, &packed);
    TRY(ki_run_keep(run));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_dual_look(struct ki_dual_descent *all, int64_t *first, int *count) {
    const int64_t problems = all->task->problems;
    int64_t place[PLACE];
    const struct ki_state state = {place_name, .integers = place, .count = PLACE, .least = 0,
                                   .most = ki_max(problems, KI_DUAL_SIDES)};
    kiln_status status;
    TRY(ki_checkpoint_look(all->newton->run.control, &state, 1));
    const bool several = place[3] > 1, two = place[2] > 0;
    if (place[1] < 1 || place[3] < 1 || place[3] > KI_DUAL_SIDES ||
        place[0] + place[1] > ki_ceil_div(problems, place[3]) || (two && (several || all->newton->k > 1)) ||
        (several && (all->newton->k > 1 || all->task->logistic || !all->newton->no_intercept)))
        return ki_fail(KILN_ERR_MODEL, "the checkpoint's classes are not those of the run");
    *first = place[0];
    *count = (int)place[1];
    all->shared = two;
    all->sides = place[3];
done:
    return status;
}

kiln_status ki_dual_resume(struct ki_dual_descent *all, int64_t first, int count) {
    struct ki_state state[OWN];
    struct ki_arena arena = {0};
    struct packed packed;
    kiln_status status;
    TRY(packed_new(&packed, &arena, all, first, count));
    dual_tabulate(state, all, &packed);
    TRY(ki_run_resume(&all->newton->run));
    for (int p = 0; p < count; p++) TRY(dual_unpack(&packed, p, all));
done:
    return ki_arena_free(&arena, status);
}
