/* a = A^T (A a) / ||A^T (A a)||: the power method on A^T A, one pass over A an iteration. On a GPU norms
 * and changes stay there, and several iterations are queued before the host looks at them.
 *
 * Sums over a vertex' links lose a unit of rounding a link at most. Where that may come near the
 * tolerance, f32 says no more than where to start: the last iterations, one as a rule, are f64's, on a
 * copy of A.
 *
 * The hubs h = A a are needed only once, at the end. All iterates of a graph are sums of products of
 * numbers that are not negative, so nothing cancels, and a negative number among them gives a negative
 * weight away. */
#include <string.h>

#include "algorithms/certificate/certificate.h"
#include "algorithms/hits.h"
#include "algorithms/registry.h"
#include "ops/graph/ranks_error.h"

static kiln_status hits_check(const kiln_matrix *hubs, const kiln_matrix *authorities, const kiln_matrix *A,
                              const kiln_hits_options *options) {
    if (!hubs || !authorities || !A)
        return ki_fail(KILN_ERR_ARGUMENT, "hubs, authorities and A must not be NULL");
    if (hubs == authorities) return ki_fail(KILN_ERR_ARGUMENT, "hubs and authorities are one matrix");
    if (options->norm < 0 || options->norm > 2)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_hits_options.norm is %d, but must be 1 or 2", options->norm);
    if (!(options->tolerance >= 0) || isinf(options->tolerance))
        return ki_fail(KILN_ERR_ARGUMENT,
                       "kiln_hits_options.tolerance is %g, but must be finite and not negative",
                       options->tolerance);
    if (options->max_iterations < 0)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "kiln_hits_options.max_iterations is %lld, but must not be negative",
                       (long long)options->max_iterations);
    kiln_status status = ki_check_matrix("kiln_hits", "hubs", hubs, A, kiln_matrix_rows(A), 1);
    if (status == KILN_OK)
        status = ki_check_matrix("kiln_hits", "authorities", authorities, A, kiln_matrix_cols(A), 1);
    if (status != KILN_OK) return status;
    if (kiln_matrix_rows(A) == 0 || kiln_matrix_cols(A) == 0 || kiln_matrix_nnz(A) == 0)
        return ki_fail(KILN_ERR_DATA, "the graph has no links");
    return KILN_OK;
}

/* links = A with every stored entry 1. */
static kiln_status drop_weights(struct ki_hits *s) {
    kiln_status status = KILN_OK;
    const kiln_matrix *A = s->A;
    if (kiln_matrix_format(A) != KILN_CSR)
        return (ki_fail(KILN_ERR_UNSUPPORTED,
                        "kiln_hits_options.unweighted: a dense A stores every entry, zeros too"),
                ki_hint("give the graph as a sparse matrix"));
    TRY(ki_arena_take(&s->run.arena, &s->links, kiln_matrix_like(&s->links, A, KILN_TYPE_DEFAULT, NULL)));
    s->A = s->links;
done:
    return status;
}

enum {
    AHEAD = 8,
    PATIENCE = 16,    /* power steps before their pace is believed */
    WORTH = 100,      /* of them still to come that make the faster method worth its vectors */
    ACCELERATIONS = 3 /* more only chase rounding */
};
/* Queued iterations may take no longer: the user wants to see progress and to stop. */
static const double ahead_seconds = 0.05;

static kiln_norm_kind norm_of(const struct ki_hits *s) {
    return s->options.norm == 2 ? KILN_NORM_2 : KILN_NORM_1;
}

static kiln_status check_norm(double norm, kiln_type type, const char *what) {
    if (norm == 0) {
        ki_fail(KILN_ERR_DATA, "kiln_hits: all %s are 0", what);
        return ki_hint("a link needs a weight other than 0, and a warm start entries where links lead");
    }
    if (isfinite(norm) && isfinite(1 / norm)) return KILN_OK;
    ki_fail(KILN_ERR_DATA, "kiln_hits: the %s overflow %s or are not numbers", what,
            type == KILN_F32 ? "f32" : "f64");
    return ki_hint("scale the weights of the links: a common factor does not matter");
}

