/* CPU body: the nearest centre of each row, without measuring those that cannot be.
 *
 * A row's distance from its centre is at most u, that from any other centre of a group is at least l. When
 * the centre has moved by d and others of the group by at most e, u + d and l - e are such bounds again, and
 * l - e > u + d says that no centre of the group is nearer (Hamerly; Yinyang for several groups). Only rows
 * that this leaves in doubt are read: the distance from their own centre first, then those from the groups
 * that remain in doubt, which give new bounds.
 *
 * Up to eight rows meet sixteen centres of a group at a time, a lane a centre, in the order of columns in
 * which assign.cpu.h adds up, so that scores have the same bits there and here. Bounds are f32, rounded away
 * from each other, and allow for the rounding of the scores that they come from, so that labels are those of
 * a pass without bounds.
 *
 * Sums and totals are those of the pass before, corrected for the rows that have come and gone. Each cluster
 * is one thread's, which goes through these rows in their order, so that the result does not depend on the
 * number of threads. */

#include "dialect/simd_math.h"
#include "ops/points/bounds.h"
#include "ops/points/nearest.h"

#include <float.h>

enum {
    FN(BOUNDS_ACROSS) = KI_BUNDLE / LANES, /* vectors of centres */
    FN(BOUNDS_ROWS) = SIMD_BYTES == 64        ? 8
                      : FN(BOUNDS_ACROSS) < 4 ? 4
                                              : 2, /* that meet them at once */
    FN(BOUNDS_DOUBTS) = 64,                        /* rows in doubt that wait for each other */
    FN(BOUNDS_PARTS) = 64
};

struct FN(bounds) {
    const struct ki_assign *of;
    kiln_bounds *b;
    int64_t n, groups, bundles;
    int parts;
    real *bundle; /* n x KI_BUNDLE each */
    real *half;   /* by places in the groups: half the squared norm, infinity where there is no centre */
    real_bits *number;
    struct FN(nearest_centres) to;
    double measured[FN(BOUNDS_PARTS)];
};

/* A row that bounds leave in doubt. */
struct FN(doubt) {
    int64_t row;
    const real *x;
    float limit;
    double square, norm;
    struct FN(nearest) found;
    double next;   /* the second least score in found's group */
    int64_t group; /* of found */
};

/* ------------------------------------------------------------------------------------------ bounds */

static float FN(bounds_over)(double distance) {
    return (float)(distance * (1 + 1e-6)) + (real_bytes == 4 ? 1e-20f : 1e-30f);
}

/* No more than the distance that a score belongs to: sqrt(d^2 - r) >= d - r / d, with what rounding took from
 * the score for r. */
static float FN(bounds_under)(double square, double norm, double score, int64_t n) {
    const double terms = (double)FN(assign_terms)(n) + 3;
    const double left = square + 2 * score;
    if (score == (double)INFINITY) return FLT_MAX;
    if (!(left > 1e-30)) return 0;
    const double distance = sqrt(left), reach = norm + distance;
    const double rounding =
        UNIT * (6 * (terms * norm * reach + FN(assign_halves)(n) * reach * reach) + terms * square);
    const double least = (distance - rounding / distance) * (1 - 1e-6);
    return least > 0 ? (float)fmin(least, FLT_MAX) : 0;
}

/* The distance of a row from its centre, or a little more. */
static float FN(bounds_measured)(const struct FN(bounds) * all, const real *x, int64_t label) {
    const int64_t terms = all->n / LANES + 20;
    const double square = (double)FN(assign_distance)(x, all->to.centres + label * all->n, all->n);
    return FN(bounds_over)(sqrt(square) * (1 + (double)terms * UNIT));
}

/* Brings the bounds of a row up to date; whether they leave its centre in doubt. */
ALWAYS_INLINE bool FN(bounds_move)(const struct FN(bounds) * all, int64_t row) {
    const kiln_bounds *b = all->b;
    const int32_t label = b->labels[row];
    float *lower = b->lower + row * all->groups;
    const float upper = (b->upper[row] + b->moved[label]) * (1 + 0x1p-22f);
    bool doubt = !b->valid;
    b->before[row] = label;
    b->upper[row] = upper;
    for (int64_t g = 0; g < all->groups; g++) {
        const float by = b->mover[g] == label ? b->second[g] : b->most[g];
        lower[g] = (lower[g] - by) * (1 - 0x1p-22f);
        doubt |= !(lower[g] > upper);
    }
    return doubt;
}

/* ---------------------------------------------------------------------------------------- distances */

