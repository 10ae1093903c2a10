/* The primal's Hessian is ill-conditioned where columns outnumber rows and the penalty is weak, and
 * Newton's inner iterations are many, while the dual has few variables that hardly know of each other:
 * coordinate descent (ops/linear/dual.h) comes close to the optimum in a few sweeps, each of which costs
 * what a pass does. What it ends at is a start for the Newton engine, which judges it by the criterion of
 * every other solver and takes the steps that it may lack.
 *
 * An intercept without a penalty asks for sum t = 0, which no single variable can keep. It is given a
 * penalty about a centre c instead, rho/2 (b - c)^2, and c moves whenever the sweeps have come as near to
 * that problem's optimum as sum t is to 0: the method of multipliers, which stops where both are small. As
 * b - c, at the optimum, is almost linear in c, the last centres say where it would be 0
 * (newton_centre.c), and few moves do.
 *
 * Classes go side by side, and without an intercept up to eight of them on a thread; where they are fewer
 * than threads, two share the rows of one. */
#include <stdio.h>

#include "algorithms/newton/newton_dual_work.h"

#include "ops/linear/newton.h"

/* SWEEPS_LOGISTIC: where one thread wants more, Newton's method is faster from there on; halves of two
 * threads come less far in a sweep and get twice as many. CLOSE: of the tolerance, by the estimate that
 * sweeps leave. LEAST, of a row's weight: where a variable of the logistic loss begins, so small that w
 * need not know. STEP: the intercept's, beside the mean row's; more costs sweeps, less moves of its
 * centre. DOUBT: times the largest slope, beyond which a row is left out that two threads share, as
 * neither knows what the other changes. ROUND: seconds until the next call of the progress callback.
 * VECTORS: entries of n that Newton's method goes over in an inner iteration, beside the pass. */
enum { SWEEPS = 4000, SWEEPS_LOGISTIC = 120, JUDGED = 128 };
static const double CLOSE = 0.1, LEAST = 1e-12, STEP = 0.05, DOUBT = 16, ROUND = 0.1, VECTORS = 10,
                    GAIN = 0.1;

static bool dual_possible(const struct ki_newton *newton) {
    return ki_dual_possible(newton->X) && newton->l2 > 0 && newton->l1 == 0;
}

/* Returns what Newton's method is expected to take on two threads, in times of the dual, for products alone:
 * real and made text of 200 to 10,000 rows, penalties from 100 to 0.01. `share` is a row's square beside the
 * penalty. An intercept makes the primal better conditioned, as its columns are centred, and the dual worse:
 * there it is faster for the weakest penalties alone. */
static double dual_advantage(const struct ki_newton *newton, double share) {
    if (newton->no_intercept) return share < 0.3 ? 0.4 : 1.2;
    if (newton->k > 1) return share < 0.3 || share > 100 || newton->k < 16 ? 0.3 : 0.7;
    return share < 10000 ? 0.3 : 1.2;
}

/* The primal's vectors are as long as X is wide (newton_narrow.c), and its work is that of all threads. A
 * problem's sweeps are counted as one thread's: what two gain that share them (ki_dual_shared) is left
 * out. */
static bool dual_worth(const struct ki_newton *newton) {
    const kiln_matrix *X = newton->X;
    const double threads = fmax(ki_newton_threads(kiln_matrix_device(X)), 1),
                 together = fmin(threads, fmax((double)newton->run.problems, 1)),
                 entries = fmax((double)kiln_matrix_nnz(X), 1);
    if (kiln_matrix_cols(X) <= kiln_matrix_rows(X) || newton->standardize) return false;
    const double pass =
        (entries + VECTORS * fmin((double)kiln_matrix_cols(X), entries)) / entries * 2 * together / threads;
    return pass * dual_advantage(newton, ki_dual_mean_square(X) / newton->l2) > 1;
}

