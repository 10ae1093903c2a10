/* The largest eigenvalues of C by a block Krylov method: V's last block V_j is multiplied by C, what lies in
 * V taken off, twice, and the rest is the next block,
 *
 *   C V_j = V h + V_{j+1} R,    H = V^T C V,    H y = theta y:   || C V y - theta V y || = || R y_j ||,
 *
 * y_j those of y's numbers that belong to V_j. When V is full it becomes its leading Ritz vectors, and the
 * block that is last stays: the thick restart of Wu and Simon.
 *
 * Triples that are found move to L, when smaller ones are lost in their rounding: of vectors orthogonal to L
 * as they are, the products with C are off by epsilon s_1 times their own singular values, instead of epsilon
 * s_1^2. */
#include "algorithms/eigen.h"
#include "algorithms/svd/svd.h"

/* Columns that V may have, of those that there are beside L. */
static int64_t room_left(const struct ki_svd *s) {
    return s->near - s->locked - ki_min(s->known, s->near - s->locked);
}

/* V's first block, from what stands in s->image. */
static kiln_status first_block(struct ki_svd *s) {
    kiln_status status;
    s->known = s->blocks = 0;
    memset(s->H, 0, (size_t)(s->most * s->most) * sizeof *s->H);
    s->least = INFINITY;
    s->patience = 0;
    s->judged = false;
    TRY(ki_svd_orthonormalise(s, &s->block, &s->image, &s->W, ki_min(s->b, room_left(s)), true));
    TRY(ki_copy(s->V[0], s->image));
    s->blocks = 1;
done:
    return status;
}

kiln_status ki_svd_begin(struct ki_svd *s) {
    kiln_status status;
    TRY(kiln_fill_random(s->image, KILN_NORMAL, (uint64_t)s->options.seed, KI_STREAM_SVD));
    s->streams = 1;
    TRY(first_block(s));
done:
    return status;
}

kiln_status ki_svd_lock(struct ki_svd *s, int64_t count) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t k = s->k, b = s->b;
    kiln_matrix *const first = ki_arena_model(&arena, s->X, k, k);
    kiln_matrix *const next = ki_arena_model(&arena, s->X, k, b);
    double *const chosen = ki_arena_reals(&arena, k * k), *const after = ki_arena_reals(&arena, k * b);
    TRY(arena.status);
    for (int64_t c = 0; c < count; c++) chosen[c * (k + 1)] = 1;
    for (int64_t c = count; c < k && c < count + b; c++) after[c * b + c - count] = 1;
    TRY(ki_vector_set(first, chosen));
    TRY(ki_vector_set(next, after));
    TRY(kiln_multiply(s->image, 1, KILN_PLAIN, s->near_v, next, 0, NULL));
    TRY(kiln_multiply(s->L, 1, KILN_PLAIN, s->near_v, first, 0, NULL));
    s->locked = count;
    s->exact = true;
    TRY(first_block(s));
done:
    return ki_arena_free(&arena, status);
}

/* The columns of H that belong to V's last block, and the row beside them. h: blocks x b x b. */
static void take_products(struct ki_svd *s, const double *h) {
    const int64_t b = s->b, w = s->most, first = s->known;
    for (int64_t i = 0; i < first + b; i++)
        for (int64_t c = 0; c < b; c++) s->H[i * w + first + c] = s->H[(first + c) * w + i] = h[i * b + c];
    for (int64_t i = first; i < first + b; i++) /* symmetric but for rounding */
        for (int64_t c = i + 1; c < first + b; c++)
            s->H[i * w + c] = s->H[c * w + i] = (h[i * b + c - first] + h[c * b + i - first]) / 2;
}

/* V becomes its first `kept` Ritz vectors, a multiple of b, and the last block. */
static kiln_status restart(struct ki_svd *s, int64_t kept) {
    kiln_status status = KILN_OK;
    const int64_t b = s->b, w = s->most;
    double *const part = s->block.t;
    for (int64_t j = 0; j < kept / b; j++)
        for (int64_t i = 0; i < s->known / b; i++) {
            for (int64_t r = 0; r < b; r++)
                for (int64_t c = 0; c < b; c++)
                    part[r * b + c] = s->Q[(i * b + r) * s->known + s->order[j * b + c]];
            TRY(ki_vector_set(s->block.small, part));
            TRY(kiln_multiply(s->next[j], 1, KILN_PLAIN, s->V[i], s->block.small, i > 0, s->next[j]));
        }
    kiln_matrix *const last = s->V[s->blocks - 1];
    s->V[s->blocks - 1] = s->V[kept / b];
    s->V[kept / b] = last;
    for (int64_t j = 0; j < kept / b; j++) {
        kiln_matrix *const former = s->V[j];
        s->V[j] = s->next[j];
        s->next[j] = former;
    }
    memset(s->H, 0, (size_t)(w * w) * sizeof *s->H);
    for (int64_t c = 0; c < kept; c++) s->H[c * (w + 1)] = s->theta[c];
    s->known = kept;
    s->blocks = kept / b + 1;
done:
    return status;
}