/* v /= its norm. */
static kiln_status normalise(kiln_matrix *v, const struct ki_hits *s, const char *what) {
    double norm;
    kiln_status status;
    TRY(kiln_norm(&norm, v, norm_of(s)));
    TRY(check_norm(norm, kiln_matrix_type(v), what));
    const double scale = 1 / norm;
    TRY(kiln_combine(v, &scale, v, NULL, NULL));
done:
    return status;
}

static kiln_status check_signs(const kiln_matrix *v, const char *what) {
    int64_t negative;
    const kiln_status status = ki_find_negative(&negative, v);
    if (status != KILN_OK || negative < 0) return status;
    ki_fail(KILN_ERR_DATA, "kiln_hits: some %s are negative", what);
    return ki_hint("the weights of links must not be negative");
}

/* Vectors of A's type. */
static kiln_status make_vectors(struct ki_hits *s) {
    struct ki_arena *arena = &s->run.arena;
    s->a = ki_arena_model(arena, s->A, kiln_matrix_cols(s->A), 1);
    s->next = ki_arena_model(arena, s->A, kiln_matrix_cols(s->A), 1);
    s->h = ki_arena_rows(arena, s->A, 1);
    return arena->status;
}

static kiln_status hits_begin(struct ki_hits *s, const kiln_matrix *authorities) {
    kiln_status status;
    kiln_device_info info = {0};
    TRY(kiln_device_get_info(kiln_matrix_device(s->A), &info));
    s->gpu = strcmp(info.name, "cpu") != 0, s->has_f64 = info.has_f64;
    s->scalars = ki_run_sums(&s->run, 2 * AHEAD, 1);
    TRY(make_vectors(s));
    if (s->options.warm_start)
        TRY(ki_copy(s->a, authorities));
    else
        TRY(kiln_fill(s->a, 1.0 / (double)kiln_matrix_cols(s->A)));
    TRY(normalise(s->a, s, "authorities at the start"));
    TRY(check_signs(s->a, "authorities at the start"));
done:
    return status;
}

/* Queues an iteration: its eigenvalue and its change go to the scalars. */
static kiln_status step(struct ki_hits *s, int64_t slot) {
    kiln_status status;
    const double one = 1, minus_one = -1;
    TRY(kiln_mmchain(s->next, 1, s->A, NULL, s->a, 0, NULL));
    TRY(kiln_norm_into(s->scalars, 2 * slot, s->next, norm_of(s)));
    TRY(kiln_combine_from(s->next, &(kiln_ratio){.under = s->scalars, .under_row = 2 * slot}, s->next, NULL,
                          NULL));
    TRY(kiln_combine(s->a, &minus_one, s->a, &one, s->next));
    TRY(kiln_norm_into(s->scalars, 2 * slot + 1, s->a, KILN_NORM_1));
    kiln_matrix *former = s->a;
    s->a = s->next;
    s->next = former;
done:
    return status;
}

static kiln_status read_scalars(double scalars[2 * AHEAD], const struct ki_hits *s) {
    float narrow[2 * AHEAD];
    if (kiln_matrix_type(s->scalars) == KILN_F64) return kiln_matrix_get(scalars, s->scalars);
    const kiln_status status = kiln_matrix_get(narrow, s->scalars);
    for (int i = 0; status == KILN_OK && i < 2 * AHEAD; i++) scalars[i] = (double)narrow[i];
    return status;
}

kiln_status ki_hits_record(struct ki_hits *s, double eigenvalue, double change) {
    kiln_status status;
    const kiln_trace_row row = {.objective = eigenvalue, .residual = change};
    TRY(check_norm(eigenvalue, kiln_matrix_type(s->a), "authorities"));
    s->run.report.iterations++;
    s->run.report.passes++;
    TRY(ki_run_row(&s->run, &row));
    ki_run_tell(&s->run);
done:
    return status;
}

