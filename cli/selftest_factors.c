/* Products of factors that are sampled at a sparse X, the least-squares problem of each row, and Dirichlet
 * expectations. */
#include <math.h>

#include "selftest_kinds.h"

enum { TOPICS = 5, STEPS = 12 };

static const double l2 = 1;

static const double *left(const struct problem *p, int i) {
    return p->more + i * FACTORS;
}

static const double *right(const struct problem *p, int j) {
    return p->more + (ROWS + j) * FACTORS;
}

/* x_ij - a_i . b_j; *size: of its terms */
static double residual_at(const struct problem *p, int i, int j, double *size) {
    double sum = p->X[i][j];
    *size = fabs(sum);
    for (int f = 0; f < FACTORS; f++) {
        sum -= left(p, i)[f] * right(p, j)[f];
        *size += fabs(left(p, i)[f] * right(p, j)[f]);
    }
    return sum;
}

static kiln_sample new_sample(struct bench *b) {
    return (kiln_sample){.size = sizeof(kiln_sample),
                         .kind = KILN_SAMPLE_RESIDUAL,
                         .S = bench_X(b),
                         .A = bench_dense(b, ROWS, FACTORS, left(b->p, 0)),
                         .B = bench_dense(b, COLS, FACTORS, right(b->p, 0))};
}

static void sampled(struct bench *b) {
    double sum = 0, size;
    const kiln_sample sample = new_sample(b);
    kiln_matrix *P = bench_like(b, sample.S);
    RUN(b, kiln_sddmm(P, &sum, 1, &sample, 0));
    int at = bench_take(b, P);
    const int whole = bench_numbers(b, &sum, 1);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) {
            if (b->p->X[i][j] == 0) continue;
            const double residual = residual_at(b->p, i, j, &size);
            bench_sized(b, at++, residual, size);
            bench_sized(b, whole, residual * residual, size * size);
        }
}

static void fused_of(struct bench *b, kiln_transpose op) {
    const kiln_sample sample = new_sample(b);
    kiln_matrix *Y = bench_empty(b, op == KILN_PLAIN ? ROWS : COLS, FACTORS);
    RUN(b, kiln_sddmm_multiply(Y, NULL, 1, op, &sample, 0, NULL));
    const int at = bench_take(b, Y);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++) {
            double size, residual = residual_at(b->p, i, j, &size);
            const double *of = op == KILN_PLAIN ? right(b->p, j) : left(b->p, i);
            for (int f = 0; f < FACTORS && b->p->X[i][j] != 0; f++)
                bench_sized(b, at + (op == KILN_PLAIN ? i : j) * FACTORS + f, residual * of[f], size * of[f]);
        }
}

static void fused(struct bench *b) {
    fused_of(b, KILN_PLAIN);
}

static void fused_transposed(struct bench *b) {
    fused_of(b, KILN_TRANSPOSED);
}

/* a_i = sum_j x_ij y_j / (sum_j y_j^2 + l2) over X's entries: one factor */
static void one_factor(struct bench *b) {
    kiln_matrix *A = bench_empty(b, ROWS, 1);
    const kiln_factor_rows rows = {.size = sizeof rows,
                                   .R = bench_X(b),
                                   .B = bench_dense(b, COLS, 1, b->p->y),
                                   .l2 = l2,
                                   .solver = KILN_FACTOR_CHOLESKY};
    RUN(b, kiln_factor_solve(A, &rows));
    const int at = bench_take(b, A);
    for (int i = 0; i < ROWS; i++) {
        double curvature = l2;
        for (int j = 0; j < COLS; j++) curvature += b->p->X[i][j] != 0 ? b->p->y[j] * b->p->y[j] : 0;
        for (int j = 0; j < COLS; j++) bench_term(b, at + i, b->p->X[i][j] * b->p->y[j] / curvature);
    }
}

/* H a - g of a row, H = sum_j b_j b_j^T + l2, g = sum_j x_ij b_j, is no larger than rounding makes it,
 * |h_fc| at most the root of h_ff h_cc. */
static void judge_row(struct bench *b, int i, const double *a) {
    double H[FACTORS] = {0}, rest[FACTORS], sizes[FACTORS] = {0};
    for (int f = 0; f < FACTORS; f++) {
        rest[f] = l2 * a[f];
        H[f] = l2;
    }
    for (int j = 0; j < COLS; j++) {
        const double *of = right(b->p, j), x = b->p->X[i][j];
        double product = -x;
        for (int f = 0; f < FACTORS; f++) product += of[f] * a[f];
        for (int f = 0; f < FACTORS && x != 0; f++) {
            rest[f] += product * of[f];
            sizes[f] += fabs(x * of[f]);
            H[f] += of[f] * of[f];
        }
    }
    for (int f = 0; f < FACTORS; f++) {
        for (int c = 0; c < FACTORS; c++) sizes[f] += sqrt(H[f] * H[c]) * fabs(a[c]);
        bench_judge(b, fabs(rest[f]), bench_allowed(b->type) * sizes[f]);
    }
}

