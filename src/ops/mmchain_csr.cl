/* GPU body of the passes over a sparse X: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * A vector of VS adjacent threads shares a row (Ashari et al., PPoPP 2015). A thread keeps its first Q entries of the row in
 * registers between the dot product with y and the scatter into w, so that X is read from memory once by construction.
 *
 * Where w gathers decides the speed, since sums to one address queue. Columns are counted from the most popular one on, as
 * far as that is known: with CODED, col holds ~slot for the popular columns (ops/layout.h), whose y and w lie together in
 * y_hot and w_hot, K elements a slot. The first chip_w of them gather in local memory, the others in w_hot, which is small
 * enough for the second cache level; the first chip_y elements of y are in local memory, too. Without CODED the numbers of
 * the columns stand for their popularity, and all of w is in local memory where it fits. Columns that are not coded are
 * rare: they are scattered here one by one, or (rare_too = 0) not at all, but by what comes afterwards, a pass over the
 * transpose or over tiles, for which the rows' factors are stored. What tiles add to the rows' dot products, `dots`, was
 * found before. With TILED they hold all entries: only the middle step is left to do here.
 *
 * dialect/pass.h names the other defines; LONG selects the kernels for the rows that are too long for one vector. */

#ifdef START32
typedef int start_t; /* of the transpose of a layout */
#else
typedef long start_t;
#endif

/* Without values, all of them are `same`. */
DEVICE_FN real entry_value(__global const real *X, real same, index_t e) {
    const real x = X ? load_once(X + e) : same;
#if SQUARES || defined(SQUARED)
    return x * x;
#else
    return x;
#endif
}

/* p += x * (row c of y), for `columns` columns from y_first of y_k on. */
DEVICE_FN void add_product(real *p, int c, real x, __global const real *y, __global const real *y_hot, LOCAL_PTR real *chip,
                           int chip_y, int rare_too, int y_k, int y_first, int columns) {
#ifdef CODED
    if (c < 0) {
        const int at = ~c * K;
#pragma unroll
        for (int j = 0; j < K; j++) p[j] += x * (~c < chip_y ? chip[at + j] : y_hot[at + j]);
        return;
    }
#else
    if (c < chip_y) {
#pragma unroll
        for (int j = 0; j < K; j++) p[j] += x * chip[c * K + j];
        return;
    }
#endif
    if (!rare_too) return;
    const index_t at = (index_t)c * y_k + y_first;
#pragma unroll
    for (int j = 0; j < K; j++)
        if (j < columns) p[j] += x * load_rare(y + at + j);
}

/* Row c of w += p * x. */
DEVICE_FN void add_outer(const real *p, int c, real x, __global real *out, __global real *w_hot, LOCAL_PTR real *chip,
                         int chip_w, int rare_too, int k, int first) {
#ifdef CODED
    const int slot = ~c;
    const bool rare = c >= 0;
#else
    const int slot = c;
    const bool rare = c >= chip_w;
#endif
    if (rare) {
        if (!rare_too) return;
#pragma unroll
        for (int j = 0; j < K; j++)
            if (first + j < k) atomic_add_global(out + ((index_t)c * k + first + j), p[j] * x);
        return;
    }
#pragma unroll
    for (int j = 0; j < K; j++) {
        if (first + j >= k) continue;
        if (slot < chip_w)
            atomic_add_local(chip + (slot * K + j), p[j] * x);
        else
            atomic_add_global(w_hot + (slot * K + j), p[j] * x);
    }
}

/* The element of y that belongs to element i of y_hot. */
DEVICE_FN real hot_y(int i, __global const real *y, __global const real *y_hot, int y_k, int y_first, int columns) {
#ifdef CODED
    return y_hot[i];
#else
    return i % K < columns ? y[(index_t)(i / K) * y_k + y_first + i % K] : REAL(0.0);
#endif
}

