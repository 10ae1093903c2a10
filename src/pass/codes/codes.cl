/* GPU body of the passes over an X that keeps categories as codes (core/codes/codes.h):
 * X = [numbers | categories], out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * A thread has a row. Of the categories it gathers y of the row's levels before the map in the middle, and
 * adds the row's factor to w of these levels after it; threads of neighbouring rows read neighbouring codes.
 * D numbers of the row, few of them, stay in registers between the two, as do their sums over all rows of the
 * thread: so X is read once. Where there are more, the passes over a dense X go over them (codes_run.c), and
 * D is 0: what they add to the rows' dot products is in `rest`, whose place the factors take.
 *
 * Sums of the levels gather in local memory as far as it holds them, the narrowest categories first. Where
 * levels are few, neighbouring threads often have the same one and would wait for each other: they take turns
 * with `spread` sums of a level. The other sums are added up in memory, to which `out` = beta z came before.
 *
 * The words begin with CATEGORY numbers of each category (enum ki_code_word), and D places: which column of X
 * a number is. */

/* Columns [first, first + K) of k; chip: sums of levels, of K each, that are near. */
#define ARGUMENTS_coded(FIRST, NEXT)                                                                         \
    FIRST(OUT, real, out)                                                                                    \
    NEXT(IN, real, numbers)                                                                                  \
    NEXT(IN, int, words)                                                                                     \
    NEXT(OUT, real, rest)                                                                                    \
    ARGUMENTS_chain(NEXT, NEXT) NEXT(VALUE, int, count) NEXT(VALUE, int, k) NEXT(VALUE, int, first)          \
        NEXT(VALUE, int, v_cols) NEXT(VALUE, int, chip)

/* The numbers' part of y, and of out; `count` places begin at `places`. */
#define ARGUMENTS_coded_places(FIRST, NEXT)                                                                  \
    FIRST(OUT, real, all)                                                                                    \
    NEXT(OUT, real, part)                                                                                    \
    NEXT(IN, int, words)                                                                                     \
    NEXT(VALUE, int, places)                                                                                 \
    NEXT(VALUE, int, count)                                                                                  \
    NEXT(VALUE, int, k)

#ifndef KI_HOST
#include "dialect/group_sum.h"
#include "dialect/pass.h"

#ifdef PLACES
__kernel void coded_take(PARAMETERS(coded_places)) {
    FOR_EACH(e, (index_t)count * k) part[e] = all[(index_t)words[places + e / k] * k + e % k];
}

__kernel void coded_give(PARAMETERS(coded_places)) {
    FOR_EACH(e, (index_t)count * k) all[(index_t)words[places + e / k] * k + e % k] += part[e];
}

#else
#define CATEGORY 6
#define TOGETHER 4 /* categories whose loads are under way at once */

struct category {
    __global const unsigned char *codes;
    int bytes, first, levels, spread, near;
};

DEVICE_FN struct category category_of(__global const int *words, int c) {
    __global const int *const word = words + c * CATEGORY;
    struct category category;
    category.codes = (__global const unsigned char *)words + (long)word[0] * 16;
    category.bytes = word[1];
    category.first = word[2];
    category.levels = word[3];
    category.spread = word[4];
    category.near = word[5];
    return category;
}

/* Levels of categories c to c + TOGETHER of a row; negative where it has none. */
DEVICE_FN void load_levels(int *level, __global const int *words, int c, int count, long row) {
#pragma unroll
    for (int t = 0; t < TOGETHER; t++) {
        level[t] = -1;
        if (c + t >= count) continue;
        const struct category of = category_of(words, c + t);
        const int code = of.bytes == 1   ? (int)of.codes[row]
                         : of.bytes == 2 ? (int)((__global const unsigned short *)of.codes)[row]
                                         : ((__global const int *)of.codes)[row];
        if (code < of.levels) level[t] = code;
    }
}

/* p += y of the row's levels. */
DEVICE_FN void gather_levels(real *p, __global const int *words, int count, long row, __global const real *y,
                             int first, int k) {
    int level[TOGETHER];
    for (int c = 0; c < count; c += TOGETHER) {
        load_levels(level, words, c, count, row);
#pragma unroll
        for (int t = 0; t < TOGETHER; t++) {
            if (level[t] < 0) continue;
            const index_t at = (index_t)(words[(c + t) * CATEGORY + 2] + level[t]) * k + first;
            EACH_COLUMN(j) if (first + j < k) p[j] += y[at + j];
        }
    }
}

/* The place of a level's sums on chip, for this thread. */
DEVICE_FN int near_place(const struct category *of, int level) {
    return (of->near - of->levels * of->spread + level * of->spread + (int)get_local_id(0) % of->spread) * K;
}

