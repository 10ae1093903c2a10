/* GPU body of the column reductions: each group leaves the reduction of its rows of one of `count` columns from
 * `first` (KIND of ops/reduce.h), in `wide` and in a fixed order: partial[share of the rows][count]. */

#define ARGUMENTS_reduce(FIRST, NEXT)                                                                        \
    FIRST(SPACE, wide, partial)                                                                              \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, y_cols)                                                                                 \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, count)                                                                                  \
    NEXT(VALUE, wide, scale)

#ifndef KI_HOST
__kernel void reduce(PARAMETERS(reduce)) {
    LOCAL wide shared[GROUP];
    const int lane = (int)get_local_id(0), group = (int)get_group_id(0), column = first + group % count;
    const index_t step = (index_t)(get_num_groups(0) / count) * GROUP;
    const int y_column = y_cols == 1 ? 0 : column; /* one column of Y serves all of X's */
    wide sum = 0;
    for (index_t i = (index_t)(group / count) * GROUP + lane; i < (index_t)rows; i += step)
        sum = reduce_step(sum, (wide)X[i * k + column], (wide)Y[i * y_cols + y_column], KIND, scale);
    shared[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        if (lane < reach) shared[lane] = reduce_join(shared[lane], shared[lane + reach], KIND);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) partial[group] = shared[0];
}

/* The variants that differ in text, as the tests build them. */
// build KIND=0 GROUP=128
// build KIND=1 GROUP=64 INDEX64
#endif
