/* GPU body of the passes over a sparse X: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * A vector of VS adjacent threads shares a row (Ashari et al., PPoPP 2015). A thread keeps its first Q
 * entries of the row in registers between the dot product with y and the scatter into w, so that X is read
 * from memory once by construction. LANES adjacent threads take an entry, W columns of y and w each: what
 * they read and add to lies together in memory, and where the memory adds W of them in one operation
 * (SUMS_TOGETHER) they are adjacent.
 *
 * Where w gathers decides the speed, since sums to one address queue. Columns are counted from the most
 * popular one on, as far as that is known: with CODED, col holds ~rank for the popular columns
 * (derived/popular.c), whose y and w lie together in y_hot and w_hot, K elements a rank. The first chip_w of
 * them gather in local memory, the others in w_hot, which is small enough for the second cache level; the
 * first chip_y elements of y are in local memory, too. Without CODED the numbers of the columns stand for
 * their popularity, and all of w is in local memory where it fits.
 *
 * DOTS says which entries are multiplied with y here, and SUMS which are scattered into w: 0 none, 1 those in
 * popular columns, 2 all. The others are what comes before, panels, which leave their part of the rows' dot
 * products in `dots`, and afterwards, panels or a pass over the transpose, for which the rows' factors are
 * stored. With neither, only the middle step is done here.
 * ALL_NEAR: all of y is in local memory. BANDS: rows that follow each other gather from the same part of y,
 * which the first cache level holds, so a group takes those that lie together.
 *
 * dialect/pass.h names the other defines; LONG selects the kernels for the rows that are too long for one
 * vector. */

/* Both kernels take these. Columns [first, first + K) of out's k, and [y_first, y_first + K) of y's y_k. */
#define ARGUMENTS_csr(FIRST, NEXT)                                                                           \
    FIRST(SPACE, real, out)                                                                                  \
    NEXT(TABLE, start_t, row_start)                                                                          \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(TABLE, real, X)                                                                                     \
    NEXT(VALUE, real, same)                                                                                  \
    NEXT(IN, real, v)                                                                                        \
    NEXT(TABLE, real, y)                                                                                     \
    NEXT(TABLE, real, z)                                                                                     \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, v_cols)                                                                                 \
    NEXT(VALUE, int, y_k)                                                                                    \
    NEXT(VALUE, int, y_first)                                                                                \
    NEXT(TABLE, real, y_hot)                                                                                 \
    NEXT(SPACE, real, w_hot)                                                                                 \
    NEXT(TABLE, real, dots)                                                                                  \
    NEXT(SPACE, real, factors)

/* The rows of X, or those in `list`, but for rows longer than `longest`. */
#define ARGUMENTS_mmchain_csr(FIRST, NEXT)                                                                   \
    ARGUMENTS_csr(FIRST, NEXT)                                                                               \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(TABLE, int, list)                                                                                   \
    NEXT(VALUE, int, list_at)                                                                                \
    NEXT(VALUE, int, longest)                                                                                \
    NEXT(VALUE, int, chip_w)                                                                                 \
    NEXT(VALUE, int, chip_y)

/* The segments of long rows. */
#define ARGUMENTS_mmchain_csr_long(FIRST, NEXT)                                                              \
    ARGUMENTS_csr(FIRST, NEXT)                                                                               \
    NEXT(SPACE, real, partials)                                                                              \
    NEXT(TABLE, int, segment_row)                                                                            \
    NEXT(TABLE, int, segment_number)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/pass.h"

#ifdef START32
typedef int start_t; /* of the transpose */
#else
typedef long start_t;
#endif

#define LANES (K / W)
#define TOGETHER (VS / LANES) /* entries that a vector takes at a time */

/* Columns of the thread whose number among an entry's is `lane`: the i-th of them, and which of them j is. */
#ifdef SUMS_TOGETHER
#define OWN(lane, i) ((lane)*W + (i))
#define AMONG_OWN(j) ((j) % W)
#else
#define OWN(lane, i) ((lane) + (i)*LANES)
#define AMONG_OWN(j) ((j) / LANES)
#endif
#define EACH_OWN(i) _Pragma("unroll") for (int i = 0; i < W; i++)

/* Without values, all of them are `same`. */
struct entries {
    __global const int *col;
    __global const real *X;
    real same;
};

/* Holds what products gather from: columns of y, the first `columns` of which are there; by rank, y of
 * popular columns, and as much of that as is near. */
