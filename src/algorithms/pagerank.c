/* p = (1 - d) t + d (A^T D^-1 p + m g): power iteration, each iteration one walk over the links for all
 * columns (ops/graph/ranks.c).
 *
 * The map is a contraction by d in the 1-norm. So what one iteration changes bounds what all further ones
 * would, by d / (1 - d), and what rounding does to an iteration, r, comes to r / (1 - d) in all. Whether
 * an iteration was the last one is found out where the ranks are: on a GPU several are queued at once, and
 * those behind the last do nothing. */
#include "algorithms/run/run.h"

#include "ops/graph/ranks_error.h"

enum { COLUMNS_MOST = 64, MASS = 0, GOAL = 1, TAKEN = 2, ACTIVE = 3, HEAD = 4, QUEUED_MOST = 16 };
static const double QUEUED_SECONDS = 0.2;
static const char call[] = "kiln_pagerank";

struct pagerank {
    struct ki_run run;
    kiln_pagerank_options options; /* defaults filled in */
    kiln_ranks on;
    kiln_matrix *shares; /* C after the last step: of on.C and on.next, as kiln_ranks_step changes the two */
    bool odd;            /* the number of steps */
    kiln_matrix *arrivals; /* NULL, or ki_ranks_arrivals */
    double additions;      /* what leads to a vertex, times its rank, all of them; the most of the columns */
    double *S;             /* on.S on the host */
    int64_t n, k;
};

/* ---- checks ---- */

static kiln_status check_vector(const char *name, const kiln_matrix *v, const kiln_matrix *A, int64_t k) {
    const bool one = v && kiln_matrix_cols(v) == 1;
    return v ? ki_check_matrix(call, name, v, A, kiln_matrix_rows(A), one ? 1 : k) : KILN_OK;
}

static kiln_status pagerank_check(const kiln_matrix *ranks, const kiln_matrix *A,
                                  const kiln_pagerank_options *options) {
    kiln_status status;
    if (!ranks || !A) return ki_fail(KILN_ERR_ARGUMENT, "%s: ranks or A is NULL", call);
    const int64_t n = kiln_matrix_rows(A), k = kiln_matrix_cols(ranks);
    if (!(options->damping >= 0 && options->damping <= 1))
        return (ki_fail(KILN_ERR_ARGUMENT, "%s_options.damping is %g, but must be in [0, 1]", call,
                        options->damping),
                ki_hint("without kiln_option_give a 0 means 0.85"));
    if ((int)options->dangling < 0 || options->dangling > KILN_DANGLING_UNIFORM)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.dangling is %d, but must be 1 or 2", call,
                       (int)options->dangling);
    if ((int)options->layout < 0 || options->layout > KILN_LAYOUT_BALANCED)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.layout is %d, but must be 1 to 3", call,
                       (int)options->layout);
    if (options->iterations < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.iterations is %lld, but must not be negative", call,
                       (long long)options->iterations);
    TRY(ki_check_iteration(call, options->tolerance, options->max_iterations));
    if (kiln_matrix_format(A) != KILN_CSR)
        return (ki_fail(KILN_ERR_UNSUPPORTED, "%s: A is dense, but links are the entries of a sparse matrix",
                        call),
                ki_hint("give the graph as a sparse matrix, or as a file of links"));
    if (n != kiln_matrix_cols(A))
        return (ki_fail(KILN_ERR_DATA, "%s: A is %lld x %lld, but rows and columns must be the same vertices",
                        call, (long long)n, (long long)kiln_matrix_cols(A)),
                ki_hint("--format edges reads lines of two vertices"));
    if (n == 0) return ki_fail(KILN_ERR_DATA, "%s: the graph has no vertices", call);
    if (k < 1 || k > COLUMNS_MOST)
        return (ki_fail(KILN_ERR_ARGUMENT, "%s: ranks has %lld columns, but must have 1 to %d", call,
                        (long long)k, COLUMNS_MOST),
                ki_hint("rank more seed sets in several calls"));
    TRY(ki_check_matrix(call, "ranks", ranks, A, n, k));
    TRY(check_vector("personalize", options->personalize, A, k));
    TRY(check_vector("dangling_to", options->dangling_to, A, k));
done:
    return status;
}

