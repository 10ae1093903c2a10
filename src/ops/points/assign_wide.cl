/* GPU body of kiln_assign for rows of f32 whose halves fit into a warp's registers, and more centres than
 * local memory holds: the screening of assign_screen.cl, and where that leaves two centres, what
 * assign_slim.cl does with them.
 *
 * A warp has 32 rows in registers, columns in assign_slim.cl's order, and all centres come by, a slab of 32
 * at a time, STAGES - 1 slabs ahead. A slab is as local memory has it: 32 columns of all its centres, the
 * next 32, and so on, and what their sums begin with.
 *
 * Of the eight scores that a lane has of a row and slab it keeps the largest two, their numbers in the last
 * bits, so that scores and numbers need one register. A third one in a lane and slab counts as if it were no
 * less than the second. */

/* slabs: centres as halves; share: what is lost of each centre, and behind the last what scales all. scales:
 * assign_screen.cl's. */
#define ARGUMENTS_wide_centres(FIRST, NEXT)                                                                  \
    FIRST(SPACE, int, slabs)                                                                                 \
    NEXT(SPACE, real, share)                                                                                 \
    NEXT(TABLE, real, scales)                                                                                \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, int, k)

/* doubtful, limits, state: assign_screen.cl's, of rows with more than two centres to choose from. */
#define ARGUMENTS_assign_wide(FIRST, NEXT)                                                                   \
    ARGUMENTS_choice(FIRST, NEXT)                                                                            \
    NEXT(TABLE, int, slabs)                                                                                  \
    NEXT(TABLE, real, share)                                                                                 \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)

#ifndef KI_HOST
#include "dialect/screen.h"

#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define GROUP 128
#define DEPTH ((COLS + 31) / 32 * 32)
#define BLOCKS (DEPTH / 32)
#define SLAB 32                            /* centres */
#define SLAB_WORDS (SLAB * (DEPTH / 2 + 2)) /* 4 bytes each: halves, and two numbers a centre that sums
                                             * begin with */
#define FLOOR_OF(up_most) ((up_most)*0.00390625f)

#ifdef CENTRES
/* A group a slab. */
__kernel GROUP_OF(GROUP) void wide_centres(PARAMETERS(wide_centres)) {
    LOCAL float scratch[GROUP], begin[2 * SLAB];
    const int id = (int)get_local_id(0), first = (int)get_group_id(0) * SLAB;
    __global uint *const to = (__global uint *)slabs + (long)get_group_id(0) * SLAB_WORDS;
    float down = 0;
    for (int c = id; c < k; c += GROUP) down = fmax(down, scales[2 * c + 1]);
    scratch[id] = down;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < GROUP; i++) down = fmax(down, scratch[i]);
    /* 1 / (256 down), down a power of two */
    const float up = REAL_OF(0x7f000000u - BITS_OF(down)) * 0.00390625f;
    for (int e = id; e < SLAB * DEPTH / 2; e += GROUP) {
        const int c = first + e / 16 % SLAB, j = e / 16 / SLAB * 32 + COLUMN_OF(e % 16 / 4, e % 4 * 2);
        const float x0 = c < k && j < COLS ? C[(long)c * COLS + j] : 0;
        const float x1 = c < k && j + 1 < COLS ? C[(long)c * COLS + j + 1] : 0;
        to[e] = halves_of(x0 * up, x1 * up);
    }
    if (id < SLAB) {
        const int c = first + id;
        const float lost = lost_of_centre(begin + id / 2 * 4 + id % 2, c < k ? C + (long)c * COLS : 0, up,
                                          FLOOR_OF(64.0f), COLS);
        if (c < k) share[c] = lost;
        if (c == 0) share[k] = up;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < 2 * SLAB; e += GROUP) to[SLAB * DEPTH / 2 + e] = BITS_OF(begin[e]);
}
#else
#define ROWS 4 /* that a lane has scores of */

/* Holds what a warp has of its rows: halves; ||x|| and ||x - x'||, scaled. */
struct rows {
    uint left[ROWS / 2][2 * BLOCKS][4];
    float norm[ROWS], lost[ROWS];
};

