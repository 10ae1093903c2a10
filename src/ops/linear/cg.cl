/* GPU body of kiln_cg_step (ops/linear/cg.c): three launches, and the scalars never leave the device; of
 * kiln_cg_begin, slot < 0, the same. A work-group of the first two serves one of the k columns; partial sums
 * are added up in order by every group that needs them, which costs less than a launch of its own. S is the
 * state in `wide`, CG_ROWS + 2 * history rows of k (dialect/scalar_math.h), which only the last launch, of
 * one group a column, writes.
 *
 * P . A P comes from the pass, where the rows' products with P are at hand, and P . L P from the launch that
 * made P: neither costs a walk over P and Q. E waits for the second launch, where P is read anyway. The space
 * holds, by groups, one after the other: G . (inverse .* G), mean . (inverse .* G), P . L P.
 *
 * mean . P follows P's own recurrence, so that no launch but the first reads the means. What rounding makes
 * of it shifts all rows of a pass alike, and that is what the correction of Q by the rows' sums takes out
 * again. */

#define ARGUMENTS_cg_update(FIRST, NEXT)                                                                     \
    FIRST(SPACE, wide, space)                                                                                \
    NEXT(IN, wide, S)                                                                                        \
    NEXT(IN, wide, curvature)                                                                                \
    NEXT(OUT, real, G)                                                                                       \
    NEXT(IN, real, Q)                                                                                        \
    NEXT(IN, real, inverse)                                                                                  \
    NEXT(IN, real, mean)                                                                                     \
    NEXT(IN, real, sums)                                                                                     \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, begin)

#define ARGUMENTS_cg_direction(FIRST, NEXT)                                                                  \
    FIRST(SPACE, wide, space)                                                                                \
    NEXT(IN, wide, S)                                                                                        \
    NEXT(IN, wide, curvature)                                                                                \
    NEXT(OUT, real, E)                                                                                       \
    NEXT(IN, real, G)                                                                                        \
    NEXT(OUT, real, P)                                                                                       \
    NEXT(OUT, real, Q)                                                                                       \
    NEXT(IN, real, inverse)                                                                                  \
    NEXT(IN, real, penalty)                                                                                  \
    NEXT(VALUE, real, l2)                                                                                    \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, begin)

#define ARGUMENTS_cg_settle(FIRST, NEXT)                                                                     \
    FIRST(TABLE, wide, space)                                                                                \
    NEXT(OUT, wide, S)                                                                                       \
    NEXT(IN, wide, curvature)                                                                                \
    NEXT(OUT, real, shift)                                                                                   \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, slot)

#ifndef KI_HOST
#include "dialect/scalar_math.h"

