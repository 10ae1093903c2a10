/* GPU body of kiln_batch_reduce: a group goes from vector to vector. KIND is kiln_batch_kind. */

#define ARGUMENTS_batch_reduce(FIRST, NEXT)                                                                  \
    FIRST(OUT, real, result)                                                                                 \
    NEXT(IN, real, X)                                                                                        \
    NEXT(VALUE, long, count)                                                                                 \
    NEXT(VALUE, long, length)

#ifndef KI_HOST
DEVICE_FN wide joined(wide a, wide b) {
    if (KIND == 1) return a + b;
    return b > a || b != b ? b : a;
}

__kernel GROUP_OF(GROUP) void batch_reduce(PARAMETERS(batch_reduce)) {
    LOCAL wide shared[GROUP];
    const int lane = (int)get_local_id(0);
    for (long v = (long)get_group_id(0); v < count; v += (long)get_num_groups(0)) {
        wide a = KIND == 1 ? (wide)0 : -(wide)INFINITY;
        for (long i = lane; i < length; i += GROUP) a = joined(a, (wide)X[v * length + i]);
        shared[lane] = a;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = GROUP / 2; reach > 0; reach /= 2) {
            if (lane < reach) shared[lane] = joined(shared[lane], shared[lane + reach]);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) result[v] = (real)shared[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The variants that differ in text, as the tests build them. */
// build KIND=1 GROUP=128
// build KIND=2 GROUP=128
#endif
