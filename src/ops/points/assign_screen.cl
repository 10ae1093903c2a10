/* GPU body of kiln_assign for wide dense rows of f32: tensor cores of half precision leave few centres to
 * choose from.
 *
 * A group has BM rows, as halves, in local memory and multiplies them by all centres, BN at a time, whose
 * columns come in slabs of BK by copies that run STAGES - 1 ahead. A row and a centre are scaled by powers of
 * two, so that the largest of a row's numbers is about 2^13, and scores h - x.c keep the two least of each
 * row, and what no third one is less than.
 *
 * With x' and c' the halves, a score is off by no more than ||x|| ||c - c'|| + ||x - x'|| ||c|| and what the
 * sums of n products lose; both differences are known: the row's own, and the largest ||c - c'|| / ||c||.
 * Where that leaves one centre it is the nearest; where it leaves two, they are measured in double
 * (assign_two); other rows go on a list, and the kernel takes them AGAIN: now it notes the centres whose
 * scores are within the row's limit, and measures them in double. */

#define ARGUMENTS_screen_centres(FIRST, NEXT)                                                                \
    FIRST(SPACE, int, narrow)                                                                                \
    NEXT(SPACE, real, scales)                                                                                \
    NEXT(SPACE, real, lost)                                                                                  \
    NEXT(IN, real, C)                                                                                        \
    NEXT(VALUE, int, k)                                                                                      \
    NEXT(VALUE, int, n)

/* narrow: centres as halves, DEPTH each, as many as fill whole tiles; scales: two a centre, half its squared
 * norm and what undoes
 * its scaling; lost: ||c - c'|| / ||c||. state: as in assign.cl, and how many rows are between two centres:
 * these are at the end of doubtful, the last one first, with the second number in the bits of limits. */
#define ARGUMENTS_assign_screen(FIRST, NEXT)                                                                 \
    ARGUMENTS_choice(FIRST, NEXT)                                                                            \
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
#include "dialect/screen.h"

#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define GROUP 256
#define BM 96
#define BK 32
#define TILE_M 48 /* of a warp: 2 x 4 of them make BM x BN */
#define TILE_N (BN / 4)
#define PITCH_A (DEPTH + 8) /* halves: rows that are read together lie in different banks */
#define STAGE (BN * BK * 2) /* bytes */
#define MINE (TILE_M / 8)   /* rows that a thread has scores of */
#define SHARING (DEPTH < 64 ? 8 : DEPTH < 128 ? 16 : 32) /* lanes that share a row while it is narrowed */
#define WORDS ((DEPTH / 2 + SHARING - 1) / SHARING)      /* two halves each, of a row's that a lane has */
#define CANDIDATES 16
#ifndef TWO
/* A row that SHARING lanes have, two numbers each in turn. */
DEVICE_FN struct narrowed narrow_row(uint *words, __global const float *x, int n) {
    const int lane = (int)get_local_id(0) % SHARING;
    float v[2 * WORDS];
    EACH(q, WORDS) EACH(i, 2) {
        const int j = 2 * (SHARING * q + lane) + i;
        v[2 * q + i] = x && j < n ? x[j] : 0;
    }
    return narrow_values(words, (const float *)v, WORDS, SHARING);
}

/* The numbers that a lane has of a row, into halves side by side. */
#define GIVE_WORDS(to)                                                                                       \
    EACH(q, WORDS)                                                                                           \
    if (SHARING * q + lane < DEPTH / 2) (to)[SHARING * q + lane] = words[q];

#endif

#ifdef CENTRES
/* SHARING lanes a centre. */
__kernel GROUP_OF(GROUP) void screen_centres(PARAMETERS(screen_centres)) {
    const int lane = (int)get_local_id(0) % SHARING, padded = (k + BN - 1) / BN * BN;
    for (int c = (int)get_global_id(0) / SHARING; c < padded; c += (int)get_global_size(0) / SHARING) {
        __global const float *centre = c < k ? C + (long)c * n : 0;
        uint words[WORDS];
        const struct narrowed of = narrow_row(words, centre, n);
        GIVE_WORDS((__global uint *)narrow + (long)c * (DEPTH / 2))
        double square = 0;
        for (int j = lane; c < k && j < n; j += SHARING) square += (double)centre[j] * (double)centre[j];
        for (int mask = SHARING / 2; mask; mask /= 2) square += of_lane_xor_wide(square, mask);
        if (lane > 0) continue;
        scales[2 * c] = c < k ? (float)(square / 2) : NONE;
        scales[2 * c + 1] = of.down;
        if (c < k) lost[c] = of.norm > 0 ? of.lost / of.norm : 0;
    }
}

#endif

#ifdef WIDE
/* Returns where the u-th 8 halves of a slab's c-th centre are: eight centres that are read together lie in
 * different banks. */
