/* GPU body of kiln_assign for rows of f32 with up to four columns, where all centres fit into local memory:
 * scores by one product of tensor cores for 16 rows and 8 centres, nearly as exact as f32.
 *
 * A number is the sum of two halves, high + low, of which one power of two for rows and centres keeps the
 * largest number of a centre below 64. A product is 16 deep: for up to four columns
 *     high high' + low high' + high low',  and three halves of ||c||^2 / 2 times 1,
 * leave the score ||c||^2 / 2 - x.c at once. What is left out, low low' and what two halves do not hold, is
 * no more than f32 rounds.
 *
 * A warp has 32 rows and goes through the centres CHUNK at a time. A lane sees eight centres of a chunk and
 * of each of its rows; of them only the least score meets the least so far. Then every lane takes a row and
 * goes through the eight best in f32. Where the next best is not further off than the errors of both, the
 * warp measures the row's distances in double. */

#define ARGUMENTS_assign_split(FIRST, NEXT)                                                                  \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(TABLE, int, state)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)

#ifndef KI_HOST
#include "dialect/screen.h"

#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define GROUP 256
#define TILES 4 /* of eight centres */
#define CHUNK (8 * TILES)
#define MOST 4   /* columns */
#define BLOCKS 2 /* of 16 rows */
#define ROWS (16 * BLOCKS)
#define PARTS (64 * TILES) /* words of a chunk's right operands; centres and halves of their squared norms
                            * lie behind */
#define NORMS (PARTS + MOST * CHUNK)
#define RECORD (NORMS + CHUNK + 4) /* a chunk in local memory: each begins in other banks */
#define ONE 0x3c00u                /* as a half */
#define INFINITE 0x7c00u

/* Halves that add up to x, the first in the low bits. */
DEVICE_FN uint high_and_low(float x) {
    const float high = low_half(halves_of(x, 0.0f));
    return halves_of(high, x - high);
}

/* Centre c of a chunk, scaled: in f32, and the words of it that four lanes have, two each. Behind the last
 * come some whose scores are infinite. */
DEVICE_FN void split_centre(LOCAL_PTR real *record, int c, __global const float *centre, float up) {
    LOCAL_PTR uint *const words = (LOCAL_PTR uint *)record + c / 8 * 64 + c % 8 * 8;
    uint part[MOST];
    double square = 0;
    EACH(j, MOST) {
        const float x = centre && j < COLS ? centre[j < COLS ? j : 0] * up : 0.0f;
        square += (double)x * (double)x;
        part[j] = high_and_low(x);
        record[PARTS + c * MOST + j] = x;
    }
    const float half = (float)(square / 2), high = low_half(halves_of(half, 0.0f));
    const uint rest = high_and_low(half - high);
    record[NORMS + c] = centre ? half : INFINITY;
    EACH(t, 4) {
        const int j = t % 2 * 2;
        words[2 * t] = (part[j] & 0xffffu) | part[j + 1] << 16;
        words[2 * t + 1] = part[j] >> 16 | (part[j + 1] & 0xffff0000u);
    }
    words[5] = centre ? halves_of(high, low_half(rest)) : INFINITE;
    words[7] = centre ? rest >> 16 : 0;
}

/* -X of the lane's rows, `first` and those eight further on, two columns of four. */
DEVICE_FN void split_load(float (*x)[2], __global const float *X, long first, long rows) {
    const int j = (int)get_local_id(0) % 2 * 2;
    EACH(i, 2 * BLOCKS) {
        const long row = first + 8 * i < rows ? first + 8 * i : rows - 1;
        EACH(e, 2) x[i][e] = j + e < COLS ? -X[row * COLS + j + e] : 0.0f;
    }
}

/* The same as left operands: high parts in lanes 0 and 1 of four, low ones in the others, which have the
 * ones, too. */
DEVICE_FN void split_narrow(uint (*left)[4], const float (*x)[2], float up) {
    const int t = (int)get_local_id(0) % 4;
    EACH(i, 2 * BLOCKS) {
        const float x0 = x[i][0] * up, x1 = x[i][1] * up;
        const uint high = halves_of(x0, x1);
        const uint low = halves_of(x0 - low_half(high), x1 - high_half(high));
        left[i / 2][i % 2] = t < 2 ? high : low;
        left[i / 2][2 + i % 2] = t < 2 ? high : t == 2 ? ONE << 16 | ONE : ONE;
    }
}

/* Holds what is known of a row's scores: the least, the least of the others, where the best eight centres
 * are: chunk times 4 and lane. */
struct eights {
    float best, second;
    int at;
};

DEVICE_FN void eights_join(struct eights *to, float best, float second, int at) {
    to->second = fmin(fmin(to->second, second), fmax(to->best, best));
    to->at = best < to->best ? at : to->at;
    to->best = fmin(to->best, best);
}

