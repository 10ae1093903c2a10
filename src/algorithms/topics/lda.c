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
 * of lambda's update, until one changes the bound by no more than the tolerance. That says little, as the
 * bound goes up and down and batches' steps shrink: updates from all documents, which cost less than such a
 * pass, bring the run to its end. */
#include "algorithms/topics/lda.h"

#include "ops/sampled/gamma.h"

enum { ROUNDS_ANEW = 5, STEPS_ANEW = 10 };

struct lda {
    struct ki_run run;
    const kiln_matrix *X;
    struct ki_lda_documents documents;
    struct ki_lda_topics topics;
    struct ki_lda_batches *batches; /* NULL: all documents at once */
    kiln_lda_options options;
    double *alpha, *work; /* k; 2 k */
    int64_t anew;         /* rounds in which documents begin anew */
    bool whole;           /* lambda's updates are from all documents: without batches, and at their end */
    double words, bound, test_perplexity;
    struct ki_topics_test test;
};

/* ------------------------------------------------------------------------------------------- checks */

static kiln_status check_prior(const char *name, double value) {
    if (value >= 0 && !isinf(value)) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "kiln_lda_options.%s is %g, but must be a finite number above 0", name,
                   value);
}

static kiln_status check_online(const kiln_lda_options *o, const kiln_matrix *X) {
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
    if (o->batch > 0 && ki_lies_in_file(X)) {
        ki_fail(KILN_ERR_UNSUPPORTED, "mini-batches take documents in any order, and X lies in a file");
        return ki_hint("train on all documents at once, or read X into memory");
    }
    return KILN_OK;
}

static kiln_status lda_check(const kiln_matrix *A, const kiln_matrix *B, const kiln_matrix *X,
                             const kiln_lda_options *o) {
    static const char call[] = "kiln_lda";
    kiln_status status;
    TRY(ki_topics_check(call, A, B, X, o->test));
    TRY(check_prior("alpha", o->alpha));
    TRY(check_prior("eta", o->eta));
    TRY(check_online(o, X));
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
    TRY(kiln_fill_random(t->lambda, KILN_NORMAL, (uint64_t)s->options.seed, KI_STREAM_LDA));
    TRY(kiln_combine(t->lambda, t->a, t->lambda, t->b, t->ones));
done:
    return status;
}

static kiln_status check_positive(const char *name, const kiln_matrix *A, const kiln_matrix *like) {
    const int64_t k = kiln_matrix_cols(A);
    struct ki_arena arena = {0};
    kiln_matrix *const logarithm = ki_arena_model(&arena, like, kiln_matrix_rows(A), k);
    double *const largest = ki_arena_reals(&arena, k);
    kiln_status status;
    TRY(arena.status);
    TRY(ki_check_finite("kiln_lda", name, A, true));
    TRY(kiln_map(logarithm, KILN_MAP_LOG, A)); /* NaN or infinite unless A > 0 */
    TRY(kiln_norm(largest, logarithm, KILN_NORM_MAX));
    for (int64_t c = 0; c < k; c++)
        if (!isfinite(largest[c]))
            TRY(ki_fail(KILN_ERR_DATA, "kiln_lda: an entry of %s is not above 0", name));
done:
    return ki_arena_free(&arena, status);
}

/* The documents' prior, on the device too. */
static kiln_status set_alpha(struct lda *s) {
    const size_t bytes = (size_t)kiln_matrix_cols(s->topics.lambda) * sizeof(double);
    return ki_vector_set(s->topics.alpha, memcpy(s->work, s->alpha, bytes));
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
    TRY(set_alpha(s));
    TRY(ki_lda_documents_ready(&s->documents, t));
done:
    return status;
}

