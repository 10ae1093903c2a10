/* GPU body of kiln_assign: the nearest centre of each row without a matrix of distances. Sums are in
 * assign_sums.cl.
 *
 * Dense rows: a group takes BR rows against BC centres at a time, a thread TR x TC of their products in
 * registers, from slabs
 * of columns in local memory; scores h - x.c, h = ||c||^2 / 2, go straight into the least, the second least
 * and the number of the least. Of few columns a thread has whole rows (FEW). Rows for which rounding leaves
 * the nearest in doubt (assign.cpu.h has the bound) go on a list, which the first kernel takes AGAIN: it
 * measures, by squared differences in `wide`, whatever scores at most the row's limit.
 * Sparse rows: a group a row, whose threads share the centres, column by column of the transposed centres. */

#define ARGUMENTS_assign_halves(FIRST, NEXT)                                                                 \
    FIRST(SPACE, real, halves)                                                                               \
    NEXT(SPACE, int, state)                                                                                  \
    NEXT(IN, real, C)                                                                                        \
    NEXT(SPACE, real, transposed)                                                                            \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, n)

#define ARGUMENTS_assign_few(FIRST, NEXT) ARGUMENTS_nearest(FIRST, NEXT)

#define ARGUMENTS_assign_dense(FIRST, NEXT)                                                                  \
    ARGUMENTS_nearest(FIRST, NEXT)                                                                           \
    NEXT(VALUE, int, n)

#define ARGUMENTS_assign_sparse(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(TABLE, real, transposed)                                                                            \
    NEXT(IN, real, C)                                                                                        \
    NEXT(TABLE, real, halves)                                                                                \
    NEXT(TABLE, int, state)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)

#define ARGUMENTS_assign_rows(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, labels)                                                                                 \
    NEXT(OUT, real, distances)                                                                               \
    NEXT(SPACE, int, payload)                                                                                \
    NEXT(TABLE, int, found)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, long, first)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/screen.h"

/* UNIT: half a unit in the last place of 1. HALVES: how often ||c||^2 counts among a score's roundings; of
 * f64 h is a sum of n. */
#ifdef REAL_F64
#define REAL4 double4
#define HUGE_SQUARE 1.1235582092889474e307 /* 2^1020 */
#define UNIT 1.1102230246251565e-16
#define HALVES(n) ((real)(1 + (n)))
#else
#define REAL4 float4
#define HUGE_SQUARE 4.2535295865117308e37f /* 2^125 */
#define UNIT 5.9604644775390625e-8f
#define HALVES(n) REAL(1.0)
#endif

/* `wide` may be float, of which twice the digits are 48 bits. */
#define APART ((wide)1.52587890625e-5) /* 2^-16 */

DEVICE_FN wide squared(wide x) {
    return x * x;
}

/* ||x - c||^2 of a sparse row: squared differences where it has entries,
 * and what is left of ||c||^2 without these columns, in twice the digits of `wide` (assign.cpu.h). */
DEVICE_FN wide distance_apart(__global const real *X, __global const int *col, long begin, long end,
                              __global const real *centre, int n) {
    struct twice left = {0, 0};
    wide distance = 0;
    for (int j = 0; j < n; j++) add_square(&left, (wide)1, (wide)centre[j]);
    for (long e = begin; e < end; e++) {
        const wide there = (wide)centre[col[e]];
        add_square(&left, (wide)-1, there);
        distance += squared((wide)X[e] - there);
    }
    return distance + fmax(left.high + left.low, (wide)0);
}

/* The same column by column, for distances that decide and are below APART of ||c||^2 (assign.cpu.h). */
DEVICE_FN wide distance_whole(__global const real *X, __global const int *col, long begin, long end,
                              __global const real *centre, int n) {
    long next = begin;
    bool ascending = true;
    wide distance = 0;
    for (long e = begin + 1; e < end; e++) ascending = ascending && col[e] > col[e - 1];
    for (int j = 0; j < n; j++) {
        long e = ascending ? next : begin;
        while (!ascending && e < end && col[e] != j) e++;
        const bool stored = e < end && col[e] == j;
        if (stored) next++;
        distance += squared((stored ? (wide)X[e] : (wide)0) - (wide)centre[j]);
    }
    return distance;
}

/* halves: how often ||c||^2 counts among a score's roundings. */
DEVICE_FN real margin_of(real square, real best, int entries, real halves) {
    const real norm = sqrt(square), inside = square + 2 * best;
    const real reach = norm + sqrt(inside > 0 ? inside : REAL(0.0));
    return 3 * UNIT * (((real)entries + 3) * norm * reach + halves * reach * reach);
}

