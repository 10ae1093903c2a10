/* Y = alpha * op(A) B + beta * Z and diag(X^T diag(v) X): the halves of mmchain, and so run by its bodies. */
#include "pass/chain.h"

kiln_status kiln_multiply(kiln_matrix *Y, double alpha, kiln_transpose op, const kiln_matrix *A,
                          const kiln_matrix *B, double beta, const kiln_matrix *Z) {
    static const char call[] = "kiln_multiply";
    kiln_status status;
    if (!Y || !A || !B) return ki_fail(KILN_ERR_ARGUMENT, "%s: Y, A or B is NULL", call);
    if (op != KILN_PLAIN && op != KILN_TRANSPOSED)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: op is %d, but must be KILN_PLAIN or KILN_TRANSPOSED", call,
                       (int)op);
    int64_t inner = op == KILN_PLAIN ? A->cols : A->rows, outer = op == KILN_PLAIN ? A->rows : A->cols;
    TRY(ki_check_columns(call, "B", B->cols));
    TRY(ki_check_dense(call, "B", B, A, inner, B->cols));
    TRY(ki_check_dense(call, "Y", Y, A, outer, B->cols));
    if (Z) TRY(ki_check_dense(call, "Z", Z, A, outer, B->cols));
    if (Y == B || Y == A) return ki_fail(KILN_ERR_ARGUMENT, "%s: Y must not be A or B", call);
    TRY(ki_chain_run(&(struct ki_chain){.kind = op == KILN_PLAIN ? KI_CHAIN_PLAIN : KI_CHAIN_TRANSPOSED,
                                        .out = Y,
                                        .alpha = alpha,
                                        .beta = beta,
                                        .X = A,
                                        .y = B,
                                        .z = beta != 0 ? Z : NULL,
                                        .k = (int)B->cols}));
done:
    return status;
}

kiln_status kiln_gram_diagonal(kiln_matrix *d, const kiln_matrix *X, const kiln_matrix *v) {
    static const char call[] = "kiln_gram_diagonal";
    kiln_status status;
    if (!d || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: d or X is NULL", call);
    TRY(ki_check_dense(call, "d", d, X, X->cols, 1));
    if (v) TRY(ki_check_dense(call, "v", v, X, X->rows, 1));
    if (d == v || d == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: d must not be X or v", call);
    TRY(ki_chain_run(
        &(struct ki_chain){.kind = KI_CHAIN_SQUARES, .out = d, .alpha = 1, .X = X, .y = v, .k = 1}));
done:
    return status;
}
