/* CPU body of kiln_assign: the nearest centre of each row, without a matrix of distances.
 *
 * ||x - c||^2 / 2 is ||x||^2 / 2 plus the score h - x.c, h = ||c||^2 / 2,
 * and only the score tells centres apart. A lane of the vectors is a row:
 * a tile of rows is turned so that their numbers of one column lie side by side,
 * and a panel of a few centres at a time multiplies it. A tile of scores goes from its sums of products
 * straight into each row's least score so far, the second least and the number of the least,
 * so that rows of two columns cost little more than their products. Rows of up to FEW_COLUMNS stay in
 * registers while all centres come by, in loops that know their length.
 *
 * Labels are exact: where the second least score is within the bound of rounding, every centre that may be
 * nearest is measured again, as a sum of squared differences in double, which does not cancel however far
 * rows are from zero. Rounding moves a score
 * by at most u ((t + 3) ||x|| ||c|| + ||c||^2), t the additions that a
 * product's term goes through, and a centre that may be nearest is no further from the origin than ||x|| and
 * its distance to x together. Products of many columns are sums of sums over DEEP of them, so that t is DEEP
 * + n / DEEP in place of n and fewer
 * rows are in doubt. Of few columns products come off h one by one, and ||c||^2 counts (n + 1) / 2 times; of
 * f64 n times more, as h is a sum of n squares in the same double.
 *
 * The sums are doubles. Where copies of them are small beside X, parts of the rows have copies of their own
 * and add a row while the cache has it; elsewhere each cluster is one thread's, which adds its rows in their
 * order. Either way the result does not depend on the number of threads. */

#include "dialect/simd_math.h"
#include "ops/points/assign.h"
#include "ops/points/tiles.h"

enum {
    FN(ASSIGN_TILES) = 8,         /* that a panel of centres meets while the cache has it, at most */
    FN(ASSIGN_BLOCK) = 512 << 10, /* bytes of tiles that the second cache level holds */
    FN(ASSIGN_PARTS) = 64,
    FN(ASSIGN_COPIES) = 16 /* of the sums, at least, or there is one */
};

#undef CANCELS
#define CANCELS 64.0 /* a difference below this share of what it is one of is taken anew */
#undef APART
#define APART 0x1p-40 /* a distance below this share of ||c||^2 that decides is taken column by column */

struct FN(assign) {
    const struct ki_assign *of;
    const real *x; /* a sparse X's values, or the one number that all entries are */
    real number;
    int64_t step;                /* from one entry's to the next: 1, or 0 */
    int64_t n, k, panel, padded; /* columns; centres, those of a panel, and in whole panels */
    bool few;                    /* columns, and centres that stay in the cache */
    int parts, copies;
    int64_t room, tiles; /* of a part's block: elements; tiles */
    real *panels;        /* dense: n x panel each; sparse: n x padded */
    struct FN(nearest_centres) to;
    double *square, *low; /* squared norms are their sums */
    double *sums;         /* a copy: k x n, then k x 2 totals */
    int64_t copy;         /* elements of one */
    real *blocks;
    real *labels, *own_labels; /* of all rows where anyone needs them; where they are not the caller's */
};

/* high + low = high + low + x^2, or - x^2, in twice the digits of double: the square is the product of a
 * fused multiplication, which no compiler contracts, and what each rounding leaves out goes into low. */
ALWAYS_INLINE void FN(add_square)(double *high, double *low, double x, const bool minus) {
    const double square = __builtin_fma(x, x, 0.0), rest = __builtin_fma(x, x, -square);
    const double by = minus ? -square : square, sum = *high + by, came = sum - *high;
    *low += ((*high - (sum - came)) + (by - came)) + (minus ? -rest : rest);
    *high = sum;
}

/* The value of an entry of a sparse X. */
ALWAYS_INLINE double FN(entry_of)(const struct FN(assign) * all, int64_t e) {
    return (double)all->x[e * all->step];
}

/* ||x - c||^2 of a sparse row: squared differences where it has entries,
 * and what is left of ||c||^2 without these columns. */
