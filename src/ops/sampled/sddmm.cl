/* GPU body of the sampled products times a factor: each entry of S with its row of A and its row of B, which
 * is added to a row of Y.
 *
 * All vectors of VS threads take as much work each, wherever rows begin and end (derived/shares.h), so that
 * neither long rows nor short ones make a difference. A row of A and the sum of a row of Y stay in registers
 * as long as the row lasts; R rows of B are on their way at a time. A row of Y that lies within a vector's
 * entries is written at its end. Of one that does not, the vector in whose entries it begins adds up what the
 * next vectors of its group have left in `cut`, in their order; what groups have of a row that goes beyond
 * them is added up, group by group, by sddmm_join, which also writes the rows without entries: no sum is
 * atomic, and no row of Y is touched twice.
 *
 * Where the second cache level does not hold B, a launch takes `width` of the k numbers of each row, from
 * `first` on, and the next launch the next ones. SAMPLE is kiln_sample_kind, or 0: then the entries
 * themselves are the factors, and there is no A. */
#define ARGUMENTS_sddmm(FIRST, NEXT)                                                                         \
    FIRST(TABLE, start_t, start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(TABLE, real, value)                                                                                 \
    NEXT(IN, factor, A)                                                                                      \
    NEXT(IN, factor, B)                                                                                      \
    NEXT(OUT, real, Y)                                                                                       \
    NEXT(IN, real, Z)                                                                                        \
    NEXT(SPACE, wide, sums)                                                                                  \
    NEXT(SPACE, real, cut)                                                                                   \
    NEXT(SPACE, long, cut_row)                                                                               \
    NEXT(TABLE, long, share_begin)                                                                           \
    NEXT(TABLE, long, share_row)                                                                             \
    NEXT(VALUE, long, each)                                                                                  \
    NEXT(VALUE, long, more)                                                                                  \
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
    NEXT(TABLE, long, share_begin)                                                                           \
    NEXT(VALUE, long, each)                                                                                  \
    NEXT(VALUE, long, more)                                                                                  \
    NEXT(VALUE, long, vectors)                                                                               \
    NEXT(VALUE, int, in_group)                                                                               \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, width)                                                                                  \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)

#ifndef KI_HOST
#include "dialect/gathered.h"
#include "dialect/real_math.h"

#ifdef SAMPLE
/* Says where rows of Y go: from the slice's first number on, rows of k numbers, of which `width` are written;
 * and what vectors have of rows that they share, `width` numbers each. */
struct result {
    __global real *Y, *cut;
    __global const real *Z;
    int k, width;
    real alpha, beta;
};

/* Y's row = alpha y + beta Z's. */
DEVICE_FN void write_row(const struct result *to, const real *y, long row, int lane) {
    const long at = row * to->k;
    EACH_PIECE(q) if (HAS(q, to->width)) {
        real sum[W], z[W];
        for (int w = 0; w < W; w++) sum[w] = to->alpha * y[q * W + w];
        if (to->beta != REAL(0.0)) {
            load_wide(z, to->Z + at + AT(q));
            for (int w = 0; w < W; w++) sum[w] += to->beta * z[w];
        }
        store_wide(to->Y + at + AT(q), sum);
    }
}

/* y += what the vectors from `from` to `last` have left of a row that ends at entry `end`. Vectors without
 * entries leave nothing. */
DEVICE_FN void add_parts(const struct result *to, real *y, const struct shares *shares, long from, long last,
                         long end, int lane) {
    long begin = begin_of(shares, from);
    for (long v = from; v <= last && begin < end; v++) {
        const long next = begin_of(shares, v + 1);
        if (next > begin) EACH_PIECE(q) if (HAS(q, to->width)) {
                real part[W];
                load_wide(part, to->cut + v * to->width + AT(q));
                for (int w = 0; w < W; w++) y[q * W + w] += part[w];
            }
        begin = next;
    }
}

/* The row that a vector is at when its entries end, or another begins: written, or if it began before them
 * left in `cut`. True if it begins in them and goes on. */
DEVICE_FN bool end_row(const struct result *to, real *y, const struct place *at,
                       __global const start_t *start, long vector, int lane) {
    if ((long)start[at->row] < at->begin)
        store_row(to->cut + vector * to->width, y, lane, to->width);
    else if (at->row_end > at->count)
        return true;
    else
        write_row(to, y, at->row, lane);
    return false;
}

/* Finds what the vectors of a group have of one row. `beyond` is the group's own place: of a row from before
 * it, then of one that goes on. */
DEVICE_FN void join_group(const struct result *to, real *y, const struct place *at, bool goes_on,
                          long head_end, const struct shares *shares, __global const start_t *start,
                          __global real *beyond, __global long *cut_row, long vector, int lane) {
    const long last = ((long)get_group_id(0) + 1) * (BS / VS) - 1;
    if (goes_on) {
        const long end = (long)start[at->row + 1];
        add_parts(to, y, shares, vector + 1, last, end, lane);
        if (end <= begin_of(shares, last + 1)) {
            write_row(to, y, at->row, lane);
        } else {
            store_row(beyond + to->width, y, lane, to->width);
            if (lane == 0) cut_row[get_group_id(0)] = at->row;
        }
    }
    if ((int)get_local_id(0) < VS && head_end > at->begin) {
        EACH_PLACE(p) y[p] = REAL(0.0);
        add_parts(to, y, shares, vector, last, head_end, lane);
        store_row(beyond, y, lane, to->width);
    }
}

/* Rows of at most three pieces a thread leave registers for five groups of 128, but compilers would use more
 * than that. */
#if defined(REAL_F32) && BS == 128 && Q <= 3
#define BESIDE 5
#else
#define BESIDE 1
#endif

