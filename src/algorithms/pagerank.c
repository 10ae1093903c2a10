/* p = (1 - d) t + d (A^T D^-1 p + m g): power iteration, each iteration one walk over the links for all
 * columns (ops/graph/ranks.c).
 *
 * The map is a contraction by d in the 1-norm. So what one iteration changes bounds what all further ones
 * would, by d / (1 - d), and what rounding does to an iteration, r, comes to r / (1 - d) in all. Whether
 * an iteration was the last one is found out where the ranks are: on a GPU several are queued at once, and
 * those behind the last do nothing. */
#include "algorithms/checkpoint/checkpoint.h"
#include "algorithms/registry.h"

enum { COLUMNS_MOST = 64, MASS = 0, GOAL = 1, TAKEN = 2, ACTIVE = 3, HEAD = 4, QUEUED_MOST = 16 };
static const double QUEUED_SECONDS = 0.2;
static const char call[] = "kiln_pagerank";

struct pagerank {
    kiln_pagerank_options options; /* defaults filled in */
    kiln_ranks on;
    kiln_matrix *teleport, *dangling;
    double *state; /* S on the host */
    bool odd;      /* so many steps, for a checkpoint */
    int64_t n, k;
    double start;
    kiln_report report;
};

/* ---- checks ---- */

static kiln_status check_vector(const char *name, const kiln_matrix *v, const kiln_matrix *A, int64_t k) {
    const bool one = v && kiln_matrix_cols(v) == 1;
    return v ? ki_check_matrix(call, name, v, A, kiln_matrix_rows(A), one ? 1 : k) : KILN_OK;
}

static kiln_status check(const kiln_matrix *ranks, const kiln_matrix *A,
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
                ki_hint("give the graph as a sparse matrix or a list of links"));
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

/* Without negative numbers |v| - v is 0 throughout. */
static kiln_status check_signs(const char *name, const kiln_matrix *v) {
    kiln_status status;
    kiln_matrix *twice = NULL;
    double largest[COLUMNS_MOST], one[COLUMNS_MOST], minus_one[COLUMNS_MOST];
    const int64_t cols = kiln_matrix_cols(v);
    for (int64_t c = 0; c < cols; c++) one[c] = 1, minus_one[c] = -1;
    TRY(kiln_matrix_dense(&twice, kiln_matrix_device(v), kiln_matrix_type(v), kiln_matrix_rows(v), cols,
                          NULL));
    TRY(kiln_map(twice, KILN_MAP_ABS, v));
    TRY(kiln_combine(twice, one, twice, minus_one, v));
    TRY(kiln_norm(largest, twice, KILN_NORM_MAX));
    for (int64_t c = 0; c < cols; c++)
        if (largest[c] > 0)
            TRY(ki_fail(KILN_ERR_DATA, "%s: column %lld of %s has negative numbers", call, (long long)c,
                        name));
done:
    kiln_matrix_free(twice);
    return status;
}

