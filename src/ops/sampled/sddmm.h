/* Passes over the entries of a sparse matrix, each with its row of A and its row of B, k numbers wide. */
#ifndef KI_SDDMM_H
#define KI_SDDMM_H

#include "kiln/ops.h"
#include "core/matrix.h"

enum { KI_SAMPLE_COLUMNS = 4096, KI_SAMPLE_PARTS = 256 };

/* q = f(value, a . b) for each entry; then out = alpha q + beta out where P is wanted, row i of Y = alpha (sum of q b) + beta Z. By
 * rows of S, or, with A and B exchanged, by its columns. */
struct ki_sampled {
    int kind; /* kiln_sample_kind; 0: q is the value, and there is no A */
    int64_t rows, nnz, k;
    const struct ki_buffer *start, *col, *value; /* of S; on a GPU those of its columns start at 32 bits */
    bool by_columns;
    const kiln_matrix *A, *B, *Z;
    kiln_matrix *P, *Y; /* either may be NULL */
    double alpha, beta, floor;
    double *sum; /* or NULL. On the CPU: of each of KI_SAMPLE_PARTS parts, set to 0 */
};

kiln_status ki_sampled_gpu(const struct ki_sampled *sampled,
                           const kiln_matrix *S); /* ops/sampled/sddmm_gpu.c */
/* Y = alpha op(S) B + beta Z for checked operands, S in memory; ERR_DEVICE_NOMEM, ERR_NOMEM and ERR_LIMIT leave Y as it was. */
kiln_status ki_sampled_multiply(kiln_matrix *Y, double alpha, kiln_transpose op, const kiln_matrix *S,
                                const kiln_matrix *B, double beta, const kiln_matrix *Z);

#endif
