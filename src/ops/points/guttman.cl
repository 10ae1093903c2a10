/* GPU body of kiln_distances, and of kiln_guttman_step from points or in many dimensions (else
 * guttman_block.cl): pairs in tiles of SIDE x SIDE.
 *
 *   R_i = sum_j r_ij (y_i - y_j),  r_ij = w_ij delta_ij / d_ij
 *
 * Only tiles on and right of the diagonal are read, a tile once: first a thread has a column of it and goes
 * down the rows, adding up what the pairs give to the column's point, and leaves r in local memory; then it
 * has a row and goes along the columns. A work-group takes the rows of tiles first, last, second, last but
 * one ... of its strip, and of each row every SHARES-th tile, so that all have the same work; a strip's last
 * turn may have no row left. What columns get is added up in an array of the strip's own, what rows get in
 * one of the piece's: each element has one writer, and the sums are the same from run to run. The first turn
 * through a strip stores, so that nothing has to be cleared; columns left of its first tile are never
 * touched. */

#define ARGUMENTS_distances(FIRST, NEXT)                                                                     \
    FIRST(OUT, real, D)                                                                                      \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, Z)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, cols)                                                                                  \
    NEXT(VALUE, int, q)

/* The points from `from` on count, n of them, and the first `many` have rows in D, whose lines are `line`
 * long. columns: strips x COMPONENTS x n; rows: SHARES x COMPONENTS x n; partial: SUMS a group. */
#define ARGUMENTS_guttman(FIRST, NEXT)                                                                       \
    FIRST(SPACE, real, columns)                                                                              \
    NEXT(SPACE, real, rows)                                                                                  \
    NEXT(SPACE, wide, partial)                                                                               \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(IN, real, D)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(VALUE, int, q)                                                                                      \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, long, many)                                                                                  \
    NEXT(VALUE, long, line)                                                                                  \
    NEXT(VALUE, long, from)                                                                                  \
    NEXT(VALUE, int, strips)

#define ARGUMENTS_guttman_finish(FIRST, NEXT)                                                                \
    FIRST(OUT, real, R)                                                                                      \
    NEXT(OUT, real, U)                                                                                       \
    NEXT(OUT, wide, sums)                                                                                    \
    NEXT(TABLE, real, columns)                                                                               \
    NEXT(TABLE, real, rows)                                                                                  \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, long, many)                                                                                  \
    NEXT(VALUE, long, from)                                                                                  \
    NEXT(VALUE, int, strips)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/apart.h"

#define TURN (SIDE * SIDE / BS) /* rows of a column, columns of a row that a thread goes through */
#define LINE (SIDE + 1)         /* a tile's row in local memory, one more so that columns lie in different
                                 * banks */
#define SUMS 4

/* 1 / sqrt(x), and 0 below the normal numbers. */
DEVICE_FN real inverse_root(real x) {
#ifdef REAL_F64
    return x < 2.2250738585072014e-308 ? 0.0 : inverse_sqrt(x);
#else
    return x < 1.17549435e-38f ? 0.0f : inverse_sqrt(x);
#endif
}

#ifdef DISTANCES
/* D_ij = ||x_i - z_j||, a thread an element. */
__kernel void distances(PARAMETERS(distances)) {
    for (long e = (long)get_global_id(0); e < rows * cols; e += (long)get_global_size(0)) {
        __global const real *x = X + e / cols * q, *z = Z + e % cols * q;
        real square = 0;
        for (int c = 0; c < q; c++) {
            const real apart = x[c] - z[c];
            square += apart * apart;
        }
        D[e] = square * inverse_root(square);
    }
}
#endif

#ifdef GUTTMAN
/* Coordinates of the points of tile t, zeros beyond the last point. */
DEVICE_FN void load_points(LOCAL_PTR real *to, __global const real *Y, long t, long n) {
    for (int e = (int)get_local_id(0); e < SIDE * P; e += BS) {
        const long at = t * SIDE * P + e;
        to[e] = at < n * P ? Y[at] : (real)0;
    }
}

#ifdef FROM_X
#define CHUNK 16 /* dimensions of X at a time */
/* delta of the thread's pairs, (quarter * TURN + s, column). `rows` and `columns` have SIDE * CHUNK
 * elements. */
