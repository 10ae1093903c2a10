/* GPU body of kiln_cg_step (ops/cg.c): four launches, and the scalars never leave the device. A work-group serves one of the k
 * columns; partial sums are added up in order by every group that needs them, which costs less than a launch of its
 * own. S is the state in `wide`, CG_ROWS + 2 * history rows of k (dialect/scalar_math.h). */

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

/* first: P . Q */
__kernel void cg_curvature(__global wide *first, __global const real *P, __global const real *Q, long n, int k) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN;
    wide sum = 0;
    EACH_ROW(i) sum += (wide)P[i * k + c] * (wide)Q[i * k + c];
    sum = group_total(sum, shared);
    if (get_local_id(0) == 0) first[get_group_id(0)] = sum;
}

/* E += alpha P, G -= alpha Q; at_second: G . (inverse .* G) */
__kernel void cg_update(__global wide *first, long at_second, __global const wide *S, __global real *E,
                        __global real *G, __global const real *P, __global const real *Q,
                        __global const real *inverse, long n, int k) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN;
    const wide curvature = gather(first, (int)get_num_groups(0) / k, c, k, shared);
    const real alpha = (real)cg_alpha(S[CG_RHO * k + c], S[CG_ACTIVE * k + c], curvature);
    wide sum = 0;
    EACH_ROW(i) {
        const index_t at = i * k + c;
        real g = G[at];
        if (alpha != REAL(0.0)) {
            E[at] += alpha * P[at];
            g -= alpha * Q[at];
            G[at] = g;
        }
        sum += (wide)g * (wide)(inverse ? inverse[i] * g : g);
    }
    sum = group_total(sum, shared);
    if (get_local_id(0) == 0) first[at_second + (long)get_group_id(0)] = sum;
}

/* P = inverse .* G + beta P, or 0 for a column that is finished */
__kernel void cg_direction(__global const wide *first, long at_second, __global const wide *S,
                           __global const real *G, __global real *P, __global const real *inverse, long n, int k) {
    LOCAL wide shared[GROUP];
    const int c = COLUMN, shares = (int)get_num_groups(0) / k;
    const wide curvature = gather(first, shares, c, k, shared), next = gather(first + at_second, shares, c, k, shared);
    const wide rho = S[CG_RHO * k + c];
    const wide alpha = cg_alpha(rho, S[CG_ACTIVE * k + c], curvature);
    const int active = alpha != 0 && cg_goes_on(rho, next, S[CG_GOAL * k + c]);
    const real beta = active ? (real)(next / rho) : REAL(0.0);
    EACH_ROW(i) {
        const index_t at = i * k + c;
        const real g = inverse ? inverse[i] * G[at] : G[at];
        P[at] = active ? g + beta * P[at] : REAL(0.0);
    }
}

/* The new state, by one group; others may read the old one until then. */
__kernel void cg_settle(__global const wide *first, long at_second, __global wide *S, int k,
                        int slot) {
    const int c = (int)get_local_id(0);
    wide curvature = 0, next = 0;
    if (c >= k) return;
    for (long g = c; g < at_second; g += k) {
        curvature += first[g];
        next += first[at_second + g];
    }
    wide column[CG_ROWS];
    for (int row = 0; row < CG_ROWS; row++) column[row] = S[row * k + c];
    cg_settle_column(column, curvature, next);
    for (int row = 0; row < CG_ROWS; row++) S[row * k + c] = column[row];
    S[(CG_ROWS + 2 * slot) * k + c] = column[CG_RHO];
    S[(CG_ROWS + 2 * slot + 1) * k + c] = column[CG_DECREASE];
}