static double FN(assign_distance_apart)(const struct FN(assign) * all, int64_t row, int64_t c) {
    const kiln_matrix *X = all->of->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    const real *centre = VALUES(all->of->C) + c * all->n;
    double high = all->square[c], low = all->low[c], distance = 0;
    for (int64_t e = start[row]; e < start[row + 1]; e++) {
        const double there = (double)centre[col[e]], apart = FN(entry_of)(all, e) - there;
        FN(add_square)(&high, &low, there, true);
        distance += apart * apart;
    }
    return distance + fmax(high + low, 0);
}

/* The same column by column: what is left of ||c||^2 cannot be told from 0 where it is below 2^-100 of it. */
static double FN(assign_distance_whole)(const struct FN(assign) * all, int64_t row, int64_t c) {
    const kiln_matrix *X = all->of->X;
    const int64_t *start = ki_host(&X->row_start), begin = start[row], end = start[row + 1];
    const int32_t *col = ki_host(&X->col);
    const real *centre = VALUES(all->of->C) + c * all->n;
    int64_t next = begin;
    bool ascending = true;
    double distance = 0;
    for (int64_t e = begin + 1; e < end; e++) ascending &= col[e] > col[e - 1];
    for (int64_t j = 0; j < all->n; j++) {
        int64_t e = ascending ? next : begin;
        while (!ascending && e < end && col[e] != j) e++;
        const bool stored = e < end && col[e] == j;
        const double apart = (stored ? FN(entry_of)(all, e) : 0) - (double)centre[j];
        next += stored;
        distance += apart * apart;
    }
    return distance;
}

/* The nearest centre of a sparse row, of those whose score is at most `limit`; its products with all are
 * at hand. */
static int64_t FN(assign_sparse_again)(const struct FN(assign) * all, int64_t row, const real *products,
                                       double limit) {
    double least = INFINITY;
    int64_t found = 0;
    for (int64_t c = 0; c < all->k; c++) {
        if ((double)(all->to.half[c] - products[c]) > limit) continue;
        double distance = FN(assign_distance_apart)(all, row, c);
        if (distance <= all->square[c] * APART) distance = FN(assign_distance_whole)(all, row, c);
        if (distance < least) least = distance, found = c;
    }
    return found;
}

/* ---------------------------------------------------------------------------- what rows leave behind */

NEVER_INLINE void FN(assign_add_sparse)(const struct FN(assign) * all, double *sum, int64_t row, double s) {
    const kiln_matrix *X = all->of->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    for (int64_t e = start[row]; e < start[row + 1]; e++) sum[col[e]] += s * FN(entry_of)(all, e);
}

/* copy += s x and, to its totals, s and s ||x - c||^2; of n columns. */
ALWAYS_INLINE void FN(assign_add)(const struct FN(assign) * all, double *copy, int64_t row, int64_t label,
                                  double distance, const int64_t n) {
    const struct ki_assign *of = all->of;
    const kiln_matrix *X = of->X;
    const double s = of->weights ? (double)VALUES(of->weights)[row] : 1;
    double *totals = copy + (of->sums ? all->k * n : 0) + 2 * label, *sum = copy + label * n;
    if (s == 0) return;
    totals[0] += s;
    totals[1] += s * distance;
    if (!of->sums) return;
    if (X->format != KILN_DENSE) {
        FN(assign_add_sparse)(all, sum, row, s);
        return;
    }
    const real *x = VALUES(X) + row * n;
    for (int64_t j = 0; j < n; j++) sum[j] += s * (double)x[j];
}

/* By products where they do not cancel. */
NEVER_INLINE double FN(assign_distance_sparse)(const struct FN(assign) * all, int64_t row, int64_t label) {
    const kiln_matrix *X = all->of->X;
    const real *centre = VALUES(all->of->C) + label * all->n;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    double square = all->square[label], product = 0;
    for (int64_t e = start[row]; e < start[row + 1]; e++) {
        const double x = FN(entry_of)(all, e);
        square += x * x;
        product += x * (double)centre[col[e]];
    }
    const double distance = square - 2 * product;
    return distance > square / CANCELS ? distance : FN(assign_distance_apart)(all, row, label);
}

