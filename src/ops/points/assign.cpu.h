/* CPU body of kiln_assign: the nearest centre of each row, without a matrix of distances.
 *
 * ||x - c||^2 / 2 is ||x||^2 / 2 plus the score h - x.c, h = ||c||^2 / 2, and only the score tells centres apart. Centres are
 * packed into panels of two vectors, rows into blocks, and a tile of scores goes from its sums of products straight into the
 * least score so far, the second least and the number of the least, lane by lane.
 *
 * Labels are exact: where f32 leaves the second least score within the bound of rounding, every centre that may be nearest is
 * measured again in double. Rounding moves a score by at most u ((n + 3) ||x|| ||c|| + ||c||^2), and a centre that may be
 * nearest is no further from the origin than ||x|| and its distance to x together.
 *
 * The sums are doubles. Where copies of them are small beside X, parts of the rows have copies of their own and add a row while
 * the cache has it; elsewhere each cluster is one thread's, which adds its rows in their order. Either way the result does not
 * depend on the number of threads. */

#include "dialect/simd_math.h"
#include "ops/points/assign.h"

enum {
    FN(ASSIGN_ROWS) = SIMD_BYTES == 64 ? 12 : 6, /* of a tile */
    FN(ASSIGN_TILES) = 8,                        /* in a block of rows */
    FN(ASSIGN_WIDE) = 2 * LANES,                 /* columns of a tile: the centres of a panel */
    FN(ASSIGN_PARTS) = 64,
    FN(ASSIGN_COPIES) = 16 /* of the sums, at least, or there is one */
};

struct FN(assign) {
    const struct ki_assign *of;
    int64_t n, k, padded; /* columns; centres, and in whole panels */
    int parts, copies;
    int64_t room; /* elements of a part's block */
    real *panels,
        *half; /* dense: n x WIDE each; sparse: n x padded. Half the squared norms, infinity behind the last */
    double *square; /* squared norms */
    bool huge;      /* squares that f32 does not hold */
    double *sums;   /* a copy: k x n, then k x 2 totals */
    int64_t copy;   /* elements of one */
    real *blocks;
    real *labels, *own_labels; /* of all rows where anyone needs them; where they are not the caller's */
};

/* What is known of a row: lane by lane, and then in all. */
struct FN(nearest_lanes) {
    FN(vreal) best, second;
    FN(vmask) index;
};

struct FN(nearest) {
    double best, second;
    int64_t index;
};

ALWAYS_INLINE void FN(nearest_step)(struct FN(nearest_lanes) * to, FN(vreal) score, FN(vmask) index) {
    const FN(vmask) less = score < to->best;
    if (real_bytes == 4) {
        const FN(vreal) larger = FN(select)(less, to->best, score);
        to->second = FN(select)(larger < to->second, larger, to->second);
    }
    to->best = FN(select)(less, score, to->best);
    to->index = (less & index) | (~less & to->index);
}

static struct FN(nearest) FN(nearest_of_lanes)(const struct FN(nearest_lanes) * lanes) {
    real best[LANES], second[LANES];
    real_bits index[LANES];
    memcpy(best, &lanes->best, sizeof best);
    memcpy(second, &lanes->second, sizeof second);
    memcpy(index, &lanes->index, sizeof index);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) {
            const real a = best[i], b = best[i + half];
            const bool other = b < a || (b == a && index[i + half] < index[i]);
            const real larger = other ? a : b;
            const real least = second[i + half] < second[i] ? second[i + half] : second[i];
            second[i] = larger < least ? larger : least;
            best[i] = other ? b : a;
            index[i] = other ? index[i + half] : index[i];
        }
    return (struct FN(nearest)){(double)best[0], (double)second[0], index[0]};
}

ALWAYS_INLINE struct FN(nearest_lanes) FN(nearest_none)(void) {
    return (struct FN(nearest_lanes)){FN(all)((real)INFINITY), FN(all)((real)INFINITY), {0}};
}

/* ------------------------------------------------------------------------------------------ scores */

/* first, first + 1, ... */
ALWAYS_INLINE FN(vmask) FN(assign_numbers)(int64_t first) {
    real_bits number[LANES];
    FN(vmask) all;
    for (int i = 0; i < LANES; i++) number[i] = (real_bits)(first + i);
    memcpy(&all, number, sizeof all);
    return all;
}