static void solve_rows(struct bench *b, kiln_factor_solver solver) {
    double a[ROWS * FACTORS];
    kiln_matrix *A = bench_empty(b, ROWS, FACTORS);
    const kiln_factor_rows rows = {.size = sizeof rows,
                                   .R = bench_X(b),
                                   .B = bench_dense(b, COLS, FACTORS, right(b->p, 0)),
                                   .l2 = l2,
                                   .solver = solver,
                                   .steps = STEPS};
    RUN(b, kiln_factor_solve(A, &rows));
    const int at = bench_take(b, A);
    if (b->status != KILN_OK) return;
    for (int e = 0; e < ROWS * FACTORS; e++) a[e] = b->got[at + e];
    b->answers = at; /* what is judged is what they leave */
    for (int i = 0; i < ROWS; i++) judge_row(b, i, a + i * FACTORS);
}

static void by_cholesky(struct bench *b) {
    solve_rows(b, KILN_FACTOR_CHOLESKY);
}

static void by_steps(struct bench *b) {
    solve_rows(b, KILN_FACTOR_CG);
}

/* x >= 1/4; psi(x) = psi(x + 1) - 1 / x, and from 12 on by its asymptotic series; *size: of the terms */
static double digamma(double x, double *size) {
    double less = 0;
    while (x < 12) {
        less += 1 / x;
        x += 1;
    }
    const double r = 1 / (x * x);
    const double psi =
        log(x) - 0.5 / x - r * (1. / 12 - r * (1. / 120 - r * (1. / 252 - r * (1. / 240 - r / 132))));
    *size = less + psi;
    return psi - less;
}

/* Each row of G a distribution: T = exp(E - max E), E = psi(G) - psi(sum G), and the bound. */
static void expect_row(struct bench *b, const double *G, double prior, int at, int whole) {
    double E[TOPICS], sum = 0, largest = -HUGE_VAL, size, most = 0;
    for (int c = 0; c < TOPICS; c++) sum += G[c];
    const double of_sum = digamma(sum, &most);
    for (int c = 0; c < TOPICS; c++) {
        E[c] = digamma(G[c], &size) - of_sum;
        most = fmax(most, size);
        largest = fmax(largest, E[c]);
    }
    for (int c = 0; c < TOPICS; c++) {
        bench_sized(b, at + c, exp(E[c] - largest), exp(E[c] - largest) * (1 + 4 * most));
        bench_sized(b, whole, (prior - G[c]) * E[c] + lgamma(G[c]),
                    (prior + G[c]) * 2 * most + 1 + fabs(lgamma(G[c])));
    }
    bench_sized(b, whole, -lgamma(sum), 1 + fabs(lgamma(sum)));
}

static void expectations(struct bench *b) {
    double parameters[COLS * TOPICS], priors[TOPICS], bound = 0;
    for (int e = 0; e < COLS * TOPICS; e++) parameters[e] = 0.25 + 4 * fabs(b->p->more[e]);
    for (int c = 0; c < TOPICS; c++) priors[c] = 0.5;
    const kiln_dirichlet of = {.size = sizeof of,
                               .G = bench_dense(b, COLS, TOPICS, parameters),
                               .T = bench_empty(b, COLS, TOPICS),
                               .prior = bench_dense(b, 1, TOPICS, priors),
                               .rows = 1};
    RUN(b, kiln_dirichlet_expect(&of, &bound, NULL));
    const int at = bench_take(b, of.T), whole = bench_numbers(b, &bound, 1);
    for (int i = 0; i < COLS; i++) expect_row(b, parameters + i * TOPICS, priors[0], at + i * TOPICS, whole);
}

const struct kind factor_kinds[] = {
    {"sddmm", "sampled", sampled, true, false},
    {"sddmm_multiply", "fused", fused, true, false},
    {"sddmm_multiply", "fused, t.", fused_transposed, true, false},
    {"factor_solve", "one factor", one_factor, true, false},
    {"factor_solve", "factors", by_cholesky, true, false},
    {"factor_solve", "steps", by_steps, true, false},
    {"dirichlet_expect", "expectations", expectations, false, true},
    {0},
};
