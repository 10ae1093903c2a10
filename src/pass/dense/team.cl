/* GPU body of the passes over a dense X whose rows several groups share, and where there is no copy engine
 * also of narrower ones: out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * The next STAGES tiles are on their way into local memory, so that what is under way does not depend on
 * registers: by one thread's bulk copies of whole rows (dialect/bulk.h), or, where the device has none, by
 * every thread's copies of its own elements (COPY_ASYNC). Columns of y and w stay in registers. The R rows x
 * K columns of dot products of a tile are summed together, each exchange between lanes halving them
 * (dialect/group_sum.h), and meet the tile LAG steps later, still in local memory, to make w.
 *
 * Rows too wide for a group are shared by a team of C, a slice of the columns each. Its groups leave their
 * parts of a tile's dot products in global memory, and read those of all others LAG steps later
 * (dialect/exchange.h), having asked for them at the end of the step before.
 *
 * A tile is NV * R rows; out has one partial w a team, partial[team][K][n]. dialect/pass.h names the other
 * defines. */

#define ARGUMENTS_mmchain_team_begin(FIRST, NEXT)                                                            \
    FIRST(SPACE, real, work)                                                                                 \
    NEXT(VALUE, long, exchange_at)                                                                           \
    NEXT(VALUE, long, words)

#ifndef KI_HOST
#include "dialect/bulk.h"
#include "dialect/exchange.h"
#include "dialect/group_sum.h"
#include "dialect/pass.h"

#ifdef TEAM
#define TL (Q * W)
#define V (K * R) /* dot products of a vector's rows, number r * K + c */
#define TILE (NV * R)
#ifdef SHUFFLES
#define LANES (VS < 32 ? VS : 32)
#else
#define LANES 1
#endif
#define PARTS (VS / LANES) /* of a dot product, in a vector */
#define ROWS_A_LANE (R > LANES ? R / LANES : 1)
#define PARTS_A_LANE ((C * V + LANES - 1) / LANES)

#if VS > LANES
#define STEP_SYNC barrier(CLK_LOCAL_MEM_FENCE)
#else
#define STEP_SYNC warp_sync()
#endif

#ifndef COPY_ASYNC /* no instruction for it: a thread waits for its copies */
#define COPY_ASYNC(to, from)                                                                                 \
    for (int element = 0; element < W; element++) (to)[element] = (from)[element]
#define copies_commit() (void)0
#define copies_wait(pending) (void)0
#endif

#if defined(BULK) && (defined(KILN_OPENCL) || __CUDA_ARCH__ >= 900) && C > 1
#define WHOLE_ROWS
#define PITCH (TL * BS + (W == BULK_UNIT ? 0 : BULK_LINE)) /* of a row in a tile */
#else
#define PITCH (TL * BS)
#endif
#ifdef KILN_CUDA /* gives it at launch */
#define ROOM_BEGIN real *const room = ring;
#else
#define ROOM_BEGIN LOCAL real room[STAGES * R * PITCH] __attribute__((aligned(128)));
#endif

/* Holds what a group works on: columns [base, base + width) of every parts-th tile from `part` on. */
struct strip {
    __global const real *X;
    long rows, part, parts;
    int count;
    int n, base, width, member;
};

DEVICE_FN struct strip strip_of(__global const real *X, long rows, int n, long group) {
    const int unit = 128 / (int)sizeof(real), slice = C == 1 ? n : ((n + C - 1) / C + unit - 1) / unit * unit;
    struct strip t;
    t.X = X;
    t.rows = rows;
    t.n = n;
    t.part = group / C;
    t.parts = (long)get_num_groups(0) / C;
    t.member = (int)(group % C);
    t.base = t.member * slice;
    t.width = n - t.base < slice ? n - t.base : slice;
    const long all = (rows + TILE - 1) / TILE;
    t.count = t.part < all ? (int)((all - t.part + t.parts - 1) / t.parts) : 0;
    return t;
}

