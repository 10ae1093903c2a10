/* GPU body of fused passes over a dense X with several columns of y, on tensor cores (CUDA, from compute capability 9.0 on):
 * W = X^T (V .* (X Y)), or a row map in place of V.
 *
 * Eight columns of y make as many multiplications a byte of X as the cores have time for, and more than that with the sums
 * over threads; a product of small matrices does both. Eight rows of X at a time: Q^T = Y^T X^T over the columns, then
 * W^T += F^T X over the rows. The left operand of the second product lies in the lanes just as the result of the first
 * does, so that nothing moves between them but the sums over warps and groups that share a row.
 *
 *   lane l of a warp: column l / 4 of y; l % 4 takes words of 8 bytes of a row, and rows 2 (l % 4) and 2 (l % 4) + 1
 *   a word is one element in f64 and two in f32 (dialect/tensor.h)
 *
 * WORKERS warps, of which VS / 32 share a row (Q blocks of 8 words each, W elements a lane), take tiles from a ring that another warp keeps
 * full by bulk copies. Where a row has several warps, or C groups of a cluster, they leave their parts of a tile's sums to
 * one more warp, which adds them up, applies the map and hands the factors F back; meanwhile the workers take the dot
 * products of the next tile, where the ring has room for it. They all meet once a tile.
 *
 * A tile of R rows a vector lies in memory in 8 pieces, each 32 bytes further into the banks than the last: the 8 rows
 * that are used together come from 8 pieces, 4 of which are read at once without a conflict, whatever n is. */
#if defined(KILN_CUDA) && (defined(TILE) || defined(TILE_WHOLE)) /* WHOLE: every warp has all of its Q blocks */
#define JOINT (VS > 32 || C > 1)
#define SHARERS (VS / 32)
#define WORKERS (BS / 32 - (JOINT ? 2 : 1))
#define VECTORS (WORKERS / SHARERS)
#define PIECES 8
#define UNITS (R / 8) /* eight rows each, of a vector's in a tile */
#define PIECE_ROWS (UNITS * VECTORS)
#define TILE_ROWS (PIECES * PIECE_ROWS)
#define LOOK (STAGES > 2) /* tiles that the workers are ahead of the sums */
#define WORD_COLUMNS (8 / (int)sizeof(real))

/* Where warps wait for each other (PTX ISA, "barrier"). Workers that only tell of something go on at once. compute-sanitizer's
 * racecheck follows these, and not tickets that one lane gives for all of its warp. */
#define SUMS 1  /* a tile's parts are complete, and the factors of the tile before it */
#define EMPTY 2 /* and STAGES - 1 more: all workers are done with a tile of the ring */

/* The workers and one warp more. */
DEVICE_FN void meeting_arrive(int number) {
    PTX("barrier.cta.arrive %0, %1;" : : "r"(number), "n"(32 * (WORKERS + 1)) : "memory");
}

DEVICE_FN void meeting_wait(int number) {
    PTX("barrier.cta.sync %0, %1;" : : "r"(number), "n"(32 * (WORKERS + 1)) : "memory");
}

/* What a group works on: its slice of the columns, and every parts-th tile from `part` on. */
struct tiles {
    const real *X;
    long rows, part, parts;
    int count, n, base, width, slice; /* columns of X, the slice's first, how many it has, its place in a tile */
    int words, pitch, size;           /* of 8 bytes in the slice; elements of a piece and of a tile */
};

DEVICE_FN struct tiles tiles_of_group(const real *X, long rows, int n) {
    const int unit = 16 / (int)sizeof(real), line = 128 / (int)sizeof(real);
    struct tiles t;
    t.X = X;
    t.rows = rows;
    t.n = n;
    t.part = (long)get_group_id(0) / C;
    t.parts = (long)get_num_groups(0) / C;
    t.slice = C == 1 ? n : ((n + C - 1) / C + unit - 1) / unit * unit;
    t.base = (int)get_group_id(0) % C * t.slice;
    t.width = n - t.base < t.slice ? n - t.base : t.slice;
    t.words = t.width / WORD_COLUMNS;
    /* 32 bytes beyond a multiple of 128. */
    t.pitch = (PIECE_ROWS * t.slice + line - 1 - line / 4) / line * line + line / 4;
    t.size = PIECES * t.pitch;
    const long all = (rows + TILE_ROWS - 1) / TILE_ROWS;
    t.count = t.part < all ? (int)((all - t.part + t.parts - 1) / t.parts) : 0;
    return t;
}