/* w of the row's levels += p. */
DEVICE_FN void scatter_levels(const real *p, __global const int *words, int count, long row,
                              __global real *out, LOCAL_PTR real *sums, int chip, int first, int k) {
    int level[TOGETHER];
    for (int c = 0; c < count; c += TOGETHER) {
        load_levels(level, words, c, count, row);
#pragma unroll
        for (int t = 0; t < TOGETHER; t++) {
            if (level[t] < 0) continue;
            const struct category of = category_of(words, c + t);
            if (of.near <= chip) {
                const int at = near_place(&of, level[t]);
                EACH_COLUMN(j) if (first + j < k) atomic_add_local(sums + at + j, p[j]);
            } else {
                const index_t at = (index_t)(of.first + level[t]) * k + first;
                EACH_COLUMN(j) if (first + j < k) atomic_add_global(out + at + j, p[j]);
            }
        }
    }
}

/* Sums that gathered on chip go to memory: a level's in order. */
DEVICE_FN void flush_levels(__global const int *words, int count, __global real *out,
                            LOCAL_PTR const real *sums, int chip, int first, int k) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = 0; c < count; c++) {
        const struct category of = category_of(words, c);
        if (of.near > chip) continue;
        const int begin = (of.near - of.levels * of.spread) * K;
        for (int e = (int)get_local_id(0); e < of.levels * K; e += BS) {
            real sum = REAL(0.0);
            for (int s = 0; s < of.spread; s++) sum += sums[begin + (e / K * of.spread + s) * K + e % K];
            if (sum != REAL(0.0) && first + e % K < k)
                atomic_add_global(out + ((index_t)(of.first + e / K) * k + first + e % K), sum);
        }
    }
}

__kernel GROUP_OF(BS) void coded(PARAMETERS(coded) MAP_PARAMETERS LOCAL_PARAMETER(chip_sums)) {
    LOCAL_BEGIN(chip_sums)
#if D && !PLAIN
    LOCAL real scratch[BS];
    real w[D * K];
#pragma unroll
    for (int e = 0; e < D * K; e++) w[e] = REAL(0.0);
#endif
    MAP_BEGIN
#if !PLAIN
    for (int e = (int)get_local_id(0); e < chip * K; e += BS) chip_sums[e] = REAL(0.0);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (long row = (long)get_global_id(0); row < rows; row += (long)get_global_size(0)) {
        real p[K];
        EACH_COLUMN(j) p[j] = REAL(0.0);
#if D
        real x[D];
#pragma unroll
        for (int d = 0; d < D; d++) x[d] = numbers[(index_t)row * D + d];
#endif
#if FUSED || PLAIN
#if D
#pragma unroll
        for (int d = 0; d < D; d++) {
            const index_t at = (index_t)words[count * CATEGORY + d] * k + first;
            EACH_COLUMN(j) if (first + j < k) p[j] += x[d] * y[at + j];
        }
#endif
        if (rest) EACH_COLUMN(j) if (first + j < k) p[j] = rest[(index_t)row * k + first + j];
        gather_levels(p, words, count, row, y, first, k);
#endif
#if PLAIN
        EACH_COLUMN(j)
        if (first + j < k) write_plain(out, p[j], z, alpha, beta, (index_t)row * k + first + j);
#else
        row_factors(p, v, y, (index_t)row, first, k, v_cols MAP_ARGUMENTS(true));
        EACH_COLUMN(j) p[j] *= alpha;
#if FUSED
        if (rest) EACH_COLUMN(j) if (first + j < k) rest[(index_t)row * k + first + j] = p[j];
#endif
#if D
#pragma unroll
        for (int d = 0; d < D; d++) {
            const real factor = SQUARES ? x[d] * x[d] : x[d];
            EACH_COLUMN(j) w[d * K + j] += p[j] * factor;
        }
#endif
        scatter_levels(p, words, count, row, out, chip_sums, chip, first, k);
#endif
    }
#if !PLAIN
    flush_levels(words, count, out, chip_sums, chip, first, k);
#if D
    for (int e = 0; e < D * K; e++) {
        const real sum = group_sum(w[e], scratch);
        const index_t at = (index_t)words[count * CATEGORY + e / K] * k + first + e % K;
        if (get_local_id(0) == 0 && first + e % K < k) atomic_add_global(out + at, sum);
    }
#endif
#endif
    MAP_END
}
#endif

/* The variants that differ in text, as the tests build them. */
// build PLACES
// build PLACES INDEX64
// build KIND=0 D=10 VS=512 BS=512 Q=1 W=1 K=1 MAP=2 LOSS=2 FAMILY=0 LINK=0
// build KIND=0 D=10 VS=512 BS=512 Q=1 W=1 K=1
// build KIND=0 D=2 VS=64 BS=64 Q=1 W=1 K=8 MAP=0
// build KIND=0 D=0 VS=512 BS=512 Q=1 W=1 K=8 MAP=1 INDEX64
// build KIND=1 D=3 VS=512 BS=512 Q=1 W=1 K=1
// build KIND=2 D=0 VS=512 BS=512 Q=1 W=1 K=4
// build KIND=3 D=5 VS=512 BS=512 Q=1 W=1 K=1
#endif
