/* GPU body of the passes over a dense X with rows too wide for one work-group (CUDA, from compute capability 9.0 on):
 * out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * C groups on neighbouring compute units, a cluster, share each row, a slice of its columns each: the slices of y and w stay
 * in registers, those of R rows a step come through a ring of STAGES tiles (dialect/bulk.h). No warp ever waits for another
 * to catch up: each sends its part of a step's dot products straight into the shared memory of all groups of the cluster,
 * where the bytes count down a ticket, and takes up the next tile; LAG steps later all parts have come, every warp adds
 * them up in the same order, and the tile, still in the ring, is read again for w. dialect/pass.h names the other defines.
 *
 * out has one partial w a cluster, partial[cluster][K][n]. */
#if defined(KILN_CUDA) && defined(CLUSTER)
#define TL (Q * W)
#define WARPS (BS / 32)
#define PARTS (C * WARPS) /* of a dot product */
#define V (K * R)         /* dot products a step, number c * R + r; at most 32 */
#define COPIES (32 / V)   /* lanes that have the same number */
#define LAG 1             /* steps; two hold more of the ring than they hide */

/* A warp sends its part of step i when it has all parts of step i - LAG - 1, which all other warps sent when they had those
 * of i - 2 LAG - 2: the place of that step is free again. */
#define PLACES (2 * LAG + 2)

/* Stores into the same variable of another group of the cluster and counts the bytes there. */
DEVICE_FN void send(real *variable, ulong *ticket, int group, real value) {
#ifdef REAL_F64
#define SEND_AS "b64"
#define SENT "l"(__double_as_longlong(value))
#else
#define SEND_AS "b32"
#define SENT "r"(__float_as_uint(value))
#endif
    PTX("{\n\t.reg .b32 there, told;\n\t"
        "mapa.shared::cluster.u32 there, %0, %2;\n\t"
        "mapa.shared::cluster.u32 told, %1, %2;\n\t"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes." SEND_AS " [there], %3, [told];\n\t}"
        :
        : "r"(shared_address(variable)), "r"(shared_address(ticket)), "r"(group), SENT
        : "memory");
}

/* What a group works on: columns [base, base + width) of every parts-th tile from `part` on. */
struct tiles {
    const real *X;
    ulong *full; /* a tile of the ring has come */
    long rows, part, parts;
    uint count; /* steps, in 32 bits: index arithmetic matters */
    int n, base, width, room; /* room: elements of a row in the ring */
};

DEVICE_FN struct tiles tiles_of_group(const real *X, ulong *full, long rows, int n) {
    const int unit = 16 / (int)sizeof(real), slice = ((n + C - 1) / C + unit - 1) / unit * unit;
    struct tiles t;
    t.X = X;
    t.full = full;
    t.rows = rows;
    t.n = n;
    t.part = (long)get_group_id(0) / C;
    t.parts = (long)get_num_groups(0) / C;
    t.base = (int)get_group_id(0) % C * slice;
    t.width = n - t.base < slice ? n - t.base : slice;
    t.room = slice + (n % unit ? unit : 0);
    const long all = (rows + R - 1) / R;
    t.count = t.part < all ? (uint)((all - t.part + t.parts - 1) / t.parts) : 0;
    return t;
}

DEVICE_FN long first_row(const struct tiles *t, uint i) {
    return (t->part + i * t->parts) * R;
}

/* Copies begin and end at multiples of 16 bytes: by how many elements a row's copy begins before its slice does. */
DEVICE_FN int early(const struct tiles *t, long row) {
    if (W * sizeof(real) == 16) return 0; /* loads of 16 bytes: n is a multiple of them */
    return (int)((uint)row * (uint)t->n % (16 / (uint)sizeof(real)));
}

/* Starts the copy of the i-th tile. One thread calls it, for which its warp waits. The last bytes of X may be less than a
 * copy. */
