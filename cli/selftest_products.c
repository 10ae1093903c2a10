/* Products with X, its Gram matrix and sums of its columns.
 *
 *   product   w = alpha X^T (v .* (X y)) + beta z: of one column, of eight, and of rows that are long
 *   multiply  X y and X^T v, of one column and of twenty
 *   gram      X^T diag(v) X: whole, of few columns, and its diagonal */
#include <math.h>

#include "selftest_kinds.h"

enum { SEVERAL = 8, MANY = 20, NARROW = 24 };

static const double alpha = 1.25, beta = -0.5;

/* alpha A^T (v .* (A Y)) + beta Z, Y and Z cols x k */
static void expect_chain(struct bench *b, const double *A, int rows, int cols, int k, const double *v,
                         const double *Y, const double *Z, int at) {
    for (int j = 0; j < cols; j++)
        for (int c = 0; c < k; c++) bench_term(b, at + j * k + c, beta * Z[j * k + c]);
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < k; c++) {
            double product = 0, size = 0;
            for (int j = 0; j < cols; j++) {
                product += A[i * cols + j] * Y[j * k + c];
                size += fabs(A[i * cols + j] * Y[j * k + c]);
            }
            for (int j = 0; j < cols; j++) {
                const double factor = alpha * A[i * cols + j] * v[i];
                bench_sized(b, at + j * k + c, factor * product, factor * size);
            }
        }
}

static void chain_of(struct bench *b, kiln_matrix *A, const double *values, int rows, int cols, int k,
                     const double *Y, const double *Z) {
    kiln_matrix *w = bench_empty(b, cols, k), *v = bench_dense(b, rows, 1, b->p->v),
                *y = bench_dense(b, cols, k, Y), *z = bench_dense(b, cols, k, Z);
    RUN(b, kiln_mmchain(w, alpha, A, v, y, beta, z));
    expect_chain(b, values, rows, cols, k, b->p->v, Y, Z, bench_take(b, w));
}

static void product(struct bench *b) {
    chain_of(b, bench_X(b), b->p->X[0], ROWS, COLS, 1, b->p->y, b->p->z);
}

static void several(struct bench *b) {
    chain_of(b, bench_X(b), b->p->X[0], ROWS, COLS, SEVERAL, b->p->more, b->p->more + COLS * SEVERAL);
}

/* As many sums follow one another as a row is long: sizes are as much larger. */
static void wide(struct bench *b) {
    const double *A = b->p->more, *y = b->p->X[0] + 1, *z = b->p->X[0] + 1 + WIDE;
    chain_of(b, bench_dense(b, WIDE_ROWS, WIDE, A), A, WIDE_ROWS, WIDE, 1, y, z);
    for (int e = 0; e < b->answers; e++) b->terms[e] *= (double)(WIDE_ROWS + WIDE) / (ROWS + COLS);
}

static void multiply_of(struct bench *b, kiln_transpose op, int k, const double *values) {
    const int rows = op == KILN_PLAIN ? ROWS : COLS, cols = ROWS + COLS - rows;
    kiln_matrix *X = bench_X(b), *B = bench_dense(b, cols, k, values), *Y = bench_empty(b, rows, k);
    RUN(b, kiln_multiply(Y, 1, op, X, B, 0, NULL));
    const int at = bench_take(b, Y);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            for (int c = 0; c < k; c++) {
                const int to = op == KILN_PLAIN ? i : j, from = i + j - to;
                bench_term(b, at + to * k + c, b->p->X[i][j] * values[from * k + c]);
            }
}

static void multiply(struct bench *b) {
    multiply_of(b, KILN_PLAIN, 1, b->p->y);
}

static void transposed(struct bench *b) {
    multiply_of(b, KILN_TRANSPOSED, 1, b->p->v);
}

static void columns(struct bench *b) {
    multiply_of(b, KILN_PLAIN, MANY, b->p->more);
}

static void columns_transposed(struct bench *b) {
    multiply_of(b, KILN_TRANSPOSED, MANY, b->p->more);
}

static void gram_of(struct bench *b, kiln_matrix *A, const double *values, int cols) {
    kiln_matrix *G = bench_empty(b, cols, cols), *v = bench_dense(b, ROWS, 1, b->p->v);
    RUN(b, kiln_gram(G, NULL, A, v, NULL));
    const int at = bench_take(b, G);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < cols; j++)
            for (int c = 0; c < cols && values[i * cols + j] != 0; c++)
                bench_term(b, at + j * cols + c, values[i * cols + j] * b->p->v[i] * values[i * cols + c]);
}

static void gram(struct bench *b) {
    gram_of(b, bench_X(b), b->p->X[0], COLS);
}

static void narrow(struct bench *b) {
    gram_of(b, bench_dense(b, ROWS, NARROW, b->p->more), b->p->more, NARROW);
}

static void diagonal(struct bench *b) {
    kiln_matrix *d = bench_empty(b, COLS, 1), *X = bench_X(b), *v = bench_dense(b, ROWS, 1, b->p->v);
    RUN(b, kiln_gram_diagonal(d, X, v));
    const int at = bench_take(b, d);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) bench_term(b, at + j, b->p->v[i] * b->p->X[i][j] * b->p->X[i][j]);
}

const struct kind product_kinds[] = {
    {"mmchain", "product", product, true, true},
    {"mmchain", "products", several, true, true},
    {"mmchain", "wide rows", wide, false, true},
    {"multiply", "multiply", multiply, true, true},
    {"multiply", "transposed", transposed, true, true},
    {"multiply", "columns", columns, true, true},
    {"multiply", "columns, t.", columns_transposed, true, false},
    {"gram", "gram", gram, false, true},
    {"gram", "narrow gram", narrow, false, true},
    {"gram_diagonal", "diagonal", diagonal, true, true},
    {0},
};