ALWAYS_INLINE double FN(assign_distance_of)(const struct FN(assign) * all, int64_t row, int64_t label,
                                            const int64_t n) {
    const kiln_matrix *X = all->of->X;
    if (X->format != KILN_DENSE) return FN(assign_distance_sparse)(all, row, label);
    return (double)FN(assign_distance)(VALUES(X) + row * n, VALUES(all->of->C) + label * n, n);
}

ALWAYS_INLINE void FN(assign_settle)(const struct FN(assign) * all, int part, int64_t row, int64_t label,
                                     const int64_t n) {
    const struct ki_assign *of = all->of;
    const bool add = all->sums && all->copies > 1;
    if (of->distances || add) {
        const double distance = FN(assign_distance_of)(all, row, label, n);
        if (of->first > 0 && !((real)distance < VALUES(of->distances)[row])) return;
        if (of->distances) VALUES(of->distances)[row] = (real)distance;
        if (add) FN(assign_add)(all, all->sums + part * all->copy, row, label, distance, n);
    }
    if (all->labels) all->labels[row] = (real)(of->first + label);
    if (of->found) of->found[row] = (int32_t)label;
}

/* The same for rows of n columns, a constant, that leave nothing but sums and weigh 1. */
ALWAYS_INLINE void FN(assign_settle_few)(const struct FN(assign) * all, double *sums, const real_bits *labels,
                                         int64_t first, int64_t count, const int n) {
    const real *x = VALUES(all->of->X) + first * n, *centres = VALUES(all->of->C);
    double *totals = sums + all->k * n;
    for (int64_t r = 0; r < count; r++, x += n) {
        const int64_t label = labels[r];
        double *sum = sums + label * n;
        totals[2 * label] += 1;
        totals[2 * label + 1] += (double)FN(assign_distance)(x, centres + label * n, n);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) sum[j] += (double)x[j];
    }
}

/* ------------------------------------------------------------------------------------------- the rows */

/* Squared norms of a tile's rows, and lanes of ones where rounding leaves in doubt which centre is
 * nearest, if there are any: assign_margin, by lanes. */
static bool FN(assign_doubts)(const struct FN(assign) * all, const struct FN(nearest_lanes) * lanes,
                              const real *rows, real *squares, real_bits *doubts) {
    FN(vmask) any = {0};
    for (int v = 0; v < FN(ASSIGN_ACROSS); v++) {
        FN(vreal) square = {0};
        for (int64_t j = 0; j < all->n; j++) {
            const FN(vreal) x = FN(load)(rows + j * FN(ASSIGN_TILE) + v * LANES);
            square += x * x;
        }
        const FN(vreal) far = FN(largest)(square + 2 * lanes[v].best, (FN(vreal)){0});
        const FN(vreal) norm = square * FN(vrsqrt)(square), reach = norm + far * FN(vrsqrt)(far);
        const FN(vreal) margin = (real)(3.1 * UNIT) * ((real)(FN(assign_terms)(all->n) + 3) * norm * reach +
                                                       (real)FN(assign_halves)(all->n) * reach * reach);
        const FN(vmask) sure = (lanes[v].second - lanes[v].best > margin) &
                               (square < (real)(real_bytes == 4 ? 0x1p60 : 0x1p500));
        const FN(vmask) doubt = all->to.huge ? ~(FN(vmask)){0} : ~sure;
        FN(store)(squares + v * LANES, square);
        memcpy(doubts + v * LANES, &doubt, sizeof doubt);
        any |= doubt;
    }
    real_bits all_lanes = 0;
    for (int l = 0; l < LANES; l++) all_lanes |= any[l];
    return all_lanes != 0;
}

/* The labels of a tile's rows: the least scores', or, where rounding leaves them in doubt, those of
 * distances. */
static void FN(assign_decide)(const struct FN(assign) * all, real_bits *labels,
                              const struct FN(nearest_lanes) * lanes, const real *rows, int64_t first,
                              int64_t count) {
    real squares[FN(ASSIGN_TILE)], best[FN(ASSIGN_TILE)];
    real_bits doubts[FN(ASSIGN_TILE)];
    for (int v = 0; v < FN(ASSIGN_ACROSS); v++) {
        memcpy(labels + v * LANES, &lanes[v].index, sizeof lanes[v].index);
        FN(store)(best + v * LANES, lanes[v].best);
    }
    if (!FN(assign_doubts)(all, lanes, rows, squares, doubts)) return;
    for (int64_t r = 0; r < count; r++) {
        if (!doubts[r]) continue;
        const double limit =
            FN(assign_limit)(&all->to, (double)best[r], (double)squares[r], (double)FN(assign_terms)(all->n));
        labels[r] =
            (real_bits)FN(assign_dense_again)(&all->to, VALUES(all->of->X) + (first + r) * all->n, limit);
    }
}

