/* GPU body of kiln_cg_step (ops/cg.c): three launches, and the scalars never leave the device. A work-group serves one of the
 * k columns; partial sums are added up in order by every group that needs them, which costs less than a launch of its own.
 * S is the state in `wide`, CG_ROWS + 2 * history rows of k (dialect/scalar_math.h).
 *
 * E waits for the last launch, where P is read anyway. The first leaves a copy of the state for the groups of the others, so
 * that one group of the last may write the new one while others still read. The space holds, one after the other: P . Q by
 * groups, G . (inverse .* G) by groups, the copy. */

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
    for (int g = (int)get_local_id(0); g < shares; g += GROUP) sum += partial[g * k + c];
    return group_total(sum, shared);
}

#define COLUMN ((int)get_group_id(0) % k)
#define EACH_ROW(i)                                                                                          \
    for (index_t i = (index_t)((int)get_group_id(0) / k) * GROUP + (index_t)get_local_id(0); i < (index_t)n; \
         i += (index_t)((int)get_num_groups(0) / k) * GROUP)

__kernel GROUP_OF(GROUP) void cg_curvature(__global wide *space, __global const wide *S, __global const real *P,
                                           __global const real *Q, long n, int k) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    wide sum = 0;
    EACH_ROW(i) sum += (wide)P[i * k + c] * (wide)Q[i * k + c];
    sum = group_total(sum, shared);
    if (get_local_id(0) == 0) space[get_group_id(0)] = sum;
    if (get_group_id(0) == 0)
        for (int i = (int)get_local_id(0); i < CG_ROWS * k; i += GROUP) space[2 * groups + i] = S[i];
}

/* G -= alpha Q */
__kernel GROUP_OF(GROUP) void cg_update(__global wide *space, __global real *G, __global const real *Q,
                                        __global const real *inverse, long n, int k) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    __global const wide *S = space + 2 * groups;
    const wide curvature = gather(space, groups / k, c, k, shared);
    const real alpha = (real)cg_alpha(S[CG_RHO * k + c], S[CG_ACTIVE * k + c], curvature);
    wide sum = 0;
    EACH_ROW(i) {
        const index_t at = i * k + c;
        real g = G[at];
        if (alpha != REAL(0.0)) {
            g -= alpha * Q[at];
            G[at] = g;
        }
        sum += (wide)g * (wide)(inverse ? inverse[i] * g : g);
    }
    sum = group_total(sum, shared);
    if (get_local_id(0) == 0) space[groups + (int)get_group_id(0)] = sum;
}

/* E += alpha P, then P = inverse .* G + beta P, or 0 for a column that is finished; and the new state. */
__kernel GROUP_OF(GROUP) void cg_direction(__global const wide *space, __global wide *S, __global real *E,
                                           __global const real *G, __global real *P, __global const real *inverse,
                                           long n, int k, int slot) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, groups = (int)get_num_groups(0);
    __global const wide *former = space + 2 * groups;
    const wide curvature = gather(space, groups / k, c, k, shared);
    const wide next = gather(space + groups, groups / k, c, k, shared);
    const wide rho = former[CG_RHO * k + c];
    const wide alpha = cg_alpha(rho, former[CG_ACTIVE * k + c], curvature);
    const int active = alpha != 0 && cg_goes_on(rho, next, former[CG_GOAL * k + c]);
    const real step = (real)alpha, beta = active ? (real)(next / rho) : REAL(0.0);
    EACH_ROW(i) {
        const index_t at = i * k + c;
        const real p = P[at];
        if (step != REAL(0.0)) E[at] += step * p;
        P[at] = active ? (inverse ? inverse[i] * G[at] : G[at]) + beta * p : REAL(0.0);
    }
    if ((int)get_group_id(0) != c || get_local_id(0) != 0) return; /* the column's first group */
    wide column[CG_ROWS];
    for (int row = 0; row < CG_ROWS; row++) column[row] = former[row * k + c];
    cg_settle_column(column, curvature, next);
    for (int row = 0; row < CG_ROWS; row++) S[row * k + c] = column[row];
    S[(CG_ROWS + 2 * slot) * k + c] = column[CG_RHO];
    S[(CG_ROWS + 2 * slot + 1) * k + c] = column[CG_DECREASE];
}
