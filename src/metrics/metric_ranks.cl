/* GPU body of the ranks (metrics/ranks.c): rows are sorted by score, and the area comes of one look at them
 * in that order.
 *
 * The sort: tiles of TILE rows on chip by Batcher's bitonic network, then runs of twice the length from two,
 * where each group makes a tile of the result: the place at which its rows part in both runs is searched for
 * ("merge path", Green, McColl and Bader, ICS 2012). No step depends on the order in which groups run, so
 * that the same rows give the same bits. */

#define ARGUMENTS_rank_tiles(FIRST, NEXT)                                                                    \
    FIRST(SPACE, uint64, keys)                                                                               \
    NEXT(SPACE, wide, of)                                                                                    \
    NEXT(IN, wide, eta)                                                                                      \
    NEXT(IN, wide, y)                                                                                        \
    NEXT(IN, wide, weights)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, columns)                                                                                \
    NEXT(VALUE, long, begin)                                                                                 \
    NEXT(VALUE, long, width)                                                                                 \
    NEXT(VALUE, int, differ)                                                                                 \
    NEXT(VALUE, int, singles)                                                                                \
    NEXT(VALUE, int, falls)                                                                                  \
    NEXT(VALUE, int, classes)                                                                                \
    NEXT(VALUE, wide, class_value)

#define ARGUMENTS_rank_merge(FIRST, NEXT)                                                                    \
    FIRST(SPACE, uint64, keys_to)                                                                            \
    NEXT(SPACE, wide, to)                                                                                    \
    NEXT(TABLE, uint64, keys)                                                                                \
    NEXT(TABLE, wide, from)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, run)

#define ARGUMENTS_rank_area(FIRST, NEXT)                                                                     \
    FIRST(SPACE, ranking, left)                                                                              \
    NEXT(TABLE, uint64, keys)                                                                                \
    NEXT(TABLE, wide, from)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, long, tiles_a_group)

/* The operands' bits. */
#define RANK_ETA 1
#define RANK_Y 2
#define RANK_WEIGHTS 4

#ifndef KI_HOST
#include "dialect/joins.h"

typedef struct ki_ranking ranking;

#define TILE (GROUP * EACH)
#define LAST_KEY (~(uint64)0) /* of rows that do not count, whose weight is 0 */

DEVICE_FN wide number_at(__global const wide *values, int single, long at) {
    return single ? (wide)((__global const float *)values)[at] : values[at];
}

/* Keys that rank as numbers do, the highest first, 0 as -0. */
DEVICE_FN uint64 key_of(real score) {
    const uint64 bits = (uint64)BITS_OF(score + REAL(0.0)), sign = (uint64)1 << (8 * sizeof(real) - 1);
    return bits & sign ? bits : ~(bits | sign);
}

/* Weights are negative where a row is not of the class. */
__kernel void rank_tiles(PARAMETERS(rank_tiles)) {
    LOCAL uint64 key[TILE];
    LOCAL wide with[TILE];
    const int lane = (int)get_local_id(0);
    const long first = (long)get_group_id(0) * TILE;
    for (int e = lane; e < TILE; e += GROUP) {
        const long row = first + e;
        key[e] = LAST_KEY;
        with[e] = 0;
        if (row < rows) {
            const long place = row * width + begin + (columns > 1); /* the second class's */
            wide score = number_at(eta, singles & RANK_ETA, place);
            if (differ) score -= number_at(eta, singles & RANK_ETA, place - 1);
            const wide at = number_at(y, singles & RANK_Y, row);
            const wide s = weights ? number_at(weights, singles & RANK_WEIGHTS, row) : (wide)1;
            const int is = classes ? at == class_value : at > 0;
            if (score == score && s > 0) {
                key[e] = key_of((real)(falls ? -score : score));
                with[e] = is ? s : -s;
            }
        }
    }
    for (int size = 2; size <= TILE; size *= 2)
        for (int reach = size / 2; reach >= 1; reach /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int pair = lane; pair < TILE / 2; pair += GROUP) {
                const int low = 2 * pair - (pair & (reach - 1)), high = low + reach;
                const uint64 a = key[low], b = key[high];
                if ((low & size) == 0 ? a > b : a < b) {
                    const wide moved = with[low];
                    key[low] = b;
                    key[high] = a;
                    with[low] = with[high];
                    with[high] = moved;
                }
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = lane; e < TILE && first + e < rows; e += GROUP) {
        keys[first + e] = key[e];
        of[first + e] = with[e];
    }
}

