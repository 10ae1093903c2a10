/* Linear regression: what may be asked for, the system that linreg_solve.c solves, and what is handed back.
 *
 * Targets are solved in blocks of as many as one pass over X serves. The results of several blocks are
 * gathered on the host. W and b are written when all has succeeded, so that a failure leaves both as they
 * were. */
#include "algorithms/linreg/linreg.h"

#include "metrics/explained.h"
#include "ops/linear/ahead.h"
#include "ops/linear/scales.h"

static const char call[] = "kiln_linreg";

enum { LEAST = 1000, MOST = 10000 }; /* iterations by default: ten a column in between */

int64_t ki_linreg_iterations(const kiln_matrix *X) {
    return ki_max(LEAST, ki_min(10 * kiln_matrix_cols(X), MOST));
}

kiln_status ki_linreg_check_solver(const kiln_linreg_options *options) {
    if ((int)options->solver < 0 || options->solver > KILN_LINREG_CHOLESKY)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: there is no solver %d", call, (int)options->solver);
    if (options->solver != KILN_LINREG_CHOLESKY || !options->no_preconditioner) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT,
                   "%s: no_preconditioner is for conjugate gradient, and the solver is Cholesky", call);
}

static kiln_status linreg_check(const kiln_matrix *W, const kiln_matrix *b, const kiln_matrix *X,
                                const kiln_matrix *y, const kiln_linreg_options *options) {
    kiln_status status;
    if (!X || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", call, X ? "y" : "X");
    const int64_t rows = kiln_matrix_rows(X), cols = kiln_matrix_cols(X), k = kiln_matrix_cols(y);
    if (k == 0) return ki_fail(KILN_ERR_ARGUMENT, "%s: y has no columns", call);
    TRY(ki_check_matrix(call, "y", y, X, rows, k));
    TRY(ki_check_matrix(call, "W", W, X, cols, k));
    if (b || !options->no_intercept) TRY(ki_check_matrix(call, "b", b, X, 1, k));
    if (options->weights) TRY(ki_check_matrix(call, "weights", options->weights, X, rows, 1));
    TRY(ki_check_iteration(call, options->tolerance, options->max_iterations));
    TRY(ki_linreg_check_solver(options));
    if (rows == 0 || cols == 0)
        return ki_fail(KILN_ERR_DATA, "%s: X has no %s", call, rows == 0 ? "rows" : "columns");
done:
    return status;
}

/* The first column whose diagonal of H has a value, and no inverse in the type's range. */
static kiln_status name_lost_column(const struct ki_system *system, const kiln_matrix *diagonal) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t n = kiln_matrix_cols(system->X);
    int64_t j = 0;
    double *values = ki_arena_doubles(&arena, 2 * n);
    TRY(arena.status);
    TRY(ki_vector_get(values, diagonal));
    TRY(ki_vector_get(values + n, system->inverse));
    while (j < n - 1 && (!(values[j] > 0) || (values[n + j] > 0 && isfinite(values[n + j])))) j++;
    status = ki_fail_column(system->X, j, KI_PENALTY_OUT_OF_RANGE);
done:
    return ki_arena_free(&arena, status);
}

/* A column whose diagonal of H is nothing (constant under an intercept, or all zero) is left out: its
 * coefficient is 0. The preconditioner is the inverse of the diagonal itself, not a multiple: then X times a
 * direction has the size of y, however large or small X is, and squares of neither leave the range of the
 * type. One of ones is none, as long as what it leaves out has no entries: the gradient is 0 there. */
static kiln_status build_vectors(struct ki_system *system, const struct ki_moments *moments) {
    kiln_status status;
    const kiln_linreg_options *options = &system->options;
    struct ki_run *run = &system->run;
    const int64_t cols = kiln_matrix_cols(system->X);
    double sums[KI_SCALES_SUMS];
    system->inverse = ki_run_model(run, cols, 1);
    if (options->warm_start) system->kept = ki_run_model(run, cols, 1);
    if (options->standardize) system->penalty = ki_run_model(run, cols, 1);
    TRY(run->arena.status);
    struct ki_scales scales = {.op = KI_SCALES_WEIGH,
                               .square = moments->square,
                               .centred = moments->centred,
                               .inverse = system->inverse,
                               .penalty = system->penalty,
                               .kept = system->kept,
                               .weight = moments->weight,
                               .l2 = options->l2,
                               .intercept = !options->no_intercept,
                               .standardize = options->standardize,
                               .plain = options->no_preconditioner};
    TRY(ki_scales_run(NULL, &scales));
    scales.op = KI_SCALES_INVERT;
    TRY(ki_scales_run(sums, &scales));
    system->magnification = sums[0];
    if (sums[2] > 0)
        TRY(name_lost_column(system, options->no_intercept ? moments->square : moments->centred));
    if (options->no_preconditioner && !options->standardize && sums[1] == 0) system->inverse = NULL;
    if (!options->no_intercept) system->mean = moments->mean;
    system->flats = moments->flats;
    system->square = moments->square;
    system->centred = moments->centred;
done:
    return status;
}

