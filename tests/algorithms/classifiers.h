/* This header has what the tests of logistic regression and support vector machines share: labelled random
 * problems, and a referee that computes objective and gradient at a result by plain loops in long double. All
 * objectives are convex, so a gradient of nothing is a proof of the optimum. */
#ifndef CLASSIFIERS_H
#define CLASSIFIERS_H

#include "algorithms/least_squares.h"

enum kind { LOGREG, SVM, SVR };

/* A problem.y of labels (or, SVR, of numbers); label c is 3 c - 5. */
static inline struct problem labelled(int m, int n, int classes, double density, bool weighted,
                                      uint64_t seed) {
    struct problem p = problem_new(m, n, classes > 2 ? classes : 1, density, weighted, seed);
    double *labels = new_doubles(m);
    uint64_t state = seed + 77;
    for (int i = 0; i < m; i++) {
        int best = p.k == 1 ? p.y[i] + random_normal(&state) > 3 : 0;
        for (int c = 1; c < p.k; c++)
            if (p.y[i * p.k + c] > p.y[i * p.k + best]) best = c;
        if (i < classes) best = i; /* every class occurs */
        labels[i] = 3 * best - 5;
    }
    free(p.y);
    p.y = labels;
    p.k = 1;
    return p;
}

/* One question for both algorithms. */
struct question {
    enum kind kind;
    int classes; /* 0: regression */
    double l2, l1, epsilon;
    bool no_intercept, standardize, balanced;
    const double *class_weights;
    double tolerance;
    int64_t max_iterations;
    kiln_control control;
    kiln_classifier_solver solver;
};

static inline int columns_of(const struct question *q) {
    return q->classes > 2 ? q->classes : 1;
}

/* Row i's weight. */
static inline long double weight_of(const struct problem *p, const struct question *q, int i) {
    long double s = p->weights ? p->weights[i] : 1;
    if (q->classes && q->class_weights) s *= q->class_weights[(int)(p->y[i] + 5) / 3];
    if (q->classes && q->balanced) {
        long double total = 0, own = 0;
        for (int r = 0; r < p->m; r++) {
            const long double w = p->weights ? p->weights[r] : 1;
            total += w;
            if (p->y[r] == p->y[i]) own += w;
        }
        s *= total / (q->classes * own);
    }
    return s;
}

/* The loss of row i at eta[0 .. k-1]; g receives its derivative. */
static inline long double loss_of(const struct problem *p, const struct question *q, int i,
                                  const long double *eta, long double *g) {
    const int k = columns_of(q), label = (int)(p->y[i] + 5) / 3;
    long double loss = 0, sum = 0, largest = eta[0];
    if (q->kind == SVR) {
        const long double off = eta[0] - p->y[i], slack = fmaxl(fabsl(off) - q->epsilon, 0);
        g[0] = copysignl(slack, off);
        return slack * slack / 2;
    }
    if (q->kind == SVM) {
        for (int c = 0; c < k; c++) {
            const long double sign = label == (k == 1 ? 1 : c) ? 1 : -1, slack = fmaxl(1 - sign * eta[c], 0);
            g[c] = -sign * slack;
            loss += slack * slack / 2;
        }
        return loss;
    }
    if (k == 1) {
        const long double sign = label == 1 ? 1 : -1, margin = sign * eta[0];
        g[0] = -sign / (1 + expl(margin));
        return margin > 0 ? log1pl(expl(-margin)) : log1pl(expl(margin)) - margin;
    }
    for (int c = 1; c < k; c++) largest = fmaxl(largest, eta[c]);
    for (int c = 0; c < k; c++) sum += g[c] = expl(eta[c] - largest);
    for (int c = 0; c < k; c++) g[c] /= sum;
    g[label] -= 1;
    return logl(sum) + largest - eta[label];
}

struct verdict {
    double objective;
    double gradient; /* the largest entry of the least subgradient */
};

