/* Corrections by a factor of the normal equations, in place of conjugate gradient's iterations. In f64 on
 * the host,
 *
 *   by columns   D^-1 H D^-1 = U^T U,  D^2 the diagonal of H, from one kiln_gram;           E = H^-1 G
 *   by rows      I + B L^-1 B^T = U^T U,  B = S^(1/2) (X - 1 mu^T), where rows are few:
 *                E = L^-1 (G - B^T (U^T U)^-1 B L^-1 G)
 *
 * The second is the first by the identity of Woodbury, and wants a penalty on every column. A correction is
 * as good as the factor, which rounding keeps from being H's: linreg_solve.c looks at the true residual
 * after each, as it does after a cycle of conjugate gradient, and goes on by that where a factor is of no
 * use. A column that depends on those before it, but for rounding, gets no part of the correction:
 * linreg_rank.c makes the solution of least norm from that. */
#include <stdio.h>

#include "algorithms/linreg/linreg_block.h"

#include "ops/linear/gram.h"
#include "ops/linear/newton.h"

enum {
    EXPECTED = 40,     /* iterations of conjugate gradient on most data, */
    GPU_EXPECTED = 20, /* and what a GPU gives for a factor instead: those that take fewer are many */
    ROWS_EXPECTED =
        400,          /* for the solution of least norm of fewer rows than columns, which always needs it */
    SIZE_MOST = 4096, /* of a factor on the CPU: 128 MiB and a second or two */
    GPU_MOST = 1024,  /* of one that a GPU waits for */
    CHEAP = 1 << 23,  /* multiplications that nobody waits for, one after the other, */
    CHEAP_ALL = 4,    /* and times as many where threads share them */
    WIDE = 64,        /* columns of one pass */
    ROUNDING = 16     /* of elements of the Gram matrix, in epsilons */
};

/* A multiplication of the factorisation, on one thread, beside an entry's part in a pass; a column of a pass
 * over many beside a pass over one. */
static const double FACTOR_STEP = 0.3, COLUMN = 0.2;

/* ---- which one ---- */

static bool penalised(const kiln_linreg_options *options) {
    return options->l2 > 0;
}

/* Returns whether a budget of the device leaves what kiln_gram takes. */
static bool direct_has_room(const kiln_matrix *X, double size) {
    kiln_device_info info = {0};
    kiln_device_statistics used = {0};
    const kiln_device *device = kiln_matrix_device(X);
    return kiln_device_get_info(device, &info) == KILN_OK &&
           kiln_device_get_statistics(device, &used) == KILN_OK &&
           ki_gram_room(X, size) <= (double)(info.memory - used.memory_used);
}

/* The price of the Gram matrix is in passes over X. */
static double gram_price(const kiln_matrix *X, bool by_rows) {
    return by_rows ? 2 * COLUMN * (double)kiln_matrix_rows(X) : ki_gram_price(X);
}

/* The factor's work is in multiplications that take as long as an entry's part in a pass. */
static double factor_work(double size, int threads) {
    const double multiplications = size * size * size / 6;
    return multiplications > CHEAP ? FACTOR_STEP * threads * multiplications : 0;
}

/* In passes over X; INFINITY where it cannot be done. */
static double direct_price(const kiln_matrix *X, bool by_rows, bool gpu, int threads) {
    const double size = (double)(by_rows ? kiln_matrix_rows(X) : kiln_matrix_cols(X));
    if (size > (gpu ? GPU_MOST : SIZE_MOST) || !direct_has_room(X, size)) return INFINITY;
    const double factor =
        gpu ? ki_gpu_factor_price(X, size) : factor_work(size, threads) / fmax((double)kiln_matrix_nnz(X), 1);
    return factor + gram_price(X, by_rows);
}

/* Returns whether nobody waits for it. A GPU's passes over such an X take next to no time, so that by passes
 * no factor would do there; but least squares without a penalty want the rank, which only a factor tells. */