DEVICE_FN long first_row(const struct tiles *t, int i) {
    return (t->part + i * t->parts) * TILE_ROWS;
}

/* The piece that a row of eight comes from: 0 to 3, 4 to 7, the even and the odd ones all lie in different banks. */
DEVICE_FN int piece_of(int row) {
    return row < 4 ? row : row ^ 1;
}

/* Row 0 to 7 of the unit-th eight rows of tile i. */
DEVICE_FN long row_of(const struct tiles *t, int i, int unit, int row) {
    return first_row(t, i) + piece_of(row) * PIECE_ROWS + unit;
}

/* Rows that piece b of a tile has, `left` of X being left from the tile on. */
DEVICE_FN int rows_of_piece(long left, int b) {
    const long there = left - b * PIECE_ROWS;
    return there < 0 ? 0 : there < PIECE_ROWS ? (int)there : PIECE_ROWS;
}

/* The warp that calls it starts the copy of tile i. At the end of X a piece need not be a multiple of 16 bytes. */
DEVICE_FN void fetch(const struct tiles *t, int i, ulong *full) {
    const int lane = (int)get_local_id(0) % 32, unit = 16 / (int)sizeof(real);
    const long row = first_row(t, i), left = t->rows - row;
    real *tile = ring + i % STAGES * t->size;
    if (lane == 0) {
        int all = 0;
        for (int b = 0; b < PIECES; b++) {
            const int elements = rows_of_piece(left, b) * t->width, whole = elements / unit * unit;
            const real *from = t->X + (row + b * PIECE_ROWS) * t->n + t->base;
            if (C == 1)
                for (int e = whole; e < elements; e++) tile[b * t->pitch + e] = from[e];
            all += C == 1 ? whole : elements;
        }
        ticket_expect(full, all * (uint)sizeof(real));
    }
    __syncwarp();
    if (lane >= PIECES) return;
    const int rows = rows_of_piece(left, lane);
    const real *from = t->X + (row + lane * PIECE_ROWS) * t->n + t->base;
    real *to = tile + lane * t->pitch;
#if C == 1
    const uint bytes = rows * t->n / unit * unit * (uint)sizeof(real);
    if (bytes > 0) bulk_copy(to, from, bytes, full);
#else
    for (int r = 0; r < rows; r++)
        bulk_copy(to + r * t->slice, from + (long)r * t->n, t->width * (uint)sizeof(real), full);
#endif
}

/* ------------------------------------------------------------------------------------------ the middle step */

/* What a warp needs of memory for the rows of a tile from its first unit on. */
struct rows_operands {
#ifdef MAP
    struct row_operands row; /* of the lane-th row */
#else
    real v[UNITS][2];
#endif
};

DEVICE_FN void load_rows(struct rows_operands *o, const struct tiles *t, int i, int unit, const real *v, const real *y,
                         int first, int k, int v_cols MAP_TAKEN) {
    const int lane = (int)get_local_id(0) % 32;
#ifdef MAP
    const long row = row_of(t, i, unit + lane / 8, lane % 8);
    if (lane < R && row < t->rows) o->row = load_operands(v, y, (index_t)row, first, k, v_cols MAP_OPERANDS);
#else
    const int c = first + lane / 4, step = v_cols == 1 ? 1 : k, column = v_cols == 1 || c >= k ? 0 : c;
#pragma unroll
    for (int s = 0; s < 2; s++) {
        const long row = row_of(t, i, unit, 2 * (lane % 4) + s), left = t->rows - row;
        const int units = left < UNITS ? (int)left : UNITS;
        const real *from = v + row * step + column;
#pragma unroll
        for (int u = 0; u < UNITS; u++) {
            o->v[u][s] = REAL(1.0);
            if (v && u < units) o->v[u][s] = from[u * step];
        }
    }
#endif
}

