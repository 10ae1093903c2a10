/* Variational Bayes: documents' gamma given the topics' lambda by a few fused sampled products (Nisa et al.,
 * equation 3), lambda given gamma by one more, which also has the bound's largest part. All documents take a
 * step at the same time, and begin where they were, so that no step lowers the bound.
 *
 * Documents that begin where they were keep to the topics that they have, which at first are random: after a
 * random start they begin anew for ROUNDS_ANEW rounds, of STEPS_ANEW steps at least. On KOS (20 topics) that
 * ends higher than any number of rounds without it.
 *
 * A round ends with the bound of the gamma and lambda that are there, and ends the run before it changes
 * lambda: what is returned is what was measured. Online, passes over batches of documents stand in the place
 * of lambda's update. */
#include "algorithms/topics/lda.h"

#include "algorithms/checkpoint/checkpoint.h"

enum { STREAM = 0x1da, ROUNDS_ANEW = 5, STEPS_ANEW = 10 };

struct lda {
    const kiln_matrix *X;
    struct ki_lda_documents documents;
    struct ki_lda_topics topics;
    struct ki_lda_batches *batches; /* NULL: all documents at once */
    kiln_lda_options options;
    double *alpha, *work; /* k; 2 k */
    int64_t anew, passes; /* rounds in which documents begin anew; over X, so far */
    double words, start, bound, test_perplexity;
    struct ki_topics_test test;
    kiln_report report;
};

/* ------------------------------------------------------------------------------------------- checks */

static kiln_status check_prior(const char *name, double value) {
    if (value >= 0 && !isinf(value)) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "kiln_lda_options.%s is %g, but must be a finite number above 0", name,
                   value);
}

static kiln_status check_online(const kiln_lda_options *o) {
    if (o->batch < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_lda_options.batch is %lld, but must not be negative",
                       (long long)o->batch);
    if (!(o->delay >= 0) || isinf(o->delay))
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_lda_options.delay is %g, but must be finite and not negative",
                       o->delay);
    if (!(o->decay == 0 || (o->decay > 0.5 && o->decay <= 1)))
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_lda_options.decay is %g, but must be above 0.5 and at most 1",
                       o->decay);
    if (o->batch > 0 && o->learn_alpha) {
        ki_fail(KILN_ERR_ARGUMENT,
                "kiln_lda_options.learn_alpha and kiln_lda_options.batch exclude each other");
        return ki_hint("alpha is learned from all documents: leave out one of the two");
    }
    return KILN_OK;
}

static kiln_status check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *X,
                         const kiln_lda_options *o) {
    static const char call[] = "kiln_lda";
    kiln_status status;
    TRY(ki_topics_check(call, A, B, X, o->test));
    TRY(check_prior("alpha", o->alpha));
    TRY(check_prior("eta", o->eta));
    TRY(check_online(o));
    if (o->alphas) TRY(ki_check_matrix(call, "alphas", o->alphas, X, 1, kiln_matrix_cols(A)));
    if (o->steps < 0) return ki_fail(KILN_ERR_ARGUMENT, "%s: steps is %lld", call, (long long)o->steps);
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
done:
    return status;
}

/* ----------------------------------------------------------------------------------------- the start */

/* lambda about 1, with a standard deviation of 0.1, as Gamma(100, 100) has. */
static kiln_status random_topics(struct lda *s) {
    struct ki_lda_topics *t = &s->topics;
    kiln_status status;
    for (int64_t c = 0; c < kiln_matrix_cols(t->lambda); c++) t->a[c] = 0.1, t->b[c] = 1;
    TRY(kiln_fill_random(t->lambda, KILN_NORMAL, (uint64_t)s->options.seed, STREAM));
    TRY(kiln_combine(t->lambda, t->a, t->lambda, t->b, t->ones));
done:
    return status;
}

