/* The least objective of logistic regression with an L2 penalty, by Newton's method in long double: a
 * reference that shares nothing with the library, and does not stop where that does. A row's part of the
 * model is taken about its likeliest class m: with p the others' probabilities, and coordinates of predictors
 * less that of m,
 *
 *   H_i = diag(p) - p p^T = U^T U,
 *   U = [ sqrt(p_1 (1 - p_1))   -p_1 p_2 / U_11 ;   0   sqrt(p_2 p_m / (1 - p_1)) ],
 *
 * where nothing cancels. A step is the solution of the least squares problem of these rows and the penalty's
 * by Householder's reflections with exchanges of rows and columns, which keep what rows of 1 say beside those
 * of 1e12 (Cox and Higham, BIT 38, 1998). */
#ifndef OPTIMUM_H
#define OPTIMUM_H

#include <float.h>

#include "algorithms/classifiers.h"

enum { OPTIMUM_SIZE = 20, OPTIMUM_STEPS = 400 };

struct optimum {
    const struct problem *p;
    int k, size, rows; /* classes; coefficients, (n + 1) x k; rows of A */
    double l2;
    long double *x; /* m x (n + 1): columns about their means, and 1 */
    long double at[OPTIMUM_SIZE], step[OPTIMUM_SIZE];
    long double *A;               /* rows x (size + 1): the least squares problem, and its right-hand side */
    long double value, decrement; /* at `at`: the objective, and g^T H^-1 g */
};

static inline void optimum_open(struct optimum *o, const struct problem *p, const struct question *q) {
    const int n = p->n;
    *o = (struct optimum){.p = p, .k = q->classes, .l2 = q->l2, .size = (n + 1) * q->classes};
    o->rows = p->m * (o->k - 1) + o->size;
    assert_true(o->size <= OPTIMUM_SIZE && o->k <= 3 && !p->weights && !q->no_intercept && !q->standardize);
    o->x = calloc((size_t)(p->m * (n + 1)), sizeof *o->x);
    o->A = calloc((size_t)(o->rows * (o->size + 1)), sizeof *o->A);
    assert_true(o->x && o->A);
    for (int j = 0; j <= n; j++) {
        long double mean = 0;
        for (int i = 0; i < p->m && j < n; i++) mean += (long double)p->X[i * n + j] / p->m;
        for (int i = 0; i < p->m; i++) o->x[i * (n + 1) + j] = j < n ? p->X[i * n + j] - mean : 1;
    }
}

/* Row i's predictors along z, less the largest; returns its class. */
static inline int optimum_row(const struct optimum *o, int i, const long double *z, long double *eta) {
    const int n = o->p->n;
    int most = 0;
    for (int c = 0; c < o->k; c++) {
        eta[c] = 0;
        for (int j = 0; j <= n; j++) eta[c] += o->x[i * (n + 1) + j] * z[j * o->k + c];
        most = eta[c] > eta[most] ? c : most;
    }
    const long double largest = eta[most];
    for (int c = 0; c < o->k; c++) eta[c] -= largest;
    return most;
}

/* The rows of A of row i, from its predictors. */
static inline void optimum_model(struct optimum *o, int i, int most, const long double *eta,
                                 long double rest) {
    const int n = o->p->n, k = o->k, label = (int)(o->p->y[i] + 5) / 3, last = o->size;
    int other[2], count = 0;
    long double p[2] = {0}, t[2] = {0}, U[2][2] = {{0}};
    for (int c = 0; c < k; c++)
        if (c != most) other[count++] = c;
    for (int a = 0; a < count; a++) p[a] = expl(eta[other[a]]) / (1 + rest);
    for (int a = 0; a < count; a++) t[a] = other[a] == label ? 1 - p[a] : -p[a];
    const long double own = 1 / (1 + rest);
    U[0][0] = sqrtl(p[0] * (own + p[1]));
    U[0][1] = U[0][0] > 0 ? -p[0] * p[1] / U[0][0] : 0;
    U[1][1] = sqrtl(p[1] * own / (own + p[1]));
    for (int a = 0; a < count; a++) {
        long double *row = o->A + (i * (k - 1) + a) * (last + 1);
        const bool there = U[a][a] > 0;
        for (int j = 0; there && j <= n; j++)
            for (int b = a; b < count; b++) {
                row[j * k + other[b]] += U[a][b] * o->x[i * (n + 1) + j];
                row[j * k + most] -= U[a][b] * o->x[i * (n + 1) + j];
            }
        if (a == 1) t[1] -= U[0][1] * row[last - (last + 1)]; /* U^-T t, forwards */
        row[last] = there ? t[a] / U[a][a] : 0;
    }
}

/* The objective at `at` + t `step`; model: A as well. */
static inline long double optimum_value(struct optimum *o, long double t, bool model) {
    const int k = o->k, width = o->size + 1;
    long double z[OPTIMUM_SIZE], eta[3], value = 0;
    for (int e = 0; e < o->size; e++) z[e] = o->at[e] + t * o->step[e];
    if (model) memset(o->A, 0, (size_t)(o->rows * width) * sizeof *o->A);
    for (int i = 0; i < o->p->m; i++) {
        const int most = optimum_row(o, i, z, eta), label = (int)(o->p->y[i] + 5) / 3;
        long double rest = 0;
        for (int c = 0; c < k; c++) rest += c == most ? 0 : expl(eta[c]);
        value += log1pl(rest) - eta[label];
        if (model) optimum_model(o, i, most, eta, rest);
    }
    for (int e = 0; e < o->size; e++) {
        const bool intercept = e >= o->size - k;
        /* two classes have one column w, as half of it and half of -w with twice the penalty */
        const long double penalty = intercept ? 0 : k == 2 ? 2 * o->l2 : o->l2;
        long double *row = o->A + (o->p->m * (k - 1) + e) * width;
        value += penalty * z[e] * z[e] / 2;
        if (!model) continue;
        row[e] = sqrtl(penalty);
        row[o->size] = -sqrtl(penalty) * z[e];
        for (int c = 0; intercept && e == o->size - 1 && c < k; c++)
            row[o->size - k + c] = 1; /* sum of them: free */
    }
    return value;
}

