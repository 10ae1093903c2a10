/* A's rows from B, B's rows from A, and again: each half is a least-squares problem for every row, which
 * kiln_factor_solve solves, so that the objective never rises.
 *
 * The halves differ in the matrix alone: R for the rows, its transpose for the columns. Between sweeps each
 * factor's two columns are made equally long (balance), which leaves the products and lowers the penalty:
 * the halves alone would take hundreds of sweeps. */
#include "algorithms/factor/als.h"

#include "algorithms/run/run.h"
#include "algorithms/factor/balance.h"
#include "algorithms/factor/ccd.h"
#include "algorithms/factor/confidence.h"
#include "algorithms/factor/entries.h"

enum { MOST = 1024 }; /* factors, as of kiln_factor_solve */
#define COUNTED 0.1   /* a row's penalty for each of its entries, in their deviation */

struct als {
    struct ki_run run;
    const kiln_matrix *R;
    kiln_matrix *transposed;
    kiln_matrix *A, *B, *gram;  /* own copies; gram NULL if explicit */
    const kiln_matrix *gram_of; /* which of them it is of: als_measure ends a sweep with B's */
    struct ki_ccd ccd;          /* of the solver CCD */
    struct ki_counts counts;    /* of the entries: what `counted` multiplies penalties by */
    struct ki_balance balance;
    kiln_als_options options;
    struct ki_spread spread; /* of R's entries; an implicit model's wanted values are 0 and 1 */
    double mean, objective, test_rmse;
    double steps;    /* of a sweep; INFINITY: it is exact */
    bool any_solver; /* none was asked for */
    bool fresh;      /* B is what was drawn: without a penalty nothing else takes that out of a solution */
};

/* ------------------------------------------------------------------------------------------- checks */

static kiln_status check_options(const kiln_als_options *o) {
    static const char call[] = "kiln_als";
    if (!(o->l2 >= 0) || isinf(o->l2))
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.l2 is %g, but must be finite and not negative", call,
                       o->l2);
    if (!(o->alpha >= 0) || isinf(o->alpha))
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.alpha is %g, but must be finite and not negative", call,
                       o->alpha);
    if (o->confidence < 0 || o->confidence > KILN_CONFIDENCE_LOG || !(o->epsilon >= 0) || isinf(o->epsilon))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: there is no confidence %d with epsilon %g", call,
                       o->confidence, o->epsilon);
    if (o->confidence == KILN_CONFIDENCE_PROPORTIONAL && o->alpha == 0 &&
        ki_option_stands(o, &ki_algorithm_als, "alpha"))
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.alpha is 0: no entry would count", call);
    if (o->solver < 0 || o->solver > KILN_FACTOR_CCD)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: there is no solver %d", call, o->solver);
    if (o->steps < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.steps is %lld, but must not be negative", call,
                       (long long)o->steps);
    if (o->implicit && o->biases) {
        ki_fail(KILN_ERR_ARGUMENT,
                "kiln_als_options.biases and kiln_als_options.implicit exclude each other");
        return ki_hint("an implicit model's wanted values are 0 and 1, which have no means to take away");
    }
    if (o->implicit && o->solver == KILN_FACTOR_CCD) {
        ki_fail(KILN_ERR_ARGUMENT, "kiln_als_options.implicit and the solver ccd exclude each other");
        return ki_hint(
            "ccd goes from one entry to the next, and an implicit model has all cells for entries");
    }
    return ki_check_iteration(call, o->tolerance, o->max_iterations);
}

static kiln_status als_check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *R,
                             const kiln_als_options *o) {
    static const char call[] = "kiln_als";
    kiln_status status;
    TRY(ki_factors_check(call, "R", A, B, R, o->test));
    TRY(check_options(o));
    const int64_t factors = kiln_matrix_cols(A) - (o->biases != 0);
    if (factors < 1 || factors > MOST)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld factors, but 1 to %d are possible", call,
                       (long long)factors, MOST);
    if (kiln_matrix_nnz(R) == 0) return ki_fail(KILN_ERR_DATA, "%s: R has no entries", call);
    if (o->solver == KILN_FACTOR_CCD && ki_lies_in_file(R)) {
        ki_fail(KILN_ERR_UNSUPPORTED, "%s: the solver ccd keeps what is left of R's entries in memory", call);
        TRY(ki_hint("another kiln_als_options.solver, or leave --map out"));
    }
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ the start */

