/* GPU body of fused passes over a dense X with several columns of y and very wide rows, on tensor cores (from compute
 * capability 9.0 on): W = X^T (V .* (X Y)).
 *
 * C groups anywhere on the device, a team, share each row, so that 132 units hold the y and w of 8 columns of 100,000 and none
 * is left over, as by clusters. What a team's groups send each other goes through the second cache level and takes some
 * microseconds; that long a tile stays in the ring, between its dot products and its part of w. Hence no warp waits for another
 * one's step: a worker takes whatever comes first, the factors of its oldest tile or the next tile (dialect/tile.h has what it
 * does with either), and six more warps see to the rest:
 *
 *   one fetches tiles           one adds up the workers' parts of a tile's sums and sends them to their owners
 *   two own some of the sums, others from tile to tile: they add up the parts of all groups, in order, and tell all groups
 *   two wait for all sums of a tile and make factors of them
 *
 * Words tell by themselves that they have come (dialect/exchange.h). STAGES places are enough: a group that sends its parts of
 * tile i has used all sums of tile i - STAGES, or tile i would have no room in its ring; those sums were made of all groups'
 * parts, which hence have been written and read, and the owner of a sum of tile i has parts of all groups. Nobody looks for words
 * of tile i before its group has sent its own.
 *
 * A group's number is the order in which it began to run: teams but the last to begin are complete, and come to their end.
 * out has one partial w a team, partial[team][K][n]. */
#if defined(BULK) && defined(TILE_TEAM)
#define ADDERS ((CLERKS - 2) / 2) /* warps, which take turns */
#define MAPPERS (CLERKS - 2 - ADDERS)
#define PARTS 2                   /* places for what the workers leave */
#define PAIRS (R * K / 2)         /* of a tile's dot products: what a lane has of eight rows */
#define OWN ((PAIRS + C - 1) / C) /* of which a group owns so many, or one less */
#define TURNS ((C + 31) / 32)     /* in which a warp receives the parts of one of them */
#define ASKED (OWN * TURNS > UNITS ? OWN * TURNS : UNITS)
#define PLACE ((C + 1) * PAIRS * PAIR_WORDS) /* words: parts[PAIRS][C], sums[PAIRS] */

/* Tickets of what warps leave for each other, and the places for it. */
struct desk {
    LOCAL_PTR struct sums (*parts)[SHARERS], *factors;
    LOCAL_PTR ulong *given, *taken; /* parts by all workers; by the warp that adds them up */
    LOCAL_PTR ulong *ready;         /* factors */
    volatile LOCAL_PTR int *sent;   /* tiles whose parts the group has sent */
    __global ulong *words;          /* of the team's exchange */
    int member;                     /* of the team */
};

DEVICE_FN __global ulong *place_of_tile(const struct desk *desk, int i) {
    return desk->words + i % STAGES * PLACE;
}

/* x = the pairs at `from`, once those of tile i have come: all are asked for at once, and again. */
DEVICE_FN void receive(real (*x)[2], __global const ulong *const *from, const int count, int i) {
    ulong word[ASKED][PAIR_WORDS];
    uint differences;
    do {
        differences = 0;
#pragma unroll
        for (int a = 0; a < count; a++) ask_pair(word[a], from[a]);
#pragma unroll
        for (int a = 0; a < count; a++) differences |= difference_of_pair(word[a], mark_of(i));
    } while (!none_differs(differences));
#pragma unroll
    for (int a = 0; a < count; a++)
#pragma unroll
        for (int s = 0; s < 2; s++) x[a][s] = number_of_pair(word[a], s);
    warp_sync();
}

/* ------------------------------------------------------------------------------------------ the warps' loops */

/* The group's parts of the sums go to their owners. */
DEVICE_FN void send_tiles(const struct tiles *t, const struct desk *desk) {
    const int lane = (int)get_local_id(0) % 32;
    for (int i = 0; i < t->count; i++) {
        real q[UNITS][2];
        __global ulong *to = place_of_tile(desk, i) + (lane * C + desk->member) * PAIR_WORDS;
        ticket_wait(&desk->given[i % PARTS], i / PARTS & 1);
        add_up(q, desk->parts[i % PARTS], SHARERS);
        warp_sync();
        if (lane == 0) ticket_arrive(&desk->taken[i % PARTS]);
        if (lane < 4 * K) /* the others' columns are none of y's */
#pragma unroll
            for (int u = 0; u < UNITS; u++) send_pair(to + u * 4 * K * C * PAIR_WORDS, q[u], i);
        if (lane == 0) count_local(desk->sent, 1);
    }
}