/* The r-th row of this thread's vector in the i-th tile: vectors take rows in turns. */
DEVICE_FN long row_of(const struct strip *t, int i, int r) {
    return (t->part + (long)i * t->parts) * TILE + r * NV + (int)get_local_id(0) / VS;
}

DEVICE_FN int column_of(int q) {
    return ((int)get_local_id(0) % VS + q * VS) * W;
}

#ifdef WHOLE_ROWS
/* Finds where in its place a row's slice begins. */
DEVICE_FN int shift_of(const struct strip *t, long row) {
    return W == BULK_UNIT ? 0 : (int)((uint)row * (uint)t->n % BULK_LINE);
}

DEVICE_FN LOCAL_PTR real *place_of(const struct strip *t, LOCAL_PTR real *room, int i, int r) {
    return room + ((int)((uint)i % STAGES) * R + r) * PITCH + shift_of(t, row_of(t, i, r)) +
           (int)get_local_id(0) * W;
}
#else
DEVICE_FN LOCAL_PTR real *place_of(const struct strip *t, LOCAL_PTR real *room, int i, int r) {
    return room + (((int)((uint)i % STAGES) * R + r) * Q * BS + (int)get_local_id(0)) * W;
}
#endif

/* The thread's q-th load of a row in its place. Copies of rows that are no multiples of 16 bytes bring some
 * of what is beyond the slice; else there are zeros (clear_room). */
DEVICE_FN void load_from(real *x, const struct strip *t, LOCAL_PTR const real *place, int q) {
#if defined(WHOLE_ROWS) && W < BULK_UNIT
    if (q >= SURE && column_of(q) >= t->width) {
#pragma unroll
        for (int s = 0; s < W; s++) x[s] = REAL(0.0);
        return;
    }
#endif
    load_local(x, place + q * BS * W);
}

/* ------------------------------------------------------------------------------------------ tiles come */

#ifdef WHOLE_ROWS
struct arrivals {
    ulong come[STAGES]; /* tickets of the places */
    uint finished;      /* warps, with the tile that is used last */
};

DEVICE_FN void begin_arrivals(LOCAL_PTR struct arrivals *a) {
    if ((int)get_local_id(0) != 0) return;
    for (int i = 0; i < STAGES; i++) ticket_init(&a->come[i], 1);
    a->finished = 0;
    tickets_begin();
}

/* One thread calls it. The last bytes of X may be less than a copy takes. */
DEVICE_FN void fetch_rows(const struct strip *t, LOCAL_PTR real *room, LOCAL_PTR ulong *ticket, int i) {
    const long row = row_of(t, i, 0), left = t->rows - row;
    const int rows = left < R ? (int)left : R;
    uint bytes = 0;
    for (int r = 0; r < rows; r++) {
        const int shift = shift_of(t, row + r), before = shift % BULK_BEGIN;
        const long from = (row + r) * t->n + t->base - before, end = t->rows * t->n - from;
        LOCAL_PTR real *to = room + ((uint)i % STAGES * R + (uint)r) * PITCH + (shift - before);
        int all = (before + t->width + BULK_UNIT - 1) & -BULK_UNIT;
        if (W < BULK_UNIT && end < all) {
            all = (int)end & -BULK_UNIT;
            for (int e = all; e < (int)end; e++) to[e] = t->X[from + e];
        }
        if (all > 0) bulk_copy(to, t->X + from, (uint)all * (uint)sizeof(real), ticket);
        bytes += (uint)all * (uint)sizeof(real);
    }
    ticket_expect(ticket, bytes);
}

DEVICE_FN void fetch(const struct strip *t, LOCAL_PTR real *room, LOCAL_PTR struct arrivals *a, int i) {
    if (i < t->count && (int)get_local_id(0) == 0) fetch_rows(t, room, &a->come[(uint)i % STAGES], i);
}

/* The same where the group has used the tile before it in its place: by the warp that is last to be done with
 * that. */
DEVICE_FN void fetch_next(const struct strip *t, LOCAL_PTR real *room, LOCAL_PTR struct arrivals *a, int i) {
    warp_sync();
    if ((int)get_local_id(0) % 32 == 0 && last_warp(&a->finished, BS / 32) && i < t->count)
        fetch_rows(t, room, &a->come[(uint)i % STAGES], i);
}

