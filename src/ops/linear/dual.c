/* Dual coordinate descent: see dual.h. */
#include "ops/linear/dual.h"

#include "bodies/bodies.h"
#include "derived/select.h"

bool ki_dual_possible(const kiln_matrix *X) {
    return X->format == KILN_CSR && ki_selectable(X);
}

void ki_dual_sweep(struct ki_dual *dual) {
    ki_bodies(dual->X)->dual_sweep(dual);
}

void ki_dual_measure(double *square, const kiln_matrix *X, const double *reciprocal, double bias_step) {
    ki_bodies(X)->dual_measure(square, X, reciprocal, bias_step);
}
