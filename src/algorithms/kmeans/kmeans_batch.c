/* Mini-batches: a centre goes the share of the way to the mean of its rows in the batch that these have in all that it has seen
 * (Sculley 2010). What a single batch says is noise, so that what is compared with the tolerance is a mean over the last few. */
#include "algorithms/kmeans/kmeans.h"

enum { MEMORY = 16 };

/* Rows drawn with replacement, and their weights. */
struct batch {
    kiln_matrix *X, *weights;
    int64_t *rows, count;
    double *seen; /* by each centre: weight */
};

static void close_batch(struct batch *batch) {
    kiln_matrix_free(batch->X);
    kiln_matrix_free(batch->weights);
    ki_free(batch->rows);
    ki_free(batch->seen);
}

static kiln_status open_batch(struct batch *batch, const struct kmeans *s) {
    const kiln_kmeans_options *o = &s->options;
    double *known = NULL;
    kiln_status status;
    *batch = (struct batch){.count = ki_min(o->batch, s->m)};
    batch->seen = ki_calloc((size_t)s->k * sizeof *batch->seen);
    batch->rows = ki_alloc((size_t)batch->count * sizeof *batch->rows);
    if (!batch->seen || !batch->rows) TRY(ki_fail_nomem((size_t)(s->k + batch->count) * 8, "a batch"));
    TRY(kiln_matrix_dense(&batch->X, s->device, s->type, batch->count, s->n, NULL));
    if (o->weights) TRY(kiln_matrix_dense(&batch->weights, s->device, s->type, batch->count, 1, NULL));
    if (o->init != KILN_INIT_GIVEN || !o->clusters) goto done;
    if (!(known = ki_alloc((size_t)s->k * KI_CLUSTER * sizeof *known)))
        TRY(ki_fail_nomem((size_t)s->k * KI_CLUSTER * sizeof *known, "a batch"));
    TRY(ki_vector_get(known, o->clusters));
    for (int64_t c = 0; c < s->k; c++) batch->seen[c] = fmax(known[c * KI_CLUSTER], 0);
done:
    ki_free(known);
    return status;
}

static kiln_status draw(struct batch *batch, struct kmeans *s) {
    kiln_status status;
    for (int64_t i = 0; i < batch->count; i++)
        batch->rows[i] = ki_min((int64_t)(ki_kmeans_random(s) * (double)s->m), s->m - 1);
    TRY(kiln_rows(batch->X, s->X, batch->rows));
    if (batch->weights) TRY(kiln_rows(batch->weights, s->options.weights, batch->rows));
done:
    return status;
}

/* next = where the centres go, from sums of the batch; what the squares of their moves add up to. */
static double take_steps(struct kmeans *s, double *seen) {
    double moved = 0;
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

kiln_status ki_kmeans_batches(struct kmeans *s) {
    const kiln_kmeans_options *o = &s->options;
    struct batch batch;
    double mean = 0;
    kiln_status status;
    TRY(open_batch(&batch, s));
    for (int64_t round = 1; s->report.stopped_by == KILN_STOP_NONE; round++) {
        TRY(draw(&batch, s));
        TRY(ki_kmeans_assign(s, batch.X, batch.weights));
        TRY(ki_vector_get(s->next, s->sums));
        const double moved = take_steps(s, batch.seen);
        mean += (moved - mean) / (double)ki_min(round, MEMORY);
        s->report.iterations++;
        TRY(ki_kmeans_row(s, round < MEMORY && moved > 0 ? INFINITY : mean));
        TRY(ki_kmeans_move(s));
        s->report.stopped_by = s->residual <= o->tolerance  ? KILN_STOP_TOLERANCE
                               : s->cancelled               ? KILN_STOP_CANCELLED
                               : round >= o->max_iterations ? KILN_STOP_ITERATIONS
                                                            : KILN_STOP_NONE;
    }
    TRY(ki_kmeans_assign(s, s->X, o->weights));
    s->report.passes++;
    memcpy(s->found, s->totals, (size_t)(2 * s->k) * sizeof *s->found);
done:
    close_batch(&batch);
    return status;
}
