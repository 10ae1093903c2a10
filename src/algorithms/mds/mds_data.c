/* The data of multi-dimensional scaling: dissimilarities, checked and with what is missing taken out, or
 * points whose distances they are.
 *
 * Squares of 1e20 are no numbers of f32, and those of 1e-30 are 0: data whose extent is far from 1 are
 * divided by a power of two, which changes no digit, and the results are multiplied by it. Interval scaling
 * fits its line to dissimilarities less the least of them, which says the same and does not cancel. */
#include "algorithms/mds/mds.h"

enum { ORDINAL_MOST = 30000 };

/* The power of two to divide numbers of up to `largest` by. */
static int exponent_of(double largest, kiln_type type) {
    int exponent = 0;
    if (largest > 0 && !ki_mds_fits(largest, type)) frexp(largest, &exponent);
    return exponent;
}

/* Finds whether a matrix equals its transpose: both times a random vector, within rounding. */
static kiln_status check_symmetric(const char *name, const kiln_matrix *D, double *norm) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *const v = ki_arena_rows(&arena, D, 1), *const a = ki_arena_rows(&arena, D, 1),
                       *const b = ki_arena_rows(&arena, D, 1);
    const int64_t n = kiln_matrix_rows(D);
    const double one = 1, minus_one = -1;
    double apart, size;
    TRY(arena.status);
    TRY(kiln_fill_random(v, KILN_UNIFORM, 1, 0));
    TRY(kiln_multiply(a, 1, KILN_PLAIN, D, v, 0, NULL));
    TRY(kiln_multiply(b, 1, KILN_TRANSPOSED, D, v, 0, NULL));
    TRY(kiln_combine(b, &minus_one, b, &one, a));
    TRY(kiln_norm(&apart, b, KILN_NORM_MAX));
    TRY(kiln_norm(&size, a, KILN_NORM_MAX));
    *norm = size;
    if (apart > 64 * sqrt((double)n) * ki_epsilon(kiln_matrix_type(D)) * size)
        TRY((ki_fail(KILN_ERR_DATA, "kiln_mds: %s is not symmetric", name),
             ki_hint("average it with its transpose, or give points in place of dissimilarities")));
done:
    return ki_arena_free(&arena, status);
}

kiln_status ki_mds_check_entry(const char *call, const char *what, double value, int64_t e, int64_t n,
                               bool may_miss) {
    if ((value >= 0 && !isinf(value)) || (may_miss && isnan(value))) return KILN_OK;
    const int64_t row = e / n + 1, col = e % n + 1;
    return ki_fail(KILN_ERR_DATA, "%s: %s %lld, %lld is %g, but must be finite and not negative", call, what,
                   (long long)row, (long long)col, value);
}

/* Missing dissimilarities are NaN: they get weight 0. Returns whether there are any; negative ones are an
 * error. */
static kiln_status drop_missing(double *delta, double *weights, int64_t n, bool *missing) {
    kiln_status status = KILN_OK;
    for (int64_t e = 0; e < n * n; e++) {
        const int64_t row = e / n + 1, col = e % n + 1;
        TRY(ki_mds_check_entry("kiln_mds", "dissimilarity", delta[e], e, n, true));
        if (row != col && isnan(delta[e])) {
            if (!isnan(delta[e % n * n + e / n]))
                TRY(ki_fail(KILN_ERR_DATA,
                            "kiln_mds: dissimilarity %lld, %lld is missing, but not %lld, %lld",
                            (long long)row, (long long)col, (long long)col, (long long)row));
            *missing = true;
            weights[e] = 0;
        }
        TRY(ki_mds_check_entry("kiln_mds", "weight", weights[e], e, n, false));
    }
done:
    return status;
}

/* Rows of the matrices, on the host; weights NULL: each is 1. */
struct lines {
    int64_t first, count, n;
    double *delta, *weights;
};

static double weight_of(const struct lines *of, int64_t e) {
    return of->weights ? of->weights[e] : 1;
}

/* sums += those of w, w delta and w delta^2 over the pairs that count. */
static void measure(double sums[3], const struct lines *of) {
    for (int64_t i = 0; i < of->count; i++)
        for (int64_t j = of->first + i + 1; j < of->n; j++) {
            const double w = weight_of(of, i * of->n + j), d = of->delta[i * of->n + j];
            sums[0] += w;
            sums[1] += w * d;
            sums[2] += w * d * d;
        }
}

