/* GPU body of fused passes over a dense X with several columns of y, on tensor cores (CUDA, from compute capability 9.0 on):
 * W = X^T (V .* (X Y)), or a row map in place of V.
 *
 * Eight columns of y make as many multiplications a byte of X as the cores have time for, and more than that with the sums
 * over threads; a product of small matrices does both (dialect/tile.h).
 *
 * WORKERS warps take tiles from a ring that another warp keeps full by bulk copies. Where a row has several warps, or C groups
 * of a cluster, they leave their parts of a tile's sums to one more warp, which adds them up, applies the map and hands the
 * factors F back; meanwhile the workers take the dot products of the next tile, where the ring has room for it. They all meet
 * once a tile. */
#if defined(KILN_CUDA) && (defined(TILE) || defined(TILE_WHOLE))
#define LOOK (STAGES > 2) /* tiles that the workers are ahead of the sums */

/* The warp that keeps the ring full. */
DEVICE_FN void copy_tiles(const struct tiles *t, ulong *full) {
    for (int i = 0; i < t->count; i++) {
        if (i >= STAGES) meeting_wait(EMPTY + i % STAGES);
        fetch(t, i, &full[i % STAGES]);
    }
}

#if JOINT
#if C > 1
/* Stores two elements, and 2 sizeof(real) into its ticket, in another group of the cluster. */
DEVICE_FN void store_remote(real *to, ulong *ticket, int group, real first, real second) {
#ifdef REAL_F64
    PTX("{\n\t.reg .b32 there, ticket;\n\tmapa.shared::cluster.u32 there, %0, %2;\n\tmapa.shared::cluster.u32 ticket, %1, %2;\n\t"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [there], {%3, %4}, [ticket];\n\t}"
        :
        : "r"(shared_address(to)), "r"(shared_address(ticket)), "r"(group), "d"(first), "d"(second)
        : "memory");
#else
    PTX("{\n\t.reg .b32 there, ticket;\n\tmapa.shared::cluster.u32 there, %0, %2;\n\tmapa.shared::cluster.u32 ticket, %1, %2;\n\t"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [there], {%3, %4}, [ticket];\n\t}"
        :
        : "r"(shared_address(to)), "r"(shared_address(ticket)), "r"(group), "f"(first), "f"(second)
        : "memory");
#endif
}
#endif

/* What warps leave for each other: a tile's parts and its factors alternate between two places. */
struct exchange {
    struct sums (*parts)[SHARERS], *factors;
#if C > 1
    struct sums (*came)[C];
    ulong *arrived;
#endif
};

#if C > 1
/* q = its sum over the groups of the cluster. */
DEVICE_FN void add_up_groups(real (*q)[2], const struct exchange *to, int i) {
    const int lane = (int)get_local_id(0) % 32;
    if (lane == 0) ticket_expect(&to->arrived[i & 1], C * (uint)sizeof(struct sums));
    __syncwarp();
    for (int g = 0; g < C; g++)
#pragma unroll
        for (int u = 0; u < UNITS; u++)
            store_remote(&to->came[i & 1][get_group_id(0) % C].of[u][2 * lane], &to->arrived[i & 1], g, q[u][0], q[u][1]);
    ticket_wait_cluster(&to->arrived[i & 1], i >> 1 & 1);
    add_up(q, to->came[i & 1], C);
}
#endif

/* The warp that makes factors of the workers' parts. */
DEVICE_FN void map_tiles(const struct tiles *t, const struct exchange *of, const real *v, const real *y, int first, int k,
                         int v_cols MAP_TAKEN) {
    struct rows_operands now, next;
    if (t->count > 0) load_rows(&next, t, 0, 0, v, y, first, k, v_cols MAP_PASSED);
    for (int i = 0; i < t->count; i++) {
        real q[UNITS][2], *factors = &of->factors[i & 1].of[0][0];
        now = next;
        if (i + 1 < t->count) load_rows(&next, t, i + 1, 0, v, y, first, k, v_cols MAP_PASSED);
        meeting_wait(SUMS);
        add_up(q, of->parts[i & 1], SHARERS);
#if C > 1
        add_up_groups(q, of, i);
#endif
        map_rows(q, &now, t, i, 0, first, k, factors MAP_PASSED);
        keep(factors, q);
        if (!LOOK) meeting_wait(SUMS);
    }
    if (LOOK) meeting_wait(SUMS);
}

