/* w = alpha * X^T (v .* (X y)) + beta * z: checks, and the choice between CPU body and GPU kernel. */
#include "ops/mmchain.h"

#include "ops/bodies.h"

kiln_status ki_check_operand(const char *call, const char *name, const kiln_matrix *A,
                             const kiln_matrix *like) {
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", call, name);
    if (A->device != like->device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s lies on device %s, another operand on %s", call, name,
                       A->device->info.name, like->device->info.name);
    if (A->type != like->type)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is %s, another operand is %s", call, name,
                       ki_type_name(A->type), ki_type_name(like->type));
    return KILN_OK;
}

kiln_status ki_check_dense(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                           int64_t rows, int64_t cols) {
    kiln_status status = ki_check_operand(call, name, A, like);
    if (status != KILN_OK) return status;
    if (A->format != KILN_DENSE) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s must be dense", call, name);
    if (A->rows != rows || A->cols != cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is %lld x %lld, but must be %lld x %lld", call, name,
                       (long long)A->rows, (long long)A->cols, (long long)rows, (long long)cols);
    return KILN_OK;
}

kiln_status ki_check_columns(const char *call, const char *name, int64_t k) {
    if (k >= 1 && k <= KI_COLUMNS_MAX) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: %s has %lld columns, but must have 1 to %d", call, name,
                   (long long)k, KI_COLUMNS_MAX);
}

/* out = beta z where X has no entries at all. */
static kiln_status without_entries(const struct ki_chain *chain) {
    double beta[KI_COLUMNS_MAX];
    if (!chain->z) return kiln_fill(chain->out, 0.0);
    for (int c = 0; c < chain->k; c++) beta[c] = chain->beta;
    return kiln_combine(chain->out, beta, chain->z, NULL, NULL);
}

kiln_status ki_chain_run(const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    if (X->device->lost) return kiln_device_sync(X->device);
    const bool plain = chain->map == KI_ROW_SCALE && !chain->sums;
    if (X->nnz == 0 && plain) return without_entries(chain);
    return ki_on_cpu(X->device) ? ki_bodies(X)->chain(chain) : ki_chain_gpu(chain);
}

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
