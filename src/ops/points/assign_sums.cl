/* GPU body of kiln_assign: sums of each cluster's rows. Nothing is added atomically: the same bits come out
 * from run to run.
 *
 * Where sums of all clusters fit into local memory, a group has its own and goes through tiles of rows
 * (assign_own): a row sets its bit among its cluster's, and the threads of a cluster, a column each, add up
 * the rows whose bits are set, in their order.
 * Where labels come with distances, and there is room for more sums, lines of threads have their own and wait
 * for nobody (assign_lines): a thread has a column of each row, and rows are on their way while others are
 * added.
 * Elsewhere rows are sorted by cluster and cut into pieces of equally many, whatever the clusters' sizes, and
 * a group adds up what each cluster has in its piece (assign_pieces). Along the sorted rows the cluster's
 * number c and the piece's number p only rise, and one of them does between two parts, so that p + c is a
 * place for each part.
 * assign_join adds up the parts of a cluster in order. A part: the sum of s, that of s ||x - c||^2, and n
 * sums of s x. */

#define ARGUMENTS_assign_bounds(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, start)                                                                                 \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(VALUE, int, rows)                                                                                   \
    NEXT(VALUE, int, k)

/* shares: how many threads a cluster's column has, each with sums of its own. order: with LISTED, whose keys
 * those are. */
#define ARGUMENTS_assign_own(FIRST, NEXT)                                                                    \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(TABLE, int, order)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, shares)

/* apart: ||x - c||^2 of each row and its centre. */
#define ARGUMENTS_assign_lines(FIRST, NEXT)                                                                  \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(TABLE, real, apart)                                                                                 \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)

#define ARGUMENTS_assign_pieces(FIRST, NEXT)                                                                 \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(TABLE, int, order)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, C)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, int, rows)                                                                                   \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, piece)

/* start: where each cluster's sorted rows begin, `piece` rows a piece; 0: every group has a part of every
 * cluster. running: k x n sums and k x 2 totals to be kept, or 0; `corrects`: what they hold counts, too. */
#define ARGUMENTS_assign_join(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, sums)                                                                                   \
    NEXT(SPACE, wide, totals)                                                                                \
    NEXT(SPACE, wide, running)                                                                               \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, piece)                                                                                  \
    NEXT(VALUE, int, corrects)

#ifndef KI_HOST
#include "dialect/group_sum.h"

#ifdef LISTED
#define LISTS true
#else
#define LISTS false
#endif

DEVICE_FN wide square_of(wide x) {
    return x * x;
}

/* An entry of a list (assign_moved.cl): a row that comes, or ~row of one that leaves. */
DEVICE_FN int row_of(int entry) {
    return LISTS && entry < 0 ? ~entry : entry;
}

DEVICE_FN int sign_of(int entry) {
    return entry < 0 ? -1 : 1;
}

#ifdef BOUNDS
/* Writes where each cluster begins among the sorted rows. */
__kernel GROUP_OF(128) void assign_bounds(PARAMETERS(assign_bounds)) {
    for (int i = (int)get_global_id(0); i <= rows; i += (int)get_global_size(0)) {
        const int from = i == 0 ? 0 : key[i - 1] + 1, to = i == rows ? k : key[i];
        for (int c = from; c <= to; c++) start[c] = i;
    }
}
#endif

#ifdef JOIN
#define DOWN (GROUP / ACROSS)

/* A group a cluster, ACROSS columns side by side. */
__kernel GROUP_OF(GROUP) void assign_join(PARAMETERS(assign_join)) {
    LOCAL wide shared[GROUP], weight[1];
    const int id = (int)get_local_id(0), lane = id % ACROSS, along = id / ACROSS, width = n + 2;
    for (int c = (int)get_group_id(0); c < k; c += (int)get_num_groups(0)) {
        long at = (long)c * groups, count = groups;
        if (start) {
            const int from = start[c], end = start[c + 1], first = from / piece;
            at = first + c;
            count = from < end ? (end - 1) / piece - first + 1 : 0;
        }
        for (int base = 0; base < width; base += ACROSS) {
            const int j = base + lane;
            wide sum = 0;
            if (j < width)
                for (long s = along; s < count; s += DOWN) sum += partial[(at + s) * width + j];
            barrier(CLK_LOCAL_MEM_FENCE);
            shared[id] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            const bool mine = along == 0 && j < width;
            const long at = j < 2 ? (long)k * n + 2 * c + j : (long)c * n + j - 2;
            for (int r = 1; mine && r < DOWN; r++) sum += shared[r * ACROSS + lane];
            if (corrects && mine) sum += running[at];
            if (mine && j == 0) weight[0] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (!mine) continue;
            if (corrects && weight[0] == 0) sum = 0; /* all rows have left: what is left of them is
                                                      * rounding */
            if (running) running[at] = sum;
            if (j < 2)
                totals[c * 2 + j] = sum > 0 ? sum : 0;
            else if (sums)
                sums[(long)c * n + j - 2] = (real)sum;
        }
    }
}
#endif