/* The moments, and the right-hand side of a single target where they come with it. */
static kiln_status linreg_measure(struct ki_moments *moments, struct ki_system *system, const kiln_matrix *y,
                                  double sum) {
    kiln_status status;
    if (kiln_matrix_cols(y) == 1) moments->y = y;
    if (moments->y && !system->options.no_intercept) moments->d = sum / system->weight;
    if (kiln_matrix_type(y) == KILN_F32) moments->d = (float)moments->d;
    TRY(ki_moments_measure(moments, &system->run.arena, system->X, system->s, system->weight));
    system->run.report.passes += moments->passes;
    system->right = moments->right;
    system->right_about = moments->d;
    system->right_sum = sum - system->weight * moments->d;
done:
    return status;
}

static kiln_status system_new(struct ki_system *system, const kiln_matrix *y) {
    kiln_status status;
    const kiln_matrix *X = system->X;
    struct ki_moments moments = {0};
    double sum = 0; /* of the only target: finite if that is, and does not overflow */
    system->ones = ki_arena_fill(&system->run.arena, ki_run_rows(&system->run, X, 1), 1);
    TRY(system->run.arena.status);
    system->s = system->options.weights ? system->options.weights : system->ones;
    system->weight = (double)kiln_matrix_rows(X);
    if (system->options.weights) TRY(kiln_dot(&system->weight, system->s, system->ones));
    if (!(system->weight > 0)) TRY(ki_fail(KILN_ERR_DATA, "%s: the weights are all zero", call));
    if (kiln_matrix_cols(y) == 1) TRY(kiln_dot(&sum, y, system->s));
    if (kiln_matrix_cols(y) > 1 || !isfinite(sum)) TRY(ki_check_finite(call, "y", y, false));
    TRY(ki_walk_measure(&moments, system, y));
    if (!system->walk.A) TRY(linreg_measure(&moments, system, y, sum));
    TRY(build_vectors(system, &moments));
done:
    return status;
}

/* Copies `width` bytes of each row between tables whose rows are `to_row` and `from_row` bytes apart. */
static void copy_columns(void *to, int64_t to_row, const void *from, int64_t from_row, int64_t rows,
                         int64_t width) {
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)to + i * to_row, (const char *)from + i * from_row, (size_t)width);
}

/* Host copies of what is cut into blocks, and a block's worth of it. */
struct tables {
    char *W, *y, *block;
    int64_t element; /* bytes */
};

static kiln_status tables_new(struct tables *tables, struct ki_system *system, const kiln_matrix *W,
                              const kiln_matrix *y) {
    kiln_status status;
    struct ki_arena *arena = &system->run.arena;
    const int64_t element = kiln_matrix_type(W) == KILN_F32 ? 4 : 8;
    const int64_t longer = ki_max(kiln_matrix_rows(W), kiln_matrix_rows(y));
    const int64_t W_bytes = kiln_matrix_nnz(W) * element, y_bytes = kiln_matrix_nnz(y) * element;
    tables->element = element;
    tables->W = ki_arena_zeros(arena, ki_ceil_div(W_bytes, 8), 8); /* whole words, for checkpoints */
    tables->block = ki_arena_room(arena, longer * KI_BLOCK, (size_t)element);
    tables->y = ki_arena_room(arena, y_bytes, 1);
    TRY(arena->status);
    if (system->options.warm_start) TRY(kiln_matrix_get(tables->W, W));
    TRY(kiln_matrix_get(tables->y, y));
done:
    return status;
}

/* Solves for targets first .. first + width - 1. */
static kiln_status linreg_solve_block(struct ki_system *system, struct tables *tables, double *b,
                                      const kiln_matrix *y, int64_t first, int64_t width) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t rows = kiln_matrix_rows(y), cols = kiln_matrix_cols(system->X);
    const int64_t row = kiln_matrix_cols(y) * tables->element, part = width * tables->element;
    char *W_part = tables->W + first * tables->element;
    kiln_matrix *W_block = ki_arena_model(&arena, y, cols, width);
    kiln_matrix *y_block = ki_arena_rows(&arena, y, width);
    TRY(arena.status);
    copy_columns(tables->block, part, tables->y + first * tables->element, row, rows, part);
    TRY(kiln_matrix_set(y_block, tables->block));
    copy_columns(tables->block, part, W_part, row, cols, part);
    TRY(kiln_matrix_set(W_block, tables->block));
    TRY(ki_linreg_block(system, &arena, &W_block, b + first, y_block));
    TRY(kiln_matrix_get(tables->block, W_block));
    copy_columns(W_part, row, tables->block, part, cols, part);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status linreg_solve_blocks(struct ki_system *system, kiln_matrix *W, double *b,
                                       const kiln_matrix *y) {
    kiln_status status;
    struct tables tables = {0};
    struct ki_run *run = &system->run;
    const int64_t k = kiln_matrix_cols(y);
    TRY(tables_new(&tables, system, W, y));
    const int64_t words = ki_ceil_div(kiln_matrix_nnz(W) * tables.element, 8);
    const struct ki_state around[] = {{"coefficients", .reals = (double *)(void *)tables.W, .count = words},
                                      {"intercepts", .reals = b, .count = k},
                                      {"gap", .reals = &system->gap}};
    KI_RUN_AROUND(run, around);
    TRY(ki_run_look_around(run));
    while (run->ended < run->problems) {
        const int64_t first = run->ended * KI_BLOCK;
        TRY(linreg_solve_block(system, &tables, b, y, first, ki_min(KI_BLOCK, k - first)));
    }
    TRY(kiln_matrix_set(W, tables.W));
done:
    return status;
}