/* Until the group has sent its parts of tile i. */
DEVICE_FN void await_own(const struct desk *desk, int i) {
    if ((int)get_local_id(0) % 32 == 0)
        while (count_local(desk->sent, 0) <= i)
            ;
    warp_sync();
}

DEVICE_FN void await_pair(__global const ulong *from, int i) {
    ulong word[PAIR_WORDS];
    do ask_pair(word, from);
    while (!none_differs(difference_of_pair(word, mark_of(i))));
}

/* Sums over the team of the pairs that are this group's. */
DEVICE_FN void add_tiles(const struct tiles *t, const struct desk *desk, int turn) {
    const int lane = (int)get_local_id(0) % 32;
    for (int i = turn; i < t->count; i += ADDERS) {
        const int pair = (desk->member + C - i % C * (PAIRS % C) % C) % C;
        __global ulong *place = place_of_tile(desk, i);
        __global const ulong *from[ASKED];
        real x[ASKED][2];
        if (pair >= PAIRS) continue;
#pragma unroll
        for (int o = 0; o < OWN; o++)
#pragma unroll
            for (int s = 0; s < TURNS; s++) {
                const int own = pair + o * C < PAIRS ? pair + o * C : pair;
                const int part = lane + 32 * s < C ? lane + 32 * s : C - 1;
                from[o * TURNS + s] = place + (own * C + part) * PAIR_WORDS;
            }
        await_own(desk, i);
        receive(x, from, OWN * TURNS, i);
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            real sum[2] = {REAL(0.0), REAL(0.0)};
#pragma unroll
            for (int s = 0; s < TURNS; s++) {
                if (lane + 32 * s >= C) continue;
                sum[0] += x[o * TURNS + s][0];
                sum[1] += x[o * TURNS + s][1];
            }
#pragma unroll
            for (int step = 16; step > 0; step /= 2) {
                sum[0] += shuffle_xor(0xffffffffu, sum[0], step);
                sum[1] += shuffle_xor(0xffffffffu, sum[1], step);
            }
            if (lane == 0 && pair + o * C < PAIRS)
                send_pair(place + (C * PAIRS + pair + o * C) * PAIR_WORDS, sum, i);
        }
    }
}

/* Factors of the tiles whose sums have come. */
DEVICE_FN void map_tiles(const struct tiles *t, const struct desk *desk, int turn, __global const real *v,
                         __global const real *y, int first, int k, int v_cols) {
    const int lane = (int)get_local_id(0) % 32;
    struct rows_operands now, next;
    if (turn < t->count) load_rows(&next, t, turn, 0, v, y, first, k, v_cols);
    for (int i = turn; i < t->count; i += MAPPERS) {
        __global const ulong *sums = place_of_tile(desk, i) + C * PAIRS * PAIR_WORDS, *from[ASKED];
        real q[ASKED][2];
        LOCAL_PTR real *factors = &desk->factors[i % STAGES].of[0][0];
        now = next;
        if (i + MAPPERS < t->count) load_rows(&next, t, i + MAPPERS, 0, v, y, first, k, v_cols);
#pragma unroll
        for (int u = 0; u < UNITS; u++) from[u] = sums + (u * 4 * K + lane % (4 * K)) * PAIR_WORDS;
        await_own(desk, i);
        if (lane == 0) await_pair(sums, i); /* words that all lanes of all groups ask for come late */
        warp_sync();
        receive(q, from, UNITS, i);
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int s = 0; s < 2; s++)
                if (lane >= 4 * K) q[u][s] = REAL(0.0);
        map_rows(q, &now, t, i, 0, first, k, factors);
        keep(factors, q);
        warp_sync();
        if (lane == 0) ticket_arrive(&desk->ready[i % STAGES]);
    }
}

/* Whether all lanes see that a warp can go on. */
DEVICE_FN bool has_come(LOCAL_PTR ulong *tickets, int i, int places) {
    return all_lanes(ticket_done(&tickets[i % places], i / places & 1));
}

