/* Losses of linear models, products with their Hessians, conjugate gradient, and a fit by Newton's method.
 *
 * A probability p(eta) moves by no more than the error of eta, whose size is that of its terms. */
#include <math.h>

#include "selftest_kinds.h"

enum { CLASSES = 3 };

static const double intercept = 0.25, l2 = 0.5;

static double logistic(double eta) {
    return 1 / (1 + exp(-eta));
}

static double target(const struct problem *p, int i) {
    return p->v[i] > 0;
}

static kiln_matrix *new_targets(struct bench *b) {
    double targets[ROWS];
    for (int i = 0; i < ROWS; i++) targets[i] = target(b->p, i);
    return bench_dense(b, ROWS, 1, targets);
}

/* eta = x_i . w + first, w every `step`-th number; *size: of its terms */
static double eta_of(const struct problem *p, int i, const double *w, int step, double first, double *size) {
    double eta = first;
    *size = fabs(first);
    for (int j = 0; j < COLS; j++) {
        eta += p->X[i][j] * w[j * step];
        *size += fabs(p->X[i][j] * w[j * step]);
    }
    return eta;
}

static void gradient(struct bench *b) {
    const struct problem *p = b->p;
    double value = 0, size;
    const kiln_loss loss = {.size = sizeof loss, .kind = KILN_LOSS_LOGISTIC, .y = new_targets(b)};
    kiln_matrix *X = bench_X(b), *w = bench_dense(b, COLS, 1, p->y),
                *first = bench_dense(b, 1, 1, &intercept), *G = bench_empty(b, COLS, 1),
                *gb = bench_empty(b, 1, 1), *C = bench_empty(b, ROWS, 1);
    RUN(b, kiln_loss_gradient(&value, G, gb, C, &loss, X, w, first));
    const int at = bench_take(b, G), sum = bench_take(b, gb), curved = bench_take(b, C),
              whole = bench_numbers(b, &value, 1);
    for (int i = 0; i < ROWS; i++) {
        const double eta = eta_of(p, i, p->y, 1, intercept, &size), mean = logistic(eta), t = target(p, i);
        for (int j = 0; j < COLS; j++)
            bench_sized(b, at + j, p->X[i][j] * (mean - t), p->X[i][j] * (mean + t + size));
        bench_sized(b, sum, mean - t, mean + t + size);
        bench_sized(b, curved + i, mean * (1 - mean), mean + size);
        bench_sized(b, whole, log1p(exp(eta)) - t * eta, 1 + log1p(exp(eta)) + 2 * size);
    }
}

/* With C = v, which need not be positive. */
static void hessian(struct bench *b) {
    const struct problem *p = b->p;
    double size;
    const kiln_loss loss = {.size = sizeof loss, .kind = KILN_LOSS_LOGISTIC};
    kiln_matrix *X = bench_X(b), *C = bench_dense(b, ROWS, 1, p->v), *P = bench_dense(b, COLS, 1, p->y),
                *pb = bench_dense(b, 1, 1, &intercept), *Z = bench_dense(b, COLS, 1, p->z),
                *Q = bench_empty(b, COLS, 1), *qb = bench_empty(b, 1, 1);
    RUN(b, kiln_loss_hessian(Q, qb, &loss, C, X, P, pb, l2, Z));
    const int at = bench_take(b, Q), sum = bench_take(b, qb);
    for (int j = 0; j < COLS; j++) bench_term(b, at + j, l2 * p->z[j]);
    for (int i = 0; i < ROWS; i++) {
        const double eta = eta_of(p, i, p->y, 1, intercept, &size);
        for (int j = 0; j < COLS; j++)
            bench_sized(b, at + j, p->X[i][j] * p->v[i] * eta, p->X[i][j] * p->v[i] * size);
        bench_sized(b, sum, p->v[i] * eta, p->v[i] * size);
    }
}

static void expect_softmax(struct bench *b, const double *W, int at, int whole) {
    for (int i = 0; i < ROWS; i++) {
        double eta[CLASSES], size, largest = 0, sum = 0;
        for (int c = 0; c < CLASSES; c++) {
            eta[c] = eta_of(b->p, i, W + c, CLASSES, 0, &size);
            largest = fmax(largest, size);
            sum += exp(eta[c]);
        }
        for (int c = 0; c < CLASSES; c++) {
            const double mean = exp(eta[c]) / sum, t = i % CLASSES == c;
            for (int j = 0; j < COLS; j++)
                bench_sized(b, at + j * CLASSES + c, b->p->X[i][j] * (mean - t),
                            b->p->X[i][j] * (mean + t + 2 * largest));
        }
        bench_sized(b, whole, log(sum) - eta[i % CLASSES], 1 + fabs(log(sum)) + 2 * largest);
    }
}

static void softmax(struct bench *b) {
    double value = 0, classes[ROWS];
    for (int i = 0; i < ROWS; i++) classes[i] = i % CLASSES;
    const kiln_loss loss = {
        .size = sizeof loss, .kind = KILN_LOSS_SOFTMAX, .y = bench_dense(b, ROWS, 1, classes)};
    kiln_matrix *X = bench_X(b), *W = bench_dense(b, COLS, CLASSES, b->p->more),
                *G = bench_empty(b, COLS, CLASSES);
    RUN(b, kiln_loss_gradient(&value, G, NULL, NULL, &loss, X, W, NULL));
    const int at = bench_take(b, G), whole = bench_numbers(b, &value, 1);
    expect_softmax(b, b->p->more, at, whole);
}

