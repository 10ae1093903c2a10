/* Lloyd's iteration: each centre goes to the mean of the rows that are nearest to it, one pass over X each
 * time.
 *
 * A pass says of the centres where their rows are, what the inertia is and how far the centres are from the
 * means; only centres that are too far from them move. So what the report says was found for the very
 * centres that come back, without a pass more. */
#include "algorithms/kmeans/kmeans.h"

#include "algorithms/registry.h"

/* splitmix64 of a counter: the same numbers everywhere. */
double ki_kmeans_random(struct kmeans *s) {
    uint64_t z = (uint64_t)s->options.seed * 0xd1342543de82ef95u + (uint64_t)++s->draws * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

void ki_kmeans_tell(struct kmeans *s) {
    const kiln_control *control = &s->options.control;
    const kiln_progress now = {"solve",
                               s->report.iterations,
                               s->options.max_iterations,
                               s->objective,
                               s->residual,
                               ki_clock() - s->began,
                               ki_bytes_of(s->X) * s->report.passes,
                               0};
    if (control->progress && control->progress(control->user, &now) != 0) s->cancelled = true;
}

kiln_status ki_kmeans_pieces(kiln_batch **pieces, const struct kmeans *s, int64_t m, int64_t rows) {
    const int64_t count = ki_ceil_div(m, rows);
    int64_t *offsets = ki_alloc((size_t)(count + 1) * sizeof *offsets);
    kiln_status status;
    if (!offsets) return ki_fail_nomem((size_t)(count + 1) * sizeof *offsets, "pieces of rows");
    for (int64_t p = 0; p <= count; p++) offsets[p] = ki_min(p * rows, m);
    status = kiln_batch_ragged(pieces, s->device, count, offsets);
    ki_free(offsets);
    return status;
}

static kiln_status unit_of(kiln_matrix **U, const kiln_matrix *X) {
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    kiln_matrix *scale = NULL, *made = NULL;
    kiln_batch *rows = NULL;
    kiln_status status;
    TRY(kiln_batch_rows(&rows, X));
    TRY(kiln_matrix_dense(&scale, device, type, kiln_matrix_rows(X), 1, NULL));
    TRY(kiln_batch_reduce(scale, KILN_BATCH_L2, X, rows));
    TRY(kiln_map(scale, KILN_MAP_RECIPROCAL, scale));
    if (kiln_matrix_format(X) == KILN_DENSE)
        TRY(kiln_matrix_dense(&made, device, type, kiln_matrix_rows(X), kiln_matrix_cols(X), NULL));
    else
        TRY(kiln_matrix_like(&made, X, type, NULL));
    TRY(kiln_batch_scale(made, X, scale, rows));
    *U = made;
    made = NULL;
done:
    kiln_batch_free(rows);
    kiln_matrix_free(scale);
    kiln_matrix_free(made);
    return status;
}

static kiln_status unit_rows(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                             kiln_matrix **made, double *sums) {
    (void)each, (void)row, (void)entry, (void)sums;
    return unit_of(made, rows);
}

/* Sparse rows, which may lie in processes, are scaled by the process that has them. */
kiln_status ki_kmeans_unit(kiln_matrix **U, const kiln_matrix *X) {
    const struct ki_each each = {.run = unit_rows, .made = 1, .type = kiln_matrix_type(X)};
    return kiln_matrix_format(X) == KILN_CSR ? ki_each_run(U, NULL, &each, X) : unit_of(U, X);
}

/* ------------------------------------------------------------------------------------------ an iteration */

kiln_status ki_kmeans_assign(struct kmeans *s, const kiln_matrix *X, const kiln_matrix *weights) {
    kiln_status status;
    kiln_bounds *const bounds = X == s->X ? s->bounds : NULL;
    const kiln_assignment wanted = {
        .size = sizeof wanted, .sums = s->sums, .totals = s->totals, .bounds = bounds};
    TRY(kiln_assign(&wanted, X, s->C, weights));
    if (bounds) TRY(kiln_bounds_sums(&s->running, bounds));
    s->objective = 0;
    for (int64_t c = 0; c < s->k; c++) s->objective += s->totals[2 * c + 1];
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

static double residual_of(const struct kmeans *s, double moved) {
    return s->scale > 0 ? moved / s->scale : moved;
}

kiln_status ki_kmeans_row(struct kmeans *s, double moved) {
    kiln_status status;
    s->residual = residual_of(s, moved);
    TRY(ki_report_row(&s->report, &(kiln_trace_row){.iteration = s->report.iterations,
                                                    .residual = s->residual,
                                                    .objective = s->objective,
                                                    .seconds = ki_clock() - s->began}));
    ki_kmeans_tell(s);
done:
    return status;
}

void ki_kmeans_judge(struct kmeans *s) {
    const int64_t done = s->options.batch > 0 ? s->round : s->report.iterations - s->begun;
    s->report.stopped_by = s->residual <= s->options.tolerance && !s->filled ? KILN_STOP_TOLERANCE
                           : s->cancelled                                    ? KILN_STOP_CANCELLED
                           : done >= s->options.max_iterations               ? KILN_STOP_ITERATIONS
                                                                             : KILN_STOP_NONE;
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
    if (corrected && residual_of(s, moved) <= s->options.tolerance && !s->filled)
        TRY(find_means_anew(s, &moved));
    TRY(ki_kmeans_row(s, moved));
    ki_kmeans_judge(s);
    TRY(ki_kmeans_keep(s));
done:
    return status;
}

/* What is said of a run that ended before it converged is exact, too; a checkpoint has what the run would
 * have gone on from. */
static kiln_status say_exactly(struct kmeans *s) {
    double moved;
    kiln_status status = KILN_OK;
    kiln_trace_row *last = s->report.trace + s->report.trace_count - 1;
    if (!s->running || s->report.stopped_by == KILN_STOP_TOLERANCE) return KILN_OK;
    TRY(find_means_anew(s, &moved));
    last->residual = s->residual = residual_of(s, moved);
    last->objective = s->objective;
done:
    return status;
}

/* `passed`: in a run that goes on, the pass over these centres was made before. */
static kiln_status lloyd(struct kmeans *s, bool passed) {
    kiln_status status = KILN_OK;
    for (;; s->report.iterations++, passed = false) {
        if (!passed) TRY(lloyd_pass(s));
        if (s->report.stopped_by != KILN_STOP_NONE) break;
        kiln_matrix *const means = s->means;
        s->means = s->C;
        s->C = means;
    }
    TRY(say_exactly(s));
    TRY(ki_vector_get(s->centres, s->C));
done:
    return status;
}

/* ---------------------------------------------------------------------------------------- the whole */

static kiln_status check(const struct kmeans *s, const kiln_matrix *centres) {
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
    if (o->restarts < 0 || o->batch < 0 || o->seed < 0)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.restarts, batch and seed must not be negative", call);
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
    struct ki_columns columns = {0};
    struct ki_moments rough = {.rough = true};
    kiln_matrix *ones = NULL;
    kiln_status status;
    TRY(kiln_matrix_dense(&ones, s->device, s->type, s->m, 1, NULL));
    TRY(kiln_fill(ones, 1));
    TRY(ki_columns_measure(&columns, &rough, s->options.spherical ? s->unit : s->X, ones, (double)s->m));
    status = ki_fail(KILN_ERR_DATA, "kiln_kmeans: the squares of the numbers in X overflow");
done:
    ki_columns_free(&columns);
    kiln_matrix_free(ones);
    return status;
}

/* The mean variance of the columns, and that all of X is finite: what one centre, at the origin and at the
 * mean, says. */
static kiln_status measure(struct kmeans *s) {
    double totals[2], *mean = s->next;
    kiln_matrix *centre = NULL, *sum = NULL;
    kiln_status status;
    TRY(kiln_matrix_dense(&centre, s->device, s->type, 1, s->n, NULL));
    TRY(kiln_matrix_dense(&sum, s->device, s->type, 1, s->n, NULL));
    const kiln_assignment wanted = {.sums = sum, .totals = totals};
    TRY(kiln_fill(centre, 0));
    TRY(kiln_assign(&wanted, s->X, centre, NULL));
    if (!isfinite(totals[1])) TRY(name_bad_column(s));
    if (s->options.weights) TRY(kiln_assign(&wanted, s->X, centre, s->options.weights));
    if (!(totals[0] > 0)) TRY(ki_fail(KILN_ERR_DATA, "kiln_kmeans: all weights are 0"));
    TRY(ki_vector_get(mean, sum));
    for (int64_t j = 0; j < s->n; j++) mean[j] /= totals[0];
    TRY(ki_vector_set(centre, mean));
    TRY(kiln_assign(&(kiln_assignment){.totals = totals}, s->X, centre, s->options.weights));
    s->scale = totals[1] / totals[0] / (double)s->n;
    s->report.passes += s->options.weights ? 3 : 2;
done:
    kiln_matrix_free(centre);
    kiln_matrix_free(sum);
    return status;
}

static kiln_status allocate(struct kmeans *s) {
    kiln_status status;
    int64_t elements, bytes;
    if (!ki_mul(s->k, s->n, &elements) || !ki_mul3(3 * elements + 6 * s->k, sizeof(double), 1, &bytes))
        return ki_fail_nomem(SIZE_MAX, "centres");
    TRY(ki_report_begin(&s->report));
    TRY(kiln_matrix_dense(&s->C, s->device, s->type, s->k, s->n, NULL));
    TRY(kiln_matrix_dense(&s->sums, s->device, s->type, s->k, s->n, NULL));
    TRY(kiln_matrix_dense(&s->means, s->device, s->type, s->k, s->n, NULL));
    TRY(kiln_matrix_dense(&s->per, s->device, s->type, s->k, 1, NULL));
    if (!(s->centres = ki_alloc((size_t)bytes))) return ki_fail_nomem((size_t)bytes, "centres");
    s->next = s->centres + elements;
    s->best = s->next + elements;
    s->totals = s->best + elements;
    s->best_totals = s->totals + 2 * s->k;
    s->found = s->best_totals + 2 * s->k;
    if (!s->options.spherical) return KILN_OK;
    TRY(ki_kmeans_unit(&s->unit, s->X));
    s->X = s->unit;
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
static kiln_status run_once(struct kmeans *s, const kiln_matrix *given, bool resumed) {
    kiln_report *report = &s->report, *best = &s->best_so_far;
    kiln_status status = KILN_OK;
    if (!resumed) {
        report->stopped_by = KILN_STOP_NONE;
        s->begun = report->iterations;
        if (s->running) TRY(ki_kmeans_open_bounds(s));
        TRY(s->options.init == KILN_INIT_GIVEN ? take_given(s, given) : ki_kmeans_start(s));
        s->cut = s->cancelled;
    }
    if (s->options.batch > 0) TRY(ki_vector_get(s->centres, s->C));
    TRY(s->options.batch > 0 ? ki_kmeans_batches(s, resumed) : lloyd(s, resumed));
    if (best->stopped_by != KILN_STOP_NONE && !(s->objective < best->objective)) goto done;
    memcpy(s->best, s->centres, (size_t)(s->k * s->n) * sizeof *s->best);
    memcpy(s->best_totals, s->found, (size_t)(2 * s->k) * sizeof *s->best_totals);
    best->objective = s->objective;
    best->residual = s->residual;
    best->stopped_by = report->stopped_by;
done:
    return status;
}

/* clusters = weight, inertia and radius of each; labels, which the radius needs, in the same pass. */
static kiln_status give_clusters(struct kmeans *s) {
    const size_t bytes = (size_t)s->k * KI_CLUSTER * sizeof(double);
    kiln_matrix *distances = NULL, *own_labels = NULL;
    double *clusters = ki_alloc(bytes), *const squares = s->next;
    kiln_status status;
    if (!clusters) return ki_fail_nomem(bytes, "clusters");
    TRY(kiln_matrix_dense(&distances, s->device, s->type, s->m, 1, NULL));
    if (!s->options.labels) TRY(kiln_matrix_dense(&own_labels, s->device, s->type, s->m, 1, NULL));
    kiln_matrix *const labels = s->options.labels ? s->options.labels : own_labels;
    TRY(kiln_assign(&(kiln_assignment){.labels = labels, .distances = distances}, s->X, s->C, NULL));
    TRY(ki_furthest(s->per, distances, labels));
    TRY(ki_vector_get(squares, s->per));
    for (int64_t c = 0; c < s->k; c++) {
        memcpy(clusters + c * KI_CLUSTER, s->best_totals + 2 * c, 2 * sizeof *clusters);
        clusters[c * KI_CLUSTER + 2] = sqrt(squares[c]);
    }
    TRY(ki_vector_set(s->options.clusters, clusters));
done:
    kiln_matrix_free(distances);
    kiln_matrix_free(own_labels);
    ki_free(clusters);
    return status;
}

/* Some centres have no rows: because there are no more different ones, or because the run has ended so. */
static kiln_status say_empty(struct kmeans *s, int64_t filled) {
    kiln_status status;
    TRY(ki_kmeans_different(s));
    ki_report_figure(&s->report, "different", (double)s->different);
    if (s->different < s->k)
        ki_report_warn(&s->report, "clusters", "fewer clusters",
                       "number of distinct clusters (%lld) found smaller than the number wanted (%lld): the "
                       "data have %lld different rows",
                       (long long)filled, (long long)s->k, (long long)s->different);
    else
        ki_report_warn(&s->report, "clusters", "other starts, or fewer clusters",
                       "number of distinct clusters (%lld) found smaller than the number wanted (%lld): the "
                       "others had no rows at the end",
                       (long long)filled, (long long)s->k);
done:
    return status;
}

static kiln_status give(struct kmeans *s, kiln_matrix *centres) {
    kiln_status status = KILN_OK;
    int64_t filled = 0;
    for (int64_t c = 0; c < s->k; c++) filled += s->best_totals[2 * c] > 0;
    ki_report_figure(&s->report, "clusters", (double)filled);
    ki_report_figure(&s->report, "relocated", (double)s->relocated);
    if (filled < s->k) TRY(say_empty(s, filled));
    ki_kmeans_close_bounds(s);
    memcpy(s->next, s->best, (size_t)(s->k * s->n) * sizeof *s->next);
    TRY(ki_kmeans_move(s));
    if (s->options.clusters)
        TRY(give_clusters(s));
    else if (s->options.labels)
        TRY(kiln_assign(&(kiln_assignment){.labels = s->options.labels}, s->X, s->C, NULL));
    s->report.passes += s->options.clusters || s->options.labels;
    TRY(ki_vector_set(centres, s->best));
done:
    return status;
}

kiln_status kiln_kmeans(kiln_matrix *centres, const kiln_matrix *X, const kiln_kmeans_options *options,
                        kiln_report *report) {
    kiln_status status;
    struct kmeans s = {.X = X, .began = ki_clock(), .objective = NAN, .residual = NAN};
    bool resumed = false;
    TRY(KI_TAKE(kiln_kmeans_options, &s.options, options));
    TRY(ki_options_check(&s.options, &ki_algorithm_kmeans));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    if (X && centres) {
        s.device = kiln_matrix_device(X);
        s.type = kiln_matrix_type(X);
        s.m = kiln_matrix_rows(X);
        s.n = kiln_matrix_cols(X);
        s.k = kiln_matrix_rows(centres);
    }
    TRY(check(&s, centres));
    ki_options_fill(&s.options, &ki_algorithm_kmeans, s.type);
    TRY(allocate(&s));
    TRY(ki_kmeans_open_bounds(&s));
    TRY(measure(&s));
    if (s.options.init == KILN_INIT_GIVEN) s.options.restarts = 1;
    TRY(ki_checkpoint_begin(&(struct ki_described){.control = &s.options.control,
                                                   .algorithm = "kmeans",
                                                   .options = &s.options,
                                                   .X = X,
                                                   .given = {{"the weights", s.options.weights}},
                                                   .report = &s.report,
                                                   .start = &s.began}));
    if (s.options.batch > 0) TRY(ki_kmeans_batches_begin(&s));
    TRY(ki_kmeans_resume(&resumed, &s));
    for (; s.turn < s.options.restarts && !s.cancelled; s.turn++, resumed = false)
        TRY(run_once(&s, centres, resumed));
    TRY(give(&s, centres));
    if (s.turn == s.options.restarts && s.report.stopped_by != KILN_STOP_CANCELLED)
        s.report.stopped_by = s.best_so_far.stopped_by;
    else
        s.report.stopped_by = KILN_STOP_CANCELLED; /* of the starts, even if the best one had ended */
    s.report.converged = s.report.stopped_by == KILN_STOP_TOLERANCE;
    s.report.objective = s.best_so_far.objective;
    s.report.residual = s.best_so_far.residual;
    s.report.tolerance = s.options.tolerance;
    s.report.seconds = ki_clock() - s.began;
    ki_report_hand_over(report, &s.report);
done:
    kiln_report_free(&s.report);
    kiln_bounds_free(s.bounds);
    kiln_matrix_free(s.C);
    kiln_matrix_free(s.sums);
    kiln_matrix_free(s.means);
    kiln_matrix_free(s.per);
    kiln_matrix_free(s.unit);
    ki_free(s.centres);
    ki_free(s.seen);
    return status;
}
