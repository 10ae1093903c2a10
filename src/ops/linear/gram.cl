/* GPU body of G = Z^T diag(v) Z,  Z = [X - 1 c^T, Y - 1 d^T, 1], of n + k + 1 columns, X dense
 * (ops/linear/gram.c).
 *
 * A work-group has a tile of SIDE x SIDE of G on or right of the diagonal, and every splits-th chunk of CHUNK
 * rows. The two strips of SIDE columns of a chunk come into on-chip memory, STAGES chunks ahead where copies
 * need no thread; the centres are taken off on the way from there to the sums, so that nothing cancels where
 * a mean dwarfs its spread. Groups that have tiles of the same rows run side by side, and find in the second
 * cache level what one of them has brought. The sums of FOLD chunks begin at 0 and then go to the tile's; the
 * tiles of the splits are added in `wide`, in order: three levels, each of which is short.
 *
 * TENSOR, f32: x = high + low with 11 leading bits each, and of the four products of the halves the three
 * that matter, on tensor cores; a warp has 32 x 32 of a tile. Tensor cores round towards zero, but no sum in
 * them has more than 32 rows.
 * Elsewhere a thread has 4 x 4. */

#define ARGUMENTS_gram(FIRST, NEXT)                                                                          \
    FIRST(SPACE, real, partials)                                                                             \
    NEXT(KEPT, stored, X)                                                                                    \
    NEXT(IN, real, v)                                                                                        \
    NEXT(IN, real, c)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(IN, real, d)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, strips)                                                                                 \
    NEXT(VALUE, int, splits)

#define ARGUMENTS_gram_finish(FIRST, NEXT)                                                                   \
    FIRST(SPACE, wide, all)                                                                                  \
    NEXT(OUT, real, G)                                                                                       \
    NEXT(OUT, real, g)                                                                                       \
    NEXT(TABLE, real, partials)                                                                              \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, strips)                                                                                 \
    NEXT(VALUE, int, splits)                                                                                 \
    NEXT(VALUE, int, parts)

#define ARGUMENTS_gram_centre(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, c)                                                                                      \
    NEXT(KEPT, stored, X)                                                                                    \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, sample)

#ifndef KI_HOST
#include "dialect/stored.h"
#include "dialect/tensor.h"

#define PITCH (SIDE + 8) /* rows of a chunk lie in different banks */
#ifdef ONE_STRIP
#define SIDES 1
#else
#define SIDES 2
#endif
#ifndef COPY_ASYNC /* no instruction for it: a thread waits for its copies */
#undef STAGES
#define STAGES 1
#define COPY_ASYNC_ONE(to, from) (*(to) = *(from))
#endif

struct ALIGNED_16 chunk {
    real strip[SIDES][CHUNK * PITCH];
    real v[CHUNK];
};

/* Holds what a group works on: strips i and j, and its chunks. */
struct gram_task {
    int i, j, split;
};

DEVICE_FN struct gram_task gram_task_of(int strips) {
    const int pairs = strips * (strips + 1) / 2;
    struct gram_task task;
    int rest = (int)get_group_id(0) % pairs;
    task.split = (int)get_group_id(0) / pairs;
    for (task.i = 0; rest >= strips - task.i; task.i++) rest -= strips - task.i;
    task.j = task.i + rest;
    return task;
}

DEVICE_FN real centre_of(__global const real *c, __global const real *d, int column, int n, int k) {
    if (column < n) return c ? c[column] : REAL(0.0);
    return column < n + k && d ? d[column - n] : REAL(0.0);
}