/* Says how many of the first `count` of both runs are of the first one, of whose equal keys all come before
 * the other's. */
#define PART_OF(result, first_keys, first_count, second_keys, second_count, count)                           \
    do {                                                                                                     \
        long low = (count) > (second_count) ? (count) - (second_count) : 0;                                  \
        long high = (count) < (first_count) ? (count) : (first_count);                                       \
        while (low < high) {                                                                                 \
            const long middle = (low + high) / 2;                                                            \
            if ((first_keys)[middle] <= (second_keys)[(count) - 1 - middle])                                 \
                low = middle + 1;                                                                            \
            else                                                                                             \
                high = middle;                                                                               \
        }                                                                                                    \
        result = low;                                                                                        \
    } while (0)

__kernel void rank_merge(PARAMETERS(rank_merge)) {
    LOCAL uint64 key[TILE];
    LOCAL wide with[TILE];
    LOCAL long parts[2];
    const int lane = (int)get_local_id(0);
    const long begin = (long)get_group_id(0) * TILE, start = begin / (2 * run) * (2 * run); /* of both runs */
    const long first_count = rows - start < run ? rows - start : run;
    const long second_count = rows - start - first_count < run ? rows - start - first_count : run;
    const long count = begin - start, left = first_count + second_count - count;
    const int mine = left < TILE ? (int)left : TILE;
    __global const uint64 *first = keys + start, *second = first + first_count;
    if (lane < 2) {
        const long at = lane ? count + mine : count;
        PART_OF(parts[lane], first, first_count, second, second_count, at);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const long first_begin = parts[0], second_begin = count - first_begin;
    const int of_first = (int)(parts[1] - first_begin), of_second = mine - of_first;
    for (int e = lane; e < mine; e += GROUP) {
        const long at =
            start + (e < of_first ? first_begin + e : first_count + second_begin + (e - of_first));
        key[e] = keys[at];
        with[e] = from[at];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint64 own_key[EACH];
    wide own[EACH];
    const int from_here = lane * EACH < mine ? lane * EACH : mine;
    long a;
    PART_OF(a, key, of_first, key + of_first, of_second, from_here);
    int i = (int)a, j = from_here - i;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (from_here + e < mine) {
            const int take_first = j >= of_second || (i < of_first && key[i] <= key[of_first + j]);
            const int at = take_first ? i : of_first + j;
            own_key[e] = key[at];
            own[e] = with[at];
            i += take_first;
            j += !take_first;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (from_here + e < mine) {
            key[from_here + e] = own_key[e];
            with[from_here + e] = own[e];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = lane; e < mine; e += GROUP) {
        keys_to[begin + e] = key[e];
        to[begin + e] = with[e];
    }
}

/* Each group walks over its tiles; a thread has EACH adjacent rows, and pieces are joined in the rows' order.
 * */
__kernel void rank_area(PARAMETERS(rank_area)) {
    LOCAL uint64 key[TILE];
    LOCAL wide with[TILE];
    LOCAL struct ki_ranking pieces[GROUP];
    const int lane = (int)get_local_id(0);
    const long group = (long)get_group_id(0);
    struct ki_ranking all = {0, {0, 0, 0}, {0, 0, 0}, 0, 0, 0};
    for (long tile = group * tiles_a_group; tile < (group + 1) * tiles_a_group; tile++) {
        const long first = tile * TILE;
        struct ki_ranking piece = {0, {0, 0, 0}, {0, 0, 0}, 0, 0, 0};
        for (int e = lane; e < TILE; e += GROUP) {
            key[e] = first + e < rows ? keys[first + e] : LAST_KEY;
            with[e] = first + e < rows ? from[first + e] : (wide)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = lane * EACH; e < (lane + 1) * EACH; e++) {
            struct ki_tied row;
            row.key = key[e];
            row.positive = with[e] > 0 ? with[e] : (wide)0;
            row.negative = with[e] < 0 ? -with[e] : (wide)0;
            ki_ranking_add(&piece, &row);
        }
        pieces[lane] = piece;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = 1; reach < GROUP; reach *= 2) {
            if ((lane & (2 * reach - 1)) == 0) {
                const struct ki_ranking next = pieces[lane + reach];
                ki_ranking_join(&piece, &next);
                pieces[lane] = piece;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) ki_ranking_join(&all, &piece);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) left[group] = all;
}

/* The variants that differ in text, as the tests build them: of f64 alone, which scores are ranked in. */
// build GROUP=128 EACH=8
// pack f64 GROUP=128 EACH=8
#endif
