/* GPU body of the passes over a dense X where a copy engine brings rows to on-chip memory (from compute
 * capability 9.0 on): out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * A ring of STAGES tiles in shared memory (dialect/bulk.h) is kept full, so that the bytes under way, which
 * decide the bandwidth, depend neither on registers nor on how long the group takes over the sums in the
 * middle. As in dense.cl a vector of VS threads shares a row, with its columns of y and w in registers; the
 * row is read from shared memory twice, for the dot product and for w (dialect/pass.h names the defines).
 * Rows too wide for one group are team.cl's.
 *
 * A tile is NV * R rows, one piece of memory, whose copy begins before its first row, at a multiple of 32
 * bytes, and ends behind its last, at a multiple of 16: rows of any length come by bulk copies. out has one
 * partial w a group, partial[group][K][n]. The first SURE of the Q loads of a row are within it in every
 * thread. */

#include "dialect/bulk.h"
#include "dialect/group_sum.h"
#include "dialect/pass.h"
#if defined(BULK) && defined(RING)
#define TL (Q * W)
#define TILE (NV * R)
#define WARPS (BS / 32)

/* The columns of a row that a thread owns; zeros beyond its end. */
DEVICE_FN void load_slice(real *x, LOCAL_PTR const real *row, int lane, int n) {
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int j = (lane + q * VS) * W;
        if (q < SURE || j < n) {
            load_local(&x[q * W], row + j);
        } else {
#pragma unroll
            for (int s = 0; s < W; s++) x[q * W + s] = REAL(0.0);
        }
    }
}

/* Holds what a group works on: every parts-th tile from `part` on. */
struct tiles {
    __global const real *X;
    LOCAL_PTR real *ring;
    LOCAL_PTR ulong *full; /* a tile of the ring has come */
    long rows, part, parts, count;
    int n, size; /* size: elements of a tile in the ring */
};

DEVICE_FN struct tiles tiles_of_group(__global const real *X, LOCAL_PTR real *memory, LOCAL_PTR ulong *full,
                                      long rows, int n) {
    struct tiles t;
    t.X = X;
    t.ring = memory;
    t.full = full;
    t.rows = rows;
    t.n = n;
    t.part = (long)get_group_id(0);
    t.parts = (long)get_num_groups(0);
    t.size = (TILE * n + BULK_LINE - 1) / BULK_LINE * BULK_LINE + (TILE * n % BULK_LINE ? BULK_LINE : 0);
    const long all = (rows + TILE - 1) / TILE;
    t.count = t.part < all ? (all - t.part + t.parts - 1) / t.parts : 0;
    return t;
}

DEVICE_FN long first_row(const struct tiles *t, long i) {
    return (t->part + i * t->parts) * TILE;
}

/* Finds where in its place a tile begins, whose first row is `row`. */
DEVICE_FN int shift_of(const struct tiles *t, long row) {
    return (int)((uint)row * (uint)t->n % BULK_LINE);
}

/* The first row that this thread's vector takes of the i-th tile; the others are NV rows apart. */
DEVICE_FN LOCAL_PTR const real *rows_of(const struct tiles *t, long i) {
    return t->ring + (int)(i % STAGES) * t->size + shift_of(t, first_row(t, i)) +
           (int)get_local_id(0) / VS * t->n;
}

/* Starts the copy of the i-th tile. One thread calls it. The last bytes of X may be less than a copy
 * takes. */
DEVICE_FN void fetch(const struct tiles *t, long i) {
    const long row = first_row(t, i);
    const int rows = t->rows - row < TILE ? (int)(t->rows - row) : TILE, stage = (int)(i % STAGES);
    const int shift = shift_of(t, row), before = shift % BULK_BEGIN;
    LOCAL_PTR real *to = t->ring + stage * t->size + (shift - before);
    __global const real *from = t->X + (row * t->n - before);
    const long left = (t->rows - row) * t->n + before;
    int all = (before + rows * t->n + BULK_UNIT - 1) / BULK_UNIT * BULK_UNIT;
    if (all > left) {
        all = (int)left / BULK_UNIT * BULK_UNIT;
#pragma unroll 1 /* less than BULK_UNIT, of the last tile */
        for (int e = all; e < (int)left; e++) to[e] = from[e];
    }
    ticket_expect(&t->full[stage], all * (uint)sizeof(real));
    if (all > 0) bulk_copy(to, from, all * (uint)sizeof(real), &t->full[stage]);
}

DEVICE_FN void wait_full(const struct tiles *t, long i) {
    ticket_wait(&t->full[i % STAGES], (uint)(i / STAGES & 1));
}

/* A sum over the warps of a vector, each of which has left its part. */
DEVICE_FN real sum_warps(LOCAL_PTR const real *parts, int vector) {
    LOCAL_PTR const real *from = parts + vector * (VS / 32);
    real sum = from[0];
    for (int w = 1; w < VS / 32; w++) sum += from[w];
    return sum;
}