/* A strip of a chunk; what is not there is 0. W elements of X are a load, and no row of X ends within one. */
DEVICE_FN void gram_fetch(LOCAL_PTR real *to, __global const stored *X, __global const real *Y, int strip,
                          long row0, long rows, int n, int k) {
    for (int e = (int)get_local_id(0); e < CHUNK * SIDE / W; e += BS) {
        const int r = e / (SIDE / W), at = e % (SIDE / W) * W, column = strip * SIDE + at;
        const long row = row0 + r;
        LOCAL_PTR real *own = to + r * PITCH + at;
        if (row < rows && column < n) {
#if defined(COPY_ASYNC) && !defined(ELEMENT)
            COPY_ASYNC(own, X + row * n + column);
#else
            real x[W];
            load_stored(x, X + row * n + column);
            for (int w = 0; w < W; w++) own[w] = x[w];
#endif
            continue;
        }
        for (int w = 0; w < W; w++) {
            const int more = column + w - n;
            if (row < rows && more < k)
                COPY_ASYNC_ONE(own + w, Y + row * k + more);
            else
                own[w] = row < rows && more == k ? REAL(1.0) : REAL(0.0);
        }
    }
}

DEVICE_FN void gram_fetch_chunk(LOCAL_PTR struct chunk *to, const struct gram_task *task,
                                __global const stored *X, __global const real *v, __global const real *Y,
                                long row0, long rows, int n, int k) {
    gram_fetch(to->strip[0], X, Y, task->i, row0, rows, n, k);
#if SIDES > 1
    if (task->j != task->i) gram_fetch(to->strip[1], X, Y, task->j, row0, rows, n, k);
#endif
    for (int r = (int)get_local_id(0); r < CHUNK; r += BS)
        if (v && row0 + r < rows)
            COPY_ASYNC_ONE(to->v + r, v + row0 + r);
        else
            to->v[r] = row0 + r < rows ? REAL(1.0) : REAL(0.0);
}

#if defined(TENSOR) && defined(BULK) && !defined(REAL_F64)
/* ------------------------------------------------------------------------------------- 32 x 32 a warp */
#define WARPS (SIDE / 32)
#define SLICES (BS / 32 / (WARPS * WARPS)) /* warps that share a place, and a chunk's rows */
#define ROWS (CHUNK / SLICES)
#define FOLD (ROWS < 32 ? 32 / ROWS : 1)

struct place {
    int row, i, j;      /* its first row of a chunk; its lane's columns in either strip, and 8, 16, 24
                         * further on */
    real ci[4], cj[4]; /* their centres */
};

DEVICE_FN struct place place_of_warp(const struct gram_task *task, __global const real *c,
                                     __global const real *d, int n, int k) {
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    struct place at;
    at.row = warp / (WARPS * WARPS) * ROWS + lane % 4;
    at.i = warp / WARPS % WARPS * 32 + lane / 4;
    at.j = warp % WARPS * 32 + lane / 4;
#pragma unroll
    for (int s = 0; s < 4; s++) {
        at.ci[s] = centre_of(c, d, task->i * SIDE + at.i + 8 * s, n, k);
        at.cj[s] = centre_of(c, d, task->j * SIDE + at.j + 8 * s, n, k);
    }
    return at;
}

/* Says whether a 16 x 8 part of the only tile of a G lies below its diagonal: nobody reads those. */
#define BELOW(i, j) (SIDE == 32 && SIDES == 1 && (i) == 1 && (j) < 2)

#define SUMS 32
DEVICE_FN void gram_add_chunk(real *sums, LOCAL_PTR const struct chunk *from, const struct place *at,
                              bool diagonal) {
    LOCAL_PTR const real *left = from->strip[0] + at->row * PITCH + at->i;
    LOCAL_PTR const real *right = from->strip[diagonal ? 0 : SIDES - 1] + at->row * PITCH + at->j;
    LOCAL_PTR const real *v = from->v + at->row;
#pragma unroll 2
    for (int r = 0; r < ROWS; r += 8) {
        uint a_high[2][4], a_low[2][4];
#pragma unroll
        for (int s = 0; s < 8; s++) /* elements: 8 columns further on, then 4 rows */
            split(&a_high[s / 4][s % 4], &a_low[s / 4][s % 4],
                  left[(r + s % 4 / 2 * 4) * PITCH + s / 4 * 16 + s % 2 * 8] -
                      at->ci[s / 4 * 2 + s % 2]);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            uint b_high[2], b_low[2];
#pragma unroll
            for (int s = 0; s < 2; s++)
                split(&b_high[s], &b_low[s],
                      (right[(r + 4 * s) * PITCH + 8 * j] - at->cj[j]) * v[r + 4 * s]);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (BELOW(i, j)) continue;
                multiply_tf32(sums + 16 * i + 4 * j, a_low[i], b_high);
                multiply_tf32(sums + 16 * i + 4 * j, a_high[i], b_low);
                multiply_tf32(sums + 16 * i + 4 * j, a_high[i], b_high);
            }
        }
    }
}

