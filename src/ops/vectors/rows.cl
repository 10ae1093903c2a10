/* GPU body of kiln_rows: a group a row. */

#define ARGUMENTS_copy_rows(FIRST, NEXT)                                                                     \
    FIRST(OUT, real, R)                                                                                      \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(TABLE, long, rows)                                                                                  \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, int, n)

#ifndef KI_HOST
__kernel GROUP_OF(GROUP) void copy_rows(PARAMETERS(copy_rows)) {
    const int id = (int)get_local_id(0);
    for (long i = (long)get_group_id(0); i < count; i += (long)get_num_groups(0)) {
        __global real *to = R + i * n;
        for (int j = id; j < n; j += GROUP) to[j] = row_start ? REAL(0.0) : X[rows[i] * n + j];
        barrier(CLK_GLOBAL_MEM_FENCE);
        if (row_start)
            for (long e = row_start[rows[i]] + id; e < row_start[rows[i] + 1]; e += GROUP) to[col[e]] = X[e];
    }
}

/* The variants that differ in text, as the tests build them. */
// build GROUP=64
// pack {f32|f64} GROUP=64
#endif