/* A step's numbers: the dot products of R rows with K columns, number c * R + r. Each stands beside those of
 * the group's other vectors, or of other warps where these are smaller. */
#define V (K * R)
#define LANES (VS < 32 ? VS : 32)
#define PLACES (BS / LANES)
#define ROWS_A_LANE (R > LANES ? R / LANES : 1)

/* p = this thread's share of the dot products of the i-th tile's rows with y. Nobody uses those of rows
 * behind the last. */
DEVICE_FN void dots(real *p, const struct tiles *t, long i, const real (*yr)[TL]) {
    LOCAL_PTR const real *row = rows_of(t, i);
#pragma unroll
    for (int r = 0; r < R; r++, row += NV * t->n) {
        real x[TL];
        load_slice(x, row, (int)get_local_id(0) % VS, t->n);
#pragma unroll
        for (int c = 0; c < K; c++) {
            real sum = REAL(0.0);
#pragma unroll
            for (int e = 0; e < TL; e++) sum += x[e] * yr[c][e];
            p[c * R + r] = sum;
        }
    }
}

/* The V sums over the vector's lanes in a warp, number s to to[s * stride]. */
DEVICE_FN void lane_sums(LOCAL_PTR real *to, int stride, real *p) {
    const int lane = (int)get_local_id(0) % LANES;
    halving_sums(p, V, LANES);
#pragma unroll
    for (int s = 0; s < (V > LANES ? V / LANES : 1); s++) to[(lane * V / LANES + s) * stride] = p[s];
}

/* wr = 0; yr = the thread's columns of y. */
DEVICE_FN void begin_columns(real (*wr)[TL], real (*yr)[TL], __global const real *y, int n, int k,
                             int first) {
    const int lane = (int)get_local_id(0) % VS;
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int e = 0; e < TL; e++) {
            const int j = (lane + e / W * VS) * W + e % W;
            wr[c][e] = REAL(0.0);
            yr[c][e] = REAL(0.0);
#if FUSED || PLAIN
            if (j < n && first + c < k) yr[c][e] = y[(index_t)j * k + first + c];
#endif
        }
}

/* The m-th of the rows of the i-th tile that the lane turns from dot products to factors; -1: there is
 * none. */
DEVICE_FN long own_row(const struct tiles *t, long i, int m) {
    const int id = (int)get_local_id(0), r = id % LANES + m * LANES;
    const long row = first_row(t, i) + r * NV + id / VS;
    return r < R && row < t->rows ? row : -1;
}

/* One lane a row: sums, from dot products to factors, or to the result. */
DEVICE_FN void map_rows(LOCAL_PTR real *sums, const struct tiles *t, long i,
                        const struct row_operands *operands, __global real *out, __global const real *z,
                        real alpha, real beta, int first, int k MAP_TAKEN) {
    const bool writer = (int)get_local_id(0) % VS < LANES;
#pragma unroll
    for (int m = 0; m < ROWS_A_LANE; m++) {
        const int r = (int)get_local_id(0) % LANES + m * LANES;
        const long row = own_row(t, i, m);
        if (row < 0) continue;
        real factor[K];
#pragma unroll
        for (int c = 0; c < K; c++) factor[c] = FUSED || PLAIN ? sums[(c * R + r) * PLACES] : REAL(0.0);
#if PLAIN
#pragma unroll
        for (int c = 0; c < K; c++)
            if (writer && first + c < k)
                write_plain(out, factor[c], z, alpha, beta, (index_t)row * k + first + c);
#else
        apply_map(factor, &operands[m], (index_t)row, first, k MAP_STATE(writer));
#pragma unroll
        for (int c = 0; c < K; c++) sums[(c * R + r) * PLACES] = factor[c];
#endif
    }
}

DEVICE_FN void scatter(real (*wr)[TL], const struct tiles *t, long i, LOCAL_PTR const real *factors) {
    const int id = (int)get_local_id(0);
    const long all = t->rows - first_row(t, i);
    const int left = all < TILE ? (int)all : TILE;
    LOCAL_PTR const real *row = rows_of(t, i);
#pragma unroll
    for (int r = 0; r < R; r++, row += NV * t->n) {
        real x[TL];
        if (r * NV + id / VS >= left) continue;
        load_slice(x, row, id % VS, t->n);
#pragma unroll
        for (int c = 0; c < K; c++)
#pragma unroll
            for (int e = 0; e < TL; e++)
                wr[c][e] += factors[(c * R + r) * PLACES] * (SQUARES ? x[e] * x[e] : x[e]);
    }
}

/* The vectors of the group add up their w: those of a warp by exchanging registers, then warps or wider
 * vectors in order, where the ring was. Unrolled, or the compiler moves all of wr out of the registers. */