/* A is 0, and B random with products well below what the entries have beside their mean, its biases 0. B is
 * of one sign, as what its first factor has to say mostly is: rows and columns whose random signs differ
 * could never meet. */
static kiln_status random_start(struct als *s) {
    const int64_t n = kiln_matrix_cols(s->B);
    struct ki_arena arena = {0};
    double *const scale = ki_arena_reals(&arena, n);
    kiln_status status;
    TRY(arena.status);
    for (int64_t j = 0; j < n; j++) scale[j] = 0.1 * sqrt(s->spread.deviation);
    if (s->options.biases) scale[n - 1] = 0;
    TRY(kiln_fill(s->A, 0));
    TRY(kiln_fill_random(s->B, KILN_NORMAL, (uint64_t)s->options.seed, KI_STREAM_ALS));
    TRY(kiln_map(s->B, KILN_MAP_ABS, s->B));
    TRY(kiln_combine(s->B, scale, s->B, NULL, NULL));
done:
    return ki_arena_free(&arena, status);
}

/* Residuals' squares and curvatures of CG are products of four to six numbers of the entries' size;
 * right-hand sides are its product with its root, and the objective has its square, in double. Beside a
 * confidence of more than about 1 / eps a penalty is nothing. */
static const struct ki_room of_cg = {1e8, 1e50}, of_factors = {1e18, 1e140}, of_confidences = {1e8, 1e16};

/* Sees to it that the type has room for what the solver makes of the entries. One large confidence makes
 * rounding of its own row's penalty alone; its products may leave the type. */
static kiln_status find_room(struct als *s) {
    kiln_als_options *o = &s->options;
    kiln_status status;
    bool has, cg;
    TRY(o->implicit ? ki_room_on_average(&has, of_confidences, s->R, o->alpha)
                    : ki_room_has(&has, of_factors, s->R));
    if (!has || !isfinite(s->spread.squares))
        TRY(ki_room_fail("kiln_als", o->implicit ? "confidences" : "products of factors", s->R));
    if (o->solver != KILN_FACTOR_CG) goto done;
    TRY(o->implicit ? ki_room_below(&cg, of_cg, s->R, o->alpha) : ki_room_has(&cg, of_cg, s->R));
    if (cg) goto done;
    o->solver = KILN_FACTOR_CHOLESKY;
    if (s->any_solver) goto done;
    ki_room_fail("kiln_als", "the products of conjugate gradients", s->R);
    TRY(ki_hint("kiln_als_options.solver cholesky, or scale the entries of R"));
done:
    return status;
}

/* Finds what the entries say before training: transposed, what they are like, and the penalty that stands
 * for 0. */
static kiln_status look(struct als *s) {
    kiln_als_options *o = &s->options;
    const int64_t nnz = kiln_matrix_nnz(s->R);
    kiln_matrix *own = NULL;
    double sum;
    kiln_status status;
    TRY(ki_arena_take(&s->run.arena, &own, ki_confidence(&s->R, &own, "kiln_als", s->R, o)));
    TRY(ki_arena_take(&s->run.arena, &s->transposed,
                      ki_entries_take(&s->transposed, &sum, "kiln_als", s->R)));
    if (o->implicit)
        s->spread = (struct ki_spread){.squares = (double)nnz, .deviation = 1};
    else
        TRY(ki_spread_take(&s->spread, s->R, sum));
    if (o->biases) s->mean = s->spread.mean;
    TRY(find_room(s));
    TRY(ki_counts_take(&s->counts, &s->run.arena, s->R, s->transposed));
    if (!ki_option_stands(o, &ki_algorithm_als, "l2"))
        o->l2 = o->counted ? COUNTED * s->spread.deviation
                           : ki_factor_penalty(&s->counts, nnz, s->spread.deviation);
done:
    return status;
}