DEVICE_FN void wide_rows(struct rows *to, __global const float *X, float up, long first, long rows) {
    const int t = (int)get_local_id(0) % 4;
    EACH(i, ROWS) to->norm[i] = to->lost[i] = 0;
    EACH(b, 2 * BLOCKS) EACH(i, ROWS) {
        const long row = first + i * 8 < rows ? first + i * 8 : rows - 1;
        __global const float *x = X + row * COLS + 16 * b + 4 * t;
        float v[4];
#ifdef ALIGNED
        const float4 some = *(__global const float4 *)x;
        v[0] = some.x, v[1] = some.y, v[2] = some.z, v[3] = some.w;
#else
        EACH(e, 4) v[e] = 16 * b + 4 * t + e < COLS ? x[e] : 0;
#endif
        EACH(q, 2) {
            const float x0 = v[2 * q] * up, x1 = v[2 * q + 1] * up;
            const uint both = halves_of(x0, x1);
            const float left0 = x0 - low_half(both), left1 = x1 - high_half(both);
            to->norm[i] += x0 * x0 + x1 * x1;
            to->lost[i] += left0 * left0 + left1 * left1;
            to->left[i / 2][b][2 * q + i % 2] = both;
        }
    }
    EACH(i, ROWS) {
        to->norm[i] = root_of(sum_of_sharing(to->norm[i], 4));
        to->lost[i] = root_of(sum_of_sharing(to->lost[i], 4));
    }
}

/* The t-th slab of all centres' begins to come. */
DEVICE_FN void wide_fetch(uint to, __global const int *slabs, int t, int total) {
    for (int e = (int)get_local_id(0); e < SLAB_WORDS / 4; e += GROUP)
        if (t < total)
            copy_16(to + (uint)(t % STAGES * SLAB_WORDS * 4 + e * 16), slabs + (long)t * SLAB_WORDS + e * 4);
    copies_commit();
}

/* The scores of the rows and a slab. */
DEVICE_FN void wide_scores(float (*score)[4][4], const struct rows *of, uint slab) {
    const uint lane = (uint)get_local_id(0) % 32, at = slab + lane * 16,
               begin = slab + SLAB * DEPTH * 2 + lane % 4 * 16;
    EACH(q, 4) {
        load_words((uint *)score[0][q], begin + (uint)q * 64);
        EACH(e, 4) score[1][q][e] = score[0][q][e];
    }
    EACH(b, BLOCKS) {
        uint right[4][4];
        EACH(q, 4) load_words(right[q], at + (uint)(b * SLAB + q * 8) * 64);
        EACH(half, 2)
        EACH(q, 4) EACH(m, ROWS / 2) multiply_halves(score[m][q], of->left[m][2 * b + half],
                                                     right[q][2 * half], right[q][2 * half + 1]);
    }
}

/* The largest scores of a row: the third is at least any other. */
struct largest {
    float first, second, third;
};

/* Joins the eight of a slab, which its number, `slab` times eight, goes with. */
DEVICE_FN void wide_see(struct largest *to, const float (*score)[4], int i, uint mask, uint slab) {
    float first = -NONE, second = -NONE;
    EACH(s, 8) {
        const float numbered = REAL_OF((BITS_OF(score[s / 2][i % 2 * 2 + s % 2]) & mask) | (uint)s);
        second = fmax(second, fmin(first, numbered));
        first = fmax(first, numbered);
    }
    first = REAL_OF(BITS_OF(first) | slab);
    second = REAL_OF(BITS_OF(second) | slab);
    const float lower = fmin(to->first, first);
    to->third = fmax(fmax(to->third, second), fmin(lower, to->second));
    to->second = fmax(lower, fmax(to->second, second));
    to->first = fmax(to->first, first);
}

/* A lane's number of a centre. */
DEVICE_FN int wide_number(float score, uint mask) {
    const int bits = (int)(BITS_OF(score) & ~mask);
    return bits / 8 * SLAB + bits % 8 / 2 * 8 + bits % 2 + (int)get_local_id(0) % 4 * 2;
}