#define SPAN (VS < 32 ? 32 : VS)
DEVICE_FN void write_w(__global real *out, const struct tiles *t, const real (*wr)[TL]) {
    const int id = (int)get_local_id(0);
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int e = 0; e < TL; e++) {
            real sum = wr[c][e];
#pragma unroll
            for (int step = 16; step >= VS; step /= 2) sum += shuffle_xor(0xffffffffu, sum, step);
#if BS > SPAN
            barrier(CLK_LOCAL_MEM_FENCE);
            t->ring[id] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int other = SPAN; id < VS && other < BS; other += SPAN) sum += t->ring[other + id];
#endif
            const int j = (id + e / W * VS) * W + e % W;
            if (id < VS && j < t->n) out[(t->part * K + c) * t->n + j] = sum;
        }
}

/* The work on tile i + 1 up to the point where it needs other warps is done before tile i is finished: what
 * the sums wait for is hidden. What warps exchange alternates between two places, so that one barrier a tile
 * will do. */
__kernel GROUP_OF(BS) void mmchain_ring(PARAMETERS(dense) MAP_PARAMETERS) {
    RING_BEGIN
    LOCAL ulong full[STAGES];
    LOCAL uint done[STAGES];
    LOCAL real own[2][V][PLACES];
#if VS > 32
    LOCAL real scratch[2][V][WARPS];
#endif
    MAP_BEGIN
    const int id = (int)get_local_id(0);
    const struct tiles t = tiles_of_group(X, ring, full, rows, n);
    if (id == 0) {
        for (int s = 0; s < STAGES; s++) {
            ticket_init(&full[s], 1);
            done[s] = 0;
        }
        tickets_begin();
        for (long i = 0; i < STAGES && i < t.count; i++) fetch(&t, i);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    real yr[K][TL], wr[K][TL];
    begin_columns(wr, yr, y, n, k, first);
    struct row_operands now[ROWS_A_LANE], next[ROWS_A_LANE];
    for (long i = -1; i < t.count; i++) {
        const bool more = i + 1 < t.count;
#if !PLAIN
#pragma unroll
        for (int m = 0; m < ROWS_A_LANE; m++) {
            const long row = own_row(&t, i + 1, m);
            now[m] = next[m];
            if (more && row >= 0) next[m] = load_operands(v, y, (index_t)row, first, k, v_cols MAP_OPERANDS);
        }
#endif
        if (more) wait_full(&t, i + 1);
        LOCAL_PTR real *sums = &own[i & 1][0][id / LANES];
#if FUSED || PLAIN
        if (more) {
            real p[V];
            dots(p, &t, i + 1, yr);
#if VS > 32
            lane_sums(&scratch[i + 1 & 1][0][id / 32], WARPS, p);
#else
            lane_sums(&own[i + 1 & 1][0][id / LANES], PLACES, p);
#endif
        }
#if VS > 32
        for (int s = id % 32; s < V && i >= 0; s += 32)
            sums[s * PLACES] = sum_warps(scratch[i & 1][s], id / VS);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
#endif
        if (i < 0) continue;
        warp_sync();
        map_rows(sums, &t, i, now, out, z, alpha, beta, first, k MAP_PASSED);
        warp_sync();
#if !PLAIN
        scatter(wr, &t, i, sums);
#endif
        warp_sync();
        /* The last warp to be done with the tile has the next one brought to its place. */
        if (id % 32 == 0 && last_warp(&done[i % STAGES], WARPS) && i + STAGES < t.count)
            fetch(&t, i + STAGES);
    }
#if !PLAIN
    write_w(out, &t, wr);
#endif
    MAP_END
}
#endif

/* The variants that differ in text, as the tests build them. */
// build RING KIND=0 VS=8 BS=128 Q=2 W=2 R=4 K=1 C=1 SURE=1 STAGES=4 RING_BYTES=65536
// build RING KIND=0 VS=32 BS=128 Q=4 W=2 R=2 K=4 C=1 SURE=1 STAGES=4 MAP=3 RING_BYTES=65536
// build RING KIND=0 VS=128 BS=128 Q=8 W=2 R=1 K=1 C=1 SURE=1 STAGES=3 MAP=2 LOSS=2 FAMILY=0 LINK=0 RING_BYTES=65536
// build RING KIND=1 VS=128 BS=128 Q=8 W=2 R=1 K=1 C=1 SURE=1 STAGES=3 RING_BYTES=65536
// build RING KIND=2 VS=16 BS=128 Q=8 W=1 R=2 K=2 C=1 SURE=1 STAGES=3 INDEX64 RING_BYTES=65536
// build RING KIND=3 VS=128 BS=128 Q=8 W=4 R=1 K=1 C=1 SURE=1 STAGES=3 RING_BYTES=65536
