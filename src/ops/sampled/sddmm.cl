/* GPU body of the sampled products: each entry of S with its row of A and its row of B.
 *
 * All vectors of VS threads take as many entries each, wherever rows begin and end, so that neither long rows nor empty ones make
 * a difference. A row of A, and with Y the sum of a row of Y, stay in registers as long as the row lasts; R rows of B are on their
 * way at a time. A row of Y that lies within a vector's entries is written at its end. Of one that does not, the vector in whose
 * entries it begins adds up what the next vectors of its group have left in `cut`, in their order; what groups have of a row that goes
 * beyond them is added up, group by group, by sddmm_join, which also writes the rows without entries: no sum is atomic, and no row of
 * Y is touched twice.
 *
 * Where the second cache level does not hold B, a launch takes `width` of the k numbers of each row, from `first` on, and the next
 * launch the next ones. Sampled products are added up in P meanwhile (SLICED).
 *
 * SAMPLE is kiln_sample_kind, or 0, WITH_P, WITH_Y and WITH_SUM say what is wanted. A thread has Q pieces of W numbers of a row, k
 * being a multiple of W. */
#define ARGUMENTS_sddmm(FIRST, NEXT)                                                                         \
    FIRST(TABLE, start_t, start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(TABLE, real, value)                                                                                 \
    NEXT(IN, real, A)                                                                                        \
    NEXT(IN, real, B)                                                                                        \
    NEXT(OUT, real, P)                                                                                       \
    NEXT(OUT, real, Y)                                                                                       \
    NEXT(IN, real, Z)                                                                                        \
    NEXT(SPACE, wide, sums)                                                                                  \
    NEXT(SPACE, real, cut)                                                                                   \
    NEXT(SPACE, long, cut_row)                                                                               \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, nnz)                                                                                   \
    NEXT(VALUE, long, each)                                                                                  \
    NEXT(VALUE, long, vectors)                                                                               \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, width)                                                                                  \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, real, least)

#define ARGUMENTS_sddmm_join(FIRST, NEXT)                                                                    \
    FIRST(OUT, real, Y)                                                                                      \
    NEXT(IN, real, Z)                                                                                        \
    NEXT(TABLE, start_t, start)                                                                              \
    NEXT(TABLE, real, cut)                                                                                   \
    NEXT(TABLE, long, cut_row)                                                                               \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, groups)                                                                                \
    NEXT(VALUE, long, each)                                                                                  \
    NEXT(VALUE, long, vectors)                                                                               \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, width)                                                                                  \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)

#ifndef KI_HOST
#ifdef SHORT_STARTS
typedef int start_t;
#else
typedef long start_t;
#endif

#ifdef SAMPLE
#define PLACES (Q * W)
#define EACH_PIECE(q) _Pragma("unroll") for (int q = 0; q < Q; q++)
#define EACH_PLACE(p) _Pragma("unroll") for (int p = 0; p < PLACES; p++)
#define EACH_ENTRY(r) _Pragma("unroll") for (int r = 0; r < R; r++)
#define AT(q) (((q)*VS + lane) * W) /* where a thread's piece of a row begins */

#if W == 4 && defined(REAL_F64)
#define PIECE double4
#elif W == 4
#define PIECE float4
#elif W == 2 && defined(REAL_F64)
#define PIECE double2
#elif W == 2
#define PIECE float2
#endif

/* A thread's part of `width` numbers of a row; zeros beyond them. */
DEVICE_FN void load_row(real *to, __global const real *from, int lane, int width) {
    EACH_PIECE(q) {
#if W == 1
        to[q] = AT(q) < width ? from[AT(q)] : REAL(0.0);
#else
        if (AT(q) < width) {
            const PIECE piece = *(__global const PIECE *)(from + AT(q));
            to[q * W] = piece.x;
            to[q * W + 1] = piece.y;
#if W == 4
            to[q * W + 2] = piece.z;
            to[q * W + 3] = piece.w;
#endif
        } else {
            for (int w = 0; w < W; w++) to[q * W + w] = REAL(0.0);
        }
#endif
    }
}

