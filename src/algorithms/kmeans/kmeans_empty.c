/* A centre that has lost all of its rows takes the row that is furthest from its own centre, which gives it
 * up: the sums of the donor are corrected before anything is divided.
 *
 * There are no more clusters than different rows. Where all of these have one, a distance above 0 is the
 * rounding of a mean, and rows that are taken for it would be taken for ever: different rows are counted,
 * value by value, when the first centre asks for one. */
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

/* largest = the distance of each piece's furthest row; *least: so many pieces reach it as rows are wanted,
 * so that rows below it are not among the furthest. */
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

/* The furthest rows, from the pieces that may have some. Rows without weight do not count, and then all
 * pieces may. */
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

/* The row leaves its cluster and becomes cluster c, with weight 1, so that its mean is the row itself. */
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
        s->next[c * s->n + j] = x[j];
    }
    s->totals[2 * from->cluster] -= w;
    s->totals[2 * c] = 1;
done:
    kiln_matrix_free(row);
    ki_free(x);
    return status;
}

/* ------------------------------------------------------------------------------------- different rows */

/* Different rows so far, and where their hashes lie: row + 1, or 0. */
struct different {
    int64_t count, most, n, slots, *slot;
    double *rows; /* most x n */
};

static void add_row(struct different *of, const double *x) {
    const size_t bytes = (size_t)of->n * sizeof *x;
    double *const to = of->rows + of->count * of->n;
    uint64_t hash = 0;
    for (int64_t j = 0; j < of->n; j++) {
        uint64_t bits;
        to[j] = x[j] + 0; /* -0 is 0 */
        memcpy(&bits, &to[j], sizeof bits);
        hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    int64_t at = (int64_t)(hash % (uint64_t)of->slots);
    for (; of->slot[at]; at = (at + 1) % of->slots)
        if (memcmp(of->rows + (of->slot[at] - 1) * of->n, to, bytes) == 0) return;
    of->slot[at] = ++of->count;
}

/* Adds rows of weight above 0 until there are as many different ones as wanted. `piece`: a matrix of so many
 * rows, x: for its values. */
static kiln_status walk(struct different *of, const struct kmeans *s, kiln_matrix *piece, double *x) {
    const int64_t rows = kiln_matrix_rows(piece);
    int64_t *wanted = ki_alloc((size_t)rows * sizeof *wanted);
    double *weights = ki_alloc((size_t)rows * sizeof *weights);
    kiln_status status = KILN_OK;
    if (!wanted || !weights) TRY(ki_fail_nomem((size_t)rows * 16, "different rows"));
    for (int64_t first = 0; first < s->m && of->count < of->most; first += rows) {
        const int64_t count = ki_min(rows, s->m - first);
        for (int64_t i = 0; i < rows; i++) wanted[i] = ki_min(first + i, s->m - 1);
        TRY(kiln_rows(piece, s->X, wanted));
        TRY(ki_vector_get(x, piece));
        if (s->options.weights) TRY(ki_vector_part(weights, s->options.weights, first, count));
        for (int64_t i = 0; i < count && of->count < of->most; i++)
            if (!s->options.weights || weights[i] > 0) add_row(of, x + i * s->n);
    }
done:
    ki_free(wanted);
    ki_free(weights);
    return status;
}

kiln_status ki_kmeans_different(struct kmeans *s) {
    enum { PIECE = 1 << 18 }; /* numbers at once */
    const int64_t rows = ki_max(ki_min(PIECE / s->n, s->m), 1);
    struct different of = {.most = s->k, .n = s->n, .slots = 2 * s->k + 1};
    kiln_matrix *piece = NULL;
    double *x = ki_alloc((size_t)(rows * s->n) * sizeof *x);
    kiln_status status = KILN_OK;
    if (s->different > 0) goto done;
    of.rows = ki_alloc((size_t)(s->k * s->n) * sizeof *of.rows);
    of.slot = ki_calloc((size_t)of.slots * sizeof *of.slot);
    if (!x || !of.rows || !of.slot)
        TRY(ki_fail_nomem((size_t)((rows + s->k) * s->n) * sizeof *x, "different rows"));
    TRY(kiln_matrix_dense(&piece, s->device, s->type, rows, s->n, NULL));
    TRY(walk(&of, s, piece, x));
    s->different = of.count;
done:
    kiln_matrix_free(piece);
    ki_free(x);
    ki_free(of.rows);
    ki_free(of.slot);
    return status;
}

kiln_status ki_kmeans_fill(struct kmeans *s, int64_t *moved) {
    struct far far = {0};
    kiln_status status = KILN_OK;
    int64_t empty = 0;
    *moved = 0;
    for (int64_t c = 0; c < s->k; c++) empty += !(s->totals[2 * c] > 0);
    if (!empty) return KILN_OK;
    TRY(ki_kmeans_different(s));
    far.most = s->different - (s->k - empty);
    if (far.most <= 0) return KILN_OK;
    if (!(far.rows = ki_alloc((size_t)far.most * sizeof *far.rows)))
        return ki_fail_nomem((size_t)far.most * sizeof *far.rows, "rows far from their centres");
    TRY(note_rows(&far, s));
    s->report.passes++;
    for (int64_t c = 0, next = 0; c < s->k; c++)
        for (; !(s->totals[2 * c] > 0) && next < far.count; next++) TRY(relocate(s, c, &far.rows[next]));
    for (int64_t c = 0; c < s->k; c++) *moved += s->totals[2 * c] > 0;
    *moved -= s->k - empty;
    s->relocated += *moved;
done:
    ki_free(far.rows);
    return status;
}
