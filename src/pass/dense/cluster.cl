/* GPU body of the passes over a dense X with rows too wide for one work-group (CUDA, from compute capability 9.0 on):
 * out = alpha X^T (v .* (X y)) + beta z and its halves.
 *
 * C groups on neighbouring compute units, a cluster, share each row, a slice of its columns each: the slices of y and w stay
 * in registers, those of R rows a step come through a ring (dialect/bulk.h), in PIECES pieces, each with a place of its own
 * among STAGES. There are no barriers: each warp sends its part of a step's dot products straight into the
 * shared memory of all groups of the cluster, where the bytes count down a ticket, and takes up the next step's pieces;
 * LAG pieces after a piece has gone into the dot products, when all parts have come, every warp adds them up in the same
 * order, and the piece, still in the ring, is read again for w; then its place is filled anew. So the ring holds LAG pieces, a
 * slice and what hides the way of the sums, and all others are under way. dialect/pass.h names the other defines.
 *
 * out has one partial w a cluster, partial[cluster][K][n]. */
#if defined(KILN_CUDA) && defined(CLUSTER)
#define TL (Q * W)
#define WARPS (BS / 32)
#define PARTS (C * WARPS)                 /* of a dot product */
#define V (K * R)                         /* dot products a step, number c * R + r; at most 32 */
#define COPIES (32 / V)                   /* lanes that have the same number */
#define LOADS ((Q + PIECES - 1) / PIECES) /* of a thread, row and piece; the last piece may have fewer */
#define PIECE (LOADS * BS * W)            /* columns */

/* Steps by which the sums are behind the dot products. */
#define BEHIND ((LAG + PIECES - 1) / PIECES)

/* A warp sends its part of step i behind piece i PIECES + PIECES - 1, when it has all parts of the steps j whose first piece,
 * j PIECES, came LAG pieces before that one: the last is i - APART, which all other warps sent when they had those of
 * i - 2 APART. The place of that step is free again. */
#define APART ((LAG + 1) / PIECES)
#define ROUNDS (2 * APART)

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

/* What a group works on: columns [base, base + width) of every parts-th tile of R rows from `part` on. */
struct tiles {
    const real *X;
    ulong *full, *used; /* a piece of the ring has come; all warps are done with it */
    long rows, part, parts;
    uint count;               /* steps, in 32 bits, as are pieces: index arithmetic matters */
    int n, base, width, room; /* room: elements of a row's piece in the ring */
};

DEVICE_FN struct tiles tiles_of_group(const real *X, ulong *full, ulong *used, long rows, int n) {
    const int unit = 16 / (int)sizeof(real), slice = ((n + C - 1) / C + unit - 1) / unit * unit;
    struct tiles t;
    t.X = X;
    t.full = full;
    t.used = used;
    t.rows = rows;
    t.n = n;
    t.part = (long)get_group_id(0) / C;
    t.parts = (long)get_num_groups(0) / C;
    t.base = (int)get_group_id(0) % C * slice;
    t.width = n - t.base < slice ? n - t.base : slice;
    t.room = (slice < PIECE ? slice : PIECE) + (n % unit ? unit : 0);
    const long all = (rows + R - 1) / R;
    t.count = t.part < all ? (uint)((all - t.part + t.parts - 1) / t.parts) : 0;
    return t;
}

DEVICE_FN long first_row(const struct tiles *t, uint i) {
    return (t->part + i * t->parts) * R;
}

/* Copies begin and end at multiples of 16 bytes: by how many elements a row's copy begins before its piece does. */
DEVICE_FN int early(const struct tiles *t, long row) {
    if (W * sizeof(real) == 16) return 0; /* loads of 16 bytes: n is a multiple of them */
    return (int)((uint)row * (uint)t->n % (16 / (uint)sizeof(real)));
}

/* Starts the copy of a piece to its stage: number i * PIECES + p is the p-th of the i-th tile. One thread calls it, for which its
 * warp waits. The last bytes of X may be less than a copy. */
DEVICE_FN void fetch(const struct tiles *t, uint number, uint stage) {
    const int unit = 16 / (int)sizeof(real), at = (int)(number % PIECES) * PIECE;
    const int width = t->width - at < PIECE ? t->width - at : PIECE;
    const long row = first_row(t, number / PIECES);
    uint bytes = 0;
    for (int r = 0; r < R && row + r < t->rows; r++) {
        const int shift = early(t, row + r);
        const long from = (row + r) * t->n + t->base + at - shift;
        int all = (shift + width + unit - 1) & -unit;
        real *to = ring + (stage * R + r) * t->room;
        if (W * sizeof(real) < 16 && t->rows * t->n - from < all) {
            const int left = (int)(t->rows * t->n - from);
            all = left & -unit;
            for (int e = all; e < left; e++) to[e] = t->X[from + e];
        }
        bulk_copy(to, t->X + from, all * (uint)sizeof(real), &t->full[stage]);
        bytes += all * (uint)sizeof(real);
    }
    ticket_expect(&t->full[stage], bytes);
}

