/* GPU body of the passes over a dense X: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * A vector of VS adjacent threads shares a row (Ashari et al., PPoPP 2015): their dot product with y, summed
 * within the group, meets the row again while it is still in registers. dialect/pass.h names the defines. */

#define ARGUMENTS_mmchain_finish(FIRST, NEXT)                                                                \
    FIRST(OUT, real, out)                                                                                    \
    NEXT(TABLE, real, partial)                                                                               \
    NEXT(IN, real, z)                                                                                        \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, columns)                                                                                \
    NEXT(VALUE, int, width)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/pass.h"

#define TL (Q * W)

/* Loops over a thread's w that end in barriers: without it a GPU's compiler moves all of w out of the
 * registers, with it those for CPUs take long. */
#ifdef SHUFFLES
#define UNROLLED_W _Pragma("unroll")
#else
#define UNROLLED_W
#endif

/* The r-th row of a vector in a step. Its rows lie side by side; where threads have rows of their own, those
 * of neighbouring threads do, so that a warp's loads are of one piece of memory. */
#if VS == 1
#define ROW_OF(r) (row0 + (r) * NV + vector)
#else
#define ROW_OF(r) (row0 + vector * R + (r))
#endif

#ifdef DENSE
/* The column that number t of a thread's TL stands for. */
#define COLUMN_OF(t) ((lane + (t) / W * VS) * W + (t) % W)

/* A thread's part of y, zeros beyond its end. */
DEVICE_FN void take_y(real yr[K][TL], __global const real *y, int n, int k, int first, int lane) {
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int t = 0; t < TL; t++) {
            yr[c][t] = REAL(0.0);
#if FUSED || PLAIN
            if (COLUMN_OF(t) < n && first + c < k) yr[c][t] = y[(index_t)COLUMN_OF(t) * k + first + c];
#endif
        }
}

/* A thread's part of its vector's R rows, zeros beyond the last row and column. */
DEVICE_FN void take_rows(real x[R][TL], __global const stored *X, long row0, long rows, int n, int lane,
                         int vector) {
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int q = 0; q < Q; q++)
            if (ROW_OF(r) < rows && COLUMN_OF(q * W) < n)
                load_stored(&x[r][q * W], X + (index_t)ROW_OF(r) * n + COLUMN_OF(q * W));
            else
#pragma unroll
                for (int s = 0; s < W; s++) x[r][q * W + s] = REAL(0.0);
}

/* The vectors of the group add up their w through local memory, in order. */
DEVICE_FN void leave_w(__global real *out, real wr[K][TL], LOCAL_PTR real *scratch, int n) {
    const int id = (int)get_local_id(0), lane = id % VS, vector = id / VS;
    UNROLLED_W for (int c = 0; c < K; c++)
        UNROLLED_W for (int t = 0; t < TL; t++) {
            real sum = wr[c][t];
#if NV > 1
            barrier(CLK_LOCAL_MEM_FENCE);
            scratch[id] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int other = 1; vector == 0 && other < NV; other++) sum += scratch[other * VS + lane];
#endif
            if (vector == 0 && COLUMN_OF(t) < n)
                out[((long)get_group_id(0) * K + c) * n + COLUMN_OF(t)] = sum;
        }
}

/* Rows fit into a vector's registers: n <= VS * TL. out is the result (PLAIN) or one partial w per group,
 * partial[group][K][n]. */
__kernel GROUP_OF(BS) void mmchain_dense(PARAMETERS(dense) MAP_PARAMETERS) {
    LOCAL real scratch[R * BS];
    const int id = (int)get_local_id(0), lane = id % VS, vector = id / VS;
    MAP_BEGIN
    const long step = (long)get_num_groups(0) * NV * R;
    real yr[K][TL], wr[K][TL];
    take_y(yr, y, n, k, first, lane);
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int t = 0; t < TL; t++) wr[c][t] = REAL(0.0);
    for (long row0 = (long)get_group_id(0) * NV * R; row0 < rows; row0 += step) {
        real x[R][TL];
        take_rows(x, X, row0, rows, n, lane, vector);
        real p[K][R];
#pragma unroll
        for (int c = 0; c < K; c++) {
#pragma unroll
            for (int r = 0; r < R; r++) {
                p[c][r] = REAL(0.0);
#if FUSED || PLAIN
#pragma unroll
                for (int t = 0; t < TL; t++) p[c][r] += x[r][t] * yr[c][t];
#endif
            }
#if FUSED || PLAIN
            group_sum_n(p[c], scratch);
#endif
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            if (ROW_OF(r) >= rows) continue;
#if PLAIN
#pragma unroll
            for (int c = 0; c < K; c++)
                if (lane == 0 && first + c < k)
                    write_plain(out, p[c][r], z, alpha, beta, (index_t)ROW_OF(r) * k + first + c);
#else
            real factor[K];
#pragma unroll
            for (int c = 0; c < K; c++) factor[c] = p[c][r];
            row_factors(factor, v, y, (index_t)ROW_OF(r), first, k, v_cols MAP_ARGUMENTS(lane == 0));
#pragma unroll
            for (int c = 0; c < K; c++)
#pragma unroll
                for (int t = 0; t < TL; t++) wr[c][t] += factor[c] * (SQUARES ? x[r][t] * x[r][t] : x[r][t]);
#endif
        }
    }