struct gathered {
    __global const real *y, *hot;
    LOCAL_PTR real *chip;
    int near, k, first, columns;
};

/* Says where sums go: w, and by rank, w of popular columns, and as much of that as is near. */
struct summed {
    __global real *w, *hot;
    LOCAL_PTR real *chip;
    int near, k, first;
};

DEVICE_FN real entry_value(const struct entries *A, index_t e) {
    const real x = A->X ? load_once(A->X + e) : A->same;
#if SQUARES || defined(SQUARED)
    return x * x;
#else
    return x;
#endif
}

/* sum += x * (row c of y), of whose columns the thread's own count. There is no branch: with one, the loads
 * of a row's entries would wait for each other. */
DEVICE_FN void add_products(real *sum, bool in, int c, real x, int lane, const struct gathered *from) {
#ifdef CODED
    const int rank = ~c;
    const bool hot = in && c < 0;
#else
    const int rank = c;
    const bool hot = in && c < from->near;
#endif
#ifdef ALL_NEAR
    EACH_OWN(i) sum[i] += x * (in ? from->chip[rank * K + OWN(lane, i)] : REAL(0.0));
#else
    const bool all = DOTS == 2, near = hot && rank < from->near, far = all && in && !hot;
    __global const real *const row = from->y + ((index_t)c * from->k + from->first);
    real element[W];
#if defined(CODED) && DOTS != 2
    if (c >= 0) x = REAL(0.0); /* an infinity times nothing would not be nothing */
#endif
#if defined(BANDS)
    EACH_OWN(i) element[i] = far && OWN(lane, i) < from->columns ? row[OWN(lane, i)] : REAL(0.0);
#elif defined(SUMS_TOGETHER) && W == SUMS_TOGETHER
    load_kept_together(element, row + OWN(lane, 0), far && OWN(lane, 0) < from->columns);
#else
    EACH_OWN(i) element[i] = far && OWN(lane, i) < from->columns ? load_kept(row + OWN(lane, i)) : REAL(0.0);
#endif
    EACH_OWN(i) {
        const int at = rank * K + OWN(lane, i);
#if defined(CODED) && defined(KILN_CUDA) /* one load, from wherever it is */
        const real *const here = near ? from->chip : from->hot;
        element[i] = hot ? here[at] : element[i];
#else
        const real on_chip = near ? from->chip[at] : REAL(0.0);
#ifdef CODED
        const real cached = hot && !near ? from->hot[at] : REAL(0.0);
        element[i] = near ? on_chip : hot ? cached : element[i];
#else
        element[i] = near ? on_chip : element[i];
#endif
#endif
        sum[i] += x * element[i];
    }
#endif
}

/* Row c of w += f * x, of which these are the thread's own columns. */
DEVICE_FN void entry_scatter(const real *f, int c, real x, int lane, const struct summed *to) {
#ifdef CODED
    const int rank = ~c;
    const bool rare = c >= 0;
#else
    const int rank = c;
    const bool rare = c >= to->near;
#endif
    if (rare && SUMS != 2) return;
    if (!rare && rank < to->near) {
        EACH_OWN(i)
        if (to->first + OWN(lane, i) < to->k)
            atomic_add_local(to->chip + (rank * K + OWN(lane, i)), f[i] * x);
        return;
    }
    __global real *const row = rare ? to->w + ((index_t)c * to->k + to->first) : to->hot + rank * K;
#if defined(SUMS_TOGETHER) && W == SUMS_TOGETHER
    real product[W];
    EACH_OWN(i) product[i] = f[i] * x;
    if (to->first + OWN(lane, 0) < to->k) atomic_add_together(row + OWN(lane, 0), product);
#else
    EACH_OWN(i) if (to->first + OWN(lane, i) < to->k) atomic_add_global(row + OWN(lane, i), f[i] * x);
#endif
}

/* Entries e, e + TOGETHER, ... before `end`, COUNT of them at most: all loads are under way at once. */
#define LOAD_COLUMNS(COUNT, c, e, end)                                                                       \
    _Pragma("unroll") for (int t = 0; t < COUNT; t++) c[t] =                                                 \
        (e) + t * TOGETHER < (end) ? load_once_int(A.col + ((e) + t * TOGETHER)) : 0;
#define LOAD_VALUES(COUNT, x, e, end)                                                                        \
    _Pragma("unroll") for (int t = 0; t < COUNT; t++) x[t] =                                                 \
        (e) + t * TOGETHER < (end) ? entry_value(&A, (e) + t * TOGETHER) : REAL(0.0);