DEVICE_FN void tile_distances(real *delta, LOCAL_PTR real *rows, LOCAL_PTR real *columns,
                              __global const real *X, int q, long I, long J, long n) {
    const int id = (int)get_local_id(0), column = id % SIDE, first = id / SIDE * TURN;
#pragma unroll
    for (int s = 0; s < TURN; s++) delta[s] = 0;
    for (int begin = 0; begin < q; begin += CHUNK) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = id; e < SIDE * CHUNK; e += BS) {
            const int c = begin + e % CHUNK;
            const long i = I * SIDE + e / CHUNK, j = J * SIDE + e / CHUNK;
            rows[e] = c < q && i < n ? X[i * q + c] : (real)0;
            columns[e % CHUNK * LINE + e / CHUNK] = c < q && j < n ? X[j * q + c] : (real)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int here = q - begin < CHUNK ? q - begin : CHUNK;
        for (int c = 0; c < here; c++) {
            const real x = columns[c * LINE + column];
#pragma unroll
            for (int s = 0; s < TURN; s++) {
                const real apart = rows[(first + s) * CHUNK + c] - x;
                delta[s] += apart * apart;
            }
        }
    }
#pragma unroll
    for (int s = 0; s < TURN; s++) delta[s] *= inverse_root(delta[s]);
}
#endif

/* Adds up what the groups of threads that share a column or row hold, BS / SIDE of them, and hands it to
 * `to`, by component. The loop has barriers and no pragma: with one, NVIDIA's compiler for OpenCL crashed. */
DEVICE_FN void hand_over(__global real *to, const real *sums, LOCAL_PTR real *share, long tile, long n,
                         bool add) {
    const int id = (int)get_local_id(0);
    const long at = tile * SIDE + id;
    for (int c = 0; c < COMPONENTS; c++) {
        barrier(CLK_LOCAL_MEM_FENCE);
        share[id] = sums[c];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < SIDE && at < n) {
            real sum = share[id];
            for (int piece = 1; piece < BS / SIDE; piece++) sum += share[piece * SIDE + id];
            to[c * n + at] = add ? to[c * n + at] + sum : sum;
        }
    }
}

/* Finds what a thread adds up down the rows of column j, and leaves of each pair: r in `pull`, of U in
 * `push`. delta_of: the pairs' dissimilarities, NULL if D has them. */
DEVICE_FN void go_down(real *column_sums, wide *sums, LOCAL_PTR real *pull, LOCAL_PTR real *push,
                       LOCAL_PTR const real *y_rows, LOCAL_PTR const real *y_columns, __global const real *D,
                       const real *delta_of, __global const real *weights, long I, long j, long n, long many,
                       long line) {
    const int id = (int)get_local_id(0), lane = id % SIDE, first = id / SIDE * TURN;
    real tile_sums[SUMS] = {0};
#pragma unroll
    for (int s = 0; s < TURN; s++) {
        const long i = I * SIDE + first + s;
        const bool pair = i < j && i < many && j < n;
        const real delta = delta_of ? delta_of[s] : pair ? D[i * line + j] : (real)0;
#ifdef WEIGHTS
        const real weight = pair ? weights[i * line + j] : (real)0;
#else
        const real weight = pair ? (real)1 : (real)0;
#endif
        real apart[P], square = 0;
#pragma unroll
        for (int c = 0; c < P; c++) {
            apart[c] = y_rows[(first + s) * P + c] - y_columns[lane * P + c];
            square += apart[c] * apart[c];
        }
        /* not fmax, which is several instructions in f64 */
        const real inverse = square < REAL_SMALLEST ? 1 / REAL_HAIR : inverse_sqrt(square);
        const real distance = square * inverse, rest = delta - distance;
        const real stress = weight * rest * rest, of_U = weight * inverse, of_R = of_U * delta;
        tile_sums[0] += stress;
        tile_sums[1] += weight * square;
#ifdef POINTS
        pull[(first + s) * LINE + lane] = stress;
        column_sums[0] += stress;
#else
        pull[(first + s) * LINE + lane] = of_R;
#pragma unroll
        for (int c = 0; c < P; c++) column_sums[c] -= of_R * APART_IN(c, apart[c]);
#endif
#ifdef WITH_U
        tile_sums[2] += weight * distance;
        tile_sums[3] += weight * delta * distance;
        push[(first + s) * LINE + lane] = of_U;
#pragma unroll
        for (int c = 0; c < P; c++) column_sums[P + c] -= of_U * APART_IN(c, apart[c]);
#endif
    }
    for (int s = 0; s < SUMS; s++) sums[s] += (wide)tile_sums[s];
}

/* Then it goes along the columns of a row. */
DEVICE_FN void go_along(real *row_sums, LOCAL_PTR const real *pull, LOCAL_PTR const real *push,
                        LOCAL_PTR const real *y_rows, LOCAL_PTR const real *y_columns) {
    const int lane = (int)get_local_id(0) % SIDE, first = (int)get_local_id(0) / SIDE * TURN;
#pragma unroll 4
    for (int s = 0; s < TURN; s++) {
        const real of_R = pull[lane * LINE + first + s];
#ifdef POINTS
        row_sums[0] += of_R;
#else
#pragma unroll
        for (int c = 0; c < P; c++) {
            const real apart = APART_IN(c, y_rows[lane * P + c] - y_columns[(first + s) * P + c]);
            row_sums[c] += of_R * apart;
#ifdef WITH_U
            row_sums[P + c] += push[lane * LINE + first + s] * apart;
#endif
        }
#endif
    }
}

