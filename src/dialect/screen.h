/* Choosing among centres by products of halves (halves.h): rows as halves and what that loses of them, the
 * least scores of a row, and which rows are in doubt. For kernels that go through all centres of a row:
 * assign_screen.cl says how it adds up. */
#ifndef SCREEN_H
#define SCREEN_H
#include "dialect/halves.h"
/* Says what kernels that choose among the centres of dense rows begin with. found: the nearest centre of each
 * row; doubtful: the rows that more than one may be nearest to; limits: of each of these the score up to
 * which a centre may be. */
#define ARGUMENTS_choice(FIRST, NEXT)                                                                        \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(SPACE, int, doubtful)                                                                               \
    NEXT(SPACE, real, limits)                                                                                \
    NEXT(SPACE, int, state)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)

/* The kernels that look for the nearest centres of dense rows take these. state: rows in doubt; whether
 * squares of centres are too large for f32. */
#define ARGUMENTS_nearest(FIRST, NEXT)                                                                       \
    ARGUMENTS_choice(FIRST, NEXT) NEXT(TABLE, real, halves) NEXT(VALUE, long, rows) NEXT(VALUE, int, k)

#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define NONE 3e38f
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)
#define HUGE_SQUARE 4.2535295865117308e37f /* 2^125 */

/* The sum is over `sharing` lanes side by side, a power of two. */
DEVICE_FN float sum_of_sharing(float x, const int sharing) {
    for (int mask = sharing / 2; mask; mask /= 2) x += of_lane_xor(x, mask);
    return x;
}

