/* w = alpha * X^T (v .* (X y)) + beta * z. */
#include "pass/chain.h"

kiln_status kiln_mmchain(kiln_matrix *w, double alpha, const kiln_matrix *X, const kiln_matrix *v,
                         const kiln_matrix *y, double beta, const kiln_matrix *z) {
    struct ki_chain chain;
    const kiln_status status = ki_mmchain_check(&chain, "kiln_mmchain", w, alpha, X, v, y, beta, z);
    return status == KILN_OK ? ki_chain_run(&chain) : status;
}