/* ROWS rows, packed column by column, against a panel of centres, the first of which has the number `first`. */
ALWAYS_INLINE void FN(assign_tile)(const int ROWS, struct FN(nearest_lanes) * lanes, const real *rows,
                                   const real *panel, const real *half, int64_t n, int64_t first) {
    FN(vreal) sum[FN(ASSIGN_ROWS)][2];
    const FN(vmask) low_index = FN(assign_numbers)(first), high_index = FN(assign_numbers)(first + LANES);
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++) sum[r][0] = sum[r][1] = (FN(vreal)){0};
    for (int64_t j = 0; j < n; j++, rows += FN(ASSIGN_ROWS), panel += FN(ASSIGN_WIDE)) {
        const FN(vreal) low = FN(load)(panel), high = FN(load)(panel + LANES);
#pragma GCC unroll 12
        for (int r = 0; r < ROWS; r++) {
            sum[r][0] += rows[r] * low;
            sum[r][1] += rows[r] * high;
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < ROWS; r++) {
        FN(nearest_step)(&lanes[r], FN(load)(half) - sum[r][0], low_index);
        FN(nearest_step)(&lanes[r], FN(load)(half + LANES) - sum[r][1], high_index);
    }
}

/* ||x - y||^2. */
static real FN(assign_distance)(const real *x, const real *y, int64_t n) {
    FN(vreal) sum = {0};
    real few = 0;
    for (int64_t j = 0; n < LANES && j < n; j++) few += (x[j] - y[j]) * (x[j] - y[j]);
    if (n < LANES) return few;
    for (int64_t j = 0; j < n; j += LANES) {
        const FN(vreal) apart = FN(load_some)(x + j, n - j) - FN(load_some)(y + j, n - j);
        sum += apart * apart;
    }
    return FN(lane_sum)(sum);
}

/* ||x||^2. */
static real FN(assign_square)(const real *x, int64_t n) {
    FN(vreal) sum = {0};
    real few = 0;
    for (int64_t j = 0; n < LANES && j < n; j++) few += x[j] * x[j];
    if (n < LANES) return few;
    for (int64_t j = 0; j < n; j += LANES) {
        const FN(vreal) some = FN(load_some)(x + j, n - j);
        sum += some * some;
    }
    return FN(lane_sum)(sum);
}

/* What tells apart scores that are rounded, from the row's squared norm and the entries that a score adds up. */
static double FN(assign_margin)(double square, double best, double entries) {
    const double unit = 0x1p-24, norm = sqrt(square), reach = norm + sqrt(fmax(square + 2 * best, 0));
    return 3 * unit * ((entries + 3) * norm * reach + reach * reach);
}

/* Whether f32 leaves in doubt which centre is nearest. */
static bool FN(assign_doubtful)(const struct FN(assign) * all, const struct FN(nearest) * found,
                                double square, double entries) {
    if (real_bytes == 8 || all->k == 1) return false;
    return !(found->second - found->best > FN(assign_margin)(square, found->best, entries)) ||
           !(square < 0x1p125) || all->huge;
}

/* No centre with a larger score is the nearest. */
static double FN(assign_limit)(const struct FN(assign) * all, const struct FN(nearest) * found, double square,
                               double entries) {
    const double margin = FN(assign_margin)(square, found->best, entries);
    return all->huge || !(square < 0x1p125) ? (double)INFINITY : found->best + margin;
}

/* The nearest centre of a dense row, in double, of those whose score is at most `limit`. */
static int64_t FN(assign_dense_again)(const struct FN(assign) * all, const real *x, double limit) {
    const int64_t n = all->n;
    const real *centres = VALUES(all->of->C), *panel = all->panels;
    double least = INFINITY;
    int64_t found = 0;
    for (int64_t first = 0; first < all->k; first += FN(ASSIGN_WIDE)) {
        FN(vreal) low = {0}, high = {0};
        for (int64_t j = 0; j < n; j++, panel += FN(ASSIGN_WIDE)) {
            low += x[j] * FN(load)(panel);
            high += x[j] * FN(load)(panel + LANES);
        }
        for (int64_t c = first; c < ki_min(first + FN(ASSIGN_WIDE), all->k); c++) {
            const real sum = c - first < LANES ? low[c - first] : high[c - first - LANES];
            if ((double)(all->half[c] - sum) > limit) continue;
            double distance = 0;
            for (int64_t j = 0; j < n; j++) {
                const double apart = (double)x[j] - (double)centres[c * n + j];
                distance += apart * apart;
            }
            if (distance < least) least = distance, found = c;
        }
    }
    return found;
}

