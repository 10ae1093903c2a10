/* GPU body of fused passes over a dense X with several columns of y, on tensor cores (from compute capability
 * 9.0 on):
 * W = X^T (V .* (X Y)), or a row map in place of V.
 *
 * Eight columns of y make as many multiplications a byte of X as the cores have time for, and more than that
 * with the sums over threads; a product of small matrices does both (dialect/tile.h).
 *
 * WORKERS warps take tiles from a ring that another warp keeps full by bulk copies. Where a row has several
 * warps, or C groups, they leave their parts of a tile's sums to one more warp, which adds them up, applies
 * the map and hands the factors F back; meanwhile the workers take the dot products of the next LAG tiles,
 * where the ring has room for them. They all meet once a tile. C groups are a team (dialect/exchange.h). */

#include "dialect/tile.h" /* before exchange.h, which depends on its JOINT */

#include "dialect/exchange.h"
#if defined(BULK) && defined(TILE)
#if JOINT

/* Holds what warps leave for each other: a tile's parts and its factors alternate between two places. */
struct exchange {
    LOCAL_PTR struct sums (*parts)[SHARERS], *factors;
#if C > 1
    __global ulong *words; /* the team's */
    int member;
#endif
};

#if C > 1
#define UNIT_WORDS (PAIR_WORDS * 32)
#define GROUP_WORDS (UNITS * UNIT_WORDS)
#define ROUNDS ((C * UNITS * PAIR_WORDS + 51) / 52)
#define TOGETHER                                                                                             \
    ((C + ROUNDS - 1) / ROUNDS) /* groups asked for at once, for as many registers as most workers have */

/* Returns where the lane's words of the team's first group are, for tile i. */
DEVICE_FN __global ulong *words_of(const struct exchange *of, int i) {
    return of->words + i % PLACES * (C * GROUP_WORDS) + (int)get_local_id(0) % 32 * PAIR_WORDS;
}

/* Lanes of columns that y has not send nothing. */
DEVICE_FN void send_sums(const struct exchange *to, const real (*q)[2], int i) {
    __global ulong *mine = words_of(to, i) + to->member * GROUP_WORDS;
    if ((int)get_local_id(0) % 32 / 4 >= K) return;
#pragma unroll
    for (int u = 0; u < UNITS; u++) send_pair(mine + u * UNIT_WORDS, q[u], i);
}

/* Words of some groups, as far as they have come: what is asked for early is there when it is needed. */
struct words {
    ulong word[TOGETHER][UNITS][PAIR_WORDS];
};

DEVICE_FN void ask(struct words *w, const struct exchange *of, int i, int begin) {
    if ((int)get_local_id(0) % 32 / 4 >= K) return;
    __global const ulong *from = words_of(of, i);
#pragma unroll
    for (int g = 0; g < TOGETHER; g++)
#pragma unroll
        for (int u = 0; u < UNITS; u++)
            ask_pair(w->word[g][u],
                     from + (begin + g < C ? begin + g : C - 1) * GROUP_WORDS + u * UNIT_WORDS);
}

DEVICE_FN bool have_come(const struct words *w, int i) {
    uint differences = 0;
#pragma unroll
    for (int g = 0; g < TOGETHER; g++)
#pragma unroll
        for (int u = 0; u < UNITS; u++) differences |= difference_of_pair(w->word[g][u], mark_of(i));
    return none_differs(differences);
}

/* q = tile i's sums over the groups, the first of which have been asked for: of every other group, and of the
 * others, so that additions wait less for each other. */
DEVICE_FN void receive_sums(real (*q)[2], struct words *w, const struct exchange *of, int i) {
    real sum[2][UNITS][2];
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) sum[0][u][s] = sum[1][u][s] = REAL(0.0);
#pragma unroll 1
    for (int begin = 0; begin < C && (int)get_local_id(0) % 32 / 4 < K; begin += TOGETHER) {
        if (begin > 0) ask(w, of, i, begin);
        while (!have_come(w, i)) ask(w, of, i, begin);
#pragma unroll
        for (int g = 0; g < TOGETHER; g++)
#pragma unroll
            for (int u = 0; u < UNITS; u++)
#pragma unroll
                for (int s = 0; s < 2; s++)
                    if (begin + g < C) sum[g % 2][u][s] += number_of_pair(w->word[g][u], s);
    }
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) q[u][s] = sum[0][u][s] + sum[1][u][s];
    warp_sync();
}
#endif