kiln_status ki_dual_choose(bool *wanted, const struct ki_newton *newton, kiln_classifier_solver solver) {
    if ((int)solver < 0 || solver > KILN_CLASSIFIER_DUAL)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: there is no solver %d", newton->call, (int)solver);
    const bool can = dual_possible(newton);
    *wanted = solver ? solver == KILN_CLASSIFIER_DUAL : can && dual_worth(newton);
    if (!*wanted || can) return KILN_OK;
    ki_fail(KILN_ERR_UNSUPPORTED,
            "%s: the dual is for a sparse X in the memory of one CPU, and an L2 penalty without L1",
            newton->call);
    return ki_hint("solve by Newton's method, which takes them all");
}

kiln_status ki_dual_explain(kiln_solver *choice, const struct ki_newton *newton,
                            kiln_classifier_solver solver) {
    kiln_status status;
    bool dual = false;
    TRY(ki_dual_choose(&dual, newton, solver));
    choice->solver = dual ? "dual" : "newton";
    snprintf(choice->why, sizeof choice->why, "%s",
             solver ? "as asked for"
             : dual ? "columns outnumber rows, and the penalty is weak beside the rows' squares"
             : dual_possible(newton)
                 ? "the dual is possible too, but not expected to be faster for such a shape and penalty"
                 : "the dual is for a sparse X in the memory of one CPU, and an L2 penalty without L1");
done:
    return status;
}

int64_t ki_dual_variables(const struct ki_dual_descent *all) {
    const int64_t m = kiln_matrix_rows(all->newton->X);
    return all->k > 1 ? m * ki_dual_stride(all->k) : 4 * m;
}

int64_t ki_dual_weights(const struct ki_dual_descent *all) {
    const int64_t n = kiln_matrix_cols(all->newton->X);
    if (all->k > 1) return n * ki_dual_stride(all->k);
    return 3 * n + (all->shared ? KI_DUAL_PARTS * (n + 1) : 0);
}

static void dual_problem_new(struct ki_dual_problem *problem, const struct ki_dual_descent *all,
                             struct ki_arena *arena) {
    const int64_t m = kiln_matrix_rows(all->newton->X),
                  room = all->k > 1 ? KI_DUAL_ROOM * ki_dual_stride(all->k) : 0;
    problem->y = ki_arena_doubles(arena, m);
    problem->a = ki_arena_doubles(arena, ki_dual_variables(all) + room);
    problem->dual.w = ki_arena_doubles(arena, ki_dual_weights(all));
    problem->dual.b = ki_arena_doubles(arena, all->k);
    problem->dual.order = ki_arena_room(arena, m, sizeof(int32_t));
    ki_centre_open(&problem->centre, arena, all->k);
}

/* Takes all rows in again. */
static void dual_widen(struct ki_dual_problem *problem) {
    problem->dual.active = problem->total;
    problem->dual.bound = INFINITY;
    problem->dual.least = INFINITY;
}

/* The variables at w = 0, from the classes that y holds for softmax; and the rows in their order. */
static void dual_begin_rows(struct ki_dual_problem *problem, const struct ki_dual_descent *all) {
    struct ki_dual *dual = &problem->dual;
    const int64_t m = kiln_matrix_rows(dual->X);
    problem->total = 0;
    if (all->k > 1) memset(dual->a, 0, (size_t)(m * dual->stride) * sizeof *dual->a);
    for (int64_t i = 0; i < m; i++) {
        const double s = all->s ? all->s[i] : 1;
        if (s > 0) dual->order[problem->total++] = (int32_t)i;
        if (all->k > 1) {
            if (dual->logistic) dual->a[i * dual->stride + (int64_t)problem->y[i]] = 1;
            continue;
        }
        dual->a[i] = dual->logistic ? LEAST * s : 0;
        dual->rest[i] = s - dual->a[i];
    }
    dual_widen(problem);
}

/* Finds where moves between sweeps begin. */
static void dual_begin_moves(struct ki_dual *dual) {
    const int64_t m = kiln_matrix_rows(dual->X), n = kiln_matrix_cols(dual->X);
    dual->former_w = dual->own ? dual->own + KI_DUAL_PARTS * (n + 1) : dual->w + n;
    dual->before_w = dual->former_w + n;
    dual->former_a = dual->rest + m;
    dual->before_a = dual->former_a + m;
    memcpy(dual->former_a, dual->a, (size_t)m * sizeof *dual->a);
    memcpy(dual->before_a, dual->a, (size_t)m * sizeof *dual->a);
}

