/* The first centres: rows of X, drawn with the probability of their squared distance from the centres so far.
 *
 * k-means++ draws one row after the other, and a pass over X with that one centre brings the distances up to date. k-means||
 * draws some 2 k rows at once in each of five rounds, weighs these candidates by the rows that are nearest to them, and lets
 * k-means++ choose among them: passes that do not grow with k. */
#include "algorithms/kmeans/kmeans.h"

enum { ROUNDS = 5, OVERSAMPLING = 2 };

/* Rows to draw from, and what their distances are. */
struct pool {
    const kiln_matrix *X;
    const double *weights; /* or NULL */
    int64_t m;
    kiln_matrix *D; /* m x 1 */
    double *d;      /* weight times D */
    double total;
};

static void close_pool(struct pool *pool) {
    kiln_matrix_free(pool->D);
    ki_free(pool->d);
}

static kiln_status open_pool(struct pool *pool, const struct kmeans *s, const kiln_matrix *X,
                             const double *weights) {
    const int64_t m = kiln_matrix_rows(X);
    *pool = (struct pool){.X = X, .weights = weights, .m = m};
    pool->d = ki_alloc((size_t)m * sizeof *pool->d);
    if (!pool->d) return ki_fail_nomem((size_t)m * sizeof *pool->d, "distances");
    return kiln_matrix_dense(&pool->D, s->device, s->type, m, 1, NULL);
}

/* Distances from `count` more centres, rows of the pool, the first of which has the number `first`. */
static kiln_status measure(struct pool *pool, struct kmeans *s, const int64_t *rows, int64_t count,
                           int64_t first) {
    kiln_matrix *C = NULL;
    kiln_status status;
    TRY(kiln_matrix_dense(&C, s->device, s->type, count, s->n, NULL));
    TRY(kiln_rows(C, pool->X, rows));
    TRY(kiln_assign(&(kiln_assignment){.distances = pool->D, .first = first}, pool->X, C, NULL));
    TRY(ki_vector_get(pool->d, pool->D));
    pool->total = 0;
    for (int64_t i = 0; i < pool->m; i++) {
        if (pool->weights) pool->d[i] *= pool->weights[i];
        pool->total += pool->d[i];
    }
    ki_kmeans_tell(s);
done:
    kiln_matrix_free(C);
    return status;
}

/* A row, with a probability proportional to p; any one where all p are 0 or p is NULL. */
static int64_t draw(struct kmeans *s, const double *p, double total, int64_t m) {
    const double u = ki_kmeans_random(s);
    int64_t last = (int64_t)(u * (double)m);
    double left = u * total;
    for (int64_t i = 0; p && total > 0 && i < m; i++) {
        if (!(p[i] > 0)) continue;
        last = i;
        if ((left -= p[i]) < 0) break;
    }
    return ki_min(last, m - 1);
}

static int64_t draw_first(struct kmeans *s, const struct pool *pool) {
    double total = 0;
    for (int64_t i = 0; pool->weights && i < pool->m; i++) total += pool->weights[i];
    return draw(s, pool->weights, total, pool->m);
}

/* k-means++; s->C = the rows that it draws from X. */
static kiln_status choose(struct kmeans *s, const kiln_matrix *X, const double *weights) {
    struct pool pool;
    kiln_status status;
    int64_t *chosen = ki_alloc((size_t)s->k * sizeof *chosen);
    TRY(open_pool(&pool, s, X, weights));
    if (!chosen) TRY(ki_fail_nomem((size_t)s->k * sizeof *chosen, "centres"));
    chosen[0] = draw_first(s, &pool);
    for (int64_t c = 1; c < s->k; c++) {
        if (!s->cancelled) TRY(measure(&pool, s, chosen + c - 1, 1, c - 1));
        chosen[c] = s->cancelled ? draw(s, NULL, 0, pool.m) : draw(s, pool.d, pool.total, pool.m);
        s->report.passes += X == s->X && !s->cancelled;
    }
    TRY(kiln_rows(s->C, X, chosen));
done:
    close_pool(&pool);
    ki_free(chosen);
    return status;
}

/* Each row by itself, OVERSAMPLING k of them on average; how many there are after it. */
static int64_t draw_round(struct kmeans *s, const struct pool *pool, int64_t *chosen, int64_t count,
                          int64_t most) {
    const double rate = pool->total > 0 ? OVERSAMPLING * (double)s->k / pool->total : 0;
    for (int64_t i = 0; i < pool->m && count < most; i++)
        if (ki_kmeans_random(s) < rate * pool->d[i]) chosen[count++] = i;
    return count;
}

/* k-means||. */
static kiln_status choose_parallel(struct kmeans *s) {
    const int64_t most = 1 + s->k + 2 * ROUNDS * OVERSAMPLING * s->k;
    struct pool pool;
    kiln_matrix *candidates = NULL;
    double *totals = NULL;
    int64_t *chosen = ki_alloc((size_t)most * sizeof *chosen), count = 1, measured = 0;
    kiln_status status;
    TRY(open_pool(&pool, s, s->X, s->weights));
    if (!chosen) TRY(ki_fail_nomem((size_t)most * sizeof *chosen, "candidates"));
    chosen[0] = draw_first(s, &pool);
    for (int round = 0; round < ROUNDS && measured < count && !s->cancelled; round++) {
        TRY(measure(&pool, s, chosen + measured, count - measured, measured));
        s->report.passes++;
        measured = count;
        count = draw_round(s, &pool, chosen, count, most - s->k);
    }
    for (int64_t missing = s->k - count; missing > 0; missing--) chosen[count++] = draw(s, NULL, 0, s->m);
    TRY(kiln_matrix_dense(&candidates, s->device, s->type, count, s->n, NULL));
    TRY(kiln_rows(candidates, s->X, chosen));
    if (!(totals = ki_alloc((size_t)count * 2 * sizeof *totals)))
        TRY(ki_fail_nomem((size_t)count * 2 * sizeof *totals, "candidates' weights"));
    TRY(kiln_assign(&(kiln_assignment){.totals = totals}, s->X, candidates, s->options.weights));
    s->report.passes++;
    for (int64_t c = 0; c < count; c++) totals[c] = totals[2 * c];
    TRY(choose(s, candidates, totals));
done:
    close_pool(&pool);
    kiln_matrix_free(candidates);
    ki_free(totals);
    ki_free(chosen);
    return status;
}

/* k different rows: each of the last k numbers, or, where the draw says so or it is taken, one before it (Floyd). */
static kiln_status choose_random(struct kmeans *s) {
    kiln_status status;
    int64_t *chosen = ki_alloc((size_t)s->k * sizeof *chosen);
    if (!chosen) return ki_fail_nomem((size_t)s->k * sizeof *chosen, "centres");
    for (int64_t c = 0; c < s->k; c++) {
        const int64_t last = s->m - s->k + c;
        int64_t row = ki_min((int64_t)(ki_kmeans_random(s) * (double)(last + 1)), last);
        for (int64_t i = 0; i < c; i++)
            if (chosen[i] == row) row = last;
        chosen[c] = row;
    }
    TRY(kiln_rows(s->C, s->X, chosen));
done:
    ki_free(chosen);
    return status;
}

kiln_status ki_kmeans_start(struct kmeans *s) {
    switch (s->options.init) {
    case KILN_INIT_PARALLEL: return choose_parallel(s);
    case KILN_INIT_RANDOM: return choose_random(s);
    default: return choose(s, s->X, s->weights);
    }
}