/* Rows of the trace for what was queued. The result is that of the last. */
static kiln_status account(struct ki_hits *s, int64_t queued) {
    kiln_status status;
    double scalars[2 * AHEAD];
    TRY(read_scalars(scalars, s));
    for (int64_t i = 0; i < queued; i++) TRY(ki_hits_record(s, scalars[2 * i], scalars[2 * i + 1]));
done:
    return status;
}

/* Returns how many iterations to queue next: half of those that the last ones let expect, so that none is in
 * vain; one on the CPU, which gains nothing by more. */
static int64_t look_ahead(const struct ki_hits *s, double seconds) {
    if (!s->gpu || !isfinite(s->before)) return 1;
    const double rate = log(s->before / s->run.report.residual) / (double)s->queued;
    const double left = rate > 0 ? log(s->run.report.residual / s->options.tolerance) / rate : AHEAD;
    const double most = fmin(AHEAD, ahead_seconds * (double)s->queued / fmax(seconds, 1e-9));
    return (int64_t)fmax(fmin(left / 2, most), 1);
}

/* Returns whether the last iterations let so many expect that the faster method is worth its start. */
static bool slow(const struct ki_hits *s) {
    if (s->accelerations >= ACCELERATIONS || !isfinite(s->before)) return false;
    if (s->options.solver) return s->options.solver == KILN_HITS_LOBPCG;
    const double rate = log(s->before / s->run.report.residual) / (double)s->queued;
    return s->run.report.iterations >= PATIENCE &&
           !(log(s->run.report.residual / s->options.tolerance) <= WORTH * rate);
}

static kiln_status accelerate(struct ki_hits *s) {
    kiln_status status;
    s->run.report.solver = "lobpcg";
    TRY(ki_hits_accelerate(s));
    TRY(normalise(s->a, s, "authorities"));
    s->accelerations++;
done:
    return status;
}

int ki_hits_state(struct ki_state state[KI_HITS_STATE], struct ki_hits *s) {
    const struct ki_state parts[KI_HITS_STATE] = {
        {"authorities", .matrix = &s->a},
        {"before", .reals = &s->before},
        {"queued", .integers = &s->queued, .least = 0, .most = AHEAD},
        {"accelerations", .integers = &s->accelerations},
        {"faster", .flag = &s->faster}};
    memcpy(state, parts, sizeof parts);
    return KI_HITS_STATE;
}

/* Goes on from a checkpoint, if there is one. */
static kiln_status hits_resume(struct ki_hits *s) {
    kiln_status status;
    TRY(ki_run_look(&s->run, KI_HITS_STATE));
    if (s->faster) return KILN_OK; /* that method takes the whole of the state */
    TRY(ki_run_resume(&s->run));
    if (s->accelerations) s->run.report.solver = "lobpcg";
done:
    return status;
}

/* Returns whether changes may still be growing: a vertex with a small share of the start, but with the
 * largest eigenvalue, gets its share step by step. */
static bool grows(const struct ki_run *run) {
    const kiln_trace_row *last = run->report.trace + run->report.trace_count - 1;
    if (last->residual <= run->tolerance / 100) return false;
    return run->report.trace_count < 2 || last->residual > last[-1].residual;
}

static kiln_status hits_iterate(struct ki_hits *s) {
    struct ki_run *run = &s->run;
    const kiln_report *report = &run->report;
    kiln_status status = KILN_OK;
    double seconds = 0;
    while (ki_run_goes_on(run)) {
        const bool faster = s->faster || slow(s);
        if (faster) TRY(accelerate(s));
        const int64_t ahead = look_ahead(s, seconds);
        if (report->iterations > 0) s->before = report->residual;
        s->queued = ki_min(ahead, run->most - report->iterations);
        const double began = ki_clock();
        for (int64_t slot = 0; slot < s->queued; slot++) TRY(step(s, slot));
        TRY(account(s, s->queued));
        seconds = ki_clock() - began;
        run->unsettled = !faster && grows(run); /* the faster method finds such a vertex by its residual */
        ki_run_judge(run);
        if (!s->cut) TRY(ki_run_keep(run));
    }
done:
    return status;
}

