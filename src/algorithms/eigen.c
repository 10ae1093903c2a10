/* Householder's reflections make the matrix tridiagonal, PANEL of them at a time: A is read once for each and
 * written once for all of them,
 *
 *   A := A - V W^T - W V^T,    w = beta (A - V W^T - W V^T) v - ...,
 *
 * and the eigenvectors of the tridiagonal matrix are turned back by 1 - V T V^T in place of as many
 * reflections (Dongarra, Sorensen and Hammarling, J. Comput. Appl. Math. 27, 1989; Schreiber and Van Loan,
 * SIAM J. Sci. Stat. Comput. 10, 1989). All loops walk along rows. */
#include "algorithms/eigen.h"

#include <math.h>
#include <string.h>

#include "algorithms/run/run.h"

enum {
    PANEL = 32,
    STRIP = 256, /* columns of a panel that a cache holds */
    MANY = 1024  /* rows from which on the caller is heard */
};

#define LEAST 1e-200 /* of the largest entry: a rotation of smaller numbers may be none */

bool ki_eigen_is_stopped(struct ki_run *run, int64_t k) {
    if (!run || k < MANY) return false;
    if (!run->cancelled) ki_run_tell(run);
    return run->cancelled;
}

/* Eight rows go in one walk, as loading and storing `to` is what costs. */
void ki_add_rows(double *restrict to, const double *by, int64_t rows, const double *restrict B,
                 int64_t stride, int64_t count) {
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        const double *const b = B + r * stride, *const c = b + 4 * stride;
        const double b0 = by[r], b1 = by[r + 1], b2 = by[r + 2], b3 = by[r + 3];
        const double c0 = by[r + 4], c1 = by[r + 5], c2 = by[r + 6], c3 = by[r + 7];
        for (int64_t j = 0; j < count; j++)
            to[j] += ((b0 * b[j] + b1 * b[stride + j]) + (b2 * b[2 * stride + j] + b3 * b[3 * stride + j])) +
                     ((c0 * c[j] + c1 * c[stride + j]) + (c2 * c[2 * stride + j] + c3 * c[3 * stride + j]));
    }
    for (; r < rows; r++)
        for (int64_t j = 0; j < count; j++) to[j] += by[r] * B[r * stride + j];
}

double ki_dot(const double *a, const double *b, int64_t count) {
    double sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int l = 0; l < 4; l++) sums[l] += a[i + l] * b[i + l];
    for (; i < count; i++) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* The largest entry becomes about 1, so that squares stay in range. Returns by which power of two. */
static int scale(double *A, int64_t k) {
    double most = 0;
    int exponent = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i; j < k; j++) most = fmax(most, fabs(A[i * k + j]));
    if (most > 0 && isfinite(most)) frexp(most, &exponent);
    const double half = ldexp(1, -exponent / 2), other = ldexp(1, -exponent / 2 - exponent % 2);
    for (int64_t i = 0; exponent != 0 && i < k; i++)
        for (int64_t j = i; j < k; j++) A[i * k + j] = A[i * k + j] * half * other;
    return exponent;
}

/* ---------------------------------------------------------------------------- to a tridiagonal matrix */

struct reduction {
    double *A;                    /* its rows become the reflections' v, right of the diagonal */
    double *diagonal, *beside;    /* of the tridiagonal matrix */
    double *beta;                 /* of the reflections 1 - beta v v^T */
    double *V, *W, by[2 * PANEL]; /* PANEL x k each, W behind V */
    int64_t k;
};

/* A's row c right of the diagonal becomes v, whose first number is 1, of the reflection that leaves the row
 * one number, *off. Returns beta, 1 to 2, however small the row is; 0 where there is nothing to reflect. */
