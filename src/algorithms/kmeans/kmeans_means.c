/* This file says where the centres of a pass go: to the means of their rows.
 *
 * Lloyd's iteration ends because each move lowers the inertia. A mean that is computed is off by rounding,
 * though: of rows that are all the same it need not be that row, and a centre that follows such means may
 * go to and fro for ever. So a number of a centre moves only when the mean is further away than twice what
 * rounding makes of the mean. Then the mean that is computed is nearer to the true one than the number
 * was, and the inertia falls with every move. */
#include "algorithms/kmeans/kmeans.h"

#include "ops/linear/newton.h"

/* A mean as it is computed is off by at most this part of the mean of its rows' absolute values: three
 * roundings to the type (of the sum, of the weights' reciprocal and of their product), and two of doubles
 * for each row that the sum and the weights add up. */
static double rounding_of(const struct kmeans *s) {
    return 3 * ki_epsilon(s->type) / 2 + (double)(s->m + 1) * DBL_EPSILON;
}

double ki_kmeans_place(struct kmeans *s, int64_t c) {
    double *to = s->next + c * s->n, *from = s->centres + c * s->n, square = 0, moved = 0;
    for (int64_t j = 0; j < s->n && s->options.spherical; j++) square += to[j] * to[j];
    for (int64_t j = 0; j < s->n; j++) {
        if (s->options.spherical) to[j] = square > 0 ? to[j] / sqrt(square) : from[j];
        if (s->type == KILN_F32) to[j] = (double)(float)to[j];
        moved += (to[j] - from[j]) * (to[j] - from[j]);
    }
    return moved;
}

/* The numbers of s->next that differ from the centre's by rounding become the centre's; what the squares of
 * the others' moves add up to. */
static double keep_near(struct kmeans *s, int64_t c) {
    double *to = s->next + c * s->n, *from = s->centres + c * s->n, moved = 0;
    const double rounding = 2 * rounding_of(s);
    for (int64_t j = 0; j < s->n; j++) {
        const double move = to[j] - from[j];
        if (fabs(move) <= rounding * fabs(to[j]))
            to[j] = from[j];
        else
            moved += move * move;
    }
    return moved;
}

#define LIGHT 1e-30 /* a weight whose reciprocal f32 still holds */

/* From a centre to the mean of its rows, squared, while s->next is their sum. */
static double way_to_mean(const struct kmeans *s, int64_t c) {
    const double *sum = s->next + c * s->n, *from = s->centres + c * s->n, weight = s->found[2 * c];
    double square = 0, way = 0;
    for (int64_t j = 0; j < s->n; j++) square += sum[j] * sum[j];
    const double size = s->options.spherical ? sqrt(square) : weight;
    for (int64_t j = 0; j < s->n && weight > 0 && size > 0; j++)
        way += (sum[j] / size - from[j]) * (sum[j] / size - from[j]);
    return way;
}

/* s->means = s->next, by way of the host: where clusters have lost all their rows, or nearly, or means are
 * scaled. A centre that has got or given rows goes to its own however near they are; what counts of its move
 * is the way to the mean of the rows that it had, as what fills others says nothing of these centres. */
static kiln_status find_means_on_host(struct kmeans *s, double *moved) {
    kiln_status status;
    struct ki_arena arena = {0};
    double *const ways = ki_arena_doubles(&arena, s->k);
    TRY(arena.status);
    TRY(ki_vector_get(s->next, s->sums));
    TRY(ki_vector_get(s->centres, s->C));
    for (int64_t c = 0; c < s->k; c++) ways[c] = way_to_mean(s, c);
    TRY(ki_kmeans_fill(s, &s->filled));
    *moved = 0;
    for (int64_t c = 0; c < s->k; c++) {
        const double weight = s->totals[2 * c];
        for (int64_t j = c * s->n; j < (c + 1) * s->n; j++)
            s->next[j] = weight > 0 ? s->next[j] / weight : s->centres[j];
        ki_kmeans_place(s, c);
        *moved += s->found[2 * c] == weight ? keep_near(s, c) : ways[c];
    }
    TRY(ki_vector_set(s->means, s->next));
done:
    return ki_arena_free(&arena, status);
}

/* On the device: s->means = s->sums over the weights, number by number as keep_near. */
static kiln_status find_means_there(struct kmeans *s, double *moved) {
    double *const inverse = s->next, sums[3];
    kiln_status status;
    for (int64_t c = 0; c < s->k; c++) inverse[c] = 1 / s->totals[2 * c];
    TRY(ki_vector_set(s->per, inverse));
    TRY(kiln_batch_scale(s->means, s->sums, s->per, NULL));
    TRY(ki_pairs_run(sums, &(struct ki_pairs){.op = KI_PAIR_SETTLE,
                                              .out.w = s->means,
                                              .x.w = s->means,
                                              .y.w = s->C,
                                              .scalar = 2 * rounding_of(s)}));
    *moved = sums[0];
done:
    return status;
}

kiln_status ki_kmeans_means(struct kmeans *s, double *moved) {
    bool there = !s->options.spherical;
    kiln_status status;
    s->filled = 0;
    TRY(ki_kmeans_assign(s, s->X, s->options.weights));
    s->run.report.passes++;
    memcpy(s->found, s->totals, (size_t)(2 * s->k) * sizeof *s->found);
    for (int64_t c = 0; c < s->k; c++) there &= s->totals[2 * c] > LIGHT && s->totals[2 * c] < 1 / LIGHT;
    TRY(there ? find_means_there(s, moved) : find_means_on_host(s, moved));
done:
    return status;
}
