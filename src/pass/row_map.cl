/* The softmax maps on their own, for more classes than one launch of a pass holds, and the end of every pass
 * with a map: the sum of the groups' records (dialect/pass.h). */

#define ARGUMENTS_mmchain_map(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, eta)                                                                                    \
    NEXT(IN, real, v)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(IN, real, shift)                                                                                    \
    NEXT(IN, real, target)                                                                                   \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(OUT, real, curvature)                                                                               \
    NEXT(SPACE, wide, records)                                                                               \
    NEXT(VALUE, long, records_at)

#define ARGUMENTS_mmchain_records(FIRST, NEXT)                                                               \
    FIRST(OUT, real, sums)                                                                                   \
    NEXT(OUT, wide, products)                                                                                \
    NEXT(SPACE, wide, records)                                                                               \
    NEXT(VALUE, long, records_at)                                                                            \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, size)                                                                                   \
    NEXT(VALUE, int, head)                                                                                   \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)

#ifndef KI_HOST
#include "dialect/pass.h"

/* eta (rows x k) = X y on entry, what multiplies X^T on return. VS threads share a row, so that a row's
 * numbers are one piece of memory to them and k may be what it likes: the row stays where it is, in the
 * cache, and is walked over a few times. The formulas are those of softmax_row, softmax_slope_row and
 * softmax_curve_row in dialect/losses.h. A group's record is the sum of its losses alone. */
#ifdef ROWS
#define NV (GROUP / VS)

/* The sum of what a row's threads have, or the largest; the same in all of them. Every thread of the group
 * takes part. */
DEVICE_FN real over_row(LOCAL_PTR real *part, real mine, bool largest) {
    const int id = (int)get_local_id(0), first = id / VS * VS;
    real all;
    part[id] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    all = part[first];
    for (int i = 1; i < VS; i++) {
        const real other = part[first + i];
        all = largest ? (other > all ? other : all) : all + other;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return all;
}

__kernel GROUP_OF(GROUP) void mmchain_map(PARAMETERS(mmchain_map)) {
    LOCAL real part[GROUP];
    LOCAL wide losses[GROUP];
    const int id = (int)get_local_id(0), lane = id % VS;
    wide loss = 0;
    for (long base = (long)get_group_id(0) * NV; base < rows; base += (long)get_num_groups(0) * NV) {
        const long row = base + id / VS;
        const bool there = row < rows;
        const index_t first = (index_t)(there ? row : 0) * k;
        const int count = there ? k : 0;
        const real s = there && weights ? weights[row] : REAL(1.0);
#if CURVATURE /* s p .* (q - sum_j p_j q_j), each q less that of the likeliest class, or the largest of
               * such */
        real most = REAL(0.0), peak = -REAL_INFINITY, mean = REAL(0.0);
        for (int c = lane; c < count; c += VS) {
            if (shift) eta[first + c] += shift[c];
            most = v[first + c] > most ? v[first + c] : most;
        }
        most = over_row(part, most, true);
        for (int c = lane; c < count; c += VS) {
            const real q = eta[first + c];
            peak = v[first + c] == most && q > peak ? q : peak;
        }
        peak = over_row(part, peak, true);
        for (int c = lane; c < count; c += VS) mean += v[first + c] * (eta[first + c] - peak);
        mean = over_row(part, mean, false);
        for (int c = lane; c < count; c += VS) {
            const real q = v[first + c] * ((eta[first + c] - peak) - mean);
            eta[first + c] = s == REAL(0.0) ? REAL(0.0) : s * q;
        }
#else /* s (softmax(q) - e_y); a target that is no class makes the loss NaN */
        const real y = there ? target[row] : REAL(0.0);
        const int label = y >= REAL(0.0) && y < (real)k ? (int)y : -1;
        real largest = -REAL_INFINITY, rest = REAL(0.0), ties = REAL(0.0), others = REAL(0.0);
        real at_label = label < 0 ? (real)NAN : REAL(0.0);
        for (int c = lane; c < count; c += VS) {
            const real q = eta[first + c] + (shift ? shift[c] : REAL(0.0));
            eta[first + c] = q;
            largest = q > largest ? q : largest;
        }
        largest = over_row(part, largest, true);
        for (int c = lane; c < count; c += VS) {
            const real q = eta[first + c] - largest, e = exp(q);
            if (c == label) at_label = q;
            eta[first + c] = e;
            ties += q == REAL(0.0) ? e : REAL(0.0); /* 1 each */
            rest += q == REAL(0.0) ? REAL(0.0) : e;
        }
        ties = over_row(part, ties, false);
        rest = (ties - REAL(1.0)) + over_row(part, rest, false);
        for (int c = lane; c < count; c += VS) {
            const real p = eta[first + c] / (REAL(1.0) + rest);
            if (curvature) curvature[first + c] = p;
            eta[first + c] = p;
            others += c == label ? REAL(0.0) : p;
        }
        others = over_row(part, others, false);
        for (int c = lane; c < count; c += VS) {
            const real g = c == label ? -others : eta[first + c];
            eta[first + c] = s == REAL(0.0) ? REAL(0.0) : s * g;
        }
        if (there && s != REAL(0.0) && lane == (label < 0 ? 0 : label % VS))
            loss += (wide)(s * (log1p(rest) - at_label));
#endif
    }
    losses[id] = loss;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = GROUP / 2; step > 0; step /= 2) {
        if (id < step) losses[id] += losses[id + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) records[records_at + (long)get_group_id(0)] = losses[0];
}
#endif

/* Group c adds up the c-th number of every record, in order: the first `head` are products, or the loss,
 * which stays in the first record, from where the host reads it; the others are sums. */
#ifdef RECORDS
__kernel GROUP_OF(128) void mmchain_records(PARAMETERS(mmchain_records)) {
    LOCAL wide tree[128];
    const int id = (int)get_local_id(0), c = (int)get_group_id(0);
    wide sum = 0;
    records += records_at;
    for (int g = id; g < groups; g += 128) sum += records[(long)g * size + c];
    tree[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 64; step > 0; step /= 2) {
        if (id < step) tree[id] += tree[id + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id != 0) return;
    if (c >= head) {
        if (sums && first + c - head < k) sums[first + c - head] = (real)tree[0];
    } else if (products) {
        if (first + c < k) products[first + c] = tree[0];
    } else if (c == 0) {
        records[0] = tree[0];
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build ROWS GROUP=128 VS=32 CURVATURE=0
// build ROWS GROUP=128 VS=32 CURVATURE=1 INDEX64
// build RECORDS
// pack {f32|f64} {RECORDS|ROWS GROUP=128 VS=32 CURVATURE={0|1}}
#endif