/* Scores the lane's rows against a chunk. */
DEVICE_FN void split_chunk(struct eights *of, const uint (*left)[4], LOCAL_PTR const real *record, int at) {
    LOCAL_PTR const uint *const words = (LOCAL_PTR const uint *)record + (int)get_local_id(0) % 32 * 2;
    float score[BLOCKS][TILES][4];
    EACH(q, TILES) {
        const uint right[2] = {words[q * 64], words[q * 64 + 1]};
        EACH(m, BLOCKS) {
            EACH(e, 4) score[m][q][e] = 0;
            multiply_halves(score[m][q], left[m], right[0], right[1]);
        }
    }
    EACH(i, 2 * BLOCKS) {
        float least = NONE;
        EACH(q, TILES) EACH(e, 2) least = fmin(least, score[i / 2][q][i % 2 * 2 + e]);
        of[i].second = fmin(of[i].second, fmax(of[i].best, least));
        of[i].at = least < of[i].best ? at : of[i].at;
        of[i].best = fmin(of[i].best, least);
    }
}

/* The lane takes a row's scores from the four lanes that have them. */
DEVICE_FN struct eights split_own(LOCAL_PTR struct eights *shared, struct eights *of) {
    const int lane = (int)get_local_id(0) % 32;
    EACH(i, 2 * BLOCKS) {
        for (int mask = 1; mask < 4; mask *= 2)
            eights_join(&of[i], of_lane_xor(of[i].best, mask), of_lane_xor(of[i].second, mask),
                        of_lane_xor_int(of[i].at, mask));
        if (lane % 4 == i) shared[8 * i + lane / 4] = of[i];
    }
    warp_sync();
    const struct eights own = shared[lane];
    warp_sync();
    return own;
}

/* Returns how much less a score must be for its centre to be nearer: twice what f32 and the products are off.
 * Scaled as x and the centres. */
DEVICE_FN float split_margin(float square, float best) {
    const float norm = root_of(square), reach = 1.06f * (norm + root_of(square + 2 * best));
    return 2.02f * (reach * (norm + reach) * 8e-6f + (norm + reach + 1) * 3e-7f);
}

/* The nearest centre of a row, -x, among the best eight; -1: others may be nearer. */
DEVICE_FN int split_label(const struct eights *of, const float *x, LOCAL_PTR const real *all) {
    const int first = of->at % 4 * 2;
    LOCAL_PTR const real *const record = all + of->at / 4 * RECORD;
    float best = NONE, second = of->second, square = 0;
    int index = 0;
    EACH(c, 2 * TILES) {
        const int own = c / 2 * 8 + first + c % 2;
        const float4 centre = *(LOCAL_PTR const float4 *)(record + PARTS + own * MOST);
        const float score =
            record[NORMS + own] + x[0] * centre.x + x[1] * centre.y + x[2] * centre.z + x[3] * centre.w;
        second = fmin(second, fmax(best, score));
        index = score < best ? own : index;
        best = fmin(best, score);
    }
    EACH(j, MOST) square += x[j] * x[j];
    return second - best > split_margin(square, best) && square < LARGEST * LARGEST
               ? of->at / 4 * CHUNK + index
               : -1;
}

__kernel GROUP_BESIDE(GROUP, 2) void assign_split(PARAMETERS(assign_split)) {
    RING_BEGIN
    LOCAL float scratch[GROUP];
    LOCAL struct doubts all[GROUP / 32];
    LOCAL struct eights shared[GROUP];
    const int id = (int)get_local_id(0), lane = id % 32, chunks = (k + CHUNK - 1) / CHUNK;
    const long step = (long)(get_global_size(0) / 32) * ROWS;
    const bool huge = state[1];
    LOCAL_PTR struct doubts *const doubts = all + id / 32;
    float most = 0, v[2 * BLOCKS][2];
    doubts->count = 0;
    for (int e = id; e < k * COLS; e += GROUP) most = fmax(most, fabs(C[e]));
    const float up = power_of_two(exponent_of(most_of_group(scratch, most, GROUP)) - 8);
    for (int c = id; c < chunks * CHUNK; c += GROUP)
        split_centre(ring + c / CHUNK * RECORD, c % CHUNK, c < k ? C + c * COLS : 0, up);
    barrier(CLK_LOCAL_MEM_FENCE);
    long top = (long)(get_global_id(0) / 32) * ROWS;
    split_load(v, X, top + lane / 4, rows);
    for (; top < rows; top += step) {
        const long row = top + lane < rows ? top + lane : rows - 1;
        uint left[BLOCKS][4];
        float x[MOST];
        struct eights of[2 * BLOCKS];
        split_narrow(left, (const float(*)[2])v, up);
        split_load(v, X, top + step + lane / 4, rows);
        EACH(j, MOST) x[j] = j < COLS ? X[row * COLS + (j < COLS ? j : 0)] * -up : 0.0f;
        EACH(i, 2 * BLOCKS) {
            of[i].best = of[i].second = NONE;
            of[i].at = 0;
        }
        for (int c = 0; c < chunks; c++)
            split_chunk(of, (const uint(*)[4])left, ring + c * RECORD, 4 * c + lane % 4);
        const struct eights own = split_own(shared + id / 32 * 32, of);
        const int label = split_label(&own, x, ring);
        if (label >= 0 && !huge) {
            found[row] = label;
        } else if (top + lane < rows) {
            const int place = count_local(&doubts->count, 1);
            doubts->row[place] = (int)row;
            doubts->centre[place] = -1;
        }
        warp_sync();
        if (doubts->count > PAIRS - ROWS) settle_doubts(found, 0, doubts, X, C, COLS, k);
    }
    settle_doubts(found, 0, doubts, X, C, COLS, k);
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SCREEN COLS=4
// build SCREEN COLS=3
#endif
