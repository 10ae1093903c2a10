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
    struct ki_arena arena = {0};
    kiln_matrix *const R = ki_arena_model(&arena, s->X, pieces, 1);
    kiln_batch *batch = NULL;
    kiln_status status;
    TRY(ki_kmeans_pieces(&batch, &arena, s, s->m, AT_ONCE));
    TRY(kiln_batch_reduce(R, KILN_BATCH_MAX, distances, batch));
    TRY(ki_vector_get(largest, R));
    for (int64_t p = 0; p < pieces; p++) note(far, largest[p], p, 0);
    if (far->count == far->most) *least = far->rows[far->most - 1].distance;
    far->count = 0;
done:
    return ki_arena_free(&arena, status);
}

/* The furthest rows, from the pieces that may have some. Rows without weight do not count, and then all
 * pieces may. */
static kiln_status note_rows(struct far *far, const struct kmeans *s) {
    const kiln_matrix *const weights = s->options.weights;
    const int64_t most = ki_min(s->m, AT_ONCE), pieces = ki_ceil_div(s->m, AT_ONCE);
    struct ki_arena arena = {0};
    kiln_matrix *const D = ki_arena_rows(&arena, s->X, 1), *const L = ki_arena_rows(&arena, s->X, 1);
    double *const distance = ki_arena_reals(&arena, most), *const label = ki_arena_reals(&arena, most),
                  *const weight = ki_arena_reals(&arena, most),
                  *const largest = ki_arena_reals(&arena, pieces), least = 0;
    kiln_status status;
    TRY(arena.status);
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
    return ki_arena_free(&arena, status);
}

/* The row leaves its cluster and becomes cluster c, with weight 1, so that its mean is the row itself. */
static kiln_status relocate(struct kmeans *s, int64_t c, const struct far_row *from) {
    struct ki_arena arena = {0};
    kiln_matrix *const row = ki_arena_model(&arena, s->X, 1, s->n);
    double w = 1, *const x = ki_arena_reals(&arena, s->n);
    kiln_status status;
    TRY(arena.status);
    if (s->options.weights) TRY(ki_vector_part(&w, s->options.weights, from->row, 1));
    if (!(s->totals[2 * from->cluster] > w)) goto done; /* it is all that the cluster has */
    TRY(kiln_rows(row, s->X, &from->row));
    TRY(ki_vector_get(x, row));
    for (int64_t j = 0; j < s->n; j++) {
        s->next[from->cluster * s->n + j] -= w * x[j];
        s->next[c * s->n + j] = x[j];
    }
    s->totals[2 * from->cluster] -= w;
    s->totals[2 * c] = 1;
done:
    return ki_arena_free(&arena, status);
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

/* Adds rows of weight above 0 until there are as many different ones as wanted. */
static kiln_status walk(struct different *of, struct ki_arena *arena, const struct kmeans *s) {
    enum { PIECE = 1 << 18 }; /* numbers at once */
    const int64_t rows = ki_max(ki_min(PIECE / s->n, s->m), 1);
    kiln_matrix *const piece = ki_arena_model(arena, s->X, rows, s->n);
    int64_t *const wanted = ki_arena_integers(arena, rows);
    double *const weights = ki_arena_reals(arena, rows);
    double *const x = ki_arena_room(arena, rows * s->n, sizeof(double));
    kiln_status status;
    TRY(arena->status);
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
    return status;
}

kiln_status ki_kmeans_different(struct kmeans *s) {
    struct different of = {.most = s->k, .n = s->n, .slots = 2 * s->k + 1};
    struct ki_arena arena = {0};
    kiln_status status;
    if (s->different > 0) return KILN_OK;
    of.rows = ki_arena_room(&arena, s->k * s->n, sizeof(double));
    of.slot = ki_arena_integers(&arena, of.slots);
    TRY(walk(&of, &arena, s));
    s->different = of.count;
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_kmeans_fill(struct kmeans *s, int64_t *moved) {
    struct far far = {0};
    struct ki_arena arena = {0};
    kiln_status status;
    int64_t empty = 0;
    *moved = 0;
    for (int64_t c = 0; c < s->k; c++) empty += !(s->totals[2 * c] > 0);
    if (!empty) return KILN_OK;
    TRY(ki_kmeans_different(s));
    far.most = s->different - (s->k - empty);
    if (far.most <= 0) return KILN_OK;
    far.rows = ki_arena_zeros(&arena, far.most, sizeof(struct far_row));
    TRY(arena.status);
    TRY(note_rows(&far, s));
    s->run.report.passes++;
    for (int64_t c = 0, next = 0; c < s->k; c++)
        for (; !(s->totals[2 * c] > 0) && next < far.count; next++) TRY(relocate(s, c, &far.rows[next]));
    for (int64_t c = 0; c < s->k; c++) *moved += s->totals[2 * c] > 0;
    *moved -= s->k - empty;
    s->relocated += *moved;
done:
    return ki_arena_free(&arena, status);
}