/* Before the first sweep: w = 0, and b what balances nothing. */
static kiln_status dual_begin(struct ki_dual_problem *problem, const struct ki_dual_descent *all,
                              int64_t number) {
    kiln_status status;
    const struct ki_newton *newton = all->newton;
    const struct ki_dual_task *task = all->task;
    const int64_t m = kiln_matrix_rows(newton->X), n = kiln_matrix_cols(newton->X),
                  first = number * all->sides,
                  k = newton->k > 1 ? newton->k : ki_min(all->sides, task->problems - first),
                  stride = ki_dual_stride(all->k);
    struct ki_dual *dual = &problem->dual;
    struct ki_arena arena = {0};
    kiln_matrix *column = NULL;
    TRY(ki_labels_column(&column, &arena, task->labels, task->y,
                         all->k > 1            ? -1
                         : task->problems == 1 ? 1
                                               : first,
                         1, -1));
    TRY(ki_vector_get(problem->y, column));
    *dual = (struct ki_dual){.X = newton->X,
                             .y = newton->k > 1 ? NULL : problem->y,
                             .s = all->s,
                             .reciprocal = all->reciprocal,
                             .uniform = all->uniform,
                             .logistic = task->logistic,
                             .k = k,
                             .first = first,
                             .stride = stride,
                             .bias_step = newton->no_intercept ? 0 : all->square[m],
                             .square = all->square,
                             .a = problem->a,
                             .rest = problem->a + m * stride,
                             .w = dual->w,
                             .b = dual->b,
                             .own = all->shared ? dual->w + n : NULL,
                             .stretch = all->shared ? KI_DUAL_PARTS : 1,
                             .order = dual->order,
                             .draws = {.seed = (uint64_t)first, .stream = KI_STREAM_DUAL}};
    memset(dual->w, 0, (size_t)ki_dual_weights(all) * sizeof *dual->w);
    memset(dual->b, 0, (size_t)all->k * sizeof *dual->b); /* a checkpoint has them all */
    ki_centre_begin(&problem->centre);
    problem->sweeps = 0;
    problem->work = 0;
    problem->residual = problem->best = problem->mark = 1;
    problem->done = false;
    dual_begin_rows(problem, all);
    if (all->k == 1) dual_begin_moves(dual);
done:
    return ki_arena_free(&arena, status);
}

/* Returns what of t does not add up to 0, relative to the weights. */
static double dual_imbalance(const struct ki_dual_problem *problem, double weight) {
    const struct ki_dual *dual = &problem->dual;
    double largest = 0;
    if (!(dual->bias_step > 0)) return 0;
    for (int64_t c = 0; c < dual->k; c++)
        largest = fmax(largest, fabs(dual->b[c] - problem->centre.now[c]) / dual->bias_step / weight);
    return largest;
}

/* Whether sweeps are slow: at JUDGED of them, and whenever they have doubled since, the least residual has
 * to be a GAIN of what it was. Where rows know of each other, as in data of more rows than columns, badly
 * scaled columns or next to no penalty, it never is, and Newton's method goes on from there. */
static bool dual_slow(struct ki_dual_problem *problem) {
    problem->best = fmin(problem->best, problem->residual);
    const int64_t sweeps = problem->sweeps;
    if (sweeps < JUDGED || (sweeps & (sweeps - 1)) != 0) return false;
    const bool slow = problem->best > GAIN * problem->mark;
    problem->mark = problem->best;
    return slow;
}