static kiln_status als_begin(struct als *s, const kiln_matrix *A, const kiln_matrix *B) {
    const kiln_als_options *o = &s->options;
    struct ki_run *run = &s->run;
    const int64_t n = kiln_matrix_cols(A);
    kiln_status status;
    TRY(look(s));
    TRY(ki_balance_begin(&s->balance, &run->arena, o->counted ? &s->counts : NULL, A, B));
    s->gram = o->implicit ? ki_run_model(run, n, n) : NULL;
    s->A = ki_run_rows(run, s->R, n);
    s->B = ki_run_model(run, kiln_matrix_rows(B), n);
    TRY(run->arena.status);
    if (o->warm_start) {
        TRY(ki_check_finite("kiln_als", "A", A, false));
        TRY(ki_check_finite("kiln_als", "B", B, false));
        TRY(ki_copy(s->A, A));
        TRY(ki_copy(s->B, B));
    } else
        TRY(random_start(s));
    s->steps = o->solver == KILN_FACTOR_CHOLESKY ? INFINITY : (double)o->steps;
    s->ccd = (struct ki_ccd){.l2 = o->l2, .counted = o->counted, .biases = o->biases};
    if (o->solver == KILN_FACTOR_CCD)
        TRY(ki_ccd_begin(&s->ccd, &run->arena, s->R, s->transposed, s->mean, s->A, s->B));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------- a sweep */

/* The problem of one side's rows, given the other side's factors, which takes so many steps of CG. */
static kiln_status problem(kiln_factor_rows *rows, struct als *s, const kiln_matrix *R,
                           const kiln_matrix *other, double steps) {
    const kiln_als_options *o = &s->options;
    *rows = (kiln_factor_rows){.size = sizeof(kiln_factor_rows),
                               .R = R,
                               .B = other,
                               .gram = s->gram,
                               .mean = s->mean,
                               .l2 = o->l2,
                               .alpha = o->alpha,
                               .proportional = o->confidence == KILN_CONFIDENCE_PROPORTIONAL,
                               .biases = o->biases,
                               .counted = o->counted,
                               .solver = isinf(steps) ? KILN_FACTOR_CHOLESKY : KILN_FACTOR_CG,
                               .steps = isinf(steps) ? 0 : (int64_t)steps};
    if (!s->gram || s->gram_of == other) return KILN_OK;
    s->gram_of = other;
    return kiln_gram(s->gram, NULL, other, NULL, NULL);
}

/* The penalty of B takes no pass over R's columns. */
static kiln_status penalty_of_columns(double *penalty, const struct als *s) {
    const struct ki_balance *balance = &s->balance;
    kiln_status status;
    TRY(kiln_gram_diagonal(balance->squares, s->B, balance->columns));
    TRY(ki_vector_get(balance->b, balance->squares));
    *penalty = 0;
    for (int64_t k = 0; k < kiln_matrix_cols(s->B); k++) *penalty += s->options.l2 / 2 * balance->b[k];
done:
    return status;
}

static kiln_status als_measure(struct als *s) {
    kiln_status status;
    kiln_factor_rows rows;
    double fit, penalty, error;
    TRY(penalty_of_columns(&penalty, s));
    TRY(problem(&rows, s, s->R, s->B, INFINITY));
    TRY(kiln_factor_loss(&fit, &rows, s->A, KILN_FACTOR_FIT | KILN_FACTOR_PENALTY));
    s->objective = fit + penalty;
    if (s->options.test && !s->options.implicit && kiln_matrix_nnz(s->options.test) > 0) {
        rows.R = s->options.test;
        TRY(kiln_factor_loss(&error, &rows, s->A, KILN_FACTOR_FIT));
        s->test_rmse = sqrt(2 * error / (double)kiln_matrix_nnz(s->options.test));
    }
    if (!isfinite(s->objective)) {
        ki_fail(KILN_ERR_DATA, "kiln_als: the objective overflows %s",
                kiln_matrix_type(s->R) == KILN_F32 ? "f32" : "f64");
        TRY(ki_hint("scale the entries of R"));
    }
done:
    return status;
}

/* All of A given B, then all of B given A. */
static kiln_status solve_sides(struct als *s, double steps) {
    kiln_status status;
    kiln_factor_rows rows;
    TRY(problem(&rows, s, s->R, s->B, steps));
    TRY(kiln_factor_solve(s->A, &rows));
    TRY(problem(&rows, s, s->transposed, s->A, steps));
    if (s->fresh && rows.l2 == 0 && rows.solver == KILN_FACTOR_CHOLESKY) TRY(kiln_fill(s->B, 0));
    TRY(kiln_factor_solve(s->B, &rows));
done:
    return status;
}

/* An exact one is Cholesky's whatever the solver is, and CCD++'s residuals follow. */
static kiln_status als_sweep(struct als *s, double steps) {
    kiln_status status = KILN_OK;
    const bool follow = s->ccd.E && isinf(steps);
    if (follow) TRY(ki_ccd_update(&s->ccd, 1, s->A, s->B));
    TRY(s->ccd.E && !follow ? ki_ccd_sweep(&s->ccd, (int64_t)steps, s->A, s->B) : solve_sides(s, steps));
    s->fresh = false;
    TRY(ki_balance_run(&s->balance, s->A, s->B, kiln_matrix_cols(s->A) - (s->options.biases != 0)));
    if (follow) TRY(ki_ccd_update(&s->ccd, -1, s->A, s->B));
    TRY(als_measure(s));
done:
    return status;
}

static bool gains(const struct als *s, double before) {
    return before - s->objective > s->run.tolerance * before;
}

/* Few steps gain little where the problem is badly scaled, too, however much there is to gain: a run ends
 * where an exact sweep gains little. Where it gains more the run goes on with twice the steps, and with exact
 * sweeps where these would be as many as the unknowns, so that it takes few of them for nothing. *before is
 * then the objective before the exact sweep, whose gain is compared with the gains before. */
static kiln_status als_confirm(struct als *s, double *before) {
    kiln_status status;
    *before = s->objective;
    TRY(als_sweep(s, INFINITY));
    if (!gains(s, *before)) goto done;
    s->steps *= 2;
    if (s->steps >= (double)kiln_matrix_cols(s->A)) s->steps = INFINITY;
done:
    return status;
}

static kiln_status als_iterate(struct als *s) {
    enum { OF_START = 1, OF_SWEEP = 3 }; /* passes over R */
    struct ki_run *run = &s->run;
    const struct ki_state state[] = {{"A", .matrix = &s->A},
                                     {"B", .matrix = &s->B},
                                     {"objective", .reals = &s->objective},
                                     {"test", .reals = &s->test_rmse},
                                     {"steps", .reals = &s->steps},
                                     {"residuals by rows", .matrix = &s->ccd.E},
                                     {"residuals by columns", .matrix = &s->ccd.T}};
    kiln_status status;
    KI_RUN_STATE(run, state);
    run->gains = true;
    TRY(ki_run_resume(run));
    if (!run->resumed) {
        s->fresh = !s->options.warm_start;
        run->report.passes = OF_START;
        TRY(als_measure(s));
    }
    while (ki_run_goes_on(run)) {
        double before = s->objective;
        TRY(als_sweep(s, s->steps));
        run->report.passes += OF_SWEEP;
        if (!isinf(s->steps) && !gains(s, before)) {
            TRY(als_confirm(s, &before));
            run->report.passes += OF_SWEEP;
        }
        TRY(ki_run_step(run,
                        &(kiln_trace_row){.objective = s->objective,
                                          .residual = fmax(before - s->objective, 0) / fmax(before, DBL_MIN),
                                          .test = isnan(s->test_rmse) ? 0 : s->test_rmse}));
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_als(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *R, const kiln_als_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct als s = {.R = R, .test_rmse = NAN};
    kiln_als_options *o = &s.options;
    kiln_report *const own = &s.run.report;
    TRY(KI_RUN_OPEN(&s.run, als, o, options, report));
    TRY(als_check(A, B, R, o));
    s.any_solver = o->solver == 0;
    ki_als_fill(o, kiln_matrix_type(R));
    ki_run_on(&s.run, R, o->tolerance, o->max_iterations);
    const kiln_als_options wanted = *o; /* for checkpoints: what the data decide is 0 still */
    TRY(als_begin(&s, A, B));
    TRY(ki_run_begin(&s.run, (struct ki_described){.options = &wanted,
                                                   .seed = o->seed,
                                                   .given = {{"the entries held out", o->test}}}));
    TRY(als_iterate(&s));
    ki_report_figure(own, "mean", s.mean);
    const double entries = (double)kiln_matrix_nnz(R);
    ki_report_setbacks(own, 1, 0, kiln_matrix_type(R),
                       o->implicit ? 0 : s.spread.squares + pow(s.spread.mean, 2) * entries, 0);
    TRY(ki_factor_figures(own, o->l2, s.A, s.B, kiln_matrix_cols(A) - (o->biases != 0),
                          s.spread.squares + pow(s.spread.mean - s.mean, 2) * entries));
    if (o->test && !o->implicit) ki_report_figure(own, "test_rmse", s.test_rmse);
    TRY(ki_copy(A, s.A));
    TRY(ki_copy(B, s.B));
done:
    return ki_run_close(&s.run, status);
}
