/* GPU body of kiln_guttman_step for few dimensions (ops/points/guttman.h): the pairs in blocks of SIDE x
 * SIDE.
 *
 *   R_i = sum_j r_ij (y_i - y_j),  r_ij = w_ij delta_ij / d_ij
 *
 * Only blocks on and right of the diagonal are read. A warp takes ROWS rows of one at a time and walks along
 * the columns, COLUMNS of them a thread, so that what a pair gives to its row and to its column is added up
 * in registers; the dissimilarities of the next step are on their way meanwhile. At the end of a row its
 * threads' sums meet in local memory; sums of columns lie there all the time, each thread's apart, so that a
 * step waits for nobody.
 *
 * What block (I, J) gives to its rows goes to place J of their array of places, what it gives to its columns
 * to place I of theirs: each place has one writer, and guttman_block_finish adds them up in order. So that
 * all work-groups have the same work, walks are counted through all blocks, and each group takes `each` of
 * them, wherever blocks begin: what a group gives to the columns of a block in whose midst it begins goes to
 * place tiles + I. On the diagonal place I has the rows' sums, so that the columns' go to tiles + I, and to 2
 * tiles if the group begins in the block's midst. */

/* The points from `from` on count, n of them, of which the first `rows` have rows in D, whose lines are
 * `line` long: on a group each member has some rows of D, and with them their pairs. part: (2 tiles + 1) x
 * COMPONENTS x n; partial: SUMS a group; each: walks of a group, no fewer than a block has. */
#define ARGUMENTS_guttman_block(FIRST, NEXT)                                                                 \
    FIRST(SPACE, real, part)                                                                                 \
    NEXT(SPACE, wide, partial)                                                                               \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(IN, real, D)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, line)                                                                                  \
    NEXT(VALUE, long, from)                                                                                  \
    NEXT(VALUE, long, each)

#define ARGUMENTS_guttman_block_finish(FIRST, NEXT)                                                          \
    FIRST(OUT, real, R)                                                                                      \
    NEXT(OUT, real, U)                                                                                       \
    NEXT(OUT, wide, sums)                                                                                    \
    NEXT(TABLE, real, part)                                                                                  \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, from)                                                                                  \
    NEXT(VALUE, long, each)                                                                                  \
    NEXT(VALUE, int, groups)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/apart.h"

#define SUMS 4
#define LANES 32
#define WALKS (SIDE / (BS / LANES * ROWS)) /* of a block */
#define TILES(points) (((points) + SIDE - 1) / SIDE)

#ifdef PAIRS
#define ACROSS (LANES * COLUMNS)    /* columns of a step */
#define DOWN (BS / LANES * ROWS)    /* rows of a walk */
#define STEPS (SIDE / ACROSS)       /* of a walk */
#define OWN (COMPONENTS * COLUMNS)  /* what a thread adds up for its columns */
#define SPREAD (BS + 4)             /* threads of a row in local memory, one more so that rows lie in
                                     * different banks */

#ifdef REAL_F64
#define UNIT double2
#define SUM_UNIT double2 /* of 16 bytes */
#define SUM_OF(unit) ((unit).x + (unit).y)
#else
#define SUM_UNIT float4
#define SUM_OF(unit) (((unit).x + (unit).y) + ((unit).z + (unit).w))
#if W == 4
#define UNIT float4
#else
#define UNIT float2
#endif
#endif

/* Says where a thread's e-th sum of a step lies: W of them side by side, so that one load takes them. */
#define PLACE(e) ((e) / W * (BS * W) + id * W + (e) % W)

/* The column of a thread's k-th pair in a step. */
#define COLUMN(k) ((k) / W * (LANES * W) + lane * W + (k) % W)

/* Points, those of them that have rows, and how far these lie apart. */
struct extent {
    long n, rows, line;
};