static kiln_status check_positive(const char *name, const kiln_matrix *A, const kiln_matrix *like) {
    kiln_status status;
    kiln_matrix *inverse = NULL;
    const int64_t k = kiln_matrix_cols(A);
    double *largest = ki_alloc((size_t)k * sizeof *largest);
    if (!largest) return ki_fail_nomem((size_t)k * sizeof *largest, name);
    TRY(ki_check_finite("kiln_lda", name, A, true));
    TRY(kiln_matrix_dense(&inverse, kiln_matrix_device(like), kiln_matrix_type(like), kiln_matrix_rows(A), k,
                          NULL));
    TRY(kiln_map(inverse, KILN_MAP_LOG, A)); /* NaN or infinite unless A > 0 */
    TRY(kiln_norm(largest, inverse, KILN_NORM_MAX));
    for (int64_t c = 0; c < k; c++)
        if (!isfinite(largest[c]))
            TRY(ki_fail(KILN_ERR_DATA, "kiln_lda: an entry of %s is not above 0", name));
done:
    kiln_matrix_free(inverse);
    ki_free(largest);
    return status;
}

static kiln_status copy_start(struct lda *s, const kiln_matrix *A, const kiln_matrix *B) {
    struct ki_lda_topics *t = &s->topics;
    kiln_status status;
    TRY(check_positive("A", A, s->X));
    TRY(check_positive("B", B, s->X));
    TRY(ki_copy(s->documents.gamma, A));
    TRY(ki_copy(t->lambda, B));
    if (s->options.alphas) {
        TRY(check_positive("alphas", s->options.alphas, s->X));
        TRY(ki_vector_get(s->alpha, s->options.alphas));
    }
    TRY(ki_vector_set(t->alpha, memcpy(s->work, s->alpha, (size_t)kiln_matrix_cols(A) * sizeof(double))));
    TRY(ki_lda_documents_ready(&s->documents, t));
done:
    return status;
}

static kiln_status begin(struct lda *s, const kiln_matrix *A, const kiln_matrix *B) {
    const int64_t k = kiln_matrix_cols(A);
    struct ki_host_entries entries = {0};
    kiln_status status;
    TRY(ki_topics_counts("kiln_lda", &s->words, 1, s->X));
    s->alpha = ki_alloc((size_t)k * sizeof(double));
    s->work = ki_alloc(2 * (size_t)k * sizeof(double));
    if (!s->alpha || !s->work) TRY(ki_fail_nomem(3 * (size_t)k * sizeof(double), "alpha"));
    for (int64_t c = 0; c < k; c++) s->alpha[c] = s->options.alpha;
    TRY(ki_lda_documents_new(&s->documents, s->X, k, s->options.learn_alpha != 0));
    TRY(ki_lda_topics_new(&s->topics, s->X, k, s->options.eta));
    if (s->options.batch > 0) TRY(ki_entries_get(&entries, s->X));
    if (s->options.batch > 0) TRY(ki_lda_batches_new(&s->batches, s->X, &entries, k, &s->options));
    if (s->options.test) TRY(ki_topics_begin(&s->test, "kiln_lda", s->options.test, k));
    if (s->options.warm_start) {
        TRY(copy_start(s, A, B));
    } else {
        TRY(random_topics(s));
        TRY(ki_vector_set(s->topics.alpha, memcpy(s->work, s->alpha, (size_t)k * sizeof(double))));
        TRY(ki_lda_documents_begin(&s->documents, &s->topics, s->alpha));
        s->anew = s->batches ? 0 : ROUNDS_ANEW;
    }
    TRY(ki_lda_topics_ready(&s->topics));
done:
    ki_host_entries_free(&entries);
    return status;
}

/* --------------------------------------------------------------------------------------------- a round */

/* What the documents' prior adds to the bound whatever gamma is. */
static double prior_bound(const struct lda *s) {
    double sum = 0, value = 0;
    for (int64_t c = 0; c < kiln_matrix_cols(s->topics.lambda); c++) {
        sum += s->alpha[c];
        value -= ki_log_gamma(s->alpha[c]);
    }
    return (double)kiln_matrix_rows(s->X) * (value + ki_log_gamma(sum));
}