DEVICE_FN void await(const struct strip *t, LOCAL_PTR struct arrivals *a, int i) {
    if (i < t->count) ticket_wait(&a->come[(uint)i % STAGES], (uint)i / STAGES & 1);
}

#define no_fetch() (void)0
#else
struct arrivals {
    int none; /* threads wait for their own copies */
};

#define begin_arrivals(a) (void)0
#define fetch_next(t, room, a, i) fetch(t, room, a, i)
#define await(t, a, i) copies_wait(STAGES - LAG - 1)
#define no_fetch() copies_commit() /* they are counted */

DEVICE_FN void fetch(const struct strip *t, LOCAL_PTR real *room, LOCAL_PTR struct arrivals *a, int i) {
    if (i < t->count) {
#pragma unroll
        for (int r = 0; r < R; r++) {
            const long row = row_of(t, i, r);
            __global const real *from = t->X + row * t->n + t->base;
#pragma unroll
            for (int q = 0; q < Q; q++)
                if (row < t->rows && column_of(q) < t->width)
                    COPY_ASYNC(place_of(t, room, i, r) + q * BS * W, from + column_of(q));
        }
    }
    copies_commit();
}
#endif

/* This thread's share of a tile's dot products. */
DEVICE_FN void dots(real *p, const struct strip *t, LOCAL_PTR real *room, int i, const real (*yr)[TL]) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        LOCAL_PTR const real *place = place_of(t, room, i, r);
        EACH_COLUMN(c) p[r * K + c] = REAL(0.0);
#pragma unroll
        for (int q = 0; q < Q; q++) {
            real x[W];
            load_from(x, t, place, q);
            EACH_COLUMN(c)
#pragma unroll
            for (int s = 0; s < W; s++) p[r * K + c] += x[s] * yr[c][q * W + s];
        }
    }
}

/* w += the tile's rows times their factors. */
DEVICE_FN void scatter(real (*wr)[TL], const struct strip *t, LOCAL_PTR real *room, int i,
                       LOCAL_PTR const real *factors) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (row_of(t, i, r) >= t->rows) continue;
        LOCAL_PTR const real *place = place_of(t, room, i, r);
        real f[K];
        EACH_COLUMN(c) f[c] = factors[r * K + c];
#pragma unroll
        for (int q = 0; q < Q; q++) {
            real x[W];
            load_from(x, t, place, q);
            EACH_COLUMN(c)
#pragma unroll
            for (int s = 0; s < W; s++) wr[c][q * W + s] += f[c] * (SQUARES ? x[s] * x[s] : x[s]);
        }
    }
}

/* Number s of the V sums over this thread's lanes, to to[s * PARTS]. */
DEVICE_FN void lane_sums(LOCAL_PTR real *to, real *p) {
#ifdef SHUFFLES
    const int lane = (int)get_local_id(0) % LANES;
    halving_sums(p, V, LANES);
#pragma unroll
    for (int s = 0; s < (V > LANES ? V / LANES : 1); s++) to[(lane * V / LANES + s) * PARTS] = p[s];
#else
    for (int s = 0; s < V; s++) to[s * PARTS] = p[s];
#endif
}

DEVICE_FN real sum_of(LOCAL_PTR const real *from, int count, int stride) {
    real even = from[0], odd = REAL(0.0);
    for (int m = 1; m + 1 < count; m += 2) {
        odd += from[m * stride];
        even += from[(m + 1) * stride];
    }
    if (count % 2 == 0) odd += from[(count - 1) * stride];
    return even + odd;
}

#if C == 1
#define parts_of(t, exchange, i) (exchange)
#else
/* Whole lines of 128 bytes: groups that ask for one step's words hold up the others' stores to their line. */
#define PLACE_WORDS ((C * V + 15) / 16 * 16)

