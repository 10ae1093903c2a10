/* Conjugate gradient for the rows of a factor matrix, all at once: the product of each row's matrix H with
 * its direction is a fused sampled product, Q (ops/sampled/sddmm.cl), which shares entries out evenly however
 * long a row is; what is left of a step lies within a row, and is factor_step. VS threads of BS share a row.
 * WIDTH: columns; PITCH: the same with zeros up to whole pieces, as the sampled product loads them; GRAM: the
 * model is implicit. */

#define ARGUMENTS_factor_step(FIRST, NEXT)                                                                   \
    FIRST(OUT, real, X)                                                                                      \
    NEXT(OUT, real, R)                                                                                       \
    NEXT(OUT, real, P)                                                                                       \
    NEXT(OUT, real, Q)                                                                                       \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(IN, real, gram)                                                                                     \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, real, l2)                                                                                    \
    NEXT(VALUE, int, counted)

#define ARGUMENTS_factor_own(FIRST, NEXT)                                                                    \
    FIRST(IN, real, X)                                                                                       \
    NEXT(TABLE, long, row_start)                                                                             \
    NEXT(IN, real, gram)                                                                                     \
    NEXT(SPACE, wide, sums)                                                                                  \
    NEXT(VALUE, long, rows)                                                                                  \
    NEXT(VALUE, real, l2)                                                                                    \
    NEXT(VALUE, int, counted)                                                                                \
    NEXT(VALUE, int, parts)

#define ARGUMENTS_factor_entries(FIRST, NEXT)                                                                \
    FIRST(OUT, real, values)                                                                                 \
    NEXT(IN, real, R)                                                                                        \
    NEXT(TABLE, int, col)                                                                                    \
    NEXT(IN, real, B)                                                                                        \
    NEXT(VALUE, long, entries)                                                                               \
    NEXT(VALUE, real, mean)                                                                                  \
    NEXT(VALUE, real, rest)                                                                                  \
    NEXT(VALUE, int, biases)

#define ARGUMENTS_factor_padded(FIRST, NEXT)                                                                 \
    FIRST(OUT, real, to)                                                                                     \
    NEXT(IN, real, from)                                                                                     \
    NEXT(VALUE, long, numbers)                                                                               \
    NEXT(VALUE, int, ones)

#ifndef KI_HOST
#include "dialect/group_sum.h"

#ifdef WIDTH
/* A row's penalty. */
DEVICE_FN real penalty_of(__global const long *row_start, long u, real l2, int counted) {
    return counted ? l2 * (real)(row_start[u + 1] - row_start[u]) : l2;
}

/* A thread has BLOCK numbers of a row at a time, VS apart from each other. */
#define BLOCK ((WIDTH + VS - 1) / VS < 8 ? (WIDTH + VS - 1) / VS : 8)
#define EACH_BLOCK(at, n) for (int at = lane; at < (n); at += BLOCK * VS)
#define EACH_OF_BLOCK(b) _Pragma("unroll") for (int b = 0; b < BLOCK; b++)

/* Numbers of (gram + l2) v: a block, from `at` on, as far as it lies within WIDTH. A number of v is loaded
 * once for all of it. terms: WIDTH, or 0 for l2 v alone. */
DEVICE_FN void own_products(real *products, __global const real *gram, __global const real *v, int at,
                            real l2, int terms) {
    int column[BLOCK];
    EACH_OF_BLOCK(b) {
        column[b] = at + b * VS < WIDTH ? at + b * VS : WIDTH - 1;
        products[b] = l2 * v[column[b]];
    }
#ifdef GRAM
    for (int i = 0; i < terms; i++) {
        const real x = v[i];
        EACH_OF_BLOCK(b) products[b] += gram[(long)i * WIDTH + column[b]] * x;
    }
#endif
}

/* The residual R and the direction P where X is; Q is what the entries want of it. A row without entries has
 * the solution 0. */
__kernel GROUP_OF(BS) void factor_begin(PARAMETERS(factor_step)) {
    const int lane = (int)get_local_id(0) % VS;
    const long in_group = BS / VS, each = in_group * (long)get_num_groups(0);
    for (long u = in_group * (long)get_group_id(0) + (int)get_local_id(0) / VS; u < rows; u += each) {
        const int empty = row_start[u] == row_start[u + 1];
        const real own = penalty_of(row_start, u, l2, counted);
        __global real *x = X + u * WIDTH, *r = R + u * PITCH;
        EACH_BLOCK(at, PITCH) {
            real products[BLOCK];
            own_products(products, gram, x, at, own, WIDTH);
            EACH_OF_BLOCK(b) {
                const int j = at + b * VS;
                if (j >= PITCH) continue;
                r[j] = empty || j >= WIDTH ? REAL(0.0) : Q[u * PITCH + j] - products[b];
                P[u * PITCH + j] = r[j];
            }
        }
        for (int j = lane; empty && j < WIDTH; j += VS) x[j] = REAL(0.0);
    }
}