static bool is_short(const kiln_matrix *X, bool by_rows, bool gpu, int threads) {
    const double size = (double)(by_rows ? kiln_matrix_rows(X) : kiln_matrix_cols(X));
    const double work =
        factor_work(size, gpu ? 1 : threads) + gram_price(X, by_rows) * (double)kiln_matrix_nnz(X);
    return work <= (double)CHEAP_ALL * CHEAP && direct_has_room(X, size);
}

kiln_linreg_solver ki_linreg_choose(struct ki_direct *direct, const kiln_matrix *X,
                                    const kiln_linreg_options *options) {
    kiln_device_info info = {0};
    if (kiln_device_get_info(kiln_matrix_device(X), &info) != KILN_OK) return KILN_LINREG_CG;
    const int threads = ki_newton_threads(kiln_matrix_device(X));
    const double columns = direct_price(X, false, info.is_gpu, threads);
    const double rows = penalised(options) ? direct_price(X, true, info.is_gpu, threads) : INFINITY;
    const bool fewer = kiln_matrix_rows(X) < kiln_matrix_cols(X);
    direct->price = fmin(rows, columns);
    /* where neither has a price a factor is still asked for, perhaps */
    direct->by_rows = isinf(direct->price) ? penalised(options) && fewer : rows < columns;
    if (options->solver) return options->solver;
    const double most = info.is_gpu ? GPU_EXPECTED : EXPECTED;
    const bool cheap = (!info.is_gpu || !penalised(options)) && isfinite(direct->price) &&
                       is_short(X, direct->by_rows, info.is_gpu, threads);
    return !options->no_preconditioner && (cheap || direct->price <= most) ? KILN_LINREG_CHOLESKY
                                                                           : KILN_LINREG_CG;
}

kiln_status ki_linreg_explain(kiln_solver *choice, const void *given, const kiln_matrix *X, int64_t k) {
    kiln_status status;
    kiln_linreg_options options;
    struct ki_direct direct = {0};
    (void)k;
    TRY(KI_TAKE(kiln_linreg_options, &options, given));
    TRY(ki_linreg_check_solver(&options));
    const bool factor = ki_linreg_choose(&direct, X, &options) == KILN_LINREG_CHOLESKY;
    const char *reason = options.solver              ? "as asked for; "
                         : options.no_preconditioner ? "the only one without a preconditioner; "
                                                     : "";
    choice->solver = factor ? ki_direct_name(&direct) : "cg";
    if (options.max_iterations == 0) choice->max_iterations = ki_linreg_iterations(X);
    if (isinf(direct.price))
        snprintf(
            choice->why, sizeof choice->why,
            "%sa factor is taken only for few columns (or rows, where every column is penalised) that the "
            "device has memory for",
            reason);
    else
        snprintf(choice->why, sizeof choice->why,
                 "%sa factor of the normal equations should take as long as %.3g passes over X, conjugate "
                 "gradient about %d on most data, or many times that",
                 reason, direct.price, EXPECTED);
done:
    return status;
}

const char *ki_direct_name(const struct ki_direct *direct) {
    return direct->by_rows ? "cholesky-rows" : "cholesky";
}

/* ---- the factor ---- */

/* The diagonal of L, 0 for a column that is left out. */
static kiln_status get_penalty(double *penalty, bool *kept, const struct ki_system *system) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t n = kiln_matrix_cols(system->X);
    double *inverse = ki_arena_doubles(&arena, n);
    TRY(arena.status);
    for (int64_t j = 0; j < n; j++) inverse[j] = 1, penalty[j] = system->options.l2;
    if (system->inverse) TRY(ki_vector_get(inverse, system->inverse));
    if (system->penalty) TRY(ki_vector_get(penalty, system->penalty));
    for (int64_t j = 0; j < n; j++) kept[j] = inverse[j] > 0;
done:
    return ki_arena_free(&arena, status);
}