/* Element s of a lane's sums, in the tile. */
DEVICE_FN int gram_element(const struct place *at, int s) {
    const int lane = (int)get_local_id(0) % 32, i = at->i + s / 16 * 16 + s % 4 / 2 * 8;
    return i * SIDE + at->j - lane / 4 + s / 4 % 4 * 8 + lane % 4 * 2 + s % 2;
}
#else
/* ------------------------------------------------------------------------------------- 4 x 4 a thread */
#define SLICES 1
#define FOLD 1
struct place {
    int i, j;
    real ci[4], cj[4];
};

DEVICE_FN struct place place_of_warp(const struct gram_task *task, __global const real *c,
                                     __global const real *d, int n, int k) {
    struct place at;
    at.i = (int)get_local_id(0) / (SIDE / 4) * 4;
    at.j = (int)get_local_id(0) % (SIDE / 4) * 4;
    for (int s = 0; s < 4; s++) {
        at.ci[s] = centre_of(c, d, task->i * SIDE + at.i + s, n, k);
        at.cj[s] = centre_of(c, d, task->j * SIDE + at.j + s, n, k);
    }
    return at;
}

#define SUMS 16
DEVICE_FN void gram_add_chunk(real *sums, LOCAL_PTR const struct chunk *from, const struct place *at,
                              bool diagonal) {
    LOCAL_PTR const real *left = from->strip[0] + at->i;
    LOCAL_PTR const real *right = from->strip[diagonal ? 0 : SIDES - 1] + at->j;
    for (int r = 0; r < CHUNK; r++) {
        real a[4], b[4];
#pragma unroll
        for (int s = 0; s < 4; s++) {
            a[s] = left[r * PITCH + s] - at->ci[s];
            b[s] = (right[r * PITCH + s] - at->cj[s]) * from->v[r];
        }
#pragma unroll
        for (int s = 0; s < SUMS; s++) sums[s] += a[s / 4] * b[s % 4];
    }
}

DEVICE_FN int gram_element(const struct place *at, int s) {
    return (at->i + s / 4) * SIDE + at->j + s % 4;
}
#endif

