/* The search's vectors, as singular triples of A, are judged on A itself. With V the near vectors:
 *
 *   B V = Q T,   T = P S W^T:   near vectors V W, far vectors Q P,
 *
 * so that B v = s u but for rounding, and singular values below sqrt(epsilon) s_1, of which C knows nothing,
 * come out as well as V is. The residuals || B v - s u || and || B^T u - s v || are computed all the same. */
#include "algorithms/svd/svd.h"

static void swap(kiln_matrix **a, kiln_matrix **b) {
    kiln_matrix *const kept = *a;
    *a = *b;
    *b = kept;
}

kiln_status ki_svd_collect(struct ki_svd *s) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t k = s->k, w = s->width, size = ki_min(s->known, s->near - s->locked);
    kiln_matrix *const part = ki_arena_model(&arena, s->X, w, k);
    double *const values = ki_arena_doubles(&arena, w * k);
    TRY(arena.status);
    if (s->locked > 0)
        TRY(ki_copy(s->near_v, s->L));
    else
        TRY(kiln_fill(s->near_v, 0));
    for (int64_t i = 0; i * w < size; i++) {
        memset(values, 0, (size_t)(w * k) * sizeof *values);
        for (int64_t r = 0; r < w && i * w + r < size; r++)
            for (int64_t c = 0; c < k - s->locked && c < size; c++)
                values[r * k + s->locked + c] = s->Q[c * size + i * w + r];
        TRY(ki_vector_set(part, values));
        TRY(kiln_multiply(s->near_v, 1, KILN_PLAIN, s->V[i], part, 1, s->near_v));
    }
    TRY(ki_svd_orthonormalise(s, &s->wanted, &s->near_v, &s->near_w, k, false));
done:
    return ki_arena_free(&arena, status);
}

/* *A = *A R, by way of *spare. */
static kiln_status turn(kiln_matrix **A, kiln_matrix **spare, struct ki_svd_room *room, const double *R) {
    kiln_status status;
    memcpy(room->t, R, (size_t)(room->count * room->count) * sizeof *R);
    TRY(ki_vector_set(room->small, room->t));
    TRY(kiln_multiply(*spare, 1, KILN_PLAIN, *A, room->small, 0, NULL));
    swap(A, spare);
done:
    return status;
}

/* The triples of what near_v spans: far_x = B near_v, far_v the far vectors. */
static kiln_status split(struct ki_svd *s) {
    kiln_status status;
    struct ki_svd_room *const room = &s->wanted;
    struct ki_arena arena = {0};
    double *const R = ki_arena_doubles(&arena, s->k * s->k), *const W = ki_arena_doubles(&arena, s->k * s->k);
    TRY(arena.status);
    TRY(ki_svd_forward(s, room, s->far_x, s->near_v));
    TRY(ki_copy(s->far_v, s->far_x));
    TRY(ki_svd_orthonormalise(s, room, &s->far_v, &s->far_w, s->k, false));
    TRY(kiln_multiply(room->small, 1, KILN_TRANSPOSED, s->far_v, s->far_x, 0, NULL));
    TRY(ki_vector_get(R, room->small));
    TRY(ki_small_svd(R, W, s->s, room, &s->run));
    TRY(turn(&s->far_v, &s->far_w, room, R));
    TRY(turn(&s->far_x, &s->far_w, room, W));
    TRY(turn(&s->near_v, &s->near_w, room, W));
done:
    return ki_arena_free(&arena, status);
}

/* residual = max(residual, || A - Y diag(s) ||), column by column; A is overwritten. */
static kiln_status measure(struct ki_svd *s, kiln_matrix *A, const kiln_matrix *Y) {
    kiln_status status;
    struct ki_svd_room *const room = &s->wanted;
    for (int64_t c = 0; c < s->k; c++) room->scale[c] = -s->s[c], room->root[c] = 1;
    TRY(kiln_combine(A, room->root, A, room->scale, Y));
    TRY(kiln_norm(room->root, A, KILN_NORM_2));
    for (int64_t c = 0; c < s->k; c++)
        if (!(room->root[c] <= s->residual[c])) s->residual[c] = room->root[c];
done:
    return status;
}

/* The largest |Y^T Y - 1|. */
static kiln_status look_at(struct ki_svd *s, const kiln_matrix *Y) {
    kiln_status status;
    struct ki_svd_room *const room = &s->wanted;
    TRY(kiln_gram(room->small, NULL, Y, NULL, NULL));
    TRY(ki_vector_get(room->g, room->small));
    for (int64_t i = 0; i < s->k * s->k; i++)
        s->orthogonality = fmax(s->orthogonality, fabs(room->g[i] - (i % (s->k + 1) == 0)));
done:
    return status;
}

/* Room for far vectors, which the search has no use for. */
static kiln_status make_room(struct ki_svd *s) {
    kiln_matrix **const far[] = {&s->far_v, &s->far_w, &s->far_x};
    for (int i = 0; i < 3 && !*far[i]; i++) *far[i] = ki_run_model(&s->run, s->far, s->k);
    return s->run.arena.status;
}

kiln_status ki_svd_judge(struct ki_svd *s) {
    kiln_status status;
    kiln_report *report = &s->run.report;
    double worst = 0, squares = 0;
    TRY(make_room(s));
    if (s->known > 0) { /* else it was done before the search began anew */
        TRY(ki_svd_ritz(s, s->k - s->locked));
        TRY(ki_svd_collect(s));
    }
    TRY(split(s));
    memset(s->residual, 0, (size_t)s->k * sizeof *s->residual);
    TRY(measure(s, s->far_x, s->far_v));
    TRY(ki_svd_back(s, &s->wanted, s->near_w, s->far_v));
    TRY(measure(s, s->near_w, s->near_v));
    report->passes += 2;
    s->orthogonality = 0;
    TRY(look_at(s, s->near_v));
    TRY(look_at(s, s->far_v));
    for (int64_t c = 0; c < s->k; c++) {
        if (s->s[0] > 0) s->residual[c] /= s->s[0];
        if (!(s->residual[c] <= worst)) worst = s->residual[c];
        squares += s->s[c] / s->unit * (s->s[c] / s->unit);
    }
    report->residual = worst;
    report->objective = squares;
    s->judged = true;
done:
    return status;
}