/* The Gram matrix, of the walk or of kiln_gram. */
static kiln_status get_gram(double *values, struct ki_system *system) {
    kiln_status status;
    const kiln_matrix *X = system->X, *mean = system->options.no_intercept ? NULL : system->mean;
    const int64_t n = kiln_matrix_cols(X);
    struct ki_arena arena = {0};
    for (int64_t i = 0; i < n && system->walk.A; i++)
        for (int64_t j = i; j < n; j++) values[i * n + j] = ki_walk_element(system, i, j);
    if (system->walk.A) return KILN_OK;
    kiln_matrix *G = ki_arena_model(&arena, X, n, n);
    TRY(arena.status);
    TRY(kiln_gram(G, NULL, X, system->options.weights, mean));
    system->run.report.passes += ki_gram_passes(n);
    TRY(ki_vector_get(values, G));
done:
    return ki_arena_free(&arena, status);
}

/* The Gram matrix of a sparse X has sums that cancel where means dwarf spreads, and no more than the digits
 * that these leave: blurred, n, unless NULL, gets by how much. Its diagonal is known better. */
static kiln_status form_columns(struct ki_system *system, struct ki_direct *direct, double *blurred) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t n = direct->size;
    double *U = direct->U, *scale = direct->scale;
    bool *kept = ki_arena_room(&arena, n, sizeof *kept);
    double *centred = blurred ? ki_arena_doubles(&arena, n) : NULL;
    TRY(arena.status);
    TRY(get_gram(U, system));
    TRY(get_penalty(scale, kept, system));
    if (blurred) TRY(ki_vector_get(blurred, system->square));
    if (blurred) TRY(ki_vector_get(centred, system->centred));
    for (int64_t j = 0; j < n; j++) {
        if (blurred) U[j * n + j] = centred[j];
        const double diagonal = U[j * n + j] += scale[j];
        scale[j] = kept[j] && diagonal > 0 ? 1 / sqrt(diagonal) : 0;
        if (blurred) blurred[j] = kept[j] && centred[j] > 0 ? sqrt(fmax(blurred[j] / centred[j], 1)) : 1;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) U[i * n + j] = i == j ? 1 : scale[i] * U[i * n + j] * scale[j];
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_system_multiply(kiln_matrix *A, const struct ki_system *system, const kiln_matrix *V) {
    kiln_status status;
    double shift[WIDE], one[WIDE];
    TRY(kiln_multiply(A, 1, KILN_PLAIN, system->X, V, 0, NULL));
    if (system->options.no_intercept) return KILN_OK;
    TRY(kiln_dot(shift, V, system->mean));
    for (int64_t j = 0; j < kiln_matrix_cols(V); j++) one[j] = 1, shift[j] = -shift[j];
    TRY(kiln_combine(A, one, A, shift, system->ones));
done:
    return status;
}

kiln_status ki_system_scatter(kiln_matrix *A, const struct ki_system *system, const kiln_matrix *V) {
    kiln_status status;
    double sum[WIDE], one[WIDE];
    TRY(kiln_multiply(A, 1, KILN_TRANSPOSED, system->X, V, 0, NULL));
    if (!system->options.no_intercept) {
        TRY(kiln_dot(sum, V, system->ones));
        for (int64_t j = 0; j < kiln_matrix_cols(V); j++) one[j] = 1, sum[j] = -sum[j];
        TRY(kiln_combine(A, one, A, sum, system->mean));
    }
done:
    return status;
}

/* A = L^-1 (X - 1 mu^T)^T V */
static kiln_status multiply_columns(kiln_matrix *A, const struct ki_system *system,
                                    const struct ki_direct *direct, const kiln_matrix *V) {
    const kiln_status status = ki_system_scatter(A, system, V);
    return status == KILN_OK ? kiln_times(A, A, direct->reciprocal) : status;
}

/* Columns [first, first + count) of B L^-1 B^T + diagonal; block has room for m x count. */
static kiln_status form_block(struct ki_system *system, struct ki_direct *direct, double *block,
                              int64_t first, int64_t count, double diagonal) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t m = direct->size;
    kiln_matrix *rows = ki_arena_rows(&arena, system->X, count);
    kiln_matrix *columns = ki_arena_model(&arena, system->X, kiln_matrix_cols(system->X), count);
    TRY(arena.status);
    memset(block, 0, (size_t)(m * count) * sizeof *block);
    for (int64_t j = 0; j < count; j++) block[(first + j) * count + j] = direct->scale[first + j];
    TRY(ki_vector_set(rows, block));
    TRY(multiply_columns(columns, system, direct, rows));
    TRY(ki_system_multiply(rows, system, columns));
    system->run.report.passes += 2;
    TRY(ki_vector_get(block, rows));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < count; j++)
            direct->U[i * m + first + j] =
                direct->scale[i] * block[i * count + j] + (i == first + j ? diagonal : 0);
