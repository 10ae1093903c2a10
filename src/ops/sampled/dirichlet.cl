/* GPU body of kiln_dirichlet_expect: a group a row, which it reads twice, the second time from the cache.
 * Each group leaves its bound and change. */

#define ARGUMENTS_dirichlet(FIRST, NEXT)                                                                     \
    FIRST(OUT, real, G)                                                                                      \
    NEXT(OUT, real, T)                                                                                       \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(IN, real, prior)                                                                                    \
    NEXT(IN, real, shift)                                                                                    \
    NEXT(OUT, real, scale)                                                                                   \
    NEXT(OUT, real, logs)                                                                                    \
    NEXT(SPACE, wide, sums)                                                                                  \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, by_rows)

#ifndef KI_HOST
#include "dialect/scalar_math.h"

/* The sum, or the largest, of the group's x, for all of its threads. */
DEVICE_FN wide joined(wide x, int largest, LOCAL_PTR wide *tree) {
    const int id = (int)get_local_id(0);
    tree[id] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        if (id < reach) {
            const wide other = tree[id + reach];
            if (!largest)
                tree[id] += other;
            else if (other > tree[id])
                tree[id] = other;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const wide result = tree[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

__kernel GROUP_OF(GROUP) void dirichlet(PARAMETERS(dirichlet)) {
    LOCAL wide tree[GROUP];
    const int id = (int)get_local_id(0);
    wide bound = 0, change = 0;
    for (long i = (long)get_group_id(0); i < count; i += (long)get_num_groups(0)) {
        wide total = 0, most = -(wide)INFINITY;
        for (int c = id; c < k; c += GROUP) {
            const long e = i * k + c;
            if (Y) {
                const real next = prior[c] + T[e] * Y[e];
                const wide step = (wide)next - (wide)G[e];
                change += step < 0 ? -step : step;
                G[e] = next;
            }
            const wide l = digamma((wide)G[e]) - (shift ? (wide)shift[c] : (wide)0);
            T[e] = (real)l;
            total += (wide)G[e];
            most = (wide)(real)l > most ? (wide)(real)l : most;
        }
        total = joined(total, 0, tree);
        most = joined(most, 1, tree);
        const wide less = by_rows ? digamma(total) : (wide)0;
        for (int c = id; c < k; c += GROUP) {
            const long e = i * k + c;
            const wide l = (wide)T[e];
            if (logs) logs[e] = (real)(l - less);
            T[e] = (real)exp((real)(l - most));
#ifdef BOUND
            const wide g = (wide)G[e], exact = digamma(g) - (shift ? (wide)shift[c] : (wide)0) - less;
            bound += ((wide)prior[c] - g) * exact + log_gamma_positive(g);
#endif
        }
        if (id == 0 && scale) scale[i] = (real)(most - less);
#ifdef BOUND
        if (id == 0 && by_rows) bound -= log_gamma_positive(total);
#endif
    }
    bound = joined(bound, 0, tree);
    change = joined(change, 0, tree);
    if (id == 0) {
        sums[2 * (long)get_group_id(0)] = bound;
        sums[2 * (long)get_group_id(0) + 1] = change;
    }
}

/* The variants that differ in text, as the tests build them. */
// build GROUP=64
// build GROUP=64 BOUND
// pack {f32|f64} GROUP=64 {|BOUND}
#endif
