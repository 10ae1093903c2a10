/* Least squares for all penalties and folds of a path at once.
 *
 * The normal equations of the rows that a fold trains on are the sum of those of the rows that the other
 * folds hold out, which one walk over X gives (path_walks.c). A model is then a factor of n x n on the host,
 *
 *   D^-1 (G + L) D^-1 = U^T U,   D^2 the diagonal of G + L,   corrected by the residual of these equations.
 *
 * What that residual does not show is how far G, which is rounded, is from the true one. The difference is
 * linear in the coefficients, so one pass tells for all models of a fold: of their sum with signs at random
 * the true gradient, less what G makes of it, has about the length that the single differences have together
 * (Freivalds, 1977, checks products so). Where a fold misses the tolerance with that added it is trained one
 * model after the other, as all are where no such walk is to be had. */
#include "algorithms/registry.h"
#include "algorithms/linreg/linreg.h"
#include "algorithms/path.h"
#include "metrics/explained.h"
#include "ops/linear/gram.h"

enum {
    FOLDS_MOST = 64,
    ROOM = 1 << 26, /* doubles of all walks, and of all coefficients: half a gigabyte */
    CORRECTIONS = 4
};

/* All that is shared. Arrays of a fold's models have the value first, then the target. */
struct together {
    struct ki_path *path;
    struct ki_system system; /* of the fold at hand: its walk has the rows that it trains on */
    int64_t n, k, count, folds, size;
    bool narrow;
    double start;
    struct ki_arena arena;
    struct ki_path_walks walks;
    double *G, *U;          /* n x n: the centred Gram matrix; of one model */
    double *penalty, *root; /* n: L; 1 / D, 0 for columns left out */
    double *w, *r, *data;   /* n: of one target; what is left of the equations; without the penalty's part */
    /* of each model of the fold at hand: n x (count k) coefficients, intercepts; and by target and value */
    double *W, *b, *relative, *rss, *squares;
    /* the sum of the models with signs, each divided by its first gradient's length: coefficients; what G
     * makes of the gradient; intercept; the parts of the targets */
    double *mixed, *claimed, shift, *parts_of_y;
    double tss;
    struct ki_draws signs;
    bool good;
};

/* ---- what is there ---- */

static bool path_applies(const struct together *t) {
    const struct ki_path *path = t->path;
    const kiln_linreg_options *options = &t->system.options;
    struct ki_direct direct = {0};
    const kiln_matrix *X = path->X, *y = path->y;
    if (kiln_matrix_format(y) != KILN_DENSE || kiln_matrix_type(y) != kiln_matrix_type(X) ||
        kiln_matrix_device(y) != kiln_matrix_device(X) || kiln_matrix_rows(y) != kiln_matrix_rows(X) ||
        kiln_matrix_cols(y) != path->k || t->n == 0 || kiln_matrix_rows(X) == 0 || t->folds > FOLDS_MOST)
        return false;
    if (options->standardize && options->no_intercept) return false; /* variances are about the means */
    if (ki_linreg_check_solver(options) != KILN_OK || !ki_gram_in_one_walk(X) ||
        (double)(t->folds + 3) * (double)t->size * (double)t->size > ROOM ||
        (double)t->n * (double)t->k * (double)t->count > ROOM)
        return false;
    return ki_linreg_choose(&direct, X, options) == KILN_LINREG_CHOLESKY && !direct.by_rows;
}

static kiln_status path_make_room(struct together *t) {
    const int64_t n = t->n, models = t->count * t->k;
    const struct {
        double **at;
        int64_t count;
    } arrays[] = {{&t->G, n * n},         {&t->U, n * n},      {&t->penalty, n},
                  {&t->root, n},          {&t->w, n},          {&t->r, n},
                  {&t->data, n},          {&t->W, n * models}, {&t->b, models},
                  {&t->relative, models}, {&t->rss, models},   {&t->squares, models},
                  {&t->mixed, n},         {&t->claimed, n},    {&t->parts_of_y, t->k}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i].at = ki_arena_reals(&t->arena, arrays[i].count);
    ki_path_walks_open(&t->walks, &t->arena, t->path, &t->system.walk);
    return t->arena.status;
}

