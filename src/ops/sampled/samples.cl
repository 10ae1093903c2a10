/* GPU body of the sampled products alone: P_ij = alpha f(s_ij, a_i . b_j) + beta P_ij at the entries of S,
 * and their sum.
 *
 * All vectors of VS threads take as much work each, wherever rows begin and end (derived/shares.h), R entries
 * at a time, whose rows of B are on their way together. With AHEAD so are their rows of A: one for each
 * entry, for S with few entries a row, where waiting for the next row would take longest. Otherwise a row of
 * A stays in registers as long as it lasts. The R dot products are added up by exchanges that halve the
 * numbers a thread is in charge of, so that each entry ends with a thread of its own, which finishes and
 * writes it.
 *
 * With SLICED a launch takes `width` of the k numbers of each row, from `first` on, and the next launch the
 * next ones; P holds what is added up meanwhile. */
#define ARGUMENTS_samples(FIRST, NEXT)                                                                       \
    FIRST(TABLE, start_t, start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(TABLE, real, value)                                                                                 \
    NEXT(IN, factor, A)                                                                                      \
    NEXT(IN, factor, B)                                                                                      \
    NEXT(OUT, real, P)                                                                                       \
    NEXT(SPACE, wide, sums)                                                                                  \
    NEXT(TABLE, long, share_begin)                                                                           \
    NEXT(TABLE, long, share_row)                                                                             \
    NEXT(VALUE, long, each)                                                                                  \
    NEXT(VALUE, long, more)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, width)                                                                                  \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, real, least)

#ifndef KI_HOST
#include "dialect/gathered.h"
#include "dialect/real_math.h"

#define OWN (R > VS ? R / VS : 1) /* entries that a thread finishes */

/* Holds what the entries of a launch become, and where that goes. */
struct finish {
    __global const real *value;
    __global real *P;
    real alpha, beta, least;
    bool begins, ends; /* this slice is the first, the last */
};

/* Entry e, whose dot product is d, or of a slice of it; returns its part of the sum. */
DEVICE_FN wide finish_entry(const struct finish *to, int e, real s, real d) {
#ifdef SLICED
    if (!to->begins) d += to->P[e];
    if (!to->ends) {
        to->P[e] = d;
        return 0;
    }
#endif
#ifdef WITH_P
    to->P[e] = to->alpha * sample_value(SAMPLE, s, d, to->least) +
               (to->beta == REAL(0.0) ? REAL(0.0) : to->beta * to->P[e]);
#endif
#ifdef WITH_SUM
    return sample_part(SAMPLE, s, d, to->least);
#else
    return 0;
#endif
}

__kernel GROUP_OF(BS) void samples(PARAMETERS(samples)) {
#if VS > 1
    LOCAL real scratch[R * BS];
#endif
    const int id = (int)get_local_id(0), lane = id % VS, own = lane * R / VS;
    LOCAL int counts[BS / VS];
    const struct shares shares = {share_begin, share_row, each, more};
    struct place at = place_of(&shares, start, (long)get_group_id(0) * (BS / VS) + id / VS);
    const int most = most_of(at.count, counts);
    const struct finish to = {value + at.begin, P + at.begin,      alpha, beta, least,
                              first == 0,       first + width >= k};
    real a[PLACES];
    word row[WORDS];
    wide sum = 0;
    A += first;
    B += first;
    col += at.begin;
    load_factor(row, A + at.row * k, lane, width);
    widen(a, row);
    for (int step = 0; step < most; step += R) {
        word b[R][WORDS];
        real d[R], s[OWN];
        int c[R];
        load_columns(c, col, step, at.count);
        EACH_ENTRY(r) load_factor(b[r], B + (long)c[r] * k, lane, width);
        for (int i = 0; i < OWN; i++)
            s[i] = step + own + i < at.count ? to.value[step + own + i] : REAL(0.0);
        dots(d, a, b, &at, start, A, step, k, lane, width);
#if VS > 1
        own_sums(d, scratch);
#endif
        for (int i = 0; i < OWN; i++)
            if (own * VS == lane * R && step + own + i < at.count)
                sum += finish_entry(&to, step + own + i, s[i], d[i]);
    }
#ifdef WITH_SUM
    LOCAL wide tree[BS];
    const wide total = group_total(sum, tree);
    if (id == 0) sums[get_group_id(0)] = total;
#endif
}

/* The variants that differ in text, as the tests build them. */
// build SAMPLE=3 WITH_P WITH_SUM VS=8 BS=128 Q=1 W=1 R=4
// build SAMPLE=3 WITH_P VS=8 BS=128 Q=1 W=4 R=8 FULL
// build SAMPLE=2 WITH_P VS=8 BS=128 Q=4 W=4 R=2 SLICED
// build SAMPLE=1 WITH_SUM VS=2 BS=128 Q=1 W=2 R=8 AHEAD
// build SAMPLE=4 WITH_P VS=64 BS=128 Q=2 W=2 R=2 AHEAD
// build SAMPLE=2 WITH_P VS=8 BS=128 Q=2 W=8 R=4 HALVES=1
// build SAMPLE=2 WITH_P VS=4 BS=128 Q=2 W=4 R=8 HALVES=2 AHEAD
// build SAMPLE=2 WITH_P VS=4 BS=128 Q=2 W=1 R=8 HALVES=1
#endif
