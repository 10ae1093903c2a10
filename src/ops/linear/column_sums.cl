/* One walk over a dense X on a GPU (ops/linear/column_sums.c) makes for each column the sums of v (x - c)^2,
 * v (x - c) and v (y - d) x.
 *
 * A group has `pieces` times W adjacent columns, and of its share of the rows as many at a time as it has
 * threads for; a thread keeps the three sums of its W columns in registers, and loads AHEAD rows before it
 * adds them. CHAIN numbers are added in `real`, their sums in `wide`: in order, the groups' by a second
 * launch. */

#define ARGUMENTS_column_sums(FIRST, NEXT)                                                                   \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(KEPT, stored, X)                                                                                    \
    NEXT(IN, real, v)                                                                                        \
    NEXT(IN, real, c)                                                                                        \
    NEXT(IN, real, y)                                                                                        \
    NEXT(VALUE, real, d)                                                                                     \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, pieces)                                                                                 \
    NEXT(VALUE, int, blocks)

#define ARGUMENTS_column_sums_finish(FIRST, NEXT)                                                            \
    FIRST(OUT, real, square)                                                                                 \
    NEXT(OUT, real, sum)                                                                                     \
    NEXT(OUT, real, right)                                                                                   \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, shares)

#ifndef KI_HOST
#include "dialect/stored.h"

#ifdef SUMS
enum { AHEAD = 4, KINDS = 3, CHAIN = 32 };

/* Sums of squares, of numbers, and of those times y, of a thread's columns. */
struct column_part {
    real of[KINDS * W];
};
struct column_total {
    wide of[KINDS * W];
};

DEVICE_FN void add_row(struct column_part *to, const real *x, const real *c, real v, real y) {
#pragma unroll
    for (int w = 0; w < W; w++) {
        const real off = x[w] - c[w], weighted = v * off;
        to->of[w] += weighted * off;
        to->of[W + w] += weighted;
        to->of[2 * W + w] += v * x[w] * y;
    }
}

/* Adds the next rows, CHAIN at most, and returns the row behind them. All but the last of X's come AHEAD at a
 * time. */
DEVICE_FN long add_rows(struct column_part *part, __global const stored *X, __global const real *v,
                        __global const real *y, const real *c, real d, long row, long last, long step,
                        int n) {
#pragma unroll 1
    for (int a = 0; a < CHAIN - AHEAD && row + (AHEAD - 1) * step < last; a += AHEAD, row += AHEAD * step) {
        real x[AHEAD][W], weight[AHEAD], target[AHEAD];
#pragma unroll
        for (int r = 0; r < AHEAD; r++) {
            load_stored(x[r], X + (row + r * step) * n);
            weight[r] = v ? v[row + r * step] : REAL(1.0);
            target[r] = y ? y[row + r * step] - d : REAL(0.0);
        }
#pragma unroll
        for (int r = 0; r < AHEAD; r++) add_row(part, x[r], c, weight[r], target[r]);
    }
    if (row + (AHEAD - 1) * step < last) return row;
#pragma unroll 1
    for (; row < last; row += step) {
        real x[W];
        load_stored(x, X + row * n);
        add_row(part, x, c, v ? v[row] : REAL(1.0), y ? y[row] - d : REAL(0.0));
    }
    return row;
}

/* Tells what the group's rows add up to: partial[share][kind][column]. */
DEVICE_FN void write_totals(__global wide *to, const struct column_total *total, LOCAL_PTR wide *shared,
                            int n, int pieces, int column) {
    const int id = (int)get_local_id(0), slots = BS / pieces;
#pragma unroll
    for (int s = 0; s < KINDS * W; s++) {
        shared[id] = total->of[s];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < pieces && column < n) {
            wide sum = shared[id];
#pragma unroll 1
            for (int slot = 1; slot < slots; slot++) sum += shared[slot * pieces + id];
            to[(long)(s / W) * n + column + s % W] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel GROUP_OF(BS) void column_sums(PARAMETERS(column_sums)) {
    LOCAL wide shared[BS];
    const int id = (int)get_local_id(0), slots = BS / pieces, slot = id / pieces;
    const int share = (int)get_group_id(0) / blocks, shares = (int)get_num_groups(0) / blocks;
    const int column = ((int)get_group_id(0) % blocks * pieces + id % pieces) * W;
    const long step = (long)shares * slots, last = slot < slots && column < n ? rows : 0;
    struct column_total total;
    real centre[W];
#pragma unroll
    for (int w = 0; w < W; w++) centre[w] = c && last > 0 ? c[column + w] : REAL(0.0);
#pragma unroll
    for (int s = 0; s < KINDS * W; s++) total.of[s] = 0;
    for (long row = (long)share * slots + slot; row < last;) {
        struct column_part part;
#pragma unroll
        for (int s = 0; s < KINDS * W; s++) part.of[s] = REAL(0.0);
        row = add_rows(&part, X + column, v, y, centre, d, row, last, step, n);
#pragma unroll
        for (int s = 0; s < KINDS * W; s++) total.of[s] += (wide)part.of[s];
    }
    write_totals(partial + (long)share * KINDS * n, &total, shared, n, pieces, column);
}
#endif

/* Sixteen sums a group, eight threads each. */
#ifdef FINISH
enum { KINDS = 3, WIDTH = 16, PARTS = 8 };

__kernel GROUP_OF(128) void column_sums_finish(PARAMETERS(column_sums_finish)) {
    LOCAL wide shared[WIDTH * PARTS];
    const int id = (int)get_local_id(0), part = id / WIDTH;
    const long at = (long)get_group_id(0) * WIDTH + id % WIDTH, all = (long)KINDS * n;
    wide total = 0;
#pragma unroll 4
    for (int share = part; at < all && share < shares; share += PARTS) total += partial[share * all + at];
    shared[id] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part > 0 || at >= all) return;
    for (int other = 1; other < PARTS; other++) total += shared[other * WIDTH + id];
    if (at < n)
        square[at] = (real)total;
    else if (at < 2 * (long)n)
        sum[at - n] = (real)total;
    else if (right)
        right[at - 2 * (long)n] = (real)total;
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SUMS BS=256 W=1
// build SUMS BS=256 W=2
// build SUMS BS=256 W=4
// build SUMS BS=256 W=4 ELEMENT=4
// build FINISH
// pack {f32|f64} {FINISH|SUMS BS=256 W={1|2}}
// pack f32 SUMS BS=256 W=4
#endif