done:
    return ki_arena_free(&arena, status);
}

/* weights n x 1: L, or what takes its place; 0 for a column that is left out. */
static kiln_status form_rows(struct ki_system *system, struct ki_direct *direct, struct ki_arena *arena,
                             const double *weights, double diagonal) {
    kiln_status status;
    struct ki_arena own = {0};
    const int64_t m = direct->size, n = kiln_matrix_cols(system->X);
    double *reciprocal = ki_arena_doubles(&own, n), *block = ki_arena_doubles(&own, m * WIDE);
    TRY(own.status);
    for (int64_t j = 0; j < n; j++) reciprocal[j] = weights[j] > 0 ? 1 / weights[j] : 0;
    direct->reciprocal = ki_arena_vector(arena, system->X, n, reciprocal);
    TRY(arena->status);
    TRY(ki_vector_get(direct->scale, system->s));
    for (int64_t i = 0; i < m; i++) direct->scale[i] = sqrt(direct->scale[i]);
    for (int64_t first = 0; first < m; first += WIDE)
        TRY(form_block(system, direct, block, first, ki_min(m - first, WIDE), diagonal));
done:
    return ki_arena_free(&own, status);
}

/* I + B L^-1 B^T */
static kiln_status form_penalised_rows(struct ki_system *system, struct ki_direct *direct,
                                       struct ki_arena *arena) {
    kiln_status status;
    struct ki_arena own = {0};
    const int64_t n = kiln_matrix_cols(system->X);
    double *penalty = ki_arena_doubles(&own, n);
    bool *kept = ki_arena_room(&own, n, sizeof *kept);
    TRY(own.status);
    TRY(get_penalty(penalty, kept, system));
    for (int64_t j = 0; j < n; j++) penalty[j] = kept[j] ? penalty[j] : 0;
    TRY(form_rows(system, direct, arena, penalty, 1));
done:
    return ki_arena_free(&own, status);
}

/* Row `at` of null: by columns, for one that U's rows before it make but for rounding, from what they have
 * in its column. */
static void take_null(double *null, const struct ki_direct *direct, const bool *left_out, int64_t at) {
    const int64_t size = direct->size;
    const double *U = direct->U;
    null[at] = direct->scale[at];
    for (int64_t i = at; i-- > 0;) {
        double sum = U[i * size + at];
        for (int64_t j = i + 1; j < at; j++) sum -= left_out[j] ? 0 : U[i * size + j] * -null[j];
        null[i] = left_out[i] ? 0 : -sum / U[i * size + i];
    }
    for (int64_t i = 0; i < at; i++) null[i] *= direct->scale[i];
}

/* Rows of U that depend on others get no part in corrections; by columns, what makes them is kept. */
static kiln_status direct_leave_out(struct ki_direct *direct, struct ki_arena *arena, const bool *left_out) {
    const int64_t size = direct->size;
    int64_t count = 0;
    for (int64_t k = 0; k < size; k++) {
        direct->left += left_out[k] && direct->scale[k] > 0;
        direct->taken += direct->scale[k] > 0;
    }
    direct->taken -= direct->left;
    if (!direct->by_rows && direct->left > 0)
        direct->null = ki_arena_room(arena, direct->left, (size_t)size * sizeof(double));
    for (int64_t k = 0; k < size && direct->null; k++) {
        if (!left_out[k] || !(direct->scale[k] > 0)) continue;
        memset(direct->null + count * size, 0, (size_t)size * sizeof *direct->null);
        take_null(direct->null + count++ * size, direct, left_out, k);
    }
    for (int64_t k = 0; k < size; k++) {
        if (!left_out[k]) continue;
        direct->scale[k] = 0;
        for (int64_t i = 0; i < k; i++) direct->U[i * size + k] = 0;
    }
    return arena->status;
}