#ifdef LONG
#define BATCH 8
#else
#define BATCH 1
#endif

/* The products and the scatter of a thread's entries from e on that are not in registers. */
DEVICE_FN void dot_entries(real *sum, index_t e, index_t end, struct entries A, int lane,
                           const struct gathered *from) {
    for (; e < end; e += BATCH * TOGETHER) {
        int c[BATCH];
        real x[BATCH];
        LOAD_COLUMNS(BATCH, c, e, end)
        LOAD_VALUES(BATCH, x, e, end)
#pragma unroll
        for (int t = 0; t < BATCH; t++) add_products(sum, e + t * TOGETHER < end, c[t], x[t], lane, from);
    }
}

DEVICE_FN void scatter_entries(const real *f, index_t e, index_t end, struct entries A, int lane,
                               const struct summed *to) {
    for (; e < end; e += BATCH * TOGETHER) {
        int c[BATCH];
        real x[BATCH];
        LOAD_COLUMNS(BATCH, c, e, end)
        LOAD_VALUES(BATCH, x, e, end)
#pragma unroll
        for (int t = 0; t < BATCH; t++)
            if (e + t * TOGETHER < end) entry_scatter(f, c[t], x[t], lane, to);
    }
}

/* The sums of a vector's threads, column by column. Each thread gets those that it asks for: all, or those of
 * its own columns, in every place that is AMONG_OWN the same, where nothing but that is needed and shuffles
 * can do it. */
DEVICE_FN void column_sums(real *p, real *sum, int lane, LOCAL_PTR real *scratch) {
#if K > 1 && defined(SHUFFLES) && VS <= 32 && !defined(MAP)
    const unsigned warp = BS < 32 ? (1u << (BS & 31)) - 1 : 0xffffffffu;
#pragma unroll
    for (int step = VS / 2; step >= LANES; step /= 2) EACH_OWN(i) sum[i] += shuffle_xor(warp, sum[i], step);
#pragma unroll
    for (int j = 0; j < K; j++) p[j] = sum[AMONG_OWN(j)];
#else
#pragma unroll
    for (int j = 0; j < K; j++) p[j] = j == OWN(lane, AMONG_OWN(j)) ? sum[AMONG_OWN(j)] : REAL(0.0);
    group_sums(p, K, scratch);
#endif
}

/* p[column]. On a GPU p is in registers, which have no computed numbers; PoCL 3.1 takes such a choice for its
 * last. */
DEVICE_FN real pick(const real *p, int column) {
#ifdef SHUFFLES
    real x = p[0];
#pragma unroll
    for (int j = 1; j < K; j++)
        if (j == column) x = p[j];
    return x;
#else
    return p[column];
#endif
}

#if PLAIN
/* The thread's own columns of a row of X y. */
DEVICE_FN void write_own(__global real *out, const real *p, __global const real *z, real alpha, real beta,
                         long row, int lane, int first, int k) {
    EACH_OWN(i)
    if (first + OWN(lane, i) < k)
        write_plain(out, pick(p, OWN(lane, i)), z, alpha, beta, (index_t)row * k + first + OWN(lane, i));
}
#else
/* alpha times a row's factors, of which these are the thread's own; kept if there are `factors` and the
 * thread is to write them. */
DEVICE_FN void scale_own(real *sum, const real *p, __global real *factors, real alpha, long row, int lane,
                         bool writes) {
    EACH_OWN(i) {
        sum[i] = alpha * pick(p, OWN(lane, i));
        if (factors && writes) factors[(index_t)row * K + OWN(lane, i)] = sum[i];
    }
}
#endif

/* The element of y that belongs to element i of what is near. */
DEVICE_FN real hot_y(int i, const struct gathered *from) {
#ifdef CODED
    return from->hot[i];
#else
    return i % K < from->columns ? from->y[(index_t)(i / K) * from->k + from->first + i % K] : REAL(0.0);
#endif
}

/* Finds what is on chip at the beginning: no sums, and y of popular columns. */
DEVICE_FN void fill_chip(const struct summed *to, const struct gathered *from) {
    for (int i = (int)get_local_id(0); i < to->near * K; i += BS) to->chip[i] = REAL(0.0);
    for (int i = (int)get_local_id(0); i < from->near * K; i += BS) from->chip[i] = hot_y(i, from);
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Sums that gathered on chip go to memory. */
DEVICE_FN void flush_chip(const struct summed *to) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = (int)get_local_id(0); i < to->near * K; i += BS) {
        if (to->chip[i] == REAL(0.0)) continue;
#ifdef CODED
        atomic_add_global(to->hot + i, to->chip[i]);
#else
        atomic_add_global(to->w + ((index_t)(i / K) * to->k + to->first + i % K), to->chip[i]);
#endif
    }
}

