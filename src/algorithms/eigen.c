/* Householder's reflections make the matrix tridiagonal, and implicit QL steps take its eigenvalues off one
 * after the other (Golub and Van Loan, Matrix Computations, 8.3; Dubrulle, Martin and Wilkinson, Numer. Math.
 * 12, 1968). All loops walk along rows: rotations turn the rows of Q's transpose. */
#include "algorithms/eigen.h"

#include <float.h>
#include <math.h>

enum { TURNS = 60 }; /* QL steps for an eigenvalue; two or three are usual */

/* The largest entry becomes about 1, so that squares stay in range; by which power of two. */
static double scale(double *A, int64_t k) {
    double most = 0;
    int exponent = 0;
    for (int64_t i = 0; i < k * k; i++) most = fmax(most, fabs(A[i]));
    if (most > 0 && isfinite(most)) frexp(most, &exponent);
    for (int64_t i = 0; i < k * k; i++) A[i] = ldexp(A[i], -exponent);
    return ldexp(1, exponent);
}

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static void add(double *to, double factor, const double *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += factor * from[i];
}

/* A's row c right of the diagonal becomes v, of the reflection 1 - beta v v^T that leaves it one number,
 * *off. Returns beta; 0 where there is nothing to reflect. */
static double reflect(double *v, double *off, int64_t count) {
    const double tail = dot(v + 1, v + 1, count - 1), length = sqrt(v[0] * v[0] + tail);
    *off = v[0];
    if (tail == 0) return 0;
    *off = v[0] > 0 ? -length : length;
    v[0] -= *off;
    return 2 / (v[0] * v[0] + tail);
}

/* A = Q T Q^T: T's diagonal is A's, and what stands beside it is below the diagonal. The reflections' v are
 * right of the diagonal, their betas two below it. w: room for k. */
static void tridiagonalise(double *A, double *w, int64_t k) {
    for (int64_t c = 0; c + 1 < k; c++) {
        double *const v = A + c * k + c + 1;
        const int64_t rest = k - c - 1;
        const double beta = reflect(v, &A[(c + 1) * k + c], rest);
        if (rest > 1) A[(c + 2) * k + c] = beta;
        if (beta == 0) continue;
        for (int64_t i = 0; i < rest; i++) w[i] = 0;
        for (int64_t i = 0; i < rest; i++) add(w, beta * v[i], A + (c + 1 + i) * k + c + 1, rest);
        add(w, -beta / 2 * dot(v, w, rest), v, rest);
        for (int64_t i = 0; i < rest; i++) {
            double *const row = A + (c + 1 + i) * k + c + 1;
            for (int64_t j = 0; j < rest; j++) row[j] -= v[i] * w[j] + w[i] * v[j];
        }
    }
}

/* R = Q^T, Q the product of the reflections. */
static void accumulate(const double *A, double *R, int64_t k) {
    for (int64_t i = 0; i < k * k; i++) R[i] = i % (k + 1) == 0;
    for (int64_t c = k - 3; c >= 0; c--) {
        const double *const v = A + c * k + c + 1, beta = A[(c + 2) * k + c];
        const int64_t rest = k - c - 1;
        for (int64_t i = c + 1; i < k && beta != 0; i++) {
            double *const row = R + i * k + c + 1;
            add(row, -beta * dot(row, v, rest), v, rest);
        }
    }
}

static void rotate(double *a, double *b, double c, double s, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        const double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* One QL step with Wilkinson's shift on rows [first, last], which are coupled throughout. */
static void step(double *d, double *e, double *R, int64_t first, int64_t last, int64_t k) {
    const double half = (d[first + 1] - d[first]) / (2 * e[first]);
    double g = d[last] - d[first] + e[first] / (half + copysign(hypot(half, 1), half));
    double s = 1, c = 1, p = 0;
    for (int64_t i = last - 1; i >= first; i--) {
        const double f = s * e[i], b = c * e[i], r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) { /* the matrix falls apart here */
            d[i + 1] -= p;
            e[last] = 0;
            return;
        }
        s = f / r, c = g / r;
        g = d[i + 1] - p;
        const double q = (d[i] - g) * s + 2 * c * b;
        p = s * q;
        d[i + 1] = g + p;
        g = c * q - b;
        rotate(R + i * k, R + (i + 1) * k, c, s, k);
    }
    d[first] -= p;
    e[first] = g;
    e[last] = 0;
}

static int64_t coupled_to(const double *d, const double *e, int64_t first, int64_t k) {
    int64_t last = first;
    while (last + 1 < k && fabs(e[last]) > DBL_EPSILON * (fabs(d[last]) + fabs(d[last + 1]))) last++;
    return last;
}

static void transpose(double *A, int64_t k) {
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++) {
            const double kept = A[i * k + j];
            A[i * k + j] = A[j * k + i];
            A[j * k + i] = kept;
        }
}

void ki_eigen(double *A, double *Q, int64_t k) {
    if (k < 2) {
        for (int64_t i = 0; i < k; i++) Q[i] = 1;
        return;
    }
    const double unit = scale(A, k);
    double *const d = A, *const e = A + k; /* T moves to A's first rows */
    tridiagonalise(A, Q, k);
    accumulate(A, Q, k);
    for (int64_t i = 0; i < k; i++) d[i] = A[i * (k + 1)];
    for (int64_t i = 0; i < k; i++) e[i] = i + 1 < k ? A[(i + 1) * k + i] : 0;
    for (int64_t first = 0; first < k; first++)
        for (int turn = 0; turn < TURNS; turn++) {
            const int64_t last = coupled_to(d, e, first, k);
            if (last == first) break;
            step(d, e, Q, first, last, k);
        }
    transpose(Q, k);
    for (int64_t i = k; i-- > 0;) A[i * (k + 1)] = d[i] * unit;
}