/* A place of the ring, and how often, modulo 2, it has been gone round. */
struct place {
    uint stage, turn;
};

DEVICE_FN void move_on(struct place *place) {
    const bool last = place->stage == STAGES - 1;
    place->stage = last ? 0 : place->stage + 1;
    place->turn ^= last;
}

/* Of the i-th tile. */
DEVICE_FN int rows_of(const struct tiles *t, uint i) {
    if (R == 1) return 1;
    const long left = t->rows - first_row(t, i);
    return left < R ? (int)left : R;
}

/* The thread's columns of piece p of the r-th row of the i-th tile, from the stage that it is in; zeros beyond the slice, which
 * only the last piece is cut by (dense_plans.c). */
DEVICE_FN void load_piece(real *x, const struct tiles *t, uint stage, uint i, int p, int r) {
    const real *from = ring + (stage * R + r) * t->room + early(t, first_row(t, i) + r);
#pragma unroll
    for (int q = 0; q < LOADS; q++) {
        const int j = ((int)get_local_id(0) + q * BS) * W;
        if (p * LOADS + q < Q && (p < PIECES - 1 || j < t->width - p * PIECE)) {
            load_wide(&x[q * W], from + j);
        } else {
#pragma unroll
            for (int s = 0; s < W; s++) x[q * W + s] = REAL(0.0);
        }
    }
}

/* dot += this thread's share of the dot products of piece p of the i-th tile's rows with y. */
DEVICE_FN void add_dots(real *dot, const struct tiles *t, uint stage, uint i, int p, const real (*yr)[TL]) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        real x[LOADS * W];
        if (r >= rows_of(t, i)) continue;
        load_piece(x, t, stage, i, p, r);