/* Holds what is known of the scores of a row. */
struct nearest {
    real best, second;
    int index;
};

DEVICE_FN void nearest_step(struct nearest *to, real score, int index) {
    const bool less = score < to->best;
    const real larger = less ? to->best : score;
    to->second = larger < to->second ? larger : to->second;
    to->best = less ? score : to->best;
    to->index = less ? index : to->index;
}

DEVICE_FN void nearest_join(struct nearest *to, real best, real second, int index) {
    const bool less = best < to->best || (best == to->best && index < to->index);
    const real larger = less ? to->best : best;
    if (larger < to->second) to->second = larger;
    if (second < to->second) to->second = second;
    if (less) to->best = best, to->index = index;
}

DEVICE_FN void load_four(real *to, LOCAL_PTR const real *from) {
    const REAL4 all = *(LOCAL_PTR const REAL4 *)from;
    to[0] = all.x;
    to[1] = all.y;
    to[2] = all.z;
    to[3] = all.w;
}

/* A row's number, and, where rounding leaves it in doubt, the row and the highest score of a centre that may
 * be nearest. */
DEVICE_FN void settle(__global int *found, __global int *doubtful, __global real *limits, __global int *state,
                      long row, const struct nearest *all, real square, int n, real halves) {
    found[row] = all->index;
    const real margin = margin_of(square, all->best, n, halves);
    const bool huge = state[1] || !(square < HUGE_SQUARE);
    if (!huge && all->second - all->best > margin) return;
    const int place = count_up(&state[0]);
    doubtful[place] = (int)row;
    limits[place] = huge ? REAL_INFINITY : all->best + margin;
}

#ifdef PREPARE
/* Half the squared norms of the centres; the transposed centres where they are wanted. */
__kernel GROUP_OF(64) void assign_halves(PARAMETERS(assign_halves)) {
    for (int c = (int)get_global_id(0); c < k; c += (int)get_global_size(0)) {
        wide square = 0;
        for (int j = 0; j < n; j++) {
            const real value = C[(long)c * n + j];
            square += squared((wide)value);
            if (transposed) transposed[(long)j * k + c] = value;
        }
        halves[c] = (real)(square / 2);
        if (!(square < HUGE_SQUARE)) state[1] = 1;
    }
}
#endif

#ifdef WANTED
#define DOWN (128 / ACROSS)

/* A thread's part of the distance of a dense row, or all of a sparse row's. */
DEVICE_FN real distance_of(long row, int label, __global const real *X, __global const long *row_start,
                           __global const int *col, __global const real *C, int n, int lane) {
    __global const real *centre = C + (long)label * n;
    if (!row_start) {
        real sum = 0;
        for (int j = lane; j < n; j += ACROSS) {
            const real apart = X[row * n + j] - centre[j];
            sum += apart * apart;
        }
        return sum;
    }
    return (real)distance_apart(X, col, row_start[row], row_start[row + 1], centre, n);
}

/* Writes what is wanted of each row, which ACROSS threads share. */
__kernel GROUP_OF(128) void assign_rows(PARAMETERS(assign_rows)) {
    LOCAL real shared[128];
    const int id = (int)get_local_id(0), lane = id % ACROSS;
    for (long top = (long)get_group_id(0) * DOWN; top < rows; top += (long)get_num_groups(0) * DOWN) {
        const long row = top + id / ACROSS;
        const int label = row < rows ? found[row] : 0;
        real distance = 0;
        if (distances && row < rows) distance = distance_of(row, label, X, row_start, col, C, n, lane);
        if (ACROSS > 1) {
            barrier(CLK_LOCAL_MEM_FENCE);
            shared[id] = distance;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int r = 1; lane == 0 && r < ACROSS; r++) distance += shared[id + r];
        }
        if (lane == 0 && row < rows) {
            const bool better = !distances || first == 0 || distance < distances[row];
            if (distances && better) distances[row] = distance;
            if (labels && better) labels[row] = (real)(first + label);
            if (payload) payload[row] = (int)row;
        }
    }
}
#endif

#ifdef DENSE
#define GROUP (GR * GC)
#define BR (TR * GR)
#define BC (TC * GC)
#define PITCH_R (BR + 4)
#define PITCH_C (BC + 4)
#define EACH_ROW(i) _Pragma("unroll") for (int i = 0; i < TR; i++)
#define EACH_CENTRE(i) _Pragma("unroll") for (int i = 0; i < TC; i++)
/* A thread has every fourth four of the rows and centres of a tile, so that threads side by side read side by
 * side. */
