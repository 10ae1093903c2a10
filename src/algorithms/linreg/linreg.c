/* Linear regression: what may be asked for, the system that linreg_solve.c solves, and what is handed back.
 *
 * Targets are solved in blocks of as many as one pass over X serves. The results of several blocks are
 * gathered on the host. W and b are written when all has succeeded, so that a failure leaves both as they
 * were. */
#include "algorithms/registry.h"
#include "algorithms/linreg/linreg.h"

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

static kiln_status check_arguments(const kiln_matrix *W, const kiln_matrix *b, const kiln_matrix *X,
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
    const int64_t n = kiln_matrix_cols(system->X);
    int64_t j = 0;
    double *values = ki_alloc((size_t)(2 * n) * sizeof *values);
    if (!values) return ki_fail_nomem((size_t)(2 * n) * sizeof *values, "the columns' scales");
    TRY(ki_vector_get(values, diagonal));
    TRY(ki_vector_get(values + n, system->inverse));
    while (j < n - 1 && (!(values[j] > 0) || (values[n + j] > 0 && isfinite(values[n + j])))) j++;
    status = ki_fail_column(system->X, j, KI_PENALTY_OUT_OF_RANGE);
done:
    ki_free(values);
    return status;
}

/* A column whose diagonal of H is nothing (constant under an intercept, or all zero) is left out: its
 * coefficient is 0. The preconditioner is the inverse of the diagonal itself, not a multiple: then X times a
 * direction has the size of y, however large or small X is, and squares of neither leave the range of the
 * type. One of ones is none, as long as what it leaves out has no entries: the gradient is 0 there. */
static kiln_status build_vectors(struct ki_system *system, struct ki_moments *moments) {
    kiln_status status;
    const kiln_linreg_options *options = &system->options;
    kiln_device *device = kiln_matrix_device(system->X);
    const kiln_type type = kiln_matrix_type(system->X);
    const int64_t cols = kiln_matrix_cols(system->X);
    double sums[KI_SCALES_SUMS];
    TRY(kiln_matrix_dense(&system->inverse, device, type, cols, 1, NULL));
    if (options->warm_start) TRY(kiln_matrix_dense(&system->kept, device, type, cols, 1, NULL));
    if (options->standardize) TRY(kiln_matrix_dense(&system->penalty, device, type, cols, 1, NULL));
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
    if (options->no_preconditioner && !options->standardize && sums[1] == 0) {
        kiln_matrix_free(system->inverse);
        system->inverse = NULL;
    }
    if (!options->no_intercept) {
        system->mean = moments->mean;
        moments->mean = NULL;
    }
    system->flats = moments->flats;
    system->square = moments->square;
    system->centred = moments->centred;
    moments->square = moments->centred = NULL;
done:
    return status;
}

/* The moments, and the right-hand side of a single target where they come with it. */
static kiln_status measure(struct ki_moments *moments, struct ki_system *system, const kiln_matrix *y,
                           double sum) {
    kiln_status status;
    if (kiln_matrix_cols(y) == 1) moments->y = y;
    if (moments->y && !system->options.no_intercept) moments->d = sum / system->weight;
    if (kiln_matrix_type(y) == KILN_F32) moments->d = (float)moments->d;
    TRY(ki_moments_measure(moments, system->X, system->s, system->weight));
    system->passes += moments->passes;
    system->right = moments->right;
    system->right_about = moments->d;
    system->right_sum = sum - system->weight * moments->d;
    moments->right = NULL;
done:
    return status;
}

static kiln_status system_new(struct ki_system *system, const kiln_matrix *y) {
    kiln_status status;
    const kiln_matrix *X = system->X;
    struct ki_moments moments = {0};
    double sum = 0; /* of the only target: finite if that is, and does not overflow */
    TRY(kiln_matrix_dense(&system->ones, kiln_matrix_device(X), kiln_matrix_type(X), kiln_matrix_rows(X), 1,
                          NULL));
    TRY(kiln_fill(system->ones, 1));
    system->s = system->options.weights ? system->options.weights : system->ones;
    system->weight = (double)kiln_matrix_rows(X);
    if (system->options.weights) TRY(kiln_dot(&system->weight, system->s, system->ones));
    if (!(system->weight > 0)) TRY(ki_fail(KILN_ERR_DATA, "%s: the weights are all zero", call));
    system->bytes = ki_bytes_of(X);
    if (kiln_matrix_cols(y) == 1) TRY(kiln_dot(&sum, y, system->s));
    if (kiln_matrix_cols(y) > 1 || !isfinite(sum)) TRY(ki_check_finite(call, "y", y, false));
    TRY(ki_walk_measure(&moments, system, y));
    if (!system->walk.A) TRY(measure(&moments, system, y, sum));
    TRY(build_vectors(system, &moments));
done:
    ki_moments_free(&moments);
    return status;
}