/* A thread's entries of row i in the step that begins at column j, those that stand for a pair. */
DEVICE_FN void load_row(real *to, __global const real *D, long i, long j, int lane, struct extent of,
                        const bool whole) {
    __global const real *const row = D + i * of.line + j;
    if (whole) {
#pragma unroll
        for (int k = 0; k < COLUMNS; k += W) {
#if W == 1
            to[k] = load_once(row + COLUMN(k));
#else
            const UNIT unit = *(__global const UNIT *)(row + COLUMN(k));
            to[k] = unit.x;
            to[k + 1] = unit.y;
#if W == 4
            to[k + 2] = unit.z;
            to[k + 3] = unit.w;
#endif
#endif
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < COLUMNS; k++)
        to[k] = i < j + COLUMN(k) && i < of.rows && j + COLUMN(k) < of.n ? row[COLUMN(k)] : REAL(0.0);
}

/* A thread's pairs of a row. */
DEVICE_FN void add_pairs(real *of_row, real *of_columns, real *sums, const real *y, const real *y_columns,
                         const real *delta, const real *weight) {
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        real apart[P], square = 0;
#pragma unroll
        for (int c = 0; c < P; c++) {
            apart[c] = y[c] - y_columns[c * COLUMNS + k];
            square += apart[c] * apart[c];
        }
        const real inverse = inverse_sqrt(fmax(square, REAL_SMALLEST)), rest = delta[k] - square * inverse;
        apart[0] += REAL_HAIR;
        const real stress = weight[k] * rest * rest, of_U = weight[k] * inverse, of_R = of_U * delta[k];
        sums[0] += stress;
        sums[1] += weight[k] * square;
#ifdef POINTS
        of_row[0] += stress;
        of_columns[k] += stress;
#else
#pragma unroll
        for (int c = 0; c < P; c++) {
            of_row[c] += of_R * apart[c];
            of_columns[c * COLUMNS + k] -= of_R * apart[c];
        }
#endif
#ifdef WITH_U
        sums[2] += of_U * square;
        sums[3] += of_R * square;
#pragma unroll
        for (int c = 0; c < P; c++) {
            of_row[P + c] += of_U * apart[c];
            of_columns[(P + c) * COLUMNS + k] -= of_U * apart[c];
        }
#endif
    }
}

/* The first column of the walk along rows from `row` on, in a block on the diagonal. */
DEVICE_FN int first_step(int row, const bool whole, bool diagonal) {
    return !whole && diagonal ? row / ACROSS : 0;
}

/* Says where a walk stands: rows from i on, columns from j on, which are those of a step. */
struct stand {
    long i, j;
    int step;
};

/* One step: what has been loaded is added up, and takes what comes next, at `next`. */
DEVICE_FN void take_step(wide *totals, LOCAL_PTR real *own, real of_rows[ROWS][COMPONENTS],
                         real delta[ROWS][COLUMNS], real weight[ROWS][COLUMNS], const real y[ROWS][P],
                         LOCAL_PTR const real *y_columns, __global const real *D,
                         __global const real *weights, const struct stand *at, const struct stand *next,
                         struct extent of, const bool whole) {
    const int id = (int)get_local_id(0), lane = id % LANES;
    LOCAL_PTR real *const mine = own + at->step * OWN * BS;
    real y_here[P * COLUMNS], of_columns[OWN], sums[SUMS] = {0};
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
#pragma unroll
        for (int c = 0; c < P; c++)
            y_here[c * COLUMNS + k] = y_columns[c * SIDE + at->step * ACROSS + COLUMN(k)];
    }
#pragma unroll
    for (int e = 0; e < OWN; e++) of_columns[e] = 0;
#pragma unroll
    for (int s = 0; s < ROWS; s++) {
        const real *weight_here = weight[s];
#ifndef WEIGHTS
        real one[COLUMNS];
#pragma unroll
        for (int k = 0; k < COLUMNS; k++)
            one[k] =
                whole || (at->i + s < at->j + COLUMN(k) && at->i + s < of.rows && at->j + COLUMN(k) < of.n)
                    ? REAL(1.0)
                    : REAL(0.0);
        weight_here = one;
#endif
        add_pairs(of_rows[s], of_columns, sums, y[s], y_here, delta[s], weight_here);
        load_row(delta[s], D, next->i + s, next->j, lane, of, whole);
#ifdef WEIGHTS
        load_row(weight[s], weights, next->i + s, next->j, lane, of, whole);
#endif
    }
#pragma unroll
    for (int e = 0; e < OWN; e++) mine[PLACE(e)] += of_columns[e];
    for (int s = 0; s < SUMS; s++) totals[s] += (wide)sums[s];
}