DEVICE_FN void fetch(const struct tiles *t, uint i) {
    const int unit = 16 / (int)sizeof(real), stage = (int)(i % STAGES);
    const long row = first_row(t, i);
    uint bytes = 0;
    for (int r = 0; r < R && row + r < t->rows; r++) {
        const int shift = early(t, row + r);
        const long from = (row + r) * t->n + t->base - shift, left = t->rows * t->n - from;
        int all = (shift + t->width + unit - 1) & -unit;
        real *to = ring + (stage * R + r) * t->room;
        if (left < all) {
            all = (int)left & -unit;
            for (int e = all; e < left; e++) to[e] = t->X[from + e];
        }
        bulk_copy(to, t->X + from, all * (uint)sizeof(real), &t->full[stage]);
        bytes += all * (uint)sizeof(real);
    }
    ticket_expect(&t->full[stage], bytes);
}

/* The thread's columns of the r-th row of the i-th tile; zeros beyond the slice, and beyond the last row. */
DEVICE_FN void load_slice(real *x, const struct tiles *t, uint i, int r) {
    const long row = first_row(t, i) + r;
    const real *from = ring + (i % STAGES * R + r) * t->room + early(t, row);
    const int width = row < t->rows ? t->width : 0;
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int j = ((int)get_local_id(0) + q * BS) * W;
        if (j < width) {
            load_wide(&x[q * W], from + j);
        } else {
#pragma unroll
            for (int s = 0; s < W; s++) x[q * W + s] = REAL(0.0);
        }
    }
}

/* p = this thread's share of the dot products of the i-th tile's rows with y. */
DEVICE_FN void dots(real *p, const struct tiles *t, uint i, const real (*yr)[TL]) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        real x[TL];
        load_slice(x, t, i, r);
#pragma unroll
        for (int c = 0; c < K; c++) {
            real even = REAL(0.0), odd = REAL(0.0); /* two chains of additions take half the time of one */
#pragma unroll
            for (int e = 0; e < TL; e++)
                if (e % 2)
                    odd += x[e] * yr[c][e];
                else
                    even += x[e] * yr[c][e];
            p[c * R + r] = even + odd;
        }
    }
}

/* The sum of all parts of dot product number lane % V. */
DEVICE_FN real sum_parts(const real (*parts)[V]) {
    const int lane = (int)get_local_id(0) % 32;
    real sum = REAL(0.0);
#pragma unroll
    for (int first = 0; first < PARTS; first += COPIES) {
        const int part = first + lane / V;
        if (part < PARTS) sum += parts[part][lane % V];
    }
#pragma unroll
    for (int step = 16; step >= V; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

/* Tickets and the first tiles; all of the cluster have theirs when it ends. */
DEVICE_FN void begin_tickets(const struct tiles *t, ulong *come, uint *done) {
    if ((int)get_local_id(0) == 0) {
        for (int s = 0; s < STAGES; s++) {
            ticket_init(&t->full[s], 1);
            done[s] = 0;
        }
        for (int s = 0; s < PLACES; s++) ticket_init(&come[s], 1);
        tickets_begin();
        for (int s = 0; s < PLACES; s++) ticket_expect(&come[s], PARTS * V * (uint)sizeof(real));
        for (uint i = 0; i < STAGES && i < t->count; i++) fetch(t, i);
    }
    cluster_arrive();
    cluster_wait();
}

/* The column, from the slice's first, of element e of the thread's. */
DEVICE_FN int column_of(int e) {
    return ((int)get_local_id(0) + e / W * BS) * W + e % W;
}

/* wr = 0; yr = the thread's columns of y. */
DEVICE_FN void begin_columns(real (*wr)[TL], real (*yr)[TL], const struct tiles *t, const real *y, int k, int first) {
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int e = 0; e < TL; e++) {
            const int j = column_of(e);
            wr[c][e] = REAL(0.0);
            yr[c][e] = REAL(0.0);
#if FUSED || PLAIN
            if (j < t->width && first + c < k) yr[c][e] = y[(index_t)(t->base + j) * k + first + c];
#endif
        }
}

/* The warp's part of step i goes to all groups of the cluster. */
DEVICE_FN void send_dots(real *p, real (*parts)[PARTS][V], ulong *come, uint i) {
    const int id = (int)get_local_id(0), lane = id % 32, rank = (int)get_group_id(0) % C;
    const uint place = i % PLACES;
    halving_sums(p, V, 32); /* this lane's is number lane / COPIES */
    for (int g = lane % COPIES; g < C; g += COPIES)
        send(&parts[place][rank * WARPS + id / 32][lane / COPIES], &come[place], g, p[0]);
}

/* factor = the dot products of the lane's row of step i, of which all parts have come. */
DEVICE_FN void receive_dots(real *factor, const real (*parts)[PARTS][V], ulong *come, uint i) {
    const uint place = i % PLACES;
    ticket_wait_cluster(&come[place], i / PLACES & 1);
    if ((int)get_local_id(0) == 0) ticket_expect(&come[place], PARTS * V * (uint)sizeof(real));
    const real sum = sum_parts(parts[place]);
#pragma unroll
    for (int c = 0; c < K; c++) factor[c] = __shfl_sync(0xffffffffu, sum, c * R + (int)get_local_id(0) % 32 % R);
}

/* factor: of the lane's row. */
DEVICE_FN void scatter(real (*wr)[TL], const struct tiles *t, uint i, const real *factor) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        real x[TL];
        load_slice(x, t, i, r);
#pragma unroll
        for (int c = 0; c < K; c++) {
            const real f = __shfl_sync(0xffffffffu, factor[c], r);
            if (first_row(t, i) + r >= t->rows) continue;
#pragma unroll
            for (int e = 0; e < TL; e++) wr[c][e] += f * (SQUARES ? x[e] * x[e] : x[e]);
        }
    }
}

