/* Linear support vector machines in the primal: squared hinge and squared epsilon-insensitive loss by the
 * Newton engine, and the duality gap that proves the result (certificate/svm_gap.c). */
#include <stdio.h>

#include "algorithms/newton/labels.h"
#include "algorithms/newton/newton.h"
#include "algorithms/newton/newton_dual.h"
#include "algorithms/newton/newton_narrow.h"
#include "algorithms/certificate/svm_gap.h"
#include "ops/linear/ahead.h"

static const char call[] = "kiln_svm";

enum { AROUND = 5 };

/* All problems of a call: one with two classes or in regression, else one a class. */
struct machine {
    const kiln_svm_options *options;
    const kiln_matrix *X, *y, *weights; /* y the regression's */
    struct ki_labels labels;
    struct ki_newton newton;
    int64_t problems;
    double *W, *b;   /* results, n x problems and 1 x problems */
    double *sums;    /* the classes' weights, or */
    double constant; /* what the objective of the best constant is at least */
    double origin;   /* a regression's constant that is the optimum, or 0 */
    bool descended;  /* W and b hold what the dual's descent found */
    struct ki_dual_alone alone;
    struct ki_svm_gap gap;
    struct ki_state around[AROUND]; /* of all this, for a checkpoint */
};

static kiln_status svm_check(const kiln_matrix *X, const kiln_matrix *y, const kiln_svm_options *options) {
    kiln_status status;
    if (!X || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", call, X ? "y" : "X");
    TRY(ki_check_matrix(call, "y", y, X, kiln_matrix_rows(X), 1));
    if (options->weights) TRY(ki_check_matrix(call, "weights", options->weights, X, kiln_matrix_rows(X), 1));
    if (options->regression && (options->class_weights || options->balanced))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a regression has no classes to weigh", call);
    TRY(ki_check_iteration(call, options->tolerance, options->max_iterations));
    if (kiln_matrix_rows(X) == 0 || kiln_matrix_cols(X) == 0)
        return ki_fail(KILN_ERR_DATA, "%s: X has no %s", call, kiln_matrix_rows(X) == 0 ? "rows" : "columns");
    if (options->regression) TRY(ki_check_finite(call, "y", y, false));
    if (options->weights) TRY(ki_check_weights(call, options->weights));
done:
    return status;
}

static kiln_status svm_check_result(const struct machine *m, const kiln_matrix *W, const kiln_matrix *b) {
    kiln_status status;
    const kiln_svm_options *options = m->options;
    TRY(ki_check_matrix(call, "W", W, m->X, kiln_matrix_cols(m->X), m->problems));
    if (b || !options->no_intercept) TRY(ki_check_matrix(call, "b", b, m->X, 1, m->problems));
    if (options->warm_start) TRY(ki_check_finite(call, "W", W, false));
    if (options->warm_start && !options->no_intercept) TRY(ki_check_finite(call, "b", b, false));
done:
    return status;
}

static kiln_status check_solver(const kiln_svm_options *options) {
    if (!options->regression || options->solver != KILN_CLASSIFIER_DUAL) return KILN_OK;
    return ki_fail(KILN_ERR_UNSUPPORTED, "%s: a regression has no solver in the dual", call);
}

static kiln_status svm_fill(kiln_svm_options *options, kiln_type type) {
    kiln_status status;
    TRY(ki_options_check(options, &ki_algorithm_svm));
    TRY(ki_check_strength(call, "l2", options->l2));
    TRY(ki_check_strength(call, "epsilon", options->epsilon));
    ki_options_fill(options, &ki_algorithm_svm, type);
done:
    return status;
}

static kiln_status machine_new(struct machine *m) {
    kiln_status status;
    const kiln_svm_options *options = m->options;
    struct ki_newton *newton = &m->newton;
    newton->call = call;
    newton->X = m->X;
    newton->weights = m->weights;
    newton->k = 1;
    newton->l2 = options->l2;
    newton->no_intercept = options->no_intercept != 0;
    newton->standardize = options->standardize != 0;
    newton->run.problems = m->problems;
    const bool settled = options->regression || (options->warm_start && !options->solver);
    TRY(ki_dual_choose(&m->descended, newton, settled ? KILN_CLASSIFIER_NEWTON : options->solver));
    m->W = ki_run_reals(&newton->run, kiln_matrix_cols(m->X) * m->problems);
    m->b = ki_run_reals(&newton->run, m->problems);
    TRY(newton->run.arena.status);
done:
    return status;
}

/* ---- the problems ---- */

/* Returns whether one constant has every target that counts in its tube, by more than rounding: that is the
 * optimum then, with W = 0. y and s: m each; unit: the type's. */
static bool has_constant(double *constant, const double *y, const double *s, int64_t m, double epsilon,
                         double unit) {
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < m; i++) {
        if (!(s[i] > 0)) continue;
        least = fmin(least, y[i]);
        most = fmax(most, y[i]);
    }
    *constant = least + (most - least) / 2;
    return most - least <= 2 * epsilon - 16 * unit * fmax(fabs(least), fabs(most));
}

