/* Column means and spreads without touching X:
 *
 *   mean_j = c_j + a_j / S,   centred_j = b_j - a_j^2 / S,   a_j = sum_i s_i (x_ij - c_j),
 *   b_j = sum_i s_i (x_ij - c_j)^2,
 *
 * S the sum of the weights s, for any c. About a c near the mean next to nothing cancels, however far from
 * zero a column is (years, time stamps), and of a constant column every x_ij - c_j is 0. So a dense X is
 * walked about the means of a few rows, and once more about the means themselves where these were far off.
 * Other walks over X know no c: of a column whose mean dwarfs its spread there, the numbers are copied out
 * into a dense matrix. A sparse X has few such columns, as nearly all of their numbers are entries. */
#include "algorithms/run/arena.h"

#include "ops/linear/gram.h"
#include "ops/linear/scales.h"

enum {
    LOOKS = 5,  /* about better and better means: a first c may be of rows without weight, and be anything */
    COPIED = 16 /* columns that are copied out together */
};
/* Says what may be left of a sum of squares about c: beyond it rounding shows. */
static const double DOUBTED_F64 = 1e-2, DOUBTED_F32 = 0.25;

/* A column whose squares leave the range of the type at either end: in the mean, as its sum may be large. */
static bool bad_column(kiln_type type, double weight, double square, double mean) {
    const double least = fmax(weight, 1) / (type == KILN_F32 ? (double)FLT_MAX : DBL_MAX);
    return !isfinite(square) || !isfinite(mean) || (square > 0 ? square <= least : mean != 0);
}

kiln_status ki_fail_column(const kiln_matrix *X, int64_t j, const char *what) {
    const bool narrow = kiln_matrix_type(X) == KILN_F32;
    ki_fail(KILN_ERR_DATA, "column %lld of X has %s %s", (long long)j, what, narrow ? "f32" : "f64");
    return ki_hint(narrow ? "--type f64, or clean or rescale that column (columns count from 0)"
                          : "clean or rescale that column (columns count from 0)");
}

/* The first column that is not finite, or lost to overflow or underflow; called only when there is one. */
static kiln_status name_bad_column(const struct ki_moments *moments, const kiln_matrix *X) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t cols = kiln_matrix_cols(X);
    int64_t j = 0;
    double *values = ki_arena_doubles(&arena, 2 * cols);
    TRY(arena.status);
    TRY(ki_vector_get(values, moments->square));
    TRY(ki_vector_get(values + cols, moments->mean));
    while (j < cols - 1 && !bad_column(kiln_matrix_type(X), moments->weight, values[j], values[cols + j]))
        j++;
    status = ki_fail_column(X, j,
                            isnan(values[j]) || !isfinite(values[cols + j])
                                ? "NaN or infinite values, or values whose squares overflow"
                            : !isfinite(values[j]) ? "values whose squares overflow"
                                                   : "values whose squares underflow");
done:
    return ki_arena_free(&arena, status);
}

/* The sums of a dense X about c. */
static kiln_status walk(struct ki_moments *moments, const kiln_matrix *X, const kiln_matrix *weights,
                        const kiln_matrix *c) {
    kiln_status status;
    TRY(ki_column_sums(&(struct ki_column_sums){.square = moments->square,
                                                .sum = moments->mean,
                                                .right = moments->right,
                                                .X = X,
                                                .v = weights,
                                                .y = moments->y,
                                                .d = moments->d,
                                                .c = c}));
    moments->passes++;
done:
    return status;
}

/* The moments from sums about c. doubts: how many columns may be rounding. */
static kiln_status settle(struct ki_moments *moments, double *doubts, const kiln_matrix *X,
                          const kiln_matrix *c) {
    kiln_status status;
    double found[KI_SCALES_SUMS]; /* columns that are not finite, or lost; in doubt; that count as constant */
    const bool narrow = kiln_matrix_type(X) == KILN_F32;
    const double flat = ki_flat(kiln_matrix_type(X));
    TRY(ki_scales_run(found, &(struct ki_scales){.op = KI_SCALES_MEASURE,
                                                 .square = moments->square,
                                                 .mean = moments->mean,
                                                 .centred = moments->centred,
                                                 .c = c,
                                                 .weight = moments->weight,
                                                 .doubted = narrow ? DOUBTED_F32 : DOUBTED_F64,
                                                 .flat = flat * flat}));
    if (found[0] > 0) TRY(name_bad_column(moments, X));
    *doubts = found[1];
    moments->flats.count = (int64_t)found[2];
done:
    return status;
}

/* Moments of a dense X that ki_column_sums takes. */
static kiln_status look(struct ki_moments *moments, struct ki_arena *arena, const kiln_matrix *X,
                        const kiln_matrix *weights) {
    kiln_status status;
    struct ki_arena own = {0};
    kiln_matrix *c = ki_arena_model(&own, X, kiln_matrix_cols(X), 1);
    double doubts = 1;
    if (moments->y) moments->right = ki_arena_model(arena, X, kiln_matrix_cols(X), 1);
    TRY(own.status);
    TRY(arena->status);
    TRY(ki_gram_centre(c, X));
    for (int i = 0; i < LOOKS && doubts > 0; i++) {
        if (i > 0) TRY(ki_copy(c, moments->mean));
        TRY(walk(moments, X, weights, c));
        TRY(settle(moments, &doubts, X, c));
    }
done:
    return ki_arena_free(&own, status);
}