__kernel GROUP_OF(BS) CLUSTER_OF(C) void mmchain_cluster(__global real *out, __global const real *X,
                                                         __global const real *v, __global const real *y,
                                                         __global const real *z, real alpha, real beta, long rows,
                                                         int n, int k, int first, int v_cols MAP_PARAMETERS) {
    LOCAL ulong full[STAGES], come[PLACES];
    LOCAL uint done[STAGES];
    LOCAL real parts[PLACES][PARTS][V];
    MAP_BEGIN
    const int id = (int)get_local_id(0), lane = id % 32;
    const bool writer = (int)get_group_id(0) % C == 0 && id < R;
    const struct tiles t = tiles_of_group(X, full, rows, n);
    real yr[K][TL], wr[K][TL];
    begin_tickets(&t, come, done);
    begin_columns(wr, yr, &t, y, k, first);
    struct row_operands operands[LAG + 1];
    for (uint i = 0; i < t.count + LAG; i++) {
#pragma unroll
        for (int m = LAG; m > 0; m--) operands[m] = operands[m - 1];
        if (i < t.count) {
#if !PLAIN
            const long row = first_row(&t, i) + lane % R;
            if (row < rows) operands[0] = load_operands(v, y, (index_t)row, first, k, v_cols MAP_OPERANDS);
#endif
            ticket_wait(&full[i % STAGES], i / STAGES & 1);
#if FUSED || PLAIN
            real p[V];
            dots(p, &t, i, yr);
            send_dots(p, parts, come, i);
#endif
        }
        if (i < LAG) continue;
        const uint before = i - LAG;
        const long row = first_row(&t, before) + lane % R;
        real factor[K];
#if FUSED || PLAIN
        receive_dots(factor, parts, come, before);
#endif
#if PLAIN
#pragma unroll
        for (int c = 0; c < K; c++)
            if (writer && row < rows && first + c < k)
                write_plain(out, factor[c], z, alpha, beta, (index_t)row * k + first + c);
#else
        if (row < rows) apply_map(factor, &operands[LAG], (index_t)row, first, k MAP_STATE(writer));
        scatter(wr, &t, before, factor);
#endif
        __syncwarp();
        /* The last warp to be done with the tile has the next one brought to its place. */
        if (lane == 0 && last_warp(&done[before % STAGES], WARPS) && before + STAGES < t.count) fetch(&t, before + STAGES);
    }
    cluster_arrive();
    cluster_wait(); /* no group ends while another may still send to it */
#if !PLAIN
    for (int c = 0; c < K; c++)
        for (int e = 0; e < TL; e++)
            if (column_of(e) < t.width) out[(t.part * K + c) * n + t.base + column_of(e)] = wr[c][e];
#endif
    MAP_END
}
#endif