/* A worker that shares its rows with others. */
DEVICE_FN void work(real (*w)[W], const struct tiles *t, const struct place *at, const struct left *yr, ulong *full,
                    const struct exchange *of) {
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32;
    for (int i = 0; i < t->count + LOOK; i++) {
        real q[UNITS][2];
        if (i < t->count) {
            ticket_wait(&full[i % STAGES], i / STAGES & 1);
            clear_missing(ring + i % STAGES * t->size, t, at, i);
            dots(q, ring + i % STAGES * t->size, t, at, yr);
            keep(&of->parts[i & 1][warp].of[0][0], q);
        }
        meeting_wait(SUMS);
        if (!LOOK) meeting_wait(SUMS);
        const int last = i - LOOK;
        if (last < 0) continue;
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int s = 0; s < 2; s++) q[u][s] = of->factors[last & 1].of[u][2 * lane + s];
        scatter(w, ring + last % STAGES * t->size, t, at, q);
        if (last + STAGES < t->count) meeting_arrive(EMPTY + last % STAGES);
    }
}
#else
/* A worker that has whole rows. `own`: for a map's exchange among its lanes. */
DEVICE_FN void work(real (*w)[W], const struct tiles *t, const struct place *at, const struct left *yr, ulong *full,
                    real *own, const real *v, const real *y, int first, int k,
                    int v_cols MAP_TAKEN) {
    const int unit = (int)get_local_id(0) / 32 * UNITS;
    struct rows_operands now, next;
    if (t->count > 0) load_rows(&next, t, 0, unit, v, y, first, k, v_cols MAP_PASSED);
    for (int i = 0; i < t->count; i++) {
        real q[UNITS][2], *tile = ring + i % STAGES * t->size;
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

__kernel GROUP_OF(BS) CLUSTER_OF(C) void mmchain_tile(__global real *out, __global const real *X, __global const real *v,
                                                      __global const real *y, __global const real *z, real alpha,
                                                      real beta, long rows, int n, int k, int first,
                                                      int v_cols MAP_PARAMETERS) {
    LOCAL ulong full[STAGES]; /* a tile of the ring has come */
#if JOINT
    LOCAL struct sums parts[2][SHARERS], factors[2];
#if C > 1
    LOCAL struct sums came[2][C];
    LOCAL ulong arrived[2];
    const struct exchange exchange = {parts, factors, came, arrived};
#else
    const struct exchange exchange = {parts, factors};
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
    const struct tiles t = tiles_of_group(X, rows, n, (long)get_group_id(0));
    const struct place at = place_of(&t);
    if (id == 0) {
        for (int s = 0; s < STAGES; s++) ticket_init(&full[s], 1);
#if C > 1
        for (int s = 0; s < 2; s++) ticket_init(&arrived[s], 1);
#endif
        tickets_begin();
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#if C > 1
    cluster_arrive();
    cluster_wait(); /* all tickets of the cluster are there */
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
        real *own = 0;
#ifdef MAP
        own = places[warp];
#endif
        work(w, &t, &at, yr, full, own, v, y, first, k, v_cols MAP_PASSED);
#endif
    }
#if C > 1
    cluster_arrive();
    cluster_wait(); /* no group ends while another may still store into it */
#endif
    write_w(out, w, &t, &at, n);
#ifdef MAP
    write_records(records + records_at, record, record_parts);
#endif
}
#endif