/* The documents' steps, and the bound of what they lead to; leaves the words' sums in Z. */
static kiln_status measure(struct lda *s) {
    const bool anew = s->report.iterations < s->anew;
    const int64_t steps = anew ? ki_max(s->options.steps, STEPS_ANEW) : s->options.steps;
    kiln_status status;
    double documents, fit;
    if (anew) TRY(ki_lda_documents_begin(&s->documents, &s->topics, s->alpha));
    for (int64_t step = 1; step < steps; step++)
        TRY(ki_lda_documents_step(&s->documents, &s->topics, NULL, NULL));
    TRY(ki_lda_documents_step(&s->documents, &s->topics, &documents, NULL));
    TRY(ki_lda_words(&fit, &s->documents, &s->topics));
    s->passes += steps + 1;
    s->bound = fit + documents + prior_bound(s) + s->topics.bound;
    if (!isfinite(s->bound)) {
        ki_fail(KILN_ERR_DATA, "kiln_lda: the bound overflows %s",
                kiln_matrix_type(s->X) == KILN_F32 ? "f32" : "f64");
        TRY(ki_hint("scale the entries of X"));
    }
    if (s->options.test)
        TRY(ki_topics_perplexity(&s->test_perplexity, &s->test, s->documents.gamma, s->topics.lambda, false));
done:
    return status;
}

static kiln_status learn_alpha(struct lda *s) {
    const int64_t k = kiln_matrix_cols(s->topics.lambda);
    kiln_status status;
    TRY(ki_topics_sums(s->topics.sums, s->documents.logs, s->documents.ones));
    ki_lda_learn_alpha(s->alpha, s->work, k, s->topics.sums, (double)kiln_matrix_rows(s->X));
    TRY(ki_vector_set(s->topics.alpha, memcpy(s->work, s->alpha, (size_t)k * sizeof(double))));
done:
    return status;
}

static kiln_status update(struct lda *s) {
    kiln_status status;
    if (s->batches) return ki_lda_batches_run(s->batches, &s->topics, s->alpha);
    TRY(ki_lda_topics_update(&s->topics, 0, 1, 1));
    TRY(ki_lda_topics_ready(&s->topics));
    if (s->options.learn_alpha) TRY(learn_alpha(s));
done:
    return status;
}

static kiln_status record(struct lda *s, double before) {
    kiln_report *report = &s->report;
    const bool may_fall = s->batches || report->iterations < s->anew;
    const double rise = may_fall ? fabs(s->bound - before) : fmax(s->bound - before, 0);
    const kiln_trace_row row = {.iteration = report->iterations,
                                .objective = s->bound,
                                .residual = rise / fmax(fabs(before), DBL_MIN),
                                .seconds = ki_clock() - s->start,
                                .test = s->options.test ? s->test_perplexity : 0};
    /* A small change of documents that begin anew says nothing: the bound may turn there. */
    const double tolerance = report->iterations < s->anew ? -1 : s->options.tolerance;
    if (row.iteration == 0) return ki_report_row(report, &row);
    return ki_report_step(report, &row, tolerance, s->options.max_iterations, &s->options.control,
                          s->passes * ki_bytes_of(s->X));
}

/* gamma and lambda, and what was measured of them. */
enum { STATE = 9 };
static void state_of(struct ki_state state[STATE], struct lda *s) {
    const struct ki_state parts[STATE] = {
        {"gamma", .matrix = s->documents.gamma},
        {"lambda", .matrix = s->topics.lambda},
        {"words", .matrix = s->topics.Z},
        {"logs", .matrix = s->documents.logs},
        {"alpha", .reals = s->alpha, .count = kiln_matrix_cols(s->topics.lambda)},
        {"bound", .reals = &s->bound},
        {"test", .reals = &s->test_perplexity},
        {"passes", .integers = &s->passes},
        {"steps", .integers = ki_lda_batches_steps(s->batches)}};
    memcpy(state, parts, sizeof parts);
}

