/* GPU body of kiln_assign: sums of each cluster's rows. Nothing is added atomically: the same bits come out from run to run.
 *
 * Where sums of all clusters fit into local memory, a group has its own and goes through tiles of rows (assign_own): a row sets its
 * bit among its cluster's, and the threads of a cluster, a column each, add up the rows whose bits are set, in their order.
 * Where labels come with distances, on CUDA, each warp of a group owns some of its clusters, and no two warps add to the same sums
 * (assign_owners).
 * Elsewhere rows are sorted by cluster and cut into pieces of equally many, whatever the clusters' sizes, and a group adds up what
 * each cluster has in its piece (assign_pieces). Along the sorted rows the cluster's number c and the piece's number p only rise, and
 * one of them does between two parts, so that p + c is a place for each part.
 * assign_join adds up the parts of a cluster in order. A part: the sum of s, that of s ||x - c||^2, and n sums of s x. */

#define ARGUMENTS_assign_bounds(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, start)                                                                                 \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(VALUE, int, rows)                                                                                   \
    NEXT(VALUE, int, k)

/* shares: how many threads a cluster's column has, each with sums of its own. */
#define ARGUMENTS_assign_own(FIRST, NEXT)                                                                    \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, shares)

/* apart: ||x - c||^2 of each row and its centre. */
#define ARGUMENTS_assign_owners(FIRST, NEXT)                                                                  \
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

/* start: where each cluster's sorted rows begin, `piece` rows a piece; 0: every group has a part of every cluster. */
#define ARGUMENTS_assign_join(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, sums)                                                                                   \
    NEXT(SPACE, wide, totals)                                                                                \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, piece)

#ifndef KI_HOST
DEVICE_FN wide square_of(wide x) {
    return x * x;
}

#ifdef BOUNDS
/* Where each cluster begins among the sorted rows. */
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
    LOCAL wide shared[GROUP];
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
            if (along > 0 || j >= width) continue;
            for (int r = 1; r < DOWN; r++) sum += shared[r * ACROSS + lane];
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

/* What a group has in local memory. */
struct own {
    LOCAL_PTR wide *sums;  /* of each share of each cluster */
    LOCAL_PTR real *tile, *scale; /* rows; their weights */
    LOCAL_PTR uint *bits;  /* the rows of each cluster, and behind them which of its words have any */
};

DEVICE_FN void own_load(const struct own *own, __global const int *key, __global const real *X,
                        __global const real *weights, long top, int count, int k) {
    const int id = (int)get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < k * PITCH; e += GROUP) own->bits[e] = 0;
#pragma unroll 8
    for (int e = id; e < count * COLS; e += GROUP) own->tile[e] = X[top * COLS + e];
    for (int r = id; weights && r < count; r += GROUP) own->scale[r] = weights[top + r];
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
        if (!(total > 0)) continue;
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
        own_load(&own, key, X, weights, top, (int)(rows - top < AT_ONCE ? rows - top : AT_ONCE), k);
        own_add(&own, C, weights != 0, k, shares);
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

#if defined(OWNERS) && defined(BULK) && !defined(REAL_F64)
/* A group goes through rows 32 at a time, and each of its warps adds those of the clusters that it owns, AT_ONCE at once. */
#define WARPS (GROUP / 32)
#define WIDTH (COLS + 2)
#define EACH_COLUMN ((COLS + 31) / 32) /* of a lane's */
#define AT_ONCE 8
#define EACH_OF(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)

/* Rows of a warp's clusters: a lane's columns of them, and, of the first two lanes, 1 and ||x - c||^2. What is not there adds 0. */
struct owned {
    int key[AT_ONCE];
    float weight[AT_ONCE], more[AT_ONCE], x[EACH_COLUMN][AT_ONCE];
};

/* What a lane knows of one of 32 rows. */
struct row {
    int key;
    float apart, weight;
};

DEVICE_FN struct row row_at(__global const int *key, __global const float *apart, __global const float *weights,
                            long row, long rows) {
    const long there = row < rows ? row : rows - 1;
    struct row of = {key[there], apart[there], 1};
    if (weights) of.weight = weights[there];
    return of;
}