/* sums = columns `begin` to `end` of rows times those of a bundle of centres; or added to them. */
ALWAYS_INLINE void FN(bounds_products)(FN(vreal) (*sums)[FN(BOUNDS_ACROSS)], const real *const *rows,
                                       const real *bundle, int64_t begin, int64_t end, const bool add) {
    enum { R = FN(BOUNDS_ROWS), V = FN(BOUNDS_ACROSS) };
    FN(vreal) sum[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) sum[r][v] = (FN(vreal)){0};
    for (int64_t j = begin; j < end; j++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) {
            const FN(vreal) centres = FN(load)(bundle + j * KI_BUNDLE + v * LANES);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) sum[r][v] += rows[r][j] * centres;
        }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int v = 0; v < V; v++) sums[r][v] = add ? sums[r][v] + sum[r][v] : sum[r][v];
}

/* found = of each row the nearest centre of a group. */
NEVER_INLINE void FN(bounds_group)(const struct FN(bounds) * all, struct FN(nearest) * found,
                                   const real *const *rows, int64_t group) {
    enum { R = FN(BOUNDS_ROWS), V = FN(BOUNDS_ACROSS), DEEP = FN(ASSIGN_DEEP) };
    const int64_t n = all->n, first = group * all->b->each, end = ki_min(first + all->b->each, all->bundles);
    struct FN(nearest_lanes) lanes[R];
    for (int r = 0; r < R; r++) lanes[r] = FN(nearest_none)();
    for (int64_t i = first; i < end; i++) {
        FN(vreal) sums[R][V];
        const real *bundle = all->bundle + i * n * KI_BUNDLE;
        FN(bounds_products)(sums, rows, bundle, 0, ki_min(n, DEEP), false);
        for (int64_t j = DEEP; j < n; j += DEEP)
            FN(bounds_products)(sums, rows, bundle, j, ki_min(n, j + DEEP), true);
        for (int v = 0; v < V; v++) {
            const FN(vreal) half = FN(load)(all->half + i * KI_BUNDLE + v * LANES);
            FN(vmask) number;
            memcpy(&number, all->number + i * KI_BUNDLE + v * LANES, sizeof number);
            for (int r = 0; r < R; r++) FN(nearest_step)(&lanes[r], half - sums[r][v], number);
        }
    }
    for (int r = 0; r < R; r++) found[r] = FN(nearest_of_lanes)(&lanes[r]);
}

/* Finds what is known of a row's nearest centre, when a group has been seen, too. */
static void FN(bounds_take)(const struct FN(bounds) * all, struct FN(doubt) * doubt,
                            const struct FN(nearest) * near, int64_t group) {
    const struct FN(nearest) before = doubt->found;
    all->b->lower[doubt->row * all->groups + group] =
        FN(bounds_under)(doubt->square, doubt->norm, near->best, all->n);
    if (near->best < before.best || (near->best == before.best && near->index < before.index)) {
        doubt->found = *near;
        doubt->found.second = fmin(near->second, before.best);
        doubt->next = near->second;
        doubt->group = group;
    } else {
        doubt->found.second = fmin(before.second, near->best);
    }
}

/* The distances from a group, of those rows that are in doubt about it, or have their centre there. How
 * many. */
static double FN(bounds_ask)(const struct FN(bounds) * all, struct FN(doubt) * doubts, int count,
                             int64_t group) {
    enum { R = FN(BOUNDS_ROWS) };
    const kiln_bounds *b = all->b;
    struct FN(doubt) * asked[FN(BOUNDS_DOUBTS)];
    const int64_t size = b->each * KI_BUNDLE;
    int of = 0;
    for (struct FN(doubt) *d = doubts; d < doubts + count; d++)
        if (b->group[b->labels[d->row]] == group || !(b->lower[d->row * all->groups + group] > d->limit))
            asked[of++] = d;
    for (int first = 0; first < of; first += R) {
        const real *rows[R];
        struct FN(nearest) found[R];
        for (int r = 0; r < R; r++) rows[r] = asked[first + r < of ? first + r : of - 1]->x;
        FN(bounds_group)(all, found, rows, group);
        for (int r = 0; r < R && first + r < of; r++)
            FN(bounds_take)(all, asked[first + r], &found[r], group);
    }
    return (double)of * (double)ki_min(size, b->k - group * size);
}

/* The row's centre, and bounds that follow. As assign.cpu.h decides: by distances, where rounding leaves
 * several. */
