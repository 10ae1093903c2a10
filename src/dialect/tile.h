/* Tiles of X for several columns of y on tensor cores (dialect/tensor.h), for pass/dense/tile.cl: how a tile
 * of the ring is laid out and fetched, what a worker does with it, and the middle step between its two
 * products.
 *
 * Eight rows of X at a time: Q^T = Y^T X^T over the columns, then W^T += F^T X over the rows. The left
 * operand of the second product lies in the lanes just as the result of the first does, so that nothing moves
 * between them but the sums over warps and groups that share a row.
 *
 *   lane l of a warp: column l / 4 of y; l % 4 takes words of 8 bytes of a row,
 *   and rows 2 (l % 4) and 2 (l % 4) + 1
 *   a word is one element in f64 and two in f32
 *
 * VS / 32 warps share a row (Q blocks of 8 words each, W elements a lane), and C groups, a slice of its
 * columns each.
 *
 * A tile of R rows a vector lies in memory in 8 pieces, each 32 bytes further into the banks than the last:
 * the 8 rows that are used together come from 8 pieces, 4 of which are read at once without a conflict,
 * whatever n is. */
#ifndef TILE_H
#define TILE_H
#include "dialect/group_sum.h"
#include "dialect/pass.h"
#include "dialect/tensor.h"
#if defined(BULK) && defined(TILE)
#define JOINT (VS > 32 || C > 1)
/* Warps that do not work on tiles: one fetches them, another makes factors of the sums of rows that are
 * shared. */
#define CLERKS (JOINT ? 2 : 1)
#define SHARERS (VS / 32)
#define WORKERS (BS / 32 - CLERKS)
#define VECTORS (WORKERS / SHARERS)
#define PIECES 8
#define UNITS (R / 8) /* eight rows each, of a vector's in a tile */
#define PIECE_ROWS (UNITS * VECTORS)
#define TILE_ROWS (PIECES * PIECE_ROWS)
#define WORD_COLUMNS (8 / (int)sizeof(real))

/* Warps wait for each other at these (PTX ISA, "barrier"), the workers and one warp more. Workers that only
 * tell of something go on at once. compute-sanitizer's racecheck follows these, and not tickets that one lane
 * gives for all of its warp. */
#define SUMS 1  /* a tile's parts are complete, and the factors of the tile before it */
#define EMPTY 2 /* and STAGES - 1 more: all workers are done with a tile of the ring */

DEVICE_FN void meeting_arrive(int number) {
    PTX("barrier.cta.arrive %0, %1;" : : "r"(number), "n"(32 * (WORKERS + 1)) : "memory");
}

DEVICE_FN void meeting_wait(int number) {
    PTX("barrier.cta.sync %0, %1;" : : "r"(number), "n"(32 * (WORKERS + 1)) : "memory");
}

/* Holds what a group works on: its slice of the columns, and every parts-th tile from `part` on. */
struct tiles {
    __global const real *X;
    LOCAL_PTR real *ring;
    long rows, part, parts;
    int count, n, base, width,
        slice;              /* columns of X, the slice's first, how many it has, its place in a tile */
    int words, pitch, size; /* of 8 bytes in the slice; elements of a piece and of a tile */
};