/* From dot products to factors, in place. A map sees whole rows, one a lane, which change places through `exchange`. */
DEVICE_FN void map_rows(real (*q)[2], const struct rows_operands *o, const struct tiles *t, int i, int unit, int first, int k,
                        real *exchange MAP_TAKEN) {
    const int lane = (int)get_local_id(0) % 32;
#ifdef MAP
    const long row = row_of(t, i, unit + lane / 8, lane % 8);
    real *own = exchange + lane / 8 * 64 + lane % 8;
    __syncwarp();
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) exchange[u * 64 + 2 * lane + s] = q[u][s];
    __syncwarp();
    if (lane < R) {
        real p[K];
        EACH_COLUMN(c) p[c] = own[8 * c];
        if (row < t->rows)
            apply_map(p, &o->row, (index_t)row, first, k MAP_STATE(t->base == 0));
        else
            EACH_COLUMN(c) p[c] = REAL(0.0);
        EACH_COLUMN(c) own[8 * c] = p[c];
    }
    __syncwarp();
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) q[u][s] = exchange[u * 64 + 2 * lane + s];
#else
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) q[u][s] *= o->v[u][s];
#endif
}

#if JOINT
/* Sums and factors of a tile: as the lanes of a warp have them, one place after the other. */
struct __attribute__((aligned(16))) sums { /* pairs are stored at once */
    real of[UNITS][64];
};

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

/* q = the sum of `count` neighbours, in order. */
DEVICE_FN void add_up(real (*q)[2], const struct sums *parts, int count) {
    const int lane = (int)get_local_id(0) % 32;
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) {
            q[u][s] = parts[0].of[u][2 * lane + s];
            for (int p = 1; p < count; p++) q[u][s] += parts[p].of[u][2 * lane + s];
        }
}
#endif

DEVICE_FN void keep(real *to, const real (*q)[2]) {
    const int lane = (int)get_local_id(0) % 32;
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) to[u * 64 + 2 * lane + s] = q[u][s];
}

/* ------------------------------------------------------------------------------------------ the workers' halves */

/* A warp's place in every tile. */
struct place {
    int word, words;     /* its first word and those of the slice */
    int row, across[2];  /* elements: where its lane begins in a tile, for the products over columns and over rows */
};

DEVICE_FN struct place place_of(const struct tiles *t) {
    const int id = (int)get_local_id(0), lane = id % 32, warp = id / 32;
    struct place at;
    at.word = warp % SHARERS * 8 * Q;
    at.words = t->words;
    const int start = warp / SHARERS * UNITS * t->slice + at.word * WORD_COLUMNS;
    at.row = start + piece_of(lane / 4) * t->pitch + lane % 4 * WORD_COLUMNS;
    for (int s = 0; s < 2; s++)
        at.across[s] = start + piece_of(2 * (lane % 4) + s) * t->pitch + lane / 4 * WORD_COLUMNS;
    return at;
}

/* The word `at` behind `from`; zero where no more than `left` words are there. */
DEVICE_FN word load_word(const real *from, int at, int left) {
#ifdef TILE_WHOLE
    return *(const word *)(from + at * WORD_COLUMNS);
#else
    word x = {0};
    if (at < left) x = *(const word *)(from + at * WORD_COLUMNS);
    return x;
#endif
}

/* Where X has come to its end: zeros for the rows of the tile that are missing, in the warp's place. */
DEVICE_FN void clear_missing(real *tile, const struct tiles *t, const struct place *at, int i) {
    const int id = (int)get_local_id(0), unit = id / 32 / SHARERS * UNITS;
    const long left = t->rows - first_row(t, i);
    if (left >= TILE_ROWS) return;
    for (int b = 0; b < PIECES; b++)
        for (int u = unit; u < unit + UNITS; u++) {
            word *own = (word *)(tile + b * t->pitch + u * t->slice + at->word * WORD_COLUMNS);
            const word zero = {0};
            if (u < rows_of_piece(left, b)) continue;
            for (int e = id % 32; e < 8 * Q && at->word + e < t->words; e += 32) own[e] = zero;
        }
    __syncwarp();
}

/* q = this warp's share of the dot products of its rows of the tile. */
DEVICE_FN void dots(real (*q)[2], const real *tile, const struct tiles *t, const struct place *at, const struct left *y) {
    const int left = at->words - at->word - (int)get_local_id(0) % 4;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        const real *from = tile + at->row + u * t->slice;
        q[u][0] = q[u][1] = REAL(0.0);
#pragma unroll
        for (int j = 0; j < Q; j += 2) {
            real sum[PRODUCT] = {0};
            dot_block(sum, y + j * LEFTS, load_word(from, 8 * j, left), load_word(from, 8 * j + 4, left));
            if (j + 1 < Q)
                dot_block(sum, y + (j + 1) * LEFTS, load_word(from, 8 * j + 8, left), load_word(from, 8 * j + 12, left));
            q[u][0] += product_element(sum, 0);
            q[u][1] += product_element(sum, 1);
        }
    }
}