/* to = v, each column scaled to add up to 1. */
static kiln_status distribution(kiln_matrix *to, const char *name, const kiln_matrix *v) {
    kiln_status status;
    double sum[COLUMNS_MOST];
    const int64_t cols = kiln_matrix_cols(v);
    TRY(ki_check_finite(call, name, v, true));
    TRY(check_signs(name, v));
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

static kiln_status distribution_new(kiln_matrix **to, const char *name, const kiln_matrix *v) {
    if (!v) return KILN_OK;
    const kiln_status status = kiln_matrix_dense(to, kiln_matrix_device(v), kiln_matrix_type(v),
                                                 kiln_matrix_rows(v), kiln_matrix_cols(v), NULL);
    return status == KILN_OK ? distribution(*to, name, v) : status;
}

/* ---- the run ---- */

static kiln_status allocate(struct pagerank *s, const kiln_matrix *A) {
    kiln_status status;
    kiln_device *device = kiln_matrix_device(A);
    const kiln_type type = kiln_matrix_type(A);
    const int64_t n = s->n, k = s->k, rows = HEAD + QUEUED_MOST;
    kiln_device_info info = {0};
    TRY(kiln_device_get_info(device, &info));
    TRY(kiln_matrix_dense(&s->on.P, device, type, n, k, NULL));
    TRY(kiln_matrix_dense(&s->on.C, device, type, n, k, NULL));
    TRY(kiln_matrix_dense(&s->on.next, device, type, n, k, NULL));
    TRY(kiln_matrix_dense(&s->on.factor, device, type, n, 1, NULL));
    TRY(kiln_matrix_dense(&s->on.S, device, info.has_f64 ? KILN_F64 : KILN_F32, rows, k, NULL));
    s->state = ki_calloc((size_t)(rows * k) * sizeof *s->state);
    if (!s->state) TRY(ki_fail_nomem((size_t)(rows * k) * sizeof *s->state, "the state of a run"));
done:
    return status;
}

static kiln_status first_ranks(struct pagerank *s, const kiln_matrix *ranks) {
    double one[COLUMNS_MOST];
    for (int64_t c = 0; c < s->k; c++) one[c] = 1;
    if (s->options.warm_start) return distribution(s->on.P, "the start", ranks);
    if (!s->teleport) return kiln_fill(s->on.P, 1.0 / (double)s->n);
    return kiln_combine(s->on.P, one, s->teleport, NULL, NULL);
}

/* The change that ends it; below 0: none does. */
static double goal_of(const struct pagerank *s) {
    return s->options.iterations ? -1 : s->options.tolerance;
}

static kiln_status begin(struct pagerank *s, const kiln_matrix *ranks, const kiln_matrix *A) {
    kiln_status status;
    bool weighted = false;
    double largest;
    TRY(allocate(s, A));
    TRY(distribution_new(&s->teleport, "personalize", s->options.personalize));
    TRY(distribution_new(&s->dangling, "dangling_to", s->options.dangling_to));
    TRY(first_ranks(s, ranks));
    s->on.A = A;
    s->on.layout = s->options.layout;
    if (!s->options.unweighted) TRY(ki_links_weighted(&weighted, A));
    s->on.weighted = weighted;
    s->on.damping = s->options.damping;
    s->on.teleport = s->teleport;
    s->on.dangling = s->dangling                                         ? s->dangling
                     : s->options.dangling == KILN_DANGLING_PERSONALIZED ? s->teleport
                                                                         : NULL;
    for (int64_t c = 0; c < s->k; c++) s->state[GOAL * s->k + c] = goal_of(s);
    TRY(ki_vector_set(s->on.S, s->state));
    TRY(kiln_ranks_begin(&s->on));
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
    for (int64_t c = 0; c < s->k; c++) mass = fmax(mass, s->state[MASS * s->k + c]);
    return mass;
}

/* Of p' = T p + r, with ||T p - T q|| <= d ||p - q|| and q = T q: ||p' - q|| <= (d ||p' - p|| + ||r||) /
 * (1 - d). */
static double error_bound(const struct pagerank *s, double residual) {
    const double d = s->options.damping;
    double measured;
    const double rounding = ki_ranks_error(&measured, &s->on, dangling_mass(s));
    return d < 1 ? (d * (1 + measured) * residual + rounding) / (1 - d) : INFINITY;
}

static int64_t most_of(const kiln_pagerank_options *o) {
    return o->iterations ? o->iterations : o->max_iterations;
}

static bool cancelled(const struct pagerank *s, const kiln_trace_row *row) {
    const kiln_control *control = &s->options.control;
    const kiln_progress now = {"solve",
                               row->iteration,
                               most_of(&s->options),
                               row->objective,
                               row->residual,
                               row->seconds,
                               (4 * kiln_matrix_nnz(s->on.A) + 8 * s->n) * row->iteration,
                               0};
    return control->progress && control->progress(control->user, &now) != 0;
}

/* Takes what `count` queued iterations have left to the report. */
static kiln_status note(struct pagerank *s, int64_t count) {
    kiln_report *report = &s->report;
    kiln_status status;
    TRY(ki_vector_get(s->state, s->on.S));
    const int64_t before = report->iterations, taken = (int64_t)s->state[TAKEN * s->k] - before;
    for (int64_t i = 0; i < ki_min(taken, count); i++) {
        kiln_trace_row row = {.iteration = before + i + 1, .seconds = ki_clock() - s->start};
        const double *change = s->state + (HEAD + (before + i) % QUEUED_MOST) * s->k;
        for (int64_t c = 0; c < s->k; c++)
            if (!(change[c] <= row.residual)) row.residual = change[c];
        row.objective = error_bound(s, row.residual);
        TRY(ki_report_row(report, &row));
        report->iterations = report->passes = row.iteration;
        report->residual = row.residual;
        report->objective = row.objective;
        if (cancelled(s, &row)) report->stopped_by = KILN_STOP_CANCELLED;
    }
done:
    return status;
}

/* In exact arithmetic `span` iterations shrink the change by d^span <= e^-2. Where they have not even
 * halved it, rounding keeps it up. Asked after multiples of QUEUED_MOST iterations alone, so that it does
 * not depend on how many were queued. */
static bool stalled(const struct pagerank *s) {
    const kiln_report *report = &s->report;
    const double span = ceil(2 / (1 - s->options.damping));
    if (s->options.iterations || report->iterations % QUEUED_MOST || !(span < (double)report->trace_count))
        return false;
    const kiln_trace_row *last = report->trace + report->trace_count - 1;
    return last->residual > last[-(int64_t)span].residual / 2;
}

static void judge(struct pagerank *s, int64_t most) {
    kiln_report *report = &s->report;
    if (!isfinite(report->residual))
        report->stopped_by = KILN_STOP_DIVERGED;
    else if (!s->options.iterations && report->residual <= s->options.tolerance)
        report->stopped_by = KILN_STOP_TOLERANCE;
    else if (report->stopped_by == KILN_STOP_NONE && stalled(s))
        report->stopped_by = KILN_STOP_STALLED;
    else if (report->stopped_by == KILN_STOP_NONE && report->iterations >= most)
        report->stopped_by = KILN_STOP_ITERATIONS;
    report->converged = report->stopped_by == KILN_STOP_TOLERANCE ||
                        (s->options.iterations && report->stopped_by == KILN_STOP_ITERATIONS);
}

/* C after an odd number of steps is in `next`, as kiln_ranks_step changes the two in each. */
enum { STATE = 4 };
static void state_of(struct ki_state state[STATE], struct pagerank *s) {
    const struct ki_state parts[STATE] = {{"odd", .flag = &s->odd},
                                          {"ranks", .matrix = s->on.P},
                                          {"shares", .matrix = s->odd ? s->on.next : s->on.C},
                                          {"steps", .matrix = s->on.S}};
    memcpy(state, parts, sizeof parts);
}

/* Goes on from a checkpoint, if there is one; the goal may be another. */
static kiln_status resume(struct pagerank *s) {
    kiln_status status = KILN_OK;
    struct ki_state state[STATE];
    bool resumed;
    state_of(state, s);
    TRY(ki_checkpoint_look(&s->options.control, state, 1)); /* odd, which decides where the shares are */
    state_of(state, s);
    TRY(ki_checkpoint_resume(&resumed, &s->options.control, state, STATE));
    if (!resumed) return KILN_OK;
    TRY(ki_vector_get(s->state, s->on.S));
    if (s->odd != (s->report.iterations % 2 == 1))
        TRY(ki_fail(KILN_ERR_MODEL, "%s: the checkpoint's part 'odd' does not fit its %lld iterations", call,
                    (long long)s->report.iterations));
    for (int64_t c = 0; c < s->k; c++) {
        s->state[GOAL * s->k + c] = goal_of(s);
        s->state[TAKEN * s->k + c] = (double)s->report.iterations;
        s->state[ACTIVE * s->k + c] = 1;
    }
    TRY(ki_vector_set(s->on.S, s->state));
done:
    return status;
}

static kiln_status iterate(struct pagerank *s) {
    kiln_report *report = &s->report;
    const int64_t most = most_of(&s->options);
    struct ki_state state[STATE];
    int64_t queued = 1;
    kiln_status status;
    TRY(resume(s));
    while (report->stopped_by == KILN_STOP_NONE) {
        const int64_t count =
            ki_min(ki_min(queued, most - report->iterations), QUEUED_MOST - report->iterations % QUEUED_MOST);
        const double before = ki_clock();
        TRY(kiln_ranks_step(&s->on, report->iterations, count));
        TRY(note(s, count));
        judge(s, most);
        s->odd = report->iterations % 2 == 1;
        state_of(state, s);
        TRY(ki_checkpoint_step(&s->options.control, state, STATE, report->stopped_by));
        if (2 * (ki_clock() - before) < QUEUED_SECONDS) queued = ki_min(2 * queued, QUEUED_MOST);
    }
done:
    return status;
}

/* ranks = P, each column scaled to add up to 1: rounding has added up to a little less or more, by which
 * the ranks move. */
static kiln_status finish(kiln_matrix *ranks, struct pagerank *s) {
    kiln_status status;
    double sum[COLUMNS_MOST], moved = 0;
    TRY(kiln_norm(sum, s->on.P, KILN_NORM_1));
    for (int64_t c = 0; c < s->k; c++) {
        moved = fmax(moved, fabs(sum[c] - 1));
        sum[c] = 1 / sum[c];
    }
    TRY(kiln_combine(ranks, sum, s->on.P, NULL, NULL));
    s->report.objective += moved + ki_epsilon(kiln_matrix_type(ranks));
    ki_report_figure(&s->report, "error_bound", s->report.objective);
    ki_report_figure(&s->report, "dangling", dangling_mass(s));
    ki_report_figure(&s->report, "weighted", s->on.weighted);
    s->report.seconds = ki_clock() - s->start;
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
    KI_OPTION(kiln_pagerank_options, max_iterations, INTEGER, 1000, 1000, 1, 9e18, NULL,
              "Stop after this many iterations, converged or not."),
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
    struct pagerank s = {.start = ki_clock()};
    TRY(KI_TAKE(kiln_pagerank_options, &s.options, options));
    TRY(ki_options_check(&s.options, &ki_algorithm_pagerank));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    TRY(check(ranks, A, &s.options));
    ki_options_fill(&s.options, &ki_algorithm_pagerank, kiln_matrix_type(A));
    s.n = kiln_matrix_rows(A);
    s.k = kiln_matrix_cols(ranks);
    s.report.tolerance = s.options.iterations ? INFINITY : s.options.tolerance;
    TRY(ki_report_begin(&s.report));
    TRY(begin(&s, ranks, A));
    TRY(ki_checkpoint_begin(&(struct ki_run){.control = &s.options.control,
                                             .algorithm = "pagerank",
                                             .options = &s.options,
                                             .X = A,
                                             .given = {{"the teleport vector", s.options.personalize},
                                                       {"where dangling leads", s.options.dangling_to}},
                                             .report = &s.report,
                                             .start = &s.start,
                                             .most = most_of(&s.options)}));
    TRY(iterate(&s));
    TRY(finish(ranks, &s));
    ki_report_give(report, &s.report); /* of an infinite objective, no bound, too */
done:
    kiln_report_free(&s.report);
    ki_free(s.state);
    kiln_matrix_free(s.on.P);
    kiln_matrix_free(s.on.C);
    kiln_matrix_free(s.on.next);
    kiln_matrix_free(s.on.factor);
    kiln_matrix_free(s.on.S);
    kiln_matrix_free(s.teleport);
    kiln_matrix_free(s.dangling);
    return status;
}