static void system_free(struct ki_system *system) {
    kiln_matrix_free(system->ones);
    kiln_matrix_free(system->mean);
    kiln_matrix_free(system->square);
    kiln_matrix_free(system->centred);
    kiln_matrix_free(system->penalty);
    kiln_matrix_free(system->inverse);
    kiln_matrix_free(system->kept);
    kiln_matrix_free(system->right);
    ki_direct_free(&system->direct);
    ki_walk_free(&system->walk);
    ki_rank_free(&system->rank);
    kiln_report_free(&system->report);
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

static kiln_status tables_new(struct tables *tables, const struct ki_system *system, const kiln_matrix *W,
                              const kiln_matrix *y) {
    kiln_status status = KILN_OK;
    const int64_t element = kiln_matrix_type(W) == KILN_F32 ? 4 : 8;
    const int64_t longer = ki_max(kiln_matrix_rows(W), kiln_matrix_rows(y));
    const int64_t W_bytes = kiln_matrix_nnz(W) * element, y_bytes = kiln_matrix_nnz(y) * element;
    const int64_t block_bytes = longer * KI_BLOCK * element;
    tables->element = element;
    tables->W = ki_calloc((size_t)(ki_ceil_div(W_bytes, 8) * 8)); /* whole words, for checkpoints */
    tables->block = ki_alloc((size_t)block_bytes);
    tables->y = ki_alloc((size_t)y_bytes);
    if (!tables->W || !tables->block || !tables->y) {
        status = ki_fail_nomem((size_t)(W_bytes + block_bytes + y_bytes), "the coefficients");
        goto done;
    }
    if (system->options.warm_start) TRY(kiln_matrix_get(tables->W, W));
    TRY(kiln_matrix_get(tables->y, y));
done:
    return status;
}

static void tables_free(struct tables *tables) {
    ki_free(tables->W);
    ki_free(tables->y);
    ki_free(tables->block);
}

/* Solves for targets first .. first + width - 1. */
static kiln_status solve_block(struct ki_system *system, struct tables *tables, double *b,
                               const kiln_matrix *y, int64_t first, int64_t width) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(y);
    const kiln_type type = kiln_matrix_type(y);
    const int64_t rows = kiln_matrix_rows(y), cols = kiln_matrix_cols(system->X);
    const int64_t row = kiln_matrix_cols(y) * tables->element, part = width * tables->element;
    char *W_part = tables->W + first * tables->element;
    kiln_matrix *W_block = NULL, *y_block = NULL;
    copy_columns(tables->block, part, tables->y + first * tables->element, row, rows, part);
    TRY(kiln_matrix_dense(&y_block, device, type, rows, width, tables->block));
    copy_columns(tables->block, part, W_part, row, cols, part);
    TRY(kiln_matrix_dense(&W_block, device, type, cols, width, tables->block));
    TRY(ki_linreg_block(system, &W_block, b + first, y_block));
    TRY(kiln_matrix_get(tables->block, W_block));
    copy_columns(W_part, row, tables->block, part, cols, part);
done:
    kiln_matrix_free(W_block);
    kiln_matrix_free(y_block);
    return status;
}

static kiln_status solve_blocks(struct ki_system *system, kiln_matrix *W, double *b, const kiln_matrix *y) {
    kiln_status status;
    struct tables tables = {0};
    const int64_t k = kiln_matrix_cols(y);
    int64_t first = 0;
    TRY(tables_new(&tables, system, W, y));
    const int64_t words = ki_ceil_div(kiln_matrix_nnz(W) * tables.element, 8);
    const struct ki_state outer[KI_LINREG_OUTER] = {
        {"first target", .integers = &first, .least = 0, .most = k - 1},
        {"coefficients", .reals = (double *)(void *)tables.W, .count = words},
        {"intercepts", .reals = b, .count = k},
        {"gap", .reals = &system->gap}};
    memcpy(system->outer, outer, sizeof outer);
    system->outer_count = KI_LINREG_OUTER;
    TRY(ki_checkpoint_look(&system->options.control, outer, KI_LINREG_OUTER));
    first -= first % KI_BLOCK;
    for (; first < k; first += KI_BLOCK)
        TRY(solve_block(system, &tables, b, y, first, ki_min(KI_BLOCK, k - first)));
    TRY(kiln_matrix_set(W, tables.W));
done:
    tables_free(&tables);
    return status;
}