static double reflect(double *v, double *off, int64_t count) {
    double most = 0;
    *off = v[0];
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(v[i]));
    for (int64_t i = 0; most > 0 && i < count; i++) v[i] /= most;
    const double tail = ki_dot(v + 1, v + 1, count - 1), length = sqrt(v[0] * v[0] + tail);
    if (tail == 0) return 0;
    const double own = v[0] > 0 ? v[0] + length : v[0] - length;
    *off = v[0] > 0 ? -length * most : length * most;
    v[0] = 1;
    for (int64_t i = 1; i < count; i++) v[i] /= own;
    return 2 / (1 + tail / (own * own));
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

/* Row i of A, from column `from` on, less what `count` reflections of a panel take off. */
static void update_row(struct reduction *of, int64_t i, int64_t from, int64_t to, int64_t count) {
    const int64_t k = of->k;
    double *const row = of->A + i * k + from;
    for (int64_t p = 0; p < count; p++) {
        of->by[p] = -of->W[p * k + i];
        of->by[count + p] = -of->V[p * k + i];
    }
    ki_add_rows(row, of->by, count, of->V + from, k, to - from);
    ki_add_rows(row, of->by + count, count, of->W + from, k, to - from);
}

/* The panel's w of row c, whose v stands in A and in V: A itself is that of before the panel. */
static void find_w(struct reduction *of, int64_t c, int64_t before) {
    const int64_t k = of->k, rest = k - c - 1;
    const double *const v = of->A + c * k + c + 1, beta = of->beta[c];
    double *const w = of->W + before * k + c + 1;
    for (int64_t i = 0; i < rest; i++) w[i] = 0;
    for (int64_t i = 0; beta != 0 && i < rest; i++) {
        const double *const row = of->A + (c + 1 + i) * k + c + 1 + i;
        w[i] += row[0] * v[i] + take_row(w + i + 1, row + 1, v + i + 1, v[i], rest - i - 1);
    }
    for (int64_t p = 0; p < before; p++) {
        of->by[p] = -ki_dot(of->W + p * k + c + 1, v, rest);
        of->by[before + p] = -ki_dot(of->V + p * k + c + 1, v, rest);
    }
    ki_add_rows(w, of->by, before, of->V + c + 1, k, rest);
    ki_add_rows(w, of->by + before, before, of->W + c + 1, k, rest);
    for (int64_t i = 0; i < rest; i++) w[i] *= beta;
    const double along = -beta / 2 * ki_dot(v, w, rest);
    for (int64_t i = 0; i < rest; i++) w[i] += along * v[i];
}

/* False: the caller asks to stop. */
static bool tridiagonalise(struct reduction *of, struct ki_run *run) {
    const int64_t k = of->k;
    for (int64_t first = 0; first + 1 < k; first += PANEL) {
        const int64_t end = ki_min(first + PANEL, k - 1);
        if (ki_eigen_is_stopped(run, k)) return false;
        for (int64_t c = first; c < end; c++) {
            double *const row = of->A + c * k, *const v = row + c + 1;
            update_row(of, c, c, k, c - first);
            of->diagonal[c] = row[c];
            of->beta[c] = reflect(v, &of->beside[c], k - c - 1);
            for (int64_t j = c + 1; j < k; j++) of->V[(c - first) * k + j] = of->beta[c] != 0 ? row[j] : 0;
            find_w(of, c, c - first);
        }
        for (int64_t from = end; from < k; from += STRIP)
            for (int64_t i = end; i < ki_min(from + STRIP, k); i++)
                update_row(of, i, ki_max(from, i), ki_min(from + STRIP, k), end - first);
    }
    of->diagonal[k - 1] = of->A[k * k - 1];
    return true;
}

/* ---------------------------------------------------------------------------------- and back from it */

/* The reflections of rows [first, first + count) together are 1 - V^T T V: V, count x length, has them from
 * column first + 1 on, and `columns` is its transpose. T is an upper triangle. */