#if !PLAIN
    leave_w(out, wr, scratch, n);
#endif
    MAP_END
}
#endif

/* Rows wider than the registers: the group reads its R rows once for the dot products and again, from the
 * cache where they fit, for w, which lives in the group's partial. VS = BS, so that a thread always meets the
 * same columns. */
#ifdef WIDE
__kernel GROUP_OF(BS) void mmchain_wide(PARAMETERS(dense) MAP_PARAMETERS) {
    LOCAL real scratch[R * BS];
    const int id = (int)get_local_id(0);
    MAP_BEGIN
    __global real *w = out + (long)get_group_id(0) * K * n;
    const long first_row = (long)get_group_id(0) * R;
    for (long row = first_row; row < rows; row += (long)get_num_groups(0) * R) {
        real p[K][R];
        for (int c = 0; c < K; c++)
            for (int r = 0; r < R; r++) p[c][r] = REAL(0.0);
#if FUSED || PLAIN
        for (long j = id; j < n; j += BS)
#pragma unroll
            for (int r = 0; r < R; r++) {
                const real x = row + r < rows ? NUMBER_OF(X[(index_t)(row + r) * n + j]) : REAL(0.0);
#pragma unroll
                for (int c = 0; c < K; c++)
                    if (first + c < k) p[c][r] += x * y[(index_t)j * k + first + c];
            }
        for (int c = 0; c < K; c++) group_sum_n(p[c], scratch);
#endif
        for (int r = 0; r < R; r++) {
            if (row + r >= rows) continue;
#if PLAIN
            for (int c = 0; c < K; c++)
                if (id == 0 && first + c < k)
                    write_plain(out, p[c][r], z, alpha, beta, (index_t)(row + r) * k + first + c);
#else
            real factor[K];
            for (int c = 0; c < K; c++) factor[c] = p[c][r];
            row_factors(factor, v, y, (index_t)(row + r), first, k, v_cols MAP_ARGUMENTS(id == 0));
            for (int c = 0; c < K; c++) p[c][r] = factor[c];
#endif
        }
#if !PLAIN
        for (long j = id; j < n; j += BS) {
            real sum[K];
#pragma unroll
            for (int c = 0; c < K; c++) sum[c] = row == first_row ? REAL(0.0) : w[(long)c * n + j];
#pragma unroll
            for (int r = 0; r < R; r++) {
                const real x = row + r < rows ? NUMBER_OF(X[(index_t)(row + r) * n + j]) : REAL(0.0);
#pragma unroll
                for (int c = 0; c < K; c++) sum[c] += p[c][r] * (SQUARES ? x * x : x);
            }
#pragma unroll
            for (int c = 0; c < K; c++) w[(long)c * n + j] = sum[c];
        }
#endif
    }
    MAP_END
}
#endif

/* out = alpha * (sum of the groups' partials, in order) + beta z. A work-group takes `width` neighbouring
 * elements, at least a unit of the memory, and shares the partials out to 256 / width threads an element:
 * with few columns there are many partials, and each thread's loads come one after the other. width is a
 * power of two from 8 to 256. */
#ifdef FINISH
__kernel GROUP_OF(256) void mmchain_finish(PARAMETERS(mmchain_finish)) {
    LOCAL real shared[256];
    const int id = (int)get_local_id(0), shares = 256 / width;
    const long size = (long)n * columns, at = (long)get_group_id(0) * width + id % width;
    real sum = REAL(0.0);
    if (at < size) {
        int g = id / width;
        for (; g + 3 * shares < groups; g += 4 * shares) {
            const real a = partial[g * size + at], b = partial[(g + shares) * size + at];
            const real c = partial[(g + 2 * shares) * size + at], d = partial[(g + 3 * shares) * size + at];
            sum += (a + b) + (c + d);
        }
        for (; g < groups; g += shares) sum += partial[g * size + at];
    }
    shared[id] = sum;
    for (int step = 128; step >= width; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < step) shared[id] += shared[id + step];
    }
    const int c = first + (int)(at / n);
    if (id >= width || at >= size || c >= k) return;
    write_plain(out, shared[id], z, alpha, beta, (index_t)(at % n) * k + c);
}
#endif

