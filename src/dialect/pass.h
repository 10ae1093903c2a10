/* This header has what the kernels of the passes over X have in common (pass/dense/dense.cl,
 * pass/csr/csr.cl). Built for a KIND and a shape of work:
 *   KIND  FUSED, PLAIN, TRANSPOSED or SQUARES (pass/chain.h)
 *   VS BS threads in a vector and in a work-group         R   rows that a vector takes at a step (dense)
 *   Q  W  loads per thread and row, elements in a load    K   columns of y in this launch, from `first`
 *   MAP   the row map of a fused pass (enum ki_row_map), where it does more than multiply by v;
 *         LOSS FAMILY LINK its loss, EXPECTED its curvature
 * Rows beyond the last and columns beyond n or k count as zeros. v, z and (SQUARES) y are null where they are
 * not given: a test that goes the same way in every thread costs nothing, a variant of its own costs a build.
 *
 * With a MAP the kernels have the parameters MAP_PARAMETERS too, and each group leaves a record of sums in
 * `wide`: of the loss, or, MAP 0, of each column's dot products times what multiplied X^T; and of what
 * multiplied X^T, column by column. pass/row_map.cl adds the records up. */
#ifndef PASS_H
#define PASS_H
#include "dialect/chain_arguments.h"
#include "dialect/losses.h"
#include "dialect/stored.h"
#if defined(KIND) && defined(BS) /* other kernels define neither or one of them */

#define FUSED (KIND == 0)
#define PLAIN (KIND == 1)
#define TRANSPOSED (KIND == 2)
#define SQUARES (KIND == 3)
#define NV (BS / VS)
#ifndef EXPECTED
#define EXPECTED 0
#endif

/* Numbers in a record, and what comes before those of the columns' sums. */
#if defined(MAP) && MAP == 0
#define RECORD_HEAD K
#else
#define RECORD_HEAD 1
#endif
#define RECORD (RECORD_HEAD + K)

/* Loops over the columns, few enough to live in registers. */
#define EACH_COLUMN(c) _Pragma("unroll") for (int c = 0; c < K; c++)
#define EACH_SUM(c) _Pragma("unroll") for (int c = 0; c < RECORD; c++)

/* The same from on-chip memory, in OpenCL another address space. */
#if W <= 4
DEVICE_FN void load_local(real *to, LOCAL_PTR const real *from) {
#if W == 1
    to[0] = from[0];
#else
    const WIDE_REAL all = *(LOCAL_PTR const WIDE_REAL *)from;
    TAKE_WIDE(to, all);
#endif
}
#endif

DEVICE_FN void write_plain(__global real *out, real dot, __global const real *z, real alpha, real beta,
                           index_t at) {
    out[at] = z ? alpha * dot + beta * z[at] : alpha * dot;
}

/* Holds what a row's map reads of memory, apart from its dot products: loaded on its own, so that a kernel
 * can do so early. */
struct row_operands {
    real v[K];
#ifdef MAP
    real weight, target, offset;
#endif
};

#ifndef MAP
#define MAP_PARAMETERS
#define MAP_OPERANDS
#define MAP_STATE(writer)
#define MAP_ARGUMENTS(writer)
#define MAP_TAKEN
#define MAP_PASSED
#define MAP_BEGIN
#define MAP_END

DEVICE_FN struct row_operands load_operands(__global const real *v, __global const real *y, index_t row,
                                            int first, int k, int v_cols) {
    struct row_operands o;
    EACH_COLUMN(c) {
        o.v[c] = REAL(1.0);
        if (first + c >= k) continue;
#if FUSED
        if (v) o.v[c] = v[v_cols == 1 ? row : row * k + first + c];
#elif !PLAIN
        if (y) o.v[c] = y[row * k + first + c];
#endif
    }
    return o;
}

/* Finds what a row contributes to the K columns' scatter, in place of its dot products with y: v times them,
 * or (not FUSED) the row of y itself. */
DEVICE_FN void apply_map(real *p, const struct row_operands *o, index_t row, int first, int k) {
#if FUSED
    EACH_COLUMN(c) p[c] *= o->v[c];
#else
    EACH_COLUMN(c) p[c] = o->v[c];
#endif
}