#ifdef KILN_CUDA
#define SCRATCH(threads) (VS > 32 ? K * (threads) / 32 : 1)
#else
#define SCRATCH(threads) (K * (threads))
#endif

#ifndef LONG
/* Waiting for memory is the most of a row's time. So it is found a row ahead where a row lies. Where y is
 * gathered from the cache, the columns that say from where are asked for a row ahead, too, which costs
 * registers: elsewhere it makes passes slower. */
#if defined(CODED) && K == 1 && (DOTS || SUMS)
#define COLUMNS_AHEAD 1
#else
#define COLUMNS_AHEAD 0
#endif
#define FIND_ROW(number)                                                                                     \
    if ((number) < last) {                                                                                   \
        found = list ? list[list_at + (number)] : (number);                                                  \
        found_begin = (index_t)row_start[found];                                                             \
        found_end = (index_t)row_start[found + 1];                                                           \
    }
#if !DOTS && !SUMS
#define TAKE_ROW next_begin = next_end = 0;
#else
#define TAKE_ROW                                                                                             \
    next_here = next_here && found_end - found_begin <= longest;                                             \
    next_begin = found_begin;                                                                                \
    next_end = next_here ? found_end : found_begin;
#endif
#define NEXT_ROW(number)                                                                                     \
    next = found;                                                                                            \
    next_here = (number) < last;                                                                             \
    TAKE_ROW
#if DOTS
/* Q entries of a row that have been loaded, and those behind them. */
DEVICE_FN void row_products(real *sum, const int *c, const real *x, index_t at, index_t end, struct entries A,
                            int lane, const struct gathered *from) {
#pragma unroll
    for (int t = 0; t < Q; t++) add_products(sum, at + t * TOGETHER < end, c[t], x[t], lane, from);
    dot_entries(sum, at + Q * TOGETHER, end, A, lane, from);
}
#endif

#if SUMS
DEVICE_FN void row_scatter(const real *factor, const int *c, const real *x, index_t at, index_t end,
                           struct entries A, int lane, const struct summed *to) {
#pragma unroll
    for (int t = 0; t < Q; t++)
        if (at + t * TOGETHER < end) entry_scatter(factor, c[t], x[t], lane, to);
    scatter_entries(factor, at + Q * TOGETHER, end, A, lane, to);
}
#endif

/* out holds beta z already, unless PLAIN. */
__kernel GROUP_OF(BS) void mmchain_csr(PARAMETERS(mmchain_csr) MAP_PARAMETERS LOCAL_PARAMETER(chip)) {
    LOCAL real scratch[SCRATCH(BS)];
    const int id = (int)get_local_id(0), place = id % VS, vector = id / VS, lane = place % LANES,
              slot = place / LANES;
#ifdef BANDS
    const long share = ((rows - 1) / ((long)get_num_groups(0) * NV) + 1) * NV,
               row_first = (long)get_group_id(0) * share;
    const long last = row_first + share < rows ? row_first + share : rows, stride = NV;
#else
    const long row_first = (long)get_group_id(0) * NV, last = rows, stride = (long)get_num_groups(0) * NV;
#endif
    long found = 0, next;
    index_t found_begin = 0, found_end = 0, next_begin, next_end;
    bool next_here;
    LOCAL_BEGIN(chip)
    const struct entries A = {col, X, same};
    const struct gathered from = {y, y_hot, chip + chip_w * K, chip_y, y_k, y_first, k - first};
    const struct summed to = {out, w_hot, chip, chip_w, k, first};
    MAP_BEGIN
    fill_chip(&to, &from);

    long at = row_first + vector;
    FIND_ROW(at)
#if COLUMNS_AHEAD
    int next_c[Q];
    NEXT_ROW(at)
    LOAD_COLUMNS(Q, next_c, next_begin + slot, next_end)
    FIND_ROW(at + stride)
#endif
    for (long row0 = row_first; row0 < last; row0 += stride, at += stride) {
#if !COLUMNS_AHEAD
        NEXT_ROW(at)
#endif
        const long row = next;
        const bool here = next_here;
        const index_t begin = next_begin, end = next_end;
        real p[K], sum[W];
#if DOTS || SUMS
        int c[Q];
        real x[Q];
#endif
        EACH_OWN(i) sum[i] = slot == 0 && here && dots ? dots[(index_t)row * K + OWN(lane, i)] : REAL(0.0);
#if COLUMNS_AHEAD
#pragma unroll
        for (int t = 0; t < Q; t++) c[t] = next_c[t];
        LOAD_VALUES(Q, x, begin + slot, end)
        NEXT_ROW(at + stride)
        LOAD_COLUMNS(Q, next_c, next_begin + slot, next_end)
        FIND_ROW(at + 2 * stride)
#else
#if DOTS || SUMS
        LOAD_COLUMNS(Q, c, begin + slot, end)
        LOAD_VALUES(Q, x, begin + slot, end)
#endif
        FIND_ROW(at + stride)
#endif
#if DOTS
        row_products(sum, c, x, begin + slot, end, A, lane, &from);
#endif
#if FUSED || PLAIN
        column_sums(p, sum, lane, scratch);
#endif
        if (here) {
#if PLAIN
            if (slot == 0) write_own(out, p, z, alpha, beta, row, lane, first, k);
#else
            row_factors(p, v, y, (index_t)row, first, k, v_cols MAP_ARGUMENTS(place == 0));
            scale_own(sum, p, factors, alpha, row, lane, slot == 0);
#endif
        }
#if SUMS
        row_scatter(sum, c, x, begin + slot, end, A, lane, &to);
#endif
    }
    flush_chip(&to);
    MAP_END
}

