/* GPU body of kiln_assign: sums of each cluster's rows.
 *
 * Rows are sorted by cluster, each cluster's are cut into slices, a group adds one up, and slices are added in order: the same
 * bits from run to run, as nothing is added atomically. */

#define ARGUMENTS_assign_bounds(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, start)                                                                                 \
    NEXT(TABLE, int, key)                                                                                    \
    NEXT(VALUE, int, rows)                                                                                   \
    NEXT(VALUE, int, k)

#define ARGUMENTS_assign_sums(FIRST, NEXT)                                                                   \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, order)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, C)                                                                                        \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, slices)

#define ARGUMENTS_assign_join(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, sums)                                                                                   \
    NEXT(SPACE, wide, totals)                                                                                \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, slices)

#ifndef KI_HOST
DEVICE_FN wide square_of(wide x) {
    return x * x;
}

#ifdef ENDS
/* Where each cluster begins among the sorted rows. */
__kernel GROUP_OF(128) void assign_bounds(PARAMETERS(assign_bounds)) {
    for (int i = (int)get_global_id(0); i <= rows; i += (int)get_global_size(0)) {
        const int from = i == 0 ? 0 : key[i - 1] + 1, to = i == rows ? k : key[i];
        for (int c = from; c <= to; c++) start[c] = i;
    }
}

/* The slices of a cluster, added up in order. A slice: n sums, then two totals. */
__kernel GROUP_OF(128) void assign_join(PARAMETERS(assign_join)) {
    const long width = n + 2, count = (long)k * width;
    for (long i = (long)get_global_id(0); i < count; i += (long)get_global_size(0)) {
        const long c = i / width, j = i % width;
        wide sum = 0;
        for (int s = 0; s < slices; s++) sum += partial[(c * slices + s) * width + j];
        if (j >= n)
            totals[c * 2 + j - n] = sum;
        else if (sums)
            sums[c * n + j] = (real)sum;
    }
}
#endif

#ifdef SUMS
/* A slice of a cluster: sums of s x, of s, and of s ||x - c||^2. LANES_OF columns side by side, and as many rows as fit. */
__kernel GROUP_OF(GROUP) void assign_sums(PARAMETERS(assign_sums)) {
    LOCAL wide shared[GROUP], apart[GROUP];
    const int id = (int)get_local_id(0), lane = id % ACROSS, along = id / ACROSS, DOWN = GROUP / ACROSS;
    const int cluster = (int)get_group_id(0) / slices, slice = (int)get_group_id(0) % slices;
    const long all = start[cluster + 1] - start[cluster];
    const long begin = start[cluster] + all * slice / slices, end = start[cluster] + all * (slice + 1) / slices;
    __global wide *to = partial + (long)get_group_id(0) * (n + 2);
    __global const real *centre = C + (long)cluster * n;
    wide distance = 0, total = 0;
    for (long i = begin + id; i < end; i += GROUP) total += weights ? (wide)weights[order[i]] : 1;
#ifdef CSR
    wide norm = 0;
    for (int j = id; j < n + 2; j += GROUP) to[j] = 0;
    if (id == 0)
        for (int j = 0; j < n; j++) norm += square_of((wide)centre[j]);
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (long i = begin; i < end; i++) {
        const int row = order[i];
        const wide s = weights ? (wide)weights[row] : 1;
        distance += id == 0 ? s * norm : 0;
        for (long e = row_start[row] + id; e < row_start[row + 1]; e += GROUP) {
            const wide x = (wide)X[e];
            distance += s * x * (x - 2 * (wide)centre[col[e]]);
            to[col[e]] += s * x;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
#else
    for (int base = 0; base < n; base += ACROSS) {
        const int j = base + lane;
        wide sum = 0;
        if (j < n)
            for (long i = begin + along; i < end; i += DOWN) {
                const long row = order[i];
                const wide s = weights ? (wide)weights[row] : 1, x = (wide)X[row * n + j];
                sum += s * x;
                distance += s * square_of(x - (wide)centre[j]);
            }
        shared[id] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (along == 0 && j < n) {
            for (int r = 1; r < DOWN; r++) sum += shared[r * ACROSS + lane];
            to[j] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
    shared[id] = total;
    apart[id] = distance;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        if (id < reach) {
            shared[id] += shared[id + reach];
            apart[id] += apart[id + reach];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) {
        to[n] = shared[0];
        to[n + 1] = apart[0] > 0 ? apart[0] : 0;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build ENDS
// build SUMS GROUP=128 ACROSS=32
// build SUMS CSR GROUP=128 ACROSS=1
#endif