static void FN(bounds_decide)(const struct FN(bounds) * all, const struct FN(doubt) * d) {
    kiln_bounds *b = all->b;
    const double terms = (double)FN(assign_terms)(all->n);
    int64_t label = d->found.index;
    if (FN(assign_doubtful)(&all->to, &d->found, d->square, terms))
        label = FN(assign_dense_again)(&all->to, d->x,
                                       FN(assign_limit)(&all->to, d->found.best, d->square, terms));
    if (label == d->found.index)
        b->lower[d->row * all->groups + d->group] = FN(bounds_under)(d->square, d->norm, d->next, all->n);
    if (label != b->labels[d->row] || !b->valid) b->upper[d->row] = FN(bounds_measured)(all, d->x, label);
    b->labels[d->row] = (int32_t)label;
}

/* Measures what rows are in doubt about. */
static void FN(bounds_settle)(struct FN(bounds) * all, int part, struct FN(doubt) * doubts, int count) {
    kiln_bounds *b = all->b;
    int left = 0;
    for (int i = 0; i < count; i++) {
        struct FN(doubt) d = {.row = doubts[i].row, .found = {INFINITY, INFINITY, 0}, .limit = INFINITY};
        const float *lower = b->lower + d.row * all->groups;
        bool doubt = !b->valid;
        d.x = VALUES(all->of->X) + d.row * all->n;
        if (b->valid) {
            b->upper[d.row] = FN(bounds_measured)(all, d.x, b->labels[d.row]);
            d.limit = b->upper[d.row];
        }
        for (int64_t g = 0; g < all->groups; g++) doubt |= !(lower[g] > d.limit);
        if (!doubt) continue;
        d.square = (double)FN(assign_product)(d.x, d.x, all->n);
        d.norm = sqrt(d.square);
        doubts[left++] = d;
    }
    for (int64_t g = 0; g < all->groups; g++) all->measured[part] += FN(bounds_ask)(all, doubts, left, g);
    for (int i = 0; i < left; i++) FN(bounds_decide)(all, &doubts[i]);
}

static void FN(bounds_part)(void *of, int part) {
    struct FN(bounds) *all = of;
    const int64_t first = ki_part_begin(all->b->m, part, all->parts),
                  end = ki_part_begin(all->b->m, part + 1, all->parts);
    struct FN(doubt) doubts[FN(BOUNDS_DOUBTS)];
    int count = 0;
    for (int64_t row = first; row < end; row++) {
        if (FN(bounds_move)(all, row)) doubts[count++].row = row;
        if (count < FN(BOUNDS_DOUBTS) && row + 1 < end) continue;
        FN(bounds_settle)(all, part, doubts, count);
        count = 0;
    }
}

/* ---------------------------------------------------------------------------------------- the pass */

/* The centres have moved: how far each, and its rows' part of the inertia, which is that around their mean
 * and the weight times the square of the distance from there. */
void FN(bounds_centres)(const struct ki_assign *of) {
    const kiln_bounds *b = of->bounds;
    for (int64_t c = 0; c < b->k; c++) {
        const real *now = VALUES(of->C) + c * b->n;
        double *before = b->centres + c * b->n, *sum = b->sums + c * b->n;
        double *totals = b->sums + b->k * b->n + 2 * c, square = 0, nearer = 0;
        const double per = totals[0] > 0 ? 1 / totals[0] : 0;
        for (int64_t j = 0; j < b->n; j++) {
            const double by = (double)now[j] - before[j];
            square += by * by;
            nearer += by * ((double)now[j] + before[j] - 2 * per * sum[j]);
            before[j] = (double)now[j];
        }
        b->moved[c] = FN(bounds_over)(sqrt(square));
        if (per > 0) totals[1] = fmax(totals[1] + totals[0] * nearer, 0);
    }
}

/* The longest moves of each group. */
static void FN(bounds_moves)(const kiln_bounds *b) {
    for (int64_t g = 0; g < b->groups; g++) {
        b->most[g] = b->second[g] = 0;
        b->mover[g] = -1;
        for (int64_t i = g * b->each * KI_BUNDLE; i < (g + 1) * b->each * KI_BUNDLE && i < b->k; i++) {
            const float by = b->moved[b->order[i]];
            b->second[g] = fmaxf(b->second[g], fminf(by, b->most[g]));
            if (!(by <= b->most[g])) b->most[g] = by, b->mover[g] = b->order[i];
        }
    }
}

/* The centres in their groups, column by column. */
static void FN(bounds_pack)(struct FN(bounds) * all) {
    const kiln_bounds *b = all->b;
    for (int64_t i = 0; i < b->padded; i++) {
        const int64_t c = b->order[i];
        real *to = all->bundle + i / KI_BUNDLE * KI_BUNDLE * all->n + i % KI_BUNDLE;
        double square = 0;
        for (int64_t j = 0; j < all->n && i < all->bundles * KI_BUNDLE; j++) {
            const real value = c < 0 ? 0 : all->to.centres[c * all->n + j];
            to[j * KI_BUNDLE] = value;
            square += (double)value * (double)value;
        }
        all->half[i] = c < 0 ? (real)INFINITY : (real)(square / 2);
        all->number[i] = (real_bits)ki_max(c, 0);
        if (c < 0) continue;
        all->to.half[c] = all->half[i];
        all->to.huge |= !(square < HUGE_SQUARE);
    }
}

