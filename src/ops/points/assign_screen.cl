/* GPU body of kiln_assign for wide dense rows of f32: tensor cores of half precision leave few centres to choose from.
 *
 * A group has BM rows, as halves, in local memory and multiplies them by all centres, BN at a time, whose columns come in slabs of
 * BK by copies that run ahead. A row and a centre are scaled by powers of two, so that the largest of a row's numbers is about 2^13, and
 * scores h - x.c keep the three least of each row and the numbers of two.
 *
 * With x' and c' the halves, a score is off by no more than ||x|| ||c - c'|| + ||x - x'|| ||c|| and what the sums of n products lose;
 * both differences are known: the row's own, and the largest ||c - c'|| / ||c||. Where that leaves one centre it is the
 * nearest; where it leaves two, they are measured in double (assign_two); other rows go on the list that assign.cl takes AGAIN. */

#define ARGUMENTS_screen_centres(FIRST, NEXT)                                                                \
    FIRST(SPACE, int, narrow)                                                                                \
    NEXT(SPACE, real, scales)                                                                                \
    NEXT(SPACE, real, lost)                                                                                  \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, n)

/* narrow: centres as halves, DEPTH each, as many as fill whole tiles; scales: two a centre, half its squared norm and what undoes
 * its scaling; lost: ||c - c'|| / ||c||. state: as in assign.cl, and how many rows are between two centres: these are at the end of
 * doubtful, the last one first, with the second number in the bits of limits. */
#define ARGUMENTS_assign_screen(FIRST, NEXT)                                                                 \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(SPACE, int, doubtful)                                                                               \
    NEXT(SPACE, real, limits)                                                                                \
    NEXT(SPACE, int, state)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(TABLE, int, narrow)                                                                                 \
    NEXT(TABLE, real, scales)                                                                                \
    NEXT(TABLE, real, lost)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)                                                                                      \
    NEXT(VALUE, int, k)

#define ARGUMENTS_assign_two(FIRST, NEXT)                                                                    \
    FIRST(SPACE, int, found)                                                                                 \
    NEXT(TABLE, int, doubtful)                                                                               \
    NEXT(TABLE, real, limits)                                                                                \
    NEXT(TABLE, int, state)                                                                                  \
    NEXT(IN, real, X)                                                                                        \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, int, n)

#ifndef KI_HOST
#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define GROUP 256
#define BM 128
#define BN 128
#define BK 32
#define TILE_M 64 /* of a warp: 2 x 4 of them make BM x BN */
#define TILE_N 32
#define PITCH_A (DEPTH + 8) /* halves: rows that are read together lie in different banks */
#define PITCH_B (BK + 8)
#define STAGE (BN * PITCH_B * 2) /* bytes */
#define MINE 8                   /* rows that a thread has scores of */
#define WORDS ((DEPTH + 63) / 64) /* two halves each, of a row's that a lane has */
#define NONE 3e38f
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)
#define HUGE_SQUARE 4.2535295865117308e37f /* 2^125 */