DEVICE_FN wide group_total(wide sum, LOCAL_PTR wide *shared) {
    const int lane = (int)get_local_id(0);
    shared[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        if (lane < reach) shared[lane] += shared[lane + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* The sum that the groups of the launch before left for column c. */
DEVICE_FN wide gather(__global const wide *partial, int shares, int c, int k, LOCAL_PTR wide *shared) {
    wide sum = 0;
#pragma unroll 1 /* few groups: no turn after the first, so what unrolling takes is lost */
    for (int g = (int)get_local_id(0); g < shares; g += GROUP) sum += partial[g * k + c];
    return group_total(sum, shared);
}

/* A thread's rows are `apart` rows from each other. It loads BATCH of them at a time, for a store between
 * them would have the loads behind it wait; more would leave registers for fewer than 1,024 threads a compute
 * unit. */
#ifdef REAL_F64
#define BATCH 2
#else
#define BATCH 4
#endif
#define COLUMN ((int)get_group_id(0) % k)
#define ROWS                                                                                                 \
    const index_t apart = (index_t)((int)get_num_groups(0) / k) * GROUP;                                     \
    const index_t from = (index_t)((int)get_group_id(0) / k) * GROUP + (index_t)get_local_id(0);
#define EACH_BATCH(i) for (index_t i = from; i < (index_t)n; i += BATCH * apart)
#define EACH_OF_BATCH(t) _Pragma("unroll") for (int t = 0; t < BATCH; t++)
/* x at row t of the batch from i on, 0 beyond the last row and where it is not wanted */
#define LOAD(x, t, wanted, at) ((wanted) && i + t * apart < (index_t)n ? (x)[at] : REAL(0.0))

/* The step's length for column c: that of a recurrence which begins is 0. */
DEVICE_FN wide length_of(__global const wide *S, __global const wide *curvature, int c, int k, int begin) {
    return begin ? 0
                 : cg_alpha(S[CG_RHO * k + c], S[CG_ACTIVE * k + c], curvature[c] + S[CG_PENALTY * k + c]);
}

/* G -= alpha (Q - mean sums) */
__kernel GROUP_OF(GROUP) void cg_update(PARAMETERS(cg_update)) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    const real excess = mean && !begin ? sums[c] : REAL(0.0);
    const real alpha = (real)length_of(S, curvature, c, k, begin);
    wide sum = 0, centre = 0;
    ROWS
    EACH_BATCH(i) {
        real g[BATCH], q[BATCH], m[BATCH], d[BATCH];
        EACH_OF_BATCH(t) {
            const index_t row = i + t * apart;
            g[t] = LOAD(G, t, true, row * k + c);
            q[t] = LOAD(Q, t, alpha != REAL(0.0), row * k + c);
            m[t] = LOAD(mean, t, mean != 0, row);
            d[t] = LOAD(inverse, t, inverse != 0, row);
        }
        EACH_OF_BATCH(t) {
            if (alpha != REAL(0.0)) {
                g[t] -= alpha * (q[t] - m[t] * excess);
                if (i + t * apart < (index_t)n) G[(i + t * apart) * k + c] = g[t];
            }
            const real next = inverse ? d[t] * g[t] : g[t];
            sum += (wide)g[t] * (wide)next;
            centre += (wide)m[t] * (wide)next;
        }
    }
    sum = group_total(sum, shared);
    centre = group_total(centre, shared);
    if (get_local_id(0) == 0) {
        space[get_group_id(0)] = sum;
        space[groups + (int)get_group_id(0)] = centre;
    }
}

/* E += alpha P, then P = inverse .* G + beta P, or 0 for a column that is finished, and Q = L P. */
__kernel GROUP_OF(GROUP) void cg_direction(PARAMETERS(cg_direction)) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    const wide next = gather(space, groups / k, c, k, shared);
    const wide rho = S[CG_RHO * k + c], alpha = length_of(S, curvature, c, k, begin);
    const bool active =
        begin ? S[CG_ACTIVE * k + c] != 0 : alpha != 0 && cg_goes_on(rho, next, S[CG_GOAL * k + c]);
    const real step = (real)alpha, beta = active && !begin ? (real)(next / rho) : REAL(0.0);
    wide product = 0;
    ROWS
    EACH_BATCH(i) {
        real e[BATCH], g[BATCH], p[BATCH], d[BATCH], l[BATCH];
        EACH_OF_BATCH(t) {
            const index_t row = i + t * apart;
            e[t] = LOAD(E, t, step != REAL(0.0), row * k + c);
            g[t] = LOAD(G, t, active, row * k + c);
            p[t] = LOAD(P, t, !begin, row * k + c);
            d[t] = LOAD(inverse, t, inverse != 0, row);
            l[t] = LOAD(penalty, t, penalty != 0, row);
        }
        EACH_OF_BATCH(t) {
            const index_t at = (i + t * apart) * k + c;
            if (i + t * apart >= (index_t)n) continue;
            if (begin || step != REAL(0.0)) E[at] = e[t] + step * p[t];
            const real next = active ? (inverse ? d[t] * g[t] : g[t]) + beta * p[t] : REAL(0.0);
            const real penalised = (penalty ? l[t] : l2) * next;
            P[at] = next;
            Q[at] = penalised;
            product += (wide)next * (wide)penalised;
        }
    }
    product = group_total(product, shared);
    if (get_local_id(0) == 0) space[2 * groups + (int)get_group_id(0)] = product;
}

/* The new state and -mean . P. A group a column; `groups` are those of the launches before. */
__kernel GROUP_OF(GROUP) void cg_settle(PARAMETERS(cg_settle)) {
    LOCAL wide shared[GROUP];
    const int c = (int)get_group_id(0);
    const bool begin = slot < 0;
    const wide next = gather(space, groups / k, c, k, shared);
    const wide centre = gather(space + groups, groups / k, c, k, shared);
    const wide product = gather(space + 2 * groups, groups / k, c, k, shared);
    wide column[CG_ROWS];
    if (get_local_id(0) != 0) return;
    for (int row = 0; row < CG_ROWS; row++) column[row] = S[row * k + c];
    const wide rho = column[CG_RHO];
    if (begin)
        column[CG_RHO] = next;
    else
        cg_settle_column(column, curvature[c] + column[CG_PENALTY], next);
    column[CG_PENALTY] = product;
    const bool active = column[CG_ACTIVE] != 0;
    const real beta = active && !begin ? (real)(next / rho) : REAL(0.0);
    if (shift) shift[c] = active ? (begin ? REAL(0.0) : beta * shift[c]) - (real)centre : REAL(0.0);
    for (int row = 0; row < CG_ROWS; row++) S[row * k + c] = column[row];
    if (begin) return;
    S[(CG_ROWS + 2 * slot) * k + c] = column[CG_RHO];
    S[(CG_ROWS + 2 * slot + 1) * k + c] = column[CG_DECREASE];
}

/* The variants that differ in text, as the tests build them. */
// build GROUP=128
// build GROUP=512 INDEX64
// pack {f32|f64} GROUP=512
#endif