#ifndef ENDS /* what goes before and after a walk of gram_narrow.cl */
__kernel GROUP_OF(BS) void gram(PARAMETERS(gram)) {
    LOCAL struct chunk ring[STAGES];
    const struct gram_task task = gram_task_of(strips);
    const struct place at = place_of_warp(&task, c, d, n, k);
    const long chunks = (rows + CHUNK - 1) / CHUNK, apart = (long)splits * CHUNK;
    const int count = chunks > task.split ? (int)((chunks - task.split + splits - 1) / splits) : 0;
    const long first = (long)task.split * CHUNK;
    __global real *to = partials + (long)get_group_id(0) * (SIDE * SIDE);
    real total[SUMS], sums[SUMS];
#pragma unroll
    for (int s = 0; s < SUMS; s++) total[s] = sums[s] = REAL(0.0);
#if STAGES > 1
    for (int t = 0; t < STAGES - 1; t++) {
        if (t < count) gram_fetch_chunk(&ring[t], &task, X, v, Y, first + t * apart, rows, n, k);
        copies_commit();
    }
#endif
    for (int t = 0; t < count; t++) {
        const int next = t + STAGES - 1;
#if STAGES > 1
        copies_wait(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (next < count)
            gram_fetch_chunk(&ring[next % STAGES], &task, X, v, Y, first + next * apart, rows, n, k);
#if STAGES > 1
        copies_commit();
#else
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        gram_add_chunk(sums, &ring[t % STAGES], &at, task.i == task.j);
        if ((t + 1) % FOLD == 0 || t + 1 == count) {
#pragma unroll
            for (int s = 0; s < SUMS; s++) {
                total[s] += sums[s];
                sums[s] = REAL(0.0);
            }
        }
#if STAGES == 1
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
    /* Warps that share a place, one after the other: the same threads' places in every turn. */
    for (int turn = 0; turn < SLICES; turn++) {
        if (SLICES > 1) barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if ((int)get_local_id(0) / (BS / SLICES) != turn) continue;
#pragma unroll
        for (int s = 0; s < SUMS; s++) {
            const int e = gram_element(&at, s);
            to[e] = turn > 0 ? to[e] + total[s] : total[s];
        }
    }
}
#endif

/* Element e of the whole, or of X's part G and, where wanted, Z^T v's part g. */
DEVICE_FN void gram_write(__global wide *all, __global real *G, __global real *g, long e, wide sum, int n,
                          int k) {
    const int size = n + k + 1, i = (int)(e / size), j = (int)(e % size);
    if (all)
        all[(long)i * size + j] = all[(long)j * size + i] = sum;
    else if (j < n)
        G[(long)i * n + j] = G[(long)j * n + i] = (real)sum;
    else if (g && i < n && j == n + k)
        g[i] = (real)sum;
}

/* Adds up the splits' tiles; `parts` threads have an element, the splits in turns. */
__kernel GROUP_OF(BS) void gram_finish(PARAMETERS(gram_finish)) {
    LOCAL wide shared[BS];
    const int size = n + k + 1, id = (int)get_local_id(0), width = BS / parts;
    const long pairs = (long)strips * (strips + 1) / 2, last = (long)size * size;
    for (long first = (long)get_group_id(0) * width; first < last; first += (long)get_num_groups(0) * width) {
        const long e = first + id % width;
        const int i = (int)(e / size), j = (int)(e % size), a = i / SIDE, b = j / SIDE;
        const bool mine = e < last && i <= j && id < width * parts;
        const long pair = (long)a * strips - (long)a * (a - 1) / 2 + (b - a);
        const long at = pair * (SIDE * SIDE) + i % SIDE * SIDE + j % SIDE;
        wide sum = 0;
#pragma unroll 4
        for (int s = id / width; mine && s < splits; s += parts)
            sum += partials[(long)s * pairs * (SIDE * SIDE) + at];
        shared[id] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int part = 1; id < width && part < parts; part++) sum += shared[part * width + id];
        if (mine && id < width) gram_write(all, G, g, e, sum, n, k);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* c = the means of `sample` rows, evenly apart. */
__kernel GROUP_OF(BS) void gram_centre(PARAMETERS(gram_centre)) {
    FOR_EACH(j, n) {
        const wide first = X[j]; /* sums about it: a constant's mean is that constant */
        wide sum = 0;
#pragma unroll 8
        for (int s = 1; s < sample; s++) sum += X[rows * s / sample * n + j] - first;
        c[j] = (real)(first + sum / sample);
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SIDE=32 BS=64 CHUNK=32 W=1 STAGES=1 ONE_STRIP
// build ENDS SIDE=32 BS=128 CHUNK=32 W=1 STAGES=1
// build SIDE=64 BS=256 CHUNK=16 W=2 STAGES=2
// build SIDE=96 BS=288 CHUNK=8 W=4 STAGES=3 TENSOR ELEMENT=1
// build ENDS SIDE=32 BS=128 CHUNK=32 W=1 STAGES=1 ELEMENT=5
// build SIDE=32 BS=128 CHUNK=32 W=2 STAGES=4 ONE_STRIP TENSOR
// build SIDE=96 BS=288 CHUNK=8 W=1 STAGES=3 TENSOR
// pack {f32|f64} ENDS SIDE=32 BS=128 CHUNK=32 W=1 STAGES=1
