/* Lloyd's iteration: each centre goes to the mean of the rows that are nearest to it, one pass over X each
 * time.
 *
 * A pass says of the centres where their rows are, what the inertia is and how far the centres are from the
 * means; only centres that are too far from them move. So what the report says was found for the very
 * centres that come back, without a pass more. */
#include "algorithms/kmeans/kmeans.h"

#include "algorithms/registry.h"
#include "ops/points/furthest.h"

kiln_status ki_kmeans_pieces(kiln_batch **pieces, struct ki_arena *arena, const struct kmeans *s, int64_t m,
                             int64_t rows) {
    const int64_t count = ki_ceil_div(m, rows);
    int64_t *const offsets = ki_arena_integers(arena, count + 1);
    if (!offsets) return arena->status;
    for (int64_t p = 0; p <= count; p++) offsets[p] = ki_min(p * rows, m);
    return ki_arena_take_batch(arena, pieces, kiln_batch_ragged(pieces, s->device, count, offsets));
}

static kiln_status unit_of(kiln_matrix **U, const kiln_matrix *X) {
    struct ki_arena arena = {0};
    kiln_matrix *const scale = ki_arena_rows(&arena, X, 1), *made = NULL;
    kiln_batch *rows = NULL;
    kiln_status status;
    TRY(arena.status);
    TRY(ki_arena_take_batch(&arena, &rows, kiln_batch_rows(&rows, X)));
    TRY(kiln_batch_reduce(scale, KILN_BATCH_L2, X, rows));
    TRY(kiln_map(scale, KILN_MAP_RECIPROCAL, scale));
    if (kiln_matrix_format(X) == KILN_DENSE)
        made = ki_arena_rows(&arena, X, kiln_matrix_cols(X));
    else
        TRY(ki_arena_take(&arena, &made, kiln_matrix_like(&made, X, kiln_matrix_type(X), NULL)));
    TRY(arena.status);
    TRY(kiln_batch_scale(made, X, scale, rows));
    *U = ki_arena_give(&arena, made);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status unit_rows(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                             kiln_matrix **made, double *sums) {
    kiln_matrix *own = NULL;
    kiln_status status;
    (void)each, (void)row, (void)entry, (void)sums;
    if (ki_lies_in_file(rows)) TRY(kiln_matrix_copy(&own, kiln_matrix_device(rows), KILN_TYPE_DEFAULT, rows));
    TRY(unit_of(made, own ? own : rows));
done:
    kiln_matrix_free(own);
    return status;
}

/* Sparse rows, which may lie in processes, are scaled by the process that has them, and those of a file slice
 * by slice: U then lies in a temporary file. */
kiln_status ki_kmeans_unit(kiln_matrix **U, const kiln_matrix *X) {
    const struct ki_each each = {.run = unit_rows, .made = 1, .type = kiln_matrix_type(X)};
    const bool apart = kiln_matrix_format(X) == KILN_CSR || ki_lies_in_file(X);
    return apart ? ki_each_run(U, NULL, &each, X) : unit_of(U, X);
}

/* ------------------------------------------------------------------------------------------ an iteration */

kiln_status ki_kmeans_assign(struct kmeans *s, const kiln_matrix *X, const kiln_matrix *weights) {
    kiln_status status;
    kiln_bounds *const bounds = X == s->X ? s->bounds : NULL;
    const kiln_assignment wanted = {
        .size = sizeof wanted, .sums = s->sums, .totals = s->totals, .bounds = bounds};
    TRY(kiln_assign(&wanted, X, s->C, weights));
    if (bounds) TRY(kiln_bounds_sums(&s->running, bounds));
    s->run.report.objective = 0;
    for (int64_t c = 0; c < s->k; c++) s->run.report.objective += s->totals[2 * c + 1];
done:
    return status;
}

kiln_status ki_kmeans_move(struct kmeans *s) {
    kiln_status status;
    TRY(ki_vector_set(s->C, s->next));
    TRY(ki_vector_get(s->centres, s->C));
done:
    return status;
}

kiln_status ki_kmeans_row(struct kmeans *s, double moved) {
    const kiln_trace_row row = {.residual = ki_kmeans_residual(s, moved),
                                .objective = s->run.report.objective};
    const kiln_status status = ki_run_row(&s->run, &row);
    if (status == KILN_OK) ki_run_tell(&s->run);
    return status;
}

void ki_kmeans_judge(struct kmeans *s) {
    s->run.unsettled = s->filled > 0;
    ki_run_judge(&s->run);
    if (s->run.report.stopped_by == KILN_STOP_NONE && s->options.patience > 0 &&
        s->idle >= s->options.patience)
        s->run.report.stopped_by = KILN_STOP_STALLED;
}

/* A pass that adds up all rows anew, where the last one corrected the sums of the pass before. */
static kiln_status find_means_anew(struct kmeans *s, double *moved) {
    const int64_t relocated = s->relocated;
    kiln_status status;
    kiln_bounds_refresh(s->bounds);
    TRY(ki_kmeans_means(s, moved));
    s->relocated = relocated;
done:
    return status;
}

static kiln_status lloyd_pass(struct kmeans *s) {
    const bool corrected = s->running;
    double moved;
    kiln_status status;
    TRY(ki_kmeans_means(s, &moved));
    if (corrected && ki_kmeans_residual(s, moved) <= s->options.tolerance && !s->filled)
        TRY(find_means_anew(s, &moved));
    TRY(ki_kmeans_row(s, moved));
    ki_kmeans_judge(s);
    TRY(ki_kmeans_keep(s));
done:
    return status;
}

/* The report of a run that ended before it converged is exact, too; a checkpoint has what the run would have
 * gone on from. */
static kiln_status say_exactly(struct kmeans *s) {
    double moved;
    kiln_status status = KILN_OK;
    kiln_trace_row *last = s->run.report.trace + s->run.report.trace_count - 1;
    if (!s->running || s->run.report.stopped_by == KILN_STOP_TOLERANCE) return KILN_OK;
    TRY(find_means_anew(s, &moved));
    last->residual = s->run.report.residual = ki_kmeans_residual(s, moved);
    last->objective = s->run.report.objective;
done:
    return status;
}

static kiln_status lloyd(struct kmeans *s) {
    kiln_status status = KILN_OK;
    if (!s->run.resumed) TRY(lloyd_pass(s));
    while (ki_run_goes_on(&s->run)) {
        kiln_matrix *const means = s->means;
        s->means = s->C;
        s->C = means;
        s->run.report.iterations++;
        TRY(lloyd_pass(s));
    }
    TRY(say_exactly(s));
    TRY(ki_vector_get(s->centres, s->C));
done:
    return status;
}

/* ---------------------------------------------------------------------------------------- the whole */

static kiln_status kmeans_check(const struct kmeans *s, const kiln_matrix *centres) {
    static const char call[] = "kiln_kmeans";
    const kiln_kmeans_options *o = &s->options;
    kiln_status status;
    if (!centres || !s->X) return ki_fail(KILN_ERR_ARGUMENT, "%s: centres or X is NULL", call);
    TRY(ki_check_matrix(call, "centres", centres, s->X, kiln_matrix_rows(centres), s->n));
    if (o->weights) TRY(ki_check_matrix(call, "weights", o->weights, s->X, s->m, 1));
    if (o->labels) TRY(ki_check_matrix(call, "labels", o->labels, s->X, s->m, 1));
    if (o->clusters) TRY(ki_check_matrix(call, "clusters", o->clusters, s->X, s->k, KI_CLUSTER));
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
    if ((int)o->init < 0 || o->init > KILN_INIT_GIVEN)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.init is %d, but must be 1 to 4", call, (int)o->init);
    if ((int)o->algorithm < 0 || o->algorithm > KILN_KMEANS_BOUNDS)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.algorithm is %d, but must be 1 or 2", call,
                       (int)o->algorithm);
    if (o->restarts < 0 || o->batch < 0 || o->seed < 0 || o->patience < 0)
        return ki_fail(KILN_ERR_ARGUMENT,
                       "%s_options.restarts, batch, seed and patience must not be negative", call);
    if (o->patience > 0 && o->batch == 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.patience needs %s_options.batch", call, call);
    if (s->m == 0 || s->n == 0) return ki_fail(KILN_ERR_DATA, "%s: X has no rows or no columns", call);
    if (s->k < 1 || s->k > s->m) {
        ki_fail(KILN_ERR_DATA, "%s: %lld centres are wanted of an X with %lld rows", call, (long long)s->k,
                (long long)s->m);
        return ki_hint("ask for at least 1 and at most as many as there are rows");
    }
    if (o->weights) TRY(ki_check_weights(call, o->weights));
    if (o->init == KILN_INIT_GIVEN) TRY(ki_check_finite(call, "centres", centres, false));
done:
    return status;
}

/* Names the column in which X has numbers that are not finite. Only called when there is one, or squares
 * overflow. */
static kiln_status name_bad_column(const struct kmeans *s) {
    struct ki_arena arena = {0};
    struct ki_columns columns = {0};
    struct ki_moments rough = {.rough = true};
    kiln_matrix *const ones = ki_arena_fill(&arena, ki_arena_rows(&arena, s->X, 1), 1);
    kiln_status status;
    TRY(arena.status);
    TRY(ki_columns_measure(&columns, &rough, &arena, s->X, ones, (double)s->m));
    status = ki_fail(KILN_ERR_DATA, "kiln_kmeans: the squares of the numbers in X overflow");
done:
    return ki_arena_free(&arena, status);
}

/* The mean variance of the columns, and that all of X is finite: what one centre, at the origin and at the
 * mean, says. */
static kiln_status measure(struct kmeans *s) {
    double totals[2], *const mean = s->next;
    struct ki_arena arena = {0};
    kiln_matrix *const centre = ki_arena_fill(&arena, ki_arena_model(&arena, s->X, 1, s->n), 0),
                       *const sum = ki_arena_model(&arena, s->X, 1, s->n);
    const kiln_assignment wanted = {.sums = sum, .totals = totals};
    kiln_status status;
    TRY(arena.status);
    TRY(kiln_assign(&wanted, s->X, centre, NULL));
    if (!isfinite(totals[1])) TRY(name_bad_column(s));
    if (s->options.weights) TRY(kiln_assign(&wanted, s->X, centre, s->options.weights));
    if (!(totals[0] > 0)) TRY(ki_fail(KILN_ERR_DATA, "kiln_kmeans: all weights are 0"));
    TRY(ki_vector_get(mean, sum));
    for (int64_t j = 0; j < s->n; j++) mean[j] /= totals[0];
    TRY(ki_vector_set(centre, mean));
    TRY(kiln_assign(&(kiln_assignment){.totals = totals}, s->X, centre, s->options.weights));
    s->scale = totals[1] / totals[0] / (double)s->n;
    s->run.report.passes += s->options.weights ? 3 : 2;
done:
    return ki_arena_free(&arena, status);
}

static kiln_status kmeans_begin(struct kmeans *s) {
    struct ki_run *run = &s->run;
    kiln_matrix *unit = NULL;
    kiln_status status;
    int64_t all;
    if (!ki_mul(s->k, s->n, &all)) return ki_fail_nomem(SIZE_MAX, "centres");
    s->C = ki_run_model(run, s->k, s->n);
    s->sums = ki_run_model(run, s->k, s->n);
    s->means = ki_run_model(run, s->k, s->n);
    s->per = ki_run_model(run, s->k, 1);
    s->centres = ki_run_reals(run, all);
    s->next = ki_run_reals(run, all);
    s->best = ki_run_reals(run, all);
    s->totals = ki_run_reals(run, 2 * s->k);
    s->best_totals = ki_run_reals(run, 2 * s->k);
    s->found = ki_run_reals(run, 2 * s->k);
    s->seen = ki_run_reals(run, s->k);
    TRY(run->arena.status);
    if (s->options.spherical) {
        TRY(ki_arena_take(&run->arena, &unit, ki_kmeans_unit(&unit, s->X)));
        s->X = unit;
    }
    TRY(ki_kmeans_open_bounds(s));
    TRY(measure(s));
done:
    return status;
}

static kiln_status take_given(struct kmeans *s, const kiln_matrix *centres) {
    kiln_status status;
    TRY(ki_vector_get(s->next, centres));
    memcpy(s->centres, s->next, (size_t)(s->k * s->n) * sizeof *s->next);
    for (int64_t c = 0; c < s->k; c++) ki_kmeans_place(s, c);
    TRY(ki_vector_set(s->C, s->next));
done:
    return status;
}

/* One start to its end, or from where a run goes on; it stays the best if its inertia is the least so far. */
static kiln_status run_once(struct kmeans *s, const kiln_matrix *given) {
    const kiln_report *report = &s->run.report;
    kiln_report *best = &s->run.best;
    kiln_status status = KILN_OK;
    if (!s->run.resumed) {
        ki_run_start(&s->run);
        if (s->running) TRY(ki_kmeans_open_bounds(s));
        TRY(s->options.init == KILN_INIT_GIVEN ? take_given(s, given) : ki_kmeans_start(s));
        s->cut = s->run.cancelled;
    }
    if (s->options.batch > 0) TRY(ki_vector_get(s->centres, s->C));
    TRY(s->options.batch > 0 ? ki_kmeans_batches(s) : lloyd(s));
    if (best->stopped_by != KILN_STOP_NONE && !(report->objective < best->objective)) goto done;
    memcpy(s->best, s->centres, (size_t)(s->k * s->n) * sizeof *s->best);
    memcpy(s->best_totals, s->found, (size_t)(2 * s->k) * sizeof *s->best_totals);
    best->objective = report->objective;
    best->residual = report->residual;
    best->stopped_by = report->stopped_by;
    s->best_tired = s->tired;
done:
    return status;
}

/* clusters = weight, inertia and radius of each; labels, which the radius needs, in the same pass. */
static kiln_status give_clusters(struct kmeans *s) {
    struct ki_arena arena = {0};
    double *const clusters = ki_arena_reals(&arena, s->k * KI_CLUSTER), *const squares = s->next;
    kiln_matrix *const distances = ki_arena_rows(&arena, s->X, 1);
    kiln_matrix *const labels = s->options.labels ? s->options.labels : ki_arena_rows(&arena, s->X, 1);
    kiln_status status;
    TRY(arena.status);
    TRY(kiln_assign(&(kiln_assignment){.labels = labels, .distances = distances}, s->X, s->C, NULL));
    TRY(ki_furthest(s->per, distances, labels));
    TRY(ki_vector_get(squares, s->per));
    for (int64_t c = 0; c < s->k; c++) {
        memcpy(clusters + c * KI_CLUSTER, s->best_totals + 2 * c, 2 * sizeof *clusters);
        clusters[c * KI_CLUSTER + 2] = sqrt(squares[c]);
    }
    TRY(ki_vector_set(s->options.clusters, clusters));
done:
    return ki_arena_free(&arena, status);
}

/* Some centres have no rows: because there are no more different ones, or because the run has ended so. */
static kiln_status say_empty(struct kmeans *s, int64_t filled) {
    kiln_status status;
    TRY(ki_kmeans_different(s));
    ki_report_figure(&s->run.report, "different", (double)s->different);
    if (s->different < s->k)
        ki_report_warn(&s->run.report, "clusters", "fewer clusters",
                       "number of distinct clusters (%lld) found smaller than the number wanted (%lld): the "
                       "data have %lld different rows",
                       (long long)filled, (long long)s->k, (long long)s->different);
    else
        ki_report_warn(&s->run.report, "clusters", "other starts, or fewer clusters",
                       "number of distinct clusters (%lld) found smaller than the number wanted (%lld): the "
                       "others had no rows at the end",
                       (long long)filled, (long long)s->k);
done:
    return status;
}

static void say_at_rest(struct kmeans *s) {
    const bool patient = s->best_tired;
    ki_report_warn(&s->run.report, patient ? "patience" : "batches", "go on from this model without batches",
                   "not converged: batches no longer %s, but the residual of all rows is %.1e, above the "
                   "tolerance %.1e",
                   patient ? "lower the inertia" : "move the centres", s->run.best.residual,
                   s->options.tolerance);
}

static kiln_status give(struct kmeans *s, kiln_matrix *centres) {
    kiln_status status = KILN_OK;
    int64_t filled = 0;
    for (int64_t c = 0; c < s->k; c++) filled += s->best_totals[2 * c] > 0;
    ki_report_figure(&s->run.report, "clusters", (double)filled);
    ki_report_figure(&s->run.report, "relocated", (double)s->relocated);
    if (filled < s->k) TRY(say_empty(s, filled));
    if (s->options.batch > 0 && s->run.best.stopped_by == KILN_STOP_STALLED) say_at_rest(s);
    ki_kmeans_close_bounds(s);
    memcpy(s->next, s->best, (size_t)(s->k * s->n) * sizeof *s->next);
    TRY(ki_kmeans_move(s));
    if (s->options.clusters)
        TRY(give_clusters(s));
    else if (s->options.labels)
        TRY(kiln_assign(&(kiln_assignment){.labels = s->options.labels}, s->X, s->C, NULL));
    s->run.report.passes += s->options.clusters || s->options.labels;
    TRY(ki_vector_set(centres, s->best));
done:
    return status;
}

kiln_status kiln_kmeans(kiln_matrix *centres, const kiln_matrix *X, const kiln_kmeans_options *options,
                        kiln_report *report) {
    kiln_status status;
    struct kmeans s = {.X = X};
    struct ki_run *const run = &s.run;
    kiln_kmeans_options *o = &s.options;
    struct ki_state state[KI_KMEANS_STATE];
    TRY(KI_RUN_OPEN(run, kmeans, o, options, report));
    if (X && centres) {
        s.device = kiln_matrix_device(X);
        s.type = kiln_matrix_type(X);
        s.m = kiln_matrix_rows(X);
        s.n = kiln_matrix_cols(X);
        s.k = kiln_matrix_rows(centres);
    }
    TRY(kmeans_check(&s, centres));
    ki_options_fill(o, &ki_algorithm_kmeans, s.type);
    if (o->init == KILN_INIT_GIVEN) o->restarts = 1;
    ki_run_on(run, X, o->tolerance, o->max_iterations);
    run->restarts = o->restarts;
    run->report.objective = run->report.residual = NAN;
    TRY(kmeans_begin(&s));
    s.draws = (struct ki_draws){.seed = (uint64_t)o->seed, .stream = KI_STREAM_KMEANS};
    TRY(ki_run_begin(run, (struct ki_described){.options = o, .given = {{"the weights", o->weights}}}));
    ki_kmeans_state(state, &s);
    TRY(ki_kmeans_resume(&s));
    for (; run->turn < run->restarts && !run->cancelled; run->turn++, run->resumed = false)
        TRY(run_once(&s, centres));
    TRY(give(&s, centres));
    const bool whole = run->turn == run->restarts && run->report.stopped_by != KILN_STOP_CANCELLED;
    run->report.stopped_by = whole ? run->best.stopped_by : KILN_STOP_CANCELLED;
    run->report.objective = run->best.objective;
    run->report.residual = run->best.residual;
done:
    kiln_bounds_free(s.bounds);
    return ki_run_close(run, status);
}
