/* A's rows from B, B's rows from A, and again: each half is a least-squares problem for every row, which
 * kiln_factor_solve solves, so that the objective never rises.
 *
 * The halves differ in the matrix alone: R for the rows, its transpose for the columns. Between sweeps each
 * factor's two columns are made equally long (balance), which leaves the products and lowers the penalty:
 * the halves alone would take hundreds of sweeps. */
#include "algorithms/factor/als.h"

#include "algorithms/run/checkpoint.h"
#include "algorithms/factor/balance.h"
#include "algorithms/factor/ccd.h"
#include "algorithms/factor/entries.h"

enum { STREAM = 0xa15 };
#define COUNTED 0.1 /* a row's penalty for each of its entries, in their deviation */

struct als {
    const kiln_matrix *R;
    kiln_matrix *transposed;
    kiln_matrix *A, *B, *gram;  /* own copies; gram NULL if explicit */
    const kiln_matrix *gram_of; /* which of them it is of; NULL: of neither as they are now */
    struct ki_ccd ccd;          /* of the solver CCD */
    struct ki_counts counts;    /* of the entries: what `counted` multiplies penalties by */
    struct ki_balance balance;
    kiln_als_options options;
    struct ki_spread spread; /* of R's entries; an implicit model's wanted values are 0 and 1 */
    double mean, start, objective, test_rmse;
    bool fresh; /* B is what was drawn: without a penalty nothing else takes that out of a solution */
    kiln_report report;
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

kiln_status ki_check_test(const char *call, const kiln_matrix *R, const kiln_matrix *test) {
    if (!test ||
        (kiln_matrix_format(test) == KILN_CSR && kiln_matrix_rows(test) == kiln_matrix_rows(R) &&
         kiln_matrix_cols(test) == kiln_matrix_cols(R) && kiln_matrix_device(test) == kiln_matrix_device(R) &&
         kiln_matrix_type(test) == kiln_matrix_type(R)))
        return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: the entries held out (%s_options.test) must be sparse and as R is",
                   call, call);
}