static void take_sums(struct ki_mds *s, const double sums[3]) {
    s->pairs = sums[0], s->delta_sum = sums[1], s->delta_squares = sums[2];
}

/* The least and largest dissimilarity, and the largest weight, of the pairs that count; whether the diagonal
 * has anything but zeros. */
struct extents {
    double least, largest, heaviest;
    bool diagonal;
};

static void extend(struct extents *to, const struct lines *of) {
    for (int64_t i = 0; i < of->count; i++) {
        to->diagonal |= of->delta[i * of->n + of->first + i] != 0;
        for (int64_t j = of->first + i + 1; j < of->n; j++) {
            const double w = weight_of(of, i * of->n + j), d = of->delta[i * of->n + j];
            if (!(w > 0)) continue;
            to->least = fmin(to->least, d), to->largest = fmax(to->largest, d),
            to->heaviest = fmax(to->heaviest, w);
        }
    }
}

/* By what dissimilarities and weights are shifted and divided. Returns the exponent of dissimilarities. */
static int choose_units(struct ki_mds *s, const struct extents *of) {
    s->shift = s->options.metric == KILN_MDS_INTERVAL && s->n > 1 ? of->least : 0;
    const int exponent = exponent_of(of->largest > s->shift ? of->largest - s->shift : of->largest, s->type);
    s->exponent += exponent;
    s->weight_exponent = exponent_of(of->heaviest, s->type);
    return exponent;
}

/* delta = (delta - shift) / 2^exponent, 0 for pairs that do not count; weights / 2^s->weight_exponent. */
static void prepare(const struct lines *of, const struct ki_mds *s, double shift, int exponent) {
    for (int64_t e = 0; e < of->count * of->n; e++) {
        const bool diagonal = e % of->n == of->first + e / of->n;
        of->delta[e] =
            diagonal || weight_of(of, e) > 0 ? ldexp((diagonal ? 0 : of->delta[e]) - shift, -exponent) : 0;
        if (of->weights) of->weights[e] = ldexp(of->weights[e], -s->weight_exponent);
    }
}

/* Checks dissimilarities, or distances of points, on the host; what differs from those given gets copies. */
static kiln_status take_matrix(struct ki_mds *s, const kiln_matrix *D) {
    kiln_status status;
    const int64_t n = s->n;
    struct ki_arena arena = {0};
    bool missing = false;
    double norm, *const delta = ki_arena_room(&arena, n * n, sizeof *delta),
                        *const weights = ki_arena_room(&arena, n * n, sizeof *weights);
    TRY(arena.status);
    TRY(ki_vector_get(delta, D));
    if (s->options.weights)
        TRY(ki_vector_get(weights, s->options.weights));
    else
        for (int64_t e = 0; e < n * n; e++) weights[e] = 1;
    TRY(drop_missing(delta, weights, n, &missing));
    const struct lines all = {.count = n, .n = n, .delta = delta, .weights = weights};
    struct extents of = {INFINITY, 0, 0, false};
    extend(&of, &all);
    if (of.heaviest == 0 && n > 1)
        TRY(ki_fail(KILN_ERR_DATA, "kiln_mds: no pair of points has a dissimilarity and a weight"));
    const int exponent = choose_units(s, &of);
    const bool changed = missing || exponent || s->shift > 0 || s->options.weights || of.diagonal;
    double sums[3] = {0};
    prepare(&all, s, s->shift, exponent);
    s->shift = ldexp(s->shift, -exponent);
    measure(sums, &all);
    take_sums(s, sums);
    s->D = D;
    s->weights = s->options.weights;
    if (changed) {
        if (!s->own_D) s->own_D = ki_run_rows(&s->run, D, n);
        TRY(s->run.arena.status);
        TRY(ki_vector_set(s->own_D, delta));
        s->D = s->own_D;
    }
    if (missing || s->weight_exponent) {
        kiln_matrix *const own = ki_run_rows(&s->run, D, n);
        TRY(s->run.arena.status);
        TRY(ki_vector_set(own, weights));
        s->weights = own;
    }
    TRY(check_symmetric("the matrix of dissimilarities", s->D, &norm));
    if (s->weights) TRY(check_symmetric("the matrix of weights", s->weights, &norm));
done:
    return ki_arena_free(&arena, status);
}

/* ---- dissimilarities in a file, some rows at a time ---- */