/* b NULL: zeros, and no part of the gradient. */
static inline struct verdict examine(const struct problem *p, const struct question *q, const double *W,
                                     const double *b) {
    const int n = p->n, k = columns_of(q);
    long double *G = calloc((size_t)((n + 3) * k), sizeof *G), objective = 0, worst = 0;
    assert_non_null(G);
    long double *eta = G + (n + 1) * k, *g = eta + k;
    for (int i = 0; i < p->m; i++) {
        const long double s = weight_of(p, q, i);
        for (int c = 0; c < k; c++) {
            eta[c] = b ? b[c] : 0;
            for (int j = 0; j < n; j++) eta[c] += (long double)p->X[i * n + j] * W[j * k + c];
        }
        objective += s * loss_of(p, q, i, eta, g);
        for (int c = 0; c < k; c++) {
            for (int j = 0; j < n; j++) G[j * k + c] += s * g[c] * p->X[i * n + j];
            G[n * k + c] += s * g[c];
        }
    }
    struct problem weighted = *p; /* column_variance weighs by p.weights */
    weighted.weights = new_doubles(p->m);
    for (int i = 0; i < p->m; i++) weighted.weights[i] = (double)weight_of(p, q, i);
    for (int e = 0; e < n * k; e++) {
        const long double variance = q->standardize ? column_variance(&weighted, e / k) : 1;
        const long double l1 = q->l1 * sqrtl(variance), w = W[e], v = G[e] + q->l2 * variance * w;
        objective += q->l2 * variance * w * w / 2 + l1 * fabsl(w);
        const long double least = w != 0 ? v + copysignl(l1, w) : fmaxl(fabsl(v) - l1, 0);
        worst = fmaxl(worst, fabsl(least));
    }
    for (int c = 0; b && c < k; c++) worst = fmaxl(worst, fabsl(G[n * k + c]));
    free(weighted.weights);
    free(G);
    return (struct verdict){(double)objective, (double)worst};
}

/* The call on matrices of the run's device, type and format. k is that of the result. */
static inline kiln_status try_answer(struct solution *s, kiln_report *report, const struct run *run,
                                     const struct problem *p, const struct question *q) {
    const int k = columns_of(q);
    double *none = new_doubles((int64_t)p->n * k + k);
    kiln_matrix *X = (run->format == KILN_CSR ? csr : dense)(run->device, run->type, p->m, p->n, p->X);
    kiln_matrix *y = dense(run->device, run->type, p->m, 1, p->y);
    kiln_matrix *W = dense(run->device, run->type, p->n, k, run->start ? run->start->W : none);
    kiln_matrix *b =
        q->no_intercept ? NULL : dense(run->device, run->type, 1, k, run->start ? run->start->b : none);
    kiln_matrix *weights = p->weights ? dense(run->device, run->type, p->m, 1, p->weights) : NULL;
    kiln_logreg_options logreg = {.size = sizeof logreg,
                                  .l2 = q->l2,
                                  .l1 = q->l1,
                                  .no_intercept = q->no_intercept,
                                  .standardize = q->standardize,
                                  .warm_start = run->start != NULL,
                                  .tolerance = q->tolerance,
                                  .max_iterations = q->max_iterations,
                                  .weights = weights,
                                  .class_weights = q->class_weights,
                                  .balanced = q->balanced,
                                  .control = q->control,
                                  .solver = q->solver};
    kiln_svm_options svm = {.size = sizeof svm,
                            .regression = q->kind == SVR,
                            .epsilon = q->epsilon,
                            .l2 = q->l2,
                            .no_intercept = q->no_intercept,
                            .standardize = q->standardize,
                            .warm_start = run->start != NULL,
                            .tolerance = q->tolerance,
                            .max_iterations = q->max_iterations,
                            .weights = weights,
                            .class_weights = q->class_weights,
                            .balanced = q->balanced,
                            .control = q->control,
                            .solver = q->solver};
    assert_ok(kiln_option_give("logreg", &logreg, "l2"));
    assert_ok(kiln_option_give("svm", &svm, "l2"));
    const kiln_status status =
        q->kind == LOGREG ? kiln_logreg(W, b, X, y, &logreg, report) : kiln_svm(W, b, X, y, &svm, report);
    if (status == KILN_OK) *s = (struct solution){p->n, k, values_of(W), b ? values_of(b) : NULL};
    kiln_matrix *const all[] = {X, y, W, b, weights};
    for (int i = 0; i < 5; i++) kiln_matrix_free(all[i]);
    free(none);
    return status;
}