#ifdef OWN
/* COLS columns, ACROSS threads side by side for them; AT_ONCE rows at a time. */
#define WORDS (AT_ONCE / 32)
#define PITCH (WORDS + 1)
#define DOWN (GROUP / ACROSS)
#define SUMS (2 * COLS + 1) /* s x and s (x - c)^2 of each column, s */

/* Holds what a group has in local memory. */
struct own {
    LOCAL_PTR wide *sums;  /* of each share of each cluster */
    LOCAL_PTR real *tile, *scale; /* rows; their weights */
    LOCAL_PTR uint *bits;  /* the rows of each cluster, and behind them which of its words have any */
};

DEVICE_FN void own_load(const struct own *own, __global const int *key, __global const int *order,
                        __global const real *X, __global const real *weights, long top, int count, int k) {
    const int id = (int)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < k * PITCH; e += GROUP) own->bits[e] = 0;
#pragma unroll 8
    for (int e = id; e < count * COLS; e += GROUP)
        own->tile[e] = LISTS ? X[(long)row_of(order[top + e / COLS]) * COLS + e % COLS] : X[top * COLS + e];
    for (int r = id; (LISTS || weights) && r < count; r += GROUP)
        own->scale[r] = LISTS ? (real)sign_of(order[top + r]) : weights[top + r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = id; r < count; r += GROUP) {
        LOCAL_PTR uint *const bits = own->bits + key[top + r] * PITCH;
        set_bits(bits + r / 32, 1u << r % 32);
        set_bits(bits + WORDS, 1u << r / 32);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

DEVICE_FN void own_add(const struct own *own, __global const real *C, bool weighted, int k, int shares) {
    const int j = (int)get_local_id(0) % ACROSS;
    for (int o = (int)get_local_id(0) / ACROSS; j < COLS && o < k * shares; o += DOWN) {
        const int c = o % k, share = o / k;
        LOCAL_PTR wide *to = own->sums + (long)o * SUMS;
        const real centre = C[(long)c * COLS + j];
        wide sum = 0, apart = 0, total = 0;
        uint words = own->bits[c * PITCH + WORDS];
        for (int w = 0; shares > 1 && w < WORDS; w++)
            if (w % shares != share) words &= ~(1u << w);
        if (words == 0) continue;
        for (; words; words &= words - 1) {
            const int w = lowest_bit(words);
            for (uint left = own->bits[c * PITCH + w]; left; left &= left - 1) {
                const int r = w * 32 + lowest_bit(left);
                const real x = own->tile[r * COLS + j];
                const wide s = weighted ? (wide)own->scale[r] : 1;
                sum += s * (wide)x;
                apart += s * square_of((wide)x - (wide)centre);
                total += s;
            }
        }
        to[j] += sum;
        to[COLS + j] += apart;
        if (j == 0) to[2 * COLS] += total;
    }
}

__kernel GROUP_OF(GROUP) void assign_own(PARAMETERS(assign_own) LOCAL_PARAMETER(room)) {
    LOCAL_BEGIN(room)
    struct own own;
    own.sums = (LOCAL_PTR wide *)room;
    own.tile = (LOCAL_PTR real *)(own.sums + (long)shares * k * SUMS);
    own.scale = own.tile + AT_ONCE * COLS;
    own.bits = (LOCAL_PTR uint *)(own.scale + AT_ONCE);
    const int id = (int)get_local_id(0), width = COLS + 2;
    const long groups = (long)get_num_groups(0), group = (long)get_group_id(0);
    for (int e = id; e < shares * k * SUMS; e += GROUP) own.sums[e] = 0;
    for (long top = group * AT_ONCE; top < rows; top += groups * AT_ONCE) {
        own_load(&own, key, order, X, weights, top, (int)(rows - top < AT_ONCE ? rows - top : AT_ONCE), k);
        own_add(&own, C, LISTS || weights != 0, k, shares);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < k * width; e += GROUP) {
        const int c = e / width, j = e % width;
        wide sum = 0;
        for (int share = 0; share < shares; share++) {
            LOCAL_PTR const wide *from = own.sums + (long)(share * k + c) * SUMS;
            if (j == 0) sum += from[2 * COLS];
            for (int a = 0; j == 1 && a < COLS; a++) sum += from[COLS + a];
            if (j > 1) sum += from[j - 2];
        }
        partial[(c * groups + group) * width + j] = sum;
    }
}
#endif

#ifdef LINES
/* COLS columns, the weight and the distance: ACROSS threads of a line for them; AHEAD rows on their way to a
 * line while it adds as many, four at once. */
#define WIDTH (COLS + 2)
#define EACH_OF(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)

/* Holds what a thread has of rows: their clusters, and its column of them. */
struct ahead {
    int key[AHEAD];
    real x[AHEAD];
};

/* A thread reads from[row * step] of each row, and takes 1 where its column `counts`; 0 of rows that are not
 * there. */
DEVICE_FN void lines_load(struct ahead *to, __global const int *key, __global const real *from, int step,
                          bool counts, long first, long rows) {
    const int left = (int)(rows - first < AHEAD ? rows - first : AHEAD);
    if (left <= 0) return;
    key += first;
    from += first * step;
    EACH_OF(r, AHEAD) {
        const int row = r < left ? r : 0;
        const real x = counts ? REAL(1.0) : from[row * step];
        to->key[r] = key[row];
        to->x[r] = r < left ? x : REAL(0.0);
    }
}

/* Adds s x of four rows from r on to a thread's sums. All are read before any is written: of rows of one
 * cluster each goes on with what the one before it has left. */
DEVICE_FN void lines_add(LOCAL_PTR wide *sums, const struct ahead *of, __global const real *weights, int r,
                         long first, long rows) {
    wide sum[4];
    EACH_OF(i, 4) sum[i] = sums[of->key[r + i] * WIDTH];
    EACH_OF(i, 4) {
        EACH_OF(e, i) if (of->key[r + e] == of->key[r + i]) sum[i] = sum[e];
#ifdef WEIGHTED
        const long row = first + r + i < rows ? first + r + i : rows - 1;
        sum[i] += (wide)weights[row] * (wide)of->x[r + i];
#else
        sum[i] += (wide)of->x[r + i];
#endif
    }
    EACH_OF(i, 4) sums[of->key[r + i] * WIDTH] = sum[i];
}

__kernel GROUP_OF(GROUP) void assign_lines(PARAMETERS(assign_lines) LOCAL_PARAMETER(room)) {
    LOCAL_BEGIN(room)
    const int id = (int)get_local_id(0), lines = GROUP / ACROSS, size = k * WIDTH, j = id % ACROSS;
    const int mine = j < COLS ? j + 2 : j == COLS ? 0 : 1; /* the place of the column in a part */
    const long groups = (long)get_num_groups(0), group = (long)get_group_id(0), step = groups * lines * AHEAD;
    LOCAL_PTR wide *const all = (LOCAL_PTR wide *)room, *const sums = all + id / ACROSS * size + mine;
    __global const real *const from = j < COLS ? X + j : apart;
    long first = (group * lines + id / ACROSS) * AHEAD;
    struct ahead now, next;
    for (int e = id; e < lines * size; e += GROUP) all[e] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (j < WIDTH) {
        lines_load(&next, key, from, j < COLS ? COLS : 1, j == COLS, first, rows);
        for (; first < rows; first += step) {
            now = next;
            lines_load(&next, key, from, j < COLS ? COLS : 1, j == COLS, first + step, rows);
            EACH_OF(q, AHEAD / 4) lines_add(sums, &now, weights, 4 * q, first, rows);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < size; e += GROUP) {
        wide sum = 0;
        for (int line = 0; line < lines; line++) sum += all[line * size + e];
        partial[(e / WIDTH * groups + group) * WIDTH + e % WIDTH] = sum;
    }
}
#endif

#ifdef PIECES
#define DOWN (GROUP / ACROSS)
#define OF_EACH(v) _Pragma("unroll") for (int v = 0; v < EACH; v++)

/* The rows order[begin .. end) of a cluster. */
struct stretch {
    __global const int *order;
    __global const real *X, *weights, *centre;
    long begin, end;
};

DEVICE_FN wide weight_of(const struct stretch *of, int entry) {
    if (LISTS) return sign_of(entry);
    return of->weights ? (wide)of->weights[entry] : 1;
}

#ifdef CSR
/* Their sums; what the thread has of their distances: squared differences where rows have entries, and in
 * thread 0 what is left of
 * ||c||^2 without these columns, which the threads take off it in twice the digits of `wide`. */
DEVICE_FN wide add_stretch(__global wide *to, LOCAL_PTR wide *shared, const struct stretch *of,
                           __global const long *row_start, __global const int *col, int n) {
    const int id = (int)get_local_id(0);
    struct twice norm = {0, 0}, left = {0, 0};
    wide distance = 0;
    for (int j = id; j < n; j += GROUP) to[j] = 0;
    for (int j = 0; id == 0 && j < n; j++) add_square(&norm, (wide)1, (wide)of->centre[j]);
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (long i = of->begin; i < of->end; i++) {
        const int row = of->order[i];
        const wide s = weight_of(of, row);
        if (id == 0) add_product(&left, s, norm.high), left.low += s * norm.low;
        for (long e = row_start[row] + id; e < row_start[row + 1]; e += GROUP) {
            const wide x = (wide)of->X[e], there = (wide)of->centre[col[e]];
            distance += s * square_of(x - there);
            add_square(&left, -s, there);
            to[col[e]] += s * x;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    shared[id] = left.high;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = 1; id == 0 && t < GROUP; t++) add_to(&left, shared[t]);
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[id] = left.low;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = 1; id == 0 && t < GROUP; t++) left.low += shared[t];
    return id == 0 ? distance + fmax(left.high + left.low, (wide)0) : distance;
}
#else
/* The same of dense rows: a thread has EACH columns, ACROSS apart. */
DEVICE_FN wide add_stretch(__global wide *to, LOCAL_PTR wide *shared, const struct stretch *of,
                           __global const long *row_start, __global const int *col, int n) {
    const int id = (int)get_local_id(0), lane = id % ACROSS, along = id / ACROSS;
    wide distance = 0;
    (void)row_start, (void)col;
    for (int base = lane; base < n + lane; base += ACROSS * EACH) {
        wide sum[EACH], centre[EACH];
        OF_EACH(v) {
            sum[v] = 0;
            centre[v] = base + v * ACROSS < n ? (wide)of->centre[base + v * ACROSS] : 0;
        }
#pragma unroll 4
        for (long i = of->begin + along; i < of->end; i += DOWN) {
            const int row = row_of(of->order[i]);
            const wide s = weight_of(of, of->order[i]);
            OF_EACH(v) {
                const int j = base + v * ACROSS;
                const wide x = j < n ? (wide)of->X[(long)row * n + j] : 0;
                sum[v] += s * x;
                distance += s * square_of(x - centre[v]);
            }
        }
        OF_EACH(v) {
            const int j = base + v * ACROSS;
            barrier(CLK_LOCAL_MEM_FENCE);
            shared[id] = sum[v];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int r = 1; along == 0 && r < DOWN; r++) sum[v] += shared[r * ACROSS + lane];
            if (along == 0 && j < n) to[j] = sum[v];
        }
    }
    return distance;
}
#endif

/* A group a piece of the sorted rows. */
__kernel GROUP_OF(GROUP) void assign_pieces(PARAMETERS(assign_pieces)) {
    LOCAL wide shared[GROUP], apart[GROUP];
    const int id = (int)get_local_id(0), number = (int)get_group_id(0);
    const long first = (long)number * piece, end = first + piece < rows ? first + piece : rows;
    struct stretch of;
    of.order = order, of.X = X, of.weights = weights;
    for (of.begin = first; of.begin < end; of.begin = of.end) {
        const int c = key[of.begin];
        __global wide *to = partial + ((long)number + c) * (n + 2);
        wide total = 0;
        of.end = start[c + 1] < end ? start[c + 1] : end;
        of.centre = C + (long)c * n;
        for (long i = of.begin + id; i < of.end; i += GROUP) total += weight_of(&of, order[i]);
        const wide distance = add_stretch(to + 2, shared, &of, row_start, col, n);
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] = total;
        apart[id] = distance;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = GROUP / 2; reach > 0; reach /= 2) {
            if (id < reach) {
                shared[id] += shared[id + reach];
                apart[id] += apart[id + reach];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (id == 0) to[0] = shared[0], to[1] = apart[0];
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build BOUNDS
// build JOIN GROUP=128 ACROSS=32
// build OWN GROUP=256 COLS=3 ACROSS=4 AT_ONCE=1024
// build OWN GROUP=1024 COLS=32 ACROSS=32 AT_ONCE=256
// build OWN LISTED GROUP=1024 COLS=32 ACROSS=32 AT_ONCE=256
// build LINES GROUP=512 COLS=32 ACROSS=64 AHEAD=16
// build LINES WEIGHTED GROUP=128 COLS=4 ACROSS=8 AHEAD=16
// build PIECES GROUP=128 ACROSS=32 EACH=1
// build PIECES GROUP=128 ACROSS=128 EACH=4
// build PIECES LISTED GROUP=128 ACROSS=32 EACH=1
// build PIECES CSR GROUP=128 ACROSS=1
// pack {f32|f64} {BOUNDS|JOIN GROUP=128 ACROSS={32|128}|PIECES {|LISTED} GROUP=128 ACROSS={32|128} EACH=1}
#endif
