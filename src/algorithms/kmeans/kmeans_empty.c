/* A centre that has lost all of its rows takes the row that is furthest from its own centre, which gives it up: the sums of the
 * donor are corrected before anything is divided. */
#include "algorithms/kmeans/kmeans.h"

/* Rows that are far from their centres, the furthest first. */
struct far {
    int64_t count, most;
    struct far_row {
        double distance;
        int64_t row, cluster;
    } * rows;
};

static void note(struct far *far, double distance, int64_t row, int64_t cluster) {
    if (!(distance > 0) || (far->count == far->most && !(distance > far->rows[far->most - 1].distance)))
        return;
    int64_t at = far->count < far->most ? far->count++ : far->most - 1;
    for (; at > 0 && far->rows[at - 1].distance < distance; at--) far->rows[at] = far->rows[at - 1];
    far->rows[at] = (struct far_row){distance, row, cluster};
}

enum { AT_ONCE = 1 << 16 }; /* rows of a piece: a fetch takes little beside its bytes, which a cache holds */

/* largest = the distance of each piece's furthest row; *least: so many pieces reach it as rows are wanted, so that rows below it are not
 * among the furthest. */
static kiln_status find_largest(double *least, double *largest, struct far *far, const struct kmeans *s,
                                const kiln_matrix *distances) {
    const int64_t pieces = ki_ceil_div(s->m, AT_ONCE);
    kiln_matrix *R = NULL;
    kiln_batch *batch = NULL;
    kiln_status status;
    TRY(ki_kmeans_pieces(&batch, s, s->m, AT_ONCE));
    TRY(kiln_matrix_dense(&R, s->device, s->type, pieces, 1, NULL));
    TRY(kiln_batch_reduce(R, KILN_BATCH_MAX, distances, batch));
    TRY(ki_vector_get(largest, R));
    for (int64_t p = 0; p < pieces; p++) note(far, largest[p], p, 0);
    if (far->count == far->most) *least = far->rows[far->most - 1].distance;
    far->count = 0;
done:
    kiln_batch_free(batch);
    kiln_matrix_free(R);
    return status;
}

/* The furthest rows, from the pieces that may have some. Rows without weight do not count, and then all pieces may. */
static kiln_status note_rows(struct far *far, const struct kmeans *s) {
    const kiln_matrix *const weights = s->options.weights;
    const int64_t most = ki_min(s->m, AT_ONCE), pieces = ki_ceil_div(s->m, AT_ONCE),
                  bytes = (3 * most + pieces) * (int64_t)sizeof(double);
    kiln_matrix *D = NULL, *L = NULL;
    double *const distance = ki_alloc((size_t)bytes), least = 0;
    kiln_status status;
    if (!distance) return ki_fail_nomem((size_t)bytes, "labels and distances");
    double *const label = distance + most, *const weight = label + most, *const largest = weight + most;
    TRY(kiln_matrix_dense(&D, s->device, s->type, s->m, 1, NULL));
    TRY(kiln_matrix_dense(&L, s->device, s->type, s->m, 1, NULL));
    TRY(kiln_assign(&(kiln_assignment){.labels = L, .distances = D}, s->X, s->C, NULL));
    if (!weights) TRY(find_largest(&least, largest, far, s, D));
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t first = p * AT_ONCE, count = ki_min(s->m - first, AT_ONCE);
        if (least > 0 && largest[p] < least) continue;
        TRY(ki_vector_part(distance, D, first, count));
        TRY(ki_vector_part(label, L, first, count));
        if (weights) TRY(ki_vector_part(weight, weights, first, count));
        for (int64_t i = 0; i < count; i++)
            if (!weights || weight[i] > 0) note(far, distance[i], first + i, (int64_t)label[i]);
    }
done:
    kiln_matrix_free(D);
    kiln_matrix_free(L);
    ki_free(distance);
    return status;
}

/* The row leaves its cluster and becomes cluster c. */
static kiln_status relocate(struct kmeans *s, int64_t c, const struct far_row *from) {
    kiln_matrix *row = NULL;
    double w = 1, *x = ki_alloc((size_t)s->n * sizeof *x);
    kiln_status status = KILN_OK;
    if (!x) return ki_fail_nomem((size_t)s->n * sizeof *x, "a row");
    if (s->options.weights) TRY(ki_vector_part(&w, s->options.weights, from->row, 1));
    if (!(s->totals[2 * from->cluster] > w)) goto done; /* it is all that the cluster has */
    TRY(kiln_matrix_dense(&row, s->device, s->type, 1, s->n, NULL));
    TRY(kiln_rows(row, s->X, &from->row));
    TRY(ki_vector_get(x, row));
    for (int64_t j = 0; j < s->n; j++) {
        s->next[from->cluster * s->n + j] -= w * x[j];
        s->next[c * s->n + j] = w * x[j];
    }
    s->totals[2 * from->cluster] -= w;
    s->totals[2 * c] = w;
done:
    kiln_matrix_free(row);
    ki_free(x);
    return status;
}

kiln_status ki_kmeans_fill(struct kmeans *s, int64_t *moved) {
    struct far far = {0};
    kiln_status status = KILN_OK;
    *moved = 0;
    for (int64_t c = 0; c < s->k; c++) far.most += !(s->totals[2 * c] > 0);
    if (!far.most) return KILN_OK;
    if (!(far.rows = ki_alloc((size_t)far.most * sizeof *far.rows)))
        return ki_fail_nomem((size_t)far.most * sizeof *far.rows, "rows far from their centres");
    TRY(note_rows(&far, s));
    s->report.passes++;
    for (int64_t c = 0, next = 0; c < s->k; c++)
        for (; !(s->totals[2 * c] > 0) && next < far.count; next++) TRY(relocate(s, c, &far.rows[next]));
    for (int64_t c = 0; c < s->k; c++) *moved += s->totals[2 * c] > 0;
    *moved -= s->k - far.most;
    s->relocated += *moved;
done:
    ki_free(far.rows);
    return status;
}