#else
#define MAP_PARAMETERS MORE_PARAMETERS(row_map)
#define MAP_OPERANDS , target, weights, offset
#define MAP_STATE(writer) , shift, curvature, parameter, power, writer, record
#define MAP_ARGUMENTS(writer) , shift, target, weights, offset, curvature, parameter, power, writer, record
/* Says what a part of a kernel takes of its parameters, and its record, and how it is called. */
#define MAP_TAKEN MAP_PARAMETERS, wide *record
#define MAP_PASSED , shift, target, weights, offset, curvature, parameter, power, records, records_at, record
/* Before the rows, among the kernel's declarations, and behind them. */
#define MAP_BEGIN                                                                                            \
    LOCAL wide map_tree[BS];                                                                                 \
    wide record[RECORD];                                                                                     \
    EACH_SUM(c) record[c] = 0;
#define MAP_END write_record(records + records_at, record, map_tree);

DEVICE_FN struct row_operands load_operands(__global const real *v, __global const real *y, index_t row,
                                            int first, int k, int v_cols, __global const real *target,
                                            __global const real *weights, __global const real *offset) {
    struct row_operands o;
    EACH_COLUMN(c) o.v[c] = v && first + c < k ? v[v_cols == 1 ? row : row * k + first + c] : REAL(1.0);
    o.weight = weights ? weights[row] : REAL(1.0);
    o.target = target ? target[row] : REAL(0.0);
    o.offset = offset ? offset[row] : REAL(0.0);
    return o;
}

/* A row's dot products with y become what multiplies x_row in X^T, in place. One thread of those that share
 * the row is the writer: it stores the curvature and adds to its record. Softmax needs all columns in one
 * launch: first = 0. */
DEVICE_FN void apply_map(real *p, const struct row_operands *o, index_t row, int first, int k,
                         __global const real *shift, __global real *curvature, real parameter, real power,
                         bool writer, wide *record) {
    const real s = o->weight;
    real loss = REAL(0.0);
    EACH_COLUMN(c) if (shift && first + c < k) p[c] += shift[first + c];
#if MAP == 0
    wide product[K];
    EACH_COLUMN(c) {
        const real q = first + c < k ? p[c] : REAL(0.0);
        p[c] = q * o->v[c];
        product[c] = (wide)q * (wide)p[c];
    }
#elif MAP == 1
    real curve[K];
    EACH_COLUMN(c) curve[c] = c < k ? o->v[c] : REAL(0.0);
    softmax_curve_row(p, K, curve);
#elif MAP == 2
    real g, h;
    loss = loss_row(LOSS, FAMILY, LINK, parameter, power, EXPECTED, o->target, p[0] + o->offset, &g, &h);
    if (curvature && writer) curvature[row] = s == REAL(0.0) ? REAL(0.0) : s * h;
    p[0] = g;
#elif MAP == 3
    const int label = (int)o->target;
    EACH_COLUMN(c) if (c >= k) p[c] = -REAL_INFINITY;
    loss = softmax_row(p, K, label);
    EACH_COLUMN(c) {
        if (c >= k) continue;
        if (curvature && writer) curvature[row * k + c] = p[c];
    }
    softmax_slope_row(p, K, label);
#endif
#if MAP != 0 /* a row of weight 0 counts as absent, however far out of the loss's range it lies */
    loss = s == REAL(0.0) ? REAL(0.0) : s * loss;
    EACH_COLUMN(c) p[c] = s == REAL(0.0) ? REAL(0.0) : s * p[c];
#endif
    if (!writer) return;
#if MAP == 0
    EACH_COLUMN(c) record[c] += product[c];
#else
    record[0] += (wide)loss;
#endif
    EACH_COLUMN(c) record[RECORD_HEAD + c] += (wide)p[c];
}
#endif

#ifdef MAP
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
        if (id == 0) records[(long)get_group_id(0) * RECORD + c] = tree[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

/* Both at once. */
#ifdef MAP
DEVICE_FN void row_factors(real *p, __global const real *v, __global const real *y, index_t row, int first,
                           int k, int v_cols, __global const real *shift, __global const real *target,
                           __global const real *weights, __global const real *offset,
                           __global real *curvature, real parameter, real power, bool writer, wide *record) {
#else
DEVICE_FN void row_factors(real *p, __global const real *v, __global const real *y, index_t row, int first,
                           int k, int v_cols) {
#endif
    const struct row_operands o = load_operands(v, y, row, first, k, v_cols MAP_OPERANDS);
    apply_map(p, &o, row, first, k MAP_STATE(writer));
}

#endif
#endif