/* A Poisson model at eta = v: its means, and each row's deviance, Pearson's part and largest likelihood. */
static void means(struct bench *b) {
    double counts[ROWS];
    for (int i = 0; i < ROWS; i++) counts[i] = i % 4;
    const kiln_loss loss = {.size = sizeof loss,
                            .kind = KILN_LOSS_GLM,
                            .family = KILN_POISSON,
                            .link = KILN_LINK_LOG,
                            .y = bench_dense(b, ROWS, 1, counts)};
    kiln_matrix *Eta = bench_dense(b, ROWS, 1, b->p->v), *M = bench_empty(b, ROWS, 1),
                *D = bench_empty(b, ROWS, 3);
    RUN(b, kiln_loss_mean(M, &loss, Eta));
    RUN(b, kiln_loss_deviance(D, &loss, Eta));
    const int at = bench_take(b, M), parts = bench_take(b, D);
    for (int i = 0; i < ROWS; i++) {
        const double eta = b->p->v[i], y = counts[i], mu = exp(eta), less = y > 0 ? y * (log(y) - eta) : 0;
        bench_term(b, at + i, mu);
        bench_sized(b, parts + 3 * i, 2 * (less - y + mu), 2 * (y * (2 + fabs(eta)) + y + mu));
        bench_sized(b, parts + 3 * i + 1, (y - mu) * (y - mu) / mu, (y + mu) * (y + mu) / mu);
        const double own = y > 0 ? y - y * log(y) : 0;
        bench_sized(b, parts + 3 * i + 2, lgamma(y + 1) + own, 1 + lgamma(y + 1) + fabs(own));
    }
}

/* After the first step for (X^T X + l2) E = G: E = alpha G and G - alpha H G. */
static void expect_step(struct bench *b, int solution, int residual) {
    const double *g = b->p->y;
    double Q[COLS], sizes[COLS], squares = 0, curvature = 0, size;
    for (int j = 0; j < COLS; j++) {
        Q[j] = l2 * g[j];
        sizes[j] = fabs(Q[j]);
        squares += g[j] * g[j];
    }
    for (int i = 0; i < ROWS; i++) {
        const double product = eta_of(b->p, i, g, 1, 0, &size);
        curvature += product * product;
        for (int j = 0; j < COLS; j++) {
            Q[j] += b->p->X[i][j] * product;
            sizes[j] += fabs(b->p->X[i][j]) * size;
        }
    }
    const double alpha = squares / (curvature + l2 * squares);
    for (int j = 0; j < COLS; j++) {
        bench_sized(b, solution + j, alpha * g[j], 4 * alpha * g[j]);
        bench_sized(b, residual + j, g[j] - alpha * Q[j], 2 * fabs(g[j]) + 8 * alpha * sizes[j]);
    }
}

static void cg_step(struct bench *b) {
    const double state[7] = {0, 1}; /* one column, which is active */
    const kiln_cg cg = {.size = sizeof cg,
                        .S = bench_scalars(b, 7, 1, state),
                        .E = bench_empty(b, COLS, 1),
                        .G = bench_dense(b, COLS, 1, b->p->y),
                        .P = bench_empty(b, COLS, 1),
                        .Q = bench_empty(b, COLS, 1),
                        .l2 = l2,
                        .curvature = bench_scalars(b, 1, 1, NULL)};
    kiln_matrix *X = bench_X(b);
    RUN(b, kiln_cg_begin(&cg));
    RUN(b, kiln_cg_pass(&cg, X, NULL));
    RUN(b, kiln_cg_step(&cg, 0));
    const int solution = bench_take(b, cg.E), residual = bench_take(b, cg.G);
    expect_step(b, solution, residual);
}

/* The norm of the objective's gradient at w and the intercept. */
static double gradient_norm(const struct problem *p, const double *w, double first) {
    double g[COLS], sum = 0, squares, size;
    for (int j = 0; j < COLS; j++) g[j] = w[j];
    for (int i = 0; i < ROWS; i++) {
        const double less = logistic(eta_of(p, i, w, 1, first, &size)) - target(p, i);
        for (int j = 0; j < COLS; j++) g[j] += p->X[i][j] * less;
        sum += less;
    }
    squares = sum * sum;
    for (int j = 0; j < COLS; j++) squares += g[j] * g[j];
    return sqrt(squares);
}

/* A logistic regression with l2 = 1: the gradient in plain loops is as small as was promised, but for the
 * units of its columns, which differ by less than ten. */
static void fit(struct bench *b) {
    static const double zeros[COLS];
    double w[COLS], first;
    kiln_report report = {.size = sizeof report};
    kiln_matrix *X = bench_X(b), *y = new_targets(b), *W = bench_empty(b, COLS, 1), *c = bench_empty(b, 1, 1);
    const kiln_logreg_options options = {.size = sizeof options, .l2 = 1, .solver = KILN_CLASSIFIER_NEWTON};
    RUN(b, kiln_logreg(W, c, X, y, &options, &report));
    const double tolerance = report.tolerance;
    kiln_report_free(&report);
    const int at = bench_take(b, W);
    bench_take(b, c);
    if (b->status != KILN_OK) return;
    for (int j = 0; j < COLS; j++) w[j] = b->got[at + j];
    first = b->got[at + COLS];
    b->answers = 0; /* what is judged is the gradient */
    bench_judge(b, gradient_norm(b->p, w, first),
                10 * (tolerance + bench_allowed(b->type)) * gradient_norm(b->p, zeros, 0));
}

const struct kind loss_kinds[] = {
    {"loss_gradient", "loss", gradient, true, true},
    {"loss_hessian", "curvature", hessian, true, true},
    {"loss_gradient", "softmax", softmax, true, true},
    {"loss_mean", "means", means, false, true},
    {"cg_step", "conjugate", cg_step, true, true},
    {"logreg", "newton", fit, false, true},
    {0},
};