double ki_direct_part(const kiln_matrix *X) {
    return kiln_matrix_type(X) == KILN_F32 ? 1e-5 : 1e-11;
}

/* U from what form_... leave there; a user who does not want to wait for it is asked from time to time.
 * rounding: of the matrix's elements, as blurred or not, 0 where a penalty decides between columns; work: of
 * a row. */
static void direct_factorise(struct ki_system *system, struct ki_direct *direct, const double *scale,
                             const double *blurred, double rounding, double *work, bool *left_out) {
    struct ki_run *run = &system->run;
    struct ki_factorisation factor = {.U = direct->U,
                                      .size = direct->size,
                                      .scale = scale,
                                      .part = ki_direct_part(system->X),
                                      .rounding = rounding,
                                      .room = rounding > 0 ? work : NULL,
                                      .blurred = blurred,
                                      .left_out = left_out};
    while (!ki_factorise(&factor, ki_clock() + KI_FACTOR_ROUND) && !run->cancelled)
        run->cancelled = ki_run_stage(run, "factor row", factor.next, factor.size, (double)NAN);
    direct->usable = !factor.failed && !run->cancelled;
}

/* U, once for all targets; weights: of ki_direct_form_rows, else NULL. */
static kiln_status direct_form(struct ki_system *system, struct ki_direct *direct, struct ki_arena *arena,
                               const double *weights, double rounding) {
    kiln_status status;
    struct ki_arena own = {0};
    direct->size = direct->by_rows ? kiln_matrix_rows(system->X) : kiln_matrix_cols(system->X);
    const int64_t size = direct->size;
    if (!direct_has_room(system->X, (double)size)) {
        ki_fail_nomem((size_t)size * (size_t)size * sizeof(double), "the normal equations");
        return ki_hint("solve by conjugate gradient, which does without them");
    }
    direct->U = ki_arena_room(arena, size, (size_t)size * sizeof(double));
    direct->scale = ki_arena_doubles(arena, size);
    double *diagonal = ki_arena_doubles(&own, size), *work = ki_arena_doubles(&own, size);
    bool *left_out = ki_arena_zeros(&own, size, sizeof *left_out);
    const bool cancels = !direct->by_rows && !system->options.no_intercept && ki_gram_cancels(system->X);
    double *blurred = cancels ? ki_arena_doubles(&own, size) : NULL;
    TRY(arena->status);
    TRY(own.status);
    TRY(weights           ? form_rows(system, direct, arena, weights, 0)
        : direct->by_rows ? form_penalised_rows(system, direct, arena)
                          : form_columns(system, direct, blurred));
    for (int64_t i = 0; i < size; i++) {
        diagonal[i] = direct->U[i * size + i];
        if (!(diagonal[i] > 0)) diagonal[i] = 1; /* of weight 0 */
    }
    direct_factorise(system, direct, diagonal, blurred, rounding, work, left_out);
    if (direct->usable) TRY(direct_leave_out(direct, arena, left_out));
done:
    return ki_arena_free(&own, status);
}

kiln_status ki_direct_form(struct ki_system *system, struct ki_direct *direct, struct ki_arena *arena) {
    const double rounding =
        penalised(&system->options) ? 0 : ROUNDING * ki_epsilon(kiln_matrix_type(system->X));
    return direct_form(system, direct, arena, NULL, rounding);
}

kiln_status ki_direct_form_rows(struct ki_system *system, struct ki_direct *direct, const double *weights,
                                double rounding) {
    direct->by_rows = true;
    return direct_form(system, direct, &system->run.arena, weights, rounding);
}

bool ki_direct_cheap(const struct ki_system *system, bool by_rows) {
    kiln_device_info info = {0};
    const kiln_matrix *X = system->X;
    if (kiln_device_get_info(kiln_matrix_device(X), &info) != KILN_OK) return false;
    const int threads = ki_newton_threads(kiln_matrix_device(X));
    const double most = by_rows ? ROWS_EXPECTED : info.is_gpu ? GPU_EXPECTED : EXPECTED;
    return is_short(X, by_rows, info.is_gpu, threads) ||
           direct_price(X, by_rows, info.is_gpu, threads) <= most;
}