/* Sums that gathered on chip go to memory. */
DEVICE_FN void flush_chip(LOCAL_PTR real *chip, int chip_w, __global real *out, __global real *w_hot, int k, int first) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = (int)get_local_id(0); i < chip_w * K; i += BS) {
        if (chip[i] == REAL(0.0)) continue;
#ifdef CODED
        atomic_add_global(w_hot + i, chip[i]);
#else
        atomic_add_global(out + ((index_t)(i / K) * k + first + i % K), chip[i]);
#endif
    }
}

#ifdef KILN_CUDA
#define SCRATCH(threads) (VS > 32 ? K * (threads) / 32 : 1)
#else
#define SCRATCH(threads) (K * (threads))
#endif

#ifndef LONG
/* The rows of X, or those in `list`, but for rows longer than `longest`. out holds beta z already, unless PLAIN. */
__kernel GROUP_OF(BS) void mmchain_csr(__global real *out, __global const start_t *row_start, __global const int *col,
                                       __global const real *X, real same, __global const real *v,
                                       __global const real *y, __global const real *z, real alpha, real beta, long rows, int k, int first,
                                       int v_cols, __global const real *y_hot, __global real *w_hot,
                                       __global const real *dots, __global real *factors, int rare_too,
                                       __global const int *list, int longest, int y_k, int y_first, int chip_w,
                                       int chip_y MAP_PARAMETERS LOCAL_PARAMETER(chip)) {
    LOCAL real scratch[SCRATCH(BS)];
    const int id = (int)get_local_id(0), lane = id % VS, vector = id / VS;
    const long stride = (long)get_num_groups(0) * NV;
    LOCAL_BEGIN(chip)
    LOCAL_PTR real *const chip_ys = chip + chip_w * K;
    MAP_BEGIN
    for (int i = id; i < chip_w * K; i += BS) chip[i] = REAL(0.0);
    for (int i = id; i < chip_y * K; i += BS) chip_ys[i] = hot_y(i, y, y_hot, y_k, y_first, k - first);
    barrier(CLK_LOCAL_MEM_FENCE);

    /* Where a row lies is fetched while the one before it is worked on. */
    long at = (long)get_group_id(0) * NV + vector, next = 0;
    index_t next_begin = 0, next_end = 0;
    if (at < rows) {
        next = list ? list[at] : at;
        next_begin = (index_t)row_start[next];
        next_end = (index_t)row_start[next + 1];
    }
    for (long row0 = (long)get_group_id(0) * NV; row0 < rows; row0 += stride, at += stride) {
        const long row = next;
#ifdef TILED
        const index_t begin = 0, length = 0;
        const bool here = at < rows;
#else
        const index_t begin = next_begin, whole = next_end - next_begin;
        const bool here = at < rows && whole <= longest;
        const index_t length = here ? whole : 0;
#endif
        int c[Q];
        real x[Q], p[K];
#pragma unroll
        for (int t = 0; t < Q; t++) {
            const bool in = lane + t * VS < length;
            c[t] = in ? load_once_int(col + (begin + lane + t * VS)) : 0;
            x[t] = in ? entry_value(X, same, begin + lane + t * VS) : REAL(0.0);
        }
        if (at + stride < rows) {
            next = list ? list[at + stride] : at + stride;
            next_begin = (index_t)row_start[next];
            next_end = (index_t)row_start[next + 1];
        }
#pragma unroll
        for (int j = 0; j < K; j++) p[j] = lane == 0 && here && dots ? dots[(index_t)row * K + j] : REAL(0.0);
#if FUSED || PLAIN
#pragma unroll
        for (int t = 0; t < Q; t++)
            if (lane + t * VS < length) add_product(p, c[t], x[t], y, y_hot, chip_ys, chip_y, !dots, y_k, y_first, k - first);
        for (index_t e = begin + lane + Q * VS; e < begin + length; e += VS)
            add_product(p, col[e], entry_value(X, same, e), y, y_hot, chip_ys, chip_y, !dots, y_k, y_first, k - first);
        group_sums(p, K, scratch);
#endif
        if (here) {
#if PLAIN
#pragma unroll
            for (int j = 0; j < K; j++)
                if (lane == 0 && first + j < k) write_plain(out, p[j], z, alpha, beta, (index_t)row * k + first + j);
#else
            row_factors(p, v, y, (index_t)row, first, k, v_cols MAP_ARGUMENTS(lane == 0));
#pragma unroll
            for (int j = 0; j < K; j++) {
                p[j] *= alpha;
                if (factors && lane == 0) factors[(index_t)row * K + j] = p[j];
            }
#endif
        }
#if !PLAIN && !defined(FACTORS_ONLY)
#pragma unroll
        for (int t = 0; t < Q; t++)
            if (lane + t * VS < length) add_outer(p, c[t], x[t], out, w_hot, chip, chip_w, rare_too, k, first);
        for (index_t e = begin + lane + Q * VS; e < begin + length; e += VS)
            add_outer(p, col[e], entry_value(X, same, e), out, w_hot, chip, chip_w, rare_too, k, first);
#endif
    }
    flush_chip(chip, chip_w, out, w_hot, k, first);
    MAP_END
}