/* ---- a fold's equations ---- */

static void take_equations(struct together *t, int64_t f) {
    ki_path_add_up(&t->walks, f);
    t->system.weight = t->system.walk.A[t->size * t->size - 1];
    for (int64_t i = 0; i < t->n; i++)
        for (int64_t j = i; j < t->n; j++)
            t->G[i * t->n + j] = t->G[j * t->n + i] = ki_walk_element(&t->system, i, j);
}

/* Returns whether target c is a constant, or its gradient at zero, of that length, nothing but rounding. */
static bool is_nothing(const struct together *t, int64_t c, double length) {
    const struct ki_system *system = &t->system;
    const double epsilon = ki_epsilon(kiln_matrix_type(system->X)), spread = ki_walk_spread(system, c),
                 mean = ki_walk_mean(system, t->n + c), square = ki_walk_element(system, t->n + c, t->n + c);
    double magnification = 0;
    for (int64_t j = 0; j < t->n; j++) magnification += t->root[j] * t->root[j] * ki_walk_square(system, j);
    return spread <= 64 * epsilon * epsilon * (spread + system->weight * mean * mean) ||
           !(length > 16 * epsilon * sqrt(magnification * square));
}

/* L and D for the strength l2. */
static void path_penalise(struct together *t, double l2) {
    for (int64_t j = 0; j < t->n; j++) {
        const double diagonal = t->G[j * t->n + j];
        t->penalty[j] = l2 * (t->system.options.standardize ? diagonal / t->system.weight : 1);
        t->root[j] = diagonal > 0 ? 1 / sqrt(diagonal + t->penalty[j]) : 0;
    }
}

/* U for the strength l2; false: G + L is not positive, or columns may depend on each other and no penalty
 * decides between them. */
static bool path_factorise(struct together *t, double l2) {
    const int64_t n = t->n;
    path_penalise(t, l2);
    for (int64_t j = 0; j < n; j++) t->r[j] = 1;
    for (int64_t i = 0; i < n; i++) {
        t->U[i * n + i] = 1;
        for (int64_t j = i + 1; j < n; j++) t->U[i * n + j] = t->root[i] * t->G[i * n + j] * t->root[j];
    }
    struct ki_factorisation factor = {.U = t->U,
                                      .size = n,
                                      .scale = t->r,
                                      .part = t->narrow ? 1e-6 : 1e-12,
                                      .rounding = 16 * ki_epsilon(kiln_matrix_type(t->path->X)),
                                      .room = l2 > 0 ? NULL : t->w};
    ki_factorise(&factor, INFINITY);
    return !factor.failed && !(factor.replaced && l2 == 0);
}

/* Returns what is left of the equations of target c at w, with and without the penalty's part; returns the
 * length, columns scaled. */
static double path_leave(struct together *t, int64_t c) {
    const int64_t n = t->n;
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = ki_walk_element(&t->system, i, n + c);
        for (int64_t j = 0; j < n; j++) sum -= t->G[i * n + j] * t->w[j];
        t->data[i] = sum;
        t->r[i] = sum - t->penalty[i] * t->w[i];
        square += t->root[i] * t->r[i] * t->root[i] * t->r[i];
    }
    return sqrt(square);
}

