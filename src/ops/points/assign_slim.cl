/* GPU body of kiln_assign for rows of f32 with few columns, where all centres fit into local memory as
 * halves: the screening of assign_screen.cl by warps that wait for nobody, and leave no row in doubt.
 *
 * A warp has 16 rows in registers, as tensor cores take them, and goes through the centres BLOCK at a time.
 * Products do not care in which order columns come, so that lane t of four has the columns 4 t to 4 t + 3 and
 * 16 + 4 t to 19 + 4 t of every 32, of rows and of centres: 16 bytes of halves a centre, and of eight centres
 * side by side all banks. Local memory has the centres by BLOCKS of 32 columns, then half their squared
 * norms.
 *
 * One power of two scales rows and centres, so that the largest number of a centre is below 64. Sums begin at
 * -||c'||^2 / 2, so that products leave the score x.c - ||c||^2 / 2 without an instruction more; the largest
 * is the nearest centre's. What rounding to halves took from each row and centre is measured: ||c - c'|| <=
 * share (||c|| + floor), floor a small part of the largest number of all.
 *
 * The largest score of a row, and the bound for the error of all, make a limit; the sign of score - limit
 * says whether a centre may be the nearest. More centres than a block are gone through twice. Where more than
 * one remains, the warp measures them in double. */

/* apart: ||x - c||^2 of each row and its centre; 0: not wanted. */
#define ARGUMENTS_assign_slim(FIRST, NEXT)                                                                   \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(SPACE, real, apart)                                                                                 \
    NEXT(TABLE, int, state)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)

#ifndef KI_HOST
#include "dialect/screen.h"

#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define GROUP 256
#define DEPTH ((COLS + 31) / 32 * 32)
#define BLOCKS (DEPTH / 32)
#define WARP_ROWS 16       /* of which each has two candidates of four lanes at most */
#define ROWS 2             /* that a lane has scores of */
#define BLOCK (8 * TILES)  /* centres at a time */
#define SCORES (2 * TILES) /* of them, that a lane has of a row: 32 at most */
#ifdef ONE_BLOCK /* has all centres: known when the kernel is built, so that scores stay in registers */
#define END BLOCK
#else
#define END k
#endif

/* The centres have what scales them and the rows, and the bound for what is lost of one, scaled. */
struct centres {
    float up, share, floor;
};

DEVICE_FN struct centres slim_centres(LOCAL_PTR uint *to, LOCAL_PTR float *scratch, __global const float *C,
                                      int padded, int k) {
    const int id = (int)get_local_id(0);
    LOCAL_PTR float *const begin = (LOCAL_PTR float *)(to + padded * (DEPTH / 2));
    float most = 0, share = 0;
    struct centres of;
    for (int e = id; e < k * COLS; e += GROUP) most = fmax(most, fabs(C[e]));
    most = most_of_group(scratch, most, GROUP);
    of.up = power_of_two(exponent_of(most) - 8);
    of.floor = most * of.up * 0.00390625f;
    for (int e = id; e < padded * (DEPTH / 2); e += GROUP) {
        const int c = e / (DEPTH / 2), word = e % (DEPTH / 2);
        const int j = word / 16 * 32 + COLUMN_OF(word % 16 / 4, word % 4 * 2);
        const float x0 = c < k && j < COLS ? C[c * COLS + j] : 0,
                    x1 = c < k && j + 1 < COLS ? C[c * COLS + j + 1] : 0;
        to[(word / 16 * padded + c) * 16 + word % 16] = halves_of(x0 * of.up, x1 * of.up);
    }
    for (int c = id; c < padded; c += GROUP)
        share = fmax(share, lost_of_centre(begin + c / 2 * 4 + c % 2, c < k ? C + c * COLS : 0, of.up,
                                           of.floor, COLS));
    of.share = most_of_group(scratch, share, GROUP);
    return of;
}

/* Holds what a warp has of its rows: halves; ||x|| and ||x - x'||, scaled. */
struct slim {
    uint left[2 * BLOCKS][4];
    float norm[ROWS], lost[ROWS];
};

