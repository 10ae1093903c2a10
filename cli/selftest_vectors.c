/* Work on vectors: sums of columns, elements, scalars that stay on the device, rows that are picked, and
 * many vectors at once. */
#include <math.h>

#include "selftest_kinds.h"

enum { WIDTH = 5 };

static const int64_t picks[] = {300, 0, 7, 7, 150};
enum { PICKS = sizeof picks / sizeof *picks };

static void sums(struct bench *b) {
    double got[COLS] = {0};
    kiln_matrix *X = bench_X(b), *v = bench_dense(b, ROWS, 1, b->p->v);
    RUN(b, kiln_dot(got, X, v));
    const int at = bench_numbers(b, got, COLS);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) bench_term(b, at + j, b->p->X[i][j] * b->p->v[i]);
}

static double squares_of_column(const struct problem *p, int j) {
    double sum = 0;
    for (int i = 0; i < ROWS; i++) sum += p->X[i][j] * p->X[i][j];
    return sum;
}

static void norms(struct bench *b) {
    double got[3][COLS] = {{0}};
    kiln_matrix *X = bench_X(b);
    RUN(b, kiln_norm(got[0], X, KILN_NORM_1));
    RUN(b, kiln_norm(got[1], X, KILN_NORM_2));
    RUN(b, kiln_norm(got[2], X, KILN_NORM_MAX));
    const int at = bench_numbers(b, got[0], 3 * COLS);
    for (int j = 0; j < COLS; j++) {
        double most = 0;
        for (int i = 0; i < ROWS; i++) {
            bench_term(b, at + j, fabs(b->p->X[i][j]));
            most = fmax(most, fabs(b->p->X[i][j]));
        }
        bench_term(b, at + COLS + j, sqrt(squares_of_column(b->p, j)));
        bench_sized(b, at + 2 * COLS + j, most, 0); /* exactly */
    }
}

/* 1.25 v - 0.5 u, v u, and e^v. */
static void elements(struct bench *b) {
    const double a = 1.25, c = -0.5, *v = b->p->v, *u = b->p->more;
    kiln_matrix *V = bench_dense(b, ROWS, 1, v), *U = bench_dense(b, ROWS, 1, u),
                *W = bench_empty(b, ROWS, 1);
    RUN(b, kiln_combine(W, &a, V, &c, U));
    const int combined = bench_take(b, W);
    RUN(b, kiln_times(W, V, U));
    const int product = bench_take(b, W);
    RUN(b, kiln_map(W, KILN_MAP_EXP, V));
    const int power = bench_take(b, W);
    for (int i = 0; i < ROWS; i++) {
        bench_sized(b, combined + i, a * v[i] + c * u[i], fabs(a * v[i]) + fabs(c * u[i]));
        bench_term(b, product + i, v[i] * u[i]);
        bench_term(b, power + i, exp(v[i]));
    }
}

/* R = v.v, sum v^2 and ||v||; then (2 v.v / ||v||) v - u, without a number on the host. */
static void scalars(struct bench *b) {
    const double *v = b->p->v, *u = b->p->more, minus = -1;
    double squares = 0;
    kiln_matrix *V = bench_dense(b, ROWS, 1, v), *U = bench_dense(b, ROWS, 1, u),
                *W = bench_empty(b, ROWS, 1), *R = bench_scalars(b, 3, 1, NULL);
    RUN(b, kiln_dot_into(R, 0, V, V));
    RUN(b, kiln_times(W, V, V));
    RUN(b, kiln_sum_into(R, 1, W));
    RUN(b, kiln_norm_into(R, 2, V, KILN_NORM_2));
    const kiln_ratio ratio = {.factor = 2, .over = R, .under = R, .over_row = 0, .under_row = 2};
    RUN(b, kiln_combine_from(W, &ratio, V, NULL, NULL));
    RUN(b, kiln_combine(W, (const double[]){1}, W, &minus, U));
    const int at = bench_take(b, R), vector = bench_take(b, W);
    for (int i = 0; i < ROWS; i++) squares += v[i] * v[i];
    bench_term(b, at, squares);
    bench_term(b, at + 1, squares);
    bench_term(b, at + 2, sqrt(squares));
    for (int i = 0; i < ROWS; i++) {
        const double scaled = 2 * sqrt(squares) * v[i];
        bench_sized(b, vector + i, scaled - u[i], fabs(scaled) + fabs(u[i]));
    }
}

static void rows(struct bench *b) {
    kiln_matrix *X = bench_X(b), *R = bench_empty(b, PICKS, COLS);
    RUN(b, kiln_rows(R, X, picks));
    const int at = bench_take(b, R);
    for (int i = 0; i < PICKS; i++)
        for (int j = 0; j < COLS; j++) bench_sized(b, at + i * COLS + j, b->p->X[picks[i]][j], 0);
}

/* Each row of X has its sum, its variance and the place of its largest number expected; the entries of a
 * sparse row are the vector. */
static void expect_reductions(struct bench *b, int at) {
    for (int i = 0; i < ROWS; i++) {
        double row[COLS], sum = 0;
        int count = 0, largest = 0;
        for (int j = 0; j < COLS; j++)
            if (b->format == KILN_DENSE || b->p->X[i][j] != 0) row[count++] = b->p->X[i][j];
        for (int k = 0; k < count; k++) {
            bench_term(b, at + i, row[k]);
            sum += row[k];
            if (row[k] > row[largest]) largest = k;
        }
        for (int k = 0; k < count; k++) {
            const double from = row[k] - sum / count, size = fabs(row[k]) + fabs(sum / count);
            bench_sized(b, at + ROWS + i, from * from / count, size * size / count);
        }
        bench_sized(b, at + 2 * ROWS + i, largest, 0);
    }
}

static void reductions(struct bench *b) {
    static const kiln_batch_kind kinds[] = {KILN_BATCH_SUM, KILN_BATCH_VARIANCE, KILN_BATCH_ARGMAX};
    kiln_batch *batch = NULL;
    kiln_matrix *X = bench_X(b), *result = bench_empty(b, ROWS, 1);
    int at = b->answers;
    RUN(b, kiln_batch_rows(&batch, X));
    for (int kind = 0; kind < 3; kind++) {
        RUN(b, kiln_batch_reduce(result, kinds[kind], X, batch));
        bench_take(b, result);
    }
    kiln_batch_free(batch);
    expect_reductions(b, at);
}

static void scaled(struct bench *b) {
    const double *A = b->p->more;
    kiln_matrix *X = bench_dense(b, ROWS, WIDTH, A), *scale = bench_dense(b, ROWS, 1, b->p->v);
    RUN(b, kiln_batch_scale(X, X, scale, NULL));
    const int at = bench_take(b, X);
    for (int e = 0; e < ROWS * WIDTH; e++) bench_term(b, at + e, A[e] * b->p->v[e / WIDTH]);
}

const struct kind vector_kinds[] = {
    {"dot", "sums", sums, false, true},
    {"norm", "norms", norms, false, true},
    {"combine", "elements", elements, false, true},
    {"combine_from", "scalars", scalars, false, true},
    {"rows", "rows", rows, true, true},
    {"batch_reduce", "reductions", reductions, true, true},
    {"batch_scale", "scaled", scaled, false, true},
    {0},
};
