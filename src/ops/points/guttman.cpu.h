/* CPU body of kiln_guttman and kiln_distances.
 *
 * Coordinates lie by dimension, so that the lanes of a vector are the columns j of a row's pairs (i, j), j
 * > i. A few rows go side by side: they share what is loaded and stored for the columns. What a pair adds
 * to point j goes to the part's own copy of the results, and the row's own sums too; the copies are added
 * up in order. How rows are cut into parts depends on the number of points alone, so that results do not
 * depend on the number of threads. */

#include "dialect/simd_math.h"
#include "ops/points/guttman.h"

enum {
    FN(GUTTMAN_ROWS) = SIMD_BYTES == 64 ? 4 : 2,
    FN(GUTTMAN_BLOCK) = 1024, /* columns whose coordinates and sums stay in the first-level cache */
    FN(GUTTMAN_PARTS) = 32,
    FN(GUTTMAN_FEW) = 4 /* room for dimensions in registers */
};

struct FN(guttman) {
    const kiln_guttman *step;
    int64_t top, end;     /* the rows whose pairs are wanted */
    int64_t from, to;     /* and the columns */
    int64_t n, padded, q; /* points; in whole vectors; dimensions of X */
    int p, rows, parts;   /* dimensions of Y; rows of results in a copy: R's, U's, the points' */
    real *y;              /* p x padded */
    /* X's rows: those of the pairs' rows from row `origin` on, as they are, and as columns, q x across, those
     * of their columns from `from` on. */
    const real *x_rows;
    real *x;
    int64_t across, origin;
    real *copies; /* parts x rows x padded */
    double sums[FN(GUTTMAN_PARTS)][KI_GUTTMAN_SUMS];
};

/* A few rows against a block of columns: what the inner loop needs, and the sums that it leaves. */
struct FN(guttman_rows) {
    int64_t first, count, begin, end; /* rows; columns, begin a multiple of LANES */
    int64_t n, padded, origin;        /* origin: the column that delta begins with */
    int p;
    const real *y, *delta[FN(GUTTMAN_ROWS)], *weight[FN(GUTTMAN_ROWS)]; /* weights: of column 0, or NULL */
    real *copy, *points; /* the part's; points NULL: not wanted */
    FN(vreal) sums[KI_GUTTMAN_SUMS];
};

static int64_t FN(whole_vectors)(int64_t n) {
    return ki_ceil_div(n, LANES) * LANES;
}

/* Rows of A (n x k) as columns of a k x padded array, zeros behind them. */
static void FN(by_dimension)(real *to, const kiln_matrix *A, int64_t padded) {
    memset(to, 0, (size_t)(A->cols * padded) * sizeof(real));
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t c = 0; c < A->cols; c++) to[c * padded + i] = VALUES(A)[i * A->cols + c];
}

/* The pairs of row r with LANES columns from j on; they add to `sums`, to the columns' part of the copy,
 * and to `row`, or, where p is no small constant (`dimensions` 0), to the row's part of the copy. */
ALWAYS_INLINE void FN(guttman_pairs)(const struct FN(guttman_rows) * rows, int r, int64_t j, bool edge,
                                     int dimensions, bool with_U, FN(vreal) * row, FN(vreal) * sums) {
    const int p = dimensions ? dimensions : rows->p;
    const int64_t i = rows->first + r, padded = rows->padded, left = rows->n - j;
    const real *y = rows->y + j, *own = rows->y + i, *weights = rows->weight[r];
    real *copy = rows->copy + j;
    FN(vreal) square = {0}, weight = FN(all)(1);
    FN(vreal)
    delta = edge ? FN(load_some)(rows->delta[r] + (j - rows->origin), left)
                 : FN(load)(rows->delta[r] + (j - rows->origin));
    if (weights) weight = edge ? FN(load_some)(weights + j, left) : FN(load)(weights + j);
#pragma GCC unroll 4
    for (int c = 0; c < p; c++) {
        const FN(vreal) apart = own[c * padded] - FN(load)(y + c * padded);
        square += apart * apart;
    }
    if (edge) {
        const FN(vmask) mask = FN(first_lanes)(left) & ~FN(first_lanes)(i + 1 - j);
        weight = FN(masked)(weight, mask);
        delta = FN(masked)(delta, mask);
    }
    const FN(vreal) inverse = FN(vrsqrt)(FN(largest)(square, FN(all)(LEAST_NORMAL)));
    const FN(vreal) distance = square * inverse, rest = delta - distance;
    const FN(vreal) push = weight * inverse, pull = push * delta, stress = weight * rest * rest;
    sums[KI_GUTTMAN_STRESS] += stress;
    sums[KI_GUTTMAN_SQUARES] += weight * square;
    if (with_U) {
        sums[KI_GUTTMAN_DISTANCES] += weight * distance;
        sums[KI_GUTTMAN_PRODUCTS] += weight * delta * distance;
    }
#pragma GCC unroll 4
    for (int c = 0; c < p; c++) {
        FN(vreal) apart = own[c * padded] - FN(load)(y + c * padded);
        if (c == 0) apart += FN(all)(real_bytes == 8 ? 0x1p-511 : 0x1p-63); /* dialect/apart.h */
        const FN(vreal) pulled = pull * apart, pushed = push * apart;
        FN(store)(copy + c * padded, FN(load)(copy + c * padded) - pulled);
        if (with_U) FN(store)(copy + (p + c) * padded, FN(load)(copy + (p + c) * padded) - pushed);
        if (dimensions) {
            row[c] += pulled;
            if (with_U) row[FN(GUTTMAN_FEW) + c] += pushed;
        } else {
            rows->copy[c * padded + i] += FN(lane_sum)(pulled);
            if (with_U) rows->copy[(p + c) * padded + i] += FN(lane_sum)(pushed);
        }
    }
    if (rows->points) {
        FN(store)(rows->points + j, FN(load)(rows->points + j) + stress);
        rows->points[i] += FN(lane_sum)(stress);
    }
}

