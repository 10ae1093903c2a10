/* GPU body of the sampled products: each entry of S with its row of A and its row of B.
 *
 * All vectors of VS threads take as many entries each, wherever rows begin and end, so that neither long rows nor empty ones make
 * a difference. A row of A, and with Y the sum of a row of Y, stay in registers as long as the row lasts; R rows of B are on their
 * way at a time. A row of Y that lies within a vector's entries is added to Y at its end; what a vector has of one that does not is
 * left in `cut`, and added in the order of the vectors by sddmm_join: no sum is atomic.
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
    NEXT(SPACE, wide, sums)                                                                                  \
    NEXT(SPACE, real, cut)                                                                                   \
    NEXT(SPACE, long, cut_row)                                                                               \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, nnz)                                                                                   \
    NEXT(VALUE, long, each)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, real, least)

#define ARGUMENTS_sddmm_join(FIRST, NEXT)                                                                    \
    FIRST(OUT, real, Y)                                                                                      \
    NEXT(TABLE, real, cut)                                                                                   \
    NEXT(TABLE, long, cut_row)                                                                               \
    NEXT(VALUE, long, vectors)                                                                               \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, real, alpha)

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

#if W == 4
#define PIECE float4
#elif W == 2 && defined(REAL_F64)
#define PIECE double2
#elif W == 2
#define PIECE float2
#endif

/* A thread's part of a row of k numbers; zeros beyond it. */
DEVICE_FN void load_row(real *to, __global const real *from, int lane, int k) {
    EACH_PIECE(q) {
#if W == 1
        to[q] = AT(q) < k ? from[AT(q)] : REAL(0.0);
#else
        if (AT(q) < k) {
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

/* A row's sum goes where it belongs. */
DEVICE_FN void add_row(__global real *Y, __global real *cut, __global long *cut_row, const real *y,
                       const struct place *at, __global const start_t *start, long vector, int lane, int k,
                       real alpha) {
    const bool before = (long)start[at->row] < at->begin, after = at->row_end > at->end;
    const long slot = 2 * vector + (before ? 0 : 1);
    __global real *to = before || after ? cut + slot * k : Y + at->row * k;
    if ((before || after) && lane == 0) cut_row[slot] = at->row;
    EACH_PIECE(q) {
        if (AT(q) < k)
            for (int w = 0; w < W; w++)
                to[AT(q) + w] = before || after ? y[q * W + w] : to[AT(q) + w] + alpha * y[q * W + w];
    }
}

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
    load_row(a, A + at.row * k, lane, k);
#endif
#ifdef WITH_Y
    struct place to = at;
    real y[PLACES];
    EACH_PLACE(p) y[p] = REAL(0.0);
    if (lane == 0) cut_row[2 * vector] = cut_row[2 * vector + 1] = -1;
#endif
    for (long step = 0; step < each; step += R) {
        const long first = at.begin + step;
        real b[R][PLACES], s[R], d[R];
        EACH_ENTRY(r) {
            const bool there = first + r < at.end;
            s[r] = there ? value[first + r] : REAL(0.0);
            load_row(b[r], B + (long)(there ? col[first + r] : 0) * k, lane, k);
        }
#if SAMPLE
        EACH_ENTRY(r) {
            if (first + r < at.end && moves_on(&at, start, first + r)) load_row(a, A + at.row * k, lane, k);
            d[r] = REAL(0.0);
            EACH_PLACE(p) d[r] += a[p] * b[r][p];
        }
#if VS > 1
        group_sum_n(d, scratch);
#endif
#endif
        EACH_ENTRY(r) {
            const long e = first + r;
            if (e < at.end) {
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
                    add_row(Y, cut, cut_row, y, &to, start, vector, lane, k, alpha);
                    moves_on(&to, start, e);
                    EACH_PLACE(p) y[p] = REAL(0.0);
                }
                EACH_PLACE(p) y[p] += f * b[r][p];
#endif
            }
        }
    }
#ifdef WITH_Y
    if (to.begin < to.end) add_row(Y, cut, cut_row, y, &to, start, vector, lane, k, alpha);
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
/* A group for each vector in whose entries a row begins that goes on in the next one's: that row's parts, in order. */
__kernel GROUP_OF(JOIN) void sddmm_join(PARAMETERS(sddmm_join)) {
    const long vector = (long)get_group_id(0), row = cut_row[2 * vector + 1];
    if (row < 0) return;
    for (int c = (int)get_local_id(0); c < k; c += JOIN) {
        real sum = cut[(2 * vector + 1) * k + c];
        for (long v = vector + 1; v < vectors && cut_row[2 * v] == row; v++) sum += cut[2 * v * k + c];
        Y[row * k + c] += alpha * sum;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SAMPLE=3 WITH_P WITH_SUM VS=8 BS=128 Q=1 W=1 R=4
// build SAMPLE=2 WITH_Y WITH_SUM VS=8 BS=128 Q=2 W=2 R=2 SHORT_STARTS
// build SAMPLE=0 WITH_Y VS=64 BS=128 Q=2 W=2 R=2
// build JOIN=64
#endif