#else
/* Long rows, a group for each segment of SEGMENT entries: LONG 1 leaves the dot products of the segments in `partials`, LONG
 * 2 adds those of a row up, in order, and goes on as above. */
__kernel GROUP_OF(BS) void mmchain_csr_long(__global real *out, __global const start_t *row_start,
                                            __global const int *col, __global const real *X, real same, __global const real *v,
                                            __global const real *y, __global const real *z, real alpha, real beta, int k,
                                            int first, int v_cols, __global const real *y_hot, __global real *w_hot,
                                            __global const real *dots, __global real *factors, int rare_too, int y_k, int y_first,
                                            __global real *partials,
                                            __global const int *segment_row,
                                            __global const int *segment_number MAP_PARAMETERS) {
    LOCAL real scratch[SCRATCH(BS)];
    const int id = (int)get_local_id(0);
    const long segment = (long)get_group_id(0);
    const long row = segment_row[segment];
    const int number = segment_number[segment];
    const index_t row_begin = (index_t)row_start[row], row_end = (index_t)row_start[row + 1];
    const index_t begin = row_begin + (index_t)number * SEGMENT;
    const index_t end = row_end - begin < SEGMENT ? row_end : begin + SEGMENT;
    real p[K];
#pragma unroll
    for (int j = 0; j < K; j++) p[j] = REAL(0.0);
#if LONG == 1
    for (index_t e = begin + id; e < end; e += BS)
        add_product(p, col[e], entry_value(X, same, e), y, y_hot, (LOCAL_PTR real *)0, 0, !dots, y_k, y_first, k - first);
    group_sums(p, K, scratch);
    if (id == 0)
        for (int j = 0; j < K; j++) partials[segment * K + j] = p[j];
#else
    MAP_BEGIN
#if FUSED || PLAIN
    const int segments = (int)((row_end - row_begin + SEGMENT - 1) / SEGMENT);
    if (dots)
#pragma unroll
        for (int j = 0; j < K; j++) p[j] = dots[(index_t)row * K + j];
    for (int s = 0; s < segments; s++)
#pragma unroll
        for (int j = 0; j < K; j++) p[j] += partials[(segment - number + s) * K + j];
#endif
#if PLAIN
    for (int j = 0; j < K; j++)
        if (number == 0 && id == 0 && first + j < k)
            write_plain(out, p[j], z, alpha, beta, (index_t)row * k + first + j);
#else
    row_factors(p, v, y, (index_t)row, first, k, v_cols MAP_ARGUMENTS(number == 0 && id == 0));
#pragma unroll
    for (int j = 0; j < K; j++) {
        p[j] *= alpha;
        if (factors && number == 0 && id == 0) factors[(index_t)row * K + j] = p[j];
    }
#ifndef FACTORS_ONLY
    for (index_t e = begin + id; e < end; e += BS)
        add_outer(p, col[e], entry_value(X, same, e), out, w_hot, (LOCAL_PTR real *)0, 0, rare_too, k, first);
#endif
#endif
    MAP_END
#endif
}
#endif