/* Ritz vectors that a restart keeps: those that are wanted, and a third of the room beside them. */
static int64_t kept_of(const struct ki_svd *s) {
    const int64_t wanted = s->k - s->locked, b = s->b;
    const int64_t kept = (wanted + (s->most - b - wanted) / 3 + b - 1) / b * b;
    return ki_max(ki_min(kept, s->most - 2 * b), b);
}

/* The block behind V's last one; none where V spans all that there is. */
static kiln_status next_block(struct ki_svd *s) {
    kiln_status status = KILN_OK;
    const int64_t wanted = ki_min(s->b, room_left(s));
    memset(s->R, 0, (size_t)(s->b * s->b) * sizeof *s->R);
    if (wanted == 0) goto done;
    TRY(ki_copy(s->image, s->W));
    TRY(ki_svd_orthonormalise(s, &s->block, &s->image, &s->spare, wanted, true));
    TRY(kiln_multiply(s->block.small, 1, KILN_TRANSPOSED, s->image, s->W, 0, NULL));
    TRY(ki_vector_get(s->R, s->block.small));
    TRY(ki_copy(s->V[s->blocks], s->image));
    s->blocks++;
done:
    return status;
}

kiln_status ki_svd_step(struct ki_svd *s) {
    kiln_status status;
    s->judged = false;
    if (s->known + 2 * s->b > s->most && room_left(s) > s->b) {
        ki_svd_ritz(s);
        TRY(restart(s, kept_of(s)));
    }
    TRY(ki_svd_square(s, s->W, s->V[s->blocks - 1]));
    TRY(ki_svd_project(s, s->W, s->h));
    take_products(s, s->h);
    s->known += s->b;
    TRY(next_block(s));
done:
    return status;
}

/* Columns of V that are not 0. */
static int64_t size_of(const struct ki_svd *s) {
    return ki_min(s->known, s->near - s->locked);
}

void ki_svd_ritz(struct ki_svd *s) {
    const int64_t size = size_of(s), w = s->most, b = s->b, last = s->known - b;
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < size; j++) s->K[i * size + j] = s->H[i * w + j];
    ki_eigen(s->K, s->Q, size);
    for (int64_t c = 0; c < size; c++) s->order[c] = c;
    for (int64_t c = 0; c < size; c++) {
        int64_t largest = c;
        for (int64_t i = c + 1; i < size; i++)
            if (s->K[s->order[i] * (size + 1)] > s->K[s->order[largest] * (size + 1)]) largest = i;
        const int64_t kept = s->order[c];
        s->order[c] = s->order[largest];
        s->order[largest] = kept;
        s->theta[c] = s->K[s->order[c] * (size + 1)];
    }
    for (int64_t c = 0; c < size; c++) {
        double square = 0;
        for (int64_t r = 0; r < b; r++) {
            double sum = 0;
            for (int64_t i = last; i < size; i++)
                sum += s->R[r * b + i - last] * s->Q[i * size + s->order[c]];
            square += sum * sum;
        }
        s->rest[c] = sqrt(square);
    }
}

/* What products with C are off by, of vectors orthogonal to L: as a value of A. */
static double rounding_of(const struct ki_svd *s) {
    const double units = 8 * ki_epsilon(kiln_matrix_type(s->X));
    return units * (s->locked > 0 ? s->s[0] : sqrt(fmax(s->theta[0], 0)));
}

struct ki_svd_outlook ki_svd_look(const struct ki_svd *s) {
    const int64_t wanted = s->k - s->locked;
    const double largest = sqrt(fmax(s->theta[0], 0)), first = s->locked > 0 ? s->s[0] : largest;
    const double rounding = rounding_of(s) * largest;
    const double known = fmax(s->run.tolerance / 2, sqrt(ki_epsilon(kiln_matrix_type(s->X))));
    struct ki_svd_outlook look = {.settled = size_of(s) >= ki_min(wanted, s->near - s->locked)};
    look.estimate = look.settled ? 0 : INFINITY;
    look.vanished = largest <= (double)ki_max(s->m, s->n) * rounding_of(s);
    for (int64_t c = 0; look.settled && c < wanted; c++) {
        const double own = sqrt(fmax(s->theta[c], 0)) * first;
        const double part = s->rest[c] == 0 ? 0 : own > 0 ? s->rest[c] / own : INFINITY;
        look.estimate = fmax(look.estimate, part);
        if (part > s->run.tolerance / 2 && s->rest[c] > rounding) look.settled = false;
        if (look.certain == c && part <= s->run.tolerance / 2 && rounding < known * own) look.certain++;
    }
    return look;
}
