/* Rows of dense factors that the entries of a sparse matrix gather: a vector of VS threads has a row in Q
 * pieces of W numbers a thread, k being a multiple of W. HALVES says that the factors are of half precision,
 * 1 IEEE's and 2 bfloat16; sums are `real` all the same. FULL says that all threads have numbers of every
 * row. */
#ifndef GATHERED_H
#define GATHERED_H
#include "dialect/group_sum.h"
#include "dialect/wide_loads.h"
#if defined(SAMPLE) || defined(JOIN)
#ifdef SHORT_STARTS
typedef int start_t;
#else
typedef long start_t;
#endif

/* Says how vectors of threads share a matrix (derived/shares.h): `each` quarters of shares a vector, and one
 * more of the first `more` vectors. */
#define ALIGNED 8 /* KI_SHARE_ALIGNED */
struct shares {
    __global const long *begin, *row;
    long each, more;
};

DEVICE_FN long quarter_of(const struct shares *shares, long vector) {
    return vector * shares->each + (vector < shares->more ? vector : shares->more);
}

/* The first entry of a vector. */
DEVICE_FN long begin_of(const struct shares *shares, long vector) {
    const long quarter = quarter_of(shares, vector), begin = shares->begin[quarter / 4];
    const int part = (int)(quarter % 4);
    return part == 0 ? begin
                     : begin + (shares->begin[quarter / 4 + 1] - begin) * part / (4 * ALIGNED) * ALIGNED;
}

#endif
#ifdef SAMPLE

#define PLACES (Q * W)
#define EACH_PIECE(q) _Pragma("unroll") for (int q = 0; q < Q; q++)
#define EACH_PLACE(p) _Pragma("unroll") for (int p = 0; p < PLACES; p++)
#define EACH_ENTRY(r) _Pragma("unroll") for (int r = 0; r < R; r++)
#define AT(q) (((q)*VS + lane) * W) /* where a thread's piece of a row begins */
#ifdef FULL
#define HAS(q, width) true /* all threads have pieces as long as a row */
#else
#define HAS(q, width) (AT(q) < (width))
#endif

#ifndef HALVES
/* A thread's part of `width` numbers of a row; zeros beyond them. */
DEVICE_FN void load_row(real *to, __global const real *from, int lane, int width) {
    EACH_PIECE(q) {
        if (HAS(q, width))
            load_wide(to + q * W, from + AT(q));
        else
            for (int w = 0; w < W; w++) to[q * W + w] = REAL(0.0);
    }
}

/* Rows of factors as they are loaded: `word`s, of which a thread has WORDS. */
typedef real factor;
typedef real word;
#define WORDS PLACES
#define load_factor load_row
DEVICE_FN real number_of(const word *row, int p) {
    return row[p];
}
#else
/* Two numbers in a word, the first one below, or one where a piece is one number. They become `real` when
 * they are multiplied, so that rows on their way take half the registers. */
typedef unsigned short factor;
typedef uint word;
#define WORDS (W == 1 ? Q : PLACES / 2)

#if W == 8
#define PIECE uint4
#elif W == 4
#define PIECE uint2
#elif W == 2
#define PIECE uint
#else
#define PIECE factor
#endif

DEVICE_FN void load_factor(word *to, __global const factor *from, int lane, int width) {
    EACH_PIECE(q) {
        word *words = to + q * (W == 1 ? 1 : W / 2);
        for (int w = 0; w < (W == 1 ? 1 : W / 2); w++) words[w] = 0;
        if (HAS(q, width)) {
            const PIECE piece = *(__global const PIECE *)(from + AT(q));
#if W <= 2
            words[0] = piece;
#else
            words[0] = piece.x;
            words[1] = piece.y;
#if W == 8
            words[2] = piece.z;
            words[3] = piece.w;
#endif
#endif
        }
    }
}

/* The lower 16 bits; bfloat16 is the upper half of f32. */
DEVICE_FN real lower_number(uint bits) {
    return HALVES == 2 ? FLOAT_OF(bits << 16) : float_of_f16(bits & 0xffffu);
}

DEVICE_FN real number_of(const word *row, int p) {
#if W == 1
    return lower_number(row[p]);
#else
    return lower_number(p % 2 ? row[p / 2] >> 16 : row[p / 2]);
#endif
}
#endif