#define OF_THREAD(i, at, across) ((i) / 4 * (across)*4 + (at)*4 + (i) % 4)

#ifdef AGAIN
#define ROWS_OF_TILE(r) ((r) < count ? (long)doubtful[r] : -1)
#else
#define ROWS_OF_TILE(r) ((r) < count ? (r) : -1)
#endif

/* SLAB columns of COUNT rows of `from`, the first of them `first`, into local memory, column by column. */
#define LOAD_SLAB(to, PITCH, COUNT, from, row_of)                                                            \
    for (int e = id; e < (COUNT)*SLAB; e += GROUP) {                                                         \
        const int r = e / SLAB, s = e % SLAB;                                                                \
        const long row = row_of;                                                                             \
        to[s * (PITCH) + r] = row >= 0 && slab + s < n ? from[row * n + slab + s] : REAL(0.0);               \
    }

/* A tile: `count` rows or doubtful rows from `top` on, and what is known of a thread's rows. */
struct tile {
    __global const int *doubtful;
    __global const real *X, *C;
    LOCAL_PTR real *xs, *cs;
    long top, count;
    int n, k;
};

#ifdef AGAIN
typedef wide measured;
struct of_row {
    measured best;
    real limit;
    int index;
};
#else
typedef real measured;
struct of_row {
    struct nearest all;
    real square;
};
#endif

/* The thread's products of its rows with its centres from `first` on. */
DEVICE_FN void dense_products(real (*sum)[TC], struct of_row *mine, const struct tile *of, int first) {
    const int id = (int)get_local_id(0), at_row = id / GC, at_centre = id % GC, n = of->n, k = of->k;
    const long top = of->top, count = of->count;
    __global const int *const doubtful = of->doubtful;
    (void)doubtful, (void)mine;
    EACH_ROW(i) EACH_CENTRE(j) sum[i][j] = 0;
    for (int slab = 0; slab < n; slab += SLAB) {
        barrier(CLK_LOCAL_MEM_FENCE);
        LOAD_SLAB(of->xs, PITCH_R, BR, of->X, ROWS_OF_TILE(top + r))
        LOAD_SLAB(of->cs, PITCH_C, BC, of->C, (first + r < k ? first + r : -1))
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int s = 0; s < SLAB; s++) {
            real x[TR], c[TC];
#pragma unroll
            for (int i = 0; i < TR; i += 4) load_four(x + i, of->xs + s * PITCH_R + OF_THREAD(i, at_row, GR));
#pragma unroll
            for (int j = 0; j < TC; j += 4)
                load_four(c + j, of->cs + s * PITCH_C + OF_THREAD(j, at_centre, GC));
            EACH_ROW(i) EACH_CENTRE(j) sum[i][j] += x[i] * c[j];
#ifndef AGAIN
            if (first == 0) EACH_ROW(i) mine[i].square += x[i] * x[i];
#endif
        }
    }
}

#ifdef AGAIN
DEVICE_FN void dense_begin(struct of_row *mine, __global const real *limits, long r, long count) {
    mine->best = (measured)INFINITY;
    mine->limit = r < count ? limits[r] : -REAL_INFINITY;
    mine->index = 0;
}

/* Measures centre c if the row's limit leaves it. */
DEVICE_FN void dense_see(struct of_row *mine, const struct tile *of, long r, real score, int c) {
    if (r >= of->count || c >= of->k || score > mine->limit) return;
    __global const real *x = of->X + (long)of->doubtful[r] * of->n, *centre = of->C + (long)c * of->n;
    wide distance = 0;
    for (int a = 0; a < of->n; a++) distance += squared((wide)x[a] - (wide)centre[a]);
    if (distance < mine->best) mine->best = distance, mine->index = c;
}
#else
DEVICE_FN void dense_begin(struct of_row *mine, __global const real *limits, long r, long count) {
    (void)limits, (void)r, (void)count;
    mine->all.best = mine->all.second = REAL_INFINITY;
    mine->all.index = 0;
    mine->square = 0;
}

DEVICE_FN void dense_see(struct of_row *mine, const struct tile *of, long r, real score, int c) {
    (void)of, (void)r;
    nearest_step(&mine->all, score, c);
}
#endif