DEVICE_FN float warp_sum(float x) {
    for (int mask = 16; mask; mask /= 2) x += of_lane_xor(x, mask);
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

/* Of a row that the warp's lanes share, 2 of every 64 numbers each. */
struct narrowed {
    float norm, lost, down; /* ||x||; ||x - x'||; what undoes the scaling */
};

DEVICE_FN struct narrowed narrow_row(uint *words, __global const float *x, int n) {
    const int lane = (int)get_local_id(0) % 32;
    float v[2 * WORDS], most = 0;
    EACH(q, WORDS) EACH(i, 2) {
        const int j = 64 * q + 2 * lane + i;
        v[2 * q + i] = x && j < n ? x[j] : 0;
        most = fmax(most, fabs(v[2 * q + i]));
    }
    for (int mask = 16; mask; mask /= 2) most = fmax(most, of_lane_xor(most, mask));
    const int exponent = exponent_of(most);
    const float up = power_of_two(exponent);
    struct narrowed of = {0, 0, power_of_two(-exponent)};
    EACH(q, WORDS) {
        const float x0 = v[2 * q] * up, x1 = v[2 * q + 1] * up;
        words[q] = halves_of(x0, x1);
        const float left0 = x0 - low_half(words[q]), left1 = x1 - high_half(words[q]);
        of.norm += x0 * x0 + x1 * x1;
        of.lost += left0 * left0 + left1 * left1;
    }
    of.norm = sqrt(warp_sum(of.norm)) * of.down;
    of.lost = sqrt(warp_sum(of.lost)) * of.down;
    return of;
}

/* A warp a centre. */
__kernel GROUP_OF(GROUP) void screen_centres(PARAMETERS(screen_centres)) {
    const int warp = (int)get_global_id(0) / 32, lane = (int)get_local_id(0) % 32, warps = (int)get_global_size(0) / 32;
    for (int c = warp; c < (k + BN - 1) / BN * BN; c += warps) {
        __global const float *centre = c < k ? C + (long)c * n : 0;
        uint words[WORDS];
        const struct narrowed of = narrow_row(words, centre, n);
        EACH(q, WORDS)
            if (32 * q + lane < DEPTH / 2) narrow[(long)c * (DEPTH / 2) + 32 * q + lane] = (int)words[q];
        double square = 0;
        for (int j = lane; c < k && j < n; j += 32) square += (double)centre[j] * (double)centre[j];
        for (int mask = 16; mask; mask /= 2) square += of_lane_xor_wide(square, mask);
        if (lane > 0) continue;
        scales[2 * c] = c < k ? (float)(square / 2) : NONE;
        scales[2 * c + 1] = of.down;
        if (c < k) lost[c] = of.norm > 0 ? of.lost / of.norm : 0;
    }
}

/* The three least scores of a row and the numbers of two. */
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
DEVICE_FN void see(struct least *to, const float (*sum)[4], const float (*scale)[4], int i, float down, int begin) {
    struct least of = {NONE, NONE, NONE, begin, begin};
    EACH(q, 4) EACH(p, 2) {
        const float score = scale[q][2 * p] - sum[q][i % 2 * 2 + p] * (down * scale[q][2 * p + 1]);
        const float numbered = REAL_OF((BITS_OF(score) & ~7u) | (uint)(2 * q + p));
        const float after = fmax(of.first, numbered);
        of.first = fmin(of.first, numbered);
        of.third = fmin(of.third, fmax(of.second, after));
        of.second = fmin(of.second, after);
    }
    join(to, &of);
}

/* The number of a centre: eight of a thread's in each 32, two by two. */
DEVICE_FN int number_of(int begin, float score) {
    const int bits = (int)(BITS_OF(score) & 7u);
    return begin + bits / 2 * 8 + bits % 2;
}

/* The t-th slab of all centres' begins to come. */
DEVICE_FN void fetch(uint to, __global const int *narrow, int t, int total) {
    const int id = (int)get_local_id(0), slabs = DEPTH / BK;
    EACH(q, BN * BK / 8 / GROUP) {
        const int e = q * GROUP + id, c = e / (BK / 8), u = e % (BK / 8);
        if (t < total)
            copy_16(to + t % STAGES * STAGE + (c * PITCH_B + u * 8) * 2,
                    narrow + ((long)(t / slabs * BN + c) * DEPTH + t % slabs * BK + u * 8) / 2);
    }
    copies_commit();
}

/* sum += the warp's tile of a slab. */
DEVICE_FN void multiply_slab(float (*sum)[4][4], uint rows_at, uint centres_at) {
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    const uint a = rows_at + ((warp % 2 * TILE_M + lane % 16) * PITCH_A + lane / 16 * 8) * 2;
    const uint b = centres_at + ((warp / 2 * TILE_N + lane % 8 + lane / 16 * 8) * PITCH_B + lane / 8 % 2 * 8) * 2;
    EACH(s, BK / 16) {
        uint right[2][4];
        EACH(q, 2) load_matrices(right[q], b + (q * 16 * PITCH_B + s * 16) * 2);
        EACH(i, 4) {
            uint left[4];
            load_matrices(left, a + (i * 16 * PITCH_A + s * 16) * 2);
            EACH(q, 4) multiply_halves(sum[i][q], left, right[q / 2][q % 2 * 2], right[q / 2][q % 2 * 2 + 1]);
        }
    }
}

/* What the group has of its rows. */
struct screened {
    float down[BM], norm[BM], lost[BM];
};

DEVICE_FN void narrow_rows(LOCAL_PTR struct screened *of, LOCAL_PTR uint *to, __global const float *X, long top, long rows,
                           int n) {
    const int lane = (int)get_local_id(0) % 32;
    for (int r = (int)get_local_id(0) / 32; r < BM; r += GROUP / 32) {
        uint words[WORDS];
        const struct narrowed row = narrow_row(words, top + r < rows ? X + (top + r) * n : 0, n);
        EACH(q, WORDS)
            if (32 * q + lane < DEPTH / 2) to[r * (PITCH_A / 2) + 32 * q + lane] = words[q];
        if (lane > 0) continue;
        of->down[r] = row.down;
        of->norm[r] = row.norm;
        of->lost[r] = row.lost;
    }
}

/* The largest share of a centre that is lost. */
DEVICE_FN float most_lost(LOCAL_PTR float *scratch, __global const float *lost, int k) {
    const int id = (int)get_local_id(0);
    float most = 0;
    for (int c = id; c < k; c += GROUP) most = fmax(most, lost[c]);
    scratch[id] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < GROUP; i++) most = fmax(most, scratch[i]);
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
DEVICE_FN void decide(__global int *found, __global int *doubtful, __global real *limits, __global int *state, long row,
                      long rows, const struct least *all, float margin, bool huge) {
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

__kernel GROUP_OF(GROUP) void assign_screen(PARAMETERS(assign_screen)) {
    RING_BEGIN
    LOCAL struct screened of;
    const int id = (int)get_local_id(0), lane = id % 32, warp = id / 32;
    const uint rows_at = shared_address(ring), centres_at = rows_at + BM * PITCH_A * 2;
    LOCAL_PTR struct least(*const least)[4] = (LOCAL_PTR struct least(*)[4])((LOCAL_PTR uint *)ring + BM * PITCH_A / 2);
    const int slabs = DEPTH / BK, total = (k + BN - 1) / BN * slabs;
    const float share = most_lost((LOCAL_PTR float *)ring, lost, k);
    for (long top = (long)get_group_id(0) * BM; top < rows; top += (long)get_num_groups(0) * BM) {
        struct least mine[MINE];
        for (int t = 0; t < STAGES - 1; t++) fetch(centres_at, narrow, t, total);
        narrow_rows(&of, (LOCAL_PTR uint *)ring, X, top, rows, n);
        barrier(CLK_LOCAL_MEM_FENCE);
        const int first = warp % 2 * TILE_M + lane / 4;
        float down[MINE];
        EACH(i, MINE) {
            const struct least none = {NONE, NONE, NONE, 0, 0};
            mine[i] = none;
            down[i] = of.down[first + i * 8];
        }
        for (int c = 0, t = 0; t < total; c += BN) {
            float sum[4][4][4], scale[4][4];
            EACH(i, 4) EACH(q, 4) EACH(e, 4) sum[i][q][e] = 0;
            for (int s = 0; s < slabs; s++, t++) {
                copies_wait(STAGES - 2);
                barrier(CLK_LOCAL_MEM_FENCE);
                fetch(centres_at, narrow, t + STAGES - 1, total);
                multiply_slab(sum, rows_at + s * BK * 2, centres_at + t % STAGES * STAGE);
            }
            const int begin = c + warp / 2 * TILE_N + lane % 4 * 2;
            EACH(q, 4) EACH(e, 4) scale[q][e] = scales[2 * (begin + q * 8) + e];
            EACH(i, MINE) see(&mine[i], sum[i / 2], scale, i, down[i], begin);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH(i, MINE) {
            join_lanes(&mine[i]);
            if (lane % 4 == 0) least[first + i * 8][warp / 2] = mine[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < BM && top + id < rows) {
            struct least all = least[id][0];
            for (int w = 1; w < 4; w++) {
                const struct least other = least[id][w];
                join(&all, &other);
            }
            const float norm = of.norm[id], margin = screen_margin(norm, all.first, of.lost[id], share, n);
            const bool huge = state[1] || !(norm * norm < HUGE_SQUARE);
            decide(found, doubtful, limits, state, top + id, rows, &all, margin, huge);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* A warp a row between two centres. */
__kernel GROUP_OF(GROUP) void assign_two(PARAMETERS(assign_two)) {
    const int lane = (int)get_local_id(0) % 32, warps = (int)get_global_size(0) / 32, count = state[2];
    for (int p = (int)get_global_id(0) / 32; p < count; p += warps) {
        const int row = doubtful[rows - 1 - p], b = (int)BITS_OF(limits[rows - 1 - p]), a = found[row];
        __global const float *x = X + (long)row * n, *first = C + (long)a * n, *second = C + (long)b * n;
        double difference = 0; /* of ||x - b||^2 and ||x - a||^2 */
        for (int j = lane; j < n; j += 32) {
            const double of_a = (double)x[j] - (double)first[j], of_b = (double)x[j] - (double)second[j];
            difference += of_b * of_b - of_a * of_a;
        }
        for (int mask = 16; mask; mask /= 2) difference += of_lane_xor_wide(difference, mask);
        if (lane == 0 && (difference < 0 || (difference == 0 && b < a))) found[row] = b;
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SCREEN DEPTH=128 STAGES=3 RING_BYTES=65536
// build SCREEN DEPTH=800 STAGES=2 RING_BYTES=65536
#endif
