/* Orthonormal blocks of vectors, which stay on the device: with A^T A = D E L E^T D, D the columns' lengths,
 *
 *   A D^-1 E L^-1/2 E^T
 *
 * has orthonormal columns, but for rounding that grows with L's condition; once more, and that is gone. What
 * depends on the others, so that its part of L is rounding, gives way to random vectors.
 *
 * Source: Stathopoulos and Wu, A block orthogonalization procedure with constant synchronization
 * requirements, SIAM J. Sci. Comput. 23 (2002). */
#include "algorithms/eigen.h"
#include "algorithms/svd/svd.h"

enum { TURNS = 8 };

static kiln_status take_off(kiln_matrix *W, const kiln_matrix *V, kiln_matrix *products) {
    kiln_status status;
    TRY(kiln_multiply(products, 1, KILN_TRANSPOSED, V, W, 0, NULL));
    TRY(kiln_multiply(W, -1, KILN_PLAIN, V, products, 1, W));
done:
    return status;
}

kiln_status ki_svd_project(struct ki_svd *s, kiln_matrix *W, double *h) {
    kiln_status status = KILN_OK;
    if (s->locked > 0) TRY(take_off(W, s->L, s->products));
    for (int64_t i = 0; i < s->blocks; i++) {
        TRY(take_off(W, s->V[i], s->block.small));
        if (h) TRY(ki_vector_get(h + i * s->b * s->b, s->block.small));
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

/* room->t, count x count, that A is to be multiplied by; *kept of its columns are not 0. */
static bool find_factor(int64_t *kept, struct ki_svd_room *room, int64_t wanted, kiln_type type) {
    const int64_t w = room->count;
    double *const scale = room->scale, *const g = room->g, *const q = room->q, *const t = room->t;
    const double rounding = 8 * (double)w * ki_epsilon(type);
    bool near = scale_gram(scale, room, wanted);
    ki_eigen(g, q, w);
    for (*kept = 0; *kept < wanted; ++*kept) {
        int64_t largest = 0;
        for (int64_t c = 1; c < w; c++)
            if (g[c * (w + 1)] > g[largest * (w + 1)]) largest = c;
        const double square = g[largest * (w + 1)];
        if (!(square > rounding)) break;
        near &= square > 0.5;
        room->place[*kept] = largest;
        room->root[*kept] = 1 / sqrt(square);
        g[largest * (w + 1)] = -1;
    }
    memset(t, 0, (size_t)(w * w) * sizeof *t);
    for (int64_t i = 0; i < w; i++)
        for (int64_t c = 0; c < *kept; c++) {
            const double part = scale[i] * q[i * w + room->place[c]] * room->root[c];
            if (*kept < w) /* E^T would mix these with what is left out */
                t[i * w + c] = part;
            else
                for (int64_t j = 0; j < w; j++) t[i * w + j] += part * q[j * w + room->place[c]];
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