DEVICE_FN struct tiles tiles_of_group(__global const real *X, LOCAL_PTR real *memory, long rows, int n,
                                      long group) {
    const int unit = 16 / (int)sizeof(real), line = 128 / (int)sizeof(real);
    struct tiles t;
    t.X = X;
    t.ring = memory;
    t.rows = rows;
    t.n = n;
    t.part = group / C;
    t.parts = (long)get_num_groups(0) / C;
    t.slice = C == 1 ? n : ((n + C - 1) / C + unit - 1) / unit * unit;
    t.base = (int)(group % C) * t.slice;
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

/* The piece that a row of eight comes from: 0 to 3, 4 to 7, the even and the odd ones all lie in different
 * banks. */
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

/* The warp that calls it starts the copy of tile i. At the end of X a piece need not be a multiple of 16
 * bytes. */
DEVICE_FN void fetch(const struct tiles *t, int i, LOCAL_PTR ulong *full) {
    const int lane = (int)get_local_id(0) % 32, unit = 16 / (int)sizeof(real);
    const long row = first_row(t, i), left = t->rows - row;
    LOCAL_PTR real *tile = t->ring + i % STAGES * t->size;
    if (lane == 0) {
        int all = 0;
        for (int b = 0; b < PIECES; b++) {
            const int elements = rows_of_piece(left, b) * t->width, whole = elements / unit * unit;
            __global const real *from = t->X + (row + b * PIECE_ROWS) * t->n + t->base;
            if (C == 1)
                for (int e = whole; e < elements; e++) tile[b * t->pitch + e] = from[e];
            all += C == 1 ? whole : elements;
        }
        ticket_expect(full, all * (uint)sizeof(real));
    }
    warp_sync();
    if (lane >= PIECES) return;
    const int rows = rows_of_piece(left, lane);
    __global const real *from = t->X + (row + lane * PIECE_ROWS) * t->n + t->base;
    LOCAL_PTR real *to = tile + lane * t->pitch;
#if C == 1
    const uint bytes = rows * t->n / unit * unit * (uint)sizeof(real);
    if (bytes > 0) bulk_copy(to, from, bytes, full);
#else
    for (int r = 0; r < rows; r++)
        bulk_copy(to + r * t->slice, from + (long)r * t->n, t->width * (uint)sizeof(real), full);
#endif
}

/* The warp that keeps the ring full. */
DEVICE_FN void copy_tiles(const struct tiles *t, LOCAL_PTR ulong *full) {
    for (int i = 0; i < t->count; i++) {
        if (i >= STAGES) meeting_wait(EMPTY + i % STAGES);
        fetch(t, i, &full[i % STAGES]);
    }
}

/* ------------------------------------------------------------------------------------ the middle step */

/* Holds what a warp needs of memory for the rows of a tile from its first unit on. */
struct rows_operands {
#ifdef MAP
    struct row_operands row; /* of the lane-th row */
#else
    real v[UNITS][2];
#endif
};

DEVICE_FN void load_rows(struct rows_operands *o, const struct tiles *t, int i, int unit,
                         __global const real *v, __global const real *y, int first, int k,
                         int v_cols MAP_TAKEN) {
    const int lane = (int)get_local_id(0) % 32;
#ifdef MAP
    const long row = row_of(t, i, unit + lane / 8, lane % 8);
    if (lane < R && row < t->rows) o->row = load_operands(v, y, (index_t)row, first, k, v_cols MAP_OPERANDS);
#else
    const int c = first + lane / 4, step = v_cols == 1 ? 1 : k, column = v_cols == 1 || c >= k ? 0 : c;
    const long begin = first_row(t, i), all = t->rows - begin;
    const int left = all < TILE_ROWS ? (int)all : TILE_ROWS;
#pragma unroll
    for (int s = 0; s < 2; s++) {
        const int row = piece_of(2 * (lane % 4) + s) * PIECE_ROWS + unit, units = v ? left - row : 0;
        __global const real *from = v + (begin + row) * step + column;
#pragma unroll
        for (int u = 0; u < UNITS; u++, from += step) o->v[u][s] = u < units ? *from : REAL(1.0);
    }
#endif
}

/* Dot products become factors, in place. A map sees whole rows, one a lane, which change places through
 * `exchange`. */
DEVICE_FN void map_rows(real (*q)[2], const struct rows_operands *o, const struct tiles *t, int i, int unit,
                        int first, int k, LOCAL_PTR real *exchange MAP_TAKEN) {
    const int lane = (int)get_local_id(0) % 32;
#ifdef MAP
    const long row = row_of(t, i, unit + lane / 8, lane % 8);
    LOCAL_PTR real *own = exchange + lane / 8 * 64 + lane % 8;
    warp_sync();
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) exchange[u * 64 + 2 * lane + s] = q[u][s];
    warp_sync();
    if (lane < R) {
        real p[K];
        EACH_COLUMN(c) p[c] = own[8 * c];
        if (row < t->rows)
            apply_map(p, &o->row, (index_t)row, first, k MAP_STATE(t->base == 0));
        else
            EACH_COLUMN(c) p[c] = REAL(0.0);
        EACH_COLUMN(c) own[8 * c] = p[c];
    }
    warp_sync();
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

/* q = the sum of `count` neighbours, in order. */
DEVICE_FN void add_up(real (*q)[2], LOCAL_PTR const struct sums *parts, int count) {
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

DEVICE_FN void keep(LOCAL_PTR real *to, const real (*q)[2]) {
    const int lane = (int)get_local_id(0) % 32;
#pragma unroll
    for (int u = 0; u < UNITS; u++)
#pragma unroll
        for (int s = 0; s < 2; s++) to[u * 64 + 2 * lane + s] = q[u][s];
}

/* -------------------------------------------------------------------------------- the workers' halves */

/* A warp's place in every tile. */
struct place {
    int word, words; /* its first word and those of the slice */
    int row,
        across
            [2]; /* elements: where its lane begins in a tile, for the products over columns and over rows */
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

/* The word `at` behind `from`; zero where no more than `left` words are there. Every warp has the first
 * SURE. */
DEVICE_FN word load_word(LOCAL_PTR const real *from, int at, int left) {
    word x = no_word();
    if (at < SURE || at < left) x = *(LOCAL_PTR const word *)(from + at * WORD_COLUMNS);
    return x;
}

/* The rows of the tile that are missing at X's end are zeros, in the warp's place. */
DEVICE_FN void clear_missing(LOCAL_PTR real *tile, const struct tiles *t, const struct place *at, int i) {
    const int id = (int)get_local_id(0), unit = id / 32 / SHARERS * UNITS;
    const long left = t->rows - first_row(t, i);
    if (left >= TILE_ROWS) return;
    for (int b = 0; b < PIECES; b++)
        for (int u = unit; u < unit + UNITS; u++) {
            LOCAL_PTR word *own =
                (LOCAL_PTR word *)(tile + b * t->pitch + u * t->slice + at->word * WORD_COLUMNS);
            if (u < rows_of_piece(left, b)) continue;
            for (int e = id % 32; e < 8 * Q && at->word + e < t->words; e += 32) own[e] = no_word();
        }
    warp_sync();
}

/* q = this warp's share of the dot products of its rows of the tile. */
DEVICE_FN void dots(real (*q)[2], LOCAL_PTR const real *tile, const struct tiles *t, const struct place *at,
                    const struct left *y) {
    const int left = at->words - at->word - (int)get_local_id(0) % 4;
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        LOCAL_PTR const real *from = tile + at->row + u * t->slice;
        q[u][0] = q[u][1] = REAL(0.0);
#pragma unroll
        for (int j = 0; j < Q; j += 2) {
            real sum[PRODUCT] = {0};
            dot_block(sum, y + j * LEFTS, load_word(from, 8 * j, left), load_word(from, 8 * j + 4, left));
            if (j + 1 < Q)
                dot_block(sum, y + (j + 1) * LEFTS, load_word(from, 8 * j + 8, left),
                          load_word(from, 8 * j + 12, left));
            q[u][0] += product_element(sum, 0);
            q[u][1] += product_element(sum, 1);
        }
    }
}

DEVICE_FN void scatter(real (*w)[W], LOCAL_PTR const real *tile, const struct tiles *t,
                       const struct place *at, const real (*factor)[2]) {
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
DEVICE_FN void write_records(__global wide *to, wide *record, LOCAL_PTR wide (*parts)[RECORD]) {
    const int id = (int)get_local_id(0);
    EACH_SUM(c) {
        for (int step = 16; step > 0; step /= 2) record[c] += shuffle_double(0xffffffffu, record[c], step);
        if (id % 32 == 0) parts[id / 32][c] = record[c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= RECORD) return;
    wide sum = parts[0][id];
    for (int w = 1; w < BS / 32; w++) sum += parts[w][id];
    to[id] = sum;
}
#endif

/* yr = the lane's part of y, for the products over columns. */
DEVICE_FN void load_y(struct left *yr, const struct tiles *t, const struct place *at, __global const real *y,
                      int first, int k) {
    const int lane = (int)get_local_id(0) % 32, c = first + lane / 4;
#pragma unroll
    for (int j = 0; j < Q * LEFTS; j++) {
        real two[2];
#pragma unroll
        for (int s = 0; s < 2; s++) {
            /* f64: words t and t + 4 of a block. f32: the two columns of a word. */
            const int column =
                LEFTS == 1 ? at->word + 8 * j + 4 * s + lane % 4 : 2 * (at->word + 4 * j + lane % 4) + s;
            two[s] = column < t->width && c < k ? y[(index_t)(t->base + column) * k + c] : REAL(0.0);
        }
        yr[j] = left_of(two[0], two[1]);
    }
}

/* Warps that share their columns add up their w where the ring was, one after the other. */
DEVICE_FN void write_w(__global real *out, real (*w)[W], const struct tiles *t, const struct place *at,
                       int n) {
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
                LOCAL_PTR real *sum = t->ring + c * t->slice + column;
                if (turn > 0) w[j][e] += *sum;
                if (turn + 1 < VECTORS)
                    *sum = w[j][e];
                else
                    out[(t->part * K + c) * n + t->base + column] = w[j][e];
            }
    }
}

#endif
#endif
