/* GPU body of X Y and X^T Y for a dense X and more columns of y than a launch of the other passes takes: from
 * some eight columns on arithmetic bounds a pass, and not the reading of X.
 *
 * A group of 16 x 16 threads has a tile of 16 TALL rows and 16 WIDE columns of the result, a thread TALL x
 * WIDE of it in registers. DEPTH terms of all sums at a time come into on-chip memory, where each number
 * serves 16 threads, and a thread loads TALL + WIDE of them for TALL x WIDE products. X^T Y is shared out by
 * rows: each group has every splits-th piece of them and leaves a partial result, and mmchain_finish adds
 * these up. */

#define ARGUMENTS_products(FIRST, NEXT)                                                                      \
    FIRST(SPACE, real, out)                                                                                  \
    NEXT(KEPT, stored, X)                                                                                    \
    NEXT(IN, real, y)                                                                                        \
    NEXT(IN, real, z)                                                                                        \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, across)                                                                                 \
    NEXT(VALUE, int, tiles)                                                                                  \
    NEXT(VALUE, int, splits)

#ifndef KI_HOST
#include "dialect/stored.h"

#define SIDE 16
#define DEPTH 16
#define GROUP (SIDE * SIDE)
#define ROWS (SIDE * TALL)
#define COLUMNS (SIDE * WIDE)
#define PITCH (ROWS + 4) /* 16 bytes are a load, and stores of a row of X go to different banks */

struct ALIGNED_16 pieces {
    real left[DEPTH * PITCH];
    real right[DEPTH * COLUMNS];
};

/* The products of what is in on-chip memory. */
DEVICE_FN void multiply_pieces(real sum[TALL][WIDE], LOCAL_PTR const struct pieces *piece) {
    const int across = (int)get_local_id(0) % SIDE, down = (int)get_local_id(0) / SIDE;
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        real left[TALL], right[WIDE];
#pragma unroll
        for (int i = 0; i < TALL; i++) left[i] = piece->left[d * PITCH + down * TALL + i];
#pragma unroll
        for (int c = 0; c < WIDE; c++) right[c] = piece->right[d * COLUMNS + c * SIDE + across];
#pragma unroll
        for (int i = 0; i < TALL; i++)
#pragma unroll
            for (int c = 0; c < WIDE; c++) sum[i][c] += left[i] * right[c];
    }
}

/* DEPTH rows of y from `first`, in the columns of the tile; what is not there is 0. */
DEVICE_FN void fetch_right(LOCAL_PTR struct pieces *piece, __global const real *y, long first, long count,
                           int column, int k) {
    for (int e = (int)get_local_id(0); e < DEPTH * COLUMNS; e += GROUP) {
        const int d = e / COLUMNS, c = e % COLUMNS;
        const bool there = first + d < count && column + c < k;
        piece->right[e] = there ? y[(index_t)(first + d) * k + column + c] : REAL(0.0);
    }
}

#if TRANSPOSED
typedef long term_t; /* the terms of a sum are rows of X, and the tile's rows are its columns */
typedef int side_t;
#else
typedef int term_t;
typedef long side_t;
#endif

/* DEPTH terms of the tile's rows, of which there are `sums` and `terms` in all; what is not there is 0. */
DEVICE_FN void fetch_left(LOCAL_PTR struct pieces *piece, __global const stored *X, term_t first,
                          term_t terms, side_t from, side_t sums, int n) {
    for (int e = (int)get_local_id(0); e < DEPTH * ROWS; e += GROUP) {
#if TRANSPOSED
        const int d = e / ROWS, r = e % ROWS;
        const index_t at = (index_t)(first + d) * n + from + r;
#else
        const int r = e / DEPTH, d = e % DEPTH;
        const index_t at = (index_t)(from + r) * n + first + d;
#endif
        piece->left[d * PITCH + r] = from + r < sums && first + d < terms ? NUMBER_OF(X[at]) : REAL(0.0);
    }
}

__kernel GROUP_OF(256) void dense_products(PARAMETERS(products)) {
    LOCAL struct pieces piece;
    const int id = (int)get_local_id(0);
#if TRANSPOSED
    const int tile = (int)get_group_id(0) % tiles, split = (int)get_group_id(0) / tiles;
    const int column = tile % across * COLUMNS;
    const side_t from = tile / across * ROWS, sums = n;
    const term_t begin = (long)split * DEPTH, stride = (long)splits * DEPTH, terms = rows;
#else
    const int column = (int)(get_group_id(0) % across) * COLUMNS;
    const side_t from = (long)(get_group_id(0) / across) * ROWS, sums = rows;
    const term_t begin = 0, stride = DEPTH, terms = n;
#endif
    real sum[TALL][WIDE];
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int c = 0; c < WIDE; c++) sum[i][c] = REAL(0.0);
    for (term_t first = begin; first < terms; first += stride) {
        barrier(CLK_LOCAL_MEM_FENCE);
        fetch_left(&piece, X, first, terms, from, sums, n);
        fetch_right(&piece, y, first, terms, column, k);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_pieces(sum, &piece);
    }
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int c = 0; c < WIDE; c++) {
            const int to = column + c * SIDE + id % SIDE;
            const side_t row = from + id / SIDE * TALL + i;
#if TRANSPOSED
            if (row < sums && to < k) out[((index_t)split * k + to) * n + row] = sum[i][c];
#else
            const index_t at = (index_t)row * k + to;
            if (row < sums && to < k) out[at] = z ? alpha * sum[i][c] + beta * z[at] : alpha * sum[i][c];
#endif
        }
}

/* The variants that differ in text, as the tests build them. */
// build TRANSPOSED=0 TALL=8 WIDE=1
// build TRANSPOSED=0 TALL=8 WIDE=4 INDEX64
// build TRANSPOSED=1 TALL=8 WIDE=4
// build TRANSPOSED=1 TALL=8 WIDE=4 ELEMENT=3
// pack {f32|f64} TRANSPOSED={0|1} TALL=8 WIDE={1|2|4}
// pack f32 TRANSPOSED={0|1} TALL=8 WIDE=8
#endif
