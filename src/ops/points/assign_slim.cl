/* GPU body of kiln_assign for rows of f32 with few columns, where all centres fit into local memory as halves: the screening of
 * assign_screen.cl by warps that wait for nobody.
 *
 * A warp has 32 rows in registers, as tensor cores take them, and goes through the centres 32 at a time. Products do not care in
 * which order columns come, so that lane t of four has the columns 8 t to 8 t + 7 of every 32, of rows and of centres: 16 bytes of
 * halves a centre, and of eight centres side by side all banks. Local memory has the centres by BLOCKS of 32 columns, then half
 * their squared norms.
 *
 * One power of two scales all centres, and a row's scores are compared as g h - x'.c', g what the scales of both leave of h: one
 * instruction each. ||c - c'|| <= share (||c|| + floor), floor a small part of the largest number of all. */

#define ARGUMENTS_assign_slim(FIRST, NEXT) ARGUMENTS_nearest(FIRST, NEXT)

#ifndef KI_HOST
#if defined(BULK) && defined(SCREEN) && !defined(REAL_F64)
#define GROUP 256
#define DEPTH ((COLS + 31) / 32 * 32)
#define BLOCKS (DEPTH / 32)
#define ROWS 4 /* that a lane has scores of */

/* What is known of the centres. */
struct centres {
    float down, share, floor;
};

/* Of a power of two. */
DEVICE_FN float inverse_of_power(float power) {
    return REAL_OF(0x7f000000u - BITS_OF(power));
}

