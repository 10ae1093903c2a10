/* Q = X / (A B^T) at X's entries. A <- A (Q B + shape - 1) / (column sums of B + rate), B <- B (Q^T A) /
 * (column sums of A): one fused sampled product each, which also adds up x log l, so that the objective
 * costs no pass of its own.
 *
 * An iteration begins with the objective of what the last one left, and ends the run before it changes
 * anything: what is returned is what was measured. */
#include "algorithms/topics/gap.h"

#include "algorithms/checkpoint/checkpoint.h"

enum { STREAM_A = 0x9a9, STREAM_B };

struct gap {
    const kiln_matrix *X;
    kiln_matrix *A, *B, *Y, *Z, *rows, *words; /* own copies; Q B and Q^T A; ones, m x 1 and n x 1 */
    double *sum_A, *sum_B, *a, *b;             /* k each */
    kiln_gap_options options;
    double total, entropy, factorials; /* sums of x, of x log x - x, of log(x!) */
    double start, objective, likelihood, test_perplexity;
    struct ki_topics_test test;
    kiln_report report;
};

/* ------------------------------------------------------------------------------------------- checks */

static kiln_status check_init(const kiln_gap_options *o, const kiln_matrix *X, int64_t k) {
    const int64_t least = ki_min(kiln_matrix_rows(X), kiln_matrix_cols(X));
    if (o->init < 0 || o->init > KILN_GAP_NNDSVDA)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_gap: no start has the number %d", o->init);
    if (o->init > KILN_GAP_RANDOM && !o->warm_start && k > least)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_gap: X has %lld singular vectors, but %lld topics are wanted",
                       (long long)least, (long long)k);
    if (o->init == KILN_GAP_NNDSVD && o->prior != KILN_GAP_NO_PRIOR) {
        ki_fail(KILN_ERR_ARGUMENT, "kiln_gap: init NNDSVD has zeros, where the prior has no density");
        return ki_hint("KILN_GAP_NNDSVDA has none, and KILN_GAP_NO_PRIOR allows them");
    }
    return KILN_OK;
}

static kiln_status check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *X,
                         const kiln_gap_options *o) {
    static const char call[] = "kiln_gap";
    kiln_status status;
    TRY(ki_topics_check(call, A, B, X, o->test));
    if (o->prior < 0 || o->prior > KILN_GAP_NO_PRIOR)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no prior has the number %d", call, o->prior);
    if (!(o->shape == 0 || o->shape >= 1) || isinf(o->shape))
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.shape is %g, but must be a finite number of 1 or more",
                       call, o->shape);
    if (!(o->rate >= 0) || isinf(o->rate))
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.rate is %g, but must be a finite number of 0 or more",
                       call, o->rate);
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
    TRY(check_init(o, X, kiln_matrix_cols(A)));
done:
    return status;
}

/* ----------------------------------------------------------------------------------------- the start */

static kiln_status take_entries(struct gap *s) {
    double sums[KI_TOPICS_SUMS];
    kiln_status status;
    TRY(ki_topics_counts("kiln_gap", sums, KI_TOPICS_SUMS, s->X));
    s->total = sums[KI_TOPICS_WORDS];
    s->entropy = sums[KI_TOPICS_ENTROPY];
    s->factorials = sums[KI_TOPICS_FACTORIALS];
done:
    return status;
}

/* scale (u + 0.1) for uniform u: no zeros, which would stay. */
static kiln_status fill_random(kiln_matrix *A, const struct gap *s, const kiln_matrix *ones, uint64_t stream,
                               double scale) {
    kiln_status status;
    const int64_t k = kiln_matrix_cols(A);
    for (int64_t c = 0; c < k; c++) s->a[c] = scale, s->b[c] = 0.1 * scale;
    TRY(kiln_fill_random(A, KILN_UNIFORM, (uint64_t)s->options.seed, stream));
    TRY(kiln_combine(A, s->a, A, s->b, ones));
done:
    return status;
}

