/* The singular values of a small R by Hestenes' rotations of its columns until these are orthogonal (Demmel
 * and Veselic, SIAM J. Matrix Anal. Appl. 13, 1992). The eigenvectors of R^T R make most of them orthogonal
 * before, so that few are left to turn: values are right to some epsilon of the largest. Those below LEAST
 * are 0, as no product of their columns with others is a number that says anything. R is held by columns
 * meanwhile, one after the other. A caller that asks to stop gets what there is: U's columns are then of
 * length 1, and no more. */
#include "algorithms/eigen.h"
#include "algorithms/svd/svd.h"

enum { SWEEPS = 60, MANY = 256 }; /* from so many columns on the caller is heard in a sweep */
#define LEAST 1e-150              /* of the largest value, whose square is a normal number */

static void transpose(double *A, int64_t k) {
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++) {
            const double a = A[i * k + j];
            A[i * k + j] = A[j * k + i];
            A[j * k + i] = a;
        }
}

/* Eight sums go side by side. */
static double dot(const double *a, const double *b, int64_t k) {
    double sums[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= k; i += 8)
        for (int l = 0; l < 8; l++) sums[l] += a[i + l] * b[i + l];
    for (; i < k; i++) sums[0] += a[i] * b[i];
    for (int l = 4; l > 0; l /= 2)
        for (int j = 0; j < l; j++) sums[j] += sums[j + l];
    return sums[0];
}

static void rotate(double *a, double *b, double c, double t, int64_t k) {
    for (int64_t i = 0; i < k; i++) {
        const double x = a[i], y = b[i];
        a[i] = c * (x - t * y);
        b[i] = c * (y + t * x);
    }
}

/* Returns whether a pair was not orthogonal. squares: room for those of the columns' lengths. */
static bool sweep(double *R, double *V, double *squares, int64_t k, struct ki_run *run) {
    const double rounding = DBL_EPSILON * sqrt((double)k); /* of a product of two columns */
    bool turned = false;
    for (int64_t c = 0; c < k; c++) squares[c] = dot(R + c * k, R + c * k, k);
    for (int64_t p = 0; p < k && !run->cancelled; p++) {
        for (int64_t q = p + 1; q < k; q++) {
            double *const a = R + p * k, *const b = R + q * k;
            const double off = dot(a, b, k), aa = squares[p], bb = squares[q];
            if (!(fabs(off) > rounding * sqrt(aa) * sqrt(bb)) || fmin(aa, bb) < LEAST * LEAST) continue;
            const double theta = (bb - aa) / (2 * off);
            const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + hypot(theta, 1));
            rotate(a, b, 1 / hypot(t, 1), t, k);
            rotate(V + p * k, V + q * k, 1 / hypot(t, 1), t, k);
            squares[p] = dot(a, a, k), squares[q] = dot(b, b, k);
            turned = true;
        }
        if (k >= MANY) ki_run_tell(run);
    }
    return turned && !run->cancelled;
}

static void swap_rows(double *A, int64_t a, int64_t b, int64_t k) {
    for (int64_t i = 0; a != b && i < k; i++) {
        const double kept = A[a * k + i];
        A[a * k + i] = A[b * k + i];
        A[b * k + i] = kept;
    }
}

/* U's row c, orthogonal to those before: of a unit vector that these leave the most of. */
static void complete(double *U, int64_t c, int64_t k) {
    int64_t best = 0;
    double most = -1;
    for (int64_t i = 0; i < k; i++) {
        double left = 1;
        for (int64_t r = 0; r < c; r++) left -= U[r * k + i] * U[r * k + i];
        if (left > most) most = left, best = i;
    }
    double *const u = U + c * k;
    for (int64_t i = 0; i < k; i++) u[i] = i == best;
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t r = 0; r < c; r++) {
            const double along = dot(u, U + r * k, k);
            for (int64_t i = 0; i < k; i++) u[i] -= along * U[r * k + i];
        }
        const double length = sqrt(dot(u, u, k));
        for (int64_t i = 0; i < k; i++) u[i] /= length;
    }
}

/* R becomes R V, with V the eigenvectors of R^T R: the columns of both, one after the other. */
static kiln_status turn_to_eigenvectors(double *R, double *V, struct ki_svd_room *room, struct ki_run *run) {
    enum { STRIP = 128 };
    kiln_status status = KILN_OK;
    const int64_t k = room->count;
    double *const squares = room->g, *const former = room->q;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i; j < k; j++) squares[i * k + j] = dot(R + i * k, R + j * k, k);
    if (!run->cancelled) TRY(ki_eigen(room->root, V, k, squares, k, run));
    if (run->cancelled) {
        for (int64_t i = 0; i < k * k; i++) V[i] = i % (k + 1) == 0;
        goto done;
    }
    memcpy(former, R, (size_t)(k * k) * sizeof *R);
    memset(R, 0, (size_t)(k * k) * sizeof *R);
    for (int64_t j = 0; j < k; j += STRIP)
        for (int64_t c = 0; c < k; c++)
            ki_add_rows(R + c * k + j, V + c * k, k, former + j, k, ki_min(STRIP, k - j));
done:
    return status;
}

kiln_status ki_small_svd(double *R, double *V, double *s, struct ki_svd_room *room, struct ki_run *run) {
    kiln_status status;
    const int64_t k = room->count;
    double most = 0;
    int exponent = 0;
    for (int64_t i = 0; i < k * k; i++) most = fmax(most, fabs(R[i]));
    if (isfinite(most)) (void)frexp(most, &exponent);
    for (int64_t i = 0; i < k * k; i++) R[i] = ldexp(R[i], -exponent);
    transpose(R, k);
    TRY(turn_to_eigenvectors(R, V, room, run));
    for (int turn = 0; turn < SWEEPS && sweep(R, V, s, k, run); turn++) {
    }
    for (int64_t c = 0; c < k; c++) s[c] = sqrt(dot(R + c * k, R + c * k, k));
    for (int64_t c = 0; c < k; c++) {
        int64_t largest = c;
        for (int64_t i = c + 1; i < k; i++)
            if (s[i] > s[largest]) largest = i;
        const double kept = s[c];
        s[c] = s[largest];
        s[largest] = kept;
        swap_rows(R, c, largest, k);
        swap_rows(V, c, largest, k);
    }
    for (int64_t c = 0; c < k; c++) {
        if (!(s[c] <= LEAST * s[0])) { /* NaN stays */
            for (int64_t i = 0; i < k; i++) R[c * k + i] /= s[c];
            continue;
        }
        s[c] = 0;
        complete(R, c, k);
    }
    for (int64_t c = 0; c < k; c++) s[c] = ldexp(s[c], exponent);
    transpose(R, k);
    transpose(V, k);
done:
    return status;
}