/* Something done to some rows at a time: `run` sees them on the host. */
struct filed {
    struct ki_mds *s;
    kiln_status (*run)(const struct filed *of, const struct lines *rows, double *sums);
    struct extents *extents;
    bool *missing;
    double shift, a, b;
    int exponent;
    bool square;
};

static kiln_status run_lines(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                             kiln_matrix **made, double *sums) {
    const struct filed *of = each->kept;
    const int64_t n = kiln_matrix_cols(rows);
    struct ki_arena arena = {0};
    struct lines lines = {.first = row, .count = kiln_matrix_rows(rows), .n = n};
    kiln_matrix *own;
    kiln_status status;
    (void)entry;
    lines.delta = ki_arena_room(&arena, lines.count * n, sizeof *lines.delta);
    TRY(arena.status);
    TRY(ki_vector_get(lines.delta, rows));
    TRY(of->run(of, &lines, sums));
    if (each->made == 0) goto done;
    own = ki_arena_rows(&arena, rows, n);
    TRY(arena.status);
    TRY(ki_vector_set(own, lines.delta));
    *made = ki_arena_give(&arena, own);
done:
    return ki_arena_free(&arena, status);
}

static kiln_status look_at(const struct filed *of, const struct lines *rows, double *sums) {
    kiln_status status = KILN_OK;
    (void)sums;
    for (int64_t e = 0; e < rows->count * rows->n; e++) {
        const int64_t place = rows->first * rows->n + e;
        TRY(ki_mds_check_entry("kiln_mds", "dissimilarity", rows->delta[e], place, rows->n, true));
        *of->missing |= isnan(rows->delta[e]) && place % (rows->n + 1) != 0;
    }
    extend(of->extents, rows);
done:
    return status;
}

static kiln_status prepare_lines(const struct filed *of, const struct lines *rows, double *sums) {
    prepare(rows, of->s, of->shift, of->exponent);
    measure(sums, rows);
    return KILN_OK;
}

static kiln_status line_of(const struct filed *of, const struct lines *rows, double *sums) {
    (void)sums;
    for (int64_t e = 0; e < rows->count * rows->n; e++) {
        const double d = of->a + of->b * rows->delta[e];
        rows->delta[e] = of->square ? d * d : d;
    }
    return KILN_OK;
}

kiln_status ki_mds_file(kiln_matrix **made, struct ki_arena *arena, const kiln_matrix *D, double a, double b,
                        bool square) {
    struct filed of = {.run = line_of, .a = a, .b = b, .square = square};
    const struct ki_each each = {.run = run_lines, .made = 1, .kept = &of};
    return ki_arena_take(arena, made, ki_each_run(made, NULL, &each, D));
}

/* Missing pairs need all others at once: these come into memory. */
static kiln_status take_file(struct ki_mds *s, const kiln_matrix *D) {
    kiln_status status;
    struct extents extents = {INFINITY, 0, 0, false};
    bool missing = false;
    double norm, sums[3];
    struct filed of = {.s = s, .run = look_at, .extents = &extents, .missing = &missing};
    struct ki_each each = {.run = run_lines, .kept = &of};
    TRY(ki_each_run(NULL, NULL, &each, D));
    if (missing) {
        TRY(ki_mds_whole(&D, s));
        return take_matrix(s, D);
    }
    of.run = prepare_lines;
    of.exponent = choose_units(s, &extents);
    of.shift = s->shift;
    each.sums = 3;
    each.made = of.exponent || s->shift > 0 || extents.diagonal;
    TRY(ki_arena_take(&s->run.arena, &s->own_D, ki_each_run(&s->own_D, sums, &each, D)));
    s->shift = ldexp(s->shift, -of.exponent);
    take_sums(s, sums);
    s->D = s->own_D ? s->own_D : D;
    TRY(check_symmetric("the matrix of dissimilarities", s->D, &norm));
done:
    return status;
}

kiln_status ki_mds_whole(const kiln_matrix **X, struct ki_mds *s) {
    kiln_matrix *own = NULL;
    const kiln_status status =
        ki_arena_take(&s->run.arena, &own, kiln_matrix_copy(&own, s->device, KILN_TYPE_DEFAULT, *X));
    if (status == KILN_OK) *X = own;
    return status;
}

/* ---- points ---- */

