/* What the kernels of the passes over X have in common (ops/mmchain_dense.cl, ops/mmchain_csr.cl). Built for a KIND and a
 * shape of work:
 *   KIND  FUSED, PLAIN, TRANSPOSED or SQUARES (ops/mmchain.h)
 *   VS BS threads in a vector and in a work-group         R   rows that a vector takes at a step (dense)
 *   Q  W  loads per thread and row, elements in a load    K   columns of y in this launch, from `first`
 *   MAP   the row map of a fused pass (enum ki_row_map), where it does more than multiply by v; LOSS FAMILY LINK its loss
 * Rows beyond the last and columns beyond n or k count as zeros. v, z and (SQUARES) y are null where they are not given:
 * a test that goes the same way in every thread costs nothing, a variant of its own costs a build.
 *
 * With a MAP the kernels have the parameters MAP_PARAMETERS too, and each group leaves a record of 1 + K sums in `wide`:
 * of the loss, and of what multiplied X^T, column by column. ops/mmchain_map.cl adds the records up. */
#ifndef PASS_H
#define PASS_H
#if defined(KIND) && defined(BS) /* other kernels define neither or one of them */

#define FUSED (KIND == 0)
#define PLAIN (KIND == 1)
#define TRANSPOSED (KIND == 2)
#define SQUARES (KIND == 3)
#define NV (BS / VS)

/* Loops over the columns, unrolled where they are few enough to live in registers. */
#if K <= 8
#define EACH_COLUMN(c) _Pragma("unroll") for (int c = 0; c < K; c++)
#define EACH_SUM(c) _Pragma("unroll") for (int c = 0; c <= K; c++)
#else
#define EACH_COLUMN(c) for (int c = 0; c < K; c++)
#define EACH_SUM(c) for (int c = 0; c <= K; c++)
#endif

DEVICE_FN void write_plain(__global real *out, real dot, __global const real *z, real alpha, real beta, index_t at) {
    out[at] = z ? alpha * dot + beta * z[at] : alpha * dot;
}

#ifndef MAP
#define MAP_PARAMETERS
#define MAP_ARGUMENTS(writer)
#define MAP_BEGIN
#define MAP_END

/* What a row contributes to the K columns' scatter, in place of its dot products with y: v times them, or (not FUSED) the
 * row of y itself. */
DEVICE_FN void row_factors(real *p, __global const real *v, __global const real *y, index_t row, int first, int k,
                           int v_cols) {
    EACH_COLUMN(c) {
        if (first + c >= k) continue;
#if FUSED
        if (v) p[c] *= v[v_cols == 1 ? row : row * k + first + c];
#else
        p[c] = y ? y[row * k + first + c] : REAL(1.0);
#endif
    }
}

#else
#define MAP_PARAMETERS                                                                                                \
    , __global const real *shift, __global const real *target, __global const real *weights,                          \
        __global const real *offset, __global real *curvature, real parameter, real power, __global wide *records,    \
        long records_at
#define MAP_ARGUMENTS(writer) , shift, target, weights, offset, curvature, parameter, power, writer, record
/* Before the rows, among the kernel's declarations, and behind them. */
#define MAP_BEGIN                                                                                                     \
    LOCAL wide map_tree[BS];                                                                                          \
    wide record[1 + K];                                                                                               \
    EACH_SUM(c) record[c] = 0;
#define MAP_END write_record(records + records_at, record, map_tree);

/* From a row's dot products with y to what multiplies x_row in X^T, in place. One thread of those that share the row is the
 * writer: it stores the curvature and adds to its record. Softmax needs all columns in one launch: first = 0. */
DEVICE_FN void row_factors(real *p, __global const real *v, __global const real *y, index_t row, int first, int k,
                           int v_cols, __global const real *shift, __global const real *target,
                           __global const real *weights, __global const real *offset, __global real *curvature,
                           real parameter, real power, bool writer, wide *record) {
    const real s = weights ? weights[row] : REAL(1.0);
    real loss = REAL(0.0);
    EACH_COLUMN(c)
        if (shift && first + c < k) p[c] += shift[first + c];
#if MAP == 0
    EACH_COLUMN(c)
        if (v && first + c < k) p[c] *= v[v_cols == 1 ? row : row * k + first + c];
#elif MAP == 1
    real curve[K];
    EACH_COLUMN(c) curve[c] = c < k ? v[row * k + c] : REAL(0.0);
    softmax_curve_row(p, K, curve);
#elif MAP == 2
    real g, h;
    loss = loss_row(LOSS, FAMILY, LINK, parameter, power, target[row], offset ? p[0] + offset[row] : p[0], &g, &h);
    if (curvature && writer) curvature[row] = s == REAL(0.0) ? REAL(0.0) : s * h;
    p[0] = g;
#elif MAP == 3
    const int label = (int)target[row];
    EACH_COLUMN(c)
        if (c >= k) p[c] = -REAL_INFINITY;
    loss = softmax_row(p, K, label);
    EACH_COLUMN(c) {
        if (c >= k) continue;
        if (curvature && writer) curvature[row * k + c] = p[c];
        if (c == label) p[c] -= REAL(1.0);
    }
#endif
#if MAP != 0 /* a row of weight 0 counts as absent, however far out of the loss's range it lies */
    loss = s == REAL(0.0) ? REAL(0.0) : s * loss;
    EACH_COLUMN(c) p[c] = s == REAL(0.0) ? REAL(0.0) : s * p[c];
#endif
    if (!writer) return;
    record[0] += (wide)loss;
    EACH_COLUMN(c) record[1 + c] += (wide)p[c];
}

/* The group's record: the sums of its threads' records, in a fixed order. */
DEVICE_FN void write_record(__global wide *records, const wide *record, LOCAL_PTR wide *tree) {
    const int id = (int)get_local_id(0);
    EACH_SUM(c) {
        tree[id] = record[c];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int step = BS / 2; step > 0; step /= 2) {
            if (id < step) tree[id] += tree[id + step];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (id == 0) records[(long)get_group_id(0) * (1 + K) + c] = tree[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

#endif
#endif