DEVICE_FN void work(real (*w)[W], const struct tiles *t, const struct place *at, const struct left *yr,
                    LOCAL_PTR ulong *full, const struct desk *desk) {
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    for (int i = 0, last = 0; last < t->count;) {
        real q[UNITS][2];
        if (last < i && has_come(desk->ready, last, STAGES)) {
#pragma unroll
            for (int u = 0; u < UNITS; u++)
#pragma unroll
                for (int s = 0; s < 2; s++) q[u][s] = desk->factors[last % STAGES].of[u][2 * lane + s];
            scatter(w, t->ring + last % STAGES * t->size, t, at, q);
            if (last + STAGES < t->count) meeting_arrive(EMPTY + last % STAGES);
            last++;
        } else if (i < t->count && i - last < STAGES && has_come(full, i, STAGES)) {
            clear_missing(t->ring + i % STAGES * t->size, t, at, i);
            dots(q, t->ring + i % STAGES * t->size, t, at, yr);
            if (i >= PARTS) ticket_wait(&desk->taken[i % PARTS], i / PARTS - 1 & 1);
            keep(&desk->parts[i % PARTS][warp].of[0][0], q);
            warp_sync();
            if (lane == 0) ticket_arrive(&desk->given[i % PARTS]);
            i++;
        }
    }
}

/* Tickets, and the group's number. */
DEVICE_FN void begin(LOCAL_PTR ulong *full, const struct desk *desk, LOCAL_PTR int *number,
                     __global ulong *exchange) {
    if ((int)get_local_id(0) == 0) {
        for (int s = 0; s < STAGES; s++) {
            ticket_init(&full[s], 1);
            ticket_init(&desk->ready[s], 1);
        }
        for (int s = 0; s < PARTS; s++) {
            ticket_init(&desk->given[s], WORKERS);
            ticket_init(&desk->taken[s], 1);
        }
        *desk->sent = 0;
        tickets_begin();
        *number = count_up((volatile __global int *)exchange);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel GROUP_OF(BS) void mmchain_tile_team(PARAMETERS(dense) TEAM_PARAMETERS) {
    RING_BEGIN
    LOCAL ulong full[STAGES], ready[STAGES], given[PARTS], taken[PARTS];
    LOCAL struct sums parts[PARTS][SHARERS], factors[STAGES];
    LOCAL int number, sent;
    const int warp = (int)get_local_id(0) / 32;
    __global ulong *exchange = (__global ulong *)work_space + exchange_at;
    struct desk desk = {parts, factors, given, taken, ready, &sent, exchange, 0};
    begin(full, &desk, &number, exchange);
    desk.member = number % C;
    desk.words += EXCHANGE_HEAD + (long)(number / C) * (STAGES * PLACE);
    const struct tiles t = tiles_of_group(X, ring, rows, n, number);
    const struct place at = place_of(&t);
    real w[Q][W];
#pragma unroll
    for (int j = 0; j < Q; j++)
#pragma unroll
        for (int e = 0; e < W; e++) w[j][e] = REAL(0.0);

    if (warp < WORKERS) {
        struct left yr[Q * LEFTS];
        load_y(yr, &t, &at, y, first, k);
        work(w, &t, &at, yr, full, &desk);
    } else if (warp == WORKERS) {
        copy_tiles(&t, full);
    } else if (warp == WORKERS + 1) {
        send_tiles(&t, &desk);
    } else if (warp < WORKERS + 2 + ADDERS) {
        add_tiles(&t, &desk, warp - WORKERS - 2);
    } else {
        map_tiles(&t, &desk, warp - WORKERS - 2 - ADDERS, v, y, first, k, v_cols);
    }
    write_w(out, w, &t, &at, n);
}
#endif

/* The variants that differ in text, as the tests build them. */
// build TILE_TEAM KIND=0 VS=256 BS=448 Q=6 W=2 R=8 K=8 C=132 STAGES=8 LAG=8 RING_BYTES=65536 TEAMS
// build TILE_TEAM KIND=0 VS=256 BS=448 Q=3 W=4 R=16 K=4 C=44 STAGES=8 LAG=8 RING_BYTES=65536 INDEX64 TEAMS