/* All targets at once: the coefficients never leave the device. */
static kiln_status linreg_solve_at_once(struct ki_system *system, kiln_matrix *W, double *b,
                                        const kiln_matrix *y) {
    kiln_status status;
    kiln_matrix *made = ki_run_model(&system->run, kiln_matrix_rows(W), kiln_matrix_cols(W));
    double one[KI_BLOCK];
    for (int j = 0; j < KI_BLOCK; j++) one[j] = 1;
    TRY(system->run.arena.status);
    if (system->options.warm_start) TRY(kiln_combine(made, one, W, NULL, NULL));
    TRY(ki_linreg_block(system, &system->run.arena, &made, b, y));
    TRY(kiln_combine(W, one, made, NULL, NULL));
done:
    return status;
}

/* The intercepts, narrowed in place where b is narrow. */
static kiln_status set_intercepts(kiln_matrix *b, double *values) {
    for (int64_t j = 0; kiln_matrix_type(b) == KILN_F32 && j < kiln_matrix_cols(b); j++) {
        const float narrow = (float)values[j];
        memcpy((char *)values + (size_t)j * sizeof narrow, &narrow, sizeof narrow);
    }
    return kiln_matrix_set(b, values);
}

static void linreg_tell(struct ki_system *system) {
    kiln_report *report = &system->run.report;
    ki_report_figure(report, "rss", system->rss);
    ki_report_figure(report, "tss", system->tss);
    ki_report_figure(report, "r2", ki_explained(system->rss, system->tss));
    const bool decided = system->rank.rank >= 0;
    if (system->rank.known)
        ki_report_figure(report, "rank", decided ? (double)system->rank.rank : (double)NAN);
    if (system->rank.known && decided) ki_report_rank(report, system->rank.rank, kiln_matrix_cols(system->X));
    if (!system->options.no_intercept || system->options.standardize)
        ki_report_flats(report, &system->flats, kiln_matrix_type(system->X));
    ki_report_certify(report, system->gap, system->options.l2 > 0 ? "duality gap" : "normal equations");
    report->solver = system->direct.U && system->direct.wanted ? ki_direct_name(&system->direct) : "cg";
}

kiln_status kiln_linreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                        const kiln_linreg_options *options, kiln_report *report) {
    kiln_status status;
    struct ki_system system = {.X = X};
    struct ki_run *run = &system.run;
    kiln_linreg_options *o = &system.options;
    TRY(KI_RUN_OPEN(run, linreg, o, options, report));
    TRY(ki_check_strength(call, "l2", o->l2));
    TRY(linreg_check(W, b, X, y, o));
    if (o->weights) TRY(ki_check_weights(call, o->weights));
    if (o->warm_start) TRY(ki_check_finite(call, "W", W, false));
    if (o->max_iterations == 0) o->max_iterations = ki_linreg_iterations(X);
    ki_options_fill(o, &ki_algorithm_linreg, kiln_matrix_type(X));
    system.direct.wanted = ki_linreg_choose(&system.direct, X, o) == KILN_LINREG_CHOLESKY;
    const int64_t k = kiln_matrix_cols(y);
    TRY(ki_linear_ahead(&(struct ki_ahead){.X = X,
                                           .gram = system.direct.wanted,
                                           .weighted = o->weights != NULL,
                                           .targets = ki_min(k, KI_BLOCK),
                                           .loss.kind = KILN_LOSS_SQUARED}));
    ki_run_on(run, X, o->tolerance, o->max_iterations);
    run->problems = ki_ceil_div(k, KI_BLOCK);
    double *intercepts = ki_run_reals(run, k);
    TRY(run->arena.status);
    TRY(system_new(&system, y));
    TRY(ki_run_begin(run,
                     (struct ki_described){.options = o, .given = {{"y", y}, {"the weights", o->weights}}}));
    TRY(run->problems > 1 ? linreg_solve_blocks(&system, W, intercepts, y)
                          : linreg_solve_at_once(&system, W, intercepts, y));
    if (b) TRY(set_intercepts(b, intercepts));
    linreg_tell(&system);
done:
    return ki_run_close(run, status);
}