static void make_room(struct ki_moments *moments, struct ki_arena *arena, const kiln_matrix *X) {
    moments->square = ki_arena_model(arena, X, kiln_matrix_cols(X), 1);
    moments->mean = ki_arena_model(arena, X, kiln_matrix_cols(X), 1);
    moments->centred = ki_arena_model(arena, X, kiln_matrix_cols(X), 1);
}

/* values, of square, mean and centred of all n columns: those of columns which[0 .. count), from copies of
 * these. */
static kiln_status copy_out(double *values, const int64_t *which, int64_t count, const kiln_matrix *X,
                            const kiln_matrix *weights, double weight) {
    kiln_status status;
    struct ki_arena arena = {0};
    const int64_t n = kiln_matrix_cols(X);
    struct ki_moments part = {.weight = weight};
    kiln_matrix *E = ki_arena_model(&arena, X, n, count), *copy = ki_arena_rows(&arena, X, count);
    double found[COPIED], *chosen = ki_arena_reals(&arena, n * count);
    if (copy) make_room(&part, &arena, copy);
    TRY(arena.status);
    for (int64_t c = 0; c < count; c++) chosen[which[c] * count + c] = 1;
    TRY(ki_vector_set(E, chosen));
    TRY(kiln_multiply(copy, 1, KILN_PLAIN, X, E, 0, NULL));
    TRY(look(&part, &arena, copy, weights));
    const kiln_matrix *const made[] = {part.square, part.mean, part.centred};
    for (int i = 0; i < 3; i++) {
        TRY(ki_vector_get(found, made[i]));
        for (int64_t c = 0; c < count; c++) values[i * n + which[c]] = found[c];
    }
done:
    return ki_arena_free(&arena, status);
}

/* Looks again at the columns in doubt. */
static kiln_status look_again(struct ki_moments *moments, const kiln_matrix *X, const kiln_matrix *weights) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *const parts[] = {moments->square, moments->mean, moments->centred};
    const double doubted = kiln_matrix_type(X) == KILN_F32 ? DOUBTED_F32 : DOUBTED_F64;
    const int64_t n = kiln_matrix_cols(X);
    int64_t which[COPIED], count = 0;
    double *values = ki_arena_doubles(&arena, 3 * n);
    TRY(arena.status);
    for (int i = 0; i < 3; i++) TRY(ki_vector_get(values + i * n, parts[i]));
    for (int64_t j = 0; j < n; j++) {
        const double square = values[j], centred = values[2 * n + j];
        if (square > 0 && centred <= doubted * square) which[count++] = j;
        if (count < COPIED && (j < n - 1 || count == 0)) continue;
        TRY(copy_out(values, which, count, X, weights, moments->weight));
        moments->passes++;
        count = 0;
    }
    for (int64_t j = 0; j < n; j++) moments->flats.count += values[2 * n + j] < 0;
    for (int i = 0; i < 3; i++) TRY(ki_vector_set(parts[i], values + i * n));
done:
    return ki_arena_free(&arena, status);
}

/* Moments of any other X: about zero at first. */
static kiln_status measure_apart(struct ki_moments *moments, const kiln_matrix *X,
                                 const kiln_matrix *weights) {
    kiln_status status;
    double doubts;
    TRY(kiln_gram_diagonal(moments->square, X, weights));
    TRY(kiln_multiply(moments->mean, 1, KILN_TRANSPOSED, X, weights, 0, NULL));
    moments->passes += 2;
    TRY(settle(moments, &doubts, X, NULL));
    if (doubts > 0 && !moments->rough) TRY(look_again(moments, X, weights));
done:
    return status;
}

/* From here on columns that count as constant are: what they vary by is noted. */
static kiln_status flatten(struct ki_moments *moments) {
    kiln_status status;
    struct ki_arena arena = {0};
    struct ki_flats *flats = &moments->flats;
    const int64_t n = kiln_matrix_rows(moments->centred);
    if (flats->count == 0) return KILN_OK;
    double *values = ki_arena_doubles(&arena, n);
    TRY(arena.status);
    TRY(ki_vector_get(values, moments->centred));
    for (int64_t j = n; j-- > 0;) {
        if (!(values[j] < 0)) continue;
        flats->first = j;
        flats->centred -= values[j];
        values[j] = 0;
    }
    TRY(ki_vector_set(moments->centred, values));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_moments_measure(struct ki_moments *moments, struct ki_arena *arena, const kiln_matrix *X,
                               const kiln_matrix *weights, double weight) {
    kiln_status status;
    moments->weight = weight;
    make_room(moments, arena, X);
    TRY(arena->status);
    TRY(ki_column_sums_apply(X) ? look(moments, arena, X, weights) : measure_apart(moments, X, weights));
    TRY(flatten(moments));
done:
    return status;
}