static void join(double T[PANEL][PANEL], double *columns, struct reduction *of, int64_t first,
                 int64_t count) {
    const int64_t k = of->k, length = k - first - 1;
    for (int64_t p = 0; p < count; p++) {
        const double *const row = of->A + (first + p) * k + first + 1;
        double *const v = of->V + p * k, beta = of->beta[first + p];
        for (int64_t j = 0; j < length; j++) v[j] = columns[j * PANEL + p] = j < p || beta == 0 ? 0 : row[j];
        for (int64_t a = 0; a < p; a++) of->by[a] = ki_dot(of->V + a * k, v, length);
        for (int64_t a = 0; a < p; a++) {
            T[a][p] = 0;
            for (int64_t b = a; b < p; b++) T[a][p] -= beta * T[a][b] * of->by[b];
        }
        T[p][p] = beta;
    }
}

/* Q's rows z, count x k, become (1 - beta v v^T) ... z. S: room for PANEL x count; columns: for PANEL x k. */
static bool turn_back(double *Q, int64_t count, struct reduction *of, double *S, double *columns,
                      struct ki_run *run) {
    const int64_t k = of->k;
    double T[PANEL][PANEL];
    for (int64_t first = (k - 2) / PANEL * PANEL; first >= 0; first -= PANEL) {
        const int64_t width = ki_min(PANEL, k - 1 - first), length = k - first - 1;
        double *const from = Q + first + 1;
        if (ki_eigen_is_stopped(run, k)) return false;
        join(T, columns, of, first, width);
        memset(S, 0, (size_t)(count * PANEL) * sizeof *S);
        for (int64_t j = 0; j < length; j += STRIP)
            for (int64_t i = 0; i < count; i++)
                ki_add_rows(S + i * PANEL, from + i * k + j, ki_min(STRIP, length - j), columns + j * PANEL,
                            PANEL, width);
        for (int64_t i = 0; i < count; i++)
            for (int64_t a = 0; a < width; a++) {
                double sum = 0;
                for (int64_t b = a; b < width; b++) sum -= T[a][b] * S[i * PANEL + b];
                S[i * PANEL + a] = sum;
            }
        for (int64_t j = 0; j < length; j += STRIP)
            for (int64_t i = 0; i < count; i++)
                ki_add_rows(from + i * k + j, S + i * PANEL, width, of->V + j, k, ki_min(STRIP, length - j));
    }
    return true;
}

static void swap_rows(double *a, double *b, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        const double kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

kiln_status ki_eigen(double *values, double *Q, int64_t count, double *A, int64_t k, struct ki_run *run) {
    kiln_status status;
    struct ki_arena own = {0};
    if (k == 0) return KILN_OK;
    struct reduction of = {.A = A, .diagonal = values, .k = k};
    of.beside = ki_arena_doubles(&own, k);
    of.beta = ki_arena_doubles(&own, k);
    of.V = ki_arena_doubles(&own, 2 * PANEL * k);
    double *const S = ki_arena_doubles(&own, PANEL * ki_max(count, 1)), *const columns =
                                                                            ki_arena_doubles(&own, PANEL * k);
    TRY(own.status);
    of.W = of.V + PANEL * k;
    const int exponent = scale(A, k);
    if (!tridiagonalise(&of, run)) goto done;
    for (int64_t c = 0; c < k; c++) {
        if (fabs(values[c]) < LEAST) values[c] = 0;
        if (fabs(of.beside[c]) < LEAST) of.beside[c] = 0;
    }
    TRY(ki_eigen_divide(values, Q, count, of.beside, k, run));
    if (run && run->cancelled) goto done;
    if (count > 0 && !turn_back(Q, count, &of, S, columns, run)) goto done;
    for (int64_t i = 0; 2 * i < k; i++) {
        const double value = values[i];
        values[i] = ldexp(values[k - 1 - i], exponent);
        values[k - 1 - i] = ldexp(value, exponent);
    }
    for (int64_t i = 0; 2 * i + 1 < count; i++) swap_rows(Q + i * k, Q + (count - 1 - i) * k, k);
done:
    return ki_arena_free(&own, status);
}
