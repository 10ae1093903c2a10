/* The losses of several models in one pass over X, each without the rows that its fold holds out, and
 * products with their Hessians. */
#ifndef KI_FOLD_LOSSES_H
#define KI_FOLD_LOSSES_H

#include <stdbool.h>

#include "kiln/ops.h"

/* For each column c of W (n x k), at eta = X W_c + b_c, over the rows i whose number in `fold` is not
 * folds[c]:
 *
 *   values_c = sum_i s_i loss(y_i, eta_i),   G_c = X^T g,   gb_c = 1^T g,
 *   g_i = s_i d loss / d eta, 0 for other rows,
 *   C_ic = s_i times the second derivative, 0 likewise; a second row of values has its
 *   columns' sums. */
struct ki_fold_losses {
    kiln_matrix *values, *G, *gb; /* 1 or 2 x k in f64; n x k; 1 x k, may be NULL */
    kiln_matrix *C;               /* m x k, may be NULL */
    const kiln_loss *loss;        /* with y and weights; any but softmax, no offset */
    const kiln_matrix *X, *W, *b; /* b 1 x k or NULL */
    const kiln_matrix *fold;      /* m x 1: small whole numbers */
    const int *folds;             /* k */
};

/* Returns whether X is one that ki_fold_losses takes: in the CPU's memory, in one piece. */
bool ki_fold_losses_apply(const kiln_matrix *X);
/* Operands must be of matching shapes, on X's device. */
kiln_status ki_fold_losses(const struct ki_fold_losses *of);

/* For each column c of P (n x k), at q = C_c .* (X P_c + b_c): G_c = X^T q, gb_c = 1^T q. */
struct ki_fold_products {
    kiln_matrix *G, *gb;              /* n x k; 1 x k, may be NULL */
    const kiln_matrix *X, *P, *b, *C; /* b 1 x k or NULL; C m x k */
};

/* Operands must be of matching shapes, on X's device. */
kiln_status ki_fold_products(const struct ki_fold_products *of);

#endif
