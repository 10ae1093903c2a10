/* Y = alpha * op(A) B + beta * Z and diag(X^T diag(v) X): the halves of mmchain, and so run by its bodies,
 * but for a sparse A and a B of more columns than a pass of theirs takes: then the body of the sampled
 * products, which reads A once. */
#include "ops/sampled/sddmm.h"
#include "pass/group.h"
#include "pass/rows.h"

/* Columns from which on that is faster. Measured on two cores, f32, 27 entries a row: 1.5 to 2.4 times at 64
 * and 2.2 to 5 times at 128 columns, 3.5 times at 128 transposed, slower below. On a GPU passes over A take 8
 * columns each. */
enum { WIDE_CPU = 64, WIDE_CPU_TRANSPOSED = 128, WIDE_GPU = 17 };

static bool is_wide(const struct ki_chain *product) {
    const bool plain = product->kind == KI_CHAIN_PLAIN, cpu = ki_on_cpu(product->X->device);
    return product->X->format == KILN_CSR && !product->X->codes && product->k <= KI_SAMPLE_COLUMNS &&
           product->k >= (!cpu    ? WIDE_GPU
                          : plain ? WIDE_CPU
                                  : WIDE_CPU_TRANSPOSED);
}

/* On one device. A deterministic device or not, no sum is atomic. What does not fit into its memory goes by
 * in panels of rows, which a pass knows; a product that found too little has written nothing yet. */
static kiln_status run_wide(const void *of) {
    const struct ki_chain *product = of;
    const kiln_transpose op = product->kind == KI_CHAIN_PLAIN ? KILN_PLAIN : KILN_TRANSPOSED;
    if (!ki_streams(product->X)) {
        const kiln_status status = ki_sampled_multiply(product->out, product->alpha, op, product->X,
                                                       product->y, product->beta, product->z);
        if (status != KILN_ERR_DEVICE_NOMEM && status != KILN_ERR_NOMEM && status != KILN_ERR_LIMIT)
            return status;
    }
    return ki_chain_run(product);
}

static kiln_status run_product(const struct ki_chain *product) {
    if (!is_wide(product)) return ki_chain_run(product);
    if (!ki_is_split(product->X)) return run_wide(product);
    return ki_share(&(struct ki_shared){
        .rules = &ki_chain_rules, .kind = (int)product->kind, .whole = product, .run = run_wide});
}

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
    TRY(ki_check_rows(call, "B", B, A, inner, B->cols));
    TRY(ki_check_rows(call, "Y", Y, A, outer, B->cols));
    if (Z) TRY(ki_check_rows(call, "Z", Z, A, outer, B->cols));
    if (Y == B || Y == A) return ki_fail(KILN_ERR_ARGUMENT, "%s: Y must not be A or B", call);
    TRY(run_product(&(struct ki_chain){.kind = op == KILN_PLAIN ? KI_CHAIN_PLAIN : KI_CHAIN_TRANSPOSED,
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
    if (v) TRY(ki_check_rows(call, "v", v, X, X->rows, 1));
    if (d == v || d == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: d must not be X or v", call);
    TRY(ki_chain_run(
        &(struct ki_chain){.kind = KI_CHAIN_SQUARES, .out = d, .alpha = 1, .X = X, .y = v, .k = 1}));
done:
    return status;
}