/* All targets at once: the coefficients never leave the device. */
static kiln_status solve_at_once(struct ki_system *system, kiln_matrix *W, double *b, const kiln_matrix *y) {
    kiln_status status;
    kiln_matrix *made = NULL;
    double one[KI_BLOCK];
    for (int j = 0; j < KI_BLOCK; j++) one[j] = 1;
    TRY(kiln_matrix_dense(&made, kiln_matrix_device(W), kiln_matrix_type(W), kiln_matrix_rows(W),
                          kiln_matrix_cols(W), NULL));
    if (system->options.warm_start) TRY(kiln_combine(made, one, W, NULL, NULL));
    TRY(ki_linreg_block(system, &made, b, y));
    TRY(kiln_combine(W, one, made, NULL, NULL));
done:
    kiln_matrix_free(made);
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

static void hand_over_report(kiln_report *to, struct ki_system *system) {
    kiln_report *report = &system->report;
    report->tolerance = system->options.tolerance;
    ki_report_figure(report, "rss", system->rss);
    ki_report_figure(report, "tss", system->tss);
    ki_report_figure(report, "r2", system->tss > 0 ? 1 - system->rss / system->tss : (double)NAN);
    const bool decided = system->rank.rank >= 0;
    if (system->rank.known)
        ki_report_figure(report, "rank", decided ? (double)system->rank.rank : (double)NAN);
    if (system->rank.known && decided) ki_report_rank(report, system->rank.rank, kiln_matrix_cols(system->X));
    if (!system->options.no_intercept || system->options.standardize)
        ki_report_flats(report, &system->flats, kiln_matrix_type(system->X));
    ki_report_certify(report, system->gap, system->options.l2 > 0 ? "duality gap" : "normal equations");
    report->passes = system->passes;
    report->solver = system->direct.U && system->direct.wanted ? ki_direct_name(&system->direct) : "cg";
    report->seconds = ki_clock() - system->start;
    ki_report_hand_over(to, report);
}

kiln_status kiln_linreg(kiln_matrix *W, kiln_matrix *b, const kiln_matrix *X, const kiln_matrix *y,
                        const kiln_linreg_options *options, kiln_report *report) {
    kiln_status status;
    struct ki_system system = {.X = X, .start = ki_clock(), .report.converged = 1};
    double *intercepts = NULL;
    TRY(KI_TAKE(kiln_linreg_options, &system.options, options));
    TRY(ki_options_check(&system.options, &ki_algorithm_linreg));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    TRY(ki_check_strength(call, "l2", system.options.l2));
    TRY(check_arguments(W, b, X, y, &system.options));
    if (system.options.weights) TRY(ki_check_weights(call, system.options.weights));
    if (system.options.warm_start) TRY(ki_check_finite(call, "W", W, false));
    if (system.options.max_iterations == 0) system.options.max_iterations = ki_linreg_iterations(X);
    ki_options_fill(&system.options, &ki_algorithm_linreg, kiln_matrix_type(X));
    system.direct.wanted = ki_linreg_choose(&system.direct, X, &system.options) == KILN_LINREG_CHOLESKY;
    const int64_t k = kiln_matrix_cols(y);
    TRY(ki_linear_ahead(&(struct ki_ahead){.X = X,
                                           .gram = system.direct.wanted,
                                           .weighted = system.options.weights != NULL,
                                           .targets = ki_min(k, KI_BLOCK),
                                           .loss.kind = KILN_LOSS_SQUARED}));
    system.blocks = ki_ceil_div(k, KI_BLOCK);
    intercepts = ki_calloc((size_t)k * sizeof *intercepts);
    if (!intercepts) TRY(ki_fail_nomem((size_t)k * sizeof *intercepts, "the intercepts"));
    TRY(ki_report_begin(&system.report));
    TRY(system_new(&system, y));
    TRY(ki_checkpoint_begin(
        &(struct ki_described){.control = &system.options.control,
                               .algorithm = "linreg",
                               .options = &system.options,
                               .X = X,
                               .given = {{"y", y}, {"the weights", system.options.weights}},
                               .report = &system.report,
                               .start = &system.start}));
    TRY(system.blocks > 1 ? solve_blocks(&system, W, intercepts, y)
                          : solve_at_once(&system, W, intercepts, y));
    if (b) TRY(set_intercepts(b, intercepts));
    hand_over_report(report, &system);
done:
    ki_free(intercepts);
    system_free(&system);
    return status;
}