/* Model `at`, of target c, by the factor that is there. */
static void path_solve(struct together *t, int64_t c, int64_t at) {
    const int64_t n = t->n, models = t->count * t->k;
    const struct ki_system *system = &t->system;
    memset(t->w, 0, (size_t)n * sizeof *t->w);
    const double first = path_leave(t, c);
    if (is_nothing(t, c, first)) t->good = false;
    double length = first;
    for (int i = 0; i < CORRECTIONS && length > 0.01 * system->options.tolerance * first; i++) {
        for (int64_t j = 0; j < n; j++) t->r[j] *= t->root[j];
        ki_substitute(t->U, t->r, n);
        for (int64_t j = 0; j < n; j++) t->w[j] += t->root[j] * t->r[j];
        for (int64_t j = 0; j < n && t->narrow; j++) t->w[j] = (float)t->w[j];
        length = path_leave(t, c);
    }
    double b = system->options.no_intercept ? 0 : ki_walk_mean(system, n + c), square = 0,
           rss = ki_walk_element(system, n + c, n + c);
    const double part = (ki_draw_below(&t->signs, 2) ? 1 : -1) / first;
    for (int64_t j = 0; j < n; j++) {
        if (!system->options.no_intercept) b -= ki_walk_mean(system, j) * t->w[j];
        rss -= t->w[j] * (ki_walk_element(system, j, n + c) + t->data[j]);
        square += t->penalty[j] * t->w[j] * t->w[j];
        t->W[j * models + at] = t->w[j];
        t->mixed[j] += part * t->w[j];
        t->claimed[j] += part * t->data[j];
    }
    t->b[at] = t->narrow ? (float)b : b;
    t->shift += part * t->b[at];
    t->parts_of_y[c] += part;
    t->relative[at] = length / first;
    t->rss[at] = fmax(rss, 0);
    t->squares[at] = square;
}

/* All models of fold f, as far as G can tell. */
static kiln_status path_solve_fold(struct together *t, int64_t f) {
    kiln_status status = KILN_OK;
    memset(t->mixed, 0, (size_t)t->n * sizeof *t->mixed);
    memset(t->claimed, 0, (size_t)t->n * sizeof *t->claimed);
    memset(t->parts_of_y, 0, (size_t)t->k * sizeof *t->parts_of_y);
    t->shift = t->tss = 0;
    take_equations(t, f);
    t->good = ki_walk_sound(&t->system);
    for (int64_t c = 0; c < t->k && t->good; c++) t->tss += ki_walk_spread(&t->system, c);
    for (int64_t v = 0; v < t->count && t->good; v++) {
        TRY(ki_path_told(t->path,
                         &(kiln_progress){.phase = "training",
                                          .done = f * t->count + v,
                                          .total = t->folds * t->count,
                                          .objective = (double)NAN,
                                          .residual = (double)NAN,
                                          .bytes = t->system.run.report.passes * ki_bytes_of(t->path->X)}));
        t->good = path_factorise(t, ki_path_l2(t->path, v));
        for (int64_t c = 0; c < t->k && t->good; c++) path_solve(t, c, v * t->k + c);
    }
done:
    return status;
}

/* ---- the check ---- */

/* The true gradient of the sum of the models, minus sign, and the sum of its residuals. */
static kiln_status take_gradient(double *gradient, double *sum, struct together *t) {
    kiln_status status;
    const struct ki_path *path = t->path;
    const kiln_matrix *X = path->X;
    const bool intercept = !t->system.options.no_intercept;
    struct ki_arena arena = {0};
    kiln_matrix *y = ki_arena_rows(&arena, X, 1), *g = ki_arena_model(&arena, X, t->n, 1),
                *b = ki_arena_model(&arena, X, 1, 1), *gb = ki_arena_model(&arena, X, 1, 1),
                *w = ki_arena_vector(&arena, X, t->n, t->mixed),
                *parts = ki_arena_vector(&arena, X, t->k, t->parts_of_y);
    double value, shift = t->shift;
    TRY(arena.status);
    TRY(kiln_multiply(y, 1, KILN_PLAIN, path->y, parts, 0, NULL));
    TRY(ki_vector_set(b, &shift));
    const kiln_loss loss = {.kind = KILN_LOSS_SQUARED,
                            .y = y,
                            .weights = path->asked.fold ? t->walks.rows : t->system.options.weights};
    TRY(kiln_loss_gradient(&value, g, intercept ? gb : NULL, NULL, &loss, X, w, intercept ? b : NULL));
    t->system.run.report.passes++;
    TRY(ki_vector_get(gradient, g));
    *sum = 0;
    if (intercept) TRY(ki_vector_get(sum, gb));
done:
    return ki_arena_free(&arena, status);
}