/* The nearest centres of the rows of a block of tiles. */
static void FN(assign_find)(const struct FN(assign) * all, real_bits *labels, real *rows, int64_t first,
                            int64_t end) {
    enum { T = FN(ASSIGN_TILE) };
    struct FN(nearest_lanes) lanes[FN(ASSIGN_TILES) * FN(ASSIGN_ACROSS)];
    const int64_t n = all->n, tiles = ki_ceil_div(end - first, T);
    for (int64_t t = 0; t < tiles; t++) {
        FN(assign_turn)
        (rows + t * T * n, VALUES(all->of->X), first + t * T, ki_min(end - first - t * T, T), n);
        for (int v = 0; v < FN(ASSIGN_ACROSS); v++) lanes[t * FN(ASSIGN_ACROSS) + v] = FN(nearest_none)();
    }
    for (int64_t c = 0; c < all->padded; c += FN(ASSIGN_PANEL))
        for (int64_t t = 0; t < tiles; t++) FN(assign_tile)
    (lanes + t * FN(ASSIGN_ACROSS), rows + t * T * n, all->panels + c * n, all->to.half + c, n, c);
    for (int64_t t = 0; t < tiles; t++) FN(assign_decide)
    (all, labels + t * T, lanes + t * FN(ASSIGN_ACROSS), rows + t * T * n, first + t * T,
     ki_min(end - first - t * T, T));
}

static void FN(assign_dense)(const struct FN(assign) * all, int part, int64_t first, int64_t end) {
    real_bits labels[FN(ASSIGN_TILES) * FN(ASSIGN_TILE)] = {0};
    const int32_t *known = all->of->known;
    const int64_t block = all->tiles * FN(ASSIGN_TILE);
    for (; first < end; first += block) {
        const int64_t count = ki_min(end - first, block);
        if (all->k > 1 && !known)
            FN(assign_find)(all, labels, all->blocks + part * all->room, first, first + count);
        for (int64_t r = 0; r < count; r++)
            FN(assign_settle)(all, part, first + r, known ? known[first + r] : labels[r], all->n);
    }
}

/* The same for rows of n columns, a constant, which stay in registers while centres come by. */
ALWAYS_INLINE void FN(assign_few)(const struct FN(assign) * all, int part, int64_t first, int64_t end,
                                  const int n) {
    enum { T = FN(ASSIGN_TILE) };
    real_bits labels[T];
    const struct ki_assign *of = all->of;
    const bool only =
        of->sums && all->copies > 1 && !of->weights && !of->distances && !all->labels && !of->found;
    real *rows = all->blocks + part * all->room;
    for (; first < end; first += T) {
        const int64_t count = ki_min(end - first, T);
        struct FN(nearest_lanes) lanes[FN(ASSIGN_ACROSS)];
        FN(assign_turn_few)(rows, VALUES(all->of->X), first, count, n);
        FN(few_tile)(lanes, rows, all->panels, all->to.half, all->padded, n);
        FN(assign_decide)(all, labels, lanes, rows, first, count);
        if (only)
            FN(assign_settle_few)(all, all->sums + part * all->copy, labels, first, count, n);
        else
            for (int64_t r = 0; r < count; r++) FN(assign_settle)(all, part, first + r, labels[r], n);
    }
}

static void FN(assign_few_columns)(const struct FN(assign) * all, int part, int64_t first, int64_t end) {
    switch (all->n) {
    case 1: FN(assign_few)(all, part, first, end, 1); break;
    case 2: FN(assign_few)(all, part, first, end, 2); break;
    case 3: FN(assign_few)(all, part, first, end, 3); break;
    case 4: FN(assign_few)(all, part, first, end, 4); break;
    case 5: FN(assign_few)(all, part, first, end, 5); break;
    case 6: FN(assign_few)(all, part, first, end, 6); break;
    case 7: FN(assign_few)(all, part, first, end, 7); break;
    default: FN(assign_few)(all, part, first, end, 8);
    }
}

