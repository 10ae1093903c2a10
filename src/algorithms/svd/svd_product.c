/* Products with A = unit (X - 1 mean^T) D^-1, whose columns' means and scales are never written into X:
 *
 *   A Y = X Z - 1 (mean^T Z),   A^T Y = D^-1 (X^T Y - mean (1^T Y)),   Z = unit D^-1 Y */
#include "algorithms/svd/svd.h"

kiln_status ki_svd_room_new(struct ki_svd_room *room, struct ki_svd *s, int64_t count) {
    struct ki_run *run = &s->run;
    room->count = count;
    room->columns = ki_run_model(run, s->n, count);
    room->scaled = ki_run_model(run, s->n, count);
    room->sums = ki_run_model(run, 1, count);
    room->shift = ki_run_model(run, 1, count);
    room->small = ki_run_model(run, count, count);
    room->g = ki_run_reals(run, count * count);
    room->q = ki_run_reals(run, count * count);
    room->t = ki_run_reals(run, count * count);
    room->scale = ki_run_reals(run, count);
    room->root = ki_run_reals(run, count);
    room->place = ki_arena_integers(&run->arena, count);
    return run->arena.status;
}

/* *Z = unit D^-1 Y. */
static kiln_status scale(const kiln_matrix **Z, const struct ki_svd *s, struct ki_svd_room *room,
                         const kiln_matrix *Y) {
    *Z = s->inverse ? room->scaled : Y;
    return s->inverse ? kiln_times(room->scaled, Y, s->inverse) : KILN_OK;
}

static kiln_status from_columns(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *rows,
                                const kiln_matrix *Y) {
    kiln_status status;
    const kiln_matrix *Z;
    TRY(scale(&Z, s, room, Y));
    if (s->mean) {
        TRY(kiln_multiply(room->shift, 1, KILN_TRANSPOSED, s->mean, Z, 0, NULL));
        TRY(kiln_multiply(rows, -1, KILN_PLAIN, s->ones, room->shift, 0, NULL));
    }
    TRY(kiln_multiply(rows, 1, KILN_PLAIN, s->X, Z, s->mean ? 1 : 0, s->mean ? rows : NULL));
done:
    return status;
}

/* W, which is X^T T, becomes A^T T; room->sums = 1^T T, with a mean. */
static kiln_status finish(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *W) {
    kiln_status status = KILN_OK;
    if (s->mean) TRY(kiln_multiply(W, -1, KILN_PLAIN, s->mean, room->sums, 1, W));
    if (s->inverse) TRY(kiln_times(W, W, s->inverse));
done:
    return status;
}

static kiln_status from_rows(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *columns,
                             const kiln_matrix *Y) {
    kiln_status status;
    TRY(kiln_multiply(columns, 1, KILN_TRANSPOSED, s->X, Y, 0, NULL));
    if (s->mean) TRY(kiln_multiply(room->sums, 1, KILN_TRANSPOSED, s->ones, Y, 0, NULL));
    TRY(finish(s, room, columns));
done:
    return status;
}

kiln_status ki_svd_forward(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *far,
                           const kiln_matrix *near) {
    if (s->options.graph) return ki_svd_graph_product(s, room, far, near);
    return (s->wide ? from_rows : from_columns)(s, room, far, near);
}

kiln_status ki_svd_back(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *near,
                        const kiln_matrix *far) {
    if (s->options.graph) return ki_svd_graph_product(s, room, near, far);
    return (s->wide ? from_columns : from_rows)(s, room, near, far);
}

/* X is read once where its rows are no fewer than its columns, and it is not as find_way says. */
kiln_status ki_svd_square(struct ki_svd *s, kiln_matrix *W, const kiln_matrix *V) {
    static const kiln_loss squared = {.kind = KILN_LOSS_SQUARED};
    struct ki_svd_room *const room = &s->block;
    const kiln_matrix *Z;
    kiln_status status;
    if (s->G && !s->exact) return kiln_multiply(W, 1, KILN_PLAIN, s->G, V, 0, NULL);
    if (s->options.graph) return ki_svd_graph_product(s, room, W, V);
    s->run.report.passes++;
    if (s->wide || s->between) {
        kiln_matrix *const far = s->wide ? room->columns : s->between;
        TRY(ki_svd_forward(s, room, far, V));
        TRY(ki_svd_back(s, room, W, far));
        s->run.report.passes++;
        goto done;
    }
    TRY(scale(&Z, s, room, V));
    if (s->mean) {
        TRY(kiln_multiply(room->shift, -1, KILN_TRANSPOSED, s->mean, Z, 0, NULL));
        TRY(kiln_loss_hessian(W, room->sums, &squared, NULL, s->X, Z, room->shift, 0, NULL));
    } else
        TRY(kiln_mmchain(W, 1, s->X, NULL, Z, 0, NULL));
    TRY(finish(s, room, W));
done:
    return status;
}
