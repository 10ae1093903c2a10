/* Problems that hurt for the tests of "converged", and what the word promises: columns far from 0, rows that
 * leave the loss, classes that are told apart, columns that nearly depend on each other.
 *
 * Logistic regression's optimum is found by optimum.h. That of a support vector machine is at most the least
 * objective of a run that goes on to 1e-13, computed by the referee in long double; the runs themselves are
 * judged at their coefficients. */
#ifndef PROMISES_H
#define PROMISES_H

#include "algorithms/optimum.h"

/* f64's tolerance of 1e-8 is not for it: what is left is an estimate from a gradient whose own rounding,
 * beside rows of 1e12, hides more than that in directions of little curvature (3e-6 of the gain in one build
 * of several). A broken promise was up to a twentieth. */
static const double ESTIMATED = 1000;

/* A column of a kind that hurts. */
static inline void draw_column(struct problem *p, int j, uint64_t *state) {
    const int kind = (int)(random_uniform(state) * 6), row = (int)(random_uniform(state) * p->m);
    for (int i = 0; i < p->m; i++) {
        const double u = random_uniform(state);
        double *x = &p->X[i * p->n + j];
        switch (kind) {
        case 0: *x = 1900 + floor(126 * u); break;
        case 1: *x = 1.7e9 + floor(3e7 * u); break;
        case 2: *x = i == row ? 1e12 : random_normal(state); break;
        case 3: *x = floor(4 * u); break;
        case 4: *x = j > 1 ? p->X[i * p->n] + p->X[i * p->n + 1] : random_normal(state); break;
        default: *x = random_normal(state);
        }
        *x = (float)*x; /* both types see the same */
    }
}

static inline struct problem draw(const struct question *q, uint64_t seed) {
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 5;
    struct problem p = {
        .m = 4 + (int)(random_uniform(&state) * 40), .n = 1 + (int)(random_uniform(&state) * 5), .k = 1};
    p.X = new_doubles((int64_t)p.m * p.n);
    p.y = new_doubles(p.m);
    for (int j = 0; j < p.n; j++) draw_column(&p, j, &state);
    for (int i = 0; i < p.m; i++) {
        const int label = i < q->classes ? i : (int)(random_uniform(&state) * q->classes);
        p.y[i] = q->classes ? 3 * label - 5 : (float)random_normal(&state);
    }
    return p;
}

/* The objective of the best constant, at most. */
static inline double constant_of(const struct problem *p, const struct question *q) {
    double count[3] = {0}, sum = 0, mean = 0, square = 0;
    for (int i = 0; i < p->m; i++) {
        if (q->classes) count[(int)(p->y[i] + 5) / 3]++;
        mean += p->y[i] / p->m;
    }
    for (int i = 0; i < p->m; i++) square += (p->y[i] - mean) * (p->y[i] - mean);
    if (q->kind == SVR) return square / 2;
    for (int c = 0; c < q->classes; c++)
        sum += q->kind == LOGREG ? -count[c] * log(count[c] / p->m)
                                 : (q->classes == 2 ? 1 : 2) * count[c] * (p->m - count[c]) / p->m;
    return sum;
}

/* Returns what the coefficients' and the predictors' rounding may have made of the objective, curvatures of
 * at most 1. */
static inline double rounding_of(const struct problem *p, const struct solution *s, kiln_type type) {
    double sum = 0;
    for (int i = 0; i < p->m; i++)
        for (int c = 0; c < s->k; c++) {
            double size = fabs(s->b[c]);
            for (int j = 0; j < p->n; j++) size += fabs(p->X[i * p->n + j] * s->W[j * s->k + c]);
            size *= type == KILN_F32 ? 1.2e-7 : 2.3e-16;
            sum += 16 * size * size;
        }
    return sum;
}

/* Returns whether the run says that it has converged: then the model is as near to the least objective as
 * that promises. */
static inline bool keeps_its_word(const struct problem *p, const struct question *q, kiln_type type,
                                  const struct solution *s, bool converged, double least, uint64_t seed) {
    const double reached = examine(p, q, s->W, s->b).objective, tolerance = type == KILN_F32 ? 1e-4 : 1e-8,
                 noise = (type == KILN_F32 ? 32 * 1.2e-7 : 32 * 2.3e-16) * reached + rounding_of(p, s, type),
                 share = type == KILN_F32 ? 2 * tolerance : ESTIMATED * tolerance,
                 allowed = share * fmax(constant_of(p, q) - least, 0) + noise;
    if (converged && reached - least > allowed)
        print_message("    seed %d, kind %d, %d classes, l2 %g, l1 %g, %s: %.3g above %.9g, allowed %.3g\n",
                      (int)seed, q->kind, q->classes, q->l2, q->l1, type == KILN_F32 ? "f32" : "f64",
                      reached - least, least, allowed);
    assert_true(!converged || reached - least <= allowed);
    return converged;
}

/* Returns what the optimum is at most. */
static inline double least_of(bool *proved, const struct problem *p, const struct question *asked) {
    if (asked->kind == LOGREG && asked->l1 == 0) return least_objective(proved, p, asked);
    struct question q = *asked;
    kiln_report report = {0};
    q.tolerance = 1e-13;
    q.max_iterations = 1000;
    struct solution s = answer(&report, &(struct run){devices[0], KILN_F64, KILN_DENSE, NULL}, p, &q);
    const double least = examine(p, &q, s.W, s.b).objective;
    *proved = report.converged != 0;
    kiln_report_free(&report);
    solution_free(&s);
    return least;
}

#endif