/* Four lanes know four rows: lane t gets the t-th, and its least two scores as join_lanes has them. */
DEVICE_FN struct least wide_gather(struct rows *of, const struct largest *mine, uint mask) {
    const int t = (int)get_local_id(0) % 4;
    struct least all[ROWS];
    EACH(i, ROWS) {
        all[i].first = -mine[i].first;
        all[i].second = -mine[i].second;
        all[i].third = -mine[i].third;
        all[i].at = wide_number(mine[i].first, mask);
        all[i].second_at = wide_number(mine[i].second, mask);
        join_lanes(&all[i]);
    }
    EACH(i, ROWS)
    if (t == i) all[0] = all[i], of->norm[0] = of->norm[i], of->lost[0] = of->lost[i];
    return all[0];
}

/* The row's label; or places among the doubts, or one on the list. */
DEVICE_FN void wide_decide(__global int *found, __global int *doubtful, __global real *limits,
                           __global int *state, LOCAL_PTR struct doubts *to, const struct least *all,
                           float margin, bool huge, float up, int row) {
    if (!huge && all->second - all->first > margin) {
        found[row] = all->at;
    } else if (!huge && all->third - all->first > margin) {
        const int place = count_local(&to->count, 2);
        to->row[place] = to->row[place + 1] = row;
        to->centre[place] = all->at;
        to->centre[place + 1] = all->second_at;
    } else {
        const int place = count_up(&state[0]);
        doubtful[place] = row;
        limits[place] = huge ? REAL_INFINITY : (all->first + 2 * margin) / up / up;
    }
}

/* Rows from `top` on against all centres. */
DEVICE_FN struct least wide_search(struct rows *own, uint ring_at, __global const int *slabs, uint mask,
                                   int total) {
    struct largest mine[ROWS];
    const struct largest none = {-NONE, -NONE, -NONE};
    EACH(i, ROWS) mine[i] = none;
    for (int t = 0; t < total; t++) {
        float score[ROWS / 2][4][4];
        copies_wait(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        wide_fetch(ring_at, slabs, t + STAGES - 1, total);
        wide_scores(score, own, ring_at + (uint)(t % STAGES * SLAB_WORDS * 4));
        EACH(i, ROWS) wide_see(&mine[i], (const float(*)[4])score[i / 2], i, mask, (uint)t * 8);
    }
    return wide_gather(own, mine, mask);
}

__kernel GROUP_BESIDE(GROUP, 3) void assign_wide(PARAMETERS(assign_wide)) {
    RING_BEGIN
    LOCAL float scratch[GROUP];
    LOCAL struct doubts all[GROUP / 32];
    const int lane = (int)get_local_id(0) % 32, total = (k + SLAB - 1) / SLAB;
    const uint ring_at = shared_address(ring);
    const float up = share[k], most_share = most_lost(scratch, share, k);
    LOCAL_PTR struct doubts *const doubts = all + get_local_id(0) / 32;
    uint numbers = 8;
    while (numbers < (uint)total * 8) numbers *= 2;
    doubts->count = 0;
    for (long base = (long)get_group_id(0) * GROUP; base < rows; base += (long)get_global_size(0)) {
        const long top = base + get_local_id(0) / 32 * 32, row = top + lane / 4 + lane % 4 * 8;
        struct rows own;
        for (int t = 0; t < STAGES - 1; t++) wide_fetch(ring_at, slabs, t, total);
        wide_rows(&own, X, up, top + lane / 4, rows);
        const struct least found_least = wide_search(&own, ring_at, slabs, ~(numbers - 1), total);
        const float most = -found_least.first;
        const float margin =
            scaled_margin(own.norm[0], own.lost[0], most_share, FLOOR_OF(64.0f), most, COLS) +
            2.2f * 1.2e-7f * (float)numbers * fabs(most);
        if (row < rows)
            wide_decide(found, doubtful, limits, state, doubts, &found_least, margin,
                        state[1] || !(own.norm[0] < LARGEST), up, (int)row);
        warp_sync();
        if (doubts->count > PAIRS - 64) settle_doubts(found, 0, doubts, X, C, COLS, k);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    settle_doubts(found, 0, doubts, X, C, COLS, k);
}
#endif
#endif

/* The variants that differ in text, as the tests build them. */
// build SCREEN CENTRES COLS=100 STAGES=3
// build SCREEN COLS=100 STAGES=3
// build SCREEN ALIGNED COLS=128 STAGES=4
#endif
