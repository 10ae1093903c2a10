/* The first centres: rows of X, drawn with the probability of their squared distance from the centres so
 * far.
 *
 * k-means++ takes one row after the other: of 2 + ln k that are drawn the one that brings the distances down
 * the most (Arthur and Vassilvitskii name this greedy; scikit-learn does it). One pass over X measures the
 * candidates, one brings the distances up to date. k-means|| draws some 2 k rows at once in each of five
 * rounds, weighs these candidates by the rows that are nearest to them, and lets k-means++ choose among
 * them: passes that do not grow with k. */
#include "algorithms/kmeans/kmeans.h"

#include "ops/points/piece_sums.h"
#include "ops/points/potentials.h"

enum { ROUNDS = 5, OVERSAMPLING = 2 };

/* Rows to draw from, and how likely each is to be drawn: its weight, times D once there is one. Sums of
 * blocks of KI_PIECE rows say in which block a row is that is drawn, and only that block comes to the
 * host. */
struct pool {
    const kiln_matrix *X, *weights; /* NULL: ones */
    int64_t m, blocks;
    kiln_matrix *D, *P; /* m x 1: distances; times weights (D itself where there are none) */
    kiln_matrix *sums;  /* of the blocks */
    kiln_batch *batch;
    double *block, total; /* the sums on the host */
};

/* The sums of P. */
static kiln_status add_up(struct pool *pool, const kiln_matrix *P) {
    kiln_status status;
    TRY(ki_piece_sums(pool->sums, P, KI_PIECE, pool->batch));
    TRY(ki_vector_get(pool->block, pool->sums));
    pool->total = 0;
    for (int64_t b = 0; b < pool->blocks; b++) pool->total += pool->block[b];
done:
    return status;
}

static kiln_status open_pool(struct pool *pool, struct ki_arena *arena, const struct kmeans *s,
                             const kiln_matrix *X, const kiln_matrix *weights) {
    const int64_t m = kiln_matrix_rows(X), blocks = ki_ceil_div(m, KI_PIECE);
    *pool = (struct pool){.X = X, .weights = weights, .m = m, .blocks = blocks};
    pool->block = ki_arena_reals(arena, blocks);
    pool->sums = ki_arena_model(arena, X, blocks, 1);
    pool->D = ki_arena_rows(arena, X, 1);
    pool->P = weights ? ki_arena_rows(arena, X, 1) : pool->D;
    return ki_kmeans_pieces(&pool->batch, arena, s, m, KI_PIECE);
}

/* Distances from `count` more centres, rows of the pool, the first of which has the number `first`. */
static kiln_status measure(struct pool *pool, struct kmeans *s, const int64_t *rows, int64_t count,
                           int64_t first) {
    struct ki_arena arena = {0};
    kiln_matrix *const C = ki_arena_model(&arena, s->X, count, s->n);
    kiln_status status;
    TRY(arena.status);
    TRY(kiln_rows(C, pool->X, rows));
    TRY(kiln_assign(&(kiln_assignment){.distances = pool->D, .first = first}, pool->X, C, NULL));
    if (pool->weights) TRY(kiln_times(pool->P, pool->D, pool->weights));
    TRY(add_up(pool, pool->P));
    ki_run_tell(&s->run);
done:
    return ki_arena_free(&arena, status);
}

/* The i of p at which what comes before, and p_i, have passed u; the last with p_i > 0 where rounding leaves
 * none. */
static int64_t pass(const double *p, int64_t count, double u) {
    int64_t last = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!(p[i] > 0)) continue;
        last = i;
        if ((u -= p[i]) < 0) break;
    }
    return last;
}

static int64_t draw_any(struct kmeans *s, int64_t m) {
    return ki_min((int64_t)(ki_draw(&s->draws) * (double)m), m - 1);
}

/* A row, with a probability proportional to p, of whose blocks the sums are there; any one where all p are
 * 0. */