kiln_status ki_mds_extent(double *extent, const kiln_matrix *X) {
    kiln_status status;
    struct ki_arena arena = {0};
    kiln_matrix *const first = ki_arena_model(&arena, X, 1, kiln_matrix_cols(X)), *const apart =
                                                                                      ki_arena_rows(&arena, X,
                                                                                                    1);
    TRY(arena.status);
    TRY(kiln_rows(first, X, &(int64_t){0}));
    TRY(kiln_distances(apart, X, first));
    TRY(kiln_norm(extent, apart, KILN_NORM_MAX));
done:
    return ki_arena_free(&arena, status);
}

/* Columns' least and most numbers. */
struct columns {
    double *least, *most;
    int exponent;
};

static kiln_status widen_columns(const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                                 int64_t entry, kiln_matrix **made, double *sums) {
    const struct columns *of = each->kept;
    const int64_t q = kiln_matrix_cols(rows), count = kiln_matrix_rows(rows) * q;
    struct ki_arena arena = {0};
    double *const x = ki_arena_room(&arena, count, sizeof *x);
    kiln_status status;
    (void)row, (void)entry, (void)made, (void)sums;
    TRY(arena.status);
    TRY(ki_vector_get(x, rows));
    for (int64_t e = 0; e < count; e++) {
        of->least[e % q] = fmin(of->least[e % q], x[e]);
        of->most[e % q] = fmax(of->most[e % q], x[e]);
    }
done:
    return ki_arena_free(&arena, status);
}

/* Returns what is taken off a column that is further from zero than it is wide: the least of its magnitudes,
 * so that the differences are exact. */
static double level_of(const struct columns *of, int64_t c) {
    const double least = of->least[c], most = of->most[c], near = fabs(least) < fabs(most) ? least : most;
    return (least >= 0 || most <= 0) && fabs(near) >= most - least ? near : 0;
}

static kiln_status shrink_rows(const struct ki_each *each, const kiln_matrix *rows, int64_t row,
                               int64_t entry, kiln_matrix **made, double *sums) {
    const struct columns *of = each->kept;
    const int64_t q = kiln_matrix_cols(rows), count = kiln_matrix_rows(rows) * q;
    struct ki_arena arena = {0};
    double *const x = ki_arena_room(&arena, count, sizeof *x);
    kiln_matrix *const own = ki_arena_rows(&arena, rows, q);
    kiln_status status;
    (void)row, (void)entry, (void)sums;
    TRY(arena.status);
    TRY(ki_vector_get(x, rows));
    for (int64_t e = 0; e < count; e++) x[e] = ldexp(x[e] - level_of(of, e % q), -of->exponent);
    TRY(ki_vector_set(own, x));
    *made = ki_arena_give(&arena, own);
done:
    return ki_arena_free(&arena, status);
}

/* *X = the points with columns near zero, where one is so far that what centred vectors leave of it is
 * rounding: classical scaling multiplies by X. Where squares leave the type, it is divided by a power of two,
 * too, so that the widest column is about 1 wide. */
static kiln_status shrink(const kiln_matrix **X, struct ki_mds *s) {
    kiln_status status;
    const int64_t q = kiln_matrix_cols(*X);
    const double far = 1 / sqrt(ki_epsilon(s->type));
    struct ki_arena arena = {0};
    struct columns of = {ki_arena_room(&arena, q, sizeof(double)), ki_arena_room(&arena, q, sizeof(double)),
                         0};
    struct ki_each each = {.run = widen_columns, .kept = &of};
    kiln_matrix *own = NULL;
    double widest = 0, level = 0;
    TRY(arena.status);
    for (int64_t c = 0; c < q; c++) of.least[c] = INFINITY, of.most[c] = -INFINITY;
    TRY(ki_each_run(NULL, NULL, &each, *X));
    for (int64_t c = 0; c < q; c++) {
        widest = fmax(widest, of.most[c] / 2 - of.least[c] / 2);
        level = fmax(level, fabs(level_of(&of, c)));
    }
    s->exponent = of.exponent = exponent_of(widest, s->type);
    if (of.exponent == 0 && !(level > far * widest)) goto done;
    each.run = shrink_rows;
    each.made = 1;
    TRY(ki_arena_take(&s->run.arena, &own, ki_each_run(&own, NULL, &each, *X)));
    *X = own;
done:
    return ki_arena_free(&arena, status);
}

/* Distances of points: as a matrix where a quarter of the device's memory holds it, or where it is needed as
 * a whole; else they are computed anew in each pass. */