bool ki_direct_possible(const struct ki_system *system) {
    const double size = (double)kiln_matrix_cols(system->X);
    return kiln_matrix_type(system->X) == KILN_F64 && size <= SIZE_MOST && direct_has_room(system->X, size);
}

void ki_direct_reconsider(struct ki_system *system) {
    struct ki_direct *direct = &system->direct;
    const kiln_matrix *X = system->X;
    if (!direct->wanted || direct->U || system->options.solver) return;
    direct->wanted =
        direct_has_room(X, (double)(direct->by_rows ? kiln_matrix_rows(X) : kiln_matrix_cols(X)));
}

/* ---- a correction ---- */

enum {
    AT_ONCE = 32
}; /* columns that a thread solves for: their part of a few thousand rows stays in its cache */

struct solve {
    const struct ki_direct *direct;
    double *values, *room; /* size x k, and as many by parts */
    int64_t k;
};

/* Columns part AT_ONCE and those after it. */
static void solve_part(void *arg, int part) {
    const struct solve *of = arg;
    const double *scale = of->direct->scale;
    const int64_t size = of->direct->size, first = (int64_t)part * AT_ONCE,
                  k = ki_min(AT_ONCE, of->k - first);
    double *r = of->room + size * first, *values = of->values + first;
    for (int64_t i = 0; i < size; i++)
        for (int64_t c = 0; c < k; c++) r[i * k + c] = scale[i] * values[i * of->k + c];
    if (k == 1)
        ki_substitute(of->direct->U, r, size);
    else
        ki_substitute_columns(of->direct->U, r, size, k);
    for (int64_t i = 0; i < size; i++)
        for (int64_t c = 0; c < k; c++) values[i * of->k + c] = scale[i] * r[i * k + c];
}

kiln_status ki_direct_solve(kiln_matrix *A, const struct ki_direct *direct) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t size = direct->size, k = kiln_matrix_cols(A);
    struct solve of = {.direct = direct,
                       .values = ki_arena_doubles(&arena, size * k),
                       .room = ki_arena_doubles(&arena, size * k),
                       .k = k};
    TRY(arena.status);
    TRY(ki_vector_get(of.values, A));
    ki_newton_parallel(kiln_matrix_device(A), (int)((k + AT_ONCE - 1) / AT_ONCE), solve_part, &of);
    TRY(ki_vector_set(A, of.values));
done:
    return ki_arena_free(&arena, status);
}

/* E = L^-1 (G - B^T (U^T U)^-1 B L^-1 G). Uses Z and R. */
static kiln_status correct_by_rows(struct ki_block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    double minus[KI_BLOCK];
    for (int j = 0; j < t->k; j++) minus[j] = -1;
    TRY(kiln_times(t->E, t->G, system->direct.reciprocal));
    TRY(ki_system_multiply(t->R, system, t->E));
    TRY(ki_direct_solve(t->R, &system->direct));
    TRY(multiply_columns(t->Z, system, &system->direct, t->R));
    TRY(kiln_combine(t->E, t->one, t->E, minus, t->Z));
    system->run.report.passes += 2;
done:
    return status;
}

kiln_status ki_block_correct(struct ki_block *t) {
    kiln_status status;
    struct ki_system *system = t->system;
    double active[KI_BLOCK];
    if (!system->direct.U) TRY(ki_direct_form(system, &system->direct, &system->run.arena));
    if (system->run.cancelled) return kiln_fill(t->E, 0);
    for (int j = 0; j < t->k; j++) active[j] = t->active[j] && system->direct.usable ? 1 : 0;
    if (!system->direct.usable) {
        TRY(kiln_fill(t->E, 0));
    } else if (system->direct.by_rows) {
        TRY(correct_by_rows(t));
        TRY(kiln_combine(t->E, active, t->E, NULL, NULL));
    } else {
        TRY(kiln_combine(t->E, active, t->G, NULL, NULL));
        TRY(ki_direct_solve(t->E, &system->direct));
    }
    system->run.report.iterations++;
    TRY(ki_block_record(t, t->norm));
done:
    return status;
}