/* The thread's rows against all centres. */
DEVICE_FN void dense_rows(struct of_row *mine, const struct tile *of, __global const real *halves) {
    const int id = (int)get_local_id(0), at_row = id / GC, at_centre = id % GC;
    for (int first = 0; first < of->k; first += BC) {
        real sum[TR][TC];
        dense_products(sum, mine, of, first);
        EACH_CENTRE(j) {
            const int c = first + OF_THREAD(j, at_centre, GC);
            const real h = c < of->k ? halves[c] : REAL_INFINITY;
            EACH_ROW(i) dense_see(&mine[i], of, of->top + OF_THREAD(i, at_row, GR), h - sum[i][j], c);
        }
    }
}

__kernel GROUP_OF(GR * GC) void assign_dense(PARAMETERS(assign_dense)) {
    LOCAL real xs[SLAB * PITCH_R] ALIGNED_16, cs[SLAB * PITCH_C] ALIGNED_16;
    LOCAL measured bests[BR * GC];
    LOCAL int indices[BR * GC];
#ifndef AGAIN
    LOCAL real seconds[BR * GC], squares[BR];
#endif
    const int id = (int)get_local_id(0), at_row = id / GC, at_centre = id % GC;
    struct tile of;
    of.doubtful = doubtful, of.X = X, of.C = C, of.xs = xs, of.cs = cs, of.n = n, of.k = k;
#ifdef AGAIN
    of.count = state[0];
#else
    of.count = rows;
#endif
    for (of.top = (long)get_group_id(0) * BR; of.top < of.count; of.top += (long)get_num_groups(0) * BR) {
        struct of_row mine[TR];
        EACH_ROW(i) dense_begin(&mine[i], limits, of.top + OF_THREAD(i, at_row, GR), of.count);
        dense_rows(mine, &of, halves);
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH_ROW(i) {
            const int r = OF_THREAD(i, at_row, GR);
#ifdef AGAIN
            bests[r * GC + at_centre] = mine[i].best;
            indices[r * GC + at_centre] = mine[i].index;
#else
            bests[r * GC + at_centre] = mine[i].all.best;
            seconds[r * GC + at_centre] = mine[i].all.second;
            indices[r * GC + at_centre] = mine[i].all.index;
            if (at_centre == 0) squares[r] = mine[i].square;
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = id; r < BR && of.top + r < of.count; r += GROUP) {
#ifdef AGAIN
            wide best = (wide)INFINITY;
            int index = 0;
            for (int t = 0; t < GC; t++) {
                const wide other = bests[r * GC + t];
                const int its = indices[r * GC + t];
                if (other < best || (other == best && its < index)) best = other, index = its;
            }
            found[doubtful[of.top + r]] = index;
#else
            struct nearest all = {REAL_INFINITY, REAL_INFINITY, 0};
            for (int t = 0; t < GC; t++)
                nearest_join(&all, bests[r * GC + t], seconds[r * GC + t], indices[r * GC + t]);
            settle(found, doubtful, limits, state, of.top + r, &all, squares[r], n, HALVES(n));
#endif
        }
    }
}
#endif

#ifdef FEW
/* Few columns: a thread has ROWS rows whole in registers and goes through the centres, which are in local
 * memory SLAB at a time. Of CHUNK centres only the least score meets the least so far; the numbers come from
 * the best chunk, gone through once more at the end. */
#define WIDTH ((COLS + 3) / 4 * 4)
#define PITCH (COLS | 1) /* rows side by side begin in different banks */
#define GAP 4            /* elements behind each chunk, so that chunks do, too, when each row reads its
                          * best one */
#define STRIDE (CHUNK * WIDTH + GAP)
#define NORMS (CHUNK + GAP)
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)

/* Chunks of centres from `first` on; behind the last come some whose scores are infinite. */
DEVICE_FN void few_slab(LOCAL_PTR real *centres, LOCAL_PTR real *norms, __global const real *C,
                        __global const real *halves, int first, int k) {
    for (int e = (int)get_local_id(0); e < SLAB * WIDTH; e += GROUP) {
        const int own = e / WIDTH, c = first + own, j = e % WIDTH;
        centres[e + own / CHUNK * GAP] = c < k && j < COLS ? C[(long)c * COLS + j] : REAL(0.0);
    }
    for (int c = (int)get_local_id(0); c < SLAB; c += GROUP)
        norms[c + c / CHUNK * GAP] = first + c < k ? halves[first + c] : REAL_INFINITY;
}