/* The first of the rows in `mask`, which is not empty, of those from `top` on; takes them out of it. */
DEVICE_FN void owners_load(struct owned *to, uint *mask, const struct row *mine, __global const float *top) {
    const int lane = (int)get_local_id(0) % 32;
    EACH_OF(i, AT_ONCE) {
        const bool there = *mask != 0;
        const int r = there ? lowest_bit(*mask) : 0, key = of_lane_int(mine->key, r);
        const float apart = of_lane(mine->apart, r);
        *mask &= *mask - 1;
        to->key[i] = there ? key : to->key[0];
        to->weight[i] = of_lane(mine->weight, r);
        to->more[i] = !there ? 0 : lane == 0 ? 1 : apart;
        EACH_OF(v, EACH_COLUMN)
        to->x[v][i] = there && 32 * v + lane < COLS ? top[r * COLS + 32 * v + lane] : 0;
    }
}

/* Adds four rows' numbers. All sums are read before any is written: of rows of one cluster each goes on with what the one before it
 * has left. */
DEVICE_FN void add_four(LOCAL_PTR double *sums, const int *key, const float *x, const float *weight) {
    double sum[4];
    EACH_OF(i, 4) sum[i] = sums[key[i] * WIDTH];
    EACH_OF(i, 4) {
        EACH_OF(e, i) if (key[e] == key[i]) sum[i] = sum[e];
#ifdef WEIGHTED
        sum[i] += (double)weight[i] * (double)x[i];
#else
        (void)weight;
        sum[i] += (double)x[i];
#endif
    }
    EACH_OF(i, 4) sums[key[i] * WIDTH] = sum[i];
}

__kernel GROUP_BESIDE(GROUP, 8) void assign_owners(PARAMETERS(assign_owners) LOCAL_PARAMETER(room)) {
    LOCAL_BEGIN(room)
    const int id = (int)get_local_id(0), lane = id % 32, warp = id / 32, size = k * WIDTH;
    const long groups = (long)get_num_groups(0), group = (long)get_group_id(0);
    LOCAL_PTR double *const sums = (LOCAL_PTR double *)room;
    struct row next = row_at(key, apart, weights, group * 32 + lane, rows);
    for (int e = id; e < size; e += GROUP) sums[e] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long top = group * 32; top < rows; top += groups * 32) {
        const struct row mine = next;
        uint mask = lanes_where(top + lane < rows && mine.key % WARPS == warp);
        next = row_at(key, apart, weights, top + groups * 32 + lane, rows);
        while (mask) {
            struct owned of;
            owners_load(&of, &mask, &mine, X + top * COLS);
            EACH_OF(half, AT_ONCE / 4) {
                EACH_OF(v, EACH_COLUMN)
                if (32 * v + lane < COLS)
                    add_four(sums + 2 + 32 * v + lane, of.key + 4 * half, of.x[v] + 4 * half, of.weight + 4 * half);
                if (lane < 2) add_four(sums + lane, of.key + 4 * half, of.more + 4 * half, of.weight + 4 * half);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < size; e += GROUP) partial[(e / WIDTH * groups + group) * WIDTH + e % WIDTH] = sums[e];
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

DEVICE_FN wide weight_of(const struct stretch *of, int row) {
    return of->weights ? (wide)of->weights[row] : 1;
}

#ifdef CSR
/* Their sums; what the thread has of their distances. */
DEVICE_FN wide add_stretch(__global wide *to, LOCAL_PTR wide *shared, const struct stretch *of,
                           __global const long *row_start, __global const int *col, int n) {
    const int id = (int)get_local_id(0);
    wide norm = 0, distance = 0;
    (void)shared;
    for (int j = id; j < n; j += GROUP) to[j] = 0;
    for (int j = 0; id == 0 && j < n; j++) norm += square_of((wide)of->centre[j]);
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (long i = of->begin; i < of->end; i++) {
        const int row = of->order[i];
        const wide s = weight_of(of, row);
        distance += id == 0 ? s * norm : 0;
        for (long e = row_start[row] + id; e < row_start[row + 1]; e += GROUP) {
            const wide x = (wide)of->X[e];
            distance += s * x * (x - 2 * (wide)of->centre[col[e]]);
            to[col[e]] += s * x;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    return distance;
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
            const int row = of->order[i];
            const wide s = weight_of(of, row);
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
// build SCREEN OWNERS GROUP=128 COLS=32
// build SCREEN OWNERS WEIGHTED GROUP=128 COLS=50
// build PIECES GROUP=128 ACROSS=32 EACH=1
// build PIECES GROUP=128 ACROSS=128 EACH=4
// build PIECES CSR GROUP=128 ACROSS=1
#endif
