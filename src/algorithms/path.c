/* kiln_path: one model after the other, each from the one before, in fold after fold.
 *
 * A fold is a weight vector: rows left out weigh 0, so X is never copied and every fold trains on the same
 * matrix. An algorithm that can do better for all models at once has its own way, ki_path_rule.together. */
#include "algorithms/path.h"

#include "derived/fills.h"

static const char call[] = "kiln_path";

static const kiln_option *option_named(const kiln_algorithm *shown, const char *name) {
    for (int64_t i = 0; i < shown->option_count; i++)
        if (strcmp(shown->options[i].name, name) == 0) return &shown->options[i];
    return NULL;
}

static const struct ki_algorithm *algorithm_of(const struct ki_path *path) {
    return ki_algorithm_named(path->shown->name);
}

static void *field(const struct ki_path *path, size_t offset) {
    return path->options + offset;
}

static void set_real(struct ki_path *path, const char *name, const double *values, int64_t v) {
    if (values && option_named(path->shown, name))
        ki_option_set(path->options, algorithm_of(path), name, values[v]);
}

double ki_path_l1(const struct ki_path *path, int64_t v) {
    if (!option_named(path->shown, "l1")) return 0;
    return path->asked.l1 ? path->asked.l1[v]
                          : kiln_option_value(path->shown->name, path->options, "l1", KILN_F64);
}

double ki_path_l2(const struct ki_path *path, int64_t v) {
    if (path->asked.l2) return path->asked.l2[v];
    if (ki_path_l1(path, v) > 0 && !ki_option_stands(path->options, algorithm_of(path), "l2")) return 0;
    return kiln_option_value(path->shown->name, path->options, "l2", KILN_F64);
}

static bool has_intercept(const struct ki_path *path) {
    int none;
    memcpy(&none, field(path, option_named(path->shown, "no_intercept")->offset), sizeof none);
    return !none;
}

kiln_status ki_path_weigh(kiln_matrix *weights, double *room, const struct ki_path *path, int64_t f) {
    const int64_t rows = kiln_matrix_rows(path->X);
    for (int64_t i = 0; i < rows; i++)
        room[i] = path->asked.fold[i] == f ? 0 : path->weights ? path->weights[i] : 1;
    return ki_vector_set(weights, room);
}

kiln_status ki_path_stopped(void) {
    return ki_fail(KILN_ERR_CANCELLED, "%s: the caller has ended it", call);
}

static void note_limits(struct ki_path *path, const kiln_path_models *models) {
    for (int64_t v = 0; v < models->count; v++)
        path->cut |= models->reports[v]->stopped_by == KILN_STOP_ITERATIONS;
}

static kiln_status give_models(struct ki_path *path, const kiln_path_models *models) {
    kiln_path_models given = *models;
    note_limits(path, models);
    given.X = path->X;
    return path->asked.take(path->asked.user, &given) == 0 ? KILN_OK : ki_path_stopped();
}