static kiln_status take_points(struct ki_mds *s, const kiln_matrix *X) {
    kiln_status status;
    kiln_device_info info = {0};
    const bool whole = s->options.weights || s->options.metric != KILN_MDS_RATIO;
    int64_t elements;
    double extent;
    TRY(ki_check_finite("kiln_mds", "X", X, false));
    TRY(kiln_device_get_info(s->device, &info));
    TRY(ki_mds_extent(&extent, X));
    const bool by_panels = !ki_mul(s->n, s->n, &elements) ||
                           (!whole && elements > info.memory / 4 / (s->type == KILN_F32 ? 4 : 8));
    if (by_panels || !ki_mds_fits(extent, s->type)) TRY(shrink(&X, s));
    if (by_panels) {
        s->X = X;
        return KILN_OK;
    }
    s->own_D = ki_run_rows(&s->run, X, s->n);
    TRY(s->run.arena.status);
    TRY(kiln_distances(s->own_D, X, X));
    s->D = s->own_D;
    if (whole) TRY(take_matrix(s, s->own_D));
done:
    return status;
}

/* An f32 layout's points may have a stress in f64: f32 holds no square of 1e20. */
static kiln_status check_points(const char *call, const kiln_matrix *points, const kiln_matrix *X,
                                int64_t n) {
    if (kiln_matrix_type(points) != KILN_F64 || kiln_matrix_type(X) == KILN_F64)
        return ki_check_matrix(call, "point_stress", points, X, n, 1);
    if (kiln_matrix_format(points) == KILN_DENSE && kiln_matrix_device(points) == kiln_matrix_device(X) &&
        kiln_matrix_rows(points) == n && kiln_matrix_cols(points) == 1)
        return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: point_stress must be dense, %lld x 1, and on X's device", call,
                   (long long)n);
}

kiln_status ki_mds_check(const kiln_matrix *Y, const kiln_matrix *X, const kiln_mds_options *o) {
    static const char call[] = "kiln_mds";
    kiln_status status;
    if (!Y || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: Y or X is NULL", call);
    const int64_t n = kiln_matrix_rows(X), p = kiln_matrix_cols(Y);
    if (kiln_matrix_format(X) != KILN_DENSE)
        return (ki_fail(KILN_ERR_UNSUPPORTED, "%s: X must be dense", call),
                ki_hint("leave out columns of text, reduce sparse data to fewer dimensions first, or give "
                        "dissimilarities"));
    if (n < 1 || (!o->dissimilarities && kiln_matrix_cols(X) < 1))
        return ki_fail(KILN_ERR_DATA, "%s: X is empty", call);
    if (p < 1 || p > 64)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: Y has %lld columns, but must have 1 to 64", call,
                       (long long)p);
    TRY(ki_check_matrix(call, "Y", Y, X, n, p));
    if (Y == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: Y must not be X", call);
    if (o->dissimilarities && kiln_matrix_cols(X) != n)
        return ki_fail(KILN_ERR_DATA, "%s: dissimilarities are a square matrix, but X is %lld x %lld", call,
                       (long long)n, (long long)kiln_matrix_cols(X));
    if (o->weights) TRY(ki_check_matrix(call, "weights", o->weights, X, n, n));
    if (o->point_stress) TRY(check_points(call, o->point_stress, X, n));
    if (o->point_stress == Y) return ki_fail(KILN_ERR_ARGUMENT, "%s: point_stress must not be Y", call);
    if (o->metric == KILN_MDS_ORDINAL && n > ORDINAL_MOST)
        return (ki_fail(KILN_ERR_LIMIT, "%s: ordinal scaling sorts all pairs, and takes at most %d points",
                        call, ORDINAL_MOST),
                ki_hint("take a sample of the points, or metric ratio"));
    TRY(ki_check_iteration(call, o->tolerance, o->max_iterations));
    if (o->init == KILN_MDS_GIVEN) TRY(ki_check_finite(call, "Y", Y, false));
done:
    return status;
}

kiln_status ki_mds_take(struct ki_mds *s, const kiln_matrix *X) {
    const kiln_status status = !s->options.dissimilarities ? take_points(s, X)
                               : ki_lies_in_file(X)        ? take_file(s, X)
                                                           : take_matrix(s, X);
    if (s->options.metric != KILN_MDS_RATIO)
        s->exponent = 0; /* the layout's size is that of its disparities */
    return status;
}