#else
/* Long rows, a group for each segment of SEGMENT entries: LONG 1 leaves the dot products of the segments in
 * `partials`, LONG 2 adds those of a row up and goes on as above. */
__kernel GROUP_OF(BS) void mmchain_csr_long(PARAMETERS(mmchain_csr_long) MAP_PARAMETERS) {
    LOCAL real scratch[SCRATCH(BS)];
    const int id = (int)get_local_id(0), lane = id % LANES, slot = id / LANES;
    const long segment = (long)get_group_id(0);
    const long row = segment_row[segment];
    const int number = segment_number[segment];
#if LONG == 2 && PLAIN
    if (number > 0) return; /* the row's first segment writes its sum */
#endif
    const index_t row_begin = (index_t)row_start[row], row_end = (index_t)row_start[row + 1];
    const index_t begin = row_begin + (index_t)number * SEGMENT;
    const index_t end = row_end - begin < SEGMENT ? row_end : begin + SEGMENT;
    const struct entries A = {col, X, same};
    real p[K], sum[W];
    EACH_OWN(i) sum[i] = REAL(0.0);
#if LONG == 1
    const struct gathered from = {y, y_hot, (LOCAL_PTR real *)0, 0, y_k, y_first, k - first};
    dot_entries(sum, begin + slot, end, A, lane, &from);
    column_sums(p, sum, lane, scratch);
    EACH_OWN(i) if (slot == 0) partials[segment * K + OWN(lane, i)] = pick(p, OWN(lane, i));
#else
    MAP_BEGIN
#if FUSED || PLAIN
    const int segments = (int)((row_end - row_begin + SEGMENT - 1) / SEGMENT);
    EACH_OWN(i) {
        if (slot == 0 && dots) sum[i] = dots[(index_t)row * K + OWN(lane, i)];
        for (int s = slot; s < segments; s += TOGETHER)
            sum[i] += partials[(segment - number + s) * K + OWN(lane, i)];
    }
    column_sums(p, sum, lane, scratch);
#endif
#if PLAIN
    if (slot == 0) write_own(out, p, z, alpha, beta, row, lane, first, k);
#else
    row_factors(p, v, y, (index_t)row, first, k, v_cols MAP_ARGUMENTS(number == 0 && id == 0));
    scale_own(sum, p, factors, alpha, row, lane, number == 0 && slot == 0);
#if SUMS
    const struct summed to = {out, w_hot, (LOCAL_PTR real *)0, 0, k, first};
    scatter_entries(sum, begin + slot, end, A, lane, &to);
#endif
#endif
    MAP_END
#endif
}
#endif