/* The same of a sparse row, whose products with all centres are at hand. */
static int64_t FN(assign_sparse_again)(const struct FN(assign) * all, int64_t row, const real *products,
                                       double limit) {
    const kiln_matrix *X = all->of->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    const real *x = VALUES(X), *centres = VALUES(all->of->C);
    double least = INFINITY;
    int64_t found = 0;
    for (int64_t c = 0; c < all->k; c++) {
        if ((double)(all->half[c] - products[c]) > limit) continue;
        double score = all->square[c] / 2;
        for (int64_t e = start[row]; e < start[row + 1]; e++)
            score -= (double)x[e] * (double)centres[c * all->n + col[e]];
        if (score < least) least = score, found = c;
    }
    return found;
}

/* ---------------------------------------------------------------------------- what rows leave behind */

/* copy += s x and, to its totals, s and s ||x - c||^2. */
static void FN(assign_add)(const struct FN(assign) * all, double *copy, int64_t row, int64_t label,
                           double distance) {
    const struct ki_assign *of = all->of;
    const kiln_matrix *X = of->X;
    const int64_t n = all->n;
    const double s = of->weights ? (double)VALUES(of->weights)[row] : 1;
    double *totals = copy + (of->sums ? all->k * n : 0) + 2 * label, *sum = copy + label * n;
    if (s == 0) return;
    totals[0] += s;
    totals[1] += s * distance;
    if (!of->sums) return;
    const real *x = VALUES(X);
    if (X->format == KILN_DENSE) {
        for (int64_t j = 0; j < n; j++) sum[j] += s * (double)x[row * n + j];
        return;
    }
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    for (int64_t e = start[row]; e < start[row + 1]; e++) sum[col[e]] += s * (double)x[e];
}

static double FN(assign_distance_of)(const struct FN(assign) * all, int64_t row, int64_t label) {
    const kiln_matrix *X = all->of->X;
    const int64_t n = all->n;
    const real *x = VALUES(X), *centre = VALUES(all->of->C) + label * n;
    if (X->format == KILN_DENSE) return (double)FN(assign_distance)(x + row * n, centre, n);
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    double square = 0, product = 0;
    for (int64_t e = start[row]; e < start[row + 1]; e++) {
        square += (double)x[e] * (double)x[e];
        product += (double)x[e] * (double)centre[col[e]];
    }
    return fmax(square - 2 * product + all->square[label], 0);
}

static void FN(assign_settle)(const struct FN(assign) * all, int part, int64_t row, int64_t label) {
    const struct ki_assign *of = all->of;
    const bool add = all->sums && all->copies > 1;
    if (of->distances || add) {
        const double distance = FN(assign_distance_of)(all, row, label);
        if (of->first > 0 && !((real)distance < VALUES(of->distances)[row])) return;
        if (of->distances) VALUES(of->distances)[row] = (real)distance;
        if (add) FN(assign_add)(all, all->sums + part * all->copy, row, label, distance);
    }
    if (all->labels) all->labels[row] = (real)(of->first + label);
}

/* ------------------------------------------------------------------------------------------- the rows */