#pragma unroll
        for (int c = 0; c < K; c++) {
            real even = REAL(0.0), odd = REAL(0.0); /* two chains of additions take half the time of one */
#pragma unroll
            for (int e = 0; e < LOADS * W && p * LOADS * W + e < TL; e++)
                if (e % 2)
                    odd += x[e] * yr[c][p * LOADS * W + e];
                else
                    even += x[e] * yr[c][p * LOADS * W + e];
            dot[c * R + r] += even + odd;
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

/* Tickets and the first pieces; all of the cluster have theirs when it ends. */
DEVICE_FN void begin_tickets(const struct tiles *t, ulong *come) {
    if ((int)get_local_id(0) == 0) {
        for (int s = 0; s < STAGES; s++) {
            ticket_init(&t->full[s], 1);
            ticket_init(&t->used[s], WARPS);
        }
        for (int s = 0; s < ROUNDS; s++) ticket_init(&come[s], 1);
        tickets_begin();
        for (int s = 0; s < ROUNDS; s++) ticket_expect(&come[s], PARTS * V * (uint)sizeof(real));
        for (uint number = 0; number < STAGES - 1 && number < t->count * PIECES; number++)
            fetch(t, number, number);
    }
    cluster_arrive();
    cluster_wait();
}

/* The column, from the slice's first, of element e of the thread's. */
DEVICE_FN int column_of(int e) {
    return ((int)get_local_id(0) + e / W * BS) * W + e % W;
}

/* wr = 0; yr = the thread's columns of y. */
DEVICE_FN void begin_columns(real (*wr)[TL], real (*yr)[TL], const struct tiles *t, const real *y, int k,
                             int first) {
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
    const uint round = i % ROUNDS;
    halving_sums(p, V, 32); /* this lane's is number lane / COPIES */
    for (int g = lane % COPIES; g < C; g += COPIES)
        send(&parts[round][rank * WARPS + id / 32][lane / COPIES], &come[round], g, p[0]);
}

/* factor = the dot products of the lane's row of step i, of which all parts have come. */
DEVICE_FN void receive_dots(real *factor, const real (*parts)[PARTS][V], ulong *come, uint i) {
    const uint round = i % ROUNDS;
    ticket_wait_cluster(&come[round], i / ROUNDS & 1);
    if ((int)get_local_id(0) == 0) ticket_expect(&come[round], PARTS * V * (uint)sizeof(real));
    const real sum = sum_parts(parts[round]);
#pragma unroll
    for (int c = 0; c < K; c++)
        factor[c] = __shfl_sync(0xffffffffu, sum, c * R + (int)get_local_id(0) % 32 % R);
}

/* Piece p of the i-th tile. factor: of the lane's row. */
DEVICE_FN void scatter(real (*wr)[TL], const struct tiles *t, uint stage, uint i, int p, const real *factor) {
#pragma unroll
    for (int r = 0; r < R; r++) {
        real x[LOADS * W];
        if (r >= rows_of(t, i)) continue;
        load_piece(x, t, stage, i, p, r);
#pragma unroll
        for (int c = 0; c < K; c++) {
            const real f = R == 1 ? factor[c] : __shfl_sync(0xffffffffu, factor[c], r);
#pragma unroll
            for (int e = 0; e < LOADS * W && p * LOADS * W + e < TL; e++)
                wr[c][p * LOADS * W + e] += f * (SQUARES ? x[e] * x[e] : x[e]);
        }
    }
}

/* The warp is done with a piece, and was with the one in the place `gone` a step ago: that place gets the next piece, by a warp in
 * turn. One warp that did so each time would hold up all others, as would waiting for the slowest. */
DEVICE_FN void release(const struct tiles *t, const struct place *gone, const struct place *old,
                       uint number) {
    const uint next = number + STAGES - 1;
    __syncwarp();
    if ((int)get_local_id(0) % 32 != 0) return;
    ticket_arrive(&t->used[old->stage]);
    if (next % WARPS != (uint)get_local_id(0) / 32 || next >= t->count * PIECES) return;
    ticket_wait(&t->used[gone->stage], gone->turn);
    fetch(t, next, gone->stage);
}

__kernel GROUP_OF(BS)
    CLUSTER_OF(C) void mmchain_cluster(PARAMETERS(dense) MAP_PARAMETERS) {
    LOCAL ulong full[STAGES], used[STAGES], come[ROUNDS];
    LOCAL real parts[ROUNDS][PARTS][V];
    MAP_BEGIN
    const int id = (int)get_local_id(0), lane = id % 32;
    const bool writer = (int)get_group_id(0) % C == 0 && id < R;
    const struct tiles t = tiles_of_group(X, full, used, rows, n);
    real yr[K][TL], wr[K][TL], dot[V], factor[K];
    begin_tickets(&t, come);
    begin_columns(wr, yr, &t, y, k, first);
    struct row_operands operands[LAG / PIECES + 1]; /* of this step and those before it */
    /* Of the piece for the dot products, of that for w, and of the one before that: nothing has been in the last place yet. */
    struct place fresh = {0, 0}, old = {0, 0}, gone = {STAGES - 1, 1};
    for (uint i = 0; i < t.count + BEHIND; i++) {
#if !PLAIN
#pragma unroll
        for (int m = LAG / PIECES; m > 0; m--) operands[m] = operands[m - 1];
        if (i < t.count && first_row(&t, i) + lane % R < rows)
            operands[0] =
                load_operands(v, y, (index_t)(first_row(&t, i) + lane % R), first, k, v_cols MAP_OPERANDS);
#endif
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            if (i < t.count) {
                ticket_wait(&full[fresh.stage], fresh.turn);
#if FUSED || PLAIN
#pragma unroll
                for (int m = 0; m < V && p == 0; m++) dot[m] = REAL(0.0);
                add_dots(dot, &t, fresh.stage, i, p, yr);
                if (p == PIECES - 1) send_dots(dot, parts, come, i);
#endif
                move_on(&fresh);
            }
            const int back = (LAG - p + PIECES - 1) / PIECES,
                      piece = back * PIECES + p - LAG; /* LAG pieces ago */
            if (i < back || i - back >= t.count) continue;
            const uint before = i - back;
            const long row = first_row(&t, before) + lane % R;
#if FUSED || PLAIN
            if (piece == 0) receive_dots(factor, parts, come, before);
#endif
#if PLAIN
#pragma unroll
            for (int c = 0; c < K; c++)
                if (piece == 0 && writer && row < rows && first + c < k)
                    write_plain(out, factor[c], z, alpha, beta, (index_t)row * k + first + c);
#else
            if (piece == 0 && row < rows)
                apply_map(factor, &operands[LAG / PIECES], (index_t)row, first, k MAP_STATE(writer));
            scatter(wr, &t, old.stage, before, piece, factor);
#endif
            release(&t, &gone, &old, before * PIECES + piece);
            gone = old;
            move_on(&old);
        }
    }
    __syncwarp();
    cluster_arrive();
    cluster_wait(); /* no group ends while another may still send to it */
#if !PLAIN
#pragma unroll
    for (int c = 0; c < K; c++)
#pragma unroll
        for (int e = 0; e < TL; e++)
            if (column_of(e) < t.width) out[(t.part * K + c) * n + t.base + column_of(e)] = wr[c][e];
#endif
    MAP_END
}
#endif

/* The variants that differ in text, as the tests build them. */
// build CLUSTER KIND=0 VS=256 BS=256 Q=12 W=2 R=1 K=1 C=8 STAGES=6 PIECES=3 LAG=3
// build CLUSTER KIND=0 VS=128 BS=128 Q=8 W=1 R=2 K=2 C=4 STAGES=5 PIECES=2 LAG=2 MAP=3 INDEX64
// build CLUSTER KIND=1 VS=256 BS=256 Q=4 W=4 R=2 K=1 C=16 STAGES=8 PIECES=2 LAG=3
// build CLUSTER KIND=3 VS=128 BS=128 Q=8 W=4 R=1 K=1 C=3 STAGES=4 PIECES=1 LAG=1