/* The warp that makes factors of the workers' parts: those of the tile that the workers are at, and of the
 * one that they come back to next. */
DEVICE_FN void map_tiles(const struct tiles *t, const struct exchange *of, __global const real *v,
                         __global const real *y, int first, int k, int v_cols MAP_TAKEN) {
    const int behind = LAG > 1 ? LAG - 1 : 0;
    struct rows_operands now, next;
    if (t->count > 0) load_rows(&next, t, 0, 0, v, y, first, k, v_cols MAP_PASSED);
    for (int i = 0; i < t->count + behind; i++) {
        const int done = i - behind;
        real q[UNITS][2];
        LOCAL_PTR real *factors = &of->factors[done & 1].of[0][0];
#if C > 1
        struct words words;
        if (LAG > 1 && done >= 0) ask(&words, of, done, 0);
#endif
        meeting_wait(SUMS);
        if (i < t->count) {
            add_up(q, of->parts[i & 1], SHARERS);
#if C > 1
            send_sums(of, q, i);
#endif
        }
        if (done < 0) continue;
        now = next;
        if (done + 1 < t->count) load_rows(&next, t, done + 1, 0, v, y, first, k, v_cols MAP_PASSED);
#if C > 1
        if (LAG <= 1) ask(&words, of, done, 0);
        receive_sums(q, &words, of, done);
#endif
        map_rows(q, &now, t, done, 0, first, k, factors MAP_PASSED);
        keep(factors, q);
        if (LAG == 0) meeting_wait(SUMS);
    }
    if (LAG > 0) meeting_wait(SUMS);
}

/* A worker that shares its rows with others. */
DEVICE_FN void work(real (*w)[W], const struct tiles *t, const struct place *at, const struct left *yr,
                    LOCAL_PTR ulong *full, const struct exchange *of) {
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    for (int i = 0; i < t->count + LAG; i++) {
        const int last = i - LAG;
        real q[UNITS][2];
        if (i < t->count) {
            LOCAL_PTR real *tile = t->ring + i % STAGES * t->size;
            ticket_wait(&full[i % STAGES], i / STAGES & 1);
            clear_missing(tile, t, at, i);
            dots(q, tile, t, at, yr);
            keep(&of->parts[i & 1][warp].of[0][0], q);
        }
        meeting_wait(SUMS);
        if (LAG == 0) meeting_wait(SUMS);
        if (last < 0) continue;
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int s = 0; s < 2; s++) q[u][s] = of->factors[last & 1].of[u][2 * lane + s];
        scatter(w, t->ring + last % STAGES * t->size, t, at, q);
        if (last + STAGES < t->count) meeting_arrive(EMPTY + last % STAGES);
    }
}
#else
/* A worker that has whole rows. `own`: for a map's exchange among its lanes. */
DEVICE_FN void work(real (*w)[W], const struct tiles *t, const struct place *at, const struct left *yr,
                    LOCAL_PTR ulong *full, LOCAL_PTR real *own, __global const real *v,
                    __global const real *y, int first, int k, int v_cols MAP_TAKEN) {
    const int unit = (int)get_local_id(0) / 32 * UNITS;
    struct rows_operands now, next;
    if (t->count > 0) load_rows(&next, t, 0, unit, v, y, first, k, v_cols MAP_PASSED);
    for (int i = 0; i < t->count; i++) {
        real q[UNITS][2];
        LOCAL_PTR real *tile = t->ring + i % STAGES * t->size;
        now = next;
        if (i + 1 < t->count) load_rows(&next, t, i + 1, unit, v, y, first, k, v_cols MAP_PASSED);
        ticket_wait(&full[i % STAGES], i / STAGES & 1);
        clear_missing(tile, t, at, i);
        dots(q, tile, t, at, yr);
        map_rows(q, &now, t, i, unit, first, k, own MAP_PASSED);
        scatter(w, tile, t, at, q);
        if (i + STAGES < t->count) meeting_arrive(EMPTY + i % STAGES);
    }
}
#endif