/* A sum of squares of smaller numbers has lost digits, for they are too small for the type: a step made of it
 * goes anywhere. */
#define LEAST_SQUARE (REAL(1e8) * REAL_SMALLEST)

/* One step of all rows. A row that is done rests: its residual is 0. */
__kernel GROUP_OF(BS) void factor_step(PARAMETERS(factor_step)) {
    LOCAL real scratch[2 * BS];
    const int lane = (int)get_local_id(0) % VS;
    const long in_group = BS / VS, each = in_group * (long)get_num_groups(0);
    for (long first = in_group * (long)get_group_id(0); first < rows; first += each) {
        const long u = first + (int)get_local_id(0) / VS, row = u < rows ? u : 0, at = row * PITCH;
        const int there = u < rows;
        __global real *x = X + row * WIDTH, *r = R + at, *p = P + at, *q = Q + at;
        const real own = there ? penalty_of(row_start, u, l2, counted) : REAL(0.0);
        real sums[2] = {REAL(0.0), REAL(0.0)}; /* p.q and r.r */
        if (there) EACH_BLOCK(at, WIDTH) {
                real products[BLOCK];
                own_products(products, gram, p, at, own, WIDTH);
                EACH_OF_BLOCK(b) {
                    const int j = at + b * VS;
                    if (j >= WIDTH) continue;
                    q[j] += products[b];
                    sums[0] += p[j] * q[j];
                    sums[1] += r[j] * r[j];
                }
            }
        group_sums(sums, 2, scratch);
        const real rho = sums[1], length = rho / sums[0];
        const int goes_on = there && rho > LEAST_SQUARE && sums[0] > REAL_SMALLEST && length <= REAL(1e30);
        sums[0] = REAL(0.0);
        for (int j = lane; there && j < WIDTH; j += VS) {
            if (goes_on) x[j] += length * p[j];
            r[j] = goes_on ? r[j] - length * q[j] : REAL(0.0);
            sums[0] += r[j] * r[j];
        }
        group_sums(sums, 1, scratch);
        for (int j = lane; goes_on && j < WIDTH; j += VS) p[j] = r[j] + sums[0] / rho * p[j];
    }
}

/* Twice the parts of the objective that lie in the rows alone, added up by each group: parts 1 x.(gram x), 2
 * the penalty. */
__kernel GROUP_OF(BS) void factor_own(PARAMETERS(factor_own)) {
    LOCAL wide tree[BS];
    const int lane = (int)get_local_id(0) % VS;
    const long in_group = BS / VS, each = in_group * (long)get_num_groups(0);
    wide sum = 0;
    for (long u = in_group * (long)get_group_id(0) + (int)get_local_id(0) / VS; u < rows; u += each) {
        __global const real *x = X + u * WIDTH;
        const real own = parts & 2 ? penalty_of(row_start, u, l2, counted) : REAL(0.0);
        EACH_BLOCK(at, WIDTH) {
            /* in X's own type, as in a step: to convert each term takes time, and the sum over all is in
             * double */
            real products[BLOCK];
            own_products(products, gram, x, at, own, parts & 1 ? WIDTH : 0);
            EACH_OF_BLOCK(b) if (at + b * VS < WIDTH) sum += (wide)products[b] * (wide)x[at + b * VS];
        }
    }
    sum = group_total(sum, tree);
    if (get_local_id(0) == 0) sums[get_group_id(0)] = sum;
}
#endif

#ifdef COLUMNS
/* Entries less the mean, mean + rest, and their column's bias: what is left is a model without them. */
__kernel void factor_entries(PARAMETERS(factor_entries)) {
    FOR_EACH(e, entries) {
        const real bias = biases ? B[(long)col[e] * COLUMNS + COLUMNS - 1] : REAL(0.0);
        values[e] = R[e] - mean - rest - bias;
    }
}

/* Rows with zeros behind them, and with ones in the place of biases. */
__kernel void factor_padded(PARAMETERS(factor_padded)) {
    FOR_EACH(i, numbers) {
        const index_t row = i / PITCH, j = i - row * PITCH;
        to[i] = j >= COLUMNS ? REAL(0.0) : ones && j == COLUMNS - 1 ? REAL(1.0) : from[row * COLUMNS + j];
    }
}
#endif

/* The variants that differ in text, as the tests build them. */
// build WIDTH=7 PITCH=8 VS=8 BS=128
// build WIDTH=7 PITCH=8 VS=8 BS=128 GRAM
// build WIDTH=65 PITCH=68 VS=32 BS=128
// build WIDTH=100 PITCH=100 VS=8 BS=128 GRAM
// build COLUMNS=7 PITCH=8
#endif