/* Returns where the parts of step i of the group's team are. */
DEVICE_FN volatile __global ulong *parts_of(const struct strip *t, volatile __global ulong *exchange, int i) {
    return exchange + EXCHANGE_HEAD + (t->part * PLACES + (uint)i % PLACES) * PLACE_WORDS;
}

/* All groups' parts of a step, member after member: a warp asks for all of them at once, and again until they
 * have come. */
struct words {
    ulong word[PARTS_A_LANE];
};

DEVICE_FN void ask(struct words *w, volatile __global const ulong *from, int lane) {
#pragma unroll
    for (int a = 0; a < PARTS_A_LANE; a++) {
        const int e = lane + a * LANES < C * V ? lane + a * LANES : C * V - 1;
        w->word[a] = from[e];
    }
}

DEVICE_FN bool have_come(const struct words *w, int step) {
    uint differences = 0;
#pragma unroll
    for (int a = 0; a < PARTS_A_LANE; a++) differences |= difference(w->word[a], mark_of(step));
    return none_differs(differences);
}

#if FUSED || PLAIN
/* The last warp leaves this group's parts of step i, sums over the group's warps. */
DEVICE_FN void send_parts(volatile __global ulong *to, const struct strip *t,
                          LOCAL_PTR const real (*parts)[PARTS], int i) {
    const int id = (int)get_local_id(0);
    if (i >= t->count || id < BS - LANES) return;
    for (int s = id - (BS - LANES); s < V; s += LANES)
        to[t->member * V + s] = word_of(sum_of(parts[s], PARTS, 1), i);
}
#endif

/* The V sums over the team, to `to`: a lane has parts of one number alone. */
DEVICE_FN void receive(LOCAL_PTR real *to, struct words *w, volatile __global const ulong *from, int step) {
    const int lane = (int)get_local_id(0) % VS;
    while (!have_come(w, step)) ask(w, from, lane);
#ifdef SHUFFLES
    real sum = REAL(0.0);
#pragma unroll
    for (int a = 0; a < PARTS_A_LANE; a++)
        if (lane + a * LANES < C * V) sum += number_of(w->word[a]);
#pragma unroll
    for (int apart = LANES / 2; apart >= V; apart /= 2) sum += shuffle_xor(0xffffffffu, sum, apart);
    if (lane < V) to[lane] = sum;
#else
    for (int s = 0; s < V; s++) to[s] = REAL(0.0);
    for (int a = 0; a < C * V; a++) to[a % V] += number_of(w->word[a]);
#endif
}
#endif

/* ------------------------------------------------------------------------------------ the middle step */

/* Holds what a tile waits for before it becomes w. */
struct coming {
#if !PLAIN
    struct row_operands operands[ROWS_A_LANE];
#endif
#if C > 1 && (FUSED || PLAIN)
    struct words words;
#endif
};

/* The leading lanes of a vector ask for all that the i-th tile waits for, if there is one: a step ahead, so
 * that the way through the memory is no part of a step. (All words of the step before i have come by
 * then.) */
DEVICE_FN void ask_ahead(struct coming *next, const struct strip *t, int i,
                         volatile __global const ulong *parts, __global const real *v, __global const real *y,
                         int first, int k, int v_cols MAP_TAKEN) {
    const int lane = (int)get_local_id(0) % VS;
    if (i < 0 || i >= t->count || lane >= LANES) return;
#if C > 1 && (FUSED || PLAIN)
    ask(&next->words, parts, lane);
#endif
#if !PLAIN
#pragma unroll
    for (int m = 0; m < ROWS_A_LANE; m++) {
        const int r = lane + m * LANES;
        if (r < R && row_of(t, i, r) < t->rows)
            next->operands[m] = load_operands(v, y, (index_t)row_of(t, i, r), first, k, v_cols MAP_OPERANDS);
    }
#endif
}

/* The leading lanes turn the dot products of the i-th tile, V numbers at `mine`, into factors, or (PLAIN)
 * store them in out. */
