/* GPU body of G = Z^T diag(v) Z as in gram.cl, for a Z of up to 32 columns of f32: tensor cores, and warps
 * that wait for nobody.
 *
 * A warp has every so manyth slice of 32 rows in on-chip memory, STAGES at a time, where bulk copies bring it
 * as it lies in X: no thread has an address to compute. A lane takes the same numbers for the left and the
 * right operand of a product, so that each is split into halves once, and parts below the diagonal are left
 * out. The order of the rows within a slice is free: the four that a product's lanes read at once are APART
 * rows from each other, which puts them into different banks.
 *
 * x = high + low with 11 leading bits each, and of the four products of the halves the three that matter.
 * Tensor cores round towards zero, but no sum in them has more than 32 rows; a warp's sums of slices and the
 * sum of a group's warps are f32, and those of the groups `wide` (gram_finish of gram.cl, to which a group is
 * a split). */

#define ARGUMENTS_gram_narrow(FIRST, NEXT)                                                                   \
    FIRST(SPACE, real, partials)                                                                             \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, v)                                                                                        \
    NEXT(IN, real, c)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(IN, real, d)                                                                                        \
    NEXT(VALUE, long, rows)

#ifndef KI_HOST
#include "dialect/tensor.h"

#if defined(BULK) && defined(TENSOR) && !defined(REAL_F64)
#define SIDE 32
#define ROWS 32 /* of a slice */
#define WARPS 8
#define EIGHTS ((COLS + K + 8) / 8) /* of columns of Z */
#define PAIRS ((EIGHTS + 1) / 2)
#define APART (COLS % 8 == 0 ? 1 : COLS % 4 == 0 ? 2 : COLS % 2 == 0 ? 4 : 8)
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)

/* A slice: rows of X, of Y, weights, ones. What is not there is c, d and 0, so that it counts nothing. */
#ifdef WEIGHTED
#define ONES (ROWS * (COLS + K + 1))
#else
#define ONES (ROWS * (COLS + K))
#endif
#define SLICE (ONES + ROWS)

/* Holds what a warp works on. */
struct slices {
    LOCAL_PTR real *ring;
    LOCAL_PTR ulong *full; /* a slice has come */
    long first, apart, rows; /* its first slice, how far on the next is; rows of X */
};

DEVICE_FN void narrow_fetch(const struct slices *of, __global const real *X, __global const real *v,
                            __global const real *c, __global const real *Y, __global const real *d, long i) {
    const int lane = (int)get_local_id(0) % 32;
    const long row = (of->first + i * of->apart) * ROWS, left = of->rows - row;
    LOCAL_PTR real *const to = of->ring + i % STAGES * SLICE;
    LOCAL_PTR ulong *const ticket = of->full + i % STAGES;
    if (left >= ROWS) {
        if (lane > 0) return;
        ticket_expect(ticket, ONES * sizeof(real));
        bulk_copy(to, X + row * COLS, ROWS * COLS * sizeof(real), ticket);
        if (K > 0) bulk_copy(to + ROWS * COLS, Y + row * K, ROWS * K * sizeof(real), ticket);
#ifdef WEIGHTED
        bulk_copy(to + ROWS * (COLS + K), v + row, ROWS * sizeof(real), ticket);
#endif
        return;
    }
    for (int e = lane; e < ROWS * COLS; e += 32)
        to[e] = e / COLS < left ? X[row * COLS + e] : c ? c[e % COLS] : REAL(0.0);
    for (int e = lane; e < ROWS * K; e += 32)
        to[ROWS * COLS + e] = e / (K + !K) < left ? Y[row * K + e] : d ? d[e % (K + !K)] : REAL(0.0);
#ifdef WEIGHTED
    to[ROWS * (COLS + K) + lane] = lane < left ? v[row + lane] : REAL(0.0);
#endif
    to[ONES + lane] = lane < left ? REAL(1.0) : REAL(0.0);
    warp_sync();
    if (lane == 0) ticket_expect(ticket, 0);
}

/* A lane's columns of Z, 8 apart, in a slice: the first of its rows, elements from row to row, centres. */
struct columns {
    int at[EIGHTS], step[EIGHTS];
    real centre[EIGHTS];
};

DEVICE_FN struct columns columns_of_lane(__global const real *c, __global const real *d) {
    const int lane = (int)get_local_id(0) % 32;
    struct columns of;
    EACH(s, EIGHTS) {
        const int j = 8 * s + lane / 4, more = j - COLS;
        const bool own = 8 * s + 8 <= COLS || more < 0;
        of.step[s] = own ? COLS : more < K ? K : 1;
        of.at[s] = own ? j : more < K ? ROWS * COLS + more : ONES;
        of.at[s] += lane % 4 * APART * of.step[s];
        of.centre[s] = own ? (c ? c[j] : REAL(0.0)) : more < K && d ? d[more] : REAL(0.0);
    }
    return of;
}

/* Eight rows of a lane's columns as halves: of either half of the rows, of each column. */
struct operand {
    uint high[2][EIGHTS], low[2][EIGHTS];
};