/* The largest of what the threads of a group have. */
DEVICE_FN float most_of_group(LOCAL_PTR float *scratch, float mine, const int group) {
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[get_local_id(0)] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < group; i++) mine = fmax(mine, scratch[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return mine;
}

/* The power of two that brings numbers up to `most` below 2^14, by its exponent. */
DEVICE_FN int exponent_of(float most) {
    const int exponent = (int)(BITS_OF(most) >> 23) - 127;
    return exponent < -100 ? 113 : 13 - exponent;
}

DEVICE_FN float power_of_two(int exponent) {
    return REAL_OF((uint)(exponent + 127) << 23);
}

/* sqrt(x) to a few units in the last place; 0 of what is not positive. */
DEVICE_FN float root_of(float x) {
    return x > 0 ? x * inverse_sqrt(fmax(x, 1e-37f)) : 0;
}

/* Lanes side by side share a row, and know this of it. */
struct narrowed {
    float norm, lost, down; /* ||x||; ||x - x'||; what undoes the scaling */
};

/* v, two numbers a word, as halves: a lane's part of a row that `sharing` lanes have. */
DEVICE_FN struct narrowed narrow_values(uint *words, const float *v, const int count, const int sharing) {
    float most = 0;
    EACH(i, 2 * count) most = fmax(most, fabs(v[i]));
    for (int mask = sharing / 2; mask; mask /= 2) most = fmax(most, of_lane_xor(most, mask));
    const int exponent = exponent_of(most);
    const float up = power_of_two(exponent);
    struct narrowed of = {0, 0, power_of_two(-exponent)};
    EACH(q, count) {
        const float x0 = v[2 * q] * up, x1 = v[2 * q + 1] * up;
        words[q] = halves_of(x0, x1);
        const float left0 = x0 - low_half(words[q]), left1 = x1 - high_half(words[q]);
        of.norm += x0 * x0 + x1 * x1;
        of.lost += left0 * left0 + left1 * left1;
    }
    of.norm = root_of(sum_of_sharing(of.norm, sharing)) * of.down;
    of.lost = root_of(sum_of_sharing(of.lost, sharing)) * of.down;
    return of;
}

/* The two least scores of a row and their numbers; what no third score is less than. */
struct least {
    float first, second, third;
    int at, second_at;
};

/* Joins what is known of the same row and other centres. Equal scores are in doubt, whichever comes first. */
DEVICE_FN void join(struct least *to, const struct least *from) {
    const bool less = from->first < to->first;
    const float lower = less ? to->first : from->first; /* the greater of the firsts */
    const float after = less ? from->second : to->second, other = less ? to->second : from->second;
    const float last = less ? from->third : to->third;
    const int lower_at = less ? to->at : from->at, after_at = less ? from->second_at : to->second_at;
    to->third = fmin(last, lower < after ? fmin(after, other) : lower);
    to->second = fmin(lower, after);
    to->second_at = lower < after ? lower_at : after_at;
    if (less) to->first = from->first, to->at = from->at;
}

/* A tile's scores of one row: eight, their numbers in the last bits of each. */
DEVICE_FN void see(struct least *to, const float (*sum)[4], const float (*scale)[4], int i, float down,
                   int begin) {
    struct least of = {NONE, NONE, NONE, begin, begin};
    EACH(q, 4) EACH(p, 2) {
        const float score = scale[q][2 * p] - sum[q][i % 2 * 2 + p] * (down * scale[q][2 * p + 1]);
        const float numbered = REAL_OF((BITS_OF(score) & ~7u) | (uint)(2 * q + p));
        of.second = fmin(of.second, fmax(of.first, numbered));
        of.first = fmin(of.first, numbered);
    }
    of.third = of.second; /* it is no less */
    join(to, &of);
}

/* The number of a centre: eight of a thread's in each 32, two by two. */
DEVICE_FN int number_of(int begin, float score) {
    const int bits = (int)(BITS_OF(score) & 7u);
    return begin + bits / 2 * 8 + bits % 2;
}

/* The largest share of a centre that is lost. */
DEVICE_FN float most_lost(LOCAL_PTR float *scratch, __global const float *lost, int k) {
    const int id = (int)get_local_id(0), group = (int)get_local_size(0);
    float most = 0;
    for (int c = id; c < k; c += group) most = fmax(most, lost[c]);
    scratch[id] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < group; i++) most = fmax(most, scratch[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return most;
}

/* Returns how much less a score must be for its centre to be nearer: twice what rounding moves one by. */
DEVICE_FN float screen_margin(float norm, float least, float lost, float share, int n) {
    const float inside = norm * norm + 2 * least;
    const float reach = 1.06f * (norm + root_of(inside));
    return 2.02f * reach * (norm * share + lost + (float)(n + 64) * 2.4e-7f * norm + 2e-6f * reach);
}

/* The four lanes that have scores of the same rows are joined. */
DEVICE_FN void join_lanes(struct least *mine) {
    for (int mask = 1; mask < 4; mask *= 2) {
        struct least other;
        other.first = of_lane_xor(mine->first, mask);
        other.second = of_lane_xor(mine->second, mask);
        other.third = of_lane_xor(mine->third, mask);
        other.at = of_lane_xor_int(mine->at, mask);
        other.second_at = of_lane_xor_int(mine->second_at, mask);
        join(mine, &other);
    }
}

/* A row's number, and on which list it goes. */
DEVICE_FN void decide(__global int *found, __global int *doubtful, __global real *limits, __global int *state,
                      long row, long rows, const struct least *all, float margin, bool huge) {
    found[row] = number_of(all->at, all->first);
    if (!huge && all->second - all->first > margin) return;
    const bool two = !huge && all->third - all->first > margin;
    const int number = count_up(&state[two ? 2 : 0]);
    const long place = two ? rows - 1 - number : number;
    doubtful[place] = (int)row;
    limits[place] = two    ? REAL_OF((uint)number_of(all->second_at, all->second))
                    : huge ? REAL_INFINITY
                           : all->first + margin;
}

DEVICE_FN void load_scales(float (*scale)[4], __global const float *scales, int begin) {
    EACH(q, 4) EACH(e, 4) scale[q][e] = scales[2 * (begin + q * 8) + e];
}

/* Rows and centres have one scale here: the largest number of a centre below 64; sums begin so that products
 * leave a score x.c - ||c||^2 / 2, the largest the nearest centre's. A lane t of four has eight columns of
 * each 32. */
#define LARGEST 65000.0f                                 /* of a scaled row that halves hold */
#define COLUMN_OF(t, e) ((e) / 4 * 16 + (t)*4 + (e) % 4) /* the e-th of lane t's eight */
#define PAIRS 192                                        /* of a row in doubt and a centre, that a warp has */

/* Returns what sums of a centre's products begin with, -||c||^2 / 2, in two places; the share that rounding
 * takes of it. */
DEVICE_FN float lost_of_centre(LOCAL_PTR float *begin, __global const float *centre, float up, float floor,
                               const int n) {
    float lost = 0;
    double norm = 0;
    for (int j = 0; centre && j < n; j++) {
        const float x = centre[j] * up, left = x - low_half(halves_of(x, 0.0f));
        lost += left * left;
        norm += (double)x * (double)x;
    }
    begin[0] = begin[2] = centre ? (float)(norm / -2) : -NONE;
    return lost > 0 ? 1.001f * sqrt(lost) / ((float)sqrt(norm) + floor) : 0;
}

/* Returns how much less a score may be than `most`, the largest: of a row of n columns, scaled as
 * centres are, with ||x|| = norm and ||x - x'|| = lost, where ||c - c'|| <= share (||c|| +
 * floor). */
DEVICE_FN float scaled_margin(float norm, float lost, float share, float floor, float most, int n) {
    const float reach = 1.06f * (norm + root_of(norm * norm - 2 * most));
    const float each = lost + (float)(n + 64) * 2.4e-7f * norm + 6e-6f * reach;
    return 2.02f * (norm * share * (reach + floor) + reach * each);
}

/* Rows of a warp that several centres may be nearest to, and these: all those of 32 rows side by side. */
struct doubts {
    double distance[PAIRS];
    int row[PAIRS], centre[PAIRS], count;
};

/* The warp measures their distances in double, eight lanes each. */
DEVICE_FN void measure_doubts(LOCAL_PTR struct doubts *of, __global const float *X, __global const float *C,
                              const int n) {
    const int lane = (int)get_local_id(0) % 32, count = of->count;
    for (int first = 0; first < count; first += 4) {
        const int p = first + lane / 8;
        const bool here = p < count && of->centre[p] >= 0;
        __global const float *x = X + (here ? (long)of->row[p] : 0) * n;
        __global const float *c = C + (here ? (long)of->centre[p] : 0) * n;
        double distance = 0;
        for (int j = lane % 8; j < n; j += 8) {
            const double apart = (double)x[j] - (double)c[j];
            distance += apart * apart;
        }
        for (int mask = 4; mask; mask /= 2) distance += of_lane_xor_wide(distance, mask);
        if (here && lane % 8 == 0) of->distance[p] = distance;
    }
}

/* The same for rows that any centre may be nearest to (-1): a centre a lane. */
DEVICE_FN void measure_all_doubts(LOCAL_PTR struct doubts *of, __global const float *X,
                                  __global const float *C, const int n, int k) {
    const int lane = (int)get_local_id(0) % 32, count = of->count;
    for (int p = 0; p < count; p++) {
        if (of->centre[p] >= 0) continue;
        __global const float *x = X + (long)of->row[p] * n;
        double least = INFINITY;
        int nearest = lane;
        for (int c = lane; c < k; c += 32) {
            double distance = 0;
            for (int j = 0; j < n; j++) {
                const double apart = (double)x[j] - (double)C[(long)c * n + j];
                distance += apart * apart;
            }
            if (distance < least) least = distance, nearest = c;
        }
        for (int mask = 16; mask; mask /= 2) {
            const double other = of_lane_xor_wide(least, mask);
            const int number = of_lane_xor_int(nearest, mask);
            if (other < least || (other == least && number < nearest)) least = other, nearest = number;
        }
        warp_sync();
        if (lane == 0) of->centre[p] = nearest, of->distance[p] = least;
        warp_sync();
    }
}

/* True if another centre is nearer to the same row. Rows of one warp's 32 lie side by side in the list. */
DEVICE_FN bool beaten(LOCAL_PTR const struct doubts *of, int p) {
    bool nearer = false;
    for (int way = -1; way < 2; way += 2)
        for (int q = p + way; q >= 0 && q < of->count && of->row[q] / 32 == of->row[p] / 32; q += way)
            nearer |= of->row[q] == of->row[p] &&
                      (of->distance[q] < of->distance[p] ||
                       (of->distance[q] == of->distance[p] && of->centre[q] < of->centre[p]));
    return nearer;
}

/* Labels of the rows that were in doubt, and how far their centres are where that is wanted. */
DEVICE_FN void settle_doubts(__global int *found, __global float *apart, LOCAL_PTR struct doubts *of,
                             __global const float *X, __global const float *C, const int n, int k) {
    const int lane = (int)get_local_id(0) % 32;
    measure_doubts(of, X, C, n);
    measure_all_doubts(of, X, C, n, k);
    warp_sync();
    for (int p = lane; p < of->count; p += 32) {
        if (beaten(of, p)) continue;
        found[of->row[p]] = of->centre[p];
        if (apart) apart[of->row[p]] = (float)of->distance[p];
    }
    warp_sync();
    if (lane == 0) of->count = 0;
    warp_sync();
}
#endif
#endif
