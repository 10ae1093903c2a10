/* GPU body of kiln_ranks_begin and kiln_ranks_step (ops/graph/ranks.c). A step gathers what comes in along the links, updates P, and
 * makes the next step's contributions, the mass that dangles and the change while it has the row in its registers: nothing is read
 * twice. A vector of VS threads takes a row. Each group leaves its sums of K columns in `space`, mass first and then change, column
 * by column; ranks_settle adds them up in order. The state S never leaves the device, so that steps queued behind the last one
 * that is wanted see it and do nothing. */

#define ARGUMENTS_ranks_factor(FIRST, NEXT)                                                                  \
    FIRST(OUT, real, factor)                                                                                 \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(IN, real, values)                                                                                   \
    NEXT(VALUE, long, n)

#define ARGUMENTS_ranks_begin(FIRST, NEXT)                                                                   \
    FIRST(SPACE, wide, space)                                                                                \
    NEXT(IN, real, P)                                                                                        \
    NEXT(OUT, real, C)                                                                                       \
    NEXT(IN, real, factor)                                                                                   \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)

#define ARGUMENTS_ranks_rows(FIRST, NEXT)                                                                    \
    FIRST(SPACE, wide, space)                                                                                \
    NEXT(IN, wide, S)                                                                                        \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, source)                                                                                 \
    NEXT(TABLE, real, weight)                                                                                \
    NEXT(IN, real, C)                                                                                        \
    NEXT(OUT, real, next)                                                                                    \
    NEXT(OUT, real, P)                                                                                       \
    NEXT(IN, real, factor)                                                                                   \
    NEXT(IN, real, teleport)                                                                                 \
    NEXT(IN, real, dangling)                                                                                 \
    NEXT(VALUE, wide, damping)                                                                               \
    NEXT(VALUE, long, n)                                                                                     \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)                                                                                  \
    NEXT(VALUE, int, teleport_cols)                                                                          \
    NEXT(VALUE, int, dangling_cols)

#define ARGUMENTS_ranks_settle(FIRST, NEXT)                                                                  \
    FIRST(OUT, wide, S)                                                                                      \
    NEXT(TABLE, wide, space)                                                                                 \
    NEXT(VALUE, int, groups)                                                                                 \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, slot)