static kiln_status check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *R,
                         const kiln_als_options *o) {
    static const char call[] = "kiln_als";
    kiln_status status;
    if (!A || !B || !R) return ki_fail(KILN_ERR_ARGUMENT, "%s: A, B and R must not be NULL", call);
    if (A == B) return ki_fail(KILN_ERR_ARGUMENT, "%s: A and B are one matrix", call);
    if (kiln_matrix_format(R) != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: R must be sparse", call);
    TRY(check_options(o));
    TRY(ki_check_matrix(call, "A", A, R, kiln_matrix_rows(R), kiln_matrix_cols(A)));
    TRY(ki_check_matrix(call, "B", B, R, kiln_matrix_cols(R), kiln_matrix_cols(A)));
    if (kiln_matrix_cols(A) < (o->biases ? 2 : 1) || kiln_matrix_cols(A) > 512)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld factors, but 1 to %d are possible", call,
                       (long long)kiln_matrix_cols(A) - (o->biases != 0), 512 - (o->biases != 0));
    TRY(ki_check_test(call, R, o->test));
    if (kiln_matrix_nnz(R) == 0) return ki_fail(KILN_ERR_DATA, "%s: R has no entries", call);
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ the start */

/* A is 0, and B random with products well below what the entries have beside their mean, its biases 0. B is
 * of one sign, as what its first factor has to say mostly is: rows and columns whose random signs differ
 * could never meet. */
static kiln_status random_start(struct als *s) {
    const int64_t n = kiln_matrix_cols(s->B);
    double *scale = ki_alloc((size_t)n * sizeof *scale);
    kiln_status status = KILN_OK;
    if (!scale) return ki_fail_nomem((size_t)n * sizeof *scale, "the start");
    for (int64_t j = 0; j < n; j++) scale[j] = 0.1 * sqrt(s->spread.deviation);
    if (s->options.biases) scale[n - 1] = 0;
    TRY(kiln_fill_random(s->B, KILN_NORMAL, (uint64_t)s->options.seed, STREAM));
    TRY(kiln_map(s->B, KILN_MAP_ABS, s->B));
    TRY(kiln_combine(s->B, scale, s->B, NULL, NULL));
done:
    ki_free(scale);
    return status;
}

/* Finds what the entries say before training: transposed, what they are like, and the penalty that stands
 * for 0. */
static kiln_status look(struct als *s) {
    kiln_als_options *o = &s->options;
    const int64_t nnz = kiln_matrix_nnz(s->R);
    double sum;
    kiln_status status;
    TRY(ki_entries_take(&s->transposed, &sum, "kiln_als", s->R));
    if (o->implicit)
        s->spread = (struct ki_spread){.squares = (double)nnz, .deviation = 1};
    else
        TRY(ki_spread_take(&s->spread, s->R, sum));
    if (o->biases) s->mean = s->spread.mean;
    TRY(ki_counts_take(&s->counts, s->R));
    if (!ki_option_stands(o, &ki_algorithm_als, "l2"))
        o->l2 = o->counted ? COUNTED * s->spread.deviation
                           : ki_factor_penalty(&s->counts, nnz, s->spread.deviation);
done:
    return status;
}

static kiln_status begin(struct als *s, const kiln_matrix *A, const kiln_matrix *B) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(s->R);
    const kiln_type type = kiln_matrix_type(s->R);
    const int64_t n = kiln_matrix_cols(A);
    TRY(look(s));
    TRY(ki_balance_begin(&s->balance, s->options.counted ? &s->counts : NULL, A, B));
    if (s->options.implicit) TRY(kiln_matrix_dense(&s->gram, device, type, n, n, NULL));
    if (s->options.warm_start) {
        TRY(ki_check_finite("kiln_als", "A", A, false));
        TRY(ki_check_finite("kiln_als", "B", B, false));
        TRY(kiln_matrix_copy(&s->A, device, type, A));
        TRY(kiln_matrix_copy(&s->B, device, type, B));
    } else {
        TRY(kiln_matrix_dense(&s->A, device, type, kiln_matrix_rows(A), n, NULL));
        TRY(kiln_matrix_dense(&s->B, device, type, kiln_matrix_rows(B), n, NULL));
        TRY(random_start(s));
    }
    s->ccd = (struct ki_ccd){.l2 = s->options.l2,
                             .counted = s->options.counted,
                             .biases = s->options.biases,
                             .steps = s->options.steps};
    if (s->options.solver == KILN_FACTOR_CCD)
        TRY(ki_ccd_begin(&s->ccd, s->R, s->transposed, s->mean, s->A, s->B));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------- a sweep */

/* The problem of one side's rows, given the other side's factors. */
static kiln_status problem(kiln_factor_rows *rows, struct als *s, const kiln_matrix *R,
                           const kiln_matrix *other) {
    const kiln_als_options *o = &s->options;
    *rows = (kiln_factor_rows){.R = R,
                               .B = other,
                               .gram = s->gram,
                               .mean = s->mean,
                               .l2 = o->l2,
                               .alpha = o->alpha,
                               .biases = o->biases,
                               .counted = o->counted,
                               .solver = o->solver == KILN_FACTOR_CG ? KILN_FACTOR_CG : KILN_FACTOR_CHOLESKY,
                               .steps = o->steps};
    if (!s->gram || s->gram_of == other) return KILN_OK;
    s->gram_of = other;
    return kiln_gram(s->gram, NULL, other, NULL, NULL);
}

static kiln_status measure(struct als *s) {
    kiln_status status;
    kiln_factor_rows rows;
    double fit, penalty, error;
    const kiln_factor_rows columns = {
        .R = s->transposed, .B = s->A, .l2 = s->options.l2, .counted = s->options.counted};
    TRY(kiln_factor_loss(&penalty, &columns, s->B, KILN_FACTOR_PENALTY));
    TRY(problem(&rows, s, s->R, s->B));
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

static kiln_status sweep(struct als *s) {
    kiln_status status;
    kiln_factor_rows rows;
    bool changed;
    if (s->ccd.E) {
        TRY(ki_ccd_sweep(&s->ccd, s->A, s->B));
    } else {
        TRY(problem(&rows, s, s->R, s->B));
        TRY(kiln_factor_solve(s->A, &rows));
        TRY(problem(&rows, s, s->transposed, s->A));
        if (s->fresh && rows.l2 == 0 && rows.solver == KILN_FACTOR_CHOLESKY) TRY(kiln_fill(s->B, 0));
        s->fresh = false;
        TRY(kiln_factor_solve(s->B, &rows));
    }
    TRY(ki_balance_run(&changed, &s->balance, s->A, s->B, kiln_matrix_cols(s->A) - (s->options.biases != 0)));
    if (changed) s->gram_of = NULL;
    TRY(measure(s));
done:
    return status;
}

enum { STATE = 6 };
static void state_of(struct ki_state state[STATE], struct als *s) {
    const struct ki_state parts[STATE] = {{"A", .matrix = &s->A},
                                          {"B", .matrix = &s->B},
                                          {"objective", .reals = &s->objective},
                                          {"test", .reals = &s->test_rmse},
                                          {"residuals by rows", .matrix = &s->ccd.E},
                                          {"residuals by columns", .matrix = &s->ccd.T}};
    memcpy(state, parts, sizeof parts);
}

/* The start, or where a checkpoint goes on. */
static kiln_status enter(struct als *s) {
    kiln_status status;
    struct ki_state state[STATE];
    bool resumed;
    state_of(state, s);
    TRY(ki_checkpoint_resume(&resumed, &s->options.control, state, STATE));
    s->fresh = !resumed && !s->options.warm_start;
    if (!resumed) return measure(s);
done:
    return status;
}

static kiln_status iterate(struct als *s) {
    kiln_report *report = &s->report;
    struct ki_state state[STATE];
    kiln_status status;
    TRY(enter(s));
    while (report->stopped_by == KILN_STOP_NONE) {
        const double before = s->objective;
        TRY(sweep(s));
        kiln_trace_row row = {.iteration = ++report->iterations,
                              .objective = s->objective,
                              .residual = fmax(before - s->objective, 0) / fmax(before, DBL_MIN),
                              .seconds = ki_clock() - s->start,
                              .test = isnan(s->test_rmse) ? 0 : s->test_rmse};
        TRY(ki_report_step(report, &row, s->options.tolerance, s->options.max_iterations, &s->options.control,
                           2 * ki_bytes_of(s->R) * row.iteration));
        state_of(state, s);
        TRY(ki_checkpoint_step(&s->options.control, state, STATE, report->stopped_by));
    }
    report->converged = report->stopped_by == KILN_STOP_TOLERANCE;
    report->passes = 4 * report->iterations + 2;
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_als(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *R, const kiln_als_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct als s = {.R = R, .start = ki_clock(), .test_rmse = NAN};
    TRY(KI_TAKE(kiln_als_options, &s.options, options));
    TRY(ki_options_check(&s.options, &ki_algorithm_als));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    TRY(check(A, B, R, &s.options));
    ki_als_fill(&s.options, kiln_matrix_type(R));
    s.report.tolerance = s.options.tolerance;
    TRY(ki_report_begin(&s.report));
    const kiln_als_options wanted = s.options; /* for checkpoints: what the data decide is 0 still */
    TRY(begin(&s, A, B));
    TRY(ki_checkpoint_begin(&(struct ki_described){.control = &s.options.control,
                                                   .algorithm = "als",
                                                   .options = &wanted,
                                                   .seed = s.options.seed,
                                                   .X = R,
                                                   .given = {{"the entries held out", s.options.test}},
                                                   .report = &s.report,
                                                   .start = &s.start,
                                                   .most = s.options.max_iterations}));
    TRY(iterate(&s));
    ki_report_figure(&s.report, "mean", s.mean);
    ki_report_setbacks(&s.report, 1, 0, kiln_matrix_type(R));
    TRY(ki_factor_figures(&s.report, s.options.l2, s.A, s.B, kiln_matrix_cols(A) - (s.options.biases != 0),
                          s.spread.squares + pow(s.spread.mean - s.mean, 2) * (double)kiln_matrix_nnz(R)));
    if (s.options.test && !s.options.implicit) ki_report_figure(&s.report, "test_rmse", s.test_rmse);
    TRY(ki_copy(A, s.A));
    TRY(ki_copy(B, s.B));
    s.report.seconds = ki_clock() - s.start;
    ki_report_hand_over(report, &s.report);
done:
    kiln_report_free(&s.report);
    kiln_matrix_free(s.transposed);
    kiln_matrix_free(s.A);
    kiln_matrix_free(s.B);
    kiln_matrix_free(s.gram);
    ki_ccd_free(&s.ccd);
    ki_counts_free(&s.counts);
    ki_balance_free(&s.balance);
    return status;
}