DEVICE_FN void make_factors(LOCAL_PTR real *mine, const struct coming *now, const struct strip *t, int i,
                            __global real *out, __global const real *v, __global const real *y,
                            __global const real *z, real alpha, real beta, int first, int k,
                            int v_cols MAP_TAKEN) {
    const int lane = (int)get_local_id(0) % VS;
#pragma unroll
    for (int m = 0; m < ROWS_A_LANE; m++) {
        const int r = lane + m * LANES;
        const long row = row_of(t, i, r);
        if (r >= R || row >= t->rows) continue;
        real factor[K];
        EACH_COLUMN(c) factor[c] = FUSED || PLAIN ? mine[r * K + c] : REAL(0.0);
#if PLAIN
        EACH_COLUMN(c)
        if (t->member == 0 && first + c < k)
            write_plain(out, factor[c], z, alpha, beta, (index_t)row * k + first + c);
#else
        apply_map(factor, &now->operands[m], (index_t)row, first, k MAP_STATE(t->member == 0));
        EACH_COLUMN(c) mine[r * K + c] = factor[c];
#endif
    }
}

/* ---------------------------------------------------------------------------------- beginning and end */

/* wr = 0; yr = the thread's columns of y. */
DEVICE_FN void begin_columns(real (*wr)[TL], real (*yr)[TL], const struct strip *t, __global const real *y,
                             int first, int k) {
    EACH_COLUMN(c)
#pragma unroll
    for (int e = 0; e < TL; e++) {
        const int j = column_of(e / W) + e % W;
        wr[c][e] = REAL(0.0);
        yr[c][e] = REAL(0.0);
#if FUSED || PLAIN
        if (j < t->width && first + c < k) yr[c][e] = y[(index_t)(t->base + j) * k + first + c];
#endif
    }
}

/* The room beyond the slice is zero, and stays so where copies end with it. */
DEVICE_FN void clear_room(LOCAL_PTR real *room, const struct strip *t) {
#if !defined(WHOLE_ROWS) || W == BULK_UNIT
    for (int i = 0; i < STAGES; i++)
        for (int r = 0; r < R; r++)
            for (int q = 0; q < Q; q++)
                for (int s = 0; s < W; s++)
                    if (column_of(q) >= t->width) place_of(t, room, i, r)[q * BS * W + s] = REAL(0.0);
#endif
}

/* The vectors of the group add up their w, column by column of y, where the tiles were. */
DEVICE_FN void write_w(__global real *out, const real (*wr)[TL], const struct strip *t,
                       LOCAL_PTR real *room) {
    const int id = (int)get_local_id(0), lane = id % VS, vector = id / VS;
    EACH_COLUMN(c) {
#if NV > 1
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int e = 0; e < TL; e++) room[e * BS + id] = wr[c][e];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = vector; e < TL; e += NV) {
            const int j = column_of(e / W) + e % W;
            real sum = room[e * BS + lane];
            for (int other = 1; other < NV; other++) sum += room[e * BS + other * VS + lane];
            if (j < t->n) out[(t->part * K + c) * t->n + j] = sum;
        }
#else
#pragma unroll
        for (int e = 0; e < TL; e++) {
            const int j = column_of(e / W) + e % W;
            if (j < t->width) out[(t->part * K + c) * t->n + t->base + j] = wr[c][e];
        }
#endif
    }
}

