/* GPU body of the column reductions: each group leaves the reduction of its rows of one column (KIND of ops/reduce.h), in
 * `wide` and in a fixed order. */

__kernel void reduce(__global wide *partial, __global const real *X, __global const real *Y, long rows, int k,
                     int y_cols, int column, wide scale) {
    LOCAL wide shared[GROUP];
    const int lane = (int)get_local_id(0);
    const int y_column = y_cols == 1 ? 0 : column; /* one column of Y serves all of X's */
    wide sum = 0;
    for (index_t i = (index_t)get_global_id(0); i < (index_t)rows; i += (index_t)get_global_size(0))
        sum = reduce_step(sum, (wide)X[i * k + column], (wide)Y[i * y_cols + y_column], KIND, scale);
    shared[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        if (lane < reach) shared[lane] = reduce_join(shared[lane], shared[lane + reach], KIND);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) partial[get_group_id(0)] = shared[0];
}
