/* GPU body of the passes over a dense X where a copy engine brings rows to on-chip memory (CUDA, from compute capability
 * 9.0 on): out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * A ring of STAGES tiles in shared memory is kept full by bulk copies, so that the bytes under way, which decide the
 * bandwidth, depend neither on registers nor on how long the group takes over the sums in the middle. As in
 * mmchain_dense.cl a vector of VS threads shares a row, with its columns of y and w in registers; the row is read from
 * shared memory twice, for the dot product and for w (dialect/pass.h names the defines). A row too wide for one group's
 * registers is shared by a cluster of C groups, each with a slice of the columns, that exchange partial dot products
 * through each other's shared memory.
 *
 * A tile is NV * R rows of the slice; out has one partial w a cluster, partial[cluster][K][n]. */
#if defined(KILN_CUDA) && defined(RING)
#define TL (Q * W)
#define TILE (NV * R)
#define WARPS (BS / 32)

#ifdef __CUDA_ARCH__ /* not where only the syntax is checked */
#define PTX(...) asm volatile(__VA_ARGS__)
#define CLUSTER_OF(groups) __cluster_dims__(groups, 1, 1)
extern __shared__ __align__(128) real ring[];
#else
#define PTX(...) (void)0
#define CLUSTER_OF(groups)
static real ring[1];
#endif

#if W == 4
#ifdef REAL_F64
#define WIDE_REAL double4
#else
#define WIDE_REAL float4
#endif
#elif W == 2
#ifdef REAL_F64
#define WIDE_REAL double2
#else
#define WIDE_REAL float2
#endif
#endif

DEVICE_FN uint shared_address(const void *pointer) {
#ifdef __CUDA_ARCH__
    return (uint)__cvta_generic_to_shared(pointer);
#else
    return pointer != 0;
#endif
}

DEVICE_FN void ticket_init(ulong *ticket, uint arrivals) {
    PTX("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(ticket)), "r"(arrivals) : "memory");
}

DEVICE_FN void ticket_arrive(ulong *ticket) {
    PTX("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(ticket)) : "memory");
}

DEVICE_FN void ticket_expect(ulong *ticket, uint bytes) {
    PTX("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(shared_address(ticket)), "r"(bytes) : "memory");
}

DEVICE_FN void ticket_wait(ulong *ticket, uint phase) {
    PTX("{\n\t.reg .pred done;\n\t"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
        "@!done bra again;\n\t}"
        :
        : "r"(shared_address(ticket)), "r"(phase)
        : "memory");
}

/* bytes is a multiple of 16, as are both addresses. X is read once: it leaves the second cache level first. */
DEVICE_FN void bulk_copy(real *to, const real *from, uint bytes, ulong *ticket) {
    PTX("{\n\t.reg .b64 policy;\n\t"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], policy;\n\t}"
        :
        : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(ticket))
        : "memory");
}

#if C > 1
DEVICE_FN void cluster_arrive() {
    PTX("barrier.cluster.arrive.release.aligned;" : : : "memory");
}

