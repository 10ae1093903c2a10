/* Logistic regression: two classes as one column of coefficients, more as true softmax; both by the Newton
 * engine.
 *
 * Softmax keeps all K columns, as a penalty wants. Without one, adding the same vector to every column
 * changes nothing, and the Hessian is singular in those directions; conjugate gradient from zero never
 * enters them. */
#include "algorithms/newton/labels.h"
#include "algorithms/newton/newton.h"
#include "algorithms/newton/newton_dual.h"
#include "algorithms/newton/newton_narrow.h"
#include "ops/linear/ahead.h"

static const char call[] = "kiln_logreg";

static kiln_status logreg_check(const kiln_matrix *X, const kiln_matrix *y,
                                const kiln_logreg_options *options) {
    kiln_status status;
    if (!X || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", call, X ? "y" : "X");
    TRY(ki_check_matrix(call, "y", y, X, kiln_matrix_rows(X), 1));
    if (options->weights) TRY(ki_check_matrix(call, "weights", options->weights, X, kiln_matrix_rows(X), 1));
    TRY(ki_check_iteration(call, options->tolerance, options->max_iterations));
    if (kiln_matrix_rows(X) == 0 || kiln_matrix_cols(X) == 0)
        return ki_fail(KILN_ERR_DATA, "%s: X has no %s", call, kiln_matrix_rows(X) == 0 ? "rows" : "columns");
    if (options->weights) TRY(ki_check_weights(call, options->weights));
done:
    return status;
}

static kiln_status logreg_check_result(const kiln_matrix *W, const kiln_matrix *b, const kiln_matrix *X,
                                       int64_t k, const kiln_logreg_options *options) {
    kiln_status status;
    TRY(ki_check_matrix(call, "W", W, X, kiln_matrix_cols(X), k));
    if (b || !options->no_intercept) TRY(ki_check_matrix(call, "b", b, X, 1, k));
    if (options->warm_start) TRY(ki_check_finite(call, "W", W, false));
    if (options->warm_start && !options->no_intercept) TRY(ki_check_finite(call, "b", b, false));
done:
    return status;
}

/* Defaults; with an l1 term there is no l2 term unless it is asked for. */
static kiln_status logreg_fill(kiln_logreg_options *options, kiln_type type) {
    kiln_status status;
    TRY(ki_options_check(options, &ki_algorithm_logreg));
    TRY(ki_check_strength(call, "l1", options->l1));
    TRY(ki_check_strength(call, "l2", options->l2));
    if (options->l1 > 0 && !ki_option_stands(options, &ki_algorithm_logreg, "l2"))
        ki_option_set(options, &ki_algorithm_logreg, "l2", 0);
    ki_options_fill(options, &ki_algorithm_logreg, type);
done:
    return status;
}

/* The objective of the classes' shares alone. */
static kiln_status tell_constant(struct ki_newton *newton, const struct ki_labels *labels,
                                 const kiln_matrix *y) {
    kiln_status status;
    struct ki_arena arena = {0};
    double total = 0, *sums = ki_arena_doubles(&arena, labels->count);
    TRY(arena.status);
    TRY(ki_labels_sums(sums, labels, y));
    for (int64_t c = 0; c < labels->count; c++) total += sums[c];
    for (int64_t c = 0; c < labels->count; c++)
        if (sums[c] > 0) newton->constant -= sums[c] * log(sums[c] / total);
done:
    return ki_arena_free(&arena, status);
}

/* Holds what the dual's descent found, as a start or as the result. */
struct descent {
    struct ki_dual_task task;
    struct ki_dual_alone alone;
};

static kiln_status descent_new(struct descent *descent, struct ki_newton *newton,
                               const struct ki_labels *labels, const kiln_matrix *y) {
    const int64_t cols = kiln_matrix_cols(newton->X), k = newton->k;
    double *w = ki_run_reals(&newton->run, (cols + 1) * k);
    descent->task = (struct ki_dual_task){
        .logistic = true, .labels = labels, .y = y, .problems = 1, .W = w, .b = w ? w + cols * k : NULL};
    return newton->run.arena.status;
}

/* The engine's start from the dual. */
static kiln_status start_from_dual(struct ki_newton *newton, const struct descent *descent) {
    kiln_status status = KILN_OK;
    if (!descent->alone.descended) TRY(ki_dual_solve(newton, &descent->task));
    TRY(ki_vector_set(newton->W, descent->task.W));
    TRY(ki_vector_set(newton->b, descent->task.b));
done:
    return status;
}

kiln_status ki_logreg_explain(kiln_solver *choice, const void *given, const kiln_matrix *X, int64_t k) {
    kiln_status status;
    kiln_logreg_options options;
    TRY(KI_TAKE(kiln_logreg_options, &options, given));
    TRY(logreg_fill(&options, kiln_matrix_type(X)));
    const struct ki_newton newton = {.call = call,
                                     .X = X,
                                     .k = k > 2 ? (int)k : 1,
                                     .l2 = options.l2,
                                     .l1 = options.l1,
                                     .no_intercept = options.no_intercept != 0,
                                     .standardize = options.standardize != 0};
    TRY(ki_dual_explain(choice, &newton, options.solver));
done:
    return status;
}

static kiln_status logreg_again(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                                const void *options, kiln_report *report) {
    return kiln_logreg(W, b, X, y, options, report);
}

/* sum_i s_i p / (1 - p) of two classes, p the probability of the other: the Pearson statistic of a binomial
 * model. One pass. */
static kiln_status bend_of_two(double *bend, struct ki_newton *newton, const kiln_loss *loss) {
    kiln_status status;
    struct ki_arena arena = {0};
    const kiln_matrix *X = newton->X;
    const kiln_loss binomial = {
        .kind = KILN_LOSS_GLM, .family = KILN_BINOMIAL, .y = loss->y, .weights = loss->weights};
    kiln_matrix *Eta = ki_arena_rows(&arena, X, 1), *D = ki_arena_rows(&arena, X, 3),
                *ones = ki_arena_fill(&arena, ki_arena_rows(&arena, X, 1), 1);
    double b, sums[3];
    TRY(arena.status);
    TRY(ki_vector_get(&b, newton->b));
    TRY(kiln_fill(Eta, b));
    TRY(kiln_multiply(Eta, 1, KILN_PLAIN, X, newton->W, 1, Eta));
    newton->run.report.passes++;
    TRY(kiln_loss_deviance(D, &binomial, Eta));
    TRY(kiln_dot(sums, D, ones));
    *bend = sums[1];
done:
    return ki_arena_free(&arena, status);
}

/* The same of several, from the probabilities that the engine has left; 0, not known, where the host has no
 * room for them. */
static kiln_status bend_of_classes(double *bend, struct ki_newton *newton, const kiln_loss *loss) {
    kiln_status status;
    const int64_t m = kiln_matrix_rows(newton->X), k = newton->k;
    struct ki_arena arena = {0};
    double *p = ki_arena_doubles(&arena, m * (k + 2));
    if (!p) return ki_arena_free(&arena, KILN_OK);
    double *y = p + m * k, *s = y + m;
    TRY(ki_vector_get(p, newton->C));
    TRY(ki_vector_get(y, loss->y));
    if (loss->weights) TRY(ki_vector_get(s, loss->weights));
    for (int64_t i = 0; i < m; i++) {
        double others = 0;
        for (int64_t c = 0; c < k; c++) others += c == (int64_t)y[i] ? 0 : p[i * k + c];
        const double own = p[i * k + (int64_t)y[i]], weight = loss->weights ? s[i] : 1;
        if (weight > 0) *bend += weight * others / own;
    }
done:
    return ki_arena_free(&arena, status);
}

/* The certificate has to know this of the rows: |loss'|^2 is at most twice the curvature times the loss. */
static kiln_status logreg_certify(struct ki_newton *newton, const kiln_loss *problem) {
    static const double SUMS = 1.01; /* for the rows' own rounding */
    kiln_status status = KILN_OK;
    const double curvature = newton->k > 1 ? 0.5 : 0.25, loss = newton->loss;
    double bend = 0;
    if (newton->l1 > 0 && !(newton->l2 > 0))
        TRY((newton->k > 1 ? bend_of_classes : bend_of_two)(&bend, newton, problem));
    TRY(ki_newton_certify(newton, &(struct ki_certificate){.slope = sqrt(2 * curvature * loss),
                                                           .curvature = curvature,
                                                           .bend = isfinite(bend) ? SUMS * bend : 0,
                                                           .excess = loss,
                                                           .terms = loss,
                                                           .lean = sqrt(newton->columns.weight)}));
done:
    return status;
}

/* The model by the engine, from a start that the dual may have found. */
static kiln_status logreg_solve_by_engine(struct ki_newton *newton, const kiln_matrix *W,
                                          const kiln_matrix *b, const kiln_matrix *y,
                                          const kiln_logreg_options *options, const struct descent *descent) {
    kiln_status status;
    const struct ki_labels *labels = descent->task.labels;
    struct ki_run *run = &newton->run;
    const bool softmax = newton->k > 1, dual = descent->task.W != NULL;
    kiln_matrix *target = NULL;
    TRY(ki_labels_column(&target, &run->arena, labels, y, softmax ? -1 : 1, 1, 0));
    TRY(tell_constant(newton, labels, y));
    if (!softmax && !options->warm_start && !dual) {
        newton->outcomes = target;
        newton->mean = 0.5;
        newton->steep = 1;
    }
    TRY(ki_newton_open(newton));
    TRY(ki_run_begin(run, (struct ki_described){.options = options,
                                                .given = {{"y", y}, {"the weights", labels->weights}}}));
    if (options->warm_start) TRY(ki_newton_set_start(newton, W, b));
    if (dual && (!ki_checkpoint_waits(run->control) || ki_dual_waits(run->control)))
        TRY(start_from_dual(newton, descent));
    run->report.solver = dual ? "dual" : "newton";
    const kiln_loss loss = {
        .kind = softmax ? KILN_LOSS_SOFTMAX : KILN_LOSS_LOGISTIC, .y = target, .weights = labels->weights};
    TRY(ki_newton_solve(newton, &loss, &(struct ki_newton_start){.warm = dual || options->warm_start != 0}));
    TRY(logreg_certify(newton, &loss));
    TRY(ki_newton_least_norm(newton));
    ki_newton_tell_rank(newton);
done:
    return status;
}

/* W, b and the engine's report; from the dual alone where that is enough. */
static kiln_status logreg_solve(struct ki_newton *newton, kiln_matrix *W, kiln_matrix *b,
                                const struct ki_labels *labels, const kiln_matrix *y,
                                const kiln_logreg_options *options, bool dual) {
    kiln_status status = KILN_OK;
    struct descent descent = {.task.labels = labels};
    if (dual) TRY(descent_new(&descent, newton, labels, y));
    if (dual) TRY(ki_dual_alone(&descent.alone, newton, &descent.task));
    if (descent.alone.met) {
        TRY(ki_vector_set(W, descent.task.W));
        if (b) TRY(ki_vector_set(b, descent.task.b));
        return KILN_OK;
    }
    TRY(logreg_solve_by_engine(newton, W, b, y, options, &descent));
    TRY(ki_newton_hand_over(newton, W, b));
done:
    return status;
}

kiln_status kiln_logreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                        const kiln_logreg_options *options, kiln_report *report) {
    kiln_status status;
    kiln_logreg_options own = {0};
    struct ki_labels labels = {0};
    struct ki_newton newton = {.call = call, .X = X};
    struct ki_run *run = &newton.run;
    bool dual, solved;
    TRY(KI_RUN_OPEN(run, logreg, &own, options, report));
    TRY(logreg_check(X, y, &own));
    TRY(logreg_fill(&own, kiln_matrix_type(X)));
    TRY(ki_linear_ahead(
        &(struct ki_ahead){.X = X, .newton = true, .labels = true, .loss.kind = KILN_LOSS_LOGISTIC}));
    ki_run_on(run, X, own.tolerance, own.max_iterations);
    TRY(ki_labels_new(&labels, &run->arena, call, y,
                      &(struct ki_label_options){own.weights, own.class_weights, own.balanced != 0}));
    newton.weights = labels.weights;
    newton.k = labels.count == 2 ? 1 : (int)labels.count;
    newton.l2 = own.l2;
    newton.l1 = own.l1;
    newton.no_intercept = own.no_intercept != 0;
    newton.standardize = own.standardize != 0;
    TRY(ki_dual_choose(&dual, &newton, own.warm_start && !own.solver ? KILN_CLASSIFIER_NEWTON : own.solver));
    TRY(logreg_check_result(W, b, X, newton.k, &own));
    TRY(ki_narrow_solve(&solved, logreg_again,
                        &(struct ki_narrow_task){W, b, X, y, &own, own.warm_start != 0}, report));
    if (solved)
        run->to = NULL; /* which has the report */
    else
        TRY(logreg_solve(&newton, W, b, &labels, y, &own, dual));
done:
    return ki_run_close(run, status);
}