/* The run begins at a constant that is the optimum. */
static kiln_status look_for_constant(struct machine *m, const kiln_matrix *s) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t rows = kiln_matrix_rows(m->y);
    double constant, *y = ki_arena_doubles(&arena, 2 * rows);
    TRY(arena.status);
    TRY(ki_vector_get(y, m->y));
    TRY(ki_vector_get(y + rows, s));
    if (has_constant(&constant, y, y + rows, rows, m->options->epsilon, ki_epsilon(kiln_matrix_type(m->y))))
        m->origin = constant;
done:
    return ki_arena_free(&arena, status);
}

/* The least objective of a constant is weight / 2 (sigma - epsilon)^2 at least, sigma the targets' standard
 * deviation and above epsilon: || max(|y - b| - epsilon, 0) || >= || y - b || - || epsilon ||. */
static kiln_status weigh_targets(struct machine *m) {
    kiln_status status;
    const double one = 1, epsilon = m->options->epsilon;
    struct ki_arena arena = {0};
    kiln_matrix *off = ki_arena_rows(&arena, m->y, 1), *s = ki_arena_rows(&arena, m->y, 1);
    double weight, mean, square;
    TRY(arena.status);
    TRY(m->weights ? ki_copy(s, m->weights) : kiln_fill(s, 1));
    TRY(kiln_norm(&weight, s, KILN_NORM_1));
    TRY(kiln_dot(&mean, m->y, s));
    mean /= -weight;
    TRY(kiln_fill(off, 1));
    TRY(kiln_combine(off, &mean, off, &one, m->y));
    TRY(kiln_times(off, off, off));
    TRY(kiln_dot(&square, off, s));
    const double sigma = sqrt(square / weight);
    if (isfinite(sigma)) m->constant = weight / 2 * fmax(sigma - epsilon, 0) * fmax(sigma - epsilon, 0);
    if (sigma <= epsilon && !m->options->no_intercept) TRY(look_for_constant(m, s));
done:
    return ki_arena_free(&arena, status);
}

static kiln_status svm_weigh(struct machine *m) {
    if (m->options->regression) return weigh_targets(m);
    m->sums = ki_run_reals(&m->newton.run, m->labels.count);
    return m->sums ? ki_labels_sums(m->sums, &m->labels, m->y) : m->newton.run.arena.status;
}

/* The objective of the best intercept alone, which is (a - b) / (a + b) for classes of weights a and b. */
static double svm_constant_of(const struct machine *m, int64_t c) {
    double total = 0;
    for (int64_t i = 0; m->sums && i < m->labels.count; i++) total += m->sums[i];
    return m->sums ? 2 * m->sums[c] * (total - m->sums[c]) / total : m->constant;
}

/* The c-th problem's columns of a warm start, from the tables into the engine. */
static kiln_status set_start(struct machine *m, int64_t c) {
    kiln_status status;
    const int64_t cols = kiln_matrix_cols(m->X);
    struct ki_arena arena = {0};
    double *column = ki_arena_doubles(&arena, cols);
    TRY(arena.status);
    for (int64_t j = 0; j < cols; j++) column[j] = m->W[j * m->problems + c];
    const kiln_matrix *W = ki_arena_vector(&arena, m->X, cols, column),
                      *b = ki_arena_vector(&arena, m->X, 1, m->b + c);
    TRY(arena.status);
    TRY(ki_newton_set_start(&m->newton, W, b));
done:
    return ki_arena_free(&arena, status);
}