static kiln_status draw(int64_t *row, struct kmeans *s, const struct pool *pool, const kiln_matrix *p) {
    double numbers[KI_PIECE], sum = 0;
    kiln_status status;
    const int64_t any = draw_any(s, pool->m);
    const double in_block = ki_draw(&s->draws);
    const int64_t block = pass(pool->block, pool->blocks, ki_draw(&s->draws) * pool->total);
    *row = any;
    if (block < 0) return KILN_OK;
    const int64_t first = block * KI_PIECE, count = ki_min(pool->m - first, KI_PIECE);
    TRY(ki_vector_part(numbers, p, first, count));
    for (int64_t i = 0; i < count; i++) sum += numbers[i];
    const int64_t at = pass(numbers, count, in_block * sum);
    if (at >= 0) *row = first + at;
done:
    return status;
}

static kiln_status draw_first(int64_t *row, struct kmeans *s, struct pool *pool) {
    kiln_status status = KILN_OK;
    *row = draw_any(s, pool->m);
    if (!pool->weights) return KILN_OK;
    TRY(add_up(pool, pool->weights));
    TRY(draw(row, s, pool, pool->weights));
done:
    return status;
}

/* K-Means draws as many candidates for a centre as scikit-learn does: of more one comes from each cluster
 * sooner. */
static int64_t candidates_of(int64_t k) {
    return 2 + (int64_t)log((double)k);
}

/* Several rows are drawn, and the one is taken that leaves the least to the draws after it: the sum of what P
 * would be. */
static kiln_status draw_best(int64_t *row, struct kmeans *s, const struct pool *pool) {
    const int64_t count = candidates_of(s->k);
    struct ki_arena arena = {0};
    double *const potential = ki_arena_reals(&arena, count);
    int64_t *const drawn = ki_arena_integers(&arena, count), best = 0;
    kiln_matrix *const C = ki_arena_model(&arena, s->X, count, s->n);
    kiln_status status;
    TRY(arena.status);
    for (int64_t i = 0; i < count; i++) TRY(draw(&drawn[i], s, pool, pool->P));
    TRY(kiln_rows(C, pool->X, drawn));
    TRY(ki_potentials(&(struct ki_potentials){
        .potential = potential, .X = pool->X, .C = C, .D = pool->D, .weights = pool->weights}));
    for (int64_t i = 1; i < count; i++)
        if (potential[i] < potential[best]) best = i;
    *row = drawn[best];
done:
    return ki_arena_free(&arena, status);
}

/* Greedy k-means++; s->C = the rows that it takes from X. A start on the data themselves, not on candidates,
 * is kept in checkpoints. */
static kiln_status choose(struct kmeans *s, const kiln_matrix *X, const kiln_matrix *weights) {
    struct ki_arena arena = {0};
    struct pool pool;
    kiln_status status;
    const bool kept = X == s->X;
    int64_t *const chosen = ki_arena_integers(&arena, s->k), count = 0;
    TRY(open_pool(&pool, &arena, s, X, weights));
    const struct kmeans_drawn drawn = {&count, chosen, pool.D};
    if (kept) TRY(ki_kmeans_resume_start(s, &drawn));
    if (count == 0) TRY(draw_first(&chosen[count++], s, &pool));
    while (count < s->k) {
        const bool goes_on = !s->run.cancelled;
        chosen[count] = draw_any(s, pool.m);
        if (goes_on) TRY(measure(&pool, s, chosen + count - 1, 1, count - 1));
        if (goes_on) TRY(draw_best(&chosen[count], s, &pool));
        count++;
        s->run.report.passes += goes_on && kept ? 2 : 0;
        if (goes_on && kept) TRY(ki_kmeans_keep_start(s, &drawn));
    }
    TRY(kiln_rows(s->C, X, chosen));
done:
    return ki_arena_free(&arena, status);
}