static void FN(assign_sparse)(const struct FN(assign) * all, int part, int64_t first, int64_t end) {
    const kiln_matrix *X = all->of->X;
    const int64_t *start = ki_host(&X->row_start);
    const int32_t *col = ki_host(&X->col);
    real *products = all->blocks + part * all->room;
    for (int64_t row = first; row < end; row++) {
        struct FN(nearest_lanes) lanes = FN(nearest_none)();
        double square = 0;
        memset(products, 0, (size_t)all->padded * sizeof(real));
        for (int64_t e = start[row]; e < start[row + 1]; e++) {
            const real *centres = all->panels + col[e] * all->padded;
            const real x = all->x[e * all->step];
            square += (double)x * (double)x;
            for (int64_t c = 0; c < all->padded; c += LANES)
                FN(store)(products + c, FN(load)(products + c) + x * FN(load)(centres + c));
        }
        FN(vmask) index = FN(assign_numbers)(0);
        for (int64_t c = 0; c < all->padded; c += LANES, index += LANES) FN(nearest_step)
        (&lanes, FN(load)(all->to.half + c) - FN(load)(products + c), index);
        struct FN(nearest) found = FN(nearest_of_lanes)(&lanes);
        const double entries = (double)(start[row + 1] - start[row]);
        if (FN(assign_doubtful)(&all->to, &found, square, entries))
            found.index = FN(assign_sparse_again)(all, row, products,
                                                  FN(assign_limit)(&all->to, found.best, square, entries));
        FN(assign_settle)(all, part, row, found.index, all->n);
    }
}

static void FN(assign_part)(void *of, int part) {
    const struct FN(assign) *all = of;
    const kiln_matrix *X = all->of->X;
    const int64_t tile = X->format == KILN_DENSE ? FN(ASSIGN_TILE) : 1, tiles = ki_ceil_div(X->rows, tile);
    const int64_t first = ki_part_begin(tiles, part, all->parts) * tile,
                  end = ki_min(ki_part_begin(tiles, part + 1, all->parts) * tile, X->rows);
    if (all->copies > 1) memset(all->sums + part * all->copy, 0, (size_t)all->copy * sizeof *all->sums);
    if (X->format != KILN_DENSE)
        FN(assign_sparse)(all, part, first, end);
    else if (all->few)
        FN(assign_few_columns)(all, part, first, end);
    else
        FN(assign_dense)(all, part, first, end);
}

/* The rows of some clusters, each cluster's in their order. */
static void FN(assign_clusters)(void *of, int64_t first, int64_t end) {
    const struct FN(assign) *all = of;
    const int64_t n = all->of->sums ? all->n : 0;
    memset(all->sums + first * n, 0, (size_t)((end - first) * n) * sizeof *all->sums);
    memset(all->sums + all->k * n + 2 * first, 0, (size_t)(2 * (end - first)) * sizeof *all->sums);
    for (int64_t row = 0; row < all->of->X->rows; row++) {
        const int64_t label = (int64_t)all->labels[row];
        if (label < first || label >= end) continue;
        FN(assign_add)
        (all, all->sums, row, label, FN(assign_distance_of)(all, row, label, all->n), all->n);
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
        real *to = dense ? all->panels + c / all->panel * all->panel * n + c % all->panel : all->panels + c;
        const int64_t step = dense ? all->panel : all->padded;
        double square = 0, low = 0;
        for (int64_t j = 0; j < n; j++) {
            const real value = real_one ? centres[c * n + j] : 0;
            to[j * step] = value;
            if (dense)
                square += (double)value * (double)value;
            else
                FN(add_square)(&square, &low, (double)value, false);
        }
        all->square[c] = square;
        all->low[c] = low;
        all->to.half[c] = real_one ? (real)(square / 2) : (real)INFINITY;
        all->to.huge |= !(square < HUGE_SQUARE);
    }
}

