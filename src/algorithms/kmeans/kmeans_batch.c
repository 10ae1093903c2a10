/* Mini-batches: a centre goes the share of the way to the mean of its rows in the batch that these have in
 * all that it has seen (Sculley 2010). What a single batch says is noise, so that what is compared with the
 * tolerance is a mean over the last few. Steps shrink with what the centres have seen, wherever these are:
 * batches that move them no more end a run, but it has converged only if a pass over all rows finds the
 * centres at their rows' means. Patience asks for less: that batches still lower a smoothed inertia now and
 * then. */
#include "algorithms/kmeans/kmeans.h"

enum { MEMORY = 16 };

/* Rows drawn with replacement, and their weights. */
struct batch {
    kiln_matrix *X, *weights;
    int64_t *rows, count;
};

static kiln_status open_batch(struct batch *batch, struct ki_arena *arena, const struct kmeans *s) {
    batch->count = ki_min(s->options.batch, s->m);
    batch->rows = ki_arena_integers(arena, batch->count);
    batch->X = ki_arena_model(arena, s->X, batch->count, s->n);
    batch->weights = s->options.weights ? ki_arena_model(arena, s->X, batch->count, 1) : NULL;
    return arena->status;
}

/* Prepares what the centres of a start have seen: nothing, or what the caller says of given ones. */
static kiln_status begin_start(struct kmeans *s) {
    const kiln_kmeans_options *o = &s->options;
    struct ki_arena arena = {0};
    double *const known = ki_arena_reals(&arena, s->k * KI_CLUSTER);
    kiln_status status;
    TRY(arena.status);
    s->round = 0;
    s->mean = 0;
    s->idle = 0;
    memset(s->seen, 0, (size_t)s->k * sizeof *s->seen);
    if (o->init != KILN_INIT_GIVEN || !o->clusters) goto done;
    TRY(ki_vector_get(known, o->clusters));
    for (int64_t c = 0; c < s->k; c++) s->seen[c] = fmax(known[c * KI_CLUSTER], 0);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status draw(struct batch *batch, struct kmeans *s) {
    kiln_status status;
    for (int64_t i = 0; i < batch->count; i++)
        batch->rows[i] = ki_min((int64_t)(ki_draw(&s->draws) * (double)s->m), s->m - 1);
    TRY(kiln_rows(batch->X, s->X, batch->rows));
    if (batch->weights) TRY(kiln_rows(batch->weights, s->options.weights, batch->rows));
done:
    return status;
}

/* next = where the centres go, from sums of the batch; what the squares of their moves add up to. */
static double take_steps(struct kmeans *s) {
    double moved = 0, *seen = s->seen;
    for (int64_t c = 0; c < s->k; c++) {
        const double weight = s->totals[2 * c];
        seen[c] += weight;
        for (int64_t j = 0; j < s->n; j++) {
            const int64_t at = c * s->n + j;
            const double step = weight > 0 ? (s->next[at] - weight * s->centres[at]) / seen[c] : 0;
            s->next[at] = s->centres[at] + step;
        }
        moved += ki_kmeans_place(s, c);
    }
    return moved;
}

/* s->idle, for patience. The first batch judges the start, and is left out. */
static void count_idle(struct kmeans *s, int64_t rows) {
    const double inertia = s->run.report.objective / (double)rows;
    const double share = fmin(1, 2 * (double)rows / ((double)s->m + 1));
    if (s->options.patience == 0 || s->round < 2) return;
    s->smooth[0] = s->round == 2 ? inertia : s->smooth[0] + share * (inertia - s->smooth[0]);
    if (s->round == 2 || s->smooth[0] < s->smooth[1]) {
        s->smooth[1] = s->smooth[0];
        s->idle = 0;
    } else
        s->idle++;
}

/* The end of a start: what all rows say of its centres. */
static kiln_status measure_rows(struct kmeans *s) {
    kiln_report *report = &s->run.report;
    double moved = 0;
    kiln_status status;
    TRY(ki_kmeans_assign(s, s->X, s->options.weights));
    report->passes++;
    memcpy(s->found, s->totals, (size_t)(2 * s->k) * sizeof *s->found);
    TRY(ki_vector_get(s->next, s->sums));
    for (int64_t c = 0; c < s->k; c++) {
        const double weight = s->totals[2 * c];
        for (int64_t j = c * s->n; j < (c + 1) * s->n; j++)
            s->next[j] = weight > 0 ? s->next[j] / weight : s->centres[j];
        moved += ki_kmeans_place(s, c);
    }
    report->residual = ki_kmeans_residual(s, moved);
    if (report->stopped_by == KILN_STOP_CANCELLED) goto done;
    if (report->residual <= s->options.tolerance)
        report->stopped_by = KILN_STOP_TOLERANCE;
    else if (report->stopped_by == KILN_STOP_TOLERANCE)
        report->stopped_by = KILN_STOP_STALLED;
done:
    return status;
}

kiln_status ki_kmeans_batches(struct kmeans *s) {
    struct ki_arena arena = {0};
    struct batch batch;
    kiln_status status;
    TRY(open_batch(&batch, &arena, s));
    if (!s->run.resumed) TRY(begin_start(s));
    while (ki_run_goes_on(&s->run)) {
        TRY(draw(&batch, s));
        TRY(ki_kmeans_assign(s, batch.X, batch.weights));
        TRY(ki_vector_get(s->next, s->sums));
        const double moved = take_steps(s);
        s->mean += (moved - s->mean) / (double)ki_min(++s->round, MEMORY);
        s->run.report.iterations++;
        TRY(ki_kmeans_row(s, s->round < MEMORY && moved > 0 ? INFINITY : s->mean));
        TRY(ki_kmeans_move(s));
        count_idle(s, batch.count);
        ki_kmeans_judge(s);
        TRY(ki_kmeans_keep(s));
    }
    s->tired = s->run.report.stopped_by == KILN_STOP_STALLED;
    TRY(measure_rows(s));
done:
    return ki_arena_free(&arena, status);
}