/* A sweep, and what follows from its slopes. */
static void dual_advance(struct ki_dual_problem *problem, const struct ki_dual_descent *all) {
    struct ki_dual *dual = &problem->dual;
    const double goal = CLOSE * all->newton->run.tolerance;
    const int64_t most = dual->logistic ? (dual->own ? KI_DUAL_PARTS : 1) * SWEEPS_LOGISTIC : SWEEPS;
    problem->work += (double)dual->active / (double)problem->total;
    const bool whole = dual->active == problem->total && isinf(dual->bound);
    ki_dual_sweep(dual);
    problem->sweeps++;
    const double slope = sqrt(dual->violation / all->weight), off = dual_imbalance(problem, all->weight);
    problem->residual = fmax(slope, off);
    dual->bound = dual->worst > 0 ? (dual->own ? DOUBT : 1) * dual->worst : INFINITY;
    problem->done = (slope <= goal && off <= goal && whole) || problem->sweeps >= most || dual_slow(problem);
    if (problem->done) return;
    if (off > goal && slope <= off)
        ki_centre_move(&problem->centre, dual->b);
    else if (slope > goal)
        return;
    dual_widen(problem);
}

struct round {
    struct ki_dual_descent *all;
    double until;
};

static void run_problem(void *arg, int part) {
    const struct round *round = arg;
    struct ki_dual_problem *problem = &round->all->problems[part];
    while (!problem->done && ki_clock() < round->until) dual_advance(problem, round->all);
}

/* Returns how many problems are solved, how far those are that are solved together, and the user's say. */
static bool dual_tell(const struct ki_dual_descent *all, int64_t solved, int count) {
    struct ki_run *run = &all->newton->run;
    double residual = 0;
    for (int p = 0; p < count; p++) residual = fmax(residual, all->problems[p].residual);
    if (ki_run_stage(run, "solve", solved * all->sides, all->task->problems, residual)) run->cancelled = true;
    return !run->cancelled;
}

/* A problem's coefficients as the task's columns. */
static void dual_keep(const struct ki_dual_descent *all, const struct ki_dual_problem *problem) {
    const struct ki_dual_task *task = all->task;
    const struct ki_dual *dual = &problem->dual;
    const int64_t n = kiln_matrix_cols(dual->X), columns = task->problems * all->newton->k, at = dual->first;
    for (int64_t c = 0; c < dual->k; c++) {
        for (int64_t j = 0; j < n; j++) task->W[j * columns + at + c] = dual->w[j * dual->stride + c];
        task->b[at + c] = dual->b[c];
    }
    all->newton->run.report.passes += (int64_t)ceil(problem->work);
}

static bool dual_judged_begin(const struct ki_dual_descent *all) {
    all->judge->weight = all->weight;
    all->newton->run.report.passes++;
    if (ki_dual_judge_begin(all->judge, &all->problems[0].dual, all->square)) return true;
    all->judge->reference = 0;
    return false;
}

static void dual_judged_end(const struct ki_dual_descent *all) {
    ki_dual_judge_end(all->judge, &all->problems[0].dual);
    all->newton->run.report.passes++;
}

/* Problems first ... first + count - 1, side by side. */
static kiln_status dual_solve_together(struct ki_dual_descent *all, int64_t first, int count, bool resumed) {
    kiln_status status = KILN_OK;
    bool done = false;
    for (int p = 0; p < count; p++) TRY(dual_begin(&all->problems[p], all, first + p));
    if (all->judge && !dual_judged_begin(all)) return KILN_OK;
    if (resumed) TRY(ki_dual_resume(all, first, count));
    while (!done && dual_tell(all, first, count)) {
        struct round round = {all, ki_clock() + ROUND};
        ki_newton_parallel(kiln_matrix_device(all->newton->X), count, run_problem, &round);
        done = true;
        for (int p = 0; p < count; p++) done = done && all->problems[p].done;
        if (!done) TRY(ki_dual_keep(all, first, count));
    }
    if (!done) TRY(ki_dual_keep(all, first, count));
    if (all->judge) dual_judged_end(all);
    for (int p = 0; p < count; p++) dual_keep(all, &all->problems[p]);
done:
    return status;
}

/* L^-1 and the rows' squares, from the columns as the engine has measured them; behind the squares the
 * intercept's step, their mean. */