/* Returns whether sums of as many terms as a vertex may have links may be off by a share of the tolerance. */
static bool sums_are_long(const struct ki_hits *s) {
    const int64_t vertices = ki_max(kiln_matrix_rows(s->A), kiln_matrix_cols(s->A));
    const double terms = (double)ki_min(vertices, kiln_matrix_nnz(s->A));
    return kiln_matrix_type(s->A) == KILN_F32 && terms * ki_epsilon(KILN_F32) > s->options.tolerance / 4;
}

/* A and a in f64. s->wide: A was copied, so that what fails is no lack of room for it. */
static kiln_status widen(struct ki_hits *s) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(s->A);
    struct ki_arena own = {0}, *arena = &s->run.arena;
    kiln_matrix *wide = NULL, *start = NULL;
    TRY(ki_arena_take(&own, &wide,
                      s->links ? kiln_matrix_like(&wide, s->links, KILN_F64, NULL)
                               : kiln_matrix_copy(&wide, device, KILN_F64, s->A)));
    TRY(ki_arena_take(&own, &start, kiln_matrix_copy(&start, device, KILN_F64, s->a)));
    s->wide = true;
    TRY(ki_arena_take(arena, &wide, (ki_arena_give(&own, wide), KILN_OK)));
    ki_arena_drop(arena, s->a);
    ki_arena_drop(arena, s->next);
    ki_arena_drop(arena, s->h);
    s->A = wide;
    TRY(make_vectors(s));
    TRY(ki_copy(s->a, start));
    TRY(normalise(s->a, s, "authorities"));
done:
    return ki_arena_free(&own, status);
}

/* f64 goes on from where f32 cannot promise what it has found; without room for it, the run has stalled. */
static kiln_status confirm(struct ki_hits *s) {
    kiln_report *report = &s->run.report;
    kiln_status status = KILN_OK;
    if (report->stopped_by != KILN_STOP_TOLERANCE || !sums_are_long(s)) goto done;
    report->stopped_by = KILN_STOP_STALLED;
    if (!s->has_f64) goto done;
    if (report->iterations >= s->run.most) {
        report->stopped_by = KILN_STOP_ITERATIONS;
        goto done;
    }
    status = widen(s);
    if (status == KILN_ERR_NOMEM || status == KILN_ERR_DEVICE_NOMEM) {
        status = s->wide ? status : KILN_OK;
        goto done;
    }
    if (status != KILN_OK) goto done;
    report->stopped_by = KILN_STOP_NONE;
    s->before = INFINITY, s->cut = true; /* checkpoints are f32's */
    TRY(hits_iterate(s));
done:
    return status;
}

/* The figure "eigenvalue_error": with a the authorities before the last step, A^T A a - lambda a = lambda
 * (change of a), whose length over that of a is at least the distance of lambda from an eigenvalue of the
 * symmetric A^T A (Parlett, The Symmetric Eigenvalue Problem, 1998, 4.5). Nothing cancels in sums of numbers
 * that are not negative: their rounding is a share of lambda. */
static kiln_status tell_error(struct ki_hits *s) {
    kiln_status status;
    kiln_report *report = &s->run.report;
    const kiln_type type = kiln_matrix_type(s->A);
    const double rounding = ki_units(kiln_matrix_rows(s->A), type) + ki_units(kiln_matrix_cols(s->A), type);
    double length;
    TRY(kiln_norm(&length, s->a, KILN_NORM_2));
    const double before = length - report->residual;
    ki_report_figure(report, "eigenvalue_error",
                     before > 0 ? report->objective * (report->residual / before + rounding) : INFINITY);
done:
    return status;
}