/* to = v, each column scaled to add up to 1. */
static kiln_status distribution(kiln_matrix *to, const char *name, const kiln_matrix *v) {
    kiln_status status;
    double sum[COLUMNS_MOST];
    const int64_t cols = kiln_matrix_cols(v);
    int64_t negative;
    TRY(ki_check_finite(call, name, v, true));
    TRY(ki_find_negative(&negative, v));
    if (negative >= 0)
        TRY(ki_fail(KILN_ERR_DATA, "%s: column %lld of %s has negative numbers", call, (long long)negative,
                    name));
    TRY(kiln_norm(sum, v, KILN_NORM_1));
    for (int64_t c = 0; c < cols; c++) {
        const double scale = 1 / sum[c];
        if (sum[c] == 0)
            TRY(ki_fail(KILN_ERR_DATA, "%s: column %lld of %s is 0 throughout, and so no distribution", call,
                        (long long)c, name));
        if (!isfinite(sum[c]) || !isfinite(scale))
            TRY(ki_fail(KILN_ERR_DATA, "%s: column %lld of %s overflows", call, (long long)c, name));
        sum[c] = scale;
    }
    TRY(kiln_combine(to, sum, v, NULL, NULL));
done:
    return status;
}

/* *to = a new matrix with v's distributions; NULL without v. */
static kiln_status pagerank_take(kiln_matrix **to, struct pagerank *s, const char *name,
                                 const kiln_matrix *v) {
    kiln_status status = KILN_OK;
    if (!v) return KILN_OK;
    *to = ki_run_rows(&s->run, v, kiln_matrix_cols(v));
    TRY(s->run.arena.status);
    TRY(distribution(*to, name, v));
done:
    return status;
}

/* ---- the run ---- */

static kiln_status pagerank_first_ranks(struct pagerank *s, const kiln_matrix *ranks) {
    if (s->options.warm_start) return distribution(s->on.P, "the start", ranks);
    if (!s->on.teleport) return kiln_fill(s->on.P, 1.0 / (double)s->n);
    return ki_copy(s->on.P, s->on.teleport);
}

static kiln_status pagerank_begin(struct pagerank *s, const kiln_matrix *ranks, const kiln_matrix *A) {
    const kiln_pagerank_options *o = &s->options;
    struct ki_run *run = &s->run;
    const int64_t rows = HEAD + QUEUED_MOST;
    kiln_matrix *teleport = NULL, *dangling = NULL;
    kiln_status status;
    bool weighted = false;
    double largest;
    s->on.P = ki_run_rows(run, A, s->k);
    s->on.C = ki_run_rows(run, A, s->k);
    s->on.next = ki_run_rows(run, A, s->k);
    s->on.factor = ki_run_rows(run, A, 1);
    s->on.S = ki_run_sums(run, rows, s->k);
    s->S = ki_run_reals(run, rows * s->k);
    TRY(run->arena.status);
    TRY(pagerank_take(&teleport, s, "personalize", o->personalize));
    TRY(pagerank_take(&dangling, s, "dangling_to", o->dangling_to));
    if (!o->unweighted) TRY(ki_links_weighted(&weighted, A));
    s->on.A = A;
    s->on.layout = o->layout;
    s->on.weighted = weighted;
    s->on.damping = o->damping;
    s->on.teleport = teleport;
    s->on.dangling = dangling ? dangling : o->dangling == KILN_DANGLING_PERSONALIZED ? teleport : NULL;
    TRY(pagerank_first_ranks(s, ranks));
    for (int64_t c = 0; c < s->k; c++) s->S[GOAL * s->k + c] = run->tolerance;
    TRY(ki_vector_set(s->on.S, s->S));
    TRY(kiln_ranks_begin(&s->on));
    TRY(ki_arena_take(&run->arena, &s->arrivals, ki_ranks_arrivals(&s->arrivals, &s->on)));
    TRY(kiln_norm(&largest, s->on.factor, KILN_NORM_MAX));
    if (isnan(largest))
        TRY((ki_fail(KILN_ERR_DATA,
                     "%s: weights of links are negative or not finite, or those of a vertex do not add up",
                     call),
             ki_hint("kiln_pagerank_options.unweighted takes every link for 1")));
done:
    return status;
}

static double dangling_mass(const struct pagerank *s) {
    double mass = 0;
    for (int64_t c = 0; c < s->k; c++) mass = fmax(mass, s->S[MASS * s->k + c]);
    return mass;
}

/* If p' = T p + r, ||T p - T q|| <= d ||p - q|| and q = T q, then ||p' - q|| <= (d ||p' - p|| + ||r||) / (1 -
 * d). */
static double error_bound(const struct pagerank *s, double residual) {
    const double d = s->options.damping;
    double measured;
    const double rounding = ki_ranks_error(&measured, &s->on, dangling_mass(s)) +
                            s->additions * ki_epsilon(kiln_matrix_type(s->on.P)) / 2;
    return d < 1 ? (d * (1 + measured) * residual + rounding) / (1 - d) : INFINITY;
}

