/* The passes over X that mmchain, multiply and gram_diagonal are made of. One engine, because all of them do
 * the same to a row: take its dot product with y, or scatter a multiple of it into w, or both while it is on
 * chip. */
#ifndef KI_MMCHAIN_H
#define KI_MMCHAIN_H

#include "core/matrix.h"

enum ki_chain_kind {
    KI_CHAIN_FUSED,      /* out (n x k) = alpha X^T (v .* (X y)) + beta z */
    KI_CHAIN_PLAIN,      /* out (m x k) = alpha X y + beta z */
    KI_CHAIN_TRANSPOSED, /* out (n x k) = alpha X^T y + beta z, y m x k */
    KI_CHAIN_SQUARES     /* out (n x 1) = alpha (X .* X)^T y, y m x 1 or NULL (ones) */
};

struct ki_chain {
    enum ki_chain_kind kind;
    kiln_matrix *out;
    double alpha, beta;
    const kiln_matrix *X, *v, *y, *z; /* z is NULL where beta is 0, so that beta = 0 never reads it */
    int k;
};

/* Runs a checked chain on X's device. */
kiln_status ki_chain_run(const struct ki_chain *chain);
kiln_status ki_chain_gpu(const struct ki_chain *chain);

/* Argument checks that all operations share: each returns ERR_ARGUMENT with the call's name and the
 * operand's. */
kiln_status ki_check_operand(const char *call, const char *name, const kiln_matrix *A,
                             const kiln_matrix *like);
kiln_status ki_check_dense(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                           int64_t rows, int64_t cols);
kiln_status ki_check_columns(const char *call, const char *name, int64_t k);

enum { KI_COLUMNS_MAX = 64 }; /* columns of y at most */

#endif
