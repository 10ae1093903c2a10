/* Value, gradient and Hessian product of a linear model's loss: fused passes with a row map in the middle. */
#include "core/sized.h"
#include "ops/linear/families.h"
#include "pass/chain.h"
#include "pass/rows.h"

static kiln_status check_vector(const char *call, const char *name, const kiln_matrix *A,
                                const kiln_matrix *X, bool optional) {
    return !A && optional ? KILN_OK : ki_check_rows(call, name, A, X, X->rows, 1);
}

static kiln_status check_row(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *X,
                             int64_t k) {
    return A ? ki_check_dense(call, name, A, X, 1, k) : KILN_OK;
}

kiln_status ki_loss_resolve(const char *call, kiln_loss *resolved, const kiln_loss *loss) {
    kiln_status status;
    TRY(KI_TAKE(kiln_loss, resolved, loss));
    if (resolved->kind < KILN_LOSS_SQUARED || resolved->kind > KILN_LOSS_GLM)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no loss has the number %d", call, (int)resolved->kind);
    if (resolved->kind != KILN_LOSS_GLM) return KILN_OK;
    TRY(ki_family_check(call, resolved));
    resolved->link = ki_link_of(resolved);
done:
    return status;
}

static kiln_status check_operands(const char *call, const kiln_loss *loss, const kiln_matrix *X, int64_t k) {
    kiln_status status;
    if (loss->kind == KILN_LOSS_SOFTMAX ? k < 2 || loss->offset != NULL : k != 1)
        return ki_fail(
            KILN_ERR_ARGUMENT,
            "%s: %lld columns of coefficients; softmax takes 2 to %d and no offset, other losses 1", call,
            (long long)k, KI_COLUMNS_MAX);
    TRY(ki_check_columns(call, "W", k));
    TRY(check_vector(call, "the loss's y", loss->y, X, false));
    TRY(check_vector(call, "the loss's weights", loss->weights, X, true));
    TRY(check_vector(call, "the loss's offset", loss->offset, X, true));
done:
    return status;
}

static kiln_status loss_gradient(double *value, kiln_matrix *G, kiln_matrix *gb, kiln_matrix *C,
                                 const kiln_loss *loss, const kiln_matrix *X, const kiln_matrix *W,
                                 const kiln_matrix *b, bool expected) {
    static const char call[] = "kiln_loss_gradient";
    kiln_status status;
    if (!value || !G || !loss || !X || !W)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: value, G, loss, X or W is NULL", call);
    kiln_loss resolved;
    TRY(ki_loss_resolve(call, &resolved, loss));
    loss = &resolved;
    const bool softmax = loss->kind == KILN_LOSS_SOFTMAX;
    TRY(check_operands(call, loss, X, W->cols));
    TRY(ki_check_dense(call, "W", W, X, X->cols, W->cols));
    TRY(ki_check_dense(call, "G", G, X, X->cols, W->cols));
    TRY(check_row(call, "b", b, X, W->cols));
    TRY(check_row(call, "gb", gb, X, W->cols));
    if (C) TRY(ki_check_rows(call, "C", C, X, X->rows, W->cols));
    if (G == W || G == X || (gb && gb == b) ||
        (C && (C == loss->y || C == loss->weights || C == loss->offset)))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a result must not be an operand", call);
    TRY(ki_chain_run(&(struct ki_chain){.kind = KI_CHAIN_FUSED,
                                        .map = softmax ? KI_ROW_SOFTMAX_LOSS : KI_ROW_LOSS,
                                        .out = G,
                                        .alpha = 1,
                                        .X = X,
                                        .y = W,
                                        .k = (int)W->cols,
                                        .loss = *loss,
                                        .shift = b,
                                        .curvature = C,
                                        .expected = expected,
                                        .sums = gb,
                                        .value = value}));
done:
    return status;
}

kiln_status kiln_loss_gradient(double *value, kiln_matrix *G, kiln_matrix *gb, kiln_matrix *C,
                               const kiln_loss *loss, const kiln_matrix *X, const kiln_matrix *W,
                               const kiln_matrix *b) {
    return loss_gradient(value, G, gb, C, loss, X, W, b, false);
}

kiln_status ki_loss_expected(double *value, kiln_matrix *G, kiln_matrix *C, const kiln_loss *loss,
                             const kiln_matrix *X, const kiln_matrix *W, const kiln_matrix *b) {
    return loss_gradient(value, G, NULL, C, loss, X, W, b, true);
}

kiln_status kiln_loss_hessian(kiln_matrix *Q, kiln_matrix *qb, const kiln_loss *loss, const kiln_matrix *C,
                              const kiln_matrix *X, const kiln_matrix *P, const kiln_matrix *pb, double beta,
                              const kiln_matrix *Z) {
    static const char call[] = "kiln_loss_hessian";
    kiln_status status;
    if (!Q || !loss || !X || !P) return ki_fail(KILN_ERR_ARGUMENT, "%s: Q, loss, X or P is NULL", call);
    kiln_loss own;
    TRY(KI_TAKE(kiln_loss, &own, loss));
    loss = &own;
    const bool softmax = loss->kind == KILN_LOSS_SOFTMAX;
    if (softmax)
        TRY(check_operands(call, loss, X, P->cols));
    else
        TRY(ki_check_columns(call, "P", P->cols));
    TRY(ki_check_dense(call, "P", P, X, X->cols, P->cols));
    TRY(ki_check_dense(call, "Q", Q, X, X->cols, P->cols));
    if (C || softmax) TRY(ki_check_rows(call, "C", C, X, X->rows, softmax ? P->cols : 1));
    TRY(check_row(call, "pb", pb, X, P->cols));
    TRY(check_row(call, "qb", qb, X, P->cols));
    if (Z) TRY(ki_check_dense(call, "Z", Z, X, X->cols, P->cols));
    if (Q == P || Q == C || Q == X || (qb && qb == pb))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: a result must not be an operand", call);
    TRY(ki_chain_run(&(struct ki_chain){.kind = KI_CHAIN_FUSED,
                                        .map = softmax ? KI_ROW_SOFTMAX : KI_ROW_SCALE,
                                        .out = Q,
                                        .alpha = 1,
                                        .beta = beta,
                                        .X = X,
                                        .v = C,
                                        .y = P,
                                        .z = beta != 0 ? Z : NULL,
                                        .k = (int)P->cols,
                                        .loss = softmax ? *loss : (kiln_loss){0},
                                        .shift = pb,
                                        .sums = qb}));
done:
    return status;
}