/* At the end of a walk: the sums of `rows` rows at most, which the group has from row i on. */
DEVICE_FN void hand_rows(__global real *to, real of_rows[ROWS][COMPONENTS], LOCAL_PTR real *spread, long i,
                         int rows, long n) {
    const int id = (int)get_local_id(0);
#pragma unroll
    for (int s = 0; s < ROWS; s++) {
#pragma unroll
        for (int c = 0; c < COMPONENTS; c++) spread[(c * ROWS + s) * SPREAD + id] = of_rows[s][c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < DOWN * COMPONENTS; e += BS) {
        const int row = e % DOWN, component = e / DOWN, place = component * ROWS + row % ROWS,
                  of = row / ROWS;
        LOCAL_PTR const SUM_UNIT *const from =
            (LOCAL_PTR const SUM_UNIT *)(spread + place * SPREAD + of * LANES);
        real sum = 0;
#pragma unroll 8
        for (int l = 0; l < LANES * (int)sizeof(real) / 16; l++) sum += SUM_OF(from[l]);
        if (row < rows) to[component * n + i + row] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Walks from `walk` to `end` of block (I, J); `whole`: it is right of the diagonal and no point is beyond the
 * last. `own`: the thread's sums of columns, OWN a step and BS apart; what rows get goes to `to`. */
DEVICE_FN void walk_block(wide *totals, LOCAL_PTR real *own, LOCAL_PTR real *spread,
                          LOCAL_PTR const real *y_columns, __global real *to, __global const real *Y,
                          __global const real *D, __global const real *weights, long I, long J, int walk,
                          int end, struct extent of, const bool whole) {
    const int id = (int)get_local_id(0), lane = id % LANES, warp = id / LANES;
    const int rows = (int)(of.rows - I * SIDE < end * DOWN ? of.rows - I * SIDE : end * DOWN);
    real delta[ROWS][COLUMNS], weight[ROWS][COLUMNS];
    struct stand at;
    at.step = first_step(walk * DOWN, whole, I == J);
    at.i = I * SIDE + walk * DOWN + warp * ROWS;
    at.j = J * SIDE + (long)at.step * ACROSS;
#pragma unroll
    for (int s = 0; s < ROWS; s++) {
        load_row(delta[s], D, at.i + s, at.j, lane, of, whole);
#ifdef WEIGHTS
        load_row(weight[s], weights, at.i + s, at.j, lane, of, whole);
#endif
    }
    for (int begin = walk * DOWN; begin < rows; begin += DOWN) {
        real y[ROWS][P], of_rows[ROWS][COMPONENTS];
#pragma unroll
        for (int s = 0; s < ROWS; s++) {
#pragma unroll
            for (int c = 0; c < P; c++)
                y[s][c] = whole || at.i + s < of.n ? Y[(at.i + s) * P + c] : REAL(0.0);
#pragma unroll
            for (int c = 0; c < COMPONENTS; c++) of_rows[s][c] = 0;
        }
        bool more = true;
        while (more) {
            /* The next step begins along these rows, or at the next ones; at the end it loads the last one
             * again. */
            struct stand next = at;
            more = at.step + 1 < STEPS;
            if (more)
                next.step++;
            else if (begin + DOWN < rows) {
                next.step = first_step(begin + DOWN, whole, I == J);
                next.i += DOWN;
            }
            next.j = J * SIDE + (long)next.step * ACROSS;
            take_step(totals, own, of_rows, delta, weight, y, y_columns, D, weights, &at, &next, of, whole);
            at = next;
        }
        hand_rows(to, of_rows, spread, I * SIDE + begin, rows - begin, of.n);
    }
}

/* Finds what the group has of a block's columns. */
DEVICE_FN void hand_columns(__global real *to, LOCAL_PTR const real *own, long J, long n) {
    for (int e = (int)get_local_id(0); e < SIDE * COMPONENTS; e += BS) {
        const int column = e % SIDE, component = e / SIDE, within = column % ACROSS;
        const int lane = within % (LANES * W) / W, k = within / (LANES * W) * W + within % W;
        const int sum_of = component * COLUMNS + k;
        real sum = 0;
        for (int warp = 0; warp < BS / LANES; warp++)
            sum += own[column / ACROSS * OWN * BS + sum_of / W * (BS * W) + (warp * LANES + lane) * W +
                       sum_of % W];
        if (J * SIDE + column < n) to[component * n + J * SIDE + column] = sum;
    }
}

__kernel void guttman_block(PARAMETERS(guttman_block)) {
    LOCAL ALIGNED_16 real y_columns[P * SIDE], own[STEPS * OWN * BS], spread[ROWS * COMPONENTS * SPREAD];
    LOCAL wide shared[BS];
    const int id = (int)get_local_id(0);
    const struct extent of = {n, rows, line};
    const long tiles = TILES(n), down = TILES(rows), plane = COMPONENTS * n;
    const long walks = (down * tiles - down * (down - 1) / 2) * WALKS;
    const long begin = (long)get_group_id(0) * each, end = begin + each < walks ? begin + each : walks;
    wide totals[SUMS] = {0, 0, 0, 0};
    Y += from * P;
    D += from;
#ifdef WEIGHTS
    weights += from;
#endif
    for (long w = begin; w < end; w += WALKS - w % WALKS) {
        const int first = (int)(w % WALKS), last = (int)(end - w < WALKS - first ? first + (end - w) : WALKS);
        long I = 0, J = w / WALKS;
        for (; J >= tiles - I; I++) J -= tiles - I;
        J += I;
        for (int e = id; e < SIDE * P; e += BS) {
            const long at = J * SIDE * P + e;
            y_columns[e % P * SIDE + e / P] = at < n * P ? Y[at] : REAL(0.0);
        }
        for (int e = 0; e < STEPS * OWN; e++) own[e * BS + id] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        __global real *const of_rows = part + J * plane;
        const long place = I < J ? (first ? tiles + I : I) : first ? 2 * tiles : tiles + I;
        const bool whole = I < J && (J + 1) * SIDE <= n && (I + 1) * SIDE <= rows;
#if defined(KILN_CUDA) || defined(KILN_NVIDIA)
        if (whole)
            walk_block(totals, own, spread, y_columns, of_rows, Y, D, weights, I, J, first, last, of, true);
        else
            walk_block(totals, own, spread, y_columns, of_rows, Y, D, weights, I, J, first, last, of, false);
#else /* PoCL 5 aborts on the barriers of a walk under a condition */
        walk_block(totals, own, spread, y_columns, of_rows, Y, D, weights, I, J, first, last, of, whole);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        hand_columns(part + place * plane, own, J, n);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int s = 0; s < SUMS; s++) {
        const wide sum = group_total(totals[s], shared);
        if (id == 0) partial[(long)get_group_id(0) * SUMS + s] = sum;
    }
}
#endif

#ifdef FINISH
/* Element e of component and point, in tile J, from all its places: those of columns where blocks above J
 * have rows (`down` rows of blocks in all), those of rows where the point has one. The columns of a block
 * have a second one where another group begins in its midst. */
DEVICE_FN real sum_of_places(__global const real *part, long e, int J, int tiles, int down, bool has_row,
                             long plane, int each) {
    const int above = J < down ? J : down, first = has_row ? J : tiles;
    real sum = J < down ? part[(tiles + J) * plane + e] : REAL(0.0);
#pragma unroll 8
    for (int tile = 0; tile < above; tile++) sum += part[tile * plane + e];
#pragma unroll 8
    for (int tile = first; tile < tiles; tile++) sum += part[tile * plane + e];
    for (int I = 0; I <= J && I < down; I++) {
        const int block = I * tiles - I * (I - 1) / 2 + J - I, behind = (block * WALKS / each + 1) * each;
        if (behind < (block + 1) * WALKS) sum += part[(I < J ? tiles + I : 2 * tiles) * plane + e];
    }
    return sum;
}

/* R, U or the points' sums from the blocks'; the last group also adds the groups' sums up. */
__kernel GROUP_OF(BS) void guttman_block_finish(PARAMETERS(guttman_block_finish)) {
    LOCAL wide shared[BS];
    const int tiles = (int)TILES(n), down = (int)TILES(rows);
    for (long e = (long)get_global_id(0); e < n * COMPONENTS; e += (long)get_global_size(0)) {
        const long component = e / n, i = e % n;
        const real sum =
            sum_of_places(part, e, (int)(i / SIDE), tiles, down, i < rows, COMPONENTS * n, (int)each);
        (component < OF_R ? R : U)[(from + i) * OF_R + component % OF_R] = sum;
    }
    for (long e = (long)get_global_id(0); e < from * OF_R; e += (long)get_global_size(0)) {
        R[e] = 0;
        if (COMPONENTS > OF_R) U[e] = 0;
    }
    /* A loop, not a return: PoCL 5 aborts on barriers behind one. */
    const int wanted = get_group_id(0) == get_num_groups(0) - 1 && sums ? SUMS : 0;
    for (int s = 0; s < wanted; s++) {
        wide sum = 0;
        for (int group = (int)get_local_id(0); group < groups; group += BS)
            sum += partial[(long)group * SUMS + s];
        sum = group_total(sum, shared);
        if (get_local_id(0) == 0) sums[s] = sum;
    }
}
#endif

/* The variants that differ in text, as the tests build them; W = 4 is f32's alone. */
// build PAIRS SIDE=128 BS=128 ROWS=8 COLUMNS=4 W=1 P=3 COMPONENTS=3
// build PAIRS SIDE=128 BS=128 ROWS=4 COLUMNS=2 W=2 P=2 COMPONENTS=4 WITH_U WEIGHTS
// build PAIRS SIDE=128 BS=128 ROWS=2 COLUMNS=4 W=1 P=4 COMPONENTS=1 POINTS
// build FINISH SIDE=128 BS=128 ROWS=4 COMPONENTS=4 OF_R=2
#endif