/* The row that entry e is in. */
DEVICE_FN long row_of(__global const start_t *start, long rows, long e) {
    long low = 0, high = rows;
    while (high - low > 1) {
        const long middle = (low + high) / 2;
        if ((long)start[middle] <= e)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A vector's entries, and the row that it is at. */
struct place {
    long begin, end;
    long row, row_end;
};

DEVICE_FN bool moves_on(struct place *at, __global const start_t *start, long e) {
    const bool beyond = e >= at->row_end;
    while (e >= at->row_end) at->row_end = (long)start[++at->row + 1];
    return beyond;
}

/* A thread's part of a row, to where the row is. */
DEVICE_FN void store_row(__global real *to, const real *from, int lane, int width) {
    EACH_PIECE(q) {
        if (AT(q) < width) {
#if W == 4
            PIECE piece = {from[q * W], from[q * W + 1], from[q * W + 2], from[q * W + 3]};
            *(__global PIECE *)(to + AT(q)) = piece;
#elif W == 2
            PIECE piece = {from[q * W], from[q * W + 1]};
            *(__global PIECE *)(to + AT(q)) = piece;
#else
            to[AT(q)] = from[q];
#endif
        }
    }
}

#ifdef WITH_Y
/* Where rows of Y go: from the slice's first number on, rows of k numbers, of which `width` are written. */
struct result {
    __global real *Y;
    __global const real *Z;
    int k, width;
    real alpha, beta;
};

/* Y's row = alpha y + beta Z's. */
DEVICE_FN void write_row(const struct result *to, real *y, long row, int lane) {
    real z[PLACES];
    if (to->beta != REAL(0.0)) load_row(z, to->Z + row * to->k, lane, to->width);
    EACH_PLACE(p) y[p] = to->alpha * y[p] + (to->beta == REAL(0.0) ? REAL(0.0) : to->beta * z[p]);
    store_row(to->Y + row * to->k, y, lane, to->width);
}

/* y += what the vectors from `from` to `last` have left. */
DEVICE_FN void add_parts(real *y, __global const real *cut, long from, long last, int lane, int width) {
    for (long v = from; v <= last; v++) {
        real part[PLACES];
        load_row(part, cut + v * width, lane, width);
        EACH_PLACE(p) y[p] += part[p];
    }
}

/* The row that a vector is at when its entries end, or another begins: written, or if it began before them left in `cut`. True if
 * it begins in them and goes on. */
DEVICE_FN bool end_row(const struct result *to, __global real *cut, real *y, const struct place *at,
                       __global const start_t *start, long vector, int lane) {
    if ((long)start[at->row] < at->begin)
        store_row(cut + vector * to->width, y, lane, to->width);
    else if (at->row_end > at->end)
        return true;
    else
        write_row(to, y, at->row, lane);
    return false;
}
#endif

__kernel GROUP_OF(BS) void sddmm(PARAMETERS(sddmm)) {
#if VS > 1
    LOCAL real scratch[R * BS];
#endif
    const int id = (int)get_local_id(0), lane = id % VS;
    const long vector = (long)get_group_id(0) * (BS / VS) + id / VS;
    struct place at;
    at.begin = vector * each < nnz ? vector * each : nnz;
    at.end = at.begin + each < nnz ? at.begin + each : nnz;
    at.row = at.begin < at.end ? row_of(start, rows, at.begin) : 0;
    at.row_end = at.begin < at.end ? (long)start[at.row + 1] : nnz;
#ifdef WITH_SUM
    wide sum = 0;
#endif
#if SAMPLE
    real a[PLACES];
    A += first;
    load_row(a, A + at.row * k, lane, width);
#endif
    B += first;
#ifdef WITH_Y
    struct place to = at;
    /* where the row ends that began before the vector's entries; 0: there is none */
    const long head_end = at.begin < at.end && (long)start[at.row] < at.begin ? at.row_end : 0;
    const struct result result = {Y + first, Z + first, k, width, alpha, beta};
    real y[PLACES];
    EACH_PLACE(p) y[p] = REAL(0.0);
    if (id == 0) cut_row[get_group_id(0)] = -1;
#endif
    for (long step = 0; step < each; step += R) {
        const long next = at.begin + step;
        real b[R][PLACES], s[R], d[R];
        EACH_ENTRY(r) {
            const bool there = next + r < at.end;
            s[r] = there ? value[next + r] : REAL(0.0);
            load_row(b[r], B + (long)(there ? col[next + r] : 0) * k, lane, width);
        }
#if SAMPLE
        EACH_ENTRY(r) {
            if (next + r < at.end && moves_on(&at, start, next + r)) load_row(a, A + at.row * k, lane, width);
            d[r] = REAL(0.0);
            EACH_PLACE(p) d[r] += a[p] * b[r][p];
        }
#if VS > 1
        group_sum_n(d, scratch);
#endif
#endif
        EACH_ENTRY(r) {
            const long e = next + r;
            if (e < at.end) {
#ifdef SLICED
                if (first > 0) d[r] += P[e];
                if (first + width < k) {
                    if (lane == 0) P[e] = d[r];
                    continue;
                }
#endif
#if SAMPLE
                const real f = sample_value(SAMPLE, s[r], d[r], least);
#else
                const real f = s[r];
#endif
#ifdef WITH_SUM
                sum += sample_part(SAMPLE, s[r], d[r], least);
#endif
#ifdef WITH_P
                if (lane == 0) P[e] = alpha * f + (beta == REAL(0.0) ? REAL(0.0) : beta * P[e]);
#endif
#ifdef WITH_Y
                if (e >= to.row_end) {
                    end_row(&result, cut, y, &to, start, vector, lane);
                    moves_on(&to, start, e);
                    EACH_PLACE(p) y[p] = REAL(0.0);
                }
                EACH_PLACE(p) y[p] += f * b[r][p];
#endif
            }
        }
    }
#ifdef WITH_Y
    const bool goes_on = to.begin < to.end && end_row(&result, cut, y, &to, start, vector, lane);
    barrier(CLK_GLOBAL_MEM_FENCE);
    const long group = (long)get_group_id(0), last = (group + 1) * (BS / VS) - 1;
    __global real *beyond =
        cut +
        (vectors + 2 * group) * width; /* the group's own: of a row from before it, of one that goes on */
    if (goes_on) {
        const long ends = (to.row_end - 1) / each;
        add_parts(y, cut, vector + 1, ends < last ? ends : last, lane, width);
        if (ends <= last) {
            write_row(&result, y, to.row, lane);
        } else {
            store_row(beyond + width, y, lane, width);
            if (lane == 0) cut_row[group] = to.row;
        }
    }
    if (id < VS && head_end > at.begin) {
        const long ends = (head_end - 1) / each;
        EACH_PLACE(p) y[p] = REAL(0.0);
        add_parts(y, cut, vector, ends < last ? ends : last, lane, width);
        store_row(beyond, y, lane, width);
    }
#endif
#ifdef WITH_SUM
    LOCAL wide tree[BS];
    tree[id] = lane == 0 ? sum : (wide)0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = BS / 2; reach > 0; reach /= 2) {
        if (id < reach) tree[id] += tree[id + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) sums[get_group_id(0)] = tree[0];
#endif
}
#endif

#ifdef JOIN
#define CHECKED 8 /* rows, by a thread at once */

DEVICE_FN void write_number(__global real *Y, __global const real *Z, long at, real sum, real beta) {
    Y[at] = sum + (beta == REAL(0.0) ? REAL(0.0) : beta * Z[at]);
}

/* A group for each of sddmm's: the row that begins there and goes on beyond it, its parts in order; and a share of the rows
 * without entries. */
__kernel GROUP_OF(JOIN) void sddmm_join(PARAMETERS(sddmm_join)) {
    LOCAL int empty[JOIN];
    const long group = (long)get_group_id(0), row = cut_row[group];
    const int id = (int)get_local_id(0);
    __global const real *beyond = cut + vectors * width;
    Y += first;
    Z += first;
    if (row >= 0) {
        const long last = ((long)start[row + 1] - 1) / each;
        for (int c = id; c < width; c += JOIN) {
            real sum = beyond[(2 * group + 1) * width + c];
            for (long g = group + 1; g <= last; g++) sum += beyond[2 * g * width + c];
            write_number(Y, Z, row * k + c, alpha * sum, beta);
        }
    }
    for (long at = group * JOIN * CHECKED; at < rows; at += groups * JOIN * CHECKED) {
        int found = 0;
        for (int i = 0; i < CHECKED; i++) {
            const long r = at + id * CHECKED + i;
            if (r < rows && start[r] == start[r + 1]) found |= 1 << i;
        }
        empty[id] = found;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = 0; t < JOIN; t++)
            for (int i = 0; empty[t] >> i; i++)
                if (empty[t] >> i & 1)
                    for (int c = id; c < width; c += JOIN)
                        write_number(Y, Z, (at + t * CHECKED + i) * k + c, REAL(0.0), beta);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SAMPLE=3 WITH_P WITH_SUM VS=8 BS=128 Q=1 W=1 R=4
// build SAMPLE=3 WITH_P WITH_SUM VS=8 BS=128 Q=4 W=4 R=2 SLICED
// build SAMPLE=2 WITH_Y WITH_SUM VS=8 BS=128 Q=2 W=2 R=2 SHORT_STARTS
// build SAMPLE=0 WITH_Y VS=64 BS=128 Q=2 W=2 R=2
// build JOIN=128
// build JOIN=128 SHORT_STARTS
#endif
