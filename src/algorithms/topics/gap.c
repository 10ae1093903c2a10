/* Q = X / (A B^T) at X's entries. A <- A (Q B + shape - 1) / (column sums of B + rate), B <- B (Q^T A) /
 * (column sums of A): one fused sampled product each, which also adds up x log l, so that the objective
 * costs no pass of its own.
 *
 * An iteration begins with the objective of what the last one left, and ends the run before it changes
 * anything: what is returned is what was measured.
 *
 * Steps that multiply hardly move an entry near 0, however much there is to gain by it: an iteration that
 * gains little ends the run only if the conditions of Karush, Kuhn and Tucker hold (gap_gain.c). Otherwise
 * entries that have to grow are lifted in each step from then on (after C.-J. Lin, "On the convergence of
 * multiplicative update algorithms for nonnegative matrix factorization", IEEE TNN 2007). */
#include "algorithms/topics/gap.h"

#define LIFT 0.1 /* of what a row has in all, in an entry that has to grow beyond all bounds */

struct gap {
    struct ki_run run;
    const kiln_matrix *X;
    kiln_matrix *A, *B, *Y, *Z, *rows, *words;      /* own copies; Q B and Q^T A; ones, m x 1 and n x 1 */
    double *sum_A, *sum_B, *a, *b, *under, *weight; /* k each */
    kiln_gap_options options;
    double total, entropy, factorials; /* sums of x, of x log x - x, of log(x!) */
    double objective, likelihood, test_perplexity;
    struct ki_gap_side documents, topics;
    double lift; /* the part by which entries that have to grow are lifted; 0: by none so far */
    double gain; /* what an exact solution of either side would take off the objective, at most; or NaN */
    struct ki_topics_test test;
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
        ki_fail(KILN_ERR_ARGUMENT, "kiln_gap: init nndsvd has zeros, where the prior has no density");
        return ki_hint("init nndsvda has none, and they are allowed without a prior");
    }
    return KILN_OK;
}

static kiln_status gap_check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *X,
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
    TRY(fill_random(s->A, s, s->rows, KI_STREAM_GAP_A, scale));
    TRY(fill_random(s->B, s, s->words, KI_STREAM_GAP_B, scale));
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

/* Makes what the two sides' gains are measured with. */
static void sides(struct gap *s, int64_t n, int64_t k) {
    struct ki_run *run = &s->run;
    kiln_matrix *const ones = ki_arena_fill(&run->arena, ki_run_model(run, k, 1), 1);
    s->documents = (struct ki_gap_side){.F = s->A,
                                        .Y = s->Y,
                                        .V = ki_run_rows(run, s->X, k),
                                        .before = ki_run_rows(run, s->X, k),
                                        .totals = ki_run_rows(run, s->X, 1),
                                        .rows = s->rows,
                                        .topics = ones,
                                        .a = s->a,
                                        .b = s->b,
                                        .shape = s->options.shape};
    s->topics = s->documents;
    s->topics.F = s->B;
    s->topics.Y = s->Z;
    s->topics.V = ki_run_model(run, n, k);
    s->topics.before = ki_run_model(run, n, k);
    s->topics.totals = ki_run_model(run, n, 1);
    s->topics.rows = s->words;
    s->topics.shape = 1;
}

/* Sums of X's rows and columns, as the quotient by means of 1 has them in every column. */
static kiln_status take_totals(struct gap *s) {
    const kiln_sample sample = {.kind = KILN_SAMPLE_QUOTIENT, .S = s->X, .A = s->A, .B = s->B};
    const double k = (double)kiln_matrix_cols(s->A), prior = k * (s->options.shape - 1), one = 1;
    kiln_matrix *const documents = s->documents.totals, *const words = s->topics.totals;
    kiln_status status;
    TRY(kiln_fill(s->A, 1 / k));
    TRY(kiln_fill(s->B, 1));
    TRY(kiln_sddmm_multiply(s->Y, NULL, 1, KILN_PLAIN, &sample, 0, NULL));
    TRY(kiln_sddmm_multiply(s->Z, NULL, 1, KILN_TRANSPOSED, &sample, 0, NULL));
    TRY(kiln_multiply(documents, 1 / k, KILN_PLAIN, s->Y, s->documents.topics, 0, NULL));
    TRY(kiln_multiply(words, 1, KILN_PLAIN, s->Z, s->topics.topics, 0, NULL));
    TRY(kiln_combine(documents, &one, documents, &prior, s->rows));
    s->run.report.passes += 2;
done:
    return status;
}