__kernel GROUP_BESIDE(BS, BESIDE) void sddmm(PARAMETERS(sddmm)) {
#if SAMPLE && VS > 1
    LOCAL real scratch[R * BS];
#endif
    const int id = (int)get_local_id(0), lane = id % VS;
    const long vector = (long)get_group_id(0) * (BS / VS) + id / VS;
    const struct result result = {Y + first, cut, Z + first, k, width, alpha, beta};
    LOCAL int counts[BS / VS];
    const struct shares shares = {share_begin, share_row, each, more};
    struct place to = place_of(&shares, start, vector);
    const int most = most_of(to.count, counts);
    /* where the row ends that began before the vector's entries; 0: there is none */
    const long head_end = (long)start[to.row] < to.begin ? (long)start[to.row + 1] : 0;
    real y[PLACES];
#ifdef WITH_SUM
    wide sum = 0;
#endif
#if SAMPLE
    struct place at = to;
    real a[PLACES];
    word row[WORDS];
    A += first;
    load_factor(row, A + at.row * k, lane, width);
    widen(a, row);
#endif
    B += first;
    col += to.begin;
    value += to.begin;
    EACH_PLACE(p) y[p] = REAL(0.0);
    if (id == 0) cut_row[get_group_id(0)] = -1;
    for (int step = 0; step < most; step += R) {
        word b[R][WORDS];
        real s[R], d[R];
        int c[R];
        load_columns(c, col, step, to.count);
        EACH_ENTRY(r) {
            s[r] = step + r < to.count ? value[step + r] : REAL(0.0);
            load_factor(b[r], B + (long)c[r] * k, lane, width);
            d[r] = REAL(0.0);
        }
#if SAMPLE
        dots(d, a, b, &at, start, A, step, k, lane, width);
#if VS > 1
        group_sum_n(d, scratch);
#endif
#endif
        EACH_ENTRY(r) if (step + r < to.count) {
            const real f = sample_value(SAMPLE, s[r], d[r], least);
#ifdef WITH_SUM
            sum += sample_part(SAMPLE, s[r], d[r], least);
#endif
            if (step + r >= to.row_end) {
                end_row(&result, y, &to, start, vector, lane);
                moves_on(&to, start, step + r);
                EACH_PLACE(p) y[p] = REAL(0.0);
            }
            EACH_PLACE(p) y[p] += f * number_of(b[r], p);
        }
    }
    const bool goes_on = to.count > 0 && end_row(&result, y, &to, start, vector, lane);
    barrier(CLK_GLOBAL_MEM_FENCE);
    join_group(&result, y, &to, goes_on, head_end, &shares, start,
               cut + (vectors + 2 * (long)get_group_id(0)) * width, cut_row, vector, lane);
#ifdef WITH_SUM
    LOCAL wide tree[BS];
    const wide total = group_total(lane == 0 ? sum : (wide)0, tree);
    if (id == 0) sums[get_group_id(0)] = total;
#endif
}
#endif

#ifdef JOIN
DEVICE_FN void write_number(__global real *Y, __global const real *Z, long at, real sum, real beta) {
    Y[at] = sum + (beta == REAL(0.0) ? REAL(0.0) : beta * Z[at]);
}

/* Number c of the row that begins in a group of sddmm's and ends at entry `end` beyond it: its parts in the
 * order of the groups. */
DEVICE_FN real whole_of(const struct shares *shares, __global const real *beyond, int in_group, long end,
                        int width, int c) {
    const long group = (long)get_group_id(0), groups = (long)get_num_groups(0);
    real sum = beyond[(2 * group + 1) * width + c];
    for (long g = group + 1; g < groups && begin_of(shares, g * in_group) < end; g++)
        sum += beyond[2 * g * width + c];
    return sum;
}

/* A group for each of sddmm's: the row that goes on beyond it, and a share of the rows without entries. Of
 * those, 32 threads write what they have found, one row after the other. */
__kernel GROUP_OF(JOIN) void sddmm_join(PARAMETERS(sddmm_join)) {
    LOCAL int empty[JOIN];
    const long group = (long)get_group_id(0), groups = (long)get_num_groups(0), row = cut_row[group];
    const int id = (int)get_local_id(0), lane = id % 32, before = id - lane;
    Y += first;
    Z += first;
    if (row >= 0) {
        const struct shares shares = {share_begin, share_begin, each, more};
        const long end = (long)start[row + 1];
        for (int c = id; c < width; c += JOIN)
            write_number(Y, Z, row * k + c,
                         alpha * whole_of(&shares, cut + vectors * width, in_group, end, width, c), beta);
    }
    for (long at = group * JOIN; at < rows; at += groups * JOIN) {
        empty[id] = at + id < rows && start[at + id] == start[at + id + 1];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int t = before; t < before + 32; t++)
            if (empty[t])
                for (int c = lane; c < width; c += 32) write_number(Y, Z, (at + t) * k + c, REAL(0.0), beta);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SAMPLE=2 WITH_SUM VS=8 BS=128 Q=2 W=2 R=2 SHORT_STARTS
// build SAMPLE=3 VS=8 BS=128 Q=1 W=1 R=8
// build SAMPLE=0 VS=64 BS=128 Q=2 W=2 R=2
// build SAMPLE=2 VS=8 BS=128 Q=1 W=4 R=8 FULL
// build SAMPLE=4 WITH_SUM VS=8 BS=128 Q=2 W=4 R=8 HALVES=1
// build SAMPLE=1 VS=4 BS=128 Q=3 W=1 R=8 HALVES=2 SHORT_STARTS
// build JOIN=128
// build JOIN=128 SHORT_STARTS
// pack {f32|f64} JOIN=128 {|SHORT_STARTS}
#endif
