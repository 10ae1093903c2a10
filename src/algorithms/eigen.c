/* Jacobi's rotations: each makes one element off the diagonal 0, and all of them smaller from sweep to
 * sweep. */
#include "algorithms/eigen.h"

#include <math.h>

void ki_eigen(double *A, double *Q, int64_t k) {
    for (int64_t i = 0; i < k * k; i++) Q[i] = i % (k + 1) == 0;
    for (int sweep = 0; sweep < 30; sweep++)
        for (int64_t a = 0; a < k; a++)
            for (int64_t b = a + 1; b < k; b++) {
                const double off = A[a * k + b];
                if (off == 0) continue;
                const double theta = (A[b * k + b] - A[a * k + a]) / (2 * off);
                const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
                const double c = 1 / sqrt(t * t + 1), s = t * c;
                for (int64_t i = 0; i < k; i++) {
                    const double x = A[i * k + a], y = A[i * k + b];
                    A[i * k + a] = c * x - s * y;
                    A[i * k + b] = s * x + c * y;
                }
                for (int64_t i = 0; i < k; i++) {
                    const double x = A[a * k + i], y = A[b * k + i], u = Q[i * k + a], v = Q[i * k + b];
                    A[a * k + i] = c * x - s * y;
                    A[b * k + i] = s * x + c * y;
                    Q[i * k + a] = c * u - s * v;
                    Q[i * k + b] = s * u + c * v;
                }
            }
}