/* The least score of each row among four centres. x is -X. */
DEVICE_FN void few_four(real *least, const real (*x)[WIDTH], LOCAL_PTR const real *centres,
                        LOCAL_PTR const real *norms) {
    real score[4][ROWS], h[4];
    load_four(h, norms);
    EACH(c, 4) EACH(r, ROWS) score[c][r] = h[c];
    EACH(j, WIDTH / 4) EACH(c, 4) {
        real y[4];
        load_four(y, centres + c * WIDTH + 4 * j);
        EACH(i, 4)
            if (4 * j + i < COLS) EACH(r, ROWS) score[c][r] += x[r][4 * j + i] * y[i];
    }
    EACH(r, ROWS) least[r] = fmin(fmin(score[0][r], score[1][r]), fmin(score[2][r], score[3][r]));
}

/* Chunks leave their least score, the least of the others, and where the best one begins. */
struct few {
    real best, second;
    int chunk;
};

DEVICE_FN void few_chunk(struct few *of, const real (*x)[WIDTH], LOCAL_PTR const real *centres,
                         LOCAL_PTR const real *norms, int begin) {
    real least[ROWS];
    few_four(least, x, centres, norms);
    _Pragma("unroll") for (int c = 4; c < CHUNK; c += 4) {
        real more[ROWS];
        few_four(more, x, centres + c * WIDTH, norms + c);
        EACH(r, ROWS) least[r] = fmin(least[r], more[r]);
    }
    EACH(r, ROWS) {
        of[r].second = fmin(of[r].second, fmax(of[r].best, least[r]));
        of[r].chunk = least[r] < of[r].best ? begin : of[r].chunk;
        of[r].best = fmin(of[r].best, least[r]);
    }
}

/* The nearest centre of a row, of those of its best chunk. x is -x, and centres and norms those of the
 * chunk. */
DEVICE_FN struct nearest few_local(const struct few *of, const real *x, LOCAL_PTR const real *centres,
                                   LOCAL_PTR const real *norms) {
    struct nearest all = {REAL_INFINITY, of->second, of->chunk};
    _Pragma("unroll") for (int first = 0; first < CHUNK; first += 4) {
        real score[4];
        load_four(score, norms + first);
        EACH(c, 4) {
            EACH(j, WIDTH / 4) {
                real y[4];
                load_four(y, centres + (first + c) * WIDTH + 4 * j);
                EACH(i, 4) if (4 * j + i < COLS) score[c] += x[4 * j + i] * y[i];
            }
            nearest_step(&all, score[c], of->chunk + first + c);
        }
    }
    return all;
}

/* The same where local memory has other centres by now. */
DEVICE_FN struct nearest few_global(const struct few *of, const real *x, __global const real *C,
                                    __global const real *halves, int k) {
    struct nearest all = {REAL_INFINITY, of->second, of->chunk};
    const int end = of->chunk + CHUNK < k ? of->chunk + CHUNK : k;
    for (int c = of->chunk; c < end; c++) {
        real score = halves[c];
        EACH(j, COLS) score += x[j] * C[(long)c * COLS + j];
        nearest_step(&all, score, c);
    }
    return all;
}

/* -X from `top` on into registers, a group's threads one after the other in memory and a row each here. */
DEVICE_FN void few_rows(real (*x)[WIDTH], LOCAL_PTR real *tile, __global const real *X, long top, long rows) {
    const int id = (int)get_local_id(0);
    const long left = (rows - top) * COLS;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < GROUP * ROWS * COLS; e += GROUP)
        tile[e / COLS * PITCH + e % COLS] = e < left ? -X[top * COLS + e] : REAL(0.0);
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH(r, ROWS) EACH(j, COLS) x[r][j] = tile[(r * GROUP + id) * PITCH + j];
}