static kiln_status keep_result(struct machine *m, int64_t c) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t cols = kiln_matrix_cols(m->X);
    double *column = ki_arena_doubles(&arena, cols);
    TRY(arena.status);
    TRY(ki_vector_get(column, m->newton.W));
    for (int64_t j = 0; j < cols; j++) m->W[j * m->problems + c] = column[j];
    TRY(ki_vector_get(m->b + c, m->newton.b));
done:
    return ki_arena_free(&arena, status);
}

static kiln_status svm_solve(struct machine *m, int64_t c) {
    kiln_status status = KILN_OK;
    const bool regression = m->options->regression != 0;
    struct ki_arena arena = {0};
    kiln_matrix *made = NULL;
    if (!regression) TRY(ki_labels_column(&made, &arena, &m->labels, m->y, m->problems == 1 ? 1 : c, 1, -1));
    const kiln_matrix *target = regression ? m->y : made;
    const bool warm = m->descended || m->options->warm_start;
    const double before = m->newton.run.report.objective;
    if (warm) TRY(set_start(m, c));
    m->newton.constant = svm_constant_of(m, c);
    TRY(ki_newton_solve(&m->newton,
                        &(kiln_loss){.kind = regression ? KILN_LOSS_SQUARED_EPSILON : KILN_LOSS_SQUARED_HINGE,
                                     .parameter = m->options->epsilon,
                                     .y = target,
                                     .weights = m->weights},
                        &(struct ki_newton_start){.warm = warm, .origin = m->origin}));
    TRY(ki_svm_gap_add(&m->gap, &m->newton, target, m->newton.run.report.objective - before));
    TRY(keep_result(m, c));
done:
    return ki_arena_free(&arena, status);
}

static struct ki_dual_task task_of(const struct machine *m, const kiln_matrix *y) {
    return (struct ki_dual_task){.labels = &m->labels, .y = y, .problems = m->problems, .W = m->W, .b = m->b};
}

/* All classes' starts from the dual, where that is worth it. */
static kiln_status svm_descend(struct machine *m, const kiln_matrix *y) {
    kiln_status status = KILN_OK;
    const struct ki_dual_task task = task_of(m, y);
    m->newton.run.report.solver = m->descended ? "dual" : "newton";
    const kiln_control *control = m->newton.run.control;
    if (m->descended && !m->alone.descended && (!ki_checkpoint_waits(control) || ki_dual_waits(control)))
        TRY(ki_dual_solve(&m->newton, &task));
done:
    return status;
}

/* A run goes on with the results of the problems before the one at hand. */
static kiln_status svm_begin(struct machine *m) {
    kiln_status status;
    struct ki_run *run = &m->newton.run;
    const struct ki_state around[AROUND] = {
        {"coefficients", .reals = m->W, .count = kiln_matrix_cols(m->X) * m->problems},
        {"intercepts", .reals = m->b, .count = m->problems},
        {"dual", .reals = &m->gap.dual},
        {"rounding", .reals = &m->gap.rounding},
        {"primals' rounding", .reals = &m->gap.primal}};
    memcpy(m->around, around, sizeof around);
    KI_RUN_AROUND(run, m->around);
    TRY(ki_run_begin(run, (struct ki_described){.options = m->options,
                                                .given = {{"y", m->y}, {"the weights", m->weights}}}));
    TRY(ki_run_look_around(run));
done:
    return status;
}

/* All problems, from the dual where that is worth it, and from the dual alone where that is enough. */
static kiln_status svm_solve_all(struct machine *m, const kiln_matrix *y) {
    kiln_status status = KILN_OK;
    struct ki_run *run = &m->newton.run;
    const struct ki_dual_task task = task_of(m, y);
    if (m->descended) TRY(ki_dual_alone(&m->alone, &m->newton, &task));
    if (m->alone.met) {
        m->gap.dual = m->newton.run.report.objective - m->alone.gap;
        m->gap.rounding = m->gap.primal = m->alone.rounding;
        return KILN_OK;
    }
    TRY(svm_weigh(m));
    TRY(ki_newton_open(&m->newton));
    TRY(svm_begin(m));
    TRY(svm_descend(m, y));
    while (run->ended < run->problems && (m->descended || !run->cancelled)) TRY(svm_solve(m, run->ended));
done:
    return status;
}