#ifndef KI_HOST
DEVICE_FN wide group_total(wide sum, LOCAL_PTR wide *shared) {
    const int lane = (int)get_local_id(0);
    shared[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = BS / 2; reach > 0; reach /= 2) {
        if (lane < reach) shared[lane] += shared[lane + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

/* Mass and change of this group, for columns from `first` on. */
#define LEAVE_SUMS(mass, change)                                                                             \
    for (int c = 0; c < K; c++) {                                                                            \
        const int groups = (int)get_num_groups(0), at = (first + c) * groups + (int)get_group_id(0);         \
        const wide m = group_total(mass[c], shared), d = group_total(change[c], shared);                     \
        if (get_local_id(0) == 0 && first + c < k) space[at] = m, space[k * groups + at] = d;                \
    }

#ifdef FACTOR
/* 1 / the weight of a vertex's links: a thread each, as this is done once. */
__kernel void ranks_factor(PARAMETERS(ranks_factor)) {
    for (long i = (long)get_global_id(0); i < n; i += (long)get_global_size(0)) {
        const long from = row_start[i], end = row_start[i + 1];
        wide sum = values ? 0 : (wide)(end - from);
        bool wrong = false;
        for (long e = from; values && e < end; e++) {
            wrong = wrong || !(values[e] >= REAL(0.0));
            sum += (wide)values[e];
        }
        const real inverse = (real)(1 / sum);
        factor[i] = sum == 0 && !wrong ? REAL(0.0) : wrong || !(inverse > REAL(0.0) && inverse - inverse == REAL(0.0)) ? (real)NAN : inverse;
    }
}
#endif

#ifdef BEGIN
__kernel GROUP_OF(BS) void ranks_begin(PARAMETERS(ranks_begin)) {
    LOCAL wide shared[BS];
    wide mass[K], change[K];
    for (int c = 0; c < K; c++) mass[c] = change[c] = 0;
    for (index_t i = (index_t)get_global_id(0); i < (index_t)n; i += (index_t)get_global_size(0))
#pragma unroll
        for (int c = 0; c < K; c++)
            if (first + c < k) {
                const real x = P[i * k + first + c], f = factor[i];
                C[i * k + first + c] = x * f;
                mass[c] += f == REAL(0.0) ? (wide)x : 0;
            }
    LEAVE_SUMS(mass, change)
}
#endif

#ifdef ROWS
/* A row's update: `sum` has come in along its links. */
#define UPDATE(row, sum)                                                                                     \
    do {                                                                                                     \
        const real f = factor[row];                                                                          \
        _Pragma("unroll") for (int c = 0; c < K; c++) {                                                      \
            if (first + c >= k) continue;                                                                    \
            const index_t at = (row)*k + first + c;                                                          \
            const real t = teleport ? teleport[teleport_cols == 1 ? (row) : at] : uniform;                   \
            const real g = dangling ? dangling[dangling_cols == 1 ? (row) : at] : uniform;                   \
            const real x = away * t + spread[c] * g + along * (sum)[c], former = P[at];                      \
            P[at] = x;                                                                                       \
            next[at] = x * f;                                                                                \
            mass[c] += f == REAL(0.0) ? (wide)x : 0;                                                         \
            change[c] += x > former ? (wide)x - (wide)former : (wide)former - (wide)x;                       \
        }                                                                                                    \
    } while (0)

/* What is the same for all rows. */
#define UPDATE_BEGIN                                                                                         \
    wide mass[K], change[K];                                                                                 \
    real spread[K];                                                                                          \
    const real away = (real)(1 - damping), along = (real)damping, uniform = (real)(1 / (wide)n);             \
    for (int c = 0; c < K; c++) {                                                                            \
        mass[c] = change[c] = 0;                                                                             \
        spread[c] = first + c < k ? (real)(damping * S[RANKS_MASS * k + first + c]) : REAL(0.0);             \
    }

DEVICE_FN void gather(real *sum, index_t e, __global const int *source, __global const real *weight,
                      __global const real *C, int k, int first) {
    const index_t from = (index_t)load_once_int(source + e) * k + first;
#ifdef WEIGHTED
    const real w = load_once(weight + e);
#else
    const real w = REAL(1.0);
#endif
#pragma unroll
    for (int c = 0; c < K; c++)
        if (c == 0 || first + c < k) sum[c] += w * C[from + c];
}

__kernel GROUP_OF(BS) void ranks_rows(PARAMETERS(ranks_rows)) {
    LOCAL wide shared[BS];
    LOCAL real scratch[BS * K];
    if (S[RANKS_ACTIVE * k] == 0) return;
    const int lane = (int)get_local_id(0) % VS, vector = (int)get_local_id(0) / VS;
    UPDATE_BEGIN
    for (index_t base = (index_t)get_group_id(0) * (BS / VS); base < (index_t)n;
         base += (index_t)get_num_groups(0) * (BS / VS)) {
        const index_t row = base + vector;
        real sum[K];
        for (int c = 0; c < K; c++) sum[c] = REAL(0.0);
        if (row < (index_t)n)
            for (index_t e = start[row] + lane; e < (index_t)start[row + 1]; e += VS)
                gather(sum, e, source, weight, C, k, first);
        group_sums(sum, K, scratch);
        if (lane == 0 && row < (index_t)n) UPDATE(row, sum);
    }
    LEAVE_SUMS(mass, change)
}
#endif

#ifdef SETTLE
/* The new state, by one group; slot < 0: that at the beginning. */
__kernel GROUP_OF(BS) void ranks_settle(PARAMETERS(ranks_settle)) {
    LOCAL wide shared[BS];
    const bool begin = slot < 0;
    bool more = begin;
    if (!begin && S[RANKS_ACTIVE * k] == 0) return;
    for (int c = 0; c < k; c++) {
        wide mass = 0, change = 0;
        for (int g = (int)get_local_id(0); g < groups; g += BS) {
            mass += space[c * groups + g];
            change += begin ? 0 : space[(k + c) * groups + g];
        }
        mass = group_total(mass, shared);
        change = group_total(change, shared);
        more = more || !(change <= S[RANKS_GOAL * k + c]);
        if (get_local_id(0) != 0) continue;
        S[RANKS_MASS * k + c] = mass;
        if (!begin) S[(RANKS_ROWS + slot) * k + c] = change;
    }
    for (int c = (int)get_local_id(0); c < k; c += BS) {
        S[RANKS_TAKEN * k + c] = begin ? 0 : S[RANKS_TAKEN * k + c] + 1;
        S[RANKS_ACTIVE * k + c] = more ? 1 : 0;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build FACTOR BS=128 VS=1 K=1
// build BEGIN BS=128 VS=1 K=1
// build BEGIN BS=256 VS=1 K=8 INDEX64
// build ROWS BS=64 VS=1 K=1
// build ROWS BS=256 VS=8 K=1 WEIGHTED
// build ROWS BS=256 VS=32 K=8 WEIGHTED INDEX64
// build SETTLE BS=256 VS=1 K=1
#endif
