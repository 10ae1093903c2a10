/* Factors to begin with from X's singular vectors: NNDSVD, as scikit-learn has it. Of a pair u, v the
 * positive parts are taken or the negative ones, whichever have the larger product of lengths; of the first
 * pair all is of one sign.
 *
 * The leading pairs by subspace iteration on a few more columns than are wanted: Y = X V, Y^T Y = Q L Q^T, U
 * = Y Q L^-1/2, then V from X^T U the same way, until the sum of the singular values rests. All products are
 * the device's; Q is found on the host.
 *
 * Source: Boutsidis and Gallopoulos, "SVD based initialization: a head start for nonnegative matrix
 * factorization", Pattern Recognition 2008. */
#include "algorithms/eigen.h"
#include "algorithms/topics/gap.h"

enum { EXTRA = 8, TURNS = 50 };
#define REST 1e-5  /* relative change of the sum of the singular values */
#define LEAST 1e-6 /* what is below is 0 */

struct pairs {
    const kiln_matrix *X;
    int64_t k, p;               /* wanted; iterated on */
    kiln_matrix *U, *V, *Y, *Z; /* m x p, n x p; what becomes them */
    kiln_matrix *gram, *rotation;
    double *g, *q, *r, *squares; /* p x p, and p */
};

static kiln_status pairs_new(struct pairs *s, struct ki_arena *arena, const kiln_matrix *X, int64_t k) {
    const int64_t m = kiln_matrix_rows(X), n = kiln_matrix_cols(X), p = ki_min(k + EXTRA, ki_min(m, n));
    s->X = X;
    s->k = k;
    s->p = p;
    s->U = ki_arena_rows(arena, X, p);
    s->Y = ki_arena_rows(arena, X, p);
    s->V = ki_arena_model(arena, X, n, p);
    s->Z = ki_arena_model(arena, X, n, p);
    s->gram = ki_arena_model(arena, X, p, p);
    s->rotation = ki_arena_model(arena, X, p, p);
    s->g = ki_arena_reals(arena, p * p);
    s->q = ki_arena_reals(arena, p * p);
    s->squares = ki_arena_reals(arena, p);
    s->r = ki_arena_reals(arena, p * p);
    return arena->status;
}

/* W = an orthonormal basis of Y's columns, by descending singular values of Y; *sum of the first k of these.
 * What vanishes becomes 0. */
static kiln_status orthonormalise(kiln_matrix *W, double *sum, struct pairs *s, const kiln_matrix *Y) {
    const int64_t p = s->p;
    const double epsilon = ki_epsilon(kiln_matrix_type(Y)) * (double)p;
    kiln_status status;
    TRY(kiln_gram(s->gram, NULL, Y, NULL, NULL));
    TRY(ki_vector_get(s->g, s->gram));
    TRY(ki_eigen(s->squares, s->q, p, s->g, p, NULL));
    *sum = 0;
    for (int64_t c = 0; c < p; c++) {
        const double square = s->squares[c],
                     scale = square > epsilon * s->squares[0] && square > 0 ? 1 / sqrt(square) : 0;
        for (int64_t i = 0; i < p; i++) s->r[i * p + c] = scale * s->q[c * p + i];
        if (c < s->k && scale > 0) *sum += 1 / scale;
    }
    TRY(ki_vector_set(s->rotation, s->r));
    TRY(kiln_multiply(W, 1, KILN_PLAIN, Y, s->rotation, 0, NULL));
done:
    return status;
}

/* U's columns orthonormal, Z = X^T U: the left vectors, and the right ones times the singular values. */
static kiln_status iterate(struct pairs *s, int64_t seed) {
    kiln_status status;
    double sum = 0, before;
    TRY(kiln_fill_random(s->Z, KILN_NORMAL, (uint64_t)seed, KI_STREAM_GAP_START));
    for (int turn = 0; turn < TURNS; turn++) {
        before = sum;
        TRY(orthonormalise(s->V, &sum, s, s->Z));
        TRY(kiln_multiply(s->Y, 1, KILN_PLAIN, s->X, s->V, 0, NULL));
        TRY(orthonormalise(s->U, &sum, s, s->Y));
        TRY(kiln_multiply(s->Z, 1, KILN_TRANSPOSED, s->X, s->U, 0, NULL));
        if (fabs(sum - before) <= REST * sum) break;
    }
done:
    return status;
}

/* The lengths of a column's positive and negative entries. */
static void lengths(double length[2], const double *A, int64_t rows, int64_t p, int64_t c) {
    length[0] = length[1] = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double a = A[i * p + c];
        length[a < 0] += a * a;
    }
    length[0] = sqrt(length[0]);
    length[1] = sqrt(length[1]);
}

/* to's column c = scale times the part of A's that has the sign; both: whatever the sign. */
static void take_part(double *to, const double *A, const struct pairs *s, int64_t rows, int64_t c,
                      bool negative, bool both, double scale, double least) {
    for (int64_t i = 0; i < rows; i++) {
        const double a = A[i * s->p + c], part = both ? fabs(a) : negative ? fmax(-a, 0) : fmax(a, 0);
        const double value = scale * part;
        to[i * s->k + c] = value < LEAST ? least : value;
    }
}

/* a, b from the vectors u, and v times the singular values. */
static void take_pairs(double *a, double *b, const double *u, const double *v, const struct pairs *s,
                       double least) {
    const int64_t m = kiln_matrix_rows(s->X), n = kiln_matrix_cols(s->X);
    for (int64_t c = 0; c < s->k; c++) {
        double left[2], right[2];
        lengths(left, u, m, s->p, c);
        lengths(right, v, n, s->p, c);
        const double value = hypot(right[0], right[1]); /* the singular value */
        const bool negative = left[0] * right[0] <= left[1] * right[1], both = c == 0;
        const double of_left = both ? 1 : left[negative], of_right = both ? value : right[negative];
        const double size =
            both ? sqrt(value) : sqrt(of_left * of_right); /* sqrt(value times the parts' lengths) */
        take_part(a, u, s, m, c, negative, both, of_left > 0 ? size / of_left : 0, least);
        take_part(b, v, s, n, c, negative, both, of_right > 0 ? size / of_right : 0, least);
    }
}

kiln_status ki_gap_start(kiln_matrix *A, kiln_matrix *B, const kiln_matrix *X, int64_t seed, double least) {
    const int64_t m = kiln_matrix_rows(X), n = kiln_matrix_cols(X), k = kiln_matrix_cols(A);
    struct ki_arena arena = {0};
    struct pairs s = {.k = 0};
    kiln_status status;
    TRY(pairs_new(&s, &arena, X, k));
    double *const u = ki_arena_room(&arena, m * s.p, sizeof(double));
    double *const v = ki_arena_room(&arena, n * s.p, sizeof(double));
    double *const a = ki_arena_room(&arena, m * k, sizeof(double));
    double *const b = ki_arena_room(&arena, n * k, sizeof(double));
    TRY(arena.status);
    TRY(iterate(&s, seed));
    TRY(ki_vector_get(u, s.U));
    TRY(ki_vector_get(v, s.Z));
    take_pairs(a, b, u, v, &s, least);
    TRY(ki_vector_set(A, a));
    TRY(ki_vector_set(B, b));
done:
    return ki_arena_free(&arena, status);
}