static void FN(assign_dense)(const struct FN(assign) * all, int part, int64_t first, int64_t end) {
    enum { R = FN(ASSIGN_ROWS), BLOCK = FN(ASSIGN_ROWS) * FN(ASSIGN_TILES) };
    struct FN(nearest_lanes) lanes[BLOCK];
    const int64_t n = all->n;
    const real *x = VALUES(all->of->X);
    real *rows = all->blocks + part * all->room;
    for (int64_t top = first; top < end; top += BLOCK) {
        const int64_t count = ki_min(end - top, BLOCK);
        for (int64_t r = 0; r < BLOCK; r++) {
            const real *from = x + (top + ki_min(r, count - 1)) * n;
            real *to = rows + r / R * R * n + r % R;
            for (int64_t j = 0; j < n; j++) to[j * R] = from[j];
            lanes[r] = FN(nearest_none)();
        }
        for (int64_t c = 0; c < all->padded; c += FN(ASSIGN_WIDE))
            for (int64_t r = 0; r < count; r += R) FN(assign_tile)
        (R, lanes + r, rows + r * n, all->panels + c * n, all->half + c, n, c);
        for (int64_t r = 0; r < count; r++) {
            struct FN(nearest) found = FN(nearest_of_lanes)(&lanes[r]);
            if (real_bytes == 4 && all->k > 1) {
                const real *row = x + (top + r) * n;
                const double square = (double)FN(assign_square)(row, n);
                if (FN(assign_doubtful)(all, &found, square, (double)n))
                    found.index =
                        FN(assign_dense_again)(all, row, FN(assign_limit)(all, &found, square, (double)n));
            }
            FN(assign_settle)(all, part, top + r, found.index);
        }
    }
}

static void FN(assign_sparse)(const struct FN(assign) * all, int part, int64_t first, int64_t end) {
    const kiln_matrix *X = all->of->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    const real *x = VALUES(X);
    real *products = all->blocks + part * all->room;
    for (int64_t row = first; row < end; row++) {
        struct FN(nearest_lanes) lanes = FN(nearest_none)();
        double square = 0;
        memset(products, 0, (size_t)all->padded * sizeof(real));
        for (int64_t e = start[row]; e < start[row + 1]; e++) {
            const real *centres = all->panels + col[e] * all->padded;
            square += (double)x[e] * (double)x[e];
            for (int64_t c = 0; c < all->padded; c += LANES)
                FN(store)(products + c, FN(load)(products + c) + x[e] * FN(load)(centres + c));
        }
        FN(vmask) index = FN(assign_numbers)(0);
        for (int64_t c = 0; c < all->padded; c += LANES, index += LANES)
            FN(nearest_step)(&lanes, FN(load)(all->half + c) - FN(load)(products + c), index);
        struct FN(nearest) found = FN(nearest_of_lanes)(&lanes);
        const double entries = (double)(start[row + 1] - start[row]);
        if (FN(assign_doubtful)(all, &found, square, entries))
            found.index =
                FN(assign_sparse_again)(all, row, products, FN(assign_limit)(all, &found, square, entries));
        FN(assign_settle)(all, part, row, found.index);
    }
}

static void FN(assign_part)(void *of, int part) {
    const struct FN(assign) *all = of;
    const kiln_matrix *X = all->of->X;
    const int64_t first = ki_part_begin(X->rows, part, all->parts),
                  end = ki_part_begin(X->rows, part + 1, all->parts);
    if (X->format == KILN_DENSE)
        FN(assign_dense)(all, part, first, end);
    else
        FN(assign_sparse)(all, part, first, end);
}

/* The rows of some clusters, each cluster's in their order. */
static void FN(assign_clusters)(void *of, int64_t first, int64_t end) {
    const struct FN(assign) *all = of;
    for (int64_t row = 0; row < all->of->X->rows; row++) {
        const int64_t label = (int64_t)all->labels[row];
        if (label < first || label >= end) continue;
        FN(assign_add)(all, all->sums, row, label, FN(assign_distance_of)(all, row, label));
    }
}

static void FN(assign_join)(void *of, int64_t first, int64_t end) {
    const struct FN(assign) *all = of;
    for (int copy = 1; copy < all->copies; copy++)
        for (int64_t i = first; i < end; i++) all->sums[i] += all->sums[copy * all->copy + i];
}

/* ------------------------------------------------------------------------------------------ the whole */