/* Means of the size of X's. */
static kiln_status random_start(struct gap *s) {
    const double cells = (double)kiln_matrix_rows(s->X) * (double)kiln_matrix_cols(s->X);
    const double scale = sqrt(s->total / cells / (double)kiln_matrix_cols(s->A)) / 0.6;
    kiln_status status;
    TRY(fill_random(s->A, s, s->rows, STREAM_A, scale));
    TRY(fill_random(s->B, s, s->words, STREAM_B, scale));
done:
    return status;
}

/* NNDSVD's zeros would stay: NNDSVDA has X's mean there. */
static kiln_status singular_start(struct gap *s) {
    const double cells = (double)kiln_matrix_rows(s->X) * (double)kiln_matrix_cols(s->X);
    return ki_gap_start(s->A, s->B, s->X, s->options.seed,
                        s->options.init == KILN_GAP_NNDSVDA ? s->total / cells : 0);
}

static kiln_status copy_start(struct gap *s, const kiln_matrix *A, const kiln_matrix *B) {
    kiln_status status;
    TRY(ki_check_finite("kiln_gap", "A", A, true));
    TRY(ki_check_finite("kiln_gap", "B", B, true));
    TRY(ki_copy(s->A, A));
    TRY(ki_copy(s->B, B));
done:
    return status;
}

/* Under the prior a topic's B sums to 1: what it summed to goes to A, which leaves A B^T as it is. */
static kiln_status normalise(struct gap *s) {
    kiln_status status;
    TRY(ki_topics_sums(s->sum_B, s->B, s->words));
    TRY(ki_topics_scale(s->A, s->sum_B, s->A));
    for (int64_t c = 0; c < kiln_matrix_cols(s->B); c++) s->b[c] = s->sum_B[c] > 0 ? 1 / s->sum_B[c] : 0;
    TRY(ki_topics_scale(s->B, s->b, s->B));
done:
    return status;
}

static kiln_status allocate(struct gap *s, int64_t k) {
    kiln_device *device = kiln_matrix_device(s->X);
    const kiln_type type = kiln_matrix_type(s->X);
    const int64_t m = kiln_matrix_rows(s->X), n = kiln_matrix_cols(s->X);
    double **const lists[] = {&s->sum_A, &s->sum_B, &s->a, &s->b};
    kiln_status status;
    TRY(kiln_matrix_dense(&s->A, device, type, m, k, NULL));
    TRY(kiln_matrix_dense(&s->B, device, type, n, k, NULL));
    TRY(kiln_matrix_dense(&s->Y, device, type, m, k, NULL));
    TRY(kiln_matrix_dense(&s->Z, device, type, n, k, NULL));
    TRY(ki_topics_ones(&s->rows, s->X, m));
    TRY(ki_topics_ones(&s->words, s->X, n));
    for (int i = 0; i < 4; i++)
        if (!(*lists[i] = ki_alloc((size_t)k * sizeof(double))))
            TRY(ki_fail_nomem((size_t)k * sizeof(double), "the topics' sums"));
done:
    return status;
}

static kiln_status begin(struct gap *s, const kiln_matrix *A, const kiln_matrix *B) {
    kiln_status status;
    TRY(take_entries(s));
    TRY(allocate(s, kiln_matrix_cols(A)));
    if (s->options.test) TRY(ki_topics_begin(&s->test, "kiln_gap", s->options.test, kiln_matrix_cols(A)));
    TRY(s->options.warm_start                ? copy_start(s, A, B)
        : s->options.init == KILN_GAP_RANDOM ? random_start(s)
                                             : singular_start(s));
    if (s->options.prior == KILN_GAP_GAMMA) TRY(normalise(s));
done:
    return status;
}

/* --------------------------------------------------------------------------------------- an iteration */