/* Goes on from a checkpoint, if there is one; what follows from gamma and lambda is made anew. */
static kiln_status resume(bool *resumed, struct lda *s) {
    kiln_status status;
    struct ki_state state[STATE];
    const size_t bytes = (size_t)kiln_matrix_cols(s->topics.lambda) * sizeof(double);
    state_of(state, s);
    TRY(ki_checkpoint_resume(resumed, &s->options.control, state, STATE));
    if (!*resumed) return KILN_OK;
    TRY(ki_vector_set(s->topics.alpha, memcpy(s->work, s->alpha, bytes)));
    TRY(ki_lda_documents_ready(&s->documents, &s->topics));
    TRY(ki_lda_topics_ready(&s->topics));
done:
    return status;
}

static kiln_status iterate(struct lda *s) {
    kiln_report *report = &s->report;
    struct ki_state state[STATE];
    bool measured;
    kiln_status status;
    TRY(resume(&measured, s));
    state_of(state, s);
    for (;; report->iterations++, measured = false) {
        const double before = s->bound;
        if (!measured) {
            TRY(measure(s));
            TRY(record(s, before));
            TRY(ki_checkpoint_step(&s->options.control, state, STATE, report->stopped_by));
        }
        if (report->stopped_by != KILN_STOP_NONE) break;
        TRY(update(s));
    }
    report->objective = s->bound;
    report->converged = report->stopped_by == KILN_STOP_TOLERANCE;
    report->passes = s->passes;
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- the whole */

static kiln_status hand_over(kiln_matrix *A, kiln_matrix *B, struct lda *s) {
    struct ki_lda_topics *t = &s->topics;
    kiln_status status;
    TRY(ki_copy(A, s->documents.gamma));
    TRY(ki_copy(B, t->lambda));
    if (s->options.alphas) TRY(ki_copy(s->options.alphas, t->alpha));
    ki_report_figure(&s->report, "perplexity_bound", exp(-s->bound / s->words));
    if (!s->batches) ki_report_setbacks(&s->report, -1, s->anew, kiln_matrix_type(s->X));
    if (s->options.test) ki_report_figure(&s->report, "test_perplexity", s->test_perplexity);
done:
    return status;
}

kiln_status kiln_lda(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, const kiln_lda_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct lda s = {.X = X, .start = ki_clock(), .test_perplexity = NAN};
    TRY(KI_TAKE(kiln_lda_options, &s.options, options));
    TRY(ki_options_check(&s.options, &ki_algorithm_lda));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    TRY(check(A, B, X, &s.options));
    ki_lda_fill(&s.options, kiln_matrix_cols(A), kiln_matrix_type(X));
    s.report.tolerance = s.options.tolerance;
    TRY(ki_report_begin(&s.report));
    TRY(begin(&s, A, B));
    TRY(ki_checkpoint_begin(&(struct ki_run){.control = &s.options.control,
                                             .algorithm = "lda",
                                             .options = &s.options,
                                             .seed = s.options.seed,
                                             .X = X,
                                             .given = {{"the entries held out", s.options.test}},
                                             .report = &s.report,
                                             .start = &s.start,
                                             .most = s.options.max_iterations}));
    TRY(iterate(&s));
    TRY(hand_over(A, B, &s));
    s.report.seconds = ki_clock() - s.start;
    ki_report_hand_over(report, &s.report);
done:
    ki_lda_documents_free(&s.documents);
    ki_lda_topics_free(&s.topics);
    ki_lda_batches_free(s.batches);
    ki_topics_free(&s.test);
    ki_free(s.alpha);
    ki_free(s.work);
    kiln_report_free(&s.report);
    return status;
}