static inline struct solution answer(kiln_report *report, const struct run *run, const struct problem *p,
                                     const struct question *q) {
    struct solution s = {0};
    *report = (kiln_report){0};
    assert_ok(try_answer(&s, report, run, p, q));
    return s;
}

/* Solves, and has the referee look at objective and gradient. */
static inline void check_answer(const char *what, const struct run *run, const struct problem *p,
                                const struct question *asked) {
    struct question q = *asked;
    const bool narrow = run->type == KILN_F32;
    kiln_report report = {0};
    kiln_device_info info = {0};
    if (q.tolerance == 0) q.tolerance = narrow ? 1e-4 : 1e-9;
    struct solution s = answer(&report, run, p, &q);
    double *zero = new_doubles((p->n + 1) * s.k);
    const struct verdict at = examine(p, &q, s.W, s.b);
    const struct verdict origin = examine(p, &q, zero, q.no_intercept ? NULL : zero + p->n * s.k);
    assert_ok(kiln_device_get_info(run->device, &info));
    if (!report.converged || report.stopped_by != KILN_STOP_TOLERANCE || report.residual > q.tolerance ||
        !(at.gradient <= 30 * q.tolerance * origin.gradient) ||
        !(fabs(at.objective - report.objective) <= (narrow ? 1e-5 : 1e-12) * origin.objective))
        fail_msg("%s, %s, %s, %s: %s after %lld iterations, residual %g, gradient %g of %g, objective %.17g, "
                 "should be %.17g",
                 what, info.name, narrow ? "f32" : "f64", run->format == KILN_CSR ? "CSR" : "dense",
                 kiln_stop_name(report.stopped_by), (long long)report.iterations, report.residual,
                 at.gradient, origin.gradient, report.objective, at.objective);
    if (q.kind != LOGREG && q.l2 > 0 &&
        !(kiln_report_figure(&report, "gap") >= 0 &&
          kiln_report_figure(&report, "gap") <= (narrow ? 1e-3 : 1e-6)))
        fail_msg("%s: the gap is %g", what, kiln_report_figure(&report, "gap"));
    assert_true(q.kind != LOGREG || isnan(kiln_report_figure(&report, "gap")));
    kiln_report_free(&report);
    solution_free(&s);
    free(zero);
}

/* The devices that open. */
static kiln_device *devices[2];
static int device_count;

static inline int open_devices(void **state) {
    (void)state;
    static const char *const names[] = {"cpu", "opencl"};
    for (int i = 0; i < 2; i++) {
        if (kiln_device_open(&devices[device_count], names[i], NULL) == KILN_OK)
            device_count++;
        else
            printf("skip %s: %s\n", names[i], kiln_last_error()->message);
    }
    return device_count == 0;
}

static inline int close_devices(void **state) {
    (void)state;
    while (device_count > 0) kiln_device_close(devices[--device_count]);
    return 0;
}

struct example {
    const char *what;
    bool everywhere; /* on GPUs too, f32 dense and f64 CSR: building kernels takes its time */
    int m, n;
    double density;
    bool weighted;
    struct question question;
};

static inline void check_examples(const struct example *examples, size_t count) {
    for (int d = 0; d < device_count; d++)
        for (size_t i = 0; i < count; i++) {
            const struct example *e = &examples[i];
            if (d > 0 && !e->everywhere) continue;
            struct problem p = e->question.kind == SVR
                                   ? problem_new(e->m, e->n, 1, e->density, e->weighted, 5)
                                   : labelled(e->m, e->n, e->question.classes, e->density, e->weighted, 5);
            for (kiln_type type = KILN_F32; type <= KILN_F64; type++)
                for (kiln_format format = KILN_DENSE; format <= KILN_CSR; format++) {
                    if (d > 0 && (type == KILN_F32) != (format == KILN_DENSE)) continue;
                    check_answer(e->what, &(struct run){devices[d], type, format, NULL}, &p, &e->question);
                }
            problem_free(&p);
        }
}

#endif