DEVICE_FN void cluster_wait() {
    PTX("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

/* Stores into the same variable of another group of the cluster. */
DEVICE_FN void store_remote(real *variable, int group, real value) {
#ifdef REAL_F64
    PTX("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\tst.shared::cluster.f64 [there], %2;\n\t}"
        :
        : "r"(shared_address(variable)), "r"(group), "d"(value)
        : "memory");
#else
    PTX("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\tst.shared::cluster.f32 [there], %2;\n\t}"
        :
        : "r"(shared_address(variable)), "r"(group), "f"(value)
        : "memory");
#endif
}
#endif

/* The columns of a row that a thread owns; zeros beyond `width`. */
DEVICE_FN void load_slice(real *x, const real *row, int lane, int width) {
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int j = (lane + q * VS) * W;
        if (j < width) {
#if W == 1
            x[q] = row[j];
#else
            const WIDE_REAL all = *(const WIDE_REAL *)(row + j);
            x[q * W] = all.x;
            x[q * W + 1] = all.y;
#if W == 4
            x[q * W + 2] = all.z;
            x[q * W + 3] = all.w;
#endif
#endif
        } else {
#pragma unroll
            for (int s = 0; s < W; s++) x[q * W + s] = REAL(0.0);
        }
    }
}

/* What a group works on: its slice of the columns, and every parts-th tile from `part` on. */
struct tiles {
    const real *X;
    ulong *full, *empty; /* a tile of the ring has come; all warps are done with it */
    long rows, part, parts, count;
    int n, base, width, slice, size; /* size: elements of a tile in the ring */
};

DEVICE_FN struct tiles tiles_of_group(const real *X, ulong *full, ulong *empty, long rows, int n) {
    const int unit = 16 / (int)sizeof(real); /* slices begin at multiples of 16 bytes */
    struct tiles t;
    t.X = X;
    t.full = full;
    t.empty = empty;
    t.rows = rows;
    t.n = n;
    t.part = (long)get_group_id(0) / C;
    t.parts = (long)get_num_groups(0) / C;
    t.slice = C == 1 ? n : ((n + C - 1) / C + unit - 1) / unit * unit;
    t.base = (int)get_group_id(0) % C * t.slice;
    t.width = n - t.base < t.slice ? n - t.base : t.slice;
    t.size = (TILE * t.slice + unit - 1) / unit * unit;
    const long all = (rows + TILE - 1) / TILE;
    t.count = t.part < all ? (all - t.part + t.parts - 1) / t.parts : 0;
    return t;
}

DEVICE_FN long first_row(const struct tiles *t, long i) {
    return (t->part + i * t->parts) * TILE;
}

/* The row that this thread's vector takes as its r-th of the i-th tile. */
DEVICE_FN const real *row_of(const struct tiles *t, long i, int r) {
    return ring + (long)(int)(i % STAGES) * t->size + (r * NV + (int)get_local_id(0) / VS) * t->slice;
}

/* Starts the copy of the i-th tile. One thread calls it. A tile of whole rows is one piece of memory, which at the end of X
 * need not be a multiple of 16 bytes. */
DEVICE_FN void fetch(const struct tiles *t, long i) {
    const long row = first_row(t, i);
    const int rows = t->rows - row < TILE ? (int)(t->rows - row) : TILE, stage = (int)(i % STAGES);
    real *to = ring + (long)stage * t->size;
    const real *from = t->X + row * t->n + t->base;
#if C == 1
    const int unit = 16 / (int)sizeof(real), all = rows * t->n, whole = all / unit * unit;
    for (int e = whole; e < all; e++) to[e] = from[e];
    ticket_expect(&t->full[stage], whole * (uint)sizeof(real));
    if (whole > 0) bulk_copy(to, from, whole * (uint)sizeof(real), &t->full[stage]);
#else
    ticket_expect(&t->full[stage], rows * t->width * (uint)sizeof(real));
    for (int r = 0; r < rows; r++)
        bulk_copy(to + r * t->slice, from + (long)r * t->n, t->width * (uint)sizeof(real), &t->full[stage]);
#endif
}

DEVICE_FN void wait_full(const struct tiles *t, long i) {
    ticket_wait(&t->full[i % STAGES], (uint)(i / STAGES & 1));
}

DEVICE_FN void wait_empty(const struct tiles *t, long i) {
    ticket_wait(&t->empty[i % STAGES], (uint)(i / STAGES & 1));
}

/* A sum over the warps of a vector, each of which has left its part. */
DEVICE_FN real sum_warps(const real *parts, int vector) {
    const real *from = parts + vector * (VS / 32);
    real sum = from[0];
    for (int w = 1; w < VS / 32; w++) sum += from[w];
    return sum;
}

/* A step's numbers: the dot products of R rows with K columns, number c * R + r. */
#define V (K * R)
#define LANES (VS < 32 ? VS : 32)
#define ROWS_A_LANE (R > LANES ? R / LANES : 1)

/* p = this thread's share of the dot products of the i-th tile's rows with y. */
DEVICE_FN void dots(real *p, const struct tiles *t, long i, const real (*yr)[TL]) {
    const int id = (int)get_local_id(0), vector = id / VS;
#pragma unroll
    for (int r = 0; r < R; r++) {
        real x[TL];
        load_slice(x, row_of(t, i, r), id % VS, first_row(t, i) + r * NV + vector < t->rows ? t->width : 0);
#pragma unroll
        for (int c = 0; c < K; c++) {
            real sum = REAL(0.0);
#pragma unroll
            for (int e = 0; e < TL; e++) sum += x[e] * yr[c][e];
            p[c * R + r] = sum;
        }
    }
}

/* The V sums over the vector's lanes in a warp, number s to to[s * stride]. Each exchange halves the numbers that a lane is
 * in charge of, while there are several: V - 1 shuffles and a few instead of V times as many. */
DEVICE_FN void lane_sums(real *to, int stride, real *p) {
    const int lane = (int)get_local_id(0) % LANES;
    int count = V;
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) {
        const bool upper = lane & step;
        if (count > 1) {
            count /= 2;
#pragma unroll
            for (int s = 0; s < V / 2; s++) {
                if (s >= count) break;
                const real mine = upper ? p[s + count] : p[s], other = upper ? p[s] : p[s + count];
                p[s] = mine + __shfl_xor_sync(0xffffffffu, other, step);
            }
        } else {
            p[0] += __shfl_xor_sync(0xffffffffu, p[0], step);
        }
    }
    /* Lanes in charge of the same number have the same bits. */
#pragma unroll
    for (int s = 0; s < (V > LANES ? V / LANES : 1); s++) to[(lane * V / LANES + s) * stride] = p[s];
}

