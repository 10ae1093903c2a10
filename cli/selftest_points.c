/* Points: the nearest of several centres, distances, and a layout's step. */
#include <math.h>

#include "selftest_kinds.h"

enum { CENTRES = 5, PLANE = 2 };

static double squared_distance(const double *x, const double *y, int n, double *size) {
    double sum = 0;
    *size = 0;
    for (int j = 0; j < n; j++) {
        sum += (x[j] - y[j]) * (x[j] - y[j]);
        *size += (fabs(x[j]) + fabs(y[j])) * (fabs(x[j]) + fabs(y[j]));
    }
    return sum;
}

struct places {
    int labels, distances, sums, totals;
};

static void expect_nearest(struct bench *b, const double *C, struct places at) {
    for (int i = 0; i < ROWS; i++) {
        const double *x = b->p->X[i];
        double size, least = squared_distance(x, C, COLS, &size);
        int label = 0;
        for (int c = 1; c < CENTRES; c++) {
            double other, d = squared_distance(x, C + c * COLS, COLS, &other);
            if (d >= least) continue;
            least = d;
            size = other;
            label = c;
        }
        bench_sized(b, at.labels + i, label, 0); /* exactly */
        bench_sized(b, at.distances + i, least, size);
        for (int j = 0; j < COLS; j++) bench_term(b, at.sums + label * COLS + j, x[j]);
        bench_sized(b, at.totals + 2 * label, 1, 0);
        bench_sized(b, at.totals + 2 * label + 1, least, size);
    }
}

static void nearest(struct bench *b) {
    const double *centres = b->p->more;
    double totals[2 * CENTRES] = {0};
    kiln_matrix *X = bench_X(b), *C = bench_dense(b, CENTRES, COLS, centres);
    const kiln_assignment result = {.size = sizeof result,
                                    .labels = bench_empty(b, ROWS, 1),
                                    .distances = bench_empty(b, ROWS, 1),
                                    .sums = bench_empty(b, CENTRES, COLS),
                                    .totals = totals};
    RUN(b, kiln_assign(&result, X, C, NULL));
    struct places at;
    at.labels = bench_take(b, result.labels);
    at.distances = bench_take(b, result.distances);
    at.sums = bench_take(b, result.sums);
    at.totals = bench_numbers(b, totals, 2 * CENTRES);
    expect_nearest(b, centres, at);
}

static void distances(struct bench *b) {
    const double *A = b->p->more, *Z = b->p->more + ROWS * FACTORS;
    double size;
    kiln_matrix *X = bench_dense(b, ROWS, FACTORS, A), *points = bench_dense(b, CENTRES, FACTORS, Z),
                *D = bench_empty(b, ROWS, CENTRES);
    RUN(b, kiln_distances(D, X, points));
    const int at = bench_take(b, D);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < CENTRES; c++)
            bench_term(b, at + i * CENTRES + c,
                       sqrt(squared_distance(A + i * FACTORS, Z + c * FACTORS, FACTORS, &size)));
}

/* The pair's parts of R, of the four sums, and of the points' stress. */
static void expect_pair(struct bench *b, int i, int j, const double *Y, double delta, const int *at) {
    double size;
    const double d = sqrt(squared_distance(Y + i * PLANE, Y + j * PLANE, PLANE, &size));
    const double stress = (delta - d) * (delta - d), most = (delta + d) * (delta + d);
    const double parts[] = {stress, d * d, d, delta * d};
    for (int c = 0; c < PLANE && d > 0; c++) {
        const double towards = delta / d * (Y[i * PLANE + c] - Y[j * PLANE + c]);
        bench_term(b, at[0] + i * PLANE + c, towards);
        bench_term(b, at[0] + j * PLANE + c, -towards);
    }
    for (int s = 0; s < 4; s++) bench_sized(b, at[1] + s, parts[s], s ? parts[s] : most);
    bench_sized(b, at[2] + i, stress, most);
    bench_sized(b, at[2] + j, stress, most);
}

/* The layout has as many points as X has columns, in the plane. */
static void layout(struct bench *b) {
    static double D[COLS * COLS];
    const double *Y = b->p->more;
    for (int e = 0; e < COLS * COLS; e++) D[e] = fabs(b->p->more[COLS * PLANE + e]);
    const kiln_guttman step = {.size = sizeof step,
                               .R = bench_empty(b, COLS, PLANE),
                               .U = bench_empty(b, COLS, PLANE),
                               .sums = bench_scalars(b, 1, 4, NULL),
                               .points = bench_empty(b, COLS, 1),
                               .Y = bench_dense(b, COLS, PLANE, Y),
                               .D = bench_dense(b, COLS, COLS, D)};
    RUN(b, kiln_guttman_step(&step));
    const int at[] = {bench_take(b, step.R), bench_take(b, step.sums), bench_take(b, step.points)};
    for (int i = 0; i < COLS; i++)
        for (int j = i + 1; j < COLS; j++) expect_pair(b, i, j, Y, D[i * COLS + j], at);
}

const struct kind point_kinds[] = {
    {"assign", "nearest", nearest, true, true},
    {"distances", "distances", distances, false, true},
    {"guttman", "layout", layout, false, true},
    {0},
};