__kernel GROUP_OF(GROUP) void assign_few(PARAMETERS(assign_few)) {
    LOCAL real centres[SLAB / CHUNK * STRIDE] ALIGNED_16, norms[SLAB / CHUNK * NORMS] ALIGNED_16;
    LOCAL real tile[GROUP * ROWS * PITCH];
    for (long top = (long)get_group_id(0) * (GROUP * ROWS); top < rows;
         top += (long)get_num_groups(0) * (GROUP * ROWS)) {
        const long row = top + (int)get_local_id(0); /* and those a group's threads further */
        struct few of[ROWS];
        real x[ROWS][WIDTH];
        few_rows(x, tile, X, top, rows);
        EACH(r, ROWS) {
            of[r].best = of[r].second = REAL_INFINITY;
            of[r].chunk = 0;
        }
        for (int first = 0; first < k; first += SLAB) {
            const int left = k - first < SLAB ? k - first : SLAB;
            if (k > SLAB || top == (long)get_group_id(0) * (GROUP * ROWS)) {
                barrier(CLK_LOCAL_MEM_FENCE);
                few_slab(centres, norms, C, halves, first, k);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            for (int c = 0; c * CHUNK < left; c++)
                few_chunk(of, (const real(*)[WIDTH])x, centres + c * STRIDE, norms + c * NORMS,
                          first + c * CHUNK);
        }
        EACH(r, ROWS) {
            real square = 0;
            if (row + r * GROUP >= rows) continue;
            EACH(j, COLS) square += x[r][j] * x[r][j];
            const int best = of[r].chunk / CHUNK;
            const struct nearest all =
                k > SLAB ? few_global(&of[r], x[r], C, halves, k)
                         : few_local(&of[r], x[r], centres + best * STRIDE, norms + best * NORMS);
            settle(found, doubtful, limits, state, row + r * GROUP, &all, square, COLS,
                   HALVES(COLS) + (COLS - 1) / REAL(2.0)); /* products come off h one by one */
        }
    }
}
#endif

#ifdef SPARSE
/* A group a row; a thread the centres that are GROUP apart. */
__kernel GROUP_OF(GROUP) void assign_sparse(PARAMETERS(assign_sparse)) {
    LOCAL real bests[GROUP], seconds[GROUP];
    LOCAL wide leasts[GROUP];
    LOCAL int indices[GROUP];
    const int id = (int)get_local_id(0);
    for (long row = (long)get_group_id(0); row < rows; row += (long)get_num_groups(0)) {
        const long begin = row_start[row], end = row_start[row + 1];
        struct nearest all = {REAL_INFINITY, REAL_INFINITY, 0};
        for (int c = id; c < k; c += GROUP) {
            real sum = 0;
            for (long e = begin; e < end; e++) sum += X[e] * transposed[(long)col[e] * k + c];
            nearest_step(&all, halves[c] - sum, c);
        }
        bests[id] = all.best;
        seconds[id] = all.second;
        indices[id] = all.index;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t < GROUP; t++)
            if (t != id) nearest_join(&all, bests[t], seconds[t], indices[t]);
        barrier(CLK_LOCAL_MEM_FENCE);
        real square = 0;
        for (long e = begin; e < end; e++) square += X[e] * X[e];
        const real margin = margin_of(square, all.best, (int)(end - begin), HALVES(n));
        const bool huge = state[1] || !(square < HUGE_SQUARE);
        const real limit = huge ? REAL_INFINITY : all.best + margin;
        if (huge || !(all.second - all.best > margin)) { /* in all threads or in none */
            wide least = (wide)INFINITY;
            int index = 0;
            for (int c = id; c < k; c += GROUP) {
                real sum = 0;
                for (long e = begin; e < end; e++) sum += X[e] * transposed[(long)col[e] * k + c];
                if (halves[c] - sum > limit) continue;
                __global const real *centre = C + (long)c * n;
                wide distance = distance_apart(X, col, begin, end, centre, n);
                if (distance <= 2 * (wide)halves[c] * APART)
                    distance = distance_whole(X, col, begin, end, centre, n);
                if (distance < least) least = distance, index = c;
            }
            leasts[id] = least;
            indices[id] = index;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int t = 0; t < GROUP; t++)
                if (leasts[t] < least || (leasts[t] == least && indices[t] < index))
                    least = leasts[t], index = indices[t];
            all.index = index;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (id == 0) found[row] = all.index;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build PREPARE
// build WANTED ACROSS=1
// build WANTED ACROSS=8
// build DENSE TR=4 TC=4 GR=8 GC=8 SLAB=8
// build DENSE TR=8 TC=8 GR=8 GC=8 SLAB=8
// build DENSE AGAIN TR=4 TC=4 GR=8 GC=8 SLAB=8
// build FEW COLS=4 ROWS=4 CHUNK=8 SLAB=512 GROUP=128
// build FEW COLS=29 ROWS=1 CHUNK=4 SLAB=64 GROUP=128
// build SPARSE GROUP=64
// pack {f32|f64} {PREPARE|WANTED ACROSS={1|8}}
// pack f32 DENSE {TR=8 TC=8|AGAIN TR=4 TC=4} GR=16 GC=16 SLAB=8
// pack f64 DENSE {|AGAIN} TR=4 TC=4 GR=16 GC=16 SLAB=8
#endif