static kiln_status lda_begin(struct lda *s, const kiln_matrix *A, const kiln_matrix *B) {
    const kiln_lda_options *o = &s->options;
    struct ki_arena *arena = &s->run.arena;
    const int64_t k = kiln_matrix_cols(A);
    kiln_status status;
    TRY(ki_topics_counts("kiln_lda", &s->words, 1, s->X));
    s->alpha = ki_run_reals(&s->run, k);
    s->work = ki_run_reals(&s->run, 2 * k);
    TRY(arena->status);
    for (int64_t c = 0; c < k; c++) s->alpha[c] = o->alpha;
    TRY(ki_lda_documents_new(&s->documents, arena, s->X, k, o->learn_alpha != 0));
    TRY(ki_lda_topics_new(&s->topics, arena, s->X, k, o->eta));
    if (o->batch > 0) TRY(ki_lda_batches_new(&s->batches, arena, s->X, k, o));
    if (o->test) TRY(ki_topics_begin(&s->test, arena, "kiln_lda", o->test, k));
    if (o->warm_start) {
        TRY(copy_start(s, A, B));
    } else {
        TRY(random_topics(s));
        TRY(set_alpha(s));
        TRY(ki_lda_documents_begin(&s->documents, &s->topics, s->alpha));
        s->anew = s->batches ? 0 : ROUNDS_ANEW;
    }
    s->whole = !s->batches;
    TRY(ki_lda_topics_ready(&s->topics));
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- a round */

/* Returns what the documents' prior adds to the bound whatever gamma is. */
static double prior_bound(const struct lda *s) {
    double sum = 0, value = 0;
    for (int64_t c = 0; c < kiln_matrix_cols(s->topics.lambda); c++) {
        sum += s->alpha[c];
        value -= ki_log_gamma(s->alpha[c]);
    }
    return (double)kiln_matrix_rows(s->X) * (value + ki_log_gamma(sum));
}

/* The documents' steps, and the bound of what they lead to; leaves the words' sums in Z. */
static kiln_status lda_measure(struct lda *s, bool anew) {
    const int64_t steps = anew ? ki_max(s->options.steps, STEPS_ANEW) : s->options.steps;
    kiln_status status;
    double documents, fit;
    if (anew) TRY(ki_lda_documents_begin(&s->documents, &s->topics, s->alpha));
    for (int64_t step = 1; step < steps; step++)
        TRY(ki_lda_documents_step(&s->documents, &s->topics, NULL, NULL));
    TRY(ki_lda_documents_step(&s->documents, &s->topics, &documents, NULL));
    TRY(ki_lda_words(&fit, &s->documents, &s->topics));
    s->run.report.passes += steps + 1;
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
    TRY(set_alpha(s));
done:
    return status;
}

static kiln_status lda_update(struct lda *s) {
    kiln_status status;
    if (!s->whole) return ki_lda_batches_run(s->batches, &s->topics, s->alpha);
    TRY(ki_lda_topics_update(&s->topics, 0, 1, 1));
    TRY(ki_lda_topics_ready(&s->topics));
    if (s->options.learn_alpha) TRY(learn_alpha(s));
done:
    return status;
}

/* Returns what the bound, `before` until now, has become. */
static kiln_trace_row lda_row(const struct lda *s, double before, bool may_fall) {
    const double rise = may_fall ? fabs(s->bound - before) : fmax(s->bound - before, 0);
    return (kiln_trace_row){.objective = s->bound,
                            .residual = rise / fmax(fabs(before), DBL_MIN),
                            .test = s->options.test ? s->test_perplexity : 0};
}

/* Goes on from a checkpoint, if there is one; what follows from gamma and lambda is made anew. */
static kiln_status lda_resume(struct lda *s) {
    kiln_status status;
    TRY(ki_run_resume(&s->run));
    if (!s->run.resumed) return KILN_OK;
    TRY(set_alpha(s));
    TRY(ki_lda_documents_ready(&s->documents, &s->topics));
    TRY(ki_lda_topics_ready(&s->topics));
done:
    return status;
}

static kiln_status lda_iterate(struct lda *s) {
    struct ki_run *run = &s->run;
    /* gamma and lambda, and what was measured of them */
    const struct ki_state state[] = {
        {"gamma", .matrix = &s->documents.gamma},
        {"lambda", .matrix = &s->topics.lambda},
        {"words", .matrix = &s->topics.Z},
        {"logs", .matrix = &s->documents.logs},
        {"alpha", .reals = s->alpha, .count = kiln_matrix_cols(s->topics.lambda)},
        {"bound", .reals = &s->bound},
        {"test", .reals = &s->test_perplexity},
        {"steps", .integers = ki_lda_batches_steps(s->batches)},
        {"whole", .flag = &s->whole}};
    kiln_trace_row row;
    kiln_status status;
    KI_RUN_STATE(run, state);
    run->gains = true;
    TRY(lda_resume(s));
    if (!run->resumed) {
        TRY(lda_measure(s, s->anew > 0));
        row = lda_row(s, 0, s->anew > 0 || !s->whole);
        TRY(ki_run_row(run, &row));
    }
    while (ki_run_goes_on(run)) {
        const bool anew = run->report.iterations + 1 < s->anew;
        const double before = s->bound;
        TRY(lda_update(s));
        TRY(lda_measure(s, anew));
        run->unsettled = anew || !s->whole; /* the bound may turn there */
        row = lda_row(s, before, run->unsettled);
        s->whole |= row.residual <= run->tolerance;
        TRY(ki_run_step(run, &row));
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_lda(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, const kiln_lda_options *options,
                     kiln_report *report) {
    kiln_status status;
    struct lda s = {.X = X, .test_perplexity = NAN};
    kiln_lda_options *o = &s.options;
    kiln_report *const own = &s.run.report;
    TRY(KI_RUN_OPEN(&s.run, lda, o, options, report));
    TRY(lda_check(A, B, X, o));
    ki_lda_fill(o, kiln_matrix_cols(A), kiln_matrix_type(X));
    ki_run_on(&s.run, X, o->tolerance, o->max_iterations);
    TRY(lda_begin(&s, A, B));
    TRY(ki_run_begin(
        &s.run,
        (struct ki_described){.options = o, .seed = o->seed, .given = {{"the entries held out", o->test}}}));
    TRY(lda_iterate(&s));
    TRY(ki_copy(A, s.documents.gamma));
    TRY(ki_copy(B, s.topics.lambda));
    if (o->alphas) TRY(ki_copy(o->alphas, s.topics.alpha));
    ki_report_figure(own, "perplexity_bound", exp(-s.bound / s.words));
    if (!s.batches) ki_report_setbacks(own, -1, s.anew, kiln_matrix_type(X), 0, s.words);
    if (s.batches) ki_report_figure(own, "batches", (double)*ki_lda_batches_steps(s.batches));
    if (o->test) ki_report_figure(own, "test_perplexity", s.test_perplexity);
done:
    return ki_run_close(&s.run, status);
}