static kiln_status count_additions(struct pagerank *s) {
    double sums[COLUMNS_MOST];
    kiln_status status = KILN_OK;
    s->additions = 0;
    if (!s->arrivals) return KILN_OK;
    TRY(kiln_dot(sums, s->on.P, s->arrivals));
    for (int64_t c = 0; c < s->k; c++) s->additions = fmax(s->additions, sums[c]);
done:
    return status;
}

/* Takes what `count` queued iterations have left to the report. */
static kiln_status pagerank_note(struct pagerank *s, int64_t count) {
    kiln_report *report = &s->run.report;
    kiln_status status;
    TRY(ki_vector_get(s->S, s->on.S));
    TRY(count_additions(s));
    const int64_t taken = (int64_t)s->S[TAKEN * s->k] - report->iterations;
    for (int64_t i = 0; i < ki_min(taken, count); i++) {
        const double *change = s->S + (HEAD + report->iterations % QUEUED_MOST) * s->k;
        kiln_trace_row row = {0};
        for (int64_t c = 0; c < s->k; c++)
            if (!(change[c] <= row.residual)) row.residual = change[c];
        row.objective = error_bound(s, row.residual);
        report->passes = ++report->iterations;
        TRY(ki_run_row(&s->run, &row));
        ki_run_tell(&s->run);
    }
    s->odd = report->iterations % 2 == 1;
    s->shares = s->odd ? s->on.next : s->on.C;
done:
    return status;
}

/* In exact arithmetic `span` iterations shrink the change by d^span <= e^-2. Where they have not even
 * halved it, rounding keeps it up. Asked after multiples of QUEUED_MOST iterations alone, so that it does
 * not depend on how many were queued. */
static bool stalled(const struct pagerank *s) {
    const kiln_report *report = &s->run.report;
    const double span = ceil(2 / (1 - s->options.damping));
    if (s->options.iterations || report->iterations % QUEUED_MOST || !(span < (double)report->trace_count))
        return false;
    const kiln_trace_row *last = report->trace + report->trace_count - 1;
    return last->residual > last[-(int64_t)span].residual / 2;
}

static void pagerank_judge(struct pagerank *s) {
    kiln_stop *stop = &s->run.report.stopped_by;
    if (!isfinite(s->run.report.residual)) *stop = KILN_STOP_DIVERGED;
    ki_run_judge(&s->run);
    if ((*stop == KILN_STOP_NONE || *stop == KILN_STOP_ITERATIONS) && stalled(s)) *stop = KILN_STOP_STALLED;
}

/* Goes on from a checkpoint, if there is one; the goal may be another. */
static kiln_status pagerank_resume(struct pagerank *s) {
    struct ki_run *run = &s->run;
    kiln_status status;
    TRY(ki_run_look(run, 1)); /* odd, which decides where the shares are */
    s->shares = s->odd ? s->on.next : s->on.C;
    TRY(ki_run_resume(run));
    if (!run->resumed) return KILN_OK;
    TRY(ki_vector_get(s->S, s->on.S));
    if (s->odd != (run->report.iterations % 2 == 1))
        TRY(ki_fail(KILN_ERR_MODEL, "%s: the checkpoint's part 'odd' does not fit its %lld iterations", call,
                    (long long)run->report.iterations));
    for (int64_t c = 0; c < s->k; c++) {
        s->S[GOAL * s->k + c] = run->tolerance;
        s->S[TAKEN * s->k + c] = (double)run->report.iterations;
        s->S[ACTIVE * s->k + c] = 1;
    }
    TRY(ki_vector_set(s->on.S, s->S));
done:
    return status;
}

static kiln_status pagerank_iterate(struct pagerank *s) {
    struct ki_run *run = &s->run;
    const kiln_report *report = &run->report;
    int64_t queued = 1;
    kiln_status status = KILN_OK;
    while (ki_run_goes_on(run)) {
        const int64_t room = QUEUED_MOST - report->iterations % QUEUED_MOST;
        const int64_t count = ki_min(ki_min(queued, run->most - report->iterations), room);
        const double before = ki_clock();
        TRY(kiln_ranks_step(&s->on, report->iterations, count));
        TRY(pagerank_note(s, count));
        pagerank_judge(s);
        TRY(ki_run_keep(run));
        if (2 * (ki_clock() - before) < QUEUED_SECONDS) queued = ki_min(2 * queued, QUEUED_MOST);
    }
done:
    return status;
}

/* ranks = P, each column scaled to add up to 1: rounding has added up to a little less or more, by which
 * the ranks move. */