/* The variants that differ in text, as the tests build them. */
// build CSR KIND=0 DOTS=2 SUMS=2 VS=8 BS=1024 Q=4 W=1 R=1 K=1 ALL_NEAR
// build CSR KIND=0 DOTS=2 SUMS=2 VS=8 BS=1024 Q=4 W=1 R=1 K=1 CODED
// build CSR KIND=0 DOTS=2 SUMS=2 VS=32 BS=1024 Q=4 W=1 R=1 K=1 CODED
// build CSR KIND=0 DOTS=2 SUMS=2 VS=16 BS=1024 Q=6 W=4 R=1 K=8 CODED INDEX64
// build CSR KIND=0 DOTS=2 SUMS=0 VS=4 BS=64 Q=6 W=1 R=1 K=1 CODED
// build CSR KIND=0 DOTS=2 SUMS=2 VS=8 BS=512 Q=4 W=1 R=1 K=1 CODED MAP=2 LOSS=2 FAMILY=0 LINK=0
// build CSR KIND=0 DOTS=2 SUMS=2 VS=8 BS=1024 Q=6 W=1 R=1 K=1 CODED MAP=0
// build CSR KIND=1 DOTS=2 SUMS=0 VS=4 BS=1024 Q=4 W=1 R=1 K=1 CODED
// build CSR KIND=0 DOTS=0 SUMS=0 VS=1 BS=1024 Q=1 W=1 R=1 K=1
// build CSR KIND=1 DOTS=2 SUMS=0 VS=1 BS=1024 Q=4 W=1 R=1 K=1 START32
// build CSR KIND=1 DOTS=2 SUMS=0 VS=1 BS=1024 Q=4 W=1 R=1 K=1 START32 BANDS SQUARED
// build CSR KIND=1 DOTS=2 SUMS=0 VS=8 BS=1024 Q=4 W=4 R=1 K=8 START32 BANDS INDEX64
// build CSR KIND=1 DOTS=2 SUMS=0 VS=8 BS=64 Q=1 W=1 R=1 K=4
// build CSR KIND=2 DOTS=0 SUMS=2 VS=1 BS=1024 Q=3 W=1 R=1 K=1
// build CSR KIND=2 DOTS=0 SUMS=2 VS=2 BS=256 Q=2 W=1 R=1 K=2 CODED
// build CSR KIND=3 DOTS=0 SUMS=2 VS=16 BS=1024 Q=4 W=1 R=1 K=1
// build CSR KIND=0 DOTS=2 SUMS=2 VS=256 BS=256 Q=4 W=1 R=1 K=1 CODED LONG=1 SEGMENT=2048
// build CSR KIND=0 DOTS=2 SUMS=2 VS=256 BS=256 Q=4 W=1 R=1 K=1 CODED LONG=2 SEGMENT=2048
// build CSR KIND=1 DOTS=2 SUMS=0 VS=256 BS=256 Q=4 W=1 R=1 K=1 START32 LONG=2 SEGMENT=2048
// build CSR KIND=0 DOTS=2 SUMS=2 VS=256 BS=256 Q=1 W=4 R=1 K=8 LONG=2 SEGMENT=2048 MAP=1 INDEX64
// build CSR KIND=0 DOTS=2 SUMS=2 VS=32 BS=256 Q=1 W=2 R=1 K=8 INDEX64 MAP=1
// build CSR KIND=0 DOTS=1 SUMS=1 VS=8 BS=1024 Q=4 W=1 R=1 K=1 CODED
// build CSR KIND=1 DOTS=1 SUMS=0 VS=256 BS=256 Q=4 W=1 R=1 K=1 CODED LONG=1 SEGMENT=2048
// For columns that are not coded, with the most entries a thread (rows_defines of stage.c).
// pack {f32|f64} CSR {KIND=0 DOTS=2 SUMS=2|KIND=1 DOTS=2 SUMS=0} VS={1|2|4|8|16|32} BS={512|1024}
//      Q=6 W=1 R=1 K=1 {|ALL_NEAR}
// pack {f32|f64} CSR KIND={2|3} DOTS=0 SUMS=2 VS={1|2|4|8|16|32} BS={512|1024} Q=6 W=1 R=1 K=1
// pack {f32|f64} CSR KIND=0 DOTS=2 SUMS=2 VS={1|2|4|8|16|32} BS={512|1024} Q=6 W=1 R=1 K=1
//      {|ALL_NEAR} MAP=0
// pack {f32|f64} CSR KIND=0 DOTS=2 SUMS=2 VS={1|2|4|8|16|32} BS=512 Q=6 W=1 R=1 K=1
//      {|ALL_NEAR} MAP=2 LOSS={{1|2|4} FAMILY=0 LINK=0|6 FAMILY=2 LINK=2}
#endif
