/* w = alpha * X^T (v .* (X y)) + beta * z. */
#include "pass/chain.h"

kiln_status kiln_mmchain(kiln_matrix *w, double alpha, const kiln_matrix *X, const kiln_matrix *v,
                         const kiln_matrix *y, double beta, const kiln_matrix *z) {
    static const char call[] = "kiln_mmchain";
    kiln_status status;
    if (!w || !X || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: w, X or y is NULL", call);
    TRY(ki_check_columns(call, "y", y->cols));
    TRY(ki_check_dense(call, "y", y, X, X->cols, y->cols));
    TRY(ki_check_dense(call, "w", w, X, X->cols, y->cols));
    if (v) TRY(ki_check_dense(call, "v", v, X, X->rows, v->cols == 1 ? 1 : y->cols));
    if (z) TRY(ki_check_dense(call, "z", z, X, X->cols, y->cols));
    if (w == y || w == v || w == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: w must not be y, v or X", call);
    TRY(ki_chain_run(&(struct ki_chain){.kind = KI_CHAIN_FUSED,
                                        .out = w,
                                        .alpha = alpha,
                                        .beta = beta,
                                        .X = X,
                                        .v = v,
                                        .y = y,
                                        .z = beta != 0 ? z : NULL,
                                        .k = (int)y->cols}));
done:
    return status;
}