static void dual_measure(struct ki_dual_descent *all) {
    const struct ki_newton *newton = all->newton;
    const int64_t m = kiln_matrix_rows(newton->X), n = kiln_matrix_cols(newton->X);
    all->weight = newton->columns.weight;
    for (int64_t j = 0; j < n; j++) {
        const double variance = newton->columns.variance[j];
        const double penalty = newton->l2 * (newton->standardize ? variance : 1);
        const bool kept = newton->no_intercept ? newton->columns.square[j] > 0 : variance > 0;
        const bool any = newton->columns.square[j] > 0; /* of a column without entries no row asks */
        all->reciprocal[j] = (kept || !any) && penalty > 0 ? 1 / penalty : 0;
        all->uniform = all->uniform && all->reciprocal[j] == all->reciprocal[0];
    }
    ki_dual_measure(all->square, newton->X, all->reciprocal);
    double sum = 0;
    for (int64_t i = 0; i < m; i++) sum += all->square[i];
    all->square[m] = fmax(STEP * sum / (double)m, DBL_MIN);
    for (int64_t i = 0; i < m && !newton->no_intercept; i++) all->square[i] += all->square[m];
}

/* Prepares what all classes share. Of a judged descent L^-1 is one number, and a walk with the labels finds
 * the squares (judged_begin). */
static kiln_status dual_prepare(struct ki_dual_descent *all, struct ki_arena *arena) {
    kiln_status status;
    const struct ki_newton *newton = all->newton;
    const int64_t m = kiln_matrix_rows(newton->X), n = all->judge ? 1 : kiln_matrix_cols(newton->X);
    all->reciprocal = ki_arena_doubles(arena, n);
    all->square = ki_arena_doubles(arena, m + 1);
    if (newton->weights) all->s = ki_arena_doubles(arena, m);
    all->problems = ki_arena_zeros(arena, all->count, sizeof *all->problems);
    for (int p = 0; all->problems && p < all->count; p++) dual_problem_new(&all->problems[p], all, arena);
    TRY(arena->status);
    if (newton->weights) TRY(ki_vector_get(all->s, newton->weights));
    all->uniform = true;
    if (!all->judge) {
        dual_measure(all);
        return KILN_OK;
    }
    all->reciprocal[0] = 1 / newton->l2;
    all->weight = newton->weights ? 0 : (double)m;
    for (int64_t i = 0; i < m && newton->weights; i++) all->weight += all->s[i];
done:
    return status;
}

/* Returns how many classes, each against the rest, go over a row together: an intercept's centre depends on
 * all that do. */
static int64_t sides_of(const struct ki_newton *newton, const struct ki_dual_task *task, int64_t threads) {
    if (newton->k > 1 || task->logistic || !newton->no_intercept) return 1;
    return ki_min(ki_ceil_div(task->problems, threads), KI_DUAL_SIDES);
}

/* A run that goes on begins with the problems that were under way, which may be more than threads. */
kiln_status ki_dual_solve_judged(struct ki_newton *newton, const struct ki_dual_task *task,
                                 struct ki_dual_judge *judge) {
    kiln_status status;
    const int64_t threads = ki_max(ki_newton_threads(kiln_matrix_device(newton->X)), 1);
    const bool resumed = ki_dual_waits(newton->run.control);
    struct ki_dual_descent all = {
        .newton = newton, .task = task, .judge = judge, .sides = sides_of(newton, task, threads)};
    struct ki_arena arena = {0};
    int64_t first = 0;
    int count = 0;
    TRY(ki_dual_open(newton->X));
    all.shared = newton->k == 1 && threads >= KI_DUAL_PARTS * task->problems && ki_dual_shared(newton->X);
    if (resumed) TRY(ki_dual_look(&all, &first, &count));
    const int64_t problems = ki_ceil_div(task->problems, all.sides);
    const int standard = (int)ki_min(problems, threads);
    all.k = ki_max(newton->k, all.sides);
    all.count = (int)ki_max(standard, count);
    TRY(dual_prepare(&all, &arena));
    if (resumed) TRY(dual_solve_together(&all, first, count, true));
    for (first = resumed ? first + count : 0; first < problems && !newton->run.cancelled; first += standard)
        TRY(dual_solve_together(&all, first, (int)ki_min(standard, problems - first), false));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_dual_solve(struct ki_newton *newton, const struct ki_dual_task *task) {
    return ki_dual_solve_judged(newton, task, NULL);
}