ALWAYS_INLINE void FN(guttman_block)(struct FN(guttman_rows) * out, int dimensions, bool with_U) {
    const struct FN(guttman_rows) rows = *out; /* whose address nobody has, so that it stays in registers */
    const int64_t inner = ki_min(rows.end, rows.n / LANES * LANES);
    FN(vreal) row[FN(GUTTMAN_ROWS)][2 * FN(GUTTMAN_FEW)] = {0}, sums[KI_GUTTMAN_SUMS] = {0};
    int64_t j = rows.begin;
    for (; j < rows.end && j <= rows.first + rows.count;
         j += LANES) /* columns left of the diagonal among them */
        for (int r = 0; r < rows.count; r++)
            FN(guttman_pairs)(&rows, r, j, true, dimensions, with_U, row[r], sums);
    if (rows.count == FN(GUTTMAN_ROWS))
        for (; j < inner; j += LANES)
#pragma GCC unroll 4
            for (int r = 0; r < FN(GUTTMAN_ROWS); r++)
                FN(guttman_pairs)(&rows, r, j, false, dimensions, with_U, row[r], sums);
    for (; j < rows.end; j += LANES)
        for (int r = 0; r < rows.count; r++)
            FN(guttman_pairs)(&rows, r, j, true, dimensions, with_U, row[r], sums);
    for (int r = 0; r < rows.count; r++)
        for (int c = 0; c < dimensions; c++) {
            real *to = rows.copy + rows.first + r;
            to[c * rows.padded] += FN(lane_sum)(row[r][c]);
            if (with_U) to[(dimensions + c) * rows.padded] += FN(lane_sum)(row[r][FN(GUTTMAN_FEW) + c]);
        }
    memcpy(out->sums, sums, sizeof sums);
}

/* One body for each small number of dimensions, whose coordinates stay in registers. */
NEVER_INLINE void FN(guttman_run)(struct FN(guttman_rows) * rows, bool with_U) {
    switch (with_U ? -rows->p : rows->p) {
    case 1: FN(guttman_block)(rows, 1, false); break;
    case 2: FN(guttman_block)(rows, 2, false); break;
    case 3: FN(guttman_block)(rows, 3, false); break;
    case -1: FN(guttman_block)(rows, 1, true); break;
    case -2: FN(guttman_block)(rows, 2, true); break;
    case -3: FN(guttman_block)(rows, 3, true); break;
    default: FN(guttman_block)(rows, 0, with_U); break;
    }
}

/* delta of `count` rows of q coordinates with columns [begin, end), whose coordinates lie by dimension:
 * to[r][j - begin]. Differences are squared, as ||a||^2 + ||b||^2 - 2 a.b would cancel where points are near
 * each other. */
NEVER_INLINE void FN(distance_rows)(real *to, int64_t stride, const real *rows, int64_t count,
                                    const real *columns, int64_t padded, int64_t q, int64_t begin,
                                    int64_t end) {
    for (int64_t j = begin; j < end; j += 2 * LANES) {
        FN(vreal) square[FN(GUTTMAN_ROWS)][2] = {0};
        const int vectors = j + LANES < end ? 2 : 1;
        for (int64_t c = 0; c < q; c++) {
            const FN(vreal) low = FN(load)(columns + c * padded + j);
            const FN(vreal) high = FN(load)(columns + c * padded + (vectors == 2 ? j + LANES : j));
#pragma GCC unroll 4
            for (int r = 0; r < FN(GUTTMAN_ROWS); r++) {
                const real x = rows[ki_min(r, count - 1) * q + c];
                square[r][0] += (x - low) * (x - low);
                square[r][1] += (x - high) * (x - high);
            }
        }
        for (int64_t r = 0; r < count; r++)
            for (int v = 0; v < vectors; v++)
                FN(store)(to + r * stride + j - begin + v * LANES, square[r][v] * FN(vrsqrt)(square[r][v]));
    }
}

