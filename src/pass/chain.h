/* The passes over X that mmchain, multiply and gram_diagonal are made of. One engine, because all of them do
 * the same to a row: take its dot product with y, or scatter a multiple of it into w, or both while it is on
 * chip. */
#ifndef KI_MMCHAIN_H
#define KI_MMCHAIN_H

#include "kiln/ops.h"
#include "core/matrix.h"

enum ki_chain_kind {
    KI_CHAIN_FUSED,      /* out (n x k) = alpha X^T (v .* (X y)) + beta z */
    KI_CHAIN_PLAIN,      /* out (m x k) = alpha X y + beta z */
    KI_CHAIN_TRANSPOSED, /* out (n x k) = alpha X^T y + beta z, y m x k */
    KI_CHAIN_SQUARES     /* out (n x 1) = alpha (X .* X)^T y, y m x 1 or NULL (ones) */
};

/* The middle step of a fused pass: what becomes of a row's dot products q = x y + shift before they multiply
 * the row in X^T. The formulas are in dialect/losses.h. */
enum ki_row_map {                 /* numbers as in dialect/pass.h */
                  KI_ROW_SCALE,   /* v .* q */
                  KI_ROW_SOFTMAX, /* s (c .* (q - sum_j c_j q_j)), c the row of v, m x k; s of the loss's
                                   * weights */
                  KI_ROW_LOSS,    /* s * d loss / d eta at eta = q + offset; curvature receives s times the
                                * second derivative */
                  KI_ROW_SOFTMAX_LOSS, /* s (softmax(q) - e_y); curvature, m x k, receives softmax(q) */
                  /* LOSS for each of k columns, but 0 where v is the column's number in `folds`; the CPU's
                   * alone; curvature m x k */
                  KI_ROW_FOLD_LOSSES
};

struct ki_chain {
    enum ki_chain_kind kind;
    kiln_matrix *out;
    double alpha, beta;
    const kiln_matrix *X, *v, *y, *z; /* z is NULL where beta is 0, so that beta = 0 never reads it */
    int k;
    /* FUSED only; zero elsewhere. */
    enum ki_row_map map;
    kiln_loss loss;           /* all maps but SCALE */
    const kiln_matrix *shift; /* 1 x k, added to X y; NULL = zeros */
    kiln_matrix *curvature;   /* LOSS m x 1, SOFTMAX_LOSS and FOLD_LOSSES m x k; may be NULL */
    bool expected;            /* LOSS of a GLM: curvature receives the expected one */
    kiln_matrix
        *sums; /* 1 x k, receives the column sums of what multiplies X^T, without alpha; may be NULL */
    kiln_matrix
        *products; /* SCALE: 1 x k, in the device's widest type: receives the column sums of q .* v .* q;
                   * may be NULL */
    const int
        *folds;    /* FOLD_LOSSES: k of them; its `products`, 2 x k, receive the columns' values and sums of
                * curvatures */
    double *value; /* LOSS, SOFTMAX_LOSS: receives the sum of s * loss, added up in double */
};

/* kiln_mmchain's chain of operands that are checked for `call`. */
kiln_status ki_mmchain_check(struct ki_chain *chain, const char *call, kiln_matrix *w, double alpha,
                             const kiln_matrix *X, const kiln_matrix *v, const kiln_matrix *y, double beta,
                             const kiln_matrix *z);
/* Runs a checked chain on X's device. */
kiln_status ki_chain_run(const struct ki_chain *chain);
kiln_status ki_chain_gpu(const struct ki_chain *chain);

/* Argument checks that all operations share: each returns ERR_ARGUMENT with the call's name and the
 * operand's. Where the device is lost, any check of an operand on it returns that. */
kiln_status ki_check_operand(const char *call, const char *name, const kiln_matrix *A,
                             const kiln_matrix *like);
kiln_status ki_check_dense(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                           int64_t rows, int64_t cols);
/* A's scalars are in the widest type of like's device, and in that shape; rows < 0: in -rows rows or more. */
kiln_status ki_check_wide(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                          int64_t rows, int64_t cols);
/* ERR_UNSUPPORTED on a group, for operations that have no way to share their work. */
kiln_status ki_check_single(const char *call, const kiln_device *device);
kiln_status ki_check_columns(const char *call, const char *name, int64_t k);

/* Columns of y at most: beyond, a row's products no longer stay in the caches that a pass counts on. */
enum { KI_COLUMNS_MAX = 65536 };

#endif
