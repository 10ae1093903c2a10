/* This file computes how far off a factor of normal equations can be: U^T U = A + E, A of unit diagonal,
 * |E_ij| <= part, so that a quadratic form of A^-1 is at most that of (U^T U)^-1 over 1 - r, r = || U^-1 ||^2
 * n part. || U^-1 || is at most the norm of the inverse of U's comparison matrix, which n^2 operations bound
 * (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, 8.2), and where that is too coarse,
 * as among correlated columns, the root of the sum of U^-1's squares. */
#include "algorithms/certificate/certificate.h"

enum { INVERTED = 512 }; /* columns at most, as U^-1 takes n^3 / 6 multiplications */

/* || U^-1 ||^2 at most by the comparison matrix: its inverse times ones bounds the rows' sums,
 * that of its transpose the columns'. */
static double compare(const double *U, double *sums, int64_t n) {
    double rows = 0, columns = 0;
    for (int64_t i = n; i-- > 0;) {
        double sum = 1;
        for (int64_t j = i + 1; j < n; j++) sum += fabs(U[i * n + j]) * sums[j];
        sums[i] = sum / U[i * n + i];
        rows = fmax(rows, sums[i]);
    }
    for (int64_t i = 0; i < n; i++) sums[i] = 1;
    for (int64_t i = 0; i < n; i++) {
        sums[i] /= U[i * n + i];
        columns = fmax(columns, sums[i]);
        for (int64_t j = i + 1; j < n; j++) sums[j] += fabs(U[i * n + j]) * sums[i];
    }
    return rows * columns;
}

/* The sum of U^-1's squares. */
static double invert(const double *U, double *row, int64_t n) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        for (int64_t j = c; j < n; j++) row[j] = j == c;
        for (int64_t i = c; i < n; i++) {
            const double value = row[i] /= U[i * n + i];
            sum += value * value;
            for (int64_t j = i + 1; j < n; j++) row[j] -= U[i * n + j] * value;
        }
    }
    return sum;
}

double ki_inverse_square(const double *U, int64_t n, double *part, double *work) {
    double square = compare(U, work, n), share = (double)n * *part;
    if (!(share * square < 0.5) && n <= INVERTED) square = invert(U, work, n);
    *part = share * square;
    return *part < 0.5 ? square : (double)INFINITY;
}