/* Row that the pairs before which are a share part / parts of all; whole groups of rows. */
static int64_t FN(guttman_row)(const struct FN(guttman) * work, int part) {
    if (part == work->parts) return work->end;
    const double n = (double)(work->n - work->top) - 0.5, share = (double)part / work->parts,
                 left = ki_max(work->n - work->end, 0) / n; /* of the rows' pairs the last have so many */
    const int64_t row = (int64_t)(n - n * sqrt(1 - share * (1 - left * left)));
    return ki_min(work->top + row / FN(GUTTMAN_ROWS) * FN(GUTTMAN_ROWS), work->end);
}

static void FN(guttman_part)(void *arg, int part) {
    struct FN(guttman) *work = arg;
    const int64_t end = FN(guttman_row)(work, part + 1), n = work->n;
    real delta[FN(GUTTMAN_ROWS)][FN(GUTTMAN_BLOCK)];
    struct FN(guttman_rows) rows = {.n = n, .padded = work->padded, .p = work->p, .y = work->y};
    rows.copy = work->copies + part * work->rows * work->padded;
    if (work->step->points) rows.points = rows.copy + (work->rows - 1) * work->padded;
    double sums[KI_GUTTMAN_SUMS] = {0};
    memset(rows.copy, 0, (size_t)(work->rows * work->padded) * sizeof(real));
    const int64_t top = FN(guttman_row)(work, part);
    for (int64_t block = ki_max(top, work->from) / FN(GUTTMAN_BLOCK) * FN(GUTTMAN_BLOCK); block < work->to;
         block += FN(GUTTMAN_BLOCK))
        for (rows.first = top; rows.first < end; rows.first += FN(GUTTMAN_ROWS)) {
            rows.count = ki_min(FN(GUTTMAN_ROWS), end - rows.first);
            rows.begin = ki_max(ki_max(block, rows.first / LANES * LANES), work->from);
            rows.end = ki_min(block + FN(GUTTMAN_BLOCK), work->to);
            if (rows.begin >= rows.end) continue;
            rows.origin = work->x ? rows.begin : 0;
            for (int64_t r = 0; r < rows.count; r++) {
                const int64_t i = rows.first + r;
                rows.weight[r] =
                    work->step->weights ? VALUES(work->step->weights) + (i - work->top) * n : NULL;
                rows.delta[r] = work->x ? delta[r] : VALUES(work->step->D) + (i - work->top) * n;
            }
            if (work->x) {
                FN(distance_rows)
                (delta[0], FN(GUTTMAN_BLOCK), work->x_rows + (rows.first - work->origin) * work->q,
                 rows.count, work->x, work->across, work->q, rows.begin - work->from, rows.end - work->from);
            }
            FN(guttman_run)(&rows, work->step->U);
            for (int s = 0; s < KI_GUTTMAN_SUMS; s++) sums[s] += (double)FN(lane_sum)(rows.sums[s]);
        }
    memcpy(work->sums[part], sums, sizeof sums);
}

/* The copies' sum, for points [begin, end), row by row of the results. */
static void FN(guttman_gather)(void *arg, int64_t begin, int64_t end) {
    struct FN(guttman) *work = arg;
    const kiln_guttman *step = work->step;
    for (int64_t i = begin; i < end; i++)
        for (int c = 0; c < work->rows; c++) {
            real sum = 0;
            for (int part = 0; part < work->parts; part++)
                sum += work->copies[(part * work->rows + c) * work->padded + i];
            if (c < work->p)
                VALUES(step->R)[i * work->p + c] = sum;
            else if (step->U && c < 2 * work->p)
                VALUES(step->U)[i * work->p + c - work->p] = sum;
            else
                VALUES(step->points)[i] = sum;
        }
}

/* Copies of a panel's results are small beside the matrix that the panel is of. */
static int FN(guttman_parts)(const struct FN(guttman) * work) {
    enum { SMALL = 64, LEAST = 16 };
    const int64_t n = work->n, rows = work->end - work->top, across = work->q ? work->q : n;
    if (rows == n && work->to - work->from == n) return n < 4 * FN(GUTTMAN_PARTS) ? 1 : FN(GUTTMAN_PARTS);
    const int64_t most = ki_min(across / (SMALL * work->rows), rows / LEAST);
    return (int)ki_max(ki_min(most, FN(GUTTMAN_PARTS)), 1);
}