static kiln_status FN(bounds_allocate)(struct FN(bounds) * all) {
    const kiln_bounds *b = all->b;
    int64_t bundles, places, bytes;
    if (!ki_mul3(all->bundles * KI_BUNDLE, all->n, sizeof(real), &bundles) ||
        !ki_mul(3 * b->padded, sizeof(double), &places) || !ki_add(bundles, places, &bytes))
        return ki_fail_nomem(SIZE_MAX, "centres");
    all->bundle = ki_alloc((size_t)bytes);
    if (!all->bundle) return ki_fail_nomem((size_t)bytes, "centres");
    all->half = all->bundle + all->bundles * KI_BUNDLE * all->n;
    all->to.half = all->half + b->padded;
    all->number = (real_bits *)(void *)(all->to.half + b->padded);
    return KILN_OK;
}

kiln_status FN(bounds)(const struct ki_assign *of) {
    kiln_bounds *b = of->bounds;
    struct FN(bounds) all = {.of = of, .b = b, .n = b->n, .groups = b->groups};
    kiln_status status;
    all.to = (struct FN(nearest_centres)){.centres = VALUES(of->C), .k = b->k, .n = b->n};
    all.bundles = ki_ceil_div(b->k, KI_BUNDLE);
    all.parts = (int)ki_max(ki_min(b->m / 64, FN(BOUNDS_PARTS)), 1);
    TRY(FN(bounds_allocate)(&all));
    FN(bounds_moves)(b);
    FN(bounds_pack)(&all);
    ki_parallel(b->device->threads, all.parts, FN(bounds_part), &all);
    b->measured = 0;
    for (int part = 0; part < all.parts; part++) b->measured += all.measured[part];
done:
    ki_free(all.bundle);
    return status;
}

/* ----------------------------------------------------------------------------- what rows leave behind */

/* The row comes (sign 1) or goes (-1). */
static void FN(bounds_correct)(const struct ki_assign *of, int64_t row, int64_t c, double sign) {
    kiln_bounds *b = of->bounds;
    const int64_t n = b->n;
    const real *x = VALUES(of->X) + row * n;
    const double s = of->weights ? (double)VALUES(of->weights)[row] : 1;
    double *sum = b->sums + c * n, *totals = b->sums + b->k * n + 2 * c;
    if (s == 0) return;
    b->rows[c] += sign > 0 ? 1 : -1;
    totals[0] += sign * s;
    totals[1] += sign * s * (double)FN(assign_distance)(x, VALUES(of->C) + c * n, n);
    totals[1] = fmax(totals[1], 0);
    for (int64_t j = 0; j < n; j++) sum[j] += sign * s * (double)x[j];
    if (b->rows[c] > 0) return;
    memset(sum, 0, (size_t)n * sizeof *sum);
    totals[0] = totals[1] = 0;
}

static void FN(bounds_clusters)(void *arg, int64_t first, int64_t end) {
    const struct ki_assign *of = arg;
    kiln_bounds *b = of->bounds;
    int64_t changed = 0;
    for (int64_t row = 0; row < b->m; row++) {
        const int64_t from = b->before[row], to = b->labels[row];
        if (from == to) continue;
        changed++;
        if (from >= first && from < end) FN(bounds_correct)(of, row, from, -1);
        if (to >= first && to < end) FN(bounds_correct)(of, row, to, 1);
    }
    if (first == 0) b->changed = changed; /* every range comes to the same */
}

void FN(bounds_add)(const struct ki_assign *of) {
    kiln_bounds *b = of->bounds;
    const int threads = of->X->device->threads;
    if (b->fresh) {
        b->changed = b->m;
        if (of->place.leads) memset(b->rows, 0, (size_t)b->k * sizeof *b->rows);
        for (int64_t row = 0; row < b->m; row++)
            b->rows[b->labels[row]] += !of->weights || VALUES(of->weights)[row] != 0;
        return;
    }
    ki_parallel_ranges(threads, b->k, ki_ceil_div(b->k, threads), FN(bounds_clusters), (void *)of);
    const double *totals = b->sums + b->k * b->n;
    for (int64_t i = 0; i < b->k * b->n; i++) VALUES(of->sums)[i] = (real)b->sums[i];
    memcpy(of->totals, totals, (size_t)(2 * b->k) * sizeof *totals);
}