/* to = from, which may be wider. */
static kiln_status give(kiln_matrix *to, const kiln_matrix *from) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *narrow = NULL;
    if (kiln_matrix_type(to) == kiln_matrix_type(from)) return ki_copy(to, from);
    TRY(ki_arena_take(&arena, &narrow,
                      kiln_matrix_copy(&narrow, kiln_matrix_device(to), kiln_matrix_type(to), from)));
    TRY(ki_copy(to, narrow));
done:
    return ki_arena_free(&arena, status);
}

/* ------------------------------------------------------------------------------------- the registry's row */

/* Vertices are named as the columns of A are. */
static kiln_status check_names(const kiln_model *model) {
    return ki_model_check_names(model, "vertices", ki_model_tensor(model, "authorities")->rows);
}

static const kiln_option options_table[] = {
    KI_OPTION(kiln_hits_options, norm, INT, 1, 1, 1, 2, NULL,
              "Scale hubs and authorities so that they (1) or their squares (2) add up to 1."),
    KI_OPTION(kiln_hits_options, unweighted, FLAG, 0, 0, 0, 1, NULL,
              "Take every link for 1, whatever its weight and however often it stands in the file."),
    KI_OPTION(kiln_hits_options, tolerance, REAL, 1e-10, 1e-5, 0, INFINITY, NULL,
              "Stop when the change of the authorities in one iteration is at most this. 0 goes on until "
              "it no longer changes or the limit of iterations ends it."),
    KI_OPTION_ITERATIONS(kiln_hits_options, 1000, ""),
    KI_OPTION(
        kiln_hits_options, solver, CHOICE, 0, 0, 1, KILN_HITS_LOBPCG, "power|lobpcg",
        "The power iteration, or a conjugate gradient method that takes the root of its number of passes "
        "where the second eigenvalue is near the first; the latter where the former is slow, if it is not "
        "given."),
};

const struct ki_algorithm ki_algorithm_hits = {
    .shown = {"hits", "Rank the vertices of a graph as hubs and authorities",
              KI_OPTIONS(options_table, kiln_hits_options)},
    .given = offsetof(kiln_hits_options, given),
    .tensors = {{"hubs", 'm', '1', false, false, false}, {"authorities", 'n', '1', false, false, false}},
    .check = check_names,
    .instead = "it ranks the vertices of its own graph; its ranks are the tensors 'hubs' and 'authorities'",
    .passes = {40, 2, false}};

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_hits(kiln_matrix *hubs, kiln_matrix *authorities, const kiln_matrix *A,
                      const kiln_hits_options *options, kiln_report *report) {
    kiln_status status;
    struct ki_hits s = {.A = A, .before = INFINITY};
    struct ki_run *const run = &s.run;
    kiln_hits_options *o = &s.options;
    struct ki_state state[KI_HITS_STATE];
    bool weighted = false;
    TRY(KI_RUN_OPEN(run, hits, o, options, report));
    TRY(hits_check(hubs, authorities, A, o));
    ki_options_fill(o, &ki_algorithm_hits, kiln_matrix_type(A));
    ki_run_on(run, A, o->tolerance, o->max_iterations);
    TRY(o->unweighted ? drop_weights(&s) : ki_links_weighted(&weighted, A));
    ki_report_figure(&run->report, "weighted", weighted);
    TRY(hits_begin(&s, authorities));
    TRY(ki_run_begin(run, (struct ki_described){.options = o}));
    run->report.solver = "power";
    ki_hits_state(state, &s);
    KI_RUN_STATE(run, state);
    TRY(hits_resume(&s));
    TRY(hits_iterate(&s));
    TRY(confirm(&s));
    TRY(kiln_multiply(s.h, 1, KILN_PLAIN, s.A, s.a, 0, NULL));
    run->report.passes++;
    TRY(normalise(s.h, &s, "hubs"));
    TRY(check_signs(s.a, "authorities"));
    TRY(check_signs(s.h, "hubs"));
    TRY(tell_error(&s));
    TRY(give(hubs, s.h));
    TRY(give(authorities, s.a));
done:
    return ki_run_close(run, status);
}
