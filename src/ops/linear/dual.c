/* Dual coordinate descent: see dual.h. */
#include "ops/linear/dual.h"

#include "bodies/bodies.h"
#include "core/size.h"
#include "derived/select.h"

bool ki_dual_possible(const kiln_matrix *X) {
    return X->format == KILN_CSR && ki_selectable(X);
}

int64_t ki_dual_stride(int64_t k) {
    enum { PIECE = 8 }; /* no vector of doubles is longer */
    return k == 1 ? 1 : ki_ceil_div(k, PIECE) * PIECE;
}

double ki_dual_mean_square(const kiln_matrix *X) {
    enum { LOOKED_AT = 1 << 16 };
    const int64_t nnz = X->nnz, step = ki_max(nnz / LOOKED_AT, 1), count = nnz / step;
    const float *narrow = ki_host(&X->values);
    const double *wide = ki_host(&X->values);
    double sum = 0;
    for (int64_t e = 0; e < count; e++) {
        const double value = X->type == KILN_F32 ? (double)narrow[e * step] : wide[e * step];
        sum += value * value;
    }
    return count > 0 ? sum / (double)count * (double)nnz / (double)X->rows : 0;
}

void ki_dual_sweep(struct ki_dual *dual) {
    ki_bodies(dual->X)->dual_sweep(dual);
}

void ki_dual_measure(double *square, const kiln_matrix *X, const double *reciprocal, double bias_step) {
    ki_bodies(X)->dual_measure(square, X, reciprocal, bias_step);
}
