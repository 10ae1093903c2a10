/* GPU body of the passes over a sparse X: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * A vector of VS adjacent threads shares a row (Ashari et al., PPoPP 2015): their dot product with y, summed within the
 * group, meets the row again while it is still in the first cache level. dialect/pass.h names the defines. */

/* out, which holds beta z already, += alpha X^T (...). w gathers in local memory (SHARED_W elements, n * K) where it
 * fits there, else in out itself. */
__kernel GROUP_OF(BS) void mmchain_csr(__global real *out, __global const long *row_start, __global const int *col,
                                       __global const real *X, __global const real *v, __global const real *y,
                                       __global const real *z, real alpha, real beta, long rows, int n, int k,
                                       int first, int v_cols MAP_PARAMETERS) {
    LOCAL real scratch[K * BS];
    const int id = (int)get_local_id(0), lane = id % VS, vector = id / VS;
    MAP_BEGIN
#ifdef SHARED_W
    LOCAL real w[SHARED_W];
    for (int i = id; i < n * K; i += BS) w[i] = REAL(0.0);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (long row0 = (long)get_group_id(0) * NV; row0 < rows; row0 += (long)get_num_groups(0) * NV) {
        const long row = row0 + vector;
        const index_t begin = row < rows ? (index_t)row_start[row] : 0;
        const index_t end = row < rows ? (index_t)row_start[row + 1] : 0;
        real p[K];
#pragma unroll
        for (int c = 0; c < K; c++) p[c] = REAL(0.0);
#if FUSED || PLAIN
        for (index_t e = begin + lane; e < end; e += VS) {
            const index_t at = (index_t)col[e] * k + first;
#pragma unroll
            for (int c = 0; c < K; c++)
                if (first + c < k) p[c] += X[e] * y[at + c];
        }
        group_sums(p, K, scratch);
#endif
        if (row < rows) {
#if PLAIN
#pragma unroll
            for (int c = 0; c < K; c++)
                if (lane == 0 && first + c < k)
                    write_plain(out, p[c], z, alpha, beta, (index_t)row * k + first + c);
#else
            row_factors(p, v, y, (index_t)row, first, k, v_cols MAP_ARGUMENTS(lane == 0));
#pragma unroll
            for (int c = 0; c < K; c++) p[c] *= alpha;
#endif
        }
#if !PLAIN
        for (index_t e = begin + lane; e < end; e += VS) {
            const real x = SQUARES ? X[e] * X[e] : X[e];
#pragma unroll
            for (int c = 0; c < K; c++) {
                if (first + c >= k) continue;
#ifdef SHARED_W
                atomic_add_local(&w[col[e] * K + c], p[c] * x);
#else
                atomic_add_global(&out[(index_t)col[e] * k + first + c], p[c] * x);
#endif
            }
        }
#endif
    }
#ifdef SHARED_W
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < n * K; i += BS)
        if (w[i] != REAL(0.0)) atomic_add_global(&out[(index_t)(i / K) * k + first + i % K], w[i]);
#endif
    MAP_END
}