/* A lane's numbers of a row of X or C. */
DEVICE_FN void slim_load(float *v, __global const float *X, long row) {
    const int t = (int)get_local_id(0) % 4;
    __global const float *x = X + row * COLS;
#ifdef ALIGNED
    EACH(b, 2 * BLOCKS) {
        const float4 some = *(__global const float4 *)(x + 16 * b + 4 * t);
        v[4 * b] = some.x;
        v[4 * b + 1] = some.y;
        v[4 * b + 2] = some.z;
        v[4 * b + 3] = some.w;
    }
#else
    EACH(b, BLOCKS) EACH(e, 8) {
        const int j = 32 * b + COLUMN_OF(t, e);
        v[8 * b + e] = j < COLS ? x[j] : 0;
    }
#endif
}

/* Those of the lane's rows, `first` and eight further on; of the last row where they are not there. */
DEVICE_FN void slim_rows(float (*v)[8 * BLOCKS], __global const float *X, long first, long rows) {
    EACH(i, ROWS) slim_load(v[i], X, first + i * 8 < rows ? first + i * 8 : rows - 1);
}

DEVICE_FN void slim_narrow(struct slim *to, const float (*v)[8 * BLOCKS], float up) {
    EACH(i, ROWS) {
        float norm = 0, lost = 0;
        EACH(q, 4 * BLOCKS) {
            const float x0 = v[i][2 * q] * up, x1 = v[i][2 * q + 1] * up;
            const uint both = halves_of(x0, x1);
            const float left0 = x0 - low_half(both), left1 = x1 - high_half(both);
            norm += x0 * x0 + x1 * x1;
            lost += left0 * left0 + left1 * left1;
            to->left[q / 2][q % 2 * 2 + i] = both;
        }
        to->norm[i] = root_of(sum_of_sharing(norm, 4));
        to->lost[i] = root_of(sum_of_sharing(lost, 4));
    }
}

/* The scores of the rows and a block of centres: of each eight, two of either row. */
DEVICE_FN void slim_scores(float (*score)[4], const struct slim *of, uint at, uint begin, int padded) {
    EACH(q, TILES) {
        load_words((uint *)score[q], begin + (uint)q * 64);
        EACH(b, BLOCKS) {
            uint right[4];
            load_words(right, at + (uint)(b * padded + q * 8) * 64);
            multiply_halves(score[q], of->left[2 * b], right[0], right[1]);
            multiply_halves(score[q], of->left[2 * b + 1], right[2], right[3]);
        }
    }
}

/* Centres of a lane that may be a row's nearest: how many, and two of them. */
struct candidates {
    int count, first, second;
};

/* Adds those of a block whose scores are not below the limit. */
DEVICE_FN void slim_note(struct candidates *to, const float (*score)[4], int i, float limit, int begin) {
    uint below = 0;
    EACH(s, SCORES) {
        const int from = SCORES - 1 - s;
        below = below << 1 | BITS_OF(score[from / 2][i * 2 + from % 2] - limit) >> 31;
    }
    for (uint left = ~below & (0xffffffffu >> (32 - SCORES)); left; left &= left - 1) {
        const int bit = lowest_bit(left), c = begin + bit / 2 * 8 + bit % 2;
        if (to->count++ == 0) to->first = c;
        to->second = c;
    }
}

/* The row's label where there is one candidate. Where there are more, -1, and a place among the doubts for
 * each, or one for all centres (-1) where a lane has more than two or numbers are too large for scores. */
DEVICE_FN int slim_settle(LOCAL_PTR struct doubts *to, const struct candidates *mine, int row, int rows,
                          bool huge) {
    const int t = (int)get_local_id(0) % 4;
    int all = mine->count > 2 ? 1 << 16 : mine->count, label = mine->first;
    EACH(step, 2) {
        all += of_lane_xor_int(all, 1 << step);
        label += of_lane_xor_int(label, 1 << step);
    }
    const bool crowd = huge || all >= 1 << 16 || all == 0;
    if (!crowd && all == 1) return label;
    const int number = row >= rows ? 0 : crowd ? t == 0 : mine->count;
    for (int i = 0; i < number; i++) {
        const int place = count_local(&to->count, 1);
        to->row[place] = row;
        to->centre[place] = crowd ? -1 : i ? mine->second : mine->first;
    }
    return -1;
}