DEVICE_FN void scatter(real (*w)[W], const real *tile, const struct tiles *t, const struct place *at,
                       const real (*factor)[2]) {
    const int left = at->words - at->word - (int)get_local_id(0) % 32 / 4;
    struct left f[UNITS];
#pragma unroll
    for (int u = 0; u < UNITS; u++) f[u] = left_of(factor[u][0], factor[u][1]);
#pragma unroll
    for (int j = 0; j < Q; j++) {
        word x[UNITS][2];
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int s = 0; s < 2; s++) x[u][s] = load_word(tile + at->across[s] + u * t->slice, 8 * j, left);
        scatter_block(w[j], f, x, UNITS);
    }
}

/* The column, from the slice's first, of element e of a lane's j-th block of w. */
DEVICE_FN int column_of(const struct place *at, int j, int e) {
    return (at->word + 8 * j + (int)get_local_id(0) % 4 * 2 + e % 2) * WORD_COLUMNS + e / 2;
}

#ifdef MAP
/* The group's record: sums over lanes, then over warps, in a fixed order. */
DEVICE_FN void write_records(wide *to, wide *record, wide (*parts)[RECORD]) {
    const int id = (int)get_local_id(0);
    EACH_SUM(c) {
        for (int step = 16; step > 0; step /= 2) record[c] += __shfl_xor_sync(0xffffffffu, record[c], step);
        if (id % 32 == 0) parts[id / 32][c] = record[c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= RECORD) return;
    wide sum = parts[0][id];
    for (int w = 1; w < BS / 32; w++) sum += parts[w][id];
    to[get_group_id(0) * RECORD + id] = sum;
}
#endif

/* yr = the lane's part of y, for the products over columns. */
DEVICE_FN void load_y(struct left *yr, const struct tiles *t, const struct place *at, const real *y, int first, int k) {
    const int lane = (int)get_local_id(0) % 32, c = first + lane / 4;
#pragma unroll
    for (int j = 0; j < Q * LEFTS; j++) {
        real two[2];
#pragma unroll
        for (int s = 0; s < 2; s++) {
            /* f64: words t and t + 4 of a block. f32: the two columns of a word. */
            const int column = LEFTS == 1 ? at->word + 8 * j + 4 * s + lane % 4 : 2 * (at->word + 4 * j + lane % 4) + s;
            two[s] = column < t->width && c < k ? y[(index_t)(t->base + column) * k + c] : REAL(0.0);
        }
        yr[j] = left_of(two[0], two[1]);
    }
}

/* ------------------------------------------------------------------------------------------ the warps' loops */

/* The warp that keeps the ring full. */
DEVICE_FN void copy_tiles(const struct tiles *t, ulong *full) {
    for (int i = 0; i < t->count; i++) {
        if (i >= STAGES) meeting_wait(EMPTY + i % STAGES);
        fetch(t, i, &full[i % STAGES]);
    }
}

#if JOINT
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

/* Warps that share their columns add up their w where the ring was, one after the other. */
DEVICE_FN void write_w(real *out, real (*w)[W], const struct tiles *t, const struct place *at, int n) {
    const int id = (int)get_local_id(0), warp = id / 32, c = id % 32 / 4;
#pragma unroll 1
    for (int turn = 0; turn < VECTORS; turn++) {
        if (VECTORS > 1) barrier(CLK_LOCAL_MEM_FENCE);
        if (warp >= WORKERS || warp / SHARERS != turn || c >= K) continue;
#pragma unroll
        for (int j = 0; j < Q; j++)
#pragma unroll
            for (int e = 0; e < W; e++) {
                const int column = column_of(at, j, e);
                if (column >= t->width) continue;
                real *sum = ring + c * t->slice + column;
                if (turn > 0) w[j][e] += *sum;
                if (turn + 1 < VECTORS)
                    *sum = w[j][e];
                else
                    out[(t->part * K + c) * n + t->base + column] = w[j][e];
            }
    }
}

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
    const struct tiles t = tiles_of_group(X, rows, n);
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