/* The largest of what the threads have. */
DEVICE_FN float most_of_group(LOCAL_PTR float *scratch, float mine) {
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[get_local_id(0)] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < GROUP; i++) mine = fmax(mine, scratch[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return mine;
}

DEVICE_FN struct centres slim_centres(LOCAL_PTR uint *to, LOCAL_PTR float *scratch, __global const float *C,
                                      __global const float *halves, int padded, int k) {
    const int id = (int)get_local_id(0);
    LOCAL_PTR float *const half = (LOCAL_PTR float *)(to + padded * (DEPTH / 2));
    float most = 0, share = 0;
    struct centres of;
    for (int e = id; e < k * COLS; e += GROUP) most = fmax(most, fabs(C[e]));
    most = most_of_group(scratch, most);
    const int exponent = exponent_of(most);
    const float up = power_of_two(exponent);
    for (int e = id; e < padded * (DEPTH / 2); e += GROUP) {
        const int c = e / (DEPTH / 2), word = e % (DEPTH / 2), j = 2 * word;
        const float x0 = c < k && j < COLS ? C[c * COLS + j] : 0, x1 = c < k && j + 1 < COLS ? C[c * COLS + j + 1] : 0;
        to[(word / 16 * padded + c) * 16 + word % 16] = halves_of(x0 * up, x1 * up);
    }
    of.down = power_of_two(-exponent);
    of.floor = most * 0.00390625f;
    for (int c = id; c < padded; c += GROUP) {
        float lost = 0, norm = 0;
        half[c] = c < k ? halves[c] : NONE;
        for (int j = 0; c < k && j < COLS; j++) {
            const float x = C[c * COLS + j], left = x * up - low_half(halves_of(x * up, 0.0f));
            lost += left * left;
            norm += x * up * (x * up);
        }
        if (lost > 0) share = fmax(share, 1.001f * sqrt(lost) / (sqrt(norm) + of.floor * up));
    }
    of.share = most_of_group(scratch, share);
    return of;
}

/* What a warp has of its rows. */
struct slim {
    uint left[ROWS / 2][2 * BLOCKS][4];
    struct narrowed of[ROWS];
};

DEVICE_FN void slim_rows(struct slim *to, __global const float *X, long first, long rows) {
    const int t = (int)get_local_id(0) % 4;
    EACH(i, ROWS) {
        const long row = first + i * 8 < rows ? first + i * 8 : rows - 1;
        __global const float *x = X + row * COLS + 8 * t;
        float v[8 * BLOCKS];
        uint words[4 * BLOCKS];
        EACH(b, BLOCKS) {
#ifdef ALIGNED
            EACH(e, 2) {
                const float4 some = *(__global const float4 *)(x + 32 * b + 4 * e);
                v[8 * b + 4 * e] = some.x;
                v[8 * b + 4 * e + 1] = some.y;
                v[8 * b + 4 * e + 2] = some.z;
                v[8 * b + 4 * e + 3] = some.w;
            }
#else
            EACH(e, 8) v[8 * b + e] = 32 * b + 8 * t + e < COLS ? x[32 * b + e] : 0;
#endif
        }
        to->of[i] = narrow_values(words, (const float *)v, 4 * BLOCKS, 4);
        EACH(b, 2 * BLOCKS) EACH(e, 2) to->left[i / 2][b][2 * e + i % 2] = words[2 * b + e];
    }
}

/* The products of the rows with 32 centres. */
DEVICE_FN void slim_products(float (*sum)[4][4], const struct slim *of, uint at, int padded) {
    EACH(i, ROWS / 2) EACH(q, 4) EACH(e, 4) sum[i][q][e] = 0;
    EACH(q, 4) EACH(b, BLOCKS) {
        uint right[4];
        load_words(right, at + (uint)(b * padded + q * 8) * 64);
        EACH(i, ROWS / 2) {
            multiply_halves(sum[i][q], of->left[i][2 * b], right[0], right[1]);
            multiply_halves(sum[i][q], of->left[i][2 * b + 1], right[2], right[3]);
        }
    }
}

/* Eight scores of one row, their numbers in the last bits of each, as `see` has them; the third one, too, as few centres often have
 * two of the least among eight. */
DEVICE_FN void see_scaled(struct least *to, const float (*sum)[4], const float (*half)[2], int i, float g, int begin) {
    struct least of = {NONE, NONE, NONE, begin, begin};
    EACH(q, 4) EACH(p, 2) {
        const float score = half[q][p] * g - sum[q][i % 2 * 2 + p];
        const float numbered = REAL_OF((BITS_OF(score) & ~7u) | (uint)(2 * q + p));
        const float after = fmax(of.first, numbered);
        of.first = fmin(of.first, numbered);
        of.third = fmin(of.third, fmax(of.second, after));
        of.second = fmin(of.second, after);
    }
    join(to, &of);
}

/* How much less a score must be, `first` being the least. */
DEVICE_FN float slim_margin(const struct narrowed *x, const struct centres *of, float first) {
    const float inside = x->norm * x->norm + 2 * first;
    const float reach = 1.06f * (x->norm + sqrt(inside > 0 ? inside : 0.0f));
    const float each = x->lost + (float)(COLS + 64) * 2.4e-7f * x->norm + 2e-6f * reach;
    return 2.02f * (x->norm * of->share * (reach + of->floor) + reach * each);
}

__kernel GROUP_OF(GROUP) void assign_slim(PARAMETERS(assign_slim)) {
    RING_BEGIN
    LOCAL float scratch[GROUP];
    const int lane = (int)get_local_id(0) % 32, t = lane % 4, padded = (k + 31) / 32 * 32;
    const uint centres_at = shared_address(ring) + (uint)(lane / 4 * 64 + t * 16);
    LOCAL_PTR const float *const half_at = (LOCAL_PTR float *)ring + padded * (DEPTH / 2) + t * 2;
    const bool huge_centre = state[1];
    const struct centres centres = slim_centres((LOCAL_PTR uint *)ring, scratch, C, halves, padded, k);
    for (long top = (long)(get_global_id(0) / 32) * 32; top < rows; top += (long)get_global_size(0)) {
        struct slim own;
        struct least mine[ROWS];
        const struct least none = {NONE, NONE, NONE, 0, 0};
        float g[ROWS];
        slim_rows(&own, X, top + lane / 4, rows);
        EACH(i, ROWS) {
            mine[i] = none;
            g[i] = inverse_of_power(own.of[i].down) * inverse_of_power(centres.down);
        }
        for (int c = 0; c < padded; c += 32) {
            float sum[ROWS / 2][4][4], half[4][2];
            slim_products(sum, &own, centres_at + (uint)c * 64, padded);
            EACH(q, 4) EACH(p, 2) half[q][p] = half_at[c + q * 8 + p];
            EACH(i, ROWS)
                see_scaled(&mine[i], (const float(*)[4])sum[i / 2], (const float(*)[2])half, i, g[i], c + t * 2);
        }
        EACH(i, ROWS) join_lanes(&mine[i]);
        EACH(i, ROWS) { /* lane t of four decides row t */
            if (t != i) continue;
            mine[0] = mine[i];
            own.of[0] = own.of[i];
        }
        const long row = top + lane / 4 + t * 8;
        const float scale = own.of[0].down * centres.down, norm = own.of[0].norm;
        mine[0].first *= scale;
        mine[0].second *= scale;
        mine[0].third *= scale;
        if (row < rows)
            decide(found, doubtful, limits, state, row, rows, &mine[0], slim_margin(&own.of[0], &centres, mine[0].first),
                   huge_centre || !(norm * norm < HUGE_SQUARE));
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build SCREEN COLS=13 RING_BYTES=32768
// build SCREEN ALIGNED COLS=64 RING_BYTES=32768
#endif