/* Exchanges the column of `order` with the largest norm for the s-th, and its largest row for row s; returns
 * the norm's square. */
static inline long double optimum_pivot(struct optimum *o, int *order, int s) {
    const int width = o->size + 1;
    long double *A = o->A, most = -1;
    int column = s, lead = s;
    for (int e = s; e < o->size; e++) {
        long double square = 0;
        for (int i = s; i < o->rows; i++) square += A[i * width + order[e]] * A[i * width + order[e]];
        if (square > most) most = square, column = e;
    }
    const int c = order[column];
    order[column] = order[s];
    order[s] = c;
    for (int i = s; i < o->rows; i++)
        if (fabsl(A[i * width + c]) > fabsl(A[lead * width + c])) lead = i;
    for (int e = 0; e < width; e++) {
        const long double kept = A[s * width + e];
        A[s * width + e] = A[lead * width + e];
        A[lead * width + e] = kept;
    }
    return most;
}

/* The reflection that leaves of column order[s] a number in row s, on that and the columns after it. */
static inline void optimum_reflect(struct optimum *o, const int *order, int s, long double square) {
    const int width = o->size + 1, c = order[s];
    long double *A = o->A;
    const long double norm = copysignl(sqrtl(square), A[s * width + c]);
    A[s * width + c] += norm;
    for (int f = s + 1; f <= o->size; f++) {
        const int e = f < o->size ? order[f] : o->size;
        long double dot = 0;
        for (int i = s; i < o->rows; i++) dot += A[i * width + c] * A[i * width + e];
        dot /= norm * A[s * width + c];
        for (int i = s; i < o->rows; i++) A[i * width + e] -= dot * A[i * width + c];
    }
    A[s * width + c] = -norm;
}

/* step = the least squares solution; the decrement. */
static inline void optimum_solve(struct optimum *o) {
    const int size = o->size, width = size + 1;
    int order[OPTIMUM_SIZE], rank = 0;
    for (int e = 0; e < size; e++) order[e] = e;
    o->decrement = 0;
    for (; rank < size; rank++) {
        const long double square = optimum_pivot(o, order, rank);
        if (!(square > 0)) break;
        optimum_reflect(o, order, rank, square);
        o->decrement += o->A[rank * width + size] * o->A[rank * width + size];
    }
    memset(o->step, 0, sizeof o->step);
    for (int s = rank - 1; s >= 0; s--) {
        const long double *row = o->A + s * width;
        long double sum = row[size];
        for (int f = s + 1; f < rank; f++) sum -= row[order[f]] * o->step[order[f]];
        o->step[order[s]] = sum / row[order[s]];
    }
}

/* Returns whether the step moves no row that matters by more than a tenth: others have, before and after it,
 * as good as no curvature beside the penalty's and the other rows'. */
static inline bool optimum_settled(const struct optimum *o) {
    const int n = o->p->n;
    long double before[3], after[3], z[OPTIMUM_SIZE], all = 0;
    for (int e = 0; e < o->size; e++) z[e] = o->at[e] + o->step[e];
    bool settled = true;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < o->p->m; i++) {
            long double rest[2] = {0}, moved = 0, square = 0;
            optimum_row(o, i, o->at, before);
            optimum_row(o, i, z, after);
            for (int c = 0; c < o->k; c++) {
                rest[0] += expl(before[c]) * (before[c] < 0), rest[1] += expl(after[c]) * (after[c] < 0);
                moved = fmaxl(moved, fabsl(before[c] - after[c]));
            }
            for (int j = 0; j < n; j++) square += o->x[i * (n + 1) + j] * o->x[i * (n + 1) + j];
            const long double most = fmaxl(rest[0], rest[1]);
            if (pass == 0)
                all += rest[0];
            else if (moved > 0.1L && (most * square > 1e-6L * o->l2 || most > 1e-6L * all))
                settled = false;
        }
    return settled;
}

/* The least objective, and never less than that. *proved: that it is: where the step is settled, the
 * curvature between here and the optimum is the present one but for a factor of e^0.3 or so, and the
 * objective above it by about half of g^T H^-1 g. Rows of 1e12 that are certain of their class are moved by
 * rounding of the coefficients alone, and may leave that open. */
static inline double least_objective(bool *proved, const struct problem *p, const struct question *q) {
    struct optimum o;
    optimum_open(&o, p, q);
    *proved = false;
    for (int i = 0; i < OPTIMUM_STEPS && !*proved; i++) {
        long double t = 1;
        memset(o.step, 0, sizeof o.step);
        o.value = optimum_value(&o, 0, true);
        optimum_solve(&o);
        *proved = optimum_settled(&o) && o.decrement < 1e-13L * o.value;
        while (t > 1e-12L && !(optimum_value(&o, t, false) <= o.value - 1e-4L * t * o.decrement)) t /= 2;
        for (int e = 0; e < o.size && !*proved; e++) o.at[e] += t * o.step[e];
    }
    free(o.x);
    free(o.A);
    assert_true(isfinite((double)o.value));
    return (double)o.value;
}

#endif