/* sum of (shape - 1) log a; Z's columns are free. */
static kiln_status log_prior(double *sum, struct gap *s) {
    kiln_status status = KILN_OK;
    *sum = 0;
    if (s->options.shape == 1) return KILN_OK;
    TRY(kiln_map(s->Y, KILN_MAP_LOG, s->A));
    TRY(ki_topics_sums(s->a, s->Y, s->rows));
    for (int64_t c = 0; c < kiln_matrix_cols(s->A); c++) *sum += (s->options.shape - 1) * s->a[c];
done:
    return status;
}

/* The objective at A and B; leaves Q B in Y, and the column sums. */
static kiln_status measure(struct gap *s) {
    const kiln_sample sample = {.kind = KILN_SAMPLE_QUOTIENT, .S = s->X, .A = s->A, .B = s->B};
    kiln_status status;
    double fit, prior, means = 0, size = 0;
    TRY(log_prior(&prior, s));
    TRY(kiln_sddmm_multiply(s->Y, &fit, 1, KILN_PLAIN, &sample, 0, NULL));
    TRY(ki_topics_sums(s->sum_A, s->A, s->rows));
    TRY(ki_topics_sums(s->sum_B, s->B, s->words));
    for (int64_t c = 0; c < kiln_matrix_cols(s->A); c++) {
        means += s->sum_A[c] * s->sum_B[c];
        size += s->sum_A[c];
    }
    s->likelihood = fit - means - s->factorials;
    s->objective = s->entropy - fit + means + s->options.rate * size - prior;
    if (!isfinite(s->objective)) {
        ki_fail(KILN_ERR_DATA, "kiln_gap: the objective overflows %s",
                kiln_matrix_type(s->X) == KILN_F32 ? "f32" : "f64");
        TRY(ki_hint("scale the entries of X"));
    }
    if (s->options.test) TRY(ki_topics_perplexity(&s->test_perplexity, &s->test, s->A, s->B, true));
done:
    return status;
}

kiln_status ki_gap_update(kiln_matrix *A, kiln_matrix *Y, const struct ki_gap_rows *rows) {
    kiln_status status;
    for (int64_t c = 0; c < kiln_matrix_cols(A); c++) {
        const double under = rows->sums[c] + rows->rate;
        rows->a[c] = under > 0 ? 1 / under : 0;
        rows->b[c] = rows->a[c] * (rows->shape - 1);
    }
    TRY(kiln_times(Y, A, Y));
    TRY(kiln_combine(A, rows->a, Y, rows->b, rows->ones));
done:
    return status;
}

/* B from the A that is new; under the prior what it is divided by is its own sum. */
static kiln_status update_words(struct gap *s) {
    const kiln_sample sample = {.kind = KILN_SAMPLE_QUOTIENT, .S = s->X, .A = s->A, .B = s->B};
    const bool unit = s->options.prior == KILN_GAP_GAMMA;
    kiln_status status;
    TRY(kiln_sddmm_multiply(s->Z, NULL, 1, KILN_TRANSPOSED, &sample, 0, NULL));
    TRY(kiln_times(s->B, s->B, s->Z));
    TRY(unit ? ki_topics_sums(s->a, s->B, s->words) : ki_topics_sums(s->a, s->A, s->rows));
    for (int64_t c = 0; c < kiln_matrix_cols(s->B); c++) s->a[c] = s->a[c] > 0 ? 1 / s->a[c] : 0;
    TRY(ki_topics_scale(s->B, s->a, s->B));
done:
    return status;
}

/* Records the state that `before` became, and whether to stop at it. */
static kiln_status record(struct gap *s, double before) {
    kiln_report *report = &s->report;
    const kiln_trace_row row = {.iteration = report->iterations,
                                .objective = s->objective,
                                .residual = fmax(before - s->objective, 0) / fmax(fabs(before), DBL_MIN),
                                .seconds = ki_clock() - s->start,
                                .test = s->options.test ? s->test_perplexity : 0};
    if (row.iteration == 0) return ki_report_row(report, &row);
    return ki_report_step(report, &row, s->options.tolerance, s->options.max_iterations, &s->options.control,
                          2 * ki_bytes_of(s->X) * row.iteration);
}