static void FN(assign_pack)(struct FN(assign) * all) {
    const int64_t n = all->n;
    const real *centres = VALUES(all->of->C);
    const bool dense = all->of->X->format == KILN_DENSE;
    for (int64_t c = 0; c < all->padded; c++) {
        const bool real_one = c < all->k;
        real *to = dense ? all->panels + c / FN(ASSIGN_WIDE) * FN(ASSIGN_WIDE) * n + c % FN(ASSIGN_WIDE)
                         : all->panels + c;
        const int64_t step = dense ? FN(ASSIGN_WIDE) : all->padded;
        double square = 0;
        for (int64_t j = 0; j < n; j++) {
            const real value = real_one ? centres[c * n + j] : 0;
            to[j * step] = value;
            square += (double)value * (double)value;
        }
        all->square[c] = square;
        all->half[c] = real_one ? (real)(square / 2) : (real)INFINITY;
        all->huge |= !(square < 0x1p125);
    }
}

/* Copies of the sums for each part where all of them are small beside X, or in any case. */
static void FN(assign_shape)(struct FN(assign) * all) {
    const struct ki_assign *of = all->of;
    const kiln_matrix *X = of->X;
    const int64_t small = ki_max(ki_matrix_bytes(X) / 10, 1 << 20);
    const bool wanted = of->sums || of->totals;
    all->copy = wanted ? (of->sums ? all->k * all->n : 0) + 2 * all->k : 0;
    all->parts = (int)ki_max(ki_min(X->rows / 64, FN(ASSIGN_PARTS)), 1);
    if (wanted && all->copy <= small / 8 / FN(ASSIGN_COPIES))
        all->parts = (int)ki_min(all->parts, small / 8 / all->copy);
    all->copies = !wanted ? 0 : all->copy <= small / 8 / FN(ASSIGN_COPIES) ? all->parts : 1;
    all->room = X->format == KILN_DENSE ? FN(ASSIGN_ROWS) * FN(ASSIGN_TILES) * all->n : all->padded;
}

static kiln_status FN(assign_allocate)(struct FN(assign) * all) {
    const struct ki_assign *of = all->of;
    int64_t panels, sums, blocks, labels = 0;
    if (of->labels) all->labels = VALUES(of->labels);
    const bool own_labels = all->copies == 1 && !of->labels;
    if (!ki_mul3(all->padded, all->n + 1, sizeof(real), &panels) ||
        !ki_mul3(all->copies, all->copy, 8, &sums) ||
        !ki_mul3(all->parts, all->room, sizeof(real), &blocks) ||
        (own_labels && !ki_mul(of->X->rows, sizeof(real), &labels)))
        return ki_fail_nomem(SIZE_MAX, "centres");
    all->panels = ki_alloc((size_t)panels);
    all->square = ki_alloc((size_t)all->padded * sizeof(double));
    all->blocks = ki_alloc((size_t)blocks + 1);
    all->sums = all->copies ? ki_calloc((size_t)sums) : NULL;
    if (own_labels) all->labels = all->own_labels = ki_alloc((size_t)labels + 1);
    if (!all->panels || !all->square || !all->blocks || (all->copies && !all->sums) ||
        (own_labels && !all->labels))
        return ki_fail_nomem((size_t)(panels + sums + blocks + labels), "centres and their sums");
    all->half = all->panels + all->padded * all->n;
    return KILN_OK;
}

kiln_status FN(assign)(const struct ki_assign *of) {
    struct FN(assign) all = {.of = of, .n = of->X->cols, .k = of->C->rows};
    const int threads = of->X->device->threads;
    all.padded = ki_ceil_div(all.k, FN(ASSIGN_WIDE)) * FN(ASSIGN_WIDE);
    FN(assign_shape)(&all);
    kiln_status status = FN(assign_allocate)(&all);
    if (status != KILN_OK) goto done;
    FN(assign_pack)(&all);
    ki_parallel(threads, all.parts, FN(assign_part), &all);
    if (all.copies == 1) ki_parallel_ranges(threads, all.k, 1, FN(assign_clusters), &all);
    ki_parallel_ranges(threads, all.copy, 4096, FN(assign_join), &all);
    const int64_t behind = of->sums ? all.k * all.n : 0;
    for (int64_t i = 0; i < behind; i++) VALUES(of->sums)[i] = (real)all.sums[i];
    for (int64_t i = 0; of->totals && i < 2 * all.k; i++) of->totals[i] = all.sums[behind + i];
done:
    ki_free(all.panels);
    ki_free(all.square);
    ki_free(all.blocks);
    ki_free(all.sums);
    ki_free(all.own_labels);
    return status;
}