DEVICE_FN uint place_of(int c, int u) {
    return (uint)(c * (BK / 8) + (u ^ (c / 2 % 4))) * 16;
}

/* The t-th slab of all centres' begins to come. */
DEVICE_FN void fetch(uint to, __global const int *narrow, int t, int total) {
    const int id = (int)get_local_id(0), slabs = DEPTH / BK;
    EACH(q, BN * BK / 8 / GROUP) {
        const int e = q * GROUP + id, c = e / (BK / 8), u = e % (BK / 8);
        if (t < total)
            copy_16(to + t % STAGES * STAGE + place_of(c, u),
                    narrow + ((long)(t / slabs * BN + c) * DEPTH + t % slabs * BK + u * 8) / 2);
    }
    copies_commit();
}

/* sum += the warp's tile of a slab. */
DEVICE_FN void multiply_slab(float (*sum)[TILE_N / 8][4], uint rows_at, uint centres_at) {
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    const uint a = rows_at + ((warp % 2 * TILE_M + lane % 16) * PITCH_A + lane / 16 * 8) * 2;
    const int centre = warp / 2 * TILE_N + lane % 8 + lane / 16 * 8;
    EACH(s, BK / 16) {
        const uint b = centres_at + place_of(centre, s * 2 + lane / 8 % 2);
        uint right[TILE_N / 16][4];
        EACH(q, TILE_N / 16) load_matrices(right[q], b + q * 16 * BK * 2);
        EACH(i, TILE_M / 16) {
            uint left[4];
            load_matrices(left, a + (i * 16 * PITCH_A + s * 16) * 2);
            EACH(q, TILE_N / 8)
                multiply_halves(sum[i][q], left, right[q / 2][q % 2 * 2], right[q / 2][q % 2 * 2 + 1]);
        }
    }
}

/* Holds what the group has of its rows; of those it takes AGAIN, the centres that may be nearest. */
struct screened {
    float down[BM], norm[BM], lost[BM];
#ifdef AGAIN
    float limit[BM];
    int row[BM], count[BM], candidate[BM][CANDIDATES];
#endif
};

#ifdef AGAIN
#define ROW_OF(place) doubtful[place]
#else
#define ROW_OF(place) (place)
#endif

DEVICE_FN void narrow_rows(LOCAL_PTR struct screened *of, LOCAL_PTR uint *to, __global const float *X,
                           __global const int *doubtful, __global const float *limits, long top, long count,
                           int n) {
    const int lane = (int)get_local_id(0) % SHARING;
    (void)doubtful, (void)limits;
    for (int r = (int)get_local_id(0) / SHARING; r < BM; r += GROUP / SHARING) {
        uint words[WORDS];
        const bool there = top + r < count;
        const struct narrowed row = narrow_row(words, there ? X + (long)ROW_OF(top + r) * n : 0, n);
        GIVE_WORDS(to + r * (PITCH_A / 2))
        if (lane > 0) continue;
        of->down[r] = row.down;
        of->norm[r] = row.norm;
        of->lost[r] = row.lost;
#ifdef AGAIN
        of->limit[r] = there ? limits[top + r] : -NONE;
        of->row[r] = there ? doubtful[top + r] : -1;
        of->count[r] = 0;
#endif
    }
}

/* The products of a warp's tile; scores come of 32 centres' at a time. */
struct scores {
    float sum[TILE_M / 16][TILE_N / 8][4], down[MINE];
};

