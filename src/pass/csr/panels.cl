/* The passes over the part of a sparse X that lies in panels (derived/derived.h): its columns are cut so
 * narrow that a panel of y, and of w, stays in the second cache level, while the entries, panel by panel,
 * stream past it once. A random load or addition that hits there costs a fifth of one that does not.
 *
 *   panels_dots   dots (rows x K) += (part of X) y
 *   panels_sums   out += alpha (part of X)^T factors
 *   bands_sum     out = sum of bands + beta z, for the deterministic pass (derived/transpose.c)
 *
 * A panel is cut into blocks of `height` rows, and an entry is one word: its row within the block above the
 * `bits` bits of its column within the panel. Blocks come in the order of their panels, and groups are
 * started in the order of their numbers. A group takes a piece of a block, `piece` entries at most, and K
 * adjacent threads an entry: its column of y is then read, and of w added to, as one piece of memory. */

/* The passes over panels take these. Without values X, all of them are `same`. */
#define ARGUMENTS_panels(FIRST, NEXT)                                                                        \
    FIRST(TABLE, int, entry)                                                                                 \
    NEXT(TABLE, real, X)                                                                                     \
    NEXT(VALUE, real, same)                                                                                  \
    NEXT(TABLE, int, start)                                                                                  \
    NEXT(TABLE, int, piece_block)                                                                            \
    NEXT(TABLE, int, piece_number)                                                                           \
    NEXT(VALUE, int, piece)                                                                                  \
    NEXT(VALUE, int, blocks)                                                                                 \
    NEXT(VALUE, int, height)                                                                                 \
    NEXT(VALUE, int, bits)                                                                                   \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)

#define ARGUMENTS_panels_dots(FIRST, NEXT)                                                                   \
    ARGUMENTS_panels(FIRST, NEXT)                                                                            \
    NEXT(SPACE, real, dots)                                                                                  \
    NEXT(IN, real, y)

#define ARGUMENTS_panels_sums(FIRST, NEXT)                                                                   \
    ARGUMENTS_panels(FIRST, NEXT)                                                                            \
    NEXT(OUT, real, out)                                                                                     \
    NEXT(VALUE, int, squared)                                                                                \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(TABLE, real, factors)                                                                               \
    NEXT(VALUE, int, factors_k)                                                                              \
    NEXT(VALUE, int, factors_first)

#define ARGUMENTS_bands_sum(FIRST, NEXT)                                                                     \
    FIRST(OUT, real, out)                                                                                    \
    NEXT(TABLE, real, sums)                                                                                  \
    NEXT(IN, real, z)                                                                                        \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, int, count)                                                                                  \
    NEXT(VALUE, long, size)                                                                                  \
    NEXT(VALUE, int, width)                                                                                  \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, first)

#ifndef KI_HOST
#include "dialect/chain_arguments.h"

#define SLOTS (BS / K)
#define TURN (SLOTS * Q)
#define COLUMN(e) ((e) & (((uint32)1 << bits) - 1))
#define ROW(e) ((int)((e) >> bits))
#define RUN 16 /* entries of a row that one thread adds up at most */

#define PIECE_BEGIN                                                                                          \
    const int id = (int)get_local_id(0), column = id % K, slot = id / K;                                     \
    const int block = piece_block[get_group_id(0)];                                                          \
    const int begin = start[block] + piece_number[get_group_id(0)] * piece;                                  \
    const int end = start[block + 1] - begin < piece ? start[block + 1] : begin + piece;                     \
    const index_t row0 = (index_t)(block % blocks) * height, column0 = (index_t)(block / blocks) << bits;

#define LOAD_ENTRIES                                                                                         \
    uint32 e[Q];                                                                                             \
    real x[Q];                                                                                               \
    _Pragma("unroll") for (int t = 0; t < Q; t++) {                                                          \
        const int i = turn + slot + t * SLOTS;                                                               \
        e[t] = i < end ? (uint32)load_once_int(entry + i) : 0;                                               \
        x[t] = i >= end ? REAL(0.0) : X ? load_once(X + i) : same;                                       \
    }

__kernel GROUP_OF(BS) void panels_dots(PARAMETERS(panels_dots)) {
    LOCAL real product[BS * Q];
    LOCAL int row_of[TURN];
    PIECE_BEGIN
    for (int turn = begin; turn < end; turn += TURN) {
        LOAD_ENTRIES
#pragma unroll
        for (int t = 0; t < Q; t++) {
            const bool in = turn + slot + t * SLOTS < end;
            const index_t c = column0 + (index_t)COLUMN(e[t]);
            product[id + t * BS] = in && first + column < k ? x[t] * y[c * k + first + column] : REAL(0.0);
            if (column == 0) row_of[slot + t * SLOTS] = in ? ROW(e[t]) : -1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int t = 0; t < Q; t++) {
            const int at = slot + t * SLOTS, row = row_of[at];
            if (row < 0 || (at % RUN != 0 && row_of[at - 1] == row)) continue;
            real sum = product[id + t * BS];
            for (int n = at + 1; n % RUN != 0 && row_of[n] == row; n++) sum += product[n * K + column];
            atomic_add_global(dots + ((row0 + row) * K + column), sum);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__kernel GROUP_OF(BS) void panels_sums(PARAMETERS(panels_sums)) {
    PIECE_BEGIN
    for (int turn = begin; turn < end; turn += TURN) {
        LOAD_ENTRIES
        real f[Q]; /* all of them before the first sum, which no load passes */
#pragma unroll
        for (int t = 0; t < Q; t++) {
            const bool in = turn + slot + t * SLOTS < end && first + column < k;
            f[t] = in ? factors[(row0 + ROW(e[t])) * factors_k + factors_first + column] : REAL(0.0);
        }
#pragma unroll
        for (int t = 0; t < Q; t++) {
            if (turn + slot + t * SLOTS >= end || first + column >= k) continue;
            const index_t c = column0 + (index_t)COLUMN(e[t]);
            atomic_add_global(out + (c * k + first + column), alpha * f[t] * (squared ? x[t] * x[t] : x[t]));
        }
    }
}

#ifdef SLICES
#define SUMS (BS / SLICES)
/* out = the sum of what `count` bands of rows left + beta z, always in the same order: SLICES threads add up
 * every SLICES-th band each. A band has left `size` elements, `width` of a row. */
__kernel GROUP_OF(BS) void bands_sum(PARAMETERS(bands_sum)) {
    LOCAL real part[BS];
    const int id = (int)get_local_id(0), slice = id / SUMS;
    const long i = (long)get_group_id(0) * SUMS + id % SUMS;
    real sum = REAL(0.0);
    if (i < size) {
#pragma unroll 8
        for (int g = slice; g < count; g += SLICES) sum += sums[g * size + i];
    }
    part[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slice > 0 || i >= size) return;
    for (int s = 1; s < SLICES; s++) sum += part[s * SUMS + id];
    const index_t to = (index_t)(i / width) * k + first + (index_t)(i % width);
    out[to] = z ? sum + beta * z[to] : sum;
}
#endif

/* The variants that differ in text, as the tests build them. */
// build BS=256 Q=4 K=1
// build BS=64 Q=4 K=8 INDEX64
// build BS=256 Q=1 K=1 SLICES=1
// build BS=256 Q=1 K=1 SLICES=32 INDEX64
#endif