/* Adds to every model's residual how far G may be off, at the weakest penalty; whether all meet the
 * tolerance. */
static kiln_status path_check_fold(struct together *t, int64_t f) {
    kiln_status status = KILN_OK;
    double sum, square = 0, weakest = ki_path_l2(t->path, 0);
    for (int64_t v = 1; v < t->count; v++) weakest = fmin(weakest, ki_path_l2(t->path, v));
    path_penalise(t, weakest);
    if (t->path->asked.fold) TRY(ki_path_weigh(t->walks.rows, t->walks.room, t->path, f));
    TRY(take_gradient(t->w, &sum, t));
    for (int64_t j = 0; j < t->n; j++) {
        const double off = t->root[j] * (t->w[j] - ki_walk_mean(&t->system, j) * sum + t->claimed[j]);
        square += off * off;
    }
    for (int64_t i = 0; i < t->count * t->k; i++) {
        t->relative[i] += sqrt(square);
        t->good = t->good && t->relative[i] <= t->system.options.tolerance && isfinite(t->b[i]);
    }
done:
    return status;
}

/* ---- what is handed over ---- */

static kiln_status path_write_report(kiln_report *report, const struct together *t, int64_t v) {
    kiln_status status;
    double rss = 0;
    TRY(ki_report_begin(report));
    report->converged = 1;
    report->stopped_by = KILN_STOP_TOLERANCE;
    report->iterations = 1;
    report->tolerance = t->system.options.tolerance;
    report->solver = "cholesky";
    report->passes = t->system.run.report.passes;
    report->seconds = ki_clock() - t->start;
    for (int64_t i = v * t->k; i < (v + 1) * t->k; i++) {
        report->residual = fmax(report->residual, t->relative[i]);
        report->objective += 0.5 * (t->rss[i] + t->squares[i]);
        rss += t->rss[i];
    }
    ki_report_figure(report, "rss", rss);
    ki_report_figure(report, "tss", t->tss);
    ki_report_figure(report, "r2", ki_explained(rss, t->tss));
done:
    return status;
}

static kiln_status path_give(struct together *t, int64_t f) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_report *reports = ki_arena_zeros(&arena, t->count, sizeof *reports);
    TRY(arena.status);
    for (int64_t v = 0; v < t->count; v++) TRY(path_write_report(&reports[v], t, v));
    TRY(ki_path_give_fold(t->path, f, t->W, t->b, reports));
done:
    for (int64_t v = 0; reports && v < t->count; v++) kiln_report_free(&reports[v]);
    return ki_arena_free(&arena, status);
}

static kiln_status path_train_fold(void *of, int64_t f) {
    struct together *t = of;
    kiln_status status;
    TRY(path_solve_fold(t, f));
    if (t->good) TRY(path_check_fold(t, f));
    if (!t->good) return ki_path_fold(t->path, f);
    TRY(path_give(t, f));
done:
    return status;
}

kiln_status ki_linreg_together(bool *done, struct ki_path *path) {
    kiln_status status;
    struct together t = {.path = path,
                         .n = kiln_matrix_cols(path->X),
                         .k = path->k,
                         .count = path->asked.count,
                         .folds = ki_max(path->asked.folds, 1),
                         .narrow = kiln_matrix_type(path->X) == KILN_F32,
                         .start = ki_clock(),
                         .signs = {.stream = KI_STREAM_SIGNS}};
    t.size = t.n + t.k + 1;
    t.system.X = path->X;
    memcpy(&t.system.options, path->options, sizeof t.system.options);
    ki_options_fill(&t.system.options, &ki_algorithm_linreg, kiln_matrix_type(path->X));
    if (!path_applies(&t)) return KILN_OK;
    t.system.walk = (struct ki_walk){.n = t.n, .size = t.size};
    TRY(path_make_room(&t));
    TRY(ki_path_walk(&t.walks, path->y, t.system.options.weights, !t.system.options.no_intercept));
    t.system.run.report.passes++;
    TRY(ki_path_each(path, path_train_fold, &t));
    *done = true;
done:
    return ki_arena_free(&t.arena, status);
}