static kiln_status pagerank_finish(kiln_matrix *ranks, struct pagerank *s) {
    kiln_report *report = &s->run.report;
    kiln_status status;
    double sum[COLUMNS_MOST], moved = 0;
    TRY(kiln_norm(sum, s->on.P, KILN_NORM_1));
    for (int64_t c = 0; c < s->k; c++) {
        moved = fmax(moved, fabs(sum[c] - 1));
        sum[c] = 1 / sum[c];
    }
    TRY(kiln_combine(ranks, sum, s->on.P, NULL, NULL));
    report->objective += moved + ki_epsilon(kiln_matrix_type(ranks));
    ki_report_figure(report, "error_bound", report->objective);
    ki_report_figure(report, "dangling_mass", dangling_mass(s));
    ki_report_figure(report, "weighted", s->on.weighted);
done:
    return status;
}

/* ------------------------------------------------------------------------------------- the registry's row */

/* Vertices are named as the columns of A are. */
static kiln_status check_names(const kiln_model *model) {
    return ki_model_check_names(model, "vertices", ki_model_tensor(model, "ranks")->rows);
}

static const kiln_option options_table[] = {
    KI_OPTION(kiln_pagerank_options, damping, REAL, 0.85, 0.85, 0, 1, NULL,
              "Follow a link with this probability, and else begin anew at a vertex of the teleport vector."),
    KI_OPTION(
        kiln_pagerank_options, unweighted, FLAG, 0, 0, 0, 1, NULL,
        "Every link counts alike, however often it stands in the file. Without it links are followed in "
        "proportion to their weights."),
    KI_OPTION(kiln_pagerank_options, dangling, CHOICE, 1, 1, 1, 2, "personalized|uniform",
              "Where vertices without links lead: to where --personalize says, or to all vertices alike."),
    KI_OPTION(kiln_pagerank_options, tolerance, REAL, 1e-10, 1e-6, 0, INFINITY, NULL,
              "Stop when the ranks, which add up to 1, change by no more than this in one iteration, all "
              "changes added up."),
    KI_OPTION_ITERATIONS(kiln_pagerank_options, 1000, ""),
    KI_OPTION(kiln_pagerank_options, iterations, INTEGER, 0, 0, 1, 9e18, NULL,
              "Make exactly this many iterations, whatever the change."),
    KI_OPTION(
        kiln_pagerank_options, layout, CHOICE, 0, 0, 1, 3, "csr|hybrid|balanced",
        "How the links lie in memory. Without it the way that is predicted to be the fastest: kiln explain "
        "pagerank GRAPH lists them."),
};

const struct ki_algorithm ki_algorithm_pagerank = {
    .shown = {"pagerank", "Rank the vertices of a graph by PageRank",
              KI_OPTIONS(options_table, kiln_pagerank_options), .trial = &ki_trial_pagerank},
    .given = offsetof(kiln_pagerank_options, given),
    .tensors = {{"ranks", 'n', 'k', false, false, false},
                {"personalize", 'n', 'k', true, false, false},
                {"dangling", 'n', '1', true, false, false}},
    .check = check_names,
    .instead = "it ranks the vertices of its own graph; its ranks are the tensor 'ranks'",
    .passes = {60, 0, false}};

/* --------------------------------------------------------------------------------------------- the whole */

kiln_status kiln_pagerank(kiln_matrix *ranks, const kiln_matrix *A, const kiln_pagerank_options *options,
                          kiln_report *report) {
    kiln_status status;
    struct pagerank s = {.run = {.unbounded = true}};
    kiln_pagerank_options *o = &s.options;
    const struct ki_state state[] = {{"odd", .flag = &s.odd},
                                     {"ranks", .matrix = &s.on.P},
                                     {"shares", .matrix = &s.shares},
                                     {"steps", .matrix = &s.on.S}};
    KI_RUN_STATE(&s.run, state);
    TRY(KI_RUN_OPEN(&s.run, pagerank, o, options, report));
    TRY(pagerank_check(ranks, A, o));
    ki_options_fill(o, &ki_algorithm_pagerank, kiln_matrix_type(A));
    s.n = kiln_matrix_rows(A);
    s.k = kiln_matrix_cols(ranks);
    ki_run_on(&s.run, A, o->iterations ? -1 : o->tolerance,
              o->iterations ? o->iterations : o->max_iterations);
    s.run.pass_bytes = 4 * kiln_matrix_nnz(A) + 8 * s.n; /* of the links */
    TRY(pagerank_begin(&s, ranks, A));
    TRY(ki_run_begin(&s.run, (struct ki_described){.options = o,
                                                   .given = {{"the teleport vector", o->personalize},
                                                             {"where dangling leads", o->dangling_to}}}));
    TRY(pagerank_resume(&s));
    TRY(pagerank_iterate(&s));
    TRY(pagerank_finish(ranks, &s));
done:
    return ki_run_close(&s.run, status);
}
