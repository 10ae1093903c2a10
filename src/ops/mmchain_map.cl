/* Row maps on their own, for more columns of y than one launch of a pass holds, and the end of every pass with a map: the
 * sum of the groups' records (dialect/pass.h). */

/* Eta (rows x k, k <= K) = X y on entry, what multiplies X^T on return. One thread a row. */
#ifdef ROWS
__kernel GROUP_OF(BS) void mmchain_map(__global real *eta, __global const real *v, long rows, int k,
                                      int v_cols MAP_PARAMETERS) {
    MAP_BEGIN
    for (long row = (long)get_global_id(0); row < rows; row += (long)get_global_size(0)) {
        real p[K];
        for (int c = 0; c < K; c++) p[c] = c < k ? eta[(index_t)row * k + c] : REAL(0.0);
        row_factors(p, v, eta, (index_t)row, 0, k, v_cols MAP_ARGUMENTS(true));
        for (int c = 0; c < k; c++) eta[(index_t)row * k + c] = p[c];
    }
    MAP_END
}
#endif

/* Group c adds up the c-th sum of every record, in order: 0 into the first record itself, from where the host reads it,
 * and the others into sums, if given. */
#ifdef RECORDS
__kernel GROUP_OF(128) void mmchain_records(__global real *sums, __global wide *records, long records_at, int groups,
                                            int columns, int k, int first) {
    LOCAL wide tree[128];
    const int id = (int)get_local_id(0), c = (int)get_group_id(0);
    wide sum = 0;
    records += records_at;
    for (int g = id; g < groups; g += 128) sum += records[(long)g * (1 + columns) + c];
    tree[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 64; step > 0; step /= 2) {
        if (id < step) tree[id] += tree[id + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id != 0) return;
    if (c == 0)
        records[0] = tree[0];
    else if (sums && first + c - 1 < k)
        sums[first + c - 1] = (real)tree[0];
}
#endif
