/* The first look at a problem that a factor will solve: all that the solution begins with, from one walk over
 * X,
 *
 *   A = Z^T S Z,  Z = [X - 1 c^T, Y - 1 d^T, 1],   c and d about the columns' means, from a few rows.
 *
 * The last row of A has what c and d miss the means mu by, and taking that off A, as a product of two
 * vectors, gives what the normal equations want about the means themselves: Gram matrix, right-hand sides,
 * variances, and the sums of squares of Y. Where c is no good, so that this would cost digits, or a column
 * may be constant or leaves the type's range, the walk does not count: the setup of conjugate gradient
 * (moments.c) tells such columns apart. */
#include "algorithms/linreg/linreg_block.h"

#include "ops/linear/gram.h"

/* Says what a sum of squares about c may lose on the way to the mean: sums in f64, of f32 blocks. */
static const double TRUST_F64 = 1e-3, TRUST_F32 = 0.1;

/* A(i, j) about the means. */
static double about_mean(const struct ki_walk *walk, int64_t i, int64_t j) {
    const int64_t size = walk->size;
    return walk->A[i * size + j] -
           walk->A[i * size + size - 1] * walk->A[j * size + size - 1] / walk->A[size * size - 1];
}

double ki_walk_element(const struct ki_system *system, int64_t i, int64_t j) {
    const struct ki_walk *walk = &system->walk;
    return system->options.no_intercept ? walk->A[i * walk->size + j] : about_mean(walk, i, j);
}

double ki_walk_spread(const struct ki_system *system, int64_t target) {
    return about_mean(&system->walk, system->walk.n + target, system->walk.n + target);
}

double ki_walk_mean(const struct ki_system *system, int64_t j) {
    const struct ki_walk *walk = &system->walk;
    return walk->origin[j] + walk->A[j * walk->size + walk->size - 1] / walk->A[walk->size * walk->size - 1];
}

static kiln_status origin_of(double *values, kiln_matrix *c, const kiln_matrix *X) {
    kiln_status status;
    TRY(ki_gram_centre(c, X));
    TRY(ki_vector_get(values, c));
done:
    return status;
}

double ki_walk_square(const struct ki_system *system, int64_t j) {
    const struct ki_walk *walk = &system->walk;
    const double product = walk->A[j * walk->size + walk->size - 1],
                 weight = walk->A[walk->size * walk->size - 1];
    return walk->A[j * (walk->size + 1)] + walk->origin[j] * (2 * product + weight * walk->origin[j]);
}

/* Returns whether column j can be told about its mean, and about zero is in the type's range. */
static bool sound(const struct ki_system *system, int64_t j) {
    const struct ki_walk *walk = &system->walk;
    const bool narrow = kiln_matrix_type(system->X) == KILN_F32;
    const double most = narrow ? 1e34 : 1e300, about_c = walk->A[j * (walk->size + 1)],
                 product = walk->A[j * walk->size + walk->size - 1], spread = about_mean(walk, j, j),
                 square = ki_walk_square(system, j), mean = ki_walk_mean(system, j),
                 flat = ki_flat(kiln_matrix_type(system->X)) * mean;
    if (!isfinite(about_c) || !isfinite(product) || !(square < most)) return false;
    if (about_c == 0 && product == 0) return square == 0 || square > 1 / most;
    if (!(spread > walk->A[walk->size * walk->size - 1] * flat * flat)) return false;
    return spread > (narrow ? TRUST_F32 : TRUST_F64) * about_c && square > 1 / most;
}

bool ki_walk_sound(const struct ki_system *system) {
    const struct ki_walk *walk = &system->walk;
    for (int64_t j = 0; j < walk->size - 1; j++)
        if (!sound(system, j)) return false;
    return walk->A[walk->size * walk->size - 1] > 0;
}

static kiln_status moments_of(struct ki_moments *moments, struct ki_system *system) {
    kiln_status status;
    const struct ki_walk *walk = &system->walk;
    const int64_t n = walk->n;
    const kiln_matrix *X = system->X;
    struct ki_arena own = {0}, *arena = &system->run.arena;
    double *values = ki_arena_doubles(&own, n);
    TRY(own.status);
    *moments = (struct ki_moments){.weight = walk->A[walk->size * walk->size - 1]};
    for (int64_t j = 0; j < n; j++) values[j] = ki_walk_mean(system, j);
    moments->mean = ki_arena_vector(arena, X, n, values);
    for (int64_t j = 0; j < n; j++) values[j] = about_mean(walk, j, j);
    moments->centred = ki_arena_vector(arena, X, n, values);
    for (int64_t j = 0; j < n; j++) values[j] = ki_walk_square(system, j);
    moments->square = ki_arena_vector(arena, X, n, values);
    TRY(arena->status);
done:
    return ki_arena_free(&own, status);
}

kiln_status ki_walk_sums(const struct ki_walk *walk, const kiln_matrix *X, const kiln_matrix *y,
                         const kiln_matrix *v, bool intercept) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *c = NULL, *d = NULL;
    if (intercept) c = ki_arena_model(&arena, X, kiln_matrix_cols(X), 1);
    if (intercept && y) d = ki_arena_model(&arena, y, kiln_matrix_cols(y), 1);
    TRY(arena.status);
    if (c) TRY(origin_of(walk->origin, c, X));
    if (d) TRY(origin_of(walk->origin + walk->n, d, y));
    TRY(ki_gram_all(&(struct ki_gram){.X = X, .v = v, .c = c, .Y = y, .d = d, .all = walk->A}));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_walk_measure(struct ki_moments *moments, struct ki_system *system, const kiln_matrix *y) {
    kiln_status status;
    struct ki_run *run = &system->run;
    struct ki_walk *walk = &system->walk;
    const int64_t n = kiln_matrix_cols(system->X), k = kiln_matrix_cols(y), size = n + k + 1;
    if (!system->direct.wanted || system->direct.by_rows || run->problems > 1 ||
        !ki_gram_in_one_walk(system->X))
        return KILN_OK;
    *walk = (struct ki_walk){.n = n,
                             .size = size,
                             .A = ki_arena_doubles(&run->arena, size * size),
                             .origin = ki_run_reals(run, size)};
    TRY(run->arena.status);
    TRY(ki_walk_sums(walk, system->X, y, system->options.weights, !system->options.no_intercept));
    run->report.passes++;
    if (ki_walk_sound(system))
        TRY(moments_of(moments, system));
    else
        *walk = (struct ki_walk){0};
done:
    return status;
}