__kernel GROUP_OF(BS) void guttman(PARAMETERS(guttman)) {
    LOCAL real y_rows[SIDE * P], y_columns[SIDE * P], pull[SIDE * LINE], share[BS];
#ifdef WITH_U
    LOCAL real push[SIDE * LINE];
#else
#define push pull /* is not asked for */
#endif
#ifdef FROM_X
    LOCAL real x_rows[SIDE * CHUNK], x_columns[CHUNK * LINE];
    real delta_of[TURN];
#else
    const real *const delta_of = 0;
#endif
    LOCAL wide totals[BS];
    const int id = (int)get_local_id(0), lane = id % SIDE;
    const int strip = (int)get_group_id(0) % strips, piece = (int)get_group_id(0) / strips;
    const long tiles = (n + SIDE - 1) / SIDE, down = (many + SIDE - 1) / SIDE;
    wide sums[SUMS] = {0, 0, 0, 0};
    Y += from * P;
#ifdef FROM_X
    X += from * q;
#else
    D += from;
#endif
#ifdef WEIGHTS
    weights += from;
#endif
    __global real *const of_columns = columns + (long)strip * COMPONENTS * n;
    __global real *const of_rows = rows + (long)piece * COMPONENTS * n;
    for (long turn = 0; turn * strips < down; turn++) {
        const long I = turn * strips + (turn % 2 ? strips - 1 - strip : strip);
        real row_sums[COMPONENTS] = {0};
        barrier(CLK_LOCAL_MEM_FENCE);
        load_points(y_rows, Y, I, n);
        for (long J = I + (piece + SHARES - I % SHARES) % SHARES; I < down && J < tiles; J += SHARES) {
            real column_sums[COMPONENTS] = {0};
            barrier(CLK_LOCAL_MEM_FENCE);
            load_points(y_columns, Y, J, n);
#ifdef FROM_X
            tile_distances(delta_of, x_rows, x_columns, X, q, I, J, n);
#endif
            barrier(CLK_LOCAL_MEM_FENCE);
            go_down(column_sums, sums, pull, push, y_rows, y_columns, D, delta_of, weights, I,
                    J * SIDE + lane, n, many, line);
            barrier(CLK_LOCAL_MEM_FENCE);
            go_along(row_sums, pull, push, y_rows, y_columns);
            hand_over(of_columns, column_sums, share, J, n, turn > 0);
        }
        hand_over(of_rows, row_sums, share, I, n, false);
    }
    for (int s = 0; s < SUMS; s++) {
        const wide sum = group_total(sums[s], totals);
        if (id == 0) partial[(long)get_group_id(0) * SUMS + s] = sum;
    }
}

/* R, U or the points' sums from the strips' and pieces' arrays; the first threads also add the groups' sums
 * up. */
__kernel void guttman_finish(PARAMETERS(guttman_finish)) {
    for (long e = (long)get_global_id(0); e < n * COMPONENTS; e += (long)get_global_size(0)) {
        const long component = e / n, i = e % n, tile = i / SIDE;
        const int last = (int)(tile < strips - 1 ? tile : strips - 1);
        real sum = 0;
        for (int strip = 0; strip <= last; strip++)
            sum += columns[((long)strip * COMPONENTS + component) * n + i];
        for (int piece = 0; i < many && piece < SHARES; piece++)
            sum += rows[((long)piece * COMPONENTS + component) * n + i];
        (component < OF_R ? R : U)[(from + i) * OF_R + component % OF_R] = sum;
    }
    for (long e = (long)get_global_id(0); e < from * OF_R; e += (long)get_global_size(0)) {
        R[e] = 0;
        if (COMPONENTS > OF_R) U[e] = 0;
    }
    if (get_global_id(0) < SUMS && sums) {
        wide sum = 0;
        for (int group = 0; group < strips * SHARES; group++)
            sum += partial[(long)group * SUMS + get_global_id(0)];
        sums[get_global_id(0)] = sum;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build DISTANCES
// build GUTTMAN SIDE=64 BS=256 SHARES=4 P=2 COMPONENTS=2 OF_R=2
// build GUTTMAN SIDE=32 BS=256 SHARES=4 P=3 COMPONENTS=3 OF_R=3 FROM_X
// build GUTTMAN SIDE=32 BS=256 SHARES=4 P=2 COMPONENTS=4 OF_R=2 WITH_U WEIGHTS
// build GUTTMAN SIDE=16 BS=256 SHARES=4 P=5 COMPONENTS=1 OF_R=1 POINTS WEIGHTS FROM_X
// pack {f32|f64} DISTANCES
#endif