/* Finds what is wanted of a row, by its four lanes. */
DEVICE_FN void slim_give(__global int *found, __global float *apart, int label, __global const float *X,
                         __global const float *C, long row) {
    const int t = (int)get_local_id(0) % 4;
    if (apart) {
        float x[8 * BLOCKS], c[8 * BLOCKS], sum = 0;
        slim_load(x, X, row);
        slim_load(c, C, label < 0 ? 0 : label);
        EACH(j, 8 * BLOCKS) sum += (x[j] - c[j]) * (x[j] - c[j]);
        sum = sum_of_sharing(sum, 4);
        if (t == 0 && label >= 0) apart[row] = sum;
    }
    if (t == 0 && label >= 0) found[row] = label;
}

/* Labels of the lane's rows. */
DEVICE_FN void slim_find(int *label, LOCAL_PTR struct doubts *to, const struct slim *own,
                         const struct centres *centres, uint centres_at, uint begin_at, bool huge, int padded,
                         long first, long rows, int k) {
    const int t = (int)get_local_id(0) % 4, end = END;
    const struct candidates none = {0, 0, 0};
    struct candidates mine[ROWS];
    float score[TILES][4], limit[ROWS];
    EACH(i, ROWS) {
        mine[i] = none;
        limit[i] = -NONE;
    }
    for (int c = 0; c < end; c += BLOCK) {
        slim_scores(score, own, centres_at + (uint)c * 64, begin_at + (uint)c * 8, padded);
        EACH(i, ROWS) EACH(s, SCORES) limit[i] = fmax(limit[i], score[s / 2][i * 2 + s % 2]);
    }
    EACH(i, ROWS) {
        for (int mask = 1; mask < 4; mask *= 2) limit[i] = fmax(limit[i], of_lane_xor(limit[i], mask));
        limit[i] -= scaled_margin(own->norm[i], own->lost[i], centres->share, centres->floor, limit[i], COLS);
    }
    for (int c = 0; c < end; c += BLOCK) {
        if (end > BLOCK) slim_scores(score, own, centres_at + (uint)c * 64, begin_at + (uint)c * 8, padded);
        EACH(i, ROWS) slim_note(&mine[i], (const float(*)[4])score, i, limit[i], c + t * 2);
    }
    EACH(i, ROWS)
    label[i] = slim_settle(to, &mine[i], (int)(first + i * 8), (int)rows, huge || !(own->norm[i] < LARGEST));
}

__kernel GROUP_BESIDE(GROUP, COLS <= 32 ? 2 : 1) void assign_slim(PARAMETERS(assign_slim)) {
    RING_BEGIN
    LOCAL float scratch[GROUP];
    LOCAL struct doubts all[GROUP / 32];
    const int lane = (int)get_local_id(0) % 32, t = lane % 4, padded = (k + BLOCK - 1) / BLOCK * BLOCK;
    const uint centres_at = shared_address(ring) + (uint)(lane / 4 * 64 + t * 16);
    const uint begin_at = shared_address(ring) + (uint)(padded * DEPTH * 2 + t * 16);
    LOCAL_PTR struct doubts *const doubts = all + get_local_id(0) / 32;
    const bool huge = state[1];
    const long step = (long)(get_global_size(0) / 32) * WARP_ROWS;
    long top = (long)(get_global_id(0) / 32) * WARP_ROWS;
    float v[ROWS][8 * BLOCKS];
    doubts->count = 0;
    const struct centres centres = slim_centres((LOCAL_PTR uint *)ring, scratch, C, padded, k);
    slim_rows(v, X, top + lane / 4, rows);
    for (; top < rows; top += step) {
        const long first = top + lane / 4;
        struct slim own;
        int label[ROWS];
        slim_narrow(&own, (const float(*)[8 * BLOCKS])v, centres.up);
        slim_rows(v, X, first + step, rows);
        slim_find(label, doubts, &own, &centres, centres_at, begin_at, huge, padded, first, rows, k);
        EACH(i, ROWS) {
            const bool there = first + i * 8 < rows;
            slim_give(found, apart, there ? label[i] : -1, X, C, there ? first + i * 8 : rows - 1);
        }
        warp_sync();
        if (doubts->count > PAIRS - WARP_ROWS * 8) settle_doubts(found, apart, doubts, X, C, COLS, k);
    }
    settle_doubts(found, apart, doubts, X, C, COLS, k);
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SCREEN COLS=13 TILES=4
// build SCREEN ALIGNED ONE_BLOCK COLS=64 TILES=16
#endif
