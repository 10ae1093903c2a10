/* Ordinal (non-metric) scaling: disparities that rise with the dissimilarities and fit the layout's distances
 * best.
 *
 * The pairs are sorted by dissimilarity once. Their distances, in that order, are replaced by the nearest
 * sequence that does not fall: neighbours whose means would fall are pooled (pool adjacent violators). Ties:
 * primary, pairs of equal dissimilarity may get different disparities, so that they are sorted by distance
 * first; secondary, they get one, and begin as one block. What differs by rounding only is equal: points on a
 * grid have many distances that do. Which pairs are equal is a property of the data: the order comes from
 * distances in long double, the same on each device, and kiln_verify_mds finds it again. The disparities are
 * then scaled so that their weighted squares add up to the pairs' weight, which keeps the points apart. */
#include "algorithms/mds/mds.h"

#include <stdlib.h>

struct pair {
    long double delta; /* the least of those that are equal to it */
    double distance;
    int32_t i, j;
};

/* Neighbours that share a disparity, their weighted mean distance. */
struct block {
    double mean, weight;
    int64_t end; /* behind its last pair */
};

struct ki_ordinal {
    int64_t count;
    struct pair *pairs;   /* by dissimilarity */
    struct block *blocks; /* as many as there are pairs, at most */
    double *Y, *full;     /* n x p; n x n */
    double *weights;      /* n x n, or NULL: all count alike */
    int64_t n;
    kiln_matrix *disparities;
};

static int by_place(const struct pair *x, const struct pair *y) {
    if (x->i != y->i) return x->i < y->i ? -1 : 1;
    return x->j < y->j ? -1 : x->j > y->j;
}

static int by_delta(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return x->delta != y->delta ? (x->delta < y->delta ? -1 : 1) : by_place(x, y);
}

static int by_distance(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return x->distance != y->distance ? (x->distance < y->distance ? -1 : 1) : by_place(x, y);
}

static double weight_of(const struct ki_ordinal *o, int64_t i, int64_t j) {
    return o->weights ? o->weights[i * o->n + j] : 1;
}

/* The pairs that count, sorted; x: dissimilarities, or points in q dimensions. */
static void collect(struct ki_ordinal *o, const double *x, bool dissimilarities, int64_t q) {
    for (int64_t i = 0; i < o->n; i++)
        for (int64_t j = i + 1; j < o->n; j++) {
            if (!(weight_of(o, i, j) > 0)) continue;
            o->pairs[o->count++] =
                (struct pair){.delta = dissimilarities ? (long double)x[i * q + j]
                                                       : ki_mds_distance(x + i * q, x + j * q, q),
                              .i = (int32_t)i,
                              .j = (int32_t)j};
        }
    qsort(o->pairs, (size_t)o->count, sizeof *o->pairs, by_delta);
}

/* Gives dissimilarities that rounding alone tells apart one value, once: pairs of one value change places
 * later. */
static void tie(struct ki_ordinal *o, long double rounding) {
    for (int64_t begin = 0, end; begin < o->count; begin = end) {
        const long double least = o->pairs[begin].delta, most = least * (1 + rounding);
        for (end = begin + 1; end < o->count && o->pairs[end].delta <= most;) o->pairs[end++].delta = least;
    }
}

kiln_status ki_ordinal_new(struct ki_mds *s) {
    kiln_status status;
    struct ki_arena own = {0}, *arena = &s->run.arena;
    const int64_t n = s->n, q = kiln_matrix_cols(s->given), most = ki_max(n * (n - 1) / 2, 1);
    double *const x = ki_arena_room(&own, n * q, sizeof *x);
    struct ki_ordinal *o = s->ordinal = ki_arena_zeros(arena, 1, sizeof *o);
    TRY(own.status);
    TRY(arena->status);
    o->n = n;
    o->pairs = ki_arena_room(arena, most, sizeof *o->pairs);
    o->blocks = ki_arena_room(arena, most, sizeof *o->blocks);
    o->Y = ki_arena_room(arena, n * s->p, sizeof *o->Y);
    o->full = ki_arena_room(arena, n * n, sizeof *o->full);
    if (s->weights) o->weights = ki_arena_room(arena, n * n, sizeof *o->weights);
    o->disparities = ki_run_rows(&s->run, s->Y, n);
    TRY(arena->status);
    TRY(ki_vector_get(x, s->given));
    if (s->weights) TRY(ki_vector_get(o->weights, s->weights));
    collect(o, x, s->options.dissimilarities, q);
    tie(o, ki_mds_rounding(s->type));
done:
    return ki_arena_free(&own, status);
}

static void measure(struct ki_ordinal *o, int64_t p) {
    for (int64_t e = 0; e < o->count; e++) {
        const double *y = o->Y + o->pairs[e].i * p, *z = o->Y + o->pairs[e].j * p;
        double square = 0;
        for (int64_t c = 0; c < p; c++) square += (y[c] - z[c]) * (y[c] - z[c]);
        o->pairs[e].distance = sqrt(square);
    }
}

/* A block behind the last one, pooled with those before it for as long as means fall. Returns their new
 * number. */
static int64_t pool(struct block *blocks, int64_t count, struct block next) {
    while (count > 0 && blocks[count - 1].mean >= next.mean) {
        const struct block *before = &blocks[--count];
        const double weight = before->weight + next.weight;
        next.mean = (before->mean * before->weight + next.mean * next.weight) / weight;
        next.weight = weight;
    }
    blocks[count] = next;
    return count + 1;
}

/* The blocks of the nearest sequence that does not fall; their number. */
static int64_t regress(struct ki_ordinal *o, bool secondary) {
    int64_t count = 0;
    for (int64_t begin = 0, end; begin < o->count; begin = end) {
        for (end = begin + 1; end < o->count && o->pairs[end].delta == o->pairs[begin].delta;) end++;
        if (!secondary) qsort(o->pairs + begin, (size_t)(end - begin), sizeof *o->pairs, by_distance);
        struct block tied = {.end = end};
        for (int64_t e = begin; e < end; e++) {
            const struct pair *pair = &o->pairs[e];
            const double weight = weight_of(o, pair->i, pair->j);
            if (!secondary) count = pool(o->blocks, count, (struct block){pair->distance, weight, e + 1});
            tied.mean += pair->distance * weight;
            tied.weight += weight;
        }
        tied.mean /= tied.weight;
        if (secondary) count = pool(o->blocks, count, tied);
    }
    return count;
}

kiln_status ki_ordinal_fit(const kiln_matrix **disparities, struct ki_mds *s) {
    kiln_status status;
    struct ki_ordinal *o = s->ordinal;
    const int64_t n = s->n;
    TRY(ki_vector_get(o->Y, s->Y));
    measure(o, s->p);
    const int64_t count = regress(o, s->options.ties == KILN_MDS_SECONDARY);
    double squares = 0;
    for (int64_t b = 0; b < count; b++)
        squares += o->blocks[b].weight * o->blocks[b].mean * o->blocks[b].mean;
    const double scale = squares > 0 ? sqrt(s->pairs / squares) : 1;
    memset(o->full, 0, (size_t)(n * n) * sizeof *o->full);
    for (int64_t b = 0, e = 0; b < count; b++)
        for (; e < o->blocks[b].end; e++)
            o->full[o->pairs[e].i * n + o->pairs[e].j] = o->full[o->pairs[e].j * n + o->pairs[e].i] =
                scale * o->blocks[b].mean;
    TRY(ki_vector_set(o->disparities, o->full));
    *disparities = o->disparities;
done:
    return status;
}