#if W <= 4
/* A thread's part of a row, to where the row is. */
DEVICE_FN void store_row(__global real *to, const real *from, int lane, int width) {
    EACH_PIECE(q) if (HAS(q, width)) store_wide(to + AT(q), from + q * W);
}
#endif

/* A vector's entries, counted from `begin` on, and the row that it is at: as far as its entries go, it ends
 * before `row_end`. */
struct place {
    long begin, row;
    int count, row_end;
};

DEVICE_FN int row_end_of(__global const start_t *start, long row, long begin) {
    const long end = (long)start[row + 1] - begin;
    return end < 0x7fffffffL ? (int)end : 0x7fffffff;
}

DEVICE_FN struct place place_of(const struct shares *shares, __global const start_t *start, long vector) {
    const long quarter = quarter_of(shares, vector);
    struct place at;
    at.begin = begin_of(shares, vector);
    at.row = shares->row[quarter / 4];
    at.count = (int)(begin_of(shares, vector + 1) - at.begin);
    at.row_end = row_end_of(start, at.row, at.begin);
    if (quarter % 4 != 0) { /* between rows of the table */
        const long last = shares->row[quarter / 4 + 1];
        while (at.row_end <= 0 && at.row < last) at.row_end = row_end_of(start, ++at.row, at.begin);
    }
    return at;
}

#ifdef VS
/* Vectors that exchange numbers with each other's threads, and so take as many steps as the longest of
 * them. */
#if VS == 1
#define TOGETHER 1
#elif defined(SHUFFLES) && VS <= 32
#define TOGETHER (32 / VS)
#else
#define TOGETHER (BS / VS)
#endif

/* The most entries of them. counts has BS / VS places. */
DEVICE_FN int most_of(int count, LOCAL_PTR int *counts) {
    int most = count;
#if TOGETHER > 1
    const int vector = (int)get_local_id(0) / VS, first = vector / TOGETHER * TOGETHER;
    if ((int)get_local_id(0) % VS == 0) counts[vector] = count;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int v = first; v < first + TOGETHER; v++) most = counts[v] > most ? counts[v] : most;
#endif
    return most;
}
#endif

/* The place moves on to the row of entry e. True if it is another one. */
DEVICE_FN bool moves_on(struct place *at, __global const start_t *start, int e) {
    const bool beyond = e >= at->row_end;
    while (e >= at->row_end) at->row_end = row_end_of(start, ++at->row, at->begin);
    return beyond;
}

#ifdef R
/* The columns of R entries from `step` on, of which there are `count`; 0 beyond them. `col` is where a
 * vector's entries begin, so that with several at a time they lie at multiples of their size. */
DEVICE_FN void load_columns(int *c, __global const int *col, int step, int count) {
    EACH_ENTRY(r) c[r] = 0;
#if R % 4 == 0
    if (step + R <= count) {
        _Pragma("unroll") for (int r = 0; r < R; r += 4) {
            const int4 four = *(__global const int4 *)(col + step + r);
            c[r] = four.x;
            c[r + 1] = four.y;
            c[r + 2] = four.z;
            c[r + 3] = four.w;
        }
        return;
    }
#endif
    EACH_ENTRY(r) if (step + r < count) c[r] = col[step + r];
}

#if SAMPLE
/* A row of A as numbers. */
DEVICE_FN void widen(real *a, const word *row) {
    EACH_PLACE(p) a[p] = number_of(row, p);
}

/* The dot products of R rows of B with their rows of A. */
DEVICE_FN void dots(real *d, real *a, word (*b)[WORDS], struct place *at, __global const start_t *start,
                    __global const factor *A, int step, int k, int lane, int width) {
#ifdef AHEAD
    word rows[R][WORDS];
    EACH_ENTRY(r) {
        if (step + r < at->count) moves_on(at, start, step + r);
        load_factor(rows[r], A + at->row * k, lane, width);
    }
    EACH_ENTRY(r) {
        widen(a, rows[r]);
#else
    EACH_ENTRY(r) {
        if (step + r < at->count && moves_on(at, start, step + r)) {
            word row[WORDS];
            load_factor(row, A + at->row * k, lane, width);
            widen(a, row);
        }
#endif
        d[r] = REAL(0.0);
        EACH_PLACE(p) d[r] += a[p] * number_of(b[r], p);
    }
}
#endif
#endif

#endif
#endif