/* Values [first, first + count) of a fold's models. */
static kiln_status give_block(struct ki_path *path, const kiln_path_models *of, const double *W,
                              const double *b, kiln_report *reports) {
    kiln_status status;
    const int64_t n = kiln_matrix_cols(path->X), k = path->k, columns = of->count * k,
                  models = path->asked.count * k;
    struct ki_arena arena = {0};
    kiln_path_models given = *of;
    kiln_matrix *made = ki_arena_model(&arena, path->X, n, columns), *intercepts = NULL;
    const kiln_report **list = ki_arena_zeros(&arena, of->count, sizeof *list);
    double *values = ki_arena_doubles(&arena, n * columns);
    if (has_intercept(path)) intercepts = ki_arena_model(&arena, path->X, 1, columns);
    TRY(arena.status);
    for (int64_t v = 0; v < of->count; v++) list[v] = &reports[of->first + v];
    for (int64_t j = 0; j < n; j++)
        memcpy(values + j * columns, W + j * models + of->first * k, (size_t)columns * sizeof *values);
    TRY(ki_vector_set(made, values));
    memcpy(values, b + of->first * k, (size_t)columns * sizeof *values);
    if (intercepts) TRY(ki_vector_set(intercepts, values));
    given.W = made;
    given.b = intercepts;
    given.reports = list;
    TRY(give_models(path, &given));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_path_give_fold(struct ki_path *path, int64_t f, const double *W, const double *b,
                              kiln_report *reports) {
    enum { PREDICTED = 1 << 24 }; /* numbers that predictions of the models given at once may be */
    kiln_status status = KILN_OK;
    const int64_t count = path->asked.count,
                  most = ki_max(PREDICTED / (kiln_matrix_rows(path->X) * path->k), 1);
    for (int64_t v = 0; v < count; v += most)
        TRY(give_block(path, &(kiln_path_models){.fold = f, .first = v, .count = ki_min(most, count - v)}, W,
                       b, reports));
done:
    return status;
}

/* ---- one after the other ---- */

static kiln_status weigh_fold(struct ki_path *path, int64_t f) {
    kiln_status status;
    struct ki_arena arena = {0};
    if (!path->asked.fold) return KILN_OK;
    double *room = ki_arena_doubles(&arena, kiln_matrix_rows(path->X));
    TRY(arena.status);
    if (!path->trained) path->trained = ki_run_rows(&path->run, path->X, 1);
    TRY(path->run.arena.status);
    TRY(ki_path_weigh(path->trained, room, path, f));
    memcpy(field(path, path->rule->weights), &path->trained, sizeof path->trained);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status path_start(kiln_matrix *A, const kiln_matrix *given) {
    return given ? ki_copy(A, given) : kiln_fill(A, 0);
}

static kiln_status path_train(struct ki_path *path, int64_t f, int64_t v, kiln_matrix *W, kiln_matrix *b) {
    kiln_status status;
    kiln_report report = {0};
    const kiln_report *reports = &report;
    const int warm = v > 0 || path->asked.W;
    set_real(path, "l2", path->asked.l2, v);
    set_real(path, "l1", path->asked.l1, v);
    memcpy(field(path, path->rule->warm_start), &warm, sizeof warm);
    TRY(path->rule->train(W, b, path->X, path->y, path->options, &report));
    if (report.stopped_by == KILN_STOP_CANCELLED) TRY(ki_path_stopped());
    TRY(give_models(
        path, &(kiln_path_models){.fold = f, .first = v, .count = 1, .W = W, .b = b, .reports = &reports}));
done:
    kiln_report_free(&report);
    return status;
}

kiln_status ki_path_fold(struct ki_path *path, int64_t f) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *W = ki_arena_model(&arena, path->X, kiln_matrix_cols(path->X), path->k), *b = NULL;
    if (has_intercept(path)) b = ki_arena_model(&arena, path->X, 1, path->k);
    TRY(arena.status);
    TRY(weigh_fold(path, f));
    TRY(path_start(W, path->asked.W));
    if (b) TRY(path_start(b, path->asked.b));
    for (int64_t v = 0; v < path->asked.count; v++) TRY(path_train(path, f, v, W, b));
done:
    return ki_arena_free(&arena, status);
}

static kiln_status one_fold(void *of, int64_t f) {
    return ki_path_fold(of, f);
}

/* ---- on an X of its own ---- */

struct passed {
    struct ki_path *path;
    int64_t fold;
};

/* The models of a path without folds are those of this fold. */
static int pass_on(void *user, const kiln_path_models *models) {
    const struct passed *passed = user;
    const kiln_path_options *asked = &passed->path->asked;
    kiln_path_models given = *models;
    given.fold = passed->fold;
    note_limits(passed->path, models);
    return asked->take(asked->user, &given);
}

/* A fold as a path by itself, which weighs the rows and may train its models together. */
static kiln_status refilled_fold(void *of, int64_t f) {
    struct ki_path *path = of;
    struct passed passed = {path, f};
    kiln_path_options alone = path->asked;
    struct ki_arena arena = {0};
    kiln_matrix *X = NULL;
    kiln_status status;
    alone.fold = NULL;
    alone.folds = 0;
    alone.take = pass_on;
    alone.user = &passed;
    TRY(ki_arena_take(&arena, &X, ki_refill(&X, path->X, path->asked.fold, f)));
    TRY(weigh_fold(path, f));
    TRY(kiln_path(path->shown->name, path->options, X, path->y, path->k, &alone));
done:
    return ki_arena_free(&arena, status);
}

/* ---- going on ---- */

/* The models of the folds before have been handed over. The trainings get a control without the
 * checkpoint. */
static kiln_status path_begin(struct ki_path *path, const kiln_matrix *weights) {
    kiln_status status;
    struct ki_run *run = &path->run;
    const kiln_control apart = ki_checkpoint_apart(run->control);
    ki_run_on(run, path->X, 0, 1);
    run->problems = ki_max(path->asked.folds, 1);
    TRY(ki_run_begin(run, (struct ki_described){.options = path->options,
                                                .given = {{"y", path->y}, {"the weights", weights}}}));
    TRY(ki_run_resume(run));
    memcpy(field(path, path->rule->control), &apart, sizeof apart);
done:
    return status;
}

static kiln_status path_keep(struct ki_run *run) {
    return run->ended < run->problems ? ki_run_keep(run) : KILN_OK;
}

/* A fold whose models have ended at their limit is trained again under a higher one, with those after it: no
 * state says that it is done. */
kiln_status ki_path_each(struct ki_path *path, kiln_status (*fold)(void *of, int64_t f), void *of) {
    kiln_status status = KILN_OK;
    struct ki_run *run = &path->run;
    for (int64_t f = run->ended; f < run->problems; f++) {
        TRY(fold(of, f));
        if (!path->cut) run->ended = f + 1;
        run->report.stopped_by = path->cut ? KILN_STOP_ITERATIONS : KILN_STOP_NONE;
        TRY(path_keep(run));
        run->limited = path->cut;
    }
done:
    return status;
}

/* The fold at hand is begun again where it was cancelled. */
static kiln_status path_keep_cancelled(struct ki_run *run) {
    struct ki_error_copy error;
    ki_error_keep(&error);
    run->cancelled = true;
    run->report.stopped_by = KILN_STOP_CANCELLED;
    const kiln_status status = path_keep(run);
    return status == KILN_OK ? ki_error_renew(&error) : status;
}

/* ---- the call ---- */

static kiln_status check_values(const char *name, const double *values, int64_t count, bool known) {
    if (values && !known)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the algorithm has no penalty %s", call, name);
    for (int64_t v = 0; values && v < count; v++)
        if (!(values[v] >= 0) || isinf(values[v]))
            return ki_fail(KILN_ERR_ARGUMENT, "%s: %s[%lld] is %g, but must be a number >= 0", call, name,
                           (long long)v, values[v]);
    return KILN_OK;
}

static kiln_status check_folds(const struct ki_path *path) {
    const kiln_path_options *asked = &path->asked;
    if (!asked->fold && asked->folds != 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: folds is %lld, and fold NULL", call, (long long)asked->folds);
    for (int64_t i = 0; asked->fold && i < kiln_matrix_rows(path->X); i++)
        if (asked->fold[i] < 0 || asked->fold[i] >= asked->folds)
            return ki_fail(KILN_ERR_ARGUMENT, "%s: fold[%lld] is %d, but must be one of the %lld folds", call,
                           (long long)i, asked->fold[i], (long long)asked->folds);
    return KILN_OK;
}

static kiln_status path_check(const struct ki_path *path) {
    kiln_status status;
    const kiln_path_options *asked = &path->asked;
    const int64_t n = kiln_matrix_cols(path->X);
    if (!asked->take || asked->count < 1 || path->k < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s", call,
                       !asked->take       ? "take is NULL"
                       : asked->count < 1 ? "count must be positive"
                                          : "k must be positive");
    if (path->rule->errors && *(kiln_matrix **)field(path, path->rule->errors))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: standard errors are of one model", call);
    TRY(check_values("l2", asked->l2, asked->count, true));
    TRY(check_values("l1", asked->l1, asked->count, option_named(path->shown, "l1") != NULL));
    TRY(check_folds(path));
    if (asked->W) TRY(ki_check_matrix(call, "W", asked->W, path->X, n, path->k));
    if (asked->b) TRY(ki_check_matrix(call, "b", asked->b, path->X, 1, path->k));
done:
    return status;
}

/* The weights of the rows to the host, of which those of the folds are made. */
static kiln_status take_weights(struct ki_path *path) {
    kiln_status status;
    const int64_t rows = kiln_matrix_rows(path->X);
    const kiln_matrix *weights;
    memcpy(&weights, field(path, path->rule->weights), sizeof weights);
    if (!weights || !path->asked.fold) return KILN_OK;
    TRY(ki_check_matrix(call, "weights", weights, path->X, rows, 1));
    path->weights = ki_arena_doubles(&path->run.arena, rows);
    TRY(path->run.arena.status);
    TRY(ki_vector_get(path->weights, weights));
done:
    return status;
}

kiln_status kiln_path(const char *algorithm, const void *options, const kiln_matrix *X, const kiln_matrix *y,
                      int64_t k, const kiln_path_options *given) {
    kiln_status status;
    struct ki_path path = {.X = X, .y = y, .k = k};
    struct ki_run *run = &path.run;
    const kiln_matrix *weights;
    const struct ki_algorithm *found = ki_algorithm_named(algorithm);
    bool done = false;
    if (!X || !y || !found || !found->path)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s", call,
                       !X   ? "X is NULL"
                       : !y ? "y is NULL"
                            : "there is no linear model of that name");
    path.rule = found->path;
    path.shown = &found->shown;
    TRY(KI_TAKE(kiln_path_options, &path.asked, given));
    path.options = ki_arena_zeros(&run->arena, 1, found->shown.options_bytes);
    TRY(run->arena.status);
    TRY(ki_run_open(run, found, path.options, options, path.rule->layout, &path.control, NULL));
    TRY(path_check(&path));
    TRY(take_weights(&path));
    memcpy(&path.control, field(&path, path.rule->control), sizeof path.control);
    memcpy(&weights, field(&path, path.rule->weights), sizeof weights);
    TRY(path_begin(&path, weights));
    const bool refills = path.asked.fold && ki_is_filled(X);
    if (path.rule->together && !refills) TRY(path.rule->together(&done, &path));
    if (!done) TRY(ki_path_each(&path, refills ? refilled_fold : one_fold, &path));
done:
    if (status == KILN_ERR_CANCELLED) status = path_keep_cancelled(run);
    return ki_run_close(run, status);
}