static kiln_status gap_begin(struct gap *s, const kiln_matrix *A, const kiln_matrix *B) {
    const kiln_gap_options *o = &s->options;
    const int64_t n = kiln_matrix_cols(s->X), k = kiln_matrix_cols(A);
    struct ki_run *run = &s->run;
    kiln_status status;
    TRY(take_entries(s));
    s->A = ki_run_rows(run, s->X, k);
    s->Y = ki_run_rows(run, s->X, k);
    s->B = ki_run_model(run, n, k);
    s->Z = ki_run_model(run, n, k);
    s->rows = ki_arena_fill(&run->arena, ki_run_rows(run, s->X, 1), 1);
    s->words = ki_arena_fill(&run->arena, ki_run_model(run, n, 1), 1);
    s->sum_A = ki_run_reals(run, k);
    s->sum_B = ki_run_reals(run, k);
    s->a = ki_run_reals(run, k);
    s->b = ki_run_reals(run, k);
    s->under = ki_run_reals(run, k);
    s->weight = ki_run_reals(run, k);
    sides(s, n, k);
    TRY(run->arena.status);
    TRY(take_totals(s));
    if (o->test) TRY(ki_topics_begin(&s->test, &run->arena, "kiln_gap", o->test, k));
    TRY(o->warm_start                ? copy_start(s, A, B)
        : o->init == KILN_GAP_RANDOM ? random_start(s)
                                     : singular_start(s));
    if (o->prior == KILN_GAP_GAMMA) TRY(normalise(s));
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
static kiln_status gap_measure(struct gap *s) {
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
    s->run.report.passes++;
done:
    return status;
}

/* The documents' entries are divided by these. */
static const double *under_documents(struct gap *s) {
    for (int64_t c = 0; c < kiln_matrix_cols(s->A); c++) s->under[c] = s->sum_B[c] + s->options.rate;
    return s->under;
}

/* Given Q^T A in Z the words' entries are divided by the sum of what they become under the prior. */
static kiln_status under_words(struct gap *s) {
    kiln_status status;
    TRY(s->options.prior == KILN_GAP_GAMMA ? kiln_dot(s->under, s->B, s->Z)
                                           : ki_topics_sums(s->under, s->A, s->rows));
done:
    return status;
}

static kiln_status quotient_of_words(struct gap *s) {
    const kiln_sample sample = {.kind = KILN_SAMPLE_QUOTIENT, .S = s->X, .A = s->A, .B = s->B};
    s->run.report.passes++;
    return kiln_sddmm_multiply(s->Z, NULL, 1, KILN_TRANSPOSED, &sample, 0, NULL);
}

/* A from B, whose sums and Q B the last measurement has left. */
static kiln_status update_documents(struct gap *s) {
    kiln_status status;
    TRY(ki_gap_product(&s->documents, under_documents(s), s->lift, NULL));
    TRY(ki_gap_divide(&s->documents, s->under));
done:
    return status;
}

/* B from the A that is new; under the prior what it is divided by is its own sum, and each topic's words are
 * lifted by their parts of it. */
static kiln_status update_words(struct gap *s) {
    const bool unit = s->options.prior == KILN_GAP_GAMMA;
    kiln_status status;
    TRY(quotient_of_words(s));
    if (s->lift > 0 || !unit) TRY(under_words(s));
    for (int64_t c = 0; c < kiln_matrix_cols(s->B); c++) s->weight[c] = unit ? s->under[c] / s->total : 1;
    TRY(ki_gap_product(&s->topics, s->under, s->lift, s->weight));
    if (unit) TRY(ki_topics_sums(s->under, s->Z, s->words));
    TRY(ki_gap_divide(&s->topics, s->under));
done:
    return status;
}

/* An iteration. One that was lifted too far is taken back, and made again without that. */
static kiln_status gap_step(struct gap *s) {
    const double before = s->objective;
    kiln_status status;
    TRY(update_documents(s));
    TRY(update_words(s));
    TRY(gap_measure(s));
    if (s->lift == 0 || s->objective <= before) goto done;
    TRY(ki_copy(s->A, s->documents.before));
    TRY(ki_copy(s->B, s->topics.before));
    TRY(gap_measure(s));
    const double lift = s->lift / 4;
    s->lift = 0;
    status = gap_step(s);
    s->lift = lift;
done:
    return status;
}

/* Finds what there is left to gain, and lifts entries from now on where that is too much. What the type's
 * rounding may have made of it is allowed. */
static kiln_status gap_judge(struct gap *s) {
    enum { DIGITS = 1000 }; /* units, as of setbacks */
    const double rounding = DIGITS * ki_epsilon(kiln_matrix_type(s->X)) * s->total;
    kiln_status status;
    double documents, words;
    TRY(ki_gap_gain(&documents, &s->documents, under_documents(s)));
    TRY(quotient_of_words(s));
    TRY(under_words(s));
    TRY(ki_gap_gain(&words, &s->topics, s->under));
    s->gain = fmax(documents, 0) + fmax(words, 0);
    s->run.unsettled = !(s->gain <= sqrt(s->run.tolerance) * fabs(s->objective) + rounding);
    if (s->run.unsettled && s->lift == 0) s->lift = LIFT;
done:
    return status;
}

/* Returns what the objective, `before` until now, has become. */
static kiln_trace_row gap_row(const struct gap *s, double before) {
    return (kiln_trace_row){.objective = s->objective,
                            .residual = fmax(before - s->objective, 0) / fmax(fabs(before), DBL_MIN),
                            .test = s->options.test ? s->test_perplexity : 0};
}

static kiln_status gap_iterate(struct gap *s) {
    struct ki_run *run = &s->run;
    const int64_t k = kiln_matrix_cols(s->A);
    const struct ki_state state[] = {{"A", .matrix = &s->A},
                                     {"B", .matrix = &s->B},
                                     {"Q B", .matrix = &s->Y},
                                     {"sums A", .reals = s->sum_A, .count = k},
                                     {"sums B", .reals = s->sum_B, .count = k},
                                     {"objective", .reals = &s->objective},
                                     {"likelihood", .reals = &s->likelihood},
                                     {"test", .reals = &s->test_perplexity},
                                     {"lift", .reals = &s->lift},
                                     {"gain", .reals = &s->gain}};
    kiln_trace_row row;
    kiln_status status;
    KI_RUN_STATE(run, state);
    run->gains = true;
    TRY(ki_run_resume(run));
    if (!run->resumed) {
        TRY(gap_measure(s));
        row = gap_row(s, 0);
        TRY(ki_run_row(run, &row));
    }
    while (ki_run_goes_on(run)) {
        const double before = s->objective;
        TRY(gap_step(s));
        row = gap_row(s, before);
        if (row.residual <= run->tolerance) TRY(gap_judge(s));
        TRY(ki_run_step(run, &row));
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_gap(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, const kiln_gap_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct gap s = {.X = X, .gain = NAN, .test_perplexity = NAN};
    kiln_gap_options *o = &s.options;
    TRY(KI_RUN_OPEN(&s.run, gap, o, options, report));
    TRY(gap_check(A, B, X, o));
    ki_gap_fill(o, kiln_matrix_type(X));
    ki_run_on(&s.run, X, o->tolerance, o->max_iterations);
    TRY(gap_begin(&s, A, B));
    TRY(ki_run_begin(
        &s.run,
        (struct ki_described){.options = o, .seed = o->seed, .given = {{"the entries held out", o->test}}}));
    TRY(gap_iterate(&s));
    TRY(ki_copy(A, s.A));
    TRY(ki_copy(B, s.B));
    ki_report_figure(&s.run.report, "log_likelihood", s.likelihood);
    ki_report_figure(&s.run.report, "side_gain", s.gain);
    ki_report_setbacks(&s.run.report, 1, 0, kiln_matrix_type(X), 0, s.total);
    if (o->test) ki_report_figure(&s.run.report, "test_perplexity", s.test_perplexity);
done:
    return ki_run_close(&s.run, status);
}