__kernel GROUP_OF(BS) void mmchain_team(PARAMETERS(dense) MAP_PARAMETERS TEAM_PARAMETERS) {
    ROOM_BEGIN
    LOCAL real sums[2][NV][V]; /* of a tile's rows: dot products, then factors */
    LOCAL struct arrivals arrivals;
#if VS > LANES
    LOCAL real parts[2][NV][V][PARTS];
#endif
    MAP_BEGIN
    const int id = (int)get_local_id(0), lane = id % VS, vector = id / VS;
    volatile __global ulong *exchange = 0;
    long group = (long)get_group_id(0);
    begin_arrivals(&arrivals);
#if C > 1
    LOCAL int number;
    exchange = (volatile __global ulong *)work_space + exchange_at;
    if (id == 0) number = count_up((volatile __global int *)exchange);
    barrier(CLK_LOCAL_MEM_FENCE);
    group = number;
#endif
    const struct strip t = strip_of(X, rows, n, group);
    clear_room(room, &t);
    for (int i = 0; i < STAGES; i++) fetch(&t, room, &arrivals, i);
    real yr[K][TL], wr[K][TL];
    begin_columns(wr, yr, &t, y, first, k);
    struct coming next;
    ask_ahead(&next, &t, -LAG, parts_of(&t, exchange, 0), v, y, first, k, v_cols MAP_PASSED);

    for (int i = 0; i < t.count + LAG; i++) {
        const int done = i - LAG; /* the tile that becomes w, once i >= LAG */
        LOCAL_PTR real *mine = sums[done & 1][vector];
        await(&t, &arrivals, i);
#if FUSED || PLAIN
        if (i < t.count) {
            real p[V];
            dots(p, &t, room, i, yr);
#if VS > LANES
            lane_sums(&parts[i & 1][vector][0][lane / LANES], p);
#else
            lane_sums(sums[i & 1][vector], p);
#endif
        }
#if LAG == 0
        STEP_SYNC;
#endif
#endif
        if (i >= LAG && lane < LANES) {
#if FUSED || PLAIN
#if C > 1
            receive(mine, &next.words, parts_of(&t, exchange, done), done);
#elif VS > LANES
            for (int s = lane; s < V; s += LANES) mine[s] = sum_of(parts[done & 1][vector][s], PARTS, 1);
#endif
            warp_sync();
#endif
            make_factors(mine, &next, &t, done, out, v, y, z, alpha, beta, first, k, v_cols MAP_PASSED);
        }
        STEP_SYNC;
#if C > 1 && (FUSED || PLAIN)
        send_parts(parts_of(&t, exchange, i), &t, parts[i & 1][0], i);
#endif
        ask_ahead(&next, &t, done + 1, parts_of(&t, exchange, done + 1), v, y, first, k, v_cols MAP_PASSED);
        if (i < LAG) {
            no_fetch();
            continue;
        }
#if !PLAIN
        scatter(wr, &t, room, done, mine);
#endif
        fetch_next(&t, room, &arrivals, done + STAGES);
    }
#if !PLAIN
    copies_wait(0);
    write_w(out, wr, &t, room);
#endif
#ifdef MAP
    write_record(records + records_at + (group - (long)get_group_id(0)) * RECORD, record, map_tree);
#endif
}
#endif

/* The places of an exchange before a launch: no step has come, no group has begun. */
#ifdef TEAM_BEGIN
__kernel GROUP_OF(256) void mmchain_team_begin(PARAMETERS(mmchain_team_begin)) {
    __global ulong *exchange = (__global ulong *)work + exchange_at;
    for (long i = (long)get_global_id(0); i < words; i += (long)get_global_size(0)) exchange[i] = 0;
}
#endif

/* The variants that differ in text, as the tests build them. */
// build TEAM KIND=0 VS=128 BS=128 Q=7 W=2 R=1 K=1 C=12 SURE=1 STAGES=3 LAG=1
// build TEAM KIND=0 VS=128 BS=128 Q=1 W=4 R=2 K=1 C=7 SURE=1 STAGES=4 LAG=2
// build TEAM KIND=0 VS=32 BS=128 Q=2 W=2 R=4 K=4 C=1 SURE=1 STAGES=2 LAG=0 MAP=3
// build TEAM KIND=0 VS=128 BS=128 Q=2 W=2 R=2 K=4 C=8 SURE=1 STAGES=5 LAG=2 MAP=0 INDEX64
// build TEAM KIND=1 VS=128 BS=128 Q=4 W=1 R=1 K=2 C=1 SURE=1 STAGES=5 LAG=1
// build TEAM KIND=2 VS=16 BS=256 Q=2 W=2 R=2 K=1 C=1 SURE=1 STAGES=2 LAG=0
// build TEAM KIND=1 VS=128 BS=128 Q=2 W=2 R=1 K=1 C=16 SURE=1 STAGES=5 LAG=3
// build TEAM_BEGIN
#endif