/* Copies of the sums for each part where all of them are small beside X, or in any case. */
static void FN(assign_shape)(struct FN(assign) * all) {
    const struct ki_assign *of = all->of;
    const kiln_matrix *X = of->X;
    const int64_t bytes = ki_matrix_bytes(X) + X->nnz * (ki_type_bytes(X->type) - ki_value_bytes(X));
    const int64_t small = ki_max(bytes / 10, 1 << 20);
    const bool wanted = of->sums || of->totals;
    all->copy = wanted ? (of->sums ? all->k * all->n : 0) + 2 * all->k : 0;
    all->parts = (int)ki_max(ki_min(X->rows / 64, FN(ASSIGN_PARTS)), 1);
    if (wanted && all->copy <= small / 8 / FN(ASSIGN_COPIES))
        all->parts = (int)ki_min(all->parts, small / 8 / all->copy);
    all->copies = !wanted ? 0 : all->copy <= small / 8 / FN(ASSIGN_COPIES) ? all->parts : 1;
    const int64_t tile = FN(ASSIGN_TILE) * all->n;
    const int64_t fit = FN(ASSIGN_BLOCK) / real_bytes / ki_max(tile, 1);
    all->tiles = all->k <= FN(ASSIGN_PANEL) ? 1 : ki_max(ki_min(fit, FN(ASSIGN_TILES)), 1);
    all->room = X->format == KILN_DENSE ? all->tiles * tile : all->padded;
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
    all->square = ki_alloc((size_t)all->padded * 2 * sizeof(double));
    all->blocks = ki_alloc((size_t)blocks + 1);
    all->sums = all->copies ? ki_alloc((size_t)sums) : NULL;
    if (own_labels) all->labels = all->own_labels = ki_alloc((size_t)labels + 1);
    if (!all->panels || !all->square || !all->blocks || (all->copies && !all->sums) ||
        (own_labels && !all->labels))
        return ki_fail_nomem((size_t)(panels + sums + blocks + labels), "centres and their sums");
    all->low = all->square + all->padded;
    all->to.half = all->panels + all->padded * all->n;
    return KILN_OK;
}

kiln_status FN(assign)(const struct ki_assign *of) {
    struct FN(assign) all = {.of = of, .n = of->X->cols, .k = of->C->rows};
    all.number = (real)of->X->same;
    all.step = !of->X->element;
    if (of->X->format != KILN_DENSE) all.x = of->X->element ? &all.number : VALUES(of->X);
    all.to = (struct FN(nearest_centres)){.centres = VALUES(of->C), .k = all.k, .n = all.n};
    const int threads = of->X->device->threads;
    const int64_t few = all.n * ki_ceil_div(all.k, FN(FEW_PANEL)) * FN(FEW_PANEL) * real_bytes;
    all.few = of->X->format == KILN_DENSE && !of->known && all.k > 1 && all.n >= 1 &&
              all.n <= FN(FEW_COLUMNS) && few <= FN(ASSIGN_BLOCK);
    all.panel = of->X->format != KILN_DENSE ? LANES : all.few ? FN(FEW_PANEL) : FN(ASSIGN_PANEL);
    all.padded = ki_ceil_div(all.k, all.panel) * all.panel;
    FN(assign_shape)(&all);
    kiln_status status = FN(assign_allocate)(&all);
    if (status != KILN_OK) goto done;
    FN(assign_pack)(&all);
    ki_parallel(threads, all.parts, FN(assign_part), &all);
    if (all.copies == 1) ki_parallel_ranges(threads, all.k, 1, FN(assign_clusters), &all);
    ki_parallel_ranges(threads, all.copy, 4096, FN(assign_join), &all);
    for (int64_t i = 0; of->adds && i < all.copy; i++) all.sums[i] += of->kept[i];
    const int64_t behind = of->sums ? all.k * all.n : 0;
    for (int64_t i = 0; i < behind; i++) VALUES(of->sums)[i] = (real)all.sums[i];
    for (int64_t i = 0; of->totals && i < 2 * all.k; i++) of->totals[i] = all.sums[behind + i];
    if (of->kept) memcpy(of->kept, all.sums, (size_t)all.copy * sizeof *of->kept);
done:
    ki_free(all.panels);
    ki_free(all.square);
    ki_free(all.blocks);
    ki_free(all.sums);
    ki_free(all.own_labels);
    return status;
}