/* The variants that differ in text, as the tests build them. */
// build DENSE KIND=0 VS=16 BS=256 Q=1 W=2 R=4 K=1
// build DENSE KIND=0 VS=128 BS=256 Q=2 W=1 R=1 K=8 INDEX64
// build DENSE KIND=1 VS=1024 BS=1024 Q=1 W=2 R=1 K=1
// build DENSE KIND=2 VS=2 BS=64 Q=1 W=1 R=2 K=3
// build DENSE KIND=3 VS=8 BS=64 Q=1 W=4 R=1 K=1
// build WIDE KIND=0 VS=512 BS=512 Q=1 W=1 R=2 K=2
// build WIDE KIND=1 VS=64 BS=64 Q=1 W=1 R=2 K=1 INDEX64
// build WIDE KIND=3 VS=512 BS=512 Q=1 W=1 R=2 K=1
// build FINISH KIND=0 VS=1 BS=1 Q=1 W=1 R=1 K=1
// build DENSE KIND=0 VS=16 BS=256 Q=1 W=2 R=4 K=1 MAP=0
// build DENSE KIND=0 VS=16 BS=256 Q=1 W=2 R=1 K=4 MAP=3
// build WIDE KIND=0 VS=512 BS=512 Q=1 W=1 R=8 K=1 MAP=2 LOSS=2 FAMILY=0 LINK=0
// build DENSE KIND=0 VS=64 BS=128 Q=1 W=16 R=2 K=1 ELEMENT=1
// build DENSE KIND=1 VS=16 BS=128 Q=2 W=8 R=1 K=1 ELEMENT=5
// build DENSE KIND=0 VS=8 BS=128 Q=1 W=4 R=4 K=1 ELEMENT=2 MAP=2 LOSS=2 FAMILY=0 LINK=0
// build WIDE KIND=0 VS=512 BS=512 Q=1 W=1 R=2 K=2 ELEMENT=6
#endif
// One for every width of rows (general_plan of rows.c), with one or several columns of y.
// pack {f32|f64} FINISH KIND=0 VS=1 BS=1 Q=1 W=1 R=1 K=1
// pack f32 DENSE KIND={0|1|2} {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512}
//      {Q=8 W=1 R=4 K=1|Q=8 W=1 R=2 K=2|Q=8 W=1 R=1 K=4|Q=4 W=1 R=1 K=8}
// pack f32 DENSE KIND=3 {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512} Q=8 W=1 R=4 K=1
// pack f32 DENSE KIND=0 {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512} Q=8 W=1 R=4 K=1
//      MAP={0|2 LOSS={1|2|4|5} FAMILY=0 LINK=0|2 LOSS=6 FAMILY={2|3|6|7} LINK=2}
// pack f32 DENSE KIND=0 {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512}
//      {Q=8 W=1 R=2 K=2|Q=8 W=1 R=1 K=4|Q=4 W=1 R=1 K=8} MAP={0|1|3}
// pack f64 DENSE KIND={0|1|2} {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512}
//      {Q=8 W=1 R=2 K=1|Q=8 W=1 R=1 K=2|Q=4 W=1 R=1 K=4|Q=2 W=1 R=1 K=8}
// pack f64 DENSE KIND=3 {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512} Q=8 W=1 R=2 K=1
// pack f64 DENSE KIND=0 {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512} Q=8 W=1 R=2 K=1
//      MAP={0|2 LOSS={1|2|4|5} FAMILY=0 LINK=0|2 LOSS=6 FAMILY={2|3|6|7} LINK=2}
// pack f64 DENSE KIND=0 {VS={1|2|4|8|16|32|64|128} BS=128|VS=256 BS=256|VS=512 BS=512}
//      {Q=8 W=1 R=1 K=2|Q=4 W=1 R=1 K=4|Q=2 W=1 R=1 K=8} MAP={0|1|3}
// pack {f32|f64} WIDE KIND={0|1|2} VS=512 BS=512 Q=1 W=1 {R=8 K=1|R=4 K=2|R=2 K=4|R=2 K=8}
// pack {f32|f64} WIDE KIND=3 VS=512 BS=512 Q=1 W=1 R=8 K=1
// pack {f32|f64} WIDE KIND=0 VS=512 BS=512 Q=1 W=1 R=8 K=1
//      MAP={0|2 LOSS={1|2|4|5} FAMILY=0 LINK=0|2 LOSS=6 FAMILY={2|3|6|7} LINK=2}
// pack {f32|f64} WIDE KIND=0 VS=512 BS=512 Q=1 W=1 {R=4 K=2|R=2 K=4|R=2 K=8} MAP={0|1|3}