/* The work on tile i + 1 up to the point where it needs other warps is done before tile i is finished: what the sums wait
 * for is hidden. What warps and groups exchange alternates between two places, so that one barrier a tile will do. */
__kernel GROUP_OF(BS) CLUSTER_OF(C) void mmchain_ring(__global real *out, __global const real *X, __global const real *v,
                                                      __global const real *y, __global const real *z, real alpha,
                                                      real beta, long rows, int n, int k, int first,
                                                      int v_cols MAP_PARAMETERS) {
    LOCAL ulong full[STAGES], empty[STAGES];
    LOCAL real own[2][BS / LANES][V]; /* of each vector, or of each warp of a wider one */
#if VS > 32
    LOCAL real scratch[2][V][WARPS];
#endif
#if C > 1
    LOCAL real exchange[2][C][V];
#endif
    MAP_BEGIN
    const int id = (int)get_local_id(0), lane = id % VS, vector = id / VS, rank = (int)get_group_id(0) % C;
    const struct tiles t = tiles_of_group(X, full, empty, rows, n);
    if (id == 0) {
        for (int s = 0; s < STAGES; s++) {
            ticket_init(&full[s], 1);
            ticket_init(&empty[s], WARPS);
        }
        PTX("fence.mbarrier_init.release.cluster;" : : : "memory");
        for (long i = 0; i < STAGES && i < t.count; i++) fetch(&t, i);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    real yr[K][TL], wr[K][TL];
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int e = 0; e < TL; e++) {
            const int j = (lane + e / W * VS) * W + e % W;
            wr[c][e] = REAL(0.0);
            yr[c][e] = REAL(0.0);
#if FUSED || PLAIN
            if (j < t.width && first + c < k) yr[c][e] = y[(index_t)(t.base + j) * k + first + c];
#endif
        }

    struct row_operands now[ROWS_A_LANE], next[ROWS_A_LANE];
#if C > 1
    cluster_arrive(); /* all groups of the cluster have begun */
#endif
    for (long i = -1; i < t.count; i++) {
        const bool more = i + 1 < t.count;
#if !PLAIN
#pragma unroll
        for (int m = 0; m < ROWS_A_LANE; m++) {
            const int r = id % LANES + m * LANES;
            const long row = first_row(&t, i + 1) + r * NV + vector;
            now[m] = next[m];
            if (more && r < R && row < rows)
                next[m] = load_operands(v, y, (index_t)row, first, k, v_cols MAP_OPERANDS);
        }
#endif
        /* The tile before has been used by most warps by now: its place is free. */
        if (id == 0 && i > 0 && i - 1 + STAGES < t.count) {
            wait_empty(&t, i - 1);
            fetch(&t, i - 1 + STAGES);
        }
        if (more) wait_full(&t, i + 1);
        real *sums = own[i & 1][id / LANES];
#if FUSED || PLAIN
        if (more) {
            real p[V];
            dots(p, &t, i + 1, yr);
#if VS > 32
            lane_sums(&scratch[i + 1 & 1][0][id / 32], WARPS, p);
#else
            lane_sums(own[i + 1 & 1][id / LANES], 1, p);
#endif
        }
#if C > 1
        cluster_wait();
        for (int s = id % 32; s < V; s += 32) {
            real sum = exchange[i & 1][0][s];
#pragma unroll
            for (int g = 1; g < C; g++) sum += exchange[i & 1][g][s];
            sums[s] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int s = id; s < V * C && more; s += BS)
            store_remote(&exchange[i + 1 & 1][rank][s / C], s % C, sum_warps(scratch[i + 1 & 1][s / C], 0));
        cluster_arrive();
#elif VS > 32
        for (int s = id % 32; s < V && i >= 0; s += 32) sums[s] = sum_warps(scratch[i & 1][s], vector);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
#endif
        if (i < 0) continue;
        __syncwarp();
        /* One lane a row: from dot products to factors, or to the result. */
#pragma unroll
        for (int m = 0; m < ROWS_A_LANE; m++) {
            const int r = id % LANES + m * LANES;
            const long row = first_row(&t, i) + r * NV + vector;
            if (r >= R || row >= rows) continue;
            const bool writer = rank == 0 && lane < LANES;
            real factor[K];
#pragma unroll
            for (int c = 0; c < K; c++) factor[c] = FUSED || PLAIN ? sums[c * R + r] : REAL(0.0);
#if PLAIN
#pragma unroll
            for (int c = 0; c < K; c++)
                if (writer && first + c < k) write_plain(out, factor[c], z, alpha, beta, (index_t)row * k + first + c);
#else
            apply_map(factor, &now[m], (index_t)row, first, k MAP_STATE(writer));
#pragma unroll
            for (int c = 0; c < K; c++) sums[c * R + r] = factor[c];
#endif
        }
        __syncwarp();
#if !PLAIN
#pragma unroll
        for (int r = 0; r < R; r++) {
            real x[TL];
            if (first_row(&t, i) + r * NV + vector >= rows) continue;
            load_slice(x, row_of(&t, i, r), lane, t.width);
#pragma unroll
            for (int c = 0; c < K; c++)
#pragma unroll
                for (int e = 0; e < TL; e++) wr[c][e] += sums[c * R + r] * (SQUARES ? x[e] * x[e] : x[e]);
        }
#endif
        __syncwarp();
        if (id % 32 == 0) ticket_arrive(&empty[i % STAGES]);
    }
#if C > 1
    cluster_wait(); /* no group ends, and none writes where the ring was, while another may still store into it */
#endif
#if !PLAIN
    /* The vectors of the group add up their w, in order, where the ring was. */
    for (int c = 0; c < K; c++)
        for (int e = 0; e < TL; e++) {
            real sum = wr[c][e];
#if NV > 1
            barrier(CLK_LOCAL_MEM_FENCE);
            ring[id] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int other = 1; vector == 0 && other < NV; other++) sum += ring[other * VS + lane];
#endif
            const int j = (lane + e / W * VS) * W + e % W;
            if (vector == 0 && j < t.width) out[(t.part * K + c) * n + t.base + j] = sum;
        }
#endif
    MAP_END
}
#endif
