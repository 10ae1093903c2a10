/* GPU body of the column reductions: each group leaves the reduction of its rows of `span` adjacent ones of k
 * columns (KIND of ops/vectors/reduce.h), in `wide` and in a fixed order: partial[share of the rows][k], or
 * row `row` of R if all rows are one share. Adjacent threads read adjacent columns; span is a power of two,
 * GROUP at most. scaled: squares by what is in that row of R. */

#define ARGUMENTS_reduce(FIRST, NEXT)                                                                        \
    FIRST(OUT, wide, R)                                                                                      \
    NEXT(SPACE, wide, partial)                                                                               \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, Y)                                                                                        \
    NEXT(VALUE, long, row)                                                                                   \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, y_cols)                                                                                 \
    NEXT(VALUE, int, span)                                                                                   \
    NEXT(VALUE, int, scaled)

#define ARGUMENTS_reduce_finish(FIRST, NEXT)                                                                 \
    FIRST(OUT, wide, R)                                                                                      \
    NEXT(TABLE, wide, partial)                                                                               \
    NEXT(VALUE, long, row)                                                                                   \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, scaled)

#ifndef KI_HOST
#include "dialect/scalar_math.h"

enum { AHEAD = 8 }; /* loads that a thread has under way: enough groups of them keep the memory busy */

/* Thread l of the first `span` has what threads l, l + span, l + 2 span, ... have together. */
DEVICE_FN wide reduce_group(wide sum, int span, LOCAL_PTR wide *shared) {
    const int lane = (int)get_local_id(0);
    shared[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = GROUP / 2; reach >= span; reach /= 2) {
        if (lane < reach) shared[lane] = reduce_join(shared[lane], shared[lane + reach], KIND);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return shared[lane];
}

DEVICE_FN wide reduce_result(wide sum, wide by) {
    return KIND == 2 ? sqrt(sum) / by : sum;
}

/* A % beside a / of the same numbers is avoided: PoCL 5.0 with LLVM 16 takes addresses that follow from them
 * for the same in all threads (docs/limits.md). */
__kernel void reduce(PARAMETERS(reduce)) {
    LOCAL wide shared[GROUP];
    const int lane = (int)get_local_id(0), group = (int)get_group_id(0), blocks = (k + span - 1) / span;
    const int share = group / blocks, column = (group - share * blocks) * span + (lane & (span - 1));
    /* one column of Y serves all of X's */
    const int rows_at_once = GROUP / span, y_column = y_cols == 1 ? 0 : column;
    const index_t step = (index_t)(get_num_groups(0) / blocks) * rows_at_once;
    const bool mine = column < k;
    const wide by = scaled && mine ? reduce_scale(R[row * k + column]) : (wide)1;
    const index_t end = mine ? (index_t)rows : 0;
    wide sum = 0;
    index_t i = (index_t)share * rows_at_once + lane / span;
    for (; i < end && end - i > (AHEAD - 1) * step; i += AHEAD * step) {
        real x[AHEAD], y[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) x[a] = X[(i + a * step) * k + column];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) y[a] = KIND == 0 ? Y[(i + a * step) * y_cols + y_column] : x[a];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) sum = reduce_step(sum, (wide)x[a], (wide)y[a], KIND, by);
    }
#pragma unroll 1
    for (; i < end; i += step)
        sum = reduce_step(sum, (wide)X[i * k + column], (wide)Y[i * y_cols + y_column], KIND, by);
    sum = reduce_group(sum, span, shared);
    if (lane >= span || !mine) return;
    if ((int)get_num_groups(0) > blocks)
        partial[(long)share * k + column] = sum;
    else
        R[row * k + column] = reduce_result(sum, by);
}

/* A group a column joins what the groups of the launch before have left: row `row` of R. */
__kernel void reduce_finish(PARAMETERS(reduce_finish)) {
    LOCAL wide shared[GROUP];
    const int lane = (int)get_local_id(0), column = (int)get_group_id(0);
    __global wide *result = R + row * k + column;
    wide sum = 0;
#pragma unroll 1
    for (int g = lane; g < groups; g += GROUP) sum = reduce_join(sum, partial[(long)g * k + column], KIND);
    sum = reduce_group(sum, 1, shared);
    if (lane == 0) *result = reduce_result(sum, scaled ? reduce_scale(*result) : (wide)1);
}

/* The variants that differ in text, as the tests build them. */
// build KIND=0 GROUP=128
// build KIND=1 GROUP=64 INDEX64
// pack {f32|f64} KIND={0|1|2|3|4|5|6|7|8|9} GROUP=128
#endif
