/* Choosing among centres by products of halves (halves.h): rows as halves and what that loses of them, the least scores of a row,
 * and which rows are in doubt. For kernels that go through all centres of a row: assign_screen.cl says how it adds up. */
#ifndef SCREEN_H
#define SCREEN_H
/* Of the kernels that look for the nearest centres of dense rows. state: rows in doubt; whether squares of centres are too large for
 * f32. */
#define ARGUMENTS_nearest(FIRST, NEXT)                                                                       \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(SPACE, int, doubtful)                                                                               \
    NEXT(SPACE, real, limits)                                                                                \
    NEXT(SPACE, int, state)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)                                                                                        \
    NEXT(TABLE, real, halves)                                                                                \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, k)

#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define NONE 3e38f
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)
#define HUGE_SQUARE 4.2535295865117308e37f /* 2^125 */

/* Of `sharing` lanes side by side, a power of two. */
DEVICE_FN float sum_of_sharing(float x, const int sharing) {
    for (int mask = sharing / 2; mask; mask /= 2) x += of_lane_xor(x, mask);
    return x;
}

/* The power of two that brings numbers up to `most` below 2^14, by its exponent. */
DEVICE_FN int exponent_of(float most) {
    const int exponent = (int)(BITS_OF(most) >> 23) - 127;
    return exponent < -100 ? 113 : 13 - exponent;
}

DEVICE_FN float power_of_two(int exponent) {
    return REAL_OF((uint)(exponent + 127) << 23);
}

/* Of a row that lanes side by side share. */
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
    of.norm = sqrt(sum_of_sharing(of.norm, sharing)) * of.down;
    of.lost = sqrt(sum_of_sharing(of.lost, sharing)) * of.down;
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

/* How much less a score must be for its centre to be nearer: twice what rounding moves one by. */
DEVICE_FN float screen_margin(float norm, float least, float lost, float share, int n) {
    const float inside = norm * norm + 2 * least;
    const float reach = 1.06f * (norm + sqrt(inside > 0 ? inside : 0.0f));
    return 2.02f * reach * (norm * share + lost + (float)(n + 64) * 2.4e-7f * norm + 2e-6f * reach);
}

/* Of the four lanes that have scores of the same rows. */
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
#endif
#endif