kiln_status FN(guttman)(const struct ki_guttman *pairs) {
    const kiln_guttman *step = &pairs->on;
    const kiln_matrix *X = pairs->columns ? pairs->columns : step->X,
                      *X_rows = pairs->columns ? pairs->cut : X;
    const int64_t n = step->Y->rows, padded = FN(whole_vectors)(n);
    struct FN(guttman) work = {.step = step, .n = n, .padded = padded, .p = (int)step->Y->cols, .to = n};
    work.top = pairs->place.row;
    work.end = work.top + pairs->place.rows;
    work.rows = work.p * (step->U ? 2 : 1) + (step->points ? 1 : 0);
    if (X) work.q = X->cols, work.across = FN(whole_vectors)(X->rows);
    if (pairs->columns) {
        work.from = pairs->from, work.to = work.from + X->rows;
        work.origin = work.top;
    }
    work.parts = FN(guttman_parts)(&work);
    const int threads = n < 128 ? 1 : step->Y->device->threads;
    int64_t own, points, bytes;
    if (!ki_mul(padded, (int64_t)work.rows * work.parts + work.p, &own) ||
        !ki_mul(work.across, work.q, &points) || !ki_add(own, points, &bytes) ||
        !ki_mul(bytes, sizeof(real), &bytes))
        return ki_fail_nomem(SIZE_MAX, "a layout's sums");
    struct ki_buffer scratch;
    const kiln_status status = ki_device_scratch(step->Y->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    work.y = ki_host(&scratch);
    work.copies = work.y + work.p * padded;
    FN(by_dimension)(work.y, step->Y, padded);
    if (X) {
        work.x = work.copies + work.rows * work.parts * padded;
        work.x_rows = VALUES(X_rows);
        FN(by_dimension)(work.x, X, work.across);
    }
    ki_parallel(threads, work.parts, FN(guttman_part), &work);
    ki_parallel_ranges(threads, n, 4096, FN(guttman_gather), &work);
    double *sums = ki_host(&step->sums->values);
    for (int s = 0; s < KI_GUTTMAN_SUMS; s++) {
        sums[s] = 0;
        for (int part = 0; part < work.parts; part++) sums[s] += work.sums[part][s];
    }
    return KILN_OK;
}

/* ---- kiln_distances ---- */

struct FN(distances) {
    kiln_matrix *D;
    int64_t first, count; /* columns of D */
    const real *x;
    real *z; /* by dimension */
    int64_t q, z_padded;
};

static void FN(distances_range)(void *arg, int64_t begin, int64_t end) {
    const struct FN(distances) *work = arg;
    const int64_t cols = work->D->cols;
    real block[FN(GUTTMAN_ROWS)][FN(GUTTMAN_BLOCK)];
    for (int64_t j = 0; j < work->count; j += FN(GUTTMAN_BLOCK))
        for (int64_t i = begin; i < end; i += FN(GUTTMAN_ROWS)) {
            const int64_t rows = ki_min(FN(GUTTMAN_ROWS), end - i),
                          count = ki_min(FN(GUTTMAN_BLOCK), work->count - j);
            FN(distance_rows)
            (block[0], FN(GUTTMAN_BLOCK), work->x + i * work->q, rows, work->z, work->z_padded, work->q, j,
             j + count);
            for (int64_t r = 0; r < rows; r++)
                memcpy(VALUES(work->D) + (i + r) * cols + work->first + j, block[r],
                       (size_t)count * sizeof(real));
        }
}

kiln_status FN(distances)(const struct ki_distances *of) {
    const kiln_matrix *X = of->X, *Z = of->Z;
    const int64_t z_padded = FN(whole_vectors)(Z->rows);
    int64_t bytes;
    if (!ki_mul3(z_padded, X->cols, sizeof(real), &bytes)) return ki_fail_nomem(SIZE_MAX, "distances");
    struct ki_buffer scratch;
    const kiln_status status = ki_device_scratch(X->device, &scratch, bytes);
    if (status != KILN_OK) return status;
    struct FN(distances) work = {.D = of->D, .x = VALUES(X), .z = ki_host(&scratch)};
    work.first = of->first, work.count = Z->rows;
    work.q = X->cols, work.z_padded = z_padded;
    FN(by_dimension)(work.z, Z, z_padded);
    ki_parallel_ranges(X->device->threads, X->rows, 64, FN(distances_range), &work);
    return KILN_OK;
}
