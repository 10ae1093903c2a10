/* Householder's reflections make the matrix tridiagonal, and implicit QL steps take its eigenvalues off one
 * after the other (Golub and Van Loan, Matrix Computations, 8.3; Dubrulle, Martin and Wilkinson, Numer. Math.
 * 12, 1968). All loops walk along rows: rotations turn the rows of Q's transpose. */
#include "algorithms/eigen.h"

#include <float.h>
#include <math.h>

#include "algorithms/run/run.h"

enum {
    TURNS = 60,  /* QL steps for an eigenvalue; two or three are usual */
    MANY = 1024, /* rows from which on the caller is heard: below, it takes half a second */
    OFTEN = 32
};

/* Returns whether the caller asks to stop; `turn` counts the calls, of which some are heard. */
static bool is_stopped(struct ki_run *run, int64_t k, int64_t turn) {
    if (!run || k < MANY) return false;
    if (turn % OFTEN == 0 && !run->cancelled) ki_run_tell(run);
    return run->cancelled;
}

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

/* Adds to A v a row of the upper triangle, right of its diagonal: to w what it adds beside it; what it
 * adds to the row's own number is returned. Four sums go side by side. */
static double take_row(double *w, const double *row, const double *v, double own, int64_t count) {
    double sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int l = 0; l < 4; l++) {
            sums[l] += row[i + l] * v[i + l];
            w[i + l] += own * row[i + l];
        }
    for (; i < count; i++) {
        sums[0] += row[i] * v[i];
        w[i] += own * row[i];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* A = Q T Q^T: T's diagonal is A's, and what stands beside it is below the diagonal. The reflections' v are
 * right of the diagonal, their betas two below it. Of A the upper triangle is read. w: room for k. False: the
 * caller asks to stop. */
static bool tridiagonalise(double *A, double *w, int64_t k, struct ki_run *run) {
    for (int64_t c = 0; c + 1 < k; c++) {
        if (is_stopped(run, k, c)) return false;
        double *const v = A + c * k + c + 1;
        const int64_t rest = k - c - 1;
        const double beta = reflect(v, &A[(c + 1) * k + c], rest);
        if (rest > 1) A[(c + 2) * k + c] = beta;
        if (beta == 0) continue;
        for (int64_t i = 0; i < rest; i++) w[i] = 0;
        for (int64_t i = 0; i < rest; i++) {
            const double *const row = A + (c + 1 + i) * k + c + 1 + i;
            w[i] += row[0] * v[i] + take_row(w + i + 1, row + 1, v + i + 1, v[i], rest - i - 1);
        }
        for (int64_t i = 0; i < rest; i++) w[i] *= beta;
        add(w, -beta / 2 * dot(v, w, rest), v, rest);
        for (int64_t i = 0; i < rest; i++) {
            double *const row = A + (c + 1 + i) * k + c + 1;
            for (int64_t j = i; j < rest; j++) row[j] -= v[i] * w[j] + w[i] * v[j];
        }
    }
    return true;
}

/* R, k x count, becomes the last `count` columns of Q^T, Q the product of the reflections, STRIP of them at a
 * time. */
static bool accumulate(const double *A, double *R, int64_t k, int64_t count, struct ki_run *run) {
    enum { STRIP = 64 };
    double along[STRIP];
    for (int64_t i = 0; i < k * count; i++) R[i] = 0;
    for (int64_t i = 0; i < count; i++) R[(k - count + i) * count + i] = 1;
    for (int64_t first = 0; first < count; first += STRIP) {
        const int64_t width = ki_min(count - first, STRIP);
        if (is_stopped(run, k, 0)) return false;
        for (int64_t c = 0; c + 2 < k; c++) {
            const double *const v = A + c * k, beta = A[(c + 2) * k + c];
            if (beta == 0) continue;
            for (int64_t j = 0; j < width; j++) along[j] = 0;
            for (int64_t i = c + 1; i < k; i++) add(along, v[i], R + i * count + first, width);
            for (int64_t i = c + 1; i < k; i++) add(R + i * count + first, -beta * v[i], along, width);
        }
    }
    return true;
}

static void rotate(double *a, double *b, double c, double s, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        const double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* One QL step with Wilkinson's shift on rows [first, last], which are coupled throughout. */
static void step(double *d, double *e, double *R, int64_t first, int64_t last, int64_t count) {
    const double half = (d[first + 1] - d[first]) / (2 * e[first]);
    double g = d[last] - d[first] + e[first] / (half + copysign(hypot(half, 1), half));
    double s = 1, c = 1, p = 0;
    for (int64_t i = last - 1; i >= first; i--) {
        const double f = s * e[i], b = c * e[i], r = sqrt(f * f + g * g);
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
        rotate(R + i * count, R + (i + 1) * count, c, s, count);
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

bool ki_eigen_ends(double *A, double *R, int64_t k, int64_t count, struct ki_run *run) {
    if (k < 2) {
        for (int64_t i = 0; i < k; i++) R[i] = 1;
        return true;
    }
    const double unit = scale(A, k);
    double *const d = A, *const e = A + k; /* T moves to A's first rows */
    if (!tridiagonalise(A, R, k, run) || !accumulate(A, R, k, count, run)) return false;
    for (int64_t i = 0; i < k; i++) d[i] = A[i * (k + 1)];
    for (int64_t i = 0; i < k; i++) e[i] = i + 1 < k ? A[(i + 1) * k + i] : 0;
    for (int64_t first = 0; first < k; first++) {
        if (is_stopped(run, k, first)) return false;
        for (int turn = 0; turn < TURNS; turn++) {
            const int64_t last = coupled_to(d, e, first, k);
            if (last == first) break;
            step(d, e, R, first, last, count);
        }
    }
    for (int64_t i = k; i-- > 0;) A[i * (k + 1)] = d[i] * unit;
    return true;
}

bool ki_eigen(double *A, double *Q, int64_t k, struct ki_run *run) {
    if (!ki_eigen_ends(A, Q, k, k, run)) return false;
    transpose(Q, k);
    return true;
}