/* sums += a^T b: of each 16 x 8 that reaches above the diagonal. A pair may have one eight only: what it
 * takes for the other goes to rows that nobody reads. */
DEVICE_FN void narrow_multiply(real (*sums)[EIGHTS][4], const uint (*a)[EIGHTS], const uint (*b)[EIGHTS]) {
    EACH(i, PAIRS) {
        const int other = 2 * i + 1 < EIGHTS ? 2 * i + 1 : 2 * i;
        const uint left[4] = {a[0][2 * i], a[0][other], a[1][2 * i], a[1][other]};
        EACH(j, EIGHTS) {
            const uint right[2] = {b[0][j], b[1][j]};
            if (j >= 2 * i) multiply_tf32(sums[i][j], left, right);
        }
    }
}

DEVICE_FN void narrow_add(real (*total)[EIGHTS][4], LOCAL_PTR const real *slice, const struct columns *of) {
    real sums[PAIRS][EIGHTS][4] = {{{0}}};
    EACH(q, ROWS / 8) {
        struct operand a;
        EACH(h, 2) EACH(s, EIGHTS) {
            const int e = 2 * q + h, row = e % APART + e / APART * 4 * APART;
            split(&a.high[h][s], &a.low[h][s], slice[of->at[s] + row * of->step[s]] - of->centre[s]);
        }
#ifdef WEIGHTED
        struct operand b;
        EACH(h, 2) {
            const int e = 2 * q + h, row = e % APART + e / APART * 4 * APART;
            const real weight = slice[ONES - ROWS + (int)get_local_id(0) % 4 * APART + row];
            EACH(s, EIGHTS)
            split(&b.high[h][s], &b.low[h][s],
                  (slice[of->at[s] + row * of->step[s]] - of->centre[s]) * weight);
        }
#else
        const struct operand b = a;
#endif
        narrow_multiply(sums, a.low, b.high);
        narrow_multiply(sums, a.high, b.low);
        narrow_multiply(sums, a.high, b.high);
    }
    EACH(i, PAIRS) EACH(j, EIGHTS) EACH(e, 4) if (j >= 2 * i) total[i][j][e] += sums[i][j][e];
}

/* The sums of a group's warps, in their order, where the rings were. */
DEVICE_FN void narrow_give(__global real *to, LOCAL_PTR real *shared, const real (*total)[EIGHTS][4]) {
    const int id = (int)get_local_id(0), lane = id % 32;
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH(i, PAIRS) EACH(j, EIGHTS) EACH(e, 4) {
        const int row = 16 * i + e / 2 * 8 + lane / 4, column = 8 * j + lane % 4 * 2 + e % 2;
        if (j >= 2 * i) shared[id / 32 * (SIDE * SIDE) + row * SIDE + column] = total[i][j][e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < SIDE * SIDE; e += 32 * WARPS) {
        real sum = 0;
        if (e / SIDE > e % SIDE || e % SIDE > COLS + K) continue;
        for (int w = 0; w < WARPS; w++) sum += shared[w * (SIDE * SIDE) + e];
        to[e] = sum;
    }
}

__kernel GROUP_BESIDE(32 * WARPS, 2) void gram_narrow(PARAMETERS(gram_narrow)) {
    RING_BEGIN
    LOCAL ulong tickets[WARPS][STAGES];
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    const long slices = (rows + ROWS - 1) / ROWS;
    const struct columns columns = columns_of_lane(c, d);
    real total[PAIRS][EIGHTS][4] = {{{0}}};
    struct slices of;
    of.ring = ring + warp * STAGES * SLICE;
    of.full = tickets[warp];
    of.first = (long)get_group_id(0) * WARPS + warp;
    of.apart = (long)get_num_groups(0) * WARPS;
    of.rows = rows;
    const int count = of.first < slices ? (int)((slices - of.first + of.apart - 1) / of.apart) : 0;
    for (int s = lane; s < STAGES * ROWS; s += 32) of.ring[s / ROWS * SLICE + ONES + s % ROWS] = REAL(1.0);
    if (lane == 0) {
        EACH(s, STAGES) ticket_init(of.full + s, 1);
        tickets_begin();
    }
    warp_sync();
    /* The ring is filled in the same loop: a second place that fetches would be a quarter of what the
     * compiler has to do. */
    for (int i = 1 - STAGES; i < count; i++) {
        const int next = i + STAGES - 1;
        warp_sync(); /* all lanes are done with the slice before */
        if (next < count) narrow_fetch(&of, X, v, c, Y, d, next);
        if (i < 0) continue;
        ticket_wait(of.full + i % STAGES, (uint)(i / STAGES & 1));
        narrow_add(total, of.ring + i % STAGES * SLICE, &columns);
    }
    narrow_give(partials + (long)get_group_id(0) * (SIDE * SIDE), ring, (const real(*)[EIGHTS][4])total);
}
#endif

/* The variants that differ in text, as the tests build them. */
// build TENSOR COLS=28 K=1 STAGES=2 RING_BYTES=61440
// build TENSOR WEIGHTED COLS=5 K=0 STAGES=2 RING_BYTES=32768
#endif