/* A and B, and what was measured of them. */
enum { STATE = 8 };
static void state_of(struct ki_state state[STATE], struct gap *s) {
    const int64_t k = kiln_matrix_cols(s->A);
    const struct ki_state parts[STATE] = {{"A", .matrix = s->A},
                                          {"B", .matrix = s->B},
                                          {"Q B", .matrix = s->Y},
                                          {"sums A", .reals = s->sum_A, .count = k},
                                          {"sums B", .reals = s->sum_B, .count = k},
                                          {"objective", .reals = &s->objective},
                                          {"likelihood", .reals = &s->likelihood},
                                          {"test", .reals = &s->test_perplexity}};
    memcpy(state, parts, sizeof parts);
}

static kiln_status iterate(struct gap *s) {
    kiln_report *report = &s->report;
    struct ki_state state[STATE];
    bool measured;
    kiln_status status;
    state_of(state, s);
    TRY(ki_checkpoint_resume(&measured, &s->options.control, state, STATE));
    for (;; report->iterations++, measured = false) {
        const double before = s->objective;
        if (!measured) {
            TRY(measure(s));
            TRY(record(s, before));
            TRY(ki_checkpoint_step(&s->options.control, state, STATE, report->stopped_by));
        }
        if (report->stopped_by != KILN_STOP_NONE) break;
        TRY(ki_gap_update(s->A, s->Y,
                          &(struct ki_gap_rows){.shape = s->options.shape,
                                                .rate = s->options.rate,
                                                .sums = s->sum_B,
                                                .a = s->a,
                                                .b = s->b,
                                                .ones = s->rows}));
        TRY(update_words(s));
    }
    report->objective = s->objective;
    report->converged = report->stopped_by == KILN_STOP_TOLERANCE;
    report->passes = 2 * report->iterations + 1;
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- the whole */

static void free_gap(struct gap *s) {
    kiln_matrix *const all[] = {s->A, s->B, s->Y, s->Z, s->rows, s->words};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
    ki_free(s->sum_A);
    ki_free(s->sum_B);
    ki_free(s->a);
    ki_free(s->b);
    ki_topics_free(&s->test);
    kiln_report_free(&s->report);
}

kiln_status kiln_gap(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, const kiln_gap_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct gap s = {.X = X, .start = ki_clock(), .test_perplexity = NAN};
    TRY(KI_TAKE(kiln_gap_options, &s.options, options));
    TRY(ki_options_check(&s.options, &ki_algorithm_gap));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    TRY(check(A, B, X, &s.options));
    ki_gap_fill(&s.options, kiln_matrix_type(X));
    s.report.tolerance = s.options.tolerance;
    TRY(ki_report_begin(&s.report));
    TRY(begin(&s, A, B));
    TRY(ki_checkpoint_begin(&(struct ki_run){.control = &s.options.control,
                                             .algorithm = "gap",
                                             .options = &s.options,
                                             .seed = s.options.seed,
                                             .X = X,
                                             .given = {{"the entries held out", s.options.test}},
                                             .report = &s.report,
                                             .start = &s.start,
                                             .most = s.options.max_iterations}));
    TRY(iterate(&s));
    TRY(ki_copy(A, s.A));
    TRY(ki_copy(B, s.B));
    ki_report_figure(&s.report, "log_likelihood", s.likelihood);
    ki_report_setbacks(&s.report, 1, 0, kiln_matrix_type(X));
    if (s.options.test) ki_report_figure(&s.report, "test_perplexity", s.test_perplexity);
    s.report.seconds = ki_clock() - s.start;
    ki_report_hand_over(report, &s.report);
done:
    free_gap(&s);
    return status;
}