/* All of the products of the group's rows with BN centres from c on. */
DEVICE_FN void multiply_tile(struct scores *of, uint rows_at, uint centres_at, __global const int *narrow,
                             int c, int total) {
    EACH(i, TILE_M / 16) EACH(q, TILE_N / 8) EACH(e, 4) of->sum[i][q][e] = 0;
    for (int s = 0; s < DEPTH / BK; s++) {
        const int t = c / BN * (DEPTH / BK) + s;
        copies_wait(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        fetch(centres_at, narrow, t + STAGES - 1, total);
        multiply_slab(of->sum, rows_at + s * BK * 2, centres_at + t % STAGES * STAGE);
    }
}

#ifndef AGAIN
/* Returns what a thread knows of its rows, from all warps and lanes, to the row's own thread. */
DEVICE_FN struct least gather(LOCAL_PTR struct least (*least)[4], struct least *mine, int first) {
    const int id = (int)get_local_id(0), lane = id % 32, warp = id / 32;
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH(i, MINE) {
        join_lanes(&mine[i]);
        if (lane % 4 == 0) least[first + i * 8][warp / 2] = mine[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    struct least all = least[id < BM ? id : 0][0];
    for (int w = 1; w < 4; w++) {
        const struct least other = least[id < BM ? id : 0][w];
        join(&all, &other);
    }
    return all;
}
#else
/* Centres whose scores are at most the row's limit. */
DEVICE_FN void note(LOCAL_PTR struct screened *of, const struct scores *scores, const float (*scale)[4],
                    int half, int first, int begin, int k) {
    EACH(i, MINE) {
        const int r = first + i * 8;
        const float limit = of->limit[r];
        EACH(q, 4) EACH(p, 2) {
            const int c = begin + q * 8 + p;
            const float score = scale[q][2 * p] - scores->sum[i / 2][half * 4 + q][i % 2 * 2 + p] *
                                                      (scores->down[i] * scale[q][2 * p + 1]);
            if (score > limit || c >= k) continue;
            const int place = count_local(&of->count[r], 1);
            if (place < CANDIDATES) of->candidate[r][place] = c;
        }
    }
}

/* A warp a row: the nearest of its candidates, measured in double; of all centres where there are too
 * many. */
DEVICE_FN void measure(__global int *found, LOCAL_PTR const struct screened *of, __global const float *X,
                       __global const float *C, int n, int k) {
    const int lane = (int)get_local_id(0) % 32;
    for (int r = (int)get_local_id(0) / 32; r < BM; r += GROUP / 32) {
        if (of->row[r] < 0) continue;
        const bool listed = of->count[r] <= CANDIDATES;
        const int candidates = listed ? of->count[r] : k;
        __global const float *x = X + (long)of->row[r] * n;
        double least = INFINITY;
        int index = 0;
        for (int i = 0; i < candidates; i++) {
            const int c = listed ? of->candidate[r][i] : i;
            double distance = 0;
            for (int j = lane; j < n; j += 32) {
                const double apart = (double)x[j] - (double)C[(long)c * n + j];
                distance += apart * apart;
            }
            for (int mask = 16; mask; mask /= 2) distance += of_lane_xor_wide(distance, mask);
            if (distance < least || (distance == least && c < index)) least = distance, index = c;
        }
        if (lane == 0) found[of->row[r]] = index;
    }
}
#endif

__kernel GROUP_OF(GROUP) void assign_screen(PARAMETERS(assign_screen)) {
    RING_BEGIN
    LOCAL struct screened of;
    const int id = (int)get_local_id(0), lane = id % 32, warp = id / 32;
    const uint rows_at = shared_address(ring), centres_at = rows_at + BM * PITCH_A * 2;
    const int total = (k + BN - 1) / BN * (DEPTH / BK), first = warp % 2 * TILE_M + lane / 4;
#ifdef AGAIN
    const long count = state[0];
#else
    const long count = rows;
    LOCAL_PTR struct least(*const least)[4] =
        (LOCAL_PTR struct least(*)[4])((LOCAL_PTR uint *)ring + BM * PITCH_A / 2);
    const float share = most_lost((LOCAL_PTR float *)ring, lost, k);
#endif
    for (long top = (long)get_group_id(0) * BM; top < count; top += (long)get_num_groups(0) * BM) {
        struct scores scores;
        for (int t = 0; t < STAGES - 1; t++) fetch(centres_at, narrow, t, total);
        narrow_rows(&of, (LOCAL_PTR uint *)ring, X, doubtful, limits, top, count, n);
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH(i, MINE) scores.down[i] = of.down[first + i * 8];
#ifndef AGAIN
        struct least mine[MINE];
        const struct least none = {NONE, NONE, NONE, 0, 0};
        EACH(i, MINE) mine[i] = none;
#endif
        for (int c = 0; c < k; c += BN) {
            multiply_tile(&scores, rows_at, centres_at, narrow, c, total);
            EACH(half, TILE_N / 32) {
                const int begin = c + warp / 2 * TILE_N + half * 32 + lane % 4 * 2;
                float scale[4][4];
                load_scales(scale, scales, begin);
#ifdef AGAIN
                note(&of, &scores, (const float(*)[4])scale, half, first, begin, k);
#else
                EACH(i, MINE)
                see(&mine[i], (const float(*)[4])scores.sum[i / 2] + half * 4, (const float(*)[4])scale, i,
                    scores.down[i], begin);
#endif
            }
        }
#ifdef AGAIN
        barrier(CLK_LOCAL_MEM_FENCE);
        measure(found, &of, X, C, n, k);
#else
        const struct least all = gather(least, mine, first);
        if (id < BM && top + id < rows) {
            const float norm = of.norm[id], margin = screen_margin(norm, all.first, of.lost[id], share, n);
            const bool huge = state[1] || !(norm * norm < HUGE_SQUARE);
            decide(found, doubtful, limits, state, top + id, rows, &all, margin, huge);
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

#ifdef TWO
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
#endif

/* The variants that differ in text, as the tests build them. */
// build SCREEN CENTRES DEPTH=64 BN=128
// build SCREEN TWO
// build SCREEN WIDE DEPTH=64 BN=128 STAGES=3
// build SCREEN WIDE DEPTH=800 BN=256 STAGES=2
// build SCREEN WIDE AGAIN DEPTH=128 BN=256 STAGES=2
#endif
