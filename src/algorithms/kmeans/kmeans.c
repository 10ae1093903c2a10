/* Lloyd's iteration: each centre goes to the mean of the rows that are nearest to it, one pass over X each time.
 *
 * A centre that has lost all of its rows takes the row that is furthest from its own centre, which gives it up: the sums of the
 * donor are corrected before anything is divided. In mini-batches a centre goes the share of the way that the batch has in all
 * that it has seen (Sculley 2010). */
#include "algorithms/kmeans/kmeans.h"

#include "algorithms/registry.h"

extern const struct ki_algorithm ki_algorithm_kmeans;

/* splitmix64 of a counter: the same numbers everywhere. */
double ki_kmeans_random(struct kmeans *s) {
    uint64_t z = (uint64_t)s->options.seed * 0xd1342543de82ef95u + ++s->draws * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

void ki_kmeans_tell(struct kmeans *s) {
    const kiln_control *control = &s->options.control;
    const kiln_progress now = {
        "solve",     s->report.iterations,  s->options.max_iterations,           s->objective,
        s->residual, ki_clock() - s->began, ki_bytes_of(s->X) * s->report.passes};
    if (control->progress && control->progress(control->user, &now) != 0) s->cancelled = true;
}

/* ------------------------------------------------------------------------------------------ an iteration */

/* sums and totals of X, or of a batch, for the centres s->C. */
static kiln_status assign(struct kmeans *s, const kiln_matrix *X, const kiln_matrix *weights) {
    kiln_status status;
    TRY(kiln_assign(&(kiln_assignment){.sums = s->sums, .totals = s->totals}, X, s->C, weights));
    TRY(ki_vector_get(s->next, s->sums));
    s->objective = 0;
    for (int64_t c = 0; c < s->k; c++) s->objective += s->totals[2 * c + 1];
done:
    return status;
}

/* s->C = next, which is narrowed on the way; what the centres then are goes to s->centres. */
static kiln_status set_centres(struct kmeans *s, const double *centres) {
    kiln_status status;
    memcpy(s->next, centres, (size_t)(s->k * s->n) * sizeof *centres);
    TRY(ki_vector_set(s->C, s->next));
    TRY(ki_vector_get(s->centres, s->C));
done:
    return status;
}

/* The row that is furthest from its centre among those that their clusters can spare; -1 if there is none. */
static int64_t furthest(const struct kmeans *s, const double *distances, const double *labels) {
    int64_t found = -1;
    for (int64_t i = 0; i < s->m; i++) {
        const double w = s->weights ? s->weights[i] : 1;
        if (!(w > 0 && distances[i] > 0 && s->totals[2 * (int64_t)labels[i]] > w)) continue;
        if (found < 0 || distances[i] > distances[found]) found = i;
    }
    return found;
}

/* Row i leaves its cluster and becomes cluster c. */
static kiln_status relocate(struct kmeans *s, int64_t c, int64_t i, int64_t donor) {
    const double w = s->weights ? s->weights[i] : 1;
    kiln_matrix *row = NULL;
    double *x = ki_alloc((size_t)s->n * sizeof *x);
    kiln_status status;
    if (!x) return ki_fail_nomem((size_t)s->n * sizeof *x, "a row");
    TRY(kiln_matrix_dense(&row, s->device, s->type, 1, s->n, NULL));
    TRY(kiln_rows(row, s->X, &i));
    TRY(ki_vector_get(x, row));
    for (int64_t j = 0; j < s->n; j++) {
        s->next[donor * s->n + j] -= w * x[j];
        s->next[c * s->n + j] = w * x[j];
    }
    s->totals[2 * donor] -= w;
    s->totals[2 * c] = w;
    s->relocated++;
done:
    kiln_matrix_free(row);
    ki_free(x);
    return status;
}

/* Centres without rows get some. */
static kiln_status fill_empty(struct kmeans *s) {
    kiln_matrix *D = NULL, *L = NULL;
    double *distances = NULL, *labels = NULL;
    kiln_status status = KILN_OK;
    for (int64_t c = 0; c < s->k; c++) {
        if (s->totals[2 * c] > 0) continue;
        if (!distances) {
            TRY(kiln_matrix_dense(&D, s->device, s->type, s->m, 1, NULL));
            TRY(kiln_matrix_dense(&L, s->device, s->type, s->m, 1, NULL));
            if (!(distances = ki_alloc((size_t)s->m * 2 * sizeof *distances)))
                TRY(ki_fail_nomem((size_t)s->m * 2 * sizeof *distances, "distances"));
            labels = distances + s->m;
            TRY(kiln_assign(&(kiln_assignment){.distances = D, .labels = L}, s->X, s->C, NULL));
            TRY(ki_vector_get(distances, D));
            TRY(ki_vector_get(labels, L));
            s->report.passes++;
        }
        const int64_t row = furthest(s, distances, labels);
        if (row < 0) break;
        TRY(relocate(s, c, row, (int64_t)labels[row]));
        distances[row] = 0;
    }
done:
    kiln_matrix_free(D);
    kiln_matrix_free(L);
    ki_free(distances);
    return status;
}

/* next = the means, where there are rows; else the centres stay. How far they go: sum of squares. */
static double take_means(struct kmeans *s) {
    double moved = 0;
    for (int64_t c = 0; c < s->k; c++)
        for (int64_t j = 0; j < s->n; j++) {
            const int64_t at = c * s->n + j;
            const double weight = s->totals[2 * c];
            s->next[at] = weight > 0 ? s->next[at] / weight : s->centres[at];
            moved += (s->next[at] - s->centres[at]) * (s->next[at] - s->centres[at]);
        }
    return moved;
}

/* The same for a batch: counts is what each centre has seen before. */
static double take_steps(struct kmeans *s, double *counts) {
    double moved = 0;
    for (int64_t c = 0; c < s->k; c++) {
        const double weight = s->totals[2 * c];
        counts[c] += weight;
        for (int64_t j = 0; j < s->n; j++) {
            const int64_t at = c * s->n + j;
            const double step = weight > 0 ? (s->next[at] - weight * s->centres[at]) / counts[c] : 0;
            s->next[at] = s->centres[at] + step;
            moved += step * step;
        }
    }
    return moved;
}

static kiln_status end_iteration(struct kmeans *s, double moved, int64_t begun) {
    kiln_report *report = &s->report;
    kiln_status status;
    s->residual = s->scale > 0 ? moved / s->scale : moved;
    report->iterations++;
    TRY(ki_report_row(report, &(kiln_trace_row){.iteration = report->iterations,
                                                .residual = s->residual,
                                                .objective = s->objective,
                                                .seconds = ki_clock() - s->began}));
    ki_kmeans_tell(s);
    if (s->residual <= s->options.tolerance)
        report->stopped_by = KILN_STOP_TOLERANCE;
    else if (s->cancelled)
        report->stopped_by = KILN_STOP_CANCELLED;
    else if (report->iterations - begun >= s->options.max_iterations)
        report->stopped_by = KILN_STOP_ITERATIONS;
done:
    return status;
}

static kiln_status lloyd(struct kmeans *s) {
    const int64_t begun = s->report.iterations;
    kiln_status status = KILN_OK;
    while (s->report.stopped_by == KILN_STOP_NONE) {
        TRY(assign(s, s->X, s->options.weights));
        s->report.passes++;
        TRY(fill_empty(s));
        const double moved = take_means(s);
        TRY(set_centres(s, s->next));
        TRY(end_iteration(s, moved, begun));
    }
done:
    return status;
}

/* ------------------------------------------------------------------------------------------ mini-batches */

/* A batch: rows drawn with replacement, and their weights. */
struct batch {
    kiln_matrix *X, *weights;
    int64_t *rows, count;
};

static kiln_status draw_batch(struct kmeans *s, struct batch *batch) {
    kiln_status status;
    for (int64_t i = 0; i < batch->count; i++)
        batch->rows[i] = ki_min((int64_t)(ki_kmeans_random(s) * (double)s->m), s->m - 1);
    TRY(kiln_rows(batch->X, s->X, batch->rows));
    if (batch->weights) TRY(kiln_rows(batch->weights, s->options.weights, batch->rows));
done:
    return status;
}

/* What a single batch says is noise, so that what is compared with the tolerance is a mean over the last few. */
static kiln_status mini_batches(struct kmeans *s) {
    enum { MEMORY = 16 };
    const int64_t begun = s->report.iterations;
    struct batch batch = {.count = ki_min(s->options.batch, s->m)};
    double mean = 0, *counts = ki_calloc((size_t)s->k * sizeof *counts);
    kiln_status status = KILN_OK;
    batch.rows = ki_alloc((size_t)batch.count * sizeof *batch.rows);
    if (!counts || !batch.rows) TRY(ki_fail_nomem((size_t)(s->k + batch.count) * 8, "a batch"));
    TRY(kiln_matrix_dense(&batch.X, s->device, s->type, batch.count, s->n, NULL));
    if (s->options.weights) TRY(kiln_matrix_dense(&batch.weights, s->device, s->type, batch.count, 1, NULL));
    if (s->options.init == KILN_INIT_GIVEN && s->options.clusters) {
        TRY(ki_vector_get(s->totals, s->options.clusters));
        for (int64_t c = 0; c < s->k; c++) counts[c] = s->totals[2 * c];
    }
    while (s->report.stopped_by == KILN_STOP_NONE) {
        TRY(draw_batch(s, &batch));
        TRY(assign(s, batch.X, batch.weights));
        const double moved = take_steps(s, counts);
        const int64_t round = s->report.iterations - begun + 1;
        mean += (moved - mean) / (double)ki_min(round, MEMORY);
        TRY(set_centres(s, s->next));
        TRY(end_iteration(s, round < MEMORY && moved > 0 ? INFINITY : mean, begun));
    }
done:
    kiln_matrix_free(batch.X);
    kiln_matrix_free(batch.weights);
    ki_free(batch.rows);
    ki_free(counts);
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
    if (o->clusters) TRY(ki_check_matrix(call, "clusters", o->clusters, s->X, s->k, 2));
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
    if ((int)o->init < 0 || o->init > KILN_INIT_GIVEN)
        return ki_fail(KILN_ERR_ARGUMENT, "%s_options.init is %d, but must be 1 to 4", call, (int)o->init);
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

/* The mean variance of the columns, and that all of X is finite. */
static kiln_status measure(struct kmeans *s) {
    struct ki_columns columns = {0};
    kiln_matrix *ones = NULL;
    const kiln_matrix *weights = s->options.weights;
    double total = (double)s->m;
    kiln_status status = KILN_OK;
    if (!weights) {
        TRY(kiln_matrix_dense(&ones, s->device, s->type, s->m, 1, NULL));
        TRY(kiln_fill(ones, 1));
        weights = ones;
    } else {
        TRY(kiln_norm(&total, weights, KILN_NORM_1));
        if (!(total > 0)) TRY(ki_fail(KILN_ERR_DATA, "kiln_kmeans: all weights are 0"));
    }
    TRY(ki_columns_measure(&columns, s->X, weights, total, true));
    for (int64_t j = 0; j < s->n; j++) s->scale += columns.variance[j] / (double)s->n;
    s->report.passes += 2;
done:
    ki_columns_free(&columns);
    kiln_matrix_free(ones);
    return status;
}

static kiln_status allocate(struct kmeans *s) {
    kiln_status status;
    int64_t elements, bytes;
    if (!ki_mul(s->k, s->n, &elements) || !ki_mul3(3 * elements + 4 * s->k, sizeof(double), 1, &bytes))
        return ki_fail_nomem(SIZE_MAX, "centres");
    TRY(ki_report_begin(&s->report));
    TRY(kiln_matrix_dense(&s->C, s->device, s->type, s->k, s->n, NULL));
    TRY(kiln_matrix_dense(&s->sums, s->device, s->type, s->k, s->n, NULL));
    if (!(s->centres = ki_alloc((size_t)bytes))) return ki_fail_nomem((size_t)bytes, "centres");
    s->next = s->centres + elements;
    s->best = s->next + elements;
    s->totals = s->best + elements;
    s->best_totals = s->totals + 2 * s->k;
    if (!s->options.weights) return KILN_OK;
    s->weights = ki_alloc((size_t)s->m * sizeof *s->weights);
    if (!s->weights) return ki_fail_nomem((size_t)s->m * sizeof *s->weights, "weights");
    TRY(ki_vector_get(s->weights, s->options.weights));
done:
    return status;
}

/* One start to its end; it stays the best if its inertia is the least so far. */
static kiln_status run_once(struct kmeans *s, const kiln_matrix *given, kiln_report *best) {
    kiln_report *report = &s->report;
    kiln_status status;
    report->stopped_by = KILN_STOP_NONE;
    if (s->options.init == KILN_INIT_GIVEN) {
        TRY(ki_vector_get(s->next, given));
        TRY(ki_vector_set(s->C, s->next));
    } else {
        TRY(ki_kmeans_start(s));
    }
    TRY(ki_vector_get(s->centres, s->C));
    if (s->cancelled) report->stopped_by = KILN_STOP_CANCELLED;
    TRY(s->options.batch > 0 ? mini_batches(s) : lloyd(s));
    TRY(kiln_assign(&(kiln_assignment){.totals = s->totals}, s->X, s->C, s->options.weights));
    report->passes++;
    s->objective = 0;
    for (int64_t c = 0; c < s->k; c++) s->objective += s->totals[2 * c + 1];
    if (best->stopped_by != KILN_STOP_NONE && !(s->objective < best->objective)) goto done;
    memcpy(s->best, s->centres, (size_t)(s->k * s->n) * sizeof *s->best);
    memcpy(s->best_totals, s->totals, (size_t)(2 * s->k) * sizeof *s->best_totals);
    best->objective = s->objective;
    best->residual = s->residual;
    best->stopped_by = report->stopped_by;
done:
    return status;
}

static kiln_status give(struct kmeans *s, kiln_matrix *centres) {
    kiln_status status;
    int64_t filled = 0;
    for (int64_t c = 0; c < s->k; c++) filled += s->best_totals[2 * c] > 0;
    ki_report_figure(&s->report, "clusters", (double)filled);
    ki_report_figure(&s->report, "relocated", (double)s->relocated);
    TRY(set_centres(s, s->best));
    if (s->options.labels) {
        TRY(kiln_assign(&(kiln_assignment){.labels = s->options.labels}, s->X, s->C, NULL));
        s->report.passes++;
    }
    if (s->options.clusters) TRY(ki_vector_set(s->options.clusters, s->best_totals));
    TRY(ki_vector_set(centres, s->best));
done:
    return status;
}

kiln_status kiln_kmeans(kiln_matrix *centres, const kiln_matrix *X, const kiln_kmeans_options *options,
                        kiln_report *report) {
    kiln_status status;
    struct kmeans s = {.X = X, .began = ki_clock(), .objective = NAN, .residual = NAN};
    kiln_report best = {0};
    TRY(KI_TAKE(kiln_kmeans_options, &s.options, options));
    TRY(KI_CHECK_RESULT(kiln_report, report));
    if (X && centres) {
        s.device = kiln_matrix_device(X);
        s.type = kiln_matrix_type(X);
        s.m = kiln_matrix_rows(X);
        s.n = kiln_matrix_cols(X);
        s.k = kiln_matrix_rows(centres);
    }
    TRY(check(&s, centres));
    ki_options_fill(&s.options, &ki_algorithm_kmeans.shown, s.type);
    TRY(allocate(&s));
    TRY(measure(&s));
    if (s.options.init == KILN_INIT_GIVEN) s.options.restarts = 1;
    for (int64_t r = 0; r < s.options.restarts && !s.cancelled; r++) TRY(run_once(&s, centres, &best));
    TRY(give(&s, centres));
    s.report.stopped_by = best.stopped_by;
    s.report.converged = best.stopped_by == KILN_STOP_TOLERANCE;
    s.report.objective = best.objective;
    s.report.residual = best.residual;
    s.report.tolerance = s.options.tolerance;
    s.report.seconds = ki_clock() - s.began;
    ki_report_hand_over(report, &s.report);
done:
    kiln_report_free(&s.report);
    kiln_matrix_free(s.C);
    kiln_matrix_free(s.sums);
    ki_free(s.centres);
    ki_free(s.weights);
    return status;
}

/* ------------------------------------------------------------------------------------- the registry's row */

static kiln_status predict(kiln_matrix **P, const kiln_model *model, const kiln_matrix *X) {
    static const double left[2] = {1, 0}, right[2] = {0, 1};
    kiln_device *device = kiln_matrix_device(X);
    const kiln_type type = kiln_matrix_type(X);
    const int64_t m = kiln_matrix_rows(X);
    kiln_matrix *C = NULL, *labels = NULL, *distances = NULL, *made = NULL;
    kiln_status status;
    TRY(kiln_model_tensor(&C, device, type, model, "centres"));
    if (kiln_matrix_cols(C) != kiln_matrix_cols(X)) {
        ki_fail(KILN_ERR_MODEL, "the model was trained on %lld columns, the data have %lld",
                (long long)kiln_matrix_cols(C), (long long)kiln_matrix_cols(X));
        TRY(ki_hint("read the data as the model's training data were read (kiln_read_options.model)"));
    }
    TRY(kiln_matrix_dense(&labels, device, type, m, 1, NULL));
    TRY(kiln_matrix_dense(&distances, device, type, m, 1, NULL));
    TRY(kiln_matrix_dense(&made, device, type, m, 2, NULL));
    TRY(kiln_assign(&(kiln_assignment){.labels = labels, .distances = distances}, X, C, NULL));
    TRY(kiln_map(distances, KILN_MAP_SQRT, distances));
    TRY(kiln_combine(made, left, labels, right, distances));
    *P = made;
    made = NULL;
done:
    kiln_matrix_free(C);
    kiln_matrix_free(labels);
    kiln_matrix_free(distances);
    kiln_matrix_free(made);
    return status;
}

static const kiln_option options_table[] = {
    KI_OPTION(kiln_kmeans_options, init, CHOICE, 1, 1, 1, 4, "k-means++|k-means-parallel|random|given",
              "How to begin: rows drawn one by one by their distance from those drawn before (k-means++), "
              "some 2k of "
              "them at once in five rounds (k-means-parallel: fewer passes where K is large), any K rows "
              "(random), or "
              "the centres of --warm-start (given)."),
    KI_OPTION(kiln_kmeans_options, restarts, INTEGER, 1, 1, 1, 1e6, NULL,
              "Begin so many times and keep the result with the least inertia."),
    KI_OPTION(kiln_kmeans_options, seed, INTEGER, 0, 0, 0, 9e15, NULL,
              "Start of the random numbers: the same seed gives the same result on one device."),
    KI_OPTION(
        kiln_kmeans_options, batch, INTEGER, 0, 0, 0, 9e15, NULL,
        "Rows in a mini-batch, drawn with replacement for each iteration. Default: all rows each time."),
    KI_OPTION(
        kiln_kmeans_options, tolerance, POSITIVE, 1e-4, 1e-4, 0, INFINITY, NULL,
        "Stop when the squares of the centres' moves in one iteration add up to at most this times the mean "
        "variance of the columns."),
    KI_OPTION(kiln_kmeans_options, max_iterations, INTEGER, 300, 300, 1, 9e18, NULL,
              "Stop after this many iterations of each start, converged or not."),
};

const struct ki_algorithm ki_algorithm_kmeans = {
    .shown = {"kmeans", "Cluster rows around K centres", KI_OPTIONS(options_table, kiln_kmeans_options),
              .predicts = 1},
    .tensors = {{"centres", 'k', 'n', false, false}, {"clusters", 'k', '2', false, false}},
    .predict = predict,
    .passes = {20, 12, false}};