static kiln_status svm_finish(struct machine *m, kiln_matrix *W, kiln_matrix *b) {
    kiln_status status;
    const double objective = m->newton.run.report.objective;
    TRY(ki_vector_set(W, m->W));
    if (b) TRY(ki_vector_set(b, m->b));
    /* at zero, the gap is one of rounding; so is a negative one */
    const double gap = fmax(objective - m->gap.dual, 0);
    ki_report_figure(&m->newton.run.report, "gap",
                     isnan(m->gap.dual) ? (double)NAN
                     : objective > 0    ? gap / objective
                                        : 0);
    if (!isnan(m->gap.dual)) /* no loss is below 0, which is a bound without the dual's rounding */
        ki_report_certify(&m->newton.run.report, fmin(gap + m->gap.rounding, objective + m->gap.primal),
                          "duality gap");
    ki_newton_tell_rank(&m->newton);
    if (m->newton.l2 == 0 && !m->options->regression && objective < 1e-6 * m->newton.columns.weight)
        ki_report_warn(&m->newton.run.report, "margins", "a penalty (kiln_svm_options.l2)",
                       "the classes can be separated with every margin kept: without a penalty many "
                       "coefficients do that, and these are some of them");
done:
    return status;
}

kiln_status ki_svm_explain(kiln_solver *choice, const void *given, const kiln_matrix *X, int64_t k) {
    kiln_status status;
    kiln_svm_options options;
    TRY(KI_TAKE(kiln_svm_options, &options, given));
    TRY(svm_fill(&options, kiln_matrix_type(X)));
    const struct ki_newton newton = {.call = call,
                                     .X = X,
                                     .k = 1,
                                     .l2 = options.l2,
                                     .no_intercept = options.no_intercept != 0,
                                     .standardize = options.standardize != 0,
                                     .run.problems = k > 2 ? k : 1};
    TRY(check_solver(&options));
    TRY(ki_dual_explain(choice, &newton, options.regression ? KILN_CLASSIFIER_NEWTON : options.solver));
    if (options.regression) snprintf(choice->why, sizeof choice->why, "the only one for a regression");
done:
    return status;
}

static kiln_status svm_again(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                             const void *options, kiln_report *report) {
    return kiln_svm(W, b, X, y, options, report);
}

kiln_status kiln_svm(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                     const kiln_svm_options *options, kiln_report *report) {
    kiln_status status;
    kiln_svm_options own = {0};
    bool solved;
    struct machine m = {.options = &own, .X = X, .y = y, .problems = 1};
    struct ki_run *run = &m.newton.run;
    TRY(KI_RUN_OPEN(run, svm, &own, options, report));
    m.weights = own.weights;
    TRY(svm_check(X, y, &own));
    TRY(svm_fill(&own, kiln_matrix_type(X)));
    const kiln_loss_kind loss = own.regression ? KILN_LOSS_SQUARED_EPSILON : KILN_LOSS_SQUARED_HINGE;
    TRY(ki_linear_ahead(
        &(struct ki_ahead){.X = X, .newton = true, .labels = !own.regression, .loss.kind = loss}));
    ki_run_on(run, X, own.tolerance, own.max_iterations);
    if (!own.regression) {
        TRY(ki_labels_new(&m.labels, &run->arena, call, y,
                          &(struct ki_label_options){own.weights, own.class_weights, own.balanced != 0}));
        if (m.labels.weights) m.weights = m.labels.weights;
        if (m.labels.count > 2) m.problems = m.labels.count;
    }
    TRY(svm_check_result(&m, W, b));
    TRY(check_solver(&own));
    TRY(ki_narrow_solve(&solved, svm_again, &(struct ki_narrow_task){W, b, X, y, &own, own.warm_start != 0},
                        report));
    if (solved) {
        run->to = NULL; /* which has the report */
        goto done;
    }
    m.gap = (struct ki_svm_gap){.regression = own.regression != 0, .epsilon = own.epsilon};
    TRY(machine_new(&m));
    if (own.warm_start) TRY(ki_vector_get(m.W, W));
    if (own.warm_start && !own.no_intercept) TRY(ki_vector_get(m.b, b));
    TRY(svm_solve_all(&m, y));
    TRY(svm_finish(&m, W, b));
done:
    return ki_run_close(run, status);
}
