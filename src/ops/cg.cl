/* GPU body of kiln_cg_step (ops/cg.c): three launches, and the scalars never leave the device; of kiln_cg_begin, slot < 0,
 * the latter two. A work-group serves one of the k columns; partial sums are added up in order by every group that needs
 * them, which costs less than a launch of its own. S is the state in `wide`, CG_ROWS + 2 * history rows of k
 * (dialect/scalar_math.h).
 *
 * E waits for the last launch, where P is read anyway. The first leaves a copy of the state for the groups of the others, so
 * that one group of the last may write the new one while others still read. The space holds, one after the other: P . Q by
 * groups, G . (inverse .* G) and mean . (inverse .* G) by groups, the copy.
 *
 * mean . P follows P's own recurrence, so that no launch but the second reads the means. What rounding makes of it shifts
 * all rows of a pass alike, and that is what the correction of Q by the rows' sums takes out again. */

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

/* A thread's rows are `apart` rows from each other. It loads BATCH of them at a time, for a store between them would have
 * the loads behind it wait; more would leave registers for fewer than 1,024 threads a compute unit. */
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

/* P . (Q - mean sums) */
__kernel GROUP_OF(GROUP) void cg_curvature(__global wide *space, __global const wide *S, __global const real *P,
                                           __global const real *Q, __global const real *sums,
                                           __global const real *shift, long n, int k) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    wide sum = 0;
    ROWS
    for (index_t i = from; i < (index_t)n; i += apart) sum += (wide)P[i * k + c] * (wide)Q[i * k + c];
    sum = group_total(sum, shared);
    if (sums && (int)get_group_id(0) == c) sum += (wide)shift[c] * (wide)sums[c];
    if (get_local_id(0) == 0) space[get_group_id(0)] = sum;
    if (get_group_id(0) == 0)
        for (int i = (int)get_local_id(0); i < CG_ROWS * k; i += GROUP) space[3 * groups + i] = S[i];
}

/* G -= alpha (Q - mean sums) */
__kernel GROUP_OF(GROUP) void cg_update(__global wide *space, __global real *G, __global const real *Q,
                                        __global const real *inverse, __global const real *mean,
                                        __global const real *sums, long n, int k, int slot) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    __global const wide *S = space + 3 * groups;
    const real excess = mean && slot >= 0 ? sums[c] : REAL(0.0);
    const wide curvature = gather(space, slot < 0 ? 0 : groups / k, c, k, shared);
    const real alpha = slot < 0 ? REAL(0.0) : (real)cg_alpha(S[CG_RHO * k + c], S[CG_ACTIVE * k + c], curvature);
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
        space[groups + (int)get_group_id(0)] = sum;
        space[2 * groups + (int)get_group_id(0)] = centre;
    }
}

/* E += alpha P, then P = inverse .* G + beta P, or 0 for a column that is finished, and Q = L P; -mean . P, and the new
 * state. */
__kernel GROUP_OF(GROUP) void cg_direction(__global const wide *space, __global wide *S, __global real *E,
                                           __global const real *G, __global real *P, __global real *Q,
                                           __global const real *inverse, __global const real *penalty, real l2,
                                           __global real *shift, long n, int k, int slot) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    const bool begin = slot < 0;
    wide column[CG_ROWS];
    for (int row = 0; row < CG_ROWS; row++) column[row] = begin ? S[row * k + c] : space[3 * groups + row * k + c];
    const wide curvature = gather(space, begin ? 0 : groups / k, c, k, shared);
    const wide next = gather(space + groups, groups / k, c, k, shared);
    const wide centre = gather(space + 2 * groups, groups / k, c, k, shared);
    const wide rho = column[CG_RHO], alpha = begin ? 0 : cg_alpha(rho, column[CG_ACTIVE], curvature);
    const bool active = begin ? column[CG_ACTIVE] != 0 : alpha != 0 && cg_goes_on(rho, next, column[CG_GOAL]);
    const real step = (real)alpha, beta = active && !begin ? (real)(next / rho) : REAL(0.0);
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
            P[at] = next;
            Q[at] = (penalty ? l[t] : l2) * next;
        }
    }
    if ((int)get_group_id(0) != c || get_local_id(0) != 0) return; /* the column's first group */
    if (shift) shift[c] = active ? (begin ? REAL(0.0) : beta * shift[c]) - (real)centre : REAL(0.0);
    if (begin) {
        S[CG_RHO * k + c] = next;
        return;
    }
    cg_settle_column(column, curvature, next);
    for (int row = 0; row < CG_ROWS; row++) S[row * k + c] = column[row];
    S[(CG_ROWS + 2 * slot) * k + c] = column[CG_RHO];
    S[(CG_ROWS + 2 * slot + 1) * k + c] = column[CG_DECREASE];
}