/* Each row by itself, OVERSAMPLING k of them on average; *count: how many there are before and after it. */
static kiln_status draw_round(struct kmeans *s, const struct pool *pool, int64_t *chosen, int64_t *count,
                              int64_t most) {
    const double rate = pool->total > 0 ? OVERSAMPLING * (double)s->k / pool->total : 0;
    double numbers[KI_PIECE];
    kiln_status status = KILN_OK;
    for (int64_t b = 0; b < pool->blocks; b++) {
        const int64_t first = b * KI_PIECE, rows = ki_min(pool->m - first, KI_PIECE);
        if (!(pool->block[b] > 0)) continue;
        TRY(ki_vector_part(numbers, pool->P, first, rows));
        for (int64_t i = 0; i < rows && *count < most; i++)
            if (ki_draw(&s->draws) < rate * numbers[i]) chosen[(*count)++] = first + i;
    }
done:
    return status;
}

/* Finds what k-means++ weighs candidates by: the rows that are nearest to each. */
static kiln_status weigh(kiln_matrix *weights, struct kmeans *s, const kiln_matrix *candidates) {
    const int64_t count = kiln_matrix_rows(candidates);
    struct ki_arena arena = {0};
    double *const totals = ki_arena_reals(&arena, 2 * count);
    kiln_status status;
    TRY(arena.status);
    TRY(kiln_assign(&(kiln_assignment){.totals = totals}, s->X, candidates, s->options.weights));
    s->run.report.passes++;
    for (int64_t c = 0; c < count; c++) totals[c] = totals[2 * c];
    TRY(ki_vector_set(weights, totals));
done:
    return ki_arena_free(&arena, status);
}

/* k-means||. */
static kiln_status choose_parallel(struct kmeans *s) {
    const int64_t most = 1 + s->k + 2 * ROUNDS * OVERSAMPLING * s->k;
    struct ki_arena arena = {0};
    struct pool pool;
    int64_t *const chosen = ki_arena_integers(&arena, most), count = 1, measured = 0;
    kiln_status status;
    TRY(open_pool(&pool, &arena, s, s->X, s->options.weights));
    TRY(draw_first(&chosen[0], s, &pool));
    for (int round = 0; round < ROUNDS && measured < count && !s->run.cancelled; round++) {
        TRY(measure(&pool, s, chosen + measured, count - measured, measured));
        s->run.report.passes++;
        measured = count;
        TRY(draw_round(s, &pool, chosen, &count, most - s->k));
    }
    while (count < s->k) chosen[count++] = draw_any(s, s->m);
    kiln_matrix *const candidates = ki_arena_model(&arena, s->X, count, s->n), *const weights =
                                                                                   ki_arena_model(&arena,
                                                                                                  s->X, count,
                                                                                                  1);
    TRY(arena.status);
    TRY(kiln_rows(candidates, s->X, chosen));
    TRY(weigh(weights, s, candidates));
    TRY(choose(s, candidates, weights));
done:
    return ki_arena_free(&arena, status);
}

/* k different rows: each of the last k numbers, or, where the draw says so or it is taken, one before it
 * (Floyd). */
static kiln_status choose_random(struct kmeans *s) {
    struct ki_arena arena = {0};
    int64_t *const chosen = ki_arena_integers(&arena, s->k);
    kiln_status status;
    TRY(arena.status);
    for (int64_t c = 0; c < s->k; c++) {
        const int64_t last = s->m - s->k + c;
        int64_t row = ki_min((int64_t)(ki_draw(&s->draws) * (double)(last + 1)), last);
        for (int64_t i = 0; i < c; i++)
            if (chosen[i] == row) row = last;
        chosen[c] = row;
    }
    TRY(kiln_rows(s->C, s->X, chosen));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_kmeans_start(struct kmeans *s) {
    switch (s->options.init) {
    case KILN_INIT_PARALLEL: return choose_parallel(s);
    case KILN_INIT_RANDOM: return choose_random(s);
    default: return choose(s, s->X, s->options.weights);
    }
}
