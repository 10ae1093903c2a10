/* Orthonormal blocks of vectors, which stay on the device: with A^T A = D L L^T D, D the columns' lengths,
 *
 *   A D^-1 L^-T
 *
 * has orthonormal columns, but for rounding that grows with L's condition; once more, and that is gone. The
 * longest columns come first, so that they are kept to the last digit, and what depends on them but for
 * rounding gives way to random vectors.
 *
 * Source: Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, Roundoff error analysis of the CholeskyQR2 algorithm,
 * Electron. Trans. Numer. Anal. 44 (2015). */
#include "algorithms/eigen.h"
#include "algorithms/svd/svd.h"

enum { TURNS = 8 };

kiln_status ki_svd_take_off(kiln_matrix *W, const kiln_matrix *V, kiln_matrix *products) {
    kiln_status status;
    TRY(kiln_multiply(products, 1, KILN_TRANSPOSED, V, W, 0, NULL));
    TRY(kiln_multiply(W, -1, KILN_PLAIN, V, products, 1, W));
done:
    return status;
}

kiln_status ki_svd_project(struct ki_svd *s, kiln_matrix *W, double *h) {
    kiln_status status = KILN_OK;
    if (s->locked > 0) TRY(ki_svd_take_off(W, s->L, s->products));
    for (int64_t i = 0; i * s->width < s->known; i++) {
        TRY(ki_svd_take_off(W, s->V[i], s->part));
        if (h) TRY(ki_vector_get(h + i * s->width * s->b, s->part));
    }
done:
    return status;
}

/* room->g, A^T A, becomes the Gram matrix of A's columns scaled to length 1, by `scale`. Whether the first
 * `wanted` of them are orthonormal already, but for what another turn mends. */
static bool scale_gram(double *scale, struct ki_svd_room *room, int64_t wanted) {
    const int64_t w = room->count;
    bool near = true;
    for (int64_t c = 0; c < w; c++) {
        const double square = room->g[c * (w + 1)];
        scale[c] = square > 0 ? 1 / sqrt(square) : 0;
        near &= c >= wanted || (square > 0.5 && square < 2);
    }
    for (int64_t i = 0; i < w; i++)
        for (int64_t j = 0; j < w; j++) room->g[i * w + j] *= scale[i] * scale[j];
    return near;
}

/* room->place: the columns by their lengths, the longest first. */
static void sort_columns(struct ki_svd_room *room) {
    for (int64_t c = 0; c < room->count; c++) {
        int64_t at = c;
        for (; at > 0 && room->scale[room->place[at - 1]] > room->scale[c]; at--)
            room->place[at] = room->place[at - 1];
        room->place[at] = c;
    }
}

/* Row `at` of L, in room->q, for column c of the scaled Gram matrix; what is left of the 1 on its
 * diagonal. */
static double next_row(struct ki_svd_room *room, int64_t at, int64_t c) {
    const int64_t w = room->count;
    double *const row = room->q + at * w, left = 1;
    for (int64_t j = 0; j < at; j++) {
        const double *const other = room->q + j * w;
        row[j] = (room->g[room->place[j] * w + c] - ki_dot(row, other, j)) / other[j];
        left -= row[j] * row[j];
    }
    row[at] = sqrt(fmax(left, 0));
    return left;
}

/* room->t, count x count, that A is to be multiplied by: *kept of its columns are not 0. Whether A's columns
 * were nearly orthonormal, so that they are now. */
static bool find_factor(int64_t *kept, struct ki_svd_room *room, int64_t wanted, kiln_type type) {
    const int64_t w = room->count;
    double *const L = room->q, *const t = room->t, *const inverse = room->g; /* of L */
    const double rounding = 8 * (double)w * ki_epsilon(type);
    bool near = scale_gram(room->scale, room, wanted);
    sort_columns(room);
    *kept = 0;
    for (int64_t i = 0; i < w && *kept < wanted; i++) { /* place[.. i] is read before it is overwritten */
        const int64_t c = room->place[i];
        const double left = room->scale[c] > 0 && isfinite(room->scale[c]) ? next_row(room, *kept, c) : 0;
        if (!(left > rounding)) continue;
        near &= left > 0.5;
        room->place[(*kept)++] = c;
    }
    memset(t, 0, (size_t)(w * w) * sizeof *t);
    for (int64_t c = 0; c < *kept; c++) {
        double *const row = inverse + c * w;
        memset(row, 0, (size_t)w * sizeof *row);
        for (int64_t j = 0; j < c; j++) L[c * w + j] = -L[c * w + j];
        ki_add_rows(row, L + c * w, c, inverse, w, c);
        row[c] = 1;
        for (int64_t j = 0; j <= c; j++) {
            row[j] /= L[c * w + c];
            t[room->place[j] * w + c] = room->scale[room->place[j]] * row[j];
        }
    }
    return near && *kept == wanted;
}

/* A's columns [first, last), which are 0, become random; `from` is overwritten. */
static kiln_status refill(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *A, kiln_matrix *from,
                          int64_t first, int64_t last) {
    kiln_status status;
    const int64_t w = room->count;
    memset(room->t, 0, (size_t)(w * w) * sizeof *room->t);
    for (int64_t c = first; c < last; c++) room->t[c * (w + 1)] = 1 / sqrt((double)kiln_matrix_rows(A));
    TRY(ki_vector_set(room->small, room->t));
    TRY(kiln_fill_random(from, KILN_NORMAL, (uint64_t)s->options.seed,
                         KI_STREAM_SVD + ((uint64_t)s->streams++ << 16)));
    TRY(kiln_multiply(A, 1, KILN_PLAIN, from, room->small, 1, A));
done:
    return status;
}

kiln_status ki_svd_orthonormalise(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix **A,
                                  kiln_matrix **spare, int64_t wanted, bool search) {
    kiln_status status = KILN_OK;
    const kiln_type type = kiln_matrix_type(*A);
    bool near = false;
    for (int turn = 0; turn < TURNS && !near; turn++) {
        int64_t kept;
        if (search && turn > 0) TRY(ki_svd_project(s, *A, NULL));
        TRY(kiln_gram(room->small, NULL, *A, NULL, NULL));
        TRY(ki_vector_get(room->g, room->small));
        near = find_factor(&kept, room, wanted, type) && (turn > 0 || !search);
        TRY(ki_vector_set(room->small, room->t));
        TRY(kiln_multiply(*spare, 1, KILN_PLAIN, *A, room->small, 0, NULL));
        if (kept < wanted) TRY(refill(s, room, *spare, *A, kept, wanted));
        kiln_matrix *const former = *A;
        *A = *spare;
        *spare = former;
    }
done:
    return status;
}