__kernel GROUP_OF(BS) void mmchain_tile(PARAMETERS(dense) MAP_PARAMETERS TEAM_PARAMETERS) {
    RING_BEGIN
    LOCAL ulong full[STAGES]; /* a tile of the ring has come */
#if JOINT
    LOCAL struct sums parts[2][SHARERS], factors[2];
#if C > 1
    LOCAL int number;
#endif
#elif defined(MAP)
    LOCAL real places[WORKERS][R * 8];
#endif
#ifdef MAP
    LOCAL wide record_parts[BS / 32][RECORD];
    wide record[RECORD];
    EACH_SUM(c) record[c] = 0;
#endif
    const int id = (int)get_local_id(0), warp = id / 32;
    long group = (long)get_group_id(0);
    if (id == 0) {
        for (int s = 0; s < STAGES; s++) ticket_init(&full[s], 1);
#if C > 1
        number = count_up((volatile __global int *)((__global ulong *)work_space + exchange_at));
#endif
        tickets_begin();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if C > 1
    group = number;
#endif
    const struct tiles t = tiles_of_group(X, ring, rows, n, group);
    const struct place at = place_of(&t);
#if C > 1
    __global ulong *words = (__global ulong *)work_space + exchange_at + EXCHANGE_HEAD;
    const struct exchange exchange = {parts, factors, words + t.part * PLACES * C * GROUP_WORDS,
                                      (int)(group % C)};
#elif JOINT
    const struct exchange exchange = {parts, factors};
#endif

    real w[Q][W];
#pragma unroll
    for (int j = 0; j < Q; j++)
#pragma unroll
        for (int e = 0; e < W; e++) w[j][e] = REAL(0.0);

    if (warp == WORKERS) {
        copy_tiles(&t, full);
#if JOINT
    } else if (warp > WORKERS) {
        map_tiles(&t, &exchange, v, y, first, k, v_cols MAP_PASSED);
#endif
    } else {
        struct left yr[Q * LEFTS];
        load_y(yr, &t, &at, y, first, k);
#if JOINT
        work(w, &t, &at, yr, full, &exchange);
#else
        LOCAL_PTR real *own = 0;
#ifdef MAP
        own = places[warp];
#endif
        work(w, &t, &at, yr, full, own, v, y, first, k, v_cols MAP_PASSED);
#endif
    }
    write_w(out, w, &t, &at, n);
#ifdef MAP
    write_records(records + records_at + group * RECORD, record, record_parts);
#endif
}
#endif

/* The variants that differ in text, as the tests build them. */
// build TILE KIND=0 VS=32 BS=288 Q=4 W=4 R=32 K=8 C=1 SURE=24 STAGES=4 LAG=0 RING_BYTES=65536
// build TILE KIND=0 VS=32 BS=256 Q=2 W=4 R=64 K=8 C=1 SURE=8 STAGES=2 LAG=0 RING_BYTES=65536
// build TILE KIND=0 VS=512 BS=576 Q=5 W=4 R=8 K=8 C=16 SURE=0 STAGES=5 LAG=1 RING_BYTES=65536
// build TILE KIND=0 VS=192 BS=256 Q=27 W=2 R=8 K=8 C=16 SURE=0 STAGES=2 LAG=0 RING_BYTES=65536
// build TILE KIND=0 VS=256 BS=320 Q=8 W=2 R=8 K=4 C=8 SURE=64 STAGES=3 LAG=1 RING_BYTES=65536 INDEX64
// build TILE KIND=0 VS=256 BS=320 Q=11 W=2 R=8 K=8 C=6 SURE=0 STAGES=5 LAG=3 RING_BYTES=65536 MAP=0
// build TILE KIND=0 VS=256 BS=320 Q=13 W=2 R=8 K=8 C=26 SURE=0 STAGES=4 LAG=2 RING_BYTES=65536
// build TILE KIND=0 VS=320 BS=384 Q=10 W=4 R=8 K=8 C=33 SURE=0 STAGES=4 LAG=2 RING_BYTES=65536
// build TILE KIND=0 VS=32 BS=160 Q=2 W=4 R=16 K=2 C=1 SURE=16 STAGES=8 LAG=0 RING_BYTES=65536 MAP=3
// build TILE KIND=0 VS=128 BS=192 Q=8 W=2 R=8 K=8 C=2 SURE=0 STAGES=4 LAG=1 RING_BYTES=65536 MAP=0
// build TILE KIND=0 VS=128 BS=192 Q=8 W=2 R=8 K=8 C=2 SURE=0 STAGES=4 LAG=1 RING_BYTES=65536 MAP=1
// build TILE KIND=0 VS=256 BS=320 Q=2 W=4 R=32 K=8 C=1 SURE=0 STAGES=2 LAG=0 RING_BYTES=65536
